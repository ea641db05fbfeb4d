/* Records that an earlier process died of: who gets them, in what order, and what becomes of each ending. The
 * watch here is a script; the real one is tested with the runtime. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include "base/clock.h"
#include "handlers/pipeline/route.h"
#include "handlers/dispatch/watch.h"
#include "streams/record.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define PARKING "'on_failure':'mem:dlq','report_batch_item_failures':true,'max_parked':null,"
#define R2      "'routes':[{'name':'r1','handler':'one'},{'name':'r2','handler':'two'}]}"
#define ONCE    "'routes':[{'name':'r1','handler':'once'}]}"

#define N 20

struct script {
    struct sl_call_watch watch; /* first */
    struct rig *rig;
    bool suspects[N];
    struct sl_trial endings[N];
    size_t n_tried, tried[200];
    size_t n_ended;         /* of these: the others could not be made */
    unsigned attempts[200]; /* of each */
    size_t n_proven, proven[N];
    size_t entered, left, begun; /* calls */
    bool is_broken;              /* the descriptors are */
    size_t given;                /* records of all calls here */
    int64_t takes_ms;
    bool is_slow;                        /* what returns does so at its deadline */
    bool is_in_time;                     /* a trial ends at its deadline, a time-out always then */
    int64_t begins[200], deadlines[200]; /* of each */
    size_t (*key)(size_t), done_of[N];   /* per item: the last record that r1 has done, and one more */
};

static struct script *script_of(struct sl_call_watch *watch)
{
    return (struct script *)watch;
}

static size_t index_of(const struct sl_record *record)
{
    return strtoul(sl_record_text(record, SL_FIELD_IDENTIFIER).ptr, NULL, 10) - 1000;
}

/* No change of an item is given after a later one was done; the last one may be done again. */
static void note_given(struct script *s, size_t index, bool is_done)
{
    if (!s->key)
        return;
    size_t *last = &s->done_of[s->key(index)];
    if (index + 1 < *last)
        fail_msg("record %zu is given after record %zu of its item", index, *last - 1);
    *last = is_done ? index + 1 : *last;
}

static void enter(struct sl_call_watch *watch, const char *route, const struct sl_record *const *records,
                  size_t n)
{
    struct script *s = script_of(watch);
    assert_int_equal(route[0], 'r');
    assert_int_equal(s->entered, s->left);
    s->entered++;
    s->given += n;
    for (size_t i = 0; i < n && s->watch.has_suspects; i++)
        assert_false(strcmp(route, "r1") == 0 && s->suspects[index_of(records[i])]);
    for (size_t i = 0; i < n && strcmp(route, "r1") == 0; i++)
        note_given(s, index_of(records[i]), true);
}

static void leave(struct sl_call_watch *watch)
{
    script_of(watch)->left++;
}

static bool is_whole(struct sl_call_watch *watch)
{
    const struct script *s = script_of(watch);
    return !s->is_broken || s->entered == s->left;
}

static void begin(struct sl_call_watch *watch, const struct sl_batch *batch, const char *request_id,
                  const char *trace_id)
{
    assert_string_equal(trace_id, "");
    assert_int_equal(batch->n, N);
    assert_string_equal(request_id, "request-1");
    script_of(watch)->begun++;
}

static bool is_suspect(struct sl_call_watch *watch, const char *route, const struct sl_record *record)
{
    return strcmp(route, "r1") == 0 && script_of(watch)->suspects[index_of(record)];
}

