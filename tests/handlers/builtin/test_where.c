/* Which routes a backfill may run, and what replicate makes of items, which are no changes, and of "where".
 */
#include "handlers/pipeline/route.h"
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define CONFIG(route) "{'on_failure':'report','report_batch_item_failures':true,'routes':[" route "]}"
#define REPLICA(more)                                                                                        \
    CONFIG("{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica'" more "}")
#define TOTALS(key, more)                                                                                    \
    CONFIG("{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals','counters':[{'key':"      \
           "{'PK':'" key "'},'add':{'n':1}}]" more "}")
#define COUNTER(members)                                                                                     \
    CONFIG("{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals','counters':[{'key':"      \
           "{'PK':'a'}," members "}]}")
#define KEYS_ONLY(pattern) ",'when':{'pattern':[{'dynamodb':{'Keys':{" pattern "}}}]}"

/* ---- which routes ---- */

static const struct {
    const char *config, *refusal; /* NULL: it may be run */
    bool needs_table;
} routes[] = {
    {REPLICA(""), NULL, false},
    {REPLICA(",'guard':{'table':'g'}"), NULL, false},
    {REPLICA(",'where':{'v':[1]}"), NULL, false},
    {REPLICA(",'key':{'PK':'{PK}#{Keys.PK}'}"), NULL, false},
    {REPLICA(",'key':{'PK':'{table}#{PK}'}"), NULL, true},
    {REPLICA(KEYS_ONLY("'PK':{'S':[{'prefix':'a'}]}")), NULL, false},
    {REPLICA(",'when':{'keys':{'PK':[{'prefix':'a'}]}}"), NULL, false},
    {REPLICA(",'when':{'item':{'PK':[{'prefix':'a'}]}}"), "tests non-key attributes", false},
    {REPLICA(",'when':{'keys':{'PK':['a']},'old_item':{'n':[{'exists':false}]}}"),
     "tests non-key attributes", false},
    {REPLICA(",'guard':'none'"), "without guards", false},
    {REPLICA(",'expired':'keep'"), "\"expired\"", false},
    {REPLICA(",'expired':'keep-any'"), "\"expired\"", false},
    {REPLICA(",'key':{'PK':'{yyyy}#{PK}'}"), "time", false},
    {REPLICA(",'key':{'PK':'{event}#{PK}'}"), "event", false},
    {REPLICA(",'when':{'events':['INSERT','MODIFY','REMOVE']}"), "\"when\"", false},
    {REPLICA(",'when':{'changed':['v']}"), "\"when\"", false},
    {REPLICA(",'when':{'expired':true}"), "\"when\"", false},
    {REPLICA(",'when':{'pattern':[{'dynamodb':{'NewImage':{'PK':{'S':['a']}}}}]}"), "\"when\"", false},
    {REPLICA(",'when':{'pattern':[{'eventName':['INSERT']}]}"), "\"when\"", false},
    {REPLICA(",'when':{'pattern':[{'dynamodb':{'Keys':{'PK':{'S':['a']}},'SizeBytes':[1]}}]}"), "\"when\"",
     false},
    {REPLICA(",'when':{'pattern':[{'dynamodb':{'Keys':{'PK':{'S':['a']}}}},{'eventName':['REMOVE']}]}"),
     "\"when\"", false},
    {TOTALS("G#{status}", ""), NULL, false},
    {TOTALS("G#{status}", ",'shards':3"), NULL, false},
    {TOTALS("{region}#{status}", ""), NULL, true},
    {TOTALS("{yyyy}", ""), "time", false},
    {TOTALS("{ttl}", ""), "event", false},
    {TOTALS("a", ",'per':'event'"), "\"per\"", false},
    {TOTALS("a", ",'mode':'at-least-once'"), "\"mode\"", false},
    {TOTALS("a", ",'expired':'keep'"), "\"expired\"", false},
    {COUNTER("'running_max':{'m':'{v}'}"), "running_max", false},
    {COUNTER("'add':{'n':'{ss}'}"), "time", false},
    {CONFIG("{'name':'a','handler':'archive','to':'file:${DIR}/archive'}"), "archive", false},
    {CONFIG("{'name':'n','handler':'notify','to':'jsonl:${DIR}/sent'}"), "message", false},
};

