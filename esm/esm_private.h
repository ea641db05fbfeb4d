/* What the files of the simulator share. esm_run.c (and in real time esm_live.c above it) drives esm_batch.c
 * and esm_judge.c; both stand on
 * esm_ahead.c, esm_discard.c, esm_event.c and esm_answer.c; all stand on esm_state.c. */
#ifndef SL_ESM_ESM_PRIVATE_H
#define SL_ESM_ESM_PRIVATE_H

#include "esm/esm.h"

/* A part of the batch: positions in the lane's `batch`. The last one on the stack is invoked next. */
struct sl_esm_part {
    size_t from, to;
    int64_t attempts; /* that failed */
};

enum sl_esm_state {
    SL_ESM_RUNNING, /* an invocation ends at `when`; the first state: what ends makes room for what begins */
    SL_ESM_READING, /* looks for records at `when` */
    SL_ESM_READY,   /* the next part begins at `when` */
    SL_ESM_BLOCKED, /* waits for the parent shard */
    SL_ESM_ENDED
};

struct sl_esm_lane {
    struct sl_esm_track *shard;
    unsigned number;
    enum sl_esm_state state;
    int64_t when;    /* ms since the beginning */
    int64_t free_at; /* when the previous batch was done: batching windows begin here */
    int64_t send_at; /* when the batch that is being gathered is invoked, full or not */

    uint32_t *mine; /* indices, in the shard, of this lane's records */
    size_t n_mine, mine_room, next;

    const struct sl_esm_record **batch; /* the batch under way */
    uint32_t *index;                    /* of these records, in the shard */
    size_t n, room, bytes;
    struct sl_esm_part *parts;
    size_t n_parts, parts_room;

    bool is_final, is_terminated_early; /* the batch is a window's last call */
    int64_t throttles;                  /* in a row */
    bool is_refused;                    /* by the concurrency limit: the driver was not asked */
    struct sl_esm_invocation inv;
    char request_id[37];
    struct sl_buffer payload;
    bool was_sent;              /* a part of the batch was in an invocation */
    bool has_payload;           /* `payload` is that of the next part: kept between attempts */
    struct sl_buffer ahead;     /* the event of the shard's records from `ahead_from` on, `n_ahead` of them */
    size_t ahead_from, n_ahead; /* 0: there is no such event */
    struct sl_buffer body;
    enum sl_esm_outcome outcome;
};

/* What became known about a record. */
enum sl_esm_mark {
    SL_ESM_DONE = 1,      /* also: given up, or filtered out */
    SL_ESM_DELIVERED = 2, /* it was in an invocation that failed, or that made no progress */
    SL_ESM_BLAMED = 4     /* an answer named it, or an invocation failed with it alone */
};

/* Records of a shard that came together: all of them, or a page of a live stream. */
struct sl_esm_page {
    const struct sl_esm_record *records;
    size_t from, n;       /* the index of the first one in the shard */
    unsigned char *marks; /* per record: enum sl_esm_mark */
};

/* A shard and how far it is. */
struct sl_esm_track {
    struct sl_esm *esm;
    const struct sl_esm_shard *shard;
    struct sl_esm_lane *lanes;
    unsigned lanes_left;
    struct sl_esm_page *pages; /* the first one holds `checkpoint`, or the record before it */
    size_t n_pages, n;         /* pages; records of the shard so far */
    size_t checkpoint;
    char *forgotten_id; /* of the last record of a page that is gone; NULL: none is */
    bool has_all;       /* no more pages come from the driver */

    bool has_window;
    int64_t window; /* its number: it begins at this times its length */
    struct sl_buffer state, new_state;
};

struct sl_esm {
    struct sl_esm_settings settings;
    struct sl_esm_driver driver;
    struct sl_clock_virtual *clock;
    int64_t base_ms; /* the clock's steady time at the beginning */
    int64_t wall_ms; /* its wall time at the beginning, since 1970 */
    int64_t now_ms;  /* since the beginning */
    struct sl_esm_track *shards;
    size_t n;
    struct sl_esm_lane *lanes; /* all of them */
    size_t n_lanes;
    int64_t running;
    uint64_t random;
    struct sl_arena *scratch; /* for filters */
    struct sl_esm_stats stats;
};

static inline int64_t sl_esm_wall_ms(const struct sl_esm *esm)
{
    return esm->wall_ms + esm->now_ms;
}

/* When the open window ends, in ms since 1970. */
static inline int64_t sl_esm_window_end_ms(const struct sl_esm_track *shard)
{
    return (shard->window + 1) * shard->esm->settings.tumbling_s * 1000;
}

/* The part that is in an invocation, or goes into the next one. */
static inline struct sl_esm_part *sl_esm_top(struct sl_esm_lane *lane)
{
    return &lane->parts[lane->n_parts - 1];
}

/* ---- esm_state.c ---- */

