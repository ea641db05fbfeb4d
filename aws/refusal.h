/* What a service says when it refuses: a code and a message, in each of AWS's spellings.
 *
 * A refusal is read here and judged elsewhere (aws/codes.h). What it says is the server's: nothing of it goes
 * into a text before aws/shown.h has looked at it. */
#ifndef SL_AWS_REFUSAL_H
#define SL_AWS_REFUSAL_H

#include "aws/mask.h"
#include "net/http.h"

#define SL_REFUSAL_CODE_BYTES    129                      /* with the NUL */
#define SL_REFUSAL_MESSAGE_BYTES (SL_MASK_TEXT_BYTES + 2) /* one byte more than is looked at: it was cut */

struct sl_refusal {
    /* Without namespaces. "Http503" when the body is not in the shape of a service's error: a proxy's page,
     * another JSON, a code that cannot be one. */
    char code[SL_REFUSAL_CODE_BYTES];
    char message[SL_REFUSAL_MESSAGE_BYTES]; /* decoded */
    bool is_ours; /* the message is ours ("the answer is HTML of 512 bytes"): nothing is quoted */
};

/* Of an answer whose status is not 2xx: JSON (__type, code, Code), XML (an Error or ErrorResponse with Code
 * and Message) or any other body; a code that JSON or an empty body lacks is taken from the header
 * x-amzn-errortype. (x-amzn-query-error has the old name of the code and is not read.) `code` is never empty
 * afterwards. */
void sl_refusal_read(const struct sl_http_exchange *exchange, struct sl_refusal *out);

/* Whether a text can be an error code: a letter, then letters, digits and dots, at most 128 bytes. */
bool sl_refusal_is_code(struct sl_span text);

#endif
