#include "handlers/dispatch_run.h"

#include "base/span.h"
#include "handlers/call.h"
#include "handlers/watch.h"
#include "streams/record.h"
#include "streams/when.h"

#include <stdio.h>

/* ---- choosing ---- */

/* A view type that cannot serve the handler fails the route where it first comes. */
static bool is_served(struct sl_run *run, const struct sl_record *record)
{
    struct sl_error error = {0};
    if (sl_route_accepts(run->route, sl_record_view(record), &error) == SL_OK)
        return true;
    run->stop = sl_why_new(run->d, SL_FATAL, error.code, error.text);
    return false;
}

void sl_run_init(struct sl_run *run, struct sl_dispatch *d, struct sl_route *route, struct sl_entry *entries,
                 size_t limit)
{
    *run = (struct sl_run){.d = d, .route = route, .entries = entries};
    for (size_t i = 0; i < limit; i++) {
        const struct sl_record *record = sl_batch_record(d->batch, i);
        if (route->when && !sl_when_match(route->when, record, d->arena))
            continue;
        entries[run->n++] = (struct sl_entry){.index = (uint32_t)i};
        if (is_served(run, record))
            continue;
        entries[run->n - 1] = (struct sl_entry){(uint32_t)i, SL_ENTRY_FAILED, run->stop};
        sl_dispatch_fail(d, i, route, run->stop);
        break;
    }
    route->stats.matched += run->n;
}

/* ---- what becomes of one record ---- */

static void stop(struct sl_run *run, const struct sl_why *why)
{
    run->is_stopped = true;
    run->stop = why;
}

static void fail(struct sl_run *run, struct sl_entry *entry, const struct sl_why *why)
{
    run->route->stats.failed += entry->state != SL_ENTRY_FAILED;
    entry->state = SL_ENTRY_FAILED;
    entry->why = why;
    sl_dispatch_fail(run->d, entry->index, run->route, why);
    if (run->is_stopped)
        return;
    if (why->status == SL_FATAL || sl_route_is_once_only(run->route))
        stop(run, why);
    else
        sl_held_add(&run->held, run->d, entry->index);
}

/* Rejections of that code so far, with this one. */
static size_t tally(struct sl_run *run, const char *code)
{
    size_t i = 0;
    while (i < SL_TALLIES - 1 && run->tallies[i].code && strcmp(run->tallies[i].code, code) != 0)
        i++;
    run->tallies[i].code = code;
    return ++run->tallies[i].n;
}

static size_t most_parked(const struct sl_dispatch *d)
{
    const struct sl_config *config = &d->p->config;
    if (config->max_parked_is_set)
        return config->max_parked < 0 ? SIZE_MAX : (size_t)config->max_parked;
    return d->n / 10 > 10 ? d->n / 10 : 10;
}

/* So many rejections of one kind are no poison: the environment is broken (another table's schema, a wrong
 * target), and parking would carry the whole stream away. What a once-only route rejected before is parked
 * already. */
static const struct sl_why *broken(struct sl_run *run, const struct sl_why *why, size_t count)
{
    const char *text =
        sl_arena_printf(run->d->arena,
                        "%zu records rejected with one code, more in a row than max_parked allows: "
                        "taken for a broken environment, nothing is parked; the last: %s",
                        count, why->text);
    run->route->is_distrusted = true;
    return sl_why_new(run->d, SL_FATAL, why->code, text);
}

static void give_up(struct sl_run *run, const struct sl_why *why, size_t count)
{
    const struct sl_why *fatal = broken(run, why, count);
    stop(run, fatal);
    for (size_t i = 0; i < run->n; i++) {
        struct sl_entry *entry = &run->entries[i];
        bool is_open = entry->state == SL_ENTRY_FAILED || entry->state == SL_ENTRY_REJECTED;
        if (is_open && entry->why->status == SL_REJECT && strcmp(entry->why->code, why->code) == 0)
            fail(run, entry, fatal);
    }
}

static void reject(struct sl_run *run, struct sl_entry *entry, const struct sl_why *why)
{
    size_t count = tally(run, why->code);
    entry->why = why;
    entry->state = SL_ENTRY_REJECTED;
    if (count > most_parked(run->d)) {
        give_up(run, why, count);
    } else if (run->route->n_targets == 0) {
        fail(run, entry, why);
    } else if (sl_route_is_once_only(run->route)) {
        struct sl_parked parked = {.index = entry->index, .route = run->route, .why = why};
        if (sl_park(run->d, &parked, 1))
            entry->state = SL_ENTRY_PARKED;
        else
            fail(run, entry, run->d->failure);
    }
}

static void apply(struct sl_run *run, struct sl_entry *entry)
{
    run->route->is_distrusted = false;
    entry->state = SL_ENTRY_APPLIED;
    run->route->stats.applied++;
}

/* ---- one call ---- */

