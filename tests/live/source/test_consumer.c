/* Since when a mapping has missed nothing: what Lambda answers, and what follows from it. */
#include "live/source/consumer.h"
#include "tests/support/scripted_server.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TABLE  "arn:aws:dynamodb:eu-west-1:123456789012:table/orders"
#define STREAM TABLE "/stream/2026-01-02T03:04:05.678"
#define LABEL  INT64_C(1767323045678)
#define HOUR   INT64_C(3600000)

#define MAPPING(source, members)                                                                             \
    "{'UUID':'u','StartingPosition':'TRIM_HORIZON','State':'Enabled','EventSourceArn':'" source              \
    "','MaximumRetryAttempts':-1,'MaximumRecordAgeInSeconds':-1" members "}"
#define LIST(mappings) "{'EventSourceMappings':[" mappings "]}"
#define LONG_AGO       ",'LastModified':1700000000.5"
#define OF_ORDERS      MAPPING(STREAM, LONG_AGO)
#define OF(id, modified, members)                                                                            \
    "{'UUID':" id ",'EventSourceArn':'" STREAM "','LastModified':" modified "," members "}"
#define BUT(members) OF("'u'", "1700000000", members)
#define GOOD         "'StartingPosition':'TRIM_HORIZON','State':'Enabled'"

struct answers {
    const char *first, *then; /* of the first request, of all others */
    int status;
};

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    const struct answers *a = arg;
    reply->status = a->status;
    reply->headers = "content-type: application/json\r\n";
    reply->body = json_span(request->number && a->then ? a->then : a->first);
}

static enum sl_status find(struct scripted_server *server, struct sl_consumer_options *options,
                           struct sl_consumer *out, struct sl_error *error)
{
    static const char *const list[] = {"AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s",
                                       "AWS_REGION=eu-west-1", "AWS_MAX_ATTEMPTS=2", NULL};
    static struct sl_arena *arena;
    const struct sl_vars vars = {.list = list};
    arena = arena ? arena : sl_arena_new(4096);
    options->vars = &vars;
    options->endpoint = scripted_server_url(server);
    if (!options->table_arn.ptr)
        options->table_arn = SL_LIT(TABLE);
    return sl_consumer_find(options, arena, out, error);
}

