/* The replicate handler over real dispatch and the real SQLite sink. */
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{\"on_failure\":\"jsonl:${DIR}/failed.jsonl\",\"report_batch_item_failures\":true,\"routes\":["         \
    "{\"name\":\"r\",\"handler\":\"replicate\",\"to\":\"sqlite:${DIR}/db?table=replica\"" members "}]}"

#define EVENT(list) "{\"Records\":[" list "]}"
#define RECORD_OF(view, event, seq, time, body)                                                              \
    "{\"eventID\":\"e" seq "\",\"eventName\":\"" event "\",\"awsRegion\":\"eu-west-1\",\"dynamodb\":{"       \
    "\"ApproximateCreationDateTime\":" time "," body ",\"SequenceNumber\":\"" seq                            \
    "\",\"StreamViewType\":\"" view "\"},\"eventSourceARN\":\"arn:aws:dynamodb:eu-west-1:1:table/"           \
    "orders/stream/x\"}"
#define RECORD(event, seq, body) RECORD_OF("NEW_AND_OLD_IMAGES", event, seq, "1767265199", body)
#define KEYS                     "\"Keys\":{\"PK\":{\"S\":\"a\"}}"
#define NEW(members)             "\"NewImage\":{\"PK\":{\"S\":\"a\"}" members "}"
#define OLD(members)             "\"OldImage\":{\"PK\":{\"S\":\"a\"}" members "}"
#define V(n)                     ",\"v\":{\"N\":\"" n "\"}"
#define INSERT(seq, n)           RECORD("INSERT", seq, KEYS "," NEW(V(n)))
#define MODIFY(seq, n, old)      RECORD("MODIFY", seq, KEYS "," NEW(V(n)) "," OLD(V(old)))
#define REMOVE(seq, old)         RECORD("REMOVE", seq, KEYS "," OLD(V(old)))

static void deliver(struct stage *s, const char *event)
{
    stage_deliver(s, sl_span_str(event));
    if (s->answer.is_error || s->answer.checkpoint != s->n)
        fail_msg("checkpoint %zu of %zu: %s", s->answer.checkpoint, s->n, s->answer.error.text);
}

static void expect_rows(struct stage *s, const char *table, const char *wanted)
{
    char sql[128], *got;
    snprintf(sql, sizeof(sql), "SELECT item FROM \"%s\" ORDER BY key", table);
    got = stage_query(s, "db", sql);
    assert_string_equal(got, wanted);
    free(got);
}

/* Failure mode 18: all orders of five changes of an item, with one of them again beside each. */
static void every_order_of_five_changes_ends_the_same(void **state)
{
    (void)state;
    static const char *const changes[] = {INSERT("99", "1"), MODIFY("1009", "2", "1"), REMOVE("1010", "2"),
                                          INSERT("999999999999999999999999999999999999999", "3"),
                                          MODIFY("1000000000000000000000000000000000000000", "4", "3")};
    for (int order = 0; order < 240; order++) {
        struct stage *s = stage_new(order % 2 ? ROUTE(",\"guard\":{\"table\":\"guards\"}") : ROUTE(""), NULL);
        int left[5] = {0, 1, 2, 3, 4}, rest = order / 2;
        for (int i = 0; i < 5; i++) {
            char event[2048];
            int pick = rest % (5 - i), change = left[pick];
            rest /= 5 - i;
            memmove(left + pick, left + pick + 1, (size_t)(4 - i - pick) * sizeof(*left));
            snprintf(event, sizeof(event), EVENT("%s,%s"), changes[change], changes[order % 5]);
            deliver(s, event);
            deliver(s, event);
            assert_int_equal(s->answer.parked, 0);
        }
        char *got = stage_query(s, "db", "SELECT item FROM replica");
        if (!strstr(got, "\"v\":{\"N\":\"4\"}"))
            fail_msg("order %d: %s", order, got);
        free(got);
        stage_destroy(s);
    }
}

static void a_deleted_item_stays_away(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    deliver(s, EVENT(INSERT("1", "1") "," REMOVE("2", "1")));
    deliver(s, EVENT(INSERT("1", "1")));
    expect_rows(
        s, "replica",
        "{\"PK\":{\"S\":\"a\"},\"sluice_order\":{\"S\":\"000000:0000000000000000000000000000000000000002:"
        "0001767265199000\"},\"sluice_deleted\":{\"BOOL\":true},\"sluice_expires\":{\"N\":\"1701296000\"}}"
        "\n");
    stage_destroy(s);
    s = stage_new(ROUTE(",\"guard\":{\"table\":\"guards\",\"key\":\"id\"}"), NULL);
    deliver(s, EVENT(INSERT("1", "1") "," REMOVE("2", "1")));
    deliver(s, EVENT(INSERT("1", "1")));
    expect_rows(s, "replica", "");
    char *row = stage_query(s, "db", "SELECT item FROM guards");
    assert_non_null(strstr(row, "\"sluice_expires\":{\"N\":\"1701296000\"}"));
    assert_non_null(strstr(row, "\"id\":{\"S\":\"replica "));
    free(row);
    stage_destroy(s);
}

static void a_replica_in_a_side_tables_guard_is_the_image_byte_for_byte(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",\"guard\":{\"table\":\"guards\"}"), NULL);
    deliver(s, EVENT(RECORD(
                   "INSERT", "1",
                   KEYS "," NEW(",\"t\":{\"S\":\"\\u00e9\\n\"},\"n\":{\"N\":\"1.50\"},\"e\":{\"M\":{}}"))));
    expect_rows(
        s, "replica",
        "{\"PK\":{\"S\":\"a\"},\"t\":{\"S\":\"\\u00e9\\n\"},\"n\":{\"N\":\"1.50\"},\"e\":{\"M\":{}}}\n");
    stage_destroy(s);
}

