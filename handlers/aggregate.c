/* The aggregate handler: a materialized GROUP BY.
 *
 * What is added is what an item contributes now, less what the ledger says was counted for it, in one
 * transaction with the ledger's row. The row that is expected (none before an INSERT, the old image's
 * contribution before a MODIFY or REMOVE) needs no read; a transaction that was refused returns the rows as
 * they are, and is computed again from them. So a record that comes again finds its order in the ledger and
 * changes nothing, and totals never hold what was not counted. */
#include "handlers/aggregate.h"

#define NONE UINT32_MAX

/* Rounds of refused transactions: each one needs another writer of the same rows in between. */
#define ROUNDS 8

/* What a record makes of its item. */
struct change {
    struct sl_span order;
    struct aggregate_part after; /* the item's contribution from then on */
    bool keeps;                  /* what was counted stays, and is the item's no more */
    uint32_t next;               /* of the same unit, in order */
};

struct run {
    const struct aggregate *a;
    struct sl_slice *slice;
    struct sl_outcome outcome;
    struct aggregate_tally tally;
    struct aggregate_terms deltas;
    struct sl_keymap keys; /* units by what they are */
    struct aggregate_unit *units;
    struct change *changes; /* one per record */
    bool *is_blocked;       /* unit: a record of it was rejected, those behind it wait */
    size_t n_units;
    struct sl_span source; /* the table that the records come from */
};

/* ---- taking records ---- */

static enum sl_status no_image(const struct aggregate *a, const struct sl_record *r, const char *image,
                               struct sl_error *error)
{
    bool known = a->host->record_view(r) != SL_VIEW_UNKNOWN;
    return a->host->fail(error, known ? SL_FATAL : SL_REJECT, "ViewType",
                         "the record has no %s, without which totals cannot be kept: enable the stream with "
                         "NEW_AND_OLD_IMAGES",
                         image);
}

static bool is_kept(const struct aggregate *a, const struct sl_record *r)
{
    enum sl_ttl ttl = a->host->record_ttl(r);
    if (a->expired == AGGREGATE_SUBTRACT)
        return false;
    return ttl == SL_TTL_EXPIRED || (ttl == SL_TTL_INFERRED && a->expired == AGGREGATE_KEEP_ANY);
}

/* What the record makes of its unit: an item's contribution after it, or an event's. */
static enum sl_status change_make(struct run *run, size_t i, struct change *change, struct sl_error *error)
{
    const struct aggregate *a = run->a;
    const struct sl_record *r = run->slice->records[i];
    bool is_removal = a->host->record_event(r) == SL_REMOVE;
    *change = (struct change){.next = NONE};
    enum sl_status status = SL_OK;
    if (!a->per_event && a->host->record_image(r, SL_KEYS).type == SL_NONE)
        return a->host->fail(error, SL_REJECT, "NoKeys", "the record does not say what its item's key is");
    if (a->has_ledger && !a->per_event)
        status = aggregate_order(a, r, run->slice->arena, &change->order, error);
    if (status != SL_OK)
        return status;
    if (is_removal && !a->per_event) {
        change->keeps = is_kept(a, r);
        return SL_OK;
    }
    enum sl_image image = a->per_event ? SL_ANY_IMAGE : SL_NEW_IMAGE;
    if (!a->per_event && a->host->record_image(r, SL_NEW_IMAGE).type == SL_NONE)
        return no_image(a, r, "NewImage", error);
    status = aggregate_contribution(&run->tally, r, image, &change->after, error);
    if (status == SL_OK && a->has_extremes)
        status = aggregate_extremes(&run->tally, r, i, image, error);
    return status;
}

