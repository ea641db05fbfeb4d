/* One route over one batch: calls the handler on slices, isolates what it rejects, retries what the outside
 * world failed, and holds back later records of failed items. */
#include "base/span.h"
#include "handlers/dispatch/dispatch_call.h"
#include "handlers/dispatch/dispatch_private.h"
#include "streams/record.h"
#include "streams/when/when.h"

#include <stdio.h>

/* ---- choosing ---- */

/* The route fails at the first record whose view type the handler does not accept. */
static bool is_served(struct sl_run *run, const struct sl_record *record)
{
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = sl_route_accepts(run->route, sl_record_view(record), &error);
    if (status == SL_OK)
        return true;
    run->stop = sl_dispatch_why(run->d, SL_FATAL, error.code, error.text);
    return false;
}

/* A record without an image that `when` needs is never passed over: of a stream of this view type, all are
 * such. Where the view type is not known, it may be this record alone. False: the route stops. */
static bool is_judged(struct sl_run *run, const struct sl_record *record, size_t index, unsigned lacks)
{
    struct sl_dispatch *d = run->d;
    enum sl_view view = sl_record_view(record);
    struct sl_entry *entry = &run->entries[run->n++];
    const char *image = lacks & 1u << SL_NEW_IMAGE   ? "NewImage"
                        : lacks & 1u << SL_OLD_IMAGE ? "OldImage"
                                                     : "Keys";
    const struct sl_why *why = sl_dispatch_why(
        d, view == SL_VIEW_UNKNOWN ? SL_REJECT : SL_FATAL, "ViewType",
        sl_arena_printf(d->arena,
                        "the record has no %s, which the route's \"when\" needs: enable the stream "
                        "with NEW_AND_OLD_IMAGES",
                        image));
    *entry = (struct sl_entry){.index = (uint32_t)index};
    if (why->status == SL_REJECT) {
        sl_run_reject(run, entry, why);
        return !run->is_stopped;
    }
    run->stop = why;
    *entry = (struct sl_entry){.index = (uint32_t)index, .state = SL_ENTRY_FAILED, .why = why};
    sl_dispatch_fail(d, index, run->route, why);
    return false;
}

bool sl_run_takes(const struct sl_dispatch *d, const struct sl_route *route)
{
    return !route->is_left_out && (!d->late || route == &d->p->routes[d->late->route]);
}

/* A late record that the handler may no longer know: whether it was applied, or came before a removal. Any
 * mark that could refuse it was written after it was created. A day is for clocks, and for what expires
 * early. */
static bool is_too_late(const struct sl_dispatch *d, const struct sl_route *route,
                        const struct sl_record *record)
{
    int64_t remembers_s = route->aside.remembers_s;
    if (!d->late || !remembers_s || d->p->is_replay)
        return false;
    return (d->clock->wall_ns(d->clock) - sl_record_created_ns(record)) / 1000000000 >= remembers_s - 86400;
}

static void reject_late(struct sl_run *run, struct sl_entry *entry)
{
    sl_run_reject(
        run, entry,
        sl_dispatch_why(run->d, SL_REJECT, SL_TOO_LATE,
                        "the record waited for longer than the handler remembers what it has applied: "
                        "`sluice verify` finds what it would have changed, and `sluice repair` sets it "
                        "right"));
}

void sl_run_init(struct sl_run *run, struct sl_dispatch *d, struct sl_route *route, struct sl_entry *entries,
                 size_t limit)
{
    const bool is_taken = sl_run_takes(d, route);
    *run = (struct sl_run){.d = d, .route = route, .entries = entries};
    for (size_t i = 0; is_taken && i < limit && !d->is_ruined; i++) {
        const struct sl_record *record = sl_batch_record(d->batch, i);
        if (route->when && !d->late && !sl_when_match(route->when, record, d->arena)) {
            unsigned lacks = sl_when_lacks(route->when, record, d->arena);
            if (lacks && !is_judged(run, record, i, lacks))
                break;
            continue;
        }
        entries[run->n++] = (struct sl_entry){.index = (uint32_t)i};
        if (is_too_late(d, route, record)) {
            reject_late(run, &entries[run->n - 1]);
            continue;
        }
        if (is_served(run, record))
            continue;
        entries[run->n - 1] =
            (struct sl_entry){.index = (uint32_t)i, .state = SL_ENTRY_FAILED, .why = run->stop};
        sl_dispatch_fail(d, i, route, run->stop);
        break;
    }
    if (route->loaded.handler.accepts)
        sl_dispatch_look(d, route, "accepts");
    if (d->is_ruined)
        sl_run_stop(run, d->failure);
}

