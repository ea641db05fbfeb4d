/* Records as Lambda delivers them: what each other form becomes, and for random records of every form, that
 * what is written is Lambda's form, says what the record said, and is recognized. */
#include "live/source/lambda_batch.h"
#include "live/source/lambda_form.h"
#include "tests/support/records.h"
#include "tests/support/test.h"

#include "base/clock.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARN "arn:aws:dynamodb:eu-west-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"

static const struct sl_lambda_form form = {.stream_arn = ARN, .keys = "PK,SK", .created_s = 1795168800};

static uint64_t seed;

static uint64_t draw(uint64_t n)
{
    return sl_random_step(&seed) % n;
}

/* ---- one record, written ---- */

struct written {
    struct test_batch t;
    struct sl_arena *arena;
    struct sl_buffer out;
    bool is_written;
};

static void write_record(struct written *w, const struct sl_lambda_form *how, struct sl_span text,
                         size_t index)
{
    test_decode(&w->t, text, NULL);
    w->arena = sl_arena_new(4096);
    sl_buffer_init(&w->out, 1 << 20);
    w->is_written = false;
    if (w->t.status == SL_OK)
        w->is_written = sl_lambda_form_write(how, sl_batch_record(&w->t.batch, 0), index, w->arena, &w->out);
}

static void written_clean_up(struct written *w)
{
    test_batch_clean_up(&w->t);
    sl_arena_destroy(w->arena);
    sl_buffer_clean_up(&w->out);
}

static void assert_becomes(const struct sl_lambda_form *how, const char *text, size_t index,
                           const char *wanted)
{
    struct written w;
    write_record(&w, how, json_span(text), index);
    if (w.t.status != SL_OK)
        fail_msg("%s: %s", text, w.t.error.text);
    assert_true(w.is_written);
    assert_span_is(sl_buffer_span(&w.out), json(wanted));
    written_clean_up(&w);
}

/* ---- what each form becomes ---- */

#define HEAD(name) "{'eventID':'e','eventName':'" name "','eventVersion':'1.1','eventSource':'aws:dynamodb',"
#define KEYS       "'Keys':{'PK':{'S':'a b'}}"
#define TAIL       "'SequenceNumber':'100','SizeBytes':7,'StreamViewType':'NEW_IMAGE'}"
#define REGION     "'awsRegion':'eu-west-1',"
#define CHANGE     "'dynamodb':{'ApproximateCreationDateTime':1795168801," KEYS "," TAIL
#define OF_ARN     ",'eventSourceARN':'" ARN "'}"
#define OWN        HEAD("INSERT") REGION CHANGE OF_ARN
#define DATED(time)                                                                                          \
    HEAD("INSERT") REGION "'dynamodb':{'ApproximateCreationDateTime':" time "," KEYS "," TAIL OF_ARN
/* What record 7 gets that says neither its identifier nor its time. */
#define MADE(name, change)                                                                                   \
    "{'eventID':'00000000000000000000000000000008','eventName':'" name                                       \
    "','eventVersion':'1.1','eventSource':'aws:dynamodb','awsRegion':'eu-west-1','dynamodb':{"               \
    "'ApproximateCreationDateTime':1795168800," change "}" OF_ARN
#define MADE_NUMBER ",'SequenceNumber':'000000000000000000008'"

