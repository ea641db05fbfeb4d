/* Handlers that misbehave, in the real process: what dies of a record is found out by the next process, which
 * gives each record that was held to the handler alone, and parks the one to blame. */
#include "tests/support/haste.h"
#include "tests/support/runtime_api.h"
#include "tests/support/test.h"

#include "base/clock.h"
#include "runtime/start.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <sys/mman.h>
#include <unistd.h>

extern char **environ;

#define DIES(name, how, on_failure, more)                                                                    \
    "{'name':'" name "','handler':'dies','how':'" how                                                        \
    "','at':'1003','told':'${DIR}/told','spare':'${DIR}/spare','port':'jsonl:${DIR}/port.jsonl',"            \
    "'on_failure':'" on_failure "'" more "}"
#define ROUTES(routes) "{'report_batch_item_failures':true,'routes':[" routes "]}"
#define PARK           "jsonl:${DIR}/parked.jsonl"

/* So much later than it is, for all processes. */
static int64_t *later_ms;

static int64_t (*real_now_ms)(struct sl_clock *clock);

static int64_t now_ms(struct sl_clock *clock)
{
    return real_now_ms(clock) + *later_ms;
}

static int start(void *arg)
{
    const unsigned *factor = arg;
    real_now_ms = sl_clock_system()->now_ms;
    sl_clock_system()->now_ms = now_ms;
    if (factor)
        haste(*factor);
    return sl_start("bootstrap", environ);
}

