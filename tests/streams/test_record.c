#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/test.h"

#include "base/buffer.h"
#include "base/json.h"
#include "streams/record_layout.h"

#include <stdio.h>
#include <stdlib.h>

/* The key of every record here. */
#define A KEYS(PK("a"))

/* ---- times ---- */

static int64_t created(const char *text, const char *others)
{
    char members[512];
    struct test_batch t;
    snprintf(members, sizeof(members), A ",'ApproximateCreationDateTime':%s", text);
    int64_t ns = sl_record_created_ns(test_record(&t, "INSERT", members, others));
    test_batch_clean_up(&t);
    return ns;
}

static void times_are_read_in_every_spelling(void **state)
{
    (void)state;
    assert_int_equal(created("1480642020", ""), 1480642020000000000);
    assert_int_equal(created("1693997155.0", ""), 1693997155000000000);
    /* The last second that has 64 bits of nanoseconds; numbers that look like it. */
    assert_int_equal(created("9223372036", ""), 9223372036000000000);
    assert_int_equal(created("1480642020 ", ""), 1480642020000000000);
    assert_int_equal(created("1480642020,'SizeBytes':26", ""), 1480642020000000000);
    assert_int_equal(created("9223372036,'SizeBytes':26", ""), 9223372036000000000);
    assert_int_equal(created("148064202e1", ""), 1480642020000000000);
    assert_int_equal(created("1.4285376E9", ""), 1428537600000000000);
    assert_int_equal(created("1.635734407123456789E9", ""), 1635734407123456789);
    assert_int_equal(created("1.6357344071234567899E+9", ""), 1635734407123456789);
    assert_int_equal(created("'1678831218.0'", ""), 1678831218000000000);
    assert_int_equal(created("15949358E2", ""), 1594935800000000000);
    assert_int_equal(created("0", ""), 0);
    assert_int_equal(created("null", ""), 0);
    /* Kinesis' milliseconds and microseconds. */
    assert_int_equal(created("1731924555370", ",'recordFormat':'application/json'"), 1731924555370000000);
    assert_int_equal(created("5", ",'recordFormat':'application/json'"), 5000000);
    assert_int_equal(created("1731924555370123,'ApproximateCreationDateTimePrecision':'MICROSECOND'", ""),
                     1731924555370123000);
    assert_int_equal(created("1731924555370,'ApproximateCreationDateTimePrecision':'MILLISECOND'", ""),
                     1731924555370000000);
    /* Ten digits, as seconds have: what the record says of them counts. */
    assert_int_equal(created("1731924555,'ApproximateCreationDateTimePrecision':'MILLISECOND'", ""),
                     1731924555000000);
    assert_int_equal(created("1731924555,'ApproximateCreationDateTimePrecision':'MICROSECOND'", ""),
                     1731924555000);
    assert_int_equal(created("1731924555", ",'recordFormat':'application/json'"), 1731924555000000);
    /* By magnitude alone. */
    assert_int_equal(created("1731924555370", ""), 1731924555370000000);
    assert_int_equal(created("1731924555370123", ""), 1731924555370123000);
    /* The AWS CLI's dates. */
    assert_int_equal(created("'2020-07-16T21:44:42+00:00'", ""), 1594935882000000000);
    assert_int_equal(created("'2020-07-16T23:44:42.25+02:00'", ""), 1594935882250000000);
    assert_int_equal(created("'2020-07-16T17:14:42.0123456789-04:30'", ""), 1594935882012345678);
    assert_int_equal(created("'2020-07-16 21:44:42.5+00:00'", ""), 1594935882500000000);
    assert_int_equal(created("'1970-01-01T00:00:00Z'", ""), 0);
    assert_int_equal(created("'2000-02-29T00:00:00'", ""), 951782400000000000);
    assert_int_equal(created("'2000-02-29T00:00:00.5'", ""), 951782400500000000);
}

