/* Writing: a guarded operation for each change, and what became of it. */
#include "handlers/builtin/replicate/replicate_repair.h"
#include "handlers/builtin/replicate/replicate_tie.h"

#include "handlers/builtin/toolkit/apply.h"

#include <inttypes.h>

/* Changes that a guard refused although they are newer by time. */
struct refusals {
    size_t n;
    struct sl_span example; /* the sequence number of one of them */
};

/* A change's conditions may move again and again; it is delivered again after so many requests. */
#define WAVES 12

/* ---- operations ---- */

/* What is put. It is made once. */
static enum sl_status item_make(const struct replicate *p, struct replicate_change *change,
                                struct sl_arena *arena, struct sl_error *error)
{
    if (change->image.value.type != SL_NONE)
        return replicate_item(p, change, arena, &change->item, error);
    if (p->guard == REPLICATE_INLINE)
        change->item = replicate_tombstone(p, change, arena);
    return SL_OK;
}

static enum sl_status change_begin(const struct replicate *p, struct replicate_change *change,
                                   struct sl_arena *arena, struct sl_error *error)
{
    enum sl_status status = replicate_key(p, change->record, arena, &change->key, error);
    if (status == SL_OK)
        status = replicate_guard_make(p, change, arena, error);
    if (status == SL_OK)
        status = item_make(p, change, arena, error);
    change->step = replicate_step_first(p, change);
    return status;
}

static void begin_all(struct replicate_fold *f)
{
    for (uint32_t c = 0; c < f->items.n; c++) {
        struct replicate_change *change = &f->changes[c];
        struct sl_error error = SL_NO_ERROR;
        if (!change->is_out && change->step == REPLICATE_BEGIN &&
            change_begin(f->p, change, f->slice->arena, &error) != SL_OK)
            replicate_fold_fail(f, change, &error);
    }
}

/* One request is all: the item or its removal, and with a side table the guard's row. */
static size_t once_ops(const struct replicate *p, const struct replicate_change *change,
                       struct sl_arena *arena, struct sl_table_op *ops)
{
    ops[0] = (struct sl_table_op){.verb = SL_TABLE_PUT, .key = change->key, .item = change->item};
    if (!change->item.ptr)
        ops[0].verb = SL_TABLE_DELETE;
    if (change->held)
        replicate_hold(change, &ops[0]);
    else if (p->guard == REPLICATE_INLINE)
        replicate_guard_test(p, change, p->guard_attribute, arena, &ops[0]);
    size_t n = p->guard == REPLICATE_SIDE ? 2 : 1;
    if (n == 2)
        ops[1] = replicate_guard_row(p, &p->guards, change, arena);
    if (change->is_faint) { /* of the two tests, the guard is absent or lower, the second alone */
        ops[n - 1].tests++;
        ops[n - 1].n_tests--;
    }
    return n;
}

/* The operations of all changes that are not over; returns how many there are. */
static size_t make_ops(struct replicate_fold *f, struct sl_table_op *ops)
{
    size_t n = 0;
    for (uint32_t c = 0; c < f->items.n; c++) {
        struct replicate_change *change = &f->changes[c];
        if (change->is_out || change->step >= REPLICATE_DONE)
            continue;
        change->op = (uint32_t)n;
        change->n_ops = (uint32_t)(change->step == REPLICATE_ONCE
                                       ? once_ops(f->p, change, f->slice->arena, &ops[n])
                                       : replicate_step_ops(f->p, change, f->slice->arena, &ops[n]));
        for (size_t k = 0; k < change->n_ops; k++)
            ops[n + k].group = change->n_ops > 1 ? c + 1 : 0;
        n += change->n_ops;
    }
    return n;
}

/* ---- revived items: what an echo asks back ---- */

/* {"S":"text"} or {"N":"digits"}, of text that needs no escapes. */
static struct sl_span value_of(const struct replicate *p, enum sl_type type, struct sl_span text,
                               struct sl_arena *arena)
{
    struct sl_value value = {.type = type, .raw = text};
    return p->host->value_json(value, arena);
}

