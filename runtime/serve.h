/* The loop of one process: open the pipeline, then event after event to its answer. */
#ifndef SL_RUNTIME_SERVE_H
#define SL_RUNTIME_SERVE_H

#include "runtime/settings.h"

/* Serves until SIGTERM (returns 0) or until it cannot go on (returns 1). An init failure is logged, is posted
 * if `posts_init_error`, and returns 1. When the pipeline is open, one byte is written to `ready_fd` (-1:
 * nobody waits). */
int sl_serve(const struct sl_settings *settings, bool posts_init_error, int ready_fd);

#endif
