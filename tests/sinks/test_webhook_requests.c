/* What a webhook sends: ids, content types and arrays for messages of every kind; and what is said of a
 * receiver that does not answer in time. */
#include "tests/support/fault.h"

#include "base/json.h"
#include "net/retry.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static struct fault f;
static unsigned byte_ms;    /* how slowly the receiver answers */
static bool fails_at_first; /* every other request */

static void receive(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    bool fails = fails_at_first && request->number % 2 == 0;
    *reply = (struct scripted_reply){.status = fails ? 500 : 200, .byte_ms = byte_ms};
}

enum { HOOKS = 200, GROWN = 100 }; /* requests; after GROWN answers the limit is more than at first */

struct fliers {
    size_t first, later; /* so many are answered together, before GROWN and after */
};

static void receive_together(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    const struct fliers *fliers = arg;
    size_t together = request->number < GROWN ? fliers->first : fliers->later;
    *reply = (struct scripted_reply){.status = 200, .together = request->number + 1 < HOOKS ? together : 1};
}

/* A queue on a receiver of its own; what each message became is in its requests. */
static void send(const char *url, const struct sl_message *messages, size_t n, struct sl_result *results)
{
    struct sl_queue_port *queue = fault_queue(&f, url);
    fault_send(&f, queue, messages, n, results);
    queue->close(queue);
}

static const struct scripted_request *last(void)
{
    return scripted_server_request(f.server, scripted_server_requests(f.server) - 1);
}

static struct sl_span id_of(struct sl_span dedupe)
{
    const struct sl_message message = {.body = SL_LIT("{}"), .dedupe = dedupe};
    struct sl_result result;
    send("http://server/hook", &message, 1, &result);
    assert_result(result, SL_OK, NULL);
    return scripted_header(last(), "webhook-id");
}

/* Letters, digits, '-' and '_', at most 64: an id stays as it is. Any other becomes a digest, which no plain
 * one can be taken for. */
static void an_id_is_plain_or_a_digest(void **state)
{
    (void)state;
    char text[70];
    fault_open(&f, receive, NULL);
    for (int c = 1; c < 256; c++) {
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                        c == '-' || c == '_';
        if (!is_plain && c % 8 && !strchr("@[`{/:,.^", c))
            continue; /* some of the others, and all that are next to one */
        snprintf(text, sizeof(text), "a%cz", c);
        struct sl_span id = id_of(sl_span_str(text));
        if (is_plain)
            assert_span_is(id, text);
        else if (!sl_span_starts(id, SL_LIT("sha256-")) || id.len != 7 + 64)
            fail_msg("%02x: %.*s", c, SL_ARG(id));
    }
    for (size_t n = 63; n <= 65; n++) {
        memset(text, 'k', n);
        assert_int_equal(sl_span_eq(id_of(sl_span(text, n)), sl_span(text, n)), n <= 64);
    }
    assert_span_is(id_of(SL_LIT("sha256")), "sha256");
    assert_int_equal(id_of(SL_LIT("sha256-")).len, 7 + 64);
    fault_close(&f);
}

/* Objects and arrays are JSON, other bodies are text; a target may say it otherwise. */
static void a_body_has_its_type(void **state)
{
    (void)state;
    static const struct {
        const char *body, *target, *type;
    } cases[] = {
        {"{\"a\":1}", "", "application/json"},
        {"[1]", "", "application/json"},
        {"", "", "text/plain; charset=utf-8"},
        {"5", "", "text/plain; charset=utf-8"},
        {"{\"a\"", "", "text/plain; charset=utf-8"},
        {"[1", "", "text/plain; charset=utf-8"},
        {"{\"a\":1}", "#header.Content-Type=application/x-ours", "application/x-ours"},
        {"words", "#header.content-type=application/x-ours", "application/x-ours"},
    };
    fault_open(&f, receive, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sl_message message = {.body = sl_span_str(cases[i].body)};
        struct sl_result result;
        send(sl_arena_printf(f.call.arena, "http://server/hook%s", cases[i].target), &message, 1, &result);
        assert_result(result, SL_OK, NULL);
        assert_span_is(scripted_header(last(), "content-type"), cases[i].type);
        assert_span_is(last()->body, cases[i].body);
        const char *first = strcasestr(last()->head, "\r\ncontent-type:");
        assert_true(first && !strcasestr(first + 2, "\r\ncontent-type:")); /* once */
    }
    fault_close(&f);
}

