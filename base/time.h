/* Times as text, in the form of ISO 8601 that AWS writes. Nothing here allocates. */
#ifndef SL_BASE_TIME_H
#define SL_BASE_TIME_H

#include "base/types.h"

/* "2026-11-20T21:04:00.123Z" (24 bytes and a NUL) from nanoseconds since the epoch. */
#define SL_TIME_BYTES 25
void sl_time_text(int64_t epoch_ns, char out[SL_TIME_BYTES]);

/* Reads "2026-11-20T21:04:00", with or without a fraction, followed by "Z", "+01:00" or nothing, which means
 * UTC. A space may stand for the 'T', as Python writes it. `ns` are nanoseconds since the epoch; `step_ns` is
 * the granularity of the text: a second, or that of the fraction's last digit. False: the text is not such a
 * time, or its year is not within 1970 and 2261. */
bool sl_time_parse(struct sl_span text, int64_t *ns, int64_t *step_ns);

#endif
