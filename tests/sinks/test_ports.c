/* The port suite on every side. The embedded sinks always; the services where their endpoints are in the
 * environment (check_ports.sh starts DynamoDB Local and moto, and runs this with them). */
#include "tests/support/aws_call.h"
#include "tests/support/port_suite.h"
#include "tests/support/scripted_server.h"

#include "base/base64.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "sinks/target.h"
#include "net/uri.h"
#include "aws/xml.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

#define BUCKET "sluice-port-suite"

static struct sl_sinks sinks;
static struct sl_vars vars;
static struct sl_log log_;
static char *folder;
static struct port_suite sqlite, files, lines, dynamodb, s3, sqs, fifo, sns, events, kinesis, firehose;
static struct port_suite webhook, arrays, search, scanned, scripted, texts, postgres;
static struct port_suite *const sides[] = {&sqlite, &files,  &lines,   &dynamodb, &s3,       &sqs,
                                           &fifo,   &sns,    &events,  &kinesis,  &firehose, &webhook,
                                           &arrays, &search, &scanned, &scripted, &texts, &postgres};
static struct scripted_server *receiver;
static size_t requests_read;
static const char *sqs_url, *fifo_url, *sns_url, *events_url;
static char iterator[2000];
static long lines_read;

static void open_side(struct port_suite *suite, const char *name, const char *url)
{
    struct sl_error error = SL_NO_ERROR;
    suite->name = name;
    suite->call = (struct sl_call){sl_arena_new(64 * 1024), INT64_MAX};
    struct sl_span target = sl_span_str(url);
    enum sl_status status = SL_OK;
    switch (sl_target_kind(target)) {
    case SL_PORT_OBJECTS:
        status = sl_target_objects(&sinks, target, &suite->objects, &error);
        break;
    case SL_PORT_TABLE:
        status = sl_target_table(&sinks, target, &suite->table, &error);
        break;
    default:
        status = sl_target_queue(&sinks, target, &suite->queue, &error);
    }
    if (status != SL_OK)
        sl_die("%s: %s", url, error.text);
}

static void close_side(struct port_suite *suite)
{
    if (suite->objects)
        suite->objects->close(suite->objects);
    if (suite->table)
        suite->table->close(suite->table);
    if (suite->queue)
        suite->queue->close(suite->queue);
    sl_arena_destroy(suite->call.arena);
}

/* ---- reading back ---- */

static char *read_file(struct port_suite *suite, const char *key, size_t *len)
{
    return test_read(sl_arena_printf(suite->call.arena, "%s/objects/pre/fix/%s", folder, key), len);
}

static char *read_s3(struct port_suite *suite, const char *key, size_t *len)
{
    struct sl_buffer path;
    sl_buffer_init(&path, 8192);
    sl_buffer_add_str(&path, "/" BUCKET "/pre/fix/");
    sl_uri_encode(&path, sl_span_str(key), '/');
    sl_buffer_add_char(&path, '\0');
    const char *bytes = aws_s3(&sinks, suite->call.arena, "GET", path.ptr, len);
    sl_buffer_clean_up(&path);
    char *copy = bytes ? malloc(*len + 1) : NULL;
    if (copy)
        memcpy(copy, bytes, *len + 1);
    return copy;
}

static size_t read_lines(struct port_suite *suite, struct sl_span *out, size_t room)
{
    size_t len = 0, n = 0;
    char *text = test_read(sl_arena_printf(suite->call.arena, "%s/lines.jsonl", folder), &len);
    struct sl_span rest = text ? sl_span(text, len) : sl_span("", 0);
    rest = sl_span(sl_arena_copy(suite->call.arena, rest), rest.len);
    rest = sl_span_from(rest, (size_t)lines_read);
    lines_read = (long)len;
    while (rest.len && n < room) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t line = end ? (size_t)(end - rest.ptr) : rest.len;
        out[n++] = sl_span(rest.ptr, line);
        rest = sl_span_from(rest, line + 1);
    }
    free(text);
    return n;
}

static void take_post(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    reply->status = strcmp(request->method, "POST") == 0 ? 204 : 405;
}

static size_t read_posts(struct port_suite *suite, struct sl_span *out, size_t room)
{
    size_t n = 0;
    (void)suite;
    for (size_t all = scripted_server_requests(receiver); requests_read < all && n < room; n++)
        out[n] = scripted_server_request(receiver, requests_read++)->body;
    return n;
}

