/* Routes that are set aside: what goes into letters and what does not, the breaker, the queue that fails, and
 * letters that are applied. */
#include "handlers/dispatch/letter.h"
#include "handlers/pipeline/route.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define MINUTE       60000
#define HEAD         "{'on_failure':'mem:dlq','report_batch_item_failures':true,"
#define ASIDE        "'set_aside':'sqs:later'"
#define ONE          "{'name':'r1','handler':'one'," ASIDE "}"
#define TWO          "{'name':'r2','handler':'two'}"
#define ONCE         "{'name':'n1','handler':'once'," ASIDE "}"
#define ROUTES(list) HEAD "'routes':[" list "]}"

static struct sl_route_stats stats(struct rig *rig, size_t route)
{
    return sl_pipeline_stats(rig->p, route);
}

static struct rig *new_rig(const char *config, size_t n)
{
    struct rig *rig = rig_new(config);
    rig_event(rig, n, NULL);
    return rig;
}

static void down(struct rig *rig, size_t which, enum sl_status status, const char *code)
{
    rig->handlers[which].always = status;
    rig->handlers[which].code = code;
}

/* Records that the letters of the port hold, of each index; returns how many letters do. */
static size_t letters_of(struct rig *rig, const char *port, unsigned times[RIG_RECORDS])
{
    struct rig_port *queue = rig_port(rig, port);
    for (size_t i = 0; i < queue->n; i++) {
        const char *at = queue->bodies[i];
        assert_true(sl_letter_is(sl_span_str(at)));
        while ((at = strstr(at, "\"SequenceNumber\":\""))) {
            at += strlen("\"SequenceNumber\":\"");
            times[strtoul(at, NULL, 10) - 1000]++;
        }
    }
    return queue->n;
}

static void assert_letters(struct rig *rig, size_t from, size_t to, size_t n)
{
    static unsigned times[RIG_RECORDS];
    memset(times, 0, sizeof(times));
    letters_of(rig, "later", times);
    for (size_t i = 0; i < n; i++)
        if (times[i] != (i >= from && i < to))
            fail_msg("record %zu is in %u letters", i, times[i]);
}

/* ---- what is set aside ---- */

static void a_target_that_is_down_stops_no_other_route(void **state)
{
    (void)state;
    struct rig *rig = new_rig(ROUTES(ONE "," TWO), 50);
    down(rig, RIG_ONE, SL_RETRY, NULL);
    rig_run(rig, MINUTE);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_letters(rig, 0, 50, 50);
    assert_int_equal(rig->handlers[RIG_TWO].n_applied, 50);
    assert_int_equal(stats(rig, 0).set_aside, 50);
    assert_int_equal(rig->answer.set_aside, 50);
    assert_int_equal(rig_port(rig, "dlq")->n, 0);
    const char *body = rig_port(rig, "later")->bodies[0];
    assert_non_null(strstr(body, "{\"sluiceSetAside\":1,\"time\":\"2026-"));
    assert_non_null(strstr(body,
                           "\"account\":\"1\",\"region\":\"us-east-1\",\"table\":\"t\",\"route\":\"r1\","
                           "\"handler\":\"one\",\"target\":\"\",\"epoch\":0,"));
    assert_non_null(
        strstr(body, "\"code\":\"Always\",\"message\":\"as planned\",\"records\":[{\"eventID\":\"e0\","));
    rig_destroy(rig);
}

/* What was applied before the outage is not in a letter; nor is what is rejected. */
static void only_what_is_left_is_set_aside(void **state)
{
    (void)state;
    struct rig *rig = new_rig(ROUTES(ONE "," TWO), 40);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    s->marks = true;
    for (size_t i = 0; i < 40; i++)
        s->plan[i] = i == 7 ? RIG_POISON : i >= 10 && i < 30 ? RIG_OUTAGE : RIG_GOOD;
    rig_run(rig, MINUTE);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_letters(rig, 10, 30, 40);
    assert_int_equal(s->n_applied, 19);
    assert_int_equal(rig_port(rig, "dlq")->n, 1);
    assert_int_equal(stats(rig, 0).parked, 1);
    rig_destroy(rig);
}

/* A record that was parked, and is delivered again because a message before it had no letter: it is parked,
 * whatever its target does now. */
