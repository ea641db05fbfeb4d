/* A verification from its flags to its end: what is refused before anything is read, what is kept and gone on
 * with, what becomes of reads that fail, and that no failure of the system makes it say that all is right. */
#include "tests/support/disk_fault.h"
#include "tests/support/tables.h"
#include "tests/support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define REPLICA "{'name':'replica','handler':'replicate','to':'sqlite:${DIR}/out.db?table=replica'}"
#define TOTALS                                                                                               \
    "{'name':'totals','handler':'aggregate','to':'sqlite:${DIR}/out.db?table=totals','ledger':{'table':"     \
    "'ledger'},'counters':[{'key':{'PK':'ALL'},'add':{'items':1,'sum':'{n}'}}]}"
#define KEEP "{'name':'keep','handler':'archive','to':'file:${DIR}/archive','format':'record'}"

static struct tables *t;

static int set_up(void **state)
{
    (void)state;
    t = tables_new(REPLICA "," TOTALS "," KEEP);
    for (int i = 0; i < 12; i++)
        tables_put(t, json_printf("i%d", i), json_printf("'n':{'N':'%d'}", i));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tables_destroy(t);
    return 0;
}

static void break_row(const char *id)
{
    assert_int_equal(tables_sql(t, "out.db",
                                "UPDATE replica SET item = replace(item, '\"n\":{\"N\":\"', "
                                "'\"n\":{\"N\":\"7') WHERE key LIKE '%%\"%s\"%%'",
                                id),
                     1);
}

/* ---- flags ---- */

