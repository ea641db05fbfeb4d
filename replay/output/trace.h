/* The trace: one JSON line per invocation, with its records, its answer and the decision. */
#ifndef SL_REPLAY_OUTPUT_TRACE_H
#define SL_REPLAY_OUTPUT_TRACE_H

#include "replay/esm/esm.h"

/* Adds {"time_ms","shard","first","last","records","bytes","attempt","answer","decision","checkpoint"}, "ids"
 * if `with_ids`, and a newline. A JSON answer is written as JSON, any other as a string. */
void sl_trace_add_line(const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                       const struct sl_esm_decision *decision, bool with_ids, struct sl_buffer *out);

/* "advance", "checkpoint", "retry", "bisect", "discard". */
const char *sl_trace_verb_name(enum sl_esm_verb verb);

#endif
