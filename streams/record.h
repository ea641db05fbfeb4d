/* Looking into one record. Everything returned is a view of the payload, or of `arena` where one is taken,
 * borrowed until the invocation's answer. A record from sl_batch_decode is whole and checked: none of these
 * can fail on it for bad text. */
#ifndef SL_STREAMS_RECORD_H
#define SL_STREAMS_RECORD_H

#include "streams/value.h"

enum sl_event sl_record_event(const struct sl_record *r);
enum sl_view sl_record_view(const struct sl_record *r);
enum sl_ttl sl_record_ttl(const struct sl_record *r);

/* ApproximateCreationDateTime in nanoseconds since the epoch, 0 when absent. Whole seconds on DynamoDB
 * Streams, ms or us through Kinesis. */
int64_t sl_record_created_ns(const struct sl_record *r);

/* SizeBytes as the record states it, 0 when absent. */
uint64_t sl_record_stated_bytes(const struct sl_record *r);

/* SizeBytes by DynamoDB's formula from Keys and the images (reference: docs/RECORDS.md). */
uint64_t sl_record_computed_bytes(const struct sl_record *r);

struct sl_span sl_record_text(const struct sl_record *r, enum sl_field field);

/* What guards compare: the change's place in the order of its item, as decimal digits without leading zeros,
 * compared by (length, bytes): the sequence number; Kinesis: the change's time in us; export lines:
 * WriteTimestampMicros. Absent when the record has none of them. */
struct sl_span sl_record_order(const struct sl_record *r, struct sl_arena *arena);

/* The image as a value of type SL_M; SL_NONE when the record does not carry it. */
struct sl_value sl_record_image(const struct sl_record *r, enum sl_image image);

/* The attribute of that image by its (unescaped) name; SL_NONE when absent. The first look into an image
 * makes an index of it in the batch's arena, so that the next ones are cheap. */
struct sl_value sl_record_attribute(const struct sl_record *r, enum sl_image image, struct sl_span name);

/* The same by document path: "a.b[0].c"; a name that holds '.', '[' or '`' is written in backquotes. */
struct sl_value sl_record_path(const struct sl_record *r, enum sl_image image, struct sl_span path);

/* The item's identity: one canonical text per item (names in order, strings unescaped, numbers in normal
 * form), made in `arena`. Equal texts are equal items of one table. */
struct sl_span sl_record_item_key(const struct sl_record *r, struct sl_arena *arena);

/* Whether the top-level attribute differs between the images (numbers by value, sets without order). For an
 * INSERT or REMOVE with its image: whether it is there at all. False when an image is missing that would be
 * needed. */
bool sl_record_changed(const struct sl_record *r, struct sl_span name);

#endif
