/* Packing: pending units into transactions, with the sums that they add.
 *
 * Units of one counter row are packed together, so that the row is written few times. */
#include "handlers/builtin/aggregate/write/aggregate_write_private.h"

#include "handlers/builtin/toolkit/array.h"

/* TransactWriteItems takes 4 MB. */
#define TX_BYTES (3 * 1024 * 1024)

/* A row's bytes in a request, besides its own text: names of members, the key once more, a test's value. */
#define OP_BYTES 512

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
    uint32_t *begin = sl_array_new(p->a->host, p->arena, n + 2, sizeof(*begin));
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

/* ---- sums ---- */

static struct aggregate_slot *slot_add(struct aggregate_packing *p, uint32_t counter)
{
    const struct sl_host *host = p->a->host;
    if (p->n_slots == p->room_slots)
        p->slots = sl_array_double(host, p->arena, p->slots, &p->room_slots, sizeof(*p->slots));
    struct aggregate_slot *slot = &p->slots[p->n_slots];
    slot->counter = counter;
    slot->sums = sl_array_new(host, p->arena, p->run->tally.attributes.n, sizeof(struct sl_decimal *));
    p->slot_of[counter] = p->n_slots++;
    return slot;
}

static bool has_slot(const struct aggregate_packing *p, const struct aggregate_tx *tx, uint32_t counter)
{
    uint32_t s = p->slot_of[counter];
    return s != AGGREGATE_NONE && s >= tx->first_slot && p->slots[s].counter == counter;
}

/* Numbers were checked when the terms were made. */
static void unit_sum(struct aggregate_packing *p, struct aggregate_tx *tx, const struct aggregate_unit *unit)
{
    const struct sl_host *host = p->a->host;
    for (uint32_t i = 0; i < unit->delta.n; i++) {
        const struct aggregate_term *term = &p->run->deltas.list[unit->delta.first + i];
        struct aggregate_slot *slot = has_slot(p, tx, term->counter) ? &p->slots[p->slot_of[term->counter]]
                                                                     : slot_add(p, term->counter);
        struct sl_decimal **sum = &slot->sums[term->attribute];
        if (!*sum)
            *sum = host->decimal_new(p->arena);
        host->decimal_add(*sum, term->number, term->subtract);
    }
    tx->n_slots = p->n_slots - tx->first_slot;
}

static size_t new_slots(const struct aggregate_packing *p, const struct aggregate_tx *tx,
                        const struct aggregate_unit *unit)
{
    size_t n = 0;
    for (uint32_t i = 0; i < unit->delta.n; i++) {
        uint32_t counter = p->run->deltas.list[unit->delta.first + i].counter;
        bool seen = has_slot(p, tx, counter);
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = p->run->deltas.list[unit->delta.first + k].counter == counter;
        n += !seen;
    }
    return n;
}

/* ---- packing ---- */

static struct aggregate_tx *tx_begin(struct aggregate_packing *p, size_t unit)
{
    struct aggregate_tx *tx = &p->txs[p->n_txs++];
    *tx = (struct aggregate_tx){.first_unit = unit, .first_slot = p->n_slots};
    if (p->a->shards > 0)
        tx->shard = (int64_t)((p->a->host->random(p->a->route) >> 1) % (uint64_t)p->a->shards);
    return tx;
}

static bool fits(const struct aggregate_packing *p, const struct aggregate_tx *tx,
                 const struct aggregate_unit *unit, size_t bytes)
{
    return bytes <= TX_BYTES && tx->n_units + tx->n_slots + 1 + new_slots(p, tx, unit) <= SL_TABLE_GROUP_MAX;
}

void aggregate_write_pack(struct aggregate_packing *p)
{
    const struct sl_host *host = p->a->host;
    uint32_t n = p->run->tally.counters.n;
    sort_units(p);
    p->slot_of = host->alloc(p->arena, n * sizeof(*p->slot_of));
    for (uint32_t c = 0; c < n; c++)
        p->slot_of[c] = AGGREGATE_NONE;
    p->txs = host->alloc(p->arena, p->n_order * sizeof(*p->txs));
    struct aggregate_tx *tx = NULL;
    size_t bytes = 0;
    for (size_t u = 0; u < p->n_order; u++) {
        const struct aggregate_unit *unit = p->order[u];
        size_t unit_bytes = 2 * unit->item.len + OP_BYTES;
        if (!tx || (p->a->has_ledger && !fits(p, tx, unit, bytes + unit_bytes))) {
            tx = tx_begin(p, u);
            bytes = 0;
        }
        unit_sum(p, tx, unit);
        tx->n_units++;
        bytes += unit_bytes;
    }
}
