/* The places of a stream's shards, as the checkpoint file keeps them. */
#include "live/source/places.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STREAM "arn:aws:dynamodb:eu-west-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"
#define NOW    ((int64_t)1790000000000)
#define DAY_MS ((int64_t)24 * 3600 * 1000)

static char *write_file(const char *text)
{
    static char path[] = "/tmp/test_places.XXXXXX";
    memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    return path;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct sl_places places, again;
    struct sl_buffer text;
    assert_int_equal(sl_places_read(&places, NULL, STREAM, NULL), SL_OK);
    sl_places_set(&sl_places_add(&places, "after")->after, "111");
    sl_places_add(&places, "since")->since_ms = NOW;
    sl_places_add(&places, "done")->is_done = true;
    sl_places_add(&places, "unlisted")->unlisted_ms = NOW - 5;
    sl_places_set(&sl_places_find(&places, "unlisted")->after, "9");
    (void)sl_places_add(&places, "nothing");
    places.through_ms = NOW + 123;
    places.complete_since_ms = NOW - 77;
    sl_buffer_init(&text, 4096);
    sl_places_write(&places, &text);
    sl_buffer_add_char(&text, '\0');
    char *path = write_file(text.ptr);
    assert_int_equal(sl_places_read(&again, path, STREAM, NULL), SL_OK);
    assert_int_equal(again.n, 4); /* a shard of which nothing is known begins with its oldest record */
    assert_int_equal(again.through_ms, NOW + 123);
    assert_int_equal(again.complete_since_ms, NOW - 77);
    assert_string_equal(sl_places_find(&again, "after")->after, "111");
    assert_int_equal(sl_places_find(&again, "since")->since_ms, NOW);
    assert_true(sl_places_find(&again, "done")->is_done);
    assert_int_equal(sl_places_find(&again, "unlisted")->unlisted_ms, NOW - 5);
    assert_null(sl_places_find(&again, "nothing"));
    unlink(path);
    sl_buffer_clean_up(&text);
    sl_places_clean_up(&again);
    sl_places_clean_up(&places);
}

static void another_streams_file_is_refused(void **state)
{
    (void)state;
    struct sl_places places;
    struct sl_error error = SL_NO_ERROR;
    char *path = write_file("{\"stream\":\"" STREAM "x\",\"shards\":{}}");
    assert_int_equal(sl_places_read(&places, path, STREAM, &error), SL_REJECT);
    assert_string_equal(error.code, "OtherStream");
    sl_places_clean_up(&places);
    assert_int_equal(sl_places_read(&places, path, NULL, &error), SL_OK);
    assert_string_equal(places.stream_arn, STREAM "x");
    sl_places_clean_up(&places);
    unlink(path);
    path = write_file("{\"stream\"");
    sl_error_clear(&error);
    assert_int_equal(sl_places_read(&places, path, STREAM, &error), SL_REJECT);
    assert_string_equal(error.code, "BadCheckpoint");
    assert_non_null(strstr(error.text, "is not a checkpoint of sluice tail"));
    sl_places_clean_up(&places);
    unlink(path);
}

/* More shards than the list begins with, and what the file says wrongly or not at all. */
static void a_file_is_taken_as_far_as_it_means_something(void **state)
{
    (void)state;
    static const struct {
        const char *text, *code;
    } cases[] = {
        {"{'stream':'" STREAM "','shards':{'a':{'after':'1'},'a':{}}}", "BadCheckpoint"},
        {"{'stream':'" STREAM "','shards':[]}", "BadCheckpoint"},
        {"{'stream':7,'shards':{}}", "BadCheckpoint"},
        {"{'shards':{}}", "BadCheckpoint"},
        {"{'stream':'" STREAM "'}", "BadCheckpoint"},
        {"[]", "BadCheckpoint"},
    };
    struct sl_places places;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        char *path = write_file(json(cases[i].text));
        assert_int_equal(sl_places_read(&places, path, STREAM, &error), SL_REJECT);
        assert_string_equal(error.code, cases[i].code);
        assert_non_null(strstr(error.text, path));
        sl_places_clean_up(&places);
        unlink(path);
    }
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 16);
    sl_buffer_add_str(&text, json("{'stream':'" STREAM "','through':'never','shards':{"));
    for (int i = 0; i < 40; i++)
        sl_buffer_printf(&text, "%s\"s%d\":{\"after\":%d,\"done\":\"yes\",\"since\":\"2026\"}", i ? "," : "",
                         i, i);
    sl_buffer_add(&text, "}}", 3);
    char *path = write_file(text.ptr);
    assert_int_equal(sl_places_read(&places, path, STREAM, NULL), SL_OK);
    assert_int_equal(places.n, 40);
    assert_int_equal(places.through_ms, 0);
    for (size_t i = 0; i < 40; i++) {
        const struct sl_place *place = sl_places_find(&places, json_printf("s%zu", i));
        assert_true(place && !place->after && !place->is_done && !place->since_ms);
    }
    sl_places_clean_up(&places);
    sl_buffer_clean_up(&text);
    unlink(path);
}

/* One listing that lacks a shard proves nothing; nor do two, while its records may be in the stream. */
static void places_are_dropped_late(void **state)
{
    (void)state;
    static const struct {
        bool is_done;
        unsigned misses;
        int64_t unlisted_ms;
        bool stays;
    } rows[] = {{true, 1, NOW, true},
                {true, 2, NOW, false},
                {false, 2, NOW, true},
                {false, 9, NOW - DAY_MS, true},
                {false, 2, NOW - 2 * DAY_MS, false},
                {false, 1, NOW - 3 * DAY_MS, true},
                {true, 5, 0, true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sl_places places;
        assert_int_equal(sl_places_read(&places, NULL, STREAM, NULL), SL_OK);
        struct sl_place *place = sl_places_add(&places, "a");
        place->is_done = rows[i].is_done;
        place->misses = rows[i].misses;
        place->unlisted_ms = rows[i].unlisted_ms;
        sl_places_drop_old(&places, NOW);
        if ((sl_places_find(&places, "a") != NULL) != rows[i].stays)
            fail_msg("row %zu", i);
        sl_places_clean_up(&places);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_is_read),
                                       cmocka_unit_test(another_streams_file_is_refused),
                                       cmocka_unit_test(a_file_is_taken_as_far_as_it_means_something),
                                       cmocka_unit_test(places_are_dropped_late)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
