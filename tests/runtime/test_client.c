#include "runtime/api/client.h"

#include "tests/support/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>

#define ID       "Lambda-Runtime-Aws-Request-Id: 8476a536-e9f4-11e8-9739-2dfe598c3fcd\r\n"
#define ACCEPTED "HTTP/1.1 202 Accepted\r\nContent-Length: 16\r\n\r\n{\"status\":\"OK\"}\n"

static const char *const request_id = "8476a536-e9f4-11e8-9739-2dfe598c3fcd";

struct meeting {
    struct wire *wire;
    struct sl_runtime *rt;
    struct sl_runtime_event event;
    struct sl_error error;
};

static void meet(struct meeting *m, const struct wire_step *steps, size_t n)
{
    sl_error_clear(&m->error);
    m->wire = wire_start(steps, n);
    assert_int_equal(sl_runtime_open(wire_address(m->wire), "sluice/test", &m->rt, &m->error), SL_OK);
}

static void part(struct meeting *m)
{
    sl_runtime_close(m->rt);
    wire_stop(m->wire);
}

static bool has(struct sl_span text, const char *needle)
{
    return text.ptr && memmem(text.ptr, text.len, needle, strlen(needle)) != NULL;
}

static void takes_an_event_and_answers_it_on_one_connection(void **state)
{
    (void)state;
    const struct wire_step steps[] = {
        {.reply =
             "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" ID
             "LAMBDA-RUNTIME-DEADLINE-MS: 1542409706888\r\n"
             "Lambda-Runtime-Invoked-Function-Arn: arn:aws:lambda:us-east-1:123456789012:function:f:live\r\n"
             "Lambda-Runtime-Trace-Id: "
             "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=1\r\n"
             "Lambda-Runtime-Client-Context: {\"custom\":{\"k\":\"a:b;c=\xC3\xBC\"}}\r\n"
             "Lambda-Runtime-Aws-Tenant-Id: blue\r\nContent-Length: 14\r\n\r\n{\"Records\":[]}"},
        {.reply = ACCEPTED},
    };
    struct meeting m;
    meet(&m, steps, 2);
    assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), SL_OK);
    assert_true(sl_span_is(m.event.payload, "{\"Records\":[]}"));
    assert_string_equal(m.event.request_id, request_id);
    assert_int_equal(m.event.deadline_epoch_ms, 1542409706888);
    assert_string_equal(m.event.function_arn, "arn:aws:lambda:us-east-1:123456789012:function:f:live");
    assert_string_equal(m.event.trace_id,
                        "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=1");
    assert_string_equal(m.event.client_context, "{\"custom\":{\"k\":\"a:b;c=\xC3\xBC\"}}");
    assert_string_equal(m.event.tenant_id, "blue");
    assert_string_equal(m.event.cognito_identity, "");
    assert_string_equal(m.event.content_type, "application/json");
    assert_int_equal(sl_runtime_respond(m.rt, m.event.request_id, SL_LIT("{\"batchItemFailures\":[]}"),
                                        "application/json", &m.error),
                     SL_OK);
    assert_int_equal(m.error.status, SL_OK);
    assert_int_equal(wire_connections(m.wire), 1);
    struct sl_span next = wire_request(m.wire, 0), answer = wire_request(m.wire, 1);
    assert_true(sl_span_starts(next, SL_LIT("GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\n")));
    assert_true(has(next, "User-Agent: sluice/test\r\n"));
    assert_true(sl_span_starts(
        answer,
        SL_LIT("POST /2018-06-01/runtime/invocation/8476a536-e9f4-11e8-9739-2dfe598c3fcd/response ")));
    assert_true(sl_span_ends(answer, SL_LIT("\r\n\r\n{\"batchItemFailures\":[]}")));
    assert_true(has(answer, "Content-Type: application/json\r\n"));
    assert_false(has(answer, "Expect"));
    part(&m);
}

