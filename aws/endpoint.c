/* The services, and where each of them is. */
#include "aws/endpoint.h"

#include "base/arn.h"
#include "base/url.h"
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

const struct sl_service sl_service_secretsmanager = {
    .id = "SECRETS_MANAGER",
    .host = "secretsmanager",
    .signing = "secretsmanager",
    .media = JSON_1_1,
    .prefix = "secretsmanager.",
    .attempts = 3,
    .base_ms = 50,
};

const struct sl_service sl_service_ssm = {
    .id = "SSM",
    .host = "ssm",
    .signing = "ssm",
    .media = JSON_1_1,
    .prefix = "AmazonSSM.",
    .attempts = 3,
    .base_ms = 50,
};

const struct sl_service sl_service_xray = {
    .id = "XRAY",
    .host = "xray",
    .signing = "xray",
    .media = "application/json",
    .attempts = 2,
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
    const char *begins, *suffix, *dual_stack_suffix, *name;
} partitions[] = {
    {"cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn", "aws-cn"},
    {"us-gov-", "amazonaws.com", "api.aws", "aws-us-gov"},
    {"us-iso-", "c2s.ic.gov", "api.aws.ic.gov", "aws-iso"},
    {"us-isob-", "sc2s.sgov.gov", "api.aws.scloud", "aws-iso-b"},
    {"eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk", "aws-iso-e"},
    {"us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov", "aws-iso-f"},
    {"eusc-", "amazonaws.eu", "api.amazonwebservices.eu", "aws-eusc"},
    {"", "amazonaws.com", "api.aws", "aws"},
};

static const struct partition *partition_of(struct sl_span region)
{
    const struct partition *p = partitions;
    while (!sl_span_starts(region, sl_span_str(p->begins)))
        p++;
    return p;
}

const char *sl_endpoint_arn_problem(struct sl_span arn, const char *service, struct sl_span home)
{
    const struct sl_span partition = sl_arn_part(arn, 1), region = sl_arn_part(arn, 3),
                         account = sl_arn_part(arn, 4);
    if (!sl_arn_part(arn, 5).len)
        return "an ARN has six parts: arn:aws:SERVICE:REGION:ACCOUNT:NAME";
    if (!sl_span_is(sl_arn_part(arn, 2), service))
        return "the ARN is another service's";
    if (!sl_endpoint_is_region(region) || !sl_span_is(partition, partition_of(region)->name))
        return "the ARN's Region is not one of its partition";
    for (size_t i = 0; i < account.len; i++)
        if (account.ptr[i] < '0' || account.ptr[i] > '9')
            return "the ARN's account is not a number";
    if (!account.len)
        return "the ARN's account is missing";
    if (home.len && partition_of(home) != partition_of(region))
        return "the ARN is of another partition than this process's Region (AWS_REGION), and so the keys are "
               "not valid there; if they are, say so with region=";
    return NULL;
}

