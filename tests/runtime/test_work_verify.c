/* Verifying and repairing as work items: plans, turns, sums, and what is refused.
 * tests/steps/check_verifying.py plays whole executions beside `sluice verify`. */
#include "tests/runtime/work_function.h"

#include <sqlite3.h>
#include <sys/stat.h>

#define ITEMS (FIRST_FILE + SECOND_FILE)

#define SECOND                                                                                               \
    "{'report_batch_item_failures':true,'routes':[{'name':'replica','handler':'replicate',"                  \
    "'to':'sqlite:${DIR}/second.db?table=orders','on_failure':'report'}]}"

#define PIECE(more) "{'piece':0,'run':'v','max_lag':0,'wait':1" more "}"
#define REPAIR      ",'do':'repair','findings':'verify/v/000000-0000-0000.jsonl'"
#define SEGMENT     ",'do':'verify','segment':0,'of':1"

static void change(struct api *a, const char *file, const char *sql)
{
    char path[400];
    sqlite3 *db;
    snprintf(path, sizeof(path), "%s/%s", api_folder(a), file);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* A table of ITEMS items, and its replica. The function that verifies it runs. */
static void begin(struct api *a)
{
    char text[400];
    api_start(a, REPLICA);
    json_decref(ask(a, "plan", "{'run':'first'," ANY_ORDER "}"));
    json_t *plan = plan_of(a, "first");
    for (size_t i = 0; i < 2; i++) {
        char *item = json_dumps(json_array_get(plan, i), JSON_COMPACT);
        json_decref(ask(a, "piece", item));
        free(item);
    }
    json_decref(plan);
    assert_int_equal(api_stop(a), 0);
    /* The replica becomes a table that nobody has replicated. */
    change(a, "r.db",
           "UPDATE orders SET item = (SELECT json_group_object(j.key, json(j.value)) FROM "
           "json_each(orders.item) j "
           "WHERE j.key NOT LIKE 'sluice%')");
    snprintf(text, sizeof(text), "SLUICE_WORK_SOURCE=sqlite:%s/r.db?table=orders", api_folder(a));
    api_set(a, text);
    api_set(a, "SLUICE_WORK_SEGMENTS=3");
    api_set(a, "SLUICE_WORK_CONCURRENCY=2");
    api_set(a, "SLUICE_WORK_READ_UNITS=50000");
    api_start(a, SECOND);
    json_decref(ask(a, "plan", "{'run':'second'," ANY_ORDER "}"));
    json_decref(ask(a, "piece", "{'piece':0,'segment':0,'of':1,'any_order':true}"));
}

static void end(struct api *a)
{
    assert_int_equal(api_stop(a), 0);
}

/* Five rows are missing, two have changed, and three are of items that are gone. */
static void damage(struct api *a)
{
    change(a, "second.db", "DELETE FROM orders WHERE key IN (SELECT key FROM orders ORDER BY key LIMIT 5)");
    change(a, "second.db",
           "UPDATE orders SET item = replace(item, '\"text\":{\"S\":\"', '\"text\":{\"S\":\"changed') "
           "WHERE key IN (SELECT key FROM orders ORDER BY key LIMIT 2)");
    change(a, "r.db", "DELETE FROM orders WHERE key IN (SELECT key FROM orders ORDER BY key DESC LIMIT 3)");
}

static json_int_t of_route(const json_t *answer, const char *name)
{
    return number(json_object_get(json_object_get(answer, "routes"), "replica"), name);
}

static char *object(struct api *a, const char *name)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/place/%s", api_folder(a), name);
    char *text = test_read(path, NULL);
    return text ? text : strdup("");
}

static size_t lines_of(struct api *a, const char *name)
{
    char *text = object(a, name);
    size_t n = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        n++;
    free(text);
    return n;
}

static json_t *summed(struct api *a, json_t *answer, const char *what)
{
    char *text = json_dumps(answer, JSON_COMPACT);
    write_results(a, (const char *const[]){text}, 1);
    free(text);
    json_decref(answer);
    return ask(a, "sum", json_printf("{'results':'results/manifest.json','pieces':1,'what':%s}", what));
}

