/* The loop of one process: open the pipeline, then event after event to its answer. */
#ifndef SL_RUNTIME_SERVE_H
#define SL_RUNTIME_SERVE_H

#include "runtime/settings.h"

#define SL_SERVE_NO_API 2

/* Serves until SIGTERM (returns 0) or until it cannot go on. An init failure is logged, is posted if
 * `posts_init_error`, and returns 1; so do a handler that closed descriptors, and a process that has none
 * left, for which another process may do better. SL_SERVE_NO_API: the Runtime API is gone, or said that the
 * environment is at its end, and no other process here would do better. When the pipeline is open, one byte
 * is written to `ready_fd` (-1: nobody waits). */
int sl_serve(const struct sl_settings *settings, bool posts_init_error, int ready_fd);

#endif
