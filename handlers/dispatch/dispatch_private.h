/* What the files of dispatch share, from the bottom up: each section's file calls only the ones above it
 * here. dispatch.h says what dispatch promises, docs/contributing/DISPATCH.md has the rules. */
#ifndef SL_HANDLERS_DISPATCH_DISPATCH_PRIVATE_H
#define SL_HANDLERS_DISPATCH_DISPATCH_PRIVATE_H

#include "base/map.h"
#include "handlers/dispatch/dispatch.h"
#include "handlers/dispatch/trial.h"
#include "handlers/pipeline/host.h"
#include "handlers/pipeline/route.h"

/* ---- the state of one batch (dispatch_state.c) ---- */

/* Why something failed. In the invocation's arena. */
struct sl_why {
    enum sl_status status;
    const char *code, *text;
    bool is_unproven; /* one record may be at fault, without proof: the event source is to halve the batch */
};

/* A record that its route rejected and can park. */
struct sl_parked {
    uint32_t index;
    struct sl_route *route;
    const struct sl_why *why;
    bool is_tried, is_durable;
    bool is_remembered; /* durable since an earlier delivery */
};

/* What a route's run did below the checkpoint of that moment. */
struct sl_seen {
    struct sl_by_event applied;
    size_t k;
};

struct sl_dispatch {
    struct sl_pipeline *p;
    const struct sl_batch *batch;
    const char *request_id, *function_arn, *trace_id;
    struct sl_arena *arena;
    struct sl_clock *clock;
    size_t n;
    int64_t deadline_ms; /* when the invocation is killed */
    int64_t end_ms;      /* nothing is begun at or after this time: the rest is reserved for the answer */

    size_t k; /* lowest index that is neither applied nor to be parked; n when there is none */
    const struct sl_why *failure; /* of record k; NULL when k is n */
    struct sl_route *failed_route;
    bool
        is_ruined; /* a handler closed descriptors of the process: nothing more is called, parked or logged */

    const struct sl_late *late;
    /* Those that are to be set aside in phase 2, route by route in the batch's order. */
    struct sl_parked *asides;
    size_t n_asides, room_asides;
    size_t n_letters; /* that are durable */

    struct sl_parked *parked; /* in no order until phase 2 */
    size_t n_parked, room_parked;
    size_t n_durable;             /* durably parked: of these, or by once-only routes */
    struct sl_answer_note *notes; /* of them; NULL before the first */
    size_t n_notes;
    const struct sl_why *park_retry; /* the last time that a failure destination returned SL_RETRY */
    const struct sl_why **broken; /* of each of the pipeline's failure targets, why it returned SL_FATAL; NULL
                                     before the first */

    struct sl_span *keys; /* item keys, each made when it is first needed; NULL before the first */
    bool has_state;       /* `state` is what a handler made */
    struct sl_span state;

    struct sl_trace_links *links; /* NULL: nobody asks */
    unsigned char *sampled;       /* what is known of each record; dispatch_links.c */

    struct sl_seen *seen; /* of each of the pipeline's routes */

    /* Reused from call to call. */
    const struct sl_record **slice;
    uint32_t *places; /* slice[i] is entry places[i] */
    struct sl_mark *marks;
};

int64_t sl_dispatch_now(const struct sl_dispatch *d);

struct sl_why *sl_dispatch_why(struct sl_dispatch *d, enum sl_status status, const char *code,
                               const char *text);

/* `error` may be empty, or NULL. */
const struct sl_why *sl_dispatch_why_of(struct sl_dispatch *d, enum sl_status status,
                                        const struct sl_error *error);

/* Nothing more can be done in this process: no record of the batch counts as applied. */
void sl_dispatch_ruin(struct sl_dispatch *d, struct sl_route *route, const struct sl_why *why);

/* After a call of the route's handler other than handle(): ruins the batch if descriptors were closed. */
void sl_dispatch_look(struct sl_dispatch *d, struct sl_route *route, const char *function);

/* Record `index` is neither applied nor to be parked. If it is the lowest such record, k becomes its index.
 */
void sl_dispatch_fail(struct sl_dispatch *d, size_t index, struct sl_route *route, const struct sl_why *why);

/* Keeps for the report why the route parked or failed record `index`. */
void sl_dispatch_note(struct sl_dispatch *d, bool is_parked, size_t index, const struct sl_route *route,
                      const struct sl_why *why);

/* Item key of a record: the same text for the same item. */
struct sl_span sl_dispatch_key(struct sl_dispatch *d, size_t index);

/* Sleeps before try number `tries` + 1 (full jitter). Returns false, at once, when that would pass
 * `deadline_ms`. */