static void bad_times_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "-1",
        "1e30",
        "''",
        "'x'",
        "'1234-'",
        "'2020-13-01T00:00:00Z'",
        "'2020-01-32T00:00:00Z'",
        "'2020-01-01  00:00:00Z'",
        "'2020-01-01_00:00:00Z'",
        "'2020-01-01T24:00:00Z'",
        "'2020-01-01T00:60:00Z'",
        "'2020-01-01T00:00:61Z'",
        "'2020-01-01T00:00:00.Z'",
        "'2020-01-01T00:00:00Zx'",
        "'2020-01-01T00:00:00+0100'",
        "'2020-01-01T00:00:00+1:00'",
        "'2020-01-01T00:00:00+24:00'",
        "'2020-01-01T00:00:00+01:60'",
        "'2020-01-01T00:00:00+01:00x'",
        "'2020-01-01T00:00:00x01:00'",
        "'2020-01-0'",
        "'1969-12-31T23:59:59Z'",
        "'2262-01-01T00:00:00Z'",
        "'1970-01-01T00:00:00+00:01'",
        "1.23456789012345678901234567890123456789E9",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[512];
        struct test_batch t;
        snprintf(text, sizeof(text),
                 "{'Records':[{'eventName':'INSERT','dynamodb':{" A ",'ApproximateCreationDateTime':%s}}]}",
                 bad[i]);
        test_decode_event(&t, json_span(text));
        assert_string_equal(t.error.text, "record 0: ApproximateCreationDateTime is not a time");
        test_batch_clean_up(&t);
    }
}

/* ---- order ---- */

static void records_are_ordered_by_sequence_number(void **state)
{
    (void)state;
    struct test_batch t;
    const struct sl_record *r = test_record(&t, "INSERT", A ",'SequenceNumber':'000123'", "");
    assert_span_is(sl_record_order(r, t.arena), "123");
    assert_span_is(sl_record_text(r, SL_FIELD_IDENTIFIER), "000123");
    test_batch_clean_up(&t);
    r = test_record(&t, "INSERT", A ",'SequenceNumber':'000'", "");
    assert_span_is(sl_record_order(r, t.arena), "0");
    test_batch_clean_up(&t);
    r = test_record(&t, "INSERT", A ",'ApproximateCreationDateTime':5", "");
    assert_null(sl_record_order(r, t.arena).ptr);
    test_batch_clean_up(&t);
    r = test_record(&t, "INSERT", A, ",'recordFormat':'application/json'");
    assert_null(sl_record_order(r, t.arena).ptr);
    test_batch_clean_up(&t);
    /* 40 digits, more than 128 bits hold. */
    r = test_record(&t, "INSERT", A ",'SequenceNumber':'9999999999999999999999999999999999999999'", "");
    assert_int_equal(sl_record_order(r, t.arena).len, 40);
    test_batch_clean_up(&t);
}

static void escaped_texts_are_unescaped(void **state)
{
    (void)state;
    struct test_batch t;
    const struct sl_record *r = test_record(&t, "MODIFY", A,
                                            ",'awsRegion':'eu\\u002dwest','eventSourceARN':'arn:aws:dynamodb:"
                                            "r:1:table\\/T\\/stream\\/x','eventID':'\\n'");
    assert_span_is(sl_record_text(r, SL_FIELD_REGION), "eu-west");
    assert_span_is(sl_record_text(r, SL_FIELD_SOURCE_ARN), "arn:aws:dynamodb:r:1:table/T/stream/x");
    assert_span_is(sl_record_text(r, SL_FIELD_TABLE), "T");
    assert_span_is(sl_record_text(r, SL_FIELD_EVENT_ID), "\n");
    test_batch_clean_up(&t);
    r = test_record(&t, "MODIFY", A, ",'eventSourceARN':'arn:aws:dynamodb:r:1:table/T'");
    assert_span_is(sl_record_text(r, SL_FIELD_TABLE), "T");
    test_batch_clean_up(&t);
    r = test_record(&t, "MODIFY", A ",'SizeBytes':99999999999", ",'eventSourceARN':''");
    assert_int_equal(sl_record_stated_bytes(r), UINT32_MAX);
    assert_null(sl_record_text(r, SL_FIELD_TABLE).ptr);
    assert_null(sl_record_text(r, (enum sl_field)99).ptr);
    test_batch_clean_up(&t);
}

