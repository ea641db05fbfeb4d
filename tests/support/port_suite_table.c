#include "tests/support/port_suite.h"

#include "base/json_write.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define S(text) "{\"S\":\"" text "\"}"
#define N(text) "{\"N\":\"" text "\"}"

static const char *key_text(struct port_suite *suite, const char *pk, const char *sk)
{
    return sl_arena_printf(suite->call.arena, "{\"PK\":{\"S\":\"%s\"},\"SK\":{\"S\":\"%s\"}}", pk, sk);
}

static struct sl_span key_of(struct port_suite *suite, const char *pk, const char *sk)
{
    return sl_span_str(key_text(suite, pk, sk));
}

/* The key's attributes and more: `rest` is `"a":{"N":"1"}` or "". */
static struct sl_span item_of(struct port_suite *suite, const char *pk, const char *sk, const char *rest)
{
    const char *key = key_text(suite, pk, sk);
    return sl_span_str(
        sl_arena_printf(suite->call.arena, "%.*s%s%s}", (int)strlen(key) - 1, key, *rest ? "," : "", rest));
}

static struct sl_result run(struct port_suite *suite, struct sl_table_op op)
{
    struct sl_result result;
    suite->table->apply(suite->table, &op, 1, &result, &suite->call);
    return result;
}

static void assert_ok(struct sl_result result)
{
    if (result.status != SL_OK)
        fail_msg("status %d, %s: %s", (int)result.status, result.code, result.text);
}

static void put(struct port_suite *suite, const char *pk, const char *sk, const char *rest)
{
    assert_ok(run(suite, (struct sl_table_op){.verb = SL_TABLE_PUT,
                                              .key = key_of(suite, pk, sk),
                                              .item = item_of(suite, pk, sk, rest)}));
}

static struct sl_span get(struct port_suite *suite, const char *pk, const char *sk)
{
    struct sl_result result =
        run(suite, (struct sl_table_op){.verb = SL_TABLE_GET, .key = key_of(suite, pk, sk)});
    assert_ok(result);
    return result.item;
}

/* Compares as JSON: services return members in any order. */
static void assert_item(struct sl_span have, struct sl_span wanted)
{
    json_t *a = json_loadb(have.ptr ? have.ptr : "null", have.ptr ? have.len : 4, JSON_DECODE_ANY, NULL);
    json_t *b = json_loadb(wanted.ptr, wanted.len, 0, NULL);
    assert_non_null(b);
    if (!json_equal(a, b))
        fail_msg("the item is %.*s\nand should be %.*s", SL_ARG(have), SL_ARG(wanted));
    json_decref(a);
    json_decref(b);
}

static void assert_there(struct port_suite *suite, const char *pk, const char *sk, const char *rest)
{
    assert_item(get(suite, pk, sk), item_of(suite, pk, sk, rest));
}

static void assert_absent(struct port_suite *suite, const char *pk, const char *sk)
{
    struct sl_span have = get(suite, pk, sk);
    if (have.ptr)
        fail_msg("%s/%s should be absent and is %.*s", pk, sk, SL_ARG(have));
}

static void assert_refused(struct sl_result result, const char *code)
{
    assert_int_equal(result.status, SL_REJECT);
    assert_non_null(result.code);
    assert_non_null(result.text);
    assert_string_equal(result.code, code);
}

/* ---- one operation ---- */

static void writes_are_read_back(struct port_suite *suite)
{
    assert_absent(suite, "plain", "1");
    put(suite, "plain", "1", "\"a\":" S("x") ",\"n\":" N("12.5"));
    assert_there(suite, "plain", "1", "\"a\":" S("x") ",\"n\":" N("12.5"));
    put(suite, "plain", "1", "\"b\":{\"BOOL\":true}");
    assert_there(suite, "plain", "1", "\"b\":{\"BOOL\":true}");
    struct sl_table_op removal = {.verb = SL_TABLE_DELETE, .key = key_of(suite, "plain", "1")};
    assert_ok(run(suite, removal));
    assert_absent(suite, "plain", "1");
    assert_ok(run(suite, removal)); /* of an absent item: success */
}

