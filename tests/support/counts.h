/* What a pipeline counts has to add up, whatever its handlers, ports and the time did. For every dispatch
 * that a test makes. */
#ifndef SL_TESTS_SUPPORT_COUNTS_H
#define SL_TESTS_SUPPORT_COUNTS_H

#include "handlers/dispatch/dispatch.h"

struct counts {
    uint64_t matched, applied, parked, failed, skipped, set_aside;
};

/* The sums over all routes, since the last reset. */
struct counts counts_of(const struct sl_pipeline *p);

/* What is wrong with what was counted for the batch between `before` and now; NULL: nothing. `remembers`: an
 * earlier delivery may have done some of the effects. */
const char *counts_wrong(const struct sl_pipeline *p, const struct counts *before,
                         const struct sl_answer *answer, const struct sl_batch *batch, bool remembers);

#endif
