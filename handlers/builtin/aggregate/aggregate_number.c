/* Numbers as texts that sort, byte by byte, as the numbers do.
 *
 * A letter for the sign (n below zero, o for zero, p above), then the power of ten of the first digit as
 * three digits from 000 (10^-130) to 255 (10^125), then the digits. Of a negative number the power is taken
 * from 255 and each digit from 9, so that greater magnitudes come first; '~', which is above every digit,
 * ends them, so that -1.2 comes before -1. A positive number has no end of its own: what follows has to be
 * below '0'. */
#include "handlers/builtin/aggregate/aggregate_tally_private.h"

#include <stdio.h>

#define LEAST_POWER (-130)
#define POWERS      255

/* A sum of a few thousand such numbers needs no more than 38 digits. */
#define MODERATE_POWER 21
#define MODERATE_LAST  (-12)

/* A number in its normal form: no exponent, no needless zeros. */
struct normal {
    bool is_negative;
    int power;               /* of ten, of the first digit */
    const char *first, *end; /* the digits, with a point among them or not; zeros may end them */
};

static struct normal read_normal(struct sl_span number)
{
    struct normal n = {.is_negative = number.ptr[0] == '-', .end = number.ptr + number.len};
    const char *at = number.ptr + n.is_negative, *point = at;
    while (point < n.end && *point != '.')
        point++;
    n.first = at;
    while (n.first < n.end && (*n.first == '0' || *n.first == '.'))
        n.first++;
    n.power = (int)(point - n.first) - (n.first < point);
    while (n.end > n.first && n.end[-1] == '0')
        n.end--;
    return n;
}

size_t aggregate_number_sort(struct sl_span number, char out[AGGREGATE_SORT_BYTES])
{
    struct normal n = read_normal(number);
    if (n.first == n.end) {
        out[0] = 'o';
        return 1;
    }
    int power = n.power - LEAST_POWER;
    size_t len = (size_t)snprintf(out, AGGREGATE_SORT_BYTES, "%c%03d", n.is_negative ? 'n' : 'p',
                                  n.is_negative ? POWERS - power : power);
    for (const char *at = n.first; at < n.end && len < AGGREGATE_SORT_BYTES - 1; at++)
        if (*at != '.')
            out[len++] = n.is_negative ? (char)('0' + '9' - *at) : *at;
    if (n.is_negative)
        out[len++] = '~';
    return len;
}

bool aggregate_number_is_moderate(struct sl_span number)
{
    struct normal n = read_normal(number);
    int digits = 0;
    for (const char *at = n.first; at < n.end; at++)
        digits += *at != '.';
    return digits == 0 || (n.power <= MODERATE_POWER && n.power - digits + 1 >= MODERATE_LAST);
}
