/* Verifying totals as work items: the steps of an execution, what they find, and what is refused.
 * tests/steps/check_totals.py plays whole executions beside `sluice verify`, with kills. */
#include "tests/runtime/work_function.h"

#include "data/verify/totals_part.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <sys/stat.h>

#define ITEMS (FIRST_FILE + SECOND_FILE)

#define LEDGER_ROWS (ITEMS + 1) /* one of them says of which table they are */

#define GROUPS (ITEMS + 2) /* each item's, and two of all */

#define TOTALS                                                                                               \
    "{'report_batch_item_failures':true,'routes':[{'name':'totals','handler':'aggregate',"                   \
    "'to':'sqlite:${DIR}/t.db?table=totals','ledger':{'table':'ledger'},'on_failure':'report',"              \
    "'counters':[{'key':{'PK':'{PK}/{SK}'},'add':{'n':1}},{'key':{'PK':'all'},'add':{'n':1}}]},"             \
    "{'name':'more','handler':'aggregate','to':'sqlite:${DIR}/t.db?table=totals','on_failure':'report',"     \
    "'ledger':{'table':'ledger2'},'counters':[{'key':{'PK':'all'},'add':{'more':1}}]},"                      \
    "{'name':'plain','handler':'replicate','to':'sqlite:${DIR}/r.db?table=orders','on_failure':'report'}]}"

static void change(struct api *a, const char *sql)
{
    char path[400];
    sqlite3 *db;
    snprintf(path, sizeof(path), "%s/t.db", api_folder(a));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_true(sqlite3_changes(db) > 0);
    sqlite3_close(db);
}

/* ITEMS items are counted. */
static void begin(struct api *a)
{
    api_set(a, "SLUICE_WORK_SEGMENTS=3");
    api_set(a, "SLUICE_WORK_CONCURRENCY=2");
    api_set(a, "SLUICE_WORK_READ_UNITS=50000");
    api_start(a, TOTALS);
    json_decref(ask(a, "plan", "{'run':'first'," ANY_ORDER "}"));
    json_t *plan = plan_of(a, "first");
    for (size_t i = 0; i < 2; i++)
        json_decref(do_piece(a, json_array_get(plan, i)));
    json_decref(plan);
}

static void end(struct api *a)
{
    assert_int_equal(api_stop(a), 0);
}

static void assert_sum(json_t *sum, const char *outcome, int equal, int different, int unsettled)
{
    if (number(sum, "equal") != equal || number(sum, "different") != different ||
        number(sum, "unsettled") != unsettled ||
        strcmp(json_string_value(json_object_get(sum, "outcome")), outcome) != 0)
        fail_msg("%s", json_dumps(sum, 0));
    json_decref(sum);
}

static char *object(struct api *a, const char *name)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/place/%s", api_folder(a), name);
    return test_read(path, NULL);
}

/* ---- what is found ---- */

static void what_differs_is_found_and_set_right(void **state)
{
    struct api *a = *state;
    begin(a);
    json_t *sum = execute(a, "v", "{'do':'totals'}");
    assert_int_equal(steps, 3);
    assert_int_equal(number(sum, "rows"), 4 * LEDGER_ROWS + ITEMS + 1);
    assert_int_equal(number(sum, "not_judged"), 0);
    assert_int_equal(number(sum, "pieces"), 1);
    assert_sum(sum, "equal", GROUPS, 0, 0);
    assert_null(object(a, "verify/v/000000-0001-0000.jsonl"));
    change(a, "UPDATE totals SET item = replace(item, '\"n\":{\"N\":\"40\"}', '\"n\":{\"N\":\"47\"}')");
    sum = execute(a, "v", "{'do':'totals','routes':'totals','parts':3,'repair':true}");
    assert_int_equal(steps, 6); /* a difference is looked at once more */
    assert_sum(sum, "ask", GROUPS - 1, 1, 0);
    char *kept = object(a, "verify/v/sum.json");
    assert_non_null(strstr(kept, "\"outcome\":\"ask\""));
    free(kept);
    char *found = NULL;
    for (int i = 0; i < 3; i++) {
        char name[100];
        snprintf(name, sizeof(name), "verify/v/%06d-0002-0000.jsonl", i);
        found = found ? found : object(a, name);
    }
    assert_non_null(found);
    assert_non_null(strstr(found, json("'total':'47','ledger':'40','difference':'7'")));
    free(found);
    assert_sum(execute(a, "v", "{'do':'totals','rounds':1}"), "unproven", GROUPS - 1, 0, 1);
    assert_int_equal(steps, 3);
    assert_sum(execute(a, "w", "{'do':'totals'}"), "different", GROUPS - 1, 1, 0);
    end(a);
}

