/* A handler for Sluice, to copy: eight numbered places say what to change. It counts the changes of an
 * attribute in each slice, and logs the count if it reaches a threshold.
 *
 * Build:     make                   (cc -shared -fPIC, nothing to link)
 * Try:       sluice replay events.jsonl
 * Configure: {"name": "mine", "handler": "handler_template", "attribute": "status", "on_failure": "report"}
 */

/* 1. The one header. It is the manual; read its first comment. */
#include <sluice/handler.h>

#include <string.h>

/* 2. What the handler keeps between calls. Each route has its own: several routes may use one handler. */
struct mine {
    const struct sl_host *host;
    struct sl_route *route;
    struct sl_span attribute;
    int64_t threshold;
    uint64_t seen; /* since the process began */
};

/* 3. Its options. An unknown or missing option is refused before the first event, with its JSON path. */
static const struct sl_option options[] = {
    {.name = "attribute", .type = SL_OPTION_TEXT, .flags = SL_OPTION_REQUIRED, .help = "attribute to watch"},
    {.name = "threshold",
     .type = SL_OPTION_INTEGER,
     .min = 1,
     .max = 1000000,
     .fallback = "100",
     .help = "changes in one batch that are worth a line in the log"},
    {.type = SL_OPTION_END},
};

/* 4. Once per route, before the first event. Memory of the route's arena lives as long as the handler. */
static enum sl_status mine_open(const struct sl_host *host, struct sl_route *route, void **self,
                                struct sl_error *error)
{
    struct mine *mine = host->alloc(host->route_arena(route), sizeof(*mine));
    (void)error;
    memset(mine, 0, sizeof(*mine));
    mine->host = host;
    mine->route = route;
    mine->attribute = host->option_text(route, "attribute");
    mine->threshold = host->option_integer(route, "threshold");
    *self = mine;
    return SL_OK;
}

/* 5. One record. If it can never succeed, return SL_REJECT: the record goes to on_failure, with the text of
 * `error`. If the outside world failed, return SL_RETRY. */
static enum sl_status look_at(struct mine *mine, const struct sl_record *record, int64_t *changes,
                              struct sl_error *error)
{
    const struct sl_host *host = mine->host;
    struct sl_value value = host->record_attribute(record, SL_NEW_IMAGE, mine->attribute);
    if (value.type == SL_BOOL)
        return host->fail(error, SL_REJECT, "WrongType", "%.*s is a BOOL", SL_ARG(mine->attribute));
    if (host->record_changed(record, mine->attribute))
        ++*changes;
    return SL_OK;
}

/* 6. A slice. A rejected record that is marked need not be searched for, and the others go on. */
static enum sl_status mine_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    struct mine *mine = self;
    const struct sl_host *host = mine->host;
    int64_t changes = 0;
    (void)error;
    for (size_t i = 0; i < slice->n; i++) {
        struct sl_error why = SL_NO_ERROR;
        enum sl_status status = look_at(mine, slice->records[i], &changes, &why);
        if (status != SL_OK)
            host->mark(slice, i, status, &why);
    }
    mine->seen += slice->n;
    if (changes >= mine->threshold)
        host->log(mine->route, SL_INFO, "%lld changes of %.*s in one batch", (long long)changes,
                  SL_ARG(mine->attribute));
    host->metric(mine->route, "Changes", (double)changes, "Count");
    return SL_OK;
}

/* 7. A stream whose view type lacks what the handler needs is refused, with an error that says so. */
static enum sl_status mine_accepts(void *self, enum sl_view view, struct sl_error *error)
{
    struct mine *mine = self;
    if (view == SL_VIEW_NEW_AND_OLD_IMAGES || view == SL_VIEW_UNKNOWN)
        return SL_OK;
    return mine->host->fail(
        error, SL_FATAL, "ViewType",
        "changes are only visible in a stream of NEW_AND_OLD_IMAGES: enable one, or remove the route");
}

/* 8. The one symbol. Set SL_ONCE_ONLY in `flags` if effects cannot be repeated, for example messages. */
SL_EXPORT const struct sl_handler SL_HANDLER = {
    .abi = SL_HANDLER_ABI,
    .name = "handler_template",
    .summary = "counts changes of one attribute",
    .options = options,
    .open = mine_open,
    .handle = mine_handle,
    .accepts = mine_accepts,
};
