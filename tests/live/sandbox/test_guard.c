/* The guard kills in time, also while its parent stands still, and nobody else. Waits have long bounds. */
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"

#include "base/clock.h"
#include "live/sandbox/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 60000

static int64_t now_ms(void)
{
    return sl_clock_system()->now_ms(sl_clock_system());
}

static struct sl_guard *start(void)
{
    struct sl_guard *guard;
    struct sl_error error = SL_NO_ERROR;
    if (sl_guard_start(&guard, &error) != SL_OK)
        fail_msg("%s", error.text);
    return guard;
}

/* A child that does nothing, in a group of its own. */
static pid_t sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        sl_clock_system()->sleep_ms(sl_clock_system(), 2 * WAIT_MS);
        _exit(0);
    }
    assert_true(pid > 0); /* never kill(-1) */
    setpgid(pid, pid);
    return pid;
}

/* Whether it was killed; it is waited for at most so long. */
static bool is_killed(pid_t pid, int64_t wait)
{
    int status = 0;
    for (int64_t end = now_ms() + wait; now_ms() < end; usleep(5000))
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    return false;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void it_kills_at_its_moment_and_not_before(void **state)
{
    (void)state;
    struct sl_guard *guard = start();
    pid_t early = sleeper(), late = sleeper(), never = sleeper();
    int64_t begin = now_ms();
    assert_true(sl_guard_watch(guard, early, begin + 300));
    assert_true(sl_guard_watch(guard, late, begin + 10 * WAIT_MS));
    assert_true(sl_guard_watch(guard, never, begin + 400));
    assert_true(sl_guard_watch(guard, never, INT64_MAX));
    assert_true(is_killed(early, WAIT_MS));
    assert_true(now_ms() >= begin + 300);
    assert_false(is_killed(late, 200));
    assert_false(is_killed(never, 600));
    assert_true(sl_guard_watch(guard, late, now_ms())); /* sooner than was said first */
    assert_true(is_killed(late, WAIT_MS));
    end(never);
    sl_guard_end(guard);
}

static void what_is_forgotten_is_not_killed(void **state)
{
    (void)state;
    struct sl_guard *guard = start();
    pid_t pid = sleeper();
    assert_true(sl_guard_watch(guard, pid, now_ms() + 200));
    sl_guard_forget(guard, pid);
    sl_guard_forget(guard, pid);
    assert_false(is_killed(pid, 500));
    end(pid);
    sl_guard_end(guard);
}

static void there_is_room_for_all_and_again(void **state)
{
    (void)state;
    struct sl_guard *guard = start();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SL_GUARD_SANDBOXES; i++)
            assert_true(sl_guard_watch(guard, 1000000000 + i, now_ms() + 10 * WAIT_MS));
        assert_false(sl_guard_watch(guard, 999999999, now_ms() + 10 * WAIT_MS));
        for (int i = 0; i < SL_GUARD_SANDBOXES; i++)
            sl_guard_forget(guard, 1000000000 + i);
    }
    sl_guard_end(guard);
}

/* The parent is stopped; its child must still die in time. What the parent is to do is in a process of its
 * own. */
static void it_kills_while_its_parent_is_stopped(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct sl_guard *guard = start();
        pid_t child = sleeper();
        bool is_watched = sl_guard_watch(guard, child, now_ms() + 500);
        bool is_told = is_watched && write(ends[1], &child, sizeof(child)) == (ssize_t)sizeof(child);
        raise(SIGSTOP);
        _exit(is_told && is_killed(child, WAIT_MS) ? 0 : 1);
    }
    pid_t child = 0;
    int status;
    assert_int_equal(read(ends[0], &child, sizeof(child)), sizeof(child));
    assert_int_equal(waitpid(parent, &status, WUNTRACED), parent);
    assert_true(WIFSTOPPED(status));
    /* Dead and not waited for, its state is Z. */
    char path[64], text[256] = "", state_of = '?';
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
    for (int64_t limit = now_ms() + WAIT_MS; now_ms() < limit && state_of != 'Z'; usleep(10000)) {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        size_t n = fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
        text[n] = '\0';
        const char *close_paren = strrchr(text, ')');
        state_of = close_paren ? close_paren[2] : '?';
    }
    assert_int_equal(state_of, 'Z');
    kill(parent, SIGCONT);
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(ends[0]);
    close(ends[1]);
}

static void it_says_what_it_lacks(void **state)
{
    (void)state;
    static const struct {
        const char *only, *code, *text;
        int err;
    } cases[] = {{"mmap", "NoMemory", "no memory for the guard of sandboxes: ", ENOMEM},
                 {"fork", "NoProcess", "no process for the guard of sandboxes: ", EAGAIN}};
    for (size_t i = 0; i < 2; i++) {
        struct sl_guard *guard = (struct sl_guard *)&guard;
        struct sl_error error = SL_NO_ERROR;
        disk_fault_begin(1, cases[i].err, cases[i].only);
        assert_int_equal(sl_guard_start(&guard, &error), SL_RETRY);
        disk_fault_end();
        assert_null(guard);
        assert_string_equal(error.code, cases[i].code);
        assert_string_equal(error.text, json_printf("%s%s", cases[i].text, strerror(cases[i].err)));
    }
    sl_guard_end(NULL);
    struct sl_guard *guard = start();
    assert_true(sl_guard_watch(guard, 1000000000, INT64_MAX)); /* needs no place */
    sl_guard_end(guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_kills_at_its_moment_and_not_before),
        cmocka_unit_test(what_is_forgotten_is_not_killed),
        cmocka_unit_test(there_is_room_for_all_and_again),
        cmocka_unit_test(it_kills_while_its_parent_is_stopped),
        cmocka_unit_test(it_says_what_it_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