static int set_up(void **state)
{
    *state = api_new();
    later_ms = mmap(NULL, sizeof(*later_ms), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(later_ms != MAP_FAILED);
    return 0;
}

static int tear_down(void **state)
{
    api_destroy(*state);
    munmap(later_ms, sizeof(*later_ms));
    return 0;
}

static void write_file(struct api *a, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", api_folder(a), name);
    test_write(path, text);
}

static void begin(struct api *a, const char *config)
{
    if (config)
        write_file(a, "sluice.json", json(config));
    api_start_this(a, start, NULL);
}

/* Six records, the fourth of which is 1003; the process dies of them without an answer. */
static int die_of(struct api *a)
{
    api_offer(a, api_event(1000, 6), "first", NULL);
    return api_wait(a);
}

/* "1234 1235 " */
static const char *list_children(pid_t pid)
{
    static char text[200];
    char path[100];
    snprintf(path, sizeof(path), "/proc/%1$d/task/%1$d/children", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static size_t children_of(pid_t pid)
{
    size_t spaces = 0;
    for (const char *c = list_children(pid); *c; c++)
        spaces += *c == ' ';
    return spaces;
}

static pid_t first_child_of(pid_t pid)
{
    pid_t child = (pid_t)strtol(list_children(pid), NULL, 10);
    assert_true(child > 0);
    return child;
}

static const char all_done[] = "{\"batchItemFailures\":[]}";

/* ---- each way to die ---- */

static const struct {
    const char *how, *code, *message;
} ways[] = {
    {"segv", "HandlerCrashed", "the handler died of SIGSEGV on this record alone, twice"},
    {"abort", "HandlerCrashed", "the handler died of SIGABRT on this record alone, twice"},
    {"own handlers", "HandlerCrashed", "the handler died of SIGSEGV on this record alone, twice"},
#if !defined(SL_SANITIZED)
    {"overflow", "HandlerCrashed", "the handler died of SIGSEGV on this record alone, twice"},
#endif
    {"bus", "HandlerCrashed", "the handler died of SIGBUS on this record alone, twice"},
    {"fpe", "HandlerCrashed", "the handler died of SIGFPE on this record alone, twice"},
    {"ill", "HandlerCrashed", "the handler died of SIGILL on this record alone, twice"},
    {"trap", "HandlerCrashed", "the handler died of SIGTRAP on this record alone, twice"},
    {"sys", "HandlerCrashed", "the handler died of SIGSYS on this record alone, twice"},
    {"exit", "HandlerExited", "(exit status "},
    {"exit 1", "HandlerExited", "(exit status 1)"},
    {"kill", "HandlerKilled", "killed from outside (SIGKILL)"},
    {"segv from outside", "HandlerKilled", "killed from outside (SIGSEGV)"},
    {"from outside bus", "HandlerKilled", "killed from outside (SIGBUS)"},
    {"from outside fpe", "HandlerKilled", "killed from outside (SIGFPE)"},
    {"from outside ill", "HandlerKilled", "killed from outside (SIGILL)"},
    {"from outside trap", "HandlerKilled", "killed from outside (SIGTRAP)"},
    {"from outside sys", "HandlerKilled", "killed from outside (SIGSYS)"},
    {"deadly pipe", "HandlerKilled", "killed from outside (SIGPIPE)"},
    {"close", "HandlerClosedDescriptors", "closed descriptors that are not its own"},
    {"close 2", "HandlerClosedDescriptors", "closed descriptors that are not its own"},
};

static void the_next_process_parks_the_record_to_blame(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct api *a = api_new();
        *later_ms = 0;
        begin(a,
              json_printf("{'report_batch_item_failures':true,'routes':[{'name':'r','handler':'dies','how':"
                          "'%s','at':'1003','told':'${DIR}/told','on_failure':'" PARK "'}]}",
                          ways[i].how));
        if (strncmp(ways[i].how, "close", 5) == 0) { /* it can still answer */
            struct api_post post = api_deliver(a, api_event(1000, 6));
            assert_string_equal(post.type, "Function.HandlerClosedDescriptors");
            assert_int_equal(api_wait(a), 1);
        } else {
            assert_int_not_equal(die_of(a), 0);
        }
        begin(a, NULL);
        struct api_post post = api_deliver(a, api_event(1000, 6));
        if (strcmp(post.body, all_done) != 0)
            fail_msg("%s: %s; %s", ways[i].how, post.body, api_file(a, "err"));
        assert_int_equal(api_times(a, "err", "which held 6 records"), 1);
        assert_int_equal(api_times(a, "parked.jsonl", "\n"), 1);
        if (!strstr(api_file(a, "parked.jsonl"), ways[i].code) ||
            !strstr(api_file(a, "parked.jsonl"), ways[i].message) ||
            !strstr(api_file(a, "parked.jsonl"), "\"1003\""))
            fail_msg("%s: %s", ways[i].how, api_file(a, "parked.jsonl"));
        assert_int_equal(api_times(a, "told", "1003"), 0);
        /* In the first process, in the trial, and in two new ones. */
        assert_int_equal(api_times(a, "err", "dies\n"), 4);
        for (int n = 1000; n < 1006; n++)
            assert_in_range(api_times(a, "told", json_printf("%d\n", n)), n == 1003 ? 0 : 1,
                            n < 1003    ? 2
                            : n == 1003 ? 0
                                        : 1);
        assert_int_equal(api_stop(a), 0);
        api_destroy(a);
    }
}

/* ---- what the log says at the end ---- */

static void the_last_line_says_where_it_died(void **state)
{
    struct api *a = *state;
#if defined(SL_SANITIZED)
    skip(); /* the sanitizer says more */
#endif
    static const char *const signals[][2] = {
        {"segv", "SIGSEGV"}, {"abort", "SIGABRT"}, {"bus", "SIGBUS"}, {"fpe", "SIGFPE"}, {"ill", "SIGILL"}};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        begin(a, json_printf("{'report_batch_item_failures':true,'routes':[{'name':'r%zu','handler':'dies',"
                             "'how':'%s','at':'%zu','told':'${DIR}/told','on_failure':'report'}]}",
                             i, signals[i][0], 1000 + i));
        api_offer(a, api_event(1000 + i, 1), "first", NULL);
        assert_true(api_wait(a) < 0);
        assert_int_equal(api_times(a, "err",
                                   json_printf("FATAL the process died of %s in the handler of route r%zu, "
                                               "request first; the batch will be delivered again\n",
                                               signals[i][1], i)),
                         1);
    }
    api_set(a, "AWS_LAMBDA_LOG_FORMAT=JSON");
    begin(a, ROUTES(DIES("port", "in a port", "report", "")));
    api_offer(a, api_event(1003, 1), "second", NULL);
    assert_true(api_wait(a) < 0);
    assert_int_equal(
        api_times(a, "err",
                  "\n{\"level\":\"FATAL\",\"message\":\"the process died of SIGSEGV in a port of route port, "
                  "request second; the batch will be delivered again\"}\n"),
        1);
}

static void where_no_record_is_held_no_batch_is_spoken_of(void **state)
{
    struct api *a = *state;
#if defined(SL_SANITIZED)
    skip();
#endif
    begin(a, ROUTES(DIES("r", "in open", "report", "")));
    assert_int_equal(api_wait(a), -SIGABRT);
    assert_string_equal(api_file(a, "err"), "FATAL the process died of SIGABRT in the handler of route r\n");
    begin(a, ROUTES(DIES("r", "in close", "report", "")));
    api_deliver_all(a, api_event(1000, 2));
    assert_int_equal(api_stop(a), -SIGABRT);
    assert_int_equal(api_times(a, "err", "FATAL the process died of SIGABRT in the handler of route r\n"), 2);
    begin(a, ROUTES(DIES("r", "exit in open", "report", "")));
    assert_int_not_equal(api_wait(a), 0);
    assert_int_equal(api_times(a, "err", "the handler of route r called exit(0)"), 1);
    assert_int_equal(api_times(a, "err", "batch"), 0);
}

/* ---- who is suspect, and for how long ---- */

/* Where it cannot be parked it is delivered again, and no process dies of it a second time. */
static void a_record_that_is_not_parked_is_not_tried_here(void **state)
{
    struct api *a = *state;
    begin(a, ROUTES(DIES("r", "segv", "report", "")));
    assert_int_not_equal(die_of(a), 0);
    begin(a, NULL);
    for (int i = 0; i < 3; i++)
        assert_string_equal(api_deliver(a, api_event(1000, 6)).body,
                            json("{'batchItemFailures':[{'itemIdentifier':'1003'}]}"));
    /* What is proven needs no other record beside it. */
    assert_string_equal(api_deliver(a, api_event(1003, 1)).body,
                        json("{'batchItemFailures':[{'itemIdentifier':'1003'}]}"));
    assert_int_equal(api_times(a, "err", "no other record of the route"), 0);
    kill(api_process(a), SIGKILL);
    (void)api_wait(a);
    begin(a, NULL); /* and neither does the process after that one */
    assert_string_equal(api_deliver(a, api_event(1000, 6)).body,
                        json("{'batchItemFailures':[{'itemIdentifier':'1003'}]}"));
    assert_int_equal(api_times(a, "err", "the previous process ended inside"), 1);
    assert_int_equal(api_stop(a), 0);
}

/* A crash is proof for good. A kill may have come from outside: it is looked at again after five minutes. */
static void a_fleeting_proof_is_looked_at_again(void **state)
{
    (void)state;
    static const char *const hows[] = {"segv", "kill"};
    for (int i = 0; i < 2; i++) {
        struct api *a = api_new();
        static const char failed[] = "{\"batchItemFailures\":[{\"itemIdentifier\":\"1003\"}]}";
        *later_ms = 0;
        begin(a,
              json_printf("{'report_batch_item_failures':true,'routes':[{'name':'r','handler':'dies','how':"
                          "'%s','at':'1003','told':'${DIR}/told','spare':'${DIR}/spare','on_failure':"
                          "'report'}]}",
                          hows[i]));
        assert_int_not_equal(die_of(a), 0);
        begin(a, NULL);
        assert_string_equal(api_deliver(a, api_event(1000, 6)).body, failed);
        write_file(a, "spare", ""); /* it would not die of it any more */
        assert_string_equal(api_deliver(a, api_event(1000, 6)).body, failed);
        *later_ms = 5 * 60 * 1000 - 2000; /* (of which this test takes less) */
        assert_string_equal(api_deliver(a, api_event(1000, 6)).body, failed);
        assert_string_equal(api_file(a, "spare"), "");
        *later_ms = 5 * 60 * 1000;
        assert_string_equal(api_deliver(a, api_event(1000, 6)).body, i ? all_done : failed);
        assert_int_equal(api_times(a, "spare", "1 records, id 4, trace -\n"), i);
        assert_int_equal(api_stop(a), 0);
        api_destroy(a);
    }
}

/* A record that has passed may be tried again, beside one that is killed: it passes twice and is cleared
 * once, so that the other one is still looked after. */
static void a_control_that_passed_before_is_cleared_once(void **state)
{
    struct api *a = *state;
    static const char failed[] = "{\"batchItemFailures\":[{\"itemIdentifier\":\"1005\"}]}";
    begin(a, ROUTES("{'name':'r','handler':'dies','how':'kill','at':'1005','told':'${DIR}/told',"
                    "'on_failure':'report'}"));
    assert_int_not_equal(die_of(a), 0);
    begin(a, NULL);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(api_deliver(a, api_event(1000, 6)).body, failed);
        assert_int_equal(children_of(api_process(a)), 1);
    }
    assert_int_equal(api_times(a, "told", "1004\n"), 1 + 2 + 2); /* dead; tried, beside 1005; not suspect */
    assert_int_equal(api_stop(a), 0);
}

