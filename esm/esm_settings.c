/* The settings of a mapping: AWS's defaults, and the ranges that AWS checks. */
#include "base/array.h"
#include "esm/esm.h"

#include "base/error.h"
#include "streams/types.h"

void sl_esm_settings_init(struct sl_esm_settings *settings)
{
    *settings = (struct sl_esm_settings){
        .batch_size = 100,
        .parallelization = 1,
        .max_retries = -1,
        .max_age_s = -1,
        .payload_bytes = 6 * 1024 * 1024,
        .invocation_ms = 100,
        .retention_s = 24 * 60 * 60,
        .stream_arn = SL_REPLAYED_ARN,
        .function_arn = "arn:aws:lambda:us-east-1:123456789012:function:sluice",
        .mapping_id = "5a0d8b3e-1c2f-4e6a-9b7d-3f4e5d6c7b8a",
    };
}

static enum sl_status in_range(const char *name, int64_t value, int64_t min, int64_t max,
                               struct sl_error *error)
{
    if (value < min)
        return sl_fail(error, SL_REJECT, "ValidationException",
                       "%s is %lld: it must be greater than or equal to %lld", name, (long long)value,
                       (long long)min);
    if (value > max)
        return sl_fail(error, SL_REJECT, "ValidationException",
                       "%s is %lld: it must be less than or equal to %lld", name, (long long)value,
                       (long long)max);
    return SL_OK;
}

static enum sl_status check_ranges(const struct sl_esm_settings *s, struct sl_error *error)
{
    const struct {
        const char *name;
        int64_t value, min, max;
    } rows[] = {
        {"BatchSize", s->batch_size, 1, 10000},
        {"MaximumBatchingWindowInSeconds", s->window_s, 0, 300},
        {"ParallelizationFactor", s->parallelization, 1, 10},
        {"MaximumRetryAttempts", s->max_retries, -1, 10000},
        {"MaximumRecordAgeInSeconds", s->max_age_s, -1, 604800},
        {"TumblingWindowInSeconds", s->tumbling_s, 0, 900},
        {"the number of filters", (int64_t)s->n_filters, 0, 10},
    };
    for (size_t i = 0; i < SL_COUNT(rows); i++) {
        enum sl_status status = in_range(rows[i].name, rows[i].value, rows[i].min, rows[i].max, error);
        if (status != SL_OK)
            return status;
    }
    return SL_OK;
}

enum sl_status sl_esm_settings_check(const struct sl_esm_settings *s, struct sl_error *error)
{
    enum sl_status status = check_ranges(s, error);
    if (status != SL_OK)
        return status;
    if (s->max_age_s >= 0 && s->max_age_s < 60)
        return sl_fail(error, SL_REJECT, "InvalidParameterValueException",
                       "MaximumRecordAgeInSeconds is %lld: it must be -1, or between 60 and 604800",
                       (long long)s->max_age_s);
    if (s->tumbling_s > 0 && s->parallelization > 1)
        return sl_fail(error, SL_REJECT, "InvalidParameterValueException",
                       "TumblingWindowInSeconds needs a ParallelizationFactor of 1, not %lld",
                       (long long)s->parallelization);
    if (s->concurrency < 0 || s->payload_bytes < 1 || s->invocation_ms < 0 || s->retention_s < 1)
        return sl_fail(error, SL_REJECT, "ValidationException",
                       "concurrency, payload, duration and retention cannot be negative");
    return SL_OK;
}