/* The pending entries in [from, to), less those that have to be held back, as the next slice. */
static size_t gather(struct sl_run *run, size_t from, size_t to)
{
    struct sl_dispatch *d = run->d;
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        struct sl_entry *entry = &run->entries[i];
        if (entry->state != SL_ENTRY_PENDING)
            continue;
        if (sl_held_has(&run->held, d, entry->index)) {
            entry->state = SL_ENTRY_HELD;
            continue;
        }
        d->slice[n] = sl_batch_record(d->batch, entry->index);
        d->places[n++] = (uint32_t)i;
    }
    return n;
}

static const struct sl_why *why_of(struct sl_dispatch *d, enum sl_status status, const struct sl_error *error)
{
    bool has_text = error && error->text[0];
    return sl_why_new(d, status, error && error->code[0] ? error->code : "Unspecified",
                      has_text ? error->text : "the handler gave no reason");
}

static enum sl_status call(struct sl_run *run, size_t n, unsigned attempt, const struct sl_why **why)
{
    struct sl_dispatch *d = run->d;
    struct sl_slice_call call = {
        .slice = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(struct sl_slice)},
                  .records = d->slice,
                  .n = n,
                  .deadline_ms = run->deadline_ms,
                  .arena = d->arena,
                  .request_id = d->invocation->request_id,
                  .attempt = attempt},
        .marks = d->marks,
    };
    struct sl_error error = {0};
    enum sl_status status = sl_route_call(run->route, &call, &error);
    *why = status == SL_OK ? NULL : why_of(d, status, &error);
    return status;
}

/* What a call left to do. */
struct rest {
    size_t unknown;  /* unmarked, of a call that rejected */
    size_t retry;    /* to be tried again as they are */
    size_t settled;  /* applied, rejected or failed: the next call is smaller */
    size_t rejected; /* of these: known to be to blame */
};

static const struct sl_why *why_of_mark(struct sl_run *run, const struct sl_mark *mark,
                                        const struct sl_why *call_why)
{
    if (mark->is_set && mark->why)
        return why_of(run->d, mark->status, mark->why);
    if (call_why && call_why->status == mark->status)
        return call_why;
    return why_of(run->d, mark->status, NULL);
}

static void settle_one(struct sl_run *run, struct sl_entry *entry, const struct sl_mark *mark,
                       const struct sl_why *call_why, struct rest *rest)
{
    switch (mark->status) {
    case SL_OK:
        apply(run, entry);
        rest->settled++;
        break;
    case SL_RETRY:
        run->last_retry = why_of_mark(run, mark, call_why);
        rest->retry++;
        break;
    case SL_REJECT:
        if (!mark->is_set) {
            rest->unknown++;
            break;
        }
        reject(run, entry, why_of_mark(run, mark, call_why));
        rest->settled++;
        rest->rejected++;
        break;
    default:
        fail(run, entry, why_of_mark(run, mark, call_why));
        rest->settled++;
    }
}

/* A once-only route parks as it goes, so that too many rejections have to be seen before the first is parked:
 * those that one call marks. While the route is distrusted, since the last such call and until something
 * succeeds, one is too many: else each delivery would park a little more of the stream. */
static const struct sl_why *foresee(struct sl_run *run, size_t n)
{
    struct sl_tally before[SL_TALLIES];
    const struct sl_why *first = NULL, *worst = NULL;
    size_t most = most_parked(run->d), count = 0, applied = 0;
    memcpy(before, run->tallies, sizeof(before));
    for (size_t i = 0; i < n && !worst; i++) {
        const struct sl_mark *mark = &run->d->marks[i];
        applied += mark->is_set && mark->status == SL_OK;
        if (!mark->is_set || mark->status != SL_REJECT)
            continue;
        const struct sl_why *why = why_of_mark(run, mark, NULL);
        count = tally(run, why->code);
        first = first ? first : why;
        worst = count > most ? why : NULL;
    }
    memcpy(run->tallies, before, sizeof(before));
    if (!worst && run->route->is_distrusted && !applied && most < SIZE_MAX)
        worst = first;
    return worst ? broken(run, worst, count) : NULL;
}

static struct rest take_outcome(struct sl_run *run, size_t n, enum sl_status status, const struct sl_why *why)
{
    struct sl_dispatch *d = run->d;
    struct rest rest = {0};
    struct sl_entry *unknown = NULL;
    const struct sl_why *broken_why = sl_route_is_once_only(run->route) ? foresee(run, n) : NULL;
    for (size_t i = 0; i < n; i++) {
        struct sl_mark mark = d->marks[i];
        struct sl_entry *entry = &run->entries[d->places[i]];
        if (!mark.is_set)
            mark = (struct sl_mark){.status = status};
        if (!mark.is_set && status == SL_REJECT)
            unknown = entry;
        if (!broken_why || mark.status != SL_REJECT)
            settle_one(run, entry, &mark, why, &rest);
    }
    if (broken_why) {
        stop(run, broken_why);
        return rest;
    }
    /* The only one that can have been to blame. */
    if (rest.unknown == 1 && rest.rejected == 0 && rest.retry == 0) {
        reject(run, unknown, why);
        rest.unknown = 0;
    }
    return rest;
}

