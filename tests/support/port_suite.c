#include "tests/support/port_suite.h"

#include <stdio.h>
#include <stdlib.h>

struct bound {
    struct port_suite *suite;
    const struct port_case *which;
    char name[200];
};

static void run_bound(void **state)
{
    const struct bound *bound = *state;
    sl_arena_reset(bound->suite->call.arena);
    bound->which->run(bound->suite);
}

struct CMUnitTest port_suite_test(struct port_suite *suite, const struct port_case *which)
{
    static struct bound bounds[300]; /* cmocka borrows names and states */
    static size_t n;
    assert_true(n < sizeof(bounds) / sizeof(bounds[0]));
    struct bound *bound = &bounds[n++];
    *bound = (struct bound){.suite = suite, .which = which};
    snprintf(bound->name, sizeof(bound->name), "%s: %s", suite->name, which->name);
    return (struct CMUnitTest){.name = bound->name, .test_func = run_bound, .initial_state = bound};
}

/* ---- objects ---- */

static struct sl_result put(struct port_suite *suite, struct sl_object object)
{
    struct sl_result result;
    suite->objects->apply(suite->objects, &object, 1, &result, &suite->call);
    return result;
}

static void assert_put(struct port_suite *suite, const char *key, struct sl_span body, bool named)
{
    struct sl_result result =
        put(suite, (struct sl_object){.key = sl_span_str(key), .body = body, .content_named = named});
    if (result.status != SL_OK)
        fail_msg("%s: status %d, %s: %s", key, (int)result.status, result.code, result.text);
}

static void assert_object(struct port_suite *suite, const char *key, struct sl_span wanted)
{
    size_t len = 0;
    char *bytes = suite->read_object(suite, key, &len);
    if (!bytes)
        fail_msg("there is no object %s", key);
    assert_int_equal(len, wanted.len);
    assert_memory_equal(bytes, wanted.ptr, len);
    free(bytes);
}

static void objects_are_read_back(struct port_suite *suite)
{
    assert_put(suite, "plain/1.json", SL_LIT("one"), false);
    assert_object(suite, "plain/1.json", SL_LIT("one"));
    assert_put(suite, "plain/1.json", SL_LIT("two"), false);
    assert_object(suite, "plain/1.json", SL_LIT("two"));
    assert_put(suite, "plain/empty", SL_LIT(""), false);
    assert_object(suite, "plain/empty", SL_LIT(""));
    assert_put(suite, "top", SL_LIT("\0\xff\n\r\0x"), false);
    assert_object(suite, "top", SL_LIT("\0\xff\n\r\0x"));
}

/* An object whose name is made from its content and that exists is success, and is not written again. */
static void a_name_made_from_content_is_written_once(struct port_suite *suite)
{
    assert_put(suite, "named/a", SL_LIT("first"), true);
    assert_put(suite, "named/a", SL_LIT("other"), true);
    assert_object(suite, "named/a", SL_LIT("first"));
}

static void names_of_every_kind(struct port_suite *suite)
{
    const char *const keys[] = {
        "dt=2026-11-20/hour=21/a b.json.gz",
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80/x",
        "100%/+plus&amp;?q#h",
        "a'b\"c(d)!*~$,;:@=[]{}|\\^`<>",
        ".hidden/..dots/...",
        "%2e%2e/%2F",
        "..x/y..",
        "tilde~/under_score-dash.",
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_put(suite, keys[i], sl_span_str(keys[i]), false);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_object(suite, keys[i], sl_span_str(keys[i]));
}

static void keys_that_leave_the_prefix_are_refused(struct port_suite *suite)
{
    const struct sl_span keys[] = {
        SL_LIT(""),     SL_LIT("/"),    SL_LIT("/a"),    SL_LIT("a/"),     SL_LIT("a//b"),  SL_LIT("."),
        SL_LIT(".."),   SL_LIT("../a"), SL_LIT("a/.."),  SL_LIT("a/../b"), SL_LIT("a/./b"), SL_LIT("./a"),
        SL_LIT("a\nb"), SL_LIT("a\0b"), SL_LIT("a\x7f"), SL_LIT("\x01"),   SL_LIT("a/\tb"),
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct sl_result result = put(suite, (struct sl_object){.key = keys[i], .body = SL_LIT("x")});
        if (result.status != SL_REJECT || !result.code || !result.text || !result.not_sent)
            fail_msg("key %zu was not refused", i);
    }
}

static void several_at_once_each_with_its_own_result(struct port_suite *suite)
{
    enum { COUNT = 40, BAD = 7 };
    struct sl_object objects[COUNT];
    struct sl_result results[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        const char *key = sl_arena_printf(suite->call.arena, i == BAD ? "many/../%zu" : "many/%zu", i);
        objects[i] = (struct sl_object){.key = sl_span_str(key), .body = sl_span_str(key)};
    }
    suite->objects->apply(suite->objects, objects, COUNT, results, &suite->call);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(results[i].status, i == BAD ? SL_REJECT : SL_OK);
        if (i != BAD)
            assert_object(suite, objects[i].key.ptr, objects[i].body);
    }
}

