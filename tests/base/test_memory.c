/* Buffers and arenas at their edges: a maximum, the end of a chunk, memory that is wiped. */
#include "tests/support/test.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- buffers ---- */

/* What a buffer of this maximum holds after random additions is what a plain array holds: an addition that
 * would pass the maximum adds nothing, and neither does any after it. */
static void append_at_random(struct sl_buffer *b, uint64_t *seed)
{
    char model[2048];
    size_t len = 0;
    bool failed = false;
    for (int i = 0; i < 60; i++) {
        char bytes[64];
        size_t n = sl_random_step(seed) % 8 ? sl_random_step(seed) % sizeof(bytes) : b->max - len;
        n = n < sizeof(bytes) ? n : sizeof(bytes) - 1;
        memset(bytes, 'a' + i % 26, n);
        bytes[n] = '\0';
        bool is_printed = sl_random_step(seed) % 4 == 0; /* which needs room for a NUL, too */
        failed = failed || len + n + is_printed > b->max;
        if (is_printed)
            sl_buffer_printf(b, "%s", bytes);
        else
            sl_buffer_add(b, bytes, n);
        if (!failed) {
            memcpy(model + len, bytes, n);
            len += n;
        }
        assert_int_equal(b->failed, failed);
        assert_true(sl_span_eq(sl_buffer_span(b), sl_span(model, len)));
        assert_true(b->room <= b->max || b->room <= 256);
    }
}

static void a_buffer_never_passes_its_maximum(void **state)
{
    (void)state;
    static const size_t most[] = {1, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1000, 2048};
    uint64_t seed = 9;
    for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++)
        for (int kind = 0; kind < 3; kind++)
            for (int round = 0; round < 20; round++) {
                struct sl_arena *arena = sl_arena_new(256);
                struct sl_buffer b;
                if (kind == 0)
                    sl_buffer_init_in(&b, arena, most[i]);
                else
                    sl_buffer_init(&b, most[i]);
                b.is_secret = kind == 2;
                append_at_random(&b, &seed);
                sl_buffer_reset(&b);
                append_at_random(&b, &seed);
                sl_buffer_clean_up(&b);
                assert_null(b.ptr);
                assert_int_equal(b.max, most[i]);
                assert_int_equal(b.is_secret, kind == 2);
                append_at_random(&b, &seed);
                sl_buffer_clean_up(&b);
                sl_arena_destroy(arena);
            }
}

/* Exactly full is no failure, for each way to add. */
static void a_full_buffer_takes_nothing_more(void **state)
{
    (void)state;
    for (int64_t number = 5; number < 12345678; number = number * 10 + 6) {
        struct sl_buffer measure, b;
        sl_buffer_init(&measure, 64);
        sl_buffer_add_integer(&measure, number);
        for (size_t max = measure.len - 1; max <= measure.len + 1; max++) {
            sl_buffer_init(&b, max);
            sl_buffer_add_integer(&b, number);
            assert_int_equal(b.failed, max < measure.len);
            assert_int_equal(b.len, b.failed ? 0 : measure.len);
            sl_buffer_clean_up(&b);
        }
        sl_buffer_clean_up(&measure);
    }
    struct sl_buffer b;
    sl_buffer_init(&b, 4);
    sl_buffer_add_str(&b, "abcd");
    assert_non_null(sl_buffer_reserve(&b, 0));
    assert_null(sl_buffer_reserve(&b, 1));
    assert_null(sl_buffer_reserve(&b, 0));
    assert_span_is(sl_buffer_span(&b), "abcd");
    sl_buffer_clean_up(&b);
}

static void a_secret_is_wiped_where_it_was(void **state)
{
    (void)state;
    struct sl_buffer b;
    sl_buffer_init(&b, 4096);
    b.is_secret = true;
    sl_buffer_reset(&b); /* of no memory yet */
    sl_buffer_add_str(&b, "password");
    sl_buffer_reset(&b);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(b.ptr[i], 0);
    sl_buffer_add_str(&b, "again");
    sl_buffer_reserve(&b, 1000);
    assert_span_is(sl_buffer_span(&b), "again");
    sl_buffer_clean_up(&b);
}