static void what_cannot_be_meant_is_refused_with_what_to_write(void **state)
{
    (void)state;
    static const struct {
        const char *flags, *text;
    } cases[] = {
        {"--sample 1/0", "--sample must be N/M, with 1 <= N <= M <= 1000000, not \"1/0\""},
        {"--sample 1/2x", "--sample must be N/M"},
        {"--sample 1/1000001", "--sample must be N/M"},
        {"--sample 1/2 --segments 4", "--sample says the number of segments, so --segments cannot"},
        {"--segments 0", "--segments"},
        {"--routes replica,nosuch", "--routes: "},
        {"--routes nosuch", "has no route \"nosuch\""},
        {"--match '{\"PK\":1}'", "--match: "},
        {"--item '{\"PK\":{\"S\":\"a\"},\"SK\":{\"S\":\"a\"}}'", "it is not a key of the table: PK"},
        {"--item '{\"ID\":{\"S\":\"a\"}}'",
         "write the whole key as DynamoDB's JSON, as {\"PK\":{\"S\":\"a\"}}"},
        {"--table arn:nonsense", "--table arn:nonsense"},
        {"--table mysql:x", "--table mysql:x"},
        {"--table file:x", "--table file:x"},
        {"--table 'a b'", "--table a b"},
        {"--checkpoint .", "."},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        tables_verb(t, 2, cases[i].text, "verify %s", cases[i].flags);
    tables_verb(t, 2, "--item {: ", "verify --item '{' --item '{\"PK\":{\"S\":\"i1\"}}'");
    tables_verb(t, 0, "sluice verify [flags] --table NAME", "verify --help");
    assert_int_equal(verb(t->v, "verify --config %s", t->s->config_path), 2);
    assert_non_null(strstr(verb_err(t->v), "--table NAME is missing: the table that the routes follow"));
}

/* Without a Region nobody knows where the table is: that is the command's fault, and not the service's. */
static void a_table_that_nobody_can_find_is_bad_usage(void **state)
{
    (void)state;
    verb_set(t->v, "AWS_REGION=");
    tables_verb(t, 2, "--table orders: ", "verify --table orders");
    tables_verb(t, 2, "region", "verify --table orders");
    tables_verb(t, 2, "nowhere.db", "verify --table sqlite:nowhere.db?table=t");
    tables_sql(t, "src.db", "CREATE TABLE none (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID");
    tables_verb(t, 2, "it has no items, and its key is not known",
                "verify --table sqlite:%s/src.db?table=none", t->s->folder);
    tables_sql(t, "src.db",
               "CREATE TABLE bad (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID; INSERT "
               "INTO bad VALUES ('{\"PK\":{\"S\":\"a\"}}', 'not JSON')");
    tables_verb(t, 4, "--table sqlite:", "verify --table sqlite:%s/src.db?table=bad", t->s->folder);
}

static void an_item_that_is_nowhere_is_told(void **state)
{
    (void)state;
    tables_verb(t, 0, "has no such item; if that is not what you expect, look at the key's letters",
                "verify --item '{\"PK\":{\"S\":\"I1\"}}'");
    tables_verb(t, 0, "result: 2 equal", "verify --item '{\"PK\":{\"S\":\"i1\"}}'");
    assert_null(strstr(verb_err(t->v), "no such item"));
}

/* ---- parts of the table, and the plan ---- */

static void a_sample_is_a_part_and_all_days_are_the_whole(void **state)
{
    (void)state;
    tables_verb(t, 0, "in 3 of 3 segments", "verify --sample 3/3");
    tables_verb(t, 0, "result: 24 equal", "verify --sample 3/3");
    tables_verb(t, 0, "in 1 of 1000000 segments", "verify --plan --sample 1/1000000");
    assert_string_equal(verb_out(t->v), "");
    tables_verb(t, 0,
                "in 9 of 9 segments; about 13 read units ($0.00 on demand at $0.125 a million), 0 minutes"
                " at 1 units a second",
                "verify --plan --segments 9 --quiet --read-units 1");
    tables_verb(t, 0, "", "verify --quiet");
    assert_string_equal(verb_err(t->v), "");
}

/* Rows of some 5 KB are two read units each; a target that cannot be described is said. */
static void the_plan_counts_large_items(void **state)
{
    (void)state;
    char text[5001];
    memset(text, 'x', 5000);
    text[5000] = '\0';
    for (int i = 0; i < 10; i++)
        tables_put(t, json_printf("i%d", i), json_printf("'n':{'N':'1'},'t':{'S':'%s'}", text));
    tables_verb(t, 0, "about 12 items in 4 of 4 segments; about ", "verify --plan --routes replica");
    tables_sql(t, "out.db", "UPDATE replica SET item = 'x' WHERE key LIKE '%%i3%%'");
    tables_verb(t, 0, "the target of replica cannot be described, and is not in the figures",
                "verify --plan");
}

/* The TTL attribute of the configuration counts, and those of targets that are named. */
static void whether_an_expired_item_is_there_is_not_judged(void **state)
{
    (void)state;
    static const struct {
        const char *member, *flags;
        int status;
    } cases[] = {{"", "", 1},
                 {"'ttl_attribute':'until',", "", 0},
                 {"", "--ttl-attribute until", 0},
                 {"'ttl_attribute':'x',", "--ttl-attribute y --ttl-attribute until", 0},
                 {"'ttl_attribute':'x',", "", 1}};
    tables_put(t, "i3", "'n':{'N':'3'},'until':{'N':'1700000000'}");
    tables_sql(t, "out.db", "DELETE FROM replica WHERE key LIKE '%%\"i3\"%%'");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_write(t->s->config_path,
                   json_printf("{%s'on_failure':'report','routes':[%s]}", cases[i].member, REPLICA));
        tables_verb(t, cases[i].status, cases[i].status ? "1 missing" : "result: 12 equal", "verify %s",
                    cases[i].flags);
    }
}

static void a_pattern_that_takes_nothing_proves_nothing_wrong(void **state)
{
    (void)state;
    break_row("i3");
    tables_verb(t, 0, "result: 0 equal, 0 different", "verify --match '{\"PK\":{\"S\":[\"nothing\"]}}'");
    assert_int_equal(verb(t->v, "verify --plan --config %s --table sqlite:%s/src.db?table=orders",
                          t->s->config_path, t->s->folder),
                     0);
    assert_null(strstr(verb_err(t->v), "--consumer"));
    /* One item that differs is no other table. */
    tables_sql(t, "src.db", "DELETE FROM orders WHERE key NOT LIKE '%%\"i3\"%%'");
    tables_sql(t, "out.db", "DELETE FROM replica WHERE key NOT LIKE '%%\"i3\"%%'");
    tables_verb(t, 1, "result: 0 equal, 1 different", "verify --routes replica");
    assert_null(strstr(verb_err(t->v), "not one row is equal"));
}

