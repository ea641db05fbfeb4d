/* The secrets that a configuration names: what the function's role has to be allowed. */
#ifndef SL_CLI_CHECK_CHECK_SECRETS_H
#define SL_CLI_CHECK_CHECK_SECRETS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vars.h"

/* Prints a line for each: the variable, the action, the resource. `vars`: the environment's; what it sets is
 * not read. SL_FATAL when a reference is wrong; nobody is asked whether the secret is there. */
enum sl_status sl_check_secrets(struct sl_span config, const struct sl_vars *vars, struct sl_arena *arena,
                                struct sl_error *error) SL_MUST_USE;

#endif