bool sl_dispatch_back_off(struct sl_dispatch *d, unsigned tries, int64_t deadline_ms);

/* ---- keys held back (dispatch_hold.c) ---- */

struct sl_held {
    struct sl_map keys;
    uint32_t *first; /* of each: the index of its first failed record */
    size_t n, room;
};

void sl_held_add(struct sl_held *held, struct sl_dispatch *d, size_t index);

/* Does the record come after a failed one of its item? */
bool sl_held_has(const struct sl_held *held, struct sl_dispatch *d, size_t index);

/* ---- effects done above the checkpoint (dispatch_memory.c) ---- */

/* `memory`: d->p->memory; or d->p->rejected, of what repeatable routes rejected of an event that failed: it
 * is called alone at its next delivery. */
bool sl_memory_has(const struct sl_memory *memory, const struct sl_dispatch *d, const struct sl_route *route,
                   size_t index);
void sl_memory_add(struct sl_memory *memory, const struct sl_dispatch *d, const struct sl_route *route,
                   size_t index);

/* The same for what waits in letters, of which there may be more. */
bool sl_memory_has_aside(const struct sl_dispatch *d, const struct sl_route *route, size_t index);
void sl_memory_add_aside(struct sl_dispatch *d, struct sl_route *route, size_t index);
void sl_memory_forget_asides(struct sl_route *route);

/* ---- parking (dispatch_park.c) ---- */

/* Parks the list in its order, in growing steps. Ends after the step in which one failed: k is then that
 * record. True when all of them are durable. */
bool sl_dispatch_park(struct sl_dispatch *d, struct sl_parked *list, size_t n);

/* ---- trials (dispatch_trial.c) ---- */

bool sl_dispatch_is_suspect(const struct sl_dispatch *d, const struct sl_route *route, size_t index);

/* What a control has shown: a record that was tried as the failed one was. */
enum sl_control { SL_CONTROL_NONE, SL_CONTROL_FAILED, SL_CONTROL_PASSED };

/* Has the record tried in a process of its own. The caller fills in `order` but for `route` and `kill_ms`.
 * Returns false when that cannot be done. */
bool sl_dispatch_try_alone(struct sl_dispatch *d, struct sl_route *route, struct sl_trial_order *order,
                           struct sl_trial *out);

/* The same, in this process. */
void sl_dispatch_try_here(struct sl_dispatch *d, struct sl_route *route, struct sl_trial_order *order,
                          struct sl_trial *out);

/* Why the handler returned no status for the record. SL_REJECT: the record is at fault. */
const struct sl_why *sl_dispatch_trial_why(struct sl_dispatch *d, const struct sl_trial *trial,
                                           enum sl_control control);

/* ---- what becomes of one record of a route (dispatch_settle.c) ---- */

enum sl_entry_state {
    SL_ENTRY_PENDING,
    SL_ENTRY_APPLIED,
    SL_ENTRY_REJECTED, /* to be parked in phase 2 */
    SL_ENTRY_PARKED,   /* rejected and durably parked */
    SL_ENTRY_ASIDE,    /* to be set aside in phase 2 */
    SL_ENTRY_FAILED,
    SL_ENTRY_HELD
};

struct sl_entry {
    uint32_t index;
    enum sl_entry_state state;
    const struct sl_why *why; /* REJECTED, PARKED, ASIDE, FAILED */
    bool is_remembered;       /* APPLIED by an earlier delivery */
    bool is_left_out;         /* APPLIED: nothing of it belonged there */
};

/* Rejections of one code, in one run. */
struct sl_tally {
    const struct sl_why *last; /* NULL: the slot is free */
    struct sl_by_event rejected;
};

struct sl_run {
    struct sl_dispatch *d;
    struct sl_route *route;
    struct sl_entry *entries;
    size_t n;
    int64_t deadline_ms;
    size_t n_calls;
    int64_t share_ms; /* what was left until then when the first record was tried alone; 0: none was */
    bool has_passed;  /* a record that was tried alone has succeeded */
    bool is_stopped;  /* nothing more is called */
    const struct sl_why *stop; /* then: why what is pending fails */
    const struct sl_why *last_retry;
    struct sl_held held;
    struct sl_by_event applied;     /* without those of which nothing was left to do */
    const struct sl_tally *refused; /* rejections that are too many, so that the route stopped; NULL: none */
    struct sl_tally tallies[SL_RATE_CODES];
};

/* What a call left to do. */
struct sl_rest {
    size_t unknown;  /* unmarked, in a call that returned SL_REJECT */
    size_t retry;    /* to be tried again as they are */
    size_t settled;  /* applied, rejected or failed: the next call is smaller */
    size_t rejected; /* of the settled: known to be to blame */
};

