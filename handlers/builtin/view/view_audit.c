/* What rows an item should have, what is the matter with a row, and how it is set right. */
#include "handlers/builtin/view/view_private.h"

#include "handlers/builtin/toolkit/apply.h"
#include "handlers/builtin/toolkit/expected.h"

static const struct sl_span list_counts[] = {{VIEW_LIST_ROWS, sizeof(VIEW_LIST_ROWS) - 1}};

static const struct sl_span order_alone[] = {{VIEW_ORDER, sizeof(VIEW_ORDER) - 1}};

/* ---- what should be there ---- */

/* All rows of the expectation, while they are made. */
struct rows {
    struct sl_expected *list;
    size_t n, room;
};

static struct sl_expected *add(const struct view *v, struct rows *rows, size_t record, struct sl_arena *arena)
{
    if (rows->n == rows->room) {
        size_t room = rows->room ? 2 * rows->room : 16;
        struct sl_expected *list = v->host->alloc(arena, room * sizeof(*list));
        if (rows->n)
            memcpy(list, rows->list, rows->n * sizeof(*list));
        rows->list = list;
        rows->room = room;
    }
    struct sl_expected *row = &rows->list[rows->n++];
    *row = (struct sl_expected){.record = record, .port = v->table};
    return row;
}

static void expect_guarded(struct sl_expected *out, const struct view_row *row)
{
    out->key = row->key;
    out->item = row->item;
    out->own = order_alone;
    out->n_own = 1;
    out->guard = SL_LIT(VIEW_ORDER);
    out->absence = SL_LIT(VIEW_DELETED);
}

/* The list is the side row of each row, and of itself: a repair needs it as it was seen. */
static enum sl_status expect_item(const struct view *v, const struct sl_record *r, size_t i,
                                  struct rows *rows, struct sl_arena *arena, struct sl_error *error)
{
    struct view_rows made;
    enum sl_status status = view_rows_make(v, r, SL_NEW_IMAGE, arena, &made, error);
    if (status != SL_OK)
        return status;
    if (v->is_guarded) {
        for (size_t k = 0; k < made.n; k++)
            expect_guarded(add(v, rows, i, arena), &made.list[k]);
        return SL_OK;
    }
    struct sl_span list_key = view_list_key(v, r, arena);
    const struct view_list_text text = {list_key, view_of(v, r, arena), SL_LIT("{\"S\":\"\"}"), 0, &made};
    struct sl_expected *list = add(v, rows, i, arena);
    list->table = v->list_table;
    list->key = list_key;
    list->item = view_list_item(v, &text, arena);
    list->counts = list_counts;
    list->n_counts = 1;
    list->may_be_absent = made.n == 0;
    list->guard = SL_LIT(VIEW_ORDER);
    for (size_t k = 0; k < made.n; k++) {
        struct sl_expected *row = add(v, rows, i, arena);
        row->key = made.list[k].key;
        row->item = made.list[k].item;
        row->guard = SL_LIT(VIEW_OF);
    }
    for (size_t k = rows->n - made.n - 1; k < rows->n; k++) {
        rows->list[k].side_table = v->list_table;
        rows->list[k].side_key = list_key;
    }
    return SL_OK;
}

enum sl_status view_expect(void *self, struct sl_expect *e, struct sl_error *error)
{
    const struct view *v = self;
    struct rows rows = {.n = 0};
    for (size_t i = 0; i < e->n; i++) {
        struct sl_error why = SL_NO_ERROR;
        enum sl_status status = expect_item(v, e->records[i], i, &rows, e->arena, &why);
        if (status == SL_FATAL)
            return v->host->fail(error, status, why.code, "%s", why.text);
        if (status != SL_OK)
            sl_expected_refuse(v->host, &why, add(v, &rows, i, e->arena), e->arena);
    }
    if (e->n == 0) {
        (void)add(v, &rows, 0, e->arena);
        if (v->list_table.ptr)
            add(v, &rows, 0, e->arena)->table = v->list_table;
    }
    e->rows = rows.list;
    e->n_rows = rows.n;
    return SL_OK;
}

/* ---- from a row to its item ---- */

static bool is_list(const struct view *v, struct sl_value row)
{
    return v->host->value_member(row, SL_LIT(VIEW_LIST_ROWS)).type != SL_NONE;
}

