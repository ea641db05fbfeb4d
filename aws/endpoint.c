/* The services, and where each of them is. */
#include "aws/endpoint.h"

#include "net/uri.h"

#include <stdio.h>
#include <strings.h>

/* Attempts and bases: the SDKs' standard retry mode since November 2026. */
#define JSON_1_0 "application/x-amz-json-1.0"
#define JSON_1_1 "application/x-amz-json-1.1"
#define FORM     "application/x-www-form-urlencoded; charset=utf-8"

const struct sl_service sl_service_dynamodb = {
    .id = "DYNAMODB",
    .host = "dynamodb",
    .signing = "dynamodb",
    .media = JSON_1_0,
    .prefix = "DynamoDB_20120810.",
    .attempts = 4,
    .base_ms = 25,
    .gov_fips = SL_GOV_FIPS_PLAIN,
};
const struct sl_service sl_service_streams = {
    .id = "DYNAMODB_STREAMS",
    .host = "streams.dynamodb",
    .signing = "dynamodb",
    .media = JSON_1_0,
    .prefix = "DynamoDBStreams_20120810.",
    .attempts = 4,
    .base_ms = 25,
    .gov_fips = SL_GOV_FIPS_PLAIN,
    .dual_host = "streams-dynamodb",
};
const struct sl_service sl_service_s3 = {
    .id = "S3",
    .host = "s3",
    .signing = "s3",
    .attempts = 3,
    .base_ms = 50,
};
const struct sl_service sl_service_sqs = {
    .id = "SQS",
    .host = "sqs",
    .signing = "sqs",
    .media = JSON_1_0,
    .prefix = "AmazonSQS.",
    .attempts = 3,
    .base_ms = 50,
    .query_mode = true,
    .gov_fips = SL_GOV_FIPS_PLAIN,
};
const struct sl_service sl_service_sns = {
    .id = "SNS",
    .host = "sns",
    .signing = "sns",
    .media = FORM,
    .attempts = 3,
    .base_ms = 50,
    .gov_fips = SL_GOV_FIPS_PLAIN,
};
const struct sl_service sl_service_events = {
    .id = "EVENTBRIDGE",
    .host = "events",
    .signing = "events",
    .media = JSON_1_1,
    .prefix = "AWSEvents.",
    .attempts = 3,
    .base_ms = 50,
    .gov_fips = SL_GOV_FIPS_ALL,
};
const struct sl_service sl_service_kinesis = {
    .id = "KINESIS",
    .host = "kinesis",
    .signing = "kinesis",
    .media = JSON_1_1,
    .prefix = "Kinesis_20131202.",
    .attempts = 3,
    .base_ms = 50,
    .gov_fips = SL_GOV_FIPS_PLAIN,
};
const struct sl_service sl_service_firehose = {
    .id = "FIREHOSE",
    .host = "firehose",
    .signing = "firehose",
    .media = JSON_1_1,
    .prefix = "Firehose_20150804.",
    .attempts = 3,
    .base_ms = 50,
};
const struct sl_service sl_service_sts = {
    .id = "STS",
    .host = "sts",
    .signing = "sts",
    .media = FORM,
    .attempts = 3,
    .base_ms = 50,
    .gov_fips = SL_GOV_FIPS_PLAIN,
};

const struct sl_service sl_service_lambda = {
    .id = "LAMBDA",
    .host = "lambda",
    .signing = "lambda",
    .attempts = 3,
    .base_ms = 50,
};

/* Its domains have hosts of their own: a target names one. */
const struct sl_service sl_service_opensearch = {
    .id = "OPENSEARCH",
    .host = "es",
    .signing = "es",
    .media = "application/json",
    .attempts = 4,
    .base_ms = 50,
};

/* AWS's partitions by how their regions begin; the last row is for all others. */
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