/* ---- the TTL verdict ---- */

#define AT(time, old) A ",'ApproximateCreationDateTime':" time OLD("'ttl':" old)

static const struct {
    const char *event, *members, *others;
    enum sl_ttl verdict;
} verdicts[] = {
    {"INSERT", A, "", SL_TTL_USER},
    {"MODIFY", A, "", SL_TTL_USER},
    {"INSERT", A, ",'userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'}", SL_TTL_USER},
    {"REMOVE", A, ",'userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'}",
     SL_TTL_EXPIRED},
    {"REMOVE", A, ",'userIdentity':{'Type':'Service','PrincipalId':'dynamodb.amazonaws.com'}",
     SL_TTL_EXPIRED},
    {"REMOVE", A, ",'userIdentity':{'type':'User','principalId':'dynamodb.amazonaws.com'}", SL_TTL_USER},
    {"REMOVE", A, ",'userIdentity':{'type':'Service','principalId':'other.amazonaws.com'}", SL_TTL_USER},
    {"REMOVE", AT("1000", "{'N':'5'}"), ",'userIdentity':{}", SL_TTL_USER},
    {"REMOVE", A, "", SL_TTL_UNKNOWN},
    {"REMOVE", A, ",'userIdentity':null", SL_TTL_UNKNOWN},
    {"REMOVE", A OLD("'ttl':{'N':'5'}"), "", SL_TTL_UNKNOWN},
    {"REMOVE", A ",'ApproximateCreationDateTime':1000", "", SL_TTL_UNKNOWN},
    {"REMOVE", AT("1000", "{'N':'999'}"), "", SL_TTL_INFERRED},
    {"REMOVE", AT("1000", "{'N':'1000'}"), "", SL_TTL_INFERRED},
    {"REMOVE", AT("1000", "{'N':'1000.9'}"), "", SL_TTL_INFERRED},
    {"REMOVE", AT("1000", "{'N':'1001'}"), "", SL_TTL_USER},
    {"REMOVE", AT("1000.5", "{'N':'1000.5'}"), "", SL_TTL_INFERRED},
    {"REMOVE", AT("1000.5", "{'N':'1000.6'}"), "", SL_TTL_USER},
    {"REMOVE", AT("1000.0", "{'N':'1000.6'}"), "", SL_TTL_INFERRED},
    {"REMOVE", AT("1000123", "{'N':'1001'}"), ",'recordFormat':'application/json'", SL_TTL_USER},
    {"REMOVE", AT("1000123", "{'N':'1000.1239'}"), ",'recordFormat':'application/json'", SL_TTL_INFERRED},
    {"REMOVE", AT("1000", "{'S':'999'}"), "", SL_TTL_USER},
    {"REMOVE", AT("1000", "{'N':'1e100'}"), "", SL_TTL_USER},
    {"REMOVE", A ",'ApproximateCreationDateTime':1000,'OldImage':{}", "", SL_TTL_USER},
    /* Items that were due more than five years before are left alone by DynamoDB. */
    {"REMOVE", AT("1600000000", "{'N':'1442233600'}"), "", SL_TTL_INFERRED},
    {"REMOVE", AT("1600000000", "{'N':'1442200000'}"), "", SL_TTL_UNKNOWN},
    {"REMOVE", AT("1600000000", "{'N':'1442147100'}"), "", SL_TTL_USER},
    {"REMOVE", AT("1600000000", "{'N':'-9e9'}"), "", SL_TTL_USER},
};

static void a_removal_is_judged_expired_or_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
        struct test_batch t;
        const struct sl_record *r =
            test_record(&t, verdicts[i].event, verdicts[i].members, verdicts[i].others);
        if (sl_record_ttl(r) != verdicts[i].verdict)
            fail_msg("%s %s: %d", verdicts[i].members, verdicts[i].others, (int)sl_record_ttl(r));
        test_batch_clean_up(&t);
    }
}