static void each_form_becomes_lambdas(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {OWN, OWN},
        {"{'eventSourceARN':'" ARN
         "','userIdentity':{'Type':'Service','PrincipalId':'dynamodb.amazonaws.com'},"
         "'eventName':'REMOVE','eventID':'e','eventVersion':'1.1','eventSource':'aws:dynamodb',"
         "'awsRegion':'eu-west-1','dynamodb': {'StreamViewType':'NEW_IMAGE','SizeBytes': 7,"
         "'SequenceNumber':'100', " KEYS ",'ApproximateCreationDateTime':1795168801}}",
         HEAD("REMOVE") REGION CHANGE
         ",'userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'}" OF_ARN},
        /* GetRecords, as the AWS CLI prints it, and Python's. */
        {HEAD("INSERT") REGION "'dynamodb':{'ApproximateCreationDateTime':'2026-11-20T10:00:01+00:00'," KEYS
                               "," TAIL "}",
         OWN},
        {DATED("'2026-11-20 10:00:01.250000+00:00'"), DATED("1795168801.25")},
        {DATED("1795168801.25"), DATED("1795168801.25")},
        {DATED("1.795168801e9"), DATED("1.795168801e9")},
        /* Kinesis' data and Pipes': other units, other members. */
        {HEAD("INSERT") REGION "'recordFormat':'application/json','tableName':'t','dynamodb':{"
                               "'ApproximateCreationDateTime':1795168801250,"
                               "'ApproximateCreationDateTimePrecision':'MILLISECOND'," KEYS "," TAIL OF_ARN,
         OWN},
        /* A line of `sluice decode`; a member that AWS may add. */
        {HEAD("INSERT") REGION CHANGE ",'sluice':{'file':'-','index':0}" OF_ARN, OWN},
        {HEAD("INSERT") REGION "'dynamodb':{'fresh':[1, 2],'ApproximateCreationDateTime':1795168801," KEYS
                               "," TAIL ",'more':{'a': 1}" OF_ARN,
         HEAD("INSERT") REGION "'dynamodb':{'ApproximateCreationDateTime':1795168801," KEYS
                               ",'SequenceNumber':'100','SizeBytes':7,'StreamViewType':'NEW_IMAGE',"
                               "'fresh':[1,2]},'eventSourceARN':'" ARN "','more':{'a':1}}"},
        /* A fixture that leaves out what its author did not need. */
        {"{'eventName':'MODIFY','dynamodb':{" KEYS ",'NewImage':{'PK':{'S':'a b'},'n':{'N':'1'}}}}",
         MADE("MODIFY", KEYS ",'NewImage':{'PK':{'S':'a b'},'n':{'N':'1'}}" MADE_NUMBER
                             ",'SizeBytes':13,'StreamViewType':'NEW_IMAGE'")},
        {"{'eventName':'MODIFY','dynamodb':{" KEYS ",'OldImage':{'PK':{'S':'a b'}}}}",
         MADE("MODIFY", KEYS ",'OldImage':{'PK':{'S':'a b'}}" MADE_NUMBER
                             ",'SizeBytes':10,'StreamViewType':'OLD_IMAGE'")},
        {"{'eventName':'INSERT','dynamodb':{" KEYS "}}",
         MADE("INSERT", KEYS MADE_NUMBER ",'SizeBytes':5,'StreamViewType':'KEYS_ONLY'")},
        {"{'eventName':'REMOVE','dynamodb':{" KEYS "}}",
         MADE("REMOVE", KEYS MADE_NUMBER ",'SizeBytes':5,'StreamViewType':'NEW_IMAGE'")},
        /* Lines of exports: full ones do not say what their keys are. */
        {"{'Item':{'x':{'BOOL':true},'SK':{'N':'1'},'PK':{'S':'a'}}}",
         MADE("INSERT",
              "'Keys':{'PK':{'S':'a'},'SK':{'N':'1'}},'NewImage':{'x':{'BOOL':true},'SK':{'N':'1'},"
              "'PK':{'S':'a'}}" MADE_NUMBER ",'SizeBytes':16,'StreamViewType':'NEW_AND_OLD_IMAGES'")},
        {"{'Metadata':{'WriteTimestampMicros':{'N':'1795168800250000'}}," KEYS "}",
         MADE("REMOVE", KEYS ",'SequenceNumber':'17951688002500000007','SizeBytes':5,"
                             "'StreamViewType':'NEW_IMAGE'")},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_becomes(&form, cases[i].text, 7, cases[i].wanted);
}

