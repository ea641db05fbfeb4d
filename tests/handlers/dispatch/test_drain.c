/* Events of letters: each message is one dispatch, and the answer names those that are not done. */
#include "handlers/dispatch/drain.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define MINUTE 60000
#define ASIDE  "'set_aside':'sqs:later'"
#define CONFIG                                                                                               \
    "{'on_failure':'mem:dlq','report_batch_item_failures':true,'routes':[{'name':'r1','handler':'one'"       \
    "," ASIDE "},{'name':'r2','handler':'two','set_aside':'sqs:later2'}]}"
#define QUEUE "arn:aws:sqs:us-east-1:1:later"

static struct {
    size_t n;
    int64_t seconds[64];
    char receipt[64][16];
} hidden;

static void hide(void *arg, struct sl_span queue, struct sl_span receipt, int64_t seconds,
                 const struct sl_invocation *invocation)
{
    (void)arg;
    (void)invocation;
    assert_true(sl_span_is(queue, QUEUE));
    assert_true(hidden.n < 64);
    snprintf(hidden.receipt[hidden.n], 16, "%.*s", SL_ARG(receipt));
    hidden.seconds[hidden.n++] = seconds;
}

static struct sl_drain *drain_of(struct rig *rig)
{
    memset(&hidden, 0, sizeof(hidden));
    return sl_drain_new(&(struct sl_drain_options){.pipeline = rig->p, .hide = hide});
}

/* Letters of the route, of one record each: record i. */
static char *letter(const char *route, size_t i)
{
    char *text;
    assert_true(
        asprintf(&text,
                 "{'sluiceSetAside':1,'time':'2026-09-21T14:13:20.000Z','account':'1','region':'us-east-1','"
                 "table':"
                 "'t','route':'%s','handler':'one','target':'','epoch':0,'records':[{'eventID':'e','"
                 "eventName':'MODIFY'"
                 ",'eventSource':'aws:dynamodb','dynamodb':{'ApproximateCreationDateTime':1790000000,'Keys':{"
                 "'PK':{"
                 "'S':'k'}},'NewImage':{'PK':{'S':'k'}},'SequenceNumber':'%zu','StreamViewType':'NEW_IMAGE'},"
                 "'eventSourceARN':'arn:aws:dynamodb:us-east-1:1:table/t/stream/x'}]}",
                 route, 1000 + i) > 0);
    json_quote(text);
    return text;
}

/* An event as Lambda delivers it. */
static char *event_of(const char *const *bodies, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s+,s:s+,s:s,s:{s:s},s:s,s:s}", "messageId", "m",
                                              (char[]){(char)('0' + i), 0}, "receiptHandle", "r",
                                              (char[]){(char)('0' + i), 0}, "body", bodies[i], "attributes",
                                              "ApproximateReceiveCount", "1", "eventSource", "aws:sqs",
                                              "eventSourceARN", QUEUE));
    json_t *root = json_pack("{s:o}", "Records", list);
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

static enum sl_status take(struct rig *rig, struct sl_drain *drain, const char *event, struct sl_drained *out,
                           struct sl_error *error)
{
    sl_arena_reset(rig->arena);
    sl_error_clear(error);
    rig->answer.is_ruined = false;
    rig->invocation.deadline_ms = rig->clock.ms + MINUTE;
    assert_true(sl_drain_is_event(sl_span_str(event)));
    return sl_drain_event(drain, sl_span_str(event), &rig->invocation, &rig->answer, out, error);
}

static void take_letters(struct rig *rig, struct sl_drain *drain, const char *routes, struct sl_drained *out)
{
    const char *bodies[10] = {NULL};
    size_t n = strlen(routes);
    struct sl_error error = SL_NO_ERROR;
    for (size_t i = 0; i < n; i++)
        bodies[i] = letter(routes[i] == '1' ? "r1" : routes[i] == '2' ? "r2" : "none", i);
    char *event = event_of(bodies, n);
    assert_int_equal(take(rig, drain, event, out, &error), SL_OK);
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)bodies[i]);
    free(event);
}

static void each_message_is_by_itself(void **state)
{
    (void)state;
    struct rig *rig = rig_new(CONFIG);
    struct sl_drain *drain = drain_of(rig);
    struct sl_drained out;
    rig->handlers[RIG_ONE].plan[1] = RIG_BROKEN; /* FATAL, of a code that says nothing of the target */
    take_letters(rig, drain, "1112x1", &out);
    rig_answers(rig, "{'batchItemFailures':[{'itemIdentifier':'m1'},{'itemIdentifier':'m4'}]}");
    assert_int_equal(rig->handlers[RIG_ONE].n_applied, 3);
    assert_int_equal(rig->handlers[RIG_TWO].n_applied, 1);
    assert_int_equal(out.letters, 6);
    assert_int_equal(out.done, 4);
    assert_int_equal(out.records, 4);
    assert_true(out.oldest_ms >= 0);
    assert_int_equal(hidden.n, 0); /* they are redelivered after the visibility timeout */
    rig_forget(rig);
    take_letters(rig, drain, "12", &out);
    rig_answers(rig, "{'batchItemFailures':[]}");
    sl_drain_destroy(drain);
    rig_destroy(rig);
}

