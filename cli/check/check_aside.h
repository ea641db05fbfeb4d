/* What `sluice check` says of a target that is down: which other routes stand still with it, what "set_aside"
 * would change, what an hour of it costs, and whether the queue keeps the letters for as long as an outage
 * may take. */
#ifndef SL_CLI_CHECK_CHECK_ASIDE_H
#define SL_CLI_CHECK_CHECK_ASIDE_H

#include "cli/check/check_route.h"
#include "cli/config/lint.h"
#include "handlers/pipeline/route.h"

/* Prints the lines "if down" of the route. */
void sl_check_aside_say(const struct sl_route *route, const struct sl_check_batch *batch);

struct sl_check_aside {
    struct sl_pipeline *pipeline;
    struct sl_sinks *sinks;
    const char *stream_arn; /* of the mapping; "" when it is not known */
    struct sl_arena *arena;
    bool asks_queues;
    sl_lint_fn find;
    void *arg;
};

/* SL_FATAL: a queue does not answer. */
enum sl_status sl_check_aside(const struct sl_check_aside *c, struct sl_error *error) SL_MUST_USE;

#endif
