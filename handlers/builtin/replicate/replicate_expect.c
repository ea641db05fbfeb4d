/* What the replica should hold, and what is the matter with a row that it holds. */
#include "handlers/builtin/replicate/replicate_expect.h"

#include "handlers/builtin/replicate/replicate_sign.h"
#include "handlers/builtin/toolkit/expected.h"

/* ---- what should be there ---- */

/* A look at the bytes: most rows need no more. */
static bool may_hold(struct sl_span row, struct sl_span name)
{
    return memmem(row.ptr, row.len, name.ptr, name.len) != NULL || memchr(row.ptr, '\\', row.len) != NULL;
}

/* The names that are ours on every row: they do not count. */
static void set_own(const struct replicate *p, struct sl_expected *row, struct sl_arena *arena)
{
    if (p->guard != REPLICATE_INLINE)
        return;
    struct sl_span *own = p->host->alloc(arena, 2 * sizeof(*own));
    own[0] = p->guard_attribute;
    own[1] = p->write_attribute;
    row->own = own;
    row->n_own = 2;
    row->guard = p->guard_attribute;
    row->absence = p->deleted_attribute;
}

static void set_side(const struct replicate *p, const struct replicate_change *change,
                     struct sl_expected *row, struct sl_arena *arena)
{
    const struct replicate_side *side = p->guard == REPLICATE_SIDE ? &p->guards : &p->tombstones;
    if (!side->table.ptr)
        return;
    row->side_table = side->table;
    row->side_key = replicate_guard_row_key(p, side, change->item_key, arena);
}

/* An item with our mark is a deletion for a chain, and nobody's business otherwise: the other table of a pair
 * says what it is. */
static bool is_marked(const struct replicate *p, const struct sl_record *r)
{
    return p->guard == REPLICATE_INLINE &&
           may_hold(p->host->record_image(r, SL_NEW_IMAGE).raw, p->deleted_attribute) &&
           p->host->record_attribute(r, SL_NEW_IMAGE, p->deleted_attribute).type != SL_NONE;
}

static enum sl_status row_make(const struct replicate *p, const struct sl_record *r, struct sl_expected *row,
                               struct sl_arena *arena, struct sl_error *error)
{
    struct replicate_change change = {.record = r};
    struct sl_value image = p->host->record_image(r, SL_NEW_IMAGE);
    if (p->host->record_event(r) != SL_REMOVE && is_marked(p, r)) {
        if (!p->copies_replicated ||
            !replicate_is_tombstone(p, image, p->host->record_image(r, SL_KEYS), arena))
            return SL_OK; /* it is left out */
        image.type = SL_NONE;
    }
    if (p->host->record_event(r) != SL_REMOVE && replicate_is_inside(p, image, arena))
        change.image.value = image;
    enum sl_status status = replicate_key(p, r, arena, &change.key, error);
    if (status != SL_OK)
        return replicate_has_no_place(p, r, arena, error) ? SL_OK : status;
    row->port = p->table;
    row->key = change.key;
    if (change.image.value.type != SL_NONE)
        status = replicate_shape(p, &change, arena, &row->item, error);
    if (p->guard == REPLICATE_SIDE || p->tombstones.table.ptr)
        change.item_key = p->n_keys ? change.key : p->host->record_item_key(r, arena);
    set_side(p, &change, row, arena);
    return status;
}

enum sl_status replicate_expect(void *self, struct sl_expect *e, struct sl_error *error)
{
    const struct replicate *p = self;
    if (p->guard == REPLICATE_NONE)
        return p->host->fail(error, SL_REJECT, "NoGuard",
                             "\"guard\": \"none\": nothing shows which change the replica's items hold");
    size_t n = e->n ? e->n : 1;
    struct sl_expected common = {.port = p->table};
    set_own(p, &common, e->arena);
    e->rows = p->host->alloc(e->arena, n * sizeof(*e->rows));
    e->n_rows = n;
    e->rows[0] = common;
    for (size_t i = 0; i < e->n; i++) {
        struct sl_error why = SL_NO_ERROR;
        e->rows[i] = common;
        e->rows[i].record = i;
        enum sl_status status = row_make(p, e->records[i], &e->rows[i], e->arena, &why);
        if (status == SL_FATAL)
            return p->host->fail(error, status, why.code, "%s", why.text);
        if (status != SL_OK)
            sl_expected_refuse(p->host, &why, &e->rows[i], e->arena);
    }
    return SL_OK;
}

