/* Writing: transactions in waves, and what became of their units. */
#include "base/arena.h"
#include "base/map.h"
#include "handlers/builtin/aggregate/write/aggregate_write_private.h"

#include "handlers/builtin/toolkit/apply.h"
#include "base/array.h"

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

/* A value's row held less than is taken away: it was read too early, or a unit was counted before. */
static void tx_short(struct aggregate_packing *p, const struct aggregate_tx *tx)
{
    struct sl_error error = SL_NO_ERROR;
    if (aggregate_ops_short(p, tx, &error) != SL_OK) {
        tx_failed(p, tx, &error);
        return;
    }
    for (size_t u = 0; u < tx->n_units; u++)
        p->order[tx->first_unit + u]->is_asked = p->order[tx->first_unit + u]->key.ptr != NULL;
}

/* The transaction's operations; false: it has none, because of an error. */
static bool make_ops(struct aggregate_packing *p, struct aggregate_tx *tx)
{
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = aggregate_write_ops(p, tx, (uint32_t)(tx - p->txs) + 1, &error);
    if (status == SL_RETRY)
        tx_short(p, tx);
    else if (status != SL_OK)
        tx_refused(p, tx, &error);
    return status == SL_OK;
}

/* ---- waves: transactions that share no row are in flight together ---- */

/* The first wave in which a transaction may be that writes to the row: after all that share a row with it. */
struct waves {
    struct sl_map rows; /* by their numbers, with their sub-counters' */
    uint32_t *free_from;
    struct row_name {
        uint32_t counter, shard;
    } * names; /* of all slots */
};

/* NULL: the row is in the delta row, or the item's own. */
static uint32_t *free_from(const struct aggregate_packing *p, struct waves *waves,
                           const struct aggregate_tx *tx, size_t slot)
{
    const struct aggregate_slot *s = &p->slots[slot];
    enum aggregate_kind kind = p->run->tally.places[s->counter].kind;
    struct row_name *name = &waves->names[slot];
    if (s->is_hot || kind == AGGREGATE_MEMBER)
        return NULL;
    *name = (struct row_name){s->counter, kind == AGGREGATE_SUMS ? (uint32_t)tx->shard : 0};
    return &waves->free_from[sl_map_index(&waves->rows, (struct sl_span){(const char *)name, sizeof(*name)})];
}

static void find_wave(const struct aggregate_packing *p, struct waves *waves, struct aggregate_tx *tx)
{
    for (size_t s = tx->first_slot; s < tx->first_slot + tx->n_slots; s++) {
        const uint32_t *from = free_from(p, waves, tx, s);
        if (from && *from > tx->wave)
            tx->wave = *from;
    }
    for (size_t s = tx->first_slot; s < tx->first_slot + tx->n_slots; s++) {
        uint32_t *from = free_from(p, waves, tx, s);
        if (from)
            *from = tx->wave + 1;
    }
}

