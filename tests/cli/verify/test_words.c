/* What `sluice verify` finds and says: each kind of difference in words and as JSON, its counts, its exit
 * status. Real tables, handlers and archives. */
#include "tests/support/tables.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPLICA "{'name':'replica','handler':'replicate','to':'sqlite:${DIR}/out.db?table=replica'}"
#define TOTALS                                                                                               \
    "{'name':'totals','handler':'aggregate','to':'sqlite:${DIR}/out.db?table=totals','ledger':{'table':"     \
    "'ledger'},'counters':[{'key':{'PK':'ALL','SK':'-'},'add':{'items':1,'sum':'{n}'},'distinct':{'values':" \
    "'{n}'},'members':{'by':'{n}'}}]}"
#define KEEP    "{'name':'keep','handler':'archive','to':'file:${DIR}/archive','format':'record'}"
#define NOTICES "{'name':'notices','handler':'notify','to':'jsonl:${DIR}/notices.jsonl'}"

#define ITEMS 6

static struct tables *of_items(const char *routes)
{
    struct tables *t = tables_new(routes);
    for (int i = 0; i < ITEMS; i++)
        tables_put(t, json_printf("i%d", i), json_printf("'n':{'N':'%d'}", i));
    return t;
}

/* ---- rows ---- */

/* Damage to the replica's row of i3, and what is said of it. */
static const struct {
    const char *sql, *words, *json;
} damages[] = {
    {"DELETE FROM replica WHERE key LIKE '%i3%'", "replica: missing {\"PK\":{\"S\":\"i3\"}}\n",
     "\"kind\":\"missing\""},
    {"UPDATE replica SET item = replace(item, '\"N\":\"3\"', '\"N\":\"4\"') WHERE key LIKE '%i3%'",
     " in n; written ", "\"attributes\":[\"n\"]"},
    {"UPDATE replica SET item = '{\"a\":{\"S\":\"1\"},\"b\\nc\":{\"S\":\"2\"},' || substr(item, 2) WHERE key "
     "LIKE '%i3%'",
     " in a, b\\nc; written ", "\"attributes\":[\"a\",\"b\\nc\"]"},
    {"UPDATE replica SET item = '{\"a1\":{\"N\":\"1\"},\"a2\":{\"N\":\"1\"},\"a3\":{\"N\":\"1\"},\"a4\":{"
     "\"N\":\"1\"},\"a5\":{\"N\":\"1\"},\"a6\":{\"N\":\"1\"},\"a7\":{\"N\":\"1\"},\"a8\":{\"N\":\"1\"},"
     "\"a9\":{\"N\":\"1\"},\"b1\":{\"N\":\"1\"},\"b2\":{\"N\":\"1\"},' || substr(item, 2) WHERE key LIKE "
     "'%i3%'",
     " in a1, a2, a3, a4, a5, a6, a7, a8, a9, b1; written ", "\"b1\",\"b2\"]"},
    {"UPDATE replica SET item = json_remove(item, '$.sluice_order') WHERE key LIKE '%i3%'",
     "replica: unguarded {\"PK\":{\"S\":\"i3\"}}\n", "\"kind\":\"unguarded\""},
};

static void a_row_that_differs_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        struct tables *t = of_items(REPLICA);
        tables_verb(t, 0, "result: 6 equal, 0 different, 0 pending, 0 unsettled, 0 not comparable\n",
                    "verify");
        assert_int_equal(tables_sql(t, "out.db", "%s", damages[i].sql), 1);
        tables_verb(t, 1, damages[i].words, "verify");
        tables_verb(t, 1, "result: 5 equal, 1 different (1 ", "verify");
        tables_verb(t, 1, damages[i].json, "verify --json");
        tables_verb(t, 1, "\"direction\":\"forward\",\"source_key\":{\"PK\":{\"S\":\"i3\"}}",
                    "verify --json");
        assert_null(strstr(verb_out(t->v), "\"row\":"));
        tables_verb(t, 1, "\"source\":{\"PK\":{\"S\":\"i3\"},\"n\":{\"N\":\"3\"}}",
                    "verify --json --show-values");
        assert_non_null(strstr(verb_out(t->v), "\"expected\":{\"PK\":{\"S\":\"i3\"},\"n\":{\"N\":\"3\"}}"));
        assert_int_equal(strstr(verb_out(t->v), "\"row_sha256\":\"") != NULL, i > 0); /* a row is there */
        tables_verb(t, 1, "{\"result\":\"summary\",\"done\":true,\"items\":6,\"rows\":", "verify --json");
        tables_verb(t, 1, "\"equal\":5,\"different\":1,\"pending\":0", "verify --json");
        tables_destroy(t);
    }
}

