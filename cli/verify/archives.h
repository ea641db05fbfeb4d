/* The archive routes of a verification: which can be proven, and what came of it. */
#ifndef SL_CLI_VERIFY_ARCHIVES_H
#define SL_CLI_VERIFY_ARCHIVES_H

#include "cli/verify/report.h"
#include "data/verify/archive/chain.h"

struct sl_archives_options {
    struct sl_pipeline *pipeline;
    struct sl_clock *clock;
    const bool *is_chosen; /* by route; NULL: every route */
    const char *temp;
    bool (*is_stopped)(void *arg);
    void *arg;
};

/* Verifies each chosen archive route, and prints a line for each; the report adds up what was found. */
enum sl_status sl_archives_verify(const struct sl_archives_options *options, struct sl_report *report,
                                  struct sl_error *error) SL_MUST_USE;

#endif
