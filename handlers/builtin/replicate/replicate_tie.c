/* Changes of one item that have one order.
 *
 * Through Kinesis a change has no sequence number, only a time in ms or us, and may be delivered twice
 * and in any order. Of two changes in one unit nothing says which was first, their contents neither: after A,
 * B, A a first A that is delivered again would win over B. So the row is made what the source has now.
 * Whoever does that sees the row before it reads the source, writes only if the row is still the same, and
 * makes the guard the next one; if the row has moved, it begins again. So the last of the tied changes leaves
 * the truth, and one that comes later writes nothing or the truth. */
#include "handlers/builtin/replicate/replicate_repair.h"
#include "handlers/builtin/replicate/replicate_sign.h"
#include "handlers/builtin/replicate/replicate_tie.h"

#include "handlers/builtin/toolkit/apply.h"

/* Of the same item and order; a change that was delivered twice does not tie. */
bool replicate_tie_is_mixed(const struct replicate *p, const struct sl_record *a, const struct sl_record *b,
                            struct sl_arena *arena)
{
    struct sl_value first = p->host->record_image(a, SL_NEW_IMAGE),
                    second = p->host->record_image(b, SL_NEW_IMAGE);
    if ((first.type == SL_NONE) != (second.type == SL_NONE) ||
        (p->host->record_event(a) == SL_REMOVE) != (p->host->record_event(b) == SL_REMOVE))
        return sl_order_is_time(p->host, b, arena);
    return first.type != SL_NONE && !p->host->value_equal(first, second) &&
           sl_order_is_time(p->host, b, arena);
}

/* ---- is the row as the change leaves it? ---- */

/* A row or an item, without its guard and signature. */
static struct sl_value bare(const struct replicate *p, struct sl_span json, struct sl_arena *arena)
{
    struct sl_value row = replicate_row_of(json);
    if (p->guard != REPLICATE_INLINE)
        return row;
    row.raw = replicate_without(p, row, p->guard_attribute, arena);
    row.raw = replicate_without(p, row, p->write_attribute, arena);
    return row;
}

static bool is_as_left(const struct replicate *p, const struct replicate_change *change, struct sl_span row,
                       struct sl_arena *arena)
{
    bool absent = replicate_is_absent(p, replicate_row_of(row), change->key, arena);
    if (absent || change->image.value.type == SL_NONE)
        return absent && change->image.value.type == SL_NONE;
    return p->host->value_equal(bare(p, row, arena), bare(p, change->item, arena));
}

/* ---- one change ---- */

/* Those that are asked for together. */
struct ties {
    struct replicate_fold *f;
    struct sl_table_op *ops;
    struct replicate_change **changes;
    size_t n, n_left;
    const struct sl_record *left; /* one of those that are left as they are */
};

static bool is_pending(const struct replicate *p, const struct replicate_change *change,
                       struct sl_arena *arena)
{
    if (p->guard == REPLICATE_NONE || change->is_out || change->step < REPLICATE_DONE)
        return false;
    if (change->held)
        return change->is_tied && change->step == REPLICATE_OVERTAKEN;
    if (change->is_mixed)
        return change->is_tied || change->step == REPLICATE_DONE;
    return change->is_tied && !(change->has_row && is_as_left(p, change, change->row, arena));
}

static bool result_fails(struct ties *t, struct replicate_change *change, const struct sl_result *result)
{
    struct sl_error error = SL_NO_ERROR;
    if (result->status == SL_OK)
        return false;
    sl_outcome_error(t->f->p->host, result, &error);
    replicate_fold_fail(t->f, change, &error);
    return true;
}

/* Is the row, as it was just read, still of a change that this one ties with? */
static bool is_still_tied(const struct replicate *p, const struct replicate_change *change,
                          struct sl_span row, struct sl_arena *arena)
{
    struct sl_span kept = change->kept_guard;
    if (!change->is_mixed && !change->held && is_as_left(p, change, row, arena))
        return false;
    return !kept.ptr || replicate_guard_is_same(kept, change->guard.text);
}

/* The change becomes a repair: the row that was seen becomes what the source has. A row that is there is
 * written in any case, so that whoever has read the source before finds it moved. */
static void change_repair(struct ties *t, struct replicate_change *change, struct sl_span item)
{
    const struct replicate *p = t->f->p;
    struct sl_arena *arena = t->f->slice->arena;
    struct sl_value image = replicate_row_of(replicate_without_blanks(item));
    bool is_gone = replicate_is_gone(p, change->record, image, arena);
    change->image = (struct replicate_image){.is_read_back = true, .may_carry = true};
    if (!is_gone)
        change->image.value = image;
    change->item = (struct sl_span){NULL, 0};
    change->is_tied = true;
    change->is_mixed = change->is_faint = change->has_looked = false;
    change->step = is_gone && !change->row.ptr ? REPLICATE_DONE : REPLICATE_BEGIN;
    replicate_see(p, change, change->row, arena);
}

