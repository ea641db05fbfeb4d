/* Texts to small numbers, counted from 0 in the order in which they were first seen: items of a slice,
 * prefixes, counters. Everything lives in an arena; nothing is freed. The texts are borrowed. */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_KEYMAP_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_KEYMAP_H

#include "handlers/handler.h"

struct sl_keymap_entry {
    struct sl_span text;
    uint64_t hash;
};

struct sl_keymap {
    const struct sl_host *host;
    struct sl_arena *arena;
    struct sl_keymap_entry *entries;
    uint32_t n, room;
    uint32_t *slots; /* entry + 1 */
    uint32_t n_slots;
};

/* `expected`: texts that there will be about; more are fine. */
void sl_keymap_init(struct sl_keymap *map, const struct sl_host *host, struct sl_arena *arena,
                    size_t expected);

#define SL_KEYMAP_NONE UINT32_MAX

/* The text's number, SL_KEYMAP_NONE when it is not there. */
uint32_t sl_keymap_find(const struct sl_keymap *map, struct sl_span text);

/* The text's number. It was new when that is the count before. */
uint32_t sl_keymap_index(struct sl_keymap *map, struct sl_span text);

#endif
