/* Records that a handler may die of, in a process of their own.
 *
 * A keeper is forked before there is any connection, thread or plugin. It forks a child when a record is to
 * be tried, which opens the pipeline for itself and gives the record to the route's handler; the child lives
 * for the next record, or dies. What the record then is is the child's word, and its effects are had: it must
 * not be given to a handler here too. All of them die with the process that began it. */
#ifndef SL_RUNTIME_TRIALS_H
#define SL_RUNTIME_TRIALS_H

#include "handlers/watch.h"
#include "runtime/settings.h"

struct sl_trials;

/* Forks the keeper. NULL: that cannot be done. Borrows both until it is closed. */
struct sl_trials *sl_trials_open(const struct sl_settings *settings, struct sl_log *log);
void sl_trials_close(struct sl_trials *trials); /* NULL is fine */

/* The batch whose records are tried; borrowed until the next. */
void sl_trials_begin(struct sl_trials *trials, const struct sl_batch *batch, const char *request_id);

/* One record; when the child dies, again in a new one that has run nothing else, and again. */
void sl_trials_run(struct sl_trials *trials, const struct sl_trial_order *order, struct sl_trial *out);

#endif
