/* The scan of a service that fails, is late, lies or has a budget: every item comes once, what a page costs
 * is waited for, and what cannot be is told with the table's name. */
#include "tests/support/fake_dynamodb.h"
#include "tests/support/haste.h"
#include "tests/support/honest.h"
#include "tests/data/source/pieces.h"

#include "base/clock.h"
#include "streams/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ITEMS 60
#define PAGES 5 /* of `script` */

static struct service {
    struct fake_dynamodb *fake;
    struct scripted_server *server;
    char *folder, target[200], body[64 * 1024];
    unsigned scans;
    unsigned fails, fail_times; /* the scans from this one on, so many of them, fail */
    const char *codes[2];       /* with these, in turn */
    unsigned late_ms;           /* the next answer */
    void (*script)(unsigned page, char *body, size_t room); /* answers instead */
} s;

/* The page that is asked for, from 1 on: the key that it follows has the number of the page before it. */
static unsigned page_of(struct sl_span asked)
{
    const char *at = memmem(asked.ptr, asked.len, "ExclusiveStartKey", 17);
    const char *key = at ? memmem(at, (size_t)(sl_span_end(asked) - at), "item-", 5) : NULL;
    return key ? (unsigned)strtoul(key + 5, NULL, 10) + 1 : 1;
}

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    char operation[64];
    (void)arg;
    honest_operation(request, operation, sizeof(operation));
    if (strcmp(operation, "Scan") != 0) {
        fake_dynamodb_answer(s.fake, request, reply);
        return;
    }
    unsigned number = ++s.scans;
    *reply = (struct scripted_reply){.status = 200};
    if (s.late_ms)
        usleep(s.late_ms * 1000);
    s.late_ms = 0;
    if (number >= s.fails && number < s.fails + s.fail_times) {
        reply->status = 400;
        snprintf(s.body, sizeof(s.body), "{\"__type\":\"x#%s\",\"message\":\"by script\"}",
                 s.codes[(number - s.fails) % 2]);
        reply->body = sl_span_str(s.body);
    } else if (s.script) {
        s.script(page_of(request->body), s.body, sizeof(s.body));
        reply->body = sl_span_str(s.body);
    } else {
        fake_dynamodb_answer(s.fake, request, reply);
    }
}

static void forget_faults(void)
{
    s.scans = s.fails = s.fail_times = s.late_ms = 0;
    s.script = NULL;
}

/* ---- reading ---- */

struct table {
    struct sl_source_scan scan;
    bool as_received;
};

static enum sl_status open_table(struct table *t, struct sl_source **out, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = test_call(arena);
    const struct sl_source_options options = {.sinks = &test_sinks, .as_received = t->as_received};
    t->scan.target = s.target;
    enum sl_status status = sl_source_open_scan(&options, &t->scan, &call, out, error);
    sl_arena_destroy(arena);
    return status;
}

/* What came of a table, over all the failures that may be repeated. */
struct read {
    unsigned seen[ITEMS + 1];
    size_t n, pieces, failures;
    double units;
    struct sl_error error; /* the last one */
    enum sl_status status; /* SL_OK: it was read to its end */
};

static void note(struct read *r, const struct sl_batch *batch)
{
    for (size_t i = 0; i < batch->n; i++) {
        struct sl_span raw = sl_record_text(sl_batch_record(batch, i), SL_FIELD_RAW);
        const char *at = memmem(raw.ptr, raw.len, "item-", 5);
        unsigned long number = at ? strtoul(at + 5, NULL, 10) : ITEMS;
        r->seen[number < ITEMS ? number : ITEMS]++;
    }
    r->n += batch->n;
}

static struct read read_all(struct table *t, size_t max_bytes, int64_t time_ms)
{
    struct read r = {.error = SL_NO_ERROR};
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_clock *clock = sl_clock_system();
    struct sl_source *source;
    struct sl_source_piece piece = {.is_last = false};
    if (open_table(t, &source, &r.error) != SL_OK)
        fail_msg("%s", r.error.text);
    while (!piece.is_last && r.pieces < 500 && r.failures < 20) {
        const struct sl_call call = {.arena = arena, .deadline_ms = clock->now_ms(clock) + time_ms};
        sl_error_clear(&r.error);
        r.status = sl_source_pull(source, max_bytes, &call, &piece, &r.error);
        r.pieces++;
        if (r.status == SL_OK) {
            note(&r, &piece.batch);
            r.units += piece.units;
        } else {
            r.failures++;
        }
        if (r.status > SL_RETRY)
            break;
        sl_arena_reset(arena);
    }
    if (r.status == SL_OK) { /* what is at its end stays there */
        const struct sl_call call = test_call(arena);
        assert_int_equal(sl_source_pull(source, max_bytes, &call, &piece, NULL), SL_OK);
        assert_true(piece.is_last && piece.batch.n == 0 && piece.place.len > 0);
    }
    sl_source_close(source);
    sl_arena_destroy(arena);
    return r;
}

