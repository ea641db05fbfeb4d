/* What the judge says of patterns. Of those with one test, against the matcher: a pattern that matches a
 * record is never called one that matches none; a test for another kind of value always is. Then each finding
 * by name. */
#include "streams/decode/batch.h"
#include "streams/when/when.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

enum kind { TEXT, WORD, NUMBER, S, N, BOOL, NUL, KINDS };

/* A field: the pattern around a list of tests, the record around a value, and values that it can have. */
struct field {
    enum kind kind;
    const char *pattern, *record;
    const char *values[6];
};

#define IMAGE(tag)                                                                                           \
    "{'dynamodb':{'NewImage':{'a':{'" tag "':%s}}}}",                                                        \
        "{'eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'x'}},'NewImage':{'a':{'" tag "':%s}}}}"
#define TOP(name) "{'" name "':%s}", "{'eventID':'e','" name "':%s,'dynamodb':{'Keys':{'PK':{'S':'x'}}}}"
#define INNER(name)                                                                                          \
    "{'dynamodb':{'" name "':%s}}",                                                                          \
        "{'eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'x'}},'" name "':%s}}"

static const struct field fields[] = {
    {WORD, TOP("eventName"), {"'INSERT'", "'MODIFY'", "'REMOVE'"}},
    {TEXT,
     "{'awsRegion':%s}",
     "{'eventName':'INSERT','awsRegion':%s,'dynamodb':{'Keys':{'PK':{'S':'x'}}}}",
     {"'eu-west-1'", "'us-east-1'", "'x'"}},
    {TEXT, INNER("SequenceNumber"), {"'1'", "'26'", "'100000000000000000000'"}},
    {NUMBER, INNER("SizeBytes"), {"1", "26", "400000"}},
    {WORD, INNER("StreamViewType"), {"'KEYS_ONLY'", "'NEW_IMAGE'", "'OLD_IMAGE'", "'NEW_AND_OLD_IMAGES'"}},
    {S, IMAGE("S"), {"''", "'x'", "'26'", "'INSERT'", "'eu-west-1'"}},
    {N, IMAGE("N"), {"'1'", "'26'", "'-3'", "'2.5'"}},
    {BOOL, IMAGE("BOOL"), {"true", "false"}},
    {NUL, IMAGE("NULL"), {"true"}},
};

/* Tests of one kind of value. */
static const struct {
    const char *list;
    bool can[KINDS]; /* match a value of the kind (of an N: any text) */
} tests[] = {
    {"['x']", {true, false, false, true, false, false, false}},
    {"['26']", {true, false, false, true, true, false, false}},
    {"[26]", {false, false, true, false, false, false, false}},
    {"[true]", {false, false, false, false, false, true, true}},
    {"[false]", {false, false, false, false, false, true, false}},
    {"[null]", {false, false, false, false, false, false, false}},
    {"[{'numeric':['\\u003e',0]}]", {false, false, true, false, false, false, false}},
    {"[{'prefix':'e'}]", {true, false, false, true, true, false, false}},
    {"[{'suffix':'1'}]", {true, false, false, true, true, false, false}},
    {"[{'exists':true}]", {true, true, true, true, true, true, true}},
    {"['x',26]", {true, false, true, true, false, false, false}},
};

static void note(void *arg, const char *text)
{
    (void)text;
    ++*(size_t *)arg;
}

static size_t findings(const char *pattern)
{
    size_t n = 0;
    struct sl_error error = SL_NO_ERROR;
    if (sl_pattern_judge(sl_span_str(pattern), note, &n, &error) != SL_OK)
        fail_msg("%s: %s", pattern, error.text);
    return n;
}

static const char *filled(const char *form, const char *with)
{
    const char *at = strstr(form, "%s");
    return json_printf("%.*s%s%s", (int)(at - form), form, with, at + 2);
}

static bool matches(const char *pattern, const char *record)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_decode_options options = {.any_shape = true};
    struct sl_batch batch;
    struct sl_when *when;
    struct sl_error error = SL_NO_ERROR;
    if (sl_batch_decode(sl_span_str(record), arena, &options, &batch, &error) != SL_OK)
        fail_msg("%s: %s", record, error.text);
    if (sl_pattern_compile(sl_span_str(pattern), arena, &when, &error) != SL_OK)
        fail_msg("%s: %s", pattern, error.text);
    bool is = sl_when_match(when, sl_batch_record(&batch, 0), arena);
    sl_arena_destroy(arena);
    return is;
}

