/* The known name nearest to a mistyped one: for "did you mean". Nothing here allocates. */
#ifndef SL_BASE_NEAREST_H
#define SL_BASE_NEAREST_H

#include "base/types.h"

/* A search through known names: consider each, then read `best`. */
struct sl_nearest {
    struct sl_span name; /* borrowed: the mistyped one */
    const char *best;    /* of the names considered; NULL: none is near */
    size_t distance;     /* of `best`, plus what a name may differ at most where there is none */
};

/* A name counts as near if a third of the mistyped one is wrong at most, or two bytes if that is more. Names
 * of more than 64 bytes are near to none. */
struct sl_nearest sl_nearest_begin(struct sl_span name);
void sl_nearest_consider(struct sl_nearest *search, const char *known);

/* Adds a name to the list "a, b" of those that are known, cut where the room ends. */
void sl_nearest_list(char *list, size_t room, const char *known);

#endif
