/* The parts of sinks/aws/ that need no server: targets, endpoints, codes, answers. */
#include "tests/support/fault.h"

#include "aws/refusal.h"
#include "aws/aws.h"
#include "aws/client.h"
#include "aws/codes.h"
#include "aws/endpoint.h"
#include "base/clock.h"
#include "base/json_walk.h"
#include "base/time.h"
#include "aws/xml.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- targets ---- */

static enum sl_status open_any(const char *url, struct sl_error *error)
{
    static const struct sl_vars vars = {.list = NULL};
    struct sl_sinks sinks;
    struct sl_object_port *objects = NULL;
    struct sl_table_port *table = NULL;
    struct sl_queue_port *queue = NULL;
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &vars);
    *error = (struct sl_error)SL_NO_ERROR;
    struct sl_span target = sl_span_str(url);
    enum sl_port_kind kind = sl_target_kind(target);
    enum sl_status status = kind == SL_PORT_OBJECTS ? sl_target_objects(&sinks, target, &objects, error)
                            : kind == SL_PORT_TABLE ? sl_target_table(&sinks, target, &table, error)
                                                    : sl_target_queue(&sinks, target, &queue, error);
    if (objects)
        objects->close(objects);
    if (table)
        table->close(table);
    if (queue)
        queue->close(queue);
    assert_true(!sinks.aws ||
                (!sinks.aws->http && !sinks.aws->has_sha && !sinks.aws->has_profile)); /* lazy */
    sl_sinks_clean_up(&sinks);
    return status;
}

static void good_targets_open_without_anything(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "s3://bucket",
        "s3://my.bucket-1/a/b%20c/",
        "s3://bucket/p?region=eu-west-1&style=path&sse=AES256",
        "s3://bucket?endpoint=http://127.0.0.1:9000&in_flight=64&if_none_match=1",
        "s3://bucket?reject=InvalidArgument",
        "dynamodb://tbl?reject=ValidationException,KMS.DisabledException,Http413,a,b,c,d,e",
        "sqs://queue?reject=AWS.SimpleQueueService.InvalidMessageContents&region=us-east-1",
        "sns:arn:aws:sns:us-east-1:123456789012:topic?reject=X",
        "events://default?reject=X",
        "kinesis://stream?reject=X",
        "firehose://s?reject=X",
        "dynamodb://tbl",
        "dynamodb://My.Table_1-x?region=us-west-2&role=arn:aws:iam::123456789012:role/a/b",
        "dynamodb://arn:aws:dynamodb:eu-central-1:123456789012:table/theirs",
        "dynamodb:arn:aws:dynamodb:eu-central-1:123456789012:table/theirs?region=eu-central-1",
        "sqs://queue",
        "sqs://queue.fifo?account=123456789012",
        "sqs://123456789012/queue",
        "sqs://https://sqs.us-west-2.amazonaws.com/123456789012/queue",
        "sqs:arn:aws:sqs:us-east-1:123456789012:q",
        "sqs://http://127.0.0.1:4566/000000000000/queue",
        "sns:arn:aws:sns:us-east-1:123456789012:topic",
        "sns:arn:aws-cn:sns:cn-north-1:123456789012:t.fifo",
        "events://default",
        "events://a/b.c?source=my.app",
        "events:arn:aws:events:us-east-1:123456789012:event-bus/x",
        "kinesis://stream",
        "kinesis:arn:aws:kinesis:us-east-1:123456789012:stream/s",
        "firehose://s?newline=0",
        "firehose:arn:aws:firehose:us-east-1:123456789012:deliverystream/s",
    };
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct sl_error error;
        if (open_any(urls[i], &error) != SL_OK)
            fail_msg("%s: %s", urls[i], error.text);
    }
}

