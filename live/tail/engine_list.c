/* The stream's list of shards, and whether it is still the table's stream. */
#include "live/tail/engine_private.h"

#include <stdlib.h>

/* How often the shards are listed when nothing has ended, and the table is asked for its stream: what happens
 * to a stream is noticed within a minute. */
#define LIST_MS  30000
#define TABLE_MS 20000
/* While the children of a shard are awaited: twice a second, then less and less. */
#define SOON_MS    500
#define LONGEST_MS 15000
/* Pages of a long list follow each other so: AWS allows ten DescribeStream a second. */
#define PAGE_MS     100
#define QUICK_PAGES 5
/* After a request that failed. */
#define RETRY_MS          500
#define MISUNDERSTOOD_MAX 5

/* The list may lack a shard's children for about so long. When it has some, a later list that shows the same
 * ones shows all: of two that it was split into, one may be listed before the other. */
#define CHILDREN_MS 60000
#define AGREE_MS    5000

/* A shard is forgotten when so many lists in a row lacked it, and it is done. */
#define MISSES 2

/* ---- shards ---- */

static struct sl_lane *find_or_add(struct sl_engine *e, const char *id)
{
    struct sl_lane *lane = sl_engine_lane(e, id);
    return lane ? lane : sl_engine_add_lane(e, id);
}

struct sl_lane *sl_engine_take_shard(struct sl_engine *e, const struct sl_live_shard *shard)
{
    struct sl_lane *lane = find_or_add(e, shard->id);
    lane->is_listed = true;
    lane->is_closed = shard->is_closed;
    sl_lane_set(&lane->parent, shard->parent);
    return lane;
}

void sl_engine_link_parents(struct sl_engine *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->lanes[i]->n_children = 0;
    for (size_t i = 0; i < e->n; i++) {
        struct sl_lane *lane = e->lanes[i];
        lane->parent_lane = lane->parent[0] ? sl_engine_lane(e, lane->parent) : NULL;
        if (lane->parent_lane)
            lane->parent_lane->n_children++;
    }
}

void sl_engine_add_unlisted(struct sl_engine *e, const char *id)
{
    struct sl_lane *lane = find_or_add(e, id);
    lane->is_closed = true; /* it has a child */
    sl_engine_link_parents(e);
    sl_engine_want_list(e);
}

/* The order of the list: parents before children. */
static void take_order(struct sl_engine *e)
{
    size_t n = 0;
    for (size_t i = 0; i < e->list.shards.n; i++)
        e->order[n++] = sl_engine_lane(e, e->list.shards.list[i].id);
    for (size_t i = 0; i < e->n; i++)
        if (!e->lanes[i]->is_listed)
            e->order[n++] = e->lanes[i];
    memcpy(e->lanes, e->order, n * sizeof(struct sl_lane *));
    sl_engine_take_lanes(e);
}

/* It was read to its end, and no child of it is still to be listed. */
static bool is_old(const struct sl_lane *lane)
{
    bool is_at_rest = lane->is_ended && !lane->has_moved && !lane->running;
    bool is_awaited = lane->ended_wall_ms && !lane->has_all_children;
    return !lane->is_listed && lane->misses >= MISSES && is_at_rest && !is_awaited;
}

/* What is forgotten here, the keeper does not tell again: its children remember that it is over. */
static void drop_old(struct sl_engine *e)
{
    size_t kept = 0;
    for (size_t i = 0; i < e->n; i++)
        e->lanes[i]->is_parent_gone |= e->lanes[i]->parent_lane && is_old(e->lanes[i]->parent_lane);
    for (size_t i = 0; i < e->n; i++)
        if (is_old(e->lanes[i]))
            sl_lane_destroy(e->lanes[i]);
        else
            e->lanes[kept++] = e->lanes[i];
    if (kept == e->n)
        return;
    e->n = kept;
    sl_engine_take_lanes(e);
    sl_engine_link_parents(e);
}

