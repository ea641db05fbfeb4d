/* `sluice manifest`: what it writes is what a naive fold of the archive's lines says, whatever the objects
 * are, with the counts and checksums that readers check; what is no archive is refused; and a disk that fails
 * at any moment leaves nothing that a second run does not set right. */
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/gzip.h"
#include "base/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARN     "arn:aws:dynamodb:eu-west-1:123456789012:table/orders"
#define FLAGS   "manifest --bucket b --s3-prefix a/b --table-arn " ARN
#define ITEMS   25
#define CHANGES 200
#define SECOND  1795168800 /* 2026-11-20T10:00:00Z */

static uint64_t seed;

static uint64_t draw(uint64_t n)
{
    return sl_random_step(&seed) % n;
}

static char *path_of(struct verbs *v, const char *name)
{
    static char path[2000];
    snprintf(path, sizeof(path), "%s/%s", verbs_folder(v), name);
    return path;
}

static void make_folder(struct verbs *v, const char *name)
{
    assert_int_equal(sl_disk_make_folder(path_of(v, name), NULL), SL_OK);
}

/* ---- an archive of random changes, and what its items were and are ---- */

struct world {
    bool has_old; /* images */
    struct {
        int first, last; /* values before the first change and after the last one, -1: not there */
        bool is_changed;
    } items[ITEMS];
    char *lines[CHANGES];
};

static const char *image(const char *name, size_t item, int value)
{
    return value < 0 ? "" : json_printf(",'%s':{'PK':{'S':'i%zu'},'v':{'N':'%d'}}", name, item, value);
}

/* Sequence numbers get a digit more on the way; half of the items are there at the beginning. */
static void make_world(struct world *w, uint64_t with_seed, bool has_old)
{
    seed = with_seed;
    *w = (struct world){.has_old = has_old};
    for (size_t i = 0; i < ITEMS; i++)
        w->items[i].first = w->items[i].last = i % 2 ? (int)draw(1000) : -1;
    for (size_t i = 0; i < CHANGES; i++) {
        size_t item = draw(ITEMS);
        int before = w->items[item].last, after = before >= 0 && draw(2) ? -1 : (int)draw(1000);
        w->lines[i] = strdup(json_printf(
            "{'Metadata':{'WriteTimestampMicros':{'N':'%llu'},'SequenceNumber':{'S':'%s%zu'}},'Keys':{'PK':{"
            "'S':'i%zu'}}%s%s}\n",
            (SECOND + i / 10) * 1000000ull + i, draw(2) ? "000" : "", i + 900, item,
            image("NewImage", item, after), has_old ? image("OldImage", item, before) : ""));
        w->items[item].last = after;
        w->items[item].is_changed = true;
    }
}

static void world_clean_up(struct world *w)
{
    for (size_t i = 0; i < CHANGES; i++)
        free(w->lines[i]);
}

static void write_object(struct verbs *v, const char *name, const char *text, bool is_packed)
{
    struct sl_buffer out;
    struct sl_span part = sl_span_str(text);
    if (!is_packed) {
        test_write(path_of(v, name), text);
        return;
    }
    sl_buffer_init(&out, 1 << 20);
    sl_gzip_add(&out, &part, 1, 1);
    assert_int_equal(sl_disk_replace_path(path_of(v, name), sl_buffer_span(&out)), 0);
    sl_buffer_clean_up(&out);
}

/* Lines in any order, in objects of any size, some of them twice. */
static void write_world(struct verbs *v, struct world *w, const char *folder)
{
    static char text[CHANGES * 400];
    char name[100];
    size_t order[CHANGES], n = 0;
    for (size_t i = 0; i < CHANGES; i++) {
        size_t k = draw(i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (size_t i = 0; i < CHANGES; n++) {
        size_t len = 0;
        for (size_t end = i + 1 + draw(30); i < end && i < CHANGES; i++)
            for (size_t times = draw(10) ? 1 : 2; times; times--)
                len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", w->lines[order[i]]);
        snprintf(name, sizeof(name), "%s/dt=%zu", folder, n % 3);
        make_folder(v, name);
        bool is_packed = draw(2);
        snprintf(name, sizeof(name), "%s/dt=%zu/%zu.json%s", folder, n % 3, n, is_packed ? ".gz" : "");
        write_object(v, name, text, is_packed);
    }
}

/* ---- what was written ---- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* The one export below the folder. */
static const char *export_of(struct verbs *v, const char *folder)
{
    static char name[600];
    size_t n = 0;
    DIR *dir = opendir(path_of(v, json_printf("%s/AWSDynamoDB", folder)));
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "data") != 0) {
            snprintf(name, sizeof(name), "%s", entry->d_name);
            n++;
        }
    closedir(dir);
    assert_int_equal(n, 1);
    return name;
}

