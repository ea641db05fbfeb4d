#include "base/json_write.h"

#include "base/json.h"

/* Bytes of the UTF-8 character at `p`, 0 when it is none (RFC 3629: no surrogates, nothing overlong). */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    static const struct {
        unsigned char first, last, low, high;
        size_t length;
    } forms[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
        {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
        {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (p[0] < forms[i].first || p[0] > forms[i].last)
            continue;
        if (left < forms[i].length || p[1] < forms[i].low || p[1] > forms[i].high)
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((p[k] & 0xC0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

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

void sl_json_add_escaped(struct sl_buffer *b, struct sl_span text)
{
    const unsigned char *p = (const unsigned char *)text.ptr;
    size_t i = 0;
    while (i < text.len) {
        size_t run = i;
        while (run < text.len && is_plain(p[run]))
            run++;
        sl_buffer_add(b, p + i, run - i);
        i = run;
        if (i == text.len)
            break;
        size_t n = p[i] >= 0x80 ? utf8_length(p + i, text.len - i) : 1;
        if (n == 0)
            sl_buffer_add(b, "\xEF\xBF\xBD", 3);
        else if (p[i] == '"' || p[i] == '\\')
            sl_buffer_add(b, (const char[]){'\\', (char)p[i]}, 2);
        else if (n == 1)
            add_control(b, p[i]);
        else
            sl_buffer_add(b, p + i, n);
        i += n ? n : 1;
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
    sl_buffer_printf(b, "%lld", (long long)number);
}

void sl_json_add_raw(struct sl_buffer *b, const char *name, struct sl_span json)
{
    add_name(b, name);
    sl_buffer_add_span(b, json);
}

void sl_json_add_compact(struct sl_buffer *b, struct sl_span json)
{
    const char *p = json.ptr, *end = p + json.len;
    bool escaped;
    while (p < end) {
        const char *from = p;
        while (p < end && (unsigned char)*p > ' ')
            p = *p == '"' ? sl_json_string_end(p + 1, end, &escaped) + 1 : p + 1;
        sl_buffer_add(b, from, (size_t)(p - from));
        p = sl_json_space(p, end);
    }
}
