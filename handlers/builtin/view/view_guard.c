/* Rows without lists: an item is one row, and each row says the order of the change that it is of.
 *
 * A change puts the row of its new image, and leaves a tombstone where its old image had another: two
 * operations of one row each, so a target needs no transactions. Images chain (the old one of a change is the
 * new one of the change before), so the truth of a row is what the newest change made of it that altered it;
 * an older one is refused by its order. What a parked or missed change left is found by verify alone. */
#include "handlers/builtin/view/view_private.h"

#include "base/map.h"
#include "handlers/builtin/toolkit/apply.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- rows ---- */

static struct sl_span with_order(const struct view *v, struct sl_span item, struct sl_span order,
                                 struct sl_arena *arena)
{
    struct sl_span parts[] = {sl_text_open_object(item), SL_LIT(",\"" VIEW_ORDER "\":"), order, SL_LIT("}")};
    return v->host->join(arena, parts, 4);
}

static struct sl_span tombstone(const struct view *v, struct sl_span key, struct sl_span of,
                                struct sl_span order, struct sl_arena *arena)
{
    char expires[64];
    snprintf(expires, sizeof(expires), "\":{\"N\":\"%" PRId64 "\"},\"" VIEW_ORDER "\":",
             v->host->wall_ns(v->route) / 1000000000 + v->tombstone_s);
    struct sl_span parts[] = {sl_text_open_object(key),
                              SL_LIT(",\"" VIEW_OF "\":"),
                              of,
                              SL_LIT(",\"" VIEW_DELETED "\":{\"BOOL\":true},\""),
                              v->expires_attribute,
                              sl_span_str(expires),
                              order,
                              SL_LIT("}")};
    return v->host->join(arena, parts, 8);
}

struct sl_table_op view_guard_op(const struct view *v, const struct view_guarded *row, struct sl_arena *arena)
{
    struct sl_test *tests = v->host->alloc(arena, 2 * sizeof(*tests));
    struct sl_table_op op = {.verb = SL_TABLE_PUT, .key = row->key, .tests = tests, .want_item = true};
    op.item = row->item.ptr ? with_order(v, row->item, row->order.value, arena)
                            : tombstone(v, row->key, row->of, row->order.value, arena);
    tests[op.n_tests++] = row->there == VIEW_NOTHING
                              ? (struct sl_test){.verb = SL_ABSENT, .name = v->keys[0].name}
                              : (struct sl_test){SL_EQ, SL_LIT(VIEW_OF), row->of};
    if (row->there == VIEW_WITHOUT_ORDER)
        tests[op.n_tests++] = (struct sl_test){.verb = SL_ABSENT, .name = SL_LIT(VIEW_ORDER)};
    if (row->there == VIEW_OLDER)
        tests[op.n_tests++] = (struct sl_test){SL_LT, SL_LIT(VIEW_ORDER), row->order.value};
    if (row->there == VIEW_AS_SEEN)
        tests[op.n_tests++] = (struct sl_test){SL_EQ, SL_LIT(VIEW_ORDER), row->order.value};
    return op;
}

struct sl_span view_guard_order(const struct view *v, struct sl_value row)
{
    struct sl_value order = v->host->value_member(row, SL_LIT(VIEW_ORDER));
    return order.type == SL_S && sl_order_is_known(order.raw) ? order.raw : (struct sl_span){NULL, 0};
}

/* ---- a slice ---- */

/* A row, and the newest change that altered it. */
struct guarded {
    struct view_guarded row;
    uint32_t newest; /* the record that is written */
    uint32_t last;   /* the last that alters it; `before` leads to the others */
    struct sl_span digits;
    bool is_over;
};

/* A record alters two rows at most: that of its new image, and that of its old one. */
enum { NEW, OLD, N_IMAGES };

struct slice {
    struct view *v;
    struct sl_slice *slice;
    struct sl_outcome outcome;
    struct sl_map keys; /* row's key -> its place in `rows` */
    struct guarded *rows;
    uint32_t *before[N_IMAGES]; /* record, and image -> twice the record before, and the image */
};

static void take_row(struct slice *s, size_t i, int image, const struct view_change *change,
                     const struct view_guarded *row)
{
    uint32_t known = s->keys.n, at = sl_map_index(&s->keys, row->key);
    struct guarded *g = &s->rows[at];
    if (at == known)
        *g = (struct guarded){.last = SL_OUTCOME_NO_RECORD};
    if (sl_span_compare_digits(change->digits, g->digits) >= 0) { /* (no digits are below all) */
        g->newest = (uint32_t)i;
        g->digits = change->digits;
        g->row = *row;
    }
    s->before[image][i] = g->last;
    g->last = (uint32_t)(2 * i) + (uint32_t)image;
}

