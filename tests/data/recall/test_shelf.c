/* The index of an archive: what is found in small and large volumes is what was put in, whatever the items;
 * and few bytes are read of a large one. */
#include "data/recall/shelf.h"

#include "base/disk.h"
#include "sinks/target.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct sl_sinks sinks;
static struct sl_object_port *port;
static char *folder;
static uint64_t seed = 7;

static uint64_t draw(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 16) % n;
}

/* The entries of items are spread as digests are. */
static uint64_t item(uint64_t number)
{
    unsigned char digest[SL_SHA256_BYTES];
    struct sl_sha256 sha;
    struct sl_span text = sl_span((const char *)&number, sizeof(number));
    sl_sha256_init(&sha);
    sl_sha256_parts(&sha, &text, 1, digest);
    sl_sha256_clean_up(&sha);
    return sl_item_index_key(digest);
}

static struct sl_item_index_run run_of(uint64_t number, uint64_t objects)
{
    struct sl_item_index_run run = {
        .objects = objects, .first_s = (int64_t)number, .last_s = (int64_t)number + 10};
    memcpy(run.seal, &number, sizeof(number));
    return run;
}

static struct sl_shelf *open_shelf(const uint64_t *items, size_t n)
{
    const struct sl_shelf_options options = {
        .reads = port, .writes = port, .clock = sinks.clock, .items = items, .n = n};
    return sl_shelf_open(&options);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

#define RUNS    40
#define OBJECTS 500 /* of each */

/* Which items the object holds: `n` of them, by a rule. */
static uint64_t item_in(uint64_t object, uint64_t i, uint64_t items)
{
    return i == 0 && object % 3 ? 0 : (object * 7919 + i * 104729) % items;
}

static void fill(struct sl_item_index_build *build, uint64_t first_run, uint64_t runs, uint64_t per_object,
                 uint64_t items)
{
    for (uint64_t run = first_run; run < first_run + runs; run++) {
        for (uint64_t object = 0; object < OBJECTS; object++)
            for (uint64_t i = 0; i < per_object; i++)
                sl_item_index_add(build, item(item_in(run * OBJECTS + object, i, items)), object);
        struct sl_item_index_run of = run_of(run + 1, OBJECTS);
        sl_item_index_end_run(build, &of);
    }
}

static void assert_run(struct sl_shelf *shelf, uint64_t run, const uint64_t *items, size_t n,
                       uint64_t per_object, uint64_t of)
{
    struct sl_item_index_run wanted = run_of(run + 1, OBJECTS);
    struct sl_shelf_run found;
    size_t hit = 0;
    assert_true(sl_shelf_find(shelf, wanted.seal, &found));
    assert_int_equal(found.run.objects, OBJECTS);
    assert_int_equal(found.run.first_s, wanted.first_s);
    assert_int_equal(found.run.last_s, wanted.last_s);
    for (uint64_t object = 0; object < OBJECTS; object++) {
        bool holds = false;
        for (uint64_t i = 0; i < per_object && !holds; i++) {
            uint64_t key = item(item_in(run * OBJECTS + object, i, of));
            holds = bsearch(&key, items, n, sizeof(*items), by_value) != NULL;
        }
        if (!holds)
            continue;
        assert_true(hit < found.n);
        assert_int_equal(found.hits[hit] - found.base, object);
        hit++;
    }
    assert_int_equal(hit, found.n);
}

static void remove_all(void)
{
    struct sl_arena *arena = sl_arena_new(4096);
    const struct sl_call call = {.arena = arena, .deadline_ms = INT64_MAX};
    struct sl_object_page page = {.n = 0};
    port->list(port, &(struct sl_object_list){.prefix = {NULL, 0}}, &page, &call);
    for (size_t i = 0; i < page.n; i++) {
        struct sl_result result;
        port->remove(port, &(struct sl_object_removal){.key = page.entries[i].key}, 1, &result, &call);
        assert_int_equal(result.status, SL_OK);
    }
    sl_arena_destroy(arena);
}

/* 20,000 objects of 20 items: a volume of 3 MB, of which one item, in most objects, has many entries. */
static void one_item_of_a_large_volume_costs_a_small_read(void **state)
{
    (void)state;
    const uint64_t items = 30000, per_object = 20;
    struct sl_item_index_build build = {.n = 0};
    struct sl_shelf *shelf = open_shelf(NULL, 0);
    fill(&build, 0, RUNS, per_object, items);
    sl_shelf_write(shelf, &build);
    assert_int_equal(sl_shelf_counts(shelf)->written, 1);
    assert_int_equal(build.n + build.n_runs + build.objects, 0);
    sl_shelf_close(shelf);

    for (int i = 0; i < 300; i++) {
        uint64_t number = i == 0 ? 0 : i < 200 ? draw(items) : items + draw(1000);
        uint64_t key = item(number);
        shelf = open_shelf(&key, 1);
        const struct sl_shelf_counts *n = sl_shelf_counts(shelf);
        for (uint64_t run = 0; run < RUNS; run += i == 0 ? 1 : 7)
            assert_run(shelf, run, &key, 1, per_object, items);
        assert_int_equal(n->trouble.status, SL_OK);
        if (i)
            if (n->read_bytes >= 170000 || n->read > 4)
                fail_msg("item %llu: %llu bytes in %llu reads", (unsigned long long)number,
                         (unsigned long long)n->read_bytes, (unsigned long long)n->read);
        sl_shelf_close(shelf);
    }
    /* Items whose digests are first and last of all: the range has one side. */
    for (int i = 0; i < 2; i++) {
        uint64_t best = item(0);
        for (uint64_t k = 1; k < items; k++)
            if ((item(k) < best) == (i == 0))
                best = item(k);
        shelf = open_shelf(&best, 1);
        for (uint64_t run = 0; run < RUNS; run++)
            assert_run(shelf, run, &best, 1, per_object, items);
        sl_shelf_close(shelf);
    }
    /* Many at once, and no item at all. */
    uint64_t many[200];
    for (int i = 0; i < 200; i++)
        many[i] = item(draw(items));
    for (size_t n = 0; n <= 200; n += n ? 66 : 2) {
        qsort(many, n, sizeof(*many), by_value);
        shelf = open_shelf(many, n);
        for (uint64_t run = 0; run < RUNS; run += 3)
            assert_run(shelf, run, many, n, per_object, items);
        sl_shelf_close(shelf);
    }
    sl_item_index_clean_up(&build);
    remove_all();
}

/* Volumes of a run each: when they are many, they become one, without those that nobody asks for. */
static void small_volumes_are_put_together(void **state)
{
    (void)state;
    struct sl_item_index_build build = {.n = 0};
    uint64_t key = item(3);
    struct sl_shelf *shelf = open_shelf(&key, 1);
    for (uint64_t run = 0; run < RUNS; run++) {
        fill(&build, run, 1, 3, 50);
        sl_shelf_write(shelf, &build);
    }
    assert_int_equal(sl_shelf_counts(shelf)->written, RUNS);
    sl_shelf_close(shelf);

    shelf = open_shelf(&key, 1);
    for (uint64_t run = 5; run < RUNS; run++)
        assert_run(shelf, run, &key, 1, 3, 50);
    sl_shelf_tidy(shelf);
    assert_int_equal(sl_shelf_counts(shelf)->written, 1);
    sl_shelf_close(shelf);

    for (int again = 0; again < 2; again++) {
        struct sl_item_index_run gone = run_of(5, OBJECTS);
        struct sl_shelf_run found;
        shelf = open_shelf(&key, 1);
        assert_int_equal(sl_shelf_counts(shelf)->read, 1);
        assert_false(sl_shelf_find(shelf, gone.seal, &found));
        for (uint64_t run = 5; run < RUNS; run++)
            assert_run(shelf, run, &key, 1, 3, 50);
        sl_shelf_tidy(shelf);
        sl_shelf_close(shelf);
    }
    /* When nobody asked for any of its runs, it goes. */
    shelf = open_shelf(&key, 1);
    sl_shelf_tidy(shelf);
    sl_shelf_close(shelf);
    shelf = open_shelf(&key, 1);
    assert_int_equal(sl_shelf_counts(shelf)->read, 0);
    sl_shelf_close(shelf);
    sl_item_index_clean_up(&build);
    remove_all();
}

static void names_say_how_long_a_volume_is(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t bytes;
        bool is_good;
    } names[] = {{"2-1-0123456789abcdef.v1", 56, true},
                 {"0-0-0123456789abcdef.v1", 0, true},
                 {"2-1-0123456789abcdef.v1", 55, false},
                 {"2-1-0123456789abcdef.v2", 56, false},
                 {"2-1-0123456789abcde.v1", 56, false},
                 {"2-1.v1", 56, false},
                 {"-1-0123456789abcdef.v1", 40, false},
                 {"x-1-0123456789abcdef.v1", 40, false},
                 {"1234567890123-1-0123456789abcdef.v1", 40, false},
                 {"", 0, false}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint64_t entries, runs;
        if (sl_item_index_read_name(sl_span_str(names[i].name), names[i].bytes, &entries, &runs) !=
            names[i].is_good)
            fail_msg("%s", names[i].name);
    }
}

