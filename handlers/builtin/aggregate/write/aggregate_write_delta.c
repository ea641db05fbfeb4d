/* Delta rows: sums that are counted in the ledger, on their way to rows that are hot.
 *
 * A transaction puts what it adds to hot rows into a delta row, in a slot of its own: "sluice:delta:NAME:0"
 * to
 * 63. Then a fold adds the delta rows up, and in one transaction removes them and updates the rows. A delta
 * row's id is made of its content and of chance, so a fold adds exactly what it removes; another process that
 * folds the same rows finds them gone. Before a record is done its delta row is folded: by this process, by
 * another one, or, if this one is killed, by the one to which the record comes next and that finds it done.
 */
#include "handlers/builtin/aggregate/write/aggregate_write_private.h"

#include "handlers/builtin/toolkit/apply.h"
#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>

#define ID   "sluice_delta"
#define SUMS "sluice_sums"

/* Rounds of refused folds: each one needs another process that folded the same rows in between. */
#define ROUNDS 8

#define WAIT_MS ((int64_t)10) /* doubled each time */

/* ---- slots ---- */

static bool is_taken(const struct aggregate_run *run, uint32_t slot)
{
    for (uint32_t i = 0; i < run->n_folds; i++)
        if (run->folds[i].slot == slot)
            return true;
    return false;
}

size_t aggregate_delta_free(const struct aggregate_run *run)
{
    size_t n = 0;
    for (uint32_t slot = 0; slot < AGGREGATE_DELTA_SLOTS; slot++)
        n += !is_taken(run, slot);
    return n;
}

/* In turn: the transactions that fly together have different ones. One is free, see wave_make. */
static uint32_t next_slot(struct aggregate_run *run)
{
    uint32_t slot;
    do
        slot = run->next_slot++ % AGGREGATE_DELTA_SLOTS;
    while (is_taken(run, slot));
    return slot;
}

static struct sl_span slot_key(const struct aggregate_run *run, uint32_t slot)
{
    char text[16];
    snprintf(text, sizeof(text), "%" PRIu32, slot);
    return aggregate_own_key(run->a, "delta", sl_span_str(text), run->slice->arena);
}

/* ---- writing ---- */

/* The sums of the transaction's hot rows as terms. */
static enum sl_status take_terms(struct aggregate_packing *p, const struct aggregate_tx *tx,
                                 struct aggregate_part *out, struct sl_error *error)
{
    struct aggregate_tally *t = &p->run->tally;
    *out = (struct aggregate_part){.first = t->terms.n};
    for (size_t s = tx->first_slot; s < tx->first_slot + tx->n_slots; s++) {
        const struct aggregate_slot *slot = &p->slots[s];
        bool begins = true;
        for (uint32_t i = 0; i < p->n_attributes && slot->is_hot; i++) {
            struct aggregate_term term = {.counter = slot->counter, .attribute = i, .begins = begins};
            if (!slot->sums[i] || p->a->host->decimal_is_zero(slot->sums[i]))
                continue;
            if (!p->a->host->decimal_text(slot->sums[i], p->arena, &term.number))
                return p->a->host->fail(error, SL_REJECT, "Overflow",
                                        "the sum for %.*s has more than 38 digits, or is out of range",
                                        SL_ARG(t->attributes.entries[i].text));
            aggregate_term_add(&t->terms, &term);
            begins = false;
        }
    }
    out->n = t->terms.n - out->first;
    return SL_OK;
}

static struct sl_span new_id(const struct aggregate_run *run, struct sl_span sums)
{
    const struct sl_host *host = run->a->host;
    char chance[48], digest[SL_TEXT_DIGEST_BYTES + 1];
    snprintf(chance, sizeof(chance), "%016" PRIx64 "%016" PRIx64, host->random(run->a->route),
             host->random(run->a->route));
    struct sl_span parts[] = {sl_span_str(chance), sums};
    sl_text_digest(host, host->join(run->slice->arena, parts, 2), digest);
    return sl_text_string_value(host, sl_span_str(digest), run->slice->arena);
}

