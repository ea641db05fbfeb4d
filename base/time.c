/* Times as ISO 8601 text, written and read. */
#include "base/time.h"

#include "base/span.h"

#include <stdio.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

/* ---- writing ---- */

void sl_time_text(int64_t epoch_ns, char out[SL_TIME_BYTES])
{
    int64_t ms = epoch_ns / 1000000 - (epoch_ns % 1000000 < 0);
    int64_t s = ms / 1000 - (ms % 1000 < 0);
    time_t seconds = (time_t)s;
    struct tm tm = {.tm_year = 70};
    char text[64];
    gmtime_r(&seconds, &tm); /* 64 bits of nanoseconds are years from 1677 to 2262 */
    snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(ms - s * 1000));
    snprintf(out, SL_TIME_BYTES, "%.24s", text);
}

/* ---- reading ---- */

/* A number of exactly `n` digits at `*p`, which moves past it; -1 when it is not there. */
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

static int days_in(int year, int month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && is_leap ? 29 : days[month - 1];
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

bool sl_time_parse(struct sl_span text, int64_t *ns, int64_t *step_ns)
{
    const char *p = text.ptr, *end = sl_span_end(text);
    static const char separators[] = "--T::";
    static const uint8_t lengths[] = {4, 2, 2, 2, 2, 2};
    static const uint8_t least[] = {0, 1, 1, 0, 0, 0}, most[] = {99, 12, 31, 23, 59, 60};
    int parts[6];
    for (int i = 0; i < 6; i++) {
        if (i > 0 && !read_byte(&p, end, separators[i - 1]) && (i != 3 || !read_byte(&p, end, ' ')))
            return false;
        parts[i] = read_digits(&p, end, lengths[i]);
        if (parts[i] < least[i] || (i > 0 && parts[i] > most[i]))
            return false;
    }
    int64_t fraction, zone;
    if (parts[0] < 1970 || parts[0] > 2261 || parts[2] > days_in(parts[0], parts[1]) ||
        !read_fraction(&p, end, &fraction, step_ns) || !read_zone(&p, end, &zone))
        return false;
    int64_t seconds =
        days_of(parts[0], parts[1], parts[2]) * 86400 + parts[3] * 3600 + parts[4] * 60 + parts[5];
    *ns = (seconds - zone) * SECOND_NS + fraction;
    return true;
}
