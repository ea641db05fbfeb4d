/* Dispatch: one batch through all routes in two phases, to one answer. */
#include "handlers/dispatch/dispatch.h"

#include "base/array.h"
#include "base/span.h"
#include "handlers/dispatch/dispatch_private.h"
#include "handlers/dispatch/watch.h"
#include "streams/record.h"

#include <stdlib.h>

/* ---- time ---- */

/* Time reserved for the answer. */
static int64_t reserve_ms(const struct sl_dispatch *d)
{
    int64_t left = d->deadline_ms - sl_dispatch_now(d);
    int64_t reserve = left / 20 < 100 ? 100 : left / 20 > 2000 ? 2000 : left / 20;
    if (d->p->config.reserve_ms >= 0)
        reserve = d->p->config.reserve_ms;
    return reserve > left / 2 ? left / 2 : reserve;
}

/* Each route that is still to come gets an equal share of the time left, parking a quarter of a share, and
 * letters too. */
static int64_t share_end(const struct sl_dispatch *d, size_t route)
{
    int64_t quarters = 0, left = d->end_ms - sl_dispatch_now(d);
    bool parks = false, sets_aside = false;
    for (size_t i = 0; i < d->p->n; i++) {
        if (d->late && !sl_run_takes(d, &d->p->routes[i]))
            continue;
        bool is_past = i < route && !sl_route_is_once_only(&d->p->routes[i]);
        quarters += is_past ? 0 : 4;
        parks = parks || d->p->routes[i].n_targets;
        sets_aside = sets_aside || (d->p->routes[i].aside.queue && !d->late);
    }
    return d->end_ms - left + left * 4 / (quarters + parks + sets_aside);
}

/* So long once-only routes may take: those that let go of a target that is down leave time for the others,
 * and all leave some for letters. */
static int64_t lane_end(const struct sl_dispatch *d, const struct sl_route *route)
{
    int64_t shares = 1, left = d->end_ms - sl_dispatch_now(d);
    for (size_t i = 0; i < d->p->n && !d->late; i++)
        shares += sl_route_is_once_only(&d->p->routes[i]) && d->p->routes[i].aside.queue;
    if (shares == 1)
        return d->end_ms;
    return d->end_ms - left + (route->aside.queue ? left / shares : left - left / (4 * shares));
}

/* ---- phase 1: what can be repeated ---- */

static const char *sequence_of(struct sl_dispatch *d, size_t index)
{
    return sl_arena_copy(d->arena, sl_record_text(sl_batch_record(d->batch, index), SL_FIELD_IDENTIFIER));
}

/* One line for all that a route rejected, and one for all that failed. Each names the first record. */
static void say_outcome(struct sl_run *run)
{
    struct sl_dispatch *d = run->d;
    size_t rejected = 0, failed = 0;
    const struct sl_entry *first_rejected = NULL, *first_failed = NULL;
    for (size_t i = 0; i < run->n; i++) {
        const struct sl_entry *entry = &run->entries[i];
        if (entry->state == SL_ENTRY_REJECTED || entry->state == SL_ENTRY_PARKED) {
            first_rejected = rejected++ ? first_rejected : entry;
        } else if (entry->state == SL_ENTRY_FAILED || entry->state == SL_ENTRY_HELD) {
            first_failed = failed++ ? first_failed : entry;
        }
    }
    sl_route_enter(run->route);
    struct sl_log *log = d->p->options.log;
    if (rejected)
        sl_log(log, SL_WARN,
               "%zu of %zu records rejected; they will be parked; the first, sequence number %s: %s: %s",
               rejected, run->n, sequence_of(d, first_rejected->index), first_rejected->why->code,
               first_rejected->why->text);
    if (failed)
        sl_log(log, first_failed->why->status == SL_RETRY ? SL_WARN : SL_ERROR,
               "%zu of %zu records not applied (%s); the first, sequence number %s: %s: %s", failed, run->n,
               sl_status_name(first_failed->why->status), sequence_of(d, first_failed->index),
               first_failed->why->code, first_failed->why->text);
    sl_route_leave(run->route);
}

