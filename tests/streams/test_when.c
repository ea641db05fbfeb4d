#include "base/json_write.h"
#include "streams/decode/batch.h"
#include "streams/when/when.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

/* What a record as Lambda delivers it has before and after its images. */
#define HEAD                                                                                                 \
    "{'eventID':'e1','eventName':'MODIFY','eventVersion':'1.1','eventSource':'aws:dynamodb',"                \
    "'awsRegion':'eu-central-1','dynamodb':{'ApproximateCreationDateTime':1693997155.0,"                     \
    "'Keys':{'PK':{'S':'C#1'},'SK':{'N':'7'}},"
#define TAIL                                                                                                 \
    "'SequenceNumber':'4421584500000000017450439091','SizeBytes':26,'StreamViewType':'NEW_AND_OLD_IMAGES'}," \
    "'eventSourceARN':'arn:aws:dynamodb:eu-central-1:111122223333:table/orders/stream/"                      \
    "2026-11-20T00:00:00.000'}"
#define RECORD(new_image) HEAD "'NewImage':{" new_image "},'OldImage':{'status':{'S':'PLACED'}}," TAIL

static const char order[] =
    RECORD("'status':{'S':'SHIPPED'},'total':{'N':'101'},'paid':{'BOOL':true},'note':{'NULL':true},"
           "'empty':{'S':''},'quoted':{'S':'say \\\"hi\\\"\\u00e9'},'tags':{'SS':['red','blu\\u0065']},"
           "'a.b':{'S':'dotted'},'blob':{'B':'AAEC'},'ip':{'S':'10.1.2.3'},"
           "'address':{'M':{'city':{'S':'M\\u00dcNCHEN'},'zip':{'N':'80331'}}},"
           "'lines':{'L':[{'M':{'sku':{'S':'A'},'qty':{'N':'1'}}},{'M':{'sku':{'S':'B'},'qty':{'N':'2'}}}]},"
           "'none':{'L':[]}");

/* The TTL's removal, the same in the AWS CLI's spelling, and a change with another service's mark. */
static const char expired[] = "{'eventID':'e2','eventName':'REMOVE',"
                              "'userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'},"
                              "'dynamodb':{'Keys':{'PK':{'S':'x'}},'SequenceNumber':'1'}}";
static const char dumped[] = "{'eventID':'e3','eventName':'REMOVE',"
                             "'userIdentity':{'PrincipalId':'dynamodb.amazonaws.com','Type':'Service'},"
                             "'dynamodb':{'Keys':{'PK':{'S':'x'}},'SequenceNumber':'1'}}";
static const char other[] = "{'eventID':'e4','eventName':'INSERT',"
                            "'userIdentity':{'type':'Serv\\u0069ce','principalId':'other.amazonaws.com'},"
                            "'dynamodb':{'Keys':{'PK':{'S':'x'}},'SequenceNumber':'1'}}";

static const struct sl_record *decode(struct sl_arena *arena, struct sl_span text, struct sl_batch *batch)
{
    struct sl_decode_options options = {.any_shape = true, .ttl_attribute = SL_LIT("expires")};
    if (sl_batch_decode(text, arena, &options, batch, NULL) != SL_OK || batch->n != 1)
        return NULL;
    return sl_batch_record(batch, 0);
}

/* Both texts have ' for ". */
static bool matches_with(enum sl_status (*compile)(struct sl_span, struct sl_arena *, struct sl_when **,
                                                   struct sl_error *),
                         const char *record, const char *condition)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_batch batch;
    struct sl_when *when;
    struct sl_error error = SL_NO_ERROR;
    const struct sl_record *r = decode(arena, json_span(record), &batch);
    assert_non_null(r);
    char *copy = strdup(json(condition)); /* nothing of it may be borrowed */
    if (compile(sl_span_str(copy), arena, &when, &error) != SL_OK)
        fail_msg("%s: %s", condition, error.text);
    free(copy);
    bool result = sl_when_match(when, r, arena);
    assert_int_equal(result, sl_when_match(when, r, arena));
    sl_arena_destroy(arena);
    return result;
}

static void yes(const char *record, const char *pattern)
{
    if (!matches_with(sl_pattern_compile, record, pattern))
        fail_msg("does not match: %s", pattern);
}

static void no(const char *record, const char *pattern)
{
    if (matches_with(sl_pattern_compile, record, pattern))
        fail_msg("matches: %s", pattern);
}

#define NEW(inside)   "{'dynamodb':{'NewImage':{" inside "}}}"
#define STATUS(tests) NEW("'status':{'S':[" tests "]}")

static void a_string_matches_the_same_text(void **state)
{
    (void)state;
    yes(order, STATUS("'SHIPPED'"));
    yes(order, STATUS("'LOST','\\u0053HIPPED'"));
    no(order, STATUS("'SHIPPE'"));
    no(order, STATUS("'shipped'"));
    no(order, NEW("'status':{'N':['SHIPPED']}"));
    no(order, NEW("'missing':{'S':['SHIPPED']}"));
    yes(order, NEW("'quoted':{'S':['say \\\"hi\\\"\xC3\xA9']}"));
    yes(order, NEW("'empty':{'S':['']}"));
    no(order, STATUS("''"));
    yes(order, NEW("'blob':{'B':['AAEC']}"));
    yes(order, NEW("'status':{'S':[{'exactly':'SHIPPED'}]}"));
    yes(order, NEW("'a.b':{'S':['dotted']}"));
    yes(order, NEW("'a':{'b':{'S':['dotted']}}"));
    yes(order, "{'dynamodb.NewImage.status':{'S':['SHIPPED']}}");
}

