/* A trial: one record, given to a route's handler alone, in a process that may die of it. */
#ifndef SL_HANDLERS_DISPATCH_TRIAL_H
#define SL_HANDLERS_DISPATCH_TRIAL_H

#include "base/error.h"
#include "streams/decode/batch.h"

struct sl_pipeline;

struct sl_trial_order {
    size_t route; /* in the configured order */
    const char *route_name;
    size_t index; /* of the record in its batch */
    unsigned attempt;
    int64_t deadline_ms; /* the slice's */
    int64_t kill_ms;     /* a handler that has not returned by then is killed */
};

enum sl_trial_end {
    SL_TRIAL_RETURNED,  /* the record's outcome is `status`; its effects have happened */
    SL_TRIAL_CRASHED,   /* it died of a signal of its own, on this record alone, twice */
    SL_TRIAL_EXITED,    /* it called exit() */
    SL_TRIAL_KILLED,    /* from outside */
    SL_TRIAL_TIMED_OUT, /* it did not return */
    SL_TRIAL_MISUSED,   /* it broke the rules of marking: `error` says how */
    SL_TRIAL_CLOSED,    /* it closed descriptors of the process */
    SL_TRIAL_UNABLE     /* no trial can be made (any more): the record is one like any other */
};

/* What was running at the end. Only in the handler the record can be at fault. */
enum sl_trial_place { SL_TRIAL_IN_HANDLER, SL_TRIAL_IN_PORT, SL_TRIAL_IN_OPEN };

struct sl_trial {
    enum sl_trial_end end;
    enum sl_trial_place place;
    bool is_proven; /* the record is at fault: an earlier trial and its control have shown it */
    enum sl_status status;
    int number; /* CRASHED, KILLED: the signal; EXITED: the exit status */
    struct sl_error error;
};

/* Runs in that process, or in any other: gives the record to the handler as dispatch would, and returns `end`
 * (RETURNED, MISUSED or CLOSED), `status` and `error`. Texts of the call live in `arena`. */
struct sl_trial sl_trial_run(struct sl_pipeline *p, const struct sl_batch *batch,
                             const struct sl_trial_order *order, const char *request_id,
                             struct sl_arena *arena);

#endif
