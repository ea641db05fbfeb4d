/* Conditions that are nested to the limit, and errors in places with long paths. */
#include "streams/when/when.h"
#include "tests/support/test.h"

/* `n` objects in one another around `inner`. */
static const char *nested(int n, const char *name, const char *inner)
{
    struct sl_buffer b;
    sl_buffer_init(&b, 1 << 16);
    for (int i = 0; i < n; i++)
        sl_buffer_printf(&b, "{'%s':", name);
    sl_buffer_add_str(&b, inner);
    for (int i = 0; i < n; i++)
        sl_buffer_add_char(&b, '}');
    sl_buffer_add(&b, "", 1);
    const char *text = json(b.ptr);
    sl_buffer_clean_up(&b);
    return text;
}

static void eighty_objects_are_the_deepest(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *out;
    for (int n = 78; n <= 82; n++) {
        enum sl_status wanted = n <= 80 ? SL_OK : SL_REJECT;
        const char *text = nested(n, "a", "['x']"), *two;
        assert_int_equal(sl_pattern_compile(sl_span_str(text), arena, &out, NULL), wanted);
        if (n <= 80)
            assert_true(sl_pattern_match(out, sl_span_str(nested(n, "a", "'x'")), arena));
        if (n <= 80)
            assert_false(sl_pattern_match(out, sl_span_str(nested(n, "a", "'y'")), arena));
        assert_int_equal(sl_where_compile(sl_span_str(text), arena, &out, NULL), wanted);
        two = json_printf("{'$or':[%s,{'b':['y']}]}", nested(n - 1, "a", "['x']"));
        assert_int_equal(sl_pattern_compile(sl_span_str(two), arena, &out, NULL), wanted);
        assert_int_equal(sl_where_compile(sl_span_str(two), arena, &out, NULL), wanted);
    }
    sl_arena_destroy(arena);
}

/* Where one "$or" cannot be an operator, none is, however deep it is. */
static void a_deep_field_makes_each_or_a_field(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *out;
    struct sl_error error = SL_NO_ERROR;
    for (int n = 1; n < 80; n++) {
        if (sl_pattern_compile(sl_span_str(nested(n, "a", "{'$or':['x','y']}")), arena, &out, &error) !=
            SL_OK)
            fail_msg("%d: %s", n, error.text);
        assert_true(sl_pattern_match(out, sl_span_str(nested(n, "a", "{'$or':'y'}")), arena));
        assert_int_equal(sl_pattern_compile(sl_span_str(nested(n, "a", "{'$or':[{'b':['x']},{'b':['y']}]}")),
                                            arena, &out, NULL),
                         n < 79 ? SL_OK : SL_REJECT);
        if (n < 79)
            assert_true(sl_pattern_match(out, sl_span_str(nested(n, "a", "{'b':'y'}")), arena));
        sl_arena_reset(arena);
    }
    /* Alternatives in alternatives, the innermost with the name of an operator. */
    for (int n = 1; n < 40; n++) {
        struct sl_buffer b;
        sl_buffer_init(&b, 1 << 16);
        for (int i = 0; i < n; i++)
            sl_buffer_add_str(&b, "{'$or':[{'x':[1]},");
        sl_buffer_add_str(&b, "{'prefix':['p']}");
        for (int i = 0; i < n; i++)
            sl_buffer_add_str(&b, "]}");
        sl_buffer_add(&b, "", 1);
        error = (struct sl_error)SL_NO_ERROR;
        assert_int_equal(sl_pattern_compile(sl_span_str(json(b.ptr)), arena, &out, &error), SL_REJECT);
        assert_non_null(strstr(error.text, "Here, \"$or\" is the name of a field"));
        sl_buffer_clean_up(&b);
        sl_arena_reset(arena);
    }
    sl_arena_destroy(arena);
}

/* A long path is cut, and what is wrong is still said. */
static void a_long_place_is_cut(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_when *out;
    for (int n = 150; n < 320; n++) {
        char name[400];
        struct sl_error error = SL_NO_ERROR;
        memset(name, 'n', (size_t)n);
        name[n] = '\0';
        const char *text = json_printf("{'%s':{'b':[{'exists':1}]}}", name);
        assert_int_equal(sl_pattern_compile(sl_span_str(text), arena, &out, &error), SL_REJECT);
        const char *whole = sl_arena_printf(arena, "%s.b[0].exists", name),
                   *why = strstr(error.text, ": true or false");
        assert_non_null(why);
        size_t shown = (size_t)(why - error.text), most = strlen(whole) < 199 ? strlen(whole) : 199;
        assert_memory_equal(error.text, whole, shown);
        assert_int_equal(shown, most);
    }
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eighty_objects_are_the_deepest),
        cmocka_unit_test(a_deep_field_makes_each_or_a_field),
        cmocka_unit_test(a_long_place_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
