/* Units into transactions: ledger rows and the sums that go with them, all or none. */
#include "handlers/aggregate.h"

#include <stdio.h>

/* A row's bytes in a request, beside its own text: names of members, the key once more, a test's value. */
#define OP_BYTES 512

#define NONE UINT32_MAX

/* A counter row in one transaction. */
struct slot {
    uint32_t counter;
    struct sl_decimal **sums; /* by attribute; NULL: nothing to add */
    uint32_t op;              /* among its transaction's; NONE: all sums are zero */
};

struct tx {
    size_t first_unit, n_units; /* in the order in which they are packed */
    size_t first_slot, n_slots;
    int64_t shard;
    size_t first_op, n_ops;
    uint32_t wave;
};

struct packing {
    struct aggregate_write *w;
    const struct aggregate *a;
    struct sl_arena *arena;
    struct aggregate_unit **order;
    size_t n_order;
    struct slot *slots;
    size_t n_slots, room_slots;
    struct tx *txs;
    size_t n_txs;
    uint32_t *slot_of; /* counter -> its slot in the transaction at hand; older ones are below its first */
    struct sl_keymap rows; /* counter rows as they are written, with their sub-counters */
    struct sl_table_op *ops;
    struct sl_result *results;
    size_t n_ops;
};

/* ---- which units go together ---- */

static uint32_t first_counter(const struct aggregate_write *w, const struct aggregate_unit *unit)
{
    uint32_t first = NONE;
    for (uint32_t i = 0; i < unit->delta.n; i++) {
        uint32_t counter = w->deltas->list[unit->delta.first + i].counter;
        first = counter < first ? counter : first;
    }
    return first;
}

/* Units of one counter row stand together: so that it is written few times, and others meanwhile. */
static void sort_units(struct packing *p)
{
    struct aggregate_write *w = p->w;
    uint32_t n = w->tally->counters.n;
    uint32_t *begin = p->a->host->alloc(p->arena, (n + 2) * sizeof(*begin));
    memset(begin, 0, (n + 2) * sizeof(*begin));
    for (size_t u = 0; u < w->n_units; u++) {
        uint32_t first = first_counter(w, &w->units[u]);
        if (w->units[u].state == AGGREGATE_PENDING)
            begin[(first < n ? first : n) + 1]++;
    }
    for (uint32_t c = 1; c <= n + 1; c++)
        begin[c] += begin[c - 1];
    p->n_order = begin[n + 1];
    p->order = p->a->host->alloc(p->arena, p->n_order * sizeof(struct aggregate_unit *));
    for (size_t u = 0; u < w->n_units; u++) {
        uint32_t first = first_counter(w, &w->units[u]);
        if (w->units[u].state == AGGREGATE_PENDING)
            p->order[begin[first < n ? first : n]++] = &w->units[u];
    }
}

/* ---- sums ---- */

static struct slot *slot_add(struct packing *p, uint32_t counter)
{
    if (p->n_slots == p->room_slots) {
        size_t room = p->room_slots ? 2 * p->room_slots : 128;
        struct slot *grown = p->a->host->alloc(p->arena, room * sizeof(*grown));
        if (p->n_slots > 0)
            memcpy(grown, p->slots, p->n_slots * sizeof(*grown));
        p->slots = grown;
        p->room_slots = room;
    }
    struct slot *slot = &p->slots[p->n_slots];
    uint32_t n = p->w->tally->attributes.n;
    slot->counter = counter;
    slot->sums = p->a->host->alloc(p->arena, n * sizeof(struct sl_decimal *));
    memset(slot->sums, 0, n * sizeof(struct sl_decimal *));
    p->slot_of[counter] = (uint32_t)p->n_slots++;
    return slot;
}

static bool has_slot(const struct packing *p, const struct tx *tx, uint32_t counter)
{
    uint32_t s = p->slot_of[counter];
    return s != NONE && s >= tx->first_slot && p->slots[s].counter == counter;
}

/* Numbers were checked when the terms were made. */
static void unit_sum(struct packing *p, struct tx *tx, const struct aggregate_unit *unit)
{
    const struct sl_host *host = p->a->host;
    for (uint32_t i = 0; i < unit->delta.n; i++) {
        const struct aggregate_term *term = &p->w->deltas->list[unit->delta.first + i];
        struct slot *slot = has_slot(p, tx, term->counter) ? &p->slots[p->slot_of[term->counter]]
                                                           : slot_add(p, term->counter);
        struct sl_decimal **sum = &slot->sums[term->attribute];
        if (!*sum)
            *sum = host->decimal_new(p->arena);
        host->decimal_add(*sum, term->number, term->subtract);
    }
    tx->n_slots = p->n_slots - tx->first_slot;
}

