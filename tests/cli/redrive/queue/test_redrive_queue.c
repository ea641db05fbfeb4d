/* `sluice redrive` of a queue: what is done is removed and nothing else, what is not removed is released, and
 * the next run finishes; the groups of a FIFO queue, the limits of a queue, answers that fail, signals. */
#include "tests/support/disk_fault.h"
#include "tests/support/fake_inbox.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include "runtime/api/client.h"
#include "runtime/start.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

#define STREAM "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"
#define CONFIG                                                                                               \
    "{'report_batch_item_failures':true,'routes':[{'name':'say','handler':'notify','to':'jsonl:said.jsonl'," \
    "'message':'{PK}%s'},{'name':'all','handler':'notify','to':'jsonl:all.jsonl','message':'{PK}'}]}"

struct world {
    struct verbs *v;
    struct fake_inbox queue;
    struct scripted_server *server;
    /* Hooks of the queue. */
    const char *liar; /* this operation is answered by: */
    int status;
    const char *lie;
    const char *refuses; /* an entry of this operation is refused with ReceiptHandleIsInvalid */
    unsigned signal_at;  /* after so many receives the run is told to end; 0: never */
    char variable[80];
};

static bool instead(void *arg, struct sl_span operation, struct scripted_reply *reply)
{
    struct world *w = arg;
    if (!w->liar || !sl_span_is(operation, w->liar))
        return false;
    reply->status = w->status;
    reply->body = json_span(w->lie);
    return true;
}

static void after(void *arg, struct sl_span operation)
{
    struct world *w = arg;
    if (sl_span_is(operation, "ReceiveMessage") && w->signal_at && --w->signal_at == 0)
        verb_signal(w->v, SIGTERM);
}

/* The first message of all. */
static const char *judge(void *arg, struct sl_span operation, const struct fake_message *message)
{
    struct world *w = arg;
    bool is_refused = w->refuses && sl_span_is(operation, w->refuses) && message == w->queue.list;
    return is_refused ? "ReceiptHandleIsInvalid" : NULL;
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->v = verbs_new();
    fake_inbox_init(&w->queue, sl_clock_system());
    w->queue.arg = w;
    w->queue.instead = instead;
    w->queue.after = after;
    w->queue.judge = judge;
    w->server = scripted_server_start(fake_inbox_answer, &w->queue);
    snprintf(w->variable, sizeof(w->variable), "AWS_ENDPOINT_URL=%s", scripted_server_url(w->server));
    verb_set(w->v, w->variable);
    verb_set(w->v, "AWS_MAX_ATTEMPTS=1");
    verb_write(w->v, "sluice.json", json_printf(CONFIG, "{word}"));
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    scripted_server_stop(w->server);
    fake_inbox_clean_up(&w->queue);
    verbs_destroy(w->v);
    free(w);
    return 0;
}

/* ---- messages ---- */

static const char *record(unsigned n, bool is_good)
{
    return json_printf(
        "{'eventID':'%u','eventName':'INSERT','eventVersion':'1.1','eventSource':'aws:dynamodb',"
        "'awsRegion':'us-east-1','eventSourceARN':'" STREAM "','dynamodb':{"
        "'ApproximateCreationDateTime':1795208640,'Keys':{'PK':{'S':'k%u'}},"
        "'NewImage':{'PK':{'S':'k%u'}%s},'SequenceNumber':'%u','SizeBytes':9,"
        "'StreamViewType':'NEW_IMAGE'}}",
        n, n, n, is_good ? ",'word':{'S':'w'}" : "", n);
}

static const char *parked(unsigned n, bool is_good)
{
    return json_printf("{'sluiceParked':1,'time':'2026-11-20T21:04:00Z','route':'say','handler':'notify',"
                       "'code':'MissingAttribute','streamArn':'" STREAM "','record':%s}",
                       record(n, is_good));
}

/* Messages 1 to n: those in `bad` (0-terminated, NULL: none) cannot be handled until it is mended. */
static void fill(struct world *w, unsigned n, const unsigned *bad)
{
    for (unsigned i = 1; i <= n; i++) {
        bool is_good = true;
        for (const unsigned *b = bad; b && *b; b++)
            is_good = is_good && *b != i;
        fake_inbox_add(&w->queue, NULL, parked(i, is_good));
    }
}

/* How often each of the records 1 to n was said: "1 1 0 2 ". */
static const char *said(struct world *w, unsigned n)
{
    static char text[4096];
    const char *lines = verb_read(w->v, "said.jsonl");
    text[0] = '\0';
    for (unsigned i = 1; i <= n; i++) {
        char wanted[32];
        unsigned times = 0;
        snprintf(wanted, sizeof(wanted), "\"k%u", i);
        for (const char *at = lines; (at = strstr(at, wanted)); at++)
            times += at[strlen(wanted)] < '0' || at[strlen(wanted)] > '9';
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u ", times);
    }
    return text;
}