/* Whatever the bodies are, an array of them is JSON, and each is in its place as it was. */
static void an_array_holds_any_bodies(void **state)
{
    (void)state;
    static const char *const bodies[] = {"{\"a\":1}", "[1]", "", "{\"a\"", "[1", "5", "\"", "\\", "a\nb"};
    enum { N = sizeof(bodies) / sizeof(bodies[0]) };
    struct sl_message messages[N];
    struct sl_result results[N];
    fault_open(&f, receive, NULL);
    for (size_t i = 0; i < N; i++)
        messages[i] = (struct sl_message){.body = sl_span_str(bodies[i])};
    send("http://server/hook#batch=100", messages, N, results);
    assert_int_equal(scripted_server_requests(f.server), 1);
    json_t *list = json_loadb(last()->body.ptr, last()->body.len, 0, NULL);
    assert_int_equal(json_array_size(list), N);
    for (size_t i = 0; i < N; i++) {
        const json_t *one = json_array_get(list, i);
        assert_result(results[i], SL_OK, NULL);
        assert_int_equal(json_is_string(one), i >= 2);
        if (json_is_string(one))
            assert_string_equal(json_string_value(one), bodies[i]);
    }
    json_decref(list);
    fault_close(&f);
}

/* It may have taken the message, and it is asked again. */
static void a_receiver_that_is_too_slow_may_have_taken_it(void **state)
{
    (void)state;
    const struct sl_message message = {.body = SL_LIT("{}")};
    struct sl_result result;
    byte_ms = 1000;
    fault_open(&f, receive, NULL);
    send("http://server/hook#timeout_ms=100&attempts=1", &message, 1, &result);
    assert_result(result, SL_RETRY, "RequestTimeout");
    assert_false(result.not_sent);
    assert_non_null(strstr(result.text, "the message may have been taken"));
    fault_close(&f);
    byte_ms = 0;
}

/* Orders of which one is the beginning of another are two: neither waits for the other. */
static void orders_are_told_apart_by_all_of_their_bytes(void **state)
{
    (void)state;
    static const struct sl_span orders[] = {{"a", 1}, {"ab", 2}, {"a\0", 2}, {"", 0}, {"a", 1}, {"b", 1}};
    enum { N = sizeof(orders) / sizeof(orders[0]) };
    struct sl_message messages[N];
    struct sl_result results[N];
    char bodies[N][16];
    fault_open(&f, receive, NULL);
    for (size_t i = 0; i < N; i++) {
        snprintf(bodies[i], sizeof(bodies[i]), "{\"n\":%zu}", i);
        messages[i] = (struct sl_message){.body = sl_span_str(bodies[i]), .order = orders[i]};
    }
    f.call.deadline_ms = f.clock.ms + 60000;
    send("http://server/hook", messages, N, results);
    size_t first = N, second = N;
    for (size_t i = 0; i < N; i++) {
        assert_result(results[i], SL_OK, NULL);
        struct sl_span body = scripted_server_request(f.server, i)->body;
        first = sl_span_is(body, bodies[0]) ? i : first;
        second = sl_span_is(body, bodies[4]) ? i : second;
    }
    assert_true(first < second && second < N);
    fault_close(&f);
}

/* An object of so many bytes. */
static struct sl_span body_of(size_t bytes)
{
    char *text = sl_arena_alloc(f.call.arena, bytes + 1);
    memset(text, 'x', bytes);
    memcpy(text, "{\"v\":\"", 6);
    memcpy(text + bytes - 2, "\"}", 3);
    return sl_span(text, bytes);
}

