/* Phase 1: slices, outcomes, isolating, holding back, time. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define FOREVER 3600000
#define PARKING "'on_failure':'mem:dlq','report_batch_item_failures':true,'max_parked':null,"
#define REPORT  "'on_failure':'report','report_batch_item_failures':true,'max_parked':null,"
#define R1      "'routes':[{'name':'r1','handler':'one'}]}"
#define R2      "'routes':[{'name':'r1','handler':'one'},{'name':'r2','handler':'two'}]}"

static size_t log2_up(size_t n)
{
    size_t bits = 0;
    while (((size_t)1 << bits) < n)
        bits++;
    return bits;
}

static size_t of_three(size_t i)
{
    return i % 3;
}

static void assert_all_but(const struct rig_handler *s, size_t n)
{
    size_t applied = 0;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(s->times[i], s->plan[i] == RIG_GOOD);
        applied += s->plan[i] == RIG_GOOD;
    }
    assert_int_equal(s->n_applied, applied);
    for (size_t i = 1; i < s->n_applied; i++)
        assert_true(s->applied[i - 1] < s->applied[i]); /* in stream order */
}

static void an_empty_batch_calls_no_handler(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R1);
    rig_event(rig, 0, NULL);
    rig_run(rig, FOREVER);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_false(rig->answer.is_error);
    assert_int_equal(rig->handlers[RIG_ONE].calls, 0);
    rig_destroy(rig);
}

static void good_batch_is_one_call_a_route(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R2);
    rig_event(rig, 100, NULL);
    rig_run(rig, FOREVER);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_int_equal(rig->handlers[RIG_ONE].calls, 1);
    assert_int_equal(rig->handlers[RIG_TWO].calls, 1);
    assert_all_but(&rig->handlers[RIG_TWO], 100);
    assert_int_equal(rig->answer.checkpoint, 100);
    rig_destroy(rig);
}

/* At most 1 + 2*ceil(log2 n) calls for one poison, wherever it stands; everything else is applied, once and
 * in order; the poison is parked. */
static void isolate_at(struct rig *rig, size_t n, size_t place)
{
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    s->plan[place] = RIG_POISON;
    rig_run(rig, FOREVER);
    if (s->calls > 1 + 2 * log2_up(n))
        fail_msg("%zu calls for poison %zu of %zu", s->calls, place, n);
    assert_all_but(s, n);
    assert_int_equal(rig->answer.checkpoint, n);
    assert_int_equal(rig->answer.parked, 1);
    struct rig_port *dlq = rig_port(rig, "dlq");
    char number[40];
    snprintf(number, sizeof(number), "'SequenceNumber':'%zu'", 1000 + place);
    assert_int_equal(dlq->n, 1);
    assert_non_null(strstr(dlq->bodies[0], json(number)));
    s->plan[place] = RIG_GOOD;
    rig_forget(rig);
}

static void one_poison_is_isolated(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R1);
    for (size_t n = 1; n <= 256; n++) {
        rig_event(rig, n, NULL);
        for (size_t place = 0; place < n; place++)
            isolate_at(rig, n, place);
    }
    rig_destroy(rig);
}

static void one_poison_of_ten_thousand_is_isolated(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R1);
    rig_event(rig, 10000, NULL);
    /* 61 divides nothing of the halves: every kind of place comes. */
    for (size_t place = 0; place < 10000; place += place < 20 || place > 9920 ? 1 : 61)
        isolate_at(rig, 10000, place);
    rig_destroy(rig);
}

static void marked_poison_costs_no_bisection(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R1);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    s->marks = true;
    rig_event(rig, 100, NULL);
    for (size_t i = 0; i < 100; i += 7)
        s->plan[i] = RIG_POISON;
    rig_run(rig, FOREVER);
    assert_int_equal(s->calls, 1);
    assert_all_but(s, 100);
    assert_int_equal(rig_port(rig, "dlq")->n, 15);
    assert_int_equal(rig->answer.checkpoint, 100);
    rig_destroy(rig);
}

