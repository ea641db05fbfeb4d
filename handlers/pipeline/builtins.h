/* The handlers that are part of Sluice. */
#ifndef SL_HANDLERS_PIPELINE_BUILTINS_H
#define SL_HANDLERS_PIPELINE_BUILTINS_H

#include "handlers/handler.h"

/* NULL-terminated, in the order in which docs list them. */
extern const struct sl_handler *const sl_builtins[];

#endif