/* Takes the tombstone's attributes from the item, if it still has them. */
static struct sl_table_op return_op(const struct replicate *p, const struct replicate_return *back,
                                    struct sl_span key, struct sl_arena *arena)
{
    const struct replicate_revival *revival = &back->revival;
    size_t n = revival->expires.ptr ? 2 : 1;
    struct sl_set *sets = p->host->alloc(arena, 2 * sizeof(*sets));
    struct sl_test *tests = p->host->alloc(arena, 3 * sizeof(*tests));
    sets[0] = (struct sl_set){.verb = SL_UNSET, .name = p->deleted_attribute};
    sets[1] = (struct sl_set){.verb = SL_UNSET, .name = p->ttl_attribute};
    tests[0] = (struct sl_test){.verb = SL_PRESENT, .name = p->deleted_attribute};
    tests[1] = (struct sl_test){
        .verb = SL_EQ, .name = p->guard_attribute, .value = value_of(p, SL_S, revival->guard, arena)};
    if (revival->expires.ptr)
        tests[2] = (struct sl_test){
            .verb = SL_EQ, .name = p->ttl_attribute, .value = value_of(p, SL_N, revival->expires, arena)};
    return (struct sl_table_op){
        .verb = SL_TABLE_UPDATE, .key = key, .sets = sets, .n_sets = n, .tests = tests, .n_tests = 1 + n};
}

/* Those without a key fail, and are left out from now on. */
static size_t make_returns(struct replicate_fold *f, struct sl_table_op *ops)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_returns; i++) {
        const struct replicate_return back = f->returns[i];
        struct sl_error error = SL_NO_ERROR;
        struct sl_span key;
        if (replicate_key(f->p, f->slice->records[back.record], f->slice->arena, &key, &error) != SL_OK) {
            sl_outcome_fail(&f->outcome, back.record, &error);
            continue;
        }
        ops[n] = return_op(f->p, &back, key, f->slice->arena);
        f->returns[n++] = back;
    }
    return f->n_returns = n;
}

/* A condition that does not hold: there is nothing left to repair. */
static void return_results(struct replicate_fold *f, const struct sl_result *results)
{
    for (size_t i = 0; i < f->n_returns; i++) {
        struct sl_error error = SL_NO_ERROR;
        if (results[i].status == SL_OK || results[i].condition_failed)
            continue;
        sl_outcome_error(f->p->host, &results[i], &error);
        sl_outcome_fail(&f->outcome, f->returns[i].record, &error);
    }
}

/* ---- results ---- */

/* A guard that refuses holds a later change: this one has been overtaken, which is success. */
static void change_overtaken(const struct replicate_fold *f, struct replicate_change *change,
                             struct sl_span held, struct refusals *refusals)
{
    bool is_same = sl_span_eq(held, change->guard.text);
    change->step = REPLICATE_OVERTAKEN;
    change->is_tied = replicate_guard_is_same(held, change->guard.text) &&
                      sl_order_is_time(f->p->host, change->record, f->slice->arena);
    if (!change->is_faint)
        f->p->host->note(f->slice, change->newest, is_same ? SL_EFFECT_REPEATED : SL_EFFECT_OVERTAKEN);
    if (!replicate_guard_is_older(change, held))
        return;
    refusals->n++;
    refusals->example = f->p->host->record_text(change->record, SL_FIELD_IDENTIFIER);
}

/* The order that stands where the one request was refused. */
static struct sl_span once_held(const struct replicate *p, struct sl_span item)
{
    struct sl_value image = {.type = item.len ? SL_M : SL_NONE, .raw = item};
    return p->guard == REPLICATE_SIDE ? replicate_guard_of_row(p, item)
                                      : p->host->value_member(image, p->guard_attribute).raw;
}

static void once_next(struct replicate_fold *f, struct replicate_change *change,
                      const struct sl_result *results, struct refusals *refusals)
{
    const struct sl_result *of_guard = &results[change->n_ops - 1];
    if (of_guard->condition_failed)
        change_overtaken(f, change, once_held(f->p, of_guard->item), refusals);
    else
        change->step = REPLICATE_DONE;
}

static void step_next(struct replicate_fold *f, struct replicate_change *change,
                      const struct sl_result *results, struct refusals *refusals)
{
    struct sl_span held = {NULL, 0};
    change->step = replicate_step_next(f->p, change, results, f->slice->arena, &held);
    if (change->step == REPLICATE_OVERTAKEN)
        change_overtaken(f, change, held, refusals);
}