/* ---- one call ---- */

struct outcome {
    enum sl_status status;
    const struct sl_why *why; /* NULL: SL_OK */
    bool is_misused;
};

static void call(struct sl_run *run, size_t n, unsigned attempt, struct outcome *out)
{
    struct sl_dispatch *d = run->d;
    struct sl_slice_call call = {
        .slice = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(struct sl_slice)},
                  .records = d->slice,
                  .n = n,
                  .deadline_ms = run->deadline_ms,
                  .arena = d->arena,
                  .request_id = d->request_id,
                  .attempt = attempt,
                  .epoch = d->late ? d->late->epoch : -1},
        .marks = d->marks,
    };
    struct sl_error error = SL_NO_ERROR;
    const int64_t began_ms = sl_dispatch_now(d);
    run->n_calls++;
    out->status = sl_dispatch_call(run->route, &call, &error);
    if (out->status == SL_OK)
        run->route->aside.good_ms = sl_dispatch_now(d) - began_ms;
    out->is_misused = call.is_misused;
    out->why = out->status == SL_OK ? NULL : sl_dispatch_why_of(d, out->status, &error);
    if (!call.has_closed)
        return;
    sl_dispatch_ruin(d, run->route, out->why);
    sl_run_stop(run, out->why);
}

static struct sl_rest take_outcome(struct sl_run *run, size_t n, const struct outcome *outcome)
{
    struct sl_dispatch *d = run->d;
    struct sl_rest rest = {0};
    struct sl_entry *unknown = NULL;
    const struct sl_why *broken_why = sl_route_is_once_only(run->route) ? sl_run_foresee(run, n) : NULL;
    /* What succeeded first: it vouches for the configuration when the others are judged. */
    for (size_t k = 0; k < 2 * n; k++) {
        size_t i = k < n ? k : k - n;
        struct sl_mark mark = d->marks[i];
        struct sl_entry *entry = &run->entries[d->places[i]];
        if (!mark.is_set)
            mark = (struct sl_mark){.status = outcome->status, .note = mark.note};
        if ((mark.status == SL_OK) != (k < n))
            continue;
        if (!mark.is_set && mark.status == SL_REJECT)
            unknown = entry;
        if (!broken_why || mark.status != SL_REJECT)
            sl_run_settle(run, entry, &mark, outcome->why, &rest);
    }
    if (broken_why) {
        sl_run_stop(run, broken_why);
        return rest;
    }
    /* Only this record can be to blame. */
    if (rest.unknown == 1 && rest.rejected == 0 && rest.retry == 0) {
        sl_run_reject(run, unknown, outcome->why);
        rest.unknown = 0;
    }
    return rest;
}

/* ---- isolating ---- */

/* The entry that divides the pending ones in [from, to) into halves. There are some. */
static size_t middle(const struct sl_run *run, size_t from, size_t to)
{
    size_t n = 0, mid = from;
    for (size_t i = from; i < to; i++)
        n += run->entries[i].state == SL_ENTRY_PENDING;
    for (n /= 2; run->entries[mid].state != SL_ENTRY_PENDING || n-- > 0;)
        mid++;
    return mid;
}

static void run_halves(struct sl_run *run, size_t from, size_t to, unsigned attempt);
static void isolate_misuse(struct sl_run *run, size_t from, size_t to, unsigned attempt);

