/* `sluice backfill` on services: a table, exports and archives in a bucket, the mapping that says since when
 * nothing was missed. What the services refuse for now is done later; what they refuse for good, and how
 * long, is said; and a run says how far it is. */
#include "tests/support/disk_fault.h"
#include "tests/support/export.h"
#include "tests/support/fake_dynamodb.h"
#include "tests/support/fake_s3.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include "base/disk.h"

#include <fts.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS 60
#define TABLE "arn:aws:dynamodb:us-east-1:123456789012:table/main"
#define SINCE " --consumer-since 2026-11-19T05:00:00Z"
#define UNTIL " --temp temp --until 2026-11-20T10:00:30Z"

struct world {
    struct verbs *v;
    struct fault fault;
    struct fake_dynamodb *tables;
    struct fake_s3 *bucket;
    const char *mapping; /* what Lambda answers */
    size_t n, down_from; /* requests so far; from which on none is answered; 0: all are */
    unsigned refused;    /* one in so many; 0: none */
    char *endpoint;
};

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct world *w = arg;
    w->n++;
    bool is_down = w->down_from && w->n >= w->down_from;
    if (is_down) /* the clocks go on by ten seconds */
        __atomic_add_fetch(&disk_fault->skipped_ns, 10000000000LL, __ATOMIC_RELAXED);
    if (is_down || (w->refused && w->n % w->refused == 0))
        *reply = (struct scripted_reply){.status = 503, .body = SL_LIT("down")};
    else if (strncmp(request->path, "/2015-03-31/", 12) == 0)
        *reply = (struct scripted_reply){
            .status = 200, .headers = "content-type: application/json\r\n", .body = json_span(w->mapping)};
    else if (scripted_header(request, "x-amz-target").ptr)
        fake_dynamodb_answer(w->tables, request, reply);
    else
        fake_s3_answer(w->bucket, request, reply);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    *state = w;
    w->v = verbs_new();
    w->tables = fake_dynamodb_open(verbs_folder(w->v));
    w->bucket = fake_s3_open();
    fault_open(&w->fault, answer, w);
    assert_true(asprintf(&w->endpoint, "AWS_ENDPOINT_URL=%s", scripted_server_url(w->fault.server)) > 0);
    verb_set(w->v, w->endpoint);
    verb_write(w->v, "sluice.json",
               "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':["
               "{'name':'replica','handler':'replicate','to':'sqlite:out.db?table=items'}]}");
    verb_write(w->v, "restore.json",
               "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':["
               "{'name':'replica','handler':'replicate','to':'sqlite:out.db?table=items','guard':'none'}]}");
    disk_fault->skips_sleep = true;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    disk_fault->skips_sleep = false;
    fault_close(&w->fault);
    fake_dynamodb_close(w->tables);
    fake_s3_close(w->bucket);
    verbs_destroy(w->v);
    free(w->endpoint);
    free(w);
    return 0;
}

/* "40", the rows of a table of out.db; "" without such a table. */
static const char *rows(struct world *w)
{
    static char out[32];
    sqlite3 *db = NULL;
    sqlite3_stmt *query = NULL;
    out[0] = '\0';
    const char *path = json_printf("%s/out.db", verbs_folder(w->v));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, "SELECT count(*) FROM items", -1, &query, NULL) == SQLITE_OK &&
        sqlite3_step(query) == SQLITE_ROW)
        snprintf(out, sizeof(out), "%s", sqlite3_column_text(query, 0));
    sqlite3_finalize(query);
    sqlite3_close(db);
    return out;
}

static void fresh(struct world *w)
{
    static const char *const names[] = {"out.db", "out.db-wal", "out.db-shm", "cp"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        remove(json_printf("%s/%s", verbs_folder(w->v), names[i]));
}

static void fill_table(struct world *w)
{
    struct sl_table_port *table = fault_table(&w->fault, "dynamodb://main");
    struct sl_table_op ops[ITEMS];
    struct sl_result results[ITEMS];
    for (size_t i = 0; i < ITEMS; i++)
        ops[i] = (struct sl_table_op){
            .verb = SL_TABLE_PUT,
            .key = json_span(json_printf("{'PK':{'S':'i%zu'},'SK':{'S':'a'}}", i)),
            .item = json_span(json_printf("{'PK':{'S':'i%zu'},'SK':{'S':'a'},'v':{'N':'%zu'}}", i, i))};
    table->apply(table, ops, ITEMS, results, &w->fault.call);
    for (size_t i = 0; i < ITEMS; i++)
        assert_result(results[i], SL_OK, NULL);
    table->close(table);
}

/* Copies the files below the folder to s3://bucket/NAME/. */
static void fill_bucket(struct world *w, const char *name)
{
    char *root = strdup(json_printf("%s/%s", verbs_folder(w->v), name)), *roots[] = {root, NULL};
    struct sl_object_port *port = fault_objects(&w->fault, "s3://bucket");
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *entry; (entry = fts_read(walk));)
        if (entry->fts_info == FTS_F) {
            char *bytes = test_read(entry->fts_path, NULL);
            const char *key = json_printf("%s%s", name, entry->fts_path + strlen(root));
            assert_result(fault_put_object(&w->fault, port, key, bytes, false), SL_OK, NULL);
            free(bytes);
        }
    fts_close(walk);
    port->close(port);
    free(root);
}

