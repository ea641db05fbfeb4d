/* sns:arn:aws:sns:us-east-1:123456789012:topic */
#include "aws/xml.h"
#include "net/uri.h"
#include "sinks/name.h"
#include "sinks/queues/queue.h"
#include "sinks/services.h"

#include <stdio.h>

/* PublishBatch: 10 entries, 256 KiB of them together (SNS API reference, "PublishBatch"). */
#define SNS_ENTRIES       10
#define SNS_BYTES         (256 * 1024)
#define SNS_SUBJECT_BYTES 100

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
    char raw[SL_QUEUE_ID_BYTES];
    struct sl_buffer id = {.ptr = raw, .room = sizeof(raw), .max = sizeof(raw)};
    sl_queue_add_id(queue, &id, message->order.len ? message->order : SL_LIT("-"), SL_QUEUE_ID_BYTES);
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

static struct sl_span text_of(const struct sl_queue_batch *batch, struct sl_span member, const char *name)
{
    return sl_xml_text(sl_xml_tag(member, name), sl_queue_scratch(batch));
}

static void read_taken(struct sl_queue_batch *batch, struct sl_span member)
{
    if (sl_xml_tag(member, "MessageId").len)
        sl_queue_taken(batch, sl_queue_entry_of(text_of(batch, member, "Id")));
}

static void read_failed(struct sl_queue_batch *batch, struct sl_span member)
{
    const struct sl_queue_refusal refusal = {
        .code = text_of(batch, member, "Code"),
        .message = text_of(batch, member, "Message"),
        .is_senders_fault = sl_span_is(text_of(batch, member, "SenderFault"), "true"),
    };
    if (refusal.code.len)
        sl_queue_refused(batch, sl_queue_entry_of(text_of(batch, member, "Id")), &refusal);
}

static bool read_entries(struct sl_queue_batch *batch, const struct sl_job *job)
{
    struct sl_span answer = sl_buffer_span(&job->answer->body), member;
    if (!sl_xml_is_document(answer, "PublishBatchResponse"))
        return false;
    struct sl_span result = sl_xml_tag(answer, "PublishBatchResult");
    struct sl_span taken = sl_xml_tag(result, "Successful"), failed = sl_xml_tag(result, "Failed");
    while ((member = sl_xml_next_tag(&taken, "member")).ptr)
        read_taken(batch, member);
    while ((member = sl_xml_next_tag(&failed, "member")).ptr)
        read_failed(batch, member);
    return result.ptr != NULL;
}

static enum sl_status fill(struct sl_queue *queue, struct sl_url *url, struct sl_error *error)
{
    struct sl_span name = sl_arn_part(url->rest, 5), stem = name;
    queue->is_fifo = queue->keeps_order = sl_span_ends(name, SL_LIT(".fifo"));
    if (queue->is_fifo)
        stem.len -= strlen(".fifo");
    if (!sl_span_is(sl_arn_part(url->rest, 2), "sns") || !sl_name_is_valid(stem, "-_", 256) ||
        sl_arn_part(url->rest, 6).ptr)
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target %.*s: write it as sns:arn:aws:sns:REGION:ACCOUNT:TOPIC", SL_ARG(url->shown));
    queue->name = sl_arena_copy(queue->arena, name);
    queue->address = sl_arena_copy(queue->arena, url->rest);
    return SL_OK;
}

static const struct sl_queue_kind sns = {
    .service = &sl_service_sns,
    .operation = "PublishBatch",
    .params = SL_CLIENT_PARAMS,
    .max_entries = SNS_ENTRIES,
    .max_bytes = SNS_BYTES,
    .max_entry_bytes = SNS_BYTES,
    .fill = fill,
    .bytes = message_bytes,
    .write = write_entries,
    .read = read_entries,
    .body = SL_CONTENT_UTF8,
    .has_attributes = true,
};

enum sl_status sl_sns_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                           struct sl_error *error)
{
    return sl_queue_open(&sns, sinks, url, out, error);
}
