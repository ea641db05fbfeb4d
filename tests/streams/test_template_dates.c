/* Which texts |date reads: those of a grammar, written as regular expressions, and of the calendar, by the
 * library. */
#include "base/clock.h"
#include "base/number.h"
#include "streams/decode/batch.h"
#include "streams/template/template.h"
#include "tests/support/test.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ZONE "([Zz]|([+-])([0-9]{2})(:?([0-9]{2}))?)?"

static regex_t extended, basic;
static struct sl_template *form;
static const struct sl_record *any;
static struct sl_arena *arena, *scratch;

static int set_up(void **state)
{
    (void)state;
    static struct sl_batch batch;
    struct sl_decode_options options = {.any_shape = true};
    arena = sl_arena_new(4096);
    scratch = sl_arena_new(4096);
    assert_int_equal(
        regcomp(&extended,
                "^([0-9]{4})-([0-9]{2})-([0-9]{2})([Tt ]([0-9]{2}):([0-9]{2})(:([0-9]{2})([.,][0-9]+)?)?" ZONE
                ")?$",
                REG_EXTENDED),
        0);
    assert_int_equal(
        regcomp(&basic,
                "^([0-9]{4})([0-9]{2})([0-9]{2})([Tt ]([0-9]{2})([0-9]{2})(([0-9]{2})([.,][0-9]+)?)?" ZONE
                ")?$",
                REG_EXTENDED),
        0);
    assert_int_equal(sl_template_compile(SL_LIT("{a|date:yyyy-mm-dd hh.mi.ss}"), NULL, arena, &form, NULL),
                     SL_OK);
    assert_int_equal(sl_batch_decode(json_span("{'eventName':'INSERT','dynamodb':{'Keys':{'k':{'S':'K'}}}}"),
                                     arena, &options, &batch, NULL),
                     SL_OK);
    any = sl_batch_record(&batch, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    regfree(&extended);
    regfree(&basic);
    sl_arena_destroy(arena);
    sl_arena_destroy(scratch);
    return 0;
}

static int part(const char *text, const regmatch_t *m)
{
    return m->rm_so < 0
               ? 0
               : (int)strtol(json_printf("%.*s", (int)(m->rm_eo - m->rm_so), text + m->rm_so), NULL, 10);
}

/* What the text is, in the form; false: no time. */
static bool expected(const char *text, char out[32])
{
    regmatch_t m[16];
    if (regexec(&extended, text, 16, m, 0) != 0 && regexec(&basic, text, 16, m, 0) != 0)
        return false;
    struct tm tm = {.tm_year = part(text, &m[1]) - 1900,
                    .tm_mon = part(text, &m[2]) - 1,
                    .tm_mday = part(text, &m[3]),
                    .tm_hour = part(text, &m[5]),
                    .tm_min = part(text, &m[6]),
                    .tm_sec = part(text, &m[8])};
    const struct tm asked = tm;
    time_t seconds = timegm(&tm);
    if (asked.tm_year < 1 - 1900 || tm.tm_year != asked.tm_year || tm.tm_mon != asked.tm_mon ||
        tm.tm_mday != asked.tm_mday || tm.tm_hour != asked.tm_hour || tm.tm_min != asked.tm_min ||
        tm.tm_sec != asked.tm_sec)
        return false;
    int hours = part(text, &m[12]), minutes = part(text, &m[14]);
    if (hours > 23 || minutes > 59)
        return false;
    int zone = hours * 3600 + minutes * 60;
    seconds += m[11].rm_so >= 0 && text[m[11].rm_so] == '-' ? zone : -zone;
    if (!gmtime_r(&seconds, &tm) || tm.tm_year < 1 - 1900 || tm.tm_year > 9999 - 1900)
        return false;
    snprintf(out, 32, "%04d-%02d-%02d %02d.%02d.%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
             tm.tm_hour, tm.tm_min, tm.tm_sec);
    return true;
}

/* 1: read, 0: not; -1: it is a number, which this is not about. */
static int look(const char *text)
{
    struct sl_number number;
    struct sl_value out;
    char want[32];
    bool is_basic = strlen(text) == 8 && strspn(text, "0123456789") == 8;
    if (!is_basic && !sl_number_parse(sl_span_str(text), &number))
        return -1;
    const char *item = json_printf("{'a':{'S':'%s'}}", text);
    const struct sl_rendering how = {.record = any,
                                     .image = SL_NEW_IMAGE,
                                     .scratch = scratch,
                                     .item = {.type = SL_M, .raw = sl_span_str(item)}};
    bool is_read = sl_template_make(form, &how, 64, &out, NULL) == SL_OK, is_time = expected(text, want);
    if (is_read != is_time || (is_read && !sl_span_is(out.raw, want)))
        fail_msg("%s: %s, not %s", text, is_read ? json_printf("%.*s", SL_ARG(out.raw)) : "nothing",
                 is_time ? want : "nothing");
    sl_arena_reset(scratch);
    return is_read;
}

static const char *const texts[] = {"2026-11-20",
                                    "20261120",
                                    "2024-02-29T00:00",
                                    "20231231T2359",
                                    "2026-11-20t23:59:59",
                                    "19991231 235959",
                                    "2026-11-20T21:04:00.123Z",
                                    "20261120T210400,5z",
                                    "2026-11-20 21:04+01:00",
                                    "2026-11-20T21:04:59-0930",
                                    "20261120T2104+09",
                                    "0001-01-01T00:30Z",
                                    "9999-12-31T23:30:00-00:45"};

/* Each text, and all that one changed, missing or added byte makes of it. */
static void dates_are_those_of_the_grammar_and_the_calendar(void **state)
{
    (void)state;
    static const char bytes[] = "0123456789-:+.,TtZz /x";
    size_t read = 0, refused = 0;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (size_t at = 0; at <= strlen(texts[i]); at++)
            for (size_t k = 0; k < sizeof(bytes); k++) {
                const char *rest = texts[i] + at;
                char changed[64], added[64];
                snprintf(changed, sizeof(changed), "%.*s%.1s%s", (int)at, texts[i], bytes + k,
                         *rest ? rest + 1 : "");
                snprintf(added, sizeof(added), "%.*s%.1s%s", (int)at, texts[i], bytes + k, rest);
                int is_read = look(changed), is_read_too = look(added);
                read += (is_read == 1) + (is_read_too == 1);
                refused += (is_read == 0) + (is_read_too == 0);
            }
    assert_true(read > 800 && refused > 5000);
}

/* Every byte in every place of a field. */
static void numbers_in_dates_are_digits(void **state)
{
    (void)state;
    for (size_t at = 0; at < strlen("2026-11-20T21:04:00"); at++)
        for (int byte = 0x20; byte < 0x7F; byte++) {
            char text[32] = "2026-11-20T21:04:00";
            text[at] = (char)byte;
            if (byte != '"' && byte != '\\' && byte != '\'')
                look(text);
        }
}

/* A number is an epoch, as N and as S. Only eight digits of an S are a date. */
static void eight_digits_of_a_text_are_a_date(void **state)
{
    (void)state;
    static const struct {
        const char *value, *date;
    } cases[] = {
        {"{'S':'20261120'}", "2026-11-20 00.00.00"}, {"{'N':'20261120'}", "1970-08-23 12.05.20"},
        {"{'S':'-1234567'}", "1969-12-17 17.03.53"}, {"{'N':'-1234567'}", "1969-12-17 17.03.53"},
        {"{'S':'1.7321e9'}", "2024-11-20 10.53.20"}, {"{'S':'12345.67'}", "1970-01-01 03.25.45"},
        {"{'S':'1234567'}", "1970-01-15 06.56.07"},  {"{'S':'123456789'}", "1973-11-29 21.33.09"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_value out;
        const struct sl_rendering how = {
            .record = any,
            .image = SL_NEW_IMAGE,
            .scratch = scratch,
            .item = {.type = SL_M, .raw = json_span(json_printf("{'a':%s}", cases[i].value))}};
        assert_int_equal(sl_template_make(form, &how, 64, &out, NULL), SL_OK);
        assert_span_is(out.raw, cases[i].date);
        sl_arena_reset(scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_those_of_the_grammar_and_the_calendar),
        cmocka_unit_test(numbers_in_dates_are_digits),
        cmocka_unit_test(eight_digits_of_a_text_are_a_date),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
