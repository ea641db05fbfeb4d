/* JSON against jansson: random values, spelt at random, are checked, walked, found by path and read as
 * jansson reads them. */
#include "tests/support/test.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"

#include <jansson.h>
#include <stdlib.h>

static uint64_t seed = 12;
static bool has_empty_name; /* in the value that was made last: a path cannot say it */

static size_t chance(size_t n)
{
    return (size_t)(sl_random_step(&seed) >> 20) % n;
}

static void space(struct sl_buffer *b)
{
    static const char *const spaces[] = {"", "", "", " ", "\n\t", " \r\n  ", "                  "};
    sl_buffer_add_str(b, spaces[chance(7)]);
}

/* A string of some characters of each length in UTF-8, as itself or as an escape, short or as \u. */
static void add_text(struct sl_buffer *b, size_t most)
{
    static const char *const pieces[] = {"a",
                                         "b",
                                         "z",
                                         "0",
                                         "\\\"",
                                         "\\\\",
                                         "\\/",
                                         "/",
                                         "\\n",
                                         "\\t",
                                         "\\b",
                                         "\\f",
                                         "\\r",
                                         "\\u0061",
                                         "\\u0000",
                                         "\\u001f",
                                         "\xC3\xA4",
                                         "\\u00e4",
                                         "\xE4\xB8\xAD",
                                         "\\u4E2d",
                                         "\\uffff",
                                         "\xF0\x9F\xA6\x8A",
                                         "\\ud83e\\udd8a",
                                         "\x7F"};
    for (size_t n = chance(most + 1); n > 0; n--)
        sl_buffer_add_str(b, pieces[chance(chance(2) ? 4 : sizeof(pieces) / sizeof(pieces[0]))]);
}

static void add_value(struct sl_buffer *b, int depth)
{
    static const char *const scalars[] = {
        "true", "false", "null", "0", "-0", "17", "-1.5e3", "0.25E-2", "1234567890123456789",
        "1e0",  "[]",    "{}"};
    size_t kind = chance(depth > 0 ? 5 : 3);
    space(b);
    if (kind == 0) {
        sl_buffer_add_str(b, scalars[chance(12)]);
    } else if (kind < 3) {
        sl_buffer_add_char(b, '"');
        add_text(b, 40);
        sl_buffer_add_char(b, '"');
    } else {
        sl_buffer_add_char(b, kind == 3 ? '[' : '{');
        for (size_t i = 0, n = chance(5); i < n; i++) {
            sl_buffer_add_str(b, i ? "," : "");
            space(b);
            if (kind == 4) { /* a number makes the names different */
                sl_buffer_add_char(b, '"');
                add_text(b, 6);
                if (i || chance(9))
                    sl_buffer_printf(b, "%zu", i);
                has_empty_name = has_empty_name || b->ptr[b->len - 1] == '"';
                sl_buffer_add_char(b, '"');
                space(b);
                sl_buffer_add_char(b, ':');
            }
            add_value(b, depth - 1);
        }
        space(b);
        sl_buffer_add_char(b, kind == 3 ? ']' : '}');
    }
    space(b);
}

static json_t *loaded(struct sl_span text)
{
    json_error_t error;
    json_t *value = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!value)
        fail_msg("%.*s: %s", SL_ARG(text), error.text);
    return value;
}