static void what_is_parked_already_is_not_set_aside(void **state)
{
    (void)state;
    struct rig *rig = new_rig(ROUTES("{'name':'r1','handler':'one','set_aside':'sqs:rows'}," ONCE), 20);
    struct rig_handler *one = &rig->handlers[RIG_ONE], *once = &rig->handlers[RIG_ONCE];
    struct rig_port *queue = rig_port(rig, "later");
    one->marks = once->marks = true;
    one->plan[7] = RIG_POISON;
    once->plan[3] = RIG_OUTAGE;
    queue->failures = 1000;
    queue->status = SL_RETRY;
    queue->code = "QueueIsDown";
    rig_run(rig, MINUTE);
    assert_int_equal(rig->answer.checkpoint, 3);
    assert_int_equal(rig_port(rig, "dlq")->n, 1);
    queue->failures = 0;
    once->plan[3] = RIG_GOOD;
    down(rig, RIG_ONE, SL_RETRY, NULL);
    rig_run(rig, MINUTE);
    rig_answers(rig, "{'batchItemFailures':[]}");
    struct rig_port *rows = rig_port(rig, "rows");
    for (size_t i = 0; i < rows->n; i++)
        assert_null(strstr(rows->bodies[i], "\"SequenceNumber\":\"1007\""));
    assert_int_equal(rig_port(rig, "dlq")->n, 1);
    assert_int_equal(stats(rig, 0).set_aside, 19);
    rig_destroy(rig);
}

