/* Objects and lines on a disk of which the Nth operation fails: what says OK is done, what fails says why,
 * and a second attempt sets everything right. */
#include "tests/support/test.h"

#include "base/disk.h"
#include "sinks/file.h"
#include "sinks/target.h"
#include "tests/support/disk_fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the folder ---- */

static struct sl_sinks sinks;
static struct sl_call call;
static char *folder;
static const char *root; /* of this round's objects and lines, in `folder` */

static int set_up(void **state)
{
    (void)state;
    folder = test_folder_in_memory();
    call = (struct sl_call){sl_arena_new(4096), INT64_MAX};
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &(struct sl_vars){.list = NULL});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    memset(disk_fault, 0, sizeof(*disk_fault));
    sl_sinks_clean_up(&sinks);
    sl_arena_destroy(call.arena);
    test_folder_remove(folder);
    return 0;
}

static void begin(int n, int err)
{
    static int round;
    root = sl_arena_printf(call.arena, "%s/%d", folder, round++);
    disk_fault_begin(n, err, NULL);
}

/* The object's or the lines' content, absent when there is none. */
static struct sl_span content(const char *name)
{
    size_t n = 0;
    int left = disk_fault->left;
    disk_fault->left = 0;
    char *bytes = test_read(sl_arena_printf(call.arena, "%s/%s", root, name), &n);
    disk_fault->left = left;
    struct sl_span copy = bytes ? sl_span(sl_arena_copy(call.arena, sl_span(bytes, n)), n) : sl_span(NULL, 0);
    free(bytes);
    return copy;
}

/* ---- objects ---- */

static void assert_says_why(const struct sl_result *result)
{
    int err = disk_fault->err ? disk_fault->err : EIO;
    assert_int_equal(result->status, sl_disk_status(err));
    assert_string_equal(result->code, sl_disk_code(err));
    if (!strstr(result->text, root) || !strstr(result->text, strerror(err)))
        fail_msg("%s", result->text);
    assert_false(result->not_sent);
}

/* Opening is tried again once, as everything below. */
static struct sl_object_port *open_objects(void)
{
    struct sl_object_port *port = NULL;
    struct sl_error error = SL_NO_ERROR;
    struct sl_span target = sl_span_str(sl_arena_printf(call.arena, "file:%s", root));
    if (sl_target_objects(&sinks, target, &port, &error) != SL_OK) {
        assert_null(port);
        assert_int_equal(error.status, SL_FATAL);
        assert_string_equal(error.code, sl_disk_code(disk_fault->err));
        assert_non_null(strstr(error.text, "cannot "));
        assert_non_null(strstr(error.text, strerror(disk_fault->err)));
        assert_int_equal(sl_target_objects(&sinks, target, &port, &error), SL_OK);
    }
    return port;
}

static void put(struct sl_object_port *port, const char *key, const char *body, bool named)
{
    const struct sl_object object = {
        .key = sl_span_str(key), .body = sl_span_str(body), .content_named = named};
    struct sl_span old = content(key);
    struct sl_result result;
    port->apply(port, &object, 1, &result, &call);
    if (result.status != SL_OK) {
        struct sl_span now = content(key);
        assert_says_why(&result);
        assert_true(sl_span_eq(now, old) || sl_span_is(now, body));
        port->apply(port, &object, 1, &result, &call);
    }
    assert_int_equal(result.status, SL_OK);
    assert_span_is(content(key), body);
}

static void read_back(struct sl_object_port *port, const char *key, const char *body)
{
    const struct sl_object_read read = {.key = sl_span_str(key), .max_bytes = 100};
    struct sl_object_piece piece;
    port->read(port, &read, 1, &piece, &call);
    if (piece.result.status != SL_OK) {
        assert_says_why(&piece.result);
        assert_true(!piece.bytes.ptr && !piece.etag.ptr && piece.object_bytes == 0);
        port->read(port, &read, 1, &piece, &call);
    }
    assert_int_equal(piece.result.status, SL_OK);
    assert_span_is(piece.bytes, body);
}

/* The keys of all pages, of one key each; "!" for a page that failed. */
static const char *list(struct sl_object_port *port)
{
    struct sl_object_list all = {.limit = 1};
    struct sl_object_page page;
    const char *keys = "";
    do {
        port->list(port, &all, &page, &call);
        if (page.result.status != SL_OK) {
            assert_says_why(&page.result);
            assert_true(page.n == 0 && !page.next.ptr);
            return "!";
        }
        assert_true(page.n <= 1);
        if (page.n)
            keys = sl_arena_printf(call.arena, "%s %.*s", keys, SL_ARG(page.entries[0].key));
        all.after = page.next;
    } while (page.next.ptr);
    return keys;
}