void sl_run_stop(struct sl_run *run, const struct sl_why *why);
void sl_run_stop_for_time(struct sl_run *run);
/* The entry is set aside, if its route and the reason allow that; else it fails at its place. */
void sl_run_fail(struct sl_run *run, struct sl_entry *entry, const struct sl_why *why);
/* It fails at its place. */
void sl_run_block(struct sl_run *run, struct sl_entry *entry, const struct sl_why *why);
void sl_run_reject(struct sl_run *run, struct sl_entry *entry, const struct sl_why *why);

/* Makes the next slice of the pending entries in [from, to), without those that have to be held back. */
size_t sl_run_gather(struct sl_run *run, size_t from, size_t to);

/* `mark` is what the entry's record got; `call_why` the reason of the whole call, NULL when there is none. */
void sl_run_settle(struct sl_run *run, struct sl_entry *entry, const struct sl_mark *mark,
                   const struct sl_why *call_why, struct sl_rest *rest);

enum sl_event sl_run_event(const struct sl_run *run, const struct sl_entry *entry);

/* Why the marks of a once-only route's call of n records reject too many; NULL: they do not. */
const struct sl_why *sl_run_foresee(struct sl_run *run, size_t n);

/* Of a repeatable route, when all that can be tried was tried and nothing is parked yet: rejections that are
 * too many fail as on SL_FATAL. */
void sl_run_judge(struct sl_run *run);

/* ---- routes that are set aside (dispatch_aside.c) ---- */

/* Does the reason say that the target is down, and may the run's records wait? */
bool sl_aside_takes(const struct sl_run *run, const struct sl_why *why);

/* Runs the entries as sl_run_entries does; behind an open breaker at first a few, within little time. */
void sl_aside_run(struct sl_run *run, size_t from, size_t to);

/* Of the run, what is to be set aside. After the run, whose last call was made. */
void sl_aside_note(const struct sl_run *run);

/* Writes the letters of the asides below k, from number `from` on. What cannot be written fails at its place.
 */
void sl_aside_write(struct sl_dispatch *d, size_t from);

/* ---- what a route rejects lately (dispatch_rate.c) ---- */

/* Are these rejections of the run, beside what it applied, more than the data can be blamed for? */
bool sl_rate_is_broken(const struct sl_run *run, const struct sl_tally *tally,
                       const struct sl_by_event *applied);

/* The error of a route that refuses to park them. */
const struct sl_why *sl_rate_refuse(struct sl_run *run, const struct sl_tally *tally);

/* At the end of a run. */
void sl_rate_note(const struct sl_run *run);

/* At the end of the batch: what is below the answer's checkpoint counts from now on. */
void sl_rate_commit(struct sl_dispatch *d);

/* ---- records that are given to the handler alone (dispatch_alone.c) ---- */

/* Settles entry i by trials: in a process of its own, or in this one (`is_here`). False: no trial can be
 * made, so it is a record like any other. */
bool sl_run_alone(struct sl_run *run, size_t i, bool is_here);

/* ---- one route over one batch (dispatch_run.c) ---- */

/* Chooses from records [0, limit) those that the route takes. `entries` has room for `limit` of them. */
void sl_run_init(struct sl_run *run, struct sl_dispatch *d, struct sl_route *route, struct sl_entry *entries,
                 size_t limit);

/* The code of a record that came too late to be applied. */
#define SL_TOO_LATE "TooLate"

/* Is the route's handler called for this batch? */
bool sl_run_takes(const struct sl_dispatch *d, const struct sl_route *route);

/* Calls the handler until every entry in [from, to) is applied, parked, failed or held, and k is right. */
void sl_run_entries(struct sl_run *run, size_t from, size_t to);

/* ---- what became of each record, counted (dispatch_count.c) ---- */

/* Adds the run's records to its route's stats, when nothing more is done with them in this invocation. */
void sl_count_run(const struct sl_run *run);

/* ---- traces (dispatch_links.c) ---- */

void sl_dispatch_links(const struct sl_run *run);

/* The same for the records that were to be parked or set aside in phase 2, which a run leaves uncounted. */
void sl_count_parked(const struct sl_dispatch *d);

/* ---- a tumbling window's state (dispatch_window.c) ---- */

/* Calls the route's window() with the records of `run` below k (NULL: none). False when it failed: k is then
 * 0. */
bool sl_dispatch_window(struct sl_dispatch *d, struct sl_route *route, const struct sl_run *run);

/* ---- the answer (dispatch_answer.c) ---- */

struct sl_answer;

/* Records from this index on are delivered again. */
size_t sl_answer_floor(const struct sl_dispatch *d);

void sl_answer_write(struct sl_dispatch *d, struct sl_answer *out);

#endif
