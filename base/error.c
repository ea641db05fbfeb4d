/* Errors as one line of clean text. */
#include "base/error.h"

#include "base/clean.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keeps it one line, and cuts a text that filled its array at a whole character. */
static void tidy(char *text, size_t room)
{
    size_t len = strnlen(text, room), last = len;
    while (len >= room - 1 && last && ((unsigned char)text[last - 1] & 0xC0) == 0x80)
        last--;
    if (last < len || (len >= room - 1 && last && (unsigned char)text[last - 1] >= 0xC0))
        len = last - 1; /* the last character may have been whole, but a cut text need not be exact */
    sl_clean(sl_span(text, len), text, room);
}

SL_PRINTF(5, 0)
static void fill(struct sl_error *error, enum sl_status status, const char *code, size_t offset,
                 const char *format, va_list args)
{
    if (!error || error->status != SL_OK)
        return;
    error->status = status;
    error->offset = offset;
    snprintf(error->code, sizeof(error->code), "%s", code);
    vsnprintf(error->text, sizeof(error->text), format, args);
    tidy(error->text, sizeof(error->text));
}

enum sl_status sl_fail(struct sl_error *error, enum sl_status status, const char *code, const char *format,
                       ...)
{
    va_list args;
    va_start(args, format);
    fill(error, status, code, SL_NO_OFFSET, format, args);
    va_end(args);
    return status;
}

enum sl_status sl_fail_at(struct sl_error *error, enum sl_status status, const char *code, size_t offset,
                          const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(error, status, code, offset, format, args);
    va_end(args);
    return status;
}

void sl_error_context(struct sl_error *error, const char *format, ...)
{
    if (!error || error->status == SL_OK)
        return;
    char context[SL_ERROR_TEXT_BYTES];
    char whole[2 * SL_ERROR_TEXT_BYTES + 2];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof(context), format, args);
    va_end(args);
    int n = snprintf(whole, sizeof(whole), "%s: %s", context, error->text);
    sl_clean(sl_span(whole, n < 0 ? 0 : (size_t)n), error->text, sizeof(error->text));
}

void sl_error_clear(struct sl_error *error)
{
    if (error)
        *error = (struct sl_error)SL_NO_ERROR;
}

void sl_error_seal(struct sl_error *error)
{
    if (!error)
        return;
    tidy(error->code, sizeof(error->code));
    tidy(error->text, sizeof(error->text));
}

const char *sl_status_name(enum sl_status status)
{
    static const char *const names[] = {"OK", "RETRY", "REJECT", "FATAL"};
    return (unsigned)status < 4 ? names[status] : "?";
}

_Noreturn void sl_die(const char *format, ...)
{
    char text[SL_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "sluice: %s\n", text); /* one write */
    abort();
}
