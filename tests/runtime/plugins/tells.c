/* A handler that appends what it is given to the file "told", a line for each call; and which fails with the
 * code "code", "in" its "open" or its "handle", if there is one. */
#include <sluice/handler.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tells {
    const struct sl_host *host;
    struct sl_route *route;
    const char *told, *code, *in;
};

static const struct sl_option options[] = {
    {.name = "told", .type = SL_OPTION_TEXT, .flags = SL_OPTION_REQUIRED, .help = "a file"},
    {.name = "code", .type = SL_OPTION_TEXT, .fallback = "-", .help = "of its error; -: none"},
    {.name = "in", .type = SL_OPTION_TEXT, .fallback = "handle", .help = "open, handle"},
    {.type = SL_OPTION_END},
};

static enum sl_status fail(const struct tells *t, const char *in, enum sl_status status,
                           struct sl_error *error)
{
    bool fails = strcmp(t->code, "-") != 0 && strcmp(t->in, in) == 0;
    return fails ? t->host->fail(error, status, t->code, "as it was told to") : SL_OK;
}

static enum sl_status tells_open(const struct sl_host *host, struct sl_route *route, void **self,
                                 struct sl_error *error)
{
    struct tells *t = host->alloc(host->route_arena(route), sizeof(*t));
    *t = (struct tells){host, route, host->option_text(route, "told").ptr,
                        host->option_text(route, "code").ptr, host->option_text(route, "in").ptr};
    *self = t;
    return fail(t, "open", SL_FATAL, error);
}

static enum sl_status tells_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    const struct tells *t = self;
    const char *trace = getenv("_X_AMZN_TRACE_ID");
    struct sl_span first = t->host->record_text(slice->records[0], SL_FIELD_SEQUENCE_NUMBER);
    FILE *told = fopen(t->told, "a");
    if (told) {
        fprintf(told, "%.*s +%zu left %lld id %s trace %s\n", (int)first.len, first.ptr, slice->n - 1,
                (long long)(slice->deadline_ms - t->host->now_ms(t->route)), slice->request_id,
                trace ? trace : "-");
        fclose(told);
    }
    t->host->log(t->route, SL_INFO, "told");
    return fail(t, "handle", SL_REJECT, error);
}

SL_EXPORT const struct sl_handler SL_HANDLER = {
    .abi = SL_HANDLER_ABI,
    .name = "tells",
    .options = options,
    .open = tells_open,
    .handle = tells_handle,
};
