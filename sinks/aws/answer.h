/* Reading AWS's answers: errors in each of their spellings, and tags of the small XML documents. */
#ifndef SL_SINKS_AWS_ANSWER_H
#define SL_SINKS_AWS_ANSWER_H

#include "base/buffer.h"
#include "sinks/aws/http.h"

#define SL_ANSWER_CODE_BYTES    128
#define SL_ANSWER_MESSAGE_BYTES 400

struct sl_answer_error {
    char code[SL_ANSWER_CODE_BYTES]; /* without namespaces; "Http503" when the answer names none */
    char message[SL_ANSWER_MESSAGE_BYTES];
};

/* Of an answer whose status is not 2xx: JSON (__type, code, Code; x-amzn-errortype; x-amzn-query-error is the
 * old name, and is not taken), XML (Code, Message), or nothing at all. */
void sl_answer_read_error(const struct sl_http_exchange *exchange, struct sl_answer_error *out);

/* The text of the first element `name` in `xml`, as written, absent when there is none or it is not closed.
 */
struct sl_span sl_answer_tag(struct sl_span xml, const char *name);

/* The same, and `rest` becomes what follows the element: for walking over several. */
struct sl_span sl_answer_next_tag(struct sl_span *rest, const char *name);

/* &amp; and its like resolved. */
void sl_answer_add_text(struct sl_buffer *out, struct sl_span text);

/* Walking over JSON that sl_json_check has passed: the members of an object or the elements of an array, as
 * they are written. Nothing to walk over when the text is neither. */
struct sl_answer_walk {
    const char *p, *end;
    bool is_object;
};
struct sl_answer_walk sl_answer_walk(struct sl_span json);
/* False at the end, and at once when `name` is NULL for an object or not NULL for an array. `name` is without
 * its quotes, as written. */
bool sl_answer_step(struct sl_answer_walk *walk, struct sl_span *name, struct sl_span *value);

/* The object's member of this name, absent when there is none. */
struct sl_span sl_answer_member(struct sl_span json, struct sl_span name);

/* Words of the message that stand in the request's body and are no attribute name there become "...":
 * services quote the values that they refuse, and values are not for logs. A long body is not looked through;
 * then the whole message becomes "". */
void sl_answer_mask(char *message, const struct sl_span *parts, size_t n_parts);

#endif
