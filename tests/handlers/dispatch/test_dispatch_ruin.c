/* A handler closes descriptors of the process, at any of its calls: nothing more is called, parked or logged,
 * and the batch is delivered again as a whole. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include "handlers/dispatch/watch.h"
#include "handlers/pipeline/route.h"

#include <stdio.h>
#include <stdlib.h>

#define N 12
#define WINDOW                                                                                               \
    "'window':{'start':'2026-01-01T00:00:00Z','end':'2026-01-01T00:05:00Z'},'state':{'n':4},'shardId':'s'"

/* What was done so far. */
struct deeds {
    size_t calls, parked;
    char *log;
};

struct script {
    struct sl_call_watch watch; /* first */
    struct rig *rig;
    size_t asked, breaks_at; /* the process is not whole after so many calls */
    bool is_broken;
    struct deeds then;
};

static struct deeds deeds_of(struct rig *rig)
{
    struct deeds d = {.parked = rig_port(rig, "dlq")->n, .log = rig_log(rig)};
    for (size_t i = 0; i < RIG_HANDLERS; i++)
        d.calls += rig->handlers[i].calls + rig->handlers[i].windows;
    return d;
}

static void enter(struct sl_call_watch *watch, const char *route, const struct sl_record *const *records,
                  size_t n)
{
    (void)route, (void)records, (void)n;
    assert_false(((struct script *)watch)->is_broken);
}

static void leave(struct sl_call_watch *watch)
{
    assert_false(((struct script *)watch)->is_broken);
}

static bool is_whole(struct sl_call_watch *watch)
{
    struct script *s = (struct script *)watch;
    if (!s->is_broken && ++s->asked == s->breaks_at) {
        s->is_broken = true;
        s->then = deeds_of(s->rig);
    }
    return !s->is_broken;
}

/* Rejections, an outage, a misuse, once-only effects and a window: every kind of call. */
static struct rig *rig_of(const char *config)
{
    struct rig *rig = rig_new(config);
    rig_keep_log(rig);
    struct rig_handler *one = &rig->handlers[RIG_ONE], *once = &rig->handlers[RIG_ONCE];
    one->marks = true;
    one->plan[3] = RIG_POISON;
    one->plan[5] = RIG_MISUSE;
    once->marks = rig->handlers[RIG_WINDOW].marks = rig->handlers[RIG_TWICE].marks = true;
    once->outages = 1;
    once->plan[4] = RIG_POISON;
    once->plan[7] = RIG_MISUSE;
    rig->handlers[RIG_WINDOW].window_outages = 1;
    rig_event_with(rig, N, NULL, WINDOW);
    return rig;
}

static void expect_ruin(struct script *s)
{
    struct rig *rig = s->rig;
    struct deeds now = deeds_of(rig);
    assert_true(rig->answer.is_error && rig->answer.is_ruined);
    assert_int_equal(rig->answer.error.status, SL_FATAL);
    assert_string_equal(rig->answer.error.code, "HandlerClosedDescriptors");
    assert_non_null(strstr(rig->answer.error.text, "the handler closed descriptors that are not its own"));
    assert_int_equal(rig->answer.checkpoint, 0);
    assert_int_equal(now.calls, s->then.calls);
    assert_int_equal(now.parked, s->then.parked);
    assert_string_equal(now.log, s->then.log);
    free(now.log);
    free(s->then.log);
}

/* Returns how many calls there were when all went well. */
static size_t break_at_each_call(const char *config)
{
    for (size_t n = 1;; n++) {
        struct script s = {.watch = {.enter = enter, .leave = leave, .is_whole = is_whole},
                           .rig = rig_of(config),
                           .breaks_at = n};
        s.rig->p->options.watch = &s.watch;
        rig_run(s.rig, 60000);
        bool came = s.is_broken;
        if (came)
            expect_ruin(&s);
        else
            assert_int_equal(s.rig->answer.checkpoint, N);
        rig_destroy(s.rig);
        if (!came)
            return s.asked;
    }
}

#define ROUTES(keeper)                                                                                       \
    "{'on_failure':'mem:dlq','report_batch_item_failures':true,'routes':[{'name':'r1','handler':'one'},"     \
    "{'name':'w','handler':'" keeper "'},{'name':'o1','handler':'once'},{'name':'o2','handler':'twice'}]}"

static void nothing_is_done_after_it(void **state)
{
    (void)state;
    assert_true(break_at_each_call(ROUTES("window")) > 10);
    assert_true(break_at_each_call(ROUTES("keeper")) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_done_after_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