/* Marked as rejected explains the rejection: the others are tried once more, together. */
static void known_poison_leaves_the_others_whole(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R1);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    s->blames = true;
    s->plan[3] = s->plan[70] = RIG_POISON;
    rig_event(rig, 100, NULL);
    rig_run(rig, FOREVER);
    assert_int_equal(s->calls, 2);
    assert_int_equal(s->n_given, 100 + 98);
    assert_all_but(s, 100);
    assert_int_equal(rig_port(rig, "dlq")->n, 2);
    rig_destroy(rig);
}

/* One invocation is enough for any number of poison records. */
static void any_poison_is_isolated_at_once(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R1);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    uint64_t seed = 3;
    for (size_t round = 0; round < 400; round++) {
        size_t n = 1 + sl_random_step(&seed) % 200, of = 1 + sl_random_step(&seed) % 12, poison = 0;
        for (size_t i = 0; i < n; i++) {
            s->plan[i] = sl_random_step(&seed) % of == 0 ? RIG_POISON : RIG_GOOD;
            poison += s->plan[i] == RIG_POISON;
        }
        rig_event(rig, n, round % 2 ? of_three : NULL);
        rig_run(rig, FOREVER);
        assert_all_but(s, n);
        assert_int_equal(rig_port(rig, "dlq")->n, poison);
        rig_answers(rig, "{'batchItemFailures':[]}");
        rig_forget(rig);
    }
    rig_destroy(rig);
}

static void an_outage_is_retried_until_it_ends(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R1);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    s->outages = 5;
    rig_event(rig, 50, NULL);
    rig_run(rig, FOREVER);
    assert_int_equal(s->calls, 6);
    assert_int_equal(s->last_attempt, 5);
    assert_all_but(s, 50);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_in_range(rig->clock.ms, 5, 50 + 100 + 200 + 400 + 800);
    rig_destroy(rig);
}

static void an_outage_without_end_is_reported_and_parks_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R1);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    s->outages = 1000000;
    rig_event(rig, 50, NULL);
    rig_run(rig, 60000);
    rig_answers(rig, "{'batchItemFailures':[{'itemIdentifier':'1000'}]}");
    assert_string_equal(rig->answer.error.code, "Throttled");
    assert_int_equal(rig->answer.error.status, SL_RETRY);
    assert_int_equal(rig_port(rig, "dlq")->n, 0);
    assert_true(s->calls >= 10 && s->calls < 200); /* spread by full jitter up to 5 s */
    assert_true(rig->clock.ms < 60000);
    rig_destroy(rig);
}

/* A record marked as applied is applied: only the rest is retried. */
static void half_a_success_moves_forward(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R1);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    s->marks = true;
    s->plan[3] = s->plan[7] = RIG_OUTAGE;
    rig_event(rig, 10, NULL);
    rig_run(rig, 60000);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(s->times[i], i != 3 && i != 7);
    assert_int_equal(s->n_given, 10 + 2 * (s->calls - 1));
    rig_answers(rig, "{'batchItemFailures':[{'itemIdentifier':'1003'}]}");
    rig_destroy(rig);
}

static void fatal_stops_at_once(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R2);
    rig->handlers[RIG_ONE].plan[4] = RIG_BROKEN;
    rig_event(rig, 10, NULL);
    rig_run(rig, FOREVER);
    assert_int_equal(rig->handlers[RIG_ONE].calls, 1);
    assert_int_equal(rig->handlers[RIG_TWO].calls, 0);
    rig_answers(rig, "{'batchItemFailures':[{'itemIdentifier':'1000'}]}");
    assert_string_equal(rig->answer.error.text,
                        "route r1, record 1 of 10, sequence number 1000: record 4 is planned to fail");
    assert_int_equal(rig_port(rig, "dlq")->n, 0);
    assert_int_equal(rig->clock.ms, 0);
    rig_destroy(rig);
}

