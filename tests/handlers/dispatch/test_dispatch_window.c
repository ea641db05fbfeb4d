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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_only_keeper_counts_what_it_applied),
        cmocka_unit_test(a_window_has_what_its_own_route_applied),
        cmocka_unit_test(a_window_is_tried_again_after_an_outage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
