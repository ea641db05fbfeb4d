/* What values are to every table: which are equal, and in which order, in every spelling; and that text comes
 * back as it was put. The local table and the service answer alike. */
#include "tests/support/port_suite.h"

#include "base/json.h"
#include "base/json_walk.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_SPELLINGS 8

/* One value in all its spellings, as attribute value JSON. The values of one type are in order. */
struct spelled {
    const char *type;
    const char *of[MOST_SPELLINGS];
};

#define DIGITS_38 "12345678901234567890123456789012345678"
#define ZEROS_30  "000000000000000000000000000000"

static const struct spelled values[] = {
    {"N", {"-1E+125", "-10e124", "-0.1E126"}},
    {"N", {"-2", "-2.0", "-0.2E1", "-2e0", "-02"}},
    {"N", {"-0.1", "-.1", "-1e-1"}},
    {"N", {"0", "-0", "0.0", "0e5", "00", "-0.000", "+0"}},
    {"N", {"1e-130", "0.1E-129"}},
    {"N", {"1", "1.0", "+1", "1e0", "0.1e1", "01.000"}},
    {"N", {"1.5", "15e-1", "1.50"}},
    {"N", {"300", "3E2", "0.3e3", "300.00", "3e+2"}},
    {"N", {"4" ZEROS_30, "4E+30", "0.4E31", "40e29", "4" ZEROS_30 ".0"}},
    {"N", {DIGITS_38, "1.2345678901234567890123456789012345678E37", DIGITS_38 ".0", "0" DIGITS_38}},
    {"N", {"99999999999999999999999999999999999999", "9.9999999999999999999999999999999999999e37"}},
    {"S", {"\\u0000"}},
    {"S", {"\\u0000\\u0000"}},
    {"S", {"\\n", "\\u000a", "\\u000A"}},
    {"S", {"\\\"", "\\u0022"}},
    {"S", {"/", "\\/", "\\u002f"}},
    {"S", {"a", "\\u0061"}},
    {"S", {"a\\u0000", "\\u0061\\u0000"}},
    {"S", {"a\\u0000b"}},
    {"S", {"ab", "a\\u0062"}},
    {"S", {"\xC3\xA4", "\\u00e4", "\\u00E4"}},
    {"S", {"\xEE\x80\x80", "\\ue000"}},
    {"S", {"\xEF\xBF\xBE", "\\ufffe"}},
    {"S", {"\xF0\x9F\x98\x80", "\\ud83d\\ude00", "\\uD83D\\uDE00"}},
    {"S", {"\xF4\x8F\xBF\xBF", "\\udbff\\udfff"}},
    {"B", {""}},
    {"B", {"AA==", "\\u0041A=="}},
    {"B", {"AAA=", "AA\\u0041="}},
    {"B", {"AQ=="}},
    {"B", {"Pz8/", "Pz8\\/", "Pz8\\u002f"}},
    {"B", {"Pz8/Pz8/"}},
    {"B", {"YWJj"}},
    {"B", {"+/8=", "+\\/8=", "\\u002b/8="}},
    {"B", {"//8=", "\\/\\/8="}},
};

enum { VALUES = sizeof(values) / sizeof(values[0]) };

static size_t spellings(const struct spelled *v)
{
    size_t n = 0;
    while (n < MOST_SPELLINGS && v->of[n])
        n++;
    return n;
}

/* One of its spellings, another one each time. */
static struct sl_span spell(struct port_suite *suite, const struct spelled *v)
{
    static unsigned turn;
    return sl_span_str(
        sl_arena_printf(suite->call.arena, "{\"%s\":\"%s\"}", v->type, v->of[turn++ % spellings(v)]));
}

static struct sl_result run(struct port_suite *suite, struct sl_table_op op)
{
    struct sl_result result;
    suite->table->apply(suite->table, &op, 1, &result, &suite->call);
    return result;
}

static void assert_ok(struct sl_result result, const char *what)
{
    if (result.status != SL_OK)
        fail_msg("%s: status %d, %s: %s", what, (int)result.status, result.code, result.text);
}

static bool holds_text(const struct port_suite *suite, const char *text)
{
    return !suite->lacks_nul ||
           !(strstr(text, "\\u0000") || strstr(text, "\\ud800") || strstr(text, "\\udc00"));
}