/* The stream has not said it, but for the stream's consumer is past it. */
static void what_the_source_changed_is_stale_and_has_an_age(void **state)
{
    (void)state;
    struct tables *t = of_items(REPLICA);
    tables_put_unseen(t, "i2", "'n':{'N':'77'}");
    tables_verb(t, 1, "replica: stale {\"PK\":{\"S\":\"i2\"}} in n; written ", "verify");
    tables_verb(t, 1, "(1 stale)", "verify");
    tables_verb(t, 1, "\"written\":\"2026-01-01T11:00:02", "verify --json");
    tables_sql(t, "src.db", "DELETE FROM orders WHERE key LIKE '%%i2%%'");
    tables_verb(t, 1, "replica: left over {\"PK\":{\"S\":\"i2\"}}", "verify");
    tables_verb(t, 1, "\"direction\":\"backward\"", "verify --json --show-values");
    assert_non_null(strstr(verb_out(t->v), "\"row\":{"));
    assert_null(strstr(verb_out(t->v), "\"expected\":"));
    assert_null(strstr(verb_out(t->v), "\"source\":"));
    tables_destroy(t);
}

/* Whoever does not know how far the consumer is confirms nothing. */
static void without_a_consumer_it_is_pending(void **state)
{
    (void)state;
    struct tables *t = of_items(REPLICA "," NOTICES);
    verb_write(t->v, "place.json", "{'stream':'x','through':'2020-01-01T00:00:00Z'}");
    assert_int_equal(tables_sql(t, "out.db", "%s", damages[1].sql), 1);
    tables_verb(t, 3, "replica: pending, different {\"PK\":{\"S\":\"i3\"}}",
                "verify --consumer place.json --wait 0");
    assert_non_null(strstr(verb_out(t->v), "replica: 5 equal, 0 different, 1 pending, 0 unsettled"));
    assert_non_null(strstr(verb_err(t->v), "the consumer stands at 2019-12-31T23:59:59"));
    assert_non_null(
        strstr(verb_out(t->v), "notices: not comparable: the handler notify does not tell what should be"));
    tables_verb(t, 0, "", "verify --plan --consumer place.json"); /* which waits for nobody */
    assert_null(strstr(verb_err(t->v), "the consumer stands at"));
    tables_verb(t, 3, "\"result\":\"pending\"", "verify --json --consumer place.json --wait 0");
    assert_non_null(strstr(verb_out(t->v), "\"notices\":{\"not_comparable_because\":\"the handler notify "));
    /* While it waits there are no segments, and nobody knows how long it takes. */
    tables_verb(t, 3, "sluice verify: suspects: 6 items, 6 rows, ", "verify --consumer place.json --wait 20");
    assert_non_null(strstr(verb_err(t->v), " a second; 0 differences, 1 suspects\n"));
    assert_null(strstr(verb_err(t->v), "minutes left"));
    assert_int_equal(verb(t->v, "verify --config %s --table sqlite:%s/src.db?table=orders --wait 0",
                          t->s->config_path, t->s->folder),
                     3);
    assert_non_null(
        strstr(verb_err(t->v), "add --consumer FILE (the checkpoint of sluice tail) or --max-lag S"));
    /* A route that was asked for and tells nothing leaves the proof open; one that was not does not. */
    tables_verb(t, 3, "result: 0 equal", "verify --routes notices");
    tables_sql(t, "out.db",
               "UPDATE replica SET item = replace(item, '\"N\":\"4\"', '\"N\":\"3\"') WHERE key "
               "LIKE '%%i3%%'");
    tables_verb(t, 0, "result: 6 equal", "verify");
    tables_verb(t, 3, "result: 6 equal", "verify --routes replica,notices");
    tables_destroy(t);
}

