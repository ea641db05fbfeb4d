/* `sluice backfill` on folders and SQLite tables: what is restored is what a naive fold of the history says,
 * for random histories and moments, with and without a base, killed and begun again; items of every source go
 * through the routes once; and what is refused, before anything is written. */
#include "tests/support/export.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include "base/clock.h"
#include "base/time.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define T0      1795168800 /* 2026-11-20T10:00:00Z */
#define CHANGES 240
#define ITEMS   20
#define RESTORE "backfill --config restore.json --keys PK,SK --temp temp --until "

static uint64_t seed;

static uint64_t draw(uint64_t n)
{
    return sl_random_step(&seed) % n;
}

static const char *time_of(int64_t second)
{
    char text[SL_TIME_BYTES];
    sl_time_text(second * 1000000000, text);
    return json_printf("%.19sZ", text);
}

/* ---- a history, and the table at a moment ---- */

struct change {
    size_t item;
    int64_t second;
    int value; /* -1: removed */
    const char *text;
};

static struct change history[CHANGES];

/* Four changes a second; `old`, `new`: with the images. */
static void make_history(uint64_t with_seed, bool has_old, bool has_new)
{
    int values[ITEMS];
    seed = with_seed;
    memset(values, -1, sizeof(values));
    for (size_t i = 0; i < CHANGES; i++) {
        size_t item = draw(ITEMS);
        int before = values[item], after = before >= 0 && draw(3) == 0 ? -1 : (int)draw(1000);
        int64_t second = T0 + (int64_t)i / 4;
        const char *key = json_printf("'PK':{'S':'i%02zu'},'SK':{'N':'%zu'}", item, item % 3);
        const char *image =
            has_old && before >= 0 ? json_printf(",'OldImage':{%s,'v':{'N':'%d'}}", key, before) : "";
        if (has_new && after >= 0)
            image = json_printf("%s,'NewImage':{'v':{'N':'%d.0'},%s}", image, after, key);
        history[i] = (struct change){
            .item = item,
            .second = second,
            .value = after,
            .text = json_printf("{'eventID':'e%zu','eventName':'%s','eventVersion':'1.1','eventSource':'aws:"
                                "dynamodb','awsRegion':'us-east-1',"
                                "'eventSourceARN':'arn:aws:dynamodb:us-east-1:123456789012:table/orders/"
                                "stream/2026-01-01T00:00:00.000','dynamodb':"
                                "{'ApproximateCreationDateTime':%lld,'Keys':{%s}%s,'SequenceNumber':'%llu','"
                                "SizeBytes':1,'StreamViewType':'%s'}}\n",
                                i,
                                before < 0  ? "INSERT"
                                : after < 0 ? "REMOVE"
                                            : "MODIFY",
                                (long long)second, key, image, 100000000000000000ull + i * 7,
                                has_old   ? has_new ? "NEW_AND_OLD_IMAGES" : "OLD_IMAGE"
                                : has_new ? "NEW_IMAGE"
                                          : "KEYS_ONLY")};
        values[item] = after;
    }
}

/* The values of all items before that second, -1: not there. */
static void table_at(int64_t second, int values[ITEMS])
{
    for (size_t i = 0; i < ITEMS; i++)
        values[i] = -1;
    for (size_t i = 0; i < CHANGES; i++)
        if (history[i].second < second)
            values[history[i].item] = history[i].value;
}

/* Changes from `from` up to `to` and without those in the gap, in objects of random size; some twice. */
static void write_archive(struct verbs *v, const char *name, size_t from, size_t to, size_t gap,
                          size_t gap_end)
{
    static char text[CHANGES * 2000];
    char path[600];
    size_t n = 0;
    snprintf(path, sizeof(path), "%s/%s", verbs_folder(v), name);
    mkdir(path, 0777);
    snprintf(path, sizeof(path), "%s/%s/dt=2026-11-20", verbs_folder(v), name);
    mkdir(path, 0777);
    for (size_t i = from; i < to;) {
        size_t end = i + 1 + draw(40), len = 0;
        for (size_t k = i; k < end && k < to; k++)
            if (k < gap || k >= gap_end)
                len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", history[k].text);
        for (int copies = draw(4) == 0 ? 2 : 1; len && copies; copies--) {
            snprintf(path, sizeof(path), "%s/%s/dt=2026-11-20/%04zu.jsonl", verbs_folder(v), name,
                     (n++ * 7919) % 9973);
            test_write(path, text);
        }
        i = end;
    }
}

