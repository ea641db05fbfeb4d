/* What the simulated mapping makes of a function's answers, and what it then tells about records that were
 * given up. */
#include "tests/esm/esm_world.h"

/* Any set of poison records, with every setting that isolates: each of them is given up alone. */
static void poison_is_isolated_by_function_errors_and_by_answers(void **state)
{
    (void)state;
    for (unsigned set = 0; set < 1u << 9; set++)
        for (int with_answers = 0; with_answers < 2; with_answers++)
            for (int64_t retries = 0; retries < 2; retries++) {
                set_up(9);
                w.settings.max_retries = retries;
                w.settings.bisect = true;
                w.settings.report_failures = w.names_poison = with_answers;
                size_t n_poison = 0;
                for (size_t i = 0; i < 9; i++)
                    n_poison += w.poison[i] = set >> i & 1;
                run();
                assert_int_equal(w.n_discards, n_poison);
                assert_int_equal(w.stats.beside, 0);
                for (size_t i = 0; i < n_poison; i++) {
                    assert_int_equal(w.discards[i].n, 1);
                    assert_true(w.poison[w.discard_first[i]]);
                    assert_int_equal(w.discards[i].invoke_count, retries + 1);
                }
                for (size_t i = 0; i < 9; i++)
                    assert_int_equal(w.successes[i], !w.poison[i]);
            }
}

/* Without a setting that isolates, good records are given up with the poison, and the count says how many.
 * Which record of a function error is the poison, nobody knows. */
