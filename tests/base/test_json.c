#include "tests/support/test.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"

#include <stdlib.h>

/* In memory of exactly its size. */
static enum sl_status check(const char *text, size_t n, struct sl_error *error)
{
    char *memory = malloc(n ? n : 1);
    assert_non_null(memory);
    memcpy(memory, text, n);
    sl_error_clear(error);
    enum sl_status status = sl_json_check(sl_span(memory, n), error);
    free(memory);
    return status;
}

static const char *const good[] = {
    "{}",
    "[]",
    " [ ] ",
    "{\"a\":1}",
    "[1,2 , 3]",
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-1.5e+10",
    "1E-2",
    "\"\"",
    "\"a\"",
    "\"\\u00e9\\n\\/\\\\\\\"\"",
    "\"\\uD834\\udd1e\"",
    "\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\xA6\x8A\"",
    "{\"a\":{\"b\":[{},[],{\"c\":[[]]}]},\"d\":\"eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee\"}",
    "\xEF\xBB\xBF{}",
    "\"\\u0000\"",
    "\"\x7F\"",
    "\"\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF\"",
    "\t\r\n 1 \t\r\n",
};

static void good_texts_are_accepted(void **state)
{
    (void)state;
    struct sl_error error;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(check(good[i], strlen(good[i]), &error), SL_OK);
}

/* Every prefix of a good object is refused at its end; nothing is read beyond. */
static void a_text_cut_at_any_byte_is_refused_at_the_cut(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":[1,-2.5e-3,true,false,null,\"x\\u00e9\\uD834\\uDD1E\\n\xC3\xA9\xF0\x9F\xA6\x8A"
        "0123456789abcdef0123456789\"],\"b\":{\"c\":{}}}";
    struct sl_error error;
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        assert_int_equal(check(text, n, &error), SL_REJECT);
        assert_int_equal(error.offset, n);
        assert_string_equal(error.code, "InvalidJson");
        assert_string_equal(error.text, "the text ends too early");
    }
    assert_int_equal(check(text, sizeof(text) - 1, &error), SL_OK);
}

static const struct {
    const char *text;
    size_t offset;
    const char *why;
} bad[] = {
    {"", 0, "the text ends too early"},
    {"{a:1}", 1, "a string is expected"},
    {"{\"a\" 1}", 5, "':' is expected"},
    {"{\"a\":1 \"b\":2}", 7, "',' or '}' is expected"},
    {"{\"a\":1,}", 7, "a string is expected"},
    {"[1 2]", 3, "',' or ']' is expected"},
    {"[1,]", 3, "a value is expected"},
    {"[1}", 2, "',' or ']' is expected"},
    {"{\"a\":1]", 6, "',' or '}' is expected"},
    {"01", 1, "a number with a leading zero"},
    {"1.x", 2, "a digit is expected"},
    {"1e+x", 3, "a digit is expected"},
    {"-x", 1, "a digit is expected"},
    {"+1", 0, "a value is expected"},
    {"trux", 3, "a value is expected"},
    {"{} {}", 3, "more text after the value"},
    {"\"\n\"", 1, "a control character in a string"},
    {"\"\\x\"", 2, "unknown escape"},
    {"\"\\u00g0\"", 5, "four hexadecimal digits are expected after \\u"},
    {"\"\\uD834\"", 1, "a lone high surrogate"},
    {"\"\\uD834\\n\"", 1, "a lone high surrogate"},
    {"\"\\uD834x\"", 1, "a lone high surrogate"},
    {"\"\\uD834\\u0041\"", 1, "a lone high surrogate"},
    {"\"\\uDD1E\"", 1, "a lone low surrogate"},
    {"\"\x80\"", 1, "not UTF-8"},
    {"\"\xC0\x80\"", 1, "not UTF-8"},
    {"\"\xC3 \"", 1, "not UTF-8"},
    {"\"\xE0\x80\x80\"", 1, "not UTF-8"},
    {"\"\xED\xA0\x80\"", 1, "not UTF-8"},
    {"\"\xE2\x82 \"", 1, "not UTF-8"},
    {"\"\xF0\x80\x80\x80\"", 1, "not UTF-8"},
    {"\"\xF4\x90\x80\x80\"", 1, "not UTF-8"},
    {"\"\xF0\x9F\x80 \"", 1, "not UTF-8"},
    {"\"\xF5\x80\x80\x80\"", 1, "not UTF-8"},
    {"\"\xFF", 1, "not UTF-8"},
};

