/* A shard, and what is handled of it: its mapping, its pages, its place.
 *
 * Whose it is. The keeper gives it and takes it; invocations that run then are broken off, and until the
 * last of them is over, the shard cannot begin anew:
 *
 *               gain                                 lose
 *     AWAY ---------------> OURS          OURS ---------------> AWAY
 *
 *     AWAY, while something of before still runs -- gain --> RETURNING -- it is over --> OURS
 *                                                            RETURNING -- lose -------> AWAY
 *
 * How far it is. Whoever gains it begins with READING, or with DONE if its place says so:
 *
 *     READING -- nothing more to read --> DRAINING -- nothing left to handle --> DONE
 *
 * DONE is saved as its place, and comes back from the keeper as is_ended: then its children may begin. */
#include "live/tail/engine_private.h"

#include <stdlib.h>

/* An invocation that would be broken off before this is not begun. */
#define LEAST_MS 200

/* ---- beginning and end ---- */

void sl_lane_set(char **text, const char *value)
{
    char *copy = value ? strdup(value) : NULL;
    if (value && !copy)
        sl_die("out of memory: a shard's place");
    free(*text);
    *text = copy;
}

struct sl_lane *sl_lane_new(struct sl_engine *e, const char *id)
{
    struct sl_lane *lane = calloc(1, sizeof(*lane));
    if (!lane)
        sl_die("out of memory: a shard");
    lane->engine = e;
    sl_lane_set(&lane->id, id);
    sl_lane_set(&lane->parent, "");
    lane->ask = sl_live_ask_new(e->o.live);
    for (size_t i = 0; i < SL_LANE_PARALLEL; i++) {
        lane->worker_of[i] = SL_POOL_NONE;
        sl_buffer_init(&lane->tasks[i].body, 64 * 1024 * 1024);
    }
    return lane;
}

static void forget_pages(struct sl_lane *lane, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct sl_page *page = lane->pages[i];
        lane->page_bytes -= page->bytes;
        lane->engine->memory_bytes -= page->bytes;
        sl_page_destroy(page);
    }
    lane->n_pages -= n;
    memmove(lane->pages, lane->pages + n, lane->n_pages * sizeof(lane->pages[0]));
}

struct sl_esm_stats sl_lane_stats(const struct sl_lane *lane)
{
    return lane->esm ? sl_esm_stats(lane->esm) : (struct sl_esm_stats){0};
}

static void drop_mapping(struct sl_lane *lane)
{
    struct sl_esm_stats stats = sl_lane_stats(lane);
    sl_esm_stats_add(&lane->engine->gone, &stats);
    sl_esm_destroy(lane->esm);
    lane->esm = NULL;
    lane->handled_before = lane->handled;
    forget_pages(lane, lane->n_pages);
}

void sl_lane_destroy(struct sl_lane *lane)
{
    sl_lane_stop_read(lane);
    drop_mapping(lane);
    sl_live_ask_destroy(lane->ask);
    for (size_t i = 0; i < SL_LANE_PARALLEL; i++)
        sl_buffer_clean_up(&lane->tasks[i].body);
    free(lane->id);
    free(lane->parent);
    free(lane->read_after);
    free(lane->iterator);
    free(lane->after);
    free(lane->late_after);
    free(lane);
}

/* The only one that changes them. */
static void enter(struct sl_lane *lane, enum sl_lane_owner owner, enum sl_lane_state state)
{
    lane->owner = owner;
    lane->state = state;
    sl_engine_wake(lane);
}

static void begin(struct sl_lane *lane, const struct sl_keeper_place *place)
{
    struct sl_engine *e = lane->engine;
    enter(lane, SL_LANE_OURS, place->is_done ? SL_LANE_DONE : SL_LANE_READING);
    lane->is_ended = false;                                /* the keeper says it again */
    lane->ended_wall_ms = place->is_done ? e->wall_ms : 0; /* its children may not be listed yet */
    lane->since_ms = place->after ? 0 : place->since_ms;
    lane->from_latest = lane->since_ms && lane->since_ms == e->list.began_wall_ms && e->o.is_from_latest;
    sl_lane_set(&lane->after, place->after);
    sl_lane_set(&lane->read_after, place->after);
    sl_lane_set(&lane->iterator, NULL);
    lane->read_at_ms = lane->found_ms = e->now_ms;
    lane->answer_bytes = 0;
    lane->through = (struct sl_through){.ms = place->through_ms};
    for (size_t i = 0; i < SL_LANE_PARALLEL; i++)
        lane->worker_of[i] = SL_POOL_NONE;
    if (place->is_done)
        sl_engine_want_list(e);
    sl_engine_has_ended(lane);
}

