/* `sluice repair`: what it writes, leaves and keeps; what it takes from findings; what is put back; and that
 * a disk which keeps nothing of a write stops it before the write. */
#include "tests/support/disk_fault.h"
#include "tests/support/tables.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPLICA "{'name':'replica','handler':'replicate','to':'sqlite:${DIR}/out.db?table=replica'}"
#define TOTALS                                                                                               \
    "{'name':'totals','handler':'aggregate','to':'sqlite:${DIR}/out.db?table=totals','ledger':{'table':"     \
    "'ledger'},'counters':[{'key':{'PK':'ALL'},'add':{'items':1,'sum':'{n}'}}]}"

#define ITEMS 12

static struct tables *t;

static int set_up(void **state)
{
    (void)state;
    t = tables_new(REPLICA "," TOTALS);
    for (int i = 0; i < ITEMS; i++)
        tables_put(t, json_printf("i%d", i), json_printf("'n':{'N':'%d'}", i));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    disk_fault_end();
    tables_destroy(t);
    return 0;
}

/* Three rows: one is edited, one is lost, one is left over. */
static void damage(void)
{
    assert_int_equal(
        tables_sql(t, "out.db",
                   "UPDATE replica SET item = replace(item, '\"N\":\"3\"', '\"N\":\"33\"') WHERE key "
                   "LIKE '%%\"i3\"%%'"),
        1);
    assert_int_equal(tables_sql(t, "out.db", "DELETE FROM replica WHERE key LIKE '%%\"i4\"%%'"), 1);
    assert_int_equal(
        tables_sql(t, "out.db",
                   "INSERT OR REPLACE INTO replica SELECT replace(key, '\"i5', '\"x5'), replace(item, "
                   "'\"i5', '\"x5') FROM replica WHERE key LIKE '%%\"i5\"%%'"),
        1);
}

static void assert_right(void)
{
    tables_verb(t, 0, "result: 26 equal, 0 different, 0 pending", "verify");
}

static void assert_err(const char *text)
{
    if (!strstr(verb_err(t->v), text))
        fail_msg("no %s in\n%s", text, verb_err(t->v));
}

static void assert_out(const char *text)
{
    if (!strstr(verb_out(t->v), text))
        fail_msg("no %s in\n%s", text, verb_out(t->v));
}

/* ---- what is said ---- */

