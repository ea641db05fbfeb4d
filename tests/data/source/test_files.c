/* Files as a source: pieces mean what the whole text means, for every shape, whole and cut at every byte. */
#include "tests/data/source/pieces.h"

#include "base/gzip.h"
#include "streams/record.h"
#include "tests/support/events.h"
#include "data/source/text.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_BYTES ((size_t)1 << 22)

struct input {
    char path[300];
    const char *name;
    bool as_received;
    size_t document_bytes;
};

static enum sl_status open_input(void *self, struct sl_span place, struct sl_source **out,
                                 struct sl_error *error)
{
    struct input *in = self;
    struct sl_call call = test_call(NULL);
    const struct sl_source_options options = {.sinks = &test_sinks,
                                              .keys = {.names = {SL_LIT("PK")}, .n = 1},
                                              .as_received = in->as_received,
                                              .place = place};
    in->name = in->path;
    const struct sl_source_files what = {.names = &in->name, .n = 1, .document_bytes = in->document_bytes};
    return sl_source_open_files(&options, &what, &call, out, error);
}

static void write_bytes(const char *path, struct sl_span bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.ptr ? bytes.ptr : "", 1, bytes.len, file), bytes.len);
    fclose(file);
}

static struct input input_of(struct sl_span bytes)
{
    struct input in = {.as_received = true};
    snprintf(in.path, sizeof(in.path), "%s/input", folder);
    write_bytes(in.path, bytes);
    return in;
}

#define A RECORD("INSERT", "101", KEYS(PK("a")) NEW(PK("a")))
#define B RECORD("MODIFY", "102", KEYS(PK("b")) NEW(PK("b") ",'v':" N("2")) OLD(PK("b")))
#define SPREAD                                                                                               \
    "{'eventName':'INSERT',\n 'dynamodb':\n{'Keys':{'PK':\n{'S':'s'}},'SequenceNumber':'7',\n"               \
    "'NewImage':{'PK':{'S':'s'}}}\n}"
#define ITEM(id) "{'Item':{" PK(id) ",'v':{'N':'1'}}}"
#define CHANGE(id)                                                                                           \
    "{'Metadata':{'WriteTimestampMicros':{'N':'1767265199000001'}},'Keys':{" PK(id) "},'NewImage':{" PK(     \
        id) "}}"
#define IN_KINESIS                                                                                           \
    "{'kinesis':{'sequenceNumber':'49','data':'eyJldmVudE5hbWUiOiJJTlNFUlQiLCJkeW5hbW9kYiI6eyJLZXlzIjp7Il"   \
    "BLIjp7IlMiOiJhIn19LCJOZXdJbWFnZSI6eyJQSyI6eyJTIjoiYSJ9fX19'}}"

static const char *const texts[] = {
    A "\n" B "\n" A "\n",
    A B "  " A,
    "\n\n" SPREAD "\n\n" SPREAD "\r\n" A "\n \n",
    ITEM("1") "\n" ITEM("22") "\n" ITEM("333") "\n",
    CHANGE("1") "\n" ITEM("2") "\n" A "\n",
    EVENT(A, B, A) "\n",
    "{'Records':\n[" A ",\n" B "]\n,'x':1}\n\n",
    "[" A ",\n" B "]",
    IN_KINESIS "\n" IN_KINESIS "\n" IN_KINESIS "\n",
    "{'Records':[" IN_KINESIS "]}",
    "\xEF\xBB\xBF" A "\n" B "\n",
    "",
    "\n",
    A "\n" EVENT(A) "\n",
    EVENT(A) "\n" A "\n",
    A "\n7\n",
    A "\n{'foo':1}\n",
    "{'foo':1}\n" A "\n",
    A "\n" A "\n{'eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'a'}},'NewImage':{'n':{'N':'x'}}}}\n" A
      "\n",
};

#define TEXTS (sizeof(texts) / sizeof(texts[0]))

