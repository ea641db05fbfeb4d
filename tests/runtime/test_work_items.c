/* Work items, in the process of a function that takes them: a plan, its pieces, and the sum of what they
 * answered. The export, the plan and the results are files; the target is SQLite. */
#include "tests/runtime/work_function.h"

/* ---- a whole job ---- */

static void a_plan_its_pieces_and_their_sum(void **state)
{
    struct api *a = *state;
    char *outputs[2];
    api_set(a, "SLUICE_SUMMARY=on");
    api_set(a, "SLUICE_WORK_WRITE_UNITS=4000");
    api_start(a, REPLICA);
    json_t *answer = ask(a, "plan", "{'run':'seed-1','given':{'consumer_since':'2026-11-20T09:00:00Z'}}");
    assert_string_equal(json_string_value(json_object_get(answer, "key")), "plans/seed-1.json");
    assert_int_equal(number(answer, "pieces"), 2);
    assert_int_equal(number(answer, "concurrency"), 2);
    assert_int_equal(number(answer, "items"), FIRST_FILE + SECOND_FILE);
    assert_int_equal(number(answer, "time"), 1795168800250);
    assert_true(number(answer, "bytes") >= 0);
    json_decref(answer);
    json_t *plan = plan_of(a, "seed-1");
    assert_int_equal(json_array_size(plan), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *piece = json_array_get(plan, i);
        assert_int_equal(number(piece, "piece"), i);
        assert_int_equal(number(piece, "items"), i ? SECOND_FILE : FIRST_FILE);
        assert_int_equal(number(piece, "time"), 1795168800250);
        assert_int_equal(number(piece, "since"), 1795165200000);
        assert_true(json_number_value(json_object_get(piece, "write_units")) == 2000);
        char *text = json_dumps(piece, JSON_COMPACT);
        answer = ask(a, "backfill", text);
        assert_true(json_is_true(json_object_get(answer, "done")));
        assert_int_equal(number(answer, "piece"), i);
        assert_int_equal(number(answer, "items"), i ? SECOND_FILE : FIRST_FILE);
        assert_true(number(answer, "storedBytes") > 0);
        assert_null(json_object_get(answer, "next"));
        outputs[i] = json_dumps(answer, JSON_COMPACT);
        free(text);
        json_decref(answer);
    }
    json_decref(plan);
    /* One of them is listed twice, and counts once. */
    write_results(a, (const char *const[]){outputs[1], outputs[0], outputs[1]}, 3);
    answer = ask(a, "sum", "{'results':'results/manifest.json','pieces':2,'items':40}");
    assert_int_equal(number(answer, "pieces"), 2);
    assert_int_equal(number(answer, "items"), 40);
    const json_t *route = json_object_get(json_object_get(answer, "routes"), "replica");
    assert_int_equal(number(route, "applied"), 40);
    json_decref(answer);
    json_decref(ask(a, "sum", "{'results':'results/manifest.json','pieces':2}"));
    refused(a, "{'sluice':{'sum':{'results':'results/manifest.json','pieces':2,'items':41}}}",
            "Function.ItemsMissing", "the pieces read 40 items together; ");
    refused(a, "{'sluice':{'sum':{'results':'results/manifest.json','pieces':2,'items':39}}}",
            "Function.ItemsMissing", "announces 39");
    refused(a, "{'sluice':{'sum':{'results':'results/manifest.json','pieces':4}}}", "Function.PiecesMissing",
            " 4 pieces; missing: 2, 3'");
    refused(a, "{'sluice':{'sum':{'results':'results/manifest.json','pieces':1}}}", "Function.BadResults",
            "not the answer to a piece of this plan");
    refused(a, "{'sluice':{'sum':{'results':'results/manifest.json','pieces':1000}}}",
            "Function.PiecesMissing", ", 28, 29 ...'");
    refused(a, "{'sluice':{'sum':{'results':'results/manifest.json','pieces':30}}}", "Function.PiecesMissing",
            ", 28, 29'");
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "err", "INFO"), 2);
    assert_int_equal(api_times(a, "err", "piece 1: done"), 1);
    for (int i = 0; i < 2; i++)
        free(outputs[i]);
}

