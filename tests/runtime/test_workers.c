/* Several processes that serve side by side, and the parent that replaces those that die. The clock of all of
 * them stands still until the test moves it; whoever sleeps says for how long. */
#include "tests/support/disk_fault.h"
#include "tests/support/runtime_api.h"
#include "tests/support/test.h"

#include "base/clock.h"
#include "runtime/start.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

extern char **environ;

#define CLOSES(what)                                                                                         \
    "{'report_batch_item_failures':true,'routes':[{'name':'c','handler':'closes','what':'" what              \
    "','told':'${DIR}/told','on_failure':'report'}]}"

/* What the test and all processes see. */
static struct {
    int64_t now_ms;
    int sleeps, restore_at; /* after so many sleeps the configuration is there again */
    int stop_at;            /* after so many the process that sleeps is told to stop */
} * shared;

static int64_t shared_now_ms(struct sl_clock *clock)
{
    (void)clock;
    return shared->now_ms;
}

static void shared_sleep_ms(struct sl_clock *clock, int64_t ms)
{
    (void)clock;
    dprintf(1, "slept %lld\n", (long long)ms);
    if (++shared->sleeps == shared->restore_at)
        (void)rename("away", "sluice.json");
    if (shared->sleeps == shared->stop_at)
        kill(getpid(), SIGTERM);
}

static int start(void *arg)
{
    (void)arg;
    sl_clock_system()->now_ms = shared_now_ms;
    sl_clock_system()->sleep_ms = shared_sleep_ms;
    return sl_start("bootstrap", environ);
}

static int set_up(void **state)
{
    *state = api_new();
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    shared->now_ms = 100000000;
    return 0;
}

static int tear_down(void **state)
{
    api_destroy(*state);
    munmap(shared, sizeof(*shared));
    return 0;
}

static void start_workers(struct api *a, const char *config, const char *workers)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/sluice.json", api_folder(a));
    test_write(path, json(config));
    api_set(a, workers);
    api_start_this(a, start, NULL);
}

/* The workers' processes, in any order. */
static size_t workers_of(struct api *a, pid_t out[8])
{
    char path[100], text[200] = "";
    snprintf(path, sizeof(path), "/proc/%1$d/task/%1$d/children", (int)api_process(a));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *at = fgets(text, sizeof(text), file) ? text : text + sizeof(text) - 1, *end;
    fclose(file);
    size_t n = 0;
    for (long pid; n < 8 && (pid = strtol(at, &end, 10)) > 0; at = end)
        out[n++] = (pid_t)pid;
    return n;
}

static void several_serve_side_by_side(void **state)
{
    struct api *a = *state;
    pid_t pids[8];
    start_workers(a, CLOSES("none"), "AWS_LAMBDA_MAX_CONCURRENCY=3");
    api_await(a, API_NEXT, 3);
    assert_int_equal(workers_of(a, pids), 3);
    /* Three events at a time, answered in any order. */
    for (int i = 0; i < 3; i++)
        api_offer(a, api_event((size_t)(1000 + i), 1), (const char *const[]){"x", "y", "z"}[i], NULL);
    api_await(a, API_INVOCATION, 3);
    for (int i = 0; i < 3; i++)
        assert_false(api_posted(a).is_error);
    api_await(a, API_NEXT, 3);
    assert_int_equal(api_count(a, API_INIT_ERROR, 0), 0);
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "told", "closed"), 3);
    assert_string_equal(api_file(a, "err"), "");
}

static void kill_one(struct api *a, size_t workers)
{
    pid_t pids[8];
    assert_int_equal(workers_of(a, pids), workers);
    assert_int_equal(kill(pids[0], SIGKILL), 0);
}

/* At once the first time, then after pauses that double up to a second; a minute of calm and they begin anew.
 */
