/* The times that records state: JSON numbers in three units, quoted numbers, and the dates that the AWS CLI
 * writes. */
#include "streams/record_layout.h"

#define SECOND_NS INT64_C(1000000000)

/* ---- numbers ---- */

static bool read_number(struct sl_span text, enum sl_time_unit unit, int64_t *ns, int64_t *step_ns)
{
    struct sl_number number;
    bool exact;
    int shift = 9 - 3 * (int)unit;
    if (sl_number_parse(text, &number) || number.is_negative || !sl_number_int64(&number, shift, ns, &exact))
        return false;
    /* Digits behind the point make the step smaller. */
    int decimals = number.n > number.exponent ? number.n - number.exponent : 0;
    *step_ns = 1;
    for (int i = decimals; i < shift; i++)
        *step_ns *= 10;
    return true;
}

/* ---- dates ---- */

/* A number of exactly `n` digits at `*p`, which steps behind it; -1 when it is not there. */
static int read_digits(const char **p, const char *end, int n)
{
    int value = 0;
    for (int i = 0; i < n; i++, (*p)++) {
        if (*p == end || **p < '0' || **p > '9')
            return -1;
        value = value * 10 + (**p - '0');
    }
    return value;
}

static bool read_byte(const char **p, const char *end, char c)
{
    if (*p == end || **p != c)
        return false;
    (*p)++;
    return true;
}

/* Days since 1970-01-01 in the Gregorian calendar: years are counted from March, so that the leap day is the
 * last of them. */
static int64_t days_of(int year, int month, int day)
{
    int y = month <= 2 ? year - 1 : year;
    int64_t era_days = INT64_C(365) * y + y / 4 - y / 100 + y / 400;
    int month_from_march = (month + 9) % 12;
    return era_days + (153 * month_from_march + 2) / 5 + day - 1 - 719468;
}

/* ".123456": to nanoseconds; the step is that of its last digit. */
static bool read_fraction(const char **p, const char *end, int64_t *ns, int64_t *step_ns)
{
    *ns = 0;
    *step_ns = SECOND_NS;
    if (!read_byte(p, end, '.'))
        return true;
    const char *first = *p;
    for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
        *step_ns /= 10;
        *ns += (**p - '0') * *step_ns;
    }
    if (*step_ns == 0)
        *step_ns = 1;
    return *p > first;
}

/* "Z", "+01:00" or nothing (the CLI's times without a zone are UTC). */
static bool read_zone(const char **p, const char *end, int64_t *seconds)
{
    *seconds = 0;
    if (*p == end || read_byte(p, end, 'Z'))
        return *p == end;
    int sign = **p == '-' ? -1 : **p == '+' ? 1 : 0;
    (*p)++;
    int hours = read_digits(p, end, 2);
    bool colon = read_byte(p, end, ':');
    int minutes = read_digits(p, end, 2);
    *seconds = sign * (hours * 3600 + minutes * 60);
    return sign && hours >= 0 && hours < 24 && colon && minutes >= 0 && minutes < 60 && *p == end;
}

static bool read_date(struct sl_span text, int64_t *ns, int64_t *step_ns)
{
    const char *p = text.ptr, *end = text.ptr + text.len;
    static const char separators[] = "--T::";
    static const uint8_t lengths[] = {4, 2, 2, 2, 2, 2};
    static const uint8_t least[] = {0, 1, 1, 0, 0, 0}, most[] = {99, 12, 31, 23, 59, 60};
    int parts[6];
    for (int i = 0; i < 6; i++) {
        if (i > 0 && !read_byte(&p, end, separators[i - 1]))
            return false;
        parts[i] = read_digits(&p, end, lengths[i]);
        if (parts[i] < least[i] || (i > 0 && parts[i] > most[i]))
            return false;
    }
    int64_t fraction, zone;
    if (parts[0] < 1970 || parts[0] > 2261 || !read_fraction(&p, end, &fraction, step_ns) ||
        !read_zone(&p, end, &zone))
        return false;
    int64_t seconds =
        days_of(parts[0], parts[1], parts[2]) * 86400 + parts[3] * 3600 + parts[4] * 60 + parts[5];
    *ns = (seconds - zone) * SECOND_NS + fraction;
    return *ns >= 0;
}

bool sl_time_read(struct sl_span text, enum sl_time_unit unit, int64_t *ns, int64_t *step_ns)
{
    if (text.len > 4 && text.ptr[4] == '-')
        return read_date(text, ns, step_ns);
    return read_number(text, unit, ns, step_ns);
}
