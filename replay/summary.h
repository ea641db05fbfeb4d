/* The table at the end of a replay. */
#ifndef SL_REPLAY_SUMMARY_H
#define SL_REPLAY_SUMMARY_H

#include "replay/runner.h"
#include "replay/stream.h"

#include <stdio.h>

struct sl_summary {
    const struct sl_stream *stream;
    struct sl_esm_stats mapping;
    struct sl_runner_stats processes;
    struct sl_runner *runner; /* for its routes */
};

void sl_summary_print(const struct sl_summary *summary, FILE *out);

#endif
