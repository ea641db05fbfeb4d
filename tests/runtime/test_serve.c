/* The loop of the real process, against a Runtime API that the test plays: events and their answers, wrong
 * answers to the process, and how it starts and ends. */
#include "tests/support/runtime_api.h"
#include "tests/support/test.h"

#include "base/clock.h"
#include "runtime/start.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define SAY                                                                                                  \
    "{'report_batch_item_failures':true,'routes':[{'name':'say','handler':'notify',"                         \
    "'to':'jsonl:${DIR}/said.jsonl','message':'{PK}','on_failure':'report'}]}"
/* Every second record has no "even". */
#define PARKS                                                                                                \
    "{'report_batch_item_failures':true,'on_failure':'jsonl:${DIR}/parked.jsonl','routes':["                 \
    "{'name':'say','handler':'notify','to':'jsonl:${DIR}/said.jsonl','message':'{PK}'},"                     \
    "{'name':'even','handler':'notify','to':'jsonl:${DIR}/said.jsonl','message':'{even}'}]}"
#define TELLS(more)                                                                                          \
    "{'report_batch_item_failures':true,'routes':[{'name':'t','handler':'tells','told':'${DIR}/told',"       \
    "'on_failure':'report'" more "}]}"

static int set_up(void **state)
{
    *state = api_new();
    return 0;
}

static int tear_down(void **state)
{
    api_destroy(*state);
    return 0;
}

static void write_config(struct api *a, const char *config)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/sluice.json", api_folder(a));
    test_write(path, json(config));
}

/* ---- events ---- */

static void each_event_is_answered_once(void **state)
{
    struct api *a = *state;
    static const struct {
        const char *payload, *type;
    } wrong[] = {
        {"{'hello':'world'}", "Function.NotAStreamEvent"},
        {"{'Records':[", "Function.InvalidJson"},
        {"", "Function.InvalidJson"},
        {"{'Records':[{'eventSource':'aws:s3','s3':{}}]}", "Function.NotAStreamEvent"},
        {"{'sluice':{'sum':{}}}", "Function.WorkItemRefused"},
    };
    api_start(a, SAY);
    api_deliver_all(a, api_event(1000, 3));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct api_post post = api_deliver(a, json_span(wrong[i].payload));
        assert_true(post.is_error);
        assert_string_equal(post.type, wrong[i].type);
        assert_non_null(strstr(post.body, "\"errorMessage\":\""));
    }
    assert_non_null(strstr(api_deliver(a, json_span("{'Records':[")).body, "byte 12 of the event"));
    assert_null(strstr(api_deliver(a, json_span("{'sluice':{'sum':{}}}")).body, "byte "));
    api_deliver_all(a, json_span("{'Records':[]}"));
    api_deliver_all(a, api_event(1003, 1));
    assert_int_equal(api_stop(a), 0);
    assert_string_equal(api_file(a, "said.jsonl"), "\"k1000\"\n\"k1001\"\n\"k1002\"\n\"k1003\"\n");
    assert_int_equal(api_times(a, "err", "ERROR"), 7);
    assert_int_equal(api_times(a, "err", "WARN"), 0);
    assert_string_equal(api_file(a, "out"), "");
}

/* A record that fails: it and what follows it is delivered again. */
static void what_is_not_done_is_named(void **state)
{
    struct api *a = *state;
    api_start(a, "{'report_batch_item_failures':true,'routes':[{'name':'even','handler':'notify',"
                 "'to':'jsonl:${DIR}/said.jsonl','message':'{even}','on_failure':'report'}]}");
    struct api_post post = api_deliver(a, api_event(1000, 4));
    assert_false(post.is_error);
    assert_string_equal(post.body, json("{'batchItemFailures':[{'itemIdentifier':'1001'}]}"));
    api_deliver_all(a, api_event(1002, 1)); /* the last answer's body has gone */
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "err", "records from 2 of 4 on will be delivered again"), 1);
    assert_int_equal(api_times(a, "err", "will be delivered again"), 1);
}

