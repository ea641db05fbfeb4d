/* The local table, beyond what the port suite asks of every table: files, processes, failures. */
#include "tests/support/test.h"

#include "sinks/item.h"
#include "sinks/target.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sl_sinks sinks;
static struct sl_call call;
static char *folder;

static int set_up(void **state)
{
    (void)state;
    folder = test_folder();
    call.arena = sl_arena_new(4096);
    call.deadline_ms = INT64_MAX;
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &(struct sl_vars){NULL});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sl_sinks_clean_up(&sinks);
    sl_arena_destroy(call.arena);
    test_folder_remove(folder);
    return 0;
}

static struct sl_table_port *open_table(const char *table)
{
    struct sl_table_port *port = NULL;
    struct sl_error error = {0};
    const char *url = sl_arena_printf(call.arena, "sqlite:%s/db/local.db?table=%s", folder, table);
    if (sl_target_table(&sinks, sl_span_str(url), &port, &error) != SL_OK)
        fail_msg("%s", error.text);
    return port;
}

static struct sl_result one(struct sl_table_port *port, struct sl_table_op op)
{
    struct sl_result result;
    port->apply(port, &op, 1, &result, &call);
    return result;
}

#define KEY SL_LIT("{\"PK\":{\"S\":\"a\"}}")

static struct sl_result add(struct sl_table_port *port, const char *number)
{
    struct sl_set set = {SL_ADD, SL_LIT("n"),
                         sl_span_str(sl_arena_printf(call.arena, "{\"N\":\"%s\"}", number))};
    return one(port, (struct sl_table_op){.verb = SL_TABLE_UPDATE, .key = KEY, .sets = &set, .n_sets = 1});
}

static struct sl_span get(struct sl_table_port *port, struct sl_span key)
{
    return one(port, (struct sl_table_op){.verb = SL_TABLE_GET, .key = key}).item;
}

static void items_keep_their_bytes(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    struct sl_span item = SL_LIT("{ \"n\":{\"N\":\"1.50\"}, \"PK\":{\"S\":\"a\"} }");
    assert_int_equal(one(port, (struct sl_table_op){.verb = SL_TABLE_PUT, .key = KEY, .item = item}).status,
                     SL_OK);
    assert_true(sl_span_eq(get(port, KEY), item));
    port->close(port);
    port = open_table("t");
    assert_true(sl_span_eq(get(port, KEY), item));
    assert_null(get(port, SL_LIT("{\"PK\":{\"S\":\"b\"}}")).ptr);
    port->close(port);
}

static void keys_are_equal_by_value(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    struct sl_span key = SL_LIT("{\"b\":{\"N\":\"1.0\"},\"a\":{\"S\":\"\\u0061\"}}");
    struct sl_span item = SL_LIT("{\"b\":{\"N\":\"1.0\"},\"a\":{\"S\":\"a\"}}");
    assert_int_equal(one(port, (struct sl_table_op){.verb = SL_TABLE_PUT, .key = key, .item = item}).status,
                     SL_OK);
    assert_non_null(get(port, SL_LIT("{\"a\":{\"S\":\"a\"},\"b\":{\"N\":\"1\"}}")).ptr);
    port->close(port);
}

static void sums_are_exact(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    assert_int_equal(add(port, "0.1").status, SL_OK);
    assert_int_equal(add(port, "0.2").status, SL_OK);
    assert_span_is(get(port, KEY), "{\"PK\":{\"S\":\"a\"},\"n\":{\"N\":\"0.3\"}}");
    assert_int_equal(add(port, "-0.3").status, SL_OK);
    assert_int_equal(add(port, "99999999999999999999999999999999999999").status, SL_OK);
    struct sl_result over = add(port, "1e-1");
    assert_int_equal(over.status, SL_REJECT);
    assert_string_equal(over.code, "ValidationException");
    assert_int_equal(add(port, "x").status, SL_REJECT);
    assert_span_is(get(port, KEY),
                   "{\"PK\":{\"S\":\"a\"},\"n\":{\"N\":\"99999999999999999999999999999999999999\"}}");
    port->close(port);
}

static void sizes_at_the_limit(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    /* "PK" + "a" + "x" are the four other bytes. */
    for (int over = -1; over <= 1; over++) {
        size_t n = (size_t)(SL_ITEM_BYTES - 4 + over);
        char *text = sl_arena_zalloc(call.arena, n + 1);
        memset(text, 'y', n);
        const char *item = sl_arena_printf(call.arena, "{\"PK\":{\"S\":\"a\"},\"x\":{\"S\":\"%s\"}}", text);
        struct sl_result result =
            one(port, (struct sl_table_op){.verb = SL_TABLE_PUT, .key = KEY, .item = sl_span_str(item)});
        assert_int_equal(result.status, over > 0 ? SL_REJECT : SL_OK);
    }
    port->close(port);
}

