/* A signal ends the process wherever it is, also within malloc: the handler takes no lock that the
 * interrupted code may hold. */
#include "base/array.h"
#include "live/sandbox/sandbox.h"
#include "tests/support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TURNS   60
#define WAIT_MS 10000

static void *idle(void *arg)
{
    (void)arg;
    while (pause() < 0) {
    }
    return NULL;
}

/* With a second thread malloc takes its locks. Signals come to the first. Writes a byte when it is ready to
 * be ended. */
static void allocate(const char *folder, int ready)
{
    pthread_t thread;
    sigset_t all, before;
    char file[420];
    sl_sandbox_end_with_us();
    snprintf(file, sizeof(file), "%s/file", sl_sandbox_make_temp(folder));
    test_write(file, "left behind");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, idle, NULL) != 0)
        _exit(3);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    void *held[64] = {NULL};
    if (write(ready, "", 1) != 1)
        _exit(4);
    for (size_t i = 0;; i = (i + 7) % 64) {
        free(held[i]);
        held[i] = malloc(4000 + 400 * i);
    }
}

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

/* A folder comes and goes, all the time. */
static void make_and_remove(const char *folder, int ready)
{
    sl_sandbox_end_with_us();
    if (write(ready, "", 1) != 1)
        _exit(4);
    for (;;)
        sl_sandbox_remove_temp(sl_sandbox_make_temp(folder));
}

static bool is_empty(const char *folder)
{
    return rmdir(folder) == 0 && mkdir(folder, 0700) == 0;
}

/* At one of many moments; what it had in `folder` goes with it. */
static void end_by_signal(void (*run)(const char *folder, int ready), const char *folder, int turn)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGABRT};
    int status = 0, waited_ms = 0, ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        run(folder, ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    sleep_us(331 * turn);
    kill(pid, numbers[turn % SL_COUNT(numbers)]);
    while (waitpid(pid, &status, WNOHANG) == 0 && waited_ms++ < WAIT_MS)
        sleep_us(1000);
    if (waited_ms > WAIT_MS) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        fail_msg("turn %d: the process does not end", turn);
    }
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), numbers[turn % SL_COUNT(numbers)]);
    assert_true(is_empty(folder));
}

static void a_signal_ends_a_process_that_allocates(void **state)
{
    (void)state;
    char *folder = test_folder();
    for (int turn = 0; turn < TURNS; turn++)
        end_by_signal(allocate, folder, turn);
    test_folder_remove(folder);
}

static void no_signal_leaves_a_folder(void **state)
{
    (void)state;
    char *folder = test_folder();
    for (int turn = 0; turn < 5 * TURNS; turn++)
        end_by_signal(make_and_remove, folder, turn % 7);
    test_folder_remove(folder);
}

/* A sandbox that ends before it is one (between fork and execve) has this process's handler, and none of its
 * belongings. */
static void what_was_forked_ends_alone(void **state)
{
    (void)state;
    static const int numbers[] = {SIGTERM, SIGABRT};
    char *folder = test_folder();
    for (size_t i = 0; i < SL_COUNT(numbers); i++) {
        int status = 0;
        pid_t owner = fork();
        if (owner == 0) {
            sl_sandbox_end_with_us();
            char *own = sl_sandbox_make_temp(folder);
            pid_t pid = fork();
            if (pid == 0) {
                raise(numbers[i]);
                _exit(0);
            }
            waitpid(pid, &status, 0);
            bool is_there = access(own, F_OK) == 0;
            sl_sandbox_remove_temp(own);
            _exit(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i] && is_there);
        }
        waitpid(owner, &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        assert_true(is_empty(folder));
    }
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_ends_a_process_that_allocates),
        cmocka_unit_test(no_signal_leaves_a_folder),
        cmocka_unit_test(what_was_forked_ends_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