static void words_match_by_spelling_and_numbers_by_value(void **state)
{
    (void)state;
    yes(order, NEW("'paid':{'BOOL':[true]}"));
    no(order, NEW("'paid':{'BOOL':[false]}"));
    no(order, NEW("'paid':{'BOOL':['true']}"));
    yes(order, NEW("'note':{'NULL':[true]}"));
    no(order, NEW("'note':[null]"));
    yes(order, NEW("'total':{'N':['101']}"));
    no(order, NEW("'total':{'N':[101]}"));
    yes(order, "{'dynamodb':{'SizeBytes':[26]}}");
    yes(order, "{'dynamodb':{'SizeBytes':[26.0]}}");
    yes(order, "{'dynamodb':{'SizeBytes':[2.6e1]}}");
    no(order, "{'dynamodb':{'SizeBytes':['26']}}");
    no(order, "{'dynamodb':{'SizeBytes':[26.00000000000000000001]}}");
    yes(order, "{'dynamodb':{'ApproximateCreationDateTime':[1693997155]}}");
    no(order, "{'dynamodb':{'SizeBytes':[{'anything-but':26.0}]}}");
    no(order, "{'dynamodb':{'SizeBytes':[{'anything-but':[1,260e-1]}]}}");
    /* More digits than are compared by value: the text decides. */
#define LONG "1234567890123456789012345678901234567890"
    yes("{'eventName':'INSERT','n':" LONG ",'dynamodb':{'Keys':{'PK':{'S':'x'}}}}", "{'n':[" LONG "]}");
    no("{'eventName':'INSERT','n':" LONG "1,'dynamodb':{'Keys':{'PK':{'S':'x'}}}}", "{'n':[" LONG "]}");
    yes("{'eventName':'INSERT','userIdentity':null,'dynamodb':{'Keys':{'PK':{'S':'x'}}}}",
        "{'userIdentity':[null]}");
}

static void numeric_compares_json_numbers_only(void **state)
{
    (void)state;
    no(order, NEW("'total':{'N':[{'numeric':['>',100]}]}"));
    yes(order, "{'dynamodb':{'ApproximateCreationDateTime':[{'numeric':['>',1693997154,'<=',1693997155]}]}}");
    yes(order, "{'dynamodb':{'SizeBytes':[{'numeric':['=',2.6e1]}]}}");
    yes(order, "{'dynamodb':{'SizeBytes':[{'numeric':['\\u003e=',26]}]}}");
    no(order, "{'dynamodb':{'SizeBytes':[{'numeric':['>',26]}]}}");
    no(order, "{'dynamodb':{'SizeBytes':[{'numeric':['<',26]}]}}");
    yes(order, "{'dynamodb':{'SizeBytes':[{'numeric':['<=',26]}]}}");
    no(order, "{'dynamodb':{'SizeBytes':[{'numeric':['>',0,'<',26]}]}}");
    yes(order,
        "{'dynamodb':{'SizeBytes':[{'numeric':['>',25.999999999999999999,'<',26.000000000000000001]}]}}");
}

static void prefix_suffix_and_case_are_compared(void **state)
{
    (void)state;
    yes(order, STATUS("{'prefix':'SHIP'}"));
    no(order, STATUS("{'prefix':'HIP'}"));
    yes(order, STATUS("{'suffix':'PED'}"));
    no(order, STATUS("{'suffix':'PE'}"));
    yes(order, STATUS("{'equals-ignore-case':'shipped'}"));
    no(order, STATUS("{'equals-ignore-case':'shippe'}"));
    yes(order, STATUS("{'prefix':{'equals-ignore-case':'ship'}}"));
    yes(order, STATUS("{'suffix':{'equals-ignore-case':'pEd'}}"));
    no(order, STATUS("{'suffix':{'equals-ignore-case':'xped'}}"));
    yes(order, NEW("'address':{'M':{'city':{'S':[{'equals-ignore-case':'m\xC3\xBCnchen'}]}}}"));
    yes(order, NEW("'address':{'M':{'city':{'S':[{'suffix':{'equals-ignore-case':'\xC3\xBCnchen'}}]}}}"));
    no(order, NEW("'total':{'N':[{'prefix':'2'}]}"));
    no(order, NEW("'paid':{'BOOL':[{'prefix':'t'}]}"));
}

static void a_star_matches_any_text(void **state)
{
    (void)state;
    yes(order, STATUS("{'wildcard':'*'}"));
    yes(order, STATUS("{'wildcard':'S*P*D'}"));
    yes(order, STATUS("{'wildcard':'SHIPPED*'}"));
    no(order, STATUS("{'wildcard':'S*PD'}"));
    no(order, STATUS("{'wildcard':'SHIPPED*x'}"));
    yes(order, NEW("'empty':{'S':[{'wildcard':'*'}]}"));
    no(order, NEW("'empty':{'S':[{'wildcard':'*a'}]}"));
    const char *stars = RECORD("'status':{'S':'a*b\\\\'}");
    yes(stars, STATUS("{'wildcard':'a\\\\*b*'}"));
    yes(stars, STATUS("{'wildcard':'*\\\\\\\\'}"));
    no(stars, STATUS("{'wildcard':'a\\\\*'}"));
    no(order, STATUS("{'wildcard':'S\\\\*'}"));
}