/* By findings, also of an execution of before; twice is once. */
static void findings_of_totals_are_repaired(void **state)
{
    struct api *a = *state;
    char text[400];
    begin(a);
    change(a, "UPDATE totals SET item = replace(item, '\"n\":{\"N\":\"40\"}', '\"n\":{\"N\":\"47\"}')");
    json_decref(execute(a, "v", "{'do':'totals'}"));
    end(a);
    snprintf(text, sizeof(text), "SLUICE_WORK_SOURCE=sqlite:%s/t.db?table=ledger", api_folder(a));
    api_set(a, text);
    api_start(a, TOTALS);
    static const char *const outcomes[] = {"written", "moved"};
    for (int i = 0; i < 2; i++) {
        json_decref(ask(a, "plan", "{'run':'r','given':{'do':'repair','of':'v','routes':'plain'}}"));
        json_t *plan = plan_of(a, "r.repair");
        assert_int_equal(json_array_size(plan), 1);
        json_t *answer = do_piece(a, json_array_get(plan, 0));
        assert_int_equal(number(json_object_get(answer, "repaired"), outcomes[i]), 1);
        json_decref(answer);
        json_decref(plan);
        assert_sum(execute(a, "w", "{'do':'totals'}"), "equal", GROUPS, 0, 0);
    }
    end(a);
}

/* One more is counted, as a transaction of the handler's does. */
static void move(struct api *a, unsigned step)
{
    char sql[600];
    snprintf(
        sql, sizeof(sql),
        "UPDATE ledger SET item = replace(replace(item, '\"n\":{\"N\":\"%u\"}', '\"n\":{\"N\":\"%u\"}'), "
        "'\"order\":{\"S\":\"', '\"order\":{\"S\":\"9') WHERE key = (SELECT min(key) FROM ledger)",
        step + 1, step + 2);
    change(a, sql);
    snprintf(
        sql, sizeof(sql),
        "UPDATE totals SET item = replace(replace(item, '\"n\":{\"N\":\"%d\"}', '\"n\":{\"N\":\"%d\"}'), "
        "'\"n\":{\"N\":\"%u\"}', '\"n\":{\"N\":\"%u\"}') WHERE item LIKE '%%\"all\"%%' OR "
        "item LIKE '%%' || (SELECT json_extract(item, '$.sums.L[0].M.key.M.PK.S') FROM ledger WHERE key = "
        "(SELECT min(key) FROM ledger)) || '%%'",
        ITEMS + (int)step, ITEMS + (int)step + 1, step + 1, step + 2);
    change(a, sql);
}

static void what_moves_is_unsettled(void **state)
{
    struct api *a = *state;
    begin(a);
    before_step = move;
    json_t *sum = execute(a, "v", "{'do':'totals','rounds':2}");
    before_step = NULL;
    assert_int_equal(steps, 6);
    assert_sum(sum, "unproven", GROUPS - 2, 0, 2); /* the item's own group, and that of all */
    char *found = object(a, "verify/v/000000-0002-0000.jsonl");
    assert_non_null(strstr(found, json("'result':'unsettled','kind':'sum'")));
    assert_non_null(strstr(found, json("'low':'")));
    free(found);
    end(a);
}

/* Another configuration while an execution goes on: its pieces would be of other totals. */
static const char *other; /* the totals' name in it */

static void deploy(struct api *a)
{
    assert_int_equal(api_stop(a), 0);
    char *config = strdup(json(TOTALS));
    char *at = strstr(config, other);
    *at = 'x';
    api_start(a, config);
    free(config);
}

static void another_configuration_ends_an_execution(void **state)
{
    struct api *a = *state;
    static const char *const changes[] = {"t.db?table=totals", "ledger\"}", "n\":1"};
    begin(a);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        if (i)
            api_start(a, TOTALS);
        json_t *plan = ask(a, "plan", "{'run':'v','given':{'do':'totals'}}");
        char *what = json_dumps(json_object_get(plan, "what"), JSON_COMPACT);
        other = changes[i];
        deploy(a);
        refused(a, json_printf("{'sluice':{'plan':{'run':'v','given':%s}}}", what), "Function.OtherTotals",
                "start another one");
        free(what);
        json_decref(plan);
        end(a);
    }
}