/* One record's word is enough: what is wrong with the place is wrong for the next slice too. */
static void marked_fatal_stops_the_next_slices(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING "'routes':[{'name':'r1','handler':'one','max_records':4}]}");
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    s->marks = true;
    s->plan[5] = RIG_BROKEN;
    rig_event(rig, 30, NULL);
    rig_run(rig, FOREVER);
    assert_int_equal(s->calls, 2);
    assert_int_equal(s->n_applied, 7);
    rig_answers(rig, "{'batchItemFailures':[{'itemIdentifier':'1005'}]}");
    rig_destroy(rig);
}

/* A record that cannot be parked: its own item waits after it, others continue. */
static void items_after_a_failure_are_held_back(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT R1);
    for (int marks = 0; marks < 2; marks++) {
        struct rig_handler *s = &rig->handlers[RIG_ONE];
        s->marks = marks;
        for (size_t poison = 0; poison < 30; poison++) {
            s->plan[poison] = RIG_POISON;
            rig_event(rig, 30, of_three);
            rig_run(rig, FOREVER);
            for (size_t i = 0; i < 30; i++) {
                bool held = i == poison || (!marks && i > poison && i % 3 == poison % 3);
                assert_int_equal(s->times[i], !held);
            }
            assert_int_equal(rig->answer.checkpoint, poison);
            assert_int_equal(rig->answer.is_error, poison == 0);
            s->plan[poison] = RIG_GOOD;
            rig_forget(rig);
        }
    }
    rig_destroy(rig);
}

/* What comes before a failed record of its item is not held back by it. */
static void items_before_a_failure_are_given(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT R1);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    s->blames = true;
    s->plan[20] = RIG_POISON;
    rig_event(rig, 30, of_three);
    rig_run(rig, FOREVER);
    for (size_t i = 0; i < 30; i++)
        assert_int_equal(s->times[i], i < 20 || i % 3 != 20 % 3);
    assert_int_equal(rig->answer.checkpoint, 20);
    rig_destroy(rig);
}

static void slices_after_a_failure_hold_back_too(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT "'routes':[{'name':'r1','handler':'one','max_records':4}]}");
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    s->marks = true;
    s->plan[1] = RIG_POISON;
    rig_event(rig, 30, of_three);
    rig_run(rig, FOREVER);
    for (size_t i = 4; i < 30; i++)
        assert_int_equal(s->times[i], i % 3 != 1);
    assert_int_equal(s->largest, 4);
    rig_destroy(rig);
}

/* A later route sees nothing after an earlier one's failure; the rejected record itself may succeed there. */
static void later_routes_stop_at_a_failure(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT R2);
    static const struct {
        enum rig_plan plan;
        size_t given;
    } cases[] = {{RIG_POISON, 7}, {RIG_OUTAGE, 6}, {RIG_BROKEN, 6}};
    rig->handlers[RIG_ONE].marks = true;
    for (size_t i = 0; i < 3; i++) {
        rig->handlers[RIG_ONE].plan[6] = cases[i].plan;
        rig_event(rig, 20, NULL);
        rig_run(rig, 10000);
        assert_int_equal(rig->handlers[RIG_TWO].n_given, cases[i].given);
        assert_int_equal(rig->answer.checkpoint, 6);
        rig_forget(rig);
    }
    rig_destroy(rig);
}

static void rejected_record_still_goes_to_later_routes(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R2);
    rig->handlers[RIG_ONE].plan[6] = RIG_POISON;
    rig_event(rig, 20, NULL);
    rig_run(rig, FOREVER);
    assert_int_equal(rig->handlers[RIG_TWO].n_applied, 20);
    assert_int_equal(rig_port(rig, "dlq")->n, 1);
    rig_destroy(rig);
}

/* ---- notes ---- */