static char *write_base(struct verbs *v, int64_t second)
{
    int values[ITEMS];
    char lines[8192];
    size_t len = 0;
    table_at(second, values);
    for (size_t i = 0; i < ITEMS; i++)
        if (values[i] >= 0)
            len +=
                (size_t)snprintf(lines + len, sizeof(lines) - len, "%s\n",
                                 json_printf("{'Item':{'PK':{'S':'i%02zu'},'SK':{'N':'%zu'},'v':{'N':'%d'}}}",
                                             i, i % 3, values[i]));
    const struct test_export_file file = {"a.json.gz", sl_span(lines, len)};
    const struct test_export what = {.files = &file,
                                     .n = 1,
                                     .table_arn = "arn:aws:dynamodb:us-east-1:123456789012:table/orders",
                                     .time = json_printf("%.19s.000Z", time_of(second))};
    return test_export_write(&what, verbs_folder(v));
}

/* ---- what was restored ---- */

static void fresh(struct verbs *v)
{
    static const char *const names[] = {"out.db", "out.db-wal", "out.db-shm", "cp"};
    char path[600];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", verbs_folder(v), names[i]);
        remove(path);
    }
}

/* "i03 712" a line; the caller frees it. */
static char *restored(struct verbs *v)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *query = NULL;
    char path[600], *out = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&out, &len);
    snprintf(path, sizeof(path), "%s/out.db", verbs_folder(v));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db,
                           "SELECT json_extract(key, '$.PK.S'), CAST(json_extract(item, '$.v.N') AS INTEGER) "
                           "FROM restored ORDER BY key",
                           -1, &query, NULL) == SQLITE_OK)
        while (sqlite3_step(query) == SQLITE_ROW)
            fprintf(file, "%s %d\n", sqlite3_column_text(query, 0), sqlite3_column_int(query, 1));
    fclose(file);
    sqlite3_finalize(query);
    sqlite3_close(db);
    return out;
}

static void assert_restored(struct verbs *v, int64_t until)
{
    int values[ITEMS];
    char text[2048] = "";
    size_t len = 0;
    table_at(until, values);
    for (size_t i = 0; i < ITEMS; i++)
        if (values[i] >= 0)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "i%02zu %d\n", i, values[i]);
    char *have = restored(v);
    assert_string_equal(have, text);
    free(have);
}

static int set_up(void **state)
{
    struct verbs *v = verbs_new();
    char temp[600];
    *state = v;
    snprintf(temp, sizeof(temp), "%s/temp", verbs_folder(v));
    mkdir(temp, 0700);
    verb_write(
        v, "restore.json",
        "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':[{'name':'restored',"
        "'handler':'replicate','to':'sqlite:out.db?table=restored','guard':'none'}]}");
    return 0;
}

static int tear_down(void **state)
{
    verbs_destroy(*state);
    return 0;
}

static void what_is_restored_is_what_the_history_says(void **state)
{
    struct verbs *v = *state;
    for (uint64_t world = 1; world <= 6; world++) {
        const char *name = json_printf("archive%d", (int)world);
        make_history(world, true, true);
        write_archive(v, name, 0, CHANGES, 0, 0);
        const int64_t moments[] = {
            T0, T0 + 1, T0 + (int64_t)draw(CHANGES / 4), T0 + CHANGES / 4 - 1, T0 + CHANGES / 4, T0 + 5000};
        for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
            fresh(v);
            verb_assert(v, verb(v, RESTORE "%s --archive %s", time_of(moments[i]), name), 0,
                        "the table had ");
            assert_restored(v, moments[i]);
        }
    }
}

