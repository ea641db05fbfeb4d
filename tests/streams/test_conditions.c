/* Conditions on plain values, and what is known of a `when` before any record: the events and images that it
 * is about. check_conditions.py holds the matching against a model; here is each rule by name. */
#include "base/number.h"
#include "streams/decode/batch.h"
#include "streams/when/when.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define STATUS(tests) "{'dynamodb':{'NewImage':{'status':{'S':[" tests "]}}}}"

/* ---- conditions on an item ---- */

static bool meets(const char *item, const char *condition)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *where;
    struct sl_error error = SL_NO_ERROR;
    struct sl_value value = {.type = item ? SL_M : SL_NONE};
    if (item)
        value.raw = json_span(item);
    char *copy = strdup(json(condition)); /* nothing of it may be borrowed */
    if (sl_where_compile(sl_span_str(copy), arena, &where, &error) != SL_OK)
        fail_msg("%s: %s", condition, error.text);
    free(copy);
    bool result = sl_where_match(where, value, arena);
    sl_arena_destroy(arena);
    return result;
}

static void yes(const char *item, const char *condition)
{
    if (!meets(item, condition))
        fail_msg("%s does not meet %s", item ? item : "nothing", condition);
}

static void no(const char *item, const char *condition)
{
    if (meets(item, condition))
        fail_msg("%s meets %s", item ? item : "nothing", condition);
}

static void numbers_compare_by_value_and_are_no_texts(void **state)
{
    (void)state;
    yes("{'n':{'N':'101'}}", "{'n':[1.01e2]}");
    yes("{'n':{'N':'1.010E2'}}", "{'n':[101]}");
    no("{'n':{'S':'101'}}", "{'n':[101]}");
    no("{'n':{'N':'101'}}", "{'n':['101']}");
    yes("{'n':{'N':'12345678901234567890123456789012345678'}}",
        "{'n':[{'numeric':['>',12345678901234567890123456789012345677]}]}");
    no("{'n':{'N':'12345678901234567890123456789012345678'}}",
       "{'n':[{'numeric':['>',12345678901234567890123456789012345678]}]}");
    no("{'n':{'S':'5'}}", "{'n':[{'numeric':['>',1]}]}");
    no("{'n':{'N':'5'}}", "{'n':[{'prefix':'5'}]}");
    yes("{'n':{'N':'5'}}", "{'n':[{'anything-but':['5']}]}");
    no("{'n':{'N':'5.0'}}", "{'n':[{'anything-but':5}]}");
    yes("{'n':{'N':'\\u0035'}}", "{'n':[5]}");
}

static void what_is_missing_is_not_null(void **state)
{
    (void)state;
    yes("{'a':{'NULL':true}}", "{'a':[null]}");
    no("{'b':{'S':''}}", "{'a':[null]}");
    no("{'a':{'NULL':true}}", "{'a':[{'exists':false}]}");
    no("{'a':{'NULL':true}}", "{'a':[true]}");
    yes("{'a':{'BOOL':false}}", "{'a':[false]}");
    no("{'a':{'BOOL':false}}", "{'a':[true,null,'false']}");
    yes("{'b':{'S':''}}", "{'a':[{'exists':false}]}");
    yes(NULL, "{'a':[{'exists':false}],'b.c':[{'exists':false}]}");
    no(NULL, "{'a':[{'exists':true}]}");
    no(NULL, "{'a':[{'anything-but':'x'}]}");
    no(NULL, "{'a':[{'exists':false}],'b':['x']}");
    yes("{'b':{'S':'x'}}", "{'a':[{'exists':false}],'b':['x']}");
}

