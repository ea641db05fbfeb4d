/* What plans, pieces and sums of a verification of archives share. */
#ifndef SL_RUNTIME_WORK_ARCHIVES_H
#define SL_RUNTIME_WORK_ARCHIVES_H

#include "data/verify/archive/targets.h"
#include "runtime/work/item.h"

#include <jansson.h>

/* The archives of the chosen routes, in the item's arena. SL_REJECT: there are no such routes, or none of
 * them archives.
 *
 * `*of` says which they are, and is set when it is absent. Otherwise it has to be what it was: an execution
 * that goes on with another configuration would compare what has nothing to do with each other. */
enum sl_status sl_work_archives_find(const struct sl_work_item *item, struct sl_span routes,
                                     struct sl_span *of, struct sl_archive_target **out, size_t *n,
                                     struct sl_error *error) SL_MUST_USE;

/* {"do":"archives",...}: the pieces of its step. */
enum sl_status sl_work_plan_archives(struct sl_work_item *item, struct sl_span run, struct sl_span given,
                                     struct sl_error *error) SL_MUST_USE;

/* What comes after the step whose pieces counted this together: "outcome" is "again", with "next", what is to
 * be planned; or how the archives are. */
enum sl_status sl_work_judge_archives(struct sl_work_item *item, struct sl_span run, struct sl_span what,
                                      json_t *counts, struct sl_error *error) SL_MUST_USE;

#endif
