/* W3C's traceparent, and where in a record it counts. */
#include "tests/support/records.h"
#include "tests/support/test.h"

#include "streams/trace_context.h"

#include <stdio.h>
#include <stdlib.h>

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"
#define GOOD   "00-" TRACE "-" PARENT "-01"

static bool is_valid(const char *text)
{
    /* Of exactly its size, so that a sanitizer sees a read beyond it. */
    size_t n = strlen(text);
    char *tight = malloc(n ? n : 1);
    assert_non_null(tight);
    memcpy(tight, text, n);
    bool is = sl_traceparent_is_valid(sl_span(tight, n));
    free(tight);
    return is;
}

static void a_traceparent_is_what_w3c_says(void **state)
{
    static const char *const good[] = {
        GOOD,
        "00-" TRACE "-" PARENT "-00",
        "00-" TRACE "-" PARENT "-ff",
        "00-00000000000000000000000000000001-0000000000000001-01",
        "01-" TRACE "-" PARENT "-01",
        "cc-" TRACE "-" PARENT "-01-what-the-future-will-be-like",
        "fe-" TRACE "-" PARENT "-01-",
    };
    static const char *const bad[] = {
        "",
        "00",
        "00-",
        "00-" TRACE "-" PARENT "-0",
        GOOD ".",
        GOOD "-",
        GOOD "-what-the-future-will-be-like",
        "cc-" TRACE "-" PARENT "-01.what-the-future-will-not-be-like",
        "cc-" TRACE "-" PARENT "-011",
        "ff-" TRACE "-" PARENT "-01",
        "0-" TRACE "0-" PARENT "-01",
        ".0-" TRACE "-" PARENT "-01",
        "0g-" TRACE "-" PARENT "-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01",
        "00-" TRACE "-B7AD6B7169203331-01",
        "00-" TRACE "-" PARENT "-0A",
        "00-" TRACE "-" PARENT "-x1",
        "00-.af7651916cd43dd8448eb211c80319c-" PARENT "-01",
        "00-" TRACE "-.7ad6b7169203331-01",
        "00_" TRACE "-" PARENT "-01",
        "00-" TRACE "_" PARENT "-01",
        "00-" TRACE "-" PARENT "_01",
        " " GOOD,
    };
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!is_valid(good[i]))
            fail_msg("%s is one", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (is_valid(bad[i]))
            fail_msg("%s is none", bad[i]);
    assert_span_is(sl_trace_id(sl_span_str(GOOD)), TRACE);
    assert_span_is(sl_parent_id(sl_span_str(GOOD)), PARENT);
}

static void the_last_bit_says_whether_it_records(void **state)
{
    char text[] = "00-" TRACE "-" PARENT "-00";
    (void)state;
    for (unsigned flags = 0; flags < 256; flags++) {
        snprintf(text + sizeof(text) - 3, 3, "%02x", flags);
        assert_true(sl_traceparent_is_valid(sl_span_str(text)));
        assert_int_equal(sl_traceparent_is_sampled(sl_span_str(text)), flags & 1);
    }
}

#define KEY "'Keys':{'PK':{'S':'a'}}"
#define OTEL(PARENT_TEXT, MORE)                                                                              \
    "{'PK':{'S':'a'},'_otel':{'M':{'traceparent':{'S':'" PARENT_TEXT "'}" MORE "}}}"

static bool found(const char *event, const char *members, const char *path, char *parent, char *text)
{
    struct test_batch t;
    struct sl_trace_paths paths;
    struct sl_trace_context trace;
    struct sl_arena *arena = sl_arena_new(1024);
    const struct sl_record *r = test_record(&t, event, members, "");
    assert_true(sl_trace_paths(sl_span_str(path), arena, &paths));
    bool is = sl_record_trace(r, &paths, &trace);
    assert_int_equal(is, trace.traceparent.ptr != NULL);
    snprintf(parent, 80, "%.*s", (int)trace.traceparent.len,
             trace.traceparent.len ? trace.traceparent.ptr : "");
    snprintf(text, 600, "%.*s", (int)trace.tracestate.len, trace.tracestate.len ? trace.tracestate.ptr : "");
    test_batch_clean_up(&t);
    sl_arena_destroy(arena);
    return is;
}

