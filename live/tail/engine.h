/* The engine of `sluice tail`: a live stream, shard by shard, through the workers.
 *
 * One thread owns everything here: it drives all requests to the service (they fly together), the mapping of
 * each shard, and the places. Workers (pool.h) run the invocations in threads of their own, a keeper
 * (keeper.h) writes places in its own; both ring one bell.
 *
 * What it promises:
 * - A shard is a lane: its reads, its retries and pauses, its place in the stream are its own. What a lane
 * waits for (a retry, a request that fails) delays no other; only workers and memory are shared, and the lane
 * that lags most gets them first.
 * - The next page of a shard is read while the one before it is handled: at most two pages a shard, and of
 * all shards together `memory_bytes`, asked for before a read.
 * - A shard's place moves when all records below it are handled or given up. A shard is done when it was read
 * to its end and its place is there; only then its children begin.
 * - A batch that is delivered again goes to the worker that had it. */
#ifndef SL_LIVE_TAIL_ENGINE_H
#define SL_LIVE_TAIL_ENGINE_H

#include "live/source/live.h"
#include "live/tail/pool.h"
#include "live/tail/keeper.h"
#include "live/tail/vitals.h"

#include <signal.h>

struct sl_engine_options {
    struct sl_live *live;
    const char *stream_arn;
    const char *table;       /* asked whether its stream is still this one; NULL: not asked */
    struct sl_keeper keeper; /* open; the engine does not close it */
    struct sl_pool *pool;    /* likewise */
    int bell;                /* the eventfd of both; also rung when `*stop` was set */
    const volatile sig_atomic_t *stop;
    const struct sl_esm_settings *settings; /* parallelization, retries, filters, ... */
    struct sl_span ttl_attribute;
    size_t memory_bytes;
    bool is_once; /* ends when all records in the stream are handled */
    bool is_from_latest;
    bool follows;                  /* the table's new stream, when this one is replaced */
    struct sl_vitals_board *board; /* NULL: nobody watches */

    /* What else is told of each invocation; both may be NULL. */
    void *self;
    void (*decided)(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                    const struct sl_esm_decision *decision);
    void (*discarded)(void *self, const struct sl_esm_discard *discard);
    void (*followed)(void *self, const char *stream_arn); /* from now on it is this one's; NULL is fine */
};

/* What it came to. */
struct sl_engine_result {
    struct sl_esm_stats mapping; /* elapsed_ms is real time */
    size_t records, by_event[4], removed_by[4];
    unsigned gaps;
    uint64_t leases_lost;
    size_t unhandled; /* records that were read and are not handled */
    bool has_failed;  /* it could not go on; a line on standard error said why */
    bool has_begun;   /* something was read before that */
};

/* Runs until it is told to stop, has nothing left (is_once), or cannot go on. Then no task is under way,
 * unless a worker that cannot be broken off has it: it returns all the same. Messages go to standard error.
 */
void sl_engine_run(const struct sl_engine_options *options, struct sl_engine_result *out);

#endif
