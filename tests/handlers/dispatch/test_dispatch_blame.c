/* Which record is to blame: where a handler breaks the rules of marking, where it names one record and
 * returns for all, and where an once-only route's rejections are counted. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define PARKING "'on_failure':'mem:dlq','report_batch_item_failures':true,"
#define REPORT  "'on_failure':'report','report_batch_item_failures':true,"
#define ROUTE   "'routes':[{'name':'r1','handler':'%s'}]}"
#define N       12

static const struct {
    const char *handler;
    size_t which;
} kinds[] = {{"one", RIG_ONE}, {"once", RIG_ONCE}};

/* ---- misuse ---- */

static void expect_parked(struct rig *rig, size_t at, bool marks)
{
    const struct rig_port *dlq = rig_port(rig, "dlq");
    assert_int_equal(dlq->n, 1);
    assert_non_null(strstr(dlq->bodies[0], json("'code':'HandlerMisuse'")));
    const char *said =
        json_printf("%s, which is not a status (use SL_OK, SL_RETRY, SL_REJECT or SL_FATAL); "
                    "the record has sequence number %zu",
                    marks ? "the handler marked record 0 with 4" : "the handler returned 4", 1000 + at);
    if (!strstr(dlq->bodies[0], said))
        fail_msg("%s: not \"%s\"", dlq->bodies[0], said);
}

/* One record makes the handler return, or mark, what is no status. Nothing that such a call said is believed:
 * the records of it are given again, and this one alone is rejected, if another passes. After the last record
 * of a once-only route there is no other, and none before it may be repeated: it waits for the next batch. */
static void the_record_of_a_misuse_is_parked_alone(void **state)
{
    (void)state;
    for (size_t at = 0; at < N; at++)
        for (int way = 0; way < 4; way++) {
            bool marks = way & 1, has_control = way < 2 || at < N - 1;
            struct rig *rig = rig_new(json_printf("{" PARKING ROUTE, kinds[way / 2].handler));
            struct rig_handler *s = &rig->handlers[kinds[way / 2].which];
            s->marks = marks;
            s->plan[at] = RIG_MISUSE;
            rig_event(rig, N, NULL);
            rig_run(rig, 60000);
            assert_int_equal(rig->answer.checkpoint, has_control ? N : N - 1);
            assert_int_equal(rig->answer.parked, has_control);
            if (has_control)
                expect_parked(rig, at, marks);
            for (size_t i = 0; i < N; i++)
                assert_true(i == at ? s->times[i] == 0 : s->times[i] >= 1);
            assert_int_equal(sl_pipeline_stats(rig->p, 0).applied, N - 1);
            rig_destroy(rig);
        }
}

/* Every record does: then the handler is broken. Nothing is parked, and a function error has the batch
 * halved. */
static void where_every_record_is_misused_the_handler_is_to_blame(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct rig *rig = rig_new(json_printf("{" PARKING ROUTE, kinds[way / 2].handler));
        struct rig_handler *s = &rig->handlers[kinds[way / 2].which];
        s->marks = way & 1;
        memset(s->plan, RIG_MISUSE, N);
        rig_event(rig, N, NULL);
        rig_run(rig, 60000);
        assert_true(rig->answer.is_error);
        assert_int_equal(rig->answer.error.status, SL_FATAL);
        assert_string_equal(rig->answer.error.code, "HandlerMisuse");
        assert_non_null(
            strstr(rig->answer.error.text, "no other record of the route has passed the same trial"));
        assert_int_equal(rig_port(rig, "dlq")->n, 0);
        assert_int_equal(s->n_applied, 0);
        rig_destroy(rig);
    }
}

/* Alone, the record gets a status after all: what the handler then says counts. */
static void a_trial_may_have_any_outcome(void **state)
{
    (void)state;
    static const struct {
        enum rig_plan plan;
        size_t checkpoint, parked;
    } cases[] = {{RIG_POISON, N, 1}, {RIG_OUTAGE, 4, 0}, {RIG_BROKEN, 4, 0}};
    for (size_t i = 0; i < 3; i++) {
        struct rig *rig = rig_new(json_printf("{" PARKING ROUTE, "one"));
        struct rig_handler *s = &rig->handlers[RIG_ONE];
        s->marks = true;
        s->misuses_together = true;
        s->plan[4] = (unsigned char)cases[i].plan;
        rig_event(rig, N, NULL);
        rig_run(rig, 10000);
        assert_int_equal(rig->answer.checkpoint, cases[i].checkpoint);
        assert_int_equal(rig_port(rig, "dlq")->n, cases[i].parked);
        assert_int_equal(rig->answer.error.status, cases[i].checkpoint == N ? SL_OK : (int)cases[i].plan);
        assert_string_equal(rig->answer.error.code, cases[i].checkpoint == N ? "" : "Planned");
        rig_destroy(rig);
    }
}

/* ---- one record is named, and the call rejected ---- */

/* The handler blames record 2 and applies nothing of the call. The records before it were not tried: that is
 * no rejection of theirs, and the batch is not halved for it. */
static void records_before_the_blamed_one_are_tried_again(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT "'routes':[{'name':'r1','handler':'once'}]}");
    rig->handlers[RIG_ONCE].blames = true;
    rig->handlers[RIG_ONCE].plan[2] = RIG_POISON;
    rig_event(rig, 5, NULL);
    rig_run(rig, 10000);
    assert_false(rig->answer.is_error);
    assert_int_equal(rig->answer.error.status, SL_RETRY);
    assert_string_equal(rig->answer.error.code, "NotTried");
    rig_answers(rig, "{'batchItemFailures':[{'itemIdentifier':'1000'}]}");
    rig_destroy(rig);
}

/* ---- counts of a once-only route ---- */

/* What a call marks is counted before the first of it is parked; it counts once. */
static void a_once_only_route_may_park_up_to_the_limit(void **state)
{
    (void)state;
    static const struct {
        size_t records; /* of a call; 0: all */
        size_t poison;
        size_t parked;
    } cases[] = {{0, 4, 4}, {0, 5, 0}, {2, 4, 4}, {3, 4, 4}, {3, 5, 3}, {3, 6, 3}, {1, 4, 4}, {1, 5, 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char limit[40] = "";
        if (cases[i].records)
            snprintf(limit, sizeof(limit), ",'max_records':%zu", cases[i].records);
        struct rig *rig = rig_new(
            json_printf("{'max_parked':4," PARKING "'routes':[{'name':'r1','handler':'once'%s}]}", limit));
        rig->handlers[RIG_ONCE].marks = true;
        memset(rig->handlers[RIG_ONCE].plan, RIG_POISON, cases[i].poison);
        rig_event(rig, 20, NULL);
        rig_run(rig, 10000);
        assert_int_equal(rig_port(rig, "dlq")->n, cases[i].parked);
        assert_int_equal(rig->answer.error.status, cases[i].parked == cases[i].poison ? SL_OK : SL_FATAL);
        rig_destroy(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_record_of_a_misuse_is_parked_alone),
        cmocka_unit_test(where_every_record_is_misused_the_handler_is_to_blame),
        cmocka_unit_test(a_trial_may_have_any_outcome),
        cmocka_unit_test(records_before_the_blamed_one_are_tried_again),
        cmocka_unit_test(a_once_only_route_may_park_up_to_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
