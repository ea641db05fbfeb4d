/* A restore against a model: histories of some items, as an archive in any order and with doubles, with and
 * without a base, folded up to a moment; and a disk that fails at any operation. */
#include "data/restore/restore.h"

#include "tests/support/disk_fault.h"
#include "tests/support/export.h"
#include "tests/support/test.h"

#include "base/base64.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KEYS    8
#define CHANGES 60
#define BASE    20 /* the base is as of this change */
#define UNTIL   50 /* and what comes from this one on does not count */
#define T0_S    1795168800
#define ARN     "arn:aws:dynamodb:us-east-1:123456789012:table/orders"

static struct sl_sinks sinks;
static struct sl_log log_to_nobody;
static struct sl_vars no_vars = {.list = (const char *const[]){NULL}};

struct history {
    char *folder, *archive, *base;
    unsigned final[KEYS]; /* values at the moment; 0: there is none */
    size_t doubles, removed;
};

static uint64_t draw(uint64_t *seed, uint64_t n)
{
    return sl_random_step(seed) % n;
}

static const char *image(const char *name, unsigned key, unsigned value)
{
    return value ? json_printf(",'%s':{'PK':{'S':'k%u'},'v':{'N':'%u'}}", name, key, value) : "";
}

/* One change of the model, as a line. */
static const char *change(unsigned i, unsigned key, unsigned before, unsigned after)
{
    return json_printf(
        "{'eventID':'e%u','eventName':'%s','eventSource':'aws:dynamodb','dynamodb':{"
        "'ApproximateCreationDateTime':%u,'Keys':{'PK':{'S':'k%u'}}%s%s,'SequenceNumber':'%u'},"
        "'eventSourceARN':'" ARN "/stream/2026-01-01T00:00:00.000'}\n",
        i,
        !after   ? "REMOVE"
        : before ? "MODIFY"
                 : "INSERT",
        T0_S + i, key, image("NewImage", key, after), image("OldImage", key, before), 90 + i);
}

static void write_archive(struct history *h, const char *const *lines, size_t n, uint64_t *seed)
{
    static char texts[3][64 * 1024];
    for (size_t i = 0; i < 3; i++)
        texts[i][0] = '\0';
    for (size_t i = 0; i < n; i++) {
        char *text = texts[draw(seed, 3)];
        snprintf(text + strlen(text), sizeof(texts[0]) - strlen(text), "%s", lines[i]);
    }
    assert_int_equal(sl_disk_make_folder(h->archive, NULL), SL_OK);
    for (size_t i = 0; i < 3; i++)
        test_write(json_printf("%s/%zu.jsonl", h->archive, i), texts[i]);
}

static void write_base(struct history *h, const unsigned *state)
{
    static char text[4096];
    text[0] = '\0';
    for (unsigned k = 0; k < KEYS; k++)
        if (state[k])
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s",
                     json_printf("{'Item':{'PK':{'S':'k%u'},'v':{'N':'%u'}}}\n", k, state[k]));
    const struct test_export_file file = {"a.json", sl_span_str(text)};
    char time[SL_TIME_BYTES];
    sl_time_text((T0_S + BASE) * INT64_C(1000000000), time);
    free(h->base);
    h->base = test_export_write(&(struct test_export){.files = &file, .n = 1, .time = time, .table_arn = ARN},
                                h->folder);
}

/* Changes come in any order: the sequence numbers say the right one. */
static struct history history_new(uint64_t seed)
{
    struct history h = {.folder = test_folder_in_memory()};
    const char *lines[2 * CHANGES];
    unsigned state[KEYS] = {0};
    size_t n = 0;
    for (unsigned i = 0; i < CHANGES; i++) {
        unsigned key = (unsigned)draw(&seed, KEYS), after = draw(&seed, 4) || !state[key] ? i + 1 : 0;
        if (i == BASE)
            write_base(&h, state);
        if (i == UNTIL)
            memcpy(h.final, state, sizeof(state));
        h.removed += i < UNTIL && !after;
        bool is_double = draw(&seed, 5) == 0;
        h.doubles += is_double && i < UNTIL;
        for (int k = 0; k <= (int)is_double; k++)
            lines[n++] = change(i, key, state[key], after);
        state[key] = after;
    }
    for (size_t i = n - 1; i > 0; i--) {
        size_t k = draw(&seed, i + 1);
        const char *line = lines[i];
        lines[i] = lines[k];
        lines[k] = line;
    }
    h.archive = strdup(json_printf("%s/archive", h.folder));
    write_archive(&h, lines, n, &seed);
    return h;
}

static void history_clean_up(struct history *h)
{
    test_folder_remove(h->folder);
    free(h->archive);
    free(h->base);
}

/* ---- one restore ---- */

struct run {
    enum sl_status status;
    struct sl_error error;
    struct sl_restore_report report;
    char *result; /* NULL: there is none */
};

