/* Inside the replicate handler: what its files share. docs/HANDLERS.md says what it promises. */
#ifndef SL_HANDLERS_BUILTIN_REPLICATE_REPLICATE_PRIVATE_H
#define SL_HANDLERS_BUILTIN_REPLICATE_REPLICATE_PRIVATE_H

#include "handlers/builtin/toolkit/expired.h"
#include "base/map.h"
#include "handlers/builtin/toolkit/loop.h"
#include "handlers/builtin/toolkit/order.h"
#include "handlers/builtin/toolkit/outcome.h"
#include "handlers/builtin/toolkit/render.h"
#include "handlers/builtin/toolkit/reshape.h"

/* Where the order of an item's last change is kept. */
enum replicate_guard {
    REPLICATE_INLINE, /* on the replica's item */
    REPLICATE_SIDE,   /* in a row of a side table, in the same transaction */
    REPLICATE_NONE
};

/* A table beside the replica. It has a row per item: the order of a change, and when the row may go. */
struct replicate_side {
    struct sl_span table, key; /* its name, and the name of its partition key; absent: there is none */
};

/* An attribute of the replica's key that a template makes. */
struct replicate_key {
    struct sl_span name, place; /* `place`: the one attribute of the source's key that it is; absent: more */
    struct sl_render_template value;
};

struct replicate {
    const struct sl_host *host;
    struct sl_route *route;
    struct sl_table_port *table;
    struct sl_table_port *source; /* read back from; NULL: never */
    enum replicate_guard guard;
    struct sl_span guard_attribute, write_attribute, deleted_attribute, ttl_attribute; /* their names */
    struct replicate_side guards;                                                      /* REPLICATE_SIDE */
    struct replicate_side tombstones; /* inline guards: where deleted items are remembered, see steps */
    struct sl_loop loop;
    const struct sl_when *where; /* on the item, before it is reshaped; NULL: all items */
    int64_t epoch, tombstone_s;
    int64_t records_epoch; /* of the records that are handled: the route's, but for late ones */
    enum sl_expired expired;
    bool copies_replicated; /* changes that a replicate made are written too */
    bool copies_unsigned;   /* so are those that carry a guard without a signature */
    bool has_warned;        /* of unsigned changes */
    unsigned events;        /* that the route lets through, as bits 1 << SL_INSERT, ... */
    struct sl_reshape shape;
    struct replicate_key *keys;
    size_t n_keys; /* 0: the source's key */
};

/* ---- replicate_config.c ---- */

extern const struct sl_option replicate_options[];
enum sl_status replicate_open(const struct sl_host *host, struct sl_route *route, void **self,
                              struct sl_error *error) SL_MUST_USE;

/* ---- a slice ---- */

/* A tombstone on which somebody has written since: for them the item is there again. The other table writes
 * it without our attributes, and asks back that they are taken from this item too. */
struct replicate_revival {
    struct sl_span guard;   /* the tombstone's; absent: there is no revival */
    struct sl_span expires; /* the tombstone's number; absent: the attribute holds another value now */
};

/* What the item is after its change. */
struct replicate_image {
    struct sl_value value; /* SL_NONE: it is deleted */
    bool may_carry;        /* attributes of ours */
    bool is_read_back;
    struct replicate_revival revival;
};

/* What is sent next for a change. With tombstones in a side table ("marks") it takes more than one:
 *
 *   PUT o      OVER: put, if guard < o. Where the item has no guard (it is absent, or the application has put
 *              it anew), MAKE: put if that is still so, and check the mark: absent or < o. Begins with OVER,
 *              an INSERT with MAKE.
 *   DELETE t   BURY: put the inline tombstone, if guard < t, and the mark t, if the mark is absent or < t.
 * Then CLEAR: delete the item, if it is the tombstone t. Where there is no guard to compare with, BURY_BARE
 * the item that stands there, or MARK alone. The removal that followers see has a tombstone as its old image.
 *
 * A condition that does not hold returns what is there, and that tells the next step, see replicate_step.c.
 * At all times, of an item with a guard: mark <= guard. So OVER need not look at the mark. A process that is
 * killed leaves a tombstone with its mark, and the change that is delivered again clears it. */