static struct sl_span own_key(const struct view *v, struct sl_value row, struct sl_arena *arena)
{
    struct sl_span names[SL_TEXT_KEY_ATTRIBUTES];
    for (size_t i = 0; i < v->n_keys; i++)
        names[i] = v->keys[i].name;
    return is_list(v, row) ? view_key_of_row(v, row, v->list_keys, v->n_list_keys, arena)
                           : view_key_of_row(v, row, names, v->n_keys, arena);
}

static bool is_tombstone(const struct view *v, struct sl_value row)
{
    return v->is_guarded && v->host->value_member(row, SL_LIT(VIEW_DELETED)).type != SL_NONE;
}

static bool is_empty_list(const struct view *v, struct sl_value row)
{
    struct sl_iter iter = v->host->value_iter(v->host->value_member(row, SL_LIT(VIEW_LIST_ROWS)));
    struct sl_value element;
    return is_list(v, row) && !v->host->value_next(&iter, NULL, &element);
}

/* A row that is not this view's stands for none of its items, and so does a list without rows, or a
 * tombstone. */
enum sl_status view_trace(void *self, struct sl_trace *t, struct sl_error *error)
{
    const struct view *v = self;
    struct sl_value row = {.type = SL_M, .raw = t->row}, owner = view_owner(v, row);
    struct sl_span values[SL_TEXT_KEY_ATTRIBUTES];
    (void)error;
    if (owner.type != SL_M || t->n_key_names > SL_TEXT_KEY_ATTRIBUTES || is_empty_list(v, row) ||
        is_tombstone(v, row))
        return SL_OK;
    for (size_t i = 0; i < t->n_key_names; i++) {
        struct sl_value value = v->host->value_member(owner, t->key_names[i]);
        if (!sl_render_is_key(value))
            return SL_OK;
        values[i] = v->host->value_json(value, t->arena);
    }
    t->key = sl_text_key(v->host, t->arena, t->key_names, values, t->n_key_names);
    t->row_key = own_key(v, row, t->arena);
    return SL_OK;
}

/* ---- what is the matter with a row ---- */

/* Does the list say that the row was written as it is? */
static bool is_as_listed(const struct view *v, struct sl_value row, const struct view_list *list,
                         struct sl_arena *arena)
{
    const struct view_row *listed = view_rows_find(&list->rows, own_key(v, row, arena));
    unsigned char digest[32];
    v->host->value_sha256(row, digest);
    return listed && memcmp(listed->digest, digest, VIEW_DIGEST_BYTES) == 0;
}

static enum sl_verdict verdict_of(const struct view *v, struct sl_judge *j, struct sl_value row,
                                  const struct view_list *list)
{
    struct sl_value owner = view_owner(v, row);
    j->is_owned = view_is_of_item(v, row, j->record);
    if (row.type == SL_NONE || (j->is_owned && is_tombstone(v, row)))
        return j->expected->item.ptr && !j->expected->may_be_absent ? SL_VERDICT_MISSING : SL_VERDICT_EQUAL;
    if (!j->expected->item.ptr)
        return j->is_owned ? SL_VERDICT_LEFT_OVER : SL_VERDICT_EQUAL;
    if (!j->is_owned) {
        if (owner.type == SL_M)
            j->other_key = owner.raw;
        return SL_VERDICT_COLLISION;
    }
    if (v->is_guarded && !view_guard_order(v, row).ptr)
        return j->n_names ? SL_VERDICT_DIFFERENT : SL_VERDICT_UNGUARDED;
    if (j->n_names == 0)
        return SL_VERDICT_EQUAL;
    if (v->is_guarded)
        return SL_VERDICT_DIFFERENT;
    return is_list(v, row) || is_as_listed(v, row, list, j->arena) ? SL_VERDICT_STALE : SL_VERDICT_DIFFERENT;
}

enum sl_status view_judge(void *self, struct sl_judge *j, struct sl_error *error)
{
    const struct view *v = self;
    struct sl_value row = {.type = j->row.ptr ? SL_M : SL_NONE, .raw = j->row};
    struct view_list list;
    enum sl_status status = view_list_read(v, j->side, j->arena, &list, error);
    if (status != SL_OK)
        return SL_REJECT;
    j->guard = v->is_guarded ? view_guard_order(v, row) : list.order;
    j->verdict = verdict_of(v, j, row, &list);
    return SL_OK;
}

