#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/test.h"

#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>

/* The key of every record here. */
#define A KEYS(PK("a"))

/* The attribute "v" of a record whose image holds it. */
static struct sl_value value(struct test_batch *t, const char *json)
{
    char *members = NULL;
    assert_true(asprintf(&members, A NEW("'v':%s"), json) > 0);
    const struct sl_record *r = test_record(t, "INSERT", members, "");
    free(members);
    return sl_record_attribute(r, SL_NEW_IMAGE, SL_LIT("v"));
}

/* Short plain values are read by blocks where enough text follows them, so each is tried with and without. */
static void refused(const char *json, const char *code, const char *why)
{
    static const char *const behind[] = {
        "", ",'w':{'S':'0123456789012345678901234567890123456789012345678901234567890123'}"};
    for (size_t i = 0; i < 2; i++) {
        char *text = NULL;
        struct test_batch t;
        assert_true(asprintf(&text, "[{'eventName':'INSERT','dynamodb':{" A NEW("'v':%s%s") "}}]", json,
                             behind[i]) > 0);
        json_quote(text);
        test_decode_event(&t, sl_span_str(text));
        assert_int_equal(t.status, SL_REJECT);
        assert_string_equal(t.error.code, code);
        if (strcmp(code, "InvalidRecord") == 0)
            assert_true(sl_span_starts(sl_span_str(t.error.text), SL_LIT("record 0: dynamodb.NewImage.v")));
        if (!sl_span_ends(sl_span_str(t.error.text), sl_span_str(why)))
            fail_msg("%s: %s", json, t.error.text);
        test_batch_clean_up(&t);
        free(text);
    }
}

/* Numbers by value in each of their spellings, alone, in sets and lists; texts by text, B and S apart. */
static void values_equal_as_in_dynamodb(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int group; /* equal ones have one number */
    } values[] = {{"{'N':'1'}", 1},
                  {"{'N':'1.0'}", 1},
                  {"{'N':'\\u0031'}", 1},
                  {"{'N':'10e-1'}", 1},
                  {"{'N':'2'}", 2},
                  {"{'N':'-1'}", 3},
                  {"{'N':'0'}", 4},
                  {"{'N':'-0.0'}", 4},
                  {"{'S':'1'}", 5},
                  {"{'S':'\\u0031'}", 5},
                  {"{'S':'1.0'}", 6},
                  {"{'S':''}", 7},
                  {"{'B':'AA=='}", 8},
                  {"{'S':'AA=='}", 9},
                  {"{'BOOL':true}", 10},
                  {"{'BOOL':false}", 11},
                  {"{'NULL':true}", 12},
                  {"{'NS':['1','2']}", 13},
                  {"{'NS':['2','1.0']}", 13},
                  {"{'NS':['1']}", 14},
                  {"{'SS':['1','2']}", 15},
                  {"{'SS':['2','1']}", 15},
                  {"{'L':[{'N':'1'}]}", 16},
                  {"{'L':[{'N':'1.0'}]}", 16},
                  {"{'L':[{'N':'2'}]}", 17},
                  {"{'L':[]}", 18},
                  {"{'M':{}}", 19},
                  {"{'M':{'a':{'N':'1'}}}", 20},
                  {"{'M':{'a':{'N':'1.0'}}}", 20},
                  {"{'M':{'b':{'N':'1'}}}", 21},
                  {"{'M':{'a':{'N':'1'},'b':{'S':'x'}}}", 22},
                  {"{'M':{'b':{'S':'x'},'\\u0061':{'N':'1.0'}}}", 22},
                  {"{'L':[{'N':'1'},{'N':'2'}]}", 23},
                  {"{'L':[{'N':'2'},{'N':'1'}]}", 24},
                  {"{'L':[{'N':'1'},{'N':'1'}]}", 25}, /* one is the beginning of the other */
                  {"{'L':[{'N':'1'},{'N':'1'},{'N':'1'}]}", 26},
                  {"{'L':[{'L':[]}]}", 27},
                  {"{'L':[{'L':[]},{'L':[]}]}", 28}};
    const size_t n = sizeof(values) / sizeof(values[0]);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            struct test_batch one, other;
            bool is_equal = sl_value_equal(value(&one, values[i].text), value(&other, values[k].text));
            if (is_equal != (values[i].group == values[k].group))
                fail_msg("%s and %s", values[i].text, values[k].text);
            test_batch_clean_up(&one);
            test_batch_clean_up(&other);
        }
    assert_true(sl_value_equal((struct sl_value){.type = SL_NONE}, (struct sl_value){.type = SL_NONE}));
}

