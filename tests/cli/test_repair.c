/* `sluice backfill`, `verify` and `repair` on tables of SQLite: over random tables and random damage, verify
 * finds what was damaged and nothing else, and repair leaves none of it. Then each flag, and what is refused.
 */
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include "base/clock.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE "--table sqlite:src.db?table=orders"
#define ITEMS  40
#define PLACES 3

static const char config[] =
    "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':["
    "{'name':'replica','handler':'replicate','to':'sqlite:out.db?table=replica'},"
    "{'name':'beside','handler':'replicate','to':'sqlite:out.db?table=beside','guard':{'table':'guards'},"
    "'rename':{'cost':'price'},'drop':['tags'],'set':{'label':'{PK|upper}:{cost}'},"
    "'where':{'status':['OPEN','PAID']}},"
    "{'name':'totals','handler':'aggregate','to':'sqlite:out.db?table=totals','ledger':{'table':'ledger'},"
    "'counters':[{'key':{'PK':'S#{status}'},'add':{'n':1,'sum':'{cost}'}}]}]}";

static uint64_t seed;

static uint64_t draw(uint64_t n)
{
    return sl_random_step(&seed) % n;
}

/* ---- SQL ---- */

static sqlite3 *open_db(const struct verbs *v, const char *name)
{
    sqlite3 *db = NULL;
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", verbs_folder(v), name);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    return db;
}

/* Returns the number of rows that it changed. */
static int sql(const struct verbs *v, const char *name, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = sqlite3_vmprintf(format, list), *error = NULL;
    va_end(list);
    sqlite3 *db = open_db(v, name);
    if (sqlite3_exec(db, text, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", text, error);
    int changed = sqlite3_total_changes(db);
    sqlite3_close(db);
    sqlite3_free(text);
    return changed;
}

/* The rows of a table, without tombstones and without what a repair leaves as another write.
 * The caller frees it. */
static char *rows(const struct verbs *v, const char *table)
{
    sqlite3 *db = open_db(v, "out.db");
    sqlite3_stmt *query = NULL;
    char *text = sqlite3_mprintf("SELECT key, json_remove(item, '$.sluice_write', '$.sluice_order', "
                                 "'$.order', '$.sluice_added_n', '$.sluice_added_sum') FROM %s "
                                 "WHERE item NOT LIKE '%%sluice_deleted%%' ORDER BY key",
                                 table),
         *out = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&out, &len);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &query, NULL), SQLITE_OK);
    while (sqlite3_step(query) == SQLITE_ROW) {
        json_t *item = json_loads((const char *)sqlite3_column_text(query, 1), 0, NULL);
        char *sorted = json_dumps(item, JSON_SORT_KEYS | JSON_COMPACT);
        fprintf(file, "%s %s\n", sqlite3_column_text(query, 0), sorted);
        free(sorted);
        json_decref(item);
    }
    fclose(file);
    sqlite3_finalize(query);
    sqlite3_close(db);
    sqlite3_free(text);
    return out;
}

static void assert_same_rows(const char *after, const char *before)
{
    while (*after && strcspn(after, "\n") == strcspn(before, "\n") &&
           strncmp(after, before, strcspn(after, "\n")) == 0)
        after += strcspn(after, "\n") + 1, before += strcspn(before, "\n") + 1;
    if (*after || *before)
        fail_msg("%.*s\nwas\n%.*s", (int)strcspn(after, "\n"), after, (int)strcspn(before, "\n"), before);
}

/* ---- the world: a table, and what the routes make of it ---- */

static void write_item(const struct verbs *v, size_t i)
{
    static const char *const statuses[] = {"OPEN", "PAID", "GONE"};
    const char *key = json_printf("'PK':{'S':'i%02zu'},'SK':{'N':'%zu'}", i, i % 4);
    sql(v, "src.db",
        "INSERT INTO orders VALUES ('{%s}', "
        "'{%s,\"status\":{\"S\":\"%s\"},\"cost\":{\"N\":\"%d\"},\"tags\":{\"SS\":[\"a\",\"b\"]}}')",
        key, key, statuses[draw(3)], (int)draw(500));
}

static int set_up(void **state)
{
    struct verbs *v = verbs_new();
    *state = v;
    disk_fault->skips_sleep = true;
    verb_write(v, "sluice.json", config);
    sql(v, "src.db", "CREATE TABLE orders (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID");
    return 0;
}

