#include "tests/support/test.h"

#include "base/number.h"

static const char *normal(const char *text, char out[SL_NUMBER_TEXT + 1])
{
    struct sl_number number;
    const char *why = sl_number_parse(sl_span_str(text), &number);
    if (why)
        return why;
    out[sl_number_text(&number, out)] = '\0';
    return out;
}

static void a_number_has_one_spelling(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"0", "0"},
        {"-0", "0"},
        {"000.000", "0"},
        {"0e999999999999", "0"},
        {"1", "1"},
        {"+1", "1"},
        {"-1.50", "-1.5"},
        {".5", "0.5"},
        {"5.", "5"},
        {"1e2", "100"},
        {"1.50E1", "15"},
        {"120e-1", "12"},
        {"0.001", "0.001"},
        {"1e-3", "0.001"},
        {"00100", "100"},
        {"100200300", "100200300"},
        {"12345678901234567890123456789012345678", "12345678901234567890123456789012345678"},
        {"0.12345678901234567890123456789012345678000", "0.12345678901234567890123456789012345678"},
    };
    char out[SL_NUMBER_TEXT + 1];
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        assert_string_equal(normal(pairs[i][0], out), pairs[i][1]);
    assert_int_equal(strlen(normal("-9.9999999999999999999999999999999999999E125", out)), 127);
    assert_int_equal(strlen(normal("-1E-130", out)), 133);
    assert_int_equal(strlen(normal("-1.2345678901234567890123456789012345678E-130", out)), 170);
}

static void text_that_is_not_a_number_is_refused(void **state)
{
    (void)state;
    static const char *const not_one[] = {"",    "-",  "+",  ".",     "e5",  "1e",  "1e+",      "1x",
                                          "0x1", " 1", "1 ", "1.2.3", "--1", "NaN", "Infinity", "1e5.5"};
    char out[SL_NUMBER_TEXT + 1];
    for (size_t i = 0; i < sizeof(not_one) / sizeof(not_one[0]); i++)
        assert_string_equal(normal(not_one[i], out), "not a number");
    assert_string_equal(normal("123456789012345678901234567890123456789", out),
                        "a number of more than 38 significant digits");
    assert_string_equal(normal("1.00000000000000000000000000000000000001", out),
                        "a number of more than 38 significant digits");
    assert_string_equal(normal("1000000000000000000000000000000000000000000000000001", out),
                        "a number of more than 38 significant digits");
    assert_string_equal(normal("1e126", out), "a number of 1E+126 or more in magnitude");
    assert_string_equal(normal("10e99999999999999999999", out), "a number of 1E+126 or more in magnitude");
    assert_string_equal(normal("1e-131", out), "a number of less than 1E-130 in magnitude");
    assert_string_equal(normal("-1e-99999999999999999999", out), "a number of less than 1E-130 in magnitude");
}

static int compare(const char *a, const char *b)
{
    struct sl_number x, y;
    assert_null(sl_number_parse(sl_span_str(a), &x));
    assert_null(sl_number_parse(sl_span_str(b), &y));
    int order = sl_number_compare(&x, &y);
    assert_int_equal(sl_number_compare(&y, &x) > 0, order < 0);
    return order < 0 ? -1 : order > 0;
}

static void numbers_compare_by_value(void **state)
{
    (void)state;
    static const char *const rising[] = {"-1e125", "-100", "-99.5", "-1", "-1e-130", "0",     "1e-130",
                                         "0.5",    "0.51", "1",     "9",  "10",      "100.1", "1e125"};
    for (size_t i = 0; i < sizeof(rising) / sizeof(rising[0]); i++)
        for (size_t k = 0; k < sizeof(rising) / sizeof(rising[0]); k++)
            assert_int_equal(compare(rising[i], rising[k]), i < k ? -1 : i > k);
    assert_int_equal(compare("1.0", "1"), 0);
    assert_int_equal(compare("-0", "0e5"), 0);
    assert_int_equal(compare("1e2", "100"), 0);
}

static void whole_numbers_become_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int shift;
        bool fits, exact;
        int64_t value;
    } cases[] = {
        {"0", 0, true, true, 0},
        {"15", 0, true, true, 15},
        {"1.50e1", 0, true, true, 15},
        {"1.5", 0, true, false, 1},
        {"-1.5", 0, true, false, -2},
        {"0.25", 2, true, true, 25},
        {"0.001", 0, true, false, 0},
        {"-0.001", 0, true, false, -1},
        {"9223372036854775807", 0, true, true, INT64_MAX},
        {"9223372036854775808", 0, false, true, 0},
        {"-9223372036854775808", 0, true, true, INT64_MIN},
        {"-9223372036854775807", 0, true, true, -INT64_MAX},
        {"-9223372036854775806.5", 0, true, false, -INT64_MAX},
        {"-9223372036854775807.5", 0, true, false, INT64_MIN},
        {"9223372036854775807.5", 0, true, false, INT64_MAX},
        {"-9223372036854775808.5", 0, false, false, 0},
        {"18446744073709551615", 0, false, true, 0},
        {"18446744073709551616", 0, false, true, 0},
        {"99999999999999999999", 0, false, true, 0},
        {"1e100", 0, false, true, 0},
        {"0", 100, true, true, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_number number;
        int64_t value = 0;
        bool exact;
        assert_null(sl_number_parse(sl_span_str(cases[i].text), &number));
        assert_int_equal(sl_number_int64(&number, cases[i].shift, &value, &exact), cases[i].fits);
        if (cases[i].fits) {
            assert_int_equal(value, cases[i].value);
            assert_int_equal(exact, cases[i].exact);
        }
    }
}

static void a_number_counts_its_bytes_as_dynamodb_does(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned bytes;
    } cases[] = {{"0", 1},     {"1", 2},        {"101", 3},
                 {"1.5", 3},   {"-1.5", 4},     {"100", 2},
                 {"1000", 2},  {"10", 2},       {"99", 2},
                 {"0.5", 2},   {"0.05", 2},     {"0.005", 2},
                 {"12345", 4}, {"0.0123", 3},   {"12345678901234567890123456789012345678", 20},
                 {"1e125", 2}, {"1.23e-130", 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_number number;
        assert_null(sl_number_parse(sl_span_str(cases[i].text), &number));
        assert_int_equal(sl_number_bytes(&number), cases[i].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_one_spelling),
        cmocka_unit_test(text_that_is_not_a_number_is_refused),
        cmocka_unit_test(numbers_compare_by_value),
        cmocka_unit_test(whole_numbers_become_integers),
        cmocka_unit_test(a_number_counts_its_bytes_as_dynamodb_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
