/* Units: what each adds to the totals, and what the ledger is expected to hold.
 *
 * The row that is expected (none before an INSERT, the old image's contribution before a MODIFY or REMOVE)
 * needs no read. A transaction that was refused returns the rows as they are, and the units are computed
 * again from them. */
#include "handlers/builtin/aggregate/aggregate_run_private.h"

#include "handlers/builtin/toolkit/apply.h"

#include <inttypes.h>

static const struct aggregate_part no_terms = {0, 0};

/* ---- what a unit adds ---- */

static void unit_begin(struct aggregate_run *run, struct aggregate_unit *unit)
{
    unit->delta.first = run->deltas.n;
}

/* Adds `to` less `from` to what the unit adds. */
static void unit_add(struct aggregate_run *run, struct aggregate_unit *unit, struct aggregate_part from,
                     struct aggregate_part to)
{
    aggregate_difference(&run->tally, from, to, &run->deltas);
    unit->delta.n = run->deltas.n - unit->delta.first;
}

/* The change was counted by an earlier delivery, which may have ended before it deleted a row that this left
 * empty: also one in which the item was only between two changes of this slice. */
static void look_again(struct aggregate_run *run, const struct aggregate_change *change)
{
    const struct aggregate_tally *t = &run->tally;
    run->has_done = true;
    for (uint32_t i = 0; run->a->deletes_empty && i < change->after.n; i++)
        t->places[t->terms.list[change->after.first + i].counter].is_left = true;
}

/* From a row with that order and contribution: walks over the changes that are later, and makes the unit's
 * difference and its new row. */
static void unit_walk(struct aggregate_run *run, struct aggregate_unit *unit, struct sl_span from_order,
                      struct aggregate_part current)
{
    struct aggregate_part begin = current;
    unit_begin(run, unit);
    for (uint32_t i = unit->first; i != AGGREGATE_NONE; i = run->changes[i].next) {
        const struct aggregate_change *change = &run->changes[i];
        if (from_order.ptr && sl_order_compare(change->order.text, from_order) <= 0) {
            look_again(run, change);
            continue;
        }
        if (change->keeps)
            unit_add(run, unit, begin, change->after);
        current = change->keeps ? no_terms : change->after;
        begin = change->keeps ? no_terms : begin;
    }
    unit_add(run, unit, begin, current);
    const struct aggregate_change *last = &run->changes[unit->last];
    const struct aggregate_entry entry = {
        .key = unit->key,
        .order = last->order,
        .at_ms = last->at_ms,
        .sums = aggregate_ledger_text(&run->tally, current),
        .is_over = run->a->host->record_event(run->slice->records[unit->last]) == SL_REMOVE};
    unit->item = aggregate_ledger_row(&run->tally, &entry);
}

/* Only this very row passes. */
static void unit_pin(struct aggregate_run *run, struct aggregate_unit *unit, const struct aggregate_row *row)
{
    unit->n_tests = 1;
    unit->tests[0] = (struct sl_test){.verb = SL_ABSENT, .name = SL_LIT(AGGREGATE_ROW_ORDER)};
    if (row->exists) {
        unit->tests[0].verb = SL_EQ;
        unit->tests[0].value = sl_order_of(run->a->host, run->slice->arena, row->order).value;
    }
}

/* The row is known. */
static void unit_expect(struct aggregate_run *run, struct aggregate_unit *unit,
                        const struct aggregate_row *row)
{
    unit_pin(run, unit, row);
    unit_walk(run, unit, row->order, row->terms);
}

void aggregate_unit_replace(struct aggregate_run *run, struct aggregate_unit *unit,
                            const struct aggregate_row *row, struct sl_span sums)
{
    struct sl_span none = {NULL, 0};
    unit->is_known = true;
    unit_pin(run, unit, row);
    if (row->exists)
        unit->tests[unit->n_tests++] =
            (struct sl_test){.verb = SL_EQ, .name = SL_LIT(AGGREGATE_ROW_SUMS), .value = sums};
    unit_walk(run, unit, none, row->terms);
}

