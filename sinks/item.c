#include "sinks/item.h"

#include "base/base64.h"
#include "base/decimal.h"
#include "base/json_write.h"

/* Bytes that jansson holds for a string, with a NUL inside allowed. */
static struct sl_span text_of(const json_t *string)
{
    return sl_span(json_string_value(string), json_string_length(string));
}

json_t *sl_item_parse(struct sl_span text, struct sl_error *error)
{
    json_error_t why;
    json_t *item =
        json_loadb(text.ptr ? text.ptr : "", text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (json_is_object(item))
        return item;
    sl_fail_at(error, SL_REJECT, "ValidationException", item ? 0 : (size_t)why.position,
               "the item is no JSON object: %s", item ? "something else" : why.text);
    json_decref(item);
    return NULL;
}

/* The one tag of an attribute value and what it holds; NULL when it is none. */
static const char *tag_of(const json_t *value, json_t **content)
{
    if (!json_is_object(value) || json_object_size(value) != 1)
        return NULL;
    void *iter = json_object_iter((json_t *)value);
    *content = json_object_iter_value(iter);
    return json_object_iter_key(iter);
}

/* ---- size ---- */

static size_t number_bytes(struct sl_span n)
{
    size_t digits = 0, trailing = 0;
    for (size_t i = 0; i < n.len && n.ptr[i] != 'e' && n.ptr[i] != 'E'; i++) {
        if (n.ptr[i] < '0' || n.ptr[i] > '9' || (digits == 0 && n.ptr[i] == '0'))
            continue;
        digits++;
        trailing = n.ptr[i] == '0' ? trailing + 1 : 0;
    }
    return digits ? (digits - trailing + 1) / 2 + 1 + (n.ptr[0] == '-') : 1;
}

static size_t base64_bytes(struct sl_span b)
{
    return b.len / 4 * 3 - (sl_span_ends(b, SL_LIT("==")) ? 2 : sl_span_ends(b, SL_LIT("=")) ? 1 : 0);
}

static size_t scalar_bytes(char tag, const json_t *content)
{
    struct sl_span text = text_of(content);
    return tag == 'N' ? number_bytes(text) : tag == 'B' ? base64_bytes(text) : text.len;
}

static size_t value_bytes(const json_t *value)
{
    json_t *content = NULL, *element;
    const char *tag = tag_of(value, &content);
    const char *name;
    size_t i, bytes = 0;
    if (!tag)
        return 0;
    if (json_is_string(content))
        return scalar_bytes(tag[0], content);
    if (json_is_object(content)) {
        json_object_foreach(content, name, element) bytes += strlen(name) + value_bytes(element) + 1;
        return bytes + 3;
    }
    if (!json_is_array(content))
        return 1; /* BOOL, NULL */
    bool is_list = strcmp(tag, "L") == 0;
    json_array_foreach(content, i, element) bytes +=
        is_list ? value_bytes(element) + 1 : scalar_bytes(tag[0], element);
    return bytes + (is_list ? 3 : 0);
}

size_t sl_item_bytes(const json_t *item)
{
    const char *name;
    json_t *value;
    size_t bytes = 0;
    json_object_foreach((json_t *)item, name, value) bytes += strlen(name) + value_bytes(value);
    return bytes;
}

/* ---- what a value may be ---- */

static bool is_number(struct sl_span text)
{
    struct sl_arena *arena = sl_arena_new(512);
    bool good = sl_decimal_add(sl_decimal_new(arena), text, false);
    sl_arena_destroy(arena);
    return good;
}

static bool is_scalar(char tag, const json_t *content)
{
    if (!json_is_string(content))
        return false;
    return tag == 'N'   ? is_number(text_of(content))
           : tag == 'B' ? sl_base64_is_valid(text_of(content))
                        : true;
}

static bool is_value(const json_t *value)
{
    json_t *content = NULL, *element;
    const char *tag = tag_of(value, &content), *name;
    size_t i;
    if (!tag)
        return false;
    if (strcmp(tag, "S") == 0 || strcmp(tag, "N") == 0 || strcmp(tag, "B") == 0)
        return is_scalar(tag[0], content);
    if (strcmp(tag, "BOOL") == 0)
        return json_is_boolean(content);
    if (strcmp(tag, "NULL") == 0)
        return json_is_true(content);
    if (strcmp(tag, "M") == 0 && json_is_object(content)) {
        json_object_foreach(content, name, element) if (!is_value(element)) return false;
        return true;
    }
    bool is_list = strcmp(tag, "L") == 0;
    bool is_set = strlen(tag) == 2 && strchr("SNB", tag[0]) && tag[1] == 'S' && json_array_size(content) > 0;
    if (!json_is_array(content) || (!is_list && !is_set))
        return false;
    json_array_foreach(content, i,
                       element) if (is_list ? !is_value(element) : !is_scalar(tag[0], element)) return false;
    return true;
}

enum sl_status sl_item_check(const json_t *item, struct sl_error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)item, name, value) if (!is_value(value)) return sl_fail(
        error, SL_REJECT, "ValidationException", "attribute %s is no attribute value of DynamoDB's", name);
    return SL_OK;
}

