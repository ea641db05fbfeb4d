/* The local table, beyond what the port suite asks of every table: files, processes, failures. */
#include "tests/support/test.h"

#include "sinks/item.h"
#include "sinks/target.h"
#include "tests/support/sqlite_fault.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
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
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &(struct sl_vars){.list = NULL});
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
    struct sl_error error = SL_NO_ERROR;
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

#define KEY json_span("{'PK':{'S':'a'}}")

static struct sl_result add(struct sl_table_port *port, const char *number)
{
    struct sl_set set = {SL_ADD, SL_LIT("n"), sl_span_str(json_printf("{'N':'%s'}", number))};
    return one(port, (struct sl_table_op){.verb = SL_TABLE_UPDATE, .key = KEY, .sets = &set, .n_sets = 1});
}

static struct sl_span get(struct sl_table_port *port, struct sl_span key)
{
    return one(port, (struct sl_table_op){.verb = SL_TABLE_GET, .key = key}).item;
}

static struct sl_result get_from(struct sl_table_port *port, const char *table, struct sl_span key)
{
    return one(port, (struct sl_table_op){.verb = SL_TABLE_GET, .table = sl_span_str(table), .key = key});
}

static void items_keep_their_bytes(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    struct sl_span item = json_span("{ 'n':{'N':'1.50'}, 'PK':{'S':'a'} }");
    assert_int_equal(one(port, (struct sl_table_op){.verb = SL_TABLE_PUT, .key = KEY, .item = item}).status,
                     SL_OK);
    assert_true(sl_span_eq(get(port, KEY), item));
    port->close(port);
    port = open_table("t");
    assert_true(sl_span_eq(get(port, KEY), item));
    assert_null(get(port, json_span("{'PK':{'S':'b'}}")).ptr);
    port->close(port);
}

static void keys_are_equal_by_value(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    struct sl_span key = json_span("{'b':{'N':'1.0'},'a':{'S':'\\u0061'}}");
    struct sl_span item = json_span("{'b':{'N':'1.0'},'a':{'S':'a'}}");
    assert_int_equal(one(port, (struct sl_table_op){.verb = SL_TABLE_PUT, .key = key, .item = item}).status,
                     SL_OK);
    assert_non_null(get(port, json_span("{'a':{'S':'a'},'b':{'N':'1'}}")).ptr);
    port->close(port);
}

static void sums_are_exact(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    assert_int_equal(add(port, "0.1").status, SL_OK);
    assert_int_equal(add(port, "0.2").status, SL_OK);
    assert_span_is(get(port, KEY), json("{'PK':{'S':'a'},'n':{'N':'0.3'}}"));
    assert_int_equal(add(port, "-0.3").status, SL_OK);
    assert_int_equal(add(port, "99999999999999999999999999999999999999").status, SL_OK);
    struct sl_result over = add(port, "1e-1");
    assert_int_equal(over.status, SL_REJECT);
    assert_string_equal(over.code, "ValidationException");
    assert_int_equal(add(port, "x").status, SL_REJECT);
    assert_span_is(get(port, KEY),
                   json("{'PK':{'S':'a'},'n':{'N':'99999999999999999999999999999999999999'}}"));
    port->close(port);
}

static void items_at_the_size_limit_fit(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    /* "PK" + "a" + "x" are the four other bytes. */
    for (int over = -1; over <= 1; over++) {
        size_t n = (size_t)(SL_ITEM_BYTES - 4 + over);
        char *text = sl_arena_zalloc(call.arena, n + 1);
        memset(text, 'y', n);
        const char *item = json_printf("{'PK':{'S':'a'},'x':{'S':'%s'}}", text);
        struct sl_result result =
            one(port, (struct sl_table_op){.verb = SL_TABLE_PUT, .key = KEY, .item = sl_span_str(item)});
        assert_int_equal(result.status, over > 0 ? SL_REJECT : SL_OK);
    }
    port->close(port);
}

