/* What is read of a shard: iterators, pages, and when. */
#include "base/array.h"
#include "live/tail/engine_private.h"

#include <inttypes.h>
#include <stdlib.h>

/* A shard is read so often: an idle one after ten seconds less and less. */
#define READ_MS      100
#define IDLE_MS      10000
#define READ_IDLE_MS 1000
/* A closed shard that still has records has no new ones to wait for. */
#define READ_CLOSED_MS 20
/* A page like this is followed by another at once, and so is one whose records are this old. */
#define FULL_RECORDS 1000
#define FULL_BYTES   (512 * 1024)
#define BEHIND_MS    5000
/* What a page may take in memory: asked for before it is known. 1 MB of records become up to twice as much
 * text. */
#define LEAST_BYTES ((size_t)16 * 1024)
#define MOST_BYTES  ((size_t)2 * 1024 * 1024)
/* What is due and could not be begun waits for memory or a connection, and is looked at again after this. */
#define STARVED_MS 20
/* After a request that failed. */
#define FIRST_PAUSE_MS    500
#define LONGEST_PAUSE_MS  10000
#define MISUNDERSTOOD_MAX 5 /* answers in a row that were not understood; then tail ends */

/* ---- whether and when ---- */

static bool is_parent_over(const struct sl_lane *lane)
{
    const struct sl_lane *parent = lane->parent_lane;
    return parent ? parent->is_ended : !lane->parent[0] || lane->is_parent_gone || lane->after;
}

/* It waits only for an answer of GetShardIterator about its parent, which nobody has and no list shows. */
static bool waits_for_unlisted(const struct sl_lane *lane)
{
    return lane->parent[0] && !lane->after && !lane->is_parent_gone && !lane->parent_lane;
}

static bool can_read(const struct sl_lane *lane)
{
    bool has_room = lane->n_pages == 0 || (lane->n_pages < SL_LANE_PAGES && !lane->blocked_since_ms);
    return lane->owner == SL_LANE_OURS && lane->state == SL_LANE_READING && lane->asked == SL_LANE_NOTHING &&
           has_room && !lane->engine->is_ending && (is_parent_over(lane) || waits_for_unlisted(lane));
}

bool sl_lane_wants_read(const struct sl_lane *lane)
{
    return lane->engine->now_ms >= lane->read_at_ms && can_read(lane);
}

int64_t sl_lane_read_due_ms(const struct sl_lane *lane)
{
    if (lane->asked != SL_LANE_NOTHING)
        return sl_live_due_ms(lane->ask);
    if (!can_read(lane))
        return INT64_MAX;
    int64_t later_ms = lane->engine->now_ms + STARVED_MS;
    return lane->read_at_ms > lane->engine->now_ms ? lane->read_at_ms : later_ms;
}

size_t sl_lane_estimate(const struct sl_lane *lane)
{
    size_t bytes = lane->answer_bytes ? lane->answer_bytes * 2 : MOST_BYTES;
    return bytes < LEAST_BYTES ? LEAST_BYTES : bytes > MOST_BYTES ? MOST_BYTES : bytes;
}

static int64_t idle_pause_ms(const struct sl_lane *lane)
{
    int64_t idle_ms = lane->engine->now_ms - lane->found_ms - IDLE_MS;
    int64_t pause_ms = idle_ms > 0 ? READ_MS + idle_ms / 10 : READ_MS;
    return lane->is_closed ? READ_CLOSED_MS : pause_ms < READ_IDLE_MS ? pause_ms : READ_IDLE_MS;
}

/* A busy shard is not read for every record: batches fill. One that is behind is read at once. */
static void plan_next(struct sl_lane *lane, const struct sl_page *page, size_t answer_bytes)
{
    const struct sl_engine *e = lane->engine;
    bool is_behind = page->n_read && e->wall_ms - page->last_ms > BEHIND_MS;
    bool is_full = page->n_read >= FULL_RECORDS || answer_bytes >= FULL_BYTES;
    lane->read_at_ms = is_full || is_behind ? e->now_ms : lane->began_ms + idle_pause_ms(lane);
}

/* ---- requests ---- */

static void release(struct sl_lane *lane)
{
    lane->asked = SL_LANE_NOTHING;
    lane->engine->flying--;
    lane->engine->memory_bytes -= lane->reserved;
    lane->reserved = 0;
}

static void ask_iterator(struct sl_lane *lane)
{
    const char *type = lane->read_after    ? "AFTER_SEQUENCE_NUMBER"
                       : lane->from_latest ? "LATEST"
                                           : "TRIM_HORIZON";
    const struct sl_live_position position = {lane->engine->stream_arn, lane->id, type, lane->read_after};
    lane->asked = SL_LANE_ITERATOR;
    sl_live_ask_iterator(lane->ask, &position);
}

