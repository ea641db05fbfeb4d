/* Pieces of a plan, turn by turn: how long a turn takes, where the next one goes on, and what a turn says
 * that cannot go on. */
#include "tests/runtime/work_function.h"

#include "base/clock.h"
#include "runtime/start.h"

/* A budget that is too small for one turn: each goes on where the last one ended, and counts from the
 * beginning. */
static void a_piece_goes_on_in_the_next_turn(void **state)
{
    struct api *a = *state;
    api_start(a, REPLICA);
    json_decref(ask(a, "plan", "{'run':'turns'," ANY_ORDER "}"));
    json_t *plan = plan_of(a, "turns"), *piece = json_array_get(plan, 0);
    json_object_set_new(piece, "write_units", json_real(30));
    char *item = json_dumps(piece, JSON_COMPACT);
    json_int_t items = -1;
    size_t turns = 0;
    for (bool is_done = false; !is_done; turns++) {
        assert_true(turns < 10);
        json_t *answer = ask_until(a, "backfill", item, 600);
        assert_true(number(answer, "items") > items);
        items = number(answer, "items");
        is_done = json_is_true(json_object_get(answer, "done"));
        assert_int_equal(json_object_get(answer, "next") != NULL, !is_done);
        free(item);
        item = json_dumps(json_object_get(answer, "next"), JSON_COMPACT);
        json_decref(answer);
    }
    assert_true(turns > 1);
    assert_int_equal(items, FIRST_FILE);
    free(item);
    json_decref(plan);
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "err", "piece 0: goes on in the next turn"), turns - 1);
    assert_int_equal(api_times(a, "err", "piece 0: done"), 1);
}

/* A clock that only sleeping moves on. */
#define CLOCK_MS INT64_C(1795170000000)
static int64_t slept_ms;

static int64_t still_now_ms(struct sl_clock *clock)
{
    (void)clock;
    return 1000000 + slept_ms;
}

static int64_t still_wall_ns(struct sl_clock *clock)
{
    (void)clock;
    return (CLOCK_MS + slept_ms) * 1000000;
}

static void sleep_at_once(struct sl_clock *clock, int64_t ms)
{
    (void)clock;
    slept_ms += ms;
    dprintf(1, "at %lld\n", (long long)slept_ms);
}

static int start_on_still_clock(void *arg)
{
    extern char **environ;
    (void)arg;
    struct sl_clock *clock = sl_clock_system();
    clock->now_ms = still_now_ms;
    clock->wall_ns = still_wall_ns;
    clock->sleep_ms = sleep_at_once;
    return sl_start("bootstrap", environ);
}

/* A turn uses its time but for a twentieth, of which 300 ms to 5 s are kept for the answer; it waits for its
 * budget until then, and no longer. */
static void a_turn_keeps_time_for_its_answer(void **state)
{
    struct api *a = *state;
    static const int64_t cases[][2] = {{2000, 1700},    {6000, 5700},    {6020, 5719},    {40000, 38000},
                                       {100000, 95000}, {100040, 95040}, {200000, 195000}};
    api_start(a, REPLICA);
    json_decref(ask(a, "plan", "{'run':'time'," ANY_ORDER "}"));
    assert_int_equal(api_stop(a), 0);
    const char *item = changed_piece(a, "time", "{\"write_units\":0.1}");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char header[96], at[40];
        snprintf(header, sizeof(header), "!Lambda-Runtime-Deadline-Ms: %lld\r\n",
                 (long long)(CLOCK_MS + cases[i][0]));
        api_start_this(a, start_on_still_clock, NULL);
        api_offer(a, json_span(item), "turn", header);
        struct api_post post = api_posted(a);
        if (post.is_error || !strstr(post.body, "\"done\":false"))
            fail_msg("%s", post.body);
        assert_int_equal(api_stop(a), 0);
        snprintf(at, sizeof(at), "at %lld\n", (long long)cases[i][1]);
        const char *out = api_file(a, "out");
        if (strlen(out) < strlen(at) || strcmp(out + strlen(out) - strlen(at), at) != 0)
            fail_msg("%lld ms: %s", (long long)cases[i][0], out);
    }
}