/* The ARN that is assumed has the record's Region; one that is known is the stream's. */
static void the_region_is_the_records(void **state)
{
    (void)state;
    static const struct {
        const char *region, *arn;
    } cases[] = {
        {"eu-west-1", ARN},
        {"us-east-2", "arn:aws:dynamodb:us-east-2:123456789012:table/t/stream/2026-01-01T00:00:00.000"},
        {"cn-north-1", "arn:aws-cn:dynamodb:cn-north-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"},
        {"us-gov-west-1",
         "arn:aws-us-gov:dynamodb:us-gov-west-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int is_certain = 0; is_certain < 2; is_certain++) {
            struct sl_lambda_form how = form;
            how.is_arn_certain = is_certain;
            const char *text = json_printf(HEAD("INSERT") "'awsRegion':'%s'," CHANGE "}", cases[i].region);
            assert_becomes(&how, text, 0,
                           json_printf(HEAD("INSERT") "'awsRegion':'%s'," CHANGE ",'eventSourceARN':'%s'}",
                                       cases[i].region, is_certain ? ARN : cases[i].arn));
        }
    struct sl_lambda_form how = form;
    how.stream_arn = "shard";
    assert_becomes(&how, HEAD("INSERT") "'awsRegion':'eu-west-1'," CHANGE "}", 0,
                   HEAD("INSERT") "'awsRegion':'eu-west-1'," CHANGE ",'eventSourceARN':'shard'}");
}

static void an_items_keys_have_to_be_named(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *item;
        bool is_fine;
    } cases[] = {
        {"PK", "{'PK':{'S':'a'}}", true},       {"PK,SK", "{'SK':{'B':'YQ=='},'PK':{'N':'1'}}", true},
        {"PK", "{'P\\u004b':{'S':'a'}}", true}, /* an escape in the name */
        {"PK,SK", "{'PK':{'S':'a'}}", false},   {"PK", "{'PK':{'BOOL':true}}", false},
        {"PK", "{'pk':{'S':'a'}}", false},      {NULL, "{'PK':{'S':'a'}}", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_lambda_form how = form;
        struct written w;
        how.keys = cases[i].keys;
        write_record(&w, &how, json_span(json_printf("{'Item':%s}", cases[i].item)), 0);
        assert_int_equal(w.t.status, SL_OK);
        if (w.is_written != cases[i].is_fine)
            fail_msg("%s of %s", cases[i].keys ? cases[i].keys : "(none)", cases[i].item);
        written_clean_up(&w);
    }
}

/* ---- random records of every form ---- */

static void add_space(struct sl_buffer *out, unsigned one_in)
{
    static const char *const spaces[] = {" ", "\n", "\t", "\r\n", "  "};
    if (one_in && draw(one_in) == 0)
        sl_buffer_add_str(out, spaces[draw(5)]);
}

static void add_json(struct sl_buffer *out, const json_t *value, unsigned spaced);

/* Members in random order, now and then the first letter of a name as an escape. */
static void add_object(struct sl_buffer *out, const json_t *object, unsigned spaced)
{
    const char *names[40], *name;
    json_t *value;
    size_t n = 0;
    bool is_mixed = draw(2);
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        size_t k = is_mixed ? draw(n + 1) : n;
        names[n++] = names[k];
        names[k] = name;
    }
    sl_buffer_add_char(out, '{');
    for (size_t i = 0; i < n; i++) {
        add_space(out, spaced);
        if (draw(60) == 0)
            sl_buffer_printf(out, "\"\\u%04x%s\"", (unsigned char)names[i][0], names[i] + 1);
        else
            sl_buffer_printf(out, "\"%s\"", names[i]);
        add_space(out, spaced);
        sl_buffer_add_char(out, ':');
        add_json(out, json_object_get(object, names[i]), spaced);
        sl_buffer_add_str(out, i + 1 < n ? "," : "");
    }
    sl_buffer_add_char(out, '}');
}

static void add_json(struct sl_buffer *out, const json_t *value, unsigned spaced)
{
    add_space(out, spaced);
    if (json_is_object(value)) {
        add_object(out, value, spaced);
    } else {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        sl_buffer_add_str(out, text);
        free(text);
    }
    add_space(out, spaced);
}

/* Strings in which spaces, quotes and brackets are like those between tokens. */
static const char *const strings[] = {"a",      "a b",   " ",       "e",           "x: {1, 2} y",
                                      "\", \"", "ends ", "[ ] \\ ", "\xc3\xa9 1 2"};
