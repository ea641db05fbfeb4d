/* Sums by group, in a table that is hashed by row and attribute. */
#include "base/decimal.h"
#include "base/hash.h"
#include "base/span.h"
#include "work/verify/totals_private.h"

#include <stdlib.h>

#define ARENA_BYTES ((size_t)256 * 1024)
#define SLOTS       ((size_t)4 * SL_TOTALS_GROUPS)

void sl_groups_init(struct groups *g, uint64_t part, uint64_t of)
{
    *g = (struct groups){.arena = sl_arena_new(ARENA_BYTES), .part = part, .of = of, .n_slots = SLOTS};
    g->slots = calloc(g->n_slots, sizeof(*g->slots));
    g->list = calloc(SL_TOTALS_GROUPS, sizeof(*g->list));
    /* The first pass leaves room, as the others may have a few more. */
    g->room = part == 0 ? (size_t)SL_TOTALS_GROUPS * 3 / 4 : SL_TOTALS_GROUPS;
    if (!g->slots || !g->list)
        sl_die("out of memory: sums by group");
}

void sl_groups_clean_up(struct groups *g)
{
    sl_arena_destroy(g->arena);
    free(g->slots);
    free(g->list);
    *g = (struct groups){.n = 0};
}

static struct group_sum *add(struct groups *g, struct sl_span key, struct sl_span name)
{
    struct group_sum *sum = &g->list[g->n++];
    *sum = (struct group_sum){.key = sl_span(sl_arena_copy(g->arena, key), key.len),
                              .name = sl_span(sl_arena_copy(g->arena, name), name.len),
                              .total = sl_decimal_new(g->arena),
                              .first = sl_decimal_new(g->arena),
                              .second = sl_decimal_new(g->arena)};
    return sum;
}

struct group_sum *sl_groups_find(struct groups *g, struct sl_span key, struct sl_span name, bool makes)
{
    uint64_t hash = sl_hash(key);
    if (hash % g->of != g->part)
        return NULL;
    hash = hash * 31 + sl_hash(name);
    size_t slot = (hash ^ hash >> 32) % g->n_slots;
    for (; g->slots[slot]; slot = (slot + 1) % g->n_slots) {
        struct group_sum *sum = &g->list[g->slots[slot] - 1];
        if (sl_span_eq(sum->key, key) && sl_span_eq(sum->name, name))
            return sum;
    }
    if (!makes)
        return NULL;
    if (g->n == g->room) {
        g->is_full = true;
        return NULL;
    }
    g->slots[slot] = (uint32_t)g->n + 1;
    return add(g, key, name);
}