#define MAPPING                                                                                              \
    "{'UUID':'0-1','StartingPosition':'TRIM_HORIZON','State':'Enabled','EventSourceArn':'" TABLE             \
    "/stream/2026-01-02T03:04:05.678','LastModified':1700000000}"

static void a_table_is_read_by_its_name(void **state)
{
    struct world *w = *state;
    fill_table(w);
    w->mapping = "{'EventSourceMappings':[" MAPPING "]}";
    const char *url = strchr(w->endpoint, '=') + 1;
    const char *const places[] = {
        "main", "main --region us-east-1", json_printf("main --endpoint-url %s", url),
        json_printf("main --region us-east-1 --endpoint-url %s", url), "dynamodb://main?region=us-east-1"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        fresh(w);
        verb_assert(w->v, verb(w->v, "backfill --function f --table %s", places[i]), 0,
                    "items              60");
        verb_assert(w->v, 0, 0, "the mapping 0-1 has missed nothing since 2026-01-02T03:04:05.678Z");
        assert_string_equal(rows(w), "60");
    }
    w->mapping = MAPPING;
    verb_assert(w->v, verb(w->v, "backfill --mapping 0-1 --table main"), 0, "0 written, 60 there already");
    w->mapping = "{}";
    verb_assert(w->v, verb(w->v, "backfill --mapping 0-2 --table main"), 2, "0-2");
    verb_assert(w->v, verb(w->v, "backfill --mapping 0-1 --table none"), 2, "none");
    verb_assert(w->v, verb(w->v, "backfill --keys SK --table main" SINCE), 2,
                "its key attributes are PK,SK, not SK");
}

/* Returns its place in the bucket; the caller frees it. */
static char *fill_export(struct world *w)
{
    char *lines = test_export_lines(1, ITEMS, 90), *place;
    const struct test_export_file files[] = {{"a.json", sl_span_str(lines)}, {"b.json", SL_LIT("")}};
    char *path = test_export_write(&(struct test_export){.files = files, .n = 2},
                                   json_printf("%s/dumps", verbs_folder(w->v)));
    fill_bucket(w, "dumps");
    assert_true(asprintf(&place, "s3://bucket/%s/", strstr(path, "dumps")) > 0);
    free(lines);
    free(path);
    return place;
}

static void what_is_refused_for_now_is_done_later(void **state)
{
    struct world *w = *state;
    fill_table(w);
    char *export = fill_export(w);
    for (w->refused = 2; w->refused < 6; w->refused++) {
        fresh(w);
        verb_assert(w->v, verb(w->v, "backfill --segments 4 --table main" SINCE), 0, "items              60");
        assert_string_equal(rows(w), "60");
        fresh(w);
        verb_assert(w->v, verb(w->v, "backfill --verify-first --keys PK,SK --export %s" SINCE, export), 0,
                    "items              60, as the manifest says");
        assert_string_equal(rows(w), "60");
    }
    assert_null(fake_s3_fault(w->bucket));
    assert_null(fake_dynamodb_fault(w->tables));
    free(export);
}

/* Changes from 10:00:00 on, one a second. */
static void fill_archive(struct world *w)
{
    struct sl_object_port *port = fault_objects(&w->fault, "s3://bucket");
    for (int i = 0; i < 40; i++) {
        const char *line = json_printf(
            "{'eventID':'e%d','eventName':'INSERT','dynamodb':{'ApproximateCreationDateTime':%d,'Keys':{'PK':"
            "{"
            "'S':'i%d'}},'NewImage':{'PK':{'S':'i%d'}},'SequenceNumber':'%d'},'eventSourceARN':'" TABLE
            "/stream/2026-01-01T00:00:00.000'}\n",
            i, 1795168800 + i, i, i, 1000 + i);
        assert_result(fault_put_object(&w->fault, port, json_printf("archive/%02d.jsonl", i), line, false),
                      SL_OK, NULL);
    }
    port->close(port);
}

