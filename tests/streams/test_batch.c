#include "tests/support/test.h"

#include "base/base64.h"
#include "base/buffer.h"
#include "streams/value.h"
#include "tests/support/records.h"

#include <stdio.h>
#include <stdlib.h>

#define ARN "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2020-07-16T21:40:16.972"

#define KEYS "\"Keys\":{\"PK\":{\"S\":\"a\"}}"

#define RECORD                                                                                               \
    "{\"eventID\":\"aadf\",\"eventName\":\"MODIFY\",\"eventVersion\":\"1.1\",\"eventSource\":\"aws:"         \
    "dynamodb\",\"awsRegion\":\"eu-west-1\",\"dynamodb\":{\"ApproximateCreationDateTime\":1594935882," KEYS  \
    ",\"NewImage\":{\"PK\":{\"S\":\"a\"},\"n\":{\"N\":\"1\"}},\"OldImage\":{\"PK\":{\"S\":\"a\"}},"          \
    "\"SequenceNumber\":\"400000000008367680596\",\"SizeBytes\":6,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"" \
    "},\"eventSourceARN\":\"" ARN "\"}"

static const char event[] = "{\"Records\":[" RECORD "," RECORD "]}";

static const struct sl_record *decoded(struct test_batch *t, const char *text, size_t n)
{
    test_decode(t, sl_span_str(text), NULL);
    assert_string_equal(t->error.text, "");
    assert_int_equal(t->status, SL_OK);
    assert_int_equal(t->batch.n, n);
    return n ? sl_batch_record(&t->batch, 0) : NULL;
}

static void refused(const char *text, const char *code, size_t offset, const char *why)
{
    struct test_batch t;
    test_decode(&t, sl_span_str(text), NULL);
    assert_int_equal(t.status, SL_REJECT);
    assert_string_equal(t.error.text, why);
    assert_string_equal(t.error.code, code);
    assert_int_equal(t.error.offset, offset);
    test_batch_clean_up(&t);
}

static void an_event_becomes_records(void **state)
{
    (void)state;
    struct test_batch t;
    const struct sl_record *r = decoded(&t, event, 2);
    assert_int_equal(t.batch.shape, SL_SHAPE_EVENT);
    assert_int_equal(sl_record_event(r), SL_MODIFY);
    assert_int_equal(sl_record_view(r), SL_VIEW_NEW_AND_OLD_IMAGES);
    assert_int_equal(sl_record_created_ns(r), 1594935882000000000);
    assert_int_equal(sl_record_stated_bytes(r), 6);
    assert_int_equal(sl_record_computed_bytes(r), 3 + 3 + 3 + 3);
    assert_span_is(sl_record_text(r, SL_FIELD_RAW), RECORD);
    assert_span_is(sl_record_text(r, SL_FIELD_EVENT_ID), "aadf");
    assert_span_is(sl_record_text(r, SL_FIELD_IDENTIFIER), "400000000008367680596");
    assert_span_is(sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER), "400000000008367680596");
    assert_span_is(sl_record_text(r, SL_FIELD_REGION), "eu-west-1");
    assert_span_is(sl_record_text(r, SL_FIELD_SOURCE_ARN), ARN);
    assert_span_is(sl_record_text(r, SL_FIELD_TABLE), "orders");
    assert_span_is(t.batch.source_arn, ARN);
    assert_span_is(sl_record_image(r, SL_KEYS).raw, "{\"PK\":{\"S\":\"a\"}}");
    assert_span_is(sl_record_image(r, SL_NEW_IMAGE).raw, "{\"PK\":{\"S\":\"a\"},\"n\":{\"N\":\"1\"}}");
    assert_span_is(sl_record_image(r, SL_OLD_IMAGE).raw, "{\"PK\":{\"S\":\"a\"}}");
    assert_span_is(sl_record_text(sl_batch_record(&t.batch, 1), SL_FIELD_RAW), RECORD);
    test_batch_clean_up(&t);
}

/* The event is refused at every cut, at the cut, with no byte read beyond it. */
static void an_event_cut_at_any_byte_is_refused_at_the_cut(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(event) - 1; n++) {
        struct test_batch t;
        test_decode(&t, sl_span(event, n), NULL);
        assert_int_equal(t.status, SL_REJECT);
        assert_string_equal(t.error.code, "InvalidJson");
        assert_int_equal(t.error.offset, n);
        test_batch_clean_up(&t);
        test_decode_event(&t, sl_span(event, n));
        assert_int_equal(t.status, SL_REJECT);
        assert_int_equal(t.error.offset, n);
        test_batch_clean_up(&t);
    }
}

/* The spelling of GetRecords, no ARN, and what other writers do to the text: whitespace, escapes, a byte
 * order mark, members in another order, nulls, members nobody knows. */
