/* Is a row what was expected? Values are compared as DynamoDB does: numbers by value, sets and maps without
 * order. Rows that are written alike cost one pass over their bytes. */
#ifndef SL_DATA_VERIFY_COMPARE_H
#define SL_DATA_VERIFY_COMPARE_H

#include "handlers/handler.h"

struct sl_compare {
    const struct sl_span *ignored; /* attributes that do not count, beside the row's own */
    size_t n_ignored;
    struct sl_arena *arena;
};

/* Is it certain that the row is right? `row` absent: there is none. False does not mean that it is wrong:
 * the handler's judge() says.
 *
 * A side row is not asked for: it would be a second read of every item, and a guard in another table does not
 * change what the row holds. So a side guard that is missing is told only of rows that are suspects for
 * another reason (docs/VERIFY.md says so). */
bool sl_compare_is_right(const struct sl_compare *c, const struct sl_expected *expected, struct sl_span row);

/* The attributes that count and differ between the expected item and the row, both of which are there; in
 * the arena. */
void sl_compare_names(const struct sl_compare *c, const struct sl_expected *expected, struct sl_span row,
                      struct sl_span **names, size_t *n);

#endif