static void assert_all_once(const struct read *r)
{
    if (r->status != SL_OK)
        fail_msg("%s: %s", r->error.code, r->error.text);
    assert_int_equal(r->n, ITEMS);
    for (size_t i = 0; i < ITEMS; i++)
        if (r->seen[i] != 1)
            fail_msg("item %zu came %u times", i, r->seen[i]);
}

/* ---- tests ---- */

/* Any request fails once for now: no item is left out, none comes twice. */
static void a_page_that_fails_is_read_again(void **state)
{
    (void)state;
    static const char *const codes[] = {"ProvisionedThroughputExceededException", "InternalServerError"};
    static const uint32_t segments[] = {1, 3};
    for (size_t k = 0; k < 4; k++)
        for (unsigned n = 1; n <= 6; n++) {
            struct table t = {.scan = {.n = segments[k % 2], .of = segments[k % 2]}};
            forget_faults();
            s.fails = n, s.fail_times = 1;
            s.codes[0] = codes[k / 2];
            struct read r = read_all(&t, 16 * 1024, 60000);
            assert_all_once(&r);
            assert_in_range(r.failures, 0, 1);
            if (r.failures == 0 && k % 2 == 0 && n == 1)
                fail_msg("nobody was told of %s", codes[k / 2]);
        }
}

/* Of pages that fail together, the worst is told: it is what has to be mended. */
static void the_worst_failure_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct table t = {.scan = {.n = 2, .of = 2}};
        forget_faults();
        s.fails = 1, s.fail_times = 1000;
        s.codes[i] = "ProvisionedThroughputExceededException";
        s.codes[1 - i] = "AccessDeniedException";
        struct read r = read_all(&t, SL_SOURCE_PIECE_BYTES, 60000);
        assert_true(r.status > SL_RETRY && r.n == 0);
        assert_string_equal(r.error.code, "AccessDeniedException");
    }
}

/* An answer that does not come in time is nothing: the pull ends at its deadline, and it comes later. */
static void a_late_page_comes_later(void **state)
{
    (void)state;
    struct table t = {.scan = {.n = 1, .of = 1}};
    forget_faults();
    s.late_ms = 60;
    struct read r = read_all(&t, SL_SOURCE_PIECE_BYTES, 30);
    assert_all_once(&r);
    assert_int_equal(r.failures, 0);
    assert_true(r.pieces >= 2);
}

static void add_items(unsigned page, const char *next, char *body, size_t room)
{
    static const char filler[4000] = {[0 ... 3998] = 'x'};
    snprintf(
        body, room,
        "{\"Count\":2,\"ScannedCount\":2,\"Items\":[{\"PK\":{\"S\":\"item-%u\"},\"SK\":{\"S\":\"a\"},\"f\":{"
        "\"S\":\"%s\"}},{\"PK\":{\"S\":\"item-%u\"},\"SK\":{\"S\":\"b\"},\"f\":{\"S\":\"%s\"}}]%s}",
        2 * page, filler, 2 * page + 1, filler, next);
}

static void without_units(unsigned page, char *body, size_t room)
{
    char next[100] = "";
    if (page < PAGES)
        snprintf(next, sizeof(next),
                 ",\"LastEvaluatedKey\":{\"PK\":{\"S\":\"item-%u\"},\"SK\":{\"S\":\"b\"}}", page);
    add_items(page, next, body, room);
}

static void round_and_round(unsigned page, char *body, size_t room)
{
    char next[100];
    snprintf(next, sizeof(next), ",\"LastEvaluatedKey\":{\"PK\":{\"S\":\"item-%u\"},\"SK\":{\"S\":\"b\"}}",
             page % 3);
    add_items(page % 3, next, body, room);
}

static void a_scan_without_an_end_is_told(void **state)
{
    (void)state;
    struct table t = {.scan = {.first = 1, .n = 1, .of = 2}};
    forget_faults();
    s.script = round_and_round;
    struct read r = read_all(&t, SL_SOURCE_PIECE_BYTES, 60000);
    assert_int_equal(r.status, SL_FATAL);
    assert_string_equal(r.error.code, "EndlessScan");
    assert_non_null(strstr(r.error.text, "the pages of segment 1 lead round"));
    assert_non_null(strstr(r.error.text, s.target));
    assert_true(r.pieces < 200);
}

/* What the service does not say is counted by bytes: a unit for each 4 KB of a consistent read. The pages
 * wait for their budget, and a pull that has no budget ends at its deadline. */
