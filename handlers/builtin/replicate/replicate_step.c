/* Inline guards with tombstones in a side table: the steps of a change, and what a refusal tells.
 *
 * Why it holds. A mark t is written only together with the inline tombstone t (BURY, BURY_BARE) or while the
 * item is absent (MARK). An item without a guard gets one only together with a look at its mark (MAKE,
 * BURY_BARE). So an item with a guard has mark <= guard, an absent item is as its mark says, and no step
 * makes either smaller: whatever comes late, twice or in another order meets something that is not smaller.
 * CLEAR removes the tombstone t alone, whose mark is there already; where nobody has seen that mark, SETTLE
 * puts it. Where the application has put the item anew over a tombstone, without a guard, the mark stands for
 * what was deleted before.
 *
 * A removal also settles a later tombstone. A killed process may have left it of several records folded into
 * one, the last of which is no removal by itself ("where": it was outside before and after): delivered alone,
 * it does nothing. */
#include "handlers/builtin/replicate/replicate_repair.h"
#include "handlers/builtin/replicate/replicate_sign.h"

enum replicate_step replicate_step_first(const struct replicate *p, const struct replicate_change *change)
{
    if (!p->tombstones.table.ptr)
        return REPLICATE_ONCE;
    if (change->image.value.type == SL_NONE)
        return REPLICATE_BURY;
    /* A repair looks at the mark, too. */
    bool is_new = change->held || p->host->record_event(change->record) == SL_INSERT;
    return is_new ? REPLICATE_MAKE : REPLICATE_OVER;
}

/* ---- operations ---- */

/* The name of one of the key's attributes, which every item has. */
static struct sl_span key_name(const struct replicate *p, const struct replicate_change *change,
                               struct sl_arena *arena)
{
    struct sl_value key = {.type = SL_M, .raw = change->key}, value;
    struct sl_iter iter = p->host->value_iter(key);
    struct sl_span name = {NULL, 0};
    (void)p->host->value_next(&iter, &name, &value);
    return sl_text_plain_name(p->host, name, arena);
}

/* Gives the operation its tests, all of which must hold. */
static void set_tests(const struct replicate *p, struct sl_arena *arena, struct sl_table_op *op,
                      struct sl_test one, const struct sl_test *other)
{
    struct sl_test *tests = p->host->alloc(arena, 2 * sizeof(*tests));
    tests[0] = one;
    if (other)
        tests[1] = *other;
    op->tests = tests;
    op->n_tests = other ? 2 : 1;
    op->want_item = true;
}

static struct sl_table_op item_op(const struct replicate *p, const struct replicate_change *change,
                                  struct sl_arena *arena)
{
    struct sl_table_op op = {.verb = SL_TABLE_PUT, .key = change->key, .item = change->item};
    struct sl_test no_guard = {.verb = SL_ABSENT, .name = p->guard_attribute};
    struct sl_test guard = {.name = p->guard_attribute, .value = change->guard.value};
    struct sl_test item = {.verb = SL_PRESENT};
    switch (change->step) {
    case REPLICATE_MAKE:
        set_tests(p, arena, &op, no_guard, NULL);
        break;
    case REPLICATE_BURY_BARE:
        item.name = key_name(p, change, arena);
        set_tests(p, arena, &op, no_guard, &item);
        break;
    case REPLICATE_MARK:
        op.verb = SL_TABLE_CHECK;
        item = (struct sl_test){.verb = SL_ABSENT, .name = key_name(p, change, arena)};
        set_tests(p, arena, &op, item, NULL);
        break;
    case REPLICATE_CLEAR:
    case REPLICATE_SETTLE:
        op.verb = SL_TABLE_DELETE;
        guard.verb = SL_EQ;
        item.name = p->deleted_attribute;
        set_tests(p, arena, &op, guard, &item);
        break;
    case REPLICATE_LOOK:
        op.verb = SL_TABLE_GET;
        break;
    default: /* OVER, BURY */
        guard.verb = SL_LT;
        set_tests(p, arena, &op, guard, NULL);
    }
    if (change->held && change->step != REPLICATE_CLEAR)
        replicate_hold(change, &op);
    return op;
}

