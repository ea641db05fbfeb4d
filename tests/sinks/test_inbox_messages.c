/* What a queue of SQS gives out, field by field: each message is whole or the answer is not believed, and
 * nothing of it reaches the caller. */
#include "sinks/queues/inbox.h"

#include "tests/support/fault.h"

#include <stdio.h>
#include <stdlib.h>

#define QUEUE "sqs://123456789012/queue"
#define ONE   "f97c5d29941bfb1b2fdab0874906ab82" /* MD5 of "one" */
#define EMPTY "d41d8cd98f00b204e9800998ecf8427e"

static struct fault f;
static const char *said; /* the answer to each request */

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)request;
    *reply = (struct scripted_reply){.status = 200, .body = sl_span_str(said)};
}

static struct sl_inbox *open_inbox(const char *url)
{
    struct sl_inbox *inbox = NULL;
    struct sl_error error = SL_NO_ERROR;
    fault_open(&f, answer, NULL);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
    if (sl_inbox_open(&f.sinks, sl_span_str(url), &inbox, &error) != SL_OK)
        fail_msg("%s", error.text);
    return inbox;
}

static void close_inbox(struct sl_inbox *inbox)
{
    sl_inbox_close(inbox);
    fault_close(&f);
}

static enum sl_status receive(struct sl_inbox *inbox, struct sl_inbox_message **list, size_t *n,
                              struct sl_error *error)
{
    const struct sl_inbox_receive how = {.requests = 1, .wait_s = 0, .hidden_s = 30};
    *error = (struct sl_error)SL_NO_ERROR;
    return sl_inbox_receive(inbox, &how, &f.call, list, n, error);
}

/* A message of these members. */
#define M(id, receipt, more)    "{'MessageId':" id ",'ReceiptHandle':" receipt "," more "}"
#define ATTRIBUTES(count, sent) "'Attributes':{'ApproximateReceiveCount':" count ",'SentTimestamp':" sent "}"
#define WELL                    "'Body':'one','MD5OfBody':'" ONE "'," ATTRIBUTES("'1'", "'1795208640123'")

static const struct {
    const char *text; /* of the list */
    size_t n;         /* messages; SIZE_MAX: it is not believed */
} lists[] = {
    {"[" M("'a'", "'r'", WELL) "]", 1},
    {"[" M("'a'", "'r'", WELL) "," M("'b'", "'s'", WELL) "]", 2},
    {"[]", 0},
    {"null", 0},
    {"{}", SIZE_MAX},
    {"5", SIZE_MAX},
    {"[5]", SIZE_MAX},
    {"[{}]", SIZE_MAX},
    {"[" M("'a'", "'r'", WELL) "," M("'a'", "'s'", WELL) "]", SIZE_MAX}, /* the same message */
    {"[" M("'a'", "'r'", WELL) "," M("'b'", "'r'", WELL) "]", SIZE_MAX}, /* the same receipt */
    {"[" M("'a'", "'r'", WELL) "," M("''", "'s'", WELL) "]", SIZE_MAX},
    {"[" M("''", "'r'", WELL) "]", SIZE_MAX},
    {"[" M("5", "'r'", WELL) "]", SIZE_MAX},
    {"[" M("'a\\u0000'", "'r'", WELL) "]", SIZE_MAX},
    {"[" M("'a'", "''", WELL) "]", SIZE_MAX},
    {"[" M("'a'", "null", WELL) "]", SIZE_MAX},
    {"[" M("'a'", "'r'", "'MD5OfBody':'" ONE "'," ATTRIBUTES("'1'", "'1'")) "]", SIZE_MAX},
    {"[" M("'a'", "'r'", "'Body':1,'MD5OfBody':'" ONE "'," ATTRIBUTES("'1'", "'1'")) "]", SIZE_MAX},
    {"[" M("'a'", "'r'", "'Body':'','MD5OfBody':'" EMPTY "'," ATTRIBUTES("'1'", "'1'")) "]", 1},
    {"[" M("'a'", "'r'", "'Body':'two','MD5OfBody':'" ONE "'," ATTRIBUTES("'1'", "'1'")) "]", SIZE_MAX},
    {"[" M("'a'", "'r'", "'Body':'one','MD5OfBody':'f97c'," ATTRIBUTES("'1'", "'1'")) "]", SIZE_MAX},
    {"[" M("'a'", "'r'", "'Body':'one'," ATTRIBUTES("'1'", "'1'")) "]", SIZE_MAX},
    {"[" M("'a'", "'r'", "'Body':'one','MD5OfBody':'" ONE "'") "]", SIZE_MAX},
    {"[" M("'a'", "'r'", "'Body':'one','MD5OfBody':'" ONE "','Attributes':[]") "]", SIZE_MAX},
};