static void mark(struct sl_engine *e)
{
    const struct sl_live_shards *shards = &e->list.shards;
    for (size_t i = 0; i < e->n; i++)
        e->lanes[i]->is_listed = false;
    for (size_t i = 0; i < shards->n; i++)
        (void)sl_engine_take_shard(e, &shards->list[i]);
    for (size_t i = 0; i < e->n; i++)
        e->lanes[i]->misses = e->lanes[i]->is_listed ? 0 : e->lanes[i]->misses + 1;
}

/* True: the children of a shard that has ended are still awaited. */
static bool look_for_children(struct sl_engine *e, struct sl_lane *lane)
{
    if (!lane->ended_wall_ms || lane->has_all_children || lane->ended_wall_ms >= e->list.began_wall_ms)
        return lane->ended_wall_ms && !lane->has_all_children;
    size_t n = lane->n_children;
    if (n != lane->n_seen || !lane->children_wall_ms) {
        lane->n_seen = n;
        lane->children_wall_ms = e->list.began_wall_ms;
    }
    int64_t agree_ms = n ? AGREE_MS : CHILDREN_MS;
    lane->has_all_children = e->list.began_wall_ms - lane->children_wall_ms >= agree_ms ||
                             e->list.began_wall_ms - lane->ended_wall_ms >= CHILDREN_MS || e->stream.is_old;
    return !lane->has_all_children;
}

static void plan_next(struct sl_engine *e)
{
    bool is_awaited = false;
    for (size_t i = 0; i < e->n; i++)
        is_awaited |= look_for_children(e, e->lanes[i]);
    if (!is_awaited || !e->list.pause_ms)
        e->list.pause_ms = SOON_MS;
    else
        e->list.pause_ms = e->list.pause_ms * 2 < LONGEST_MS ? e->list.pause_ms * 2 : LONGEST_MS;
    e->list.next_ms = e->now_ms + (is_awaited ? e->list.pause_ms : LIST_MS);
    if (e->list.is_wanted)
        sl_engine_want_list(e);
    e->list.is_wanted = false;
}

static void tell_keeper(struct sl_engine *e)
{
    struct sl_keeper_shard *shards = sl_arena_zalloc(e->list.arena, (e->n + 1) * sizeof(*shards));
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++) {
        const struct sl_lane *lane = e->lanes[i], *parent = lane->parent_lane;
        if (!lane->is_listed && lane->is_ended)
            continue;
        shards[n++] = (struct sl_keeper_shard){.id = lane->id,
                                               .parent = lane->parent,
                                               .is_parent_listed = parent && parent->is_listed,
                                               .is_closed = lane->is_closed};
    }
    const struct sl_keeper_listing listing = {.shards = shards,
                                              .n = n,
                                              .now_ms = e->list.began_wall_ms,
                                              .is_from_latest = e->o.is_from_latest && !e->list.has_first};
    e->o.keeper.ops->listed(e->o.keeper.self, &listing);
}

static void take_list(struct sl_engine *e)
{
    mark(e);
    take_order(e);
    sl_engine_link_parents(e);
    tell_keeper(e);
    e->list.has_first = true;
    e->list.is_long = e->list.pages > 1;
    e->list.misunderstood = 0;
    drop_old(e);
    if (e->list.shards.is_disabled)
        e->stream.is_old = true;
    plan_next(e);
}

/* ---- requests ---- */

void sl_engine_want_list(struct sl_engine *e)
{
    e->list.pause_ms = 0;
    e->list.is_wanted = true; /* the one under way may have begun too early */
    int64_t soon_ms = e->list.began_ms + SOON_MS;
    if (!sl_live_is_flying(e->list.ask) && e->list.next_ms > soon_ms)
        e->list.next_ms = soon_ms;
}

bool sl_engine_was_listed(const struct sl_engine *e, int64_t since_wall_ms)
{
    return e->list.has_first && !sl_live_is_flying(e->list.ask) && e->list.began_wall_ms > since_wall_ms;
}

