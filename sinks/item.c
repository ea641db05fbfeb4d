/* DynamoDB's items: size, keys, conditions, updates. */
#include "sinks/item.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "streams/value.h"

#define NAME_SHOWN 200 /* bytes of an attribute's name in an error */

static enum sl_status refuse(struct sl_error *error, const char *why, struct sl_span name)
{
    return sl_fail(error, SL_REJECT, "ValidationException", "attribute %.*s%s",
                   (int)(name.len < NAME_SHOWN ? name.len : NAME_SHOWN), name.ptr ? name.ptr : "", why);
}

enum sl_status sl_item_read(struct sl_span text, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    if (sl_json_check_loose(text, &why) != SL_OK)
        return sl_fail_at(error, SL_REJECT, "ValidationException", why.offset,
                          "the item is not JSON: at byte %zu: %s", why.offset, why.text);
    if (sl_json_walk(text).is_object) /* not after a byte order mark */
        return SL_OK;
    return sl_fail(error, SL_REJECT, "ValidationException", "the item is not a JSON object");
}

size_t sl_item_bytes(struct sl_span item)
{
    struct sl_json_walk walk = sl_json_walk(item);
    struct sl_span name, value;
    size_t bytes = 0;
    while (sl_json_walk_next(&walk, &name, &value))
        bytes += sl_json_unescaped_bytes(name) + sl_value_counted_bytes(sl_value_read(value));
    return bytes;
}

enum sl_status sl_item_check(struct sl_span item, struct sl_error *error)
{
    struct sl_json_walk walk = sl_json_walk(item);
    struct sl_span name, value;
    while (sl_json_walk_next(&walk, &name, &value))
        if (sl_value_read(value).type == SL_NONE)
            return refuse(error, " does not have a value that DynamoDB takes", name);
    return SL_OK;
}

struct sl_span sl_item_attribute(struct sl_span item, struct sl_span name)
{
    struct sl_json_walk walk = sl_json_walk(item);
    struct sl_span have, value, found = {NULL, 0};
    while (sl_json_walk_next(&walk, &have, &value))
        if (sl_json_text_is(have, name))
            found = value;
    return found;
}

/* ---- keys ---- */

struct attribute {
    struct sl_span name, value; /* the name as it is written, escaped */
};

/* The key's attributes in the order of their names; returns how many there are, `room` at most. */
static size_t key_attributes(struct sl_span key, struct attribute *out, size_t room)
{
    struct sl_json_walk walk = sl_json_walk(key);
    size_t n = 0;
    while (n < room && sl_json_walk_next(&walk, &out[n].name, &out[n].value))
        n++;
    return n;
}

/* {"N":"1"}, the number in normal form. */
static void add_key_value(struct sl_value v, struct sl_arena *arena, struct sl_buffer *out)
{
    struct sl_number number;
    char digits[SL_NUMBER_TEXT];
    struct sl_span text = sl_value_text(v, arena);
    if (sl_value_number(v, &number))
        text = sl_span(digits, sl_number_text(&number, digits));
    sl_buffer_add_str(out, v.type == SL_S ? "{\"S\":\"" : v.type == SL_N ? "{\"N\":\"" : "{\"B\":\"");
    sl_json_add_exact(out, text);
    sl_buffer_add_str(out, "\"}");
}

static enum sl_status add_key_attribute(const struct attribute *attribute, struct sl_span name,
                                        struct sl_arena *arena, struct sl_buffer *out, struct sl_error *error)
{
    struct sl_value value = sl_value_read(attribute->value);
    uint64_t bytes = sl_value_counted_bytes(value);
    sl_buffer_add_char(out, '"');
    sl_json_add_exact(out, name);
    sl_buffer_add_str(out, "\":");
    if (value.type > SL_B)
        return refuse(error, " of the key is not of type S, N or B", attribute->name);
    if (bytes == 0 || bytes > SL_PARTITION_KEY_BYTES)
        return refuse(error, " of the key is empty, too long, or is not a number or base64", attribute->name);
    add_key_value(value, arena, out);
    return SL_OK;
}

