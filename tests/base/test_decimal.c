#include "base/decimal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NINES "99999999999999999999999999999999999999"

static struct sl_decimal *sum_of(struct sl_arena *arena, const char *const *numbers)
{
    struct sl_decimal *d = sl_decimal_new(arena);
    for (; *numbers; numbers++)
        if (!sl_decimal_add(d, sl_span_str(*numbers + 1), **numbers == '-'))
            return NULL;
    return d;
}

static void expect(const char *want, const char *const *numbers)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_decimal *d = sum_of(arena, numbers);
    struct sl_span text;
    assert_non_null(d);
    assert_int_equal(sl_decimal_text(d, arena, &text), want != NULL);
    if (want) {
        assert_string_equal(sl_arena_copy(arena, text), want);
        assert_int_equal(sl_decimal_is_zero(d), sl_span_is(text, "0"));
    } else
        assert_null(text.ptr);
    sl_arena_destroy(arena);
}

/* Each number with '+' or '-' before it: added or subtracted. */
#define EXPECT(want, ...) expect(want, (const char *const[]){__VA_ARGS__, NULL})

static void a_number_has_one_spelling(void **state)
{
    (void)state;
    EXPECT("0", "+0");
    EXPECT("0", "+-0");
    EXPECT("0", "+-0.000e-999999999999999999999");
    EXPECT("0", "+0e999999999999999999999");
    EXPECT("1", "+1");
    EXPECT("1", "+1.");
    EXPECT("0.5", "+.5");
    EXPECT("-1", "+-1.000");
    EXPECT("5", "++0005");
    EXPECT("15", "+1.50e1");
    EXPECT("15", "+1.50E+0001");
    EXPECT("0.0015", "+1.50E-3");
    EXPECT("1000000000000000000000", "+1e21");
    EXPECT("1234567890123456.75", "+1234567890123456.750");
    EXPECT("0.000000000000000001", "+0.000000000000000001");
}

static void sums_are_exact(void **state)
{
    (void)state;
    EXPECT("0.3", "+0.1", "+0.2");
    EXPECT("0", "+0.1", "+0.2", "-0.3");
    EXPECT("-5", "+5", "-10");
    EXPECT("5", "--5");
    EXPECT("12.5", "+12", "+0.50");
    EXPECT("18446744073709551616", "+18446744073709551615", "+1");
    EXPECT("1"
           "00000000000000000000000000000000000000",
           "+" NINES, "+1");
    EXPECT(NINES, "+1e38", "-1");
    EXPECT("-" NINES, "-1e38", "+1");
}

static void a_sum_may_leave_the_range_and_return(void **state)
{
    (void)state;
    EXPECT(NULL, "+" NINES, "+0.5");
    EXPECT(NINES, "+" NINES, "+0.5", "-0.5");
    EXPECT("0", "+1e125", "+1e-130", "-1e125", "-1e-130");
    EXPECT("0", "+9.9e125", "+9.9e125", "-9.9e125", "-9.9e125");
    EXPECT(NULL, "+9.9e125", "+9.9e125");
    EXPECT(NULL, "-5e125", "-5e125");
    EXPECT(NULL, "+1e-130", "-1.5e-130");
    EXPECT(NULL, "+1e125", "+1e-130");
    EXPECT(NULL, "+1e38", "+1");
    EXPECT("-1", "+1e125", "-1", "-1e125");
}

static void text_that_is_not_a_number_changes_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "+",
                                        "-",
                                        ".",
                                        "-.",
                                        "e",
                                        "e5",
                                        "1e",
                                        "1e+",
                                        "1e-",
                                        "1e5.",
                                        "1.2.3",
                                        "--1",
                                        "+-1",
                                        "1-",
                                        " 1",
                                        "1 ",
                                        "0x1",
                                        "1_0",
                                        "Infinity",
                                        "NaN",
                                        "b",
                                        "1e126",
                                        "-1e126",
                                        "1e-131",
                                        "-1e-131",
                                        "10e125",
                                        "0.1e-130",
                                        "123456789012345678901234567890123456789",
                                        "-1.23456789012345678901234567890123456789",
                                        "9e99999999999999999999",
                                        "9e-99999999999999999999",
                                        "1,5",
                                        "1e5e5",
                                        "\xD9\xA1",
                                        "1e1x"};
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_decimal *d = sl_decimal_new(arena);
    assert_true(sl_decimal_add(d, SL_LIT("7"), false));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (sl_decimal_add(d, sl_span_str(texts[i]), false))
            fail_msg("taken for a number: %s", texts[i]);
    assert_false(sl_decimal_add(d, SL_LIT("1\0002"), false));
    assert_false(sl_decimal_add(d, sl_span(NULL, 0), false));
    struct sl_span text;
    assert_true(sl_decimal_text(d, arena, &text));
    assert_true(sl_span_is(text, "7"));
    sl_arena_destroy(arena);
}

static void the_edges_of_the_range_are_written_in_full(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_span text;
    const char *largest[] = {"+"
                             "9."
                             "9999999999999999999999999999999999999"
                             "e125",
                             NULL};
    const char *smallest[] = {"+-1e-130", NULL};
    const char *finest[] = {"+1."
                            "2345678901234567890123456789012345678"
                            "e-130",
                            NULL};
    assert_true(sl_decimal_text(sum_of(arena, largest), arena, &text));
    assert_int_equal(text.len, 126);
    assert_true(sl_span_starts(text, SL_LIT(NINES "000")));
    assert_true(sl_decimal_text(sum_of(arena, smallest), arena, &text));
    assert_int_equal(text.len, 133);
    assert_true(sl_span_ends(text, SL_LIT("001")));
    assert_true(sl_decimal_text(sum_of(arena, finest), arena, &text));
    assert_int_equal(text.len, 2 + 167);
    sl_arena_destroy(arena);
}