static void fill(struct verbs *v, uint64_t with_seed)
{
    seed = with_seed;
    for (size_t i = 0; i < ITEMS; i++)
        write_item(v, i);
    verb_assert(v, verb(v, "backfill --keys PK,SK --unsafe-order " SOURCE), 0, "items              40\n");
}

static int tear_down(void **state)
{
    verbs_destroy(*state);
    disk_fault->skips_sleep = false;
    return 0;
}

/* ---- random damage ---- */

/* What verify is to find, in any order: "route kind key". */
static char wanted[ITEMS * 8][160];
static size_t n_wanted;

static void want(const char *route, const char *kind, const char *key)
{
    snprintf(wanted[n_wanted++], sizeof(wanted[0]), "%s %s %s", route, kind, key);
}

static bool is_wanted(const char *text)
{
    for (size_t i = 0; i < n_wanted; i++)
        if (strcmp(wanted[i], text) == 0) {
            wanted[i][0] = '\0';
            return true;
        }
    return false;
}

/* One kind of damage to the rows of one item; nothing, where its route has none. */
static void damage(struct verbs *v, size_t i)
{
    char key[16];
    snprintf(key, sizeof(key), "i%02zu", i);
    switch (draw(6)) {
    case 0:
        sql(v, "out.db", "DELETE FROM replica WHERE key LIKE '%%\"%s\"%%'", key);
        want("replica", "missing", key);
        break;
    case 1:
        sql(v, "out.db",
            "UPDATE replica SET item = replace(item, '\"cost\":{\"N\":\"', '\"cost\":{\"N\":\"9') WHERE key "
            "LIKE '%%\"%s\"%%'",
            key);
        want("replica", "different", key);
        break;
    case 2:
        sql(v, "out.db",
            "INSERT INTO replica SELECT replace(key, '\"i', '\"x'), replace(item, '\"i', '\"x') FROM replica "
            "WHERE key LIKE '%%\"%s\"%%'",
            key);
        key[0] = 'x';
        want("replica", "revived", key);
        break;
    case 3:
        if (sql(v, "out.db",
                "UPDATE beside SET item = replace(item, '\"label\":{\"S\":\"', '\"label\":{\"S\":\"?') WHERE "
                "key LIKE '%%\"%s\"%%'",
                key))
            want("beside", "different", key);
        break;
    case 4:
        if (sql(v, "out.db", "DELETE FROM beside WHERE key LIKE '%%\"%s\"%%'", key))
            want("beside", "missing", key);
        break;
    default:
        sql(v, "out.db", "DELETE FROM ledger WHERE key LIKE '%%\"%s\\\"%%'", key);
        sql(v, "out.db", "DELETE FROM ledger WHERE key LIKE '%%\\\"%s\\%%'", key);
        want("totals", "missing", key);
    }
}

/* Compares what was found with what was wanted: of totals, the sums follow from the ledger and are not
 * listed. */
static void assert_found(struct verbs *v)
{
    size_t n = n_wanted;
    for (const char *at = verb_out(v); *at; at += strcspn(at, "\n") + 1) {
        json_t *line = json_loadb(at, strcspn(at, "\n"), 0, NULL);
        const char *route = json_string_value(json_object_get(line, "route")),
                   *kind = json_string_value(json_object_get(line, "kind"));
        const char *result = json_string_value(json_object_get(line, "result"));
        assert_non_null(result);
        if (route && strcmp(result, "different") == 0) {
            char text[160];
            snprintf(text, sizeof(text), "%s %s %s", route, kind,
                     json_string_value(
                         json_object_get(json_object_get(json_object_get(line, "source_key"), "PK"), "S")));
            if (!is_wanted(text))
                fail_msg("nobody did this: %s\n%s", text, verb_out(v));
            n--;
        }
        json_decref(line);
    }
    for (size_t i = 0; i < n_wanted; i++)
        if (wanted[i][0])
            fail_msg("not found: %s\n%s", wanted[i], verb_out(v));
    assert_int_equal(n, 0);
}

