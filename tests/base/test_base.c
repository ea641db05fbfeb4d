#include "tests/support/test.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "base/log.h"
#include "base/vars.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
    struct sl_vars vars = {list};
    assert_string_equal(sl_vars_get(&vars, "A"), "2");
    assert_null(sl_vars_get(&vars, "B"));
    assert_string_equal(sl_vars_or(&vars, "EMPTY", "x"), "x");
    assert_null(sl_vars_get(&(struct sl_vars){NULL}, "A"));
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

/* A plan that is filled in is the document itself, whatever its numbers are. */
static void a_planned_document_is_the_document(void **state)
{
    (void)state;
    uint64_t seed = 5;
    struct sl_emf_metric metrics[] = {{"A", "Count", 0}, {"B\n", "Milliseconds", 0}, {"Route", "?", 0}},
                         fact = {"F", "", 0};
    struct sl_emf emf = {.function = "f\"", .metrics = metrics, .n = 3, .facts = &fact, .n_facts = 1};
    struct sl_buffer one, other;
    sl_buffer_init(&one, 65536);
    sl_buffer_init(&other, 65536);
    for (int i = 0; i < 2000; i++) {
        emf.route = i % 2 ? "r" : NULL;
        emf.level = i % 3 ? "WARN" : NULL;
        struct sl_emf_plan plan;
        sl_emf_plan_init(&plan, &emf);
        double values[4];
        for (size_t k = 0; k < 4; k++)
            values[k] =
                (double)(int64_t)sl_random_step(&seed) / (double)(1ull << (sl_random_step(&seed) % 60));
        if (i % 5 == 0)
            values[1] = (double)(sl_random_step(&seed) % 100000) / 1000;
        for (size_t k = 0; k < 3; k++)
            metrics[k].value = values[k];
        fact.value = values[3];
        emf.epoch_ms = 1795359003109 + i;
        sl_buffer_reset(&one);
        sl_buffer_reset(&other);
        sl_emf_add(&one, &emf);
        sl_emf_plan_add(&plan, emf.epoch_ms, values, &other);
        assert_true(one.len == other.len && memcmp(one.ptr, other.ptr, one.len) == 0);
        json_t *value = json_loadb(one.ptr, one.len, JSON_REJECT_DUPLICATES, NULL);
        assert_true(json_integer_value(json_object_get(json_object_get(value, "_aws"), "Timestamp")) ==
                    emf.epoch_ms);
        assert_float_equal(json_number_value(json_object_get(value, "A")), values[0],
                           fabs(values[0]) * 1e-14);
        assert_float_equal(json_number_value(json_object_get(value, "Route_")), values[2],
                           fabs(values[2]) * 1e-14);
        json_decref(value);
        sl_emf_plan_clean_up(&plan);
    }
    sl_buffer_clean_up(&one);
    sl_buffer_clean_up(&other);
}

/* More metrics than a document may have become several documents. */
static void a_document_has_a_hundred_metrics_at_most(void **state)
{
    (void)state;
    struct sl_emf_metric metrics[250];
    struct sl_buffer b;
    for (size_t i = 0; i < 250; i++)
        metrics[i] = (struct sl_emf_metric){"M", "Count", (double)i};
    const size_t cases[][2] = {{0, 0}, {1, 1}, {100, 1}, {101, 2}, {200, 2}, {250, 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t lines = 0;
        sl_buffer_init(&b, 1 << 20);
        sl_emf_add(&b, &(struct sl_emf){.function = "f", .metrics = metrics, .n = cases[i][0]});
        for (size_t k = 0; k < b.len; k++)
            lines += b.ptr[k] == '\n';
        assert_int_equal(lines, cases[i][1]);
        sl_buffer_clean_up(&b);
    }
}

/* Whatever is logged, each line is one JSON object with no control byte in it. */
static void log_lines_cannot_be_injected(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct sl_log log;
    sl_log_init(&log, fds[1], SL_INFO, SL_LOG_JSON, sl_clock_system());
    snprintf(log.request_id, sizeof(log.request_id), "id\"\n{");
    log.route = "a\x1b[31m\"";
    sl_log(&log, SL_DEBUG, "%s", "below the level");
    sl_log(&log, SL_WARN, "value %s", "\n{\"level\":\"FATAL\"}\r\xFF");
    sl_log_metric(&log, "fn\n", "Records", 3, "Count");
    close(fds[1]);
    char bytes[4096];
    ssize_t n = read(fds[0], bytes, sizeof(bytes) - 1);
    assert_true(n > 0);
    close(fds[0]);
    bytes[n] = '\0';
    int lines = 0;
    for (char *line = bytes, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
        json_t *value = json_loadb(line, (size_t)(end - line), 0, NULL);
        assert_true(json_is_object(value));
        for (char *p = line; p < end; p++)
            assert_true((unsigned char)*p >= 0x20);
        json_decref(value);
    }
    assert_int_equal(lines, 2);
    assert_int_equal(sl_log_level("warn", SL_INFO), SL_WARN);
    assert_int_equal(sl_log_level("FATAL", SL_INFO), SL_ERROR);
    assert_int_equal(sl_log_level("what", SL_INFO), SL_INFO);
    sl_log_clean_up(&log);
}

static void text_lines_stay_one_line(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct sl_log log;
    sl_log_init(&log, fds[1], SL_INFO, SL_LOG_TEXT, sl_clock_system());
    snprintf(log.request_id, sizeof(log.request_id), "id\n");
    log.route = "a\r";
    sl_log(&log, SL_WARN, "said \"%s\"", "\n\x1b[2J\xC3\xA4");
    close(fds[1]);
    char bytes[256];
    ssize_t n = read(fds[0], bytes, sizeof(bytes));
    close(fds[0]);
    assert_span_is(sl_span(bytes, (size_t)n), "WARN id\\n [a\\x0d] said \"\\n\\x1b[2J\xC3\xA4\"\n");
    sl_log_clean_up(&log);
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
        cmocka_unit_test(times_are_read_as_they_are_written),
        cmocka_unit_test(variables_are_found_by_whole_name),
        cmocka_unit_test(numbers_are_written_as_printf_does),
        cmocka_unit_test(a_planned_document_is_the_document),
        cmocka_unit_test(a_document_has_a_hundred_metrics_at_most),
        cmocka_unit_test(log_lines_cannot_be_injected),
        cmocka_unit_test(text_lines_stay_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