static void a_base_is_what_the_archive_continues(void **state)
{
    struct verbs *v = *state;
    make_history(9, true, true);
    write_archive(v, "late", 80, CHANGES, 0, 0);
    char *base = write_base(v, T0 + 30);
    const int64_t moments[] = {T0 + 30, T0 + 31, T0 + 45, T0 + 5000};
    for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
        fresh(v);
        verb_assert(v, verb(v, RESTORE "%s --archive late --export %s", time_of(moments[i]), base), 0,
                    "the table had ");
        assert_restored(v, moments[i]);
    }
    fresh(v);
    verb_assert(v, verb(v, RESTORE "%s --archive late --export %s", time_of(T0 + 29), base), 2,
                "after 2026-11-20T10:00:29");
    write_archive(v, "later", 160, CHANGES, 0, 0);
    verb_assert(v, verb(v, RESTORE "%s --archive later --export %s", time_of(T0 + 50), base), 2, "begins at");
    free(base);
}

static void what_cannot_be_right_is_refused(void **state)
{
    struct verbs *v = *state;
    make_history(11, true, true);
    write_archive(v, "gaps", 0, CHANGES, 100, 160);
    verb_assert(v, verb(v, RESTORE "%s --archive gaps", time_of(T0 + 59)), 2, "changes are missing");
    char *nothing = restored(v);
    assert_string_equal(nothing, "");
    free(nothing);
    verb_assert(v, verb(v, RESTORE "%s --archive gaps --unsafe-order", time_of(T0 + 59)), 0, "missing in");
    verb_assert(v, verb(v, RESTORE "%s --archive gaps --unsafe-order", time_of(T0 + 59)), 2, "not empty");
    fresh(v);
    make_history(11, true, false);
    write_archive(v, "blind", 0, CHANGES, 0, 0);
    verb_assert(v, verb(v, RESTORE "%s --archive blind", time_of(T0 + 59)), 2, "has no new image");
    make_history(11, false, true);
    write_archive(v, "new", 0, CHANGES, 0, 0);
    verb_assert(v, verb(v, RESTORE "%s --archive new", time_of(T0 + 59)), 0, "no old image");
    assert_restored(v, T0 + 59);
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"2026-11-20T10:00:00.5Z --archive new", "whole second"},
        {"tomorrow --archive new", "expected a time"},
        {"2026-11-20T10:00:00Z --table orders", "--until needs --archive"},
        {"2026-11-20T10:00:00Z --archive nowhere", "nowhere"},
        {"2026-11-20T10:00:00Z --archive temp", "holds no object of an archive"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fresh(v);
        verb_assert(v, verb(v, RESTORE "%s", cases[i].line), 2, cases[i].text);
    }
    static const char *const routes[][2] = {
        {"'handler':'replicate','to':'sqlite:out.db?table=restored'", "writes guards"},
        {"'handler':'replicate','to':'sqlite:out.db?table=restored','guard':'none','when':{'events':['INSERT'"
         "]}",
         "tests non-key attributes"},
        {"'handler':'archive','to':'file:x'", "no route can be backfilled"},
    };
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        verb_write(v, "restore.json",
                   json_printf(
                       "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'r',%s}]}",
                       routes[i][0]));
        verb_assert(v, verb(v, RESTORE "%s --archive new", time_of(T0 + 59)), 2, routes[i][1]);
    }
}

/* A fold is kept by a plan, used again, and made again when it was edited. */
static void a_plan_keeps_its_fold(void **state)
{
    struct verbs *v = *state;
    int64_t until = T0 + 40;
    make_history(21, true, true);
    write_archive(v, "archive", 0, CHANGES, 0, 0);
    verb_assert(v, verb(v, RESTORE "%s --archive archive --plan", time_of(until)), 0, "nothing was written");
    verb_assert(v, verb(v, RESTORE "%s --archive archive --plan", time_of(until)), 0, "was folded before");
    write_archive(v, "archive", 0, CHANGES, 0, 0);
    verb_assert(v, verb(v, RESTORE "%s --archive archive --checkpoint cp", time_of(until)), 0,
                "the table had ");
    assert_restored(v, until);
    verb_assert(v, verb(v, RESTORE "%s --archive archive --checkpoint cp", time_of(until)), 0,
                "of a run that is done");
}

