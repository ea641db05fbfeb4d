/* What the ledger should hold of an item, and what is the matter with a row that it holds. */
#include "handlers/builtin/aggregate/audit/aggregate_expect.h"

#include "base/arena.h"
#include "handlers/builtin/aggregate/aggregate_tally_private.h"
#include "base/array.h"
#include "handlers/builtin/toolkit/expected.h"

/* ---- what should be there ---- */

static const struct sl_span counted[] = {{AGGREGATE_ROW_SUMS, sizeof(AGGREGATE_ROW_SUMS) - 1}};

static enum sl_status check_route(const struct aggregate *a, struct sl_error *error)
{
    const char *why = a->per_event ? "\"per\": \"event\": the totals count changes, and the source holds none"
                      : !a->has_ledger ? "\"mode\": \"at-least-once\": no ledger says what was counted"
                      : !aggregate_has_sums(a) ? "running values are of all that the items have ever been"
                                               : NULL;
    return why ? a->host->fail(error, SL_REJECT, "NoLedger", "%s", why) : SL_OK;
}

static enum sl_status row_make(struct aggregate_tally *t, const struct sl_record *r, struct sl_expected *row,
                               struct sl_error *error)
{
    const struct aggregate *a = t->a;
    struct aggregate_part part = {0, 0};
    bool is_there = a->host->record_event(r) != SL_REMOVE;
    if (is_there && a->marks_own &&
        a->host->record_attribute(r, SL_NEW_IMAGE, SL_LIT(AGGREGATE_OWN)).type != SL_NONE)
        return SL_OK; /* a row of the totals is left out */
    enum sl_status status = is_there ? aggregate_contribution(t, r, SL_NEW_IMAGE, &part, error) : SL_OK;
    if (status != SL_OK)
        return status;
    struct sl_span parts[] = {SL_LIT("{\"" AGGREGATE_ROW_SUMS "\":"), aggregate_ledger_text(t, part),
                              SL_LIT("}")};
    row->key = aggregate_ledger_key(a, r, t->arena);
    row->item = a->host->join(t->arena, parts, 3);
    row->may_be_absent = part.n == 0;
    return SL_OK;
}

enum sl_status aggregate_expect(void *self, struct sl_expect *e, struct sl_error *error)
{
    const struct aggregate *a = self;
    struct aggregate_tally tally;
    enum sl_status status = check_route(a, error);
    if (status != SL_OK)
        return status;
    const struct sl_expected common = {.port = a->table,
                                       .table = a->ledger_table,
                                       .counts = counted,
                                       .n_counts = 1,
                                       .guard = SL_LIT(AGGREGATE_ROW_ORDER)};
    e->n_rows = e->n ? e->n : 1;
    e->rows = a->host->alloc(e->arena, e->n_rows * sizeof(*e->rows));
    e->rows[0] = common;
    if (e->n)
        aggregate_tally_init(&tally, a, e->arena, e->n);
    for (size_t i = 0; i < e->n; i++) {
        struct sl_error why = SL_NO_ERROR;
        e->rows[i] = common;
        e->rows[i].record = i;
        status = row_make(&tally, e->records[i], &e->rows[i], &why);
        if (status == SL_FATAL)
            return a->host->fail(error, status, why.code, "%s", why.text);
        if (status != SL_OK)
            sl_expected_refuse(a->host, &why, &e->rows[i], e->arena);
    }
    return SL_OK;
}

/* ---- from a row to its item ---- */

/* The text of the row's key after "sluice:ledger:NAME:"; absent: it is another row. */
static struct sl_span unit_of_row(const struct aggregate *a, struct sl_value row, struct sl_arena *arena)
{
    struct sl_span none = {NULL, 0}, parts[] = {SL_LIT("sluice:ledger:"), a->name, SL_LIT(":")};
    struct sl_span begin = a->host->join(arena, parts, 3);
    struct sl_value value = a->host->value_member(row, a->ledger_keys[0]);
    struct sl_span text = value.type == SL_S ? a->host->value_text(value, arena) : none;
    if (text.len < begin.len || memcmp(text.ptr, begin.ptr, begin.len) != 0)
        return none;
    return (struct sl_span){text.ptr + begin.len, text.len - begin.len};
}

