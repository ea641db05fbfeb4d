/* What `sluice check` says of one route's options: those that change nothing as the others are set. */
#ifndef SL_CLI_CHECK_CHECK_UNUSED_H
#define SL_CLI_CHECK_CHECK_UNUSED_H

#include "handlers/pipeline/route.h"
#include "cli/config/lint.h"

void sl_check_unused(const struct sl_route *route, struct sl_arena *arena, sl_lint_fn find, void *arg);

#endif
