/* The file that names what a handler holds: what is said stays when the process ends in whatever way. */
#include "tests/support/disk_fault.h"
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/test.h"

#include "runtime/contain/holds.h"
#include "runtime/contain/owned.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *folder;
static char first[400], second[400];

static int set_up(void **state)
{
    (void)state;
    folder = test_folder();
    snprintf(first, sizeof(first), "%s/sluice-%u-held-0", folder, (unsigned)geteuid());
    snprintf(second, sizeof(second), "%s/sluice-%u-held-1", folder, (unsigned)geteuid());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

static struct sl_holds *open_it(void)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_holds *holds;
    assert_int_equal(sl_holds_open(folder, &holds, &error), SL_OK);
    return holds;
}

static const char *refusal(void)
{
    static struct sl_error error;
    struct sl_holds *holds = (struct sl_holds *)&error;
    sl_error_clear(&error);
    assert_int_equal(sl_holds_open(folder, &holds, &error), SL_FATAL);
    assert_null(holds);
    assert_string_equal(error.code, "NoHoldsFile");
    return error.text;
}

static size_t left(const struct sl_holds *holds)
{
    const char *route;
    const struct sl_hold_name *names;
    return sl_holds_left(holds, &route, &names);
}

/* In a process that then ends by the signal, or by exit(0). */
static void hold_and_die(const char *route, const struct sl_record *const *records, size_t n, int number)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct sl_error error = SL_NO_ERROR;
        struct sl_holds *holds;
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        if (sl_holds_open(folder, &holds, &error) != SL_OK)
            _exit(9);
        sl_holds_enter(holds, route, records, n);
        for (int fd = 3; fd < 100; fd++)
            close(fd); /* takes neither the file nor its lock away */
        if (number)
            kill(getpid(), number);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == number : WEXITSTATUS(status) == number);
}

static void held_records_are_named_after_any_end(void **state)
{
    (void)state;
    static const int ends[] = {SIGKILL, SIGSEGV, SIGABRT, SIGTERM, 0};
    struct test_batch t;
    const struct sl_record *record =
        test_record(&t, "MODIFY", KEYS(PK("a")) ",'SequenceNumber':'777'", ",'eventID':'e1'");
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        hold_and_die("mine", &record, 1, ends[i]);
        struct sl_holds *holds = open_it();
        const char *route;
        const struct sl_hold_name *names;
        struct sl_hold_name wanted;
        sl_holds_name(record, &wanted);
        assert_int_equal(sl_holds_left(holds, &route, &names), 1);
        assert_string_equal(route, "mine");
        assert_string_equal(names[0].identifier, "777");
        assert_memory_equal(&names[0], &wanted, sizeof(wanted));
        sl_holds_leave(holds);
        sl_holds_close(holds);
        assert_int_equal(access(first, F_OK), -1); /* nothing is held: nothing is left behind */
    }
    test_batch_clean_up(&t);
}

/* Bad records outlive the process; the last ones are kept, each once. */
static void bad_records_are_kept_for_later_processes(void **state)
{
    (void)state;
    struct test_batch t;
    const struct sl_record *record =
        test_record(&t, "MODIFY", KEYS(PK("a")) ",'SequenceNumber':'777'", ",'eventID':'e1'");
    const struct sl_hold_bad *all;
    struct sl_hold_bad bad;
    char route[8];
    struct sl_holds *holds = open_it();
    for (unsigned i = 0; i < 2 * (SL_HOLDS_BAD + 3); i++) {
        snprintf(route, sizeof(route), "r%u", i / 2);
        sl_holds_bad_name(route, record, &bad);
        sl_holds_add_bad(holds, &bad);
    }
    sl_holds_enter(holds, "mine", &record, 1);
    sl_holds_close(holds); /* held: the file stays, as after a death */
    holds = open_it();
    assert_int_equal(sl_holds_all_bad(holds, &all), SL_HOLDS_BAD);
    assert_string_equal(all[0].route, "r64");
    assert_string_equal(all[3].route, "r3");
    assert_string_equal(all[0].name.identifier, "777");
    sl_holds_leave(holds);
    sl_holds_close(holds);
    sl_holds_add_bad(NULL, &bad);
    test_batch_clean_up(&t);
}

static void nothing_is_held_between_calls(void **state)
{
    (void)state;
    struct sl_holds *holds = open_it();
    const struct sl_record *none = NULL;
    assert_int_equal(left(holds), 0);
    sl_holds_enter(holds, "r", &none, 0);
    assert_int_equal(left(holds), 0);
    sl_holds_leave(holds);
    sl_holds_close(holds);
    sl_holds_close(NULL);
    sl_holds_enter(NULL, "r", &none, 0);
    sl_holds_leave(NULL);
}