static void without_a_ttl_attribute_nothing_is_inferred(void **state)
{
    (void)state;
    struct test_batch t;
    test_decode_event(&t, json_span("[{'eventName':'REMOVE','dynamodb':{" AT("1000", "{'N':'5'}") "}}]"));
    assert_int_equal(sl_record_ttl(sl_batch_record(&t.batch, 0)), SL_TTL_UNKNOWN);
    test_batch_clean_up(&t);
}

/* ---- attributes and paths ---- */

/* So many that the index is searched in several blocks. */
static void attributes_are_found_among_many(void **state)
{
    (void)state;
    struct sl_buffer members;
    struct test_batch t;
    sl_buffer_init(&members, 1 << 20);
    sl_buffer_add_str(&members, A ",'NewImage':{");
    for (int i = 0; i < 200; i++)
        sl_buffer_printf(&members, "%s'n%d':{'N':'%d'}", i ? "," : "", i, i);
    sl_buffer_add_str(&members, "}");
    sl_buffer_add_char(&members, '\0');
    const struct sl_record *r = test_record(&t, "INSERT", members.ptr, "");
    for (int i = 0; i < 200; i++) {
        char name[8];
        int64_t value;
        snprintf(name, sizeof(name), "n%d", i);
        assert_true(sl_value_int64(sl_record_attribute(r, SL_NEW_IMAGE, sl_span_str(name)), &value));
        assert_int_equal(value, i);
    }
    assert_int_equal(sl_record_attribute(r, SL_NEW_IMAGE, SL_LIT("n200")).type, SL_NONE);
    assert_int_equal(sl_record_attribute(r, SL_NEW_IMAGE, SL_LIT("")).type, SL_NONE);
    assert_int_equal(sl_record_attribute(r, SL_OLD_IMAGE, SL_LIT("n1")).type, SL_NONE);
    assert_int_equal(sl_record_attribute(r, SL_ANY_IMAGE, SL_LIT("n1")).type, SL_NONE);
    assert_int_equal(sl_record_image(r, SL_ANY_IMAGE).type, SL_NONE);
    test_batch_clean_up(&t);
    sl_buffer_clean_up(&members);
}

#define LONG "'long':{'S':'0123456789012345678901234567890123456789012345678901234567890123456789'}"

/* With an index and without one: escaped names, empty names, the last of equal names. */
static void the_last_of_equal_names_counts(void **state)
{
    (void)state;
    static const char *const images[] = {
        A NEW("'':{'S':'e'},'a\\u0062':{'S':'1'},'x':{'N':'1'},'x':{'N':'2'}"),
        A NEW(LONG ",'':{'S':'e'},'a\\u0062':{'S':'1'},'x':{'N':'1'},'x':{'N':'2'}"),
    };
    for (int i = 0; i < 2; i++) {
        struct test_batch t;
        const struct sl_record *r = test_record(&t, "INSERT", images[i], "");
        assert_span_is(sl_record_attribute(r, SL_NEW_IMAGE, SL_LIT("x")).raw, "2");
        assert_span_is(sl_record_attribute(r, SL_NEW_IMAGE, SL_LIT("ab")).raw, "1");
        assert_span_is(sl_record_attribute(r, SL_NEW_IMAGE, SL_LIT("")).raw, "e");
        assert_int_equal(sl_record_attribute(r, SL_NEW_IMAGE, SL_LIT("a")).type, SL_NONE);
        assert_int_equal(sl_record_attribute(r, SL_NEW_IMAGE, SL_LIT("lon")).type, SL_NONE);
        test_batch_clean_up(&t);
    }
}

/* A name whose hash is that of the last attribute's, but which is longer than the rest of the text. */
static void a_name_longer_than_the_text_is_not_found(void **state)
{
    (void)state;
    char name[257];
    struct test_batch t;
    const struct sl_record *r = test_record(&t, "INSERT", A NEW(LONG ",'x':{'N':'1'}"), "");
    memset(name, 'x', sizeof(name));
    assert_span_is(sl_record_attribute(r, SL_NEW_IMAGE, sl_span(name, 1)).raw, "1");
    assert_int_equal(sl_record_attribute(r, SL_NEW_IMAGE, sl_span(name, 257)).type, SL_NONE);
    test_batch_clean_up(&t);
}

