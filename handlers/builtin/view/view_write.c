/* Writing with lists: of each item the newest change that altered its rows, in a transaction with the item's
 * list. */
#include "handlers/builtin/view/view_private.h"

#include "base/map.h"
#include "handlers/builtin/toolkit/apply.h"

/* One item of the slice, and the newest of its changes that altered its rows. */
struct change {
    uint32_t newest;       /* the record that is written */
    uint32_t last;         /* the last record that alters something; `before` leads to the others */
    struct sl_span digits; /* of `newest` */
    struct view_rows rows;
    struct view_plan plan;
    struct view_list list;
    uint32_t op; /* the first of its operations */
    bool is_over;
};

struct slice {
    struct view *v;
    struct sl_slice *slice;
    struct sl_outcome outcome;
    struct sl_map items; /* item -> its change */
    struct change *changes;
    uint32_t *before; /* record -> the record before it of the same item, SL_OUTCOME_NO_RECORD */
    bool has_moved;   /* a list, while this wave was on its way */
};

/* ---- records ---- */

static enum sl_status take_record(struct slice *s, size_t i, struct sl_error *error)
{
    const struct sl_host *host = s->v->host;
    const struct sl_record *r = s->slice->records[i];
    struct sl_arena *arena = s->slice->arena;
    struct view_change made;
    enum sl_status status = view_change_make(s->v, r, arena, &made, error);
    if (status != SL_OK)
        return status;
    if (!made.alters) {
        host->note(s->slice, i, SL_EFFECT_LEFT_OUT);
        return SL_OK;
    }
    uint32_t known = s->items.n, c = sl_map_index(&s->items, host->record_item_key(r, arena));
    struct change *change = &s->changes[c];
    if (c == known)
        *change = (struct change){
            .newest = (uint32_t)i, .last = SL_OUTCOME_NO_RECORD, .digits = made.digits, .rows = made.new};
    if (sl_span_compare_digits(made.digits, change->digits) >= 0) {
        change->newest = (uint32_t)i;
        change->digits = made.digits;
        change->rows = made.new;
    }
    s->before[i] = change->last;
    change->last = (uint32_t)i;
    return SL_OK;
}

/* ---- outcomes ---- */

static void fail(struct slice *s, struct change *change, const struct sl_error *error)
{
    change->is_over = true;
    sl_outcome_fail_folded(&s->outcome, change->last, change->newest, s->before, error);
}

