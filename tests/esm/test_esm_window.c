/* Tumbling windows of the simulated mapping. */
#include "esm/esm.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/test.h"

#define T0 1573689197000 /* 2019-11-13T23:53:17Z */

static struct {
    struct sl_esm_settings settings;
    struct sl_esm_shard shard;
    struct sl_esm_record records[5];
    struct sl_clock_virtual clock;
    struct sl_esm *esm;
} w;

static void set_up(size_t n)
{
    static const char *const ids[] = {"1000", "1001", "1002", "1003", "1004"};
    sl_esm_settings_init(&w.settings);
    w.settings.invocation_ms = 0;
    for (size_t i = 0; i < n; i++)
        w.records[i] = (struct sl_esm_record){
            .text = SL_LIT("{}"), .id = sl_span_str(ids[i]), .created_ms = T0, .available_ms = T0};
    w.shard = (struct sl_esm_shard){
        .id = "shardId-00000001573689197184-864758bb", .parent = -1, .records = w.records, .n = n};
}

static struct {
    char events[64][600];
    int failures_left;
    bool huge;
    size_t n;
} windows;

static void sum_window(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    (void)self;
    static char body[2 * 1024 * 1024];
    const char *rest = memmem(inv->payload.ptr, inv->payload.len, "],\"window\"", 10);
    assert_non_null(rest);
    size_t left = inv->payload.len - (size_t)(rest - inv->payload.ptr);
    snprintf(windows.events[windows.n++], 600, "%zu%.*s", inv->n, (int)(left < 500 ? left : 500), rest);
    if (inv->is_final && windows.failures_left-- > 0)
        return;
    const char *state = memmem(inv->payload.ptr, inv->payload.len, "\"sum\":", 6);
    long sum = state ? strtol(state + 6, NULL, 10) : 0;
    snprintf(body, sizeof(body), "{\"state\":{\"sum\":%ld}}", sum + (long)inv->n);
    if (windows.huge && windows.n == 1)
        snprintf(body, sizeof(body), "{\"state\":{\"sum\":7,\"pad\":\"%0*d\"}}", 1024 * 1024, 0);
    out->outcome = SL_ESM_ANSWERED;
    out->body = sl_span_str(body);
}

static void run_windows(void)
{
    const struct sl_esm_driver driver = {.invoke = sum_window};
    windows.n = 0;
    assert_int_equal(sl_esm_settings_check(&w.settings, NULL), SL_OK);
    sl_clock_virtual_init(&w.clock, T0 * 1000000, 1);
    w.esm = sl_esm_new(&w.settings, &w.shard, 1, &w.clock, &driver);
    while (sl_esm_step(w.esm)) {
    }
    assert_int_equal(sl_esm_checkpoint(w.esm, 0), w.shard.n);
    sl_esm_destroy(w.esm);
}

/* The end of a window's event: `n` records before it. */
#define EVENT(n, start, end, state, last, early)                                                             \
#n "],'window':{'start':'2019-11-13T" start "Z','end':'2019-11-13T" end "Z'},'state':" state             \
       ",'shardId':'shardId-00000001573689197184-864758bb','eventSourceARN':"                                \
       "'arn:aws:dynamodb:us-east-1:123456789012:table/replayed/stream/2026-01-01T00:00:00.000',"            \
       "'isFinalInvokeForWindow':" last ",'isWindowTerminatedEarly':" early "}"

static void windows_carry_state_and_end(void **state)
{
    (void)state;
    set_up(5); /* three in the minute from 23:53:00, two in the minute from 23:55:00 */
    w.settings.tumbling_s = 60;
    w.settings.batch_size = 2;
    for (size_t i = 0; i < 5; i++)
        w.records[i].created_ms = T0 + (i < 3 ? 0 : 120000);
    windows.failures_left = 2;
    run_windows();
    static const char *const expected[] = {
        EVENT(2, "23:53:00", "23:54:00", "{}", "false", "false"),
        EVENT(1, "23:53:00", "23:54:00", "{'sum':2}", "false", "false"),
        EVENT(0, "23:53:00", "23:54:00", "{'sum':3}", "true", "false"),
        EVENT(0, "23:53:00", "23:54:00", "{'sum':3}", "true", "false"),
        EVENT(0, "23:53:00", "23:54:00", "{'sum':3}", "true", "false"),
        EVENT(2, "23:55:00", "23:56:00", "{}", "false", "false"),
        EVENT(0, "23:55:00", "23:56:00", "{'sum':2}", "true", "false"),
    };
    assert_int_equal(windows.n, 7);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(windows.events[i], json(expected[i]));
}

static void a_state_that_is_too_large_ends_its_window_early(void **state)
{
    (void)state;
    set_up(3);
    w.settings.tumbling_s = 300;
    w.settings.batch_size = 2;
    windows.failures_left = 0;
    windows.huge = true;
    run_windows();
    windows.huge = false;
    assert_int_equal(windows.n, 4);
    assert_memory_equal(windows.events[1], "0],\"window\"", 11);
    assert_non_null(strstr(windows.events[1], "{\"sum\":7,\"pad\":\"0000"));
    assert_string_equal(windows.events[2], json(EVENT(1, "23:50:00", "23:55:00", "{}", "false", "false")));
}

