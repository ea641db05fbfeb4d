/* Where a service is: its URL by region and partition, and the settings that say otherwise.
 *
 * The order is the SDKs': the target's own endpoint, AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, the
 * profile's services section, the profile's endpoint_url; AWS_IGNORE_CONFIGURED_ENDPOINT_URLS drops all but
 * the first. */
#ifndef SL_SINKS_AWS_ENDPOINT_H
#define SL_SINKS_AWS_ENDPOINT_H

#include "base/error.h"
#include "sinks/aws/profile.h"

/* What the SDKs know of a service. */
struct sl_service {
    const char *id;      /* "DYNAMODB": AWS_ENDPOINT_URL_DYNAMODB; in lower case in a profile */
    const char *host;    /* "dynamodb": dynamodb.us-east-1.amazonaws.com */
    const char *signing; /* the name that is signed */
    const char *media;   /* content type of a request; NULL: the sink's own */
    const char *prefix;  /* of X-Amz-Target; NULL: none is sent */
    unsigned attempts;   /* unless AWS_MAX_ATTEMPTS says so */
    unsigned base_ms;    /* of the back-off when nothing is throttled */
    bool query_mode;     /* sends x-amzn-query-mode, and is told the old error codes */
};

extern const struct sl_service sl_service_dynamodb, sl_service_streams, sl_service_s3, sl_service_sqs,
    sl_service_sns, sl_service_events, sl_service_kinesis, sl_service_firehose, sl_service_sts;

#define SL_REGION_BYTES   40
#define SL_ENDPOINT_BYTES 512

struct sl_endpoint {
    char base[SL_ENDPOINT_BYTES]; /* "https://host:port", or with a path; no '/' at the end */
    size_t host_at, host_bytes;   /* of `base`: what the Host header says; a path may follow */
    bool custom;                  /* not AWS's own: S3 is asked by path there */
};

static inline struct sl_span sl_endpoint_host(const struct sl_endpoint *endpoint)
{
    return sl_span(endpoint->base + endpoint->host_at, endpoint->host_bytes);
}

/* Behind the host; "" mostly. */
static inline const char *sl_endpoint_path(const struct sl_endpoint *endpoint)
{
    return endpoint->base + endpoint->host_at + endpoint->host_bytes;
}

bool sl_endpoint_is_region(struct sl_span text);

/* The region of a target that names none: AWS_REGION, AWS_DEFAULT_REGION, the profile's. Absent: none. */
struct sl_span sl_endpoint_region(const struct sl_vars *vars, const struct sl_profile *profile);

/* `configured` is the target's own endpoint, absent mostly; `label` goes in front of AWS's own host name (""
 * or a bucket). SL_FATAL when a configured URL is none. */
enum sl_status sl_endpoint_resolve(const struct sl_service *service, const char *region,
                                   struct sl_span configured, struct sl_span label,
                                   const struct sl_vars *vars, const struct sl_profile *profile,
                                   struct sl_endpoint *out, struct sl_error *error) SL_MUST_USE;

#endif
