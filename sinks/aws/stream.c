/* kinesis://stream, firehose://stream, or either with an ARN. */
#include "sinks/aws/stream.h"

#include "sinks/aws/sinks.h"

#include "base/json_write.h"

#include <jansson.h>
#include <openssl/evp.h>

/* Kinesis PutRecords: 500 records; a record and a request have 10 MiB at most, partition keys included (1 and
 * 5 MiB until 2025; a stream may still be set to less, and then refuses by name). */
#define KINESIS_ENTRIES 500
#define KINESIS_BYTES   (10 * 1024 * 1024)
#define KINESIS_KEY     256
/* Firehose PutRecordBatch: 500 records, 4 MiB together, 1,000 KiB each, before base64. */
#define FIREHOSE_ENTRIES 500
#define FIREHOSE_BYTES   (4 * 1024 * 1024)
#define FIREHOSE_RECORD  (1000 * 1024)

static struct sl_span member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return sl_span(json_string_value(value), json_string_length(value));
}

bool sl_stream_read(struct sl_queue_batch *batch, struct sl_span answer, const char *list, const char *id)
{
    json_t *root = json_loadb(answer.ptr ? answer.ptr : "", answer.len, 0, NULL);
    const json_t *entries = json_object_get(root, list);
    bool understood = json_is_array(entries) && json_array_size(entries) == sl_queue_entries(batch);
    size_t i;
    json_t *entry;
    json_array_foreach(entries, i, entry)
    {
        struct sl_span code = member(entry, "ErrorCode");
        if (!understood)
            break;
        if (code.len)
            sl_queue_refused(batch, i, code, member(entry, "ErrorMessage"), true);
        else if (member(entry, id).len)
            sl_queue_taken(batch, i);
        else
            understood = false;
    }
    json_decref(root);
    return understood;
}

void sl_stream_add_data(struct sl_buffer *out, struct sl_span bytes, bool newline)
{
    size_t whole = newline ? bytes.len / 3 * 3 : bytes.len; /* the newline shares the last group */
    unsigned char tail[3];
    size_t n = bytes.len - whole;
    sl_buffer_add_char(out, '"');
    char *end = sl_buffer_reserve(out, (bytes.len + 3) / 3 * 4 + 8);
    if (!end)
        return;
    if (whole)
        out->len +=
            (size_t)EVP_EncodeBlock((unsigned char *)end, (const unsigned char *)bytes.ptr, (int)whole);
    if (newline) {
        if (n)
            memcpy(tail, bytes.ptr + whole, n);
        tail[n++] = '\n';
        out->len += (size_t)EVP_EncodeBlock((unsigned char *)out->ptr + out->len, tail, (int)n);
    }
    sl_buffer_add_char(out, '"');
}

/* ---- Kinesis ---- */

/* Records with the same order share a partition key, so a shard keeps them in order. */
static struct sl_span partition_text(const struct sl_message *message)
{
    if (message->order.len)
        return message->order;
    return message->dedupe.len ? message->dedupe : message->body;
}

static size_t kinesis_bytes(const struct sl_queue *queue, const struct sl_message *message)
{
    (void)queue;
    size_t key = partition_text(message).len;
    return message->body.len + (key < KINESIS_KEY ? KINESIS_KEY : 64);
}

static void add_target(const struct sl_queue *queue, struct sl_buffer *out, const char *name)
{
    sl_buffer_add_char(out, '{');
    sl_json_add_member(out, queue->address ? "StreamARN" : name,
                       sl_span_str(queue->address ? queue->address : queue->name));
    sl_buffer_add_str(out, ",\"Records\":[");
}

static void kinesis_write(const struct sl_queue *queue, const struct sl_message *const *messages, size_t n,
                          struct sl_buffer *out)
{
    char raw[KINESIS_KEY];
    add_target(queue, out, "StreamName");
    for (size_t i = 0; i < n; i++) {
        struct sl_buffer key = {.ptr = raw, .room = sizeof(raw), .max = sizeof(raw)};
        sl_queue_add_id(queue, &key, partition_text(messages[i]), sizeof(raw));
        sl_buffer_add_str(out, i ? ",{\"Data\":" : "{\"Data\":");
        sl_stream_add_data(out, messages[i]->body, false);
        sl_json_add_member(out, "PartitionKey", sl_buffer_span(&key));
        sl_buffer_add_char(out, '}');
    }
    sl_buffer_add_str(out, "]}");
}

static bool kinesis_read(struct sl_queue_batch *batch, struct sl_span answer)
{
    return sl_stream_read(batch, answer, "Records", "SequenceNumber");
}