static void exists_sees_all_types(void **state)
{
    (void)state;
    static const char *const values[] = {"{'S':''}",      "{'N':'1'}",    "{'B':''}",     "{'BOOL':false}",
                                         "{'NULL':true}", "{'SS':['a']}", "{'NS':['1']}", "{'BS':['']}",
                                         "{'L':[]}",      "{'M':{}}"};
    static const char *const types[] = {"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"};
    for (size_t i = 0; i < 10; i++)
        for (size_t k = 0; k < 10; k++) {
            char item[64], condition[64];
            snprintf(item, sizeof(item), "{'a':%s}", values[i]);
            yes(item, "{'a':[{'exists':true}]}");
            no(item, "{'a':[{'exists':false}]}");
            snprintf(condition, sizeof(condition), "{'a':[{'type':'%s'}]}", types[k]);
            assert_int_equal(meets(item, condition), i == k);
        }
    no("{'a':{'L':[{'S':'x'}]}}", "{'a':[{'type':'S'}]}"); /* the list's, not its elements' */
    no("{'a':{'M':{}}}", "{'a':[{'anything-but':'x'}]}");
    no("{'a':{'L':[]}}", "{'a':[{'anything-but':'x'}]}");
    yes("{'type':{'S':'x'}}", "{'type':['x']}");
}

static void binary_is_compared_as_base64(void **state)
{
    (void)state;
    yes("{'a':{'B':'AAEC'}}", "{'a':[{'base64':'AAEC'}]}");
    yes("{'a':{'B':'\\/\\/8='}}", "{'a':[{'base64':'//8='}]}");
    no("{'a':{'S':'AAEC'}}", "{'a':[{'base64':'AAEC'}]}");
    no("{'a':{'B':'AAEC'}}", "{'a':['AAEC']}");
    no("{'a':{'B':'AAEC'}}", "{'a':[{'prefix':'AA'}]}");
    yes("{'a':{'BS':['AAEC','AA==']}}", "{'a':[{'base64':'AA=='}]}");
    no("{'a':{'B':'AAEC'}}", "{'a':[{'anything-but':{'base64':'AAEC'}}]}");
}

static void sets_and_lists_match_by_any_element(void **state)
{
    (void)state;
    yes("{'a':{'SS':['x','y']}}", "{'a':['y']}");
    no("{'a':{'SS':['x','y']}}", "{'a':['z']}");
    yes("{'a':{'NS':['1','2']}}", "{'a':[{'numeric':['>',1]}]}");
    yes("{'a':{'L':[{'N':'1'},{'S':'x'},{'NULL':true}]}}", "{'a':[null]}");
    no("{'a':{'L':[{'L':[{'S':'x'}]},{'SS':['x']},{'M':{'a':{'S':'x'}}}]}}", "{'a':['x']}");
    yes("{'a':{'L':[{'M':{'b':{'S':'x'}}}]}}", "{'a.b':['x']}");
    no("{'a':{'L':[{'L':[{'M':{'b':{'S':'x'}}}]}]}}", "{'a.b':['x']}");
    no("{'a':{'L':[{'M':{'b':{'N':'1'},'c':{'N':'2'}}},{'M':{'b':{'N':'2'},'c':{'N':'1'}}}]}}",
       "{'a.b':[1],'a.c':[1]}");
    yes("{'a':{'L':[{'S':'x'}]}}", "{'a.b':[{'exists':false}]}");
    yes("{'a':{'S':'x'}}", "{'a.b':[{'exists':false}]}");
    yes("{'a':{'L':[]}}", "{'a.b':[{'exists':false}]}");
}

/* One map of the list has to meet all that is asked of the maps; that something is absent, only a list of
 * which no map has it. In whatever order they are. */
