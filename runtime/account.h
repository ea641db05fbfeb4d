/* What invocations did, for an operator: a summary line for each, and metrics. docs/METRICS.md has every name
 * and what it means. */
#ifndef SL_RUNTIME_ACCOUNT_H
#define SL_RUNTIME_ACCOUNT_H

#include "handlers/pipeline/pipeline.h"
#include "runtime/settings.h"

struct sl_account;

/* One invocation, as far as the pipeline's stats do not say it. */
struct sl_invoked {
    size_t records;
    int64_t created_ns; /* of the oldest record, by the wall clock; 0: not known */
    uint64_t decode_ns;
    size_t parked;
    bool is_failed; /* it will be delivered again, or a part of it */
    size_t set_aside;
    size_t letters;        /* drained; `records` are theirs */
    int64_t letter_age_ms; /* of the oldest of them; 0: none was */
    bool is_work;          /* a work item: its answer says what it did, so it has no summary */
};

/* Borrows all three until it is closed. */
struct sl_account *sl_account_open(const struct sl_settings *settings, struct sl_log *log,
                                   struct sl_pipeline *p);
/* Writes the metrics that wait for their time. NULL is fine. */
void sl_account_close(struct sl_account *account);

/* Takes the stats of the pipeline, which the caller resets afterwards, and writes what is due. */
void sl_account_add(struct sl_account *account, const struct sl_invoked *invoked);

#endif
