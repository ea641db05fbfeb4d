/* What a report collects and writes: its limits, and what it says of records that were lost. How
 * it looks and works in a browser is check_report.py's. */
#include "cli/output/report/picture.h"

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
    struct sl_run_summary summary;
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
    const struct sl_vars vars = {.list = (const char *const *)environ};
    const struct sl_runner_options options = {.sandbox = {.vars = &vars}};
    w.summary = (struct sl_run_summary){.recording = &w.recording, .runner = sl_runner_new(&options)};
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

static void write_run(const struct sl_picture_run *run)
{
    struct sl_error error = SL_NO_ERROR;
    size_t n;
    char path[512];
    snprintf(path, sizeof(path), "%s/out.html", w.folder);
    assert_int_equal(sl_picture_write(w.picture, path, run, &w.summary, &error), SL_OK);
    free(w.page);
    w.page = test_read(path, &n);
    assert_non_null(w.page);
    assert_int_equal(strlen(w.page), n);
}

static void write_page(void)
{
    const char *const inputs[] = {"in.json"};
    write_run(
        &(struct sl_picture_run){.verb = "replay", .config = "sluice.json", .inputs = inputs, .n_inputs = 1});
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
    assert_says("<h1>1 parked, 1,250 of 2,000 records were given up</h1>");
}

/* ---- what the picture is drawn from ---- */

static void assert_row(const json_t *row, const char *expected)
{
    char *text = json_dumps(row, JSON_COMPACT);
    assert_string_equal(text, json(expected));
    free(text);
}

/* [time, lane, first, last, records, cut, attempt, kind, final, answer, route, reason, first id, last id] */
static void rows_of_every_kind(void **state)
{
    (void)state;
    const struct sl_esm_result answered = {.outcome = SL_ESM_ANSWERED, .body = SL_LIT("null")};
    const struct sl_esm_result throttled = {.outcome = SL_ESM_THROTTLED, .body = SL_LIT("{}")};
    struct sl_esm_invocation inv = {.request_id = request,
                                    .shard = &w.shards[1],
                                    .records = w.batch + 1510,
                                    .n = 5,
                                    .lane = 3,
                                    .time_ms = 700,
                                    .attempt = 2};
    struct sl_esm_decision decision = {.verb = SL_ESM_CHECKPOINT, .failed = 4};
    sl_picture_add(w.picture, &inv, &answered, &decision, &w.notes);
    decision.verb = SL_ESM_BISECT;
    sl_picture_add(w.picture, &inv, &answered, &decision, &w.notes);
    decision.verb = SL_ESM_RETRY;
    sl_picture_add(w.picture, &inv, &throttled, &decision, &w.notes);
    inv.n = 0;
    inv.is_final = true;
    sl_picture_add(w.picture, &inv, &answered, &decision, &w.notes);
    note(false, "1511", "mail", "why");
    sl_picture_add(w.picture, &inv, &answered, &decision, &w.notes);
    write_page();
    json_t *data = page_data(),
           *rows = json_object_get(json_array_get(json_object_get(data, "shards"), 1), "rows");
    assert_row(json_array_get(rows, 0), "[700,3,10,14,5,4,2,1,0,1,0,0,'1511','1515']");
    assert_row(json_array_get(rows, 1), "[700,3,10,14,5,2,2,3,0,1,0,0,'1511','1515']");
    assert_row(json_array_get(rows, 2), "[700,3,10,14,5,0,2,5,0,2,0,0,'1511','1515']");
    assert_row(json_array_get(rows, 3), "[700,3,0,0,0,0,2,2,1,1,0,0,'','']");
    assert_row(json_array_get(rows, 4), "[700,3,0,0,0,0,2,2,1,1,4,3,'','']");
    assert_row(json_object_get(data, "texts"), "['','null','{}','Bad: why','mail']");
    json_decref(data);
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
    assert_says("<h1>2 parked, all 2,000 records were handled</h1>");
    assert_int_equal(w.notes.n, 0);
}