static bool matches_any(const struct field *f, const char *pattern)
{
    bool any = false;
    for (size_t v = 0; f->values[v]; v++)
        any = matches(pattern, filled(f->record, f->values[v])) || any;
    return any;
}

/* The matcher's word on all values that the field is known to have. */
static void what_matches_is_never_found_fault_with(void **state)
{
    (void)state;
    static const char *const more[] = {"[{'exists':false}]",      "[{'anything-but':['x']}]",
                                       "[{'anything-but':[26]}]", "[{'equals-ignore-case':'insert'}]",
                                       "[{'wildcard':'*1*'}]",    "[{'exists':false},'x']",
                                       "[{'exists':false},26]",   "[{'anything-but':{'prefix':'q'}}]"};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        for (size_t k = 0; k < sizeof(tests) / sizeof(tests[0]) + sizeof(more) / sizeof(more[0]); k++) {
            size_t n = sizeof(tests) / sizeof(tests[0]);
            const char *pattern = filled(fields[i].pattern, k < n ? tests[k].list : more[k - n]);
            if (matches_any(&fields[i], pattern) && findings(pattern))
                fail_msg("%s matches, and the judge says that it never does", pattern);
        }
    }
}

/* An image is one where records have it: the same names elsewhere lead to nothing. */
static void images_elsewhere_are_absent(void **state)
{
    (void)state;
    static const char *const outer[] = {"userIdentity", "dynamodB", "eventName", "Keys"};
    static const char *const images[] = {"Keys", "NewImage", "OldImage"};
    const char *image = "{'PK':{'S':'x'}}";
    const char *record =
        json_printf("{'eventName':'MODIFY','userIdentity':{'type':'t'},'dynamodb':{'Keys':%s,"
                    "'NewImage':%s,'OldImage':%s}}",
                    image, image, image);
    for (size_t i = 0; i < 3; i++) {
        assert_true(matches(json_printf("{'dynamodb':{'%s':{'PK':{'S':['x']}}}}", images[i]), record));
        for (size_t k = 0; k < 4; k++) {
            assert_false(
                matches(json_printf("{'%s':{'%s':{'PK':{'S':['x']}}}}", outer[k], images[i]), record));
            assert_true(matches(
                json_printf("{'%s':{'%s':{'PK':{'S':[{'exists':false}]}}}}", outer[k], images[i]), record));
        }
    }
}

static void another_kind_of_value_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        for (size_t k = 0; k < sizeof(tests) / sizeof(tests[0]); k++) {
            const char *pattern = filled(fields[i].pattern, tests[k].list);
            if ((findings(pattern) == 0) != tests[k].can[fields[i].kind])
                fail_msg("%s: %zu findings", pattern, findings(pattern));
        }
}

/* ---- findings by name ---- */

static void keep(void *arg, const char *text)
{
    *(char **)arg = strdup(text);
}

/* The finding is this, NULL: there is none. As a route's condition, such a pattern is refused. */
static void finding_is(const char *pattern, const char *wanted)
{
    char *found = NULL;
    struct sl_error error = SL_NO_ERROR, why = SL_NO_ERROR;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *when;
    if (sl_pattern_judge(json_span(pattern), keep, &found, &error) != SL_OK)
        fail_msg("%s: %s", pattern, error.text);
    wanted = wanted ? json(wanted) : NULL;
    if ((found == NULL) != (wanted == NULL) || (found && strcmp(found, wanted) != 0))
        fail_msg("%s: %s", pattern, found ? found : "nothing");
    enum sl_status status =
        sl_when_compile(json_span(json_printf("{'pattern':[%s]}", pattern)), arena, &when, &why);
    assert_int_equal(status, wanted ? SL_REJECT : SL_OK);
    if (wanted && !strstr(why.text, wanted))
        fail_msg("%s: %s", pattern, why.text);
    assert_int_equal(sl_pattern_compile(json_span(pattern), arena, &when, &why), SL_OK); /* AWS takes it */
    sl_arena_destroy(arena);
    free(found);
}

#define NEVER ": can never match: "

