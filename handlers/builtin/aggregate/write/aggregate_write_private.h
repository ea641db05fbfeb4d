/* Inside the writing of aggregate: transactions, while they are packed, made and applied. */
#ifndef SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_WRITE_PRIVATE_H
#define SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_WRITE_PRIVATE_H

#include "handlers/builtin/aggregate/aggregate_run_private.h"

/* A counter row in one transaction. */
struct aggregate_slot {
    uint32_t counter;
    struct sl_decimal **sums; /* by attribute; NULL: nothing to add */
    uint32_t op;              /* among its transaction's; AGGREGATE_NONE: all sums are zero */
};

struct aggregate_tx {
    size_t first_unit, n_units; /* in the order in which they are packed */
    size_t first_slot, n_slots;
    size_t first_op, n_ops;
    int64_t shard;
    uint32_t wave;
};

struct aggregate_packing {
    struct aggregate_run *run;
    const struct aggregate *a;
    struct sl_arena *arena;
    struct aggregate_unit **order; /* the units that are pending */
    size_t n_order;
    struct aggregate_slot *slots;
    uint32_t n_slots, room_slots;
    struct aggregate_tx *txs;
    size_t n_txs;
    uint32_t *slot_of; /* counter -> its slot in the transaction at hand; older ones are below its first */
    struct sl_table_op *ops;
    size_t n_ops;
};

/* ---- aggregate_write_pack.c ---- */

/* Sorts the pending units, sums what they add, and packs them into transactions. */
void aggregate_write_pack(struct aggregate_packing *p);

/* ---- aggregate_write_ops.c: a transaction's operations ---- */

/* Appends the transaction's operations to the packing's; nothing when it fails. */
enum sl_status aggregate_write_ops(struct aggregate_packing *p, struct aggregate_tx *tx, uint32_t group,
                                   struct sl_error *error) SL_MUST_USE;

#endif
