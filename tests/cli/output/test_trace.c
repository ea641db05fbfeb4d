/* The trace: one line of JSON for each invocation, whatever the function answers; rows of equal retries are
 * one line when they are counted. */
#include "tests/support/test.h"

#include "cli/output/trace.h"
#include "live/sandbox/output.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

struct world {
    struct sl_esm_shard shards[2];
    struct sl_esm_record record;
    const struct sl_esm_record *records[1];
    char *text;
    size_t len;
    FILE *file;
    struct sl_trace_file *trace;
};

static void begin(struct world *w, struct sl_trace_options options)
{
    *w =
        (struct world){.shards = {{.id = "shardId-1"}, {.id = "shardId-2"}}, .record = {.id = SL_LIT("100")}};
    w->records[0] = &w->record;
    w->file = open_memstream(&w->text, &w->len);
    assert_non_null(w->file);
    w->trace = sl_trace_new(w->file, options);
}

/* The text, until the next one. */
static const char *end(struct world *w)
{
    static char *last;
    assert_int_equal(sl_trace_close(w->trace), 0);
    assert_int_equal(fclose(w->file), 0);
    free(last);
    last = w->text;
    return last;
}

static void add(struct world *w, int shard, unsigned attempt, enum sl_esm_verb verb, struct sl_span body)
{
    const struct sl_esm_invocation inv = {.shard = &w->shards[shard],
                                          .attempt = attempt,
                                          .records = w->records,
                                          .n = 1,
                                          .payload = SL_LIT("1234567"),
                                          .time_ms = 5};
    const struct sl_esm_result result = {.outcome = SL_ESM_ANSWERED, .body = body};
    const struct sl_esm_decision decision = {.verb = verb};
    sl_trace_add(w->trace, &inv, &result, &decision);
}

static size_t lines(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* ---- answers ---- */

static void any_answer_is_one_line_of_json(void **state)
{
    (void)state;
    static const struct {
        const char *body, *answer; /* NULL: absent */
    } cases[] = {
        {"{'batchItemFailures':[]}", "{'batchItemFailures':[]}"},
        {"{ 'a' :\n [1,\t2] }", "{'a':[1,2]}"},
        {"null", "null"},
        {"'text'", "'text'"},
        {"7\n", "7"},
        {"", "''"},
        {NULL, "''"},
        {"{", "'{'"},
        {"two\nlines", "'two\\nlines'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w;
        begin(&w, (struct sl_trace_options){.with_ids = true});
        add(&w, 0, 1, SL_ESM_ADVANCE, cases[i].body ? sl_span_str(json(cases[i].body)) : sl_span(NULL, 0));
        const char *text = end(&w);
        assert_int_equal(lines(text), 1);
        json_t *root = json_loads(text, 0, NULL),
               *wanted = json_loads(json(cases[i].answer), JSON_DECODE_ANY, NULL);
        assert_true(root && wanted);
        if (!json_equal(json_object_get(root, "answer"), wanted))
            fail_msg("%s: %s", cases[i].answer, text);
        assert_string_equal(json_string_value(json_array_get(json_object_get(root, "ids"), 0)), "100");
        assert_string_equal(json_string_value(json_object_get(root, "decision")), "advance");
        json_decref(root);
        json_decref(wanted);
    }
}

static void an_invocation_of_a_window_has_no_records(void **state)
{
    (void)state;
    struct world w;
    begin(&w, (struct sl_trace_options){.folds = true});
    const struct sl_esm_invocation inv = {.shard = &w.shards[0], .attempt = 1};
    const struct sl_esm_result result = {.outcome = SL_ESM_ANSWERED, .body = SL_LIT("{}")};
    sl_trace_add(w.trace, &inv, &result, &(struct sl_esm_decision){.verb = SL_ESM_ADVANCE});
    assert_string_equal(
        end(&w), json("{'time_ms':0,'shard':'shardId-1','first':null,'last':null,'records':0,'bytes':0,"
                      "'attempt':1,'answer':{},'decision':'advance','checkpoint':null}\n"));
}

/* ---- rows of retries ---- */

/* Attempts 1 to n of one batch, which the function answers with these texts in turn, and then once well. */
static const char *row(struct world *w, bool folds, unsigned n, const char *even, const char *odd)
{
    begin(w, (struct sl_trace_options){.folds = folds});
    for (unsigned i = 1; i <= n; i++)
        add(w, 0, i, SL_ESM_RETRY, sl_span_str(i % 2 ? odd : even));
    add(w, 0, n + 1, SL_ESM_ADVANCE, SL_LIT("{}"));
    return end(w);
}

static void equal_retries_are_one_line(void **state)
{
    (void)state;
    struct world w;
    const char *same = "{\"id\":\"01234567-89ab-cdef-0123-456789abcdef\"}",
               *again = "{\"id\":\"11111111-2222-3333-4444-555555555555\"}", *other = "{\"id\":\"x\"}";
    enum { FIRST = SL_TRACE_ATTEMPTS };
    assert_int_equal(lines(row(&w, false, FIRST + 5, same, again)), FIRST + 6);
    assert_int_equal(lines(row(&w, true, FIRST, same, again)), FIRST + 1);
    const char *text = row(&w, true, FIRST + 1, same, again);
    assert_int_equal(lines(text), FIRST + 2);
    assert_null(strstr(text, "repeats"));
    text = row(&w, true, FIRST + 5, same, again); /* request ids differ at each attempt */
    assert_int_equal(lines(text), FIRST + 2);
    assert_non_null(strstr(text, ",\"repeats\":4}\n"));
    assert_int_equal(lines(row(&w, true, FIRST + 5, same, other)),
                     FIRST + 6); /* none equals the one before */
}

static void each_shard_has_its_row(void **state)
{
    (void)state;
    struct world w;
    begin(&w, (struct sl_trace_options){.folds = true});
    for (unsigned i = 1; i <= 4; i++)
        for (int shard = 0; shard < 2; shard++)
            add(&w, shard, SL_TRACE_ATTEMPTS + i, SL_ESM_RETRY, SL_LIT("{\"errorType\":\"E\"}"));
    const char *text = end(&w); /* both rows are open */
    assert_int_equal(lines(text), 2);
    assert_non_null(strstr(text, "shardId-1"));
    assert_non_null(strstr(text, "shardId-2"));
    const char *first = strstr(text, "\"repeats\":3}");
    assert_true(first && strstr(first + 1, "\"repeats\":3}"));
}

/* ---- a disk that is full ---- */

static void the_first_error_is_kept(void **state)
{
    (void)state;
    struct world w;
    begin(&w, (struct sl_trace_options){.folds = false});
    struct sl_trace_file *unused = w.trace;
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setvbuf(full, NULL, _IOLBF, BUFSIZ);
    w.trace = sl_trace_new(full, (struct sl_trace_options){.folds = false});
    add(&w, 0, 1, SL_ESM_ADVANCE, SL_LIT("{}"));
    errno = EBADF; /* of something else */
    add(&w, 0, 1, SL_ESM_ADVANCE, SL_LIT("{}"));
    assert_int_equal(sl_trace_close(w.trace), ENOSPC);
    (void)fclose(full);
    w.trace = unused;
    assert_string_equal(end(&w), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_answer_is_one_line_of_json),
        cmocka_unit_test(an_invocation_of_a_window_has_no_records),
        cmocka_unit_test(equal_retries_are_one_line),
        cmocka_unit_test(each_shard_has_its_row),
        cmocka_unit_test(the_first_error_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
