/* What `sluice check --tables` says of the tables that routes write: they are there, and have the key that
 * the configuration names. */
#ifndef SL_REPLAY_CHECK_CHECK_KEYS_H
#define SL_REPLAY_CHECK_CHECK_KEYS_H

#include "handlers/pipeline/route.h"
#include "replay/config/lint.h"

struct sl_check_keys {
    struct sl_pipeline *pipeline;
    struct sl_sinks *sinks;
    struct sl_arena *arena;
    sl_lint_fn find;
    void *arg;
};

/* Asks for the description of each table. A local file that is not there is none: the first record makes it.
 * One that cannot be described, for lack of a permission, is an error. */
enum sl_status sl_check_keys(const struct sl_check_keys *c, struct sl_error *error) SL_MUST_USE;

#endif
