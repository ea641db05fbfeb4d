/* |date:FORM:OFFSET: a time as text of another form.
 *
 * Read are numbers, which are epoch times, and the texts of ISO 8601 that software writes: a date, extended
 * (2026-11-20) or basic (20261120), and after it, if need be, 'T' or a blank, hours and minutes, seconds with
 * a fraction, and a zone. Without a zone it is UTC. All else is missing: so are days and hours that do not
 * exist, and years beyond 0001 to 9999. */
#include "base/array.h"
#include "base/number.h"
#include "streams/template/template_private.h"

#define DAY_S 86400

/* Above it a number is milliseconds: 1973 in ms, and the year 5138 in s. */
#define MS_FROM INT64_C(100000000000)

/* 0001-01-01 and the last second of 9999-12-31, in seconds since 1970. */
#define FIRST_S INT64_C(-62135596800)
#define LAST_S  INT64_C(253402300799)

/* ---- the calendar: proleptic Gregorian ---- */

struct moment {
    int part[6]; /* year, month, day, hour, minute, second */
};

static int days_in(int year, int month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && is_leap);
}

static bool exists(const struct moment *m)
{
    return m->part[0] >= 1 && m->part[1] >= 1 && m->part[1] <= 12 && m->part[2] >= 1 &&
           m->part[2] <= days_in(m->part[0], m->part[1]) && m->part[3] <= 23 && m->part[4] <= 59 &&
           m->part[5] <= 59;
}

/* Days since 0000-03-01: years begin in March, so that the leap day is the last of them. */
static int64_t day_number(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
}

#define DAY_OF_1970 719468

static int64_t seconds_of(const struct moment *m)
{
    int64_t days = day_number(m->part[0], m->part[1], m->part[2]) - DAY_OF_1970;
    return days * DAY_S + m->part[3] * 3600 + m->part[4] * 60 + m->part[5];
}

/* Of FIRST_S to LAST_S. */
static struct moment moment_of(int64_t seconds)
{
    int64_t since = seconds - FIRST_S, days = since / DAY_S, rest = since % DAY_S;
    int year = (int)(days / 366) + 1, month = 1;
    int64_t first = day_number(1, 1, 1);
    while (year < 9999 && day_number(year + 1, 1, 1) - first <= days)
        year++;
    int day = (int)(days - (day_number(year, 1, 1) - first));
    for (; day >= days_in(year, month); month++)
        day -= days_in(year, month);
    return (struct moment){
        {year, month, day + 1, (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60)}};
}

/* ---- reading ---- */

/* A number of exactly `n` digits at `*p`, which moves past it; -1 when it is not there. */
static int take_digits(const char **p, const char *end, int n)
{
    int value = 0;
    for (int i = 0; i < n; i++) {
        if (end - *p <= i || (*p)[i] < '0' || (*p)[i] > '9')
            return -1;
        value = value * 10 + ((*p)[i] - '0');
    }
    *p += n;
    return value;
}

static bool take(const char **p, const char *end, char c)
{
    bool is = *p < end && **p == c;
    *p += is;
    return is;
}

static bool take_date(const char **p, const char *end, struct moment *m, bool *is_extended)
{
    m->part[0] = take_digits(p, end, 4);
    *is_extended = take(p, end, '-');
    m->part[1] = take_digits(p, end, 2);
    bool good = !*is_extended || take(p, end, '-');
    m->part[2] = take_digits(p, end, 2);
    return good && m->part[0] >= 0 && m->part[1] >= 0 && m->part[2] >= 0;
}

/* A point or a comma and digits: seconds are not rounded, so they say nothing. */
static bool take_fraction(const char **p, const char *end)
{
    if (!take(p, end, '.') && !take(p, end, ','))
        return true;
    const char *first = *p;
    while (*p < end && **p >= '0' && **p <= '9')
        (*p)++;
    return *p > first;
}

static bool take_time(const char **p, const char *end, struct moment *m, bool is_extended)
{
    m->part[3] = take_digits(p, end, 2);
    bool good = m->part[3] >= 0 && (!is_extended || take(p, end, ':'));
    m->part[4] = take_digits(p, end, 2);
    if (!good || m->part[4] < 0)
        return false;
    const char *colon = *p;
    if (is_extended && !take(p, end, ':'))
        return true;
    m->part[5] = take_digits(p, end, 2);
    if (m->part[5] >= 0)
        return take_fraction(p, end);
    m->part[5] = 0;
    return *p == colon;
}

/* "+09:00", "+0900", "+09" or "Z", to the end. */
static bool read_zone(const char *p, const char *end, int64_t *seconds)
{
    *seconds = 0;
    if (take(&p, end, 'Z') || take(&p, end, 'z'))
        return p == end;
    int sign = take(&p, end, '+') ? 1 : take(&p, end, '-') ? -1 : 0;
    int hours = take_digits(&p, end, 2), minutes = 0;
    if (p < end) {
        (void)take(&p, end, ':');
        minutes = take_digits(&p, end, 2);
    }
    *seconds = sign * (hours * 3600 + minutes * 60);
    return sign && hours >= 0 && hours <= 23 && minutes >= 0 && minutes <= 59 && p == end;
}