static void each_row_is_told_in_words_and_as_json(void **state)
{
    (void)state;
    damage();
    tables_verb(t, 1, "replica: different {\"PK\":{\"S\":\"i3\"}}: would be written\n", "repair --dry-run");
    assert_out("replica: missing {\"PK\":{\"S\":\"i4\"}}: would be written\n");
    assert_out("replica: left over {\"PK\":{\"S\":\"x5\"}}: would be left (WouldRemove: ");
    assert_out("would be: 2 written, 0 removed, 0 already right, 0 moved, 1 left, 0 failed\n");
    tables_verb(t, 1,
                "{\"result\":\"would be\",\"written\":2,\"removed\":1,\"already right\":0,\"moved\":0,"
                "\"left\":0,\"failed\":0}\n",
                "repair --dry-run --delete --json");
    assert_out(
        "\"route\":\"replica\",\"source_key\":{\"PK\":{\"S\":\"i3\"}},\"kind\":\"different\",\"outcome\":"
        "\"written\",\"before_sha256\":\"");
    tables_verb(t, 1, "\"code\":\"WouldRemove\",\"why\":\"", "repair --json --audit audit.jsonl");
    const char *audit = verb_read(t->v, "audit.jsonl");
    assert_null(strstr(audit, "i3"));
    assert_non_null(strstr(audit, "\"key_sha256\":\""));
    tables_verb(t, 0, "repaired: 0 written, 1 removed,", "repair --delete --audit audit.jsonl");
    size_t lines = 0;
    for (const char *at = verb_read(t->v, "audit.jsonl"); (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, 4);
    assert_right();
}

/* ---- rows that are left ---- */

static void configure(const char *routes)
{
    test_write(t->s->config_path, json_printf("{'on_failure':'report','routes':[%s]}", routes));
}

/* Two routes write one table: whose a row is that is left over, nobody knows. */
static void a_row_that_may_be_anothers_is_left(void **state)
{
    (void)state;
    static const struct {
        const char *other;
        bool is_shared;
    } cases[] = {
        {"{'name':'b','handler':'replicate','to':'sqlite:${DIR}/out.db?table=replica','where':{'n':['x']}}",
         true},
        {"{'name':'b','handler':'replicate','to':'sqlite:${DIR}/out.db?table=replica2'}", false},
        {"{'name':'b','handler':'replicate','to':'sqlite:${DIR}/other.db?table=replica'}", false},
        {TOTALS, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        configure(json_printf("%s,%s", REPLICA, cases[i].other));
        tables_sql(t, "out.db", "DELETE FROM replica WHERE key LIKE '%%\"x5\"%%'");
        tables_sql(t, "out.db",
                   "INSERT OR REPLACE INTO replica SELECT replace(key, '\"i5', '\"x5'), replace(item, "
                   "'\"i5', '\"x5') FROM replica WHERE key LIKE '%%\"i5\"%%'");
        tables_sql(t, "out.db",
                   "CREATE TABLE IF NOT EXISTS replica2 (key TEXT PRIMARY KEY, item TEXT NOT NULL) "
                   "WITHOUT ROWID");
        tables_sql(t, "other.db",
                   "CREATE TABLE IF NOT EXISTS replica (key TEXT PRIMARY KEY, item TEXT NOT NULL) "
                   "WITHOUT ROWID");
        tables_run(t, "repair --delete --dry-run --routes replica");
        bool is_left =
            strstr(verb_out(t->v), "would be left (SeveralOwners: another route writes the same table");
        if (is_left != cases[i].is_shared)
            fail_msg("%s: %s", cases[i].other, verb_out(t->v));
    }
}

static void two_items_under_one_key_are_left(void **state)
{
    (void)state;
    configure(
        "{'name':'by','handler':'replicate','to':'sqlite:${DIR}/by.db?table=by','key':{'ID':'{PK|upper}'}}");
    stage_reopen(t->s, NULL);
    for (int i = 0; i < ITEMS; i++)
        tables_put(t, json_printf("c%d", i), "");
    tables_put(t, "C7", "");
    tables_verb(t, 1, ", 1 collision), 0 pending", "verify");
    tables_verb(t, 1,
                ": left (Collision: two items of the source have this key in the target: change the route's "
                "\"key\")\n",
                "repair");
}

static void as_many_rows_go_as_may(void **state)
{
    (void)state;
    tables_sql(t, "out.db",
               "INSERT INTO replica SELECT replace(key, '\"i', '\"x'), replace(item, '\"i', '\"x') "
               "FROM replica WHERE key LIKE '%%\"i1%%'");
    tables_verb(t, 1, "0 written, 2 removed, 0 already right, 0 moved, 1 left, 0 failed",
                "repair --delete --max-deletes 2");
    assert_out("left (MaxDeletes: as many rows were removed as may be (--max-deletes))");
    tables_verb(t, 0, "0 written, 1 removed", "repair --delete --max-deletes 2");
    assert_right();
}

/* ---- totals ---- */

static void a_total_is_set_right_when_it_is_asked_for(void **state)
{
    (void)state;
    tables_sql(t, "out.db", "UPDATE totals SET item = replace(item, '\"N\":\"66\"', '\"N\":\"68.5\"')");
    tables_verb(t, 1, "sum {\"PK\":{\"S\":\"ALL\"}} sum: left (NoTotals: only --totals sets it right)\n",
                "repair");
    tables_verb(t, 1, "sum {\"PK\":{\"S\":\"ALL\"}} sum: would be written, -2.5 added\n",
                "repair --totals --dry-run --audit audit.jsonl");
    assert_string_equal(verb_read(t->v, "audit.jsonl"), "");
    tables_verb(
        t, 1,
        "\"key\":{\"PK\":{\"S\":\"ALL\"}},\"kind\":\"sum\",\"attribute\":\"sum\",\"outcome\":\"left\","
        "\"code\":\"NoTotals\"",
        "repair --json");
    tables_verb(t, 0, "\"kind\":\"sum\",\"attribute\":\"sum\",\"outcome\":\"written\",\"added\":\"-2.5\"}\n",
                "repair --totals --json --audit audit.jsonl");
    const char *audit = verb_read(t->v, "audit.jsonl");
    assert_non_null(
        strstr(audit, "\"kind\":\"sum\",\"attribute\":\"sum\",\"outcome\":\"written\",\"added\":\"-2.5\""));
    assert_non_null(strstr(audit, "\"key_sha256\":\""));
    assert_null(strstr(audit, "ALL"));
    assert_right();
    /* Rows of values are made anew by a backfill alone. */
    tables_sql(t, "out.db", "UPDATE totals SET item = replace(item, '\"sum\":{\"N\":', '\"sum\":{\"S\":')");
    tables_verb(t, 1, "left (NoNumber: the attribute is not a number)", "repair --totals");
}

/* What only a backfill into a new ledger can set right is not right after a repair. */
static void what_no_repair_sets_right_is_told(void **state)
{
    (void)state;
    configure(
        "{'name':'by','handler':'aggregate','to':'sqlite:${DIR}/by.db?table=by','counters':[{'key':{'PK':"
        "'ALL','SK':'-'},'add':{'n':1},'members':{'by':'{n}'}}]}");
    stage_reopen(t->s, NULL);
    for (int i = 0; i < ITEMS; i++)
        tables_put(t, json_printf("i%d", i), json_printf("'n':{'N':'%d'}", i));
    tables_verb(t, 0, "totals: 2 equal", "repair --totals");
    assert_int_equal(tables_sql(t, "by.db",
                                "DELETE FROM by WHERE item LIKE '%%\"item\":{\"M\":{\"PK\":{\"S\":\"i3\"}%%'"
                                " AND key NOT LIKE '%%sluice:%%'"),
                     1);
    tables_verb(t, 1, "members of {\"PK\":{\"S\":\"ALL\"},\"SK\":{\"S\":\"-\"}}", "verify");
    tables_verb(t, 1,
                "members {\"PK\":{\"S\":\"ALL\"},\"SK\":{\"S\":\"-\"}}: left (NoRows: ", "repair --totals");
    tables_verb(t, 1, "\"kind\":\"members\"", "repair --totals --json");
}

/* ---- findings ---- */

static void findings_are_looked_at_once_more(void **state)
{
    (void)state;
    damage();
    tables_sql(t, "out.db", "UPDATE totals SET item = replace(item, '\"N\":\"66\"', '\"N\":\"68\"')");
    tables_verb(t, 1, "\"different\":", "verify --json");
    verb_write(t->v, "found.jsonl", json_printf("\n%s\n\n", verb_out(t->v)));
    verb_write(t->v, "more.jsonl",
               "{'result':'different','kind':'gap','handler':'archive'}\n{'result':'different',"
               "'kind':'values'}\n{'result':'different','kind':'members'}\n{'result':'pending'}");
    /* What was found meanwhile is no matter of theirs. */
    tables_sql(t, "out.db", "DELETE FROM replica WHERE key LIKE '%%\"i7\"%%'");
    tables_verb(t, 1, "repaired: 2 written, 0 removed, 0 already right, 0 moved, 1 left,",
                "repair found.jsonl more.jsonl");
    assert_err(
        "sluice repair: 4 findings are of totals or archives, and left alone: totals are repaired with "
        "--totals\n");
    /* The total's difference is added, once; the rows of before are right by now. */
    tables_verb(t, 1, "repaired: 1 written, 0 removed, 0 already right, 0 moved, 3 left,",
                "repair found.jsonl more.jsonl --totals");
    assert_err("sluice repair: 1 finding is of totals or archives, and left alone: totals are repaired with "
               "--totals\n");
    tables_verb(t, 1, "repaired: 0 written, 0 removed, 0 already right, 1 moved, 1 left,",
                "repair found.jsonl --totals");
    tables_verb(t, 3, "repaired: 0 written, 1 removed, ", "repair --delete found.jsonl");
    tables_verb(t, 1, "1 different (1 missing), 0 pending", "verify --no-totals");
    tables_verb(t, 0, "repaired: 1 written,", "repair --totals --delete");
}

static void what_is_no_finding_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"[]", "line 2"},
        {"{'result':'different'", "line 2"},
        {"{'result':'different'}", "a difference without \"route\" or \"source_key\""},
        {"{'result':'different','route':'replica'}", "a difference without \"route\" or \"source_key\""},
        {"{'result':'different','route':'replica','source_key':'x'}", "a difference without"},
        {"{'result':'different','route':'nosuch','source_key':{'PK':{'S':'a'}}}", "has no route \"nosuch\""},
        {"{'result':'different','route':'replica','source_key':{'ID':{'S':'a'}}}",
         "it is not a key of the table"},
    };
    damage();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(
            t->v, "found.jsonl",
            json_printf("{'result':'different','route':'replica','source_key':{'PK':{'S':'i3'}}}\n%s\n",
                        cases[i].line));
        if (cases[i].line[0] == '[') { /* (a line that is JSON and tells nothing is passed over) */
            tables_run(t, "repair found.jsonl");
            continue;
        }
        tables_verb(t, 2, cases[i].text, "repair found.jsonl");
        assert_err("found.jsonl: line 2");
        assert_string_equal(verb_out(t->v), "");
    }
    verb_write(t->v, "good.jsonl",
               "{'result':'different','route':'replica','source_key':{'PK':{'S':'i3'}}}\n");
    tables_verb(t, 2, "found.jsonl: line 2", "repair found.jsonl good.jsonl");
    assert_string_equal(verb_out(t->v), "");
    tables_verb(t, 2, "--undo takes no findings", "repair --undo found.jsonl found.jsonl");
}

