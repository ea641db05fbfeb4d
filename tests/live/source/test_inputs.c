/* Inputs that can be read once become ones that can be read again; texts larger than memory go to a file in
 * the folder that the user names; and what cannot be read is said with its name. */
#include "live/source/input.h"
#include "live/source/inputs.h"
#include "live/source/spool.h"
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"

#include "base/disk.h"
#include "base/gzip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES 60000

struct place {
    struct sl_arena *arena;
    char *folder, *temp;
    int input; /* standard input of the test */
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    p->arena = sl_arena_new(4096);
    p->folder = test_folder_in_memory();
    p->temp = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    p->input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    if (p->temp)
        setenv("TMPDIR", p->temp, 1);
    else
        unsetenv("TMPDIR");
    if (p->input >= 0) {
        dup2(p->input, STDIN_FILENO);
        close(p->input);
    }
    sl_arena_destroy(p->arena);
    test_folder_remove(p->folder);
    free(p->temp);
    free(p);
    return 0;
}

/* ---- spools ---- */

/* More than a spool has in memory, in parts of every size; some are larger than that memory. */
static void a_spool_gives_back_what_it_was_given(void **state)
{
    const struct place *p = *state;
    static const size_t sizes[] = {0, 1, 5, SL_SPOOL_BYTES - 3, 100, SL_SPOOL_BYTES, SL_SPOOL_BYTES + 7, 2};
    for (size_t n = 0; n <= sizeof(sizes) / sizeof(sizes[0]); n++) {
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_spool *spool = sl_spool_new(arena);
        struct sl_buffer all;
        struct sl_span text;
        sl_buffer_init(&all, SIZE_MAX / 4);
        sl_buffer_reserve(&all, 1);
        for (size_t i = 0; i < n; i++) {
            size_t from = all.len;
            for (size_t k = 0; k < sizes[i]; k++)
                sl_buffer_add_char(&all, (char)('a' + (k + i) % 23));
            sl_spool_add(spool, sl_span(all.ptr + from, sizes[i]));
            assert_int_equal(sl_spool_bytes(spool), all.len);
        }
        assert_int_equal(sl_spool_done(spool, &text, NULL), SL_OK);
        sl_spool_release(spool);
        assert_int_equal(text.len, all.len);
        assert_true(sl_span_eq(text, sl_buffer_span(&all)) || all.len == 0);
        sl_buffer_clean_up(&all);
        sl_arena_destroy(arena);
    }
    (void)p;
}

static enum sl_status write_spool(struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_spool *spool = sl_spool_new(arena);
    struct sl_span text;
    char *large = calloc(1, SL_SPOOL_BYTES + 1);
    sl_spool_add(spool, sl_span(large, SL_SPOOL_BYTES + 1));
    sl_spool_add(spool, SL_LIT("more"));
    enum sl_status status = sl_spool_done(spool, &text, error);
    free(large);
    sl_arena_destroy(arena);
    return status;
}

/* The folder that the user names is the one that is used, or that the error is about. */
static void the_users_folder_holds(void **state)
{
    const struct place *p = *state;
    struct sl_error error = SL_NO_ERROR;
    setenv("TMPDIR", json_printf("%s/none", p->folder), 1);
    assert_int_equal(write_spool(&error), SL_FATAL);
    assert_non_null(
        strstr(error.text, "cannot be kept: No such file or directory; name a folder with more room"));
    setenv("TMPDIR", json_printf("%0*d", 5000, 0), 1);
    sl_error_clear(&error);
    assert_int_equal(write_spool(&error), SL_FATAL);
    setenv("TMPDIR", p->folder, 1);
    assert_int_equal(write_spool(NULL), SL_OK);
    setenv("TMPDIR", "", 1);
    assert_int_equal(write_spool(NULL), SL_OK);
    unsetenv("TMPDIR");
    assert_int_equal(write_spool(NULL), SL_OK);
}

static void a_spool_that_fails_says_so(void **state)
{
    (void)state;
    unsetenv("TMPDIR");
    size_t n_failed = 0;
    for (int n = 1;; n++) {
        struct sl_error error = SL_NO_ERROR;
        disk_fault_begin(n, ENOSPC, NULL);
        enum sl_status status = write_spool(&error);
        bool has_come = disk_fault_came();
        disk_fault_end();
        n_failed += status != SL_OK;
        if (status != SL_OK)
            assert_non_null(strstr(error.text, "cannot be kept: No space left on device"));
        if (!has_come)
            break;
    }
    assert_true(n_failed > 2);
}

/* ---- inputs that can be read once ---- */

static char *write_lines(const struct place *p, size_t n)
{
    struct sl_buffer text;
    char *path = strdup(json_printf("%s/lines", p->folder));
    sl_buffer_init(&text, 1 << 26);
    for (size_t i = 0; i < n; i++)
        sl_buffer_printf(&text,
                         "{\"eventName\":\"INSERT\",\"dynamodb\":{\"Keys\":{\"k\":{\"N\":\"%zu\"}}}}\n", i);
    assert_int_equal(sl_disk_replace_path(path, sl_buffer_span(&text)), 0);
    sl_buffer_clean_up(&text);
    return path;
}