static void takes_what_is_missing_or_odd_in_the_headers(void **state)
{
    (void)state;
    static const struct {
        const char *headers;
        int64_t deadline;
    } cases[] = {
        {"", 0},
        {"Lambda-Runtime-Deadline-Ms: 0\r\n", 0},
        {"Lambda-Runtime-Deadline-Ms:\r\n", 0},
        {"Lambda-Runtime-Deadline-Ms: soon\r\n", 0},
        {"Lambda-Runtime-Deadline-Ms: -5\r\n", 0},
        {"Lambda-Runtime-Deadline-Ms: 99999999999999999999999999\r\n", 0},
        {"Lambda-Runtime-Deadline-Ms:   42  \r\n", 42},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char reply[512];
        snprintf(reply, sizeof(reply), "HTTP/1.1 200 OK\r\n" ID "%sContent-Length: 2\r\n\r\n{}",
                 cases[i].headers);
        const struct wire_step steps[] = {{.reply = reply}};
        struct meeting m;
        meet(&m, steps, 1);
        assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), SL_OK);
        assert_int_equal(m.event.deadline_epoch_ms, cases[i].deadline);
        assert_string_equal(m.event.trace_id, "");
        part(&m);
    }
}

/* Whitespace around a value is no part of it; and a line may end without a CR. */
static void takes_values_as_they_are_meant(void **state)
{
    (void)state;
    static const struct {
        const char *reply, *trace_id;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\n" ID "Lambda-Runtime-Trace-Id:\t \ta \tb\t \r\nContent-Length: 2\r\n\r\n{}",
         "a \tb"},
        {"HTTP/1.1 200 OK\r\n" ID "Lambda-Runtime-Trace-Id: \t \r\nContent-Length: 2\r\n\r\n{}", ""},
        {"HTTP/1.1 200 OK\r\n" ID "Lambda-Runtime-Trace-Id:a\r\nContent-Length: 2\r\n\r\n{}", "a"},
        {"HTTP/1.1 200 OK\nLambda-Runtime-Aws-Request-Id: 8476a536-e9f4-11e8-9739-2dfe598c3fcd\n"
         "Lambda-Runtime-Trace-Id: b\nContent-Length: 2\n\n{}",
         "b"},
        {"HTTP/1.1 200 OK\r\n" ID "Lambda-Runtime-Trace-Id: a:b\r\nContent-Length: 2\r\n\r\n{}", "a:b"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wire_step steps[] = {{.reply = cases[i].reply}};
        struct meeting m;
        meet(&m, steps, 1);
        assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), SL_OK);
        assert_string_equal(m.event.request_id, request_id);
        assert_string_equal(m.event.trace_id, cases[i].trace_id);
        assert_true(sl_span_is(m.event.payload, "{}"));
        assert_int_equal(wire_requests(m.wire), 1);
        part(&m);
    }
}

/* The length that a head announces sizes a buffer and nothing else: what cannot be a length costs no memory,
 * and the event is what came. */
static void a_length_that_cannot_be_costs_nothing(void **state)
{
    (void)state;
    static const char *const lengths[] = {"2 ", "2;3", "2/", "99999999999999999999999999999999999999",
                                          "6291557"};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        char reply[300];
        snprintf(reply, sizeof(reply), "HTTP/1.1 200 OK\r\n" ID "Content-Length: %s\r\n\r\n{}", lengths[i]);
        const struct wire_step steps[] = {
            {.reply = reply, .close = true},
            {.reply = "HTTP/1.1 200 OK\r\n" ID "Content-Length: 2\r\n\r\n{}", .close = true}};
        struct meeting m;
        meet(&m, steps, 2);
        assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), SL_OK);
        assert_true(sl_span_is(m.event.payload, "{}"));
        part(&m);
    }
}

static void judges_each_answer_to_next(void **state)
{
    (void)state;
    static const struct {
        const char *reply, *code;
        enum sl_status status;
    } cases[] = {
        {"HTTP/1.1 204 No Content\r\n\r\n", "NoEvent", SL_RETRY},
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "UnexpectedAnswer", SL_RETRY},
        {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
         "UnexpectedAnswer", SL_RETRY},
        {"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", "InternalServerError", SL_FATAL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "NoRequestId", SL_RETRY},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wire_step steps[] = {{.reply = cases[i].reply}};
        struct meeting m;
        meet(&m, steps, 1);
        assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), cases[i].status);
        assert_string_equal(m.error.code, cases[i].code);
        part(&m);
    }
}

