/* Containing the crashes of handlers, per sandbox and as far as that goes.
 *
 * While a handler runs, a file names the records it holds (holds.h). A process that starts and finds some
 * there gives each of them to the handler alone, in a process of its own (trials.h), until its outcome is
 * known. One that kills that process by a signal of its own making, alone and twice, is rejected, like any
 * record that can never succeed. Being killed from outside, or running out of time, rejects nothing. */
#ifndef SL_RUNTIME_CONTAIN_H
#define SL_RUNTIME_CONTAIN_H

#include "handlers/watch.h"
#include "runtime/settings.h"

struct sl_contain;

/* Before any connection, thread or plugin, since it forks if something was found. NULL, with a line in the
 * log: it is not to be had here. Borrows both. */
struct sl_contain *sl_contain_open(const struct sl_settings *settings, struct sl_log *log);
void sl_contain_close(struct sl_contain *contain); /* NULL is fine */

/* For the pipeline's options; NULL for NULL. */
struct sl_watch *sl_contain_watch(struct sl_contain *contain);

#endif
