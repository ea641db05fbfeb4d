/* The embedded object store and queues: file:, jsonl:, stdout:. */
#include "tests/support/test.h"

#include "sinks/file.h"
#include "sinks/target.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct sl_sinks sinks;
static struct sl_call call;
static char *folder;

static int set_up(void **state)
{
    (void)state;
    folder = test_folder();
    call.arena = sl_arena_new(4096);
    call.deadline_ms = INT64_MAX;
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &(struct sl_vars){.list = NULL});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sl_sinks_clean_up(&sinks);
    sl_arena_destroy(call.arena);
    test_folder_remove(folder);
    return 0;
}

static const char *in_folder(const char *format, const char *name)
{
    const char *path = sl_arena_printf(call.arena, "%s/%s", folder, name);
    return sl_arena_printf(call.arena, "%s%s", format, path);
}

static struct sl_object_port *open_files(void)
{
    struct sl_object_port *port = NULL;
    struct sl_error error = SL_NO_ERROR;
    if (sl_target_objects(&sinks, sl_span_str(in_folder("file:", "a/b")), &port, &error) != SL_OK)
        fail_msg("%s", error.text);
    return port;
}

static struct sl_result put(struct sl_object_port *port, const char *key, const char *body, bool named)
{
    struct sl_object object = {.key = sl_span_str(key), .body = sl_span_str(body), .content_named = named};
    struct sl_result result;
    port->apply(port, &object, 1, &result, &call);
    return result;
}

static void assert_file_is(const char *name, const char *text)
{
    char *bytes = test_read(in_folder("", name), NULL);
    assert_non_null(bytes);
    assert_string_equal(bytes, text);
    free(bytes);
}

static void objects_are_whole_and_replaced(void **state)
{
    (void)state;
    struct sl_object_port *port = open_files();
    assert_int_equal(put(port, "x/y/1.json", "one", false).status, SL_OK);
    assert_int_equal(put(port, "x/y/1.json", "two", false).status, SL_OK);
    assert_file_is("a/b/x/y/1.json", "two");
    assert_int_equal(put(port, "x/y/1.json", "three", true).status, SL_OK);
    assert_file_is("a/b/x/y/1.json", "two"); /* the same name is the same content */
    assert_int_equal(put(port, "z", "", true).status, SL_OK);
    assert_file_is("a/b/z", "");
    port->close(port);
}

static void keys_cannot_leave_the_folder(void **state)
{
    (void)state;
    struct sl_object_port *port = open_files();
    char *longest = sl_arena_zalloc(call.arena, 1026);
    memset(longest, 'k', 1025);
    const char *const bad[] = {"",     "/x",     "x/",    "x//y", ".",          "..",
                               "../x", "x/../y", "x/./y", "a\nb", ".partial/x", longest};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sl_result result = put(port, bad[i], "body", false);
        assert_int_equal(result.status, SL_REJECT);
        assert_string_equal(result.code, "InvalidKey");
    }
    char *segment = sl_arena_zalloc(call.arena, 257);
    memset(segment, 'k', 256);
    assert_int_equal(put(port, segment, "body", false).status, SL_REJECT);
    assert_int_equal(symlink("/tmp", in_folder("", "a/b/link")), 0);
    assert_int_not_equal(put(port, "link/x", "body", false).status, SL_OK);
    port->close(port);
}

/* A full disk, by a limit on the file's size: the old object stays whole, nothing is left
 * aside. */