static void an_address_matches_its_network(void **state)
{
    (void)state;
#define IP(network) NEW("'ip':{'S':[{'cidr':'" network "'}]}")
    yes(order, IP("10.0.0.0/8"));
    yes(order, IP("10.1.2.0/30"));
    no(order, IP("10.1.2.4/30"));
    yes(order, NEW("'ip':{'S':['10.1.2.3']}"));
    no(order, NEW("'ip':{'S':['10.1.2.4']}"));
    yes(order, IP("0.0.0.0/0"));
    no(order, IP("2001:db8::/32"));
    const char *six = RECORD("'ip':{'S':'2001:db8:1::5'}");
    yes(six, IP("2001:db8::/32"));
    no(six, IP("2001:db9::/32"));
    /* A text that is an address stands for it in every spelling, but not where texts are compared. */
    yes(six, NEW("'ip':{'S':['2001:0DB8:1:0:0:0:0:5']}"));
    no(six, NEW("'ip':{'S':['2001:db8:1::6']}"));
    no(six, NEW("'ip':{'S':[{'exactly':'2001:0DB8:1:0:0:0:0:5'}]}"));
    yes(six, NEW("'ip':{'S':[{'anything-but':'2001:0DB8:1:0:0:0:0:5'}]}"));
    no(order, STATUS("{'cidr':'0.0.0.0/0'}"));
    no(RECORD("'ip':{'S':'10.1.2.3\\u0000'}"), IP("10.0.0.0/8"));
    no(RECORD("'ip':{'S':''}"), IP("10.0.0.0/8"));
    no(RECORD("'ip':{'S':'0000:0000:0000:0000:0000:0000:0000:0000:0000:0000'}"), IP("::/0"));
}

static void exists_asks_for_leaves_only(void **state)
{
    (void)state;
    yes(order, STATUS("{'exists':true}"));
    no(order, STATUS("{'exists':false}"));
    /* Leaves only: a typed attribute is not a leaf, as recorded on AWS. */
    no(order, NEW("'status':[{'exists':true}]"));
    yes(order, NEW("'status':[{'exists':false}]"));
    yes(order, NEW("'missing':[{'exists':false}]"));
    yes(order, NEW("'missing':{'S':[{'exists':false}]}"));
    no(order, NEW("'missing':{'S':[{'exists':true}]}"));
    yes(order, STATUS("{'exists':false},'SHIPPED'"));
    yes(expired, STATUS("{'exists':false},'SHIPPED'"));
    no(order, STATUS("{'exists':false},'LOST'"));
    yes(order, "{'userIdentity':{'type':[{'exists':false}]}}");
    no(expired, "{'userIdentity':{'type':[{'exists':false}]}}");
    yes(order, NEW("'none':{'L':[{'exists':false}]}"));
    yes(order, NEW("'address':{'M':{'street':{'S':[{'exists':false}]},'zip':{'N':['80331']}}}"));
    no(order, NEW("'address':{'M':{'city':{'S':[{'exists':false}]},'zip':{'N':['80331']}}}"));
    no(order, NEW("'tags':{'SS':[{'exists':false}]}"));
    yes(RECORD("'tags':{'SS':[]}"), NEW("'tags':{'SS':[{'exists':false}]}"));
}

static void anything_but_matches_every_other_value(void **state)
{
    (void)state;
    yes(order, STATUS("{'anything-but':'LOST'}"));
    no(order, STATUS("{'anything-but':'SHIPPED'}"));
    no(order, STATUS("{'anything-but':['LOST','SHIPPED']}"));
    yes(order, STATUS("{'anything-but':['LOST','PLACED']}"));
    no(order, STATUS("{'anything-but':{'prefix':'SH'}}"));
    no(order, STATUS("{'anything-but':{'prefix':['x','SH']}}"));
    yes(order, STATUS("{'anything-but':{'suffix':['x','y']}}"));
    no(order, STATUS("{'anything-but':{'suffix':'ED'}}"));
    no(order, STATUS("{'anything-but':{'equals-ignore-case':['x','shipped']}}"));
    no(order, STATUS("{'anything-but':{'wildcard':'S*'}}"));
    no(order, NEW("'missing':{'S':[{'anything-but':'LOST'}]}"));
    yes(order, "{'dynamodb':{'SizeBytes':[{'anything-but':[25,27]}]}}");
    no(order, "{'dynamodb':{'SizeBytes':[{'anything-but':26}]}}");
    yes(order, NEW("'tags':{'SS':[{'anything-but':'red'}]}"));
    no(order, NEW("'tags':{'SS':[{'anything-but':['red','blue']}]}"));
}

static void the_tests_of_one_list_meet_in_one_element(void **state)
{
    (void)state;
    yes(order, NEW("'tags':{'SS':['blue']}"));
    no(order, NEW("'tags':{'SS':['green']}"));
    yes(order, NEW("'lines':{'L':{'M':{'sku':{'S':['B']}}}}"));
    yes(order, NEW("'lines':{'L':{'M':{'sku':{'S':['B']},'qty':{'N':['2']}}}}"));
    /* Not the SKU of one element and the quantity of another. */
    no(order, NEW("'lines':{'L':{'M':{'sku':{'S':['B']},'qty':{'N':['1']}}}}"));
    no(order, NEW("'lines':{'L':{'M':{'sku':{'S':['C']}}}}"));
    yes(order, NEW("'lines':{'L':{'M':{'sku':{'S':['B']},'x':{'S':[{'exists':false}]}}}}"));
    no(order, NEW("'none':{'L':{'S':[{'exists':true}]}}"));
}

