/* Reads a source in every way there is. */
#include "tests/data/source/pieces.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "streams/record.h"

#include "tests/support/aws_call.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUCKET "sluice-sources"

extern char **environ;

struct sl_sinks test_sinks;
static struct sl_log log_to_nobody;
static struct sl_vars vars;

int sinks_set_up(void **state)
{
    (void)state;
    vars.list = (const char *const *)environ;
    sl_log_init(&log_to_nobody, -1, SL_OFF, SL_LOG_TEXT, sl_clock_system());
    sl_sinks_init(&test_sinks, sl_clock_system(), &log_to_nobody, &vars);
    return 0;
}

int sinks_clean_up(void **state)
{
    (void)state;
    sl_sinks_clean_up(&test_sinks);
    sl_log_clean_up(&log_to_nobody);
    return 0;
}

char *folder;

int folder_set_up(void **state)
{
    folder = test_folder_in_memory();
    return sinks_set_up(state);
}

int folder_clean_up(void **state)
{
    test_folder_remove(folder);
    return sinks_clean_up(state);
}

struct sl_call test_call(struct sl_arena *arena)
{
    struct sl_clock *clock = sl_clock_system();
    return (struct sl_call){.arena = arena, .deadline_ms = clock->now_ms(clock) + 60000};
}

static void add(struct sl_buffer *text, const struct sl_batch *batch)
{
    for (size_t i = 0; i < batch->n; i++) {
        sl_buffer_add_span(text, sl_record_text(sl_batch_record(batch, i), SL_FIELD_RAW));
        sl_buffer_add_char(text, '\n');
    }
}

/* ---- a deadline that comes while a piece is read ---- */

/* The time is 0 for so many looks, and then 1, which is the deadline. */
struct hurry {
    struct sl_clock clock;
    unsigned looks, left;
};

static int64_t hurried_now_ms(struct sl_clock *clock)
{
    struct hurry *h = (struct hurry *)clock;
    h->left -= h->left > 0;
    return h->left ? 0 : 1;
}

/* The next pull may look at the clock once more often than one that came to nothing. */
static struct sl_call hurried_call(struct hurry *h, struct sl_arena *arena, bool has_moved)
{
    h->looks = has_moved ? 1 : h->looks + 1;
    h->left = h->looks;
    return (struct sl_call){.arena = arena, .deadline_ms = 1};
}

static struct gathered gather_at(open_fn open, void *self, size_t max_bytes, bool is_resumed, struct hurry *h)
{
    struct gathered g = {.error = SL_NO_ERROR};
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_buffer text, place;
    struct sl_source *source = NULL;
    bool is_last = false, has_moved = true;
    sl_buffer_init(&text, SIZE_MAX / 4);
    sl_buffer_init(&place, SIZE_MAX / 4);
    for (; !is_last && g.status == SL_OK; g.pieces++) {
        struct sl_source_piece piece;
        struct sl_call call = test_call(arena);
        assert_true(g.pieces < 100000);
        if (!source)
            g.status = open(self, place.len ? sl_buffer_span(&place) : sl_span(NULL, 0), &source, &g.error);
        if (h)
            call = hurried_call(h, arena, has_moved);
        if (g.status == SL_OK)
            g.status = sl_source_pull(source, max_bytes, &call, &piece, &g.error);
        if (g.status == SL_OK) {
            is_last = piece.is_last;
            add(&text, &piece.batch);
            g.n += piece.batch.n;
            assert_true(piece.place.len > 0 && piece.place.len <= SL_SOURCE_PLACE_BYTES);
            has_moved = !sl_span_eq(sl_buffer_span(&place), piece.place);
            sl_buffer_reset(&place);
            sl_buffer_add_span(&place, piece.place);
        }
        if (is_resumed || g.status != SL_OK) {
            sl_source_close(source);
            source = NULL;
        }
        sl_arena_reset(arena);
    }
    sl_source_close(source);
    sl_buffer_add_char(&text, '\0');
    g.text = strdup(text.ptr);
    sl_buffer_clean_up(&text);
    sl_buffer_clean_up(&place);
    sl_arena_destroy(arena);
    return g;
}

