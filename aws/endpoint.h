/* Where a service is: its URL by region and partition, or a configured one.
 *
 * A configured URL is looked for in the SDKs' order: the target's own endpoint, AWS_ENDPOINT_URL_<SERVICE>,
 * AWS_ENDPOINT_URL, the profile's services section, the profile's endpoint_url;
 * AWS_IGNORE_CONFIGURED_ENDPOINT_URLS drops all but the first. */
#ifndef SL_AWS_ENDPOINT_H
#define SL_AWS_ENDPOINT_H

#include "aws/profile.h"

/* Which of the service's hosts in us-gov-* validate cryptography by FIPS 140. */
enum sl_gov_fips {
    SL_GOV_FIPS_OWN,   /* those with "-fips", as everywhere */
    SL_GOV_FIPS_PLAIN, /* the ordinary one; "-fips" only with dual stack */
    SL_GOV_FIPS_ALL,   /* the ordinary ones, with and without dual stack */
};

/* What the SDKs know of a service. */
struct sl_service {
    const char *id;      /* "DYNAMODB": AWS_ENDPOINT_URL_DYNAMODB; in lower case in a profile */
    const char *host;    /* "dynamodb": dynamodb.us-east-1.amazonaws.com */
    const char *signing; /* the name that is signed */
    const char *media;   /* content type of a request; NULL: the sink's own */
    const char *prefix;  /* of X-Amz-Target; NULL: none is sent */
    unsigned attempts;   /* unless AWS_MAX_ATTEMPTS is set */
    unsigned base_ms;    /* of the back-off when nothing is throttled */
    bool query_mode;     /* sends x-amzn-query-mode: the service adds the old error codes */
    enum sl_gov_fips gov_fips;
    const char *dual_host; /* instead of `host` with dual stack; NULL: the same */
};

extern const struct sl_service sl_service_dynamodb, sl_service_streams, sl_service_s3, sl_service_sqs,
    sl_service_sns, sl_service_events, sl_service_kinesis, sl_service_firehose, sl_service_sts,
    sl_service_lambda, sl_service_secretsmanager, sl_service_ssm, sl_service_opensearch, sl_service_xray;

#define SL_REGION_BYTES   40
#define SL_ENDPOINT_BYTES 512

struct sl_endpoint {
    char base[SL_ENDPOINT_BYTES]; /* "https://host:port", or with a path; no '/' at the end */
    size_t host_at, host_bytes;   /* of `base`: what the Host header says; a path may follow */
    bool custom;                  /* not AWS's own: S3's bucket is in the path there */
};

static inline struct sl_span sl_endpoint_host(const struct sl_endpoint *endpoint)
{
    return sl_span(endpoint->base + endpoint->host_at, endpoint->host_bytes);
}

static inline bool sl_endpoint_is_tls(const struct sl_endpoint *endpoint)
{
    return strncmp(endpoint->base, "https:", 6) == 0;
}

/* The path after the host; mostly "". */
static inline const char *sl_endpoint_path(const struct sl_endpoint *endpoint)
{
    return endpoint->base + endpoint->host_at + endpoint->host_bytes;
}

/* A target as people write it, of a name and what may be said beside it: "dynamodb://" "orders" "eu-west-1"
 * NULL becomes "dynamodb://orders?region=eu-west-1". In `arena`. */
const char *sl_endpoint_target(struct sl_arena *arena, const char *scheme, const char *name,
                               const char *region, const char *endpoint);

bool sl_endpoint_is_region(struct sl_span text);

/* The region of a target that names none: AWS_REGION, AWS_DEFAULT_REGION, the profile's. Absent when none is
 * set. */
struct sl_span sl_endpoint_region(const struct sl_vars *vars, const struct sl_profile *profile);

/* Whose endpoint is looked for, and where it may be configured. */
struct sl_endpoint_request {
    const struct sl_service *service;
    const char *region;
    struct sl_span configured; /* the target's own endpoint, mostly absent */
    struct sl_span label;      /* in front of AWS's own host name: a bucket, mostly absent */
    struct sl_span account; /* of a stream's ARN: its requests go to the account's own host; absent: none */
    bool has_label_everywhere; /* in front of a configured host, too */
    const struct sl_vars *vars;
    const struct sl_profile *profile; /* NULL: no profile is read */
};

/* An ARN of that service, with a Region of its partition and an account. NULL: it is one; else what is wrong
 * with it. `home`: the Region that the environment names, absent when it names none; keys of one partition
 * are nothing in another. */
const char *sl_endpoint_arn_problem(struct sl_span arn, const char *service, struct sl_span home);

/* SL_FATAL when a configured URL is not the URL of a server, and where SDKs refuse, too: FIPS or dual stack
 * beside a configured URL, hosts by account that are required (AWS_ACCOUNT_ID_ENDPOINT_MODE). */
enum sl_status sl_endpoint_resolve(const struct sl_endpoint_request *request, struct sl_endpoint *out,
                                   struct sl_error *error) SL_MUST_USE;

#endif