enum sl_status aggregate_delta_op(struct aggregate_packing *p, struct aggregate_tx *tx,
                                  struct sl_table_op *op, struct sl_error *error)
{
    static const struct sl_test is_free = {.verb = SL_ABSENT, .name = {ID, sizeof(ID) - 1}};
    struct aggregate_run *run = p->run;
    *op = (struct sl_table_op){.verb = SL_TABLE_PUT};
    enum sl_status status = take_terms(p, tx, &tx->delta.terms, error);
    if (status != SL_OK || tx->delta.terms.n == 0)
        return status;
    struct sl_span sums = aggregate_ledger_text(&run->tally, tx->delta.terms);
    tx->delta.slot = next_slot(run);
    tx->delta.id = new_id(run, sums);
    *op = (struct sl_table_op){.verb = SL_TABLE_PUT,
                               .table = p->a->ledger_table,
                               .key = slot_key(run, tx->delta.slot),
                               .tests = &is_free,
                               .n_tests = 1,
                               .want_item = true};
    struct sl_span parts[] = {sl_text_open_object(op->key),
                              SL_LIT(",\"" ID "\":"),
                              tx->delta.id,
                              SL_LIT(",\"" SUMS "\":"),
                              sums,
                              aggregate_own_member(p->a, p->arena),
                              SL_LIT("}")};
    op->item = p->a->host->join(p->arena, parts, SL_COUNT(parts));
    return SL_OK;
}

void aggregate_delta_written(struct aggregate_run *run, const struct aggregate_delta *delta)
{
    SL_PUSH_IN(run->slice->arena, run->folds, run->n_folds, run->room_folds) = *delta;
}

/* ---- reading ---- */

enum sl_status aggregate_delta_met(struct aggregate_run *run, uint32_t slot, struct sl_span item,
                                   struct sl_error *error)
{
    const struct sl_host *host = run->a->host;
    struct sl_value row = {.type = SL_M, .raw = item};
    struct aggregate_delta delta = {.slot = slot};
    if (!item.ptr || is_taken(run, slot))
        return SL_OK;
    struct sl_value id = host->value_member(row, SL_LIT(ID));
    if (id.type != SL_S ||
        !aggregate_ledger_terms(&run->tally, host->value_member(row, SL_LIT(SUMS)), &delta.terms))
        return host->fail(
            error, SL_FATAL, "LedgerRow",
            "the row sluice:delta:%.*s:%" PRIu32 " of the ledger was not written by aggregate, or "
            "by a later release of it: give the ledger its own table with \"ledger\": {\"table\": "
            "...}, or return to the later release",
            SL_ARG(run->a->name), slot);
    delta.id = sl_text_canonical(host, id, run->slice->arena);
    aggregate_delta_written(run, &delta);
    return SL_OK;
}

static enum sl_status fail_as(const struct aggregate_run *run, const struct sl_result *result,
                              struct sl_error *error)
{
    struct sl_error why;
    sl_outcome_error(run->a->host, result, &why);
    return run->a->host->fail(error, result->status == SL_REJECT ? SL_FATAL : result->status, why.code,
                              "the ledger's rows sluice:delta:%.*s: %s", SL_ARG(run->a->name), why.text);
}

enum sl_status aggregate_delta_look(struct aggregate_run *run, struct sl_error *error)
{
    struct sl_table_op ops[AGGREGATE_DELTA_SLOTS];
    enum sl_status status = SL_OK;
    for (uint32_t i = 0; i < AGGREGATE_DELTA_SLOTS; i++)
        ops[i] = (struct sl_table_op){
            .verb = SL_TABLE_GET, .table = run->a->ledger_table, .key = slot_key(run, i)};
    const struct sl_result *results = aggregate_read(run, ops, AGGREGATE_DELTA_SLOTS);
    for (uint32_t i = 0; i < AGGREGATE_DELTA_SLOTS && status == SL_OK; i++)
        status = results[i].status == SL_OK ? aggregate_delta_met(run, i, results[i].item, error)
                                            : fail_as(run, &results[i], error);
    return status;
}

enum sl_status aggregate_delta_wait(struct aggregate_run *run, struct sl_error *error)
{
    const struct sl_host *host = run->a->host;
    if (!run->is_short)
        return SL_OK;
    run->is_short = false;
    run->looks++;
    const int64_t most_ms = WAIT_MS << (run->looks < 5 ? run->looks : 5);
    (void)host->sleep(run->a->route, run->slice,
                      most_ms / 2 + (int64_t)(host->random(run->a->route) % (uint64_t)(most_ms / 2)));
    return aggregate_delta_look(run, error);
}

/* ---- folding ---- */

/* As many delta rows in a transaction as fit with the rows that they add to. The transaction's units are its
 * delta rows. */
static void pack_folds(struct aggregate_packing *p)
{
    struct aggregate_run *run = p->run;
    struct aggregate_tx *tx = NULL;
    aggregate_pack_init(p, run->n_folds);
    for (uint32_t i = 0; i < run->n_folds; i++) {
        const struct aggregate_part *part = &run->folds[i].terms;
        const struct aggregate_term *terms = run->tally.terms.list + part->first;
        if (!tx || tx->n_units + 1 + tx->n_slots + aggregate_pack_need(p, tx, terms, part->n).rows >
                       SL_TABLE_GROUP_MAX)
            tx = aggregate_pack_tx(p, i);
        aggregate_pack_terms(p, tx, terms, part->n);
        tx->n_units++;
    }
}

