/* How far a live stream is handled, as tail's checkpoint tells it: a time before which every change of the
 * table has been handled, whatever the shards' reads return. */
#include "replay/source/places.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STREAM "arn:aws:dynamodb:eu-west-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"
#define NOW    ((int64_t)1790000000000)

static struct sl_places open_places(const char *path)
{
    struct sl_places places;
    assert_int_equal(sl_places_open(&places, path, STREAM, NULL), SL_OK);
    return places;
}

static void list(struct sl_places *places, struct sl_live_shard *shards, size_t n)
{
    const struct sl_live_shards listed = {.list = shards, .n = n};
    (void)sl_places_update(places, &listed, false);
}

static struct sl_place *place_of(struct sl_places *places, const char *id)
{
    for (size_t i = 0; i < places->n; i++)
        if (strcmp(places->list[i].id, id) == 0)
            return &places->list[i];
    fail_msg("no shard %s", id);
    return NULL;
}

/* Empty reads of the shard, four a second; returns when the last one was. */
static int64_t read_nothing(struct sl_places *places, const char *id, int64_t from_ms, int64_t to_ms)
{
    for (int64_t ms = from_ms; ms < to_ms; ms += 250)
        sl_places_handled(place_of(places, id), ms, 0);
    (void)sl_places_through(places, to_ms);
    return to_ms;
}

static void some_empty_reads_do_not_prove_an_end(void **state)
{
    (void)state;
    struct sl_live_shard shards[] = {{"a", "", false}};
    struct sl_places places = open_places(NULL);
    list(&places, shards, 1);
    sl_places_handled(place_of(&places, "a"), NOW, NOW - 3600000);
    (void)sl_places_through(&places, NOW);
    assert_int_equal(places.through_ms, NOW - 3600000);
    /* As fast as one likes, and as slowly. */
    for (int i = 1; i < 100; i++)
        sl_places_handled(place_of(&places, "a"), NOW + i, 0);
    assert_false(sl_places_through(&places, NOW + 100));
    sl_places_handled(place_of(&places, "a"), NOW + 100, NOW - 3000000);
    sl_places_handled(place_of(&places, "a"), NOW + 10000, 0);
    sl_places_handled(place_of(&places, "a"), NOW + 20000, 0);
    assert_true(sl_places_through(&places, NOW + 20000));
    assert_int_equal(places.through_ms, NOW - 3000000);
    /* Both: then nothing follows but what is on its way. */
    int64_t end = read_nothing(&places, "a", NOW + 20250, NOW + 25000);
    assert_in_range((uint64_t)places.through_ms, (uint64_t)NOW + 20000, (uint64_t)end - 2000);
    sl_places_clean_up(&places);
}

static void a_closed_shard_speaks_for_those_who_wait_for_it(void **state)
{
    (void)state;
    struct sl_live_shard shards[] = {{"a", "", true}, {"b", "a", false}, {"c", "", false}};
    struct sl_places places = open_places(NULL);
    list(&places, shards, 3);
    sl_places_handled(place_of(&places, "a"), NOW, NOW - 5000);
    sl_places_handled(place_of(&places, "c"), NOW, NOW - 1000);
    (void)sl_places_through(&places, NOW);
    assert_int_equal(places.through_ms, NOW - 5000);
    (void)read_nothing(&places, "c", NOW, NOW + 30000);
    int64_t end = read_nothing(&places, "a", NOW, NOW + 30000);
    assert_int_equal(places.through_ms, NOW - 5000);
    place_of(&places, "a")->is_done = true;
    place_of(&places, "a")->ended_ms = end;
    assert_false(sl_places_through(&places, end)); /* of the child nothing is known */
    /* Of a shard that was split, the other child may be listed later. */
    sl_places_handled(place_of(&places, "b"), end, NOW + 7);
    assert_false(sl_places_through(&places, end + 30000));
    assert_true(sl_places_through(&places, end + 120000));
    assert_int_equal(places.through_ms, NOW + 7);
    sl_places_clean_up(&places);
}

/* The list of shards may lack the children of a shard that has ended, also for who begins anew. */
static void a_shard_without_children_counts_until_they_would_be_listed(void **state)
{
    (void)state;
    char path[] = "/tmp/test-places-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    dprintf(
        fd,
        "{\"stream\":\"%s\",\"through\":\"2026-01-01T00:00:00.000Z\",\"shards\":{\"a\":{\"done\":true}}}\n",
        STREAM);
    close(fd);
    struct sl_live_shard shards[] = {{"a", "", true}, {"c", "", false}, {"b", "a", false}};
    struct sl_places places = open_places(path);
    int64_t before = places.through_ms, now_ms = place_of(&places, "a")->ended_ms;
    assert_true(before > 0 && now_ms > before);
    list(&places, shards, 2);
    sl_places_handled(place_of(&places, "c"), now_ms, now_ms - 1);
    assert_false(sl_places_through(&places, now_ms));
    assert_true(sl_places_through(&places, now_ms + 120000));
    list(&places, shards, 3);
    sl_places_handled(place_of(&places, "c"), now_ms, now_ms + 500);
    assert_false(sl_places_through(&places, now_ms + 120000));
    sl_places_clean_up(&places);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_empty_reads_do_not_prove_an_end),
        cmocka_unit_test(a_closed_shard_speaks_for_those_who_wait_for_it),
        cmocka_unit_test(a_shard_without_children_counts_until_they_would_be_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