/* Killed at random moments: the same command goes on, and nothing is lost or written twice. */
static void a_restore_that_is_killed_goes_on(void **state)
{
    struct verbs *v = *state;
    int64_t until = T0 + 55;
    make_history(31, true, true);
    write_archive(v, "archive", 0, CHANGES, 0, 0);
    for (unsigned i = 0; i < 6; i++)
        (void)!verb_cut(v, 4 + i * 8, RESTORE "%s --archive archive --checkpoint cp --write-units 200",
                        time_of(until));
    verb_assert(v, verb(v, RESTORE "%s --archive archive --checkpoint cp", time_of(until)), 0, "");
    assert_restored(v, until);
}

/* ---- items of every source, through routes ---- */

static const char routes[] =
    "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':["
    "{'name':'replica','handler':'replicate','to':'sqlite:out.db?table=restored','where':{'s':['OPEN']}},"
    "{'name':'totals','handler':'aggregate','to':'sqlite:out.db?table=totals','counters':[{'key':{'PK':'ALL'}"
    ",'add':{'n':1}}]},"
    "{'name':'keep','handler':'archive','to':'file:kept'}]}";

#define SINCE " --consumer-since 2026-11-19T05:00:00Z"

/* The items as rows of src.db. */
static void make_source(struct verbs *v, const char *lines)
{
    sqlite3 *db = NULL;
    char path[600];
    snprintf(path, sizeof(path), "%s/src.db", verbs_folder(v));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    char *text = sqlite3_mprintf(
        "CREATE TABLE restored (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID;"
        "INSERT INTO restored SELECT json_object('PK', item->'PK', 'SK', item->'SK'), item FROM (SELECT "
        "value->'Item' AS item FROM json_each('[' || rtrim(replace(%Q, char(10), ','), ',') || ']'))",
        lines);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_free(text);
    sqlite3_close(db);
}

static void items_of_every_source_are_written_once(void **state)
{
    struct verbs *v = *state;
    char lines[8192];
    size_t len = 0, open = 0;
    for (size_t i = 0; i < 30; i++) {
        len += (size_t)snprintf(
            lines + len, sizeof(lines) - len, "%s\n",
            json_printf("{'Item':{'PK':{'S':'i%02zu'},'SK':{'N':'1'},'s':{'S':'%s'},'v':{'N':'%zu'}}}", i,
                        i % 3 ? "OPEN" : "GONE", i));
        open += i % 3 != 0;
    }
    verb_write(v, "sluice.json", routes);
    verb_write(v, "items.jsonl", lines);
    make_source(v, lines);
    const struct test_export_file file = {"a.json", sl_span(lines, len)};
    char *export = test_export_write(&(struct test_export){.files = &file, .n = 1}, verbs_folder(v));
    const char *sources[] = {"items.jsonl --as-of 2026-11-22T06:00:00Z" SINCE,
                             json_printf("--export %s --verify-first" SINCE, export),
                             "--table sqlite:src.db?table=restored --unsafe-order"};
    for (size_t i = 0; i < 3; i++) {
        fresh(v);
        verb_assert(v, verb(v, "backfill --keys PK,SK --plan %s", sources[i]), 0, "items");
        assert_non_null(strstr(verb_out(v), "route keep is left out"));
        assert_string_equal(verb_read(v, "out.db"), "");
        verb_assert(v, verb(v, "backfill --keys PK,SK %s", sources[i]), 0,
                    i ? "items              30" : "records            30\n");
        verb_assert(
            v, 0, 0,
            json_printf(
                "route replica      %zu written, 0 there already, 0 overtaken, %zu not its own, 0 parked\n",
                open, 30 - open));
        verb_assert(v, 0, 0, "route totals       30 written, 0 there already");
        verb_assert(v, verb(v, "backfill --keys PK,SK --routes totals %s", sources[i]), 0,
                    "route totals       0 written, 30 there already");
    }
    free(export);
}

/* Within a budget: soon after the beginning, and then every ten seconds; how long it will take, where it is
 * known how many items there are. Nothing with --quiet. */
