#include "tests/support/test.h"

#include "base/base64.h"

/* RFC 4648's own examples, and one with both odd letters. */
static const struct {
    const char *bytes, *text;
} pairs[] = {{"", ""},
             {"f", "Zg=="},
             {"fo", "Zm8="},
             {"foo", "Zm9v"},
             {"foob", "Zm9vYg=="},
             {"fooba", "Zm9vYmE="},
             {"foobar", "Zm9vYmFy"},
             {"\xFB\xEF\xFF", "++//"}};

static void bytes_become_text_and_come_back(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(1024);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct sl_span text = sl_span_str(pairs[i].text);
        unsigned char out[16] = {0};
        assert_true(sl_base64_is_valid(text));
        assert_int_equal(sl_base64_decoded_bytes(text), strlen(pairs[i].bytes));
        assert_true(sl_base64_decode(text, out));
        assert_memory_equal(out, pairs[i].bytes, strlen(pairs[i].bytes));
        assert_true(sl_span_eq(sl_base64_encode(sl_span_str(pairs[i].bytes), arena), text));
    }
    sl_arena_destroy(arena);
}

static void text_that_is_not_base64_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"Z",        "Zg",     "Zg=",  "Zm8",  "Zh==",    "Zm9=", "====", "Z===",
                                      "Zg==Zg==", "Zm9v\n", "Zm-v", "Zm_v", "Zm9\xC3", "=Zg=", "Z=g="};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        unsigned char out[16];
        assert_false(sl_base64_is_valid(sl_span_str(bad[i])));
        assert_false(sl_base64_decode(sl_span_str(bad[i]), out));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_become_text_and_come_back),
        cmocka_unit_test(text_that_is_not_base64_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