/* Who turns out harmless is like any other from then on; when all are, no process waits for trials. */
static void harmless_suspects_are_cleared(void **state)
{
    struct api *a = *state;
    begin(a, ROUTES(DIES("r", "kill", PARK, "")));
    assert_int_not_equal(die_of(a), 0);
    write_file(a, "spare", "");
    begin(a, NULL);
    api_await(a, API_NEXT, 1);
    assert_int_equal(children_of(api_process(a)), 1);
    char id[20], trace[1200];
    /* Some of them, with an id that the trial's process is told, too. */
    api_offer(a, api_event(1002, 2), "an-id", "Lambda-Runtime-Trace-Id: Root=7\r\n");
    assert_string_equal(api_posted(a).body, all_done);
    assert_int_equal(api_times(a, "spare", "1 records, id an-id, trace Root=7\n"), 1);
    assert_int_equal(api_times(a, "spare", json_printf("%d: ", (int)api_process(a))), 0);
    assert_int_equal(children_of(api_process(a)), 1);
    api_deliver_all(a, api_event(1003, 1)); /* it is not suspect any more: here */
    assert_int_equal(api_times(a, "spare", json_printf("%d: 1 records", (int)api_process(a))), 1);
    memset(trace, 'x', sizeof(trace));
    snprintf(trace, sizeof(trace), "Lambda-Runtime-Trace-Id: ");
    trace[strlen(trace)] = 'x';
    trace[sizeof(trace) - 3] = '\r', trace[sizeof(trace) - 2] = '\n', trace[sizeof(trace) - 1] = '\0';
    snprintf(id, sizeof(id), "rest");
    api_offer(a, api_event(1000, 6), id, trace);
    assert_string_equal(api_posted(a).body, all_done);
    assert_int_equal(children_of(api_process(a)), 0);
    api_deliver_all(a, api_event(1000, 6));
    assert_int_equal(api_stop(a), 0);
    assert_string_equal(api_file(a, "parked.jsonl"), "");
    begin(a, NULL);
    api_await(a, API_NEXT, 1);
    assert_int_equal(children_of(api_process(a)), 0);
    assert_int_equal(api_stop(a), 0);
}

