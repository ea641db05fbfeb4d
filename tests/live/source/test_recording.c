/* Recordings: whatever the inputs are and whatever is asked for, each record is delivered once, in its shard
 * and in order, as Lambda would deliver it; what is out of order is told; what cannot be one stream, and a
 * disk without room, is refused. */
#include "live/source/recording.h"
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"

#include "base/clock.h"
#include "base/disk.h"
#include "base/gzip.h"
#include "streams/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARN   "arn:aws:dynamodb:eu-west-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"
#define FILES 3
#define MOST  7000
#define ITEMS 7

static uint64_t seed;

static uint64_t draw(uint64_t n)
{
    return sl_random_step(&seed) % n;
}

/* ---- inputs ---- */

struct world {
    char *folder;
    const char *names[FILES];
    struct sl_span texts[FILES];
    int kept[FILES];
    struct sl_inputs inputs;
    size_t n, first[FILES + 1]; /* records; the first of each file */
    struct sl_buffer buffers[FILES];
};

/* Record i, as Lambda delivers it or without what it would add. */
static void add_record(struct sl_buffer *out, size_t i, bool is_whole, size_t bytes)
{
    static const char *const events[] = {"INSERT", "MODIFY", "REMOVE"};
    sl_buffer_printf(out, "{\"eventID\":\"e%zu\",\"eventName\":\"%s\",", i, events[i % 3]);
    if (is_whole)
        sl_buffer_add_str(out, "\"eventVersion\":\"1.1\",\"eventSource\":\"aws:dynamodb\",");
    sl_buffer_printf(
        out,
        "\"awsRegion\":\"eu-west-1\",\"dynamodb\":{\"ApproximateCreationDateTime\":%zu,\"Keys\":{"
        "\"PK\":{\"S\":\"i%zu%0*d\"}},\"SequenceNumber\":\"%zu\",\"SizeBytes\":1,"
        "\"StreamViewType\":\"KEYS_ONLY\"},\"eventSourceARN\":\"" ARN "\"}",
        1795168800 + i / 4, i % ITEMS, (int)bytes, 0, 1000 + i);
}

/* One file: lines, an event or an array; plain or packed; on disk or in memory. */
static void add_file(struct world *w, size_t file, size_t n, bool is_whole, size_t bytes)
{
    struct sl_buffer *text = &w->buffers[file], packed;
    unsigned shape = draw(3);
    char *path = NULL;
    sl_buffer_init(text, 1 << 28);
    sl_buffer_add_str(text, shape == 0 ? "" : shape == 1 ? "{\"Records\":[" : "[");
    for (size_t i = 0; i < n; i++) {
        sl_buffer_add_str(text, i == 0 || shape == 0 ? "" : ",");
        add_record(text, w->n++, is_whole, bytes);
        sl_buffer_add_str(text, shape == 0 ? "\n" : "");
    }
    sl_buffer_add_str(text, shape == 0 ? "" : shape == 1 ? "]}" : "]");
    if (draw(3) == 0) {
        struct sl_span part = sl_buffer_span(text);
        sl_buffer_init(&packed, 1 << 28);
        sl_gzip_add(&packed, &part, 1, 1);
        sl_buffer_clean_up(text);
        *text = packed;
    }
    assert_true(asprintf(&path, "%s/%zu", w->folder, file) > 0);
    w->names[file] = path;
    w->texts[file] = sl_span(NULL, 0);
    w->kept[file] = -1;
    if (draw(3) == 0)
        w->texts[file] = sl_buffer_span(text);
    else
        assert_int_equal(sl_disk_replace_path(path, sl_buffer_span(text)), 0);
    if (!w->texts[file].ptr && draw(3) == 0) { /* as a pipe is kept */
        w->kept[file] = open(path, O_RDONLY | O_CLOEXEC);
        unlink(path);
    }
}

static void make_world(struct world *w, uint64_t with_seed, size_t records, size_t bytes)
{
    seed = with_seed;
    *w = (struct world){.folder = test_folder_in_memory()};
    size_t files = 1 + draw(FILES);
    bool is_whole = draw(2);
    for (size_t i = 0; i < files; i++) {
        w->first[i] = w->n;
        add_file(w, i, i + 1 < files ? 1 + draw((records - w->n) / 2) : records - w->n, is_whole || draw(2),
                 bytes);
    }
    w->first[files] = w->n;
    w->inputs = (struct sl_inputs){.names = w->names, .texts = w->texts, .kept = w->kept, .n = files};
}

