/* What all that reads many items shares: budgets of units, and segments that are read page by page. */
#include "tests/support/test.h"

#include "data/source/budget.h"
#include "data/source/segment.h"

#include <stdio.h>
#include <stdlib.h>

static void without_a_limit_nobody_waits(void **state)
{
    (void)state;
    struct sl_budget b;
    sl_budget_init(&b, 0, 1000);
    sl_budget_use(&b, 1e12);
    assert_int_equal(sl_budget_wait_ms(&b, 1000), 0);
}

static void what_was_used_is_paid_off(void **state)
{
    (void)state;
    struct sl_budget b;
    sl_budget_init(&b, 100, 1000);
    assert_int_equal(sl_budget_wait_ms(&b, 1000), 0); /* no debt, and nothing kept */
    sl_budget_use(&b, 250);
    assert_int_equal(sl_budget_wait_ms(&b, 1000), 2501);
    assert_int_equal(sl_budget_wait_ms(&b, 2000), 1501);
    assert_int_equal(sl_budget_wait_ms(&b, 3500), 0);
    sl_budget_use(&b, 1);
    assert_int_equal(sl_budget_wait_ms(&b, 3500), 11);
    /* A pause is worth a second, however long it was. */
    assert_int_equal(sl_budget_wait_ms(&b, 100000), 0);
    sl_budget_use(&b, 100);
    assert_int_equal(sl_budget_wait_ms(&b, 100000), 0);
    sl_budget_use(&b, 10);
    assert_int_equal(sl_budget_wait_ms(&b, 100000), 101);
}

/* Whoever waits as told uses, in any time, no more than its budget, a second's worth, and its last use. */
static void no_time_has_more_than_its_budget(void **state)
{
    (void)state;
    enum { USES = 400 };
    struct {
        int64_t at_ms;
        double units;
    } uses[USES];
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct sl_budget b;
        int64_t now = 5000, wait;
        double rate = 10.0 * seed;
        srand48(seed);
        sl_budget_init(&b, rate, now);
        for (size_t i = 0; i < USES; i++) {
            now += drand48() < 0.1 ? 3000 : 0;
            while ((wait = sl_budget_wait_ms(&b, now)) > 0)
                now += wait;
            uses[i].at_ms = now;
            uses[i].units = drand48() * 2 * rate;
            sl_budget_use(&b, uses[i].units);
            now += (int64_t)(drand48() * 50);
        }
        for (size_t i = 0; i < USES; i++) {
            double sum = 0;
            for (size_t k = i; k < USES; k++) {
                double passed = (double)(uses[k].at_ms - uses[i].at_ms) / 1000;
                if (sum > rate * (passed + 1) + 1e-6)
                    fail_msg("seed %u: %g units within %g s before use %zu, of %g a second", seed, sum,
                             passed, k, rate);
                sum += uses[k].units;
            }
        }
    }
}

static void a_segment_goes_on_until_its_last_page(void **state)
{
    (void)state;
    struct sl_segment s = {.number = 7};
    struct sl_error error = SL_NO_ERROR;
    struct sl_table_page page = {.next = SL_LIT("{\"PK\":{\"S\":\"a\"}}, and more")};
    page.next.len -= strlen(", and more");
    assert_int_equal(sl_segment_move(&s, &page, "t", &error), SL_OK);
    assert_string_equal(s.after, "{\"PK\":{\"S\":\"a\"}}");
    assert_false(s.is_done);
    page.next = sl_span(NULL, 0);
    assert_int_equal(sl_segment_move(&s, &page, "t", &error), SL_OK);
    assert_true(s.is_done && !s.after && s.number == 7);
    sl_segment_clean_up(&s);
    assert_true(!s.is_done && !s.after && s.number == 0);
}

/* However long the circle is, and wherever it begins. */
static void pages_that_go_round_are_noticed(void **state)
{
    (void)state;
    for (unsigned before = 0; before < 20; before += 3)
        for (unsigned length = 1; length < 20; length++) {
            struct sl_segment s = {.number = 3};
            struct sl_error error = SL_NO_ERROR;
            enum sl_status status = SL_OK;
            unsigned n = 0;
            for (; status == SL_OK && n < 200; n++) {
                char key[32];
                snprintf(key, sizeof(key), "{\"PK\":{\"N\":\"%u\"}}",
                         n < before ? n : before + (n - before) % length);
                status = sl_segment_move(&s, &(struct sl_table_page){.next = sl_span_str(key)}, NULL, &error);
            }
            if (status != SL_FATAL || n < before + length)
                fail_msg("%u keys and a circle of %u: %u pages were read", before, length, n);
            assert_string_equal(error.code, "EndlessScan");
            assert_non_null(strstr(error.text, "segment 3 of a scan"));
            sl_segment_clean_up(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_limit_nobody_waits),
        cmocka_unit_test(what_was_used_is_paid_off),
        cmocka_unit_test(no_time_has_more_than_its_budget),
        cmocka_unit_test(a_segment_goes_on_until_its_last_page),
        cmocka_unit_test(pages_that_go_round_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
