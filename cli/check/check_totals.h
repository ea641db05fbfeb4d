/* What `sluice check` says of totals (routes of the handler aggregate): ledgers that two routes share, and
 * rows that readers would miss. */
#ifndef SL_CLI_CHECK_CHECK_TOTALS_H
#define SL_CLI_CHECK_CHECK_TOTALS_H

#include "handlers/pipeline/route.h"
#include "cli/config/lint.h"

struct sl_check_totals {
    struct sl_pipeline *pipeline;
    struct sl_sinks *sinks;
    struct sl_arena *arena;
    bool reads_tables; /* reads one row of each ledger that is there */
    sl_lint_fn find;
    void *arg;
};

/* A table that cannot be read is an error; a missing one is not. */
enum sl_status sl_check_totals(const struct sl_check_totals *c, struct sl_error *error) SL_MUST_USE;

#endif
