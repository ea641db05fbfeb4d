/* What `sluice` reads of DynamoDB Streams and of Lambda, in front of a server that lies: no answer is
 * believed that is not whole and of its operation's shape, and when the server turns honest the same reading
 * succeeds. (SQS and S3: tests/sinks/test_inbox.c, test_lies.c.) */
#include "aws/secrets.h"
#include "aws/sources.h"
#include "live/source/consumer.h"
#include "live/source/live.h"
#include "tests/support/mutate.h"
#include "tests/support/operations.h"
#include "tests/support/scripted_server.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define TABLE  "arn:aws:dynamodb:eu-west-1:123456789012:table/orders"
#define STREAM TABLE "/stream/2026-01-02T03:04:05.678"

static struct server {
    const char *truth;
    struct scripted_reply lie;
    bool is_honest;
} the;

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)request;
    *reply = the.is_honest ? (struct scripted_reply){.status = 200, .body = json_span(the.truth)} : the.lie;
}

/* ---- the operations ---- */

struct reading {
    struct sl_arena *arena;
    struct sl_live *live;
    const char *url;
    const char *const *vars;
};

static enum sl_status describe_table(struct reading *r, struct sl_error *error)
{
    const char *arn = NULL;
    enum sl_status status = sl_live_find_stream(r->live, "orders", r->arena, &arn, error);
    if (status == SL_OK)
        assert_string_equal(arn, STREAM);
    return status;
}

static enum sl_status describe_stream(struct reading *r, struct sl_error *error)
{
    struct sl_live_shards shards = {0};
    enum sl_status status = sl_live_list_shards(r->live, STREAM, r->arena, &shards, error);
    for (size_t i = 0; status == SL_OK && i < shards.n; i++)
        assert_true(shards.list[i].id[0]);
    return status;
}

static enum sl_status get_iterator(struct reading *r, struct sl_error *error)
{
    const char *iterator = NULL;
    const struct sl_live_position at = {STREAM, "shard", "TRIM_HORIZON", NULL};
    enum sl_status status = sl_live_get_iterator(r->live, &at, r->arena, &iterator, error);
    if (status == SL_OK)
        assert_true(iterator && iterator[0]);
    return status;
}

static enum sl_status get_records(struct reading *r, struct sl_error *error)
{
    struct sl_live_page page;
    return sl_live_get_records(r->live, "iterator", r->arena, &page, error);
}

static enum sl_status find_mapping(struct reading *r, bool by_name, struct sl_error *error)
{
    const struct sl_vars vars = {.list = r->vars};
    const struct sl_consumer_options options = {.vars = &vars,
                                                .function = by_name ? NULL : "f",
                                                .mapping = by_name ? "u" : NULL,
                                                .endpoint = r->url,
                                                .table_arn = SL_LIT(TABLE)};
    struct sl_consumer consumer;
    return sl_consumer_find(&options, r->arena, &consumer, error);
}

static enum sl_status list_mappings(struct reading *r, struct sl_error *error)
{
    return find_mapping(r, false, error);
}

static enum sl_status get_mapping(struct reading *r, struct sl_error *error)
{
    return find_mapping(r, true, error);
}

static enum sl_status read_secret(const struct reading *r, const char *reference, struct sl_error *error)
{
    const char *list[8] = {sl_arena_printf(r->arena, "AWS_ENDPOINT_URL=%s", r->url)};
    for (size_t i = 0; r->vars[i]; i++)
        list[i + 1] = r->vars[i];
    const struct sl_vars vars = {.list = list};
    struct sl_aws *aws = sl_aws_new(sl_clock_system(), NULL, &vars, sl_sources_find);
    const char *value = NULL;
    enum sl_status status = sl_secret_read(aws, sl_span_str(reference), &value, error);
    if (status == SL_OK)
        assert_string_equal(value, "the key");
    sl_aws_destroy(aws);
    return status;
}

static enum sl_status get_secret(struct reading *r, struct sl_error *error)
{
    return read_secret(r, "secretsmanager:orders/hook", error);
}

static enum sl_status get_parameter(struct reading *r, struct sl_error *error)
{
    return read_secret(r, "ssm:/orders/url", error);
}

#define MAPPING                                                                                              \
    "{'UUID':'u','StartingPosition':'TRIM_HORIZON','State':'Enabled','EventSourceArn':'" STREAM              \
    "','MaximumRetryAttempts':-1,'MaximumRecordAgeInSeconds':-1,'LastModified':1700000000.5}"

static const struct operation {
    const char *name, *truth;
    enum sl_status (*run)(struct reading *r, struct sl_error *error);
    /* Paths of which nothing is believed, so that they may be anything. Ends with NULL. */
    const char *idle[6];
} operations[] = {
    {"DescribeTable",
     "{'Table':{'TableName':'orders','LatestStreamArn':'" STREAM "'}}",
     describe_table,
     {"/Table/TableName", NULL}},
    {"DescribeStream",
     "{'StreamDescription':{'StreamArn':'" STREAM
     "','Shards':[{'ShardId':'shard-1','SequenceNumberRange':{'StartingSequenceNumber':'1',"
     "'EndingSequenceNumber':'9'}},{'ShardId':'shard-2','ParentShardId':'shard-1',"
     "'SequenceNumberRange':{'StartingSequenceNumber':'10'}}]}}",
     describe_stream,
     {"/StreamDescription/StreamArn", "StartingSequenceNumber", NULL}},
    {"GetShardIterator", "{'ShardIterator':'abc'}", get_iterator, {NULL}},
    {"GetRecords", "{'Records':[],'NextShardIterator':'abc'}", get_records, {NULL}},
    {"ListEventSourceMappings", "{'EventSourceMappings':[" MAPPING "]}", list_mappings, {NULL}},
    {"GetEventSourceMapping", MAPPING, get_mapping, {NULL}},
    {"GetSecretValue", "{'Name':'orders/hook','SecretString':'the key'}", get_secret, {NULL}},
    {"GetParameter", "{'Parameter':{'Name':'/orders/url','Value':'the key'}}", get_parameter, {NULL}},
};
#define N_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* ---- one lie ---- */

