/* A handler that breaks a rule of handler.h: "how" says which. */
#include <sluice/handler.h>

#include <string.h>

struct keeps {
    const struct sl_host *host;
    struct sl_arena *mine;
    const char *how;
    const struct sl_record *record;
    struct sl_span text, copy;
    char *memory;
};

static const struct sl_option options[] = {
    {.name = "how", .type = SL_OPTION_TEXT, .flags = SL_OPTION_REQUIRED, .help = "the rule"},
    {.type = SL_OPTION_END},
};

static enum sl_status keeps_open(const struct sl_host *host, struct sl_route *route, void **self,
                                 struct sl_error *error)
{
    struct keeps *k = host->alloc(host->route_arena(route), sizeof(*k));
    memset(k, 0, sizeof(*k));
    k->host = host;
    k->mine = host->route_arena(route);
    k->how = host->option_text(route, "how").ptr;
    *self = k;
    if (strcmp(k->how, "no open") == 0)
        return host->fail(error, SL_FATAL, "NotToday", "the moon is in the wrong house");
    return strcmp(k->how, "a mute open") == 0 ? SL_RETRY : SL_OK;
}

/* What an earlier batch gave. */
static char use(struct keeps *k)
{
    if (!k->record)
        return 0;
    if (strcmp(k->how, "a record") == 0)
        return *k->host->record_text(k->record, SL_FIELD_SEQUENCE_NUMBER).ptr;
    if (strcmp(k->how, "a text") == 0)
        return *k->text.ptr;
    if (strcmp(k->how, "memory") == 0)
        return *k->memory;
    return *k->copy.ptr; /* which is allowed */
}

static enum sl_status keeps_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    struct keeps *k = self;
    volatile char sink = use(k);
    (void)sink;
    (void)error;
    k->record = slice->records[0];
    k->text = k->host->record_text(k->record, SL_FIELD_SEQUENCE_NUMBER);
    k->copy = k->host->join(k->mine, &k->text, 1);
    k->memory = k->host->alloc(slice->arena, 8);
    memset(k->memory, 'x', 8);
    if (strcmp(k->how, "a mark") == 0)
        k->host->mark(slice, slice->n, SL_OK, NULL);
    if (strcmp(k->how, "a mark of its own") == 0)
        k->host->mark(slice, 0, (enum sl_status)9, NULL);
    return strcmp(k->how, "an outcome") == 0 ? (enum sl_status)7 : SL_OK;
}

SL_EXPORT const struct sl_handler SL_HANDLER = {
    .abi = SL_HANDLER_ABI,
    .name = "keeps",
    .options = options,
    .open = keeps_open,
    .handle = keeps_handle,
};