#define LONGEST_REST "ongestcodeofanerrorthatahostwilltakefromahandlerwhateveritsay"
#define LONGEST      "l" LONGEST_REST

/* Lambda keeps a type only if it is "Function." and letters, the first of them a capital. */
static void a_function_error_has_a_type_that_lambda_keeps(void **state)
{
    struct api *a = *state;
    static const struct {
        const char *code, *type;
    } cases[] = {
        {"Refused", "Function.Refused"},
        {"slow_down 9", "Function.Slowdown"},
        {"aZ-zA", "Function.AZzA"},
        {"1234", "Function.Error"},
        {"[Azaz{`@", "Function.Azaz"},
        {"Z", "Function.Z"},
        {"zebra", "Function.Zebra"},
        {"a", "Function.A"},
        {LONGEST "c", "Function.L" LONGEST_REST "c"}, /* the longest code */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        api_start(a,
                  json_printf("{'report_batch_item_failures':false,'routes':[{'name':'t','handler':'tells',"
                              "'told':'${DIR}/told','on_failure':'report','code':'%s'}]}",
                              cases[i].code));
        struct api_post post = api_deliver(a, api_event(1000, 1));
        assert_true(post.is_error);
        assert_string_equal(post.type, cases[i].type);
        assert_non_null(strstr(post.body, "as it was told to"));
        assert_int_equal(api_stop(a), 0);
        assert_int_equal(api_times(a, "err", json_printf("ERROR %s %s: ", post.id, cases[i].type)), 1);
        api_start(a, json_printf(TELLS(",'in':'open','code':'%s'"), cases[i].code));
        post = api_init_error(a);
        assert_string_equal(post.type, cases[i].type);
        assert_non_null(strstr(post.body, "as it was told to"));
        assert_int_equal(api_wait(a), 1);
    }
    assert_int_equal(api_times(a, "err", "cannot start: "), sizeof(cases) / sizeof(cases[0]));
}

/* How long the handler's deadline was away, by its own words. */
static long long told_left(struct api *a, const char *first)
{
    const char *at = strstr(api_file(a, "told"), first);
    assert_non_null(at);
    at = strstr(at, "left ");
    return strtoll(at + 5, NULL, 10);
}

static void the_deadline_is_the_events_within_limits(void **state)
{
    struct api *a = *state;
    char header[96];
    struct timespec now;
    api_start(a, TELLS(""));
    for (int i = 0; i < 5; i++) {
        static const long long ahead_ms[] = {60000, 90 * 60 * 1000 + 60000, -5000, 0, 85 * 60 * 1000};
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(header, sizeof(header), "!Lambda-Runtime-Deadline-Ms: %lld\r\n",
                 (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000 + ahead_ms[i]);
        api_offer(a, api_event((size_t)(1000 + 10 * i), 1), "x", i == 3 ? "!" : header);
        (void)api_posted(a);
    }
    long long left[] = {told_left(a, "1000 "), told_left(a, "1010 "), 0, told_left(a, "1030 "),
                        told_left(a, "1040 ")};
    /* Dispatch keeps some seconds for the answer. */
    assert_in_range(left[0], 45000, 60000);
    assert_in_range(left[1], 89 * 60 * 1000, 90 * 60 * 1000);
    assert_in_range(left[3], 14 * 60 * 1000, 15 * 60 * 1000);
    assert_in_range(left[4], 84 * 60 * 1000, 85 * 60 * 1000);
    const char *late = strstr(api_file(a, "told"), "1020 ");
    if (late) /* or it was not called at all */
        assert_in_range(told_left(a, "1020 ") + 10000, 0, 10000);
    assert_int_equal(api_stop(a), 0);
}

static void the_invocation_is_passed_on(void **state)
{
    struct api *a = *state;
    api_set(a, "AWS_LAMBDA_LOG_FORMAT=JSON");
    api_start(a, TELLS(""));
    api_offer(a, api_event(1000, 2), "id-1", "Lambda-Runtime-Trace-Id: Root=1;Sampled=1\r\n");
    (void)api_posted(a);
    api_offer(a, api_event(1002, 1), "id-2", NULL);
    (void)api_posted(a);
    api_offer(a, json_span("{}"), "id-3", NULL);
    (void)api_posted(a);
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "told", "id id-1 trace Root=1;Sampled=1\n"), 1);
    assert_int_equal(api_times(a, "told", "id id-2 trace -\n"), 1);
    assert_int_equal(api_times(a, "err", json("'requestId':'id-1','route':'t','message':'told'")), 1);
    assert_int_equal(
        api_times(a, "err", json("'level':'ERROR','requestId':'id-3','message':'Function.NotASt")), 1);
}

