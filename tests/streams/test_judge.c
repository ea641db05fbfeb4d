/* What the judge says of patterns with one test, against the matcher: a pattern that matches a record is
 * never called one that matches none; a test for another kind of value always is. */
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

int main(void)
{
    const struct CMUnitTest list[] = {
        cmocka_unit_test(what_matches_is_never_found_fault_with),
        cmocka_unit_test(another_kind_of_value_is_found),
    };
    return cmocka_run_group_tests(list, NULL, NULL);
}
