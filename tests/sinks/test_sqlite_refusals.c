/* Databases that are locked, damaged, somebody else's or not there: what the local table says of them. */
#include "tests/support/test.h"

#include "sinks/sqlite.h"
#include "sinks/sqlite/sqlite_private.h"
#include "sinks/table.h"
#include "tests/support/sqlite_fault.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

static struct sl_sinks sinks;
static struct sl_call call;
static struct sl_clock_virtual clock_;
static char *folder;
static const char *path;
static sqlite3 *other; /* another program's connection */
static int sleeps, sleeps_until_end;

static void execute(const char *sql)
{
    char *message = NULL;
    if (!other)
        assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    if (sqlite3_exec(other, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
}

static void disconnect(void)
{
    sqlite3_close(other);
    other = NULL;
}

static void sleep_and_maybe_end(struct sl_clock *clock, int64_t ms)
{
    ((struct sl_clock_virtual *)clock)->ms += ms;
    if (++sleeps == sleeps_until_end)
        execute("COMMIT");
}

static int set_up(void **state)
{
    (void)state;
    folder = test_folder_in_memory();
    call = (struct sl_call){sl_arena_new(4096), INT64_MAX};
    path = sl_arena_printf(call.arena, "%s/t.db", folder);
    sl_clock_virtual_init(&clock_, 0, 1);
    clock_.clock.sleep_ms = sleep_and_maybe_end;
    sleeps = sleeps_until_end = 0;
    sl_sinks_init(&sinks, &clock_.clock, NULL, &(struct sl_vars){.list = NULL});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    disconnect();
    sl_sinks_clean_up(&sinks);
    sl_arena_destroy(call.arena);
    test_folder_remove(folder);
    return 0;
}

static struct sl_span target(const char *table)
{
    return sl_span_str(sl_arena_printf(call.arena, "sqlite:%s?table=%s", path, table));
}

static struct sl_table_port *open_table(const char *table)
{
    struct sl_table_port *port = NULL;
    struct sl_error error = SL_NO_ERROR;
    if (sl_sqlite_open(&sinks, target(table), &port, &error) != SL_OK)
        fail_msg("%s", error.text);
    return port;
}

static void assert_says(const struct sl_result *result, enum sl_status status, const char *code,
                        const char *text)
{
    if (result->status != status || (code && strcmp(result->code, code) != 0) || !strstr(result->text, text))
        fail_msg("%d %s: %s, not \"%s\"", (int)result->status, result->code, result->text, text);
}

#define KEY json_span("{'PK':{'S':'a'}}")

static struct sl_result apply(struct sl_table_port *port, enum sl_table_verb verb, const char *table)
{
    const struct sl_table_op op = {
        .verb = verb,
        .key = KEY,
        .item = verb == SL_TABLE_PUT ? KEY : sl_span(NULL, 0),
        .table = table ? sl_span_str(table) : sl_span(NULL, 0),
    };
    struct sl_result result;
    port->apply(port, &op, 1, &result, &call);
    return result;
}

static struct sl_table_page scan(struct sl_table_port *port, const char *table)
{
    const struct sl_table_scan asked = {.table = table ? sl_span_str(table) : sl_span(NULL, 0)};
    struct sl_table_page page;
    port->scan(port, &asked, 1, &page, &call);
    return page;
}

static struct sl_table_facts describe(struct sl_table_port *port, const char *table)
{
    struct sl_table_facts facts;
    port->describe(port, table ? sl_span_str(table) : sl_span(NULL, 0), &facts, &call);
    return facts;
}

/* Every way of using the table fails like this, and gives nothing. */
static void assert_unusable(struct sl_table_port *port, const char *table, const char *text)
{
    struct sl_result got = apply(port, SL_TABLE_GET, table);
    assert_says(&got, SL_FATAL, "DatabaseError", text);
    assert_null(got.item.ptr);
    struct sl_table_page page = scan(port, table);
    assert_says(&page.result, SL_FATAL, "DatabaseError", text);
    assert_true(page.n == 0 && !page.next.ptr);
    struct sl_table_facts facts = describe(port, table);
    assert_says(&facts.result, SL_FATAL, "DatabaseError", text);
    assert_true(facts.items == 0 && facts.n_keys == 0 && facts.bytes == 0);
}

/* ---- locked ---- */

static int64_t real_ms(void)
{
    return sl_clock_system()->now_ms(sl_clock_system());
}

/* Another writer is waited for until the deadline, and reads go on. */
static void a_writer_is_waited_for_until_the_deadline(void **state)
{
    (void)state;
    static const int deadlines[] = {-5, 0, 60};
    struct sl_table_port *port = open_table("t");
    struct sl_result result = apply(port, SL_TABLE_PUT, NULL);
    assert_int_equal(result.status, SL_OK);
    for (size_t i = 0; i < 3; i++) {
        execute("BEGIN IMMEDIATE");
        int64_t began = real_ms();
        call.deadline_ms = clock_.ms + deadlines[i];
        result = apply(port, SL_TABLE_DELETE, NULL);
        assert_says(&result, SL_RETRY, "Busy", "t.db: database is locked");
        assert_in_range(real_ms() - began, deadlines[i] < 0 ? 0 : deadlines[i], SL_SQLITE_BUSY_MS - 1);
        assert_int_equal(scan(port, NULL).n, 1);
        assert_int_equal(describe(port, NULL).items, 1);
        execute("COMMIT");
        assert_int_equal(apply(port, SL_TABLE_GET, NULL).status, SL_OK);
    }
    port->close(port);
}

/* A file of another program's that has no write-ahead log yet, and that it is writing. */
static void opening_waits_for_a_writer(void **state)
{
    (void)state;
    struct sl_table_port *port = NULL;
    struct sl_error error = SL_NO_ERROR;
    execute("CREATE TABLE theirs (a)");
    execute("BEGIN IMMEDIATE");
    assert_int_equal(sl_sqlite_open(&sinks, target("t"), &port, &error), SL_FATAL);
    assert_non_null(strstr(error.text, "cannot open"));
    assert_non_null(strstr(error.text, "t.db: database is locked"));
    assert_in_range(clock_.ms, 10000, 10010);
    assert_null(port);
    sleeps_until_end = sleeps + 3;
    port = open_table("t");
    assert_int_equal(sleeps, sleeps_until_end);
    assert_int_equal(apply(port, SL_TABLE_PUT, NULL).status, SL_OK);
    port->close(port);
}

/* ---- damaged ---- */

static void spoil(off_t from, off_t to)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    for (off_t at = from; at < to; at++)
        assert_int_equal(pwrite(fd, "\xA5", 1, at), 1);
    close(fd);
}

static void a_damaged_file_is_said(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    assert_int_equal(apply(port, SL_TABLE_PUT, NULL).status, SL_OK);
    port->close(port);
    spoil(4096, 8192); /* the first page holds the tables' names, the second the table */
    port = open_table("t");
    assert_unusable(port, NULL, "malformed");
    struct sl_result result = apply(port, SL_TABLE_PUT, NULL);
    assert_says(&result, SL_FATAL, "DatabaseError", "malformed");
    port->close(port);
    spoil(0, 4096);
    for (int to_read = 0; to_read < 2; to_read++) {
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(
            (to_read ? sl_sqlite_open_to_read : sl_sqlite_open)(&sinks, target("t"), &port, &error),
            SL_FATAL);
        assert_non_null(strstr(error.text, "cannot open"));
        assert_non_null(strstr(error.text, "t.db: file is not a database"));
    }
}

/* ---- somebody else's ---- */

static void tables_of_others_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const made[] = {
        "CREATE TABLE theirs (a, b)",
        "CREATE TABLE theirs (key TEXT PRIMARY KEY, a)",
        "CREATE TABLE theirs (item TEXT)",
        "CREATE TABLE theirs (key TEXT PRIMARY KEY, item TEXT, third TEXT)",
        "CREATE VIEW theirs AS SELECT key, item FROM t",
        "CREATE INDEX theirs ON t (item)",
    };
    struct sl_table_port *port = open_table("t"), *none = NULL;
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        static const char text[] = "theirs is not a table that Sluice made";
        execute(made[i]);
        assert_unusable(port, "theirs", text);
        assert_int_equal(apply(port, SL_TABLE_PUT, NULL).status, SL_OK);
        assert_int_equal(sl_sqlite_open(&sinks, target("theirs"), &none, &error), SL_FATAL);
        assert_non_null(strstr(error.text, text));
        execute(strstr(made[i], "VIEW")    ? "DROP VIEW theirs"
                : strstr(made[i], "INDEX") ? "DROP INDEX theirs"
                                           : "DROP TABLE theirs");
    }
    port->close(port);
}