/* Every code with which a target refuses everything, and what is not such. */
static void only_the_environments_errors_are_set_aside(void **state)
{
    (void)state;
    static const struct {
        enum sl_status status;
        const char *code;
        bool is_aside;
    } cases[] = {
        {SL_FATAL, "AccessDeniedException", true},
        {SL_FATAL, "ResourceNotFoundException", true},
        {SL_FATAL, "KMSDisabledException", true},
        {SL_FATAL, "Http403", true},
        {SL_FATAL, "ExpiredToken", true},
        {SL_FATAL, "NoSuchBucket", true},
        {SL_FATAL, "SomethingUnknown", false},
        {SL_FATAL, "ViewType", false},
        {SL_FATAL, "TwoTables", false},
        {SL_FATAL, "LedgerEpoch", false},
        {SL_FATAL, "KeySchema", false},
        {SL_FATAL, "ValidationException", false},
        {SL_FATAL, "Http400", false},
        {SL_RETRY, "AnythingAtAll", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = new_rig(ROUTES(ONE "," TWO), 5);
        rig->handlers[RIG_ONE].plan[2] = cases[i].status;
        rig->handlers[RIG_ONE].code = cases[i].code;
        rig->handlers[RIG_ONE].marks = true;
        rig_run(rig, MINUTE);
        if (rig->answer.checkpoint != (cases[i].is_aside ? 5 : 2) ||
            (stats(rig, 0).set_aside > 0) != cases[i].is_aside)
            fail_msg("%s: checkpoint %zu", cases[i].code, rig->answer.checkpoint);
        rig_destroy(rig);
    }
}

/* Time that others have used up is not the target's fault: it was not even called. */
static void what_was_not_tried_is_not_set_aside(void **state)
{
    (void)state;
    struct rig *rig = new_rig(ROUTES(TWO "," ONE), 5);
    rig->handlers[RIG_TWO].takes_ms = MINUTE;
    rig_run(rig, 100);
    assert_int_equal(rig_port(rig, "later")->n, 0);
    assert_int_equal(rig->answer.checkpoint, 0);
    rig_destroy(rig);
}

static void a_slow_target_is_set_aside(void **state)
{
    (void)state;
    struct rig *rig =
        new_rig(HEAD "'routes':[{'name':'r1','handler':'one','max_records':5," ASIDE "}," TWO "]}", 50);
    rig->handlers[RIG_ONE].takes_ms = 10000;
    rig_run(rig, MINUTE);
    rig_answers(rig, "{'batchItemFailures':[]}");
    size_t applied = rig->handlers[RIG_ONE].n_applied;
    assert_in_range(applied, 5, 15);
    assert_letters(rig, applied, 50, 50);
    assert_int_equal(rig->handlers[RIG_TWO].n_applied, 50);
    rig_destroy(rig);
}

/* ---- the breaker ---- */

static void a_probe_a_batch_and_then_more_and_more(void **state)
{
    (void)state;
    struct rig *rig = new_rig(ROUTES(ONE "," TWO), 500);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    down(rig, RIG_ONE, SL_RETRY, NULL);
    rig_run(rig, MINUTE);
    for (int i = 0; i < 3; i++) { /* the batches of an outage */
        rig_forget(rig);
        int64_t began = rig->clock.ms;
        rig_run(rig, MINUTE);
        assert_true(rig->clock.ms - began <= 5000);
        assert_int_equal(s->largest, 10);
        assert_letters(rig, 0, 500, 500);
        assert_int_equal(rig->handlers[RIG_TWO].n_applied, 500);
        assert_int_equal(stats(rig, 0).probes, i + 1);
    }
    rig_forget(rig);
    down(rig, RIG_ONE, SL_OK, NULL);
    rig_run(rig, MINUTE);
    assert_int_equal(s->n_applied, 500);
    assert_int_equal(s->calls, 3); /* 10, 100, 390 */
    assert_int_equal(s->largest, 390);
    assert_int_equal(rig_port(rig, "later")->n, 0);
    rig_forget(rig);
    rig_run(rig, MINUTE);
    assert_int_equal(s->calls, 1);
    rig_destroy(rig);
}

/* Small batches: ten records have to pass, in however many batches, before more come. */
static void the_breaker_remembers_from_batch_to_batch(void **state)
{
    (void)state;
    struct rig *rig = new_rig(ROUTES(ONE), 30);
    down(rig, RIG_ONE, SL_RETRY, NULL);
    rig_run(rig, MINUTE);
    down(rig, RIG_ONE, SL_OK, NULL);
    for (size_t passed = 0; passed < 140; passed += 4) {
        rig_event(rig, 4, NULL);
        rig_run(rig, MINUTE);
        assert_int_equal(rig->p->routes[0].aside.is_open, passed + 4 < 110);
    }
    rig_destroy(rig);
}

/* A target that fails again at the second step is set aside without a further call. */
static void a_target_that_takes_ten_and_no_more(void **state)
{
    (void)state;
    struct rig *rig = new_rig(ROUTES(ONE), 300);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    down(rig, RIG_ONE, SL_RETRY, NULL);
    rig_run(rig, MINUTE);
    rig_forget(rig);
    down(rig, RIG_ONE, SL_OK, NULL);
    for (size_t i = 10; i < 300; i++)
        s->plan[i] = RIG_OUTAGE;
    int64_t began = rig->clock.ms;
    rig_run(rig, MINUTE);
    assert_true(rig->clock.ms - began <= 5000);
    assert_int_equal(s->n_applied, 10);
    assert_int_equal(s->largest, 100);
    assert_letters(rig, 10, 300, 300);
    rig_destroy(rig);
}

/* Poison behind an open breaker is parked, and the target has proven nothing by it. */
static void a_rejection_is_no_proof_and_is_parked(void **state)
{
    (void)state;
    struct rig *rig = new_rig(ROUTES(ONE), 5);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    down(rig, RIG_ONE, SL_RETRY, NULL);
    rig_run(rig, MINUTE);
    rig_forget(rig);
    down(rig, RIG_ONE, SL_OK, NULL);
    memset(s->plan, RIG_POISON, 5);
    s->marks = true;
    rig_run(rig, MINUTE);
    assert_int_equal(rig_port(rig, "dlq")->n, 5);
    assert_true(rig->p->routes[0].aside.is_open);
    assert_int_equal(rig->p->routes[0].aside.passed, 0);
    rig_destroy(rig);
}

static void a_paused_route_is_not_called(void **state)
{
    (void)state;
    struct rig *rig =
        new_rig(HEAD "'routes':[{'name':'r1','handler':'one','paused':true," ASIDE "}," TWO "]}", 20);
    for (int i = 0; i < 2; i++) {
        rig_run(rig, MINUTE);
        rig_answers(rig, "{'batchItemFailures':[]}");
        assert_int_equal(rig->handlers[RIG_ONE].calls, 0);
        assert_letters(rig, 0, 20, 20);
        assert_non_null(strstr(rig_port(rig, "later")->bodies[0], "\"code\":\"Paused\""));
        rig_forget(rig);
    }
    rig_destroy(rig);
}

/* ---- the queue ---- */

static void what_cannot_be_written_fails_at_its_place(void **state)
{
    (void)state;
    static const enum sl_status statuses[] = {SL_RETRY, SL_REJECT, SL_FATAL};
    for (size_t i = 0; i < 3; i++) {
        struct rig *rig = new_rig(ROUTES(ONE "," TWO), 20);
        struct rig_handler *s = &rig->handlers[RIG_ONE];
        s->marks = true;
        for (size_t k = 8; k < 20; k++)
            s->plan[k] = RIG_OUTAGE;
        struct rig_port *queue = rig_port(rig, "later");
        queue->failures = 1000;
        queue->status = statuses[i];
        queue->code = "QueueIsDown";
        rig_run(rig, MINUTE);
        assert_int_equal(rig->answer.checkpoint, 8);
        assert_string_equal(rig->answer.error.code, "QueueIsDown");
        assert_non_null(strstr(rig->answer.error.text,
                               "cannot be set aside: the port is planned to fail; it failed: "
                               "Planned: record "));
        assert_false(rig->p->routes[0].aside.is_open); /* nothing was written */
        queue->failures = 0;
        rig_run(rig, MINUTE);
        rig_answers(rig, "{'batchItemFailures':[]}");
        rig_destroy(rig);
    }
}

static void a_queue_that_is_down_for_a_moment_is_asked_again(void **state)
{
    (void)state;
    struct rig *rig = new_rig(ROUTES(ONE), 20);
    down(rig, RIG_ONE, SL_RETRY, NULL);
    struct rig_port *queue = rig_port(rig, "later");
    queue->failures = 3;
    queue->status = SL_RETRY;
    rig_run(rig, MINUTE);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_letters(rig, 0, 20, 20);
    rig_destroy(rig);
}

/* Letters have 200 KB at most; one record may have as much as the queue takes. */
static void letters_have_a_size(void **state)
{
    (void)state;
    struct rig *rig = rig_new(ROUTES(ONE));
    struct sl_buffer text;
    sl_buffer_init(&text, 16 << 20);
    sl_buffer_add_str(&text, "{'Records':[");
    for (size_t i = 0; i < 60; i++)
        sl_buffer_printf(
            &text,
            "%s{'eventID':'e%zu','eventName':'MODIFY','eventSource':'aws:dynamodb','dynamodb':{'Keys':{"
            "'PK':{'S':'k%zu'}},'NewImage':{'v':{'S':'%0*d'}},'SequenceNumber':'%zu'}}",
            i ? "," : "", i, i,
            i == 30   ? 300000
            : i == 40 ? 700000
                      : 20000,
            0, 1000 + i);
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    rig_event_text(rig, text.ptr, 60);
    sl_buffer_clean_up(&text);
    *rig_port(rig, "later")->max_bytes = 512 * 1024;
    down(rig, RIG_ONE, SL_RETRY, NULL);
    rig_run(rig, MINUTE);
    assert_int_equal(rig->answer.checkpoint, 40);
    assert_string_equal(rig->answer.error.code, "TooLarge");
    struct rig_port *queue = rig_port(rig, "later");
    size_t large = 0;
    for (size_t i = 0; i < queue->n; i++) {
        large += strlen(queue->bodies[i]) > 201 * 1024;
        assert_true(strlen(queue->bodies[i]) < 302 * 1024);
    }
    assert_int_equal(large, 1);
    rig_destroy(rig);
}

/* ---- once-only routes ---- */

static void a_message_has_a_letter_of_its_own_below_the_checkpoint(void **state)
{
    (void)state;
    struct rig *rig = new_rig(ROUTES(ONCE ",{'name':'n2','handler':'twice'}"), 30);
    struct rig_handler *s = &rig->handlers[RIG_ONCE], *other = &rig->handlers[RIG_TWICE];
    s->marks = other->marks = true;
    for (size_t i = 5; i < 30; i++)
        s->plan[i] = RIG_OUTAGE;
    rig_run(rig, MINUTE);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_int_equal(rig_port(rig, "later")->n, 25);
    assert_letters(rig, 5, 30, 30);
    assert_int_equal(other->n_applied, 30);
    rig_forget(rig);
    /* The other fails at 12: nothing from there on is in a letter, or it would come twice. */
    other->plan[12] = RIG_OUTAGE;
    memset(s->plan, RIG_OUTAGE, 30);
    rig_run(rig, MINUTE);
    assert_int_equal(rig->answer.checkpoint, 12);
    assert_letters(rig, 0, 12, 30);
    rig_destroy(rig);
}

/* A letter that was written above the checkpoint is remembered. */
static void a_letter_is_written_once(void **state)
{
    (void)state;
    struct rig *rig = new_rig(ROUTES(ONCE), 6);
    down(rig, RIG_ONCE, SL_RETRY, NULL);
    struct rig_port *queue = rig_port(rig, "later");
    queue->failures = 1;
    queue->status = SL_FATAL;
    rig_run(rig, MINUTE);
    assert_int_equal(rig->answer.checkpoint, 0); /* the first letter failed, and five others are there */
    assert_int_equal(queue->n, 5);
    rig_run(rig, MINUTE);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_letters(rig, 0, 6, 6);
    rig_destroy(rig);
}

/* A route that sends once holds the batch, after the letters were written: what waits in them is not set
 * aside with each delivery again, and is not taken for what proves that the target is well. */
static void what_waits_already_is_not_set_aside_again(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct rig *rig = new_rig(ROUTES(ONE ",{'name':'n1','handler':'once'}"), N);
    down(rig, RIG_ONE, SL_RETRY, NULL);
    rig->handlers[RIG_ONCE].marks = true;
    rig->handlers[RIG_ONCE].plan[5] = RIG_OUTAGE;
    for (int delivery = 0; delivery < 3; delivery++) {
        rig_run(rig, MINUTE);
        assert_int_equal(rig->answer.checkpoint, 5);
        assert_true(rig->p->routes[0].aside.is_open);
    }
    rig->handlers[RIG_ONCE].plan[5] = RIG_GOOD;
    rig_run(rig, MINUTE);
    rig_answers(rig, "{'batchItemFailures':[]}");
    unsigned times[RIG_RECORDS] = {0};
    letters_of(rig, "later", times);
    for (size_t i = 5; i < N; i++) /* a mapping delivers none below its checkpoint again */
        assert_int_equal(times[i], 1);
    /* Once the target is well, what is remembered is forgotten. */
    down(rig, RIG_ONE, SL_OK, NULL);
    rig_event(rig, 2 * N, NULL);
    rig_run(rig, MINUTE);
    assert_false(rig->p->routes[0].aside.is_open);
    assert_int_equal(rig->p->routes[0].aside.n_seen, 0);
    rig_destroy(rig);
}

/* A rehearsed outage (SLUICE_OUTAGE): the handler is not called, and what it left of earlier calls counts for
 * nothing. */
static void a_rehearsed_outage_is_one(void **state)
{
    (void)state;
    static const char *const firsts[] = {ONE, ONCE, "{'name':'r1','handler':'one'}"};
    for (size_t i = 0; i < 3; i++) {
        char routes[300];
        snprintf(routes, sizeof(routes), ROUTES("%s," TWO), firsts[i]);
        struct rig *rig = new_rig(routes, 20);
        struct rig_handler *h = &rig->handlers[i == 1 ? RIG_ONCE : RIG_ONE];
        h->marks = true;
        h->plan[3] = RIG_POISON;
        rig_run(rig, MINUTE); /* leaves marks of all kinds behind */
        const size_t calls = h->calls, parked = rig_port(rig, "dlq")->n;
        rig->p->routes[0].is_out = true;
        rig_event(rig, 40, NULL);
        rig_run(rig, MINUTE);
        assert_int_equal(h->calls, calls);
        assert_int_equal(rig_port(rig, "dlq")->n, parked);
        assert_int_equal(rig->answer.set_aside, i == 2 ? 0 : 40);
        if (i == 2) {
            assert_int_equal(rig->answer.checkpoint, 0);
            assert_string_equal(rig->answer.error.code, SL_OUTAGE);
        }
        rig_destroy(rig);
    }
}

/* ---- letters are applied ---- */

static enum sl_letter_outcome apply(struct rig *rig, const char *text, struct sl_error *error)
{
    int64_t age_ms;
    rig->invocation.deadline_ms = rig->clock.ms + MINUTE;
    sl_error_clear(error);
    return sl_letter_apply(rig->p, sl_span_str(text), &rig->invocation, &rig->answer, &age_ms, error);
}

static char *one_letter(struct rig *rig, size_t n)
{
    rig_event(rig, n, NULL);
    enum sl_status was = rig->handlers[RIG_ONE].always;
    rig->handlers[RIG_ONE].always = SL_RETRY;
    rig_run(rig, MINUTE);
    rig->handlers[RIG_ONE].always = was;
    assert_int_equal(rig_port(rig, "later")->n, 1);
    char *text = strdup(rig_port(rig, "later")->bodies[0]);
    rig_forget(rig);
    sl_arena_reset(rig->arena);
    return text;
}

static void a_letter_goes_through_its_route_alone(void **state)
{
    (void)state;
    struct rig *rig = rig_new(HEAD "'routes':[{'name':'r0','handler':'two'},{'name':'r1','handler':'one','"
                                   "when':{'events':['INSERT','MODIFY']}," ASIDE "}]}");
    char *text = one_letter(rig, 20);
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(apply(rig, text, &error), SL_LETTER_DONE);
    assert_int_equal(rig->handlers[RIG_ONE].n_applied, 20);
    assert_int_equal(rig->handlers[RIG_ONE].epoch, 0);
    assert_int_equal(rig->handlers[RIG_TWO].calls, 0);
    assert_int_equal(rig_port(rig, "later")->n, 0);
    /* Down still: nothing is set aside again. */
    rig_forget(rig);
    down(rig, RIG_ONE, SL_RETRY, NULL);
    assert_int_equal(apply(rig, text, &error), SL_LETTER_LATER);
    down(rig, RIG_ONE, SL_FATAL, NULL);
    assert_int_equal(apply(rig, text, &error), SL_LETTER_FAILED);
    assert_string_equal(error.code, "Always");
    assert_int_equal(rig_port(rig, "later")->n, 0);
    /* Poison is parked. */
    down(rig, RIG_ONE, SL_OK, NULL);
    rig->handlers[RIG_ONE].plan[3] = RIG_POISON;
    assert_int_equal(apply(rig, text, &error), SL_LETTER_DONE);
    assert_int_equal(rig_port(rig, "dlq")->n, 1);
    free(text);
    rig_destroy(rig);
}

/* A letter is redelivered as a whole: its poison is parked once, however often its target fails at the rest.
 */
static void poison_of_a_letter_is_parked_once(void **state)
{
    (void)state;
    struct rig *rig = rig_new(HEAD "'routes':[{'name':'r1','handler':'one'," ASIDE "}]}");
    char *text = one_letter(rig, 20);
    struct sl_error error = SL_NO_ERROR;
    rig->handlers[RIG_ONE].marks = true;
    rig->handlers[RIG_ONE].plan[3] = RIG_POISON;
    rig->handlers[RIG_ONE].plan[10] = RIG_OUTAGE;
    for (int delivery = 0; delivery < 4; delivery++) {
        assert_int_equal(apply(rig, text, &error), SL_LETTER_LATER);
        assert_int_equal(rig_port(rig, "dlq")->n, 1);
    }
    rig->handlers[RIG_ONE].plan[10] = RIG_GOOD;
    assert_int_equal(apply(rig, text, &error), SL_LETTER_DONE);
    assert_int_equal(rig_port(rig, "dlq")->n, 1);
    free(text);
    rig_destroy(rig);
}

static char *with(const char *text, const char *what, const char *instead)
{
    const char *at = strstr(text, what);
    assert_non_null(at);
    char *out = NULL;
    assert_true(asprintf(&out, "%.*s%s%s", (int)(at - text), text, instead, at + strlen(what)) > 0);
    return out;
}

/* Whatever of it is another's, nothing is applied, parked or set aside. */
static void a_letter_that_is_not_ours_is_left_alone(void **state)
{
    (void)state;
    static const struct {
        const char *what, *instead, *code; /* NULL: it matches all the same */
    } cases[] = {
        {"\"sluiceSetAside\":1", "\"sluiceSetAside\":2", "BadLetter"},
        {"\"sluiceSetAside\":1", "\"sluiceParked\":1", "BadLetter"},
        {"\"route\":\"r1\"", "\"route\":\"gone\"", "OtherRoute"},
        {"\"target\":\"mem:x\"", "\"target\":\"mem:y\"", "OtherTarget"},
        {"\"target\":\"mem:x\"", "\"target\":\"\"", NULL},
        {"\"epoch\":3", "\"epoch\":4", "LaterEpoch"},
        {"\"epoch\":3", "\"epoch\":9", "LaterEpoch"},
        {"\"epoch\":3", "\"epoch\":2", NULL},
        {"\"epoch\":3", "\"epoch\":-1", "BadLetter"},
        {"\"epoch\":3", "\"epoch\":3.5", "BadLetter"},
        {"\"table\":\"t\"", "\"table\":\"u\"", "BadLetter"},
        {"\"table\":\"t\"", "\"table\":\"\"", NULL},
        {"table/t/stream/2026-01-01T00:00:00.000\"}]", "table/u/stream/2026-01-01T00:00:00.000\"}]",
         "BadLetter"}, /* the last record */
        {"\"region\":\"us-east-1\"", "\"region\":\"eu-west-1\"", "BadLetter"},
        {"\"account\":\"1\"", "\"account\":\"2\"", "BadLetter"},
        {"\"records\":[", "\"recorded\":[", "BadLetter"},
        {"\"eventName\":\"MODIFY\"", "\"eventName\":\"CHANGE\"", "BadLetter"},
        {"\"records\":[{", "\"records\":[],\"x\":[{", "BadLetter"},
        {"stream/2026-01-01T00:00:00.000", "stream/2027-01-01T00:00:00.000", NULL},
    };
    struct rig *rig =
        rig_new(HEAD "'routes':[{'name':'r1','handler':'one','to':'mem:x','epoch':3," ASIDE "}]}");
    char *text = one_letter(rig, 3);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        char *changed = with(text, cases[i].what, cases[i].instead);
        enum sl_letter_outcome outcome = apply(rig, changed, &error);
        if (outcome != (cases[i].code ? SL_LETTER_FAILED : SL_LETTER_DONE) ||
            (cases[i].code && strcmp(error.code, cases[i].code) != 0) ||
            rig->handlers[RIG_ONE].n_applied != (cases[i].code ? 0 : 3))
            fail_msg("%s: %s: %s", cases[i].instead, error.code, error.text);
        if (strstr(cases[i].instead, "epoch\":2"))
            assert_int_equal(rig->handlers[RIG_ONE].epoch, 2);
        assert_int_equal(rig_port(rig, "dlq")->n + rig_port(rig, "later")->n, 0);
        rig_forget(rig);
        sl_arena_reset(rig->arena);
        free(changed);
    }
    /* Cut anywhere. */
    for (size_t n = 0; n < strlen(text); n += 7) {
        struct sl_error error = SL_NO_ERROR;
        char *cut = strndup(text, n);
        assert_int_equal(apply(rig, cut, &error), SL_LETTER_FAILED);
        assert_string_equal(error.code, "BadLetter");
        sl_arena_reset(rig->arena);
        free(cut);
    }
    free(text);
    rig_destroy(rig);
}