static void bad_texts_are_refused_at_their_byte(void **state)
{
    (void)state;
    struct sl_error error;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(check(bad[i].text, strlen(bad[i].text), &error), SL_REJECT);
        assert_string_equal(error.text, bad[i].why);
        assert_int_equal(error.offset, bad[i].offset);
    }
    assert_int_equal(check("\"\0\"", 3, &error), SL_REJECT);
    assert_string_equal(error.text, "a control character in a string");
}

static void fill_brackets(char *text, size_t n)
{
    memset(text, '[', n);
    memset(text + n, ']', n);
}

static void nesting_ends_at_the_limit(void **state)
{
    (void)state;
    struct sl_error error;
    char *text = malloc(2000000);
    assert_non_null(text);
    fill_brackets(text, SL_JSON_DEPTH);
    assert_int_equal(check(text, 2 * SL_JSON_DEPTH, &error), SL_OK);
    fill_brackets(text, SL_JSON_DEPTH + 1);
    assert_int_equal(check(text, 2 * SL_JSON_DEPTH + 2, &error), SL_REJECT);
    assert_int_equal(error.offset, SL_JSON_DEPTH);
    fill_brackets(text, 1000000);
    assert_int_equal(check(text, 2000000, &error), SL_REJECT);
    free(text);
}

static void values_are_found_by_path(void **state)
{
    (void)state;
    struct sl_span text =
        SL_LIT(" { \"a\" : [ 1 , { \"b.c\" : \"x\" , \"d\" : true } , [ ] ] , \"a\\u0062\" : { } } ");
    assert_span_is(sl_json_find(text, "a[0]"), "1");
    assert_span_is(sl_json_find(text, "a[1].d"), "true");
    assert_span_is(sl_json_find(text, "ab"), "{ }");
    assert_span_is(sl_json_find(text, "a[2]"), "[ ]");
    assert_null(sl_json_find(text, "a[3]").ptr);
    assert_null(sl_json_find(text, "a[1].x").ptr);
    assert_null(sl_json_find(text, "a[x]").ptr);
    assert_null(sl_json_find(text, "a[]").ptr);
    assert_null(sl_json_find(text, "a[").ptr);
    assert_null(sl_json_find(text, "a[12345678901]").ptr);
    assert_null(sl_json_find(text, "a.b").ptr);
    assert_null(sl_json_find(text, "a[0][0]").ptr);
    assert_span_is(sl_json_find(SL_LIT("\xEF\xBB\xBF 5 "), ""), "5");
    assert_span_is(sl_json_find(SL_LIT("{\"a\":1,\"a\":\"\\\"}\"}"), "a"), "\"\\\"}\"");
    assert_null(sl_json_find(SL_LIT(" "), "").ptr);
}

/* A member's text is what JSON means by it. Anything but a string that is closed is absent. */
static void texts_are_read_by_path(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_span text = SL_LIT("{\"a\":[\"x\\u0041\\n\",\"\",5,null,{\"b\":\"c\"}]}");
    assert_span_is(sl_json_text(text, "a[0]", arena), "xA\n");
    assert_span_is(sl_json_text(text, "a[1]", arena), "");
    assert_non_null(sl_json_text(text, "a[1]", arena).ptr);
    assert_span_is(sl_json_text(text, "a[4].b", arena), "c");
    const char *const absent[] = {"a", "a[2]", "a[3]", "a[4]", "a[5]", "b"};
    for (size_t i = 0; i < SL_COUNT(absent); i++)
        assert_null(sl_json_text(text, absent[i], arena).ptr);
    assert_null(sl_json_text(SL_LIT("{\"a\":\""), "a", arena).ptr);
    sl_arena_destroy(arena);
}

/* Text that is no JSON is not to be given to these, but it does no harm: nothing is read beyond it. */
static void a_search_stays_inside_broken_text(void **state)
{
    (void)state;
    static const char text[] = "{\"a\\\"b\" : [ 1 , { \"c\" : \"0123456789 0123456789\\\\\" } , [ 5 ] ] , "
                               "\"d\" : { \"e\" : [ \"]\" ] } }";
    static const char *const broken[] = {"[}]",  "[,]", "{\"a\":}", "{\"a\"", "{\"a\":,\"b\":5}",
                                         "[5 5", "[\"", "\"",       "\"\\"};
    for (size_t n = 0; n < sizeof(text); n++) {
        char *memory = malloc(n + 1);
        assert_non_null(memory);
        memcpy(memory + 1, text, n);
        struct sl_span cut = sl_span(memory + 1, n);
        (void)sl_json_find(cut, "a\"b[1].c");
        (void)sl_json_find(cut, "d.e[0]");
        (void)sl_json_find(cut, "x");
        free(memory);
    }
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        (void)sl_json_find(sl_span_str(broken[i]), "[1]");
        (void)sl_json_find(sl_span_str(broken[i]), "[5]");
        (void)sl_json_find(sl_span_str(broken[i]), "a");
        (void)sl_json_find(sl_span_str(broken[i]), "");
    }
    assert_null(sl_json_find(SL_LIT("[}]"), "[1]").ptr);
    assert_null(sl_json_find(SL_LIT("{\"a\":"), "a").ptr);
    assert_true(sl_json_text_is(SL_LIT("a\\"), SL_LIT("a\\")));
    assert_true(sl_json_text_is(SL_LIT("a\\u12"), SL_LIT("au12")));
    assert_int_equal(sl_json_unescaped_bytes(SL_LIT("\\ud83e\\u12")), 6);
}

