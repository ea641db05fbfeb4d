/* Inside the replicate handler: `sluice repair`. */
#ifndef SL_HANDLERS_BUILTIN_REPLICATE_REPLICATE_REPAIR_H
#define SL_HANDLERS_BUILTIN_REPLICATE_REPLICATE_REPAIR_H

#include "handlers/builtin/replicate/replicate_private.h"

/* struct sl_handler's. The item as the source has it now takes the place of the row that was seen. The guard
 * keeps its epoch and order, and only its last part becomes greater: the write loses to the next change,
 * refuses the change that it stands for, and is an echo to a table that follows this one. A row without a
 * guard is written with the order of an export, below every change. */
enum sl_status replicate_repair(void *self, struct sl_slice *slice, struct sl_repair *repair,
                                struct sl_error *error) SL_MUST_USE;

/* A row or an item as a value; SL_NONE: there is none. */
struct sl_value replicate_row_of(struct sl_span json);

/* Is the source's item, of the record's key, gone for the replica? It may not match `where`; in a pair, what
 * the source has may be a tombstone of ours. */
bool replicate_is_gone(const struct replicate *p, const struct sl_record *r, struct sl_value image,
                       struct sl_arena *arena);

/* Gives the change the condition of a repair: the row is as it was seen; absent: there is none. */
void replicate_see(const struct replicate *p, struct replicate_change *change, struct sl_span row,
                   struct sl_arena *arena);

/* The order that the repair follows is its row's, or the side row's where that is the later one. */
void replicate_follow(const struct replicate *p, struct replicate_change *change, struct sl_span row,
                      struct sl_span side, struct sl_arena *arena);

/* The side table that rows of the replica are in step with; NULL: none. */
const struct replicate_side *replicate_side_of(const struct replicate *p);

/* The operation's condition: the row is as it was seen. */
void replicate_hold(const struct replicate_change *change, struct sl_table_op *op);

#endif
