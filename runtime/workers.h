/* Several invocations in parallel: one process for each. */
#ifndef SL_RUNTIME_WORKERS_H
#define SL_RUNTIME_WORKERS_H

#include "runtime/settings.h"

/* Runs settings->workers processes of sl_serve, forked before there is any thread or plugin, or any
 * connection but the one that waits for SIGTERM. The others start only once the first one is ready, so that
 * an init error is posted once. A process that dies is replaced; when they keep dying, all are stopped.
 * Returns the exit status. */
int sl_workers_run(const struct sl_settings *settings);

#endif