/* More counts than an answer can hold, of pieces that each fit. */
static void a_sum_that_is_too_long_is_said(void **state)
{
    struct api *a = *state;
    const size_t bytes = 7u << 19; /* 3.5 MB */
    char *outputs[2];
    for (int i = 0; i < 2; i++) {
        outputs[i] = malloc(bytes + 200);
        assert_non_null(outputs[i]);
        int n = snprintf(outputs[i], 100, "{\"done\":true,\"piece\":%d,\"", i);
        memset(outputs[i] + n, 'a' + i, bytes);
        memcpy(outputs[i] + (size_t)n + bytes, "\":1}", 5); /* with its NUL */
    }
    write_results(a, (const char *const *)outputs, 2);
    api_start(a, REPLICA);
    refused(a, "{'sluice':{'sum':{'results':'results/manifest.json','pieces':2}}}", "Function.AnswerTooLong",
            "too long");
    assert_int_equal(api_stop(a), 0);
    for (int i = 0; i < 2; i++)
        free(outputs[i]);
}

static void results_that_are_not_those_of_a_plan(void **state)
{
    struct api *a = *state;
    static const char *const outputs[] = {"{}",
                                          "{\"done\":false,\"piece\":0}",
                                          "{\"done\":true}",
                                          "{\"done\":true,\"piece\":\"0\"}",
                                          "{\"done\":true,\"piece\":1}",
                                          "{\"done\":true,\"piece\":-1}",
                                          "[]",
                                          "7"};
    api_start(a, REPLICA);
    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        write_results(a, &outputs[i], 1);
        refused(a, "{'sluice':{'sum':{'results':'results/manifest.json','pieces':1}}}", "Function.BadResults",
                "");
    }
    static const char *const states[] = {"FAILED", "PENDING"};
    for (size_t i = 0; i < 2; i++) {
        write_place(a, "results/manifest.json",
                    json_printf("{'DestinationBucket':'','ResultFiles':{'%s':[{'Key':'x'}],'SUCCEEDED':[]}}",
                                states[i]));
        refused(a, "{'sluice':{'sum':{'results':'results/manifest.json','pieces':0}}}",
                "Function.PiecesFailed", states[i]);
    }
    write_place(a, "results/manifest.json",
                json("{'DestinationBucket':'','ResultFiles':{'FAILED':[],'PENDING':[],'SUCCEEDED':[]}}"));
    json_t *answer = ask(a, "sum", "{'results':'results/manifest.json','pieces':0,'items':0}");
    assert_int_equal(number(answer, "pieces"), 0);
    json_decref(answer);
}

/* An export of an empty table: a plan of no pieces, which a Map runs and a sum adds up. */
static void a_table_without_items_has_a_plan_without_pieces(void **state)
{
    struct api *a = *state;
    char folder[300];
    snprintf(folder, sizeof(folder), "%s/empty", api_folder(a));
    assert_int_equal(sl_disk_make_folder(folder, NULL), SL_OK);
    use_export(a, &(struct test_export){.n = 0}, folder);
    api_start(a, REPLICA);
    json_t *answer = ask(a, "plan", "{'run':'none'," ANY_ORDER "}");
    assert_int_equal(number(answer, "pieces"), 0);
    assert_int_equal(number(answer, "items"), 0);
    assert_int_equal(number(answer, "concurrency"), 1); /* a Map takes no less */
    json_decref(answer);
    json_t *plan = plan_of(a, "none");
    assert_int_equal(json_array_size(plan), 0);
    json_decref(plan);
    write_results(a, NULL, 0);
    answer = ask(a, "sum", "{'results':'results/manifest.json','pieces':0,'items':0}");
    assert_int_equal(number(answer, "pieces"), 0);
    json_decref(answer);
    assert_int_equal(api_stop(a), 0);
}

/* ---- what is refused ---- */

