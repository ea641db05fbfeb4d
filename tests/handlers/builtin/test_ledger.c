/* The aggregate handler's ledger: the table that it belongs to, epochs and restored tables, and what is
 * looked up in it before a record is rejected. */
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals'," members "}]}"
#define COUNTERS "'counters':[{'key':{'PK':'{status}'},'add':{'n':1,'sum':'{total}'}}]"

#define ITEM(id, status, total) PK(id) ",'status':" S(status) ",'total':" N(total)
/* Any record: what says where it comes from, and when it was made. */
#define FROM(from, time, event, seq, images)                                                                 \
    "{'eventID':'e" seq "','eventName':'" event "','eventVersion':'1.1','eventSource':'aws:dynamodb'," from  \
    "'dynamodb':{'ApproximateCreationDateTime':" time                                                        \
    ",'Keys':{" PK("a") "}" images ",'SequenceNumber':'" seq                                                 \
                        "','SizeBytes':10,'StreamViewType':'NEW_AND_OLD_IMAGES'}}"
#define SOURCE(region, account, table, label)                                                                \
    "'awsRegion':'" region "','eventSourceARN':'arn:aws:dynamodb:" region ":" account ":table/" table        \
    "/stream/" label "',"
#define ORDERS SOURCE("eu-west-1", "123456789012", "orders", "2026-01-01T00:00:00.000")
#define OTHER  SOURCE("eu-west-1", "123456789012", "others", "2026-01-01T00:00:00.000")

#define INSERT(from, seq, total) FROM(from, "1767265199", "INSERT", seq, NEW(ITEM("a", "OPEN", total)))
#define MODIFY(from, seq, total, was)                                                                        \
    FROM(from, "1767265199", "MODIFY", seq, NEW(ITEM("a", "OPEN", total)) OLD(ITEM("a", "OPEN", was)))

static void expect_totals(struct stage *s, const char *wanted)
{
    char *got = stage_query(s, "db", "SELECT item FROM totals WHERE item NOT LIKE '%sluice:%' ORDER BY key");
    assert_string_equal(got, json(wanted));
    free(got);
}

static void expect_fatal(struct stage *s, const char *code, const char *text)
{
    assert_int_equal(s->answer.error.status, SL_FATAL);
    assert_string_equal(s->answer.error.code, code);
    if (!strstr(s->answer.error.text, text))
        fail_msg("\"%s\" does not say \"%s\"", s->answer.error.text, text);
}

static bool logs(struct stage *s, const char *text)
{
    char *log = stage_log(s);
    bool found = strstr(log, text) != NULL;
    free(log);
    return found;
}

/* Changes the database behind the handlers' back. */
static void change_rows(struct stage *s, const char *sql)
{
    char path[256];
    sqlite3 *db = NULL;
    snprintf(path, sizeof(path), "%s/db", s->folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_true(sqlite3_changes(db) > 0);
    sqlite3_close(db);
}

/* ---- the table that it belongs to ---- */

#define ONE  "{'PK':{'S':'OPEN'},'n':{'N':'1'},'sum':{'N':'1'}}\n"
#define NEXT "{'PK':{'S':'OPEN'},'n':{'N':'1'},'sum':{'N':'5'}}\n"

static void another_table_with_equal_keys_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *second;
        bool is_same;
    } cases[] = {
#define CASE(from, same) {MODIFY(from, "9", "5", "1"), same}
        CASE(ORDERS, true),
        CASE(SOURCE("eu-west-1", "123456789012", "orders", "2030-12-31T00:00:00.000"),
             true), /* a new stream */
        CASE(SOURCE("eu-west-1", "123456789012", "others", "2026-01-01T00:00:00.000"), false),
        CASE(SOURCE("eu-west-1", "123456789012", "order", "2026-01-01T00:00:00.000"), false),
        CASE(SOURCE("eu-west-2", "123456789012", "orders", "2026-01-01T00:00:00.000"), false),
        CASE(SOURCE("eu-west-1", "210987654321", "orders", "2026-01-01T00:00:00.000"), false),
        /* What is not said matches: records of Kinesis and of exports. */
        CASE("'awsRegion':'eu-west-1','tableName':'orders',", true),
        CASE("'tableName':'orders',", true),
        CASE("", true),
        CASE("'awsRegion':'us-east-1','eventSourceARN':'" SL_REPLAYED_ARN "',", true),
        CASE("'awsRegion':'eu-west-1','tableName':'others',", false),
        CASE("'awsRegion':'eu-west-2','tableName':'orders',", false),
        CASE("'eventSourceARN':'arn:aws:kinesis:eu-west-9:1:stream/"
             "s','awsRegion':'eu-west-1','tableName':'orders',",
             true),
    };
    enum { NEXT_BATCH, NEXT_PROCESS, SAME_BATCH, WAYS };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int way = 0; way < WAYS; way++) {
            struct stage *s = stage_new(ROUTE(COUNTERS), NULL);
            const char *first = INSERT(ORDERS, "1", "1");
            if (way != SAME_BATCH)
                stage_deliver_all(s, json_printf("{'Records':[%s]}", first));
            if (way == NEXT_PROCESS)
                stage_reopen(s, NULL);
            stage_deliver(s, sl_span_str(json_printf("{'Records':[%s%s%s]}", way == SAME_BATCH ? first : "",
                                                     way == SAME_BATCH ? "," : "", cases[i].second)));
            if (!cases[i].is_same)
                expect_fatal(s, "TwoTables", "come from");
            else if (s->answer.is_error || s->answer.checkpoint != s->n)
                fail_msg("case %zu, way %d: %s", i, way, s->answer.error.text);
            expect_totals(s, cases[i].is_same ? NEXT : way == SAME_BATCH ? "" : ONE);
            stage_destroy(s);
        }
    }
}

