/* What the files of the engine share. engine.c is the loop; lane.c and lane_read.c are one shard: what is
 * handled of it, and what is read; engine_list.c is the stream's list of shards; engine_show.c is what is to
 * be seen. */
#ifndef SL_LIVE_TAIL_ENGINE_PRIVATE_H
#define SL_LIVE_TAIL_ENGINE_PRIVATE_H

#include "base/clock.h"
#include "live/tail/engine.h"
#include "live/tail/page.h"
#include "live/tail/through.h"

#define SL_LANE_PAGES    2  /* the one that is handled, and the next */
#define SL_LANE_PARALLEL 10 /* ParallelizationFactor */
#define SL_LANE_ID_BYTES 48 /* a sequence number has 40 digits at most */

struct sl_engine;

enum sl_lane_ask { SL_LANE_NOTHING, SL_LANE_PARENT, SL_LANE_ITERATOR, SL_LANE_RECORDS };

/* Whose a lane is, and how far it is: lane.c has both as a picture. */
enum sl_lane_owner { SL_LANE_AWAY, SL_LANE_RETURNING, SL_LANE_OURS };
enum sl_lane_state { SL_LANE_READING, SL_LANE_DRAINING, SL_LANE_DONE };

struct sl_lane {
    struct sl_engine *engine;
    char *id, *parent;           /* "" when it has none */
    struct sl_lane *parent_lane; /* NULL: it has none, or no list shows it */
    bool is_listed, is_closed;
    unsigned misses; /* listings in a row that lacked it */
    enum sl_lane_owner owner;
    enum sl_lane_state state;
    bool is_awake;               /* it is in the engine's list of these */
    struct sl_keeper_place late; /* RETURNING: with this place */
    char *late_after;
    bool is_ended;       /* the keeper says so: its children may begin */
    bool is_parent_gone; /* the stream no longer has it, or it was forgotten after its end */

    /* What is read. */
    struct sl_live_ask *ask;
    enum sl_lane_ask asked;
    bool from_latest; /* it begins where the stream ends now */
    int64_t since_ms; /* it begins with the records of this moment; 0: with the oldest */
    char *read_after; /* sequence number of the last record that was read; NULL: none */
    char *iterator;   /* NULL: not asked for */
    bool is_empty;    /* the last read found nothing */
    unsigned empty_reads;
    size_t reserved;     /* of memory, for the read under way */
    size_t answer_bytes; /* of the last one; 0: there was none */
    int64_t read_at_ms;  /* when to read next: steady time, like all without "wall" */
    int64_t began_ms;    /* the read under way, or the last one */
    int64_t began_wall_ms;
    int64_t found_ms;                 /* when a record was read last, or the lane began */
    unsigned failures, misunderstood; /* in a row */

    /* What is handled. */
    struct sl_esm *esm; /* NULL: nothing was read yet */
    struct sl_clock_virtual clock;
    struct sl_esm_shard shard;
    int64_t esm_base_ms;
    struct sl_page *pages[SL_LANE_PAGES];
    size_t n_pages, page_bytes;
    struct sl_pool_task tasks[SL_LANE_PARALLEL];
    bool is_running[SL_LANE_PARALLEL];
    size_t worker_of[SL_LANE_PARALLEL]; /* that had the last batch of the lane of the mapping */
    size_t picked;                      /* for the invocation that begins */
    size_t running;
    char *after; /* the place */
    bool has_moved;

    /* What is known. */
    struct sl_through through;
    int64_t ended_wall_ms;    /* when its end was handled; 0: it was not, or before this process */
    size_t n_children;        /* that are known */
    size_t n_seen;            /* of them, at the last list */
    int64_t children_wall_ms; /* since when the list shows so many */
    bool has_all_children;
    unsigned child_asks; /* since its end */
    int64_t child_ask_ms;
    uint64_t handled, handled_before, retries; /* before: by an earlier mapping */
    int64_t blocked_since_ms;                  /* wall time */
    char blocked_at[SL_LANE_ID_BYTES];
    int64_t last_created_ms; /* of the last record that was handled */
    int64_t lag_ms;          /* at the last look */
};

struct sl_engine {
    struct sl_engine_options o;
    struct sl_engine_result result;
    struct sl_clock *clock;
    int64_t now_ms, wall_ms, began_ms, began_wall_ms;
    char *stream_arn;
    struct sl_lane **lanes; /* listed ones parents before children */
    size_t n, room;
    size_t *index, index_room; /* of lanes by their ids: number + 1, 0 is free; a power of two */
    struct sl_lane **awake;    /* those that a turn has to look at: not those of others, and at their ends */
    size_t n_awake;
    struct sl_lane **order;   /* some of them, the greatest lag first */
    struct sl_arena *scratch; /* of one call */
    struct sl_arena *page_scratch;
    size_t memory_bytes; /* of pages, and asked for */
    size_t flying;       /* reads */

    /* The list. */
    struct {
        struct sl_live_ask *ask;
        struct sl_arena *arena;
        struct sl_live_shards shards;
        bool has_first, is_wanted;
        int64_t next_ms, began_ms, began_wall_ms, pause_ms;
        const char *after; /* where its next page begins; NULL: it is whole, or not begun */
        unsigned pages, misunderstood;
        bool is_long; /* the last one had several pages */
    } list;

