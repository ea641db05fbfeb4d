/* One line in the log for each invocation: what came, what each route made of it, and what took the time. */
#ifndef SL_RUNTIME_SUMMARY_H
#define SL_RUNTIME_SUMMARY_H

#include "base/log.h"
#include "runtime/sums.h"

/* `text` and `members` are scratch, with SL_LOG_LINE_BYTES at most; reused. Routes that took nothing are left
 * out, and so are those that do not fit into a line: their number is given. */
struct sl_summary {
    struct sl_buffer text, members;
};

void sl_summary_init(struct sl_summary *summary);
void sl_summary_clean_up(struct sl_summary *summary);

/* At the level INFO. */
void sl_summary_write(struct sl_summary *summary, struct sl_log *log, const struct sl_sums *sums);

#endif
