/* A text that a thread reads and unpacks ahead gives what the same text gives without it: its records and its
 * error, whole, cut, damaged, and with a disk that fails; and it ends when nobody wants more. */
#include "tests/support/disk_fault.h"
#include "tests/data/source/pieces.h"

#include "base/buffer.h"
#include "base/gzip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_BYTES ((size_t)1 << 24)
#define LARGE     ((size_t)9 << 20) /* more than all blocks hold, and what is read at a time */

struct input {
    const char *name;
    const struct sl_span *text;
    int fd; /* -1: none */
    bool is_ahead;
};

static enum sl_status open_input(void *self, struct sl_span place, struct sl_source **out,
                                 struct sl_error *error)
{
    const struct input *in = self;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = test_call(arena);
    const struct sl_source_options options = {.sinks = &test_sinks, .place = place};
    const struct sl_source_files what = {.names = &in->name,
                                         .n = 1,
                                         .texts = in->text,
                                         .open_files = in->fd >= 0 ? &in->fd : NULL,
                                         .reads_ahead = in->is_ahead};
    enum sl_status status = sl_source_open_files(&options, &what, &call, out, error);
    sl_arena_destroy(arena);
    return status;
}

static struct sl_span lines(size_t bytes)
{
    static struct sl_buffer text;
    if (!text.len)
        sl_buffer_init(&text, MAX_BYTES);
    sl_buffer_reset(&text);
    for (int i = 0; text.len < bytes; i++)
        sl_buffer_add_str(
            &text, json_printf("{'eventID':'%d','eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'%d'}},"
                               "'NewImage':{'PK':{'S':'%d'},'v':{'S':'%0*d'}},'SequenceNumber':'%d'}}\n",
                               i, i, i, 5000 + i % 7, i, i));
    return sl_buffer_span(&text);
}

static const char *put(const char *name, struct sl_span text, size_t cut)
{
    struct sl_buffer packed;
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
    sl_buffer_init(&packed, MAX_BYTES);
    if (strstr(name, ".gz"))
        sl_gzip_add(&packed, &text, 1, 1);
    else
        sl_buffer_add_span(&packed, text);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(packed.ptr ? packed.ptr : "", 1, packed.len - cut, file), packed.len - cut);
    fclose(file);
    sl_buffer_clean_up(&packed);
    const char *kept = json_printf("%s", path);
    free(path);
    return kept;
}

static void assert_same(struct input in, size_t max_bytes)
{
    in.is_ahead = false;
    struct gathered wanted = gather(open_input, &in, max_bytes, false);
    in.is_ahead = true;
    struct gathered got = gather(open_input, &in, max_bytes, false);
    if (got.status != wanted.status || strcmp(got.error.text, wanted.error.text) != 0 || got.n != wanted.n ||
        strcmp(got.text, wanted.text) != 0)
        fail_msg("%s: %zu records, %s; without a thread %zu records, %s", in.name, got.n, got.error.text,
                 wanted.n, wanted.error.text);
    gathered_clean_up(&wanted);
    gathered_clean_up(&got);
}

static void a_thread_changes_nothing(void **state)
{
    (void)state;
    const struct {
        const char *name;
        struct sl_span text;
        size_t cut;
    } cases[] = {{"large.jsonl", lines(LARGE), 0},     {"cut.jsonl", lines(LARGE), 100},
                 {"large.jsonl.gz", lines(LARGE), 0},  {"cut.jsonl.gz", lines(LARGE), 5},
                 {"short.jsonl.gz", lines(1000), 20},  {"empty.jsonl", SL_LIT(""), 0},
                 {"empty.jsonl.gz", SL_LIT(""), 0},    {"one.jsonl", lines(1), 0},
                 {"nonsense.jsonl", SL_LIT("{\"a"), 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_same((struct input){.name = put(cases[i].name, cases[i].text, cases[i].cut), .fd = -1},
                    SL_SOURCE_PIECE_BYTES);
    assert_same((struct input){.name = json_printf("%s/none.jsonl", folder), .fd = -1}, 1000);
    assert_same((struct input){.name = folder, .fd = -1}, 1000);
}

/* A file that is open already, and a text in memory, are named by their names. */
static void an_open_file_is_read_from_its_beginning(void **state)
{
    (void)state;
    const char *path = put("open.jsonl", lines(20000), 0);
    struct input in = {.name = "the input", .fd = open(path, O_RDONLY | O_CLOEXEC)};
    assert_true(in.fd >= 0 && lseek(in.fd, 100, SEEK_SET) == 100);
    assert_same(in, 1000);
    struct sl_span text = lines(20000);
    assert_same((struct input){.name = "the text", .text = &text, .fd = -1}, 1000);
    close(in.fd);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    in.fd = ends[0];
    struct gathered g = gather(open_input, &in, 1000, false);
    assert_int_equal(g.status, SL_REJECT);
    assert_non_null(strstr(g.error.text, "the input"));
    assert_non_null(strstr(g.error.text, "cannot be read again"));
    gathered_clean_up(&g);
    close(ends[0]);
    close(ends[1]);
}

/* The nth read fails: what came before it is there, and the file is named. */
static void a_read_that_fails_is_told(void **state)
{
    (void)state;
    struct input in = {.name = put("fails.jsonl", lines(LARGE), 0), .fd = -1};
    for (int is_ahead = 0; is_ahead < 2; is_ahead++)
        for (int n = 1; n <= 3; n++) {
            in.is_ahead = is_ahead;
            disk_fault_begin(n, EIO, "read");
            struct gathered g = gather(open_input, &in, SL_SOURCE_PIECE_BYTES, false);
            assert_true(disk_fault_came());
            disk_fault_end();
            assert_int_equal(g.status, SL_REJECT);
            assert_non_null(strstr(g.error.text, "fails.jsonl"));
            assert_non_null(strstr(g.error.text, "Input/output error"));
            assert_int_equal(g.n > 0, n > 1);
            gathered_clean_up(&g);
        }
}

/* Closed after the first piece: the thread, which has all blocks full, ends. */
static void nobody_has_to_read_to_the_end(void **state)
{
    (void)state;
    static const char *const names[] = {"large.jsonl", "large.jsonl.gz"};
    for (int i = 0; i < 6; i++) {
        struct input in = {.name = put(names[i % 2], lines(LARGE), 0), .fd = -1, .is_ahead = true};
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_call call = test_call(arena);
        struct sl_source *source;
        struct sl_source_piece piece;
        assert_int_equal(open_input(&in, sl_span(NULL, 0), &source, NULL), SL_OK);
        if (i >= 2)
            assert_int_equal(sl_source_pull(source, 1000, &call, &piece, NULL), SL_OK);
        if (i >= 4)
            usleep(20000);
        sl_source_close(source);
        sl_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_changes_nothing),
        cmocka_unit_test(an_open_file_is_read_from_its_beginning),
        cmocka_unit_test(a_read_that_fails_is_told),
        cmocka_unit_test(nobody_has_to_read_to_the_end),
    };
    return cmocka_run_group_tests(tests, folder_set_up, folder_clean_up);
}
