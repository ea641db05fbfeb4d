/* The trace: one JSON line per invocation, with its records, its answer and the decision. */
#ifndef SL_CLI_OUTPUT_TRACE_H
#define SL_CLI_OUTPUT_TRACE_H

#include "esm/esm.h"

#include <stdio.h>

/* After so many attempts with one batch, a row of retries with the same answer (but for request ids and
 * times) becomes one line, that of the last one. Its member "repeats" is the number of invocations before it
 * in the row, which have no line. */
#define SL_TRACE_ATTEMPTS 10

struct sl_trace_options {
    bool with_ids; /* sequence numbers of all records */
    bool folds;    /* rows of retries */
};

struct sl_trace_file;

/* `file` is borrowed until the end. With `folds`, the shards of the invocations are too. */
struct sl_trace_file *sl_trace_new(FILE *file, struct sl_trace_options options);

/* Writes {"time_ms","shard","first","last","records","bytes","attempt","answer","decision","checkpoint"}, and
 * "ids" and "repeats" as above. A JSON answer is written as JSON, any other as a string. */
void sl_trace_add(struct sl_trace_file *trace, const struct sl_esm_invocation *inv,
                  const struct sl_esm_result *result, const struct sl_esm_decision *decision);

/* Writes the rows that are still open, and frees it. Returns the first write's errno, 0 if all went well;
 * what the stream still holds is the caller's to flush. */
int sl_trace_close(struct sl_trace_file *trace);

#endif