/* Values too long for the length that an index notes. */
static void long_values_keep_their_length(void **state)
{
    (void)state;
    enum { LEN = 1200000 };
    struct sl_buffer members;
    struct test_batch t;
    sl_buffer_init(&members, 1 << 24);
    sl_buffer_add_str(&members, A ",'NewImage':{'s':{'S':'");
    memset(sl_buffer_reserve(&members, LEN), 's', LEN);
    members.len += LEN;
    sl_buffer_add_str(&members, "'},'l':{'L':[{'S':'");
    memset(sl_buffer_reserve(&members, LEN), 'l', LEN);
    members.len += LEN;
    sl_buffer_add(&members, "'}]}}", sizeof("'}]}}"));
    const struct sl_record *r = test_record(&t, "INSERT", members.ptr, "");
    assert_int_equal(sl_record_attribute(r, SL_NEW_IMAGE, SL_LIT("s")).raw.len, LEN);
    struct sl_value list = sl_record_attribute(r, SL_NEW_IMAGE, SL_LIT("l"));
    assert_int_equal(list.type, SL_L);
    assert_int_equal(list.raw.len, LEN + 10);
    test_batch_clean_up(&t);
    sl_buffer_clean_up(&members);
}

/* ---- attributes that the decoder noted ---- */

/* Both batches are of one text: the attributes of each image are at the same places. */
static size_t assert_same_places(const struct sl_batch *noted, const struct sl_batch *plain)
{
    size_t n = 0;
    struct sl_arena *arena = sl_arena_new(4096);
    assert_int_equal(noted->n, plain->n);
    for (size_t i = 0; i < plain->n; i++)
        for (enum sl_image image = SL_KEYS; image <= SL_OLD_IMAGE; image++) {
            const struct sl_record *a = sl_batch_record(noted, i), *b = sl_batch_record(plain, i);
            struct sl_iter iter = sl_value_iter(sl_record_image(b, image));
            struct sl_span name;
            struct sl_value value;
            while (sl_value_next(&iter, &name, &value)) {
                struct sl_span text = sl_json_unescape(name, arena);
                struct sl_value have = sl_record_attribute(a, image, text);
                struct sl_value want = sl_record_attribute(b, image, text);
                assert_int_equal(have.type, want.type);
                assert_int_equal(have.escaped, want.escaped);
                assert_ptr_equal(have.raw.ptr, want.raw.ptr);
                assert_int_equal(have.raw.len, want.raw.len);
                n++;
            }
            assert_int_equal(sl_record_attribute(a, image, SL_LIT("none")).type, SL_NONE);
        }
    sl_arena_destroy(arena);
    return n;
}

#define LONG_NAME     "a_name_that_is_longer_than_what_a_form_keeps_of_it"
#define NEW_OF(image) "{'eventName':'INSERT','dynamodb':{" A ",'NewImage':" image "}}"