static size_t new_slots(const struct packing *p, const struct tx *tx, const struct aggregate_unit *unit)
{
    size_t n = 0;
    for (uint32_t i = 0; i < unit->delta.n; i++) {
        uint32_t counter = p->w->deltas->list[unit->delta.first + i].counter;
        bool seen = has_slot(p, tx, counter);
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = p->w->deltas->list[unit->delta.first + k].counter == counter;
        n += !seen;
    }
    return n;
}

/* ---- packing ---- */

static struct tx *tx_begin(struct packing *p, size_t unit)
{
    struct tx *tx = &p->txs[p->n_txs++];
    *tx = (struct tx){.first_unit = unit, .first_slot = p->n_slots};
    if (p->a->shards > 0)
        tx->shard = (int64_t)((p->a->host->random(p->a->route) >> 1) % (uint64_t)p->a->shards);
    return tx;
}

static bool fits(const struct packing *p, const struct tx *tx, const struct aggregate_unit *unit,
                 size_t bytes)
{
    return bytes <= AGGREGATE_TX_BYTES &&
           tx->n_units + tx->n_slots + 1 + new_slots(p, tx, unit) <= AGGREGATE_TX_OPS;
}

static void pack(struct packing *p)
{
    const struct sl_host *host = p->a->host;
    uint32_t n = p->w->tally->counters.n;
    p->slot_of = host->alloc(p->arena, n * sizeof(*p->slot_of));
    memset(p->slot_of, 0xFF, n * sizeof(*p->slot_of));
    p->txs = host->alloc(p->arena, p->n_order * sizeof(*p->txs));
    struct tx *tx = NULL;
    size_t bytes = 0;
    for (size_t u = 0; u < p->n_order; u++) {
        const struct aggregate_unit *unit = p->order[u];
        size_t unit_bytes = 2 * unit->item.len + OP_BYTES;
        if (!tx || (p->a->has_ledger && !fits(p, tx, unit, bytes + unit_bytes))) {
            tx = tx_begin(p, u);
            bytes = 0;
        }
        unit_sum(p, tx, unit);
        tx->n_units++;
        bytes += unit_bytes;
    }
}

/* ---- operations ---- */

/* The row's key, its sub-counter's number appended to the string it is spread by. */
static enum sl_status row_key(const struct packing *p, uint32_t counter, int64_t shard, struct sl_span *out,
                              struct sl_error *error)
{
    const struct aggregate *a = p->a;
    struct sl_value key = {.type = SL_M, .raw = p->w->tally->counters.entries[counter].text}, value = {0};
    *out = key.raw;
    if (a->shards == 0)
        return SL_OK;
    size_t i = 0;
    struct sl_iter iter = a->host->value_iter(key);
    while (a->host->value_next(&iter, NULL, &value) && i < a->shard_key)
        i++;
    if (value.type != SL_S)
        return a->host->fail(error, SL_FATAL, "ShardKey",
                             "shards: %.*s is no string, so no number can be appended",
                             SL_TEXT_ARG(a->key_names[a->shard_key]));
    char number[24];
    int n = snprintf(number, sizeof(number), "#%lld", (long long)shard);
    const char *at = value.raw.ptr + value.raw.len, *end = key.raw.ptr + key.raw.len;
    struct sl_span parts[] = {
        {key.raw.ptr, (size_t)(at - key.raw.ptr)}, {number, (size_t)n}, {at, (size_t)(end - at)}};
    *out = a->host->join(p->arena, parts, 3);
    return SL_OK;
}

static struct sl_span number_value(const struct packing *p, struct sl_span number)
{
    struct sl_value value = {.type = SL_N, .raw = number};
    return sl_text_value(p->a->host, value, p->arena);
}

/* What is added to a row; n_sets is 0 when all sums are zero. SL_REJECT when a sum has more than 38 digits.
 */
static enum sl_status slot_sets(const struct packing *p, const struct slot *slot, struct sl_table_op *op,
                                struct sl_error *error)
{
    const struct aggregate *a = p->a;
    const struct sl_keymap *names = &p->w->tally->attributes;
    struct sl_set *sets = a->host->alloc(p->arena, (names->n + 1) * sizeof(*sets));
    size_t n = 0;
    for (uint32_t i = 0; i < names->n; i++) {
        struct sl_span text;
        if (!slot->sums[i] || a->host->decimal_is_zero(slot->sums[i]))
            continue;
        if (!a->host->decimal_text(slot->sums[i], p->arena, &text))
            return a->host->fail(error, SL_REJECT, "Overflow",
                                 "what is to be added to %.*s has more than 38 digits, or is out of range",
                                 SL_TEXT_ARG(names->entries[i].text));
        sets[n++] = (struct sl_set){SL_ADD, names->entries[i].text, number_value(p, text)};
    }
    if (n > 0 && a->marks_own)
        sets[n++] =
            (struct sl_set){SL_SET, SL_TEXT(AGGREGATE_OWN), sl_text_string_value(a->host, a->name, p->arena)};
    op->sets = sets;
    op->n_sets = n;
    return SL_OK;
}

