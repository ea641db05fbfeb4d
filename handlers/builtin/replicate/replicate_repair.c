/* `sluice repair`: the item as the source has it now takes the place of the row that was seen. It is a change
 * like any other, but for its guard and for the condition of its first step. */
#include "handlers/builtin/replicate/replicate_repair.h"

#include "base/map.h"
#include "handlers/builtin/replicate/replicate_sign.h"
#include "base/array.h"

/* Attributes of the seen row that are compared. A condition's text has 4 KB (Quotas in Amazon DynamoDB), and
 * one comparison takes some 16 bytes of it. */
#define HELD_MAX 200

struct repair {
    struct replicate_fold fold;
    struct sl_repair *ask;
};

struct sl_value replicate_row_of(struct sl_span json)
{
    return (struct sl_value){.type = json.ptr ? SL_M : SL_NONE, .raw = json};
}

void replicate_hold(const struct replicate_change *change, struct sl_table_op *op)
{
    op->tests = change->held;
    op->n_tests = change->n_held;
    op->any_test = false;
}

/* ---- the row as it was seen ---- */

/* The guard comes first: of a row with very many attributes not all are compared. */
static void hold_row(const struct replicate *p, struct replicate_change *change, struct sl_value row,
                     struct sl_arena *arena)
{
    struct sl_test *tests = p->host->alloc(arena, HELD_MAX * sizeof(*tests));
    struct sl_value guard = p->host->value_member(row, p->guard_attribute), value;
    struct sl_span name;
    size_t n = 0;
    tests[n++] = (struct sl_test){.verb = SL_ABSENT, .name = p->guard_attribute};
    if (guard.type != SL_NONE)
        tests[0] = (struct sl_test){SL_EQ, p->guard_attribute, p->host->value_json(guard, arena)};
    struct sl_iter iter = p->host->value_iter(row);
    while (n < HELD_MAX && p->host->value_next(&iter, &name, &value)) {
        name = sl_text_plain_name(p->host, name, arena);
        if (!sl_span_eq(name, p->guard_attribute))
            tests[n++] = (struct sl_test){SL_EQ, name, p->host->value_json(value, arena)};
    }
    change->held = tests;
    change->n_held = n;
}

/* No row was seen: the name of one of the key's attributes, which every row has. */
static void hold_absence(const struct replicate *p, struct replicate_change *change, struct sl_arena *arena)
{
    struct sl_test *test = p->host->alloc(arena, sizeof(*test));
    struct sl_iter iter = p->host->value_iter(replicate_row_of(change->key));
    struct sl_span name = {NULL, 0};
    struct sl_value value;
    (void)p->host->value_next(&iter, &name, &value);
    *test = (struct sl_test){.verb = SL_ABSENT, .name = sl_text_plain_name(p->host, name, arena)};
    change->held = test;
    change->n_held = 1;
}

void replicate_see(const struct replicate *p, struct replicate_change *change, struct sl_span row,
                   struct sl_arena *arena)
{
    if (row.ptr)
        hold_row(p, change, replicate_row_of(row), arena);
    else
        hold_absence(p, change, arena);
}

/* ---- side tables: an order that is not on the row, or is later than the row's ---- */

const struct replicate_side *replicate_side_of(const struct replicate *p)
{
    const struct replicate_side *side = p->guard == REPLICATE_SIDE ? &p->guards : &p->tombstones;
    return side->table.ptr ? side : NULL;
}

/* The side row counts as it was seen with the row. Were it read again here, the mark of a deletion that came
 * in between would be the order that the write may follow, and the item would be there again. As it is, the
 * write is refused by that mark. Of a row that somebody put back, the mark is the later one. */
void replicate_follow(const struct replicate *p, struct replicate_change *change, struct sl_span row,
                      struct sl_span side, struct sl_arena *arena)
{
    struct replicate_stamp stamp = replicate_stamp_of(p, replicate_row_of(row), arena);
    struct sl_span order = replicate_side_of(p) ? replicate_guard_of_row(p, side) : (struct sl_span){NULL, 0};
    change->kept_guard = p->guard == REPLICATE_INLINE && stamp.guard.type == SL_S ? stamp.guard.raw
                                                                                  : (struct sl_span){NULL, 0};
    if (order.ptr && (!change->kept_guard.ptr || sl_order_compare(change->kept_guard, order) < 0))
        change->kept_guard = order;
}

/* ---- changes ---- */

bool replicate_is_gone(const struct replicate *p, const struct sl_record *r, struct sl_value image,
                       struct sl_arena *arena)
{
    return image.type == SL_NONE || !replicate_is_inside(p, image, arena) ||
           (p->guard == REPLICATE_INLINE &&
            replicate_is_tombstone(p, image, p->host->record_image(r, SL_KEYS), arena));
}

/* A row of before a repair: it gets a guard and a signature of its own. */
static void take_wanted(const struct repair *r, size_t i, struct replicate_change *change)
{
    const struct replicate *p = r->fold.p;
    struct sl_arena *arena = r->fold.slice->arena;
    struct sl_value row = replicate_row_of(r->ask->wanted[i]);
    change->is_shaped = true;
    if (row.type == SL_NONE || replicate_is_tombstone(p, row, replicate_row_of(change->key), arena))
        return;
    if (p->guard == REPLICATE_INLINE) {
        row.raw = replicate_without(p, row, p->guard_attribute, arena);
        row.raw = replicate_without(p, row, p->write_attribute, arena);
    }
    change->image = (struct replicate_image){.value = row};
}