/* Nothing shows that it is the right table: nothing is begun, unless there is nothing to lose, or the items
 * are named. */
static void a_table_of_other_items_is_not_repaired_from(void **state)
{
    (void)state;
    tables_sql(t, "src.db", "UPDATE orders SET item = replace(item, '\"n\":{\"N\":\"', '\"n\":{\"N\":\"9')");
    const char *before = tables_rows(t, "out.db", "SELECT key, item FROM replica");
    tables_verb(t, 2, "replica: 12 items of --table sqlite:", "repair --routes replica");
    assert_err(
        "were read, and not one has an equal row: give the table that the route follows; if it is the right "
        "one, run sluice backfill");
    assert_string_equal(tables_rows(t, "out.db", "SELECT key, item FROM replica"), before);
    tables_verb(t, 1, "sluice verify: replica: not one row is equal: is --table sqlite:", "verify");
    tables_verb(t, 0, "1 written", "repair --item '{\"PK\":{\"S\":\"i3\"}}' --routes replica");
    tables_sql(t, "out.db", "DELETE FROM replica");
    tables_verb(t, 0, "12 written", "repair --routes replica");
    /* So few items are no doubt. */
    tables_sql(t, "src.db",
               "DELETE FROM orders WHERE key > '{\"PK\":{\"S\":\"i4'; UPDATE orders SET item = "
               "replace(item, '\"n\":{\"N\":\"', '\"n\":{\"N\":\"7')");
    tables_verb(t, 0, "6 written, 6 removed", "repair --routes replica --delete");
}

