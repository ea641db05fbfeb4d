/* Calls of ports, outcomes of a slice's records, as the host is told of them, and the result that says why a
 * transaction failed. */
#include "tests/support/test.h"

#include "base/arena.h"
#include "base/error.h"
#include "handlers/builtin/toolkit/apply.h"
#include "handlers/builtin/toolkit/outcome.h"
#include "handlers/pipeline/host.h"

#include <stdio.h>

#define RECORDS 4
#define NOTHING 9 /* was said of the record */

static int marks[RECORDS];
static char codes[RECORDS][64];

static void note_mark(struct sl_slice *slice, size_t i, enum sl_status status, const struct sl_error *error)
{
    assert_true(i < slice->n);
    marks[i] = status;
    snprintf(codes[i], sizeof(codes[i]), "%s", error ? error->code : "");
}

/* ---- records ---- */

/* What is said of records, in order: "f0R" record 0 fails with SL_RETRY; 'u' unknown, 's' shared; R, X (a
 * refusal), F (SL_FATAL). Its code is the three letters. */
static enum sl_status say(const char *words, struct sl_error *error)
{
    struct sl_host host = sl_host_table;
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_slice slice = {.n = RECORDS, .arena = arena};
    struct sl_outcome o;
    host.mark = note_mark;
    for (size_t i = 0; i < RECORDS; i++)
        marks[i] = NOTHING;
    sl_outcome_init(&o, &host, &slice);
    for (; *words; words += words[3] ? 4 : 3) {
        struct sl_error why = SL_NO_ERROR;
        const char code[4] = {words[0], words[1], words[2], '\0'};
        size_t i = (size_t)(words[1] - '0');
        /* (cmocka's macro fail() is not meant.) */
        (void)(host.fail)(&why,
                          words[2] == 'R'   ? SL_RETRY
                          : words[2] == 'F' ? SL_FATAL
                                            : SL_REJECT,
                          code, "because of %s", code);
        if (words[0] == 'f')
            sl_outcome_fail(&o, i, &why);
        else if (words[0] == 'u')
            sl_outcome_unknown(&o, i, &why);
        else
            sl_outcome_shared(&o, i, &why);
    }
    sl_error_clear(error);
    enum sl_status status = sl_outcome_end(&o, error);
    sl_arena_destroy(arena);
    return status;
}