static void tell_deleted(struct sl_engine *e, const struct sl_error *error)
{
    if (!e->o.follows || !e->o.table) {
        sl_engine_fail(
            e,
            "the stream %s is deleted, and what it held and was not handled is gone (%s). Take what "
            "is missing from the table, and start again with another --checkpoint",
            e->stream_arn, error->text);
        return;
    }
    if (!e->stream.is_gone)
        fprintf(
            stderr,
            "sluice tail: the stream %s is deleted, and what it held and was not handled is gone. Take what "
            "is missing from the table\n",
            e->stream_arn);
    e->stream.is_old = e->stream.is_gone = true;
    e->list.next_ms = e->now_ms + LIST_MS;
}

static void fail_list(struct sl_engine *e, const struct sl_error *error)
{
    bool is_broken = strcmp(error->code, "BrokenAnswer") == 0;
    e->list.misunderstood = is_broken ? e->list.misunderstood + 1 : 0;
    e->list.after = NULL;
    e->list.next_ms = e->now_ms + RETRY_MS;
    if (e->list.has_first && strcmp(error->code, "ResourceNotFoundException") == 0)
        tell_deleted(e, error);
    else if (error->status != SL_RETRY || e->list.misunderstood >= MISUNDERSTOOD_MAX)
        sl_engine_fail(e, "%s", error->text);
    else
        sl_engine_complain(e, error);
}

static void begin_page(struct sl_engine *e, const char *after)
{
    e->list.pages++;
    sl_live_ask_shards(e->list.ask, e->stream_arn, after);
}

static void begin_list(struct sl_engine *e)
{
    sl_arena_reset(e->list.arena);
    e->list.shards = (struct sl_live_shards){0};
    e->list.pages = 0;
    e->list.after = NULL;
    e->list.began_ms = e->now_ms;
    e->list.began_wall_ms = e->wall_ms;
    e->list.is_wanted = false;
    begin_page(e, NULL);
}

static void take_page(struct sl_engine *e)
{
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = sl_live_outcome(e->list.ask, &error);
    if (status == SL_OK)
        status = sl_live_told_shards(e->list.ask, e->list.arena, &e->list.shards, &e->list.after, &error);
    if (status != SL_OK)
        fail_list(e, &error);
    else if (!e->list.after)
        take_list(e);
    else if (e->list.pages < QUICK_PAGES)
        begin_page(e, e->list.after);
    else
        e->list.next_ms = e->now_ms + PAGE_MS;
}

/* ---- the table's stream ---- */

static void take_table(struct sl_engine *e)
{
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = sl_live_outcome(e->stream.ask, &error);
    sl_arena_reset(e->scratch);
    if (status == SL_OK) {
        const char *latest = sl_live_told_stream(e->stream.ask, e->scratch);
        sl_lane_set(&e->stream.latest, latest);
        e->stream.is_old |= !latest || strcmp(latest, e->stream_arn) != 0;
        e->stream.is_table_gone = false;
    } else if (strcmp(error.code, "ResourceNotFoundException") == 0) {
        sl_lane_set(&e->stream.latest, NULL);
        e->stream.is_old = e->stream.is_table_gone = true;
    } else {
        sl_engine_complain(e, &error);
    }
    e->stream.has_answered |= status != SL_RETRY;
    e->stream.next_ms = e->now_ms + (e->stream.has_answered ? TABLE_MS : RETRY_MS);
}

static const char *what_happened(const struct sl_engine *e)
{
    if (e->stream.is_table_gone)
        return "its table is deleted";
    return e->stream.latest && strcmp(e->stream.latest, e->stream_arn) != 0
               ? "the table has another stream now"
               : "it is disabled";
}

/* Says it once, and ends, unless it is to follow. */
static void tell_old(struct sl_engine *e)
{
    char through[SL_TIME_BYTES] = "an unknown time";
    if (!e->stream.is_old || e->stream.was_told)
        return;
    e->stream.was_told = e->result.has_begun = true;
    sl_engine_find_through(e);
    if (e->through_ms)
        sl_time_text(e->through_ms * 1000000, through);
    if (!e->o.follows) {
        sl_engine_fail(
            e,
            "the stream %s gets no more changes: %s%s%s. Handled are all changes up to %s; those that "
            "were made since may be in no stream. Start again with --follow-new-stream: what is left "
            "of this stream is handled first, then the table's new one. Take what is missing from "
            "the table",
            e->stream_arn, what_happened(e), e->stream.latest ? ", " : "",
            e->stream.latest ? e->stream.latest : "", through);
        return;
    }
    fprintf(
        stderr,
        "sluice tail: the stream %s gets no more changes: %s. Handled are all changes up to %s. What is left "
        "of it is handled first, then the table's new stream\n",
        e->stream_arn, what_happened(e), through);
    e->stream.next_ms = e->now_ms;
}