static void bad_targets_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "s3://",
        "s3://ab",
        "s3://Bucket",
        "s3://buck_et",
        "s3://-bucket",
        "s3://bucket-",
        "s3://a..b",
        "s3://192.168.0.1",
        "s3:bucket",
        "s3://bucket//x",
        "s3://bucket/../x",
        "s3://bucket/./x",
        "s3://bucket?style=other",
        "s3://bucket?sse=none",
        "s3://bucket?sse=AES256&kms_key=k",
        "s3://bucket?tags=x",
        "s3://bucket?tags==v",
        "s3://bucket?if_none_match=yes",
        "s3://bucket?storage=GLACIER",
        "s3://bucket?region=Frankfurt",
        "s3://bucket?region=",
        "s3://bucket?endpoint=localhost:9000",
        "s3://bucket?endpoint=http://a/?x=1",
        "s3://bucket?reject=",
        "s3://bucket?reject=A,",
        "s3://bucket?reject=,A",
        "s3://bucket?reject=A%20B",
        "s3://bucket?reject=a,b,c,d,e,f,g,h,i",
        "s3://bucket?reject=ThrottlingException",
        "s3://bucket?reject=A,ExpiredToken",
        "s3://bucket?reject=KMSThrottlingException",
        "s3://bucket?in_flight=0",
        "s3://bucket?in_flight=65",
        "s3://bucket?in_flight=many",
        "s3://bucket?in_flight=",
        "s3://bucket?role=admin",
        "s3://bucket?role=arn:aws:iam::123456789012:user/u",
        "s3://bucket?storage_class=A%0d%0aB:c",
        "dynamodb://ab",
        "dynamodb://",
        "dynamodb://ta/ble",
        "dynamodb://ta ble",
        "dynamodb://arn:aws:dynamodb:table/x",
        "dynamodb://tbl?table=x",
        "dynamodb:arn:aws:dynamodb:eu-central-1:123456789012:table/t?region=us-east-1",
        "sqs://",
        "sqs://bad name",
        "sqs://queue?account=12",
        "sqs://12345/queue",
        "sqs://que.ue",
        "sqs:arn:aws:sqs:x",
        "sns:topic",
        "sns:arn:aws:sqs:us-east-1:123456789012:topic",
        "sns:arn:aws:sns:us-east-1:123456789012:t:s",
        "sns:arn:aws:sns:nowhere:123456789012:topic?region=us-east-1",
        "events://",
        "events://bus?source=aws.x",
        "events://b us",
        "events:arn:aws:events:us-east-1:123456789012:rule/x",
        "kinesis://",
        "kinesis://a/b",
        "kinesis:arn:aws:kinesis:us-east-1:123456789012:streams/s",
        "firehose://s?newline=2",
        "firehose://s?nl=1",
        "dynamodb://arn:aws-cn:dynamodb:us-east-1:123456789012:table/tbl",
        "dynamodb://arn:aws:dynamodb:cn-north-1:123456789012:table/tbl",
        "dynamodb://arn:aws:dynamodb:us-east-1::table/tbl",
        "dynamodb://arn:aws:dynamodb:us-east-1:12 34:table/tbl",
        "dynamodb://arn:aws:kinesis:us-east-1:123456789012:table/tbl",
        "kinesis:arn:aws:kinesis:us-east-1:123456789012:accesspoint/s",
        "kinesis:arn::kinesis:us-east-1:123456789012:stream/s",
        "sqs:arn:aws:sqs::123456789012:q",
        "events:arn:aws:sns:us-east-1:123456789012:event-bus/x",
        "firehose:arn:aws:firehose:us-gov-west-1:123456789012:deliverystream/s",
        "s3://my-bucket--usw2-az1--x-s3",
        "s3://my-access--usw2-az1--xa-s3",
        "s3://my-alias--op-s3",
        "gs://x",
    };
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct sl_error error;
        if (open_any(urls[i], &error) == SL_OK)
            fail_msg("%s was taken", urls[i]);
        assert_int_equal(error.status, SL_FATAL);
        assert_true(error.text[0] != '\0' && error.code[0] != '\0');
    }
}

/* ---- endpoints ---- */

static void assert_endpoint(const struct sl_service *service, const char *region, const char *label,
                            const char *const *list, const char *wanted)
{
    const struct sl_vars vars = {.list = list};
    const struct sl_endpoint_request request = {
        .service = service, .region = region, .label = sl_span_str(label), .vars = &vars};
    struct sl_endpoint endpoint;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_endpoint_resolve(&request, &endpoint, &error), SL_OK);
    assert_string_equal(endpoint.base, wanted);
    assert_true(strstr(endpoint.base, "://") + 3 == sl_endpoint_host(&endpoint).ptr);
}

