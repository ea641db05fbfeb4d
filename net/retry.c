/* Waits and the bucket of tokens: see net/retry.h. */
#include "net/retry.h"

void sl_retry_bucket_init(struct sl_retry_bucket *bucket)
{
    bucket->tokens = SL_RETRY_BUCKET;
}

bool sl_retry_take(struct sl_retry_bucket *bucket, enum sl_retry_kind kind, int *cost)
{
    *cost = kind == SL_RETRY_THROTTLE ? SL_RETRY_COST_THROTTLE : SL_RETRY_COST_TRANSIENT;
    if (bucket->tokens < *cost)
        return false;
    bucket->tokens -= *cost;
    return true;
}

void sl_retry_success(struct sl_retry_bucket *bucket, int cost)
{
    bucket->tokens += cost ? cost : 1;
    if (bucket->tokens > SL_RETRY_BUCKET)
        bucket->tokens = SL_RETRY_BUCKET;
}

/* Whole milliseconds in decimal; -1 for anything else. */
static int64_t parse_ms(struct sl_span text)
{
    int64_t ms = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || i > 9)
            return -1;
        ms = ms * 10 + (text.ptr[i] - '0');
    }
    return text.len ? ms : -1;
}

int64_t sl_retry_wait_ms(struct sl_clock *clock, enum sl_retry_kind kind, unsigned base_ms, unsigned retry,
                         struct sl_span after)
{
    uint64_t top = kind == SL_RETRY_THROTTLE ? SL_RETRY_THROTTLE_MS : base_ms;
    top <<= retry < 16 ? retry : 16;
    if (top > SL_RETRY_CAP_MS)
        top = SL_RETRY_CAP_MS;
    int64_t wait = (int64_t)(clock->random(clock) % (top + 1));
    int64_t asked = parse_ms(after);
    if (asked <= wait)
        return wait;
    return asked < wait + SL_RETRY_AFTER_EXTRA_MS ? asked : wait + SL_RETRY_AFTER_EXTRA_MS;
}