/* The members of each array. The suite's bodies have no brackets of their own. */
static size_t read_arrays(struct port_suite *suite, struct sl_span *out, size_t room)
{
    struct sl_span posts[200];
    size_t n = 0, arrays_read = read_posts(suite, posts, sizeof(posts) / sizeof(posts[0]));
    for (size_t i = 0; i < arrays_read; i++) {
        struct sl_json_walk walk = sl_json_walk(posts[i]);
        struct sl_span member;
        while (n < room && sl_json_walk_next(&walk, NULL, &member))
            out[n++] = member;
    }
    return n;
}

static void open_webhooks(void)
{
    char url[200];
    receiver = scripted_server_start(take_post, NULL);
    snprintf(url, sizeof(url), "%s/hook", scripted_server_url(receiver));
    open_side(&webhook, "webhook", url);
    webhook.read_bodies = read_posts;
    snprintf(url, sizeof(url), "%s/hook#batch=7&max_bytes=1024", scripted_server_url(receiver));
    open_side(&arrays, "webhook array", url);
    arrays.read_bodies = read_arrays;
}

static size_t receive(struct port_suite *suite, const char *url, struct sl_span *out, size_t room)
{
    struct sl_arena *arena = suite->call.arena;
    const char *ask = sl_arena_printf(arena, "{'QueueUrl':'%s','MaxNumberOfMessages':10}", url);
    size_t n = 0;
    for (;;) {
        struct sl_span answer = aws_call(&sinks, arena, &sl_service_sqs, "ReceiveMessage", ask);
        json_t *root = json_loadb(answer.ptr, answer.len, 0, NULL);
        json_t *list = json_object_get(root, "Messages"), *message;
        size_t i, found = json_array_size(list);
        json_array_foreach(list, i, message)
        {
            const char *handle = json_string_value(json_object_get(message, "ReceiptHandle"));
            json_t *body = json_object_get(message, "Body");
            if (n < room)
                out[n++] =
                    sl_span(sl_arena_copy(arena, sl_span(json_string_value(body), json_string_length(body))),
                            json_string_length(body));
            aws_call(&sinks, arena, &sl_service_sqs, "DeleteMessage",
                     sl_arena_printf(arena, "{'QueueUrl':'%s','ReceiptHandle':'%s'}", url, handle));
        }
        json_decref(root);
        if (!found)
            return n;
    }
}

static size_t receive_plain(struct port_suite *suite, struct sl_span *out, size_t room)
{
    return receive(suite, sqs_url, out, room);
}

static size_t receive_fifo(struct port_suite *suite, struct sl_span *out, size_t room)
{
    return receive(suite, fifo_url, out, room);
}

static size_t receive_published(struct port_suite *suite, struct sl_span *out, size_t room)
{
    return receive(suite, sns_url, out, room);
}

/* What EventBridge delivers is an envelope around the detail. */
static size_t receive_events(struct port_suite *suite, struct sl_span *out, size_t room)
{
    size_t n = receive(suite, events_url, out, room);
    for (size_t i = 0; i < n; i++) {
        json_t *envelope = json_loadb(out[i].ptr, out[i].len, 0, NULL);
        char *detail = json_dumps(json_object_get(envelope, "detail"), JSON_COMPACT);
        assert_non_null(detail);
        out[i] = sl_span_str(sl_arena_copy(suite->call.arena, sl_span_str(detail)));
        free(detail);
        json_decref(envelope);
    }
    return n;
}

static struct sl_span decoded(struct port_suite *suite, const char *base64)
{
    struct sl_span text = sl_span_str(base64);
    unsigned char *bytes = sl_arena_alloc(suite->call.arena, text.len + 1);
    assert_true(sl_base64_decode(text, bytes));
    return sl_span((const char *)bytes, sl_base64_decoded_bytes(text));
}

static size_t get_records(struct port_suite *suite, struct sl_span *out, size_t room)
{
    struct sl_buffer ask;
    sl_buffer_init(&ask, 8192);
    sl_buffer_add_char(&ask, '{');
    sl_json_add_member(&ask, "ShardIterator", sl_span_str(iterator)); /* moto's holds line feeds */
    sl_buffer_add(&ask, "}", 2);
    struct sl_span answer = aws_call(&sinks, suite->call.arena, &sl_service_kinesis, "GetRecords", ask.ptr);
    sl_buffer_clean_up(&ask);
    json_t *root = json_loadb(answer.ptr, answer.len, 0, NULL), *record;
    size_t i, n = 0;
    json_array_foreach(json_object_get(root, "Records"), i, record) if (n < room) out[n++] =
        decoded(suite, json_string_value(json_object_get(record, "Data")));
    snprintf(iterator, sizeof(iterator), "%s", json_string_value(json_object_get(root, "NextShardIterator")));
    json_decref(root);
    return n;
}

