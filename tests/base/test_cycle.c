/* Chains of tokens that go round are noticed, soon, and no other chain is. */
#include "base/cycle.h"

#include "base/span.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Tokens 0, 1, ... and, from `tail + around` on, again those from `tail`. Returns the tokens that were taken.
 */
static unsigned follow(unsigned tail, unsigned around, unsigned most)
{
    struct sl_cycle cycle = {.seen = NULL};
    bool closes = false;
    unsigned n = 0;
    for (; n < most && !closes; n++) {
        char token[16];
        unsigned i = around && n >= tail ? tail + (n - tail) % around : n;
        int len = snprintf(token, sizeof(token), "%.*u", (int)(i % 7), i);
        closes = sl_cycle_closes(&cycle, sl_span(token, (size_t)len));
    }
    sl_cycle_clean_up(&cycle);
    assert_null(cycle.seen);
    return closes ? n : 0;
}

static void a_chain_that_goes_round_is_noticed(void **state)
{
    (void)state;
    for (unsigned tail = 0; tail < 40; tail++)
        for (unsigned around = 1; around < 40; around++) {
            unsigned n = follow(tail, around, 10000);
            assert_true(n > around);
            assert_true(n <= 3 * (tail > around ? tail : around) + around + 2);
        }
}

static void a_chain_that_ends_is_not(void **state)
{
    (void)state;
    assert_int_equal(follow(0, 0, 100000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_that_goes_round_is_noticed),
        cmocka_unit_test(a_chain_that_ends_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
