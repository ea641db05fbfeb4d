/* What EventBridge, Kinesis and Firehose share: answers by place, and payloads in base64. */
#ifndef SL_SINKS_AWS_STREAM_H
#define SL_SINKS_AWS_STREAM_H

#include "sinks/aws/queue.h"

/* Reads {"LIST":[{"ID":..} | {"ErrorCode":..,"ErrorMessage":..}, ...]}: one per entry, in their order. */
bool sl_stream_read(struct sl_queue_batch *batch, struct sl_span answer, const char *list, const char *id);

/* The bytes, and a newline when `newline`, in base64 with quotes. */
void sl_stream_add_data(struct sl_buffer *out, struct sl_span bytes, bool newline);

#endif