static void large_objects_arrive_whole(struct port_suite *suite)
{
    size_t len = 3 * 1024 * 1024 + 17;
    char *bytes = malloc(len);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 31 + i / 997);
    assert_put(suite, "large", sl_span(bytes, len), false);
    assert_object(suite, "large", sl_span(bytes, len));
    free(bytes);
}

const struct port_case port_object_cases[] = {
    {"objects_are_read_back", objects_are_read_back},
    {"a_name_made_from_content_is_written_once", a_name_made_from_content_is_written_once},
    {"names_of_every_kind", names_of_every_kind},
    {"keys_that_leave_the_prefix_are_refused", keys_that_leave_the_prefix_are_refused},
    {"several_at_once_each_with_its_own_result", several_at_once_each_with_its_own_result},
    {"large_objects_arrive_whole", large_objects_arrive_whole},
    {NULL, NULL},
};

/* ---- queues ---- */

static int compare_spans(const void *x, const void *y)
{
    return sl_span_compare(*(const struct sl_span *)x, *(const struct sl_span *)y);
}

static void send_and_expect(struct port_suite *suite, const struct sl_message *messages, size_t n)
{
    struct sl_result *results = sl_arena_zalloc(suite->call.arena, (n + 1) * sizeof(*results));
    struct sl_span *wanted = sl_arena_alloc(suite->call.arena, (n + 1) * sizeof(*wanted));
    struct sl_span *have = sl_arena_alloc(suite->call.arena, (n + 10) * sizeof(*have));
    suite->queue->apply(suite->queue, messages, n, results, &suite->call);
    for (size_t i = 0; i < n; i++) {
        if (results[i].status != SL_OK)
            fail_msg("message %zu: status %d, %s: %s", i, (int)results[i].status, results[i].code,
                     results[i].text);
        wanted[i] = messages[i].body;
    }
    size_t got = suite->read_bodies(suite, have, n + 10);
    assert_int_equal(got, n);
    qsort(wanted, n, sizeof(*wanted), compare_spans);
    qsort(have, n, sizeof(*have), compare_spans);
    for (size_t i = 0; i < n; i++)
        if (!sl_span_eq(have[i], wanted[i]))
            fail_msg("%.*s arrived in place of %.*s", SL_ARG(have[i]), SL_ARG(wanted[i]));
}

static void every_message_arrives_once(struct port_suite *suite)
{
    enum { COUNT = 47 };
    struct sl_message messages[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        messages[i] = (struct sl_message){
            .body = sl_span_str(sl_arena_printf(suite->call.arena, "{\"n\":%zu,\"kind\":\"many\"}", i))};
    send_and_expect(suite, messages, COUNT);
}

static void bodies_are_kept_byte_for_byte(struct port_suite *suite)
{
    const struct sl_message_attribute attributes[] = {
        {SL_LIT("code"), SL_LIT("a\"b")}, {SL_LIT("x"), SL_LIT("1")}, {SL_LIT("empty"), SL_LIT("")}};
    const struct sl_message messages[] = {
        {.body = SL_LIT("{\"text\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 & <b> \\\\ \\\"q\\\" %20 +\"}")},
        {.body = SL_LIT("{\"with\":\"attributes\"}"), .attributes = attributes, .n_attributes = 3},
        {.body = SL_LIT("{\"with\":\"order\"}"), .order = SL_LIT("some key"), .dedupe = SL_LIT("1 2 3")},
    };
    send_and_expect(suite, messages, sizeof(messages) / sizeof(messages[0]));
}

static void messages_of_one_order_all_arrive(struct port_suite *suite)
{
    enum { COUNT = 12 };
    struct sl_message messages[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        messages[i] = (struct sl_message){
            .body = sl_span_str(sl_arena_printf(suite->call.arena, "{\"step\":%zu}", i)),
            .order = sl_span_str(i % 3 ? "a" : "b"),
            .dedupe = sl_span_str(sl_arena_printf(suite->call.arena, "step-%zu", i)),
        };
    send_and_expect(suite, messages, COUNT);
}

static void no_message_is_fine(struct port_suite *suite)
{
    send_and_expect(suite, NULL, 0);
}

const struct port_case port_queue_cases[] = {
    {"every_message_arrives_once", every_message_arrives_once},
    {"bodies_are_kept_byte_for_byte", bodies_are_kept_byte_for_byte},
    {"messages_of_one_order_all_arrive", messages_of_one_order_all_arrive},
    {"no_message_is_fine", no_message_is_fine},
    {NULL, NULL},
};
