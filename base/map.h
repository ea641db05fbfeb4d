/* Texts to small numbers, counted from 0 in the order in which they were first seen: items of a slice,
 * prefixes, counters. Everything lives in an arena; nothing is freed. The texts are borrowed. */
#ifndef SL_BASE_MAP_H
#define SL_BASE_MAP_H

#include "base/arena.h"

struct sl_map_entry {
    struct sl_span text;
    uint64_t hash;
};

struct sl_map {
    struct sl_arena *arena;
    struct sl_map_entry *entries;
    uint32_t n, room;
    uint32_t *slots; /* entry + 1 */
    uint32_t n_slots;
};

/* `expected`: texts that there will be about; more are fine. */
void sl_map_init(struct sl_map *map, struct sl_arena *arena, size_t expected);

#define SL_MAP_NONE UINT32_MAX

/* The text's number, SL_MAP_NONE when it is not there. */
uint32_t sl_map_find(const struct sl_map *map, struct sl_span text);

/* The text's number. It was new when that is the count before. */
uint32_t sl_map_index(struct sl_map *map, struct sl_span text);

/* The same; a text that is new is copied into the arena. */
uint32_t sl_map_keep(struct sl_map *map, struct sl_span text);

#endif
