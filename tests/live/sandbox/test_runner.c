/* The sandboxes, with a real function: this program itself, which sl_lambda_run makes one when it is started
 * with a Runtime API in its environment. The payload of an event says what it does. */
#include "tests/support/disk_fault.h"
#include "tests/support/haste.h"
#include "tests/support/leaks.h"
#include "tests/support/test.h"

#include "base/arena.h"
#include "base/clock.h"
#include "live/sandbox/runner.h"
#include "runtime/api/client.h"
#include "runtime/lambda/lambda.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <arpa/inet.h>
#include <unistd.h>

extern char **environ;

/* ---- the function ---- */

static int connect_nowhere(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof(at);
    bind(listener, (struct sockaddr *)&at, size);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&at, &size);
    int result = connect(fd, (struct sockaddr *)&at, size) == 0 ? 0 : errno;
    close(fd);
    close(listener);
    return result;
}

static int sync_a_file(void)
{
    FILE *file = tmpfile();
    int result = file && fsync(fileno(file)) == 0 ? 0 : errno;
    if (file)
        fclose(file);
    return result;
}

static void handle(const struct sl_lambda_event *e, struct sl_lambda_answer *answer, void *arg)
{
    char text[300];
    const char *p = e->payload, *report = getenv("SLUICE_REPORT_FD");
    (void)arg;
    snprintf(text, sizeof(text), "%d", (int)getpid());
    if (strncmp(p, "exit ", 5) == 0)
        exit((int)strtol(p + 5, NULL, 10));
    else if (strcmp(p, "kill") == 0)
        raise(SIGKILL);
    else if (strcmp(p, "hang") == 0)
        for (;;)
            pause();
    else if (strcmp(p, "fail") == 0) {
        sl_lambda_fail(answer, "Function.Asked", "as asked");
        return;
    } else if (strncmp(p, "env ", 4) == 0)
        snprintf(text, sizeof(text), "\"%s\"", getenv(p + 4) ? getenv(p + 4) : "-");
    else if (strcmp(p, "left") == 0)
        snprintf(text, sizeof(text), "%lld", (long long)sl_lambda_remaining_ms(e));
    else if (strcmp(p, "about") == 0)
        snprintf(text, sizeof(text), "\"%s %s %s\"", e->request_id, e->function_arn, e->trace_id);
    else if (strcmp(p, "sync") == 0)
        snprintf(text, sizeof(text), "%d", sync_a_file());
    else if (strcmp(p, "connect") == 0)
        snprintf(text, sizeof(text), "%d", connect_nowhere());
    else if (strcmp(p, "deaf") == 0)
        signal(SIGTERM, SIG_IGN);
    else if (strcmp(p, "empty") == 0)
        text[0] = '\0';
    else if (strcmp(p, "not json") == 0)
        snprintf(text, sizeof(text), "{");
    else if (strncmp(p, "report ", 7) == 0)
        dprintf(report ? (int)strtol(report, NULL, 10) : 1, "%s\n", p + 7);
    else if (strncmp(p, "say ", 4) == 0)
        dprintf(p[4] == 'o' ? 1 : 2, "%s\n", p + 4);
    sl_lambda_succeed(answer, text, strlen(text), NULL);
}

/* Answers one event, and does not ask for the next. */
static int answer_and_hang(void)
{
    struct sl_runtime *rt;
    struct sl_runtime_event event;
    if (sl_runtime_open(getenv("AWS_LAMBDA_RUNTIME_API"), "hangs", &rt, NULL) != SL_OK ||
        sl_runtime_next(rt, &event, NULL) != SL_OK ||
        sl_runtime_respond(rt, event.request_id, SL_LIT("\"done\""), "application/json", NULL) != SL_OK)
        return 1;
    return pause();
}

static int be_a_function(void)
{
    const char *how = getenv("TEST_START");
    if (how && strcmp(how, "hangs") == 0)
        return pause();
    if (how && strcmp(how, "answers") == 0)
        return answer_and_hang();
    if (how && strcmp(how, "fails") == 0)
        return sl_lambda_init_failed("Function.NoSetting", "the setting X is missing");
    if (how && strcmp(how, "exits") == 0)
        return 3;
    return sl_lambda_run(handle, NULL);
}

/* ---- the world ---- */

