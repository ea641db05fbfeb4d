/* Effects that are done and cannot be repeated, of records that are delivered again: what is remembered of
 * them, and what is not mistaken for them. */
#include "handlers/pipeline/route.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include "base/buffer.h"

#define LAST 512 /* so many effects are remembered (docs/contributing/DISPATCH.md) */
#define ONCE "'routes':[{'name':'o1','handler':'once'},{'name':'o2','handler':'twice'}]}"

/* The answer is a function error, so that all records are delivered again. */
static void the_last_effects_are_remembered(void **state)
{
    (void)state;
    static const size_t done[] = {1, LAST - 1, LAST, LAST + 1, LAST + 2, 3 * LAST};
    for (size_t i = 0; i < sizeof(done) / sizeof(done[0]); i++) {
        struct rig *rig = rig_new("{'on_failure':'report','routes':[{'name':'o1','handler':'once'}]}");
        struct rig_handler *s = &rig->handlers[RIG_ONCE];
        size_t forgotten = done[i] > LAST ? done[i] - LAST : 0;
        s->marks = true;
        s->plan[done[i]] = RIG_OUTAGE;
        rig_event(rig, done[i] + 1, NULL);
        rig_run(rig, 5000);
        assert_true(rig->answer.is_error);
        assert_int_equal(s->n_applied, done[i]);
        s->plan[done[i]] = RIG_GOOD;
        rig_run(rig, 5000);
        assert_false(rig->answer.is_error);
        for (size_t k = 0; k <= done[i]; k++)
            assert_int_equal(s->times[k], k < forgotten ? 2 : 1);
        assert_int_equal(sl_pipeline_stats(rig->p, 0).skipped, done[i] - forgotten);
        rig_destroy(rig);
    }
}

static const char *event_of(const char *table, const char *id, const char *number)
{
    static const char record[] =
        "{'eventID':'%s','eventName':'REMOVE','eventSource':'aws:dynamodb','dynamodb':{'Keys':{'PK':{'S':'a'}"
        "}"
        ",'SequenceNumber':'%s','StreamViewType':'KEYS_ONLY'},"
        "'eventSourceARN':'arn:aws:dynamodb:us-east-1:1:table/%s/stream/2026-01-01T00:00:00.000'}";
    const char *first = json_printf(record, id, number, table), *last = json_printf(record, "z", "1009", "t");
    return json_printf("{'Records':[%s,%s]}", first, last);
}

/* A record that is wrongly taken for done would be lost. */
static void another_record_is_not_taken_for_it(void **state)
{
    (void)state;
    static const struct {
        const char *table, *id, *number;
        unsigned times;
    } cases[] = {{"t", "e", "1000", 1}, {"u", "e", "1000", 2}, {"t", "f", "1000", 2}, {"t", "e", "1001", 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = rig_new("{'on_failure':'report','routes':[{'name':'o1','handler':'once'}]}");
        struct rig_handler *s = &rig->handlers[RIG_ONCE];
        s->marks = true;
        s->plan[9] = RIG_OUTAGE;
        rig_event_text(rig, event_of("t", "e", "1000"), 2);
        rig_run(rig, 5000);
        assert_int_equal(s->times[0], 1);
        s->plan[9] = RIG_GOOD;
        rig_event_text(rig, event_of(cases[i].table, cases[i].id, cases[i].number), 2);
        rig_run(rig, 5000);
        assert_int_equal(s->times[0] + s->times[1], i == 0 ? 1 : 2);
        assert_int_equal(s->times[0], cases[i].times);
        assert_int_equal(s->times[9], 1);
        rig_destroy(rig);
    }
}

/* Nor is the same record, of another route. */
static void each_route_has_its_own(void **state)
{
    (void)state;
    for (int first_fails = 0; first_fails < 2; first_fails++) {
        struct rig *rig = rig_new("{'on_failure':'report'," ONCE);
        struct rig_handler *done = &rig->handlers[first_fails ? RIG_TWICE : RIG_ONCE];
        struct rig_handler *failing = &rig->handlers[first_fails ? RIG_ONCE : RIG_TWICE];
        done->marks = failing->marks = true;
        failing->plan[3] = RIG_OUTAGE;
        rig_event(rig, 5, NULL);
        for (int delivery = 0; delivery < 3; delivery++) {
            rig_run(rig, 5000);
            assert_true(rig->answer.is_error);
        }
        failing->plan[3] = RIG_GOOD;
        rig_run(rig, 5000);
        for (size_t k = 0; k < 5; k++)
            assert_true(done->times[k] == 1 && failing->times[k] == 1);
        rig_destroy(rig);
    }
}

/* Records `from` to `to` of one shard, the last of which fails as long as `fails`. */
static void deliver(struct rig *rig, size_t from, size_t to, bool fails)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 20);
    sl_buffer_add_str(&text, "{'Records':[");
    for (size_t i = from; i <= to; i++)
        sl_buffer_printf(&text,
                         "%s{'eventID':'e%zu','eventName':'REMOVE','dynamodb':{'Keys':{'PK':{'S':'k%zu'}},"
                         "'SequenceNumber':'%zu'}}",
                         i > from ? "," : "", i, i, 1000 + i);
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    rig->handlers[RIG_ONCE].plan[to] = fails ? RIG_OUTAGE : RIG_GOOD;
    rig_event_text(rig, text.ptr, to - from + 1);
    rig_run(rig, 5000);
    assert_int_equal(rig->answer.is_error, fails);
    sl_buffer_clean_up(&text);
}

