/* What one addition to a counter costs, from the number's text. */
#include "base/decimal.h"
#include "bench/support/events.h"

#include <stdio.h>

#define ROUNDS ((int)bench_size(4000000, 4000))

static void measure(const char *name, const char *first, const char *const numbers[4])
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_decimal *d = sl_decimal_new(arena);
    struct sl_span spans[4], before, text;
    bool ok = sl_decimal_add(d, sl_span_str(first), false) && sl_decimal_text(d, arena, &before);
    for (size_t i = 0; i < 4; i++)
        spans[i] = sl_span_str(numbers[i]);
    double began = bench_seconds();
    for (int i = 0; i < ROUNDS; i++)
        ok &= sl_decimal_add(d, spans[i & 3], i & 4);
    double took = bench_seconds() - began;
    if (!ok || !sl_decimal_text(d, arena, &text) || !sl_span_eq(text, before))
        sl_die("bench_decimal: a wrong sum");
    char figure[64];
    snprintf(figure, sizeof(figure), "decimal add, %s", name);
    bench_figure(figure, took / ROUNDS * 1e9, "ns");
    sl_arena_destroy(arena);
}

int main(void)
{
    measure("small integers", "7", (const char *const[]){"1", "25", "-3", "140"});
    measure("amounts of money", "7", (const char *const[]){"19.90", "5.25", "-3.10", "140"});
    measure("38 digits", "7",
            (const char *const[]){"12345678901234567890123456789012345678", "1e37", "-3.5", "1e-3"});
    measure("beyond 127 bits", "1e125", (const char *const[]){"1e-120", "25", "-3", "140.5"});
    return 0;
}