/* Records come in order but for what Kinesis mixed up. */
static void change_link(struct run *run, struct aggregate_unit *unit, uint32_t i)
{
    struct change *changes = run->changes;
    if (unit->first == NONE) {
        unit->first = unit->last = i;
    } else if (run->a->per_event ||
               memcmp(changes[unit->last].order.ptr, changes[i].order.ptr, AGGREGATE_ORDER_DIGITS) <= 0) {
        changes[unit->last].next = i;
        unit->last = i;
    } else {
        uint32_t *at = &unit->first;
        while (memcmp(changes[*at].order.ptr, changes[i].order.ptr, AGGREGATE_ORDER_DIGITS) <= 0)
            at = &changes[*at].next;
        changes[i].next = *at;
        *at = i;
    }
}

/* The unit that the record belongs to: its item's, its event's, or, without a ledger, its own. */
static uint32_t unit_of(struct run *run, size_t i)
{
    const struct aggregate *a = run->a;
    struct sl_span key = {NULL, 0};
    uint32_t u = (uint32_t)run->n_units;
    if (a->has_ledger) {
        key = aggregate_ledger_key(a, run->slice->records[i], run->slice->arena);
        u = sl_keymap_index(&run->keys, key);
    }
    if (u == run->n_units) {
        run->units[u] = (struct aggregate_unit){.first = NONE, .last = NONE, .key = key};
        run->is_blocked[u] = false;
        run->n_units++;
    }
    return u;
}

/* The ledger tells items apart by their keys, so that a backfill finds the rows that the stream made: the
 * items of two tables would be taken for one another. */
static enum sl_status check_table(struct run *run, const struct sl_record *r, struct sl_error *error)
{
    struct sl_span table = run->a->host->record_text(r, SL_FIELD_TABLE);
    if (table.len == 0 || sl_text_eq(table, run->source))
        return SL_OK;
    if (run->source.len > 0)
        return run->a->host->fail(
            error, SL_FATAL, "TwoTables",
            "records come from %.*s and from %.*s: a route counts one table's items; make two, "
            "each with its \"when\" and its ledger's name",
            SL_TEXT_ARG(run->source), SL_TEXT_ARG(table));
    run->source = table;
    return SL_OK;
}

/* Rows of ours in the source table: neither counted nor looked at again. */
static bool is_own(const struct aggregate *a, const struct sl_record *r)
{
    return a->marks_own &&
           (a->host->record_attribute(r, SL_NEW_IMAGE, SL_TEXT(AGGREGATE_OWN)).type != SL_NONE ||
            a->host->record_attribute(r, SL_OLD_IMAGE, SL_TEXT(AGGREGATE_OWN)).type != SL_NONE);
}

/* Behind a rejected record the later ones of the item wait for what becomes of it. */
static enum sl_status record_take(struct run *run, size_t i, struct sl_error *error)
{
    if (is_own(run->a, run->slice->records[i]))
        return SL_OK;
    enum sl_status status = run->a->per_event ? SL_OK : check_table(run, run->slice->records[i], error);
    if (status != SL_OK)
        return status;
    uint32_t u = unit_of(run, i);
    if (run->is_blocked[u]) {
        (void)run->a->host->fail(error, SL_REJECT, "Behind", "an earlier change of the item was rejected");
        sl_outcome_unknown(&run->outcome, i, error);
        return SL_OK;
    }
    status = change_make(run, i, &run->changes[i], error);
    if (status == SL_OK) {
        change_link(run, &run->units[u], (uint32_t)i);
    } else if (status == SL_REJECT) {
        run->is_blocked[u] = true;
        sl_outcome_fail(&run->outcome, i, error);
        status = SL_OK;
    }
    return status;
}

/* ---- what a unit adds ---- */

/* From a row of that order and contribution on: walks over the changes behind it, and makes the unit's
 * difference and its new row. */