static void a_full_disk_leaves_the_old_object(void **state)
{
    (void)state;
    struct sl_object_port *port = open_files();
    assert_int_equal(put(port, "o", "old", false).status, SL_OK);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {4, 4};
        setrlimit(RLIMIT_FSIZE, &limit);
        struct sl_result result = put(port, "o", "much longer", false);
        _exit(result.status != SL_OK && strstr(result.text, "cannot write") ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_file_is("a/b/o", "old");
    DIR *dir = opendir(in_folder("", "a/b/.partial"));
    assert_non_null(dir);
    int entries = 0;
    while (readdir(dir))
        entries++;
    closedir(dir);
    assert_int_equal(entries, 2);
    port->close(port);
}

/* What a writer left in .partial, this many seconds ago. */
static void leave(const char *name, time_t age)
{
    const char *path = in_folder("", name);
    test_write(path, "torn");
    struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    utimensat(AT_FDCWD, path, times, 0);
}

static void what_a_killed_writer_left_is_swept(void **state)
{
    (void)state;
    struct sl_object_port *port = open_files();
    leave("a/b/.partial/77-1", 7200); /* as older versions called it */
    leave("a/b/.partial/.sluice-0123456789abcdef", 7200);
    leave("a/b/.partial/.sluice-fedcba9876543210", 60); /* its writer may be in another container */
    struct sl_object_port *again = open_files();
    assert_int_not_equal(access(in_folder("", "a/b/.partial/77-1"), F_OK), 0);
    assert_int_not_equal(access(in_folder("", "a/b/.partial/.sluice-0123456789abcdef"), F_OK), 0);
    assert_int_equal(access(in_folder("", "a/b/.partial/.sluice-fedcba9876543210"), F_OK), 0);
    again->close(again);
    port->close(port);
}

/* ---- containers that share a folder ---- */

#define CONTAINERS 4
#define OBJECTS    120

static const char *body_of(unsigned container, unsigned i)
{
    char *body = sl_arena_zalloc(call.arena, 4001);
    memset(body, 'a' + (int)(container * 7 + i) % 26, 1000 + i * 20);
    return body;
}

/* Writes objects, and says of each that is done so. Opens the folder again now and then: that sweeps. */
static void write_objects(unsigned container, int done)
{
    struct sl_object_port *port = NULL;
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (i % 10 == 0) {
            if (port)
                port->close(port);
            port = open_files();
        }
        const char *key = sl_arena_printf(call.arena, "p%u/o%u", container, i);
        if (put(port, key, body_of(container, i), true).status != SL_OK)
            _exit(1);
        unsigned pair[2] = {container, i};
        if (write(done, pair, sizeof(pair)) != (ssize_t)sizeof(pair))
            _exit(1);
    }
    _exit(0);
}

/* A process with PID 1, as in a container; where that is not allowed, an ordinary one. */
static pid_t start_container(unsigned container, int done)
{
    pid_t outer = fork();
    if (outer != 0)
        return outer;
    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
        write_objects(container, done);
    pid_t inner = fork();
    if (inner == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_objects(container, done);
    }
    int status;
    _exit(waitpid(inner, &status, 0) == inner && status == 0 ? 0 : 1);
}

/* What was said to be done is there, whole; also when a container is killed in the middle. */
static void containers_share_a_folder(void **state)
{
    (void)state;
    pid_t containers[CONTAINERS];
    int done[2];
    struct sl_object_port *port = open_files();
    port->close(port);
    assert_int_equal(pipe(done), 0);
    for (unsigned c = 0; c < CONTAINERS; c++)
        containers[c] = start_container(c, done[1]);
    close(done[1]);
    unsigned pair[2], n = 0;
    for (; read(done[0], pair, sizeof(pair)) == (ssize_t)sizeof(pair); n++) {
        if (n == OBJECTS / 3)
            kill(containers[0], SIGKILL);
        const char *name = sl_arena_printf(call.arena, "a/b/p%u/o%u", pair[0], pair[1]);
        char *bytes = test_read(in_folder("", name), NULL);
        if (!bytes || strcmp(bytes, body_of(pair[0], pair[1])) != 0)
            fail_msg("%s is %s", name, bytes ? "another object's content" : "missing");
        free(bytes);
    }
    close(done[0]);
    assert_true(n >= (CONTAINERS - 1) * OBJECTS);
    for (unsigned c = 0; c < CONTAINERS; c++) {
        int status;
        assert_int_equal(waitpid(containers[c], &status, 0), containers[c]);
        if (c)
            assert_int_equal(status, 0);
    }
}

static struct sl_queue_port *open_lines(void)
{
    struct sl_queue_port *port = NULL;
    struct sl_error error = SL_NO_ERROR;
    if (sl_target_queue(&sinks, sl_span_str(in_folder("jsonl:", "q/failed.jsonl")), &port, &error) != SL_OK)
        fail_msg("%s", error.text);
    return port;
}

static enum sl_status say(struct sl_queue_port *port, const char *a, const char *b)
{
    struct sl_message messages[2] = {{.body = sl_span_str(a)}, {.body = sl_span_str(b)}};
    struct sl_result results[2];
    port->apply(port, messages, 2, results, &call);
    assert_int_equal(results[0].status, results[1].status);
    return results[0].status;
}

