/* Comparing a row with what was expected: side by side as long as both have their attributes in one order,
 * then by name. */
#include "data/verify/compare.h"

#include "base/json.h"
#include "streams/value.h"

#include <stdlib.h>

struct member {
    struct sl_span name; /* unescaped */
    struct sl_value value;
};

/* The members of an item that count, one after the other. */
struct members {
    const struct sl_compare *c;
    const struct sl_expected *expected;
    struct sl_iter iter;
};

static bool is_one_of(struct sl_span name, const struct sl_span *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (sl_span_eq(name, names[i]))
            return true;
    return false;
}

static bool counts(const struct sl_compare *c, const struct sl_expected *e, struct sl_span name)
{
    if (is_one_of(name, c->ignored, c->n_ignored))
        return false;
    return e->n_counts ? is_one_of(name, e->counts, e->n_counts) : !is_one_of(name, e->own, e->n_own);
}

static struct members members_of(const struct sl_compare *c, const struct sl_expected *e, struct sl_span item)
{
    return (struct members){c, e, sl_value_iter((struct sl_value){.type = SL_M, .raw = item})};
}

static bool next(struct members *m, struct member *out)
{
    while (sl_value_next(&m->iter, &out->name, &out->value)) {
        if (memchr(out->name.ptr, '\\', out->name.len))
            out->name = sl_json_unescape(out->name, m->c->arena);
        if (counts(m->c, m->expected, out->name))
            return true;
    }
    return false;
}

/* True: every attribute that counts is the same, in the same order. */
static bool equal_in_order(const struct sl_compare *c, const struct sl_expected *e, struct sl_span row)
{
    struct members of_item = members_of(c, e, e->item), of_row = members_of(c, e, row);
    struct member x, y;
    for (;;) {
        bool has_x = next(&of_item, &x), has_y = next(&of_row, &y);
        if (!has_x || !has_y)
            return has_x == has_y;
        if (!sl_span_eq(x.name, y.name) || !sl_value_equal(x.value, y.value))
            return false;
    }
}

/* ---- by name ---- */

static int by_name(const void *a, const void *b)
{
    return sl_span_compare(((const struct member *)a)->name, ((const struct member *)b)->name);
}

static struct member *sorted(const struct sl_compare *c, const struct sl_expected *e, struct sl_span item,
                             size_t *n)
{
    struct member one;
    *n = 0;
    for (struct members m = members_of(c, e, item); next(&m, &one);)
        ++*n;
    struct member *list = sl_arena_alloc(c->arena, (*n + 1) * sizeof(*list));
    *n = 0;
    for (struct members m = members_of(c, e, item); next(&m, &one);)
        list[(*n)++] = one;
    qsort(list, *n, sizeof(*list), by_name);
    return list;
}

void sl_compare_names(const struct sl_compare *c, const struct sl_expected *e, struct sl_span row,
                      struct sl_span **names, size_t *n)
{
    size_t n_x, n_y, x = 0, y = 0;
    *n = 0;
    *names = NULL;
    if (equal_in_order(c, e, row))
        return;
    const struct member *of_item = sorted(c, e, e->item, &n_x), *of_row = sorted(c, e, row, &n_y);
    *names = sl_arena_alloc(c->arena, (n_x + n_y + 1) * sizeof(**names));
    while (x < n_x || y < n_y) {
        int order = x == n_x ? 1 : y == n_y ? -1 : by_name(&of_item[x], &of_row[y]);
        if (order != 0 || !sl_value_equal(of_item[x].value, of_row[y].value))
            (*names)[(*n)++] = order <= 0 ? of_item[x].name : of_row[y].name;
        x += order <= 0;
        y += order >= 0;
    }
}

/* ---- a row ---- */

static bool has(struct sl_span row, struct sl_span name)
{
    struct sl_iter iter = sl_value_iter((struct sl_value){.type = SL_M, .raw = row});
    struct sl_span member;
    struct sl_value value;
    while (sl_value_next(&iter, &member, &value))
        if (sl_json_text_is(member, name))
            return true;
    return false;
}

/* A look at the bytes is enough where the name is not in them, however it were written. */
static bool may_have(struct sl_span row, struct sl_span name)
{
    return memmem(row.ptr, row.len, name.ptr, name.len) != NULL || memchr(row.ptr, '\\', row.len) != NULL;
}

bool sl_compare_is_right(const struct sl_compare *c, const struct sl_expected *e, struct sl_span row)
{
    struct sl_span *names;
    size_t n;
    if (!row.ptr)
        return !e->item.ptr || e->may_be_absent;
    if (!e->item.ptr || (e->guard.ptr && !has(row, e->guard)) ||
        (e->absence.ptr && may_have(row, e->absence) && has(row, e->absence)))
        return false;
    sl_compare_names(c, e, row, &names, &n);
    return n == 0;
}
