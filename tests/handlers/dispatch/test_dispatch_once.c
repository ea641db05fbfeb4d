/* Phase 2: parking and once-only effects below the checkpoint; windows; the answer. */
#include "tests/support/rig.h"
#include "base/base64.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define FOREVER 3600000
#define PARKING "'on_failure':'mem:dlq','report_batch_item_failures':true,"
#define REPORT  "'on_failure':'report','report_batch_item_failures':true,"
#define ONCE    "'routes':[{'name':'r1','handler':'one'},{'name':'o1','handler':'once'}]}"
#define TWICE                                                                                                \
    "'routes':[{'name':'o1','handler':'once'},{'name':'r1','handler':'one'},"                                \
    "{'name':'o2','handler':'twice'}]}"

static const char *failed_at(size_t index)
{
    static char text[80];
    snprintf(text, sizeof(text), "{'batchItemFailures':[{'itemIdentifier':'%zu'}]}", 1000 + index);
    return text;
}

static void assert_applied(const struct rig_handler *s, size_t n)
{
    assert_int_equal(s->n_applied, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(s->applied[i], i);
}

/* ---- once-only routes ---- */

static void once_only_effects_stay_below_the_checkpoint(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING ONCE);
    rig->handlers[RIG_ONE].marks = true;
    for (size_t k = 0; k <= 20; k++) {
        if (k < 20)
            rig->handlers[RIG_ONE].plan[k] = RIG_OUTAGE;
        rig_event(rig, 20, NULL);
        rig_run(rig, 10000);
        assert_applied(&rig->handlers[RIG_ONCE], k);
        rig_answers(rig, k < 20 ? failed_at(k) : "{'batchItemFailures':[]}");
        rig->handlers[RIG_ONE].plan[k] = RIG_GOOD;
        rig_forget(rig);
    }
    rig_destroy(rig);
}

static void once_only_failure_lowers_the_checkpoint(void **state)
{
    (void)state;
    for (size_t k = 0; k < 20; k++) {
        struct rig *rig = rig_new("{" PARKING ONCE);
        rig->handlers[RIG_ONCE].marks = true;
        rig->handlers[RIG_ONCE].plan[k] = k % 2 ? RIG_OUTAGE : RIG_BROKEN;
        rig_event(rig, 20, NULL);
        rig_run(rig, 10000);
        rig_answers(rig, failed_at(k));
        assert_int_equal(rig->answer.checkpoint, k);
        assert_int_equal(rig_port(rig, "dlq")->n, 0);
        rig_destroy(rig);
    }
}

static void once_only_rejection_is_parked_at_once(void **state)
{
    (void)state;
    for (int marks = 0; marks < 2; marks++) {
        struct rig *rig = rig_new("{" PARKING ONCE);
        rig->handlers[RIG_ONCE].marks = marks;
        rig->handlers[RIG_ONCE].plan[5] = RIG_POISON;
        rig_event(rig, 20, NULL);
        rig_run(rig, 10000);
        rig_answers(rig, "{'batchItemFailures':[]}");
        assert_int_equal(rig->handlers[RIG_ONCE].n_applied, 19);
        assert_int_equal(rig_port(rig, "dlq")->n, 1);
        assert_int_equal(rig->answer.parked, 1);
        rig_destroy(rig);
    }
}

static void once_only_rejection_without_a_place_is_a_failure(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT ONCE);
    rig->handlers[RIG_ONCE].plan[5] = RIG_POISON;
    rig_event(rig, 20, NULL);
    rig_run(rig, 10000);
    rig_answers(rig, failed_at(5));
    assert_applied(&rig->handlers[RIG_ONCE], 5);
    rig_destroy(rig);
}

/* A once-only route that rejects everything parks nothing: not in the first delivery, and not little by
 * little. */