static void only_routes_that_are_functions_of_the_item_take_items(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        struct stage *s = stage_new(routes[i].config, NULL);
        struct sl_per_item facts;
        struct sl_error error = {0};
        enum sl_status status = sl_route_per_item(&s->p->routes[0], &facts, &error);
        if (status != (routes[i].refusal ? SL_REJECT : SL_OK) ||
            (routes[i].refusal && !strstr(error.text, routes[i].refusal)))
            fail_msg("%s: %d %s", routes[i].config, (int)status, error.text);
        assert_int_equal(error.status, status);
        assert_int_equal(facts.needs_table, routes[i].needs_table);
        stage_destroy(s);
    }
}

/* How long it knows of deletions, and what an item costs: with a second row it is a transaction. */
static void a_route_says_what_its_items_need(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        int64_t days;
        uint32_t of_item, more;
    } cases[] = {{REPLICA(""), 15, 1, 0},
                 {REPLICA(",'tombstone_days':3"), 3, 1, 0},
                 {REPLICA(",'guard':{'table':'g'}"), 15, 2, 2},
                 {REPLICA(",'tombstones':{'table':'g'}"), 15, 2, 2},
                 {TOTALS("a", ""), 0, 0, 3},
                 {TOTALS("a", ",'forget_after_days':20"), 20, 0, 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(cases[i].config, NULL);
        struct sl_per_item facts;
        assert_int_equal(sl_route_per_item(&s->p->routes[0], &facts, NULL), SL_OK);
        assert_int_equal(facts.remembers_s, cases[i].days * 86400);
        assert_int_equal(facts.units_of_item, cases[i].of_item);
        assert_int_equal(facts.units_more, cases[i].more);
        stage_destroy(s);
    }
}

/* ---- items ---- */

/* A record as data/source makes it of an item: no time, an order below every change's. */
#define ITEM(order, attributes)                                                                              \
    "{'Records':[{'eventID':'" order                                                                         \
    "','eventName':'INSERT','dynamodb':{'Keys':{" PK("a") "},'NewImage':{" PK("a") attributes                \
        "},'SequenceNumber':'" order "'}}]}"
#define V(n)   ",'v':" N(n)
#define OPEN   ",'where':{'v':[1]}"
#define SEQ(n) "10000000000000000000" n

static uint64_t noted(const struct stage *s, enum sl_effect note)
{
    return sl_pipeline_stats(s->p, 0).effects[note];
}

static void expect(struct stage *s, const char *sql, const char *wanted)
{
    char *got = stage_query(s, "db", sql);
    assert_string_equal(got, json(wanted));
    free(got);
}

static const char *const modes[] = {"", ",'guard':{'table':'marks'}", ",'tombstones':{'table':'marks'}"};

static struct stage *replica_with(const char *mode, const char *more)
{
    char config[512];
    snprintf(config, sizeof(config), REPLICA("%s%s"), mode, more);
    return stage_new(config, NULL);
}

static void what_became_of_an_item_is_noted(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct stage *s = replica_with(modes[i], "");
        stage_deliver_all(s, ITEM("7", V("1")));
        assert_int_equal(noted(s, SL_EFFECT_APPLIED), 1);
        stage_deliver_all(s, ITEM("7", V("1")));
        assert_int_equal(noted(s, SL_EFFECT_REPEATED), 1);
        stage_deliver_all(s,
                          EVENT(RECORD("MODIFY", SEQ("1"), KEYS(PK("a")) NEW(PK("a") V("2")) OLD(PK("a")))));
        stage_deliver_all(s, ITEM("7", V("1")));
        assert_int_equal(noted(s, SL_EFFECT_OVERTAKEN), 1);
        stage_destroy(s);
    }
    struct stage *s = stage_new(TOTALS("G", ""), NULL);
    stage_deliver_all(s, ITEM("7", V("1")));
    stage_deliver_all(s, ITEM("7", V("1")));
    assert_int_equal(noted(s, SL_EFFECT_APPLIED), 1);
    assert_int_equal(noted(s, SL_EFFECT_REPEATED), 1);
    stage_destroy(s);
}

