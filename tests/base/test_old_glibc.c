/* scripts/package/old_glibc.c beside the functions of this machine's glibc that it stands for. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define fcntl64      old_fcntl64
#define close_range  old_close_range
#define memfd_create old_memfd_create
#define pidfd_open   old_pidfd_open
#define pidfd_getfd  old_pidfd_getfd
#define _Fork        old_fork
#define sigabbrev_np old_sigabbrev_np
#include "scripts/package/old_glibc.c"
#undef sigabbrev_np

const char *sigabbrev_np(int number);

static void signals_have_the_names_of_glibc(void **state)
{
    (void)state;
    for (int number = -1; number <= SIGRTMAX + 1; number++) {
        const char *ours = old_sigabbrev_np(number), *its = sigabbrev_np(number);
        assert_true((ours == NULL) == (its == NULL));
        if (its)
            assert_string_equal(ours, its);
    }
}

static void descriptors_are_what_they_are(void **state)
{
    (void)state;
    int file = old_memfd_create("x", 0);
    assert_true(file >= 0 && old_fcntl64(file, F_SETFD, FD_CLOEXEC) == 0);
    assert_int_equal(fcntl(file, F_GETFD), FD_CLOEXEC);
    assert_int_equal(write(file, "abc", 3), 3);
    int self = old_pidfd_open(getpid(), 0);
    assert_true(self >= 0);
    int twin = old_pidfd_getfd(self, file, 0);
    char read_there[3];
    assert_int_equal(pread(twin, read_there, sizeof(read_there), 0), 3);
    assert_memory_equal(read_there, "abc", 3);
    assert_int_equal(old_close_range((unsigned)twin, (unsigned)twin, 0), 0);
    assert_int_equal(fcntl(twin, F_GETFD), -1);
    assert_int_equal(old_pidfd_open(-1, 0), -1);
    close(self);
    close(file);
}

static void a_child_is_one(void **state)
{
    (void)state;
    int status;
    pid_t child = old_fork();
    if (child == 0)
        _exit(7);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_have_the_names_of_glibc),
        cmocka_unit_test(descriptors_are_what_they_are),
        cmocka_unit_test(a_child_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