static void ledger_op(const struct packing *p, struct aggregate_unit *unit, struct sl_table_op *op)
{
    *op = (struct sl_table_op){.verb = SL_TABLE_PUT,
                               .table = p->a->ledger_table,
                               .key = unit->key,
                               .item = unit->item,
                               .tests = unit->tests,
                               .n_tests = unit->n_tests,
                               .want_item = true};
}

static enum sl_status tx_ops(struct packing *p, struct tx *tx, uint32_t group, struct sl_error *error)
{
    tx->first_op = p->n_ops;
    for (size_t u = 0; u < tx->n_units; u++)
        if (p->order[tx->first_unit + u]->key.ptr)
            ledger_op(p, p->order[tx->first_unit + u], &p->ops[p->n_ops++]);
    for (size_t s = 0; s < tx->n_slots; s++) {
        struct slot *slot = &p->slots[tx->first_slot + s];
        struct sl_table_op *op = &p->ops[p->n_ops];
        *op = (struct sl_table_op){.verb = SL_TABLE_UPDATE};
        enum sl_status status = slot_sets(p, slot, op, error);
        if (status == SL_OK && op->n_sets > 0)
            status = row_key(p, slot->counter, tx->shard, &op->key, error);
        if (status != SL_OK)
            return status;
        slot->op = op->n_sets > 0 ? (uint32_t)(p->n_ops - tx->first_op) : NONE;
        p->n_ops += op->n_sets > 0;
    }
    tx->n_ops = p->n_ops - tx->first_op;
    for (size_t k = 0; k < tx->n_ops; k++)
        p->ops[tx->first_op + k].group = p->a->has_ledger ? group : 0;
    return SL_OK;
}

/* ---- waves: transactions that share no row fly together ---- */

static void tx_failed(struct packing *p, const struct tx *tx, const struct sl_error *error)
{
    for (size_t u = 0; u < tx->n_units; u++)
        p->w->failed(p->w->arg, p->order[tx->first_unit + u], error);
}

/* Two transactions that meet in one row would only refuse each other: each goes into the first wave behind
 * all that share a row with it. Returns the number of waves. */
static uint32_t order_in_waves(struct packing *p)
{
    uint32_t most = 0;
    sl_keymap_init(&p->rows, p->a->host, p->arena, p->n_slots + 1);
    uint32_t *free_from = p->a->host->alloc(p->arena, (p->n_slots + 1) * sizeof(*free_from));
    memset(free_from, 0, (p->n_slots + 1) * sizeof(*free_from));
    for (size_t i = 0; i < p->n_txs; i++) {
        struct tx *tx = &p->txs[i];
        size_t end = tx->first_op + tx->n_ops;
        for (size_t k = tx->first_op; k < end; k++) {
            uint32_t row =
                p->ops[k].verb == SL_TABLE_UPDATE ? sl_keymap_index(&p->rows, p->ops[k].key) : NONE;
            if (row != NONE && free_from[row] > tx->wave)
                tx->wave = free_from[row];
        }
        for (size_t k = tx->first_op; k < end; k++)
            if (p->ops[k].verb == SL_TABLE_UPDATE)
                free_from[sl_keymap_index(&p->rows, p->ops[k].key)] = tx->wave + 1;
        most = tx->wave + 1 > most ? tx->wave + 1 : most;
    }
    return most;
}

/* ---- results ---- */

static bool is_bystander(const struct sl_result *result)
{
    return result->status == SL_OK || result->condition_failed ||
           (result->status == SL_REJECT && result->code && strcmp(result->code, "TransactionCanceled") == 0);
}

/* What says most of a transaction that failed: the environment before a refusal; NULL when there is none. */
static const struct sl_result *telling(const struct sl_result *results, size_t n)
{
    const struct sl_result *worst = NULL;
    for (size_t i = 0; i < n; i++)
        if (!is_bystander(&results[i]) && (!worst || worst->status == SL_REJECT))
            worst = &results[i];
    return worst;
}

static bool any_failed(const struct sl_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (results[i].status != SL_OK)
            return true;
    return false;
}

/* Units whose row was another than expected are told; the others stay pending, as nothing was written. */
static void units_refused(struct packing *p, const struct tx *tx, const struct sl_result *results)
{
    size_t k = 0;
    for (size_t u = 0; u < tx->n_units; u++) {
        struct aggregate_unit *unit = p->order[tx->first_unit + u];
        if (!unit->key.ptr)
            continue;
        if (results[k].condition_failed)
            p->w->refused(p->w->arg, unit, results[k].item);
        k++;
    }
}