static void what_is_noted_is_what_is_found(void **state)
{
    (void)state;
    static const char *const records[] = {
        NEW_OF("{" LONG
               ",'n':{'N':'1'},'e':{'S':''},'q':{'S':'\\u0071q'},'b':{'B':'AQID'},'t':{'BOOL':true}}"),
        NEW_OF("{" LONG ",'n':{'N':'2'},'e':{'S':''},'q':{'S':'plain'},'b':{'B':''},'t':{'NULL':true}}"),
        NEW_OF("{" LONG ",'q':{'S':'2'},'n':{'N':'3'},'more':{'SS':['x']},'t':{'BOOL':false}}"),
        NEW_OF(
            "{ 'long' : { 'S' : '0123456789012345678901234567890123456789012345678901234567890123456789' } ,"
            " 'n' : { 'N' : '4' } , 'l' : { 'L' : [ { 'S' : '1' } ] } }"),
        NEW_OF("{" LONG ",'a\\u0062':{'S':'1'},'':{'S':'e'},'x':{'N':'1'},'x':{'N':'2'}}"),
        NEW_OF("{" LONG ",'a\\u0062':{'S':'2'},'':{'S':'f'},'x':{'N':'3'},'x':{'S':'4'}}"),
        NEW_OF("{" LONG ",'" LONG_NAME "':{'M':{'n':{'N':'9'},'" LONG_NAME "':{'S':'in'}}},'n':{'N':'5'}}"),
        NEW_OF("{'short':{'S':'x'}}"),
        NEW_OF("{}"),
        NEW_OF("{" LONG ",'n':{'N':'6'}},'NewImage':{'n':{'N':'7'}}"),
        NEW_OF("{'n':{'N':'8'}},'NewImage':{" LONG ",'n':{'N':'9'}}"),
        NEW_OF("{" LONG ",'n':{'N':'1'}},'NewImage':null,'OldImage':{'n':{'N':'1'}," LONG "}"),
    };
    struct sl_buffer text;
    struct sl_batch noted, plain;
    struct sl_arena *arena = sl_arena_new(4096);
    sl_buffer_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
        sl_buffer_printf(&text, "%c%s", i ? ',' : '[', json(records[i]));
    /* More than are noted: all of them, one fewer, one more. */
    for (int n = SL_NOTED - 1; n <= SL_NOTED + 1; n++) {
        sl_buffer_add_str(&text, json(",{'eventName':'INSERT','dynamodb':{" A ",'NewImage':"));
        for (int i = 0; i < n; i++)
            sl_buffer_printf(&text, "%c\"n%d\":{\"N\":\"%d\"}", i ? ',' : '{', i, i);
        sl_buffer_add_str(&text, "}}}");
    }
    sl_buffer_add_char(&text, ']');
    const struct sl_decode_options notes = {.notes_attributes = true}, none = {.notes_attributes = false};
    struct sl_error error = SL_NO_ERROR;
    if (sl_batch_decode(sl_buffer_span(&text), arena, &notes, &noted, &error) != SL_OK ||
        sl_batch_decode(sl_buffer_span(&text), arena, &none, &plain, &error) != SL_OK)
        fail_msg("%s at %.40s", error.text, text.ptr + error.offset);
    assert_false(sl_batch_is_looked_into(&plain));
    assert_int_equal(assert_same_places(&noted, &plain), 248);
    assert_true(sl_batch_is_looked_into(&plain));
    /* Of the noted ones only the image with more was read again. */
    assert_int_equal(sl_record_chunk(sl_batch_record(&noted, 0))->shared->n_read_again, 1);
    sl_buffer_clean_up(&text);
    sl_arena_destroy(arena);
}

/* Looking into few of a batch's images is no reason to note where all have their attributes. */
static void a_batch_is_looked_into_when_most_of_it_is(void **state)
{
    (void)state;
    struct sl_buffer text;
    struct sl_batch batch;
    struct sl_arena *arena = sl_arena_new(4096);
    sl_buffer_init(&text, SIZE_MAX / 2);
    for (int i = 0; i < 10; i++)
        sl_buffer_printf(&text, "%c%s", i ? ',' : '[', json(NEW_OF("{" LONG ",'n':{'N':'1'}}")));
    sl_buffer_add_char(&text, ']');
    assert_int_equal(sl_batch_decode(sl_buffer_span(&text), arena,
                                     &(struct sl_decode_options){.any_shape = false}, &batch, NULL),
                     SL_OK);
    for (size_t i = 0; i < batch.n; i++) {
        assert_int_equal(sl_batch_is_looked_into(&batch), i >= batch.n / 2);
        for (int twice = 0; twice < 2; twice++)
            assert_int_equal(sl_record_attribute(sl_batch_record(&batch, i), SL_NEW_IMAGE, SL_LIT("n")).type,
                             SL_N);
    }
    assert_int_equal(
        sl_batch_decode(SL_LIT("[]"), arena, &(struct sl_decode_options){.any_shape = false}, &batch, NULL),
        SL_OK);
    assert_false(sl_batch_is_looked_into(&batch));
    sl_buffer_clean_up(&text);
    sl_arena_destroy(arena);
}

/* ---- paths ---- */

