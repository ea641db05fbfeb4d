/* The nearest filter of a mapping, by name: what a pattern can say of each condition, and what is left out.
 * (That it keeps no record back: test_vectors.c.) */
#include "streams/when/when.h"
#include "tests/support/test.h"

static void filter_is(const char *when, enum sl_when_nearest nearest, const char *text)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *compiled;
    struct sl_error error = SL_NO_ERROR;
    struct sl_buffer out;
    sl_buffer_init(&out, 1 << 20);
    if (sl_when_compile(json_span(when), arena, &compiled, &error) != SL_OK)
        fail_msg("%s: %s", when, error.text);
    enum sl_when_nearest got = sl_when_filter(compiled, &out);
    if (got != nearest || !sl_span_is(sl_buffer_span(&out), json(text)))
        fail_msg("%s: %d, %.*s", when, (int)got, SL_ARG(sl_buffer_span(&out)));
    if (got != SL_WHEN_NO_FILTER)
        assert_int_equal(sl_pattern_compile(sl_buffer_span(&out), arena, &compiled, &error), SL_OK);
    sl_buffer_clean_up(&out);
    sl_arena_destroy(arena);
}

static void exact(const char *when, const char *text)
{
    filter_is(when, SL_WHEN_FILTER_EXACT, text);
}

static void wider(const char *when, const char *text)
{
    filter_is(when, SL_WHEN_FILTER_WIDER, text);
}

static void none(const char *when)
{
    filter_is(when, SL_WHEN_NO_FILTER, "");
}

#define NEW(attributes) "{'dynamodb':{'NewImage':{" attributes "}}}"
/* A single value, in a set, in a list. */
#define THREE(tag, tests) "{'" tag "':[" tests "]},{'" tag "S':[" tests "]},{'L':{'" tag "':[" tests "]}}"
#define TWO(tag, tests)   "{'" tag "':[" tests "]},{'L':{'" tag "':[" tests "]}}"
#define OR(list)          "{'$or':[" list "]}"
#define X                 OR(THREE("S", "'x'"))
#define ANY               "{'exists':true}"
/* A step into a map, or into the maps of a list. */
#define STEP(inside) OR("{'M':{" inside "}},{'L':{'M':{" inside "}}}")

static void members_beside_the_items_are_said(void **state)
{
    (void)state;
    none("{}");
    exact("{'events':['INSERT','REMOVE']}", "{'eventName':['INSERT','REMOVE']}");
    exact("{'events':['MODIFY']}", "{'eventName':['MODIFY']}");
    exact("{'expired':true}", "{'eventName':['REMOVE'],'userIdentity':{'type':['Service'],"
                              "'principalId':['dynamodb.amazonaws.com']}}");
    wider("{'expired':'any'}", "{'eventName':['REMOVE']}");
    none("{'changed':['a']}");
    wider("{'events':['MODIFY'],'changed':['a']}", "{'eventName':['MODIFY']}");
    wider("{'events':['MODIFY'],'pattern':[{'eventID':['x']}]}", "{'eventName':['MODIFY']}");
    wider("{'events':['INSERT'],'item':{'a':[{'anything-but':'x'}]}}", "{'eventName':['INSERT']}");
    exact("{'expired':true,'old_item':{'a':['x']}}",
          "{'eventName':['REMOVE'],'userIdentity':{'type':['Service'],"
          "'principalId':['dynamodb.amazonaws.com']},'dynamodb':{'OldImage':{'a':" X "}}}");
}

static void each_image_has_its_place(void **state)
{
    (void)state;
    exact("{'item':{'a':['x']}}", NEW("'a':" X));
    exact("{'old_item':{'a':['x']}}", "{'dynamodb':{'OldImage':{'a':" X "}}}");
    exact("{'keys':{'a':['x']},'item':{'b':['x']},'old_item':{'c':['x']}}",
          "{'dynamodb':{'Keys':{'a':{'S':['x']}},'NewImage':{'b':" X "},'OldImage':{'c':" X "}}}");
    wider("{'keys':{'a':[{'anything-but':'x'}]},'item':{'b':['x']}}", NEW("'b':" X));
    wider("{'item':{'a':[{'anything-but':'x'}]},'old_item':{'b':['x']}}",
          "{'dynamodb':{'OldImage':{'b':" X "}}}");
    exact("{'events':['MODIFY'],'item':{'a':['x']}}",
          "{'eventName':['MODIFY'],'dynamodb':{'NewImage':{'a':" X "}}}");
}

