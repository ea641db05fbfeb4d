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

/* ---- folders ---- */

static void folders_are_created_down_to_the_last(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    char *deep = path_of("a/b/c"), *file = path_of("d/e/file"), *below = path_of("plain/x");
    struct stat st;
    for (int i = 0; i < 2; i++) /* the second time they exist */
        assert_int_equal(sl_disk_make_folder(deep, &error), SL_OK);
    assert_true(stat(deep, &st) == 0 && S_ISDIR(st.st_mode));
    assert_int_equal(sl_disk_make_parent(file, &error), SL_OK);
    assert_true(is_there("d/e"));
    assert_false(is_there("d/e/file"));
    assert_int_equal(sl_disk_make_parent("file", &error), SL_OK);
    assert_int_equal(sl_disk_make_parent("/file", &error), SL_OK);
    close(leave("plain", 0));
    assert_int_equal(sl_disk_make_folder(below, &error), SL_FATAL);
    assert_string_equal(error.code, "NotFound");
    assert_non_null(strstr(error.text, "cannot create the folder "));
    assert_non_null(strstr(error.text, "plain/x: Not a directory"));
    free(deep);
    free(file);
    free(below);
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(sl_disk_make_folder("r", NULL), SL_OK);
    assert_int_equal(sl_disk_make_parent("s/t/u", NULL), SL_OK);
    assert_int_equal(chdir("/"), 0);
    assert_true(is_there("r") && is_there("s/t"));
    assert_int_equal(sl_disk_make_folder("/", NULL), SL_OK);
    assert_int_equal(sl_disk_make_folder("/proc/none/x", NULL), SL_FATAL);
}

/* ---- what cannot be written ---- */

static void a_name_that_cannot_be_replaced_leaves_nothing(void **state)
{
    (void)state;
    char *kept = path_of("f/kept");
    assert_int_equal(sl_disk_make_folder(kept, NULL), SL_OK);
    free(kept);
    assert_int_equal(sl_disk_replace(fd, fd, "f", SL_LIT("x")), EISDIR);
    assert_int_equal(sl_disk_replace(fd, fd, "none/f", SL_LIT("x")), ENOENT);
    char name[300];
    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    assert_int_equal(sl_disk_replace(fd, fd, name, SL_LIT("x")), ENAMETOOLONG);
    name[255] = '\0';
    assert_int_equal(sl_disk_replace(fd, fd, name, SL_LIT("x")), 0);
    assert_file_is(name, "x");
    assert_int_equal(sl_disk_replace(-1, fd, "g", SL_LIT("x")), EBADF);
    assert_int_equal(sl_disk_replace(fd, -1, "g", SL_LIT("x")), EBADF);
    assert_int_equal(count_files(), 2);
}

