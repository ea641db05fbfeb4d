/* Times as text against the C library's calendar. */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/time.h"

#define SECOND  INT64_C(1000000000)
#define FIRST_S INT64_C(0)          /* 1970-01-01 */
#define LAST_S  INT64_C(9214646399) /* 2261-12-31T23:59:59Z */

static void library_text(int64_t s, char out[SL_TIME_BYTES], const char *fraction)
{
    struct tm tm;
    time_t seconds = (time_t)s;
    assert_non_null(gmtime_r(&seconds, &tm));
    size_t n = strftime(out, SL_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, SL_TIME_BYTES - n, "%sZ", fraction);
}

static void one_second_is_written_and_read(int64_t s)
{
    char wanted[SL_TIME_BYTES], got[SL_TIME_BYTES];
    int64_t ns, step_ns;
    library_text(s, wanted, ".007");
    sl_time_text(s * SECOND + 7999999, got);
    assert_string_equal(got, wanted);
    assert_true(sl_time_parse(sl_span_str(got), &ns, &step_ns));
    assert_true(ns == s * SECOND + 7000000 && step_ns == 1000000);
    library_text(s, wanted, "");
    assert_true(sl_time_parse(sl_span_str(wanted), &ns, &step_ns));
    assert_true(ns == s * SECOND && step_ns == SECOND);
}

static void the_calendar_is_the_librarys(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 200000; i++)
        one_second_is_written_and_read((int64_t)(sl_random_step(&random) % (uint64_t)(LAST_S + 1)));
    /* Every day's first and last second over 400 years' worth of leap rules that the range has. */
    for (int64_t day = FIRST_S; day <= LAST_S; day += 86400) {
        one_second_is_written_and_read(day);
        one_second_is_written_and_read(day + 86399);
    }
}

static bool reads(const char *text)
{
    int64_t ns, step_ns;
    return sl_time_parse(sl_span_str(text), &ns, &step_ns);
}

/* Which days exist is the library's word: mktime's inverse leaves them as they are. */
static void a_day_that_is_not_in_the_calendar_is_no_time(void **state)
{
    (void)state;
    for (int year = 1968; year <= 2263; year++)
        for (int month = 0; month <= 13; month++)
            for (int day = 0; day <= 32; day++) {
                char text[64];
                struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
                timegm(&tm);
                bool exists = tm.tm_mday == day && tm.tm_mon == month - 1 && year >= 1970 && year <= 2261;
                snprintf(text, sizeof(text), "%04d-%02d-%02dT00:00:00Z", year, month, day);
                if (reads(text) != exists)
                    fail_msg("%s", text);
            }
}

static void the_other_fields_have_bounds(void **state)
{
    (void)state;
    static const char *const good[] = {
        "2026-11-20T00:00:00",
        "2026-11-20 23:59:59",
        "2026-11-20T23:59:60Z",
        "2026-11-20T00:00:00.1",
        "2026-11-20T00:00:00.123456789012Z",
        "2026-11-20T00:00:00+23:59",
        "2026-11-20T00:00:00-00:59",
    };
    static const char *const bad[] = {
        "2026-11-20T24:00:00",
        "2026-11-20T00:60:00",
        "2026-11-20T00:00:61",
        "2026-11-20T00:00:00.",
        "2026-11-20T00:00:00.Z",
        "2026-11-20T00:00:00z",
        "2026-11-20T00:00:00+24:00",
        "2026-11-20T00:00:00+0100",
        "2026-11-20T00:00:00+01:60",
        "2026-11-20T00:00:00ZZ",
        "2026-11-20T00:00:00 ",
        "2026-11-20_00:00:00",
        "2026 11-20T00:00:00",
        "2026-11-20T00 00:00",
        "2026-11-20T00:00",
        "2026-11-20",
        "",
        "226-11-20T00:00:00",
        "2026-11-20T00:00:0/",
        "2026-11-20T00:00:0:",
        "2026-11-20T00:00:00.1:",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!reads(good[i]))
            fail_msg("not read: %s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (reads(bad[i]))
            fail_msg("read: %s", bad[i]);
}

static void zones_and_fractions_count(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns, step_ns;
    } cases[] = {
        {"1970-01-01T00:00:00.000000001Z", 1, 1},
        {"1970-01-01T00:00:00.999999999", 999999999, 1},
        {"1970-01-01T00:00:00.9999999999", 999999999, 1},
        {"1970-01-01T00:00:01.05", SECOND + 50000000, 10000000},
        {"1970-01-01T02:01:00+02:00", 60 * SECOND, SECOND},
        {"1970-01-01T00:00:00-01:30", 5400 * SECOND, SECOND},
        {"1970-01-01T00:00:00+00:01", -60 * SECOND, SECOND},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t ns, step_ns;
        assert_true(sl_time_parse(sl_span_str(cases[i].text), &ns, &step_ns));
        assert_int_equal(ns, cases[i].ns);
        assert_int_equal(step_ns, cases[i].step_ns);
    }
}

/* Before 1970, a part of a millisecond belongs to the one before it; the ends of the range have their text.
 */
static void times_before_1970_are_written(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z"},         {-1, "1969-12-31T23:59:59.999Z"},
        {-1000000, "1969-12-31T23:59:59.999Z"},  {-1000001, "1969-12-31T23:59:59.998Z"},
        {-SECOND, "1969-12-31T23:59:59.000Z"},   {-SECOND - 1, "1969-12-31T23:59:58.999Z"},
        {INT64_MAX, "2262-04-11T23:47:16.854Z"}, {INT64_MIN, "1677-09-21T00:12:43.145Z"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[SL_TIME_BYTES];
        sl_time_text(cases[i].ns, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_calendar_is_the_librarys),
        cmocka_unit_test(a_day_that_is_not_in_the_calendar_is_no_time),
        cmocka_unit_test(the_other_fields_have_bounds),
        cmocka_unit_test(zones_and_fractions_count),
        cmocka_unit_test(times_before_1970_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
