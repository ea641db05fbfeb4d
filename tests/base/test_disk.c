/* Files replaced whole: one writer, many, killed ones, and what they leave. */
#include "tests/support/test.h"

#include "base/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char *folder;
static int fd;

static int set_up(void **state)
{
    (void)state;
    folder = test_folder_in_memory();
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(fd);
    test_folder_remove(folder);
    return 0;
}

static char *path_of(const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        abort();
    return path;
}

static void assert_file_is(const char *name, const char *text)
{
    char *path = path_of(name), *bytes = test_read(path, NULL);
    assert_non_null(bytes);
    assert_string_equal(bytes, text);
    free(bytes);
    free(path);
}

static size_t count_files(void)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static void a_file_is_replaced_whole(void **state)
{
    (void)state;
    assert_int_equal(sl_disk_replace(fd, fd, "f", SL_LIT("one")), 0);
    assert_file_is("f", "one");
    assert_int_equal(sl_disk_replace(fd, fd, "f", SL_LIT("")), 0);
    assert_file_is("f", "");
    char *path = path_of("f");
    assert_int_equal(sl_disk_replace_path(path, SL_LIT("three")), 0);
    assert_file_is("f", "three");
    free(path);
    assert_int_equal(count_files(), 1);
    assert_int_equal(sl_disk_replace_path("/proc/nowhere/f", SL_LIT("x")), ENOENT);
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(sl_disk_replace_path("f", SL_LIT("four")), 0);
    assert_int_equal(chdir("/"), 0);
    assert_file_is("f", "four");
}

/* A limit on a file's size, as a full disk: the old file stays, nothing is left aside, and it is no record's
 * fault. */
static void a_failure_leaves_the_old_file(void **state)
{
    (void)state;
    assert_int_equal(sl_disk_replace(fd, fd, "f", SL_LIT("old")), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){4, 4});
        int err = sl_disk_replace(fd, fd, "f", SL_LIT("much longer"));
        _exit(err == EFBIG && sl_disk_status(err) == SL_FATAL ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_file_is("f", "old");
    assert_int_equal(count_files(), 1);
}

/* A full disk for good: a file system of 64 KiB. Skipped where a process may not mount one. */
static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        static char big[128 * 1024];
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("none", folder, "tmpfs", 0, "size=64k") != 0)
            _exit(77);
        int at = open(folder, O_RDONLY | O_DIRECTORY);
        memset(big, 'x', sizeof(big));
        int first = sl_disk_replace(at, at, "f", SL_LIT("old"));
        int full = sl_disk_replace(at, at, "f", sl_span(big, sizeof(big)));
        bool is_old = false;
        char *path = path_of("f"), *bytes = test_read(path, NULL);
        is_old = bytes && strcmp(bytes, "old") == 0;
        int again = sl_disk_replace(at, at, "f", SL_LIT("new"));
        _exit(first == 0 && full == ENOSPC && is_old && again == 0 && count_files() == 1 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

/* ---- sweeping ---- */

static int leave(const char *name, time_t age)
{
    char *path = path_of(name);
    test_write(path, "torn");
    struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    utimensat(AT_FDCWD, path, times, 0);
    int file = open(path, O_RDWR | O_CLOEXEC);
    free(path);
    return file;
}

static bool is_there(const char *name)
{
    return faccessat(fd, name, F_OK, 0) == 0;
}

static void only_what_nobody_writes_is_swept(void **state)
{
    (void)state;
    const time_t old = SL_DISK_SWEEP_S + 10;
    int locked = leave(SL_DISK_ASIDE "locked", old);
    assert_int_equal(flock(locked, LOCK_EX), 0);
    close(leave(SL_DISK_ASIDE "dead", old));
    close(leave(SL_DISK_ASIDE "young", SL_DISK_SWEEP_S - 10));
    close(leave("another", old));
    sl_disk_sweep(fd, SL_DISK_ASIDE);
    assert_true(is_there(SL_DISK_ASIDE "locked"));
    assert_false(is_there(SL_DISK_ASIDE "dead"));
    assert_true(is_there(SL_DISK_ASIDE "young"));
    assert_true(is_there("another"));
    close(locked);
    sl_disk_sweep(fd, "");
    assert_false(is_there(SL_DISK_ASIDE "locked"));
    assert_false(is_there("another"));
}

/* ---- many writers ---- */

#define WRITERS 6
#define ROUNDS  150

/* What the file holds is whole when all its bytes are the same, and it has their number. */
static void write_for_ever(unsigned writer)
{
    char bytes[8192];
    for (unsigned round = 0; round < ROUNDS; round++) {
        memset(bytes, 'a' + (int)(writer * 3 + round) % 26, sizeof(bytes));
        sl_disk_sweep(fd, SL_DISK_ASIDE);
        if (sl_disk_replace(fd, fd, "shared", sl_span(bytes, sizeof(bytes))) != 0)
            _exit(1);
    }
    _exit(0);
}

static bool is_whole(const char *bytes, size_t len)
{
    return len == 8192 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

/* Each in a PID namespace of its own, so that all have one PID; some are killed. */
static void writers_share_one_file(void **state)
{
    (void)state;
    pid_t writers[WRITERS];
    for (unsigned w = 0; w < WRITERS; w++) {
        writers[w] = fork();
        if (writers[w] != 0)
            continue;
        if (unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0) {
            pid_t inner = fork();
            if (inner != 0) {
                int status;
                _exit(waitpid(inner, &status, 0) == inner && status == 0 ? 0 : 1);
            }
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        }
        write_for_ever(w);
    }
    char *path = path_of("shared");
    for (int i = 0; i < 200; i++) {
        size_t len = 0;
        char *bytes = test_read(path, &len);
        if (bytes)
            assert_true(is_whole(bytes, len));
        free(bytes);
        if (i == 50)
            kill(writers[0], SIGKILL);
    }
    free(path);
    for (unsigned w = 0; w < WRITERS; w++) {
        int status;
        assert_int_equal(waitpid(writers[w], &status, 0), writers[w]);
        if (w)
            assert_int_equal(status, 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_replaced_whole),        TEST(a_failure_leaves_the_old_file),
        TEST(a_full_disk_leaves_the_old_file), TEST(only_what_nobody_writes_is_swept),
        TEST(writers_share_one_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