static void world_clean_up(struct world *w)
{
    for (size_t i = 0; i < w->inputs.n; i++) {
        free((char *)(uintptr_t)w->names[i]);
        sl_buffer_clean_up(&w->buffers[i]);
        if (w->kept[i] >= 0)
            close(w->kept[i]);
    }
    test_folder_remove(w->folder);
}

/* ---- what is delivered ---- */

struct seen {
    size_t n[FILES + 3], last[FILES + 3]; /* of each shard: records; the last one */
    size_t shard_of_item[ITEMS];
    bool was[MOST];
    int64_t available_ms;
};

static size_t file_of(const struct world *w, size_t i)
{
    size_t file = 0;
    while (i >= w->first[file + 1])
        file++;
    return file;
}

/* The number of the record, from its text, which has to be Lambda's. */
static size_t number_of(struct sl_span text)
{
    struct sl_buffer wanted;
    const char *at = memmem(text.ptr, text.len, "\"SequenceNumber\":\"", 18);
    assert_non_null(at);
    size_t i = strtoul(at + 18, NULL, 10) - 1000;
    const char *key = memmem(text.ptr, text.len, "{\"S\":\"i", 7);
    sl_buffer_init(&wanted, 1 << 20);
    add_record(&wanted, i, true, (size_t)((const char *)memchr(key + 7, '"', 1 << 19) - key) - 8);
    sl_buffer_add_char(&wanted, '\0');
    assert_span_is(text, wanted.ptr);
    sl_buffer_clean_up(&wanted);
    return i;
}

static void take(const struct world *w, const struct sl_recording_options *options, struct seen *seen,
                 size_t shard, const struct sl_esm_record *r)
{
    size_t i = number_of(r->text);
    assert_true(i < w->n && !seen->was[i]);
    seen->was[i] = true;
    assert_span_is(r->id, json_printf("%zu", 1000 + i));
    if (seen->n[shard]++)
        assert_true(seen->last[shard] < i);
    seen->last[shard] = i;
    if (options->is_shard_per_file)
        assert_int_equal(shard, file_of(w, i));
    else if (seen->shard_of_item[i % ITEMS] == SIZE_MAX)
        seen->shard_of_item[i % ITEMS] = shard;
    else
        assert_int_equal(seen->shard_of_item[i % ITEMS], shard);
    assert_int_equal(r->item_key.ptr != NULL, options->needs_item_keys);
    assert_int_equal(r->created_ms / 1000, 1795168800 + i / 4);
    if (options->needs_records)
        assert_span_is(sl_record_text(r->record, SL_FIELD_IDENTIFIER), json_printf("%zu", 1000 + i));
    if (options->is_live)
        assert_int_equal(r->available_ms, r->created_ms);
    else
        assert_int_equal(r->available_ms, seen->available_ms);
}

static void assert_delivered(const struct world *w, const struct sl_recording_options *options,
                             const struct sl_recording *r)
{
    struct seen *seen = calloc(1, sizeof(*seen));
    memset(seen->shard_of_item, -1, sizeof(seen->shard_of_item));
    seen->available_ms = r->start_ms;
    assert_int_equal(r->n, w->n);
    assert_int_equal(r->by_event[SL_INSERT], (w->n + 2) / 3);
    assert_int_equal(r->by_event[SL_REMOVE], w->n / 3);
    for (size_t k = 0; k < r->n_shards; k++) {
        const struct sl_esm_record *records = r->shards[k].records;
        size_t n = r->shards[k].n, pages = 0;
        while ((n = r->pages ? sl_recording_more(r, k, &records) : pages ? 0 : n)) {
            for (size_t i = 0; i < n; i++)
                take(w, options, seen, k, &records[i]);
            sl_recording_release(r);
            if (++pages > 1 && r->pages && draw(2)) {
                sl_recording_forget(r, k, 1);
                pages--;
            }
        }
    }
    for (size_t i = 0; i < w->n; i++)
        assert_true(seen->was[i]);
    free(seen);
}