/* A row without an item, as another program may write it, will not become one by waiting. */
static void rows_of_others_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const items[] = {"NULL", "''", "'nonsense'", "'[]'"};
    execute("CREATE TABLE t (key TEXT PRIMARY KEY, item TEXT) WITHOUT ROWID");
    struct sl_table_port *port = open_table("t");
    assert_int_equal(apply(port, SL_TABLE_PUT, NULL).status, SL_OK);
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        execute(sl_arena_printf(call.arena, "UPDATE t SET item = %s", items[i]));
        assert_unusable(port, NULL, "t.db: a row of table t: ");
        struct sl_result result = apply(port, SL_TABLE_UPDATE, NULL);
        assert_says(&result, SL_FATAL, "DatabaseError", "a row of table t: ");
    }
    port->close(port);
}

/* ---- not there ---- */

static void assert_empty(struct sl_table_port *port, const char *table)
{
    struct sl_result got = apply(port, SL_TABLE_GET, table);
    assert_true(got.status == SL_OK && !got.item.ptr);
    struct sl_table_page page = scan(port, table);
    assert_true(page.result.status == SL_OK && page.n == 0 && !page.next.ptr);
    struct sl_table_facts facts = describe(port, table);
    assert_true(facts.result.status == SL_OK && facts.items == 0 && facts.n_keys == 0);
}