static void list_back(struct sl_object_port *port, const char *wanted)
{
    const char *keys = list(port);
    if (strcmp(keys, "!") == 0)
        keys = list(port);
    assert_string_equal(keys, wanted);
}

static void remove_object(struct sl_object_port *port, const char *key)
{
    const struct sl_object_removal removal = {.key = sl_span_str(key)};
    struct sl_span old = content(key);
    struct sl_result result;
    port->remove(port, &removal, 1, &result, &call);
    if (result.status != SL_OK) {
        struct sl_span now = content(key);
        assert_says_why(&result);
        assert_true(!now.ptr || sl_span_eq(now, old));
        port->remove(port, &removal, 1, &result, &call);
    }
    assert_int_equal(result.status, SL_OK);
    assert_null(content(key).ptr);
}

/* Every descriptor that was opened is closed, also after a failure. */
static int lowest_free(void)
{
    int left = disk_fault->left;
    disk_fault->left = 0;
    int fd = dup(STDERR_FILENO);
    close(fd);
    disk_fault->left = left;
    return fd;
}

static void use_objects(void)
{
    int free_before = lowest_free();
    struct sl_object_port *port = open_objects();
    put(port, "d/e/one", "1", false);
    put(port, "d/e/one", "uno", false);
    put(port, "two", "2", true);
    put(port, "two", "2", true);
    read_back(port, "d/e/one", "uno");
    list_back(port, " d/e/one two");
    remove_object(port, "d/e/one");
    remove_object(port, "nothing");
    list_back(port, " two");
    port->close(port);
    assert_int_equal(lowest_free(), free_before);
}

static const int errors[] = {EIO, ENOSPC, EACCES, EROFS, EMFILE};

static void every_operation_on_objects_may_fail(void **state)
{
    (void)state;
    for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
        int n = 0;
        do {
            begin(++n, errors[e]);
            use_objects();
        } while (disk_fault->left == 0);
        assert_in_range(n, 50, 200);
    }
}

/* ---- what is no failure ---- */

static void only(const char *name, int n, int err)
{
    disk_fault_begin(n, err, name);
}

static struct sl_result read_result(struct sl_object_port *port, const char *key, const char *body)
{
    const struct sl_object_read read = {.key = sl_span_str(key), .max_bytes = 100};
    struct sl_object_piece piece;
    port->read(port, &read, 1, &piece, &call);
    if (piece.result.status == SL_OK)
        assert_span_is(piece.bytes, body);
    return piece.result;
}

/* Signals and short transfers are gone through; what becomes shorter while it is read is an error. */
static void transfers_go_on(void **state)
{
    (void)state;
    begin(0, 0);
    struct sl_object_port *port = open_objects();
    disk_fault->short_reads = disk_fault->short_writes = true;
    put(port, "one", "many bytes", false);
    assert_int_equal(read_result(port, "one", "many bytes").status, SL_OK);
    for (int n = 1; n <= 10; n++) {
        only("pread", n, EINTR);
        assert_int_equal(read_result(port, "one", "many bytes").status, SL_OK);
        assert_int_equal(disk_fault->left, 0);
        only("write", n, EINTR);
        const struct sl_object object = {.key = SL_LIT("two"), .body = SL_LIT("many bytes")};
        struct sl_result result;
        port->apply(port, &object, 1, &result, &call);
        assert_int_equal(result.status, SL_OK);
        assert_span_is(content("two"), "many bytes");
        only("pread", n, 0);
        result = read_result(port, "one", "");
        assert_says_why(&result);
        only("write", n, 0);
        port->apply(port, &object, 1, &result, &call);
        assert_says_why(&result);
    }
    port->close(port);
}

/* What goes while a folder is listed was not there: a file (of which the walk asks), a folder (which it opens
 * after the root). */
static void what_goes_while_it_is_listed_was_not_there(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int n;
    } cases[] = {{"fstatat", 1}, {"openat", 2}};
    for (size_t i = 0; i < 2; i++) {
        begin(0, 0);
        struct sl_object_port *port = open_objects();
        struct sl_object_page page;
        put(port, "folder/one", "1", false);
        only(cases[i].name, cases[i].n, ENOENT);
        port->list(port, &(struct sl_object_list){.limit = 0}, &page, &call);
        assert_int_equal(disk_fault->left, 0);
        assert_int_equal(page.result.status, SL_OK);
        assert_int_equal(page.n, 0);
        port->list(port, &(struct sl_object_list){.limit = 0}, &page, &call);
        assert_int_equal(page.n, 1);
        port->close(port);
    }
}

