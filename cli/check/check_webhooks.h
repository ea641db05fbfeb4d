/* What `sluice check` says of webhooks: routes whose messages one receiver cannot tell apart. */
#ifndef SL_CLI_CHECK_CHECK_WEBHOOKS_H
#define SL_CLI_CHECK_CHECK_WEBHOOKS_H

#include "handlers/pipeline/route.h"
#include "cli/config/lint.h"

void sl_check_webhooks(struct sl_pipeline *pipeline, struct sl_arena *arena, sl_lint_fn find, void *arg);

#endif
