/* A full export as a source: whole, damaged in every way, over folders and over S3. */
#include "tests/data/source/pieces.h"

#include "streams/record.h"
#include "tests/support/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define A "{'Item':{'PK':{'S':'a'},'SK':{'N':'1'}}}\n"
#define B "{'Item':{'PK':{'S':'b'},'SK':{'N':'2'},'v':{'L':[]}}}\n"
#define D "{'Item':{'PK':{'S':'b'},'SK':{'N':'1'},'v':{'L':[]}}}\n"
#define E "{'Item':{'PK':{'S':'a'},'SK':{'N':'2'}}}\n"
#define C "{'Item':{'SK':{'N':'3'},'PK':{'S':'c'}}}"

struct place {
    const char *place, *table;
    bool verify_first;
    struct sl_span file, md5;
    uint64_t items;
};

static enum sl_status open_place(void *self, struct sl_span place, struct sl_source **out,
                                 struct sl_error *error)
{
    const struct place *p = self;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = test_call(arena);
    const struct sl_source_options options = {
        .sinks = &test_sinks, .keys = {.names = {SL_LIT("PK"), SL_LIT("SK")}, .n = 2}, .place = place};
    const struct sl_source_export what = {.place = p->place,
                                          .table = p->table,
                                          .verify_first = p->verify_first,
                                          .file = p->file,
                                          .md5 = p->md5,
                                          .items = p->items};
    enum sl_status status = sl_source_open_export(&options, &what, &call, out, error);
    sl_arena_destroy(arena);
    return status;
}

/* ---- on both sides ---- */

static char *small_export(void)
{
    const struct test_export_file files[] = {{"c.json.gz", json_span(C)},
                                             {"a.json.gz", json_span(A B)},
                                             {"b.json.gz", SL_LIT("")},
                                             {"plain.json", json_span(D E)}};
    return test_export_write(
        &(struct test_export){.files = files, .n = 4, .prefix = "backups/AWSDynamoDB/x/"}, folder);
}

static void is_read_whole(const char *place, size_t most)
{
    struct place p = {.place = place, .table = "orders"};
    struct gathered g = gather(open_place, &p, SL_SOURCE_PIECE_BYTES, false);
    assert_string_equal(g.error.text, "");
    assert_int_equal(g.n, 5);
    assert_non_null(strstr(g.text, "\"eventSourceARN\":\"" TEST_EXPORT_ARN "\""));
    assert_non_null(
        strstr(g.text, json("'Keys':{'PK':{'S':'c'},'SK':{'N':'3'}},'NewImage':{'SK':{'N':'3'}")));
    gathered_clean_up(&g);
    assert_pieces_agree(open_place, &p, most);
    p.verify_first = true;
    g = gather(open_place, &p, SL_SOURCE_PIECE_BYTES, false);
    assert_int_equal(g.n, 5);
    assert_true(g.pieces >= 7);
    gathered_clean_up(&g);
    assert_pieces_agree(open_place, &p, most / 10 + 1);
}

static void it_is_read_whole_and_in_pieces(void **state)
{
    (void)state;
    char *path = small_export();
    is_read_whole(path, 200);
    is_read_whole(json_printf("file:%s/", path), 200);
    const char *url = copy_to_s3(path);
    if (url)
        is_read_whole(url, 3); /* each request takes its time */
    free(path);
}

static void facts_are_there_before_reading(const char *place)
{
    struct place p = {.place = place};
    struct sl_source *source;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(open_place(&p, sl_span(NULL, 0), &source, &error), SL_OK);
    const struct sl_source_facts *facts = sl_source_facts(source);
    assert_span_is(facts->table_arn, TEST_EXPORT_ARN);
    assert_true(facts->is_items && facts->items == 5 && facts->n_files == 4);
    assert_int_equal(facts->time_ms, 1795168800250);
    uint64_t bytes = 0;
    static const char *const keys[] = {"data/a.json.gz", "data/b.json.gz", "data/c.json.gz",
                                       "data/plain.json"};
    for (size_t i = 0; i < 4; i++) {
        struct sl_source_file file = sl_source_file(source, i);
        assert_span_is(file.key, keys[i]);
        assert_int_equal(file.md5.len, 24);
        bytes += file.bytes;
        /* A work item of the file alone. */
        struct place one = {.place = place, .file = file.key, .md5 = file.md5, .items = file.items};
        struct gathered g = gather(open_place, &one, 1, true);
        assert_string_equal(g.error.text, "");
        assert_int_equal(g.n, file.items);
        gathered_clean_up(&g);
    }
    assert_int_equal(facts->bytes, bytes);
    sl_source_close(source);
}