enum replicate_step {
    REPLICATE_BEGIN, /* nothing was made yet */
    REPLICATE_ONCE,  /* the other modes: one request is all */
    REPLICATE_OVER,
    REPLICATE_MAKE,
    REPLICATE_BURY,
    REPLICATE_BURY_BARE,
    REPLICATE_MARK,
    REPLICATE_CLEAR,
    REPLICATE_SETTLE, /* CLEAR, of a tombstone whose mark nobody has seen: puts the mark too */
    REPLICATE_LOOK,   /* read the item: the refusal did not show it */
    REPLICATE_DONE,
    REPLICATE_OVERTAKEN /* what is there is newer, which is success */
};

/* One item of the slice, and the newest of its changes. */
struct replicate_change {
    uint32_t newest;                /* the record that is written */
    uint32_t last;                  /* its last record in the slice; `before` leads to the others */
    const struct sl_record *record; /* of `newest` */
    struct sl_span item_key;        /* by which the slice tells items apart */
    struct sl_span order;           /* of `record`, not padded */
    struct replicate_image image;
    struct sl_span key;    /* the replica's */
    struct sl_order guard; /* what guards compare, see replicate_guard_make */
    struct sl_span item;   /* what is put: the item, or a tombstone; made once */
    enum replicate_step step;
    bool has_looked;
    bool was_inside;    /* the replica may hold the item from before these records */
    bool is_faint;      /* a removal that is made only where a lower guard stands */
    uint32_t op, n_ops; /* of the step: the first, and how many */
    bool is_out;        /* nothing is written for it: it failed, or there is nothing to do */
    struct sl_span
        kept_guard; /* of a repair: the guard becomes the next after this one; absent: the order's */
    const struct sl_test *held; /* of a repair: the row as it was seen; the condition of the first step */
    size_t n_held;
    bool is_shaped; /* the image is the row's, without what is ours */
    bool is_tied;   /* another change of the item has the same order, see replicate_tie.c */
    bool is_mixed;  /* and is in this slice */
    bool has_row;   /* `row` is what stood there when the guard refused the change; absent: nothing did */
    struct sl_span row;
};

/* An echo that asks to take our attributes from an item that was a tombstone. */
struct replicate_return {
    uint32_t record;
    struct replicate_revival revival;
};

struct replicate_fold {
    struct replicate *p;
    struct sl_slice *slice;
    struct sl_outcome outcome;
    struct sl_map items; /* item -> its change */
    struct replicate_change *changes;
    uint32_t *before; /* record -> the record before it of the same item, SL_OUTCOME_NO_RECORD */
    size_t n_read_back;
    struct replicate_return *returns; /* made for the first */
    size_t n_returns, n_unsigned;
    bool is_plan; /* changes are made, and not written */
};

/* ---- replicate_item.c: the replica's keys and items ---- */

/* The replica's key, as JSON. */
enum sl_status replicate_key(const struct replicate *p, const struct sl_record *r, struct sl_arena *arena,
                             struct sl_span *key, struct sl_error *error) SL_MUST_USE;

/* The replica's item: the image, reshaped as configured, with its inline guard and signature. SL_REJECT, code
 * "ItemTooLargeForGuard", when only these make it too large. */
enum sl_status replicate_item(const struct replicate *p, const struct replicate_change *change,
                              struct sl_arena *arena, struct sl_span *item,
                              struct sl_error *error) SL_MUST_USE;

/* What takes the place of a deleted item: its key, guard and signature, a mark, and when it may go. */
struct sl_span replicate_tombstone(const struct replicate *p, const struct replicate_change *change,
                                   struct sl_arena *arena);

/* {"key":...,"guard":...,"deleted":true,"expires":n}: a tombstone without its signature. */
struct sl_span replicate_tombstone_bare(const struct replicate *p, struct sl_span key,
                                        const struct sl_order *guard, struct sl_span expires,
                                        struct sl_arena *arena);