static void verify_finds_what_was_damaged_and_repair_leaves_none(void **state)
{
    static const char *const tables[] = {"replica", "beside", "totals", "ledger"};
    for (uint64_t world = 1; world <= 8; world++) {
        struct verbs *v = *state;
        char *before[4];
        fill(v, world);
        for (size_t i = 0; i < 4; i++)
            before[i] = rows(v, tables[i]);
        verb_assert(v, verb(v, "verify --max-lag 0 " SOURCE), 0, "result: ");
        n_wanted = 0;
        bool is_damaged = false;
        for (size_t i = 0; i < ITEMS; i++)
            if (draw(world % 4 + 1) == 0)
                damage(v, i);
        is_damaged = n_wanted > 0;
        if (draw(2)) {
            sql(v, "out.db", "UPDATE totals SET item = replace(item, '\"n\":{\"N\":\"', '\"n\":{\"N\":\"7')");
            is_damaged = true;
        }
        assert_int_equal(verb(v, "verify --max-lag 0 --json --quiet --segments %d " SOURCE, 1 + (int)draw(4)),
                         is_damaged);
        assert_found(v);
        verb_assert(v, verb(v, "repair --max-lag 0 --delete --totals " SOURCE), 0, "0 left, 0 failed");
        verb_assert(v, verb(v, "verify --max-lag 0 " SOURCE), 0,
                    " 0 different, 0 pending, 0 unsettled, 0 not comparable");
        for (size_t i = 0; i < 4; i++) {
            char *after = rows(v, tables[i]);
            assert_same_rows(after, before[i]);
            free(after);
            free(before[i]);
        }
        tear_down(state);
        set_up(state);
    }
}

/* ---- flags ---- */

#define DAMAGED_KEY "{\"PK\":{\"S\":\"i05\"},\"SK\":{\"N\":\"1\"}}"

/* The replica lacks one item, and has another's cost wrong. */
static void damage_two(struct verbs *v)
{
    assert_int_equal(sql(v, "out.db", "DELETE FROM replica WHERE key LIKE '%%\"i05\"%%'"), 1);
    assert_int_equal(sql(v, "out.db",
                         "UPDATE replica SET item = replace(item, '\"cost\":{\"N\":\"', "
                         "'\"cost\":{\"N\":\"9') WHERE key LIKE '%%\"i06\"%%'"),
                     1);
}

static void flags_choose_what_is_verified(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *flags;
        int status;
        const char *text;
    } cases[] = {
        {"--max-lag 0", 1, "result: 124 equal, 2 different (1 missing, 1 different)"},
        {"--max-lag 0 --ignore cost", 1, "1 different (1 missing)"},
        {"--max-lag 0 --routes replica", 1, "2 different"},
        {"--max-lag 0 --routes beside,totals", 0, " 0 different"},
        {"--max-lag 0 --routes nothing", 2, "nothing"},
        {"--max-lag 0 --item '" DAMAGED_KEY "'", 1, "1 different (1 missing)"},
        {"--max-lag 0 --item '{\"PK\":{\"S\":\"i07\"},\"SK\":{\"N\":\"3\"}}'", 0, " 0 different"},
        {"--max-lag 0 --item '{\"PK\":'", 2, "--item"},
        {"--max-lag 0 --item '{\"PK\":{\"S\":\"a\"}}'", 2, "--item"},
        {"--max-lag 0 --match '{\"cost\":{\"N\":[{\"exists\":true}]}}'", 1, "2 different"},
        {"--max-lag 0 --match '{\"PK\":{\"S\":[\"i05\"]}}'", 1, "1 different (1 missing)"},
        {"--max-lag 0 --match '{\"PK\":{\"S\":[\"i04\"]}}'", 0, " 0 different"},
        {"--max-lag 0 --match '{\"PK\"'", 2, "--match"},
        {"--max-lag 0 --no-totals", 1, "result: 118 equal, 2 different"},
        {"--max-lag 0 --sample 0/4", 2, "--sample"},
        {"--max-lag 0 --sample x", 2, "--sample"},
        {"--max-lag 0 --sample 5/4", 2, "--sample"},
        {"--max-lag 0 --json --show-values --routes replica", 1, "\"source\":{\"PK\""},
        {"--max-lag 0 --plan", 0, "read units"},
        {"--wait 1", 3, "pending"},
        {"--consumer nowhere.json", 2, "nowhere.json"},
        {"--max-lag 0 --read-units 100000", 1, "2 different"},
        {"--max-lag 0 --ttl-attribute expires", 1, "2 different"},
        {"--max-lag 0 --config nowhere.json", 2, "nowhere.json"},
    };
    fill(v, 77);
    damage_two(v);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        verb_assert(v, verb(v, "verify " SOURCE " %s", cases[i].flags), cases[i].status, cases[i].text);
    verb_assert(v, verb(v, "verify"), 2, "--table");
    verb_assert(v, verb(v, "verify --max-lag 0 --table sqlite:out.db?table=replica"), 2,
                "is the table that the route replica writes");
    verb_assert(v, verb(v, "verify --max-lag 0 --table sqlite:out.db?table=guards"), 2,
                "is the table that the route beside writes");
    verb_assert(v, verb(v, "verify --max-lag 0 --table sqlite:out.db?table=ledger"), 2,
                "is the table that the route totals writes");
    verb_assert(v, verb(v, "verify --max-lag 0 --table sqlite:nowhere.db?table=t"), 2, "nowhere.db");
}