/* The decoder's own word on the whole text, as a source gives it. */
static void assert_is_what_the_decoder_says(struct sl_span text, const struct gathered *got)
{
    struct sl_arena *arena = sl_arena_new(4096);
    const struct sl_decode_options options = {.any_shape = true};
    struct sl_batch batch;
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = sl_batch_decode(text, arena, &options, &batch, &why);
    assert_int_equal(got->status, status);
    if (status == SL_OK)
        assert_int_equal(got->n, batch.n);
    else
        assert_string_equal(got->error.code, why.code);
    if (status != SL_OK && strcmp(why.code, "InvalidJson") != 0)
        assert_true(strstr(got->error.text, why.text) && got->error.offset == why.offset);
    sl_arena_destroy(arena);
}

static void check(struct sl_span text, struct sl_span stored, size_t most)
{
    struct input in = input_of(stored);
    struct gathered whole = gather(open_input, &in, SL_SOURCE_PIECE_BYTES, false);
    assert_is_what_the_decoder_says(text, &whole);
    gathered_clean_up(&whole);
    assert_pieces_agree(open_input, &in, most);
}

static void pieces_mean_what_the_whole_text_means(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEXTS; i++) {
        struct sl_buffer packed;
        struct sl_span text = json_span(texts[i]);
        sl_buffer_init(&packed, MAX_BYTES);
        sl_gzip_add(&packed, &text, 1, 6);
        check(text, text, text.len + 10);
        check(text, sl_buffer_span(&packed), text.len + 10);
        sl_buffer_clean_up(&packed);
    }
}

static void so_do_those_of_a_text_cut_at_any_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEXTS; i++) {
        struct sl_span text = json_span(texts[i]);
        for (size_t len = 0; len < text.len; len++)
            check(sl_span(text.ptr, len), sl_span(text.ptr, len), 2);
    }
}

static void packed_text_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    struct sl_buffer packed;
    struct sl_span text = json_span(texts[0]);
    sl_buffer_init(&packed, MAX_BYTES);
    sl_gzip_add(&packed, &text, 1, 6);
    for (size_t len = 2; len < packed.len; len++) {
        struct input in = input_of(sl_span(packed.ptr, len));
        struct gathered whole = gather(open_input, &in, SL_SOURCE_PIECE_BYTES, false);
        assert_int_equal(whole.status, SL_REJECT);
        assert_non_null(strstr(whole.error.text, "/input: "));
        gathered_clean_up(&whole);
        assert_pieces_agree(open_input, &in, 2);
    }
    sl_buffer_clean_up(&packed);
}

/* ---- items ---- */

static struct sl_source_piece pull_all(struct input *in, struct sl_arena *arena, struct sl_source **source)
{
    struct sl_source_piece piece;
    struct sl_call call = test_call(arena);
    assert_int_equal(open_input(in, sl_span(NULL, 0), source, NULL), SL_OK);
    assert_int_equal(sl_source_pull(*source, SL_SOURCE_PIECE_BYTES, &call, &piece, NULL), SL_OK);
    assert_true(piece.is_last);
    return piece;
}

static void an_item_becomes_a_record_that_names_it(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_source *source;
    /* One key, spelled in two ways; another one; a change of an incremental export; a record. */
    struct input in = input_of(json_span("{'Item':{'v':{'N':'1'},'PK':{'S':'\\u0061'}}}\n{'Item':{" PK(
        "a") "}}\n" ITEM("b") "\n" CHANGE("a") "\n" A "\n"));
    in.as_received = false;
    struct sl_source_piece piece = pull_all(&in, arena, &source);
    const struct sl_record *r[5];
    struct sl_span id[5];
    assert_int_equal(piece.batch.n, 5);
    for (size_t i = 0; i < 5; i++) {
        r[i] = sl_batch_record(&piece.batch, i);
        id[i] = sl_record_text(r[i], SL_FIELD_IDENTIFIER);
        assert_int_equal(sl_record_image(r[i], SL_KEYS).type, SL_M);
    }
    assert_int_equal(sl_record_event(r[0]), SL_INSERT);
    assert_span_is(sl_record_text(r[0], SL_FIELD_SOURCE_ARN), SL_REPLAYED_ARN);
    assert_span_is(sl_record_image(r[0], SL_NEW_IMAGE).raw, json("{'v':{'N':'1'},'PK':{'S':'\\u0061'}}"));
    assert_true(sl_span_eq(id[0], id[1]) && !sl_span_eq(id[0], id[2]));
    assert_true(id[0].len == 15 && id[3].len == 20 && id[4].len == 3);
    assert_true(sl_span_starts(id[3], SL_LIT("1767265199000001")));
    assert_span_is(sl_record_text(r[4], SL_FIELD_RAW), json(A));
    sl_source_close(source);
    sl_arena_destroy(arena);
}

