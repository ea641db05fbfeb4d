/* The small XML documents in which S3, SNS and STS answer: the text of an element by its name.
 *
 * sl_xml_is_document reads text that nobody has looked at. The others are no parser: the first element of a
 * name is taken, at any depth, and its text as it is written. An element that is not closed is not found. */
#ifndef SL_AWS_XML_H
#define SL_AWS_XML_H

#include "base/arena.h"
#include "base/buffer.h"

/* Deeper documents are refused. */
#define SL_XML_DEPTH 32

/* Whether the text is one whole element `root`, whose tags match, with nothing but a declaration, comments
 * and blanks around it. What no service sends is refused: a DOCTYPE, CDATA, processing instructions. */
bool sl_xml_is_document(struct sl_span xml, const char *root);

/* The text of the first element `name`, as written; absent when there is none. */
struct sl_span sl_xml_tag(struct sl_span xml, const char *name);

/* The same, and `rest` becomes what follows the element: for walking over several. */
struct sl_span sl_xml_next_tag(struct sl_span *rest, const char *name);

/* Whether none of these elements is there twice: nobody knows which one counts then. */
bool sl_xml_is_once(struct sl_span xml, const char *const *names, size_t n);

/* Appends the text with its named entities (&amp;, &lt;, ...) and &#39; resolved. */
void sl_xml_add_text(struct sl_buffer *out, struct sl_span text);

/* The same in an arena; the text itself when it has none. */
struct sl_span sl_xml_text(struct sl_span text, struct sl_arena *arena);

#endif