/* Whatever its number is: DynamoDB Local counts changes from 1. */
static void an_item_loses_to_every_change(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct stage *s = replica_with(modes[i], "");
        stage_deliver_all(s, ITEM("999999999999999", V("1")));
        stage_deliver_all(
            s, EVENT(RECORD("REMOVE", "000000000000000000002", KEYS(PK("a")) OLD(PK("a") V("1")))));
        stage_deliver_all(s, ITEM("999999999999999", V("1")));
        assert_int_equal(noted(s, SL_EFFECT_OVERTAKEN), 1);
        expect(s, "SELECT count(*) FROM replica WHERE item NOT LIKE '%sluice_deleted%'", "0\n");
        stage_destroy(s);
    }
    struct stage *s = stage_new(TOTALS("G", ""), NULL);
    stage_deliver_all(s, ITEM("999999999999999", V("1")));
    stage_deliver_all(s, EVENT(RECORD("REMOVE", "000000000000000000002", KEYS(PK("a")) OLD(PK("a") V("1")))));
    expect(s, "SELECT count(*) FROM totals WHERE item LIKE '%\"n\":{\"N\":\"0\"}%'", "1\n");
    stage_destroy(s);
}

/* An item that does not match leaves nothing behind, not even a tombstone: a table may be full of such. */
static void an_item_that_does_not_match_leaves_nothing(void **state)
{
    (void)state;
    static const char *const epochs[] = {OPEN, OPEN ",'epoch':4"};
    for (size_t i = 0; i < 6; i++) {
        struct stage *s = replica_with(modes[i % 3], epochs[i / 3]);
        stage_deliver_all(s, ITEM("7", V("2")));
        stage_deliver_all(s, ITEM("7", ",'sluice_deleted':{'BOOL':true}"));
        assert_int_equal(noted(s, SL_EFFECT_LEFT_OUT), 2);
        stage_deliver_all(s, EVENT(RECORD("INSERT", SEQ("1"), KEYS(PK("a")) NEW(PK("a") V("2")))));
        stage_deliver_all(
            s, EVENT(RECORD("MODIFY", SEQ("2"), KEYS(PK("a")) NEW(PK("a") V("3")) OLD(PK("a") V("2")))));
        stage_deliver_all(s, EVENT(RECORD("REMOVE", SEQ("3"), KEYS(PK("a")) OLD(PK("a") V("3")))));
        assert_int_equal(noted(s, SL_EFFECT_LEFT_OUT), 5);
        char *tables = stage_query(s, "db", "SELECT name FROM sqlite_master WHERE type = 'table'");
        if (strstr(tables, "replica"))
            expect(s, "SELECT count(*) FROM replica", "0\n");
        if (strstr(tables, "marks"))
            expect(s, "SELECT count(*) FROM marks", "0\n");
        free(tables);
        stage_destroy(s);
    }
}

/* In a later epoch the replica may hold what it was before. */
static void an_item_of_an_earlier_epoch_goes(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct stage *s = replica_with(modes[i], OPEN);
        char config[512];
        stage_deliver_all(s, EVENT(RECORD("INSERT", SEQ("9"), KEYS(PK("a")) NEW(PK("a") V("1")))));
        expect(s, "SELECT count(*) FROM replica WHERE item NOT LIKE '%sluice_deleted%'", "1\n");
        snprintf(config, sizeof(config), REPLICA("%s" OPEN ",'epoch':1"), modes[i]);
        stage_reopen(s, config);
        stage_deliver_all(s, ITEM("7", V("2")));
        expect(s, "SELECT count(*) FROM replica WHERE item NOT LIKE '%sluice_deleted%'", "0\n");
        stage_deliver_all(s, EVENT(RECORD("INSERT", SEQ("9"), KEYS(PK("a")) NEW(PK("a") V("1")))));
        expect(s, "SELECT count(*) FROM replica WHERE item NOT LIKE '%sluice_deleted%'", "1\n");
        stage_destroy(s);
    }
}

/* In a table of a pair an item with a guard came from the other table, or was written on since: its stream
 * says which. A chain copies it. */
static void an_item_with_a_guard_is_left_out(void **state)
{
    (void)state;
    static const char item[] =
        ITEM("7", V("1") ",'sluice_order':{'S':'000000:00000000000000000000000000000000000"
                         "00001:0000000000000000'},'sluice_write':{'S':'1:ab'}");
    static const char *const members[] = {"", ",'unsigned':'copy'", ",'replicated':'copy'"};
    for (size_t i = 0; i < 3; i++) {
        struct stage *s = replica_with("", members[i]);
        stage_deliver_all(s, item);
        assert_int_equal(noted(s, SL_EFFECT_LEFT_OUT), i < 2);
        assert_int_equal(noted(s, SL_EFFECT_APPLIED), i == 2);
        stage_destroy(s);
    }
}

