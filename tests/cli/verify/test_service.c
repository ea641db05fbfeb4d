/* `sluice verify` on a table of DynamoDB (tests/support/fake_dynamodb.h): how the table is named, which
 * tables it cannot be, whose items a ledger counts, and a service that refuses for a while. */
#include "tests/support/disk_fault.h"
#include "tests/support/fake_dynamodb.h"
#include "tests/support/fake_s3.h"
#include "tests/support/honest.h"
#include "tests/support/tables.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REPLICA "{'name':'replica','handler':'replicate','to':'sqlite:${DIR}/out.db?table=replica'}"
#define TOTALS(ledger)                                                                                       \
    "{'name':'totals','handler':'aggregate','to':'dynamodb://side','ledger':" ledger                         \
    ",'counters':[{'key':{'PK':'ALL'},'add':{'items':1}}]}"

#define ITEMS 12

static struct tables *t;
static struct fake_dynamodb *service;
static struct scripted_server *server;
static char endpoint[100];
static size_t fails_from, fails_to; /* requests, from 0 */
static const char *description;     /* NULL, or what DescribeTable says */

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    if (request->number >= fails_from && request->number < fails_to) {
        *reply = (struct scripted_reply){
            .status = 500,
            .headers = "content-type: application/x-amz-json-1.0\r\n",
            .body = SL_LIT("{\"__type\":\"com.amazonaws.dynamodb.v20120810#InternalServerError\","
                           "\"message\":\"not now\"}"),
            .with_crc = true};
        return;
    }
    char operation[64];
    honest_operation(request, operation, sizeof(operation));
    if (description && strcmp(operation, "DescribeTable") == 0)
        *reply = (struct scripted_reply){.status = 200, .body = json_span(description), .with_crc = true};
    else
        fake_dynamodb_answer(service, request, reply);
}

/* The items are in the table "main", and the replica has them. */
static int set_up(void **state)
{
    (void)state;
    fails_from = fails_to = 0;
    description = NULL;
    t = tables_new(REPLICA);
    service = fake_dynamodb_open(t->s->folder);
    server = scripted_server_start(answer, NULL);
    snprintf(endpoint, sizeof(endpoint), "AWS_ENDPOINT_URL_DYNAMODB=%s", scripted_server_url(server));
    verb_set(t->v, endpoint);
    verb_set(t->v, "AWS_MAX_ATTEMPTS=1");
    tables_sql(
        t, "fake.db",
        "CREATE TABLE IF NOT EXISTS main (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID; "
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) INSERT INTO main "
        "SELECT '{\"PK\":{\"S\":\"i' || x || '\"},\"SK\":{\"S\":\"s\"}}', '{\"PK\":{\"S\":\"i' || x || "
        "'\"},\"SK\":{\"S\":\"s\"},\"n\":{\"N\":\"1\"}}' FROM c",
        ITEMS);
    verb_assert(t->v, verb(t->v, "backfill --config %s --table main --unsafe-order", t->s->config_path), 0,
                "");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_null(fake_dynamodb_fault(service));
    scripted_server_stop(server);
    fake_dynamodb_close(service);
    tables_destroy(t);
    return 0;
}

static void configure(const char *routes)
{
    test_write(t->s->config_path, json_printf("{'on_failure':'report','routes':[%s]}", routes));
}

/* ---- which table ---- */

static void every_name_of_the_table_is_understood(void **state)
{
    (void)state;
    const char *url = scripted_server_url(server);
    tables_verb(t, 0, "result: 12 equal", "verify --table main");
    tables_verb(t, 4, "no such table", "verify --table arn:aws:dynamodb:us-east-1:123456789012:table/main");
    const struct scripted_request *last =
        scripted_server_request(server, scripted_server_requests(server) - 1);
    assert_span_is(last->body, "{\"TableName\":\"arn:aws:dynamodb:us-east-1:123456789012:table/main\"}");
    tables_verb(t, 0, "result: 12 equal", "verify --table dynamodb://main?region=us-east-1");
    verb_set(t->v, "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:9");
    tables_verb(t, 4, "--table main", "verify --table main");
    tables_verb(t, 0, "result: 12 equal", "verify --table main --endpoint-url %s", url);
    verb_set(t->v, "AWS_REGION=");
    tables_verb(t, 2, "--table main", "verify --table main");
    tables_verb(t, 0, "result: 12 equal", "verify --table main --region us-east-1 --endpoint-url %s", url);
    tables_verb(t, 4, "--table nosuch", "verify --table nosuch --region us-east-1 --endpoint-url %s", url);
}