static void one_map_of_a_list_meets_all(void **state)
{
    (void)state;
#define LIST(a, b) "{'a':{'L':[{'M':{" a "}},{'S':'x'},{'M':{" b "}}]}}"
    static const struct {
        const char *one, *two, *condition;
        bool meets;
    } cases[] = {
        {"", "", "{'a.b':[{'exists':false}]}", true},
        {"'c':{'S':'x'}", "", "{'a.b':[{'exists':false}]}", true},
        {"'b':{'S':'x'}", "", "{'a.b':[{'exists':false}]}", false},
        {"'b':{'S':'x'}", "'b':{'S':'y'}", "{'a.b':[{'exists':false}]}", false},
        {"'b':{'S':'x'}", "'c':{'S':'x'}", "{'a.b':[{'exists':false}]}", false},
        {"'b':{'S':'x'}", "'c':{'S':'x'}", "{'a.b':[{'exists':false}],'a.c':['x']}", true},
        {"'b':{'S':'x'},'c':{'S':'x'}", "", "{'a.b':[{'exists':false}],'a.c':['x']}", false},
        {"'b':{'S':'x'},'c':{'S':'x'}", "'c':{'S':'x'}", "{'a.b':[{'exists':false}],'a.c':['x']}", true},
        {"'b':{'S':'x'}", "'c':{'S':'x'}", "{'a.b':['x'],'a.c':['x']}", false},
        {"'b':{'S':'x'},'c':{'S':'x'}", "", "{'a.b':['x'],'a.c':['x']}", true},
        {"'b':{'S':'x'}", "", "{'a':{'$or':[{'b':['y']},{'b':['x']}]}}", true},
        {"'b':{'S':'x'}", "", "{'a':{'$or':[{'b':['y']},{'c':['x']}]}}", false},
        {"'b':{'S':'x'}", "'c':{'S':'x'}", "{'a':{'$or':[{'b':['y']},{'c':['x']}]}}", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int turned = 0; turned < 2; turned++) {
            const char *one = turned ? cases[i].two : cases[i].one;
            const char *two = turned ? cases[i].one : cases[i].two;
            const char *item = json_printf(LIST("%s", "%s"), one, two);
            if (meets(item, cases[i].condition) != cases[i].meets)
                fail_msg("%s %s", item, cases[i].condition);
        }
}

static void names_are_paths(void **state)
{
    (void)state;
    static const char item[] =
        "{'a':{'M':{'b':{'N':'1'},'S':{'N':'2'}}},'a.b':{'N':'3'},'$or':{'N':'4'},'x[0]':{'N':'5'},"
        "'q\\u0022':{'N':'6'}}";
    yes(item, "{'a.b':[1]}");
    yes(item, "{'a':{'b':[1]}}");
    yes(item, "{'`a`.`b`':[1]}");
    yes(item, "{'`a.b`':[3]}");
    no(item, "{'`a.b`':[1]}");
    yes(item, "{'a.`S`':[2]}");
    yes(item, "{'`$or`':[4]}");
    yes(item, "{'`x[0]`':[5]}");
    yes(item, "{'q\\u0022':[6]}");
    yes(item, "{'a.b':[1],'a':{'`S`':[2]}}");
}

static void either_of_or(void **state)
{
    (void)state;
    static const char item[] = "{'a':{'N':'1'},'b':{'N':'2'}}";
    yes(item, "{'$or':[{'a':[2]},{'b':[2]}]}");
    no(item, "{'$or':[{'a':[2]},{'b':[1]}]}");
    no(item, "{'a':[2],'$or':[{'a':[1]},{'b':[2]}]}");
    yes(item, "{'$or':[{'a':[2]},{'$or':[{'b':[2]},{'b':[3]}]}]}");
    yes("{}", "{'$or':[{'a':[2]},{'b':[{'exists':false}]}]}");
    /* Of one that holds in part, the next ones are asked all the same. */
    static const char map[] = "{'a':{'M':{'b':{'S':'y'}}},'c':{'S':'x'}}";
    yes(map, "{'$or':[{'a':[{'type':'M'}],'a.b':['x']},{'c':['x']}]}");
    yes(map, "{'$or':[{'c':['x']},{'a':[{'type':'M'}],'a.b':['x']}]}");
    yes(map, "{'$or':[{'d':[{'exists':false}]},{'a':[{'type':'M'}],'a.b':['x']}]}");
    no(map, "{'$or':[{'a':[{'type':'M'}],'a.b':['x']},{'c':['y']}]}");
    yes("{'l':{'L':[{'M':{'b':{'S':'x'}}}]}}",
        "{'l':{'$or':[{'c':[{'exists':false}]},{'b':['y']}],'b':['x']}}");
}

/* A number in any spelling is the same number: both sides in every spelling of some values, against their
 * order. */
static void each_spelling_of_a_number_is_the_number(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0",    "-0",   "+0",  "00",    "0.0",  "-0.0",  "0e5",   ".0",   "0.",     "-.0",
        "1",    "+1",   "01",  "1.",    "1.0",  "10e-1", "-1",    "-01",  "-1.0",   "1e1",
        "10",   "10.0", "010", "9",     "9.",   "9.9",   "9.90",  "09.9", "99",     "0.9",
        ".9",   "0.90", "90",  "9e1",   "-9",   "-9.9",  "-9.90", "-.9",  "100",    "1E+2",
        "1e-2", "0.01", ".01", "0.010", "-0.1", "-00.1", "-.1",   "0.10", "123.45", "12345e-2"};
    const size_t n = sizeof(texts) / sizeof(texts[0]);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            struct sl_number a, b;
            assert_null(sl_number_parse(sl_span_str(texts[i]), &a));
            assert_null(sl_number_parse(sl_span_str(texts[k]), &b));
            int order = sl_number_compare(&b, &a);
            json_t *literal = json_loads(texts[i], JSON_DECODE_ANY, NULL);
            json_decref(literal);
            if (!literal)
                continue; /* JSON has fewer spellings */
            const char *item = json_printf("{'n':{'N':'%s'}}", texts[k]);
            assert_int_equal(meets(item, json_printf("{'n':[%s]}", texts[i])), order == 0);
            assert_int_equal(meets(item, json_printf("{'n':[{'anything-but':[%s]}]}", texts[i])), order != 0);
            assert_int_equal(meets(item, json_printf("{'n':[{'numeric':['<',%s]}]}", texts[i])), order < 0);
            assert_int_equal(meets(item, json_printf("{'n':[{'numeric':['>=',%s]}]}", texts[i])), order >= 0);
            assert_int_equal(
                meets(json_printf("{'n':{'NS':['77','%s']}}", texts[k]), json_printf("{'n':[%s]}", texts[i])),
                order == 0);
        }
    /* What is no number equals none. */
    static const char *const others[] = {"",    "-",     "+",  ".",   "-.", "1x",  "1e",
                                         "0x1", "1.2.3", "1 ", "--1", "1-", "9.9/"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        for (size_t k = 0; k < n; k += 9)
            no(json_printf("{'n':{'N':'%s'}}", others[i]), json_printf("{'n':[%s]}", k == 18 ? "-1.0" : "9"));
}