static bool are_all_done(const struct sl_engine *e)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->lanes[i]->running || (!e->lanes[i]->is_ended && !e->stream.is_gone))
            return false;
    return e->list.has_first && e->list.shards.n;
}

void sl_engine_note_missed(struct sl_engine *e)
{
    if (e->o.keeper.ops->missed)
        e->o.keeper.ops->missed(e->o.keeper.self, e->wall_ms);
}

void sl_engine_note_gap(struct sl_engine *e)
{
    e->result.gaps++;
    sl_engine_note_missed(e);
}

static void begin_new_stream(struct sl_engine *e)
{
    fprintf(stderr,
            "sluice tail: %s is handled to its end; follows %s. Changes that were made between the end of "
            "the one "
            "and the beginning of the other are in neither: take what is missing from the table\n",
            e->stream_arn, e->stream.latest);
    sl_engine_note_gap(e);
    sl_lane_set(&e->stream_arn, e->stream.latest);
    if (e->o.followed)
        e->o.followed(e->o.self, e->stream_arn);
    for (size_t i = 0; i < e->n; i++)
        sl_lane_destroy(e->lanes[i]);
    e->n = 0;
    sl_engine_take_lanes(e);
    sl_lane_set(&e->children.of, NULL); /* what is asked for is of the old one */
    e->stream.is_old = e->stream.was_told = e->stream.is_gone = false;
    e->list.has_first = false;
    e->o.is_from_latest = false; /* all of the new stream is new */
    e->list.next_ms = e->now_ms;
}

bool sl_engine_follow(struct sl_engine *e)
{
    struct sl_error error = SL_NO_ERROR;
    const struct sl_keeper *keeper = &e->o.keeper;
    if (!e->stream.is_old || !e->o.follows || e->is_ending || !are_all_done(e))
        return false;
    if (e->stream.is_table_gone) {
        sl_engine_fail(e, "the stream %s is handled to its end, and its table is deleted", e->stream_arn);
        return false;
    }
    if (!e->stream.latest || strcmp(e->stream.latest, e->stream_arn) == 0)
        return false; /* it waits for one */
    if (!keeper->ops->follow || !keeper->ops->follow(keeper->self, e->stream.latest, &error)) {
        sl_engine_fail(e, "%s: cannot be used for the table's new stream, %s%s%s: name another",
                       keeper->ops->name, e->stream.latest, error.text[0] ? ": " : "", error.text);
        return false;
    }
    begin_new_stream(e);
    return true;
}

/* ---- both ---- */

void sl_engine_list(struct sl_engine *e)
{
    if (sl_live_is_over(e->list.ask))
        take_page(e);
    if (sl_live_is_over(e->stream.ask))
        take_table(e);
    tell_old(e);
    sl_engine_ask_children(e);
    if (e->is_ending)
        return;
    if (!sl_live_is_flying(e->list.ask) && e->now_ms >= e->list.next_ms) {
        if (e->list.after)
            begin_page(e, e->list.after);
        else
            begin_list(e);
    }
    if (e->o.table && !sl_live_is_flying(e->stream.ask) && e->now_ms >= e->stream.next_ms)
        sl_live_ask_table(e->stream.ask, e->o.table);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t sl_engine_list_due_ms(const struct sl_engine *e)
{
    int64_t list = sl_live_is_flying(e->list.ask) ? sl_live_due_ms(e->list.ask) : e->list.next_ms;
    int64_t table = sl_live_is_flying(e->stream.ask) ? sl_live_due_ms(e->stream.ask)
                    : e->o.table                     ? e->stream.next_ms
                                                     : INT64_MAX;
    return e->is_ending ? INT64_MAX : earlier(earlier(list, table), sl_engine_children_due_ms(e));
}
