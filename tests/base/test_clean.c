/* What is shown of texts of others: every character and every broken byte, in errors and in log lines. */
#include "tests/support/test.h"

#include "base/clean.h"
#include "base/error.h"
#include "base/log.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Independent of the code's bytes: by number. */
static bool must_not_be_shown(unsigned code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C || code == 0x200E ||
           code == 0x200F || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xFEFF;
}

static size_t utf8(unsigned code, char *out)
{
    static const unsigned char heads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(heads[n] | code);
    return n;
}

static void every_character_is_shown_or_replaced(void **state)
{
    (void)state;
    for (unsigned code = 1; code < 0x110000; code++) {
        char text[8] = "a", out[16], wanted[16];
        bool is_half = code >= 0xD800 && code < 0xE000; /* of a pair: not UTF-8 */
        size_t n = utf8(code, text + 1);
        text[1 + n] = 'z';
        sl_clean(sl_span(text, n + 2), out, sizeof(out));
        if (must_not_be_shown(code) || is_half)
            snprintf(wanted, sizeof(wanted), "a%sz", is_half ? "???" : "?");
        else
            snprintf(wanted, sizeof(wanted), "a%.*sz", (int)n, text + 1);
        if (strcmp(out, wanted) != 0)
            fail_msg("U+%04X: %s", code, out);
    }
}

static void texts_are_cut_at_a_character(void **state)
{
    (void)state;
    char out[16];
    static const char text[] = "ab\xC3\xA4\xF0\x9F\xA6\x8A"
                               "c\n";
    static const char *const wanted[] = {"",           "a",          "ab",
                                         "ab",         "ab\xC3\xA4", "ab\xC3\xA4",
                                         "ab\xC3\xA4", "ab\xC3\xA4", "ab\xC3\xA4\xF0\x9F\xA6\x8A"};
    for (size_t room = 1; room <= 9; room++) {
        assert_int_equal(sl_clean(sl_span_str(text), out, room), strlen(wanted[room - 1]));
        assert_string_equal(out, wanted[room - 1]);
    }
}

/* Characters that must not be shown, and bytes that are none. */
static const char nasty[] = "1\n2\r3\x1b[2J4\x7F"
                            "5\xC2\x85"
                            "6\xE2\x80\xA8"
                            "7\xE2\x80\xAE"
                            "8\xE2\x81\xA6"
                            "9\xEF\xBB\xBF"
                            "A\xFF"
                            "B\xC0\x80"
                            "C\xED\xA0\x80"
                            "D\xE2\x80\x8E"
                            "E\xC2";

static void assert_clean(struct sl_span text)
{
    for (const char *p = text.ptr, *end = p + text.len; p < end;) {
        bool shown;
        const char *next = sl_clean_next(p, end, &shown);
        if (!shown && !(*p == '\n' && next == end))
            fail_msg("byte %zu of %.*s", (size_t)(p - text.ptr), SL_ARG(text));
        p = next;
    }
}

static void every_way_into_an_error_is_clean(void **state)
{
    (void)state;
    struct sl_error errors[4] = {{.status = SL_OK}, {.status = SL_OK}, {.status = SL_OK}, {.status = SL_OK}};
    (void)sl_fail(&errors[0], SL_FATAL, "X", "%s", nasty);
    (void)sl_fail_at(&errors[1], SL_FATAL, "X", 3, "%s", nasty);
    (void)sl_fail(&errors[2], SL_FATAL, "X", "x");
    sl_error_context(&errors[2], "%s", nasty);
    snprintf(errors[3].code, sizeof(errors[3].code), "%s", nasty); /* as a plugin may */
    snprintf(errors[3].text, sizeof(errors[3].text), "%s", nasty);
    sl_error_seal(&errors[3]);
    for (size_t i = 0; i < 4; i++) {
        assert_clean(sl_span_str(errors[i].text));
        assert_clean(sl_span_str(errors[i].code));
        assert_non_null(strstr(errors[i].text, "?8?9?A?B??C???D?E?"));
    }
}

static void every_way_into_a_log_line_is_clean(void **state)
{
    (void)state;
    for (int format = SL_LOG_TEXT; format <= SL_LOG_JSON; format++) {
        int fds[2];
        char line[4096];
        struct sl_log log;
        assert_int_equal(pipe(fds), 0);
        sl_log_init(&log, fds[1], SL_TRACE, (enum sl_log_format)format, sl_clock_system());
        snprintf(log.request_id, sizeof(log.request_id), "%s", nasty);
        log.route = nasty;
        sl_log(&log, SL_TRACE, "%s", nasty);
        ssize_t n = read(fds[0], line, sizeof(line) - 1);
        assert_true(n > 0);
        assert_clean(sl_span(line, (size_t)n));
        assert_non_null(strstr((line[n] = '\0', line), "\\u202e"));
        if (format == SL_LOG_JSON) {
            json_t *root = json_loadb(line, (size_t)n, 0, NULL);
            const char *message = json_string_value(json_object_get(root, "message"));
            assert_non_null(message);
            assert_int_equal(strncmp(message, "1\n2\\x0d3\\x1b[2J4\\x7f5\\u00856\\u20287\\u202e8", 40), 0);
            assert_clean(sl_span_str(message + 2)); /* the line break is JSON's to escape */
            json_decref(root);
        }
        sl_log_clean_up(&log);
        close(fds[0]);
        close(fds[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_is_shown_or_replaced),
        cmocka_unit_test(texts_are_cut_at_a_character),
        cmocka_unit_test(every_way_into_an_error_is_clean),
        cmocka_unit_test(every_way_into_a_log_line_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