/* ---- what is told of them ---- */

static int with_report(void *arg)
{
    if (open(arg, O_WRONLY | O_CREAT | O_APPEND, 0600) != 3)
        return 99;
    return sl_start("bootstrap", environ);
}

static void a_report_has_each_batch(void **state)
{
    struct api *a = *state;
    api_set(a, "SLUICE_REPORT_FD=3");
    api_set(a, "AWS_LAMBDA_LOG_GROUP_NAME=g");
    write_config(a, PARKS);
    api_start_this(a, with_report, (char[]){"report"});
    const struct sl_span event = api_event(1000, 3);
    const size_t bytes = event.len - strlen("{'Records':[,,]}");
    api_deliver_all(a, event);
    (void)api_deliver(a, json_span("{}"));
    api_deliver_all(a, api_event(1003, 1));
    api_deliver_all(a, api_event(1005, 3)); /* two notes */
    assert_int_equal(api_stop(a), 0);
    const char *folder = api_folder(a);
    const char *wanted = json_printf(
        "{'requestId':'1','records':3,'checkpoint':3,'parked':1,'routes':[{'name':'say','handler':'notify',"
        "'to':'jsonl:%s/said.jsonl','matched':3,'applied':3,'parked':0,'failed':0,'skipped':0,'calls':2,"
        "'bytes':%zu},{'name':'even','handler':'notify','to':'jsonl:%s/said.jsonl','matched':3,'applied':2,"
        "'parked':1,'failed':0,'skipped':0,'calls':2,'bytes':%zu}],'notes':[{'parked':true,'route':'even',"
        "'id':'1001','code':'MissingAttribute','message':'the record has no value for {even}'}]}\n",
        folder, bytes, folder, bytes);
    if (strncmp(api_file(a, "report"), wanted, strlen(wanted)) != 0)
        fail_msg("%s\nis not\n%s", api_file(a, "report"), wanted);
    assert_int_equal(api_times(a, "report", "\n"), 3);
    assert_int_equal(api_times(a, "report", json("{even}'},{'parked':true,'route':'even','id':'1007'")), 1);
    assert_int_equal(api_times(a, "report", json("'requestId':'3','records':1,'checkpoint':1,'parked':1")),
                     1);
    assert_int_equal(api_times(a, "err", "matched"), 0);
    assert_int_equal(api_times(a, "err", "_aws"), 0);
}

/* A record that is not done is noted, too. */
static void a_report_notes_what_is_not_parked(void **state)
{
    struct api *a = *state;
    api_set(a, "SLUICE_REPORT_FD=3");
    write_config(a, "{'report_batch_item_failures':true,'routes':[{'name':'even','handler':'notify',"
                    "'to':'jsonl:${DIR}/said.jsonl','message':'{even}','on_failure':'report'}]}");
    api_start_this(a, with_report, (char[]){"report"});
    assert_string_equal(api_deliver(a, api_event(1000, 2)).body,
                        json("{'batchItemFailures':[{'itemIdentifier':'1001'}]}"));
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(
        api_times(a, "report", json("'checkpoint':1,'parked':0,'routes':[{'name':'even','handler':'notify'")),
        1);
    assert_int_equal(
        api_times(a, "report",
                  json("'notes':[{'parked':false,'route':'even','id':'1001','code':'MissingAttribute'")),
        1);
}

