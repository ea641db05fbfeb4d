/* A table of hashes with open addressing. */
#include "cli/redrive/names.h"

#include "base/hash.h"

#define FIRST_ROOM 256

static size_t slot_of(const struct sl_names *names, uint64_t hash)
{
    size_t i = hash & (names->room - 1);
    while (names->slots[i] && names->slots[i] != hash)
        i = (i + 1) & (names->room - 1);
    return i;
}

/* Never 0. The highest bit: the lower ones choose the slot. */
static uint64_t hash_of(struct sl_span name)
{
    return sl_hash(name) | (UINT64_C(1) << 63);
}

bool sl_names_has(const struct sl_names *names, struct sl_span name)
{
    return names->room && names->slots[slot_of(names, hash_of(name))];
}

static void grow(struct sl_names *names, struct sl_arena *arena)
{
    struct sl_names larger = {.n = names->n, .room = names->room ? 2 * names->room : FIRST_ROOM};
    larger.slots = sl_arena_zalloc(arena, larger.room * sizeof(*larger.slots));
    for (size_t i = 0; i < names->room; i++)
        if (names->slots[i])
            larger.slots[slot_of(&larger, names->slots[i])] = names->slots[i];
    *names = larger;
}

void sl_names_add(struct sl_names *names, struct sl_span name, struct sl_arena *arena)
{
    if (2 * (names->n + 1) > names->room)
        grow(names, arena);
    uint64_t *slot = &names->slots[slot_of(names, hash_of(name))];
    names->n += !*slot;
    *slot = hash_of(name);
}
