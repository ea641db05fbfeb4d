/* What a report collects and writes: its limits, its texts, and what it says of records that were lost. How
 * it looks and works in a browser is check_report.py's. */
#include "replay/output/report/answer.h"
#include "replay/output/report/html.h"
#include "replay/output/report/picture.h"
#include "replay/output/report/texts.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/utf8.h"
#include "streams/decode/batch.h"
#include "tests/support/test.h"

#define MOST_ROWS   20000
#define MOST_LOSSES 1000

extern char **environ;

/* ---- a run without a function ---- */

static struct {
    struct sl_esm_settings settings;
    struct sl_esm_record records[2000];
    const struct sl_esm_record *batch[2000];
    char ids[2000][8];
    struct sl_esm_shard shards[2];
    struct sl_recording recording;
    struct sl_summary summary;
    struct sl_picture *picture;
    struct sl_notes notes;
    char *folder, *page;
} w;

static int set_up(void **state)
{
    (void)state;
    memset(&w, 0, sizeof(w));
    sl_esm_settings_init(&w.settings);
    w.settings.stream_arn = "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/s";
    for (size_t i = 0; i < 2000; i++) {
        snprintf(w.ids[i], sizeof(w.ids[i]), "%zu", i + 1);
        w.records[i] = (struct sl_esm_record){.id = sl_span_str(w.ids[i])};
        w.batch[i] = &w.records[i];
    }
    w.shards[0] = (struct sl_esm_shard){.id = "shard-a", .parent = -1, .records = w.records, .n = 1500};
    w.shards[1] = (struct sl_esm_shard){.id = "shard-b", .parent = -1, .records = w.records + 1500, .n = 500};
    w.recording = (struct sl_recording){.shards = w.shards, .n_shards = 2, .n = 2000};
    const struct sl_runner_options options = {.sandbox = {.environment = environ}};
    w.summary = (struct sl_summary){.recording = &w.recording, .runner = sl_runner_new(&options)};
    w.summary.mapping.done = 2000;
    w.picture = sl_picture_new(&w.settings);
    w.folder = test_folder();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sl_picture_destroy(w.picture);
    sl_runner_destroy(w.summary.runner);
    sl_notes_clean_up(&w.notes);
    test_folder_remove(w.folder);
    free(w.page);
    return 0;
}

static const char *const request = "00000000-0000-4000-8000-000000000001";

/* One invocation of records `from` to `from` + `n` - 1 of the first shard. */
static void invoke(size_t from, size_t n, enum sl_esm_verb verb, const char *answer)
{
    const struct sl_esm_invocation inv = {
        .request_id = request, .shard = &w.shards[0], .records = w.batch + from, .n = n, .attempt = 1};
    const struct sl_esm_result result = {.outcome = verb == SL_ESM_ADVANCE ? SL_ESM_ANSWERED : SL_ESM_FAILED,
                                         .body = sl_span_str(answer)};
    const struct sl_esm_decision decision = {.verb = verb};
    sl_picture_add(w.picture, &inv, &result, &decision, &w.notes);
    sl_notes_forget(&w.notes, request);
}

static void discard(size_t from, size_t n, enum sl_esm_condition condition, const char *request_id)
{
    const struct sl_esm_discard d = {.condition = condition,
                                     .shard = &w.shards[0],
                                     .records = w.batch + from,
                                     .n = n,
                                     .request_id = request_id,
                                     .invoke_count = 3};
    sl_picture_add_discard(w.picture, &d);
    w.summary.mapping.discarded += n;
    w.summary.mapping.done -= n;
}

static void note(bool is_parked, const char *id, const char *route, const char *text)
{
    json_t *report = json_pack("{s:s, s:[{s:b, s:s, s:s, s:s, s:s}]}", "requestId", request, "notes",
                               "parked", is_parked, "id", id, "route", route, "code", "Bad", "message", text);
    sl_notes_add(&w.notes, report);
    json_decref(report);
}

static const char *write_page(void)
{
    const char *const inputs[] = {"in.json"};
    const struct sl_picture_run run = {
        .verb = "replay", .config = "sluice.json", .inputs = inputs, .n_inputs = 1};
    struct sl_error error = SL_NO_ERROR;
    size_t n;
    char path[512];
    snprintf(path, sizeof(path), "%s/out.html", w.folder);
    assert_int_equal(sl_picture_write(w.picture, path, &run, &w.summary, &error), SL_OK);
    free(w.page);
    w.page = test_read(path, &n);
    assert_non_null(w.page);
    assert_int_equal(strlen(w.page), n);
    return w.page;
}