static void messages_are_whole_or_not_believed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct sl_inbox *inbox = open_inbox(QUEUE);
        struct sl_inbox_message *list;
        struct sl_error error;
        size_t n;
        said = json_printf("{'Messages':%s}", lists[i].text);
        enum sl_status status = receive(inbox, &list, &n, &error);
        bool is_good = lists[i].n != SIZE_MAX;
        if (status != (is_good ? SL_OK : SL_RETRY) || n != (is_good ? lists[i].n : 0))
            fail_msg("%s: %s, %zu messages", lists[i].text, sl_status_name(status), n);
        if (!is_good)
            assert_string_equal(error.code, "BrokenAnswer");
        close_inbox(inbox);
    }
}

/* Of SQS's own numbers: a text or a number of 1 to 15 digits. */
static void counts_and_times_are_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t n; /* -1: it is none */
    } cases[] = {{"'1'", 1},
                 {"1", 1},
                 {"'007'", 7},
                 {"'999999999999999'", INT64_C(999999999999999)},
                 {"'1000000000000000'", -1},
                 {"''", -1},
                 {"'-1'", -1},
                 {"'1x'", -1},
                 {"'1/'", -1},
                 {"'1:'", -1},
                 {"1.5", -1},
                 {"null", -1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int of_time = 0; of_time < 2; of_time++) {
            struct sl_inbox *inbox = open_inbox(QUEUE);
            struct sl_inbox_message *list;
            struct sl_error error;
            size_t n;
            said = json_printf("{'Messages':[" M("'a'", "'r'",
                                                 "'Body':'one','MD5OfBody':'" ONE
                                                 "'," ATTRIBUTES("%s", "%s")) "]}",
                               of_time ? "'1'" : cases[i].text, of_time ? cases[i].text : "'0'");
            enum sl_status status = receive(inbox, &list, &n, &error);
            if (status != (cases[i].n < 0 ? SL_RETRY : SL_OK))
                fail_msg("%s: %s", said, sl_status_name(status));
            if (status == SL_OK)
                assert_int_equal(of_time ? list[0].sent_ms : (int64_t)list[0].receives, cases[i].n);
            close_inbox(inbox);
        }
}

/* Ten at most, as asked for; an answer with more is not one to this request. */
static void a_receive_has_ten_messages_at_most(void **state)
{
    (void)state;
    for (size_t wanted = SL_INBOX_MESSAGES - 1; wanted <= SL_INBOX_MESSAGES + 1; wanted++) {
        struct sl_inbox *inbox = open_inbox(QUEUE);
        struct sl_inbox_message *list;
        struct sl_error error;
        struct sl_buffer text;
        size_t n;
        sl_buffer_init_in(&text, f.call.arena, 100000);
        for (size_t i = 0; i < wanted; i++)
            sl_buffer_add_str(&text,
                              json_printf("%s" M("'m%zu'", "'r%zu'", WELL), i ? "," : "{'Messages':[", i, i));
        sl_buffer_add(&text, "]}", 3);
        said = text.ptr;
        enum sl_status status = receive(inbox, &list, &n, &error);
        assert_int_equal(status, wanted <= SL_INBOX_MESSAGES ? SL_OK : SL_RETRY);
        assert_int_equal(n, wanted <= SL_INBOX_MESSAGES ? wanted : 0);
        for (size_t i = 0; i < n; i++)
            assert_null(list[i].group); /* the queue is no FIFO queue */
        close_inbox(inbox);
    }
}

/* Of many requests each is told what became of its own messages. */
static void every_request_that_fails_is_told(void **state)
{
    (void)state;
    enum { MANY = 2 * SL_INBOX_MESSAGES + 5 };
    const char *receipts[MANY];
    struct sl_result results[MANY];
    struct sl_inbox *inbox = open_inbox(QUEUE);
    said = "[]";
    for (size_t i = 0; i < MANY; i++) {
        receipts[i] = sl_arena_printf(f.call.arena, "r%zu", i);
        results[i] = (struct sl_result){.status = SL_OK};
    }
    sl_inbox_remove(inbox, receipts, MANY, results, &f.call);
    for (size_t i = 0; i < MANY; i++)
        assert_result(results[i], SL_RETRY, "BrokenAnswer");
    assert_int_equal(scripted_server_requests(f.server), 3);
    close_inbox(inbox);
}