static void services_have_hosts_in_every_partition(void **state)
{
    (void)state;
    static const char *const dual[] = {"AWS_USE_DUALSTACK_ENDPOINT=true", NULL},
                             *const fips[] = {"AWS_USE_FIPS_ENDPOINT=true", NULL};
    assert_endpoint(&sl_service_dynamodb, "us-east-1", "", NULL, "https://dynamodb.us-east-1.amazonaws.com");
    assert_endpoint(&sl_service_streams, "eu-west-1", "", NULL,
                    "https://streams.dynamodb.eu-west-1.amazonaws.com");
    assert_endpoint(&sl_service_sqs, "cn-north-1", "", NULL, "https://sqs.cn-north-1.amazonaws.com.cn");
    assert_endpoint(&sl_service_sns, "us-gov-west-1", "", NULL, "https://sns.us-gov-west-1.amazonaws.com");
    assert_endpoint(&sl_service_events, "us-iso-east-1", "", NULL, "https://events.us-iso-east-1.c2s.ic.gov");
    assert_endpoint(&sl_service_kinesis, "us-isob-east-1", "", NULL,
                    "https://kinesis.us-isob-east-1.sc2s.sgov.gov");
    assert_endpoint(&sl_service_firehose, "eusc-de-east-1", "", NULL,
                    "https://firehose.eusc-de-east-1.amazonaws.eu");
    assert_endpoint(&sl_service_s3, "ap-southeast-2", "b", NULL, "https://b.s3.ap-southeast-2.amazonaws.com");
    assert_endpoint(&sl_service_s3, "us-east-1", "b", dual, "https://b.s3.dualstack.us-east-1.amazonaws.com");
    assert_endpoint(&sl_service_sqs, "us-east-1", "", dual, "https://sqs.us-east-1.api.aws");
    assert_endpoint(&sl_service_dynamodb, "us-west-2", "", fips,
                    "https://dynamodb-fips.us-west-2.amazonaws.com");
}