static void try_alone(struct sl_call_watch *watch, const struct sl_trial_order *order, struct sl_trial *out)
{
    struct script *s = script_of(watch);
    assert_int_equal(order->route, 0);
    assert_true(order->kill_ms >= order->deadline_ms);
    assert_true(order->kill_ms <= s->rig->invocation.deadline_ms);
    assert_true(s->n_tried < 200);
    assert_true(s->watch.has_suspects); /* else there are no processes for trials any more */
    s->attempts[s->n_tried] = order->attempt;
    s->tried[s->n_tried++] = order->index;
    *out = s->endings[order->index];
    s->begins[s->n_tried - 1] = s->rig->clock.ms;
    s->deadlines[s->n_tried - 1] = order->deadline_ms;
    int64_t ends = s->is_slow ? order->deadline_ms : s->rig->clock.ms + s->takes_ms;
    bool times_out = s->is_in_time && (out->end == SL_TRIAL_TIMED_OUT || ends > order->deadline_ms);
    s->rig->clock.ms = times_out ? order->deadline_ms : ends;
    if (times_out && out->end == SL_TRIAL_RETURNED)
        *out = (struct sl_trial){.end = SL_TRIAL_TIMED_OUT};
    s->n_ended += out->end != SL_TRIAL_UNABLE;
    if (out->end != SL_TRIAL_UNABLE)
        note_given(s, order->index, out->end == SL_TRIAL_RETURNED && out->status == SL_OK);
    s->watch.has_suspects = out->end != SL_TRIAL_UNABLE;
}

static void prove(struct sl_call_watch *watch, const struct sl_trial_order *order,
                  const struct sl_trial *trial)
{
    struct script *s = script_of(watch);
    assert_int_equal(trial->end, s->endings[order->index].end);
    s->proven[s->n_proven++] = order->index;
}

static struct script *script_new(const char *config)
{
    struct script *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->watch = (struct sl_call_watch){true, enter, leave, is_whole, begin, is_suspect, try_alone, prove};
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
    uint64_t counted = 0;
    rig_event(s->rig, N, key);
    rig_run(s->rig, 10000);
    assert_int_equal(s->begun, 1);
    for (size_t i = 0; i < sl_pipeline_routes(s->rig->p); i++)
        counted += sl_pipeline_stats(s->rig->p, i).calls;
    assert_int_equal(counted, s->entered + s->n_ended); /* a trial is a call, wherever it is made */
}

static const char *failed_at(size_t index)
{
    static char text[80];
    snprintf(text, sizeof(text), "{'batchItemFailures':[{'itemIdentifier':'%zu'}]}", 1000 + index);
    return text;
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
    rig_answers(s->rig, "{'batchItemFailures':[]}");
    script_destroy(s);
}

static void without_suspects_nothing_is_tried_alone(void **state)
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
            s->suspects[at ? at - 1 : 1] = true; /* it passes: the control */
            s->endings[at] = (struct sl_trial){.end = SL_TRIAL_CRASHED, .number = SIGBUS};
            run(s, NULL);
            rig_answers(s->rig, "{'batchItemFailures':[]}");
            assert_int_equal(s->rig->handlers[once ? RIG_ONCE : RIG_ONE].n_applied, N - 2);
            struct rig_port *dlq = rig_port(s->rig, "dlq");
            char sequence[40];
            snprintf(sequence, sizeof(sequence), "'SequenceNumber':'%zu'", 1000 + at);
            assert_int_equal(dlq->n, 1);
            assert_non_null(strstr(dlq->bodies[0], json(sequence)));
            assert_non_null(strstr(dlq->bodies[0], json("'code':'HandlerCrashed','message':'the handler died "
                                                        "of SIGBUS on this record alone, twice'")));
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
    rig_answers(s->rig, "{'batchItemFailures':[]}");
    assert_int_equal(rig_port(s->rig, "dlq")->n, 1);
    assert_non_null(strstr(rig_port(s->rig, "dlq")->bodies[0], json("'code':'Bad','message':'it is bad'")));
    assert_int_equal(s->rig->handlers[RIG_ONE].times[4] + s->rig->handlers[RIG_ONE].times[6], 0);
    script_destroy(s);
}