static void asks_again_when_the_event_is_cut(void **state)
{
    (void)state;
    static const char whole[] = "HTTP/1.1 200 OK\r\n" ID "Content-Length: 14\r\n\r\n{\"Records\":[]}";
    for (size_t cut = 1; cut < sizeof(whole) - 1; cut++) {
        const struct wire_step steps[] = {{.reply = whole, .len = cut, .close = true}, {.reply = whole}};
        struct meeting m;
        meet(&m, steps, 2);
        assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), SL_OK);
        assert_true(sl_span_is(m.event.payload, "{\"Records\":[]}"));
        assert_string_equal(m.event.request_id, request_id);
        assert_int_equal(wire_requests(m.wire), 2);
        part(&m);
    }
}

static size_t open_descriptors(void)
{
    size_t n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Twice within the head: libcurl itself finds nothing wrong with that. */
static void a_head_that_is_cut_twice_is_a_broken_connection(void **state)
{
    (void)state;
    const struct wire_step cut = {.reply = "HTTP/1.1 200 OK\r\n" ID, .close = true};
    const struct wire_step steps[] = {cut, cut};
    struct meeting m;
    const size_t open_before = open_descriptors();
    meet(&m, steps, 2);
    assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), SL_RETRY);
    assert_string_equal(m.error.code, "ConnectionBroken");
    assert_non_null(strstr(m.error.text, ": its answer was cut off"));
    assert_non_null(strstr(m.error.text, wire_address(m.wire)));
    assert_int_equal(wire_requests(m.wire), 2);
    part(&m);
    assert_int_equal(open_descriptors(), open_before);
}

static void gives_up_for_now_on_a_connection_that_keeps_breaking(void **state)
{
    (void)state;
    const struct wire_step steps[] = {{.close_early = true}, {.close_early = true}, {.close_early = true}};
    struct meeting m;
    meet(&m, steps, 3);
    assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), SL_RETRY);
    assert_string_equal(m.error.code, "ConnectionBroken");
    assert_in_range(wire_requests(m.wire), 1, 2);
    part(&m);
}

static void takes_a_chunked_event(void **state)
{
    (void)state;
    const struct wire_step steps[] = {
        {.reply = "HTTP/1.1 200 OK\r\n" ID
                  "Transfer-Encoding: chunked\r\n\r\n7\r\n{\"Recor\r\n7\r\nds\":[]}\r\n0\r\n\r\n"},
    };
    struct meeting m;
    meet(&m, steps, 1);
    assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), SL_OK);
    assert_true(sl_span_is(m.event.payload, "{\"Records\":[]}"));
    part(&m);
}

static void takes_the_largest_event_and_refuses_one_byte_more(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        size_t n = SL_RUNTIME_PAYLOAD_BYTES + more;
        char *reply = malloc(n + 256);
        int head = snprintf(reply, 256, "HTTP/1.1 200 OK\r\n" ID "Content-Length: %zu\r\n\r\n", n);
        memset(reply + head, ' ', n);
        const struct wire_step steps[] = {{.reply = reply, .len = (size_t)head + n}, {.reply = ACCEPTED}};
        struct meeting m;
        meet(&m, steps, 2);
        assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), more ? SL_REJECT : SL_OK);
        assert_string_equal(m.event.request_id, request_id);
        if (!more)
            assert_int_equal(m.event.payload.len, n);
        sl_error_clear(&m.error);
        assert_int_equal(
            sl_runtime_fail(m.rt, m.event.request_id, "Function.EventTooLarge", SL_LIT("x"), &m.error),
            SL_OK);
        assert_int_equal(wire_connections(m.wire), 1);
        part(&m);
        free(reply);
    }
}

static void judges_each_reply_to_an_answer(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        enum sl_status returned, said;
    } cases[] = {
        {"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", SL_OK, SL_OK},
        {"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}", SL_OK, SL_REJECT},
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}", SL_OK, SL_REJECT},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", SL_OK, SL_OK},
        {"HTTP/1.1 299 Odd\r\nContent-Length: 2\r\n\r\n{}", SL_OK, SL_OK},
        {"HTTP/1.1 300 Odd\r\nContent-Length: 2\r\n\r\n{}", SL_OK, SL_REJECT},
        {"HTTP/1.1 499 Odd\r\nContent-Length: 2\r\n\r\n{}", SL_OK, SL_REJECT},
        {"HTTP/1.1 410 Gone\r\nContent-Length: 2\r\n\r\n{}", SL_OK, SL_REJECT},
        {"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}", SL_OK, SL_REJECT},
        {"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", SL_FATAL, SL_FATAL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wire_step steps[] = {{.reply = cases[i].reply}};
        struct meeting m;
        meet(&m, steps, 1);
        assert_int_equal(sl_runtime_respond(m.rt, request_id, SL_LIT("{}"), "application/json", &m.error),
                         cases[i].returned);
        assert_int_equal(m.error.status, cases[i].said);
        assert_int_equal(wire_requests(m.wire), 1);
        part(&m);
    }
}

