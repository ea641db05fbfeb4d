/* Memory that is freed all at once: per invocation (reset between events) or per process.
 *
 * Allocation never fails: out of memory ends the process (see sl_die), so every input's size is capped
 * before it gets here. Memory is aligned for any type and not zeroed unless said. Built with
 * SL_ARENA_DEBUG (the sanitizer builds), each allocation is a malloc of its own, freed at reset, so that a
 * view that is kept too long is seen. */
#ifndef SL_BASE_ARENA_H
#define SL_BASE_ARENA_H

#include "base/error.h"
#include "base/span.h"

typedef void (*sl_arena_clean_up_fn)(void *arg);

/* `chunk` bytes are taken from malloc at a time; larger allocations get a chunk of their own. */
struct sl_arena *sl_arena_new(size_t chunk);
void sl_arena_destroy(struct sl_arena *arena); /* NULL is fine */

/* From now on its memory is wiped before it is used again or freed: for keys and tokens. */
void sl_arena_keep_secret(struct sl_arena *arena);

/* Runs the clean-ups, last registered first, and takes all memory back; the first chunk is kept. */
void sl_arena_reset(struct sl_arena *arena);

void *sl_arena_alloc(struct sl_arena *arena, size_t n);
void *sl_arena_zalloc(struct sl_arena *arena, size_t n);
char *sl_arena_copy(struct sl_arena *arena, struct sl_span span); /* followed by a NUL */
char *sl_arena_printf(struct sl_arena *arena, const char *format, ...) SL_PRINTF(2, 3);

/* `fn(arg)` runs at reset or destroy, whichever comes first. */
void sl_arena_defer(struct sl_arena *arena, sl_arena_clean_up_fn fn, void *arg);

/* Bytes handed out since the last reset: for the memory figures in bench/. */
size_t sl_arena_used(const struct sl_arena *arena);

#endif
