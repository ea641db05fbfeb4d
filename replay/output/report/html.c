/* Escapes text for an HTML page. */
#include "replay/output/report/html.h"

#include "base/json_write.h"
#include "base/span.h"
#include "base/utf8.h"

#include <stdio.h>

static void add_ascii(struct sl_buffer *b, unsigned char c)
{
    const char *name = c == '<'    ? "&lt;"
                       : c == '>'  ? "&gt;"
                       : c == '&'  ? "&amp;"
                       : c == '"'  ? "&quot;"
                       : c == '\'' ? "&#39;"
                                   : NULL;
    if (name)
        sl_buffer_add_str(b, name);
    else if (c < 0x20)
        sl_buffer_add(b, (const unsigned char[]){0xE2, 0x90, 0x80 + c}, 3);
    else if (c == 0x7F)
        sl_buffer_add_str(b, "\xE2\x90\xA1");
    else
        sl_buffer_add_char(b, (char)c);
}

void sl_html_add(struct sl_buffer *b, struct sl_span text)
{
    const char *p = text.ptr, *end = p + text.len;
    while (p < end) {
        if ((unsigned char)*p < 0x80) {
            add_ascii(b, (unsigned char)*p++);
            continue;
        }
        const char *next = sl_utf8_next(p, end);
        sl_buffer_add(b, next ? p : "\xEF\xBF\xBD", next ? (size_t)(next - p) : 3);
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
