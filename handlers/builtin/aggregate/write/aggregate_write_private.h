/* Inside the writing of aggregate: transactions, while they are packed, made and applied. */
#ifndef SL_HANDLERS_BUILTIN_AGGREGATE_WRITE_AGGREGATE_WRITE_PRIVATE_H
#define SL_HANDLERS_BUILTIN_AGGREGATE_WRITE_AGGREGATE_WRITE_PRIVATE_H

#include "handlers/builtin/aggregate/aggregate_run_private.h"

/* Where so many transactions of a slice meet on one row, they write delta rows instead. */
#define AGGREGATE_HOT_TXS 3

/* A fold of one delta row has its removal and these rows. */
#define AGGREGATE_HOT_ROWS 98

/* A delta row is an item of 400 KB at most. */
#define AGGREGATE_HOT_BYTES ((size_t)200 * 1024)

/* A row in one transaction. */
struct aggregate_slot {
    uint32_t counter;
    bool is_hot;              /* it goes into the transaction's delta row */
    uint32_t group;           /* VALUE: the slot of its group's row */
    struct sl_decimal **sums; /* by attribute; NULL: nothing to add */
    uint32_t op;              /* among its transaction's; AGGREGATE_NONE: it has none */
    int64_t change;           /* VALUE: what `op` adds */
};

struct aggregate_tx {
    size_t first_unit, n_units; /* in the order in which they are packed */
    size_t first_slot, n_slots;
    size_t n_hot, hot_bytes; /* of the slots; bytes of their delta row */
    size_t first_op, n_ops;
    int64_t shard;
    uint32_t wave;
    bool is_over;      /* it was applied, or cannot be */
    uint32_t delta_op; /* among its operations; AGGREGATE_NONE: it has no delta row */
    struct aggregate_delta delta;
};

struct aggregate_packing {
    struct aggregate_run *run;
    const struct aggregate *a;
    struct sl_arena *arena;
    struct aggregate_unit **order; /* the units that are pending */
    size_t n_order;
    const bool *is_hot; /* by row; NULL: none is */
    struct aggregate_slot *slots;
    uint32_t n_slots;
    size_t room_slots;
    struct aggregate_tx *txs;
    size_t n_txs;
    uint32_t *slot_of;  /* row -> its slot in the transaction at hand; older ones are below its first */
    uint32_t *stamp_of; /* row -> the last count of rows that met it */
    uint32_t stamp;
    uint32_t n_attributes;  /* when it was packed */
    size_t attribute_bytes; /* of a delta row's element with every attribute */
    struct sl_table_op *ops;
    size_t n_ops;
};

/* ---- aggregate_write_pack.c ---- */

/* Makes room for `txs` transactions. */
void aggregate_pack_init(struct aggregate_packing *p, size_t txs);

/* What terms need in a transaction, besides what it has. */
struct aggregate_need {
    size_t rows, hot, hot_bytes;
};

struct aggregate_need aggregate_pack_need(struct aggregate_packing *p, const struct aggregate_tx *tx,
                                          const struct aggregate_term *terms, size_t n);

/* The next transaction; `first` is the first of its units. */
struct aggregate_tx *aggregate_pack_tx(struct aggregate_packing *p, size_t first);

/* Adds the terms to the transaction's sums. */
void aggregate_pack_terms(struct aggregate_packing *p, struct aggregate_tx *tx,
                          const struct aggregate_term *terms, size_t n);

/* Sorts the pending units, sums what they add, and packs them into transactions. */
void aggregate_write_pack(struct aggregate_packing *p);

/* ---- aggregate_write_read.c ---- */

/* The results of reads. A part that could not be read is read again, as long as another part could. */
const struct sl_result *aggregate_read(const struct aggregate_run *run, const struct sl_table_op *ops,
                                       size_t n);

/* ---- aggregate_write_hot.c ---- */

/* Reads the rows of values that the transactions touch, and finds the rows on which many of them meet: then
 * `is_hot` is set, and they are to be packed again. */
enum sl_status aggregate_hot_find(struct aggregate_packing *p, struct sl_error *error) SL_MUST_USE;

/* Reads the rows of values that were not read. */
enum sl_status aggregate_hot_values(struct aggregate_packing *p, struct sl_error *error) SL_MUST_USE;

/* ---- aggregate_write_ops.c: a transaction's operations ---- */

/* The key of the counter's row, or of its sub-counter's. */
enum sl_status aggregate_row_key(const struct aggregate_packing *p, uint32_t counter, int64_t shard,
                                 struct sl_span *out, struct sl_error *error) SL_MUST_USE;

/* Appends the operations of the transaction's rows. SL_RETRY, code "ValueRow": a row of a value holds less
 * than is to be taken away; it has to be read again. */
enum sl_status aggregate_ops_rows(struct aggregate_packing *p, struct aggregate_tx *tx,
                                  struct sl_error *error) SL_MUST_USE;

/* After that: SL_OK, as long as another process may have written the rows. SL_FATAL: they are damaged. */
enum sl_status aggregate_ops_short(const struct aggregate_packing *p, const struct aggregate_tx *tx,
                                   struct sl_error *error) SL_MUST_USE;

/* Appends the transaction's operations to the packing's; nothing when it fails. */
enum sl_status aggregate_write_ops(struct aggregate_packing *p, struct aggregate_tx *tx, uint32_t group,
                                   struct sl_error *error) SL_MUST_USE;

/* The value's row as it was read; absent: there is none. */
void aggregate_value_held(struct aggregate_run *run, uint32_t place, struct sl_span item);

/* What the rows of values hold now: the transaction succeeded, was refused, or nobody knows (NULL). */
void aggregate_ops_learn(struct aggregate_packing *p, const struct aggregate_tx *tx,
                         const struct sl_result *results);

/* ---- aggregate_write_delta.c: delta rows and their fold ---- */

/* Slots in which a delta row can be put before the next fold. */
size_t aggregate_delta_free(const struct aggregate_run *run);

/* The operation that puts the transaction's hot sums into a delta row; `op->item` is absent when they are all
 * zero. */
enum sl_status aggregate_delta_op(struct aggregate_packing *p, struct aggregate_tx *tx,
                                  struct sl_table_op *op, struct sl_error *error) SL_MUST_USE;

/* The transaction wrote its delta row; or the slot held another one (`item`). */
void aggregate_delta_written(struct aggregate_run *run, const struct aggregate_delta *delta);
enum sl_status aggregate_delta_met(struct aggregate_run *run, uint32_t slot, struct sl_span item,
                                   struct sl_error *error) SL_MUST_USE;

/* Reads all slots: a process may have been killed before its fold. */
enum sl_status aggregate_delta_look(struct aggregate_run *run, struct sl_error *error) SL_MUST_USE;

/* After a value's row was short: what is missing may be in delta rows that a killed process left, or that
 * another one is folding. They become known, and a pause lets others come to their end. */
enum sl_status aggregate_delta_wait(struct aggregate_run *run, struct sl_error *error) SL_MUST_USE;

/* Adds the delta rows that are known to the totals, and removes them. SL_OK: their sums are in the totals,
 * whoever put them there. */
enum sl_status aggregate_fold(struct aggregate_run *run, struct sl_error *error) SL_MUST_USE;

/* ---- aggregate_write_empty.c ---- */

/* Deletes the rows from which the slice took something, and whose counts are all zero. */
enum sl_status aggregate_delete_empty(struct aggregate_run *run, struct sl_error *error) SL_MUST_USE;

#endif