/* Whoever reads the report shows the init error, so the log does not. */
static void a_report_takes_the_place_of_the_logs_init_error(void **state)
{
    struct api *a = *state;
    api_set(a, "SLUICE_REPORT_FD=3");
    api_start_this(a, with_report, (char[]){"report"});
    assert_non_null(strstr(api_init_error(a).body, "sluice.json"));
    assert_int_equal(api_wait(a), 1);
    assert_string_equal(api_file(a, "err"), "");
}

/* The document of metrics that has such a member, and the number of another one in it; -1: it has none. */
static double metric(struct api *a, size_t nth, const char *name)
{
    char member[64];
    snprintf(member, sizeof(member), "\"%s\":", name);
    const char *line = api_file(a, "err");
    for (;; line++) {
        line = strstr(line, "{\"_aws\"");
        assert_non_null(line);
        const char *end = strchrnul(line, '\n');
        const char *is_route = memmem(line, (size_t)(end - line), "\"Route\":", 8);
        if (!is_route && nth-- == 0) {
            const char *at = memmem(line, (size_t)(end - line), member, strlen(member));
            return at ? strtod(at + strlen(member), NULL) : -1;
        }
    }
}

/* `created`: when, in seconds; 0: it does not say. */
static const char *record_of(int number, long created)
{
    return json_printf(
        "{'eventID':'e%d','eventName':'INSERT','eventVersion':'1.1','eventSource':'aws:dynamodb','awsRegion':"
        "'us-east-1','dynamodb':{%s'Keys':{'PK':{'S':'k'}},'NewImage':{'PK':{'S':'k'}},'SequenceNumber':'%d',"
        "'SizeBytes':10,'StreamViewType':'NEW_AND_OLD_IMAGES'},'eventSourceARN':'arn:aws:dynamodb:us-east-1:"
        "123456789012:table/t/stream/2019-11-14T00:04:06.388'}",
        number, created ? json_printf("'ApproximateCreationDateTime':%ld,", created) : "", number);
}

static void metrics_count_what_failed_and_how_old_it_was(void **state)
{
    struct api *a = *state;
    struct sl_clock *clock = sl_clock_system();
    int64_t began_ms = clock->now_ms(clock);
    long now = (long)time(NULL);
    api_set(a, "AWS_LAMBDA_LOG_GROUP_NAME=g");
    api_start(a, PARKS);
    api_deliver_all(a,
                    json_span(json_printf("{'Records':[%s,%s]}", record_of(1, 0), record_of(2, now - 100))));
    (void)api_deliver(a, json_span("{}"));
    (void)api_deliver(a, json_span(json_printf("{'Records':[%s]}", record_of(3, now))));
    assert_int_equal(api_stop(a), 0);
    double took_ms = (double)(clock->now_ms(clock) - began_ms);
    assert_in_range(metric(a, 0, "IteratorAgeMs"), 99000, 160000);
    assert_int_equal(metric(a, 0, "FailedBatches"), 0);
    assert_int_equal(metric(a, 0, "Records"), 2);
    assert_int_equal(metric(a, 0, "Parked"), 2);
    assert_int_equal(metric(a, 0, "ColdStart"), 1);
    assert_true(metric(a, 0, "DecodeMs") >= 0 && metric(a, 0, "DecodeMs") <= took_ms);
    assert_int_equal(metric(a, 1, "FailedBatches"), 1);
    assert_true(metric(a, 1, "IteratorAgeMs") == -1);
    assert_true(metric(a, 1, "DecodeMs") >= 0 && metric(a, 1, "DecodeMs") <= took_ms);
    assert_in_range(metric(a, 2, "IteratorAgeMs"), 0, 60000);
    assert_int_equal(api_times(a, "err", "; even: matched 2, applied 0, parked 2"), 1);
}