static void every_type_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum sl_type type;
        const char *raw;
    } cases[] = {
        {"{'S':'text'}", SL_S, "text"},
        {"{'S':''}", SL_S, ""},
        {" { 'S' : 'text' } ", SL_S, "text"},
        {"{'N':'-1.50'}", SL_N, "-1.50"},
        {"{'B':'AAEqQQ=='}", SL_B, "AAEqQQ=="},
        {"{'B':''}", SL_B, ""},
        {"{'BOOL':false}", SL_BOOL, "false"},
        {"{'BOOL' : true }", SL_BOOL, "true"},
        {"{'NULL':true}", SL_NULL, "true"},
        {"{'SS':[]}", SL_SS, "[]"},
        {"{'SS':['a' , 'a']}", SL_SS, "['a' , 'a']"},
        {"{'NS':['1','2']}", SL_NS, "['1','2']"},
        {"{'BS':['AAEqQQ==','AAEqQQ==']}", SL_BS, "['AAEqQQ==','AAEqQQ==']"},
        {"{'L':[]}", SL_L, "[]"},
        {"{'L':[{'S':']}'},{'L':[{'N':'1'}]}]}", SL_L, "[{'S':']}'},{'L':[{'N':'1'}]}]"},
        {"{'M':{}}", SL_M, "{}"},
        {"{'M':{'a':{'M':{'b':{'NULL':true}}}}}", SL_M, "{'a':{'M':{'b':{'NULL':true}}}}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_batch t;
        struct sl_value v = value(&t, cases[i].json);
        assert_int_equal(v.type, cases[i].type);
        assert_span_is(v.raw, json(cases[i].raw));
        test_batch_clean_up(&t);
    }
}

static void broken_values_are_refused(void **state)
{
    (void)state;
    static const char record[] = "InvalidRecord", json[] = "InvalidJson";
    refused("5", record, "an attribute value ({\"S\": ...}) is expected");
    refused("{}", record, "an attribute value without a type");
    refused("{'X':1}", record, "not an attribute type (S, N, B, BOOL, NULL, SS, NS, BS, L, M)");
    refused("{'':1}", record, "not an attribute type (S, N, B, BOOL, NULL, SS, NS, BS, L, M)");
    refused("{'\\u0042\\u004f\\u004f\\u004c\\u004c':1}", record,
            "not an attribute type (S, N, B, BOOL, NULL, SS, NS, BS, L, M)");
    refused("{'S':'a','N':'1'}", record, "an attribute value with more than one type");
    refused("{'S':5}", record, "a string is expected");
    refused("{'N':5}", record, "a string is expected");
    refused("{'N':''}", record, "not a number");
    refused("{'N':'b'}", record, "not a number");
    refused("{'N':'1e126'}", record, "a number of 1E+126 or more in magnitude");
    refused("{'B':'Zg='}", record, "not base64");
    refused("{'B':'123'}", record, "not base64");
    refused("{'BOOL':'true'}", record, "true or false is expected");
    refused("{'BOOL':'12'}", record, "true or false is expected");
    refused("{'NULL':false}", record, "the value of a NULL must be true");
    refused("{'SS':'a'}", record, "an array is expected");
    refused("{'SS':[1]}", record, "a string is expected");
    refused("{'NS':['1','']}", record, "not a number");
    refused("{'NS':['1','3','1.0']}", record, "a number set holds a number twice");
    refused("{'BS':['x']}", record, "not base64");
    refused("{'L':{}}", record, "an array is expected");
    refused("{'L':[5]}", record, "an attribute value ({\"S\": ...}) is expected");
    refused("{'M':[]}", record, "a map of attributes is expected");
    refused("{'M':{'a':5}}", record, "an attribute value ({\"S\": ...}) is expected");
    refused("{'S':tru}", json, "a value is expected");
    refused("{'BOOL':fal}", json, "a value is expected");
    refused("{'NULL':t}", json, "a value is expected");
    refused("{'S':'a' 'N'}", json, "'}' is expected");
    refused("{'S' 'a'}", json, "':' is expected");
    refused("{'L':[{'S':'a'} 5]}", json, "',' or ']' is expected");
    refused("{'SS':['a',]}", json, "a value is expected");
    refused("{'M':{'a':{'S':'a'},}}", json, "a string is expected");
    refused("{'M':{'a':{'S':'a'} 5}}", json, "',' or '}' is expected");
    refused("{'M':{5}}", json, "a string is expected");
}