#define STRINGS (sizeof(strings) / sizeof(strings[0]))

static json_t *image_of(void)
{
    json_t *image = json_pack("{s:{s:s}}", "PK", "S", "k");
    if (draw(2))
        json_object_set_new(image, "text", json_pack("{s:s}", "S", strings[draw(STRINGS)]));
    if (draw(2))
        json_object_set_new(image, "n", json_pack("{s:s}", "N", draw(2) ? "1.5" : "-3"));
    if (draw(4) == 0)
        json_object_set_new(image, "list", json_pack("{s:[{s:b},{s:b}]}", "L", "BOOL", 1, "NULL", 1));
    return image;
}

static void maybe(json_t *object, const char *name, unsigned one_in, json_t *value)
{
    if (draw(one_in))
        json_object_set(object, name, value);
    json_decref(value);
}

static json_t *time_of(void)
{
    switch (draw(12)) {
    case 0:
        return json_string("2026-11-20T10:00:01Z");
    case 1:
        return json_real(1795168801.5);
    case 2:
        return json_integer(0);
    default:
        return json_integer(1795168801);
    }
}

static json_t *random_change(size_t event)
{
    json_t *change = json_object();
    maybe(change, "ApproximateCreationDateTime", 30, time_of());
    json_object_set_new(change, "Keys", json_pack("{s:{s:s}}", "PK", "S", strings[draw(3)]));
    if (event != 2)
        maybe(change, "NewImage", 3, image_of());
    if (event != 0)
        maybe(change, "OldImage", 3, image_of());
    maybe(change, "SequenceNumber", 30, json_string(draw(2) ? "100000000000000000000" : "7"));
    maybe(change, "SizeBytes", 30, json_integer((json_int_t)draw(400)));
    maybe(change, "StreamViewType", 30, json_string("NEW_AND_OLD_IMAGES"));
    if (draw(20) == 0)
        json_object_set_new(change, "fresh", json_pack("[i,i]", 1, 2));
    return change;
}

/* Most members are there and are as Lambda has them, so that whole records are, too. */
static json_t *random_record(void)
{
    static const char *const events[] = {"INSERT", "MODIFY", "REMOVE"};
    size_t event = draw(3);
    json_t *r = json_object();
    maybe(r, "eventID", 30, json_string(strings[draw(STRINGS)]));
    json_object_set_new(r, "eventName", json_string(events[event]));
    maybe(r, "eventVersion", 30, json_string("1.1"));
    maybe(r, "eventSource", 30, json_string("aws:dynamodb"));
    maybe(r, "awsRegion", 30, json_string(draw(2) ? "eu-west-1" : "cn-north-1"));
    json_object_set_new(r, "dynamodb", random_change(event));
    if (draw(8) == 0)
        json_object_set_new(r, "userIdentity",
                            json_pack("{s:s,s:s}", draw(2) ? "type" : "Type", "Service",
                                      draw(2) ? "principalId" : "PrincipalId", "dynamodb.amazonaws.com"));
    maybe(r, "eventSourceARN", 30, json_string(ARN));
    if (draw(20) == 0)
        json_object_set_new(r, draw(2) ? "sluice" : "tableName", json_string("t"));
    if (draw(20) == 0)
        json_object_set_new(r, "added", json_pack("{s:i}", "a", 1));
    return r;
}

/* Of the same record: nothing is lost but other forms' members. The time and the identity may be spelt
 * otherwise. */
static void assert_says_the_same(const json_t *was, const json_t *is, const char *text)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)was, name, value)
    {
        const json_t *now = json_object_get(is, name);
        bool is_foreign = strcmp(name, "sluice") == 0 || strcmp(name, "tableName") == 0;
        bool is_respelt =
            strcmp(name, "userIdentity") == 0 || strcmp(name, "ApproximateCreationDateTime") == 0;
        if (is_foreign != !now)
            fail_msg("%s: %s", name, text);
        if (strcmp(name, "dynamodb") == 0)
            assert_says_the_same(value, now, text);
        else if (now && !is_respelt && !json_equal(value, now))
            fail_msg("%s: %s", name, text);
    }
}

