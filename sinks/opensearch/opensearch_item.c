/* A document becomes an item: what the field sluice_types says of a value counts, if the value can be that;
 * else the value is what it is in JSON. So a document that somebody has changed shows its change. */
#include "sinks/opensearch/opensearch_private.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/number.h"

#include <math.h>
#include <stdlib.h>

struct reader {
    struct sl_buffer out;
    struct sl_arena *arena;
};

static void read_value(struct reader *r, struct sl_span json, struct sl_span type);

static struct sl_span inner_of(struct sl_span string)
{
    return sl_span(string.ptr + 1, string.len - 2);
}

static bool is_string(struct sl_span json)
{
    return json.len >= 2 && *json.ptr == '"';
}

/* The type's text; absent when it is no text. */
static struct sl_span type_text(struct sl_span type)
{
    return is_string(type) ? inner_of(type) : sl_span(NULL, 0);
}

static void add_tagged(struct reader *r, const char *tag, struct sl_span content)
{
    sl_buffer_add_str(&r->out, "{\"");
    sl_buffer_add_str(&r->out, tag);
    sl_buffer_add_str(&r->out, "\":");
    sl_buffer_add_span(&r->out, content);
    sl_buffer_add_char(&r->out, '}');
}

static void add_number(struct reader *r, struct sl_span digits)
{
    sl_buffer_add_str(&r->out, "{\"N\":\"");
    sl_buffer_add_span(&r->out, digits);
    sl_buffer_add_str(&r->out, "\"}");
}

/* ---- numbers ---- */

static bool is_number(struct sl_span text)
{
    struct sl_number ignored;
    return sl_number_parse(text, &ignored) == NULL;
}

/* What is longer than any number of DynamoDB's is equal to nothing. */
static double double_of(struct sl_span text)
{
    char copy[256];
    if (text.len >= sizeof(copy))
        return NAN;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return strtod(copy, NULL);
}

/* The digits beside the document count if the document's number may be what became of them. */
static struct sl_span exact_of(struct sl_span written, struct sl_span exact)
{
    bool is_same =
        exact.ptr && is_number(exact) && is_number(written) && double_of(exact) == double_of(written);
    return is_same ? exact : written;
}

static void read_number(struct reader *r, struct sl_span json, struct sl_span type)
{
    struct sl_span exact = {NULL, 0};
    if (sl_span_starts(type, SL_LIT("N=")))
        exact = sl_span_from(type, 2);
    add_number(r, exact_of(json, exact));
}

/* ---- strings ---- */

static void read_string(struct reader *r, struct sl_span json, struct sl_span type)
{
    if (sl_span_is(type, "N") && is_number(inner_of(json)))
        add_number(r, inner_of(json));
    else if (sl_span_is(type, "B") && sl_base64_is_valid(sl_json_unescape(inner_of(json), r->arena)))
        add_tagged(r, "B", json);
    else
        add_tagged(r, "S", json);
}

/* ---- sets ---- */

/* The next of the numbers that a type lists. */
static struct sl_span next_exact(struct sl_span *rest)
{
    const char *comma = rest->len ? memchr(rest->ptr, ',', rest->len) : NULL;
    struct sl_span one = sl_span(rest->ptr, comma ? (size_t)(comma - rest->ptr) : rest->len);
    *rest = sl_span_from(*rest, one.len + (comma ? 1 : 0));
    return one;
}

static bool fits(struct sl_span element, struct sl_span type)
{
    if (*type.ptr == 'N')
        return is_number(is_string(element) ? inner_of(element) : element);
    return is_string(element) && *element.ptr == '"';
}

static bool is_set(struct sl_span json, struct sl_span type)
{
    bool is_known = sl_span_is(type, "SS") || sl_span_is(type, "BS") || sl_span_is(type, "NS") ||
                    sl_span_starts(type, SL_LIT("NS="));
    struct sl_json_walk walk = sl_json_walk(json);
    struct sl_span element;
    size_t n = 0;
    for (; is_known && sl_json_walk_next(&walk, NULL, &element); n++)
        is_known = fits(element, type);
    return is_known && n > 0;
}

static void read_set(struct reader *r, struct sl_span json, struct sl_span type)
{
    struct sl_json_walk walk = sl_json_walk(json);
    struct sl_span element, exact = sl_span_from(type, type.len > 3 ? 3 : type.len);
    bool is_numbers = *type.ptr == 'N';
    sl_buffer_add_str(&r->out, "{\"");
    sl_buffer_add(&r->out, type.ptr, 2);
    sl_buffer_add_str(&r->out, "\":[");
    for (size_t i = 0; sl_json_walk_next(&walk, NULL, &element); i++) {
        sl_buffer_add_str(&r->out, i ? "," : "");
        if (!is_numbers) {
            sl_buffer_add_span(&r->out, element);
            continue;
        }
        struct sl_span one = is_string(element) ? inner_of(element) : element;
        sl_buffer_add_char(&r->out, '"');
        sl_buffer_add_span(&r->out, exact_of(one, next_exact(&exact)));
        sl_buffer_add_char(&r->out, '"');
    }
    sl_buffer_add_str(&r->out, "]}");
}

