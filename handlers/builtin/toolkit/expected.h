/* Rows that the built-in handlers expect, see handlers/expect.h. */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_EXPECTED_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_EXPECTED_H

#include "handlers/handler.h"

/* The item cannot be compared, as `why` says; the row's code and text are copies in `arena`. */
void sl_expected_refuse(const struct sl_host *host, const struct sl_error *why, struct sl_expected *row,
                        struct sl_arena *arena);

#endif
