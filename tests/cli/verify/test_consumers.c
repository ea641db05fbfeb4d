/* How far the consumers are, as their files and the user say: the earliest counts, and what cannot be known
 * is never taken for "all is handled". */
#include "cli/verify/consumer.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW_S                    1767265200 /* 2026-01-01T11:00:00Z */
#define NOW_MS                   (INT64_C(1000) * NOW_S)
#define NO_LAG                   INT64_MIN
#define ORDERS                   "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/x"
#define FILE_OF(stream, through) "{'stream':'" stream "','through':'" through "'}"

static char *folder;

static const char *write_file(const char *name, const char *text)
{
    const char *path = json_printf("%s/%s", folder, name);
    test_write(path, json(text));
    return path;
}

/* One case: its files, and what follows. */
static const struct {
    const char *first, *second; /* NULL: there is none */
    int64_t max_lag_s;
    int64_t before_now_ms; /* of what is handled; -1: refused */
    const char *code, *text;
} cases[] = {
    {FILE_OF(ORDERS, "2026-01-01T10:59:50Z"), NULL, NO_LAG, 11000, NULL, NULL},
    {FILE_OF(ORDERS, "2026-01-01T10:59:50.250Z"), NULL, 5, 10750, NULL, NULL},
    {FILE_OF(ORDERS, "2026-01-01T10:59:59Z"), NULL, 5, 5000, NULL, NULL},
    {FILE_OF(ORDERS, "2026-01-01T10:59:50Z"), FILE_OF("other", "2026-01-01T10:59:40Z"), NO_LAG, 21000, NULL,
     NULL},
    {FILE_OF("other", "2026-01-01T10:59:40Z"), FILE_OF(ORDERS, "2026-01-01T10:59:50Z"), 0, 21000, NULL, NULL},
    {FILE_OF(ORDERS, "2026-01-01T11:00:01Z"), NULL, NO_LAG, 0, NULL, NULL}, /* as far as clocks may differ */
    {NULL, NULL, 7, 7000, NULL, NULL},
    {NULL, NULL, 0, 0, NULL, NULL},
    {FILE_OF(ORDERS, "2026-01-01T11:00:01.001Z"), NULL, NO_LAG, -1, "Clocks",
     "it is 1 s ahead of this machine's clock: set the clocks right"},
    {FILE_OF(ORDERS, "2026-01-01T11:00:03Z"), NULL, NO_LAG, -1, "Clocks", "it is 3 s ahead"},
    {FILE_OF("other", "2026-01-01T10:59:50Z"), NULL, NO_LAG, -1, "OtherStream",
     "it is not of the table's stream, " ORDERS},
    {"{'through':'2026-01-01T10:59:50Z'}", NULL, NO_LAG, -1, "OtherStream",
     "give the checkpoint file of the sluice "
     "tail that consumes this one"},
    {"{'stream':'" ORDERS "'}", NULL, NO_LAG, -1, "BadCheckpoint", "does not say how far its consumer is"},
    {"{'stream':'" ORDERS "','through':'soon'}", NULL, NO_LAG, -1, "BadCheckpoint", "does not say how far"},
    {"{'stream':'" ORDERS "','through':7}", NULL, NO_LAG, -1, "BadCheckpoint", "running sluice tail"},
    {"{", NULL, NO_LAG, -1, "BadCheckpoint", "--consumer "},
    {FILE_OF(ORDERS, "2026-01-01T10:59:50Z"), "", NO_LAG, -1, "BadCheckpoint", "second"},
};

static struct sl_consumers consumers_of(size_t i, struct sl_clock *clock, const char **files)
{
    size_t n = 0;
    if (cases[i].first)
        files[n++] = write_file("first", cases[i].first);
    if (cases[i].second)
        files[n++] = write_file("second", cases[i].second);
    return (struct sl_consumers){.clock = clock,
                                 .files = files,
                                 .n_files = n,
                                 .max_lag_s = cases[i].max_lag_s,
                                 .stream = SL_LIT(ORDERS)};
}

static void the_earliest_counts(void **state)
{
    (void)state;
    struct sl_clock_virtual clock;
    folder = test_folder_in_memory();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *files[2];
        struct sl_error error = SL_NO_ERROR;
        sl_clock_virtual_init(&clock, NOW_MS * 1000000, 1);
        struct sl_consumers c = consumers_of(i, &clock.clock, files);
        enum sl_status status = sl_consumers_check(&c, &error);
        int64_t through_ms = sl_consumers_through(&c);
        if (cases[i].code) {
            assert_int_equal(status, SL_REJECT);
            assert_string_equal(error.code, cases[i].code);
            if (!strstr(error.text, cases[i].text))
                fail_msg("case %zu: %s", i, error.text);
            assert_int_equal(through_ms, 0);
        } else {
            if (status != SL_OK)
                fail_msg("case %zu: %s", i, error.text);
            assert_int_equal(NOW_MS - through_ms, cases[i].before_now_ms);
        }
    }
    test_folder_remove(folder);
}

/* Nobody says how far it is; a table whose stream is not known takes any file. */
static void nobody_says_is_nobody_knows(void **state)
{
    (void)state;
    struct sl_clock_virtual clock;
    struct sl_error error = SL_NO_ERROR;
    folder = test_folder_in_memory();
    const char *files[] = {write_file("first", FILE_OF("other", "2026-01-01T10:59:50Z"))};
    sl_clock_virtual_init(&clock, NOW_MS * 1000000, 1);
    struct sl_consumers c = {.clock = &clock.clock, .max_lag_s = NO_LAG};
    assert_int_equal(sl_consumers_check(&c, &error), SL_OK);
    assert_int_equal(sl_consumers_through(&c), 0);
    c = (struct sl_consumers){.clock = &clock.clock, .files = files, .n_files = 1, .max_lag_s = NO_LAG};
    assert_int_equal(sl_consumers_check(&c, &error), SL_OK);
    assert_int_equal(NOW_MS - sl_consumers_through(&c), 11000);
    test_folder_remove(folder);
}

/* Four times a second; one that is gone is not known, and one that comes back is. */
static void files_are_read_again(void **state)
{
    (void)state;
    struct sl_clock_virtual clock;
    folder = test_folder_in_memory();
    const char *files[] = {write_file("first", FILE_OF(ORDERS, "2026-01-01T10:59:50Z"))};
    sl_clock_virtual_init(&clock, NOW_MS * 1000000, 1);
    clock.ms = 1000;
    struct sl_consumers c = {
        .clock = &clock.clock, .files = files, .n_files = 1, .max_lag_s = NO_LAG, .stream = SL_LIT(ORDERS)};
    int64_t first = sl_consumers_through(&c);
    write_file("first", FILE_OF(ORDERS, "2026-01-01T10:59:55Z"));
    clock.ms += 249;
    assert_int_equal(sl_consumers_through(&c), first);
    clock.ms += 1;
    assert_int_equal(sl_consumers_through(&c), first + 5000);
    write_file("first", "");
    clock.ms += 250;
    assert_int_equal(sl_consumers_through(&c), 0);
    write_file("first", FILE_OF(ORDERS, "2026-01-01T10:59:56Z"));
    clock.ms += 250;
    assert_int_equal(sl_consumers_through(&c), first + 6000);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_earliest_counts),
        cmocka_unit_test(nobody_says_is_nobody_knows),
        cmocka_unit_test(files_are_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