/* Did a replicate make the row? */
static bool is_guarded(const struct repair *r, const struct replicate_change *change)
{
    const struct replicate *p = r->fold.p;
    struct sl_value row = replicate_row_of(r->ask->seen[change->newest]);
    return p->guard == REPLICATE_INLINE ? p->host->value_member(row, p->guard_attribute).type == SL_S
                                        : change->kept_guard.ptr != NULL;
}

static enum sl_status check_removal(const struct repair *r, const struct replicate_change *change,
                                    struct sl_error *error)
{
    const struct sl_host *host = r->fold.p->host;
    if (!is_guarded(r, change))
        return host->fail(error, SL_REJECT, "NotOurs",
                          "the source does not have the item, and the row has no guard: somebody else wrote "
                          "it; remove it yourself if nobody needs it");
    if (!r->ask->may_remove)
        return host->fail(error, SL_REJECT, "WouldRemove",
                          "the source does not have the item, and removing was not asked for");
    return SL_OK;
}

static enum sl_status change_make(struct repair *r, size_t i, struct replicate_change *change,
                                  struct sl_error *error)
{
    struct replicate_fold *f = &r->fold;
    const struct replicate *p = f->p;
    struct sl_arena *arena = f->slice->arena;
    struct sl_value row = replicate_row_of(r->ask->seen[i]);
    enum sl_status status = replicate_key(p, change->record, arena, &change->key, error);
    if (status != SL_OK)
        return status;
    if (p->n_keys > 0)
        change->item_key = change->key;
    if (r->ask->wanted)
        take_wanted(r, i, change);
    else if (!replicate_is_gone(p, change->record, p->host->record_image(change->record, SL_NEW_IMAGE),
                                arena))
        change->image = (struct replicate_image){.value = p->host->record_image(change->record, SL_NEW_IMAGE),
                                                 .may_carry = true};
    bool is_buried = replicate_is_tombstone(p, row, replicate_row_of(change->key), arena);
    change->is_out = change->image.value.type == SL_NONE && (row.type == SL_NONE || is_buried);
    replicate_follow(p, change, r->ask->seen[i], r->ask->sides[i], arena);
    replicate_see(p, change, r->ask->seen[i], arena);
    return SL_OK;
}

static enum sl_status record_take(struct repair *r, size_t i, struct sl_error *error)
{
    struct replicate_fold *f = &r->fold;
    const struct sl_record *record = f->slice->records[i];
    if (f->p->host->record_image(record, SL_KEYS).type == SL_NONE)
        return f->p->host->fail(error, SL_REJECT, "NoKeys", "the record has no Keys");
    struct sl_span item_key = f->p->host->record_item_key(record, f->slice->arena);
    uint32_t known = f->items.n, c = sl_map_index(&f->items, item_key);
    if (c != known)
        return f->p->host->fail(error, SL_REJECT, "Twice", "the item is in the slice twice");
    f->before[i] = SL_OUTCOME_NO_RECORD;
    f->changes[c] = (struct replicate_change){
        .newest = (uint32_t)i, .last = (uint32_t)i, .record = record, .item_key = item_key};
    struct replicate_change *change = &f->changes[c];
    enum sl_status status = change_make(r, i, change, error);
    change->is_out = change->is_out || status != SL_OK;
    return status;
}

static void check_removals(struct repair *r)
{
    for (uint32_t c = 0; c < r->fold.items.n; c++) {
        struct replicate_change *change = &r->fold.changes[c];
        struct sl_error error = SL_NO_ERROR;
        if (!change->is_out && change->image.value.type == SL_NONE &&
            check_removal(r, change, &error) != SL_OK)
            replicate_fold_fail(&r->fold, change, &error);
    }
}

/* ---- the outcome ---- */

static void tell(struct repair *r)
{
    struct replicate_fold *f = &r->fold;
    for (uint32_t c = 0; c < f->items.n; c++) {
        struct replicate_change *change = &f->changes[c];
        struct sl_error error = SL_NO_ERROR;
        if (change->is_out)
            continue;
        if (change->step == REPLICATE_OVERTAKEN) {
            (void)f->p->host->fail(&error, SL_REJECT, "Moved",
                                   "the row changed while it was repaired; verify it again");
            replicate_fold_fail(f, change, &error);
            continue;
        }
        bool is_removal = change->image.value.type == SL_NONE, is_cleared = f->p->tombstones.table.ptr;
        r->ask->effects[change->newest] = is_removal ? SL_REPAIR_REMOVED : SL_REPAIR_WRITTEN;
        if (!is_removal || !is_cleared)
            r->ask->written[change->newest] = change->item;
    }
}

enum sl_status replicate_repair(void *self, struct sl_slice *slice, struct sl_repair *ask,
                                struct sl_error *error)
{
    struct repair r = {.fold = {.p = self, .slice = slice, .is_plan = ask->is_plan}, .ask = ask};
    const struct sl_host *host = r.fold.p->host;
    sl_outcome_init(&r.fold.outcome, host, slice);
    sl_map_init(&r.fold.items, slice->arena, slice->n);
    r.fold.changes = host->alloc(slice->arena, slice->n * sizeof(*r.fold.changes));
    r.fold.before = host->alloc(slice->arena, slice->n * sizeof(*r.fold.before));
    for (size_t i = 0; i < slice->n; i++) {
        struct sl_error why = SL_NO_ERROR;
        ask->written[i] = (struct sl_span){NULL, 0};
        ask->effects[i] = SL_REPAIR_NOTHING;
        if (record_take(&r, i, &why) != SL_OK)
            sl_outcome_fail(&r.fold.outcome, i, &why);
    }
    check_removals(&r);
    replicate_write_changes(&r.fold);
    tell(&r);
    return sl_outcome_end(&r.fold.outcome, error);
}
