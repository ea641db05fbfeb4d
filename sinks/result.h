/* Filling in an operation's result. */
#ifndef SL_SINKS_RESULT_H
#define SL_SINKS_RESULT_H

#include "base/arena.h"
#include "sinks/port.h"

/* Sets the result. The text is in `arena`; `code` must live as long. */
void sl_result_fail(struct sl_result *result, struct sl_arena *arena, enum sl_status status, const char *code,
                    const char *format, ...) SL_PRINTF(5, 6);

/* The result of an operation that was refused before it was sent. */
void sl_result_refuse(struct sl_result *result, struct sl_arena *arena, const struct sl_error *error);

/* Puts the outcome of a request to AWS into a result. */
struct sl_job;
void sl_result_job(struct sl_result *result, const struct sl_job *job);

#endif
