/* The real process as a drain: SQS events of letters, against a Runtime API, an SQS and a Lambda that the
 * test plays. */
#include "tests/support/runtime_api.h"
#include "tests/support/scripted_server.h"
#include "tests/support/test.h"

#include "base/json_write.h"
#include "handlers/dispatch/drain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE "arn:aws:sqs:us-east-1:123456789012:later"
#define CONFIG                                                                                               \
    "{'report_batch_item_failures':true,'on_failure':'jsonl:${DIR}/parked.jsonl','routes':["                 \
    "{'name':'say','handler':'notify','to':'jsonl:${DIR}/said.jsonl','message':'{PK}'},"                     \
    "{'name':'far','handler':'notify','to':'sqs://far','message':'{PK}'},"                                   \
    "{'name':'held','handler':'notify','to':'jsonl:${DIR}/held.jsonl','set_aside':'sqs://held',"             \
    "'paused':true}]}"

struct world {
    struct api *api;
    struct scripted_server *server;
    const char *mappings; /* Lambda's answer, with ' for "; NULL: it is refused */
    size_t asked;         /* Lambda, about mappings */
    size_t hidden;
    long long hidden_s; /* of the last */
};

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct world *w = arg;
    struct sl_span target = scripted_header(request, "x-amz-target");
    reply->status = 200;
    if (strstr(request->path, "/event-source-mappings")) {
        w->asked++;
        assert_non_null(strstr(request->path, "FunctionName=arn%3Aaws%3Alambda%3A"));
        assert_non_null(
            strstr(request->path, "EventSourceArn=arn%3Aaws%3Asqs%3Aus-east-1%3A123456789012%3Alater"));
        reply->status = w->mappings ? 200 : 403;
        reply->body = w->mappings
                          ? json_span(w->mappings)
                          : json_span("{'Type':'User','__type':'AccessDeniedException','Message':'no'}");
    } else if (sl_span_ends(target, SL_LIT("ChangeMessageVisibilityBatch"))) {
        const char *at = memmem(request->body.ptr, request->body.len, "\"VisibilityTimeout\":", 20);
        w->hidden++;
        w->hidden_s = at ? atoll(at + 20) : -1;
        reply->body = json_span("{'Successful':[{'Id':'0'}],'Failed':[]}");
    } else if (sl_span_ends(target, SL_LIT("GetQueueUrl"))) {
        reply->body =
            sl_span_str(json_printf("{'QueueUrl':'%s/123456789012/x'}", scripted_server_url(w->server)));
    } else {
        reply->status = 400;
        reply->body = json_span("{'__type':'com.amazon.coral.service#AccessDeniedException','message':'no'}");
    }
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->api = api_new();
    w->mappings =
        "{'EventSourceMappings':[{'UUID':'u-1','FunctionResponseTypes':['ReportBatchItemFailures']}]}";
    w->server = scripted_server_start(answer, w);
    api_set(w->api, json_printf("AWS_ENDPOINT_URL=%s", scripted_server_url(w->server)));
    api_set(w->api, "AWS_ACCESS_KEY_ID=AKIASLUICETESTS00000");
    api_set(w->api, "AWS_SECRET_ACCESS_KEY=sluice-tests-secret");
    api_set(w->api, "AWS_REGION=us-east-1");
    api_set(w->api, "AWS_MAX_ATTEMPTS=1");
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    api_destroy(w->api);
    scripted_server_stop(w->server);
    free(w);
    return 0;
}

/* ---- events ---- */

static char *letter(const char *route, size_t first, size_t n)
{
    struct sl_span event = api_event(first, n);
    const char *records = memchr(event.ptr, '[', event.len);
    char *text = NULL;
    assert_true(asprintf(&text,
                         "{\"sluiceSetAside\":1,\"time\":\"2026-11-20T00:00:00.000Z\",\"route\":\"%s\","
                         "\"epoch\":0,\"records\":%.*s",
                         route, (int)(event.ptr + event.len - records), records) > 0);
    return text;
}

