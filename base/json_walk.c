/* Walking over the members of an object and the elements of an array, in text that was checked. */
#include "base/json_walk.h"

#include "base/json.h"

struct sl_json_walk sl_json_walk(struct sl_span json)
{
    const char *end = sl_span_end(json);
    const char *p = json.ptr ? sl_json_space(json.ptr, end) : end;
    if (p < end && (*p == '{' || *p == '['))
        return (struct sl_json_walk){sl_json_space(p + 1, end), end, *p == '{'};
    return (struct sl_json_walk){end, end, false};
}

bool sl_json_walk_next(struct sl_json_walk *walk, struct sl_span *name, struct sl_span *value)
{
    const char *p = walk->p, *end = walk->end;
    bool escaped;
    if (p == end || *p == '}' || *p == ']' || walk->is_object != (name != NULL))
        return false;
    if (name) {
        const char *close = sl_json_string_end(p + 1, end, &escaped);
        *name = sl_span(p + 1, (size_t)(close - p - 1));
        p = sl_json_space(sl_json_space(close + 1, end) + 1, end);
    }
    if (p > end) /* only in text that was not checked */
        p = end;
    const char *after = sl_json_value_end(p, end);
    *value = sl_span(p, (size_t)(after - p));
    p = sl_json_space(after, end);
    walk->p = p < end && *p == ',' ? sl_json_space(p + 1, end) : p;
    return true;
}

struct sl_span sl_json_walk_member(struct sl_span json, struct sl_span name)
{
    struct sl_json_walk walk = sl_json_walk(json);
    struct sl_span have, value;
    while (sl_json_walk_next(&walk, &have, &value))
        if (sl_json_text_is(have, name))
            return value;
    return sl_span(NULL, 0);
}

size_t sl_json_walk_count(struct sl_span json)
{
    struct sl_json_walk walk = sl_json_walk(json);
    struct sl_span element;
    size_t n = 0;
    while (sl_json_walk_next(&walk, NULL, &element))
        n++;
    return n;
}