static void every_type_survives(struct port_suite *suite)
{
    const char *rest = "\"s\":" S("\\u00e4\\\"\\\\\\n\\ud83d\\ude00") ",\"n\":" N(
        "-0.00123") ",\"b\":{\"B\":\"AP8B\"},"
                    "\"t\":{\"BOOL\":false},\"z\":{\"NULL\":true},\"l\":{\"L\":[" S("a") "," N(
                        "1") ",{\"L\":[]}]},"
                             "\"m\":{\"M\":{\"k\":" S(
                                 "v") ",\"deep\":{\"M\":{}}}},\"ss\":{\"SS\":[\"only\"]},"
                                      "\"ns\":{\"NS\":[\"7\"]},\"bs\":{\"BS\":[\"AQ==\"]},\"\\u20ac "
                                      "\\\"x\":" S("") ",\"e\":{\"S\":\"\"}";
    put(suite, "types", "1", rest);
    assert_there(suite, "types", "1", rest);
}

static struct sl_result tested_put(struct port_suite *suite, const struct sl_test *tests, size_t n, bool any)
{
    return run(suite,
               (struct sl_table_op){.verb = SL_TABLE_PUT,
                                    .key = key_of(suite, "tested", "1"),
                                    .item = item_of(suite, "tested", "1", "\"n\":" N("5") ",\"s\":" S("m")),
                                    .tests = tests,
                                    .n_tests = n,
                                    .any_test = any,
                                    .want_item = true});
}

