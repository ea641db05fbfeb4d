#include "sinks/aws/aws.h"

#include "sinks/aws/job.h"
#include "sinks/aws/sinks.h"

#include <stdlib.h>

#define ARENA_BYTES (16 * 1024)

struct sl_aws *sl_aws_of(struct sl_sinks *sinks)
{
    if (sinks->aws)
        return sinks->aws;
    struct sl_aws *aws = calloc(1, sizeof(*aws));
    if (!aws)
        sl_die("out of memory: the AWS sinks");
    aws->sinks = sinks;
    aws->lasting = sl_arena_new(ARENA_BYTES);
    aws->scratch = sl_arena_new(ARENA_BYTES);
    sinks->aws = aws;
    return aws;
}

void sl_aws_destroy(struct sl_aws *aws)
{
    if (!aws)
        return;
    sl_job_drop_slots(aws);
    sl_credentials_destroy_all(aws->credentials);
    sl_http_destroy(aws->http);
    sl_sha256_clean_up(&aws->sha);
    sl_arena_destroy(aws->scratch);
    sl_arena_destroy(aws->lasting);
    free(aws);
}

struct sl_http *sl_aws_http(struct sl_aws *aws)
{
    if (!aws->http) {
        const struct sl_profile *profile = sl_aws_profile(aws);
        struct sl_span bundle = sl_profile_get(profile, profile->name, "ca_bundle");
        struct sl_http_options options = {.clock = aws->sinks->clock, .vars = aws->sinks->vars};
        if (bundle.len && !sl_vars_or(options.vars, "AWS_CA_BUNDLE", NULL))
            options.ca_bundle = sl_arena_copy(aws->lasting, bundle);
        aws->http = sl_http_new(&options);
    }
    return aws->http;
}

struct sl_sha256 *sl_aws_sha(struct sl_aws *aws)
{
    if (!aws->has_sha)
        sl_sha256_init(&aws->sha);
    aws->has_sha = true;
    return &aws->sha;
}

const struct sl_profile *sl_aws_profile(struct sl_aws *aws)
{
    if (!aws->has_profile)
        sl_profile_load(&aws->profile, aws->sinks->vars, aws->lasting);
    aws->has_profile = true;
    return &aws->profile;
}

int64_t sl_aws_now_s(const struct sl_aws *aws)
{
    struct sl_clock *clock = aws->sinks->clock;
    return clock->wall_ns(clock) / 1000000000 + aws->skew_s;
}

int64_t sl_aws_now_ms(const struct sl_aws *aws)
{
    return aws->sinks->clock->now_ms(aws->sinks->clock);
}