static void assert_all_released(struct world *w, size_t count)
{
    assert_int_equal(fake_inbox_count(&w->queue), count);
    assert_int_equal(fake_inbox_in_flight(&w->queue), 0);
}

static void assert_told(struct world *w, const char *text)
{
    if (!strstr(verb_err(w->v), text) && !strstr(verb_out(w->v), text))
        fail_msg("no \"%s\":\n%s%s", text, verb_out(w->v), verb_err(w->v));
}

#define REDRIVE "redrive --wait 1 --delete-done sqs://failed"

static void what_is_done_is_removed_and_nothing_else(void **state)
{
    struct world *w = *state;
    static const unsigned bad[] = {3, 25, 0};
    fill(w, 45, bad);
    fake_inbox_add(&w->queue, NULL, "not JSON");
    fake_inbox_add(&w->queue, NULL, json_printf("[%s,%s]", parked(46, true), parked(47, true)));
    fake_inbox_add(&w->queue, NULL, json_printf("[%s,%s]", parked(48, true), parked(49, false)));
    verb_assert(w->v, verb(w->v, REDRIVE), 1, "44 of 48 messages are done");
    assert_told(w, "removed          44\n");
    assert_told(w, "failed      m-2  route=say  code=MissingAttribute  key={\"PK\":{\"S\":\"k3\"}}");
    assert_told(w, "unreadable  m-45  code=");
    assert_told(w, "next: correct what the log says of the first code, then: sluice redrive --config "
                   "'sluice.json' --match code='MissingAttribute' 'sqs://failed'");
    assert_all_released(w, 4);
    verb_write(w->v, "sluice.json", json_printf(CONFIG, ""));
    verb_assert(w->v, verb(w->v, REDRIVE), 4, "3 of 4 messages are done");
    assert_all_released(w, 1);
    /* Each once, but the one whose neighbour in its message failed. */
    assert_string_equal(said(w, 49),
                        "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
                        "1 1 1 1 1 1 1 1 1 2 1 ");
    assert_string_equal(verb_read(w->v, "all.jsonl"), "");
}

static void without_delete_done_all_stays(void **state)
{
    struct world *w = *state;
    fill(w, 12, NULL);
    verb_assert(w->v, verb(w->v, "redrive --wait 1 --dry-run --limit 5 sqs://failed"), 0,
                "listed            5");
    assert_told(w, "SQS shows a message only by a receive, which it counts");
    assert_told(w, "next: correct the cause of one code, then: sluice redrive --config 'sluice.json' "
                   "--delete-done --match code='MissingAttribute' 'sqs://failed'");
    assert_all_released(w, 12);
    assert_string_equal(verb_read(w->v, "said.jsonl"), "");
    verb_assert(w->v, verb(w->v, "redrive --wait 1 sqs://failed"), 0,
                "12 of 12 messages are done: they can be");
    assert_told(w, "next: the same command with --delete-done");
    assert_all_released(w, 12);
    verb_assert(w->v, verb(w->v, "redrive --wait 1 --since 1h sqs://failed"), 0, "no message that matches");
    assert_string_equal(said(w, 12), "1 1 1 1 1 1 1 1 1 1 1 1 ");
}

/* ---- FIFO ---- */

static void a_group_goes_up_to_its_first_failure(void **state)
{
    struct world *w = *state;
    w->queue.is_fifo = true;
    /* Of g: 1, 4, 7, ...; 7 fails. Of h: the third is broken. */
    for (unsigned i = 1; i <= 15; i++)
        fake_inbox_add(&w->queue,
                       i % 3 == 1   ? "g"
                       : i % 3 == 2 ? "h"
                                    : "i",
                       i == 8 ? "broken" : parked(i, i != 7));
    verb_assert(w->v, verb(w->v, "redrive --wait 1 --dry-run sqs://failed.fifo"), 4,
                "of each group of a FIFO queue SQS shows only the first");
    verb_assert(w->v, verb(w->v, "redrive --wait 1 sqs://failed.fifo"), 1, "until they are removed");
    unlink(json_printf("%s/said.jsonl", verbs_folder(w->v)));
    verb_assert(w->v, verb(w->v, "redrive --wait 1 --delete-done sqs://failed.fifo"), 1, "held back");
    assert_true(!strstr(verb_err(w->v), "until they are removed"));
    assert_string_equal(said(w, 15), "1 1 1 1 1 1 0 0 1 0 0 1 0 0 1 ");
    assert_all_released(w, 6);
    verb_assert(w->v, verb(w->v, "redrive --wait 1 --delete-done --skip-unreadable sqs://failed.fifo"), 1,
                "held back");
    assert_string_equal(said(w, 15), "1 1 1 1 1 1 0 0 1 0 1 1 0 1 1 ");
    verb_write(w->v, "sluice.json", json_printf(CONFIG, ""));
    verb_assert(w->v, verb(w->v, "redrive --wait 1 --delete-done --skip-unreadable sqs://failed.fifo"), 4,
                "");
    assert_string_equal(said(w, 15), "1 1 1 1 1 1 1 0 1 1 1 1 1 1 1 ");
    assert_all_released(w, 1);
}

