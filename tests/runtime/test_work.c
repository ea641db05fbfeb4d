/* Work items' parts that need no process: members read by a table, the environment, and a Distributed Map's
 * results, read whole, cut at every byte and with each read failing. */
#include "runtime/work/fields.h"
#include "runtime/work/piece.h"
#include "runtime/work/results.h"
#include "tests/support/test.h"

#include "base/json.h"

#include <stdlib.h>

/* ---- results ---- */

/* A port with two objects that hands out at most `step` bytes at a time; the read number `fail_at` fails. */
struct shelf {
    struct sl_object_port port;
    const char *manifest, *file;
    size_t step;
    unsigned reads, fail_at;
    bool changes; /* the object has another etag at its second read */
};

static void shelf_read(struct sl_object_port *port, const struct sl_object_read *read, size_t n,
                       struct sl_object_piece *piece, const struct sl_call *call)
{
    struct shelf *shelf = (struct shelf *)(void *)port;
    assert_int_equal(n, 1);
    bool is_manifest = sl_span_is(read->key, "r/manifest.json");
    struct sl_span whole = sl_span_str(is_manifest ? shelf->manifest : shelf->file);
    *piece = (struct sl_object_piece){.object_bytes = whole.len, .etag = SL_LIT("e")};
    if (++shelf->reads == shelf->fail_at)
        piece->result = (struct sl_result){.status = SL_RETRY, .code = "SlowDown", .text = "slow"};
    else if (read->etag.ptr && (shelf->changes || !sl_span_is(read->etag, "e")))
        piece->result =
            (struct sl_result){.status = SL_REJECT, .code = "PreconditionFailed", .text = "changed"};
    struct sl_span rest = sl_span_from(whole, (size_t)read->from);
    size_t len = rest.len < shelf->step ? rest.len : shelf->step;
    piece->bytes = sl_span(sl_arena_copy(call->arena, sl_span(rest.ptr, len)), len);
}

struct seen {
    char text[256];
};

static enum sl_status note(void *context, struct sl_span output, struct sl_error *error)
{
    struct seen *seen = context;
    (void)error;
    strncat(seen->text, output.ptr, output.len);
    strncat(seen->text, ";", 2);
    return SL_OK;
}

static const char manifest[] =
    "{\"DestinationBucket\":\"b\",\"MapRunArn\":\"a\",\"ResultFiles\":{\"FAILED\":[],\"PENDING\":[],"
    "\"SUCCEEDED\":[{\"Key\":\"seed/r/S.json\",\"Size\":1}]}}";
static const char file[] =
    " [ {\"Name\":\"x\",\"Output\":\"{\\\"piece\\\":0}\"} "
    ",\n{\"Output\":\"[\\u0031,\\\"]}\\\"]\"},{\"Output\":\"2\",\"Input\":\"[{\"} ] \n";
static const char outputs[] = "{\"piece\":0};[1,\"]}\"];2;";

static enum sl_status read_shelf(struct shelf *shelf, struct seen *seen, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(1024);
    const struct sl_work_config config = {.bucket = SL_LIT("b"), .prefix = SL_LIT("seed/")};
    shelf->port.read = shelf_read;
    *seen = (struct seen){""};
    const struct sl_work_results results = {
        .config = &config, .port = &shelf->port, .each = note, .context = seen};
    const struct sl_call call = {.arena = arena, .deadline_ms = INT64_MAX};
    enum sl_status status = sl_work_results_read(&results, SL_LIT("r/manifest.json"), &call, error);
    sl_arena_destroy(arena);
    return status;
}

static void test_results_cut_anywhere(void **state)
{
    (void)state;
    for (size_t step = 1; step <= sizeof(file) + 1; step++) {
        struct shelf shelf = {.manifest = manifest, .file = file, .step = step};
        struct seen seen;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(read_shelf(&shelf, &seen, &error), SL_OK);
        assert_string_equal(seen.text, outputs);
    }
}

static void test_results_reads_that_fail(void **state)
{
    (void)state;
    for (unsigned n = 1;; n++) {
        struct shelf shelf = {.manifest = manifest, .file = file, .step = 16, .fail_at = n};
        struct seen seen;
        struct sl_error error = SL_NO_ERROR;
        if (read_shelf(&shelf, &seen, &error) == SL_OK) {
            assert_true(shelf.reads < n && n > 10);
            return;
        }
        assert_int_equal(error.status, SL_RETRY);
        assert_string_equal(error.code, "SlowDown");
    }
}