static void a_fault_is_reported_with_its_path(void **state)
{
    (void)state;
    refused("{'M':{'a\\u0062':{'L':[{'S':''},{'NS':['1','x']}]}}}", "InvalidRecord",
            "record 0: dynamodb.NewImage.v.M.a\\u0062.L[1].NS[1]: not a number");
    refused("{'Q':5}", "InvalidRecord",
            "record 0: dynamodb.NewImage.v.Q: not an attribute type (S, N, B, BOOL, NULL, SS, NS, BS, L, M)");
}

/* Escapes where nobody needs them: writers that escape '+' and '/'. */
static void escaped_values_are_unescaped(void **state)
{
    (void)state;
    struct test_batch t;
    int64_t n;
    struct sl_value v = value(&t, "{'B':'\\u002b\\/8\\u003d'}");
    assert_true(v.escaped);
    assert_span_is(sl_value_text(v, t.arena), "+/8=");
    struct sl_span bytes = sl_value_bytes(v, t.arena);
    assert_int_equal(bytes.len, 2);
    assert_memory_equal(bytes.ptr, "\xFB\xFF", 2);
    test_batch_clean_up(&t);
    v = value(&t, "{'\\u004e':'\\u0031\\u0035'}");
    assert_true(sl_value_int64(v, &n));
    assert_int_equal(n, 15);
    test_batch_clean_up(&t);
    v = value(&t, "{'S':'a\\n\\\"b\\\"'}");
    assert_span_is(sl_value_text(v, t.arena), "a\n\"b\"");
    test_batch_clean_up(&t);
    refused("{'N':'\\u0078'}", "InvalidRecord", "not a number");
    refused("{'B':'\\u0078'}", "InvalidRecord", "not base64");
}

/* Escaped texts that outgrow the buffers on the stack. */
static void long_escaped_values_are_unescaped(void **state)
{
    (void)state;
    char zeros[600 * 6 + 1], json[4096];
    struct test_batch t;
    int64_t n;
    for (int i = 0; i < 600; i++)
        memcpy(zeros + 6 * i, "\\u0030", 6);
    zeros[600 * 6] = '\0';
    snprintf(json, sizeof(json), "{'N':'%s7'}", zeros);
    assert_true(sl_value_int64(value(&t, json), &n));
    assert_int_equal(n, 7);
    test_batch_clean_up(&t);
    snprintf(json, sizeof(json), "{'NS':['%s7','6']}", zeros);
    assert_int_equal(value(&t, json).type, SL_NS);
    test_batch_clean_up(&t);
    snprintf(json, sizeof(json), "{'NS':['%s7','7']}", zeros);
    refused(json, "InvalidRecord", "a number set holds a number twice");
    snprintf(json, sizeof(json), "{'B':'%s'}", zeros);
    struct sl_value v = value(&t, json);
    assert_int_equal(sl_value_bytes(v, t.arena).len, 450);
    test_batch_clean_up(&t);
}