/* Only while the handler still knows what it has applied, but for a day. */
static void what_comes_too_late_is_parked_once(void **state)
{
    (void)state;
    static const int days[] = {0, 13, 14, 20};
    for (size_t i = 0; i < 4; i++) {
        struct rig *rig =
            rig_new(HEAD "'routes':[{'name':'r1','handler':'one','remembers':1296000," ASIDE "}]}");
        char *text = one_letter(rig, 30);
        struct sl_error error = SL_NO_ERROR;
        rig->clock.ms += days[i] * INT64_C(86400000) + (days[i] == 13 ? 86000000 : days[i] == 14 ? 60000 : 0);
        bool is_late = days[i] >= 14;
        assert_int_equal(apply(rig, text, &error), SL_LETTER_DONE);
        assert_int_equal(rig->handlers[RIG_ONE].n_applied, is_late ? 0 : 30);
        assert_int_equal(rig_port(rig, "dlq")->n, is_late ? 30 : 0);
        if (is_late)
            assert_non_null(strstr(rig_port(rig, "dlq")->bodies[0], "\"code\":\"TooLate\""));
        free(text);
        rig_destroy(rig);
    }
}

static void the_letters_of_a_paused_route_wait(void **state)
{
    (void)state;
    struct rig *rig = new_rig(HEAD "'routes':[{'name':'r1','handler':'one','paused':true," ASIDE "}]}", 3);
    struct sl_error error = SL_NO_ERROR;
    rig_run(rig, MINUTE);
    char *text = strdup(rig_port(rig, "later")->bodies[0]);
    assert_int_equal(apply(rig, text, &error), SL_LETTER_LATER);
    assert_string_equal(error.code, "Paused");
    assert_int_equal(rig->handlers[RIG_ONE].calls, 0);
    free(text);
    rig_destroy(rig);
}