static void assert_says(const char *text)
{
    if (!strstr(w.page, text))
        fail_msg("the page does not say: %s", text);
}

static void assert_not_said(const char *text)
{
    if (strstr(w.page, text))
        fail_msg("the page says: %s", text);
}

static size_t times_said(const char *text)
{
    size_t n = 0;
    for (const char *at = w.page; (at = strstr(at, text)); at++)
        n++;
    return n;
}

/* The page's own data. */
static json_t *page_data(void)
{
    const char *from = strstr(w.page, "id=data>") + strlen("id=data>");
    json_t *data = json_loadb(from, (size_t)(strstr(from, "</script>") - from), 0, NULL);
    assert_non_null(data);
    return data;
}

static size_t rows_of(const json_t *data, size_t shard)
{
    return json_array_size(json_object_get(json_array_get(json_object_get(data, "shards"), shard), "rows"));
}

/* ---- what is too much is counted ---- */

static void more_invocations_than_are_drawn(void **state)
{
    (void)state;
    for (size_t i = 0; i < MOST_ROWS; i++)
        invoke(0, 1, SL_ESM_ADVANCE, "null");
    write_page();
    assert_not_said("are not drawn");
    for (size_t i = 0; i < 3; i++)
        invoke(0, 1, SL_ESM_ADVANCE, "null");
    discard(7, 1, SL_ESM_RETRIES_EXHAUSTED, request);
    invoke(7, 1, SL_ESM_DISCARD, "{\"errorType\":\"Late\"}");
    write_page();
    assert_says("<p>4 later invocations are not drawn.</p>");
    assert_says("not drawn</span>"); /* in the place of the link */
    assert_says("after 3 deliveries. <bdi>Late</bdi>");
    json_t *data = page_data();
    assert_int_equal(rows_of(data, 0), MOST_ROWS);
    assert_int_equal(rows_of(data, 1), 0);
    json_decref(data);
}

static void more_losses_than_are_listed(void **state)
{
    (void)state;
    discard(0, MOST_LOSSES, SL_ESM_RETRIES_EXHAUSTED, request);
    invoke(0, MOST_LOSSES, SL_ESM_DISCARD, "{}");
    write_page();
    assert_int_equal(times_said("<tr role=row><td"), MOST_LOSSES);
    assert_not_said("are not listed");
    assert_says("with 999 others of its batch");
    discard(1000, 250, SL_ESM_RETRIES_EXHAUSTED, request);
    note(true, "1001", "mail", "why");
    invoke(1000, 250, SL_ESM_DISCARD, "{}");
    write_page();
    assert_int_equal(times_said("<tr role=row><td"), MOST_LOSSES);
    assert_says("<p>251 more are not listed.");
    assert_says("<h1>1,250 of 2,000 records were given up, 1 parked</h1>");
}

/* ---- what is said of a loss ---- */

static void given_up_without_a_delivery(void **state)
{
    (void)state;
    discard(0, 1, SL_ESM_AGE_EXCEEDED, "another");
    discard(1, 1, SL_ESM_TRIMMED, "a third");
    invoke(2, 1, SL_ESM_ADVANCE, "null");
    write_page();
    assert_says("Too old before it was delivered. </td>");
    assert_says("Gone from the stream before it was delivered. </td>");
    assert_int_equal(times_said("not drawn</span>"), 2);
    assert_not_said("<a href=");
}

static void links_count_the_shard_alone(void **state)
{
    (void)state;
    const struct sl_esm_invocation other = {
        .request_id = "other", .shard = &w.shards[1], .records = w.batch + 1500, .n = 1, .attempt = 1};
    const struct sl_esm_result result = {.outcome = SL_ESM_ANSWERED, .body = SL_LIT("null")};
    const struct sl_esm_decision decision = {.verb = SL_ESM_ADVANCE};
    invoke(0, 1, SL_ESM_ADVANCE, "null");
    sl_picture_add(w.picture, &other, &result, &decision, &w.notes);
    discard(1, 1, SL_ESM_RETRIES_EXHAUSTED, request);
    invoke(1, 1, SL_ESM_DISCARD, "{}");
    write_page();
    assert_says("<a href=\"#i-0-1\">invocation&nbsp;2<");
}