/* The row is guessed: older than the first change, and with the contribution that the old image shows. */
static void unit_guess(struct aggregate_run *run, struct aggregate_unit *unit, struct aggregate_part before)
{
    struct sl_span none = {NULL, 0};
    unit->tests[0] = (struct sl_test){
        .verb = SL_LT, .name = SL_LIT(AGGREGATE_ROW_ORDER), .value = run->changes[unit->first].order.value};
    unit->tests[1] = (struct sl_test){.verb = SL_EQ,
                                      .name = SL_LIT(AGGREGATE_ROW_SUMS),
                                      .value = aggregate_ledger_text(&run->tally, before)};
    unit->n_tests = 2;
    unit_walk(run, unit, none, before);
}

/* Looks for changes that are older than the row by order and newer by time: the row was made from another
 * table than theirs. A change that is delivered again has the row's order, or an earlier time. */
static void unit_compare_times(struct aggregate_run *run, const struct aggregate_unit *unit,
                               const struct aggregate_row *row)
{
    for (uint32_t i = unit->first; row->at_ms > 0 && i != AGGREGATE_NONE; i = run->changes[i].next) {
        struct aggregate_change *change = &run->changes[i];
        if (change->is_older || change->at_ms <= row->at_ms ||
            sl_order_compare(change->order.text, row->order) >= 0)
            continue;
        change->is_older = true;
        run->n_older++;
        run->older = run->a->host->record_text(run->slice->records[i], SL_FIELD_IDENTIFIER);
    }
}

static bool is_same(struct aggregate_run *run, struct aggregate_part a, struct aggregate_part b)
{
    uint32_t n = run->deltas.n;
    aggregate_difference(&run->tally, a, b, &run->deltas);
    bool same = run->deltas.n == n;
    run->deltas.n = n;
    return same;
}

/* Does the item contribute something else after the unit's last change? Then that one ties with another of
 * its order. What the item contributes after its next change does not depend on either. */
static void unit_tie(struct aggregate_run *run, struct aggregate_unit *unit, struct aggregate_part other)
{
    const struct aggregate_change *last = &run->changes[unit->last];
    const struct sl_record *r = run->slice->records[unit->last];
    if (unit->is_tied || last->keeps || is_same(run, other, last->after) ||
        !sl_order_is_time(run->a->host, r, run->slice->arena))
        return;
    unit->is_tied = true;
    run->n_tied++;
    run->tied = run->a->host->record_text(r, SL_FIELD_EVENT_ID);
}

static void unit_tie_inside(struct aggregate_run *run, struct aggregate_unit *unit)
{
    for (uint32_t i = unit->first; i != unit->last; i = run->changes[i].next)
        if (sl_order_compare(run->changes[i].order.text, run->changes[unit->last].order.text) == 0)
            unit_tie(run, unit, run->changes[i].after);
}

static void warn_tied(const struct aggregate_run *run)
{
    const struct aggregate *a = run->a;
    a->host->metric(a->route, "TiedOrder", (double)run->n_tied, "Count");
    a->host->log(
        a->route, SL_WARN,
        "%zu items have two changes of one time (one is %.*s), and nothing says which was last: the totals "
        "may count the other one, until the item changes again. Set the Kinesis destination to "
        "MICROSECOND, so that this is rare; `sluice verify` finds such items",
        run->n_tied, SL_ARG(run->tied));
}

void aggregate_units_warn(const struct aggregate_run *run)
{
    const struct aggregate *a = run->a;
    if (run->n_tied > 0)
        warn_tied(run);
    if (run->n_older == 0)
        return;
    a->host->metric(a->route, "RefusedNewer", (double)run->n_older, "Count");
    a->host->log(
        a->route, SL_WARN,
        "%zu changes were not counted because the ledger has later ones of their items, although they "
        "are newer by time (one is %.*s): the source was restored, or is another table or another "
        "Region's; if it is the right one to follow, raise \"epoch\" above %" PRId64 " and backfill it",
        run->n_older, SL_ARG(run->older), a->epoch);
}

/* The ledger has the unit's last change, or a later one. */
static void unit_overtaken(struct aggregate_run *run, struct aggregate_unit *unit, bool is_same)
{
    unit->state = AGGREGATE_DONE;
    for (uint32_t i = unit->first; i != AGGREGATE_NONE; i = run->changes[i].next)
        look_again(run, &run->changes[i]);
    run->a->host->note(run->slice, unit->last, is_same ? SL_EFFECT_REPEATED : SL_EFFECT_OVERTAKEN);
}