/* Firehose writes objects, of lines here; what was read is removed. */
static size_t read_delivered(struct port_suite *suite, struct sl_span *out, size_t room)
{
    struct sl_arena *arena = suite->call.arena;
    const char *list = aws_s3(&sinks, arena, "GET", "/" BUCKET "-firehose?list-type=2", NULL);
    struct sl_span rest = sl_span_str(list), key;
    size_t n = 0;
    while ((key = sl_xml_next_tag(&rest, "Key")).ptr) {
        size_t len = 0;
        const char *path = sl_arena_printf(arena, "/" BUCKET "-firehose/%.*s", SL_ARG(key));
        const char *bytes = aws_s3(&sinks, arena, "GET", path, &len);
        struct sl_span lines_left = sl_span(bytes, len);
        while (lines_left.len && n < room) {
            const char *end = memchr(lines_left.ptr, '\n', lines_left.len);
            assert_non_null(end);
            out[n++] = sl_span(lines_left.ptr, (size_t)(end - lines_left.ptr));
            lines_left = sl_span_from(lines_left, out[n - 1].len + 1);
        }
        aws_s3(&sinks, arena, "DELETE", path, NULL);
    }
    return n;
}

/* ---- sides ---- */

static void open_embedded(void)
{
    char url[512];
    snprintf(url, sizeof(url), "sqlite:%s/local.db?table=ports", folder);
    open_side(&sqlite, "sqlite", url);
    sqlite.side_table = "side";
    sqlite.number_table = "numbers";
    sqlite.has_keys = true;
    snprintf(url, sizeof(url), "file:%s/objects/pre/fix", folder);
    open_side(&files, "file", url);
    files.read_object = read_file;
    snprintf(url, sizeof(url), "jsonl:%s/lines.jsonl", folder);
    open_side(&lines, "jsonl", url);
    lines.read_bodies = read_lines;
}

static void make_table(const char *name, const char *type, bool sorted)
{
    const char *body = sl_arena_printf(
        dynamodb.call.arena,
        "{'TableName':'%s','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[{'AttributeName':'PK',"
        "'AttributeType':'%s'}%s],'KeySchema':[{'AttributeName':'PK','KeyType':'HASH'}%s]}",
        name, type, sorted ? ",{'AttributeName':'SK','AttributeType':'S'}" : "",
        sorted ? ",{'AttributeName':'SK','KeyType':'RANGE'}" : "");
    aws_call(&sinks, dynamodb.call.arena, &sl_service_dynamodb, "CreateTable", body);
}

static void open_dynamodb(void)
{
    open_side(&dynamodb, "dynamodb", "dynamodb://sluice.port-suite");
    dynamodb.side_table = "sluice.side";
    dynamodb.number_table = "sluice.numbers";
    dynamodb.has_keys = true;
    make_table("sluice.port-suite", "S", true);
    make_table("sluice.side", "S", false);
    make_table("sluice.numbers", "N", false);
}

static const char *make_queue(const char *body)
{
    struct sl_span answer = aws_call(&sinks, sqs.call.arena, &sl_service_sqs, "CreateQueue", body);
    json_t *root = json_loadb(answer.ptr, answer.len, 0, NULL);
    char *url = strdup(json_string_value(json_object_get(root, "QueueUrl")));
    json_decref(root);
    return url;
}

static void open_moto(void)
{
    char url[600];
    open_side(&s3, "s3", "s3://" BUCKET "/pre/fix");
    s3.read_object = read_s3;
    aws_s3(&sinks, s3.call.arena, "PUT", "/" BUCKET, NULL);
    open_side(&sqs, "sqs", "sqs://sluice-ports"); /* its URL is asked for */
    sqs.read_bodies = receive_plain;
    sqs_url = make_queue("{'QueueName':'sluice-ports'}");
    fifo_url = make_queue("{'QueueName':'sluice-ports.fifo','Attributes':{'FifoQueue':'true'}}");
    snprintf(url, sizeof(url), "sqs://%s", fifo_url);
    open_side(&fifo, "sqs fifo", url);
    fifo.read_bodies = receive_fifo;
}

