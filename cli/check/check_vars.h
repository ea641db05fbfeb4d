/* The variables of a configuration that is only looked at. The function may be deployed elsewhere, with
 * variables that are not set here: each gets a value that fits its place, so that everything else can be
 * checked. */
#ifndef SL_CLI_CHECK_CHECK_VARS_H
#define SL_CLI_CHECK_CHECK_VARS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vars.h"
#include "cli/config/lint.h"
#include "cli/flags.h"

struct sl_check_vars {
    struct sl_span text;            /* the configuration's */
    const struct sl_flag_list *set; /* of --set */
    struct sl_arena *arena;
    sl_lint_fn find; /* called for each variable that is not set, and each --set that nothing uses */
    void *arg;
};

/* `vars`, the environment's, becomes the values of --set, then these, then stand-ins. A text of --set that is
 * not NAME=VALUE is refused. The list lives in the arena. What is not JSON has no variables: whoever reads
 * the configuration refuses it. */
enum sl_status sl_check_vars(const struct sl_check_vars *in, struct sl_vars *vars,
                             struct sl_error *error) SL_MUST_USE;

#endif