/* The reply to the first sending got lost. When the platform refuses the second as one that it does not
 * expect, the first one counted; any other answer means what it always means. */
static void sends_an_answer_again_once_when_its_reply_is_lost(void **state)
{
    (void)state;
    static const struct {
        const char *second;
        enum sl_status returned, said;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}", SL_OK, SL_OK},
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}", SL_OK, SL_OK},
        {ACCEPTED, SL_OK, SL_OK},
        {"HTTP/1.1 410 Gone\r\nContent-Length: 2\r\n\r\n{}", SL_OK, SL_REJECT},
        {"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}", SL_OK, SL_REJECT},
        {"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", SL_FATAL, SL_FATAL},
    };
    struct meeting m;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wire_step steps[] = {{.reply = "HTTP/1.1 202 Acc", .close = true},
                                          {.reply = cases[i].second}};
        meet(&m, steps, 2);
        assert_int_equal(sl_runtime_respond(m.rt, request_id, SL_LIT("{}"), "application/json", &m.error),
                         cases[i].returned);
        assert_int_equal(m.error.status, cases[i].said);
        assert_int_equal(wire_requests(m.wire), 2);
        part(&m);
    }
    const struct wire_step dead[] = {{.close_early = true}, {.close_early = true}};
    meet(&m, dead, 2);
    assert_int_equal(sl_runtime_respond(m.rt, request_id, SL_LIT("{}"), "application/json", &m.error),
                     SL_RETRY);
    part(&m);
}

/* Wherever the reply breaks off, the answer is sent once more at most, and counts as given when that is
 * taken, or refused as a second one. */
static void survives_a_reply_cut_at_every_byte(void **state)
{
    (void)state;
    static const char *const second[] = {ACCEPTED, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}"};
    for (size_t cut = 1; cut < sizeof(ACCEPTED) - 1; cut++) {
        const struct wire_step steps[] = {{.reply = ACCEPTED, .len = cut, .close = true},
                                          {.reply = second[cut % 2]}};
        struct meeting m;
        meet(&m, steps, 2);
        assert_int_equal(sl_runtime_respond(m.rt, request_id, SL_LIT("{}"), "application/json", &m.error),
                         SL_OK);
        assert_int_equal(m.error.status, SL_OK);
        assert_in_range(wire_requests(m.wire), 1, 2);
        part(&m);
    }
}

static void reports_errors_as_ascii_headers_and_valid_json(void **state)
{
    (void)state;
    const struct wire_step steps[] = {{.reply = ACCEPTED}, {.reply = ACCEPTED}};
    struct meeting m;
    meet(&m, steps, 2);
    assert_int_equal(sl_runtime_fail(m.rt, "a/../b\r\nX: y", "Bad\r\nType \xC3\xBC",
                                     SL_LIT("na\xC3\xAFve \xFF \"quoted\"\n\x01"), &m.error),
                     SL_OK);
    assert_int_equal(
        sl_runtime_init_error(m.rt, "Runtime.InvalidConfiguration", SL_LIT("no routes"), &m.error), SL_OK);
    struct sl_span fail = wire_request(m.wire, 0), init = wire_request(m.wire, 1);
    assert_true(sl_span_starts(
        fail, SL_LIT("POST /2018-06-01/runtime/invocation/a%2F..%2Fb%0D%0AX%3A%20y/error HTTP/1.1\r\n")));
    assert_true(has(fail, "Lambda-Runtime-Function-Error-Type: Bad__Type___\r\n"));
    assert_true(sl_span_ends(
        fail, SL_LIT("\r\n\r\n{\"errorMessage\":\"na\xC3\xAFve \xEF\xBF\xBD \\\"quoted\\\"\\n\\u0001\","
                     "\"errorType\":\"Bad__Type___\",\"stackTrace\":[]}")));
    assert_true(sl_span_starts(init, SL_LIT("POST /2018-06-01/runtime/init/error HTTP/1.1\r\n")));
    assert_true(has(init, "Lambda-Runtime-Function-Error-Type: Runtime.InvalidConfiguration\r\n"));
    part(&m);
}