static void messages_become_lines(void **state)
{
    (void)state;
    struct sl_queue_port *port = open_lines();
    assert_int_equal(say(port, "{\"a\":\n1}", "plain \"text\"\n"), SL_OK);
    assert_int_equal(say(port, "{not json", "[1]"), SL_OK);
    assert_file_is("q/failed.jsonl", "{\"a\": 1}\n\"plain \\\"text\\\"\\n\"\n\"{not json\"\n[1]\n");
    port->close(port);
}

static void a_torn_tail_is_cut_off(void **state)
{
    (void)state;
    struct sl_queue_port *port = open_lines();
    char *tail = sl_arena_zalloc(call.arena, 10001);
    memset(tail, 't', 10000);
    test_write(in_folder("", "q/failed.jsonl"), sl_arena_printf(call.arena, "{\"whole\":1}\n%s", tail));
    assert_int_equal(say(port, "{}", "[]"), SL_OK);
    assert_file_is("q/failed.jsonl", "{\"whole\":1}\n{}\n[]\n");
    test_write(in_folder("", "q/failed.jsonl"), "torn from the first byte");
    assert_int_equal(say(port, "{}", "[]"), SL_OK);
    assert_file_is("q/failed.jsonl", "{}\n[]\n");
    port->close(port);
}

static void a_failed_append_leaves_no_torn_line(void **state)
{
    (void)state;
    struct sl_queue_port *port = open_lines();
    assert_int_equal(say(port, "{}", "{}"), SL_OK);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {9, 9};
        setrlimit(RLIMIT_FSIZE, &limit);
        _exit(say(port, "{\"long\":1}", "{\"longer\":2}") != SL_OK ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_file_is("q/failed.jsonl", "{}\n{}\n");
    port->close(port);
}

/* Several processes on one file: every line whole, none lost. */
static void writers_share_a_file(void **state)
{
    (void)state;
    enum { WRITERS = 4, ROUNDS = 50 };
    for (int w = 0; w < WRITERS; w++) {
        if (fork() != 0)
            continue;
        struct sl_queue_port *port = open_lines();
        for (int i = 0; i < ROUNDS; i++)
            if (say(port, "{\"a\":1}", "{\"b\":2}") != SL_OK)
                _exit(1);
        _exit(0);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        wait(&status);
        assert_int_equal(status, 0);
    }
    size_t len;
    char *bytes = test_read(in_folder("", "q/failed.jsonl"), &len);
    assert_int_equal(len, WRITERS * ROUNDS * strlen("{\"a\":1}\n{\"b\":2}\n"));
    for (size_t i = 0; i < len; i += 16)
        assert_memory_equal(bytes + i, "{\"a\":1}\n{\"b\":2}\n", 16);
    free(bytes);
}

static void bad_targets_are_refused_by_name(void **state)
{
    (void)state;
    const struct {
        const char *url, *text;
    } cases[] = {
        {"file:", "write it as file:folder"},
        {"file://x", "write it as file:folder"},
        {"file:x?mode=1", "unknown parameter \"mode\""},
        {"ftp://x", "unknown scheme"},
        {"arn:aws:dynamodb:us-east-1:123456789012:table/orders", "it is an ARN: write dynamodb://orders"},
        {"arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000",
         "write dynamodb://orders"},
        {"arn:aws:sqs:us-east-1:123456789012:orders", "it is an ARN: write sqs://orders"},
        {"arn:aws:s3:::bucket", "it is an ARN: write s3://bucket"},
        {"arn:aws:s3:::bucket/prefix/x", "it is an ARN: write s3://bucket"},
        {"arn:aws:lambda:us-east-1:123456789012:function:f", "unknown scheme"},
        {"arn:", "unknown scheme"},
        {"nothing", "unknown scheme"},
        {"", "unknown scheme"},
        {"jsonl:x", "jsonl: is a queue, but an object store is needed"},
        {"file:/proc/nowhere/x", "cannot create the folder /proc/nowhere"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_object_port *port = NULL;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(sl_target_objects(&sinks, sl_span_str(cases[i].url), &port, &error), SL_FATAL);
        if (!strstr(error.text, cases[i].text))
            fail_msg("%s: got \"%s\", wanted \"%s\"", cases[i].url, error.text, cases[i].text);
        assert_null(port);
    }
    struct sl_queue_port *queue = NULL;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_target_queue(&sinks, SL_LIT("stdout:x"), &queue, &error), SL_FATAL);
    assert_int_equal(sl_target_queue(&sinks, SL_LIT("jsonl:"), &queue, NULL), SL_FATAL);
    assert_int_equal(sl_target_queue(&sinks, SL_LIT("jsonl:/proc/nowhere"), &queue, NULL), SL_FATAL);
    assert_int_equal(sl_target_kind(SL_LIT("stdout:")), SL_PORT_QUEUE);
    assert_int_equal(sl_target_kind(SL_LIT("what")), SL_PORT_NONE);
}

/* More parameters than a target may have: no scheme takes them. */
static void parameters_have_a_limit(void **state)
{
    (void)state;
    static const char *const targets[] = {"file:x", "jsonl:x", "stdout:", "sqlite:x"};
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        struct sl_buffer text;
        struct sl_error error = SL_NO_ERROR;
        sl_buffer_init_in(&text, call.arena, SIZE_MAX);
        sl_buffer_add_str(&text, targets[i]);
        for (int k = 0; k < 17; k++)
            sl_buffer_printf(&text, "%cp%d=1", k ? '&' : '?', k);
        assert_int_equal(sl_target_check(sl_buffer_span(&text), &error), SL_FATAL);
        assert_int_equal(error.status, SL_FATAL);
        if (!strstr(error.text, "more than 16 parameters"))
            fail_msg("%s", error.text);
    }
}