static struct sl_span configured_url(const struct sl_endpoint_request *request)
{
    const struct sl_vars *vars = request->vars;
    const struct sl_profile *profile = request->profile;
    char name[64];
    if (request->configured.len || is_true(sl_vars_get(vars, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")))
        return request->configured;
    snprintf(name, sizeof(name), "AWS_ENDPOINT_URL_%s", request->service->id);
    const char *url = sl_vars_or(vars, name, sl_vars_or(vars, "AWS_ENDPOINT_URL", NULL));
    if (url)
        return sl_span_str(url);
    if (!profile)
        return sl_span(NULL, 0);
    struct sl_span own = sl_profile_endpoint(profile, request->service->id);
    return own.len ? own : sl_profile_get(profile, profile->name, "endpoint_url");
}

static void find_parts(struct sl_endpoint *out)
{
    out->host_at = (size_t)(strstr(out->base, "://") + 3 - out->base);
    out->host_bytes = strcspn(out->base + out->host_at, "/");
}

static enum sl_status use_url(struct sl_span url, struct sl_endpoint *out, struct sl_error *error)
{
    struct sl_uri uri;
    size_t len = url.len;
    while (len && url.ptr[len - 1] == '/')
        len--;
    bool fits = len < sizeof(out->base);
    snprintf(out->base, sizeof(out->base), "%.*s", fits ? (int)len : 0, url.ptr);
    /* Paths are appended to it, so it cannot have a query or a fragment. */
    if (!fits || strlen(out->base) != len || strpbrk(out->base, "?#\"<>\\") || !sl_uri_parse(out->base, &uri))
        return sl_fail(error, SL_FATAL, "InvalidEndpoint",
                       "endpoint \"%.*s\" is not a URL such as http://host:port or https://host; check the "
                       "target's endpoint= and the variables AWS_ENDPOINT_URL*",
                       SL_ARG(url));
    out->custom = true;
    find_parts(out);
    return SL_OK;
}

static bool is_fips_by_itself(const struct sl_endpoint_request *request, bool dual)
{
    enum sl_gov_fips gov = request->service->gov_fips;
    return strncmp(request->region, "us-gov-", strlen("us-gov-")) == 0 &&
           (gov == SL_GOV_FIPS_ALL || (gov == SL_GOV_FIPS_PLAIN && !dual));
}

/* As botocore's rules have it: tests/aws/check_endpoints.sh compares them all. */
static enum sl_status own_url(const struct sl_endpoint_request *request, struct sl_endpoint *out,
                              struct sl_error *error)
{
    const struct sl_service *service = request->service;
    const struct partition *partition = partition_of(request->region);
    bool dual = is_true(sl_vars_get(request->vars, "AWS_USE_DUALSTACK_ENDPOINT"));
    bool fips = is_true(sl_vars_get(request->vars, "AWS_USE_FIPS_ENDPOINT"));
    bool is_s3 = service == &sl_service_s3; /* S3 has its own spelling of dual stack */
    if (fips && is_s3 && partition == &partitions[0])
        return sl_fail(error, SL_FATAL, "NoEndpoint",
                       "S3 has no FIPS endpoint in %s; unset AWS_USE_FIPS_ENDPOINT", request->region);
    snprintf(out->base, sizeof(out->base), "https://%.*s%s%s%s%s.%s.%s", SL_ARG(request->label),
             request->label.len ? "." : "", dual && service->dual_host ? service->dual_host : service->host,
             fips && !is_fips_by_itself(request, dual) ? "-fips" : "", dual && is_s3 ? ".dualstack" : "",
             request->region, dual && !is_s3 ? partition->dual_stack_suffix : partition->suffix);
    find_parts(out);
    return SL_OK;
}

enum sl_status sl_endpoint_resolve(const struct sl_endpoint_request *request, struct sl_endpoint *out,
                                   struct sl_error *error)
{
    *out = (struct sl_endpoint){.custom = false};
    struct sl_span url = configured_url(request);
    if (url.len)
        return use_url(url, out, error);
    return own_url(request, out, error);
}
