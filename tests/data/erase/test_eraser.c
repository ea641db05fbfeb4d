/* What stays of an archive's text when items are erased: the others' lines byte for byte, and of theirs
 * nothing that could say whose they were, whatever else a line holds. */
#include "data/erase/erase.h"

#include "data/recall/recall.h"
#include "streams/record.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define SECRET "person"

static struct sl_arena *arena;
static unsigned char digests[2][SL_SHA256_BYTES];
static struct sl_buffer out;

/* The items {"PK":"person"} and {"PK":"x","SK":1}. */
static const char *const keys[] = {"{'PK':{'S':'person'}}", "{'SK':{'N':'1'},'PK':{'S':'x'}}"};

static struct sl_eraser *eraser_of(enum sl_erase_format format)
{
    static const struct sl_items_keys one = {.names = {{"PK", 2}}, .n = 1};
    const struct sl_erase_options options = {.format = format,
                                             .items = (const unsigned char(*)[SL_SHA256_BYTES])digests,
                                             .n = 2,
                                             .names = one,
                                             .run = "run-1",
                                             .secret = SL_LIT("s3cret")};
    return sl_eraser_new(&options);
}

static enum sl_status erase(enum sl_erase_format format, const char *text, uint64_t *n)
{
    struct sl_eraser *eraser = eraser_of(format);
    struct sl_error error = SL_NO_ERROR;
    sl_arena_reset(arena);
    sl_buffer_reset(&out);
    enum sl_status status = sl_eraser_text(eraser, sl_span_str(text), arena, &out, n, &error);
    assert_true(status == SL_OK || (error.code[0] && error.text[0]));
    sl_eraser_destroy(eraser);
    return status;
}

static void assert_erased(enum sl_erase_format format, const char *text, const char *wanted,
                          uint64_t wanted_n)
{
    uint64_t n = 0;
    assert_int_equal(erase(format, text, &n), SL_OK);
    assert_int_equal(n, wanted_n);
    if (!sl_span_is(sl_buffer_span(&out), wanted))
        fail_msg("%.*s, and not %s", (int)out.len, out.ptr ? out.ptr : "", wanted);
}

#define ARN                                                                                                  \
    "'eventSourceARN':'arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-01-01T00:00:00.000'"
#define OTHER                                                                                                \
    "{ 'eventID':'e1','eventName':'INSERT', "                                                                \
    "'dynamodb':{'Keys':{'PK':{'S':'other'}},'NewImage':{'PK':{'S':'other'}},"                               \
    "'SequenceNumber':'1'}," ARN "}"

static void a_record_becomes_a_stub(void **state)
{
    (void)state;
    const char *theirs =
        json("{'eventID':'e2','eventName':'MODIFY','eventVersion':'1.1','eventSource':'aws:dynamodb','"
             "awsRegion':'us-east-1',"
             "'userIdentity':null,'more':'person','sluice':{'file':'person'},"
             "'dynamodb':{'ApproximateCreationDateTime':1790000000,'Keys':{'PK':{'S':'p\\u0065rson'}},"
             "'NewImage':{'PK':{'S':'person'},'mail':{'S':'person@x'}},'OldImage':{'PK':{'S':'person'}},"
             "'SequenceNumber':'2','SizeBytes':77,'StreamViewType':'NEW_AND_OLD_IMAGES','note':'person'}," ARN
             "}");
    uint64_t n = 0;
    char *text = NULL;
    assert_true(asprintf(&text, "%s\n%s\n%s\n", json(OTHER), theirs, json(OTHER)) > 0);
    assert_int_equal(erase(SL_ERASE_RECORD, text, &n), SL_OK);
    assert_int_equal(n, 1);
    struct sl_span whole = sl_buffer_span(&out);
    const char *end = memchr(whole.ptr, '\n', whole.len), *last = memrchr(whole.ptr, '\n', whole.len - 1);
    assert_true(sl_span_is(sl_span(whole.ptr, (size_t)(end - whole.ptr)), json(OTHER)));
    assert_null(memmem(whole.ptr, whole.len, SECRET, strlen(SECRET)));
    assert_non_null(memmem(whole.ptr, whole.len, SL_ERASED_LINE "\"run-1\",", strlen(SL_ERASED_LINE) + 8));
    assert_true(
        sl_span_is(sl_span_from(whole, (size_t)(last - whole.ptr) + 1), json_printf("%s\n", json(OTHER))));
    static const char *const kept[] = {"'eventID':'e2'",
                                       "'eventName':'MODIFY'",
                                       "'SequenceNumber':'2'",
                                       "'userIdentity':null",
                                       "'ApproximateCreationDateTime':1790000000",
                                       ARN,
                                       "'StreamViewType':'NEW_AND_OLD_IMAGES'"};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        assert_non_null(memmem(whole.ptr, whole.len, json(kept[i]), strlen(json(kept[i]))));
    assert_null(memmem(whole.ptr, whole.len, "SizeBytes", strlen("SizeBytes")));

    /* Once more: stubs are no one's, and stay as they are; readers pass over them. */
    char *first = strndup(whole.ptr, whole.len);
    assert_erased(SL_ERASE_RECORD, first, first, 0);
    struct sl_batch batch;
    struct sl_error error = SL_NO_ERROR;
    for (int keeps = 0; keeps < 2; keeps++) {
        const struct sl_decode_options options = {.any_shape = true, .keeps_erased = keeps};
        assert_int_equal(sl_batch_decode(sl_span_str(first), arena, &options, &batch, &error), SL_OK);
        assert_int_equal(batch.n, 2 + keeps);
    }
    assert_int_equal(sl_record_event(sl_batch_record(&batch, 1)), SL_MODIFY);
    assert_span_is(sl_record_text(sl_batch_record(&batch, 1), SL_FIELD_EVENT_ID), "e2");
    free(first);
    free(text);
}

