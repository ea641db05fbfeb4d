/* Rows on which many transactions of a slice meet, and rows of values: what is known of them before the
 * transactions are made.
 *
 * Transactions that meet on a row follow each other, each a round trip. Where three or more would meet, they
 * write what they add into delta rows instead, which never meet, and one fold adds these to the row (see
 * aggregate_write_delta.c). By then the ledger has counted them, so a fold must not be refused for a reason
 * that is in its numbers or keys: a row is folded to only if it can be read, and if what it holds and what is
 * added to it are far from the limits of a number. */
#include "base/arena.h"
#include "base/map.h"
#include "handlers/builtin/aggregate/write/aggregate_write_private.h"

#include "base/array.h"

/* ---- rows of values ---- */

void aggregate_value_held(struct aggregate_run *run, uint32_t place, struct sl_span item)
{
    const struct sl_host *host = run->a->host;
    struct aggregate_place *of = &run->tally.places[place];
    struct sl_value row = {.type = SL_M, .raw = item}, n = {.type = SL_NONE};
    if (item.ptr)
        n = host->value_member(row, SL_LIT(AGGREGATE_VALUE_COUNT));
    of->is_read = true;
    of->is_there = item.ptr != NULL;
    if (!host->value_int64(n, &of->held))
        of->held = 0;
}

/* ---- how many meet ---- */

static bool adds_up(const struct aggregate_packing *p, const struct aggregate_slot *slot, uint32_t attribute)
{
    struct sl_span text;
    return !slot->sums[attribute] || (p->a->host->decimal_text(slot->sums[attribute], p->arena, &text) &&
                                      aggregate_number_is_moderate(text));
}

/* For each row: how many transactions meet on it; 0 when what one of them adds may not add up. */
static uint32_t *count_meetings(struct aggregate_packing *p)
{
    uint32_t n = p->run->tally.counters.n;
    uint32_t *meetings = sl_arena_zalloc(p->arena, (n + 1) * sizeof(*meetings));
    for (uint32_t s = 0; s < p->n_slots; s++)
        meetings[p->slots[s].counter]++;
    for (uint32_t s = 0; s < p->n_slots; s++)
        for (uint32_t i = 0; i < p->n_attributes && meetings[p->slots[s].counter] >= AGGREGATE_HOT_TXS; i++)
            if (!adds_up(p, &p->slots[s], i))
                meetings[p->slots[s].counter] = 0;
    return meetings;
}

/* Sub-counters are drawn in turn. */
static bool meets_often(const struct aggregate_packing *p, const uint32_t *meetings, uint32_t counter)
{
    enum aggregate_kind kind = p->run->tally.places[counter].kind;
    size_t rows = kind == AGGREGATE_SUMS && p->a->shards > 0 ? (size_t)p->a->shards : 1;
    return kind != AGGREGATE_MEMBER && (meetings[counter] + rows - 1) / rows >= AGGREGATE_HOT_TXS;
}

static bool is_moderate_value(const struct aggregate_packing *p, struct sl_value held)
{
    struct sl_decimal *number = p->a->host->decimal_new(p->arena);
    struct sl_span text;
    return held.type == SL_NONE ||
           (held.type == SL_N && p->a->host->decimal_add(number, held.raw, false) &&
            p->a->host->decimal_text(number, p->arena, &text) && aggregate_number_is_moderate(text));
}

/* What the row holds adds up, too. */
static bool is_moderate(const struct aggregate_packing *p, const struct sl_result *result)
{
    const struct sl_host *host = p->a->host;
    const struct sl_map *names = &p->run->tally.attributes;
    struct sl_value row = {.type = SL_M, .raw = result->item};
    for (uint32_t i = 0; i < p->n_attributes && result->item.ptr; i++)
        if (!is_moderate_value(p, host->value_member(row, names->entries[i].text)))
            return false;
    return result->status == SL_OK;
}

