/* JSON text into a buffer: strings escaped, members with their commas, whitespace left out. */
#include "base/json_write.h"

#include "base/json.h"
#include "base/scan.h"
#include "base/utf8.h"

static void add_control(struct sl_buffer *b, unsigned char c)
{
    switch (c) {
    case '\n':
        sl_buffer_add(b, "\\n", 2);
        break;
    case '\r':
        sl_buffer_add(b, "\\r", 2);
        break;
    case '\t':
        sl_buffer_add(b, "\\t", 2);
        break;
    default:
        sl_buffer_printf(b, "\\u%04x", c);
    }
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

static void add_ascii(struct sl_buffer *b, char c)
{
    if (c == '"' || c == '\\')
        sl_buffer_add(b, (const char[]){'\\', c}, 2);
    else
        add_control(b, (unsigned char)c);
}

/* The text's plain runs are copied; returns where the next one ends. */
static const char *add_plain(struct sl_buffer *b, const char *p, const char *end)
{
    const char *from = p;
    while (p < end && is_plain((unsigned char)*p))
        p++;
    sl_buffer_add(b, from, (size_t)(p - from));
    return p;
}

void sl_json_add_escaped(struct sl_buffer *b, struct sl_span text)
{
    const char *p = text.ptr, *end = sl_span_end(text);
    while ((p = add_plain(b, p, end)) < end) {
        if ((unsigned char)*p < 0x80) {
            add_ascii(b, *p++);
            continue;
        }
        const char *next = sl_utf8_next(p, end);
        sl_buffer_add(b, next ? p : "\xEF\xBF\xBD", next ? (size_t)(next - p) : 3);
        p = next ? next : p + 1;
    }
}

/* The half of a surrogate pair at `p`, 0 when there is none. */
static unsigned half_at(const char *p, const char *end)
{
    const unsigned char *c = (const unsigned char *)p;
    if (end - p < 3 || c[0] != 0xED || c[1] < 0xA0 || (c[2] & 0xC0) != 0x80 || (c[1] & 0xC0) != 0x80)
        return 0;
    return 0xD000u | (c[1] & 0x3Fu) << 6 | (c[2] & 0x3Fu);
}

void sl_json_add_exact(struct sl_buffer *b, struct sl_span text)
{
    const char *p = text.ptr, *end = sl_span_end(text);
    const char *after_first = NULL; /* where a first half ended that was escaped */
    while ((p = add_plain(b, p, end)) < end) {
        unsigned half = half_at(p, end);
        if ((unsigned char)*p < 0x80) {
            add_ascii(b, *p++);
        } else if (half && !(half >= 0xDC00 && p == after_first)) {
            /* (Two escapes in a row would be read as one character.) */
            sl_buffer_printf(b, "\\u%04x", half);
            p += 3;
            after_first = half < 0xDC00 ? p : NULL;
        } else {
            sl_buffer_add_char(b, *p++);
        }
    }
}

void sl_json_add_string(struct sl_buffer *b, struct sl_span text)
{
    sl_buffer_add_char(b, '"');
    sl_json_add_escaped(b, text);
    sl_buffer_add_char(b, '"');
}

static void add_name(struct sl_buffer *b, const char *name)
{
    if (b->len && b->ptr[b->len - 1] != '{')
        sl_buffer_add_char(b, ',');
    sl_json_add_string(b, sl_span_str(name));
    sl_buffer_add_char(b, ':');
}

void sl_json_add_member(struct sl_buffer *b, const char *name, struct sl_span text)
{
    add_name(b, name);
    sl_json_add_string(b, text);
}

void sl_json_add_integer(struct sl_buffer *b, const char *name, int64_t number)
{
    add_name(b, name);
    sl_buffer_add_integer(b, number);
}

void sl_json_add_raw(struct sl_buffer *b, const char *name, struct sl_span json)
{
    add_name(b, name);
    sl_buffer_add_span(b, json);
}

void sl_json_add_compact(struct sl_buffer *b, struct sl_span json)
{
    const char *p = json.ptr, *end = sl_span_end(json);
    bool escaped;
    while (p < end) {
        const char *from = p;
        while (p < end && (unsigned char)*p > ' ')
            p = *p == '"' ? sl_json_string_end(p + 1, end, &escaped) + 1 : p + 1;
        sl_buffer_add(b, from, (size_t)(p - from));
        p = sl_json_space(p, end);
    }
}