enum sl_status sl_item_key_text(struct sl_span key, struct sl_buffer *out, struct sl_error *error)
{
    struct attribute list[3];
    struct sl_span names[2];
    size_t n = key_attributes(key, list, 3);
    if (n < 1 || n > 2)
        return sl_fail(error, SL_REJECT, "ValidationException",
                       "the key has %s attributes; a key has one or two", n ? "more than two" : "no");
    struct sl_arena *arena = sl_arena_new(512);
    for (size_t i = 0; i < n; i++)
        names[i] = sl_json_unescape(list[i].name, arena);
    int order = n == 2 ? sl_span_compare(names[0], names[1]) : -1;
    if (order == 0) /* a name twice: the last counts */
        list[0] = list[--n];
    size_t first = order > 0;
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < n && status == SL_OK; i++) {
        sl_buffer_add_char(out, i ? ',' : '{');
        status = add_key_attribute(&list[first ^ i], names[first ^ i], arena, out, error);
    }
    sl_buffer_add_char(out, '}');
    sl_arena_destroy(arena);
    if (status == SL_OK && out->failed)
        return sl_fail(error, SL_REJECT, "ValidationException", "the key is too long");
    return status;
}

/* What is not a value equals nothing. */
static bool are_equal(struct sl_value a, struct sl_value b)
{
    return a.type != SL_NONE && sl_value_equal(a, b);
}

enum sl_status sl_item_has_key(struct sl_span item, struct sl_span key, struct sl_error *error)
{
    struct sl_json_walk walk = sl_json_walk(key);
    struct sl_span name, value;
    enum sl_status status = SL_OK;
    struct sl_arena *arena = sl_arena_new(512);
    while (status == SL_OK && sl_json_walk_next(&walk, &name, &value)) {
        struct sl_span have = sl_item_attribute(item, sl_json_unescape(name, arena));
        if (!have.ptr || !are_equal(sl_value_read(have), sl_value_read(value)))
            status = refuse(error, " of the key is missing in the item, or has another value", name);
    }
    sl_arena_destroy(arena);
    return status;
}

/* ---- conditions ---- */

/* The value of a test or a set. */
static enum sl_status read_value(struct sl_span json, struct sl_span name, struct sl_value *out,
                                 struct sl_error *error)
{
    *out = sl_value_read(json);
    return out->type != SL_NONE
               ? SL_OK
               : refuse(error, ": what it is compared with or set to is not an attribute value", name);
}

/* Orders two values of one type: S and B by bytes, N by value. False: they have no order. */
static bool compare(struct sl_value a, struct sl_value b, int *order)
{
    struct sl_number x, y;
    if (a.type != b.type || a.type == SL_NONE || a.type > SL_B)
        return false;
    if (sl_value_number(a, &x) && sl_value_number(b, &y)) {
        *order = sl_number_compare(&x, &y);
        return true;
    }
    struct sl_arena *arena = sl_arena_new(512);
    *order = a.type == SL_S ? sl_span_compare(sl_value_text(a, arena), sl_value_text(b, arena))
                            : sl_span_compare(sl_value_bytes(a, arena), sl_value_bytes(b, arena));
    sl_arena_destroy(arena);
    return true;
}

static bool test_holds(enum sl_test_verb verb, struct sl_span json, struct sl_value wanted)
{
    int order = 0;
    if (!json.ptr || verb == SL_ABSENT || verb == SL_PRESENT)
        return verb == (json.ptr ? SL_PRESENT : SL_ABSENT);
    struct sl_value have = sl_value_read(json);
    if (verb == SL_EQ || verb == SL_NE)
        return are_equal(have, wanted) == (verb == SL_EQ);
    if (!compare(have, wanted, &order))
        return false;
    return verb == SL_LT ? order < 0 : verb == SL_LE ? order <= 0 : order > 0;
}

enum sl_status sl_item_test(const struct sl_table_op *op, struct sl_span item, bool *holds,
                            struct sl_error *error)
{
    *holds = op->n_tests == 0 || !op->any_test;
    for (size_t i = 0; i < op->n_tests; i++) {
        const struct sl_test *test = &op->tests[i];
        struct sl_value wanted = {0};
        bool has_value = test->verb != SL_ABSENT && test->verb != SL_PRESENT;
        if (has_value && read_value(test->value, test->name, &wanted, error) != SL_OK)
            return SL_REJECT;
        bool one = test_holds(test->verb, sl_item_attribute(item, test->name), wanted);
        *holds = op->any_test ? *holds || one : *holds && one;
    }
    return SL_OK;
}

/* ---- updates ---- */

/* The item that is being changed: its attributes in their order. */
struct draft {
    struct sl_arena *arena;
    struct attribute *list;
    size_t n;
};

static struct draft draft_of(struct sl_span item, size_t more, struct sl_arena *arena)
{
    struct sl_json_walk walk = sl_json_walk(item);
    struct attribute one;
    struct draft draft = {.arena = arena};
    size_t n = more;
    while (sl_json_walk_next(&walk, &one.name, &one.value))
        n++;
    draft.list = sl_arena_alloc(arena, (n + 1) * sizeof(*draft.list));
    draft.n = key_attributes(item, draft.list, n);
    return draft;
}

