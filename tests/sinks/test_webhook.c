/* Webhooks on a virtual clock, in front of a scripted receiver: what each answer means, order, arrays, ids,
 * pauses that the receiver asks for. The signatures are verified by another
 * implementation in check_webhook.py. */
#include "tests/support/fault.h"

#include "aws/contrast.h"

#include <stdio.h>
#include <stdlib.h>

static struct fault f;

/* Base64 of "canary-webhook-key-012345" and of "another-webhook-key-012345". */
#define KEY_ONE "whsec_Y2FuYXJ5LXdlYmhvb2sta2V5LTAxMjM0NQ=="
#define KEY_TWO "whsec_YW5vdGhlci13ZWJob29rLWtleS0wMTIzNDU="

/* ---- a receiver ---- */

/* What each of the first answers is, and all after them; and which body is never taken. */
struct receiver {
    int statuses[64];
    size_t n;
    int usual;
    const char *headers; /* of the first ones */
    const char *poison;  /* a body with this text gets `poisoned` */
    int poisoned;
    int64_t at_ms[256]; /* virtual time of each request */
};

static void receive(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct receiver *r = arg;
    size_t i = request->number;
    r->at_ms[i % 256] = f.clock.ms;
    reply->status = i < r->n ? r->statuses[i] : r->usual ? r->usual : 200;
    reply->headers = i < r->n ? r->headers : NULL;
    if (r->poison && memmem(request->body.ptr, request->body.len, r->poison, strlen(r->poison)))
        reply->status = r->poisoned;
    reply->body = SL_LIT("<html>" FAULT_VALUE "</html>");
}

static void open_all(struct receiver *receiver)
{
    fault_open(&f, receive, receiver);
    fault_set(&f, "KEY_ONE", KEY_ONE);
    fault_set(&f, "KEY_TWO", KEY_TWO);
}

static const struct scripted_request *request(size_t i)
{
    assert_true(i < scripted_server_requests(f.server));
    return scripted_server_request(f.server, i);
}

static struct sl_message message(const char *body, const char *order)
{
    return (struct sl_message){.body = sl_span_str(body), .order = sl_span_str(order)};
}

static void post(const char *url, const struct sl_message *messages, size_t n, struct sl_result *results)
{
    struct sl_queue_port *queue = fault_queue(&f, url);
    fault_send(&f, queue, messages, n, results);
    queue->close(queue);
}

/* One message to a receiver that answers with this status for ever. */
static struct sl_result send_one(const char *url, int status)
{
    struct receiver receiver = {.usual = status};
    struct sl_message one = message("{\"n\":1}", "a");
    struct sl_result result;
    open_all(&receiver);
    post(url, &one, 1, &result);
    if (result.text && strstr(result.text, "html"))
        fail_msg("an answer is quoted: %s", result.text);
    if (result.code)
        result.code = sl_arena_copy(f.call.arena, sl_span_str(result.code)), result.text = NULL;
    return result;
}

/* ---- what an answer means ---- */

static enum sl_status meant(int status)
{
    static const int fatal[] = {401, 402, 403, 404, 405, 407, 410, 451};
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        if (status == fatal[i])
            return SL_FATAL;
    if (status == 408 || status == 425 || status == 429 || status >= 500)
        return SL_RETRY;
    return status < 300 ? SL_OK : SL_FATAL; /* another 4xx alone: without contrast, the environment's */
}

static void every_status_has_its_class(void **state)
{
    (void)state;
    for (int status = 200; status <= 999; status += status < 600 ? 1 : 399) { /* 600 and 999 are none */
        char code[16];
        struct sl_result result = send_one("http://server/hook", status);
        size_t sent = scripted_server_requests(f.server);
        snprintf(code, sizeof(code), "Http%d", status);
        assert_result(result, meant(status), status < 300 ? NULL : code);
        assert_int_equal(sent, meant(status) == SL_RETRY ? 3 : 1);
        assert_false(result.not_sent);
        fault_close(&f);
    }
}

static void a_status_that_is_named_is_the_records(void **state)
{
    (void)state;
    static const char url[] = "http://server/hook#reject=Http404,Http422";
    assert_result(send_one(url, 404), SL_REJECT, "Http404");
    fault_close(&f);
    assert_result(send_one(url, 422), SL_REJECT, "Http422");
    fault_close(&f);
    assert_result(send_one(url, 410), SL_FATAL, "Http410");
    fault_close(&f);
}