/* {"M":{"PK":{"S":"a"}}}: the key is within. */
enum sl_status aggregate_trace(void *self, struct sl_trace *t, struct sl_error *error)
{
    const struct aggregate *a = self;
    struct sl_value row = {.type = SL_M, .raw = t->row}, element;
    struct sl_value sums = a->host->value_member(row, SL_LIT(AGGREGATE_ROW_SUMS));
    struct sl_span unit = unit_of_row(a, row, t->arena);
    struct sl_iter iter = a->host->value_iter(sums);
    if (!unit.ptr || (sums.type == SL_L && !a->host->value_next(&iter, NULL, &element)))
        return SL_OK; /* it counts nothing */
    const struct sl_span before = SL_LIT("{\"M\":");
    if (unit.len < before.len + 3 || memcmp(unit.ptr, before.ptr, before.len) != 0)
        return a->host->fail(error, SL_REJECT, "LongKey",
                             "the ledger names an item with a long key by a digest, which cannot be undone");
    t->key = (struct sl_span){unit.ptr + before.len, unit.len - before.len - 1};
    return SL_OK;
}

/* ---- what is the matter with a row ---- */

/* Do both parts add the same to each attribute of each counter row? */
static bool same_sums(struct aggregate_tally *t, struct aggregate_part x, struct aggregate_part y)
{
    const struct sl_host *host = t->a->host;
    struct aggregate_terms deltas = {.arena = t->arena, .room = x.n + y.n + 1};
    deltas.list = host->alloc(t->arena, deltas.room * sizeof(*deltas.list));
    aggregate_difference(t, x, y, &deltas);
    size_t places = (size_t)t->counters.n * t->attributes.n;
    struct sl_decimal **sums = sl_arena_zalloc(t->arena, (places + 1) * sizeof(struct sl_decimal *));
    for (uint32_t i = 0; i < deltas.n; i++) {
        const struct aggregate_term *term = &deltas.list[i];
        struct sl_decimal **sum = &sums[(size_t)term->counter * t->attributes.n + term->attribute];
        *sum = *sum ? *sum : host->decimal_new(t->arena);
        (void)host->decimal_add(*sum, term->number, term->subtract);
    }
    for (size_t i = 0; i < places; i++)
        if (sums[i] && !host->decimal_is_zero(sums[i]))
            return false;
    return true;
}

static enum sl_verdict verdict_of(struct aggregate_tally *t, struct aggregate_part wanted,
                                  const struct aggregate_row *row)
{
    if (same_sums(t, wanted, row->terms))
        return SL_VERDICT_EQUAL;
    if (wanted.n == 0)
        return SL_VERDICT_LEFT_OVER;
    return row->terms.n == 0 ? SL_VERDICT_MISSING : SL_VERDICT_DIFFERENT;
}

enum sl_status aggregate_judge(void *self, struct sl_judge *j, struct sl_error *error)
{
    const struct aggregate *a = self;
    struct aggregate_tally tally;
    struct aggregate_row row = {0};
    struct aggregate_part wanted = {0, 0};
    aggregate_tally_init(&tally, a, j->arena, 1);
    enum sl_status status = aggregate_ledger_read(&tally, j->row, &row, error);
    if (status == SL_OK && a->host->record_event(j->record) != SL_REMOVE)
        status = aggregate_contribution(&tally, j->record, SL_NEW_IMAGE, &wanted, error);
    if (status != SL_OK)
        return status;
    j->guard = row.order;
    j->is_owned = row.exists;
    j->written_ms = row.at_ms;
    j->verdict = verdict_of(&tally, wanted, &row);
    /* What TTL removed stays in the totals, and no longer belongs to an item: then the row is empty. */
    if (j->verdict == SL_VERDICT_LEFT_OVER && a->host->record_event(j->record) == SL_REMOVE &&
        a->expired != SL_EXPIRED_APPLY)
        j->verdict = SL_VERDICT_NOT_JUDGED;
    return SL_OK;
}
