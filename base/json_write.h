/* Writing JSON text into a buffer. The caller writes the punctuation; these write what needs care. */
#ifndef SL_BASE_JSON_WRITE_H
#define SL_BASE_JSON_WRITE_H

#include "base/buffer.h"

/* The text as a JSON string with its quotes. Control bytes are escaped; bytes that are not UTF-8 become
 * U+FFFD, so that the output is valid JSON whatever came in. */
void sl_json_add_string(struct sl_buffer *b, struct sl_span text);

/* The same without the quotes: for a string put together from pieces. */
void sl_json_add_escaped(struct sl_buffer *b, struct sl_span text);

/* The same, and nothing is replaced: unescaping it makes the same bytes again (sl_json_unescape_to). Halves
 * of surrogate pairs are escaped; other bytes that are not UTF-8 stay, and only loose readers take them
 * (sl_json_check_loose). Different texts become different JSON. */
void sl_json_add_exact(struct sl_buffer *b, struct sl_span text);

/* `"name":"text"`, with a comma before it unless the buffer ends in '{'. */
void sl_json_add_member(struct sl_buffer *b, const char *name, struct sl_span text);

/* `"name":number`, likewise. */
void sl_json_add_integer(struct sl_buffer *b, const char *name, int64_t number);

/* `"name":json`, likewise; the text goes in as it is. */
void sl_json_add_raw(struct sl_buffer *b, const char *name, struct sl_span json);

/* JSON text that was checked, without the whitespace between its tokens. */
void sl_json_add_compact(struct sl_buffer *b, struct sl_span json);

#endif