struct world {
    struct sl_runner *r;
    struct sl_runner_options options;
    struct sl_function identity;
    struct sl_arena *arena;
    struct sl_error error;
    char self[600], *folder, log[700];
    const char *environment[512];
    struct sl_vars vars;
    unsigned events;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    assert_true(readlink("/proc/self/exe", w->self, sizeof(w->self) - 1) > 0);
    w->arena = sl_arena_new(4096);
    w->folder = test_folder_in_memory();
    w->error = (struct sl_error)SL_NO_ERROR;
    const struct sl_function_told told = {.function = "f"};
    assert_int_equal(sl_function_make("arn:aws:dynamodb:eu-west-1:111122223333:table/t/stream/x", &told,
                                      w->arena, &w->identity, &w->error),
                     SL_OK);
    size_t n = 0;
    for (char **at = environ; *at && n < 500; at++)
        if (strncmp(*at, "TMPDIR=", 7) != 0)
            w->environment[n++] = *at;
    w->environment[n++] = "AWS_LAMBDA_MAX_CONCURRENCY=4";
    w->environment[n++] = "AWS_REGION=elsewhere";
    w->environment[n++] = sl_arena_printf(w->arena, "TMPDIR=%s", w->folder);
    snprintf(w->log, sizeof(w->log), "%s/log", w->folder);
    w->vars.list = w->environment;
    w->options = (struct sl_runner_options){
        .timeout_ms = 60000,
        .sandbox = {.bootstrap = w->self,
                    .task_root = "/task",
                    .identity = &w->identity,
                    .report_fd = -1,
                    .vars = &w->vars},
    };
    assert_int_equal(sl_output_open(w->log, &w->options.sandbox.output, &w->error), SL_OK);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    sl_runner_destroy(w->r);
    sl_output_close(w->options.sandbox.output);
    test_folder_remove(w->folder);
    sl_arena_destroy(w->arena);
    free(w);
    return 0;
}

static void start(struct world *w, const char *faults, const char *variable)
{
    size_t n = 0;
    while (w->environment[n])
        n++;
    w->environment[n] = variable;
    if (faults)
        assert_int_equal(sl_faults_add(&w->options.faults, faults, &w->error), SL_OK);
    w->r = sl_runner_new(&w->options);
}

static struct sl_esm_invocation begin(struct world *w, const char *payload)
{
    struct sl_esm_invocation inv = {
        .request_id = sl_arena_printf(w->arena, "00000000-0000-4000-8000-%012u", ++w->events),
        .payload = sl_span_str(sl_arena_printf(w->arena, "%s", payload)),
    };
    sl_runner_begin(w->r, &inv);
    return inv;
}

/* The result of one invocation: its outcome, and the body as text. */
static const char *invoke(struct world *w, const char *payload, enum sl_esm_outcome outcome)
{
    struct sl_esm_result result;
    struct sl_esm_invocation inv = begin(w, payload);
    sl_runner_collect(w->r, &inv, &result);
    const char *body = sl_arena_copy(w->arena, result.body);
    if (result.outcome != outcome)
        fail_msg("%s: outcome %d, %s", payload, (int)result.outcome, body);
    return body;
}

/* ---- tests ---- */

static void one_process_answers_one_event_after_the_other(void **state)
{
    struct world *w = *state;
    start(w, NULL, NULL);
    assert_int_equal(sl_runner_warm_up(w->r, &w->error), SL_OK);
    const char *pid = invoke(w, "", SL_ESM_ANSWERED);
    assert_string_equal(invoke(w, "", SL_ESM_ANSWERED), pid);
    assert_non_null(strstr(invoke(w, "fail", SL_ESM_FAILED), "\"errorType\":\"Function.Asked\""));
    assert_string_equal(invoke(w, "", SL_ESM_ANSWERED), pid);
    assert_string_equal(invoke(w, "not json", SL_ESM_ANSWERED), "{");
    struct sl_runner_stats stats = sl_runner_stats(w->r);
    assert_int_equal(stats.starts, 1);
    assert_int_equal(stats.exits + stats.timeouts + stats.init_errors, 0);
    assert_int_equal(stats.not_json, 1);
    assert_int_equal(stats.protocol.refetched + stats.protocol.unknown + stats.protocol.wrong_ids, 0);
    long left = strtol(invoke(w, "left", SL_ESM_ANSWERED), NULL, 10);
    assert_in_range(left, 30000, 60000);
    const char *about = invoke(w, "about", SL_ESM_ANSWERED);
    assert_non_null(strstr(about,
                           "00000000-0000-4000-8000-000000000007 arn:aws:lambda:eu-west-1:111122223333:"
                           "function:f Root=1-"));
    assert_non_null(strstr(about, ";Parent=8000000000000007;Sampled=0"));
    assert_string_equal(invoke(w, "empty", SL_ESM_ANSWERED), ""); /* is one that names no record */
}