/* Every parked record has a note, up to the limit, and so has the record that failed at the checkpoint. */
static void what_was_parked_and_what_failed_is_noted(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 15, 16, 17, 32, 33, SL_ANSWER_NOTES, SL_ANSWER_NOTES + 1};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        size_t n = counts[c], noted = n < SL_ANSWER_NOTES ? n : SL_ANSWER_NOTES;
        struct rig *rig = rig_new("{" PARKING R1);
        struct rig_handler *s = &rig->handlers[RIG_ONE];
        s->marks = true;
        memset(s->plan, RIG_POISON, n);
        s->plan[n] = RIG_BROKEN;
        rig_event(rig, n + 1, NULL);
        rig_run(rig, FOREVER);
        assert_int_equal(rig_port(rig, "dlq")->n, n);
        assert_int_equal(rig->answer.n_notes, noted + 1);
        for (size_t i = 0; i <= noted; i++) {
            const struct sl_answer_note *note = &rig->answer.notes[i];
            char id[16];
            snprintf(id, sizeof(id), "%zu", 1000 + (i < noted ? i : n));
            assert_span_is(note->id, id);
            assert_int_equal(note->is_parked, i < noted);
            assert_string_equal(note->route, "r1");
            assert_string_equal(note->code, "Planned");
        }
        rig_destroy(rig);
    }
}

static void a_good_batch_has_no_notes(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R1);
    rig_event(rig, 5, NULL);
    rig_run(rig, FOREVER);
    assert_int_equal(rig->answer.n_notes, 0);
    rig_destroy(rig);
}

/* ---- max_parked ---- */

static void many_rejections_of_one_code_are_fatal(void **state)
{
    (void)state;
    static const struct {
        const char *member;
        size_t n, poison;
        bool fatal;
    } cases[] = {
        {"", 30, 14, false}, /* 10, and one for each 4 that are applied */
        {"", 30, 15, true},
        {"", 300, 68, false},
        {"", 300, 69, true},
        {"'max_parked':1,", 30, 1, false},
        {"'max_parked':1,", 30, 2, true},
        {"'max_parked':3,", 300, 3, false},
        {"'max_parked':3,", 300, 4, true},
        {"'max_parked':null,", 300, 300, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int marks = 0; marks < 2; marks++) {
            char config[300];
            snprintf(config, sizeof(config),
                     "{%s'on_failure':'mem:dlq','report_batch_item_failures':true," R1, cases[i].member);
            struct rig *rig = rig_new(config);
            rig->handlers[RIG_ONE].marks = marks;
            for (size_t k = 0; k < cases[i].poison; k++)
                rig->handlers[RIG_ONE].plan[cases[i].n - 1 - k] = RIG_POISON;
            rig_event(rig, cases[i].n, NULL);
            rig_run(rig, FOREVER);
            assert_int_equal(rig_port(rig, "dlq")->n, cases[i].fatal ? 0 : cases[i].poison);
            assert_int_equal(rig->answer.checkpoint, cases[i].n - (cases[i].fatal ? cases[i].poison : 0));
            assert_int_equal(rig->answer.error.status, cases[i].fatal ? SL_FATAL : SL_OK);
            rig_destroy(rig);
        }
    }
}