static const char *text_of(const char *answer, const char *name)
{
    json_t *root = json_loads(answer, 0, NULL);
    char *text = strdup(json_string_value(json_object_get(root, name)));
    json_decref(root);
    return text;
}

static void open_sns(void)
{
    const char *arn = "arn:aws:sns:us-east-1:123456789012:sluice-ports";
    char url[200];
    snprintf(url, sizeof(url), "sns:%s", arn);
    open_side(&sns, "sns", url);
    sns.read_bodies = receive_published;
    sns_url = make_queue("{'QueueName':'sluice-sns'}");
    aws_call(&sinks, sns.call.arena, &sl_service_sns, "CreateTopic",
             "Action=CreateTopic&Version=2010-03-31&Name=sluice-ports");
    aws_call(&sinks, sns.call.arena, &sl_service_sns, "Subscribe",
             sl_arena_printf(
                 sns.call.arena,
                 "Action=Subscribe&Version=2010-03-31&TopicArn=%s&Protocol=sqs&Endpoint="
                 "arn:aws:sqs:us-east-1:123456789012:sluice-sns&Attributes.entry.1.key=RawMessageDelivery&"
                 "Attributes.entry.1.value=true",
                 arn));
}

static void open_events(void)
{
    open_side(&events, "events", "events://sluice-bus?source=sluice.tests");
    events.read_bodies = receive_events;
    struct sl_arena *arena = events.call.arena;
    events_url = make_queue("{'QueueName':'sluice-events'}");
    aws_call(&sinks, arena, &sl_service_events, "CreateEventBus", "{'Name':'sluice-bus'}");
    aws_call(&sinks, arena, &sl_service_events, "PutRule",
             "{'Name':'all','EventBusName':'sluice-bus',"
             "'EventPattern':'{\\\"source\\\":[\\\"sluice.tests\\\"]}'}");
    aws_call(&sinks, arena, &sl_service_events, "PutTargets",
             "{'Rule':'all','EventBusName':'sluice-bus','Targets':[{'Id':'1',"
             "'Arn':'arn:aws:sqs:us-east-1:123456789012:sluice-events'}]}");
}

static void open_kinesis(void)
{
    open_side(&kinesis, "kinesis", "kinesis://sluice-stream");
    kinesis.read_bodies = get_records;
    struct sl_arena *arena = kinesis.call.arena;
    aws_call(&sinks, arena, &sl_service_kinesis, "CreateStream",
             "{'StreamName':'sluice-stream','ShardCount':1}");
    struct sl_span answer = aws_call(
        &sinks, arena, &sl_service_kinesis, "GetShardIterator",
        "{'StreamName':'sluice-stream','ShardId':'shardId-000000000000','ShardIteratorType':'TRIM_HORIZON'}");
    const char *first = text_of(answer.ptr, "ShardIterator");
    snprintf(iterator, sizeof(iterator), "%s", first);
    free((char *)(uintptr_t)first);
}

static void open_firehose(void)
{
    open_side(&firehose, "firehose", "firehose://sluice-delivery");
    firehose.read_bodies = read_delivered;
    aws_s3(&sinks, firehose.call.arena, "PUT", "/" BUCKET "-firehose", NULL);
    aws_call(&sinks, firehose.call.arena, &sl_service_firehose, "CreateDeliveryStream",
             "{'DeliveryStreamName':'sluice-delivery',"
             "'S3DestinationConfiguration':{'BucketARN':'arn:aws:s3:::" BUCKET
             "-firehose','RoleARN':'arn:aws:iam::123456789012:role/r'}}");
}

/* An index of its own for each; check_ports.sh has made them. */
static void open_search(void)
{
    const char *host = strstr(sl_vars_get(&vars, "OPENSEARCH_ENDPOINT"), "://") + 3;
    static const struct {
        struct port_suite *suite;
        const char *name, *index;
    } indexes[] = {
        {&search, "opensearch", "ports?tls=off"},
        {&scanned, "opensearch scanned", "ports-scanned?tls=off"},
        {&scripted, "opensearch scripted", "ports-scripted?tls=off&order=script"},
        {&texts, "opensearch texts", "ports-texts?tls=off&numbers=text"},
    };
    for (size_t i = 0; i < sizeof(indexes) / sizeof(indexes[0]); i++) {
        char url[300];
        snprintf(url, sizeof(url), "opensearch://%s/%s", host, indexes[i].index);
        open_side(indexes[i].suite, indexes[i].name, url);
    }
}

