/* Items as people write them: see streams/shorthand.h. */
#include "streams/shorthand.h"

#include "base/json_walk.h"
#include "base/json_write.h"
#include "streams/value.h"

/* What the content of a tag begins with. */
static bool fits(enum sl_type tag, char first)
{
    switch (tag) {
    case SL_S:
    case SL_N:
    case SL_B:
        return first == '"';
    case SL_BOOL:
        return first == 't' || first == 'f';
    case SL_NULL:
        return first == 't';
    case SL_M:
        return first == '{';
    case SL_NONE:
        return false;
    default: /* lists and sets */
        return first == '[';
    }
}

/* The only member of the object; false: it has none, or more. */
static bool only_member(struct sl_span object, struct sl_span *name, struct sl_span *value)
{
    struct sl_span other, ignored;
    struct sl_json_walk walk = sl_json_walk(object);
    return sl_json_walk_next(&walk, name, value) && !sl_json_walk_next(&walk, &other, &ignored);
}

static void add_list(struct sl_buffer *out, struct sl_span list)
{
    struct sl_json_walk walk = sl_json_walk(list);
    struct sl_span element;
    sl_buffer_add_str(out, "{\"L\":[");
    for (bool is_first = true; sl_json_walk_next(&walk, NULL, &element); is_first = false) {
        sl_buffer_add_str(out, is_first ? "" : ",");
        sl_shorthand_add_value(out, element);
    }
    sl_buffer_add_str(out, "]}");
}

static void add_tagged(struct sl_buffer *out, const char *tag, struct sl_span json)
{
    sl_buffer_add_char(out, '{');
    sl_json_add_raw(out, tag, json);
    sl_buffer_add_char(out, '}');
}

static void add_object(struct sl_buffer *out, struct sl_span object)
{
    struct sl_span name, value;
    bool is_one = only_member(object, &name, &value);
    if (is_one && fits(sl_value_tag(name.ptr, name.len), *value.ptr)) {
        sl_json_add_compact(out, object);
    } else if (is_one && sl_span_is(name, "base64") && *value.ptr == '"') {
        add_tagged(out, "B", value);
    } else {
        sl_buffer_add_str(out, "{\"M\":");
        sl_shorthand_add_item(out, object);
        sl_buffer_add_char(out, '}');
    }
}

void sl_shorthand_add_value(struct sl_buffer *out, struct sl_span json)
{
    switch (*json.ptr) {
    case '"':
        add_tagged(out, "S", json);
        break;
    case '{':
        add_object(out, json);
        break;
    case '[':
        add_list(out, json);
        break;
    case 't':
    case 'f':
        add_tagged(out, "BOOL", json);
        break;
    case 'n':
        sl_buffer_add_str(out, "{\"NULL\":true}");
        break;
    default:
        sl_buffer_printf(out, "{\"N\":\"%.*s\"}", SL_ARG(json));
    }
}

void sl_shorthand_add_item(struct sl_buffer *out, struct sl_span object)
{
    struct sl_json_walk walk = sl_json_walk(object);
    struct sl_span name, value;
    sl_buffer_add_char(out, '{');
    for (bool is_first = true; sl_json_walk_next(&walk, &name, &value); is_first = false) {
        sl_buffer_printf(out, "%s\"%.*s\":", is_first ? "" : ",", SL_ARG(name));
        sl_shorthand_add_value(out, value);
    }
    sl_buffer_add_char(out, '}');
}
