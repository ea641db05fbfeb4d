/* Text of records, made safe for its place of use. */
#include "base/json_write.h"
#include "streams/template/template.h"

static bool is_path_safe(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

/* One to one: '%' is always followed by two digits, except in the text "%", which means an empty text. */
static void escape_path(struct sl_span text, struct sl_buffer *out)
{
    static const char hex[] = "0123456789ABCDEF";
    if (text.len == 0)
        sl_buffer_add_char(out, '%');
    for (size_t i = 0; i < text.len;) {
        size_t run = i;
        while (run < text.len && is_path_safe((unsigned char)text.ptr[run]) &&
               (run > 0 || text.ptr[0] != '.'))
            run++;
        sl_buffer_add(out, text.ptr + i, run - i);
        if (run < text.len) {
            unsigned char c = (unsigned char)text.ptr[run];
            sl_buffer_add(out, (const char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
        }
        i = run + 1;
    }
}

void sl_escape_text(struct sl_span text, enum sl_escape escape, struct sl_buffer *out)
{
    switch (escape) {
    case SL_ESCAPE_JSON:
        sl_json_add_escaped(out, text);
        break;
    case SL_ESCAPE_PATH:
        escape_path(text, out);
        break;
    default:
        sl_buffer_add_span(out, text);
    }
}
