/* One attribute value as DynamoDB's JSON: what it may be, its size, equality and order. */
#include "sinks/item_private.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/number.h"

#include <stdlib.h>

/* ---- reading ---- */

static const struct {
    struct sl_span name;
    char first; /* of its content */
} tags[] = {
    [SL_ITEM_NONE] = {{NULL, 0}, 0}, [SL_ITEM_S] = {{"S", 1}, '"'},     [SL_ITEM_N] = {{"N", 1}, '"'},
    [SL_ITEM_B] = {{"B", 1}, '"'},   [SL_ITEM_BOOL] = {{"BOOL", 4}, 0}, [SL_ITEM_NULL] = {{"NULL", 4}, 't'},
    [SL_ITEM_SS] = {{"SS", 2}, '['}, [SL_ITEM_NS] = {{"NS", 2}, '['},   [SL_ITEM_BS] = {{"BS", 2}, '['},
    [SL_ITEM_L] = {{"L", 1}, '['},   [SL_ITEM_M] = {{"M", 1}, '{'},
};

static bool is_text(enum sl_item_tag tag)
{
    return tag == SL_ITEM_S || tag == SL_ITEM_N || tag == SL_ITEM_B;
}

static struct sl_span inner_of(struct sl_span string)
{
    return sl_span(string.ptr + 1, string.len - 2);
}

static bool is_of_kind(enum sl_item_tag tag, struct sl_span content)
{
    if (tag == SL_ITEM_BOOL)
        return sl_span_is(content, "true") || sl_span_is(content, "false");
    return content.ptr[0] == tags[tag].first;
}

struct sl_item_value sl_item_value(struct sl_span json)
{
    struct sl_json_walk walk = sl_json_walk(json);
    struct sl_span name, content, more;
    if (!walk.is_object || !sl_json_walk_next(&walk, &name, &content) ||
        sl_json_walk_next(&walk, &more, &more))
        return (struct sl_item_value){0};
    for (enum sl_item_tag tag = SL_ITEM_S; tag <= SL_ITEM_M; tag++)
        if (sl_json_text_is(name, tags[tag].name))
            return is_of_kind(tag, content)
                       ? (struct sl_item_value){tag, is_text(tag) ? inner_of(content) : content}
                       : (struct sl_item_value){0};
    return (struct sl_item_value){0};
}

/* The parts of a container or set, one after the other, each as a value. */
struct parts {
    struct sl_json_walk walk;
    enum sl_item_tag tag;
};

static struct parts parts_of(struct sl_item_value v)
{
    return (struct parts){sl_json_walk(v.content), v.tag};
}

static bool next_part(struct parts *parts, struct sl_span *name, struct sl_item_value *part)
{
    struct sl_span json;
    if (!sl_json_walk_next(&parts->walk, parts->tag == SL_ITEM_M ? name : NULL, &json))
        return false;
    if (parts->tag == SL_ITEM_M || parts->tag == SL_ITEM_L)
        *part = sl_item_value(json);
    else if (json.ptr[0] == '"')
        *part = (struct sl_item_value){parts->tag - SL_ITEM_SS + SL_ITEM_S, inner_of(json)};
    else
        *part = (struct sl_item_value){0};
    return true;
}

/* ---- what it holds ---- */

/* The text without escapes; `room` is emptied and used when there are some. */
static struct sl_span plain(struct sl_span inner, struct sl_buffer *room)
{
    return inner.len && memchr(inner.ptr, '\\', inner.len) ? sl_json_unescape_in(inner, room) : inner;
}

static bool read_number(struct sl_span inner, struct sl_number *number)
{
    struct sl_buffer room;
    sl_buffer_init(&room, SIZE_MAX / 2);
    bool is_number = !sl_number_parse(plain(inner, &room), number);
    sl_buffer_clean_up(&room);
    return is_number;
}

static size_t binary_bytes(struct sl_span inner)
{
    struct sl_buffer room;
    sl_buffer_init(&room, SIZE_MAX / 2);
    size_t bytes = sl_base64_decoded_bytes(plain(inner, &room));
    sl_buffer_clean_up(&room);
    return bytes;
}