/* Within an array, what is absent is asked of one element: of the one in which a path before it matched. */
static void absence_below_an_array_is_asked_in_the_order_of_paths(void **state)
{
    (void)state;
#define LIST(items) "{'eventName':'INSERT','f':[" items "],'dynamodb':{'Keys':{'PK':{'S':'x'}}}}"
    const char *list = LIST("{'m':'A','z':1},{'m':'B'},{'b':2,'m':'C'}");
    yes(list, "{'f':{'m':['B'],'z':[{'exists':false}]}}");
    no(list, "{'f':{'m':['A'],'z':[{'exists':false}]}}");
    no(list, "{'f':{'m':['B'],'b':[{'exists':false}]}}"); /* b comes before m: absent in all of them? */
    yes(list, "{'f':{'m':['B'],'c':[{'exists':false}]}}");
    no(list, "{'f':{'z':[{'exists':false}]}}");
    yes(list, "{'f':{'m':['A','B'],'z':[{'exists':false},7]}}");
    /* Arrays in arrays: a match in the inner one decides for both. */
    const char *nested = LIST("{'a':1,'g':[{'m':'A','z':1},{'m':'B'}]},{'a':2,'g':[{'m':'B','z':1}],'y':1}");
    yes(nested, "{'f':{'g':{'m':['B'],'z':[{'exists':false}]}}}");
    yes(nested, "{'f':{'a':[1],'g':{'m':['B'],'z':[{'exists':false}]},'y':[{'exists':false}]}}");
    no(nested, "{'f':{'a':[2],'g':{'m':['B'],'z':[{'exists':false}]}}}");
    no(nested, "{'f':{'a':[2],'g':{'m':['B']},'y':[{'exists':false}]}}");
    no(nested, "{'f':{'a':[1],'g':{'c':[{'exists':false}],'m':['B'],'n':[1]}}}");
    /* A plain value in an array is in none of its elements. */
    yes(LIST("'x',{'g':1},{'h':2}"), "{'f':['x']}");
    yes(LIST("{'g':1},'x'"), "{'f':['x'],'f.g':[1]}");
    no(LIST("{'g':1},'y'"), "{'f':['x'],'f.g':[1]}");
}

static void or_takes_any_and_the_last_repeat_counts(void **state)
{
    (void)state;
    yes(order, "{'$or':[{'eventName':['INSERT']},{'awsRegion':['eu-central-1']}]}");
    no(order, "{'$or':[{'eventName':['INSERT']},{'awsRegion':['us-east-1']}]}");
    no(order, "{'eventID':['e9'],'$or':[{'eventName':['MODIFY']},{'awsRegion':['us-east-1']}]}");
    yes(order, NEW("'$or':[{'status':{'S':['LOST']}},{'total':{'N':['101']}}]"));
    yes(order,
        "{'$or':[{'$or':[{'eventID':['a']},{'eventID':['e1']}]},{'eventID':['b']}],'eventName':['MODIFY']}");
    /* A field of that name where it cannot be an operator. If one cannot, none is. */
    no(order, "{'$or':['a','b']}");
    no(order, "{'eventName':['MODIFY'],'$or':[{'prefix':'a'},{'suffix':'b'}]}");
    yes(order, "{'eventName':['MODIFY'],'x':{'$or':[{'exists':false}]}}");
    yes(order, "{'$or':[{'exists':false}]}");
    yes(order, "{'$or':[{'exists':false},{'prefix':'a'}]}");
    /* AWS's own example of AND repeats "dynamodb"; of one path given twice the last one counts. */
    yes(order, "{'dynamodb':{'NewImage':{'status':{'S':['SHIPPED']}}},"
               "'dynamodb':{'NewImage':{'total':{'N':['101']}}}}");
    no(order,
       "{'dynamodb':{'NewImage':{'status':{'S':['LOST']}}},'dynamodb':{'NewImage':{'total':{'N':['101']}}}}");
    yes(order, "{'eventName':['INSERT'],'eventName':['MODIFY']}");
    yes(order, "{'eventID':['e1'],'awsRegion':['x'],'eventName':['INSERT'],'awsRegion':[{'prefix':'eu'}],"
               "'eventName':['MODIFY']}");
    no(order, "{'eventID':['e1'],'eventName':['MODIFY'],'eventName':['INSERT']}");
}

static void the_records_own_texts_are_matched(void **state)
{
    (void)state;
    yes(order, "{'eventName':['MODIFY'],'eventSource':['aws:dynamodb'],'eventVersion':['1.1']}");
    yes(order,
        "{'eventID':['e1'],'awsRegion':[{'prefix':'eu-'}],'eventSourceARN':[{'wildcard':'*/orders/*'}]}");
    yes(order, "{'dynamodb':{'StreamViewType':['NEW_AND_OLD_IMAGES'],'SequenceNumber':[{'prefix':'44'}]}}");
    no(expired, "{'dynamodb':{'StreamViewType':[{'anything-but':'x'}]}}");
    yes(expired, "{'dynamodb':{'StreamViewType':[{'exists':false}]}}");
    yes(order,
        "{'dynamodb':{'Keys':{'PK':{'S':['C#1']},'SK':{'N':['7']}},'OldImage':{'status':{'S':['PLACED']}}}}");
    yes(expired, "{'eventName':['REMOVE']}");
    yes(other, "{'eventName':['INSERT']}");
#define TTL "{'userIdentity':{'type':['Service'],'principalId':['dynamodb.amazonaws.com']}}"
    yes(expired, TTL);
    yes(dumped, TTL);
    no(order, TTL);
    no(other, TTL);
    yes(other, "{'userIdentity':{'type':['Service'],'principalId':['other.amazonaws.com']}}");
}

