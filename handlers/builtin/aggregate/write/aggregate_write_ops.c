/* A transaction's operations: its units' rows in the ledger, and the rows that they add to. */
#include "base/map.h"
#include "handlers/builtin/aggregate/write/aggregate_write_private.h"

#include <inttypes.h>
#include <stdio.h>

/* Reads in which a row may be short because others write it at the same time; between two of them delta rows
 * are looked for (aggregate_delta_wait). */
#define SHORT_MAX 4

/* The value of the key attribute that the counter is spread by, with the sub-counter's number appended. */
static enum sl_status spread(const struct aggregate_packing *p, int64_t shard, struct sl_value *value,
                             struct sl_error *error)
{
    const struct aggregate *a = p->a;
    char number[24];
    if (value->type != SL_S)
        return a->host->fail(error, SL_FATAL, "ShardKey",
                             "shards: %.*s is not a string, and a number can only be appended to a string",
                             SL_ARG(a->key_names[a->shard_key]));
    snprintf(number, sizeof(number), "#%lld", (long long)shard);
    struct sl_span parts[] = {value->raw, sl_span_str(number)};
    value->raw = a->host->join(p->arena, parts, 2);
    return SL_OK;
}

enum sl_status aggregate_row_key(const struct aggregate_packing *p, uint32_t counter, int64_t shard,
                                 struct sl_span *out, struct sl_error *error)
{
    const struct aggregate *a = p->a;
    struct sl_value key = {.type = SL_M, .raw = p->run->tally.counters.entries[counter].text};
    struct sl_span values[SL_TEXT_KEY_ATTRIBUTES];
    *out = key.raw;
    if (a->shards == 0)
        return SL_OK;
    for (size_t i = 0; i < a->n_key_names; i++) {
        struct sl_value value = a->host->value_member(key, a->key_names[i]);
        enum sl_status status = i == a->shard_key ? spread(p, shard, &value, error) : SL_OK;
        if (status != SL_OK)
            return status;
        values[i] = a->host->value_json(value, p->arena);
    }
    *out = sl_text_key(a->host, p->arena, a->key_names, values, a->n_key_names);
    return SL_OK;
}

/* What is added to a row. n_sets is 0 when all sums are zero. SL_REJECT when a sum has more than 38 digits.
 */
static enum sl_status slot_sets(const struct aggregate_packing *p, const struct aggregate_slot *slot,
                                struct sl_table_op *op, struct sl_error *error)
{
    const struct aggregate *a = p->a;
    const struct sl_map *names = &p->run->tally.attributes;
    struct sl_set *sets = a->host->alloc(p->arena, (p->n_attributes + 1) * sizeof(*sets));
    size_t n = 0;
    for (uint32_t i = 0; i < p->n_attributes; i++) {
        struct sl_span text;
        if (!slot->sums[i] || a->host->decimal_is_zero(slot->sums[i]))
            continue;
        if (!a->host->decimal_text(slot->sums[i], p->arena, &text))
            return a->host->fail(error, SL_REJECT, "Overflow",
                                 "the sum for %.*s has more than 38 digits, or is out of range",
                                 SL_ARG(names->entries[i].text));
        struct sl_value sum = {.type = SL_N, .raw = text};
        sets[n++] = (struct sl_set){SL_ADD, names->entries[i].text, a->host->value_json(sum, p->arena)};
    }
    if (n > 0 && a->marks_own)
        sets[n++] = aggregate_own_mark(&p->run->tally);
    op->sets = sets;
    op->n_sets = n;
    return SL_OK;
}

static struct sl_table_op ledger_op(const struct aggregate_packing *p, const struct aggregate_unit *unit)
{
    return (struct sl_table_op){.verb = SL_TABLE_PUT,
                                .table = p->a->ledger_table,
                                .key = unit->key,
                                .item = unit->item,
                                .tests = unit->tests,
                                .n_tests = unit->n_tests,
                                .want_item = true};
}

/* Sums that are all zero need no operation. */
static enum sl_status sums_op(struct aggregate_packing *p, const struct aggregate_tx *tx,
                              const struct aggregate_slot *slot, struct sl_table_op *op,
                              struct sl_error *error)
{
    enum sl_status status = slot_sets(p, slot, op, error);
    return status == SL_OK && op->n_sets > 0 ? aggregate_row_key(p, slot->counter, tx->shard, &op->key, error)
                                             : status;
}

/* ---- values and members ---- */