/* ---- keys ---- */

static struct sl_span number_text(struct sl_span number, struct sl_arena *arena)
{
    struct sl_decimal *d = sl_decimal_new(arena);
    struct sl_span text = {0};
    return sl_decimal_add(d, number, false) && sl_decimal_text(d, arena, &text) ? text : sl_span(NULL, 0);
}

static enum sl_status add_key_attribute(const char *name, const json_t *value, struct sl_buffer *out,
                                        struct sl_error *error)
{
    json_t *content = NULL;
    const char *tag = tag_of(value, &content);
    if (!tag || strlen(tag) != 1 || !strchr("SNB", tag[0]) || !json_is_string(content))
        return sl_fail(error, SL_REJECT, "ValidationException", "key attribute %s is not of type S, N or B",
                       name);
    struct sl_arena *arena = sl_arena_new(512);
    struct sl_span text = tag[0] == 'N' ? number_text(text_of(content), arena) : text_of(content);
    enum sl_status status = SL_OK;
    if (text.len == 0 || scalar_bytes(tag[0], content) > SL_PARTITION_KEY_BYTES)
        status = sl_fail(error, SL_REJECT, "ValidationException",
                         "key attribute %s is empty, too long or no number", name);
    sl_json_add_string(out, sl_span_str(name));
    sl_buffer_add_str(out, ":{");
    sl_json_add_member(out, tag, text);
    sl_buffer_add_char(out, '}');
    sl_arena_destroy(arena);
    return status;
}

enum sl_status sl_item_key_text(const json_t *key, struct sl_buffer *out, struct sl_error *error)
{
    const char *names[2] = {NULL, NULL};
    const char *name;
    json_t *value;
    size_t n = json_object_size(key);
    if (n < 1 || n > 2)
        return sl_fail(error, SL_REJECT, "ValidationException",
                       "a key has one or two attributes, this one %zu", n);
    n = 0;
    json_object_foreach((json_t *)key, name, value) names[n++] = name;
    if (n == 2 && strcmp(names[0], names[1]) > 0) {
        const char *first = names[1];
        names[1] = names[0];
        names[0] = first;
    }
    for (size_t i = 0; i < n; i++) {
        sl_buffer_add_char(out, i ? ',' : '{');
        if (add_key_attribute(names[i], json_object_get(key, names[i]), out, error) != SL_OK)
            return SL_REJECT;
    }
    sl_buffer_add_char(out, '}');
    return out->failed ? sl_fail(error, SL_REJECT, "ValidationException", "the key is too long") : SL_OK;
}

/* ---- conditions ---- */

static json_t *parse_value(struct sl_span text, struct sl_error *error)
{
    json_t *value = sl_item_parse(text, error);
    json_t *content;
    if (value && tag_of(value, &content))
        return value;
    sl_fail(error, SL_REJECT, "ValidationException", "%.*s is no attribute value", SL_ARG(text));
    json_decref(value);
    return NULL;
}

static int compare_numbers(struct sl_span a, struct sl_span b)
{
    struct sl_arena *arena = sl_arena_new(512);
    struct sl_decimal *x = sl_decimal_new(arena), *y = sl_decimal_new(arena);
    sl_decimal_add(x, a, false);
    sl_decimal_add(y, b, false);
    int order = sl_decimal_compare(x, y);
    sl_arena_destroy(arena);
    return order;
}

/* Orders two scalars of one type; false when they have no order. */
static bool compare(const json_t *a, const json_t *b, int *order)
{
    json_t *x = NULL, *y = NULL;
    const char *tag = tag_of(a, &x), *other = tag_of(b, &y);
    if (!tag || !other || strcmp(tag, other) != 0 || !json_is_string(x) || !json_is_string(y))
        return false;
    struct sl_span s = text_of(x), t = text_of(y);
    if (tag[0] == 'N') {
        *order = compare_numbers(s, t);
        return true;
    }
    size_t n = s.len < t.len ? s.len : t.len;
    int byte = n ? memcmp(s.ptr, t.ptr, n) : 0;
    *order = byte ? byte : (s.len > t.len) - (s.len < t.len);
    return tag[0] == 'S';
}

