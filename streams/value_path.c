/* Paths into values: "a.b[0].c", where a name that holds '.', '[' or '`' stands in backquotes. */
#include "base/json.h"
#include "streams/value.h"

static const struct sl_value none = {.type = SL_NONE};

bool sl_path_name(struct sl_span *path, struct sl_span *name)
{
    const char *p = path->ptr, *end = p + path->len;
    if (p < end && *p == '`') {
        const char *close = memchr(p + 1, '`', (size_t)(end - p - 1));
        if (!close)
            return false;
        *name = sl_span(p + 1, (size_t)(close - p - 1));
        *path = sl_span(close + 1, (size_t)(end - close - 1));
        return true;
    }
    while (p < end && *p != '.' && *p != '[' && *p != '`')
        p++;
    *name = sl_span(path->ptr, (size_t)(p - path->ptr));
    *path = sl_span(p, (size_t)(end - p));
    return name->len > 0;
}

static bool path_index(struct sl_span *path, size_t *index)
{
    const char *p = path->ptr + 1, *end = path->ptr + path->len, *first = p;
    *index = 0;
    for (; p < end && *p >= '0' && *p <= '9' && p - first < 9; p++)
        *index = *index * 10 + (size_t)(*p - '0');
    if (p == end || *p != ']' || p == first)
        return false;
    *path = sl_span(p + 1, (size_t)(end - p - 1));
    return true;
}

bool sl_path_is_valid(struct sl_span path)
{
    struct sl_span name;
    size_t i;
    bool is_valid = sl_path_name(&path, &name) && name.len;
    while (path.len && is_valid) {
        if (path.ptr[0] == '.') {
            path = sl_span_from(path, 1);
            is_valid = sl_path_name(&path, &name) && name.len;
        } else {
            is_valid = path.ptr[0] == '[' && path_index(&path, &i);
        }
    }
    return is_valid;
}

static struct sl_value element(struct sl_value list, size_t i)
{
    struct sl_iter iter = sl_value_iter(list);
    struct sl_value value;
    if (list.type != SL_L)
        return none;
    while (sl_value_next(&iter, NULL, &value))
        if (i-- == 0)
            return value;
    return none;
}

struct sl_value sl_value_walk(struct sl_value v, struct sl_span path)
{
    struct sl_span name;
    size_t i;
    while (path.len && v.type != SL_NONE) {
        if (path.ptr[0] == '[') {
            v = path_index(&path, &i) ? element(v, i) : none;
        } else if (path.ptr[0] == '.') {
            path = sl_span_from(path, 1);
            v = sl_path_name(&path, &name) ? sl_value_member(v, name) : none;
        } else {
            v = none;
        }
    }
    return v;
}

struct sl_value sl_value_path(struct sl_value map, struct sl_span path)
{
    struct sl_span name;
    return sl_path_name(&path, &name) ? sl_value_walk(sl_value_member(map, name), path) : none;
}