static void reports_an_answer_that_is_too_large_instead_of_sending_it(void **state)
{
    (void)state;
    const struct wire_step steps[] = {{.reply = ACCEPTED}};
    struct meeting m;
    meet(&m, steps, 1);
    char *body = calloc(1, SL_RUNTIME_PAYLOAD_BYTES + 1);
    assert_int_equal(sl_runtime_respond(m.rt, request_id, sl_span(body, SL_RUNTIME_PAYLOAD_BYTES + 1),
                                        "application/json", &m.error),
                     SL_OK);
    assert_true(has(wire_request(m.wire, 0), "/error HTTP/1.1"));
    assert_true(has(wire_request(m.wire, 0), "Function.ResponseSizeTooLarge"));
    free(body);
    part(&m);
}

static void stops_waiting_when_told(void **state)
{
    (void)state;
    const struct wire_step steps[] = {{.reply = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"}};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    struct meeting m;
    meet(&m, steps, 1);
    sl_runtime_stop_on(m.rt, ends[0]);
    assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), SL_FATAL);
    assert_string_equal(m.error.code, "Stopped");
    part(&m);
    close(ends[0]);
    close(ends[1]);
}

static void takes_an_endpoint_with_scheme_and_path(void **state)
{
    (void)state;
    const struct wire_step steps[] = {{.reply = "HTTP/1.1 200 OK\r\n" ID "Content-Length: 2\r\n\r\n{}"}};
    struct wire *wire = wire_start(steps, 1);
    char endpoint[128];
    snprintf(endpoint, sizeof(endpoint), "http://%s/.rt/orders/", wire_address(wire));
    struct sl_runtime *rt;
    struct sl_runtime_event event;
    assert_int_equal(sl_runtime_open(endpoint, "t", &rt, NULL), SL_OK);
    assert_int_equal(sl_runtime_next(rt, &event, NULL), SL_OK);
    assert_true(
        sl_span_starts(wire_request(wire, 0), SL_LIT("GET /.rt/orders/2018-06-01/runtime/invocation/next ")));
    sl_runtime_close(rt);
    wire_stop(wire);
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_runtime_open("", "t", &rt, &error), SL_FATAL);
    assert_int_equal(sl_runtime_open(NULL, "t", &rt, NULL), SL_FATAL);
}

/* The longest address, and one that is a byte longer; of that one, the error shows the beginning. */
static void an_endpoint_has_an_end(void **state)
{
    (void)state;
    char endpoint[600];
    for (int more = 0; more < 2; more++) {
        size_t n = 512 - strlen("http:///2018-06-01") - 1 + (size_t)more;
        struct sl_runtime *rt = NULL;
        struct sl_error error = SL_NO_ERROR;
        memset(endpoint, 'h', n);
        endpoint[n] = '\0';
        assert_int_equal(sl_runtime_open(endpoint, "t", &rt, &error), more ? SL_FATAL : SL_OK);
        assert_string_equal(error.code, more ? "InvalidEndpoint" : "");
        if (more)
            assert_int_equal(strspn(strchr(error.text, '"') + 1, "h"), 100);
        else
            sl_runtime_close(rt);
    }
}

/* The type is letters, digits and dots, 127 at most; all else is an underscore. */
static void cleans_the_type_of_an_error(void **state)
{
    (void)state;
    char longest[201];
    memset(longest, 'L', 200);
    longest[200] = '\0';
    static const char *const cases[][2] = {{"azAZ09.", "azAZ09."}, {"`{@[/:-_ ", "_________"}, {"", ""}};
    for (size_t i = 0; i < 4; i++) {
        const struct wire_step steps[] = {{.reply = ACCEPTED}};
        char line[300];
        struct meeting m;
        meet(&m, steps, 1);
        snprintf(line, sizeof(line), "\"errorType\":\"%.127s\"", i < 3 ? cases[i][1] : longest);
        assert_int_equal(
            sl_runtime_fail(m.rt, request_id, i < 3 ? cases[i][0] : longest, SL_LIT("x"), &m.error), SL_OK);
        assert_true(has(wire_request(m.wire, 0), line));
        part(&m);
    }
}

