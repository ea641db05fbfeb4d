/* Places to go on at, damaged at every point: a source either refuses one, in a line that says what to do, or
 * goes on and gives records of its own, in their order. And rows whose source says nothing of its table. */
#include "tests/support/export.h"
#include "tests/support/mutate.h"
#include "tests/support/test.h"
#include "tests/data/source/pieces.h"

#include "base/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS 30

/* ---- a source of each kind ---- */

struct kind {
    const char *name;
    enum sl_status (*open)(const struct sl_source_options *options, const struct sl_call *call,
                           struct sl_source **out, struct sl_error *error);
    size_t max_bytes;
};

static const char *in_folder(const char *name)
{
    return json_printf("%s/%s", folder, name);
}

static enum sl_status open_files(const struct sl_source_options *options, const struct sl_call *call,
                                 struct sl_source **out, struct sl_error *error)
{
    static const char *names[2];
    names[0] = in_folder("items.jsonl");
    names[1] = in_folder("archive/a.jsonl");
    const struct sl_source_files what = {.names = names, .n = 2};
    return sl_source_open_files(options, &what, call, out, error);
}

static enum sl_status open_export(const struct sl_source_options *options, const struct sl_call *call,
                                  struct sl_source **out, struct sl_error *error)
{
    const struct sl_source_export what = {.place = in_folder("AWSDynamoDB/01795212250003-c22a2da7"),
                                          .verify_first = true};
    return sl_source_open_export(options, &what, call, out, error);
}

static enum sl_status open_archive(const struct sl_source_options *options, const struct sl_call *call,
                                   struct sl_source **out, struct sl_error *error)
{
    return sl_source_open_archive(options, &(struct sl_source_archive){.place = in_folder("archive")}, call,
                                  out, error);
}

static enum sl_status open_scan(const struct sl_source_options *options, const struct sl_call *call,
                                struct sl_source **out, struct sl_error *error)
{
    const struct sl_source_scan what = {
        .target = json_printf("sqlite:%s/src.db?table=items", folder), .n = 3, .of = 3};
    return sl_source_open_scan(options, &what, call, out, error);
}

static const struct kind kinds[] = {{"files", open_files, 300},
                                    {"export", open_export, 300},
                                    {"archive", open_archive, 300},
                                    {"scan", open_scan, 300}};

static void write_table(const char *lines)
{
    struct sl_table_port *port;
    const char *target = json_printf("sqlite:%s/src.db?table=items", folder);
    assert_int_equal(sl_target_table(&test_sinks, sl_span_str(target), &port, NULL), SL_OK);
    struct sl_arena *arena = sl_arena_new(4096);
    const struct sl_call call = test_call(arena);
    for (size_t i = 0; i < ITEMS; i++) {
        struct sl_result result;
        const char *end = strchr(lines, '\n');
        struct sl_table_op op = {
            .verb = SL_TABLE_PUT,
            .key = json_span(json_printf("{'PK':{'S':'p-%06zu'},'SK':{'N':'%zu'}}", i / 10, i)),
            .item = sl_span(lines + strlen("{\"Item\":"), (size_t)(end - lines) - strlen("{\"Item\":") - 1)};
        port->apply(port, &op, 1, &result, &call);
        assert_int_equal(result.status, SL_OK);
        lines = end + 1;
    }
    port->close(port);
    sl_arena_destroy(arena);
}

static int set_up(void **state)
{
    (void)state;
    sinks_set_up(NULL);
    folder = test_folder_in_memory();
    char *lines = test_export_lines(0, ITEMS, 60);
    const struct test_export_file files[] = {{"a.json.gz", sl_span_str(lines)}, {"b.json", SL_LIT("")}};
    free(test_export_write(&(struct test_export){.files = files, .n = 2}, folder));
    test_write(in_folder("items.jsonl"), lines);
    write_table(lines);
    assert_int_equal(sl_disk_make_folder(in_folder("archive"), NULL), SL_OK);
    for (int i = 0; i < 4; i++)
        test_write(
            in_folder(json_printf("archive/%c.jsonl", 'a' + i)),
            json_printf("{'eventName':'REMOVE','eventID':'%d','dynamodb':{'Keys':{'PK':{'S':'a'}},"
                        "'SequenceNumber':'%d'}}\n{'eventName':'REMOVE','eventID':'%d','dynamodb':{'Keys':{"
                        "'PK':{'S':'a'}},'SequenceNumber':'%d'}}\n",
                        2 * i, 2 * i, 2 * i + 1, 2 * i + 1));
    free(lines);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return sinks_clean_up(NULL);
}