/* Without a ledger each row stands for itself, and fails those that add to it. */
static void sums_result(struct packing *p, const struct tx *tx, const struct sl_result *results)
{
    struct sl_error error;
    for (size_t u = 0; u < tx->n_units; u++) {
        struct aggregate_unit *unit = p->order[tx->first_unit + u];
        const struct sl_result *worst = NULL;
        for (uint32_t i = 0; i < unit->delta.n; i++) {
            uint32_t op = p->slots[p->slot_of[p->w->deltas->list[unit->delta.first + i].counter]].op;
            if (op != NONE && results[op].status != SL_OK && (!worst || worst->status == SL_REJECT))
                worst = &results[op];
        }
        unit->state = AGGREGATE_DONE;
        if (!worst)
            continue;
        sl_outcome_error(p->a->host, worst, &error);
        p->w->failed(p->w->arg, unit, &error);
    }
}

static void tx_result(struct packing *p, const struct tx *tx, const struct sl_result *results)
{
    if (!p->a->has_ledger) {
        sums_result(p, tx, results);
        return;
    }
    const struct sl_result *cause = telling(results, tx->n_ops);
    bool refused = false;
    for (size_t k = 0; k < tx->n_ops; k++)
        refused = refused || results[k].condition_failed;
    if (refused && (!cause || cause->status == SL_REJECT)) {
        units_refused(p, tx, results);
        return;
    }
    if (!any_failed(results, tx->n_ops)) {
        for (size_t u = 0; u < tx->n_units; u++)
            p->order[tx->first_unit + u]->state = AGGREGATE_DONE;
        return;
    }
    struct sl_error error;
    struct sl_result unsaid = {
        .status = SL_RETRY, .code = "TransactionCanceled", .text = "the transaction was canceled"};
    sl_outcome_error(p->a->host, cause ? cause : &unsaid, &error);
    tx_failed(p, tx, &error);
}

/* ---- applying ---- */

static void wave_apply(struct packing *p, uint32_t wave)
{
    const struct aggregate *a = p->a;
    struct sl_table_op *ops = a->host->alloc(p->arena, p->n_ops * sizeof(*ops));
    size_t n = 0;
    for (size_t i = 0; i < p->n_txs; i++) {
        if (p->txs[i].wave != wave)
            continue;
        memcpy(ops + n, p->ops + p->txs[i].first_op, p->txs[i].n_ops * sizeof(*ops));
        n += p->txs[i].n_ops;
    }
    struct sl_result *results = a->host->alloc(p->arena, n * sizeof(*results));
    memset(results, 0, n * sizeof(*results));
    struct sl_call call = {.arena = p->arena, .deadline_ms = p->w->slice->deadline_ms};
    if (n > 0)
        a->table->apply(a->table, ops, n, results, &call);
    n = 0;
    for (size_t i = 0; i < p->n_txs; i++) {
        if (p->txs[i].wave != wave)
            continue;
        tx_result(p, &p->txs[i], results + n);
        n += p->txs[i].n_ops;
    }
}

static void wave_late(struct packing *p, uint32_t wave)
{
    struct sl_error error = {.offset = SIZE_MAX};
    (void)p->a->host->fail(&error, SL_RETRY, "Deadline", "time ran out before all transactions were begun");
    for (size_t i = 0; i < p->n_txs; i++)
        if (p->txs[i].wave == wave)
            tx_failed(p, &p->txs[i], &error);
}

void aggregate_write_units(struct aggregate_write *w)
{
    const struct aggregate *a = w->tally->a;
    struct packing p = {.w = w, .a = a, .arena = w->slice->arena};
    sort_units(&p);
    pack(&p);
    p.ops = a->host->alloc(p.arena, (p.n_order + p.n_slots) * sizeof(*p.ops));
    size_t kept = 0;
    for (size_t i = 0; i < p.n_txs; i++) {
        struct sl_error error = {.offset = SIZE_MAX};
        p.n_ops = kept ? p.txs[kept - 1].first_op + p.txs[kept - 1].n_ops : 0;
        if (tx_ops(&p, &p.txs[i], (uint32_t)i + 1, &error) == SL_OK)
            p.txs[kept++] = p.txs[i];
        else
            tx_failed(&p, &p.txs[i], &error);
    }
    p.n_txs = kept;
    p.n_ops = kept ? p.txs[kept - 1].first_op + p.txs[kept - 1].n_ops : 0;
    uint32_t waves = order_in_waves(&p);
    for (uint32_t wave = 0; wave < waves; wave++) {
        if (a->host->now_ms(a->route) < w->slice->deadline_ms)
            wave_apply(&p, wave);
        else
            wave_late(&p, wave);
    }
}