/* Puts it, and returns true; a text that the table cannot hold is refused. */
static bool put_or_refused(struct port_suite *suite, struct sl_table_op op, const char *text)
{
    bool is_held = holds_text(suite, text);
    struct sl_result result = run(suite, op);
    if (is_held)
        assert_ok(result, text);
    else if (result.status != SL_REJECT || strcmp(result.code, "UnfitText") != 0)
        fail_msg("%s: status %d, %s", text, (int)result.status, result.text ? result.text : "");
    return is_held;
}

static const char *key_text(struct port_suite *suite, const char *sk)
{
    return sl_arena_printf(suite->call.arena, "{\"PK\":{\"S\":\"values\"},\"SK\":{\"S\":\"%s\"}}", sk);
}

static struct sl_table_op put_of(struct port_suite *suite, const char *sk, const char *rest)
{
    const char *key = key_text(suite, sk);
    const char *item = sl_arena_printf(suite->call.arena, "%.*s,%s}", (int)strlen(key) - 1, key, rest);
    return (struct sl_table_op){.verb = SL_TABLE_PUT, .key = sl_span_str(key), .item = sl_span_str(item)};
}

/* ---- conditions ---- */

static bool holds(enum sl_test_verb verb, int order, bool same_type)
{
    switch (verb) {
    case SL_EQ:
        return same_type && order == 0;
    case SL_NE:
        return !same_type || order != 0;
    case SL_LT:
        return same_type && order < 0;
    case SL_LE:
        return same_type && order <= 0;
    default:
        return same_type && order > 0;
    }
}

static void compare(struct port_suite *suite, size_t have, size_t wanted)
{
    static const enum sl_test_verb verbs[] = {SL_EQ, SL_NE, SL_LT, SL_LE, SL_GT};
    static unsigned turn;
    struct sl_table_op op = put_of(suite, "compared", "\"other\":{\"BOOL\":true}");
    bool same_type = strcmp(values[have].type, values[wanted].type) == 0;
    enum sl_test_verb verb = verbs[turn++ % 5];
    struct sl_test test = {verb, SL_LIT("v"), spell(suite, &values[wanted])};
    op = (struct sl_table_op){.verb = SL_TABLE_UPDATE, .key = op.key, .tests = &test, .n_tests = 1};
    const struct sl_set set = {SL_SET, SL_LIT("other"), SL_LIT("{\"BOOL\":true}")};
    op.sets = &set;
    op.n_sets = 1;
    if (turn % 2) { /* a condition that goes with a whole item: it stays what it is */
        op = put_of(suite, "compared",
                    sl_arena_printf(suite->call.arena, "\"v\":{\"%s\":\"%s\"}", values[have].type,
                                    values[have].of[0]));
        op.tests = &test;
        op.n_tests = 1;
    }
    struct sl_result result = run(suite, op);
    int order = (have > wanted) - (have < wanted);
    if ((result.status == SL_OK) != holds(verb, order, same_type) ||
        (result.status != SL_OK && !result.condition_failed))
        fail_msg("%s %s, test %d, %.*s: status %d %s", values[have].type, values[have].of[0], (int)verb,
                 SL_ARG(test.value), (int)result.status, result.text ? result.text : "");
}

/* Each value against itself in every spelling, its neighbours, and some others. */
static void values_are_compared_by_value(struct port_suite *suite)
{
    for (size_t have = 0; have < VALUES; have++) {
        for (size_t i = 0; i < spellings(&values[have]); i++) {
            const char *rest = sl_arena_printf(suite->call.arena, "\"v\":{\"%s\":\"%s\"}", values[have].type,
                                               values[have].of[i]);
            if (!put_or_refused(suite, put_of(suite, "compared", rest), rest))
                continue;
            for (size_t k = 0; k < 3; k++)
                compare(suite, have, have);
            for (size_t k = have ? have - 1 : 0; k < VALUES && k <= have + 1; k++)
                compare(suite, have, k);
            compare(suite, have, (have * 7 + i * 5) % VALUES);
        }
    }
}