static void what_lambda_answers_decides(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        int64_t since_ms; /* 0: refused */
        const char *code, *text;
    } cases[] = {
        {LIST(OF_ORDERS), LABEL, NULL, NULL},
        /* Changed a day after the stream was enabled, and later. */
        {LIST(MAPPING(STREAM, ",'LastModified':1767409445.678")), LABEL + HOUR, NULL, NULL},
        {LIST(MAPPING(STREAM, ",'LastModified':1767404000")), LABEL, NULL, NULL},
        {LIST(MAPPING(TABLE "2/stream/2026-01-02T03:04:05.678", LONG_AGO) "," OF_ORDERS), LABEL, NULL, NULL},
        {LIST(""), 0, "NoMapping", "has no event source mapping"},
        {LIST(MAPPING(TABLE "2/stream/2026-01-02T03:04:05.678", LONG_AGO)), 0, "NoMapping", "has no"},
        {LIST(OF_ORDERS "," OF_ORDERS), 0, "NoMapping", "more than one"},
        {LIST(MAPPING(STREAM, "")), 0, "MappingUnfit", "when it was changed"},
        {LIST(MAPPING(TABLE "/stream/x", LONG_AGO)), 0, "MappingUnfit", "when it was enabled"},
        {LIST(BUT("'StartingPosition':'LATEST','State':'Enabled'")), 0, "MappingUnfit", "TRIM_HORIZON"},
        {LIST(BUT("'StartingPosition':'TRIM_HORIZON','State':'Disabled'")), 0, "MappingUnfit", "not enabled"},
        {LIST(BUT(GOOD ",'MaximumRetryAttempts':999")), 0, "MappingUnfit", "MaximumRetryAttempts"},
        {LIST(BUT(GOOD ",'MaximumRetryAttempts':1000")), LABEL, NULL, NULL},
        {LIST(BUT(GOOD ",'MaximumRecordAgeInSeconds':86399")), 0, "MappingUnfit", "MaximumRecordAge"},
        {LIST(BUT(GOOD ",'MaximumRecordAgeInSeconds':86400")), LABEL, NULL, NULL},
        {LIST(BUT(GOOD ",'FilterCriteria':{'Filters':[{'Pattern':'{}'}]}")), 0, "MappingUnfit",
         "FilterCriteria"},
        {LIST(BUT(GOOD ",'FilterCriteria':{'Filters':[]}")), LABEL, NULL, NULL},
        /* Other functions' mappings may be of any form; those of the table's streams may not. */
        {LIST("{'EventSourceArn':7}," OF_ORDERS), LABEL, NULL, NULL},
        {LIST("{}," OF_ORDERS), LABEL, NULL, NULL},
        {LIST(OF("''", "1700000000", GOOD)), 0, "BrokenAnswer", "not a mapping"},
        {LIST(BUT("'StartingPosition':'TRIM_HORIZON'")), 0, "BrokenAnswer", "not a mapping"},
        {LIST(BUT("'State':'Enabled'")), 0, "BrokenAnswer", "not a mapping"},
        {LIST(OF("'u'", "'2026'", GOOD)), 0, "BrokenAnswer", "not a mapping"},
        {LIST(BUT(GOOD ",'MaximumRetryAttempts':'5'")), 0, "BrokenAnswer", "not a mapping"},
        {LIST(BUT(GOOD ",'MaximumRetryAttempts':null")), LABEL, NULL, NULL},
        {LIST(BUT(GOOD ",'MaximumRecordAgeInSeconds':60.5")), 0, "BrokenAnswer", "not a mapping"},
        {LIST(BUT(GOOD ",'FilterCriteria':null")), LABEL, NULL, NULL},
        {LIST(BUT(GOOD ",'FilterCriteria':[]")), 0, "BrokenAnswer", "not a mapping"},
        {LIST(BUT(GOOD ",'FilterCriteria':{}")), LABEL, NULL, NULL},
        {LIST(BUT(GOOD ",'FilterCriteria':{'Filters':null}")), LABEL, NULL, NULL},
        {LIST(BUT(GOOD ",'FilterCriteria':{'Filters':{}}")), 0, "BrokenAnswer", "not a mapping"},
        {LIST(BUT("'StartingPosition':'TRIM_HORIZON','State':'a\\u0000b'")), 0, "BrokenAnswer", ""},
        {LIST(BUT(GOOD ",'State':'Disabled'")), 0, "BrokenAnswer", ""}, /* which one counts? */
        {"{}", 0, "BrokenAnswer", "no list of mappings"},
        {"{'EventSourceMappings':{}}", 0, "BrokenAnswer", "no list of mappings"},
        {"[]", 0, "BrokenAnswer", ""},
        {"", 0, "BrokenAnswer", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct answers answers = {.first = cases[i].answer, .status = 200};
        struct scripted_server *server = scripted_server_start(answer, &answers);
        struct sl_consumer_options options = {.function = "orders:live"};
        struct sl_consumer consumer = {0};
        struct sl_error error = {0};
        enum sl_status status = find(server, &options, &consumer, &error);
        if ((status == SL_OK) != !cases[i].code)
            fail_msg("%s: %d %s", cases[i].answer, (int)status, error.text);
        if (cases[i].code) {
            assert_string_equal(error.code, cases[i].code);
            if (!strstr(error.text, cases[i].text))
                fail_msg("%s: %s", cases[i].answer, error.text);
        } else {
            assert_int_equal(consumer.since_ms, cases[i].since_ms);
            assert_string_equal(consumer.mapping, "u");
        }
        const struct scripted_request *request = scripted_server_request(server, 0);
        assert_string_equal(request->method, "GET");
        assert_string_equal(request->path, "/2015-03-31/event-source-mappings/?FunctionName=orders%3Alive");
        scripted_server_stop(server);
    }
}

static void every_page_is_read(void **state)
{
    (void)state;
    struct answers answers = {
        .first = "{'EventSourceMappings':[],'NextMarker':'a b/='}", .then = LIST(OF_ORDERS), .status = 200};
    struct scripted_server *server = scripted_server_start(answer, &answers);
    struct sl_consumer_options options = {.function = "f"};
    struct sl_consumer consumer;
    struct sl_error error = {0};
    assert_int_equal(find(server, &options, &consumer, &error), SL_OK);
    assert_int_equal(scripted_server_requests(server), 2);
    assert_string_equal(scripted_server_request(server, 1)->path,
                        "/2015-03-31/event-source-mappings/?FunctionName=f&Marker=a%20b%2F%3D");
    scripted_server_stop(server);
}

