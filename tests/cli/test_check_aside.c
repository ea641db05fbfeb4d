/* `sluice check`, what it knows of a target that is down: which routes stop with it, which may be set aside,
 * and whether the queue keeps letters for long enough (--tables). */
#include "tests/cli/check_world.h"
#include "tests/support/fake_inbox.h"

#define ASIDE ",'set_aside':'sqs://later'"

static void a_route_says_what_its_outage_would_stop(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *a, *b, *text; /* `text`: of route a; NULL: it says nothing */
    } cases[] = {
        {REPLICATE, NULL, NULL},
        {REPLICATE ASIDE, NULL, "its records wait in sqs://later, and the other routes go on\n"},
        {REPLICATE ASIDE, TO_OTHER, "its records wait in sqs://later, and the other route goes on\n"},
        {REPLICATE, TO_OTHER, "stops 1 other route; \"set_aside\": \"sqs://NAME\" lets it go on\n"},
        {REPLICATE ",'tombstone_days':2", TO_OTHER, "lets it go on, once it remembers for 15 days"},
        {REPLICATE ",'guard':'none'", TO_OTHER,
         "stops 1 other route; it cannot be set aside: guard: without guards"},
        {ARCHIVE, TO_OTHER, "stops 1 other route; it cannot be set aside: an archive is read as complete"},
        {AGGREGATE, TO_OTHER, "stops 1 other route; \"set_aside\": "},
        {AGGREGATE ",'expired':'keep'", TO_OTHER, "stops 1 other route; it cannot be set aside: expired: "},
        {AGGREGATE ",'mode':'at-least-once'", TO_OTHER, "it cannot be set aside: mode: "},
        {NOTIFY ",'to':'sqs://plain'", TO_OTHER, "stops 1 other route; \"set_aside\": "},
        {NOTIFY ",'to':'sqs://ordered.fifo'", TO_OTHER, "it cannot be set aside: to: "},
        {NOTIFY ",'to':'https://h.example.com/x'", TO_OTHER, "stops 1 other route; "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(v, "sluice.json", config_text(&(struct config){.a = cases[i].a, .b = cases[i].b}));
        verb_assert(v, verb(v, "check"), 0, "0 warnings");
        const char *at = strstr(verb_out(v), "\n  a: "), *line = at ? strstr(at, "    if down   ") : NULL;
        if (!cases[i].text ? line != NULL : !line || !strstr(line, cases[i].text))
            fail_msg("%s:\n%s", cases[i].a, verb_out(v));
    }
}

/* In requests of 64 KB: a letter is sent, received and deleted. */
static void an_hour_has_a_price(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *route, *flags, *text;
    } cases[] = {
        {REPLICATE ASIDE, "", "3600 letters, 0.6 GB, $0.01 of SQS\n"},
        {REPLICATE ASIDE, "--item-bytes 10000", "40000 letters, 7.5 GB, $0.11 of SQS\n"},
        {REPLICATE ASIDE, "--item-bytes 400000", "360000 letters, 288.3 GB, $3.89 of SQS\n"},
        {NOTIFY ",'to':'sqs://plain'" ASIDE, "", "360000 letters, 0.6 GB, $0.43 of SQS\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(v, "sluice.json", config_text(&(struct config){.a = cases[i].route}));
        verb_assert(v, verb(v, "check %s", cases[i].flags), 0, cases[i].text);
    }
}

/* ---- the queue ---- */

static struct {
    const char *attributes; /* after the ARN */
    int status;
    const char *code;
} answers;

static bool instead(void *arg, struct sl_span operation, struct scripted_reply *reply)
{
    (void)arg;
    if (!sl_span_is(operation, "GetQueueAttributes"))
        return false;
    reply->status = answers.status;
    reply->body = sl_span_str(
        answers.status == 200
            ? json_printf("{'Attributes':{'QueueArn':'arn:aws:sqs:us-east-1:123456789012:later'%s}}",
                          answers.attributes)
            : json_printf("{'__type':'com.amazonaws.sqs#%s','message':'no'}", answers.code));
    return true;
}

#define POLICY(n)                                                                                            \
    ",'RedrivePolicy':'{\\\"deadLetterTargetArn\\\":\\\"arn:aws:sqs:us-east-1:123456789012:dead\\\","        \
    "\\\"maxReceiveCount\\\":" n "}'"
