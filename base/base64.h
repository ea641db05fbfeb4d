/* Base64 (RFC 4648, standard alphabet, padded), strict: no whitespace, no missing padding, no bits set that
 * decode to nothing. So a text and its bytes belong to each other one to one. */
#ifndef SL_BASE_BASE64_H
#define SL_BASE_BASE64_H

#include "base/arena.h"

/* Whether `text` is base64. */
bool sl_base64_is_valid(struct sl_span text);

/* Bytes that a valid text stands for. */
size_t sl_base64_decoded_bytes(struct sl_span text);

/* Writes them to `out`; false, with `out` in any state, when the text is not base64. */
bool sl_base64_decode(struct sl_span text, unsigned char *out) SL_MUST_USE;

/* The same for a text that is known to be valid. */
void sl_base64_decode_valid(struct sl_span text, unsigned char *out);

/* The text of these bytes, in `arena`. */
struct sl_span sl_base64_encode(struct sl_span bytes, struct sl_arena *arena);

#endif