/* A request id that does not fit into a URL cannot be answered, and the connection is left alone. */
static void refuses_a_request_id_without_an_end(void **state)
{
    (void)state;
    char *id = calloc(1, 2001);
    assert_non_null(id);
    memset(id, 'i', 2000);
    const struct wire_step steps[] = {{.reply = ACCEPTED}};
    struct meeting m;
    meet(&m, steps, 1);
    assert_int_equal(sl_runtime_respond(m.rt, id, SL_LIT("{}"), "application/json", &m.error), SL_RETRY);
    assert_string_equal(m.error.code, "InvalidRequestId");
    sl_error_clear(&m.error);
    assert_int_equal(sl_runtime_fail(m.rt, id, "T", SL_LIT("x"), &m.error), SL_RETRY);
    assert_string_equal(m.error.code, "InvalidRequestId");
    assert_int_equal(wire_requests(m.wire), 0);
    part(&m);
    free(id);
}

/* The longest header value fits; with one byte more the event is refused, and can still be answered. */
static void refuses_an_event_whose_header_is_too_long(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        size_t n = 64 * 1024 - 1 + more;
        char *reply = malloc(n + 400);
        assert_non_null(reply);
        int head = snprintf(reply, 300, "HTTP/1.1 200 OK\r\n" ID "Lambda-Runtime-Trace-Id: ");
        memset(reply + head, 't', n);
        snprintf(reply + (size_t)head + n, 100, "\r\nContent-Length: 2\r\n\r\n{}");
        const struct wire_step steps[] = {{.reply = reply}};
        struct meeting m;
        meet(&m, steps, 1);
        assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), more ? SL_REJECT : SL_OK);
        assert_string_equal(m.error.code, more ? "EventTooLarge" : "");
        assert_string_equal(m.event.request_id, request_id);
        assert_int_equal(strlen(m.event.trace_id), more ? 0 : n);
        part(&m);
        free(reply);
    }
}

/* Of a long reply, its first 200 bytes; of a long message, 64 KB. */
static void cuts_what_nobody_reads_to_its_end(void **state)
{
    (void)state;
    char *reply = malloc(6000), *message = malloc(70000);
    assert_true(reply && message);
    int head = snprintf(reply, 100, "HTTP/1.1 410 Gone\r\nContent-Length: 5000\r\n\r\n");
    memset(reply + head, 'r', 5000);
    memset(message, 'm', 70000);
    const struct wire_step steps[] = {{.reply = reply, .len = (size_t)head + 5000}, {.reply = ACCEPTED}};
    struct meeting m;
    meet(&m, steps, 2);
    assert_int_equal(sl_runtime_respond(m.rt, request_id, SL_LIT(""), "application/json", &m.error), SL_OK);
    const char *at = strstr(m.error.text, "its reply: ");
    assert_non_null(at);
    assert_int_equal(strspn(at + 11, "r"), 200);
    assert_non_null(strstr(m.error.text, "410 (the invocation had timed out)"));
    sl_error_clear(&m.error);
    assert_int_equal(sl_runtime_fail(m.rt, request_id, "T", sl_span(message, 70000), &m.error), SL_OK);
    struct sl_span sent = wire_request(m.wire, 1);
    const char *first = memmem(sent.ptr, sent.len, "\"errorMessage\":\"", 16);
    assert_non_null(first);
    assert_int_equal(strspn(first + 16, "m"), 64 * 1024);
    assert_int_equal(wire_connections(m.wire), 1);
    part(&m);
    free(reply);
    free(message);
}

/* ---- libcurl fails ---- */

static int polls_that_fail, performs_that_fail;

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd fds[], unsigned n, int ms, int *ready)
{
    static __typeof__(&curl_multi_poll) real;
    void *symbol = dlsym(RTLD_NEXT, "curl_multi_poll");
    memcpy(&real, &symbol, sizeof(real));
    return polls_that_fail > 0 && polls_that_fail-- ? CURLM_OUT_OF_MEMORY : real(multi, fds, n, ms, ready);
}

CURLMcode curl_multi_perform(CURLM *multi, int *running)
{
    static __typeof__(&curl_multi_perform) real;
    void *symbol = dlsym(RTLD_NEXT, "curl_multi_perform");
    memcpy(&real, &symbol, sizeof(real));
    return performs_that_fail > 0 && performs_that_fail-- ? CURLM_INTERNAL_ERROR : real(multi, running);
}

/* Once: the event is asked for again, on a new connection. Each time: that is a connection that cannot be
 * used for now, not an end without a word. */