/* ---- reading ---- */

struct look {
    struct sl_table_op *ops;
    uint32_t *counters;
    size_t n;
};

static struct look look_new(const struct aggregate_packing *p)
{
    size_t room = p->run->tally.counters.n + 1;
    return (struct look){.ops = p->a->host->alloc(p->arena, room * sizeof(struct sl_table_op)),
                         .counters = p->a->host->alloc(p->arena, room * sizeof(uint32_t))};
}

static void look_add(struct look *look, uint32_t counter, struct sl_table_op op)
{
    look->counters[look->n] = counter;
    look->ops[look->n++] = op;
}

static void look_at_values(const struct aggregate_packing *p, struct look *look)
{
    const struct aggregate_tally *t = &p->run->tally;
    bool *is_seen = sl_arena_zalloc(p->arena, (t->counters.n + 1) * sizeof(*is_seen));
    for (uint32_t s = 0; s < p->n_slots; s++) {
        uint32_t c = p->slots[s].counter;
        if (t->places[c].kind != AGGREGATE_VALUE || t->places[c].is_read || is_seen[c])
            continue;
        is_seen[c] = true;
        look_add(look, c,
                 (struct sl_table_op){
                     .verb = SL_TABLE_GET, .table = p->a->ledger_table, .key = t->counters.entries[c].text});
    }
}

static enum sl_status look_values(struct aggregate_packing *p, const struct look *look,
                                  const struct sl_result *results, struct sl_error *error)
{
    for (size_t i = 0; i < look->n; i++) {
        if (p->run->tally.places[look->counters[i]].kind != AGGREGATE_VALUE)
            continue;
        if (results[i].status != SL_OK) {
            sl_outcome_error(p->a->host, &results[i], error);
            return results[i].status;
        }
        aggregate_value_held(p->run, look->counters[i], results[i].item);
    }
    return SL_OK;
}

enum sl_status aggregate_hot_values(struct aggregate_packing *p, struct sl_error *error)
{
    struct look look = look_new(p);
    look_at_values(p, &look);
    const struct sl_result *results = aggregate_read(p->run, look.ops, look.n);
    return look_values(p, &look, results, error);
}

/* A key that cannot be made is told of by the transaction. */
static void look_at_hot(const struct aggregate_packing *p, const uint32_t *meetings, struct look *look)
{
    for (uint32_t c = 0; c < p->run->tally.counters.n; c++) {
        struct sl_table_op op = {.verb = SL_TABLE_PEEK};
        if (p->run->tally.places[c].kind == AGGREGATE_SUMS && meets_often(p, meetings, c) &&
            aggregate_row_key(p, c, p->txs[0].shard, &op.key, NULL) == SL_OK)
            look_add(look, c, op);
    }
}

enum sl_status aggregate_hot_find(struct aggregate_packing *p, struct sl_error *error)
{
    const uint32_t *meetings = count_meetings(p);
    struct aggregate_tally *t = &p->run->tally;
    bool *is_hot = sl_arena_zalloc(p->arena, (t->counters.n + 1) * sizeof(*is_hot)), any = false;
    struct look look = look_new(p);
    look_at_values(p, &look);
    look_at_hot(p, meetings, &look);
    const struct sl_result *results = aggregate_read(p->run, look.ops, look.n);
    enum sl_status status = look_values(p, &look, results, error);
    for (size_t i = 0; i < look.n && status == SL_OK; i++) {
        uint32_t c = look.counters[i];
        is_hot[c] = t->places[c].kind == AGGREGATE_SUMS && is_moderate(p, &results[i]);
        any = any || is_hot[c];
    }
    for (uint32_t c = 0; c < t->counters.n; c++)
        if (t->places[c].kind == AGGREGATE_VALUE)
            is_hot[c] = meets_often(p, meetings, c) && is_hot[t->places[c].group];
    p->is_hot = any ? is_hot : NULL;
    return status;
}
