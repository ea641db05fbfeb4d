/* Texts to small numbers: an open hash table over an array of entries. */
#include "base/map.h"

#include <string.h>

/* Eight bytes at a time. Keys that collide on purpose only make comparisons of numbers: a slice has 10,000
 * records at most. */
static uint64_t hash_of(struct sl_span text)
{
    uint64_t h = 0x9E3779B97F4A7C15u ^ text.len, word;
    const char *at = text.ptr;
    size_t left = text.len;
    for (; left >= 8; at += 8, left -= 8) {
        memcpy(&word, at, 8);
        h = (h ^ word) * 0xFF51AFD7ED558CCDu;
        h ^= h >> 32;
    }
    word = 0;
    if (left > 0)
        memcpy(&word, at, left);
    h = (h ^ word) * 0xC4CEB9FE1A85EC53u;
    return h ^ h >> 29;
}

static void slots_make(struct sl_map *map, uint32_t n_slots)
{
    map->n_slots = n_slots;
    map->slots = sl_arena_zalloc(map->arena, n_slots * sizeof(*map->slots));
    for (uint32_t i = 0; i < map->n; i++) {
        uint32_t at = (uint32_t)map->entries[i].hash & (n_slots - 1);
        while (map->slots[at])
            at = (at + 1) & (n_slots - 1);
        map->slots[at] = i + 1;
    }
}

void sl_map_init(struct sl_map *map, struct sl_arena *arena, size_t expected)
{
    *map = (struct sl_map){.arena = arena, .room = 8};
    while (map->room < expected)
        map->room *= 2;
    map->entries = sl_arena_alloc(arena, map->room * sizeof(*map->entries));
    slots_make(map, 2 * map->room);
}

static void grow(struct sl_map *map)
{
    struct sl_map_entry *longer = sl_arena_alloc(map->arena, 2 * (size_t)map->room * sizeof(*longer));
    memcpy(longer, map->entries, map->room * sizeof(*longer));
    map->entries = longer;
    map->room *= 2;
    slots_make(map, 2 * map->room);
}

/* The slot that holds the text, or the one it would go into. */
static uint32_t slot_of(const struct sl_map *map, struct sl_span text, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & (map->n_slots - 1);
    for (; map->slots[at]; at = (at + 1) & (map->n_slots - 1)) {
        const struct sl_map_entry *e = &map->entries[map->slots[at] - 1];
        if (e->hash == hash && sl_span_eq(e->text, text))
            break;
    }
    return at;
}

uint32_t sl_map_find(const struct sl_map *map, struct sl_span text)
{
    uint32_t slot = map->slots[slot_of(map, text, hash_of(text))];
    return slot ? slot - 1 : SL_MAP_NONE;
}

uint32_t sl_map_index(struct sl_map *map, struct sl_span text)
{
    if (map->n == map->room)
        grow(map);
    uint64_t hash = hash_of(text);
    uint32_t at = slot_of(map, text, hash);
    if (!map->slots[at]) {
        map->entries[map->n] = (struct sl_map_entry){text, hash};
        map->slots[at] = ++map->n;
    }
    return map->slots[at] - 1;
}

uint32_t sl_map_keep(struct sl_map *map, struct sl_span text)
{
    uint32_t known = sl_map_find(map, text);
    return known != SL_MAP_NONE ? known
                                : sl_map_index(map, sl_span(sl_arena_copy(map->arena, text), text.len));
}