/* An update that makes the item too large is the record's, and the item stays as it was. */
static void an_item_does_not_grow_beyond_its_limit(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    char *text = sl_arena_zalloc(call.arena, SL_ITEM_BYTES);
    memset(text, 'y', SL_ITEM_BYTES - 10);
    const char *item = json_printf("{'PK':{'S':'a'},'x':{'S':'%s'}}", text);
    assert_int_equal(
        one(port, (struct sl_table_op){.verb = SL_TABLE_PUT, .key = KEY, .item = sl_span_str(item)}).status,
        SL_OK);
    struct sl_set set = {SL_SET, SL_LIT("longer"), json_span("{'S':'12345'}")};
    struct sl_result result =
        one(port, (struct sl_table_op){.verb = SL_TABLE_UPDATE, .key = KEY, .sets = &set, .n_sets = 1});
    assert_int_equal(result.status, SL_REJECT);
    assert_span_is(get(port, KEY), item);
    set.name = SL_LIT("z");
    set.value = json_span("{'S':'12345'}"); /* six bytes, which are left */
    assert_int_equal(
        one(port, (struct sl_table_op){.verb = SL_TABLE_UPDATE, .key = KEY, .sets = &set, .n_sets = 1})
            .status,
        SL_OK);
    port->close(port);
}

/* What was refused before the database was asked stays refused when the database fails. */
static void a_refusal_outlives_a_failure(void **state)
{
    (void)state;
    const struct sl_table_op ops[] = {
        {.verb = SL_TABLE_PUT, .key = KEY, .item = SL_LIT("nonsense")},
        {.verb = SL_TABLE_PUT, .key = KEY, .item = KEY},
    };
    struct sl_result results[2];
    bool has_failed = true;
    size_t both = 0;
    sqlite_fault_begin(false);
    struct sl_table_port *port = open_table("t");
    sqlite_fault.code = SQLITE_FULL;
    for (int n = 1; has_failed; n++) {
        sqlite_fault.left = n;
        port->apply(port, ops, 2, results, &call);
        has_failed = results[1].status != SL_OK;
        sqlite_fault.left = 0;
        if (results[0].status != SL_REJECT) { /* it failed before anything was looked at */
            assert_int_equal(results[0].status, results[1].status);
            continue;
        }
        assert_true(results[0].not_sent);
        assert_string_equal(results[0].code, "ValidationException");
        both += has_failed;
    }
    assert_true(both > 0);
    port->close(port);
    sqlite_fault_end();
}

static void sizes_follow_the_formula(void **state)
{
    (void)state;
    const struct {
        const char *item;
        size_t bytes;
    } cases[] = {
        {"{'a':{'S':'\xC3\xA4'}}", 3},
        {"{'a':{'N':'123'}}", 4},
        {"{'a':{'N':'0'}}", 2},
        {"{'a':{'N':'-1200'}}", 4},
        {"{'a':{'B':'AAECAw=='}}", 5},
        {"{'a':{'BOOL':true},'b':{'NULL':true}}", 4},
        {"{'a':{'SS':['x','yy']}}", 4},
        {"{'a':{'L':[{'S':'x'}]}}", 6},
        {"{'a':{'M':{'k':{'S':'x'}}}}", 7},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t bytes = sl_item_bytes(json_span(cases[i].item));
        if (bytes != cases[i].bytes)
            fail_msg("%s: %zu bytes, wanted %zu", cases[i].item, bytes, cases[i].bytes);
    }
}

/* The target's own table may be named or not: it is the same item, which a transaction may have once. */
static void a_group_has_an_item_once_however_it_is_named(void **state)
{
    (void)state;
    static const char *const names[] = {NULL, "t", "u"};
    struct sl_table_port *port = open_table("t");
    for (size_t i = 0; i < 9; i++) {
        size_t first = i / 3, second = i % 3;
        bool is_same = (first == 2) == (second == 2);
        struct sl_table_op ops[2] = {{.verb = SL_TABLE_PUT, .group = 1, .key = KEY, .item = KEY},
                                     {.verb = SL_TABLE_DELETE, .group = 1, .key = KEY}};
        struct sl_result results[2];
        ops[0].table = sl_span_str(names[first]);
        ops[1].table = sl_span_str(names[second]);
        port->apply(port, ops, 2, results, &call);
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(results[k].status, is_same ? SL_REJECT : SL_OK);
            assert_int_equal(results[k].not_sent, is_same);
        }
        if (is_same)
            assert_non_null(strstr(results[0].text, "two operations on one item"));
    }
    port->close(port);
}

