/* `sluice backfill --until`: archives that cannot be restored are refused with the change that is the reason;
 * and a fold that is kept is used again only as it was made, by its user alone. */
#include "tests/support/export.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include "base/disk.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESTORE "backfill --config restore.json --keys PK --temp temp --until 2026-11-20T10:00:30Z "
#define TABLE   "arn:aws:dynamodb:us-east-1:123456789012:table/"
#define ARN(t)  ",'eventSourceARN':'" TABLE t "/stream/2026-01-01T00:00:00.000'"
#define CHANGE(event, key, number, time, images, arn)                                                        \
    "{'eventID':'e','eventName':'" event "','dynamodb':{'ApproximateCreationDateTime':" time                 \
    ",'Keys':{'PK':{'S':'" key "'}}" images ",'SequenceNumber':'" number "'}" arn "}"
#define NEW(v) ",'NewImage':{'PK':{'S':'a'},'v':{'N':'" v "'}}"
#define OLD(v) ",'OldImage':{'PK':{'S':'a'},'v':{'N':'" v "'}}"
#define GOOD   CHANGE("INSERT", "a", "100", "1795168800", NEW("1"), ARN("orders"))

static int set_up(void **state)
{
    struct verbs *v = verbs_new();
    *state = v;
    verb_write(v, "restore.json",
               "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':[{'name':'one',"
               "'handler':'replicate','to':'sqlite:out.db?table=one','guard':'none'},{'name':'two','handler':"
               "'replicate','to':'sqlite:out.db?table=two','guard':'none'}]}");
    return 0;
}

static int tear_down(void **state)
{
    verbs_destroy(*state);
    return 0;
}

static const char *path_of(struct verbs *v, const char *name)
{
    return json_printf("%s/%s", verbs_folder(v), name);
}

static void write_archive(struct verbs *v, const char *folder, const char *text)
{
    assert_int_equal(sl_disk_make_folder(path_of(v, folder), NULL), SL_OK);
    verb_write(v, json_printf("%s/a.jsonl", folder), text);
}

static char *write_base(struct verbs *v, const char *arn, const char *time)
{
    const struct test_export_file file = {"a.json", json_span("{'Item':{'PK':{'S':'a'},'v':{'N':'1'}}}\n")};
    return test_export_write(&(struct test_export){.files = &file, .n = 1, .time = time, .table_arn = arn},
                             verbs_folder(v));
}

static void an_archive_that_cannot_be_restored_is_refused(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *text, *why; /* NULL: it can be */
    } cases[] = {
        {GOOD "\n", NULL},
        {GOOD "\n" CHANGE("MODIFY", "a", "101", "1795168801", NEW("2") OLD("1.0"), ARN("orders")) "\n", NULL},
        {GOOD "\n" CHANGE("MODIFY", "a", "101", "1795168801", NEW("3") OLD("2"), ARN("orders")) "\n",
         "changes are missing: the change 101 of the item whose key has the SHA-256"},
        {GOOD "\n" CHANGE("INSERT", "b", "102", "1795168801", NEW("1"), ARN("other")) "\n",
         "holds the tables orders and other: restore from the objects of one table"},
        {CHANGE("INSERT", "a", "100", "0", NEW("1"), ARN("orders")) "\n",
         "the change 100 does not say when it happened"},
        {"{'eventID':'e','eventName':'INSERT','dynamodb':{'ApproximateCreationDateTime':1795168800,'Keys':{'"
         "PK':"
         "{'S':'a'}}" NEW("1") "}}\n",
         "is not in the archive's format \"record\""},
        {CHANGE("INSERT", "a", "1234567890123456789012345678901234567890123456789", "1795168800", NEW("1"),
                "") "\n",
         "has no sequence number"},
        {CHANGE("MODIFY", "a", "100", "1795168800", OLD("1"), ARN("orders")) "\n",
         "the change 100 has no new image: an archive of a stream with KEYS_ONLY or OLD_IMAGE"},
        {"nonsense\n", "a.jsonl: "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_archive(v, "archive", cases[i].text);
        verb_assert(v, verb(v, RESTORE "--plan --archive archive"), cases[i].why ? 2 : 0,
                    cases[i].why ? cases[i].why : "nothing was written");
    }
    /* A record may have line feeds in it. */
    write_archive(v, "archive",
                  "{'eventID':'e','eventName':'INSERT','dynamodb':{\n'Keys':{\n'PK':{'S':'a'}},\n"
                  "'ApproximateCreationDateTime':1795168800,'NewImage':{\r\n'PK':\r{'S':'a'}},\n"
                  "'SequenceNumber':'100'}" ARN("orders") "\n}\n");
    verb_assert(v, verb(v, RESTORE "--archive archive"), 0, "route one          1 written");
}