static void a_plan_can_be_made_of_its_files(void **state)
{
    (void)state;
    char *path = small_export();
    facts_are_there_before_reading(path);
    const char *url = copy_to_s3(path);
    if (url)
        facts_are_there_before_reading(url);
    free(path);
}

/* ---- lies ---- */

static void fails_at(const char *place, const char *code, const char *text)
{
    struct place p = {.place = place, .table = "orders"};
    struct gathered g = gather(open_place, &p, SL_SOURCE_PIECE_BYTES, false);
    assert_int_equal(g.status, SL_REJECT);
    assert_string_equal(g.error.code, code);
    if (!strstr(g.error.text, text))
        fail_msg("\"%s\" does not say \"%s\"", g.error.text, text);
    assert_null(strchr(g.error.text, '\n'));
    gathered_clean_up(&g);
}

/* The folder's export, and a copy in S3, fail so. */
static void fails(const char *path, const char *code, const char *text)
{
    fails_at(path, code, text);
    const char *url = copy_to_s3(path);
    if (url)
        fails_at(url, code, text);
}

static char *replaced(const char *text, const char *what, const char *by)
{
    const char *at = strstr(text, what);
    char *out;
    assert_non_null(at);
    assert_true(asprintf(&out, "%.*s%s%s", (int)(at - text), text, by, at + strlen(what)) > 0);
    return out;
}

/* Changes a manifest, with a checksum that is right. */
static void edit(const char *path, const char *name, const char *what, const char *by)
{
    char *file = (char *)(uintptr_t)json_printf("%s/manifest-%s.json", path, name);
    char *text = test_read(file, NULL), *changed = replaced(text, json(what), json(by));
    test_export_manifest(path, name, sl_span_str(changed));
    free(changed);
    free(text);
}

static const struct {
    const char *manifest, *what, *by, *code, *text;
} lies[] = {
    {"summary", "'FULL_EXPORT'", "'INCREMENTAL_EXPORT'", "NotReadable",
     "is an export of type INCREMENTAL_EXPORT"},
    {"summary", "'DYNAMODB_JSON'", "'ION'", "NotReadable", "is an export in the format ION"},
    {"summary", "'outputFormat':'DYNAMODB_JSON',", "", "NotReadable", "(none)"},
    {"summary", "'itemCount':5", "'itemCount':6", "WrongCount",
     "counts 6 items, the files in manifest-files.json have 5"},
    {"summary", "'itemCount':5", "'itemCount':-5", "NoSummary", "has no itemCount"},
    {"summary", "'itemCount':5", "'itemCount':'5'", "NoSummary", "has no itemCount"},
    {"summary", "'2026-11-20T10:00:00.250Z'", "null", "NoSummary", "has no exportTime"},
    {"summary", "'2026-11-20T10:00:00.250Z'", "'yesterday'", "NoSummary", "has no exportTime"},
    {"summary", "'tableArn'", "'t'", "NoSummary", "has no tableArn"},
    {"summary", "'exportArn'", "'e'", "NoSummary", "it has no exportArn"},
    {"summary", "manifest-files.json'", "manifest.json'", "NoSummary", "has no manifestFilesS3Key"},
    {"summary", "{", "", "NoSummary", "manifest-summary.json: is not JSON"},
    {"summary", "table/orders'", "table/others'", "AnotherTable",
     "is an export of the table arn:aws:dynamodb:eu-west-1:123456789012:table/others, not of orders"},
    {"files", "data/a.json.gz", "data/b.json.gz", "NamedTwice", "names the file data/b.json.gz twice"},
    {"files", "data/a.json.gz", "data/z.json.gz", "NoSuchKey",
     "1 of 4 data files are missing or empty, the first is data/z.json.gz"},
    {"files", "/data/a.json.gz", "/../../data/a.json.gz", "NoManifest",
     "which is not in the export's folder"},
    {"files", "c22a2da7/data/a.json.gz", "other/data/a.json.gz", "NoManifest",
     "which is not in the export's folder"},
    {"files", "'dataFileS3Key'", "'key'", "NoManifest", "line 1 has no dataFileS3Key below AWSDynamoDB/"},
    {"files", "'md5Checksum':'", "'md5Checksum':'x", "NoManifest", "line 1 has no md5Checksum for"},
    {"files", "'itemCount':2", "'itemCount':1e3", "NoManifest", "line 2 has no itemCount"},
    {"files", "}\n{", "}{", "NoManifest", "line 1 is not JSON"},
};

