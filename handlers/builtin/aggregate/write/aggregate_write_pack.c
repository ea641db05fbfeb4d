/* Packing: pending units into transactions, with the sums that they add.
 *
 * Units of one counter row are packed together, so that the row is written few times. */
#include "base/arena.h"
#include "base/map.h"
#include "handlers/builtin/aggregate/write/aggregate_write_private.h"

#include "base/array.h"

/* TransactWriteItems takes 4 MB. */
#define TX_BYTES (3 * 1024 * 1024)

/* A row's bytes in a request, besides its own text: names of members, the key once more, a test's value. */
#define OP_BYTES 512

/* Of a number in a row: 38 digits, their zeros, and the names of its members. */
#define NUMBER_BYTES 192

/* ---- which units go together ---- */

/* The least counter that the unit adds to; the number of counters when it adds to none. */
static uint32_t first_counter(const struct aggregate_run *run, const struct aggregate_unit *unit)
{
    uint32_t first = run->tally.counters.n;
    for (uint32_t i = 0; i < unit->delta.n; i++) {
        uint32_t counter = run->deltas.list[unit->delta.first + i].counter;
        first = counter < first ? counter : first;
    }
    return first;
}

/* Sorts the pending units by their first counter, by counting. */
static void sort_units(struct aggregate_packing *p)
{
    struct aggregate_run *run = p->run;
    uint32_t n = run->tally.counters.n;
    uint32_t *begin = sl_arena_zalloc(p->arena, (n + 2) * sizeof(*begin));
    for (size_t u = 0; u < run->n_units; u++)
        if (run->units[u].state == AGGREGATE_PENDING)
            begin[first_counter(run, &run->units[u]) + 1]++;
    for (uint32_t c = 1; c <= n + 1; c++)
        begin[c] += begin[c - 1];
    p->n_order = begin[n + 1];
    p->order = p->a->host->alloc(p->arena, p->n_order * sizeof(struct aggregate_unit *));
    for (size_t u = 0; u < run->n_units; u++)
        if (run->units[u].state == AGGREGATE_PENDING)
            p->order[begin[first_counter(run, &run->units[u])]++] = &run->units[u];
}

/* ---- rows ---- */

static bool is_hot(const struct aggregate_packing *p, uint32_t counter)
{
    return p->is_hot && p->is_hot[counter];
}

static bool has_slot(const struct aggregate_packing *p, const struct aggregate_tx *tx, uint32_t counter)
{
    uint32_t s = p->slot_of[counter];
    return s != AGGREGATE_NONE && s >= tx->first_slot;
}

static uint32_t slot_at(struct aggregate_packing *p, const struct aggregate_tx *tx, uint32_t counter)
{
    if (has_slot(p, tx, counter))
        return p->slot_of[counter];
    p->slot_of[counter] = p->n_slots;
    SL_PUSH_IN(p->arena, p->slots, p->n_slots, p->room_slots) = (struct aggregate_slot){
        .counter = counter,
        .is_hot = is_hot(p, counter),
        .sums = sl_arena_zalloc(p->arena, p->n_attributes * sizeof(struct sl_decimal *)),
        .op = AGGREGATE_NONE};
    return p->slot_of[counter];
}

static void need_row(struct aggregate_packing *p, const struct aggregate_tx *tx, uint32_t counter,
                     struct aggregate_need *need)
{
    if (p->stamp_of[counter] == p->stamp || has_slot(p, tx, counter))
        return;
    p->stamp_of[counter] = p->stamp;
    if (!is_hot(p, counter)) {
        need->rows++;
        return;
    }
    need->hot++;
    need->hot_bytes += p->run->tally.counters.entries[counter].text.len +
                       p->run->tally.places[counter].shown.len + p->attribute_bytes;
}

/* The row of a value may change its group's row. */
struct aggregate_need aggregate_pack_need(struct aggregate_packing *p, const struct aggregate_tx *tx,
                                          const struct aggregate_term *terms, size_t n)
{
    struct aggregate_need need = {0};
    p->stamp++;
    for (size_t i = 0; i < n; i++) {
        const struct aggregate_place *place = &p->run->tally.places[terms[i].counter];
        need_row(p, tx, terms[i].counter, &need);
        if (place->kind == AGGREGATE_VALUE)
            need_row(p, tx, place->group, &need);
    }
    return need;
}

