#include "handlers/dispatch.h"

#include "base/json.h"
#include "base/span.h"
#include "handlers/dispatch_run.h"
#include "handlers/watch.h"
#include "streams/record.h"

#include <stdlib.h>

/* Between two tries of what the outside world failed: drawn from the whole of 0 to BASE * 2^tries. */
#define BACK_OFF_BASE_MS 50
#define BACK_OFF_MOST_MS 5000

/* ---- what the files of dispatch share ---- */

int64_t sl_dispatch_now(const struct sl_dispatch *d)
{
    return d->clock->now_ms(d->clock);
}

const struct sl_why *sl_why_new(struct sl_dispatch *d, enum sl_status status, const char *code,
                                const char *text)
{
    struct sl_why *why = sl_arena_alloc(d->arena, sizeof(*why));
    *why = (struct sl_why){status, sl_arena_copy(d->arena, sl_span_str(code)),
                           sl_arena_copy(d->arena, sl_span_str(text))};
    return why;
}

void sl_dispatch_fail(struct sl_dispatch *d, size_t index, struct sl_route *route, const struct sl_why *why)
{
    if (index > d->k || (index == d->k && d->failed_route != route))
        return;
    d->k = index;
    d->failure = why;
    d->failed_route = route;
}

struct sl_span sl_dispatch_key(struct sl_dispatch *d, size_t index)
{
    if (!d->keys)
        d->keys = sl_arena_zalloc(d->arena, d->n * sizeof(*d->keys));
    if (!d->keys[index].ptr)
        d->keys[index] = sl_record_item_key(sl_batch_record(d->batch, index), d->arena);
    return d->keys[index];
}

bool sl_dispatch_back_off(struct sl_dispatch *d, unsigned tries, int64_t deadline_ms)
{
    uint64_t most = BACK_OFF_BASE_MS;
    for (unsigned i = 0; i < tries && most < BACK_OFF_MOST_MS; i++)
        most *= 2;
    most = most < BACK_OFF_MOST_MS ? most : BACK_OFF_MOST_MS;
    int64_t wait = 1 + (int64_t)(d->clock->random(d->clock) % most);
    if (deadline_ms - sl_dispatch_now(d) <= wait)
        return false;
    d->clock->sleep_ms(d->clock, wait);
    return true;
}

/* ---- time ---- */

/* What is kept for the answer. */
static int64_t reserve_ms(const struct sl_dispatch *d)
{
    int64_t left = d->invocation->deadline_ms - sl_dispatch_now(d);
    int64_t reserve = left / 20 < 100 ? 100 : left / 20 > 2000 ? 2000 : left / 20;
    if (d->p->config.reserve_ms >= 0)
        reserve = d->p->config.reserve_ms;
    return reserve > left / 2 ? left / 2 : reserve;
}

/* Of the time left, each route that is still to come has the same share, and parking a quarter of one. */
static int64_t share_end(const struct sl_dispatch *d, size_t route)
{
    int64_t quarters = 0, left = d->end_ms - sl_dispatch_now(d);
    bool parks = false;
    for (size_t i = 0; i < d->p->n; i++) {
        bool is_past = i < route && !sl_route_is_once_only(&d->p->routes[i]);
        quarters += is_past ? 0 : 4;
        parks = parks || d->p->routes[i].n_targets;
    }
    return d->end_ms - left + left * 4 / (quarters + parks);
}

/* ---- phase 1: what can be repeated ---- */

static const char *sequence_of(struct sl_dispatch *d, size_t index)
{
    return sl_arena_copy(d->arena, sl_record_text(sl_batch_record(d->batch, index), SL_FIELD_IDENTIFIER));
}

/* One line for all that a route rejected, and one for what stopped it or failed first. */
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
               "%zu of %zu records rejected, to be parked; the first, sequence number %s: %s: %s", rejected,
               run->n, sequence_of(d, first_rejected->index), first_rejected->why->code,
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
        if (d->n_parked == d->room_parked) {
            size_t room = d->room_parked ? 2 * d->room_parked : 16;
            struct sl_parked *list = sl_arena_alloc(d->arena, room * sizeof(*list));
            if (d->n_parked)
                memcpy(list, d->parked, d->n_parked * sizeof(*list));
            d->parked = list;
            d->room_parked = room;
        }
        d->parked[d->n_parked++] = (struct sl_parked){
            .index = run->entries[i].index, .route = run->route, .why = run->entries[i].why};
    }
}

