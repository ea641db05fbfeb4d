/* Keys held back: items of which a record failed. */
#include "base/hash.h"
#include "base/span.h"
#include "handlers/dispatch/dispatch_private.h"

#define FIRST_ROOM 64

/* Keys are short, and a writer of items cannot make more of them than a batch holds. */
static size_t hash(struct sl_span key)
{
    uint64_t h = sl_hash(key);
    return (size_t)(h ^ (h >> 32));
}

static struct sl_held_key *slot_of(const struct sl_held *held, struct sl_span key)
{
    size_t i = hash(key) & (held->room - 1);
    while (held->slots[i].key.ptr && !sl_span_eq(held->slots[i].key, key))
        i = (i + 1) & (held->room - 1);
    return &held->slots[i];
}

static void grow(struct sl_held *held, struct sl_arena *arena)
{
    struct sl_held old = *held;
    held->room = old.room ? old.room * 2 : FIRST_ROOM;
    held->slots = sl_arena_zalloc(arena, held->room * sizeof(*held->slots));
    for (size_t i = 0; i < old.room; i++)
        if (old.slots[i].key.ptr)
            *slot_of(held, old.slots[i].key) = old.slots[i];
}

void sl_held_add(struct sl_held *held, struct sl_dispatch *d, size_t index)
{
    struct sl_span key = sl_dispatch_key(d, index);
    if (2 * (held->n + 1) > held->room)
        grow(held, d->arena);
    struct sl_held_key *slot = slot_of(held, key);
    if (!slot->key.ptr) {
        *slot = (struct sl_held_key){key, (uint32_t)index};
        held->n++;
    } else if (index < slot->index) {
        slot->index = (uint32_t)index;
    }
}

bool sl_held_has(const struct sl_held *held, struct sl_dispatch *d, size_t index)
{
    if (!held->n)
        return false;
    const struct sl_held_key *slot = slot_of(held, sl_dispatch_key(d, index));
    return slot->key.ptr && index > slot->index;
}