static void attributes_are_reshaped(void **state)
{
    (void)state;
    static const struct {
        const char *config, *row;
    } cases[] = {
        {ROUTE(",\"guard\":\"none\",\"project\":[\"b\",\"c\"]"),
         "{\"PK\":{\"S\":\"a\"},\"b\":{\"N\":\"2\"},\"c\":{\"L\":[]}}\n"},
        {ROUTE(",\"guard\":\"none\",\"drop\":[\"b\",\"PK\"]"),
         "{\"PK\":{\"S\":\"a\"},\"c\":{\"L\":[]},\"d\":{\"S\":\"x\"}}\n"},
        {ROUTE(",\"guard\":\"none\",\"rename\":{\"b\":\"d\",\"PK\":\"id\"}"),
         "{\"id\":{\"S\":\"a\"},\"d\":{\"N\":\"2\"},\"c\":{\"L\":[]}}\n"},
        {ROUTE(",\"guard\":\"none\",\"key\":{\"id\":\"{table}#{PK}\",\"sort\":\"{PK}\"}"),
         "{\"id\":{\"S\":\"orders#a\"},\"sort\":{\"S\":\"a\"},\"PK\":{\"S\":\"a\"},\"b\":{\"N\":\"2\"},\"c\":"
         "{\"L\":[]},"
         "\"d\":{\"S\":\"x\"}}\n"},
        {ROUTE(",\"guard\":\"none\",\"key\":{\"PK\":\"x{PK}\"},\"project\":[\"d\"]"),
         "{\"PK\":{\"S\":\"xa\"},\"d\":{\"S\":\"x\"}}\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(cases[i].config, NULL);
        deliver(s, EVENT(RECORD("INSERT", "1",
                                KEYS "," NEW(",\"b\":{\"N\":\"2\"},\"c\":{\"L\":[]},\"d\":{\"S\":\"x\"}"))));
        expect_rows(s, "replica", cases[i].row);
        deliver(s, EVENT(REMOVE("2", "1")));
        expect_rows(s, "replica", "");
        stage_destroy(s);
    }
}

static void expired_items_may_be_kept(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",\"guard\":\"none\",\"expired\":\"keep\""), NULL);
    deliver(s, EVENT(INSERT(
                   "1",
                   "1") ",{\"eventID\":\"x\",\"eventName\":\"REMOVE\",\"userIdentity\":{\"type\":\"Service\","
                        "\"principalId\":\"dynamodb.amazonaws.com\"},\"dynamodb\":{" KEYS
                        ",\"SequenceNumber\":\"2\"}}"));
    expect_rows(s, "replica", "{\"PK\":{\"S\":\"a\"},\"v\":{\"N\":\"1\"}}\n");
    deliver(s, EVENT(REMOVE("3", "1")));
    expect_rows(s, "replica", "");
    stage_destroy(s);
}

/* ---- loops, sources, epochs ---- */

/* A guard as replicate writes it; `n` is one character. */
#define GUARD(n) ",\"sluice_order\":{\"S\":\"000000:" ZEROS39 n ":0000000000000000\"}"
#define ZEROS39  "000000000000000000000000000000000000000"

