/* Workers: each runs one invocation at a time, in a thread of its own.
 *
 * The engine's thread gives a task to a worker that is free, and takes it back when it is over; between the
 * two the task is the worker's. What a worker runs it in, a sandbox (worker_sandbox.h) or a pipeline in this
 * process (worker_pipeline.h), is its kind. */
#ifndef SL_LIVE_TAIL_POOL_H
#define SL_LIVE_TAIL_POOL_H

#include "base/buffer.h"
#include "esm/esm.h"
#include "live/sandbox/runner.h"

#define SL_POOL_NONE SIZE_MAX
#define SL_POOL_MAX  256

struct sl_pool_task {
    void *owner;                   /* the engine's */
    struct sl_esm_invocation *inv; /* its payload stays as it is until the task is over */
    int64_t
        until_ms; /* steady time: it is over, or broken off, by then; INT64_MAX: its timeout alone counts */

    size_t worker;
    enum sl_esm_outcome outcome;
    struct sl_buffer body;      /* of the answer, or of the error */
    int64_t began_ms, ended_ms; /* steady time */
};

struct sl_worker;
struct sl_worker_kind {
    /* In the worker's thread. */
    enum sl_status (*open)(struct sl_worker *worker, struct sl_error *error) SL_MUST_USE;
    void (*run)(struct sl_worker *worker, struct sl_pool_task *task); /* sets outcome and body */
    void (*close)(struct sl_worker *worker);
    /* From any thread, while `run` is under way: it ends soon. NULL: it cannot be broken off. */
    void (*cancel)(struct sl_worker *worker);
    /* While `run` is not under way. */
    size_t (*routes)(const struct sl_worker *worker);
    void (*route)(const struct sl_worker *worker, size_t i, struct sl_runner_route *out); /* borrowed names */
    void (*stats)(struct sl_worker *worker, struct sl_runner_stats *sum); /* adds; NULL: none */
};

/* The beginning of what a kind has for each worker. */
struct sl_worker {
    const struct sl_worker_kind *kind;
    size_t number;
};

struct sl_pool;

/* Takes the `n` workers, at least 1, which outlive it. Their threads begin now; each worker is opened with
 * its first task. `bell` (an eventfd) is rung when a task is over. */
struct sl_pool *sl_pool_new(struct sl_worker *const *workers, size_t n, int bell);

/* Opens the first worker, and waits for it: what is wrong with the configuration is known then. */
enum sl_status sl_pool_warm_up(struct sl_pool *pool, struct sl_error *error) SL_MUST_USE;

/* A worker that is free: `preferred` (or SL_POOL_NONE) if it can be, with `must` no other. */
size_t sl_pool_pick(const struct sl_pool *pool, size_t preferred, bool must);
size_t sl_pool_size(const struct sl_pool *pool);
size_t sl_pool_busy(const struct sl_pool *pool);

void sl_pool_give(struct sl_pool *pool, size_t worker, struct sl_pool_task *task);

/* A task that is over; its worker is free again. NULL: there is none. */
struct sl_pool_task *sl_pool_take(struct sl_pool *pool);

/* The worker's task, which was given and not taken, ends soon, and fails. False: its kind cannot. */
bool sl_pool_cancel(struct sl_pool *pool, size_t worker);

/* Sums over the workers, as of their last tasks. Routes by their name, in the configuration's order. Borrowed
 * until the next call. */
const struct sl_runner_route *sl_pool_routes(struct sl_pool *pool, size_t *n);
struct sl_runner_stats sl_pool_stats(struct sl_pool *pool);

/* Closes all workers. False: some were not closed within `wait_ms`: their threads go on, nothing of theirs
 * may be freed, and the process has to end with _exit. Then the pool stays as it is. */
bool sl_pool_close(struct sl_pool *pool, int64_t wait_ms);

#endif