/* ---- arenas ---- */

#ifdef SL_ARENA_DEBUG
#define HAS_CHUNKS false /* each allocation is a malloc */
#else
#define HAS_CHUNKS true
#endif

#define CHUNK 1024

/* Up to half a chunk is taken from the chunk in use, as long as it fits, to its last byte. */
static void a_chunk_is_used_to_its_end(void **state)
{
    (void)state;
    const size_t align = _Alignof(max_align_t);
    for (size_t size = align; HAS_CHUNKS && size <= CHUNK / 2; size *= 2) {
        struct sl_arena *arena = sl_arena_new(CHUNK);
        char *first = sl_arena_alloc(arena, size);
        for (size_t i = 1; i < CHUNK / size; i++)
            assert_ptr_equal(sl_arena_alloc(arena, size - i % 2), first + i * size);
        assert_int_equal(sl_arena_used(arena), CHUNK);
        char *next = sl_arena_alloc(arena, size);
        assert_true(next + size <= first || next >= first + CHUNK);
        assert_int_equal(sl_arena_used(arena), CHUNK + size);
        sl_arena_destroy(arena);
    }
}

static void a_large_allocation_leaves_the_chunk_in_use(void **state)
{
    (void)state;
    const size_t align = _Alignof(max_align_t);
    struct sl_arena *arena = sl_arena_new(CHUNK);
    char *large = sl_arena_alloc(arena, CHUNK / 2 + 1); /* before there is a chunk */
    memset(large, 'l', CHUNK / 2 + 1);
    char *small = sl_arena_alloc(arena, 1);
    *small = 's';
    for (size_t i = 1; i < 20; i++) {
        char *more = sl_arena_alloc(arena, CHUNK * i);
        memset(more, 'm', CHUNK * i);
        char *next = sl_arena_alloc(arena, 1);
        if (HAS_CHUNKS)
            assert_ptr_equal(next, small + i * align);
        *next = 'n';
    }
    assert_int_equal(large[CHUNK / 2], 'l');
    assert_int_equal(*small, 's');
    sl_arena_reset(arena);
    char *again = sl_arena_alloc(arena, 1);
    if (HAS_CHUNKS)
        assert_ptr_equal(again, small);
    sl_arena_destroy(arena);
}

/* Resets of arenas that hold nothing, only large memory, or one chunk. */
static void an_arena_begins_again_after_each_reset(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(CHUNK);
    uint64_t seed = 4;
    for (int round = 0; round < 300; round++) {
        sl_arena_reset(arena);
        assert_int_equal(sl_arena_used(arena), 0);
        char *kept[24];
        size_t sizes[24], n = sl_random_step(&seed) % 24;
        for (size_t i = 0; i < n; i++) {
            sizes[i] = sl_random_step(&seed) % (round % 3 == 0   ? 4 * CHUNK
                                                : round % 3 == 1 ? CHUNK / 2 + 1
                                                                 : 40);
            kept[i] = sl_arena_alloc(arena, sizes[i]);
            memset(kept[i], (int)('a' + i), sizes[i]);
        }
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(kept[i][k], 'a' + i);
    }
    sl_arena_destroy(arena);
}

static void a_secret_arena_is_wiped_at_reset(void **state)
{
    (void)state;
    for (int is_secret = 0; HAS_CHUNKS && is_secret < 2; is_secret++) {
        struct sl_arena *arena = sl_arena_new(CHUNK);
        if (is_secret)
            sl_arena_keep_secret(arena);
        char *whole = sl_arena_copy(arena, SL_LIT("key")), *last = sl_arena_alloc(arena, CHUNK / 4);
        memset(last, 'x', CHUNK / 4);
        sl_arena_reset(arena);
        assert_ptr_equal(sl_arena_alloc(arena, 4), whole);
        assert_int_equal(whole[0], is_secret ? 0 : 'k');
        for (size_t i = 0; i < CHUNK / 4; i++)
            assert_int_equal(last[i], is_secret ? 0 : 'x');
        sl_arena_destroy(arena);
    }
}

