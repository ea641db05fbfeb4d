/* Handlers that may die at their work: what dispatch tells of each call, and what it asks about records that
 * an earlier process died of. runtime/contain.h is the one who watches; without one nothing is different. */
#ifndef SL_HANDLERS_WATCH_H
#define SL_HANDLERS_WATCH_H

#include "base/error.h"
#include "streams/batch.h"

struct sl_pipeline;

/* One record, to be given to a route's handler alone, elsewhere. */
struct sl_trial_order {
    size_t route; /* in the configured order */
    size_t index; /* in the batch that `begin` named */
    unsigned attempt;
    int64_t deadline_ms; /* the slice's */
    int64_t kill_ms;     /* when it counts as one that does not come back */
};

enum sl_trial_end {
    SL_TRIAL_RETURNED,  /* the record's outcome is `status`; it has had its effects */
    SL_TRIAL_CRASHED,   /* it died of a signal in the handler's code, on this record alone, twice */
    SL_TRIAL_EXITED,    /* it ended in another way of its own: exit(), a closed connection */
    SL_TRIAL_KILLED,    /* from outside */
    SL_TRIAL_TIMED_OUT, /* it did not come back */
    SL_TRIAL_UNABLE     /* there is no elsewhere (any more): the record is one like any other */
};

struct sl_trial {
    enum sl_trial_end end;
    enum sl_status status;
    int number; /* CRASHED, KILLED: the signal; EXITED: the exit status */
    struct sl_error error;
};

struct sl_watch {
    bool has_suspects; /* some record is one: is_suspect is worth asking */

    /* Around each call of a handler. `enter` is cheap: no system call. */
    void (*enter)(struct sl_watch *watch, const char *route, const struct sl_record *const *records,
                  size_t n);
    void (*leave)(struct sl_watch *watch);

    /* Before the records of a batch. Both are borrowed until the next one. */
    void (*begin)(struct sl_watch *watch, const struct sl_batch *batch, const char *request_id);
    bool (*is_suspect)(struct sl_watch *watch, const char *route, const struct sl_record *record);
    void (*try_alone)(struct sl_watch *watch, const struct sl_trial_order *order, struct sl_trial *out);
};

/* Elsewhere: the record through the route's handler as dispatch would call it, in `arena`. Sets `end`,
 * `status` and `error`. */
void sl_trial_run(struct sl_pipeline *p, const struct sl_batch *batch, const struct sl_trial_order *order,
                  const char *request_id, struct sl_arena *arena, struct sl_trial *out);

#endif