/* A row read from the ledger: the unit is done if the row already holds the last of its changes. A change
 * that adds nothing is written too, so that an older one that was parked finds it. */
static enum sl_status unit_take_row(struct aggregate_run *run, struct aggregate_unit *unit,
                                    struct sl_span item, struct sl_error *error)
{
    struct aggregate_row row;
    enum sl_status status = aggregate_ledger_read(&run->tally, item, &row, error);
    if (status != SL_OK)
        return status;
    struct sl_span last = run->changes[unit->last].order.text;
    unit_compare_times(run, unit, &row);
    if (row.exists && sl_order_compare(row.order, last) == 0)
        unit_tie(run, unit, row.terms);
    if (unit->is_idle && (!row.exists || sl_order_is_same_epoch(row.order, last)))
        unit->state = AGGREGATE_DONE;
    else if (row.exists && sl_order_compare(row.order, last) >= 0)
        unit_overtaken(run, unit, sl_order_compare(row.order, last) == 0);
    else
        unit_expect(run, unit, &row);
    return SL_OK;
}

/* ---- results ---- */

void aggregate_unit_failed(struct aggregate_run *run, struct aggregate_unit *unit,
                           const struct sl_error *error)
{
    unit->state = AGGREGATE_FAILED;
    for (uint32_t i = unit->first; i != AGGREGATE_NONE; i = run->changes[i].next)
        sl_outcome_shared(&run->outcome, i, error);
}

static void unit_moved(struct aggregate_run *run, struct aggregate_unit *unit)
{
    struct sl_error error = SL_NO_ERROR;
    (void)run->a->host->fail(&error, SL_REJECT, "Moved",
                             "the ledger's row changed while it was repaired; verify it again");
    unit->state = AGGREGATE_FAILED;
    sl_outcome_fail(&run->outcome, unit->first, &error);
}

static void event_counted(struct aggregate_run *run, struct aggregate_unit *unit)
{
    unit->state = AGGREGATE_DONE;
    run->has_done = true;
}

void aggregate_unit_refused(struct aggregate_run *run, struct aggregate_unit *unit, struct sl_span item)
{
    struct sl_error error = SL_NO_ERROR;
    unit->is_known = true;
    if (run->is_repair)
        unit_moved(run, unit);
    else if (run->a->per_event)
        event_counted(run, unit);
    else if (unit_take_row(run, unit, item, &error) != SL_OK)
        aggregate_unit_failed(run, unit, &error);
}

/* ---- reading ---- */

/* A repair is of the row that was seen: as long as that is there, the unit stays pending. */
static enum sl_status unit_check_seen(struct aggregate_run *run, struct aggregate_unit *unit,
                                      struct sl_span item, struct sl_error *error)
{
    struct aggregate_row row;
    enum sl_status status = aggregate_ledger_read(&run->tally, item, &row, error);
    if (status != SL_OK)
        return status;
    const struct sl_test *seen = &unit->tests[0];
    bool is_there = seen->verb == SL_EQ;
    if (row.exists != is_there ||
        (is_there && !sl_span_eq(seen->value, sl_order_of(run->a->host, run->slice->arena, row.order).value)))
        unit_moved(run, unit);
    return SL_OK;
}

/* What the ledger says of the unit. An event's row says no more than that it was counted. */
static enum sl_status unit_learn(struct aggregate_run *run, struct aggregate_unit *unit,
                                 const struct sl_result *result, struct sl_error *error)
{
    unit->is_known = true;
    if (result->status != SL_OK) {
        sl_outcome_error(run->a->host, result, error);
        return result->status;
    }
    if (run->is_repair)
        return unit_check_seen(run, unit, result->item, error);
    if (!run->a->per_event)
        return unit_take_row(run, unit, result->item, error);
    if (result->item.ptr)
        event_counted(run, unit);
    return SL_OK;
}

