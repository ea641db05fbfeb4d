/* Inside the check of totals: what a round of scans proves. */
#ifndef SL_DATA_VERIFY_TOTALS_JUDGE_H
#define SL_DATA_VERIFY_TOTALS_JUDGE_H

#include "data/verify/totals_rows.h"

struct sl_totals_judge {
    const struct sl_totals_target *t;
    struct sl_totals_sums *sums;
    struct sl_totals_counts *counts;
    bool has_moved;         /* a row of the ledgers has changed between their scans */
    struct sl_arena *arena; /* of one group: it is reset */
    struct sl_buffer *line;
    void (*found)(void *arg, struct sl_span line);
    void *arg;
};

/* Judges what is not settled yet. Returns how many groups are left. */
size_t sl_totals_judge_round(struct sl_totals_judge *judge);

/* After the last round: what is left is unsettled. */
void sl_totals_judge_rest(struct sl_totals_judge *judge);

#endif
