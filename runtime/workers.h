/* Several invocations at a time: one process each. */
#ifndef SL_RUNTIME_WORKERS_H
#define SL_RUNTIME_WORKERS_H

#include "runtime/settings.h"

/* Runs settings->workers processes of sl_serve, forked before there is any connection, thread or plugin. The
 * first one has to come up before the others begin, so that an init error is posted once. One that dies is
 * replaced; when they keep dying, all end. Returns the exit status. */
int sl_workers_run(const struct sl_settings *settings);

#endif