/* The slot's terms of values or members, added up. */
static enum sl_status count_of(const struct aggregate_packing *p, const struct aggregate_slot *slot,
                               int64_t *out, struct sl_error *error)
{
    const struct sl_decimal *sum = slot->sums[p->run->tally.count];
    struct sl_value n = {.type = SL_N};
    *out = 0;
    if (!sum || (p->a->host->decimal_text(sum, p->arena, &n.raw) && p->a->host->value_int64(n, out)))
        return SL_OK;
    return p->a->host->fail(error, SL_FATAL, "LedgerRow",
                            "a row of the ledger counts a value so often that "
                            "aggregate did not write it");
}

static struct sl_span number_value(const struct aggregate_packing *p, int64_t n)
{
    char text[48];
    snprintf(text, sizeof(text), "{\"N\":\"%" PRId64 "\"}", n);
    struct sl_span span = sl_span_str(text);
    return p->a->host->join(p->arena, &span, 1);
}

static struct sl_test *test_of(const struct aggregate_packing *p, enum sl_test_verb verb, int64_t n)
{
    struct sl_test *test = p->a->host->alloc(p->arena, sizeof(*test));
    *test =
        (struct sl_test){.verb = verb, .name = SL_LIT(AGGREGATE_VALUE_COUNT), .value = number_value(p, n)};
    return test;
}

/* The first item with the value: the row is made. (One that says 0 is not ours, and is replaced.) */
static void first_op(const struct aggregate_packing *p, const struct aggregate_slot *slot,
                     struct sl_table_op *op)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, slot->change);
    op->verb = SL_TABLE_PUT;
    op->item = aggregate_value_row(&p->run->tally, slot->counter, sl_span_str(text));
    op->tests = test_of(p, p->run->tally.places[slot->counter].is_there ? SL_EQ : SL_ABSENT, 0);
}

/* Items come and go, and at least one stays: n >= 1 and n + change >= 1. */
static void middle_op(const struct aggregate_packing *p, const struct aggregate_slot *slot,
                      struct sl_table_op *op)
{
    struct sl_set *set = p->a->host->alloc(p->arena, sizeof(*set));
    *set = (struct sl_set){SL_ADD, SL_LIT(AGGREGATE_VALUE_COUNT), number_value(p, slot->change)};
    op->verb = SL_TABLE_UPDATE;
    op->sets = set;
    op->n_sets = 1;
    op->tests = test_of(p, SL_GT, slot->change < 0 ? -slot->change : 0);
}

static void count_value(struct aggregate_packing *p, const struct aggregate_slot *slot, bool is_less)
{
    struct sl_decimal **sum = &p->slots[slot->group].sums[p->run->tally.places[slot->counter].attribute];
    if (!*sum)
        *sum = p->a->host->decimal_new(p->arena);
    p->a->host->decimal_add(*sum, SL_LIT("1"), is_less);
}

/* Whoever writes the first or the last item of a value adds to its group what this makes of it, in the same
 * transaction. */
static enum sl_status value_op(struct aggregate_packing *p, struct aggregate_slot *slot,
                               struct sl_table_op *op, struct sl_error *error)
{
    struct aggregate_place *place = &p->run->tally.places[slot->counter];
    enum sl_status status = count_of(p, slot, &slot->change, error);
    if (status != SL_OK || slot->change == 0)
        return status;
    int64_t after = place->held + slot->change;
    if (after < 0 || !place->is_read) {
        place->n_short += place->is_read;
        p->run->is_short = true;
        place->is_read = false;
        return p->a->host->fail(error, SL_RETRY, "ValueRow", "a value's row holds less than is taken away");
    }
    *op = (struct sl_table_op){.table = p->a->ledger_table,
                               .key = p->run->tally.counters.entries[slot->counter].text,
                               .n_tests = 1,
                               .want_item = true};
    if (place->held == 0) {
        first_op(p, slot, op);
    } else if (after > 0) {
        middle_op(p, slot, op);
    } else {
        op->verb = SL_TABLE_DELETE;
        op->tests = test_of(p, SL_EQ, place->held);
    }
    if (place->held == 0 || after == 0)
        count_value(p, slot, after == 0);
    return SL_OK;
}

/* The item's row in the ledger says whether it is there. */
static enum sl_status member_op(const struct aggregate_packing *p, const struct aggregate_slot *slot,
                                struct sl_table_op *op, struct sl_error *error)
{
    int64_t n;
    enum sl_status status = count_of(p, slot, &n, error);
    if (status == SL_OK && n != 0)
        *op = (struct sl_table_op){.verb = n > 0 ? SL_TABLE_PUT : SL_TABLE_DELETE,
                                   .key = p->run->tally.counters.entries[slot->counter].text,
                                   .item = p->run->tally.places[slot->counter].item};
    return status;
}

