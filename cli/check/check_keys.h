/* What `sluice check --tables` says of the tables that routes write: they are there, and have the key that
 * the configuration names. */
#ifndef SL_CLI_CHECK_CHECK_KEYS_H
#define SL_CLI_CHECK_CHECK_KEYS_H

#include "data/source/source.h"
#include "handlers/pipeline/route.h"
#include "cli/config/lint.h"

struct sl_check_keys {
    struct sl_pipeline *pipeline;
    struct sl_sinks *sinks;
    struct sl_arena *arena;
    struct sl_source_keys source_keys; /* of the stream's table, as a replica without "key" has them */
    sl_lint_fn find;
    void *arg;
};

/* Asks for the key of the table of this stream. A stream of something else, or "", leaves it unknown. */
enum sl_status sl_check_source_keys(struct sl_check_keys *c, const char *stream_arn,
                                    struct sl_error *error) SL_MUST_USE;

/* Asks for the description of each table. A local file that is missing has no table: the first record makes
 * it. One that cannot be described, for lack of a permission, is an error. */
enum sl_status sl_check_keys(const struct sl_check_keys *c, struct sl_error *error) SL_MUST_USE;

#endif
