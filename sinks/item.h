/* Items as DynamoDB's JSON, for the sinks that look into them: the local table, which does what the service
 * does, and the size check before an item is sent. Items stay text: nothing is built, and what is stored is
 * the text as it was put.
 *
 * Strings are what DynamoDB keeps: NUL anywhere, and in any spelling; half a surrogate pair stays one (as its
 * three bytes in UTF-8's manner). If an object has a name twice, the last one counts. Numbers are equal by
 * value, sets and maps without order, binary by bytes. */
#ifndef SL_SINKS_ITEM_H
#define SL_SINKS_ITEM_H

#include "base/arena.h"
#include "base/buffer.h"
#include "sinks/port.h"

/* DynamoDB's limit on an item, attribute names included ("Quotas in Amazon DynamoDB"). */
#define SL_ITEM_BYTES (400 * 1024)
/* Of the key attributes: partition key, sort key. */
#define SL_PARTITION_KEY_BYTES 2048
#define SL_SORT_KEY_BYTES      1024
/* Containers of a value, one in another. */
#define SL_ITEM_DEPTH 32

/* Whether the text is a JSON object: SL_REJECT and why, when not. The functions below rely on it. */
enum sl_status sl_item_read(struct sl_span text, struct sl_error *error) SL_MUST_USE;

/* Whether every attribute is a value that DynamoDB takes: one known tag with content of its kind, numbers in
 * its range, no empty set, not nested too deep. SL_REJECT, with the attribute's name, when not. */
enum sl_status sl_item_check(struct sl_span item, struct sl_error *error) SL_MUST_USE;

/* Size by DynamoDB's formula (docs/RECORDS.md). */
size_t sl_item_bytes(struct sl_span item);

/* The attribute's value; absent when the item has none of this (unescaped) name. */
struct sl_span sl_item_attribute(struct sl_span item, struct sl_span name);

/* Appends one text per key: names in order, numbers in normal form; equal texts are equal keys. SL_REJECT
 * when it is not a key: other than one or two attributes of type S, N or B, an empty value, or one over its
 * limit. */
enum sl_status sl_item_key_text(struct sl_span key, struct sl_buffer *out,
                                struct sl_error *error) SL_MUST_USE;

/* SL_REJECT when the item does not hold the key's attributes with equal values. */
enum sl_status sl_item_has_key(struct sl_span item, struct sl_span key, struct sl_error *error) SL_MUST_USE;

/* Whether the operation's tests hold on the item, absent when there is none. SL_REJECT when a test's value is
 * not an attribute value. */
enum sl_status sl_item_test(const struct sl_table_op *op, struct sl_span item, bool *holds,
                            struct sl_error *error) SL_MUST_USE;

/* Carries out the sets of `op` on the item: `out` is its new text, in `arena`. What no set names keeps its
 * text. SL_REJECT when a set is impossible: adding to what is not a number, more than 38 digits, a key
 * attribute, a value that is not one. */
enum sl_status sl_item_update(const struct sl_table_op *op, struct sl_span item, struct sl_arena *arena,
                              struct sl_span *out, struct sl_error *error) SL_MUST_USE;

#endif