/* An item that the route rejects has no row that could be compared. */
static void what_cannot_be_compared_is_told_with_its_reason(void **state)
{
    (void)state;
    struct tables *t = of_items(TOTALS);
    tables_put_unseen(t, "i9", "'n':{'S':'nine'}");
    tables_verb(t, 3, "totals: not comparable: ", "verify");
    assert_non_null(strstr(verb_out(t->v), " {\"PK\":{\"S\":\"i9\"}}\n"));
    assert_non_null(strstr(verb_out(t->v), "0 unsettled, 1 not comparable\n"));
    tables_verb(t, 3, "\"not_comparable\":1", "verify --json");
    assert_non_null(strstr(verb_out(t->v), "\"code\":\""));
    tables_destroy(t);
}

/* More findings than a person reads: fifty, and how many more. */
static void a_long_list_ends_with_its_length(void **state)
{
    (void)state;
    struct tables *t = of_items(REPLICA "," TOTALS);
    tables_sql(t, "src.db",
               "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 57) INSERT INTO "
               "orders SELECT '{\"PK\":{\"S\":\"k' || x || '\"}}', '{\"PK\":{\"S\":\"k' || x || "
               "'\"},\"n\":{\"N\":\"1\"}}' FROM c");
    tables_sql(t, "out.db",
               "UPDATE totals SET item = replace(item, '\"items\":{\"N\":\"6\"}', "
               "'\"items\":{\"N\":\"7\"}')");
    tables_verb(t, 1, "\nand 65 more findings: --json prints all of them\n", "verify");
    assert_non_null(strstr(verb_out(t->v), "(114 missing, 1 in totals)"));
    size_t lines = 0;
    for (const char *at = verb_out(t->v); (at = strstr(at, ": missing {")); at++)
        lines++;
    assert_int_equal(lines, 50);
    tables_destroy(t);
}

/* The same where the totals are a list. */
static void a_long_list_of_sums_ends_with_its_length(void **state)
{
    (void)state;
    struct tables *t =
        tables_new("{'name':'each','handler':'aggregate','to':'sqlite:${DIR}/out.db?table=each','ledger':{"
                   "'table':'ledger'},'counters':[{'key':{'PK':'T#{PK}'},'add':{'n':1}}]}");
    for (int i = 0; i < 52; i++)
        tables_put(t, json_printf("i%d", i), "");
    tables_sql(t, "out.db", "UPDATE each SET item = replace(item, '\"N\":\"1\"', '\"N\":\"2\"')");
    tables_verb(t, 1, "\nand 2 more findings: --json prints all of them\n", "verify");
    size_t lines = 0;
    for (const char *at = verb_out(t->v); (at = strstr(at, ": 1 off\n")); at++)
        lines++;
    assert_int_equal(lines, 50);
    tables_verb(t, 1, "(52 in totals)", "verify");
    tables_destroy(t);
}

/* ---- totals ---- */