static void assert_outcome(json_t *sum, const char *outcome)
{
    assert_string_equal(json_string_value(json_object_get(sum, "outcome")), outcome);
    json_decref(sum);
}

#define VERIFIED "{'do':'verify','run':'v','max_lag':0,'wait':1}"

static void what_is_found_is_repaired(void **state)
{
    struct api *a = *state;
    begin(a);
    json_t *answer = ask(a, "plan", "{'run':'v','given':{'do':'verify','max_lag':0,'wait':1}}");
    assert_int_equal(number(answer, "pieces"), 3);
    assert_int_equal(number(answer, "concurrency"), 2);
    assert_true(json_is_null(json_object_get(answer, "items")) && number(answer, "time") > 1700000000000);
    assert_null(json_object_get(json_object_get(answer, "what"), "repair"));
    json_decref(answer);
    json_t *plan = plan_of(a, "v");
    for (size_t i = 0; i < 3; i++) {
        const json_t *piece = json_array_get(plan, i);
        assert_int_equal(number(piece, "segment"), i);
        assert_int_equal(number(piece, "of"), 3);
        assert_true(json_number_value(json_object_get(piece, "read_units")) == 25000);
    }
    json_decref(plan);
    answer = ask(a, "plan", "{'run':'v','given':{'do':'verify','max_lag':0,'wait':600,'repair':true}}");
    assert_true(json_is_true(json_object_get(json_object_get(answer, "what"), "repair")));
    json_decref(answer);
    answer = ask(a, "piece", PIECE(SEGMENT));
    assert_int_equal(number(answer, "equal"), ITEMS);
    assert_int_equal(number(answer, "items"), ITEMS);
    assert_int_equal(number(answer, "rows"), ITEMS);
    assert_int_equal(lines_of(a, "verify/v/000000-0000-0000.jsonl"), 0);
    assert_outcome(summed(a, answer, VERIFIED), "equal");

    damage(a);
    answer = ask(a, "piece", PIECE(SEGMENT));
    assert_int_equal(of_route(answer, "different"), 10);
    assert_int_equal(of_route(answer, "missing"), 5);
    assert_int_equal(of_route(answer, "revived"), 3);
    assert_int_equal(lines_of(a, "verify/v/000000-0000-0000.jsonl"), 10);
    assert_outcome(summed(a, answer, VERIFIED), "different");

    refused(
        a,
        json(
            "{'sluice':{'plan':{'run':'r','given':{'do':'repair','of':'v','delete':true,'max_deletes':2}}}}"),
        "Function.TooManyDeletes", "3 rows would be removed");
    answer = ask(a, "plan",
                 "{'run':'r','given':{'do':'repair','of':'v','delete':true,'save':true,'max_deletes':3}}");
    assert_int_equal(number(answer, "pieces"), 1);
    assert_null(json_object_get(json_object_get(answer, "what"), "repair")); /* it is not asked twice */
    json_decref(answer);
    plan = plan_of(a, "r.repair");
    char *item = json_dumps(json_array_get(plan, 0), JSON_COMPACT);
    answer = ask(a, "piece", item);
    assert_int_equal(number(json_object_get(answer, "repaired"), "written"), 7);
    assert_int_equal(number(json_object_get(answer, "repaired"), "removed"), 3);
    assert_int_equal(lines_of(a, "repair/r/000000-0000-0000.jsonl"), 10);
    assert_int_equal(lines_of(a, "repair/saved/r/000000-0000-0009.jsonl"), 1);
    char *audit = object(a, "repair/r/000000-0000-0000.jsonl");
    assert_non_null(strstr(audit, "\"time\":\"20"));
    free(audit);
    answer = summed(a, answer, "{'do':'repair','run':'r'}");
    assert_string_equal(json_string_value(json_object_get(json_object_get(answer, "what"), "run")), "r");
    assert_outcome(answer, "repaired");
    free(item);
    json_decref(plan);
    answer = ask(a, "piece", PIECE(SEGMENT));
    assert_int_equal(number(answer, "different"), 0);
    json_decref(answer);
    end(a);
    assert_int_equal(api_times(a, "err", "verify: piece 0: done"), 3);
}

