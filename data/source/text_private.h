/* What the files of the text share: text.c stands on text_fill.c, text_skip.c on both. */
#ifndef SL_DATA_SOURCE_TEXT_PRIVATE_H
#define SL_DATA_SOURCE_TEXT_PRIVATE_H

#include "data/source/text.h"

/* ---- text_fill.c ---- */

bool sl_text_is_late(const struct sl_text *t, const struct sl_call *call);

/* The next of what is stored into t->raw. */
enum sl_status sl_text_read_raw(struct sl_text *t, const struct sl_call *call, struct sl_error *error);

/* Until the window has `want` bytes, all is in it (is_drained), or the deadline comes. After SL_REJECT the
 * window has what came before, and every further call fails in the same way. */
enum sl_status sl_text_fill(struct sl_text *t, size_t want, const struct sl_call *call,
                            struct sl_error *error);

/* ---- text.c ---- */

uint64_t sl_text_count_newlines(struct sl_span text);

#endif