static void a_budget_is_held(void **state)
{
    (void)state;
    static const struct {
        bool says_units;
        double read_units;
        int64_t least_ms;
    } cases[] = {{true, 0.25, 5000}, {false, 1, (PAGES - 1) * 1920 - 1000}, {false, 0, 0}};
    struct sl_clock *clock = sl_clock_system();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct table t = {.scan = {.n = 1, .of = 1, .read_units = cases[i].read_units}};
        forget_faults();
        s.script = cases[i].says_units ? NULL : without_units;
        t.scan.n = t.scan.of = cases[i].says_units ? 2 : 1;
        haste(10);
        int64_t begin_ms = clock->now_ms(clock);
        struct read r = read_all(&t, SL_SOURCE_PIECE_BYTES, 300);
        int64_t took_ms = clock->now_ms(clock) - begin_ms;
        haste(1);
        assert_int_equal(r.status, SL_OK);
        assert_int_equal(r.n, cases[i].says_units ? ITEMS : 2 * PAGES);
        assert_true(took_ms >= cases[i].least_ms);
        assert_true(cases[i].says_units == (r.units > 0));
    }
}

/* So many pages fly at a time as the memory and a second's budget allow. */
static void pages_fly_together(void **state)
{
    (void)state;
    static const struct {
        size_t max_bytes;
        double read_units;
        unsigned pages;
    } cases[] = {{8 << 20, 0, 8}, {3 << 20, 0, 3},   {1, 0, 1},        {8 << 20, 600, 2},
                 {8 << 20, 1, 1}, {8 << 20, 1e9, 8}, {100 << 20, 0, 8}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct table t = {.scan = {.n = 10, .of = 10, .read_units = cases[i].read_units}};
        struct sl_source *source;
        struct sl_source_piece piece;
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_call call = test_call(arena);
        forget_faults();
        assert_int_equal(open_table(&t, &source, NULL), SL_OK);
        assert_int_equal(sl_source_pull(source, cases[i].max_bytes, &call, &piece, NULL), SL_OK);
        if (s.scans != cases[i].pages)
            fail_msg("case %zu: %u pages", i, s.scans);
        sl_source_close(source);
        sl_arena_destroy(arena);
    }
}

/* As received, a line is the item alone; else it is a record of the table. */
static void items_are_records_or_lines(void **state)
{
    (void)state;
    for (int raw = 0; raw < 2; raw++) {
        struct table t = {.scan = {.n = 1, .of = 1}, .as_received = raw};
        struct sl_source *source;
        struct sl_source_piece piece;
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_call call = test_call(arena);
        forget_faults();
        assert_int_equal(open_table(&t, &source, NULL), SL_OK);
        assert_int_equal(sl_source_pull(source, SL_SOURCE_PIECE_BYTES, &call, &piece, NULL), SL_OK);
        assert_int_equal(piece.batch.n, ITEMS);
        struct sl_span text = sl_record_text(sl_batch_record(&piece.batch, 0), SL_FIELD_RAW);
        const char *arn =
            memmem(text.ptr, text.len, "arn:aws:dynamodb:us-east-1:123456789012:table/main", 50);
        assert_int_equal(sl_span_starts(text, SL_LIT("{\"Item\":{")), raw);
        assert_int_equal(arn != NULL, !raw);
        sl_source_close(source);
        sl_arena_destroy(arena);
    }
}

/* ---- the world ---- */

static void fill(void)
{
    struct sl_table_port *port;
    assert_int_equal(sl_target_table(&test_sinks, sl_span_str(s.target), &port, NULL), SL_OK);
    for (int i = 0; i < ITEMS; i++) {
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_call call = test_call(arena);
        struct sl_result result;
        struct sl_table_op op = {.verb = SL_TABLE_PUT};
        op.key = sl_span_str(json_printf("{'PK':{'S':'item-%d'},'SK':{'S':'a'}}", i));
        op.item =
            sl_span_str(json_printf("{'PK':{'S':'item-%d'},'SK':{'S':'a'},'f':{'S':'%0*d'}}", i, 900, i));
        port->apply(port, &op, 1, &result, &call);
        assert_int_equal(result.status, SL_OK);
        sl_arena_destroy(arena);
    }
    port->close(port);
}

static int set_up(void **state)
{
    setenv("AWS_ACCESS_KEY_ID", "x", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "x", 1);
    setenv("AWS_MAX_ATTEMPTS", "1", 1);
    s.folder = test_folder_in_memory();
    s.fake = fake_dynamodb_open(s.folder);
    s.server = scripted_server_start(answer, NULL);
    snprintf(s.target, sizeof(s.target), "dynamodb://main?region=us-east-1&endpoint=%s",
             scripted_server_url(s.server));
    sinks_set_up(state);
    fill();
    return 0;
}

static int clean_up(void **state)
{
    sinks_clean_up(state);
    scripted_server_stop(s.server);
    assert_null(fake_dynamodb_fault(s.fake));
    fake_dynamodb_close(s.fake);
    test_folder_remove(s.folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_that_fails_is_read_again),
        cmocka_unit_test(the_worst_failure_is_told),
        cmocka_unit_test(a_late_page_comes_later),
        cmocka_unit_test(a_scan_without_an_end_is_told),
        cmocka_unit_test(a_budget_is_held),
        cmocka_unit_test(pages_fly_together),
        cmocka_unit_test(items_are_records_or_lines),
    };
    return cmocka_run_group_tests(tests, set_up, clean_up);
}