static void a_worker_that_is_killed_is_replaced(void **state)
{
    struct api *a = *state;
    start_workers(a, CLOSES("none"), "AWS_LAMBDA_MAX_CONCURRENCY=2");
    for (int i = 1; i <= 10; i++) {
        api_await(a, API_NEXT, 2);
        shared->now_ms += 59999;
        kill_one(a, 2);
        api_await_words(a, "err", "ended (signal 9); starting another\n", (size_t)i);
    }
    api_await(a, API_NEXT, 2);
    shared->now_ms += 60000;
    kill_one(a, 2);
    api_await_words(a, "err", "starting another\n", 11);
    api_await(a, API_NEXT, 2);
    api_deliver_all(a, api_event(1000, 1));
    assert_int_equal(api_stop(a), 0);
    static const int pauses[] = {0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 0};
    char wanted[1000] = "";
    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++)
        for (int left = pauses[i]; left >= 0; left = left > 100 ? left - 100 : -1) /* it looks up between */
            snprintf(wanted + strlen(wanted), 20, "slept %d\n", left < 100 ? left : 100);
    snprintf(wanted + strlen(wanted), 40, "a plugin's line\na plugin's line\n");
    assert_string_equal(api_file(a, "out"), wanted);
    assert_int_equal(api_times(a, "err", "\n"), 11);
}

static const char *dies(const char *how)
{
    static char config[400];
    snprintf(config, sizeof(config),
             "{'report_batch_item_failures':true,'routes':[{'name':'d','handler':'dies','how':'%s',"
             "'at':'1003','told':'${DIR}/told','spare':'${DIR}/spare','on_failure':'report'}]}",
             how);
    return config;
}

/* Whatever status it chooses: what a worker has to say of the Runtime API it does not say with that. */
static void a_worker_is_replaced_however_it_ends(void **state)
{
    static const char *const ways[] = {"exit", "exit 1", "exit 2", "leave", "leave 2", "kill", "abort"};
    pid_t pids[8];
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct api *a = api_new();
        start_workers(a, dies(ways[i]), "AWS_LAMBDA_MAX_CONCURRENCY=2");
        api_await(a, API_NEXT, 2);
        api_offer(a, api_event(1000, 8), "x", NULL);
        api_await_words(a, "err", "starting another", 1);
        api_await(a, API_NEXT, 2);
        assert_int_equal(workers_of(a, pids), 2);
        kill(pids[0], SIGTERM); /* from outside, to one alone */
        api_await_words(a, "err", "starting another", 2);
        api_await(a, API_NEXT, 2);
        assert_int_equal(workers_of(a, pids), 2);
        assert_int_equal(api_times(a, "err", "lost the Runtime API"), 0);
        assert_int_equal(api_stop(a), 0);
        api_destroy(a);
    }
    (void)state;
}

/* The one that begins does not come to its end; the parent hears it all the same. */
static void workers_stop_while_one_begins(void **state)
{
    struct api *a = *state;
    char spare[300];
    start_workers(a, dies("sleep in open"), "AWS_LAMBDA_MAX_CONCURRENCY=3");
    api_await(a, API_NEXT, 3);
    snprintf(spare, sizeof(spare), "%s/spare", api_folder(a));
    test_write(spare, "");
    kill_one(a, 3);
    api_await_words(a, "out", "slept", 1);
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "err", "starting another"), 1);
}

/* SIGTERM during a pause, or a part of one: no worker is begun any more. */
static void workers_stop_during_a_pause(void **state)
{
    (void)state;
    for (int kills = 1; kills <= 6; kills += 5) { /* the sixth pause has two parts */
        struct api *a = api_new();
        shared->sleeps = 0;
        shared->stop_at = kills;
        start_workers(a, CLOSES("none"), "AWS_LAMBDA_MAX_CONCURRENCY=2");
        for (int i = 0; i < kills; i++) {
            api_await(a, API_NEXT, 2);
            kill_one(a, 2);
            api_await_words(a, "err", "starting another", (size_t)i + 1);
        }
        assert_int_equal(api_wait(a), 0);
        assert_int_equal(api_times(a, "out", "slept"), kills);
        assert_int_equal(api_times(a, "told", "closed"), 1);
        assert_int_equal(api_times(a, "err", "\n"), kills);
        api_destroy(a);
    }
    shared->stop_at = 0;
}