static void test_results_that_change_meanwhile(void **state)
{
    (void)state;
    struct shelf shelf = {.manifest = manifest, .file = file, .step = 16, .changes = true};
    struct seen seen;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(read_shelf(&shelf, &seen, &error), SL_REJECT);
    assert_string_equal(error.code, "PreconditionFailed");
}

/* A read that brings nothing, of an object that has more: that is tried again, and not taken for its end. */
static void test_results_that_bring_nothing(void **state)
{
    (void)state;
    struct shelf shelf = {.manifest = manifest, .file = file, .step = 0};
    struct seen seen;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(read_shelf(&shelf, &seen, &error), SL_RETRY);
    assert_string_equal(error.text, "r/manifest.json ended early");
    assert_string_equal(seen.text, "");
}

/* Every file that is a part of the good one is refused, and so is a manifest. */
static void test_results_that_end_early(void **state)
{
    (void)state;
    size_t whole = (size_t)(strrchr(file, ']') - file) + 1;
    for (size_t len = 0; len < whole; len++) {
        char cut[sizeof(file)] = "";
        memcpy(cut, file, len);
        struct shelf shelf = {.manifest = manifest, .file = cut, .step = 64};
        struct seen seen;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(read_shelf(&shelf, &seen, &error), SL_REJECT);
        assert_string_equal(error.code, "BadResults");
    }
    for (size_t len = 0; len + 1 < sizeof(manifest); len++) {
        char cut[sizeof(manifest)] = "";
        memcpy(cut, manifest, len);
        struct shelf shelf = {.manifest = cut, .file = file, .step = 64};
        struct seen seen;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(read_shelf(&shelf, &seen, &error), SL_REJECT);
        assert_string_equal(error.code, "BadResults");
    }
}

/* A manifest or a file that says something else than Step Functions would. */
static void test_results_of_another_kind(void **state)
{
    (void)state;
    static const char *const wrong[][3] = {
        {"{'DestinationBucket':'c','ResultFiles':{'SUCCEEDED':[]}}", "[]", "BadResults"},
        {"{'ResultFiles':{'SUCCEEDED':[]}}", "[]", "BadResults"},
        {"{'DestinationBucket':7,'ResultFiles':{'SUCCEEDED':[]}}", "[]", "BadResults"},
        {"{'DestinationBucket':[1],'ResultFiles':{'SUCCEEDED':[]}}", "[]", "BadResults"},
        {"{'DestinationBucket':'b'}", "[]", "BadResults"},
        {"{'DestinationBucket':'b','ResultFiles':{'SUCCEEDED':[{}]}}", "[]", "BadResults"},
        {"{'DestinationBucket':'b','ResultFiles':{'SUCCEEDED':[{'Key':7}]}}", "[]", "BadResults"},
        {"{'DestinationBucket':'b','ResultFiles':{'SUCCEEDED':[{'Key':'elsewhere/S.json'}]}}", "[]",
         "BadResults"},
        {"{'DestinationBucket':'b','ResultFiles':{'SUCCEEDED':[{'Key':'seed/x'}]}}", "{}", "BadResults"},
        {"{'DestinationBucket':'b','ResultFiles':{'SUCCEEDED':[{'Key':'seed/x'}]}}", "[{}]", "BadResults"},
        {"{'DestinationBucket':'b','ResultFiles':{'SUCCEEDED':[{'Key':'seed/x'}]}}", "[7]", "BadResults"},
        {"{'DestinationBucket':'b','ResultFiles':{'SUCCEEDED':[{'Key':'seed/x'}]}}", "[{'Output':7}]",
         "BadResults"},
        {"{'DestinationBucket':'b','ResultFiles':{'SUCCEEDED':[{'Key':'seed/x'}]}}", "[{'Output':{}}]",
         "BadResults"},
        {"{'DestinationBucket':'b','ResultFiles':{'SUCCEEDED':[{'Key':'seed/x'}]}}", "[{'Output':'{'}]",
         "BadResults"},
        {"{'DestinationBucket':'b','ResultFiles':{'FAILED':[{}],'SUCCEEDED':[]}}", "[]", "PiecesFailed"},
        {"{'DestinationBucket':'b','ResultFiles':{'PENDING':[{}],'SUCCEEDED':[]}}", "[]", "PiecesFailed"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct shelf shelf = {.manifest = json(wrong[i][0]), .file = json(wrong[i][1]), .step = 64};
        struct seen seen;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(read_shelf(&shelf, &seen, &error), SL_REJECT);
        assert_string_equal(error.code, wrong[i][2]);
        assert_string_equal(seen.text, "");
    }
    static const char *const none[] = {"[]", " \n[ ]\n"};
    for (size_t i = 0; i < 2; i++) {
        struct shelf shelf = {
            .manifest = json("{'DestinationBucket':'b','ResultFiles':{'SUCCEEDED':[{'Key':'seed/x'}]}}"),
            .file = none[i],
            .step = 1};
        struct seen seen;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(read_shelf(&shelf, &seen, &error), SL_OK);
        assert_string_equal(seen.text, "");
    }
}

/* The longest entry of all, and what is longer than a manifest may be. */
static void test_results_that_are_too_long(void **state)
{
    (void)state;
    size_t n = 6u << 20;
    char *longest = malloc(n);
    assert_non_null(longest);
    memset(longest, ' ', n);
    longest[n - 1] = '\0';
    memcpy(longest, "[{\"a\":\"", 7);
    for (int k = 0; k < 2; k++) {
        struct shelf shelf = {
            .manifest = k ? longest
                          : json("{'DestinationBucket':'b','ResultFiles':{'SUCCEEDED':[{'Key':'seed/x'}]}}"),
            .file = longest,
            .step = 1u << 20};
        struct seen seen;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(read_shelf(&shelf, &seen, &error), SL_REJECT);
        assert_string_equal(error.code, "BadResults");
        if (!strstr(error.text, k ? "is longer than 1048576 bytes" : "has an entry of more than"))
            fail_msg("%s", error.text);
    }
    free(longest);
}

/* ---- members ---- */

static enum sl_status read_members(const char *text, struct sl_span *name, uint64_t *count, double *number,
                                   bool *flag)
{
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_span object = {0};
    const struct sl_work_field fields[] = {{"name", SL_WORK_TEXT, true, name},
                                           {"count", SL_WORK_COUNT, false, count},
                                           {"number", SL_WORK_NUMBER, false, number},
                                           {"flag", SL_WORK_BOOL, false, flag},
                                           {"object", SL_WORK_OBJECT, false, &object}};
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_json_check(json_span(text), &error), SL_OK);
    enum sl_status status = sl_work_fields_read(json_span(text), "x", fields, 5, arena, &error);
    assert_string_equal(error.code, status == SL_OK ? "" : "BadWorkItem");
    assert_true(status == SL_OK || strncmp(error.text, "x", 1) == 0);
    sl_arena_destroy(arena);
    return status;
}