static void broken_once_only_route_parks_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING ONCE);
    struct rig_handler *s = &rig->handlers[RIG_ONCE];
    s->marks = true;
    memset(s->plan, RIG_POISON, 30);
    rig_event(rig, 30, NULL);
    for (size_t delivery = 0; delivery < 5; delivery++) {
        rig_run(rig, 5000);
        rig_answers(rig, failed_at(0));
        assert_int_equal(rig->answer.error.status, SL_FATAL);
        assert_int_equal(rig_port(rig, "dlq")->n, 0);
    }
    rig_event(rig, 5, NULL); /* what is left of the stream: few enough to be poison, in a batch of its own */
    rig_run(rig, 5000);
    assert_int_equal(rig_port(rig, "dlq")->n, 0);
    rig_answers(rig, failed_at(0));
    memset(s->plan, RIG_GOOD, 200); /* the environment is mended: what is still rejected is poison */
    s->plan[150] = RIG_POISON;
    rig_event(rig, 200, NULL);
    rig_run(rig, 5000);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_int_equal(rig_port(rig, "dlq")->n, 1);
    rig_destroy(rig);
}

/* One bulk in which record 0 was throttled and record 2 refused for good: that does not make record 0 poison,
 * and the batch is not cut up. */
static void a_rejection_after_an_outage_is_not_its_own(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT ONCE);
    rig->handlers[RIG_ONCE].marks = true;
    rig->handlers[RIG_ONCE].plan[0] = RIG_OUTAGE;
    rig->handlers[RIG_ONCE].plan[2] = RIG_POISON;
    rig_event(rig, 5, NULL);
    rig_run(rig, 10000);
    assert_false(rig->answer.is_error);
    assert_int_equal(rig->answer.error.status, SL_RETRY);
    rig_answers(rig, failed_at(0));
    rig_destroy(rig);
}

/* Whatever the one fails at, the other has had everything below the checkpoint, and little above it. */
static void two_once_only_routes_keep_step(void **state)
{
    (void)state;
    for (size_t round = 0; round < 100; round++) {
        struct rig *rig = rig_new("{" PARKING TWICE);
        struct rig_handler *first = &rig->handlers[RIG_ONCE], *second = &rig->handlers[RIG_TWICE];
        struct rig_handler *failing = round % 2 ? first : second, *other = round % 2 ? second : first;
        size_t k = round / 2;
        first->marks = second->marks = true;
        failing->plan[k] = RIG_OUTAGE;
        rig_event(rig, 50, NULL);
        rig_run(rig, 5000);
        rig_answers(rig, failed_at(k));
        for (size_t i = 0; i < k; i++)
            assert_true(first->times[i] == 1 && second->times[i] == 1);
        /* The one that comes second goes no further than the first; the one that came first had gone a step.
         */
        assert_true(other == second ? other->n_applied == k : other->n_applied <= 2 * k + 1);
        rig_destroy(rig);
    }
}

/* An outage of the once-only destination, delivery after delivery: nothing is parked or sent a second time.
 */
static void outage_of_one_effect_does_not_multiply_another(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING ONCE);
    rig->handlers[RIG_ONE].plan[7] = RIG_POISON;
    rig->handlers[RIG_ONCE].marks = true;
    rig->handlers[RIG_ONCE].plan[3] = RIG_OUTAGE;
    rig_event(rig, 20, NULL);
    for (size_t delivery = 0; delivery < 5; delivery++) {
        rig_run(rig, 5000);
        rig_answers(rig, failed_at(3));
        assert_int_equal(rig_port(rig, "dlq")->n, 0);
    }
    rig->handlers[RIG_ONCE].plan[3] = RIG_GOOD;
    rig_run(rig, 5000);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_int_equal(rig_port(rig, "dlq")->n, 1);
    rig_destroy(rig);
}

/* Two effects on one record, the second one's destination down: the first is remembered and not done again.
 */
