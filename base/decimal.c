/* Exact sums: in 127 bits as long as they fit, then in GMP's integers. */
#include "base/decimal.h"

#include "base/number.h"

#include <gmp.h>

/* coefficient * 10^exponent. A coefficient of 38 digits fits 127 bits, so `small` holds any one number, and
 * nearly any sum; what overflows it goes on in `big`. */
struct sl_decimal {
    __int128 small;
    struct sl_arena *arena;
    int exponent;
    bool is_big; /* `big` and `part` are initialised and `small` counts no more */
    mpz_t big;
    mpz_t part; /* kept for its memory */
};

struct number {
    unsigned __int128 digits;
    int exponent;
    bool negative;
};

struct sl_decimal *sl_decimal_new(struct sl_arena *arena)
{
    struct sl_decimal *d = sl_arena_zalloc(arena, sizeof(*d));
    d->arena = arena;
    return d;
}

/* ---- reading ---- */

/* Digits and a point in at most 18 characters: no check of digits or range can fail. */
static bool read_short(struct sl_span text, struct number *out)
{
    uint64_t n = 0;
    size_t point = text.len, i = 0;
    out->negative = text.ptr[0] == '-';
    i += out->negative;
    if (i == text.len)
        return false;
    for (; i < text.len; i++) {
        unsigned digit = (unsigned)(unsigned char)text.ptr[i] - '0';
        if (digit < 10)
            n = n * 10 + digit;
        else if (text.ptr[i] == '.' && point == text.len && text.len - out->negative > 1)
            point = i + 1;
        else
            return false;
    }
    out->digits = n;
    out->exponent = -(int)(text.len - point);
    return true;
}

static bool read_long(struct sl_span text, struct number *out)
{
    struct sl_number n;
    if (sl_number_parse(text, &n))
        return false;
    *out = (struct number){.exponent = n.exponent - n.n, .negative = n.is_negative};
    for (unsigned i = 0; i < n.n; i++)
        out->digits = out->digits * 10 + n.digits[i];
    return true;
}

static bool read_number(struct sl_span text, struct number *out)
{
    return (text.len > 0 && text.len <= 18 && read_short(text, out)) || read_long(text, out);
}

/* ---- adding ---- */

/* n * 10^power; false when that is beyond 127 bits. */
static bool scale(__int128 *n, int power)
{
    static const int64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};
    if (power == 0 || *n == 0)
        return true;
    for (; power > 9; power -= 9)
        if (__builtin_mul_overflow(*n, tens[9], n))
            return false;
    return !__builtin_mul_overflow(*n, tens[power], n);
}

static bool add_small(struct sl_decimal *sum, __int128 n, int exponent)
{
    __int128 total = sum->small;
    int common = exponent < sum->exponent ? exponent : sum->exponent;
    if (!scale(&n, exponent - common) || !scale(&total, sum->exponent - common) ||
        __builtin_add_overflow(total, n, &total))
        return false;
    sum->small = total;
    sum->exponent = common;
    return true;
}

static void load(mpz_t out, __int128 n)
{
    unsigned __int128 size = n < 0 ? -(unsigned __int128)n : (unsigned __int128)n;
    uint64_t words[2] = {(uint64_t)size, (uint64_t)(size >> 64)};
    mpz_import(out, 2, -1, sizeof(words[0]), 0, 0, words);
    if (n < 0)
        mpz_neg(out, out);
}

/* n *= 10^power */
static void scale_big(mpz_t n, int power)
{
    if (power == 0 || mpz_sgn(n) == 0)
        return;
    mpz_t ten;
    mpz_init(ten);
    mpz_ui_pow_ui(ten, 10, (unsigned long)power);
    mpz_mul(n, n, ten);
    mpz_clear(ten);
}

static void clear_big(void *arg)
{
    struct sl_decimal *d = arg;
    mpz_clears(d->big, d->part, NULL);
}

static void grow(struct sl_decimal *d)
{
    mpz_inits(d->big, d->part, NULL);
    load(d->big, d->small);
    d->is_big = true;
    sl_arena_defer(d->arena, clear_big, d);
}

static void add_big(struct sl_decimal *sum, __int128 n, int exponent)
{
    if (!sum->is_big)
        grow(sum);
    load(sum->part, n);
    int common = exponent < sum->exponent ? exponent : sum->exponent;
    scale_big(sum->part, exponent - common);
    scale_big(sum->big, sum->exponent - common);
    mpz_add(sum->big, sum->big, sum->part);
    sum->exponent = common;
}

bool sl_decimal_add(struct sl_decimal *sum, struct sl_span number, bool subtract)
{
    struct number n;
    if (!read_number(number, &n))
        return false;
    __int128 signed_digits = (__int128)n.digits;
    if (n.negative != subtract)
        signed_digits = -signed_digits;
    if (sum->is_big || !add_small(sum, signed_digits, n.exponent))
        add_big(sum, signed_digits, n.exponent);
    return true;
}