/* ---- at the start ---- */

static void what_minds_the_order_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *routes, *text;
    } cases[] = {
        {"{'name':'r','handler':'three'," ASIDE "}",
         "$.routes[0].set_aside: the route cannot be set aside: the handler three does not say"},
        {"{'name':'r','handler':'window'," ASIDE "}",
         "$.routes[0].set_aside: the route cannot be set aside: the route keeps a window's state"},
        {"{'name':'r','handler':'one','remembers':-1," ASIDE "}",
         "$.routes[0].set_aside: the route cannot be set aside: it minds"},
        {"{'name':'r','handler':'one','remembers':1209600," ASIDE "}", "the handler forgets after 14"},
        {"{'name':'r','handler':'one','set_aside':'mem:x'}", "is not a queue that can be drained"},
        {"{'name':'r','handler':'one','set_aside':'s3://x'}", "is not a queue that can be drained"},
        {"{'name':'r','handler':'one','set_aside':'sqs:x.fifo'}", "is a FIFO queue"},
        {"{'name':'r','handler':'one','set_aside':'sqs:x.fifo?region=y'}", "is a FIFO queue"},
        {"{'name':'r','handler':'one'," ASIDE "},{'name':'s','handler':'two'," ASIDE "}",
         "$.routes[1].set_aside: is the queue of the route r too"},
        {"{'name':'r','handler':'one','paused':true}", "$.routes[0].paused: a route without \"set_aside\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        char config[1000];
        snprintf(config, sizeof(config), HEAD "'routes':[%s]}", cases[i].routes);
        rig_refused(config, &error);
        if (!strstr(error.text, cases[i].text))
            fail_msg("%s: %s", cases[i].routes, error.text);
    }
}

