/* Failure records: what AWS sends to an OnFailure destination. */
#include "esm/esm_private.h"

#include "base/json_write.h"

static const char *const condition_names[] = {
    [SL_ESM_RETRIES_EXHAUSTED] = "RetryAttemptsExhausted",
    [SL_ESM_AGE_EXCEEDED] = "RecordAgeExceeded",
    [SL_ESM_TRIMMED] = "RecordTrimmed",
};

/* DynamoDB gives the time of a change in whole seconds, Kinesis in milliseconds. */
static void add_arrival(struct sl_buffer *out, const char *name, const struct sl_esm_record *record,
                        bool has_ms)
{
    char time[SL_TIME_BYTES];
    sl_time_text(record->created_ms * 1000000, time);
    sl_json_add_member(out, name, sl_span(time, has_ms ? 23 : 19));
    out->len--;
    sl_buffer_add_str(out, "Z\"");
}

static void add_request(const struct sl_esm_settings *settings, const struct sl_esm_discard *d,
                        struct sl_buffer *out)
{
    sl_buffer_add_str(out, "\"requestContext\":{");
    sl_json_add_member(out, "requestId", sl_span_str(d->request_id));
    sl_json_add_member(out, "functionArn", sl_span_str(settings->function_arn));
    sl_json_add_member(out, "condition", sl_span_str(condition_names[d->condition]));
    sl_json_add_integer(out, "approximateInvokeCount", d->invoke_count);
    sl_buffer_add_str(out, "},");
    if (d->condition == SL_ESM_AGE_EXCEEDED)
        return; /* recorded on AWS: an expired batch's record has no responseContext */
    sl_buffer_add_str(out, "\"responseContext\":{\"statusCode\":200,\"executedVersion\":\"$LATEST\","
                           "\"functionError\":");
    sl_buffer_add_str(out, d->was_function_error ? "\"Unhandled\"}," : "null},");
}

static void add_batch(const struct sl_esm_settings *settings, const struct sl_esm_discard *d,
                      struct sl_buffer *out)
{
    const struct sl_esm_record *first = d->records[0], *last = d->records[d->n - 1];
    bool is_kinesis = settings->is_kinesis;
    sl_buffer_add_str(out, is_kinesis ? ",\"KinesisBatchInfo\":{" : ",\"DDBStreamBatchInfo\":{");
    sl_json_add_member(out, "shardId", sl_span_str(d->shard->id));
    sl_json_add_member(out, "startSequenceNumber", first->id);
    sl_json_add_member(out, "endSequenceNumber", last->id);
    add_arrival(out, "approximateArrivalOfFirstRecord", first, is_kinesis);
    add_arrival(out, "approximateArrivalOfLastRecord", last, is_kinesis);
    sl_json_add_integer(out, "batchSize", (int64_t)d->n);
    sl_json_add_member(out, "streamArn", sl_span_str(settings->stream_arn));
    sl_buffer_add_char(out, '}');
}

void sl_esm_failure_json(const struct sl_esm_settings *settings, const struct sl_esm_discard *d,
                         struct sl_span payload, struct sl_buffer *out)
{
    char time[SL_TIME_BYTES];
    sl_time_text(d->wall_ms * 1000000, time);
    sl_buffer_add_char(out, '{');
    add_request(settings, d, out);
    sl_buffer_add_str(out, "\"version\":\"1.0\"");
    sl_json_add_member(out, "timestamp", sl_span_str(time));
    add_batch(settings, d, out);
    if (payload.ptr)
        sl_json_add_member(out, "payload", payload);
    sl_buffer_add_char(out, '}');
}

void sl_esm_failure_key(const struct sl_esm_settings *settings, const struct sl_esm_discard *d,
                        struct sl_buffer *out)
{
    char t[SL_TIME_BYTES], uuid[37];
    uint64_t random = settings->seed ^ (uint64_t)d->wall_ms;
    for (const char *c = d->request_id; *c; c++)
        random = random * 31 + (unsigned char)*c;
    sl_esm_new_uuid(&random, uuid);
    sl_time_text(d->wall_ms * 1000000, t);
    sl_buffer_printf(out, "aws/lambda/%s/%s/%.4s/%.2s/%.2s/%.10sT%.2s.%.2s.%.2s-%s", settings->mapping_id,
                     d->shard->id, t, t + 5, t + 8, t, t + 11, t + 14, t + 17, uuid);
}
