/* Setting a total right that is not the sum of its ledgers' rows.
 *
 * What is added is the negative of the difference that sl_totals_verify has confirmed. No correct transaction
 * changes that difference, so it can be added while the consumer runs, whatever the total is now. But another
 * repair does change it: so each one counts itself in the row's mark (SL_TOTALS_MARK), in the same write, on
 * the condition that the mark is as it was when the row was scanned. So of two repairs, however far apart,
 * the one that does not know of the other is refused, and one that was killed and begins again finds no
 * difference. */
#ifndef SL_DATA_REPAIR_SUM_H
#define SL_DATA_REPAIR_SUM_H

#include "data/repair/audit.h"

/* Of a line of sl_totals_verify. */
struct sl_repair_sum {
    struct sl_route *route; /* of aggregate: one of those that write these totals */
    struct sl_span key;     /* of the row, JSON */
    struct sl_span attribute, difference;
    struct sl_span mark; /* as it was scanned, JSON; absent: there was none */
    int64_t deadline_ms;
};

/* `added` becomes the number that was added, or would be; absent: none. */
void sl_repair_sum(struct sl_repairs *r, const struct sl_repair_sum *sum, struct sl_arena *arena,
                   struct sl_span *added, struct sl_repair_outcome *out);

/* Of a line of sl_totals_verify, read. What no number sets right (rows of values or members: "NoRows"), and
 * totals that no route of the pipeline writes ("NoRoute"), are left. */
void sl_repair_audit_sum(struct sl_repairs *r, struct sl_pipeline *pipeline, const struct sl_audit_sum *sum,
                         int64_t deadline_ms, struct sl_arena *arena, struct sl_span *added,
                         struct sl_repair_outcome *out);

#endif
