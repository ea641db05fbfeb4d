/* Arrays that grow, by doubling. */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 16

static size_t next_room(size_t need, size_t room)
{
    room = room ? 2 * room : FIRST_ROOM;
    return room < need ? need : room;
}

void *sl_array_fit(void *array, size_t need, size_t *room, size_t size, const char *what)
{
    if (need <= *room)
        return array;
    *room = next_room(need, *room);
    array = reallocarray(array, *room, size);
    if (!array)
        sl_die("out of memory: %zu %s", *room, what);
    return array;
}

void *sl_array_fit_in(struct sl_arena *arena, void *array, size_t need, size_t *room, size_t size)
{
    if (need <= *room)
        return array;
    size_t old = *room * size;
    *room = next_room(need, *room);
    void *longer = sl_arena_alloc(arena, *room * size);
    if (old)
        memcpy(longer, array, old);
    return longer;
}