/* Different codes are different reasons: each is counted for itself. */
static void rejections_are_counted_by_code(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{'max_parked':8,'on_failure':'mem:dlq','report_batch_item_failures':true," R1);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    s->marks = true;
    s->codes = 2;
    memset(s->plan, RIG_POISON, 16);
    rig_event(rig, 40, NULL);
    rig_run(rig, FOREVER);
    assert_int_equal(rig_port(rig, "dlq")->n, 16);
    s->plan[16] = RIG_POISON;
    rig_forget(rig);
    rig_run(rig, FOREVER);
    assert_int_equal(rig_port(rig, "dlq")->n, 0);
    assert_string_equal(rig->answer.error.code, "Code0");
    rig_destroy(rig);
}

/* Sixteen codes have a count each; further ones share the last. So a handler that makes up a code for each
 * record cannot park the whole stream. */
static void codes_without_an_end_are_counted_together(void **state)
{
    (void)state;
    static const struct {
        size_t codes, poison;
        bool fatal;
    } cases[] = {{15, 150, false},  {16, 160, false}, {17, 165, true},  {17, 90, false},
                 {1000, 25, false}, {1000, 26, true}, {1000, 300, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig =
            rig_new("{'max_parked':10,'on_failure':'mem:dlq','report_batch_item_failures':true," R1);
        rig->handlers[RIG_ONE].marks = true;
        rig->handlers[RIG_ONE].codes = cases[i].codes;
        memset(rig->handlers[RIG_ONE].plan, RIG_POISON, cases[i].poison);
        rig_event(rig, 400, NULL);
        rig_run(rig, FOREVER);
        assert_int_equal(rig->answer.error.status, cases[i].fatal ? SL_FATAL : SL_OK);
        assert_true(cases[i].fatal || rig_port(rig, "dlq")->n == cases[i].poison);
        rig_destroy(rig);
    }
}

/* The whole stream rejected: never a function error that would cut it up, never a parked copy. */
static void after_a_broken_environment_the_whole_batch_is_retried(void **state)
{
    (void)state;
    for (int parks = 0; parks < 2; parks++) {
        struct rig *rig = rig_new(parks ? "{'on_failure':'mem:dlq','report_batch_item_failures':true," R1
                                        : "{'on_failure':'report','report_batch_item_failures':true," R1);
        memset(rig->handlers[RIG_ONE].plan, RIG_POISON, 200);
        rig_event(rig, 200, NULL);
        rig_run(rig, FOREVER);
        rig_answers(rig, "{'batchItemFailures':[{'itemIdentifier':'1000'}]}");
        assert_false(rig->answer.is_error);
        assert_int_equal(rig->answer.error.status, SL_FATAL);
        assert_int_equal(rig_port(rig, "dlq")->n, 0);
        assert_true(rig->handlers[RIG_ONE].calls < 130);
        rig_destroy(rig);
    }
}

/* ---- caps ---- */

static void slices_keep_to_their_caps(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING "'routes':[{'name':'a','handler':'one','max_records':7},"
                              "{'name':'b','handler':'two','max_bytes':2000}]}");
    rig_event(rig, 100, NULL);
    rig_run(rig, FOREVER);
    assert_int_equal(rig->handlers[RIG_ONE].calls, 15);
    assert_int_equal(rig->handlers[RIG_ONE].largest, 7);
    assert_all_but(&rig->handlers[RIG_ONE], 100);
    assert_in_range(rig->handlers[RIG_TWO].largest_bytes, 1400, 2000);
    assert_all_but(&rig->handlers[RIG_TWO], 100);
    rig_destroy(rig);
}

/* ---- time ---- */

/* Sinks as slow as 0 to 2 times the timeout: the answer always comes before the reserve, nothing begins
 * behind that line, and what was done counts. */
static void answer_comes_before_the_deadline(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING "'routes':[{'name':'a','handler':'one','max_records':5},"
                              "{'name':'b','handler':'two','max_records':10}]}");
    for (int64_t takes = 0; takes <= 20000; takes += 37) {
        rig->handlers[RIG_ONE].takes_ms = takes;
        rig->handlers[RIG_TWO].takes_ms = takes;
        rig_event(rig, 50, NULL);
        int64_t begin = rig->clock.ms;
        rig_run(rig, 10000);
        int64_t reserve = 500;
        assert_true(rig->clock.ms <= begin + 10000 - reserve);
        assert_true(rig->handlers[RIG_ONE].last_begin_ms < begin + 10000 - reserve);
        assert_true(rig->handlers[RIG_ONE].deadline_ms <= begin + 10000 - reserve);
        size_t k = rig->answer.checkpoint;
        for (size_t i = 0; i < k; i++)
            assert_true(rig->handlers[RIG_ONE].times[i] == 1 && rig->handlers[RIG_TWO].times[i] == 1);
        assert_true(k == 50 || rig->answer.error.status == SL_RETRY);
        rig_forget(rig);
    }
    rig_destroy(rig);
}