static void a_proof_is_kept(void **state)
{
    struct verbs *v = *state;
    fill(v, 78);
    verb_assert(v, verb(v, "verify --max-lag 0 --verified proofs.json " SOURCE), 0, "SecondsSinceVerified");
    assert_non_null(strstr(verb_read(v, "proofs.json"), "replica"));
    damage_two(v);
    verb_assert(v, verb(v, "verify --max-lag 0 --verified proofs.json --checkpoint cp " SOURCE), 1,
                "SecondsSinceVerified");
    assert_string_equal(verb_read(v, "cp"), "");
    verb_write(v, "proofs.json", "{");
    assert_true(verb(v, "verify --max-lag 0 --verified proofs.json " SOURCE) != 0);
}

static void a_repair_is_planned_limited_recorded_and_undone(void **state)
{
    struct verbs *v = *state;
    fill(v, 79);
    char *whole = rows(v, "replica");
    damage_two(v);
    sql(v, "out.db",
        "INSERT INTO replica SELECT replace(key, '\"i0', '\"x0'), replace(item, '\"i0', '\"x0') FROM replica "
        "WHERE key LIKE '%%\"i0%%'");
    char *damaged = rows(v, "replica");
    verb_assert(v, verb(v, "verify --max-lag 0 --json " SOURCE), 1, "\"different\":11,");
    char *found = strdup(verb_out(v));
    verb_assert(v, verb(v, "repair --max-lag 0 --dry-run --delete " SOURCE), 1, "would");
    char *after = rows(v, "replica");
    assert_same_rows(after, damaged);
    free(after);
    verb_assert(v, verb(v, "repair --max-lag 0 " SOURCE), 1, "2 written, 0 removed");
    verb_assert(
        v,
        verb(v, "repair --max-lag 0 --delete --max-deletes 4 --audit audit.jsonl --save saved.jsonl " SOURCE),
        1, "0 written, 4 removed");
    assert_non_null(strstr(verb_read(v, "audit.jsonl"), "removed"));
    verb_assert(v, verb(v, "repair --undo saved.jsonl " SOURCE), 0, "");
    verb_assert(v, verb(v, "verify --max-lag 0 " SOURCE), 1, "9 different (9 revived)");
    char *path = NULL;
    assert_true(asprintf(&path, "%s/found.jsonl", verbs_folder(v)) > 0);
    test_write(path, found);
    free(path);
    free(found);
    verb_assert(v, verb(v, "repair --max-lag 0 --delete found.jsonl " SOURCE), 0, "9 removed");
    after = rows(v, "replica");
    assert_same_rows(after, whole);
    free(after);
    verb_assert(v, verb(v, "repair --max-lag 0 nowhere.jsonl " SOURCE), 2, "nowhere.jsonl");
    verb_write(v, "wrong.jsonl", "{'result':'different'}\n[]\n");
    verb_assert(v, verb(v, "repair --max-lag 0 wrong.jsonl " SOURCE), 2, "wrong.jsonl");
    verb_assert(v, verb(v, "repair --undo wrong.jsonl " SOURCE), 2, "wrong.jsonl");
    verb_assert(v, verb(v, "repair --undo nowhere.jsonl " SOURCE), 2, "nowhere.jsonl");
    verb_assert(v, verb(v, "repair " SOURCE), 0, "add --consumer FILE");
    free(whole);
    free(damaged);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(verify_finds_what_was_damaged_and_repair_leaves_none),
        TEST(flags_choose_what_is_verified),
        TEST(a_proof_is_kept),
        TEST(a_repair_is_planned_limited_recorded_and_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