/* Of a webhook whose scheme is mistyped or forgotten, too: its path may be a secret. */
static void a_wrong_target_is_not_quoted_whole(void **state)
{
    (void)state;
    const struct {
        const char *url, *shown;
    } cases[] = {
        {"HTTPS://hooks.example/T0/SECRET", "\"HTTPS://hooks.example\""},
        {" https://hooks.example?SECRET", "\" https://hooks.example\""},
        {"htps://hooks.example#SECRET", "\"htps://hooks.example\""},
        {"hooks.example/T0/SECRET", "\"hooks.example\""},
        {"hooks.example/SECRET?to=https://x", "\"hooks.example\""},
        {"wss://me:SECRET@hooks.example/", "\"\""},
        {"//hooks.example/SECRET", "\"\""},
        {"wss:///SECRET", "\"\""},
        {"dynamo://orders", "\"dynamo://orders\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_queue_port *queue = NULL;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(sl_target_queue(&sinks, sl_span_str(cases[i].url), &queue, &error), SL_FATAL);
        if (!strstr(error.text, cases[i].shown) || strstr(error.text, "SECRET"))
            fail_msg("%s: got \"%s\", wanted %s", cases[i].url, error.text, cases[i].shown);
    }
}

/* ---- what is no object ---- */

static struct sl_object_piece read_one(struct sl_object_port *port, const char *key)
{
    const struct sl_object_read read = {.key = sl_span_str(key), .max_bytes = 10};
    struct sl_object_piece piece;
    port->read(port, &read, 1, &piece, &call);
    return piece;
}

static struct sl_result remove_one(struct sl_object_port *port, const char *key)
{
    const struct sl_object_removal removal = {.key = sl_span_str(key)};
    struct sl_result result;
    port->remove(port, &removal, 1, &result, &call);
    return result;
}

/* Folders, links, pipes and what lies below a file or a link: none is an object, none is followed or removed.
 */
static void only_files_are_objects(void **state)
{
    (void)state;
    struct sl_object_port *port = open_files();
    assert_int_equal(put(port, "folder/x", "x", false).status, SL_OK);
    assert_int_equal(put(port, "file", "x", false).status, SL_OK);
    assert_int_equal(symlink("file", in_folder("", "a/b/link")), 0);
    assert_int_equal(symlink("folder", in_folder("", "a/b/links")), 0);
    assert_int_equal(mkfifo(in_folder("", "a/b/pipe"), 0600), 0);
    static const char *const keys[] = {"folder",     "link",    "links/x", "pipe",
                                       "file/below", "nothing", "no/thing"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct sl_object_piece piece = read_one(port, keys[i]);
        assert_int_equal(piece.result.status, SL_REJECT);
        assert_string_equal(piece.result.code, "NoSuchKey");
        assert_true(!piece.bytes.ptr && !piece.result.not_sent);
        assert_int_equal(remove_one(port, keys[i]).status, SL_OK);
    }
    struct stat info;
    static const char *const left[] = {"a/b/folder/x", "a/b/file", "a/b/link", "a/b/links", "a/b/pipe"};
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        assert_int_equal(lstat(in_folder("", left[i]), &info), 0);
    struct sl_object_page page;
    port->list(port, &(struct sl_object_list){.limit = 0}, &page, &call);
    assert_int_equal(page.n, 2);
    assert_true(sl_span_is(page.entries[0].key, "file") && sl_span_is(page.entries[1].key, "folder/x"));
    assert_int_equal(remove_one(port, "file").status, SL_OK);
    assert_int_not_equal(lstat(in_folder("", "a/b/file"), &info), 0);
    port->close(port);
}

/* A folder for reading alone: nothing is created or written, all else works. */
static void a_folder_may_be_read_alone(void **state)
{
    (void)state;
    struct sl_object_port *port = open_files(), *reader = NULL;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(put(port, "one", "1", false).status, SL_OK);
    port->close(port);
    assert_int_equal(sl_file_open_to_read(in_folder("", "none"), &reader, &error), SL_REJECT);
    assert_non_null(strstr(error.text, "cannot be opened as a folder"));
    assert_int_equal(sl_file_open_to_read(in_folder("", "a/b/one"), &reader, NULL), SL_REJECT);
    assert_int_equal(sl_file_open_to_read(in_folder("", "a/b"), &reader, NULL), SL_OK);
    struct sl_object objects[2] = {{.key = SL_LIT("two")}, {.key = SL_LIT("three")}};
    struct sl_result results[3] = {[2] = {.code = "not asked for"}};
    reader->apply(reader, objects, 2, results, &call);
    assert_string_equal(results[2].code, "not asked for");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(results[i].status, SL_FATAL);
        assert_string_equal(results[i].code, "AccessDenied");
        assert_true(results[i].not_sent);
    }
    struct sl_object_page page;
    reader->list(reader, &(struct sl_object_list){.limit = 0}, &page, &call);
    assert_int_equal(page.n, 1);
    assert_span_is(read_one(reader, "one").bytes, "1");
    reader->close(reader);
}