/* max_bytes is what a body may have: a message alone, or an array with its brackets and commas. */
static void a_body_has_max_bytes_at_most(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        size_t sizes[2], requests; /* requests 0: the first message is too long */
    } cases[] = {{"", {1024, 0}, 1},           {"", {1025, 0}, 0},          {"&batch=2", {1022, 0}, 1},
                 {"&batch=2", {1023, 0}, 0},   {"&batch=2", {500, 521}, 1}, {"&batch=2", {500, 522}, 2},
                 {"&batch=2", {1022, 500}, 2}, {"&batch=2", {500, 1022}, 2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_message messages[2];
        struct sl_result results[2];
        size_t n = cases[i].sizes[1] ? 2 : 1;
        fault_open(&f, receive, NULL);
        for (size_t k = 0; k < n; k++)
            messages[k] = (struct sl_message){.body = body_of(cases[i].sizes[k])};
        send(sl_arena_printf(f.call.arena, "http://server/hook#max_bytes=1024%s", cases[i].options), messages,
             n, results);
        bool is_long = cases[i].requests == 0;
        for (size_t k = 0; k < n; k++) {
            assert_result(results[k], is_long ? SL_REJECT : SL_OK, is_long ? "MessageTooLong" : NULL);
            assert_int_equal(results[k].not_sent, is_long);
        }
        assert_int_equal(scripted_server_requests(f.server), cases[i].requests);
        for (size_t k = 0; k < cases[i].requests; k++)
            assert_in_range(scripted_server_request(f.server, k)->body.len, 1, 1024);
        fault_close(&f);
    }
}

/* Where nobody listens, the first message finds it out for all. */
static void nobody_listens_for_any_message(void **state)
{
    (void)state;
    enum { N = 20 };
    struct sl_message messages[N];
    struct sl_result results[N];
    fault_open(&f, receive, NULL);
    for (size_t i = 0; i < N; i++)
        messages[i] = (struct sl_message){.body = SL_LIT("{}")};
    send("http://127.0.0.1:1/hook#in_flight=1&attempts=2", messages, N, results);
    for (size_t i = 0; i < N; i++) {
        assert_result(results[i], SL_RETRY, "ConnectionError");
        assert_true(results[i].not_sent);
        assert_ptr_equal(results[i].text, results[0].text); /* no other was made */
    }
    fault_close(&f);
}

/* Each line of a request ends where it does, whatever stood in its place before. */
static void lines_end_where_they_do(void **state)
{
    (void)state;
    enum { N = 12 };
    struct sl_message messages[N];
    struct sl_result results[N];
    char ids[N][64];
    fault_open(&f, receive, NULL);
    fault_set(&f, "KEY", "whsec_Y2FuYXJ5LXdlYmhvb2sta2V5LTAxMjM0NQ==");
    for (size_t i = 0; i < N; i++) {
        size_t n = i % 2 ? 1 + i : 60 - i;
        memset(ids[i], 'a' + (int)i, n);
        messages[i] = (struct sl_message){.body = SL_LIT("{}"), .dedupe = sl_span(ids[i], n)};
    }
    send("http://server/hook#in_flight=1&secret=KEY", messages, N, results);
    for (size_t i = 0; i < N; i++) {
        const struct scripted_request *request = scripted_server_request(f.server, i);
        assert_result(results[i], SL_OK, NULL);
        assert_true(sl_span_eq(scripted_header(request, "webhook-id"), messages[i].dedupe));
        assert_int_equal(scripted_header(request, "webhook-timestamp").len, 10);
        assert_int_equal(scripted_header(request, "webhook-signature").len, 3 + 44);
    }
    fault_close(&f);
}

/* What an attempt more has cost comes back with its success: a receiver that is slow to begin is not given
 * up. */
static void an_attempt_that_helped_costs_nothing(void **state)
{
    (void)state;
    enum { N = 2 * SL_RETRY_BUCKET / SL_RETRY_COST_TRANSIENT };
    static struct sl_message messages[N];
    static struct sl_result results[N];
    for (size_t i = 0; i < N; i++)
        messages[i] = (struct sl_message){.body = SL_LIT("{}")};
    fails_at_first = true;
    fault_open(&f, receive, NULL);
    send("http://server/hook#in_flight=1", messages, N, results);
    for (size_t i = 0; i < N; i++)
        assert_result(results[i], SL_OK, NULL);
    assert_int_equal(scripted_server_requests(f.server), 2 * N);
    fault_close(&f);
    fails_at_first = false;
}