static void a_base_is_of_the_same_table_and_time(void **state)
{
    struct verbs *v = *state;
    char *base = write_base(v, TABLE "orders", "2026-11-20T10:00:00.000Z");
    write_archive(v, "archive", GOOD "\n");
    write_archive(v, "other", CHANGE("INSERT", "b", "100", "1795168800", NEW("1"), ARN("other")) "\n");
    write_archive(v, "late", CHANGE("INSERT", "b", "100", "1795168810", NEW("1"), ARN("orders")) "\n");
    write_archive(v, "gap",
                  GOOD
                  "\n" CHANGE("MODIFY", "a", "102", "1795168802", NEW("3") OLD("2"), ARN("orders")) "\n");
    static const struct {
        const char *flags, *why; /* NULL: it can be */
    } cases[] = {
        {"--archive archive", NULL},
        {"--archive other", "holds the tables orders and other"},
        {"--archive late",
         "late: begins at 2026-11-20T10:00:10.000Z, and the base shows the table as it was at"},
        {"--archive late --consumer-since 2026-11-20T10:00:00Z", NULL},
        {"--archive late --consumer-since 2026-11-20T10:00:01Z", "begins at 2026-11-20T10:00:01.000Z"},
        {"--archive late --unsafe-order", NULL},
        {"--archive gap", "than the change before it left"},
        {"--archive gap --unsafe-order", NULL},
        {"--until 2026-11-20T10:00:00Z --archive archive", NULL},
        {"--until 2026-11-20T09:59:59Z --archive archive",
         "which is after 2026-11-20T09:59:59.000Z: take an older"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        verb_assert(v, verb(v, RESTORE "--plan --export %s %s", base, cases[i].flags), cases[i].why ? 2 : 0,
                    cases[i].why ? cases[i].why : "nothing was written");
    free(base);
    /* Without a single change it is not known when the archive begins. */
    base = write_base(v, TABLE "orders", "2026-11-20T10:00:00.000Z");
    write_archive(v, "empty", "\n");
    verb_assert(v, verb(v, RESTORE "--plan --export %s --archive empty", base), 2, "");
    free(base);
}

/* The folder that the plan has kept. */
static char *kept_folder(struct verbs *v)
{
    DIR *dir = opendir(path_of(v, "temp"));
    char *path = NULL;
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (strncmp(entry->d_name, "sluice-restore-", 15) == 0)
            path = strdup(path_of(v, json_printf("temp/%s", entry->d_name)));
    closedir(dir);
    assert_non_null(path);
    return path;
}

static void a_fold_is_used_as_it_was_made(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *file, *text; /* text NULL: it is gone */
        const char *why;
    } cases[] = {
        {"seal", NULL, "was not made to its end; the archive is folded again"},
        {"seal", "a b c", "was not made to its end"},
        {"seal", "a b 1", "was changed since"},
        {"items.jsonl", "{}", "was changed since"},
        {"items.jsonl", NULL, "the archive's changes are from"},
    };
    write_archive(v, "archive", GOOD "\n");
    verb_assert(v, verb(v, RESTORE "--plan --archive archive"), 0, "the items are kept for the run in temp/");
    char *folder = kept_folder(v);
    struct stat info;
    assert_int_equal(stat(folder, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = json_printf("%s/%s", folder, cases[i].file);
        verb_assert(v, verb(v, RESTORE "--plan --archive archive"), 0, "was folded before");
        assert_int_equal(access(path, F_OK), 0);
        if (cases[i].text)
            test_write(path, cases[i].text);
        else
            unlink(path);
        verb_assert(v, verb(v, RESTORE "--plan --archive archive"), 0, cases[i].why);
    }
    /* More changes in the archive. */
    verb_write(v, "archive/b.jsonl",
               CHANGE("INSERT", "b", "101", "1795168801", NEW("1"), ARN("orders")) "\n");
    verb_assert(v, verb(v, RESTORE "--plan --archive archive"), 0, "is of other objects than the archive");
    /* The same place under another name is the same archive. */
    verb_assert(v, verb(v, RESTORE "--plan --archive file:archive"), 0, "was folded before");
    verb_assert(v, verb(v, RESTORE "--plan --archive %s", path_of(v, "archive")), 0, "was folded before");
    free(folder);
}

/* Others may have changed what is in it. */
static void a_folder_of_others_is_not_used(void **state)
{
    struct verbs *v = *state;
    write_archive(v, "archive", GOOD "\n");
    verb_assert(v, verb(v, RESTORE "--plan --archive archive"), 0, "");
    char *folder = kept_folder(v);
    const char *wanted = "is there, and is no folder of this user alone (mode 0700)";
    assert_int_equal(chmod(folder, 0710), 0);
    verb_assert(v, verb(v, RESTORE "--archive archive"), 2, wanted);
    assert_int_equal(chown(folder, geteuid() == 0 ? 12345 : geteuid(), (gid_t)-1), 0);
    assert_int_equal(chmod(folder, geteuid() == 0 ? 0700 : 0701), 0);
    verb_assert(v, verb(v, RESTORE "--archive archive"), 2, wanted);
    test_folder_remove(strdup(folder));
    test_write(folder, "");
    verb_assert(v, verb(v, RESTORE "--archive archive"), 2, wanted);
    assert_int_equal(unlink(folder), 0);
    assert_int_equal(symlink(path_of(v, "archive"), folder), 0);
    verb_assert(v, verb(v, RESTORE "--archive archive"), 2, wanted);
    assert_int_equal(unlink(folder), 0);
    free(folder);
    char name[3600];
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    verb_assert(v, verb(v, RESTORE "--temp %s --archive archive", name), 2,
                "--temp: the path is longer than 3,500 bytes");
}

/* Each target has to be empty, and is looked at before the archive is read. */
static void no_target_may_hold_rows(void **state)
{
    struct verbs *v = *state;
    write_archive(v, "archive", GOOD "\n");
    verb_assert(v, verb(v, RESTORE "--routes two --archive archive"), 0, "route two          1 written");
    verb_assert(v, verb(v, RESTORE "--routes one --archive archive"), 0, "route one          1 written");
    verb_assert(v, verb(v, RESTORE "--archive archive"), 2, "the table of the route one is not empty");
    verb_assert(v, verb(v, RESTORE "--routes two --archive archive"), 2,
                "the table of the route two is not empty");
    assert_non_null(strstr(verb_err(v), "restore into a new table, then compare or switch"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_archive_that_cannot_be_restored_is_refused),
        TEST(a_base_is_of_the_same_table_and_time),
        TEST(a_fold_is_used_as_it_was_made),
        TEST(a_folder_of_others_is_not_used),
        TEST(no_target_may_hold_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