size_t sl_item_value_bytes(struct sl_item_value v)
{
    struct sl_number number;
    struct sl_item_value part;
    struct sl_span name = {NULL, 0};
    size_t bytes = 0;
    switch (v.tag) {
    case SL_ITEM_NONE:
        return 0;
    case SL_ITEM_S:
        return sl_json_unescaped_bytes(v.content);
    case SL_ITEM_N:
        return read_number(v.content, &number) ? sl_number_bytes(&number) : 0;
    case SL_ITEM_B:
        return binary_bytes(v.content);
    case SL_ITEM_BOOL:
    case SL_ITEM_NULL:
        return 1;
    default:
        break;
    }
    bool is_set = v.tag < SL_ITEM_L;
    for (struct parts parts = parts_of(v); next_part(&parts, &name, &part);)
        bytes += sl_json_unescaped_bytes(name) + sl_item_value_bytes(part) + !is_set;
    return bytes + (is_set ? 0 : 3);
}

static bool is_base64(struct sl_span inner)
{
    struct sl_buffer room;
    sl_buffer_init(&room, SIZE_MAX / 2);
    bool is_valid = sl_base64_is_valid(plain(inner, &room));
    sl_buffer_clean_up(&room);
    return is_valid;
}

static bool is_good(struct sl_item_value v, unsigned depth)
{
    struct sl_number number;
    struct sl_item_value part;
    struct sl_span name;
    if (v.tag == SL_ITEM_N)
        return read_number(v.content, &number);
    if (v.tag == SL_ITEM_B)
        return is_base64(v.content);
    if (v.tag < SL_ITEM_SS)
        return v.tag != SL_ITEM_NONE;
    bool is_set = v.tag < SL_ITEM_L, any = false;
    if (!is_set && depth == SL_ITEM_DEPTH)
        return false;
    for (struct parts parts = parts_of(v); next_part(&parts, &name, &part); any = true)
        if (!is_good(part, depth + 1))
            return false;
    return any || !is_set;
}

bool sl_item_value_is_good(struct sl_span json)
{
    return is_good(sl_item_value(json), 0);
}

/* ---- equality ---- */

/* A member of a map or an element of a set: what it is called by. */
struct called {
    struct sl_span text; /* a name, a string, base64 or a number in normal form */
    struct sl_item_value value;
    size_t place;
};

struct all_called {
    struct called *list;
    size_t n;
};