/* An outage that a trial meets is waited out, in pauses that grow, until the time ends. */
static void a_trial_that_meets_an_outage_is_made_again(void **state)
{
    (void)state;
    struct script *s = script_new("{" PARKING R2);
    s->suspects[4] = true;
    s->endings[4] = (struct sl_trial){
        .end = SL_TRIAL_RETURNED, .status = SL_RETRY, .error = {SL_RETRY, SL_NO_OFFSET, "Slow", "slow down"}};
    run(s, NULL);
    rig_answers(s->rig, failed_at(4));
    assert_string_equal(s->rig->answer.error.code, "Slow");
    assert_true(s->n_tried > 3);
    for (size_t i = 0; i < s->n_tried; i++) {
        assert_int_equal(s->tried[i], 4);
        assert_int_equal(s->attempts[i], i);
    }
    assert_int_equal(s->rig->handlers[RIG_ONE].n_applied, 4);
    script_destroy(s);
}

static const struct ending {
    enum sl_trial_end end;
    int number;
    const char *code;
    bool is_fleeting; /* an outage can look like that */
} endings[] = {
    {SL_TRIAL_CRASHED, SIGABRT, "HandlerCrashed", false},
    {SL_TRIAL_EXITED, 3, "HandlerExited", false},
    {SL_TRIAL_MISUSED, 0, "HandlerMisuse", false},
    {SL_TRIAL_CLOSED, 0, "HandlerClosedDescriptors", false},
    {SL_TRIAL_KILLED, SIGKILL, "HandlerKilled", true},
    {SL_TRIAL_TIMED_OUT, 0, "HandlerTimedOut", true},
};
#define ENDINGS (sizeof(endings) / sizeof(endings[0]))

static void end_of(struct script *s, size_t index, const struct ending *how)
{
    s->endings[index] = (struct sl_trial){.end = how->end, .number = how->number};
    if (how->end == SL_TRIAL_MISUSED)
        sl_fail(&s->endings[index].error, SL_FATAL, how->code, "it marked record 1 of 1");
}

static size_t times_tried(const struct script *s, size_t index)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_tried; i++)
        n += s->tried[i] == index;
    return n;
}

/* Each ending on each record, in both modes: where another record passes, this one alone is set aside. */
static void with_a_control_the_record_alone_is_set_aside(void **state)
{
    (void)state;
    for (size_t c = 0; c < ENDINGS; c++)
        for (size_t at = 0; at < N; at++)
            for (int mode = 0; mode < 4; mode++) {
                bool reports = mode & 1, parks = mode & 2;
                char config[200];
                snprintf(config, sizeof(config),
                         "{'on_failure':'%s','report_batch_item_failures':%s,'max_parked':null," R2,
                         parks ? "mem:dlq" : "report", reports ? "true" : "false");
                struct script *s = script_new(config);
                s->suspects[at] = true;
                end_of(s, at, &endings[c]);
                run(s, NULL);
                assert_int_equal(s->n_proven, 1);
                assert_int_equal(s->proven[0], at);
                assert_int_equal(s->rig->handlers[RIG_ONE].times[at], 0);
                for (size_t i = at + 1; parks && i < N; i++) /* what the control did counts */
                    assert_int_equal(times_tried(s, i) + s->rig->handlers[RIG_ONE].times[i], 1);
                if (parks) {
                    rig_answers(s->rig, "{'batchItemFailures':[]}");
                    assert_int_equal(rig_port(s->rig, "dlq")->n, 1);
                    assert_non_null(strstr(rig_port(s->rig, "dlq")->bodies[0], endings[c].code));
                } else if (reports && at) {
                    rig_answers(s->rig, failed_at(at));
                } else { /* halved until it is alone */
                    assert_true(s->rig->answer.is_error);
                }
                if (!parks)
                    assert_int_equal(s->rig->answer.error.status, SL_REJECT);
                script_destroy(s);
            }
}

/* An outage, a broken plugin: every record ends so. What a record may do to the handler is cut up by a
 * function error; what an outage may do is not. */
