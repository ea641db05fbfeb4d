/* A whole small handler: sends a message when an item's status went from one value to another.
 *
 * {"name": "shipped", "handler": "status_change", "to": "sqs://shipments", "from": "PAID", "into": "SHIPPED",
 *  "text": "order {SK} of {PK} is on its way", "on_failure": "jsonl:failed.jsonl"}
 */
#include <sluice/handler.h>

#include <string.h>

struct change {
    const struct sl_host *host;
    struct sl_route *route;
    struct sl_queue_port *queue;
    const struct sl_template *text;
    struct sl_span attribute, from, into;
};

static const struct sl_option options[] = {
    {.name = "to",
     .type = SL_OPTION_QUEUE,
     .flags = SL_OPTION_REQUIRED,
     .help = "queue that gets the messages"},
    {.name = "attribute", .type = SL_OPTION_TEXT, .fallback = "status", .help = "attribute to watch"},
    {.name = "from", .type = SL_OPTION_TEXT, .help = "only when it was this"},
    {.name = "into", .type = SL_OPTION_TEXT, .help = "only when it is this now"},
    {.name = "text",
     .type = SL_OPTION_TEMPLATE,
     .flags = SL_OPTION_REQUIRED,
     .help = "what the message says"},
    {.type = SL_OPTION_END},
};

static enum sl_status change_open(const struct sl_host *host, struct sl_route *route, void **self,
                                  struct sl_error *error)
{
    struct change *c = host->alloc(host->route_arena(route), sizeof(*c));
    (void)error;
    memset(c, 0, sizeof(*c));
    c->host = host;
    c->route = route;
    c->queue = host->option_queue(route, "to");
    c->text = host->option_template(route, "text");
    c->attribute = host->option_text(route, "attribute");
    c->from = host->option_text(route, "from");
    c->into = host->option_text(route, "into");
    *self = c;
    return SL_OK;
}

static bool is_text(struct change *c, struct sl_value value, struct sl_span wanted, struct sl_arena *arena)
{
    return !wanted.ptr || sl_span_eq(c->host->value_text(value, arena), wanted);
}

static bool is_wanted(struct change *c, const struct sl_record *r, struct sl_arena *arena)
{
    return c->host->record_event(r) == SL_MODIFY && c->host->record_changed(r, c->attribute) &&
           is_text(c, c->host->record_attribute(r, SL_OLD_IMAGE, c->attribute), c->from, arena) &&
           is_text(c, c->host->record_attribute(r, SL_NEW_IMAGE, c->attribute), c->into, arena);
}

/* Sends the messages, and marks each record with the result of its message. */
static void send(struct change *c, struct sl_slice *slice, const struct sl_message *messages,
                 const size_t *index, size_t n)
{
    struct sl_result *results = c->host->alloc(slice->arena, n * sizeof(*results));
    struct sl_call call = {slice->arena, slice->deadline_ms};
    c->queue->apply(c->queue, messages, n, results, &call);
    for (size_t k = 0; k < n; k++)
        c->host->mark_result(slice, index[k], &results[k]);
}

static enum sl_status change_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    struct change *c = self;
    const struct sl_host *host = c->host;
    struct sl_message *messages = host->alloc(slice->arena, slice->n * sizeof(*messages));
    size_t *index = host->alloc(slice->arena, slice->n * sizeof(*index));
    size_t n = 0;
    (void)error;
    memset(messages, 0, slice->n * sizeof(*messages));
    for (size_t i = 0; i < slice->n; i++) {
        const struct sl_record *r = slice->records[i];
        struct sl_error why = SL_NO_ERROR;
        if (!is_wanted(c, r, slice->arena)) {
            host->mark(slice, i, SL_OK, NULL);
            continue;
        }
        if (host->template_render(c->text, r, SL_ESCAPE_NONE, slice->arena, &messages[n].body, &why) !=
            SL_OK) {
            host->mark(slice, i, SL_REJECT, &why);
            continue;
        }
        messages[n].order = host->record_item_key(r, slice->arena);
        messages[n].dedupe = host->record_text(r, SL_FIELD_EVENT_ID);
        index[n++] = i;
    }
    if (n)
        send(c, slice, messages, index, n);
    return SL_OK;
}

static enum sl_status change_accepts(void *self, enum sl_view view, struct sl_error *error)
{
    struct change *c = self;
    if (view == SL_VIEW_NEW_AND_OLD_IMAGES || view == SL_VIEW_UNKNOWN)
        return SL_OK;
    return c->host->fail(error, SL_FATAL, "ViewType", "status_change needs a stream of NEW_AND_OLD_IMAGES");
}

SL_EXPORT const struct sl_handler SL_HANDLER = {
    .abi = SL_HANDLER_ABI,
    .name = "status_change",
    .summary = "a message when an attribute went from one value to another",
    .flags = SL_ONCE_ONLY,
    .options = options,
    .open = change_open,
    .handle = change_handle,
    .accepts = change_accepts,
};