/* The item without one of its attributes. */
struct sl_span replicate_without(const struct replicate *p, struct sl_value item, struct sl_span name,
                                 struct sl_arena *arena);

/* ---- replicate_guard.c: the order of changes as guards keep it ---- */

/* "000000:0000000000000000000000000000000000000111:0001480642020000": the epoch, the order, and the time of
 * the change in ms, which shows a write that was refused although it is newer. */
#define REPLICATE_GUARD_BYTES (6 + 1 + SL_ORDER_DIGITS + 1 + 16)

/* Is it such a text? */
bool replicate_guard_is_text(struct sl_span text);

/* Makes the change's guard: of its order, or the next after `kept_guard`, which has the same epoch and order.
 * SL_REJECT when the order has more digits than any sequence number, or no guard comes after that one. */
enum sl_status replicate_guard_make(const struct replicate *p, struct replicate_change *change,
                                    struct sl_arena *arena, struct sl_error *error) SL_MUST_USE;

/* Adds the tests that let the operation pass only if the change is newer than the guard in attribute `name`.
 */
void replicate_guard_test(const struct replicate *p, const struct replicate_change *change,
                          struct sl_span name, struct sl_arena *arena, struct sl_table_op *op);

/* The key of the side table's row for an item. */
struct sl_span replicate_guard_row_key(const struct replicate *p, const struct replicate_side *side,
                                       struct sl_span item_key, struct sl_arena *arena);

/* The operation on the side table's row that puts the change's order, with its tests. */
struct sl_table_op replicate_guard_row(const struct replicate *p, const struct replicate_side *side,
                                       const struct replicate_change *change, struct sl_arena *arena);

/* The order that a row of a side table holds; absent when there is none. */
struct sl_span replicate_guard_of_row(const struct replicate *p, struct sl_span row);

/* Is the change newer by time than the guard that refused it? */
bool replicate_guard_is_older(const struct replicate_change *change, struct sl_span held);

/* ---- replicate_where.c: which items the replica holds ---- */

/* Does the item match "where"? */
bool replicate_is_inside(const struct replicate *p, struct sl_value item, struct sl_arena *arena);

/* May the replica hold the record's item as it was before? */
bool replicate_was_inside(const struct replicate *p, const struct sl_record *r, struct sl_arena *arena);

/* Makes a removal of a change whose item the replica does not hold, or nothing. */
void replicate_judge_inside(struct replicate_fold *f, struct replicate_change *change);

/* ---- replicate_fold.c: the newest change of each item ---- */

enum sl_status replicate_fold_slice(struct replicate_fold *f, struct sl_error *error) SL_MUST_USE;

/* The change failed, and with it all records that were folded into it. */
void replicate_fold_fail(struct replicate_fold *f, struct replicate_change *change,
                         const struct sl_error *error);

/* ---- replicate_read.c: items that the stream does not carry ---- */

/* In a database another program may have put blanks around an item. */
struct sl_span replicate_without_blanks(struct sl_span json);

/* Finds every change's image, in its record or in the source table. */
enum sl_status replicate_read_images(struct replicate_fold *f, struct sl_error *error) SL_MUST_USE;

/* ---- replicate_step.c: tombstones in a side table ---- */

/* The operations of a change's step, two at most. */
#define REPLICATE_STEP_OPS 2

enum replicate_step replicate_step_first(const struct replicate *p, const struct replicate_change *change);

/* Returns how many operations the step has. */
size_t replicate_step_ops(const struct replicate *p, struct replicate_change *change, struct sl_arena *arena,
                          struct sl_table_op *ops);

/* The step after this one. `held` becomes the order that has overtaken the change. None of the results has
 * failed for another reason than its condition. */
enum replicate_step replicate_step_next(const struct replicate *p, struct replicate_change *change,
                                        const struct sl_result *results, struct sl_arena *arena,
                                        struct sl_span *held);

/* ---- replicate_write.c ---- */

/* Writes the changes and the returns, and tells the outcome of each. */
void replicate_write_changes(struct replicate_fold *f);

#endif