static void unit_walk(struct run *run, struct aggregate_unit *unit, struct sl_span from_order,
                      struct aggregate_part current)
{
    struct aggregate_tally *t = &run->tally;
    struct aggregate_part none = {0}, begin = current;
    unit->delta.first = run->deltas.n;
    for (uint32_t i = unit->first; i != NONE; i = run->changes[i].next) {
        const struct change *change = &run->changes[i];
        if (from_order.ptr && memcmp(change->order.ptr, from_order.ptr, AGGREGATE_ORDER_DIGITS) <= 0)
            continue;
        if (change->keeps)
            aggregate_difference(t, begin, current, &run->deltas);
        current = change->keeps ? none : change->after;
        begin = change->keeps ? none : begin;
    }
    aggregate_difference(t, begin, current, &run->deltas);
    unit->delta.n = run->deltas.n - unit->delta.first;
    const struct change *last = &run->changes[unit->last];
    bool is_over = run->a->host->record_event(run->slice->records[unit->last]) == SL_REMOVE;
    unit->item = aggregate_ledger_row(t, unit->key, last->order, aggregate_ledger_text(t, current), is_over);
}

static struct sl_span text_value(struct run *run, struct sl_span text)
{
    struct sl_value value = {.type = SL_S, .raw = text};
    return sl_text_value(run->a->host, value, run->slice->arena);
}

/* The row is known: nothing less will do. */
static void unit_expect(struct run *run, struct aggregate_unit *unit, const struct aggregate_row *row)
{
    unit->n_tests = 1;
    unit->tests[0] = (struct sl_test){.verb = SL_ABSENT, .name = SL_TEXT("order")};
    if (row->exists)
        unit->tests[0] =
            (struct sl_test){.verb = SL_EQ, .name = SL_TEXT("order"), .value = text_value(run, row->order)};
    unit_walk(run, unit, row->order, row->terms);
}

/* The row is guessed: older than the first change, and with the contribution that the old image shows. */
static void unit_guess(struct run *run, struct aggregate_unit *unit, struct aggregate_part before)
{
    struct sl_span none = {NULL, 0};
    const struct change *first = &run->changes[unit->first];
    struct sl_span order = {first->order.ptr - 6, AGGREGATE_ORDER_DIGITS + 8};
    unit->tests[0] = (struct sl_test){.verb = SL_LT, .name = SL_TEXT("order"), .value = order};
    unit->tests[1] = (struct sl_test){
        .verb = SL_EQ, .name = SL_TEXT("sums"), .value = aggregate_ledger_text(&run->tally, before)};
    unit->n_tests = 2;
    unit_walk(run, unit, none, before);
}

/* A row read from the ledger: the unit is done when it already holds the last of its changes. A change that
 * adds nothing is written all the same, so that an older one that was parked finds it. */
static enum sl_status unit_take_row(struct run *run, struct aggregate_unit *unit, struct sl_span item,
                                    struct sl_error *error)
{
    struct aggregate_row row;
    enum sl_status status = aggregate_ledger_read(&run->tally, item, &row, error);
    if (status != SL_OK)
        return status;
    const struct change *last = &run->changes[unit->last];
    if (row.exists && row.order.len == AGGREGATE_ORDER_DIGITS &&
        memcmp(row.order.ptr, last->order.ptr, AGGREGATE_ORDER_DIGITS) >= 0)
        unit->state = AGGREGATE_DONE;
    else
        unit_expect(run, unit, &row);
    return SL_OK;
}

/* ---- results ---- */

static void unit_failed(void *arg, struct aggregate_unit *unit, const struct sl_error *error)
{
    struct run *run = arg;
    unit->state = AGGREGATE_FAILED;
    for (uint32_t i = unit->first; i != NONE; i = run->changes[i].next) {
        if (error->status == SL_REJECT)
            sl_outcome_unknown(&run->outcome, i, error);
        else
            sl_outcome_fail(&run->outcome, i, error);
    }
}

static void unit_refused(void *arg, struct aggregate_unit *unit, struct sl_span item)
{
    struct run *run = arg;
    struct sl_error error = {.offset = SIZE_MAX};
    if (run->a->per_event)
        unit->state = AGGREGATE_DONE; /* counted before */
    else if (unit_take_row(run, unit, item, &error) != SL_OK)
        unit_failed(run, unit, &error);
}

/* ---- what is expected of the ledger ---- */

