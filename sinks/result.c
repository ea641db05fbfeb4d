/* Fills in results. */
#include "sinks/result.h"

#include "aws/job.h"
#include "base/clean.h"

#include <stdarg.h>
#include <stdio.h>

void sl_result_fail(struct sl_result *result, struct sl_arena *arena, enum sl_status status, const char *code,
                    const char *format, ...)
{
    char text[SL_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    sl_clean(sl_span_str(text), text, sizeof(text));
    *result = (struct sl_result){
        .status = status,
        .code = code,
        .text = sl_arena_copy(arena, sl_span_str(text)),
    };
}

void sl_result_refuse(struct sl_result *result, struct sl_arena *arena, const struct sl_error *error)
{
    sl_result_fail(result, arena, error->status, sl_arena_copy(arena, sl_span_str(error->code)), "%s",
                   error->text);
    result->not_sent = true;
}

void sl_result_job(struct sl_result *result, const struct sl_job *job)
{
    *result = (struct sl_result){
        .status = job->status,
        .not_sent = job->not_sent && job->status != SL_OK,
        .code = job->status == SL_OK ? NULL : job->code,
        .text = job->status == SL_OK ? NULL : job->text,
    };
}
