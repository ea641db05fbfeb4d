/* Records that a handler may die of are tried in a process of their own.
 *
 * A keeper is forked before there is any connection, thread or plugin. When a record is to be tried, the
 * keeper forks a child. The child opens the pipeline for itself and gives the record to the route's handler;
 * then it waits for the next record, or it dies. The child's verdict is final, and its effects have happened:
 * the record must not be given to a handler in this process too. Keeper and child die with the process that
 * called sl_trials_open. */
#ifndef SL_RUNTIME_CONTAIN_TRIALS_H
#define SL_RUNTIME_CONTAIN_TRIALS_H

#include "handlers/dispatch/watch.h"
#include "handlers/pipeline/pipeline.h"

struct sl_trials;

/* Forks the keeper. Returns NULL when that cannot be done. Borrows `pipeline` until it is closed. */
struct sl_trials *sl_trials_open(const struct sl_pipeline_options *pipeline);
/* The descriptor that it holds. */
int sl_trials_fd(const struct sl_trials *t);

void sl_trials_close(struct sl_trials *trials); /* NULL is fine */

/* The batch whose records are tried; borrowed until the next call. */
void sl_trials_begin(struct sl_trials *trials, const struct sl_batch *batch, const char *request_id,
                     const char *trace_id);

/* Tries one record. When the handler does not return in order from it, the record is tried again in a new
 * child that has run nothing else, and then once more in another one. What it does not return from in time is
 * not. */
void sl_trials_run(struct sl_trials *trials, const struct sl_trial_order *order, struct sl_trial *out);

#endif