/* A batch that fails again and again takes the room of its effects once, and not that of another shard's. */
static void what_comes_often_is_remembered_once(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{'on_failure':'report','routes':[{'name':'o1','handler':'once'}]}");
    struct rig_handler *s = &rig->handlers[RIG_ONCE];
    s->marks = true;
    deliver(rig, 0, 100, true);
    for (int times = 0; times < 4; times++)
        deliver(rig, 200, 200 + LAST - 100, true);
    deliver(rig, 0, 100, false);
    deliver(rig, 200, 200 + LAST - 100, false);
    for (size_t i = 0; i <= 200 + LAST - 100; i++)
        assert_int_equal(s->times[i], i <= 100 || i >= 200);
    rig_destroy(rig);
}

/* A handler that says only that something of a slice is refused, a batch with much of that, and little time:
 * each delivery finds some of it, and the next one begins with those alone. So it ends, whatever the answer
 * may say; and the records of an item are applied in their order all the same. */
static void what_was_rejected_is_called_alone(void **state)
{
    (void)state;
    struct rig *rig =
        rig_new("{'on_failure':'mem:dlq','max_parked':null,'routes':[{'name':'r1','handler':'one'},"
                "{'name':'r2','handler':'two'}]}");
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    size_t n = 60, n_poison = 0, deliveries = 0;
    for (size_t i = 0; i < n; i++)
        n_poison += (s->plan[i] = i % 4 == 1 ? RIG_POISON : RIG_GOOD) == RIG_POISON;
    s->takes_ms = 20;
    rig_event(rig, n, NULL);
    for (; deliveries == 0 || rig->answer.is_error; deliveries++) {
        if (deliveries == 6)
            fail_msg("not done after %zu deliveries: %s; %zu calls, %zu remembered", deliveries,
                     rig->answer.error.text, s->calls, rig->p->rejected.n);
        s->n_applied = 0;
        rig_run(rig, 2000);
        for (size_t k = 1; k < s->n_applied; k++)
            assert_true(s->applied[k] > s->applied[k - 1]);
    }
    assert_true(deliveries > 1);
    assert_int_equal(rig_port(rig, "dlq")->n, n_poison);
    assert_int_equal(rig->p->rejected.n, 0); /* it is over */
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_effects_are_remembered),
        cmocka_unit_test(another_record_is_not_taken_for_it),
        cmocka_unit_test(each_route_has_its_own),
        cmocka_unit_test(what_was_rejected_is_called_alone),
        cmocka_unit_test(what_comes_often_is_remembered_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