/* Changes of the totals' rows and of their ledger's, and what follows. */
static void totals_that_are_off_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *sql, *words, *json;
    } cases[] = {
        {"UPDATE totals SET item = replace(item, '\"sum\":{\"N\":\"15\"}', '\"sum\":{\"N\":\"17.5\"}')",
         "sum {\"PK\":{\"S\":\"ALL\"},\"SK\":{\"S\":\"-\"}}, sum: the total is 17.5, its ledger says 15: 2.5 "
         "off\n",
         "\"attribute\":\"sum\",\"total\":\"17.5\",\"ledger\":\"15\",\"difference\":\"2.5\""},
        {"DELETE FROM totals WHERE key LIKE '%\"-#%' AND item LIKE '%\"i4\"%'",
         "members of {\"PK\":{\"S\":\"ALL\"},\"SK\":{\"S\":\"-\"}}: their rows are not those that the "
         "ledgers name\n",
         "\"kind\":\"members\""},
        {"UPDATE ledger SET item = replace(item, '\"n\":{\"N\":\"1\"}', '\"n\":{\"N\":\"2\"}') WHERE key "
         "LIKE "
         "'%sluice:distinct:totals:%' AND item LIKE '%\"value\":{\"N\":\"4\"}%'",
         "values of {\"PK\":{\"S\":\"ALL\"},\"SK\":{\"S\":\"-\"}}, values: their rows are not those that the "
         "ledgers name\n",
         "\"kind\":\"values\",\"handler\":\"aggregate\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tables *t = of_items(TOTALS);
        tables_verb(t, 0, "totals: 5 equal, 0 different, 0 unsettled\n", "verify");
        assert_true(tables_sql(t, "out.db", "%s", cases[i].sql) > 0);
        tables_verb(t, 1, cases[i].words, "verify");
        assert_non_null(strstr(verb_out(t->v), "totals: 4 equal, 1 different, 0 unsettled\n"));
        assert_non_null(strstr(verb_out(t->v), " 1 different (1 in totals), 0 pending"));
        tables_verb(t, 1, cases[i].json, "verify --json");
        assert_non_null(strstr(verb_out(t->v),
                               "\"totals\":{\"equal\":4,\"different\":1,\"unsettled\":0,\"not_judged\":0}"));
        tables_verb(t, 0, "result: 6 equal, 0 different", "verify --no-totals");
        tables_destroy(t);
    }
}

/* A route that has no ledger adds to the same attribute: nobody can judge it. */
static void what_others_add_to_is_not_judged(void **state)
{
    (void)state;
    struct tables *t = of_items(
        "{'name':'a','handler':'aggregate','to':'sqlite:${DIR}/"
        "out.db?table=t','counters':[{'key':{'PK':'ALL'},"
        "'add':{'n':1,'m':1}}]},"
        "{'name':'b','handler':'aggregate','mode':'at-least-once','to':'sqlite:${DIR}/out.db?table=t',"
        "'counters':[{'key':{'PK':'ALL'},'add':{'n':1}}]}");
    tables_verb(t, 0,
                "totals: 1 equal, 0 different, 0 unsettled; 1 attributes are not judged, because a route "
                "without a ledger adds to them, too\n",
                "verify");
    tables_destroy(t);
}

/* ---- archives ---- */

/* The archive's objects in the order of their names: the nth one's path. */
static const char *object(struct tables *t, size_t n)
{
    char *names = NULL;
    free(stage_objects(t->s, "archive", &names));
    char *at = names;
    for (size_t i = 0; i < n; i++)
        at = strchr(at, '\n') + 1;
    const char *path = json_printf("%s/archive/%.*s", t->s->folder, (int)strcspn(at, "\n"), at);
    free(names);
    return path;
}

static void an_archive_is_told_in_itself(void **state)
{
    (void)state;
    struct tables *t = of_items(KEEP "," REPLICA);
    for (int i = 0; i < 3; i++)
        tables_put(t, "i0", json_printf("'n':{'N':'%d'}", 70 + i));
    tables_verb(t, 0,
                "keep: archive: 9 records of 6 items in 9 objects: 0 gaps, 0 damaged, 0 unreadable; 0 "
                "doubles, 0 unknown before\n",
                "verify --archives");
    tables_verb(
        t, 0,
        "\"result\":\"archive\",\"route\":\"keep\",\"objects\":9,\"records\":9,\"items\":6,\"erased\":0,"
        "\"gaps\":0,\"damaged\":0,\"unreadable\":0,\"doubles\":0,\"unknown_before\":0,"
        "\"without_images\":0}",
        "verify --archives --json");
    tables_verb(t, 0, "result: 6 equal", "verify --archives --routes keep,replica");
    assert_int_equal(unlink(object(t, 7)), 0);
    tables_verb(t, 1, "keep: archive: gap, sequence_number 100000000000000000009, object ",
                "verify --archives");
    assert_non_null(strstr(verb_out(t->v), ", why its OldImage is not the NewImage before it: a change is "
                                           "missing\n"));
    assert_non_null(strstr(verb_out(t->v), "result: 6 equal, 1 different (1 in archives), 0 pending"));
    tables_verb(t, 1, "\"kind\":\"gap\"", "verify --archives --json");
    tables_verb(t, 0, "result: 6 equal", "verify");
    test_write(object(t, 7), "not a line");
    tables_verb(t, 4, "keep: archive: unreadable, object ", "verify --archives");
    tables_destroy(t);
}

