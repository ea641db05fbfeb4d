/* A transaction's operations: its units' rows in the ledger, and its counters' rows in the totals. */
#include "handlers/builtin/aggregate/write/aggregate_write_private.h"

#include <stdio.h>

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

/* The key of the counter's row, or of its sub-counter's. */
static enum sl_status row_key(const struct aggregate_packing *p, uint32_t counter, int64_t shard,
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
    const struct sl_keymap *names = &p->run->tally.attributes;
    struct sl_set *sets = a->host->alloc(p->arena, (names->n + 1) * sizeof(*sets));
    size_t n = 0;
    for (uint32_t i = 0; i < names->n; i++) {
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
static enum sl_status add_slot(struct aggregate_packing *p, const struct aggregate_tx *tx,
                               struct aggregate_slot *slot, struct sl_error *error)
{
    struct sl_table_op *op = &p->ops[p->n_ops];
    *op = (struct sl_table_op){.verb = SL_TABLE_UPDATE};
    slot->op = AGGREGATE_NONE;
    enum sl_status status = slot_sets(p, slot, op, error);
    if (status != SL_OK || op->n_sets == 0)
        return status;
    slot->op = (uint32_t)(p->n_ops++ - tx->first_op);
    return row_key(p, slot->counter, tx->shard, &op->key, error);
}

enum sl_status aggregate_write_ops(struct aggregate_packing *p, struct aggregate_tx *tx, uint32_t group,
                                   struct sl_error *error)
{
    enum sl_status status = SL_OK;
    tx->first_op = p->n_ops;
    for (size_t u = 0; u < tx->n_units; u++)
        if (p->order[tx->first_unit + u]->key.ptr)
            p->ops[p->n_ops++] = ledger_op(p, p->order[tx->first_unit + u]);
    for (size_t s = 0; s < tx->n_slots && status == SL_OK; s++)
        status = add_slot(p, tx, &p->slots[tx->first_slot + s], error);
    if (status != SL_OK) {
        p->n_ops = tx->first_op;
        return status;
    }
    tx->n_ops = p->n_ops - tx->first_op;
    for (size_t k = 0; k < tx->n_ops; k++)
        p->ops[tx->first_op + k].group = p->a->has_ledger ? group : 0;
    return SL_OK;
}
