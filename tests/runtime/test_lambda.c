/* The runtime as a library: the loop of a function in C, in a process of its own. */
#include "tests/support/runtime_api.h"
#include "tests/support/test.h"

#include "runtime/api/client.h"
#include "runtime/lambda/lambda.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Whoever sleeps says for how long, and does not. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    dprintf(1, "slept %ld.%09ld\n", (long)time->tv_sec, time->tv_nsec);
    return 0;
}

static int set_up(void **state)
{
    *state = api_new();
    return 0;
}

static int tear_down(void **state)
{
    api_destroy(*state);
    return 0;
}

/* ---- the function ---- */

static void answer_about(const struct sl_lambda_event *e, struct sl_lambda_answer *answer, const char *arg)
{
    char text[2000];
    const char *trace = getenv("_X_AMZN_TRACE_ID");
    int n = snprintf(text, sizeof(text), "%zu %d|%s|%s|%s|%s|%s|%s|%s|%s|%" PRId64 "|%s", e->payload_bytes,
                     e->payload[e->payload_bytes], e->request_id, e->function_arn, e->trace_id,
                     e->client_context, e->cognito_identity, e->tenant_id, e->content_type,
                     trace ? trace : "-", e->deadline_epoch_ms, arg);
    sl_lambda_succeed(answer, text, (size_t)n, "text/plain");
}

static bool is_asked(const struct sl_lambda_event *e, const char *what)
{
    return strcmp(e->payload, what) == 0;
}

static void handle(const struct sl_lambda_event *e, struct sl_lambda_answer *answer, void *arg)
{
    static char large[SL_RUNTIME_PAYLOAD_BYTES + 2];
    memset(large, 'x', sizeof(large));
    if (is_asked(e, "about"))
        answer_about(e, answer, arg);
    else if (is_asked(e, "fail"))
        sl_lambda_fail(answer, "Function.Asked", "as \"asked\"");
    else if (is_asked(e, "fail mutely"))
        sl_lambda_fail(answer, NULL, NULL);
    else if (is_asked(e, "fail, then not")) {
        sl_lambda_fail(answer, "Function.Asked", "as asked");
        sl_lambda_succeed(answer, "[1]", 3, NULL);
    } else if (is_asked(e, "not, then fail")) {
        sl_lambda_succeed(answer, "[1]", 3, NULL);
        sl_lambda_fail(answer, "Function.Asked", "as asked");
    } else if (is_asked(e, "the most"))
        sl_lambda_succeed(answer, large, SL_RUNTIME_PAYLOAD_BYTES, NULL);
    else if (is_asked(e, "one more"))
        sl_lambda_succeed(answer, large, SL_RUNTIME_PAYLOAD_BYTES + 1, NULL);
    else if (is_asked(e, "two more"))
        sl_lambda_succeed(answer, large, SL_RUNTIME_PAYLOAD_BYTES + 2, NULL);
}

static int run(void *arg)
{
    return sl_lambda_run(handle, arg);
}

static char given[] = "given";

/* ---- events ---- */

static void a_function_answers(void **state)
{
    struct api *a = *state;
    static const struct {
        const char *payload, *type, *body;
    } cases[] = {
        {"nothing", NULL, "null"},
        {"fail", "Function.Asked",
         "{\"errorMessage\":\"as \\\"asked\\\"\",\"errorType\":\"Function.Asked\",\"stackTrace\":[]}"},
        {"nothing", NULL, "null"}, /* the last answer is forgotten */
        {"fail mutely", "Function.Error",
         "{\"errorMessage\":\"\",\"errorType\":\"Function.Error\",\"stackTrace\":[]}"},
        {"fail, then not", NULL, "[1]"},
        {"not, then fail", "Function.Asked",
         "{\"errorMessage\":\"as asked\",\"errorType\":\"Function.Asked\",\"stackTrace\":[]}"},
    };
    api_start_this(a, run, given);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct api_post post = api_deliver(a, sl_span_str(cases[i].payload));
        assert_int_equal(post.is_error, cases[i].type != NULL);
        assert_string_equal(post.type, cases[i].type ? cases[i].type : "");
        assert_string_equal(post.body, cases[i].body);
    }
    struct api_post post = api_deliver(a, SL_LIT("the most"));
    assert_false(post.is_error);
    assert_int_equal(strlen(post.body), SL_RUNTIME_PAYLOAD_BYTES);
    for (int more = 1; more <= 2; more++) {
        post = api_deliver(a, sl_span_str(more == 1 ? "one more" : "two more"));
        assert_string_equal(post.type, "Function.ResponseSizeTooLarge");
        assert_non_null(strstr(post.body, more == 1 ? "has 6291557 bytes" : "has 6291558 bytes"));
    }
    assert_string_equal(api_deliver(a, SL_LIT("nothing")).body, "null");
    assert_string_equal(api_file(a, "err"), "");
    assert_string_equal(api_file(a, "out"), "");
}

