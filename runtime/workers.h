/* Several invocations in parallel: one process for each. */
#ifndef SL_RUNTIME_WORKERS_H
#define SL_RUNTIME_WORKERS_H

#include "runtime/settings.h"

/* Runs settings->workers processes of sl_serve, forked before there is any thread or plugin, or any
 * connection but the one that waits for SIGTERM. The others start only once the first one is ready, so that
 * an init error is posted once. A process that ends is replaced, whatever its status; when they keep ending
 * before they are ready, or one says that the Runtime API is gone, all are stopped. SIGTERM goes to all; one
 * that is not ready soon after it is killed. Returns the exit status: 0 after SIGTERM. */
int sl_workers_run(const struct sl_settings *settings);

#endif
