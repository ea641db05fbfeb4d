/* Running values: the greatest and the least ever seen.
 *
 * They only ever grow (or shrink), so that writing one again changes nothing. They are written apart from the
 * transactions of the sums, in which they cannot be. */
#include "base/map.h"
#include "handlers/builtin/aggregate/aggregate_run_private.h"

#include "handlers/builtin/toolkit/apply.h"
#include "base/array.h"

/* ---- collecting ---- */

static void feed_add(struct aggregate_tally *t, size_t record, uint32_t extreme)
{
    SL_PUSH_IN(t->arena, t->feeds, t->n_feeds, t->room_feeds) =
        (struct aggregate_feed){(uint32_t)record, extreme};
}

/* The extreme of that row and amount; a new one begins with `number`. */
static uint32_t extreme_of(struct aggregate_tally *t, uint32_t counter, const struct aggregate_amount *amount,
                           struct sl_span number)
{
    struct sl_span parts[] = {t->counters.entries[counter].text,
                              amount->verb == SL_SET_MAX ? SL_LIT(">") : SL_LIT("<"), amount->name};
    uint32_t known = t->extreme_of.n;
    uint32_t x = sl_map_index(&t->extreme_of, t->a->host->join(t->arena, parts, 3));
    t->extremes = sl_array_fit_in(t->arena, t->extremes, x + 1, &t->room_extremes, sizeof(*t->extremes));
    if (x == known)
        t->extremes[x] = (struct aggregate_extreme){.counter = counter, .of = amount, .number = number};
    return x;
}

static enum sl_status counter_extremes(const struct aggregate_look *look, const struct aggregate_counter *c,
                                       size_t record, struct sl_error *error)
{
    struct aggregate_tally *t = look->t;
    for (size_t i = 0; i < c->n_amounts; i++) {
        const struct aggregate_amount *amount = &c->amounts[i];
        struct sl_span number;
        uint32_t counter;
        if (amount->verb == SL_ADD)
            continue;
        enum sl_status status = aggregate_counter_find(look, c, &counter, error);
        if (status == SL_OK)
            status = aggregate_amount_of(look, amount, &number, error);
        if (status != SL_OK)
            return status;
        uint32_t x = extreme_of(t, counter, amount, number);
        int order = t->a->host->number_compare(number, t->extremes[x].number);
        if (amount->verb == SL_SET_MAX ? order > 0 : order < 0)
            t->extremes[x].number = number;
        feed_add(t, record, x);
    }
    return SL_OK;
}

enum sl_status aggregate_extremes_take(struct aggregate_tally *t, const struct sl_record *r, size_t i,
                                       enum sl_image image, struct sl_error *error)
{
    struct aggregate_look look = aggregate_look_at(t, r, image);
    for (size_t c = 0; c < t->a->n_counters; c++) {
        struct sl_error why = SL_NO_ERROR;
        if (!aggregate_matches(&look, &t->a->counters[c]))
            continue;
        enum sl_status status = counter_extremes(&look, &t->a->counters[c], i, &why);
        if (status != SL_OK && !sl_render_is_skipped(t->a->missing, &why))
            return t->a->host->fail(error, status, why.code, "counters[%zu]: %s", c, why.text);
    }
    return SL_OK;
}

/* ---- writing ---- */

static void extreme_result(struct aggregate_run *run, uint32_t x, const struct sl_result *result)
{
    struct sl_error error;
    sl_outcome_error(run->a->host, result, &error);
    for (uint32_t k = 0; k < run->tally.n_feeds; k++)
        if (run->tally.feeds[k].extreme == x)
            sl_outcome_shared(&run->outcome, run->tally.feeds[k].record, &error);
}

static struct sl_table_op extreme_op(const struct aggregate_tally *t, const struct aggregate_extreme *extreme)
{
    const struct aggregate *a = t->a;
    struct sl_value number = {.type = SL_N, .raw = extreme->number};
    struct sl_set *sets = a->host->alloc(t->arena, 2 * sizeof(*sets));
    sets[0] = (struct sl_set){extreme->of->verb, extreme->of->name, a->host->value_json(number, t->arena)};
    if (a->marks_own)
        sets[1] = aggregate_own_mark(t);
    return (struct sl_table_op){.verb = SL_TABLE_UPDATE,
                                .key = t->counters.entries[extreme->counter].text,
                                .sets = sets,
                                .n_sets = a->marks_own ? 2 : 1};
}

void aggregate_extremes_write(struct aggregate_run *run)
{
    const struct aggregate_tally *t = &run->tally;
    uint32_t n = t->extreme_of.n;
    struct sl_table_op *ops = run->a->host->alloc(t->arena, n * sizeof(*ops));
    for (uint32_t x = 0; x < n; x++)
        ops[x] = extreme_op(t, &t->extremes[x]);
    const struct sl_result *results = sl_apply_table(run->slice, run->a->table, ops, n);
    for (uint32_t x = 0; x < n; x++)
        if (results[x].status != SL_OK)
            extreme_result(run, x, &results[x]);
}
