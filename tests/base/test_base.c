#include "tests/support/test.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "base/vars.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static void first_error_wins(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_fail_at(&error, SL_REJECT, "InvalidJson", 7, "no %s", "good"), SL_REJECT);
    assert_int_equal(sl_fail(&error, SL_FATAL, "Other", "later"), SL_FATAL);
    assert_string_equal(error.text, "no good");
    assert_string_equal(error.code, "InvalidJson");
    assert_int_equal(error.offset, 7);
    sl_error_context(&error, "file %d", 3);
    assert_string_equal(error.text, "file 3: no good");
    assert_int_equal(sl_fail(NULL, SL_RETRY, "X", "nowhere"), SL_RETRY);
    sl_error_clear(&error);
    assert_int_equal(error.status, SL_OK);
}

static void error_text_is_one_line_of_utf8(void **state)
{
    (void)state;
    for (size_t lead = 0; lead < 5; lead++) {
        char text[2000];
        size_t n = lead;
        memset(text, 'a', lead);
        while (n < sizeof(text) - 5) {
            memcpy(text + n, "\xF0\x9F\xA6\x8A", 4);
            n += 4;
        }
        text[n] = '\0';
        text[lead ? 0 : 3] = '\n';
        struct sl_error error = SL_NO_ERROR;
        sl_fail(&error, SL_REJECT, "X", "%s", text + (lead ? 0 : 3));
        assert_null(strchr(error.text, '\n'));
        json_t *value = json_stringn(error.text, strlen(error.text));
        assert_non_null(value); /* jansson takes whole UTF-8 only */
        json_decref(value);
    }
}

static void buffer_keeps_its_maximum(void **state)
{
    (void)state;
    struct sl_buffer b;
    sl_buffer_init(&b, 10);
    sl_buffer_add_str(&b, "12345");
    sl_buffer_add_str(&b, "67890");
    assert_false(b.failed);
    sl_buffer_add_char(&b, 'x');
    assert_true(b.failed);
    assert_span_is(sl_buffer_span(&b), "1234567890");
    sl_buffer_add(&b, "", 0);
    assert_true(b.failed);
    sl_buffer_reset(&b);
    assert_false(b.failed);
    sl_buffer_printf(&b, "%03d", 7);
    assert_span_is(sl_buffer_span(&b), "007");
    sl_buffer_clean_up(&b);
    sl_buffer_clean_up(NULL);
}

static void count(void *arg)
{
    ++*(int *)arg;
}

static void arena_gives_aligned_memory_and_cleans_up(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(1024);
    int cleaned = 0;
    for (int round = 0; round < 3; round++) {
        char *kept[200];
        for (size_t i = 0; i < 200; i++) {
            kept[i] = sl_arena_alloc(arena, i * 7);
            assert_int_equal((uintptr_t)kept[i] % _Alignof(max_align_t), 0);
            memset(kept[i], (int)i, i * 7);
        }
        for (size_t i = 0; i < 200; i++)
            for (size_t k = 0; k < i * 7; k++)
                assert_int_equal((unsigned char)kept[i][k], i & 0xFF);
        assert_true(sl_arena_used(arena) >= 199 * 100 * 7);
        sl_arena_defer(arena, count, &cleaned);
        assert_string_equal(sl_arena_printf(arena, "%d-%s", 5, "x"), "5-x");
        sl_arena_reset(arena);
        assert_int_equal(cleaned, round + 1);
        assert_int_equal(sl_arena_used(arena), 0);
    }
    sl_arena_defer(arena, count, &cleaned);
    sl_arena_destroy(arena);
    assert_int_equal(cleaned, 4);
    sl_arena_destroy(NULL);
}

