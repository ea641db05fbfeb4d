/* A process that kills sandboxes at a moment that was set before, also while this process cannot: it was
 * stopped (SIGSTOP, a debugger), or waits for a disk. Used where another machine begins at that moment
 * (leases).
 *
 * It shares a page with us, looks at it twenty times a second, holds no file, and ends with this process.
 * When the machine itself stands still, nothing runs on it; the sandbox's deadline, which is the same moment,
 * is what stops our bootstrap then. */
#ifndef SL_LIVE_SANDBOX_GUARD_H
#define SL_LIVE_SANDBOX_GUARD_H

#include "base/error.h"

#define SL_GUARD_SANDBOXES 256 /* at a time */

struct sl_guard;

/* Starts it: before threads and open files that must not live longer than this process. SL_RETRY: no process
 * or memory for it. */
enum sl_status sl_guard_start(struct sl_guard **out, struct sl_error *error) SL_MUST_USE;
void sl_guard_end(struct sl_guard *guard); /* NULL is fine */

/* The process group `pid`, of a child that is not waited for yet, is killed at `until_ms` (steady time, see
 * base/clock.h) unless another moment is set before; INT64_MAX: it is not. From any thread; one thread for
 * one pid. False: there are too many. */
bool sl_guard_watch(struct sl_guard *guard, int pid, int64_t until_ms);

/* Before the child is waited for: afterwards its number may be another's. */
void sl_guard_forget(struct sl_guard *guard, int pid);

#endif