static void each_test_holds_when_it_should(struct port_suite *suite)
{
    const struct {
        struct sl_test test;
        bool holds;
    } cases[] = {
        {{SL_ABSENT, SL_LIT("gone"), {NULL, 0}}, true},   {{SL_ABSENT, SL_LIT("n"), {NULL, 0}}, false},
        {{SL_PRESENT, SL_LIT("n"), {NULL, 0}}, true},     {{SL_PRESENT, SL_LIT("gone"), {NULL, 0}}, false},
        {{SL_EQ, SL_LIT("n"), SL_LIT(N("5.0"))}, true},   {{SL_EQ, SL_LIT("n"), SL_LIT(N("6"))}, false},
        {{SL_EQ, SL_LIT("n"), SL_LIT(S("5"))}, false},    {{SL_EQ, SL_LIT("gone"), SL_LIT(N("5"))}, false},
        {{SL_NE, SL_LIT("n"), SL_LIT(N("6"))}, true},     {{SL_NE, SL_LIT("n"), SL_LIT(N("5"))}, false},
        {{SL_NE, SL_LIT("gone"), SL_LIT(N("5"))}, false}, {{SL_LT, SL_LIT("n"), SL_LIT(N("10"))}, true},
        {{SL_LT, SL_LIT("n"), SL_LIT(N("5"))}, false},    {{SL_LT, SL_LIT("gone"), SL_LIT(N("5"))}, false},
        {{SL_LE, SL_LIT("n"), SL_LIT(N("5"))}, true},     {{SL_GT, SL_LIT("n"), SL_LIT(N("4.999"))}, true},
        {{SL_GT, SL_LIT("n"), SL_LIT(N("5"))}, false},    {{SL_LT, SL_LIT("s"), SL_LIT(S("ma"))}, true},
        {{SL_GT, SL_LIT("s"), SL_LIT(S("Z"))}, true},     {{SL_LT, SL_LIT("s"), SL_LIT(N("9"))}, false},
    };
    put(suite, "tested", "1", "\"n\":" N("5") ",\"s\":" S("m"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_result result = tested_put(suite, &cases[i].test, 1, false);
        if (cases[i].holds != (result.status == SL_OK))
            fail_msg("test %zu: status %d", i, (int)result.status);
        assert_int_equal(result.condition_failed, !cases[i].holds);
        if (!cases[i].holds)
            assert_item(result.item, item_of(suite, "tested", "1", "\"n\":" N("5") ",\"s\":" S("m")));
    }
}

static void tests_are_joined(struct port_suite *suite)
{
    const struct sl_test tests[] = {{SL_EQ, SL_LIT("n"), SL_LIT(N("5"))},
                                    {SL_EQ, SL_LIT("s"), SL_LIT(S("other"))},
                                    {SL_ABSENT, SL_LIT("x"), {NULL, 0}}};
    put(suite, "tested", "1", "\"n\":" N("5") ",\"s\":" S("m"));
    assert_refused(tested_put(suite, tests, 3, false), "ConditionalCheckFailedException");
    assert_ok(tested_put(suite, tests, 3, true));
    assert_refused(tested_put(suite, tests + 1, 1, true), "ConditionalCheckFailedException");
}

static void a_failed_condition_returns_the_item_or_none(struct port_suite *suite)
{
    const struct sl_test present = {SL_PRESENT, SL_LIT("PK"), {NULL, 0}};
    struct sl_table_op op = {.verb = SL_TABLE_DELETE,
                             .key = key_of(suite, "nobody", "1"),
                             .tests = &present,
                             .n_tests = 1,
                             .want_item = true};
    struct sl_result result = run(suite, op);
    assert_true(result.condition_failed);
    assert_null(result.item.ptr);
    put(suite, "nobody", "1", "");
    assert_ok(run(suite, op));
    assert_absent(suite, "nobody", "1");
}

static struct sl_result update(struct port_suite *suite, const char *pk, const struct sl_set *sets, size_t n)
{
    return run(suite, (struct sl_table_op){
                          .verb = SL_TABLE_UPDATE, .key = key_of(suite, pk, "1"), .sets = sets, .n_sets = n});
}

static void updates_set_add_and_unset(struct port_suite *suite)
{
    const struct sl_set sets[] = {{SL_SET, SL_LIT("a"), SL_LIT(S("x"))},
                                  {SL_ADD, SL_LIT("n"), SL_LIT(N("2.5"))},
                                  {SL_UNSET, SL_LIT("old"), {NULL, 0}},
                                  {SL_SET, SL_LIT("size"), SL_LIT(N("1"))}}; /* a reserved word */
    assert_ok(update(suite, "updated", sets, 4));                            /* makes the item */
    assert_there(suite, "updated", "1", "\"a\":" S("x") ",\"n\":" N("2.5") ",\"size\":" N("1"));
    put(suite, "updated", "1", "\"old\":" S("o") ",\"n\":" N("-1"));
    assert_ok(update(suite, "updated", sets, 4));
    assert_there(suite, "updated", "1", "\"a\":" S("x") ",\"n\":" N("1.5") ",\"size\":" N("1"));
}

static void sums_are_exact(struct port_suite *suite)
{
    const struct sl_set big = {SL_ADD, SL_LIT("n"), SL_LIT(N("12345678901234567890123456789012345678"))};
    const struct sl_set tiny = {SL_ADD, SL_LIT("m"), SL_LIT(N("0.1"))};
    assert_ok(update(suite, "sums", &big, 1));
    assert_ok(update(suite, "sums", &big, 1));
    for (int i = 0; i < 3; i++)
        assert_ok(update(suite, "sums", &tiny, 1));
    assert_there(suite, "sums", "1", "\"n\":" N("24691357802469135780246913578024691356") ",\"m\":" N("0.3"));
}

static void adding_to_text_is_rejected(struct port_suite *suite)
{
    const struct sl_set set = {SL_ADD, SL_LIT("t"), SL_LIT(N("1"))};
    put(suite, "text", "1", "\"t\":" S("x"));
    assert_refused(update(suite, "text", &set, 1), "ValidationException");
    assert_there(suite, "text", "1", "\"t\":" S("x"));
}

static void running_values_only_move_one_way(struct port_suite *suite)
{
    const char *const values[] = {N("5"), N("3"), N("7"), N("7.0"), N("6"), N("-1")};
    const char *const most[] = {"5", "5", "7", "7", "7", "7"}, *const least[] = {"5", "3", "3",
                                                                                 "3", "3", "-1"};
    for (size_t i = 0; i < 6; i++) {
        const struct sl_set sets[] = {{SL_SET_MAX, SL_LIT("most"), sl_span_str(values[i])},
                                      {SL_SET_MIN, SL_LIT("least"), sl_span_str(values[i])},
                                      {SL_ADD, SL_LIT("n"), SL_LIT(N("1"))}};
        assert_ok(update(suite, "running", sets, 3));
        const char *rest = sl_arena_printf(
            suite->call.arena, "\"most\":{\"N\":\"%s\"},\"least\":{\"N\":\"%s\"},\"n\":{\"N\":\"%zu\"}",
            most[i], least[i], i + 1);
        assert_there(suite, "running", "1", rest);
    }
}

static void running_values_heed_tests(struct port_suite *suite)
{
    const struct sl_set set = {SL_SET_MAX, SL_LIT("most"), SL_LIT(N("3"))};
    const struct sl_test open = {SL_ABSENT, SL_LIT("closed"), {NULL, 0}};
    struct sl_table_op op = {.verb = SL_TABLE_UPDATE,
                             .key = key_of(suite, "heeding", "1"),
                             .sets = &set,
                             .n_sets = 1,
                             .tests = &open,
                             .n_tests = 1};
    assert_ok(run(suite, op));
    put(suite, "heeding", "1", "\"most\":" N("9"));
    assert_ok(run(suite, op)); /* nothing to change, and the test holds */
    put(suite, "heeding", "1", "\"most\":" N("1") ",\"closed\":" S("y"));
    assert_true(run(suite, op).condition_failed);
    put(suite, "heeding", "1", "\"most\":" N("9") ",\"closed\":" S("y"));
    assert_true(run(suite, op).condition_failed);
    put(suite, "heeding", "1", "\"most\":" S("text"));
    assert_refused(run(suite, op), "ValidationException");
}

/* ---- several ---- */

static struct sl_table_op put_op(struct port_suite *suite, const char *pk, const char *sk, const char *rest)
{
    return (struct sl_table_op){
        .verb = SL_TABLE_PUT, .key = key_of(suite, pk, sk), .item = item_of(suite, pk, sk, rest)};
}

static void apply_all(struct port_suite *suite, const struct sl_table_op *ops, size_t n)
{
    struct sl_result *results = sl_arena_zalloc(suite->call.arena, n * sizeof(*results));
    suite->table->apply(suite->table, ops, n, results, &suite->call);
    for (size_t i = 0; i < n; i++)
        assert_ok(results[i]);
}

/* The last of two writes of one key in one call wins, and no request holds both. */
static void writes_of_one_key_keep_their_order(struct port_suite *suite)
{
    const struct sl_set one = {SL_ADD, SL_LIT("n"), SL_LIT(N("1"))};
    struct sl_table_op remove = {.verb = SL_TABLE_DELETE, .key = key_of(suite, "order", "b")};
    struct sl_table_op add = {
        .verb = SL_TABLE_UPDATE, .key = key_of(suite, "order", "c"), .sets = &one, .n_sets = 1};
    const struct sl_table_op ops[] = {
        put_op(suite, "order", "a", "\"v\":" N("1")),
        put_op(suite, "order", "b", "\"v\":" N("1")),
        add,
        put_op(suite, "order", "a", "\"v\":" N("2")),
        remove,
        put_op(suite, "order", "c", "\"n\":" N("10")),
        add,
        put_op(suite, "order", "a", "\"v\":" N("3")),
        add,
    };
    apply_all(suite, ops, sizeof(ops) / sizeof(ops[0]));
    assert_there(suite, "order", "a", "\"v\":" N("3"));
    assert_absent(suite, "order", "b");
    assert_there(suite, "order", "c", "\"n\":" N("12"));
}

/* More than any batch holds, half of them taken away again; then read in one call, each key twice. */
static void batches_of_any_size_are_written_and_read(struct port_suite *suite)
{
    enum { COUNT = 130 };
    struct sl_table_op ops[2 * COUNT];
    struct sl_result results[2 * COUNT];
    for (int i = 0; i < COUNT; i++) {
        const char *sk = sl_arena_printf(suite->call.arena, "%d", i);
        ops[i] = put_op(suite, "batch", sk, sl_arena_printf(suite->call.arena, "\"v\":{\"N\":\"%d\"}", i));
    }
    apply_all(suite, ops, COUNT);
    for (int i = 0; i < COUNT; i += 2)
        ops[i].verb = SL_TABLE_DELETE;
    apply_all(suite, ops, COUNT);
    for (int i = 0; i < 2 * COUNT; i++)
        ops[i] = (struct sl_table_op){
            .verb = SL_TABLE_GET,
            .key = key_of(suite, "batch", sl_arena_printf(suite->call.arena, "%d", i / 2))};
    suite->table->apply(suite->table, ops, 2 * COUNT, results, &suite->call);
    for (int i = 0; i < 2 * COUNT; i++) {
        assert_ok(results[i]);
        if (i / 2 % 2 == 0)
            assert_null(results[i].item.ptr);
        else
            assert_item(results[i].item,
                        item_of(suite, "batch", sl_arena_printf(suite->call.arena, "%d", i / 2),
                                sl_arena_printf(suite->call.arena, "\"v\":{\"N\":\"%d\"}", i / 2)));
    }
}

static void one_bad_item_spoils_no_other(struct port_suite *suite)
{
    enum { COUNT = 30, BAD = 17 };
    struct sl_table_op ops[COUNT];
    struct sl_result results[COUNT];
    for (int i = 0; i < COUNT; i++)
        ops[i] = put_op(suite, "spoilt", sl_arena_printf(suite->call.arena, "%d", i),
                        i == BAD ? "\"v\":{\"N\":\"no number\"}" : "\"v\":" N("1"));
    suite->table->apply(suite->table, ops, COUNT, results, &suite->call);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(results[i].status, i == BAD ? SL_REJECT : SL_OK);
    assert_string_equal(results[BAD].code, "ValidationException");
    assert_there(suite, "spoilt", "16", "\"v\":" N("1"));
    assert_absent(suite, "spoilt", "17");
    assert_there(suite, "spoilt", "18", "\"v\":" N("1"));
}

static void numbers_are_keys_by_value(struct port_suite *suite)
{
    const struct sl_span name = sl_span_str(suite->number_table);
    struct sl_table_op ops[] = {
        {.verb = SL_TABLE_PUT,
         .table = name,
         .key = SL_LIT("{\"PK\":{\"N\":\"1\"}}"),
         .item = SL_LIT("{\"PK\":{\"N\":\"1\"},\"v\":{\"S\":\"a\"}}")},
        {.verb = SL_TABLE_PUT,
         .table = name,
         .key = SL_LIT("{\"PK\":{\"N\":\"1.0\"}}"),
         .item = SL_LIT("{\"PK\":{\"N\":\"1.0\"},\"v\":{\"S\":\"b\"}}")},
    };
    struct sl_table_op read = {
        .verb = SL_TABLE_GET, .table = name, .key = SL_LIT("{\"PK\":{\"N\":\"1e0\"}}")};
    apply_all(suite, ops, 2);
    struct sl_result result = run(suite, read);
    assert_ok(result);
    json_t *item = json_loadb(result.item.ptr, result.item.len, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(json_object_get(item, "v"), "S")), "b");
    json_decref(item);
}