static struct sl_span path(const struct sl_record *r, const char *text)
{
    struct sl_value v = sl_record_path(r, SL_NEW_IMAGE, sl_span_str(text));
    return v.type == SL_NONE ? sl_span(NULL, 0) : v.raw;
}

static void paths_lead_into_maps_and_lists(void **state)
{
    (void)state;
    struct test_batch t;
    const struct sl_record *r =
        test_record(&t, "INSERT",
                    A NEW("'a':{'M':{'b':{'L':[{'N':'1'},{'M':{'c.d':{'S':'deep'}}}]},"
                          "'':{'S':'nameless'}}},'x.y':{'BOOL':true},'s':{'SS':['one']}"),
                    "");
    assert_span_is(path(r, "a.b[0]"), "1");
    assert_span_is(path(r, "a.b[1].`c.d`"), "deep");
    assert_span_is(path(r, "`a`.b[0]"), "1");
    assert_span_is(path(r, "`x.y`"), "true");
    assert_span_is(path(r, "a.``"), "nameless");
    static const char *const nowhere[] = {
        "",         "b",      "a.x",          "a.b[2]",     "a[0]",    "a.b.c",
        "s[0]",     "a.",     "a.b[",         "a.b[]",      "a.b[x]",  "a.b[-1]",
        "`a",       "a`b`",   ".a",           "a.b[0",      "a.b[0]x", "a.b[99999999999999999999]",
        "a.b[0].c", "a.b[0x", "a.b[1x.`c.d`", "a.b[1.`c.d`"};
    for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++)
        assert_null(path(r, nowhere[i]).ptr);
    test_batch_clean_up(&t);
}

/* ---- changes, identity ---- */

#define BOTH(a, b) A NEW(a) OLD(b)