/* 400, 413, 422 and unknown ones: beside a success of this apply, of the last minute, and of none. */
static void contrast_decides(void **state)
{
    (void)state;
    static const int statuses[] = {400, 413, 422, 409, 418};
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct receiver receiver = {.poison = "bad", .poisoned = statuses[i]};
        struct sl_message two[2] = {message("{\"bad\":1}", "a"), message("{\"good\":1}", "b")};
        struct sl_result results[2];
        open_all(&receiver);
        struct sl_queue_port *queue = fault_queue(&f, "http://server/hook#in_flight=1");
        fault_send(&f, queue, two, 2, results);
        assert_result(results[0], SL_REJECT, NULL);
        assert_result(results[1], SL_OK, NULL);
        f.clock.ms += SL_CONTRAST_MS;
        fault_send(&f, queue, two, 1, results);
        assert_result(results[0], SL_REJECT, NULL);
        f.clock.ms += 1;
        fault_send(&f, queue, two, 1, results);
        assert_result(results[0], SL_FATAL, NULL);
        assert_non_null(strstr(results[0].text, "reject=Http"));
        queue->close(queue);
        fault_close(&f);
    }
}

static void a_refusal_stops_what_was_not_begun(void **state)
{
    (void)state;
    struct receiver receiver = {.usual = 403};
    struct sl_message many[40];
    struct sl_result results[40];
    for (size_t i = 0; i < 40; i++)
        many[i] = message("{}", NULL);
    open_all(&receiver);
    post("http://server/hook#in_flight=4", many, 40, results);
    for (size_t i = 0; i < 40; i++) {
        assert_result(results[i], SL_FATAL, "Http403");
        assert_int_equal(results[i].not_sent, i >= 4);
    }
    assert_int_equal(scripted_server_requests(f.server), 4);
    fault_close(&f);
}

static void a_redirect_is_not_followed(void **state)
{
    (void)state;
    struct receiver receiver = {
        .usual = 200, .statuses = {302}, .n = 1, .headers = "location: http://169.254.169.254/latest/\r\n"};
    struct sl_message one = message("{}", NULL);
    struct sl_result result;
    open_all(&receiver);
    post("http://server/hook", &one, 1, &result);
    assert_result(result, SL_FATAL, "Http302");
    assert_int_equal(scripted_server_requests(f.server), 1);
    fault_close(&f);
}

/* ---- order ---- */

static int number_in(const struct scripted_request *r)
{
    const char *at = memmem(r->body.ptr, r->body.len, "\"n\":", 4);
    assert_non_null(at);
    return (int)strtol(at + 4, NULL, 10);
}

/* Three orders; each second answer is an error for now. */
static void messages_of_one_order_follow_each_other(void **state)
{
    (void)state;
    enum { COUNT = 30 };
    static const char *const orders[] = {"a", "b", "c"};
    struct receiver receiver = {.n = 40, .headers = NULL};
    struct sl_message many[COUNT];
    struct sl_result results[COUNT];
    int last[3] = {-1, -1, -1};
    for (size_t i = 0; i < receiver.n; i++)
        receiver.statuses[i] = i % 2 ? 200 : 503;
    open_all(&receiver);
    for (size_t i = 0; i < COUNT; i++)
        many[i] = message(sl_arena_printf(f.call.arena, "{\"n\":%zu}", i), orders[i % 3]);
    post("http://server/hook#attempts=10", many, COUNT, results);
    for (size_t i = 0; i < COUNT; i++)
        assert_result(results[i], SL_OK, NULL);
    for (size_t i = 0; i < scripted_server_requests(f.server); i++) {
        int n = number_in(request(i));
        assert_true(n == last[n % 3] || n == last[n % 3] + 3 || (last[n % 3] < 0 && n < 3));
        last[n % 3] = n;
    }
    fault_close(&f);
}