/* The address is in the network when its first bits are. */
static void a_network_is_the_first_bits(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 32; bits++)
        for (unsigned flipped = 0; flipped < 32; flipped++) {
            uint32_t network = 0xAC1F5A96u, address = network ^ 0x80000000u >> flipped;
            const char *item = json_printf("{'a':{'S':'%u.%u.%u.%u'}}", address >> 24, address >> 16 & 255,
                                           address >> 8 & 255, address & 255);
            const char *condition = json_printf("{'a':[{'cidr':'%u.%u.%u.%u/%u'}]}", network >> 24,
                                                network >> 16 & 255, network >> 8 & 255, network & 255, bits);
            assert_int_equal(meets(item, condition), flipped >= bits);
        }
    for (unsigned bits = 96; bits < 128; bits++)
        for (unsigned flipped = 96; flipped < 128; flipped++) {
            uint32_t network = 0x20010DB8u, address = network ^ 0x80000000u >> (flipped - 96);
            const char *item = json_printf("{'a':{'S':'2001:db8::%x:%x'}}", address >> 16, address & 0xFFFF);
            const char *condition =
                json_printf("{'a':[{'cidr':'2001:db8::%x:%x/%u'}]}", network >> 16, network & 0xFFFF, bits);
            assert_int_equal(meets(item, condition), flipped >= bits);
        }
    static const char *const others[] = {
        "", "172.31.90", "172.31.90.150.1", "172.31.90.256", "::ffff:172.31.90.150", "x"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        no(json_printf("{'a':{'S':'%s'}}", others[i]), "{'a':[{'cidr':'0.0.0.0/0'}]}");
    /* The longest text of an address, and one byte more. */
    yes("{'a':{'S':'0000:0000:0000:0000:0000:ffff:255.255.255.255'}}", "{'a':[{'cidr':'::/0'}]}");
    no("{'a':{'S':'0000:0000:0000:0000:0000:ffff:255.255.255.2555'}}", "{'a':[{'cidr':'::/0'}]}");
}