static void bad_operations_change_nothing(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    const struct sl_table_op ops[] = {
        {.verb = SL_TABLE_GET, .key = SL_LIT("{}")},
        {.verb = SL_TABLE_GET, .key = SL_LIT("[]")},
        {.verb = SL_TABLE_GET, .key = json_span("{'a':{'S':''}}")},
        {.verb = SL_TABLE_GET, .key = json_span("{'a':{'BOOL':true}}")},
        {.verb = SL_TABLE_GET, .key = json_span("{'a':{'N':'x'}}")},
        {.verb = SL_TABLE_GET, .key = KEY, .table = SL_LIT("a b")},
        {.verb = SL_TABLE_PUT, .key = KEY, .item = json_span("{'x':{'S':'y'}}")},
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
    assert_span_is(get(port, KEY), json("{'PK':{'S':'a'},'n':{'N':'100'}}"));
    port->close(port);
}

/* The disk is full (a limit on the file's size): no OK that is not durable, and the old state stays.
 */
static void a_full_disk_is_no_success(void **state)
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
    const char *wanted = json_printf("{'PK':{'S':'a'},'n':{'N':'%d'}}", 1 + WEXITSTATUS(status));
    assert_span_is(get(port, KEY), wanted);
    port->close(port);
}

/* ---- failures of the database: the Nth operation fails, N = 1 until nothing fails ---- */

/* A side table that is made in a transaction that is rolled back is made again. */
static void a_side_table_that_was_rolled_back_is_made_again(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    const struct sl_test never = {SL_PRESENT, SL_LIT("nothing"), {NULL, 0}};
    struct sl_table_op ops[] = {
        {.verb = SL_TABLE_PUT, .group = 1, .table = SL_LIT("side"), .key = KEY, .item = KEY},
        {.verb = SL_TABLE_CHECK, .group = 1, .key = KEY, .tests = &never, .n_tests = 1},
    };
    struct sl_result results[2];
    for (int i = 0; i < 2; i++) {
        port->apply(port, ops, 2, results, &call);
        assert_string_equal(results[0].code, "TransactionCanceled");
        assert_true(results[1].condition_failed);
    }
    port->apply(port, ops, 1, results, &call);
    assert_int_equal(results[0].status, SL_OK);
    port->close(port);
}

static struct sl_set add_one, add_side;

/* One call: an addition in a transaction with its mark in a side table, as exact counters do; a transaction
 * that is refused; a write to another side table. */
static size_t count_once(struct sl_table_port *port, const char *mark, struct sl_result *results)
{
    static const struct sl_test absent = {SL_ABSENT, SL_LIT("PK"), {NULL, 0}};
    static const struct sl_test never = {SL_PRESENT, SL_LIT("nothing"), {NULL, 0}};
    struct sl_span key = sl_span_str(json_printf("{'PK':{'S':'%s'}}", mark));
    struct sl_table_op ops[] = {
        {.verb = SL_TABLE_UPDATE, .group = 1, .key = KEY, .sets = &add_one, .n_sets = 1},
        {.verb = SL_TABLE_PUT,
         .group = 1,
         .table = SL_LIT("marks"),
         .key = key,
         .item = key,
         .tests = &absent,
         .n_tests = 1},
        {.verb = SL_TABLE_PUT, .group = 2, .table = SL_LIT("refused"), .key = KEY, .item = KEY},
        {.verb = SL_TABLE_CHECK, .group = 2, .key = KEY, .tests = &never, .n_tests = 1},
        {.verb = SL_TABLE_UPDATE, .table = SL_LIT("other"), .key = key, .sets = &add_side, .n_sets = 1},
    };
    size_t n = sizeof(ops) / sizeof(ops[0]);
    port->apply(port, ops, n, results, &call);
    return n;
}

/* Whether the answers are those of a whole call; if not, all are failures of the database. */
static bool is_counted(const struct sl_result *r, size_t n)
{
    bool is_whole =
        (r[0].status == SL_OK || r[1].condition_failed) && r[3].condition_failed && r[4].status == SL_OK;
    for (size_t i = 0; i < n && !is_whole; i++)
        if (r[i].status != SL_RETRY && r[i].status != SL_FATAL)
            fail_msg("result %zu: status %d, %s: %s", i, (int)r[i].status, r[i].code, r[i].text);
    return is_whole;
}

static const char *const marks[] = {"one", "two", "three"};