/* No member of Lambda's is missing; and nothing is changed when it is written again. */
static void assert_is_lambdas(const struct written *w, const json_t *was)
{
    static const char *const names[] = {"eventID",   "eventName", "eventVersion",  "eventSource",
                                        "awsRegion", "dynamodb",  "eventSourceARN"};
    static const char *const of_change[] = {"Keys", "SequenceNumber", "SizeBytes", "StreamViewType"};
    struct written again;
    char *text = strndup(w->out.ptr, w->out.len);
    json_t *is = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *change = json_object_get(is, "dynamodb");
    assert_non_null(is);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!json_object_get(is, names[i]))
            fail_msg("%s: %s", names[i], text);
    for (size_t i = 0; i < sizeof(of_change) / sizeof(of_change[0]); i++)
        if (!json_object_get(change, of_change[i]))
            fail_msg("%s: %s", of_change[i], text);
    assert_true(json_is_number(json_object_get(change, "ApproximateCreationDateTime")));
    assert_says_the_same(was, is, text);
    json_decref(is);
    write_record(&again, &form, sl_span_str(text), 5);
    assert_int_equal(again.t.status, SL_OK);
    assert_true(sl_lambda_form_is(sl_batch_record(&again.t.batch, 0)));
    assert_span_is(sl_buffer_span(&again.out), text);
    written_clean_up(&again);
    free(text);
}

/* A text that is in Lambda's form is delivered as it is: it has to say what would be written. */
static bool assert_recognized(const struct written *w)
{
    const struct sl_record *r = sl_batch_record(&w->t.batch, 0);
    struct sl_span raw = sl_record_text(r, SL_FIELD_RAW);
    bool is_in_form = sl_lambda_form_is(r), is_written_so = sl_span_eq(raw, sl_buffer_span(&w->out));
    json_t *made = json_loadb(w->out.ptr, w->out.len, 0, NULL), *was = json_loadb(raw.ptr, raw.len, 0, NULL);
    if ((is_in_form && !json_equal(made, was)) || (is_written_so && !is_in_form))
        fail_msg("%.*s is %sin form", SL_ARG(raw), is_in_form ? "" : "not ");
    json_decref(made);
    json_decref(was);
    return is_in_form;
}

static void what_is_written_is_lambdas_form(void **state)
{
    (void)state;
    size_t n_in_form = 0, n = 3000;
    seed = 5;
    for (size_t i = 0; i < n; i++) {
        struct sl_buffer text;
        struct written w;
        json_t *record = random_record();
        sl_buffer_init(&text, 1 << 20);
        add_object(&text, record, draw(2) ? 0 : 20);
        write_record(&w, &form, sl_buffer_span(&text), i);
        if (w.t.status != SL_OK || !w.is_written)
            fail_msg("%.*s: %s", SL_ARG(sl_buffer_span(&text)), w.t.error.text);
        n_in_form += assert_recognized(&w);
        assert_is_lambdas(&w, record);
        written_clean_up(&w);
        json_decref(record);
        sl_buffer_clean_up(&text);
    }
    assert_true(n_in_form > n / 20 && n_in_form < n - n / 20);
}

/* ---- compact text ---- */

static bool is_compact_plainly(struct sl_span text)
{
    bool is_in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"')
            is_in_string = !is_in_string;
        else if (is_in_string && text.ptr[i] == '\\')
            i++;
        else if (!is_in_string && (unsigned char)text.ptr[i] <= ' ')
            return false;
    }
    return true;
}

static void space_between_tokens_is_noticed(void **state)
{
    (void)state;
    size_t n_compact = 0, n = 4000;
    seed = 9;
    for (size_t i = 0; i < n; i++) {
        struct sl_buffer text;
        json_t *record = random_record();
        sl_buffer_init(&text, 1 << 20);
        if (draw(4))
            add_object(&text, record, draw(2) ? 0 : 60);
        else /* shorter than the block that is looked at at a time */
            sl_buffer_printf(&text, draw(2) ? "{\"a\":%s\"b c\"}" : "[1,%s2]", draw(2) ? " " : "");
        bool is_compact = is_compact_plainly(sl_buffer_span(&text));
        n_compact += is_compact;
        if (sl_lambda_form_is_compact(sl_buffer_span(&text)) != is_compact)
            fail_msg("%.*s", SL_ARG(sl_buffer_span(&text)));
        json_decref(record);
        sl_buffer_clean_up(&text);
    }
    assert_true(n_compact > n / 10 && n_compact < n - n / 10);
}