static void other_spellings_mean_the_same(void **state)
{
    (void)state;
    struct test_batch t;
    const struct sl_record *r = decoded(
        &t,
        "\xEF\xBB\xBF {\n \"NextShardIterator\" : null,\n \"Records\" : [ {\n \"dynamodb\" : {\n"
        "\"StreamViewType\" : null , \"SizeBytes\" : null, \"Keys\" : { \"P\\u004b\" : { \"\\u0053\" : "
        "\"\\u0061\" } } , \"OldImage\" : { } , \"NewImage\" : null } , \"new\" : [ { } , [ ] , 1 ] ,\n"
        "\"userIdentity\" : { \"PrincipalId\" : \"dynamodb.amazonaws.com\" , \"Type\" : \"Service\" } ,"
        "\"event\\u004eame\" : \"REM\\u004fVE\" , \"eventID\" : \"a\\u0062\" } ] } ",
        1);
    assert_int_equal(sl_record_event(r), SL_REMOVE);
    assert_int_equal(sl_record_ttl(r), SL_TTL_EXPIRED);
    assert_int_equal(sl_record_view(r), SL_VIEW_UNKNOWN);
    assert_int_equal(sl_record_created_ns(r), 0);
    assert_int_equal(sl_record_stated_bytes(r), 0);
    assert_int_equal(sl_record_computed_bytes(r), 3);
    assert_span_is(sl_record_text(r, SL_FIELD_EVENT_ID), "ab");
    assert_null(sl_record_text(r, SL_FIELD_IDENTIFIER).ptr);
    assert_null(sl_record_text(r, SL_FIELD_SOURCE_ARN).ptr);
    assert_null(sl_record_text(r, SL_FIELD_TABLE).ptr);
    assert_null(t.batch.source_arn.ptr);
    assert_int_equal(sl_record_image(r, SL_NEW_IMAGE).type, SL_NONE);
    assert_span_is(sl_record_image(r, SL_OLD_IMAGE).raw, "{ }");
    assert_span_is(sl_record_item_key(r, t.arena), "{\"M\":{\"PK\":{\"S\":\"a\"}}}");
    test_batch_clean_up(&t);
}

/* Ten digits and what may follow them. */
/* Also where one map teaches how the next one begins. */
static void space_between_tokens_does_not_matter(void **state)
{
    (void)state;
    static const char *const contents[][2] = {
        {"S", "'a'"},    {"N", "'1'"},    {"B", "'YQ=='"}, {"BOOL", "true"},         {"NULL", "true"},
        {"SS", "['a']"}, {"NS", "['1']"}, {"L", "[]"},     {"M", "{'b':{'N':'2'}}"},
    };
    static const char *const spaces[] = {"", " ", "  ", "\n", "\r\n\t"};
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++)
        for (size_t k = 0; k < 25; k++) {
            struct test_batch t;
            const char *item = json_printf("'PK':{'S':%s'a'},'v':{'%s':%s%s},'w':{'N':'1'}", spaces[k % 5],
                                           contents[i][0], spaces[k % 5], contents[i][1]);
            const char *other = json_printf("'PK':{'S':%s'a'},'v':{'%s':%s%s},'w':{'N':'1'}", spaces[k / 5],
                                            contents[i][0], spaces[k / 5], contents[i][1]);
            const struct sl_record *r = decoded(
                &t,
                json_printf("{'eventName':'MODIFY','dynamodb':{'Keys':{'PK':{'S':'a'}},'NewImage':{%s},"
                            "'OldImage':{%s}},'eventSourceARN':'" ARN "','eventID':'" ARN "'}",
                            item, other),
                1);
            assert_true(sl_value_equal(sl_record_image(r, SL_NEW_IMAGE), sl_record_image(r, SL_OLD_IMAGE)));
            test_batch_clean_up(&t);
        }
}

static void a_time_may_have_a_fraction(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } times[] = {{"1594935882", 1594935882000000000},    {"1594935882 ", 1594935882000000000},
                 {"1594935882.25", 1594935882250000000}, {"1594935882.0", 1594935882000000000},
                 {"1594935882e0", 1594935882000000000},  {"1.594935882E9", 1594935882000000000},
                 {"159493588.5", 159493588500000000},    {"2000000009.9", 2000000009900000000}};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        for (int is_last = 0; is_last < 2; is_last++) {
            char text[256];
            struct test_batch t;
            snprintf(text, sizeof(text),
                     "[{\"eventName\":\"REMOVE\",\"dynamodb\":{%s\"ApproximateCreationDateTime\":%s%s}}]",
                     is_last ? KEYS "," : "", times[i].text, is_last ? "" : "," KEYS);
            assert_int_equal(sl_record_created_ns(decoded(&t, text, 1)), times[i].ns);
            test_batch_clean_up(&t);
        }
}