/* Reading creates nothing; a table that comes later is found. */
static void reading_creates_nothing(void **state)
{
    (void)state;
    struct sl_table_port *reader = NULL, *writer;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_sqlite_open_to_read(&sinks, target("t"), &reader, &error), SL_REJECT);
    assert_string_equal(error.code, "NoTable");
    assert_non_null(strstr(error.text, "t.db: there is no such file"));
    assert_int_not_equal(access(path, F_OK), 0);
    writer = open_table("t");
    error = (struct sl_error)SL_NO_ERROR;
    assert_int_equal(sl_sqlite_open_to_read(&sinks, target("none"), &reader, &error), SL_REJECT);
    assert_string_equal(error.code, "NoTable");
    assert_non_null(strstr(error.text, "t.db: there is no table \"none\" in it"));
    assert_int_equal(sl_sqlite_open_to_read(&sinks, target("t"), &reader, NULL), SL_OK);
    assert_empty(reader, NULL);
    assert_empty(reader, "later");
    struct sl_result result = apply(reader, SL_TABLE_PUT, "later");
    assert_true(result.status != SL_OK && result.text);
    assert_int_equal(apply(writer, SL_TABLE_PUT, "later").status, SL_OK);
    assert_span_is(apply(reader, SL_TABLE_GET, "later").item, json("{'PK':{'S':'a'}}"));
    assert_int_equal(scan(reader, "later").n, 1);
    struct sl_table_facts facts = describe(reader, "later");
    assert_true(facts.items == 1 && facts.n_keys == 1 && sl_span_is(facts.keys[0].name, "PK"));
    reader->close(reader);
    writer->close(writer);
}

/* What cannot be read is never taken for what is not there. */
static void every_operation_of_a_reader_may_fail(void **state)
{
    (void)state;
    struct sl_table_port *port = open_table("t");
    assert_int_equal(apply(port, SL_TABLE_PUT, NULL).status, SL_OK);
    assert_int_equal(apply(port, SL_TABLE_PUT, "side").status, SL_OK);
    sqlite_fault_begin(true);
    sqlite_fault.code = SQLITE_IOERR;
    int n = 0, failed = 0;
    do {
        struct sl_table_port *reader = NULL;
        struct sl_error error = SL_NO_ERROR;
        sqlite_fault.left = ++n;
        if (sl_sqlite_open_to_read(&sinks, target("t"), &reader, &error) != SL_OK) {
            assert_int_equal(error.status, SL_FATAL);
            assert_non_null(strstr(error.text, "cannot open"));
            failed++;
            continue;
        }
        struct sl_table_page page = scan(reader, "side");
        assert_int_equal(page.n, page.result.status == SL_OK);
        struct sl_table_facts facts = describe(reader, "side");
        assert_int_equal(facts.items, facts.result.status == SL_OK);
        struct sl_result got = apply(reader, SL_TABLE_GET, "side");
        assert_int_equal(got.item.len > 0, got.status == SL_OK);
        failed += page.result.status != SL_OK || facts.result.status != SL_OK || got.status != SL_OK;
        reader->close(reader);
    } while (sqlite_fault.left == 0);
    sqlite_fault_end();
    assert_in_range(failed, 20, n);
    port->close(port);
}