/* ---- what is refused ---- */

static void refused(const char *condition, const char *at, const char *text)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *out;
    struct sl_error error = SL_NO_ERROR;
    const char *whole = json(condition), *place = strstr(whole, json(at));
    assert_int_equal(sl_where_compile(sl_span_str(whole), arena, &out, &error), SL_REJECT);
    assert_non_null(place);
    if (error.offset != (size_t)(place - whole) || !strstr(error.text, text))
        fail_msg("%s: byte %zu: %s: want byte %zu, \"%s\"", whole, error.offset, error.text,
                 (size_t)(place - whole), text);
    sl_arena_destroy(arena);
}

static void mistakes_are_refused_at_their_byte(void **state)
{
    (void)state;
    refused("[]", "[]", "an object is expected");
    refused("{}", "{}", "an empty object");
    refused("{'a':1}", "1", "a: a list of values is expected");
    refused("{'a':{}}", "{}}", "a: an empty object");
    refused("{'a':[]}", "[]", "a: the list is empty");
    refused("{'a':[{'numerics':['>',1]}]}", "{'num", "a[0]: not an operator (did you mean \"numeric\"?)");
    refused("{'a':[{'exactly':'x'}]}", "{'exa", "a[0]: not an operator");
    refused("{'a':[{'type':'s'}]}", "'s'", "a[0].type: not a type; use \"S\"");
    refused("{'a':[{'type':1}]}", "1", "a[0].type: a string is expected");
    refused("{'a':[{'base64':'AAE'}]}", "'AAE", "a[0].base64: padded base64 is expected");
    refused("{'a':[1e200]}", "1e200", "a[0]: not a DynamoDB number");
    refused("{'a':[{'anything-but':[1e200]}]}", "1e200", "not a DynamoDB number");
    refused("{'a':[{'numeric':['>','1']}]}", "'1'", "a number of at most 38 digits");
    refused("{'status':{'S':['PAID']}}", "S':[", "status.S: S looks like a type");
    refused("{'a.b.NS':[1]}", "a.b.NS", "NS looks like a type");
    refused("{'a':[1],'`a`':[2]}", "[2]", "given twice");
    refused("{'a.b':[1],'a':{'b':[2]}}", "[2]", "a.b: given twice");
    refused("{'a..b':[1]}", "a..b", "not a path");
    refused("{'':[1]}", "':", "not a path");
    refused("{'a.':[1]}", "a.'", "not a path");
    refused("{'.a':[1]}", ".a", "not a path");
    refused("{'a[0]':[1]}", "a[0]", "not a path");
    refused("{'a`b`':[1]}", "a`b", "not a path");
    refused("{'`a`b':[1]}", "`a`b", "not a path");
    refused("{'`a':[1]}", "`a'", "not a path");
    refused("{'``':[1]}", "``", "not a path");
    refused("{'$or':[{'a':[1]}]}", "[{", "$or: a list of two or more objects");
    refused("{'$or':{'a':[1]}}", "{'a'", "$or: a list of two or more objects");
    refused("{'$or':[{'a':[1]},7]}", "7]}", "$or[1]: an object is expected");
    refused("{'$or':[{'a':[1]},{}]}", "{}]", "$or[1]: an empty object");
}

