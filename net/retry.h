/* When and how often to try again: the SDKs' standard mode with the parameters of November 2026.
 *
 * A wait is drawn evenly from 0 to the lesser of base * 2^i and 20 s (full jitter). Each retry costs tokens
 * of a bucket that successes refill, so that retries do not multiply the load during an outage. */
#ifndef SL_NET_RETRY_H
#define SL_NET_RETRY_H

#include "base/clock.h"
#include "base/span.h"

#define SL_RETRY_BUCKET         500
#define SL_RETRY_COST_TRANSIENT 14
#define SL_RETRY_COST_THROTTLE  5
#define SL_RETRY_CAP_MS         20000
#define SL_RETRY_THROTTLE_MS    1000
#define SL_RETRY_AFTER_EXTRA_MS 5000 /* how much longer than our own wait a server may ask for */

/* Why: a failure that passes, or a service that is busy. */
enum sl_retry_kind { SL_RETRY_TRANSIENT, SL_RETRY_THROTTLE };

struct sl_retry_bucket {
    int tokens;
};

void sl_retry_bucket_init(struct sl_retry_bucket *bucket);

/* Takes what a retry of this kind costs; false when the bucket has less. `cost` is what to return when the
 * retry succeeds. */
bool sl_retry_take(struct sl_retry_bucket *bucket, enum sl_retry_kind kind, int *cost);

/* After a success: returns `cost`, that of its last retry; 0 after a first attempt. */
void sl_retry_success(struct sl_retry_bucket *bucket, int cost);

/* The wait before retry number `retry` (0 is the first). `after` is the header x-amz-retry-after, mostly
 * absent. */
int64_t sl_retry_wait_ms(struct sl_clock *clock, enum sl_retry_kind kind, unsigned base_ms, unsigned retry,
                         struct sl_span after);

#endif