static char *nested(int levels)
{
    struct sl_buffer b;
    sl_buffer_init(&b, 1 << 20);
    for (int i = 0; i < levels; i++)
        sl_buffer_add_str(&b, i % 2 ? "{'L':[" : "{'M':{'a':");
    sl_buffer_add_str(&b, "{'S':'x'}");
    for (int i = levels; i-- > 0;)
        sl_buffer_add_str(&b, i % 2 ? "]}" : "}}");
    sl_buffer_add_char(&b, '\0');
    return b.ptr;
}

static void nesting_ends_at_32_levels(void **state)
{
    (void)state;
    struct test_batch t, u;
    char *text = nested(32);
    struct sl_value v = value(&t, text);
    assert_int_equal(v.type, SL_M);
    assert_true(sl_value_equal(v, value(&u, text)));
    test_batch_clean_up(&t);
    test_batch_clean_up(&u);
    free(text);
    text = nested(33);
    refused(text, "InvalidRecord", "nested deeper than 32 levels");
    free(text);
    text = nested(20000);
    refused(text, "InvalidJson", "nested deeper than 1024");
    free(text);
}

static void a_large_number_set_holds_each_number_once(void **state)
{
    (void)state;
    struct sl_buffer b;
    sl_buffer_init(&b, 1 << 20);
    sl_buffer_add_str(&b, "{'NS':[");
    for (int i = 0; i < 500; i++)
        sl_buffer_printf(&b, "'%d',", 7 * i % 500);
    sl_buffer_add_str(&b, "'500']}");
    sl_buffer_add_char(&b, '\0');
    struct test_batch t;
    assert_int_equal(value(&t, b.ptr).type, SL_NS);
    test_batch_clean_up(&t);
    memcpy(strstr(b.ptr, "'500'"), "'499'", 5);
    refused(b.ptr, "InvalidRecord", "a number set holds a number twice");
    sl_buffer_clean_up(&b);
}

static void scalars_become_c_values(void **state)
{
    (void)state;
    struct test_batch t;
    int64_t n = 0;
    struct sl_value v = value(&t, "{'N':'1.50e1'}");
    assert_true(sl_value_int64(v, &n));
    assert_int_equal(n, 15);
    assert_false(sl_value_is_true(v));
    assert_null(sl_value_bytes(v, t.arena).ptr);
    test_batch_clean_up(&t);
    v = value(&t, "{'N':'1.5'}");
    assert_false(sl_value_int64(v, &n));
    test_batch_clean_up(&t);
    v = value(&t, "{'BOOL':true}");
    assert_true(sl_value_is_true(v));
    assert_false(sl_value_int64(v, &n));
    assert_null(sl_value_text(v, t.arena).ptr);
    test_batch_clean_up(&t);
    v = value(&t, "{'BOOL':false}");
    assert_false(sl_value_is_true(v));
    test_batch_clean_up(&t);
    v = value(&t, "{'S':''}");
    assert_span_is(sl_value_json(v, t.arena), "{\"S\":\"\"}");
    assert_int_equal(sl_value_json((struct sl_value){.type = SL_NONE}, t.arena).len, 0);
    test_batch_clean_up(&t);
    assert_null(sl_value_text((struct sl_value){.type = SL_NONE}, NULL).ptr);
    assert_false(sl_value_is_true((struct sl_value){.type = SL_NONE}));
}