/* The first of three routes always fails: the others still have their time. */
static void failing_route_does_not_starve_the_others(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING "'routes':[{'name':'a','handler':'one'},{'name':'b',"
                              "'handler':'two'},{'name':'c','handler':'three'}]}");
    rig->handlers[RIG_ONE].marks = true;
    rig->handlers[RIG_ONE].plan[40] = RIG_OUTAGE;
    rig->handlers[RIG_TWO].takes_ms = 2000;
    rig->handlers[RIG_THREE].takes_ms = 2000;
    rig_event(rig, 50, NULL);
    rig_run(rig, 12000);
    assert_int_equal(rig->handlers[RIG_TWO].n_applied, 40);
    assert_int_equal(rig->handlers[RIG_THREE].n_applied, 40);
    assert_int_equal(rig->answer.checkpoint, 40);
    rig_destroy(rig);
}

static void configured_reserve_is_kept(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{'deadline_reserve_ms':3000," PARKING R1);
    rig->handlers[RIG_ONE].outages = 100000;
    rig_event(rig, 5, NULL);
    rig_run(rig, 10000);
    assert_true(rig->clock.ms <= 7000);
    assert_true(rig->handlers[RIG_ONE].deadline_ms <= 7000);
    rig_destroy(rig);
}

static void without_time_no_handler_is_called(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R1);
    rig_event(rig, 5, NULL);
    rig_run(rig, 0);
    assert_int_equal(rig->handlers[RIG_ONE].calls, 0);
    assert_string_equal(rig->answer.error.code, "DeadlineReached");
    rig_answers(rig, "{'batchItemFailures':[{'itemIdentifier':'1000'}]}");
    rig_destroy(rig);
}

/* Each pause is drawn from the whole of 1 to 50 * 2^tries, 5 s at most. */
static void pauses_are_in_the_jitter_band(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R1);
    int64_t least[3] = {1000, 1000, 1000}, most[3] = {0, 0, 0};
    for (size_t round = 0; round < 3000; round++) {
        unsigned tries = 1 + (unsigned)(round % 3);
        rig->handlers[RIG_ONE].outages = tries;
        rig_event(rig, 1, NULL);
        int64_t begin = rig->clock.ms;
        rig_run(rig, FOREVER);
        int64_t waited = rig->clock.ms - begin;
        assert_true(waited >= tries && waited <= 50 * ((1 << tries) - 1));
        least[tries - 1] = waited < least[tries - 1] ? waited : least[tries - 1];
        most[tries - 1] = waited > most[tries - 1] ? waited : most[tries - 1];
        rig_forget(rig);
    }
    assert_true(least[0] <= 2 && most[0] >= 49 && most[2] > 300);
    rig_destroy(rig);
}

/* ---- view types ---- */

static void view_type_is_refused_by_name(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R2);
    rig->handlers[RIG_TWO].refused_views = 1u << SL_VIEW_NEW_IMAGE;
    rig_event(rig, 10, NULL);
    rig_run(rig, FOREVER);
    assert_int_equal(rig->handlers[RIG_ONE].n_applied, 10);
    assert_int_equal(rig->handlers[RIG_TWO].calls, 0);
    assert_string_equal(rig->answer.error.code, "ViewTypeRefused");
    assert_string_equal(rig->answer.error.text, "route r2, record 1 of 10, sequence number 1000: no images");
    rig_answers(rig, "{'batchItemFailures':[{'itemIdentifier':'1000'}]}");
    assert_int_equal(rig_port(rig, "dlq")->n, 0);
    rig_destroy(rig);
}

/* ---- handlers that do not keep to the rules ---- */

