/* Entries and requests of queues that are refused for good, beside others: what is sent again, what waits for
 * the next call, and what nobody may send twice. */
#include "tests/support/fake_queue.h"
#include "tests/support/fault.h"

#define MOST 11 /* one more than a request of SQS takes */

/* What the service says of each message. */
static struct {
    struct fake_fate fates[MOST];
    unsigned later[MOST];    /* so often the entry fails for now before that */
    const char *passes;      /* with this code */
    const char *whole[MOST]; /* a request that it is in is refused with this code, once it does not fail */
    const char *together;    /* any request of several is refused with this code */
    size_t sent[MOST];
} script;

static struct fault f;
static struct fake_queue fake;
static struct sl_queue_port *queue;

/* "#7" is the message 7. */
static size_t number_of(const struct fake_entry *entry)
{
    size_t n = 0, i = 0;
    while (i < entry->body.len && entry->body.ptr[i] != '#')
        i++;
    for (i++; i < entry->body.len && entry->body.ptr[i] >= '0' && entry->body.ptr[i] <= '9'; i++)
        n = n * 10 + (size_t)(entry->body.ptr[i] - '0');
    assert_true(n < MOST);
    return n;
}

static struct fake_fate judge(void *arg, const struct fake_entry *entry)
{
    size_t i = number_of(entry);
    (void)arg;
    if (!script.later[i])
        return script.fates[i];
    script.later[i]--;
    return (struct fake_fate){.code = script.passes};
}

static const char *refuse(void *arg, const struct fake_entry *entries, size_t n)
{
    const char *code = n > 1 ? script.together : NULL;
    (void)arg;
    for (size_t k = 0; k < n; k++) {
        size_t i = number_of(&entries[k]);
        script.sent[i]++;
        if (!code && !script.later[i])
            code = script.whole[i];
    }
    return code;
}

static void begin(const char *url)
{
    memset(&script, 0, sizeof(script));
    fake_queue_init(&fake);
    fake.judge = judge;
    fake.refuse = refuse;
    fault_open(&f, fake_queue_answer, &fake);
    queue = fault_queue(&f, url);
}

static void end(void)
{
    queue->close(queue);
    fault_close(&f);
    fake_queue_clean_up(&fake);
    if (fake.fault)
        fail_msg("%s", fake.fault);
}

/* Messages of the orders "a", "b", "c" in turn, or without any; `results` until the end. */
static void send(size_t n, size_t n_orders, struct sl_result *results)
{
    static const char *const orders[] = {"a", "b", "c"};
    struct sl_message messages[MOST];
    for (size_t i = 0; i < n; i++) {
        const char *number = sl_arena_printf(f.call.arena, "#%zu", i);
        messages[i] = (struct sl_message){.body = sl_span_str(number), .dedupe = sl_span_str(number)};
        if (n_orders)
            messages[i].order = sl_span_str(orders[i % n_orders]);
    }
    fault_send(&f, queue, messages, n, results);
}

/* Of a request the first entry is refused for good and the other one fails for now. Sent again alone, that
 * one is refused with a code that nobody knows: nothing was taken that could vouch for it. */