static void members_and_elements_come_in_order(void **state)
{
    (void)state;
    struct test_batch t;
    struct sl_span name;
    struct sl_value x;
    struct sl_iter iter = sl_value_iter(value(&t, "{'M':{ 'a' : {'S':'1'} , '\\u0062':{'L':[{'N':'2'}]}}}"));
    assert_true(sl_value_next(&iter, &name, &x));
    assert_span_is(name, "a");
    assert_span_is(x.raw, "1");
    assert_true(sl_value_next(&iter, &name, &x));
    assert_span_is(name, "\\u0062");
    assert_int_equal(x.type, SL_L);
    assert_false(sl_value_next(&iter, &name, &x));
    assert_false(sl_value_next(&iter, &name, &x));
    test_batch_clean_up(&t);
    iter = sl_value_iter(value(&t, "{'NS':['1' , '2']}"));
    assert_true(sl_value_next(&iter, NULL, &x));
    assert_int_equal(x.type, SL_N);
    assert_true(sl_value_next(&iter, NULL, &x));
    assert_span_is(x.raw, "2");
    assert_false(sl_value_next(&iter, NULL, &x));
    test_batch_clean_up(&t);
    iter = sl_value_iter(value(&t, "{'S':'x'}"));
    assert_false(sl_value_next(&iter, NULL, &x));
    test_batch_clean_up(&t);
}

static const struct {
    const char *a, *b;
    bool equal;
} equalities[] = {
    {"{'S':'a'}", "{'S':'a'}", true},
    {"{'S':'a'}", "{'S':'b'}", false},
    {"{'S':'a'}", "{'S':'\\u0061'}", true},
    {"{'S':'1'}", "{'N':'1'}", false},
    {"{'N':'1.0'}", "{'N':'1'}", true},
    {"{'N':'1e2'}", "{'N':'1\\u00300'}", true},
    {"{'N':'1'}", "{'N':'2'}", false},
    {"{'B':'Zg=='}", "{'B':'Zg\\u003d='}", true},
    {"{'B':'Zg=='}", "{'B':'Zm8='}", false},
    {"{'BOOL':true}", "{'BOOL':false}", false},
    {"{'BOOL':true}", "{'BOOL':true}", true},
    {"{'NULL':true}", "{'NULL':true}", true},
    {"{'SS':['a','b']}", "{'SS':['b','\\u0061']}", true},
    {"{'SS':['a','b']}", "{'SS':['a']}", false},
    {"{'SS':['a']}", "{'SS':['a','b']}", false},
    {"{'SS':['a','a']}", "{'SS':['a']}", true},
    {"{'NS':['1','2']}", "{'NS':['2.0','1']}", true},
    {"{'NS':['1','2']}", "{'NS':['2','3']}", false},
    {"{'BS':['Zg==','']}", "{'BS':['','Zg==']}", true},
    {"{'L':[{'N':'1'},{'S':''}]}", "{'L':[ {'N':'1.0'}, {'S':''} ]}", true},
    {"{'L':[{'N':'1'},{'N':'2'}]}", "{'L':[{'N':'2'},{'N':'1'}]}", false},
    {"{'L':[{'SS':['a','b']}]}", "{'L':[{'SS':['b','a']}]}", true},
    {"{'M':{'a':{'N':'1'},'b':{'NULL':true}}}", "{'M':{'b':{'NULL':true},'a':{'N':'1.0'}}}", true},
    {"{'M':{'a':{'N':'1'}}}", "{'M':{'b':{'N':'1'}}}", false},
    {"{'M':{'a':{'N':'1'}}}", "{'M':{}}", false},
    {"{'M':{'a':{'N':'5'},'a':{'N':'1'}}}", "{'M':{'\\u0061':{'N':'1'}}}", true},
    {"{'M':{'a':{'BOOL':true}}}", "{'M':{'a':{'BOOL':false}}}", false},
};

static void sets_and_maps_compare_without_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(equalities) / sizeof(equalities[0]); i++) {
        struct test_batch t, u;
        struct sl_value a = value(&t, equalities[i].a), b = value(&u, equalities[i].b);
        if (sl_value_equal(a, b) != equalities[i].equal || sl_value_equal(b, a) != equalities[i].equal)
            fail_msg("%s and %s", equalities[i].a, equalities[i].b);
        test_batch_clean_up(&t);
        test_batch_clean_up(&u);
    }
    assert_true(sl_value_equal((struct sl_value){.type = SL_NONE}, (struct sl_value){.type = SL_NONE}));
}