/* The same file by another name is the same table. */
static void a_table_is_told_by_its_file(void **state)
{
    (void)state;
    const char *slash = strrchr(t->s->folder, '/') + 1;
    static const struct {
        const char *file, *table;
        int status;
    } cases[] = {{"out.db", "replica", 2}, {"out.db", "totals", 2}, {"out.db", "ledger", 2},
                 {"src.db", "orders", 0},  {"out.db", "copy", 0},   {"copy.db", "replica", 0}};
    tables_sql(t, "out.db", "CREATE TABLE copy AS SELECT * FROM replica");
    tables_sql(t, "copy.db", "ATTACH '%s/out.db' AS o; CREATE TABLE replica AS SELECT * FROM o.replica",
               t->s->folder);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = tables_run(t, "verify --table sqlite:%s/../%s/%s?table=%s --plan", t->s->folder, slash,
                                cases[i].file, cases[i].table);
        if (status != cases[i].status ||
            (status == 2) != (strstr(verb_err(t->v), "is the table that") != NULL))
            fail_msg("%s %s: %d %s", cases[i].file, cases[i].table, status, verb_err(t->v));
    }
}

/* ---- interrupted ---- */

/* What was read before the end is not read again, and counts once. */
static void the_same_command_goes_on_where_it_was_stopped(void **state)
{
    (void)state;
    break_row("i3");
    verb_write(t->v, "place.json", "{'stream':'x','through':'2020-01-01T00:00:00Z'}");
    disk_fault->skips_sleep = false; /* it waits for a consumer that does not come */
    int status = verb_stop(t->v, 60,
                           "verify --config %s --table sqlite:%s/src.db?table=orders --consumer place.json "
                           "--checkpoint place --wait 3600",
                           t->s->config_path, t->s->folder);
    assert_int_equal(status, 3);
    assert_non_null(strstr(verb_err(t->v), "sluice verify: stopped; the same command goes on\n"));
    const char *place = verb_read(t->v, "place");
    assert_non_null(strstr(place, "\"suspects\":[{\"route\":0,\"forward\":true,\"key\":\"{\\\"PK\\\":{"));
    tables_verb(t, 2, "--checkpoint place", "verify --checkpoint place --segments 9");
    assert_string_equal(verb_read(t->v, "place"), place);
    tables_verb(t, 1, "result: 23 equal, 1 different (1 different)", "verify --checkpoint place --no-totals");
    assert_string_equal(verb_read(t->v, "place"), "");
    disk_fault->skips_sleep = false;
    status = verb_stop(t->v, 60,
                       "verify --config %s --table sqlite:%s/src.db?table=orders --consumer place.json "
                       "--checkpoint nowhere/place --wait 3600",
                       t->s->config_path, t->s->folder);
    assert_int_equal(status, 4);
    assert_non_null(strstr(verb_err(t->v), "--checkpoint nowhere/place: cannot be written: No such file"));
    status = verb_stop(t->v, 60,
                       "verify --config %s --table sqlite:%s/src.db?table=orders --consumer place.json "
                       "--json --wait 3600",
                       t->s->config_path, t->s->folder);
    assert_int_equal(status, 3);
    assert_non_null(strstr(verb_err(t->v), "sluice verify: stopped before the end\n"));
    assert_non_null(strstr(verb_out(t->v), "\"done\":false"));
}

/* ---- reads that fail ---- */

static void a_row_that_is_no_item_ends_it(void **state)
{
    (void)state;
    verb_write(t->v, "proofs.json", "{}");
    tables_sql(t, "out.db", "UPDATE replica SET item = 'x' WHERE key LIKE '%%i3%%'");
    tables_verb(t, 4, "sluice verify: ", "verify --verified proofs.json --checkpoint place");
    assert_string_equal(verb_read(t->v, "proofs.json"), "{}");
    tables_verb(t, 4, "\"done\":false", "verify --json");
}

