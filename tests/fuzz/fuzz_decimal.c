/* Words as numbers to add. What was added and is subtracted again leaves nothing, and a sum's text is the
 * sum. */
#include "base/decimal.h"
#include "tests/fuzz/fuzz.h"

static struct sl_decimal *add_words(struct sl_arena *arena, struct sl_span rest, struct sl_decimal *back)
{
    struct sl_decimal *sum = sl_decimal_new(arena);
    while (rest.len) {
        const char *space = memchr(rest.ptr, ' ', rest.len);
        size_t n = space ? (size_t)(space - rest.ptr) : rest.len;
        bool is_number = sl_decimal_add(sum, sl_span(rest.ptr, n), false);
        FUZZ_CHECK(sl_decimal_add(back, sl_span(rest.ptr, n), false) == is_number);
        rest = sl_span_from(rest, n + 1);
    }
    return sum;
}

static void take_words(struct sl_decimal *from, struct sl_span rest)
{
    while (rest.len) {
        const char *space = memchr(rest.ptr, ' ', rest.len);
        size_t n = space ? (size_t)(space - rest.ptr) : rest.len;
        (void)sl_decimal_add(from, sl_span(rest.ptr, n), true);
        rest = sl_span_from(rest, n + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_span input = sl_span((const char *)data, size), text;
    struct sl_decimal *back = sl_decimal_new(arena), *sum = add_words(arena, input, back);
    FUZZ_CHECK(sl_decimal_compare(sum, back) == 0);
    take_words(back, input);
    FUZZ_CHECK(sl_decimal_is_zero(back));
    if (sl_decimal_text(sum, arena, &text)) {
        FUZZ_CHECK(text.len > 0 && text.len < 176 && sl_decimal_add(back, text, false));
        FUZZ_CHECK(sl_decimal_compare(sum, back) == 0);
    }
    sl_arena_destroy(arena);
    return 0;
}
