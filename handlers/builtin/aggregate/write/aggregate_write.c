/* Writing: transactions in waves, and what became of their units. */
#include "handlers/builtin/aggregate/write/aggregate_write_private.h"

#include "handlers/builtin/toolkit/apply.h"
#include "handlers/builtin/toolkit/array.h"

/* Rounds of refused transactions: each one needs another writer of the same rows in between. */
#define ROUNDS 8

static void tx_failed(struct aggregate_packing *p, const struct aggregate_tx *tx,
                      const struct sl_error *error)
{
    for (size_t u = 0; u < tx->n_units; u++)
        aggregate_unit_failed(p->run, p->order[tx->first_unit + u], error);
}

/* A transaction that is refused as a whole may hold a unit that was counted before: its difference was
 * guessed, and may not fit into the totals for this reason alone. Only units whose rows were read can be
 * refused. Until then all of them stay pending. */
static void tx_refused(struct aggregate_packing *p, const struct aggregate_tx *tx,
                       const struct sl_error *error)
{
    bool is_guess = false;
    for (size_t u = 0; u < tx->n_units; u++) {
        struct aggregate_unit *unit = p->order[tx->first_unit + u];
        unit->is_asked = unit->key.ptr && !unit->is_known;
        is_guess = is_guess || unit->is_asked;
    }
    if (error->status != SL_REJECT || !is_guess)
        tx_failed(p, tx, error);
}

/* The operations of all transactions; those that have none, because of an error, go. */
static void make_ops(struct aggregate_packing *p)
{
    size_t kept = 0;
    p->ops = p->a->host->alloc(p->arena, (p->n_order + p->n_slots) * sizeof(*p->ops));
    for (size_t i = 0; i < p->n_txs; i++) {
        struct sl_error error = SL_NO_ERROR;
        if (aggregate_write_ops(p, &p->txs[i], (uint32_t)i + 1, &error) == SL_OK)
            p->txs[kept++] = p->txs[i];
        else
            tx_refused(p, &p->txs[i], &error);
    }
    p->n_txs = kept;
}

/* ---- waves: transactions that share no row are in flight together ---- */

/* The first wave in which a transaction may be that writes to the row: after all that share a row with it. */
struct waves {
    struct sl_keymap rows; /* counter rows as they are written, with their sub-counters */
    uint32_t *free_from;
};

static uint32_t *free_from(struct waves *waves, const struct sl_table_op *op)
{
    return op->verb == SL_TABLE_UPDATE ? &waves->free_from[sl_keymap_index(&waves->rows, op->key)] : NULL;
}

static void find_wave(struct waves *waves, const struct sl_table_op *ops, struct aggregate_tx *tx)
{
    for (size_t k = 0; k < tx->n_ops; k++) {
        const uint32_t *from = free_from(waves, &ops[k]);
        if (from && *from > tx->wave)
            tx->wave = *from;
    }
    for (size_t k = 0; k < tx->n_ops; k++) {
        uint32_t *from = free_from(waves, &ops[k]);
        if (from)
            *from = tx->wave + 1;
    }
}

/* Two transactions on one row at a time would only refuse each other. Returns the number of waves. */
static uint32_t order_in_waves(struct aggregate_packing *p)
{
    uint32_t n = 0;
    struct waves waves;
    sl_keymap_init(&waves.rows, p->a->host, p->arena, p->n_slots + 1);
    waves.free_from = sl_array_new(p->a->host, p->arena, p->n_slots + 1, sizeof(*waves.free_from));
    for (size_t i = 0; i < p->n_txs; i++) {
        struct aggregate_tx *tx = &p->txs[i];
        find_wave(&waves, &p->ops[tx->first_op], tx);
        n = tx->wave + 1 > n ? tx->wave + 1 : n;
    }
    return n;
}

/* ---- results ---- */

static bool any_refused(const struct sl_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (results[i].condition_failed)
            return true;
    return false;
}

static bool any_failed(const struct sl_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (results[i].status != SL_OK)
            return true;
    return false;
}

/* Units whose row is not the expected one learn what it is. The others stay pending, as nothing was written.
 */
static void units_refused(struct aggregate_packing *p, const struct aggregate_tx *tx,
                          const struct sl_result *results)
{
    size_t k = 0;
    for (size_t u = 0; u < tx->n_units; u++) {
        struct aggregate_unit *unit = p->order[tx->first_unit + u];
        if (!unit->key.ptr)
            continue;
        if (results[k].condition_failed)
            aggregate_unit_refused(p->run, unit, results[k].item);
        k++;
    }
}