static size_t count(const struct sl_inputs *inputs)
{
    struct sl_source *source = NULL;
    struct sl_source_piece piece = {.is_last = false};
    struct sl_arena *arena = sl_arena_new(1 << 16);
    size_t n = 0;
    assert_int_equal(sl_inputs_open(inputs, NULL, &source, NULL), SL_OK);
    while (!piece.is_last) {
        const struct sl_call call = {.arena = arena, .deadline_ms = INT64_MAX};
        sl_arena_reset(arena);
        assert_int_equal(sl_source_pull(source, 1 << 16, &call, &piece, NULL), SL_OK);
        n += piece.batch.n;
    }
    sl_source_close(source);
    sl_arena_destroy(arena);
    return n;
}

static void standard_input_is_read_as_often_as_needed(void **state)
{
    const struct place *p = *state;
    char *path = write_lines(p, LINES);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const char *names[] = {"-", path, "text"};
    const struct sl_span texts[] = {
        {NULL, 0},
        {NULL, 0},
        SL_LIT("{\"eventName\":\"REMOVE\",\"dynamodb\":{\"Keys\":{\"k\":{\"N\":\"1\"}}}}")};
    struct sl_inputs inputs = {.names = names, .texts = texts, .n = 3};
    assert_true(dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    close(fd);
    assert_int_equal(sl_inputs_check(&(struct sl_inputs){.names = names, .n = 2}, NULL), SL_OK);
    assert_int_equal(sl_inputs_keep(&inputs, p->arena, NULL), SL_OK);
    assert_true(inputs.kept[0] >= 0 && inputs.kept[1] < 0 && inputs.kept[2] < 0);
    assert_int_equal(lseek(STDIN_FILENO, 0, SEEK_SET), 0); /* (and it is not looked at again) */
    for (int i = 0; i < 3; i++)
        assert_int_equal(count(&inputs), 2 * LINES + 1);
    free(path);
}

/* As many bytes at a time as a pipe has, and interrupted. */
static void a_read_that_fails_is_said_with_its_name(void **state)
{
    const struct place *p = *state;
    char *path = write_lines(p, 10);
    const char *names[] = {"-"};
    size_t n_failed = 0;
    for (int n = 1;; n++) {
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_inputs inputs = {.names = names, .n = 1};
        struct sl_error error = SL_NO_ERROR;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        dup2(fd, STDIN_FILENO);
        close(fd);
        disk_fault->short_reads = n % 2;
        disk_fault_begin(n, n % 3 ? EIO : EINTR, n % 3 ? NULL : "read");
        enum sl_status status = sl_inputs_keep(&inputs, arena, &error);
        bool has_come = disk_fault_came();
        disk_fault_end();
        disk_fault->short_reads = false;
        if (status == SL_OK)
            assert_int_equal(count(&inputs), 10);
        else
            assert_true(has_come && strstr(error.text, "-: ") == error.text);
        n_failed += status != SL_OK;
        sl_arena_destroy(arena);
        if (!has_come)
            break;
    }
    assert_true(n_failed > 1);
    free(path);
}

/* ---- one input, whole ---- */

static void an_input_is_loaded_or_refused_by_name(void **state)
{
    const struct place *p = *state;
    struct sl_buffer packed;
    struct sl_span part = SL_LIT("text"), text;
    struct sl_error error = SL_NO_ERROR;
    char *path = strdup(json_printf("%s/in", p->folder));
    sl_buffer_init(&packed, 4096);
    sl_gzip_add(&packed, &part, 1, 6);
    assert_int_equal(sl_disk_replace_path(path, sl_buffer_span(&packed)), 0);
    assert_int_equal(sl_input_load(path, p->arena, &text, NULL), SL_OK);
    assert_span_is(text, "text");
    assert_int_equal(truncate(path, (off_t)packed.len - 3), 0);
    assert_int_equal(sl_input_load(path, p->arena, &text, &error), SL_REJECT);
    assert_non_null(strstr(error.text, "in: bad gzip at byte "));
    sl_error_clear(&error);
    assert_int_equal(sl_input_load(p->folder, p->arena, &text, &error), SL_REJECT);
    assert_non_null(strstr(error.text, "is a folder; name the files in it"));
    sl_error_clear(&error);
    assert_int_equal(sl_input_load("/no/such/file", p->arena, &text, &error), SL_REJECT);
    assert_string_equal(error.text, "/no/such/file: cannot be opened: No such file or directory");
    test_write(path, "plain");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    dup2(fd, STDIN_FILENO);
    close(fd);
    disk_fault->short_reads = true;
    assert_int_equal(sl_input_load("-", p->arena, &text, NULL), SL_OK);
    disk_fault->short_reads = false;
    assert_span_is(text, "plain");
    assert_int_equal(lseek(STDIN_FILENO, 0, SEEK_SET), 0); /* it stays open */
    sl_buffer_clean_up(&packed);
    free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_spool_gives_back_what_it_was_given),
        TEST(the_users_folder_holds),
        TEST(a_spool_that_fails_says_so),
        TEST(standard_input_is_read_as_often_as_needed),
        TEST(a_read_that_fails_is_said_with_its_name),
        TEST(an_input_is_loaded_or_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
