/* The aggregate handler over real dispatch and the real SQLite sink. */
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{\"on_failure\":\"jsonl:${DIR}/failed.jsonl\",\"report_batch_item_failures\":true,\"routes\":["         \
    "{\"name\":\"t\",\"handler\":\"aggregate\",\"to\":\"sqlite:${DIR}/db?table=totals\"," members "}]}"
#define BY_STATUS "\"counters\":[{\"key\":{\"PK\":\"{status}\"},\"add\":{\"n\":1,\"sum\":\"{total}\"}}]"

#define EVENT(list) "{\"Records\":[" list "]}"
#define RECORD_OF(view, event, seq, id, body, others)                                                        \
    "{\"eventID\":\"e" seq "\",\"eventName\":\"" event "\",\"awsRegion\":\"eu-west-1\",\"dynamodb\":{"       \
    "\"ApproximateCreationDateTime\":1767265199,\"Keys\":{\"PK\":{\"S\":\"" id "\"}}" body                   \
    ",\"SequenceNumber\":\"" seq "\",\"StreamViewType\":\"" view "\"}" others ",\"eventSourceARN\":"         \
    "\"arn:aws:dynamodb:eu-west-1:1:table/orders/stream/x\"}"
#define RECORD(event, seq, id, body) RECORD_OF("NEW_AND_OLD_IMAGES", event, seq, id, body, "")
#define ITEM(id, status, total)                                                                              \
    "{\"PK\":{\"S\":\"" id "\"},\"status\":{\"S\":\"" status "\"},\"total\":{\"N\":\"" total "\"}}"
#define NEW(item)                      ",\"NewImage\":" item
#define OLD(item)                      ",\"OldImage\":" item
#define INSERT(seq, id, status, total) RECORD("INSERT", seq, id, NEW(ITEM(id, status, total)))
#define MODIFY(seq, id, status, total, old, was)                                                             \
    RECORD("MODIFY", seq, id, NEW(ITEM(id, status, total)) OLD(ITEM(id, old, was)))
#define REMOVE(seq, id, old, was) RECORD("REMOVE", seq, id, OLD(ITEM(id, old, was)))
#define EXPIRE(seq, id, old, was)                                                                            \
    RECORD_OF("NEW_AND_OLD_IMAGES", "REMOVE", seq, id, OLD(ITEM(id, old, was)),                              \
              ",\"userIdentity\":{\"type\":\"Service\",\"principalId\":\"dynamodb.amazonaws.com\"}")

static void deliver(struct stage *s, const char *event)
{
    stage_deliver(s, sl_span_str(event));
    if (s->answer.is_error || s->answer.checkpoint != s->n)
        fail_msg("checkpoint %zu of %zu: %s", s->answer.checkpoint, s->n, s->answer.error.text);
}

/* The rows of the totals that are not the ledger's. */
static void expect_totals(struct stage *s, const char *wanted)
{
    char *got = stage_query(s, "db", "SELECT item FROM totals WHERE item NOT LIKE '%sluice:%' ORDER BY key");
    assert_string_equal(got, wanted);
    free(got);
}

static void items_that_change_group_move(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
    deliver(s, EVENT(INSERT("1", "a", "OPEN", "1.25") "," INSERT("2", "b", "OPEN", "2")));
    deliver(s, EVENT(MODIFY("3", "a", "PAID", "1.50", "OPEN", "1.25")));
    for (int i = 0; i < 3; i++) {
        expect_totals(s, "{\"PK\":{\"S\":\"OPEN\"},\"n\":{\"N\":\"1\"},\"sum\":{\"N\":\"2\"}}\n"
                         "{\"PK\":{\"S\":\"PAID\"},\"n\":{\"N\":\"1\"},\"sum\":{\"N\":\"1.5\"}}\n");
        deliver(s, EVENT(INSERT("1", "a", "OPEN", "1.25") "," INSERT("2", "b", "OPEN", "2")));
        deliver(s, EVENT(MODIFY("3", "a", "PAID", "1.50", "OPEN", "1.25")));
    }
    deliver(s, EVENT(REMOVE("4", "a", "PAID", "1.50") "," INSERT("5", "a", "OPEN", "7")));
    deliver(s, EVENT(REMOVE("4", "a", "PAID", "1.50")));
    expect_totals(s, "{\"PK\":{\"S\":\"OPEN\"},\"n\":{\"N\":\"2\"},\"sum\":{\"N\":\"9\"}}\n"
                     "{\"PK\":{\"S\":\"PAID\"},\"n\":{\"N\":\"0\"},\"sum\":{\"N\":\"0\"}}\n");
    stage_destroy(s);
}

/* The old image says PAID, the ledger says OPEN: what was added is subtracted, not what was not. */
static void a_change_that_never_came_does_no_harm(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
    deliver(s, EVENT(INSERT("1", "a", "OPEN", "1")));
    deliver(s, EVENT(MODIFY("3", "a", "SENT", "3", "PAID", "2")));
    expect_totals(s, "{\"PK\":{\"S\":\"OPEN\"},\"n\":{\"N\":\"0\"},\"sum\":{\"N\":\"0\"}}\n"
                     "{\"PK\":{\"S\":\"SENT\"},\"n\":{\"N\":\"1\"},\"sum\":{\"N\":\"3\"}}\n");
    deliver(s, EVENT(MODIFY("2", "a", "PAID", "2", "OPEN", "1")));
    deliver(s, EVENT(REMOVE("9", "b", "PAID", "2") "," MODIFY("4", "c", "SENT", "5", "PAID", "2")));
    expect_totals(s, "{\"PK\":{\"S\":\"OPEN\"},\"n\":{\"N\":\"0\"},\"sum\":{\"N\":\"0\"}}\n"
                     "{\"PK\":{\"S\":\"SENT\"},\"n\":{\"N\":\"2\"},\"sum\":{\"N\":\"8\"}}\n");
    stage_destroy(s);
}

static void expired_items_are_subtracted_or_kept(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
    deliver(s, EVENT(INSERT("1", "a", "OPEN", "1") "," EXPIRE("2", "a", "OPEN", "1")));
    expect_totals(s, "");
    stage_destroy(s);
    s = stage_new(ROUTE(BY_STATUS ",\"expired\":\"keep\""), NULL);
    for (int i = 0; i < 2; i++) {
        deliver(s, EVENT(INSERT("1", "a", "OPEN", "1")));
        deliver(s, EVENT(EXPIRE("2", "a", "OPEN", "1")));
        deliver(s, EVENT(INSERT("3", "a", "OPEN", "5") "," EXPIRE("4", "a", "OPEN",
                                                                  "5") "," INSERT("5", "a", "OPEN", "7")));
        expect_totals(s, "{\"PK\":{\"S\":\"OPEN\"},\"n\":{\"N\":\"3\"},\"sum\":{\"N\":\"13\"}}\n");
    }
    stage_destroy(s);
}

static void events_are_counted_once_each(void **state)
{
    (void)state;
    struct stage *s = stage_new(
        ROUTE(
            "\"per\":\"event\",\"counters\":[{\"key\":{\"PK\":\"{event} {table}\"},\"add\":{\"n\":\"2\"}}]"),
        NULL);
    for (int i = 0; i < 2; i++)
        deliver(s, EVENT(INSERT("1", "a", "OPEN", "1") "," INSERT("1", "a", "OPEN",
                                                                  "1") "," REMOVE("2", "a", "OPEN", "1")));
    expect_totals(s, "{\"PK\":{\"S\":\"INSERT orders\"},\"n\":{\"N\":\"2\"}}\n{\"PK\":{\"S\":\"REMOVE "
                     "orders\"},\"n\":{\"N\":\"2\"}}\n");
    char *mark = stage_query(s, "db", "SELECT item FROM totals WHERE item LIKE '%sluice:event:t:e2\"%'");
    assert_string_equal(mark,
                        "{\"PK\":{\"S\":\"sluice:event:t:e2\"},\"sluice_expires\":{\"N\":\"1701296000\"}}\n");
    free(mark);
    stage_destroy(s);
}

static void running_values_never_fall(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE("\"counters\":[{\"key\":{\"PK\":\"all\"},\"add\":{\"n\":1},\"running_"
                                      "max\":{\"most\":\"{total}\"},"
                                      "\"running_min\":{\"least\":\"{total}\"}}]"),
                                NULL);
    deliver(s, EVENT(INSERT("1", "a", "OPEN", "5") "," MODIFY("2", "a", "OPEN", "9", "OPEN", "5") "," MODIFY(
                   "3", "a", "OPEN", "7", "OPEN", "9")));
    deliver(s, EVENT(INSERT("4", "b", "OPEN", "6") "," REMOVE("5", "a", "OPEN", "7")));
    expect_totals(
        s, "{\"PK\":{\"S\":\"all\"},\"n\":{\"N\":\"1\"},\"most\":{\"N\":\"9\"},\"least\":{\"N\":\"5\"}}\n");
    stage_destroy(s);
}