/* What was tried in a process of its own this one holds no more, even when it is killed: once that is all. */
static void what_was_tried_is_held_no_more(void **state)
{
    struct api *a = *state;
    begin(a, ROUTES(DIES("r", "kill", PARK, "")));
    assert_int_not_equal(die_of(a), 0);
    write_file(a, "spare", "");
    for (size_t n = 2; n <= 6; n += 4) {
        begin(a, NULL);
        api_deliver_all(a, api_event(1000, n));
        kill(api_process(a), SIGKILL);
        (void)api_wait(a);
    }
    begin(a, NULL);
    api_await(a, API_NEXT, 1);
    assert_int_equal(children_of(api_process(a)), 0);
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "err", "the previous process ended inside"), 2);
}

/* What the process held and what earlier ones died of may be the same records: each is one suspect. */
static void a_suspect_twice_named_is_cleared_once(void **state)
{
    struct api *a = *state;
    char spare[300];
    snprintf(spare, sizeof(spare), "%s/spare", api_folder(a));
    begin(a, ROUTES("{'name':'r','handler':'dies','how':'kill','at':'1003,1004','told':'${DIR}/told',"
                    "'spare':'${DIR}/spare','on_failure':'" PARK "'}"));
    assert_int_not_equal(die_of(a), 0);
    begin(a, NULL);
    api_deliver_all(a, api_event(1000, 6));
    assert_int_equal(api_times(a, "parked.jsonl", "\n"), 2);
    write_file(a, "spare", "");
    *later_ms = 5 * 60 * 1000;
    api_deliver_all(a, api_event(1000, 6));
    assert_int_equal(children_of(api_process(a)), 0);
    /* One process tried both, since the first did not die of it. */
    char *rest;
    const char *said = api_file(a, "spare"), *line = strchr(said, '\n');
    assert_non_null(line);
    assert_int_equal(strtol(said, &rest, 10), strtol(line, NULL, 10));
    assert_int_equal(remove(spare), 0);
    assert_int_not_equal(die_of(a), 0); /* cleared ones are given to the handler here */
    write_file(a, "spare", "");
    begin(a, NULL);
    api_await(a, API_NEXT, 1);
    assert_int_equal(children_of(api_process(a)), 1);
    api_deliver_all(a, api_event(1000, 6));
    assert_int_equal(children_of(api_process(a)), 0);
    assert_int_equal(api_times(a, "parked.jsonl", "\n"), 2);
    assert_int_equal(api_stop(a), 0);
}