/* An item that did not contribute and still does not needs no row. */
static bool is_idle(const struct run *run, const struct aggregate_unit *unit, struct aggregate_part before)
{
    bool idle = before.n == 0;
    for (uint32_t i = unit->first; i != NONE && idle; i = run->changes[i].next)
        idle = run->changes[i].after.n == 0;
    return idle;
}

/* True when the row has to be read: the stream does not show what the item was. */
static bool unit_prepare(struct run *run, struct aggregate_unit *unit)
{
    const struct sl_host *host = run->a->host;
    const struct sl_record *r = run->slice->records[unit->first];
    struct aggregate_part before = {0};
    struct aggregate_row none = {0};
    bool is_new = host->record_event(r) == SL_INSERT;
    if (!is_new && host->record_image(r, SL_OLD_IMAGE).type == SL_NONE)
        return true;
    if (!is_new && aggregate_contribution(&run->tally, r, SL_OLD_IMAGE, &before, NULL) != SL_OK)
        return true;
    if (is_idle(run, unit, before))
        unit->state = AGGREGATE_DONE;
    else if (is_new)
        unit_expect(run, unit, &none);
    else
        unit_guess(run, unit, before);
    return false;
}

static void read_rows(struct run *run, struct aggregate_unit **units, size_t n)
{
    const struct aggregate *a = run->a;
    struct sl_arena *arena = run->slice->arena;
    struct sl_table_op *ops = a->host->alloc(arena, n * sizeof(*ops));
    struct sl_result *results = a->host->alloc(arena, n * sizeof(*results));
    memset(results, 0, n * sizeof(*results));
    for (size_t k = 0; k < n; k++)
        ops[k] = (struct sl_table_op){.verb = SL_TABLE_GET, .table = a->ledger_table, .key = units[k]->key};
    struct sl_call call = {.arena = arena, .deadline_ms = run->slice->deadline_ms};
    a->table->apply(a->table, ops, n, results, &call);
    for (size_t k = 0; k < n; k++) {
        struct sl_error error = {.offset = SIZE_MAX};
        if (results[k].status != SL_OK)
            sl_outcome_error(a->host, &results[k], &error);
        else
            (void)unit_take_row(run, units[k], results[k].item, &error);
        if (error.status != SL_OK)
            unit_failed(run, units[k], &error);
    }
}

static void prepare_items(struct run *run)
{
    struct aggregate_unit **unread =
        run->a->host->alloc(run->slice->arena, run->n_units * sizeof(struct aggregate_unit *));
    size_t n = 0;
    for (size_t u = 0; u < run->n_units; u++) {
        struct aggregate_unit *unit = &run->units[u];
        if (unit->first == NONE)
            unit->state = AGGREGATE_DONE;
        else if (unit_prepare(run, unit))
            unread[n++] = unit;
    }
    if (n > 0)
        read_rows(run, unread, n);
}

static void prepare_events(struct run *run)
{
    struct aggregate_part none = {0};
    struct sl_span absent = {NULL, 0};
    for (size_t u = 0; u < run->n_units; u++) {
        struct aggregate_unit *unit = &run->units[u];
        unit->state = unit->first == NONE ? AGGREGATE_DONE : AGGREGATE_PENDING;
        if (unit->first == NONE)
            continue;
        unit->delta.first = run->deltas.n;
        aggregate_difference(&run->tally, none, run->changes[unit->first].after, &run->deltas);
        unit->delta.n = run->deltas.n - unit->delta.first;
        if (unit->delta.n == 0)
            unit->state = AGGREGATE_DONE;
        unit->tests[0] = (struct sl_test){.verb = SL_ABSENT, .name = run->a->ledger_keys[0]};
        unit->n_tests = 1;
        unit->item =
            run->a->has_ledger ? aggregate_ledger_row(&run->tally, unit->key, absent, absent, true) : absent;
    }
}