/* ---- isolating ---- */

/* The entry at which the pending ones in [from, to) fall into halves. */
static size_t middle(const struct sl_run *run, size_t from, size_t to)
{
    size_t n = 0, half = 0;
    for (size_t i = from; i < to; i++)
        n += run->entries[i].state == SL_ENTRY_PENDING;
    for (size_t i = from; i < to; i++)
        if (run->entries[i].state == SL_ENTRY_PENDING && half++ == n / 2)
            return i;
    return to;
}

static void stop_for_time(struct sl_run *run)
{
    if (!run->last_retry)
        run->last_retry = sl_why_new(run->d, SL_RETRY, "DeadlineReached",
                                     "the time of this route was over before these records");
    stop(run, run->last_retry);
}

static void run_slice(struct sl_run *run, size_t from, size_t to, unsigned attempt)
{
    for (unsigned tries = 0; !run->is_stopped; attempt++) {
        const struct sl_why *why;
        size_t n = gather(run, from, to);
        if (n == 0)
            return;
        if (sl_dispatch_now(run->d) >= run->deadline_ms) {
            stop_for_time(run);
            return;
        }
        enum sl_status status = call(run, n, attempt, &why);
        struct rest rest = take_outcome(run, n, status, why);
        if (run->is_stopped || rest.unknown + rest.retry == 0)
            return;
        tries = rest.settled ? 0 : tries;
        if (rest.retry && !sl_dispatch_back_off(run->d, tries++, run->deadline_ms)) {
            stop_for_time(run);
            return;
        }
        /* A record known to be to blame explains the rejection: the others may do well together. */
        if (rest.unknown && !rest.rejected) {
            size_t mid = middle(run, from, to);
            run_slice(run, from, mid, attempt + 1);
            run_slice(run, mid, to, attempt + 1);
            return;
        }
    }
}

/* ---- records to be called alone ---- */

/* Settles entry i by what came of it in a process of its own; false: it has to be tried again. */
static bool settle_trial(struct sl_run *run, size_t i, const struct sl_trial *trial)
{
    struct sl_entry *entry = &run->entries[i];
    const struct sl_why *why = sl_trial_why(run->d, trial);
    struct rest rest = {0};
    struct sl_mark mark = {true, why ? why->status : trial->status, NULL};
    if (!why && mark.status != SL_OK)
        why = why_of(run->d, mark.status, &trial->error);
    settle_one(run, entry, &mark, why, &rest);
    if (trial->end == SL_TRIAL_TIMED_OUT)
        stop_for_time(run);
    return !rest.retry;
}

/* False: it is a record like any other. */
static bool run_alone(struct sl_run *run, size_t i)
{
    for (unsigned tries = 0; !run->is_stopped; tries++) {
        struct sl_trial trial;
        if (!gather(run, i, i + 1))
            return true;
        if (sl_dispatch_now(run->d) >= run->deadline_ms) {
            stop_for_time(run);
        } else if (!sl_run_alone(run, i, tries, &trial)) {
            return false;
        } else if (settle_trial(run, i, &trial)) {
            return true;
        } else if (!run->is_stopped && !sl_dispatch_back_off(run->d, tries, run->deadline_ms)) {
            stop_for_time(run);
        }
    }
    return true;
}

/* ---- slices ---- */

static size_t slice_end(const struct sl_run *run, size_t from, size_t to)
{
    const struct sl_route *route = run->route;
    size_t n = 0, bytes = 0, i = from;
    for (; i < to; i++) {
        if (route->max_bytes)
            bytes += sl_record_text(sl_batch_record(run->d->batch, run->entries[i].index), SL_FIELD_RAW).len;
        if (n && ((route->max_records && n >= route->max_records) ||
                  (route->max_bytes && bytes > route->max_bytes) || sl_run_is_suspect(run, i)))
            break;
        n++;
    }
    return i;
}

/* A rejection that ends a once-only route is that record's alone: the others are to be tried again. */
static const struct sl_why *why_of_pending(struct sl_run *run)
{
    if (run->stop->status != SL_REJECT)
        return run->stop;
    return run->last_retry ? run->last_retry
                           : sl_why_new(run->d, SL_RETRY, "NotTried", "another record's failure came first");
}

void sl_run_entries(struct sl_run *run, size_t from, size_t to)
{
    while (from < to && !run->is_stopped) {
        size_t end = from + 1;
        if (!sl_run_is_suspect(run, from) || !run_alone(run, from)) {
            end = slice_end(run, from, to);
            run_slice(run, from, end, 0);
        }
        if (run->is_stopped)
            break;
        from = end;
    }
    const struct sl_why *why = run->is_stopped ? why_of_pending(run) : NULL;
    for (; from < to; from++)
        if (run->entries[from].state == SL_ENTRY_PENDING)
            fail(run, &run->entries[from], why);
}
