/* One JSON line per invocation: what went in, what came back, what was decided. */
#ifndef SL_REPLAY_TRACE_H
#define SL_REPLAY_TRACE_H

#include "replay/esm.h"

/* {"time_ms","shard","first","last","records","bytes","attempt","answer","decision","checkpoint"} and, when
 * asked for, "ids"; ends with a newline. An answer that is JSON stands as such, any other as a string. */
void sl_trace_line(const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                   const struct sl_esm_decision *decision, bool with_ids, struct sl_buffer *out);

/* "advance", "checkpoint", "retry", "bisect", "discard". */
const char *sl_trace_verb(enum sl_esm_verb verb);

#endif