static void each_view_type_matches_its_own_name(void **state)
{
    (void)state;
    static const char *const views[] = {"KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"};
    for (size_t i = 0; i < 4; i++) {
        char record[512], pattern[128];
        snprintf(record, sizeof(record),
                 "{'eventName':'REMOVE','dynamodb':{'Keys':{'PK':{'S':'x'}},'StreamViewType':'%s'}}",
                 views[i]);
        for (size_t k = 0; k < 4; k++) {
            snprintf(pattern, sizeof(pattern), "{'dynamodb':{'StreamViewType':['%s']}}", views[k]);
            (i == k ? yes : no)(record, pattern);
        }
    }
}

static void user_identity_is_read_in_both_spellings(void **state)
{
    (void)state;
#define MARKED(identity)                                                                                     \
    "{'eventName':'REMOVE','userIdentity':" identity ",'dynamodb':{'Keys':{'PK':{'S':'x'}}}"                 \
    "}"
#define TYPE(test) "{'userIdentity':{'type':[" test "]}}"
    yes(MARKED("{'Type':'x'}"), TYPE("'x'"));
    yes(MARKED("{'type':'x','Type':'y'}"), TYPE("'x'"));
    no(MARKED("{'principalId':'x'}"), TYPE("'x'"));
    yes(MARKED("{'principalId':'x'}"), TYPE("{'exists':false}"));
    yes(MARKED("{}"), TYPE("{'exists':false}"));
    yes(MARKED("{'type':'a\\u0062'}"), TYPE("'ab'"));
}

static void odd_spellings_match_the_same(void **state)
{
    (void)state;
    /* Names spelled with escapes, spaces between everything, values far from what is asked for. */
    const char *odd = "{ 'eventName' : 'INSERT' , 'ext\\u0072a' : [ { '\\u0061' : 1 , 'b' : 2e400 } , [ ] ] "
                      ",'dynamodb' : { 'Keys' : { 'PK' : { 'S' : 'x' } } , 'NewImage' : { '\\u0061' : { "
                      "'\\u004D' : { 'b' : { 'S' : 'y' } } } } } }";
    yes(odd, "{'extra':{'a':[1],'b':[2e400]}}");
    no(odd, "{'extra':{'b':[{'numeric':['>',0]}]}}");
    no(odd, "{'extra':{'a':[2]}}");
    yes(odd, NEW("'a':{'M':{'b':{'S':['y']}}}"));
    no(odd, NEW("'a':{'M':{'b':{'S':['z']}}}"));
    no(expired, NEW("'a':{'M':{'b':{'S':['z']}}}"));
    yes(expired, NEW("'a':{'M':{'b':{'S':[{'exists':false}]}}}"));
    no(expired, STATUS("'SHIPPED'"));
    no(expired, STATUS("{'prefix':'SHIPPED'}"));
    yes(expired, STATUS("{'prefix':'SHIPPED'},{'exists':false}"));
}

static void export_lines_are_inserts(void **state)
{
    (void)state;
    yes("{'Item':{'PK':{'S':'x'}}}", "{'eventName':['INSERT'],'dynamodb':{'NewImage':{'PK':{'S':['x']}}}}");
}

/* ---- the members of `when` ---- */

static bool when(const char *record, const char *condition)
{
    return matches_with(sl_when_compile, record, condition);
}

static void every_member_of_when_must_hold(void **state)
{
    (void)state;
    const char *due = "{'eventName':'REMOVE','dynamodb':{'ApproximateCreationDateTime':1700000000,"
                      "'Keys':{'PK':{'S':'x'}},'OldImage':{'PK':{'S':'x'},'expires':{'N':'1600000000'}},"
                      "'SequenceNumber':'1'}}";
    assert_true(when(order, "{}"));
    assert_true(when(order, " { 'events' : [ 'INSERT' , 'MODIFY' ] } "));
    assert_false(when(order, "{'events':['INSERT','REMOVE']}"));
    assert_true(when(expired, "{'expired':true}"));
    assert_false(when(order, "{'expired':true}"));
    assert_false(when(due, "{'expired':true}"));
    assert_true(when(due, "{'expired':'any'}"));
    assert_true(when(expired, "{'expired':'any'}"));
    assert_true(when(order, "{'changed':['status']}"));
    assert_true(when(order, "{'changed':['PK','status']}"));
    assert_false(when(order, "{'changed':['nothing']}"));
    assert_true(when(order, "{'pattern':[{'eventName':['INSERT']},{'eventName':['MODIFY']}]}"));
    assert_false(when(order, "{'pattern':[{'eventName':['INSERT']},{'eventName':['REMOVE']}]}"));
    assert_false(when(order, "{'events':['INSERT','REMOVE'],'pattern':[{'eventName':['MODIFY','INSERT']}]}"));
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_batch batch;
    assert_true(sl_when_match(NULL, decode(arena, json_span(order), &batch), arena));
    sl_arena_destroy(arena);
}

