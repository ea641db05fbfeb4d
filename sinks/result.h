/* Filling in an operation's result, and errors of the operating system in the port's terms. */
#ifndef SL_SINKS_RESULT_H
#define SL_SINKS_RESULT_H

#include "base/arena.h"
#include "sinks/port.h"

/* Sets the result; the text is made in `arena`, `code` must outlive it. */
void sl_result_fail(struct sl_result *result, struct sl_arena *arena, enum sl_status status, const char *code,
                    const char *format, ...) SL_PRINTF(5, 6);

/* What an errno means for the next attempt: SL_FATAL when nothing like it can succeed here (no permission,
 * read-only), SL_REJECT when this name cannot (too long), else SL_RETRY (disk full, I/O error). */
enum sl_status sl_errno_status(int err);

/* A stable code for it: "NoSpace", "AccessDenied", ... */
const char *sl_errno_code(int err);

#endif