/* A string of the text, without quotes, against what jansson made of it. */
static void text_is_the_same(struct sl_span inner, const char *want, size_t n)
{
    static char room[4096];
    struct sl_span wanted = sl_span(want, n);
    assert_int_equal(sl_json_unescaped_bytes(inner), n);
    assert_true(sl_span_eq(sl_span(room, sl_json_unescape_to(inner, room)), wanted));
    assert_true(sl_json_text_is(inner, wanted));
    assert_false(sl_json_text_is(inner, sl_span(want, n ? n - 1 : 0)) && n);
    struct sl_buffer longer;
    sl_buffer_init(&longer, 8192);
    sl_buffer_add_span(&longer, wanted);
    sl_buffer_add_char(&longer, 'x');
    assert_false(sl_json_text_is(inner, sl_buffer_span(&longer)));
    sl_buffer_reset(&longer); /* written again and spelt as the writer does, it is the same */
    sl_json_add_string(&longer, wanted);
    struct sl_span own = sl_span(longer.ptr + 1, longer.len - 2);
    assert_true(sl_json_same(inner, own) && sl_json_same(own, inner));
    sl_buffer_add_char(&longer, 'x');
    assert_false(sl_json_same(inner, sl_span(longer.ptr + 1, longer.len - 1)));
    sl_buffer_clean_up(&longer);
}

static void compare(struct sl_span whole, struct sl_span text, json_t *want);

static void compare_parts(struct sl_span whole, struct sl_span text, json_t *want)
{
    struct sl_json_walk walk = sl_json_walk(text);
    struct sl_span name, value;
    size_t n = 0;
    if (json_is_array(want)) {
        while (sl_json_walk_next(&walk, NULL, &value))
            compare(whole, value, json_array_get(want, n++));
        assert_int_equal(n, json_array_size(want));
    }
    void *member = json_object_iter(want);
    if (json_is_object(want))
        for (; sl_json_walk_next(&walk, &name, &value); member = json_object_iter_next(want, member)) {
            const char *key = json_object_iter_key(member);
            text_is_the_same(name, key, json_object_iter_key_len(member));
            compare(whole, value, json_object_iter_value(member));
            n++;
        }
    if (json_is_object(want))
        assert_int_equal(n, json_object_size(want));
}

/* The value's path leads to it, unless a name in it has an escape or is empty. */
static void compare_path(struct sl_span whole, struct sl_span text)
{
    char path[2048];
    sl_json_path_of(whole, text.ptr, path, sizeof(path));
    if (!strchr(path, '\\') && !has_empty_name)
        if (sl_json_find(whole, path).ptr != text.ptr)
            fail_msg("%s in %.*s", path, SL_ARG(whole));
}

static void compare(struct sl_span whole, struct sl_span text, json_t *want)
{
    json_t *own = loaded(text);
    assert_true(json_equal(own, want));
    json_decref(own);
    assert_ptr_equal(sl_json_value_end(text.ptr, sl_span_end(whole)), sl_span_end(text));
    if (json_is_string(want))
        text_is_the_same(sl_span(text.ptr + 1, text.len - 2), json_string_value(want),
                         json_string_length(want));
    else
        compare_parts(whole, text, want);
    if (text.len < whole.len)
        compare_path(whole, text);
}

static struct sl_span trimmed(struct sl_span text)
{
    const char *begin = sl_json_space(text.ptr, sl_span_end(text));
    return sl_span(begin, (size_t)(sl_json_value_end(begin, sl_span_end(text)) - begin));
}

/* Whether the library takes it: it takes no name with a NUL, and here none that is there twice, either. */
static bool is_taken(struct sl_span text)
{
    json_error_t why;
    json_t *value =
        json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
    bool is_twice = !value && json_error_code(&why) == json_error_duplicate_key;
    json_decref(value);
    if ((value || is_twice) && sl_json_is_unique(text) == is_twice)
        fail_msg("%.*s: a name that is there twice", SL_ARG(text));
    return value;
}

