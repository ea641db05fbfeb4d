/* A last line when the process dies of a signal: which, in which route's handler, in which invocation. */
#ifndef SL_RUNTIME_CRASH_H
#define SL_RUNTIME_CRASH_H

#include "base/log.h"

/* For SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT; the signal then does what it does by default. `log` lives
 * until this is called again with NULL. Under a sanitizer, which says more, it does nothing. */
void sl_crash_report(const struct sl_log *log);

#endif