static void test_members(void **state)
{
    (void)state;
    struct sl_span name = {0};
    uint64_t count = 7;
    double number = 7;
    bool flag = true;
    assert_int_equal(read_members("{'name':'a'}", &name, &count, &number, &flag), SL_OK);
    assert_true(sl_span_is(name, "a") && count == 7 && number == 7 && flag);
    assert_int_equal(
        read_members("{'flag':false,'n\\u0061me':'b','count':9007199254740992,'number':2.5e1,'object':{}}",
                     &name, &count, &number, &flag),
        SL_OK);
    assert_true(sl_span_is(name, "b") && count == UINT64_C(9007199254740992) && number == 25 && !flag);
    assert_int_equal(read_members("{'name':'a','count':null,'number':0}", &name, &count, &number, &flag),
                     SL_OK);
    assert_true(count == UINT64_C(9007199254740992) && number == 0);
    static const char *const wrong[] = {"{}",
                                        "[]",
                                        "null",
                                        "{'name':null}",
                                        "{'name':''}",
                                        "{'name':1}",
                                        "{'name':'a','nam':1}",
                                        "{'name':'a','count':1.5}",
                                        "{'name':'a','count':-1}",
                                        "{'name':'a','count':9007199254740994}",
                                        "{'name':'a','count':'1'}",
                                        "{'name':'a','count':1000000000000000000000000000000000}",
                                        "{'name':'a','number':-0.5}",
                                        "{'name':'a','number':1e999}",
                                        "{'name':'a','number':10000000000000000000000000000000}",
                                        "{'name':'a','number':true}",
                                        "{'name':'a','flag':1}",
                                        "{'name':'a','flag':'true'}",
                                        "{'name':'a','object':[]}",
                                        "{'name':'a','object':1}"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(read_members(wrong[i], &name, &count, &number, &flag), SL_REJECT);
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_work_fields_read(sl_span("", 0), "x", NULL, 0, NULL, &error), SL_REJECT);
    assert_string_equal(error.text, "x is not an object");
    /* A name is shown up to its 64th byte. */
    sl_error_clear(&error);
    const struct sl_span longest = json_span(json_printf("{'%065d':1}", 1));
    assert_int_equal(sl_work_fields_read(longest, "x", NULL, 0, NULL, &error), SL_REJECT);
    assert_string_equal(error.text, json_printf("x has a member \"%064d\", which means nothing there", 0));
}