static void limits_are_refused_by_name(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *out;
    struct sl_error error = SL_NO_ERROR;
    struct sl_buffer b;
    sl_buffer_init(&b, 1 << 20);
    for (int names = 1000; names <= 1001; names++) {
        sl_buffer_reset(&b);
        for (int i = 0; i < names; i++)
            sl_buffer_printf(&b, "%c\"f%d\":[1]", i ? ',' : '{', i);
        sl_buffer_add_char(&b, '}');
        assert_int_equal(sl_where_compile(sl_buffer_span(&b), arena, &out, &error),
                         names > 1000 ? SL_REJECT : SL_OK);
    }
    assert_non_null(strstr(error.text, "more than 1000 names"));
    sl_error_clear(&error);
    sl_buffer_reset(&b);
    for (int i = 0; i < 90; i++)
        sl_buffer_add_str(&b, "{\"a\":");
    sl_buffer_add_str(&b, "[1]");
    for (int i = 0; i < 90; i++)
        sl_buffer_add_char(&b, '}');
    assert_int_equal(sl_where_compile(sl_buffer_span(&b), arena, &out, &error), SL_REJECT);
    assert_non_null(strstr(error.text, "nested deeper than 80"));
    sl_buffer_clean_up(&b);
    sl_arena_destroy(arena);
}

/* ---- of a whole `when` ---- */

static void a_condition_tells_the_images_it_needs(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        unsigned images;
    } cases[] = {
        {"{}", 0},
        {"{'changed':['a']}", 1u << SL_NEW_IMAGE | 1u << SL_OLD_IMAGE},
        {"{'pattern':[" STATUS("'a'") "]}", 1u << SL_NEW_IMAGE},
        {"{'pattern':[" STATUS("'a'") ",{'dynamodb':{'OldImage':{'a':{'M':{'b':{'N':['1']}}}}}}]}",
         1u << SL_NEW_IMAGE | 1u << SL_OLD_IMAGE},
        {"{'pattern':[{'dynamodb':{'Keys':{'a':{'S':['b']}}}}]}", 0},
        {"{'item':{'a':['b']}}", 1u << SL_NEW_IMAGE},
        {"{'old_item':{'a':['b']}}", 1u << SL_OLD_IMAGE},
        {"{'keys':{'a':['b']}}", 0},
    };
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *compiled;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(sl_when_compile(json_span(cases[i].json), arena, &compiled, NULL), SL_OK);
        assert_int_equal(sl_when_images(compiled), cases[i].images);
    }
    assert_int_equal(sl_when_images(NULL), 0);
    sl_arena_destroy(arena);
}

