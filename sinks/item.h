/* Items as DynamoDB's JSON, for the sinks that have to look into them: the local table, which plays the
 * service's part, and the size check before an item is sent. Parsed with jansson: only what a condition or an
 * update touches comes here. */
#ifndef SL_SINKS_ITEM_H
#define SL_SINKS_ITEM_H

#include "base/arena.h"
#include "base/buffer.h"
#include "sinks/port.h"

#include <jansson.h>

/* DynamoDB's limit on an item, attribute names included ("Quotas in Amazon DynamoDB"). */
#define SL_ITEM_BYTES (400 * 1024)
/* Of the key attributes: partition key, sort key. */
#define SL_PARTITION_KEY_BYTES 2048
#define SL_SORT_KEY_BYTES      1024

/* The item, a new reference; NULL when the text is no JSON object (said in `error`). */
json_t *sl_item_parse(struct sl_span text, struct sl_error *error);

/* Whether every attribute is a value that DynamoDB takes: one known tag with content of its kind, numbers in
 * its range, no empty set. SL_REJECT, with the attribute's name, when not. */
enum sl_status sl_item_check(const json_t *item, struct sl_error *error) SL_MUST_USE;

/* Size by DynamoDB's formula. */
size_t sl_item_bytes(const json_t *item);

/* Appends one text per key: names in order, numbers in normal form; equal texts are equal keys. SL_REJECT
 * when it is no key: not one or two attributes of type S, N or B, an empty value, a value over its limit. */
enum sl_status sl_item_key_text(const json_t *key, struct sl_buffer *out, struct sl_error *error) SL_MUST_USE;

/* Whether the operation's tests hold on the item, NULL when there is none. SL_REJECT when a test's value is
 * no attribute value. */
enum sl_status sl_item_test(const struct sl_table_op *op, const json_t *item, bool *holds,
                            struct sl_error *error) SL_MUST_USE;

/* Carries out an update's sets on `item`. SL_REJECT when one of them cannot be (adding to what is no number,
 * more than 38 digits); `item` may then be half changed. */
enum sl_status sl_item_update(json_t *item, const struct sl_set *sets, size_t n,
                              struct sl_error *error) SL_MUST_USE;

#endif
