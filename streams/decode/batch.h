/* Bytes to records: one payload of any shape in which stream records come.
 *
 * Shapes are told apart by content: the Lambda event, a GetRecords dump, the bare array of EventBridge Pipes,
 * a Kinesis event whose data holds DynamoDB changes, one record per line, archives that `archive` wrote,
 * table exports (full and incremental). All or nothing: one bad record refuses the whole payload. */
#ifndef SL_STREAMS_DECODE_BATCH_H
#define SL_STREAMS_DECODE_BATCH_H

#include "base/arena.h"
#include "streams/types.h"

enum sl_shape {
    SL_SHAPE_EVENT,   /* {"Records":[...]}: Lambda event or GetRecords dump */
    SL_SHAPE_ARRAY,   /* [...]: EventBridge Pipes */
    SL_SHAPE_KINESIS, /* {"Records":[{"kinesis":...}]} */
    SL_SHAPE_LINES    /* one record, Item or export line per line */
};

struct sl_batch {
    struct sl_span payload; /* borrowed; the records are views of it */
    struct sl_arena *arena; /* the invocation's */
    enum sl_shape shape;
    struct sl_record_chunk **chunks; /* private: see sl_batch_record */
    size_t n;

    /* A tumbling window's event. The spans are JSON texts, absent when not there. */
    bool is_window;
    bool is_final;            /* isFinalInvokeForWindow */
    bool is_terminated_early; /* isWindowTerminatedEarly */
    struct sl_span window;    /* {"start":...,"end":...} */
    struct sl_span state;     /* the state as it came: {...} */
    struct sl_span shard_id;
    struct sl_span source_arn; /* eventSourceARN of the event, else of the first record */
};

/* So begins a line that `sluice erase` left of a record in an archive (data/erase/erase.h): it has the
 * record's identifiers, and no images. */
#define SL_ERASED_LINE "{\"sluice_erased\":"

struct sl_decode_options {
    struct sl_span ttl_attribute; /* absent: no removal is inferred */
    bool keeps_erased;     /* of LINES: records that were erased are in the batch; false: they are passed
                              over */
    bool notes_attributes; /* where the images' attributes are is noted while they are read: for those who
                              look into most of them (sl_batch_is_looked_into) */
    bool any_shape;        /* false: a Lambda function's events only (EVENT, ARRAY, KINESIS) */
    size_t lines_before;   /* LINES that come in pieces: records in the pieces before this one; 0: it is the
                              first. Errors count records from the beginning, bytes in the piece */
};

/* Decodes and checks the whole payload. On failure `error` has status SL_REJECT, the byte in the payload,
 * and a code: "InvalidJson" (malformed text), "NotAStreamEvent" (JSON that is something else),
 * "InvalidRecord" (the text begins with "record K: ", counted from 0, then the path within the record if
 * there is one). After InvalidRecord, and after InvalidJson within lines, `out->n` counts the good records
 * before it, which stay usable. The payload is at most 4 GiB - 1 and stays unchanged and alive as long as
 * the batch. A byte order mark is skipped. An event with empty Records is a batch of none. */
enum sl_status sl_batch_decode(struct sl_span payload, struct sl_arena *arena,
                               const struct sl_decode_options *options, struct sl_batch *out,
                               struct sl_error *error) SL_MUST_USE;

/* Of an earlier batch: attributes were looked up in so many of its images that it would have been worth
 * noting them. */
bool sl_batch_is_looked_into(const struct sl_batch *batch);

const struct sl_record *sl_batch_record(const struct sl_batch *batch, size_t i);

#endif
