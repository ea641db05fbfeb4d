#include "sinks/aws/uri.h"

static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void sl_uri_encode(struct sl_buffer *out, struct sl_span text, char keep)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *p = text.ptr, *end = text.ptr + text.len;
    while (p < end) {
        const char *run = p;
        while (run < end && (is_unreserved((unsigned char)*run) || (keep && *run == keep)))
            run++;
        sl_buffer_add(out, p, (size_t)(run - p));
        if (run == end)
            return;
        unsigned char c = (unsigned char)*run;
        sl_buffer_add(out, (const char[]){'%', digits[c >> 4], digits[c & 15]}, 3);
        p = run + 1;
    }
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void sl_uri_decode(struct sl_buffer *out, struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++) {
        int high = -1, low = -1;
        if (text.ptr[i] == '%' && text.len - i > 2) {
            high = hex_value(text.ptr[i + 1]);
            low = hex_value(text.ptr[i + 2]);
        }
        if (high >= 0 && low >= 0) {
            sl_buffer_add_char(out, (char)(high * 16 + low));
            i += 2;
        } else {
            sl_buffer_add_char(out, text.ptr[i]);
        }
    }
}