static bool any_refused(const struct sl_result *results, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || results[i].condition_failed;
    return any;
}

static void change_result(struct replicate_fold *f, struct replicate_change *change,
                          const struct sl_result *results, struct refusals *refusals)
{
    const struct sl_result *cause = sl_outcome_cause(results, change->n_ops);
    struct sl_error error = SL_NO_ERROR;
    change->has_row = f->p->guard == REPLICATE_INLINE && results[0].condition_failed;
    change->row = results[0].item;
    if (cause) {
        sl_outcome_error(f->p->host, cause, &error);
        replicate_fold_fail(f, change, &error);
    } else if (change->held && change->step != REPLICATE_CLEAR && any_refused(results, change->n_ops)) {
        change->step = REPLICATE_OVERTAKEN;
    } else if (change->step == REPLICATE_ONCE) {
        once_next(f, change, results, refusals);
    } else {
        step_next(f, change, results, refusals);
    }
}

static void fail_restless(struct replicate_fold *f)
{
    for (uint32_t c = 0; c < f->items.n; c++) {
        struct sl_error error = SL_NO_ERROR;
        if (f->changes[c].is_out || f->changes[c].step >= REPLICATE_DONE)
            continue;
        (void)f->p->host->fail(&error, SL_RETRY, "ItemKeepsChanging",
                               "%.*s: the item changed between %d requests; the change is retried",
                               SL_ARG(f->p->loop.target.table), WAVES);
        replicate_fold_fail(f, &f->changes[c], &error);
    }
}

static void warn_refused(const struct replicate *p, const struct refusals *refusals)
{
    p->host->metric(p->route, "RefusedNewer", (double)refusals->n, "Count");
    p->host->log(
        p->route, SL_WARN,
        "%zu changes were refused by their guards although they are newer by time (one is %.*s): the "
        "source was restored, or is another table or another Region's; if it is the right one to "
        "follow, raise \"epoch\" above %" PRId64,
        refusals->n, SL_ARG(refusals->example), p->epoch);
}

static void warn_unsigned(struct replicate *p, size_t n)
{
    p->host->metric(p->route, "UnsignedEchoes", (double)n, "Count");
    if (p->has_warned)
        return;
    p->has_warned = true;
    p->host->log(
        p->route, SL_WARN,
        "%zu changes have a new %.*s and no %.*s for it: they are taken for those of an earlier "
        "release and are not replicated; if no such release writes to the source any more, set "
        "\"unsigned\": \"copy\", so that copies that users make of such items are replicated (this is "
        "said once; the metric UnsignedEchoes counts all)",
        n, SL_ARG(p->guard_attribute), SL_ARG(p->write_attribute));
}

/* In waves: what a condition refused goes on together, with what is there now. Returns how many are left. */
static int write_waves(struct replicate_fold *f, int waves, struct refusals *refusals)
{
    const struct replicate *p = f->p;
    size_t room = REPLICATE_STEP_OPS * (size_t)f->items.n + f->n_returns;
    struct sl_table_op *ops = p->host->alloc(f->slice->arena, room * sizeof(*ops));
    begin_all(f);
    for (; waves > 0 && !f->is_plan; waves--) {
        size_t n_returns = make_returns(f, ops), n = n_returns + make_ops(f, ops + n_returns);
        if (n == 0)
            break;
        const struct sl_result *results = sl_apply_table(f->slice, p->table, ops, n);
        if (n_returns)
            return_results(f, results);
        f->n_returns = 0;
        for (uint32_t c = 0; c < f->items.n; c++) {
            struct replicate_change *change = &f->changes[c];
            if (!change->is_out && change->step < REPLICATE_DONE)
                change_result(f, change, results + n_returns + change->op, refusals);
        }
    }
    return waves;
}

void replicate_write_changes(struct replicate_fold *f)
{
    const struct replicate *p = f->p;
    struct refusals refusals = {0};
    int waves = write_waves(f, WAVES, &refusals);
    while (!f->is_plan && replicate_ties_take(f))
        waves = write_waves(f, waves, &refusals);
    if (!f->is_plan)
        fail_restless(f);
    if (refusals.n > 0)
        warn_refused(p, &refusals);
    if (f->n_unsigned > 0)
        warn_unsigned(f->p, f->n_unsigned);
}
