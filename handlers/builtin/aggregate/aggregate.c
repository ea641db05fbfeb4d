/* The aggregate handler: a materialized GROUP BY.
 *
 * What is added is what an item contributes now, less what the ledger says was counted for it, in one
 * transaction with the ledger's row. So a record that is delivered again finds its order in the ledger and
 * changes nothing, and totals never hold what was not counted. */
#include "base/map.h"
#include "handlers/builtin/aggregate/aggregate_run_private.h"
#include "handlers/builtin/aggregate/audit/aggregate_expect.h"
#include "handlers/builtin/aggregate/audit/aggregate_repair.h"

#include <inttypes.h>

void aggregate_run_init(struct aggregate_run *run, const struct aggregate *a, struct sl_slice *slice)
{
    const struct sl_host *host = a->host;
    size_t n = slice->n;
    *run = (struct aggregate_run){.a = a, .slice = slice, .deltas = {.arena = slice->arena}};
    /* A changed group takes two terms away and brings two. */
    run->deltas.room = (uint32_t)(4 * n);
    run->deltas.list = host->alloc(slice->arena, run->deltas.room * sizeof(*run->deltas.list));
    sl_outcome_init(&run->outcome, host, slice);
    aggregate_tally_init(&run->tally, a, slice->arena, n);
    sl_map_init(&run->keys, slice->arena, a->has_ledger ? n : 0);
    run->units = host->alloc(slice->arena, n * sizeof(*run->units));
    run->changes = host->alloc(slice->arena, n * sizeof(*run->changes));
    run->next_slot = (uint32_t)(host->random(a->route) >> 32);
    run->next_shard = (uint32_t)(host->random(a->route) >> 32);
}

static enum sl_status check_target(const struct aggregate *a, const struct sl_slice *slice,
                                   struct sl_error *error)
{
    if (!sl_loop_closes(&a->loop, a->host, slice))
        return SL_OK;
    if (!a->marks_own)
        return sl_loop_refuse(&a->loop, a->host,
                              ", or set \"own_rows\": \"mark\" so that the route leaves out its own rows",
                              error);
    if (a->host->record_view(slice->records[0]) != SL_VIEW_NEW_AND_OLD_IMAGES)
        return a->host->fail(
            error, SL_FATAL, "ViewType",
            "own_rows: only a stream with NEW_AND_OLD_IMAGES shows which rows are the route's "
            "own; enable it");
    return SL_OK;
}

static enum sl_status take_records(struct aggregate_run *run, struct sl_error *error)
{
    for (size_t i = 0; i < run->slice->n; i++) {
        struct sl_error why = SL_NO_ERROR;
        enum sl_status status = aggregate_take(run, i, &why);
        if (status != SL_OK)
            return run->a->host->fail(error, status, why.code, "%s", why.text);
    }
    return SL_OK;
}

/* Late records of an epoch that is over: the ledger's rows are of a later one, or will be once the table is
 * backfilled, and an order of the earlier one cannot be told from what was counted. */
static enum sl_status check_epoch(const struct aggregate *a, struct sl_slice *slice, struct sl_error *error)
{
    if (slice->epoch < 0 || slice->epoch == a->epoch)
        return SL_OK;
    for (size_t i = 0; i < slice->n; i++) {
        struct sl_error why = SL_NO_ERROR;
        (void)a->host->fail(&why, SL_REJECT, "OldEpoch",
                            "the record was set aside in epoch %" PRId64
                            ", and the totals are in epoch %" PRId64
                            ": `sluice verify` and `sluice repair` find what it would have counted",
                            slice->epoch, a->epoch);
        a->host->mark(slice, i, SL_REJECT, &why);
    }
    return a->host->fail(error, SL_REJECT, "OldEpoch", "all records are of an earlier epoch");
}

static enum sl_status handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    const struct aggregate *a = self;
    struct aggregate_run run;
    enum sl_status status = check_target(a, slice, error);
    if (status == SL_OK)
        status = check_epoch(a, slice, error);
    if (status != SL_OK)
        return status;
    aggregate_run_init(&run, a, slice);
    status = take_records(&run, error);
    if (status == SL_OK)
        status = aggregate_source_check(&run, error);
    if (status != SL_OK)
        return status;
    aggregate_prepare(&run);
    status = aggregate_write_units(&run, error);
    aggregate_units_warn(&run);
    if (status != SL_OK)
        return status;
    aggregate_extremes_write(&run);
    return sl_outcome_end(&run.outcome, error);
}

/* ---- view types ---- */

