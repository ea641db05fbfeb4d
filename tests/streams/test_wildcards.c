/* How complex a pattern's wildcards may be, across the tests and the fields of its sets. (Single fields
 * against AWS's engine: wildcards.tsv, by test_vectors.c.) */
#include "base/clock.h"
#include "streams/when/when.h"
#include "tests/support/test.h"

#include <ctype.h>

static bool is_taken(const char *pattern)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *out;
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = sl_pattern_compile(json_span(pattern), arena, &out, &error);
    if (status != SL_OK && !strstr(error.text, "wildcards of one field are too complex"))
        fail_msg("%s: %s", pattern, error.text);
    sl_arena_destroy(arena);
    return status == SL_OK;
}

/* Each wildcard counts at least one; equal ones count together (without a letter after the star). */
static void ten_wildcards_of_a_field_are_taken(void **state)
{
    (void)state;
    for (int n = 1; n <= 12; n++)
        for (int is_same = 0; is_same < 2; is_same++) {
            struct sl_buffer b;
            sl_buffer_init(&b, 4096);
            for (int i = 0; i < n; i++)
                sl_buffer_printf(&b, "%s{'wildcard':'%c*-'}", i ? "," : "", 'A' + (is_same ? 0 : i));
            sl_buffer_add(&b, "", 1);
            assert_int_equal(is_taken(json_printf("{'f':[%s]}", b.ptr)), n <= 10 || is_same);
            /* In fields of their own each is alone. */
            sl_buffer_reset(&b);
            for (int i = 0; i < n; i++)
                sl_buffer_printf(&b, "%s'f%d':[{'wildcard':'%c*-'}]", i ? "," : "", i, 'A' + i);
            sl_buffer_add(&b, "", 1);
            assert_true(is_taken(json_printf("{%s}", b.ptr)));
            sl_buffer_clean_up(&b);
        }
}

/* Equal wildcards count one by one where a letter follows the star, for every byte that may follow. */
static void a_letter_after_the_star_counts_each_time(void **state)
{
    (void)state;
    for (char c = ' '; c <= '~'; c++) {
        if (strchr("\"'*\\", c))
            continue;
        struct sl_buffer b;
        sl_buffer_init(&b, 4096);
        for (int i = 0; i < 11; i++)
            sl_buffer_printf(&b, "%s{'wildcard':'A*%c-'}", i ? "," : "", c);
        sl_buffer_add(&b, "", 1);
        assert_int_equal(is_taken(json_printf("{'f':[%s]}", b.ptr)), !isalpha((unsigned char)c));
        sl_buffer_clean_up(&b);
    }
}

/* Two that are taken each, and not together: at AB AB AB.. a text stands in both at many places. */
#define ONE "{'wildcard':'*A*A*A*B'}"
#define TWO "{'wildcard':'*B*B*B*A'}"

/* The engine keeps the tests of a field in one machine where a value could lead both sets there: all fields
 * before it, in the order of their names, have a test in common. */
static void sets_that_lead_to_one_machine_count_together(void **state)
{
    (void)state;
    assert_true(is_taken("{'f':[" ONE "]}"));
    assert_true(is_taken("{'f':[" TWO "]}"));
    assert_false(is_taken("{'f':[" ONE "," TWO "]}"));
    static const struct {
        const char *first, *second; /* of what stands before the field in its set */
        bool is_shared;
    } cases[] = {
        {"", "", true},
        {"'a':['x'],", "'a':['x'],", true},
        {"'a':['x'],", "'a':['y'],", false},
        {"'a':['x','z'],", "'a':['y','z'],", true},
        {"'a':['x'],", "'a':[{'prefix':'x'}],", false},
        {"'a':[{'prefix':'x'}],", "'a':[{'prefix':'x'}],", true},
        {"'a':[{'exists':false}],", "'a':[{'exists':false}],", true},
        {"'a':[{'exists':false}],", "'a':['x'],", false},
        {"'a':['x'],", "'a':[{'exists':false}],", false},
        {"'a':[{'exists':false},'y'],", "'a':['x',{'exists':false}],", true},
        {"'a':['x'],", "'b':['x'],", false},
        {"'a':['x'],", "", false},
        {"", "'a':['x'],", false},
        {"'a':['x'],'b':['y'],", "'a':['x'],'b':['y'],", true},
        {"'a':['x'],'b':['y'],", "'a':['x'],'b':['z'],", false},
        {"'a':['x'],'b':['y'],", "'a':['z'],'b':['y'],", false},
        {"'a':['1'],", "'a':[1],", false},
        {"'a':[1],", "'a':[1],", true},
        /* What comes after the field does not matter. */
        {"'g':['x'],", "'g':['y'],", true},
        {"'g':['x'],", "", true},
        {"", "'g':['x'],", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *pattern =
            json_printf("{'$or':[{%s'f':[" ONE "]},{%s'f':[" TWO "]}]}", cases[i].first, cases[i].second);
        if (is_taken(pattern) == cases[i].is_shared)
            fail_msg("%s", pattern);
        /* Also as the second and the third set. */
        pattern = json_printf("{'$or':[{'f':['x']},{%s'f':[" ONE "]},{%s'f':[" TWO "]}]}", cases[i].first,
                              cases[i].second);
        if (is_taken(pattern) == cases[i].is_shared)
            fail_msg("%s", pattern);
    }
}

/* 32,768 sets of places are measured, and more are too complex. */
static void long_wildcards_are_measured(void **state)
{
    (void)state;
    static char text[80000];
    for (size_t n = 32000; n <= 72000; n += 8000) {
        memset(text, 'a', n);
        text[n] = '\0';
        assert_int_equal(is_taken(json_printf("{'f':[{'wildcard':'*x%s'}]}", text)), n == 32000);
        assert_true(is_taken(json_printf("{'f':['x%s']}", text)));
    }
    /* Of many sets: whatever comes out, it comes in time. */
    uint64_t seed = 2;
    for (int i = 0; i < 40; i++) {
        char wild[40] = "*";
        for (size_t k = 1; k < 38; k++)
            wild[k] = wild[k - 1] != '*' && sl_random_step(&seed) % 6 == 0
                          ? '*'
                          : (char)('a' + sl_random_step(&seed) % 2);
        (void)is_taken(json_printf("{'f':[{'wildcard':'%s'}]}", wild));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_wildcards_of_a_field_are_taken),
        cmocka_unit_test(a_letter_after_the_star_counts_each_time),
        cmocka_unit_test(sets_that_lead_to_one_machine_count_together),
        cmocka_unit_test(long_wildcards_are_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