static void refused(const char *text, const char *keys, const char *why)
{
    struct input in = input_of(json_span(text));
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = test_call(arena);
    struct sl_source_options options = {.sinks = &test_sinks};
    struct sl_error error = SL_NO_ERROR;
    struct sl_source *source;
    struct sl_source_piece piece;
    in.name = in.path;
    const struct sl_source_files what = {.names = &in.name, .n = 1};
    if (keys)
        assert_int_equal(sl_source_keys_read(keys, &options.keys, NULL), SL_OK);
    assert_int_equal(sl_source_open_files(&options, &what, &call, &source, NULL), SL_OK);
    assert_int_equal(sl_source_pull(source, SL_SOURCE_PIECE_BYTES, &call, &piece, &error), SL_REJECT);
    assert_string_equal(error.code, "NoKeys");
    assert_string_equal(error.text + strlen(in.path), why);
    sl_source_close(source);
    sl_arena_destroy(arena);
}

static void an_item_without_its_key_is_refused(void **state)
{
    (void)state;
    refused(ITEM("a"), NULL, ": record 0 is an item without keys: name the key attributes with --keys PK,SK");
    refused(
        A "\n" ITEM("a"), "PK,nosuch",
        ": record 1 lacks a key attribute (PK, nosuch) of type S, N or B: name the table's key attributes "
        "with --keys PK,SK");
    refused("{'Item':{'PK':{'BOOL':true}}}", "PK",
            ": record 0 lacks a key attribute (PK) of type S, N or B: name the table's key attributes with "
            "--keys PK,SK");
}