static void fail_each_operation(int code, int expected_at_least)
{
    int n = 1;
    for (bool has_failed = true; has_failed; n++) {
        const char *path = sl_arena_printf(call.arena, "%s/n%d-%d.db", folder, code, n);
        const char *url = sl_arena_printf(call.arena, "sqlite:%s?table=t", path);
        struct sl_table_port *port = NULL;
        struct sl_result results[8];
        sqlite_fault.code = code;
        sqlite_fault.left = n;
        has_failed = false;
        /* A delivery that fails is delivered again, as Lambda does; what said OK is done once. */
        for (int attempt = 0, counted = 0; counted < 3; attempt++) {
            assert_true(attempt < 6);
            if (!port && sl_target_table(&sinks, sl_span_str(url), &port, NULL) != SL_OK)
                continue;
            counted += is_counted(results, count_once(port, marks[counted], results));
        }
        has_failed = sqlite_fault.left == 0;
        sqlite_fault.left = 0;
        assert_span_is(get(port, KEY), json("{'PK':{'S':'a'},'n':{'N':'3'}}"));
        for (int i = 0; i < 3; i++) {
            const char *mark = json_printf("{'PK':{'S':'%s'}}", marks[i]);
            assert_span_is(get_from(port, "marks", sl_span_str(mark)).item, mark);
        }
        assert_null(get_from(port, "refused", KEY).item.ptr);
        port->close(port);
    }
    if (n < expected_at_least)
        fail_msg("only %d operations failed", n);
}

static void every_operation_may_fail(void **state)
{
    (void)state;
    char *disk = folder;
    folder = test_folder_in_memory();
    add_one = (struct sl_set){SL_ADD, SL_LIT("n"), json_span("{'N':'1'}")};
    add_side = (struct sl_set){SL_SET, SL_LIT("n"), json_span("{'N':'1'}")};
    sqlite_fault_begin(false);
    fail_each_operation(SQLITE_IOERR, 50);
    fail_each_operation(SQLITE_FULL, 50);
    sqlite_fault_end();
    sqlite_fault_begin(true);
    fail_each_operation(SQLITE_IOERR, 200);
    sqlite_fault_end();
    sqlite_fault_begin_statements();
    fail_each_operation(SQLITE_AUTH, 50);
    sqlite_fault_end_statements();
    test_folder_remove(folder);
    folder = disk;
}

#define SCANNED 20

/* Reads the table page by page; a page that fails is read again. Returns how many failed. */
static int scan_whole(struct sl_table_port *port)
{
    struct sl_table_scan scan = {.limit = 7};
    struct sl_table_page page;
    int failed = 0, seen = 0;
    do {
        port->scan(port, &scan, 1, &page, &call);
        if (page.result.status != SL_OK) {
            assert_true(page.result.status != SL_REJECT && page.result.text && page.n == 0 && !page.next.ptr);
            assert_true(++failed < 4);
            continue;
        }
        for (size_t i = 0; i < page.n; i++, seen++)
            assert_span_is(page.items[i], json_printf("{'PK':{'S':'%02d'},'n':{'N':'1'}}", seen));
        scan.after = page.next;
    } while (page.result.status != SL_OK || page.next.ptr);
    assert_int_equal(seen, SCANNED);
    return failed;
}

static int describe_whole(struct sl_table_port *port)
{
    struct sl_table_facts facts;
    int failed = 0;
    do {
        port->describe(port, sl_span(NULL, 0), &facts, &call);
        assert_true(facts.result.status == SL_OK ? facts.items == SCANNED && facts.n_keys == 1
                                                 : facts.items == 0 && facts.result.text);
    } while (facts.result.status != SL_OK && ++failed < 4);
    assert_int_equal(facts.result.status, SL_OK);
    return failed;
}

/* A read that fails is said, and never taken for the table's end. */
static void every_operation_of_a_read_may_fail(void **state)
{
    (void)state;
    const char *url = sl_arena_printf(call.arena, "sqlite:%s/scan.db?table=t", folder);
    struct sl_table_port *port = NULL;
    int failed = 0;
    sqlite_fault_begin(true);
    assert_int_equal(sl_target_table(&sinks, sl_span_str(url), &port, NULL), SL_OK);
    for (int i = 0; i < SCANNED; i++) {
        struct sl_table_op op = {.verb = SL_TABLE_PUT,
                                 .key = sl_span_str(json_printf("{'PK':{'S':'%02d'}}", i)),
                                 .item = sl_span_str(json_printf("{'PK':{'S':'%02d'},'n':{'N':'1'}}", i))};
        assert_int_equal(one(port, op).status, SL_OK);
    }
    sqlite_fault.code = SQLITE_IOERR;
    for (int n = 1; n < 60; n++) {
        sqlite_fault.left = n;
        failed += scan_whole(port) + describe_whole(port);
    }
    sqlite_fault.left = 0;
    port->close(port);
    sqlite_fault_end();
    sqlite_fault_begin_statements();
    for (int n = 1; n < 60; n++) { /* each time anew: statements are kept */
        while (sl_target_table(&sinks, sl_span_str(url), &port, NULL) != SL_OK)
            sqlite_fault.left = 0;
        sqlite_fault.left = n;
        (void)(scan_whole(port) + describe_whole(port));
        port->close(port);
    }
    sqlite_fault_end_statements();
    if (failed < 20)
        fail_msg("only %d operations failed", failed);
}

