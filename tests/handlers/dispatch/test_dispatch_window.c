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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_only_keeper_counts_what_it_applied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