void sl_lane_gain(struct sl_lane *lane, const struct sl_keeper_place *place)
{
    if (!lane->running) {
        begin(lane, place);
        return;
    }
    if (lane->owner == SL_LANE_OURS)
        return;
    sl_lane_set(&lane->late_after, place->after);
    lane->late = *place;
    lane->late.shard = lane->id;
    lane->late.after = lane->late_after;
    enter(lane, SL_LANE_RETURNING, lane->state);
}

/* Once nothing runs any more. */
static void drop_lost(struct sl_lane *lane)
{
    if (lane->running)
        return;
    drop_mapping(lane);
    lane->has_moved = false;
    if (lane->owner == SL_LANE_RETURNING)
        begin(lane, &lane->late);
}

void sl_lane_lose(struct sl_lane *lane)
{
    struct sl_engine *e = lane->engine;
    bool was_ours = lane->owner == SL_LANE_OURS;
    enter(lane, SL_LANE_AWAY, lane->state);
    if (!was_ours)
        return;
    e->result.leases_lost++;
    e->is_shown_late = true;
    sl_lane_stop_read(lane);
    for (size_t i = 0; i < SL_LANE_PARALLEL; i++)
        if (lane->is_running[i])
            (void)sl_pool_cancel(e->o.pool, lane->tasks[i].worker);
    drop_lost(lane);
}

/* ---- the mapping's driver ---- */

static int64_t until_ms(const struct sl_lane *lane)
{
    const struct sl_keeper *keeper = &lane->engine->o.keeper;
    return keeper->ops->until_ms(keeper->self, lane->id);
}

static bool may_begin(void *self, const struct sl_esm_shard *shard, unsigned k, bool was_sent)
{
    struct sl_lane *lane = self;
    struct sl_engine *e = lane->engine;
    (void)shard;
    if (lane->owner != SL_LANE_OURS || (e->is_ending && (was_sent || e->now_ms >= e->begin_until_ms)))
        return false;
    if (until_ms(lane) - LEAST_MS <= e->now_ms)
        return false;
    lane->picked = sl_pool_pick(e->o.pool, lane->worker_of[k], was_sent);
    return lane->picked != SL_POOL_NONE;
}

static void on_begin(void *self, struct sl_esm_invocation *inv)
{
    struct sl_lane *lane = self;
    struct sl_pool_task *task = &lane->tasks[inv->lane];
    task->owner = lane;
    task->inv = inv;
    task->until_ms = until_ms(lane);
    lane->worker_of[inv->lane] = lane->picked;
    lane->is_running[inv->lane] = true;
    lane->running++;
    sl_pool_give(lane->engine->o.pool, lane->picked, task);
}

static void on_invoke(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    const struct sl_pool_task *task = &((struct sl_lane *)self)->tasks[inv->lane];
    *out = (struct sl_esm_result){.outcome = task->outcome, .body = sl_buffer_span(&task->body)};
}

/* The same record fails again and again: nothing behind it is handled. */
static void note_blocked(struct sl_lane *lane, const struct sl_esm_invocation *inv, enum sl_esm_verb verb)
{
    bool is_blocked = verb == SL_ESM_RETRY || verb == SL_ESM_BISECT;
    lane->retries += is_blocked;
    if (is_blocked && !lane->blocked_since_ms) {
        lane->blocked_since_ms = lane->engine->wall_ms;
        snprintf(lane->blocked_at, sizeof(lane->blocked_at), "%.*s", SL_ARG(inv->records[0]->id));
        lane->engine->is_shown_late = true;
    } else if (!is_blocked && lane->blocked_since_ms) {
        lane->blocked_since_ms = 0;
        lane->engine->is_shown_late = true;
    }
}

/* The place moves as the mapping's checkpoint does: a kill causes repeats, and loses no record. */
static void on_decided(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                       const struct sl_esm_decision *decision)
{
    struct sl_lane *lane = self;
    const struct sl_engine_options *o = &lane->engine->o;
    if (o->decided)
        o->decided(o->self, inv, result, decision);
    note_blocked(lane, inv, decision->verb);
}

static void on_discarded(void *self, const struct sl_esm_discard *discard)
{
    struct sl_engine *e = ((struct sl_lane *)self)->engine;
    sl_engine_note_missed(e);
    if (e->o.discarded)
        e->o.discarded(e->o.self, discard);
}

static void open_mapping(struct sl_lane *lane)
{
    struct sl_engine *e = lane->engine;
    const struct sl_esm_driver driver = {.self = lane,
                                         .may_begin = may_begin,
                                         .begin = on_begin,
                                         .invoke = on_invoke,
                                         .decided = on_decided,
                                         .discarded = on_discarded};
    struct sl_esm_settings settings = *e->o.settings;
    settings.seed = e->clock->random(e->clock);
    settings.stream_arn = e->stream_arn;
    lane->shard = (struct sl_esm_shard){.id = lane->id, .parent = -1};
    lane->esm_base_ms = e->now_ms;
    sl_clock_virtual_init(&lane->clock, e->wall_ms * 1000000, 0);
    lane->esm = sl_esm_new(&settings, &lane->shard, 1, &lane->clock, &driver);
}

