/* The keeper of a tumbling window among once-only routes. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define REPORT "'on_failure':'report','report_batch_item_failures':true,"
#define FINAL                                                                                                \
    "'window':{'start':'2026-01-01T00:00:00Z','end':'2026-01-01T00:05:00Z'},'state':{'n':4},"                \
    "'shardId':'s','isFinalInvokeForWindow':true,'isWindowTerminatedEarly':false"

/* A keeper whose effects are once-only has its window after them. */
static void once_only_keeper_counts_what_it_applied(void **state)
{
    (void)state;
    for (size_t k = 1; k <= 10; k++) {
        struct rig *rig = rig_new("{" REPORT "'routes':[{'name':'o1','handler':'once'},{'name':'w','handler':"
                                  "'keeper'},{'name':'o2','handler':'twice'}]}");
        struct rig_handler *s = &rig->handlers[RIG_WINDOW];
        s->marks = rig->handlers[RIG_ONCE].marks = rig->handlers[RIG_TWICE].marks = true;
        s->new_state = json("{'n':5}");
        rig->handlers[k % 2 ? RIG_TWICE : RIG_WINDOW].plan[k] = RIG_OUTAGE;
        rig_event_with(rig, 10, NULL, FINAL);
        rig_run(rig, 5000);
        assert_int_equal(rig->answer.checkpoint, k);
        assert_int_equal(s->windows, 1);
        assert_int_equal(s->window_records, k);
        assert_true(s->window_was_final == (k == 10));
        rig_destroy(rig);
    }
}

/* Of the records, the window has those that its own route applied: what another one rejects is in it. */
static void a_window_has_what_its_own_route_applied(void **state)
{
    (void)state;
    static const char *const orders[] = {"{'name':'w','handler':'window'},{'name':'r','handler':'one'}",
                                         "{'name':'r','handler':'one'},{'name':'w','handler':'window'}"};
    for (size_t i = 0; i < 2; i++)
        for (size_t mine = 0; mine <= 2; mine++)
            for (size_t others = 0; others <= 2; others++) {
                struct rig *rig = rig_new(json_printf(
                    "{'on_failure':'mem:dlq','report_batch_item_failures':true,'routes':[%s]}", orders[i]));
                struct rig_handler *s = &rig->handlers[RIG_WINDOW], *other = &rig->handlers[RIG_ONE];
                s->marks = other->marks = true;
                memset(s->plan + 3, RIG_POISON, mine);
                memset(other->plan + 4, RIG_POISON, others);
                rig_event_with(rig, 10, NULL, FINAL);
                rig_run(rig, 5000);
                assert_int_equal(rig->answer.checkpoint, 10);
                assert_int_equal(s->window_records, 10 - mine);
                rig_destroy(rig);
            }
}

/* The outage is over: what the last call says counts. */
static void a_window_is_tried_again_after_an_outage(void **state)
{
    (void)state;
    static const enum sl_status statuses[] = {SL_OK, SL_REJECT, SL_FATAL};
    for (size_t i = 0; i < 3; i++) {
        struct rig *rig = rig_new("{" REPORT "'routes':[{'name':'w','handler':'window'}]}");
        struct rig_handler *s = &rig->handlers[RIG_WINDOW];
        s->window_outages = 2;
        s->window_status = statuses[i];
        s->new_state = json("{'n':5}");
        rig_event_with(rig, 3, NULL, FINAL);
        rig_run(rig, 60000);
        assert_int_equal(s->windows, 3);
        assert_int_equal(s->window_records, 3);
        if (i == 0) {
            rig_answers(rig, "{'state':{'n':5},'batchItemFailures':[]}");
        } else {
            assert_string_equal(rig->answer.error.code, "WindowPlanned");
            assert_int_equal(rig->answer.error.status, SL_FATAL);
        }
        rig_destroy(rig);
    }
}