/* The last attribute with this name, NULL when there is none. */
static struct attribute *find(const struct draft *draft, struct sl_span name)
{
    for (size_t i = draft->n; i > 0; i--)
        if (sl_json_text_is(draft->list[i - 1].name, name))
            return &draft->list[i - 1];
    return NULL;
}

static void remove_attribute(struct draft *draft, struct sl_span name)
{
    for (struct attribute *a; (a = find(draft, name));) {
        draft->n--;
        memmove(a, a + 1, (size_t)(draft->list + draft->n - a) * sizeof(*a));
    }
}

static void set_attribute(struct draft *draft, struct sl_span name, struct sl_span value)
{
    struct attribute *a = find(draft, name);
    if (!a) {
        struct sl_buffer escaped;
        sl_buffer_init_in(&escaped, draft->arena, 6 * name.len + 64);
        sl_json_add_exact(&escaped, name);
        a = &draft->list[draft->n++];
        a->name = sl_buffer_span(&escaped);
    }
    a->value = value;
}

static struct sl_span draft_text(const struct draft *draft)
{
    struct sl_buffer out;
    size_t bytes = 2;
    for (size_t i = 0; i < draft->n; i++)
        bytes += draft->list[i].name.len + draft->list[i].value.len + 4;
    sl_buffer_init_in(&out, draft->arena, bytes);
    for (size_t i = 0; i < draft->n; i++) {
        sl_buffer_add_str(&out, i ? ",\"" : "{\"");
        sl_buffer_add_span(&out, draft->list[i].name);
        sl_buffer_add_str(&out, "\":");
        sl_buffer_add_span(&out, draft->list[i].value);
    }
    sl_buffer_add_str(&out, draft->n ? "}" : "{}");
    return sl_buffer_span(&out);
}

/* Adds a value that must be a number to the sum; an absent one counts as 0. */
static bool add_to(struct sl_decimal *sum, const struct sl_span *json, struct sl_arena *arena)
{
    if (!json)
        return true;
    struct sl_value v = sl_value_read(*json);
    return v.type == SL_N && sl_decimal_add(sum, sl_value_text(v, arena), false);
}

static enum sl_status add_number(struct draft *draft, const struct sl_set *set, struct sl_error *error)
{
    struct sl_decimal *sum = sl_decimal_new(draft->arena);
    struct attribute *have = find(draft, set->name);
    struct sl_span digits;
    if (!add_to(sum, have ? &have->value : NULL, draft->arena) || !add_to(sum, &set->value, draft->arena))
        return refuse(error, " cannot be added to: it is not a number", set->name);
    if (!sl_decimal_text(sum, draft->arena, &digits))
        return refuse(error, " would have more than 38 digits, or be out of range", set->name);
    const char *text = sl_arena_printf(draft->arena, "{\"N\":\"%.*s\"}", SL_ARG(digits));
    set_attribute(draft, set->name, sl_span_str(text));
    return SL_OK;
}

static enum sl_status set_extreme(struct draft *draft, const struct sl_set *set, struct sl_value value,
                                  struct sl_error *error)
{
    struct attribute *have = find(draft, set->name);
    int order = 0;
    if (have && !compare(value, sl_value_read(have->value), &order))
        return refuse(error, " cannot be compared with the new value", set->name);
    if (!have || (set->verb == SL_SET_MAX ? order > 0 : order < 0))
        set_attribute(draft, set->name, set->value);
    return SL_OK;
}

static enum sl_status carry_out(struct draft *draft, const struct sl_set *set, struct sl_error *error)
{
    struct sl_value value;
    if (set->verb == SL_UNSET) {
        remove_attribute(draft, set->name);
        return SL_OK;
    }
    if (read_value(set->value, set->name, &value, error) != SL_OK)
        return SL_REJECT;
    if (set->verb == SL_ADD)
        return add_number(draft, set, error);
    if (set->verb != SL_SET)
        return set_extreme(draft, set, value, error);
    set_attribute(draft, set->name, set->value);
    return SL_OK;
}

enum sl_status sl_item_update(const struct sl_table_op *op, struct sl_span item, struct sl_arena *arena,
                              struct sl_span *out, struct sl_error *error)
{
    struct draft draft = draft_of(item, op->n_sets, arena);
    for (size_t i = 0; i < op->n_sets; i++) {
        if (sl_item_attribute(op->key, op->sets[i].name).ptr)
            return refuse(error, " is part of the key: it cannot be updated", op->sets[i].name);
        if (carry_out(&draft, &op->sets[i], error) != SL_OK)
            return SL_REJECT;
    }
    *out = draft_text(&draft);
    return SL_OK;
}
