/* Records that an earlier process died of: who gets them, in what order, and what becomes of each ending. The
 * watch here is a script; the real one is tested with the runtime. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include "handlers/route.h"
#include "handlers/watch.h"
#include "streams/record.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define PARKING "\"on_failure\":\"mem:dlq\",\"report_batch_item_failures\":true,\"max_parked\":null,"
#define R2      "\"routes\":[{\"name\":\"r1\",\"handler\":\"one\"},{\"name\":\"r2\",\"handler\":\"two\"}]}"
#define ONCE    "\"routes\":[{\"name\":\"r1\",\"handler\":\"once\"}]}"

#define N 20

struct script {
    struct sl_watch watch; /* first */
    struct rig *rig;
    bool suspects[N];
    struct sl_trial endings[N];
    size_t n_tried, tried[200];
    size_t entered, left, begun; /* calls */
    size_t given;                /* records of all calls here */
    int64_t takes_ms;
};

static struct script *script_of(struct sl_watch *watch)
{
    return (struct script *)watch;
}

static size_t index_of(const struct sl_record *record)
{
    return strtoul(sl_record_text(record, SL_FIELD_IDENTIFIER).ptr, NULL, 10) - 1000;
}

static void enter(struct sl_watch *watch, const char *route, const struct sl_record *const *records, size_t n)
{
    struct script *s = script_of(watch);
    assert_int_equal(route[0], 'r');
    assert_int_equal(s->entered, s->left);
    s->entered++;
    s->given += n;
    for (size_t i = 0; i < n && s->watch.has_suspects; i++)
        assert_false(strcmp(route, "r1") == 0 && s->suspects[index_of(records[i])]);
}

static void leave(struct sl_watch *watch)
{
    script_of(watch)->left++;
}

static void begin(struct sl_watch *watch, const struct sl_batch *batch, const char *request_id)
{
    assert_int_equal(batch->n, N);
    assert_string_equal(request_id, "request-1");
    script_of(watch)->begun++;
}

static bool is_suspect(struct sl_watch *watch, const char *route, const struct sl_record *record)
{
    return strcmp(route, "r1") == 0 && script_of(watch)->suspects[index_of(record)];
}

static void try_alone(struct sl_watch *watch, const struct sl_trial_order *order, struct sl_trial *out)
{
    struct script *s = script_of(watch);
    assert_int_equal(order->route, 0);
    assert_true(order->kill_ms >= order->deadline_ms);
    assert_true(order->kill_ms <= s->rig->invocation.deadline_ms);
    assert_true(s->n_tried < 200);
    s->tried[s->n_tried++] = order->index;
    s->rig->clock.ms += s->takes_ms;
    *out = s->endings[order->index];
    s->watch.has_suspects = out->end != SL_TRIAL_UNABLE;
}

static struct script *script_new(const char *config)
{
    struct script *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->watch = (struct sl_watch){true, enter, leave, begin, is_suspect, try_alone};
    s->rig = rig_new(config);
    s->rig->p->options.watch = &s->watch;
    return s;
}

static void script_destroy(struct script *s)
{
    assert_int_equal(s->entered, s->left);
    rig_destroy(s->rig);
    free(s);
}

static void run(struct script *s, size_t (*key)(size_t))
{
    rig_event(s->rig, N, key);
    rig_run(s->rig, 10000);
    assert_int_equal(s->begun, 1);
}

