/* One last log line when the process dies of a signal: which signal, in which route's handler or port, which
 * invocation. */
#ifndef SL_RUNTIME_CONTAIN_CRASH_H
#define SL_RUNTIME_CONTAIN_CRASH_H

#include "base/log.h"

/* For SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT; the signal's default action follows. `log` must live until
 * this is called again with NULL. Under a sanitizer, which says more, it does nothing. */
void sl_crash_report(const struct sl_log *log);

#endif
