/* The table at the end of a replay. */
#ifndef SL_CLI_OUTPUT_SUMMARY_H
#define SL_CLI_OUTPUT_SUMMARY_H

#include "live/sandbox/runner.h"
#include "live/source/recording.h"

#include <stdio.h>

struct sl_run_summary {
    const struct sl_recording *recording;
    struct sl_esm_stats mapping;
    const char *parked;  /* lines that say where records were parked; NULL: none */
    const char *letters; /* the same of outages, and of what was set aside in them; NULL: none */
    struct sl_runner_stats processes;
    struct sl_runner *runner;             /* has the routes; NULL: these are they */
    const struct sl_runner_route *routes; /* borrowed */
    size_t n_routes;
    bool is_real_time; /* mapping.elapsed_ms is no virtual time */
};

void sl_run_summary_print(const struct sl_run_summary *summary, FILE *out);

#endif