#define KEPT(s)   ",'MessageRetentionPeriod':'" s "'"
#define HIDDEN(s) ",'VisibilityTimeout':'" s "'"

static void a_queue_keeps_letters_for_nine_days(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *attributes;
        int status;
        const char *code, *text;
    } cases[] = {
        {POLICY("1000") KEPT("864000") HIDDEN("900"), 0, NULL, "0 warnings"},
        {POLICY("1000"), 0, NULL, "0 warnings"}, /* what is not said is not judged */
        {POLICY("1000") KEPT("777600") HIDDEN("900"), 1, NULL,
         "$.routes[0].set_aside: the queue keeps a letter for 9.0 days"},
        {POLICY("1000") KEPT("345600") HIDDEN("900"), 1, NULL, "for 4.0 days, and an outage may take nine"},
        {POLICY("1000") KEPT("864000") HIDDEN("30"), 1, NULL,
         "after 1000 receives, each of 30 s: that may be after 0.3 days"},
        {POLICY("864") KEPT("864000") HIDDEN("900"), 1, NULL, "after 864 receives, each of 900 s"},
        {POLICY("865") KEPT("864000") HIDDEN("900"), 0, NULL, "0 warnings"},
        {KEPT("864000") HIDDEN("900"), 1, NULL, "the queue has no dead-letter queue"},
        {NULL, 1, "QueueDoesNotExist", "there is no such queue"},
        {NULL, 1, "NonExistentQueue", "there is no such queue"},
        {NULL, 2, "AccessDeniedException", "$.routes[0].set_aside: "},
    };
    struct fake_inbox queue;
    fake_inbox_init(&queue, sl_clock_system());
    queue.instead = instead;
    struct scripted_server *server = scripted_server_start(fake_inbox_answer, &queue);
    verb_set(v, json_printf("AWS_ENDPOINT_URL=%s", scripted_server_url(server)));
    verb_set(v, "AWS_MAX_ATTEMPTS=1");
    verb_write(v, "sluice.json",
               config_text(&(struct config){.a = "'handler':'replicate','to':'sqlite:db?table=t'" ASIDE,
                                            .more = "'on_failure':'report',"}));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        answers.attributes = cases[i].attributes;
        answers.code = cases[i].code;
        answers.status = cases[i].code ? 400 : 200;
        size_t asked = scripted_server_requests(server);
        verb_assert(v, verb(v, "check"), 0, "0 warnings");
        assert_int_equal(scripted_server_requests(server), asked);
        verb_assert(v, verb(v, "check --tables"), cases[i].status, "");
        const char *said = cases[i].status == 2 ? verb_err(v) : verb_out(v);
        if (!strstr(said, cases[i].text))
            fail_msg("case %zu: %s", i, said);
    }
    /* Each route's. */
    verb_write(
        v, "sluice.json",
        config_text(&(struct config){.a = "'handler':'replicate','to':'sqlite:db?table=t'" ASIDE,
                                     .b = "'handler':'replicate','to':'sqlite:db?table=u','set_aside':'sqs://"
                                          "later2'",
                                     .more = "'on_failure':'report',"}));
    answers.status = 200;
    answers.attributes = KEPT("864000") HIDDEN("900");
    verb_assert(v, verb(v, "check --tables"), 1, "2 warnings");
    assert_true(is_said(v, "warning", "$.routes[1].set_aside: ", "letters-expire"));
    scripted_server_stop(server);
    fake_inbox_clean_up(&queue);
}

static void a_kinesis_stream_has_no_letters(void **state)
{
    struct verbs *v = *state;
    static const char *const routes[] = {REPLICATE ASIDE, REPLICATE};
    for (size_t i = 0; i < 2; i++) {
        verb_write(v, "sluice.json", config_text(&(struct config){.a = routes[i]}));
        verb_input(v, "{\"EventSourceArn\":\"arn:aws:kinesis:us-east-1:123456789012:stream/orders\"}");
        (void)verb(v, "check --mapping -");
        assert_int_equal(is_said(v, "warning", "$.routes[0].set_aside: ", "aside-kinesis"), i == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_route_says_what_its_outage_would_stop),
        TEST(an_hour_has_a_price),
        TEST(a_queue_keeps_letters_for_nine_days),
        TEST(a_kinesis_stream_has_no_letters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