static void a_function_sees_the_whole_event(void **state)
{
    struct api *a = *state;
    api_start_this(a, run, given);
    api_offer(a, SL_LIT("about"), "id-1",
              "!Lambda-Runtime-Deadline-Ms: 1542409706888\r\nLambda-Runtime-Invoked-Function-Arn: arn\r\n"
              "Lambda-Runtime-Trace-Id: Root=1\r\nLambda-Runtime-Client-Context: {\"c\":1}\r\n"
              "Lambda-Runtime-Cognito-Identity: {\"i\":2}\r\nLambda-Runtime-Aws-Tenant-Id: blue\r\n"
              "Content-Type: application/json\r\n");
    struct api_request *answer = api_take(a, API_INVOCATION);
    assert_string_equal(
        api_body(answer),
        "5 0|id-1|arn|Root=1|{\"c\":1}|{\"i\":2}|blue|application/json|Root=1|1542409706888|given");
    assert_non_null(strstr(api_head(answer), "Content-Type: text/plain\r\n"));
    assert_non_null(strstr(api_line(answer), "/id-1/response "));
    api_reply(a, answer, API_ACCEPTED);
    api_offer(a, SL_LIT("about"), "id-2", "!");
    answer = api_take(a, API_INVOCATION);
    assert_string_equal(api_body(answer), "5 0|id-2|||||||-|0|given");
    api_reply(a, answer, API_ACCEPTED);
    api_offer(a, SL_LIT("nothing"), "id-3", "!");
    assert_non_null(strstr(api_head(api_take(a, API_INVOCATION)), "Content-Type: application/json\r\n"));
}

static void what_is_left_is_by_the_wall_clock(void **state)
{
    (void)state;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    struct sl_lambda_event e = {.deadline_epoch_ms = 0};
    assert_true(sl_lambda_remaining_ms(&e) == INT64_MAX);
    e.deadline_epoch_ms = now_ms + 100000;
    assert_in_range(sl_lambda_remaining_ms(&e), 60000, 100000);
    e.deadline_epoch_ms = now_ms - 1;
    assert_int_equal(sl_lambda_remaining_ms(&e), 0);
    e.deadline_epoch_ms = 1;
    assert_int_equal(sl_lambda_remaining_ms(&e), 0);
}

static void an_event_that_is_too_large_is_refused(void **state)
{
    struct api *a = *state;
    size_t n = SL_RUNTIME_PAYLOAD_BYTES + 1;
    char *large = calloc(1, n);
    assert_non_null(large);
    api_start_this(a, run, given);
    struct api_post post = api_deliver(a, sl_span(large, n));
    assert_string_equal(post.type, "Function.EventTooLarge");
    assert_non_null(strstr(post.body, "more than 6291556 bytes"));
    assert_string_equal(api_deliver(a, SL_LIT("nothing")).body, "null");
    assert_string_equal(api_file(a, "out"), "");
    free(large);
}

/* ---- a Runtime API that answers wrongly ---- */

#define SEVEN_PAUSES                                                                                         \
    "slept 0.050000000\nslept 0.100000000\nslept 0.200000000\nslept 0.400000000\nslept 0.800000000\n"        \
    "slept 1.600000000\nslept 3.200000000\n"