/* In us-gov-* most ordinary hosts validate cryptography as those with "-fips" do elsewhere. */
static void fips_and_dual_stack_have_names_of_their_own(void **state)
{
    (void)state;
    static const char *const fips[] = {"AWS_USE_FIPS_ENDPOINT=True", "AWS_USE_DUALSTACK_ENDPOINT=false",
                                       NULL},
                             *const both[] = {"AWS_USE_FIPS_ENDPOINT=true", "AWS_USE_DUALSTACK_ENDPOINT=TRUE",
                                              NULL},
                             *const neither[] = {"AWS_USE_FIPS_ENDPOINT=FALSE",
                                                 "AWS_USE_DUALSTACK_ENDPOINT=", NULL};
    static const struct {
        const struct sl_service *service;
        const char *region, *fips, *both, *neither;
    } cases[] = {
        {&sl_service_dynamodb, "us-gov-west-1", "dynamodb.us-gov-west-1.amazonaws.com",
         "dynamodb-fips.us-gov-west-1.api.aws", "dynamodb.us-gov-west-1.amazonaws.com"},
        {&sl_service_events, "us-gov-east-1", "events.us-gov-east-1.amazonaws.com",
         "events.us-gov-east-1.api.aws", "events.us-gov-east-1.amazonaws.com"},
        {&sl_service_firehose, "us-gov-east-1", "firehose-fips.us-gov-east-1.amazonaws.com",
         "firehose-fips.us-gov-east-1.api.aws", "firehose.us-gov-east-1.amazonaws.com"},
        {&sl_service_events, "us-east-1", "events-fips.us-east-1.amazonaws.com",
         "events-fips.us-east-1.api.aws", "events.us-east-1.amazonaws.com"},
        {&sl_service_s3, "us-east-1", "s3-fips.us-east-1.amazonaws.com",
         "s3-fips.dualstack.us-east-1.amazonaws.com", "s3.us-east-1.amazonaws.com"},
        {&sl_service_streams, "us-east-1", "streams.dynamodb-fips.us-east-1.amazonaws.com",
         "streams-dynamodb-fips.us-east-1.api.aws", "streams.dynamodb.us-east-1.amazonaws.com"},
        {&sl_service_sqs, "cn-north-1", "sqs-fips.cn-north-1.amazonaws.com.cn",
         "sqs-fips.cn-north-1.api.amazonwebservices.com.cn", "sqs.cn-north-1.amazonaws.com.cn"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const *const lists[] = {fips, both, neither};
        const char *const hosts[] = {cases[i].fips, cases[i].both, cases[i].neither};
        for (size_t k = 0; k < 3; k++) {
            char url[200];
            snprintf(url, sizeof(url), "https://%s", hosts[k]);
            assert_endpoint(cases[i].service, cases[i].region, "", lists[k], url);
        }
    }
    const struct sl_vars vars = {.list = fips};
    struct sl_endpoint endpoint;
    struct sl_error error = SL_NO_ERROR;
    const struct sl_endpoint_request china = {
        .service = &sl_service_s3, .region = "cn-north-1", .vars = &vars};
    assert_int_equal(sl_endpoint_resolve(&china, &endpoint, &error), SL_FATAL);
    assert_string_equal(error.code, "NoEndpoint");
}

static void the_environment_may_say_otherwise(void **state)
{
    (void)state;
    static const char *const one[] = {"AWS_ENDPOINT_URL_SQS=http://a:1/", "AWS_ENDPOINT_URL=https://b/base//",
                                      NULL};
    static const char *const off[] = {"AWS_ENDPOINT_URL=http://b", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=TRUE",
                                      NULL};
    assert_endpoint(&sl_service_sqs, "us-east-1", "", one, "http://a:1");
    assert_endpoint(&sl_service_s3, "us-east-1", "bucket", one, "https://b/base");
    assert_endpoint(&sl_service_sqs, "us-east-1", "", off, "https://sqs.us-east-1.amazonaws.com");
}

static void profiles_may_say_otherwise(void **state)
{
    (void)state;
    const struct sl_vars vars = {.list = NULL};
    struct sl_profile profile = {
        .config = SL_LIT("[default]\nregion = eu-north-1\nservices = local\nendpoint_url = http://all:1\n"
                         "s3 =\n  endpoint_url = http://wrong\n[services local]\ndynamodb =\n  endpoint_url "
                         "= http://ddb:8000\n"
                         "  other = x\nsqs = \n    endpoint_url=http://sqs:9 \n"),
        .name = "default"};
    const struct {
        const struct sl_service *service;
        const char *base;
    } cases[] = {{&sl_service_dynamodb, "http://ddb:8000"},
                 {&sl_service_sqs, "http://sqs:9"},
                 {&sl_service_s3, "http://all:1"}};
    for (size_t i = 0; i < 3; i++) {
        struct sl_endpoint endpoint;
        const struct sl_endpoint_request request = {
            .service = cases[i].service, .region = "x-y-1", .vars = &vars, .profile = &profile};
        assert_int_equal(sl_endpoint_resolve(&request, &endpoint, NULL), SL_OK);
        assert_string_equal(endpoint.base, cases[i].base);
        assert_true(endpoint.custom);
    }
    assert_span_is(sl_endpoint_region(&vars, &profile), "eu-north-1");
    const struct sl_vars named = {
        .list = (const char *const[]){"AWS_DEFAULT_REGION=b-1", "AWS_REGION=a-1", NULL}};
    assert_span_is(sl_endpoint_region(&named, &profile), "a-1");
    assert_null(sl_endpoint_region(&vars, NULL).ptr);
}

static void bad_endpoints_are_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {"localhost",   "http://",     "http:///x",  "https://:1",
                                       "ftp://x",     "http://a b",  "http://u@h", "http://h?q",
                                       "http://h#f",  "/",           "///",        "http://h\"",
                                       "http://h/<a", "http://h/a>", "http://h\\a"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct sl_endpoint endpoint;
        const struct sl_vars vars = {.list = NULL};
        struct sl_error error = SL_NO_ERROR;
        const struct sl_endpoint_request request = {.service = &sl_service_sqs,
                                                    .region = "us-east-1",
                                                    .configured = sl_span_str(urls[i]),
                                                    .vars = &vars};
        assert_int_equal(sl_endpoint_resolve(&request, &endpoint, &error), SL_FATAL);
        assert_string_equal(error.code, "InvalidEndpoint");
    }
    char url[SL_ENDPOINT_BYTES + 2] = "http://";
    memset(url + strlen("http://"), 'h', sizeof(url) - strlen("http://"));
    for (size_t len = SL_ENDPOINT_BYTES - 2; len <= SL_ENDPOINT_BYTES; len++) {
        const struct sl_vars vars = {.list = NULL};
        struct sl_endpoint endpoint;
        struct sl_span text = sl_span(url, len);
        const struct sl_endpoint_request request = {
            .service = &sl_service_sqs, .region = "us-east-1", .configured = text, .vars = &vars};
        url[20] = '/';
        if (len < SL_ENDPOINT_BYTES) {
            assert_int_equal(sl_endpoint_resolve(&request, &endpoint, NULL), SL_OK);
            assert_int_equal(strlen(endpoint.base), len);
        } else {
            assert_int_equal(sl_endpoint_resolve(&request, &endpoint, NULL), SL_FATAL);
        }
    }
}