/* ---- kept and put back ---- */

static void a_repair_is_put_back(void **state)
{
    (void)state;
    damage();
    tables_sql(t, "out.db", "DELETE FROM ledger WHERE key LIKE '%%i6%%'");
    tables_verb(t, 0, "5 written, 1 removed", "repair --delete --save saved --totals");
    assert_right();
    tables_verb(t, 1, "replica: {\"PK\":{\"S\":\"i3\"}}: would be written\n",
                "repair --undo saved --dry-run");
    assert_out("would be: 2 written, 1 removed,");
    tables_put(t, "i4", "'n':{'N':'44'}"); /* since then it has changed */
    tables_verb(t, 1, "replica: {\"PK\":{\"S\":\"i4\"}}: moved (the row is not as the repair left it)\n",
                "repair --undo saved");
    assert_out("undone: 2 written, 0 removed, 0 already right, 1 moved, 0 left, 0 failed\n");
    tables_verb(t, 1, "23 equal, 2 different (", "verify --no-totals");
    tables_verb(t, 1, "{\"result\":\"undone\",\"written\":0,\"removed\":0,\"already right\":0,\"moved\":3,",
                "repair --undo saved --json");
    tables_verb(t, 0, "1 written, 1 removed", "repair --delete --save saved");
    verb_write(t->v, "saved", json_printf("%s{'route':'repl", verb_read(t->v, "saved")));
    tables_verb(t, 1, "a line that was cut is left: its row was not repaired", "repair --undo saved");
    assert_out("1 left");
}