static void parked_again_is_one_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        note(true, "2", "mail", "no value");
        invoke(0, 4, i < 2 ? SL_ESM_RETRY : SL_ESM_ADVANCE, "null");
    }
    note(true, "2", "other", "no value");
    invoke(0, 4, SL_ESM_ADVANCE, "null");
    note(true, "999", "mail", "a record that the invocation does not have");
    invoke(0, 4, SL_ESM_ADVANCE, "null");
    write_page();
    assert_int_equal(times_said("</svg>parked</td>"), 2);
    assert_says("Parked 3 times. <bdi>Bad: no value</bdi>");
    assert_says("<h1>All 2,000 records were handled, 2 parked</h1>");
    assert_int_equal(w.notes.n, 0);
}

static void the_record_beside_is_not_blamed(void **state)
{
    (void)state;
    discard(0, 2, SL_ESM_RETRIES_EXHAUSTED, request);
    note(false, "2", "mail", "no value");
    invoke(0, 2, SL_ESM_DISCARD, "{}");
    write_page();
    assert_int_equal(times_said("Not this record but <bdi>2</bdi> failed: "), 1);
    assert_int_equal(times_said("<bdi>Bad: no value</bdi></td>"), 2);
    assert_int_equal(times_said("data-name=Route><bdi>mail</bdi>"), 2);
    assert_says("with 1 other of its batch");
}

/* Only what an invocation itself gave up is told with its answer. */
static void what_another_lane_gave_up_is_not_its_fault(void **state)
{
    (void)state;
    discard(0, 1, SL_ESM_AGE_EXCEEDED, "another");
    discard(1, 1, SL_ESM_RETRIES_EXHAUSTED, request);
    invoke(1, 1, SL_ESM_DISCARD, "{\"errorType\":\"Mine\"}");
    write_page();
    assert_int_equal(times_said("<bdi>Mine</bdi></td>"), 1);
    assert_says("Too old before it was delivered. </td>");
}

static void notes_are_forgotten_one_invocation_at_a_time(void **state)
{
    (void)state;
    note(false, "1", "a", "x");
    json_t *other = json_pack("{s:s, s:[{s:s}]}", "requestId", "other", "notes", "route", "b");
    sl_notes_add(&w.notes, other);
    json_decref(other);
    note(true, "2", "c", "y");
    sl_notes_forget(&w.notes, request);
    assert_int_equal(w.notes.n, 1);
    assert_string_equal(w.notes.list[0].route, "b");
    assert_string_equal(w.notes.list[0].code, "");
}

/* ---- keys ---- */

static void say_keys(const char *event)
{
    const struct sl_decode_options options = {.any_shape = true};
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_batch batch;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_batch_decode(sl_span_str(event), arena, &options, &batch, &error), SL_OK);
    w.records[0].record = sl_batch_record(&batch, 0);
    discard(0, 1, SL_ESM_TRIMMED, "none");
    write_page();
    w.records[0].record = NULL;
    sl_arena_destroy(arena);
}

static const char *event_with_keys(const char *keys)
{
    return json_printf(
        "{'Records':[{'eventID':'1','eventName':'INSERT','eventSource':'aws:dynamodb','dynamodb':{"
        "'Keys':{%s},'SequenceNumber':'1','StreamViewType':'KEYS_ONLY'}}]}",
        keys);
}

static void keys_of_every_type(void **state)
{
    (void)state;
    say_keys(event_with_keys("'P\\u00e9\\n':{'S':'a\\u0000b'},'SK':{'N':'1.50'}"));
    assert_says("<bdi>P\xC3\xA9\xE2\x90\x8A</bdi> =</span> <bdi>a\xE2\x90\x80"
                "b</bdi><br>");
    assert_says("<bdi>SK</bdi> =</span> <bdi>1.50</bdi></td>");
}

/* `lead` letters, then `n` characters of four bytes. */
static void long_text(size_t lead, size_t n, char *out)
{
    memset(out, 'x', lead);
    for (size_t i = 0; i < n; i++)
        memcpy(out + lead + 4 * i, "\xF0\x9F\x98\x80", 4);
    out[lead + 4 * n] = '\0';
}