void aggregate_units_ask(struct aggregate_run *run)
{
    const struct aggregate *a = run->a;
    size_t n = 0;
    for (size_t u = 0; u < run->n_units; u++)
        n += run->units[u].is_asked;
    struct aggregate_unit **asked = a->host->alloc(run->slice->arena, n * sizeof(struct aggregate_unit *));
    n = 0;
    for (size_t u = 0; u < run->n_units; u++) {
        if (run->units[u].is_asked && run->units[u].state == AGGREGATE_PENDING)
            asked[n++] = &run->units[u];
        run->units[u].is_asked = false;
    }
    struct sl_table_op *ops = a->host->alloc(run->slice->arena, n * sizeof(*ops));
    for (size_t k = 0; k < n; k++)
        ops[k] = (struct sl_table_op){.verb = SL_TABLE_GET, .table = a->ledger_table, .key = asked[k]->key};
    const struct sl_result *results = sl_apply_table(run->slice, a->table, ops, n);
    for (size_t k = 0; k < n; k++) {
        struct sl_error error = SL_NO_ERROR;
        if (unit_learn(run, asked[k], &results[k], &error) != SL_OK)
            aggregate_unit_failed(run, asked[k], &error);
    }
}

/* ---- items, with a ledger ---- */

/* An item that did not contribute and still does not needs no row. In a later epoch it may have one, of the
 * table that was followed before. */
static bool is_idle(const struct aggregate_run *run, const struct aggregate_unit *unit,
                    struct aggregate_part before)
{
    bool idle = before.n == 0;
    for (uint32_t i = unit->first; i != AGGREGATE_NONE && idle; i = run->changes[i].next)
        idle = run->changes[i].after.n == 0;
    return idle;
}

/* The row has to be read where the stream does not show what the item was. */
static void item_prepare(struct aggregate_run *run, struct aggregate_unit *unit)
{
    const struct sl_host *host = run->a->host;
    const struct sl_record *r = run->slice->records[unit->first];
    struct aggregate_part before = no_terms;
    struct aggregate_row none = {0};
    bool is_new = host->record_event(r) == SL_INSERT;
    unit_tie_inside(run, unit);
    if (!is_new && (host->record_image(r, SL_OLD_IMAGE).type == SL_NONE ||
                    aggregate_contribution(&run->tally, r, SL_OLD_IMAGE, &before, NULL) != SL_OK))
        unit->is_asked = true;
    else if (is_idle(run, unit, before))
        unit->is_idle = unit->is_asked = true;
    else if (is_new)
        unit_expect(run, unit, &none);
    else
        unit_guess(run, unit, before);
    if (unit->is_idle && run->a->epoch == 0)
        unit->state = AGGREGATE_DONE;
}

static void prepare_items(struct aggregate_run *run)
{
    for (size_t u = 0; u < run->n_units; u++) {
        struct aggregate_unit *unit = &run->units[u];
        if (unit->first == AGGREGATE_NONE)
            unit->state = AGGREGATE_DONE;
        else
            item_prepare(run, unit);
    }
    aggregate_units_ask(run);
}

/* ---- events ---- */

static void event_prepare(struct aggregate_run *run, struct aggregate_unit *unit)
{
    const struct aggregate_entry mark = {.key = unit->key, .is_over = true};
    unit->state = AGGREGATE_DONE;
    if (unit->first == AGGREGATE_NONE)
        return;
    unit_begin(run, unit);
    unit_add(run, unit, no_terms, run->changes[unit->first].after);
    if (unit->delta.n == 0)
        return;
    unit->state = AGGREGATE_PENDING;
    unit->tests[0] = (struct sl_test){.verb = SL_ABSENT, .name = run->a->ledger_keys[0]};
    unit->n_tests = 1;
    if (run->a->has_ledger)
        unit->item = aggregate_ledger_row(&run->tally, &mark);
}

/* ---- items, without a ledger ---- */

static void difference_prepare(struct aggregate_run *run, struct aggregate_unit *unit)
{
    unit->state = AGGREGATE_DONE;
    if (unit->first == AGGREGATE_NONE || run->changes[unit->first].keeps)
        return;
    const struct aggregate_change *change = &run->changes[unit->first];
    unit->state = AGGREGATE_PENDING;
    unit_begin(run, unit);
    unit_add(run, unit, change->before, change->after);
}

void aggregate_prepare(struct aggregate_run *run)
{
    if (!run->a->per_event && run->a->has_ledger) {
        prepare_items(run);
        return;
    }
    for (size_t u = 0; u < run->n_units; u++) {
        if (run->a->per_event)
            event_prepare(run, &run->units[u]);
        else
            difference_prepare(run, &run->units[u]);
    }
}
