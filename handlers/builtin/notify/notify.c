/* The notify handler: a message per record. It is once-only: it is called only for records that the answer
 * will not ask for again. */
#include "base/array.h"
#include "base/span.h"
#include "handlers/builtin.h"
#include "handlers/builtin/toolkit/apply.h"
#include "handlers/builtin/toolkit/opening.h"
#include "handlers/builtin/toolkit/outcome.h"
#include "handlers/builtin/toolkit/render.h"
#include "handlers/builtin/toolkit/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* When a message fails, the rest of its slice is delivered again. So slices are small: ten requests of ten.
 */
#define SLICE_RECORDS 100

/* More than an SQS message has (SQS developer guide, "Message attributes"). */
#define ATTRIBUTES_MAX 10
#define TRACE_BYTES    1024 /* more than the two take */
#define TRACEPARENT    "traceparent"
#define TRACESTATE     "tracestate"

enum notify_body { NOTIFY_RECORD, NOTIFY_JSON };

struct notify_attribute {
    struct sl_span name;
    struct sl_render_template value;
};

struct notify {
    const struct sl_host *host;
    struct sl_route *route;
    struct sl_queue_port *queue;
    const struct sl_template *message; /* NULL: the record itself, as `body` says */
    const struct sl_template *subject, *group, *dedupe;
    enum notify_body body;
    enum sl_escape escape; /* of values in the message */
    enum sl_missing missing;
    bool is_shared; /* the destination knows repeats by an id alone, and other routes may write to it */
    struct notify_attribute *attributes;
    size_t n_attributes;
};

/* ---- one message: from a template, or the record itself ---- */

/* A message group of SQS and SNS has at most so many letters, digits and punctuation characters. */
#define GROUP_BYTES 128

/* ---- the record as plain JSON ---- */

/* The members' parts, as they are collected. */
struct parts {
    const struct sl_host *host;
    struct sl_arena *arena;
    struct sl_span list[18];
    size_t n;
};

static void add(struct parts *parts, const char *before, struct sl_span json)
{
    parts->list[parts->n++] = sl_span_str(before);
    parts->list[parts->n++] = json;
}

static void add_field(struct parts *parts, const char *before, const struct sl_record *r, enum sl_field field)
{
    struct sl_span text = parts->host->record_text(r, field);
    if (text.ptr)
        add(parts, before, parts->host->json_quote(parts->arena, text));
}

static void add_image(struct parts *parts, const char *before, const struct sl_record *r, enum sl_image image)
{
    struct sl_value value = parts->host->record_image(r, image);
    if (value.type != SL_NONE)
        add(parts, before, parts->host->value_plain(value, parts->arena));
}

static struct sl_span plain_record(const struct sl_render *in)
{
    const struct sl_host *host = in->host;
    const struct sl_record *r = in->record;
    struct parts parts = {.host = host, .arena = in->arena};
    char begin[128];
    snprintf(begin, sizeof(begin), "{\"eventName\":\"%s\",\"ttl\":\"%s\",\"createdMs\":%" PRId64,
             host->event_name(host->record_event(r)), host->ttl_name(host->record_ttl(r)),
             host->record_created_ns(r) / 1000000);
    parts.list[parts.n++] = sl_span_str(begin);
    add_field(&parts, ",\"eventID\":", r, SL_FIELD_EVENT_ID);
    add_field(&parts, ",\"table\":", r, SL_FIELD_TABLE);
    add_field(&parts, ",\"region\":", r, SL_FIELD_REGION);
    add_field(&parts, ",\"sequenceNumber\":", r, SL_FIELD_SEQUENCE_NUMBER);
    add_image(&parts, ",\"Keys\":", r, SL_KEYS);
    add_image(&parts, ",\"NewImage\":", r, SL_NEW_IMAGE);
    add_image(&parts, ",\"OldImage\":", r, SL_OLD_IMAGE);
    parts.list[parts.n++] = SL_LIT("}");
    return host->join(in->arena, parts.list, parts.n);
}

/* ---- the message ---- */

static enum sl_status body_of(const struct notify *p, const struct sl_render *in, struct sl_span *out,
                              struct sl_error *error)
{
    struct sl_render escaped = *in;
    escaped.escape = p->escape;
    if (p->message)
        return sl_render_text(&escaped, p->message, out, error);
    *out = p->body == NOTIFY_JSON ? plain_record(in) : in->host->record_text(in->record, SL_FIELD_RAW);
    return SL_OK;
}

static bool is_group(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '!' || text.ptr[i] > '~')
            return false;
    return text.len > 0 && text.len <= GROUP_BYTES;
}

