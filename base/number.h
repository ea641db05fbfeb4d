/* DynamoDB numbers as text: which texts are numbers, their normal form and order. Exact: no binary floating
 * point.
 *
 * A number is what Java's BigDecimal reads ([+-]digits[.digits][e[+-]digits]), of at most 38 significant
 * digits and a magnitude from 1E-130 to 9.99...E+125, or zero. The normal form, which DynamoDB stores and
 * returns, is plain decimal: no exponent, no '+', no needless zeros, no negative zero. */
#ifndef SL_BASE_NUMBER_H
#define SL_BASE_NUMBER_H

#include "base/error.h"
#include "base/span.h"

#define SL_NUMBER_DIGITS 38
/* Of a number's first digit, as powers of ten. */
#define SL_NUMBER_LEAST (-130)
#define SL_NUMBER_MOST  125

/* Longest normal form: '-', "0.", 129 zeros and 38 digits. */
#define SL_NUMBER_TEXT 176

/* 0.d1d2d3... times ten to the power of `exponent`; zero has no digits. */
struct sl_number {
    bool is_negative;
    uint8_t n;        /* digits, without zeros at either end */
    int16_t exponent; /* -129 to 126 */
    uint8_t digits[SL_NUMBER_DIGITS];
};

/* NULL when `text` is a number; else why not, as a constant phrase. */
const char *sl_number_parse(struct sl_span text, struct sl_number *out) SL_MUST_USE;

/* The normal form, without a NUL; returns the bytes written. */
size_t sl_number_text(const struct sl_number *number, char out[SL_NUMBER_TEXT]);

/* Below zero, zero, above zero, as numbers. */
int sl_number_compare(const struct sl_number *a, const struct sl_number *b);

/* number * 10^shift, rounded down to an integer; `exact` says whether nothing was lost. False when it does
 * not fit. */
bool sl_number_int64(const struct sl_number *number, int shift, int64_t *out, bool *exact);

/* Bytes that it counts for in an item: one for each base-100 digit, aligned at the point, from the first to
 * the last that is not zero, one more, and one for a minus sign. Zero: 1. */
unsigned sl_number_bytes(const struct sl_number *number);

#endif
