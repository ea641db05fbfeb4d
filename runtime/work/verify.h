/* A verification of the configured table by the pipeline's routes, opened for a work item: for a turn over a
 * piece, or to check what a plan is made of. */
#ifndef SL_RUNTIME_WORK_VERIFY_H
#define SL_RUNTIME_WORK_VERIFY_H

#include "data/verify/ground.h"
#include "data/verify/outstanding.h"
#include "runtime/work/item.h"
#include "runtime/work/verify_piece.h"

struct sl_work_verification {
    struct sl_work_verify_piece piece; /* set by the caller */
    struct sl_clock *clock;
    struct sl_verify_ground ground;
    struct sl_outstanding *outstanding;
    struct sl_verify_options options; /* but for `found`. Their `arg` is this struct */
};

/* Opens the source, and holds the routes' tables to it: none is the source itself; and of a repair, no ledger
 * is of another table. What was opened is closed by the close, after a failure, too. */
enum sl_status sl_work_verification_open(struct sl_work_verification *v, const struct sl_work_item *item,
                                         struct sl_error *error) SL_MUST_USE;
void sl_work_verification_close(struct sl_work_verification *v); /* zeroed memory is fine */

#endif
