/* Arrays in an arena: zeroed ones, and ones that grow. */
#include "handlers/builtin/toolkit/array.h"

#define FIRST_ROOM 64

void *sl_array_new(const struct sl_host *host, struct sl_arena *arena, size_t n, size_t item_bytes)
{
    return memset(host->alloc(arena, n * item_bytes), 0, n * item_bytes);
}

void *sl_array_double(const struct sl_host *host, struct sl_arena *arena, const void *items, uint32_t *room,
                      size_t item_bytes)
{
    uint32_t grown_room = *room > 0 ? 2 * *room : FIRST_ROOM;
    void *grown = host->alloc(arena, grown_room * item_bytes);
    if (*room > 0)
        memcpy(grown, items, *room * item_bytes);
    *room = grown_room;
    return grown;
}
