/* Functions of the host table that have files of their own. */
#ifndef SL_HANDLERS_PIPELINE_HOST_PRIVATE_H
#define SL_HANDLERS_PIPELINE_HOST_PRIVATE_H

#include "handlers/pipeline/host.h"

/* ---- host_diff.c: record_diff, diff_next ---- */

struct sl_diff sl_host_record_diff(const struct sl_record *r, struct sl_arena *arena);
bool sl_host_diff_next(struct sl_diff *diff, struct sl_span *name, struct sl_value *before,
                       struct sl_value *after);

/* ---- host_plain.c: value_plain ---- */

struct sl_span sl_host_value_plain(struct sl_value v, struct sl_arena *arena);

#endif