/* A Kinesis stream may carry the changes of several tables: each record says of which it is. */
static void two_tables_in_one_stream_are_two(void **state)
{
    (void)state;
#define CARRIED(region, table)                                                                               \
    "'eventSourceARN':'arn:aws:kinesis:eu-west-1:1:stream/s','awsRegion':'" region "','tableName':'" table   \
    "',"
    static const struct {
        const char *event;
        bool is_same;
    } cases[] = {
        {EVENT(INSERT(CARRIED("eu-west-1", "orders"), "1", "1"),
               MODIFY(CARRIED("eu-west-1", "orders"), "2", "2", "1"),
               MODIFY(CARRIED("eu-west-1", "orders"), "9", "5", "2")),
         true},
        {EVENT(INSERT(CARRIED("eu-west-1", "orders"), "1", "1"),
               MODIFY(CARRIED("eu-west-1", "orders"), "2", "2", "1"),
               MODIFY(CARRIED("eu-west-1", "others"), "9", "5", "2")),
         false},
        {EVENT(INSERT(CARRIED("eu-west-1", "orders"), "1", "1"),
               MODIFY(CARRIED("eu-west-1", "orders"), "2", "2", "1"),
               MODIFY(CARRIED("eu-west-2", "orders"), "9", "5", "2")),
         false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(ROUTE(COUNTERS), NULL);
        stage_deliver(s, json_span(cases[i].event));
        if (!cases[i].is_same)
            expect_fatal(s, "TwoTables", "come from");
        expect_totals(s, cases[i].is_same ? NEXT : "");
        stage_destroy(s);
    }
}

static void a_refusal_names_both_tables_and_says_what_to_do(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(COUNTERS), NULL);
    stage_deliver_all(s, EVENT(INSERT(ORDERS, "1", "1")));
    stage_deliver(s, json_span(EVENT(MODIFY(OTHER, "9", "5", "1"))));
    expect_fatal(s, "TwoTables", "the ledger t counts the items of orders (eu-west-1, account 123456789012)");
    expect_fatal(s, "TwoTables", "come from others (eu-west-1, account 123456789012)");
    expect_fatal(s, "TwoTables", "raise \"epoch\" above 0");
    stage_destroy(s);
}