static void only_suspects_are_tried_alone_and_in_order(void **state)
{
    (void)state;
    struct script *s = script_new("{" PARKING R2);
    for (size_t i = 5; i < 10; i++)
        s->suspects[i] = true;
    run(s, NULL);
    assert_int_equal(s->n_tried, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(s->tried[i], 5 + i);
    /* Two slices around them, and the other route's whole one. */
    assert_int_equal(s->rig->handlers[RIG_ONE].calls, 2);
    assert_int_equal(s->rig->handlers[RIG_ONE].n_applied, N - 5);
    assert_int_equal(s->rig->handlers[RIG_TWO].n_applied, N);
    assert_int_equal(s->given, N - 5 + N);
    assert_string_equal(rig_body(s->rig), "{\"batchItemFailures\":[]}");
    script_destroy(s);
}

static void nobody_is_asked_without_suspects(void **state)
{
    (void)state;
    struct script *s = script_new("{" PARKING R2);
    s->watch.has_suspects = false;
    s->suspects[3] = true;
    rig_event(s->rig, N, NULL);
    rig_run(s->rig, 10000);
    assert_int_equal(s->begun + s->n_tried, 0);
    assert_int_equal(s->entered, 2);
    script_destroy(s);
}

static void crash_is_parked_and_nothing_else(void **state)
{
    (void)state;
    for (size_t at = 0; at < N; at++)
        for (int once = 0; once < 2; once++) {
            struct script *s = script_new(once ? "{" PARKING ONCE : "{" PARKING R2);
            s->suspects[at] = true;
            s->endings[at] = (struct sl_trial){.end = SL_TRIAL_CRASHED, .number = SIGBUS};
            run(s, NULL);
            assert_string_equal(rig_body(s->rig), "{\"batchItemFailures\":[]}");
            assert_int_equal(s->rig->handlers[once ? RIG_ONCE : RIG_ONE].n_applied, N - 1);
            struct rig_port *dlq = rig_port(s->rig, "dlq");
            char sequence[40];
            snprintf(sequence, sizeof(sequence), "\"SequenceNumber\":\"%zu\"", 1000 + at);
            assert_int_equal(dlq->n, 1);
            assert_non_null(strstr(dlq->bodies[0], sequence));
            assert_non_null(strstr(dlq->bodies[0], "\"code\":\"HandlerCrashed\",\"message\":\"the handler "
                                                   "died of SIGBUS on this record alone, twice\""));
            script_destroy(s);
        }
}

/* What the handler itself says counts as ever, and is not asked again here. */
static void outcome_is_the_handlers_own(void **state)
{
    (void)state;
    struct script *s = script_new("{" PARKING R2);
    s->suspects[4] = s->suspects[6] = true;
    s->endings[4] = (struct sl_trial){.end = SL_TRIAL_RETURNED,
                                      .status = SL_REJECT,
                                      .error = {SL_REJECT, SL_NO_OFFSET, "Bad", "it is bad"}};
    run(s, NULL);
    assert_string_equal(rig_body(s->rig), "{\"batchItemFailures\":[]}");
    assert_int_equal(rig_port(s->rig, "dlq")->n, 1);
    assert_non_null(strstr(rig_port(s->rig, "dlq")->bodies[0], "\"code\":\"Bad\",\"message\":\"it is bad\""));
    assert_int_equal(s->rig->handlers[RIG_ONE].times[4] + s->rig->handlers[RIG_ONE].times[6], 0);
    script_destroy(s);
}

static const char *failed_at(size_t index)
{
    static char text[80];
    snprintf(text, sizeof(text), "{\"batchItemFailures\":[{\"itemIdentifier\":\"%zu\"}]}", 1000 + index);
    return text;
}

/* An outage, a time-out, a kill from outside, exit(): the record is reported at its place, never parked. */
static void other_endings_reject_nothing(void **state)
{
    (void)state;
    static const struct {
        struct sl_trial ending;
        const char *code;
    } cases[] = {
        {{.end = SL_TRIAL_TIMED_OUT}, "HandlerTimedOut"},
        {{.end = SL_TRIAL_KILLED, .number = SIGKILL}, "HandlerKilled"},
        {{.end = SL_TRIAL_EXITED, .number = 3}, "HandlerExited"},
        {{.end = SL_TRIAL_RETURNED, .status = SL_RETRY}, "Unspecified"},
        {{.end = SL_TRIAL_RETURNED, .status = SL_FATAL, .error = {SL_FATAL, 0, "Denied", "no"}}, "Denied"},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
        for (size_t at = 0; at < N; at += 7) {
            struct script *s = script_new("{" PARKING R2);
            s->suspects[at] = true;
            s->endings[at] = cases[c].ending;
            s->takes_ms = 1000;
            run(s, NULL);
            assert_string_equal(rig_body(s->rig), failed_at(at));
            assert_false(s->rig->answer.is_error);
            assert_string_equal(s->rig->answer.error.code, cases[c].code);
            assert_int_equal(rig_port(s->rig, "dlq")->n, 0);
            assert_int_equal(s->rig->handlers[RIG_TWO].n_applied, at);
            assert_true(s->rig->clock.ms < s->rig->invocation.deadline_ms);
            script_destroy(s);
        }
}

static size_t of_two(size_t i)
{
    return i % 2;
}

/* Record 2 fails for now: the later ones of its item wait, suspects among them. */
static void suspects_behind_a_failure_of_their_item_wait(void **state)
{
    (void)state;
    struct script *s = script_new("{" PARKING R2);
    s->rig->handlers[RIG_ONE].marks = true;
    s->rig->handlers[RIG_ONE].plan[2] = RIG_BROKEN;
    s->suspects[4] = s->suspects[5] = true;
    run(s, of_two);
    assert_string_equal(rig_body(s->rig), failed_at(2));
    assert_int_equal(s->n_tried, 0); /* FATAL stops the route */
    script_destroy(s);

    s = script_new("{\"on_failure\":\"report\",\"report_batch_item_failures\":true,\"max_parked\":null," R2);
    s->rig->handlers[RIG_ONE].plan[2] = RIG_POISON;
    s->rig->handlers[RIG_ONE].marks = true;
    s->suspects[4] = s->suspects[5] = true;
    run(s, of_two);
    assert_string_equal(rig_body(s->rig), failed_at(2));
    assert_int_equal(s->n_tried, 1);
    assert_int_equal(s->tried[0], 5);
    script_destroy(s);
}

static void without_an_elsewhere_it_goes_on_here(void **state)
{
    (void)state;
    struct script *s = script_new("{" PARKING R2);
    s->suspects[4] = s->suspects[9] = true;
    s->endings[4] = (struct sl_trial){.end = SL_TRIAL_UNABLE};
    run(s, NULL);
    assert_string_equal(rig_body(s->rig), "{\"batchItemFailures\":[]}");
    assert_int_equal(s->n_tried, 1);
    assert_int_equal(s->rig->handlers[RIG_ONE].n_applied, N);
    script_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_suspects_are_tried_alone_and_in_order),
        cmocka_unit_test(nobody_is_asked_without_suspects),
        cmocka_unit_test(crash_is_parked_and_nothing_else),
        cmocka_unit_test(outcome_is_the_handlers_own),
        cmocka_unit_test(other_endings_reject_nothing),
        cmocka_unit_test(suspects_behind_a_failure_of_their_item_wait),
        cmocka_unit_test(without_an_elsewhere_it_goes_on_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
