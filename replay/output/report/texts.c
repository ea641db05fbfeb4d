/* Keeps each text once: a list, and a hash table of places in it. */
#include "replay/output/report/texts.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/span.h"

#include <stdlib.h>

#define FIRST_ROOM  256
#define ARENA_BYTES (64 * 1024)

static uint32_t *slot_of(const struct sl_texts *t, struct sl_span text)
{
    size_t mask = 2 * t->room - 1, at = (size_t)sl_hash(text) & mask;
    while (t->slots[at]) {
        struct sl_span other = t->list[t->slots[at] - 1];
        if (other.len == text.len && (text.len == 0 || memcmp(other.ptr, text.ptr, text.len) == 0))
            break;
        at = (at + 1) & mask;
    }
    return &t->slots[at];
}

static void grow(struct sl_texts *t)
{
    t->room = t->room ? 2 * t->room : FIRST_ROOM;
    t->list = realloc(t->list, t->room * sizeof(*t->list));
    free(t->slots);
    t->slots = calloc(2 * t->room, sizeof(*t->slots));
    if (!t->list || !t->slots)
        sl_die("out of memory: texts of the report");
    for (size_t i = 0; i < t->n; i++)
        *slot_of(t, t->list[i]) = (uint32_t)(i + 1);
}

void sl_texts_init(struct sl_texts *t)
{
    *t = (struct sl_texts){.arena = sl_arena_new(ARENA_BYTES)};
    grow(t);
    sl_texts_add(t, SL_LIT(""));
}

void sl_texts_clean_up(struct sl_texts *t)
{
    sl_arena_destroy(t->arena);
    free(t->list);
    free(t->slots);
    *t = (struct sl_texts){0};
}

uint32_t sl_texts_add(struct sl_texts *t, struct sl_span text)
{
    uint32_t *slot = slot_of(t, text);
    if (*slot)
        return *slot - 1;
    if (t->n == t->room) {
        grow(t);
        slot = slot_of(t, text);
    }
    t->list[t->n] = sl_span(sl_arena_copy(t->arena, text), text.len);
    *slot = (uint32_t)++t->n;
    return *slot - 1;
}