/* What the event says of the window, and what stands for what it does not say. */
static void a_window_is_told_as_it_came(void **state)
{
    (void)state;
    static const struct {
        const char *members, *start, *end, *state, *body;
    } cases[] = {
        {FINAL, "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z", "{'n':4}", "{'state':{'n':4},"},
        {"'window':{'start':'a'},'shardId':'s'", "a", "", "{}", "{'state':{},"},
        {"'window':{'start':5,'end':'b'},'state':{},'shardId':'s'", "", "b", "{}", "{'state':{},"},
        {"'window':{},'state':{'a':[1]},'shardId':'s'", "", "", "{'a':[1]}", "{'state':{'a':[1]},"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t n = 0; n < 3; n += 2) {
            struct rig *rig = rig_new("{" REPORT "'routes':[{'name':'w','handler':'window'}]}");
            struct rig_handler *s = &rig->handlers[RIG_WINDOW];
            rig_event_with(rig, n, NULL, cases[i].members);
            rig_run(rig, 5000);
            assert_int_equal(s->windows, 1);
            assert_string_equal(s->window_start, cases[i].start);
            assert_string_equal(s->window_end, cases[i].end);
            assert_string_equal(s->window_state, json(cases[i].state));
            rig_answers(rig, json_printf("%s'batchItemFailures':[]}", cases[i].body));
            rig_destroy(rig);
        }
}

/* Without a keeper the state is what it was, and an absent one is empty. */
static void a_window_that_nobody_keeps_stays(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT "'routes':[{'name':'r','handler':'one'}]}");
    rig_event_with(rig, 2, NULL, "'window':{'start':'a','end':'b'},'shardId':'s'");
    rig_run(rig, 5000);
    rig_answers(rig, "{'state':{},'batchItemFailures':[]}");
    rig_destroy(rig);
}

/* The state goes back to Lambda as it is: nothing but an object. */
static void a_state_is_a_json_object(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "[1]", "5", "'a'", "{'a':1", "{'a':1}}", "null", "{'a':01}"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct rig *rig = rig_new("{" REPORT "'routes':[{'name':'w','handler':'window'}]}");
        rig->handlers[RIG_WINDOW].new_state = json(wrong[i]);
        rig_event_with(rig, 2, NULL, FINAL);
        rig_run(rig, 5000);
        assert_string_equal(rig->answer.error.code, "InvalidState");
        assert_int_equal(rig->answer.error.status, SL_FATAL);
        assert_non_null(strstr(rig->answer.error.text, "the window's new state is not a JSON object"));
        rig_answers(rig, "{'state':{'n':4},'batchItemFailures':[{'itemIdentifier':'1000'}]}");
        rig_destroy(rig);
    }
}

/* A once-only keeper that takes no record of the batch has its window all the same; not where none is done.
 */
static void a_keeper_without_records_has_its_window(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        struct rig *rig =
            rig_new("{" REPORT "'routes':[{'name':'o','handler':'once'},{'name':'w','handler':'keeper',"
                    "'when':{'events':['REMOVE']}}]}");
        struct rig_handler *s = &rig->handlers[RIG_WINDOW];
        s->new_state = json("{'n':5}");
        rig->handlers[RIG_ONCE].marks = true;
        rig->handlers[RIG_ONCE].plan[0] = fails ? RIG_OUTAGE : RIG_GOOD;
        rig_event_with(rig, 3, NULL, FINAL);
        rig_run(rig, 5000);
        assert_int_equal(s->windows, !fails);
        assert_int_equal(s->window_records, 0);
        rig_answers(rig, fails ? "{'state':{'n':4},'batchItemFailures':[{'itemIdentifier':'1000'}]}"
                               : "{'state':{'n':5},'batchItemFailures':[]}");
        rig_destroy(rig);
    }
}

/* The route, the function and what is known of the reason are told also for handlers that say nothing. */
static void a_handler_that_says_nothing_is_named(void **state)
{
    (void)state;
    for (enum sl_status status = SL_RETRY; status <= SL_FATAL; status++) {
        struct rig *rig = rig_new("{" REPORT "'routes':[{'name':'w','handler':'window'}]}");
        struct rig_handler *s = &rig->handlers[RIG_WINDOW];
        s->silent = true;
        s->window_status = status;
        rig_event_with(rig, 2, NULL, FINAL);
        rig_run(rig, 5000);
        assert_string_equal(rig->answer.error.code, "WindowFailed");
        assert_int_equal(rig->answer.error.status, status == SL_RETRY ? SL_RETRY : SL_FATAL);
        assert_string_equal(rig->answer.error.text,
                            "route w, record 1 of 2, sequence number 1000: the handler's "
                            "window() failed and gave no reason");
        s->window_status = SL_OK;
        s->always = status;
        rig_run(rig, 5000);
        assert_string_equal(rig->answer.error.code, "Unspecified");
        assert_int_equal(rig->answer.error.status, status);
        assert_string_equal(rig->answer.error.text,
                            "route w, record 1 of 2, sequence number 1000: the handler gave no reason");
        rig_destroy(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_only_keeper_counts_what_it_applied),
        cmocka_unit_test(a_window_has_what_its_own_route_applied),
        cmocka_unit_test(a_window_is_tried_again_after_an_outage),
        cmocka_unit_test(a_window_is_told_as_it_came),
        cmocka_unit_test(a_window_that_nobody_keeps_stays),
        cmocka_unit_test(a_state_is_a_json_object),
        cmocka_unit_test(a_keeper_without_records_has_its_window),
        cmocka_unit_test(a_handler_that_says_nothing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