static void what_is_held_outlives_an_orderly_close(void **state)
{
    (void)state;
    struct test_batch t;
    const struct sl_record *record = test_record(&t, "MODIFY", KEYS(PK("a")), "");
    struct sl_holds *holds = open_it();
    sl_holds_enter(holds, "r", &record, 1);
    sl_holds_close(holds);
    holds = open_it();
    assert_int_equal(left(holds), 1);
    sl_holds_leave(holds);
    sl_holds_close(holds);
    test_batch_clean_up(&t);
}

/* Ten thousand are named; of more, as many. Long names are cut where they still differ. */
static void most_and_longest_fit(void **state)
{
    (void)state;
    struct test_batch t;
    const struct sl_record *record = test_record(
        &t, "MODIFY", KEYS(PK("a")) ",'SequenceNumber':'1234567890123456789012345678901234567890'",
        ",'eventID':'0123456789012345678901234567890123456789012345678901234567890123'");
    const struct sl_record **many = malloc((SL_HOLDS_MAX + 5) * sizeof(*many));
    assert_non_null(many);
    for (size_t i = 0; i < SL_HOLDS_MAX + 5; i++)
        many[i] = record;
    struct sl_holds *holds = open_it();
    char route[65];
    memset(route, 'r', 64);
    route[64] = '\0';
    sl_holds_enter(holds, route, many, SL_HOLDS_MAX + 5);
    const char *said;
    const struct sl_hold_name *names;
    assert_int_equal(sl_holds_left(holds, &said, &names), SL_HOLDS_MAX);
    assert_string_equal(said, route);
    assert_string_equal(names[SL_HOLDS_MAX - 1].identifier, "1234567890123456789012345678901234567890");
    assert_memory_equal(names[0].event_id, "0123456789012345678901234567890123456789", 40);
    sl_holds_close(holds);
    holds = open_it(); /* the next process */
    assert_int_equal(sl_holds_left(holds, &said, &names), SL_HOLDS_MAX);
    sl_holds_leave(holds);
    sl_holds_close(holds);
    free(many);
    test_batch_clean_up(&t);
}

static void each_living_process_has_its_own(void **state)
{
    (void)state;
    int lowest = dup(0);
    close(lowest);
    struct sl_holds *a = open_it(), *b = open_it();
    assert_int_equal(access(first, F_OK), 0);
    assert_int_equal(access(second, F_OK), 0);
    int now = dup(0); /* no descriptor stays open */
    close(now);
    assert_int_equal(now, lowest);
    sl_holds_close(a);
    a = open_it(); /* the free one again */
    assert_int_equal(access(first, F_OK), 0);
    sl_holds_close(a);
    sl_holds_close(b);
}

/* A child that lives on does not keep the file from the next process. */
static void forked_child_keeps_nothing_locked(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct sl_error error = SL_NO_ERROR;
        struct sl_holds *holds;
        if (sl_holds_open(folder, &holds, &error) == SL_OK && fork() == 0) {
            close(ends[1]);
            char byte;
            (void)!read(ends[0], &byte, 1); /* until the test is over */
        }
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    struct sl_holds *holds = open_it();
    assert_int_equal(access(second, F_OK), -1);
    sl_holds_close(holds);
    close(ends[0]);
    close(ends[1]);
}

/* What is there may be anybody's. */
static void foreign_content_is_not_believed(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "hello", "sluheld1", "sluheld0\1\0\0\0\0\0\0\0r"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        test_write(first, texts[i]);
        struct sl_holds *holds = open_it();
        assert_int_equal(left(holds), 0);
        sl_holds_close(holds);
    }
    /* Of the right size, with numbers and names that cannot be. */
    struct sl_holds *holds = open_it();
    struct test_batch t;
    const struct sl_record *record = test_record(&t, "MODIFY", KEYS(PK("a")), "");
    sl_holds_enter(holds, "r", &record, 1);
    sl_holds_close(holds);
    static const struct {
        off_t at;
        const char *bytes;
        size_t n;
    } spoils[] = {
        {0, "sluheld1", 8}, /* of another layout */
        {8, "\377\377\377\377\377\377\377\377", 8},
        {8, "\x11\x27", 2}, /* 10,001 */
        {16, "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr", 72}};
    for (size_t i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++) {
        int fd = open(first, O_WRONLY);
        assert_int_equal(pwrite(fd, spoils[i].bytes, spoils[i].n, spoils[i].at), spoils[i].n);
        close(fd);
        holds = open_it();
        assert_int_equal(left(holds), 0);
        sl_holds_enter(holds, "r", &record, 1);
        sl_holds_close(holds);
    }
    test_batch_clean_up(&t);
}