/* Where the plan cannot be written; and a place and keys that are none. */
static void a_place_that_cannot_be_used_is_said(void **state)
{
    struct api *a = *state;
    static const char plan[] = "{'sluice':{'plan':{'run':'p'," ANY_ORDER "}}}";
    static const char sum[] = "{'sluice':{'sum':{'results':'r','pieces':1}}}";
    write_place(a, "plans", "a file, where the folder should be");
    api_start(a, REPLICA);
    struct api_post post = api_deliver(a, json_span(plan));
    assert_true(post.is_error);
    assert_non_null(strstr(post.body, "plans/p.json: "));
    assert_int_equal(api_stop(a), 0);
    api_set(a, "SLUICE_WORK_PLACE=jsonl:x");
    api_start(a, REPLICA);
    post = api_deliver(a, json_span(plan));
    assert_true(post.is_error && strstr(post.body, "SLUICE_WORK_PLACE: "));
    post = api_deliver(a, json_span(sum));
    assert_true(post.is_error && strstr(post.body, "SLUICE_WORK_PLACE: "));
    assert_int_equal(api_stop(a), 0);
    api_set(a, "SLUICE_WORK_KEYS=,");
    api_start(a, REPLICA);
    post = api_deliver(a, json_span(plan));
    assert_true(post.is_error && strstr(post.body, "SLUICE_WORK_KEYS: "));
    assert_int_equal(api_stop(a), 0);
}

static void what_is_not_a_work_item_is_refused(void **state)
{
    struct api *a = *state;
    static const char *const events[] = {
        "{'Records':[]}", "{}", "{'Records':[],'sluice':{}}", "", "null", "[", "{'sluic':1}",
        "'sluice'",       "   "};
    static const char *const items[] = {"{'sluice':{'plan':{}}}", "{'sluice':1}", " { 'sluice' : {}}",
                                        "\\n\\t{'sluice':{},'Records':[]}"};
    api_start(a, REPLICA);
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        refused(a, events[i], "Function.NotAWorkItem", "SLUICE_WORK_ITEMS is 1");
    assert_int_equal(api_stop(a), 0);
    api_set(a, "SLUICE_WORK_ITEMS=0");
    api_start(a, REPLICA);
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]) - 1; i++)
        refused(a, items[i], "Function.WorkItemRefused", "SLUICE_WORK_ITEMS is not 1");
    api_deliver_all(a, json_span("{'Records':[]}"));
    assert_int_equal(api_stop(a), 0);
}

static void wrong_items_are_refused_with_a_reason(void **state)
{
    struct api *a = *state;
    static const char *const cases[][2] = {
        {"{'sluice':{'sum':{}", "byte 19"},
        {"{'sluice':{}}", "one member"},
        {"{'sluice':[]}", "one member"},
        {"{'sluice':{'sum':{},'plan':{}}}", "one member"},
        {"{'sluice':{'sum':{}},'more':1}", "one member"},
        {"{'sluice':{'dance':{}}}", "is no kind of work item"},
        {"{'sluice':{'sum':7}}", "not an object"},
        {"{'sluice':{'sum':{}}}", "results"},
        {"{'sluice':{'sum':{'results':'a','pieces':1,'peices':1}}}", "peices"},
        {"{'sluice':{'backfill':{'file':'data/x','md5':'m','flie':'f'}}}", "flie"},
        {"{'sluice':{'sum':{'results':'','pieces':1}}}", "sluice.sum.results"},
        {"{'sluice':{'sum':{'results':'a','pieces':-1}}}", "sluice.sum.pieces"},
        {"{'sluice':{'sum':{'results':'a','pieces':100001}}}", "no plan has so many"},
        {"{'sluice':{'sum':{'results':'../a','pieces':1}}}", "outside SLUICE_WORK_PLACE"},
        {"{'sluice':{'plan':{}}}", "run"},
        {"{'sluice':{'plan':{'run':'a/b'}}}", "sluice.plan.run"},
        {"{'sluice':{'plan':{'run':'a b'}}}", "sluice.plan.run"},
        {"{'sluice':{'plan':{'run':'a','given':7}}}", "sluice.plan.given is not an object"},
        {"{'sluice':{'plan':{'run':'a','given':{'odd':7}}}}", "which means nothing there"},
        {"{'sluice':{'plan':{'run':'a','given':{'consumer_since':'now'}}}}", "consumer_since is no time"},
        {"{'sluice':{'plan':{'run':'a','given':{'routes':'replica,','unsafe_order':true}}}}", ""},
        {"{'sluice':{'plan':{'run':'a','given':{'routes':'nobody'}}}}", "nobody"},
        {"{'sluice':{'backfill':{'file':'data/x','md5':'m','routes':'nobody'}}}", ""},
    };
    api_start(a, REPLICA);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct api_post post = api_deliver(a, json_span(cases[i][0]));
        if (i == 20) { /* a comma at the end is no further name */
            assert_false(post.is_error);
            continue;
        }
        if (!post.is_error || !strstr(post.body, json(cases[i][1])) ||
            strcmp(post.type, "Function.TryAgain") == 0 ||
            (i < 20 && strcmp(post.type, "Function.BadWorkItem") != 0))
            fail_msg("%s: %s %s", cases[i][0], post.type, post.body);
    }
    refused(a, "{'sluice':{'sum':{'results':'a'}}}", "Function.BadWorkItem", "pieces");
    char name[82];
    memset(name, 'a', 81);
    name[81] = '\0';
    refused(a, json_printf("{'sluice':{'plan':{'run':'%s'}}}", name), "Function.BadWorkItem", "at most 80");
    json_decref(ask(a, "plan", json_printf("{'run':'%s'," ANY_ORDER "}", name + 1)));
    json_decref(ask(a, "plan", "{'run':'aZ09-_'," ANY_ORDER "}"));
    refused(a, json_printf("{'sluice':{'%065d':{}}}", 1), "Function.BadWorkItem",
            json_printf("%064d\\\" is no kind of work item", 0));
    static const char *const routes[] = {",replica", "replica,,replica", "replica,x", ","};
    for (size_t k = 0; k < sizeof(routes) / sizeof(routes[0]); k++)
        refused(a, json_printf("{'sluice':{'plan':{'run':'a','given':{'routes':'%s'}}}}", routes[k]),
                "Function.NoRoute", k == 2 ? "\\\"x\\\"" : "\\\"\\\"");
    assert_int_equal(api_stop(a), 0);
}