/* A record that was tried beside a suspect, and fails too, is one from then on. */
static void a_control_that_fails_is_suspect_too(void **state)
{
    struct api *a = *state;
    begin(a, ROUTES("{'name':'r','handler':'dies','how':'segv','at':'999,1000','told':'${DIR}/told',"
                    "'on_failure':'" PARK "'}"));
    api_offer(a, api_event(999, 1), "first", NULL);
    assert_int_not_equal(api_wait(a), 0);
    begin(a, NULL);
    api_deliver_all(a, api_event(999, 4));
    assert_int_equal(api_times(a, "parked.jsonl", "\n"), 2);
    assert_int_equal(api_times(a, "err", "which held 1 records"), 1);
    /* Both are known in the next batch, too, in whatever order their names are. */
    api_deliver_all(a, api_event(999, 4));
    assert_int_equal(api_times(a, "parked.jsonl", "\n"), 4);
    assert_int_equal(api_stop(a), 0);
}

/* At the level of errors nothing else is said, and all is done. */
static void a_quiet_log_is_quiet(void **state)
{
    struct api *a = *state;
    api_set(a, "AWS_LAMBDA_LOG_LEVEL=ERROR");
    begin(a, ROUTES(DIES("r", "kill", "report", "")));
    assert_int_not_equal(die_of(a), 0);
    begin(a, NULL);
    assert_string_equal(api_deliver(a, api_event(1000, 6)).body,
                        json("{'batchItemFailures':[{'itemIdentifier':'1003'}]}"));
    assert_true(api_deliver(a, json_span("{}")).is_error);
    assert_int_equal(api_stop(a), 0);
    api_set(a, "TMPDIR=/nowhere/at/all");
    api_set(a, "SLUICE_SUMMARY=1");
    begin(a, "{");
    assert_true(api_init_error(a).is_error);
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "ERROR"), 3);
    assert_int_equal(api_times(a, "err", "\n"), 3);
}

