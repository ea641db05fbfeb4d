/* Text of others in an HTML page. Whatever it holds, the page shows it and does not obey it. */
#ifndef SL_CLI_OUTPUT_REPORT_HTML_H
#define SL_CLI_OUTPUT_REPORT_HTML_H

#include "base/buffer.h"

/* At most the first `most` bytes, cut between two characters. */
struct sl_span sl_html_shorten(struct sl_span text, size_t most);

/* As text, or as an attribute's value in double quotes. What cannot be seen (controls, characters that turn
 * the direction of writing) is named: U+202E. Bytes that are not UTF-8 become U+FFFD. */
void sl_html_add(struct sl_buffer *b, struct sl_span text);

/* The same in an element that keeps the text's direction of writing to itself. */
void sl_html_add_foreign(struct sl_buffer *b, struct sl_span text);

/* 50,000 */
void sl_html_add_count(struct sl_buffer *b, size_t n);

/* As a JSON string inside a <script>: it has no '<'. */
void sl_html_add_json(struct sl_buffer *b, struct sl_span text);

#endif