static enum sl_status take_records(struct slice *s, struct sl_error *error)
{
    const struct sl_host *host = s->v->host;
    size_t n = s->slice->n;
    sl_outcome_init(&s->outcome, host, s->slice);
    sl_map_init(&s->items, s->slice->arena, n);
    s->changes = host->alloc(s->slice->arena, n * sizeof(*s->changes));
    s->before = host->alloc(s->slice->arena, n * sizeof(*s->before));
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

/* ---- lists ---- */

/* The list as it was just read. One that has this change, or a newer one, has nothing left to do. */
static void take_list(struct slice *s, struct change *change, struct sl_span item)
{
    struct sl_error error = SL_NO_ERROR;
    if (view_list_read(s->v, item, s->slice->arena, &change->list, &error) != SL_OK) {
        fail(s, change, &error);
        return;
    }
    int later = change->list.exists ? sl_order_compare(change->plan.order.text, change->list.order) : 1;
    if (later > 0)
        return;
    change->is_over = true;
    s->v->host->note(s->slice, change->newest, later == 0 ? SL_EFFECT_REPEATED : SL_EFFECT_OVERTAKEN);
}

static void read_lists(struct slice *s)
{
    const struct view *v = s->v;
    struct sl_arena *arena = s->slice->arena;
    struct sl_table_op *ops = v->host->alloc(arena, (s->items.n + 1) * sizeof(*ops));
    uint32_t n = 0;
    for (uint32_t c = 0; c < s->items.n; c++) {
        struct change *change = &s->changes[c];
        const struct sl_record *r = s->slice->records[change->newest];
        struct sl_error error = SL_NO_ERROR;
        change->plan.list = &change->list;
        change->plan.rows = &change->rows;
        change->plan.of = view_of(v, r, arena);
        change->plan.list_key = view_list_key(v, r, arena);
        if (sl_order_make(v->host, v->records_epoch, change->digits, arena, &change->plan.order, &error) !=
            SL_OK) {
            fail(s, change, &error);
            continue;
        }
        change->op = n;
        ops[n++] =
            (struct sl_table_op){.verb = SL_TABLE_GET, .table = v->list_table, .key = change->plan.list_key};
    }
    const struct sl_result *results = sl_apply_table(s->slice, v->table, ops, n);
    for (uint32_t c = 0; c < s->items.n; c++) {
        struct change *change = &s->changes[c];
        struct sl_error error = SL_NO_ERROR;
        if (change->is_over)
            continue;
        if (results[change->op].status == SL_OK) {
            take_list(s, change, results[change->op].item);
        } else {
            sl_outcome_error(v->host, &results[change->op], &error);
            fail(s, change, &error);
        }
    }
}

/* ---- transactions ---- */

/* The operations of all changes that are not over; returns how many there are. */
static size_t make_ops(struct slice *s, struct sl_table_op **ops)
{
    size_t n = 0, room = 1;
    for (uint32_t c = 0; c < s->items.n; c++) {
        struct change *change = &s->changes[c];
        struct sl_error error = SL_NO_ERROR;
        if (change->is_over)
            continue;
        if (view_plan_make(s->v, &change->plan, s->slice->arena, &error) != SL_OK)
            fail(s, change, &error);
        else
            room += change->plan.n_ops;
    }
    *ops = s->v->host->alloc(s->slice->arena, room * sizeof(**ops));
    for (uint32_t c = 0; c < s->items.n; c++) {
        struct change *change = &s->changes[c];
        if (change->is_over)
            continue;
        change->op = (uint32_t)n;
        for (size_t k = 0; k < change->plan.n_ops; k++) {
            (*ops)[n] = change->plan.ops[k];
            (*ops)[n++].group = change->plan.n_ops > 1 ? c + 1 : 0;
        }
    }
    return n;
}

enum sl_status view_collision(const struct view *v, struct sl_error *error)
{
    return v->host->fail(
        error, SL_REJECT, "Collision",
        "%.*s: a row that is not this item's stands under a key that the item makes: move or "
        "remove it, or make other keys",
        SL_ARG(v->loop.target.table));
}

enum sl_status view_keeps_changing(const struct view *v, struct sl_error *error)
{
    return v->host->fail(error, SL_RETRY, "ItemKeepsChanging",
                         "%.*s: the item's rows changed between %d requests; the change is retried",
                         SL_ARG(v->loop.target.table), VIEW_WAVES);
}

/* A row that we listed, and that is somebody else's now. */
static void let_go(struct slice *s, struct change *change, struct sl_span key)
{
    if (!change->plan.foreign)
        change->plan.foreign =
            s->v->host->alloc(s->slice->arena, change->list.rows.n * sizeof(struct sl_span));
    change->plan.foreign[change->plan.n_foreign++] = key;
}

/* A list that moved is taken as it is now. Rows that stand in the way are looked at only when it did not. */
static void take_results(struct slice *s, struct change *change, const struct sl_result *results)
{
    const struct view_plan *plan = &change->plan;
    const struct sl_result *cause = sl_outcome_cause(results, plan->n_ops);
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = SL_OK;
    bool is_done = true;
    if (cause) {
        sl_outcome_error(s->v->host, cause, &error);
        fail(s, change, &error);
        return;
    }
    if (results[0].condition_failed) {
        s->has_moved = true;
        change->plan.n_foreign = 0;
        change->plan.foreign = NULL;
        take_list(s, change, results[0].item);
        return;
    }
    for (size_t k = 1; k < plan->n_ops; k++) {
        if (!results[k].condition_failed)
            continue;
        is_done = false;
        if (plan->ops[k].verb == SL_TABLE_PUT)
            status = view_collision(s->v, &error);
        else
            let_go(s, change, plan->ops[k].key);
    }
    if (status != SL_OK)
        fail(s, change, &error);
    else
        change->is_over = is_done;
}

static void write_changes(struct slice *s)
{
    for (int moves = 0; moves < VIEW_WAVES; moves += s->has_moved) {
        struct sl_table_op *ops;
        s->has_moved = false;
        size_t n = make_ops(s, &ops);
        if (n == 0)
            return;
        const struct sl_result *results = sl_apply_table(s->slice, s->v->table, ops, n);
        for (uint32_t c = 0; c < s->items.n; c++)
            if (!s->changes[c].is_over)
                take_results(s, &s->changes[c], results + s->changes[c].op);
    }
    for (uint32_t c = 0; c < s->items.n; c++) {
        struct sl_error error = SL_NO_ERROR;
        if (s->changes[c].is_over)
            continue;
        if (view_keeps_changing(s->v, &error) != SL_OK)
            fail(s, &s->changes[c], &error);
    }
}

enum sl_status view_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    struct view *v = self;
    struct slice s = {.v = v, .slice = slice};
    v->records_epoch = slice->epoch >= 0 ? slice->epoch : v->epoch;
    if (sl_loop_closes(&v->loop, v->host, slice))
        return sl_loop_refuse(&v->loop, v->host, "", error);
    if (v->is_guarded)
        return view_guard_handle(v, slice, error);
    enum sl_status status = take_records(&s, error);
    if (status != SL_OK)
        return status;
    read_lists(&s);
    write_changes(&s);
    return sl_outcome_end(&s.outcome, error);
}