/* Kinesis' records do not say the account; the stream's do, from then on it counts. */
static void a_ledger_learns_what_its_first_records_did_not_say(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(COUNTERS), NULL);
    stage_deliver_all(s, EVENT(INSERT("", "1", "1")));
    stage_deliver_all(s, EVENT(MODIFY("'tableName':'orders',", "2", "2", "1")));
    stage_deliver_all(s, EVENT(MODIFY("'awsRegion':'eu-west-1','tableName':'orders',", "3", "3", "2")));
    stage_deliver_all(s, EVENT(MODIFY(ORDERS, "4", "4", "3")));
    stage_reopen(s, NULL);
    stage_deliver(s, json_span(EVENT(MODIFY(SOURCE("eu-west-1", "1", "orders", "x"), "5", "5", "4"))));
    expect_fatal(s, "TwoTables", "orders (eu-west-1, account 123456789012)");
    expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'1'},'sum':{'N':'4'}}\n");
    stage_destroy(s);
}

/* Two routes of one table, and events of two tables, need no word about it. */
static void what_has_no_ledger_of_items_takes_every_table(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE("'per':'event'," COUNTERS), NULL);
    stage_deliver_all(s, EVENT(INSERT(ORDERS, "1", "1"), INSERT(OTHER, "2", "1")));
    expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'2'},'sum':{'N':'2'}}\n");
    stage_destroy(s);
}

/* In a child: the exit status says whether the batch was done (0), refused (1), or anything else. */
static int race(struct stage *s, int start, const char *event)
{
    char go;
    stage_reopen(s, NULL);
    if (read(start, &go, 1) != 1)
        return 2;
    stage_deliver(s, sl_span_str(event));
    if (!s->answer.is_error && s->answer.checkpoint == s->n)
        return 0;
    return s->answer.error.status == SL_FATAL && strcmp(s->answer.error.code, "TwoTables") == 0 ? 1 : 3;
}

static void of_two_processes_that_begin_at_once_one_wins(void **state)
{
    (void)state;
    const char *events[] = {json(EVENT(INSERT(ORDERS, "1", "1"))), json(EVENT(INSERT(OTHER, "1", "1")))};
    for (int round = 0; round < 10; round++) {
        struct stage *s = stage_new(ROUTE(COUNTERS), NULL);
        sl_pipeline_close(s->p);
        s->p = NULL;
        int start[2], status, results[4] = {0};
        assert_int_equal(pipe(start), 0);
        for (int i = 0; i < 2; i++)
            if (fork() == 0)
                _exit(race(s, start[0], events[i]));
        assert_int_equal(write(start[1], "gg", 2), 2);
        for (int i = 0; i < 2; i++) {
            assert_true(wait(&status) > 0);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 4);
            results[WEXITSTATUS(status)]++;
        }
        close(start[0]);
        close(start[1]);
        if (results[0] != 1 || results[1] != 1)
            fail_msg("round %d: %d won, %d lost", round, results[0], results[1]);
        expect_totals(s, ONE);
        stage_destroy(s);
    }
}

/* ---- restored tables ---- */

#define LATER(event, seq, images) FROM(ORDERS, "1767265999", event, seq, images)

static void a_table_that_was_restored_is_noticed(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(COUNTERS), NULL);
    stage_deliver_all(s, EVENT(INSERT(ORDERS, "900", "1"), MODIFY(ORDERS, "901", "2", "1")));
    /* Delivered again, and older by both: nothing to say. */
    stage_deliver_all(s, EVENT(INSERT(ORDERS, "900", "1"), MODIFY(ORDERS, "901", "2", "1")));
    stage_deliver_all(s, EVENT(INSERT(ORDERS, "900", "1")));
    /* The same change, at another time: it is the one that was counted. */
    stage_deliver_all(s,
                      EVENT(LATER("MODIFY", "901", NEW(ITEM("a", "OPEN", "2")) OLD(ITEM("a", "OPEN", "1")))));
    assert_false(logs(s, "RefusedNewer"));
    stage_deliver_all(s,
                      EVENT(LATER("INSERT", "100", NEW(ITEM("a", "OPEN", "7"))),
                            LATER("MODIFY", "101", NEW(ITEM("a", "OPEN", "8")) OLD(ITEM("a", "OPEN", "7")))));
    assert_true(logs(s, "2 changes were not counted"));
    assert_true(logs(s, "RefusedNewer"));
    assert_true(logs(s, "raise \"epoch\" above 0"));
    expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'1'},'sum':{'N':'2'}}\n");
    stage_destroy(s);
}