/* Every part of what a run holds is in its seal. */
static void a_seal_changes_with_each_object(void **state)
{
    (void)state;
    static const struct {
        const char *key, *etag;
        uint64_t bytes;
    } lists[][2] = {{{"a", "e", 1}, {"b", "e", 1}}, {{"a", "e", 1}, {"b", "e", 2}},
                    {{"a", "e", 1}, {"b", "f", 1}}, {{"a", "e", 1}, {"c", "e", 1}},
                    {{"b", "e", 1}, {"a", "e", 1}}, {{"a", "eb", 1}, {"", "e", 1}},
                    {{"ab", "", 1}, {"e", "e", 1}}, {{"a", "be", 1}, {"", "e", 1}}};
    struct sl_sha256 sha;
    unsigned char digests[sizeof(lists) / sizeof(lists[0])][SL_SHA256_BYTES];
    sl_sha256_init(&sha);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct sl_item_index_seal seal = {.sha = &sha};
        for (size_t k = 0; k < 2; k++)
            sl_item_index_seal_add(&seal, sl_span_str(lists[i][k].key), lists[i][k].bytes,
                                   sl_span_str(lists[i][k].etag));
        memcpy(digests[i], seal.digest, SL_SHA256_BYTES);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(digests[i], digests[k], SL_ITEM_INDEX_SEAL_BYTES);
    }
    sl_sha256_clean_up(&sha);
}

