/* DynamoDB numbers: read, written, compared and counted, digit by digit. */
#include "base/number.h"

/* A larger exponent is out of range, whatever digits come before it: no text has as many. */
#define FAR (INT64_C(1) << 40)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The exponent's digits, from `*p` on. Beyond FAR it no longer grows, so that it cannot overflow. */
static bool read_exponent(const char **p, const char *end, int64_t *exponent)
{
    bool negative = false;
    if (*p < end && (**p == '+' || **p == '-'))
        negative = *(*p)++ == '-';
    if (*p == end)
        return false;
    int64_t e = 0;
    for (; *p < end && is_digit(**p); (*p)++)
        e = e < FAR ? e * 10 + (**p - '0') : e;
    *exponent += negative ? -e : e;
    return true;
}

/* What is read so far. `zeros` are those not known to be inside the number yet. */
struct reader {
    struct sl_number *out;
    size_t zeros;
    bool too_long;
    bool any; /* digit at all */
    int64_t exponent;
};

static void add_digit(struct reader *r, unsigned digit, bool after_point)
{
    struct sl_number *out = r->out;
    r->any = true;
    if (digit == 0 && out->n == 0) {
        r->exponent -= after_point;
        return;
    }
    r->exponent += !after_point;
    if (digit == 0) {
        r->zeros++;
        return;
    }
    if (r->zeros >= SL_NUMBER_DIGITS || out->n + r->zeros >= SL_NUMBER_DIGITS) {
        r->too_long = true;
        return;
    }
    for (; r->zeros; r->zeros--)
        out->digits[out->n++] = 0;
    out->digits[out->n++] = (uint8_t)digit;
}

/* Digits with at most one point among them. */
static const char *read_digits(struct reader *r, const char *p, const char *end)
{
    bool after_point = false;
    for (; p < end; p++) {
        if (is_digit(*p))
            add_digit(r, (unsigned)(*p - '0'), after_point);
        else if (*p == '.' && !after_point)
            after_point = true;
        else
            break;
    }
    return p;
}

const char *sl_number_parse(struct sl_span text, struct sl_number *out)
{
    static const char not_one[] = "not a number";
    struct reader r = {.out = out};
    if (text.len == 0)
        return not_one;
    const char *p = text.ptr, *end = sl_span_end(text);
    out->n = 0;
    out->exponent = 0;
    out->is_negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    p = read_digits(&r, p, end);
    if (!r.any)
        return not_one;
    if (p < end && (*p | 0x20) == 'e') {
        p++;
        if (!read_exponent(&p, end, &r.exponent))
            return not_one;
    }
    if (p != end)
        return not_one;
    if (out->n == 0) {
        out->is_negative = false;
        return NULL;
    }
    if (r.too_long)
        return "a number of more than 38 significant digits";
    if (r.exponent > SL_NUMBER_MOST + 1)
        return "a number of 1E+126 or more in magnitude";
    if (r.exponent < SL_NUMBER_LEAST + 1)
        return "a number of less than 1E-130 in magnitude";
    out->exponent = (int16_t)r.exponent;
    return NULL;
}

size_t sl_number_text(const struct sl_number *number, char out[SL_NUMBER_TEXT])
{
    size_t at = 0;
    int point = number->exponent, i = 0;
    if (number->n == 0) {
        out[0] = '0';
        return 1;
    }
    if (number->is_negative)
        out[at++] = '-';
    if (point <= 0)
        out[at++] = '0';
    for (; i < point; i++)
        out[at++] = (char)('0' + (i < number->n ? number->digits[i] : 0));
    if (i >= number->n)
        return at;
    out[at++] = '.';
    for (int zeros = point; zeros < 0; zeros++)
        out[at++] = '0';
    for (; i < number->n; i++)
        out[at++] = (char)('0' + number->digits[i]);
    return at;
}

static int compare_magnitude(const struct sl_number *a, const struct sl_number *b)
{
    if (a->exponent != b->exponent)
        return a->exponent < b->exponent ? -1 : 1;
    size_t n = a->n < b->n ? a->n : b->n;
    int order = memcmp(a->digits, b->digits, n);
    return order ? order : (int)a->n - (int)b->n;
}

int sl_number_compare(const struct sl_number *a, const struct sl_number *b)
{
    int a_sign = a->n == 0 ? 0 : a->is_negative ? -1 : 1;
    int b_sign = b->n == 0 ? 0 : b->is_negative ? -1 : 1;
    if (a_sign != b_sign)
        return a_sign - b_sign;
    return a_sign * compare_magnitude(a, b);
}

bool sl_number_int64(const struct sl_number *number, int shift, int64_t *out, bool *exact)
{
    int point = number->exponent + shift;
    uint64_t magnitude = 0;
    *exact = number->n == 0 || point >= number->n;
    if (number->n == 0)
        point = 0;
    if (point > 19) /* nineteen digits are less than 2^64 */
        return false;
    for (int i = 0; i < point; i++) {
        magnitude = magnitude * 10 + (i < number->n ? number->digits[i] : 0);
    }
    if (!number->is_negative) {
        *out = (int64_t)magnitude;
        return magnitude <= INT64_MAX;
    }
    magnitude += !*exact; /* down, not towards zero */
    *out = magnitude > INT64_MAX ? INT64_MIN : -(int64_t)magnitude;
    return magnitude <= (uint64_t)INT64_MAX + 1;
}

unsigned sl_number_bytes(const struct sl_number *number)
{
    if (number->n == 0)
        return 1;
    /* Powers of ten of the first and the last digit; a pair holds two of them, counted from the point. */
    int first = number->exponent - 1, last = number->exponent - number->n;
    return (unsigned)((first >> 1) - (last >> 1)) + 2 + number->is_negative;
}
