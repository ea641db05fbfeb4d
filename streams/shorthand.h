/* Items as people write them, {"PK":"a","total":7}, beside DynamoDB's JSON,
 * {"PK":{"S":"a"},"total":{"N":"7"}}.
 *
 * A text is an S, a number an N (with all its digits), a list an L, an object an M, and {"base64":"..."} a B.
 * An object whose only member is one of DynamoDB's tags with content of its kind is that value: {"SS":["a"]},
 * {"N":"7"}. So DynamoDB's JSON stays what it is, and sets can be written. A map that only looks like that is
 * written with its tag: {"M":{"N":{"S":"north"}}}. */
#ifndef SL_STREAMS_SHORTHAND_H
#define SL_STREAMS_SHORTHAND_H

#include "base/buffer.h"

/* Appends the value of checked JSON text as DynamoDB's JSON. Nothing says whether its content is right ("N"
 * with a number in it): whoever decodes it does. */
void sl_shorthand_add_value(struct sl_buffer *out, struct sl_span json);

/* The same of an item, which is an object: without the tag around it. */
void sl_shorthand_add_item(struct sl_buffer *out, struct sl_span object);

#endif
