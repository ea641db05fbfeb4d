/* Drains the queues of a configuration's routes that are set aside, beside the stream: what the second
 * function does in Lambda. A thread of its own, with a worker of its own; a target that is down costs a
 * letter every half minute. Messages that are done are removed; the others are hidden for a while. */
#ifndef SL_LIVE_TAIL_DRAINER_H
#define SL_LIVE_TAIL_DRAINER_H

#include "base/vars.h"
#include "live/tail/pool.h"

struct sl_drainer;

/* All borrowed until the end. */
struct sl_drainer_options {
    struct sl_worker *worker; /* takes events of letters; it is opened and closed in the thread */
    const char *config;
    const struct sl_vars *vars;
    int64_t timeout_s; /* of an invocation */
    const char *verb;  /* for lines on standard error */
};

/* `out`: NULL where the configuration has no queue that can be drained. SL_REJECT: it cannot be read. */
enum sl_status sl_drainer_start(const struct sl_drainer_options *options, struct sl_drainer **out,
                                struct sl_error *error) SL_MUST_USE;

struct sl_drainer_facts {
    uint64_t letters, done; /* so far; a letter that is received twice counts twice */
};
struct sl_drainer_facts sl_drainer_facts(struct sl_drainer *drainer);

/* Tells it to end, and waits so long. False: its thread still runs, and nothing of it may be freed. NULL:
 * true. */
bool sl_drainer_stop(struct sl_drainer *drainer, int64_t wait_ms);

#endif