/* The last release's rows have no time: they cannot warn, and count as ever. */
static void rows_without_a_time_do_not_warn(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(COUNTERS), NULL);
    stage_deliver_all(s, EVENT(FROM(ORDERS, "0", "INSERT", "900", NEW(ITEM("a", "OPEN", "1")))));
    char *rows = stage_query(s, "db", "SELECT item FROM totals WHERE item LIKE '%\"order\"%'");
    assert_null(strstr(rows, "\"at\""));
    free(rows);
    stage_deliver_all(s, EVENT(LATER("INSERT", "100", NEW(ITEM("a", "OPEN", "7")))));
    assert_false(logs(s, "RefusedNewer"));
    stage_destroy(s);
}

#define ROW_ORDER                                                                                            \
    "SELECT substr(item, instr(item, '\"order\"'), 60) FROM totals WHERE item LIKE '%\"order\"%'"
#define ZEROS "000000000000000000000000000000000000"

static void an_epoch_takes_a_restored_table_over(void **state)
{
    (void)state;
    static const char *const orders[] = {"\"order\":{\"S\":\"" ZEROS "0901\"}",
                                         "\"order\":{\"S\":\":000002:" ZEROS};
    struct stage *s = stage_new(ROUTE(COUNTERS), NULL);
    stage_deliver_all(s, EVENT(INSERT(ORDERS, "900", "1"), MODIFY(ORDERS, "901", "2", "1")));
    char *order = stage_query(s, "db", ROW_ORDER);
    assert_true(strncmp(order, orders[0], strlen(orders[0])) == 0);
    free(order);
    stage_deliver(s, json_span(EVENT(MODIFY(OTHER, "9", "5", "1"))));
    expect_fatal(s, "TwoTables", "raise \"epoch\" above 0");
    stage_reopen(s, ROUTE(COUNTERS ",'epoch':2"));
    stage_deliver_all(s, EVENT(FROM("", "0", "INSERT", "1", NEW(ITEM("a", "OPEN", "7"))))); /* the backfill */
    expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'1'},'sum':{'N':'7'}}\n");
    stage_deliver_all(s, EVENT(MODIFY(OTHER, "9", "5", "7")));
    for (int i = 0; i < 2; i++) {
        expect_totals(s, NEXT);
        stage_deliver_all(s, EVENT(MODIFY(OTHER, "9", "5", "7")));
        stage_deliver_all(s, EVENT(FROM("", "0", "INSERT", "1", NEW(ITEM("a", "OPEN", "7")))));
        stage_reopen(s, NULL);
    }
    assert_true(logs(s, "belonged to orders (eu-west-1, account 123456789012)"));
    order = stage_query(s, "db", ROW_ORDER);
    assert_true(strncmp(order, orders[1], strlen(orders[1])) == 0);
    free(order);
    /* The old table is over, and an epoch is never lowered: by neither table. */
    stage_deliver(s, json_span(EVENT(MODIFY(ORDERS, "999", "1", "1"))));
    expect_fatal(s, "TwoTables", "others");
    stage_reopen(s, ROUTE(COUNTERS ",'epoch':1"));
    stage_deliver(s, json_span(EVENT(MODIFY(OTHER, "99", "1", "5"))));
    expect_fatal(s, "LedgerEpoch", "set \"epoch\" to 2 again");
    stage_reopen(s, ROUTE(COUNTERS));
    stage_deliver(s, json_span(EVENT(MODIFY(ORDERS, "999", "1", "1"))));
    expect_fatal(s, "LedgerEpoch", "set \"epoch\" to 2 again");
    expect_totals(s, NEXT);
    stage_destroy(s);
}