static void assert_md5(struct verbs *v, const char *name, const char *wanted)
{
    unsigned char md5[EVP_MAX_MD_SIZE];
    char text[32];
    size_t len;
    char *bytes = test_read(path_of(v, name), &len);
    assert_non_null(bytes);
    assert_int_equal(EVP_Digest(bytes, len, md5, NULL, EVP_md5(), NULL), 1);
    text[sl_base64_encode_to(sl_span((const char *)md5, 16), text)] = '\0';
    assert_string_equal(text, wanted);
    free(bytes);
}

static void assert_manifest(struct verbs *v, const char *folder, const char *name)
{
    const char *path = json_printf("%s/AWSDynamoDB/%s/%s", folder, export_of(v, folder), name);
    const char *sum = verb_read(v, json_printf("%s.md5", path));
    assert_md5(v, json_printf("%s.json", path), sum);
    assert_string_equal(verb_read(v, json_printf("%s.checksum", path)), sum);
}

static int value_of(json_t *line, const char *name)
{
    const char *digits = NULL;
    return json_unpack(line, "{s:{s:{s:s}}}", name, "v", "N", &digits) == 0 ? (int)strtol(digits, NULL, 10)
                                                                            : -1;
}

/* The lines of one data file; returns how many. */
static size_t take_data(struct verbs *v, struct world *w, const char *path, bool seen[ITEMS])
{
    size_t n = 0, item;
    verb_assert(v, verb(v, "decode %s", path), 0, "");
    char *text = strdup(verb_out(v)), *rest = text, *one;
    for (; (one = strsep(&rest, "\n")) && *one; n++) {
        const char *key = NULL;
        json_t *line = json_loads(one, 0, NULL);
        assert_int_equal(json_unpack(line, "{s:{s:{s:s}}}", "Keys", "PK", "S", &key), 0);
        assert_true(sscanf(key, "i%zu", &item) == 1 && item < ITEMS);
        assert_false(seen[item]);
        seen[item] = true;
        assert_int_equal(value_of(line, "NewImage"), w->items[item].last);
        assert_int_equal(value_of(line, "OldImage"), w->has_old ? w->items[item].first : -1);
        json_decref(line);
    }
    free(text);
    return n;
}

static void assert_export(struct verbs *v, struct world *w, const char *folder)
{
    bool seen[ITEMS] = {false};
    size_t items = 0;
    assert_manifest(v, folder, "manifest-summary");
    assert_manifest(v, folder, "manifest-files");
    const char *home = json_printf("%s/AWSDynamoDB/%s", folder, export_of(v, folder));
    char *files = strdup(verb_read(v, json_printf("%s/manifest-files.json", home))), *rest = files, *one;
    while ((one = strsep(&rest, "\n")) && *one) {
        const char *key, *md5;
        int count;
        json_t *line = json_loads(one, 0, NULL);
        assert_int_equal(json_unpack(line, "{s:s,s:s,s:i}", "dataFileS3Key", &key, "md5Checksum", &md5,
                                     "itemCount", &count),
                         0);
        assert_memory_equal(key, "a/b/AWSDynamoDB/data/", 21);
        const char *path = json_printf("%s/%s", folder, key + 4);
        assert_md5(v, path, md5);
        assert_int_equal(take_data(v, w, path, seen), count);
        items += (size_t)count;
        json_decref(line);
    }
    free(files);
    for (size_t i = 0; i < ITEMS; i++) {
        /* What came and went within the window has no line, if the images show it. */
        bool is_wanted =
            w->items[i].is_changed && (!w->has_old || w->items[i].first >= 0 || w->items[i].last >= 0);
        assert_int_equal(seen[i], is_wanted);
    }
    json_t *summary = json_loads(verb_read(v, json_printf("%s/manifest-summary.json", home)), 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(summary, "itemCount")), items);
    assert_string_equal(json_string_value(json_object_get(summary, "outputView")),
                        w->has_old ? "NEW_AND_OLD_IMAGES" : "NEW_IMAGE");
    assert_string_equal(json_string_value(json_object_get(summary, "exportFromTime")),
                        "2026-11-20T10:00:00.000Z");
    assert_string_equal(json_string_value(json_object_get(summary, "exportToTime")),
                        "2026-11-20T10:00:20.000Z");
    json_decref(summary);
}