static void ask_parent(struct sl_lane *lane)
{
    const struct sl_live_position position = {lane->engine->stream_arn, lane->parent, "TRIM_HORIZON", NULL};
    lane->asked = SL_LANE_PARENT;
    sl_live_ask_iterator(lane->ask, &position);
}

static void ask_records(struct sl_lane *lane)
{
    lane->asked = SL_LANE_RECORDS;
    lane->began_ms = lane->engine->now_ms;
    lane->began_wall_ms = lane->engine->wall_ms;
    sl_live_ask_records(lane->ask, lane->iterator);
}

void sl_lane_begin_read(struct sl_lane *lane)
{
    struct sl_engine *e = lane->engine;
    lane->reserved = sl_lane_estimate(lane);
    e->memory_bytes += lane->reserved;
    e->flying++;
    if (!is_parent_over(lane))
        ask_parent(lane);
    else if (lane->iterator)
        ask_records(lane);
    else
        ask_iterator(lane);
}

void sl_lane_stop_read(struct sl_lane *lane)
{
    if (lane->asked == SL_LANE_NOTHING)
        return;
    release(lane);
    sl_live_ask_destroy(lane->ask);
    lane->ask = sl_live_ask_new(lane->engine->o.live);
}

/* ---- what fails ---- */

/* The records after the last one that was read are gone. Says so once, with the place. */
static void note_gap(struct sl_lane *lane)
{
    fprintf(stderr,
            "sluice tail: %s: the records after %s are gone from the stream, which keeps them 24 hours; tail "
            "continues with the oldest one. Take what is missing from the table\n",
            lane->id, lane->read_after ? lane->read_after : "its beginning");
    sl_engine_note_gap(lane->engine);
    sl_lane_set(&lane->read_after, NULL);
    sl_lane_set(&lane->iterator, NULL);
    lane->from_latest = false;
    lane->since_ms = 0;
}

static void note_gone(struct sl_lane *lane)
{
    fprintf(
        stderr,
        "sluice tail: 1 shard(s) of the checkpoint are gone from the stream before they were read to their "
        "end: %s, after %s. Take what is missing from the table\n",
        lane->id, lane->read_after ? lane->read_after : "its beginning");
    sl_engine_note_gap(lane->engine);
    sl_lane_end_reading(lane);
}

/* True: a stream may answer so, and the place has been corrected. */
static bool mend(struct sl_lane *lane, const char *code)
{
    if (strcmp(code, "ExpiredIteratorException") == 0) {
        sl_lane_set(&lane->iterator, NULL);
        lane->from_latest = false; /* since_ms says where it began */
        return true;
    }
    if (strcmp(code, "TrimmedDataAccessException") == 0) {
        note_gap(lane);
        return true;
    }
    if (strcmp(code, "ResourceNotFoundException") == 0 && (lane->is_closed || !lane->is_listed)) {
        note_gone(lane);
        return true;
    }
    return false;
}

static void wait_longer(struct sl_lane *lane)
{
    unsigned times = lane->failures < 6 ? lane->failures : 6;
    int64_t pause_ms = (int64_t)FIRST_PAUSE_MS << (lane->misunderstood ? 0 : times);
    lane->failures++;
    pause_ms = pause_ms < LONGEST_PAUSE_MS ? pause_ms : LONGEST_PAUSE_MS;
    lane->read_at_ms = lane->engine->now_ms + pause_ms;
}

/* An answer that is not understood is asked for again, but not for ever: it may be about what is in the
 * stream. */
static void fail(struct sl_lane *lane, const struct sl_error *error)
{
    struct sl_engine *e = lane->engine;
    bool is_broken = strcmp(error->code, "BrokenAnswer") == 0;
    bool is_gone = strcmp(error->code, "ResourceNotFoundException") == 0; /* of all shards: the list knows */
    lane->misunderstood = is_broken ? lane->misunderstood + 1 : 0;
    e->failed_reads++;
    if (is_gone)
        sl_engine_want_list(e);
    if ((error->status != SL_RETRY && !is_gone) || lane->misunderstood >= MISUNDERSTOOD_MAX) {
        sl_engine_fail(e, "%s", error->text);
        return;
    }
    sl_engine_complain(e, error);
    wait_longer(lane);
}

/* After `mend`: at once, but not when the next answer is the same. */
static void go_on(struct sl_lane *lane, const struct sl_error *error)
{
    if (lane->failures++ == 0) {
        lane->read_at_ms = lane->engine->now_ms;
        return;
    }
    sl_engine_complain(lane->engine, error);
    wait_longer(lane);
}

/* ---- what comes ---- */

