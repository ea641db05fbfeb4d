/* The simulated mapping against what was recorded on AWS, what AWS documents, and our own choices. */
#include "tests/esm/esm_world.h"

/* ---- recorded on AWS ---- */

/* Cases 1 and 2 of check_vectors.py: one record, three retries, never a success. */
static void a_batch_is_given_up_after_its_retries(void **state)
{
    (void)state;
    static const char *const bad[] = {
        NULL, /* a function error */
        "{'batchItemFailures':[{'itemIdentifier':''}]}",
        "{'batchItemFailures':[{'itemIdentifier':null}]}",
        "{'batchItemFailures':[{'foo':123}]}",
        "{'batchItemFailures':[{'foo':null}]}",
        "{'batchItemFailures':[{'itemIdentifier':'1001'}]}",
        "{'batchItemFailures':[{'itemIdentifier':123}]}",
        "{'batchItemFailures':[{'itemIdentifier':'1000'}]}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        set_up(1);
        w.settings.max_retries = 3;
        w.settings.report_failures = true;
        w.fails = !bad[i];
        w.answer = bad[i] ? json(bad[i]) : NULL;
        run();
        assert_int_equal(w.n_calls, 4);
        for (int64_t k = 0; k < 4; k++) {
            assert_int_equal(w.calls[k].n, 1);
            assert_int_equal(w.calls[k].attempt, k + 1);
            assert_int_equal(w.calls[k].verb, k < 3 ? SL_ESM_RETRY : SL_ESM_DISCARD);
        }
        assert_int_equal(w.n_discards, 1);
        assert_true(failure_has("'condition':'RetryAttemptsExhausted','approximateInvokeCount':4}"));
        assert_true(failure_has("'startSequenceNumber':'1000','endSequenceNumber':'1000'"));
        assert_true(failure_has("'batchSize':1,"));
        assert_true(failure_has(bad[i] ? "'functionError':null}" : "'functionError':'Unhandled'}"));
    }
}

/* Case 3 of check_vectors.py. */
static void each_empty_answer_is_a_success(void **state)
{
    (void)state;
    static const char *const good[] = {
        "[]", "{}", "null", "{'batchItemFailures':[]}", "{'batchItemFailures':null}", "''"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        set_up(1);
        w.settings.max_retries = 3;
        w.settings.report_failures = true;
        w.answer = json(good[i]);
        run();
        assert_int_equal(w.n_calls, 1);
        assert_int_equal(w.n_discards, 0);
    }
}