/* A name that is a folder cannot become an object, nor a file a folder. */
static void a_name_is_an_object_or_a_folder(void **state)
{
    (void)state;
    struct sl_object_port *port = open_files();
    assert_int_equal(put(port, "x/y", "1", false).status, SL_OK);
    static const char *const keys[] = {"x", "x/y/z"};
    for (size_t i = 0; i < 2; i++) {
        struct sl_result result = put(port, keys[i], "2", false);
        assert_int_not_equal(result.status, SL_OK);
        assert_true(result.code && strstr(result.text, "cannot write"));
    }
    assert_span_is(read_one(port, "x/y").bytes, "1");
    port->close(port);
}

/* Lines: what is JSON stays as it is but for its line breaks, anything else becomes a string. */
static void lines_are_json(void **state)
{
    (void)state;
    static const struct {
        struct sl_span body;
        const char *line;
    } cases[] = {{SL_LIT("{\"a\":1}"), "{\"a\":1}"},
                 {SL_LIT("[1,\r\n2]"), "[1,  2]"},
                 {SL_LIT("{\n}\r"), "{ } "},
                 {SL_LIT("{\"a\":1"), "\"{\\\"a\\\":1\""},
                 {SL_LIT("[x]"), "\"[x]\""},
                 {SL_LIT("text\n"), "\"text\\n\""},
                 {SL_LIT("5"), "\"5\""},
                 {SL_LIT(""), "\"\""}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_queue_port *queue = NULL;
        struct sl_message message = {.body = cases[i].body};
        struct sl_result result;
        const char *name = sl_arena_printf(call.arena, "%zu.jsonl", i);
        assert_int_equal(sl_target_queue(&sinks, sl_span_str(in_folder("jsonl:", name)), &queue, NULL),
                         SL_OK);
        queue->apply(queue, &message, 1, &result, &call);
        assert_int_equal(result.status, SL_OK);
        queue->close(queue);
        assert_file_is(name, sl_arena_printf(call.arena, "%s\n", cases[i].line));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(objects_are_whole_and_replaced),
        TEST(keys_cannot_leave_the_folder),
        TEST(a_full_disk_leaves_the_old_object),
        TEST(what_a_killed_writer_left_is_swept),
        TEST(containers_share_a_folder),
        TEST(messages_become_lines),
        TEST(a_torn_tail_is_cut_off),
        TEST(a_failed_append_leaves_no_torn_line),
        TEST(writers_share_a_file),
        TEST(bad_targets_are_refused_by_name),
        TEST(parameters_have_a_limit),
        TEST(a_wrong_target_is_not_quoted_whole),
        TEST(only_files_are_objects),
        TEST(a_folder_may_be_read_alone),
        TEST(a_name_is_an_object_or_a_folder),
        TEST(lines_are_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