/* ---- what is refused ---- */

/* `condition` is refused at the place of `at` in it, NULL: at its end. A "P" before it: it is a pattern. */
static void refused(const char *condition, const char *at, const char *text)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *out;
    struct sl_error error = SL_NO_ERROR;
    bool is_pattern = condition[0] == 'P';
    const char *whole = json(condition + is_pattern);
    enum sl_status status = is_pattern ? sl_pattern_compile(sl_span_str(whole), arena, &out, &error)
                                       : sl_when_compile(sl_span_str(whole), arena, &out, &error);
    assert_int_equal(status, SL_REJECT);
    const char *place = at ? strstr(whole, json(at)) : whole + strlen(whole);
    if (error.offset != (size_t)(place - whole) || !strstr(error.text, text))
        fail_msg("%s: byte %zu: %s: want byte %zu, \"%s\"", whole, error.offset, error.text,
                 (size_t)(place - whole), text);
    sl_arena_destroy(arena);
}

static void a_pattern_matches_a_plain_item(void **state)
{
    (void)state;
    static const char item[] =
        "{'status':{'S':'OPEN'},'eventName':{'S':'INSERT'},'n':{'N':'4'},'m':{'M':{'x':{'BOOL':true}}}}";
    static const struct {
        const char *pattern;
        bool matches;
    } cases[] = {
        {"{'status':{'S':['OPEN']}}", true},
        {"{'status':{'S':['SHUT']}}", false},
        {"{'status':{'S':['OPEN']},'n':{'N':['5']}}", false},
        {"{'$or':[{'n':{'N':['5']}},{'m':{'M':{'x':{'BOOL':[true]}}}}]}", true},
        {"{'eventName':{'S':['INSERT']}}", true},
        {"{'eventName':['INSERT']}", false},
        {"{'gone':{'S':[{'exists':false}]}}", true},
        {"{'dynamodb':{'NewImage':{'status':{'S':[{'exists':false}]}}}}", true},
        {"{'dynamodb':{'NewImage':{'status':{'S':['OPEN']}}}}", false},
        {"{'dynamodb':{'NewImage':{'m':{'M':{'x':{'BOOL':[true]}}}}}}", false},
        {"{'dynamodb':{'NewImage':{'m':{'M':{'x':{'BOOL':[{'exists':false}]}}}}}}", true},
        {"{'dynamodb':{'OldImage':{'m':{'M':{'x':{'BOOL':[true]}}}}}}", false},
        {"{'dynamodb':{'Keys':{'m':{'S':['x']}}}}", false},
        {"{'eventID':[{'exists':false}]}", true},
        {"{'eventID':[{'exists':false}],'eventName':['INSERT']}", false},
        {"{'eventID':[{'exists':false}],'status':{'S':['OPEN']}}", true},
        {"{'status':{'S':[{'anything-but':'SHUT'}]}}", true},
    };
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *compiled;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(sl_pattern_compile(json_span(cases[i].pattern), arena, &compiled, NULL), SL_OK);
        assert_int_equal(sl_pattern_match(compiled, json_span(item), arena), cases[i].matches);
    }
    sl_arena_destroy(arena);
}