static void bytes_are_counted_as_dynamodb_does(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        uint64_t bytes;
    } cases[] = {
        {"{'S':'text'}", 4},
        {"{'S':'\\u00e9\\n'}", 3},
        {"{'S':'\xC3\xA9'}", 2},
        {"{'N':'101'}", 3},
        {"{'N':'-1.5'}", 4},
        {"{'B':'AAEqQQ=='}", 4},
        {"{'B':'AAEqQQ\\u003d='}", 4},
        {"{'BOOL':false}", 1},
        {"{'NULL':true}", 1},
        {"{'SS':['ab','c']}", 3},
        {"{'NS':['1','100000']}", 4},
        {"{'BS':['AAEqQQ==']}", 4},
        {"{'L':[]}", 3},
        {"{'L':[{'S':'a'},{'N':'1'}]}", 3 + 1 + 1 + 2 + 1},
        {"{'M':{'\\u00e9b':{'S':'a'}}}", 3 + 3 + 1 + 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_batch t;
        char members[256];
        snprintf(members, sizeof(members), A NEW("'v':%s"), cases[i].json);
        const struct sl_record *r = test_record(&t, "INSERT", members, "");
        assert_int_equal(sl_value_item_bytes(sl_record_image(r, SL_NEW_IMAGE)), cases[i].bytes + 1);
        assert_int_equal(sl_record_computed_bytes(r), cases[i].bytes + 1 + 3);
        test_batch_clean_up(&t);
    }
    assert_int_equal(sl_value_item_bytes((struct sl_value){.type = SL_NONE}), 0);
}

static void what_is_absent_takes_no_room(void **state)
{
    (void)state;
    assert_int_equal(sl_value_counted_bytes((struct sl_value){0}), 0);
    assert_int_equal(sl_value_item_bytes((struct sl_value){0}), 0);
}

/* Text that nobody has checked: a value that a table takes, or none. */
static void unchecked_text_is_a_value_or_none(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum sl_type type;
    } cases[] = {{"{'S':'x'}", SL_S},
                 {" {'N':'1e1'} ", SL_N},
                 {"{ 'S':'x'}", SL_S},
                 {"{'S' :'x'}", SL_S},
                 {"{'S': 'x'}", SL_S},
                 {"{'\\u0053':''}", SL_S},
                 {"{'SS':['x']}", SL_SS},
                 {"{'NS':['1','1']}", SL_NS},
                 {"{'M':{}}", SL_M},
                 {"{'SS':[]}", SL_NONE},
                 {"{'NS':[ ]}", SL_NONE},
                 {"{'BS':['A']}", SL_NONE},
                 {"{'S':'x'}x", SL_NONE},
                 {"{'S':'x'", SL_NONE},
                 {"{'N':'x'}", SL_NONE},
                 {"{'L':[{'SS':[]}]}", SL_NONE},
                 {"{}", SL_NONE},
                 {"5", SL_NONE},
                 {"", SL_NONE}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (sl_value_read(json_span(cases[i].text)).type != cases[i].type)
            fail_msg("%s", cases[i].text);
    assert_int_equal(sl_value_read(sl_span(NULL, 0)).type, SL_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_equal_as_in_dynamodb),
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(broken_values_are_refused),
        cmocka_unit_test(a_fault_is_reported_with_its_path),
        cmocka_unit_test(escaped_values_are_unescaped),
        cmocka_unit_test(long_escaped_values_are_unescaped),
        cmocka_unit_test(nesting_ends_at_32_levels),
        cmocka_unit_test(a_large_number_set_holds_each_number_once),
        cmocka_unit_test(scalars_become_c_values),
        cmocka_unit_test(members_and_elements_come_in_order),
        cmocka_unit_test(sets_and_maps_compare_without_order),
        cmocka_unit_test(bytes_are_counted_as_dynamodb_does),
        cmocka_unit_test(what_is_absent_takes_no_room),
        cmocka_unit_test(unchecked_text_is_a_value_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