/* Without "delete" rows that are too many stay; and what cannot be kept is not written. */
static void what_may_not_be_written_stays(void **state)
{
    struct api *a = *state;
    char path[400];
    begin(a);
    damage(a);
    json_decref(summed(a, ask(a, "piece", PIECE(SEGMENT)), VERIFIED));
    snprintf(path, sizeof(path), "%s/place/repair", api_folder(a));
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/place/repair/saved", api_folder(a));
    test_write(path, "a file where a folder has to be");
    struct api_post post = api_deliver(
        a, json_span(json("{'sluice':{'piece':" PIECE(REPAIR ",'save':true,'delete':true") "}}")));
    assert_true(post.is_error);
    json_t *answer = ask(a, "piece", PIECE(SEGMENT));
    assert_int_equal(number(answer, "different"), 10);
    json_decref(answer);

    answer = ask(a, "piece", PIECE(REPAIR));
    assert_int_equal(number(json_object_get(answer, "repaired"), "written"), 7);
    assert_int_equal(number(json_object_get(answer, "repaired"), "left"), 3);
    assert_outcome(summed(a, answer, "{'do':'repair','run':'r'}"), "left");
    end(a);
}

/* A suspect waits for the consumer: longer than the first turns have. */
static void a_suspect_goes_on_in_the_next_turn(void **state)
{
    struct api *a = *state;
    begin(a);
    damage(a);
    char *item =
        strdup(json("{'piece':0,'run':'t','max_lag':3600,'wait':1,'do':'verify','segment':0,'of':1}"));
    size_t turns = 0;
    for (bool is_done = false; !is_done; turns++) {
        assert_true(turns < 5);
        json_t *answer = ask_until(a, "piece", item, turns < 2 ? 1200 : 10000);
        is_done = json_is_true(json_object_get(answer, "done"));
        assert_int_equal(number(answer, "items"), ITEMS - 3);
        free(item);
        item = json_dumps(json_object_get(answer, "next"), JSON_COMPACT);
        if (is_done) {
            assert_int_equal(number(answer, "pending"), 10);
        } else {
            assert_int_equal(number(json_object_get(answer, "next"), "turn"), turns + 1);
        }
        json_decref(answer);
    }
    assert_true(turns > 1);
    free(item);
    end(a);
    assert_int_equal(api_times(a, "err", "verify: piece 0: goes on in the next turn"), turns - 1);
}

/* An object holds 1,000 findings: each is a piece of the repair. */
static void many_findings_are_several_objects(void **state)
{
    struct api *a = *state;
    begin(a);
    change(
        a, "r.db",
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1100) "
        "INSERT INTO orders SELECT replace(key, 'p-000000', 'q-' || n), replace(item, 'p-000000', 'q-' || n) "
        "FROM c, (SELECT key, item FROM orders ORDER BY key LIMIT 1)");
    json_t *answer = ask(a, "piece", PIECE(SEGMENT));
    assert_int_equal(of_route(answer, "missing"), 1100);
    assert_int_equal(lines_of(a, "verify/v/000000-0000-0000.jsonl"), 1000);
    assert_int_equal(lines_of(a, "verify/v/000000-0000-0001.jsonl"), 100);
    json_decref(summed(a, answer, VERIFIED));
    answer = ask(a, "plan", "{'run':'r','given':{'do':'repair','of':'v'}}");
    assert_int_equal(number(answer, "pieces"), 2);
    json_decref(answer);
    json_t *plan = plan_of(a, "r.repair");
    for (size_t i = 0; i < 2; i++) {
        char *item = json_dumps(json_array_get(plan, i), JSON_COMPACT);
        answer = ask(a, "piece", item);
        assert_int_equal(number(json_object_get(answer, "repaired"), "written"), i ? 100 : 1000);
        json_decref(answer);
        free(item);
    }
    json_decref(plan);
    end(a);
}