/* Nobody reads the version, so it may be any value. */
static void a_version_may_be_anything(void **state)
{
    (void)state;
    static const char *const versions[] = {"\"1.1\"", "\"\"", "1.1", "null", "true", "{}", "[1,2]"};
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        char text[256];
        struct test_batch t;
        snprintf(text, sizeof(text),
                 "[{\"eventVersion\":%s,\"eventName\":\"REMOVE\",\"dynamodb\":{" KEYS "}}]", versions[i]);
        assert_int_equal(sl_record_event(decoded(&t, text, 1)), SL_REMOVE);
        test_batch_clean_up(&t);
    }
}

static void an_empty_batch_has_no_records(void **state)
{
    (void)state;
    struct test_batch t;
    decoded(&t, "{\"Records\":[]}", 0);
    assert_int_equal(t.batch.shape, SL_SHAPE_EVENT);
    test_batch_clean_up(&t);
    decoded(&t, " [ ] ", 0);
    assert_int_equal(t.batch.shape, SL_SHAPE_ARRAY);
    test_batch_clean_up(&t);
}

static void a_pipe_delivers_an_array(void **state)
{
    (void)state;
    struct test_batch t;
    test_decode_event(&t, SL_LIT("[" RECORD "," RECORD "," RECORD "]"));
    assert_int_equal(t.status, SL_OK);
    assert_int_equal(t.batch.shape, SL_SHAPE_ARRAY);
    assert_int_equal(t.batch.n, 3);
    test_batch_clean_up(&t);
}

static void a_window_has_bounds_and_state(void **state)
{
    (void)state;
    struct test_batch t;
    decoded(&t,
            "{\"Records\":[" RECORD "],\"window\":{\"start\":\"2020-07-30T17:00:00Z\",\"end\":"
            "\"2020-07-30T17:05:00Z\"},\"state\":{\"1\":\"state1\"},\"shardId\":\"shard\\u0031\","
            "\"eventSourceARN\":\"stream-ARN\",\"isFinalInvokeForWindow\":false,"
            "\"isWindowTerminatedEarly\":true}",
            1);
    assert_true(t.batch.is_window);
    assert_false(t.batch.is_final);
    assert_true(t.batch.is_terminated_early);
    assert_span_is(t.batch.window, "{\"start\":\"2020-07-30T17:00:00Z\",\"end\":\"2020-07-30T17:05:00Z\"}");
    assert_span_is(t.batch.state, "{\"1\":\"state1\"}");
    assert_span_is(t.batch.shard_id, "shard1");
    assert_span_is(t.batch.source_arn, "stream-ARN");
    test_batch_clean_up(&t);
    decoded(&t, "{\"window\":{},\"Records\":[],\"isFinalInvokeForWindow\":true,\"shardId\":5}", 0);
    assert_true(t.batch.is_window);
    assert_true(t.batch.is_final);
    assert_null(t.batch.state.ptr);
    assert_null(t.batch.shard_id.ptr);
    test_batch_clean_up(&t);
    decoded(&t, "{\"window\":5,\"Records\":[]}", 0);
    assert_false(t.batch.is_window);
    test_batch_clean_up(&t);
}

static void a_file_may_hold_a_record_a_line(void **state)
{
    (void)state;
    struct test_batch t;
    decoded(&t, RECORD "\n" RECORD "\r\n\n" RECORD, 3);
    assert_int_equal(t.batch.shape, SL_SHAPE_LINES);
    test_batch_clean_up(&t);
    decoded(&t,
            "{\n \"eventName\": \"INSERT\",\n \"dynamodb\": {" KEYS "},\n \"sluice\": {\"index\": 0}\n}\n",
            1);
    test_batch_clean_up(&t);
    test_decode_event(&t, SL_LIT(RECORD "\n" RECORD));
    assert_int_equal(t.status, SL_REJECT);
    assert_string_equal(t.error.code, "NotAStreamEvent");
    test_batch_clean_up(&t);
}

static void lines_go_on_until_the_bad_one(void **state)
{
    (void)state;
    struct test_batch t;
    test_decode(&t, SL_LIT(RECORD "\n" RECORD "\n{\"eventName\":\"INSERT\",\n"), NULL);
    assert_int_equal(t.status, SL_REJECT);
    assert_string_equal(t.error.code, "InvalidJson");
    assert_int_equal(t.batch.n, 2);
    assert_span_is(sl_record_text(sl_batch_record(&t.batch, 1), SL_FIELD_RAW), RECORD);
    test_batch_clean_up(&t);
    test_decode(&t, SL_LIT(RECORD "\n{\"foo\":1}\n" RECORD), NULL);
    assert_int_equal(t.status, SL_REJECT);
    assert_string_equal(t.error.code, "InvalidRecord");
    assert_string_equal(t.error.text, "record 1: it has no member \"dynamodb\"");
    assert_int_equal(t.error.offset, sizeof(RECORD));
    assert_int_equal(t.batch.n, 1);
    test_batch_clean_up(&t);
}