/* Where messages go that fail too often: a policy is whole, or the answer is not believed. */
static void a_policy_is_whole_or_not_believed(void **state)
{
    (void)state;
    static const struct {
        const char *policy; /* a member of the attributes, or nothing */
        int64_t max;        /* 0: none; -1: it is not believed */
    } cases[] = {
        {"", 0},
        {",'RedrivePolicy':'{\\\"deadLetterTargetArn\\\":\\\"arn:x\\\",\\\"maxReceiveCount\\\":5}'", 5},
        {",'RedrivePolicy':'{\\\"deadLetterTargetArn\\\":\\\"arn:x\\\",\\\"maxReceiveCount\\\":\\\"5\\\"}'",
         5},
        {",'RedrivePolicy':'{\\\"deadLetterTargetArn\\\":\\\"arn:x\\\",\\\"maxReceiveCount\\\":0}'", -1},
        {",'RedrivePolicy':'{\\\"deadLetterTargetArn\\\":\\\"arn:x\\\"}'", -1},
        {",'RedrivePolicy':'{\\\"deadLetterTargetArn\\\":\\\"\\\",\\\"maxReceiveCount\\\":5}'", -1},
        {",'RedrivePolicy':'{\\\"maxReceiveCount\\\":5}'", -1},
        {",'RedrivePolicy':'{'", -1},
        {",'RedrivePolicy':''", -1},
        {",'RedrivePolicy':5", -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_inbox *inbox = open_inbox(QUEUE);
        struct sl_inbox_facts facts;
        struct sl_error error = SL_NO_ERROR;
        said = json_printf("{'Attributes':{'QueueArn':'arn:aws:sqs:us-east-1:123456789012:queue'"
                           ",'ApproximateNumberOfMessages':'7'%s}}",
                           cases[i].policy);
        enum sl_status status = sl_inbox_describe(inbox, &f.call, &facts, &error);
        if (status != (cases[i].max < 0 ? SL_RETRY : SL_OK))
            fail_msg("%s: %s", cases[i].policy, error.text);
        if (status == SL_OK) {
            assert_int_equal(facts.max_receives, cases[i].max);
            assert_int_equal(facts.moves_to != NULL, cases[i].max > 0);
            assert_int_equal(facts.waiting, 7);
            assert_int_equal(facts.in_flight, -1); /* it was not said */
        }
        close_inbox(inbox);
    }
}

/* Without a region there is no queue: nothing is sent, and each request says so. */
static void without_a_region_nothing_is_asked(void **state)
{
    (void)state;
    struct sl_inbox *inbox = open_inbox(QUEUE);
    struct sl_inbox_message *list;
    struct sl_inbox_facts facts;
    struct sl_error error = SL_NO_ERROR;
    const char *const receipts[] = {"r-1", "r-2"};
    const int64_t seconds[] = {0, 60};
    struct sl_result results[2];
    size_t n = 9;
    fault_set(&f, "AWS_REGION", "");
    fault_set(&f, "AWS_CONFIG_FILE", "/dev/null");
    assert_int_equal(receive(inbox, &list, &n, &error), SL_FATAL);
    assert_int_equal(n, 0);
    assert_string_equal(error.code, "NoRegion");
    error = (struct sl_error)SL_NO_ERROR;
    assert_int_equal(sl_inbox_describe(inbox, &f.call, &facts, &error), SL_FATAL);
    assert_non_null(strstr(error.text, "sqs://123456789012/queue"));
    for (int hides = 0; hides < 2; hides++) {
        if (hides)
            sl_inbox_hide(inbox, receipts, seconds, 2, results, &f.call);
        else
            sl_inbox_remove(inbox, receipts, 2, results, &f.call);
        for (size_t i = 0; i < 2; i++) {
            assert_result(results[i], SL_FATAL, "NoRegion");
            assert_true(results[i].not_sent);
        }
    }
    assert_int_equal(scripted_server_requests(f.server), 0);
    close_inbox(inbox);
}

/* A queue's URL names its region where its host is AWS's; then no other may be said. */
static void a_queue_s_url_names_its_region(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool names_it;
    } cases[] = {{"sqs.us-west-2.amazonaws.com", true},  {"sqs.cn-north-1.amazonaws.com.cn", true},
                 {"sqs.us-west-2.example.com", false},   {"sqs.us-west-2.amazonaws", false},
                 {"sqs.us_west.amazonaws.com", false},   {"sqs.localhost", false},
                 {"us-west-2.queue.amazonaws.com", true}};
    fault_open(&f, answer, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int other = 0; other < 2; other++) {
            const char *own = strstr(cases[i].host, "cn-north-1") ? "cn-north-1" : "us-west-2";
            const char *url = sl_arena_printf(f.call.arena, "sqs://https://%s/123456789012/q?region=%s",
                                              cases[i].host, other ? "eu-central-1" : own);
            struct sl_inbox *inbox = NULL;
            struct sl_error error = SL_NO_ERROR;
            enum sl_status status = sl_inbox_open(&f.sinks, sl_span_str(url), &inbox, &error);
            if ((status == SL_OK) != !(other && cases[i].names_it))
                fail_msg("%s: %s", url, error.text);
            if (status != SL_OK)
                assert_non_null(strstr(error.text, "region=eu-central-1"));
            sl_inbox_close(inbox);
        }
    struct sl_inbox *inbox = NULL;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_inbox_open(&f.sinks, SL_LIT("sqs://"), &inbox, &error), SL_FATAL);
    assert_null(inbox);
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_whole_or_not_believed),
        cmocka_unit_test(counts_and_times_are_numbers),
        cmocka_unit_test(a_receive_has_ten_messages_at_most),
        cmocka_unit_test(every_request_that_fails_is_told),
        cmocka_unit_test(a_policy_is_whole_or_not_believed),
        cmocka_unit_test(without_a_region_nothing_is_asked),
        cmocka_unit_test(a_queue_s_url_names_its_region),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