static void where_every_record_ends_so_nothing_is_set_aside(void **state)
{
    (void)state;
    for (size_t c = 0; c < ENDINGS; c++)
        for (size_t at = 0; at < N; at += 7) {
            struct script *s = script_new("{" PARKING R2);
            for (size_t i = at; i < N; i++) {
                s->suspects[i] = true;
                end_of(s, i, &endings[c]);
            }
            s->endings[at ? at - 1 : 0] =
                s->endings[at]; /* what passed before ends so too, when it is repeated */
            run(s, NULL);
            assert_int_equal(s->n_proven, 0);
            assert_int_equal(rig_port(s->rig, "dlq")->n, 0);
            assert_true(s->n_tried <= 7);
            /* Three others; a record that did not return has more time then. */
            if (at == 0)
                assert_int_equal(s->n_tried, endings[c].end == SL_TRIAL_TIMED_OUT ? 5 : 4);
            assert_string_equal(s->rig->answer.error.code, endings[c].code);
            assert_int_equal(s->rig->answer.error.status, endings[c].is_fleeting ? SL_RETRY : SL_FATAL);
            assert_int_equal(s->rig->answer.is_error, at == 0 && !endings[c].is_fleeting);
            if (!s->rig->answer.is_error)
                rig_answers(s->rig, failed_at(at));
            assert_true(s->rig->clock.ms < s->rig->invocation.deadline_ms);
            script_destroy(s);
        }
}

static size_t of_one(size_t i)
{
    (void)i;
    return 0;
}

/* All records are of one item, so none may overtake: a control is the one before, or there is none. */
static void without_a_control_the_batch_is_halved(void **state)
{
    (void)state;
    for (size_t c = 0; c < ENDINGS; c++)
        for (size_t at = 0; at < N; at += 19)
            for (int once = 0; once < 2; once++) {
                struct script *s = script_new(once ? "{" PARKING ONCE : "{" PARKING R2);
                s->suspects[at] = true;
                end_of(s, at, &endings[c]);
                run(s, of_one);
                bool has_control = at && !once; /* what is done once is not repeated */
                assert_int_equal(s->n_proven, has_control);
                assert_int_equal(rig_port(s->rig, "dlq")->n, has_control);
                if (!has_control)
                    assert_int_equal(s->rig->answer.is_error, at == 0);
                script_destroy(s);
            }
}

/* A crash in a port or in open() is never a record's, whatever other records do. */
static void what_happens_elsewhere_is_never_a_records(void **state)
{
    (void)state;
    for (size_t c = 0; c < ENDINGS; c++)
        for (size_t at = 0; at < N; at += 7)
            for (enum sl_trial_place place = SL_TRIAL_IN_PORT; place <= SL_TRIAL_IN_OPEN; place++) {
                struct script *s = script_new("{" PARKING R2);
                s->suspects[at] = true;
                for (size_t i = 0; i < at; i++)
                    s->suspects[i] = true; /* they pass */
                end_of(s, at, &endings[c]);
                s->endings[at].place = place;
                run(s, NULL);
                assert_int_equal(s->n_proven, 0);
                assert_int_equal(rig_port(s->rig, "dlq")->n, 0);
                assert_int_equal(s->rig->answer.is_error, at == 0 && !endings[c].is_fleeting);
                if (!s->rig->answer.is_error)
                    rig_answers(s->rig, failed_at(at));
                bool is_in_port = place == SL_TRIAL_IN_PORT;
                if (!endings[c].is_fleeting) {
                    assert_string_equal(s->rig->answer.error.code,
                                        is_in_port ? "PortCrashed" : "HandlerNotOpened");
                    assert_non_null(
                        strstr(s->rig->answer.error.text,
                               is_in_port ? " inside a port (" : " while it opened the handlers ("));
                }
                script_destroy(s);
            }
}

/* What the handler returns is no such ending. */
static void returned_failures_reject_nothing(void **state)
{
    (void)state;
    static const struct sl_trial returned[] = {{.status = SL_RETRY},
                                               {.status = SL_FATAL, .error = {SL_FATAL, 0, "Denied", "no"}}};
    for (size_t c = 0; c < 2; c++)
        for (size_t at = 0; at < N; at += 7) {
            struct script *s = script_new("{" PARKING R2);
            s->suspects[at] = true;
            s->endings[at] = returned[c];
            s->takes_ms = 1000;
            run(s, NULL);
            rig_answers(s->rig, failed_at(at));
            assert_int_equal(rig_port(s->rig, "dlq")->n, 0);
            assert_int_equal(s->rig->handlers[RIG_TWO].n_applied, at);
            assert_true(s->rig->clock.ms < s->rig->invocation.deadline_ms);
            script_destroy(s);
        }
}

