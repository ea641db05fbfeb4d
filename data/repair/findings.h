/* Setting right what a verification finds: which findings a repair may act on, and how.
 *
 * A row that may be another route's is not removed; of two items that have one row, neither is written; rows
 * of one item that share a side row are repaired one after the other. */
#ifndef SL_DATA_REPAIR_FINDINGS_H
#define SL_DATA_REPAIR_FINDINGS_H

#include "data/repair/repair.h"
#include "data/verify/finding.h"
#include "data/verify/verify.h"

struct sl_finding_repairs {
    /* Set by the caller; zeroed but for that. */
    struct sl_pipeline *pipeline;
    struct sl_repairs rows;
    /* Keeps what is going to be written, before it is; false: it could not be kept, and the row is left.
     * NULL: nothing is kept. `after` is absent when the row goes. Rows that say whose they are (totals,
     * views) are not kept: they are not put back alone. */
    bool (*keep)(void *arg, const struct sl_finding *finding, struct sl_span after);
    void *arg;
    bool is_full; /* what has to be kept could not be: nothing more is written. Set by the caller, or by a
                     `keep` that is false */

    struct sl_buffer item, mended, side; /* of a finding: its item and side row; of the last one that was
                                            repaired, and the side row since */
};

void sl_finding_repairs_init(struct sl_finding_repairs *r);
void sl_finding_repairs_clean_up(struct sl_finding_repairs *r);

/* The finding's result is SL_FINDING_DIFFERENT. What became of it is in `arena`. */
void sl_repair_finding(struct sl_finding_repairs *r, const struct sl_finding *finding, int64_t deadline_ms,
                       struct sl_arena *arena, struct sl_repair_outcome *out);

/* Not written, for a reason of the caller's. */
void sl_repair_leave(struct sl_repairs *r, struct sl_repair_outcome *out, const char *code, const char *why);

enum sl_finding_line {
    SL_FINDING_TAKEN,
    SL_FINDING_NONE, /* the line tells of no difference */
    SL_FINDING_OTHER /* of totals or of an archive: of no item */
};

/* Adds the item of a line of `sluice verify --json` to what `verify` looks at. SL_REJECT: it is no such line,
 * or `pipeline` has no such route. `arena` lives as long as `verify`. */
enum sl_status sl_repair_take_line(struct sl_verify *verify, struct sl_pipeline *pipeline,
                                   struct sl_span line, struct sl_arena *arena, enum sl_finding_line *what,
                                   struct sl_error *error) SL_MUST_USE;

/* Does the line tell of a row that is set right by removing it? */
bool sl_finding_line_is_removal(struct sl_span line);

/* Of a line that is SL_FINDING_OTHER: does it tell of totals? */
bool sl_finding_line_is_of_totals(struct sl_span line);

#endif