/* Rows of totals that are kept in the source table are no items of theirs. */
static void a_row_of_ours_is_left_out(void **state)
{
    (void)state;
    struct stage *s = stage_new(TOTALS("G", ",'own_rows':'mark'"), NULL);
    stage_deliver_all(s, ITEM("7", ",'n':{'N':'5'},'sluice_row':{'S':'t'}"));
    assert_int_equal(noted(s, SL_EFFECT_LEFT_OUT), 1);
    expect(s, "SELECT count(*) FROM totals WHERE item LIKE '%\"n\":%'", "0\n");
    stage_destroy(s);
}

/* ---- where, in counters: each image is judged by itself ---- */

#define COUNTS(n, rows)                                                                                      \
    expect(s,                                                                                                \
           "SELECT count(*) FROM totals WHERE item NOT LIKE '%sluice:%' AND item LIKE '%\"n\":{\"N\":\"" n   \
           "\"}%'",                                                                                          \
           rows "\n")
#define CHANGE(seq, after, before)                                                                           \
    EVENT(RECORD("MODIFY", SEQ(seq), KEYS(PK("a")) NEW(PK("a") after) OLD(PK("a") before)))

static void an_item_counts_while_it_meets_where(void **state)
{
    (void)state;
    static const char *const conditions[] = {
        "'where':{'v':[{'numeric':['>',100]}]}",
        "'where':{'v':[{'numeric':['>',100]}]},'when':{'v':{'N':[{'anything-but':['7']}]}}"};
    for (size_t i = 0; i < 2; i++) {
        char config[512];
        snprintf(config, sizeof(config), COUNTER("'add':{'n':1},%s"), conditions[i]);
        struct stage *s = stage_new(config, NULL);
        stage_deliver_all(s, ITEM("7", V("150"))); /* of a backfill: the item is the new image */
        COUNTS("1", "1");
        stage_deliver_all(s, CHANGE("1", V("100"), V("150")));
        COUNTS("0", "1");
        stage_deliver_all(s, CHANGE("2", V("100.5"), V("100")));
        COUNTS("1", "1");
        stage_deliver_all(s, CHANGE("3", ",'v':{'S':'200'}", V("100.5"))); /* a text is no number */
        COUNTS("0", "1");
        stage_deliver_all(s, CHANGE("4", V("1e3"), ",'v':{'S':'200'}"));
        COUNTS("1", "1");
        stage_deliver_all(s, EVENT(RECORD("REMOVE", SEQ("5"), KEYS(PK("a")) OLD(PK("a") V("1e3")))));
        COUNTS("0", "1");
        stage_destroy(s);
    }
    stage_refused(COUNTER("'add':{'n':1},'where':{'v':[{'numerc':['>',1]}]}"),
                  "counters[0].where.v[0]: not an operator");
    stage_refused(COUNTER("'add':{'n':1},'where':{'v':{'N':['1']}}"),
                  "counters[0].where.v.N: N looks like a type");
}

static void a_wrong_pattern_is_named(void **state)
{
    (void)state;
    stage_refused(REPLICA(",'where':{'v':[]}"), "$.routes[0].where.v: the list is empty");
    stage_refused(REPLICA(",'where':{'v':[{'between':1}]}"), "$.routes[0].where.v[0]: not an operator");
    stage_refused(REPLICA(",'where':7"), "$.routes[0].where: an object is expected");
    stage_refused(REPLICA(",'where':{'$or':[]}"),
                  "$.routes[0].where.$or: a list of two or more objects is expected");
    stage_refused(REPLICA(",'where':{':v':[]}"), "$.routes[0].where.:v: the list is empty");
    stage_refused(REPLICA(",'where':{'v':{'N':['1']}}"), "$.routes[0].where.v.N: N looks like a type");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_routes_that_are_functions_of_the_item_take_items),
        cmocka_unit_test(a_route_says_what_its_items_need),
        cmocka_unit_test(what_became_of_an_item_is_noted),
        cmocka_unit_test(an_item_loses_to_every_change),
        cmocka_unit_test(an_item_that_does_not_match_leaves_nothing),
        cmocka_unit_test(an_item_of_an_earlier_epoch_goes),
        cmocka_unit_test(an_item_with_a_guard_is_left_out),
        cmocka_unit_test(a_row_of_ours_is_left_out),
        cmocka_unit_test(an_item_counts_while_it_meets_where),
        cmocka_unit_test(a_wrong_pattern_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
