/* A page of a shard: each record of an answer as Lambda would deliver it, up to the first that cannot be
 * read.
 */
#include "live/tail/page.h"
#include "streams/record.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define ARN    "arn:aws:dynamodb:eu-west-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"
#define NOW_MS INT64_C(1790000000000)
#define RECORD(event, time, number, more)                                                                    \
    "{'eventID':'e" number "','eventName':'" event "','eventVersion':'1.1','eventSource':'aws:dynamodb',"    \
    "'awsRegion':'eu-west-1'" more ",'dynamodb':{" time "'Keys':{'PK':{'S':'k" number                        \
    "'}},'SequenceNumber':'" number "','SizeBytes':9,'StreamViewType':'KEYS_ONLY'}}"
#define AT(seconds) "'ApproximateCreationDateTime':" seconds ","
#define BAD         "{'eventID':'x','eventName':'INSERT','dynamodb':{'SequenceNumber':'666'}}"

static struct sl_page_options options(struct sl_arena *scratch)
{
    return (struct sl_page_options){
        .stream_arn = ARN, .now_ms = NOW_MS, .available_ms = NOW_MS + 1, .scratch = scratch};
}

static struct sl_page *make(const struct sl_page_options *o, const char *records)
{
    struct sl_page *page = NULL;
    struct sl_error error = SL_NO_ERROR;
    struct sl_span answer = sl_span_str(json_printf("{'Records':[%s],'NextShardIterator':'i'}", records));
    if (sl_page_make(o, answer, &page, &error) != SL_OK)
        fail_msg("%s", error.text);
    return page;
}

static void records_are_as_lambda_delivers_them(void **state)
{
    (void)state;
    struct sl_arena *scratch = sl_arena_new(4096);
    struct sl_page_options o = options(scratch);
    for (int wants_all = 0; wants_all < 2; wants_all++) {
        o.needs_item_keys = o.needs_records = wants_all;
        struct sl_page *page =
            make(&o, RECORD("INSERT", AT("1789999990"), "8", "") "," RECORD("MODIFY", "", "9", "") "," RECORD(
                         "REMOVE", AT("1789999999"), "10",
                         ",'userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'}"));
        assert_int_equal(page->n, 3);
        assert_int_equal(page->n_read, 3);
        assert_false(page->is_cut);
        assert_string_equal(page->last_id, "10");
        assert_int_equal(page->last_ms, INT64_C(1789999999000));
        assert_int_equal(page->told_ms, page->last_ms);
        assert_int_equal(page->by_event[SL_INSERT] + page->by_event[SL_MODIFY] + page->by_event[SL_REMOVE],
                         3);
        assert_int_equal(page->by_event[SL_REMOVE], 1);
        assert_true(page->bytes > 3 * 200);
        static const char *const ids[] = {"8", "9", "10"};
        for (size_t i = 0; i < 3; i++) {
            const struct sl_esm_record *r = &page->records[i];
            char text[1000];
            snprintf(text, sizeof(text), "%.*s", SL_ARG(r->text));
            assert_span_is(r->id, ids[i]);
            assert_non_null(strstr(text, "\"eventSourceARN\":\"" ARN "\""));
            assert_non_null(strstr(text, json_printf("\"SequenceNumber\":\"%s\"", ids[i])));
            assert_int_equal(r->available_ms, NOW_MS + 1);
            assert_int_equal(r->item_key.ptr != NULL, wants_all);
            assert_int_equal(r->record != NULL, wants_all);
            if (wants_all)
                assert_span_is(sl_record_text(r->record, SL_FIELD_IDENTIFIER), ids[i]);
        }
        /* One that says no time was made now. */
        assert_int_equal(page->records[1].created_ms, NOW_MS);
        sl_page_destroy(page);
    }
    struct sl_page *page = make(&o, "");
    assert_true(page->n == 0 && page->n_read == 0 && !page->last_id && page->last_ms == 0);
    sl_page_destroy(page);
    sl_page_destroy(NULL);
    sl_arena_destroy(scratch);
}

/* From a moment on: by minutes, as DynamoDB Local tells them. What is left out is read all the same. */
static void records_before_the_beginning_are_left_out(void **state)
{
    (void)state;
    struct sl_arena *scratch = sl_arena_new(4096);
    struct sl_page_options o = options(scratch);
    o.needs_records = true;
    o.since_ms = INT64_C(1789999980) * 1000 + 30000; /* in the minute that begins at ...980 */
    struct sl_page *page =
        make(&o, RECORD("INSERT", AT("1789999979"), "1", "") "," RECORD(
                     "INSERT", AT("1789999980"), "2", "") "," RECORD("INSERT", "", "3", ""));
    assert_int_equal(page->n_read, 3);
    assert_int_equal(page->n, 2);
    assert_span_is(page->records[0].id, "2");
    sl_page_destroy(page);
    page = make(&o, RECORD("INSERT", AT("1789999979"), "1", ""));
    assert_true(page->n == 0 && page->n_read == 1);
    assert_string_equal(page->last_id, "1");
    sl_page_destroy(page);
    sl_arena_destroy(scratch);
}

/* What is before it is delivered; alone it is refused, by its number. */
static void a_record_that_cannot_be_read_cuts_the_page(void **state)
{
    (void)state;
    struct sl_arena *scratch = sl_arena_new(4096);
    const struct sl_page_options o = options(scratch);
    struct sl_page *page = make(&o, RECORD("INSERT", "", "1", "") "," RECORD(
                                        "INSERT", "", "2", "") "," BAD "," RECORD("INSERT", "", "3", ""));
    assert_true(page->is_cut);
    assert_int_equal(page->n, 2);
    assert_string_equal(page->last_id, "2");
    sl_page_destroy(page);
    static const struct {
        const char *answer, *told;
    } cases[] = {
        {"{'Records':[" BAD "]}", "the record \"666\" cannot be read: "},
        {"{'Records':[5]}", "cannot be read: "},
        {"{'Records':'x'}", "cannot be read: "},
        {"", "cannot be read: "},
        {"{'Records':[{'eventID':'x','eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'a'}}}}]}",
         "record 0 has no sequence number"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(sl_page_make(&o, json_span(cases[i].answer), &page, &error), SL_REJECT);
        assert_null(page);
        if (!strstr(error.text, cases[i].told) || !error.code[0])
            fail_msg("%s: %s", cases[i].answer, error.text);
    }
    sl_arena_destroy(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_as_lambda_delivers_them),
        cmocka_unit_test(records_before_the_beginning_are_left_out),
        cmocka_unit_test(a_record_that_cannot_be_read_cuts_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
