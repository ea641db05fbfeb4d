/* What a verification counts: the same when reads fail in between, when an item is named twice, when a row is
 * damaged, and when it goes on in another process. Real handlers and SQLite tables. */
#include "handlers/pipeline/pipeline.h"
#include "sinks/target.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"
#include "data/verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

#define ITEMS 30
#define CONFIG                                                                                               \
    "{'report_batch_item_failures':true,'on_failure':'report','routes':["                                    \
    "{'name':'one','handler':'replicate','to':'sqlite:${DIR}/db?table=one'},"                                \
    "{'name':'two','handler':'replicate','to':'sqlite:${DIR}/db?table=two','guard':{'table':'guards'},"      \
    "'when':{'pattern':[{'dynamodb':{'Keys':{'PK':{'S':[{'prefix':'i'}]}}}}]}},"                             \
    "{'name':'sums','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals','ledger':{'table':'ledger'}," \
    "'counters':[{'key':{'PK':'all'},'add':{'n':1}}]}]}"

static struct stage *the;
static struct sl_table_port *source;
static size_t calls, failing_call; /* the call that fails; 0: none does */
static size_t n_lines;
static char last_line[2000];
static char not_comparable[64]; /* the code of the last such line */

static enum stage_fate fate(struct stage *s)
{
    (void)s;
    return ++calls == failing_call ? STAGE_FAILS_BEFORE : STAGE_WELL;
}

static void put(const char *id)
{
    char key[64], item[96];
    snprintf(key, sizeof(key), "{\"PK\":{\"S\":\"%s\"}}", id);
    snprintf(item, sizeof(item), "{\"PK\":{\"S\":\"%s\"},\"v\":{\"N\":\"1\"}}", id);
    struct sl_table_op op = {.verb = SL_TABLE_PUT, .key = sl_span_str(key), .item = sl_span_str(item)};
    struct sl_result result = {.status = SL_OK};
    const struct sl_call call = {.arena = the->arena, .deadline_ms = INT64_MAX / 2};
    source->apply(source, &op, 1, &result, &call);
    assert_int_equal(result.status, SL_OK);
}

/* The items are handled, but for each fifth one. */
static void open_world(void)
{
    struct sl_error error = SL_NO_ERROR;
    char url[300], event[600], id[16];
    the = stage_new(CONFIG, NULL);
    snprintf(url, sizeof(url), "sqlite:%s/source.db?table=s", the->folder);
    assert_int_equal(sl_target_table(&the->sinks, sl_span_str(url), &source, &error), SL_OK);
    for (int i = 0; i < ITEMS; i++) {
        snprintf(id, sizeof(id), "%c%d", i % 3 ? 'i' : 'x', i);
        put(id);
        snprintf(event, sizeof(event),
                 "{'Records':[{'eventID':'e%d','eventName':'INSERT','eventSource':'aws:dynamodb','dynamodb':{"
                 "'Keys':{'PK':{'S':'%s'}},'NewImage':{'PK':{'S':'%s'},'v':{'N':'1'}},'SequenceNumber':'%d',"
                 "'StreamViewType':'NEW_AND_OLD_IMAGES'}}]}",
                 i + 1, id, id, i + 1);
        if (i % 5)
            stage_deliver_all(the, event);
    }
    the->at_table = fate;
}

static void close_world(void)
{
    source->close(source);
    stage_destroy(the);
}

static int64_t through(void *arg)
{
    (void)arg;
    return the->clock.clock.wall_ns(&the->clock.clock) / 1000000 + 1;
}

static void found(void *arg, const struct sl_finding *f, struct sl_span line)
{
    (void)arg;
    n_lines++;
    snprintf(last_line, sizeof(last_line), "%.*s", SL_ARG(line));
    if (f->code)
        snprintf(not_comparable, sizeof(not_comparable), "%s", f->code);
}

static struct sl_verify *verify_open(bool only_items, struct sl_span place)
{
    struct sl_verify *v = NULL;
    struct sl_error error = SL_NO_ERROR;
    static struct sl_verify_options options;
    options = (struct sl_verify_options){.pipeline = the->p,
                                         .sinks = &the->sinks,
                                         .source = source,
                                         .keys = {{SL_LIT("PK")}, 1},
                                         .arn = SL_LIT("arn"),
                                         .segments = 4,
                                         .n = 4,
                                         .only_items = only_items,
                                         .wait_ms = 1000000,
                                         .through_ms = through,
                                         .found = found};
    calls = n_lines = 0;
    if (sl_verify_open(&options, place, &v, &error) != SL_OK)
        fail_msg("%s", error.text);
    return v;
}