/* ---- reading from a place ---- */

/* Pulls `pieces` times, or to the end. Returns the records; the last place is the caller's to free. */
static size_t read_from(const struct kind *kind, const char *place, size_t pieces, char **last,
                        struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(1 << 16), *own = sl_arena_new(4096);
    const struct sl_call opening = test_call(own);
    struct sl_source_options options = {.sinks = &test_sinks, .place = sl_span_str(place)};
    struct sl_source *source = NULL;
    struct sl_source_piece piece = {.is_last = false};
    size_t n = 0;
    assert_int_equal(sl_source_keys_read("PK,SK", &options.keys, NULL), SL_OK);
    enum sl_status status = kind->open(&options, &opening, &source, error);
    while (status == SL_OK && !piece.is_last && pieces-- > 0) {
        const struct sl_call call = test_call(arena);
        sl_arena_reset(arena);
        status = sl_source_pull(source, kind->max_bytes, &call, &piece, error);
        n += status == SL_OK ? piece.batch.n : 0;
    }
    assert_int_equal(status != SL_OK, error->text[0] != '\0');
    if (last && status == SL_OK)
        *last = strndup(piece.place.ptr, piece.place.len);
    sl_source_close(source);
    sl_arena_destroy(arena);
    sl_arena_destroy(own);
    return n;
}

static json_t *values(void)
{
    return json_pack("[n,b,i,i,f,s,s,o,[i]]", 1, -1, 999999, 1.5, "", "x", json_pack("{s:i}", "a", 1), 7);
}

static void assert_refused_or_read(const struct kind *kind, const json_t *place, const char *path, size_t n)
{
    struct sl_error error = SL_NO_ERROR;
    char *text = json_dumps(place, JSON_COMPACT | JSON_ENCODE_ANY);
    size_t have = read_from(kind, text, 1000, NULL, &error);
    if (error.text[0] && strcmp(error.code, "WrongPlace") == 0 && !strstr(error.text, "begin anew"))
        fail_msg("%s, %s: %s", kind->name, path, error.text);
    else if (have > n)
        fail_msg("%s, %s: %zu records of %zu: %s", kind->name, path, have, n, text);
    else if (error.text[0] && !strchr(error.text, ':') && !strstr(error.text, " of the key "))
        fail_msg("%s, %s: %s", kind->name, path, error.text);
    free(text);
}

static void a_damaged_place_is_refused(void **state)
{
    (void)state;
    json_t *with = values();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        for (size_t pieces = 1; pieces <= 2; pieces++) {
            struct sl_error error = SL_NO_ERROR;
            char *place = NULL;
            size_t all = read_from(&kinds[i], NULL, 1000, NULL, &error);
            size_t first = read_from(&kinds[i], NULL, pieces, &place, &error);
            assert_string_equal(error.text, "");
            assert_int_equal(first + read_from(&kinds[i], place, 1000, NULL, &error), all);
            json_t *good = json_loads(place, 0, NULL);
            for (int node = 0; node < json_count(good); node++)
                for (size_t k = 0; k < json_array_size(with) + 1; k++) {
                    struct json_mutation m = {.node = node,
                                              .change = k ? JSON_REPLACED : JSON_LEFT_OUT,
                                              .with = k ? json_array_get(with, k - 1) : NULL};
                    json_t *bad = json_mutate(good, &m);
                    if (bad)
                        assert_refused_or_read(&kinds[i], bad, m.path, all);
                    json_decref(bad);
                }
            json_decref(good);
            free(place);
        }
    json_decref(with);
}

/* Cut, or of another kind of source. */
static void no_place_is_taken_for_another(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        char *place = NULL;
        (void)read_from(&kinds[i], NULL, 1, &place, &error);
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            sl_error_clear(&error);
            (void)read_from(&kinds[k], place, 1000, NULL, &error);
            if (k == i)
                assert_string_equal(error.text, "");
            else
                assert_non_null(strstr(error.text, "belongs to another source"));
        }
        for (size_t cut = strlen(place); cut-- > 1;) {
            place[cut] = '\0';
            sl_error_clear(&error);
            (void)read_from(&kinds[i], place, 1000, NULL, &error);
            assert_string_equal(error.code, "WrongPlace");
        }
        free(place);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_place_is_refused),
        cmocka_unit_test(no_place_is_taken_for_another),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
