/* Arrays in an arena. Nothing is freed: they live as long as the arena. */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_ARRAY_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_ARRAY_H

#include "handlers/handler.h"

/* `n` items, all bytes zero. */
void *sl_array_new(const struct sl_host *host, struct sl_arena *arena, size_t n, size_t item_bytes);

/* A copy of a full array of `*room` items with room for twice as many (64 at least); `*room` says how many.
 */
void *sl_array_double(const struct sl_host *host, struct sl_arena *arena, const void *items, uint32_t *room,
                      size_t item_bytes);

#endif