/* Messages of one item belong together, unless a template says otherwise. A text that no queue takes as a
 * group is replaced by its digest. */
static enum sl_status order_of(const struct notify *p, const struct sl_render *in, struct sl_span *out,
                               struct sl_error *error)
{
    enum sl_status status = SL_OK;
    if (p->group)
        status = sl_render_text(in, p->group, out, error);
    else
        *out = in->host->record_item_key(in->record, in->arena);
    if (status != SL_OK || is_group(*out))
        return status;
    char *digest = in->host->alloc(in->arena, SL_TEXT_DIGEST_BYTES + 1);
    sl_text_digest(in->host, *out, digest);
    *out = sl_span_str(digest);
    return SL_OK;
}

static enum sl_status dedupe_of(const struct notify *p, const struct sl_render *in, struct sl_span *out,
                                struct sl_error *error)
{
    if (p->dedupe)
        return sl_render_text(in, p->dedupe, out, error);
    *out = in->host->record_text(in->record, SL_FIELD_EVENT_ID);
    struct sl_span parts[] = {sl_span_str(in->host->route_name(p->route)), SL_LIT("/"), *out};
    if (p->is_shared && out->len)
        *out = in->host->join(in->arena, parts, 3);
    return SL_OK;
}

static bool has_attribute(const struct notify *p, struct sl_span name)
{
    for (size_t i = 0; i < p->n_attributes; i++)
        if (sl_span_eq(p->attributes[i].name, name))
            return true;
    return false;
}

/* Whoever receives the message goes on with the writer's trace. The route's own attributes come first, and no
 * message becomes too long by it. */
static size_t add_trace(const struct notify *p, const struct sl_record *r, const struct sl_message *message,
                        struct sl_message_attribute *list)
{
    struct sl_trace_context trace;
    size_t n = p->n_attributes, bytes = message->body.len + message->subject.len + TRACE_BYTES;
    for (size_t i = 0; i < n; i++)
        bytes += list[i].name.len + list[i].value.len;
    if (!p->host->record_trace(p->route, r, &trace) || has_attribute(p, SL_LIT(TRACEPARENT)) ||
        n >= ATTRIBUTES_MAX || bytes > p->queue->max_message_bytes)
        return n;
    list[n++] = (struct sl_message_attribute){SL_LIT(TRACEPARENT), trace.traceparent};
    if (trace.tracestate.ptr && !has_attribute(p, SL_LIT(TRACESTATE)) && n < ATTRIBUTES_MAX)
        list[n++] = (struct sl_message_attribute){SL_LIT(TRACESTATE), trace.tracestate};
    return n;
}

static enum sl_status attributes_of(const struct notify *p, const struct sl_render *in,
                                    struct sl_message *out, struct sl_error *error)
{
    struct sl_message_attribute *list = in->host->alloc(in->arena, (p->n_attributes + 2) * sizeof(*list));
    for (size_t i = 0; i < p->n_attributes; i++) {
        list[i].name = p->attributes[i].name;
        enum sl_status status = sl_render_text(in, p->attributes[i].value.compiled, &list[i].value, error);
        if (status != SL_OK)
            return status;
    }
    out->attributes = list;
    out->n_attributes = add_trace(p, in->record, out, list);
    return SL_OK;
}

/* The record's message, in `arena`. SL_REJECT, code "MissingAttribute", when a template names what the record
 * lacks. */
static enum sl_status notify_message(const struct notify *p, const struct sl_record *r,
                                     struct sl_arena *arena, struct sl_message *out, struct sl_error *error)
{
    struct sl_render in = {
        .host = p->host, .arena = arena, .record = r, .image = SL_ANY_IMAGE, .missing = p->missing};
    *out = (struct sl_message){0};
    enum sl_status status = body_of(p, &in, &out->body, error);
    if (status == SL_OK)
        status = order_of(p, &in, &out->order, error);
    if (status == SL_OK)
        status = dedupe_of(p, &in, &out->dedupe, error);
    if (status == SL_OK && p->subject)
        status = sl_render_text(&in, p->subject, &out->subject, error);
    return status == SL_OK ? attributes_of(p, &in, out, error) : status;
}

/* ---- the handler ---- */

