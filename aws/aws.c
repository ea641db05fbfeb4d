/* What all AWS clients of a process share, each part made when it is first used. */
#include "aws/aws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES (16 * 1024)

struct sl_aws *sl_aws_new(struct sl_clock *clock, struct sl_log *log, const struct sl_vars *vars,
                          sl_aws_keys_fn find_keys)
{
    struct sl_aws *aws = calloc(1, sizeof(*aws));
    if (!aws)
        sl_die("out of memory: the AWS sinks");
    aws->clock = clock;
    aws->log = log;
    aws->vars = vars;
    aws->find_keys = find_keys;
    aws->lasting = sl_arena_new(ARENA_BYTES);
    sl_arena_keep_secret(aws->lasting); /* the profiles' text, the keys */
    aws->scratch = sl_arena_new(ARENA_BYTES);
    return aws;
}

void sl_aws_destroy(struct sl_aws *aws)
{
    if (!aws)
        return;
    sl_arena_destroy(aws->scratch);
    sl_arena_destroy(aws->lasting); /* with the jobs' exchanges, before the pool that they use */
    sl_http_destroy(aws->http);
    sl_sha256_clean_up(&aws->sha);
    free(aws);
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_.~-=;:+&[]{}\"',", c);
}

void sl_aws_trace(struct sl_aws *aws, const char *trace_id)
{
    size_t n = 0;
    aws->trace_id[0] = '\0';
    for (const char *c = trace_id ? trace_id : ""; *c; c++) {
        int wrote = snprintf(aws->trace_id + n, sizeof(aws->trace_id) - n, is_plain(*c) ? "%c" : "%%%02X",
                             (unsigned char)*c);
        n += (size_t)wrote;
        if (n < sizeof(aws->trace_id))
            continue;
        aws->trace_id[0] = '\0';
        return;
    }
}

struct sl_http *sl_aws_http(struct sl_aws *aws)
{
    if (!aws->http) {
        const struct sl_profile *profile = sl_aws_profile(aws);
        struct sl_span bundle = sl_profile_get(profile, profile->name, "ca_bundle");
        struct sl_http_options options = {.clock = aws->clock, .vars = aws->vars};
        if (bundle.len && !sl_vars_or(options.vars, "AWS_CA_BUNDLE", NULL))
            options.ca_bundle = sl_arena_copy(aws->lasting, bundle);
        aws->http = sl_http_new(&options);
    }
    return aws->http;
}

void sl_aws_prepare(struct sl_aws *aws)
{
    if (aws->has_tls)
        sl_http_prepare(sl_aws_http(aws));
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
        sl_profile_load(&aws->profile, aws->vars, aws->lasting);
    aws->has_profile = true;
    return &aws->profile;
}

struct sl_aws_host *sl_aws_host(struct sl_aws *aws, struct sl_span name)
{
    struct sl_aws_host *host = aws->hosts;
    while (host && !sl_span_is(name, host->name))
        host = host->next;
    if (host)
        return host;
    host = sl_arena_zalloc(aws->lasting, sizeof(*host));
    *host = (struct sl_aws_host){.next = aws->hosts, .name = sl_arena_copy(aws->lasting, name)};
    aws->hosts = host;
    return host;
}

int64_t sl_aws_now_s(const struct sl_aws *aws)
{
    struct sl_clock *clock = aws->clock;
    return clock->wall_ns(clock) / 1000000000;
}

int64_t sl_aws_now_ms(const struct sl_aws *aws)
{
    return aws->clock->now_ms(aws->clock);
}
