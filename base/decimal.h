/* Exact decimals: sums of DynamoDB numbers, with nothing rounded on the way.
 *
 * A number's text is [+-]digits[.digits][e[+-]digits], within DynamoDB's limits: at most 38 significant
 * digits, and zero or a magnitude from 1E-130 to 9.99...E+125. A sum may leave those limits and come back;
 * only its text has to be within them. Sums live in an arena. Out of memory ends the process (see sl_die). */
#ifndef SL_BASE_DECIMAL_H
#define SL_BASE_DECIMAL_H

#include "base/arena.h"

struct sl_decimal;

/* Zero. Alive until the arena is reset. */
struct sl_decimal *sl_decimal_new(struct sl_arena *arena);

/* Adds the number, or subtracts it. False when the text is not a DynamoDB number; the sum is then
 * unchanged. */
bool sl_decimal_add(struct sl_decimal *sum, struct sl_span number, bool subtract);

/* a - b, with whatever digits it needs. In `arena`. */
struct sl_decimal *sl_decimal_difference(const struct sl_decimal *a, const struct sl_decimal *b,
                                         struct sl_arena *arena);

bool sl_decimal_is_zero(const struct sl_decimal *d);

/* Below zero, zero or above, as a is less than, equal to or greater than b. */
int sl_decimal_compare(const struct sl_decimal *a, const struct sl_decimal *b);

/* The text in DynamoDB's normal form: no exponent, no sign but '-', no leading or trailing zeros, "0" for
 * every zero. In `arena`. False, and `out` is absent, when it would need more than 38 digits or is out of
 * range. */
bool sl_decimal_text(const struct sl_decimal *d, struct sl_arena *arena, struct sl_span *out);

/* The sum as numbers of DynamoDB that add up to it: none for 0, one unless it needs more than 38 digits.
 * False: a digit stands where no number of DynamoDB has one. In `arena`. */
bool sl_decimal_numbers(const struct sl_decimal *d, struct sl_arena *arena, struct sl_span **out, size_t *n);

#endif