static void regions_are_told_from_other_words(void **state)
{
    (void)state;
    assert_true(sl_endpoint_is_region(SL_LIT("us-east-1")));
    assert_true(sl_endpoint_is_region(SL_LIT("us-isof-south-1")));
    assert_false(sl_endpoint_is_region(SL_LIT("")));
    assert_false(sl_endpoint_is_region(SL_LIT("US-EAST-1")));
    assert_false(sl_endpoint_is_region(SL_LIT("us-east-1.evil.example")));
    assert_false(sl_endpoint_is_region(SL_LIT("us-east-1/")));
    static const char *const wrong[] = {"-us", "us-",  "u",    "us_east", "us{",
                                        "us`", "us:1", "us/1", "us east"};
    static const char *const right[] = {"us", "a1", "az", "09", "a-z"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(sl_endpoint_is_region(sl_span_str(wrong[i])));
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        assert_true(sl_endpoint_is_region(sl_span_str(right[i])));
    char text[SL_REGION_BYTES + 1];
    memset(text, 'a', sizeof(text));
    assert_true(sl_endpoint_is_region(sl_span(text, SL_REGION_BYTES - 1)));
    assert_false(sl_endpoint_is_region(sl_span(text, SL_REGION_BYTES)));
}

/* ---- codes ---- */

static void codes_depend_on_service_message_and_status(void **state)
{
    (void)state;
    const struct {
        const char *service, *code, *message;
        int http;
        enum sl_status status;
        enum sl_code_kind kind;
    } cases[] = {
        {"SNS", "InvalidParameter", "Invalid parameter: TopicArn", 400, SL_FATAL, SL_CODE_FINAL},
        {"SNS", "InvalidParameter", "Invalid parameter: Message too long", 400, SL_REJECT, SL_CODE_FINAL},
        {"SQS", "NotFound", "", 400, SL_FATAL, SL_CODE_UNKNOWN},
        {"SQS", "AWS.SimpleQueueService.QueueDeletedRecently", "", 400, SL_FATAL, SL_CODE_FINAL},
        {"SQS", "AWS.SimpleQueueService.BatchRequestTooLong", "", 400, SL_REJECT, SL_CODE_FINAL},
        {"EVENTBRIDGE", "MalformedDetail", "", 0, SL_REJECT, SL_CODE_FINAL},
        {"EVENTBRIDGE", "NotAuthorizedForSourceException", "", 0, SL_FATAL, SL_CODE_FINAL},
        {"STS", "IDPCommunicationError", "", 400, SL_RETRY, SL_CODE_TRANSIENT},
        {"DYNAMODB", "IdempotentParameterMismatchException", "", 400, SL_FATAL, SL_CODE_FINAL},
        {"S3", "InvalidArgument", "", 400, SL_FATAL, SL_CODE_UNKNOWN},
        {"KINESIS", "InvalidArgumentException", "", 400, SL_FATAL, SL_CODE_UNKNOWN},
        {"S3", "PreconditionFailed", "", 412, SL_REJECT, SL_CODE_FINAL},
        {"S3", "KMS.DisabledException", "", 400, SL_FATAL, SL_CODE_FINAL},
        {"SQS", "KmsInvalidState", "", 400, SL_FATAL, SL_CODE_FINAL},
        {"KINESIS", "KMSThrottlingException", "", 400, SL_RETRY, SL_CODE_THROTTLE},
        {"SQS", "KmsThrottled", "", 400, SL_RETRY, SL_CODE_THROTTLE},
        {"S3", "NotImplemented", "", 501, SL_FATAL, SL_CODE_FINAL},
        {"DYNAMODB", "Whatever", "", 599, SL_RETRY, SL_CODE_TRANSIENT},
        {"DYNAMODB", "Whatever", "", 408, SL_RETRY, SL_CODE_TRANSIENT},
        {"DYNAMODB", "Whatever", "", 429, SL_RETRY, SL_CODE_THROTTLE},
        {"DYNAMODB", "Whatever", "", 401, SL_FATAL, SL_CODE_UNKNOWN},
        {"DYNAMODB", "Whatever", "", 302, SL_FATAL, SL_CODE_FINAL},
        {"DYNAMODB", "Http403", "", 403, SL_FATAL, SL_CODE_TRANSIENT},
        {"DYNAMODB", "Http503", "", 503, SL_RETRY, SL_CODE_TRANSIENT},
        {"KINESIS", "ExpiredTokenException", "", 400, SL_FATAL, SL_CODE_EXPIRED},
        {"S3", "RequestTimeTooSkewed", "", 403, SL_FATAL, SL_CODE_SKEW},
        {"DYNAMODB", "ValidationException", "One of the required keys was not given a value", 400, SL_FATAL,
         SL_CODE_UNKNOWN},
        {"DYNAMODB", "ValidationException", "ExpressionAttributeNames can only be specified when", 400,
         SL_FATAL, SL_CODE_UNKNOWN},
        {"KINESIS", "ValidationException", "Item size has exceeded", 400, SL_FATAL, SL_CODE_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_code code = sl_codes_find(cases[i].service, sl_span_str(cases[i].code),
                                            sl_span_str(cases[i].message), cases[i].http);
        assert_int_equal(code.status, cases[i].status);
        assert_int_equal(code.kind, cases[i].kind);
    }
}

/* The texts of DynamoDB about items that it can never store: as AWS and DynamoDB Local write them, whole
 * (dynalite's tests, which were taken from AWS; API reference of TransactWriteItems). */
static void items_that_can_never_be_stored_are_the_records_fault(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Item size has exceeded the maximum allowed size",
        "Item size to update has exceeded the maximum allowed size",
        "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit "
        "of2048 "
        "bytes",
        "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size "
        "limit of 1024 bytes",
        "One or more parameter values were invalid: Aggregated size of all hash keys has exceeded the size "
        "limit of 2048 bytes",
        "The update expression attempted to update the secondary index key beyond allowed size limits.",
        "Number overflow. Attempting to store a number with magnitude larger than supported range",
        "1 validation error detected: Number underflow. Attempting to store a number with magnitude smaller "
        "than supported range",
        "Attempting to store more than 38 significant digits in a Number",
        "The parameter cannot be converted to a numeric value: b",
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain "
        "an "
        "empty string value. Key: PK",
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain "
        "an "
        "empty binary value. Key: PK",
        "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond "
        "supported limit",
        "One or more parameter values were invalid: Input collection [a, a] contains duplicates.",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        static const char *const codes[] = {"ValidationException", "ValidationError"};
        for (size_t k = 0; k < 2; k++) {
            struct sl_code code =
                sl_codes_find("DYNAMODB", sl_span_str(codes[k]), sl_span_str(texts[i]), 400);
            if (code.status != SL_REJECT || code.kind != SL_CODE_FINAL)
                fail_msg("%s: %s", codes[k], texts[i]);
        }
    }
}

/* ---- answers ---- */

static void assert_error(const char *head, const char *body, const char *code, const char *message)
{
    struct sl_http_exchange exchange;
    struct sl_refusal error;
    sl_http_exchange_init(&exchange);
    exchange.status = 400;
    sl_buffer_add_str(&exchange.head, head);
    sl_buffer_add_str(&exchange.body, body);
    sl_refusal_read(&exchange, &error);
    assert_string_equal(error.code, code);
    assert_string_equal(error.message, message);
    sl_http_exchange_clean_up(&exchange);
}

static void errors_are_read_in_every_spelling(void **state)
{
    (void)state;
    assert_error(
        "", "{\"__type\":\"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException\",\"message\":\"no\"}",
        "ResourceNotFoundException", "no");
    assert_error("", "{\"__type\":\"com.amazon.coral.validate#ValidationException\",\"Message\":\"M\"}",
                 "ValidationException", "M");
    assert_error("", " {\"code\":\"a\",\"errorMessage\":\"b\"}", "a", "b");
    assert_error("", "{\"Code\":\"C\"}", "C", "");
    assert_error("HTTP/1.1 400 x\r\nX-Amzn-ErrorType:  Foo:http://internal/ \r\n\r\n", "{\"message\":\"m\"}",
                 "Foo", "m");
    assert_error("x-amzn-query-error: Old;Sender\r\n", "{\"__type\":\"com.amazonaws.sqs#QueueDoesNotExist\"}",
                 "QueueDoesNotExist", "");
    assert_error("",
                 "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code><Message>a &amp; b "
                 "&lt;c&gt;</Message></Error>",
                 "NoSuchBucket", "a & b <c>");
    assert_error(
        "",
        "<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type><Code>NotFound</Code></Error></ErrorResponse>",
        "NotFound", "");
    assert_error("x-amzn-errortype: NotFound\r\n", "", "NotFound", "");
    assert_error("", "{\"__type\":\"x\",\"message\":\"a\\nb\\u0000\\ud800c\"}", "x",
                 "a\nb\1\xED\xA0\x80"
                 "c");
}

/* A proxy's page, another JSON: its type and length, and nothing of it. */
static void what_no_service_says_is_not_quoted(void **state)
{
    (void)state;
    static const struct {
        const char *body, *says;
    } cases[] = {
        {"", "the answer is empty"},
        {"<!DOCTYPE html><html><Error><Code>X</Code></Error>",
         "the answer is HTML of 50 bytes, not a service's error"},
        {"<Error><Code>Cut", "the answer is XML of 16 bytes, not a service's error"},
        {"<Code>X</Code>", "the answer is XML of 14 bytes, not a service's error"},
        {"<Error><Code>no code</Code></Error>", "the answer is XML of 35 bytes, not a service's error"},
        {"{\"__type\":3,\"message\":[]}", "the answer is JSON of 25 bytes, not a service's error"},
        {"{\"message\":\"Forbidden\"}", "the answer is JSON of 23 bytes, not a service's error"},
        {"{\"__type\":\"not one\"}", "the answer is JSON of 20 bytes, not a service's error"},
        {"[]", "the answer is JSON of 2 bytes, not a service's error"},
        {"line\nfeed", "the answer is text of 9 bytes, not a service's error"},
        {"{\"__type\":\"X\"} and more", "the answer is text of 23 bytes, not a service's error"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_error(*cases[i].body == '<' || *cases[i].body == '[' ? "x-amzn-errortype: X\r\n" : "",
                     cases[i].body, "Http400", cases[i].says);
}

static void codes_have_one_alphabet(void **state)
{
    (void)state;
    char text[140] = "";
    static const char *const good[] = {"A", "AWS.SimpleQueueService.NonExistentQueue", "Http400", "a.b1"};
    static const char *const bad[] = {"", "1A", ".A", "A B", "A-B", "A_B", "A/B", "A\xC3\xA9", "A\n", "<b>"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(sl_refusal_is_code(sl_span_str(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(sl_refusal_is_code(sl_span_str(bad[i])));
    memset(text, 'A', 129);
    assert_true(sl_refusal_is_code(sl_span(text, 128)));
    assert_false(sl_refusal_is_code(sl_span(text, 129)));
}

static void tags_are_found(void **state)
{
    (void)state;
    struct sl_span xml = SL_LIT("<a><bb>no</bb><b x=\"1\">one</b><b/><b >two</b><c>cut</a>");
    struct sl_span rest = xml;
    assert_span_is(sl_xml_tag(xml, "b"), "one");
    assert_span_is(sl_xml_next_tag(&rest, "b"), "one");
    assert_span_is(sl_xml_next_tag(&rest, "b"), "");
    assert_span_is(sl_xml_next_tag(&rest, "b"), "two");
    assert_null(sl_xml_next_tag(&rest, "b").ptr);
    assert_null(sl_xml_tag(xml, "c").ptr);
    assert_null(sl_xml_tag(SL_LIT("<"), "b").ptr);
    assert_null(sl_xml_tag(sl_span(NULL, 0), "b").ptr);
}

static void members_are_walked_over(void **state)
{
    (void)state;
    struct sl_span json = SL_LIT(" { \"a\" : [ 1 , {\"x\":\"]\"} , \"\\\"\" ] , \"b\\u0063\" : {} } ");
    struct sl_json_walk walk = sl_json_walk(sl_json_walk_member(json, SL_LIT("a")));
    struct sl_span value;
    static const char *const wanted[] = {"1", "{\"x\":\"]\"}", "\"\\\"\""};
    for (size_t i = 0; i < 3; i++) {
        assert_true(sl_json_walk_next(&walk, NULL, &value));
        assert_span_is(value, wanted[i]);
    }
    assert_false(sl_json_walk_next(&walk, NULL, &value));
    assert_span_is(sl_json_walk_member(json, SL_LIT("bc")), "{}");
    assert_null(sl_json_walk_member(json, SL_LIT("c")).ptr);
    assert_null(sl_json_walk_member(SL_LIT("[]"), SL_LIT("c")).ptr);
    assert_null(sl_json_walk_member(SL_LIT("[666666666666 , {} ]"), SL_LIT("c")).ptr);
    assert_null(sl_json_walk_member(sl_span(NULL, 0), SL_LIT("c")).ptr);
}

static void headers_are_found_in_any_case(void **state)
{
    (void)state;
    struct sl_http_exchange exchange;
    sl_http_exchange_init(&exchange);
    sl_buffer_add_str(&exchange.head,
                      "HTTP/1.1 200 OK\r\nDate:Fri\r\nX-Two:  a b \t\r\nempty:\r\nx-tw: no\r\n\r\n");
    assert_span_is(sl_http_header(&exchange, "date"), "Fri");
    assert_span_is(sl_http_header(&exchange, "x-two"), "a b");
    assert_span_is(sl_http_header(&exchange, "EMPTY"), "");
    assert_null(sl_http_header(&exchange, "x-t").ptr);
    sl_http_exchange_clean_up(&exchange);
}

/* For check_endpoints.sh: a line "service region fips dual" (0 or 1) is answered with our URL. */
static int say_endpoints(void)
{
    static const struct sl_service *const services[] = {
        &sl_service_dynamodb, &sl_service_streams, &sl_service_s3,      &sl_service_sqs,
        &sl_service_sns,      &sl_service_events,  &sl_service_kinesis, &sl_service_firehose,
        &sl_service_sts,      &sl_service_lambda,  &sl_service_xray};
    char id[64], region[64];
    int fips, dual;
    while (scanf("%63s %63s %d %d", id, region, &fips, &dual) == 4) {
        const char *list[] = {fips ? "AWS_USE_FIPS_ENDPOINT=true" : "X=",
                              dual ? "AWS_USE_DUALSTACK_ENDPOINT=true" : "Y=", NULL};
        const struct sl_vars vars = {.list = list};
        struct sl_error error = SL_NO_ERROR;
        struct sl_endpoint endpoint;
        size_t i = 0;
        while (i + 1 < sizeof(services) / sizeof(services[0]) && strcmp(services[i]->id, id) != 0)
            i++;
        const struct sl_endpoint_request request = {
            .service = services[i], .region = region, .label = {"", 0}, .vars = &vars};
        puts(sl_endpoint_resolve(&request, &endpoint, &error) == SL_OK ? endpoint.base : error.code);
    }
    return 0;
}

/* RFC 9562, version 4: 122 bits are random, and each of them is. */
static void identifiers_are_uuids(void **state)
{
    (void)state;
    struct sl_aws aws = {.clock = sl_clock_system()};
    struct sl_client client = {.aws = &aws};
    static const char shape[] = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
    unsigned seen[36] = {0}; /* of a digit's 16 values */
    char text[37];
    for (int k = 0; k < 400; k++) {
        sl_client_uuid(&client, text);
        assert_int_equal(strlen(text), 36);
        for (size_t i = 0; i < 36; i++) {
            const char *of = shape[i] == 'y' ? "89ab" : "0123456789abcdef", *at = strchr(of, text[i]);
            assert_true(shape[i] == 'x' || shape[i] == 'y' ? at != NULL : text[i] == shape[i]);
            seen[i] |= at ? 1u << (at - of) : 0;
        }
    }
    for (size_t i = 0; i < 36; i++)
        assert_int_equal(seen[i], shape[i] == 'x' ? 0xFFFF : shape[i] == 'y' ? 0xF : seen[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identifiers_are_uuids),
        cmocka_unit_test(good_targets_open_without_anything),
        cmocka_unit_test(bad_targets_are_refused_by_name),
        cmocka_unit_test(services_have_hosts_in_every_partition),
        cmocka_unit_test(fips_and_dual_stack_have_names_of_their_own),
        cmocka_unit_test(the_environment_may_say_otherwise),
        cmocka_unit_test(profiles_may_say_otherwise),
        cmocka_unit_test(bad_endpoints_are_refused),
        cmocka_unit_test(regions_are_told_from_other_words),
        cmocka_unit_test(codes_depend_on_service_message_and_status),
        cmocka_unit_test(items_that_can_never_be_stored_are_the_records_fault),
        cmocka_unit_test(errors_are_read_in_every_spelling),
        cmocka_unit_test(tags_are_found),
        cmocka_unit_test(members_are_walked_over),
        cmocka_unit_test(what_no_service_says_is_not_quoted),
        cmocka_unit_test(codes_have_one_alphabet),
        cmocka_unit_test(headers_are_found_in_any_case),
    };
    if (argc == 2 && strcmp(argv[1], "endpoints") == 0)
        return say_endpoints();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