static void records_are_done_unless_something_else_is_said(void **state)
{
    (void)state;
    enum { N = NOTHING, K = SL_OK, R = SL_RETRY, X = SL_REJECT, F = SL_FATAL };
    static const struct {
        const char *words;
        enum sl_status status;
        const char *code; /* of the slice */
        int marks[RECORDS];
    } cases[] = {
        /* As long as each failure is a record's own, the others need no word. */
        {"", SL_OK, "", {N, N, N, N}},
        {"f0R", SL_OK, "", {R, N, N, N}},
        {"f1X f3R", SL_OK, "", {N, X, N, R}},
        {"s1R", SL_OK, "", {N, R, N, N}},
        /* Suspects are not marked; those that are done are, so that they are not called again. */
        {"u1X", SL_REJECT, "u1X", {K, N, K, K}},
        {"s1X s2X", SL_REJECT, "s1X", {K, N, N, K}},
        {"f0X u2X", SL_REJECT, "u2X", {X, K, N, K}},
        {"u2X f0R", SL_REJECT, "u2X", {R, K, N, K}},
        /* SL_FATAL stops the route: the first one says why. */
        {"f1F", SL_FATAL, "f1F", {K, F, K, K}},
        {"s1F", SL_FATAL, "s1F", {K, F, K, K}},
        {"f1F f2F", SL_FATAL, "f1F", {K, F, F, K}},
        {"u0X f2F f3F", SL_FATAL, "f2F", {N, K, F, F}},
        {"f2F u0X", SL_FATAL, "f2F", {N, K, F, K}},
        {"f0R f1F", SL_FATAL, "f1F", {R, F, K, K}},
        /* The last word counts. */
        {"u1X f1R", SL_REJECT, "u1X", {K, R, K, K}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error error;
        enum sl_status status = say(cases[i].words, &error);
        if (status != cases[i].status || (status != SL_OK && strcmp(error.code, cases[i].code) != 0))
            fail_msg("\"%s\": %d %s", cases[i].words, status, error.code);
        for (size_t r = 0; r < RECORDS; r++)
            if (marks[r] != cases[i].marks[r])
                fail_msg("\"%s\": record %zu is %d", cases[i].words, r, marks[r]);
        if (status != SL_OK)
            assert_non_null(strstr(error.text, "because of "));
    }
}

static void a_failure_is_marked_with_its_reason(void **state)
{
    (void)state;
    struct sl_error error;
    assert_int_equal(say("f0X f2R", &error), SL_OK);
    assert_string_equal(codes[0], "f0X");
    assert_string_equal(codes[2], "f2R");
}

/* ---- results ---- */

static void a_result_without_words_still_says_something(void **state)
{
    (void)state;
    struct sl_error error;
    const struct sl_result bare = {.status = SL_RETRY},
                           whole = {.status = SL_REJECT, .code = "Code", .text = "a text: 100 %s"};
    sl_outcome_error(&sl_host_table, &bare, &error);
    assert_int_equal(error.status, SL_RETRY);
    assert_string_equal(error.code, "Unknown");
    assert_string_equal(error.text, "the sink gave no reason");
    sl_outcome_error(&sl_host_table, &whole, &error);
    assert_int_equal(error.status, SL_REJECT);
    assert_string_equal(error.code, "Code");
    assert_string_equal(error.text, "a text: 100 %s");
}

/* The letters are results of one transaction: '.' success, 'f' a condition that did not hold, 'c' canceled
 * with the others, 'R' throttled, 'X' refused, 'F' fatal, 'n' refused without a code, 't' throttled with a
 * code that says it was canceled. */
static struct sl_result result_of(char letter)
{
    switch (letter) {
    case 'f':
        return (struct sl_result){.status = SL_REJECT, .condition_failed = true, .code = "Other"};
    case 'c':
        return (struct sl_result){.status = SL_REJECT, .code = "TransactionCanceled"};
    case 'R':
        return (struct sl_result){.status = SL_RETRY, .code = "Throttled"};
    case 'X':
        return (struct sl_result){.status = SL_REJECT, .code = "ValidationException"};
    case 'F':
        return (struct sl_result){.status = SL_FATAL, .code = "AccessDenied"};
    case 'n':
        return (struct sl_result){.status = SL_REJECT};
    case 't':
        return (struct sl_result){.status = SL_RETRY, .code = "TransactionCanceled"};
    default:
        return (struct sl_result){.status = SL_OK};
    }
}

static void a_failure_of_the_environment_explains_before_a_refusal(void **state)
{
    (void)state;
    static const struct {
        const char *results;
        int cause; /* -1: none */
    } cases[] = {{"", -1},   {".", -1},  {"...", -1}, {"fcf", -1}, {"cc.", -1}, {".X", 1}, {"XX", 0},
                 {"cX", 1},  {"fX", 1},  {"XR", 1},   {"XRR", 1},  {"RX", 0},   {"XF", 1}, {"fFR", 1},
                 {"cRF", 1}, {"Xcc", 0}, {"nc", 0},   {"cn", 1},   {"ct", 1},   {"Xt", 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_result results[4];
        size_t n = strlen(cases[i].results);
        for (size_t k = 0; k < n; k++)
            results[k] = result_of(cases[i].results[k]);
        const struct sl_result *cause = sl_outcome_cause(results, n);
        if (cause != (cases[i].cause < 0 ? NULL : &results[cases[i].cause]))
            fail_msg("%s: %td", cases[i].results, cause ? cause - results : -1);
    }
}

/* ---- calls ---- */

static size_t applied;

static void apply_objects(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                          struct sl_result *results, const struct sl_call *call)
{
    (void)port, (void)objects;
    assert_int_equal(call->deadline_ms, 77);
    assert_int_equal(results[n - 1].status, SL_OK); /* zeroed */
    assert_null(results[n - 1].code);
    applied += n;
}

static void apply_table(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    (void)port, (void)ops;
    apply_objects(NULL, NULL, n, results, call);
}

static void apply_messages(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                           struct sl_result *results, const struct sl_call *call)
{
    (void)port, (void)messages;
    apply_objects(NULL, NULL, n, results, call);
}

static void a_port_is_called_for_something_and_until_the_deadline(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(1024);
    const struct sl_slice slice = {.arena = arena, .deadline_ms = 77};
    struct sl_object_port objects = {.apply = apply_objects};
    struct sl_table_port table = {.apply = apply_table};
    struct sl_queue_port queue = {.apply = apply_messages};
    applied = 0;
    (void)sl_apply_objects(&slice, &objects, NULL, 0);
    (void)sl_apply_table(&slice, &table, NULL, 0);
    (void)sl_apply_messages(&slice, &queue, NULL, 0);
    assert_int_equal(applied, 0);
    assert_non_null(sl_apply_objects(&slice, &objects, NULL, 1));
    assert_non_null(sl_apply_table(&slice, &table, NULL, 2));
    assert_non_null(sl_apply_messages(&slice, &queue, NULL, 4));
    assert_int_equal(applied, 7);
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_is_called_for_something_and_until_the_deadline),
        cmocka_unit_test(records_are_done_unless_something_else_is_said),
        cmocka_unit_test(a_failure_is_marked_with_its_reason),
        cmocka_unit_test(a_result_without_words_still_says_something),
        cmocka_unit_test(a_failure_of_the_environment_explains_before_a_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