static void wrong_settings_are_refused_at_the_start(void **state)
{
    struct api *a = *state;
    static const char *const cases[][3] = {
        {"SLUICE_WORK_ITEMS=yes", "SLUICE_WORK_ITEMS", "SLUICE_WORK_ITEMS=1"},
        {"SLUICE_WORK_CONCURRENCY=0", "SLUICE_WORK_CONCURRENCY is 0", "SLUICE_WORK_CONCURRENCY="},
        {"SLUICE_WORK_CONCURRENCY=10001", "0 to 10000", "SLUICE_WORK_CONCURRENCY="},
        {"SLUICE_WORK_SEGMENTS=many", "SLUICE_WORK_SEGMENTS", "SLUICE_WORK_SEGMENTS="},
        {"SLUICE_WORK_SEGMENTS=100001", "0 to 100000", "SLUICE_WORK_SEGMENTS="},
        {"SLUICE_WORK_WRITE_UNITS=-1", "SLUICE_WORK_WRITE_UNITS", "SLUICE_WORK_WRITE_UNITS="},
        {"SLUICE_WORK_WRITE_UNITS=1000000001", "SLUICE_WORK_WRITE_UNITS", "SLUICE_WORK_WRITE_UNITS="},
        {"SLUICE_WORK_READ_UNITS=nan", "SLUICE_WORK_READ_UNITS", "SLUICE_WORK_READ_UNITS="},
        {"SLUICE_WORK_PLACE=", "SLUICE_WORK_PLACE is not set", "SLUICE_WORK_PLACE=file:x"},
        {"SLUICE_WORK_SOURCE=sqs://exports", "AWSDynamoDB/ID", "SLUICE_WORK_SOURCE=dynamodb://t"},
        {"SLUICE_WORK_SOURCE=", "SLUICE_WORK_SOURCE is not set", "SLUICE_WORK_SOURCE=dynamodb://t"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        api_set(a, cases[i][0]);
        api_start(a, REPLICA);
        struct api_post post = api_init_error(a);
        assert_string_equal(post.type, "Function.BadWorkSettings");
        if (!strstr(post.body, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], post.body);
        assert_int_equal(api_wait(a), 1);
        api_set(a, cases[i][2]);
    }
    static const char *const most[] = {"SLUICE_WORK_CONCURRENCY=10000", "SLUICE_WORK_SEGMENTS=100000",
                                       "SLUICE_WORK_WRITE_UNITS=1000000000", "SLUICE_WORK_READ_UNITS=0"};
    for (size_t i = 0; i < 4; i++)
        api_set(a, most[i]);
    api_start(a, REPLICA);
    api_await(a, API_NEXT, 1);
    assert_int_equal(api_stop(a), 0);
}

/* ---- a scan, and many routes ---- */

static void a_scan_has_as_many_pieces_as_segments(void **state)
{
    struct api *a = *state;
    char text[400];
    api_start(a, REPLICA);
    json_decref(ask(a, "plan", "{'run':'first'," ANY_ORDER "}"));
    json_t *plan = plan_of(a, "first");
    for (size_t i = 0; i < 2; i++) {
        char *item = json_dumps(json_array_get(plan, i), JSON_COMPACT);
        json_decref(ask(a, "backfill", item));
        free(item);
    }
    json_decref(plan);
    assert_int_equal(api_stop(a), 0);
    /* The replica is the source now. */
    snprintf(text, sizeof(text), "SLUICE_WORK_SOURCE=sqlite:%s/r.db?table=orders", api_folder(a));
    api_set(a, text);
    api_set(a, "SLUICE_WORK_SEGMENTS=3");
    api_set(a, "SLUICE_WORK_CONCURRENCY=2");
    api_set(a, "SLUICE_WORK_READ_UNITS=5000");
    api_start(a, "{'report_batch_item_failures':true,'routes':[{'name':'replica','handler':'replicate',"
                 "'to':'sqlite:${DIR}/second.db?table=orders','on_failure':'report'}]}");
    json_t *answer = ask(a, "plan", "{'run':'scan'," ANY_ORDER "}");
    assert_int_equal(number(answer, "pieces"), 3);
    assert_int_equal(number(answer, "concurrency"), 2);
    assert_true(json_is_null(json_object_get(answer, "items")));
    json_decref(answer);
    plan = plan_of(a, "scan");
    assert_int_equal(json_array_size(plan), 3);
    json_int_t items = 0;
    for (size_t i = 0; i < 3; i++) {
        const json_t *piece = json_array_get(plan, i);
        assert_int_equal(number(piece, "segment"), i);
        assert_int_equal(number(piece, "of"), 3);
        assert_true(json_number_value(json_object_get(piece, "read_units")) == 2500);
        char *item = json_dumps(piece, JSON_COMPACT);
        answer = ask(a, "backfill", item);
        items += number(answer, "items");
        json_decref(answer);
        free(item);
    }
    assert_int_equal(items, FIRST_FILE + SECOND_FILE);
    json_decref(plan);
    assert_int_equal(api_stop(a), 0);
}

/* 40 routes whose names have 392 bytes together are the most whose counts fit into 8 KB; `given` may name
 * some. */
static void too_many_routes_are_said_by_the_plan(void **state)
{
    struct api *a = *state;
    for (int more = 0; more < 2; more++) {
        char *config = NULL, *before = strdup("");
        for (int i = 0; i < 40; i++) {
            assert_true(asprintf(&config,
                                 "%s%s{'name':'%.*s%02d','handler':'replicate','to':'sqlite:${DIR}/m.db?"
                                 "table=t%d','on_failure':'report'}",
                                 before, i ? "," : "",
                                 i == 39      ? 0
                                 : i || !more ? 8
                                              : 9,
                                 "abcdefghi", i, i) > 0);
            free(before);
            before = config;
        }
        api_start(a, json_printf("{'report_batch_item_failures':true,'routes':[%s]}", config));
        free(config);
        if (more) {
            refused(a, "{'sluice':{'plan':{'run':'many'," ANY_ORDER "}}}", "Function.TooManyRoutes",
                    "40 routes take part");
            json_decref(
                ask(a, "plan", "{'run':'some','given':{'unsafe_order':true,'routes':'39,abcdefgh38'}}"));
        } else {
            json_decref(ask(a, "plan", "{'run':'many'," ANY_ORDER "}"));
        }
        assert_int_equal(api_stop(a), 0);
    }
}

#define SERVES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVES(a_sum_that_is_too_long_is_said),
        SERVES(a_plan_its_pieces_and_their_sum),
        SERVES(results_that_are_not_those_of_a_plan),
        SERVES(what_is_not_a_work_item_is_refused),
        SERVES(wrong_items_are_refused_with_a_reason),
        SERVES(wrong_settings_are_refused_at_the_start),
        SERVES(a_scan_has_as_many_pieces_as_segments),
        SERVES(too_many_routes_are_said_by_the_plan),
        SERVES(a_table_without_items_has_a_plan_without_pieces),
        SERVES(a_place_that_cannot_be_used_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