/* ---- looking ---- */

static int sign(const struct sl_decimal *d)
{
    if (d->is_big)
        return mpz_sgn(d->big);
    return (d->small > 0) - (d->small < 0);
}

bool sl_decimal_is_zero(const struct sl_decimal *d)
{
    return sign(d) == 0;
}

/* A copy of the coefficient, as of a number with this exponent (not above its own). */
static void copy_scaled(mpz_t out, const struct sl_decimal *d, int exponent)
{
    mpz_init(out);
    if (d->is_big)
        mpz_set(out, d->big);
    else
        load(out, d->small);
    scale_big(out, d->exponent - exponent);
}

struct sl_decimal *sl_decimal_difference(const struct sl_decimal *a, const struct sl_decimal *b,
                                         struct sl_arena *arena)
{
    struct sl_decimal *d = sl_decimal_new(arena);
    __int128 minus;
    d->small = a->small;
    d->exponent = a->exponent;
    if (!a->is_big && !b->is_big && !__builtin_sub_overflow((__int128)0, b->small, &minus) &&
        add_small(d, minus, b->exponent))
        return d;
    d->exponent = a->exponent < b->exponent ? a->exponent : b->exponent;
    grow(d);
    mpz_clears(d->big, d->part, NULL);
    copy_scaled(d->big, a, d->exponent);
    copy_scaled(d->part, b, d->exponent);
    mpz_sub(d->big, d->big, d->part);
    return d;
}

int sl_decimal_compare(const struct sl_decimal *a, const struct sl_decimal *b)
{
    if (sign(a) != sign(b))
        return sign(a) - sign(b);
    if (!a->is_big && !b->is_big && a->exponent == b->exponent)
        return (a->small > b->small) - (a->small < b->small);
    mpz_t x, y;
    int common = a->exponent < b->exponent ? a->exponent : b->exponent;
    copy_scaled(x, a, common);
    copy_scaled(y, b, common);
    int order = mpz_cmp(x, y);
    mpz_clears(x, y, NULL);
    return order;
}

/* ---- writing ---- */

/* The coefficient's digits without sign. GMP writes 38 digits in 100 ns, and this is once a counter and
 * slice. */
static char *coefficient(const struct sl_decimal *d, struct sl_arena *arena)
{
    mpz_t n;
    copy_scaled(n, d, d->exponent);
    mpz_abs(n, n);
    char *digits = sl_arena_alloc(arena, mpz_sizeinbase(n, 10) + 2);
    mpz_get_str(digits, 10, n);
    mpz_clear(n);
    return digits;
}

/* A number of `n` digits whose first one stands for 10^magnitude; zeros at both ends are left out. "": there
 * is nothing but zeros. Absent: no number of DynamoDB has a digit there. */
static struct sl_span number_text(const char *digits, size_t n, int magnitude, bool is_negative,
                                  struct sl_arena *arena)
{
    while (n && digits[n - 1] == '0')
        n--;
    for (; n && digits[0] == '0'; digits++, n--)
        magnitude--;
    if (!n)
        return SL_LIT("");
    if (n > SL_NUMBER_DIGITS || magnitude < SL_NUMBER_LEAST || magnitude > SL_NUMBER_MOST)
        return sl_span(NULL, 0);
    struct sl_number number = {
        .is_negative = is_negative, .n = (uint8_t)n, .exponent = (int16_t)(magnitude + 1)};
    for (size_t i = 0; i < n; i++)
        number.digits[i] = (uint8_t)(digits[i] - '0');
    char *text = sl_arena_alloc(arena, SL_NUMBER_TEXT);
    return sl_span(text, sl_number_text(&number, text));
}

bool sl_decimal_text(const struct sl_decimal *d, struct sl_arena *arena, struct sl_span *out)
{
    *out = SL_LIT("0");
    if (sign(d) == 0)
        return true;
    const char *digits = coefficient(d, arena);
    size_t n = strlen(digits);
    *out = number_text(digits, n, d->exponent + (int)n - 1, sign(d) < 0, arena);
    return out->ptr != NULL;
}

bool sl_decimal_numbers(const struct sl_decimal *d, struct sl_arena *arena, struct sl_span **out, size_t *n)
{
    const char *digits = coefficient(d, arena);
    size_t len = strlen(digits);
    *out = sl_arena_alloc(arena, (len / SL_NUMBER_DIGITS + 1) * sizeof(**out));
    *n = 0;
    for (size_t at = 0, part; at < len; at += part) {
        part = len - at < SL_NUMBER_DIGITS ? len - at : SL_NUMBER_DIGITS;
        struct sl_span text =
            number_text(digits + at, part, d->exponent + (int)(len - at) - 1, sign(d) < 0, arena);
        if (!text.ptr)
            return false;
        if (text.len)
            (*out)[(*n)++] = text;
    }
    return true;
}
