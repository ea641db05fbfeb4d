/* Items become the records that would have inserted them; lines of incremental exports, the records of their
 * changes. */
#ifndef SL_DATA_SOURCE_ITEM_H
#define SL_DATA_SOURCE_ITEM_H

#include "streams/decode/batch.h"
#include "data/source/source.h"

struct sl_item_options {
    const char *name; /* of the text, for messages */
    struct sl_source_keys keys;
    struct sl_span arn; /* absent: SL_REPLAYED_ARN */
    struct sl_span ttl_attribute;
    uint64_t first; /* the number of the batch's first record in its text */
};

/* Replaces the batch by one of records only; one that has only records stays as it is. SL_REJECT, "NoKeys":
 * an item lacks a key attribute, or they are not known. */
enum sl_status sl_item_convert(const struct sl_item_options *options, struct sl_batch *batch,
                               struct sl_error *error) SL_MUST_USE;

#endif
