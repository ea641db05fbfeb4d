/* Spans: making and looking into borrowed bytes, beyond what base/types.h has. Nothing here allocates or
 * fails. */
#ifndef SL_BASE_SPAN_H
#define SL_BASE_SPAN_H

#include "base/types.h"

static inline struct sl_span sl_span(const char *ptr, size_t len)
{
    return (struct sl_span){ptr, len};
}

static inline bool sl_span_starts(struct sl_span a, struct sl_span prefix)
{
    return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.ptr, prefix.ptr, prefix.len) == 0);
}

static inline bool sl_span_ends(struct sl_span a, struct sl_span suffix)
{
    return a.len >= suffix.len &&
           (suffix.len == 0 || memcmp(a.ptr + a.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

/* In the order of their bytes, a beginning before what it begins: below 0, 0 or above 0. */
static inline int sl_span_compare(struct sl_span a, struct sl_span b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Where it ends; of an absent one (whose bytes are nowhere), what it has as its beginning. */
static inline const char *sl_span_end(struct sl_span a)
{
    return a.len ? a.ptr + a.len : a.ptr;
}

/* Everything from byte `from` on; empty when `from` is beyond the end. */
static inline struct sl_span sl_span_from(struct sl_span a, size_t from)
{
    return from >= a.len ? sl_span(sl_span_end(a), 0) : sl_span(a.ptr + from, a.len - from);
}

/* The text before the first separator, or all of it: both are taken off the beginning of `*rest`, which is
 * not empty. */
static inline struct sl_span sl_span_cut(struct sl_span *rest, char separator)
{
    const char *at = memchr(rest->ptr, separator, rest->len);
    struct sl_span first = sl_span(rest->ptr, at ? (size_t)(at - rest->ptr) : rest->len);
    *rest = sl_span_from(*rest, first.len + 1);
    return first;
}

/* At least one digit, and only digits. */
static inline bool sl_span_is_digits(struct sl_span a)
{
    for (size_t i = 0; i < a.len; i++)
        if (a.ptr[i] < '0' || a.ptr[i] > '9')
            return false;
    return a.len > 0;
}

/* Digits without those zeros before them that say nothing; "0" stays. */
static inline struct sl_span sl_span_without_zeros(struct sl_span digits)
{
    while (digits.len > 1 && digits.ptr[0] == '0')
        digits = sl_span_from(digits, 1);
    return digits;
}

/* Whole numbers by value, written without such zeros: more digits are the larger one. */
static inline int sl_span_compare_digits(struct sl_span a, struct sl_span b)
{
    int longer = (a.len > b.len) - (a.len < b.len);
    return longer ? longer : sl_span_compare(a, b);
}

#endif