static void a_manifest_that_lies_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        char *path = small_export();
        edit(path, lies[i].manifest, lies[i].what, lies[i].by);
        fails(path, lies[i].code, lies[i].text);
        free(path);
    }
}

static void a_manifest_that_is_damaged_or_missing_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *file, *code, *text;
    } files[] = {
        {"manifest-summary.json", "NoSummary", "has no manifest-summary.json: name the folder of one export"},
        {"manifest-files.json", "NoSuchKey", "manifest-files.json: is not there"},
        {"manifest-summary.md5", "NoChecksum", "neither manifest-summary.checksum nor manifest-summary.md5"},
        {"manifest-files.md5", "NoChecksum", "neither manifest-files.checksum nor manifest-files.md5"},
    };
    for (size_t i = 0; i < 4; i++) {
        char *path = small_export();
        const char *file = json_printf("%s/%s", path, files[i].file);
        char *text = test_read(file, NULL);
        char *other = replaced(text, i < 2 ? "}" : "=", i < 2 ? " }" : "");
        test_write(file, other);
        free(other);
        fails(path, i < 2 ? "WrongChecksum" : "NoChecksum", i < 2 ? "is damaged: its MD5" : "is not an MD5");
        unlink(file);
        fails(path, files[i].code, files[i].text);
        free(text);
        free(path);
    }
}

static void damage(const char *file, size_t at)
{
    size_t len;
    char *bytes = test_read(file, &len);
    FILE *out = fopen(file, "wb");
    assert_non_null(out);
    bytes[at % len] ^= 0x20;
    fwrite(bytes, 1, len, out);
    fclose(out);
    free(bytes);
}

static void cut(const char *file, size_t len)
{
    assert_int_equal(truncate(file, (off_t)len), 0);
}

/* Every byte of every data file: changed, and missing from there on. Each is
 * told in one line with the file's name. */
static void data_that_is_damaged_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"a.json.gz", "b.json.gz", "c.json.gz", "plain.json"};
    for (size_t i = 0; i < 4; i++) {
        char *path = small_export();
        const char *file = json_printf("%s/data/%s", path, names[i]);
        size_t len;
        free(test_read(file, &len));
        free(path);
        for (size_t at = 0; at < len; at++) {
            path = small_export();
            damage(file, at);
            struct place p = {.place = path};
            for (int round = 0; round < 4; round++) {
                p.verify_first = round & 1;
                struct gathered g = gather(open_place, &p, round < 2 ? 1 : SL_SOURCE_PIECE_BYTES, false);
                assert_int_equal(g.status, SL_REJECT);
                assert_non_null(strstr(g.error.text, names[i]));
                bool is_gone = round > 1 && at == 0 && i != 1; /* the second has no items */
                assert_non_null(strstr(g.error.text, is_gone ? "data files are missing or empty"
                                                             : "items were handed out; copy it again"));
                assert_true(g.n <= 5 && (!p.verify_first || g.n == 0));
                gathered_clean_up(&g);
                if (round == 1)
                    cut(file, at);
            }
            free(path);
        }
    }
}

static void damaged_copies_in_s3_are_refused(void **state)
{
    (void)state;
    char *path = small_export();
    const char *file = json_printf("%s/data/a.json.gz", path);
    damage(file, 30);
    fails(path, "WrongChecksum", "a.json.gz");
    cut(file, 30);
    fails(path, "WrongChecksum", "a.json.gz");
    cut(file, 0);
    fails(path, "NoSuchKey", "1 of 4 data files are missing or empty, the first is data/a.json.gz");
    free(path);
}