/* ---- repair ---- */

struct repair {
    struct view *v;
    struct sl_slice *slice;
    struct sl_repair *ask;
    struct sl_outcome outcome;
};

/* One record of it, and what is to be done for its item. */
struct mending {
    size_t i;
    bool is_of_list; /* the row that was looked at is the list */
    struct view_list list;
    struct view_rows rows;
    struct view_plan plan;
};

static enum sl_status would_remove(const struct view *v, struct sl_error *error)
{
    return v->host->fail(error, SL_REJECT, "WouldRemove",
                         "the source's item does not make the row, and removing was not asked for");
}

static enum sl_status moved(const struct view *v, struct sl_error *error)
{
    return v->host->fail(error, SL_REJECT, "Moved",
                         "the item's rows changed while they were repaired; verify them again");
}

static enum sl_status make_rows(const struct repair *r, size_t i, struct view_rows *rows,
                                struct sl_error *error)
{
    const struct sl_record *record = r->slice->records[i];
    if (r->v->host->record_image(record, SL_KEYS).type == SL_NONE)
        return r->v->host->fail(error, SL_REJECT, "NoKeys", "the record has no Keys");
    return view_rows_make(r->v, record, SL_NEW_IMAGE, r->slice->arena, rows, error);
}

static enum sl_status read_record(struct repair *r, struct mending *m, struct sl_error *error)
{
    const struct view *v = r->v;
    const struct sl_record *record = r->slice->records[m->i];
    struct sl_arena *arena = r->slice->arena;
    enum sl_status status = make_rows(r, m->i, &m->rows, error);
    if (status == SL_OK)
        status = view_list_read(v, r->ask->sides[m->i], arena, &m->list, error);
    if (status != SL_OK)
        return status;
    m->plan = (struct view_plan){.list = &m->list,
                                 .rows = &m->rows,
                                 .of = view_of(v, record, arena),
                                 .list_key = view_list_key(v, record, arena),
                                 .repairs = m->list.repairs + 1};
    m->is_of_list = sl_span_eq(r->ask->keys[m->i], m->plan.list_key);
    if (!m->is_of_list)
        m->plan.touched = r->ask->keys[m->i];
    if (m->list.exists)
        m->plan.order = sl_order_of(v->host, arena, m->list.order);
    else
        status = sl_order_make(v->host, v->epoch, (struct sl_span){NULL, 0}, arena, &m->plan.order, error);
    return status;
}

/* The list keeps its order: it loses to the next change, and refuses those that it had refused. */
static enum sl_status plan_record(struct repair *r, struct mending *m, struct sl_error *error)
{
    const struct view *v = r->v;
    struct sl_value seen = {.type = r->ask->seen[m->i].ptr ? SL_M : SL_NONE, .raw = r->ask->seen[m->i]};
    enum sl_status status = read_record(r, m, error);
    if (status != SL_OK)
        return status;
    if (seen.type != SL_NONE && !m->is_of_list && !view_is_of_item(v, seen, r->slice->records[m->i]))
        return view_collision(v, error);
    status = view_plan_make(v, &m->plan, r->slice->arena, error);
    if (status == SL_OK && m->plan.n_deletes > 0 && !r->ask->may_remove)
        return would_remove(v, error);
    return status;
}

/* All or nothing: one transaction. */
static enum sl_status write_record(struct repair *r, const struct mending *m, struct sl_error *error)
{
    const struct view_plan *plan = &m->plan;
    for (size_t k = 0; k < plan->n_ops && plan->n_ops > 1; k++)
        plan->ops[k].group = 1;
    const struct sl_result *results = sl_apply_table(r->slice, r->v->table, plan->ops, plan->n_ops);
    const struct sl_result *cause = sl_outcome_cause(results, plan->n_ops);
    if (cause) {
        sl_outcome_error(r->v->host, cause, error);
        return error->status;
    }
    if (results[0].condition_failed)
        return moved(r->v, error);
    for (size_t k = 1; k < plan->n_ops; k++)
        if (results[k].condition_failed)
            return view_collision(r->v, error);
    return SL_OK;
}