/* check_postgres.py has made its tables. */
static void open_postgres(void)
{
    char url[300];
    snprintf(url, sizeof(url), "postgres://%s/ports?table=ports&user=sluice&columns=unused:text",
             sl_vars_get(&vars, "POSTGRES_ENDPOINT"));
    open_side(&postgres, "postgres", url);
    postgres.side_table = "side";
    postgres.number_table = "numbers";
    postgres.has_keys = true;
    postgres.lacks_nul = true;
}

static size_t add_cases(struct CMUnitTest *tests, size_t n, struct port_suite *suite,
                        const struct port_case *cases)
{
    for (; cases->name; cases++)
        tests[n++] = port_suite_test(suite, cases);
    return n;
}

int main(void)
{
    struct CMUnitTest tests[300];
    size_t n = 0;
    vars.list = (const char *const *)environ;
    folder = test_folder_in_memory();
    sl_log_init(&log_, STDERR_FILENO, SL_TRACE, SL_LOG_TEXT, sl_clock_system());
    sl_sinks_init(&sinks, sl_clock_system(), &log_, &vars);
    open_embedded();
    open_webhooks();
    n = add_cases(tests, n, &sqlite, port_table_cases);
    n = add_cases(tests, n, &sqlite, port_value_cases);
    n = add_cases(tests, n, &sqlite, port_scan_cases);
    n = add_cases(tests, n, &sqlite, port_batch_cases);
    n = add_cases(tests, n, &files, port_object_cases);
    n = add_cases(tests, n, &files, port_read_cases);
    n = add_cases(tests, n, &files, port_object_batch_cases);
    n = add_cases(tests, n, &lines, port_queue_cases);
    n = add_cases(tests, n, &webhook, port_queue_cases);
    n = add_cases(tests, n, &arrays, port_queue_cases);
    if (sl_vars_get(&vars, "DYNAMODB_ENDPOINT")) {
        open_dynamodb();
        n = add_cases(tests, n, &dynamodb, port_table_cases);
        n = add_cases(tests, n, &dynamodb, port_value_cases);
        n = add_cases(tests, n, &dynamodb, port_scan_cases);
        n = add_cases(tests, n, &dynamodb, port_batch_cases);
    }
    if (sl_vars_get(&vars, "OPENSEARCH_ENDPOINT")) {
        open_search();
        n = add_cases(tests, n, &search, port_table_cases);
        n = add_cases(tests, n, &search, port_value_cases);
        n = add_cases(tests, n, &search, port_batch_cases);
        n = add_cases(tests, n, &scanned, port_scan_cases);
        n = add_cases(tests, n, &scripted, port_table_cases);
        n = add_cases(tests, n, &texts, port_table_cases);
    }
    if (sl_vars_get(&vars, "POSTGRES_ENDPOINT")) {
        open_postgres();
        n = add_cases(tests, n, &postgres, port_table_cases);
        n = add_cases(tests, n, &postgres, port_value_cases);
        n = add_cases(tests, n, &postgres, port_scan_cases);
        n = add_cases(tests, n, &postgres, port_batch_cases);
    }
    if (sl_vars_get(&vars, "MOTO_ENDPOINT")) {
        open_moto();
        n = add_cases(tests, n, &s3, port_object_cases);
        n = add_cases(tests, n, &s3, port_read_cases);
        n = add_cases(tests, n, &sqs, port_queue_cases);
        n = add_cases(tests, n, &fifo, port_queue_cases);
        open_sns();
        open_events();
        open_kinesis();
        open_firehose();
        for (size_t i = 7; sides[i] != &webhook; i++)
            n = add_cases(tests, n, sides[i], port_queue_cases);
    }
    int failed = _cmocka_run_group_tests("ports", tests, n, NULL, NULL);
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++)
        close_side(sides[i]);
    const char *const urls[] = {sqs_url, fifo_url, sns_url, events_url};
    for (size_t i = 0; i < 4; i++)
        free((char *)(uintptr_t)urls[i]);
    sl_sinks_clean_up(&sinks);
    sl_log_clean_up(&log_);
    scripted_server_stop(receiver);
    test_folder_remove(folder);
    return failed;
}