static void mistakes_are_refused_at_their_byte(void **state)
{
    (void)state;
    refused("[]", "[]", "an object is expected");
    refused("{'events':['INSERT']", NULL, "the text ends too early");
    refused("{'event':[]}", "event",
            "event: not a condition (did you mean \"events\"?); use expired, events, changed, keys, item, "
            "old_item or pattern");
    refused("{'colour':[]}", "colour", "colour: not a condition; use");
    refused("{'expired':'any','events':['INSERT']}", "{", "no event can meet all of its members");
    refused("{'events':['REMOVE'],'item':{'a':[1]}}", "{", "a REMOVE has no item (use old_item)");
    refused("{'events':['INSERT'],'old_item':{'a':[1]}}", "{", "an INSERT no old_item");
    refused("{'events':['REMOVE'],'pattern':[{'eventName':['INSERT']}]}", "{", "no event can meet");
    refused("{'events':'INSERT'}", "'INSERT", "events: a list is expected");
    refused("{'events':[]}", "[]", "events: the list is empty");
    refused("{'events':['INSERT','UPDATE']}", "'UPDATE", "events[1]: \"UPDATE\" is not an event: \"INSERT\"");
    refused("{'events':['INSERT'],'events':['INSERT']}", "events':['INSERT']}", "events: given twice");
    refused("{'expired':false}", "false", "expired: true or \"any\" is expected");
    refused("{'expired':1}", "1", "expired: true");
    refused("{'changed':[1]}", "1", "changed[0]: the name of an attribute");
    refused("{'changed':'a'}", "'a'", "changed: a list");
    refused("{'pattern':{}}", "{}", "pattern: a list is expected");
    refused("{'pattern':['{}']}", "'{}", "pattern[0]: an object is expected");
    refused("{'pattern':[{'eventName':'INSERT'}]}", "'INSERT",
            "pattern[0].eventName: a list of values is expected");
    refused("P{}", "{}", "an empty object");
    refused("P{'dynamodb':{'Keys':{}}}", "{}}}", "dynamodb.Keys: an empty object");
    refused("P{'a':[]}", "[]", "a: the list is empty");
    refused("P{'a':[1,[2]]}", "[2]", "a[1]: a list inside a list");
    refused("P{'a':[{}]}", "{}]", "a[0]: an operator must be alone");
    refused("P{'a':[{'prefix':'a','suffix':'b'}]}", "{'prefix", "a[0]: an operator must be alone");
    refused("P{'a':[{'like':'a'}]}", "{'like",
            "a[0]: not an operator (did you mean \"wildcard\"?); use anything-but");
    refused("P{'a':[{'begins_with':'a'}]}", "{'beg", "a[0]: not an operator (did you mean \"prefix\"?)");
    refused("P{'a':[{'attribute_exists':true}]}", "{'att",
            "a[0]: not an operator (did you mean \"exists\"?)");
    refused("P{'a':[{'between':[1,2]}]}", "{'bet", "a[0]: not an operator (did you mean \"numeric\"?)");
    refused("P{'a':[{'nothing like it':1}]}", "{'not", "a[0]: not an operator; use anything-but");
    refused("P{'$or':[{'b':[1]}]}", "{'b", "$or[0]: not an operator. Here, \"$or\" is the name of a field");
    refused("P{'x':{'$or':['y']},'$or':[{'a':[1]},{'b':[2]}]}", "{'a'", "$or[0]: not an operator. Here");
    refused("P{'$or':[{'a':[1]},{'b':{'prefix':['c']}}]}", "{'a'", "$or[0]: not an operator. Here");
    refused("P{'$or':[{'a':[1]},{'regex':['c']}]}", "{'a'", "$or[0]: not an operator. Here");
    refused("P{'a':[{'prefix':1}]}", "1", "a[0].prefix: a string is expected");
    refused("P{'a':[{'prefix':{'suffix':'a'}}]}", "{'suffix",
            "a[0].prefix: a string or {\"equals-ignore-case\"");
    refused("P{'a':[{'wildcard':1}]}", "1", "a[0].wildcard: a string is expected");
    refused("P{'a':[{'cidr':1}]}", "1", "a[0].cidr: a string is expected");
    refused("P{'a':[{'equals-ignore-case':1}]}", "1", "a string is expected");
    refused("P{'$or':[{'a':[1]},{'b':1}]}", "1}]", "$or[1].b: a list of values");
    refused("P{'a':[{'exists':1}]}", "1", "a[0].exists: true or false");
    refused("P{'a':[{'wildcard':'a**'}]}", "'a**", "a[0].wildcard: two '*' in a row");
    refused("P{'a':[{'wildcard':'a\\\\b'}]}", "'a\\", "may follow a backslash");
    refused("P{'a':[{'cidr':'10.0.0.0/32'}]}", "'10", "a[0].cidr: a network such as");
    refused("P{'a':[{'cidr':'10.0.0.0'}]}", "'10", "a single address is written as a string");
    refused("P{'a':[{'cidr':'10.0.0/8'}]}", "'10", "a network such as");
    refused("P{'a':[{'cidr':'::/128'}]}", "'::", "a network such as");
    refused("P{'a':[{'cidr':'10.0.0.0/0024'}]}", "'10", "a network such as");
    refused("P{'a':[{'cidr':'10.0.0.0/3x'}]}", "'10", "a network such as");
    refused("P{'a':[{'cidr':'10.0.0.0/-1'}]}", "'10", "a network such as");
    refused("P{'a':[{'cidr':'::/999'}]}", "'::", "a network such as");
    refused("P{'a':[{'cidr':'/24'}]}", "'/", "a network such as");
    refused("P{'a':[{'cidr':''}]}", "''", "a network such as");
    refused("P{'a':[{'numeric':['',5]}]}", "['',", "comparisons such as");
    refused("P{'a':[{'numeric':['==',5]}]}", "['==", "comparisons such as");
    refused("P{'a':[{'numeric':['>=x',5]}]}", "['>=x", "comparisons such as");
    refused("P{'a':[{'numeric':[5,5]}]}", "[5,5", "comparisons such as");
    refused("P{'a':[{'numeric':['>',5,'<']}]}", "['>',5", "comparisons such as");
    refused("P{'a':[{'numeric':['>=',5,'<=',5]}]}", "['>=", "the lower bound is not below");
    refused("P{'a':[{'anything-but':null}]}", "null", "strings or numbers are expected");
    refused("P{'a':[{'anything-but':[[1]]}]}", "[1]", "strings or numbers are expected");
    refused("P{'a':[{'anything-but':{'prefix':'a','suffix':'b'}}]}", "{'prefix", "one of prefix, suffix");
    refused("P{'a':[{'prefix':{}}]}", "{}}", "a string or {\"equals-ignore-case\"");
    refused("P{'a':[{'prefix':{'equals-ignore-case':'a','x':'b'}}]}", "{'equals",
            "a string or {\"equals-ignore-case\"");
    refused("P{'a':[{'cidr':'10.0.0.0/'}]}", "'10", "a network such as");
    refused("P{'a':[{'cidr':'10.0.0.0\\u0000/8'}]}", "'10", "a network such as");
    refused("P{'a':[{'numeric':5}]}", "5", "a[0].numeric: comparisons such as");
    refused("P{'a':[{'numeric':[]}]}", "[]", "comparisons such as");
    refused("P{'a':[{'numeric':['=']}]}", "['=", "comparisons such as");
    refused("P{'a':[{'numeric':['!',5]}]}", "['!", "comparisons such as");
    refused("P{'a':[{'numeric':['>>',5]}]}", "['>>", "comparisons such as");
    refused("P{'a':[{'numeric':['<',5,'>',1]}]}", "['<", "comparisons such as");
    refused("P{'a':[{'numeric':['=',5,'<',9]}]}", "['=", "comparisons such as");
    refused("P{'a':[{'numeric':['>',5,'>',9]}]}", "['>", "comparisons such as");
    refused("P{'a':[{'numeric':['>',5,'<',5]}]}", "['>", "the lower bound is not below");
    refused("P{'a':[{'numeric':['>','5']}]}", "'5", "a number of at most 38 digits");
    refused("P{'a':[{'numeric':['>',1e200]}]}", "1e200", "a number of at most 38 digits");
    refused("P{'a':[{'anything-but':[]}]}", "[]", "a[0].anything-but: the list is empty");
    refused("P{'a':[{'anything-but':[1,'b']}]}", "'b", "strings or numbers, not both");
    refused("P{'a':[{'anything-but':true}]}", "true", "strings or numbers are expected");
    refused("P{'a':[{'anything-but':{'exists':true}}]}", "{'exists", "one of prefix, suffix");
    refused("P{'a':[{'anything-but':{'prefix':['a',1]}}]}", "1", "a string is expected");
    refused("P{'a':[{'anything-but':{'prefix':''}}]}", "''", "a[0].anything-but: an empty string is refused");
    refused("P{'a':[{'anything-but':{'suffix':['a','']}}]}", "'']", "an empty string is refused here");
    refused("P{'a':[{'anything-but':{'prefix':{'equals-ignore-case':'a'}}}]}", "{'equals",
            "a[0].anything-but: a string is expected");
    refused("P{'a':[1],'b':[{'wildcard':'*:*:*:*:*:event-bus/*'}]}", "{'a'",
            "the wildcards of one field are too");
    refused("P{'a':[{'anything-but':{}}]}", "{}", "one of prefix, suffix");
}

