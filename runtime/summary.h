/* One line in the log for each invocation: what came, what each route made of it, and what took the time. */
#ifndef SL_RUNTIME_SUMMARY_H
#define SL_RUNTIME_SUMMARY_H

#include "base/log.h"
#include "runtime/sums.h"

/* Scratch, reused. A route's part has 300 bytes at most, its name included, and there are 100 routes at most.
 * Those that took nothing are left out. */
struct sl_summary {
    struct sl_buffer text, members;
};

void sl_summary_init(struct sl_summary *summary);
void sl_summary_clean_up(struct sl_summary *summary);

/* At the level INFO. */
void sl_summary_write(struct sl_summary *summary, struct sl_log *log, const struct sl_sums *sums);

#endif