static void an_items_changes_become_one_line(void **state)
{
    struct verbs *v = *state;
    struct world w;
    for (uint64_t i = 1; i <= 6; i++) {
        const char *folder = json_printf("archive%d", (int)i);
        make_world(&w, i, i % 2);
        write_world(v, &w, folder);
        write_object(v, json_printf("%s/notes.txt", folder), "not json", false);
        make_folder(v, json_printf("%s/.partial", folder)); /* where a sink writes */
        write_object(v, json_printf("%s/.partial/half.json", folder), "{", false);
        verb_assert(v, verb(v, FLAGS " %s", folder), 0, "items of ");
        assert_string_equal(verb_err(v), "");
        assert_export(v, &w, folder);
        char *before = strdup(export_of(v, folder));
        verb_assert(v, verb(v, FLAGS " %s", folder), 0, before);
        assert_string_equal(export_of(v, folder), before); /* what it wrote is not read as an archive */
        assert_export(v, &w, folder);
        verb_assert(
            v, verb(v, "backfill --keys PK --unsafe-order --plan --export %s/AWSDynamoDB/%s", folder, before),
            2, "is an export of type INCREMENTAL_EXPORT");
        free(before);
        world_clean_up(&w);
    }
}

/* Without SequenceNumber, as in AWS's own exports, the time of the write is the order. */
static void an_order_is_the_time_where_there_is_no_number(void **state)
{
    struct verbs *v = *state;
    make_folder(v, "own");
    write_object(v, "own/a.json",
                 json("{'Metadata':{'WriteTimestampMicros':{'N':'10000000'}},'Keys':{'k':{'S':'a'}},"
                      "'NewImage':{'k':{'S':'a'},'v':{'N':'2'}},'OldImage':{'k':{'S':'a'},'v':{'N':'1'}}}\n"
                      "{'Metadata':{'WriteTimestampMicros':{'N':'9000000'}},'Keys':{'k':{'S':'a'}},"
                      "'NewImage':{'k':{'S':'a'},'v':{'N':'1'}}}\n"),
                 false);
    verb_assert(v, verb(v, "manifest --table-arn " ARN " own"), 0, "1 items of 2 lines in 1 objects");
    verb_assert(v, 0, 0, "does not name the bucket: give --bucket if");
    const char *summary =
        verb_read(v, json_printf("own/AWSDynamoDB/%s/manifest-summary.json", export_of(v, "own")));
    assert_non_null(strstr(summary, json("'exportFromTime':'1970-01-01T00:00:09.000Z'")));
    assert_non_null(strstr(summary, json("'exportToTime':'1970-01-01T00:00:11.000Z'")));
    assert_non_null(strstr(summary, json("'s3Bucket':null")));
    verb_assert(v, verb(v, "manifest --bucket b own"), 0, "does not name the table: give --table-arn if");
    verb_assert(v, verb(v, "manifest own"), 0,
                "name the table and the bucket: give --table-arn and --bucket");
}

/* A data file is full after 100,000 items. */
static void many_items_are_in_several_files(void **state)
{
    struct verbs *v = *state;
    struct sl_buffer text;
    make_folder(v, "many");
    sl_buffer_init(&text, 64 << 20);
    for (size_t i = 0; i < 100001; i++)
        sl_buffer_printf(
            &text,
            "{\"Metadata\":{\"WriteTimestampMicros\":{\"N\":\"1\"}},\"Keys\":{\"k\":{\"N\":\"%zu\"}}}\n", i);
    assert_int_equal(sl_disk_replace_path(path_of(v, "many/a.json"), sl_buffer_span(&text)), 0);
    sl_buffer_clean_up(&text);
    verb_assert(v, verb(v, FLAGS " many"), 0, "100001 items of 100001 lines in 1 objects");
    const char *files =
        verb_read(v, json_printf("many/AWSDynamoDB/%s/manifest-files.json", export_of(v, "many")));
    assert_non_null(strstr(files, json("{'itemCount':100000,")));
    assert_non_null(strstr(files, json("\n{'itemCount':1,")));
}