static struct sl_recording_options random_options(const struct world *w)
{
    struct sl_recording_options options = {.inputs = &w->inputs,
                                           .default_arn = ARN,
                                           .is_live = draw(4) == 0,
                                           .is_shard_per_file = draw(3) == 0,
                                           .needs_item_keys = draw(4) == 0,
                                           .needs_records = draw(3) == 0,
                                           .needs_all = draw(4) == 0};
    options.shards = options.is_shard_per_file ? 0 : (int64_t)draw(4);
    return options;
}

static void each_record_is_delivered_once_in_order(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 150; i++) {
        struct world w;
        struct sl_recording r;
        struct sl_error error = SL_NO_ERROR;
        struct sl_arena *arena = sl_arena_new(1 << 16);
        make_world(&w, i, i % 25 == 0 ? MOST : 4 + draw(60), i % 10 == 0 ? 400 : 1);
        struct sl_recording_options options = random_options(&w);
        if (sl_recording_build(&options, arena, &r, &error) != SL_OK)
            fail_msg("world %d: %s", (int)i, error.text);
        assert_delivered(&w, &options, &r);
        assert_null(sl_sequence_late(&r.order));
        assert_null(sl_sequence_streams(&r.order));
        assert_string_equal(r.stream_arn, ARN);
        sl_arena_destroy(arena);
        world_clean_up(&w);
    }
}

/* ---- a stream that cannot be, and what is told of it ---- */

#define LINE(arn, number)                                                                                    \
    "{'eventName':'INSERT','eventSourceARN':'" arn                                                           \
    "','dynamodb':{'Keys':{'k':{'S':'a'}},'SequenceNumber':'" number "'}}\n"
#define DATA "eyJkeW5hbW9kYiI6eyJLZXlzIjp7ImsiOnsiUyI6ImEifX19LCJldmVudE5hbWUiOiJJTlNFUlQifQ=="

static void build(const char *const *texts, size_t n, struct sl_arena *arena, struct sl_recording *out,
                  struct sl_error *error)
{
    static const char *const names[] = {"a", "b", "c"};
    static struct sl_span spans[3]; /* what a recording borrows */
    static struct sl_inputs inputs;
    static struct sl_recording_options options;
    for (size_t i = 0; i < n; i++)
        spans[i] = json_span(texts[i]);
    inputs = (struct sl_inputs){.names = names, .texts = spans, .n = n};
    options = (struct sl_recording_options){.inputs = &inputs, .default_arn = ARN};
    enum sl_status status = sl_recording_build(&options, arena, out, error);
    assert_int_equal(status == SL_OK, !error->text[0]);
}

static void what_no_shard_would_hold_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *texts[2], *late, *streams, *error;
    } cases[] = {
        {{LINE("x", "10"), LINE("x", "9")},
         "1 record is out of order. record 0 of b (SequenceNumber 9) does not come after record 0 of a (10)",
         NULL,
         NULL},
        {{LINE("x", "10") LINE("x", "10"), LINE("x", "0010")}, "2 records are out of order", NULL, NULL},
        {{LINE("x", "9") LINE("x", "0010"), LINE("x", "11")}, NULL, NULL, NULL},
        {{LINE("x", "9"), LINE("y", "10")},
         NULL,
         "one shard has records of two streams: x (record 0 of a) and y",
         NULL},
        {{LINE("x", "9"), "{'Item':{'k':{'S':'a'}}}\n"},
         NULL,
         NULL,
         "b: record 0 is an item without keys: name the key attributes with --keys PK,SK"},
        {{LINE("x", "9"),
          "{'kinesis':{'sequenceNumber':'1','data':'" DATA "'},'eventSource':'aws:kinesis'}\n"},
         NULL,
         NULL,
         "b: one stream cannot hold records of both DynamoDB Streams and Kinesis, and a has the other"},
        {{LINE("x", "9"), "{'dynamodb':{}\n"}, NULL, NULL, "b: "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_recording r;
        struct sl_error error = SL_NO_ERROR;
        build(cases[i].texts, 2, arena, &r, &error);
        if (cases[i].error ? !strstr(error.text, cases[i].error) : error.text[0] != '\0')
            fail_msg("case %zu: %s", i, error.text);
        const char *late = cases[i].error ? NULL : sl_sequence_late(&r.order);
        const char *streams = cases[i].error ? NULL : sl_sequence_streams(&r.order);
        if (cases[i].late ? !late || !strstr(late, cases[i].late) : late != NULL)
            fail_msg("case %zu: %s", i, late ? late : "not late");
        if (cases[i].streams ? !streams || !strstr(streams, cases[i].streams) : streams != NULL)
            fail_msg("case %zu: %s", i, streams ? streams : "one stream");
        sl_arena_destroy(arena);
    }
}