/* ---- from a row to its item ---- */

/* The attribute of the row that holds an attribute of the source's key; SL_NONE: the row does not have it. */
static struct sl_value key_value(const struct replicate *p, struct sl_value row, struct sl_span name)
{
    for (size_t i = 0; i < p->n_keys; i++)
        if (sl_span_eq(p->keys[i].place, name))
            return p->host->value_member(row, p->keys[i].name);
    struct sl_span held = replicate_held_name(p, name);
    return held.ptr ? p->host->value_member(row, held) : (struct sl_value){.type = SL_NONE};
}

/* False: the row does not hold the whole key. */
static bool source_key(const struct replicate *p, struct sl_value row, const struct sl_span *names, size_t n,
                       struct sl_arena *arena, struct sl_span *out)
{
    struct sl_span values[SL_TEXT_KEY_ATTRIBUTES];
    for (size_t i = 0; i < n; i++) {
        struct sl_value value = key_value(p, row, names[i]);
        if (!sl_render_is_key(value))
            return false;
        values[i] = p->host->value_json(value, arena);
    }
    *out = sl_text_key(p->host, arena, names, values, n);
    return true;
}

enum sl_status replicate_trace(void *self, struct sl_trace *t, struct sl_error *error)
{
    const struct replicate *p = self;
    struct sl_value row = {.type = SL_M, .raw = t->row};
    if (p->guard == REPLICATE_INLINE && may_hold(t->row, p->deleted_attribute) &&
        p->host->value_member(row, p->deleted_attribute).type != SL_NONE)
        return SL_OK; /* a tombstone: there is no item */
    if (t->n_key_names <= SL_TEXT_KEY_ATTRIBUTES &&
        source_key(p, row, t->key_names, t->n_key_names, t->arena, &t->key))
        return SL_OK;
    return p->host->fail(
        error, SL_REJECT, "KeyNotKept",
        "the replica's items do not hold the key of the source's item: \"key\" makes another "
        "of it, and the source's key attributes are not copied");
}

/* ---- what is the matter with a row ---- */

/* Is it the guard of an item that was read from an export or a scan, and of no change? It has no order, see
 * sl_order_digits; its last part may count repairs. */
static bool is_of_item(struct sl_span guard)
{
    char zeros[SL_ORDER_DIGITS];
    memset(zeros, '0', sizeof(zeros));
    return guard.ptr &&
           memcmp(guard.ptr + REPLICATE_GUARD_BYTES - 17 - SL_ORDER_DIGITS, zeros, sizeof(zeros)) == 0;
}

/* The time in the guard, 16 digits of milliseconds; 0 when it has none. */
static int64_t guard_ms(struct sl_span guard)
{
    int64_t ms = 0;
    if (!guard.ptr || is_of_item(guard))
        return 0;
    for (size_t i = REPLICATE_GUARD_BYTES - 16; i < REPLICATE_GUARD_BYTES; i++)
        ms = ms * 10 + (guard.ptr[i] - '0');
    return ms;
}

/* What stands where a guard should is told only if it is one: it may be a value of somebody's. */
static struct sl_span told_guard(struct sl_span text)
{
    return replicate_guard_is_text(text) ? text : (struct sl_span){NULL, 0};
}