/* A row that was to be written, and has to go by now: the plan did not count it among those that may. */
static void no_more_rows_go_than_were_found(void **state)
{
    struct api *a = *state;
    begin(a);
    change(a, "second.db",
           "UPDATE orders SET item = replace(item, '\"text\":{\"S\":\"', '\"text\":{\"S\":\"changed') "
           "WHERE key IN (SELECT key FROM orders ORDER BY key LIMIT 2)");
    json_decref(ask(a, "piece", PIECE(SEGMENT)));
    assert_int_equal(lines_of(a, "verify/v/000000-0000-0000.jsonl"), 2);
    change(a, "r.db", "DELETE FROM orders WHERE key IN (SELECT key FROM orders ORDER BY key LIMIT 2)");
    json_t *answer = ask(a, "piece", PIECE(REPAIR ",'delete':true"));
    assert_int_equal(number(json_object_get(answer, "repaired"), "removed"), 0);
    assert_int_equal(number(json_object_get(answer, "repaired"), "left"), 2);
    json_decref(answer);
    end(a);
}

static void an_export_is_not_verified(void **state)
{
    struct api *a = *state;
    api_start(a, REPLICA);
    refused(a, json("{'sluice':{'plan':{'run':'v','given':{'do':'verify','max_lag':0}}}}"),
            "Function.OutsideSource", "SeedFrom=scan");
    refused(a, json("{'sluice':{'piece':" PIECE(SEGMENT) "}}"), "Function.OutsideSource", "SeedFrom=scan");
    end(a);
}

/* What was repaired in the turns before counts. */
static void a_repair_goes_on_in_the_next_turn(void **state)
{
    struct api *a = *state;
    begin(a);
    damage(a);
    json_decref(summed(a, ask(a, "piece", PIECE(SEGMENT)), VERIFIED));
    json_t *answer = ask_until(
        a, "piece", "{'piece':0,'run':'r','max_lag':3600,'wait':9,'counts':{'written':5}" REPAIR "}", 1200);
    json_t *next = json_object_get(answer, "next");
    assert_true(json_is_false(json_object_get(answer, "done")));
    assert_int_equal(number(json_object_get(next, "counts"), "written"), 5);
    assert_int_equal(number(next, "turn"), 1);
    json_object_set_new(next, "max_lag", json_integer(0));
    json_object_set_new(next, "delete", json_true());
    char *item = json_dumps(next, JSON_COMPACT);
    json_decref(answer);
    answer = ask(a, "piece", item);
    assert_int_equal(number(json_object_get(answer, "repaired"), "written"), 5 + 7);
    assert_int_equal(number(json_object_get(answer, "repaired"), "removed"), 3);
    json_decref(answer);
    free(item);
    end(a);
}

static void routes_that_cannot_be_compared_have_no_plan(void **state)
{
    struct api *a = *state;
    begin(a);
    end(a);
    api_start(a,
              "{'report_batch_item_failures':true,'routes':[{'name':'say','handler':'notify','message':'x',"
              "'to':'jsonl:${DIR}/said','on_failure':'report'}]}");
    refused(a, json("{'sluice':{'plan':{'run':'v','given':{'do':'verify','max_lag':0}}}}"),
            "Function.NothingToVerify", "none of the routes");
    end(a);
}

static void an_item_that_grows_too_long_is_said(void **state)
{
    struct api *a = *state;
    begin(a);
    damage(a);
    char *routes = malloc(9000);
    for (size_t i = 0; i < 8192; i += 8)
        memcpy(routes + i, "replica,", 8);
    memcpy(routes + 8192, "replica", 8);
    offer_until(a,
                json_span(json_printf("{'sluice':{'piece':{'piece':0,'run':'t','max_lag':3600,'wait':9,"
                                      "'do':'verify','segment':0,'of':1,'routes':'%s'}}}",
                                      routes)),
                1200);
    struct api_post post = api_posted(a);
    assert_string_equal(post.type, "Function.PlaceTooLong");
    free(routes);
    end(a);
}