/* A byte order mark is one at the beginning of the whole text only, and a piece is never taken for an event.
 */
static void lines_in_pieces_are_read_as_the_whole(void **state)
{
    (void)state;
    static const char whole[] = RECORD "\n" RECORD "\n\n" RECORD "\n", bad[] = "\xEF\xBB\xBF" RECORD "\n";
    for (const char *cut = strchr(whole, '\n') + 1; *cut; cut = strchr(cut, '\n') + 1) {
        struct test_batch first, second;
        test_decode(&first, sl_span(whole, (size_t)(cut - whole)), NULL);
        assert_int_equal(first.status, SL_OK);
        test_decode_lines(&second, sl_span_str(cut), first.batch.n);
        assert_int_equal(second.status, SL_OK);
        assert_int_equal(first.batch.n + second.batch.n, 3);
        assert_int_equal(second.batch.shape, SL_SHAPE_LINES);
        test_batch_clean_up(&first);
        test_batch_clean_up(&second);
    }
    struct test_batch t;
    test_decode(&t, sl_span_str(bad), NULL);
    assert_int_equal(t.status, SL_OK);
    test_batch_clean_up(&t);
    test_decode_lines(&t, sl_span_str(bad), 1);
    assert_int_equal(t.status, SL_REJECT);
    assert_int_equal(t.error.offset, 0);
    test_batch_clean_up(&t);
    test_decode_lines(&t, SL_LIT(RECORD "\n{\"foo\":1}\n"), 7);
    assert_string_equal(t.error.text, "record 8: it has no member \"dynamodb\"");
    test_batch_clean_up(&t);
    test_decode_lines(&t, SL_LIT("{\"Records\":[" RECORD "]}\n"), 1);
    assert_int_equal(t.status, SL_REJECT);
    test_batch_clean_up(&t);
}

static void a_full_export_is_read_as_inserts(void **state)
{
    (void)state;
    struct test_batch t;
    const struct sl_record *r = decoded(
        &t, "{\"Item\":{\"PK\":{\"S\":\"a\"},\"n\":{\"N\":\"1.0\"}}}\n{\"Item\":{\"PK\":{\"S\":\"b\"}}}\n",
        2);
    assert_int_equal(sl_record_event(r), SL_INSERT);
    assert_int_equal(sl_record_image(r, SL_KEYS).type, SL_NONE);
    assert_span_is(sl_record_image(r, SL_NEW_IMAGE).raw, "{\"PK\":{\"S\":\"a\"},\"n\":{\"N\":\"1.0\"}}");
    assert_null(sl_record_order(r, t.arena).ptr);
    assert_span_is(sl_record_item_key(r, t.arena), "{\"M\":{\"PK\":{\"S\":\"a\"},\"n\":{\"N\":\"1\"}}}");
    test_batch_clean_up(&t);
    refused("{\"Item\":null}", "NotAStreamEvent", 0, "it has no member \"dynamodb\"");
}

static void an_incremental_export_tells_its_events_by_their_images(void **state)
{
    (void)state;
    static const char meta[] = "\"Metadata\":{\"WriteTimestampMicros\":{\"N\":\"1680109764000123\"}}";
    static const struct {
        const char *images;
        enum sl_event event;
    } cases[] = {{",\"NewImage\":{}", SL_INSERT},
                 {",\"NewImage\":{},\"OldImage\":{}", SL_MODIFY},
                 {",\"OldImage\":{}", SL_REMOVE},
                 {"", SL_REMOVE}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "{%s," KEYS "%s}\n", meta, cases[i].images);
        struct test_batch t;
        const struct sl_record *r = decoded(&t, text, 1);
        assert_int_equal(sl_record_event(r), cases[i].event);
        assert_int_equal(sl_record_created_ns(r), 1680109764000123000);
        assert_span_is(sl_record_order(r, t.arena), "1680109764000123");
        assert_null(sl_record_text(r, SL_FIELD_IDENTIFIER).ptr);
        test_batch_clean_up(&t);
    }
}

