/* Two items, walked side by side. */
#include "data/recall/diff.h"

#include "base/json.h"

/* 32 containers, one in another; names have 64 KB at most. */
#define PATH_BYTES ((size_t)4 * 1024 * 1024)

struct diff {
    struct sl_arena *arena;
    sl_diff_found *found;
    void *arg;
    struct sl_buffer path;
};

static const struct sl_value none = {.type = SL_NONE};

static void diff_values(struct diff *d, struct sl_value before, struct sl_value after);

static void add_name(struct diff *d, struct sl_span name)
{
    bool is_quoted = name.len == 0;
    for (size_t i = 0; i < name.len; i++)
        is_quoted |= name.ptr[i] == '.' || name.ptr[i] == '[' || name.ptr[i] == '`';
    if (d->path.len)
        sl_buffer_add_char(&d->path, '.');
    if (is_quoted)
        sl_buffer_add_char(&d->path, '`');
    sl_buffer_add_span(&d->path, name);
    if (is_quoted)
        sl_buffer_add_char(&d->path, '`');
}

static bool next_member(struct diff *d, struct sl_iter *iter, struct sl_span *name, struct sl_value *value)
{
    bool has = sl_value_next(iter, name, value);
    if (has && memchr(name->ptr, '\\', name->len))
        *name = sl_json_unescape(*name, d->arena);
    return has;
}

static void at_name(struct diff *d, struct sl_span name, struct sl_value before, struct sl_value after)
{
    size_t len = d->path.len;
    add_name(d, name);
    diff_values(d, before, after);
    d->path.len = len;
}

/* Members are mostly in the same order in both; else one is looked for. */
static void diff_maps(struct diff *d, struct sl_value before, struct sl_value after)
{
    struct sl_iter of_before = sl_value_iter(before), of_after = sl_value_iter(after);
    struct sl_span name, other = {NULL, 0};
    struct sl_value value, its = none;
    bool has = before.type == SL_M && next_member(d, &of_before, &other, &its);
    while (after.type == SL_M && next_member(d, &of_after, &name, &value)) {
        bool is_beside = has && sl_span_eq(name, other);
        at_name(d, name, is_beside ? its : sl_value_member(before, name), value);
        if (is_beside)
            has = next_member(d, &of_before, &other, &its);
    }
    of_before = sl_value_iter(before);
    while (before.type == SL_M && next_member(d, &of_before, &name, &its))
        if (sl_value_member(after, name).type == SL_NONE)
            at_name(d, name, its, none);
}

static void diff_lists(struct diff *d, struct sl_value before, struct sl_value after)
{
    struct sl_iter of_before = sl_value_iter(before), of_after = sl_value_iter(after);
    size_t len = d->path.len;
    for (size_t i = 0;; i++) {
        struct sl_value x = none, y = none;
        bool has_x = sl_value_next(&of_before, NULL, &x), has_y = sl_value_next(&of_after, NULL, &y);
        if (!has_x && !has_y)
            return;
        sl_buffer_printf(&d->path, "[%zu]", i);
        diff_values(d, has_x ? x : none, has_y ? y : none);
        d->path.len = len;
    }
}

static void diff_values(struct diff *d, struct sl_value before, struct sl_value after)
{
    if (before.type != SL_NONE && after.type != SL_NONE && sl_value_equal(before, after))
        return;
    if (before.type == SL_M && after.type == SL_M)
        diff_maps(d, before, after);
    else if (before.type == SL_L && after.type == SL_L)
        diff_lists(d, before, after);
    else
        d->found(d->arg, sl_buffer_span(&d->path), before, after);
}

void sl_diff(struct sl_value before, struct sl_value after, struct sl_arena *arena, sl_diff_found *found,
             void *arg)
{
    struct diff d = {.arena = arena, .found = found, .arg = arg};
    sl_buffer_init_in(&d.path, arena, PATH_BYTES);
    diff_maps(&d, before, after);
}