/* Of a change that it is about: what it needs and the record does not carry. */
static void a_condition_tells_what_a_record_lacks(void **state)
{
    (void)state;
    const unsigned n = 1u << SL_NEW_IMAGE, o = 1u << SL_OLD_IMAGE;
    static const char *const images[] = {"", ",'NewImage':{'a':{'S':'x'}}", ",'OldImage':{'a':{'S':'x'}}",
                                         ",'NewImage':{'a':{'S':'x'}},'OldImage':{'a':{'S':'x'}}"};
    const struct {
        const char *when, *event;
        unsigned lacks[4]; /* of a record with these images */
    } cases[] = {
        {"{}", "MODIFY", {0, 0, 0, 0}},
        {"{'item':{'a':['x']}}", "MODIFY", {n, 0, n, 0}},
        {"{'item':{'a':['x']}}", "INSERT", {n, 0, n, 0}},
        {"{'item':{'a':[{'exists':false}]}}", "REMOVE", {0, 0, 0, 0}},
        {"{'item':{'a':['x']}}", "REMOVE", {0, 0, 0, 0}},
        {"{'old_item':{'a':['x']}}", "MODIFY", {o, o, 0, 0}},
        {"{'old_item':{'a':['x']}}", "REMOVE", {o, o, 0, 0}},
        {"{'old_item':{'a':['x']}}", "INSERT", {0, 0, 0, 0}},
        {"{'changed':['a']}", "MODIFY", {n | o, o, n, 0}},
        {"{'changed':['a']}", "INSERT", {n, 0, n, 0}},
        {"{'changed':['a']}", "REMOVE", {o, o, 0, 0}},
        {"{'item':{'a':['x']},'events':['INSERT']}", "MODIFY", {0, 0, 0, 0}},
        {"{'item':{'a':['x']},'events':['INSERT']}", "INSERT", {n, 0, n, 0}},
        {"{'item':{'a':['x']},'keys':{'k':['other']}}", "INSERT", {0, 0, 0, 0}},
        {"{'item':{'a':['x']},'keys':{'k':['K']}}", "INSERT", {n, 0, n, 0}},
        {"{'expired':true,'old_item':{'a':['x']}}", "REMOVE", {0, 0, 0, 0}},
        {"{'pattern':[{'dynamodb':{'NewImage':{'a':{'S':['x']}}}}]}", "MODIFY", {0, 0, 0, 0}},
        {"{'keys':{'k':['K']}}", "MODIFY", {0, 0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t k = 0; k < 4; k++) {
            struct sl_arena *arena = sl_arena_new(4096);
            struct sl_decode_options options = {.any_shape = true};
            struct sl_batch batch;
            struct sl_when *when;
            const char *text = json_printf("{'eventName':'%s','dynamodb':{'Keys':{'k':{'S':'K'}}%s}}",
                                           cases[i].event, images[k]);
            assert_int_equal(sl_batch_decode(sl_span_str(text), arena, &options, &batch, NULL), SL_OK);
            assert_int_equal(sl_when_compile(json_span(cases[i].when), arena, &when, NULL), SL_OK);
            const struct sl_record *r = sl_batch_record(&batch, 0);
            if (sl_when_lacks(when, r, arena) != cases[i].lacks[k])
                fail_msg("%s on %s: %u", cases[i].when, text, sl_when_lacks(when, r, arena));
            if (cases[i].lacks[k])
                assert_false(sl_when_match(when, r, arena));
            assert_int_equal(sl_when_lacks(NULL, r, arena), 0);
            sl_arena_destroy(arena);
        }
}

static void a_condition_tells_the_events_it_can_match(void **state)
{
    (void)state;
    const unsigned insert = 1u << SL_INSERT, modify = 1u << SL_MODIFY, removal = 1u << SL_REMOVE;
    const struct {
        const char *json;
        unsigned events;
    } cases[] = {
        {"{}", insert | modify | removal},
        {"{'events':['INSERT','REMOVE']}", insert | removal},
        {"{'expired':true}", removal},
        {"{'item':{'a':[1]}}", insert | modify},
        {"{'item':{'a':[{'exists':false}]}}", insert | modify | removal},
        {"{'old_item':{'a':[1]}}", modify | removal},
        {"{'old_item':{'a':[1]},'item':{'a':[2]}}", modify},
        {"{'keys':{'a':[1]}}", insert | modify | removal},
        {"{'changed':['a']}", insert | modify | removal},
        {"{'pattern':[{'eventName':['REMOVE']}]}", removal},
        {"{'pattern':[{'eventName':['REMOVE']},{'eventName':[{'prefix':'IN'}]}]}", insert | removal},
        {"{'pattern':[{'eventName':[{'anything-but':'REMOVE'}]}],'events':['REMOVE','MODIFY']}", modify},
        {"{'pattern':[" STATUS("'a'") "]}", insert | modify | removal},
    };
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *compiled;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(sl_when_compile(json_span(cases[i].json), arena, &compiled, NULL), SL_OK);
        assert_int_equal(sl_when_events(compiled), cases[i].events);
    }
    assert_int_equal(sl_when_events(NULL), insert | modify | removal);
    sl_arena_destroy(arena);
}

static void a_condition_tells_the_views_it_can_judge(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        bool keys_only, new_image, old_image;
    } cases[] = {
        {"{}", true, true, true},
        {"{'keys':{'a':[1]}}", true, true, true},
        {"{'item':{'a':[1]}}", false, true, false},
        {"{'old_item':{'a':[1]}}", false, false, true},
        {"{'item':{'a':[1]},'old_item':{'a':[2]}}", false, false, false},
        {"{'changed':['a']}", false, false, false},
        {"{'changed':['a'],'events':['INSERT']}", false, true, false},
        {"{'changed':['a'],'events':['REMOVE']}", false, false, true},
        {"{'old_item':{'a':[{'exists':false}]},'events':['INSERT']}", true, true, true},
        {"{'pattern':[" STATUS("'a'") "]}", true, true, true},
    };
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *compiled;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(sl_when_compile(json_span(cases[i].json), arena, &compiled, NULL), SL_OK);
        assert_int_equal(sl_when_accepts(compiled, SL_VIEW_KEYS_ONLY), cases[i].keys_only);
        assert_int_equal(sl_when_accepts(compiled, SL_VIEW_NEW_IMAGE), cases[i].new_image);
        assert_int_equal(sl_when_accepts(compiled, SL_VIEW_OLD_IMAGE), cases[i].old_image);
        assert_true(sl_when_accepts(compiled, SL_VIEW_NEW_AND_OLD_IMAGES));
        assert_true(sl_when_accepts(compiled, SL_VIEW_UNKNOWN));
    }
    assert_true(sl_when_accepts(NULL, SL_VIEW_KEYS_ONLY));
    sl_arena_destroy(arena);
}