/* Message i has the id "m-i". The bodies are freed. */
static struct sl_span event_of(const char *queue, char *const *bodies, size_t n)
{
    static struct sl_buffer b;
    if (!b.max)
        sl_buffer_init(&b, 1 << 20);
    sl_buffer_reset(&b);
    sl_buffer_add_str(&b, "{\"Records\":[");
    for (size_t i = 0; i < n; i++) {
        sl_buffer_printf(&b,
                         "%s{\"messageId\":\"m-%zu\",\"receiptHandle\":\"r-%zu\",\"eventSource\":\"aws:sqs\"",
                         i ? "," : "", i, i);
        if (queue)
            sl_json_add_member(&b, "eventSourceARN", sl_span_str(queue));
        sl_json_add_member(&b, "body", sl_span_str(bodies[i]));
        sl_buffer_add_char(&b, '}');
        free(bodies[i]);
    }
    sl_buffer_add_str(&b, "]}");
    return sl_buffer_span(&b);
}

static struct api_post deliver(struct world *w, const char *route, size_t first)
{
    return api_deliver(w->api, event_of(QUEUE, (char *[]){letter(route, first, 2)}, 1));
}

static void assert_answer(struct api_post post, const char *wanted)
{
    if (post.is_error)
        fail_msg("%s: %s", post.type, post.body);
    assert_string_equal(post.body, json(wanted));
}

/* ---- the tests ---- */

static void letters_are_applied_and_the_rest_is_named(void **state)
{
    struct world *w = *state;
    api_start(w->api, CONFIG);
    char *bodies[] = {letter("say", 1000, 2), letter("gone", 1, 1), letter("far", 1, 1),
                      strdup("{\"hello\":1}"), letter("say", 1002, 1)};
    assert_answer(api_deliver(w->api, event_of(QUEUE, bodies, 5)),
                  "{'batchItemFailures':[{'itemIdentifier':'m-1'},{'itemIdentifier':'m-2'},"
                  "{'itemIdentifier':'m-3'}]}");
    api_deliver_all(w->api, api_event(2000, 0)); /* events of the stream come to the same process */
    assert_int_equal(api_stop(w->api), 0);
    assert_string_equal(api_file(w->api, "said.jsonl"), "\"k1000\"\n\"k1001\"\n\"k1002\"\n");
    assert_int_equal(w->asked, 1);
    assert_int_equal(w->hidden, 1); /* the target is down: nobody is at fault, and it comes later */
    assert_in_range(w->hidden_s, SL_DRAIN_HIDDEN_S, SL_DRAIN_HIDDEN_S * 6 / 5);
    assert_int_equal(api_times(w->api, "err", "m-1 is not applied: OtherRoute"), 1);
    assert_int_equal(api_times(w->api, "err", "m-3 is not applied: BadLetter"), 1);
}

static void a_paused_routes_letters_are_hidden_for_an_hour(void **state)
{
    struct world *w = *state;
    api_start(w->api, CONFIG);
    assert_answer(deliver(w, "held", 1), "{'batchItemFailures':[{'itemIdentifier':'m-0'}]}");
    assert_int_equal(api_stop(w->api), 0);
    assert_int_equal(w->hidden, 1);
    assert_in_range(w->hidden_s, SL_DRAIN_PAUSED_S, SL_DRAIN_PAUSED_S * 6 / 5);
    assert_int_equal(api_times(w->api, "err", "WARN"), 0);
}

/* Without item failures an answer would delete what is not applied: nothing is, until somebody has mended it.
 */