/* Right after the call: no other route, no parking, no line. */
static void closed_descriptors_end_the_work_at_once(void **state)
{
    (void)state;
    struct script *s = script_new("{" PARKING R2);
    s->rig->handlers[RIG_ONE].plan[3] = RIG_POISON;
    s->rig->handlers[RIG_ONE].marks = true;
    s->is_broken = true;
    run(s, NULL);
    assert_true(s->rig->answer.is_error && s->rig->answer.is_ruined);
    assert_string_equal(s->rig->answer.error.code, "HandlerClosedDescriptors");
    assert_non_null(strstr(s->rig->answer.error.text, "route r1: the handler closed"));
    assert_non_null(strstr(s->rig->answer.error.text, "20 records, sequence numbers 1000 to 1019"));
    assert_int_equal(s->rig->handlers[RIG_ONE].calls, 1);
    assert_int_equal(s->rig->handlers[RIG_TWO].calls, 0);
    assert_int_equal(rig_port(s->rig, "dlq")->n, 0);
    assert_int_equal(s->left, 0); /* the next process learns what was held */
    s->left = s->entered;
    script_destroy(s);
}

static size_t of_two(size_t i)
{
    return i % 2;
}

/* Record 2 fails for now: the later ones of its item wait, suspects among them. */
static void suspects_after_a_failure_of_their_item_wait(void **state)
{
    (void)state;
    struct script *s = script_new("{" PARKING R2);
    s->rig->handlers[RIG_ONE].marks = true;
    s->rig->handlers[RIG_ONE].plan[2] = RIG_BROKEN;
    s->suspects[4] = s->suspects[5] = true;
    run(s, of_two);
    rig_answers(s->rig, failed_at(2));
    assert_int_equal(s->n_tried, 0); /* FATAL stops the route */
    script_destroy(s);

    s = script_new("{'on_failure':'report','report_batch_item_failures':true,'max_parked':null," R2);
    s->rig->handlers[RIG_ONE].plan[2] = RIG_POISON;
    s->rig->handlers[RIG_ONE].marks = true;
    s->suspects[4] = s->suspects[5] = true;
    run(s, of_two);
    rig_answers(s->rig, failed_at(2));
    assert_int_equal(s->n_tried, 1);
    assert_int_equal(s->tried[0], 5);
    script_destroy(s);
}

static void where_no_trial_can_run_dispatch_goes_on(void **state)
{
    (void)state;
    struct script *s = script_new("{" PARKING R2);
    s->suspects[4] = s->suspects[9] = true;
    s->endings[4] = (struct sl_trial){.end = SL_TRIAL_UNABLE};
    run(s, NULL);
    rig_answers(s->rig, "{'batchItemFailures':[]}");
    assert_int_equal(s->n_tried, 1);
    assert_int_equal(s->rig->handlers[RIG_ONE].n_applied, N);
    script_destroy(s);
}

static void after_a_control_that_cannot_run_no_other_is_tried(void **state)
{
    static const enum sl_trial_end ends[] = {SL_TRIAL_CRASHED, SL_TRIAL_TIMED_OUT};
    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct script *s = script_new("{" PARKING R2);
        s->suspects[4] = true;
        s->endings[4] = (struct sl_trial){.end = ends[i]};
        s->endings[5] = (struct sl_trial){.end = SL_TRIAL_UNABLE};
        run(s, NULL);
        rig_answers(s->rig, failed_at(4));
        assert_int_equal(s->n_tried, 2);
        assert_int_equal(s->n_proven, 0);
        script_destroy(s);
    }
}

/* ---- time ---- */

static int64_t longest_trial(const struct script *s, size_t index, size_t from)
{
    int64_t longest = 0;
    for (size_t i = from; i < s->n_tried; i++)
        if (s->tried[i] == index && s->deadlines[i] - s->begins[i] > longest)
            longest = s->deadlines[i] - s->begins[i];
    return longest;
}