/* A row without a list is set right by itself. It keeps its order, for the same reason. */
static enum sl_status plan_row(struct repair *r, size_t i, struct view_guarded *out, struct sl_error *error)
{
    const struct view *v = r->v;
    const struct sl_record *record = r->slice->records[i];
    struct sl_arena *arena = r->slice->arena;
    struct sl_value seen = {.type = r->ask->seen[i].ptr ? SL_M : SL_NONE, .raw = r->ask->seen[i]};
    struct view_rows rows;
    enum sl_status status = make_rows(r, i, &rows, error);
    if (status != SL_OK)
        return status;
    if (seen.type != SL_NONE && !view_is_of_item(v, seen, record))
        return view_collision(v, error);
    const struct view_row *row = view_rows_find(&rows, r->ask->keys[i]);
    struct sl_span order = view_guard_order(v, seen);
    *out = (struct view_guarded){.key = r->ask->keys[i], .of = view_of(v, record, arena)};
    out->item = row ? row->item : (struct sl_span){NULL, 0};
    out->there = seen.type == SL_NONE ? VIEW_NOTHING : order.ptr ? VIEW_AS_SEEN : VIEW_WITHOUT_ORDER;
    if (order.ptr)
        out->order = sl_order_of(v->host, arena, order);
    else
        status = sl_order_make(v->host, v->epoch, (struct sl_span){NULL, 0}, arena, &out->order, error);
    return status;
}

static enum sl_status repair_row(struct repair *r, size_t i, struct sl_error *error)
{
    const struct view *v = r->v;
    struct view_guarded row;
    enum sl_status status = plan_row(r, i, &row, error);
    struct sl_value seen = {.type = SL_M, .raw = r->ask->seen[i]};
    if (status != SL_OK || (!row.item.ptr && (row.there == VIEW_NOTHING || is_tombstone(v, seen))))
        return status;
    if (!row.item.ptr && !r->ask->may_remove)
        return would_remove(v, error);
    struct sl_table_op op = view_guard_op(v, &row, r->slice->arena);
    if (!r->ask->is_plan) {
        const struct sl_result *result = sl_apply_table(r->slice, v->table, &op, 1);
        if (result->condition_failed)
            return moved(v, error);
        if (result->status != SL_OK) {
            sl_outcome_error(v->host, result, error);
            return error->status;
        }
    }
    r->ask->effects[i] = row.item.ptr ? SL_REPAIR_WRITTEN : SL_REPAIR_REMOVED;
    r->ask->written[i] = op.item;
    return SL_OK;
}

static enum sl_status repair_record(struct repair *r, size_t i, struct sl_error *error)
{
    struct mending m = {.i = i};
    if (r->v->is_guarded)
        return repair_row(r, i, error);
    enum sl_status status = plan_record(r, &m, error);
    if (status == SL_OK && !r->ask->is_plan)
        status = write_record(r, &m, error);
    if (status != SL_OK)
        return status;
    const struct view_row *row = view_rows_find(&m.rows, m.plan.touched);
    r->ask->effects[i] = row || m.is_of_list ? SL_REPAIR_WRITTEN : SL_REPAIR_REMOVED;
    r->ask->sides_written[i] = m.plan.ops[0].item;
    if (m.is_of_list)
        r->ask->written[i] = m.plan.ops[0].item;
    else if (row)
        r->ask->written[i] = row->item;
    return SL_OK;
}

enum sl_status view_repair(void *self, struct sl_slice *slice, struct sl_repair *ask, struct sl_error *error)
{
    struct view *v = self;
    struct repair r = {.v = v, .slice = slice, .ask = ask};
    v->records_epoch = v->epoch;
    if (ask->wanted)
        return v->host->fail(error, SL_REJECT, "NoUndo",
                             "a view's rows are put back by what their items are now: repair them again");
    sl_outcome_init(&r.outcome, v->host, slice);
    for (size_t i = 0; i < slice->n; i++) {
        struct sl_error why = SL_NO_ERROR;
        ask->written[i] = (struct sl_span){NULL, 0};
        ask->effects[i] = SL_REPAIR_NOTHING;
        ask->sides_written[i] = (struct sl_span){NULL, 0};
        if (repair_record(&r, i, &why) != SL_OK)
            sl_outcome_fail(&r.outcome, i, &why);
    }
    return sl_outcome_end(&r.outcome, error);
}