static void verify_run(struct sl_verify *v)
{
    for (size_t steps = 0; !sl_verify_progress(v).is_done; steps++) {
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = sl_verify_step(v, INT64_MAX / 2, &error);
        if (status != SL_OK && status != SL_RETRY)
            fail_msg("%s", error.text);
        assert_true(steps < 10000);
    }
}

static void expect_counts(const struct sl_verify *v, size_t route, uint64_t equal, uint64_t different,
                          uint64_t left_out)
{
    const struct sl_verify_route *r = sl_verify_route(v, route);
    if (r->equal != equal || r->different != different || r->left_out != left_out)
        fail_msg("%s, call %zu fails: %llu equal, %llu different, %llu left out", r->name, failing_call,
                 (unsigned long long)r->equal, (unsigned long long)r->different,
                 (unsigned long long)r->left_out);
}

static void expect_all(const struct sl_verify *v)
{
    expect_counts(v, 0, 24, 6, 0);
    expect_counts(v, 1, 16, 4, 10);
    expect_counts(v, 2, 24, 6, 0);
    assert_int_equal(n_lines, 16);
}

/* Each read fails once; the step is done again. */
static void a_read_that_fails_counts_nothing_twice(void **state)
{
    (void)state;
    size_t n_calls = 1;
    open_world();
    for (failing_call = 0; failing_call <= n_calls; failing_call++) {
        struct sl_verify *v = verify_open(false, sl_span(NULL, 0));
        verify_run(v);
        expect_all(v);
        n_calls = failing_call ? n_calls : calls;
        sl_verify_close(v);
    }
    assert_true(n_calls > 10);
    failing_call = 0;
    close_world();
}

/* Killed after each step. */
static void another_process_goes_on(void **state)
{
    (void)state;
    size_t kills = 0;
    open_world();
    struct sl_verify *v = verify_open(false, sl_span(NULL, 0));
    size_t lines = 0;
    while (!sl_verify_progress(v).is_done) {
        struct sl_buffer place;
        assert_int_equal(sl_verify_step(v, INT64_MAX / 2, NULL), SL_OK);
        lines += n_lines;
        sl_buffer_init(&place, 1 << 20);
        sl_verify_place(v, &place);
        sl_verify_close(v);
        v = verify_open(false, sl_buffer_span(&place));
        sl_buffer_clean_up(&place);
        /* Suspects begin anew: two looks in one life. */
        for (int i = 0; i < 4 && !sl_verify_progress(v).is_done; i++)
            assert_int_equal(sl_verify_step(v, INT64_MAX / 2, NULL), SL_OK);
        assert_true(++kills < 1000);
    }
    n_lines += lines;
    expect_counts(v, 0, 24, 6, 0);
    expect_counts(v, 1, 16, 4, 10);
    expect_counts(v, 2, 24, 6, 0);
    sl_verify_close(v);
    close_world();
}

static void a_damaged_row_is_told_and_the_others_are_verified(void **state)
{
    (void)state;
    static const char *const damages[] = {"\"sums\":{\"L\"", "\"order\":{\"S\""};
    for (size_t i = 0; i < 2; i++) {
        char sql[200];
        open_world();
        /* Both: so that a look at the sums alone suspects it. */
        snprintf(sql, sizeof(sql),
                 "UPDATE ledger SET item = replace(replace(item, '%s', '\"other\":{\"SS\"'), "
                 "'\"n\":{\"N\":\"1\"}', "
                 "'\"n\":{\"N\":\"7\"}') WHERE item LIKE '%%\"i1\\%%'",
                 damages[i]);
        stage_change(the, "db", sql);
        *not_comparable = '\0';
        struct sl_verify *v = verify_open(false, sl_span(NULL, 0));
        verify_run(v);
        assert_string_equal(not_comparable, "LedgerRow");
        expect_counts(v, 0, 24, 6, 0);
        expect_counts(v, 2, 23, 6, 0);
        assert_int_equal(sl_verify_route(v, 2)->not_comparable, 1);
        sl_verify_close(v);
        close_world();
    }
}

