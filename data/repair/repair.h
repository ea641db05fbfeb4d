/* Setting rows right, one at a time, through the guarded write of the route's own handler.
 *
 * Who calls it has seen that a row is not as it should be (data/verify/), and hands over what it saw. The
 * write holds that as its condition, so whatever happens in between is never undone: the row is left alone
 * then. It loses to every later change of the item, and can be repeated. It runs beside the stream. */
#ifndef SL_DATA_REPAIR_REPAIR_H
#define SL_DATA_REPAIR_REPAIR_H

#include "handlers/pipeline/route.h"

enum sl_repaired {
    SL_REPAIRED_WRITTEN,
    SL_REPAIRED_REMOVED,
    SL_REPAIRED_ALREADY, /* there was nothing to write */
    SL_REPAIRED_MOVED,   /* the row changed meanwhile: nothing was written */
    SL_REPAIRED_LEFT,    /* left alone: `code` and `why` say the reason */
    SL_REPAIRED_FAILED   /* the table could not be written: likewise */
};

/* "written", "removed", ... */
const char *sl_repaired_name(enum sl_repaired outcome);

/* `max_removals`, unless the user says another number. */
#define SL_REPAIR_MAX_REMOVALS 100

struct sl_repairs {
    /* Set by the caller; zeroed but for that. */
    bool is_plan;          /* nothing is written: outcomes say what would be done */
    bool may_remove;       /* else rows that would have to go are left alone */
    uint64_t max_removals; /* so many rows at most */

    uint64_t outcomes[SL_REPAIRED_FAILED + 1];
};

/* One row, as it was seen. */
struct sl_repair_row {
    struct sl_route *route;
    const struct sl_record *record; /* the item as the source has it: INSERT, or REMOVE with Keys alone */
    struct sl_span key;             /* the row's */
    struct sl_span row, side;       /* its JSON, and its side row's; absent: there is none */
    bool is_undo;                   /* `back` is put back, not what the item says */
    struct sl_span back;            /* absent: there was no row */
    int64_t deadline_ms;
};

/* What became of it, in `arena`. */
struct sl_repair_outcome {
    enum sl_repaired outcome;
    const char *code, *why; /* NULL unless LEFT or FAILED */
    struct sl_span side;    /* the side row as it is now; absent: it is as it was */
    struct sl_span written; /* the row as it is now; absent: there is none, or it is as it was */
};

/* A tombstone counts as a removed row. */
void sl_repair_row(struct sl_repairs *r, const struct sl_repair_row *row, struct sl_arena *arena,
                   struct sl_repair_outcome *out);

#endif