static void one_mapping_is_asked_for_by_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *code;
    } cases[] = {{OF_ORDERS, NULL},
                 {MAPPING(TABLE "2/stream/2026-01-02T03:04:05.678", LONG_AGO), "NoMapping"},
                 {"{}", "NoMapping"},
                 {BUT("'State':'Enabled'"), "BrokenAnswer"}};
    for (size_t i = 0; i < 4; i++) {
        struct answers answers = {.first = cases[i].answer, .status = 200};
        struct scripted_server *server = scripted_server_start(answer, &answers);
        struct sl_consumer_options options = {.mapping = "0-1"};
        struct sl_consumer consumer;
        struct sl_error error = {0};
        assert_int_equal(find(server, &options, &consumer, &error) != SL_OK, cases[i].code != NULL);
        if (cases[i].code)
            assert_string_equal(error.code, cases[i].code);
        assert_string_equal(scripted_server_request(server, 0)->path,
                            "/2015-03-31/event-source-mappings/0-1");
        scripted_server_stop(server);
    }
}

/* Each page names a next one. */
static void pages_without_an_end_are_told(void **state)
{
    (void)state;
    struct answers answers = {.first = "{'EventSourceMappings':[" OF_ORDERS "],'NextMarker':'a'}",
                              .then = "{'EventSourceMappings':[],'NextMarker':'a'}",
                              .status = 200};
    struct scripted_server *server = scripted_server_start(answer, &answers);
    struct sl_consumer_options options = {.function = "a~Z_0"};
    struct sl_consumer consumer;
    struct sl_error error = {0};
    assert_int_equal(find(server, &options, &consumer, &error), SL_RETRY);
    assert_string_equal(error.text, "ListEventSourceMappings: its pages do not end");
    assert_non_null(strstr(scripted_server_request(server, 0)->path, "FunctionName=a~Z_0"));
    scripted_server_stop(server);
}

static void an_unknown_table_has_no_mapping(void **state)
{
    (void)state;
    const struct sl_consumer_options options = {.function = "f"};
    struct sl_consumer consumer;
    struct sl_error error = {0};
    assert_int_equal(sl_consumer_find(&options, NULL, &consumer, &error), SL_REJECT);
    assert_string_equal(error.code, "NoTableArn");
    assert_non_null(strstr(error.text, "give --consumer-since"));
}

static void a_refusal_is_told(void **state)
{
    (void)state;
    struct answers answers = {.first = "{'Type':'User','Message':'Cannot find'}", .status = 404};
    struct scripted_server *server = scripted_server_start(answer, &answers);
    struct sl_consumer_options options = {.function = "f"};
    struct sl_consumer consumer;
    struct sl_error error = {0};
    assert_true(find(server, &options, &consumer, &error) != SL_OK);
    assert_non_null(strstr(error.text, "ListEventSourceMappings"));
    scripted_server_stop(server);
}

/* ---- the file of a tail ---- */

static void a_tail_says_it_in_its_file(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{'stream':'" STREAM "','complete_since':'2026-01-02T03:04:05.678Z','shards':{}}", NULL},
        {"{'stream':'" STREAM "','shards':{}}", "does not say since when"},
        {"{'stream':'" TABLE "s/stream/2026','complete_since':'2026-01-02T03:04:05.678Z','shards':{}}",
         "give the checkpoint file of the sluice tail that consumes the stream of this table"},
        {"{'stream':'" STREAM "'}", "is not a checkpoint file"},
        {"[", "is not a checkpoint of sluice tail"},
        {NULL, "No such file"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[] = "/tmp/test_consumer.XXXXXX";
        struct sl_consumer consumer;
        struct sl_error error = {0};
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        if (cases[i].text)
            assert_int_equal(write(fd, json(cases[i].text), strlen(cases[i].text)), strlen(cases[i].text));
        else
            unlink(path);
        close(fd);
        enum sl_status status = sl_consumer_read(path, sl_span_str(TABLE), &consumer, &error);
        if (status != (cases[i].why ? SL_REJECT : SL_OK) ||
            (cases[i].why && !strstr(error.text, cases[i].why)))
            fail_msg("%s: %d %s", cases[i].text, (int)status, error.text);
        if (!cases[i].why)
            assert_int_equal(consumer.since_ms, LABEL + SL_CONSUMER_SKEW_MS);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lambda_answers_decides),
        cmocka_unit_test(every_page_is_read),
        cmocka_unit_test(one_mapping_is_asked_for_by_its_name),
        cmocka_unit_test(pages_without_an_end_are_told),
        cmocka_unit_test(an_unknown_table_has_no_mapping),
        cmocka_unit_test(a_refusal_is_told),
        cmocka_unit_test(a_tail_says_it_in_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