/* Two transactions on one row at a time would only refuse each other. Returns the number of waves. */
static uint32_t order_in_waves(struct aggregate_packing *p)
{
    uint32_t n = 0;
    struct waves waves;
    sl_map_init(&waves.rows, p->arena, p->n_slots + 1);
    waves.free_from = sl_arena_zalloc(p->arena, (p->n_slots + 1) * sizeof(*waves.free_from));
    waves.names = sl_arena_zalloc(p->arena, (p->n_slots + 1) * sizeof(*waves.names));
    for (size_t i = 0; i < p->n_txs; i++) {
        struct aggregate_tx *tx = &p->txs[i];
        find_wave(p, &waves, tx);
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

/* Units whose row is not the expected one learn what it is: the first operations are theirs. The others stay
 * pending, as nothing was written. */
static void units_refused(struct aggregate_packing *p, const struct aggregate_tx *tx,
                          const struct sl_result *results)
{
    for (size_t u = 0; u < tx->n_units; u++)
        if (results[u].condition_failed)
            aggregate_unit_refused(p->run, p->order[tx->first_unit + u], results[u].item);
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

/* The delta row's slot holds another one, which is folded with ours. */
static void delta_result(struct aggregate_packing *p, const struct aggregate_tx *tx,
                         const struct sl_result *results)
{
    struct sl_error error = SL_NO_ERROR;
    if (tx->delta_op == AGGREGATE_NONE || !results[tx->delta_op].condition_failed)
        return;
    if (aggregate_delta_met(p->run, tx->delta.slot, results[tx->delta_op].item, &error) != SL_OK)
        tx_failed(p, tx, &error);
}

static void tx_done(struct aggregate_packing *p, const struct aggregate_tx *tx)
{
    for (size_t u = 0; u < tx->n_units; u++)
        p->order[tx->first_unit + u]->state = AGGREGATE_DONE;
    if (tx->delta_op != AGGREGATE_NONE)
        aggregate_delta_written(p->run, &tx->delta);
}

static void tx_result(struct aggregate_packing *p, const struct aggregate_tx *tx,
                      const struct sl_result *results)
{
    static const struct sl_result canceled = {
        .status = SL_RETRY, .code = "TransactionCanceled", .text = "the transaction was canceled"};
    const struct sl_result *cause = sl_outcome_cause(results, tx->n_ops);
    struct sl_error error;
    bool is_refused = any_refused(results, tx->n_ops) && (!cause || cause->status == SL_REJECT);
    bool is_done = !any_failed(results, tx->n_ops);
    aggregate_ops_learn(p, tx, is_done || is_refused ? results : NULL);
    if (is_done) {
        tx_done(p, tx);
    } else if (is_refused) {
        units_refused(p, tx, results);
        delta_result(p, tx, results);
    } else {
        sl_outcome_error(p->a->host, cause ? cause : &canceled, &error);
        tx_refused(p, tx, &error);
    }
}

/* ---- applying ---- */

/* Makes as many of the wave's transactions as there are slots for their delta rows; returns how many. */
static size_t wave_make(struct aggregate_packing *p, uint32_t wave, struct aggregate_tx **txs)
{
    size_t n = 0, free = aggregate_delta_free(p->run);
    for (size_t i = 0; i < p->n_txs; i++) {
        struct aggregate_tx *tx = &p->txs[i];
        if (tx->wave != wave || tx->is_over || (tx->n_hot > 0 && free == 0))
            continue;
        free -= tx->n_hot > 0;
        tx->is_over = true;
        if (make_ops(p, tx))
            txs[n++] = tx;
    }
    return n;
}

static void txs_apply(struct aggregate_packing *p, struct aggregate_tx *const *txs, size_t n_txs)
{
    const struct aggregate *a = p->a;
    struct sl_table_op *ops = a->host->alloc(p->arena, (p->n_ops + 1) * sizeof(*ops));
    size_t n = 0;
    for (size_t i = 0; i < n_txs; i++) {
        if (txs[i]->n_ops > 0)
            memcpy(ops + n, p->ops + txs[i]->first_op, txs[i]->n_ops * sizeof(*ops));
        n += txs[i]->n_ops;
    }
    const struct sl_result *results = sl_apply_table(p->run->slice, a->table, ops, n);
    n = 0;
    for (size_t i = 0; i < n_txs; i++) {
        if (a->has_ledger)
            tx_result(p, txs[i], results + n);
        else
            sums_result(p, txs[i], results + n);
        n += txs[i]->n_ops;
    }
}

static bool is_waiting(const struct aggregate_packing *p, uint32_t wave)
{
    for (size_t i = 0; i < p->n_txs; i++)
        if (p->txs[i].wave == wave && !p->txs[i].is_over)
            return true;
    return false;
}

/* Slots run out when there are more delta rows than slots: then those that are there are folded first. */
static enum sl_status wave_apply(struct aggregate_packing *p, uint32_t wave, struct sl_error *error)
{
    struct aggregate_tx **txs = p->a->host->alloc(p->arena, (p->n_txs + 1) * sizeof(struct aggregate_tx *));
    enum sl_status status = SL_OK;
    while (status == SL_OK && is_waiting(p, wave)) {
        size_t n = wave_make(p, wave, txs);
        txs_apply(p, txs, n);
        if (is_waiting(p, wave))
            status = aggregate_fold(p->run, error);
    }
    return status;
}

/* What is left of the wave fails as `error` says. */
static void wave_failed(struct aggregate_packing *p, uint32_t wave, const struct sl_error *error)
{
    for (size_t i = 0; i < p->n_txs; i++)
        if (p->txs[i].wave == wave && !p->txs[i].is_over)
            tx_failed(p, &p->txs[i], error);
}

/* Packs the units that are pending, twice if rows are hot. */
static enum sl_status pack(struct aggregate_packing *p, struct sl_error *error)
{
    aggregate_write_pack(p);
    if (!p->a->has_ledger)
        return SL_OK;
    enum sl_status status = aggregate_hot_find(p, error);
    if (status == SL_OK && p->is_hot)
        aggregate_write_pack(p);
    return status;
}

/* One round over the units that are pending. A failure is the slice's. */
static enum sl_status write_round(struct aggregate_run *run, struct sl_error *error)
{
    const struct aggregate *a = run->a;
    struct aggregate_packing p = {.run = run, .a = a, .arena = run->slice->arena};
    enum sl_status status = pack(&p, error);
    if (status != SL_OK)
        return status;
    uint32_t waves = order_in_waves(&p);
    p.ops = a->host->alloc(p.arena, (p.n_order + p.n_slots + p.n_txs) * sizeof(*p.ops));
    for (uint32_t wave = 0; wave < waves && status == SL_OK; wave++) {
        struct sl_error late = SL_NO_ERROR;
        if (a->host->now_ms(a->route) < run->slice->deadline_ms) {
            status = wave_apply(&p, wave, error);
            continue;
        }
        (void)a->host->fail(&late, SL_RETRY, "Deadline", "time ran out before all transactions had begun");
        wave_failed(&p, wave, &late);
    }
    return status;
}

static bool any_pending(const struct aggregate_run *run)
{
    for (size_t u = 0; u < run->n_units; u++)
        if (run->units[u].state == AGGREGATE_PENDING)
            return true;
    return false;
}

/* What was written and what was found done is in the totals only after the fold. */
static enum sl_status fold_all(struct aggregate_run *run, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    if (run->has_done && run->a->has_ledger && !run->is_repair)
        status = aggregate_delta_look(run, error);
    if (status == SL_OK)
        status = aggregate_fold(run, error);
    return status == SL_OK ? aggregate_delete_empty(run, error) : status;
}

enum sl_status aggregate_write_units(struct aggregate_run *run, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    for (int round = 0; round < ROUNDS && any_pending(run) && status == SL_OK; round++) {
        status = write_round(run, error);
        if (status == SL_OK)
            aggregate_units_ask(run);
        if (status == SL_OK && any_pending(run))
            status = aggregate_delta_wait(run, error);
        if (status == SL_OK && any_pending(run))
            status = aggregate_fold(run, error);
    }
    if (status == SL_OK)
        status = fold_all(run, error);
    if (status != SL_OK)
        return status;
    struct sl_error busy = SL_NO_ERROR;
    (void)run->a->host->fail(&busy, SL_RETRY, "LedgerBusy",
                             "another invocation keeps changing the same rows; a retry may succeed");
    for (size_t u = 0; u < run->n_units; u++)
        if (run->units[u].state == AGGREGATE_PENDING)
            aggregate_unit_failed(run, &run->units[u], &busy);
    return SL_OK;
}
