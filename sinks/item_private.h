/* One attribute value as JSON text, {"N":"1"}, of text that was checked (sl_item_read). */
#ifndef SL_SINKS_ITEM_PRIVATE_H
#define SL_SINKS_ITEM_PRIVATE_H

#include "sinks/item.h"

enum sl_item_tag {
    SL_ITEM_NONE,
    SL_ITEM_S,
    SL_ITEM_N,
    SL_ITEM_B,
    SL_ITEM_BOOL,
    SL_ITEM_NULL,
    SL_ITEM_SS,
    SL_ITEM_NS,
    SL_ITEM_BS,
    SL_ITEM_L,
    SL_ITEM_M
};

struct sl_item_value {
    enum sl_item_tag tag;   /* SL_ITEM_NONE: the text is not an attribute value */
    struct sl_span content; /* S, N, B: the text without its quotes, escapes unresolved; else JSON */
};

/* Only the tag and the kind of JSON are checked. */
struct sl_item_value sl_item_value(struct sl_span json);

/* Whether DynamoDB takes the value. */
bool sl_item_value_is_good(struct sl_span json);

size_t sl_item_value_bytes(struct sl_item_value v);

bool sl_item_value_equal(struct sl_item_value a, struct sl_item_value b);

/* Orders two values of one type: S and B by bytes, N by value. False when they have no order. */
bool sl_item_value_compare(struct sl_item_value a, struct sl_item_value b, int *order);

/* The value of a key attribute as in a key's text: {"N":"1"}, the number in normal form. False when it is not
 * of type S, N or B. */
bool sl_item_value_add_key(struct sl_item_value v, struct sl_buffer *out);

#endif