static enum sl_status open_sources(const struct history *h, bool with_base, struct sl_restore_options *o,
                                   struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = {.arena = arena, .deadline_ms = INT64_MAX};
    struct sl_source_options options = {.sinks = &sinks};
    assert_int_equal(sl_source_keys_read("PK", &options.keys, NULL), SL_OK);
    const struct sl_source_archive archive = {.place = h->archive};
    const struct sl_source_export base = {.place = h->base};
    enum sl_status status = sl_source_open_archive(&options, &archive, &call, &o->archive, error);
    if (status == SL_OK && with_base)
        status = sl_source_open_export(&options, &base, &call, &o->base, error);
    sl_arena_destroy(arena);
    return status;
}

static int fault, fault_err; /* which operation of a restore fails; 0: none */

static bool is_unsafe; /* --unsafe-order */

static struct run restore(const struct history *h, bool with_base, size_t piece_bytes, size_t chunk_bytes)
{
    struct run run = {.error = SL_NO_ERROR};
    char *folder = test_folder_in_memory();
    struct sl_restore_options o = {.folder = folder,
                                   .until_ms = (T0_S + UNTIL) * INT64_C(1000),
                                   .any_gap = is_unsafe,
                                   .piece_bytes = piece_bytes,
                                   .chunk_bytes = chunk_bytes};
    struct sl_restore *r = NULL;
    bool is_done = false;
    disk_fault_begin(fault, fault_err, NULL);
    run.status = open_sources(h, with_base, &o, &run.error);
    if (run.status == SL_OK)
        run.status = sl_restore_open(&o, &r, &run.error);
    while (run.status == SL_OK && !is_done)
        run.status = sl_restore_step(r, INT64_MAX, &is_done, &run.error);
    if (run.status == SL_OK) { /* and again */
        run.status = sl_restore_step(r, INT64_MAX, &is_done, &run.error);
        assert_true(is_done);
    }
    if (r)
        run.report = *sl_restore_report(r);
    sl_restore_close(r);
    sl_source_close(o.archive);
    sl_source_close(o.base);
    disk_fault_end();
    run.result = test_read(json_printf("%s/" SL_RESTORE_RESULT, folder), NULL);
    test_folder_remove(folder);
    return run;
}

/* Without a base it has what changed since the first change; here that is all. */
static void assert_final(const struct history *h, const struct run *run)
{
    size_t n = 0;
    if (run->status != SL_OK || !run->result)
        fail_msg("%s: %s", run->error.code, run->error.text);
    for (unsigned k = 0; k < KEYS; k++) {
        const char *wanted = json_printf("'NewImage':{'PK':{'S':'k%u'},'v':{'N':'%u'}}", k, h->final[k]);
        const char *any = json_printf("'Keys':{'PK':{'S':'k%u'}}", k);
        n += h->final[k] > 0;
        if ((strstr(run->result, any) != NULL) != (h->final[k] > 0) ||
            (h->final[k] && !strstr(run->result, wanted)))
            fail_msg("k%u is not %u:\n%s", k, h->final[k], run->result);
    }
    size_t lines = 0;
    for (const char *at = run->result; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, n);
    assert_int_equal(run->report.items, n);
}

static void the_table_is_as_it_was(void **state)
{
    (void)state;
    static const size_t chunks[] = {700, 4000, 0}, pieces[] = {1, 2000, 0};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct history h = history_new(seed);
        for (size_t i = 0; i < 6; i++) {
            bool with_base = i % 2;
            struct run run = restore(&h, with_base, pieces[(i + seed) % 3], chunks[i / 2]);
            assert_final(&h, &run);
            assert_int_equal(run.report.gaps, 0);
            assert_int_equal(run.report.first_ms, T0_S * INT64_C(1000));
            assert_int_equal(run.report.last_ms, (T0_S + CHANGES - 1) * INT64_C(1000));
            assert_true(run.report.after >= CHANGES - UNTIL);
            if (with_base)
                assert_true(run.report.before >= BASE);
            else
                assert_int_equal(run.report.doubles, h.doubles);
            free(run.result);
        }
        history_clean_up(&h);
    }
}

/* The time at which it ends is a whole second, and the base says when it was. */
static void times_are_checked(void **state)
{
    (void)state;
    static const int64_t times[] = {0, -1000, 1, T0_S * INT64_C(1000) + 999};
    struct history h = history_new(1);
    for (size_t i = 0; i < 5; i++) {
        struct sl_restore_options o = {.folder = h.folder,
                                       .until_ms = i < 4 ? times[i] : T0_S * INT64_C(1000)};
        struct sl_restore *r = NULL;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(open_sources(&h, true, &o, &error), SL_OK);
        assert_int_equal(sl_restore_open(&o, &r, &error), SL_REJECT);
        assert_null(r);
        assert_string_equal(error.code, i < 4 ? "InvalidTime" : "BaseTooNew");
        sl_source_close(o.archive);
        sl_source_close(o.base);
    }
    history_clean_up(&h);
}

/* Each operation of the system fails once: either the result is whole, or it is said what failed and there is
 * none. */