/* Sets and maps have no order, lists have one; numbers are compared by value in all of them. */
static void containers_are_compared_by_value(struct port_suite *suite)
{
    static const struct {
        const char *have, *wanted;
        bool are_equal;
    } cases[] = {
        {"{\"NS\":[\"1\",\"4E+30\"]}", "{\"NS\":[\"4" ZEROS_30 "\",\"1.0\"]}", true},
        {"{\"NS\":[\"1\",\"2\"]}", "{\"NS\":[\"1\"]}", false},
        {"{\"SS\":[\"a\",\"b\\u0000\"]}", "{\"SS\":[\"b\\u0000\",\"\\u0061\"]}", true},
        {"{\"SS\":[\"a\"]}", "{\"SS\":[\"a\\u0000\"]}", false},
        {"{\"BS\":[\"AA==\",\"+/8=\"]}", "{\"BS\":[\"\\u002b\\/8=\",\"AA==\"]}", true},
        {"{\"L\":[{\"N\":\"1\"},{\"S\":\"x\"}]}", "{\"L\":[{\"N\":\"1.0\"},{\"S\":\"\\u0078\"}]}", true},
        {"{\"L\":[{\"N\":\"1\"},{\"S\":\"x\"}]}", "{\"L\":[{\"S\":\"x\"},{\"N\":\"1\"}]}", false},
        {"{\"M\":{\"a\":{\"N\":\"0\"},\"b\\u0000\":{\"BOOL\":true}}}",
         "{\"M\":{\"b\\u0000\":{\"BOOL\":true},\"\\u0061\":{\"N\":\"-0.0\"}}}", true},
        {"{\"M\":{\"a\":{\"N\":\"1\"}}}", "{\"M\":{\"b\":{\"N\":\"1\"}}}", false},
        {"{\"BOOL\":true}", "{\"BOOL\":true}", true},
        {"{\"BOOL\":true}", "{\"BOOL\":false}", false},
        {"{\"NULL\":true}", "{\"NULL\":true}", true},
        {"{\"NULL\":true}", "{\"BOOL\":true}", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *rest = sl_arena_printf(suite->call.arena, "\"v\":%s", cases[i].have);
        if (!put_or_refused(suite, put_of(suite, "container", rest), rest))
            continue;
        struct sl_table_op op = put_of(suite, "container", rest);
        struct sl_test test = {SL_EQ, SL_LIT("v"), sl_span_str(cases[i].wanted)};
        op.tests = &test;
        op.n_tests = 1;
        struct sl_result result = run(suite, op);
        if ((result.status == SL_OK) != cases[i].are_equal || result.condition_failed == cases[i].are_equal)
            fail_msg("%s, %s: status %d %s", cases[i].have, cases[i].wanted, (int)result.status,
                     result.text ? result.text : "");
    }
}

/* ---- keys ---- */

/* Keys that are numbers are one item in every spelling, also when item and key are spelled differently. */
static struct sl_table_op number_op(struct port_suite *suite, enum sl_table_verb verb, const char *number)
{
    const char *key = sl_arena_printf(suite->call.arena, "{\"PK\":{\"N\":\"%s\"}}", number);
    return (struct sl_table_op){
        .verb = verb, .table = sl_span_str(suite->number_table), .key = sl_span_str(key)};
}

static void keys_are_equal_by_value(struct port_suite *suite)
{
    struct sl_arena *arena = suite->call.arena;
    for (size_t v = 0; v < VALUES && strcmp(values[v].type, "N") == 0; v++) {
        size_t n = spellings(&values[v]);
        for (size_t i = 0; i < n; i++) {
            const char *of_item = values[v].of[(i + 1) % n], *mark = sl_arena_printf(arena, "%zu-%zu", v, i);
            struct sl_table_op op = number_op(suite, SL_TABLE_PUT, values[v].of[i]);
            op.item = sl_span_str(
                sl_arena_printf(arena, "{\"PK\":{\"N\":\"%s\"},\"v\":{\"S\":\"%s\"}}", of_item, mark));
            assert_ok(run(suite, op), values[v].of[i]);
            struct sl_result result = run(suite, number_op(suite, SL_TABLE_GET, values[v].of[(i + 2) % n]));
            assert_ok(result, values[v].of[i]);
            assert_span_is(sl_json_find(result.item, "v.S"), sl_arena_printf(arena, "\"%s\"", mark));
        }
    }
}

static void texts_are_keys(struct port_suite *suite)
{
    struct sl_arena *arena = suite->call.arena;
    for (size_t v = 0; v < VALUES; v++)
        for (size_t i = 0; strcmp(values[v].type, "S") == 0 && i < spellings(&values[v]); i++) {
            const char *mark = sl_arena_printf(arena, "\"v\":{\"S\":\"%zu\"}", v);
            (void)put_or_refused(suite, put_of(suite, values[v].of[i], mark), values[v].of[i]);
        }
    for (size_t v = 0; v < VALUES; v++)
        for (size_t i = 0; strcmp(values[v].type, "S") == 0 && i < spellings(&values[v]); i++) {
            struct sl_table_op op = put_of(suite, values[v].of[i], "\"v\":{\"S\":\"\"}");
            if (!holds_text(suite, values[v].of[i]))
                continue;
            op.verb = SL_TABLE_GET;
            struct sl_result result = run(suite, op);
            assert_ok(result, values[v].of[i]);
            assert_span_is(sl_json_find(result.item, "v.S"), sl_arena_printf(arena, "\"%zu\"", v));
        }
}

static void an_item_that_is_not_its_key_is_refused(struct port_suite *suite)
{
    struct sl_table_op op = put_of(suite, "a\\u0000", "\"v\":{\"S\":\"x\"}");
    const struct sl_set set = {SL_SET, SL_LIT("PK"), SL_LIT("{\"S\":\"another\"}")};
    struct sl_table_op update = {.verb = SL_TABLE_UPDATE, .key = op.key, .sets = &set, .n_sets = 1};
    assert_int_not_equal(run(suite, update).status, SL_OK);
}

/* ---- text ---- */

/* The place with the text in it, for each %. */
static const char *fill(struct port_suite *suite, const char *place, const char *text)
{
    struct sl_buffer out;
    sl_buffer_init_in(&out, suite->call.arena, 4096);
    for (; *place; place++)
        if (*place == '%')
            sl_buffer_add_str(&out, text);
        else
            sl_buffer_add_char(&out, *place);
    sl_buffer_add_char(&out, '\0');
    return out.ptr;
}

/* The value of the attribute, its escapes resolved. */
static struct sl_span plain_value(struct port_suite *suite, struct sl_span item, struct sl_span name)
{
    struct sl_json_walk walk = sl_json_walk(item);
    struct sl_span have, value;
    while (sl_json_walk_next(&walk, &have, &value))
        if (sl_json_same(have, name))
            return sl_json_unescape(value, suite->call.arena);
    return sl_span(NULL, 0);
}

/* The attribute is put, something else is updated, and the attribute is read. */
static void put_and_read(struct port_suite *suite, const char *attribute, bool has_order)
{
    struct sl_table_op op = put_of(suite, "text", attribute);
    const struct sl_set set = {SL_ADD, SL_LIT("added"), SL_LIT("{\"N\":\"1\"}")};
    struct sl_table_op update = {.verb = SL_TABLE_UPDATE, .key = op.key, .sets = &set, .n_sets = 1};
    const char *wanted = sl_arena_printf(suite->call.arena, "{%s}", attribute);
    struct sl_json_walk walk = sl_json_walk(sl_span_str(wanted));
    struct sl_span name, value;
    assert_true(sl_json_walk_next(&walk, &name, &value));
    if (!put_or_refused(suite, op, attribute))
        return;
    assert_ok(run(suite, update), attribute);
    op.verb = SL_TABLE_GET;
    struct sl_result result = run(suite, op);
    assert_ok(result, attribute);
    struct sl_span have = plain_value(suite, result.item, name);
    struct sl_span put = sl_json_unescape(value, suite->call.arena);
    if (have.len != put.len || (has_order && !sl_span_eq(have, put)))
        fail_msg("%s: the item is %.*s", attribute, SL_ARG(result.item));
}

/* Names and values come back as they went in; the service stores half a surrogate pair, too. */
static void text_comes_back(struct port_suite *suite)
{
    static const char *const texts[] = {"a\\u0000b",       "\\u0000",   "\\ud800",
                                        "\\udc00\\ud800",  "\\\"\\\\/", "\\udbff\\udfff",
                                        "\\ufffe",         "'{}[]:,",   "\\u0001\\u007f\\u0085\\u2028",
                                        "\\ud800\\u0000x", "{{}}",      "x\\udc00"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put_and_read(suite, fill(suite, "\"v\":{\"S\":\"%\"}", texts[i]), true);
        put_and_read(suite, fill(suite, "\"n%\":{\"N\":\"1\"}", texts[i]), true);
        put_and_read(suite, fill(suite, "\"s\":{\"SS\":[\"%\",\"another\"]}", texts[i]), false);
        put_and_read(suite, fill(suite, "\"m\":{\"M\":{\"n%\":{\"L\":[{\"S\":\"%\"}]}}}", texts[i]), true);
    }
}

const struct port_case port_value_cases[] = {
    {"values_are_compared_by_value", values_are_compared_by_value},
    {"containers_are_compared_by_value", containers_are_compared_by_value},
    {"keys_are_equal_by_value", keys_are_equal_by_value},
    {"texts_are_keys", texts_are_keys},
    {"an_item_that_is_not_its_key_is_refused", an_item_that_is_not_its_key_is_refused},
    {"text_comes_back", text_comes_back},
    {NULL, NULL},
};