/* ---- containers: the types of their parts are members of an object, in the parts' order ---- */

struct types {
    struct sl_span all;
    struct sl_json_walk walk;
    struct sl_span name, type; /* the next one */
    bool has_next;
};

static void types_next(struct types *t)
{
    t->has_next = sl_json_walk_next(&t->walk, &t->name, &t->type);
}

static struct types types_begin(struct sl_span types)
{
    struct types t = {.all = types, .walk = sl_json_walk(types)};
    if (t.walk.is_object)
        types_next(&t);
    return t;
}

static struct sl_span types_of(struct types *t, struct sl_span name)
{
    const struct sl_span none = {NULL, 0};
    struct sl_span have, type;
    if (!t->walk.is_object)
        return none;
    if (t->has_next && sl_json_same(t->name, name)) {
        type = t->type;
        types_next(t);
        return type;
    }
    struct sl_json_walk walk = sl_json_walk(t->all);
    while (sl_json_walk_next(&walk, &have, &type))
        if (sl_json_same(have, name))
            return type;
    return none;
}

static void read_list(struct reader *r, struct sl_span json, struct sl_span all)
{
    struct sl_json_walk walk = sl_json_walk(json);
    struct types types = types_begin(all);
    struct sl_span element;
    char index[24];
    sl_buffer_add_str(&r->out, "{\"L\":[");
    for (size_t i = 0; sl_json_walk_next(&walk, NULL, &element); i++) {
        size_t len = 0;
        sl_buffer_add_str(&r->out, i ? "," : "");
        for (size_t rest = i; len == 0 || rest; rest /= 10)
            index[sizeof(index) - ++len] = (char)('0' + rest % 10);
        read_value(r, element, types_of(&types, sl_span(index + sizeof(index) - len, len)));
    }
    sl_buffer_add_str(&r->out, "]}");
}

static bool is_ours(struct sl_span name)
{
    return sl_json_text_is(name, SL_LIT(SL_OPENSEARCH_HASH)) ||
           sl_json_text_is(name, SL_LIT(SL_OPENSEARCH_TYPES));
}

static void read_members(struct reader *r, struct sl_span json, struct sl_span all, bool is_top)
{
    struct sl_json_walk walk = sl_json_walk(json);
    struct types types = types_begin(all);
    struct sl_span name, value;
    size_t n = 0;
    sl_buffer_add_char(&r->out, '{');
    while (sl_json_walk_next(&walk, &name, &value)) {
        if (is_top && is_ours(name))
            continue;
        sl_buffer_add_str(&r->out, n++ ? ",\"" : "\"");
        sl_buffer_add_span(&r->out, name);
        sl_buffer_add_str(&r->out, "\":");
        read_value(r, value, types_of(&types, name));
    }
    sl_buffer_add_char(&r->out, '}');
}

static void read_value(struct reader *r, struct sl_span json, struct sl_span type)
{
    struct sl_span text = type_text(type);
    switch (*json.ptr) {
    case '"':
        read_string(r, json, text);
        return;
    case '{':
        sl_buffer_add_str(&r->out, "{\"M\":");
        read_members(r, json, type, false);
        sl_buffer_add_char(&r->out, '}');
        return;
    case '[':
        if (text.len >= 2 && is_set(json, text))
            read_set(r, json, text);
        else
            read_list(r, json, type);
        return;
    case 't':
    case 'f':
        add_tagged(r, "BOOL", json);
        return;
    case 'n':
        add_tagged(r, "NULL", SL_LIT("true"));
        return;
    default:
        read_number(r, json, text);
    }
}

struct sl_span sl_opensearch_item(struct sl_span source, struct sl_arena *arena)
{
    struct reader r = {.arena = arena};
    struct sl_span types = sl_json_walk_member(source, SL_LIT(SL_OPENSEARCH_TYPES));
    types = is_string(types) ? sl_json_unescape(inner_of(types), arena) : sl_span(NULL, 0);
    if (types.ptr && sl_json_check_loose(types, NULL) != SL_OK)
        types = sl_span(NULL, 0);
    sl_buffer_init(&r.out, SIZE_MAX);
    read_members(&r, source, types, true);
    struct sl_span item = sl_span(sl_arena_copy(arena, sl_buffer_span(&r.out)), r.out.len);
    sl_buffer_clean_up(&r.out);
    return item;
}
