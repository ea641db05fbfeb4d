/* Any text as a DynamoDB number: the normal form is one, is its own normal form and is equal; the exact
 * decimals of base/decimal, written apart, accept the same texts and return the same form. */
#include "base/decimal.h"
#include "base/number.h"
#include "tests/fuzz/fuzz.h"

static void check_decimal(struct sl_span text, bool is_number, struct sl_span normal)
{
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_decimal *sum = sl_decimal_new(arena);
    struct sl_span out;
    FUZZ_CHECK(sl_decimal_add(sum, text, false) == is_number);
    if (is_number)
        FUZZ_CHECK(sl_decimal_text(sum, arena, &out) && sl_span_eq(out, normal));
    sl_arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_span text = sl_span((const char *)data, size);
    struct sl_number number, again;
    char form[SL_NUMBER_TEXT], other[SL_NUMBER_TEXT];
    int64_t n;
    bool exact;
    if (sl_number_parse(text, &number)) {
        check_decimal(text, false, text);
        return 0;
    }
    struct sl_span normal = sl_span(form, sl_number_text(&number, form));
    FUZZ_CHECK(!sl_number_parse(normal, &again) && sl_number_compare(&number, &again) == 0);
    FUZZ_CHECK(sl_span_eq(normal, sl_span(other, sl_number_text(&again, other))));
    FUZZ_CHECK(sl_number_bytes(&number) >= 1 && sl_number_bytes(&number) <= 22);
    if (sl_number_int64(&number, 0, &n, &exact) && exact) {
        char digits[24];
        snprintf(digits, sizeof(digits), "%lld", (long long)n);
        FUZZ_CHECK(sl_span_is(normal, digits));
    }
    check_decimal(text, true, normal);
    return 0;
}
