/* A source and its backfill, opened for a work item: for a piece, or to check what a plan is made of. */
#ifndef SL_RUNTIME_WORK_JOB_H
#define SL_RUNTIME_WORK_JOB_H

#include "runtime/work/piece.h"
#include "data/backfill/backfill.h"

struct sl_work_item;

struct sl_work_job {
    struct sl_source *source;
    struct sl_backfill *backfill;
};

/* Opens both. `is_whole`: the source is the whole export, or the table by its first segment, and `piece` says
 * only routes and order. Texts of the piece are borrowed until the close. On failure nothing is left open. */
enum sl_status sl_work_job_open(const struct sl_work_item *item, const struct sl_work_piece *piece,
                                bool is_whole, struct sl_work_job *out, struct sl_error *error) SL_MUST_USE;
void sl_work_job_close(struct sl_work_job *job); /* zeroed memory is fine */

#endif
