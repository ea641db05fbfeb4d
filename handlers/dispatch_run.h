/* Inside dispatch: what its files share. dispatch.h says what it promises, docs/DISPATCH.md the rules. */
#ifndef SL_HANDLERS_DISPATCH_RUN_H
#define SL_HANDLERS_DISPATCH_RUN_H

#include "handlers/dispatch.h"
#include "handlers/host.h"
#include "handlers/route.h"

/* Why something failed. In the invocation's arena. */
struct sl_why {
    enum sl_status status;
    const char *code, *text;
};

/* ---- one batch ---- */

/* A record that its route rejected and can park. */
struct sl_parked {
    uint32_t index;
    struct sl_route *route;
    const struct sl_why *why;
    bool is_durable;
};

struct sl_dispatch {
    struct sl_pipeline *p;
    const struct sl_batch *batch;
    const struct sl_invocation *invocation;
    struct sl_arena *arena;
    struct sl_clock *clock;
    size_t n;
    int64_t end_ms; /* nothing is begun at or after this time: what is left is for the answer */

    size_t k; /* lowest index that is neither applied nor to be parked; n when there is none */
    const struct sl_why *failure; /* of record k; NULL when k is n */
    struct sl_route *failed_route;

    struct sl_parked *parked; /* in no order until phase 2 */
    size_t n_parked, room_parked;
    size_t n_durable;                /* of them, or by once-only routes: durably parked */
    const struct sl_why *park_retry; /* the last time a failure destination asked for another try */

    struct sl_span *keys; /* item keys, made when first asked for; NULL before the first */
    bool has_state;       /* `state` is what a handler made */
    struct sl_span state;

    /* Reused from call to call. */
    const struct sl_record **slice;
    uint32_t *places; /* slice[i] is entry places[i] */
    struct sl_mark *marks;
};

int64_t sl_dispatch_now(const struct sl_dispatch *d);

/* Record `index` is neither applied nor to be parked: k goes down to it if it is the lowest. */
void sl_dispatch_fail(struct sl_dispatch *d, size_t index, struct sl_route *route, const struct sl_why *why);

const struct sl_why *sl_why_new(struct sl_dispatch *d, enum sl_status status, const char *code,
                                const char *text);

/* Item key of a record, the same text for the same item. */
struct sl_span sl_dispatch_key(struct sl_dispatch *d, size_t index);

/* Sleeps before try number `tries` + 1 (full jitter). False, at once, when that would pass `deadline_ms`. */
bool sl_dispatch_back_off(struct sl_dispatch *d, unsigned tries, int64_t deadline_ms);

/* ---- keys held back (dispatch_hold.c) ---- */

struct sl_held_key {
    struct sl_span key; /* absent: the slot is free */
    uint32_t index;     /* of its first failed record */
};

struct sl_held {
    struct sl_held_key *slots; /* NULL: nothing is held */
    size_t room, n;
};

void sl_held_add(struct sl_held *held, struct sl_dispatch *d, size_t index);
/* Is the record behind a failed one of its item? */
bool sl_held_has(const struct sl_held *held, struct sl_dispatch *d, size_t index);

/* ---- one route over one batch (dispatch_run.c) ---- */

enum sl_entry_state {
    SL_ENTRY_PENDING,
    SL_ENTRY_APPLIED,
    SL_ENTRY_REJECTED, /* to be parked in phase 2 */
    SL_ENTRY_PARKED,   /* rejected and durably parked */
    SL_ENTRY_FAILED,
    SL_ENTRY_HELD
};

struct sl_entry {
    uint32_t index;
    enum sl_entry_state state;
    const struct sl_why *why; /* REJECTED, PARKED, FAILED */
};

/* Rejections of one code. */
struct sl_tally {
    const char *code;
    size_t n;
};

#define SL_TALLIES 16 /* codes told apart; the rest are counted together */

struct sl_run {
    struct sl_dispatch *d;
    struct sl_route *route;
    struct sl_entry *entries;
    size_t n;
    int64_t deadline_ms;
    bool is_stopped;           /* nothing more is called */
    const struct sl_why *stop; /* then: why what is pending fails */
    const struct sl_why *last_retry;
    struct sl_held held;
    struct sl_tally tallies[SL_TALLIES];
};

/* Chooses from records [0, limit) those that the route takes. `entries` has room for `limit` of them. */
void sl_run_init(struct sl_run *run, struct sl_dispatch *d, struct sl_route *route, struct sl_entry *entries,
                 size_t limit);

/* Calls the handler until every entry in [from, to) is applied, parked, failed or held, and k says so. */
void sl_run_entries(struct sl_run *run, size_t from, size_t to);

/* ---- records that an earlier process died of (dispatch_trial.c) ---- */

struct sl_trial;

bool sl_run_is_suspect(const struct sl_run *run, size_t i);

/* Entry i, by the watch, in a process of its own. False: that cannot be done. */
bool sl_run_alone(struct sl_run *run, size_t i, unsigned attempt, struct sl_trial *out);

/* Why a record did not get an outcome of its handler's own; NULL when it got one. */
const struct sl_why *sl_trial_why(struct sl_dispatch *d, const struct sl_trial *trial);

/* ---- parking (park.c) ---- */

/* Parks the list in its order, in growing steps, and ends behind the step in which one failed: k is then that
 * record. True when all of them are durable. */
bool sl_park(struct sl_dispatch *d, struct sl_parked *list, size_t n);

/* The message that is parked. */
void sl_park_message(struct sl_dispatch *d, const struct sl_parked *parked, struct sl_buffer *out);

/* ---- effects done above the checkpoint (dispatch_memory.c) ---- */

bool sl_memory_has(const struct sl_dispatch *d, const struct sl_route *route, size_t index);
void sl_memory_add(struct sl_dispatch *d, const struct sl_route *route, size_t index);

/* ---- the answer (answer.c) ---- */

/* Records from this index on come again. */
size_t sl_answer_floor(const struct sl_dispatch *d);

void sl_answer_write(struct sl_dispatch *d, struct sl_answer *out);

/* Of a tumbling window's {"start":...,"end":...}; in the arena, absent when not there. */
void sl_answer_window_bounds(struct sl_dispatch *d, struct sl_span window, struct sl_span *start,
                             struct sl_span *end);

#endif