static void what_cannot_go_now_holds_its_order_and_no_other(void **state)
{
    (void)state;
    struct receiver receiver = {.poison = "\"n\":1}", .poisoned = 500};
    struct sl_message many[5] = {message("{\"n\":0}", "a"), message("{\"n\":1}", "a"),
                                 message("{\"n\":2}", "a"), message("{\"n\":3}", "b"),
                                 message("{\"n\":4}", "b")};
    struct sl_result results[5];
    open_all(&receiver);
    post("http://server/hook", many, 5, results);
    assert_result(results[0], SL_OK, NULL);
    assert_result(results[1], SL_RETRY, "Http500");
    assert_result(results[2], SL_RETRY, "Http500");
    assert_true(!results[1].not_sent && results[2].not_sent);
    assert_result(results[3], SL_OK, NULL);
    assert_result(results[4], SL_OK, NULL);
    fault_close(&f);
    receiver.poisoned = 422; /* it is given up, beside successes: the next of its order goes */
    open_all(&receiver);
    post("http://server/hook", many, 5, results);
    assert_result(results[1], SL_REJECT, "Http422");
    assert_result(results[2], SL_OK, NULL);
    fault_close(&f);
}

/* ---- arrays ---- */

static void arrays_are_filled_and_taken_apart(void **state)
{
    (void)state;
    struct receiver receiver = {.poison = "\"n\":4}", .poisoned = 400};
    struct sl_message many[7];
    struct sl_result results[7];
    open_all(&receiver);
    for (size_t i = 0; i < 7; i++)
        many[i] = message(sl_arena_printf(f.call.arena, "{\"n\":%zu}", i), i % 2 ? "a" : "b");
    post("http://server/hook#batch=3&in_flight=1", many, 7, results);
    for (size_t i = 0; i < 7; i++)
        assert_result(results[i], i == 4 ? SL_REJECT : SL_OK, NULL);
    assert_true(sl_span_is(request(0)->body, "[{\"n\":0},{\"n\":1},{\"n\":2}]"));
    assert_true(sl_span_is(request(1)->body, "[{\"n\":3},{\"n\":4},{\"n\":5}]"));
    assert_true(sl_span_is(request(2)->body, "[{\"n\":3}]"));
    assert_true(sl_span_is(request(3)->body, "[{\"n\":4}]"));
    assert_int_equal(scripted_server_requests(f.server), 6);
    assert_true(sl_span_is(scripted_header(request(0), "content-type"), "application/json"));
    fault_close(&f);
}

static void arrays_have_a_limit_of_bytes(void **state)
{
    (void)state;
    struct receiver receiver = {.usual = 200};
    struct sl_message many[4];
    struct sl_result results[4];
    char body[1024], over[1024];
    open_all(&receiver);
    memset(body, 'x', sizeof(body));
    memset(over, 'x', sizeof(over));
    many[0] = many[1] =
        (struct sl_message){.body = sl_span(body, 508)};        /* with quotes, comma and brackets: 1,023 */
    many[2] = (struct sl_message){.body = sl_span(over, 1020)}; /* 1,024 alone */
    many[3] = (struct sl_message){.body = sl_span(over, 1021)};
    post("http://server/hook#batch=10&max_bytes=1024&in_flight=1", many, 4, results);
    assert_result(results[0], SL_OK, NULL);
    assert_result(results[1], SL_OK, NULL);
    assert_result(results[2], SL_OK, NULL);
    assert_result(results[3], SL_REJECT, "MessageTooLong");
    assert_true(results[3].not_sent);
    assert_int_equal(scripted_server_requests(f.server), 2);
    assert_int_equal(request(0)->body.len, 1023);
    assert_int_equal(request(1)->body.len, 1024);
    fault_close(&f);
}

/* ---- ids ---- */

static void the_id_survives_another_process(void **state)
{
    (void)state;
    struct receiver receiver = {.usual = 200};
    struct sl_message four[4] = {message("{}", NULL), message("{}", NULL), message("{}", NULL),
                                 message("{}", NULL)};
    struct sl_result results[4];
    four[0].dedupe = SL_LIT("e-1_a");
    four[1].dedupe = SL_LIT("no id: a.b");
    four[2].dedupe = SL_LIT("sha256-forged");
    for (int round = 0; round < 2; round++) {
        open_all(&receiver);
        post("http://server/hook#in_flight=1&id=orders", four, 4, results);
        assert_true(sl_span_is(scripted_header(request(0), "webhook-id"), "orders_e-1_a"));
        assert_true(
            sl_span_is(scripted_header(request(1), "webhook-id"),
                       "orders_sha256-4953b2fbeb7f08b60cbe37e563dbc2d3e2f73574a09f1ed1606270e2da847bd0"));
        assert_true(sl_span_starts(scripted_header(request(2), "webhook-id"), SL_LIT("orders_sha256-")));
        assert_false(sl_span_is(scripted_header(request(2), "webhook-id"), "orders_sha256-forged"));
        assert_true(
            sl_span_is(/* of "{}" */
                       scripted_header(request(3), "webhook-id"),
                       "orders_sha256-44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"));
        fault_close(&f);
    }
}