static void it_is_the_changes_own(void **state)
{
    char parent[80], text[600];
    static const char path[] = "_otel.traceparent";
    (void)state;
    assert_true(found("INSERT", KEY ",'NewImage':" OTEL(GOOD, ""), path, parent, text));
    assert_string_equal(parent, GOOD);
    assert_string_equal(text, "");
    assert_true(found(
        "MODIFY", KEY ",'NewImage':" OTEL(GOOD, ",'tracestate':{'S':'a=1,b=2'}") ",'OldImage':" OTEL("x", ""),
        path, parent, text));
    assert_string_equal(text, "a=1,b=2");
    /* What an earlier change left is not the removal's. */
    assert_false(found("REMOVE", KEY ",'OldImage':" OTEL(GOOD, ""), path, parent, text));
    assert_false(found("MODIFY", KEY ",'OldImage':" OTEL(GOOD, ""), path, parent, text));
    assert_false(found("INSERT", KEY, path, parent, text));
    assert_false(
        found("INSERT", KEY ",'NewImage':" OTEL("nothing", ",'tracestate':{'S':'a=1'}"), path, parent, text));
    assert_string_equal(text, "");
    assert_false(
        found("INSERT", KEY ",'NewImage':{'PK':{'S':'a'},'_otel':{'S':'" GOOD "'}}", path, parent, text));
    assert_false(found("INSERT",
                       KEY ",'NewImage':{'PK':{'S':'a'},'_otel':{'M':{'traceparent':{'B':'AAAA'}}}}", path,
                       parent, text));
}

static void where_it_is_may_be_anywhere(void **state)
{
    char parent[80], text[600];
    (void)state;
    assert_true(found(
        "INSERT", KEY ",'NewImage':{'PK':{'S':'a'},'traceparent':{'S':'" GOOD "'},'tracestate':{'S':'x=y'}}",
        "traceparent", parent, text));
    assert_string_equal(text, "x=y");
    assert_true(found("INSERT",
                      KEY ",'NewImage':{'PK':{'S':'a'},'mytraceparent':{'S':'" GOOD
                          "'},'mytracestate':{'S':'x=y'}}",
                      "mytraceparent", parent, text));
    assert_string_equal(text, "");
    assert_true(found("INSERT", KEY ",'NewImage':{'PK':{'S':'a'},'o':{'L':[{'S':'" GOOD "'}]}}", "o[0]",
                      parent, text));
    assert_true(found("INSERT",
                      KEY ",'NewImage':{'PK':{'S':'a'},'a.b':{'M':{'traceparent':{'S':'" GOOD
                          "'},'tracestate':{'S':'k=v'}}}}",
                      "`a.b`.traceparent", parent, text));
    assert_string_equal(text, "k=v");
}

static void a_state_is_a_headers_value_or_left_out(void **state)
{
    char parent[80], text[600], members[2048], long_state[600];
    static const char *const bad[] = {"", "a=\\\\n", "a=\\u00e4", "a=\xc3\xa4", "a=\x7f"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(members, sizeof(members), KEY ",'NewImage':" OTEL(GOOD, ",'tracestate':{'S':'%s'}"), bad[i]);
        assert_true(found("INSERT", members, "_otel.traceparent", parent, text));
        assert_string_equal(text, "");
    }
    assert_true(found("INSERT", KEY ",'NewImage':" OTEL(GOOD, ",'tracestate':{'S':' a=1 ~'}"),
                      "_otel.traceparent", parent, text));
    assert_string_equal(text, " a=1 ~");
    for (size_t n = 512; n <= 513; n++) {
        memset(long_state, 'a', n);
        long_state[n] = '\0';
        snprintf(members, sizeof(members), KEY ",'NewImage':" OTEL(GOOD, ",'tracestate':{'S':'%s'}"),
                 long_state);
        assert_true(found("INSERT", members, "_otel.traceparent", parent, text));
        assert_int_equal(strlen(text), n == 512 ? 512 : 0);
    }
    assert_true(found("INSERT", KEY ",'NewImage':" OTEL(GOOD, ",'tracestate':{'N':'1'}"), "_otel.traceparent",
                      parent, text));
    assert_string_equal(text, "");
}

static void what_is_no_path_is_refused(void **state)
{
    static const char *const good[] = {"a", "a.b", "a[0]", "a[0][1].b", "`a.b`", "a.`b[`[2]"};
    static const char *const bad[] = {"",    ".",    "a.", ".a", "a..b", "a[",    "a[]",  "a[x]",
                                      "a[0", "a]b[", "`a", "``", "a.``", "a[0]b", "`a`b", "a[1234567890]"};
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_trace_paths paths;
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!sl_trace_paths(sl_span_str(good[i]), arena, &paths))
            fail_msg("%s is a path", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (sl_trace_paths(sl_span_str(bad[i]), arena, &paths))
            fail_msg("%s is no path", bad[i]);
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_traceparent_is_what_w3c_says),
        cmocka_unit_test(the_last_bit_says_whether_it_records),
        cmocka_unit_test(it_is_the_changes_own),
        cmocka_unit_test(where_it_is_may_be_anywhere),
        cmocka_unit_test(a_state_is_a_headers_value_or_left_out),
        cmocka_unit_test(what_is_no_path_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