static void a_table_that_a_route_writes_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *route, *what; /* NULL: it may be */
    } cases[] = {
        {"{'name':'r','handler':'replicate','to':'dynamodb://main'}", "(its target)"},
        {"{'name':'r','handler':'replicate','to':'dynamodb://"
         "side','key':{'PK':'{PK}'},'guard':{'table':'main'"
         "}}",
         "(its guard)"},
        {"{'name':'r','handler':'replicate','to':'dynamodb://side','key':{'PK':'{PK}'},'tombstones':{'table':"
         "'main'}}",
         "(its tombstones)"},
        {TOTALS("{'table':'main'}"), "(its ledger)"},
        {"{'name':'r','handler':'aggregate','own_rows':'mark','to':'dynamodb://"
         "main','ledger':{'table':'side'},"
         "'counters':[{'key':{'PK':'ALL','SK':'-'},'add':{'items':1}}]}",
         NULL},
        {"{'name':'r','handler':'replicate','to':'sqlite:${DIR}/out.db?table=main'}", NULL},
        {"{'name':'r','handler':'replicate','to':'dynamodb://nosuch'}", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        configure(cases[i].route);
        tables_run(t, "verify --table main --no-totals");
        const char *refused = strstr(verb_err(t->v), "--table main is the table that the route r");
        const char *totals = strstr(verb_err(t->v), "--table main is the table that the route totals");
        if (cases[i].what && !((refused || totals) && strstr(verb_err(t->v), cases[i].what)))
            fail_msg("%s: %s", cases[i].route, verb_err(t->v));
        if (!cases[i].what && refused)
            fail_msg("%s: %s", cases[i].route, verb_err(t->v));
    }
}

/* ---- whose items a ledger counts ---- */

static void a_ledger_of_another_table_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *said;
        bool is_other;
    } cases[] = {
        {"{'table':{'S':'main'},'region':{'S':'us-east-1'},'account':{'S':'123456789012'}}", false},
        {"{'table':{'S':'main'}}", false},
        {"{'table':{'S':'main'},'account':{'S':'123456789012'}}", false},
        {"{'table':{'N':'1'}}", false},
        {"{}", false},
        {"{'table':{'S':'mail'}}", true},
        {"{'table':{'S':'main2'},'region':{'S':'us-east-1'}}", true},
        {"{'table':{'S':'main'},'region':{'S':'eu-west-1'}}", true},
        {"{'table':{'S':'main'},'region':{'S':'us-east-1'},'account':{'S':'123456789013'}}", true},
    };
    configure(TOTALS("{'name':'mine'}"));
    verb_assert(t->v, verb(t->v, "backfill --config %s --table main --unsafe-order", t->s->config_path), 0,
                "");
    tables_verb(t, 0, "result: 13 equal", "verify --table main");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tables_sql(t, "fake.db",
                   "INSERT OR REPLACE INTO side VALUES ('{\"PK\":{\"S\":\"sluice:source:mine\"}}', "
                   "'{\"PK\":{\"S\":\"sluice:source:mine\"},\"sluice_source\":{\"M\":%s}}')",
                   json(cases[i].said));
        tables_verb(t, 0, "", "verify --table main");
        const char *told =
            strstr(verb_err(t->v), "sluice verify: the ledger of the route totals counts the items "
                                   "of the table mai");
        if (cases[i].is_other != (told != NULL))
            fail_msg("%s: %s", cases[i].said, verb_err(t->v));
        tables_verb(t, cases[i].is_other ? 2 : 0,
                    cases[i].is_other ? "counts the items of the table mai" : "", "repair --table main");
    }
}