static void each_test_is_said_as_lambda_knows_it(void **state)
{
    (void)state;
    exact("{'item':{'a':['']}}", NEW("'a':" OR(THREE("S", "''"))));
    exact("{'item':{'a':['x',{'prefix':'y'},{'suffix':'z'},{'equals-ignore-case':'Q'}]}}",
          NEW("'a':" OR(THREE("S", "'x',{'prefix':'y'},{'suffix':'z'},{'equals-ignore-case':'q'}"))));
    exact("{'item':{'a':[true]}}", NEW("'a':" OR(TWO("BOOL", "true"))));
    exact("{'item':{'a':[false]}}", NEW("'a':" OR(TWO("BOOL", "false"))));
    exact("{'item':{'a':[null]}}", NEW("'a':" OR(TWO("NULL", "true"))));
    exact("{'item':{'a':[{'base64':'AA=='}]}}", NEW("'a':" OR(THREE("B", "'AA=='"))));
    wider("{'item':{'a':[1]}}", NEW("'a':" OR(THREE("N", ANY))));
    wider("{'item':{'a':[{'numeric':['=',1]}]}}", NEW("'a':" OR(THREE("N", ANY))));
    wider("{'item':{'a':[{'wildcard':'x*'}]}}", NEW("'a':" OR(THREE("S", ANY))));
    wider("{'item':{'a':[{'cidr':'10.0.0.0/8'}]}}", NEW("'a':" OR(THREE("S", ANY))));
    wider("{'item':{'a':[{'prefix':{'equals-ignore-case':'x'}}]}}", NEW("'a':" OR(THREE("S", ANY))));
    wider("{'item':{'a':[{'suffix':{'equals-ignore-case':'x'}}]}}", NEW("'a':" OR(THREE("S", ANY))));
    /* In UTF-16, as Lambda may compare, such a letter is two units. */
    wider("{'item':{'a':[{'equals-ignore-case':'\xF0\x9F\x98\x80'}]}}", NEW("'a':" OR(THREE("S", ANY))));
    exact("{'item':{'a':[{'equals-ignore-case':'\xE4\xB8\xAD'}]}}",
          NEW("'a':" OR(THREE("S", "{'equals-ignore-case':'\xE4\xB8\xAD'}"))));
    wider("{'item':{'a':['x',1,true]}}",
          NEW("'a':" OR(THREE("S", "'x'") "," THREE("N", ANY) "," TWO("BOOL", "true"))));
    /* A pattern takes an address in any spelling. */
    wider("{'item':{'a':['10.1.2.3']}}", NEW("'a':" OR(THREE("S", "'10.1.2.3'"))));
    wider("{'item':{'a':['x','::1']}}", NEW("'a':" OR(THREE("S", "'x','::1'"))));
    exact("{'item':{'a':['10.1.2.3x']}}", NEW("'a':" OR(THREE("S", "'10.1.2.3x'"))));
}

static void a_type_is_asked_for_by_its_tag(void **state)
{
    (void)state;
    static const char *const single[] = {"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS"};
    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++)
        exact(json_printf("{'item':{'a':[{'type':'%s'}]}}", single[i]),
              json_printf(NEW("'a':{'%s':[" ANY "]}"), single[i]));
    none("{'item':{'a':[{'type':'L'}]}}");
    none("{'item':{'a':[{'type':'M'}]}}");
    none("{'item':{'a':['x',{'type':'L'}]}}");
    exact("{'item':{'a':[{'type':'S'},{'type':'BOOL'}]}}",
          NEW("'a':" OR("{'S':[" ANY "]},{'BOOL':[" ANY "]}")));
    exact("{'item':{'a':['x',{'type':'SS'}]}}", NEW("'a':" OR(THREE("S", "'x'") ",{'SS':[" ANY "]}")));
    static const char *const keys[] = {"S", "N", "B"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        exact(json_printf("{'keys':{'a':[{'type':'%s'}]}}", keys[i]),
              json_printf("{'dynamodb':{'Keys':{'a':{'%s':[" ANY "]}}}}", keys[i]));
}

static void a_key_has_one_single_value(void **state)
{
    (void)state;
    exact("{'keys':{'a':['x']}}", "{'dynamodb':{'Keys':{'a':{'S':['x']}}}}");
    wider("{'keys':{'a':[1]}}", "{'dynamodb':{'Keys':{'a':{'N':[" ANY "]}}}}");
    exact("{'keys':{'a':[{'base64':'AA=='}]}}", "{'dynamodb':{'Keys':{'a':{'B':['AA==']}}}}");
    wider("{'keys':{'a':['x',2]}}", "{'dynamodb':{'Keys':{'a':" OR("{'S':['x']},{'N':[" ANY "]}") "}}}");
    wider("{'keys':{'a':[{'prefix':'p'}],'b':[5]}}",
          "{'dynamodb':{'Keys':{'a':{'S':[{'prefix':'p'}]},'b':{'N':[" ANY "]}}}}");
    none("{'keys':{'a':[true]}}");
    none("{'keys':{'a':[null,'x']}}");
    none("{'keys':{'a.b':['x']}}");
}