static void a_batch_of_which_a_part_is_not_done_has_failed(void **state)
{
    struct api *a = *state;
    api_set(a, "AWS_LAMBDA_LOG_GROUP_NAME=g");
    api_set(a, "SLUICE_SUMMARY=off");
    for (int reports = 0; reports < 2; reports++) {
        api_start(a, json_printf("{'report_batch_item_failures':%s,'routes':[{'name':'even','handler':"
                                 "'notify','to':'jsonl:${DIR}/said.jsonl','message':'{even}','on_failure':"
                                 "'report'}]}",
                                 reports ? "true" : "false"));
        assert_int_equal(api_deliver(a, api_event(1000, 2)).is_error, !reports);
        assert_false(api_deliver(a, api_event(1002, 1)).is_error);
        assert_int_equal(api_stop(a), 0);
        assert_int_equal(metric(a, (size_t)(2 * reports), "FailedBatches"), 1);
        assert_int_equal(metric(a, (size_t)(2 * reports + 1), "FailedBatches"), 0);
    }
    assert_int_equal(api_times(a, "err", "; even: "), 0);
}

/* SIGTERM in the middle of an event: it is answered, then the metrics that waited are written. */
static void an_end_in_the_middle_is_in_order(void **state)
{
    struct api *a = *state;
    api_set(a, "AWS_LAMBDA_LOG_GROUP_NAME=g");
    api_set(a, "SLUICE_METRICS=3600");
    api_start(a, "{'report_batch_item_failures':true,'routes':[{'name':'c','handler':'closes',"
                 "'told':'${DIR}/told','on_failure':'report'}]}");
    api_deliver_all(a, api_event(1000, 2));
    api_offer(a, api_event(1002, 3), "last", NULL);
    struct api_request *answer = api_take(a, API_INVOCATION);
    assert_int_equal(api_times(a, "err", "_aws"), 0);
    kill(api_process(a), SIGTERM);
    assert_int_equal(api_count(a, API_NEXT, 50), 0);
    api_reply(a, answer, API_ACCEPTED);
    assert_int_equal(api_wait(a), 0);
    assert_int_equal(api_count(a, API_NEXT, 0), 0);
    assert_int_equal(metric(a, 0, "Records"), 5);
    assert_int_equal(metric(a, 0, "Invocations"), 2);
    assert_int_equal(api_times(a, "told", "closed"), 1);
    assert_string_equal(api_file(a, "out"), "a plugin's line\n");
    DIR *folder = opendir(api_folder(a));
    for (const struct dirent *entry; (entry = readdir(folder));)
        assert_null(strstr(entry->d_name, "-held-"));
    closedir(folder);
}

static void wrong_settings_are_said_and_used_as_if_absent(void **state)
{
    struct api *a = *state;
    api_set(a, "SLUICE_SUMMARY=1");
    api_set(a, "SLUICE_SHUTDOWN=maybe");
    api_start(a, SAY);
    api_deliver_all(a, api_event(1000, 1));
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "err", "its default is used"), 2);
    assert_int_equal(api_times(a, "err", "\n"), 2);
}

/* ---- a Runtime API that answers wrongly ---- */

static void note_sleep(struct sl_clock *clock, int64_t ms)
{
    (void)clock;
    dprintf(1, "slept %lld\n", (long long)ms);
}

static int without_sleep(void *arg)
{
    (void)arg;
    sl_clock_system()->sleep_ms = note_sleep;
    return sl_start("bootstrap", environ);
}

static void start_without_sleep(struct api *a, const char *config)
{
    write_config(a, config);
    api_start_this(a, without_sleep, NULL);
}

static void is_refused(struct api *a, int times)
{
    for (int i = 0; i < times; i++)
        api_reply(a, api_take(a, API_NEXT), API_STATUS(403, "Forbidden"));
}

#define FOUR_PAUSES "slept 400\nslept 800\nslept 1600\nslept 3200\n"

