/* Checking UTF-8, a character at a time. */
#ifndef SL_BASE_UTF8_H
#define SL_BASE_UTF8_H

#include "base/span.h"

/* Where the character at `p` ends, whose first byte is 0x80 or more; NULL when it is not UTF-8 (RFC 3629:
 * nothing overlong, no surrogates, nothing above U+10FFFF) or goes beyond `end`. */
static inline const char *sl_utf8_next(const char *p, const char *end)
{
    const unsigned char *c = (const unsigned char *)p;
    ptrdiff_t left = end - p;
    if (c[0] < 0xE0)
        return c[0] >= 0xC2 && left >= 2 && (c[1] & 0xC0) == 0x80 ? p + 2 : NULL;
    if (c[0] < 0xF0) {
        unsigned char low = c[0] == 0xE0 ? 0xA0 : 0x80, high = c[0] == 0xED ? 0x9F : 0xBF;
        return left >= 3 && c[1] >= low && c[1] <= high && (c[2] & 0xC0) == 0x80 ? p + 3 : NULL;
    }
    unsigned char low = c[0] == 0xF0 ? 0x90 : 0x80, high = c[0] == 0xF4 ? 0x8F : 0xBF;
    return c[0] <= 0xF4 && left >= 4 && c[1] >= low && c[1] <= high && (c[2] & 0xC0) == 0x80 &&
                   (c[3] & 0xC0) == 0x80
               ? p + 4
               : NULL;
}

static inline bool sl_utf8_is_valid(struct sl_span text)
{
    const char *p = text.ptr, *end = sl_span_end(text);
    while (p && p < end)
        p = (unsigned char)*p < 0x80 ? p + 1 : sl_utf8_next(p, end);
    return p != NULL || text.len == 0;
}

#endif
