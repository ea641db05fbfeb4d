/* kinesis://stream, or kinesis: with a stream's ARN: PutRecords. */
#include "base/json_write.h"
#include "sinks/queues/entries.h"
#include "sinks/services.h"

/* Kinesis PutRecords: 500 records; a record and a request have 10 MiB at most, partition keys included (1 and
 * 5 MiB until 2025; a stream may still be set to less, and then refuses by name). */
#define KINESIS_ENTRIES 500
#define KINESIS_BYTES   (10 * 1024 * 1024)
#define KINESIS_KEY     256

/* Records with the same order share a partition key, so a shard keeps them in order. */
static struct sl_span partition_text(const struct sl_message *message)
{
    if (message->order.len)
        return message->order;
    return message->dedupe.len ? message->dedupe : message->body;
}

static size_t message_bytes(const struct sl_queue *queue, const struct sl_message *message)
{
    (void)queue;
    return message->body.len + sl_queue_id_bytes(partition_text(message), KINESIS_KEY);
}

static void add_target(const struct sl_queue *queue, struct sl_buffer *out, const char *name)
{
    sl_buffer_add_char(out, '{');
    sl_json_add_member(out, queue->address ? "StreamARN" : name,
                       sl_span_str(queue->address ? queue->address : queue->name));
    sl_buffer_add_str(out, ",\"Records\":[");
}

static void write_entries(const struct sl_queue *queue, const struct sl_message *const *messages, size_t n,
                          struct sl_buffer *out)
{
    char raw[KINESIS_KEY];
    add_target(queue, out, "StreamName");
    for (size_t i = 0; i < n; i++) {
        struct sl_buffer key = {.ptr = raw, .room = sizeof(raw), .max = sizeof(raw)};
        sl_queue_add_id(queue, &key, partition_text(messages[i]), sizeof(raw));
        sl_buffer_add_str(out, i ? ",{\"Data\":" : "{\"Data\":");
        sl_entries_add_data(out, messages[i]->body, false);
        sl_json_add_member(out, "PartitionKey", sl_buffer_span(&key));
        sl_buffer_add_char(out, '}');
    }
    sl_buffer_add_str(out, "]}");
}

static bool read_entries(struct sl_queue_batch *batch, const struct sl_job *job)
{
    static const struct sl_entries_answer is = {"Records", "SequenceNumber", "FailedRecordCount"};
    return sl_entries_read(batch, job, &is);
}

static enum sl_status fill(struct sl_queue *queue, struct sl_url *url, struct sl_error *error)
{
    queue->keeps_order = true;
    queue->account_of_host = sl_arn_part(url->rest, 4);
    return sl_entries_fill_stream(queue, url, "stream/", 128, error);
}

static const struct sl_queue_kind kinesis = {
    .service = &sl_service_kinesis,
    .operation = "PutRecords",
    .params = SL_CLIENT_PARAMS,
    .max_entries = KINESIS_ENTRIES,
    .max_bytes = KINESIS_BYTES,
    .max_entry_bytes = KINESIS_BYTES,
    .fill = fill,
    .bytes = message_bytes,
    .write = write_entries,
    .read = read_entries,
    .codes = sl_entries_stream_codes,
    .body = SL_CONTENT_BYTES,
};

enum sl_status sl_kinesis_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                               struct sl_error *error)
{
    return sl_queue_open(&kinesis, sinks, url, out, error);
}