static void note_parked(struct sl_dispatch *d, const struct sl_run *run)
{
    for (size_t i = 0; i < run->n; i++) {
        if (run->entries[i].state != SL_ENTRY_REJECTED)
            continue;
        SL_PUSH_IN(d->arena, d->parked, d->n_parked, d->room_parked) = (struct sl_parked){
            .index = run->entries[i].index, .route = run->route, .why = run->entries[i].why};
    }
}

/* A record that an earlier route rejected is still given to the later routes: it may be poison for that one
 * route alone. The records after it are not: they will be delivered again. */
static size_t limit_of(const struct sl_dispatch *d)
{
    return d->k < d->n && d->failure->status == SL_REJECT ? d->k + 1 : d->k;
}

static void skip_remembered(struct sl_run *run)
{
    bool looks = sl_route_is_once_only(run->route) && run->d->p->memory.n;
    for (size_t i = 0; (looks || run->route->aside.n_seen) && i < run->n; i++) {
        struct sl_entry *entry = &run->entries[i];
        entry->is_remembered = sl_memory_has_aside(run->d, run->route, entry->index) ||
                               (looks && sl_memory_has(&run->d->p->memory, run->d, run->route, entry->index));
        if (entry->is_remembered)
            entry->state = SL_ENTRY_APPLIED;
    }
}

/* What was durably parked before it was delivered again is with whoever redrives it: its letter would be
 * parked once more. */
static void leave_parked(struct sl_run *run)
{
    for (size_t i = 0; run->d->p->memory.n && i < run->n; i++) {
        struct sl_entry *entry = &run->entries[i];
        if (entry->state == SL_ENTRY_ASIDE &&
            sl_memory_has(&run->d->p->memory, run->d, run->route, entry->index)) {
            entry->state = SL_ENTRY_APPLIED;
            entry->is_remembered = true;
        }
    }
}

static void run_repeatable(struct sl_dispatch *d, size_t route, struct sl_run *run, struct sl_entry *entries)
{
    sl_run_init(run, d, &d->p->routes[route], entries, limit_of(d));
    run->deadline_ms = share_end(d, route);
    skip_remembered(run);
    sl_aside_run(run, 0, run->n);
    if (!d->is_ruined)
        sl_run_judge(run);
    leave_parked(run);
    sl_rate_note(run);
    sl_count_run(run);
    note_parked(d, run);
    sl_aside_note(run);
    if (d->is_ruined)
        return;
    say_outcome(run);
}

/* ---- phase 2: what is done once, below the checkpoint ---- */

/* Several routes take turns, so many records each. The step grows while all goes well: when one route has an
 * outage, the others have little to repeat. */
#define FIRST_STEP 1
#define LAST_STEP  256

struct lanes {
    struct sl_run *runs;
    size_t *at; /* next entry of each */
    size_t n;
};

static int by_place(const void *a, const void *b)
{
    const struct sl_parked *x = a, *y = b;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return (x->route > y->route) - (x->route < y->route);
}

static bool is_done(const struct sl_entry *entry)
{
    return entry->state == SL_ENTRY_APPLIED || entry->state == SL_ENTRY_PARKED;
}

