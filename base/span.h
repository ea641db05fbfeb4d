/* Spans: comparing, making and looking into borrowed bytes. Nothing here allocates or fails. */
#ifndef SL_BASE_SPAN_H
#define SL_BASE_SPAN_H

#include "base/types.h"

#include <string.h>

#define SL_LIT(s) ((struct sl_span){(s), sizeof(s) - 1})
/* For printf's "%.*s". */
#define SL_ARG(s) (int)(s).len, (s).ptr ? (s).ptr : ""

static inline struct sl_span sl_span(const char *ptr, size_t len)
{
    return (struct sl_span){ptr, len};
}

/* Of a NUL-terminated string; NULL gives the absent span. */
static inline struct sl_span sl_span_str(const char *text)
{
    return (struct sl_span){text, text ? strlen(text) : 0};
}

static inline bool sl_span_eq(struct sl_span a, struct sl_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool sl_span_is(struct sl_span a, const char *text)
{
    return sl_span_eq(a, sl_span_str(text));
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

/* Everything from byte `from` on; empty when `from` is beyond the end. */
static inline struct sl_span sl_span_from(struct sl_span a, size_t from)
{
    return from >= a.len ? sl_span(a.len ? a.ptr + a.len : a.ptr, 0) : sl_span(a.ptr + from, a.len - from);
}

#endif