/* As many requests at once as the receiver takes, from eight on, and never more than the target says. */
static void more_requests_fly_as_long_as_they_are_taken(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        struct fliers fliers;
        size_t most;
    } cases[] = {{"http://server/hook#in_flight=3&timeout_ms=300000", {3, 3}, 3},
                 {"http://server/hook#in_flight=12&timeout_ms=300000", {8, 9}, 12},
                 {"http://server/hook#in_flight=64&timeout_ms=300000", {8, 9}, 64}};
    static struct sl_message messages[HOOKS];
    static struct sl_result results[HOOKS];
    for (size_t i = 0; i < HOOKS; i++)
        messages[i] = (struct sl_message){.body = SL_LIT("{}")};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fault_open(&f, receive_together, (void *)&cases[i].fliers);
        send(cases[i].url, messages, HOOKS, results);
        for (size_t k = 0; k < HOOKS; k++)
            assert_result(results[k], SL_OK, NULL);
        assert_int_equal(scripted_server_requests(f.server), HOOKS);
        assert_in_range(scripted_server_connections(f.server), cases[i].fliers.later, cases[i].most);
        fault_close(&f);
    }
}

static void send_traced(const char *url, const char *const *parents, size_t n)
{
    struct sl_message_attribute attributes[4][2];
    struct sl_message messages[4];
    struct sl_result results[4];
    for (size_t i = 0; i < n; i++) {
        attributes[i][0] =
            (struct sl_message_attribute){SL_LIT("traceparent"), sl_span_str(parents[i] ? parents[i] : "")};
        attributes[i][1] = (struct sl_message_attribute){SL_LIT("tracestate"), SL_LIT("a=1")};
        messages[i] = (struct sl_message){
            .body = SL_LIT("{}"), .attributes = attributes[i], .n_attributes = parents[i] ? 2 : 0};
    }
    send(url, messages, n, results);
    for (size_t i = 0; i < n; i++)
        assert_result(results[i], SL_OK, NULL);
}

/* Attributes say which trace a message belongs to, whoever set them; what cannot be a header is left out. */
static void a_trace_goes_into_headers(void **state)
{
    static const char *const one[] = {"00-aa-bb-01", "00-aa-bb-01", "00-aa-bb-01"},
                             *const two[] = {"00-aa-bb-01", "00-aa-cc-01"},
                             *const none[] = {NULL, "00-aa-bb-01"}, *const bad[] = {"00\r\nx-more: 1"},
                             *const wide[] = {"00-\xc3\xa4"};
    (void)state;
    fault_open(&f, receive, NULL);
    send_traced("http://server/hook", one, 1);
    assert_span_is(scripted_header(last(), "traceparent"), "00-aa-bb-01");
    assert_span_is(scripted_header(last(), "tracestate"), "a=1");
    send_traced("http://server/hook#batch=3", one, 3);
    assert_span_is(scripted_header(last(), "traceparent"), "00-aa-bb-01");
    send_traced("http://server/hook#batch=3", two, 2);
    assert_null(scripted_header(last(), "traceparent").ptr);
    assert_null(scripted_header(last(), "tracestate").ptr);
    send_traced("http://server/hook#batch=3", none, 2);
    assert_null(scripted_header(last(), "traceparent").ptr);
    send_traced("http://server/hook", bad, 1);
    assert_null(scripted_header(last(), "traceparent").ptr);
    assert_null(scripted_header(last(), "x-more").ptr);
    send_traced("http://server/hook", wide, 1);
    assert_null(scripted_header(last(), "traceparent").ptr);
    send_traced("http://server/hook#header.tracestate=mine", one, 1);
    assert_null(scripted_header(last(), "traceparent").ptr);
    assert_span_is(scripted_header(last(), "tracestate"), "mine");
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_plain_or_a_digest),
        cmocka_unit_test(a_body_has_its_type),
        cmocka_unit_test(an_array_holds_any_bodies),
        cmocka_unit_test(a_receiver_that_is_too_slow_may_have_taken_it),
        cmocka_unit_test(orders_are_told_apart_by_all_of_their_bytes),
        cmocka_unit_test(a_body_has_max_bytes_at_most),
        cmocka_unit_test(nobody_listens_for_any_message),
        cmocka_unit_test(lines_end_where_they_do),
        cmocka_unit_test(an_attempt_that_helped_costs_nothing),
        cmocka_unit_test(more_requests_fly_as_long_as_they_are_taken),
        cmocka_unit_test(a_trace_goes_into_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