static void the_last_one_of_a_request_is_judged_as_one_alone(void **state)
{
    (void)state;
    static const struct {
        const char *url, *passes;
        struct fake_fate bad;
    } cases[] = {
        {"sqs://123456789012/queue",
         "InternalError",
         {.code = "InvalidMessageContents", .is_senders_fault = true}},
        {"sns:arn:aws:sns:us-east-1:123456789012:topic",
         "InternalError",
         {.code = "InvalidMessageContents", .is_senders_fault = true}},
        {"events://default", "InternalFailure", {.code = "MalformedDetail"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_result results[2];
        begin(cases[i].url);
        script.fates[0] = cases[i].bad;
        script.passes = cases[i].passes;
        script.later[1] = 1;
        script.whole[1] = "Brandnew";
        send(2, 0, results);
        assert_result(results[0], SL_REJECT, cases[i].bad.code);
        assert_result(results[1], SL_FATAL, "Brandnew");
        assert_non_null(strstr(results[1].text, "reject=Brandnew"));
        assert_true(script.sent[0] == 1 && script.sent[1] == 2);
        end();
    }
}

/* Ten are too long together and go alone. The eleventh, which was alone already, is sent again only when
 * nobody knows why it was refused: then they vouch. */
static void who_was_alone_is_sent_again_only_for_its_doubt(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        enum sl_status status;
        size_t sent;
    } cases[] = {{NULL, SL_OK, 1}, {"InvalidMessageContents", SL_REJECT, 1}, {"Brandnew", SL_REJECT, 2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_result results[MOST];
        begin("sqs://123456789012/queue");
        script.together = "AWS.SimpleQueueService.BatchRequestTooLong";
        script.whole[MOST - 1] = cases[i].code;
        send(MOST, 0, results);
        for (size_t k = 0; k < MOST - 1; k++) {
            assert_result(results[k], SL_OK, NULL);
            assert_int_equal(script.sent[k], 2);
        }
        assert_result(results[MOST - 1], cases[i].status, cases[i].code);
        assert_int_equal(script.sent[MOST - 1], cases[i].sent);
        end();
    }
}

/* The next message of an order goes out after one that was taken, and after one that is given up; after one
 * that stops, now or for good, it waits. */
static void an_order_waits_for_what_stopped(void **state)
{
    (void)state;
    static const struct {
        const char *url, *code;
        bool is_senders_fault;
        enum sl_status status;
    } cases[] = {
        {"sqs://123456789012/queue.fifo", NULL, false, SL_OK},
        {"sqs://123456789012/queue.fifo", "InvalidMessageContents", true, SL_REJECT},
        {"sqs://123456789012/queue.fifo", "InternalError", false, SL_RETRY},
        {"sqs://123456789012/queue.fifo", "AccessDenied", true, SL_FATAL},
        {"sns:arn:aws:sns:us-east-1:123456789012:topic.fifo", "AccessDenied", true, SL_FATAL},
        {"kinesis://stream", NULL, false, SL_OK},
        {"kinesis://stream", "InternalFailure", false, SL_RETRY},
        {"kinesis://stream", "AccessDeniedException", false, SL_FATAL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_result results[9];
        bool stops = cases[i].status == SL_RETRY || cases[i].status == SL_FATAL;
        begin(cases[i].url);
        script.fates[3] =
            (struct fake_fate){.code = cases[i].code, .is_senders_fault = cases[i].is_senders_fault};
        send(9, 3, results); /* 3 is the second one of the order of 0, 3 and 6 */
        for (size_t k = 0; k < 9; k++) {
            bool waits = stops && k == 6;
            assert_result(results[k], k == 3 || waits ? cases[i].status : SL_OK,
                          k == 3 || waits ? cases[i].code : NULL);
            assert_int_equal(results[k].not_sent, waits);
            assert_true(waits ? script.sent[k] == 0 : script.sent[k] >= 1);
        }
        end();
    }
}

/* Makes one of three attributes one that no service takes; 0: the body, 1 to 3: a name, 4 to 6: a value. */
static void spoil(struct sl_message *message, struct sl_message_attribute attributes[3], size_t what)
{
    static const struct sl_message_attribute good[3] = {
        {{"a", 1}, {"1", 1}}, {{"b", 1}, {"2", 1}}, {{"c", 1}, {"3", 1}}};
    memcpy(attributes, good, sizeof(good));
    message->attributes = attributes;
    message->n_attributes = 3;
    if (what == 0)
        message->body = SL_LIT("\xff");
    else if (what <= 3)
        attributes[what - 1].name = SL_LIT("a b");
    else
        attributes[what - 4].value = SL_LIT("\xff");
}

/* What no service takes is refused before anything is sent, wherever it stands; the others go. */
static void what_cannot_be_sent_is_told_beside_the_others(void **state)
{
    (void)state;
    enum { N = 3 };
    static const char *const urls[] = {"sqs://123456789012/queue",
                                       "sns:arn:aws:sns:us-east-1:123456789012:topic"};
    for (size_t u = 0; u < 2; u++)
        for (size_t bad = 0; bad < N; bad++)
            for (size_t what = 0; what <= 6; what++) {
                struct sl_message_attribute attributes[3];
                struct sl_message messages[N];
                struct sl_result results[N];
                begin(urls[u]);
                for (size_t i = 0; i < N; i++)
                    messages[i] =
                        (struct sl_message){.body = sl_span_str(sl_arena_printf(f.call.arena, "#%zu", i))};
                spoil(&messages[bad], attributes, what);
                fault_send(&f, queue, messages, N, results);
                for (size_t i = 0; i < N; i++) {
                    const char *code = i == bad ? "InvalidMessageContents" : NULL;
                    assert_result(results[i], code ? SL_REJECT : SL_OK, code);
                    assert_int_equal(results[i].not_sent, i == bad);
                    assert_int_equal(script.sent[i], i != bad);
                }
                end();
            }
}

/* Without the queue's URL nothing can be sent, and each message is told so. */
static void refuse_url(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)request;
    *reply = (struct scripted_reply){
        .status = 400, .body = json_span("{'__type':'com.amazonaws.sqs#QueueDoesNotExist','message':'x'}")};
}

static void a_queue_that_is_not_found_takes_no_message(void **state)
{
    (void)state;
    struct sl_result results[MOST];
    fault_open(&f, refuse_url, NULL);
    queue = fault_queue(&f, "sqs://queue");
    send(MOST, 3, results);
    for (size_t i = 0; i < MOST; i++) {
        assert_result(results[i], SL_FATAL, "QueueDoesNotExist");
        assert_true(results[i].not_sent);
    }
    assert_int_equal(scripted_server_requests(f.server), 1);
    queue->close(queue);
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_one_of_a_request_is_judged_as_one_alone),
        cmocka_unit_test(who_was_alone_is_sent_again_only_for_its_doubt),
        cmocka_unit_test(an_order_waits_for_what_stopped),
        cmocka_unit_test(what_cannot_be_sent_is_told_beside_the_others),
        cmocka_unit_test(a_queue_that_is_not_found_takes_no_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