/* ---- plans and turns ---- */

static void a_plan_has_a_piece_for_each_segment_and_share(void **state)
{
    struct api *a = *state;
    begin(a);
    json_t *answer = ask(a, "plan", "{'run':'v','given':{'do':'totals'}}");
    assert_int_equal(number(answer, "pieces"), 6); /* of two ledgers */
    assert_int_equal(number(answer, "concurrency"), 2);
    assert_true(json_is_null(json_object_get(answer, "items")) && number(answer, "time") > 1700000000000);
    json_decref(answer);
    json_t *plan = plan_of(a, "v.0-ledgers");
    for (size_t i = 0; i < 6; i++) {
        const json_t *piece = json_array_get(plan, i);
        assert_int_equal(number(piece, "segment"), i % 3);
        assert_int_equal(number(piece, "table"), i / 3);
        assert_int_equal(number(piece, "of"), 3);
        assert_true(json_number_value(json_object_get(piece, "read_units")) == 25000);
    }
    json_decref(plan);
    json_decref(ask(a, "plan", "{'run':'v','given':{'do':'totals','step':'judge','round':1,'parts':7}}"));
    plan = plan_of(a, "v.1-judge");
    assert_int_equal(json_array_size(plan), 7);
    json_int_t at = 0;
    for (size_t i = 0; i < 7; i++) {
        const json_t *piece = json_array_get(plan, i);
        assert_int_equal(number(piece, "from"), at);
        at = number(piece, "to");
    }
    assert_int_equal(at, SL_PART_SHARES);
    json_decref(plan);
    end(a);
}

/* The object of a turn names the one of the turn before, and a judgement reads both. */
static void a_scan_goes_on_in_the_next_turn(void **state)
{
    struct api *a = *state;
    begin(a);
    assert_sum(execute(a, "v", "{'do':'totals'}"), "equal", GROUPS, 0, 0);
    static const char *const scan =
        "'do':'totals','step':'ledgers','piece':0,'run':'v','round':0,'target':0,'segment':0,'of':1";
    offer_until(a, json_span(json_printf("{'sluice':{'piece':{%s}}}", scan)), 500);
    struct api_post post = api_posted(a);
    assert_string_equal(post.type, "Function.TryAgain");
    assert_non_null(strstr(post.body, "NothingDone"));
    json_t *first = ask(a, "piece", json_printf("{%s}", scan));
    assert_int_equal(number(first, "rows"), LEDGER_ROWS);
    const char *name = json_string_value(json_object_get(first, "last"));
    json_t *second =
        ask(a, "piece",
            json_printf("{%s,'turn':1,'after':{'PK':{'S':'~'}},'before':'%s','rows':%d,'sums':9}", scan, name,
                        LEDGER_ROWS));
    assert_int_equal(number(second, "rows"), LEDGER_ROWS);
    assert_int_equal(number(second, "sums"), 9);
    char *index = object(a, "verify/v/totals/0-ledgers.json");
    json_t *names = json_loads(index, 0, NULL);
    write_place(a, "verify/v/totals/0-ledgers.json",
                json_printf("['%s','%s','%s','%s']", json_string_value(json_object_get(second, "last")),
                            json_string_value(json_array_get(names, 3)),
                            json_string_value(json_array_get(names, 4)),
                            json_string_value(json_array_get(names, 5))));
    json_decref(names);
    free(index);
    json_t *judged =
        ask(a, "piece",
            "{'do':'totals','step':'judge','piece':0,'run':'v','round':1,'target':0,'from':0,'to':256}");
    assert_int_equal(number(judged, "equal"), GROUPS);
    assert_int_equal(number(judged, "left"), 0);
    json_decref(judged);
    json_decref(second);
    json_decref(first);
    end(a);
}

/* ---- what is refused ---- */

#define SCAN(more)                                                                                           \
    "'piece':{'do':'totals','step':'ledgers','piece':0,'run':'v','round':0,'target':0," more "}"
#define JUDGE(more) "'piece':{'do':'totals','step':'judge','piece':0,'run':'v','target':0," more "}"