/* ---- groups ---- */

/* All of a group, before anything of it was sent. */
static void assert_group_unsent(const struct sl_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(results[i].status, SL_REJECT);
        assert_true(results[i].not_sent && results[i].code && results[i].text);
        assert_false(results[i].condition_failed);
    }
}

static void a_group_writes_all(struct port_suite *suite)
{
    if (!(suite->table->can & SL_TABLE_GROUPS))
        skip();
    const struct sl_set one = {SL_ADD, SL_LIT("n"), SL_LIT(N("1"))};
    const struct sl_test absent = {SL_ABSENT, SL_LIT("PK"), {NULL, 0}};
    put(suite, "group", "gone", "");
    struct sl_table_op ops[] = {
        put_op(suite, "group", "new", "\"v\":" N("1")),
        {.verb = SL_TABLE_UPDATE, .key = key_of(suite, "group", "sum"), .sets = &one, .n_sets = 1},
        {.verb = SL_TABLE_DELETE, .key = key_of(suite, "group", "gone")},
        {.verb = SL_TABLE_CHECK, .key = key_of(suite, "group", "never"), .tests = &absent, .n_tests = 1},
        {.verb = SL_TABLE_PUT,
         .table = sl_span_str(suite->side_table),
         .key = SL_LIT("{\"PK\":{\"S\":\"side\"}}"),
         .item = SL_LIT("{\"PK\":{\"S\":\"side\"},\"v\":{\"N\":\"1\"}}")},
    };
    for (size_t i = 0; i < 5; i++)
        ops[i].group = 7;
    apply_all(suite, ops, 5);
    assert_there(suite, "group", "new", "\"v\":" N("1"));
    assert_there(suite, "group", "sum", "\"n\":" N("1"));
    assert_absent(suite, "group", "gone");
    struct sl_result side =
        run(suite, (struct sl_table_op){.verb = SL_TABLE_GET, .table = ops[4].table, .key = ops[4].key});
    assert_ok(side);
    assert_item(side.item, ops[4].item);
}