/* The worst result of the rows that the unit adds to; NULL when all succeeded. */
static const struct sl_result *worst_of(const struct aggregate_packing *p, const struct aggregate_unit *unit,
                                        const struct sl_result *results)
{
    const struct sl_result *worst = NULL;
    for (uint32_t i = 0; i < unit->delta.n; i++) {
        uint32_t counter = p->run->deltas.list[unit->delta.first + i].counter;
        uint32_t op = p->slots[p->slot_of[counter]].op;
        if (op != AGGREGATE_NONE && results[op].status != SL_OK && (!worst || worst->status == SL_REJECT))
            worst = &results[op];
    }
    return worst;
}

/* Without a ledger each row succeeds or fails on its own, and with it the units that add to it. */
static void sums_result(struct aggregate_packing *p, const struct aggregate_tx *tx,
                        const struct sl_result *results)
{
    for (size_t u = 0; u < tx->n_units; u++) {
        struct aggregate_unit *unit = p->order[tx->first_unit + u];
        const struct sl_result *worst = worst_of(p, unit, results);
        struct sl_error error;
        unit->state = AGGREGATE_DONE;
        if (!worst)
            continue;
        sl_outcome_error(p->a->host, worst, &error);
        aggregate_unit_failed(p->run, unit, &error);
    }
}

static void tx_result(struct aggregate_packing *p, const struct aggregate_tx *tx,
                      const struct sl_result *results)
{
    static const struct sl_result canceled = {
        .status = SL_RETRY, .code = "TransactionCanceled", .text = "the transaction was canceled"};
    const struct sl_result *cause = sl_outcome_cause(results, tx->n_ops);
    struct sl_error error;
    if (!any_failed(results, tx->n_ops)) {
        for (size_t u = 0; u < tx->n_units; u++)
            p->order[tx->first_unit + u]->state = AGGREGATE_DONE;
    } else if (any_refused(results, tx->n_ops) && (!cause || cause->status == SL_REJECT)) {
        units_refused(p, tx, results);
    } else {
        sl_outcome_error(p->a->host, cause ? cause : &canceled, &error);
        tx_refused(p, tx, &error);
    }
}

/* ---- applying ---- */

static void wave_apply(struct aggregate_packing *p, uint32_t wave)
{
    const struct aggregate *a = p->a;
    struct sl_table_op *ops = a->host->alloc(p->arena, p->n_ops * sizeof(*ops));
    size_t n = 0;
    for (size_t i = 0; i < p->n_txs; i++) {
        const struct aggregate_tx *tx = &p->txs[i];
        if (tx->wave != wave || tx->n_ops == 0)
            continue;
        memcpy(ops + n, p->ops + tx->first_op, tx->n_ops * sizeof(*ops));
        n += tx->n_ops;
    }
    const struct sl_result *results = sl_apply_table(a->host, p->run->slice, a->table, ops, n);
    n = 0;
    for (size_t i = 0; i < p->n_txs; i++) {
        const struct aggregate_tx *tx = &p->txs[i];
        if (tx->wave != wave)
            continue;
        if (a->has_ledger)
            tx_result(p, tx, results + n);
        else
            sums_result(p, tx, results + n);
        n += tx->n_ops;
    }
}

static void wave_late(struct aggregate_packing *p, uint32_t wave)
{
    struct sl_error error = SL_NO_ERROR;
    (void)p->a->host->fail(&error, SL_RETRY, "Deadline", "time ran out before all transactions had begun");
    for (size_t i = 0; i < p->n_txs; i++)
        if (p->txs[i].wave == wave)
            tx_failed(p, &p->txs[i], &error);
}

/* One round over the units that are pending. */
static void write_round(struct aggregate_run *run)
{
    const struct aggregate *a = run->a;
    struct aggregate_packing p = {.run = run, .a = a, .arena = run->slice->arena};
    aggregate_write_pack(&p);
    make_ops(&p);
    uint32_t waves = order_in_waves(&p);
    for (uint32_t wave = 0; wave < waves; wave++) {
        if (a->host->now_ms(a->route) < run->slice->deadline_ms)
            wave_apply(&p, wave);
        else
            wave_late(&p, wave);
    }
}

static bool any_pending(const struct aggregate_run *run)
{
    for (size_t u = 0; u < run->n_units; u++)
        if (run->units[u].state == AGGREGATE_PENDING)
            return true;
    return false;
}

void aggregate_write_units(struct aggregate_run *run)
{
    for (int round = 0; round < ROUNDS && any_pending(run); round++) {
        write_round(run);
        aggregate_units_ask(run);
    }
    struct sl_error error = SL_NO_ERROR;
    (void)run->a->host->fail(&error, SL_RETRY, "LedgerBusy",
                             "another invocation keeps changing the same rows; a retry may succeed");
    for (size_t u = 0; u < run->n_units; u++)
        if (run->units[u].state == AGGREGATE_PENDING)
            aggregate_unit_failed(run, &run->units[u], &error);
}
