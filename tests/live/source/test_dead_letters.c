/* What a failure queue or bucket holds: each kind of message, in each envelope, is the letter that it means;
 * anything else is a letter that says why it cannot be read, and hides no other. */
#include "live/source/dead_letters.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARN "arn:aws:dynamodb:eu-west-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"
#define PARKED                                                                                               \
    "{'sluiceParked':1,'route':'r','handler':'h','code':'c','streamArn':'" ARN                               \
    "','time':'2026-11-20T10:00:00Z','record':{'a':1}}"
#define INFO(members)                                                                                        \
    "{'timestamp':'2026-11-20T10:00:01Z','requestContext':{'condition':'RetryAttemptsExhausted'}," members "}"
#define BATCH                                                                                                \
    "'batchSize':3,'streamArn':'" ARN "','shardId':'s','startSequenceNumber':'1','endSequenceNumber':'3'"
#define POINTER INFO("'DDBStreamBatchInfo':{" BATCH "}")
#define EVENT   "{'Records':[{'dynamodb':{'Keys':{}}}]}"

static struct sl_dead_letters read_letters(struct sl_arena *arena, struct sl_span text)
{
    struct sl_dead_letters letters = {.n = 0};
    sl_dead_letters_add(&letters, text, arena);
    assert_true(letters.n > 0);
    return letters;
}

/* The text as a string in JSON. */
static const char *quoted(const char *text)
{
    static char out[20000];
    size_t n = 0;
    out[n++] = '"';
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            out[n++] = '\\';
        out[n++] = *p;
    }
    out[n++] = '"';
    out[n] = '\0';
    return strdup(out);
}

/* ---- envelopes ---- */

static const char *const envelopes[] = {
    "{'Messages':[{'MessageId':'m','Body':%s}]}",                        /* aws sqs receive-message */
    "{'Records':[{'messageId':'m','body':%s,'eventSource':'aws:sqs'}]}", /* an SQS event */
    "{'Records':[{'EventSource':'aws:sns','Sns':{'MessageId':'n','Message':%s}}]}",
    "{'Type':'Notification','MessageId':'m','Message':%s}",
    "[{'MessageId':'m','Body':%s}]",
    "%s",
};

static void assert_is(const struct sl_dead_letter *letter, enum sl_dead_letter_kind kind)
{
    if (letter->kind != kind)
        fail_msg("kind %d: %s", (int)letter->kind, letter->why);
    if (kind == SL_DEAD_LETTER_PARKED) {
        assert_string_equal(letter->route, "r");
        assert_string_equal(letter->handler, "h");
        assert_string_equal(letter->code, "c");
        assert_string_equal(letter->stream_arn, ARN);
        assert_span_is(letter->text, json("{'a':1}"));
        assert_int_equal(letter->time_ms, 1795168800000);
        assert_int_equal(letter->records, 1);
    } else if (kind == SL_DEAD_LETTER_POINTER) {
        assert_string_equal(letter->code, "RetryAttemptsExhausted");
        assert_string_equal(letter->shard, "s");
        assert_string_equal(letter->first, "1");
        assert_string_equal(letter->last, "3");
        assert_int_equal(letter->time_ms, 1795168801000);
        assert_int_equal(letter->records, 3);
    } else {
        assert_span_is(letter->text, json(EVENT));
    }
}

static void each_message_is_found_in_each_envelope(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum sl_dead_letter_kind kind;
    } messages[] = {
        {PARKED, SL_DEAD_LETTER_PARKED},
        {POINTER, SL_DEAD_LETTER_POINTER},
        {EVENT, SL_DEAD_LETTER_EVENT},
        {INFO("'DDBStreamBatchInfo':{" BATCH "},'payload':" EVENT), SL_DEAD_LETTER_EVENT},
        {INFO("'KinesisBatchInfo':{" BATCH "},'payload':" EVENT), SL_DEAD_LETTER_EVENT},
    };
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
        for (size_t k = 0; k < sizeof(envelopes) / sizeof(envelopes[0]); k++) {
            struct sl_arena *arena = sl_arena_new(4096);
            const char *inner = quoted(json(messages[i].text)), *envelope = json(envelopes[k]);
            const char *hole = strstr(envelope, "%s");
            struct sl_dead_letters letters = read_letters(
                arena, sl_span_str(sl_arena_printf(arena, "\n %.*s%s%s\n", (int)(hole - envelope), envelope,
                                                   inner, hole + 2)));
            assert_int_equal(letters.n, 1);
            assert_is(&letters.list[0], messages[i].kind);
            assert_string_equal(letters.list[0].id, k == 5 || k == 2 ? "" : "m");
            free((char *)(uintptr_t)inner);
            sl_arena_destroy(arena);
        }
}