static struct stateless {
    bool is_final[64];
    enum sl_esm_verb verb[64];
    size_t n;
} stateless;

static void answer_as_told(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    (void)inv;
    out->outcome = SL_ESM_ANSWERED;
    out->body = sl_span_str(self);
}

static void note_verb(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                      const struct sl_esm_decision *decision)
{
    (void)self;
    (void)result;
    stateless.is_final[stateless.n] = inv->is_final;
    stateless.verb[stateless.n++] = decision->verb;
}

/* One record in a window, with this answer each time. */
static struct sl_esm_stats run_answered(const char *answer)
{
    const struct sl_esm_driver driver = {
        .invoke = answer_as_told, .decided = note_verb, .self = (void *)answer};
    set_up(1);
    w.settings.tumbling_s = 60;
    w.settings.max_retries = 1;
    w.settings.retention_s = 60; /* limits how long the last call is repeated */
    stateless = (struct stateless){.n = 0};
    sl_clock_virtual_init(&w.clock, T0 * 1000000, 1);
    w.esm = sl_esm_new(&w.settings, &w.shard, 1, &w.clock, &driver);
    while (sl_esm_step(w.esm)) {
    }
    struct sl_esm_stats stats = sl_esm_stats(w.esm);
    sl_esm_destroy(w.esm);
    return stats;
}

static void an_answer_without_state_is_a_failure(void **state)
{
    (void)state;
    static const char *const answers[] = {"{'batchItemFailures':[]}",
                                          "",
                                          "null",
                                          "[]",
                                          "''",
                                          "{",
                                          "{'state':null}",
                                          "{'state':[]}",
                                          "{'state':'{}'}",
                                          "[{'state':{}}]"};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct sl_esm_stats stats = run_answered(json(answers[i]));
        assert_int_equal(stateless.verb[0], SL_ESM_RETRY);
        assert_int_equal(stateless.verb[1], SL_ESM_DISCARD);
        assert_true(stateless.is_final[2]);
        assert_int_equal(stateless.verb[stateless.n - 1], SL_ESM_DISCARD);
        assert_int_equal(stats.discarded, 1);
    }
    static const char *const good[] = {"{'state':{}}", " {'state' : {'a':[1]}, 'batchItemFailures':null} "};
    for (size_t i = 0; i < 2; i++) {
        struct sl_esm_stats stats = run_answered(json(good[i]));
        assert_int_equal(stateless.n, 2);
        assert_int_equal(stateless.verb[0], SL_ESM_ADVANCE);
        assert_true(stateless.is_final[1]);
        assert_int_equal(stats.done, 1);
    }
}

/* Lambda may refuse the window's last call, too: it is repeated as long as the stream keeps records. */
static void refuse_the_last(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    (void)self;
    out->outcome = inv->is_final ? SL_ESM_THROTTLED : SL_ESM_ANSWERED;
    out->body = SL_LIT("{\"state\":{}}");
}

static void a_last_call_that_is_refused_is_repeated_for_a_time(void **state)
{
    (void)state;
    const struct sl_esm_driver driver = {.invoke = refuse_the_last, .decided = note_verb};
    set_up(1);
    w.settings.tumbling_s = 60;
    w.settings.retention_s = 60;
    stateless = (struct stateless){.n = 0};
    sl_clock_virtual_init(&w.clock, T0 * 1000000, 1);
    w.esm = sl_esm_new(&w.settings, &w.shard, 1, &w.clock, &driver);
    while (sl_esm_step(w.esm)) {
    }
    assert_true(stateless.n > 3 && stateless.n < 64);
    assert_int_equal(stateless.verb[0], SL_ESM_ADVANCE);
    for (size_t i = 1; i < stateless.n; i++) {
        assert_true(stateless.is_final[i]);
        assert_int_equal(stateless.verb[i], i + 1 < stateless.n ? SL_ESM_RETRY : SL_ESM_DISCARD);
    }
    struct sl_esm_stats stats = sl_esm_stats(w.esm);
    assert_int_equal(stats.throttles, stateless.n - 1);
    assert_int_equal(stats.done, 1);
    assert_int_equal(stats.discarded, 0);
    /* From the window's end on, at 23:54:00, for a minute. */
    assert_in_range(w.clock.ms, 43000 + 60000, 43000 + 60000 + 60000);
    sl_esm_destroy(w.esm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_carry_state_and_end),
        cmocka_unit_test(a_state_that_is_too_large_ends_its_window_early),
        cmocka_unit_test(an_answer_without_state_is_a_failure),
        cmocka_unit_test(a_last_call_that_is_refused_is_repeated_for_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