/* However much of the time the records before it took. */
static void a_time_out_after_slow_records_counts_after_a_quarter_of_the_time(void **state)
{
    (void)state;
    for (size_t at = 1; at < N - 1; at++) {
        struct script *s = script_new("{" PARKING R2);
        for (size_t i = 0; i <= at; i++)
            s->suspects[i] = true;
        s->endings[at].end = SL_TRIAL_TIMED_OUT;
        s->is_slow = s->is_in_time = true;
        run(s, NULL);
        assert_int_equal(s->n_proven, at < 9); /* each takes an eighth of what is left */
        assert_true(at >= 9 || longest_trial(s, at, 0) >= 2 * (s->deadlines[0] - s->begins[0]));
        script_destroy(s);
    }
}

/* A record that does not return is set aside only if it has had a quarter of the route's time for itself. */
static void a_time_out_counts_after_a_quarter_of_the_time(void **state)
{
    (void)state;
    size_t set_aside = 0, waits = 0;
    for (int64_t time = 50; time <= 51200; time *= 2)
        for (int64_t takes = 0; takes <= time; takes = takes ? takes * 3 : 1) {
            struct script *s = script_new("{" PARKING R2);
            s->suspects[3] = true;
            s->endings[3].end = SL_TRIAL_TIMED_OUT;
            s->takes_ms = takes;
            s->is_in_time = true;
            rig_event(s->rig, N, NULL);
            rig_run(s->rig, time);
            assert_true(s->rig->clock.ms < s->rig->invocation.deadline_ms);
            assert_int_equal(s->tried[0], 3);
            int64_t share = 8 * (s->deadlines[0] - s->begins[0]);
            if (s->n_proven) {
                assert_true(4 * longest_trial(s, 3, 1) >= share);
                assert_int_equal(rig_port(s->rig, "dlq")->n, 1);
            } else {
                assert_int_equal(s->rig->answer.error.status, SL_RETRY);
                rig_answers(s->rig, failed_at(3));
            }
            *(s->n_proven ? &set_aside : &waits) += 1;
            script_destroy(s);
        }
    assert_true(set_aside > 20 && waits > 5);
}

/* Where no other record passes, nobody else needs the time: the record has all that is left. */
static void without_a_control_a_record_has_all_the_time(void **state)
{
    (void)state;
    struct script *s = script_new("{" PARKING R2);
    for (size_t i = 0; i < N; i++) {
        s->suspects[i] = true;
        s->endings[i].end = SL_TRIAL_TIMED_OUT;
    }
    s->is_in_time = true;
    run(s, NULL);
    size_t last = s->n_tried - 1;
    assert_int_equal(s->tried[last], 0);
    assert_true(last == 4 && s->deadlines[last] + 8 >= s->begins[0] + 8 * (s->deadlines[0] - s->begins[0]));
    assert_int_equal(s->n_proven, 0);
    script_destroy(s);
}

/* ---- any endings ---- */

static uint64_t chance;
static size_t n_items;

static size_t of_some(size_t i)
{
    return i * 5 % n_items;
}

static size_t draw(size_t n)
{
    return (size_t)(sl_random_step(&chance) % n);
}

static void draw_endings(struct script *s)
{
    static const enum sl_status statuses[] = {SL_OK, SL_OK, SL_OK, SL_REJECT, SL_RETRY, SL_FATAL};
    size_t one_in = 1 + draw(8);
    n_items = 1 + draw(N);
    s->key = of_some;
    s->is_in_time = true;
    s->takes_ms = (int64_t)draw(3) * 150;
    for (size_t i = 0; i < N; i++) {
        s->suspects[i] = draw(one_in) == 0;
        if (draw(2))
            continue;
        s->endings[i] = (struct sl_trial){.end = (enum sl_trial_end)draw(SL_TRIAL_UNABLE + 1)};
        if (s->endings[i].end == SL_TRIAL_RETURNED)
            s->endings[i].status = statuses[draw(6)];
        if (s->endings[i].end != SL_TRIAL_RETURNED && draw(4) == 0)
            s->endings[i].place = SL_TRIAL_IN_PORT;
        s->endings[i].number = SIGSEGV;
    }
}