static void escapes_become_their_bytes(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_span plain = SL_LIT("plain");
    assert_ptr_equal(sl_json_unescape(plain, arena).ptr, plain.ptr);
    struct sl_span inner = SL_LIT("\\\"\\\\\\/\\b\\f\\n\\r\\t|\\u0041\\u00e9\\u20AC\\ud83e\\uDD8A|");
    assert_span_is(sl_json_unescape(inner, arena), "\"\\/\b\f\n\r\t|A\xC3\xA9\xE2\x82\xAC\xF0\x9F\xA6\x8A|");
    assert_int_equal(sl_json_unescaped_bytes(inner), 20);
    assert_true(sl_json_text_is(SL_LIT("\\u0041b"), SL_LIT("Ab")));
    assert_false(sl_json_text_is(SL_LIT("\\u0041b"), SL_LIT("A")));
    assert_false(sl_json_text_is(SL_LIT("A"), SL_LIT("Ab")));
    assert_false(sl_json_text_is(SL_LIT("\\u00e9"), SL_LIT("\xC3")));
    assert_true(sl_json_same(SL_LIT("\\u00e9x\\/"), SL_LIT("\xC3\xA9\\u0078/")));
    assert_false(sl_json_same(SL_LIT("\\u00e9"), SL_LIT("\xC3\xA8")));
    assert_false(sl_json_same(SL_LIT("ab"), SL_LIT("abc")));
    assert_false(sl_json_same(SL_LIT("abc"), SL_LIT("ab")));
    assert_false(sl_json_same(SL_LIT(""), SL_LIT("a")));
    assert_false(sl_json_same(SL_LIT("a"), SL_LIT("")));
    assert_true(sl_json_same(SL_LIT(""), SL_LIT("")));
    sl_arena_destroy(arena);
}

static void path_is(struct sl_span text, size_t at, const char *path)
{
    char out[64];
    sl_json_path_of(text, text.ptr + at, out, sizeof(out));
    assert_string_equal(out, path);
}

static void a_byte_has_its_path(void **state)
{
    (void)state;
    struct sl_span text = SL_LIT(" {\"a\": [1, {\"b\": true}, [] ], \"c\": \"x\"} ");
    path_is(text, 1, "");
    path_is(text, 2, "a");
    path_is(text, 7, "a");
    path_is(text, 8, "a[0]");
    path_is(text, 11, "a[1]");
    path_is(text, 17, "a[1].b");
    path_is(text, 13, "a[1].b");
    path_is(text, 24, "a[2]");
    path_is(text, 34, "c");
    path_is(text, 40, "");
    path_is(SL_LIT("[[],{},5]"), 7, "[2]");
    path_is(SL_LIT("5"), 0, "");
    char out[8];
    struct sl_span name = SL_LIT("{\"long name\": 5}");
    sl_json_path_of(name, name.ptr + 14, out, sizeof(out));
    assert_string_equal(out, "long na");
}

static void written_members_are_escaped(void **state)
{
    (void)state;
    struct sl_buffer b;
    sl_buffer_init(&b, 1024);
    sl_json_add_member(&b, "a", SL_LIT("x\ty\r\n\x01\xFF"));
    sl_json_add_integer(&b, "b", -5);
    sl_json_add_raw(&b, "c", SL_LIT("{}"));
    assert_span_is(sl_buffer_span(&b), "\"a\":\"x\\ty\\r\\n\\u0001\xEF\xBF\xBD\",\"b\":-5,\"c\":{}");
    sl_buffer_clean_up(&b);
}