static void an_item_is_looked_at_once_and_only_by_routes_that_take_it(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    open_world();
    struct sl_verify *v = verify_open(true, sl_span(NULL, 0));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sl_verify_item(v, NULL, SL_LIT("{\"PK\":{\"S\":\"x0\"}}"), &error), SL_OK);
        assert_int_equal(sl_verify_item(v, "sums", SL_LIT("{\"PK\":{\"S\":\"i10\"}}"), &error), SL_OK);
    }
    verify_run(v);
    expect_counts(v, 0, 0, 1, 0);
    expect_counts(v, 1, 0, 0, 3);
    expect_counts(v, 2, 0, 2, 0);
    assert_int_equal(n_lines, 3);
    sl_verify_close(v);
    close_world();
}

/* A table may hold what no stream carries. */
static void an_item_that_makes_no_record_is_told_and_the_others_are_verified(void **state)
{
    (void)state;
    static const char *const items[] = {"\"PK\":{\"S\":\"z\"},\"v\":{\"S\":\"\\ud800\"}",
                                        "\"PK\":{\"S\":\"z\"},\"\\udc00\":{\"N\":\"1\"}",
                                        "\"PK\":{\"S\":\"\\ud800z\"}"};
    for (size_t i = 0; i < 3; i++) {
        struct sl_error error = SL_NO_ERROR;
        char sql[300];
        open_world();
        snprintf(sql, sizeof(sql), "INSERT INTO s VALUES ('{\"PK\":{\"S\":\"%sz\"}}', '{%s}')",
                 i == 2 ? "\\ud800" : "", items[i]);
        stage_change(the, "source.db", sql);
        struct sl_verify *v = verify_open(false, sl_span(NULL, 0));
        verify_run(v);
        expect_counts(v, 0, 24, 6, 0);
        expect_counts(v, 1, 16, 4, 10);
        expect_counts(v, 2, 24, 6, 0);
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(sl_verify_route(v, k)->not_comparable, 1);
        sl_verify_close(v);
        if (i < 2) { /* the same of an item that is looked at again */
            v = verify_open(true, sl_span(NULL, 0));
            assert_int_equal(sl_verify_item(v, "one", SL_LIT("{\"PK\":{\"S\":\"z\"}}"), &error), SL_OK);
            assert_int_equal(sl_verify_item(v, "one", SL_LIT("{\"PK\":{\"S\":\"i1\"}}"), &error), SL_OK);
            verify_run(v);
            expect_counts(v, 0, 1, 0, 0);
            assert_int_equal(sl_verify_route(v, 0)->not_comparable, 1);
            sl_verify_close(v);
        }
        close_world();
    }
}

/* Somebody wrote the attributes that are ours. */
static void a_value_where_a_guard_should_be_is_not_told(void **state)
{
    (void)state;
    static const char *const orders[] = {"a secret of sixty-four bytes, which is as long as our guards are",
                                         "secret",
                                         "000000:0000000000000000000000000000000000000002:9999999999999999",
                                         "000000:0000000000000000000000000000000000000000:0000000000000007"};
    for (size_t i = 0; i < 4; i++) {
        char sql[600];
        struct sl_error error = SL_NO_ERROR;
        open_world();
        snprintf(sql, sizeof(sql),
                 "UPDATE one SET item = '{\"PK\":{\"S\":\"i1\"},\"sluice_order\":{\"S\":\"%s\"}}' WHERE key "
                 "LIKE '%%\"i1\"%%'",
                 orders[i]);
        stage_change(the, "db", sql);
        struct sl_verify *v = verify_open(true, sl_span(NULL, 0));
        assert_int_equal(sl_verify_item(v, "one", SL_LIT("{\"PK\":{\"S\":\"i1\"}}"), &error), SL_OK);
        verify_run(v);
        expect_counts(v, 0, 0, 1, 0);
        assert_null(strstr(last_line, "secret"));
        assert_null(strstr(last_line, "\"written\""));
        assert_true(i < 2 || strstr(last_line, orders[i]));
        sl_verify_close(v);
        close_world();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_that_fails_counts_nothing_twice),
        cmocka_unit_test(another_process_goes_on),
        cmocka_unit_test(a_damaged_row_is_told_and_the_others_are_verified),
        cmocka_unit_test(an_item_that_makes_no_record_is_told_and_the_others_are_verified),
        cmocka_unit_test(a_value_where_a_guard_should_be_is_not_told),
        cmocka_unit_test(an_item_is_looked_at_once_and_only_by_routes_that_take_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