/* A record that an earlier route rejected is still given to the later ones: it may be poison for that one
 * alone. What is behind it is not, since it comes again. */
static size_t limit_of(const struct sl_dispatch *d)
{
    return d->k < d->n && d->failure->status == SL_REJECT ? d->k + 1 : d->k;
}

static void run_repeatable(struct sl_dispatch *d, size_t route, struct sl_run *run, struct sl_entry *entries)
{
    sl_run_init(run, d, &d->p->routes[route], entries, limit_of(d));
    run->deadline_ms = share_end(d, route);
    sl_run_entries(run, 0, run->n);
    note_parked(d, run);
    say_outcome(run);
}

/* ---- a window's state ---- */

/* A shard's state: Lambda ends the window early beyond it. */
#define STATE_BYTES (1024 * 1024)

static size_t applied_below_k(const struct sl_dispatch *d, const struct sl_run *run)
{
    size_t n = 0;
    for (size_t i = 0; run && i < run->n && run->entries[i].index < d->k; i++)
        if (run->entries[i].state == SL_ENTRY_APPLIED)
            d->slice[n++] = sl_batch_record(d->batch, run->entries[i].index);
    return n;
}

static void fail_window(struct sl_dispatch *d, struct sl_route *route, enum sl_status status,
                        const struct sl_error *error)
{
    /* No half of the batch would do better: not a matter of single records. */
    status = status == SL_RETRY ? SL_RETRY : SL_FATAL;
    bool has_text = error->text[0];
    d->k = 0;
    d->failed_route = route;
    d->failure = sl_why_new(d, status, error->code[0] ? error->code : "WindowFailed",
                            has_text ? error->text : "the handler's window() failed and gave no reason");
    sl_route_enter(route);
    sl_log(d->p->options.log, SL_ERROR, "the window's state is not made (%s): %s: %s", sl_status_name(status),
           d->failure->code, d->failure->text);
    sl_route_leave(route);
}

static enum sl_status check_state(struct sl_span state, struct sl_error *error)
{
    struct sl_error why = {0};
    if (state.len > STATE_BYTES)
        return sl_fail(error, SL_FATAL, "StateTooLarge",
                       "the window's new state is %zu bytes; Lambda keeps %d", state.len, STATE_BYTES);
    if (sl_json_check(state, &why) != SL_OK || state.ptr[0] != '{')
        return sl_fail(error, SL_FATAL, "InvalidState", "the window's new state is no JSON object: %s",
                       why.text);
    return SL_OK;
}

static enum sl_status call_window(struct sl_route *route, struct sl_window *window, struct sl_error *error)
{
    sl_route_enter(route);
    enum sl_status status = route->loaded.handler.window(route->self, window, error);
    sl_error_seal(error);
    sl_route_leave(route);
    route->stats.calls++;
    if (status == SL_OK && window->new_state.ptr)
        status = check_state(window->new_state, error);
    return status;
}

static bool run_window(struct sl_dispatch *d, struct sl_route *route, const struct sl_run *run)
{
    const struct sl_batch *batch = d->batch;
    struct sl_window window = {
        .abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(window)},
        .state = batch->state.ptr ? batch->state : SL_LIT("{}"),
        .is_final = batch->is_final && d->k == d->n, /* the rest of it comes again, as the last */
        .is_terminated_early = batch->is_terminated_early,
        .arena = d->arena,
        .deadline_ms = d->end_ms,
        .records = d->slice,
        .n = applied_below_k(d, run),
    };
    sl_answer_window_bounds(d, batch->window, &window.start, &window.end);
    struct sl_error error;
    enum sl_status status;
    unsigned tries = 0;
    do {
        error = (struct sl_error){0};
        status = call_window(route, &window, &error);
    } while (status == SL_RETRY && sl_dispatch_back_off(d, tries++, d->end_ms));
    d->has_state = status == SL_OK;
    d->state = window.new_state.ptr ? window.new_state : window.state;
    if (status != SL_OK)
        fail_window(d, route, status, &error);
    return status == SL_OK;
}

/* ---- phase 2: what is done once, below the checkpoint ---- */

/* Records between two looks at the others, where several routes send: grows while all goes well, so that an
 * outage of one makes the others repeat little. */
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