static void json_strings_are_valid_whatever_comes_in(void **state)
{
    (void)state;
    uint64_t seed = 1;
    struct sl_buffer b;
    sl_buffer_init(&b, 1 << 16);
    for (int i = 0; i < 20000; i++) {
        unsigned char bytes[24];
        size_t n = sl_random_step(&seed) % sizeof(bytes);
        for (size_t k = 0; k < n; k++) {
            uint64_t r = sl_random_step(&seed);
            bytes[k] = (unsigned char)(r % 3 ? (r >> 8) : (r >> 8) % 4 + 0xED);
        }
        sl_buffer_reset(&b);
        sl_json_add_string(&b, sl_span((char *)bytes, n));
        json_t *value = json_loadb(b.ptr, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (!value)
            fail_msg("not JSON: %.*s", (int)b.len, b.ptr);
        json_decref(value);
    }
    sl_buffer_reset(&b);
    sl_buffer_add_char(&b, '{');
    sl_json_add_member(&b, "a", SL_LIT("x\"\\\n\x01\xC3\xA4"));
    sl_json_add_integer(&b, "b", -3);
    sl_json_add_raw(&b, "c", SL_LIT("[1]"));
    sl_buffer_add_char(&b, '}');
    assert_span_is(sl_buffer_span(&b), "{\"a\":\"x\\\"\\\\\\n\\u0001\xC3\xA4\",\"b\":-3,\"c\":[1]}");
    sl_buffer_clean_up(&b);
}

static void virtual_time_moves_only_by_sleep(void **state)
{
    (void)state;
    struct sl_clock_virtual a, b;
    sl_clock_virtual_init(&a, 1600000000000000000, 42);
    sl_clock_virtual_init(&b, 1600000000000000000, 42);
    assert_int_equal(a.clock.random(&a.clock), b.clock.random(&b.clock));
    assert_int_equal(a.clock.now_ms(&a.clock), 0);
    a.clock.sleep_ms(&a.clock, 86400000);
    assert_int_equal(a.clock.now_ms(&a.clock), 86400000);
    char text[SL_TIME_BYTES];
    sl_time_text(a.clock.wall_ns(&a.clock), text);
    assert_string_equal(text, "2020-09-14T12:26:40.000Z");
    sl_time_text(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999Z");
    struct sl_clock *real = sl_clock_system();
    int64_t before = real->now_ms(real);
    real->sleep_ms(real, 2);
    assert_true(real->now_ms(real) >= before + 1);
}

static void ring(int signal)
{
    (void)signal;
}

/* Signals cut no sleep short, and an old errno makes none longer. */
static void a_sleep_lasts_as_long_as_it_was_told(void **state)
{
    (void)state;
    struct sl_clock *real = sl_clock_system();
    struct sigaction action = {.sa_handler = ring}, old;
    const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, &old);
    setitimer(ITIMER_REAL, &often, NULL);
    int64_t before = real->now_ns(real);
    real->sleep_ms(real, 30);
    int64_t slept_ns = real->now_ns(real) - before;
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    assert_true(slept_ns >= 29000000);
    errno = EINTR;
    real->sleep_ms(real, 1);
    errno = EINTR;
    real->sleep_ms(real, 0);
    real->sleep_ms(real, -5);
    struct sl_clock_virtual v;
    sl_clock_virtual_init(&v, 0, 1);
    v.clock.sleep_ms(&v.clock, -5);
    assert_int_equal(v.clock.now_ms(&v.clock), 0);
    v.clock.sleep_ms(&v.clock, 1);
    assert_int_equal(v.clock.now_ns(&v.clock), 1000000);
}

static void times_are_read_as_they_are_written(void **state)
{
    (void)state;
    char text[SL_TIME_BYTES];
    int64_t ns, step_ns;
    sl_time_text(1763672640123456789, text);
    assert_string_equal(text, "2025-11-20T21:04:00.123Z");
    assert_true(sl_time_parse(sl_span_str(text), &ns, &step_ns));
    assert_int_equal(ns, 1763672640123000000);
    assert_int_equal(step_ns, 1000000);
    assert_true(sl_time_parse(SL_LIT("2025-11-20T23:04:00+02:00"), &ns, &step_ns));
    assert_int_equal(ns, 1763672640000000000);
    assert_false(sl_time_parse(SL_LIT("2025-11-20"), &ns, &step_ns));
    assert_false(sl_time_parse(sl_span(NULL, 0), &ns, &step_ns));
}

static void variables_are_found_by_whole_name(void **state)
{
    (void)state;
    const char *const list[] = {"AB=1", "A=2", "EMPTY=", NULL};
    struct sl_vars vars = {.list = list};
    assert_string_equal(sl_vars_get(&vars, "A"), "2");
    assert_null(sl_vars_get(&vars, "B"));
    assert_string_equal(sl_vars_or(&vars, "EMPTY", "x"), "x");
    assert_null(sl_vars_get(&(struct sl_vars){.list = NULL}, "A"));
}

/* Against printf, which is slower. */
static void numbers_are_written_as_printf_does(void **state)
{
    (void)state;
    uint64_t seed = 21;
    struct sl_buffer b;
    char wanted[64];
    sl_buffer_init(&b, 1024);
    for (int i = 0; i < 20000; i++) {
        int64_t number = (int64_t)(sl_random_step(&seed) >> (sl_random_step(&seed) % 64));
        number = i == 0 ? INT64_MIN : i == 1 ? INT64_MAX : i % 2 ? -number : number;
        sl_buffer_reset(&b);
        sl_buffer_add_integer(&b, number);
        snprintf(wanted, sizeof(wanted), "%" PRId64, number);
        assert_true(b.len == strlen(wanted) && memcmp(b.ptr, wanted, b.len) == 0);
        uint64_t thousandths = sl_random_step(&seed) % 1000000 * (i % 3 ? 1 : i % 2 ? 10 : 100);
        sl_buffer_reset(&b);
        sl_buffer_add_thousandths(&b, thousandths);
        snprintf(wanted, sizeof(wanted), "%.15g", (double)thousandths / 1000);
        assert_true(b.len == strlen(wanted) && memcmp(b.ptr, wanted, b.len) == 0);
    }
    sl_buffer_clean_up(&b);
}

/* Every two of a list that is in order; an absent one is as an empty one. */
static void spans_have_one_order(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "0", "00", "1", "10", "2", "a", "ab", "a\x7f", "a\x80"};
    static const char *const numbers[] = {"0", "1", "2", "10", "11", "100"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
            int order = sl_span_compare(sl_span_str(texts[i]), sl_span_str(texts[k]));
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
            int order = sl_span_compare_digits(sl_span_str(numbers[i]), sl_span_str(numbers[k]));
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
    assert_int_equal(sl_span_compare(sl_span(NULL, 0), sl_span_str("")), 0);
    assert_true(sl_span_compare(sl_span(NULL, 0), sl_span_str("a")) < 0);
    assert_true(sl_span_compare(sl_span_str("a"), sl_span(NULL, 0)) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_error_wins),
        cmocka_unit_test(error_text_is_one_line_of_utf8),
        cmocka_unit_test(buffer_keeps_its_maximum),
        cmocka_unit_test(arena_gives_aligned_memory_and_cleans_up),
        cmocka_unit_test(json_strings_are_valid_whatever_comes_in),
        cmocka_unit_test(virtual_time_moves_only_by_sleep),
        cmocka_unit_test(a_sleep_lasts_as_long_as_it_was_told),
        cmocka_unit_test(times_are_read_as_they_are_written),
        cmocka_unit_test(variables_are_found_by_whole_name),
        cmocka_unit_test(numbers_are_written_as_printf_does),
        cmocka_unit_test(spans_have_one_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