const char *sl_endpoint_target(struct sl_arena *arena, const char *scheme, const char *name,
                               const char *region, const char *endpoint)
{
    return sl_arena_printf(arena, "%s%s%s%s%s%s", scheme, name, region ? "?region=" : "",
                           region ? region : "",
                           !endpoint ? ""
                           : region  ? "&endpoint="
                                     : "?endpoint=",
                           endpoint ? endpoint : "");
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

/* A switch that a variable or the profile sets: "true" or "false". */
static enum sl_status read_switch(const struct sl_endpoint_request *r, const char *variable, const char *key,
                                  bool *out, struct sl_error *error)
{
    struct sl_span text = sl_profile_setting(r->profile, r->vars, variable, key);
    *out = text.len == 4 && strncasecmp(text.ptr, "true", 4) == 0;
    if (*out || !text.len || (text.len == 5 && strncasecmp(text.ptr, "false", 5) == 0))
        return SL_OK;
    return sl_fail(error, SL_FATAL, "InvalidEndpoint",
                   "%s (in a profile: %s) is \"%.*s\"; write true or false", variable, key, SL_ARG(text));
}

static enum sl_status configured_url(const struct sl_endpoint_request *request, struct sl_span *out,
                                     struct sl_error *error)
{
    const struct sl_vars *vars = request->vars;
    const struct sl_profile *profile = request->profile;
    char name[64];
    bool ignores = false;
    *out = request->configured;
    enum sl_status status = read_switch(request, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
                                        "ignore_configured_endpoint_urls", &ignores, error);
    if (status != SL_OK || out->len || ignores)
        return status;
    snprintf(name, sizeof(name), "AWS_ENDPOINT_URL_%s", request->service->id);
    *out = sl_span_str(sl_vars_or(vars, name, sl_vars_or(vars, "AWS_ENDPOINT_URL", NULL)));
    if (out->len || !profile)
        return SL_OK;
    *out = sl_profile_endpoint(profile, request->service->id);
    if (!out->len)
        *out = sl_profile_get(profile, profile->name, "endpoint_url");
    return SL_OK;
}

static void find_parts(struct sl_endpoint *out)
{
    out->host_at = (size_t)(strstr(out->base, "://") + 3 - out->base);
    out->host_bytes = strcspn(out->base + out->host_at, "/");
}

static enum sl_status use_url(const struct sl_endpoint_request *request, struct sl_span url,
                              struct sl_endpoint *out, struct sl_error *error)
{
    struct sl_uri uri;
    const struct sl_span label = request->has_label_everywhere ? request->label : sl_span("", 0);
    while (url.len && url.ptr[url.len - 1] == '/')
        url.len--;
    const char *slashes = url.len ? memmem(url.ptr, url.len, "://", 3) : NULL;
    size_t scheme = slashes ? (size_t)(slashes + 3 - url.ptr) : 0;
    int n = snprintf(out->base, sizeof(out->base), "%.*s%.*s%s%.*s", (int)scheme, url.ptr, SL_ARG(label),
                     label.len ? "." : "", (int)(url.len - scheme), url.ptr + scheme);
    bool fits = n > 0 && (size_t)n < sizeof(out->base) && strlen(out->base) == (size_t)n;
    /* Paths are appended to it, so it cannot have a query or a fragment; and keys are no part of it. */
    if (!fits || strpbrk(out->base, "?#\"<>\\@") || !sl_uri_parse(out->base, &uri))
        return sl_fail(error, SL_FATAL, "InvalidEndpoint",
                       "endpoint \"%.*s\" is not a URL such as http://host:port or https://host; check the "
                       "target's endpoint= and the variables AWS_ENDPOINT_URL*",
                       SL_ARG(slashes ? sl_url_shown(url) : SL_LIT("...")));
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

/* Not one of AWS's own: "local", "aws-global" and the like have no host. */
static bool is_nowhere(const char *region)
{
    size_t n = strlen(region), global = strlen("-global");
    return strcmp(region, "local") == 0 || (n > global && strcmp(region + n - global, "-global") == 0);
}

/* Hosts by account are there in most partitions (AWS's rules for Kinesis). */
static bool has_account_hosts(const struct partition *partition)
{
    return !strstr(partition->name, "-iso") && strcmp(partition->name, "aws-eusc") != 0;
}

/* As botocore's rules have it: tests/aws/check_endpoints.sh compares them all. */
static enum sl_status own_url(const struct sl_endpoint_request *request, bool fips, bool dual,
                              struct sl_endpoint *out, struct sl_error *error)
{
    const struct sl_service *service = request->service;
    const struct partition *partition = partition_of(sl_span_str(request->region));
    bool is_s3 = service == &sl_service_s3; /* S3 has its own spelling of dual stack */
    bool by_account = request->account.len && has_account_hosts(partition);
    const char *host = by_account                   ? "data-kinesis"
                       : dual && service->dual_host ? service->dual_host
                                                    : service->host;
    const struct sl_span label = by_account ? request->account : request->label;
    if (is_nowhere(request->region))
        return sl_fail(error, SL_FATAL, "NoEndpoint",
                       "no service is in the Region \"%s\"; name a Region, or a server with endpoint= or "
                       "AWS_ENDPOINT_URL",
                       request->region);
    if (fips && is_s3 && partition == &partitions[0])
        return sl_fail(error, SL_FATAL, "NoEndpoint",
                       "S3 has no FIPS endpoint in %s; unset AWS_USE_FIPS_ENDPOINT", request->region);
    snprintf(out->base, sizeof(out->base), "https://%.*s%s%s%s%s.%s.%s", SL_ARG(label), label.len ? "." : "",
             host, fips && (by_account || !is_fips_by_itself(request, dual)) ? "-fips" : "",
             dual && is_s3 ? ".dualstack" : "", request->region,
             dual && !is_s3 ? partition->dual_stack_suffix : partition->suffix);
    find_parts(out);
    return SL_OK;
}

/* Hosts such as 123456789012.ddb.us-east-1.amazonaws.com are not used here. */
static enum sl_status check_account_mode(const struct sl_endpoint_request *request, struct sl_error *error)
{
    struct sl_span mode = sl_profile_setting(request->profile, request->vars, "AWS_ACCOUNT_ID_ENDPOINT_MODE",
                                             "account_id_endpoint_mode");
    bool is_ours = request->service == &sl_service_dynamodb || request->service == &sl_service_streams;
    if (!is_ours || !mode.len || sl_span_is(mode, "preferred") || sl_span_is(mode, "disabled"))
        return SL_OK;
    return sl_fail(
        error, SL_FATAL, "InvalidEndpoint",
        sl_span_is(mode, "required")
            ? "AWS_ACCOUNT_ID_ENDPOINT_MODE is \"%.*s\", and endpoints by account are not used here; "
              "set it to preferred or disabled"
            : "AWS_ACCOUNT_ID_ENDPOINT_MODE is \"%.*s\"; write preferred, disabled or required",
        SL_ARG(mode));
}

/* What SDKs refuse: a host of AWS's that has the switch in its name, without the switch. */
static bool is_dual_stack_host(const struct sl_endpoint_request *request, const struct sl_endpoint *endpoint)
{
    char host[SL_ENDPOINT_BYTES];
    const struct partition *partition = partition_of(sl_span_str(request->region));
    snprintf(host, sizeof(host), "dynamodb.%s.%s", request->region, partition->dual_stack_suffix);
    return request->service == &sl_service_dynamodb && sl_span_is(sl_endpoint_host(endpoint), host);
}

enum sl_status sl_endpoint_resolve(const struct sl_endpoint_request *request, struct sl_endpoint *out,
                                   struct sl_error *error)
{
    struct sl_span url;
    bool fips = false, dual = false, is_domain = request->service == &sl_service_opensearch;
    *out = (struct sl_endpoint){.custom = false};
    if (configured_url(request, &url, error) != SL_OK || check_account_mode(request, error) != SL_OK ||
        read_switch(request, "AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint", &fips, error) != SL_OK ||
        read_switch(request, "AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint", &dual, error) != SL_OK)
        return SL_FATAL;
    if (!url.len)
        return own_url(request, fips, dual, out, error);
    if (use_url(request, url, out, error) != SL_OK)
        return SL_FATAL;
    if ((fips || dual) && !is_domain)
        return sl_fail(error, SL_FATAL, "InvalidEndpoint",
                       "a configured endpoint (%.*s) and %s exclude each other: take one of them away",
                       SL_ARG(sl_endpoint_host(out)),
                       fips ? "AWS_USE_FIPS_ENDPOINT" : "AWS_USE_DUALSTACK_ENDPOINT");
    if (is_dual_stack_host(request, out))
        return sl_fail(error, SL_FATAL, "InvalidEndpoint",
                       "%.*s is an endpoint of AWS's own for dual stack: set AWS_USE_DUALSTACK_ENDPOINT=true "
                       "in its place",
                       SL_ARG(sl_endpoint_host(out)));
    return SL_OK;
}
