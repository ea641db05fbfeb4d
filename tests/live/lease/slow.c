/* A handler that takes its time whatever its deadline is, and writes down each record when it is done: "ms since
 * 1970, sequence number", a line, at once. */
#include <sluice/handler.h>

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct slow {
    const struct sl_host *host;
    int told;
    int64_t takes_ms;
};

static const struct sl_option options[] = {
    {.name = "told", .type = SL_OPTION_TEXT, .flags = SL_OPTION_REQUIRED, .help = "a file"},
    {.name = "takes_ms", .type = SL_OPTION_INTEGER, .flags = SL_OPTION_REQUIRED, .min = 0, .max = 60000,
     .help = "of each record"},
    {.type = SL_OPTION_END},
};

static enum sl_status slow_open(const struct sl_host *host, struct sl_route *route, void **self,
                                struct sl_error *error)
{
    struct slow *s = host->alloc(host->route_arena(route), sizeof(*s));
    (void)error;
    s->host = host;
    s->told =
        open(host->option_text(route, "told").ptr, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    s->takes_ms = host->option_integer(route, "takes_ms");
    *self = s;
    return s->told >= 0 ? SL_OK : SL_FATAL;
}

static enum sl_status slow_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    const struct slow *s = self;
    (void)error;
    for (size_t i = 0; i < slice->n; i++) {
        struct sl_span number = s->host->record_text(slice->records[i], SL_FIELD_SEQUENCE_NUMBER);
        struct timespec pause = {.tv_sec = s->takes_ms / 1000, .tv_nsec = (s->takes_ms % 1000) * 1000000}, now;
        char line[128];
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_REALTIME, &now);
        int n = snprintf(line, sizeof(line), "%lld %.*s\n",
                         (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, SL_ARG(number));
        if (write(s->told, line, (size_t)n) != n)
            return SL_FATAL;
    }
    return SL_OK;
}

static void slow_close(void *self)
{
    close(((struct slow *)self)->told);
}

SL_EXPORT const struct sl_handler SL_HANDLER = {
    .abi = SL_HANDLER_ABI,
    .name = "slow",
    .options = options,
    .open = slow_open,
    .handle = slow_handle,
    .close = slow_close,
};
