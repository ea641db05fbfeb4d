#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cuts a text that filled its array at a whole character, and keeps a log line one line. */
static void tidy(char *text, size_t room, size_t wanted)
{
    if (wanted >= room) {
        size_t end = room - 1;
        while (end > 0 && ((unsigned char)text[end - 1] & 0xC0) == 0x80)
            end--;
        if (end > 0 && (unsigned char)text[end - 1] >= 0xC0)
            end--;
        /* The last character may have been whole, but a cut text need not be exact. */
        text[end] = '\0';
    }
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            *p = '?';
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
    int wanted = vsnprintf(error->text, sizeof(error->text), format, args);
    tidy(error->text, sizeof(error->text), wanted < 0 ? 0 : (size_t)wanted);
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
    int wanted = snprintf(whole, sizeof(whole), "%s: %s", context, error->text);
    memcpy(error->text, whole, sizeof(error->text) - 1);
    error->text[sizeof(error->text) - 1] = '\0';
    tidy(error->text, sizeof(error->text), wanted < 0 ? 0 : (size_t)wanted);
}

void sl_error_clear(struct sl_error *error)
{
    if (error)
        *error = (struct sl_error){.offset = SL_NO_OFFSET};
}

const char *sl_status_name(enum sl_status status)
{
    static const char *const names[] = {"OK", "RETRY", "REJECT", "FATAL"};
    return (unsigned)status < 4 ? names[status] : "?";
}

_Noreturn void sl_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("sluice: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}