static const struct sl_option options[] = {
    {"to", SL_OPTION_QUEUE, SL_OPTION_REQUIRED, 0, 0, NULL, NULL,
     "sqs://name, sns:arn, events://bus, kinesis://stream, firehose://stream, https://host/path, jsonl:file, "
     "stdout:"},
    {"message", SL_OPTION_TEMPLATE, 0, 0, 0, NULL, NULL, "the message; without it the record itself is sent"},
    {"escape", SL_OPTION_ENUM, 0, 0, 0, "none|json", "none",
     "values in the message: as they are, or escaped for a JSON string, for a message that is JSON"},
    {"body", SL_OPTION_ENUM, 0, 0, 0, "record|json", "record",
     "without a message: the record as it came, or as plain JSON"},
    {"subject", SL_OPTION_TEMPLATE, 0, 0, 0, NULL, NULL, "SNS: the subject; EventBridge: the detail-type"},
    {"attributes", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "{\"name\": template}: message attributes of SQS and SNS"},
    {"group", SL_OPTION_TEMPLATE, 0, 0, 0, NULL, NULL,
     "a FIFO destination's message group; messages of one group keep their order (default: the item's key)"},
    {"dedupe", SL_OPTION_TEMPLATE, 0, 0, 0, NULL, NULL,
     "a FIFO destination's deduplication id (default: the route's name and the eventID)"},
    {"missing", SL_OPTION_ENUM, 0, 0, 0, SL_MISSING_VALUES, "reject",
     "a record that lacks what a template names: reject it, leave it out (skip), or put nothing in the place "
     "(empty)"},
    {.type = SL_OPTION_END},
};

const struct sl_option_use notify_uses[] = {
    {"subject", SL_TO_SNS | SL_TO_EVENTS, NULL, NULL, false,
     "only messages of sns: and events: have a subject"},
    {"attributes", SL_TO_SQS | SL_TO_SNS | SL_TO_FIFO, NULL, NULL, false,
     "only messages of sqs: and sns: have attributes"},
    {"group", SL_TO_FIFO | SL_TO_KINESIS | SL_TO_WEBHOOK | SL_TO_LINES, NULL, NULL, false,
     "the target has no groups: only a FIFO queue or topic (its name ends with .fifo), kinesis: and https: "
     "have them"},
    {"dedupe", SL_TO_FIFO | SL_TO_WEBHOOK, NULL, NULL, false,
     "the target does not know repeats: only a FIFO queue or topic (its name ends with .fifo) and https: do"},
    {"escape", 0, "message", NULL, false, "it is about the values in a \"message\", and there is none"},
    {"body", 0, "message", NULL, true, "the \"message\" is the body"},
    {.option = NULL},
};

/* ---- the slice ---- */

static enum sl_status handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    const struct notify *p = self;
    const struct sl_host *host = p->host;
    struct sl_message *messages = host->alloc(slice->arena, slice->n * sizeof(*messages));
    uint32_t *record_of = host->alloc(slice->arena, slice->n * sizeof(*record_of));
    struct sl_outcome outcome;
    size_t n = 0;
    sl_outcome_init(&outcome, host, slice);
    for (size_t i = 0; i < slice->n; i++) {
        struct sl_error why = SL_NO_ERROR;
        record_of[n] = (uint32_t)i;
        if (notify_message(p, slice->records[i], slice->arena, &messages[n], &why) == SL_OK)
            n++;
        else if (!sl_render_is_skipped(p->missing, &why))
            sl_outcome_fail(&outcome, i, &why);
    }
    const struct sl_result *results = sl_apply_messages(slice, p->queue, messages, n);
    for (size_t k = 0; k < n; k++) {
        struct sl_error why;
        if (results[k].status == SL_OK)
            continue;
        sl_outcome_error(host, &results[k], &why);
        sl_outcome_fail(&outcome, record_of[k], &why);
    }
    return sl_outcome_end(&outcome, error);
}

/* ---- opening ---- */

/* SQS developer guide, "Amazon SQS message metadata"; SNS has the same rules. */
static bool is_attribute_name(const char *name)
{
    size_t n = strlen(name);
    bool is_plain = n > 0 && n <= 256 && name[0] != '.' && name[n - 1] != '.' && !strstr(name, "..");
    for (size_t i = 0; i < n && is_plain; i++)
        is_plain = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
                   (name[i] >= '0' && name[i] <= '9') || strchr("_-.", name[i]);
    return is_plain && strncasecmp(name, "aws.", 4) != 0 && strncasecmp(name, "amazon.", 7) != 0;
}

