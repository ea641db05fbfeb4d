/* An attribute read without an index is the one that the index returns. */
#include "base/clock.h"
#include "base/json_write.h"
#include "streams/decode/batch.h"
#include "streams/record_layout.h"
#include "tests/support/test.h"

#include <stdlib.h>

static const char long_name[] =
    "a name that is longer than what is searched for behind the first of its kind "
    "............................................................................"
    "............................................................................"
    "..........................................................";

static const char *const names[] = {"", "a", "b", "ab", "M", "S", "a.b", "\xC3\xA9", "quo\"ted", long_name};

#define N_NAMES (sizeof(names) / sizeof(names[0]))

static void add_name(struct sl_buffer *b, uint64_t r)
{
    const char *name = names[r % N_NAMES];
    if (r >> 32 & 3 || !name[0] || strchr(name, '"'))
        sl_json_add_string(b, sl_span_str(name));
    else
        sl_buffer_printf(b, "\"\\u%04x%s\"", (unsigned char)name[0] < 0x80 ? (unsigned)name[0] : 0xE9u,
                         (unsigned char)name[0] < 0x80 ? name + 1 : name + 2);
    sl_buffer_add_str(b, r >> 40 & 7 ? ":" : " : ");
}

static void add_value(struct sl_buffer *b, uint64_t *seed)
{
    uint64_t r = sl_random_step(seed);
    switch (r % 8) {
    case 0:
        sl_buffer_printf(b, "{\"N\":\"%u\"}", (unsigned)(r >> 40));
        break;
    case 1: /* names within values */
        sl_buffer_add_str(b, "{\"M\":{");
        add_name(b, sl_random_step(seed));
        sl_buffer_add_str(b, "{\"S\":\"inner\"}}}");
        break;
    case 2:
        sl_buffer_add_str(b, "{ \"L\" : [ {\"S\":\"}{\"}, {\"BOOL\":true} ] }");
        break;
    case 3:
        sl_buffer_add_str(b, "{\"S\":\"\\\"a\\\":{\"}");
        break;
    case 4: /* texts that end or go on as the value's own text does, with a space at each place */
    case 5:
        sl_buffer_printf(b, "{%s\"S\"%s:%s\"}%s\"%s}", r >> 8 & 1 ? " " : "", r >> 10 & 1 ? " " : "",
                         r >> 11 & 1 ? " " : "", r >> 12 & 1 ? ",\\\"a\\\":{\\\"S\\\":\\\"x\\\"}" : "",
                         r >> 14 & 1 ? " " : "");
        break;
    case 6: /* types of more letters */
        sl_buffer_add_str(b, r >> 8 & 1 ? "{\"SS\":[\"}\"]}" : "{\"NULL\" :true}");
        break;
    default:
        sl_buffer_printf(b, "{\"\\u0053\":\"%u\"}", (unsigned)(r >> 40));
    }
}

static void make_record(struct sl_buffer *b, uint64_t *seed)
{
    uint64_t n = sl_random_step(seed) % 12;
    sl_buffer_reset(b);
    sl_buffer_add_str(
        b, "{\"eventName\":\"INSERT\",\"dynamodb\":{\"Keys\":{\"k\":{\"S\":\"x\"}},\"NewImage\":{");
    for (uint64_t i = 0; i < n; i++) {
        sl_buffer_add_str(b, i ? "," : "");
        add_name(b, sl_random_step(seed));
        add_value(b, seed);
    }
    sl_buffer_add_str(b, "}}}");
}

static void same(struct sl_value a, struct sl_value b)
{
    assert_int_equal(a.type, b.type);
    assert_ptr_equal(a.raw.ptr, b.raw.ptr);
    assert_int_equal(a.raw.len, b.raw.len);
    assert_int_equal(a.escaped, b.escaped);
}

static void a_scan_finds_what_the_index_finds(void **state)
{
    (void)state;
    struct sl_buffer text;
    uint64_t seed = 7;
    size_t found = 0;
    sl_buffer_init(&text, 1 << 16);
    for (int i = 0; i < 5000; i++) {
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_decode_options options = {.any_shape = true};
        struct sl_batch batch;
        struct sl_value scanned[N_NAMES];
        make_record(&text, &seed);
        assert_int_equal(sl_batch_decode(sl_buffer_span(&text), arena, &options, &batch, NULL), SL_OK);
        const struct sl_record *r = sl_batch_record(&batch, 0);
        for (size_t k = 0; k < N_NAMES; k++)
            scanned[k] = sl_record_scan(r, SL_NEW_IMAGE, sl_span_str(names[k]));
        for (size_t k = 0; k < N_NAMES; k++) {
            same(scanned[k], sl_record_attribute(r, SL_NEW_IMAGE, sl_span_str(names[k])));
            same(scanned[k], sl_record_scan(r, SL_NEW_IMAGE, sl_span_str(names[k])));
            found += scanned[k].type != SL_NONE;
        }
        assert_int_equal(sl_record_scan(r, SL_OLD_IMAGE, SL_LIT("a")).type, SL_NONE);
        sl_arena_destroy(arena);
    }
    assert_true(found > 10000);
    sl_buffer_clean_up(&text);
}

static void text_that_holds_a_name_is_never_passed_over(void **state)
{
    (void)state;
    char text[80];
    for (size_t n = 0; n < sizeof(text); n++)
        for (size_t at = 0; at + 3 <= n; at++) {
            memset(text, 'x', sizeof(text));
            memcpy(text + at, "a-b", 3);
            char *copy = malloc(n);
            memcpy(copy, text, n);
            assert_true(sl_record_may_hold(sl_span(copy, n), SL_LIT("a-b")));
            assert_true(sl_record_may_hold(sl_span(copy, n), SL_LIT("-")));
            assert_false(sl_record_may_hold(sl_span(copy, n), SL_LIT("a.b")));
            memcpy(copy + at, "\"-\"", 3);
            assert_true(sl_record_may_hold(sl_span(copy, n), SL_LIT("\"-\"")));
            assert_true(sl_record_may_hold(sl_span(copy, n), SL_LIT("\"-")));
            assert_true(sl_record_may_hold(sl_span(copy, n), SL_LIT("-\"")));
            assert_false(sl_record_may_hold(sl_span(copy, n), SL_LIT("\"\"")));
            memcpy(copy + at, "a-b", 3);
            assert_false(sl_record_may_hold(sl_span(copy, at + 2), SL_LIT("a-b")));
            copy[at] = '\\';
            assert_true(sl_record_may_hold(sl_span(copy, n), SL_LIT("nothing")));
            free(copy);
        }
    assert_false(sl_record_may_hold(sl_span(NULL, 0), SL_LIT("a")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_finds_what_the_index_finds),
        cmocka_unit_test(text_that_holds_a_name_is_never_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