/* S3's failure record has the event as a text, too. */
static void a_payload_may_be_a_text(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    const char *event = quoted(json(EVENT));
    const char *text = sl_arena_printf(arena, "{\"DDBStreamBatchInfo\":{},\"payload\":%s}", event);
    struct sl_dead_letters letters = read_letters(arena, sl_span_str(text));
    assert_int_equal(letters.n, 1);
    assert_is(&letters.list[0], SL_DEAD_LETTER_EVENT);
    assert_string_equal(letters.list[0].shard, "");
    assert_int_equal(letters.list[0].time_ms, 0);
    free((char *)(uintptr_t)event);
    sl_arena_destroy(arena);
}

/* The nearest to the outside: it is what a queue deletes by. */
static void the_outer_message_names_it(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    const char *parked = quoted(json(PARKED));
    const char *inner = quoted(sl_arena_printf(arena, "{\"MessageId\":\"in\",\"Message\":%s}", parked));
    const char *text = sl_arena_printf(arena, "{\"MessageId\":\"out\",\"Body\":%s}\n%s", inner, json(PARKED));
    struct sl_dead_letters letters = read_letters(arena, sl_span_str(text));
    assert_int_equal(letters.n, 2);
    assert_string_equal(letters.list[0].id, "out");
    assert_string_equal(letters.list[1].id, "");
    free((char *)(uintptr_t)parked);
    free((char *)(uintptr_t)inner);
    sl_arena_destroy(arena);
}

/* ---- what cannot be read ---- */

static void what_is_no_message_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *text, *code, *why;
    } cases[] = {
        {"", "NoMessage", "is empty; a parked record"},
        {" \n", "NoMessage", "is empty"},
        {"[]", "NoMessage", "is empty"},
        {"{'Messages':[]}", "NoMessage", "is empty"},
        {"{'Records':[]}", "NoMessage", "is empty"},
        {"{}", "NoMessage", "is not a failure message"},
        {"7", "NoMessage", "is not a failure message"},
        {"{'a':", "InvalidJson", "invalid JSON at byte 5: "},
        {"{'Body':'text'}", "NoMessage", "a message whose body is not JSON"},
        {"'text'", "NoMessage", "a message whose body is not JSON"},
        {"''", "NoMessage", "a message whose body is not JSON"},
        {"[[[[[[[[[[[[[[[[[[[[{}]]]]]]]]]]]]]]]]]]]]", "NoMessage", "too many nested messages"},
        {"{'sluiceParked':1,'route':'r'}", "NoMessage", "a parked record without its record or route"},
        {"{'sluiceParked':1,'route':'r','record':[]}", "NoMessage", "without its record or route"},
        {"{'sluiceParked':1,'record':{}}", "NoMessage", "without its record or route"},
        {"{'sluiceParked':1,'route':7,'record':{}}", "NoMessage", "without its record or route"},
        {"{'sluiceParked':1,'route':'a\\u0000b','record':{}}", "NoMessage", "without its record or route"},
        {"{'sluiceParked':2,'route':'r','record':{}}", "NewerFormat", "a newer Sluice parked this record"},
        {"{'DDBStreamBatchInfo':{},'payload':'{'}", "NoMessage",
         "a failure record whose payload is not JSON"},
        {INFO("'DDBStreamBatchInfo':{'streamArn':'" ARN "','shardId':'s','startSequenceNumber':'1'}"),
         "NoMessage", "a failure record without a stream, shard or sequence numbers"},
        {INFO("'DDBStreamBatchInfo':{'streamArn':'" ARN "','shardId':'s','endSequenceNumber':'1'}"),
         "NoMessage", "without a stream, shard or"},
        {INFO("'DDBStreamBatchInfo':{'streamArn':'" ARN
              "','startSequenceNumber':'1','endSequenceNumber':'1'}"),
         "NoMessage", "without a stream, shard or"},
        {INFO("'DDBStreamBatchInfo':{'streamArn':'orders','shardId':'s','startSequenceNumber':'1',"
              "'endSequenceNumber':'1'}"),
         "NoMessage", "without a stream, shard or"},
        {INFO("'KinesisBatchInfo':{" BATCH "}"), "KinesisPointer", "its records are in a Kinesis stream"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_dead_letters letters = read_letters(arena, json_span(cases[i].text));
        assert_int_equal(letters.n, 1);
        assert_int_equal(letters.list[0].kind, SL_DEAD_LETTER_UNREADABLE);
        if (strcmp(letters.list[0].code, cases[i].code) != 0 || !strstr(letters.list[0].why, cases[i].why))
            fail_msg("%s: %s: %s", cases[i].text, letters.list[0].code, letters.list[0].why);
        sl_arena_destroy(arena);
    }
}