static void each_attempt_is_dated_and_signed_anew(void **state)
{
    (void)state;
    struct receiver receiver = {.statuses = {503}, .n = 1, .headers = "retry-after: 7\r\n"};
    struct sl_message one = message("{}", NULL);
    struct sl_result result;
    open_all(&receiver);
    post("http://server/hook#secret=KEY_ONE,KEY_TWO", &one, 1, &result);
    assert_result(result, SL_OK, NULL);
    assert_true(sl_span_is(scripted_header(request(0), "webhook-timestamp"), "1795208640"));
    assert_true(sl_span_is(scripted_header(request(1), "webhook-timestamp"), "1795208647"));
    struct sl_span first = scripted_header(request(0), "webhook-signature"),
                   second = scripted_header(request(1), "webhook-signature");
    assert_int_equal(first.len, 2 * 47 + 1);
    assert_true(first.ptr[47] == ' ' && !sl_span_eq(first, second));
    assert_true(
        sl_span_eq(scripted_header(request(0), "webhook-id"), scripted_header(request(1), "webhook-id")));
    fault_close(&f);
}

/* ---- Retry-After ---- */

static void a_pause_is_kept_by_all_and_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *headers;
        int64_t at_least, at_most;
    } cases[] = {
        {"retry-after: 120\r\n", 120000, 121000},
        {"retry-after: 999999999999999999999\r\n", 300000, 301000},
        /* One minute after the receiver's own Date, which is a day late. */
        {"date: Thu, 19 Nov 2026 21:04:00 GMT\r\nretry-after: Thu, 19 Nov 2026 21:05:00 GMT\r\n", 60000,
         61000},
        {"date: Thu, 01 Jan 1970 00:00:00 GMT\r\nretry-after: Thu, 01 Jan 1970 00:01:00 GMT\r\n", 60000,
         61000},
        {"date: today\r\nretry-after: Fri, 20 Nov 2026 21:04:30 GMT\r\n", 30000, 31000},
        {"retry-after: Fri, 20 Nov 2026 21:04:30 GMT\r\n", 30000, 31000},
        {"retry-after: Fri, 20 Nov 2020 21:04:30 GMT\r\n", 0, 1000},
        {"retry-after: soon\r\n", 0, 1000},
        {"retry-after: -5\r\n", 0, 1000},
        {"retry-after: \r\n", 0, 1000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct receiver receiver = {.statuses = {429}, .n = 1, .headers = cases[i].headers};
        struct sl_message two[2] = {message("{\"n\":1}", "a"), message("{\"n\":2}", "b")};
        struct sl_result results[2];
        open_all(&receiver);
        post("http://server/hook#in_flight=1", two, 2, results);
        assert_result(results[0], SL_OK, NULL);
        assert_result(results[1], SL_OK, NULL);
        assert_in_range(receiver.at_ms[1] - receiver.at_ms[0], cases[i].at_least, cases[i].at_most);
        fault_close(&f);
    }
}

static void a_pause_beyond_the_deadline_ends_the_call_and_is_kept(void **state)
{
    (void)state;
    struct receiver receiver = {.statuses = {503}, .n = 1, .headers = "retry-after: 100\r\n"};
    struct sl_message three[3] = {message("{\"n\":1}", "a"), message("{\"n\":2}", "b"),
                                  message("{\"n\":3}", "b")};
    struct sl_result results[3];
    open_all(&receiver);
    struct sl_queue_port *queue = fault_queue(&f, "http://server/hook#in_flight=1");
    f.call.deadline_ms = f.clock.ms + 50000;
    int64_t began = f.clock.ms;
    fault_send(&f, queue, three, 3, results);
    assert_result(results[0], SL_RETRY, "Http503");
    assert_result(results[1], SL_RETRY, "RetryAfter");
    assert_result(results[2], SL_RETRY, "RetryAfter");
    assert_true(!results[0].not_sent && results[1].not_sent && results[2].not_sent);
    assert_int_equal(scripted_server_requests(f.server), 1);
    assert_true(f.clock.ms - began < 1000); /* nobody waits for what cannot be */
    f.call.deadline_ms = f.clock.ms + 200000;
    fault_send(&f, queue, three, 3, results);
    assert_result(results[2], SL_OK, NULL);
    assert_in_range(receiver.at_ms[1] - receiver.at_ms[0], 100000, 101000);
    queue->close(queue);
    fault_close(&f);
}