static bool was_done(const struct script *s, size_t i)
{
    const struct sl_trial *ending = &s->endings[i];
    bool was_good = ending->end == SL_TRIAL_RETURNED && ending->status == SL_OK && times_tried(s, i) > 0;
    return was_good || s->rig->handlers[RIG_ONE].times[i] > 0 || s->rig->handlers[RIG_ONCE].times[i] > 0;
}

/* Rejected by itself, or at fault by contrast with another one that passed. */
static bool may_be_parked(const struct script *s, size_t i)
{
    const struct sl_trial *ending = &s->endings[i];
    if (ending->end == SL_TRIAL_RETURNED && ending->status == SL_REJECT)
        return true;
    bool passed = false;
    for (size_t k = 0; k < N; k++)
        passed |= k != i && times_tried(s, k) && was_done(s, k);
    bool timed_out = ending->end == SL_TRIAL_TIMED_OUT || ending->end == SL_TRIAL_RETURNED;
    return passed && ending->place == SL_TRIAL_IN_HANDLER && (ending->end != SL_TRIAL_UNABLE || timed_out);
}

static void expect_nothing_lost(struct script *s)
{
    const struct rig_port *dlq = rig_port(s->rig, "dlq");
    bool parked[N] = {false};
    for (size_t k = 0; k < dlq->n; k++) {
        size_t i = strtoul(strstr(dlq->bodies[k], "\"SequenceNumber\":\"") + 18, NULL, 10) - 1000;
        assert_false(parked[i]);
        parked[i] = true;
        if (!may_be_parked(s, i))
            fail_msg("record %zu is parked: %s", i, dlq->bodies[k]);
    }
    size_t below = s->rig->answer.is_error ? 0 : s->rig->answer.checkpoint;
    for (size_t i = 0; i < below; i++)
        if (parked[i] == was_done(s, i))
            fail_msg("record %zu is %s", i, parked[i] ? "parked and done" : "neither parked nor done");
}

static void whatever_the_endings_are_nothing_is_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        chance = seed * 7919;
        struct script *s =
            script_new(draw(2) ? "{" PARKING ONCE : "{" PARKING "'routes':[{'name':'r1','handler':'one'}]}");
        draw_endings(s);
        rig_event(s->rig, N, of_some);
        rig_run(s->rig, 10000);
        expect_nothing_lost(s);
        assert_true(s->rig->clock.ms < s->rig->invocation.deadline_ms);
        script_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_suspects_are_tried_alone_and_in_order),
        cmocka_unit_test(without_suspects_nothing_is_tried_alone),
        cmocka_unit_test(crash_is_parked_and_nothing_else),
        cmocka_unit_test(outcome_is_the_handlers_own),
        cmocka_unit_test(a_trial_that_meets_an_outage_is_made_again),
        cmocka_unit_test(with_a_control_the_record_alone_is_set_aside),
        cmocka_unit_test(where_every_record_ends_so_nothing_is_set_aside),
        cmocka_unit_test(without_a_control_the_batch_is_halved),
        cmocka_unit_test(what_happens_elsewhere_is_never_a_records),
        cmocka_unit_test(returned_failures_reject_nothing),
        cmocka_unit_test(closed_descriptors_end_the_work_at_once),
        cmocka_unit_test(suspects_after_a_failure_of_their_item_wait),
        cmocka_unit_test(where_no_trial_can_run_dispatch_goes_on),
        cmocka_unit_test(a_time_out_counts_after_a_quarter_of_the_time),
        cmocka_unit_test(a_time_out_after_slow_records_counts_after_a_quarter_of_the_time),
        cmocka_unit_test(without_a_control_a_record_has_all_the_time),
        cmocka_unit_test(whatever_the_endings_are_nothing_is_lost),
        cmocka_unit_test(after_a_control_that_cannot_run_no_other_is_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