/* Regions, ARNs and table names that differ, and those with escapes, each found again. */
static void each_record_keeps_its_own_origin(void **state)
{
    (void)state;
    static const char *const origins[][3] = {
        {"r1", "a:table/t1", ""}, {"r2", "a:table/t1", ""},      {"r2", "a:table/t1", "t2"},
        {"r1", "a:table/t1", ""}, {"r\\u0031", "b:table/t", ""}, {"r1", "a:table\\/t1", ""},
        {"r1", "b", "\\u0074"},   {"r1", "b", "\\u0074"},
    };
    struct sl_buffer text;
    struct test_batch t;
    sl_buffer_init(&text, 1 << 16);
    for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++)
        sl_buffer_printf(
            &text,
            "{\"eventName\":\"INSERT\",\"awsRegion\":\"%s\",\"eventSourceARN\":\"%s\",\"tableName\":\"%s\","
            "\"dynamodb\":{" KEYS "}}\n",
            origins[i][0], origins[i][1], origins[i][2]);
    test_decode(&t, sl_buffer_span(&text), NULL);
    assert_int_equal(t.batch.n, sizeof(origins) / sizeof(origins[0]));
    for (size_t i = 0; i < t.batch.n; i++) {
        const struct sl_record *r = sl_batch_record(&t.batch, i);
        assert_span_is(sl_record_text(r, SL_FIELD_REGION), origins[i][0][1] == '\\' ? "r1" : origins[i][0]);
        assert_span_is(sl_record_text(r, SL_FIELD_SOURCE_ARN), i == 5 ? "a:table/t1" : origins[i][1]);
        static const char *const tables[] = {"t1", "t1", "t2", "t1", "t", "t1", "t", "t"};
        assert_span_is(sl_record_text(r, SL_FIELD_TABLE), tables[i]);
    }
    test_batch_clean_up(&t);
    sl_buffer_clean_up(&text);
}

/* What `sluice erase` left of a record is passed over, unless it is asked for; whatever comes after it. */
static void erased_records_are_passed_over(void **state)
{
    (void)state;
#define LINE(id)                                                                                             \
    "{\"eventID\":\"" id "\",\"eventName\":\"REMOVE\",\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"a\"}}}}\n"
#define STUB(id)                                                                                             \
    "{\"sluice_erased\":\"run\",\"eventID\":\"" id                                                           \
    "\",\"eventName\":\"REMOVE\",\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"x\"}}}}\n"
    static const struct {
        const char *text;
        size_t n, all;
        const char *first; /* event id, of those that are not erased */
    } cases[] = {
        {STUB("1") LINE("2") STUB("3"), 1, 3, "2"},
        {LINE("1") STUB("2"), 1, 2, "1"},
        {STUB("1") STUB("2"), 0, 2, NULL},
        {LINE("1"), 1, 1, "1"},
    };
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int keeps = 0; keeps < 2; keeps++) {
            const struct sl_decode_options options = {.any_shape = true, .keeps_erased = keeps};
            struct sl_batch batch;
            struct sl_error error = SL_NO_ERROR;
            assert_int_equal(sl_batch_decode(sl_span_str(cases[i].text), arena, &options, &batch, &error),
                             SL_OK);
            assert_int_equal(batch.shape, SL_SHAPE_LINES);
            assert_int_equal(batch.n, keeps ? cases[i].all : cases[i].n);
            if (!keeps && cases[i].first)
                assert_span_is(sl_record_text(sl_batch_record(&batch, 0), SL_FIELD_EVENT_ID), cases[i].first);
        }
    /* A line that is cut, or too short to be one, is refused as any other. */
    static const char *const bad[] = {"{\"sluice_erased\":", "{\"sluice_erased\":\"run\"", STUB("1") "{}",
                                      STUB("1") "{\"sluice", "{\"sluice_erased\":1}x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct sl_decode_options options = {.any_shape = true};
        struct sl_batch batch;
        struct sl_error error = SL_NO_ERROR;
        if (sl_batch_decode(sl_span_str(bad[i]), arena, &options, &batch, &error) != SL_REJECT)
            fail_msg("%s", bad[i]);
    }
    sl_arena_destroy(arena);
}

static void an_event_over_4_gib_is_refused_unread(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(64);
    struct sl_batch batch;
    struct sl_error error = SL_NO_ERROR;
    /* Nothing of it is read. */
    assert_int_equal(sl_batch_decode(sl_span("", (size_t)UINT32_MAX + 1), arena,
                                     &(struct sl_decode_options){.any_shape = true}, &batch, &error),
                     SL_REJECT);
    assert_string_equal(error.code, "TooLarge");
    sl_arena_destroy(arena);
}

/* ---- Kinesis ---- */

#define CHANGE                                                                                               \
    "{\"awsRegion\":\"eu-west-1\",\"eventID\":\"u-1\",\"eventName\":\"REMOVE\",\"userIdentity\":null,"       \
    "\"recordFormat\":\"application/json\",\"tableName\":\"orders\",\"dynamodb\":{"                          \
    "\"ApproximateCreationDateTime\":1731924555370," KEYS ",\"OldImage\":{\"PK\":{\"S\":\"a\"},\"v\":{"      \
    "\"S\":\"0123456789012345678901234567890123456789\"}},\"SizeBytes\":60},\"eventSource\":\"aws:"          \
    "dynamodb\"}"

