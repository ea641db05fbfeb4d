/* Plans of verifications and repairs, and what their sums mean. */
#ifndef SL_RUNTIME_WORK_PLAN_VERIFY_H
#define SL_RUNTIME_WORK_PLAN_VERIFY_H

#include "runtime/work/item.h"

#include <jansson.h>

/* {"do":"verify","max_lag":60,...}: a piece for each segment of the table. */
enum sl_status sl_work_plan_verify(struct sl_work_item *item, struct sl_span run, struct sl_span given,
                                   struct sl_error *error) SL_MUST_USE;

/* {"do":"repair","of":"verify-1",...}: a piece for each object of findings of that execution. Refused when
 * not one row of a route was equal (the source is the wrong table), when more rows would be removed than
 * "max_deletes", and while letters wait that may change what is repaired. */
enum sl_status sl_work_plan_repair(struct sl_work_item *item, struct sl_span run, struct sl_span given,
                                   struct sl_error *error) SL_MUST_USE;

/* Judges what the pieces counted together: adds "outcome" to `counts`, and keeps the sum of a verification
 * beside its findings. `what` is the plan's, JSON. */
enum sl_status sl_work_judge(struct sl_work_item *item, struct sl_span what, json_t *counts,
                             struct sl_error *error) SL_MUST_USE;

/* A count of the sum; 0 when it is not there. */
uint64_t sl_work_counted(const json_t *counts, const char *name);

#endif
