/* What a change costs: the rows that a batch writes, by the same rules as they are packed into transactions.
 * All rows are taken to fit one unit. A test holds this against what DynamoDB Local says that it consumed. */
#include "handlers/builtin/aggregate/write/aggregate_write_private.h"

#include <stdio.h>

/* What one item writes to. */
struct rows {
    size_t own;    /* of the item alone: the ledger's row, its members' */
    size_t shared; /* that other items may write to as well: totals, values of distinct */
    size_t values; /* of these, those of distinct, which are read first */
    size_t running;
    size_t lessened; /* totals of which something is taken away: where empty rows go, each is looked at */
};

/* A MODIFY that changes amounts: group, values and numbers of members stay. */
static void add_rows(struct rows *rows, const struct aggregate_counter *c, enum sl_event event)
{
    bool stays = event == SL_MODIFY;
    size_t sums = 0, running = 0;
    for (size_t k = 0; k < c->n_amounts; k++) {
        sums += c->amounts[k].verb == SL_ADD && !(stays && c->amounts[k].constant.ptr);
        running += c->amounts[k].verb != SL_ADD && event != SL_REMOVE;
    }
    rows->shared += sums || (c->n_distinct && !stays);
    rows->running += running;
    rows->lessened += event == SL_REMOVE || (stays && sums);
    if (stays)
        return;
    rows->shared += c->n_distinct;
    rows->values += c->n_distinct;
    rows->own += c->has_members;
}

/* An item that contributes nothing has no row in the ledger, but where the ledger has to be asked for it. */
static struct rows rows_of(const struct aggregate *a, enum sl_event event, bool reads_ledger)
{
    struct rows rows = {.own = a->has_ledger && (aggregate_has_sums(a) || reads_ledger)};
    for (size_t i = 0; i < a->n_counters; i++)
        add_rows(&rows, &a->counters[i], a->per_event ? SL_INSERT : event);
    return rows;
}

static size_t divide_up(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

/* Rows that a batch writes in transactions, of which each has one row of every total at most. Where three or
 * more would meet, each has a delta row instead, and one transaction more adds these to the totals. */
static size_t count_writes(const struct aggregate *a, const struct rows *rows, const struct sl_price *price,
                           size_t *peeks)
{
    size_t n = price->records, own = rows->own ? rows->own : 1;
    if (price->is_spread)
        return n * (rows->own + rows->shared);
    size_t txs = divide_up(n, (SL_TABLE_GROUP_MAX - rows->shared) / own);
    size_t meet = a->shards > 0 ? divide_up(txs, (size_t)a->shards) : txs;
    if (meet < AGGREGATE_HOT_TXS || rows->shared == 0)
        return n * rows->own + txs * rows->shared;
    txs = divide_up(n, (SL_TABLE_GROUP_MAX - 1) / own);
    *peeks = rows->shared - rows->values;
    return n * rows->own + 2 * txs + rows->shared;
}

static const char *formula_of(const struct aggregate *a, const struct rows *rows,
                              const struct sl_price *price)
{
    char text[320];
    const char *stays = price->event == SL_MODIFY && !a->per_event ? ", if the group stays" : "";
    if (a->has_ledger)
        snprintf(
            text, sizeof(text),
            "2 for each row of its own (%zu), and 2 for each row of totals (%zu), once per transaction%s",
            rows->own, rows->shared, stays);
    else
        snprintf(text, sizeof(text), "1 for each row of totals (%zu), once per batch%s", rows->shared, stays);
    const struct sl_span parts[] = {sl_span_str(text)};
    return a->host->join(price->arena, parts, 1).ptr;
}

/* Where every item is alone in its group, its removal empties the group. */
static size_t count_emptied(const struct aggregate *a, const struct sl_price *price)
{
    bool empties = a->deletes_empty && price->event == SL_REMOVE && price->is_spread;
    return empties ? price->records * a->n_counters : 0;
}

enum sl_status aggregate_price(void *self, struct sl_price *price, struct sl_error *error)
{
    const struct aggregate *a = self;
    bool reads_ledger =
        !a->per_event && a->has_ledger && price->view == SL_VIEW_NEW_IMAGE && price->event != SL_INSERT;
    struct rows rows = rows_of(a, price->event, reads_ledger);
    size_t groups = price->is_spread ? price->records : 1, peeks = 0;
    size_t singles = groups * rows.running + count_emptied(a, price);
    (void)error;
    price->writes = a->has_ledger ? count_writes(a, &rows, price, &peeks) : groups * rows.shared;
    /* Rows to which delta rows were added are all looked at. */
    size_t looks = peeks ? peeks : rows.lessened;
    price->reads = groups * (rows.values + (a->deletes_empty ? looks : 0));
    price->reads += reads_ledger ? price->records : 0;
    price->write_units = (double)price->writes * (a->has_ledger ? 2 : 1) + (double)singles;
    price->read_units = (double)price->reads + (double)peeks / 2;
    price->writes += singles;
    price->reads += peeks;
    price->formula = formula_of(a, &rows, price);
    return SL_OK;
}
