/* Rows whose counts are all zero: deleted, if the option says so.
 *
 * A row from which something was taken is read. If each count in it (an amount that is always 1) is 0 or is
 * not there, no item is left in its group, and all its sums are 0. It is deleted on the condition that each
 * count is still as it was read: whoever adds an item in between changes one. A process that is killed before
 * this leaves the row; the record comes again, and the row from which it took something is looked at again.
 */
#include "handlers/builtin/aggregate/write/aggregate_write_private.h"

#include "handlers/builtin/toolkit/apply.h"
#include "handlers/builtin/toolkit/array.h"

/* What `sluice repair` adds to a total is counted beside it. */
#define MARK SL_LIT("sluice_added_")

/* ---- what a row says ---- */

static bool is_known_name(const struct aggregate *a, struct sl_span name)
{
    if (sl_span_is(name, AGGREGATE_OWN) || (name.len > MARK.len && memcmp(name.ptr, MARK.ptr, MARK.len) == 0))
        return true;
    for (size_t i = 0; i < a->n_key_names; i++)
        if (sl_span_eq(a->key_names[i], name))
            return true;
    for (size_t i = 0; i < a->n_counters; i++) {
        const struct aggregate_counter *c = &a->counters[i];
        for (size_t k = 0; k < c->n_amounts; k++)
            if (sl_span_eq(c->amounts[k].name, name))
                return true;
        for (size_t k = 0; k < c->n_distinct; k++)
            if (sl_span_eq(c->distinct[k].name, name))
                return true;
    }
    return false;
}

/* An attribute that the route does not write is somebody's. */
static bool has_others(const struct aggregate_run *run, struct sl_value row)
{
    const struct sl_host *host = run->a->host;
    struct sl_value value;
    struct sl_span name;
    for (struct sl_iter iter = host->value_iter(row); host->value_next(&iter, &name, &value);)
        if (!is_known_name(run->a, host->json_unquote(run->slice->arena, name)))
            return true;
    return false;
}

/* Tests that each count is as it is in the row; false: one of them is not zero, or there is none. */
static bool test_counts(const struct aggregate_run *run, struct sl_value row, struct sl_table_op *op)
{
    const struct aggregate *a = run->a;
    const struct sl_keymap *names = &run->tally.attributes;
    struct sl_test *tests = a->host->alloc(run->slice->arena, (names->n + 1) * sizeof(*tests));
    bool any = false;
    for (uint32_t i = 0; i < names->n; i++) {
        struct sl_value held = a->host->value_member(row, names->entries[i].text);
        int64_t n = 0;
        if (!aggregate_counts_items(a, names->entries[i].text))
            continue;
        if (held.type != SL_NONE && (!a->host->value_int64(held, &n) || n != 0))
            return false;
        any = any || held.type != SL_NONE;
        tests[op->n_tests++] = (struct sl_test){.verb = held.type == SL_NONE ? SL_ABSENT : SL_EQ,
                                                .name = names->entries[i].text,
                                                .value = SL_LIT("{\"N\":\"0\"}")};
    }
    op->tests = tests;
    return any;
}

/* ---- reading and deleting ---- */

static enum sl_status failed(const struct aggregate_run *run, const struct sl_result *result,
                             struct sl_error *error)
{
    struct sl_error why;
    sl_outcome_error(run->a->host, result, &why);
    return run->a->host->fail(error, result->status == SL_REJECT ? SL_FATAL : result->status, why.code,
                              "a row that may be empty: %s", why.text);
}

static size_t rows_left(struct aggregate_run *run, struct sl_table_op *ops)
{
    struct aggregate_tally *t = &run->tally;
    size_t n = 0;
    for (uint32_t i = 0; i < run->deltas.n; i++)
        if (run->deltas.list[i].subtract)
            t->places[run->deltas.list[i].counter].is_left = true;
    for (uint32_t c = 0; c < t->counters.n; c++)
        if (t->places[c].is_left && t->places[c].kind == AGGREGATE_SUMS)
            ops[n++] = (struct sl_table_op){.verb = SL_TABLE_GET, .key = t->counters.entries[c].text};
    return n;
}

/* The rows among those that were read that are empty, as operations that delete them. A row whose read is
 * refused has a key that the table cannot have (an old image showed it): it is not there. */
static enum sl_status choose_empty(const struct aggregate_run *run, const struct sl_result *results,
                                   struct sl_table_op *ops, size_t *n, struct sl_error *error)
{
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        struct sl_value row = {.type = SL_M, .raw = results[i].item};
        struct sl_table_op op = {.verb = SL_TABLE_DELETE, .key = ops[i].key};
        if (results[i].status == SL_RETRY || results[i].status == SL_FATAL)
            return failed(run, &results[i], error);
        if (results[i].status == SL_OK && results[i].item.ptr && test_counts(run, row, &op) &&
            !has_others(run, row))
            ops[kept++] = op;
    }
    *n = kept;
    return SL_OK;
}

enum sl_status aggregate_delete_empty(struct aggregate_run *run, struct sl_error *error)
{
    const struct aggregate *a = run->a;
    if (!a->deletes_empty)
        return SL_OK;
    struct sl_table_op *ops = a->host->alloc(run->slice->arena, (run->tally.counters.n + 1) * sizeof(*ops));
    size_t n = rows_left(run, ops);
    const struct sl_result *results = aggregate_read(run, ops, n);
    enum sl_status status = choose_empty(run, results, ops, &n, error);
    if (status != SL_OK)
        return status;
    results = sl_apply_table(a->host, run->slice, a->table, ops, n);
    for (size_t i = 0; i < n && status == SL_OK; i++)
        if (results[i].status != SL_OK && !results[i].condition_failed)
            status = failed(run, &results[i], error);
    return status;
}
