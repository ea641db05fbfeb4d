/* Rows in which all is zero: deleted, if the option says so.
 *
 * A row from which something was taken is read. If every sum and every count of different values in it is 0
 * or is not there, and one of them counts items (an amount that is always 1), no item is left in its group.
 * Counts alone do not say so: while delta rows are still to be folded, counts can be 0 and sums not, and what
 * the row holds then is owed by the fold. The row is deleted on the condition that each number is as it was
 * read, so nobody's number is lost: an absent row and one of zeros are the same to whoever adds. A process
 * that is killed before this leaves the row; the record is delivered again, and the row from which it took
 * something is looked at again. */
#include "handlers/builtin/aggregate/write/aggregate_write_private.h"

#include "handlers/builtin/toolkit/apply.h"
#include "base/array.h"

/* ---- what a row says ---- */

static bool is_known_name(const struct aggregate *a, struct sl_span name)
{
    if (sl_span_is(name, AGGREGATE_OWN))
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

/* An attribute that the route does not write is somebody's. One is what `sluice repair` counts beside a
 * total: if it went with the row, a repair of before could add its number once more. */
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

/* Tests that the number is 0 or absent, as it is in the row. False: it is neither. */
static bool test_zero(const struct aggregate_run *run, struct sl_value row, struct sl_span name,
                      struct sl_table_op *op, struct sl_test *tests)
{
    struct sl_value held = run->a->host->value_member(row, name);
    int64_t n = 0;
    for (size_t i = 0; i < op->n_tests; i++)
        if (sl_span_eq(tests[i].name, name))
            return true;
    tests[op->n_tests++] = (struct sl_test){
        .verb = held.type == SL_NONE ? SL_ABSENT : SL_EQ, .name = name, .value = SL_LIT("{\"N\":\"0\"}")};
    return held.type == SL_NONE || (run->a->host->value_int64(held, &n) && n == 0);
}

/* Running values do not belong to the items that are there. False: a number is not zero, or none counts
 * items. */
static bool test_all(const struct aggregate_run *run, struct sl_value row, struct sl_table_op *op)
{
    const struct aggregate *a = run->a;
    size_t room = 0;
    bool is_zero = true, counts = false;
    for (size_t i = 0; i < a->n_counters; i++)
        room += a->counters[i].n_amounts + a->counters[i].n_distinct;
    struct sl_test *tests = a->host->alloc(run->slice->arena, (room + 1) * sizeof(*tests));
    for (size_t i = 0; i < a->n_counters && is_zero; i++) {
        const struct aggregate_counter *c = &a->counters[i];
        for (size_t k = 0; k < c->n_amounts && is_zero; k++) {
            const struct sl_span name = c->amounts[k].name;
            if (c->amounts[k].verb != SL_ADD)
                continue;
            is_zero = test_zero(run, row, name, op, tests);
            counts = counts || (aggregate_counts_items(a, name) && a->host->value_member(row, name).type);
        }
        for (size_t k = 0; k < c->n_distinct && is_zero; k++)
            is_zero = test_zero(run, row, c->distinct[k].name, op, tests);
    }
    op->tests = tests;
    return is_zero && counts;
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
        if (results[i].status == SL_OK && results[i].item.ptr && test_all(run, row, &op) &&
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
    results = sl_apply_table(run->slice, a->table, ops, n);
    for (size_t i = 0; i < n && status == SL_OK; i++)
        if (results[i].status != SL_OK && !results[i].condition_failed)
            status = failed(run, &results[i], error);
    return status;
}