static void progress_is_said(void **state)
{
    struct verbs *v = *state;
    char *lines = test_export_lines(1, 1500, 100);
    const struct test_export_file file = {"a.json", sl_span_str(lines)};
    char *export = test_export_write(&(struct test_export){.files = &file, .n = 1}, verbs_folder(v));
    verb_write(
        v, "sluice.json",
        "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':[{'name':'copy',"
        "'handler':'replicate','to':'sqlite:out.db?table=copy'}]}");
    test_write(json_printf("%s/items.jsonl", verbs_folder(v)), lines);
    const char *sources[] = {json_printf("--export %s" SINCE, export),
                             json_printf("--export %s --quiet" SINCE, export),
                             "items.jsonl --as-of 2026-11-22T06:00:00Z" SINCE};
    verb_assert(v, verb(v, "backfill --keys PK,SK --plan --write-units 100 %s", sources[0]), 0,
                "time             15 s at least");
    verb_haste(v, 200);
    for (size_t i = 0; i < 3; i++) {
        fresh(v);
        verb_assert(v, verb(v, "backfill --keys PK,SK --write-units 100 %s", sources[i]), 0,
                    "1500 written, 0 there already");
        const char *line = strstr(verb_err(v), "sluice backfill: ");
        bool has_rate = line && strstr(line, " items, ") && strstr(line, " a second"),
             has_left = line && strstr(line, " %, about ") && strstr(line, " left\n");
        if (has_rate != (i != 1) || has_left != (i == 0))
            fail_msg("%s:\n%s", sources[i], verb_err(v));
    }
    verb_haste(v, 1);
    free(lines);
    free(export);
}

static void a_backfill_that_is_killed_counts_each_item_once(void **state)
{
    struct verbs *v = *state;
    char *lines = test_export_lines(1, 400, 60);
    const struct test_export_file files[] = {{"a.json.gz", sl_span_str(lines)}, {"b.json", SL_LIT("")}};
    char *export = test_export_write(&(struct test_export){.files = files, .n = 2}, verbs_folder(v));
    verb_write(v, "sluice.json",
               "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':["
               "{'name':'replica','handler':'replicate','to':'sqlite:out.db?table=restored'},"
               "{'name':'totals','handler':'aggregate','to':'sqlite:out.db?table=totals','counters':[{'key':{"
               "'PK':'ALL'},'add':{'n':1}}]}]}");
    for (unsigned i = 0; i < 6; i++)
        (void)!verb_cut(v, 10 + i * 10,
                        "backfill --keys PK,SK --checkpoint cp --write-units 4000 --export %s" SINCE, export);
    verb_assert(v, verb(v, "backfill --keys PK,SK --checkpoint cp --export %s" SINCE, export), 0, "");
    verb_assert(v, verb(v, "backfill --keys PK,SK --export %s" SINCE, export), 0,
                "route totals       0 written, 400 there already");
    verb_assert(v, verb(v, "backfill --keys PK,SK --checkpoint cp --export %s --routes totals" SINCE, export),
                2, "cp");
    free(export);
    free(lines);
}