static void effect_above_the_checkpoint_is_remembered(void **state)
{
    (void)state;
    for (int reports = 0; reports < 2; reports++) {
        struct rig *rig = rig_new(reports ? "{" PARKING TWICE : "{'on_failure':'mem:dlq'," TWICE);
        rig->handlers[RIG_ONE].plan[2] = RIG_POISON;
        rig->handlers[RIG_ONCE].marks = rig->handlers[RIG_TWICE].marks = true;
        rig->handlers[RIG_TWICE].plan[2] = RIG_OUTAGE;
        rig_event(rig, 8, NULL);
        for (size_t delivery = 0; delivery < 4; delivery++) {
            rig_run(rig, 5000);
            assert_int_equal(rig->answer.is_error, !reports);
            assert_int_equal(rig->answer.checkpoint, 2);
        }
        rig->handlers[RIG_TWICE].plan[2] = RIG_GOOD;
        rig_run(rig, 5000);
        rig_answers(rig, "{'batchItemFailures':[]}");
        assert_int_equal(rig_port(rig, "dlq")->n, 1);
        /* What lies below a reported checkpoint is not delivered again, and is not remembered. */
        for (size_t i = reports ? 2 : 0; i < 8; i++)
            assert_true(rig->handlers[RIG_ONCE].times[i] == 1 && rig->handlers[RIG_TWICE].times[i] == 1);
        rig_destroy(rig);
    }
}

static void messages_after_a_parked_record_wait_for_it(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING ONCE);
    rig->handlers[RIG_ONE].plan[7] = RIG_POISON;
    struct rig_port *dlq = rig_port(rig, "dlq");
    dlq->status = SL_RETRY;
    dlq->failures = SIZE_MAX;
    rig_event(rig, 20, NULL);
    rig_run(rig, 5000);
    rig_answers(rig, failed_at(7));
    assert_applied(&rig->handlers[RIG_ONCE], 7);
    rig_destroy(rig);
}

/* ---- parking ---- */

static void a_parked_record_holds_all_of_itself(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING ONCE);
    rig->handlers[RIG_ONE].plan[2] = RIG_POISON;
    rig->handlers[RIG_ONE].code = "Odd \"code\"";
    rig_event(rig, 5, NULL);
    rig_run(rig, FOREVER);
    struct rig_port *dlq = rig_port(rig, "dlq");
    assert_int_equal(dlq->n, 1);
    assert_null(strchr(dlq->bodies[0], '\n'));
    json_t *message = json_loads(dlq->bodies[0], JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(message);
    int format, epoch;
    const char *time, *route, *handler, *status, *code, *text, *request, *function, *stream, *id;
    assert_int_equal(
        json_unpack_ex(message, NULL, JSON_STRICT, "{s:i,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:s,s:{s:s*}}",
                       "sluiceParked", &format, "time", &time, "route", &route, "handler", &handler, "status",
                       &status, "code", &code, "message", &text, "requestId", &request, "functionArn",
                       &function, "epoch", &epoch, "streamArn", &stream, "record", "eventID", &id),
        0);
    assert_int_equal(format, 1);
    assert_int_equal(epoch, 0);
    assert_string_equal(time, "2026-09-21T14:13:20.000Z");
    assert_string_equal(route, "r1");
    assert_string_equal(handler, "one");
    assert_string_equal(status, "REJECT");
    assert_string_equal(code, "Odd \"code\"");
    assert_string_equal(text, "record 2 is planned to fail");
    assert_string_equal(request, "request-1");
    assert_string_equal(function, "arn:function");
    assert_string_equal(stream, "arn:aws:dynamodb:us-east-1:1:table/t/stream/2026-01-01T00:00:00.000");
    assert_string_equal(id, "e2");
    assert_string_equal(dlq->keys[0], "r1/1002/e2");
    /* The record is the one that came, byte for byte but for the line breaks. */
    json_t *event = json_loads(rig->event, 0, NULL);
    assert_true(
        json_equal(json_object_get(message, "record"), json_array_get(json_object_get(event, "Records"), 2)));
    json_decref(event);
    json_decref(message);
    rig_destroy(rig);
}