static void what_is_given_up_beside_the_poison_is_counted(void **state)
{
    (void)state;
    static const struct {
        bool names, ages;
        size_t n, poison, discarded, beside;
    } cases[] = {
        {true, false, 10, 7, 3, 2},    {true, false, 10, 0, 10, 9}, {true, false, 1, 0, 1, 0},
        {false, false, 10, 7, 10, 10}, {false, false, 1, 0, 1, 0},  {true, true, 10, 7, 3, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_up(cases[i].n);
        w.settings.max_retries = cases[i].ages ? -1 : 1;
        w.settings.max_age_s = cases[i].ages ? 60 : -1;
        w.settings.report_failures = w.names_poison = cases[i].names;
        w.poison[cases[i].poison] = true;
        run();
        assert_int_equal(w.stats.discarded, cases[i].discarded);
        assert_int_equal(w.stats.beside, cases[i].beside);
    }
    /* An answer that names several: only the lowest moves the checkpoint, but all of them are known. */
    set_up(5);
    w.settings.report_failures = true;
    w.settings.max_retries = 0;
    w.answer = json("{'batchItemFailures':[{'itemIdentifier':'1004'},{'itemIdentifier':'1000'}]}");
    run();
    assert_int_equal(w.stats.discarded, 5);
    assert_int_equal(w.stats.beside, 3);
    /* Too old when they are first read: they were beside nothing. */
    set_up(5);
    w.settings.max_age_s = 60;
    for (size_t i = 0; i < 5; i++)
        w.records[i].created_ms = T0 - 100000;
    run();
    assert_int_equal(w.stats.discarded, 5);
    assert_int_equal(w.stats.beside, 0);
}

/* With both settings on, the batch is cut at the record that the answer names. When that is the first record,
 * it is cut in halves (see esm_choices.h). */
static void a_partial_answer_cuts_where_it_says(void **state)
{
    (void)state;
    static const struct {
        size_t first, n;
        enum sl_esm_verb verb;
    } calls[] = {
        {0, 10, SL_ESM_CHECKPOINT}, {7, 3, SL_ESM_BISECT}, {7, 1, SL_ESM_DISCARD}, {8, 2, SL_ESM_ADVANCE}};
    set_up(10);
    w.settings.max_retries = 0;
    w.settings.bisect = w.settings.report_failures = w.names_poison = true;
    w.poison[7] = true;
    run();
    assert_int_equal(w.n_calls, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(w.calls[i].first, calls[i].first);
        assert_int_equal(w.calls[i].n, calls[i].n);
        assert_int_equal(w.calls[i].verb, calls[i].verb);
    }
    assert_int_equal(w.discards[0].n, 1);
    assert_true(failure_has("'functionError':null}"));
}

/* A malformed answer fails the whole batch, and is not cut: another choice of esm_choices.h. */
static void a_malformed_answer_is_not_cut(void **state)
{
    (void)state;
    set_up(4);
    w.settings.max_retries = 1;
    w.settings.bisect = w.settings.report_failures = true;
    w.answer = json("{'batchItemFailures':[{'itemIdentifier':'9'}]}");
    run();
    assert_int_equal(w.n_calls, 2);
    assert_int_equal(w.stats.splits, 0);
    assert_int_equal(w.discards[0].n, 4);
}

/* What Lambda takes for "all is done", and what for nothing at all: then the whole batch is retried. */
static void an_answer_is_well_formed_or_fails_the_batch(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        size_t done; /* of three records, by the first call; 9: it is malformed */
    } cases[] = {
        {"", 3},
        {"null", 3},
        {"{}", 3},
        {"[]", 3},
        {"''", 3},
        {"{'batchItemFailures':[]}", 3},
        {"{'batchItemFailures':null}", 3},
        {" {'other':[1], 'batchItemFailures' : [ ] } ", 3},
        {"{'batchItemFailures':[{'itemIdentifier':'1002'}]}", 2},
        {"{'batchItemFailures':[{'itemIdentifier':'1001'},{'itemIdentifier':'1001'}]}", 1},
        {"{'batchItemFailures':[{'itemIdentifier':'1002'},{'itemIdentifier':'1001'}]}", 1},
        {"{'batchItemFailures':[{'itemIdentifier':'1000'}]}", 0},
        {"true", 9},
        {"7", 9},
        {"'done'", 9},
        {"[1]", 9},
        {"{'batchItemFailures':", 9},
        {"{'batchItemFailures':{}}", 9},
        {"{'batchItemFailures':''}", 9},
        {"{'batchItemFailures':[{}]}", 9},
        {"{'batchItemFailures':[null]}", 9},
        {"{'batchItemFailures':['1001']}", 9},
        {"{'batchItemFailures':[{'itemIdentifier':1001}]}", 9},
        {"{'batchItemFailures':[{'itemIdentifier':''}]}", 9},
        {"{'batchItemFailures':[{'itemIdentifier':'1001'},{'itemIdentifier':'1003'}]}", 9},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_up(3);
        w.settings.max_retries = 0;
        w.settings.report_failures = true;
        w.answer = json(cases[i].answer);
        run();
        size_t done = cases[i].done, given_up = done == 9 ? 3 : 3 - done;
        assert_int_equal(w.calls[0].verb, done == 3                ? SL_ESM_ADVANCE
                                          : done == 9 || done == 0 ? SL_ESM_DISCARD
                                                                   : SL_ESM_CHECKPOINT);
        assert_int_equal(w.stats.discarded, given_up);
        if (given_up == 3)
            assert_int_equal(w.stats.malformed_answers, done == 9);
    }
}

static void an_answer_is_ignored_unless_the_mapping_asks_for_it(void **state)
{
    (void)state;
    set_up(3);
    w.names_poison = true;
    w.poison[0] = true;
    run();
    assert_int_equal(w.n_calls, 1);
    assert_int_equal(w.calls[0].verb, SL_ESM_ADVANCE);
    assert_int_equal(w.stats.ignored_answers, 1);
}