/* ---- records ---- */

int64_t sl_lane_available_ms(struct sl_lane *lane)
{
    if (!lane->esm)
        open_mapping(lane);
    return sl_esm_wall_at(lane->esm, lane->engine->now_ms - lane->esm_base_ms);
}

static void move_place(struct sl_lane *lane)
{
    struct sl_span id = sl_esm_checkpoint_id(lane->esm, 0);
    if (!id.ptr || (lane->after && sl_span_is(id, lane->after)))
        return;
    char *after = strndup(id.ptr, id.len);
    if (!after)
        sl_die("out of memory: a shard's place");
    free(lane->after);
    lane->after = after;
    lane->since_ms = 0;
    lane->has_moved = true;
}

/* Once its end was read, and everything is handled. */
static void finish(struct sl_lane *lane)
{
    struct sl_engine *e = lane->engine;
    if (lane->owner != SL_LANE_OURS || lane->state != SL_LANE_DRAINING || sl_lane_left(lane))
        return;
    enter(lane, SL_LANE_OURS, SL_LANE_DONE);
    lane->has_moved = true;
    lane->ended_wall_ms = e->wall_ms;
    drop_mapping(lane);
    sl_engine_want_list(e); /* its children may exist now */
    sl_engine_has_ended(lane);
}

/* After everything that may move the mapping on. */
static void settle(struct sl_lane *lane)
{
    struct sl_esm_stats stats = sl_esm_stats(lane->esm);
    size_t n = sl_esm_forget(lane->esm, 0);
    move_place(lane);
    lane->handled = lane->handled_before + stats.done + stats.filtered + stats.discarded + stats.trimmed;
    if (n) {
        lane->last_created_ms = lane->pages[n - 1]->last_ms;
        sl_through_handled(&lane->through, lane->pages[n - 1]->told_ms, lane->engine->wall_ms);
    }
    forget_pages(lane, n);
    finish(lane);
}

void sl_lane_feed(struct sl_lane *lane, struct sl_page *page)
{
    struct sl_engine *e = lane->engine;
    lane->pages[lane->n_pages++] = page;
    lane->page_bytes += page->bytes;
    e->memory_bytes += page->bytes;
    sl_esm_feed(lane->esm, 0, page->records, page->n, e->now_ms - lane->esm_base_ms);
}

void sl_lane_run(struct sl_lane *lane)
{
    if (lane->owner != SL_LANE_OURS)
        return;
    sl_esm_run(lane->esm, lane->engine->now_ms - lane->esm_base_ms);
    settle(lane); /* filters may have passed over all of it */
}

void sl_lane_take(struct sl_lane *lane, struct sl_pool_task *task)
{
    lane->is_running[task->inv->lane] = false;
    lane->running--;
    if (lane->owner != SL_LANE_OURS) {
        drop_lost(lane);
        return;
    }
    sl_esm_end(task->inv, lane->engine->now_ms - lane->esm_base_ms);
    settle(lane);
}

void sl_lane_end_reading(struct sl_lane *lane)
{
    if (lane->state == SL_LANE_READING)
        enter(lane, lane->owner, SL_LANE_DRAINING);
    finish(lane);
}

size_t sl_lane_left(const struct sl_lane *lane)
{
    return lane->esm ? sl_esm_left(lane->esm, 0) : 0;
}

bool sl_lane_is_idle(const struct sl_lane *lane)
{
    return sl_lane_left(lane) == 0;
}

int64_t sl_lane_due_ms(const struct sl_lane *lane)
{
    if (!lane->esm || lane->owner != SL_LANE_OURS || sl_esm_left(lane->esm, 0) == 0)
        return INT64_MAX;
    int64_t due = sl_esm_due_ms(lane->esm, lane->engine->now_ms - lane->esm_base_ms);
    return due == INT64_MAX ? due : due + lane->esm_base_ms;
}

/* The age of the oldest record that is not handled. Of what was not read, nothing is known but that it is not
 * older than what was. */
int64_t sl_lane_look_lag(const struct sl_lane *lane)
{
    const struct sl_esm_record *first = lane->esm ? sl_esm_first_left(lane->esm, 0) : NULL;
    int64_t from_ms = first ? first->created_ms : lane->last_created_ms;
    bool is_nothing_known =
        !first && (lane->is_empty || lane->state == SL_LANE_DONE || lane->owner != SL_LANE_OURS || !from_ms);
    int64_t lag_ms = lane->engine->wall_ms - from_ms;
    return is_nothing_known || lag_ms < 0 ? 0 : lag_ms;
}