static void fields_that_no_record_has_are_named(void **state)
{
    (void)state;
#define FIELDS                                                                                               \
    "; there are eventID, eventName, eventVersion, eventSource, awsRegion, eventSourceARN, userIdentity, "   \
    "dynamodb, "                                                                                             \
    "tableName, recordFormat"
    finding_is("{'eventNam':['INSERT']}",
               "eventNam" NEVER "no record has 'eventNam' here (did you mean 'eventName'?)" FIELDS);
    finding_is("{'colour':['x']}", "colour" NEVER "no record has 'colour' here" FIELDS);
    finding_is("{'userIdentity':{'principal':['x']}}",
               "userIdentity.principal" NEVER
               "no record has 'principal' here (did you mean 'principalId'?); there are "
               "type, principalId, Type, PrincipalId");
    finding_is("{'$or':[{'eventNam':['x']},{'eventName':['INSERT']}]}",
               "$or[0].eventNam" NEVER "no record has 'eventNam' here (did you mean 'eventName'?)" FIELDS);
    finding_is("{'a':{'$or':['x']}}", "a.$or" NEVER "no record has 'a' here" FIELDS);
    finding_is("{'dynamodb':['x']}", "dynamodb" NEVER "dynamodb is no value: name a field of it");
    finding_is("{'userIdentity':['x']}", "userIdentity" NEVER "userIdentity is no value: name a field of it");
    finding_is("{'dynamodb':{'SizeBytes':{'x':[5]}}}",
               "dynamodb.SizeBytes.x" NEVER "SizeBytes is a single value; nothing is below it");
    finding_is("{'tableName':{'x':['t']}}",
               "tableName.x" NEVER "tableName is a single value; nothing is below it");
    static const char *const good[] = {
        "{'tableName':['t']}",
        "{'recordFormat':['x']}",
        "{'eventVersion':['1.1']}",
        "{'userIdentity':[{'exists':false}]}",
        "{'userIdentity':{'type':['Service'],'principalId':['dynamodb.amazonaws.com']}}",
        "{'userIdentity':{'Type':['Service'],'PrincipalId':['dynamodb.amazonaws.com']}}"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        finding_is(good[i], NULL);
}

static void values_that_no_field_has_are_named(void **state)
{
    (void)state;
#define EVENTS "eventName is INSERT, MODIFY, REMOVE"
    finding_is("{'eventName':['INSRT']}", "eventName" NEVER EVENTS "; did you mean INSERT");
    finding_is("{'eventName':['UPDATE']}", "eventName" NEVER EVENTS);
    finding_is("{'eventName':['INSERT','UPDATE']}", "eventName" NEVER EVENTS);
    finding_is("{'eventName':[{'exists':false},5]}", "eventName" NEVER EVENTS);
    finding_is("{'eventName':[{'prefix':'U'}]}", "eventName" NEVER EVENTS);
    finding_is("{'eventName':[{'anything-but':['INSERT','MODIFY','REMOVE']}]}", "eventName" NEVER EVENTS);
    finding_is("{'eventSource':['aws:kinesis']}", "eventSource" NEVER "eventSource is aws:dynamodb");
    finding_is("{'userIdentity':{'type':['service']}}",
               "userIdentity.type" NEVER "type is Service; did you mean Service");
    finding_is(
        "{'dynamodb':{'StreamViewType':['NEW_IMAGES']}}",
        "dynamodb.StreamViewType" NEVER
        "StreamViewType is KEYS_ONLY, NEW_IMAGE, OLD_IMAGE, NEW_AND_OLD_IMAGES; did you mean NEW_IMAGE");
    finding_is("{'dynamodb':{'ApproximateCreationDateTimePrecision':['SECOND']}}",
               "dynamodb.ApproximateCreationDateTimePrecision" NEVER
               "ApproximateCreationDateTimePrecision is MILLISECOND, MICROSECOND");
    finding_is("{'eventName':[5]}", "eventName" NEVER "eventName is a text");
    finding_is("{'eventID':[1]}", "eventID" NEVER "eventID is a text");
    finding_is("{'dynamodb':{'SequenceNumber':[5]}}",
               "dynamodb.SequenceNumber" NEVER "SequenceNumber is a text");
    finding_is("{'dynamodb':{'SizeBytes':['x']}}", "dynamodb.SizeBytes" NEVER "SizeBytes is a number");
    finding_is("{'dynamodb':{'SizeBytes':[{'prefix':'5'}]}}",
               "dynamodb.SizeBytes" NEVER "SizeBytes is a number");
    static const char *const good[] = {"{'eventName':['INSERT','MODIFY','REMOVE']}",
                                       "{'eventName':[{'prefix':'I'}]}",
                                       "{'dynamodb':{'SizeBytes':[5,{'numeric':['\\u003e',5]}]}}",
                                       "{'dynamodb':{'ApproximateCreationDateTime':[5]}}",
                                       "{'dynamodb':{'ApproximateCreationDateTime':['x']}}",
                                       "{'dynamodb':{'StreamViewType':['NEW_AND_OLD_IMAGES']}}"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        finding_is(good[i], NULL);
}

#define ITEM(inside) "{'dynamodb':{'NewImage':{" inside "}}}"
#define AT           "dynamodb.NewImage."

static void attributes_need_a_type(void **state)
{
    (void)state;
#define NO_TYPE                                                                                              \
    NEVER "a type (S, N, B, BOOL, NULL, SS, NS, BS, L or M) is missing between the "                         \
          "attribute\\'s name and its value"
    finding_is("{'dynamodb':{'NewImage':['x']}}",
               "dynamodb.NewImage" NEVER "an image is no value: name an attribute and its type");
    finding_is(ITEM("'a':['x']"), AT "a" NO_TYPE);
    finding_is(ITEM("'a':{'s':['x']}"), AT "a.s" NO_TYPE);
    finding_is(ITEM("'a':{'L':{'x':['x']}}"), AT "a.L.x" NO_TYPE);
    finding_is(ITEM("'a':{'M':{'b':['x']}}"), AT "a.M.b" NO_TYPE);
    finding_is(ITEM("'a.M.b':['x']"), AT "a.M.b" NO_TYPE);
    finding_is(ITEM("'a':{'S':{'x':['x']}}"), AT "a.S.x" NEVER "nothing is below a value that is no L or M");
    finding_is(ITEM("'a':{'BS':{'x':['x']}}"),
               AT "a.BS.x" NEVER "nothing is below a value that is no L or M");
    finding_is(ITEM("'a':{'L':['x']}"),
               AT "a.L" NEVER "the elements of a list have types: write {'L': {'S': [...]}}");
    finding_is(ITEM("'a':{'M':['x']}"),
               AT "a.M" NEVER "a map has members with types: write {'M': {'name': {'S': [...]}}}");
    static const char *const keys[] = {"'a':{'BOOL':[true]}", "'a':{'SS':['x']}",
                                       "'a':{'M':{'b':{'S':['x']}}}"};
    static const char *const paths[] = {"a.BOOL", "a.SS", "a.M.b.S"};
    for (size_t i = 0; i < 3; i++)
        finding_is(json_printf("{'dynamodb':{'Keys':{%s}}}", keys[i]),
                   json_printf("dynamodb.Keys.%s" NEVER "a key attribute is an S, an N or a B", paths[i]));
    static const char *const good[] = {"{'dynamodb':{'NewImage':[{'exists':false}]}}",
                                       ITEM("'a':[{'exists':false}]"),
                                       ITEM("'a':{'S':['x']}"),
                                       ITEM("'a':{'L':{'S':['x']}}"),
                                       ITEM("'a':{'M':{'b':{'BOOL':[true]}}}"),
                                       ITEM("'a':{'L':{'L':{'NULL':[true]}}}"),
                                       ITEM("'a':{'M':{'b':{'L':{'M':{'c':{'SS':['1']}}}}}}"),
                                       "{'dynamodb':{'Keys':{'a':{'B':['AA==']}}}}",
                                       "{'dynamodb.NewImage.a.S':['x']}",
                                       "{'dynamodb.NewImage.a':{'S':['x']}}",
                                       ITEM("'a.b':{'S':['x']}"),
                                       ITEM("'a.M.b':{'S':['x']}"),
                                       ITEM("'a.M.b.S':['x']"),
                                       ITEM("'a.b.c.S':['x']"),
                                       ITEM("'':{'S':['x']}"),
                                       "{'dynamodb':{'Keys':{'a.L':{'S':['x']}}}}"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        finding_is(good[i], NULL);
}

static void values_of_another_kind_are_named(void **state)
{
    (void)state;
#define NO_NUMBER                                                                                            \
    NEVER "the value of an N is a string in the record: 'numeric' and bare "                                 \
          "numbers match none. List the values ('N': "                                                       \
          "['1', '2']); a route\\'s 'item' compares by value"
    finding_is(ITEM("'a':{'N':[5]}"), AT "a.N" NO_NUMBER);
    finding_is(ITEM("'a':{'NS':[5]}"), AT "a.NS" NO_NUMBER);
    finding_is(ITEM("'a':{'N':['x']}"), AT "a.N" NO_NUMBER);
    finding_is(ITEM("'a':{'N':[{'numeric':['=',1]}]}"), AT "a.N" NO_NUMBER);
    finding_is(ITEM("'a':{'S':[5]}"), AT "a.S" NEVER "the value is a string in the record");
    finding_is(ITEM("'a':{'SS':[5]}"), AT "a.SS" NEVER "the value is a string in the record");
    finding_is(ITEM("'a':{'B':[true]}"), AT "a.B" NEVER "the value is a string in the record");
    finding_is(ITEM("'a':{'BOOL':['true']}"), AT "a.BOOL" NEVER "a BOOL is true or false, without quotes");
    finding_is(ITEM("'a':{'NULL':[false]}"), AT "a.NULL" NEVER "the value of a NULL is true");
    finding_is(ITEM("'a':{'NULL':[null]}"), AT "a.NULL" NEVER "the value of a NULL is true");
    static const char *const good[] = {ITEM("'a':{'N':['5']}"),
                                       ITEM("'a':{'NS':['5']}"),
                                       ITEM("'a':{'N':['x','5']}"),
                                       ITEM("'a':{'N':[{'prefix':'1'}]}"),
                                       ITEM("'a':{'N':[{'exists':false},5]}"),
                                       ITEM("'a':{'BOOL':[false]}"),
                                       ITEM("'a':{'BOOL':[{'exists':false},'x']}"),
                                       ITEM("'a':{'NULL':[{'exists':false}]}"),
                                       ITEM("'a':{'SS':['x',5]}"),
                                       ITEM("'a':{'S':[{'exists':false},5]}")};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        finding_is(good[i], NULL);
}

static void images_that_the_event_does_not_have_are_named(void **state)
{
    (void)state;
    static const char never[] = "can never match: a REMOVE has no NewImage, and an INSERT no OldImage";
#define NEW_A(tests) "'NewImage':{'a':{'S':[" tests "]}}"
#define OLD_A(tests) "'OldImage':{'a':{'S':[" tests "]}}"
    finding_is("{'eventName':['REMOVE'],'dynamodb':{" NEW_A("'x'") "}}", never);
    finding_is("{'eventName':['INSERT'],'dynamodb':{" OLD_A("'x'") "}}", never);
    finding_is("{'eventName':['INSERT','REMOVE'],'dynamodb':{" OLD_A("'x'") "," NEW_A("'x'") "}}", never);
    finding_is("{'eventName':['REMOVE'],'dynamodb':{'NewImage':{'a':{'M':{'b':{'S':['x']}}}}}}", never);
    finding_is("{'$or':[{'eventName':['REMOVE']},{'eventName':['INSERT']}],'dynamodb':{" NEW_A("'x'") "}}",
               never);
    static const char *const good[] = {
        "{'eventName':['REMOVE'],'dynamodb':{" NEW_A("{'exists':false}") "}}",
        "{'eventName':['INSERT'],'dynamodb':{" OLD_A("{'exists':false}") "}}",
        "{'eventName':['REMOVE'],'dynamodb':{'NewImage':{'a':{'M':{'b':{'S':[{'exists':false}]}}}}}}",
        "{'eventName':['MODIFY'],'dynamodb':{" OLD_A("'x'") "," NEW_A("'x'") "}}",
        "{'eventName':['REMOVE'],'dynamodb':{" OLD_A("'x'") "}}",
        "{'eventName':['INSERT'],'dynamodb':{" NEW_A("'x'") "}}",
        "{'dynamodb':{" OLD_A("'x'") "," NEW_A("'x'") "}}"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        finding_is(good[i], NULL);
}

/* Of a path with more than 128 names nothing is said. */
static void a_path_that_is_too_long_is_not_judged(void **state)
{
    (void)state;
    for (int names = 126; names <= 130; names++) {
        struct sl_buffer b;
        sl_buffer_init(&b, 4096);
        sl_buffer_add_str(&b, "{'x");
        for (int i = 1; i < names; i++)
            sl_buffer_add_str(&b, ".x");
        sl_buffer_add(&b, "':['y']}", 9);
        assert_int_equal(findings(json(b.ptr)), names < 128);
        sl_buffer_clean_up(&b);
    }
}

int main(void)
{
    const struct CMUnitTest list[] = {
        cmocka_unit_test(what_matches_is_never_found_fault_with),
        cmocka_unit_test(images_elsewhere_are_absent),
        cmocka_unit_test(another_kind_of_value_is_found),
        cmocka_unit_test(fields_that_no_record_has_are_named),
        cmocka_unit_test(values_that_no_field_has_are_named),
        cmocka_unit_test(attributes_need_a_type),
        cmocka_unit_test(values_of_another_kind_are_named),
        cmocka_unit_test(images_that_the_event_does_not_have_are_named),
        cmocka_unit_test(a_path_that_is_too_long_is_not_judged),
    };
    return cmocka_run_group_tests(list, NULL, NULL);
}
