/* The handlers that are part of Sluice. */
#ifndef SL_HANDLERS_PIPELINE_BUILTINS_H
#define SL_HANDLERS_PIPELINE_BUILTINS_H

#include "handlers/builtin.h"

/* NULL-terminated, in the order in which docs list them. */
extern const struct sl_handler *const sl_builtins[];

/* What the handler of that name tells of itself; of a plugin, nothing. Never NULL. */
const struct sl_builtin *sl_builtin_named(const char *name);

#endif