static void sub_counters_spread_by_the_first_key_attribute(void **state)
{
    (void)state;
    struct stage *s = stage_new(
        ROUTE("\"shards\":1,\"counters\":[{\"key\":{\"Z\":\"{status}\",\"A\":\"{PK}\"},\"add\":{\"n\":1}}]"),
        NULL);
    deliver(s, EVENT(INSERT("1", "a", "OPEN", "5")));
    expect_totals(s, "{\"A\":{\"S\":\"a\"},\"Z\":{\"S\":\"OPEN#0\"},\"n\":{\"N\":\"1\"}}\n");
    stage_destroy(s);
}

static void what_an_item_lacks_has_a_stated_result(void **state)
{
    (void)state;
    static const struct {
        const char *config, *totals;
        size_t parked;
    } cases[] = {
        {ROUTE(BY_STATUS), "", 1},
        {ROUTE(BY_STATUS ",\"missing\":\"skip\""), "", 0},
        {ROUTE(BY_STATUS ",\"missing\":\"empty\""), "{\"PK\":{\"S\":\"OPEN\"},\"n\":{\"N\":\"1\"}}\n", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(cases[i].config, NULL);
        deliver(s, EVENT(RECORD("INSERT", "1", "a",
                                ",\"NewImage\":{\"PK\":{\"S\":\"a\"},\"status\":{\"S\":\"OPEN\"}}")));
        expect_totals(s, cases[i].totals);
        assert_int_equal(s->answer.parked, cases[i].parked);
        stage_destroy(s);
    }
}

/* Failure mode 17: one poison record each, not a loop, and the good ones around it count. */
static void what_is_no_sum_is_rejected_alone(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
    deliver(s, EVENT(INSERT("1", "a", "OPEN", "1") "," RECORD(
                   "INSERT", "2", "b",
                   ",\"NewImage\":{\"PK\":{\"S\":\"b\"},\"status\":{\"S\":\"OPEN\"},"
                   "\"total\":{\"S\":\"many\"}}") "," INSERT("3", "c", "OPEN", "2")));
    assert_int_equal(s->answer.parked, 1);
    expect_totals(s, "{\"PK\":{\"S\":\"OPEN\"},\"n\":{\"N\":\"2\"},\"sum\":{\"N\":\"3\"}}\n");
    char *failed = stage_file(s, "failed.jsonl");
    assert_non_null(strstr(failed, "NotANumber"));
    free(failed);
    deliver(s, EVENT(INSERT("4", "d", "OPEN", "99999999999999999999999999999999999999") "," INSERT(
                   "5", "e", "OPEN", "0.1") "," INSERT("6", "f", "BIG", "1")));
    assert_int_equal(s->answer.parked, 1);
    failed = stage_file(s, "failed.jsonl");
    assert_non_null(strstr(failed, "38 digits"));
    free(failed);
    stage_destroy(s);
}

static void later_changes_wait_behind_a_rejected_one(void **state)
{
    (void)state;
    struct stage *s = stage_new("{\"on_failure\":\"report\",\"report_batch_item_failures\":true,\"routes\":[{"
                                "\"name\":\"t\",\"handler\":"
                                "\"aggregate\",\"to\":\"sqlite:${DIR}/db?table=totals\"," BY_STATUS "}]}",
                                NULL);
    stage_deliver(
        s, sl_span_str(EVENT(INSERT("1", "a", "OPEN", "1") "," RECORD(
               "MODIFY", "2", "a",
               ",\"NewImage\":{\"PK\":{\"S\":\"a\"}}") "," MODIFY("3", "a", "SENT", "3", "OPEN",
                                                                  "1") "," INSERT("4", "b", "OPEN", "5"))));
    assert_int_equal(s->answer.checkpoint, 1);
    expect_totals(s, "{\"PK\":{\"S\":\"OPEN\"},\"n\":{\"N\":\"2\"},\"sum\":{\"N\":\"6\"}}\n");
    stage_destroy(s);
}

static void totals_beside_their_source(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS ",\"own_rows\":\"mark\""), NULL);
    deliver(s, EVENT(INSERT("1", "a", "OPEN", "1")));
    expect_totals(
        s,
        "{\"PK\":{\"S\":\"OPEN\"},\"n\":{\"N\":\"1\"},\"sum\":{\"N\":\"1\"},\"sluice_row\":{\"S\":\"t\"}}\n");
    deliver(s,
            EVENT(RECORD(
                "INSERT", "2", "OPEN",
                ",\"NewImage\":{\"PK\":{\"S\":\"OPEN\"},\"n\":{\"N\":\"1\"},\"sluice_row\":{\"S\":\"t\"}}")));
    expect_totals(
        s,
        "{\"PK\":{\"S\":\"OPEN\"},\"n\":{\"N\":\"1\"},\"sum\":{\"N\":\"1\"},\"sluice_row\":{\"S\":\"t\"}}\n");
    stage_destroy(s);
}

