/* Attribute values of checked text: taking them apart. */
#include "base/array.h"
#include "base/base64.h"
#include "base/json.h"
#include "streams/value.h"

static struct sl_span between(const char *from, const char *to)
{
    return sl_span(from, (size_t)(to - from));
}

static bool is_text(enum sl_type type)
{
    return type == SL_S || type == SL_N || type == SL_B;
}

/* ---- reading on ---- */

static enum sl_type name_of_one(char c)
{
    switch (c) {
    case 'S':
        return SL_S;
    case 'N':
        return SL_N;
    case 'B':
        return SL_B;
    case 'L':
        return SL_L;
    case 'M':
        return SL_M;
    default:
        return SL_NONE;
    }
}

enum sl_type sl_value_tag(const char *name, size_t n)
{
    if (n == 1)
        return name_of_one(*name);
    if (n == 2 && name[1] == 'S')
        return *name == 'S' ? SL_SS : *name == 'N' ? SL_NS : *name == 'B' ? SL_BS : SL_NONE;
    if (n == 4 && memcmp(name, "BOOL", 4) == 0)
        return SL_BOOL;
    if (n == 4 && memcmp(name, "NULL", 4) == 0)
        return SL_NULL;
    return SL_NONE;
}

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

/* {"S":" as services write it: a string follows, and the tag is one byte. No value is shorter than eight
 * bytes. */
static bool is_plain_text(const char *p)
{
    return p[1] == '"' && p[3] == '"' && p[4] == ':' && p[5] == '"';
}

struct sl_value sl_value_at(const char *p, const char *end, const char **next)
{
    bool escaped;
    if (is_plain_text(p)) {
        struct sl_value text = string_at(p + 5, end, name_of_one(p[2]), &p);
        *next = sl_json_space(p, end) + 1;
        return text;
    }
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
        iter.end = sl_span_end(v.raw) - 1;
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

/* ---- writing ---- */

static const struct {
    struct sl_span before, after;
} tags[] = {
    [SL_NONE] = {{"", 0}, {"", 0}},
    [SL_S] = {{"{\"S\":\"", 6}, {"\"}", 2}},
    [SL_N] = {{"{\"N\":\"", 6}, {"\"}", 2}},
    [SL_B] = {{"{\"B\":\"", 6}, {"\"}", 2}},
    [SL_BOOL] = {{"{\"BOOL\":", 8}, {"}", 1}},
    [SL_NULL] = {{"{\"NULL\":", 8}, {"}", 1}},
    [SL_SS] = {{"{\"SS\":", 6}, {"}", 1}},
    [SL_NS] = {{"{\"NS\":", 6}, {"}", 1}},
    [SL_BS] = {{"{\"BS\":", 6}, {"}", 1}},
    [SL_L] = {{"{\"L\":", 5}, {"}", 1}},
    [SL_M] = {{"{\"M\":", 5}, {"}", 1}},
};

static char *put(char *at, struct sl_span text)
{
    if (text.len > 0)
        memcpy(at, text.ptr, text.len);
    return at + text.len;
}

char *sl_value_put(char *at, struct sl_value v)
{
    at = put(at, tags[v.type].before);
    at = put(at, v.raw);
    return put(at, tags[v.type].after);
}

struct sl_span sl_value_json(struct sl_value v, struct sl_arena *arena)
{
    char *text = sl_arena_alloc(arena, v.raw.len + SL_VALUE_JSON_BYTES);
    return sl_span(text, (size_t)(sl_value_put(text, v) - text));
}
