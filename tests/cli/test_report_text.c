/* Texts of others in a report: escaped, shortened, kept once, and answers in words. */
#include "cli/output/report/answer.h"
#include "cli/output/report/html.h"
#include "base/map.h"

#include <jansson.h>
#include <stdio.h>

#include "base/utf8.h"
#include "tests/support/test.h"

/* `lead` letters, then `n` characters of four bytes. */
static void long_text(size_t lead, size_t n, char *out)
{
    memset(out, 'x', lead);
    for (size_t i = 0; i < n; i++)
        memcpy(out + lead + 4 * i, "\xF0\x9F\x98\x80", 4);
    out[lead + 4 * n] = '\0';
}

static void every_byte_in_html(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 256; c++) {
        const char text[] = {'a', (char)c, 'z'};
        struct sl_buffer b;
        sl_buffer_init(&b, 256);
        sl_html_add(&b, sl_span(text, sizeof(text)));
        struct sl_span html = sl_buffer_span(&b);
        assert_true(sl_utf8_is_valid(html));
        assert_true(html.ptr[0] == 'a' && html.ptr[html.len - 1] == 'z' && html.len >= 3);
        for (size_t i = 0; i < html.len; i++)
            assert_false((unsigned char)html.ptr[i] < 0x20 || html.ptr[i] == 0x7F ||
                         strchr("<>\"'", html.ptr[i]));
        assert_true(html.len > 3 || html.ptr[1] == (char)c);
        sl_buffer_clean_up(&b);
    }
}

