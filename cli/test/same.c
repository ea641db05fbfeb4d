/* Two JSON texts, compared by what they say. */
#include "cli/test/same.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "base/number.h"

static bool is_number(struct sl_span json)
{
    return *json.ptr == '-' || (*json.ptr >= '0' && *json.ptr <= '9');
}

/* What DynamoDB takes for no number is compared as it is written. */
static bool same_number(struct sl_span a, struct sl_span b)
{
    struct sl_number of_a, of_b;
    if (sl_number_parse(a, &of_a) || sl_number_parse(b, &of_b))
        return sl_span_eq(a, b);
    return sl_number_compare(&of_a, &of_b) == 0;
}

static size_t members(struct sl_span object)
{
    struct sl_json_walk walk = sl_json_walk(object);
    struct sl_span name, value;
    size_t n = 0;
    while (sl_json_walk_next(&walk, &name, &value))
        n++;
    return n;
}

/* The member whose name is the same, however it is escaped. */
static struct sl_span member(struct sl_span object, struct sl_span name)
{
    struct sl_json_walk walk = sl_json_walk(object);
    struct sl_span own, value;
    while (sl_json_walk_next(&walk, &own, &value))
        if (sl_json_same(own, name))
            return value;
    return sl_span(NULL, 0);
}

static bool same_object(struct sl_span a, struct sl_span b)
{
    struct sl_json_walk walk = sl_json_walk(a);
    struct sl_span name, value;
    if (members(a) != members(b))
        return false;
    while (sl_json_walk_next(&walk, &name, &value)) {
        struct sl_span other = member(b, name);
        if (!other.ptr || !sl_json_says_same(value, other))
            return false;
    }
    return true;
}

static bool same_list(struct sl_span a, struct sl_span b)
{
    struct sl_json_walk of_a = sl_json_walk(a), of_b = sl_json_walk(b);
    struct sl_span one, other;
    bool is_same = sl_json_walk_count(a) == sl_json_walk_count(b);
    while (is_same && sl_json_walk_next(&of_a, NULL, &one) && sl_json_walk_next(&of_b, NULL, &other))
        is_same = sl_json_says_same(one, other);
    return is_same;
}

bool sl_json_says_same(struct sl_span a, struct sl_span b)
{
    if (is_number(a) && is_number(b))
        return same_number(a, b);
    if (*a.ptr != *b.ptr)
        return false;
    switch (*a.ptr) {
    case '{':
        return same_object(a, b);
    case '[':
        return same_list(a, b);
    case '"':
        return sl_json_same(sl_span(a.ptr + 1, a.len - 2), sl_span(b.ptr + 1, b.len - 2));
    default: /* true, false, null */
        return true;
    }
}