size_t replicate_step_ops(const struct replicate *p, struct replicate_change *change, struct sl_arena *arena,
                          struct sl_table_op *ops)
{
    enum replicate_step step = change->step;
    ops[0] = item_op(p, change, arena);
    if (step == REPLICATE_OVER || step == REPLICATE_CLEAR || step == REPLICATE_LOOK)
        return 1;
    ops[1] = replicate_guard_row(p, &p->tombstones, change, arena);
    if (step == REPLICATE_MAKE) {
        ops[1].verb = SL_TABLE_CHECK;
        ops[1].item = (struct sl_span){NULL, 0};
    }
    return 2;
}

/* ---- what a refusal tells ---- */

/* The step that goes with the item as it is. */
static enum replicate_step step_for(const struct replicate *p, struct replicate_change *change,
                                    struct sl_span item, struct sl_arena *arena, struct sl_span *held)
{
    bool is_removal = change->image.value.type == SL_NONE;
    if (!item.ptr && change->is_faint)
        return REPLICATE_DONE;
    if (!item.ptr)
        return is_removal ? REPLICATE_MARK : REPLICATE_MAKE;
    struct sl_value image = {.type = SL_M, .raw = item}, key = {.type = SL_M, .raw = change->key};
    struct sl_value guard = p->host->value_member(image, p->guard_attribute);
    if (guard.type == SL_NONE && change->is_faint)
        return REPLICATE_DONE;
    if (guard.type == SL_NONE)
        return is_removal ? REPLICATE_BURY_BARE : REPLICATE_MAKE;
    *held = guard.raw;
    int order = guard.type == SL_S ? sl_order_compare(guard.raw, change->guard.text) : 1;
    if (order < 0)
        return is_removal ? REPLICATE_BURY : REPLICATE_OVER;
    /* A tombstone on which somebody wrote is an item again. */
    if (!is_removal || guard.type != SL_S || !replicate_is_tombstone(p, image, key, arena))
        return REPLICATE_OVERTAKEN;
    if (order == 0)
        return REPLICATE_CLEAR;
    change->guard = (struct sl_order){.text = guard.raw, .value = p->host->value_json(guard, arena)};
    return REPLICATE_SETTLE; /* a mark that refused this change may be older than that tombstone */
}

/* The mark refused, and nothing was said of the item: it may be the tombstone that a killed process left. */
static enum replicate_step step_at_mark(const struct replicate *p, struct replicate_change *change,
                                        struct sl_span row, struct sl_span *held)
{
    *held = replicate_guard_of_row(p, row);
    bool is_own = change->step == REPLICATE_BURY && sl_span_eq(*held, change->guard.text);
    if (!is_own || change->has_looked)
        return REPLICATE_OVERTAKEN;
    change->has_looked = true;
    return REPLICATE_LOOK;
}

enum replicate_step replicate_step_next(const struct replicate *p, struct replicate_change *change,
                                        const struct sl_result *results, struct sl_arena *arena,
                                        struct sl_span *held)
{
    const struct sl_result *item = &results[0], *mark = change->n_ops > 1 ? &results[1] : NULL;
    if (change->step == REPLICATE_CLEAR)
        return REPLICATE_DONE; /* whoever was faster: the mark stands */
    if (change->step == REPLICATE_SETTLE && (item->condition_failed || mark->condition_failed))
        return item->condition_failed ? REPLICATE_DONE : REPLICATE_CLEAR;
    if (change->step == REPLICATE_LOOK)
        return step_for(p, change, item->item, arena, held);
    if (item->condition_failed) {
        enum replicate_step next = step_for(p, change, item->item, arena, held);
        if (next == REPLICATE_CLEAR && mark && !mark->condition_failed)
            return REPLICATE_SETTLE; /* a tombstone of before the switch has no mark */
        if (!mark || !mark->condition_failed || next == REPLICATE_CLEAR || next == REPLICATE_SETTLE)
            return next;
        *held = replicate_guard_of_row(p, mark->item);
        return REPLICATE_OVERTAKEN;
    }
    if (mark && mark->condition_failed)
        return step_at_mark(p, change, mark->item, held);
    if (item->status != SL_OK)
        return change->step; /* canceled, and nothing said why */
    return change->step == REPLICATE_BURY || change->step == REPLICATE_BURY_BARE ? REPLICATE_CLEAR
                                                                                 : REPLICATE_DONE;
}