static void an_api_that_refuses_five_times_in_a_row_is_given_up(void **state)
{
    struct api *a = *state;
    start_without_sleep(a, SAY);
    is_refused(a, 4);
    api_deliver_all(a, api_event(1000, 1)); /* four are gone over, and forgotten */
    is_refused(a, 4);
    api_reply(a, api_take(a, API_NEXT), "HTTP/1.1 204 No Content\r\n\r\n"); /* no failure */
    is_refused(a, 5);
    assert_int_equal(api_wait(a), 1);
    assert_string_equal(api_file(a, "out"), FOUR_PAUSES FOUR_PAUSES "slept 400\n" FOUR_PAUSES);
    assert_int_equal(api_times(a, "err", "UnexpectedAnswer"), 13);
    assert_int_equal(api_times(a, "err", "WARN"), 13);
    assert_int_equal(api_times(a, "err", "failed 5 times in a row: exiting"), 1);
    assert_int_equal(api_times(a, "err", "NoEvent"), 0);
}

static void an_api_that_is_gone_is_given_up(void **state)
{
    struct api *a = *state;
    start_without_sleep(a, SAY);
    for (int i = 0; i < 10; i++) /* two tries each time */
        api_hang_up(a, api_take(a, API_NEXT), i % 2 ? "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" : NULL,
                    0);
    assert_int_equal(api_wait(a), 1);
    assert_string_equal(api_file(a, "out"), FOUR_PAUSES);
    assert_int_equal(api_times(a, "err", "ConnectionBroken"), 5);
}

static void an_error_of_the_environment_ends_the_process(void **state)
{
    struct api *a = *state;
    start_without_sleep(a, SAY);
    api_reply(a, api_take(a, API_NEXT), API_STATUS(500, "Internal Server Error"));
    assert_int_equal(api_wait(a), 1);
    start_without_sleep(a, SAY);
    api_offer(a, api_event(1000, 1), "1", NULL);
    api_reply(a, api_take(a, API_INVOCATION), API_STATUS(500, "Internal Server Error"));
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "ERROR InternalServerError"), 1);
    assert_int_equal(api_times(a, "err", "ERROR 1 InternalServerError"), 1);
    assert_string_equal(api_file(a, "out"), "");
}

static void a_refused_answer_is_said_and_the_next_event_taken(void **state)
{
    struct api *a = *state;
    static const char *const refusals[] = {API_STATUS(400, "Bad Request"), API_STATUS(403, "Forbidden"),
                                           API_STATUS(410, "Gone"),        API_STATUS(413, "Too Large"),
                                           API_STATUS(404, "Not Found"),   API_STATUS(499, "Odd")};
    start_without_sleep(a, SAY);
    for (int i = 0; i < 6; i++) {
        api_offer(a, i % 2 ? json_span("{}") : api_event((size_t)(1000 + i), 1), "x", NULL);
        api_reply(a, api_take(a, API_INVOCATION), refusals[i]);
    }
    api_deliver_all(a, api_event(1010, 1));
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "err", "AnswerRefused"), 6);
    assert_int_equal(api_times(a, "err", "refused the answer with 400"), 1);
    assert_int_equal(api_times(a, "err", "refused the function error with 403"), 1);
    assert_int_equal(api_times(a, "err", "(the invocation had timed out)"), 1);
    assert_int_equal(api_times(a, "out", "slept 400\n"), 6);
}

/* The reply to an answer gets lost: it is sent once more, and the handler is not called again. */
static void a_lost_reply_costs_nothing(void **state)
{
    struct api *a = *state;
    start_without_sleep(a, SAY);
    api_offer(a, api_event(1000, 1), "x", NULL);
    api_hang_up(a, api_take(a, API_INVOCATION), API_ACCEPTED, 20);
    api_reply(a, api_take(a, API_INVOCATION), API_STATUS(403, "Forbidden"));
    api_deliver_all(a, api_event(1001, 1));
    assert_int_equal(api_stop(a), 0);
    assert_string_equal(api_file(a, "said.jsonl"), "\"k1000\"\n\"k1001\"\n");
    assert_string_equal(api_file(a, "err"), "");
    assert_string_equal(api_file(a, "out"), "");
}

