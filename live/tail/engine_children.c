/* The children of a shard that has ended, asked for by themselves: DescribeStream with the filter
 * CHILD_SHARDS.
 *
 * A list of thousands of shards takes as many seconds as it has hundreds of pages, and its last page has the
 * newest shards. So where the list is long, whoever ends asks for its children alone, and they begin at once.
 * The list goes on as before, and is what proves that all children are known. A service that does not know
 * the filter is not asked again. */
#include "live/tail/engine_private.h"

#include "base/array.h"

/* Between two requests (AWS allows ten DescribeStream a second, and the list has its share), and how often
 * for one shard: at once, then after half a second, a second, and so on. */
#define PAUSE_MS  200
#define AGAIN_MS  500
#define TRIES_MAX 6

static bool is_childless(const struct sl_lane *lane)
{
    return lane->ended_wall_ms && !lane->has_all_children && lane->n_children == 0 &&
           lane->child_asks < TRIES_MAX && lane->owner == SL_LANE_OURS;
}

/* The one that has waited longest; NULL: none. `*due_ms`: when the next one is to be asked for. */
static struct sl_lane *next_of(const struct sl_engine *e, int64_t *due_ms)
{
    struct sl_lane *first = NULL;
    *due_ms = INT64_MAX;
    for (size_t i = 0; i < e->n; i++) {
        struct sl_lane *lane = e->lanes[i];
        if (!is_childless(lane))
            continue;
        if (lane->child_ask_ms > e->now_ms)
            *due_ms = lane->child_ask_ms < *due_ms ? lane->child_ask_ms : *due_ms;
        else if (!first || lane->ended_wall_ms < first->ended_wall_ms)
            first = lane;
    }
    return first;
}

static void take_children(struct sl_engine *e, const struct sl_live_shards *shards)
{
    struct sl_keeper_shard found[8];
    size_t n = 0;
    for (size_t i = 0; i < shards->n && n < SL_COUNT(found); i++) {
        const struct sl_live_shard *shard = &shards->list[i];
        /* (A service that ignores the filter lists others, too.) */
        if (!e->children.of || strcmp(shard->parent, e->children.of) != 0 || sl_engine_lane(e, shard->id))
            continue;
        const struct sl_lane *lane = sl_engine_take_shard(e, shard);
        found[n++] = (struct sl_keeper_shard){
            .id = lane->id, .parent = lane->parent, .is_parent_listed = true, .is_closed = lane->is_closed};
    }
    if (n == 0)
        return;
    sl_engine_link_parents(e);
    e->o.keeper.ops->found(e->o.keeper.self, found, n);
}

static void take_answer(struct sl_engine *e)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_live_shards shards = {0};
    const char *after;
    enum sl_status status = sl_live_outcome(e->children.ask, &error);
    sl_arena_reset(e->scratch);
    if (status == SL_OK)
        status = sl_live_told_shards(e->children.ask, e->scratch, &shards, &after, &error);
    if (status == SL_OK)
        take_children(e, &shards);
    else if (status != SL_RETRY)
        e->children.is_refused = true;
    e->children.next_ms = e->now_ms + PAUSE_MS;
}

static bool may_ask(const struct sl_engine *e)
{
    return e->list.is_long && e->o.keeper.ops->found && !e->children.is_refused && !e->is_ending;
}

void sl_engine_ask_children(struct sl_engine *e)
{
    if (sl_live_is_over(e->children.ask))
        take_answer(e);
    if (!may_ask(e) || sl_live_is_flying(e->children.ask) || e->now_ms < e->children.next_ms)
        return;
    struct sl_lane *lane = next_of(e, &e->children.next_ms);
    if (!lane)
        return;
    lane->child_ask_ms = e->now_ms + (AGAIN_MS << lane->child_asks);
    lane->child_asks++;
    sl_lane_set(&e->children.of, lane->id);
    sl_live_ask_children(e->children.ask, e->stream_arn, lane->id);
}

void sl_engine_has_ended(struct sl_lane *lane)
{
    lane->child_asks = 0;
    lane->child_ask_ms = 0;
    if (lane->engine->children.next_ms == INT64_MAX)
        lane->engine->children.next_ms = lane->engine->now_ms;
}

int64_t sl_engine_children_due_ms(const struct sl_engine *e)
{
    return sl_live_is_flying(e->children.ask) ? sl_live_due_ms(e->children.ask)
           : may_ask(e)                       ? e->children.next_ms
                                              : INT64_MAX;
}