static void a_run_is_in_one_folder(void **state)
{
    (void)state;
    size_t parts = 0;
    assert_true(sl_item_index_parts(SL_LIT("t/hour=1/x"), SL_LIT("t/hour=2/x")));
    assert_true(sl_item_index_parts(SL_LIT("t/hour=1/x"), SL_LIT("t/hour=1/x/y")));
    assert_true(sl_item_index_parts(SL_LIT("x"), SL_LIT("y/x")));
    for (int i = 0; i < 100000; i++)
        parts += sl_item_index_parts(sl_span_str(json_printf("t/%06d", i)),
                                     sl_span_str(json_printf("t/%06d", i + 1)));
    assert_in_range(parts, 200, 600);
}

static int set_up(void **state)
{
    static struct sl_vars none;
    (void)state;
    folder = test_folder();
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &none);
    struct sl_error error = SL_NO_ERROR;
    return sl_target_objects(&sinks, sl_span_str(json_printf("file:%s", folder)), &port, &error);
}

static int tear_down(void **state)
{
    (void)state;
    port->close(port);
    sl_sinks_clean_up(&sinks);
    test_folder_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_item_of_a_large_volume_costs_a_small_read),
        cmocka_unit_test(small_volumes_are_put_together),
        cmocka_unit_test(names_say_how_long_a_volume_is),
        cmocka_unit_test(a_seal_changes_with_each_object),
        cmocka_unit_test(a_run_is_in_one_folder),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