static void what_was_not_saved_here_is_not_put_back(void **state)
{
    (void)state;
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"{'route':'replica','target':'sqlite:x.db?table=r','source_key':{'PK':{'S':'i3'}},'before':{}}",
         "the row was saved from sqlite:x.db?table=r, and in "},
        {"{'route':'nosuch','target':'x','source_key':{'PK':{'S':'i3'}},'before':{}}",
         "has no route \"nosuch\""},
        {"{'target':'x','source_key':{'PK':{'S':'i3'}},'before':{}}",
         "it is no line that sluice repair --save"},
        {"{'route':'replica','source_key':{'PK':{'S':'i3'}},'before':{}}", "it is no line that"},
        {"{'route':'replica','target':'x','before':{}}", "it is no line that"},
        {"{'route':'replica','target':'x','source_key':'i3','before':{}}", "it is no line that"},
        {"{'route':'replica','target':'x','source_key':{'PK':{'S':'i3'}}}", "it is no line that"},
        {"{'route':7,'target':'x','source_key':{'PK':{'S':'i3'}},'after':{}}", "it is no line that"},
        {"{'route':77,'target':'x','source_key':{'PK':{'S':'i3'}},'after':{}}", "it is no line that"},
        {"{'result':'different','route':'replica','target':'x','source_key':{'PK':{'S':'i3'}},'after':{}}",
         "give the file of --save"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(t->v, "saved", json_printf("%s\n", cases[i].line));
        tables_verb(t, 2, cases[i].text, "repair --undo saved");
        assert_err("saved: line 1");
    }
    tables_verb(t, 2, "", "repair --undo saved --config nowhere.json");
}

/* A row whose mark is in another table goes without a trace of its own. */
static void a_removed_row_is_put_back(void **state)
{
    (void)state;
    configure("{'name':'aside','handler':'replicate','to':'sqlite:${DIR}/"
              "aside.db?table=aside','tombstones':{'table':"
              "'marks'}}");
    stage_reopen(t->s, NULL);
    for (int i = 0; i < ITEMS; i++)
        tables_put(t, json_printf("i%d", i), json_printf("'n':{'N':'%d'}", i));
    tables_sql(t, "src.db", "DELETE FROM orders WHERE key LIKE '%%\"i3\"%%'");
    const char *before = tables_rows(t, "aside.db", "SELECT json_extract(item, '$.n') FROM aside");
    tables_verb(t, 0, "0 written, 1 removed", "repair --delete --save saved");
    assert_null(strstr(verb_read(t->v, "saved"), "\"after\""));
    tables_verb(t, 0, "1 written, 0 removed", "repair --undo saved");
    assert_string_equal(tables_rows(t, "aside.db", "SELECT json_extract(item, '$.n') FROM aside"), before);
}

/* Nobody knows whether the consumer is past it: nothing is written, and the exit status says so. */
static void what_is_pending_is_not_repaired(void **state)
{
    (void)state;
    damage();
    verb_write(t->v, "place.json", "{'stream':'x','through':'2020-01-01T00:00:00Z'}");
    const char *before = tables_rows(t, "out.db", "SELECT item FROM replica");
    tables_verb(t, 3, "0 written, 0 removed, 0 already right, 0 moved, 0 left, 0 failed",
                "repair --delete --consumer place.json --wait 0");
    assert_string_equal(tables_rows(t, "out.db", "SELECT item FROM replica"), before);
}

/* A ledger's row of an item that is gone is taken away with what it counted, whoever else writes these
 * totals. */
static void a_ledgers_row_that_is_left_over_goes(void **state)
{
    (void)state;
    configure(
        TOTALS
        ",{'name':'more','handler':'aggregate','to':'sqlite:${DIR}/out.db?table=totals','ledger':{'table'"
        ":'ledger'},'counters':[{'key':{'PK':'MORE'},'add':{'more':1}}]}");
    stage_reopen(t->s, NULL);
    tables_put(t, "i3", "'n':{'N':'30'}");
    tables_sql(t, "src.db", "DELETE FROM orders WHERE key LIKE '%%\"i3\"%%'");
    tables_verb(t, 1, "would be left (WouldRemove: ", "repair --dry-run --routes totals --save saved");
    tables_verb(t, 0, "0 written, 1 removed", "repair --delete --routes totals --save saved");
    assert_string_equal(verb_read(t->v, "saved"), ""); /* a ledger's row is not put back without its totals */
    tables_verb(t, 1, "totals: 11 equal, 0 different", "verify");
    assert_out("more: 0 equal, 12 different (11 missing, 1 left over)");
}