/* Without a ledger what an image shows is taken to have been counted. */
static void prepare_differences(struct run *run)
{
    const struct sl_host *host = run->a->host;
    for (size_t u = 0; u < run->n_units; u++) {
        struct aggregate_unit *unit = &run->units[u];
        unit->state = AGGREGATE_DONE;
        if (unit->first == NONE || run->changes[unit->first].keeps)
            continue;
        const struct sl_record *r = run->slice->records[unit->first];
        struct aggregate_part before = {0};
        struct sl_error error = {.offset = SIZE_MAX};
        enum sl_status status = SL_OK;
        if (host->record_event(r) != SL_INSERT)
            status = host->record_image(r, SL_OLD_IMAGE).type == SL_NONE
                         ? no_image(run->a, r, "OldImage", &error)
                         : aggregate_contribution(&run->tally, r, SL_OLD_IMAGE, &before, &error);
        if (status != SL_OK) {
            sl_outcome_fail(&run->outcome, unit->first, &error);
            continue;
        }
        unit->state = AGGREGATE_PENDING;
        unit->delta.first = run->deltas.n;
        aggregate_difference(&run->tally, before, run->changes[unit->first].after, &run->deltas);
        unit->delta.n = run->deltas.n - unit->delta.first;
    }
}

/* ---- writing ---- */

static bool any_pending(const struct run *run)
{
    for (size_t u = 0; u < run->n_units; u++)
        if (run->units[u].state == AGGREGATE_PENDING)
            return true;
    return false;
}

static void write_units(struct run *run)
{
    struct aggregate_write w = {.tally = &run->tally,
                                .slice = run->slice,
                                .deltas = &run->deltas,
                                .units = run->units,
                                .n_units = run->n_units,
                                .arg = run,
                                .failed = unit_failed,
                                .refused = unit_refused};
    for (int round = 0; round < ROUNDS && any_pending(run); round++)
        aggregate_write_units(&w);
    struct sl_error error = {.offset = SIZE_MAX};
    (void)run->a->host->fail(&error, SL_RETRY, "LedgerBusy",
                             "another invocation kept changing the same rows");
    for (size_t u = 0; u < run->n_units; u++)
        if (run->units[u].state == AGGREGATE_PENDING)
            unit_failed(run, &run->units[u], &error);
}

static void extreme_result(struct run *run, uint32_t x, const struct sl_result *result)
{
    struct sl_error error;
    sl_outcome_error(run->a->host, result, &error);
    for (uint32_t k = 0; k < run->tally.n_feeds; k++) {
        if (run->tally.feeds[k].extreme != x)
            continue;
        if (error.status == SL_REJECT)
            sl_outcome_unknown(&run->outcome, run->tally.feeds[k].record, &error);
        else
            sl_outcome_fail(&run->outcome, run->tally.feeds[k].record, &error);
    }
}

/* Running values only ever grow (or shrink): repeating one changes nothing, so they stand apart from the
 * transactions, in which they cannot be. */
static void write_extremes(struct run *run)
{
    const struct aggregate *a = run->a;
    struct aggregate_tally *t = &run->tally;
    struct sl_arena *arena = run->slice->arena;
    uint32_t n = t->extreme_of.n;
    struct sl_table_op *ops = a->host->alloc(arena, n * sizeof(*ops));
    struct sl_set(*sets)[2] = a->host->alloc(arena, n * sizeof(*sets));
    struct sl_result *results = a->host->alloc(arena, n * sizeof(*results));
    memset(results, 0, n * sizeof(*results));
    for (uint32_t x = 0; x < n; x++) {
        const struct aggregate_extreme *extreme = &t->extremes[x];
        struct sl_value number = {.type = SL_N, .raw = extreme->number};
        sets[x][0] =
            (struct sl_set){extreme->of->verb, extreme->of->name, sl_text_value(a->host, number, arena)};
        sets[x][1] = (struct sl_set){SL_SET, SL_TEXT(AGGREGATE_OWN), text_value(run, a->name)};
        ops[x] = (struct sl_table_op){.verb = SL_TABLE_UPDATE,
                                      .key = t->counters.entries[extreme->counter].text,
                                      .sets = sets[x],
                                      .n_sets = a->marks_own ? 2 : 1};
    }
    struct sl_call call = {.arena = arena, .deadline_ms = run->slice->deadline_ms};
    if (n > 0)
        a->table->apply(a->table, ops, n, results, &call);
    for (uint32_t x = 0; x < n; x++)
        if (results[x].status != SL_OK)
            extreme_result(run, x, &results[x]);
}