static enum sl_status read_attribute(const struct sl_opening *o, struct notify *p, const char *name,
                                     const json_t *value)
{
    struct notify_attribute *attribute = &p->attributes[p->n_attributes++];
    char where[300];
    attribute->name = sl_opening_keep(o, sl_span_str(name));
    if (!is_attribute_name(name))
        return SL_OPENING_BAD(
            o,
            "attributes: \"%s\" is not a name that SQS and SNS take; use 1 to 256 of A-Z a-z "
            "0-9 _ - and single dots inside, and do not begin with AWS. or Amazon.",
            name);
    if (!json_is_string(value))
        return SL_OPENING_BAD(o, "attributes.%s: expected a template", name);
    snprintf(where, sizeof(where), "attributes.%s", name);
    return sl_opening_template(o, where, sl_opening_text(value), &attribute->value);
}

static enum sl_status read_attributes(const struct sl_opening *o, struct notify *p)
{
    json_t *object = sl_opening_json(o, "attributes"), *value;
    const char *name;
    enum sl_status status = SL_OK;
    p->attributes = o->host->alloc(o->arena, (json_object_size(object) + 1) * sizeof(*p->attributes));
    if (object && !json_is_object(object))
        status = SL_OPENING_BAD(o, "attributes: expected an object of names and templates");
    json_object_foreach(object, name, value)
    {
        if (status == SL_OK)
            status = read_attribute(o, p, name, value);
    }
    json_decref(object);
    return status;
}

/* No queue takes an empty message. What has no place is the same for every record. */
static enum sl_status check_templates(const struct sl_opening *o, const struct notify *p)
{
    static const char *const names[] = {"message", "subject", "group", "dedupe"};
    for (size_t i = 0; i < 4; i++) {
        struct sl_span text = o->host->option_text(o->route, names[i]);
        if (text.ptr && !text.len)
            return SL_OPENING_BAD(o, "%s: is empty; write a text, or leave the option out", names[i]);
    }
    if (p->dedupe && !o->host->template_uses(p->dedupe))
        return SL_OPENING_BAD(o,
                              "dedupe: has no {place}, so every message would be a repeat of the first one, "
                              "which the destination drops");
    return SL_OK;
}

static enum sl_status open_notify(const struct sl_host *host, struct sl_route *route, void **self,
                                  struct sl_error *error)
{
    struct sl_opening o = {host, route, host->route_arena(route), error};
    struct notify *p = host->alloc(o.arena, sizeof(*p));
    *p = (struct notify){.host = host,
                         .route = route,
                         .queue = host->option_queue(route, "to"),
                         .message = host->option_template(route, "message"),
                         .subject = host->option_template(route, "subject"),
                         .group = host->option_template(route, "group"),
                         .dedupe = host->option_template(route, "dedupe"),
                         .body = sl_opening_is(&o, "body", "json") ? NOTIFY_JSON : NOTIFY_RECORD,
                         .escape = sl_opening_is(&o, "escape", "json") ? SL_ESCAPE_JSON : SL_ESCAPE_NONE,
                         .missing = sl_render_missing(host, route)};
    /* (A webhook has #id= for that, and its ids are a promise: docs/SINKS.md.) */
    struct sl_span to = host->option_text(route, "to");
    p->is_shared = !(to.len > 6 && memcmp(to.ptr, "https:", 6) == 0);
    *self = p;
    enum sl_status status = check_templates(&o, p);
    return status == SL_OK ? read_attributes(&o, p) : status;
}

static enum sl_status per_item(void *self, struct sl_per_item *out, struct sl_error *error)
{
    const struct notify *n = self;
    (void)out;
    return n->host->fail(error, SL_REJECT, "NotPerItem",
                         "a message tells of a change; an item is not a change");
}

/* Where the target keeps no order, a message that comes late is one that comes late. */
static enum sl_status any_order(void *self, struct sl_any_order *out, struct sl_error *error)
{
    static const char *const ordered[] = {"kinesis:", "https:", "http:"};
    const struct notify *n = self;
    struct sl_span to = n->host->option_text(n->route, "to");
    const char *query = to.len ? memchr(to.ptr, '?', to.len) : NULL;
    struct sl_span name = sl_span(to.ptr, query ? (size_t)(query - to.ptr) : to.len);
    bool keeps_order = sl_span_ends(name, SL_LIT(".fifo"));
    for (size_t i = 0; i < SL_COUNT(ordered); i++)
        keeps_order = keeps_order || sl_span_starts(to, sl_span_str(ordered[i]));
    out->remembers_s = 0;
    return keeps_order
               ? n->host->fail(error, SL_REJECT, "NotAnyOrder",
                               "to: messages of one item keep their order there, and late ones would not")
               : SL_OK;
}

static enum sl_status price(void *self, struct sl_price *price, struct sl_error *error)
{
    (void)self;
    (void)error;
    price->formula = "one message";
    return SL_OK;
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
    .per_item = per_item,
    .price = price,
    .any_order = any_order,
};