/* Remembers what was done for records that will be delivered again: of a letter, all of them. */
static void remember(struct sl_dispatch *d, const struct lanes *lanes)
{
    size_t floor = d->late ? 0 : sl_answer_floor(d);
    for (size_t i = 0; i < d->n_parked; i++) {
        if (d->parked[i].index < floor)
            continue;
        if (d->parked[i].is_durable)
            sl_memory_add(&d->p->memory, d, d->parked[i].route, d->parked[i].index);
        if (!d->late)
            sl_memory_add(&d->p->rejected, d, d->parked[i].route, d->parked[i].index);
    }
    for (size_t i = 0; i < d->n_asides; i++)
        if (d->asides[i].is_durable && d->asides[i].index >= floor)
            sl_memory_add_aside(d, d->asides[i].route, d->asides[i].index);
    for (size_t i = 0; i < lanes->n; i++) {
        const struct sl_run *run = &lanes->runs[i];
        for (size_t k = 0; k < run->n; k++)
            if (run->entries[k].index >= floor && is_done(&run->entries[k]))
                sl_memory_add(&d->p->memory, d, run->route, run->entries[k].index);
    }
}

static struct lanes choose_lanes(struct sl_dispatch *d)
{
    struct lanes lanes = {0};
    lanes.runs = sl_arena_zalloc(d->arena, d->p->n * sizeof(*lanes.runs));
    lanes.at = sl_arena_zalloc(d->arena, d->p->n * sizeof(*lanes.at));
    for (size_t i = 0; i < d->p->n && d->k; i++) {
        if (!sl_route_is_once_only(&d->p->routes[i]))
            continue;
        struct sl_entry *entries = sl_arena_alloc(d->arena, d->k * sizeof(*entries));
        sl_run_init(&lanes.runs[lanes.n], d, &d->p->routes[i], entries, d->k);
        lanes.runs[lanes.n].deadline_ms = lane_end(d, &d->p->routes[i]);
        skip_remembered(&lanes.runs[lanes.n]);
        lanes.n += lanes.runs[lanes.n].n > 0;
    }
    return lanes;
}

/* Runs every lane up to record `end`, or up to where an earlier lane failed: nothing below the checkpoint may
 * be missed. */
static void run_lanes(struct sl_dispatch *d, struct lanes *lanes, size_t end)
{
    for (size_t i = 0; i < lanes->n; i++) {
        struct sl_run *run = &lanes->runs[i];
        size_t from = lanes->at[i], to = from;
        while (to < run->n && run->entries[to].index < end && run->entries[to].index < d->k)
            to++;
        if (to > from)
            sl_aside_run(run, from, to);
        lanes->at[i] = to;
    }
}

static size_t parked_at(const struct sl_dispatch *d, size_t from, size_t index)
{
    size_t n = 0;
    while (from + n < d->n_parked && d->parked[from + n].index == index)
        n++;
    return n;
}

static void run_interleaved(struct sl_dispatch *d, struct lanes *lanes)
{
    size_t next = 0, step = FIRST_STEP;
    for (size_t at = 0; at < d->k;) {
        size_t here = parked_at(d, next, at);
        if (here && !sl_dispatch_park(d, d->parked + next, here))
            return;
        next += here;
        size_t end = next < d->n_parked && d->parked[next].index < d->k ? d->parked[next].index : d->k;
        if (lanes->n > 1 && end > at + step)
            end = at + step;
        run_lanes(d, lanes, end);
        step = step < LAST_STEP ? 2 * step : step;
        at = end;
    }
}

/* Letters come first: what cannot be written lowers k, and then less is parked and sent. Those of once-only
 * routes come last, when it is known what none of them failed at. */
static void run_once_only(struct sl_dispatch *d, struct lanes *lanes)
{
    sl_aside_write(d, 0);
    if (d->n_parked)
        qsort(d->parked, d->n_parked, sizeof(*d->parked), by_place);
    *lanes = choose_lanes(d);
    if (lanes->n) {
        run_interleaved(d, lanes);
    } else {
        size_t n = 0;
        while (n < d->n_parked && d->parked[n].index < d->k)
            n++;
        sl_dispatch_park(d, d->parked, n);
    }
    const size_t repeatable = d->n_asides;
    for (size_t i = 0; i < lanes->n && !d->is_ruined; i++)
        sl_aside_note(&lanes->runs[i]);
    sl_aside_write(d, repeatable);
    for (size_t i = 0; i < lanes->n; i++) {
        sl_rate_note(&lanes->runs[i]);
        sl_count_run(&lanes->runs[i]);
    }
    for (size_t i = 0; i < lanes->n && !d->is_ruined; i++)
        say_outcome(&lanes->runs[i]);
}

