/* bootstrap on a system that fails: each operation of its start once, and of its first event. It serves all
 * the same; or it says why not, in an init error or on standard error, and ends. What follows then serves. */
#include "tests/support/disk_fault.h"
#include "tests/support/runtime_api.h"
#include "tests/support/test.h"

#include "runtime/start.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONFIG                                                                                               \
    "{'report_batch_item_failures':true,'on_failure':'jsonl:${DIR}/parked.jsonl','routes':[{'name':'say',"   \
    "'handler':'notify','to':'jsonl:${DIR}/said.jsonl','message':'{PK}'}]}"

static bool has_ended(struct api *a)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)api_process(a), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

/* Waits until it asks for an event (true), or ends. An init error is accepted, and has to say something. */
static bool asks(struct api *a, bool *has_posted)
{
    *has_posted = false;
    for (int i = 0; i < 15000; i++) {
        if (api_count(a, API_NEXT, 1))
            return true;
        if (api_count(a, API_INIT_ERROR, 0))
            *has_posted = strlen(api_init_error(a).body) > 0;
        else if (has_ended(a))
            return false;
    }
    fail_msg("it neither serves nor ends: %s", api_file(a, "err"));
    return false;
}

struct fault {
    const char *only;
    int n, err;
};

/* In the process that serves. */
static int start(void *arg)
{
    extern char **environ;
    const struct fault *fault = arg;
    disk_fault_begin(fault->n, fault->err, fault->only);
    return sl_start("bootstrap", environ);
}

static void write_config(struct api *a, const char *config)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/sluice.json", api_folder(a));
    test_write(path, json(config));
}

/* Returns false when there are no more operations. `must_come`: it is waited for. */
static bool one_fails(const char *only, int n, int err, const char *workers, bool must_come)
{
    struct api *a = api_new();
    api_set(a, workers);
    write_config(a, CONFIG);
    api_start_this(a, start, &(struct fault){only, n, err});
    bool is_told, serves = asks(a, &is_told);
    if (serves) {
        api_deliver_all(a, api_event(1000, 3));
        assert_int_equal(api_times(a, "said.jsonl", "k100"), 3);
        for (int i = 0; i < 10000 && must_come && !disk_fault_came(); i++)
            usleep(1000);
        int status = api_stop(a); /* at the latest by the signal itself */
        assert_true(status == 0 || status == -SIGTERM);
    } else {
        assert_int_equal(api_wait(a), 1);
        if (!is_told && !*api_file(a, "err"))
            fail_msg("%s %d: nothing is said", only, n);
    }
    bool came = disk_fault_came();
    disk_fault_end();
    if (!serves) {
        api_start(a, NULL);
        api_deliver_all(a, api_event(1000, 3));
        assert_int_equal(api_stop(a), 0);
    }
    api_destroy(a);
    return came;
}

static void sweep(const char *only, int err, const char *workers)
{
    int n = 1;
    while (one_fails(only, n, err, workers, false))
        n++;
    if (n == 1)
        fail_msg("%s is never called", only);
}

