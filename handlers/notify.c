/* The notify handler: a message per record. Once-only: it is called for records that the answer will not ask
 * for again. */
#include "handlers/notify.h"

#include "handlers/outcome.h"

#include <jansson.h>

/* What fails in the middle of a slice makes the rest of it come again: slices are ten requests of ten. */
#define SLICE_RECORDS 100

static const struct sl_option options[] = {
    {"to", SL_OPTION_QUEUE, SL_OPTION_REQUIRED, 0, 0, NULL, NULL,
     "sqs://name, sns:arn, events://bus, kinesis://stream, firehose://stream, jsonl:file, stdout:"},
    {"message", SL_OPTION_TEMPLATE, 0, 0, 0, NULL, NULL, "the message; without it the record itself is sent"},
    {"escape", SL_OPTION_ENUM, 0, 0, 0, "none|json", "none",
     "values in the message: as they are, or as inside a JSON string, for a message that is JSON"},
    {"body", SL_OPTION_ENUM, 0, 0, 0, "record|json", "record",
     "without a message: the record as it came, or as plain JSON"},
    {"subject", SL_OPTION_TEMPLATE, 0, 0, 0, NULL, NULL, "SNS: the subject; EventBridge: the detail-type"},
    {"attributes", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "{\"name\": template}: message attributes of SQS and SNS"},
    {"group", SL_OPTION_TEMPLATE, 0, 0, 0, NULL, NULL,
     "messages that keep their order, a FIFO destination's message group (those of one item)"},
    {"dedupe", SL_OPTION_TEMPLATE, 0, 0, 0, NULL, NULL,
     "a FIFO destination's deduplication id (the eventID)"},
    {"missing", SL_OPTION_ENUM, 0, 0, 0, SL_MISSING_VALUES, "reject",
     "a record that lacks what a template names: rejected, left out, or with nothing in its place"},
    {.type = SL_OPTION_END},
};

/* ---- the slice ---- */

static bool is_skipped(const struct notify *p, const struct sl_error *error)
{
    return p->missing == SL_MISSING_SKIP && strcmp(error->code, "MissingAttribute") == 0;
}

static enum sl_status handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    const struct notify *p = self;
    const struct sl_host *host = p->host;
    struct sl_message *messages = host->alloc(slice->arena, slice->n * sizeof(*messages));
    struct sl_result *results = host->alloc(slice->arena, slice->n * sizeof(*results));
    uint32_t *record_of = host->alloc(slice->arena, slice->n * sizeof(*record_of));
    struct sl_outcome outcome;
    struct sl_error why;
    size_t n = 0;
    sl_outcome_init(&outcome, host, slice);
    for (size_t i = 0; i < slice->n; i++) {
        why = (struct sl_error){.offset = SIZE_MAX};
        record_of[n] = (uint32_t)i;
        if (notify_message(p, slice->records[i], slice->arena, &messages[n], &why) == SL_OK)
            n++;
        else if (!is_skipped(p, &why))
            sl_outcome_fail(&outcome, i, &why);
    }
    memset(results, 0, n * sizeof(*results));
    struct sl_call call = {.arena = slice->arena, .deadline_ms = slice->deadline_ms};
    if (n > 0)
        p->queue->apply(p->queue, messages, n, results, &call);
    for (size_t k = 0; k < n; k++) {
        if (results[k].status == SL_OK)
            continue;
        sl_outcome_error(host, &results[k], &why);
        sl_outcome_fail(&outcome, record_of[k], &why);
    }
    return sl_outcome_end(&outcome, error);
}

/* ---- opening ---- */

static enum sl_status read_attributes(struct notify *p, struct sl_error *error)
{
    const struct sl_host *host = p->host;
    struct sl_arena *arena = host->route_arena(p->route);
    struct sl_span text = host->option_text(p->route, "attributes");
    json_t *object = text.len ? json_loadb(text.ptr, text.len, JSON_DECODE_ANY, NULL) : NULL, *value;
    const char *name;
    enum sl_status status = SL_OK;
    p->attributes = host->alloc(arena, (json_object_size(object) + 1) * sizeof(*p->attributes));
    if (object && !json_is_object(object))
        status = host->fail(error, SL_FATAL, "InvalidConfiguration", "attributes: expected an object");
    json_object_foreach(object, name, value)
    {
        struct notify_attribute *attribute = &p->attributes[p->n_attributes++];
        struct sl_span source = sl_text_of(name), template = sl_text_of(json_string_value(value));
        struct sl_error why = {.offset = SIZE_MAX};
        attribute->name = host->join(arena, &source, 1);
        if (!json_is_string(value))
            status = host->fail(error, SL_FATAL, "InvalidConfiguration", "attributes.%s: expected a template",
                                name);
        else if (sl_text_compile(host, arena, template, &attribute->value, &why) != SL_OK)
            status = host->fail(error, SL_FATAL, "InvalidConfiguration", "attributes.%s: byte %zu: %s", name,
                                why.offset, why.text);
        if (status != SL_OK)
            break;
    }
    json_decref(object);
    return status;
}

static enum sl_status open_notify(const struct sl_host *host, struct sl_route *route, void **self,
                                  struct sl_error *error)
{
    struct notify *p = host->alloc(host->route_arena(route), sizeof(*p));
    *p = (struct notify){.host = host,
                         .route = route,
                         .queue = host->option_queue(route, "to"),
                         .message = host->option_template(route, "message"),
                         .subject = host->option_template(route, "subject"),
                         .group = host->option_template(route, "group"),
                         .dedupe = host->option_template(route, "dedupe"),
                         .missing = sl_text_missing(host, route)};
    *self = p;
    if (sl_text_eq(host->option_text(route, "body"), SL_TEXT("json")))
        p->body = NOTIFY_JSON;
    p->escape =
        sl_text_eq(host->option_text(route, "escape"), SL_TEXT("json")) ? SL_ESCAPE_JSON : SL_ESCAPE_NONE;
    return read_attributes(p, error);
}

const struct sl_handler sl_notify_handler = {
    .abi = SL_HANDLER_ABI,
    .name = "notify",
    .summary = "a message per record, once",
    .flags = SL_ONCE_ONLY,
    .max_records = SLICE_RECORDS,
    .options = options,
    .open = open_notify,
    .handle = handle,
};
