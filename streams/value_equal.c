/* Whether two attribute values are equal, as DynamoDB has it. */
#include "base/json.h"
#include "streams/value.h"

static bool text_equal(struct sl_value a, struct sl_value b)
{
    return a.escaped || b.escaped ? sl_json_same(a.raw, b.raw) : sl_span_eq(a.raw, b.raw);
}

static bool number_equal(struct sl_value a, struct sl_value b)
{
    struct sl_number x, y;
    if (text_equal(a, b))
        return true;
    (void)sl_value_number(a, &x);
    (void)sl_value_number(b, &y);
    return sl_number_compare(&x, &y) == 0;
}

/* Element by element, as they stand. Sets and maps may still be equal when this says no. */
static bool equal_in_order(struct sl_value a, struct sl_value b)
{
    struct sl_iter of_a = sl_value_iter(a), of_b = sl_value_iter(b);
    struct sl_value x, y;
    struct sl_span name_x = {NULL, 0}, name_y = {NULL, 0};
    for (;;) {
        bool has_x = sl_value_next(&of_a, &name_x, &x), has_y = sl_value_next(&of_b, &name_y, &y);
        if (!has_x || !has_y)
            return has_x == has_y;
        if (a.type == SL_M && !sl_json_same(name_x, name_y))
            return false;
        if (!sl_value_equal(x, y))
            return false;
    }
}

static bool equal_in_any_order(struct sl_value a, struct sl_value b)
{
    struct sl_buffer x, y;
    sl_buffer_init(&x, SL_CANONICAL_BYTES);
    sl_buffer_init(&y, SL_CANONICAL_BYTES);
    sl_value_canonical(a, &x);
    sl_value_canonical(b, &y);
    bool equal = sl_span_eq(sl_buffer_span(&x), sl_buffer_span(&y));
    sl_buffer_clean_up(&x);
    sl_buffer_clean_up(&y);
    return equal;
}

bool sl_value_equal(struct sl_value a, struct sl_value b)
{
    if (a.type != b.type)
        return false;
    switch (a.type) {
    case SL_S:
    case SL_B:
        return text_equal(a, b);
    case SL_N:
        return number_equal(a, b);
    case SL_BOOL:
        return sl_value_is_true(a) == sl_value_is_true(b);
    case SL_NONE:
    case SL_NULL:
        return true;
    default:
        return sl_span_eq(a.raw, b.raw) || equal_in_order(a, b) || equal_in_any_order(a, b);
    }
}