/* Two objects of one call: the first one's failure is not the second's. */
/* How often the put of an object below "<folder><n>/" syncs; a sync that fails is told, whichever it is. */
static int count_syncs(struct sl_object_port *port, const char *top, const char *key, bool named)
{
    for (int n = 1;; n++) {
        const struct sl_object object = {.key =
                                             sl_span_str(sl_arena_printf(call.arena, "%s%d/%s", top, n, key)),
                                         .body = SL_LIT("1"),
                                         .content_named = named};
        struct sl_result result;
        only("fsync", n, EIO);
        port->apply(port, &object, 1, &result, &call);
        if (!disk_fault_came()) {
            assert_int_equal(result.status, SL_OK);
            return n - 1;
        }
        assert_says_why(&result);
    }
}

/* What a power cut must not lose: the object, its name, and the name of each folder that is new. An object
 * that is there already may be of a writer that got less far. */
static void whatever_is_new_is_synced(void **state)
{
    (void)state;
    begin(0, 0);
    struct sl_object_port *port = open_objects();
    for (int n = 1; n <= 5; n++)
        put(port, sl_arena_printf(call.arena, "known%d/there", n), "1", true);
    assert_int_equal(count_syncs(port, "known", "there", true), 1);
    int known = count_syncs(port, "known", "name", false);
    assert_true(known >= 2);
    assert_int_equal(count_syncs(port, "a", "name", false), known + 1);
    assert_int_equal(count_syncs(port, "b", "new/name", false), known + 2);
    assert_int_equal(count_syncs(port, "c", "new/er/name", true), known + 3);
    port->close(port);
}

static size_t count_descriptors(void)
{
    DIR *all = opendir("/proc/self/fd");
    size_t n = 0;
    assert_non_null(all);
    while (readdir(all))
        n++;
    closedir(all);
    return n;
}

/* A process writes and reads for days: no call keeps a descriptor, whether it succeeds or not. */
static void no_call_keeps_a_descriptor(void **state)
{
    (void)state;
    static const char *const keys[] = {"flat", "a/b/c/deep", "flat/below", "a/b"};
    begin(0, 0);
    struct sl_object_port *port = open_objects();
    size_t before = count_descriptors();
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
            const struct sl_object object = {.key = sl_span_str(keys[i]), .body = SL_LIT("1")};
            const struct sl_object_read read = {.key = object.key, .max_bytes = 100};
            const struct sl_object_removal removal = {.key = object.key};
            struct sl_object_piece piece;
            struct sl_object_page page;
            struct sl_result result;
            port->apply(port, &object, 1, &result, &call);
            assert_int_equal(result.status == SL_OK,
                             i < 2); /* the others are a file's folder, and a folder */
            port->read(port, &read, 1, &piece, &call);
            assert_int_equal(piece.result.status == SL_OK, i < 2);
            port->list(port, &(struct sl_object_list){.prefix = SL_LIT("a")}, &page, &call);
            assert_int_equal(page.result.status, SL_OK);
            if (i >= 2)
                port->remove(port, &removal, 1, &result, &call);
            assert_int_equal(count_descriptors(), before);
        }
    port->close(port);
}

static void one_failure_is_of_one_object(void **state)
{
    (void)state;
    begin(0, 0);
    struct sl_object_port *port = open_objects();
    const struct sl_object objects[] = {{.key = SL_LIT("one"), .body = SL_LIT("1")},
                                        {.key = SL_LIT("two"), .body = SL_LIT("2")}};
    struct sl_result results[2];
    only("renameat", 1, EIO);
    port->apply(port, objects, 2, results, &call);
    assert_says_why(&results[0]);
    assert_int_equal(results[1].status, SL_OK);
    assert_null(content("one").ptr);
    assert_span_is(content("two"), "2");
    port->close(port);
}

/* ---- lines ---- */

static void say(struct sl_queue_port *port, const char *a, const char *b)
{
    const struct sl_message messages[2] = {{.body = sl_span_str(a)}, {.body = sl_span_str(b)}};
    struct sl_result results[2] = {{.status = SL_RETRY}};
    for (int tries = 0; results[0].status != SL_OK; tries++) {
        assert_true(tries < 4);
        port->apply(port, messages, 2, results, &call);
        assert_int_equal(results[0].status, results[1].status);
        for (size_t i = 0; i < 2 && results[i].status != SL_OK; i++)
            assert_says_why(&results[i]);
    }
}