static void sizes_follow_the_formula(void **state)
{
    (void)state;
    const struct {
        const char *item;
        size_t bytes;
    } cases[] = {
        {"{\"a\":{\"S\":\"\xC3\xA4\"}}", 3},
        {"{\"a\":{\"N\":\"123\"}}", 4},
        {"{\"a\":{\"N\":\"0\"}}", 2},
        {"{\"a\":{\"N\":\"-1200\"}}", 4},
        {"{\"a\":{\"B\":\"AAECAw==\"}}", 5},
        {"{\"a\":{\"BOOL\":true},\"b\":{\"NULL\":true}}", 4},
        {"{\"a\":{\"SS\":[\"x\",\"yy\"]}}", 4},
        {"{\"a\":{\"L\":[{\"S\":\"x\"}]}}", 6},
        {"{\"a\":{\"M\":{\"k\":{\"S\":\"x\"}}}}", 7},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *item = sl_item_parse(sl_span_str(cases[i].item), NULL);
        if (sl_item_bytes(item) != cases[i].bytes)
            fail_msg("%s: %zu bytes, wanted %zu", cases[i].item, sl_item_bytes(item), cases[i].bytes);
        json_decref(item);
    }
}

static void bad_operations_change_nothing(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    const struct sl_table_op ops[] = {
        {.verb = SL_TABLE_GET, .key = SL_LIT("{}")},
        {.verb = SL_TABLE_GET, .key = SL_LIT("[]")},
        {.verb = SL_TABLE_GET, .key = SL_LIT("{\"a\":{\"S\":\"\"}}")},
        {.verb = SL_TABLE_GET, .key = SL_LIT("{\"a\":{\"BOOL\":true}}")},
        {.verb = SL_TABLE_GET, .key = SL_LIT("{\"a\":{\"N\":\"x\"}}")},
        {.verb = SL_TABLE_GET, .key = KEY, .table = SL_LIT("a b")},
        {.verb = SL_TABLE_PUT, .key = KEY, .item = SL_LIT("{\"x\":{\"S\":\"y\"}}")},
        {.verb = SL_TABLE_PUT, .key = KEY, .item = SL_LIT("nonsense")},
    };
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct sl_result result = one(port, ops[i]);
        assert_int_equal(result.status, SL_REJECT);
        assert_string_equal(result.code, "ValidationException");
    }
    assert_null(get(port, KEY).ptr);
    port->close(port);
}

/* Four processes add to one number: none is lost. */
static void processes_share_the_file(void **state)
{
    (void)state;
    enum { WRITERS = 4, ROUNDS = 25 };
    for (int w = 0; w < WRITERS; w++) {
        if (fork() != 0)
            continue;
        /* All open a file that is not there yet: none may refuse the others. */
        struct sl_table_port *port = NULL;
        const char *url = sl_arena_printf(call.arena, "sqlite:%s/db/local.db?table=t", folder);
        if (sl_target_table(&sinks, sl_span_str(url), &port, NULL) != SL_OK)
            _exit(2);
        for (int i = 0; i < ROUNDS; i++)
            if (add(port, "1").status != SL_OK)
                _exit(1);
        _exit(0);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        wait(&status);
        assert_int_equal(status, 0);
    }
    struct sl_table_port *port = open_table("t");
    assert_span_is(get(port, KEY), "{\"PK\":{\"S\":\"a\"},\"n\":{\"N\":\"100\"}}");
    port->close(port);
}

/* Row 24: the disk is full (a limit on the file's size): no OK that is not durable, and the old state stays.
 */
static void row_24_full_disk_is_no_success(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    assert_int_equal(add(port, "1").status, SL_OK);
    port->close(port);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        struct sl_table_port *mine = open_table("t");
        struct rlimit limit = {20000, 20000};
        setrlimit(RLIMIT_FSIZE, &limit);
        int oks = 0;
        while (oks < 100 && add(mine, "1").status == SL_OK)
            oks++;
        _exit(oks);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 100);
    port = open_table("t");
    const char *wanted =
        sl_arena_printf(call.arena, "{\"PK\":{\"S\":\"a\"},\"n\":{\"N\":\"%d\"}}", 1 + WEXITSTATUS(status));
    assert_span_is(get(port, KEY), wanted);
    port->close(port);
}

static void bad_targets_are_refused(void **state)
{
    (void)state;
    const char *const urls[] = {"sqlite:",
                                "sqlite:x.db",
                                "sqlite:x.db?table=",
                                "sqlite:x.db?table=a%20b",
                                "sqlite:x.db?table=a&mode=ro",
                                "sqlite:/proc/nowhere/x.db?table=a"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct sl_table_port *port = NULL;
        assert_int_equal(sl_target_table(&sinks, sl_span_str(urls[i]), &port, NULL), SL_FATAL);
    }
    const char *path = sl_arena_printf(call.arena, "%s/not.db", folder);
    test_write(path, "this file is no database, but long enough to be looked at as if it were one "
                     "............................");
    struct sl_table_port *port = NULL;
    struct sl_error error = {0};
    const char *url = sl_arena_printf(call.arena, "sqlite:%s?table=t", path);
    assert_int_equal(sl_target_table(&sinks, sl_span_str(url), &port, &error), SL_FATAL);
    assert_non_null(strstr(error.text, "not a database"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(items_keep_their_bytes),   TEST(keys_are_equal_by_value),
        TEST(sums_are_exact),           TEST(sizes_at_the_limit),
        TEST(sizes_follow_the_formula), TEST(bad_operations_change_nothing),
        TEST(processes_share_the_file), TEST(row_24_full_disk_is_no_success),
        TEST(bad_targets_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
