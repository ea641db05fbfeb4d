/* Arrays: how many elements one has, and arrays that grow.
 *
 * One that grows is three variables: the elements, how many there are, and for how many there is room (a
 * size_t). All are zero at first. Memory that cannot be had ends the process (see sl_die). */
#ifndef SL_BASE_ARRAY_H
#define SL_BASE_ARRAY_H

#include "base/arena.h"

#define SL_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The array with room for `need` elements of `size` bytes: itself, or a longer copy in its place, at least
 * twice as long. On the heap: the caller frees it. `what` is said when there is no memory: "routes". */
void *sl_array_fit(void *array, size_t need, size_t *room, size_t size, const char *what);

/* The same in an arena, where the shorter copy stays. */
void *sl_array_fit_in(struct sl_arena *arena, void *array, size_t need, size_t *room, size_t size);

/* The next element, which is not set: SL_PUSH(list, n, room, "routes") = route; */
#define SL_PUSH(array, n, room, what)                                                                        \
    (*((array) = sl_array_fit((array), (n) + 1, &(room), sizeof(*(array)), (what)), &(array)[(n)++]))

#define SL_PUSH_IN(arena, array, n, room)                                                                    \
    (*((array) = sl_array_fit_in((arena), (array), (n) + 1, &(room), sizeof(*(array))), &(array)[(n)++]))

#endif