/* A record without its images proves nothing; its object may be whole all the same. */
static void a_record_without_images_leaves_the_proof_open(void **state)
{
    (void)state;
    struct tables *t = of_items(KEEP "," REPLICA);
    const char *name = json_printf("%s/archive/5-1-00000000000000000000000000000000.jsonl", t->s->folder);
    test_write(name,
               json("{'eventName':'MODIFY','dynamodb':{'Keys':{'PK':{'S':'i0'}},'SequenceNumber':'7'}}\n"));
    tables_verb(t, 1, " unknown before, 1 without the images that prove it\n", "verify --archives");
    assert_non_null(strstr(verb_out(t->v), "keep: archive: damaged, object 5-1-0000"));
    tables_verb(t, 4, "keep: nowhere: a temporary folder cannot be made: No such file or directory",
                "verify --archives --temp nowhere");
    /* What cannot be read hides no difference. */
    test_write(object(t, 1), "not a line");
    tables_verb(t, 1, "1 unreadable; ", "verify --archives");
    tables_destroy(t);
}

/* What an archive cannot prove: the exit status says so. */
static void an_archive_that_proves_nothing_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *route, *text;
        int status;
    } cases[] = {
        {"{'name':'keep','handler':'archive','to':'file:${DIR}/archive','format':'item'}",
         "keep: the archive proves nothing: only format record keeps what a change was before", 3},
        {"{'name':'keep','handler':'archive','to':'file:${DIR}/archive','format':'record','when':{'pattern':["
         "{'eventName':['INSERT']}]}}",
         "keep: the archive proves nothing: its \"when\" leaves out changes", 3},
        {"{'name':'keep','handler':'archive','to':'file:${DIR}/empty','format':'record'}",
         "keep: there are no objects in file:", 3},
        {"{'name':'keep','handler':'archive','to':'file:${DIR}/nowhere','format':'record'}",
         "nowhere is not there, or it cannot be listed and read", 4},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tables *t = of_items(REPLICA);
        struct verbs *v = t->v;
        test_write(t->s->config_path,
                   json_printf("{'on_failure':'report','routes':[%s,%s]}", cases[i].route, REPLICA));
        assert_int_equal(mkdir(json_printf("%s/empty", t->s->folder), 0777), 0);
        tables_verb(t, cases[i].status, cases[i].text, "verify --archives");
        tables_verb(t, 0, "result: 6 equal", "verify --archives --routes replica");
        assert_null(strstr(verb_err(v), "keep"));
        tables_destroy(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_that_differs_is_told),
        cmocka_unit_test(what_the_source_changed_is_stale_and_has_an_age),
        cmocka_unit_test(without_a_consumer_it_is_pending),
        cmocka_unit_test(what_cannot_be_compared_is_told_with_its_reason),
        cmocka_unit_test(a_long_list_ends_with_its_length),
        cmocka_unit_test(a_long_list_of_sums_ends_with_its_length),
        cmocka_unit_test(totals_that_are_off_are_told),
        cmocka_unit_test(what_others_add_to_is_not_judged),
        cmocka_unit_test(an_archive_is_told_in_itself),
        cmocka_unit_test(a_record_without_images_leaves_the_proof_open),
        cmocka_unit_test(an_archive_that_proves_nothing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