static const struct sl_queue_kind kinesis = {
    .service = &sl_service_kinesis,
    .operation = "PutRecords",
    .max_entries = KINESIS_ENTRIES,
    .max_bytes = KINESIS_BYTES,
    .max_entry_bytes = KINESIS_BYTES,
    .bytes = kinesis_bytes,
    .write = kinesis_write,
    .read = kinesis_read,
};

/* ---- Firehose ---- */

static size_t firehose_bytes(const struct sl_queue *queue, const struct sl_message *message)
{
    return message->body.len + queue->adds_newline;
}

static void firehose_write(const struct sl_queue *queue, const struct sl_message *const *messages, size_t n,
                           struct sl_buffer *out)
{
    sl_buffer_add_char(out, '{');
    sl_json_add_member(out, "DeliveryStreamName", sl_span_str(queue->name));
    sl_buffer_add_str(out, ",\"Records\":[");
    for (size_t i = 0; i < n; i++) {
        sl_buffer_add_str(out, i ? ",{\"Data\":" : "{\"Data\":");
        sl_stream_add_data(out, messages[i]->body, queue->adds_newline);
        sl_buffer_add_char(out, '}');
    }
    sl_buffer_add_str(out, "]}");
}

static bool firehose_read(struct sl_queue_batch *batch, struct sl_span answer)
{
    return sl_stream_read(batch, answer, "RequestResponses", "RecordId");
}

static const struct sl_queue_kind firehose = {
    .service = &sl_service_firehose,
    .operation = "PutRecordBatch",
    .max_entries = FIREHOSE_ENTRIES,
    .max_bytes = FIREHOSE_BYTES,
    .max_entry_bytes = FIREHOSE_RECORD,
    .bytes = firehose_bytes,
    .write = firehose_write,
    .read = firehose_read,
};

/* ---- opening ---- */

/* "stream" or "arn:aws:SERVICE:REGION:ACCOUNT:WORD/stream". */
static enum sl_status fill(struct sl_queue *queue, const struct sl_url *url, const char *word, size_t max,
                           struct sl_error *error)
{
    struct sl_span name = url->rest, prefix = sl_span_str(word);
    if (sl_span_starts(name, SL_LIT("arn:"))) {
        name = sl_queue_arn_part(name, 5);
        name = sl_span_starts(name, prefix) ? sl_span_from(name, prefix.len) : sl_span(NULL, 0);
        queue->address = sl_arena_copy(queue->arena, url->rest);
    }
    if (!sl_queue_is_name(name, "_.-", max))
        return sl_fail(
            error, SL_FATAL, "InvalidTarget",
            "target %.*s: no stream name (1 to %zu letters, digits, '_', '.', '-') and no ARN of one",
            SL_ARG(url->whole), max);
    queue->name = sl_arena_copy(queue->arena, name);
    return SL_OK;
}

enum sl_status sl_kinesis_open(struct sl_sinks *sinks, struct sl_span url_text, struct sl_queue_port **out,
                               struct sl_error *error)
{
    struct sl_queue *queue = NULL;
    struct sl_url url;
    if (sl_queue_new(&kinesis, url_text, &url, &queue, error) != SL_OK)
        return SL_FATAL;
    queue->keeps_order = true;
    if (fill(queue, &url, "stream/", 128, error) != SL_OK ||
        sl_queue_connect(queue, sinks, &url, sl_queue_arn_part(url.rest, 3), SL_CLIENT_PARAMS, error) !=
            SL_OK) {
        sl_queue_destroy(queue);
        return SL_FATAL;
    }
    *out = &queue->port;
    return SL_OK;
}

enum sl_status sl_firehose_open(struct sl_sinks *sinks, struct sl_span url_text, struct sl_queue_port **out,
                                struct sl_error *error)
{
    struct sl_queue *queue = NULL;
    struct sl_url url;
    if (sl_queue_new(&firehose, url_text, &url, &queue, error) != SL_OK)
        return SL_FATAL;
    struct sl_span newline = sl_url_param(&url, "newline");
    queue->adds_newline = !sl_span_is(newline, "0");
    if (newline.ptr && !sl_span_is(newline, "0") && !sl_span_is(newline, "1"))
        sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: newline= is 0 or 1", SL_ARG(url.whole));
    else if (fill(queue, &url, "deliverystream/", 64, error) == SL_OK &&
             sl_queue_connect(queue, sinks, &url, sl_queue_arn_part(url.rest, 3),
                              SL_CLIENT_PARAMS ", newline", error) == SL_OK) {
        *out = &queue->port;
        return SL_OK;
    }
    sl_queue_destroy(queue);
    return SL_FATAL;
}