static void several_at_a_time_have_a_process_each(void **state)
{
    struct world *w = *state;
    struct sl_esm_result result;
    start(w, NULL, NULL);
    struct sl_esm_invocation inv[3];
    char *bodies[3];
    for (int i = 0; i < 3; i++)
        inv[i] = begin(w, "");
    for (int i = 2; i >= 0; i--) {
        sl_runner_collect(w->r, &inv[i], &result);
        assert_int_equal(result.outcome, SL_ESM_ANSWERED);
        bodies[i] = strndup(result.body.ptr, result.body.len);
    }
    for (int i = 0; i < 3; i++)
        assert_string_not_equal(bodies[i], bodies[(i + 1) % 3]);
    assert_int_equal(sl_runner_stats(w->r).starts, 3);
    assert_string_equal(invoke(w, "", SL_ESM_ANSWERED), bodies[0]); /* the first that is free */
    for (int i = 0; i < 3; i++)
        free(bodies[i]);
}

static void a_process_has_lambdas_environment(void **state)
{
    struct world *w = *state;
    static const char *const cases[][2] = {
        {"AWS_REGION", "eu-west-1"},
        {"AWS_DEFAULT_REGION", "eu-west-1"},
        {"AWS_LAMBDA_FUNCTION_NAME", "f"},
        {"AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"},
        {"AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/f"},
        {"AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"},
        {"AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"},
        {"AWS_LAMBDA_MAX_CONCURRENCY", "-"},
        {"AWS_LAMBDA_LOG_LEVEL", "DEBUG"}, /* its caller's */
        {"LAMBDA_TASK_ROOT", "/task"},
        {"LAMBDA_RUNTIME_DIR", "/var/runtime"},
        {"_HANDLER", "sluice"},
        {"TZ", ":UTC"},
        {"SLUICE_SHUTDOWN", "0"},
        {"SLUICE_CONFIG", "-"},
        {"SLUICE_REPORT_BATCH_ITEM_FAILURES", "false"},
    };
    start(w, NULL, "AWS_LAMBDA_LOG_LEVEL=DEBUG");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *asked = sl_arena_printf(w->arena, "env %s", cases[i][0]);
        assert_string_equal(invoke(w, asked, SL_ESM_ANSWERED),
                            sl_arena_printf(w->arena, "\"%s\"", cases[i][1]));
    }
    const char *temp = invoke(w, "env TMPDIR", SL_ESM_ANSWERED);
    assert_non_null(strstr(temp, w->folder));
    assert_non_null(strstr(temp, "/sluice-replay-"));
}

static void a_process_that_ends_is_a_function_error(void **state)
{
    struct world *w = *state;
    start(w, NULL, NULL);
    const char *pid = invoke(w, "", SL_ESM_ANSWERED);
    assert_string_equal(invoke(w, "exit 3", SL_ESM_FAILED),
                        "{\"errorType\":\"Runtime.ExitError\",\"errorMessage\":\"Runtime exited with error: "
                        "exit status 3\"}");
    assert_string_not_equal(invoke(w, "", SL_ESM_ANSWERED), pid);
    assert_non_null(strstr(invoke(w, "kill", SL_ESM_FAILED), "error: signal: Killed"));
    assert_int_equal(sl_runner_stats(w->r).exits, 2);
    assert_int_equal(sl_runner_stats(w->r).starts, 2);
    (void)invoke(w, "", SL_ESM_ANSWERED);
    assert_int_equal(sl_runner_stats(w->r).starts, 3);
}

