/* Targets taken apart: scheme, rest, parameters and their escapes. */
#include "tests/support/test.h"

#include "base/clock.h"
#include "base/url.h"

#include <stdio.h>

static struct sl_arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = sl_arena_new(1024);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sl_arena_destroy(arena);
    return 0;
}

static struct sl_url parsed(const char *text)
{
    struct sl_url url;
    struct sl_error error = SL_NO_ERROR;
    if (sl_url_parse(sl_span_str(text), arena, &url, &error) != SL_OK)
        fail_msg("%s: %s", text, error.text);
    assert_int_equal(url.shown.len, strcspn(text, "?")); /* what follows may be anybody's secret */
    assert_ptr_equal(url.shown.ptr, text);
    return url;
}

static void a_target_has_a_scheme_and_a_rest(void **state)
{
    (void)state;
    static const struct {
        const char *text, *scheme, *rest;
        bool has_slashes;
    } cases[] = {
        {"s3://bucket/a/b", "s3", "bucket/a/b", true},
        {"file:folder", "file", "folder", false},
        {"file:/folder", "file", "/folder", false},
        {"sns:arn:aws:sns:x:1:t", "sns", "arn:aws:sns:x:1:t", false},
        {"a:", "a", "", false},
        {"z://", "z", "", true},
        {"09az:x", "09az", "x", false},
        {"https://u?", "https", "u", true},
        {"x:y?&&", "x", "y", false},
        {"x:?a=b", "x", "", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_url url = parsed(cases[i].text);
        assert_span_is(url.scheme, cases[i].scheme);
        assert_span_is(url.rest, cases[i].rest);
        assert_int_equal(url.has_slashes, cases[i].has_slashes);
        assert_int_equal(url.n_params, strstr(cases[i].text, "a=b") != NULL);
    }
    static const char *const bad[] = {"",        ":",   "s3",    "S3://bucket", "s-3:x",
                                      "/folder", "//x", "a b:c", "`:x",         "{:x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sl_url url;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(sl_url_parse(sl_span_str(bad[i]), arena, &url, &error), SL_FATAL);
        assert_string_equal(error.code, "InvalidTarget");
        assert_non_null(strstr(error.text, "has no scheme"));
    }
}

/* Each ends with a NUL, so that it can be opened or looked up. */
static void param_is(struct sl_url *url, const char *name, const char *value)
{
    struct sl_span got = sl_url_param(url, name);
    assert_span_is(got, value);
    assert_int_equal(got.ptr[got.len], '\0');
}

static void parameters_are_unescaped_and_the_last_counts(void **state)
{
    (void)state;
    struct sl_url url = parsed("t:x?a=1&b=%41%2f%C3%a4&c&d=&=e&f=g=h&%61b=2&a=3&");
    param_is(&url, "a", "3");
    param_is(&url, "b", "A/\xC3\xA4");
    param_is(&url, "c", "");
    param_is(&url, "d", "");
    param_is(&url, "", "e");
    param_is(&url, "f", "g=h");
    param_is(&url, "ab", "2");
    assert_null(sl_url_param(&url, "g").ptr);
    assert_null(sl_url_param(&url, "A").ptr);
    assert_int_equal(url.n_params, 8);
    assert_int_equal(sl_url_done(&url, "a", NULL), SL_OK);
}

static void a_parameter_that_nobody_asked_for_is_refused(void **state)
{
    (void)state;
    struct sl_url url = parsed("s3://b?region=x&endpiont=y&zone=z");
    struct sl_error error = SL_NO_ERROR;
    sl_url_param(&url, "region");
    sl_url_param(&url, "zone");
    assert_int_equal(sl_url_done(&url, "region, endpoint", &error), SL_FATAL);
    assert_string_equal(error.text, "target s3://b: unknown parameter \"endpiont\"; "
                                    "known here: region, endpoint");
    sl_url_param(&url, "endpiont");
    assert_int_equal(sl_url_done(&url, "", NULL), SL_OK);
    url = parsed("s3://b");
    assert_int_equal(sl_url_done(&url, "", NULL), SL_OK);
}

static void sixteen_parameters_are_the_most(void **state)
{
    (void)state;
    for (int n = SL_URL_PARAMS - 1; n <= SL_URL_PARAMS + 1; n++) {
        char text[256];
        size_t len = (size_t)snprintf(text, sizeof(text), "t:x?");
        for (int i = 0; i < n; i++)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "&p%d=%d", i, i);
        struct sl_url url;
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = sl_url_parse(sl_span_str(text), arena, &url, &error);
        assert_int_equal(status, n <= SL_URL_PARAMS ? SL_OK : SL_FATAL);
        if (status == SL_OK)
            param_is(&url, "p14", "14");
        else
            assert_non_null(strstr(error.text, "more than 16 parameters"));
    }
}

/* Random texts against a decoder that looks at each place on its own. */
static void only_whole_escapes_are_resolved(void **state)
{
    (void)state;
    static const char letters[] = "%%%09afAFgG@x/:`";
    uint64_t seed = 3;
    struct sl_buffer out;
    sl_buffer_init(&out, 64);
    for (int i = 0; i < 20000; i++) {
        char text[12], want[12];
        size_t n = sl_random_step(&seed) % sizeof(text), wanted = 0;
        for (size_t k = 0; k < n; k++)
            text[k] = letters[sl_random_step(&seed) % (sizeof(letters) - 1)];
        for (size_t k = 0; k < n; k++) {
            unsigned byte;
            char digits[3] = {0};
            memcpy(digits, text + k + 1, n - k > 2 ? 2 : 0);
            bool is_escape = text[k] == '%' && strlen(digits) == 2 &&
                             strspn(digits, "0123456789abcdefABCDEF") == 2 &&
                             sscanf(digits, "%x", &byte) == 1;
            want[wanted++] = is_escape ? (char)byte : text[k];
            k += is_escape ? 2 : 0;
        }
        sl_buffer_reset(&out);
        sl_url_decode(&out, sl_span(text, n));
        assert_true(sl_span_eq(sl_buffer_span(&out), sl_span(want, wanted)));
    }
    sl_buffer_clean_up(&out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_target_has_a_scheme_and_a_rest),
        TEST(parameters_are_unescaped_and_the_last_counts),
        TEST(a_parameter_that_nobody_asked_for_is_refused),
        TEST(sixteen_parameters_are_the_most),
        TEST(only_whole_escapes_are_resolved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