static void sums_are_judged(void **state)
{
    struct api *a = *state;
    begin(a);
    static const struct {
        const char *counts, *what, *outcome;
    } cases[] = {
        {"'items':3", "{'do':'backfill'}", "seeded"},
        {"'different':0", VERIFIED, "equal"},
        {"'different':1,'pending':1", VERIFIED, "different"},
        {"'different':1", "{'do':'verify','run':'v','repair':true}", "ask"},
        {"'different':0", "{'do':'verify','run':'v','repair':true}", "equal"},
        {"'pending':1", VERIFIED, "unproven"},
        {"'unsettled':1", VERIFIED, "unproven"},
        {"'not_comparable':1", VERIFIED, "unproven"},
        {"'repaired':{'written':4,'removed':1,'already right':2}", "{'do':'repair','run':'v'}", "repaired"},
        {"'repaired':{'moved':1}", "{'do':'repair','run':'v'}", "left"},
        {"'repaired':{'left':1}", "{'do':'repair','run':'v'}", "left"},
        {"'repaired':{'failed':1}", "{'do':'repair','run':'v'}", "left"},
        {"'repaired':{'written':1},'pending':1", "{'do':'repair','run':'v'}", "unproven"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *answer = json_loads(json_printf("{'done':true,'piece':0,%s}", cases[i].counts), 0, NULL);
        assert_non_null(answer);
        assert_outcome(summed(a, answer, cases[i].what), cases[i].outcome);
    }
    char *sum = object(a, "verify/v/sum.json");
    assert_non_null(strstr(sum, "\"outcome\":\"unproven\""));
    free(sum);
    json_decref(ask(a, "ask", "{'token':'the-token','sum':{'different':1,'what':{'run':'v'}}}"));
    char *question = object(a, "verify/v/approval.json");
    assert_non_null(strstr(question, "send-task-success --task-token 'the-token'"));
    assert_non_null(strstr(question, "send-task-failure --task-token 'the-token'"));
    free(question);
    refused(a, json("{'sluice':{'ask':{'token':'t','sum':{'what':{'run':'../v'}}}}}"), "Function.BadWorkItem",
            "run");
    refused(a, json("{'sluice':{'ask':{'token':'t','sum':{}}}}"), "Function.BadWorkItem", "run");
    end(a);
    assert_int_equal(api_times(a, "err", "has the commands that approve their repair or refuse it"), 1);
}

static void a_repair_of_the_wrong_table_is_refused(void **state)
{
    struct api *a = *state;
    begin(a);
    static const struct {
        const char *sum, *type, *words;
    } cases[] = {
        {"{'items':10,'routes':{'replica':{'equal':0,'different':10}}}", "Function.NothingEqual", "10 items"},
        {"{'items':10,'routes':{'replica':{'different':10,'kinds':{'revived':1}}}}", "Function.NothingEqual",
         "seed"},
        {"{'items'", "Function.InvalidJson", "the sum of the verification v"},
    };
    char path[400];
    snprintf(path, sizeof(path), "%s/place/verify/v", api_folder(a));
    assert_int_equal(sl_disk_make_folder(path, NULL), SL_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_place(a, "verify/v/sum.json", json(cases[i].sum));
        refused(a, json("{'sluice':{'plan':{'run':'r','given':{'do':'repair','of':'v'}}}}"), cases[i].type,
                cases[i].words);
    }
    /* Few items, or one equal row, or none that differs: it may be right. */
    static const char *const right[] = {"{'items':9,'routes':{'replica':{'equal':0,'different':9}}}",
                                        "{'items':99,'routes':{'replica':{'equal':1,'different':98}}}",
                                        "{'items':99,'routes':{'replica':{'equal':0,'different':0}}}",
                                        "{'items':99,'routes':{'of before':{'equal':0,'different':9}}}"};
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        write_place(a, "verify/v/sum.json", json(right[i]));
        json_t *answer = ask(a, "plan", "{'run':'r','given':{'do':'repair','of':'v'}}");
        assert_int_equal(number(answer, "pieces"), 0);
        json_decref(answer);
    }
    /* Nothing is lost where nothing is. */
    change(a, "second.db", "DELETE FROM orders");
    write_place(a, "verify/v/sum.json", json(cases[0].sum));
    json_decref(ask(a, "plan", "{'run':'r','given':{'do':'repair','of':'v'}}"));
    end(a);
}