static void failing_park_is_a_failure_at_its_place(void **state)
{
    (void)state;
    static const enum sl_status statuses[] = {SL_RETRY, SL_REJECT, SL_FATAL};
    for (size_t i = 0; i < 3; i++) {
        struct rig *rig = rig_new("{" PARKING ONCE);
        rig->handlers[RIG_ONE].plan[7] = RIG_POISON;
        struct rig_port *dlq = rig_port(rig, "dlq");
        dlq->status = statuses[i];
        dlq->failures = SIZE_MAX;
        rig_event(rig, 20, NULL);
        rig_run(rig, 5000);
        rig_answers(rig, failed_at(7));
        assert_string_equal(rig->answer.error.code, "PortPlanned");
        assert_int_equal(rig->answer.error.status, statuses[i]);
        assert_int_equal(rig->answer.parked, 0);
        assert_true(rig->clock.ms < 5000);
        rig_destroy(rig);
    }
}

static void parking_is_retried(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING ONCE);
    rig->handlers[RIG_ONE].plan[7] = rig->handlers[RIG_ONE].plan[9] = RIG_POISON;
    rig_port(rig, "dlq")->status = SL_RETRY;
    rig_port(rig, "dlq")->failures = 4;
    rig_event(rig, 20, NULL);
    rig_run(rig, 5000);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_int_equal(rig_port(rig, "dlq")->n, 2);
    rig_destroy(rig);
}

