/* Workers that run each invocation in this process: a pipeline each, without a sandbox around it.
 *
 * A handler that crashes takes the whole process with it, and one that hangs cannot be broken off: this is
 * for built-in handlers, which do neither. */
#ifndef SL_LIVE_TAIL_WORKER_PIPELINE_H
#define SL_LIVE_TAIL_WORKER_PIPELINE_H

#include "handlers/pipeline/pipeline.h"
#include "live/tail/pool.h"

/* All borrowed as long as the worker. */
struct sl_worker_pipeline_options {
    const char *config_path;
    const struct sl_vars *vars;
    const char *const *handler_path; /* NULL-terminated */
    const char *function_name, *function_arn;
    int64_t timeout_ms;               /* of an invocation */
    const struct sl_openers *openers; /* NULL: the targets' own */
};

struct sl_worker *sl_worker_pipeline_new(size_t number, const struct sl_worker_pipeline_options *options);
void sl_worker_pipeline_destroy(struct sl_worker *worker); /* NULL is fine */

/* Refuses a configuration with plugins (unless `trusts_plugins`), naming the first. With `is_shared`, other
 * processes may take over our shards, and what cannot be broken off must be safe to repeat: refuses routes
 * whose effects happen once, too. */
enum sl_status sl_worker_pipeline_check(const char *config_path, const struct sl_vars *vars,
                                        bool trusts_plugins, bool is_shared,
                                        struct sl_error *error) SL_MUST_USE;

#endif
