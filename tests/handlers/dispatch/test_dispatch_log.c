/* What dispatch says in the log: one line for each kind of outcome, with its route and its first record. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define PARKING "'on_failure':'mem:dlq','report_batch_item_failures':true,"
#define REPORT  "'on_failure':'report','report_batch_item_failures':true,"
#define R1      "'routes':[{'name':'r1','handler':'one'}]}"
#define R2      "'routes':[{'name':'r1','handler':'one'},{'name':'r2','handler':'two'}]}"

static struct rig *rig_that_logs(const char *config)
{
    struct rig *rig = rig_new(config);
    rig_keep_log(rig);
    for (size_t i = 0; i < RIG_HANDLERS; i++)
        rig->handlers[i].marks = true;
    return rig;
}

static void logs(struct rig *rig, const char *text)
{
    char *log = rig_log(rig);
    assert_string_equal(log, text);
    free(log);
}

static void of_good_records_nothing_is_said(void **state)
{
    (void)state;
    struct rig *rig = rig_that_logs("{" PARKING R2);
    rig_event(rig, 9, NULL);
    rig_run(rig, 5000);
    logs(rig, "");
    rig_destroy(rig);
}

static void rejected_and_failed_records_have_a_line_each(void **state)
{
    (void)state;
    struct rig *rig = rig_that_logs("{" PARKING R2);
    unsigned char *one = rig->handlers[RIG_ONE].plan, *two = rig->handlers[RIG_TWO].plan;
    one[1] = one[3] = two[2] = RIG_POISON;
    two[6] = two[7] = RIG_OUTAGE;
    rig_event(rig, 9, NULL);
    rig_run(rig, 5000);
    logs(rig,
         "WARN [r1] 2 of 9 records rejected; they will be parked; the first, sequence number 1001: Planned: "
         "record 1 is planned to fail\n"
         "WARN [r2] 1 of 9 records rejected; they will be parked; the first, sequence number 1002: Planned: "
         "record 2 is planned to fail\n"
         "WARN [r2] 2 of 9 records not applied (RETRY); the first, sequence number 1006: Planned: "
         "record 7 is planned to fail\n");
    rig_destroy(rig);
}

static size_t of_two(size_t i)
{
    return i % 2;
}

/* Records that are held back behind a failed one of their item count with it. */
static void held_records_are_not_applied(void **state)
{
    (void)state;
    struct rig *rig = rig_that_logs("{" REPORT R1);
    rig->handlers[RIG_ONE].marks = false;
    rig->handlers[RIG_ONE].plan[3] = RIG_POISON;
    rig_event(rig, 8, of_two);
    rig_run(rig, 5000);
    logs(rig,
         "ERROR [r1] 3 of 8 records not applied (REJECT); the first, sequence number 1003: Planned: record 3 "
         "is planned to fail\n");
    rig_destroy(rig);
}

static void once_only_routes_say_theirs(void **state)
{
    (void)state;
    struct rig *rig = rig_that_logs("{" PARKING "'routes':[{'name':'o1','handler':'once'}]}");
    rig->handlers[RIG_ONCE].plan[2] = RIG_POISON;
    rig->handlers[RIG_ONCE].plan[4] = RIG_BROKEN;
    rig_event(rig, 6, NULL);
    rig_run(rig, 5000);
    logs(rig,
         "WARN [o1] 1 of 6 records rejected; they will be parked; the first, sequence number 1002: Planned: "
         "record 2 is planned to fail\n"
         "ERROR [o1] 1 of 6 records not applied (FATAL); the first, sequence number 1004: Planned: record 4 "
         "is "
         "planned to fail\n");
    rig_destroy(rig);
}

#define REJECTED                                                                                             \
    "WARN [r1] 3 of 9 records rejected; they will be parked; the first, sequence number 1001: Planned: "     \
    "record 1 is planned to fail\n"

static void what_is_not_parked_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *targets;
        enum sl_status status;
        const char *lines; /* after the first */
    } cases[] = {
        {"'mem:a'", SL_FATAL,
         "ERROR [r1] 3 of 3 rejected records were not parked; the first: PortPlanned: cannot be parked: the "
         "port "
         "is planned to fail; it was rejected: record 1 is planned to fail\n"},
        {"'mem:a'", SL_RETRY,
         "ERROR [r1] 3 of 3 rejected records were not parked; the first: PortPlanned: cannot be parked now: "
         "the "
         "port is planned to fail\n"},
        {"['mem:a','mem:b']", SL_FATAL,
         "WARN rejected records cannot be parked in mem:a: PortPlanned: the port is planned to fail; the "
         "next "
         "target of on_failure is used\n"},
        {"['mem:a','mem:b']", SL_REJECT, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = rig_that_logs(
            json_printf("{'on_failure':%s,'report_batch_item_failures':true," R1, cases[i].targets));
        memset(rig->handlers[RIG_ONE].plan + 1, RIG_POISON, 3);
        rig_port(rig, "a")->status = cases[i].status;
        rig_port(rig, "a")->failures = SIZE_MAX;
        rig_event(rig, 9, NULL);
        rig_run(rig, 5000);
        char wanted[900];
        snprintf(wanted, sizeof(wanted), REJECTED "%s", cases[i].lines);
        logs(rig, wanted);
        rig_destroy(rig);
    }
}

static void a_window_without_a_state_is_said(void **state)
{
    (void)state;
    struct rig *rig = rig_that_logs("{" REPORT "'routes':[{'name':'w','handler':'window'}]}");
    rig->handlers[RIG_WINDOW].window_status = SL_REJECT;
    rig_event_with(rig, 2, NULL, "'window':{'start':'2026-01-01T00:00:00Z','end':'2026-01-01T00:05:00Z'}");
    rig_run(rig, 5000);
    logs(rig,
         "ERROR [w] the window's state was not made (FATAL): WindowPlanned: the window is planned to fail\n");
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_good_records_nothing_is_said),
        cmocka_unit_test(rejected_and_failed_records_have_a_line_each),
        cmocka_unit_test(held_records_are_not_applied),
        cmocka_unit_test(once_only_routes_say_theirs),
        cmocka_unit_test(what_is_not_parked_is_said),
        cmocka_unit_test(a_window_without_a_state_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
