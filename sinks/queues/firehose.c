/* firehose://stream, or firehose: with a stream's ARN: PutRecordBatch. */
#include "base/json_write.h"
#include "sinks/queues/entries.h"
#include "sinks/services.h"

/* Firehose PutRecordBatch: 500 records, 4 MiB together, 1,000 KiB each, before base64. */
#define FIREHOSE_ENTRIES 500
#define FIREHOSE_BYTES   (4 * 1024 * 1024)
#define FIREHOSE_RECORD  (1000 * 1024)

static size_t message_bytes(const struct sl_queue *queue, const struct sl_message *message)
{
    return message->body.len + queue->adds_newline;
}

static void write_entries(const struct sl_queue *queue, const struct sl_message *const *messages, size_t n,
                          struct sl_buffer *out)
{
    sl_buffer_add_char(out, '{');
    sl_json_add_member(out, "DeliveryStreamName", sl_span_str(queue->name));
    sl_buffer_add_str(out, ",\"Records\":[");
    for (size_t i = 0; i < n; i++) {
        sl_buffer_add_str(out, i ? ",{\"Data\":" : "{\"Data\":");
        sl_entries_add_data(out, messages[i]->body, queue->adds_newline);
        sl_buffer_add_char(out, '}');
    }
    sl_buffer_add_str(out, "]}");
}

static bool read_entries(struct sl_queue_batch *batch, const struct sl_job *job)
{
    static const struct sl_entries_answer is = {"RequestResponses", "RecordId", "FailedPutCount"};
    return sl_entries_read(batch, job, &is);
}

static enum sl_status fill(struct sl_queue *queue, struct sl_url *url, struct sl_error *error)
{
    struct sl_span newline = sl_url_param(url, "newline");
    queue->adds_newline = !sl_span_is(newline, "0");
    if (newline.ptr && !sl_span_is(newline, "0") && !sl_span_is(newline, "1"))
        return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: newline= is 0 or 1",
                       SL_ARG(url->shown));
    return sl_entries_fill_stream(queue, url, "deliverystream/", 64, error);
}

static const struct sl_queue_kind firehose = {
    .service = &sl_service_firehose,
    .operation = "PutRecordBatch",
    .params = SL_CLIENT_PARAMS ", newline",
    .max_entries = FIREHOSE_ENTRIES,
    .max_bytes = FIREHOSE_BYTES,
    .max_entry_bytes = FIREHOSE_RECORD,
    .fill = fill,
    .bytes = message_bytes,
    .write = write_entries,
    .read = read_entries,
    .codes = sl_entries_stream_codes,
    .body = SL_CONTENT_BYTES,
};

enum sl_status sl_firehose_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                struct sl_error *error)
{
    return sl_queue_open(&firehose, sinks, url, out, error);
}