static void an_event_that_is_too_large_is_refused_and_counted(void **state)
{
    struct api *a = *state;
    size_t n = 6 * 1024 * 1024 + 101;
    char *large = malloc(n);
    assert_non_null(large);
    memset(large, ' ', n);
    api_set(a, "AWS_LAMBDA_LOG_GROUP_NAME=g");
    start_without_sleep(a, SAY);
    api_offer(a, sl_span(large, n), "big", NULL);
    struct api_post post = api_posted(a);
    assert_string_equal(post.id, "big");
    assert_string_equal(post.type, "Function.EventTooLarge");
    api_deliver_all(a, api_event(1000, 1));
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(metric(a, 0, "FailedBatches"), 1);
    assert_int_equal(metric(a, 0, "ColdStart"), 1);
    assert_int_equal(metric(a, 1, "FailedBatches"), 0);
    assert_string_equal(api_file(a, "out"), "");
    free(large);
}

/* At the level of errors the log has the errors alone; what is done is the same. */
static void at_the_highest_level_the_log_has_errors_alone(void **state)
{
    struct api *a = *state;
    api_set(a, "AWS_LAMBDA_LOG_LEVEL=FATAL"); /* (which is that level) */
    api_set(a, "SLUICE_SHUTDOWN=1");
    start_without_sleep(a, SAY);
    api_reply(a, api_take(a, API_REGISTER), API_STATUS(403, "Forbidden"));
    is_refused(a, 5);
    assert_int_equal(api_wait(a), 1);
    start_without_sleep(a, SAY);
    api_reply(a, api_take(a, API_REGISTER), API_REGISTERED);
    api_hang_up(a, api_take(a, API_ASK), NULL, 0);
    api_await(a, API_ASK, 1);
    assert_int_equal(api_stop(a), 0);
    assert_string_equal(api_file(a, "err"), "ERROR the Runtime API failed 5 times in a row: exiting\n");
}

/* The summary as JSON: a line that says what it is, with a member for each count. */
static void a_summary_as_json_says_what_it_is(void **state)
{
    struct api *a = *state;
    api_set(a, "AWS_LAMBDA_LOG_FORMAT=JSON");
    api_set(a, "SLUICE_SUMMARY=on");
    api_start(a, PARKS);
    api_deliver_all(a, api_event(1000, 3));
    assert_int_equal(api_stop(a), 0);
    const char *line = strstr(api_file(a, "err"), "\"message\":\"invocation summary\"");
    assert_non_null(line);
    const char *even = strstr(line, json("{'name':'even','matched':3,'applied':2,'parked':1,'failed':0,"
                                         "'skipped':0,'bytes':"));
    assert_non_null(even);
    assert_non_null(strstr(line, json("'records':3,'decodeMs':")));
    assert_non_null(strstr(line, json("'routes':[{'name':'say','matched':3,'applied':3,'parked':0,")));
    assert_int_equal(api_times(a, "err", "invocation summary"), 1);
}

/* ---- starting ---- */

static void an_init_error_is_posted_once_and_ends_it(void **state)
{
    struct api *a = *state;
    static const char *const cases[][2] = {
        {"{'routes':", "sluice.json"},
        {"{'routes':[{'name':'a','handler':'nowhere','on_failure':'report'}]}", "nowhere"},
        {"{'report_batch_item_failures':true,'frobnicate':1,'routes':[]}", "frobnicate"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        api_start(a, cases[i][0]);
        struct api_post post = api_init_error(a);
        assert_non_null(strstr(post.body, cases[i][1]));
        assert_int_equal(strncmp(post.type, "Function.", 9), 0);
        assert_int_equal(api_wait(a), 1);
    }
    assert_int_equal(api_count(a, "", 0), 0);
    assert_int_equal(api_times(a, "err", "ERROR cannot start: "), 3);
    assert_int_equal(api_times(a, "err", "\n"), 3);
}

static void an_init_error_that_does_not_arrive_is_said(void **state)
{
    struct api *a = *state;
    api_start(a, "{");
    api_hang_up(a, api_take(a, API_INIT_ERROR), NULL, 0);
    api_hang_up(a, api_take(a, API_INIT_ERROR), NULL, 0);
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "the init error did not reach the Runtime API"), 1);
    api_start(a, "{");
    api_reply(a, api_take(a, API_INIT_ERROR), API_STATUS(202, "Accepted"));
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "did not reach"), 1);
}