/* The page that holds the record: one of a few. */
static inline struct sl_esm_page *sl_esm_page_of(const struct sl_esm_track *shard, size_t index)
{
    struct sl_esm_page *page = shard->pages;
    while (index - page->from >= page->n)
        page++;
    return page;
}

static inline const struct sl_esm_record *sl_esm_record_at(const struct sl_esm_track *shard, size_t index)
{
    const struct sl_esm_page *page = sl_esm_page_of(shard, index);
    return &page->records[index - page->from];
}

static inline unsigned char *sl_esm_mark_at(const struct sl_esm_track *shard, size_t index)
{
    const struct sl_esm_page *page = sl_esm_page_of(shard, index);
    return &page->marks[index - page->from];
}

/* Whether the lane has a record that it did not read. The driver is asked for more. */
bool sl_esm_has_next(struct sl_esm_lane *lane);

/* The same for the record that comes `k` after that one. */
bool sl_esm_has_after(struct sl_esm_lane *lane, size_t k);

/* Lets go of pages below the checkpoint, and returns their number. */
size_t sl_esm_drop_pages(struct sl_esm_track *shard);

/* Adds records to the end of the shard, and shares them out to its lanes. */
void sl_esm_add_page(struct sl_esm_track *shard, const struct sl_esm_record *records, size_t n);

void sl_esm_new_uuid(uint64_t *random, char out[37]);

/* The record is done, given up or filtered out. Moves the shard's checkpoint. */
void sl_esm_mark_done(struct sl_esm_track *shard, uint32_t index);

/* The id of the last record below the checkpoint; absent when there is none. */
struct sl_span sl_esm_track_id(const struct sl_esm_track *shard);

/* ---- esm_discard.c ---- */

/* Whether the record is older than the mapping allows, or gone from the stream: `*condition` says which. */
bool sl_esm_is_expired(const struct sl_esm *esm, const struct sl_esm_record *record,
                       enum sl_esm_condition *condition);

/* Gives up the first `n` records of a part. */
void sl_esm_give_up(struct sl_esm_lane *lane, struct sl_esm_part *part, size_t n,
                    enum sl_esm_condition condition, bool was_function_error);

/* Gives up the records at the beginning of the part that are too old. True: none is left in it. */
bool sl_esm_drop_expired(struct sl_esm_lane *lane, struct sl_esm_part *part, bool was_function_error);

/* ---- esm_event.c ---- */

/* What is before and after an event's records. */
#define SL_ESM_EVENT_BEGIN "{\"Records\":["
#define SL_ESM_EVENT_END   "]}"

/* Writes the event of the part into lane->payload. */
void sl_esm_write_event(struct sl_esm_lane *lane, const struct sl_esm_part *part);

/* ---- esm_answer.c ---- */

/* Reads the answer in the lane as a partial answer, and blames the records that it names. True: `*failed` is
 * the index of the lowest failed record, or their number when none failed. False: the answer is malformed, so
 * the whole batch failed. */
bool sl_esm_read_failures(struct sl_esm_lane *lane, size_t *failed);

/* Whether the answer names failures, right or wrong ones: for answers that are ignored. */
bool sl_esm_names_failures(struct sl_span answer);

/* Reads the state in a window's answer, as JSON text, into `out`. False: there is none. */
bool sl_esm_read_state(struct sl_span answer, struct sl_buffer *out);

/* ---- esm_run.c ---- */

/* Whether the simulation is driven in real time (esm_live.c). */
static inline bool sl_esm_is_live(const struct sl_esm *esm)
{
    return esm->driver.may_begin;
}

/* Does at esm->now_ms what the lane waits for. */
void sl_esm_step_lane(struct sl_esm_lane *lane);

/* ---- esm_batch.c ---- */

/* Whether another record of so many bytes goes into an event with `n` records of `bytes`. */
bool sl_esm_fits(const struct sl_esm_track *shard, size_t n, size_t bytes, size_t more);

/* Gathers a batch at this moment. The lane is then ready, or reads again later, or has ended. */
void sl_esm_read(struct sl_esm_lane *lane);

/* ---- esm_ahead.c ---- */

/* While the lane's invocation runs: makes the event that comes next if all goes well. */
void sl_esm_prepare(struct sl_esm_lane *lane);

/* True: the event of the part was made ahead, and is in lane->payload. */
bool sl_esm_take_prepared(struct sl_esm_lane *lane, const struct sl_esm_part *part);

/* ---- esm_judge.c ---- */

/* Judges the result in the lane (`outcome`, `body`): counts it, moves the checkpoint, retries, splits or
 * gives up. `decision` receives all but the checkpoint; `*pause_ms` how long the lane then waits. */
void sl_esm_judge(struct sl_esm_lane *lane, struct sl_esm_decision *decision, int64_t *pause_ms);

#endif