static void wrong_items_are_refused(void **state)
{
    struct api *a = *state;
    begin(a);
    static const struct {
        const char *item, *words;
    } cases[] = {
        {"'plan':{'run':'v','given':{'do':'totals','routes':'nosuch'}}", "nosuch"},
        {"'plan':{'run':'v','given':{'do':'totals','routes':'plain'}}", "none of the routes keeps totals"},
        {"'plan':{'run':'v','given':{'do':'totals','rounds':0}}", "rounds"},
        {"'plan':{'run':'v','given':{'do':'totals','rounds':6}}", "rounds"},
        {"'plan':{'run':'v','given':{'do':'totals','round':3,'rounds':2}}", "rounds"},
        {"'plan':{'run':'v','given':{'do':'totals','max_lag':3}}", "max_lag"},
        {"'plan':{'run':'v','given':{'do':'totals','step':'judge','round':1}}", "rounds"},
        {"'plan':{'run':'v','given':{'do':'totals','step':'judge','round':1,'parts':257}}", "rounds"},
        {"'plan':{'run':'v','given':{'do':'totals','step':'x'}}", "step"},
        {"'plan':{'run':'v','given':{'do':'totals','totals':'0123456789abcdef'}}", "start another one"},
        {SCAN("'segment':0,'of':1,'totals':'0123456789abcdef'"), "start another one"},
        {JUDGE("'from':0,'to':1,'round':1,'totals':'0123456789abcdef'"), "start another one"},
        {SCAN("'segment':3,'of':3"), "segment"},
        {SCAN("'segment':0,'of':0"), "segment"},
        {SCAN("'segment':0"), "segment"},
        {SCAN("'segment':0,'of':100001"), "segment"},
        {SCAN("'segment':0,'of':1,'table':2"), "table"},
        {SCAN("'segment':0,'of':1,'turn':1,'before':'../x'"), "segment"},
        {JUDGE("'from':0,'to':1"), "round"},
        {JUDGE("'from':0,'to':1,'round':0"), "round"},
        {JUDGE("'from':0,'to':1,'round':6"), "round"},
        {JUDGE("'from':1,'to':1,'round':1"), "shares"},
        {JUDGE("'from':0,'to':257,'round':1"), "shares"},
        {"'piece':{'do':'totals','step':'ledgers','piece':0,'run':'v/"
         "w','round':0,'target':0,'segment':0,'of':1}",
         "run"},
        {"'piece':{'do':'totals','step':'ledgers','piece':0,'run':'v','round':0,'target':1,'segment':0,'of':"
         "1}",
         "target"},
        {"'piece':{'do':'totals','step':'totals','piece':0,'run':'v','round':0,'target':0,'segment':0,'of':"
         "1}",
         "round"},
        {JUDGE("'from':0,'to':1,'round':1"), "does not exist"},
        {JUDGE("'from':0,'to':1,'round':2"), "does not exist"},
        {"'sum':{'results':'results/manifest.json','pieces':0,'what':{'do':'totals','run':'../v'}}", "run"},
        {"'sum':{'results':'results/manifest.json','pieces':0,'what':{'do':'totals','run':'v'}}",
         "no objects"},
    };
    static const char *const members[] = {"'step':'ledgers'", "'piece':0", "'run':'v'", "'round':0",
                                          "'target':0"};
    for (size_t i = 0; i < 5; i++) {
        char text[200] = "'do':'totals','segment':0,'of':1";
        for (size_t k = 0; k < 5; k++)
            if (k != i)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), ",%s", members[k]);
        char name[20];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(members[i] + 1, "'"), members[i] + 1);
        refused(a, json_printf("{'sluice':{'piece':{%s}}}", text), "Function.BadWorkItem", name);
    }
    write_results(a, NULL, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct api_post post = api_deliver(a, json_span(json_printf("{'sluice':{%s}}", cases[i].item)));
        if (!post.is_error || !strstr(post.body, cases[i].words))
            fail_msg("%s: %s", cases[i].item, post.body);
    }
    end(a);
}