static void outside_of_lambda_it_says_so(void **state)
{
    struct api *a = *state;
    api_set(a, "AWS_LAMBDA_RUNTIME_API=");
    api_start(a, SAY);
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "ERROR cannot start: AWS_LAMBDA_RUNTIME_API is not set"), 1);
    assert_int_equal(api_times(a, "err", "\n"), 1);
    api_set(a, "AWS_LAMBDA_RUNTIME_API=/");
    api_start(a, NULL);
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "is not host:port"), 1);
}

/* As Lambda starts it, SIGPIPE and SIGXFSZ are not ignored. */
static void a_broken_pipe_is_an_error_of_the_write(void **state)
{
    struct api *a = *state;
    api_start(a, "{'report_batch_item_failures':true,'routes':[{'name':'d','handler':'dies','how':'pipe',"
                 "'at':'1000','told':'${DIR}/told','on_failure':'report'}]}");
    api_deliver_all(a, api_event(1000, 1));
    char path[64], text[4096] = "";
    snprintf(path, sizeof(path), "/proc/%d/status", (int)api_process(a));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    unsigned long long ignored = strtoull(strstr(text, "SigIgn:") + 7, NULL, 16);
    assert_true(ignored >> (SIGPIPE - 1) & 1);
    assert_true(ignored >> (SIGXFSZ - 1) & 1);
    assert_int_equal(api_stop(a), 0);
}

static int with_closed_log(void *arg)
{
    (void)arg;
    close(0);
    close(2);
    return sl_start("bootstrap", environ);
}

/* A line of the log must not end up in the file or connection that got the number of a closed descriptor. */
static void a_closed_standard_error_is_nobody(void **state)
{
    struct api *a = *state;
    char path[300];
    write_config(a, SAY);
    api_set(a, "SLUICE_SUMMARY=on");
    api_start_this(a, with_closed_log, NULL);
    api_deliver_all(a, api_event(1000, 1));
    for (int fd = 0; fd <= 2; fd += 2) {
        char target[300];
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)api_process(a), fd);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        assert_true(n > 0);
        assert_span_is(sl_span(target, (size_t)n), "/dev/null");
    }
    assert_int_equal(api_stop(a), 0);
    assert_string_equal(api_file(a, "said.jsonl"), "\"k1000\"\n");
    assert_string_equal(api_file(a, "err"), "");
}

#define SERVES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVES(each_event_is_answered_once),
        SERVES(what_is_not_done_is_named),
        SERVES(a_function_error_has_a_type_that_lambda_keeps),
        SERVES(the_deadline_is_the_events_within_limits),
        SERVES(the_invocation_is_passed_on),
        SERVES(a_report_has_each_batch),
        SERVES(a_report_notes_what_is_not_parked),
        SERVES(a_report_takes_the_place_of_the_logs_init_error),
        SERVES(metrics_count_what_failed_and_how_old_it_was),
        SERVES(a_batch_of_which_a_part_is_not_done_has_failed),
        SERVES(an_end_in_the_middle_is_in_order),
        SERVES(wrong_settings_are_said_and_used_as_if_absent),
        SERVES(an_api_that_refuses_five_times_in_a_row_is_given_up),
        SERVES(an_api_that_is_gone_is_given_up),
        SERVES(an_error_of_the_environment_ends_the_process),
        SERVES(a_refused_answer_is_said_and_the_next_event_taken),
        SERVES(a_lost_reply_costs_nothing),
        SERVES(an_event_that_is_too_large_is_refused_and_counted),
        SERVES(at_the_highest_level_the_log_has_errors_alone),
        SERVES(a_summary_as_json_says_what_it_is),
        SERVES(an_init_error_is_posted_once_and_ends_it),
        SERVES(an_init_error_that_does_not_arrive_is_said),
        SERVES(outside_of_lambda_it_says_so),
        SERVES(a_broken_pipe_is_an_error_of_the_write),
        SERVES(a_closed_standard_error_is_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
