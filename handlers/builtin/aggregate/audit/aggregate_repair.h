/* Inside the aggregate handler: `sluice repair`. */
#ifndef SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_REPAIR_H
#define SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_REPAIR_H

#include "handlers/builtin/aggregate/aggregate_private.h"

/* struct sl_handler's. The rows are the ledger's. What an item contributes now takes the place of what the
 * ledger says was counted for it, in one transaction with the totals, so that the totals stay as far from the
 * sum of the ledger as they were. The row keeps its order: it loses to the next change, and refuses the
 * change that it stands for. */
enum sl_status aggregate_repair(void *self, struct sl_slice *slice, struct sl_repair *repair,
                                struct sl_error *error) SL_MUST_USE;

#endif
