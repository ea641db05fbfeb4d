/* xray: takes spans, and says so only when the whole of a request was taken. */
#include "tests/support/fault.h"

#include <stdio.h>
#include <stdlib.h>

static struct fault f;

struct told {
    int status;
    const char *body;
    size_t cut;
};

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    const struct told *told = arg;
    assert_string_equal(request->method, "POST");
    assert_string_equal(request->path, "/v1/traces");
    assert_span_is(scripted_header(request, "content-type"), "application/json");
    struct sl_span signature = scripted_header(request, "authorization");
    assert_non_null(memmem(signature.ptr, signature.len, "/xray/aws4_request", 18));
    assert_span_is(request->body, "{\"resourceSpans\":[]}");
    reply->status = told->status;
    reply->body = sl_span_str(told->body);
    reply->cut = told->cut;
}

static struct sl_result send(struct told told)
{
    const struct sl_message message = {.body = SL_LIT("{\"resourceSpans\":[]}")};
    struct sl_result result = {.status = SL_FATAL};
    fault_open(&f, answer, &told);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
    struct sl_queue_port *port = fault_spans(&f, "xray:");
    port->apply(port, &message, 1, &result, &f.call);
    fault_note(&f, &result, 1);
    if (result.code) /* it is the call's */
        result = (struct sl_result){result.status, .not_sent = result.not_sent, .code = strdup(result.code)};
    port->close(port);
    fault_close(&f);
    return result;
}

static void only_a_whole_yes_is_one(void **state)
{
    static const struct {
        struct told told;
        enum sl_status status;
        const char *code;
    } rows[] = {
        {{200, "{}", 0}, SL_OK, NULL},
        {{200, "", 0}, SL_OK, NULL},
        {{200, "{\"partialSuccess\":{}}", 0}, SL_OK, NULL},
        {{200, "{\"partialSuccess\":null}", 0}, SL_OK, NULL},
        {{200, "{\"partialSuccess\":{\"rejectedSpans\":\"0\",\"errorMessage\":\"use another\"}}", 0},
         SL_OK,
         NULL},
        {{200, "{\"partialSuccess\":{\"rejectedSpans\":0}}", 0}, SL_OK, NULL},
        {{200, "{\"partialSuccess\":{\"rejectedSpans\":\"3\"}}", 0}, SL_FATAL, "PartialSuccess"},
        {{200, "{\"partialSuccess\":{\"rejectedSpans\":3}}", 0}, SL_FATAL, "PartialSuccess"},
        {{200, "<html>", 0}, SL_RETRY, "BrokenAnswer"},
        {{200, "{\"partialSuccess\":", 0}, SL_RETRY, "BrokenAnswer"},
        {{200, "{\"message\":\"no\"}", 0}, SL_RETRY, "BrokenAnswer"},
        {{200, "{}", 30}, SL_RETRY, "ConnectionError"},
        {{202, "{}", 0}, SL_RETRY, "BrokenAnswer"},
        {{403, "{\"__type\":\"AccessDeniedException\",\"message\":\"no\"}", 0},
         SL_FATAL,
         "AccessDeniedException"},
        {{429, "{\"__type\":\"ThrottlingException\",\"message\":\"slow\"}", 0},
         SL_RETRY,
         "ThrottlingException"},
        {{500, "", 0}, SL_RETRY, "Http500"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sl_result result = send(rows[i].told);
        if (result.status != rows[i].status || (!result.code != !rows[i].code) ||
            (result.code && strcmp(result.code, rows[i].code) != 0))
            fail_msg("%d %s: %s %s", rows[i].told.status, rows[i].told.body, sl_status_name(result.status),
                     result.code ? result.code : "");
        free((char *)(uintptr_t)result.code);
    }
}

static void what_takes_spans_is_named(void **state)
{
    static const char *const good[] = {"xray:", "xray:?region=eu-west-1",
                                       "https://collector.example/v1/traces",
                                       "http://localhost:4318/v1/traces", "stdout:"};
    static const struct {
        const char *url, *says;
    } bad[] = {
        {"sqs://queue", "spans go to xray:"},
        {"s3://bucket", "spans go to xray:"},
        {"nothing", "spans go to xray:"},
        {"https://xray.eu-west-1.amazonaws.com/v1/traces", "write xray: or xray:?region=REGION"},
        {"https://xray.cn-north-1.amazonaws.com.cn/v1/traces", "requests are signed"},
        {"xray://eu-west-1", "write it as xray: or xray:?region=REGION"},
        {"xray:?regoin=eu-west-1", "regoin"},
        {"xray:?region=nowhere!", "region"},
        {"http://collector.example/v1/traces", "use https:"},
    };
    struct told told = {200, "{}", 0};
    (void)state;
    fault_open(&f, answer, &told);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct sl_queue_port *port = fault_spans(&f, good[i]);
        port->close(port);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        struct sl_queue_port *port = NULL;
        assert_int_equal(sl_target_spans(&f.sinks, sl_span_str(bad[i].url), &port, &error), SL_FATAL);
        if (!strstr(error.text, bad[i].says))
            fail_msg("%s: %s", bad[i].url, error.text);
    }
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_whole_yes_is_one),
        cmocka_unit_test(what_takes_spans_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