static void an_archive_in_a_bucket_is_restored(void **state)
{
    struct world *w = *state;
    const char *line = "backfill --config restore.json --keys PK --checkpoint cp --archive "
                       "s3://bucket/archive/" UNTIL;
    fill_archive(w);
    w->refused = 3;
    verb_assert(w->v, verb(w->v, "%s --plan", line), 0, "nothing was written");
    verb_assert(w->v, 0, 0, "the items are kept for the run in temp/sluice-restore-");
    verb_assert(w->v, verb(w->v, "%s", line), 0, "was folded before");
    assert_string_equal(rows(w), "30");
    assert_null(fake_s3_fault(w->bucket));
    fresh(w);
    verb_assert(w->v,
                verb(w->v, "backfill --config restore.json --keys PK --archive s3://bucket/none/" UNTIL), 2,
                "holds no object of an archive");
}

/* From each request on. A run that goes on is given a quarter of an hour, by its own clock. */
static void a_service_that_goes_away_ends_the_run(void **state)
{
    struct world *w = *state;
    size_t n_begun = 0;
    fill_table(w);
    fill_archive(w);
    char *export = fill_export(w);
    const char *const lines[] = {
        "backfill --checkpoint cp --segments 2 --table main" SINCE,
        json_printf("backfill --checkpoint cp --keys PK,SK --export %s" SINCE, export),
        "backfill --config restore.json --keys PK --checkpoint cp --archive s3://bucket/archive/" UNTIL};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        int status = 1;
        for (size_t k = 1; status != 0; k += i == 2 ? 4 : 1) {
            fresh(w);
            w->n = 0;
            w->down_from = k;
            status = verb(w->v, "%s", lines[i]);
            w->down_from = 0;
            if (status == 0)
                break;
            verb_assert(w->v, status, status, "503");
            verb_assert(w->v, status, status, "sluice backfill: ");
            if (status == 1)
                verb_assert(w->v, 1, 1, "was done for 15 minutes: ");
            n_begun += status == 1;
            verb_assert(w->v, verb(w->v, "%s", lines[i]), 0, "");
            assert_string_equal(rows(w), i == 2 ? "30" : "60");
        }
    }
    assert_true(n_begun > 1);
    free(export);
}

/* A line every ten seconds by the clock of the run, and its limit is kept to. */
static void a_long_run_says_how_far_it_is(void **state)
{
    struct world *w = *state;
    fill_table(w);
    char *export = fill_export(w);
    verb_assert(w->v, verb(w->v, "backfill --write-units 1 --table main" SINCE), 0, "items              60");
    verb_assert(w->v, 0, 0, "sluice backfill: 60 items, 1 a second, 100.0 %, about 0 s left\n");
    fresh(w);
    verb_assert(w->v, verb(w->v, "backfill --quiet --write-units 1 --table main" SINCE), 0,
                "items              60");
    assert_null(strstr(verb_err(w->v), " a second"));
    fresh(w);
    verb_assert(w->v, verb(w->v, "backfill --write-units 1 --keys PK,SK --export %s" SINCE, export), 0,
                " %, about ");
    assert_string_equal(rows(w), "60");
    free(export);
}

/* SIGTERM while it waits: what is done is kept, and the next run goes on. */
static void a_run_that_is_stopped_goes_on(void **state)
{
    struct world *w = *state;
    fill_table(w);
    disk_fault->skips_sleep = false;
    verb_assert(w->v, verb_stop(w->v, 150, "backfill --checkpoint cp --write-units 1 --table main" SINCE), 1,
                "sluice backfill: not done; the same command goes on from the checkpoint");
    verb_assert(
        w->v, verb_stop(w->v, 150, "backfill --write-units 1 --table main" SINCE), 1,
        "not done; without a --checkpoint it begins anew; what is there already is not written again");
    verb_assert(w->v, verb(w->v, "backfill --checkpoint cp --table main" SINCE), 0, "items              60");
    assert_string_equal(rows(w), "60");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_table_is_read_by_its_name),        TEST(what_is_refused_for_now_is_done_later),
        TEST(an_archive_in_a_bucket_is_restored), TEST(a_service_that_goes_away_ends_the_run),
        TEST(a_long_run_says_how_far_it_is),      TEST(a_run_that_is_stopped_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