static void the_record_beside_is_not_blamed(void **state)
{
    (void)state;
    discard(0, 2, SL_ESM_RETRIES_EXHAUSTED, request);
    note(false, "2", "mail", "no value");
    invoke(0, 2, SL_ESM_DISCARD, "{}");
    write_page();
    assert_int_equal(times_said("Record <bdi>2</bdi> failed first: "), 1);
    assert_int_equal(times_said("<bdi>Bad: no value</bdi></td>"), 2);
    assert_int_equal(times_said("data-name=Route><bdi>mail</bdi>"), 2);
    assert_says("with 1 other of its batch");
}

static void the_reason_is_its_own(void **state)
{
    (void)state;
    json_t *other = json_pack("{s:s, s:[{s:s, s:s, s:s}]}", "requestId", "other", "notes", "route", "b", "id",
                              "1", "code", "Other");
    sl_notes_add(&w.notes, other);
    json_decref(other);
    discard(0, 1, SL_ESM_RETRIES_EXHAUSTED, request);
    invoke(0, 1, SL_ESM_DISCARD, "{'errorType':'Mine'}");
    write_page();
    assert_not_said("Other");
    assert_says("not known</span>");
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
    assert_says(
        "<bdi>P\xC3\xA9\xE2\x80\xB9U+000A\xE2\x80\xBA</bdi> =</span> <bdi>a\xE2\x80\xB9U+0000\xE2\x80\xBA"
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

static void keys_of_one_byte_too_many(void **state)
{
    (void)state;
    char keys[512];
    snprintf(keys, sizeof(keys), "'PK':{'S':'%0201d'}", 7);
    say_keys(event_with_keys(keys));
    assert_says("0000</bdi>&hellip;");
    snprintf(keys, sizeof(keys), "<bdi>%0200d</bdi>&hellip;", 0);
    assert_says(keys);
}

static void records_without_keys(void **state)
{
    (void)state;
    discard(0, 1, SL_ESM_TRIMMED, "none");
    write_page();
    assert_says("data-name=Key><span class=quiet>none</span></td>");
}

static void keys_that_just_fit(void **state)
{
    (void)state;
    char keys[512];
    snprintf(keys, sizeof(keys), "'PK':{'S':'%0200d'}", 0);
    say_keys(event_with_keys(keys));
    assert_not_said("&hellip;");
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

/* ---- which run it is ---- */

static void assert_fact(const char *name, const char *value)
{
    assert_says(json_printf("<dt>%s</dt><dd>%s</dd>", name, value));
}

static void every_setting_is_said(void **state)
{
    (void)state;
    const char *const inputs[] = {"a", "b", "c", "d"}, *const filters[] = {"{\"x\":1}", "{}"},
                      *const faults[] = {"die@1"};
    w.settings = (struct sl_esm_settings){.batch_size = 7,
                                          .window_s = 8,
                                          .parallelization = 9,
                                          .max_retries = 10,
                                          .max_age_s = 60,
                                          .tumbling_s = 11,
                                          .bisect = true,
                                          .report_failures = true,
                                          .concurrency = 12,
                                          .invocation_ms = 13,
                                          .function_arn = "arn:f",
                                          .stream_arn = "arn:s"};
    w.recording.start_ms = 1573689197184;
    write_run(&(struct sl_picture_run){.verb = "replay",
                                       .command = "node <x>",
                                       .inputs = inputs,
                                       .n_inputs = 4,
                                       .filters = filters,
                                       .n_filters = 2,
                                       .faults = faults,
                                       .n_faults = 1,
                                       .timeout_s = 14,
                                       .seed = 15,
                                       .is_live = true,
                                       .wall_ms = 1600000000000});
    assert_says("<p class=inputs><bdi>a</bdi>, <bdi>b</bdi>, <bdi>c</bdi> and 1 more</p>");
    assert_fact("Inputs", "<bdi>a</bdi><br><bdi>b</bdi><br><bdi>c</bdi><br><bdi>d</bdi>");
    assert_fact("Function (another runtime)", "<bdi>node &lt;x&gt;</bdi>");
    assert_fact("Function ARN", "<bdi>arn:f</bdi>");
    assert_fact("Stream", "<bdi>arn:s</bdi>");
    assert_fact("Replayed", "<bdi>2020-09-13T12:26:40.000Z</bdi>");
    assert_fact("Virtual time began", "<bdi>2019-11-13T23:53:17.184Z</bdi>");
    assert_fact("Records become available", "<bdi>each at its own time</bdi>");
    assert_fact("BatchSize", "7");
    assert_fact("MaximumBatchingWindowInSeconds", "8 s");
    assert_fact("ParallelizationFactor", "9");
    assert_fact("MaximumRetryAttempts", "10");
    assert_fact("MaximumRecordAgeInSeconds", "60 s");
    assert_fact("TumblingWindowInSeconds", "11 s");
    assert_fact("BisectBatchOnFunctionError", "<bdi>on</bdi>");
    assert_fact("ReportBatchItemFailures", "<bdi>on</bdi>");
    assert_says("<dt>FilterCriteria</dt><dd><bdi>{&quot;x&quot;:1}</bdi><br><bdi>{}</bdi></dd>");
    assert_fact("ReservedConcurrentExecutions", "12");
    assert_fact("Timeout of an invocation", "14 s");
    assert_fact("Virtual duration of an invocation", "13 ms");
    assert_fact("Seed", "15");
    assert_fact("Planned faults", "<bdi>die@1</bdi>");
    assert_not_said("h-routes"); /* no route reported anything */
}

static void settings_that_are_off(void **state)
{
    (void)state;
    const char *const inputs[] = {"a", "b", "c"};
    w.settings.stream_arn = w.settings.function_arn = NULL;
    write_run(
        &(struct sl_picture_run){.verb = "replay", .config = "sluice.json", .inputs = inputs, .n_inputs = 3});
    assert_says("<p class=inputs><bdi>a</bdi>, <bdi>b</bdi>, <bdi>c</bdi></p>");
    assert_fact("Function (bootstrap with)", "<bdi>sluice.json</bdi>");
    assert_fact("Function ARN", "<bdi>none</bdi>");
    assert_fact("Stream", "<bdi>none</bdi>");
    assert_fact("MaximumRetryAttempts", "<bdi>no limit</bdi>");
    assert_fact("MaximumRecordAgeInSeconds", "<bdi>no limit</bdi>");
    assert_fact("TumblingWindowInSeconds", "<bdi>none</bdi>");
    assert_fact("BisectBatchOnFunctionError", "<bdi>off</bdi>");
    assert_fact("ReportBatchItemFailures", "<bdi>off</bdi>");
    assert_fact("ReservedConcurrentExecutions", "<bdi>no limit</bdi>");
    assert_fact("Records become available", "<bdi>all at the beginning</bdi>");
    assert_not_said("FilterCriteria");
    assert_not_said("Planned faults");
    assert_not_said("Given up or parked");
}

static void virtual_time_in_a_unit_to_read(void **state)
{
    (void)state;
    const struct {
        int64_t ms;
        const char *text;
    } cases[] = {{0, "0.0 s"},           {119999, "120.0 s"}, {120000, "2.0 min"},
                 {7199999, "120.0 min"}, {7200000, "2.0 h"},  {86400000, "24.0 h"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        w.summary.mapping.elapsed_ms = cases[i].ms;
        write_page();
        assert_fact("virtual time", cases[i].text);
    }
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
        TEST(keys_of_one_byte_too_many),
        TEST(records_without_keys),
        TEST(the_reason_is_its_own),
        TEST(rows_of_every_kind),
        TEST(every_setting_is_said),
        TEST(settings_that_are_off),
        TEST(virtual_time_in_a_unit_to_read),
        TEST(what_the_mapping_ignored_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