static size_t lies;

static void must(const struct operation *o, struct reading *r, bool succeeds, const char *what)
{
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = o->run(r, &error);
    if ((status == SL_OK) != succeeds)
        fail_msg("%s: status %d (%s) after %.300s", o->name, (int)status, error.text, what);
    if (!succeeds)
        assert_true(error.text[0] && !strchr(error.text, '\n'));
    sl_arena_reset(r->arena);
}

static void try_lie(const struct operation *o, struct reading *r, struct scripted_reply lie)
{
    lies++;
    the.lie = lie;
    the.is_honest = false;
    must(o, r, false, lie.body.len ? lie.body.ptr : "an empty body");
    the.is_honest = true;
    must(o, r, true, "an honest answer");
}

static void tell_wrong_texts(const struct operation *o, struct reading *r)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "[]",
                                        "5",
                                        "null",
                                        "\"x\"",
                                        "{",
                                        "{}",
                                        "{}{}",
                                        "\xff{}",
                                        "<html><body>Sign in</body></html>",
                                        "{\"__type\":\"com.amazon.coral.service#InternalFailure\"}",
                                        "{\"message\":\"Rate exceeded\"}",
                                        "{\"Table\":5}",
                                        "{\"StreamDescription\":{}}",
                                        "{\"StreamDescription\":{\"Shards\":{}}}",
                                        "{\"Records\":{}}",
                                        "{\"Records\":[5]}",
                                        "{\"ShardIterator\":\"\"}",
                                        "{\"ShardIterator\":5}",
                                        "{\"EventSourceMappings\":{}}"};
    static const int statuses[] = {201, 202, 204, 206, 301, 400, 403, 404, 429, 500, 503};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        try_lie(o, r, (struct scripted_reply){.status = 200, .body = sl_span_str(texts[i])});
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        try_lie(o, r,
                (struct scripted_reply){.status = statuses[i],
                                        .body = statuses[i] == 204 ? (struct sl_span){NULL, 0}
                                                                   : json_span(o->truth)});
    struct sl_span whole = json_span(o->truth);
    char *kept = strndup(whole.ptr, whole.len);
    for (size_t i = 1; i < whole.len; i += 5)
        try_lie(o, r, (struct scripted_reply){.status = 200, .body = {kept, i}});
    free(kept);
}

static bool is_idle(const struct operation *o, const struct json_mutation *m)
{
    for (size_t i = 0; i < 6 && o->idle[i]; i++)
        if (strstr(m->path, o->idle[i]))
            return true;
    return false;
}

/* Of another type: no value of the answer has it. */
static void tell_wrong_types(const struct operation *o, struct reading *r)
{
    json_t *truth = json_loads(json(o->truth), 0, NULL);
    json_t *const with[] = {json_true(), json_pack("[[]]"), json_pack("[i]", 0)};
    int nodes = json_count(truth);
    for (int node = 0; node < nodes; node++)
        for (size_t i = 0; i < 3; i++) {
            struct json_mutation m = {.node = node, .change = JSON_REPLACED, .with = with[i]};
            json_t *told = json_mutate(truth, &m);
            char *text = json_dumps(told, JSON_COMPACT | JSON_ENCODE_ANY);
            if (!is_idle(o, &m))
                try_lie(o, r, (struct scripted_reply){.status = 200, .body = sl_span_str(text)});
            free(text);
            json_decref(told);
        }
    for (size_t i = 0; i < 3; i++)
        json_decref(with[i]);
    json_decref(truth);
}

/* ---- the tests ---- */

static void no_lie_is_believed(void **state)
{
    (void)state;
    static const char *const list[] = {"AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s",
                                       "AWS_REGION=eu-west-1", "AWS_MAX_ATTEMPTS=1", NULL};
    struct scripted_server *server = scripted_server_start(answer, NULL);
    const struct sl_vars vars = {.list = list};
    const struct sl_live_options options = {.vars = &vars, .endpoint = scripted_server_url(server)};
    struct reading r = {.arena = sl_arena_new(64 * 1024), .url = options.endpoint, .vars = list};
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_live_open(&options, &r.live, &error), SL_OK);
    for (size_t i = 0; i < N_OPERATIONS; i++) {
        the.truth = operations[i].truth;
        the.is_honest = true;
        lies = 0;
        must(&operations[i], &r, true, "an honest answer");
        tell_wrong_texts(&operations[i], &r);
        tell_wrong_types(&operations[i], &r);
        print_message("%s: %zu lies\n", operations[i].name, lies);
    }
    sl_live_close(r.live);
    sl_arena_destroy(r.arena);
    scripted_server_stop(server);
}

static void every_operation_is_in_the_table(void **state)
{
    (void)state;
    static const char *names[N_OPERATIONS + 1];
    for (size_t i = 0; i < N_OPERATIONS; i++)
        names[i] = operations[i].name;
    operations_are_known("live/source", names);
    operations_are_known("cli/redrive", names);
    operations_are_known("aws/secrets.c", names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_lie_is_believed),
        cmocka_unit_test(every_operation_is_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
