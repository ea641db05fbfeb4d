/* Up to when the changes of one shard are handled, in wall time. */
#ifndef SL_LIVE_TAIL_THROUGH_H
#define SL_LIVE_TAIL_THROUGH_H

#include "base/types.h"

#include <stdint.h>

struct sl_through {
    int64_t ms;           /* its changes before this wall time are handled; 0: not known */
    unsigned empty_reads; /* in a row */
    int64_t empty_since_ms;
};

/* All that was read of the shard is handled; the last record that was read was made at `last_ms`; 0: it does
 * not say when. `now_ms` is the wall time now. */
void sl_through_handled(struct sl_through *through, int64_t last_ms, int64_t now_ms);

/* A read that began at `read_ms` found nothing, and all that was read before is handled. */
void sl_through_empty(struct sl_through *through, bool is_closed, int64_t read_ms);

#endif