static void a_refused_group_writes_nothing(struct port_suite *suite)
{
    if (!(suite->table->can & SL_TABLE_GROUPS))
        skip();
    const struct sl_test absent = {SL_ABSENT, SL_LIT("PK"), {NULL, 0}};
    put(suite, "none", "there", "\"v\":" N("9"));
    struct sl_table_op ops[] = {
        put_op(suite, "none", "a", ""),
        put_op(suite, "none", "there", "\"v\":" N("1")),
        put_op(suite, "none", "b", ""),
        put_op(suite, "none", "c", ""),
    };
    struct sl_result results[4];
    for (size_t i = 0; i < 3; i++)
        ops[i].group = 1;
    ops[3].group = 2; /* another group, which succeeds */
    ops[1].tests = &absent;
    ops[1].n_tests = 1;
    ops[1].want_item = true;
    suite->table->apply(suite->table, ops, 4, results, &suite->call);
    assert_refused(results[0], "TransactionCanceled");
    assert_refused(results[1], "ConditionalCheckFailed");
    assert_refused(results[2], "TransactionCanceled");
    assert_ok(results[3]);
    assert_true(results[1].condition_failed);
    assert_false(results[0].condition_failed);
    assert_item(results[1].item, item_of(suite, "none", "there", "\"v\":" N("9")));
    assert_absent(suite, "none", "a");
    assert_there(suite, "none", "there", "\"v\":" N("9"));
    assert_there(suite, "none", "c", "");
}

