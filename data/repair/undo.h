/* Taking a repair back: the row of before it is put in its place, through the handler's own guarded write. So
 * the undo is a write like the repair, with the next guard: it loses to every later change, and a table that
 * follows takes it for an echo. A row that is not as the repair left it is not touched. */
#ifndef SL_DATA_REPAIR_UNDO_H
#define SL_DATA_REPAIR_UNDO_H

#include "data/repair/repair.h"
#include "data/verify/items.h"

/* What was kept of a repair. */
struct sl_undo {
    struct sl_route *route;
    struct sl_span source_key;    /* JSON */
    struct sl_span before, after; /* the row; absent: there was none */
    int64_t deadline_ms;
};

/* Failures are in `out`. */
void sl_undo_row(struct sl_repairs *r, const struct sl_undo *undo, struct sl_arena *arena,
                 struct sl_repair_outcome *out);

#endif