static enum sl_status fold_ops(struct aggregate_packing *p, struct aggregate_tx *tx, struct sl_error *error)
{
    tx->first_op = p->n_ops = 0;
    for (size_t i = 0; i < tx->n_units; i++) {
        const struct aggregate_delta *delta = &p->run->folds[tx->first_unit + i];
        struct sl_test *test = p->a->host->alloc(p->arena, sizeof(*test));
        *test = (struct sl_test){.verb = SL_EQ, .name = SL_LIT(ID), .value = delta->id};
        p->ops[p->n_ops++] = (struct sl_table_op){.verb = SL_TABLE_DELETE,
                                                  .table = p->a->ledger_table,
                                                  .key = slot_key(p->run, delta->slot),
                                                  .tests = test,
                                                  .n_tests = 1,
                                                  .want_item = true};
    }
    enum sl_status status = aggregate_ops_rows(p, tx, error);
    tx->n_ops = p->n_ops;
    for (size_t k = 0; k < p->n_ops; k++)
        p->ops[k].group = 1;
    return status;
}

/* Rows that are folded to are looked at again, see aggregate_delete_empty: also those to which something was
 * added, as others may have taken it away before. */
static void note_left(struct aggregate_run *run, const struct aggregate_delta *delta)
{
    for (uint32_t i = delta->terms.first; i < delta->terms.first + delta->terms.n; i++)
        run->tally.places[run->tally.terms.list[i].counter].is_left = true;
}

/* Marks the delta rows that are folded, or that another process has folded. */
static void fold_result(struct aggregate_packing *p, const struct aggregate_tx *tx,
                        const struct sl_result *results, bool is_done)
{
    for (size_t i = 0; i < tx->n_units; i++) {
        struct aggregate_delta *delta = &p->run->folds[tx->first_unit + i];
        if (is_done)
            note_left(p->run, delta);
        if (is_done || results[i].condition_failed)
            delta->id = (struct sl_span){NULL, 0};
    }
}

static bool any_refused(const struct sl_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (results[i].condition_failed)
            return true;
    return false;
}

static bool all_done(const struct sl_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (results[i].status != SL_OK)
            return false;
    return true;
}

/* One that was refused is made again in the next round. */
static enum sl_status fold_apply(struct aggregate_packing *p, struct aggregate_tx *tx, struct sl_error *error)
{
    const struct aggregate_run *run = p->run;
    const struct sl_result *results = sl_apply_table(run->slice, p->a->table, p->ops, p->n_ops);
    const struct sl_result *cause = sl_outcome_cause(results, p->n_ops);
    bool is_done = all_done(results, p->n_ops);
    aggregate_ops_learn(p, tx, results);
    fold_result(p, tx, results, is_done);
    return !is_done && cause && (cause->status != SL_REJECT || !any_refused(results, p->n_ops))
               ? fail_as(run, cause, error)
               : SL_OK;
}

static enum sl_status fold_tx(struct aggregate_packing *p, struct aggregate_tx *tx, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    if (p->a->host->now_ms(p->a->route) >= p->run->slice->deadline_ms)
        return p->a->host->fail(error, SL_RETRY, "Deadline",
                                "time ran out before all sums were in the totals");
    p->ops = p->a->host->alloc(p->arena, (tx->n_units + tx->n_slots) * sizeof(*p->ops));
    enum sl_status status = fold_ops(p, tx, &why);
    if (status == SL_RETRY)
        return aggregate_ops_short(p, tx, error);
    return status == SL_OK ? fold_apply(p, tx, error)
                           : p->a->host->fail(error, status, why.code, "%s", why.text);
}

static void drop_folded(struct aggregate_run *run)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < run->n_folds; i++)
        if (run->folds[i].id.ptr)
            run->folds[kept++] = run->folds[i];
    run->n_folds = kept;
}

enum sl_status aggregate_fold(struct aggregate_run *run, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    for (int round = 0; round < ROUNDS && run->n_folds > 0 && status == SL_OK; round++) {
        struct aggregate_packing p = {.run = run, .a = run->a, .arena = run->slice->arena};
        pack_folds(&p);
        status = aggregate_hot_values(&p, error);
        for (size_t i = 0; i < p.n_txs && status == SL_OK; i++)
            status = fold_tx(&p, &p.txs[i], error);
        drop_folded(run);
        if (status == SL_OK)
            status = aggregate_delta_wait(run, error);
    }
    if (status == SL_OK && run->n_folds > 0)
        return run->a->host->fail(error, SL_RETRY, "LedgerBusy",
                                  "other invocations keep folding the same rows; a retry may succeed");
    return status;
}
