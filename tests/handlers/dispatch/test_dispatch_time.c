/* Time: what is reserved for the answer, what each route gets of the rest, and whose time is counted as what.
 */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include "handlers/dispatch/watch.h"
#include "handlers/pipeline/route.h"

#include <stdio.h>

#define REPORT "'on_failure':'report','report_batch_item_failures':true,"
#define R1     "'routes':[{'name':'r1','handler':'one'}]}"

/* ---- the reserve ---- */

/* A twentieth of the time left, from 100 ms to 2 s, or what the configuration says; never more than half. */
static void a_part_of_the_time_is_kept_for_the_answer(void **state)
{
    (void)state;
    static const struct {
        int64_t time_ms, reserve_ms;
        const char *member;
    } cases[] = {
        {2, 1, ""},
        {100, 50, ""},
        {199, 99, ""},
        {200, 100, ""},
        {1999, 100, ""},
        {2000, 100, ""},
        {2020, 101, ""},
        {39980, 1999, ""},
        {40000, 2000, ""},
        {40020, 2000, ""},
        {900000, 2000, ""},
        {10000, 10, "'deadline_reserve_ms':10,"},
        {15, 7, "'deadline_reserve_ms':10,"},
        {10000, 3000, "'deadline_reserve_ms':3000,"},
        {5999, 2999, "'deadline_reserve_ms':3000,"},
        {6000, 3000, "'deadline_reserve_ms':3000,"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = rig_new(json_printf("{%s" REPORT R1, cases[i].member));
        rig_event(rig, 5, NULL);
        int64_t begin = rig->clock.ms;
        rig_run(rig, cases[i].time_ms);
        assert_int_equal(rig->handlers[RIG_ONE].calls, 1);
        assert_int_equal(rig->handlers[RIG_ONE].deadline_ms, begin + cases[i].time_ms - cases[i].reserve_ms);
        rig_destroy(rig);
    }
}

/* ---- shares ---- */

/* Routes as letters, in their order: a, b, c can be repeated, o and p are once-only. Capital: the route
 * parks. */
static const struct {
    char letter;
    size_t which;
    const char *handler;
} kinds[] = {{'a', RIG_ONE, "one"},
             {'b', RIG_TWO, "two"},
             {'c', RIG_THREE, "three"},
             {'o', RIG_ONCE, "once"},
             {'p', RIG_TWICE, "twice"}};

static size_t kind_of(char letter)
{
    size_t k = 0;
    while (kinds[k].letter != (letter | 0x20))
        k++;
    return k;
}

static bool is_once_only(char letter)
{
    return (letter | 0x20) >= 'o';
}

static struct rig *rig_of(const char *routes)
{
    char config[600];
    int n = snprintf(config, sizeof(config), "{" REPORT "'routes':[");
    for (size_t i = 0; routes[i]; i++)
        n += snprintf(config + n, sizeof(config) - (size_t)n,
                      "%s{'name':'r%zu','handler':'%s','on_failure':'%s'}", i ? "," : "", i,
                      kinds[kind_of(routes[i])].handler, routes[i] < 'a' ? "mem:dlq" : "report");
    snprintf(config + n, sizeof(config) - (size_t)n, "]}");
    return rig_new(config);
}

/* Four quarters for each route that is still to come, the once-only ones too, and one for parking. */
static int64_t share_of(const char *routes, size_t at, int64_t left_ms)
{
    int64_t quarters = 0;
    bool parks = false;
    for (size_t i = 0; routes[i]; i++) {
        quarters += i >= at || is_once_only(routes[i]) ? 4 : 0;
        parks = parks || routes[i] < 'a';
    }
    return left_ms * 4 / (quarters + parks);
}

static void expect_shares(const char *routes, int64_t takes_ms)
{
    struct rig *rig = rig_of(routes);
    for (size_t i = 0; routes[i]; i++)
        rig->handlers[kinds[kind_of(routes[i])].which].takes_ms = takes_ms;
    rig_event(rig, 3, NULL);
    int64_t now = rig->clock.ms, end = now + 60000 - 2000;
    rig_run(rig, 60000);
    rig_answers(rig, "{'batchItemFailures':[]}");
    for (int once_only = 0; once_only < 2; once_only++)
        for (size_t i = 0; routes[i]; i++) {
            const struct rig_handler *s = &rig->handlers[kinds[kind_of(routes[i])].which];
            if (is_once_only(routes[i]) != once_only)
                continue;
            int64_t wanted = once_only ? end : now + share_of(routes, i, end - now);
            if (s->deadline_ms != wanted)
                fail_msg("%s: the deadline of route %zu is %lld, not %lld", routes, i,
                         (long long)s->deadline_ms, (long long)wanted);
            now += takes_ms;
        }
    rig_destroy(rig);
}

static void routes_to_come_share_the_time(void **state)
{
    (void)state;
    static const char *const all[] = {"a",  "A",  "ab",  "Ab",  "aB",  "AB",  "abc", "abC", "ao",
                                      "oa", "Oa", "aob", "oab", "abo", "aoB", "opa", "o",   "O"};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        expect_shares(all[i], 0);
        expect_shares(all[i], 1000);
    }
}