static void a_process_that_hangs_is_killed(void **state)
{
    struct world *w = *state;
    w->options.timeout_ms = 2250;
    start(w, NULL, NULL);
    assert_int_equal(sl_runner_warm_up(w->r, &w->error), SL_OK);
    assert_string_equal(invoke(w, "hang", SL_ESM_FAILED),
                        "{\"errorType\":\"Sandbox.Timedout\",\"errorMessage\":\"Task timed out after 2.25 "
                        "seconds\"}");
    (void)invoke(w, "", SL_ESM_ANSWERED);
    assert_int_equal(sl_runner_stats(w->r).timeouts, 1);
    assert_int_equal(sl_runner_stats(w->r).starts, 2);
}

static void what_must_end_early_ends_early(void **state)
{
    struct world *w = *state;
    struct sl_clock *clock = sl_clock_system();
    start(w, NULL, NULL);
    assert_int_equal(sl_runner_warm_up(w->r, &w->error), SL_OK);
    int64_t began = clock->now_ms(clock);
    sl_runner_set_until(w->r, began + 200);
    assert_non_null(strstr(invoke(w, "hang", SL_ESM_FAILED), "Sandbox.Timedout"));
    assert_in_range(clock->now_ms(clock) - began, 200, 50000);
    sl_runner_set_until(w->r, INT64_MAX);
    struct sl_esm_invocation inv = begin(w, "hang");
    struct sl_esm_result result;
    sl_runner_cancel(w->r);
    sl_runner_collect(w->r, &inv, &result);
    assert_int_equal(result.outcome, SL_ESM_FAILED);
    assert_non_null(memmem(result.body.ptr, result.body.len, "Sandbox.Cancelled", 17));
    (void)invoke(w, "", SL_ESM_ANSWERED);
    assert_int_equal(sl_runner_stats(w->r).timeouts, 1);
}

static void planned_faults_replace_the_answer(void **state)
{
    struct world *w = *state;
    start(w, "throttle@1,crash@2,die@3,lost@4,timeout@5", NULL);
    assert_int_equal(sl_runner_warm_up(w->r, &w->error), SL_OK);
    assert_non_null(strstr(invoke(w, "say one", SL_ESM_THROTTLED), "TooManyRequestsException"));
    assert_non_null(strstr(invoke(w, "say two", SL_ESM_FAILED), "Runtime.ExitError"));
    assert_non_null(strstr(invoke(w, "say third", SL_ESM_FAILED), "signal: Killed"));
    assert_non_null(strstr(invoke(w, "say fourth", SL_ESM_FAILED), "ServiceException"));
    assert_non_null(strstr(invoke(w, "say fifth", SL_ESM_FAILED), "Sandbox.Timedout"));
    (void)invoke(w, "say sixth", SL_ESM_ANSWERED);
    struct sl_runner_stats stats = sl_runner_stats(w->r);
    assert_int_equal(stats.exits, 2);
    assert_int_equal(stats.timeouts, 1);
    assert_true(sl_output_settle(w->options.sandbox.output));
    char *log = test_read(w->log, NULL);
    assert_string_equal(log, "third\nfourth\nfifth\nsixth\n");
    free(log);
}

static void planned_faults_of_calls(void **state)
{
    struct world *w = *state;
    start(w, "sink@2,connect@1-2", NULL);
    assert_string_equal(invoke(w, "sync", SL_ESM_ANSWERED), "0");
    assert_string_equal(invoke(w, "sync", SL_ESM_ANSWERED), sl_arena_printf(w->arena, "%d", EIO));
    assert_string_equal(invoke(w, "sync", SL_ESM_ANSWERED), "0");
    for (int i = 0; i < 2; i++)
        assert_string_equal(invoke(w, "connect", SL_ESM_ANSWERED),
                            sl_arena_printf(w->arena, "%d", ECONNREFUSED));
    assert_string_equal(invoke(w, "connect", SL_ESM_ANSWERED), "0");
}

