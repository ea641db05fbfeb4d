/* The line for a person of a failure in a text of records. */
#ifndef SL_DATA_SOURCE_EXPLAIN_H
#define SL_DATA_SOURCE_EXPLAIN_H

#include "base/error.h"
#include "base/span.h"

/* Where in its text a piece begins: what the pieces before it had. */
struct sl_text_from {
    uint64_t byte, record, line;
};

/* "orders.jsonl: line 17: record 16: ...", of a failure at the byte why->offset of `piece`. The line is named
 * when the text has several: the one at that byte, or, in a text of one record a line, the first that is not
 * JSON by itself. error->offset is the byte in the text. Returns SL_REJECT. A text that is of another form
 * from its beginning is named for what it is (data/source/kind.h), with this code: */
#define SL_TEXT_WRONG_FORM "WrongForm"

enum sl_status sl_text_explain(const char *name, struct sl_span piece, const struct sl_text_from *from,
                               const struct sl_error *why, struct sl_error *error);

#endif