static char order[8];

static void note(void *arg)
{
    order[strlen(order)] = *(const char *)arg;
}

static void clean_ups_run_last_first_and_once(void **state)
{
    (void)state;
    memset(order, 0, sizeof(order));
    struct sl_arena *arena = sl_arena_new(CHUNK);
    sl_arena_defer(arena, note, (void *)(uintptr_t) "a");
    sl_arena_defer(arena, note, (void *)(uintptr_t) "b");
    sl_arena_defer(arena, note, (void *)(uintptr_t) "c");
    sl_arena_reset(arena);
    assert_string_equal(order, "cba");
    sl_arena_defer(arena, note, (void *)(uintptr_t) "d");
    sl_arena_destroy(arena);
    assert_string_equal(order, "cbad");
}

static void texts_are_copied_and_end_with_a_nul(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(64);
    for (size_t n = 0; n < 200; n++) {
        char bytes[200];
        memset(bytes, 'x', n);
        char *copy = sl_arena_copy(arena, sl_span(bytes, n)), *zero = sl_arena_zalloc(arena, n + 1);
        assert_true(strlen(copy) == n && memcmp(copy, bytes, n) == 0);
        for (size_t i = 0; i <= n; i++)
            assert_int_equal(zero[i], 0);
        char *printed = sl_arena_printf(arena, "%s%.*s", "", (int)n, bytes);
        assert_string_equal(printed, copy);
    }
    assert_string_equal(sl_arena_copy(arena, sl_span(NULL, 0)), "");
    sl_arena_destroy(arena);
}

/* Into the room that is there and beyond it: every length, at every place of a chunk and of a buffer. */
static void a_text_is_printed_whole_wherever_it_begins(void **state)
{
    (void)state;
    char wanted[160];
    for (int before = 1; before < 120; before += 7)
        for (int n = 0; n < 150; n++) {
            snprintf(wanted, sizeof(wanted), "%0*d", n, 7);
            struct sl_arena *arena = sl_arena_new(256);
            (void)sl_arena_alloc(arena, (size_t)before);
            char *one = sl_arena_printf(arena, "%0*d", n, 7), *two = sl_arena_printf(arena, "%s!", "next");
            assert_string_equal(one, wanted);
            assert_string_equal(two, "next!");
            struct sl_buffer b;
            sl_buffer_init(&b, 400);
            sl_buffer_printf(&b, "%0*d", before, 1);
            sl_buffer_printf(&b, "%0*d", n, 7);
            assert_int_equal(b.len, (size_t)before + strlen(wanted));
            assert_memory_equal(b.ptr + before, wanted, strlen(wanted));
            assert_false(b.failed);
            sl_buffer_clean_up(&b);
            sl_arena_destroy(arena);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_never_passes_its_maximum),
        cmocka_unit_test(a_full_buffer_takes_nothing_more),
        cmocka_unit_test(a_secret_is_wiped_where_it_was),
        cmocka_unit_test(a_chunk_is_used_to_its_end),
        cmocka_unit_test(a_text_is_printed_whole_wherever_it_begins),
        cmocka_unit_test(a_large_allocation_leaves_the_chunk_in_use),
        cmocka_unit_test(an_arena_begins_again_after_each_reset),
        cmocka_unit_test(a_secret_arena_is_wiped_at_reset),
        cmocka_unit_test(clean_ups_run_last_first_and_once),
        cmocka_unit_test(texts_are_copied_and_end_with_a_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
