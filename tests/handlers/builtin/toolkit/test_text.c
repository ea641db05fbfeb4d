/* Texts of the built-in handlers: digits, canonical values, numbers of texts, orders, and values as they were
 * written. */
#include "tests/support/test.h"

#include "base/span.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/map.h"
#include "handlers/builtin/toolkit/opening.h"
#include "handlers/builtin/toolkit/order.h"
#include "handlers/builtin/toolkit/text.h"
#include "handlers/pipeline/host.h"

#include <stdio.h>
#include <stdlib.h>

static const struct sl_host *const host = &sl_host_table;

static void digits_are_one_at_least_and_nothing_else(void **state)
{
    (void)state;
    static const char *const good[] = {"0", "9", "10", "0123456789"}, *const bad[] = {"",   "/",  ":",
                                                                                      " 1", "1 ", "-1",
                                                                                      "1.", "1a2"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(sl_span_is_digits(sl_span_str(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(sl_span_is_digits(sl_span_str(bad[i])));
}

static void a_text_is_found_in_a_list_whole(void **state)
{
    (void)state;
    static const char *const list[] = {"keep", "keep-any", "", NULL};
    assert_int_equal(sl_text_index(SL_LIT("keep"), list), 0);
    assert_int_equal(sl_text_index(SL_LIT("keep-any"), list), 1);
    assert_int_equal(sl_text_index(SL_LIT(""), list), 2);
    assert_int_equal(sl_text_index(SL_LIT("kee"), list), 3);
    assert_int_equal(sl_text_index(SL_LIT("keep-"), list), 3);
}

/* ---- canonical values ---- */

/* Spellings of values: those with one number are one value. Of S and B the text as JSON writes it. */
static const struct spelling {
    enum sl_type type;
    const char *text;
    int value;
} spellings[] = {
    {SL_N, "0", 0},
    {SL_N, "-0", 0},
    {SL_N, "00", 0},
    {SL_N, "0.0", 0},
    {SL_N, "0e7", 0},
    {SL_N, "1", 1},
    {SL_N, "01", 1},
    {SL_N, "1.0", 1},
    {SL_N, "10e-1", 1},
    {SL_N, "-1", 2},
    {SL_N, "-01", 2},
    {SL_N, "-1.00", 2},
    {SL_N, "10", 3},
    {SL_N, "1E1", 3},
    {SL_N, "99999999999999999999999999999999999999", 4},
    {SL_N, "099999999999999999999999999999999999999", 4},
    {SL_N, "-99999999999999999999999999999999999999", 5},
    {SL_N, "99999999999999999999999999999999999998", 6},
    {SL_N, "100000000000000000000000000000000000000", 7},
    {SL_N, "1E38", 7},
    {SL_N, "0.5", 8},
    {SL_N, "5e-1", 8},
    {SL_S, "1", 10},
    {SL_S, "\\u0031", 10},
    {SL_S, "1.0", 11},
    {SL_S, "a/b", 12},
    {SL_S, "a\\/b", 12},
    {SL_S, "\\u0061/b", 12},
    {SL_S, "\\\\", 13},
    {SL_S, "\\u005c", 13},
    {SL_S, "", 14},
    {SL_B, "YWE/", 20},
    {SL_B, "YWE\\/", 20},
    {SL_B, "YQ==", 21},
    {SL_B, "\\u0059Q==", 21},
    {SL_B, "1", 22},
};

static void values_are_equal_when_their_canonical_texts_are(void **state)
{
    (void)state;
    enum { COUNT = sizeof(spellings) / sizeof(spellings[0]) };
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_span texts[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        struct sl_value value = {.type = spellings[i].type, .raw = sl_span_str(spellings[i].text)};
        texts[i] = sl_text_canonical(host, value, arena);
        for (size_t k = 0; k < i; k++)
            if (sl_span_eq(texts[i], texts[k]) != (spellings[i].value == spellings[k].value))
                fail_msg("%s and %s: %.*s and %.*s", spellings[i].text, spellings[k].text, SL_ARG(texts[i]),
                         SL_ARG(texts[k]));
    }
    sl_arena_destroy(arena);
}

/* What DynamoDB's own streams never show is passed on as it is. */
static void what_is_no_number_stays(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    static const char *const texts[] = {"", "-", "x", "1x", "1e200"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct sl_value value = {.type = SL_N, .raw = sl_span_str(texts[i])};
        assert_span_is(sl_text_canonical(host, value, arena), json_printf("{'N':'%s'}", texts[i]));
    }
    sl_arena_destroy(arena);
}

static void keys_have_one_attribute_or_two(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    const struct sl_span names[] = {SL_LIT("PK"), SL_LIT("SK")};
    const struct sl_span values[] = {json_span("{'S':'a'}"), json_span("{'N':'1'}")};
    assert_span_is(sl_text_key(host, arena, names, values, 1), json("{'PK':{'S':'a'}}"));
    assert_span_is(sl_text_key(host, arena, names, values, 2), json("{'PK':{'S':'a'},'SK':{'N':'1'}}"));
    assert_span_is(sl_text_string_value(host, SL_LIT("a\"\\\n"), arena), "{\"S\":\"a\\\"\\\\\\n\"}");
    sl_arena_destroy(arena);
}

static void a_digest_is_the_begin_of_sha256(void **state)
{
    (void)state;
    char digest[SL_TEXT_DIGEST_BYTES + 1];
    sl_text_digest(host, SL_LIT("abc"), digest);
    assert_string_equal(digest, "ba7816bf8f01cfea414140de5dae2223");
}

/* ---- numbers of texts ---- */

static size_t index_in(const char (*list)[24], size_t n, const char *text)
{
    size_t i = 0;
    while (i < n && strcmp(list[i], text) != 0)
        i++;
    return i;
}

/* Against a list that is searched from its begin: numbers from 0 in the order in which texts come, each text
 * its own, whatever its length and however many there are. */
static void texts_get_numbers_in_the_order_in_which_they_come(void **state)
{
    (void)state;
    static const size_t expected[] = {0, 1, 8, 9, 300};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        static char list[600][24];
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_map map;
        uint64_t chance = seed;
        size_t n = 0;
        sl_map_init(&map, arena, expected[seed % 5]);
        for (size_t i = 0; i < 600; i++) {
            char text[24] = "";
            size_t len = sl_random_step(&chance) % 20;
            for (size_t k = 0; k < len; k++)
                text[k] = "ab"[sl_random_step(&chance) % 2];
            size_t at = index_in((const char(*)[24])list, n, text);
            struct sl_span kept = host->join(arena, &(struct sl_span){text, len}, 1);
            assert_int_equal(sl_map_find(&map, kept), at < n ? at : SL_MAP_NONE);
            assert_int_equal(sl_map_index(&map, kept), at);
            if (at == n)
                memcpy(list[n++], text, sizeof(text));
            assert_int_equal(map.n, n);
        }
        for (size_t i = 0; i < n; i++)
            assert_int_equal(sl_map_find(&map, sl_span_str(list[i])), i);
        sl_arena_destroy(arena);
    }
}

/* Texts that have one hash: found by an equation of the hash that is in keymap.c. */
static void texts_that_collide_are_still_told_apart(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_map map;
    uint64_t words[2][2] = {{1, 2}, {3, 0}}, mixed[2];
    for (int i = 0; i < 2; i++) {
        mixed[i] = (0x9E3779B97F4A7C15u ^ 16 ^ words[i][0]) * 0xFF51AFD7ED558CCDu;
        mixed[i] ^= mixed[i] >> 32;
    }
    words[1][1] = words[0][1] ^ mixed[0] ^ mixed[1];
    sl_map_init(&map, arena, 0);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(sl_map_index(&map, (struct sl_span){(const char *)words[i], 16}), i);
    assert_int_equal(map.entries[0].hash, map.entries[1].hash);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(sl_map_find(&map, (struct sl_span){(const char *)words[i], 16}), i);
    sl_arena_destroy(arena);
}

/* ---- orders ---- */

static struct sl_span order_text(char *room, int64_t epoch, const char *digits)
{
    return (struct sl_span){room, (size_t)(sl_order_put_epoch(room, epoch, sl_span_str(digits)) - room)};
}

/* In the order in which they are listed: by epoch, then by number, whatever their lengths. */
static void orders_compare_as_epochs_and_numbers_do(void **state)
{
    (void)state;
    static const struct {
        int64_t epoch;
        const char *digits;
    } orders[] = {{0, ""},
                  {0, "1"},
                  {0, "9"},
                  {0, "10"},
                  {0, "999999999999999999999"},
                  {0, "9999999999999999999999999999999999999999"},
                  {1, ""},
                  {1, "1"},
                  {9, "5"},
                  {10, "4"},
                  {10, "9999999999999999999999999999999999999999"},
                  {SL_ORDER_EPOCH_MAX, "1"}};
    enum { COUNT = sizeof(orders) / sizeof(orders[0]) };
    char texts[COUNT][SL_ORDER_BYTES];
    struct sl_span spans[COUNT];
    for (int i = 0; i < COUNT; i++) {
        spans[i] = order_text(texts[i], orders[i].epoch, orders[i].digits);
        assert_true(sl_order_is_known(spans[i]));
        for (int k = 0; k <= i; k++) {
            int order = sl_order_compare(spans[k], spans[i]);
            assert_true(k < i ? order < 0 : order == 0);
            assert_true((sl_order_compare(spans[i], spans[k]) > 0) == (k < i));
            assert_int_equal(sl_order_is_same_epoch(spans[i], spans[k]), orders[i].epoch == orders[k].epoch);
        }
    }
}

#define ZEROS "000000000000000000000000000000000000"

static void a_text_of_another_form_is_no_order(void **state)
{
    (void)state;
    static const char *const good[] = {ZEROS "0001", ":000001:" ZEROS "0001", ":999999:" ZEROS "9999"};
    static const char *const bad[] = {"",
                                      "1",
                                      ZEROS "001",
                                      ZEROS "00001",
                                      ZEROS "000x",
                                      ";000001:" ZEROS "0001",
                                      ":000001;" ZEROS "0001",
                                      ":00000x:" ZEROS "0001",
                                      ":000001:" ZEROS "000x",
                                      ":000001:" ZEROS "00011",
                                      ":00001:" ZEROS "0001"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(sl_order_is_known(sl_span_str(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (sl_order_is_known(sl_span_str(bad[i])))
            fail_msg("%s passes for an order", bad[i]);
    assert_int_equal(sl_order_compare(SL_LIT("12"), SL_LIT("123")), -1);
    assert_int_equal(sl_order_compare(SL_LIT("123"), SL_LIT("12")), 1);
}

static void a_number_that_is_too_long_is_rejected(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_order_check(host, SL_LIT(ZEROS "1234"), &error), SL_OK);
    assert_int_equal(sl_order_check(host, SL_LIT(ZEROS "12345"), &error), SL_REJECT);
    assert_string_equal(error.code, "BadOrder");
    assert_non_null(strstr(error.text, "41 digits, 40 at most"));
}

/* ---- values as they were written ---- */

static void a_value_is_found_as_it_was_written(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        size_t n;
        const char *written;
    } cases[] = {
        {"[1,2,3]", 0, "1"},
        {"[1,2,3]", 2, "3"},
        {"[1.50,1e400]", 1, "1e400"},
        {"[[1,2],{'a':[3,4],'b':5},6]", 0, "[1,2]"},
        {"[[1,2],{'a':[3,4],'b':5},6]", 1, "{'a':[3,4],'b':5}"},
        {"[[1,2],{'a':[3,4],'b':5},6]", 2, "6"},
        {"{'a':1,'b':{'c':2},'d':3}", 0, "1"},
        {"{'a':1,'b':{'c':2},'d':3}", 1, "{'c':2}"},
        {"{'a':1,'b':{'c':2},'d':3}", 2, "3"},
        {"{'a,:]':1,'}':'x,]','q':'}'}", 1, "'x,]'"},
        {"{'a,:]':1,'}':'x,]','q':'}'}", 2, "'}'"},
        {"['a\\\\',']',2]", 0, "'a\\\\'"},
        {"['a\\\\',']',2]", 1, "']'"},
        {"['a\\\\',']',2]", 2, "2"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_span_is(sl_opening_written(json_span(cases[i].json), cases[i].n), json(cases[i].written));
    assert_null(sl_opening_written(json_span("[1,2]"), 2).ptr);
    assert_null(sl_opening_written(json_span("{'a':[1,2,3]}"), 1).ptr);
    assert_null(sl_opening_written(json_span("7"), 0).ptr);
}

/* (Not by json(), which reads an escape before ' itself.) */
static void an_escaped_quote_does_not_end_a_text(void **state)
{
    (void)state;
    struct sl_span text = SL_LIT("[\"a\\\",\",\"b\"]");
    assert_span_is(sl_opening_written(text, 0), "\"a\\\",\"");
    assert_span_is(sl_opening_written(text, 1), "\"b\"");
}

/* ---- conditions inside of options ---- */

/* An error inside a condition begins with a path, whatever its first member is called, or is a sentence. */
static void an_error_inside_an_option_has_the_whole_path(void **state)
{
    (void)state;
    static const struct {
        const char *inside, *wanted;
    } cases[] = {{"a: expected a list", "where.a: expected a list"},
                 {"a.b[0]: expected", "where.a.b[0]: expected"},
                 {"$or[1]: expected", "where.$or[1]: expected"},
                 {"[1]: expected", "where.[1]: expected"},
                 {":a: expected", "where.:a: expected"},
                 {"expected an object", "where: expected an object"},
                 {"expected: an object", "where.expected: an object"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error why = SL_NO_ERROR, error = SL_NO_ERROR;
        const struct sl_opening o = {.host = host, .error = &error};
        snprintf(why.text, sizeof(why.text), "%s", cases[i].inside);
        assert_int_equal(sl_opening_bad_inside(&o, "where", &why), SL_FATAL);
        assert_string_equal(error.code, "InvalidConfiguration");
        assert_string_equal(error.text, cases[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_one_at_least_and_nothing_else),
        cmocka_unit_test(a_text_is_found_in_a_list_whole),
        cmocka_unit_test(values_are_equal_when_their_canonical_texts_are),
        cmocka_unit_test(what_is_no_number_stays),
        cmocka_unit_test(keys_have_one_attribute_or_two),
        cmocka_unit_test(a_digest_is_the_begin_of_sha256),
        cmocka_unit_test(texts_get_numbers_in_the_order_in_which_they_come),
        cmocka_unit_test(texts_that_collide_are_still_told_apart),
        cmocka_unit_test(orders_compare_as_epochs_and_numbers_do),
        cmocka_unit_test(a_text_of_another_form_is_no_order),
        cmocka_unit_test(a_number_that_is_too_long_is_rejected),
        cmocka_unit_test(a_value_is_found_as_it_was_written),
        cmocka_unit_test(an_escaped_quote_does_not_end_a_text),
        cmocka_unit_test(an_error_inside_an_option_has_the_whole_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
