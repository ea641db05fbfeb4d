/* A growing buffer with a maximum. Its failure is sticky: append as often as needed, then look at `failed`
 * once. Out of memory ends the process (see sl_die); reaching the maximum only sets `failed`. */
#ifndef SL_BASE_BUFFER_H
#define SL_BASE_BUFFER_H

#include "base/error.h"
#include "base/span.h"

struct sl_buffer {
    char *ptr;
    size_t len;
    size_t room;            /* bytes allocated */
    size_t max;             /* bytes that `len` may reach */
    bool failed;            /* an append would have passed `max`; nothing was appended since */
    bool is_secret;         /* its memory is wiped when it is reset, moved and freed; malloc's only */
    struct sl_arena *arena; /* where its memory comes from; NULL: malloc */
};

/* `max` is a named constant of the caller; a comment there says where the limit comes from. */
void sl_buffer_init(struct sl_buffer *b, size_t max);
/* The same with its memory in an arena: the text lives as long as that, and nothing needs cleaning up. */
void sl_buffer_init_in(struct sl_buffer *b, struct sl_arena *arena, size_t max);
void sl_buffer_clean_up(struct sl_buffer *b); /* NULL and zeroed memory are fine */

/* Empties it and clears `failed`; the memory stays for the next use. */
void sl_buffer_reset(struct sl_buffer *b);

void sl_buffer_add(struct sl_buffer *b, const void *bytes, size_t n);
void sl_buffer_add_span(struct sl_buffer *b, struct sl_span span);
void sl_buffer_add_str(struct sl_buffer *b, const char *text);
void sl_buffer_add_char(struct sl_buffer *b, char c);
void sl_buffer_add_integer(struct sl_buffer *b, int64_t number);
/* 12345 as "12.345", 12300 as "12.3", 12000 as "12". */
void sl_buffer_add_thousandths(struct sl_buffer *b, uint64_t number);
/* Needs room for a NUL, too. */
void sl_buffer_printf(struct sl_buffer *b, const char *format, ...) SL_PRINTF(2, 3);

/* Room for at least `n` more bytes at the end, NULL when that would pass `max`; the caller writes there and
 * adds to `len` what it wrote. */
char *sl_buffer_reserve(struct sl_buffer *b, size_t n);

/* Borrowed until the next change. */
static inline struct sl_span sl_buffer_span(const struct sl_buffer *b)
{
    return sl_span(b->ptr, b->len);
}

#endif