/* ---- the place, and pieces ---- */

static void configure(struct sl_work_config *config, struct sl_arena *arena, const char *source,
                      const char *place)
{
    const char *list[] = {sl_arena_printf(arena, "SLUICE_WORK_SOURCE=%s", source),
                          sl_arena_printf(arena, "SLUICE_WORK_PLACE=%s", place),
                          "SLUICE_WORK_WRITE_UNITS=1000", "SLUICE_WORK_CONCURRENCY=10", NULL};
    const struct sl_vars vars = {.list = list};
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_work_config_read(&vars, arena, config, &error), SL_OK);
}

static void test_place(void **state)
{
    (void)state;
    static const struct {
        const char *place, *bucket, *prefix, *key, *below;
    } cases[] = {
        {"s3://b/a/b", "b", "a/b/", "a/b/c/d", "c/d"},
        {"s3://b/a//?region=x", "b", "a/", "a/c", "c"},
        {"s3://b", "b", "", "c", "c"},
        {"s3://b/", "b", "", "c/d", "c/d"},
        {"s3://b/a", "b", "a/", "a/", NULL},
        {"s3://b/a", "b", "a/", "ab/c", NULL},
        {"s3://b/a", "b", "a/", "a/../c", NULL},
        {"s3://b/a", "b", "a/", "a/./c", NULL},
        {"s3://b/a", "b", "a/", "a//c", NULL},
        {"s3://b/a", "b", "a/", "a/c\\d", NULL},
        {"file:folder", "", "", "c", "c"},
        {"s3://b?region=x", "b", "", "", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_arena *arena = sl_arena_new(1024);
        struct sl_work_config config;
        configure(&config, arena, "dynamodb://t", cases[i].place);
        assert_true(config.is_scan && sl_span_is(config.bucket, cases[i].bucket) &&
                    sl_span_is(config.prefix, cases[i].prefix));
        struct sl_span below = sl_work_key_below(&config, sl_span_str(cases[i].key));
        assert_true(cases[i].below ? sl_span_is(below, cases[i].below) : !below.ptr);
        sl_arena_destroy(arena);
    }
}

/* Of an export, what lies below its folder; of a table, no file. */
static void test_files(void **state)
{
    (void)state;
    static const struct {
        const char *source, *file;
        size_t len; /* 0: all of it */
        bool is_there;
    } cases[] = {
        {"s3://b/AWSDynamoDB/1", "data/a.gz", 0, true}, {"s3://b/AWSDynamoDB/1", "a", 0, true},
        {"s3://b/AWSDynamoDB/1", "", 0, false},         {"s3://b/AWSDynamoDB/1", "data//a", 0, false},
        {"s3://b/AWSDynamoDB/1", "data/..", 0, false},  {"s3://b/AWSDynamoDB/1", "a\0b", 3, false},
        {"s3://b/AWSDynamoDB/1", "data\\a", 0, false},  {"s3://b/AWSDynamoDB/1", "/a", 0, false},
        {"s3://b/AWSDynamoDB/1", "...", 0, true},       {"dynamodb://t", "data/a.gz", 0, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_arena *arena = sl_arena_new(1024);
        struct sl_work_config config;
        configure(&config, arena, cases[i].source, "s3://b/a");
        size_t len = cases[i].len ? cases[i].len : strlen(cases[i].file);
        assert_int_equal(sl_work_has_file(&config, sl_span(cases[i].file, len)), cases[i].is_there);
        sl_arena_destroy(arena);
    }
}

/* Each is fatal, and its text names the variable. */
static void test_wrong_settings(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"SLUICE_WORK_SOURCE=sqs://exports", "SLUICE_WORK_SOURCE is sqs://exports"},
        {"SLUICE_WORK_SOURCE=", "SLUICE_WORK_SOURCE is not set"},
        {"SLUICE_WORK_PLACE=", "SLUICE_WORK_PLACE is not set"},
        {"SLUICE_WORK_CONCURRENCY=0", "SLUICE_WORK_CONCURRENCY is 0"},
        {"SLUICE_WORK_CONCURRENCY=10001", "use a number from 0 to 10000"},
        {"SLUICE_WORK_CONCURRENCY=7 ", "SLUICE_WORK_CONCURRENCY"},
        {"SLUICE_WORK_SEGMENTS=many", "SLUICE_WORK_SEGMENTS"},
        {"SLUICE_WORK_WRITE_UNITS=-1", "SLUICE_WORK_WRITE_UNITS"},
        {"SLUICE_WORK_READ_UNITS=nan", "SLUICE_WORK_READ_UNITS"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_arena *arena = sl_arena_new(1024);
        struct sl_work_config config;
        struct sl_error error = SL_NO_ERROR;
        const char *list[] = {cases[i][0], "SLUICE_WORK_SOURCE=dynamodb://t", "SLUICE_WORK_PLACE=s3://b",
                              NULL};
        const struct sl_vars vars = {.list = list};
        assert_int_equal(sl_work_config_read(&vars, arena, &config, &error), SL_FATAL);
        assert_string_equal(error.code, "BadWorkSettings");
        if (!strstr(error.text, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], error.text);
        sl_arena_destroy(arena);
    }
    const char *list[] = {"SLUICE_WORK_ITEMS=yes", NULL};
    const struct sl_vars vars = {.list = list};
    struct sl_error error = SL_NO_ERROR;
    bool is_on;
    assert_int_equal(sl_work_is_on(&vars, &is_on, &error), SL_FATAL);
}

/* What is written is read again as it was, and an item's share never exceeds what all workers have. */
static void test_pieces(void **state)
{
    (void)state;
    static const struct {
        const char *source, *text, *written;
    } cases[] = {
        {"s3://b/AWSDynamoDB/1", "{'piece':3,'file':'data/\\u0061.gz','md5':'m','items':9,'write_units':50}",
         "{'piece':3,'file':'data/a.gz','md5':'m','items':9,'write_units':50.000}"},
        {"s3://b/AWSDynamoDB/1",
         "{'file':'f','md5':'m','write_units':1001,'any_order':true,'state':{'a':[1]}}",
         "{'piece':0,'file':'f','md5':'m','items':0,'any_order':true,'write_units':100.000,"
         "'state':{'a':[1]}}"},
        {"dynamodb://t", "{'segment':2,'of':3,'time':5,'since':4,'routes':'a,b','arn':'x'}",
         "{'piece':0,'segment':2,'of':3,'time':5,'since':4,'arn':'x','routes':'a,b',"
         "'write_units':100.000}"},
        {"dynamodb://t", "{'segment':0,'of':1,'write_units':1000}", /* all that there are */
         "{'piece':0,'segment':0,'of':1,'write_units':1000.000}"},
        {"dynamodb://t", "{'segment':99999,'of':100000}",
         "{'piece':0,'segment':99999,'of':100000,'write_units':100.000}"},
        {"dynamodb://t", "{'segment':3,'of':3}", NULL},
        {"dynamodb://t", "{'segment':0,'of':100001}", NULL},
        {"dynamodb://t", "{'segment':0,'of':1,'file':'f'}", NULL},
        {"dynamodb://t", "{}", NULL},
        {"s3://b/AWSDynamoDB/1", "{'file':'f'}", NULL},
        {"s3://b/AWSDynamoDB/1", "{'segment':0,'of':1}", NULL},
        {"s3://b/AWSDynamoDB/1", "{'file':'../f','md5':'m'}", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_arena *arena = sl_arena_new(1024);
        struct sl_work_config config;
        struct sl_work_piece piece;
        struct sl_error error = SL_NO_ERROR;
        struct sl_buffer out;
        sl_buffer_init_in(&out, arena, 4096);
        configure(&config, arena, cases[i].source, "s3://b");
        enum sl_status status = sl_work_piece_read(json_span(cases[i].text), &config, arena, &piece, &error);
        assert_int_equal(status, cases[i].written ? SL_OK : SL_REJECT);
        assert_string_equal(error.code, cases[i].written ? "" : "OutsideSource");
        if (cases[i].written) {
            sl_work_piece_write(&piece, &out);
            sl_buffer_add_char(&out, '\0');
            assert_string_equal(out.ptr, json(cases[i].written));
        }
        sl_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_cut_anywhere),
        cmocka_unit_test(test_results_reads_that_fail),
        cmocka_unit_test(test_results_that_change_meanwhile),
        cmocka_unit_test(test_results_that_bring_nothing),
        cmocka_unit_test(test_results_that_end_early),
        cmocka_unit_test(test_results_of_another_kind),
        cmocka_unit_test(test_results_that_are_too_long),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_wrong_settings),
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