/* Too large for the queue: the object store takes it, never cut. Too large for both: reported. */
static void first_target_that_can_takes_it(void **state)
{
    (void)state;
    static const struct {
        size_t queue, store;
        size_t in_queue, in_store;
    } cases[] = {{0, 0, 1, 0}, {100000, 0, 1, 0}, {100, 0, 0, 1}, {100, 100000, 0, 1}, {100, 100, 0, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig =
            rig_new("{'on_failure':['mem:dlq','memo:box'],'report_batch_item_failures':true," ONCE);
        *rig_port(rig, "dlq")->max_bytes = cases[i].queue;
        *rig_port(rig, "box")->max_bytes = cases[i].store;
        rig->handlers[RIG_ONE].plan[7] = RIG_POISON;
        rig_event(rig, 20, NULL);
        rig_run(rig, 5000);
        assert_int_equal(rig_port(rig, "dlq")->n, cases[i].in_queue);
        assert_int_equal(rig_port(rig, "box")->n, cases[i].in_store);
        if (cases[i].in_store)
            assert_string_equal(rig_port(rig, "box")->keys[0], "r1/2026/09/21/1007-e7.json");
        bool parked = cases[i].in_queue || cases[i].in_store;
        rig_answers(rig, parked ? "{'batchItemFailures':[]}" : failed_at(7));
        if (!parked)
            assert_string_equal(rig->answer.error.code, "TooLarge");
        rig_destroy(rig);
    }
}

static void refused_message_goes_to_the_next_target(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{'on_failure':['mem:dlq','memo:box'],'report_batch_item_failures':true," ONCE);
    rig_port(rig, "dlq")->status = SL_REJECT;
    rig_port(rig, "dlq")->failures = 1;
    rig->handlers[RIG_ONE].plan[7] = rig->handlers[RIG_ONE].plan[8] = RIG_POISON;
    rig_event(rig, 20, NULL);
    rig_run(rig, 5000);
    assert_int_equal(rig_port(rig, "dlq")->n, 1);
    assert_int_equal(rig_port(rig, "box")->n, 1);
    rig_answers(rig, "{'batchItemFailures':[]}");
    rig_destroy(rig);
}

/* A broken target takes nothing more of the batch, so it is asked once; one that only fails for now is waited
 * for. */
static void a_broken_target_leaves_the_records_to_the_next(void **state)
{
    (void)state;
    static const struct {
        enum sl_status queue, store;
        size_t parked, k, calls; /* k: the answer's place; calls of the queue, 0: more than one */
    } cases[] = {
        {SL_FATAL, SL_OK, 40, 40, 1},   {SL_REJECT, SL_OK, 40, 40, 0}, {SL_RETRY, SL_OK, 0, 0, 0},
        {SL_FATAL, SL_RETRY, 0, 0, 1},  {SL_FATAL, SL_FATAL, 0, 0, 1}, {SL_REJECT, SL_FATAL, 0, 0, 1},
        {SL_FATAL, SL_REJECT, 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = rig_new("{'on_failure':['mem:dlq','memo:box'],'report_batch_item_failures':true,"
                                  "'max_parked':null," ONCE);
        struct rig_port *dlq = rig_port(rig, "dlq"), *box = rig_port(rig, "box");
        dlq->status = cases[i].queue;
        box->status = cases[i].store;
        dlq->failures = SIZE_MAX;
        box->failures = cases[i].store == SL_OK ? 0 : SIZE_MAX;
        memset(rig->handlers[RIG_ONE].plan, RIG_POISON, 40);
        rig_event(rig, 40, NULL);
        rig_run(rig, 5000);
        rig_answers(rig, cases[i].k == 40 ? "{'batchItemFailures':[]}" : failed_at(0));
        assert_int_equal(dlq->n, 0);
        assert_int_equal(box->n, cases[i].parked);
        assert_true(cases[i].calls ? dlq->calls == cases[i].calls : dlq->calls > 1);
        if (cases[i].k <
            40) /* the environment's fault, also where the other target only refused the message */
            assert_int_equal(rig->answer.error.status,
                             cases[i].queue == SL_RETRY || cases[i].store == SL_RETRY ? SL_RETRY : SL_FATAL);
        rig_destroy(rig);
    }
}

/* A store that replaces nothing: a record's copy is there since an earlier delivery. */
static void a_copy_that_is_there_is_parked(void **state)
{
    (void)state;
    for (int is_queue = 0; is_queue < 2; is_queue++) {
        struct rig *rig = rig_new(
            is_queue ? "{" PARKING ONCE : "{'on_failure':'memo:box','report_batch_item_failures':true," ONCE);
        struct rig_port *port = rig_port(rig, is_queue ? "dlq" : "box");
        port->status = SL_REJECT;
        port->code = "PreconditionFailed";
        port->failures = SIZE_MAX;
        rig->handlers[RIG_ONE].plan[7] = RIG_POISON;
        rig_event(rig, 20, NULL);
        rig_run(rig, 5000);
        rig_answers(rig, is_queue ? failed_at(7) : "{'batchItemFailures':[]}");
        assert_int_equal(rig->answer.parked, !is_queue);
        rig_destroy(rig);
    }
}

static void many_are_parked_in_growing_steps(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{'max_parked':null," PARKING "'routes':[{'name':'r1','handler':'one'}]}");
    memset(rig->handlers[RIG_ONE].plan, RIG_POISON, 1000);
    rig->handlers[RIG_ONE].marks = true;
    rig_event(rig, 1000, NULL);
    rig_run(rig, FOREVER);
    struct rig_port *dlq = rig_port(rig, "dlq");
    assert_int_equal(dlq->n, 1000);
    assert_int_equal(dlq->largest, 160);
    assert_int_equal(dlq->calls, 10); /* 10 20 40 80 160 160 160 160 160 50 */
    for (size_t i = 0; i < 1000; i++) {
        char key[40];
        snprintf(key, sizeof(key), "r1/%zu/e%zu", 1000 + i, i);
        assert_string_equal(dlq->keys[i], key);
    }
    rig_answers(rig, "{'batchItemFailures':[]}");
    rig_destroy(rig);
}

/* ---- the answer ---- */

/* Every rule by k, with and without partial answers. */
static void answers_follow_the_rules(void **state)
{
    (void)state;
    static const struct {
        bool reports, parks;
        enum rig_plan plan;
        size_t n, k; /* k = n: nothing fails */
        bool error;
    } cases[] = {
        {true, false, RIG_GOOD, 10, 10, false},  {false, false, RIG_GOOD, 10, 10, false},
        {true, false, RIG_POISON, 10, 4, false}, {true, false, RIG_POISON, 10, 0, true},
        {true, false, RIG_POISON, 1, 0, false},  {true, false, RIG_OUTAGE, 10, 0, false},
        {true, false, RIG_OUTAGE, 10, 4, false}, {true, false, RIG_OUTAGE, 1, 0, false},
        {true, false, RIG_BROKEN, 10, 0, false}, {true, false, RIG_BROKEN, 10, 9, false},
        {true, false, RIG_BROKEN, 1, 0, false},  {false, false, RIG_POISON, 10, 4, true},
        {false, false, RIG_POISON, 10, 0, true}, {false, false, RIG_POISON, 1, 0, true},
        {false, false, RIG_OUTAGE, 10, 4, true}, {false, false, RIG_BROKEN, 10, 9, true},
        {true, true, RIG_OUTAGE, 10, 0, false},  {true, true, RIG_BROKEN, 10, 0, false},
        {false, true, RIG_OUTAGE, 10, 4, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char config[300];
        snprintf(config, sizeof(config), "{'on_failure':'%s','report_batch_item_failures':%s," ONCE,
                 cases[i].parks ? "mem:dlq" : "report", cases[i].reports ? "true" : "false");
        struct rig *rig = rig_new(config);
        rig->handlers[RIG_ONE].marks = true;
        rig->handlers[RIG_ONE].plan[cases[i].k] = cases[i].plan;
        rig_event(rig, cases[i].n, NULL);
        rig_run(rig, 5000);
        assert_int_equal(rig->answer.is_error, cases[i].error);
        assert_int_equal(rig->answer.checkpoint, cases[i].k);
        if (!cases[i].error)
            rig_answers(rig, cases[i].k < cases[i].n ? failed_at(cases[i].k) : "{'batchItemFailures':[]}");
        /* Without partial answers once-only effects wait until nothing fails. */
        size_t sent = cases[i].k == cases[i].n || cases[i].reports ? cases[i].k : 0;
        assert_int_equal(rig->handlers[RIG_ONCE].n_applied, sent);
        rig_destroy(rig);
    }
}

static void without_partial_answers_poison_is_parked_all_the_same(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{'on_failure':'mem:dlq'," ONCE);
    rig->handlers[RIG_ONE].plan[0] = RIG_POISON;
    rig_event(rig, 10, NULL);
    rig_run(rig, 5000);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_int_equal(rig_port(rig, "dlq")->n, 1);
    assert_int_equal(rig->handlers[RIG_ONCE].n_applied, 10);
    rig_port(rig, "dlq")->status = SL_FATAL;
    rig_port(rig, "dlq")->failures = 1;
    rig_run(rig, 5000);
    assert_true(rig->answer.is_error);
    rig_destroy(rig);
}

/* Parking fails for record 0: the outside world's fault is waited out; what no target can take is rejected.
 */
static void a_record_that_cannot_be_parked_stops_the_batch(void **state)
{
    (void)state;
    for (int too_large = 0; too_large < 2; too_large++) {
        struct rig *rig = rig_new("{" PARKING ONCE);
        struct rig_port *dlq = rig_port(rig, "dlq");
        *dlq->max_bytes = too_large ? 100 : 0;
        dlq->status = SL_RETRY;
        dlq->failures = too_large ? 0 : SIZE_MAX;
        rig->handlers[RIG_ONE].plan[0] = RIG_POISON;
        rig_event(rig, 10, NULL);
        rig_run(rig, 5000);
        assert_int_equal(rig->answer.is_error, too_large);
        if (!too_large)
            rig_answers(rig, failed_at(0));
        rig_destroy(rig);
    }
}

/* Changes through Kinesis: what the answer names is the outer sequence number. */
static void kinesis_answers_name_the_outer_number(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT ONCE);
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 16);
    sl_buffer_add_str(&text, "{'Records':[");
    for (size_t i = 0; i < 3; i++) {
        char change[400];
        snprintf(change, sizeof(change),
                 "{'eventID':'e%zu','eventName':'INSERT','tableName':'t','awsRegion':'us-east-1',"
                 "'recordFormat':'application/json','userIdentity':null,'eventSource':'aws:dynamodb',"
                 "'dynamodb':{'ApproximateCreationDateTime':1790000000000,'Keys':{'PK':{'S':'k%zu'}},"
                 "'NewImage':{'PK':{'S':'k%zu'}},'SizeBytes':10}}",
                 i, i, i);
        struct sl_span data = sl_base64_encode(json_span(change), rig->arena);
        sl_buffer_printf(&text,
                         "%s{'kinesis':{'kinesisSchemaVersion':'1.0','partitionKey':'p',"
                         "'sequenceNumber':'4964026646225%zu','data':'%.*s',"
                         "'approximateArrivalTimestamp':1790000000.5},'eventSource':'aws:kinesis',"
                         "'eventID':'shardId-0:%zu','eventName':'aws:kinesis:record',"
                         "'eventSourceARN':'arn:aws:kinesis:us-east-1:1:stream/s'}",
                         i ? "," : "", i, SL_ARG(data), i);
    }
    sl_buffer_add(&text, "]}", 3);
    rig_event_text(rig, text.ptr, 3);
    rig->handlers[RIG_ONE].always = SL_RETRY;
    rig_run(rig, 1000);
    rig_answers(rig, "{'batchItemFailures':[{'itemIdentifier':'49640266462250'}]}");
    rig->handlers[RIG_ONE].always = SL_OK;
    rig_run(rig, 1000);
    rig_answers(rig, "{'batchItemFailures':[]}");
    sl_buffer_clean_up(&text);
    rig_destroy(rig);
}

/* ---- windows ---- */

#define WINDOW                                                                                               \
    "'routes':[{'name':'w','handler':'window'},{'name':'r1','handler':'one'},{'name':"                       \
    "'o1','handler':'once'}]}"
#define FINAL                                                                                                \
    "'window':{'start':'2026-01-01T00:00:00Z','end':'2026-01-01T00:05:00Z'},'state':{'n':4},"                \
    "'shardId':'s','isFinalInvokeForWindow':true,'isWindowTerminatedEarly':false"

static void window_state_comes_back(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT WINDOW);
    struct rig_handler *s = &rig->handlers[RIG_WINDOW];
    rig_event_with(rig, 10, NULL, FINAL);
    rig_run(rig, 5000);
    rig_answers(rig, "{'state':{'n':4},'batchItemFailures':[]}");
    assert_int_equal(s->windows, 1);
    assert_int_equal(s->window_records, 10);
    assert_true(s->window_was_final);
    s->new_state = json("{'n':14}");
    rig_run(rig, 5000);
    rig_answers(rig, "{'state':{'n':14},'batchItemFailures':[]}");
    rig_event_with(rig, 0, NULL, FINAL);
    rig_forget(rig);
    rig_run(rig, 5000);
    rig_answers(rig, "{'state':{'n':14},'batchItemFailures':[]}");
    assert_int_equal(s->window_records, 0);
    assert_int_equal(s->windows, 1);
    rig_destroy(rig);
}

static void window_without_a_keeper_is_echoed(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT ONCE);
    rig_event_with(rig, 3, NULL, FINAL);
    rig_run(rig, 5000);
    rig_answers(rig, "{'state':{'n':4},'batchItemFailures':[]}");
    rig_event_with(rig, 0, NULL, FINAL);
    rig_run(rig, 5000);
    rig_answers(rig, "{'state':{'n':4},'batchItemFailures':[]}");
    rig_destroy(rig);
}

/* The state is made of what the answer takes as done, whichever route fails. */
static void window_counts_what_is_below_the_checkpoint(void **state)
{
    (void)state;
    static const struct {
        size_t handler, k;
        size_t calls, records;
    } cases[] = {{RIG_WINDOW, 6, 1, 6},
                 {RIG_ONE, 6, 1, 6},
                 {RIG_ONCE, 6, 2, 6},
                 {RIG_ONE, 0, 0, 0},
                 {RIG_ONCE, 0, 1, 10}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = rig_new("{" REPORT WINDOW);
        struct rig_handler *s = &rig->handlers[RIG_WINDOW];
        rig->handlers[cases[i].handler].marks = true;
        rig->handlers[cases[i].handler].plan[cases[i].k] = RIG_OUTAGE;
        s->new_state = json("{'n':5}");
        rig_event_with(rig, 10, NULL, FINAL);
        rig_run(rig, 5000);
        assert_int_equal(s->windows, cases[i].calls);
        assert_int_equal(s->window_records, cases[i].records);
        char wanted[100];
        snprintf(wanted, sizeof(wanted), "{'state':{'n':%d},%s", cases[i].k ? 5 : 4,
                 failed_at(cases[i].k) + 1);
        rig_answers(rig, wanted);
        if (cases[i].calls == 1 && cases[i].k)
            assert_false(s->window_was_final); /* the rest of the last event is delivered again */
        rig_destroy(rig);
    }
}

static void failing_window_fails_the_event(void **state)
{
    (void)state;
    static const enum sl_status statuses[] = {SL_RETRY, SL_REJECT, SL_FATAL};
    for (size_t i = 0; i < 3; i++) {
        for (size_t n = 0; n <= 10; n += 10) {
            struct rig *rig = rig_new("{" REPORT WINDOW);
            rig->handlers[RIG_WINDOW].window_status = statuses[i];
            rig_event_with(rig, n, NULL, FINAL);
            rig_run(rig, 5000);
            assert_int_equal(rig->answer.is_error, n == 0);
            assert_string_equal(rig->answer.error.code, "WindowPlanned");
            assert_int_equal(rig->handlers[RIG_ONCE].n_applied, 0);
            if (n)
                rig_answers(rig, "{'state':{'n':4},'batchItemFailures':[{'itemIdentifier':'1000'}]}");
            rig_destroy(rig);
        }
    }
}

static void large_state_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT WINDOW);
    char *large = malloc(1 << 21);
    memset(large, 'x', 1 << 21);
    memcpy(large, "{\"a\":\"", 6);
    memcpy(large + (1 << 20) - 2, "\"}", 3); /* exactly 1 MiB */
    rig->handlers[RIG_WINDOW].new_state = large;
    rig_event_with(rig, 2, NULL, FINAL);
    rig_run(rig, 5000);
    assert_int_equal(rig->answer.error.status, SL_OK);
    memcpy(large + (1 << 20) - 2, "x\"}", 4);
    rig_run(rig, 5000);
    assert_string_equal(rig->answer.error.code, "StateTooLarge");
    assert_int_equal(rig->answer.error.status, SL_FATAL);
    rig->handlers[RIG_WINDOW].new_state = json("{'a':");
    rig_run(rig, 5000);
    assert_string_equal(rig->answer.error.code, "InvalidState");
    free(large);
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_only_effects_stay_below_the_checkpoint),
        cmocka_unit_test(once_only_failure_lowers_the_checkpoint),
        cmocka_unit_test(once_only_rejection_is_parked_at_once),
        cmocka_unit_test(once_only_rejection_without_a_place_is_a_failure),
        cmocka_unit_test(broken_once_only_route_parks_nothing),
        cmocka_unit_test(a_rejection_after_an_outage_is_not_its_own),
        cmocka_unit_test(two_once_only_routes_keep_step),
        cmocka_unit_test(outage_of_one_effect_does_not_multiply_another),
        cmocka_unit_test(effect_above_the_checkpoint_is_remembered),
        cmocka_unit_test(messages_after_a_parked_record_wait_for_it),
        cmocka_unit_test(a_parked_record_holds_all_of_itself),
        cmocka_unit_test(failing_park_is_a_failure_at_its_place),
        cmocka_unit_test(parking_is_retried),
        cmocka_unit_test(first_target_that_can_takes_it),
        cmocka_unit_test(refused_message_goes_to_the_next_target),
        cmocka_unit_test(a_broken_target_leaves_the_records_to_the_next),
        cmocka_unit_test(a_copy_that_is_there_is_parked),
        cmocka_unit_test(many_are_parked_in_growing_steps),
        cmocka_unit_test(answers_follow_the_rules),
        cmocka_unit_test(without_partial_answers_poison_is_parked_all_the_same),
        cmocka_unit_test(a_record_that_cannot_be_parked_stops_the_batch),
        cmocka_unit_test(kinesis_answers_name_the_outer_number),
        cmocka_unit_test(window_state_comes_back),
        cmocka_unit_test(window_without_a_keeper_is_echoed),
        cmocka_unit_test(window_counts_what_is_below_the_checkpoint),
        cmocka_unit_test(failing_window_fails_the_event),
        cmocka_unit_test(large_state_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
