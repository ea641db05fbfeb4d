/* events://bus, events:arn:aws:events:us-east-1:123456789012:event-bus/bus */
#include "sinks/aws/queue.h"
#include "sinks/aws/sinks.h"
#include "sinks/aws/stream.h"

#include "base/json_write.h"

/* PutEvents: 10 entries, less than 256 KiB of them together (EventBridge user guide, "PutEvents entry size").
 */
#define EVENTS_ENTRIES 10
#define EVENTS_BYTES   (256 * 1024 - 1)

#define PARAMS        SL_CLIENT_PARAMS ", source"
#define SOURCE        "sluice"
#define DETAIL_TYPE   SL_LIT("DynamoDB Stream Record")
#define WRAPPER_BYTES 16 /* {"message":""} */

static struct sl_span detail_type(const struct sl_message *message)
{
    return message->subject.len ? message->subject : DETAIL_TYPE;
}

/* A detail has to be a JSON object; any other text is wrapped into one. */
static bool is_object(struct sl_span body)
{
    size_t i = 0;
    while (i < body.len && (unsigned char)body.ptr[i] <= ' ')
        i++;
    return i < body.len && body.ptr[i] == '{';
}

static size_t message_bytes(const struct sl_queue *queue, const struct sl_message *message)
{
    return strlen(queue->source) + detail_type(message).len + message->body.len +
           (is_object(message->body) ? 0 : WRAPPER_BYTES);
}

static void write_detail(struct sl_buffer *out, struct sl_span body)
{
    sl_buffer_add_str(out, ",\"Detail\":");
    if (is_object(body)) {
        sl_json_add_string(out, body);
        return;
    }
    struct sl_buffer inner;
    sl_buffer_init(&inner, EVENTS_BYTES * 6 + WRAPPER_BYTES);
    sl_buffer_add_char(&inner, '{');
    sl_json_add_member(&inner, "message", body);
    sl_buffer_add_char(&inner, '}');
    sl_json_add_string(out, sl_buffer_span(&inner));
    sl_buffer_clean_up(&inner);
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
        write_detail(out, messages[i]->body);
        sl_buffer_add_char(out, '}');
    }
    sl_buffer_add_str(out, "]}");
}

static bool read_entries(struct sl_queue_batch *batch, struct sl_span answer)
{
    return sl_stream_read(batch, answer, "Entries", "EventId");
}

static const struct sl_queue_kind events = {
    .service = &sl_service_events,
    .operation = "PutEvents",
    .max_entries = EVENTS_ENTRIES,
    .max_bytes = EVENTS_BYTES,
    .max_entry_bytes = EVENTS_BYTES,
    .bytes = message_bytes,
    .write = write_entries,
    .read = read_entries,
};

static enum sl_status fill(struct sl_queue *queue, struct sl_url *url, struct sl_error *error)
{
    struct sl_span name = url->rest, source = sl_url_param(url, "source");
    bool is_arn = sl_span_starts(name, SL_LIT("arn:"));
    if (is_arn) {
        name = sl_queue_arn_part(name, 5);
        name = sl_span_starts(name, SL_LIT("event-bus/")) ? sl_span_from(name, strlen("event-bus/"))
                                                          : sl_span(NULL, 0);
    }
    if (!sl_queue_is_name(name, ".-_/", 256))
        return sl_fail(
            error, SL_FATAL, "InvalidTarget",
            "target %.*s: write it as events://BUS or events:arn:aws:events:REGION:ACCOUNT:event-bus/BUS",
            SL_ARG(url->whole));
    if (source.ptr && (!source.len || source.len > 256 || sl_span_starts(source, SL_LIT("aws."))))
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target %.*s: source= has 1 to 256 bytes and does not begin with \"aws.\"",
                       SL_ARG(url->whole));
    queue->name = sl_arena_copy(queue->arena, is_arn ? url->rest : name);
    queue->source = source.ptr ? sl_arena_copy(queue->arena, source) : SOURCE;
    return SL_OK;
}

enum sl_status sl_events_open(struct sl_sinks *sinks, struct sl_span url_text, struct sl_queue_port **out,
                              struct sl_error *error)
{
    struct sl_queue *queue = NULL;
    struct sl_url url;
    if (sl_queue_new(&events, url_text, &url, &queue, error) != SL_OK)
        return SL_FATAL;
    if (fill(queue, &url, error) != SL_OK ||
        sl_queue_connect(queue, sinks, &url, sl_queue_arn_part(url.rest, 3), PARAMS, error) != SL_OK) {
        sl_queue_destroy(queue);
        return SL_FATAL;
    }
    *out = &queue->port;
    return SL_OK;
}