/* An object of sums with this head and these lines. */
static void damaged_objects_are_told(void **state)
{
    struct api *a = *state;
    begin(a);
    json_t *sum = execute(a, "v", "{'do':'totals','rounds':1}");
    json_decref(sum);
    char *index = object(a, "verify/v/totals/0-ledgers.json");
    json_t *names = json_loads(index, 0, NULL);
    char path[300];
    snprintf(path, sizeof(path), "verify/v/totals/%s", json_string_value(json_array_get(names, 0)));
    char *whole = object(a, path), *line = strchr(whole, '\n') + 1;
    assert_int_equal(line - whole, SL_PART_HEAD_BYTES);
    static const char *const lines[] = {
        "",
        "{",
        "{}",
        "{'name':'n','numbers':['1'],'rows':'1'}",
        "{'key':{'M':{'PK':{'S':'a'}}},'numbers':['1'],'rows':'1'}",
        "{'key':{'S':'a'},'name':'n','numbers':['1'],'rows':'1'}",
        "{'key':{'M':{'PK':{'S':'a'}}},'name':'n','numbers':['x'],'rows':'1'}",
        "{'key':{'M':{'PK':{'S':'a'}}},'name':'n','numbers':[1],'rows':'1'}",
        "{'key':{'M':{'PK':{'S':'a'}}},'name':'n','rows':'1'}",
        "{'key':{'M':{'PK':{'S':'a'}}},'name':'n','numbers':['1']}",
        "{'key':{'M':{'PK':{'S':'a'}}},'name':'n','numbers':['1'],'rows':'x'}",
        "{'key':{'M':{'PK':{'S':'a'}}},'name':'n','numbers':['1'],'rows':'11111111111111111'}",
    };
    static const char *const item = JUDGE("'from':0,'to':256,'round':1,'rounds':1");
    char text[SL_PART_HEAD_BYTES + 400], head[SL_PART_HEAD_BYTES];
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        size_t n = 0, bytes = strlen(lines[i]) + 1;
        n += (size_t)snprintf(head, sizeof(head), "{\"digest\":\"1\",\"ends\":[");
        for (int k = 0; k < SL_PART_SHARES; k++)
            n += (size_t)snprintf(head + n, sizeof(head) - n, k ? ",%zu" : "%zu", bytes);
        snprintf(text, sizeof(text), "%s]}%*s\n%s\n", head, (int)(SL_PART_HEAD_BYTES - n - 3), "",
                 json(lines[i]));
        write_place(a, path, text);
        struct api_post post = api_deliver(a, json_span(json_printf("{'sluice':{%s}}", item)));
        if (!post.is_error || !strstr(post.body, "BadPart"))
            fail_msg("%s: %s", lines[i], post.body);
    }
    static const char *const heads[] = {"\"ends\":[",
                                        "\"digest\":\"1\",\"ends\":[9,8,",
                                        "\"digest\":\"1\",\"ends\":[1234567890123456,",
                                        "\"digest\":\"1\",\"ends\":[-1,",
                                        "\"digest\":\"1\",\"ends\":[\"1\",",
                                        "\"digest\":\"x\",\"ends\":["};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        size_t n = (size_t)snprintf(head, sizeof(head), "{%s0", heads[i]);
        for (int k = 1; k < SL_PART_SHARES; k++)
            n += (size_t)snprintf(head + n, sizeof(head) - n, ",0");
        snprintf(text, sizeof(text), "%s]}%*s\n", head, (int)(SL_PART_HEAD_BYTES - n - 3), "");
        write_place(a, path, text);
        refused(a, json_printf("{'sluice':{%s}}", item), "Function.BadPart", "head");
    }
    write_place(a, path, whole);
    json_decref(ask(a, "piece", strchr(json(item), ':') + 1));
    whole[strlen(whole) - 10] = '\0';
    write_place(a, path, whole);
    refused(a, json_printf("{'sluice':{%s}}", item), "Function.BadPart", "shorter than its head says");
    whole[100] = '\0';
    write_place(a, path, whole);
    refused(a, json_printf("{'sluice':{%s}}", item), "Function.BadPart", "head");
    write_place(a, "verify/v/totals/0-ledgers.json", json("['0-ledgers-t0-gone']"));
    refused(a, json_printf("{'sluice':{%s}}", item), "Function.NoSuchKey", "0-ledgers-t0-gone");
    write_place(a, "verify/v/totals/0-ledgers.json", json("['0-ledgers-t0-gone'"));
    refused(a, json_printf("{'sluice':{%s}}", item), "Function.InvalidJson", "");
    free(whole);
    free(index);
    json_decref(names);
    end(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_differs_is_found_and_set_right, set_up, tear_down),
        cmocka_unit_test_setup_teardown(findings_of_totals_are_repaired, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_moves_is_unsettled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_configuration_ends_an_execution, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_plan_has_a_piece_for_each_segment_and_share, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_scan_goes_on_in_the_next_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_items_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_objects_are_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