/* At the deadline itself it is too late: what would be due then is not waited for. */
static void a_pause_up_to_the_deadline_is_one_beyond_it(void **state)
{
    (void)state;
    struct receiver receiver = {.statuses = {503}, .n = 1, .headers = "retry-after: 100\r\n"};
    struct sl_message two[2] = {message("{\"n\":1}", "a"), message("{\"n\":2}", "b")};
    struct sl_result results[2];
    open_all(&receiver);
    int64_t began = f.clock.ms;
    f.call.deadline_ms = began + 100000;
    post("http://server/hook#in_flight=1", two, 2, results);
    assert_result(results[0], SL_RETRY, "Http503");
    assert_result(results[1], SL_RETRY, "RetryAfter");
    assert_true(results[1].not_sent);
    assert_int_equal(scripted_server_requests(f.server), 1);
    assert_int_equal(f.clock.ms, began);
    fault_close(&f);
}

/* A pause that is over has nothing to do with what follows. */
static void a_pause_that_is_over_is_not_named(void **state)
{
    (void)state;
    struct receiver receiver = {.statuses = {503}, .n = 1, .headers = "retry-after: 100\r\n"};
    struct sl_message one = message("{\"n\":1}", "a");
    struct sl_result result;
    open_all(&receiver);
    int64_t began = f.clock.ms;
    struct sl_queue_port *queue = fault_queue(&f, "http://server/hook");
    f.call.deadline_ms = began + 50000;
    fault_send(&f, queue, &one, 1, &result);
    assert_result(result, SL_RETRY, "Http503");
    f.clock.ms = f.call.deadline_ms = began + 100000;
    fault_send(&f, queue, &one, 1, &result);
    assert_result(result, SL_RETRY, "DeadlineExceeded");
    f.clock.ms--;
    fault_send(&f, queue, &one, 1, &result);
    assert_result(result, SL_RETRY, "RetryAfter");
    queue->close(queue);
    fault_close(&f);
}

static void nothing_is_begun_without_time(void **state)
{
    (void)state;
    struct receiver receiver = {.usual = 200};
    struct sl_message two[2] = {message("{}", "a"), message("{}", "a")};
    struct sl_result results[2];
    open_all(&receiver);
    f.call.deadline_ms = f.clock.ms;
    post("http://server/hook", two, 2, results);
    assert_result(results[0], SL_RETRY, "DeadlineExceeded");
    assert_result(results[1], SL_RETRY, "DeadlineExceeded");
    assert_true(results[0].not_sent && results[1].not_sent);
    assert_int_equal(scripted_server_requests(f.server), 0);
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_class),
        cmocka_unit_test(a_status_that_is_named_is_the_records),
        cmocka_unit_test(contrast_decides),
        cmocka_unit_test(a_refusal_stops_what_was_not_begun),
        cmocka_unit_test(a_redirect_is_not_followed),
        cmocka_unit_test(messages_of_one_order_follow_each_other),
        cmocka_unit_test(what_cannot_go_now_holds_its_order_and_no_other),
        cmocka_unit_test(arrays_are_filled_and_taken_apart),
        cmocka_unit_test(arrays_have_a_limit_of_bytes),
        cmocka_unit_test(the_id_survives_another_process),
        cmocka_unit_test(each_attempt_is_dated_and_signed_anew),
        cmocka_unit_test(a_pause_is_kept_by_all_and_bounded),
        cmocka_unit_test(a_pause_beyond_the_deadline_ends_the_call_and_is_kept),
        cmocka_unit_test(a_pause_up_to_the_deadline_is_one_beyond_it),
        cmocka_unit_test(a_pause_that_is_over_is_not_named),
        cmocka_unit_test(nothing_is_begun_without_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