static void a_group_has_a_hundred_at_most(struct port_suite *suite)
{
    if (!(suite->table->can & SL_TABLE_GROUPS))
        skip();
    enum { COUNT = 101 };
    struct sl_table_op ops[COUNT];
    struct sl_result results[COUNT];
    for (int i = 0; i < COUNT; i++) {
        ops[i] = put_op(suite, "hundred", sl_arena_printf(suite->call.arena, "%d", i), "");
        ops[i].group = 1;
    }
    suite->table->apply(suite->table, ops, COUNT, results, &suite->call);
    for (int i = 0; i < COUNT; i++)
        assert_refused(results[i], "ValidationException");
    assert_group_unsent(results, COUNT);
    assert_absent(suite, "hundred", "0");
    apply_all(suite, ops, COUNT - 1);
    assert_there(suite, "hundred", "99", "");
}

static void a_group_takes_no_key_twice_and_no_running_value(struct port_suite *suite)
{
    if (!(suite->table->can & SL_TABLE_GROUPS))
        skip();
    const struct sl_set most = {SL_SET_MAX, SL_LIT("n"), SL_LIT(N("1"))};
    struct sl_table_op twice[] = {put_op(suite, "twice", "a", ""), put_op(suite, "twice", "a", "")};
    struct sl_table_op running[] = {
        put_op(suite, "twice", "b", ""),
        {.verb = SL_TABLE_UPDATE, .key = key_of(suite, "twice", "c"), .sets = &most, .n_sets = 1}};
    struct sl_result results[2];
    twice[0].group = twice[1].group = running[0].group = running[1].group = 1;
    suite->table->apply(suite->table, twice, 2, results, &suite->call);
    assert_group_unsent(results, 2);
    suite->table->apply(suite->table, running, 2, results, &suite->call);
    assert_group_unsent(results, 2);
    assert_refused(results[0], "TransactionCanceled");
    assert_refused(results[1], "ValidationException");
    assert_absent(suite, "twice", "a");
    assert_absent(suite, "twice", "b");
}

/* ---- limits ---- */

/* An item of exactly `bytes` by DynamoDB's formula: PK, SK, v and their values. */
static struct sl_table_op item_of_size(struct port_suite *suite, size_t bytes)
{
    size_t fixed = strlen("PK") + strlen("large") + strlen("SK") + strlen("1") + strlen("v");
    char *text = sl_arena_alloc(suite->call.arena, bytes + 1);
    memset(text, 'x', bytes - fixed);
    text[bytes - fixed] = '\0';
    return put_op(suite, "large", "1", sl_arena_printf(suite->call.arena, "\"v\":{\"S\":\"%s\"}", text));
}