static void reports_are_added_up(void **state)
{
    struct world *w = *state;
    start(w, NULL, NULL);
    for (int i = 0; i < 2; i++)
        (void)invoke(w,
                     json("report {'requestId':'r1','routes':[{'name':'a','handler':'h','to':'x','matched':5,"
                          "'applied':3,'parked':1,'failed':1,'calls':2,'bytes':70},{'name':'b','matched':1,"
                          "'applied':-1}],'notes':[{'parked':true,'route':'a','id':'7','code':'C','message':"
                          "'m'}]}"),
                     SL_ESM_ANSWERED);
    (void)invoke(w, json("report {'requestId':'r2','routes':[],'notes':[{'parked':false,'route':'b'}]}"),
                 SL_ESM_ANSWERED);
    assert_int_equal(sl_runner_routes(w->r), 2);
    const struct sl_runner_route *a = sl_runner_route(w->r, 0), *b = sl_runner_route(w->r, 1);
    assert_string_equal(a->name, "a");
    assert_string_equal(a->handler, "h");
    assert_string_equal(a->target, "x");
    assert_true(a->matched == 10 && a->applied == 6 && a->parked == 2 && a->failed == 2 && a->calls == 4 &&
                a->bytes == 140);
    assert_string_equal(b->handler, "");
    assert_true(b->matched == 2 && b->applied == 0);
    struct sl_notes *notes = sl_runner_notes(w->r);
    assert_int_equal(notes->n, 3);
    assert_true(notes->list[1].is_parked && !notes->list[2].is_parked);
    assert_string_equal(notes->list[1].request_id, "r1");
    assert_string_equal(notes->list[1].id, "7");
    assert_string_equal(notes->list[2].code, "");
    sl_notes_forget(notes, "r1");
    assert_int_equal(notes->n, 1);
    assert_string_equal(notes->list[0].route, "b");
    sl_notes_forget(notes, "r1");
    assert_int_equal(notes->n, 1);
}

static void both_streams_are_the_log(void **state)
{
    struct world *w = *state;
    start(w, NULL, NULL);
    (void)invoke(w, "say out", SL_ESM_ANSWERED);
    (void)invoke(w, "say err", SL_ESM_ANSWERED);
    assert_true(sl_output_settle(w->options.sandbox.output));
    char *log = test_read(w->log, NULL);
    assert_string_equal(log, "out\nerr\n");
    free(log);
}

static void a_function_that_cannot_start_is_told(void **state)
{
    struct world *w = *state;
    start(w, NULL, "TEST_START=fails");
    assert_int_equal(sl_runner_warm_up(w->r, &w->error), SL_REJECT);
    assert_string_equal(w->error.code, "InitError");
    assert_string_equal(w->error.text, "the setting X is missing");
    assert_non_null(strstr(invoke(w, "", SL_ESM_FAILED), "the setting X is missing"));
    assert_int_equal(sl_runner_stats(w->r).init_errors, 1);
}

static void a_function_that_ends_at_once_is_told(void **state)
{
    struct world *w = *state;
    start(w, NULL, "TEST_START=exits");
    assert_int_equal(sl_runner_warm_up(w->r, &w->error), SL_REJECT);
    assert_string_equal(w->error.code, "ExitError");
    assert_non_null(strstr(w->error.text, "exit status 3"));
    assert_non_null(strstr(invoke(w, "", SL_ESM_FAILED), "exit status 3"));
}

static void a_program_that_is_not_there_is_told(void **state)
{
    struct world *w = *state;
    w->options.sandbox.bootstrap = "/nowhere/bootstrap";
    start(w, NULL, NULL);
    assert_int_equal(sl_runner_warm_up(w->r, &w->error), SL_REJECT);
    assert_non_null(strstr(w->error.text, "exit status 127"));
    assert_true(sl_output_settle(w->options.sandbox.output));
    char *log = test_read(w->log, NULL);
    assert_string_equal(log, "sluice: /nowhere/bootstrap cannot be started: No such file or directory\n");
    free(log);
}

static void a_command_is_run_by_the_shell(void **state)
{
    struct world *w = *state;
    w->options.sandbox.bootstrap = NULL;
    w->options.sandbox.command = "echo from the shell >&2; exit 5";
    start(w, NULL, NULL);
    assert_int_equal(sl_runner_warm_up(w->r, &w->error), SL_REJECT);
    assert_non_null(strstr(w->error.text, "exit status 5"));
    sl_runner_destroy(w->r);
    w->options.sandbox.command = sl_arena_printf(w->arena, "exec %s", w->self);
    start(w, NULL, NULL);
    (void)invoke(w, "", SL_ESM_ANSWERED);
}