/* ---- the slice ---- */

static void run_init(struct run *run, const struct aggregate *a, struct sl_slice *slice)
{
    const struct sl_host *host = a->host;
    size_t n = slice->n;
    *run = (struct run){.a = a, .slice = slice, .deltas = {.host = host, .arena = slice->arena}};
    /* A changed group takes two terms away and brings two. */
    run->deltas.room = (uint32_t)(4 * n + 1);
    run->deltas.list = host->alloc(slice->arena, run->deltas.room * sizeof(*run->deltas.list));
    sl_outcome_init(&run->outcome, host, slice);
    aggregate_tally_init(&run->tally, a, slice->arena, n);
    sl_keymap_init(&run->keys, host, slice->arena, a->has_ledger ? n : 0);
    run->units = host->alloc(slice->arena, n * sizeof(*run->units));
    run->changes = host->alloc(slice->arena, n * sizeof(*run->changes));
    run->is_blocked = host->alloc(slice->arena, n * sizeof(*run->is_blocked));
}

static enum sl_status check_target(const struct aggregate *a, const struct sl_slice *slice,
                                   struct sl_error *error)
{
    if (slice->n == 0 || !sl_loop_closes(&a->target, a->host, slice->records[0]))
        return SL_OK;
    if (!a->marks_own)
        return a->host->fail(
            error, SL_FATAL, "TargetIsSource",
            "the totals are to stand in the table that the records come from, %.*s: name another one, "
            "or tell the route's own rows apart with \"own_rows\": \"mark\"",
            SL_TEXT_ARG(a->target.table));
    if (a->host->record_view(slice->records[0]) != SL_VIEW_NEW_AND_OLD_IMAGES)
        return a->host->fail(
            error, SL_FATAL, "ViewType",
            "own_rows: only a stream with NEW_AND_OLD_IMAGES tells the route's own rows apart");
    return SL_OK;
}

static enum sl_status handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    const struct aggregate *a = self;
    struct run run;
    enum sl_status status = check_target(a, slice, error);
    run_init(&run, a, slice);
    for (size_t i = 0; i < slice->n && status == SL_OK; i++) {
        struct sl_error why = {.offset = SIZE_MAX};
        status = record_take(&run, i, &why);
        if (status != SL_OK)
            return a->host->fail(error, status, why.code, "%s", why.text);
    }
    if (status != SL_OK)
        return status;
    if (a->per_event)
        prepare_events(&run);
    else if (a->has_ledger)
        prepare_items(&run);
    else
        prepare_differences(&run);
    write_units(&run);
    write_extremes(&run);
    return sl_outcome_end(&run.outcome, error);
}

/* ---- view types ---- */

static bool needs(const struct aggregate *a, enum sl_event event, enum sl_image image)
{
    if (!(a->events & 1u << event))
        return false;
    if (image == SL_NEW_IMAGE)
        return event != SL_REMOVE;
    return !a->has_ledger && event != SL_INSERT;
}

static enum sl_status accepts(void *self, enum sl_view view, struct sl_error *error)
{
    static const char *const names[] = {"unknown", "KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE",
                                        "NEW_AND_OLD_IMAGES"};
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
                         names[view],
                         a->has_ledger ? " (or NEW_IMAGE, at the price of a read per change)" : "");
}

const struct sl_handler sl_aggregate_handler = {
    .abi = SL_HANDLER_ABI,
    .name = "aggregate",
    .summary = "totals by group, exact however often records come",
    .options = aggregate_options,
    .open = aggregate_open,
    .handle = handle,
    .accepts = accepts,
};