static void links_and_strange_files_are_refused(void **state)
{
    (void)state;
    char target[400];
    snprintf(target, sizeof(target), "%s/precious", folder);
    test_write(target, "precious");
    assert_int_equal(symlink(target, first), 0);
    assert_non_null(strstr(refusal(), strerror(ELOOP)));
    unlink(first);
    assert_int_equal(link(target, first), 0);
    assert_non_null(strstr(refusal(), "is not this user's own file"));
    unlink(first);
    assert_int_equal(mkfifo(first, 0600), 0);
    assert_non_null(strstr(refusal(), "is not this user's own file"));
    unlink(first);
    size_t n;
    char *text = test_read(target, &n);
    assert_string_equal(text, "precious");
    free(text);
    if (geteuid() != 0)
        return;
    test_write(first, ""); /* another user's, in a folder where all may write */
    assert_int_equal(chown(first, 12345, (gid_t)-1), 0);
    assert_non_null(strstr(refusal(), "is not this user's own file"));
}

/* A full disk, a system without memory: said with the file's name, and nothing is left open. */
static void what_the_system_refuses_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *only;
        int err;
    } cases[] = {{"open", EMFILE}, {"fstat", EIO}, {"posix_fallocate", ENOSPC}, {"mmap", ENOMEM}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int lowest = dup(0);
        close(lowest);
        disk_fault_begin(1, cases[i].err, cases[i].only);
        const char *text = refusal();
        assert_true(disk_fault_came());
        assert_non_null(strstr(text, first));
        if (i != 1)
            assert_non_null(strstr(text, strerror(cases[i].err)));
        int now = dup(0);
        close(now);
        assert_int_equal(now, lowest);
        sl_holds_close(open_it());
    }
}

/* As many as no machine has processes of one user: then it says so, and takes none of them. */
static void more_files_than_processes_are_said(void **state)
{
    (void)state;
    char path[400];
    int fds[256];
    for (int i = 0; i < 256; i++) {
        snprintf(path, sizeof(path), "%s/sluice-%u-held-%d", folder, (unsigned)geteuid(), i);
        fds[i] = open(path, O_RDWR | O_CREAT, 0600);
        assert_true(fds[i] >= 0);
        assert_int_equal(flock(fds[i], LOCK_EX | LOCK_NB), 0);
    }
    const char *text = refusal();
    assert_non_null(strstr(text, "256 files are in use"));
    assert_non_null(strstr(text, folder));
    close(fds[255]);
    sl_holds_close(open_it()); /* the last one is as good as the first */
    for (int i = 0; i < 255; i++)
        close(fds[i]);
}

/* Is a descriptor still the file that it was? Not when it was closed, nor when its number is another one's.
 */
static void an_owned_descriptor_is_known_again(void **state)
{
    (void)state;
    int ends[2], file = open("/dev/null", O_RDONLY), zero = open("/dev/zero", O_RDONLY);
    assert_int_equal(pipe(ends), 0);
    struct sl_owned owned = sl_owned_note(file);
    assert_true(owned.fd == file && sl_owned_is_whole(&owned));
    assert_int_equal(dup2(zero, file), file); /* of the same device */
    assert_false(sl_owned_is_whole(&owned));
    assert_int_equal(dup2(ends[0], file), file);
    assert_false(sl_owned_is_whole(&owned));
    close(file);
    assert_false(sl_owned_is_whole(&owned));
    owned = sl_owned_note(file); /* of what is not open nothing is expected */
    assert_true(owned.fd == -1 && sl_owned_is_whole(&owned));
    close(zero);
    close(ends[0]);
    close(ends[1]);
}

static void missing_folder_is_said(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    struct sl_holds *holds;
    assert_int_equal(sl_holds_open("/nowhere/at/all", &holds, &error), SL_FATAL);
    assert_null(holds);
    assert_non_null(strstr(error.text, "/nowhere/at/all/sluice-"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(held_records_are_named_after_any_end),
        TEST(bad_records_are_kept_for_later_processes),
        TEST(nothing_is_held_between_calls),
        TEST(what_is_held_outlives_an_orderly_close),
        TEST(most_and_longest_fit),
        TEST(each_living_process_has_its_own),
        TEST(forked_child_keeps_nothing_locked),
        TEST(foreign_content_is_not_believed),
        TEST(links_and_strange_files_are_refused),
        TEST(what_the_system_refuses_is_said),
        TEST(more_files_than_processes_are_said),
        TEST(an_owned_descriptor_is_known_again),
        TEST(missing_folder_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
