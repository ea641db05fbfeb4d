/* The loop: takes what has come, begins what may begin, waits. */
#include "live/tail/engine_private.h"

#include "base/hash.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#define FLYING_MAX  64 /* connections that are kept (net/http.c) */
#define COMPLAIN_MS 10000
#define SHOW_MS     250
#define SAVE_MS     1000 /* how often the place says that nothing came */
#define ONCE_READS  4    /* is_once: so many empty reads in a row of each shard end it */
/* Told to stop, it ends within two seconds: invocations begin for so long, and are then broken off. When it
 * cannot go on, they have more time. */
#define STOP_BEGIN_MS  600
#define STOP_FINISH_MS 1000
#define FAIL_BEGIN_MS  10000
#define FAIL_FINISH_MS 20000
#define BROKEN_OFF_MS  300 /* how long an invocation takes to end that was broken off */

/* ---- lanes by their ids ---- */

static size_t slot_of(const struct sl_engine *e, const char *id)
{
    size_t i = sl_hash(sl_span_str(id)) & (e->index_room - 1);
    while (e->index[i] && strcmp(e->lanes[e->index[i] - 1]->id, id) != 0)
        i = (i + 1) & (e->index_room - 1);
    return i;
}

struct sl_lane *sl_engine_lane(const struct sl_engine *e, const char *id)
{
    size_t i = slot_of(e, id);
    return e->index[i] ? e->lanes[e->index[i] - 1] : NULL;
}

static void index_lanes(struct sl_engine *e)
{
    memset(e->index, 0, e->index_room * sizeof(*e->index));
    for (size_t i = 0; i < e->n; i++)
        e->index[slot_of(e, e->lanes[i]->id)] = i + 1;
}

void sl_engine_take_lanes(struct sl_engine *e)
{
    index_lanes(e);
    e->n_awake = 0;
    for (size_t i = 0; i < e->n; i++)
        if (e->lanes[i]->is_awake)
            e->awake[e->n_awake++] = e->lanes[i];
}

void sl_engine_wake(struct sl_lane *lane)
{
    struct sl_engine *e = lane->engine;
    if (!lane->is_awake)
        e->awake[e->n_awake++] = lane;
    lane->is_awake = true;
}

/* Nothing of it is under way, and nothing will be until the keeper says so. */
static bool is_at_rest(const struct sl_lane *lane)
{
    bool is_ours = lane->owner == SL_LANE_OURS;
    return (!is_ours || lane->state == SL_LANE_DONE) && lane->asked == SL_LANE_NOTHING && !lane->running &&
           !(is_ours && lane->has_moved) && sl_lane_left(lane) == 0;
}

static void let_rest(struct sl_engine *e)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n_awake; i++) {
        struct sl_lane *lane = e->awake[i];
        lane->is_awake = !is_at_rest(lane);
        if (lane->is_awake)
            e->awake[n++] = lane;
    }
    e->n_awake = n;
}

static void make_room(struct sl_engine *e)
{
    e->room = e->room ? e->room * 2 : 64;
    e->index_room = e->room * 2;
    e->lanes = realloc(e->lanes, e->room * sizeof(struct sl_lane *));
    e->order = realloc(e->order, e->room * sizeof(struct sl_lane *));
    e->awake = realloc(e->awake, e->room * sizeof(struct sl_lane *));
    e->index = realloc(e->index, e->index_room * sizeof(*e->index));
    if (!e->lanes || !e->order || !e->awake || !e->index)
        sl_die("out of memory: %zu shards", e->room);
    index_lanes(e);
}

struct sl_lane *sl_engine_add_lane(struct sl_engine *e, const char *id)
{
    if (e->n == e->room)
        make_room(e);
    struct sl_lane *lane = sl_lane_new(e, id);
    e->index[slot_of(e, id)] = e->n + 1;
    e->lanes[e->n++] = lane;
    return lane;
}

/* ---- what is said ---- */