static bool needs(const struct aggregate *a, enum sl_event event, enum sl_image image)
{
    if (!(a->events & 1u << event))
        return false;
    if (image == SL_NEW_IMAGE)
        return event != SL_REMOVE;
    return (event == SL_REMOVE && a->expired != SL_EXPIRED_APPLY) || (!a->has_ledger && event != SL_INSERT);
}

static enum sl_status accepts(void *self, enum sl_view view, struct sl_error *error)
{
    const struct aggregate *a = self;
    bool has_new = view == SL_VIEW_NEW_IMAGE || view == SL_VIEW_NEW_AND_OLD_IMAGES;
    bool has_old = view == SL_VIEW_OLD_IMAGE || view == SL_VIEW_NEW_AND_OLD_IMAGES;
    bool lacks = false;
    for (int event = SL_INSERT; event <= SL_REMOVE; event++)
        lacks = lacks || (!has_new && needs(a, (enum sl_event)event, SL_NEW_IMAGE)) ||
                (!has_old && needs(a, (enum sl_event)event, SL_OLD_IMAGE));
    if (a->per_event || view == SL_VIEW_UNKNOWN || !lacks)
        return SL_OK;
    return a->host->fail(error, SL_FATAL, "ViewType",
                         "totals over items cannot be kept from a stream of view type %s: enable it with "
                         "NEW_AND_OLD_IMAGES%s",
                         a->host->view_name(view),
                         a->has_ledger && a->expired == SL_EXPIRED_APPLY
                             ? " (or NEW_IMAGE, which costs a read per change)"
                             : "");
}

static bool is_of_item(const struct aggregate *a, const struct aggregate_counter *c,
                       struct sl_per_item *facts)
{
    bool is = true;
    for (size_t i = 0; i < a->n_key_names; i++)
        is = sl_render_is_of_item(a->host, c->keys[i].compiled, facts) && is;
    for (size_t i = 0; i < c->n_amounts; i++)
        is = sl_render_is_of_item(a->host, c->amounts[i].value.compiled, facts) && is;
    for (size_t i = 0; i < c->n_distinct; i++)
        is = sl_render_is_of_item(a->host, c->distinct[i].value.compiled, facts) && is;
    if (c->has_members)
        is = sl_render_is_of_item(a->host, c->by.value.compiled, facts) && is;
    return is;
}

/* The ledger tells an item that was counted from one that was not. */
static enum sl_status per_item(void *self, struct sl_per_item *out, struct sl_error *error)
{
    const struct aggregate *a = self;
    const char *why =
        a->per_event      ? "\"per\": \"event\": it counts changes; an item is not a change"
        : !a->has_ledger  ? "\"mode\": \"at-least-once\": without a ledger an item that was counted "
                            "before would be counted again"
        : a->has_extremes ? "running_max and running_min are of all that the items have ever been"
        : a->expired != SL_EXPIRED_APPLY
            ? "\"expired\": \"keep\": the totals hold expired items, which are not in the table"
            : NULL;
    for (size_t i = 0; i < a->n_counters && !why; i++)
        if (!is_of_item(a, &a->counters[i], out))
            why = "a template of its counters names the time or the event of a change, or the old image";
    out->remembers_s = a->forget_s;
    out->units_more = 3; /* in a transaction: the ledger's row, and a share of the total's */
    for (size_t i = 0; i < a->n_counters; i++)
        out->units_more += 2 * (uint32_t)(a->counters[i].n_distinct + a->counters[i].has_members);
    return why ? a->host->fail(error, SL_REJECT, "NotPerItem", "%s", why) : SL_OK;
}

/* The ledger knows what was counted of an item, and refuses what is older. */
static enum sl_status any_order(void *self, struct sl_any_order *out, struct sl_error *error)
{
    const struct aggregate *a = self;
    out->remembers_s = a->forget_s;
    if (!a->has_ledger)
        return a->host->fail(error, SL_REJECT, "NotAnyOrder",
                             "mode: without a ledger a change that is delivered again is counted again");
    if (a->expired != SL_EXPIRED_APPLY)
        return a->host->fail(error, SL_REJECT, "NotAnyOrder",
                             "expired: what is kept of expired items depends on the order of their changes");
    return SL_OK;
}

const struct sl_handler sl_aggregate_handler = {
    .abi = SL_HANDLER_ABI,
    .name = "aggregate",
    .summary = "totals by group, exact however often records come",
    .options = aggregate_options,
    .open = aggregate_open,
    .handle = handle,
    .accepts = accepts,
    .expect = aggregate_expect,
    .judge = aggregate_judge,
    .trace = aggregate_trace,
    .repair = aggregate_repair,
    .per_item = per_item,
    .price = aggregate_price,
    .any_order = any_order,
};