static void every_fault_is_said(void **state)
{
    (void)state;
    static const int errors[] = {ENOSPC, EIO, EMFILE};
    struct history h = history_new(3);
    bool came = true;
    for (int n = 1; came; n += n < 120 ? 1 : 9) {
        fault = n;
        fault_err = errors[n % 3];
        struct run run = restore(&h, true, 0, 900);
        came = disk_fault_came();
        if (run.status != SL_OK && (!came || !run.error.text[0] || strstr(run.error.text, "Success")))
            fail_msg("%s fails: %s", disk_fault->came, run.error.text);
        if (run.result) /* also when the folder could not be synced after that */
            run.status = SL_OK;
        if (run.status == SL_OK)
            assert_final(&h, &run);
        free(run.result);
    }
    fault = 0;
    history_clean_up(&h);
}

/* A change as Kinesis carries it: it has a time, and no number of DynamoDB's. */
static const char *timed(unsigned time, unsigned before, unsigned after)
{
    const char *event = !after ? "REMOVE" : before ? "MODIFY" : "INSERT";
    const char *data =
        json_printf("{'eventID':'e','eventName':'%s','awsRegion':'us-east-1','tableName':'orders',"
                    "'recordFormat':'application/json','dynamodb':{'ApproximateCreationDateTime':%u00%u,"
                    "'ApproximateCreationDateTimePrecision':'MILLISECOND','Keys':{'PK':{'S':'k1'}}%s%s}}",
                    event, T0_S, time, image("NewImage", 1, after), image("OldImage", 1, before));
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_span text = sl_base64_encode(sl_span_str(data), arena);
    static unsigned number;
    const char *line = json_printf(
        "{'kinesis':{'kinesisSchemaVersion':'1.0','partitionKey':'p','sequenceNumber':'%u','data':'%.*s',"
        "'approximateArrivalTimestamp':%u.1},'eventSource':'aws:kinesis','eventVersion':'1.0','eventID':"
        "'shardId-1:%u','eventName':'aws:kinesis:record','awsRegion':'us-east-1','eventSourceARN':"
        "'arn:aws:kinesis:us-east-1:123456789012:stream/s'}\n",
        number + 1, SL_ARG(text), T0_S, number + 1);
    number++;
    sl_arena_destroy(arena);
    return line;
}

/* Of two changes of one time nobody knows which was last, unless the item has changed since. */
static void changes_of_one_time_tie(void **state)
{
    (void)state;
    static const struct {
        unsigned changes[3][3]; /* time, before, after */
        bool ties;
    } cases[] = {
        {{{1, 0, 7}, {1, 7, 8}}, true},
        {{{1, 7, 8}, {1, 0, 7}}, true},
        {{{1, 0, 7}, {1, 7, 0}}, true},
        {{{1, 0, 7}, {1, 0, 7}}, false},
        {{{1, 0, 7}, {2, 7, 8}}, false},
        {{{1, 0, 7}, {1, 7, 8}, {2, 8, 9}}, false},
        {{{1, 7, 8}, {1, 0, 7}, {2, 8, 9}}, false},
        {{{1, 0, 7}, {2, 7, 8}, {2, 8, 9}}, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct history h = {.folder = test_folder_in_memory()};
        const char *lines[3];
        size_t n = 0;
        for (size_t k = 0; k < 3 && cases[i].changes[k][0]; k++)
            lines[n++] =
                strdup(timed(cases[i].changes[k][0], cases[i].changes[k][1], cases[i].changes[k][2]));
        uint64_t seed = i;
        h.archive = strdup(json_printf("%s/archive", h.folder));
        write_archive(&h, lines, n, &seed);
        for (int k = 0; k < 2; k++) {
            is_unsafe = k;
            struct run run = restore(&h, false, 0, 0);
            if ((run.status == SL_REJECT) != (cases[i].ties && !is_unsafe))
                fail_msg("case %zu: %d %s", i, run.status, run.error.text);
            if (run.status == SL_REJECT)
                assert_string_equal(run.error.code, "TiedOrder");
            assert_int_equal(run.report.ties, cases[i].ties);
            assert_int_equal(run.report.gaps, 0);
            free(run.result);
        }
        for (size_t k = 0; k < n; k++)
            free((char *)lines[k]);
        history_clean_up(&h);
    }
    is_unsafe = false;
}

static int set_up(void **state)
{
    (void)state;
    sl_log_init(&log_to_nobody, -1, SL_OFF, SL_LOG_TEXT, sl_clock_system());
    sl_sinks_init(&sinks, sl_clock_system(), &log_to_nobody, &no_vars);
    return 0;
}

static int clean_up(void **state)
{
    (void)state;
    sl_sinks_clean_up(&sinks);
    sl_log_clean_up(&log_to_nobody);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_as_it_was),
        cmocka_unit_test(changes_of_one_time_tie),
        cmocka_unit_test(times_are_checked),
        cmocka_unit_test(every_fault_is_said),
    };
    return cmocka_run_group_tests(tests, set_up, clean_up);
}
