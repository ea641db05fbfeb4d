/* Percent-encoding as AWS signs it: everything but A-Z a-z 0-9 - . _ ~ is %XX in capitals (RFC 3986's
 * unreserved set). */
#ifndef SL_SINKS_AWS_URI_H
#define SL_SINKS_AWS_URI_H

#include "base/buffer.h"

/* `keep` is one more byte that stays as it is: '/' in paths, '\0' for none. */
void sl_uri_encode(struct sl_buffer *out, struct sl_span text, char keep);

/* What is no valid %XX stays as it is. */
void sl_uri_decode(struct sl_buffer *out, struct sl_span text);

#endif