/* Only a file that is not there is said to be that. */
static void what_cannot_be_opened_is_not_absent(void **state)
{
    (void)state;
    struct sl_table_port *port = NULL;
    struct sl_error error = SL_NO_ERROR;
    const char *file = path;
    path = folder;
    assert_int_equal(sl_sqlite_open_to_read(&sinks, target("t"), &port, &error), SL_FATAL);
    assert_non_null(strstr(error.text, "unable to open database file"));
    test_write(file, "");
    path = sl_arena_printf(call.arena, "%s/below", file);
    error = (struct sl_error)SL_NO_ERROR;
    assert_int_equal(sl_sqlite_open_to_read(&sinks, target("t"), &port, &error), SL_FATAL);
    path = file;
    error = (struct sl_error)SL_NO_ERROR;
    assert_int_equal(sl_sqlite_open_to_read(&sinks, target("t"), &port, &error), SL_REJECT);
    assert_string_equal(error.code, "NoTable");
}

static void names_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"a b", "a\"b", ""};
    struct sl_table_port *port = open_table("t");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct sl_result results[] = {apply(port, SL_TABLE_GET, names[i]), scan(port, names[i]).result,
                                      describe(port, names[i]).result};
        for (size_t k = 0; k < 3; k++) {
            assert_says(&results[k], SL_REJECT, "ValidationException", "is not a table name");
            assert_true(results[k].not_sent);
        }
    }
    port->close(port);
}

/* ---- what a failure means ---- */

static void some_failures_are_tried_again(void **state)
{
    (void)state;
    static const struct {
        int sqlite;
        enum sl_status status;
        const char *code;
    } cases[] = {
        {SQLITE_IOERR, SL_RETRY, "DatabaseError"},    {SQLITE_FULL, SL_RETRY, "NoSpace"},
        {SQLITE_PROTOCOL, SL_RETRY, "DatabaseError"}, {SQLITE_PERM, SL_FATAL, "DatabaseError"},
        {SQLITE_READONLY, SL_FATAL, "DatabaseError"}, {SQLITE_CORRUPT, SL_FATAL, "DatabaseError"},
        {SQLITE_CANTOPEN, SL_FATAL, "DatabaseError"}, {SQLITE_NOTADB, SL_FATAL, "DatabaseError"},
        {SQLITE_AUTH, SL_FATAL, "DatabaseError"},     {SQLITE_TOOBIG, SL_FATAL, "DatabaseError"},
    };
    sqlite_fault_begin(false);
    struct sl_table_port *port = open_table("t");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int n = 1; n <= 3; n++) {
            sqlite_fault.code = cases[i].sqlite;
            sqlite_fault.left = n;
            struct sl_result result = apply(port, SL_TABLE_PUT, NULL);
            sqlite_fault.left = 0;
            assert_says(&result, cases[i].status, cases[i].code, "t.db: ");
            assert_int_equal(apply(port, SL_TABLE_PUT, NULL).status, SL_OK);
        }
    port->close(port);
    sqlite_fault_end();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_writer_is_waited_for_until_the_deadline),
        TEST(opening_waits_for_a_writer),
        TEST(a_damaged_file_is_said),
        TEST(tables_of_others_are_refused_by_name),
        TEST(rows_of_others_are_refused_by_name),
        TEST(reading_creates_nothing),
        TEST(every_operation_of_a_reader_may_fail),
        TEST(what_cannot_be_opened_is_not_absent),
        TEST(names_that_are_none_are_refused),
        TEST(some_failures_are_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