/* ---- whose time it is ---- */

#define WINDOW "'window':{'start':'2026-01-01T00:00:00Z','end':'2026-01-01T00:05:00Z'},'shardId':'s'"

/* What a handler takes is its own but for what its ports take, in handle() and in window(). */
static void time_is_the_handlers_or_its_ports(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT "'routes':[{'name':'w','handler':'window','to':'mem:q'},"
                              "{'name':'r','handler':'one'}]}");
    struct rig_handler *s = &rig->handlers[RIG_WINDOW];
    s->takes_ms = 100;
    s->window_takes_ms = 30;
    s->sends = true;
    rig_port(rig, "q")->takes_ms = 7;
    rig->handlers[RIG_ONE].takes_ms = 11;
    rig_event_with(rig, 3, NULL, WINDOW);
    rig_run(rig, 60000);
    struct sl_route_stats w = sl_pipeline_stats(rig->p, 0), r = sl_pipeline_stats(rig->p, 1);
    assert_int_equal(w.calls, 2);
    assert_int_equal(w.handle_ns, 130 * 1000000);
    assert_int_equal(w.sink_ns, 14 * 1000000);
    assert_int_equal(r.calls, 1);
    assert_int_equal(r.handle_ns, 11 * 1000000);
    assert_int_equal(r.sink_ns, 0);
    rig_destroy(rig);
}

/* One call parks records of two routes: each has its part of the call's time. */
static void parking_is_a_sinks_time(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{'on_failure':'mem:dlq','report_batch_item_failures':true,'routes':["
                              "{'name':'r1','handler':'one'},{'name':'r2','handler':'two'}]}");
    rig->handlers[RIG_ONE].marks = rig->handlers[RIG_TWO].marks = true;
    rig->handlers[RIG_ONE].plan[1] = rig->handlers[RIG_ONE].plan[2] = RIG_POISON;
    rig->handlers[RIG_TWO].plan[2] = RIG_POISON;
    rig_port(rig, "dlq")->takes_ms = 30;
    rig_event(rig, 5, NULL);
    rig_run(rig, 60000);
    assert_int_equal(rig_port(rig, "dlq")->calls, 1);
    assert_int_equal(rig->answer.parked, 3);
    assert_int_equal(sl_pipeline_stats(rig->p, 0).sink_ns, 20 * 1000000);
    assert_int_equal(sl_pipeline_stats(rig->p, 1).sink_ns, 10 * 1000000);
    rig_destroy(rig);
}

/* ---- trials ---- */

/* A watch that has every record tried alone, which takes 30 ms. */
struct trials {
    struct sl_call_watch watch; /* first */
    struct rig *rig;
};

static void around_a_call(struct sl_call_watch *watch)
{
    (void)watch;
}

static void before_a_call(struct sl_call_watch *watch, const char *route,
                          const struct sl_record *const *records, size_t n)
{
    (void)watch, (void)route, (void)records, (void)n;
}

static bool is_whole(struct sl_call_watch *watch)
{
    (void)watch;
    return true;
}

static void begin(struct sl_call_watch *watch, const struct sl_batch *batch, const char *request_id,
                  const char *trace_id)
{
    (void)watch, (void)batch, (void)request_id, (void)trace_id;
}

static bool is_suspect(struct sl_call_watch *watch, const char *route, const struct sl_record *record)
{
    (void)watch, (void)record;
    return strcmp(route, "r1") == 0;
}

static void try_alone(struct sl_call_watch *watch, const struct sl_trial_order *order, struct sl_trial *out)
{
    (void)order;
    ((struct trials *)watch)->rig->clock.ms += 30;
    *out = (struct sl_trial){.end = SL_TRIAL_RETURNED};
}

/* In another process it is the handler's time all the same, and a call. */
static void a_trial_is_the_handlers_time(void **state)
{
    (void)state;
    struct trials t = {{true, before_a_call, around_a_call, is_whole, begin, is_suspect, try_alone, NULL},
                       rig_new("{" REPORT "'routes':[{'name':'r1','handler':'one'},{'name':'r2','handler':"
                               "'two'}]}")};
    t.rig->p->options.watch = &t.watch;
    rig_event(t.rig, 3, NULL);
    rig_run(t.rig, 60000);
    rig_answers(t.rig, "{'batchItemFailures':[]}");
    struct sl_route_stats tried = sl_pipeline_stats(t.rig->p, 0), other = sl_pipeline_stats(t.rig->p, 1);
    assert_int_equal(tried.handle_ns, 3 * 30 * 1000000);
    assert_int_equal(tried.calls, 3);
    assert_int_equal(tried.applied, 3);
    assert_int_equal(other.handle_ns, 0);
    assert_int_equal(other.calls, 1);
    rig_destroy(t.rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_of_the_time_is_kept_for_the_answer),
        cmocka_unit_test(routes_to_come_share_the_time),
        cmocka_unit_test(time_is_the_handlers_or_its_ports),
        cmocka_unit_test(parking_is_a_sinks_time),
        cmocka_unit_test(a_trial_is_the_handlers_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
