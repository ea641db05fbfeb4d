/* events://bus, events:arn:aws:events:us-east-1:123456789012:event-bus/bus */
#include "base/array.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "sinks/name.h"
#include "sinks/queues/entries.h"
#include "sinks/services.h"

/* PutEvents: 10 entries, less than 256 KiB of them together (EventBridge user guide, "PutEvents entry size").
 */
#define EVENTS_ENTRIES 10
#define EVENTS_BYTES   (256 * 1024 - 1)

#define SOURCE      "sluice"
#define DETAIL_TYPE SL_LIT("DynamoDB Stream Record")
#define TIME_BYTES  14
/* More than a trace's context and what else an entry has beside its detail: no event becomes too long by it.
 */
#define TRACE_BYTES (8 * 1024)

static struct sl_span detail_type(const struct sl_message *message)
{
    return message->subject.len ? message->subject : DETAIL_TYPE;
}

/* A detail must be a JSON object; any other text is wrapped in one. */
static bool is_object(struct sl_span body)
{
    const char *end = sl_span_end(body), *p = body.len ? sl_json_space(body.ptr, end) : end;
    return p < end && *p == '{' && sl_json_check(body, NULL) == SL_OK;
}

/* An event has no attributes: the trace's context goes into its detail, unless the detail has its own. */
static void add_trace(struct sl_buffer *out, const struct sl_message *message, struct sl_span object)
{
    static const char *const names[] = {SL_CONTENT_TRACEPARENT, SL_CONTENT_TRACESTATE};
    for (size_t i = 0; i < SL_COUNT(names); i++) {
        struct sl_span value = sl_content_attribute(message, names[i]);
        if (value.len && !sl_json_walk_member(object, sl_span_str(names[i])).ptr)
            sl_json_add_member(out, names[i], value);
    }
}

/* The detail that is sent, which may be in `room`: the caller cleans that up. */
static struct sl_span detail_of(const struct sl_message *message, struct sl_buffer *room)
{
    const bool is_whole = is_object(message->body);
    sl_buffer_init(room, message->body.len * 6 + TRACE_BYTES);
    if (is_whole && !sl_content_attribute(message, SL_CONTENT_TRACEPARENT).len)
        return message->body;
    if (is_whole) {
        const char *end = sl_span_end(message->body);
        while (*--end != '}')
            ;
        while (strchr(" \t\r\n", end[-1]))
            end--;
        sl_buffer_add(room, message->body.ptr, (size_t)(end - message->body.ptr));
    } else {
        sl_buffer_add_char(room, '{');
        sl_json_add_member(room, "message", message->body);
    }
    if (room->len < EVENTS_BYTES - TRACE_BYTES)
        add_trace(room, message, is_whole ? message->body : sl_span(NULL, 0));
    sl_buffer_add_char(room, '}');
    return sl_buffer_span(room);
}

/* The detail's bytes as the service counts them: with the escapes of the object around it, without those of
 * the request. */
static size_t detail_bytes(const struct sl_message *message)
{
    struct sl_buffer room;
    size_t bytes = detail_of(message, &room).len;
    sl_buffer_clean_up(&room);
    return bytes;
}

static size_t message_bytes(const struct sl_queue *queue, const struct sl_message *message)
{
    return TIME_BYTES + strlen(queue->source) + detail_type(message).len + detail_bytes(message);
}

static void write_detail(struct sl_buffer *out, const struct sl_message *message)
{
    struct sl_buffer room;
    sl_buffer_add_str(out, ",\"Detail\":");
    sl_json_add_string(out, detail_of(message, &room));
    sl_buffer_clean_up(&room);
}

static void write_entries(const struct sl_queue *queue, const struct sl_message *const *messages, size_t n,
                          struct sl_buffer *out)
{
    sl_buffer_add_str(out, "{\"Entries\":[");
    for (size_t i = 0; i < n; i++) {
        sl_buffer_add_str(out, i ? ",{" : "{");
        sl_json_add_member(out, "EventBusName", sl_span_str(queue->name));
        sl_json_add_member(out, "Source", sl_span_str(queue->source));
        sl_json_add_member(out, "DetailType", detail_type(messages[i]));
        write_detail(out, messages[i]);
        sl_buffer_add_char(out, '}');
    }
    sl_buffer_add_str(out, "]}");
}

static bool read_entries(struct sl_queue_batch *batch, const struct sl_job *job)
{
    static const struct sl_entries_answer is = {"Entries", "EventId", "FailedEntryCount"};
    return sl_entries_read(batch, job, &is);
}

static enum sl_status fill(struct sl_queue *queue, struct sl_url *url, struct sl_error *error)
{
    struct sl_span name = url->rest, source = sl_url_param(url, "source");
    bool is_arn = sl_span_starts(name, SL_LIT("arn:"));
    if (is_arn) {
        name = sl_arn_part(name, 5);
        name = sl_span_starts(name, SL_LIT("event-bus/")) ? sl_span_from(name, strlen("event-bus/"))
                                                          : sl_span(NULL, 0);
    }
    if (!sl_name_is_valid(name, ".-_/", 256))
        return sl_fail(
            error, SL_FATAL, "InvalidTarget",
            "target %.*s: write it as events://BUS or events:arn:aws:events:REGION:ACCOUNT:event-bus/BUS",
            SL_ARG(url->shown));
    if (source.ptr && (!source.len || source.len > 256 || sl_span_starts(source, SL_LIT("aws."))))
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target %.*s: source= has 1 to 256 bytes and does not begin with \"aws.\"",
                       SL_ARG(url->shown));
    queue->name = sl_arena_copy(queue->arena, is_arn ? url->rest : name);
    queue->source = source.ptr ? sl_arena_copy(queue->arena, source) : SOURCE;
    return SL_OK;
}

/* API reference, PutEventsResultEntry; what is not here and not in aws/codes.h is about the bus: FATAL. */
static const struct sl_queue_code codes[] = {
    {"MalformedDetail", false, SL_CODE_FINAL, SL_REJECT},
    {"InvalidArgument", false, SL_CODE_FINAL, SL_REJECT},
    {"InternalFailure", false, SL_CODE_TRANSIENT, SL_RETRY},
    {"Throttling", true, SL_CODE_THROTTLE, SL_RETRY},
    {.code = NULL},
};

static const struct sl_queue_kind events = {
    .service = &sl_service_events,
    .operation = "PutEvents",
    .params = SL_CLIENT_PARAMS ", source",
    .max_entries = EVENTS_ENTRIES,
    .max_bytes = EVENTS_BYTES,
    .max_entry_bytes = EVENTS_BYTES,
    .fill = fill,
    .bytes = message_bytes,
    .write = write_entries,
    .read = read_entries,
    .codes = codes,
    .body = SL_CONTENT_JSON,
    .subject = SL_CONTENT_UTF8,
};

enum sl_status sl_events_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                              struct sl_error *error)
{
    return sl_queue_open(&events, sinks, url, out, error);
}