/* ---- batches ---- */

/* {"dynamodb":{"Keys":{"k":{"S":"a"}}},"eventName":"INSERT"} */
#define DATA  "eyJkeW5hbW9kYiI6eyJLZXlzIjp7ImsiOnsiUyI6ImEifX19LCJldmVudE5hbWUiOiJJTlNFUlQifQ=="
#define OUTER "{'kinesis':{'sequenceNumber':'1','data': '" DATA "'},'eventSource':'aws:kinesis'}"
#define TIGHT "{'kinesis':{'sequenceNumber':'1','data':'" DATA "'},'eventSource':'aws:kinesis'}"

/* Of Kinesis the records around the changes are delivered, without whitespace. */
static void kinesis_is_delivered_as_it_came(void **state)
{
    (void)state;
    static const char *const texts[] = {"{'Records':[" OUTER ", " TIGHT "]}",
                                        "\xEF\xBB\xBF{'Records':[" TIGHT "," OUTER "]}",
                                        "[ " OUTER "," TIGHT "]", OUTER "\n " TIGHT "\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct test_batch t;
        struct sl_lambda_batch out;
        test_decode(&t, json_span(texts[i]), NULL);
        if (t.status != SL_OK)
            fail_msg("%s: %s", texts[i], t.error.text);
        assert_false(sl_lambda_batch_take(&t.batch, &out));
        assert_int_equal(sl_lambda_batch_make(&t.batch, &form, 0, t.arena, &out, NULL), SL_OK);
        assert_true(out.is_kinesis);
        assert_int_equal(out.batch.n, 2);
        for (size_t k = 0; k < 2; k++)
            assert_span_is(sl_lambda_batch_text(&out, k), json(TIGHT));
        test_batch_clean_up(&t);
    }
}

/* Records count from the beginning of the input. */
static void a_batch_is_of_one_kind(void **state)
{
    (void)state;
    static const struct {
        const char *text, *code, *error;
    } cases[] = {
        {OWN "\n" OWN "\n", NULL, NULL},
        {OWN "\n" TIGHT "\n", "TwoSources", "both DynamoDB Streams and Kinesis (record 41)"},
        {OWN "\n{'Item':{'PK':{'S':'a'}}}\n", "NoKeys", "record 41 is an item without keys"},
    };
    struct sl_lambda_form how = form;
    how.before = 40;
    how.keys = NULL;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_batch t;
        struct sl_lambda_batch out;
        struct sl_error error = SL_NO_ERROR;
        test_decode(&t, json_span(cases[i].text), NULL);
        if (t.status != SL_OK)
            fail_msg("%s: %s", cases[i].text, t.error.text);
        assert_int_equal(sl_lambda_batch_take(&t.batch, &out), !cases[i].code);
        assert_int_equal(sl_lambda_batch_make(&t.batch, &how, 0, t.arena, &out, &error),
                         cases[i].code ? SL_REJECT : SL_OK);
        if (cases[i].code) {
            assert_string_equal(error.code, cases[i].code);
            assert_non_null(strstr(error.text, cases[i].error));
        } else {
            assert_false(out.is_kinesis);
            assert_span_is(sl_lambda_batch_text(&out, 1), json(OWN));
        }
        test_batch_clean_up(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_becomes_lambdas),       cmocka_unit_test(the_region_is_the_records),
        cmocka_unit_test(an_items_keys_have_to_be_named),  cmocka_unit_test(what_is_written_is_lambdas_form),
        cmocka_unit_test(space_between_tokens_is_noticed), cmocka_unit_test(kinesis_is_delivered_as_it_came),
        cmocka_unit_test(a_batch_is_of_one_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
