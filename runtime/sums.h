/* What one invocation did, or several: sums, and the greatest age and memory. */
#ifndef SL_RUNTIME_SUMS_H
#define SL_RUNTIME_SUMS_H

#include "handlers/pipeline/pipeline.h"

struct sl_sums {
    uint64_t invocations, records, parked, set_aside, letters, failed, cold;
    uint64_t decode_ns;
    int64_t age_ms;        /* -1: not known */
    int64_t letter_age_ms; /* of the oldest letter that was drained; 0: none was */
    uint64_t peak_kb;      /* resident memory of this process, the most so far */
    struct sl_route_stats *routes;
    size_t n_routes;
};

/* Sums over the routes. */
uint64_t sl_sums_handle_ns(const struct sl_sums *sums);
uint64_t sl_sums_sink_ns(const struct sl_sums *sums);

static inline double sl_sums_ms(uint64_t ns)
{
    return (double)(ns / 1000) / 1000;
}

static inline double sl_sums_mb(uint64_t kb)
{
    return (double)(kb * 10 / 1024) / 10;
}

#endif