static void goes_on_when_libcurl_cannot(void **state)
{
    (void)state;
    const struct wire_step one = {.reply = "HTTP/1.1 200 OK\r\n" ID "Content-Length: 2\r\n\r\n{}"};
    const struct wire_step steps[] = {one, one, one};
    for (int i = 0; i < 4; i++) {
        struct meeting m;
        meet(&m, steps, 3);
        *(i % 2 ? &polls_that_fail : &performs_that_fail) = i < 2 ? 1 : 1000;
        enum sl_status status = sl_runtime_next(m.rt, &m.event, &m.error);
        polls_that_fail = performs_that_fail = 0;
        assert_int_equal(status, i < 2 ? SL_OK : SL_RETRY);
        assert_string_equal(m.error.code, i < 2 ? "" : "ConnectionBroken");
        assert_int_equal(sl_runtime_next(m.rt, &m.event, &m.error), SL_OK); /* and it can be used again */
        assert_true(sl_span_is(m.event.payload, "{}"));
        part(&m);
    }
}

/* Each invocation has another trace id, and a process may have millions of them. */
static void keeps_only_the_last_trace_id(void **state)
{
    (void)state;
    char id[200];
    size_t before = 0;
    for (int i = 0; i < 20000; i++) {
        snprintf(id, sizeof(id), "Root=1-%024d;Parent=%016d;Sampled=1", i, i);
        sl_runtime_export_trace_id(id);
        assert_string_equal(getenv("_X_AMZN_TRACE_ID"), id);
        if (i == 100)
            before = mallinfo2().uordblks;
    }
    assert_true(mallinfo2().uordblks <= before + 4096);
    sl_runtime_export_trace_id("");
    assert_null(getenv("_X_AMZN_TRACE_ID"));
    char *long_id = malloc(70000);
    assert_non_null(long_id);
    memset(long_id, 'x', 69999);
    long_id[69999] = '\0';
    long_id[64 * 1024 - sizeof("_X_AMZN_TRACE_ID=")] = '\0'; /* the longest of all */
    sl_runtime_export_trace_id(long_id);
    assert_string_equal(getenv("_X_AMZN_TRACE_ID"), long_id);
    long_id[strlen(long_id)] = 'x';
    long_id[64 * 1024 - sizeof("_X_AMZN_TRACE_ID=") + 1] = '\0';
    sl_runtime_export_trace_id(id);
    sl_runtime_export_trace_id(long_id); /* too long to be kept: the last one's must not stand in for it */
    assert_null(getenv("_X_AMZN_TRACE_ID"));
    free(long_id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_an_event_and_answers_it_on_one_connection),
        cmocka_unit_test(takes_what_is_missing_or_odd_in_the_headers),
        cmocka_unit_test(takes_values_as_they_are_meant),
        cmocka_unit_test(a_length_that_cannot_be_costs_nothing),
        cmocka_unit_test(judges_each_answer_to_next),
        cmocka_unit_test(asks_again_when_the_event_is_cut),
        cmocka_unit_test(a_head_that_is_cut_twice_is_a_broken_connection),
        cmocka_unit_test(goes_on_when_libcurl_cannot),
        cmocka_unit_test(gives_up_for_now_on_a_connection_that_keeps_breaking),
        cmocka_unit_test(takes_a_chunked_event),
        cmocka_unit_test(takes_the_largest_event_and_refuses_one_byte_more),
        cmocka_unit_test(judges_each_reply_to_an_answer),
        cmocka_unit_test(sends_an_answer_again_once_when_its_reply_is_lost),
        cmocka_unit_test(survives_a_reply_cut_at_every_byte),
        cmocka_unit_test(reports_errors_as_ascii_headers_and_valid_json),
        cmocka_unit_test(reports_an_answer_that_is_too_large_instead_of_sending_it),
        cmocka_unit_test(cleans_the_type_of_an_error),
        cmocka_unit_test(refuses_a_request_id_without_an_end),
        cmocka_unit_test(refuses_an_event_whose_header_is_too_long),
        cmocka_unit_test(cuts_what_nobody_reads_to_its_end),
        cmocka_unit_test(keeps_only_the_last_trace_id),
        cmocka_unit_test(stops_waiting_when_told),
        cmocka_unit_test(takes_an_endpoint_with_scheme_and_path),
        cmocka_unit_test(an_endpoint_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
