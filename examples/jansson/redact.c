/* Records as jansson trees: forwards every change to a queue, without the attributes that have to stay
 * private.
 *
 * {"name": "feed", "handler": "redact", "to": "sqs://feed", "without": "[\"email\", \"address\"]", ...}
 *
 * A tree of every value takes about 20 times as long as a look into the record. To pass on a record as it is,
 * take its JSON from record_text(r, SL_FIELD_RAW).
 */
#include <sluice/handler.h>

#include <jansson.h>
#include <stdlib.h>

struct redact {
    const struct sl_host *host;
    struct sl_queue_port *queue;
    json_t *without;
};

static const struct sl_option options[] = {
    {.name = "to",
     .type = SL_OPTION_QUEUE,
     .flags = SL_OPTION_REQUIRED,
     .help = "queue that gets the records"},
    {.name = "without", .type = SL_OPTION_JSON, .flags = SL_OPTION_REQUIRED, .help = "names of attributes"},
    {.type = SL_OPTION_END},
};

static enum sl_status redact_open(const struct sl_host *host, struct sl_route *route, void **self,
                                  struct sl_error *error)
{
    struct redact *r = host->alloc(host->route_arena(route), sizeof(*r));
    *r = (struct redact){host, host->option_queue(route, "to"), NULL};
    r->without = json_loads(host->option_text(route, "without").ptr, 0, NULL);
    *self = r;
    if (!json_is_array(r->without))
        return host->fail(error, SL_FATAL, "Without", "\"without\" is not a list of attribute names");
    return SL_OK;
}

static void strip(const struct redact *r, json_t *image)
{
    size_t i;
    json_t *name;
    json_array_foreach(r->without, i, name) json_object_del(image, json_string_value(name));
}

/* The record's JSON without them, in `arena`. */
static struct sl_span redacted(const struct redact *r, const struct sl_record *record, struct sl_arena *arena)
{
    json_t *tree = r->host->record_to_json(record);
    json_t *change = json_object_get(tree, "dynamodb");
    strip(r, json_object_get(change, "NewImage"));
    strip(r, json_object_get(change, "OldImage"));
    char *text = json_dumps(tree, JSON_COMPACT);
    struct sl_span span = sl_span_str(text), copy = r->host->join(arena, &span, 1);
    free(text);
    json_decref(tree);
    return copy;
}

static enum sl_status redact_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    const struct redact *r = self;
    struct sl_message *messages = r->host->alloc(slice->arena, slice->n * sizeof(*messages));
    struct sl_result *results = r->host->alloc(slice->arena, slice->n * sizeof(*results));
    (void)error;
    for (size_t i = 0; i < slice->n; i++)
        messages[i] = (struct sl_message){
            .body = redacted(r, slice->records[i], slice->arena),
            .order = r->host->record_item_key(slice->records[i], slice->arena),
            .dedupe = r->host->record_text(slice->records[i], SL_FIELD_EVENT_ID),
        };
    r->queue->apply(r->queue, messages, slice->n, results,
                    &(struct sl_call){slice->arena, slice->deadline_ms});
    for (size_t i = 0; i < slice->n; i++)
        r->host->mark_result(slice, i, &results[i]);
    return SL_OK;
}

static void redact_close(void *self)
{
    json_decref(((struct redact *)self)->without);
}

SL_EXPORT const struct sl_handler SL_HANDLER = {
    .abi = SL_HANDLER_ABI,
    .name = "redact",
    .summary = "forwards records without some attributes",
    .flags = SL_ONCE_ONLY,
    .options = options,
    .open = redact_open,
    .handle = redact_handle,
    .close = redact_close,
};
