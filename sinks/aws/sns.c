/* sns:arn:aws:sns:us-east-1:123456789012:topic */
#include "sinks/aws/queue.h"
#include "sinks/aws/sinks.h"
#include "sinks/aws/uri.h"

#include <stdio.h>

/* PublishBatch: 10 entries, 256 KiB of them together (SNS API reference, "PublishBatch"). */
#define SNS_ENTRIES       10
#define SNS_BYTES         (256 * 1024)
#define SNS_SUBJECT_BYTES 100

#define PARAMS SL_CLIENT_PARAMS

static size_t message_bytes(const struct sl_queue *queue, const struct sl_message *message)
{
    (void)queue;
    return message->body.len + message->subject.len + sl_queue_attribute_bytes(message);
}

static void add(struct sl_buffer *out, size_t entry, const char *name, struct sl_span value)
{
    sl_buffer_printf(out, "&PublishBatchRequestEntries.member.%zu.%s=", entry + 1, name);
    sl_uri_encode(out, value, '\0');
}

/* SNS refuses a subject with control bytes or of more than 99 characters; it is a label, so it is cut. */
static void add_subject(struct sl_buffer *out, size_t entry, struct sl_span subject)
{
    char text[SNS_SUBJECT_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < subject.len && n < sizeof(text) - 1; i++)
        text[n++] = subject.ptr[i] >= ' ' && subject.ptr[i] < 0x7F ? subject.ptr[i] : '?';
    if (n)
        add(out, entry, "Subject", sl_span(text, n));
}

/* The service refuses an attribute without a value. */
static void add_attributes(struct sl_buffer *out, size_t entry, const struct sl_message *message)
{
    size_t number = 0;
    for (size_t i = 0; i < message->n_attributes; i++) {
        const char *const parts[] = {"Name", "Value.DataType", "Value.StringValue"};
        const struct sl_span values[] = {message->attributes[i].name, SL_LIT("String"),
                                         message->attributes[i].value};
        if (!message->attributes[i].value.len)
            continue;
        number++;
        for (size_t k = 0; k < 3; k++) {
            sl_buffer_printf(out, "&PublishBatchRequestEntries.member.%zu.MessageAttributes.entry.%zu.%s=",
                             entry + 1, number, parts[k]);
            sl_uri_encode(out, values[k], '\0');
        }
    }
}

static void add_fifo(const struct sl_queue *queue, struct sl_buffer *out, size_t entry,
                     const struct sl_message *message)
{
    char raw[160];
    struct sl_buffer id = {.ptr = raw, .room = sizeof(raw), .max = sizeof(raw)};
    sl_queue_add_id(queue, &id, message->order.len ? message->order : SL_LIT("-"), 128);
    add(out, entry, "MessageGroupId", sl_buffer_span(&id));
    sl_buffer_reset(&id);
    sl_queue_add_dedupe(queue, &id, message);
    add(out, entry, "MessageDeduplicationId", sl_buffer_span(&id));
}

static void write_entries(const struct sl_queue *queue, const struct sl_message *const *messages, size_t n,
                          struct sl_buffer *out)
{
    char id[24];
    sl_buffer_add_str(out, "Action=PublishBatch&Version=2010-03-31&TopicArn=");
    sl_uri_encode(out, sl_span_str(queue->address), '\0');
    for (size_t i = 0; i < n; i++) {
        snprintf(id, sizeof(id), "%zu", i);
        add(out, i, "Id", sl_span_str(id));
        add(out, i, "Message", messages[i]->body);
        add_subject(out, i, messages[i]->subject);
        add_attributes(out, i, messages[i]);
        if (queue->is_fifo)
            add_fifo(queue, out, i, messages[i]);
    }
}

static size_t entry_number(struct sl_span member)
{
    struct sl_span id = sl_answer_tag(member, "Id");
    size_t n = 0;
    for (size_t i = 0; i < id.len; i++)
        n = id.ptr[i] >= '0' && id.ptr[i] <= '9' && i < 4 ? n * 10 + (size_t)(id.ptr[i] - '0')
                                                          : SIZE_MAX / 20;
    return id.len ? n : SIZE_MAX;
}

static bool read_entries(struct sl_queue_batch *batch, struct sl_span answer)
{
    struct sl_span result = sl_answer_tag(answer, "PublishBatchResult");
    if (!result.ptr)
        return false;
    struct sl_span taken = sl_answer_tag(result, "Successful"), failed = sl_answer_tag(result, "Failed");
    struct sl_span member;
    while ((member = sl_answer_next_tag(&taken, "member")).ptr)
        sl_queue_taken(batch, entry_number(member));
    while ((member = sl_answer_next_tag(&failed, "member")).ptr)
        sl_queue_refused(batch, entry_number(member), sl_answer_tag(member, "Code"),
                         sl_answer_tag(member, "Message"),
                         sl_span_is(sl_answer_tag(member, "SenderFault"), "true"));
    return true;
}

static const struct sl_queue_kind sns = {
    .service = &sl_service_sns,
    .operation = "PublishBatch",
    .max_entries = SNS_ENTRIES,
    .max_bytes = SNS_BYTES,
    .max_entry_bytes = SNS_BYTES,
    .bytes = message_bytes,
    .write = write_entries,
    .read = read_entries,
};

static enum sl_status fill(struct sl_queue *queue, const struct sl_url *url, struct sl_error *error)
{
    struct sl_span name = sl_queue_arn_part(url->rest, 5), stem = name;
    queue->is_fifo = queue->keeps_order = sl_span_ends(name, SL_LIT(".fifo"));
    if (queue->is_fifo)
        stem.len -= strlen(".fifo");
    if (!sl_span_is(sl_queue_arn_part(url->rest, 2), "sns") || !sl_queue_is_name(stem, "-_", 256) ||
        sl_queue_arn_part(url->rest, 6).ptr)
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target %.*s: write it as sns:arn:aws:sns:REGION:ACCOUNT:TOPIC", SL_ARG(url->whole));
    queue->name = sl_arena_copy(queue->arena, name);
    queue->address = sl_arena_copy(queue->arena, url->rest);
    return SL_OK;
}

enum sl_status sl_sns_open(struct sl_sinks *sinks, struct sl_span url_text, struct sl_queue_port **out,
                           struct sl_error *error)
{
    struct sl_queue *queue = NULL;
    struct sl_url url;
    if (sl_queue_new(&sns, url_text, &url, &queue, error) != SL_OK)
        return SL_FATAL;
    if (fill(queue, &url, error) != SL_OK ||
        sl_queue_connect(queue, sinks, &url, sl_queue_arn_part(url.rest, 3), PARAMS, error) != SL_OK) {
        sl_queue_destroy(queue);
        return SL_FATAL;
    }
    *out = &queue->port;
    return SL_OK;
}
