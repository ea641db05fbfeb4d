/* Keys held back: items of which a record failed. */
#include "base/array.h"
#include "base/map.h"
#include "handlers/dispatch/dispatch_private.h"

void sl_held_add(struct sl_held *held, struct sl_dispatch *d, size_t index)
{
    if (!held->keys.arena)
        sl_map_init(&held->keys, d->arena, 0);
    uint32_t i = sl_map_index(&held->keys, sl_dispatch_key(d, index));
    if (i == held->n)
        SL_PUSH_IN(d->arena, held->first, held->n, held->room) = (uint32_t)index;
    else if (index < held->first[i])
        held->first[i] = (uint32_t)index;
}

bool sl_held_has(const struct sl_held *held, struct sl_dispatch *d, size_t index)
{
    if (!held->n)
        return false;
    uint32_t i = sl_map_find(&held->keys, sl_dispatch_key(d, index));
    return i != SL_MAP_NONE && index > held->first[i];
}
