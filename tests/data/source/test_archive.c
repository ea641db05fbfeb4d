/* Our archive as a source: its objects in order, whole and in pieces, over a folder and over S3. */
#include "tests/data/source/pieces.h"

#include "base/disk.h"
#include "base/gzip.h"
#include "streams/record.h"
#include "tests/support/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES ((size_t)1 << 24)

static enum sl_status open_place(void *self, struct sl_span place, struct sl_source **out,
                                 struct sl_error *error)
{
    struct sl_call call = test_call(NULL);
    const struct sl_source_options options = {.sinks = &test_sinks, .place = place};
    const struct sl_source_archive what = {.place = self};
    return sl_source_open_archive(&options, &what, &call, out, error);
}

static void put(const char *name, struct sl_span text)
{
    struct sl_buffer packed;
    const char *path = json_printf("%s/%s", folder, name);
    sl_buffer_init(&packed, MAX_BYTES);
    if (sl_span_ends(sl_span_str(name), SL_LIT(".gz")))
        sl_gzip_add(&packed, &text, 1, 1);
    else
        sl_buffer_add_span(&packed, text);
    assert_int_equal(sl_disk_make_parent(path, NULL), SL_OK);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(packed.ptr ? packed.ptr : "", 1, packed.len, file), packed.len);
    fclose(file);
    sl_buffer_clean_up(&packed);
}

/* Objects of one record each, and one that is larger than what is read ahead. */
static void fill(void)
{
    struct sl_buffer large;
    for (int i = 0; i < 20; i++)
        put(json_printf("dt=2026-11-%02d/%d.jsonl%s", 1 + i / 4, i, i % 3 ? ".gz" : ""),
            sl_span_str(json_printf(RECORD("INSERT", "%d", KEYS(PK("a")) NEW(PK("a"))) "\n", i, i)));
    sl_buffer_init(&large, MAX_BYTES);
    for (int i = 0; large.len < ((size_t)5 << 20); i++)
        sl_buffer_add_str(&large, json_printf(RECORD("MODIFY", "9%05d",
                                                     KEYS(PK("b")) NEW(PK("b") ",'v':" S("%09000d"))) "\n",
                                              i, i, i));
    put("dt=2026-11-02/large.jsonl", sl_buffer_span(&large));
    sl_buffer_clean_up(&large);
    put("dt=2026-11-02/empty.jsonl.gz", SL_LIT(""));
    put("AWSDynamoDB/1/manifest-summary.json", SL_LIT("{}"));
    put("notes.txt", SL_LIT("no record"));
}

static void check(const char *place)
{
    struct gathered whole = gather(open_place, (void *)(uintptr_t)place, SL_SOURCE_PIECE_BYTES, false);
    assert_string_equal(whole.error.text, "");
    assert_true(whole.n > 500);
    /* In the order of the keys: 0, 1, 2, 3 of the first day; 4 to 7 and the large one of the second. */
    const char *at = whole.text;
    static const char *const order[] = {"'SequenceNumber':'0'",      "'SequenceNumber':'3'",
                                        "'SequenceNumber':'4'",      "'SequenceNumber':'7'",
                                        "'SequenceNumber':'900000'", "'SequenceNumber':'8'"};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        assert_non_null(at = strstr(at, json(order[i])));
    for (size_t max_bytes = 1000; max_bytes < MAX_BYTES; max_bytes *= 30)
        for (int is_resumed = max_bytes < 5000 ? 0 : 1; is_resumed >= 0; is_resumed--) {
            struct gathered g = gather(open_place, (void *)(uintptr_t)place, max_bytes, is_resumed);
            assert_int_equal(g.n, whole.n);
            assert_string_equal(g.text, whole.text);
            gathered_clean_up(&g);
        }
    gathered_clean_up(&whole);
}

static void its_objects_come_in_order(void **state)
{
    (void)state;
    fill();
    check(folder);
    struct gathered whole = gather(open_place, folder, SL_SOURCE_PIECE_BYTES, false);
    for (int is_resumed = 0; is_resumed < 2; is_resumed++) {
        struct gathered g = gather_hurried(open_place, folder, 400000, is_resumed);
        assert_string_equal(g.text, whole.text);
        gathered_clean_up(&g);
    }
    gathered_clean_up(&whole);
    const char *url = copy_to_s3(folder);
    if (url)
        check(url);
}

/* An archive that nobody may write to is read; nothing is left in it. */
static void nothing_is_written_to_it(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(stat(json_printf("%s/.partial", folder), &st), -1);
}

static void fails(const char *place, const char *code, const char *text)
{
    struct gathered g = gather(open_place, (void *)(uintptr_t)place, SL_SOURCE_PIECE_BYTES, false);
    assert_int_equal(g.status, SL_REJECT);
    assert_string_equal(g.error.code, code);
    assert_non_null(strstr(g.error.text, text));
    gathered_clean_up(&g);
}