/* Only an answer that names something is counted, and only when it is ignored. */
static void answers_that_are_ignored_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        bool is_counted;
    } cases[] = {
        {"{'batchItemFailures':[{'itemIdentifier':'1000'}]}", true},
        {" { 'x' : 1, 'batchItemFailures' : [ {} ] } ", true},
        {"{'batchItemFailures':[{'itemIdentifier':'not in the batch'}]}", true},
        {"{'batchItemFailures':[]}", false},
        {"{ 'batchItemFailures' : [ ] }", false},
        {"{'batchItemFailures':null}", false},
        {"{'batchItemFailures':{'itemIdentifier':'1000'}}", false},
        {"['batchItemFailures']", false},
        {"{'batchItemFailures':[", false},
        {"null", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int is_on = 0; is_on < 2; is_on++) {
            set_up(3);
            w.settings.batch_size = 1;
            w.settings.max_retries = 0;
            w.settings.report_failures = is_on;
            w.answer = json(cases[i].answer);
            run();
            assert_int_equal(w.stats.ignored_answers, cases[i].is_counted && !is_on ? 3 : 0);
            assert_true(is_on || w.stats.discarded == 0);
        }
}

/* Of a batch that was tried for too long: what the stream has dropped, and what is older than the mapping
 * allows. Each part is given up by itself, for its own reason. */
static void records_that_expire_for_two_reasons_are_given_up_apart(void **state)
{
    (void)state;
    set_up(4);
    w.settings.max_age_s = 600;
    w.settings.retention_s = 1000;
    w.settings.window_s = 300;
    w.fails = true;
    for (size_t i = 0; i < 4; i++) { /* the first two are never too old, the others come later */
        w.records[i].created_ms = i < 2 ? T0 + 100000000 : T0;
        w.records[i].available_ms = i < 2 ? T0 : T0 + 290000;
    }
    run();
    assert_int_equal(w.calls[0].n, 4);
    assert_int_equal(w.n_discards, 2);
    assert_int_equal(w.discards[0].condition, SL_ESM_TRIMMED);
    assert_int_equal(w.discards[1].condition, SL_ESM_AGE_EXCEEDED);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(w.discards[i].n, 2);
        assert_int_equal(w.discard_first[i], 2 * i);
    }
    assert_int_equal(w.stats.trimmed, 2);
    assert_int_equal(w.stats.discarded, 2);
}

/* tail adds up the counts of pages: none may be forgotten. */
static void every_count_is_added(void **state)
{
    (void)state;
    struct sl_esm_stats one, sum = {0};
    uint64_t counts[sizeof(one) / sizeof(uint64_t)];
    memset(&one, 0, sizeof(one));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        counts[i] = i + 1;
    memcpy(&one, counts, sizeof(one));
    sl_esm_stats_add(&sum, &one);
    assert_memory_equal(&sum, &one, sizeof(one));
    sl_esm_stats_add(&sum, &one);
    memcpy(counts, &sum, sizeof(sum));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        assert_int_equal(counts[i], 2 * (i + 1));
}

static void the_lowest_of_several_failures_counts(void **state)
{
    (void)state;
    set_up(5);
    w.settings.report_failures = true;
    w.settings.max_retries = 0;
    w.answer = json("{'batchItemFailures':[{'itemIdentifier':'1004'},{'itemIdentifier':'1002'}]}");
    run();
    assert_int_equal(w.calls[0].verb, SL_ESM_CHECKPOINT);
    assert_int_equal(w.calls[1].first, 2);
    assert_int_equal(w.calls[1].n, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(poison_is_isolated_by_function_errors_and_by_answers),
        cmocka_unit_test(what_is_given_up_beside_the_poison_is_counted),
        cmocka_unit_test(a_partial_answer_cuts_where_it_says),
        cmocka_unit_test(a_malformed_answer_is_not_cut),
        cmocka_unit_test(an_answer_is_well_formed_or_fails_the_batch),
        cmocka_unit_test(an_answer_is_ignored_unless_the_mapping_asks_for_it),
        cmocka_unit_test(answers_that_are_ignored_are_counted),
        cmocka_unit_test(records_that_expire_for_two_reasons_are_given_up_apart),
        cmocka_unit_test(every_count_is_added),
        cmocka_unit_test(the_lowest_of_several_failures_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
