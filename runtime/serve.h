/* The loop of one process: open the pipeline, then event after event to its answer. */
#ifndef SL_RUNTIME_SERVE_H
#define SL_RUNTIME_SERVE_H

#include "runtime/settings.h"

/* Serves until told to stop (SIGTERM: 0) or until it cannot go on (1). An init failure is posted once, when
 * `posts_init_error`, said in the log, and ends it with 1. When the pipeline stands, a byte goes to
 * `ready_fd` (-1: nobody waits). */
int sl_serve(const struct sl_settings *settings, bool posts_init_error, int ready_fd);

#endif
