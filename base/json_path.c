/* Paths in JSON text that was checked: the value that a path names, and the path of a byte. */
#include "base/json.h"
#include "base/json_walk.h"

#include <stdarg.h>
#include <stdio.h>

/* The value of the last member called `name`, NULL when there is none. */
static const char *find_member(struct sl_span object, struct sl_span name)
{
    struct sl_json_walk walk = sl_json_walk(object);
    struct sl_span have, value;
    const char *found = NULL;
    while (sl_json_walk_next(&walk, &have, &value))
        if (sl_json_text_is(have, name))
            found = value.ptr;
    return found;
}

static const char *find_element(struct sl_span array, size_t i)
{
    struct sl_json_walk walk = sl_json_walk(array);
    struct sl_span value;
    while (sl_json_walk_next(&walk, NULL, &value))
        if (i-- == 0)
            return value.len ? value.ptr : NULL;
    return NULL;
}

/* One step of a path: "[1]" or a name up to the next '.' or '['. NULL when there is no such value. */
static const char *step(const char **path, const char *value, const char *end)
{
    if (**path == '[') {
        size_t i = 0, n = 0;
        for ((*path)++; **path >= '0' && **path <= '9' && n < 9; (*path)++, n++)
            i = i * 10 + (size_t)(**path - '0');
        if (**path != ']' || n == 0)
            return NULL;
        (*path)++;
        return find_element(sl_span(value, (size_t)(end - value)), i);
    }
    size_t n = strcspn(*path, ".[");
    struct sl_span name = sl_span(*path, n);
    *path += n;
    return find_member(sl_span(value, (size_t)(end - value)), name);
}

struct sl_span sl_json_find(struct sl_span text, const char *path)
{
    const char *end = sl_span_end(text), *value = text.ptr;
    if (text.len >= 3 && memcmp(value, "\xEF\xBB\xBF", 3) == 0)
        value += 3;
    value = sl_json_space(value, end);
    while (value && value < end && *path) {
        value = step(&path, value, end);
        if (*path == '.')
            path++;
    }
    if (!value || value >= end)
        return sl_span(NULL, 0);
    return sl_span(value, (size_t)(sl_json_value_end(value, end) - value));
}

/* What leads to a byte, as far as it fits. */
struct path {
    char *out;
    size_t len, room;
};

static void path_add(struct path *path, const char *format, ...) SL_PRINTF(2, 3);

static void path_add(struct path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t left = path->room - path->len;
    int n = vsnprintf(path->out + path->len, left, format, args);
    va_end(args);
    path->len += (size_t)n < left ? (size_t)n : left - 1;
}

/* The value in the container at `p` that `at` is in, or in whose name; NULL when it is in none. */
static const char *part_with(const char *p, const char *end, const char *at, struct path *path)
{
    bool is_object = *p == '{', escaped;
    p = sl_json_space(p + 1, end);
    for (size_t i = 0; *p != '}' && *p != ']'; i++) {
        const char *name = p, *close = p;
        if (is_object) {
            close = sl_json_string_end(p + 1, end, &escaped);
            p = sl_json_space(sl_json_space(close + 1, end) + 1, end);
        }
        const char *next = sl_json_value_end(p, end);
        if (at >= name && at < next) {
            if (is_object)
                path_add(path, "%s%.*s", path->len ? "." : "", (int)(close - name - 1), name + 1);
            else
                path_add(path, "[%zu]", i);
            return at < p ? NULL : p;
        }
        p = sl_json_space(next, end);
        if (*p == ',')
            p = sl_json_space(p + 1, end);
    }
    return NULL;
}

void sl_json_path_of(struct sl_span text, const char *at, char *out, size_t room)
{
    struct path path = {out, 0, room};
    const char *end = sl_span_end(text), *p = sl_json_space(text.ptr, end);
    out[0] = '\0';
    while (p && p != at && (*p == '{' || *p == '['))
        p = part_with(p, end, at, &path);
}

struct sl_span sl_json_text(struct sl_span text, const char *path, struct sl_arena *arena)
{
    struct sl_span raw = sl_json_find(text, path);
    if (raw.len < 2 || raw.ptr[0] != '"')
        return sl_span(NULL, 0);
    return sl_json_unescape(sl_span(raw.ptr + 1, raw.len - 2), arena);
}