static void error_without_an_end_is_cut(void **state)
{
    (void)state;
    static const int fillers[] = {0xE4, 'x'};
    for (int way = 0; way < 4; way++) {
        struct rig *rig = rig_new("{" PARKING R1);
        rig->handlers[RIG_ONE].marks = way & 1;
        rig->handlers[RIG_ONE].filler = fillers[way / 2];
        rig->handlers[RIG_ONE].plan[3] = RIG_POISON;
        rig_event(rig, 5, NULL);
        rig_run(rig, 1000);
        json_t *message = json_loads(rig_port(rig, "dlq")->bodies[0], 0, NULL); /* valid UTF-8 */
        assert_non_null(message);
        if (way >= 2) {
            const struct sl_error *error = &rig->answer.error; /* for its sizes */
            assert_int_equal(json_string_length(json_object_get(message, "code")), sizeof(error->code) - 1);
            assert_int_equal(json_string_length(json_object_get(message, "message")),
                             sizeof(error->text) - 1);
        }
        json_decref(message);
        rig_destroy(rig);
    }
}

/* One pipeline, many batches: each starts from nothing. */
static void many_batches_leave_nothing_behind(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" PARKING R2);
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    uint64_t seed = 5;
    size_t before = 0;
    s->marks = true;
    for (size_t i = 0; i < 4000; i++) {
        if (i == 1000) /* buffers have grown by now */
            before = mallinfo2().uordblks;
        memset(s->plan, RIG_GOOD, 40);
        s->plan[sl_random_step(&seed) % 40] = (unsigned char)(sl_random_step(&seed) % 4);
        rig_event(rig, i < 1000 ? 40 : 1 + sl_random_step(&seed) % 40, of_three);
        rig_run(rig, 1000);
        rig_forget(rig);
    }
    sl_arena_reset(rig->arena);
    assert_true(mallinfo2().uordblks <= before + 64 * 1024);
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_batch_calls_no_handler),
        cmocka_unit_test(good_batch_is_one_call_a_route),
        cmocka_unit_test(one_poison_is_isolated),
        cmocka_unit_test(one_poison_of_ten_thousand_is_isolated),
        cmocka_unit_test(marked_poison_costs_no_bisection),
        cmocka_unit_test(known_poison_leaves_the_others_whole),
        cmocka_unit_test(any_poison_is_isolated_at_once),
        cmocka_unit_test(an_outage_is_retried_until_it_ends),
        cmocka_unit_test(an_outage_without_end_is_reported_and_parks_nothing),
        cmocka_unit_test(half_a_success_moves_forward),
        cmocka_unit_test(fatal_stops_at_once),
        cmocka_unit_test(marked_fatal_stops_the_next_slices),
        cmocka_unit_test(items_after_a_failure_are_held_back),
        cmocka_unit_test(items_before_a_failure_are_given),
        cmocka_unit_test(slices_after_a_failure_hold_back_too),
        cmocka_unit_test(later_routes_stop_at_a_failure),
        cmocka_unit_test(rejected_record_still_goes_to_later_routes),
        cmocka_unit_test(many_rejections_of_one_code_are_fatal),
        cmocka_unit_test(rejections_are_counted_by_code),
        cmocka_unit_test(codes_without_an_end_are_counted_together),
        cmocka_unit_test(after_a_broken_environment_the_whole_batch_is_retried),
        cmocka_unit_test(slices_keep_to_their_caps),
        cmocka_unit_test(answer_comes_before_the_deadline),
        cmocka_unit_test(failing_route_does_not_starve_the_others),
        cmocka_unit_test(configured_reserve_is_kept),
        cmocka_unit_test(what_was_parked_and_what_failed_is_noted),
        cmocka_unit_test(a_good_batch_has_no_notes),
        cmocka_unit_test(without_time_no_handler_is_called),
        cmocka_unit_test(pauses_are_in_the_jitter_band),
        cmocka_unit_test(view_type_is_refused_by_name),
        cmocka_unit_test(error_without_an_end_is_cut),
        cmocka_unit_test(many_batches_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
