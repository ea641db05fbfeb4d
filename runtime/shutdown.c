/* The extension, and its lines in the log. */
#include "runtime/shutdown.h"

static void turn(void *self)
{
    struct sl_shutdown *s = self;
    struct sl_error error = SL_NO_ERROR;
    if (s->extension && sl_extension_turn(s->extension, &error) != SL_OK && error.text[0])
        sl_log(s->log, SL_WARN, "%s: %s", error.code, error.text);
}

static int fd_of(void *self)
{
    const struct sl_shutdown *s = self;
    return s->extension ? sl_extension_fd(s->extension) : -1;
}

static int wait_ms(void *self)
{
    const struct sl_shutdown *s = self;
    return s->extension ? sl_extension_wait_ms(s->extension) : INT32_MAX;
}

void sl_shutdown_open(struct sl_shutdown *s, const struct sl_settings *settings, struct sl_log *log)
{
    struct sl_error error = SL_NO_ERROR;
    *s = (struct sl_shutdown){.log = log, .beside = {s, turn, fd_of, wait_ms}};
    if (!settings->has_shutdown || !settings->endpoint)
        return;
    if (sl_extension_open(settings->endpoint, log->clock, &s->extension, &error) != SL_OK)
        sl_log(log, SL_WARN,
               "%s: %s; going on without SIGTERM: handlers are not closed at the end (SLUICE_SHUTDOWN)",
               error.code, error.text);
    turn(s);
}

void sl_shutdown_close(struct sl_shutdown *s)
{
    sl_extension_close(s->extension);
    s->extension = NULL;
}