/* A long key is cut between two characters, wherever these begin. */
static void long_keys(void **state)
{
    (void)state;
    for (size_t lead = 0; lead < 4; lead++) {
        char text[2048], keys[2100];
        long_text(lead, 100, text);
        snprintf(keys, sizeof(keys), "'PK':{'S':'%s'}", text);
        say_keys(event_with_keys(keys));
        assert_true(sl_utf8_is_valid(sl_span_str(w.page)));
        assert_says("\xF0\x9F\x98\x80</bdi>&hellip;</td>");
        assert_not_said("\xEF\xBF\xBD");
    }
}

static void keys_that_just_fit(void **state)
{
    (void)state;
    char keys[512];
    snprintf(keys, sizeof(keys), "'PK':{'S':'%0200d'}", 0);
    say_keys(event_with_keys(keys));
    assert_not_said("&hellip;");
}

/* ---- texts ---- */

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
    struct sl_texts texts;
    sl_texts_init(&texts);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 1; i <= 5000; i++) {
            char text[16];
            snprintf(text, sizeof(text), "%u", i);
            assert_int_equal(sl_texts_add(&texts, sl_span_str(text)), i);
            assert_span_is(texts.list[i], text);
        }
    assert_int_equal(texts.n, 5001);
    assert_int_equal(sl_texts_add(&texts, SL_LIT("")), 0);
    sl_texts_clean_up(&texts);
}

static void answers_in_words(void **state)
{
    (void)state;
    const struct {
        enum sl_esm_outcome outcome;
        const char *body, *text;
    } cases[] = {
        {SL_ESM_ANSWERED, "null", "null"},
        {SL_ESM_ANSWERED, "", "an empty answer"},
        {SL_ESM_ANSWERED, "{'batchItemFailures':[]}", "success: it names no record"},
        {SL_ESM_ANSWERED, "{'batchItemFailures':[{'itemIdentifier':'7'}]}", "names 1 record as failed: 7"},
        {SL_ESM_ANSWERED, "{'batchItemFailures':[{'itemIdentifier':'7'},{}]}",
         "names 2 records as failed: 7, ?"},
        {SL_ESM_ANSWERED,
         "{'batchItemFailures':[{'itemIdentifier':'1'},{'itemIdentifier':'2'},{'itemIdentifier':'3'},"
         "{'itemIdentifier':'4'},{'itemIdentifier':'5'},{'itemIdentifier':'6'}]}",
         "names 6 records as failed: 1, 2, 3, 4, 5 and 1 more"},
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
                   "names 1 record as failed: 7 (ignored: ReportBatchItemFailures is off)");
    sl_buffer_clean_up(&b);
}

static void long_answers_are_cut_between_characters(void **state)
{
    (void)state;
    for (size_t lead = 0; lead < 4; lead++) {
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

static void what_the_mapping_ignored_is_said(void **state)
{
    (void)state;
    write_page();
    assert_not_said("were ignored");
    assert_not_said("given up beside others");
    w.summary.mapping.ignored_answers = 12;
    w.summary.mapping.beside = 1361;
    w.summary.mapping.done = 1000;
    write_page();
    assert_says("because ReportBatchItemFailures is off: 12.</p>");
    assert_says("<dt>given up beside others</dt><dd>1,361</dd>");
    assert_says("<h1>1,000 of 2,000 records were handled</h1>");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(more_invocations_than_are_drawn),
        TEST(more_losses_than_are_listed),
        TEST(given_up_without_a_delivery),
        TEST(links_count_the_shard_alone),
        TEST(parked_again_is_one_row),
        TEST(the_record_beside_is_not_blamed),
        TEST(what_another_lane_gave_up_is_not_its_fault),
        TEST(notes_are_forgotten_one_invocation_at_a_time),
        TEST(keys_of_every_type),
        TEST(long_keys),
        TEST(keys_that_just_fit),
        TEST(what_the_mapping_ignored_is_said),
        cmocka_unit_test(every_byte_in_html),
        cmocka_unit_test(every_byte_in_data),
        cmocka_unit_test(counts_are_grouped),
        cmocka_unit_test(each_text_is_kept_once),
        cmocka_unit_test(answers_in_words),
        cmocka_unit_test(an_answer_that_is_ignored),
        cmocka_unit_test(long_answers_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