/* ---- a disk that keeps nothing ---- */

#define LIVE "SELECT key, json_extract(item, '$.n') FROM replica WHERE item NOT LIKE '%sluice_deleted%'"

/* Each operation of a repair fails, one in each run. What was repaired is in the file of --save, whole,
 * before it is done; so the undo of all files brings the damage back, and the repair without failures mends
 * it. */
static void what_cannot_be_kept_is_not_repaired(void **state)
{
    (void)state;
    for (int e = 0; e < 2; e++)
        for (int n = 1;; n++) {
            tables_sql(t, "out.db", "DELETE FROM replica WHERE key LIKE '%%\"x5\"%%'");
            if (n == 1 && e == 0)
                damage();
            const char *before = tables_rows(t, "out.db", LIVE);
            verb_fault(t->v, n, e ? EIO : ENOSPC, NULL);
            int status = tables_run(t, "repair --routes replica --save saved --audit audit");
            bool came = disk_fault_came();
            const char *after = tables_rows(t, "out.db", LIVE);
            bool is_changed = strcmp(before, after) != 0;
            bool is_done = strstr(verb_out(t->v), "repaired: 2 written") != NULL;
            if ((status == 0 && !is_done) || (!came && status != 0) || !*verb_err(t->v) ||
                (is_changed && !*verb_read(t->v, "saved")))
                fail_msg("operation %d (%s): exit status %d:\n%s%s", n, disk_fault->came, status,
                         verb_out(t->v), verb_err(t->v));
            if (is_changed)
                tables_run(t, "repair --undo saved");
            assert_string_equal(tables_rows(t, "out.db", LIVE), before);
            unlink(json_printf("%s/saved", verbs_folder(t->v)));
            if (!came)
                break;
        }
    tables_verb(t, 0, "2 written", "repair --routes replica");
    assert_right();
}

static void the_files_of_a_repair_are_appended_to(void **state)
{
    (void)state;
    static const char *const flags[] = {"--audit", "--save"};
    for (size_t i = 0; i < 2; i++) {
        damage();
        verb_write(t->v, "kept", "{'cut'"); /* by a process that was killed */
        tables_verb(t, 0, "2 written, 1 removed", "repair --delete %s kept", flags[i]);
        const char *kept = verb_read(t->v, "kept");
        assert_memory_equal(kept, "{\"cut\"\n{\"", 9);
        tables_verb(t, 2, json_printf("sluice repair: %s .: cannot be written: Is a directory", flags[i]),
                    "repair %s .", flags[i]);
        damage();
        tables_verb(t, 1, "/dev/full: cannot be written: ", "repair --delete %s /dev/full", flags[i]);
        assert_err("nothing more is repaired");
        tables_sql(t, "out.db", "UPDATE totals SET item = replace(item, '\"N\":\"66\"', '\"N\":\"68\"')");
        tables_verb(t, 1, i ? "written" : "left (NotKept: what has to be kept of the write could not be)",
                    "repair --delete --totals %s /dev/full", flags[i]);
        tables_run(t, "repair --totals");
        tables_verb(t, 0, "repaired: ", "repair --delete");
        assert_right();
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_row_is_told_in_words_and_as_json),
        TEST(a_row_that_may_be_anothers_is_left),
        TEST(two_items_under_one_key_are_left),
        TEST(as_many_rows_go_as_may),
        TEST(a_total_is_set_right_when_it_is_asked_for),
        TEST(what_no_repair_sets_right_is_told),
        TEST(findings_are_looked_at_once_more),
        TEST(what_is_no_finding_is_refused_with_its_line),
        TEST(a_table_of_other_items_is_not_repaired_from),
        TEST(a_repair_is_put_back),
        TEST(what_was_not_saved_here_is_not_put_back),
        TEST(a_removed_row_is_put_back),
        TEST(what_is_pending_is_not_repaired),
        TEST(a_ledgers_row_that_is_left_over_goes),
        TEST(what_cannot_be_kept_is_not_repaired),
        TEST(the_files_of_a_repair_are_appended_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
