/* Comparing text without case: Unicode's simple folding, one character for one (so "ß" is not "SS"). */
#ifndef SL_BASE_FOLD_H
#define SL_BASE_FOLD_H

#include "base/span.h"

/* The character that stands for all of its cases. */
uint32_t sl_fold(uint32_t character);

/* Whether `text` is, begins with or ends with `folded`, whose characters are already folded (see
 * sl_fold_text). A byte that is not UTF-8 equals only itself. */
bool sl_fold_eq(struct sl_span text, struct sl_span folded);
bool sl_fold_starts(struct sl_span text, struct sl_span folded);
bool sl_fold_ends(struct sl_span text, struct sl_span folded);

/* Folds `text` into `out`, which has room for SL_FOLD_ROOM(text.len) bytes; returns the bytes written. */
#define SL_FOLD_ROOM(n) (2 * (n))
size_t sl_fold_text(struct sl_span text, char *out);

#endif