static void what_is_no_item_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *lines, *code, *text;
    } bad[] = {
        {A "{'Keys':{'PK':{'S':'a'}},'NewImage':{},'Metadata':{}}\n", "NotItems",
         "x.json.gz: is no file of a full export"},
        {"{'Records':[" A "]}\n", "NotItems", "x.json.gz: is no file of a full export"},
        {A "{'Item':{'PK':{'S':'a'}}}\n", "NoKeys", "x.json.gz: record 1 lacks a key attribute (PK, SK)"},
        {A B A, "RepeatedKey", "x.json.gz: the item of record 2 has the same PK,SK as one before it"},
        {A "{'Item':{'PK':{'S':'a'},'SK':{'N':'1.0'}}}", "RepeatedKey", "record 1 has the same PK,SK"},
        {A "\n$ion_1_0 {Item:{}}", "InvalidJson", "x.json.gz: line 3: invalid JSON at byte 42"},
        {A E "{'Item':{'PK':{'S':'a'},'SK':{'N':'x'}}}\n", "InvalidRecord",
         "x.json.gz: line 3: record 2: Item.SK.N: not a number"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct test_export_file file = {"x.json.gz", json_span(bad[i].lines)};
        char *path = test_export_write(&(struct test_export){.files = &file, .n = 1}, folder);
        fails(path, bad[i].code, bad[i].text);
        free(path);
    }
}

static void a_file_of_too_many_or_too_few_items_is_refused(void **state)
{
    (void)state;
    char *path = small_export();
    /* c.json.gz has 1, a.json.gz 2: the sum stays. */
    edit(path, "files", "'itemCount':2,", "'itemCount':9,");
    edit(path, "files", "'itemCount':1,", "'itemCount':2,");
    edit(path, "files", "'itemCount':9,", "'itemCount':1,");
    struct place p = {.place = path};
    for (int i = 0; i < 2; i++) {
        p.verify_first = i;
        struct gathered g = gather(open_place, &p, 1, false);
        assert_string_equal(g.error.code, "WrongCount");
        gathered_clean_up(&g);
    }
    free(path);
}

static void a_work_item_stays_within_the_export(void **state)
{
    (void)state;
    char *path = small_export();
    static const char *const keys[] = {"../../x",         "/etc/passwd", "manifest-files.json",
                                       "data/../../../x", "data",        "data/"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct place p = {
            .place = path, .file = sl_span_str(keys[i]), .md5 = SL_LIT("1B2M2Y8AsgTpgAmY7PhCfg==")};
        struct gathered g = gather(open_place, &p, 1, false);
        assert_int_equal(g.status, SL_REJECT);
        assert_string_equal(g.error.code, "InvalidKey");
        gathered_clean_up(&g);
    }
    struct place p = {.place = path, .file = SL_LIT("data/a.json.gz"), .md5 = SL_LIT("nonsense")};
    struct gathered g = gather(open_place, &p, 1, false);
    assert_string_equal(g.error.code, "NoChecksum");
    gathered_clean_up(&g);
    free(path);
}

static void a_place_of_another_export_is_refused(void **state)
{
    (void)state;
    char *path = small_export();
    struct place p = {.place = path};
    struct sl_source *source;
    static const char *const places[] = {
        "{'export':'01573689197000-2931eb52','file':0,'byte':0,'record':0,'line':0}",
        "{'export':'01795212250003-c22a2da7','file':5,'byte':0,'record':0,'line':0}",
        "{'export':'01795212250003-c22a2da7','byte':0,'record':0,'line':0}", "{'scan':'orders'}", "["};
    for (size_t i = 0; i < 5; i++) {
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(open_place(&p, json_span(places[i]), &source, &error), SL_REJECT);
        assert_string_equal(error.code, "WrongPlace");
    }
    free(path);
}

static void a_place_that_is_not_there_is_refused(void **state)
{
    (void)state;
    fails_at(json_printf("%s/nosuch", folder), "NotFound", "nosuch: cannot be opened as a folder");
    fails_at(folder, "NoSummary", "name the folder of one export");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_read_whole_and_in_pieces),
        cmocka_unit_test(a_plan_can_be_made_of_its_files),
        cmocka_unit_test(a_manifest_that_lies_is_refused),
        cmocka_unit_test(a_manifest_that_is_damaged_or_missing_is_refused),
        cmocka_unit_test(data_that_is_damaged_is_refused),
        cmocka_unit_test(damaged_copies_in_s3_are_refused),
        cmocka_unit_test(what_is_no_item_is_refused),
        cmocka_unit_test(a_file_of_too_many_or_too_few_items_is_refused),
        cmocka_unit_test(a_work_item_stays_within_the_export),
        cmocka_unit_test(a_place_of_another_export_is_refused),
        cmocka_unit_test(a_place_that_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, folder_set_up, folder_clean_up);
}
