/* Workers that run each invocation in a sandbox: a process of its own, as in Lambda. */
#ifndef SL_LIVE_TAIL_WORKER_SANDBOX_H
#define SL_LIVE_TAIL_WORKER_SANDBOX_H

#include "live/tail/pool.h"

/* What the options point to is borrowed as long as the worker; the caller frees it with
 * sl_worker_sandbox_destroy, after the pool is closed. Once-only effects and the marks of crashes are
 * remembered by the worker: a batch that is delivered again goes to the same one. */
struct sl_worker *sl_worker_sandbox_new(size_t number, const struct sl_runner_options *options);
void sl_worker_sandbox_destroy(struct sl_worker *worker); /* NULL is fine */

#endif