/* The first worker's end, before it serves, is that of all: whatever it was, it is no success. */
static void a_first_worker_that_ends_is_the_end(void **state)
{
    (void)state;
    static const char *const ways[] = {"in open", "exit in open"};
    for (size_t i = 0; i < 2; i++) {
        struct api *a = api_new();
        start_workers(a, dies(ways[i]), "AWS_LAMBDA_MAX_CONCURRENCY=2");
        assert_int_equal(api_wait(a), 1);
        assert_int_equal(api_times(a, "err", "starting another"), 0);
        api_destroy(a);
    }
}

/* The first one hangs while it opens its handlers: it does not hear SIGTERM, and is ended. */
static void a_first_worker_that_hangs_is_ended(void **state)
{
    struct api *a = *state;
    char spare[300];
    pid_t pids[8];
    snprintf(spare, sizeof(spare), "%s/spare", api_folder(a));
    test_write(spare, "");
    start_workers(a, dies("sleep in open"), "AWS_LAMBDA_MAX_CONCURRENCY=2");
    while (workers_of(a, pids) == 0)
        usleep(500);
    assert_int_equal(api_stop(a), 0);
    assert_true(kill(pids[0], 0) != 0);
}

/* No process can be made any more: that is tried a few times, each of which is said. */
static void workers_that_cannot_be_made_are_given_up(void **state)
{
    struct api *a = *state;
    start_workers(a, CLOSES("none"), "AWS_LAMBDA_MAX_CONCURRENCY=2");
    api_await(a, API_NEXT, 2);
    disk_fault->times = 100;
    disk_fault_begin(1, EAGAIN, "fork");
    kill_one(a, 2);
    int status = api_wait(a);
    disk_fault_end();
    disk_fault->times = 0;
    assert_int_equal(status, 1);
    assert_int_equal(api_times(a, "err", "cannot be started: Resource temporarily unavailable"), 5);
    assert_int_equal(api_times(a, "err", "sluice: 5 workers in a row did not start: exiting\n"), 1);
    assert_int_equal(api_times(a, "told", "closed"), 1);
}

static void a_worker_whose_handler_closed_descriptors_is_replaced(void **state)
{
    struct api *a = *state;
    start_workers(a, CLOSES("sockets"), "AWS_LAMBDA_MAX_CONCURRENCY=2");
    for (size_t i = 1; i <= 3; i++) {
        struct api_post post = api_deliver(a, api_event(1000 + i, 1));
        assert_true(post.is_error);
        assert_string_equal(post.type, "Function.HandlerClosedDescriptors");
        api_await_words(a, "err", "ended (status 1); starting another", i);
    }
    api_await(a, API_NEXT, 2);
    assert_int_equal(api_stop(a), 0);
}

static void an_init_error_is_posted_once_for_all(void **state)
{
    struct api *a = *state;
    start_workers(a, "{'routes':[]}", "AWS_LAMBDA_MAX_CONCURRENCY=3");
    assert_true(api_init_error(a).is_error);
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_count(a, "", 0), 0);
    assert_int_equal(api_times(a, "err", "cannot start"), 1);
}

static void move_config(struct api *a)
{
    char from[300], to[300];
    snprintf(from, sizeof(from), "%s/sluice.json", api_folder(a));
    snprintf(to, sizeof(to), "%s/away", api_folder(a));
    assert_int_equal(rename(from, to), 0);
}

/* Five in a row that do not start are the end of all; four are not, and the next ones count anew. */
static void workers_that_never_start_are_given_up(void **state)
{
    struct api *a = *state;
    start_workers(a, CLOSES("none"), "AWS_LAMBDA_MAX_CONCURRENCY=2");
    api_await(a, API_NEXT, 2);
    move_config(a);
    shared->restore_at = 5;
    kill_one(a, 2);
    api_await_words(a, "out", "slept", 5);
    api_await(a, API_NEXT, 2);
    assert_int_equal(api_times(a, "err", "cannot start"), 4);
    move_config(a);
    kill_one(a, 2);
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "cannot start"), 9);
    assert_int_equal(api_times(a, "err", "ended (status 1)"), 8);
    assert_int_equal(api_times(a, "err", "sluice: 5 workers in a row did not start: exiting\n"), 1);
    assert_int_equal(api_times(a, "told", "closed"), 1);
    assert_int_equal(api_count(a, API_INIT_ERROR, 0), 0);
}