/* What may succeed later has one code of its own. */
static void a_turn_without_time_is_tried_again(void **state)
{
    struct api *a = *state;
    api_start(a, REPLICA);
    json_decref(ask(a, "plan", "{'run':'late'," ANY_ORDER "}"));
    json_t *plan = plan_of(a, "late");
    char *item = json_dumps(json_array_get(plan, 0), JSON_COMPACT);
    offer_until(a, json_span(json_printf("{'sluice':{'backfill':%s}}", item)), 0);
    struct api_post post = api_posted(a);
    assert_string_equal(post.type, "Function.TryAgain");
    assert_non_null(strstr(post.body, "NothingDone: the turn ended before anything was written"));
    free(item);
    json_decref(plan);
    assert_int_equal(api_stop(a), 0);
}

/* What cannot be handed to the next turn is said by this one; what was written stays, and the piece can be
 * begun anew. */
static void a_place_that_is_too_long_is_said(void **state)
{
    struct api *a = *state;
    api_start(a, REPLICA);
    json_decref(ask(a, "plan", "{'run':'long'," ANY_ORDER "}"));
    const char *members = json_printf("{'arn':'%09000d','write_units':1}", 0);
    offer_until(a, json_span(changed_piece(a, "long", members)), 450);
    struct api_post post = api_posted(a);
    assert_string_equal(post.type, "Function.PlaceTooLong");
    assert_non_null(strstr(post.body, "needs more than 8192 bytes: name fewer routes"));
    post = api_deliver(a, json_span(changed_piece(a, "long", "{}")));
    assert_false(post.is_error);
    assert_non_null(strstr(post.body, json_printf("'items':%d", FIRST_FILE)));
    assert_int_equal(api_stop(a), 0);
}

/* A file that is not the one which the plan names, and a target that is not there. */
static void a_piece_that_cannot_be_done_says_why(void **state)
{
    struct api *a = *state;
    api_set(a, "AWS_ACCESS_KEY_ID=a");
    api_set(a, "AWS_SECRET_ACCESS_KEY=s");
    api_set(a, "AWS_REGION=us-east-1");
    api_start(a, REPLICA);
    json_decref(ask(a, "plan", "{'run':'why'," ANY_ORDER "}"));
    refused(a, changed_piece(a, "why", json("{'md5':'AAAAAAAAAAAAAAAAAAAAAA=='}")), "Function.WrongChecksum",
            "a.json.gz");
    refused(a, changed_piece(a, "why", json("{'items':24}")), "Function.WrongCount", "the manifest says 24");
    assert_int_equal(api_stop(a), 0);
    api_start(a, "{'report_batch_item_failures':true,'routes':[{'name':'replica','handler':'replicate','to':"
                 "'dynamodb://copies?endpoint=http://127.0.0.1:1','on_failure':'report'}]}");
    offer_until(a, json_span(changed_piece(a, "why", "{}")), 1500); /* under load, too */
    struct api_post post = api_posted(a);
    assert_string_equal(post.type, "Function.TryAgain");
    assert_non_null(strstr(post.body, "127.0.0.1:1"));
    assert_null(strstr(post.body, "NothingDone"));
    assert_int_equal(api_stop(a), 0);
}

/* A handler that closes descriptors closes them here, too: the item is failed, and the process ends. */
static void a_piece_whose_handler_closes_descriptors_is_failed(void **state)
{
    struct api *a = *state;
    api_start(a,
              "{'report_batch_item_failures':true,'routes':[{'name':'d','handler':'dies','how':'close','at':"
              "'all','told':'${DIR}/told','on_failure':'report'}]}");
    json_decref(ask(a, "plan", "{'run':'close'," ANY_ORDER "}"));
    struct api_post post = api_deliver(a, json_span(changed_piece(a, "close", "{}")));
    assert_string_equal(post.type, "Function.HandlerClosedDescriptors");
    assert_int_equal(api_wait(a), 1);
}

#define SERVES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVES(a_piece_goes_on_in_the_next_turn),
        SERVES(a_turn_keeps_time_for_its_answer),
        SERVES(a_turn_without_time_is_tried_again),
        SERVES(a_place_that_is_too_long_is_said),
        SERVES(a_piece_that_cannot_be_done_says_why),
        SERVES(a_piece_whose_handler_closes_descriptors_is_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