/* Another user's folder, as someone who is not root. */
static void a_folder_that_is_not_ours_is_refused(void **state)
{
    (void)state;
    assert_int_equal(sl_disk_replace(fd, fd, "f", SL_LIT("old")), 0);
    pid_t child = fork();
    if (child == 0) {
        if (fchmod(fd, 0555) != 0 || (geteuid() == 0 && setuid(65534) != 0))
            _exit(77);
        _exit(sl_disk_replace(fd, fd, "f", SL_LIT("new")) == EACCES ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    fchmod(fd, 0755);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
    assert_file_is("f", "old");
    assert_int_equal(count_files(), 1);
}

static void all_bytes_are_written_or_it_is_told(void **state)
{
    (void)state;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC), fds[2];
    assert_int_equal(sl_disk_write(full, SL_LIT("x")), ENOSPC);
    assert_int_equal(sl_disk_write(full, SL_LIT("")), 0);
    close(full);
    assert_int_equal(sl_disk_write(-1, SL_LIT("x")), EBADF);
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) { /* a pipe takes 64 KiB at a time */
        static char bytes[300000];
        memset(bytes, 'x', sizeof(bytes));
        close(fds[0]);
        _exit(sl_disk_write(fds[1], sl_span(bytes, sizeof(bytes))));
    }
    close(fds[1]);
    size_t total = 0;
    static char got[10000];
    for (ssize_t n; (n = read(fds[0], got, sizeof(got))) > 0; total += (size_t)n)
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(got[i], 'x');
    close(fds[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(total, 300000);
}

/* ---- standard descriptors ---- */

/* The three that the caller closed are filled, so that a file that is opened then gets none of their numbers;
 * and they cannot be used. */
static void closed_standard_descriptors_are_filled(void **state)
{
    (void)state;
    int lowest = open("/dev/null", O_RDONLY);
    close(lowest);
    for (int closed = 0; closed < 8; closed++) {
        pid_t child = fork();
        if (child == 0) {
            char byte = 'x';
            for (int i = 0; i < 3; i++)
                if (closed & 1 << i)
                    close(i);
            errno = EBADF; /* of something else */
            sl_disk_fill_standard();
            int next = open("/dev/null", O_RDONLY);
            bool good = next == lowest;
            for (int i = 0; i < 3; i++)
                if (closed & 1 << i)
                    good = good && (i == 0 ? read(i, &byte, 1) : write(i, &byte, 1)) < 0 && errno == EBADF &&
                           fcntl(i, F_GETFD) == 0;
            _exit(good ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

/* ---- sweeping by path, and what an errno means ---- */

static void a_folder_is_swept_by_the_path_of_its_file(void **state)
{
    (void)state;
    char *path = path_of("f"), *nowhere = path_of("none/f");
    close(leave(SL_DISK_ASIDE "dead", SL_DISK_SWEEP_S + 10));
    close(leave("f", SL_DISK_SWEEP_S + 10));
    assert_int_equal(mkdirat(fd, SL_DISK_ASIDE "folder", 0700), 0);
    assert_int_equal(symlinkat("f", fd, SL_DISK_ASIDE "link"), 0);
    sl_disk_sweep_path(nowhere);
    sl_disk_sweep(-1, "");
    sl_disk_sweep_path(path);
    assert_false(is_there(SL_DISK_ASIDE "dead"));
    assert_true(is_there("f") && is_there(SL_DISK_ASIDE "folder") && is_there(SL_DISK_ASIDE "link"));
    for (int i = 0; i < 2; i++) { /* a descriptor that was read to its end begins again */
        close(leave(SL_DISK_ASIDE "dead", SL_DISK_SWEEP_S + 10));
        sl_disk_sweep(fd, SL_DISK_ASIDE);
        assert_false(is_there(SL_DISK_ASIDE "dead"));
    }
    int pipe_end = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    sl_disk_sweep(pipe_end, ""); /* it cannot be listed */
    close(pipe_end);
    assert_true(is_there("f"));
    free(path);
    free(nowhere);
}

static void each_errno_has_its_meaning(void **state)
{
    (void)state;
    static const struct {
        int err;
        enum sl_status status;
        const char *code;
    } cases[] = {
        {EACCES, SL_FATAL, "AccessDenied"},
        {EPERM, SL_FATAL, "AccessDenied"},
        {EROFS, SL_FATAL, "ReadOnly"},
        {ENOSPC, SL_RETRY, "NoSpace"},
        {EDQUOT, SL_RETRY, "NoSpace"},
        {EFBIG, SL_FATAL, "FileTooLarge"},
        {ENAMETOOLONG, SL_REJECT, "NameTooLong"},
        {ENOENT, SL_FATAL, "NotFound"},
        {ENOTDIR, SL_FATAL, "NotFound"},
        {EISDIR, SL_FATAL, "NotFound"},
        {ELOOP, SL_FATAL, "IoError"},
        {EIO, SL_RETRY, "IoError"},
        {EMFILE, SL_RETRY, "IoError"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(sl_disk_status(cases[i].err), cases[i].status);
        assert_string_equal(sl_disk_code(cases[i].err), cases[i].code);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_replaced_whole),
        TEST(a_failure_leaves_the_old_file),
        TEST(a_full_disk_leaves_the_old_file),
        TEST(only_what_nobody_writes_is_swept),
        TEST(writers_share_one_file),
        TEST(folders_are_created_down_to_the_last),
        TEST(a_name_that_cannot_be_replaced_leaves_nothing),
        TEST(a_folder_that_is_not_ours_is_refused),
        TEST(all_bytes_are_written_or_it_is_told),
        TEST(closed_standard_descriptors_are_filled),
        TEST(a_folder_is_swept_by_the_path_of_its_file),
        TEST(each_errno_has_its_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