/* An invocation that gets no process fails; the next one gets one. */
static void what_a_process_needs_may_be_used_up(void **state)
{
    static const struct {
        const char *only, *faults;
        int err;
    } cases[] = {{"fork", NULL, EAGAIN}, {"pipe2", NULL, EMFILE}, {"socketpair", "sink@9", EMFILE}};
    struct world *w = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        start(w, cases[i].faults, NULL);
        disk_fault_begin(1, cases[i].err, cases[i].only);
        const char *body = invoke(w, "", SL_ESM_FAILED);
        assert_true(disk_fault_came());
        assert_string_equal(
            body, json_printf("{'errorType':'Runtime.InvalidEntrypoint','errorMessage':'a process for the "
                              "function cannot be started: %s'}",
                              strerror(cases[i].err)));
        (void)invoke(w, "", SL_ESM_ANSWERED);
        disk_fault_begin(1, cases[i].err, cases[i].only);
        (void)invoke(w, "exit 1", SL_ESM_FAILED); /* the process that is there is enough */
        sl_error_clear(&w->error);
        assert_int_equal(sl_runner_warm_up(w->r, &w->error), SL_FATAL);
        assert_non_null(strstr(w->error.text, strerror(cases[i].err)));
        disk_fault_end();
        sl_error_clear(&w->error);
        assert_int_equal(sl_runner_warm_up(w->r, &w->error), SL_OK);
        sl_runner_destroy(w->r);
        w->r = NULL;
    }
    disk_fault_begin(1, EMFILE, "memfd_create");
    start(w, NULL, NULL);
    disk_fault_end();
    assert_int_equal(sl_runner_warm_up(w->r, &w->error), SL_FATAL);
    assert_string_equal(
        w->error.text,
        "a file in memory for what the function reports cannot be created: Too many open files");
}

/* Lambda's limit of the init phase. */
static void a_function_that_does_not_ask_is_told(void **state)
{
    struct world *w = *state;
    start(w, NULL, "TEST_START=hangs");
    haste(100);
    enum sl_status status = sl_runner_warm_up(w->r, &w->error);
    haste(1);
    assert_int_equal(status, SL_REJECT);
    assert_string_equal(w->error.text, "the function did not ask for an event within 10 s");
}

/* A process that answers and does not ask for the next event has its deadline; what it answered counts. */
static void an_answer_counts_although_its_process_hangs(void **state)
{
    struct world *w = *state;
    w->options.timeout_ms = 3000;
    start(w, NULL, "TEST_START=answers");
    assert_string_equal(invoke(w, "", SL_ESM_ANSWERED), "\"done\"");
    assert_int_equal(sl_runner_stats(w->r).timeouts, 1);
}

/* There are 256; who finds none is throttled, as by Lambda, and the function does not run. */
static void more_than_all_sandboxes_are_throttled(void **state)
{
    struct world *w = *state;
    struct sl_esm_result result;
    struct sl_esm_invocation first = {0};
    start(w, "throttle@1-256", NULL);
    for (unsigned i = 0; i < 256; i++) {
        struct sl_esm_invocation one = begin(w, "");
        first = i ? first : one;
        assert_non_null(one.tag);
    }
    assert_non_null(strstr(invoke(w, "say no", SL_ESM_THROTTLED), "TooManyRequestsException"));
    sl_runner_collect(w->r, &first, &result);
    assert_int_equal(result.outcome, SL_ESM_THROTTLED);
    (void)invoke(w, "", SL_ESM_ANSWERED);
    assert_int_equal(sl_runner_stats(w->r).starts, 1);
}

/* What has its result keeps it; what comes too late meets the next one. */
static void a_cancel_meets_what_runs(void **state)
{
    struct world *w = *state;
    struct sl_esm_result result;
    start(w, "throttle@1", NULL);
    struct sl_esm_invocation over = begin(w, ""), runs = begin(w, "hang");
    sl_runner_cancel(w->r);
    sl_runner_collect(w->r, &runs, &result);
    assert_int_equal(result.outcome, SL_ESM_FAILED);
    sl_runner_collect(w->r, &over, &result);
    assert_int_equal(result.outcome, SL_ESM_THROTTLED);
    sl_runner_cancel(w->r);
    assert_non_null(strstr(invoke(w, "hang", SL_ESM_FAILED), "Sandbox.Cancelled"));
    (void)invoke(w, "", SL_ESM_ANSWERED);
}