static void absence_and_several_types_cannot_be_said(void **state)
{
    (void)state;
    none("{'item':{'a':[{'exists':true}]}}");
    none("{'item':{'a':[{'exists':false}]}}");
    none("{'item':{'a':[{'exists':false},'x']}}");
    none("{'item':{'a':[{'anything-but':'x'}]}}");
    none("{'item':{'a':['x',{'anything-but':'y'}]}}");
    none("{'item':{'$or':[{'b':['x']},{'c':['y']}]}}");
    wider("{'item':{'a':['x'],'b':[{'exists':false}]}}", NEW("'a':" X));
    wider("{'item':{'b':[{'exists':false}],'a':['x']}}", NEW("'a':" X));
    wider("{'item':{'b':['x'],'a':[{'exists':false}],'c':['x']}}", NEW("'b':" X ",'c':" X));
    wider("{'item':{'a':['x'],'$or':[{'b':['x']},{'c':['y']}]}}", NEW("'a':" X));
    wider("{'item':{'a':['x'],'a.b':['y']}}", NEW("'a':" X));
    wider("{'item':{'a':['x'],'a':{'$or':[{'b':['x']},{'c':['y']}]}}}", NEW("'a':" X));
}

static void steps_lead_into_maps_and_the_maps_of_lists(void **state)
{
    (void)state;
#define B  "'b':" X
#define BC "'b':" STEP("'c':" X)
    exact("{'item':{'a.b':['x']}}", NEW("'a':" STEP(B)));
    exact("{'item':{'a.b':['x'],'a.c':['x']}}", NEW("'a':" STEP(B ",'c':" X)));
    exact("{'item':{'a.b.c':['x']}}", NEW("'a':" STEP(BC)));
    exact("{'item':{'a.b.c.d':['x']}}", NEW("'a':" STEP("'b':" STEP("'c':" STEP("'d':" X)))));
    none("{'item':{'a.b.c.d.e':['x']}}");
    wider("{'item':{'a.b.c.d.e':['x'],'a.b':['x']}}", NEW("'a':" STEP(B)));
    wider("{'item':{'a.b':['x'],'a.c':[{'exists':false}]}}", NEW("'a':" STEP(B)));
    none("{'item':{'a.b':[{'exists':false}]}}");
    wider("{'item':{'a':{'b':['x'],'$or':[{'c':['x']},{'d':['x']}]}}}", NEW("'a':" STEP(B)));
}

/* More of them are left out: AWS takes 1,000 combinations of "$or". */
static void a_filter_has_three_attributes(void **state)
{
    (void)state;
    exact("{'item':{'a':['x'],'b':['x'],'c':['x']}}", NEW("'a':" X ",'b':" X ",'c':" X));
    wider("{'item':{'a':['x'],'b':['x'],'c':['x'],'d':['x']}}", NEW("'a':" X ",'b':" X ",'c':" X));
    wider("{'item':{'a.b':['x'],'b':['x'],'c':['x'],'d':['x']}}", NEW("'a':" STEP(B) ",'b':" X ",'c':" X));
    exact("{'keys':{'a':['x']},'item':{'b':['x']},'old_item':{'c':['x']}}",
          "{'dynamodb':{'Keys':{'a':{'S':['x']}},'NewImage':{'b':" X "},'OldImage':{'c':" X "}}}");
    wider("{'keys':{'a':['x']},'item':{'b':['x'],'c':['x']},'old_item':{'d':['x']}}",
          "{'dynamodb':{'Keys':{'a':{'S':['x']}},'NewImage':{'b':" X ",'c':" X "}}}");
}

static void names_that_would_be_operators_are_left_out(void **state)
{
    (void)state;
    exact("{'item':{'prefix':['x']}}", NEW("'prefix':" X));
    none("{'item':{'`$or`':['x']}}");
    wider("{'item':{'`$or`':['x'],'a':['x']}}", NEW("'a':" X));
    static const char *const reserved[] = {"prefix", "exists", "=", "ip-address-not-in-range", "regex"};
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        none(json_printf("{'item':{'a.%s':['x']}}", reserved[i]));
        wider(json_printf("{'item':{'a.%s':['x'],'a.b':['x']}}", reserved[i]), NEW("'a':" STEP(B)));
    }
    exact("{'item':{'a\\u0022\xC3\xA9':['q\\u0022']}}", NEW("'a\\\"\xC3\xA9':" OR(THREE("S", "'q\\\"'"))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_beside_the_items_are_said),
        cmocka_unit_test(each_image_has_its_place),
        cmocka_unit_test(each_test_is_said_as_lambda_knows_it),
        cmocka_unit_test(a_type_is_asked_for_by_its_tag),
        cmocka_unit_test(a_key_has_one_single_value),
        cmocka_unit_test(absence_and_several_types_cannot_be_said),
        cmocka_unit_test(steps_lead_into_maps_and_the_maps_of_lists),
        cmocka_unit_test(a_filter_has_three_attributes),
        cmocka_unit_test(names_that_would_be_operators_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
