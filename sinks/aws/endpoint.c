#include "sinks/aws/endpoint.h"

#include <stdio.h>
#include <strings.h>

/* Attempts and bases: the SDKs' standard retry mode since November 2026. */
#define JSON_1_0 "application/x-amz-json-1.0"
#define JSON_1_1 "application/x-amz-json-1.1"
#define FORM     "application/x-www-form-urlencoded; charset=utf-8"

const struct sl_service sl_service_dynamodb = {"DYNAMODB",           "dynamodb", "dynamodb", JSON_1_0,
                                               "DynamoDB_20120810.", 4,          25,         false};
const struct sl_service sl_service_streams = {
    "DYNAMODB_STREAMS", "streams.dynamodb", "dynamodb", JSON_1_0, "DynamoDBStreams_20120810.", 4, 25, false};
const struct sl_service sl_service_s3 = {"S3", "s3", "s3", NULL, NULL, 3, 50, false};
const struct sl_service sl_service_sqs = {"SQS", "sqs", "sqs", JSON_1_0, "AmazonSQS.", 3, 50, true};
const struct sl_service sl_service_sns = {"SNS", "sns", "sns", FORM, NULL, 3, 50, false};
const struct sl_service sl_service_events = {"EVENTBRIDGE", "events", "events", JSON_1_1,
                                             "AWSEvents.",  3,        50,       false};
const struct sl_service sl_service_kinesis = {"KINESIS",           "kinesis", "kinesis", JSON_1_1,
                                              "Kinesis_20131202.", 3,         50,        false};
const struct sl_service sl_service_firehose = {"FIREHOSE",           "firehose", "firehose", JSON_1_1,
                                               "Firehose_20150804.", 3,          50,         false};
const struct sl_service sl_service_sts = {"STS", "sts", "sts", FORM, NULL, 3, 50, false};

/* AWS's partitions, told apart by how their regions begin; the last row is all others. */
static const struct partition {
    const char *begins, *suffix, *dual_stack_suffix;
} partitions[] = {
    {"cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"},
    {"us-gov-", "amazonaws.com", "api.aws"},
    {"us-iso-", "c2s.ic.gov", "api.aws.ic.gov"},
    {"us-isob-", "sc2s.sgov.gov", "api.aws.scloud"},
    {"eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"},
    {"us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"},
    {"eusc-", "amazonaws.eu", "api.amazonwebservices.eu"},
    {"", "amazonaws.com", "api.aws"},
};

static const struct partition *partition_of(const char *region)
{
    const struct partition *p = partitions;
    while (strncmp(region, p->begins, strlen(p->begins)) != 0)
        p++;
    return p;
}

bool sl_endpoint_is_region(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && i && i + 1 < text.len)))
            return false;
    }
    return text.len > 1 && text.len < SL_REGION_BYTES;
}

struct sl_span sl_endpoint_region(const struct sl_vars *vars, const struct sl_profile *profile)
{
    const char *named = sl_vars_or(vars, "AWS_REGION", sl_vars_or(vars, "AWS_DEFAULT_REGION", NULL));
    if (named)
        return sl_span_str(named);
    return profile ? sl_profile_get(profile, profile->name, "region") : sl_span(NULL, 0);
}

static bool is_true(const char *text)
{
    return text && strcasecmp(text, "true") == 0;
}

static struct sl_span configured_url(const struct sl_service *service, const struct sl_vars *vars,
                                     const struct sl_profile *profile)
{
    char name[64];
    if (is_true(sl_vars_get(vars, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")))
        return sl_span(NULL, 0);
    snprintf(name, sizeof(name), "AWS_ENDPOINT_URL_%s", service->id);
    const char *url = sl_vars_or(vars, name, sl_vars_or(vars, "AWS_ENDPOINT_URL", NULL));
    if (url)
        return sl_span_str(url);
    if (!profile)
        return sl_span(NULL, 0);
    struct sl_span own = sl_profile_endpoint(profile, service->id);
    return own.len ? own : sl_profile_get(profile, profile->name, "endpoint_url");
}

static void find_parts(struct sl_endpoint *out)
{
    out->host_at = (size_t)(strstr(out->base, "://") + 3 - out->base);
    out->host_bytes = strcspn(out->base + out->host_at, "/");
}

static enum sl_status use_url(struct sl_span url, struct sl_endpoint *out, struct sl_error *error)
{
    bool is_http = sl_span_starts(url, SL_LIT("http://")) || sl_span_starts(url, SL_LIT("https://"));
    while (url.len && url.ptr[url.len - 1] == '/')
        url.len--;
    size_t scheme = sl_span_starts(url, SL_LIT("https")) ? 8 : 7;
    is_http = is_http && url.len > scheme && url.ptr[scheme] != '/' && url.ptr[scheme] != ':';
    for (size_t i = 0; i < url.len; i++)
        is_http = is_http && (unsigned char)url.ptr[i] > ' ' && !strchr("?#@\"<>\\", url.ptr[i]);
    if (!is_http || url.len >= sizeof(out->base))
        return sl_fail(error, SL_FATAL, "InvalidEndpoint",
                       "endpoint \"%.*s\" is no URL of the form http://host:port or https://host; look at "
                       "the target's endpoint= and at AWS_ENDPOINT_URL*",
                       SL_ARG(url));
    snprintf(out->base, sizeof(out->base), "%.*s", SL_ARG(url));
    out->custom = true;
    find_parts(out);
    return SL_OK;
}

static void own_url(const struct sl_service *service, const char *region, struct sl_span label,
                    const struct sl_vars *vars, struct sl_endpoint *out)
{
    const struct partition *partition = partition_of(region);
    bool dual = is_true(sl_vars_get(vars, "AWS_USE_DUALSTACK_ENDPOINT"));
    const char *fips = is_true(sl_vars_get(vars, "AWS_USE_FIPS_ENDPOINT")) ? "-fips" : "";
    bool is_s3 = service == &sl_service_s3; /* S3 has its own spelling of dual stack */
    snprintf(out->base, sizeof(out->base), "https://%.*s%s%s%s%s.%s.%s", SL_ARG(label), label.len ? "." : "",
             service->host, fips, dual && is_s3 ? ".dualstack" : "", region,
             dual && !is_s3 ? partition->dual_stack_suffix : partition->suffix);
    find_parts(out);
}

enum sl_status sl_endpoint_resolve(const struct sl_service *service, const char *region,
                                   struct sl_span configured, struct sl_span label,
                                   const struct sl_vars *vars, const struct sl_profile *profile,
                                   struct sl_endpoint *out, struct sl_error *error)
{
    *out = (struct sl_endpoint){.custom = false};
    if (!configured.len)
        configured = configured_url(service, vars, profile);
    if (configured.len)
        return use_url(configured, out, error);
    own_url(service, region, label, vars, out);
    return SL_OK;
}