/* What one of them is told of the environment is true for all. */
static void a_lost_runtime_api_ends_all(void **state)
{
    struct api *a = *state;
    start_workers(a, CLOSES("none"), "AWS_LAMBDA_MAX_CONCURRENCY=3");
    api_await(a, API_NEXT, 3);
    api_reply(a, api_take(a, API_NEXT), API_STATUS(500, "Internal Server Error"));
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "lost the Runtime API: exiting"), 1);
    assert_int_equal(api_times(a, "err", "starting another"), 0);
    assert_int_equal(api_times(a, "told", "closed"), 3);
    start_workers(a, CLOSES("none"), "AWS_LAMBDA_MAX_CONCURRENCY=2");
    api_await(a, API_NEXT, 2);
    struct api_request *waits = api_take(a, API_NEXT);
    for (int i = 0; i < 5; i++)
        api_reply(a, api_take(a, API_NEXT), API_STATUS(403, "Forbidden"));
    (void)waits;
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "lost the Runtime API: exiting"), 2);
}

/* That it has no descriptor left is true for one alone. */
static void a_worker_without_descriptors_is_replaced(void **state)
{
    struct api *a = *state;
    pid_t pids[8];
    start_workers(a, CLOSES("none"), "AWS_LAMBDA_MAX_CONCURRENCY=2");
    api_await(a, API_NEXT, 2);
    assert_int_equal(workers_of(a, pids), 2);
    const struct rlimit none = {.rlim_cur = 3, .rlim_max = 3};
    assert_int_equal(prlimit(pids[0], RLIMIT_NOFILE, &none, NULL), 0);
    struct api_request *asks[] = {api_take(a, API_NEXT), api_take(a, API_NEXT)};
    for (int i = 0; i < 2; i++)
        api_hang_up(a, asks[i], "", 0);
    api_await_words(a, "err", "ended (status 1); starting another", 1);
    api_await(a, API_NEXT, 2);
    assert_int_equal(api_times(a, "err", "NoDescriptors: no event from the Runtime API at http://"), 5);
    assert_int_equal(api_times(a, "err", "Too many open files"), 5);
    assert_int_equal(api_times(a, "err", "lost the Runtime API"), 0);
    api_deliver_all(a, api_event(1000, 1));
    assert_int_equal(api_stop(a), 0);
}

static void workers_end_with_their_parent(void **state)
{
    struct api *a = *state;
    start_workers(a, CLOSES("none"), "AWS_LAMBDA_MAX_CONCURRENCY=2");
    api_await(a, API_NEXT, 2);
    kill(api_process(a), SIGKILL);
    api_await_words(a, "told", "closed", 2);
}

/* One worker is none: nobody is forked. */
static void one_at_a_time_needs_no_parent(void **state)
{
    struct api *a = *state;
    pid_t pids[8];
    start_workers(a, CLOSES("none"), "AWS_LAMBDA_MAX_CONCURRENCY=1");
    api_await(a, API_NEXT, 1);
    assert_int_equal(workers_of(a, pids), 0);
    assert_int_equal(api_stop(a), 0);
}

#define WORKS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORKS(several_serve_side_by_side),
        WORKS(a_worker_that_is_killed_is_replaced),
        WORKS(a_worker_is_replaced_however_it_ends),
        WORKS(workers_stop_while_one_begins),
        WORKS(workers_stop_during_a_pause),
        WORKS(a_first_worker_that_ends_is_the_end),
        WORKS(a_first_worker_that_hangs_is_ended),
        WORKS(workers_that_cannot_be_made_are_given_up),
        WORKS(a_worker_whose_handler_closed_descriptors_is_replaced),
        WORKS(an_init_error_is_posted_once_for_all),
        WORKS(workers_that_never_start_are_given_up),
        WORKS(a_lost_runtime_api_ends_all),
        WORKS(a_worker_without_descriptors_is_replaced),
        WORKS(workers_end_with_their_parent),
        WORKS(one_at_a_time_needs_no_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