static int compare_text(struct sl_span a, struct sl_span b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_called(const void *a, const void *b)
{
    const struct called *x = a, *y = b;
    int order = compare_text(x->text, y->text);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static struct sl_span normal_number(struct sl_span inner, struct sl_arena *arena)
{
    struct sl_number number;
    if (!read_number(inner, &number))
        return inner;
    char *text = sl_arena_alloc(arena, SL_NUMBER_TEXT);
    return sl_span(text, sl_number_text(&number, text));
}

/* In order and each text once: of equal names, the last one counts. */
static struct all_called collect(struct sl_item_value v, struct sl_arena *arena)
{
    struct all_called all = {NULL, 0};
    struct sl_item_value part;
    struct sl_span name;
    size_t n = 0;
    for (struct parts parts = parts_of(v); next_part(&parts, &name, &part);)
        n++;
    all.list = sl_arena_alloc(arena, (n + 1) * sizeof(*all.list));
    for (struct parts parts = parts_of(v); next_part(&parts, &name, &part); all.n++) {
        struct sl_span text = v.tag == SL_ITEM_M      ? sl_json_unescape(name, arena)
                              : part.tag == SL_ITEM_N ? normal_number(part.content, arena)
                                                      : sl_json_unescape(part.content, arena);
        all.list[all.n] = (struct called){text, part, all.n};
    }
    qsort(all.list, all.n, sizeof(*all.list), compare_called);
    n = 0;
    for (size_t i = 0; i < all.n; i++)
        if (i + 1 == all.n || compare_text(all.list[i].text, all.list[i + 1].text) != 0)
            all.list[n++] = all.list[i];
    all.n = n;
    return all;
}

static bool equal_in_any_order(struct sl_item_value a, struct sl_item_value b)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct all_called x = collect(a, arena), y = collect(b, arena);
    bool equal = x.n == y.n;
    for (size_t i = 0; equal && i < x.n; i++)
        equal = sl_span_eq(x.list[i].text, y.list[i].text) &&
                (a.tag != SL_ITEM_M || sl_item_value_equal(x.list[i].value, y.list[i].value));
    sl_arena_destroy(arena);
    return equal;
}

static bool equal_lists(struct sl_item_value a, struct sl_item_value b)
{
    struct parts of_a = parts_of(a), of_b = parts_of(b);
    struct sl_item_value x, y;
    for (;;) {
        bool has_x = next_part(&of_a, NULL, &x), has_y = next_part(&of_b, NULL, &y);
        if (!has_x || !has_y)
            return has_x == has_y;
        if (!sl_item_value_equal(x, y))
            return false;
    }
}

static bool equal_numbers(struct sl_item_value a, struct sl_item_value b)
{
    struct sl_number x, y;
    return read_number(a.content, &x) && read_number(b.content, &y) && sl_number_compare(&x, &y) == 0;
}

bool sl_item_value_equal(struct sl_item_value a, struct sl_item_value b)
{
    if (a.tag != b.tag || a.tag == SL_ITEM_NONE)
        return false;
    if (sl_span_eq(a.content, b.content))
        return true;
    switch (a.tag) {
    case SL_ITEM_S:
    case SL_ITEM_B:
        return sl_json_same(a.content, b.content);
    case SL_ITEM_N:
        return equal_numbers(a, b);
    case SL_ITEM_L:
        return equal_lists(a, b);
    case SL_ITEM_SS:
    case SL_ITEM_NS:
    case SL_ITEM_BS:
    case SL_ITEM_M:
        return equal_in_any_order(a, b);
    default:
        return false;
    }
}

/* ---- order ---- */

static struct sl_span bytes_of(struct sl_item_value v, struct sl_arena *arena)
{
    struct sl_span text = sl_json_unescape(v.content, arena);
    if (v.tag == SL_ITEM_S || !sl_base64_is_valid(text))
        return text;
    unsigned char *bytes = sl_arena_alloc(arena, sl_base64_decoded_bytes(text) + 1);
    sl_base64_decode_valid(text, bytes);
    return sl_span((const char *)bytes, sl_base64_decoded_bytes(text));
}

bool sl_item_value_compare(struct sl_item_value a, struct sl_item_value b, int *order)
{
    struct sl_number x, y;
    if (a.tag != b.tag || !is_text(a.tag))
        return false;
    if (a.tag == SL_ITEM_N) {
        bool are_numbers = read_number(a.content, &x) && read_number(b.content, &y);
        *order = are_numbers ? sl_number_compare(&x, &y) : 0;
        return are_numbers;
    }
    struct sl_arena *arena = sl_arena_new(512);
    *order = compare_text(bytes_of(a, arena), bytes_of(b, arena));
    sl_arena_destroy(arena);
    return true;
}

/* ---- keys ---- */

bool sl_item_value_add_key(struct sl_item_value v, struct sl_buffer *out)
{
    struct sl_number number;
    struct sl_buffer room;
    char digits[SL_NUMBER_TEXT];
    if (!is_text(v.tag) || (v.tag == SL_ITEM_N && !read_number(v.content, &number)))
        return false;
    sl_buffer_init(&room, SIZE_MAX / 2);
    struct sl_span text =
        v.tag == SL_ITEM_N ? sl_span(digits, sl_number_text(&number, digits)) : plain(v.content, &room);
    sl_buffer_printf(out, "{\"%s\":\"", tags[v.tag].name.ptr);
    sl_json_add_exact(out, text);
    sl_buffer_add_str(out, "\"}");
    sl_buffer_clean_up(&room);
    return true;
}