static void eight_failures_in_a_row_end_it(void **state)
{
    struct api *a = *state;
    api_start_this(a, run, given);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 7; i++)
            api_reply(a, api_take(a, API_NEXT), API_STATUS(403, "Forbidden"));
        (void)api_deliver(a, SL_LIT("nothing"));
    }
    api_reply(a, api_take(a, API_NEXT), "HTTP/1.1 204 No Content\r\n\r\n");
    for (int i = 0; i < 8; i++)
        api_reply(a, api_take(a, API_NEXT), API_STATUS(403, "Forbidden"));
    assert_int_equal(api_wait(a), 1);
    assert_string_equal(api_file(a, "out"), SEVEN_PAUSES SEVEN_PAUSES "slept 0.050000000\n" SEVEN_PAUSES);
    assert_int_equal(api_times(a, "err", "sluice-runtime: UnexpectedAnswer: "), 22);
    assert_int_equal(api_times(a, "err", "\n"), 22);
}

static void an_error_of_the_environment_ends_it_at_once(void **state)
{
    struct api *a = *state;
    api_start_this(a, run, given);
    api_reply(a, api_take(a, API_NEXT), API_STATUS(500, "Oh"));
    assert_int_equal(api_wait(a), 1);
    api_start_this(a, run, given);
    api_offer(a, SL_LIT("nothing"), "x", NULL);
    api_reply(a, api_take(a, API_INVOCATION), API_STATUS(500, "Oh"));
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "sluice-runtime: InternalServerError: "), 2);
    assert_string_equal(api_file(a, "out"), "");
}

static void a_refused_answer_is_no_failure(void **state)
{
    struct api *a = *state;
    api_start_this(a, run, given);
    for (int i = 0; i < 10; i++) {
        api_offer(a, SL_LIT("nothing"), "x", NULL);
        api_reply(a, api_take(a, API_INVOCATION), API_STATUS(413, "Too Large"));
    }
    assert_string_equal(api_deliver(a, SL_LIT("nothing")).body, "null");
    assert_int_equal(api_times(a, "err", "AnswerRefused"), 10);
    assert_int_equal(api_times(a, "out", "slept 0.050000000\n"), 10);
}

/* ---- starting ---- */

static void outside_of_lambda_it_says_so(void **state)
{
    struct api *a = *state;
    api_set(a, "AWS_LAMBDA_RUNTIME_API=");
    api_start_this(a, run, given);
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "sluice-runtime: NoRuntimeApi: AWS_LAMBDA_RUNTIME_API is not set"),
                     1);
    api_set(a, "AWS_LAMBDA_RUNTIME_API=/");
    api_start_this(a, run, given);
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "sluice-runtime: InvalidEndpoint: "), 1);
    assert_int_equal(api_times(a, "err", "\n"), 2);
}

static int fail_to_start(void *arg)
{
    return sl_lambda_init_failed("Function.NoSetting", arg);
}

static void a_function_that_cannot_start_says_so(void **state)
{
    struct api *a = *state;
    char why[] = "the setting X is missing";
    api_start_this(a, fail_to_start, why);
    struct api_post post = api_init_error(a);
    assert_string_equal(post.type, "Function.NoSetting");
    assert_non_null(strstr(post.body, why));
    assert_int_equal(api_wait(a), 1);
    assert_string_equal(api_file(a, "err"), "sluice-runtime: Function.NoSetting: the setting X is missing\n");
    api_start_this(a, fail_to_start, why);
    api_reply(a, api_take(a, API_INIT_ERROR), API_STATUS(500, "Oh"));
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "sluice-runtime: InternalServerError: "), 1);
    assert_int_equal(api_times(a, "err", "\n"), 3);
    api_set(a, "AWS_LAMBDA_RUNTIME_API=");
    api_start_this(a, fail_to_start, why);
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "NoRuntimeApi"), 1);
}

#define SERVES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVES(a_function_answers),
        SERVES(a_function_sees_the_whole_event),
        cmocka_unit_test(what_is_left_is_by_the_wall_clock),
        SERVES(an_event_that_is_too_large_is_refused),
        SERVES(eight_failures_in_a_row_end_it),
        SERVES(an_error_of_the_environment_ends_it_at_once),
        SERVES(a_refused_answer_is_no_failure),
        SERVES(outside_of_lambda_it_says_so),
        SERVES(a_function_that_cannot_start_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
