/* Inside the aggregate handler: a slice, from its records to what is written. */
#ifndef SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_RUN_PRIVATE_H
#define SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_RUN_PRIVATE_H

#include "base/map.h"
#include "handlers/builtin/aggregate/aggregate_tally_private.h"

/* What a record makes of its item. */
struct aggregate_change {
    struct sl_order order;
    int64_t at_ms;                /* when it was made; 0: not said */
    struct aggregate_part after;  /* the item's contribution from then on */
    struct aggregate_part before; /* without a ledger: what it was, by the old image */
    bool keeps;                   /* `after` stays in the totals, and does not belong to the item any more */
    bool is_older;                /* the ledger refused it as older, although it is newer by time */
    uint32_t next;                /* of the same unit, in order; AGGREGATE_NONE */
};

enum aggregate_state { AGGREGATE_PENDING, AGGREGATE_DONE, AGGREGATE_FAILED };

struct aggregate_unit {
    uint32_t first, last; /* its changes, by record; AGGREGATE_NONE: it has none */
    enum aggregate_state state;
    bool is_blocked;     /* a record of it was rejected, and the later ones wait */
    bool is_idle;        /* the images add nothing: only a row of an earlier epoch is to be replaced */
    bool is_tied;        /* counted in `n_tied` */
    bool is_known;       /* its ledger row was read: nothing is guessed */
    bool is_asked;       /* its ledger row is read before the next round */
    struct sl_span key;  /* of its ledger row; absent: it has none */
    struct sl_span item; /* the row to be written */
    struct aggregate_part delta; /* of the slice's differences */
    struct sl_test tests[2];
    size_t n_tests;
};

/* Slots of delta rows. */
#define AGGREGATE_DELTA_SLOTS 64

/* A row of sums that were counted, and are not in the totals yet. */
struct aggregate_delta {
    uint32_t slot;
    struct sl_span id; /* no two are alike; attribute value JSON */
    struct aggregate_part terms;
};

struct aggregate_run {
    const struct aggregate *a;
    struct sl_slice *slice;
    struct sl_outcome outcome;
    struct aggregate_tally tally;
    struct aggregate_terms deltas;
    struct sl_map keys; /* units by the keys of their ledger rows */
    struct aggregate_unit *units;
    size_t n_units;
    struct aggregate_change *changes; /* one per record */
    struct sl_source_table source;    /* the table that the records come from */
    struct sl_span last[3];           /* where the last record came from: ARN, Region, table */
    size_t n_older;                   /* changes that are `is_older` */
    struct sl_span older;             /* the sequence number of one of them */
    size_t n_tied;                    /* units whose last changes have one time, and differ */
    struct sl_span tied;              /* the event id of one of them */
    bool is_repair;                   /* a row that is not the expected one is left alone */
    bool is_short;                    /* a value's row held less than is to be taken away */
    unsigned looks;                   /* for delta rows, because of that */
    bool has_done; /* a change was found done: who did it may have been killed before its fold */
    struct aggregate_delta *folds; /* delta rows that are to be folded */
    uint32_t n_folds;
    size_t room_folds;
    uint32_t next_slot, next_shard; /* drawn in turn from a random start */
};

/* ---- aggregate.c ---- */

void aggregate_run_init(struct aggregate_run *run, const struct aggregate *a, struct sl_slice *slice);

/* ---- aggregate_take.c: records into units ---- */

/* Takes record `i` of the slice. A failure is the whole slice's. */
enum sl_status aggregate_take(struct aggregate_run *run, size_t i, struct sl_error *error) SL_MUST_USE;

/* ---- aggregate_source.c: the table that the ledger belongs to ---- */

/* The record's table, as far as it says it, becomes the slice's. SL_FATAL: an earlier record is of another.
 */
enum sl_status aggregate_source_take(struct aggregate_run *run, const struct sl_record *r,
                                     struct sl_error *error) SL_MUST_USE;

/* The slice's records have to come from the table that the ledger belongs to, and the route has to have the
 * ledger's epoch. The first slice that names its table makes the ledger belong to it. */
enum sl_status aggregate_source_check(struct aggregate_run *run, struct sl_error *error) SL_MUST_USE;

/* ---- aggregate_unit.c: what a unit adds, and what its ledger row is expected to be ---- */

/* Makes every unit's difference, row and tests; units that add nothing are done. */
void aggregate_prepare(struct aggregate_run *run);

/* The unit's change takes the place of the row that was seen, whatever their orders. `sums` is the seen row's
 * attribute value. */
void aggregate_unit_replace(struct aggregate_run *run, struct aggregate_unit *unit,
                            const struct aggregate_row *row, struct sl_span sums);

/* The unit's transaction failed. SL_REJECT: this unit or another one is to blame. */
void aggregate_unit_failed(struct aggregate_run *run, struct aggregate_unit *unit,
                           const struct sl_error *error);

/* Reads the ledger rows of the pending units that are `is_asked`. */
void aggregate_units_ask(struct aggregate_run *run);

/* Tells of the changes that the ledger refused although they are newer by time, and of those that tie. */
void aggregate_units_warn(const struct aggregate_run *run);

/* The unit's tests did not hold; `item` is its row. The unit is done, failed, or pending with other tests. */
void aggregate_unit_refused(struct aggregate_run *run, struct aggregate_unit *unit, struct sl_span item);

/* ---- aggregate_extreme.c: running values ---- */

/* Takes the running values of the slice's record `i`. */
enum sl_status aggregate_extremes_take(struct aggregate_tally *t, const struct sl_record *r, size_t i,
                                       enum sl_image image, struct sl_error *error) SL_MUST_USE;

void aggregate_extremes_write(struct aggregate_run *run);

/* ---- aggregate_write.c ---- */

/* Writes the units that are pending, in transactions with their sums; without a ledger each row of the totals
 * on its own. A failure is that of every record that has no outcome of its own: what was counted is not in
 * the totals yet. */
enum sl_status aggregate_write_units(struct aggregate_run *run, struct sl_error *error) SL_MUST_USE;

#endif