/* A route's suspects are its own. */
static void each_route_has_its_own_suspects(void **state)
{
    struct api *a = *state;
    begin(a, ROUTES(DIES("a", "segv", PARK, "") "," DIES("b", "segv", PARK, "")));
    assert_int_not_equal(die_of(a), 0);
    begin(a, NULL);
    /* Route a's record is parked; then route b dies of it, too. */
    assert_int_not_equal(die_of(a), 0);
    begin(a, NULL);
    assert_string_equal(api_deliver(a, api_event(1000, 6)).body, all_done);
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "parked.jsonl", "\"route\":\"b\""), 1);
    assert_in_range(api_times(a, "parked.jsonl", "\"route\":\"a\""), 1, 2);
    assert_int_equal(api_times(a, "err", "inside the handler of route a"), 1);
    assert_int_equal(api_times(a, "err", "inside the handler of route b"), 1);
}

/* Two records that are harmless each, and not together. */
static void without_proof_nothing_is_parked(void **state)
{
    struct api *a = *state;
    begin(a, ROUTES(DIES("r", "spoilt", PARK, ",'after':'1001'")));
    assert_int_not_equal(die_of(a), 0);
    begin(a, NULL);
    api_deliver_all(a, api_event(1000, 6));
    assert_int_equal(api_stop(a), 0);
    assert_string_equal(api_file(a, "parked.jsonl"), "");
    assert_int_equal(api_times(a, "told", "1003\n"), 1);
}

/* A port that crashes says nothing about the record. */
static void a_crash_in_a_port_parks_nothing(void **state)
{
    struct api *a = *state;
    begin(a, ROUTES(DIES("r", "in a port", PARK, "")));
    assert_int_not_equal(die_of(a), 0);
    begin(a, NULL);
    assert_string_equal(api_deliver(a, api_event(1000, 6)).body,
                        json("{'batchItemFailures':[{'itemIdentifier':'1003'}]}"));
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "err", "PortCrashed"), 1);
    assert_string_equal(api_file(a, "parked.jsonl"), "");
}

/* The handler cannot be opened in a process of its own: that is no record's fault, either. */
static void a_crash_in_open_parks_nothing(void **state)
{
    struct api *a = *state;
    begin(a, ROUTES(DIES("r", "abort", PARK, "")));
    assert_int_not_equal(die_of(a), 0);
    begin(a, NULL);
    api_await(a, API_NEXT, 1);
    /* From now on a process that opens it dies. */
    write_file(a, "sluice.json", json(ROUTES(DIES("r", "in open", PARK, ""))));
    assert_string_equal(api_deliver(a, api_event(1000, 6)).type, "Function.HandlerNotOpened");
    write_file(a, "sluice.json", json("{"));
    assert_string_equal(api_deliver(a, api_event(1000, 6)).body,
                        json("{'batchItemFailures':[{'itemIdentifier':'1000'}]}"));
    assert_int_equal(api_times(a, "err", "in a process of its own: "), 1);
    assert_int_equal(api_stop(a), 0);
    assert_string_equal(api_file(a, "parked.jsonl"), "");
}

/* Nobody can try it: it is given to the handler here, which is better than never. */
static void without_a_keeper_a_suspect_is_tried_here(void **state)
{
    struct api *a = *state;
    begin(a, ROUTES(DIES("r", "kill", PARK, "")));
    assert_int_not_equal(die_of(a), 0);
    write_file(a, "spare", "");
    begin(a, NULL);
    api_await(a, API_NEXT, 1);
    assert_int_equal(kill(first_child_of(api_process(a)), SIGKILL), 0);
    api_deliver_all(a, api_event(1000, 6));
    api_deliver_all(a, api_event(1000, 6));
    assert_int_equal(api_times(a, "err", "cannot be tried in a process of its own"), 1);
    assert_int_equal(api_times(a, "spare", json_printf("%d: ", (int)api_process(a))), 2);
    assert_int_equal(api_stop(a), 0);
}