static void keys_are_one_or_two_names(void **state)
{
    (void)state;
    struct sl_source_keys keys;
    assert_int_equal(sl_source_keys_read("PK", &keys, NULL), SL_OK);
    assert_true(keys.n == 1 && sl_span_is(keys.names[0], "PK"));
    assert_int_equal(sl_source_keys_read("a b,SK", &keys, NULL), SL_OK);
    assert_true(keys.n == 2 && sl_span_is(keys.names[0], "a b") && sl_span_is(keys.names[1], "SK"));
    static const char *const bad[] = {"", ",", "PK,", ",SK", "a,b,c", "a,a"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(sl_source_keys_read(bad[i], &keys, NULL), SL_REJECT);
}

/* ---- limits ---- */

static struct gathered gather_text(const char *text, size_t document_bytes)
{
    struct input in = input_of(sl_span_str(text));
    in.document_bytes = document_bytes;
    return gather(open_input, &in, 1, false);
}

/* A document beyond its limit, a record beyond any record's: one line each. */
static void what_is_too_long_is_refused(void **state)
{
    (void)state;
    size_t len = SL_SOURCE_RECORD_BYTES + 100;
    char *text = malloc(len + 400);
    struct gathered g = gather_text(json("[" A ",\n" B "," A "," B "]\n"), 1000);
    assert_int_equal(g.status, SL_REJECT);
    assert_string_equal(g.error.code, "TooLarge");
    assert_non_null(strstr(g.error.text, "write one record a line"));
    gathered_clean_up(&g);
    int n = snprintf(text, 400, "%s\n{\"Item\":{\"PK\":{\"S\":\"", json(ITEM("a")));
    memset(text + n, 'x', len - (size_t)n);
    snprintf(text + len, 20, "\"}}}\n");
    g = gather_text(text, 1000);
    assert_int_equal(g.status, SL_REJECT);
    assert_string_equal(g.error.code, "TooLarge");
    assert_non_null(strstr(g.error.text, ": record 1, at byte 40, has more than 8 MB"));
    gathered_clean_up(&g);
    free(text);
}

/* Small records: a piece has no more of them than a batch can have. */
static void a_piece_has_ten_thousand_records_at_most(void **state)
{
    (void)state;
    struct sl_buffer text;
    size_t most = 0, n = 0;
    sl_buffer_init(&text, MAX_BYTES);
    for (int i = 0; i < 50000; i++)
        sl_buffer_printf(&text, "%s\n", "{\"Item\":{\"PK\":{\"N\":\"1\"}}}");
    struct input in = input_of(sl_buffer_span(&text));
    in.as_received = false;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_source *source;
    struct sl_source_piece piece = {.is_last = false};
    assert_int_equal(open_input(&in, sl_span(NULL, 0), &source, NULL), SL_OK);
    while (!piece.is_last) {
        sl_arena_reset(arena);
        struct sl_call call = test_call(arena);
        assert_int_equal(sl_source_pull(source, SL_SOURCE_PIECE_BYTES, &call, &piece, NULL), SL_OK);
        most = piece.batch.n > most ? piece.batch.n : most;
        n += piece.batch.n;
    }
    assert_int_equal(n, 50000);
    assert_int_equal(most, 10000);
    sl_source_close(source);
    sl_arena_destroy(arena);
    sl_buffer_clean_up(&text);
}

/* ---- places, deadlines, marks ---- */

static void a_place_of_another_source_is_refused(void **state)
{
    (void)state;
    struct input in = input_of(json_span(A "\n"));
    static const char *const bad[] = {"{'files':'other','file':0,'byte':0,'record':0,'line':0}",
                                      "{'export':'x'}",
                                      "{'files':",
                                      "7",
                                      "{'files':'%s','file':2,'byte':0,'record':0,'line':0}",
                                      "{'files':'%s','file':0,'byte':-1,'record':0,'line':0}",
                                      "{'files':'%s','file':0,'record':0}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char place[600];
        struct sl_source *source;
        struct sl_error error = SL_NO_ERROR;
        snprintf(place, sizeof(place), "%s", bad[i]);
        char *percent = strstr(place, "%s");
        if (percent)
            snprintf(place, sizeof(place), "%.*s%s%s", (int)(strstr(bad[i], "%s") - bad[i]), bad[i], in.path,
                     strstr(bad[i], "%s") + 2);
        assert_int_equal(open_input(&in, json_span(place), &source, &error), SL_REJECT);
        assert_string_equal(error.code, "WrongPlace");
    }
    struct sl_source *source;
    struct sl_source_piece piece;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = test_call(arena);
    struct sl_error error = SL_NO_ERROR;
    const char *beyond = json_printf("{'files':'%s','file':0,'byte':99999,'record':1,'line':1}", in.path);
    assert_int_equal(open_input(&in, sl_span_str(beyond), &source, NULL), SL_OK);
    assert_int_equal(sl_source_pull(source, 1000, &call, &piece, &error), SL_REJECT);
    assert_string_equal(error.code, "WrongPlace");
    sl_source_close(source);
    sl_arena_destroy(arena);
}

static void a_deadline_that_has_come_leaves_the_place(void **state)
{
    (void)state;
    struct input in = input_of(json_span(A "\n" B "\n"));
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = {.arena = arena, .deadline_ms = 0};
    struct sl_source *source;
    struct sl_source_piece piece;
    assert_int_equal(open_input(&in, sl_span(NULL, 0), &source, NULL), SL_OK);
    assert_int_equal(sl_source_pull(source, 1000, &call, &piece, NULL), SL_OK);
    assert_true(piece.batch.n == 0 && !piece.is_last);
    assert_non_null(strstr(piece.place.ptr, "\"byte\":0"));
    call = test_call(arena);
    assert_int_equal(sl_source_pull(source, 1000, &call, &piece, NULL), SL_OK);
    assert_true(piece.batch.n == 2 && piece.is_last);
    assert_int_equal(sl_source_pull(source, 1000, &call, &piece, NULL), SL_OK);
    assert_true(piece.batch.n == 0 && piece.is_last);
    sl_source_close(source);
    sl_arena_destroy(arena);
}

/* A reader that is late: nothing of the text is lost, whether the deadline came first or not. */
struct late_reader {
    struct sl_reader reader;
    struct sl_clock_virtual *clock;
    int calls;
    struct sl_span text;
};

static enum sl_status come_late(struct sl_reader *r, const struct sl_call *call, struct sl_span *out,
                                struct sl_error *error)
{
    struct late_reader *late = (struct late_reader *)r;
    bool is_failing = late->calls++ % 2 == 0;
    if (is_failing && late->calls % 4 == 1)
        late->clock->ms = call->deadline_ms;
    if (is_failing)
        return sl_fail(error, SL_RETRY, "Timeout", "timed out");
    *out = sl_span(late->text.ptr, late->text.len < 100 ? late->text.len : 100);
    late->text = sl_span_from(late->text, out->len);
    return SL_OK;
}

static void close_nothing(struct sl_reader *r)
{
    (void)r;
}

static void what_comes_late_is_asked_for_again(void **state)
{
    (void)state;
    static struct sl_clock_virtual clock;
    struct late_reader late = {.reader = {.next = come_late, .close = close_nothing},
                               .clock = &clock,
                               .text = json_span(A "\n" B "\n" A "\n")};
    const struct sl_text_options options = {.name = "late", .clock = &clock.clock};
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_text text;
    size_t n = 0, n_late = 0, n_failed = 0;
    sl_clock_virtual_init(&clock, 0, 1);
    sl_text_open(&text, &options, &late.reader);
    while (!text.is_at_end) {
        const struct sl_call call = {.arena = arena, .deadline_ms = clock.ms + 1000};
        struct sl_batch batch;
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = sl_text_pull(&text, 1, &call, &batch, &error);
        bool was_late = clock.ms == call.deadline_ms;
        assert_int_equal(status, status == SL_OK || was_late ? SL_OK : SL_RETRY);
        assert_true(status == SL_OK || strcmp(error.text, "late: timed out") == 0);
        n_late += was_late;
        n_failed += status == SL_RETRY;
        n += status == SL_OK ? batch.n : 0;
        assert_true(n_late + n_failed < 100);
    }
    assert_int_equal(n, 3);
    assert_true(n_late > 2 && n_failed > 2);
    sl_text_close(&text);
    sl_arena_destroy(arena);
}

static void marks_tell_which_attributes_are_there(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_source *source;
    struct input in = input_of(json_span(
        "{'Item':{" PK("a") ",'v':{'S':'deep'},'\\u0064own':{'NULL':true}}}\n"
                            "{'Item':{" PK("b") ",'v':{'M':{'deep':{'S':'x'}}}}}\n" ITEM("c") "\n"));
    struct sl_source_piece piece = pull_all(&in, arena, &source);
    const struct sl_span names[] = {SL_LIT("deep"), SL_LIT("down"), SL_LIT("v")};
    assert_int_equal(sl_source_marks(sl_batch_record(&piece.batch, 0), names, 3), 6);
    assert_int_equal(sl_source_marks(sl_batch_record(&piece.batch, 1), names, 2), 0);
    assert_int_equal(sl_source_marks(sl_batch_record(&piece.batch, 2), names, 3), 4);
    assert_int_equal(sl_source_marks(sl_batch_record(&piece.batch, 2), names, 2), 0);
    sl_source_close(source);
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_mean_what_the_whole_text_means),
        cmocka_unit_test(so_do_those_of_a_text_cut_at_any_byte),
        cmocka_unit_test(packed_text_cut_at_any_byte_is_refused),
        cmocka_unit_test(an_item_becomes_a_record_that_names_it),
        cmocka_unit_test(an_item_without_its_key_is_refused),
        cmocka_unit_test(keys_are_one_or_two_names),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(a_piece_has_ten_thousand_records_at_most),
        cmocka_unit_test(a_place_of_another_source_is_refused),
        cmocka_unit_test(a_deadline_that_has_come_leaves_the_place),
        cmocka_unit_test(what_comes_late_is_asked_for_again),
        cmocka_unit_test(marks_tell_which_attributes_are_there),
    };
    return cmocka_run_group_tests(tests, folder_set_up, folder_clean_up);
}