static void other_formats_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{'Item':{" PK("a") "}}\n", "{'Metadata':{'WriteTimestampMicros':{'N':'1'}},'Keys':{" PK("a") "}}\n",
        "{'Records':[" RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a"))) "]}\n"};
    for (size_t i = 0; i < 3; i++) {
        put("other/x.jsonl.gz", json_span(texts[i]));
        fails(json_printf("%s/other", folder), "NotRecords",
              "other/x.jsonl.gz: is not in the archive's format");
    }
    put("other/x.jsonl.gz", json_span("{'PK':'a'}\n"));
    fails(json_printf("%s/other", folder), "NotAStreamEvent", "other/x.jsonl.gz: not a stream event");
    put("other/x.jsonl", json_span("{'PK':'a"));
    fails(json_printf("%s/other", folder), "InvalidJson", "other/x.jsonl: invalid JSON at byte 8");
    fails(json_printf("%s/nosuch", folder), "NotFound", "cannot be opened as a folder");
}

static void an_object_that_is_gone_is_told(void **state)
{
    (void)state;
    struct sl_source *source;
    struct sl_source_piece piece;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = test_call(arena);
    struct sl_error error = SL_NO_ERROR;
    put("gone/a.jsonl", json_span(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a"))) "\n" RECORD(
                            "INSERT", "2", KEYS(PK("a")) NEW(PK("a"))) "\n"));
    put("gone/b.jsonl", json_span(RECORD("INSERT", "3", KEYS(PK("a")) NEW(PK("a"))) "\n"));
    char *place = strdup(json_printf("%s/gone", folder));
    assert_int_equal(open_place(place, sl_span(NULL, 0), &source, NULL), SL_OK);
    assert_int_equal(sl_source_pull(source, 1, &call, &piece, NULL), SL_OK);
    assert_int_equal(piece.batch.n, 1);
    char *at = strndup(piece.place.ptr, piece.place.len);
    sl_source_close(source);
    unlink(json_printf("%s/gone/a.jsonl", folder));
    assert_int_equal(open_place(place, sl_span_str(at), &source, NULL), SL_OK);
    assert_int_equal(sl_source_pull(source, 1, &call, &piece, &error), SL_REJECT);
    assert_string_equal(error.code, "WrongPlace");
    assert_non_null(strstr(error.text, "the object a.jsonl, in which the place to go on at lies, is gone"));
    sl_source_close(source);
    sl_error_clear(&error);
    unlink(json_printf("%s/gone/b.jsonl", folder)); /* the last one, too */
    assert_int_equal(open_place(place, sl_span_str(at), &source, NULL), SL_OK);
    assert_int_equal(sl_source_pull(source, 1, &call, &piece, &error), SL_REJECT);
    assert_string_equal(error.code, "WrongPlace");
    sl_source_close(source);
    sl_error_clear(&error);
    assert_int_equal(open_place((void *)(uintptr_t)folder, sl_span_str(at), &source, &error), SL_REJECT);
    assert_string_equal(error.code, "WrongPlace");
    free(at);
    free(place);
    sl_arena_destroy(arena);
}

/* Listed with another size than it has when it is read: by a store that lies, or by a writer. */
static void an_object_that_changed_since_it_was_listed_is_told(void **state)
{
    (void)state;
    struct sl_source *source;
    struct sl_source_piece piece;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = test_call(arena);
    struct sl_error error = SL_NO_ERROR;
    static const char record[] = RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a"))) "\n";
    put("changed/a.jsonl", json_span(record));
    for (int i = 0; i < 9; i++) /* more than are read ahead */
        put(json_printf("changed/b%d.jsonl", i), json_span(record));
    put("changed/c.jsonl", json_span(record));
    char *place = strdup(json_printf("%s/changed", folder));
    assert_int_equal(open_place(place, sl_span(NULL, 0), &source, NULL), SL_OK);
    assert_int_equal(sl_source_pull(source, 1000, &call, &piece, NULL), SL_OK);
    put("changed/c.jsonl", SL_LIT(""));
    enum sl_status status = SL_OK;
    for (size_t i = 0; status == SL_OK && i < 20; i++)
        status = sl_source_pull(source, 1000, &call, &piece, &error);
    assert_int_equal(status, SL_REJECT);
    assert_string_equal(error.code, "WrongSize");
    sl_source_close(source);
    free(place);
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_objects_come_in_order),
        cmocka_unit_test(nothing_is_written_to_it),
        cmocka_unit_test(other_formats_are_refused),
        cmocka_unit_test(an_object_that_is_gone_is_told),
        cmocka_unit_test(an_object_that_changed_since_it_was_listed_is_told),
    };
    return cmocka_run_group_tests(tests, folder_set_up, folder_clean_up);
}
