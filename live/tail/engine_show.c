/* What is to be seen of the engine, and up to when the table's changes are handled. */
#include "live/tail/engine_private.h"

/* ---- through ---- */

/* A shard that waits for its parent has later changes than that. A shard that has ended counts until all of
 * its children are known. */
static bool counts(const struct sl_lane *lane)
{
    if (lane->state == SL_LANE_DONE)
        return !lane->has_all_children;
    const struct sl_lane *parent = lane->parent_lane;
    return !lane->is_ended && (!parent || parent->is_ended);
}

/* The clock was set back: times that it told before say nothing. */
static void forget_future(struct sl_engine *e)
{
    if (e->through_ms > e->wall_ms)
        e->through_ms = 0;
    for (size_t i = 0; i < e->n; i++)
        if (e->lanes[i]->through.ms > e->wall_ms)
            e->lanes[i]->through = (struct sl_through){0};
}

void sl_engine_find_through(struct sl_engine *e)
{
    int64_t through_ms = INT64_MAX;
    forget_future(e);
    for (size_t i = 0; i < e->n; i++)
        if (counts(e->lanes[i]) && e->lanes[i]->through.ms < through_ms)
            through_ms = e->lanes[i]->through.ms;
    if (through_ms != INT64_MAX && through_ms > e->through_ms)
        e->through_ms = through_ms;
}

/* ---- the snapshot ---- */

static enum sl_vitals_shard_state state_of(const struct sl_lane *lane)
{
    if (lane->is_ended || lane->state == SL_LANE_DONE)
        return SL_VITALS_DONE;
    return lane->owner == SL_LANE_OURS && (!lane->parent_lane || lane->parent_lane->is_ended)
               ? SL_VITALS_OPEN
               : SL_VITALS_WAITING;
}

static void show_shards(struct sl_engine *e, struct sl_vitals *v)
{
    v->shards = sl_arena_zalloc(e->scratch, (e->n + 1) * sizeof(*v->shards));
    for (size_t i = 0; i < e->n; i++) {
        struct sl_lane *lane = e->lanes[i];
        lane->lag_ms = sl_lane_look_lag(lane);
        v->lag_ms = lane->lag_ms > v->lag_ms ? lane->lag_ms : v->lag_ms;
        v->n_blocked += lane->blocked_since_ms > 0;
        if (!lane->is_listed)
            continue;
        v->shards[v->n_shards++] = (struct sl_vitals_shard){
            .id = lane->id,
            .state = state_of(lane),
            .is_ours = lane->owner == SL_LANE_OURS,
            .is_at_end = lane->is_empty,
            .lag_ms = lane->lag_ms,
            .handled = lane->handled,
            .retries = lane->retries,
            .blocked_since_ms = lane->blocked_since_ms,
            .blocked_at = lane->blocked_since_ms ? lane->blocked_at : NULL,
            .memory_bytes = lane->page_bytes,
        };
    }
}

static void show_routes(struct sl_engine *e, struct sl_vitals *v)
{
    const struct sl_runner_route *routes = sl_pool_routes(e->o.pool, &v->n_routes);
    v->routes = sl_arena_zalloc(e->scratch, (v->n_routes + 1) * sizeof(*v->routes));
    for (size_t i = 0; i < v->n_routes; i++)
        v->routes[i] = (struct sl_vitals_route){.name = routes[i].name,
                                                .handler = routes[i].handler,
                                                .target = routes[i].target,
                                                .matched = routes[i].matched,
                                                .applied = routes[i].applied,
                                                .parked = routes[i].parked,
                                                .set_aside = routes[i].set_aside,
                                                .failed = routes[i].failed,
                                                .calls = routes[i].calls,
                                                .bytes = routes[i].bytes};
}

static void show_totals(struct sl_engine *e, struct sl_vitals *v)
{
    struct sl_esm_stats sum = e->gone;
    struct sl_runner_stats processes = sl_pool_stats(e->o.pool);
    for (size_t i = 0; i < e->n; i++) {
        struct sl_esm_stats one = sl_lane_stats(e->lanes[i]);
        sl_esm_stats_add(&sum, &one);
    }
    v->read = e->result.records;
    v->handled = sum.done + sum.filtered;
    v->filtered = sum.filtered;
    v->discarded = sum.discarded;
    v->trimmed = sum.trimmed;
    v->invocations = sum.invocations;
    v->function_errors = sum.function_errors;
    v->retries = sum.retries;
    v->throttles = sum.throttles;
    v->process_starts = processes.starts;
    v->process_ends = processes.exits;
    v->timeouts = processes.timeouts;
}

void sl_engine_show(struct sl_engine *e)
{
    e->shown_at_ms = e->now_ms;
    e->is_shown_late = false;
    if (!e->o.board)
        return;
    bool is_in_trouble = e->trouble[0] && e->now_ms - e->trouble_at_ms < 30000;
    struct sl_vitals v = {.started_ms = e->began_wall_ms,
                          .now_ms = e->wall_ms,
                          .stream_arn = e->stream_arn,
                          .is_ending = e->is_ending,
                          .reads = e->reads,
                          .failed_reads = e->failed_reads,
                          .gaps = e->result.gaps,
                          .leases_lost = e->result.leases_lost,
                          .saves = e->saves,
                          .through_ms = e->through_ms,
                          .memory_bytes = e->memory_bytes,
                          .memory_limit_bytes = e->o.memory_bytes,
                          .workers = sl_pool_size(e->o.pool),
                          .busy_workers = sl_pool_busy(e->o.pool),
                          .trouble = is_in_trouble ? e->trouble : NULL};
    sl_arena_reset(e->scratch);
    sl_engine_find_through(e);
    show_totals(e, &v);
    show_shards(e, &v);
    show_routes(e, &v);
    sl_vitals_publish(e->o.board, &v);
}