static void a_target_that_is_the_source_is_refused(void **state)
{
    (void)state;
    static const char *const variables[] = {"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=a",
                                            "AWS_SECRET_ACCESS_KEY=b", "AWS_ENDPOINT_URL=http://127.0.0.1:9",
                                            NULL};
    static const char *const handlers[] = {"\"aggregate\"," BY_STATUS, "\"replicate\""};
    for (size_t i = 0; i < 2; i++) {
        char config[512];
        snprintf(config, sizeof(config),
                 "{\"on_failure\":\"report\",\"report_batch_item_failures\":true,\"routes\":[{\"name\":\"t\","
                 "\"to\":\"dynamodb://orders\",\"handler\":%s}]}",
                 handlers[i]);
        struct stage *s = stage_new(config, variables);
        stage_deliver(s, sl_span_str(EVENT(INSERT("1", "a", "OPEN", "1"))));
        assert_int_equal(s->answer.error.status, SL_FATAL);
        assert_string_equal(s->answer.error.code, "TargetIsSource");
        stage_destroy(s);
    }
}

static void view_types_that_cannot_serve_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config, *view;
        bool serves;
    } cases[] = {
        {ROUTE(BY_STATUS), "KEYS_ONLY", false},
        {ROUTE(BY_STATUS), "OLD_IMAGE", false},
        {ROUTE(BY_STATUS), "NEW_IMAGE", true},
        {ROUTE(BY_STATUS ",\"mode\":\"at-least-once\""), "NEW_IMAGE", false},
        {ROUTE("\"per\":\"event\",\"counters\":[{\"key\":{\"PK\":\"x\"},\"add\":{\"n\":1}}]"), "KEYS_ONLY",
         true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char event[1024];
        struct stage *s = stage_new(cases[i].config, NULL);
        snprintf(event, sizeof(event), EVENT(RECORD_OF("%s", "INSERT", "1", "a", "%s", "")),
                 strcmp(cases[i].view, "NEW_IMAGE") ? "" : NEW(ITEM("a", "OPEN", "1")), cases[i].view);
        stage_deliver(s, sl_span_str(event));
        if ((s->answer.error.status == SL_OK) != cases[i].serves)
            fail_msg("%zu: %s", i, s->answer.error.text);
        if (!cases[i].serves)
            assert_non_null(strstr(s->answer.error.text, cases[i].view));
        stage_destroy(s);
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
#define COUNTER(members) ROUTE("\"counters\":[{" members "}]")
    static const struct {
        const char *config, *message;
    } cases[] = {
        {ROUTE("\"counters\":[]"), "counters: expected a list of 1 to 40"},
        {ROUTE("\"counters\":{}"), "counters: expected a list"},
        {ROUTE("\"counters\":[1]"), "counters[0]: expected an object"},
        {COUNTER("\"kee\":1"), "counters[0].kee: no such member"},
        {COUNTER("\"add\":{\"n\":1}"), "counters[0].key: expected an object"},
        {COUNTER("\"key\":{\"PK\":1},\"add\":{\"n\":1}"), "counters[0].key.PK: expected a template"},
        {COUNTER("\"key\":{\"PK\":\"{a\"},\"add\":{\"n\":1}"), "counters[0].key.PK: byte 0"},
        {COUNTER("\"key\":{\"PK\":\"{OldImage.a}\"},\"add\":{\"n\":1}"),
         "counters[0].key.PK: write {name} without its image"},
        {COUNTER("\"key\":{\"PK\":\"a\"}"), "counters[0].add: missing"},
        {COUNTER("\"key\":{\"PK\":\"a\"},\"add\":{\"n\":1.5}"),
         "counters[0].add.n: expected an integer, or a decimal or template as text"},
        {COUNTER("\"key\":{\"PK\":\"a\"},\"add\":{\"n\":\"{NewImage.a}\"}"),
         "counters[0].add.n: write {name} without its image"},
        {COUNTER("\"key\":{\"PK\":\"a\"},\"add\":1"), "counters[0].add: expected an object"},
        {COUNTER("\"key\":{\"PK\":\"a\"},\"add\":{\"n\":1},\"when\":{\"a\":1}"), "counters[0].when: "},
        {ROUTE("\"counters\":[{\"key\":{\"PK\":\"a\"},\"add\":{\"n\":1}},{\"key\":{\"SK\":\"a\"},\"add\":{"
               "\"n\":1}}]"),
         "counters[1].key.PK: expected"},
        {ROUTE(BY_STATUS ",\"ledger\":{\"tabel\":\"x\"}"), "ledger.tabel: no such member"},
        {ROUTE(BY_STATUS ",\"ledger\":{\"key\":\"x\"}"), "ledger.key: only with a table of its own"},
        {ROUTE(BY_STATUS ",\"expires_attribute\":\"\""), "expires_attribute: expected"},
        {ROUTE(BY_STATUS ",\"shard\":1"), "did you mean \"shards\"?"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error error = {0};
        stage_refused(cases[i].config, &error);
        if (!strstr(error.text, cases[i].message))
            fail_msg("%s\nand not %s", error.text, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_that_change_group_move),
        cmocka_unit_test(a_change_that_never_came_does_no_harm),
        cmocka_unit_test(expired_items_are_subtracted_or_kept),
        cmocka_unit_test(events_are_counted_once_each),
        cmocka_unit_test(running_values_never_fall),
        cmocka_unit_test(sub_counters_spread_by_the_first_key_attribute),
        cmocka_unit_test(what_an_item_lacks_has_a_stated_result),
        cmocka_unit_test(what_is_no_sum_is_rejected_alone),
        cmocka_unit_test(later_changes_wait_behind_a_rejected_one),
        cmocka_unit_test(totals_beside_their_source),
        cmocka_unit_test(a_target_that_is_the_source_is_refused),
        cmocka_unit_test(view_types_that_cannot_serve_are_refused),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