static void a_mapping_without_item_failures_ends_the_drain(void **state)
{
    struct world *w = *state;
    static const char *const without[] = {
        "{'EventSourceMappings':[{'UUID':'u-1'}]}",
        "{'EventSourceMappings':[{'UUID':'u-1','FunctionResponseTypes':[]}]}",
        ("{'EventSourceMappings':[{'UUID':'u-2','FunctionResponseTypes':['ReportBatchItemFailures']},"
         "{'UUID':'u-1','FunctionResponseTypes':[]}]}")};
    const char *with = w->mappings;
    api_start(w->api, CONFIG);
    for (size_t i = 0; i < 3; i++) {
        w->mappings = without[i];
        struct api_post post = deliver(w, "say", 1);
        assert_true(post.is_error);
        assert_string_equal(post.type, "Function.NoItemFailures");
        assert_non_null(strstr(post.body, "the event source mapping u-1 of " QUEUE));
    }
    w->mappings = with;
    for (size_t i = 0; i < 3; i++)
        assert_answer(deliver(w, "say", 100 + 10 * i), "{'batchItemFailures':[]}");
    assert_int_equal(api_stop(w->api), 0);
    assert_int_equal(w->asked, 4); /* and not again for a day */
    assert_string_equal(api_file(w->api, "said.jsonl"),
                        "\"k100\"\n\"k101\"\n\"k110\"\n\"k111\"\n\"k120\"\n\"k121\"\n");
}

static void where_nobody_can_tell_the_configuration_counts(void **state)
{
    struct world *w = *state;
    w->mappings = NULL;
    api_start(w->api, CONFIG);
    assert_answer(deliver(w, "say", 1), "{'batchItemFailures':[]}");
    assert_answer(deliver(w, "say", 11), "{'batchItemFailures':[]}");
    assert_answer(api_deliver(w->api, event_of(NULL, (char *[]){letter("say", 21, 1)}, 1)),
                  "{'batchItemFailures':[]}");
    assert_int_equal(api_stop(w->api), 0);
    assert_int_equal(w->asked, 1);
    assert_int_equal(api_times(w->api, "err", "nobody could tell whether the mapping reports item failures"),
                     1);
}

/* The whole event is retried: nothing that is left may be deleted. */
static void without_item_failures_what_is_left_is_an_error(void **state)
{
    struct world *w = *state;
    api_start(w->api, "{'report_batch_item_failures':false,'routes':[{'name':'say','handler':'notify',"
                      "'to':'jsonl:${DIR}/said.jsonl','message':'{PK}','on_failure':'report'}]}");
    assert_answer(deliver(w, "say", 1), "{'batchItemFailures':[]}");
    char *bodies[] = {letter("say", 11, 1), letter("gone", 1, 1)};
    struct api_post post = api_deliver(w->api, event_of(QUEUE, bodies, 2));
    assert_true(post.is_error);
    assert_string_equal(post.type, "Function.LettersLeft");
    assert_non_null(strstr(post.body, "1 of 2 letters are not applied"));
    assert_int_equal(api_stop(w->api), 0);
}

static void an_event_of_something_else_is_refused(void **state)
{
    struct world *w = *state;
    static const char *const events[] = {
        "{'Records':[{'messageId':'m','eventSource':'aws:sqs','eventSourceARN':'" QUEUE "'}]}",
        "{'Records':[{'messageId':'','body':'{}','eventSourceARN':'" QUEUE "'}]}",
        "{'Records':[{'messageId':'m','body':7,'eventSourceARN':'" QUEUE "'}]}",
    };
    api_start(w->api, CONFIG);
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        struct api_post post = api_deliver(w->api, json_span(events[i]));
        assert_true(post.is_error);
        assert_string_equal(post.type, "Function.NotLetters");
    }
    assert_answer(deliver(w, "say", 1), "{'batchItemFailures':[]}");
    assert_int_equal(api_stop(w->api), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(letters_are_applied_and_the_rest_is_named),
        TEST(a_paused_routes_letters_are_hidden_for_an_hour),
        TEST(a_mapping_without_item_failures_ends_the_drain),
        TEST(where_nobody_can_tell_the_configuration_counts),
        TEST(without_item_failures_what_is_left_is_an_error),
        TEST(an_event_of_something_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
