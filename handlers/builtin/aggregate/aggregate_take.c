/* Taking records: each makes a change of its unit, an item or an event. */
#include "base/map.h"
#include "handlers/builtin/aggregate/aggregate_run_private.h"

/* The record has not the image that the totals need. */
static enum sl_status no_image(const struct aggregate *a, const struct sl_record *r, const char *image,
                               struct sl_error *error)
{
    bool known = a->host->record_view(r) != SL_VIEW_UNKNOWN;
    return a->host->fail(error, known ? SL_FATAL : SL_REJECT, "ViewType",
                         "the record has no %s, which the totals need: enable the stream with "
                         "NEW_AND_OLD_IMAGES",
                         image);
}

/* ---- changes ---- */

/* A removal that is kept: the item's last contribution stays. The old image says what it is, so that it does
 * not matter what was counted before: every change, an export, or nothing. */
static enum sl_status kept_removal(struct aggregate_run *run, const struct sl_record *r,
                                   struct aggregate_change *change, struct sl_error *error)
{
    const struct aggregate *a = run->a;
    change->keeps = true;
    if (!a->has_ledger)
        return SL_OK;
    if (a->host->record_image(r, SL_OLD_IMAGE).type == SL_NONE)
        return no_image(a, r, "OldImage", error);
    return aggregate_contribution(&run->tally, r, SL_OLD_IMAGE, &change->after, error);
}

/* Without a ledger what an old image shows is taken to have been counted. */
static enum sl_status shown_before(struct aggregate_run *run, const struct sl_record *r,
                                   struct aggregate_change *change, struct sl_error *error)
{
    const struct aggregate *a = run->a;
    if (a->has_ledger || a->host->record_event(r) == SL_INSERT)
        return SL_OK;
    if (a->host->record_image(r, SL_OLD_IMAGE).type == SL_NONE)
        return no_image(a, r, "OldImage", error);
    return aggregate_contribution(&run->tally, r, SL_OLD_IMAGE, &change->before, error);
}

/* What the record makes of its item. */
static enum sl_status item_change(struct aggregate_run *run, size_t i, struct aggregate_change *change,
                                  struct sl_error *error)
{
    const struct aggregate *a = run->a;
    const struct sl_record *r = run->slice->records[i];
    enum sl_status status = SL_OK;
    if (a->host->record_image(r, SL_KEYS).type == SL_NONE)
        return a->host->fail(error, SL_REJECT, "NoKeys", "the record has no Keys");
    if (a->has_ledger)
        status = sl_order_make(a->host, a->epoch, sl_order_digits(a->host, r, run->slice->arena),
                               run->slice->arena, &change->order, error);
    if (status != SL_OK)
        return status;
    change->at_ms = a->host->record_created_ns(r) / 1000000;
    if (a->host->record_event(r) == SL_REMOVE && sl_expired_is_kept(a->expired, a->host, r))
        return kept_removal(run, r, change, error);
    status = shown_before(run, r, change, error);
    if (status != SL_OK || a->host->record_event(r) == SL_REMOVE)
        return status;
    if (a->host->record_image(r, SL_NEW_IMAGE).type == SL_NONE)
        return no_image(a, r, "NewImage", error);
    return aggregate_contribution(&run->tally, r, SL_NEW_IMAGE, &change->after, error);
}

static enum sl_status change_make(struct aggregate_run *run, size_t i, struct aggregate_change *change,
                                  struct sl_error *error)
{
    const struct aggregate *a = run->a;
    const struct sl_record *r = run->slice->records[i];
    enum sl_image image = a->per_event ? SL_ANY_IMAGE : SL_NEW_IMAGE;
    *change = (struct aggregate_change){.next = AGGREGATE_NONE};
    enum sl_status status = a->per_event
                                ? aggregate_contribution(&run->tally, r, image, &change->after, error)
                                : item_change(run, i, change, error);
    bool is_removal = !a->per_event && a->host->record_event(r) == SL_REMOVE;
    if (status == SL_OK && a->has_extremes && !is_removal)
        status = aggregate_extremes_take(&run->tally, r, i, image, error);
    return status;
}

/* ---- units ---- */

static bool is_before(const struct aggregate_run *run, uint32_t i, uint32_t other)
{
    return sl_order_compare(run->changes[i].order.text, run->changes[other].order.text) < 0;
}

/* Puts the change in its place among the unit's. Records come in order; only Kinesis mixes them up. */
static void change_link(struct aggregate_run *run, struct aggregate_unit *unit, uint32_t i)
{
    struct aggregate_change *changes = run->changes;
    if (unit->first == AGGREGATE_NONE) {
        unit->first = unit->last = i;
    } else if (run->a->per_event || !is_before(run, i, unit->last)) {
        changes[unit->last].next = i;
        unit->last = i;
    } else {
        uint32_t *at = &unit->first;
        while (!is_before(run, i, *at))
            at = &changes[*at].next;
        changes[i].next = *at;
        *at = i;
    }
}

/* The unit that the record belongs to: its item's, its event's, or, without a ledger, its own. */
static struct aggregate_unit *unit_of(struct aggregate_run *run, size_t i)
{
    const struct aggregate *a = run->a;
    struct sl_span key = {NULL, 0};
    size_t u = run->n_units;
    if (a->has_ledger) {
        key = aggregate_ledger_key(a, run->slice->records[i], run->slice->arena);
        u = sl_map_index(&run->keys, key);
    }
    if (u == run->n_units)
        run->units[run->n_units++] =
            (struct aggregate_unit){.first = AGGREGATE_NONE, .last = AGGREGATE_NONE, .key = key};
    return &run->units[u];
}

/* ---- records ---- */

/* The route's own rows in the source table are not counted. */
static bool is_own(const struct aggregate *a, const struct sl_record *r)
{
    return a->marks_own &&
           (a->host->record_attribute(r, SL_NEW_IMAGE, SL_LIT(AGGREGATE_OWN)).type != SL_NONE ||
            a->host->record_attribute(r, SL_OLD_IMAGE, SL_LIT(AGGREGATE_OWN)).type != SL_NONE);
}

/* After a rejected record the later ones of the item wait until that one is parked. */
enum sl_status aggregate_take(struct aggregate_run *run, size_t i, struct sl_error *error)
{
    if (is_own(run->a, run->slice->records[i])) {
        run->a->host->note(run->slice, i, SL_EFFECT_LEFT_OUT);
        return SL_OK;
    }
    enum sl_status status =
        run->a->per_event ? SL_OK : aggregate_source_take(run, run->slice->records[i], error);
    if (status != SL_OK)
        return status;
    struct aggregate_unit *unit = unit_of(run, i);
    if (unit->is_blocked) {
        (void)run->a->host->fail(error, SL_REJECT, "Behind", "an earlier change of the item was rejected");
        sl_outcome_unknown(&run->outcome, i, error);
        return SL_OK;
    }
    status = change_make(run, i, &run->changes[i], error);
    if (status == SL_OK) {
        change_link(run, unit, (uint32_t)i);
    } else if (status == SL_REJECT) {
        unit->is_blocked = true;
        sl_outcome_fail(&run->outcome, i, error);
        status = SL_OK;
    }
    return status;
}