static void an_attribute_has_changed_when_its_value_differs(void **state)
{
    (void)state;
    static const struct {
        const char *event, *members;
        bool changed;
    } cases[] = {
        {"MODIFY", BOTH("'x':{'S':'a'}", "'x':{'S':'b'}"), true},
        {"MODIFY", BOTH("'x':{'S':'a'}", "'x':{'S':'a'}"), false},
        {"MODIFY", BOTH("'x':{'S':'a'}", "'y':{'S':'a'}"), true},
        {"MODIFY", BOTH("", "'x':{'S':'a'}"), true},
        {"MODIFY", BOTH("", ""), false},
        {"MODIFY", BOTH("'x':{'N':'1.0'}", "'x':{'N':'1'}"), false},
        {"MODIFY", BOTH("'u':{'\\u0053':'1'},'v':{'S' :'1'},'w':{'S':'1' },'x':{'S':'a'}", ""), true},
        {"MODIFY", A NEW("'x':{'S':'a'}"), false},
        {"MODIFY", A OLD("'x':{'S':'a'}"), false},
        {"INSERT", A NEW("'x':{'S':'a'}"), true},
        {"INSERT", A NEW(""), false},
        {"INSERT", A, false},
        {"REMOVE", A OLD("'x':{'S':'a'}"), true},
        {"REMOVE", A OLD(""), false},
        {"REMOVE", A, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_batch t;
        const struct sl_record *r = test_record(&t, cases[i].event, cases[i].members, "");
        assert_int_equal(sl_record_changed(r, SL_LIT("x")), cases[i].changed);
        test_batch_clean_up(&t);
    }
}

static void equal_keys_have_one_item_key(void **state)
{
    (void)state;
    struct test_batch a, b;
    const struct sl_record *x =
        test_record(&a, "INSERT", "'Keys':{'SK':{'N':'1.0'},'PK':{'S':'\\u0061\\/'}}", "");
    const struct sl_record *y = test_record(&b, "REMOVE", "'Keys':{ 'PK' : {'S':'a/'}, 'SK':{'N':'01'}}", "");
    struct sl_span of_x = sl_record_item_key(x, a.arena), of_y = sl_record_item_key(y, b.arena);
    assert_true(sl_span_eq(of_x, of_y));
    assert_span_is(of_x, json("{'M':{'PK':{'S':'a/'},'SK':{'N':'1'}}}"));
    test_batch_clean_up(&a);
    test_batch_clean_up(&b);
}

/* Keys of every kind, plain and not: what has one value has one text. */
static void a_key_has_one_spelling(void **state)
{
    (void)state;
    static const char *const keys[][2] = {
        {"", "{'M':{}}"},
        {"'a':{'S':'x'}", "{'M':{'a':{'S':'x'}}}"},
        {"'a':{'S':'\\u0078'}", "{'M':{'a':{'S':'x'}}}"},
        {"'\\u0061':{'S':'x'}", "{'M':{'a':{'S':'x'}}}"},
        {"'a':{'S':'\x7F'}", "{'M':{'a':{'S':'\\u007f'}}}"},
        {"'a':{'S':'\\u007f'}", "{'M':{'a':{'S':'\\u007f'}}}"},
        {"'\x7F':{'B':'Zg=='}", "{'M':{'\\u007f':{'B':'Zg=='}}}"},
        {"'a':{'B':'Zg=='},'b':{'N':'-5'}", "{'M':{'a':{'B':'Zg=='},'b':{'N':'-5'}}}"},
        {"'b':{'N':'0'},'a':{'N':'10'}", "{'M':{'a':{'N':'10'},'b':{'N':'0'}}}"},
        {"'b':{'N':'-0'},'a':{'N':'1e1'}", "{'M':{'a':{'N':'10'},'b':{'N':'0'}}}"},
        {"'b':{'N':'+0.0'},'a':{'N':'010'}", "{'M':{'a':{'N':'10'},'b':{'N':'0'}}}"},
        {"'a':{'N':'100000000000000000000000000000000000000000'}",
         "{'M':{'a':{'N':'100000000000000000000000000000000000000000'}}}"},
        {"'ab':{'S':'2'},'a':{'S':'1'}", "{'M':{'a':{'S':'1'},'ab':{'S':'2'}}}"},
        {"'a':{'S':'1'},'ab':{'S':'2'}", "{'M':{'a':{'S':'1'},'ab':{'S':'2'}}}"},
        {"'a':{'S':'1'},'a':{'S':'2'}", "{'M':{'a':{'S':'2'}}}"},
        {"'c':{'S':'3'},'b':{'S':'2'},'a':{'BOOL':true}",
         "{'M':{'a':{'BOOL':true},'b':{'S':'2'},'c':{'S':'3'}}}"},
        {"'a':{'BOOL':true}", "{'M':{'a':{'BOOL':true}}}"},
        {"'a':{'N':'1.50'}", "{'M':{'a':{'N':'1.5'}}}"},
        {"'a':{'N':'1e1'}", "{'M':{'a':{'N':'10'}}}"},
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char members[256];
        struct test_batch t;
        snprintf(members, sizeof(members), "'Keys':{%s}", keys[i][0]);
        const struct sl_record *r = test_record(&t, "INSERT", members, "");
        assert_span_is(sl_record_item_key(r, t.arena), json(keys[i][1]));
        test_batch_clean_up(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read_in_every_spelling),
        cmocka_unit_test(bad_times_are_refused),
        cmocka_unit_test(records_are_ordered_by_sequence_number),
        cmocka_unit_test(escaped_texts_are_unescaped),
        cmocka_unit_test(a_removal_is_judged_expired_or_not),
        cmocka_unit_test(without_a_ttl_attribute_nothing_is_inferred),
        cmocka_unit_test(attributes_are_found_among_many),
        cmocka_unit_test(the_last_of_equal_names_counts),
        cmocka_unit_test(paths_lead_into_maps_and_lists),
        cmocka_unit_test(a_name_longer_than_the_text_is_not_found),
        cmocka_unit_test(long_values_keep_their_length),
        cmocka_unit_test(what_is_noted_is_what_is_found),
        cmocka_unit_test(a_batch_is_looked_into_when_most_of_it_is),
        cmocka_unit_test(an_attribute_has_changed_when_its_value_differs),
        cmocka_unit_test(equal_keys_have_one_item_key),
        cmocka_unit_test(a_key_has_one_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