/* Another item of the source's that has the same key here. */
static bool is_collision(const struct replicate *p, struct sl_judge *j, struct sl_value row)
{
    struct sl_value keys = p->host->record_image(j->record, SL_KEYS), value;
    struct sl_span names[SL_TEXT_KEY_ATTRIBUTES], name;
    size_t n = 0;
    for (struct sl_iter iter = p->host->value_iter(keys); p->host->value_next(&iter, &name, &value) && n < 2;)
        names[n++] = sl_text_plain_name(p->host, name, j->arena);
    if (p->n_keys == 0 || !source_key(p, row, names, n, j->arena, &j->other_key))
        return false;
    struct sl_value other = {.type = SL_M, .raw = j->other_key};
    if (!p->host->value_equal(other, keys))
        return true;
    j->other_key = (struct sl_span){NULL, 0};
    return false;
}

/* In a pair of tables an item that came from the other one has no guard there. */
static bool came_from_there(const struct replicate *p, const struct sl_record *r)
{
    return !p->copies_replicated && p->guard == REPLICATE_INLINE &&
           p->host->record_attribute(r, SL_NEW_IMAGE, p->guard_attribute).type != SL_NONE;
}

static enum sl_verdict judge_item(const struct replicate *p, struct sl_judge *j, struct sl_value row,
                                  const struct replicate_stamp *stamp)
{
    if (is_collision(p, j, row))
        return SL_VERDICT_COLLISION;
    if (j->n_names == 0)
        return j->is_owned || came_from_there(p, j->record) ? SL_VERDICT_EQUAL : SL_VERDICT_UNGUARDED;
    bool is_intact = p->guard == REPLICATE_INLINE && j->is_owned &&
                     replicate_sign_check(p, row, stamp, j->arena) == REPLICATE_SIGNED;
    return is_intact ? SL_VERDICT_STALE : SL_VERDICT_DIFFERENT;
}

static enum sl_verdict judge_rest(const struct replicate *p, struct sl_judge *j,
                                  const struct replicate_stamp *stamp, struct sl_span mark)
{
    if (stamp->deleted.type != SL_NONE)
        return SL_VERDICT_NOT_JUDGED; /* a tombstone on which somebody wrote */
    /* A guard row of a side table is of a deletion, or of the item that is there. */
    bool was_deleted =
        p->guard == REPLICATE_INLINE
            ? mark.ptr && (!j->guard.ptr || sl_order_compare(mark, j->guard) >= 0)
            : p->host->value_member((struct sl_value){.type = SL_M, .raw = j->side}, p->ttl_attribute).type !=
                  SL_NONE;
    return was_deleted || is_of_item(j->guard) ? SL_VERDICT_REVIVED : SL_VERDICT_LEFT_OVER;
}

enum sl_status replicate_judge(void *self, struct sl_judge *j, struct sl_error *error)
{
    const struct replicate *p = self;
    (void)error;
    struct sl_value row = {.type = j->row.ptr ? SL_M : SL_NONE, .raw = j->row};
    struct replicate_stamp stamp = {.n_members = 0};
    struct sl_span mark = j->side.ptr ? replicate_guard_of_row(p, j->side) : (struct sl_span){NULL, 0};
    if (p->guard == REPLICATE_INLINE) {
        stamp = replicate_stamp_of(p, row, j->arena);
        j->guard = told_guard(stamp.guard.type == SL_S ? stamp.guard.raw : mark);
        j->is_owned = replicate_stamp_has_guard(&stamp);
    } else {
        j->guard = told_guard(mark);
        j->is_owned = mark.ptr != NULL;
    }
    j->written_ms = guard_ms(j->guard);
    if (replicate_is_absent(p, row, j->expected->key, j->arena))
        j->verdict = j->expected->item.ptr ? SL_VERDICT_MISSING : SL_VERDICT_EQUAL;
    else if (j->expected->item.ptr)
        j->verdict = judge_item(p, j, row, &stamp);
    else
        j->verdict = judge_rest(p, j, &stamp, mark);
    return SL_OK;
}
