/* What PutEvents, PutRecords and PutRecordBatch share: an answer that lists an outcome for each entry by its
 * place, payloads in base64, and targets that name a stream. */
#ifndef SL_SINKS_QUEUES_ENTRIES_H
#define SL_SINKS_QUEUES_ENTRIES_H

#include "sinks/queues/queue.h"

/* What an answer is made of: {"COUNT":0,"LIST":[{"ID":".."} | {"ErrorCode":"..","ErrorMessage":".."}, ...]}.
 */
struct sl_entries_answer {
    const char *list, *id, *count;
};

/* Of Kinesis and Firehose (API references, PutRecordsResultEntry, PutRecordBatchResponseEntry); what is not
 * here and not in aws/codes.h is about the stream: FATAL. */
extern const struct sl_queue_code sl_entries_stream_codes[];

/* Reads such an answer: one outcome for each entry, in their order. False when it is anything else: another
 * number of entries, an entry with neither an id nor an error code or with both, a count of failed entries
 * that is not theirs. */
bool sl_entries_read(struct sl_queue_batch *batch, const struct sl_job *job,
                     const struct sl_entries_answer *is) SL_MUST_USE;

/* Appends the bytes, and a newline if `newline`, as a JSON string of base64. */
void sl_entries_add_data(struct sl_buffer *out, struct sl_span bytes, bool newline);

/* Reads a target that is a stream's name or its ARN (arn:aws:SERVICE:REGION:ACCOUNT:WORDNAME, where `word`
 * ends in '/'). SL_FATAL when it is neither. */
enum sl_status sl_entries_fill_stream(struct sl_queue *queue, const struct sl_url *url, const char *word,
                                      size_t max_name, struct sl_error *error) SL_MUST_USE;

#endif