/* Case 4 of check_vectors.py: attempts before the checkpoint moved do not count. */
static void after_progress_the_rest_has_all_its_attempts(void **state)
{
    (void)state;
    set_up(6);
    w.settings.batch_size = 3;
    w.settings.max_retries = 3;
    w.settings.report_failures = w.names_poison = true;
    w.poison[5] = true;
    run();
    assert_int_equal(w.deliveries[5], 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(w.deliveries[i], 1);
    assert_int_equal(w.n_discards, 1);
    assert_true(failure_has("'approximateInvokeCount':4}"));
    assert_true(failure_has("'batchSize':1,"));
    assert_true(failure_has("'functionError':null}"));
}

/* Case 5 of check_vectors.py: the failure record of an expired batch has no responseContext, and counts 8
 * calls. */
static void a_batch_is_given_up_after_the_record_age(void **state)
{
    (void)state;
    set_up(1);
    w.settings.max_age_s = 60;
    w.fails = true;
    run();
    assert_int_equal(w.n_calls, 8);
    assert_int_equal(w.n_discards, 1);
    assert_true(failure_has("'condition':'RecordAgeExceeded','approximateInvokeCount':8},'version'"));
    assert_false(failure_has("responseContext"));
}

/* Case 6 of check_vectors.py: the other records make one batch. */
static void a_record_that_is_expired_when_first_read_is_given_up_alone(void **state)
{
    (void)state;
    set_up(6);
    w.settings.batch_size = 10;
    w.settings.max_age_s = 60;
    w.settings.max_retries = 0;
    w.records[0].created_ms = T0 - 61000;
    run();
    assert_int_equal(w.n_discards, 1);
    assert_int_equal(w.deliveries[0], 0);
    assert_true(failure_has("'condition':'RecordAgeExceeded','approximateInvokeCount':1}"));
    assert_true(failure_has("'batchSize':1,"));
    assert_int_equal(w.n_calls, 1);
    assert_int_equal(w.calls[0].n, 5);
}

/* Case 8 of check_vectors.py. */
static void a_failed_batch_is_cut_in_halves(void **state)
{
    (void)state;
    set_up(4);
    w.settings.max_retries = 0;
    w.settings.bisect = true;
    w.poison[1] = true;
    run();
    static const size_t sizes[] = {4, 2, 1, 1, 2};
    assert_int_equal(w.n_calls, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(w.calls[i].n, sizes[i]);
    assert_int_equal(w.n_discards, 1);
    assert_int_equal(w.discard_first[0], 1);
    assert_true(failure_has("'functionError':'Unhandled'}"));
}

/* The failure record of a recorded one-record batch, byte by byte. */
static void a_failure_record_has_the_bytes_that_aws_writes(void **state)
{
    (void)state;
    set_up(1);
    w.settings.max_retries = 1;
    w.settings.stream_arn =
        "arn:aws:dynamodb:us-east-2:123456789012:table/mytable/stream/2019-11-14T00:04:06.388";
    w.settings.function_arn = "arn:aws:lambda:us-east-2:123456789012:function:myfunction";
    w.fails = true;
    run();
    const char *expected =
        json_printf("{'requestContext':{'requestId':'%.36s','functionArn':'arn:aws:lambda:us-east-2:"
                    "123456789012:function:myfunction',"
                    "'condition':'RetryAttemptsExhausted','approximateInvokeCount':2},"
                    "'responseContext':{'statusCode':200,'executedVersion':'$LATEST','functionError':"
                    "'Unhandled'},"
                    "'version':'1.0','timestamp':'2019-11-13T23:53:17.500Z',"
                    "'DDBStreamBatchInfo':{'shardId':'shardId-00000001573689197184-864758bb',"
                    "'startSequenceNumber':'1000','endSequenceNumber':'1000',"
                    "'approximateArrivalOfFirstRecord':'2019-11-13T23:53:17Z',"
                    "'approximateArrivalOfLastRecord':'2019-11-13T23:53:17Z','batchSize':1,"
                    "'streamArn':'arn:aws:dynamodb:us-east-2:123456789012:table/mytable/stream/"
                    "2019-11-14T00:04:06.388'}}",
                    strstr(w.failure, "requestId") + 12);
    assert_string_equal(w.failure, expected);
}

static void the_failure_record_for_s3_has_the_event_as_a_string(void **state)
{
    (void)state;
    set_up(2);
    const struct sl_esm_record *records[] = {&w.records[0], &w.records[1]};
    const struct sl_esm_discard d = {.condition = SL_ESM_RETRIES_EXHAUSTED,
                                     .shard = &w.shard,
                                     .records = records,
                                     .n = 2,
                                     .request_id = "r",
                                     .invoke_count = 1,
                                     .wall_ms = T0 + 1};
    struct sl_buffer event, b;
    sl_buffer_init(&event, 4096);
    sl_buffer_init(&b, 4096);
    sl_esm_event_json(records, 2, &event);
    sl_esm_failure_json(&w.settings, &d, sl_buffer_span(&event), &b);
    assert_true(sl_span_ends(
        sl_buffer_span(&b),
        SL_LIT(",\"payload\":\"{\\\"Records\\\":[{\\\"dynamodb\\\":{\\\"SequenceNumber\\\":\\\"1000\\\"}},"
               "{\\\"dynamodb\\\":{\\\"SequenceNumber\\\":\\\"1001\\\"}}]}\"}")));
    sl_buffer_reset(&b);
    sl_esm_failure_key(&w.settings, &d, &b);
    assert_true(sl_span_starts(sl_buffer_span(&b), SL_LIT("aws/lambda/5a0d8b3e-1c2f-4e6a-9b7d-3f4e5d6c7b8a/"
                                                          "shardId-00000001573689197184-864758bb/2019/11/13/"
                                                          "2019-11-13T23.53.17-")));
    sl_buffer_clean_up(&event);
    sl_buffer_clean_up(&b);
}

/* ---- documented ---- */

static size_t ceil_log2(size_t n)
{
    size_t k = 0;
    while (((size_t)1 << k) < n)
        k++;
    return k;
}

static void one_poison_record_is_isolated_at_every_place(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 64; n++)
        for (size_t at = 0; at < n; at++) {
            set_up(n);
            w.settings.max_retries = 0;
            w.settings.bisect = true;
            w.poison[at] = true;
            run();
            assert_in_range(w.n_calls, 1, 1 + 2 * ceil_log2(n));
            assert_int_equal(w.n_discards, 1);
            assert_int_equal(w.discard_first[0], at);
            assert_int_equal(w.discards[0].n, 1);
            assert_int_equal(w.stats.beside, 0);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(w.successes[i], i != at);
        }
}

static void splits_cost_no_retries(void **state)
{
    (void)state;
    set_up(8);
    w.settings.max_retries = 2;
    w.settings.bisect = true;
    w.poison[5] = true;
    run();
    assert_int_equal(w.n_discards, 1);
    assert_int_equal(w.discards[0].n, 1);
    assert_int_equal(w.discards[0].invoke_count, 3);
}

static void throttles_cost_no_attempts(void **state)
{
    (void)state;
    set_up(1);
    w.settings.max_retries = 0;
    w.settings.max_age_s = 600;
    w.throttles = true;
    run();
    assert_true(w.n_calls > 10);
    assert_int_equal(w.calls[w.n_calls - 2].attempt, 1);
    assert_int_equal(w.n_discards, 1);
    assert_int_equal(w.discards[0].condition, SL_ESM_AGE_EXCEEDED);
}

static void without_limits_a_batch_lives_as_long_as_its_records(void **state)
{
    (void)state;
    set_up(3);
    w.fails = true;
    run();
    assert_int_equal(w.n_discards, 1);
    assert_int_equal(w.discards[0].condition, SL_ESM_TRIMMED);
    assert_in_range(w.calls[w.n_calls - 1].time_ms, 24 * 3600 * 1000, 24 * 3600 * 1000 + 60000);
}

static void a_batch_is_full_by_records_or_by_bytes(void **state)
{
    (void)state;
    set_up(250);
    run();
    assert_int_equal(w.n_calls, 3);
    assert_int_equal(w.calls[2].n, 50);
    set_up(100);
    size_t one = strlen(w.texts[0]);
    w.settings.payload_bytes = (int64_t)(14 + 7 * (one + 1));
    run();
    assert_int_equal(w.calls[0].n, 7);
    set_up(3);
    w.settings.payload_bytes = 10; /* a single record is always sent */
    run();
    assert_int_equal(w.n_calls, 3);
}

/* Records arrive one second apart: each is a batch without a window; ten are a batch with a window of 10 s.
 */
static void a_batching_window_waits(void **state)
{
    (void)state;
    for (int64_t window = 0; window <= 10; window += 10) {
        set_up(40);
        w.settings.window_s = window;
        for (size_t i = 0; i < 40; i++)
            w.records[i].created_ms = w.records[i].available_ms = T0 + 1000 * (int64_t)i;
        run();
        assert_int_equal(w.n_calls, window ? 4 : 40);
        assert_int_equal(w.calls[0].time_ms, window * 1000);
    }
    set_up(40);
    w.settings.window_s = 300;
    w.settings.batch_size = 20;
    run();
    assert_int_equal(w.n_calls, 2);
    assert_int_equal(w.calls[1].time_ms, 0); /* full batches do not wait */
}

/* ---- lanes, shards, time ---- */

static struct {
    int under_way, most;
    size_t last_of_item[8];
} lanes;

static void begin_lane(void *self, struct sl_esm_invocation *inv)
{
    (void)self;
    (void)inv;
    if (++lanes.under_way > lanes.most)
        lanes.most = lanes.under_way;
}

static void end_lane(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    (void)self;
    lanes.under_way--;
    for (size_t i = 0; i < inv->n; i++) {
        size_t k = (size_t)(inv->records[i] - w.records), item = k % 8;
        assert_true(k == item || lanes.last_of_item[item] == k - 8);
        lanes.last_of_item[item] = k;
    }
    out->outcome = SL_ESM_ANSWERED;
}

static void one_shard_runs_several_batches_with_order_per_item(void **state)
{
    (void)state;
    for (int64_t factor = 1; factor <= 10; factor++) {
        set_up(800);
        memset(&lanes, 0, sizeof(lanes));
        w.settings.parallelization = factor;
        w.settings.batch_size = 7;
        w.settings.invocation_ms = 100;
        for (size_t i = 0; i < 800; i++)
            w.records[i].item_key = sl_span_str(w.ids[i % 8]);
        const struct sl_esm_driver driver = {.begin = begin_lane, .invoke = end_lane};
        sl_clock_virtual_init(&w.clock, T0 * 1000000, 1);
        w.esm = sl_esm_new(&w.settings, &w.shard, 1, &w.clock, &driver);
        while (sl_esm_step(w.esm)) {
        }
        assert_int_equal(sl_esm_checkpoint(w.esm, 0), 800);
        assert_in_range(lanes.most, factor > 1 ? 2 : 1, factor);
        sl_esm_destroy(w.esm);
    }
}

static size_t order[8], n_order;

static void note_shard(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    const struct sl_esm_shard *shards = self;
    order[n_order++] = (size_t)(inv->shard - shards);
    out->outcome = SL_ESM_ANSWERED;
    out->duration_ms = 1000;
}

static void a_child_waits_for_its_parent(void **state)
{
    (void)state;
    set_up(60);
    const struct sl_esm_shard shards[] = {
        {.id = "root", .parent = -1, .records = w.records, .n = 20},
        {.id = "left", .parent = 0, .records = w.records + 20, .n = 10},
        {.id = "right", .parent = 0, .records = w.records + 30, .n = 0},
        {.id = "below", .parent = 2, .records = w.records + 30, .n = 30},
    };
    const struct sl_esm_driver driver = {.self = (void *)shards, .invoke = note_shard};
    w.settings.batch_size = 10;
    n_order = 0;
    sl_clock_virtual_init(&w.clock, T0 * 1000000, 1);
    w.esm = sl_esm_new(&w.settings, shards, 4, &w.clock, &driver);
    while (sl_esm_step(w.esm)) {
    }
    static const size_t expected[] = {0, 0, 1, 3, 3, 3};
    assert_int_equal(n_order, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(order[i], expected[i]);
    assert_int_equal(sl_esm_stats(w.esm).elapsed_ms, 5000); /* left and below ran side by side */
    sl_esm_destroy(w.esm);
}

static void more_than_the_reserved_concurrency_is_throttled(void **state)
{
    (void)state;
    set_up(40);
    w.settings.parallelization = 4;
    w.settings.batch_size = 1;
    w.settings.concurrency = 1;
    w.settings.invocation_ms = 1000;
    memset(&lanes, 0, sizeof(lanes));
    for (size_t i = 0; i < 40; i++)
        w.records[i].item_key = sl_span_str(w.ids[i % 8]);
    const struct sl_esm_driver driver = {.begin = begin_lane, .invoke = end_lane};
    sl_clock_virtual_init(&w.clock, T0 * 1000000, 1);
    w.esm = sl_esm_new(&w.settings, &w.shard, 1, &w.clock, &driver);
    while (sl_esm_step(w.esm)) {
    }
    assert_int_equal(lanes.most, 1);
    assert_true(sl_esm_stats(w.esm).throttles > 0);
    assert_int_equal(sl_esm_stats(w.esm).done, 40);
    sl_esm_destroy(w.esm);
}

/* ---- settings ---- */

/* The least and the most that each setting takes, and one beyond; the last four are not AWS's. */
static void what_aws_refuses_is_refused(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        int64_t least, most;
        const char *name;
    } cases[] = {
#define SETTING(name) offsetof(struct sl_esm_settings, name)
        {SETTING(batch_size), 1, 10000, "BatchSize"},
        {SETTING(window_s), 0, 300, "MaximumBatchingWindowInSeconds"},
        {SETTING(parallelization), 1, 10, "ParallelizationFactor"},
        {SETTING(max_retries), -1, 10000, "MaximumRetryAttempts"},
        {SETTING(max_age_s), 60, 604800, "MaximumRecordAgeInSeconds"},
        {SETTING(max_age_s), -1, -1, "MaximumRecordAgeInSeconds"},
        {SETTING(tumbling_s), 0, 900, "TumblingWindowInSeconds"},
        {SETTING(n_filters), 0, 10, "the number of filters"},
        {SETTING(concurrency), 0, INT64_MAX, "concurrency, "},
        {SETTING(payload_bytes), 1, INT64_MAX, "concurrency, "},
        {SETTING(invocation_ms), 0, INT64_MAX, "concurrency, "},
        {SETTING(retention_s), 1, INT64_MAX, "concurrency, "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int64_t values[] = {cases[i].least, cases[i].most, cases[i].least - 1,
                                  cases[i].most == INT64_MAX ? INT64_MIN : cases[i].most + 1};
        for (size_t k = 0; k < 4; k++) {
            struct sl_esm_settings s;
            struct sl_error error = SL_NO_ERROR;
            sl_esm_settings_init(&s);
            memcpy((char *)&s + cases[i].offset, &values[k], sizeof(int64_t));
            assert_int_equal(sl_esm_settings_check(&s, &error), k < 2 ? SL_OK : SL_REJECT);
            if (k >= 2)
                assert_memory_equal(error.text, cases[i].name, strlen(cases[i].name));
        }
    }
    for (int64_t tumbling = 0; tumbling < 2; tumbling++)
        for (int64_t factor = 1; factor < 3; factor++) {
            struct sl_esm_settings s;
            sl_esm_settings_init(&s);
            s.tumbling_s = tumbling;
            s.parallelization = factor;
            assert_int_equal(sl_esm_settings_check(&s, NULL), tumbling && factor > 1 ? SL_REJECT : SL_OK);
        }
}

/* Kinesis has milliseconds. Two failures of one second have keys of their own; the same one has the same. */
static void failures_of_a_kinesis_stream_and_their_keys(void **state)
{
    (void)state;
    set_up(1);
    w.settings.is_kinesis = true;
    w.records[0].created_ms = T0 + 7;
    const struct sl_esm_record *records[] = {&w.records[0]};
    struct sl_esm_discard d = {.condition = SL_ESM_TRIMMED,
                               .shard = &w.shard,
                               .records = records,
                               .n = 1,
                               .request_id = "r",
                               .invoke_count = 1,
                               .wall_ms = T0 + 1};
    struct sl_buffer keys[4];
    sl_buffer_init(&keys[0], 4096);
    sl_esm_failure_json(&w.settings, &d, sl_span(NULL, 0), &keys[0]);
    snprintf(w.failure, sizeof(w.failure), "%.*s", SL_ARG(sl_buffer_span(&keys[0])));
    assert_true(failure_has("'KinesisBatchInfo':{'shardId'"));
    assert_true(failure_has("'condition':'RecordTrimmed'"));
    assert_true(failure_has("'approximateArrivalOfFirstRecord':'2019-11-13T23:53:17.007Z'"));
    sl_buffer_clean_up(&keys[0]);
    for (size_t i = 0; i < 4; i++) {
        sl_buffer_init(&keys[i], 4096);
        d.request_id = i == 1 ? "s" : "r";
        w.settings.seed = i == 2;
        sl_esm_failure_key(&w.settings, &d, &keys[i]);
        for (size_t k = 0; k < i; k++)
            assert_int_equal(sl_span_eq(sl_buffer_span(&keys[i]), sl_buffer_span(&keys[k])),
                             i == 3 && k == 0);
    }
    for (size_t i = 0; i < 4; i++)
        sl_buffer_clean_up(&keys[i]);
    sl_esm_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_given_up_after_its_retries),
        cmocka_unit_test(each_empty_answer_is_a_success),
        cmocka_unit_test(after_progress_the_rest_has_all_its_attempts),
        cmocka_unit_test(a_batch_is_given_up_after_the_record_age),
        cmocka_unit_test(a_record_that_is_expired_when_first_read_is_given_up_alone),
        cmocka_unit_test(a_failed_batch_is_cut_in_halves),
        cmocka_unit_test(a_failure_record_has_the_bytes_that_aws_writes),
        cmocka_unit_test(the_failure_record_for_s3_has_the_event_as_a_string),
        cmocka_unit_test(one_poison_record_is_isolated_at_every_place),
        cmocka_unit_test(splits_cost_no_retries),
        cmocka_unit_test(throttles_cost_no_attempts),
        cmocka_unit_test(without_limits_a_batch_lives_as_long_as_its_records),
        cmocka_unit_test(a_batch_is_full_by_records_or_by_bytes),
        cmocka_unit_test(a_batching_window_waits),
        cmocka_unit_test(one_shard_runs_several_batches_with_order_per_item),
        cmocka_unit_test(a_child_waits_for_its_parent),
        cmocka_unit_test(more_than_the_reserved_concurrency_is_throttled),
        cmocka_unit_test(what_aws_refuses_is_refused),
        cmocka_unit_test(failures_of_a_kinesis_stream_and_their_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