/* The one who would try it hangs: that costs its time, and no more. */
static void a_keeper_that_hangs_is_given_up(void **state)
{
    struct api *a = *state;
    unsigned factor = 50;
    begin(a, ROUTES(DIES("r", "kill", PARK, "")));
    assert_int_not_equal(die_of(a), 0);
    write_file(a, "spare", "");
    api_start_this(a, start, &factor);
    api_await(a, API_NEXT, 1);
    assert_int_equal(kill(first_child_of(api_process(a)), SIGSTOP), 0);
    api_deliver_all(a, api_event(1000, 6));
    assert_int_equal(api_times(a, "err", "cannot be tried in a process of its own"), 1);
    assert_int_equal(children_of(api_process(a)), 0);
    assert_int_equal(api_stop(a), 0);
    assert_string_equal(api_file(a, "parked.jsonl"), "");
}

/* What does not return is killed, and given up only after the others have passed. */
static void a_record_that_never_returns_is_found_out(void **state)
{
    struct api *a = *state;
    char deadline[96];
    begin(a, ROUTES(DIES("r", "sleep", PARK, "")));
    api_offer(a, api_event(1000, 6), "first", NULL);
    api_await_words(a, "told", "1002\n", 1);
    kill(api_process(a), SIGKILL); /* as Lambda does, at the end of its time */
    (void)api_wait(a);
    begin(a, NULL);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(deadline, sizeof(deadline), "!Lambda-Runtime-Deadline-Ms: %lld\r\n",
             (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000 + 1500);
    api_offer(a, api_event(1000, 6), "second", deadline);
    struct api_post post = api_posted(a);
    if (strcmp(post.body, all_done) != 0)
        fail_msg("%s; %s", post.body, api_file(a, "err"));
    assert_int_equal(api_times(a, "parked.jsonl", "HandlerTimedOut"), 1);
    assert_int_equal(api_times(a, "parked.jsonl", "\n"), 1);
    assert_int_equal(api_times(a, "err", "dies\n"), 3); /* in the first process, and twice alone */
    /* Delivered again, it is known, and takes no time. */
    api_deliver_all(a, api_event(1000, 6));
    assert_int_equal(api_times(a, "parked.jsonl", "HandlerTimedOut"), 2);
    assert_int_equal(api_times(a, "err", "dies\n"), 3);
    /* The reason may have passed, and is looked for again after a time. */
    write_file(a, "spare", "");
    *later_ms = 5 * 60 * 1000;
    api_deliver_all(a, api_event(1000, 6));
    assert_int_equal(api_times(a, "parked.jsonl", "\n"), 2);
    assert_int_equal(api_times(a, "spare", "1 records"), 1);
    assert_int_equal(api_stop(a), 0);
}

/* ---- where the file cannot be ---- */

static void without_a_folder_it_says_so_and_works(void **state)
{
    struct api *a = *state;
    api_set(a, "TMPDIR=/nowhere/at/all");
    begin(a, ROUTES(DIES("r", "no", "report", "")));
    api_deliver_all(a, api_event(1000, 6));
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "err", "records that crash a handler cannot be found out: /nowhere"), 1);
}

/* ---- descriptors ---- */

#define DESCRIPTORS(what, in)                                                                                \
    "{'report_batch_item_failures':true,'routes':[{'name':'c','handler':'closes','what':'" what              \
    "','in':'" in "','told':'${DIR}/told','on_failure':'report'}]}"

static void closed_descriptors_are_missed_at_the_opening(void **state)
{
    struct api *a = *state;
    static const char *const cases[] = {DESCRIPTORS("all", "open"), DESCRIPTORS("2", "open")};
    for (size_t i = 0; i < 2; i++) {
        begin(a, cases[i]);
        struct api_post post = api_init_error(a);
        assert_string_equal(post.type, "Function.HandlerClosedDescriptors");
        assert_non_null(strstr(post.body, "while it was opened"));
        assert_int_equal(api_wait(a), 1);
        assert_string_equal(api_file(a, "err"), "");
    }
    begin(a, DESCRIPTORS("1", "open")); /* standard output is not ours */
    api_deliver_all(a, api_event(1000, 1));
    assert_int_equal(api_stop(a), 0);
}