static void pseudonyms_need_the_secret(void **state)
{
    (void)state;
    char hex[2][SL_SHA256_HEX];
    struct sl_sha256 sha;
    sl_sha256_init(&sha);
    for (int i = 0; i < 2; i++) {
        struct sl_sha256_key key = {NULL, NULL};
        sl_sha256_key_set(&sha, &key, i ? SL_LIT("s3cret") : SL_LIT("other"));
        sl_erase_pseudonym(&sha, &key, digests[0], hex[i]);
        sl_sha256_key_clean_up(&key);
    }
    sl_sha256_clean_up(&sha);
    assert_string_not_equal(hex[0], hex[1]);
    uint64_t n = 0;
    const char *text = json("{'eventID':'e2','eventName':'REMOVE','dynamodb':{'Keys':{'PK':{'S':'person'}},'"
                            "SequenceNumber':'2'}," ARN "}");
    assert_int_equal(erase(SL_ERASE_RECORD, text, &n), SL_OK);
    assert_non_null(memmem(out.ptr, out.len, hex[1], strlen(hex[1])));
}

static void other_formats_lose_the_line(void **state)
{
    (void)state;
#define EXPORT(key, rest) "{\"Metadata\":{\"WriteTimestampMicros\":{\"N\":\"1\"}},\"Keys\":" key rest "}\n"
    assert_erased(SL_ERASE_EXPORT,
                  EXPORT("{\"PK\":{\"S\":\"a\"}}", ",\"NewImage\":{\"PK\":{\"S\":\"a\"}}")
                      EXPORT("{\"PK\":{\"S\":\"person\"}}", ""),
                  EXPORT("{\"PK\":{\"S\":\"a\"}}", ",\"NewImage\":{\"PK\":{\"S\":\"a\"}}"), 1);
    assert_erased(SL_ERASE_ITEM, "{\"Item\":{\"n\":{\"N\":\"1\"},\"PK\":{\"S\":\"person\"}}}\n", "", 1);
    assert_erased(SL_ERASE_ITEM,
                  "{\"Item\":{\"PK\":{\"S\":\"b\"}}}\n\n{\"Item\":{\"PK\":{\"S\":\"person\"}}}",
                  "{\"Item\":{\"PK\":{\"S\":\"b\"}}}\n", 1);
    assert_erased(SL_ERASE_JSON,
                  "{\"n\":1,\"PK\":\"person\"}\n{\"PK\":\"b\",\"person\":[1,{\"base64\":\"AA==\"}]}\n",
                  "{\"PK\":\"b\",\"person\":[1,{\"base64\":\"AA==\"}]}\n", 1);
    assert_erased(SL_ERASE_JSON, "", "", 0);
}

static void a_parked_record_goes_as_a_whole(void **state)
{
    (void)state;
    const char *other = json("{'route':'r','record':" OTHER "}");
    assert_erased(SL_ERASE_PARKED, other, other, 0);
    assert_erased(SL_ERASE_PARKED,
                  json("{'record':{'eventID':'e','eventName':'REMOVE','dynamodb':{'Keys':{'PK':{'S':'x'},'SK'"
                       ":{'N':'1.0'}},"
                       "'SequenceNumber':'2'}," ARN "}}"),
                  "", 1);
}

static void what_is_no_archive_is_refused(void **state)
{
    (void)state;
    static const struct {
        enum sl_erase_format format;
        const char *text;
    } cases[] = {{SL_ERASE_RECORD, "{"},
                 {SL_ERASE_RECORD, "{}"},
                 {SL_ERASE_EXPORT, "[1]x"},
                 {SL_ERASE_ITEM, "{\"PK\":\"a\"}"},
                 {SL_ERASE_ITEM, "{\"Item\":{\"n\":{\"N\":\"1\"}}}"},
                 {SL_ERASE_ITEM, "{\"Item\":{\"PK\":\"a\"}}"},
                 {SL_ERASE_JSON, "[1]"},
                 {SL_ERASE_JSON, "{\"PK\":\"a\""},
                 {SL_ERASE_JSON, "{\"n\":1}"},
                 {SL_ERASE_PARKED, "{\"Records\":[]}"},
                 {SL_ERASE_PARKED, "{\"record\":{}}"},
                 {SL_ERASE_PARKED, "x"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t n = 0;
        if (erase(cases[i].format, cases[i].text, &n) != SL_REJECT)
            fail_msg("%s", cases[i].text);
    }
}

static int set_up(void **state)
{
    const struct sl_items_keys none = {.n = 0};
    struct sl_error error = SL_NO_ERROR;
    (void)state;
    arena = sl_arena_new(64 * 1024);
    sl_buffer_init(&out, 1 << 20);
    for (int i = 0; i < 2; i++) {
        struct sl_items_entry entry = {.key = json_span(keys[i])};
        struct sl_batch batch;
        if (sl_items_decode(&entry, 1, &none, SL_LIT(SL_REPLAYED_ARN), arena, &batch, &error) != SL_OK)
            return 1;
        sl_recall_digest(sl_record_item_key(sl_batch_record(&batch, 0), arena), digests[i]);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sl_buffer_clean_up(&out);
    sl_arena_destroy(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_becomes_a_stub),       cmocka_unit_test(pseudonyms_need_the_secret),
        cmocka_unit_test(other_formats_lose_the_line),   cmocka_unit_test(a_parked_record_goes_as_a_whole),
        cmocka_unit_test(what_is_no_archive_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
