/* Which characters are shown, and texts made of them. */
#include "base/clean.h"

#include "base/utf8.h"

/* Of a whole character of UTF-8 beyond ASCII. */
static bool is_shown(const unsigned char *c)
{
    switch (c[0]) {
    case 0xC2:
        return c[1] >= 0xA0;
    case 0xD8:
        return c[1] != 0x9C;
    case 0xE2:
        return !(c[1] == 0x80 && (c[2] == 0x8E || c[2] == 0x8F || (c[2] >= 0xA8 && c[2] <= 0xAE))) &&
               !(c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9);
    case 0xEF:
        return !(c[1] == 0xBB && c[2] == 0xBF);
    default:
        return true;
    }
}

const char *sl_clean_next(const char *p, const char *end, bool *shown)
{
    unsigned char c = (unsigned char)*p;
    const char *next = c < 0x80 ? p + 1 : sl_utf8_next(p, end);
    *shown = c < 0x80 ? c >= 0x20 && c != 0x7F : next && is_shown((const unsigned char *)p);
    return next ? next : p + 1;
}

size_t sl_clean(struct sl_span text, char *out, size_t room)
{
    size_t len = 0;
    for (const char *p = text.ptr, *end = sl_span_end(text); p < end;) {
        bool shown;
        const char *next = sl_clean_next(p, end, &shown);
        size_t n = shown ? (size_t)(next - p) : 1;
        if (n >= room - len)
            break;
        if (shown)
            memmove(out + len, p, n);
        else
            out[len] = '?';
        len += n;
        p = next;
    }
    out[len] = '\0';
    return len;
}