/* The buffer's text, NUL-terminated, with " for '. */
static struct sl_span quoted(struct sl_buffer *b)
{
    sl_buffer_add_char(b, '\0');
    json_quote(b->ptr);
    return sl_span_str(b->ptr);
}

static void limits_are_refused_by_name(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *out;
    struct sl_error error = SL_NO_ERROR;
    struct sl_buffer b;
    sl_buffer_init(&b, 1 << 20);
    for (int fields = 63; fields <= 65; fields++) {
        sl_buffer_reset(&b);
        for (int i = 0; i < fields; i++)
            sl_buffer_printf(&b, "%c'f%d':[{'exists':false}]", i ? ',' : '{', i);
        sl_buffer_add_char(&b, '}');
        assert_int_equal(sl_pattern_compile(quoted(&b), arena, &out, &error),
                         fields > 64 ? SL_REJECT : SL_OK);
        if (fields <= 64)
            yes(order, b.ptr);
    }
    assert_non_null(strstr(error.text, "f64: more than 64 fields"));
    sl_error_clear(&error);
    for (int ors = 9; ors <= 10; ors++) { /* 512 and 1024 combinations */
        sl_buffer_reset(&b);
        for (int i = 0; i < ors; i++)
            sl_buffer_printf(&b, "%c'$or':[{'a%d':[1]},{'b%d':[{'exists':false}]}]", i ? ',' : '{', i, i);
        sl_buffer_add_char(&b, '}');
        assert_int_equal(sl_pattern_compile(quoted(&b), arena, &out, &error), ors > 9 ? SL_REJECT : SL_OK);
        if (ors == 9)
            yes(order, b.ptr);
    }
    assert_non_null(strstr(error.text, "more than 1000 combinations"));
    sl_error_clear(&error);
    sl_buffer_reset(&b);
    for (int i = 0; i < 900; i++)
        sl_buffer_add_str(&b, "{'a':");
    sl_buffer_add_str(&b, "[1]");
    for (int i = 0; i < 900; i++)
        sl_buffer_add_char(&b, '}');
    assert_int_equal(sl_pattern_compile(quoted(&b), arena, &out, &error), SL_REJECT);
    assert_non_null(strstr(error.text, "nested deeper than 80"));
    sl_buffer_clean_up(&b);
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_string_matches_the_same_text),
        cmocka_unit_test(words_match_by_spelling_and_numbers_by_value),
        cmocka_unit_test(numeric_compares_json_numbers_only),
        cmocka_unit_test(prefix_suffix_and_case_are_compared),
        cmocka_unit_test(a_star_matches_any_text),
        cmocka_unit_test(an_address_matches_its_network),
        cmocka_unit_test(exists_asks_for_leaves_only),
        cmocka_unit_test(anything_but_matches_every_other_value),
        cmocka_unit_test(the_tests_of_one_list_meet_in_one_element),
        cmocka_unit_test(absence_below_an_array_is_asked_in_the_order_of_paths),
        cmocka_unit_test(or_takes_any_and_the_last_repeat_counts),
        cmocka_unit_test(the_records_own_texts_are_matched),
        cmocka_unit_test(each_view_type_matches_its_own_name),
        cmocka_unit_test(user_identity_is_read_in_both_spellings),
        cmocka_unit_test(odd_spellings_match_the_same),
        cmocka_unit_test(export_lines_are_inserts),
        cmocka_unit_test(every_member_of_when_must_hold),
        cmocka_unit_test(a_pattern_matches_a_plain_item),
        cmocka_unit_test(mistakes_are_refused_at_their_byte),
        cmocka_unit_test(limits_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
