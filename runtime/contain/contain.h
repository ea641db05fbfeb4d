/* Contains handlers that misbehave: best effort, and for one sandbox.
 *
 * While a handler runs, a file names the records it holds (holds.h). The next process finds them there. It
 * gives each of them to the handler alone, in a process of its own (trials.h), until its outcome is known.
 * Dispatch decides by contrast which record is at fault (handlers/dispatch/dispatch_alone.c). What has been
 * proven is kept here, so that the record is not tried again at each delivery.
 *
 * After each call, it looks whether the descriptors of this process are still its own. */
#ifndef SL_RUNTIME_CONTAIN_CONTAIN_H
#define SL_RUNTIME_CONTAIN_CONTAIN_H

#include "handlers/dispatch/watch.h"
#include "handlers/pipeline/pipeline.h"
#include "runtime/contain/owned.h"

struct sl_contain;

/* Before any connection, thread or plugin, since it forks if something was found. `folder` holds the file;
 * `pipeline` is how a trial opens the pipeline for itself, borrowed until the close. When the file cannot be
 * created, a line in the log says so, and no record can be found out. */
struct sl_contain *sl_contain_open(const char *folder, const struct sl_pipeline_options *pipeline);
void sl_contain_close(struct sl_contain *contain);

/* Every descriptor above standard output that is open now is this process's own until its end, up to
 * SL_CONTAIN_OWNED. Call it before plugins are loaded. One of theirs that takes the number of one of ours
 * would get our bytes: answers, requests, lines of the log. */
void sl_contain_own_all(struct sl_contain *contain);
/* The connection that the current event came on; -1: none is known. */
void sl_contain_own_connection(struct sl_contain *contain, int fd);
#define SL_CONTAIN_OWNED 16
bool sl_contain_is_whole(const struct sl_contain *contain);

/* For the pipeline's options. */
struct sl_call_watch *sl_contain_watch(struct sl_contain *contain);

#endif
