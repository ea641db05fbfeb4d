/* Escapes text for an HTML page. */
#include "cli/output/report/html.h"

#include "base/array.h"
#include "base/json_write.h"
#include "base/span.h"
#include "base/utf8.h"

#include <stdio.h>

struct sl_span sl_html_shorten(struct sl_span text, size_t most)
{
    if (text.len <= most)
        return text;
    while (most && ((unsigned char)text.ptr[most] & 0xC0) == 0x80)
        most--;
    return sl_span(text.ptr, most);
}

/* Controls, and what nobody sees: a name that only looks like another one is to be told from it. (Joiners
 * stay: scripts and emoji need them.) */
static bool is_hidden(uint32_t c)
{
    static const struct {
        uint32_t from, to;
    } hidden[] = {{0x0, 0x1F},      {0x7F, 0x9F},     {0xAD, 0xAD},     {0x61C, 0x61C},
                  {0x180E, 0x180E}, {0x200B, 0x200B}, {0x200E, 0x200F}, {0x2028, 0x202E},
                  {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};
    for (size_t i = 0; i < SL_COUNT(hidden); i++)
        if (c >= hidden[i].from && c <= hidden[i].to)
            return true;
    return false;
}

/* The character of `n` bytes, which are UTF-8. */
static uint32_t code_of(const char *p, size_t n)
{
    uint32_t c = n == 1 ? (unsigned char)p[0] : (unsigned char)p[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)p[i] & 0x3F);
    return c;
}

static void add_character(struct sl_buffer *b, const char *p, size_t n)
{
    uint32_t c = code_of(p, n);
    const char *name = c == '<'    ? "&lt;"
                       : c == '>'  ? "&gt;"
                       : c == '&'  ? "&amp;"
                       : c == '"'  ? "&quot;"
                       : c == '\'' ? "&#39;"
                                   : NULL;
    if (name)
        sl_buffer_add_str(b, name);
    else if (is_hidden(c))
        sl_buffer_printf(b, "\xE2\x80\xB9U+%04X\xE2\x80\xBA", c); /* in single angle quotes */
    else
        sl_buffer_add(b, p, n);
}

void sl_html_add(struct sl_buffer *b, struct sl_span text)
{
    const char *p = text.ptr, *end = sl_span_end(text);
    while (p < end) {
        const char *next = (unsigned char)*p < 0x80 ? p + 1 : sl_utf8_next(p, end);
        if (next)
            add_character(b, p, (size_t)(next - p));
        else
            sl_buffer_add_str(b, "\xEF\xBF\xBD");
        p = next ? next : p + 1;
    }
}

void sl_html_add_foreign(struct sl_buffer *b, struct sl_span text)
{
    sl_buffer_add_str(b, "<bdi>");
    sl_html_add(b, text);
    sl_buffer_add_str(b, "</bdi>");
}

void sl_html_add_count(struct sl_buffer *b, size_t n)
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%zu", n);
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            sl_buffer_add_char(b, ',');
        sl_buffer_add_char(b, digits[i]);
    }
}

void sl_html_add_json(struct sl_buffer *b, struct sl_span text)
{
    struct sl_buffer json;
    sl_buffer_init(&json, b->max);
    sl_json_add_string(&json, text);
    for (size_t i = 0; i < json.len; i++) {
        if (json.ptr[i] == '<')
            sl_buffer_add_str(b, "\\u003c");
        else
            sl_buffer_add_char(b, json.ptr[i]);
    }
    sl_buffer_clean_up(&json);
}