/* ---- what was proven ---- */

static void a_proof_needs_a_whole_run(void **state)
{
    (void)state;
    static const char *const parts[] = {"--sample 1/2", "--match '{\"PK\":{\"S\":[\"i3\"]}}'",
                                        "--ignore other", "--item '{\"PK\":{\"S\":\"i3\"}}'", "--no-totals"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        tables_verb(t, 0, "", "verify --verified proofs.json %s", parts[i]);
        assert_string_equal(verb_read(t->v, "proofs.json"), "{}");
    }
    tables_sql(t, "out.db", "UPDATE totals SET item = replace(item, '\"N\":\"12\"', '\"N\":\"13\"')");
    tables_verb(t, 1, "", "verify --verified proofs.json");
    assert_string_equal(verb_read(t->v, "proofs.json"), "{}");
    tables_sql(t, "out.db", "UPDATE totals SET item = replace(item, '\"N\":\"13\"', '\"N\":\"12\"')");
    break_row("i3");
    verb_write(t->v, "proofs.json", "{'old':'2026-01-01T00:00:00Z','odd':7,'not a time':'x'}");
    tables_verb(t, 1, "\"Route\":\"old\"", "verify --verified proofs.json");
    const char *proofs = verb_read(t->v, "proofs.json");
    assert_non_null(strstr(proofs, "\"totals\": \"20"));
    assert_null(strstr(proofs, "replica"));
    assert_non_null(strstr(proofs, "\"odd\": 7"));
    assert_null(strstr(verb_err(t->v), "\"Route\":\"odd\""));
    assert_null(strstr(verb_err(t->v), "\"Route\":\"not a time\""));
    tables_verb(t, 2, "--verified /dev/null: it is not a JSON object", "verify --verified /dev/null");
}

/* ---- the system fails ---- */

/* Every `step`th operation of the verb fails, one in each run. Returns how many runs that were. */
static int fail_each(int first, int step, int err, const char *flags)
{
    int runs = 0;
    for (int n = first;; n += step, runs++) {
        verb_fault(t->v, n, err, NULL);
        int status = tables_run(t, "verify --verified proofs.json %s", flags);
        if (!disk_fault_came())
            return runs;
        bool is_found = strstr(verb_out(t->v), " equal, 1 different (1 different)") != NULL;
        if (status == 0 || status == 3 || (status == 1 && !is_found) || *verb_err(t->v) == '\0')
            fail_msg("operation %d (%s): exit status %d:\n%s\n%s", n, disk_fault->came, status,
                     verb_out(t->v), verb_err(t->v));
    }
}

/* Whatever fails, it is never said that all is right, and the same command says afterwards what is. */
static void no_failure_looks_like_a_proof(void **state)
{
    (void)state;
    break_row("i3");
    assert_true(fail_each(1, 1, ENOSPC, "") > 10);
    assert_true(fail_each(1, 1, EMFILE, "") > 10);
    assert_true(fail_each(1, 3, ENOSPC, "--archives --temp .") > 10);
    tables_verb(t, 1, " equal, 1 different (1 different)", "verify --archives");
    assert_null(strstr(verb_read(t->v, "proofs.json"), "replica"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_cannot_be_meant_is_refused_with_what_to_write),
        TEST(a_table_that_nobody_can_find_is_bad_usage),
        TEST(an_item_that_is_nowhere_is_told),
        TEST(a_sample_is_a_part_and_all_days_are_the_whole),
        TEST(the_plan_counts_large_items),
        TEST(whether_an_expired_item_is_there_is_not_judged),
        TEST(a_pattern_that_takes_nothing_proves_nothing_wrong),
        TEST(a_table_is_told_by_its_file),
        TEST(the_same_command_goes_on_where_it_was_stopped),
        TEST(a_row_that_is_no_item_ends_it),
        TEST(a_proof_needs_a_whole_run),
        TEST(no_failure_looks_like_a_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