static bool read_iso(struct sl_span text, int64_t *seconds)
{
    const char *p = text.ptr, *end = sl_span_end(text);
    struct moment m = {{0}};
    bool is_extended;
    int64_t zone = 0;
    if (!take_date(&p, end, &m, &is_extended))
        return false;
    if (p < end && !take(&p, end, 'T') && !take(&p, end, 't') && !take(&p, end, ' '))
        return false;
    if (p > text.ptr + (is_extended ? 10 : 8) && !take_time(&p, end, &m, is_extended))
        return false;
    if (!exists(&m) || (p < end && !read_zone(p, end, &zone)))
        return false;
    *seconds = seconds_of(&m) - zone;
    return true;
}

static bool read_epoch(struct sl_span text, int64_t *seconds)
{
    struct sl_number number;
    bool exact;
    if (sl_number_parse(text, &number) || !sl_number_int64(&number, 0, seconds, &exact))
        return false;
    /* Rounded down, a number a little above -10^11 is -10^11 too: it is not exact. */
    bool is_ms = *seconds >= MS_FROM || *seconds < -MS_FROM || (*seconds == -MS_FROM && exact);
    if (is_ms)
        return sl_number_int64(&number, -3, seconds, &exact);
    return true;
}

/* Eight digits of an S are a date; as an epoch they would be days of 1970 to 1973. */
static bool is_basic_date(const struct template_datum *d, struct sl_span text)
{
    bool is = d->type == SL_S && text.len == 8;
    for (size_t i = 0; is && i < text.len; i++)
        is = text.ptr[i] >= '0' && text.ptr[i] <= '9';
    return is;
}

/* ---- the form ---- */

static const struct {
    char name[5];
    int part;
} fields[] = {{"yyyy", 0}, {"mm", 1}, {"dd", 2}, {"hh", 3}, {"mi", 4}, {"ss", 5}};
#define N_FIELDS SL_COUNT(fields)

/* The field at the beginning of the form; N_FIELDS: none. */
static size_t field_at(struct sl_span form)
{
    size_t i = 0;
    while (i < N_FIELDS && !sl_span_starts(form, sl_span_str(fields[i].name)))
        i++;
    return i;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Letters other than fields are mistakes, "YYYY", but for those that ISO 8601 has. */
static bool is_form(struct sl_span form)
{
    size_t n = 0;
    while (form.len) {
        size_t i = field_at(form);
        if (i == N_FIELDS && is_letter(*form.ptr) && *form.ptr != 'T' && *form.ptr != 'Z')
            return false;
        n += i < N_FIELDS;
        form = sl_span_from(form, i < N_FIELDS ? strlen(fields[i].name) : 1);
    }
    return n > 0;
}

enum sl_status template_date_read(const struct template_reader *r, struct template_call *call,
                                  const struct template_call *before)
{
    struct sl_span offset = call->args[1];
    (void)before;
    if (!is_form(call->args[0]))
        return template_fail(r, call->at,
                             "date: expected a form such as yyyy-mm-dd, of yyyy, mm, dd, hh, mi and ss");
    if (call->n_args == 2 && !read_zone(offset.ptr, offset.ptr + offset.len, &call->numbers[0]))
        return template_fail(r, call->at,
                             "date: expected an offset such as +09:00 after the form; a form with ':' in it "
                             "is written in backquotes");
    return SL_OK;
}

static char *put_digits(char *at, int n, int value)
{
    for (int i = n; i > 0; value /= 10)
        at[--i] = (char)('0' + value % 10);
    return at + n;
}

static struct sl_span in_form(struct sl_span form, const struct moment *m, struct sl_arena *scratch)
{
    char *begin = sl_arena_alloc(scratch, form.len + 1), *at = begin; /* a field is as long as its name */
    while (form.len) {
        size_t i = field_at(form), n = i < N_FIELDS ? strlen(fields[i].name) : 1;
        if (i < N_FIELDS)
            at = put_digits(at, (int)n, m->part[fields[i].part]);
        else
            *at++ = *form.ptr;
        form = sl_span_from(form, n);
    }
    return sl_span(begin, (size_t)(at - begin));
}

void template_date(const struct template_call *call, struct template_datum *d, struct sl_arena *scratch)
{
    struct sl_span text = template_datum_text(d, scratch);
    bool may_be = (d->type == SL_S || d->type == SL_N) && text.ptr;
    int64_t seconds = 0;
    if (may_be)
        may_be = (!is_basic_date(d, text) && read_epoch(text, &seconds)) || read_iso(text, &seconds);
    if (may_be && seconds >= FIRST_S - DAY_S && seconds <= LAST_S + DAY_S)
        seconds += call->numbers[0];
    *d = (struct template_datum){.type = SL_NONE};
    if (!may_be || seconds < FIRST_S || seconds > LAST_S)
        return;
    struct moment m = moment_of(seconds);
    *d = (struct template_datum){.type = SL_S, .text = in_form(call->args[0], &m, scratch)};
}