/* Whatever the first change in the new epoch is: what the old table's item contributed is gone. */
static void an_epoch_replaces_what_was_counted_before(void **state)
{
    (void)state;
#define IDLE(event, images) FROM(OTHER, "1767265999", event, "5", images)
#define NOBODY              PK("a") ",'status':" S("OPEN") /* without a total it is in no sum */
    static const struct {
        const char *first, *totals;
    } cases[] = {
        {IDLE("INSERT", NEW(NOBODY)), "0"},
        {IDLE("MODIFY", NEW(NOBODY) OLD(NOBODY)), "0"},
        {IDLE("REMOVE", OLD(NOBODY)), "0"},
        {IDLE("REMOVE", ""), "0"},
        {IDLE("INSERT", NEW(ITEM("a", "OPEN", "5"))), "5"},
        {IDLE("MODIFY", NEW(ITEM("a", "OPEN", "5")) OLD(NOBODY)), "5"},
        {IDLE("MODIFY", NEW(NOBODY) OLD(ITEM("a", "OPEN", "5"))), "0"},
        {IDLE("MODIFY", NEW(NOBODY) OLD(ITEM("a", "OPEN", "1"))), "0"},
        {IDLE("REMOVE", OLD(ITEM("a", "OPEN", "5"))), "0"},
        {FROM("", "0", "INSERT", "1", NEW(NOBODY)), "0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(ROUTE(COUNTERS ",'missing':'skip'"), NULL);
        stage_deliver_all(s, EVENT(INSERT(ORDERS, "900", "1")));
        stage_reopen(s, ROUTE(COUNTERS ",'missing':'skip','epoch':1"));
        for (int times = 0; times < 2; times++) {
            stage_deliver_all(s, json_printf("{'Records':[%s]}", cases[i].first));
            assert_int_equal(s->answer.parked, 0);
            char *sum =
                stage_query(s, "db",
                            "SELECT json_extract(item, '$.sum.N') FROM totals WHERE item LIKE '%OPEN\"}%' "
                            "AND item NOT LIKE '%sluice:%'");
            if (strncmp(sum, cases[i].totals, strlen(cases[i].totals)) != 0)
                fail_msg("case %zu: the sum is %s", i, sum);
            free(sum);
        }
        /* The old table's order is as good as none. */
        stage_deliver_all(s, EVENT(FROM(OTHER, "1767266999", "INSERT", "6", NEW(ITEM("a", "OPEN", "7")))));
        expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'1'},'sum':{'N':'7'}}\n");
        stage_destroy(s);
    }
}

static void a_row_that_nobody_understands_stops_the_route(void **state)
{
    (void)state;
    static const char *const orders[] = {"", "1", ":0000001:" ZEROS "0001", ZEROS "000x",
                                         ":000001:" ZEROS "00001"};
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        char sql[256];
        struct stage *s = stage_new(ROUTE(COUNTERS), NULL);
        stage_deliver_all(s, EVENT(INSERT(ORDERS, "1", "1")));
        snprintf(sql, sizeof(sql), "UPDATE totals SET item = replace(item, '" ZEROS "0001', '%s')",
                 orders[i]);
        change_rows(s, sql);
        stage_deliver(s, json_span(EVENT(MODIFY(ORDERS, "2", "2", "7"))));
        expect_fatal(s, "LedgerRow", "or by a later release of it");
        expect_totals(s, ONE);
        stage_destroy(s);
    }
}

/* ---- refused as a whole ---- */

#define MOST "99999999999999999999999999999999999999"

/* The old image is not what was counted, so the guessed difference has too many digits, and the true one
 * does not. */
static void a_difference_that_was_guessed_is_looked_up(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(COUNTERS), NULL);
    stage_deliver_all(s, EVENT(INSERT(ORDERS, "1", "1")));
    for (int i = 0; i < 3; i++) {
        stage_deliver_all(s, EVENT(MODIFY(ORDERS, "3", MOST, "0.1")));
        assert_int_equal(s->answer.parked, 0);
        expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'1'},'sum':{'N':'" MOST "'}}\n");
    }
    /* One that truly cannot be counted is rejected as ever. */
    stage_deliver_all(s, EVENT(MODIFY(ORDERS, "4", "0.1", MOST)));
    assert_int_equal(s->answer.parked, 1);
    stage_destroy(s);
}

/* A table may refuse a transaction without a word about the ledger's row. What was counted is done; what was
 * not is rejected. */
