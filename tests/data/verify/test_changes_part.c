/* Changes of an archive as an object: whatever shares a reader takes, each change is in one of them, with the
 * name of its object. */
#include "data/verify/archive/part.h"
#include "data/verify/archive/walk.h"
#include "base/clock.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define CHANGES 3000
#define OBJECTS 70

static struct sl_error error;

/* Of the shares from `from` until before `until`: how many changes, each in the object that it was read from.
 */
static size_t take(struct sl_span text, const struct sl_part_head *head, size_t from, size_t until)
{
    struct sl_sorter *sorter;
    struct sl_sorter_entry change;
    struct sl_span body;
    char *folder = NULL, *temp = test_folder_in_memory();
    size_t n = 0;
    bool is_ready = false, has = true;
    uint64_t begin = from ? head->ends[from - 1] : 0;
    assert_int_equal(sl_chain_open(temp, &folder, &sorter, &error), SL_OK);
    assert_int_equal(
        sl_changes_part_take(sl_span(text.ptr + SL_PART_HEAD_BYTES + begin, head->ends[until - 1] - begin), 7,
                             sorter, &error),
        SL_OK);
    while (!is_ready)
        assert_int_equal(sl_sorter_merge(sorter, CHANGES, &is_ready, &error), SL_OK);
    for (; has; n += has) {
        char name[40];
        assert_int_equal(sl_sorter_next(sorter, &change, &body, &has, &error), SL_OK);
        if (!has)
            break;
        assert_in_range(change.key[0], from, until - 1);
        assert_int_equal(sl_changes_part_number(&change), 7);
        snprintf(name, sizeof(name), "object-%d\n", (int)change.before);
        const char *at =
            text.ptr + SL_PART_HEAD_BYTES + head->ends[SL_PART_SHARES - 1] + sl_changes_part_name_at(&change);
        assert_memory_equal(at, name, strlen(name));
        assert_int_equal(change.flags & SL_CHANGE_LATE, change.before % 2 ? SL_CHANGE_LATE : 0);
    }
    sl_chain_close(folder, sorter);
    test_folder_remove(temp);
    return n;
}

static void every_change_is_in_one_share(void **state)
{
    (void)state;
    uint64_t seed = 1;
    size_t in_share[SL_PART_SHARES] = {0};
    struct sl_changes_part part;
    struct sl_buffer out;
    struct sl_part_head head;
    struct sl_arena *arena = sl_arena_new(1 << 16);
    sl_changes_part_init(&part);
    for (size_t i = 0; i < OBJECTS; i++) {
        uint64_t flags = sl_changes_part_object(&part, sl_span_str(json_printf("object-%zu", i)));
        for (size_t k = 0; k < CHANGES / OBJECTS; k++) {
            struct sl_sorter_entry change = {.order_bytes = SL_SORTER_ORDER_BYTES,
                                             .before = i,
                                             .flags = flags | (i % 2 ? SL_CHANGE_LATE : 0)};
            change.key[0] = (unsigned char)sl_random_step(&seed);
            memset(change.order, '0', sizeof(change.order));
            in_share[change.key[0]]++;
            sl_changes_part_add(&part, &change);
        }
    }
    sl_buffer_init(&out, 1 << 24);
    assert_int_equal(sl_changes_part_write(&part, SL_LIT("the-one-before"), arena, &out, &error), SL_OK);
    assert_int_equal(sl_part_head_read(sl_span(out.ptr, SL_PART_HEAD_BYTES), arena, &head, &error), SL_OK);
    assert_true(sl_span_is(head.before, "the-one-before"));
    for (size_t share = 0; share < SL_PART_SHARES; share++)
        assert_int_equal(take(sl_buffer_span(&out), &head, share, share + 1), in_share[share]);
    assert_int_equal(take(sl_buffer_span(&out), &head, 0, SL_PART_SHARES), part.n);
    assert_int_equal(part.n, OBJECTS * (CHANGES / OBJECTS));

    /* More names than an object may have. */
    part.names.failed = true;
    sl_buffer_reset(&out);
    assert_int_equal(sl_changes_part_write(&part, sl_span(NULL, 0), arena, &out, &error), SL_FATAL);
    assert_string_equal(error.code, "PartTooLong");
    sl_changes_part_clean_up(&part);
    sl_buffer_clean_up(&out);
    sl_arena_destroy(arena);
}

static void work_is_shared_by_as_many_as_there_are_shares(void **state)
{
    (void)state;
    assert_int_equal(sl_part_workers(0, 10), 1);
    assert_int_equal(sl_part_workers(9, 10), 1);
    assert_int_equal(sl_part_workers(10, 10), 2);
    assert_int_equal(sl_part_workers(2559, 10), SL_PART_SHARES);
    assert_int_equal(sl_part_workers(2560, 10), SL_PART_SHARES);
    assert_int_equal(sl_part_workers(UINT64_MAX, 10), SL_PART_SHARES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_is_in_one_share),
        cmocka_unit_test(work_is_shared_by_as_many_as_there_are_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