/* Who is told to stop and does not is killed after Lambda's two seconds. */
static void a_process_that_does_not_stop_is_killed(void **state)
{
    struct world *w = *state;
    struct sl_clock *clock = sl_clock_system();
    start(w, NULL, NULL);
    pid_t pid = (pid_t)strtol(invoke(w, "deaf", SL_ESM_ANSWERED), NULL, 10);
    assert_int_equal(kill(pid, 0), 0);
    haste(20);
    int64_t began_ms = clock->now_ms(clock);
    sl_runner_destroy(w->r);
    assert_true(clock->now_ms(clock) - began_ms >= 2000);
    haste(1);
    w->r = NULL;
    assert_int_equal(kill(pid, 0), -1);
}

/* The guard kills what is late although nobody here looks. */
static void a_guard_kills_what_is_late(void **state)
{
    struct world *w = *state;
    struct sl_clock *clock = sl_clock_system();
    struct sl_esm_result result;
    assert_int_equal(sl_guard_start(&w->options.sandbox.guard, NULL), SL_OK);
    start(w, NULL, NULL);
    pid_t pid = (pid_t)strtol(invoke(w, "", SL_ESM_ANSWERED), NULL, 10);
    sl_runner_set_until(w->r, clock->now_ms(clock) + 100);
    struct sl_esm_invocation inv = begin(w, "hang");
    siginfo_t info = {0};
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(info.si_status, SIGKILL);
    sl_runner_collect(w->r, &inv, &result);
    assert_int_equal(result.outcome, SL_ESM_FAILED);
    sl_runner_set_until(w->r, INT64_MAX);
    (void)invoke(w, "", SL_ESM_ANSWERED);
    sl_runner_destroy(w->r);
    sl_guard_end(w->options.sandbox.guard);
    w->r = NULL;
}

static size_t entries_of(const char *folder)
{
    DIR *dir = opendir(folder);
    size_t n = 0;
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += strncmp(entry->d_name, "sluice-replay-", 14) == 0;
    closedir(dir);
    return n;
}

static void run_until_killed(struct world *w, int to)
{
    leaks_are_meant();
    sl_sandbox_end_with_us();
    start(w, NULL, NULL);
    dprintf(to, "%s\n", invoke(w, "", SL_ESM_ANSWERED));
    (void)begin(w, "hang");
    for (;;)
        pause();
}

/* A signal that ends us leaves neither processes nor their folder behind. */
static void sandboxes_end_with_us(void **state)
{
    struct world *w = *state;
    int ends[2], status = 0;
    char text[32] = "";
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        run_until_killed(w, ends[1]);
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
    assert_int_equal(entries_of(w->folder), 1);
    kill(pid, SIGTERM);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(entries_of(w->folder), 0);
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 0); /* nobody has it any more */
    close(ends[0]);
}

#define RUNS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUNS(one_process_answers_one_event_after_the_other),
        RUNS(several_at_a_time_have_a_process_each),
        RUNS(a_process_has_lambdas_environment),
        RUNS(a_process_that_ends_is_a_function_error),
        RUNS(a_process_that_hangs_is_killed),
        RUNS(what_must_end_early_ends_early),
        RUNS(planned_faults_replace_the_answer),
        RUNS(planned_faults_of_calls),
        RUNS(reports_are_added_up),
        RUNS(both_streams_are_the_log),
        RUNS(a_function_that_cannot_start_is_told),
        RUNS(a_function_that_ends_at_once_is_told),
        RUNS(a_program_that_is_not_there_is_told),
        RUNS(a_command_is_run_by_the_shell),
        RUNS(what_a_process_needs_may_be_used_up),
        RUNS(a_function_that_does_not_ask_is_told),
        RUNS(an_answer_counts_although_its_process_hangs),
        RUNS(more_than_all_sandboxes_are_throttled),
        RUNS(a_cancel_meets_what_runs),
        RUNS(a_process_that_does_not_stop_is_killed),
        RUNS(a_guard_kills_what_is_late),
        RUNS(sandboxes_end_with_us),
    };
    if (getenv("AWS_LAMBDA_RUNTIME_API"))
        return be_a_function();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
