/* The sortable text of numbers, as docs/AGGREGATE.md defines it: each text is read back to its number, and
 * texts sort as their numbers do. */
#include "base/clock.h"
#include "base/number.h"
#include "handlers/builtin/aggregate/aggregate_tally_private.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

struct text {
    char bytes[AGGREGATE_SORT_BYTES + 1], normal[SL_NUMBER_TEXT + 1];
    struct sl_number number;
};

static struct text text_of(const char *number)
{
    struct text t = {.bytes = ""};
    const char *why = sl_number_parse(sl_span_str(number), &t.number);
    if (why)
        fail_msg("%s: %s", number, why);
    size_t n = sl_number_text(&t.number, t.normal);
    t.normal[n] = '\0';
    t.bytes[aggregate_number_sort(sl_span(t.normal, n), t.bytes)] = '\0';
    return t;
}

/* From the words of the docs alone. */
static void read_back(const char *text, char out[128])
{
    bool is_negative = *text == 'n';
    if (strcmp(text, "o") == 0) {
        memcpy(out, "0", 2);
        return;
    }
    assert_true(is_negative || *text == 'p');
    int power = 100 * (text[1] - '0') + 10 * (text[2] - '0') + text[3] - '0';
    power = (is_negative ? 255 - power : power) - 130;
    size_t n = 0;
    if (is_negative)
        out[n++] = '-';
    for (const char *at = text + 4; *at && *at != '~'; at++) {
        out[n++] = is_negative ? (char)('0' + 9 - (*at - '0')) : *at;
        if (at == text + 4)
            out[n++] = '.';
    }
    assert_int_equal(is_negative, text[strlen(text) - 1] == '~');
    snprintf(out + n, 128 - n, "0e%d", power);
}

static void expect_reversible(const struct text *t)
{
    char back[128];
    struct sl_number number;
    read_back(t->bytes, back);
    const char *why = sl_number_parse(sl_span_str(back), &number);
    if (why || sl_number_compare(&number, &t->number) != 0)
        fail_msg("%s is %s, which is %s", t->normal, t->bytes, back);
}

static void the_table_of_the_docs_holds(void **state)
{
    (void)state;
    static const char *const table[][2] = {{"-1200", "n12287~"}, {"-1.5", "n12584~"}, {"-1", "n1258~"},
                                           {"0", "o"},           {"0.05", "p1285"},   {"1", "p1301"},
                                           {"1.5", "p13015"},    {"1200", "p13312"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_string_equal(text_of(table[i][0]).bytes, table[i][1]);
}

/* A number is a part of a longer text, and what follows it is not read. */
static void a_number_ends_where_it_ends(void **state)
{
    (void)state;
    static const char *const numbers[] = {"0", "-1", "1", "10", "1.5", "0.05", "100"};
    static const char *const followed[] = {"", "0", "00", ".", "5", ".5", "-"};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        for (size_t k = 0; k < sizeof(followed) / sizeof(followed[0]); k++) {
            char text[32], alone[AGGREGATE_SORT_BYTES], within[AGGREGATE_SORT_BYTES];
            size_t n = strlen(numbers[i]);
            snprintf(text, sizeof(text), "%s%s", numbers[i], followed[k]);
            size_t len = aggregate_number_sort(sl_span(text, n), within);
            assert_int_equal(len, aggregate_number_sort(sl_span_str(numbers[i]), alone));
            assert_memory_equal(within, alone, len);
        }
}

/* From 21 digits after the first one down to the twelfth place after the point. */
static void moderate_numbers_are_within_their_limits(void **state)
{
    (void)state;
    static const struct {
        const char *number;
        bool is;
    } cases[] = {{"0", true},
                 {"1", true},
                 {"-1", true},
                 {"9999999999999999999999", true},
                 {"-9999999999999999999999", true},
                 {"10000000000000000000000", false},
                 {"0.000000000001", true},
                 {"-0.000000000001", true},
                 {"0.0000000000001", false},
                 {"1.000000000001", true},
                 {"1.0000000000001", false},
                 {"12345678901.123456789012", true},
                 {"-12345678901.1234567890123", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (aggregate_number_is_moderate(sl_span_str(cases[i].number)) != cases[i].is)
            fail_msg("%s", cases[i].number);
}

/* In order, with the limits of a DynamoDB number. */
static const char *const ordered[] = {"-9.9999999999999999999999999999999999999e125",
                                      "-1e125",
                                      "-12345678901234567890123456789012345678",
                                      "-12345678901234567890123456789012345677",
                                      "-10",
                                      "-9.99",
                                      "-9.9",
                                      "-1.2",
                                      "-1.1999",
                                      "-1",
                                      "-0.5",
                                      "-0.05",
                                      "-1e-130",
                                      "0",
                                      "1e-130",
                                      "1.1e-130",
                                      "0.05",
                                      "0.5",
                                      "1",
                                      "1.1999",
                                      "1.2",
                                      "9",
                                      "9.9",
                                      "10",
                                      "100",
                                      "12345678901234567890123456789012345677",
                                      "12345678901234567890123456789012345678",
                                      "1e125",
                                      "9.9999999999999999999999999999999999999e125"};

static void expect_order(const struct text *a, const struct text *b)
{
    char x[AGGREGATE_SORT_BYTES + 8], y[AGGREGATE_SORT_BYTES + 8]; /* with what follows in a sort key */
    int order = sl_number_compare(&a->number, &b->number);
    snprintf(x, sizeof(x), "%s#f", a->bytes);
    snprintf(y, sizeof(y), "%s#0", b->bytes);
    if (order == 0)
        assert_string_equal(a->bytes, b->bytes);
    else if ((strcmp(x, y) < 0) != (order < 0))
        fail_msg("%s and %s: %s and %s", a->normal, b->normal, x, y);
}

static void texts_sort_as_their_numbers(void **state)
{
    (void)state;
    size_t n = sizeof(ordered) / sizeof(ordered[0]);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            struct text a = text_of(ordered[i]), b = text_of(ordered[k]);
            assert_int_equal(sl_number_compare(&a.number, &b.number) < 0, i < k);
            expect_order(&a, &b);
            expect_reversible(&a);
        }
}

static void random_numbers_sort_and_are_read_back(void **state)
{
    (void)state;
    uint64_t chance = 5;
    struct text last = text_of("0");
    for (int i = 0; i < 200000; i++) {
        char number[64];
        int digits = 1 + (int)(sl_random_step(&chance) % 38), n = 0;
        if (sl_random_step(&chance) % 2)
            number[n++] = '-';
        for (int k = 0; k < digits; k++)
            number[n++] = (char)('0' + sl_random_step(&chance) % (k ? 3 : 10)); /* often alike at the front */
        int power = (int)(sl_random_step(&chance) % (i % 2 ? 4 : 88));
        snprintf(number + n, sizeof(number) - (size_t)n, "e%d", i % 3 ? power - digits : power);
        struct text t = text_of(number);
        expect_reversible(&t);
        expect_order(&last, &t);
        last = t;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_the_docs_holds),
        cmocka_unit_test(a_number_ends_where_it_ends),
        cmocka_unit_test(moderate_numbers_are_within_their_limits),
        cmocka_unit_test(texts_sort_as_their_numbers),
        cmocka_unit_test(random_numbers_sort_and_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