static char *kinesis(const char *change, const char *sequence)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_span data = sl_base64_encode(sl_span_str(change), arena);
    char *text = NULL;
    int n = asprintf(&text,
                     "{\"kinesis\":{\"kinesisSchemaVersion\":\"1.0\",\"partitionKey\":\"AB\","
                     "\"sequenceNumber\":\"%s\",\"data\":\"%.*s\",\"approximateArrivalTimestamp\":1.5},"
                     "\"eventSource\":\"aws:kinesis\",\"eventName\":\"aws:kinesis:record\","
                     "\"eventSourceARN\":\"arn:aws:kinesis:eu-west-1:1:stream/s\"}",
                     sequence, SL_ARG(data));
    assert_true(n > 0);
    sl_arena_destroy(arena);
    return text;
}

static char *kinesis_event(const char *change_a, const char *change_b)
{
    char *a = kinesis(change_a, "49590338271490256608559692538361571095921575989136588898");
    char *b = kinesis(change_b, "49590338271490256608559692538361571095921575989136588899");
    char *text = NULL;
    assert_true(asprintf(&text, "{\"Records\":[%s,%s]}", a, b) > 0);
    free(a);
    free(b);
    return text;
}

static void kinesis_records_are_unwrapped(void **state)
{
    (void)state;
    struct test_batch t;
    char *text = kinesis_event(CHANGE, " " CHANGE "\n");
    test_decode_event(&t, sl_span_str(text));
    assert_string_equal(t.error.text, "");
    assert_int_equal(t.batch.shape, SL_SHAPE_KINESIS);
    assert_int_equal(t.batch.n, 2);
    const struct sl_record *r = sl_batch_record(&t.batch, 1);
    assert_int_equal(sl_record_event(r), SL_REMOVE);
    assert_int_equal(sl_record_created_ns(r), 1731924555370000000);
    assert_span_is(sl_record_text(r, SL_FIELD_RAW), CHANGE);
    assert_span_is(sl_record_text(r, SL_FIELD_EVENT_ID), "u-1");
    assert_span_is(sl_record_text(r, SL_FIELD_IDENTIFIER),
                   "49590338271490256608559692538361571095921575989136588899");
    assert_null(sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER).ptr);
    assert_span_is(sl_record_text(r, SL_FIELD_TABLE), "orders");
    assert_span_is(sl_record_text(r, SL_FIELD_SOURCE_ARN), "arn:aws:kinesis:eu-west-1:1:stream/s");
    assert_span_is(sl_record_order(r, t.arena), "1731924555370000");
    assert_int_equal(sl_record_attribute(r, SL_OLD_IMAGE, SL_LIT("v")).raw.len, 40);
    test_batch_clean_up(&t);
    free(text);
}

/* The inner record is an input by itself too, as it is in an archive. */
static void an_unwrapped_change_is_read_alone(void **state)
{
    (void)state;
    struct test_batch t;
    const struct sl_record *r = decoded(&t, CHANGE "\n", 1);
    assert_null(sl_record_text(r, SL_FIELD_IDENTIFIER).ptr);
    assert_span_is(sl_record_order(r, t.arena), "1731924555370000");
    test_batch_clean_up(&t);
}

static void kinesis_refused(const char *a, const char *b, const char *code, const char *why)
{
    struct test_batch t;
    char *text = kinesis_event(a, b);
    test_decode_event(&t, sl_span_str(text));
    assert_int_equal(t.status, SL_REJECT);
    assert_string_equal(t.error.text, why);
    assert_string_equal(t.error.code, code);
    test_batch_clean_up(&t);
    free(text);
}

static void bad_data_in_kinesis_is_refused(void **state)
{
    (void)state;
    kinesis_refused("hello", CHANGE, "NotAStreamEvent", "its data is not JSON: byte 0: a value is expected");
    kinesis_refused("{\"a\":1}", CHANGE, "NotAStreamEvent",
                    "in its data, byte 0: it has no member \"dynamodb\"");
    kinesis_refused(CHANGE, "{\"a\":1}", "InvalidRecord",
                    "record 1: kinesis.data: in its data, byte 0: it has no member \"dynamodb\"");
    kinesis_refused(CHANGE, "{\"a\":}", "InvalidRecord",
                    "record 1: kinesis.data: its data is not JSON: byte 5: a value is expected");
    kinesis_refused(CHANGE, CHANGE "{}", "InvalidRecord",
                    "record 1: kinesis.data: its data is not JSON: byte 343: more text after the value");
    kinesis_refused("{\"eventName\":\"INSERT\",\"dynamodb\":{}}", CHANGE, "InvalidRecord",
                    "record 0: kinesis.data: in its data, byte 0: it has no Keys");
    refused("{\"Records\":[{\"kinesis\":{\"sequenceNumber\":\"1\",\"data\":\"Zg=\"}}]}", "InvalidRecord", 12,
            "record 0: kinesis.data is not base64");
    refused("{\"Records\":[{\"kinesis\":{\"sequenceNumber\":\"1\"}}]}", "InvalidRecord", 12,
            "record 0: kinesis.data is not base64");
    refused("{\"Records\":[{\"kinesis\":{\"data\":\"\"}}]}", "InvalidRecord", 12,
            "record 0: kinesis.sequenceNumber is not a decimal number");
}