/* Numbers were checked when the terms were made. */
void aggregate_pack_terms(struct aggregate_packing *p, struct aggregate_tx *tx,
                          const struct aggregate_term *terms, size_t n)
{
    const struct sl_host *host = p->a->host;
    struct aggregate_need need = aggregate_pack_need(p, tx, terms, n);
    for (size_t i = 0; i < n; i++) {
        const struct aggregate_place *place = &p->run->tally.places[terms[i].counter];
        uint32_t group = place->kind == AGGREGATE_VALUE ? slot_at(p, tx, place->group) : AGGREGATE_NONE;
        uint32_t own = slot_at(p, tx, terms[i].counter);
        struct aggregate_slot *slot = &p->slots[own];
        struct sl_decimal **sum = &slot->sums[terms[i].attribute];
        slot->group = group;
        if (!*sum)
            *sum = host->decimal_new(p->arena);
        host->decimal_add(*sum, terms[i].number, terms[i].subtract);
    }
    tx->n_slots = p->n_slots - tx->first_slot;
    tx->n_hot += need.hot;
    tx->hot_bytes += need.hot_bytes;
}

/* ---- packing ---- */

#define ELEMENT_BYTES 160 /* of a delta row's element, besides its texts */

void aggregate_pack_init(struct aggregate_packing *p, size_t txs)
{
    const struct sl_map *names = &p->run->tally.attributes;
    uint32_t n = p->run->tally.counters.n;
    p->n_slots = 0;
    p->n_txs = 0;
    p->n_attributes = names->n;
    p->slot_of = p->a->host->alloc(p->arena, (n + 1) * sizeof(*p->slot_of));
    for (uint32_t c = 0; c < n; c++)
        p->slot_of[c] = AGGREGATE_NONE;
    p->stamp_of = sl_arena_zalloc(p->arena, (n + 1) * sizeof(*p->stamp_of));
    p->stamp = 0;
    p->txs = p->a->host->alloc(p->arena, (txs + 1) * sizeof(*p->txs));
    p->attribute_bytes = ELEMENT_BYTES;
    for (uint32_t i = 0; i < names->n; i++)
        p->attribute_bytes += names->entries[i].text.len + NUMBER_BYTES;
}

/* Sub-counters in turn: two transactions of a slice do not meet while there are enough of them. */
struct aggregate_tx *aggregate_pack_tx(struct aggregate_packing *p, size_t first)
{
    struct aggregate_tx *tx = &p->txs[p->n_txs++];
    *tx = (struct aggregate_tx){.first_unit = first, .first_slot = p->n_slots, .delta_op = AGGREGATE_NONE};
    if (p->a->shards > 0)
        tx->shard = (int64_t)(p->run->next_shard++ % (uint64_t)p->a->shards);
    return tx;
}

static const struct aggregate_term *terms_of(const struct aggregate_packing *p,
                                             const struct aggregate_unit *unit)
{
    return p->run->deltas.list + unit->delta.first;
}

static bool fits(struct aggregate_packing *p, const struct aggregate_tx *tx,
                 const struct aggregate_unit *unit, size_t bytes)
{
    struct aggregate_need need = aggregate_pack_need(p, tx, terms_of(p, unit), unit->delta.n);
    size_t hot = tx->n_hot + need.hot;
    return bytes <= TX_BYTES &&
           tx->n_units + 1 + tx->n_slots - tx->n_hot + need.rows + (hot > 0) <= SL_TABLE_GROUP_MAX &&
           hot <= AGGREGATE_HOT_ROWS && tx->hot_bytes + need.hot_bytes <= AGGREGATE_HOT_BYTES;
}

void aggregate_write_pack(struct aggregate_packing *p)
{
    sort_units(p);
    aggregate_pack_init(p, p->n_order);
    struct aggregate_tx *tx = NULL;
    size_t bytes = 0;
    for (size_t u = 0; u < p->n_order; u++) {
        const struct aggregate_unit *unit = p->order[u];
        size_t unit_bytes = 2 * unit->item.len + OP_BYTES;
        if (!tx || (p->a->has_ledger && !fits(p, tx, unit, bytes + unit_bytes))) {
            tx = aggregate_pack_tx(p, u);
            bytes = 0;
        }
        aggregate_pack_terms(p, tx, terms_of(p, unit), unit->delta.n);
        tx->n_units++;
        bytes += unit_bytes;
    }
}