static void one_process_serves_or_says_why_not(void **state)
{
    (void)state;
    static const struct {
        const char *only;
        int err;
    } cases[] = {
        {"mmap", ENOMEM}, {"signalfd", EMFILE}, {"open", EMFILE}, {"opendir", EMFILE}, {"readlink", ENOENT}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        sweep(cases[i].only, cases[i].err, "AWS_LAMBDA_MAX_CONCURRENCY=1");
}

static void workers_serve_or_say_why_not(void **state)
{
    (void)state;
    sweep("pipe2", EMFILE, "AWS_LAMBDA_MAX_CONCURRENCY=2");
    sweep("fork", EAGAIN, "AWS_LAMBDA_MAX_CONCURRENCY=2");
    sweep("signalfd", EMFILE, "AWS_LAMBDA_MAX_CONCURRENCY=2");
    assert_true(one_fails("getppid", 2, 0, "AWS_LAMBDA_MAX_CONCURRENCY=2", true)); /* the second worker's */
}

/* ---- a handler that dies ---- */

#define DIES                                                                                                 \
    "{'report_batch_item_failures':true,'routes':[{'name':'r','handler':'dies','how':'exit 1','at':'1003',"  \
    "'told':'${DIR}/told','on_failure':'jsonl:${DIR}/parked.jsonl'}]}"

/* Delivers the six records to a process that serves; false: it died of them, or failed them. */
static bool takes_them(struct api *a)
{
    bool is_told;
    if (!asks(a, &is_told))
        return false;
    api_offer(a, api_event(1000, 6), "x", NULL);
    for (int i = 0; i < 15000 && !api_count(a, API_INVOCATION, 1); i++)
        if (has_ended(a))
            return false;
    struct api_post post = api_posted(a);
    return !post.is_error && strcmp(post.body, "{\"batchItemFailures\":[]}") == 0;
}

/* Six records of which a process has died; the next one, which looks for the record to blame, is started with
 * the fault. */
static struct api *die_and_start(const struct fault *fault)
{
    struct api *a = api_new();
    write_config(a, DIES);
    api_start(a, NULL);
    assert_false(takes_them(a));
    (void)api_wait(a);
    api_start_this(a, start, (void *)fault);
    return a;
}

/* Whatever becomes of that process: in the end every good record was handled, and the bad one is parked. */
static bool one_fails_in_a_trial(const char *only, int n, int err)
{
    struct api *a = die_and_start(&(struct fault){only, n, err});
    bool is_done = takes_them(a), came = disk_fault_came();
    disk_fault_end();
    for (int i = 0; i < 4 && !is_done; i++) {
        if (has_ended(a)) {
            (void)api_wait(a);
            api_start(a, NULL);
        }
        is_done = takes_them(a);
    }
    if (!is_done)
        fail_msg("%s %d: %s", only, n, api_file(a, "err"));
    assert_int_equal(api_stop(a), 0);
    size_t parked = api_times(a, "parked.jsonl", "\n"); /* again if the answer was not that all is done */
    assert_true(parked >= 1 && api_times(a, "parked.jsonl", "\"SequenceNumber\":\"1003\"") == parked);
    for (int i = 1000; i < 1006; i++)
        assert_int_equal(api_times(a, "told", json_printf("%d\n", i)) > 0, i != 1003);
    api_destroy(a);
    return came;
}

static void the_record_to_blame_is_found_in_the_end(void **state)
{
    (void)state;
    static const struct {
        const char *only;
        int err;
    } cases[] = {{"mmap", ENOMEM},       {"socketpair", EMFILE}, {"fork", EAGAIN},   {"send", EPIPE},
                 {"pidfd_open", EMFILE}, {"getppid", 0},         {"waitpid", ECHILD}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int n = 1;
        while (one_fails_in_a_trial(cases[i].only, n, cases[i].err))
            n++;
        assert_true(n > 1);
    }
}

/* A handler may have timers or a profiler of its own, whose signals end any wait. That is no end of anything:
 * the record to blame is found as if there had been none. */
static bool one_signal_comes(const char *only, int n)
{
    struct api *a = die_and_start(&(struct fault){only, n, EINTR});
    if (!takes_them(a))
        fail_msg("%s %d: %s", only, n, api_file(a, "err"));
    bool came = disk_fault_came();
    disk_fault_end();
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "parked.jsonl", "\n"), 1);
    assert_int_equal(api_times(a, "parked.jsonl", "\"SequenceNumber\":\"1003\""), 1);
    assert_int_equal(api_times(a, "err", "dies\n"), 4); /* in the first process, and in three of its own */
    assert_int_equal(api_times(a, "told", "1003"), 0);
    for (int i = 1004; i < 1006; i++)
        assert_int_equal(api_times(a, "told", json_printf("%d\n", i)), 1);
    api_destroy(a);
    return came;
}

static void a_signal_that_ends_a_wait_means_nothing(void **state)
{
    (void)state;
    static const char *const waits[] = {"recv", "poll", "waitpid"};
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        int n = 1;
        while (one_signal_comes(waits[i], n))
            n++;
        assert_true(n > 1);
    }
}

int main(void)
{
    disk_fault->spared = getpid(); /* the Runtime API */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_process_serves_or_says_why_not),
        cmocka_unit_test(workers_serve_or_say_why_not),
        cmocka_unit_test(the_record_to_blame_is_found_in_the_end),
        cmocka_unit_test(a_signal_that_ends_a_wait_means_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