static void a_replicates_own_change_goes_no_further(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    deliver(s, EVENT(RECORD("INSERT", "1", KEYS "," NEW(GUARD("x")))));
    deliver(s, EVENT(RECORD("MODIFY", "2", KEYS "," NEW(GUARD("y")) "," OLD(GUARD("x")))));
    deliver(s, EVENT(RECORD("REMOVE", "3", KEYS "," OLD(GUARD("y") ",\"sluice_deleted\":{\"BOOL\":true}"))));
    expect_rows(s, "replica", "");
    deliver(s, EVENT(RECORD("MODIFY", "4", KEYS "," NEW(GUARD("y") V("2")) "," OLD(GUARD("y")))));
    char *row = stage_query(s, "db", "SELECT item FROM replica");
    assert_non_null(strstr(row, "\"v\":{\"N\":\"2\"}"));
    assert_null(strstr(row, "y:0"));
    free(row);
    stage_destroy(s);
}

/* An attribute of the application's that happens to have the guard's name is no reason to leave the item out.
 */
static void an_attribute_with_the_guards_name_is_refused(void **state)
{
    (void)state;
    static const char *const values[] = {"{\"S\":\"x\"}", "{\"N\":\"7\"}"};
    for (size_t i = 0; i < 2; i++) {
        char event[1024];
        struct stage *s = stage_new(ROUTE(",\"guard_attribute\":\"version\""), NULL);
        snprintf(event, sizeof(event), EVENT(RECORD("INSERT", "1", KEYS "," NEW(",\"version\":%s"))),
                 values[i]);
        stage_deliver(s, sl_span_str(event));
        assert_int_equal(s->answer.parked, 1);
        expect_rows(s, "replica", "");
        stage_destroy(s);
    }
}

/* The items would all be taken for a replicate's own, and left out. */
static void a_guard_in_the_key_stops_the_stream(void **state)
{
    (void)state;
    static const char *const more[] = {",\"guard_attribute\":\"PK\"",
                                       ",\"guard_attribute\":\"PK\",\"replicated\":\"copy\""};
    for (size_t i = 0; i < 2; i++) {
        char config[1024];
        snprintf(config, sizeof(config), ROUTE("%s"), more[i]);
        struct stage *s = stage_new(config, NULL);
        stage_deliver(s, sl_span_str(EVENT(INSERT("1", "1"))));
        assert_int_equal(s->answer.error.status, SL_FATAL);
        assert_non_null(strstr(s->answer.error.text, "guard_attribute: PK is of the items' key"));
        stage_destroy(s);
    }
}

static void a_view_type_without_both_images_cannot_tell_an_echo(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    stage_deliver(s,
                  sl_span_str(EVENT(RECORD_OF("NEW_IMAGE", "MODIFY", "1", "1", KEYS "," NEW(GUARD("x"))))));
    assert_int_equal(s->answer.error.status, SL_FATAL);
    assert_non_null(strstr(s->answer.error.text, "\"replicated\": \"copy\""));
    stage_destroy(s);
    s = stage_new(ROUTE(",\"replicated\":\"copy\""), NULL);
    deliver(s, EVENT(RECORD_OF("NEW_IMAGE", "MODIFY", "1", "1", KEYS "," NEW(GUARD("x")))));
    stage_destroy(s);
}

static void streams_without_images_are_read_back(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    stage_deliver(s, sl_span_str(EVENT(RECORD_OF("KEYS_ONLY", "MODIFY", "1", "1", KEYS))));
    assert_int_equal(s->answer.error.status, SL_FATAL);
    assert_non_null(strstr(s->answer.error.text, "KEYS_ONLY"));
    stage_destroy(s);
    /* The source is filled by another route. */
    s = stage_new("{\"on_failure\":\"report\",\"report_batch_item_failures\":true,\"routes\":["
                  "{\"name\":\"s\",\"handler\":\"replicate\",\"to\":\"sqlite:${DIR}/"
                  "db?table=source\",\"guard\":\"none\","
                  "\"when\":{\"pattern\":[{\"dynamodb\":{\"StreamViewType\":[\"NEW_AND_OLD_IMAGES\"]}}]}},"
                  "{\"name\":\"r\",\"handler\":\"replicate\",\"to\":\"sqlite:${DIR}/"
                  "db?table=replica\",\"guard\":\"none\","
                  "\"source\":\"sqlite:${DIR}/db?table=source\","
                  "\"when\":{\"pattern\":[{\"dynamodb\":{\"StreamViewType\":[\"KEYS_ONLY\"]}}]}}]}",
                  NULL);
    deliver(s, EVENT(INSERT("1", "7")));
    deliver(s, EVENT(RECORD_OF("KEYS_ONLY", "INSERT", "1", "1", KEYS)));
    expect_rows(s, "replica", "{\"PK\":{\"S\":\"a\"},\"v\":{\"N\":\"7\"}}\n");
    deliver(s, EVENT(REMOVE("2", "7")));
    deliver(s, EVENT(RECORD_OF("KEYS_ONLY", "MODIFY", "2", "1", KEYS)));
    expect_rows(s, "replica", "");
    stage_destroy(s);
}