/* ---- the limits of a queue ---- */

static void a_message_is_not_moved_by_the_policy(void **state)
{
    struct world *w = *state;
    static const struct {
        unsigned most, received;
        bool works;
    } cases[] = {{1, 0, false}, {2, 0, false}, {3, 0, true}, {3, 1, false}, {5, 2, true}, {5, 3, false}};
    fill(w, 5, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        w->queue.max_receives = cases[i].most;
        for (size_t k = 0; k < w->queue.n; k++)
            w->queue.list[k].receives = cases[i].received;
        int status = verb(w->v, "redrive --wait 1 --dry-run sqs://failed");
        if (cases[i].works) {
            verb_assert(w->v, status, 0, "listed            5");
        } else {
            verb_assert(w->v, status, cases[i].most < 3 ? 2 : 1, "its RedrivePolicy moves a message to");
            assert_told(w, FAKE_INBOX_POLICY " after");
        }
        assert_all_released(w, 5);
    }
}

static void no_more_in_flight_ends_the_run(void **state)
{
    struct world *w = *state;
    w->queue.most_in_flight = 20;
    fill(w, 30, NULL);
    verb_assert(w->v, verb(w->v, "redrive --wait 1 sqs://failed"), 1, "20 of 20");
    assert_told(w, "SQS gives no more for now; run it again (with --delete-done more come)");
    assert_all_released(w, 30);
    /* Another place is not held up. */
    verb_write(w->v, "one.json", parked(31, true));
    verb_assert(w->v, verb(w->v, "redrive --wait 1 sqs://failed one.json"), 1, "21 of 21");
    verb_assert(w->v, verb(w->v, REDRIVE), 0, "30 of 30");
    assert_all_released(w, 0);
}

/* ---- answers that fail ---- */

static void an_answer_that_fails_is_no_success(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *operation;
        int status;
        const char *answer;
        int exits;
        const char *told;
    } cases[] = {
        {"GetQueueUrl", 400, "{'__type':'com.amazonaws.sqs#QueueDoesNotExist','message':'x'}", 2,
         "QueueDoesNotExist"},
        {"GetQueueUrl", 200, "{'QueueUrl':'x'}", 2, "GetQueueUrl"},
        {"GetQueueAttributes", 200, "{}", 2, "GetQueueAttributes"},
        {"GetQueueAttributes", 403, "{'__type':'AccessDeniedException','message':'no'}", 2, "AccessDenied"},
        {"ReceiveMessage", 403, "{'__type':'AccessDeniedException','message':'no'}", 1, "AccessDenied"},
        {"DeleteMessageBatch", 200, "{}", 1, "not removed: "},
        {"DeleteMessageBatch", 200, "<html>", 1, "not removed: "},
        {"DeleteMessageBatch", 500, "{'__type':'InternalError'}", 1, "not removed: "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned first = (unsigned)w->queue.n;
        fake_inbox_add(&w->queue, NULL, parked(first + 1, true));
        w->liar = cases[i].operation;
        w->status = cases[i].status;
        w->lie = cases[i].answer;
        verb_assert(w->v, verb(w->v, REDRIVE), cases[i].exits, cases[i].told);
        assert_true(!strstr(verb_out(w->v), "  removed"));
        assert_all_released(w, 1);
        if (cases[i].exits == 2)
            assert_string_equal(verb_out(w->v), "");
        w->liar = NULL;
        verb_assert(w->v, verb(w->v, REDRIVE), 0, "1 of 1 messages are done");
        assert_all_released(w, 0);
    }
}

/* A place that cannot be read to its end: those behind it are not begun. */
static void a_run_that_breaks_off_begins_nothing_more(void **state)
{
    struct world *w = *state;
    verb_write(w->v, "one.json", parked(1, true));
    w->liar = "ReceiveMessage", w->status = 403, w->lie = "{'__type':'AccessDeniedException','message':'no'}";
    verb_assert(w->v, verb(w->v, "redrive --wait 1 sqs://failed one.json"), 1, "AccessDenied");
    assert_string_equal(verb_read(w->v, "said.jsonl"), "");
}

