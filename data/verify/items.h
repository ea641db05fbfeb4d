/* Items and keys as records: what handlers' expect() takes. */
#ifndef SL_DATA_VERIFY_ITEMS_H
#define SL_DATA_VERIFY_ITEMS_H

#include "streams/decode/batch.h"

/* Names of the source's key attributes, partition key first. */
struct sl_items_keys {
    struct sl_span names[2]; /* the second absent where there is none */
    size_t n;
};

/* What becomes a record: an item, or, when there is no such item, its key. */
struct sl_items_entry {
    struct sl_span item; /* JSON; absent: the source has no item of this key */
    struct sl_span key;  /* JSON; made from the item where it is absent */
    struct sl_span row;  /* not looked at: the key of the row that named the item; absent: there is none */
};

/* Makes a record of each: an INSERT in order 0 with Keys and NewImage, or a REMOVE with Keys alone. `arn` is
 * the event source's. SL_REJECT: an item lacks its key. All in `arena`; entries get their keys. */
enum sl_status sl_items_decode(struct sl_items_entry *entries, size_t n, const struct sl_items_keys *keys,
                               struct sl_span arn, struct sl_arena *arena, struct sl_batch *out,
                               struct sl_error *error) SL_MUST_USE;

#endif