static void items_have_400_KB_at_most(struct port_suite *suite)
{
    const size_t limit = suite->table->max_item_bytes;
    assert_int_equal(limit, 400 * 1024);
    assert_ok(run(suite, item_of_size(suite, limit - 1)));
    assert_ok(run(suite, item_of_size(suite, limit)));
    assert_refused(run(suite, item_of_size(suite, limit + 1)), "ValidationException");
    assert_int_equal(get(suite, "large", "1").len, item_of_size(suite, limit).item.len);
}

/* Control characters are one byte of the item and six of its JSON. */
static void an_item_is_measured_not_its_text(struct port_suite *suite)
{
    enum { COUNT = 380 * 1024 };
    struct sl_buffer text;
    sl_buffer_init(&text, 7 * COUNT);
    sl_buffer_add_str(&text, "\"v\":{\"S\":\"");
    for (size_t i = 0; i < COUNT; i++)
        sl_buffer_add_str(&text, "\\u0001");
    sl_buffer_add_str(&text, "\"}");
    sl_buffer_add_char(&text, '\0');
    put(suite, "control", "1", text.ptr);
    assert_true(get(suite, "control", "1").len > 6 * COUNT);
    sl_buffer_clean_up(&text);
}

static void keys_have_limits_of_their_own(struct port_suite *suite)
{
    char pk[2050], sk[1026];
    memset(pk, 'p', sizeof(pk));
    memset(sk, 's', sizeof(sk));
    pk[2048] = sk[1024] = '\0';
    put(suite, pk, sk, "");
    assert_there(suite, pk, sk, "");
    pk[2048] = 'p';
    pk[2049] = '\0';
    assert_int_equal(run(suite, put_op(suite, pk, "1", "")).status, SL_REJECT);
    assert_int_equal(run(suite, put_op(suite, "", "1", "")).status, SL_REJECT);
}

static void nothing_is_begun_without_time(struct port_suite *suite)
{
    struct sl_call late = {suite->call.arena, 0};
    struct sl_table_op op = put_op(suite, "late", "1", "");
    struct sl_result result;
    if (strcmp(suite->name, "sqlite") == 0)
        skip(); /* a file has no request that could be late */
    suite->table->apply(suite->table, &op, 1, &result, &late);
    assert_int_equal(result.status, SL_RETRY);
    assert_true(result.not_sent);
    assert_absent(suite, "late", "1");
}

static void no_operation_is_fine(struct port_suite *suite)
{
    suite->table->apply(suite->table, NULL, 0, NULL, &suite->call);
}

const struct port_case port_table_cases[] = {
    {"writes_are_read_back", writes_are_read_back},
    {"every_type_survives", every_type_survives},
    {"each_test_holds_when_it_should", each_test_holds_when_it_should},
    {"tests_are_joined", tests_are_joined},
    {"a_failed_condition_returns_the_item_or_none", a_failed_condition_returns_the_item_or_none},
    {"updates_set_add_and_unset", updates_set_add_and_unset},
    {"sums_are_exact", sums_are_exact},
    {"adding_to_text_is_rejected", adding_to_text_is_rejected},
    {"running_values_only_move_one_way", running_values_only_move_one_way},
    {"running_values_heed_tests", running_values_heed_tests},
    {"writes_of_one_key_keep_their_order", writes_of_one_key_keep_their_order},
    {"batches_of_any_size_are_written_and_read", batches_of_any_size_are_written_and_read},
    {"one_bad_item_spoils_no_other", one_bad_item_spoils_no_other},
    {"numbers_are_keys_by_value", numbers_are_keys_by_value},
    {"a_group_writes_all", a_group_writes_all},
    {"a_refused_group_writes_nothing", a_refused_group_writes_nothing},
    {"a_group_has_a_hundred_at_most", a_group_has_a_hundred_at_most},
    {"a_group_takes_no_key_twice_and_no_running_value", a_group_takes_no_key_twice_and_no_running_value},
    {"items_have_400_KB_at_most", items_have_400_KB_at_most},
    {"an_item_is_measured_not_its_text", an_item_is_measured_not_its_text},
    {"keys_have_limits_of_their_own", keys_have_limits_of_their_own},
    {"nothing_is_begun_without_time", nothing_is_begun_without_time},
    {"no_operation_is_fine", no_operation_is_fine},
    {NULL, NULL},
};