#define DESCRIPTION(arn, more)                                                                               \
    "{'Table':{'TableName':'main','TableArn':'" arn                                                          \
    "','KeySchema':[{'AttributeName':'PK','KeyType':'HASH'},{"                                               \
    "'AttributeName':'SK','KeyType':'RANGE'}],'AttributeDefinitions':[{'AttributeName':'PK','AttributeType'" \
    ":"                                                                                                      \
    "'S'},{'AttributeName':'SK','AttributeType':'S'}],'ItemCount':12,'TableSizeBytes':500,'"                 \
    "BillingModeSummary':{'BillingMode':"                                                                    \
    "'PAY_PER_REQUEST'}" more "}}"

/* DynamoDB Local has one Region and account, whatever its clients say. */
static void what_dynamodb_local_says_of_itself_does_not_count(void **state)
{
    (void)state;
    configure(TOTALS("{'name':'mine'}"));
    verb_assert(t->v, verb(t->v, "backfill --config %s --table main --unsafe-order", t->s->config_path), 0,
                "");
    tables_sql(
        t, "fake.db", "INSERT OR REPLACE INTO side VALUES ('{\"PK\":{\"S\":\"sluice:source:mine\"}}', '%s')",
        json("{'PK':{'S':'sluice:source:mine'},'sluice_source':{'M':{'table':{'S':'main'},'region':{'S':"
             "'eu-west-1'},'account':{'S':'1'}}}}"));
    tables_verb(t, 0, "counts the items of the table main", "verify --table main");
    description = DESCRIPTION("arn:aws:dynamodb:ddblocal:000000000000:table/main", "");
    tables_verb(t, 0, "result: 13 equal", "verify --table main");
    assert_null(strstr(verb_err(t->v), "counts the items"));
}

/* The table's latest stream is known: another's checkpoint says nothing of it. */
static void the_consumer_of_another_stream_is_refused(void **state)
{
    (void)state;
    description =
        DESCRIPTION("arn:aws:dynamodb:us-east-1:123456789012:table/main",
                    ",'LatestStreamArn':'arn:aws:dynamodb:us-east-1:123456789012:table/main/stream/now',"
                    "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_AND_OLD_IMAGES'}");
    verb_write(t->v, "place.json",
               "{'stream':'arn:aws:dynamodb:us-east-1:123456789012:table/main/stream/old','through'"
               ":'2026-01-01T00:00:00Z'}");
    tables_verb(
        t, 2,
        "place.json: it is not of the table's stream, arn:aws:dynamodb:us-east-1:123456789012:table/main/"
        "stream/now",
        "verify --table main --consumer place.json");
    verb_write(t->v, "place.json",
               "{'stream':'arn:aws:dynamodb:us-east-1:123456789012:table/main/stream/now','through'"
               ":'2026-01-01T00:00:00Z'}");
    tables_verb(t, 0, "result: 12 equal", "verify --table main --consumer place.json");
}

static void an_archive_in_s3_is_read_where_it_is(void **state)
{
    (void)state;
    struct fake_s3 *s3 = fake_s3_open();
    struct scripted_server *bucket = scripted_server_start(fake_s3_answer, s3);
    char variable[100];
    snprintf(variable, sizeof(variable), "AWS_ENDPOINT_URL_S3=%s", scripted_server_url(bucket));
    verb_set(t->v, variable);
    configure(REPLICA ",{'name':'keep','handler':'archive','to':'s3://bucket/kept','format':'record'}");
    tables_verb(t, 3, "keep: there are no objects in s3://bucket/kept, so nothing is proven",
                "verify --table main --archives");
    assert_true(scripted_server_requests(bucket) > 0);
    for (size_t i = 0; i < scripted_server_requests(bucket); i++)
        assert_string_equal(scripted_server_request(bucket, i)->method, "GET");
    scripted_server_stop(bucket);
    fake_s3_close(s3);
}