/* ---- all of it ---- */

static struct sl_route *window_keeper(struct sl_pipeline *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->routes[i].loaded.handler.window)
            return &p->routes[i];
    return NULL;
}

static const struct sl_run *run_of(const struct lanes *lanes, const struct sl_route *route)
{
    for (size_t i = 0; i < lanes->n; i++)
        if (lanes->runs[i].route == route)
            return &lanes->runs[i];
    return NULL;
}

static void run_phases(struct sl_dispatch *d)
{
    struct sl_route *keeper = d->batch->is_window ? window_keeper(d->p) : NULL;
    struct sl_entry *entries = sl_arena_alloc(d->arena, d->n * sizeof(*entries));
    struct sl_run run, kept = {0};
    struct lanes lanes = {0};
    for (size_t i = 0; i < d->p->n && !d->is_ruined; i++) {
        struct sl_route *route = &d->p->routes[i];
        if (sl_route_is_once_only(route))
            continue;
        if (route == keeper)
            run_repeatable(d, i, &kept, sl_arena_alloc(d->arena, d->n * sizeof(*entries)));
        else
            run_repeatable(d, i, &run, entries);
    }
    if (d->is_ruined)
        return;
    bool keeps_early = keeper && !sl_route_is_once_only(keeper);
    if (keeps_early && (d->k || !d->n) && !sl_dispatch_window(d, keeper, &kept))
        return;
    size_t k = d->k;
    if (d->k == d->n || d->p->config.reports_failures)
        run_once_only(d, &lanes);
    if (d->is_ruined)
        return;
    if (keeper && !(keeps_early && d->k == k)) {
        d->has_state = false; /* it counted records that are not done after all */
        if (d->k || !d->n)
            sl_dispatch_window(d, keeper, keeps_early ? &kept : run_of(&lanes, keeper));
    }
    if (d->failure)
        remember(d, &lanes);
    else if (!d->late)
        d->p->rejected.n = 0;
    for (size_t i = 0; !d->failure && i < d->p->n; i++)
        if (!d->p->routes[i].aside.is_open)
            sl_memory_forget_asides(&d->p->routes[i]);
}

void sl_dispatch(struct sl_pipeline *p, const struct sl_batch *batch, const struct sl_invocation *invocation,
                 struct sl_answer *out)
{
    struct sl_dispatch d = {
        .p = p,
        .batch = batch,
        .request_id = invocation->request_id,
        .function_arn = invocation->function_arn,
        .trace_id = invocation->trace_id ? invocation->trace_id : "",
        .deadline_ms = invocation->deadline_ms,
        .arena = invocation->arena,
        .late = invocation->late,
        .links = invocation->links,
        .clock = p->options.clock,
        .n = batch->n,
        .k = batch->n,
    };
    d.end_ms = invocation->deadline_ms - reserve_ms(&d);
    d.seen = sl_arena_zalloc(d.arena, p->n * sizeof(*d.seen));
    d.slice = sl_arena_alloc(d.arena, d.n * sizeof(struct sl_record *));
    d.places = sl_arena_alloc(d.arena, d.n * sizeof(*d.places));
    d.marks = sl_arena_alloc(d.arena, d.n * sizeof(*d.marks));
    struct sl_call_watch *watch = p->options.watch;
    if (watch && watch->has_suspects)
        watch->begin(watch, batch, d.request_id, d.trace_id);
    if (d.n || batch->is_window)
        run_phases(&d);
    sl_count_parked(&d);
    sl_rate_commit(&d);
    sl_answer_write(&d, out);
}