static void numbers_compare_by_value(void **state)
{
    (void)state;
    static const char *const rising[] = {"-1e125", "-100.5", "-100", "-1e-130", "0",     "1e-130", "0.1",
                                         "0.11",   "1",      "1.5",  "10",      "1e125", NULL};
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_decimal *d[12];
    for (size_t i = 0; rising[i]; i++) {
        d[i] = sl_decimal_new(arena);
        assert_true(sl_decimal_add(d[i], sl_span_str(rising[i]), false));
    }
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < 12; k++) {
            int order = sl_decimal_compare(d[i], d[k]);
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
    const char *same[] = {"+1.50e1", "+1e125", "-1e125", NULL}, *plain[] = {"+15", NULL};
    assert_int_equal(sl_decimal_compare(sum_of(arena, same), sum_of(arena, plain)), 0);
    sl_arena_destroy(arena);
}

/* Of any two sums: what is left of the first without the second, whatever digits either needs. */
static void a_difference_is_exact(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "0",      "1",      "-2.5",    "1E-130", "99999999999999999999999999999999999999",
        "-1E+37", "1E+125", "-7E+125", "3E-20"};
    const size_t n = sizeof(numbers) / sizeof(numbers[0]);
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t i = 0; i < n * n * n * n; i++) {
        const size_t at[] = {i % n, i / n % n, i / n / n % n, i / n / n / n};
        struct sl_decimal *a = sl_decimal_new(arena), *b = sl_decimal_new(arena),
                          *wanted = sl_decimal_new(arena);
        for (size_t k = 0; k < 4; k++) {
            assert_true(sl_decimal_add(k < 2 ? a : b, sl_span_str(numbers[at[k]]), false));
            assert_true(sl_decimal_add(wanted, sl_span_str(numbers[at[k]]), k >= 2));
        }
        assert_int_equal(sl_decimal_compare(sl_decimal_difference(a, b, arena), wanted), 0);
        assert_true(sl_decimal_is_zero(sl_decimal_difference(a, a, arena)));
        sl_arena_reset(arena);
    }
    sl_arena_destroy(arena);
}

/* Whatever digits it needs: what it is written as adds up to it again. */
static void a_sum_is_the_numbers_that_it_is_written_as(void **state)
{
    (void)state;
    static const char *const numbers[] = {"0",      "1",       "-2.5",  "1E-130",         NINES,  "-1E+37",
                                          "1E+125", "-3E+125", "3E-20", "-" NINES "E-20", "1E+80"};
    const size_t n = sizeof(numbers) / sizeof(numbers[0]);
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t i = 0; i < n * n * n; i++) {
        struct sl_decimal *sum = sl_decimal_new(arena);
        struct sl_span *list;
        size_t count;
        for (size_t k = 0, at = i; k < 3; k++, at /= n)
            assert_true(sl_decimal_add(sum, sl_span_str(numbers[at % n]), false));
        assert_true(sl_decimal_numbers(sum, arena, &list, &count));
        assert_int_equal(count == 0, sl_decimal_is_zero(sum));
        for (size_t k = 0; k < count; k++)
            assert_true(sl_decimal_add(sum, list[k], true));
        assert_true(sl_decimal_is_zero(sum));
        sl_arena_reset(arena);
    }
    const char *beyond[] = {"+9e125", "+9e125", NULL};
    struct sl_span *list;
    size_t count;
    assert_false(sl_decimal_numbers(sum_of(arena, beyond), arena, &list, &count));
    sl_arena_destroy(arena);
}

static void memory_is_freed_when_the_arena_is_reset(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(256);
    for (int i = 0; i < 3; i++) {
        const char *wide[] = {"+1e125", "+1e-130",
                              NULL}; /* GMP's memory goes with the arena: the leak checker looks */
        assert_false(sl_decimal_is_zero(sum_of(arena, wide)));
        sl_arena_reset(arena);
    }
    sl_arena_destroy(arena);
}

/* With an argument: what check_decimal.py talks to. A line of numbers with '+' or '-' before each returns
 * their sum, '!' when that has no text, '?' when one is not a number; after "c", the order of the first and
 * the sum of the others. */
static int answer_lines(void)
{
    static char line[1 << 16];
    while (fgets(line, sizeof(line), stdin)) {
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_decimal *sums[2] = {sl_decimal_new(arena), sl_decimal_new(arena)};
        bool ok = true, compare = line[0] == 'c';
        size_t which = 0;
        char *save = NULL;
        for (char *word = strtok_r(line + compare, " \n", &save); word && ok;
             word = strtok_r(NULL, " \n", &save)) {
            ok = sl_decimal_add(sums[which], sl_span_str(word + 1), *word == '-');
            which = compare;
        }
        struct sl_span text;
        int order = sl_decimal_compare(sums[0], sums[1]);
        if (!ok)
            puts("?");
        else if (compare)
            printf("%d\n", (order > 0) - (order < 0));
        else if (sl_decimal_text(sums[0], arena, &text))
            printf("%.*s\n", SL_ARG(text));
        else
            puts("!");
        sl_arena_destroy(arena);
    }
    return 0;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return answer_lines();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_one_spelling),
        cmocka_unit_test(sums_are_exact),
        cmocka_unit_test(text_that_is_not_a_number_changes_nothing),
        cmocka_unit_test(a_sum_may_leave_the_range_and_return),
        cmocka_unit_test(numbers_compare_by_value),
        cmocka_unit_test(a_difference_is_exact),
        cmocka_unit_test(the_edges_of_the_range_are_written_in_full),
        cmocka_unit_test(a_sum_is_the_numbers_that_it_is_written_as),
        cmocka_unit_test(memory_is_freed_when_the_arena_is_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