static void a_text_is_read_as_the_library_reads_it(void **state)
{
    (void)state;
    struct sl_buffer b, compact;
    size_t n = 0;
    sl_buffer_init(&b, 1 << 20);
    sl_buffer_init(&compact, 1 << 20);
    for (int i = 0; i < 3000; i++) {
        sl_buffer_reset(&b);
        sl_buffer_reset(&compact);
        has_empty_name = false;
        add_value(&b, 4);
        struct sl_span whole = sl_buffer_span(&b);
        struct sl_error error = SL_NO_ERROR;
        if (sl_json_check(whole, &error) != SL_OK || sl_json_check_loose(whole, &error) != SL_OK)
            fail_msg("%.*s: %s", SL_ARG(whole), error.text);
        if (!is_taken(whole))
            continue;
        json_t *want = loaded(whole);
        compare(whole, trimmed(whole), want);
        sl_json_add_compact(&compact, whole);
        json_t *same = loaded(sl_buffer_span(&compact));
        assert_true(json_equal(want, same));
        assert_true(trimmed(sl_buffer_span(&compact)).len == compact.len);
        json_decref(same);
        json_decref(want);
        n++;
    }
    assert_true(n > 2500);
    sl_buffer_clean_up(&b);
    sl_buffer_clean_up(&compact);
}

/* One byte of a good text changed: taken or refused as by the library. (Which takes numbers within double's
 * range alone, and no name with a NUL, so texts with an exponent or a NUL are left out.) */
static void a_changed_text_is_refused_as_by_the_library(void **state)
{
    (void)state;
    static const char bytes[] = "\"\\{}[]:,0-+.eE aftnu/\n\x01\x7F\x80\xC3\xED\xF4\xFF";
    struct sl_buffer b;
    size_t taken = 0, refused = 0;
    sl_buffer_init(&b, 1 << 20);
    for (int i = 0; i < 30000; i++) {
        if (i % 20 == 0) {
            sl_buffer_reset(&b);
            add_value(&b, 3);
        }
        size_t at = chance(b.len);
        char old = b.ptr[at];
        b.ptr[at] = bytes[chance(sizeof(bytes) - 1)];
        struct sl_span text = sl_buffer_span(&b);
        json_t *value =
            json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
        bool is_taken = sl_json_check(text, NULL) == SL_OK;
        bool is_odd = memchr(text.ptr, 'e', text.len) || memchr(text.ptr, 'E', text.len) ||
                      memmem(text.ptr, text.len, "\\u0000", 6);
        if (is_taken != (value != NULL) && !is_odd)
            fail_msg("%.*s", SL_ARG(text));
        taken += is_taken;
        refused += !is_taken;
        json_decref(value);
        b.ptr[at] = old;
    }
    assert_true(taken > 3000 && refused > 3000);
    sl_buffer_clean_up(&b);
}

/* A character that is cut off at the end is no wrong byte: the text ends too early. */
static void a_cut_character_is_no_wrong_byte(void **state)
{
    (void)state;
    static const char *const characters[] = {
        "\xC2\x80",         "\xDF\xBF",         "\xE0\xA0\x80",     "\xE0\xBF\xBF",     "\xE1\x80\x80",
        "\xEC\xBF\xBF",     "\xED\x80\x80",     "\xED\x9F\xBF",     "\xEE\x80\x80",     "\xEF\xBF\xBF",
        "\xF0\x90\x80\x80", "\xF1\x80\x80\x80", "\xF3\xBF\xBF\xBF", "\xF4\x80\x80\x80", "\xF4\x8F\xBF\xBF"};
    for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]); i++)
        for (size_t n = 0; n <= strlen(characters[i]); n++) {
            char text[8] = "\"";
            struct sl_error error = SL_NO_ERROR;
            memcpy(text + 1, characters[i], n);
            assert_int_equal(sl_json_check(sl_span(text, n + 1), &error), SL_REJECT);
            assert_int_equal(error.offset, n + 1);
            assert_non_null(strstr(error.text, "the text ends too early"));
            /* With another byte instead of its last one it is wrong where it begins. */
            error = (struct sl_error)SL_NO_ERROR;
            text[n + 1] = '"';
            if (n == 0 || n == strlen(characters[i]))
                continue;
            assert_int_equal(sl_json_check(sl_span(text, n + 2), &error), SL_REJECT);
            assert_int_equal(error.offset, 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_read_as_the_library_reads_it),
        cmocka_unit_test(a_changed_text_is_refused_as_by_the_library),
        cmocka_unit_test(a_cut_character_is_no_wrong_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