    /* The children of one shard. */
    struct {
        struct sl_live_ask *ask;
        char *of;
        int64_t next_ms; /* INT64_MAX: nobody has ended since */
        bool is_refused; /* the service does not know the filter */
    } children;
    /* The table's stream. */
    struct {
        struct sl_live_ask *ask;
        int64_t next_ms;
        char *latest; /* the table's stream now; NULL: not known, or none */
        bool is_old;  /* ours is disabled, replaced, or its table is gone */
        bool is_gone; /* and can no longer be read */
        bool is_table_gone, was_told;
        bool has_answered; /* the table, or its answer was refused for good */
    } stream;

    struct sl_esm_stats gone; /* of lanes that are no more */
    uint64_t reads, failed_reads, saves;
    int64_t through_ms, saved_through_ms, saved_at_ms;
    int64_t shown_at_ms;
    bool is_shown_late; /* something is to be shown at once */
    char trouble[SL_ERROR_TEXT_BYTES];
    int64_t trouble_at_ms;
    bool is_ending;          /* nothing more is read */
    int64_t begin_until_ms;  /* while it is ending: invocations begin until then, */
    int64_t finish_until_ms; /* and are broken off then */
};

/* ---- engine.c ---- */

/* It cannot go on: says why, once. */
void sl_engine_fail(struct sl_engine *e, const char *format, ...) SL_PRINTF(2, 3);

/* A request failed for now: says why, at most every ten seconds. */
void sl_engine_complain(struct sl_engine *e, const struct sl_error *error);

struct sl_lane *sl_engine_lane(const struct sl_engine *e, const char *id); /* NULL: there is none */
struct sl_lane *sl_engine_add_lane(struct sl_engine *e, const char *id);
/* After lanes were moved or removed. Not in the middle of a turn: it looks at those that are awake. */
void sl_engine_take_lanes(struct sl_engine *e);

/* ---- engine_list.c ---- */

/* Begins what is due of the list and of the table, and takes what has come. */
void sl_engine_list(struct sl_engine *e);
/* When it has something to do; steady time. */
int64_t sl_engine_list_due_ms(const struct sl_engine *e);
/* The list is to be asked for soon: a shard has ended. */
void sl_engine_want_list(struct sl_engine *e);
/* A shard that no list shows, although the stream has it. */
void sl_engine_add_unlisted(struct sl_engine *e, const char *id);
/* Whether a list was taken that was begun after this moment. */
bool sl_engine_was_listed(const struct sl_engine *e, int64_t since_wall_ms);
/* True: all shards of an old stream are done, and the new one is followed from now on. */
bool sl_engine_follow(struct sl_engine *e);

/* ---- engine_show.c ---- */

void sl_engine_show(struct sl_engine *e);
void sl_engine_find_through(struct sl_engine *e);

/* Whose owner or state has changed: every turn looks at it, until it is at rest. */
void sl_engine_wake(struct sl_lane *lane);

/* ---- engine_children.c ---- */

void sl_engine_ask_children(struct sl_engine *e);
void sl_engine_has_ended(struct sl_lane *lane); /* its children are awaited */
int64_t sl_engine_children_due_ms(const struct sl_engine *e);

/* A shard as the stream lists it. */
struct sl_lane *sl_engine_take_shard(struct sl_engine *e, const struct sl_live_shard *shard);

/* Who is whose child. */
void sl_engine_link_parents(struct sl_engine *e);

/* Changes were given up: the keeper begins anew to say since when none was missed. A gap is counted as well.
 */
void sl_engine_note_missed(struct sl_engine *e);
void sl_engine_note_gap(struct sl_engine *e);

/* ---- lane.c ---- */

struct sl_lane *sl_lane_new(struct sl_engine *e, const char *id);
void sl_lane_destroy(struct sl_lane *lane);
void sl_lane_set(char **text, const char *value);

/* The keeper has given it to us, with its place. What of it still runs from before is waited for. */
void sl_lane_gain(struct sl_lane *lane, const struct sl_keeper_place *place);
/* It is no longer ours: what runs is broken off, what was read is forgotten. */
void sl_lane_lose(struct sl_lane *lane);

/* When a page that was read now is available, by the mapping's clock. */
int64_t sl_lane_available_ms(struct sl_lane *lane);
/* Takes over a page's records; it owns the page from now on. */
void sl_lane_feed(struct sl_lane *lane, struct sl_page *page);
/* Begins what may begin; something is left. */
void sl_lane_run(struct sl_lane *lane);
/* A task of it is over. */
void sl_lane_take(struct sl_lane *lane, struct sl_pool_task *task);
/* Everything that was read is handled. */
bool sl_lane_is_idle(const struct sl_lane *lane);
/* Records that were read and are not handled. */
size_t sl_lane_left(const struct sl_lane *lane);
int64_t sl_lane_due_ms(const struct sl_lane *lane);
int64_t sl_lane_look_lag(const struct sl_lane *lane);
/* There is nothing more to read of it: its end was read, or the stream has it no more. */
void sl_lane_end_reading(struct sl_lane *lane);
struct sl_esm_stats sl_lane_stats(const struct sl_lane *lane);

/* ---- lane_read.c ---- */

/* Whether it waits for a read to begin now. */
bool sl_lane_wants_read(const struct sl_lane *lane);
/* Memory that it asks for. */
size_t sl_lane_estimate(const struct sl_lane *lane);
void sl_lane_begin_read(struct sl_lane *lane);
/* Takes what has come of its requests. */
void sl_lane_take_read(struct sl_lane *lane);
/* When it has something to do; steady time, INT64_MAX: nothing. */
int64_t sl_lane_read_due_ms(const struct sl_lane *lane);
/* Breaks off the request under way. */
void sl_lane_stop_read(struct sl_lane *lane);

#endif
