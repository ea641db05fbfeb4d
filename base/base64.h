/* Base64 (RFC 4648, standard alphabet, padded), strict: no whitespace, no missing padding, no unused bits
 * set. So each text has one meaning, and each meaning one text. */
#ifndef SL_BASE_BASE64_H
#define SL_BASE_BASE64_H

#include "base/arena.h"

/* Whether `text` is base64. */
bool sl_base64_is_valid(struct sl_span text);

/* How many bytes a valid text decodes to. */
size_t sl_base64_decoded_bytes(struct sl_span text);

/* Writes them to `out`; false, with `out` in any state, when the text is not base64. */
bool sl_base64_decode(struct sl_span text, unsigned char *out) SL_MUST_USE;

/* The same for a text that is known to be valid. */
void sl_base64_decode_valid(struct sl_span text, unsigned char *out);

/* Writes the text of these bytes to `out`, four for each three begun and no NUL; returns how many. */
size_t sl_base64_encode_to(struct sl_span bytes, char *out);

/* The text of these bytes, in `arena`. */
struct sl_span sl_base64_encode(struct sl_span bytes, struct sl_arena *arena);

#endif