static struct sl_queue_port *open_lines(void)
{
    struct sl_queue_port *port = NULL;
    struct sl_error error = SL_NO_ERROR;
    struct sl_span target = sl_span_str(sl_arena_printf(call.arena, "jsonl:%s/lines", root));
    for (int tries = 0; sl_target_queue(&sinks, target, &port, &error) != SL_OK; tries++) {
        assert_true(tries < 3 && !port);
        assert_int_equal(error.status, SL_FATAL);
        assert_string_equal(error.code, sl_disk_code(disk_fault->err));
        assert_non_null(strstr(error.text, strerror(disk_fault->err)));
    }
    return port;
}

/* After each single failure the file holds every line once. When cutting off what was half written fails,
 * too, a line may be there twice, but each is whole and none is missing. */
static void every_operation_on_lines_may_fail(void **state)
{
    (void)state;
    static const char all[] = "[1]\n[2]\n[3]\n[4]\n[5]\n[6]\n";
    int free_before = lowest_free();
    for (int times = 1; times <= 3; times++) {
        int n = 0;
        do {
            disk_fault->short_writes = n % 2;
            disk_fault->times = times;
            begin(++n, EIO);
            struct sl_queue_port *port = open_lines();
            say(port, "[1]", "[2]");
            say(port, "[3]", "[4]");
            port->close(port);
            port = open_lines();
            say(port, "[5]", "[6]");
            port->close(port);
            struct sl_span lines = content("lines");
            if (times == 1)
                assert_span_is(lines, all);
            assert_int_equal(lines.len % 4, 0);
            for (size_t i = 0; i < lines.len; i += 4)
                assert_true(lines.ptr[i] == '[' && strncmp(lines.ptr + i + 2, "]\n", 2) == 0);
            for (char digit = '1'; digit <= '6'; digit++)
                assert_non_null(memchr(lines.ptr, digit, lines.len));
        } while (disk_fault->left == 0);
        assert_in_range(n, 15, 100);
    }
    disk_fault->left = 0;
    assert_int_equal(lowest_free(), free_before);
}

/* A signal while another process holds the lock; a tail that cannot be read whole. */
static void a_lock_is_waited_for(void **state)
{
    (void)state;
    begin(0, 0);
    struct sl_queue_port *port = open_lines();
    const struct sl_message message = {.body = SL_LIT("[1]")};
    struct sl_result result;
    only("flock", 1, EINTR);
    port->apply(port, &message, 1, &result, &call);
    assert_int_equal(result.status, SL_OK);
    assert_int_equal(disk_fault->left, 0);
    only("pread", 1, 0);
    port->apply(port, &message, 1, &result, &call);
    assert_says_why(&result);
    assert_span_is(content("lines"), "[1]\n");
    port->close(port);
}

/* Standard output is a queue, too: lines as they come; what it refuses says why. */
static void standard_output_is_a_queue(void **state)
{
    (void)state;
    begin(0, 0);
    struct sl_queue_port *port = NULL;
    const struct sl_message messages[2] = {{.body = SL_LIT("[1]")}, {.body = SL_LIT("{\n}")}};
    struct sl_result results[2];
    assert_int_equal(sl_target_queue(&sinks, SL_LIT("stdout:"), &port, NULL), SL_OK);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO), file = open(root, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    dup2(file, STDOUT_FILENO);
    port->apply(port, messages, 2, results, &call);
    bool is_done = results[0].status == SL_OK && results[1].status == SL_OK;
    only("write", 1, EPIPE);
    port->apply(port, messages, 2, results, &call);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(file);
    assert_true(is_done);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(results[i].status, sl_disk_status(EPIPE));
        assert_non_null(strstr(results[i].text, "cannot append to standard output: Broken pipe"));
    }
    char *lines = test_read(root, NULL);
    assert_string_equal(lines, "[1]\n{ }\n");
    free(lines);
    port->close(port);
    assert_true(fcntl(STDOUT_FILENO, F_GETFD) >= 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_operation_on_objects_may_fail),
        TEST(transfers_go_on),
        TEST(what_goes_while_it_is_listed_was_not_there),
        TEST(one_failure_is_of_one_object),
        TEST(whatever_is_new_is_synced),
        TEST(no_call_keeps_a_descriptor),
        TEST(every_operation_on_lines_may_fail),
        TEST(a_lock_is_waited_for),
        TEST(standard_output_is_a_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