/* ---- what is refused ---- */

static void other_services_events_are_refused(void **state)
{
    (void)state;
    static const char none[] = "NotAStreamEvent";
    refused("5", none, 0, "it is not an object with \"Records\"");
    refused(" \"x\" ", none, 1, "it is not an object with \"Records\"");
    refused("{}", none, 0, "it has no member \"dynamodb\"");
    refused("[1]", none, 1, "its first record is not an object");
    refused("{\"Records\":null}", none, 0, "it has no member \"dynamodb\"");
    refused("{\"Records\":{}}", none, 11, "\"Records\" is not an array, or is there twice");
    refused("{\"Records\":[],\"Records\":[]}", none, 24, "\"Records\" is not an array, or is there twice");
    refused("{\"Records\":[5]}", none, 12, "its first record is not an object");
    refused("{\"Records\":[{\"eventSource\":\"aws:s3\",\"eventName\":\"ObjectCreated:Put\"}]}", none, 12,
            "its eventSource is aws:s3, not aws:dynamodb");
    refused("{\"Records\":[{\"eventSource\":\"aws:s3\",\"eventName\":\"INSERT\",\"dynamodb\":{" KEYS "}}]}",
            none, 12, "its eventSource is aws:s3, not aws:dynamodb");
    refused("{\"Records\":[{\"messageId\":\"1\",\"body\":\"{}\"}]}", none, 12,
            "it has no member \"dynamodb\"");
}

static void broken_json_is_refused_at_its_byte(void **state)
{
    (void)state;
    static const char json[] = "InvalidJson";
    refused("", json, 0, "the text ends too early");
    refused("  ", json, 2, "the text ends too early");
    refused("hello", json, 0, "a value is expected");
    refused("{\"Records\":[]} x", json, 15, "more text after the event");
    refused("{\"Records\":[" RECORD ",]}", json, 12 + sizeof(RECORD), "a value is expected");
    refused("{\"Records\" []}", json, 11, "':' is expected");
    refused("{\"Records\":[} ", json, 12, "a value is expected");
    refused("{\"Records\":5x}", json, 12, "',' or '}' is expected");
}

#define BROKEN(members, others)                                                                              \
    "{\"Records\":[{\"eventName\":\"INSERT\",\"dynamodb\":{" members "}" others "}]}"

static void a_broken_record_is_named_with_its_member(void **state)
{
    (void)state;
    static const char bad[] = "InvalidRecord";
    refused(BROKEN("", ""), bad, 12, "record 0: it has no Keys");
    refused("{\"Records\":[{\"eventName\":\"INSERT\"}]}", bad, 12, "record 0: it has no member \"dynamodb\"");
    refused("{\"Records\":[{\"eventSource\":\"aws:dynamodb\"}]}", bad, 12,
            "record 0: it has no member \"dynamodb\"");
    refused("{\"Records\":[{\"dynamodb\":{" KEYS "}}]}", bad, 12, "record 0: it has no eventName");
    refused("{\"Records\":[{\"eventName\":\"UPDATE\",\"dynamodb\":{" KEYS "}}]}", bad, 12,
            "record 0: eventName is not INSERT, MODIFY or REMOVE");
    refused("{\"Records\":[{\"eventName\":5,\"dynamodb\":{" KEYS "}}]}", bad, 25,
            "record 0: eventName: a string is expected");
    refused("{\"Records\":[" RECORD ",5]}", bad, 12 + sizeof(RECORD), "record 1: an object is expected");
    refused(BROKEN(KEYS ",\"SequenceNumber\":\"12x\"", ""), bad, 87,
            "record 0: dynamodb.SequenceNumber: SequenceNumber is not a decimal number");
    refused(BROKEN(KEYS ",\"SequenceNumber\":\"\"", ""), bad, 87,
            "record 0: dynamodb.SequenceNumber: SequenceNumber is not a decimal number");
    refused(BROKEN(KEYS ",\"StreamViewType\":\"ALL\"", ""), bad, 87,
            "record 0: dynamodb.StreamViewType: not a StreamViewType (KEYS_ONLY, NEW_IMAGE, OLD_IMAGE, "
            "NEW_AND_OLD_IMAGES)");
    refused(BROKEN(KEYS ",\"SizeBytes\":1.5", ""), bad, 82,
            "record 0: dynamodb.SizeBytes: SizeBytes is not a whole number");
    refused(BROKEN(KEYS ",\"SizeBytes\":-1", ""), bad, 82,
            "record 0: dynamodb.SizeBytes: SizeBytes is not a whole number");
    refused(BROKEN(KEYS ",\"ApproximateCreationDateTimePrecision\":\"DAY\"", ""), bad, 109,
            "record 0: dynamodb.ApproximateCreationDateTimePrecision: not a precision (MILLISECOND, "
            "MICROSECOND)");
    refused(BROKEN(KEYS ",\"ApproximateCreationDateTime\":-5", ""), bad, 12,
            "record 0: ApproximateCreationDateTime is not a time");
    refused(BROKEN(KEYS ",\"ApproximateCreationDateTime\":\"soon\"", ""), bad, 12,
            "record 0: ApproximateCreationDateTime is not a time");
    refused(BROKEN(KEYS, ",\"userIdentity\":5"), bad, 86, "record 0: userIdentity: an object is expected");
    refused("{\"Metadata\":{\"WriteTimestampMicros\":{\"N\":\"x\"}}," KEYS "}", bad, 0,
            "record 0: WriteTimestampMicros is not a time");
}