/* A parent that no list shows is gone only when the service says so. Else it is a shard like others. */
static void take_parent(struct sl_lane *lane, enum sl_status status, const struct sl_error *error)
{
    static const char *const gone[] = {"ResourceNotFoundException", "TrimmedDataAccessException",
                                       "ValidationException"};
    for (size_t i = 0; i < SL_COUNT(gone); i++)
        lane->is_parent_gone |= status != SL_OK && strcmp(error->code, gone[i]) == 0;
    lane->read_at_ms = lane->engine->now_ms;
    if (status == SL_OK)
        sl_engine_add_unlisted(lane->engine, lane->parent);
    else if (!lane->is_parent_gone)
        fail(lane, error);
}

static void take_page(struct sl_lane *lane, struct sl_page *page)
{
    struct sl_engine *e = lane->engine;
    e->result.records += page->n;
    for (int i = 0; i < 4; i++) {
        e->result.by_event[i] += page->by_event[i];
        e->result.removed_by[i] += page->removed_by[i];
    }
    lane->is_empty = page->n_read == 0;
    lane->empty_reads = lane->is_empty ? lane->empty_reads + 1 : 0;
    if (page->last_id) {
        sl_lane_set(&lane->read_after, page->last_id);
        lane->found_ms = e->now_ms;
    }
    if (page->n) {
        sl_lane_feed(lane, page);
        return;
    }
    if (sl_lane_is_idle(lane) && lane->is_empty)
        sl_through_empty(&lane->through, lane->is_closed, lane->began_wall_ms);
    sl_page_destroy(page);
}

static enum sl_status make_page(struct sl_lane *lane, struct sl_span answer, struct sl_page **out,
                                struct sl_error *error)
{
    struct sl_engine *e = lane->engine;
    const struct sl_page_options options = {.stream_arn = e->stream_arn,
                                            .ttl_attribute = e->o.ttl_attribute,
                                            .needs_item_keys = e->o.settings->parallelization > 1,
                                            .needs_records = e->o.settings->n_filters > 0,
                                            .after = lane->read_after,
                                            .now_ms = e->wall_ms,
                                            .available_ms = sl_lane_available_ms(lane),
                                            .since_ms = lane->from_latest ? 0 : lane->since_ms,
                                            .scratch = e->page_scratch};
    return sl_page_make(&options, answer, out, error);
}

/* What cannot be read is asked for again: the answer may have been damaged on its way. A record that stays so
 * ends tail, with its own text. */
static void fail_page(struct sl_lane *lane, struct sl_span answer, const struct sl_error *error)
{
    struct sl_error broken = SL_NO_ERROR;
    if (sl_live_is_page(answer) && lane->misunderstood + 1 >= MISUNDERSTOOD_MAX) {
        sl_engine_fail(lane->engine, "%s: %s", lane->id, error->text);
        return;
    }
    (void)sl_fail(&broken, SL_RETRY, "BrokenAnswer", "GetRecords: the answer was not understood (%s: %s)",
                  lane->id, error->code);
    fail(lane, &broken);
}

static void take_records(struct sl_lane *lane, struct sl_error *error)
{
    struct sl_engine *e = lane->engine;
    sl_arena_reset(e->scratch);
    struct sl_live_page answer = sl_live_told_records(lane->ask, e->scratch);
    struct sl_page *page;
    e->reads++;
    e->result.has_begun = true;
    lane->answer_bytes = answer.text.len;
    if (make_page(lane, answer.text, &page, error) != SL_OK) {
        fail_page(lane, answer.text, error);
        return;
    }
    lane->failures = lane->misunderstood = 0;
    plan_next(lane, page, answer.text.len);
    bool is_cut = page->is_cut;
    bool is_at_end = !is_cut && !answer.next_iterator;
    sl_lane_set(&lane->iterator, is_cut ? NULL : answer.next_iterator);
    take_page(lane, page);
    sl_live_forget(lane->ask);
    if (is_at_end)
        sl_lane_end_reading(lane);
}

static void take_answer(struct sl_lane *lane, enum sl_lane_ask asked)
{
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = sl_live_outcome(lane->ask, &error);
    if (asked == SL_LANE_PARENT) {
        take_parent(lane, status, &error);
    } else if (status != SL_OK) {
        if (!mend(lane, error.code))
            fail(lane, &error);
        else
            go_on(lane, &error);
    } else if (asked == SL_LANE_ITERATOR) {
        sl_arena_reset(lane->engine->scratch);
        sl_lane_set(&lane->iterator, sl_live_told_iterator(lane->ask, lane->engine->scratch));
        lane->read_at_ms = lane->engine->now_ms;
    } else {
        take_records(lane, &error);
    }
}

void sl_lane_take_read(struct sl_lane *lane)
{
    if (lane->asked == SL_LANE_NOTHING || !sl_live_is_over(lane->ask))
        return;
    enum sl_lane_ask asked = lane->asked;
    release(lane);
    take_answer(lane, asked);
}