static void a_wrong_source_is_refused(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"", "a source is missing"},
        {"--table a --export b", "name one source"},
        {"--table a items.jsonl", "name one source"},
        {"--archive a --table b", "name one source"},
        {"--keys PK --read-units 3 items.jsonl --unsafe-order", "--segments and --read-units need --table"},
        {"--keys PK --verify-first items.jsonl --unsafe-order", "--verify-first needs --export"},
        {"--export a --unsafe-order", "--export needs --keys PK,SK"},
        {"--keys PK --temp temp items.jsonl --unsafe-order", "--temp needs --until"},
        {"--function f items.jsonl" SINCE,
         "give --function or --mapping, or --consumer, or --consumer-since"},
        {"--mapping m items.jsonl" SINCE, "give --function or --mapping, or --consumer, or --consumer-since"},
        {"--consumer f items.jsonl" SINCE,
         "give --function or --mapping, or --consumer, or --consumer-since"},
        {"--keys PK items.jsonl --consumer-since x", "--consumer-since: expected a time like"},
        {"--archive a --until 2026-11-20T10:00:00Z --function f", "--until needs --archive"},
        {"--archive a --until 2026-11-20T10:00:00Z --mapping m", "--until needs --archive"},
        {"--archive a --until 2026-11-20T10:00:00Z --as-of 2026-11-20T10:00:00Z", "--until needs --archive"},
        {"--archive a --until 2026-11-20T10:00:00Z items.jsonl", "--until needs --archive"},
        {"--until 2026-11-20T10:00:00Z --export a", "--until needs --archive"},
        {"--keys PK --export nowhere" SINCE, "nowhere"},
        {"--keys PK nowhere.jsonl --as-of 2026-11-22T06:00:00Z" SINCE, "nowhere.jsonl"},
        {"--keys PK items.jsonl" SINCE, "--as-of"},
        {"--keys PK items.jsonl --as-of 2026-11-22T06:00:00Z", "--consumer-since"},
        {"--keys PK items.jsonl --as-of 2026-11-18T04:00:00Z" SINCE, "would come back as it was"},
        {"--keys PK items.jsonl --as-of yesterday" SINCE, "expected a time"},
        {"--keys PK,SK,X items.jsonl --unsafe-order", "--keys"},
        {"--keys PK items.jsonl --unsafe-order --segments 2", "--segments"},
        {"--keys PK items.jsonl --unsafe-order --routes keep", "the route keep cannot be backfilled"},
        {"--keys PK items.jsonl --unsafe-order --routes none", "no route \"none\""},
        {"--keys PK items.jsonl --unsafe-order --config nowhere.json", "nowhere.json"},
        {"--keys nothing items.jsonl --unsafe-order", "nothing"},
        {"--keys PK wrong.jsonl --unsafe-order", "wrong.jsonl"},
    };
    verb_write(v, "sluice.json", routes);
    verb_write(v, "items.jsonl", "{'Item':{'PK':{'S':'a'},'s':{'S':'OPEN'}}}\n");
    verb_write(v, "wrong.jsonl", "{'Item':{'PK':{'S':'a'}\n");
    verb_assert(v, verb(v, "backfill --keys PK --unsafe-order items.jsonl nowhere.jsonl"), 2,
                "sluice backfill: nowhere.jsonl: cannot be opened: No such file");
    verb_assert(v, verb(v, "backfill --keys PK --unsafe-order items.jsonl temp"), 2,
                "sluice backfill: temp: is a folder; name the files in it");
    assert_string_equal(verb_read(v, "out.db"), ""); /* no target was opened */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = verb(v, "backfill %s", cases[i].line);
        verb_assert(v, status, *verb_out(v) ? 1 : 2, cases[i].text);
        assert_null(strstr(verb_out(v), " 1 written"));
    }
}

/* Where each item has a change after it, a backfill writes nothing, and says what that may mean. */
static void what_is_overtaken_is_told(void **state)
{
    struct verbs *v = *state;
    char lines[8192];
    size_t len = 0;
    verb_write(v, "sluice.json", routes);
    make_history(41, true, true);
    write_archive(v, "archive", 0, CHANGES, 0, 0);
    for (size_t i = 0; i < ITEMS; i++)
        len += (size_t)snprintf(
            lines + len, sizeof(lines) - len, "%s\n",
            json_printf("{'Item':{'PK':{'S':'i%02zu'},'SK':{'N':'%zu'},'s':{'S':'OPEN'}}}", i, i % 3));
    verb_write(v, "items.jsonl", lines);
    verb_assert(v, verb(v, "backfill --routes totals --archive archive --as-of 2026-11-20T10:00:00Z" SINCE),
                0, "");
    verb_assert(v,
                verb(v, "backfill --routes totals,replica --keys PK,SK --as-of 2026-11-22T06:00:00Z "
                        "items.jsonl" SINCE),
                0, json_printf("route totals       0 written, 0 there already, %d overtaken", ITEMS));
    verb_assert(v, 0, 0, "(100.0 %) already had newer changes");
    assert_null(strstr(verb_out(v), "route replica: "));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_restored_is_what_the_history_says),
        TEST(a_base_is_what_the_archive_continues),
        TEST(what_cannot_be_right_is_refused),
        TEST(a_plan_keeps_its_fold),
        TEST(a_restore_that_is_killed_goes_on),
        TEST(items_of_every_source_are_written_once),
        TEST(progress_is_said),
        TEST(a_backfill_that_is_killed_counts_each_item_once),
        TEST(a_wrong_source_is_refused),
        TEST(what_is_overtaken_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