static void a_condition_tells_whether_it_is_of_keys(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        bool is;
    } cases[] = {
        {"{}", true},
        {"{'keys':{'a':[1]}}", true},
        {"{'keys':{'a':[1]},'events':['INSERT']}", false},
        {"{'item':{'PK':[1]}}", false},
        {"{'old_item':{'PK':[1]}}", false},
        {"{'keys':{'a':[1]},'pattern':[{'dynamodb':{'Keys':{'a':{'S':['b']}}}}]}", true},
        {"{'keys':{'a':[1]},'pattern':[" STATUS("'a'") "]}", false},
        {"{'expired':true}", false},
        {"{'changed':['a']}", false},
        {"{'pattern':[{'dynamodb':{'Keys':{'a':{'S':['b']}}}},{'dynamodb':{'Keys':{'b':{'N':['1']}}}}]}",
         true},
        {"{'pattern':[{'dynamodb':{'Keys':{'a':{'S':['b']}}}},{'eventName':['INSERT']}]}", false},
        {"{'pattern':[{'eventName':['INSERT']},{'dynamodb':{'Keys':{'a':{'S':['b']}}}}]}", false},
        {"{'pattern':[{'dynamodb':{'Keys':{'a':{'S':['b']}},'OldImage':{'a':{'S':['b']}}}}]}", false},
        {"{'pattern':[{'dynamodb':{'NewImage':{'a':{'M':{'b':{'S':['b']}}}}}}]}", false},
        {"{'pattern':[{'dynamodb':{'OldImage':{'a':{'M':{'b':{'S':['b']}}}}}}]}", false},
        {"{'pattern':[{'dynamodb':{'SizeBytes':[5]}}]}", false},
    };
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *compiled;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(sl_when_compile(json_span(cases[i].json), arena, &compiled, NULL), SL_OK);
        assert_int_equal(sl_when_is_of_keys(compiled), cases[i].is);
    }
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_compare_by_value_and_are_no_texts),
        cmocka_unit_test(what_is_missing_is_not_null),
        cmocka_unit_test(exists_sees_all_types),
        cmocka_unit_test(binary_is_compared_as_base64),
        cmocka_unit_test(sets_and_lists_match_by_any_element),
        cmocka_unit_test(one_map_of_a_list_meets_all),
        cmocka_unit_test(names_are_paths),
        cmocka_unit_test(either_of_or),
        cmocka_unit_test(each_spelling_of_a_number_is_the_number),
        cmocka_unit_test(a_network_is_the_first_bits),
        cmocka_unit_test(mistakes_are_refused_at_their_byte),
        cmocka_unit_test(limits_are_refused_by_name),
        cmocka_unit_test(a_condition_tells_the_images_it_needs),
        cmocka_unit_test(a_condition_tells_what_a_record_lacks),
        cmocka_unit_test(a_condition_tells_the_events_it_can_match),
        cmocka_unit_test(a_condition_tells_the_views_it_can_judge),
        cmocka_unit_test(a_condition_tells_whether_it_is_of_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