enum sl_status aggregate_ops_short(const struct aggregate_packing *p, const struct aggregate_tx *tx,
                                   struct sl_error *error)
{
    for (size_t s = tx->first_slot; s < tx->first_slot + tx->n_slots; s++) {
        const struct aggregate_place *place = &p->run->tally.places[p->slots[s].counter];
        if (place->n_short > SHORT_MAX)
            return p->a->host->fail(
                error, SL_FATAL, "ValueRow",
                "a row sluice:distinct:%.*s:... of the ledger counts fewer items than the "
                "ledger takes away: another program changed it; `sluice verify` names its "
                "group, and docs/VERIFY.md says how to count anew",
                SL_ARG(p->a->name));
    }
    return SL_OK;
}

void aggregate_ops_learn(struct aggregate_packing *p, const struct aggregate_tx *tx,
                         const struct sl_result *results)
{
    for (size_t s = tx->first_slot; s < tx->first_slot + tx->n_slots; s++) {
        const struct aggregate_slot *slot = &p->slots[s];
        struct aggregate_place *place = &p->run->tally.places[slot->counter];
        if (place->kind != AGGREGATE_VALUE || slot->op == AGGREGATE_NONE)
            continue;
        const struct sl_result *result = results ? &results[slot->op] : NULL;
        if (!result)
            place->is_read = false;
        else if (result->condition_failed)
            aggregate_value_held(p->run, slot->counter, result->item);
        else if (result->status == SL_OK)
            place->held += slot->change;
        place->is_there = result && result->status == SL_OK ? place->held > 0 : place->is_there;
    }
}

/* ---- the transaction ---- */

static enum sl_status add_op(struct aggregate_packing *p, const struct aggregate_tx *tx,
                             struct aggregate_slot *slot, struct sl_error *error)
{
    struct sl_table_op op = {.verb = SL_TABLE_UPDATE};
    enum aggregate_kind kind = p->run->tally.places[slot->counter].kind;
    enum sl_status status = kind == AGGREGATE_VALUE    ? value_op(p, slot, &op, error)
                            : kind == AGGREGATE_MEMBER ? member_op(p, slot, &op, error)
                                                       : sums_op(p, tx, slot, &op, error);
    slot->op = AGGREGATE_NONE;
    if (status != SL_OK || !op.key.ptr)
        return status;
    slot->op = (uint32_t)(p->n_ops - tx->first_op);
    p->ops[p->n_ops++] = op;
    return SL_OK;
}

/* Values first: they change the sums of their groups. */
enum sl_status aggregate_ops_rows(struct aggregate_packing *p, struct aggregate_tx *tx,
                                  struct sl_error *error)
{
    enum sl_status status = SL_OK;
    for (int values = 1; values >= 0; values--)
        for (size_t s = tx->first_slot; s < tx->first_slot + tx->n_slots && status == SL_OK; s++) {
            struct aggregate_slot *slot = &p->slots[s];
            bool is_value = p->run->tally.places[slot->counter].kind == AGGREGATE_VALUE;
            if (is_value == (values == 1) && !slot->is_hot)
                status = add_op(p, tx, slot, error);
        }
    return status;
}

static enum sl_status add_delta(struct aggregate_packing *p, struct aggregate_tx *tx, struct sl_error *error)
{
    struct sl_table_op op;
    tx->delta_op = AGGREGATE_NONE;
    if (tx->n_hot == 0)
        return SL_OK;
    enum sl_status status = aggregate_delta_op(p, tx, &op, error);
    if (status != SL_OK || !op.item.ptr)
        return status;
    tx->delta_op = (uint32_t)(p->n_ops - tx->first_op);
    p->ops[p->n_ops++] = op;
    return SL_OK;
}

enum sl_status aggregate_write_ops(struct aggregate_packing *p, struct aggregate_tx *tx, uint32_t group,
                                   struct sl_error *error)
{
    tx->first_op = p->n_ops;
    for (size_t u = 0; u < tx->n_units; u++)
        if (p->order[tx->first_unit + u]->key.ptr)
            p->ops[p->n_ops++] = ledger_op(p, p->order[tx->first_unit + u]);
    enum sl_status status = aggregate_ops_rows(p, tx, error);
    if (status == SL_OK)
        status = add_delta(p, tx, error);
    if (status != SL_OK) {
        p->n_ops = tx->first_op;
        return status;
    }
    tx->n_ops = p->n_ops - tx->first_op;
    for (size_t k = 0; k < tx->n_ops; k++)
        p->ops[tx->first_op + k].group = p->a->has_ledger ? group : 0;
    return SL_OK;
}