struct gathered gather(open_fn open, void *self, size_t max_bytes, bool is_resumed)
{
    return gather_at(open, self, max_bytes, is_resumed, NULL);
}

struct gathered gather_hurried(open_fn open, void *self, size_t max_bytes, bool is_resumed)
{
    struct sl_clock *clock = test_sinks.clock;
    struct hurry h = {.clock = *clock};
    h.clock.now_ms = hurried_now_ms;
    test_sinks.clock = &h.clock;
    struct gathered g = gather_at(open, self, max_bytes, is_resumed, &h);
    test_sinks.clock = clock;
    return g;
}

void gathered_clean_up(struct gathered *g)
{
    free(g->text);
}

static void assert_same(const struct gathered *want, struct gathered got)
{
    assert_int_equal(got.status, want->status);
    assert_string_equal(got.error.text, want->error.text);
    assert_string_equal(got.error.code, want->error.code);
    if (want->status == SL_OK) {
        assert_string_equal(got.text, want->text);
        assert_int_equal(got.n, want->n);
    } else {
        /* Good records before the bad one may have come: all of them in order. */
        assert_true(strlen(got.text) >= strlen(want->text));
        assert_memory_equal(got.text, want->text, strlen(want->text));
    }
    gathered_clean_up(&got);
}

void assert_pieces_agree(open_fn open, void *self, size_t most)
{
    struct gathered whole = gather(open, self, SL_SOURCE_PIECE_BYTES, false);
    for (size_t max_bytes = 1; max_bytes <= most; max_bytes += max_bytes < 40 ? 1 : max_bytes / 3) {
        assert_same(&whole, gather(open, self, max_bytes, false));
        assert_same(&whole, gather(open, self, max_bytes, true));
        /* (A service's request ends with the deadline itself, and the pull is SL_RETRY: tests/sinks.) */
        if (whole.status != SL_OK || getenv("MOTO_ENDPOINT") || getenv("DYNAMODB_ENDPOINT"))
            continue;
        assert_same(&whole, gather_hurried(open, self, max_bytes, false));
        assert_same(&whole, gather_hurried(open, self, max_bytes, true));
    }
    gathered_clean_up(&whole);
}

/* ---- S3 ---- */

static void copy_files(struct sl_object_port *port, const char *path, const char *below)
{
    char full[1000], key[1000];
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat st;
        snprintf(full, sizeof(full), "%s/%s", path, entry->d_name);
        snprintf(key, sizeof(key), "%s%s", below, entry->d_name);
        if (entry->d_name[0] == '.' || stat(full, &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode)) {
            char deeper[1001];
            snprintf(deeper, sizeof(deeper), "%s/", key);
            copy_files(port, full, deeper);
            continue;
        }
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_call call = test_call(arena);
        size_t len;
        char *bytes = test_read(full, &len);
        struct sl_object object = {.key = sl_span_str(key), .body = sl_span(bytes, len)};
        struct sl_result result;
        port->apply(port, &object, 1, &result, &call);
        assert_int_equal(result.status, SL_OK);
        free(bytes);
        sl_arena_destroy(arena);
    }
    closedir(dir);
}

/* Copies what is at `path` to a prefix of its own in the bucket; returns its URL, NULL when there is no S3.
 */
const char *copy_to_s3(const char *path)
{
    static int n;
    static char url[300];
    struct sl_object_port *port;
    if (!getenv("MOTO_ENDPOINT"))
        return NULL;
    if (n == 0) {
        struct sl_arena *arena = sl_arena_new(4096);
        aws_s3(&test_sinks, arena, "PUT", "/" BUCKET, NULL);
        sl_arena_destroy(arena);
    }
    snprintf(url, sizeof(url), "s3://" BUCKET "/copy-%d-%d/", (int)getpid(), n++);
    assert_int_equal(sl_target_objects(&test_sinks, sl_span(url, strlen(url) - 1), &port, NULL), SL_OK);
    copy_files(port, path, "");
    port->close(port);
    return url;
}