static void change_leave(struct ties *t, struct replicate_change *change)
{
    change->is_tied = change->is_mixed = false;
    change->step = REPLICATE_DONE;
    t->n_left++;
    t->left = change->record;
}

/* ---- all of them ---- */

static const struct sl_result *read_all(const struct ties *t, struct sl_table_port *port, size_t n)
{
    return sl_apply_table(t->f->slice, port, t->ops, n);
}

/* The rows, before the source: what a mark says then is not newer than what the source has. */
static void see_rows(struct ties *t)
{
    const struct replicate *p = t->f->p;
    struct sl_arena *arena = t->f->slice->arena;
    const struct replicate_side *side = replicate_side_of(p);
    size_t n = 0, each = side ? 2 : 1, kept = 0;
    for (size_t i = 0; i < t->n; i++) {
        t->ops[n++] = (struct sl_table_op){.verb = SL_TABLE_GET, .key = t->changes[i]->key};
        if (side)
            t->ops[n++] =
                (struct sl_table_op){.verb = SL_TABLE_GET,
                                     .table = side->table,
                                     .key = replicate_guard_row_key(p, side, t->changes[i]->item_key, arena)};
    }
    const struct sl_result *results = read_all(t, p->table, n);
    for (size_t i = 0; i < t->n; i++) {
        struct replicate_change *change = t->changes[i];
        const struct sl_result *row = &results[i * each], *mark = &results[i * each + each - 1];
        if (result_fails(t, change, row) || result_fails(t, change, mark))
            continue;
        change->row = row->item;
        replicate_follow(p, change, row->item, mark->item, arena);
        if (is_still_tied(p, change, change->row, arena))
            t->changes[kept++] = change;
        else
            change->is_tied = change->is_mixed = false;
    }
    t->n = kept;
}

static void ask_source(struct ties *t)
{
    const struct replicate *p = t->f->p;
    for (size_t i = 0; i < t->n; i++)
        t->ops[i] = (struct sl_table_op){.verb = SL_TABLE_GET,
                                         .key = p->host->record_image(t->changes[i]->record, SL_KEYS).raw};
    const struct sl_result *results = read_all(t, p->source, t->n);
    for (size_t i = 0; i < t->n; i++) {
        /* With "expired": "keep" nobody knows whether an item that is not there was deleted. */
        bool is_open = results[i].status == SL_OK && !results[i].item.ptr && p->expired != SL_EXPIRED_APPLY;
        if (is_open)
            change_leave(t, t->changes[i]);
        else if (!result_fails(t, t->changes[i], &results[i]))
            change_repair(t, t->changes[i], results[i].item);
    }
}

static void warn(const struct ties *t)
{
    const struct replicate *p = t->f->p;
    p->host->metric(p->route, "TiedOrder", (double)t->n_left, "Count");
    p->host->log(
        p->route, SL_WARN,
        "%zu changes have the time of another change of their item (one is %.*s), and nothing says which "
        "was last: the replica may hold the other one, until the item changes again. %s. "
        "`sluice verify` finds such items",
        t->n_left, SL_ARG(p->host->record_text(t->left, SL_FIELD_EVENT_ID)),
        p->source ? "The source does not have the item, and with \"expired\": \"keep\" that does not "
                    "say that it was deleted"
                  : "Name the source table in \"source\", and it is asked");
}

bool replicate_ties_take(struct replicate_fold *f)
{
    const struct replicate *p = f->p;
    struct sl_arena *arena = f->slice->arena;
    struct ties t = {.f = f};
    for (uint32_t c = 0; c < f->items.n; c++) {
        if (!is_pending(p, &f->changes[c], arena))
            continue;
        if (!t.changes)
            t.changes = p->host->alloc(arena, (f->items.n - c) * sizeof(struct replicate_change *));
        t.changes[t.n++] = &f->changes[c];
    }
    if (t.n == 0)
        return false;
    t.ops = p->host->alloc(arena, 2 * t.n * sizeof(*t.ops));
    see_rows(&t);
    if (p->source && t.n > 0)
        ask_source(&t);
    for (size_t i = 0; i < t.n && !p->source; i++)
        change_leave(&t, t.changes[i]);
    if (t.n_left > 0)
        warn(&t);
    return t.n > t.n_left;
}