/* A rule is broken, and further on the record is no JSON: that comes first. */
static void broken_json_is_reported_before_broken_rules(void **state)
{
    (void)state;
    refused("{\"Records\":[{\"eventName\":5,\"dynamodb\":{x}]}", "InvalidJson", 39, "a string is expected");
    refused("{\"Records\":[{\"eventName\":tru}]}", "InvalidJson", 28, "a value is expected");
}

/* More than one chunk of records, and tables that alternate. */
static void many_records_keep_their_order_and_tables(void **state)
{
    (void)state;
    struct sl_buffer text;
    struct test_batch t;
    sl_buffer_init(&text, 1 << 24);
    for (int i = 0; i < 1500; i++)
        sl_buffer_printf(&text,
                         "{\"eventName\":\"INSERT\",\"eventID\":\"%d\",\"eventSourceARN\":\"a:table/t%d/s\","
                         "\"dynamodb\":{" KEYS "}}\n",
                         i, i < 700 ? i % 3 : i);
    test_decode(&t, sl_buffer_span(&text), NULL);
    assert_int_equal(t.batch.n, 1500);
    for (int i = 0; i < 1500; i++) {
        const struct sl_record *r = sl_batch_record(&t.batch, (size_t)i);
        char id[16], table[16];
        snprintf(id, sizeof(id), "%d", i);
        snprintf(table, sizeof(table), "t%d", i < 700 ? i % 3 : i);
        assert_span_is(sl_record_text(r, SL_FIELD_EVENT_ID), id);
        assert_span_is(sl_record_text(r, SL_FIELD_TABLE), table);
        assert_span_is(sl_record_attribute(r, SL_KEYS, SL_LIT("PK")).raw, "a");
    }
    test_batch_clean_up(&t);
    sl_buffer_clean_up(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_becomes_records),
        cmocka_unit_test(an_event_cut_at_any_byte_is_refused_at_the_cut),
        cmocka_unit_test(other_spellings_mean_the_same),
        cmocka_unit_test(space_between_tokens_does_not_matter),
        cmocka_unit_test(a_time_may_have_a_fraction),
        cmocka_unit_test(a_version_may_be_anything),
        cmocka_unit_test(an_empty_batch_has_no_records),
        cmocka_unit_test(a_pipe_delivers_an_array),
        cmocka_unit_test(a_window_has_bounds_and_state),
        cmocka_unit_test(a_file_may_hold_a_record_a_line),
        cmocka_unit_test(lines_go_on_until_the_bad_one),
        cmocka_unit_test(lines_in_pieces_are_read_as_the_whole),
        cmocka_unit_test(a_full_export_is_read_as_inserts),
        cmocka_unit_test(an_incremental_export_tells_its_events_by_their_images),
        cmocka_unit_test(kinesis_records_are_unwrapped),
        cmocka_unit_test(an_unwrapped_change_is_read_alone),
        cmocka_unit_test(bad_data_in_kinesis_is_refused),
        cmocka_unit_test(other_services_events_are_refused),
        cmocka_unit_test(broken_json_is_refused_at_its_byte),
        cmocka_unit_test(a_broken_record_is_named_with_its_member),
        cmocka_unit_test(broken_json_is_reported_before_broken_rules),
        cmocka_unit_test(many_records_keep_their_order_and_tables),
        cmocka_unit_test(each_record_keeps_its_own_origin),
        cmocka_unit_test(erased_records_are_passed_over),
        cmocka_unit_test(an_event_over_4_gib_is_refused_unread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