static enum sl_status take_record(struct slice *s, size_t i, struct sl_error *error)
{
    const struct view *v = s->v;
    const struct sl_record *r = s->slice->records[i];
    struct sl_arena *arena = s->slice->arena;
    struct view_change change;
    enum sl_status status = view_change_make(v, r, arena, &change, error);
    if (status != SL_OK)
        return status;
    if (!change.alters) {
        v->host->note(s->slice, i, SL_EFFECT_LEFT_OUT);
        return SL_OK;
    }
    struct view_guarded row = {.of = view_of(v, r, arena)};
    const struct view_row *new = change.new.n ? change.new.list : NULL,
                          *old = change.old.n ? change.old.list : NULL;
    status = sl_order_make(v->host, v->records_epoch, change.digits, arena, &row.order, error);
    if (status != SL_OK)
        return status;
    bool is_one = new &&old &&sl_span_eq(new->key, old->key);
    if (new) {
        row.key = new->key;
        row.item = new->item;
        row.there = is_one ? VIEW_OLDER : VIEW_NOTHING;
        take_row(s, i, NEW, &change, &row);
    }
    if (old && !is_one) {
        row.key = old->key;
        row.item = (struct sl_span){NULL, 0};
        row.there = VIEW_OLDER;
        take_row(s, i, OLD, &change, &row);
    }
    return SL_OK;
}

static enum sl_status take_records(struct slice *s, struct sl_error *error)
{
    const struct sl_host *host = s->v->host;
    size_t n = s->slice->n;
    sl_outcome_init(&s->outcome, host, s->slice);
    sl_map_init(&s->keys, s->slice->arena, N_IMAGES * n);
    s->rows = host->alloc(s->slice->arena, N_IMAGES * n * sizeof(*s->rows));
    for (int image = 0; image < N_IMAGES; image++)
        s->before[image] = host->alloc(s->slice->arena, n * sizeof(*s->before[image]));
    for (size_t i = 0; i < n; i++) {
        struct sl_error why = SL_NO_ERROR;
        enum sl_status status = take_record(s, i, &why);
        if (status == SL_FATAL)
            return host->fail(error, status, why.code, "%s", why.text);
        if (status != SL_OK)
            sl_outcome_fail(&s->outcome, i, &why);
    }
    return SL_OK;
}

/* ---- outcomes ---- */

static void fail(struct slice *s, struct guarded *g, const struct sl_error *error)
{
    g->is_over = true;
    for (uint32_t at = g->last; at != SL_OUTCOME_NO_RECORD; at = s->before[at % N_IMAGES][at / N_IMAGES]) {
        if (at / N_IMAGES == g->newest)
            sl_outcome_fail(&s->outcome, at / N_IMAGES, error);
        else
            sl_outcome_shared(&s->outcome, at / N_IMAGES, error);
    }
}

/* The row is not as was thought: `seen` is what is there. */
static void look_again(struct slice *s, struct guarded *g, struct sl_span seen)
{
    const struct view *v = s->v;
    struct sl_value row = {.type = seen.ptr ? SL_M : SL_NONE, .raw = seen};
    struct sl_error error = SL_NO_ERROR;
    g->row.there = VIEW_NOTHING;
    if (row.type == SL_NONE)
        return;
    if (!view_is_of_item(v, row, s->slice->records[g->newest])) {
        /* One that took the place of a row of ours is let go. */
        g->is_over = true;
        if (g->row.item.ptr && view_collision(v, &error) != SL_OK)
            fail(s, g, &error);
        return;
    }
    struct sl_span order = view_guard_order(v, row);
    int later = order.ptr ? sl_order_compare(g->row.order.text, order) : 1;
    g->row.there = order.ptr ? VIEW_OLDER : VIEW_WITHOUT_ORDER;
    g->is_over = later <= 0;
    if (g->is_over)
        v->host->note(s->slice, g->newest, later == 0 ? SL_EFFECT_REPEATED : SL_EFFECT_OVERTAKEN);
}

static void take_result(struct slice *s, struct guarded *g, const struct sl_result *result)
{
    struct sl_error error = SL_NO_ERROR;
    if (result->condition_failed) {
        look_again(s, g, result->item);
    } else if (result->status != SL_OK) {
        sl_outcome_error(s->v->host, result, &error);
        fail(s, g, &error);
    } else {
        g->is_over = true;
    }
}

static void write_rows(struct slice *s)
{
    struct sl_table_op *ops = s->v->host->alloc(s->slice->arena, (s->keys.n + 1) * sizeof(*ops));
    uint32_t *of = s->v->host->alloc(s->slice->arena, (s->keys.n + 1) * sizeof(*of));
    for (int wave = 0; wave < VIEW_WAVES; wave++) {
        size_t n = 0;
        for (uint32_t k = 0; k < s->keys.n; k++) {
            if (s->rows[k].is_over)
                continue;
            ops[n] = view_guard_op(s->v, &s->rows[k].row, s->slice->arena);
            of[n++] = k;
        }
        if (n == 0)
            return;
        const struct sl_result *results = sl_apply_table(s->slice, s->v->table, ops, n);
        for (size_t k = 0; k < n; k++)
            take_result(s, &s->rows[of[k]], &results[k]);
    }
    for (uint32_t k = 0; k < s->keys.n; k++) {
        struct sl_error error = SL_NO_ERROR;
        if (!s->rows[k].is_over && view_keeps_changing(s->v, &error) != SL_OK)
            fail(s, &s->rows[k], &error);
    }
}

enum sl_status view_guard_handle(struct view *v, struct sl_slice *slice, struct sl_error *error)
{
    struct slice s = {.v = v, .slice = slice};
    enum sl_status status = take_records(&s, error);
    if (status != SL_OK)
        return status;
    write_rows(&s);
    return sl_outcome_end(&s.outcome, error);
}