static bool equal(const json_t *a, const json_t *b)
{
    int order;
    return compare(a, b, &order) ? order == 0 : json_equal(a, b) != 0;
}

static bool test_holds(const struct sl_test *test, const json_t *have, const json_t *wanted)
{
    int order = 0;
    switch (test->verb) {
    case SL_ABSENT:
        return !have;
    case SL_PRESENT:
        return have != NULL;
    case SL_EQ:
        return have && equal(have, wanted);
    case SL_NE:
        return have && !equal(have, wanted);
    case SL_LT:
        return have && compare(have, wanted, &order) && order < 0;
    case SL_LE:
        return have && compare(have, wanted, &order) && order <= 0;
    case SL_GT:
        return have && compare(have, wanted, &order) && order > 0;
    }
    return false;
}

enum sl_status sl_item_test(const struct sl_table_op *op, const json_t *item, bool *holds,
                            struct sl_error *error)
{
    *holds = op->n_tests == 0 || !op->any_test;
    for (size_t i = 0; i < op->n_tests; i++) {
        const struct sl_test *test = &op->tests[i];
        json_t *wanted = NULL;
        if (test->verb != SL_ABSENT && test->verb != SL_PRESENT) {
            wanted = parse_value(test->value, error);
            if (!wanted)
                return SL_REJECT;
        }
        json_t *have = item ? json_object_getn(item, test->name.ptr, test->name.len) : NULL;
        bool one = test_holds(test, have, wanted);
        json_decref(wanted);
        *holds = op->any_test ? *holds || one : *holds && one;
    }
    return SL_OK;
}

/* ---- updates ---- */

/* The number an attribute holds: "0" when absent, absent when it is something else. */
static struct sl_span number_of(const json_t *value)
{
    json_t *content = NULL;
    if (!value)
        return SL_LIT("0");
    const char *tag = tag_of(value, &content);
    return tag && strcmp(tag, "N") == 0 && json_is_string(content) ? text_of(content) : sl_span(NULL, 0);
}

static enum sl_status add_number(json_t *item, const struct sl_set *set, const json_t *value,
                                 struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(512);
    struct sl_decimal *sum = sl_decimal_new(arena);
    struct sl_span text;
    enum sl_status status = SL_OK;
    if (!sl_decimal_add(sum, number_of(json_object_getn(item, set->name.ptr, set->name.len)), false) ||
        !sl_decimal_add(sum, number_of(value), false))
        status = sl_fail(error, SL_REJECT, "ValidationException", "cannot add to %.*s: not a number",
                         SL_ARG(set->name));
    else if (!sl_decimal_text(sum, arena, &text))
        status = sl_fail(error, SL_REJECT, "ValidationException",
                         "%.*s would have more than 38 digits, or be out of range", SL_ARG(set->name));
    else
        json_object_setn_new(item, set->name.ptr, set->name.len,
                             json_pack("{s:s%}", "N", text.ptr, text.len));
    sl_arena_destroy(arena);
    return status;
}

static enum sl_status set_extreme(json_t *item, const struct sl_set *set, json_t *value,
                                  struct sl_error *error)
{
    json_t *have = json_object_getn(item, set->name.ptr, set->name.len);
    int order = 0;
    if (have && !compare(value, have, &order))
        return sl_fail(error, SL_REJECT, "ValidationException", "%.*s cannot be compared with the new value",
                       SL_ARG(set->name));
    if (!have || (set->verb == SL_SET_MAX ? order > 0 : order < 0))
        json_object_setn(item, set->name.ptr, set->name.len, value);
    return SL_OK;
}

enum sl_status sl_item_update(json_t *item, const struct sl_set *sets, size_t n, struct sl_error *error)
{
    for (size_t i = 0; i < n; i++) {
        const struct sl_set *set = &sets[i];
        if (set->verb == SL_UNSET) {
            json_object_deln(item, set->name.ptr, set->name.len);
            continue;
        }
        json_t *value = parse_value(set->value, error);
        enum sl_status status = value ? SL_OK : SL_REJECT;
        if (value && set->verb == SL_SET)
            json_object_setn(item, set->name.ptr, set->name.len, value);
        else if (value && set->verb == SL_ADD)
            status = add_number(item, set, value, error);
        else if (value)
            status = set_extreme(item, set, value, error);
        json_decref(value);
        if (status != SL_OK)
            return status;
    }
    return SL_OK;
}