static void what_is_not_removed_or_released_is_told(void **state)
{
    struct world *w = *state;
    w->refuses = "DeleteMessageBatch";
    fill(w, 15, NULL);
    verb_assert(w->v, verb(w->v, REDRIVE), 1, "left              1   done, and still there");
    assert_told(w, "m-0  route=say  key={\"PK\":{\"S\":\"k1\"}}  not removed: ReceiptHandleIsInvalid");
    assert_all_released(w, 1);
    w->refuses = NULL;
    w->liar = "ChangeMessageVisibilityBatch", w->status = 200, w->lie = "{}";
    verb_assert(w->v, verb(w->v, "redrive --wait 1 sqs://failed"), 1,
                "1 messages could not be released; they come back within 300 s");
    assert_int_equal(fake_inbox_in_flight(&w->queue), 1);
}

static void a_signal_ends_it_and_releases_all(void **state)
{
    struct world *w = *state;
    fill(w, 300, NULL);
    w->signal_at = 2;
    verb_assert(w->v, verb(w->v, REDRIVE), 1, "interrupted; what is not done stays where it is");
    size_t left = fake_inbox_count(&w->queue);
    assert_true(left > 0);
    assert_all_released(w, left);
    verb_assert(w->v, verb(w->v, REDRIVE), 0, "");
    assert_all_released(w, 0);
}

/* A function whose target is down: it names the first record of each batch, so none is at fault. */
static int answer_down(void)
{
    struct sl_runtime *rt;
    struct sl_runtime_event event;
    if (sl_runtime_open(getenv("AWS_LAMBDA_RUNTIME_API"), "down", &rt, NULL) != SL_OK)
        return 1;
    while (sl_runtime_next(rt, &event, NULL) == SL_OK) {
        const char *at = strstr(event.payload.ptr, "\"SequenceNumber\":\"") + 18;
        const char *answer =
            json_printf("{'batchItemFailures':[{'itemIdentifier':'%.*s'}]}", (int)strcspn(at, "\""), at);
        if (sl_runtime_respond(rt, event.request_id, sl_span_str(answer), "application/json", NULL) != SL_OK)
            return 1;
    }
    return 0;
}

static void a_target_that_is_down_ends_the_run(void **state)
{
    struct world *w = *state;
    fill(w, 250, NULL);
    verb_write(w->v, "down", "");
    verb_assert(w->v, verb(w->v, REDRIVE), 1, "10 deliveries in a row failed, and no record is at fault");
    assert_told(w, "\nnot begun ");
    assert_all_released(w, 250);
    unlink(json_printf("%s/down", verbs_folder(w->v)));
    verb_assert(w->v, verb(w->v, REDRIVE), 0, "250 of 250");
    assert_all_released(w, 0);
}

/* Whatever fails on this machine: no message is removed that was not done, and the next run does all. */
static void every_fault_of_the_system_loses_nothing(void **state)
{
    struct world *w = *state;
    static const int errors[] = {ENOSPC, EMFILE};
    bool came = true;
    fill(w, 3, NULL);
    for (int n = 1; came; n++) {
        for (size_t k = 0; k < w->queue.n; k++)
            w->queue.list[k].is_removed = false, w->queue.list[k].until_ms = 0;
        unlink(json_printf("%s/said.jsonl", verbs_folder(w->v)));
        verb_fault(w->v, n, errors[n % 2], NULL);
        int status = verb(w->v, REDRIVE);
        came = disk_fault_came();
        assert_true(status >= 0 && status <= 4);
        if (status && !verb_err(w->v)[0] && !strstr(verb_out(w->v), "failed"))
            fail_msg("%s fails, and nothing is told", disk_fault->came);
        size_t left = fake_inbox_count(&w->queue), times = 0;
        for (const char *at = verb_read(w->v, "said.jsonl"); (at = strchr(at, '\n')); at++)
            times++;
        assert_true(times + left >= 3);
        if (status == 0)
            assert_int_equal(left, 0);
        for (size_t k = 0; k < w->queue.n; k++)
            w->queue.list[k].until_ms = 0;
    }
    assert_string_equal(said(w, 3), "1 1 1 ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    if (verbs_is_bootstrap(argc, argv))
        return access("down", F_OK) == 0 ? answer_down() : sl_start(argv[0], environ);
    verbs_link_bootstrap();
    const struct CMUnitTest tests[] = {
        TEST(what_is_done_is_removed_and_nothing_else),
        TEST(without_delete_done_all_stays),
        TEST(a_group_goes_up_to_its_first_failure),
        TEST(a_message_is_not_moved_by_the_policy),
        TEST(no_more_in_flight_ends_the_run),
        TEST(an_answer_that_fails_is_no_success),
        TEST(a_run_that_breaks_off_begins_nothing_more),
        TEST(what_is_not_removed_or_released_is_told),
        TEST(a_signal_ends_it_and_releases_all),
        TEST(a_target_that_is_down_ends_the_run),
        TEST(every_fault_of_the_system_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
