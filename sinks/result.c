#include "sinks/result.h"

#include <errno.h>
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
    *result = (struct sl_result){
        .status = status,
        .code = code,
        .text = sl_arena_copy(arena, sl_span_str(text)),
    };
}

enum sl_status sl_errno_status(int err)
{
    switch (err) {
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case EISDIR:
    case ENOENT:
    case ELOOP:
        return SL_FATAL;
    case ENAMETOOLONG:
    case EFBIG:
        return SL_REJECT;
    default:
        return SL_RETRY;
    }
}

const char *sl_errno_code(int err)
{
    switch (err) {
    case EACCES:
    case EPERM:
        return "AccessDenied";
    case EROFS:
        return "ReadOnly";
    case ENOSPC:
    case EDQUOT:
        return "NoSpace";
    case ENAMETOOLONG:
        return "NameTooLong";
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
        return "NotFound";
    default:
        return "IoError";
    }
}
