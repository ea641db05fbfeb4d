/* The types that every room and every plugin shares: a span of bytes, a status, an error.
 *
 * Public: installed beside handler.h. C11 and C++11. Nothing here allocates.
 * */
#ifndef SL_BASE_TYPES_H
#define SL_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that somebody else owns. Not NUL-terminated. An absent span has ptr NULL; an empty one has len 0. */
struct sl_span {
    const char *ptr;
    size_t len;
};

/* Of a text in the source. */
#ifdef __cplusplus
#define SL_LIT(s) sl_span_str(s)
#else
#define SL_LIT(s) ((struct sl_span){(s), sizeof(s) - 1})
#endif
/* For printf's "%.*s". */
#define SL_ARG(s) (int)(s).len, (s).ptr ? (s).ptr : ""

/* Of a NUL-terminated string; NULL becomes the absent span. */
static inline struct sl_span sl_span_str(const char *text)
{
    struct sl_span span = {text, text ? strlen(text) : 0};
    return span;
}

static inline bool sl_span_eq(struct sl_span a, struct sl_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool sl_span_is(struct sl_span a, const char *text)
{
    return sl_span_eq(a, sl_span_str(text));
}

/* Of a function: its caller looks at what it returns. */
#define SL_MUST_USE __attribute__((warn_unused_result))

/* The outcome of something that can fail. Zero is success everywhere, and the other three say the one thing
 * a caller has to know: what to do next. The detail is in a struct sl_error. */
enum sl_status {
    SL_OK = 0,
    SL_RETRY = 1,  /* the outside world failed: the same call may succeed later */
    SL_REJECT = 2, /* this input can never succeed; others may */
    SL_FATAL = 3   /* nothing of this kind can succeed here until somebody repairs the environment */
};

#define SL_ERROR_CODE_BYTES 64
#define SL_ERROR_TEXT_BYTES 512
#define SL_NO_OFFSET        SIZE_MAX

/* The detail of a failure, in storage of the caller's. The first error wins: setting a set error changes
 * nothing. All text is UTF-8, NUL-terminated, and never holds payload bytes beyond a name. */
struct sl_error {
    enum sl_status status;
    size_t offset;                  /* byte in the input, SL_NO_OFFSET: none */
    char code[SL_ERROR_CODE_BYTES]; /* short and stable: "AccessDenied", "InvalidJson" */
    char text[SL_ERROR_TEXT_BYTES]; /* one plain line: what failed, on what, what to do */
};

/* `struct sl_error why = SL_NO_ERROR;` */
#define SL_NO_ERROR                                                                                          \
    {                                                                                                        \
        SL_OK, SL_NO_OFFSET, "", ""                                                                          \
    }

enum sl_level { SL_TRACE, SL_DEBUG, SL_INFO, SL_WARN, SL_ERROR, SL_OFF };

/* Memory that lives as long as an invocation (or a process): opaque, see sl_host.alloc. */
struct sl_arena;

/* What an operation on the outside world needs of its surroundings. */
struct sl_call {
    struct sl_arena *arena; /* the invocation's: results' texts and items live here */
    int64_t deadline_ms;    /* on the host clock's steady time */
};

#ifdef __cplusplus
}
#endif

#endif