static void hidden_characters_are_named(void **state)
{
    (void)state;
    const struct {
        const char *text, *html;
    } cases[] = {
        {"\xE2\x80\xAEgnp", "\xE2\x80\xB9U+202E\xE2\x80\xBAgnp"},
        {"\xC2\xAD", "\xE2\x80\xB9U+00AD\xE2\x80\xBA"},
        {"\xC2\xAC\xC2\xAE", "\xC2\xAC\xC2\xAE"},
        {"\xE2\x80\x8B\xE2\x80\x8D", "\xE2\x80\xB9U+200B\xE2\x80\xBA\xE2\x80\x8D"},
        {"\xF3\xA0\x81\xBF\xF3\xA0\x82\x80", "\xE2\x80\xB9U+E007F\xE2\x80\xBA\xF3\xA0\x82\x80"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_buffer b;
        sl_buffer_init(&b, 256);
        sl_html_add(&b, sl_span_str(cases[i].text));
        assert_span_is(sl_buffer_span(&b), cases[i].html);
        sl_buffer_clean_up(&b);
    }
}

static void every_byte_in_data(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 128; c++) {
        const char text[] = {'a', (char)c, 'z'};
        struct sl_buffer b;
        sl_buffer_init(&b, 256);
        sl_html_add_json(&b, sl_span(text, sizeof(text)));
        assert_null(memchr(b.ptr, '<', b.len));
        json_t *back = json_loadb(b.ptr, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_non_null(back);
        assert_int_equal(json_string_length(back), 3);
        assert_memory_equal(json_string_value(back), text, 3);
        json_decref(back);
        sl_buffer_clean_up(&b);
    }
}

static void counts_are_grouped(void **state)
{
    (void)state;
    const struct {
        size_t n;
        const char *text;
    } cases[] = {{0, "0"}, {999, "999"}, {1000, "1,000"}, {12345, "12,345"}, {1234567, "1,234,567"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_buffer b;
        sl_buffer_init(&b, 64);
        sl_html_add_count(&b, cases[i].n);
        assert_span_is(sl_buffer_span(&b), cases[i].text);
        sl_buffer_clean_up(&b);
    }
}

static void each_text_is_kept_once(void **state)
{
    (void)state;
    struct sl_map texts;
    sl_map_init(&texts, sl_arena_new(4096), 0);
    assert_int_equal(sl_map_keep(&texts, SL_LIT("")), 0);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 1; i <= 5000; i++) {
            char text[16];
            snprintf(text, sizeof(text), "%u", i);
            assert_int_equal(sl_map_keep(&texts, sl_span_str(text)), i);
            assert_span_is(texts.entries[i].text, text);
        }
    assert_int_equal(texts.n, 5001);
    assert_int_equal(sl_map_keep(&texts, SL_LIT("")), 0);
    sl_arena_destroy(texts.arena);
}

static void answers_in_words(void **state)
{
    (void)state;
    const struct {
        enum sl_esm_outcome outcome;
        const char *body, *text;
    } cases[] = {
        {SL_ESM_ANSWERED, "null", "null"},
        {SL_ESM_ANSWERED, "", "An empty answer"},
        {SL_ESM_ANSWERED, "{'batchItemFailures':[]}", "Success: it names no record"},
        {SL_ESM_ANSWERED, "{'batchItemFailures':[{'itemIdentifier':'7'}]}", "Names 1 record as failed: 7"},
        {SL_ESM_ANSWERED, "{'batchItemFailures':[{'itemIdentifier':'7'},{}]}",
         "Names 2 records as failed: 7, ?"},
        {SL_ESM_ANSWERED,
         "{'batchItemFailures':[{'itemIdentifier':'1'},{'itemIdentifier':'2'},{'itemIdentifier':'3'},"
         "{'itemIdentifier':'4'},{'itemIdentifier':'5'},{'itemIdentifier':'6'}]}",
         "Names 6 records as failed: 1, 2, 3, 4, 5 and 1 more"},
        {SL_ESM_ANSWERED, "{'batchItemFailures':7}", "{\"batchItemFailures\":7}"},
        {SL_ESM_ANSWERED, "{'errorType':'E'}", "{\"errorType\":\"E\"}"},
        {SL_ESM_ANSWERED, "<html>", "<html>"},
        {SL_ESM_FAILED, "{'errorType':'E','errorMessage':'m'}", "E: m"},
        {SL_ESM_FAILED, "{'errorMessage':'m'}", "m"},
        {SL_ESM_FAILED, "{'errorType':'E','errorMessage':''}", "E"},
        {SL_ESM_FAILED, "{'errorType':7}", "{\"errorType\":7}"},
        {SL_ESM_FAILED, "{'batchItemFailures':[]}", "{\"batchItemFailures\":[]}"},
        {SL_ESM_THROTTLED, "{'errorType':'TooManyRequestsException'}", "TooManyRequestsException"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sl_esm_result result = {.outcome = cases[i].outcome, .body = json_span(cases[i].body)};
        struct sl_buffer b;
        sl_buffer_init(&b, 4096);
        sl_answer_say(&result, true, &b);
        assert_span_is(sl_buffer_span(&b), cases[i].text);
        sl_buffer_clean_up(&b);
    }
}

static void an_answer_that_is_ignored(void **state)
{
    (void)state;
    const struct sl_esm_result result = {.outcome = SL_ESM_ANSWERED,
                                         .body = json_span("{'batchItemFailures':[{'itemIdentifier':'7'}]}")};
    struct sl_buffer b;
    sl_buffer_init(&b, 4096);
    sl_answer_say(&result, false, &b);
    assert_span_is(sl_buffer_span(&b),
                   "Names 1 record as failed: 7 (ignored: ReportBatchItemFailures is off)");
    sl_buffer_clean_up(&b);
}

static void long_answers_are_cut_between_characters(void **state)
{
    (void)state;
    for (size_t lead = 0; lead < 4; lead++) { /* (The text has 2,400 bytes and more.) */
        char text[4096];
        long_text(lead, 600, text);
        const struct sl_esm_result result = {.outcome = SL_ESM_ANSWERED, .body = sl_span_str(text)};
        struct sl_buffer b;
        sl_buffer_init(&b, 4096);
        sl_answer_say(&result, true, &b);
        assert_true(sl_utf8_is_valid(sl_buffer_span(&b)));
        assert_true(b.len <= SL_ANSWER_TEXT_BYTES + 3 && b.len > SL_ANSWER_TEXT_BYTES - 4);
        assert_memory_equal(b.ptr + b.len - 3, "\xE2\x80\xA6", 3);
        sl_buffer_clean_up(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_in_html),
        cmocka_unit_test(hidden_characters_are_named),
        cmocka_unit_test(every_byte_in_data),
        cmocka_unit_test(counts_are_grouped),
        cmocka_unit_test(each_text_is_kept_once),
        cmocka_unit_test(answers_in_words),
        cmocka_unit_test(an_answer_that_is_ignored),
        cmocka_unit_test(long_answers_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