static void begin_ending(struct sl_engine *e, int64_t begin_ms, int64_t finish_ms)
{
    if (!e->is_ending || e->now_ms + begin_ms < e->begin_until_ms)
        e->begin_until_ms = e->now_ms + begin_ms;
    if (!e->is_ending || e->now_ms + finish_ms < e->finish_until_ms)
        e->finish_until_ms = e->now_ms + finish_ms;
    e->is_ending = true;
    for (size_t i = 0; i < e->n; i++)
        sl_lane_stop_read(e->lanes[i]);
}

void sl_engine_fail(struct sl_engine *e, const char *format, ...)
{
    va_list args;
    if (e->result.has_failed)
        return;
    e->result.has_failed = true;
    fputs("sluice tail: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    begin_ending(e, FAIL_BEGIN_MS, FAIL_FINISH_MS);
}

void sl_engine_complain(struct sl_engine *e, const struct sl_error *error)
{
    bool is_new = strcmp(e->trouble, error->text) != 0;
    if (!is_new && e->now_ms - e->trouble_at_ms < COMPLAIN_MS)
        return;
    snprintf(e->trouble, sizeof(e->trouble), "%s", error->text);
    e->trouble_at_ms = e->now_ms;
    fprintf(stderr, "sluice tail: %s\n", error->text);
}

/* ---- one turn ---- */

static void look_at_clock(struct sl_engine *e)
{
    e->now_ms = e->clock->now_ms(e->clock);
    e->wall_ms = e->clock->wall_ns(e->clock) / 1000000;
}

static void take_bell(const struct sl_engine *e)
{
    uint64_t n;
    (void)!read(e->o.bell, &n, sizeof(n));
}

/* One that another process has handled to its end is not ours any more. */
static void end_lane(struct sl_lane *lane)
{
    if (lane->state != SL_LANE_DONE)
        sl_lane_lose(lane);
    lane->is_ended = true;
}

static void take_event(struct sl_engine *e, const struct sl_keeper_event *event)
{
    if (event->kind == SL_KEEPER_FAILED) {
        sl_engine_fail(e, "%s", event->text);
        return;
    }
    struct sl_lane *lane = sl_engine_lane(e, event->shard);
    if (!lane)
        lane = sl_engine_add_lane(e, event->shard);
    if (event->kind == SL_KEEPER_GAINED)
        sl_lane_gain(lane, &event->place);
    else if (event->kind == SL_KEEPER_LOST)
        sl_lane_lose(lane);
    else
        end_lane(lane);
}

static void take_events(struct sl_engine *e)
{
    struct sl_keeper_event event;
    while (e->o.keeper.ops->take(e->o.keeper.self, &event))
        take_event(e, &event);
}

static void take_tasks(struct sl_engine *e)
{
    struct sl_pool_task *task;
    while ((task = sl_pool_take(e->o.pool)))
        sl_lane_take(task->owner, task);
}

static int by_lag(const void *a, const void *b)
{
    const struct sl_lane *x = *(struct sl_lane *const *)a, *y = *(struct sl_lane *const *)b;
    return x->lag_ms < y->lag_ms ? 1 : x->lag_ms > y->lag_ms ? -1 : 0;
}

/* Those that want something, the greatest lag first. */
static size_t find_order(struct sl_engine *e, bool (*wants)(const struct sl_lane *))
{
    size_t n = 0;
    for (size_t i = 0; i < e->n_awake; i++)
        if (wants(e->awake[i])) {
            e->awake[i]->lag_ms = sl_lane_look_lag(e->awake[i]);
            e->order[n++] = e->awake[i];
        }
    if (n > 1)
        qsort(e->order, n, sizeof(struct sl_lane *), by_lag);
    return n;
}

static bool has_records(const struct sl_lane *lane)
{
    return sl_lane_left(lane) > 0;
}

static void run_lanes(struct sl_engine *e)
{
    size_t n = find_order(e, has_records);
    for (size_t i = 0; i < n; i++)
        sl_lane_run(e->order[i]);
}

/* A read that is larger than all memory is begun when nothing else is there. */
static bool has_memory(const struct sl_engine *e, size_t bytes)
{
    return e->memory_bytes == 0 || e->memory_bytes + bytes <= e->o.memory_bytes;
}

static void begin_reads(struct sl_engine *e)
{
    size_t n = e->flying < FLYING_MAX ? find_order(e, sl_lane_wants_read) : 0;
    for (size_t i = 0; i < n && e->flying < FLYING_MAX; i++)
        if (has_memory(e, sl_lane_estimate(e->order[i])))
            sl_lane_begin_read(e->order[i]);
}

static void save(struct sl_engine *e)
{
    size_t n = 0;
    sl_arena_reset(e->scratch);
    struct sl_keeper_place *places = sl_arena_alloc(e->scratch, (e->n_awake + 1) * sizeof(*places));
    for (size_t i = 0; i < e->n_awake; i++) {
        struct sl_lane *lane = e->awake[i];
        if (!lane->has_moved || lane->owner != SL_LANE_OURS)
            continue;
        places[n++] = (struct sl_keeper_place){.shard = lane->id,
                                               .after = lane->after,
                                               .since_ms = lane->since_ms,
                                               .is_done = lane->state == SL_LANE_DONE,
                                               .through_ms = lane->through.ms};
        lane->has_moved = false;
    }
    if (n)
        e->o.keeper.ops->save(e->o.keeper.self, places, n);
    e->saves += n;
}

static void save_through(struct sl_engine *e, bool at_once)
{
    const struct sl_keeper *keeper = &e->o.keeper;
    if (!keeper->ops->save_through || (!at_once && e->now_ms - e->saved_at_ms < SAVE_MS))
        return;
    sl_engine_find_through(e);
    if (e->through_ms != e->saved_through_ms)
        keeper->ops->save_through(keeper->self, e->through_ms);
    e->saved_through_ms = e->through_ms;
    e->saved_at_ms = e->now_ms;
}

/* ---- the end ---- */

static bool is_through_once(const struct sl_engine *e)
{
    if (!e->list.has_first || (e->o.table && !e->stream.has_answered))
        return false;
    for (size_t i = 0; i < e->n; i++) {
        const struct sl_lane *lane = e->lanes[i];
        bool is_read = lane->is_ended || lane->owner != SL_LANE_OURS || lane->empty_reads >= ONCE_READS;
        if (!is_read || sl_lane_left(lane) || lane->has_moved ||
            (lane->ended_wall_ms && !sl_engine_was_listed(e, lane->ended_wall_ms)))
            return false;
    }
    return !e->stream.is_old || !e->o.follows;
}

/* While nothing runs: what is not ours is forgotten by then. */
static bool can_still_begin(const struct sl_engine *e)
{
    bool can = false;
    for (size_t i = 0; i < e->n && e->now_ms < e->begin_until_ms; i++)
        can |= sl_lane_left(e->lanes[i]) && !e->lanes[i]->blocked_since_ms;
    return can;
}

static bool is_running(const struct sl_engine *e)
{
    bool runs = false;
    for (size_t i = 0; i < e->n; i++)
        runs |= e->lanes[i]->running > 0;
    return runs;
}

static void break_off(struct sl_engine *e)
{
    for (size_t i = 0; i < e->n; i++)
        for (size_t k = 0; k < SL_LANE_PARALLEL; k++)
            if (e->lanes[i]->is_running[k])
                (void)sl_pool_cancel(e->o.pool, e->lanes[i]->tasks[k].worker);
}

static bool is_over(struct sl_engine *e)
{
    if (*e->o.stop)
        begin_ending(e, STOP_BEGIN_MS, STOP_FINISH_MS);
    if (!e->is_ending)
        return e->o.is_once && is_through_once(e);
    if (!is_running(e))
        return !can_still_begin(e);
    if (e->now_ms >= e->finish_until_ms)
        break_off(e);
    return e->now_ms >= e->finish_until_ms + BROKEN_OFF_MS;
}

/* ---- waiting ---- */

static int64_t due_ms(const struct sl_engine *e)
{
    int64_t due = e->shown_at_ms + SHOW_MS, one;
    if (e->is_ending)
        due = e->now_ms + 20;
    if ((one = sl_engine_list_due_ms(e)) < due)
        due = one;
    for (size_t i = 0; i < e->n_awake; i++) {
        if ((one = sl_lane_due_ms(e->awake[i])) < due)
            due = one;
        if ((one = sl_lane_read_due_ms(e->awake[i])) < due)
            due = one;
    }
    return due;
}

/* What is due and still waits, waits for memory, a connection or a worker: it is looked at again when one of
 * these has come, and soon anyway. */
static void wait_for_more(struct sl_engine *e)
{
    int64_t left_ms = due_ms(e) - e->now_ms;
    sl_live_wait(e->o.live, left_ms < 1 ? 1 : left_ms, e->o.bell);
}

static void turn(struct sl_engine *e)
{
    look_at_clock(e);
    take_bell(e);
    take_tasks(e);
    for (size_t i = 0; i < e->n_awake; i++)
        sl_lane_take_read(e->awake[i]);
    sl_engine_list(e);
    take_events(e);
    run_lanes(e);
    if (!e->is_ending)
        begin_reads(e);
    save(e);
    save_through(e, false);
    take_events(e);
    let_rest(e);
    (void)sl_engine_follow(e);
    if (e->is_shown_late || e->now_ms - e->shown_at_ms >= SHOW_MS)
        sl_engine_show(e);
}

static void finish(struct sl_engine *e)
{
    save(e);
    save_through(e, true);
    sl_engine_show(e);
    e->result.mapping = e->gone;
    for (size_t i = 0; i < e->n; i++) {
        struct sl_esm_stats stats = sl_lane_stats(e->lanes[i]);
        sl_esm_stats_add(&e->result.mapping, &stats);
        e->result.unhandled += e->lanes[i]->owner == SL_LANE_OURS ? sl_lane_left(e->lanes[i]) : 0;
    }
    e->result.mapping.elapsed_ms = e->now_ms - e->began_ms;
}

static void open_engine(struct sl_engine *e)
{
    look_at_clock(e);
    e->began_ms = e->now_ms;
    e->began_wall_ms = e->wall_ms;
    sl_lane_set(&e->stream_arn, e->o.stream_arn);
    e->scratch = sl_arena_new(16 * 1024);
    e->page_scratch = sl_arena_new(256 * 1024);
    e->list.arena = sl_arena_new(16 * 1024);
    e->list.ask = sl_live_ask_new(e->o.live);
    e->stream.ask = sl_live_ask_new(e->o.live);
    e->children.ask = sl_live_ask_new(e->o.live);
    make_room(e);
    if (e->o.keeper.ops->through)
        e->through_ms = e->saved_through_ms = e->o.keeper.ops->through(e->o.keeper.self);
}

/* Without waiting for a worker that cannot be broken off: what it has is kept. */
static void close_engine(struct sl_engine *e)
{
    bool runs = is_running(e);
    for (size_t i = 0; i < e->n && !runs; i++)
        sl_lane_destroy(e->lanes[i]);
    sl_live_ask_destroy(e->list.ask);
    sl_live_ask_destroy(e->stream.ask);
    sl_live_ask_destroy(e->children.ask);
    free(e->children.of);
    sl_arena_destroy(e->scratch);
    sl_arena_destroy(e->page_scratch);
    sl_arena_destroy(e->list.arena);
    free(e->stream.latest);
    free(e->stream_arn);
    free(e->index);
    free(e->order);
    free(e->awake);
    if (!runs)
        free(e->lanes);
}

void sl_engine_run(const struct sl_engine_options *options, struct sl_engine_result *out)
{
    struct sl_engine e = {.o = *options, .clock = sl_clock_system()};
    open_engine(&e);
    for (;;) {
        turn(&e);
        if (is_over(&e))
            break;
        wait_for_more(&e);
    }
    finish(&e);
    *out = e.result;
    close_engine(&e);
}
