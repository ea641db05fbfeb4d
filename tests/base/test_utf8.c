/* UTF-8 against the C library's own reader, and texts that are none: what is written exactly comes back byte
 * for byte. */
#include "tests/support/test.h"

#include <iconv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_write.h"
#include "base/utf8.h"

#define RUNS 200000

static uint64_t rolled = 88172645463325252u;

static unsigned roll(unsigned below)
{
    rolled ^= rolled << 13, rolled ^= rolled >> 7, rolled ^= rolled << 17;
    return (unsigned)(rolled >> 33) % below;
}

/* Bytes at which the rules change, and one on each side. */
static const unsigned char edges[] = {
    'a',  '"',  '\\', '\n', 0x1F, 0x20, 0x7F, 0x80, 0x81, 0x8F, 0x90, 0x9F, 0xA0, 0xB0, 0xBE, 0xBF, 0xC0,
    0xC1, 0xC2, 0xC3, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFF,
};

static struct sl_span some_bytes(char *room, size_t most)
{
    size_t n = roll((unsigned)most + 1);
    for (size_t i = 0; i < n; i++)
        room[i] = (char)(roll(3) ? edges[roll(sizeof(edges))] : roll(2) ? 0xED : roll(256));
    return sl_span(room, n);
}

/* glibc refuses overlong forms, halves of surrogate pairs and what is above U+10FFFF, as RFC 3629 asks. */
static bool library_takes(iconv_t reader, struct sl_span text)
{
    char in[64], out[512], *from = in, *to = out;
    size_t left = text.len, room = sizeof(out);
    memcpy(in, text.ptr, text.len);
    iconv(reader, NULL, NULL, NULL, NULL);
    return iconv(reader, &from, &left, &to, &room) != (size_t)-1 && left == 0;
}

static void the_same_text_is_utf8_as_for_the_library(void **state)
{
    (void)state;
    iconv_t reader = iconv_open("UTF-32LE", "UTF-8");
    assert_true(reader != (iconv_t)-1);
    size_t good = 0;
    for (int run = 0; run < RUNS; run++) {
        char room[8];
        struct sl_span text = some_bytes(room, 5);
        bool wanted = library_takes(reader, text);
        good += wanted;
        if (sl_utf8_is_valid(text) != wanted)
            fail_msg("%zu bytes %02x %02x %02x %02x: the library says %d", text.len, room[0] & 0xFF,
                     room[1] & 0xFF, room[2] & 0xFF, room[3] & 0xFF, wanted);
    }
    assert_true(good > RUNS / 100 && good < RUNS);
    assert_true(sl_utf8_is_valid(sl_span(NULL, 0)));
    iconv_close(reader);
}

static void exact_text_comes_back_byte_for_byte(void **state)
{
    (void)state;
    struct sl_buffer written, back;
    sl_buffer_init(&written, 4096);
    sl_buffer_init(&back, 4096);
    for (int run = 0; run < RUNS; run++) {
        char room[64];
        struct sl_span text = some_bytes(room, 24);
        written.len = 0;
        sl_buffer_add_char(&written, '"');
        sl_json_add_exact(&written, text);
        sl_buffer_add_char(&written, '"');
        struct sl_span inner = sl_span(written.ptr + 1, written.len - 2);
        struct sl_span got = sl_json_unescape_in(inner, &back);
        if (!sl_span_eq(got, text))
            fail_msg("run %d: %.*s", run, SL_ARG(inner));
        assert_int_equal(sl_json_unescaped_bytes(inner), text.len);
        assert_true(sl_json_text_is(inner, text));
        assert_int_equal(sl_json_check_loose(sl_span(written.ptr, written.len), NULL), SL_OK);
        /* Strict readers take exactly the text that is text. */
        assert_int_equal(sl_json_check(sl_span(written.ptr, written.len), NULL),
                         sl_utf8_is_valid(text) ? SL_OK : SL_REJECT);
    }
    sl_buffer_clean_up(&written);
    sl_buffer_clean_up(&back);
}

/* Any two code units as escapes: a pair makes one character of four bytes, and a half that is alone three. */
static void escapes_are_read_by_the_rule_of_utf_16(void **state)
{
    (void)state;
    static const unsigned units[] = {0x0000, 0x007F, 0x0080, 0x07FF, 0x0800, 0xD7FF, 0xD800,
                                     0xD801, 0xDBFF, 0xDC00, 0xDC01, 0xDFFF, 0xE000, 0xFFFF};
    enum { N = sizeof(units) / sizeof(units[0]) };
    for (int i = 0; i < N * N; i++) {
        unsigned a = units[i / N], b = units[i % N];
        char quoted[20], *text = quoted + 1, got[16], wanted[16], *to = wanted;
        size_t n = (size_t)snprintf(quoted, sizeof(quoted), "\"\\u%04x\\u%04X\"", a, b) - 2;
        unsigned codes[2] = {a, b};
        int n_codes = 2;
        if (a >= 0xD800 && a < 0xDC00 && b >= 0xDC00 && b < 0xE000)
            codes[0] = 0x10000 + (a - 0xD800) * 0x400 + (b - 0xDC00), n_codes = 1;
        for (int k = 0; k < n_codes; k++) {
            unsigned c = codes[k];
            if (c >= 0x10000)
                *to++ = (char)(0xF0 + (c >> 18)), *to++ = (char)(0x80 + (c >> 12) % 64);
            else if (c >= 0x800)
                *to++ = (char)(0xE0 + (c >> 12));
            if (c >= 0x800)
                *to++ = (char)(0x80 + (c >> 6) % 64);
            else if (c >= 0x80)
                *to++ = (char)(0xC0 + (c >> 6));
            *to++ = (char)(c >= 0x80 ? 0x80 + c % 64 : c);
        }
        assert_int_equal(sl_json_unescape_to(sl_span(text, n), got), to - wanted);
        assert_memory_equal(got, wanted, (size_t)(to - wanted));
        /* Strict readers take no half that is alone. */
        bool is_text = n_codes == 1 || (a - 0xD800 >= 0x800 && b - 0xD800 >= 0x800);
        assert_int_equal(sl_json_check(sl_span(quoted, n + 2), NULL), is_text ? SL_OK : SL_REJECT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_text_is_utf8_as_for_the_library),
        cmocka_unit_test(exact_text_comes_back_byte_for_byte),
        cmocka_unit_test(escapes_are_read_by_the_rule_of_utf_16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
