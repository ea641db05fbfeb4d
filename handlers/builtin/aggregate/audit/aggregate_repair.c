/* `sluice repair`: what an item contributes now takes the place of what the ledger says was counted. */
#include "handlers/builtin/aggregate/audit/aggregate_repair.h"

#include "base/map.h"
#include "handlers/builtin/aggregate/aggregate_run_private.h"

struct repair {
    struct aggregate_run run;
    struct sl_repair *ask;
};

/* The order that the row has, or below that of any change. */
static struct sl_order change_order(const struct aggregate *a, const struct aggregate_row *row,
                                    struct sl_arena *arena)
{
    struct sl_span none = {NULL, 0};
    if (row->exists)
        return sl_order_of(a->host, arena, row->order);
    char *text = a->host->alloc(arena, SL_ORDER_BYTES);
    size_t n = (size_t)(sl_order_put_epoch(text, a->epoch, none) - text);
    return sl_order_of(a->host, arena, (struct sl_span){text, n});
}

/* The key names the item, so a record that comes twice has one unit. */
static enum sl_status unit_new(struct repair *r, size_t i, struct sl_error *error)
{
    struct aggregate_run *run = &r->run;
    const struct sl_host *host = run->a->host;
    if (host->record_image(run->slice->records[i], SL_KEYS).type == SL_NONE)
        return host->fail(error, SL_REJECT, "NoKeys", "the record has no Keys");
    struct sl_span key = aggregate_ledger_key(run->a, run->slice->records[i], run->slice->arena);
    if (sl_map_index(&run->keys, key) != run->n_units)
        return host->fail(error, SL_REJECT, "Twice", "the item is in the slice twice");
    run->units[run->n_units++] = (struct aggregate_unit){
        .first = (uint32_t)i, .last = (uint32_t)i, .key = key, .state = AGGREGATE_DONE};
    return SL_OK;
}

/* A row that says what the item contributes is right. An item that contributes nothing needs no row. */
static void unit_prepare(struct repair *r, struct aggregate_unit *unit, const struct aggregate_row *row,
                         bool is_gone)
{
    struct aggregate_run *run = &r->run;
    struct sl_value seen = {.type = SL_M, .raw = r->ask->seen[unit->first]};
    struct sl_span sums = {NULL, 0};
    if (row->exists)
        sums = run->a->host->value_json(run->a->host->value_member(seen, SL_LIT(AGGREGATE_ROW_SUMS)),
                                        run->slice->arena);
    aggregate_unit_replace(run, unit, row, sums);
    if (unit->delta.n == 0)
        return;
    unit->state = AGGREGATE_PENDING;
    r->ask->written[unit->first] = unit->item;
    r->ask->effects[unit->first] = is_gone ? SL_REPAIR_REMOVED : SL_REPAIR_WRITTEN;
}

static enum sl_status record_take(struct repair *r, size_t i, struct sl_error *error)
{
    struct aggregate_run *run = &r->run;
    const struct sl_record *record = run->slice->records[i];
    struct aggregate_change *change = &run->changes[i];
    struct aggregate_row row;
    bool is_gone = run->a->host->record_image(record, SL_NEW_IMAGE).type == SL_NONE;
    *change = (struct aggregate_change){.next = AGGREGATE_NONE};
    enum sl_status status = unit_new(r, i, error);
    if (status == SL_OK)
        status = aggregate_ledger_read(&run->tally, r->ask->seen[i], &row, error);
    if (status == SL_OK && !is_gone)
        status = aggregate_contribution(&run->tally, record, SL_NEW_IMAGE, &change->after, error);
    if (status == SL_OK && is_gone && row.terms.n > 0 && !r->ask->may_remove)
        status =
            run->a->host->fail(error, SL_REJECT, "WouldRemove",
                               "the source does not have the item, and removing what was counted for it was "
                               "not asked for");
    if (status != SL_OK)
        return status;
    change->order = change_order(run->a, &row, run->slice->arena);
    change->at_ms = row.at_ms;
    unit_prepare(r, &run->units[run->n_units - 1], &row, is_gone);
    return SL_OK;
}

enum sl_status aggregate_repair(void *self, struct sl_slice *slice, struct sl_repair *ask,
                                struct sl_error *error)
{
    struct repair r = {.ask = ask};
    const struct aggregate *a = self;
    if (!a->has_ledger || a->per_event)
        return a->host->fail(error, SL_REJECT, "NoLedger",
                             "the route keeps no ledger of items, so nobody knows what was counted for one");
    if (ask->wanted)
        return a->host->fail(error, SL_REJECT, "NoUndo",
                             "a row of the ledger is not put back without its totals: repair it again");
    aggregate_run_init(&r.run, a, slice);
    r.run.is_repair = true;
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < slice->n; i++) {
        struct sl_error why = SL_NO_ERROR;
        ask->written[i] = (struct sl_span){NULL, 0};
        ask->effects[i] = SL_REPAIR_NOTHING;
        if (status == SL_OK)
            status = aggregate_source_take(&r.run, slice->records[i], error);
        if (record_take(&r, i, &why) != SL_OK)
            sl_outcome_fail(&r.run.outcome, i, &why);
    }
    if (status != SL_OK)
        return status;
    sl_source_table_drop_local(&r.run.source);
    if (ask->is_plan)
        return sl_outcome_end(&r.run.outcome, error);
    /* It writes: the ledger's row of its source, and the epoch. */
    status = aggregate_source_check(&r.run, error);
    if (status != SL_OK)
        return status;
    status = aggregate_write_units(&r.run, error);
    if (status != SL_OK)
        return status;
    return sl_outcome_end(&r.run.outcome, error);
}
