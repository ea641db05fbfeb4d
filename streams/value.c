/* Attribute values of checked text: taking them apart, comparing them. */
#include "base/base64.h"
#include "base/json.h"
#include "streams/record_layout.h"

static struct sl_span between(const char *from, const char *to)
{
    return sl_span(from, (size_t)(to - from));
}

static bool is_text(enum sl_type type)
{
    return type == SL_S || type == SL_N || type == SL_B;
}

/* ---- reading on ---- */

static enum sl_type tag(const char *p, const char *close, bool escaped)
{
    char name[24];
    if (!escaped)
        return sl_value_tag(p, (size_t)(close - p));
    return sl_value_tag(name, sl_json_unescape_to(between(p, close), name));
}

/* A string from its quote: the value of that type. */
static struct sl_value string_at(const char *p, const char *end, enum sl_type type, const char **next)
{
    struct sl_value v = {.type = type};
    const char *close = sl_json_string_end(p + 1, end, &v.escaped);
    v.raw = between(p + 1, close);
    *next = close + 1;
    return v;
}

struct sl_value sl_value_at(const char *p, const char *end, const char **next)
{
    bool escaped;
    p = sl_json_space(p + 1, end);
    const char *close = sl_json_string_end(p + 1, end, &escaped);
    struct sl_value v = {.type = tag(p + 1, close, escaped)};
    p = sl_json_space(sl_json_space(close + 1, end) + 1, end);
    if (is_text(v.type)) {
        v = string_at(p, end, v.type, &p);
    } else {
        close = sl_json_value_end(p, end);
        v.raw = between(p, close);
        p = close;
    }
    *next = sl_json_space(p, end) + 1;
    return v;
}

/* ---- iterating ---- */

struct sl_iter sl_value_iter(struct sl_value v)
{
    struct sl_iter iter = {.type = v.type};
    if (v.type >= SL_SS) {
        iter.at = v.raw.ptr + 1;
        iter.end = v.raw.ptr + v.raw.len - 1;
    }
    return iter;
}

static enum sl_type element_type(enum sl_type set)
{
    return set == SL_SS ? SL_S : set == SL_NS ? SL_N : SL_B;
}

bool sl_value_next(struct sl_iter *iter, struct sl_span *name, struct sl_value *value)
{
    bool escaped;
    const char *p = sl_json_space(iter->at, iter->end);
    if (p < iter->end && *p == ',')
        p = sl_json_space(p + 1, iter->end);
    if (p >= iter->end)
        return false;
    if (iter->type == SL_M) {
        const char *close = sl_json_string_end(p + 1, iter->end, &escaped);
        if (name)
            *name = between(p + 1, close);
        p = sl_json_space(sl_json_space(close + 1, iter->end) + 1, iter->end);
    }
    if (iter->type == SL_M || iter->type == SL_L)
        *value = sl_value_at(p, iter->end, &iter->at);
    else
        *value = string_at(p, iter->end, element_type(iter->type), &iter->at);
    return true;
}

/* ---- what they hold ---- */

struct sl_span sl_value_text(struct sl_value v, struct sl_arena *arena)
{
    if (!is_text(v.type))
        return sl_span(NULL, 0);
    return v.escaped ? sl_json_unescape(v.raw, arena) : v.raw;
}

struct sl_span sl_value_bytes(struct sl_value v, struct sl_arena *arena)
{
    if (v.type != SL_B)
        return sl_span(NULL, 0);
    struct sl_span text = sl_value_text(v, arena);
    unsigned char *bytes = sl_arena_alloc(arena, sl_base64_decoded_bytes(text));
    sl_base64_decode_valid(text, bytes);
    return sl_span((const char *)bytes, sl_base64_decoded_bytes(text));
}

bool sl_value_number(struct sl_value v, struct sl_number *out)
{
    struct sl_buffer text;
    if (v.type != SL_N)
        return false;
    if (!v.escaped)
        return !sl_number_parse(v.raw, out);
    sl_buffer_init(&text, SIZE_MAX / 2);
    const char *why = sl_number_parse(sl_json_unescape_in(v.raw, &text), out);
    sl_buffer_clean_up(&text);
    return !why;
}

bool sl_value_int64(struct sl_value v, int64_t *out)
{
    struct sl_number number;
    bool exact;
    return sl_value_number(v, &number) && sl_number_int64(&number, 0, out, &exact) && exact;
}

bool sl_value_is_true(struct sl_value v)
{
    return v.type == SL_BOOL && v.raw.ptr[0] == 't';
}

struct sl_value sl_value_member(struct sl_value map, struct sl_span name)
{
    struct sl_value found = {.type = SL_NONE}, value;
    struct sl_iter iter = sl_value_iter(map);
    struct sl_span member;
    if (map.type != SL_M)
        return found;
    while (sl_value_next(&iter, &member, &value))
        if (sl_json_text_is(member, name))
            found = value;
    return found;
}

/* ---- equality ---- */

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