static void a_newer_change_that_is_refused_is_warned_of(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    deliver(s, EVENT(INSERT("900", "1")));
    deliver(s, EVENT(RECORD_OF("NEW_AND_OLD_IMAGES", "MODIFY", "100", "1767265300", KEYS "," NEW(V("2")))));
    char *log = stage_log(s);
    assert_non_null(strstr(log, "raise \"epoch\" above 0"));
    assert_non_null(strstr(log, "RefusedNewer"));
    free(log);
    stage_destroy(s);
    s = stage_new(ROUTE(""), NULL);
    deliver(s, EVENT(INSERT("900", "1")));
    deliver(s, EVENT(INSERT("100", "1")));
    log = stage_log(s);
    assert_null(strstr(log, "epoch"));
    free(log);
    stage_destroy(s);
}

/* ---- what can never succeed ---- */

static void an_item_without_room_for_its_guard_is_rejected_by_name(void **state)
{
    (void)state;
    char *event = malloc(1 << 20), *text = malloc(1 << 19);
    memset(text, 'x', 400 * 1024 - 60);
    text[400 * 1024 - 60] = '\0';
    snprintf(event, 1 << 20,
             EVENT(INSERT("1", "1") "," RECORD("MODIFY", "2", KEYS "," NEW(",\"t\":{\"S\":\"%s\"}"))), text);
    struct stage *s = stage_new(ROUTE(""), NULL);
    deliver(s, event);
    assert_int_equal(s->answer.parked, 1);
    char *failed = stage_file(s, "failed.jsonl"), *row = stage_query(s, "db", "SELECT item FROM replica");
    assert_non_null(strstr(failed, "ItemTooLargeForGuard"));
    assert_non_null(strstr(row, "\"v\":{\"N\":\"1\"}"));
    free(failed);
    free(row);
    free(event);
    free(text);
    stage_destroy(s);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *config, *message;
    } cases[] = {
        {ROUTE(",\"guard\":\"inlin\""), "guard: expected \"inline\", \"none\" or {\"table\": name}"},
        {ROUTE(",\"guard\":{\"tabel\":\"x\"}"), "guard.tabel: no such member"},
        {ROUTE(",\"guard\":{\"table\":\"replica\"}"), "guard.table: the replica itself"},
        {ROUTE(",\"project\":{}"), "project: expected a list"},
        {ROUTE(",\"drop\":[1]"), "drop[0]: expected an attribute name"},
        {ROUTE(",\"rename\":{\"a\":1}"), "rename.a: expected an attribute name"},
        {ROUTE(",\"rename\":{\"a\":\"c\",\"b\":\"c\"}"), "rename: two attributes become c"},
        {ROUTE(",\"drop\":[\"a\"],\"rename\":{\"a\":\"c\"}"), "rename.a: the attribute is also in drop"},
        {ROUTE(",\"key\":{\"a\":\"{NewImage.b}\"}"), "key.a: only attributes of the source's key"},
        {ROUTE(",\"key\":{\"a\":\"{b\"}"), "key.a: byte 0: '{' is not closed"},
        {ROUTE(",\"key\":{}"), "key: expected an object of one or two"},
        {ROUTE(",\"epoc\":1"), "$.routes[0].epoc: is not known here; did you mean \"epoch\"?"},
        {ROUTE(",\"guard_attribute\":\"a\\\"b\""),
         "guard_attribute, deleted_attribute and expires_attribute"},
        {ROUTE(",\"guard_attribute\":\"x\",\"deleted_attribute\":\"x\""), "each has a name of its own"},
        {ROUTE(",\"expires_attribute\":\"sluice_deleted\""), "each has a name of its own"},
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
        cmocka_unit_test(every_order_of_five_changes_ends_the_same),
        cmocka_unit_test(a_deleted_item_stays_away),
        cmocka_unit_test(a_replica_in_a_side_tables_guard_is_the_image_byte_for_byte),
        cmocka_unit_test(attributes_are_reshaped),
        cmocka_unit_test(expired_items_may_be_kept),
        cmocka_unit_test(a_replicates_own_change_goes_no_further),
        cmocka_unit_test(an_attribute_with_the_guards_name_is_refused),
        cmocka_unit_test(a_guard_in_the_key_stops_the_stream),
        cmocka_unit_test(a_view_type_without_both_images_cannot_tell_an_echo),
        cmocka_unit_test(streams_without_images_are_read_back),
        cmocka_unit_test(a_newer_change_that_is_refused_is_warned_of),
        cmocka_unit_test(an_item_without_room_for_its_guard_is_rejected_by_name),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