/* ---- whatever happens ---- */

static uint64_t draw(uint64_t *seed, uint64_t n)
{
    return sl_random_step(seed) % n;
}

/* Random outages of two targets and of the queue, delivered until all is done: each record is applied by each
 * route, or is in a letter of it; none is parked; and the letters, applied in any order, leave nothing over.
 */
static void nothing_is_lost_whatever_fails(void **state)
{
    (void)state;
    enum { N = 40 };
    for (uint64_t first = 1; first <= 300; first++) {
        uint64_t seed = first;
        struct rig *rig = rig_new(HEAD "'routes':[{'name':'r1','handler':'one','set_aside':'sqs:a'},"
                                       "{'name':'r2','handler':'two'},"
                                       "{'name':'n1','handler':'once','set_aside':'sqs:b'}]}");
        static const size_t which[] = {RIG_ONE, RIG_TWO, RIG_ONCE};
        unsigned in_letters[2][RIG_RECORDS] = {{0}};
        size_t from = 0;
        for (int delivery = 0; from < N; delivery++) {
            for (size_t h = 0; h < 3; h++) {
                struct rig_handler *s = &rig->handlers[which[h]];
                s->marks = draw(&seed, 2);
                for (size_t i = 0; i < N; i++)
                    s->plan[i] = delivery < 6 && draw(&seed, 12) == 0 ? RIG_OUTAGE : RIG_GOOD;
            }
            for (size_t q = 0; q < 2; q++) {
                struct rig_port *queue = rig_port(rig, q ? "b" : "a");
                queue->failures = delivery < 6 ? draw(&seed, 4) : 0;
                queue->status = draw(&seed, 2) ? SL_RETRY : SL_FATAL;
            }
            rig_event(rig, N,
                      NULL); /* what is below the checkpoint is redelivered, too: delivery is at least once */
            rig_run(rig, 5000 + (int64_t)draw(&seed, MINUTE));
            from = rig->answer.checkpoint > from ? rig->answer.checkpoint : from;
            if (rig->answer.checkpoint < N && delivery >= 6)
                fail_msg("seed %llu: %s", (unsigned long long)first, rig->answer.error.text);
        }
        assert_int_equal(letters_of(rig, "a", in_letters[0]) + letters_of(rig, "b", in_letters[1]),
                         rig_port(rig, "a")->n + rig_port(rig, "b")->n);
        for (size_t i = 0; i < N; i++)
            if (!(rig->handlers[RIG_ONE].times[i] + in_letters[0][i]) || !rig->handlers[RIG_TWO].times[i] ||
                !(rig->handlers[RIG_ONCE].times[i] + in_letters[1][i]))
                fail_msg("seed %llu: record %zu is lost", (unsigned long long)first, i);
        assert_int_equal(rig_port(rig, "dlq")->n, 0);
        rig_destroy(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_target_that_is_down_stops_no_other_route),
        cmocka_unit_test(only_what_is_left_is_set_aside),
        cmocka_unit_test(what_is_parked_already_is_not_set_aside),
        cmocka_unit_test(only_the_environments_errors_are_set_aside),
        cmocka_unit_test(what_was_not_tried_is_not_set_aside),
        cmocka_unit_test(a_slow_target_is_set_aside),
        cmocka_unit_test(a_probe_a_batch_and_then_more_and_more),
        cmocka_unit_test(the_breaker_remembers_from_batch_to_batch),
        cmocka_unit_test(a_target_that_takes_ten_and_no_more),
        cmocka_unit_test(a_rejection_is_no_proof_and_is_parked),
        cmocka_unit_test(a_paused_route_is_not_called),
        cmocka_unit_test(what_cannot_be_written_fails_at_its_place),
        cmocka_unit_test(a_queue_that_is_down_for_a_moment_is_asked_again),
        cmocka_unit_test(letters_have_a_size),
        cmocka_unit_test(a_message_has_a_letter_of_its_own_below_the_checkpoint),
        cmocka_unit_test(a_letter_is_written_once),
        cmocka_unit_test(what_waits_already_is_not_set_aside_again),
        cmocka_unit_test(a_rehearsed_outage_is_one),
        cmocka_unit_test(a_letter_goes_through_its_route_alone),
        cmocka_unit_test(poison_of_a_letter_is_parked_once),
        cmocka_unit_test(a_letter_that_is_not_ours_is_left_alone),
        cmocka_unit_test(what_comes_too_late_is_parked_once),
        cmocka_unit_test(the_letters_of_a_paused_route_wait),
        cmocka_unit_test(what_minds_the_order_is_refused),
        cmocka_unit_test(nothing_is_lost_whatever_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