/* A target that is down is asked once, and then every half minute; the other route's letters go on. */
static void a_target_that_is_down_is_probed(void **state)
{
    (void)state;
    struct rig *rig = rig_new(CONFIG);
    struct sl_drain *drain = drain_of(rig);
    struct sl_drained out;
    memset(rig->handlers[RIG_ONE].plan, RIG_BROKEN, 10);
    rig->handlers[RIG_ONE].code = "AccessDeniedException";
    take_letters(rig, drain, "112112", &out);
    rig_answers(
        rig, "{'batchItemFailures':[{'itemIdentifier':'m0'},{'itemIdentifier':'m1'},{'itemIdentifier':'m3'},{"
             "'itemIdentifier':'m4'}]}");
    assert_int_equal(rig->handlers[RIG_ONE].calls, 1);
    assert_int_equal(rig->handlers[RIG_TWO].n_applied, 2);
    assert_int_equal(hidden.n, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_in_range(hidden.seconds[i], SL_DRAIN_HIDDEN_S, SL_DRAIN_HIDDEN_S * 6 / 5);
        assert_int_equal(hidden.receipt[i][1], "0134"[i]);
    }
    rig->clock.ms += SL_DRAIN_PROBE_MS - 1;
    take_letters(rig, drain, "1", &out);
    assert_int_equal(rig->handlers[RIG_ONE].calls, 1);
    rig->clock.ms += 1;
    take_letters(rig, drain, "11", &out);
    assert_int_equal(rig->handlers[RIG_ONE].calls, 2);
    /* It is there again: all go. */
    memset(rig->handlers[RIG_ONE].plan, RIG_GOOD, 10);
    rig->clock.ms += SL_DRAIN_PROBE_MS;
    take_letters(rig, drain, "11111", &out);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_int_equal(out.done, 5);
    sl_drain_destroy(drain);
    rig_destroy(rig);
}

/* One that does not answer costs its letter's share of the time, and no more. */
static void a_target_that_hangs_leaves_time_for_others(void **state)
{
    (void)state;
    struct rig *rig = rig_new(CONFIG);
    struct sl_drain *drain = drain_of(rig);
    struct sl_drained out;
    rig->handlers[RIG_ONE].takes_ms = 10 * MINUTE;
    int64_t began = rig->clock.ms;
    take_letters(rig, drain, "111222", &out);
    assert_true(rig->clock.ms - began <= MINUTE / 6 + 1000);
    assert_int_equal(rig->handlers[RIG_TWO].n_applied, 3);
    assert_int_equal(out.done, 3);
    sl_drain_destroy(drain);
    rig_destroy(rig);
}

static void a_paused_route_hides_its_letters_for_an_hour(void **state)
{
    (void)state;
    struct rig *rig =
        rig_new("{'on_failure':'mem:dlq','report_batch_item_failures':true,'routes':[{'name':'r1','handler':"
                "'one','paused':true," ASIDE "}]}");
    struct sl_drain *drain = drain_of(rig);
    struct sl_drained out;
    take_letters(rig, drain, "11", &out);
    assert_int_equal(rig->handlers[RIG_ONE].calls, 0);
    assert_int_equal(out.done, 0);
    assert_int_equal(hidden.n, 2);
    assert_in_range(hidden.seconds[1], SL_DRAIN_PAUSED_S, SL_DRAIN_PAUSED_S * 6 / 5);
    sl_drain_destroy(drain);
    rig_destroy(rig);
}

/* Without item failures any answer deletes all messages: what is left has to be an error. */
static void without_item_failures_the_event_fails(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{'on_failure':'mem:dlq','routes':[{'name':'r1','handler':'one'," ASIDE "}]}");
    struct sl_drain *drain = drain_of(rig);
    struct sl_drained out;
    struct sl_error error = SL_NO_ERROR;
    char *one = letter("r1", 0), *other = letter("none", 1);
    char *good = event_of((const char *const[]){one, one}, 2),
         *bad = event_of((const char *const[]){one, other}, 2);
    assert_int_equal(take(rig, drain, good, &out, &error), SL_OK);
    assert_int_equal(take(rig, drain, bad, &out, &error), SL_RETRY);
    assert_string_equal(error.code, "LettersLeft");
    free(one);
    free(other);
    free(good);
    free(bad);
    sl_drain_destroy(drain);
    rig_destroy(rig);
}

static void what_is_no_event_of_letters_is_told(void **state)
{
    (void)state;
    static const char *const others[] = {
        "{'Records':[]}",
        "{'Records':[{'eventID':'e','eventName':'INSERT','dynamodb':{'Keys':{'messageId':{'S':'x'}}}}]}",
        "{'sluice':{'messageId':1}}",
        "{'messageId':1}",
        "{'Records':[{'messageId':'1'",
        "",
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(sl_drain_is_event(sl_span_str(json(others[i]))));
    struct rig *rig = rig_new(CONFIG);
    struct sl_drain *drain = drain_of(rig);
    struct sl_drained out;
    struct sl_error error = SL_NO_ERROR;
    static const char *const bad[] = {"{'Records':[{'messageId':''}]}",
                                      "{'Records':[{'messageId':1,'body':'x'}]}",
                                      "{'Records':[{'messageId':'1','body':7}]}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(take(rig, drain, json(bad[i]), &out, &error), SL_REJECT);
        assert_string_equal(error.code, "NotLetters");
    }
    /* A message that is no letter fails, and does not stop the others. */
    char *one = letter("r1", 0);
    char *mixed = event_of((const char *const[]){"hello", one, "{}", "{\"sluiceParked\":1}"}, 4);
    assert_int_equal(take(rig, drain, mixed, &out, &error), SL_OK);
    assert_int_equal(out.done, 1);
    assert_int_equal(rig->handlers[RIG_ONE].n_applied, 1);
    free(one);
    free(mixed);
    sl_drain_destroy(drain);
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_is_by_itself),
        cmocka_unit_test(a_target_that_is_down_is_probed),
        cmocka_unit_test(a_target_that_hangs_leaves_time_for_others),
        cmocka_unit_test(a_paused_route_hides_its_letters_for_an_hour),
        cmocka_unit_test(without_item_failures_the_event_fails),
        cmocka_unit_test(what_is_no_event_of_letters_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
