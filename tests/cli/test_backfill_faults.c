/* Whatever the system refuses to `sluice backfill`, at whatever moment: it ends with everything written, or
 * it says what failed, and the same command then writes what is missing, once. */
#include "tests/support/disk_fault.h"
#include "tests/support/export.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include "base/disk.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define UNTIL "2026-11-20T10:00:30Z"
#define SINCE " --consumer-since 2026-11-19T05:00:00Z"

static char *path_of(struct verbs *v, const char *name)
{
    static char path[1000];
    snprintf(path, sizeof(path), "%s/%s", verbs_folder(v), name);
    return path;
}

static void fresh(struct verbs *v)
{
    static const char *const names[] = {"out.db", "out.db-wal", "out.db-shm", "cp", "parked.jsonl"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(path_of(v, names[i]));
    char *temp = strdup(path_of(v, "temp"));
    test_folder_remove(temp);
    assert_int_equal(sl_disk_make_folder(path_of(v, "temp"), NULL), SL_OK);
}

/* What `sql` selects from out.db, a line for each row. */
static char *rows(struct verbs *v, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *query = NULL;
    char *out = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&out, &len);
    assert_int_equal(sqlite3_open(path_of(v, "out.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &query, NULL), SQLITE_OK);
    while (sqlite3_step(query) == SQLITE_ROW)
        fprintf(file, "%s\n", sqlite3_column_text(query, 0));
    fclose(file);
    sqlite3_finalize(query);
    sqlite3_close(db);
    return out;
}

struct sweep {
    const char *line, *sql, *wanted;
};

static void assert_rows(struct verbs *v, const struct sweep *s, const char *what, int n)
{
    char *have = rows(v, s->sql);
    if (strcmp(have, s->wanted) != 0)
        fail_msg("%s %d: %s\nand should be %s", what, n, have, s->wanted);
    free(have);
}

/* No file may have more than so many bytes, until a run needs no more. */
static void assert_each_limit_is_survived(struct verbs *v, const struct sweep *s)
{
    struct rlimit before, limit;
    int status = 1;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (unsigned n = 0; status != 0; n += n < 1200 ? 150 : n / 3) {
        fresh(v);
        limit = (struct rlimit){.rlim_cur = n, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        status = verb(v, "%s", s->line);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        if (status != 0)
            verb_assert(v, verb(v, "%s", s->line), 0, "");
        assert_rows(v, s, "at most", (int)n);
    }
    signal(SIGXFSZ, SIG_DFL);
}

/* One refusal of the system after the other, until a run meets none. */
static void assert_each_refusal_is_survived(struct verbs *v, const struct sweep *s)
{
    for (int n = 1;; n++) {
        fresh(v);
        verb_fault(v, n, n % 2 ? ENOSPC : EIO, NULL);
        int status = verb(v, "%s", s->line);
        bool has_come = disk_fault_came();
        if (status != 0) {
            assert_true(has_come && (status == 1 || status == 2));
            verb_assert(v, status, status, "sluice backfill: ");
            assert_true(strlen(verb_err(v)) > 40);
            verb_assert(v, verb(v, "%s", s->line), 0, "");
        }
        assert_rows(v, s, disk_fault->came, n);
        if (!has_come)
            return;
    }
}

static void an_item_is_counted_once_whatever_fails(void **state)
{
    struct verbs *v = *state;
    char *lines = test_export_lines(1, 12, 60);
    const struct test_export_file files[] = {{"a.json.gz", sl_span_str(lines)}, {"b.json", SL_LIT("")}};
    char *export = test_export_write(&(struct test_export){.files = files, .n = 2}, verbs_folder(v));
    verb_write(v, "sluice.json",
               "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':["
               "{'name':'totals','handler':'aggregate','to':'sqlite:out.db?table=totals','counters':[{'key':{"
               "'PK':'ALL'},'add':{'n':1}}]}]}");
    const struct sweep sweep = {
        .line = json_printf("backfill --keys PK,SK --checkpoint cp --export %s" SINCE, export),
        .sql = "SELECT json_extract(item, '$.n.N') FROM totals WHERE key LIKE '%ALL%'",
        .wanted = "12\n"};
    assert_each_refusal_is_survived(v, &sweep);
    assert_each_limit_is_survived(v, &sweep);
    free(export);
    free(lines);
}

/* Changes of two items, and the table that they continue. */
static char *write_archive(struct verbs *v)
{
    static const char change[] =
        "{'eventID':'e%d','eventName':'MODIFY','dynamodb':{'ApproximateCreationDateTime':%d,'Keys':{'PK':{"
        "'S':'i%d'}},'NewImage':{'PK':{'S':'i%d'},'v':{'N':'%d'}},'OldImage':{'PK':{'S':'i%d'},'v':{'N':'%d'}"
        "},'SequenceNumber':'%d'},'eventSourceARN':'" TEST_EXPORT_ARN "/stream/2026-01-01T00:00:00.000'}\n";
    char text[8000];
    size_t len = 0;
    for (int i = 0; i < 8; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s",
                                json_printf(change, i, 1795168800 + 5 * i, i % 2, i % 2, i, i % 2,
                                            i < 2 ? 100 : i - 2, 1000 + i));
    assert_int_equal(sl_disk_make_folder(path_of(v, "archive"), NULL), SL_OK);
    test_write(path_of(v, "archive/a.jsonl"), text);
    const char *lines = json("{'Item':{'PK':{'S':'i0'},'v':{'N':'100'}}}\n"
                             "{'Item':{'PK':{'S':'i1'},'v':{'N':'100'}}}\n"
                             "{'Item':{'PK':{'S':'i2'},'v':{'N':'7'}}}\n");
    const struct test_export_file file = {"a.json", sl_span_str(lines)};
    return test_export_write(
        &(struct test_export){.files = &file, .n = 1, .time = "2026-11-20T10:00:00.000Z"}, verbs_folder(v));
}

static const char restore_json[] =
    "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':[{'name':'restored',"
    "'handler':'replicate','to':'sqlite:out.db?table=restored','guard':'none'}]}";

static void a_table_is_restored_whatever_fails(void **state)
{
    struct verbs *v = *state;
    char *export = write_archive(v);
    verb_write(v, "sluice.json", restore_json);
    const struct sweep sweep = {
        .line = json_printf("backfill --keys PK --temp temp --checkpoint cp --archive archive --export %s "
                            "--until " UNTIL,
                            export),
        .sql = "SELECT json_extract(item, '$.PK.S') || ' ' || json_extract(item, '$.v.N') FROM restored "
               "ORDER BY 1",
        .wanted = "i0 4\ni1 5\ni2 7\n"};
    assert_each_refusal_is_survived(v, &sweep);
    assert_each_limit_is_survived(v, &sweep);
    free(export);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static int set_up(void **state)
{
    *state = verbs_new();
    disk_fault->skips_sleep = true;
    return 0;
}

static int tear_down(void **state)
{
    disk_fault->skips_sleep = false;
    verbs_destroy(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_item_is_counted_once_whatever_fails),
        TEST(a_table_is_restored_whatever_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