/* A disk of 256 KiB that fills up, has room again, and becomes read-only. In a mount namespace of its own;
 * skipped where that is not allowed. Returns 0, or the number of what is wrong. */
static int use_small_disk(void)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_table_port *port = open_table("t");
    char *filler = sl_arena_zalloc(call.arena, 512 * 1024), *path = NULL;
    if (asprintf(&path, "%s/filler", folder) < 0 || add(port, "1").status != SL_OK)
        return 1;
    int fd = open(path, O_WRONLY | O_CREAT, 0666);
    while (write(fd, filler, 4096) == 4096)
        ;
    struct sl_result result = {.status = SL_OK};
    int oks = 1;
    for (; oks < 1000 && result.status == SL_OK; oks += result.status == SL_OK)
        result = add(port, "1");
    if (result.status != SL_RETRY || strcmp(result.code, "NoSpace") != 0)
        return 2;
    close(fd);
    unlink(path);
    if (add(port, "1").status != SL_OK)
        return 3;
    const char *wanted = json_printf("{'PK':{'S':'a'},'n':{'N':'%d'}}", oks + 1);
    struct sl_span have = get(port, KEY);
    if (!sl_span_is(have, wanted))
        return 4;
    port->close(port);
    if (mount(NULL, folder, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return 77;
    const char *url = sl_arena_printf(call.arena, "sqlite:%s/db/local.db?table=t", folder);
    bool is_refused = sl_target_table(&sinks, sl_span_str(url), &port, &error) == SL_FATAL;
    return is_refused && strstr(error.text, "local.db") ? 0 : 5;
}

static void a_small_disk_fills_up_and_goes_on(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("none", folder, "tmpfs", 0, "size=256k") != 0)
            _exit(77);
        _exit(use_small_disk());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A table of somebody else, a row of somebody else: each says so, and is FATAL. */
static void what_is_not_ours_is_refused_by_name(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    assert_int_equal(add(port, "1").status, SL_OK);
    sqlite3 *db = NULL;
    const char *path = sl_arena_printf(call.arena, "%s/db/local.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, "CREATE TABLE theirs (a, b); UPDATE t SET item = 'nonsense'", NULL, NULL, NULL);
    sqlite3_close(db);
    struct sl_result result = get_from(port, "theirs", KEY);
    assert_int_equal(result.status, SL_FATAL);
    assert_non_null(strstr(result.text, "theirs is not a table that Sluice made"));
    result = add(port, "1");
    assert_int_equal(result.status, SL_FATAL);
    assert_non_null(strstr(result.text, "a row of table t: the item is not JSON"));
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
    struct sl_error error = SL_NO_ERROR;
    const char *url = sl_arena_printf(call.arena, "sqlite:%s?table=t", path);
    assert_int_equal(sl_target_table(&sinks, sl_span_str(url), &port, &error), SL_FATAL);
    assert_non_null(strstr(error.text, "not a database"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(items_keep_their_bytes),
        TEST(keys_are_equal_by_value),
        TEST(sums_are_exact),
        TEST(items_at_the_size_limit_fit),
        TEST(an_item_does_not_grow_beyond_its_limit),
        TEST(a_refusal_outlives_a_failure),
        TEST(sizes_follow_the_formula),
        TEST(a_group_has_an_item_once_however_it_is_named),
        TEST(bad_operations_change_nothing),
        TEST(processes_share_the_file),
        TEST(a_full_disk_is_no_success),
        TEST(a_side_table_that_was_rolled_back_is_made_again),
        TEST(every_operation_may_fail),
        TEST(every_operation_of_a_read_may_fail),
        TEST(a_small_disk_fills_up_and_goes_on),
        TEST(what_is_not_ours_is_refused_by_name),
        TEST(bad_targets_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
