/* Reading many rows: of those that are throttled, only these are asked for again. */
#include "handlers/builtin/aggregate/write/aggregate_write_private.h"

#include "handlers/builtin/toolkit/apply.h"

/* The reads that are to be made again; `at` says which they are. */
static size_t choose_failed(const struct sl_result *results, size_t n, size_t *at)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (results[i].status == SL_RETRY)
            at[left++] = i;
    return left;
}

const struct sl_result *aggregate_read(const struct aggregate_run *run, const struct sl_table_op *ops,
                                       size_t n)
{
    const struct sl_host *host = run->a->host;
    struct sl_result *results = sl_apply_table(run->slice, run->a->table, ops, n);
    size_t *at = host->alloc(run->slice->arena, (n + 1) * sizeof(*at));
    struct sl_table_op *again = host->alloc(run->slice->arena, (n + 1) * sizeof(*again));
    size_t left = choose_failed(results, n, at), before = n;
    while (left > 0 && left < before && host->now_ms(run->a->route) < run->slice->deadline_ms) {
        for (size_t i = 0; i < left; i++)
            again[i] = ops[at[i]];
        const struct sl_result *more = sl_apply_table(run->slice, run->a->table, again, left);
        for (size_t i = 0; i < left; i++)
            results[at[i]] = more[i];
        before = left;
        left = choose_failed(results, n, at);
    }
    return results;
}