static void what_was_counted_is_not_rejected(void **state)
{
    (void)state;
    static const char *const routes[] = {ROUTE(COUNTERS), ROUTE(COUNTERS ",'per':'event'"),
                                         ROUTE(COUNTERS ",'ledger':{'table':'l'},'shards':3"),
                                         ROUTE(COUNTERS ",'expired':'keep'")};
    static const char *const events[] = {
        INSERT(ORDERS, "1", "1"), MODIFY(ORDERS, "2", "2", "1"),
        FROM(ORDERS, "1767265199", "REMOVE", "3", OLD(ITEM("a", "OPEN", "2"))),
        FROM("'userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'}," ORDERS, "1767265199",
             "REMOVE", "3", OLD(ITEM("a", "OPEN", "2")))};
    for (size_t r = 0; r < sizeof(routes) / sizeof(routes[0]); r++) {
        for (size_t e = 0; e < sizeof(events) / sizeof(events[0]); e++) {
            struct stage *s = stage_new(routes[r], NULL);
            const char *event = json_printf("{'Records':[%s]}", events[e]);
            stage_deliver_all(s, event);
            assert_int_equal(s->answer.parked, 0);
            s->refuses_groups = true;
            stage_deliver_all(s, event);
            if (s->answer.parked)
                fail_msg("route %zu, event %zu: a record that was counted is parked", r, e);
            stage_deliver_all(s, EVENT(MODIFY(ORDERS, "9", "3", "2")));
            assert_int_equal(s->answer.parked, 1);
            stage_destroy(s);
        }
    }
}

/* ---- options ---- */

static void readers_are_told_of_other_sub_counters(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(COUNTERS), NULL);
    stage_deliver_all(s, EVENT(INSERT("'tableName':'orders',", "1", "1")));
    stage_deliver_all(s, EVENT(MODIFY(ORDERS, "1", "1", "1"))); /* the row learns the account */
    stage_reopen(s, NULL);
    stage_deliver_all(s, EVENT(MODIFY(ORDERS, "1", "1", "1")));
    assert_false(logs(s, "shards was"));
    stage_reopen(s, ROUTE(COUNTERS ",'shards':1"));
    stage_deliver_all(s, EVENT(MODIFY(ORDERS, "2", "2", "1")));
    assert_true(logs(s, "shards was 0 and is 1: the rows that were written before still count"));
    expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'1'},'sum':{'N':'1'}}\n"
                     "{'PK':{'S':'OPEN#0'},'sum':{'N':'1'}}\n");
    stage_destroy(s);
}

/* Names of the ledger's own attributes may be those of the totals' key. */
static void key_attributes_may_have_our_names(void **state)
{
    (void)state;
#define KEYED(name) ROUTE("'counters':[{'key':{'" name "':'{status}'},'add':{'n':1}}]")
    static const char *const names[] = {"at", "source", "table", "region", "account", "epoch", "shards"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char config[512];
        snprintf(config, sizeof(config), KEYED("%s"), names[i]);
        struct stage *s = stage_new(config, NULL);
        for (int times = 0; times < 2; times++)
            stage_deliver_all(s, EVENT(INSERT(ORDERS, "1", "1"), MODIFY(ORDERS, "2", "2", "1")));
        expect_totals(s, json_printf("{'%s':{'S':'OPEN'},'n':{'N':'1'}}\n", names[i]));
        stage_destroy(s);
    }
    stage_refused(KEYED("order"), "its rows have an attribute order of their own");
    stage_refused(KEYED("sums"), "its rows have an attribute sums of their own");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_table_with_equal_keys_is_refused),
        cmocka_unit_test(two_tables_in_one_stream_are_two),
        cmocka_unit_test(a_refusal_names_both_tables_and_says_what_to_do),
        cmocka_unit_test(a_ledger_learns_what_its_first_records_did_not_say),
        cmocka_unit_test(what_has_no_ledger_of_items_takes_every_table),
        cmocka_unit_test(of_two_processes_that_begin_at_once_one_wins),
        cmocka_unit_test(a_table_that_was_restored_is_noticed),
        cmocka_unit_test(rows_without_a_time_do_not_warn),
        cmocka_unit_test(an_epoch_takes_a_restored_table_over),
        cmocka_unit_test(an_epoch_replaces_what_was_counted_before),
        cmocka_unit_test(a_row_that_nobody_understands_stops_the_route),
        cmocka_unit_test(a_difference_that_was_guessed_is_looked_up),
        cmocka_unit_test(what_was_counted_is_not_rejected),
        cmocka_unit_test(readers_are_told_of_other_sub_counters),
        cmocka_unit_test(key_attributes_may_have_our_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
