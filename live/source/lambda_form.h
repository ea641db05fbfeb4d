/* Stream records as Lambda delivers them to a function, whatever form they were recorded in.
 *
 * Every record of a DynamoDB event has these members, and no null among them (AWS's documentation of Streams'
 * Record and StreamRecord; the event types that AWS publishes for Go, Java, Rust and .NET; events captured
 * behind Lambda):
 *
 *   eventID, eventName, eventVersion, eventSource, awsRegion, eventSourceARN   strings
 *   dynamodb.ApproximateCreationDateTime                                       a number: seconds since 1970
 *   dynamodb.Keys                                                              an object
 *   dynamodb.NewImage, OldImage                                                objects, as the view type says
 *   dynamodb.SequenceNumber, StreamViewType                                    strings
 *   dynamodb.SizeBytes                                                         a whole number
 *   userIdentity {type, principalId}                                           only when DynamoDB itself
 * wrote
 *
 * Other forms differ: GetRecords has no eventSourceARN and writes PrincipalId and Type; the AWS CLI writes
 * the time as a date; exports have no event around their images; a fixture leaves out what its author did not
 * need; `sluice decode` adds a member. Lambda's JSON has no whitespace between its tokens, which counts for 6
 * MB. */
#ifndef SL_LIVE_SOURCE_LAMBDA_FORM_H
#define SL_LIVE_SOURCE_LAMBDA_FORM_H

#include "base/arena.h"
#include "base/buffer.h"
#include "streams/types.h"

struct sl_lambda_form {
    const char *stream_arn; /* eventSourceARN of records that have none, in their own Region */
    bool is_arn_certain;    /* the ARN is that of the stream, so its Region holds */
    const char *keys;  /* names of the key attributes, "PK,SK", for lines that hold only an item; or NULL */
    int64_t created_s; /* ApproximateCreationDateTime of records that have none */
    size_t before;     /* records of the input before the batch: messages count from its first */
};

/* Whether the record's text is what Lambda delivers, byte for byte. */
bool sl_lambda_form_is(const struct sl_record *r);

/* Writes the record as Lambda delivers it. `index` is its place in the stream, counted from 0, for records
 * that have no sequence number. Members that no form of ours has are kept: AWS may add some. False: the
 * record is an item, and `keys` does not name attributes of it that can be keys; `out` then ends within the
 * record. */
bool sl_lambda_form_write(const struct sl_lambda_form *form, const struct sl_record *r, size_t index,
                          struct sl_arena *scratch, struct sl_buffer *out);

/* Whether the JSON text, which was checked, has no whitespace between its tokens. */
bool sl_lambda_form_is_compact(struct sl_span json);

#endif