static void members_and_elements_are_walked(void **state)
{
    (void)state;
    struct sl_span name, value, object = SL_LIT(" { \"a\" : 1 , \"b\":[2, {} ],\"a\":3}");
    struct sl_json_walk walk = sl_json_walk(object);
    assert_true(sl_json_walk_next(&walk, &name, &value));
    assert_span_is(name, "a");
    assert_span_is(value, "1");
    assert_false(sl_json_walk_next(&walk, NULL, &value));
    assert_true(sl_json_walk_next(&walk, &name, &value));
    struct sl_json_walk inside = sl_json_walk(value);
    assert_true(sl_json_walk_next(&inside, NULL, &value));
    assert_span_is(value, "2");
    assert_true(sl_json_walk_next(&inside, NULL, &value));
    assert_span_is(value, "{}");
    assert_false(sl_json_walk_next(&inside, NULL, &value));
    assert_span_is(sl_json_walk_member(object, SL_LIT("a")), "1");
    assert_null(sl_json_walk_member(object, SL_LIT("c")).ptr);
    assert_null(sl_json_walk_member(SL_LIT("\"a\""), SL_LIT("a")).ptr);
    assert_int_equal(sl_json_walk_count(SL_LIT("[1,[2],{}]")), 3);
    assert_int_equal(sl_json_walk_count(SL_LIT("[]")), 0);
    assert_int_equal(sl_json_walk_count(SL_LIT("5")), 0);
    assert_null(sl_json_walk_member(SL_LIT(" "), SL_LIT("a")).ptr);
    assert_null(sl_json_walk_member(sl_span(NULL, 0), SL_LIT("a")).ptr);
}

static void compact_text_has_no_spaces(void **state)
{
    (void)state;
    struct sl_buffer b;
    sl_buffer_init(&b, 1024);
    sl_json_add_compact(&b, SL_LIT(" { \"a b\" : [ 1 , true , \"\\\" \" ] ,\n\t\"c\":{ } }\r\n"));
    assert_span_is(sl_buffer_span(&b), "{\"a b\":[1,true,\"\\\" \"],\"c\":{}}");
    sl_buffer_clean_up(&b);
}

/* Names are equal by what they say, also when an escape comes late, or in another object. */
static void a_name_that_is_there_twice(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_unique;
    } cases[] = {
        {"{}", true},
        {"{'a':1,'b':{'a':1},'c':[{'a':1},{'a':1}]}", true},
        {"{'a':1,'b':2,'a':1}", false},
        {"[{'x':{'a':1,'a':1}}]", false},
        {"{'a':1,'\\u0061':2}", false},
        {"{'\\u0061':2,'a':1}", false},
        {"{'\\u0061':2,'\\u0062':{'\\u0061':1}}", true},
        {"{'x':{'\\n':1},'ab':1,'\\u0061b':2}", false},
        {"{'\\u0061':'a','b':'\\u0061'}", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[128];
        size_t n = strlen(cases[i].text);
        for (size_t k = 0; k <= n; k++)
            text[k] = cases[i].text[k] == '\'' ? '"' : cases[i].text[k];
        if (sl_json_is_unique(sl_span(text, n)) != cases[i].is_unique)
            fail_msg("%s", text);
    }
}

/* Large objects have their names in a table, which grows. */
static void a_large_object_holds_no_name_twice(void **state)
{
    (void)state;
    struct sl_buffer b;
    sl_buffer_init(&b, 1 << 20);
    for (int n = 30; n < 1000; n += 97) {
        sl_buffer_reset(&b);
        sl_buffer_add_str(&b, "{\"inner\":{\"n0\":1}");
        for (int i = 0; i < n; i++)
            sl_buffer_printf(&b, ",\"n%d\":{\"n%d\":[]}", i, i);
        size_t len = b.len;
        sl_buffer_add_char(&b, '}');
        assert_true(sl_json_is_unique(sl_buffer_span(&b)));
        b.len = len;
        sl_buffer_printf(&b, ",\"\\u006e%d\":1}", n / 2);
        assert_false(sl_json_is_unique(sl_buffer_span(&b)));
    }
    sl_buffer_clean_up(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_object_holds_no_name_twice),
        cmocka_unit_test(a_name_that_is_there_twice),
        cmocka_unit_test(good_texts_are_accepted),
        cmocka_unit_test(a_text_cut_at_any_byte_is_refused_at_the_cut),
        cmocka_unit_test(bad_texts_are_refused_at_their_byte),
        cmocka_unit_test(nesting_ends_at_the_limit),
        cmocka_unit_test(values_are_found_by_path),
        cmocka_unit_test(texts_are_read_by_path),
        cmocka_unit_test(a_search_stays_inside_broken_text),
        cmocka_unit_test(escapes_become_their_bytes),
        cmocka_unit_test(a_byte_has_its_path),
        cmocka_unit_test(members_and_elements_are_walked),
        cmocka_unit_test(compact_text_has_no_spaces),
        cmocka_unit_test(written_members_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