/* Whichever a handler closes: the event is answered, on a connection of its own, and the next process works.
 */
static void closed_descriptors_are_missed_after_a_call(void **state)
{
    struct api *a = *state;
    char config[300];
    static const char *const cases[] = {"sockets", "all", "2", "none", "900"};
    for (size_t i = 0; i < 5; i++) {
        snprintf(config, sizeof(config),
                 "{'report_batch_item_failures':true,'routes':[{'name':'c','handler':'closes','what':'%s',"
                 "'told':'${DIR}/told','on_failure':'report'}]}",
                 cases[i]);
        begin(a, config);
        struct api_post post = api_deliver(a, api_event(1000 + i, 1));
        assert_int_equal(post.is_error, i < 3);
        if (!post.is_error) {
            api_deliver_all(a, api_event(1000 + i, 1));
            assert_int_equal(api_stop(a), 0);
            continue;
        }
        assert_string_equal(post.type, "Function.HandlerClosedDescriptors");
        assert_non_null(strstr(post.body, "route c: the handler closed descriptors"));
        assert_int_equal(api_wait(a), 1);
        assert_int_equal(api_times(a, "err", "HandlerClosedDescriptors"), 0);
    }
}

/* More are open than are looked after: a process that starts so serves like any other. */
static int start_with_many_files(void *arg)
{
    for (int i = 0; i < 2 * 16; i++)
        (void)open("/dev/null", O_RDONLY);
    return start(arg);
}

static void open_files_at_the_start_do_no_harm(void **state)
{
    struct api *a = *state;
    write_file(a, "sluice.json", json(DESCRIPTORS("none", "handle")));
    api_start_this(a, start_with_many_files, NULL);
    api_deliver_all(a, api_event(1000, 1));
    assert_int_equal(api_stop(a), 0);
}

/* It looks for its descriptors, and keeps no other one for that. */
static void no_folder_stays_open(void **state)
{
    struct api *a = *state;
    char path[64], target[300];
    begin(a, DESCRIPTORS("none", "handle"));
    api_await(a, API_NEXT, 1);
    for (int fd = 0; fd < 64; fd++) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)api_process(a), fd);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        if (strncmp(target, "/proc/", 6) == 0)
            fail_msg("%d is %s", fd, target);
    }
    assert_int_equal(api_stop(a), 0);
}

#define CONTAINS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTAINS(the_next_process_parks_the_record_to_blame),
        CONTAINS(the_last_line_says_where_it_died),
        CONTAINS(where_no_record_is_held_no_batch_is_spoken_of),
        CONTAINS(a_record_that_is_not_parked_is_not_tried_here),
        CONTAINS(a_fleeting_proof_is_looked_at_again),
        CONTAINS(a_control_that_passed_before_is_cleared_once),
        CONTAINS(harmless_suspects_are_cleared),
        CONTAINS(what_was_tried_is_held_no_more),
        CONTAINS(a_suspect_twice_named_is_cleared_once),
        CONTAINS(a_control_that_fails_is_suspect_too),
        CONTAINS(a_quiet_log_is_quiet),
        CONTAINS(each_route_has_its_own_suspects),
        CONTAINS(without_proof_nothing_is_parked),
        CONTAINS(a_crash_in_a_port_parks_nothing),
        CONTAINS(a_crash_in_open_parks_nothing),
        CONTAINS(without_a_keeper_a_suspect_is_tried_here),
        CONTAINS(a_keeper_that_hangs_is_given_up),
        CONTAINS(a_record_that_never_returns_is_found_out),
        CONTAINS(without_a_folder_it_says_so_and_works),
        CONTAINS(closed_descriptors_are_missed_at_the_opening),
        CONTAINS(closed_descriptors_are_missed_after_a_call),
        CONTAINS(open_files_at_the_start_do_no_harm),
        CONTAINS(no_folder_stays_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