/* A ledger that nobody has begun, or that is nowhere, says nothing. */
static void a_ledger_that_says_nothing_fits(void **state)
{
    (void)state;
    static const char *const ledgers[] = {"{'table':'empty'}", "{'table':'nowhere'}"};
    tables_sql(t, "out.db",
               "CREATE TABLE empty (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID; CREATE TABLE "
               "totals (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID");
    for (size_t i = 0; i < 2; i++) {
        configure(json_printf(
            REPLICA ",{'name':'totals','handler':'aggregate','to':'sqlite:${DIR}/out.db?table=totals',"
                    "'ledger':%s,'counters':[{'key':{'PK':'ALL'},'add':{'items':1}}]}",
            ledgers[i]));
        tables_run(t, "verify --table main");
        assert_null(strstr(verb_err(t->v), "counts the items"));
        tables_verb(t, 0, "result: 12 equal", "verify --table main --routes replica");
    }
}

/* ---- a service that refuses ---- */

static void a_throttled_service_changes_nothing(void **state)
{
    (void)state;
    tables_sql(t, "out.db", "DELETE FROM replica WHERE key LIKE '%%\"i3\"%%'");
    fake_dynamodb_trouble(service, 7);
    for (int i = 0; i < 3; i++)
        tables_verb(t, 1, "result: 11 equal, 1 different (1 missing), 0 pending", "verify --table main");
    assert_true(fake_dynamodb_troubled(service) > 0);
}

/* So many reads fail: they are tried again, progress is told, the place is kept; and when it is too long, the
 * same command goes on afterwards. Nothing is counted twice. */
static void a_service_that_is_away_for_a_while_is_waited_for(void **state)
{
    (void)state;
    tables_sql(t, "out.db", "DELETE FROM replica WHERE key LIKE '%%\"i3\"%%'");
    size_t n = scripted_server_requests(server);
    tables_verb(t, 1, "result: 11 equal, 1 different", "verify --table main");
    size_t whole = scripted_server_requests(server) - n;
    for (size_t at = 1; at < whole; at++) {
        fails_from = scripted_server_requests(server) + at;
        fails_to = fails_from + 3 + at % 9;
        tables_verb(t, 1, "result: 11 equal, 1 different (1 missing), 0 pending",
                    "verify --table main --checkpoint place");
        assert_non_null(strstr(verb_err(t->v), "; trying again\n"));
        fails_from = scripted_server_requests(server) + at;
        fails_to = SIZE_MAX;
        tables_verb(t, 4, "InternalServerError", "verify --table main --checkpoint place --json");
        assert_non_null(strstr(verb_err(t->v), " a second; "));
        assert_non_null(strstr(verb_out(t->v), "\"done\":false"));
        fails_to = 0;
        tables_verb(t, 1, "result: 11 equal, 1 different (1 missing), 0 pending",
                    "verify --table main --checkpoint place");
        assert_string_equal(verb_read(t->v, "place"), "");
    }
}

/* What the service says was consumed is paid in time. */
static void a_budget_of_reads_is_kept(void **state)
{
    (void)state;
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    tables_verb(t, 0, "result: 12 equal", "verify --table main --read-units 1 --segments 9");
    assert_non_null(strstr(verb_err(t->v), "sluice verify: the source: 8 of 9 segments, "));
    assert_non_null(strstr(verb_err(t->v), " minutes left of this table\n"));
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(after.tv_sec - before.tv_sec >= 5); /* eight pages of 1.5 units, but for the last */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_name_of_the_table_is_understood),
        TEST(a_table_that_a_route_writes_is_refused),
        TEST(a_ledger_of_another_table_is_told),
        TEST(what_dynamodb_local_says_of_itself_does_not_count),
        TEST(the_consumer_of_another_stream_is_refused),
        TEST(an_archive_in_s3_is_read_where_it_is),
        TEST(a_ledger_that_says_nothing_fits),
        TEST(a_throttled_service_changes_nothing),
        TEST(a_service_that_is_away_for_a_while_is_waited_for),
        TEST(a_budget_of_reads_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
