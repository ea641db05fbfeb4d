/* What `sluice check` says of places that two writers share: two routes' tables and folders, a route's target
 * and where records are parked, a target that is the source. */
#ifndef SL_CLI_CHECK_CHECK_SHARED_H
#define SL_CLI_CHECK_CHECK_SHARED_H

#include "handlers/pipeline/route.h"
#include "cli/config/lint.h"

struct sl_check_shared {
    struct sl_pipeline *pipeline;
    const char *stream_arn; /* of the mapping; "" when it is not known */
    struct sl_arena *arena;
    sl_lint_fn find;
    void *arg;
};

void sl_check_shared(const struct sl_check_shared *c);

#endif