static void wrong_items_are_refused(void **state)
{
    struct api *a = *state;
    begin(a);
    static const struct {
        const char *item, *type, *words;
    } cases[] = {
        {"'plan':{'run':'v','given':{'do':'verify'}}", "Function.BadWorkItem", "max_lag"},
        {"'plan':{'run':'v','given':{'do':'verify','max_lag':0,'wait':601}}", "Function.BadWorkItem", "601"},
        {"'plan':{'run':'v','given':{'do':'forget'}}", "Function.BadWorkItem", "verify"},
        {"'plan':{'run':'v','given':{'do':7}}", "Function.BadWorkItem", "7"},
        {"'plan':{'run':'v','given':{'do':'verify','max_lag':0,'routes':'nosuch'}}", "Function.NoRoute",
         "nosuch"},
        {"'plan':{'run':'v','given':{'do':'verify','max_lag':0,'routes':'replica,nosuch'}}",
         "Function.NoRoute", "nosuch"},
        {"'plan':{'run':'v','given':{'do':'repair'}}", "Function.BadWorkItem", "of"},
        {"'plan':{'run':'v','given':{'do':'repair','of':'a.b'}}", "Function.BadWorkItem", "of"},
        {"'plan':{'run':'v','given':{'do':'repair','of':'never'}}", "Function.NoSuchKey", "never"},
        {"'piece':{'do':'verify','piece':0,'run':'v','wait':1,'segment':0,'of':1}", "Function.BadWorkItem",
         "max_lag"},
        {"'piece':{'do':'verify','piece':0,'run':'v','max_lag':0,'segment':0,'of':1}", "Function.BadWorkItem",
         "wait"},
        {"'ask':{'sum':{'what':{'run':'v'}}}", "Function.BadWorkItem", "token"},
        {"'piece':{'do':'drop'}", "Function.BadWorkItem", "repair"},
        {"'piece':" PIECE(",'do':'verify'"), "Function.OutsideSource", "segment"},
        {"'piece':" PIECE(",'do':'verify','segment':1,'of':1"), "Function.OutsideSource", "segment"},
        {"'piece':" PIECE(",'do':'verify','segment':0,'of':100001"), "Function.OutsideSource", "segment"},
        {"'piece':" PIECE(SEGMENT ",'turn':3"), "Function.NoSuchKey", "does not exist"},
        {"'piece':" PIECE(SEGMENT ",'turn':1,'counts':{'made':1}"), "Function.BadWorkItem", "made"},
        {"'piece':" PIECE(",'do':'repair'"), "Function.OutsideSource", "findings"},
        {"'piece':" PIECE(",'do':'repair','findings':'plans/first.json'"), "Function.OutsideSource",
         "findings"},
        {"'piece':" PIECE(",'do':'repair','findings':'verify/../x'"), "Function.OutsideSource", "findings"},
        {"'piece':" PIECE(",'do':'repair','findings':'verify/x.jsonl'"), "Function.NoSuchKey",
         "verify/x.jsonl"},
        {"'piece':{'do':'verify','piece':0,'run':'a/b','max_lag':0,'wait':1,'segment':0,'of':1}",
         "Function.BadWorkItem", "run"},
        {"'sum':{'results':'results/manifest.json','pieces':0,'what':{'do':'verify'}}",
         "Function.BadWorkItem", "run"},
    };
    write_results(a, NULL, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refused(a, json_printf("{'sluice':{%s}}", cases[i].item), cases[i].type, cases[i].words);
    json_decref(ask(a, "piece", PIECE(",'do':'verify','segment':99999,'of':100000")));
    /* A line that no verification writes. */
    char path[400];
    snprintf(path, sizeof(path), "%s/place/verify", api_folder(a));
    assert_int_equal(sl_disk_make_folder(path, NULL), SL_OK);
    write_place(a, "verify/x.jsonl", json("{'result':'different','route':'replica'}\n"));
    refused(a, json("{'sluice':{'piece':" PIECE(",'do':'repair','findings':'verify/x.jsonl'") "}}"),
            "Function.NoFinding", "verify/x.jsonl");
    write_place(a, "verify/x.jsonl", json("{'result':'different','route':'other','source_key':{}}\n"));
    refused(a, json("{'sluice':{'piece':" PIECE(",'do':'repair','findings':'verify/x.jsonl'") "}}"),
            "Function.NoRoute", "other");
    end(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_found_is_repaired, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_may_not_be_written_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_suspect_goes_on_in_the_next_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_item_that_grows_too_long_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_repair_goes_on_in_the_next_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(routes_that_cannot_be_compared_have_no_plan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_findings_are_several_objects, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_more_rows_go_than_were_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_export_is_not_verified, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sums_are_judged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_repair_of_the_wrong_table_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_items_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
