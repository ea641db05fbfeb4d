/* What plans, pieces and sums of a verification of totals share. */
#ifndef SL_RUNTIME_WORK_TOTALS_H
#define SL_RUNTIME_WORK_TOTALS_H

#include "data/verify/totals_rows.h"
#include "runtime/work/item.h"

#include <jansson.h>

/* The totals of the chosen routes, all of the pipeline's; those without `is_chosen` are not verified. In the
 * item's arena. SL_REJECT: there are no such routes, or none of them has totals that can be verified.
 *
 * `*of` says which they are, and is set when it is absent. Otherwise it has to be what it was: an execution
 * that goes on with another configuration would compare what has nothing to do with each other. */
enum sl_status sl_work_totals_find(const struct sl_work_item *item, struct sl_span routes, struct sl_span *of,
                                   struct sl_totals_target **out, size_t *n,
                                   struct sl_error *error) SL_MUST_USE;

/* {"do":"totals",...}: the pieces of its step. */
enum sl_status sl_work_plan_totals(struct sl_work_item *item, struct sl_span run, struct sl_span given,
                                   struct sl_error *error) SL_MUST_USE;

/* What comes after the step whose pieces counted this together: "outcome" is "again", with "next", what is to
 * be planned; or how the totals are. "last" of the counts, the names of the scans' last objects, is kept as
 * an object. */
enum sl_status sl_work_judge_totals(struct sl_work_item *item, struct sl_span run, struct sl_span what,
                                    json_t *counts, struct sl_error *error) SL_MUST_USE;

#endif