static void run_slice(struct sl_run *run, size_t from, size_t to, unsigned attempt)
{
    for (unsigned tries = 0; !run->is_stopped; attempt++) {
        struct outcome outcome;
        size_t n = sl_run_gather(run, from, to);
        if (n == 0)
            return;
        if (sl_dispatch_now(run->d) >= run->deadline_ms) {
            sl_run_stop_for_time(run);
            return;
        }
        call(run, n, attempt, &outcome);
        if (run->is_stopped)
            return;
        if (outcome.is_misused) {
            isolate_misuse(run, from, to, attempt + 1);
            return;
        }
        struct sl_rest rest = take_outcome(run, n, &outcome);
        if (run->is_stopped || rest.unknown + rest.retry == 0)
            return;
        tries = rest.settled ? 0 : tries;
        if (rest.retry && !sl_dispatch_back_off(run->d, tries++, run->deadline_ms)) {
            sl_run_stop_for_time(run);
            return;
        }
        /* A record that is known to be to blame explains the rejection: the others may succeed together. */
        if (rest.unknown && !rest.rejected) {
            run_halves(run, from, to, attempt + 1);
            return;
        }
    }
}

static void run_halves(struct sl_run *run, size_t from, size_t to, unsigned attempt)
{
    size_t mid = middle(run, from, to);
    run_slice(run, from, mid, attempt);
    run_slice(run, mid, to, attempt);
}

/* Nothing that the call said is believed. Effects that cannot be repeated may have happened: each record is
 * given once more, alone. */
static void isolate_misuse(struct sl_run *run, size_t from, size_t to, unsigned attempt)
{
    size_t n = sl_run_gather(run, from, to);
    if (n == 1)
        sl_run_alone(run, run->d->places[0], true);
    else if (!sl_route_is_once_only(run->route))
        run_halves(run, from, to, attempt);
    else
        for (size_t i = from; i < to; i++)
            run_slice(run, i, i + 1, attempt);
}

/* ---- slices ---- */

static bool is_suspect(const struct sl_run *run, size_t i)
{
    return sl_dispatch_is_suspect(run->d, run->route, run->entries[i].index);
}

/* The route rejected it at an earlier delivery, of which others were not done: a call that has it would be
 * halved again and again, and the time might never be enough. */
static bool was_rejected(const struct sl_run *run, size_t i)
{
    return !run->d->late && !sl_route_is_once_only(run->route) &&
           sl_memory_has(&run->d->p->rejected, run->d, run->route, run->entries[i].index);
}

static size_t slice_end(const struct sl_run *run, size_t from, size_t to)
{
    const struct sl_route *route = run->route;
    size_t n = 0, bytes = 0, i = from;
    for (; i < to; i++) {
        if (route->max_bytes)
            bytes += sl_record_text(sl_batch_record(run->d->batch, run->entries[i].index), SL_FIELD_RAW).len;
        if (n &&
            ((route->max_records && n >= route->max_records) ||
             (route->max_bytes && bytes > route->max_bytes) || is_suspect(run, i) || was_rejected(run, i)))
            break;
        n++;
    }
    return i;
}

/* A rejection that stops a once-only route concerns that record alone: the others are to be tried again. */
static const struct sl_why *why_of_pending(struct sl_run *run)
{
    if (run->stop->status != SL_REJECT)
        return run->stop;
    return run->last_retry
               ? run->last_retry
               : sl_dispatch_why(run->d, SL_RETRY, "NotTried", "another record's failure came first");
}

void sl_run_entries(struct sl_run *run, size_t from, size_t to)
{
    while (from < to && !run->is_stopped) {
        size_t end = from + 1;
        if (!is_suspect(run, from) || !sl_run_alone(run, from, false)) {
            end = was_rejected(run, from) ? from + 1 : slice_end(run, from, to);
            run_slice(run, from, end, 0);
        }
        if (run->is_stopped)
            break;
        from = end;
    }
    const struct sl_why *why = run->is_stopped ? why_of_pending(run) : NULL;
    for (; from < to; from++)
        if (run->entries[from].state == SL_ENTRY_PENDING)
            sl_run_fail(run, &run->entries[from], why);
}
