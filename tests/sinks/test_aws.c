/* The parts of sinks/aws/ that need no server: targets, endpoints, codes, answers. */
#include "tests/support/fault.h"

#include "sinks/aws/answer.h"
#include "sinks/aws/aws.h"
#include "sinks/aws/codes.h"
#include "sinks/aws/endpoint.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- targets ---- */

static enum sl_status open_any(const char *url, struct sl_error *error)
{
    static const struct sl_vars vars = {NULL};
    struct sl_sinks sinks;
    struct sl_object_port *objects = NULL;
    struct sl_table_port *table = NULL;
    struct sl_queue_port *queue = NULL;
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &vars);
    *error = (struct sl_error){.status = SL_OK};
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
    const struct sl_vars vars = {list};
    struct sl_endpoint endpoint;
    struct sl_error error = {.status = SL_OK};
    assert_int_equal(sl_endpoint_resolve(service, region, sl_span(NULL, 0), sl_span_str(label), &vars, NULL,
                                         &endpoint, &error),
                     SL_OK);
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
    const struct sl_vars vars = {NULL};
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
        assert_int_equal(sl_endpoint_resolve(cases[i].service, "x-y-1", sl_span(NULL, 0), sl_span(NULL, 0),
                                             &vars, &profile, &endpoint, NULL),
                         SL_OK);
        assert_string_equal(endpoint.base, cases[i].base);
        assert_true(endpoint.custom);
    }
    assert_span_is(sl_endpoint_region(&vars, &profile), "eu-north-1");
    const struct sl_vars named = {(const char *const[]){"AWS_DEFAULT_REGION=b-1", "AWS_REGION=a-1", NULL}};
    assert_span_is(sl_endpoint_region(&named, &profile), "a-1");
    assert_null(sl_endpoint_region(&vars, NULL).ptr);
}

static void bad_endpoints_are_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {"localhost",  "http://",    "http:///x",  "https://:1", "ftp://x",
                                       "http://a b", "http://u@h", "http://h?q", "http://h#f"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct sl_endpoint endpoint;
        const struct sl_vars vars = {NULL};
        struct sl_error error = {.status = SL_OK};
        assert_int_equal(sl_endpoint_resolve(&sl_service_sqs, "us-east-1", sl_span_str(urls[i]),
                                             sl_span(NULL, 0), &vars, NULL, &endpoint, &error),
                         SL_FATAL);
        assert_string_equal(error.code, "InvalidEndpoint");
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
    assert_false(sl_endpoint_is_region(SL_LIT("-us")));
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
        {"SQS", "NotFound", "", 400, SL_REJECT, SL_CODE_FINAL},
        {"S3", "PreconditionFailed", "", 412, SL_REJECT, SL_CODE_FINAL},
        {"S3", "KMS.DisabledException", "", 400, SL_FATAL, SL_CODE_FINAL},
        {"SQS", "KmsInvalidState", "", 400, SL_FATAL, SL_CODE_FINAL},
        {"KINESIS", "KMSThrottlingException", "", 400, SL_RETRY, SL_CODE_THROTTLE},
        {"SQS", "KmsThrottled", "", 400, SL_RETRY, SL_CODE_THROTTLE},
        {"S3", "NotImplemented", "", 501, SL_FATAL, SL_CODE_FINAL},
        {"DYNAMODB", "Whatever", "", 599, SL_RETRY, SL_CODE_TRANSIENT},
        {"DYNAMODB", "Whatever", "", 408, SL_RETRY, SL_CODE_TRANSIENT},
        {"DYNAMODB", "Whatever", "", 429, SL_RETRY, SL_CODE_THROTTLE},
        {"DYNAMODB", "Whatever", "", 401, SL_FATAL, SL_CODE_FINAL},
        {"KINESIS", "ExpiredTokenException", "", 400, SL_FATAL, SL_CODE_EXPIRED},
        {"S3", "RequestTimeTooSkewed", "", 403, SL_FATAL, SL_CODE_SKEW},
        {"DYNAMODB", "ValidationException", "One of the required keys was not given a value", 400, SL_FATAL,
         SL_CODE_FINAL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_code code = sl_codes_find(cases[i].service, sl_span_str(cases[i].code),
                                            sl_span_str(cases[i].message), cases[i].http);
        assert_int_equal(code.status, cases[i].status);
        assert_int_equal(code.kind, cases[i].kind);
    }
}

/* ---- answers ---- */