static void skip_remembered(struct sl_run *run)
{
    for (size_t i = 0; run->d->p->memory.n && i < run->n; i++)
        if (sl_memory_has(run->d, run->route, run->entries[i].index))
            run->entries[i].state = SL_ENTRY_APPLIED;
}

static bool is_done(const struct sl_entry *entry)
{
    return entry->state == SL_ENTRY_APPLIED || entry->state == SL_ENTRY_PARKED;
}

/* What was done for records that come again after all. */
static void remember(struct sl_dispatch *d, const struct lanes *lanes)
{
    size_t floor = sl_answer_floor(d);
    for (size_t i = 0; i < d->n_parked; i++)
        if (d->parked[i].is_durable && d->parked[i].index >= floor)
            sl_memory_add(d, d->parked[i].route, d->parked[i].index);
    for (size_t i = 0; i < lanes->n; i++) {
        const struct sl_run *run = &lanes->runs[i];
        for (size_t k = 0; k < run->n; k++)
            if (run->entries[k].index >= floor && is_done(&run->entries[k]))
                sl_memory_add(d, run->route, run->entries[k].index);
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
        lanes.runs[lanes.n].deadline_ms = d->end_ms;
        skip_remembered(&lanes.runs[lanes.n]);
        lanes.n += lanes.runs[lanes.n].n > 0;
    }
    return lanes;
}

/* Every lane up to record `end`, or to where an earlier one failed: nothing below the checkpoint may be
 * missed. */
static void run_lanes(struct sl_dispatch *d, struct lanes *lanes, size_t end)
{
    for (size_t i = 0; i < lanes->n; i++) {
        struct sl_run *run = &lanes->runs[i];
        size_t from = lanes->at[i], to = from;
        while (to < run->n && run->entries[to].index < end && run->entries[to].index < d->k)
            to++;
        if (to > from)
            sl_run_entries(run, from, to);
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
        if (here && !sl_park(d, d->parked + next, here))
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

static void run_once_only(struct sl_dispatch *d, struct lanes *lanes)
{
    if (d->n_parked)
        qsort(d->parked, d->n_parked, sizeof(*d->parked), by_place);
    *lanes = choose_lanes(d);
    if (lanes->n) {
        run_interleaved(d, lanes);
    } else {
        size_t n = 0;
        while (n < d->n_parked && d->parked[n].index < d->k)
            n++;
        sl_park(d, d->parked, n);
    }
    for (size_t i = 0; i < lanes->n; i++)
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
    for (size_t i = 0; i < d->p->n; i++) {
        struct sl_route *route = &d->p->routes[i];
        if (sl_route_is_once_only(route))
            continue;
        if (route == keeper)
            run_repeatable(d, i, &kept, sl_arena_alloc(d->arena, d->n * sizeof(*entries)));
        else
            run_repeatable(d, i, &run, entries);
    }
    bool keeps_early = keeper && !sl_route_is_once_only(keeper);
    if (keeps_early && (d->k || !d->n) && !run_window(d, keeper, &kept))
        return;
    size_t k = d->k;
    if (d->k == d->n || d->p->config.reports_failures)
        run_once_only(d, &lanes);
    if (keeper && !(keeps_early && d->k == k)) {
        d->has_state = false; /* of records that are not done after all */
        if (d->k || !d->n)
            run_window(d, keeper, keeps_early ? &kept : run_of(&lanes, keeper));
    }
    if (d->failure)
        remember(d, &lanes);
}

void sl_dispatch(struct sl_pipeline *p, const struct sl_batch *batch, const struct sl_invocation *invocation,
                 struct sl_answer *out)
{
    struct sl_dispatch d = {
        .p = p,
        .batch = batch,
        .invocation = invocation,
        .arena = invocation->arena,
        .clock = p->options.clock,
        .n = batch->n,
        .k = batch->n,
    };
    d.end_ms = invocation->deadline_ms - reserve_ms(&d);
    d.slice = sl_arena_alloc(d.arena, d.n * sizeof(struct sl_record *));
    d.places = sl_arena_alloc(d.arena, d.n * sizeof(*d.places));
    d.marks = sl_arena_alloc(d.arena, d.n * sizeof(*d.marks));
    struct sl_watch *watch = p->options.watch;
    if (watch && watch->has_suspects)
        watch->begin(watch, batch, invocation->request_id);
    if (d.n || batch->is_window)
        run_phases(&d);
    sl_answer_write(&d, out);
}