/* Records that do not say when and of which stream have what the others say, else what the caller says. */
static void what_a_record_lacks_comes_from_the_others(void **state)
{
    (void)state;
    static const char bare[] = "{'eventName':'INSERT','dynamodb':{'Keys':{'k':{'S':'a'}}}}\n";
    const char *const with[] = {bare, LINE("arn:aws:dynamodb:eu-west-1:1:table/u/stream/x", "5")};
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_recording r;
    struct sl_error error = SL_NO_ERROR;
    const struct sl_esm_record *records;
    build(with, 2, arena, &r, &error);
    assert_string_equal(r.stream_arn, "arn:aws:dynamodb:eu-west-1:1:table/u/stream/x");
    assert_int_equal(sl_recording_more(&r, 0, &records), 1);
    assert_non_null(memmem(records[0].text.ptr, records[0].text.len, "table/u/stream/x\"", 17));
    sl_arena_reset(arena);
    build(with, 1, arena, &r, &error);
    assert_string_equal(r.stream_arn, ARN);
    sl_arena_reset(arena);
    build(with, 0, arena, &r, &error); /* no input: a stream of nothing */
    assert_int_equal(r.n, 0);
    sl_arena_destroy(arena);
}

/* ---- the disk ---- */

/* More than a spool has in memory. */
static void a_disk_without_room_is_told(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 3, 4000, 1500);
    for (int n = 1;; n++) {
        struct sl_arena *arena = sl_arena_new(1 << 16);
        struct sl_recording_options options = {.inputs = &w.inputs, .default_arn = ARN, .needs_all = true};
        struct sl_recording r;
        struct sl_error error = SL_NO_ERROR;
        disk_fault_begin(n, ENOSPC, NULL);
        enum sl_status status = sl_recording_build(&options, arena, &r, &error);
        bool has_come = disk_fault_came();
        disk_fault_end();
        if (status == SL_OK)
            assert_delivered(&w, &options, &r);
        else
            assert_true(has_come && strstr(error.text, "No space left on device"));
        sl_arena_destroy(arena);
        if (!has_come)
            break;
    }
    world_clean_up(&w);
}

/* Its records would be others' than those that were counted: the process ends. */
static void an_input_that_changes_ends_the_replay(void **state)
{
    (void)state;
    struct sl_buffer text;
    char *folder = test_folder_in_memory();
    char *path = strdup(json_printf("%s/a", folder)), *said = strdup(json_printf("%s/said", folder));
    sl_buffer_init(&text, 1 << 20);
    for (size_t i = 0; i < 4; i++) {
        add_record(&text, i, true, 1);
        sl_buffer_add_char(&text, '\n');
    }
    assert_int_equal(sl_disk_replace_path(path, sl_buffer_span(&text)), 0);
    int fd = open(said, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    pid_t pid = fork();
    if (pid == 0) {
        const char *names[] = {path};
        const struct sl_inputs inputs = {.names = names, .n = 1};
        const struct sl_recording_options options = {.inputs = &inputs, .default_arn = ARN};
        struct sl_recording r;
        const struct sl_esm_record *records;
        struct sl_arena *arena = sl_arena_new(4096);
        if (sl_recording_build(&options, arena, &r, NULL) != SL_OK || truncate(path, 10) != 0 ||
            dup2(fd, STDERR_FILENO) < 0)
            _exit(0);
        (void)sl_recording_more(&r, 0, &records);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    char *line = test_read(said, NULL);
    assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    assert_non_null(strstr(line, "a: has changed since the replay began; give it a copy"));
    close(fd);
    free(line);
    free(path);
    free(said);
    sl_buffer_clean_up(&text);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_record_is_delivered_once_in_order),
        cmocka_unit_test(what_no_shard_would_hold_is_told),
        cmocka_unit_test(what_a_record_lacks_comes_from_the_others),
        cmocka_unit_test(a_disk_without_room_is_told),
        cmocka_unit_test(an_input_that_changes_ends_the_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