static void what_is_no_archive_is_refused(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *line, *text, *object;
    } cases[] = {
        {"nowhere", "sluice manifest: nowhere: cannot be read: No such file or directory", NULL},
        {"empty", "empty: no object of format export (*.json.gz) is below this folder", NULL},
        {"item", "item/a.json: line 1 is not a line of an incremental export", "{'Item':{'k':{'S':'a'}}}\n"},
        {"broken", "broken/a.json: ", "{'Metadata':{\n"},
        {"word", "word/a.json: line 1: its Metadata.SequenceNumber, or WriteTimestampMicros, is not a number",
         "{'Metadata':{'WriteTimestampMicros':{'N':'1'},'SequenceNumber':{'S':'1e5'}},'Keys':{'k':{'S':'a'}}}"
         "\n"},
        {"long", "long/a.json: line 1: its Metadata.SequenceNumber, or WriteTimestampMicros, is not a number",
         "{'Metadata':{'WriteTimestampMicros':{'N':'1'},'SequenceNumber':{'S':"
         "'10000000000000000000000000000000000000000'}},'Keys':{'k':{'S':'a'}}}\n"},
        {"--table-arn orders empty", "--table-arn orders: is not a table's ARN", NULL},
        {"--table-arn arn:aws:s3:::b empty", "--table-arn arn:aws:s3:::b: is not a table's ARN", NULL},
        {"--table-arn arn:aws:dynamodb:eu-west-1:1:index/a empty", "is not a table's ARN", NULL},
        {"--table-arn " ARN "/stream/x empty", "is not a table's ARN", NULL},
    };
    verb_assert(v, verb(v, "manifest ''"), 2, "sluice manifest: the archive's folder (its name is empty)");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *name = strrchr(cases[i].line, ' ') ? "empty" : cases[i].line;
        if (strcmp(name, "nowhere") != 0)
            make_folder(v, name);
        if (cases[i].object)
            write_object(v, json_printf("%s/a.json", name), json(cases[i].object), false);
        verb_assert(v, verb(v, "manifest %s", cases[i].line), 2, cases[i].text);
        assert_string_equal(verb_out(v), "");
        assert_int_not_equal(access(path_of(v, json_printf("%s/AWSDynamoDB", name)), F_OK), 0);
    }
}

/* The names and digests of all files of the export: the same lines always make the same ones. */
static char *files_of(struct verbs *v, const char *folder)
{
    char *root = strdup(path_of(v, json_printf("%s/AWSDynamoDB", folder))), *out = NULL;
    char *roots[] = {root, NULL};
    size_t len = 0, n;
    FILE *file = open_memstream(&out, &len);
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    for (FTSENT *entry; (entry = fts_read(walk));)
        if (entry->fts_info == FTS_F) {
            char *bytes = test_read(entry->fts_path, &n);
            fprintf(file, "%s %llx\n", entry->fts_path + strlen(root),
                    (unsigned long long)sl_hash(sl_span(bytes, n)));
            free(bytes);
        }
    fts_close(walk);
    fclose(file);
    free(root);
    return out;
}

/* A run that says 0 has written all; one that does not says why, and the next one writes all. */
static void a_disk_that_fails_costs_one_run(void **state)
{
    struct verbs *v = *state;
    struct world w;
    int n = 1;
    make_world(&w, 77, true);
    seed = 78;
    write_world(v, &w, "whole");
    verb_assert(v, verb(v, FLAGS " whole"), 0, "items of ");
    char *wanted = files_of(v, "whole");
    for (bool has_come = true; has_come; n++) {
        const char *folder = json_printf("f%d", n), *why = strerror(n % 2 ? ENOSPC : EIO);
        seed = 78; /* the same objects */
        write_world(v, &w, folder);
        verb_fault(v, n, n % 2 ? ENOSPC : EIO, NULL);
        int status = verb(v, FLAGS " %s", folder);
        has_come = disk_fault_came();
        if (status != 0) {
            assert_true(has_come && (status == 1 || status == 2));
            verb_assert(v, status, status, "sluice manifest: ");
            verb_assert(v, status, status, folder);
            verb_assert(v, status, status, why);
            assert_string_equal(verb_out(v), "");
            verb_assert(v, verb(v, FLAGS " %s", folder), 0, "items of ");
        }
        char *have = files_of(v, folder);
        assert_string_equal(have, wanted);
        free(have);
    }
    assert_true(n > 40);
    free(wanted);
    world_clean_up(&w);
}

static int set_up(void **state)
{
    struct verbs *v = verbs_new();
    *state = v;
    verb_write(v, "sluice.json",
               "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'r','handler':"
               "'replicate','to':'sqlite:out.db?table=r'}]}");
    return 0;
}

static int tear_down(void **state)
{
    verbs_destroy(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_items_changes_become_one_line), TEST(an_order_is_the_time_where_there_is_no_number),
        TEST(many_items_are_in_several_files),  TEST(what_is_no_archive_is_refused),
        TEST(a_disk_that_fails_costs_one_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