/* More letters than the list begins with, in the order of the text; what is before broken JSON counts. */
static void one_bad_message_hides_no_other(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_dead_letters letters =
        read_letters(arena, json_span(PARKED "\n{}\n" POINTER PARKED "[" EVENT "," PARKED "] {'a'"));
    static const enum sl_dead_letter_kind kinds[] = {
        SL_DEAD_LETTER_PARKED, SL_DEAD_LETTER_UNREADABLE, SL_DEAD_LETTER_POINTER,   SL_DEAD_LETTER_PARKED,
        SL_DEAD_LETTER_EVENT,  SL_DEAD_LETTER_PARKED,     SL_DEAD_LETTER_UNREADABLE};
    assert_int_equal(letters.n, sizeof(kinds) / sizeof(kinds[0]));
    for (size_t i = 0; i < letters.n; i++)
        if (kinds[i] == SL_DEAD_LETTER_UNREADABLE)
            assert_int_equal(letters.list[i].kind, kinds[i]);
        else
            assert_is(&letters.list[i], kinds[i]);
    sl_arena_destroy(arena);
}

static void an_arn_has_five_parts_and_a_name(void **state)
{
    (void)state;
    static const struct {
        const char *arn;
        bool is_one;
    } cases[] = {
        {ARN, true},
        {"arn:aws-cn:dynamodb:cn-north-1:1:x", true},
        {"arn:aws:dynamodb:eu-west-1:123456789012:", false},
        {"arn:aws:dynamodb:eu-west-1:123456789012", false},
        {"arn:aws:dynamodb::123456789012:x", false},
        {"arn:aws:dynamodb:eu-west-1:12a:x", false},
        {"arn:aws:dynamodb:EU-west-1:1:x", false},
        {"arn:aws:dynamo db:eu-west-1:1:x", false},
        {"arx:aws:dynamodb:eu-west-1:1:x", false},
        {"arn:aws:dynamodb:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1:x", true},
        {"arn:aws:dynamodb:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1:x", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (sl_dead_letter_is_arn(cases[i].arn) != cases[i].is_one)
            fail_msg("%s", cases[i].arn);
    char text[1025];
    size_t n = (size_t)snprintf(text, sizeof(text), "arn:aws:dynamodb:a:1:%0*d", 1023 - 21, 0);
    assert_int_equal(n, 1023);
    assert_true(sl_dead_letter_is_arn(text));
    n = (size_t)snprintf(text, sizeof(text), "arn:aws:dynamodb:a:1:%0*d", 1024 - 21, 0);
    assert_int_equal(n, 1024);
    assert_false(sl_dead_letter_is_arn(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_is_found_in_each_envelope),
        cmocka_unit_test(a_payload_may_be_a_text),
        cmocka_unit_test(the_outer_message_names_it),
        cmocka_unit_test(what_is_no_message_says_why),
        cmocka_unit_test(one_bad_message_hides_no_other),
        cmocka_unit_test(an_arn_has_five_parts_and_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