static void assert_error(const char *head, const char *body, const char *code, const char *message)
{
    struct sl_http_exchange exchange;
    struct sl_answer_error error;
    sl_http_exchange_init(&exchange);
    exchange.status = 400;
    sl_buffer_add_str(&exchange.head, head);
    sl_buffer_add_str(&exchange.body, body);
    sl_answer_read_error(&exchange, &error);
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
    assert_error("", "", "Http400", "");
    assert_error("", "<Error><Code>Cut", "Http400", "");
    assert_error("", "{\"__type\":3,\"message\":[]}", "Http400", "");
    assert_error("", "line\nfeed", "Http400", "");
    assert_error("", "{\"__type\":\"x\",\"message\":\"a\\nb\"}", "x", "a?b"); /* one line stays one line */
}

static void tags_are_found(void **state)
{
    (void)state;
    struct sl_span xml = SL_LIT("<a><bb>no</bb><b x=\"1\">one</b><b/><b >two</b><c>cut</a>");
    struct sl_span rest = xml;
    assert_span_is(sl_answer_tag(xml, "b"), "one");
    assert_span_is(sl_answer_next_tag(&rest, "b"), "one");
    assert_span_is(sl_answer_next_tag(&rest, "b"), "");
    assert_span_is(sl_answer_next_tag(&rest, "b"), "two");
    assert_null(sl_answer_next_tag(&rest, "b").ptr);
    assert_null(sl_answer_tag(xml, "c").ptr);
    assert_null(sl_answer_tag(SL_LIT("<"), "b").ptr);
    assert_null(sl_answer_tag(sl_span(NULL, 0), "b").ptr);
}

static void members_are_walked_over(void **state)
{
    (void)state;
    struct sl_span json = SL_LIT(" { \"a\" : [ 1 , {\"x\":\"]\"} , \"\\\"\" ] , \"b\\u0063\" : {} } ");
    struct sl_answer_walk walk = sl_answer_walk(sl_answer_member(json, SL_LIT("a")));
    struct sl_span value;
    static const char *const wanted[] = {"1", "{\"x\":\"]\"}", "\"\\\"\""};
    for (size_t i = 0; i < 3; i++) {
        assert_true(sl_answer_step(&walk, NULL, &value));
        assert_span_is(value, wanted[i]);
    }
    assert_false(sl_answer_step(&walk, NULL, &value));
    assert_span_is(sl_answer_member(json, SL_LIT("bc")), "{}");
    assert_null(sl_answer_member(json, SL_LIT("c")).ptr);
    assert_null(sl_answer_member(SL_LIT("[]"), SL_LIT("c")).ptr);
    assert_null(sl_answer_member(SL_LIT("[666666666666 , {} ]"), SL_LIT("c")).ptr);
    assert_null(sl_answer_member(sl_span(NULL, 0), SL_LIT("c")).ptr);
}

static void assert_masked(const char *message, const char *body, const char *wanted)
{
    char text[SL_ANSWER_MESSAGE_BYTES];
    struct sl_span part = sl_span_str(body);
    snprintf(text, sizeof(text), "%s", message);
    sl_answer_mask(text, &part, 1);
    assert_string_equal(text, wanted);
}

static void values_are_masked_and_names_are_not(void **state)
{
    (void)state;
    const char *body = "{\"Item\":{\"PK\":{\"S\":\"customer 7781\"},\"status\":{\"S\":\"secret-thing\"}}}";
    assert_masked("bad value: secret-thing", body, "bad value: ...");
    assert_masked("bad value 'secret-thing'.", body, "bad value '...'.");
    assert_masked("of customer 7781 and secret-th", body, "of ... ... and ...");
    assert_masked("Type mismatch for key PK expected: S", body, "Type mismatch for key PK expected: S");
    assert_masked("attribute status is wrong.", body, "attribute status is wrong.");
    assert_masked("", body, "");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_targets_open_without_anything),
        cmocka_unit_test(bad_targets_are_refused_by_name),
        cmocka_unit_test(services_have_hosts_in_every_partition),
        cmocka_unit_test(the_environment_may_say_otherwise),
        cmocka_unit_test(profiles_may_say_otherwise),
        cmocka_unit_test(bad_endpoints_are_refused),
        cmocka_unit_test(regions_are_told_from_other_words),
        cmocka_unit_test(codes_depend_on_service_message_and_status),
        cmocka_unit_test(errors_are_read_in_every_spelling),
        cmocka_unit_test(tags_are_found),
        cmocka_unit_test(members_are_walked_over),
        cmocka_unit_test(values_are_masked_and_names_are_not),
        cmocka_unit_test(headers_are_found_in_any_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
