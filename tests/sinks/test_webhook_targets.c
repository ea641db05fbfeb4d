/* Webhooks' targets: which are refused, where requests may go, and what is said of them. */
#include "tests/support/fault.h"

#include "net/address.h"

#include <netdb.h>
#include <stdio.h>
#include <unistd.h>

static struct fault f;

/* Base64 of "canary-webhook-key-012345" and of "another-webhook-key-012345". */
#define KEY_ONE "whsec_Y2FuYXJ5LXdlYmhvb2sta2V5LTAxMjM0NQ=="
#define KEY_TWO "whsec_YW5vdGhlci13ZWJob29rLWtleS0wMTIzNDU="

/* Answers everything with one status. */
static void receive(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)request;
    reply->status = *(const int *)arg;
    reply->body = SL_LIT("<html>" FAULT_VALUE "</html>");
}

static void open_all(int *status)
{
    fault_open(&f, receive, status);
    fault_set(&f, "KEY_ONE", KEY_ONE);
    fault_set(&f, "KEY_TWO", KEY_TWO);
}

static struct sl_result post(const char *url, const char *body)
{
    struct sl_message message = {.body = sl_span_str(body)};
    struct sl_queue_port *queue = fault_queue(&f, url);
    struct sl_result result;
    fault_send(&f, queue, &message, 1, &result);
    queue->close(queue);
    return result;
}

static enum sl_status open_target(const char *url, struct sl_error *error)
{
    struct sl_queue_port *queue = NULL;
    enum sl_status status = sl_target_queue(&f.sinks, sl_span_str(url), &queue, error);
    if (status == SL_OK)
        queue->close(queue);
    return status;
}

static void wrong_targets_are_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {
        /* hosts: nobody's receiver, in every spelling */
        "https://169.254.169.254/SECRET",
        "https://2852039166/SECRET",
        "https://0xA9FEA9FE/SECRET",
        "https://0251.0376.0251.0376/SECRET",
        "https://169.254.43518/SECRET",
        "https://[fd00:ec2::254]/SECRET",
        "https://[::ffff:169.254.169.254]/SECRET",
        "https://[::ffff:a9fe:a9fe]/SECRET",
        "https://[64:ff9b::169.254.169.254]/SECRET",
        "https://[fe80::1%25lo]/SECRET",
        "https://[::]/SECRET",
        "https://0.0.0.0/SECRET",
        "https://0/SECRET",
        "https://224.0.0.1/SECRET",
        "https://10.0.0.1/SECRET",
        "https://172.16.0.1/SECRET",
        "https://192.168.0.1/SECRET",
        "https://[fc00::1]/SECRET",
        "https://169.254.169.254/SECRET#private=1",
        "https://[::ffff:169.254.169.254]/SECRET#private=1",
        /* a queue, by the URL that AWS shows */
        "https://sqs.eu-central-1.amazonaws.com/123456789012/SECRET",
        "https://SQS.us-gov-west-1.amazonaws.com/123456789012/SECRET#batch=10",
        /* http: for this machine alone */
        "http://hooks.example.com/SECRET",
        "http://8.8.8.8/SECRET",
        "http://10.0.0.1/SECRET#private=1",
        "http://127.0.0.1.example.com/SECRET",
        "http://notlocalhost/SECRET",
        /* not a URL that is ours to request */
        "https:",
        "https:///SECRET",
        "https:/hooks.example.com/SECRET",
        "https:hooks.example.com/SECRET",
        "https://user@hooks.example.com/SECRET",
        "https://user:SECRET@hooks.example.com/",
        "https://user:SECRET@169.254.169.254/",
        "https://hooks.example.com\\@169.254.169.254/SECRET",
        "https://hooks.example.com:99999/SECRET",
        "https://hooks.example.com:x/SECRET",
        "https://hooks.example.com/SECRET path",
        "https://hooks.example.com/SECRET\n",
        "https://{host}/SECRET",
        "https://hooks.example.com:{port}/SECRET",
        "https://hooks.example.com/{PK}/SECRET",
        "https://hooks.ex\xc3\xa4mple.com/SECRET",
        /* options */
        "https://hooks.example.com/SECRET#what=1",
        "https://hooks.example.com/SECRET#batch=0",
        "https://hooks.example.com/SECRET#batch=10001",
        "https://hooks.example.com/SECRET#batch=1x",
        "https://hooks.example.com/SECRET#batch=",
        "https://hooks.example.com/SECRET#batch=1&batch=2",
        "https://hooks.example.com/SECRET#max_bytes=1023",
        "https://hooks.example.com/SECRET#max_bytes=16777217",
        "https://hooks.example.com/SECRET#in_flight=65",
        "https://hooks.example.com/SECRET#timeout_ms=99",
        "https://hooks.example.com/SECRET#attempts=11",
        "https://hooks.example.com/SECRET#private=2",
        "https://hooks.example.com/SECRET#proxy=2",
        "https://hooks.example.com/SECRET#id=a.b",
        "https://hooks.example.com/SECRET#reject=Http200",
        "https://hooks.example.com/SECRET#reject=Http408",
        "https://hooks.example.com/SECRET#reject=Http425",
        "https://hooks.example.com/SECRET#reject=Http429",
        "https://hooks.example.com/SECRET#reject=Http4",
        "https://hooks.example.com/SECRET#reject=Http4091",
        "https://hooks.example.com/SECRET#reject=Http4a0",
        "https://hooks.example.com/SECRET#reject=Http4/0",
        "https://hooks.example.com/SECRET#reject=Http4:0",
        "https://hooks.example.com/SECRET#reject=Http40/",
        "https://hooks.example.com/SECRET#reject=Http40:",
        "https://hooks.example.com/SECRET#reject=Http409,Http40a",
        "https://hooks.example.com/SECRET#reject=Http500",
        "https://hooks.example.com/SECRET#reject=AccessDenied",
        "https://hooks.example.com/SECRET#secret=ABSENT",
        "https://hooks.example.com/SECRET#secret=whsec_SECRET",
        "https://hooks.example.com/SECRET#header_env.A=Bearer%20SECRET",
        "https://hooks.example.com/SECRET#secret=PLAIN",
        "https://hooks.example.com/SECRET#secret=SHORT",
        "https://hooks.example.com/SECRET#secret=LONG",
        "https://hooks.example.com/SECRET#secret=KEY_ONE,KEY_TWO,KEY_ONE",
        "https://hooks.example.com/SECRET#header.=1",
        "https://hooks.example.com/SECRET#header.A%20B=1",
        "https://hooks.example.com/SECRET#header.A=",
        "https://hooks.example.com/SECRET#header.A=%0a",
        "https://hooks.example.com/SECRET#header.Host=a",
        "https://hooks.example.com/SECRET#header.webhook-signature=a",
        "https://hooks.example.com/SECRET#header.A=1&header.a=2",
        "https://hooks.example.com/SECRET#header_env.A=ABSENT",
    };
    int status = 200;
    open_all(&status);
    fault_set(&f, "PLAIN", "SECRET-without-a-prefix-0123456789");
    fault_set(&f, "SHORT", "whsec_U0VDUkVU");
    fault_set(
        &f, "LONG",
        "whsec_U0VDUkVUU0VDUkVUU0VDUkVUU0VDUkVUU0VDUkVUU0VDUkVUU0VDUkVUU0VDUkVUU0VDUkVUU0VDUkVUU0VDUkVU");
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        if (open_target(urls[i], &error) != SL_FATAL || strcmp(error.code, "InvalidTarget") != 0)
            fail_msg("%s is not refused: %s", urls[i], error.text);
        if (strstr(error.text, "SECRET") || strstr(error.text, "U0VDUkVU"))
            fail_msg("%s: the refusal shows it: %s", urls[i], error.text);
    }
    fault_close(&f);
}

#define SECRET(n) "&header_env.X-" #n "=KEY_ONE"

static void right_targets_are_opened(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "https://hooks.example.com",
        "https://hooks.example.com/",
        "https://hooks.example.com:8443/a/b?c=d&e=%20#",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]/",
        "https://10.0.0.1/#private=1",
        "https://[fc00::1]/#private=1",
        "http://127.0.0.1:8080/",
        "http://[::1]:8080/",
        "http://localhost:8080/",
        "http://a.localhost./",
        "https://localhost/",
        "https://hooks.example.com/"
        "#secret=KEY_ONE,KEY_TWO&header.X-A=1&header_env.Authorization=KEY_ONE&batch="
        "10000&max_bytes=16777216&in_flight=64&timeout_ms=300000&attempts=10&id=a-b_1&reject=Http409,Http422",
        /* The most secrets that a target can have. */
        "https://hooks.example.com/a?b#secret=KEY_ONE,KEY_TWO" SECRET(0) SECRET(1) SECRET(2) SECRET(3)
            SECRET(4) SECRET(5) SECRET(6) SECRET(7) SECRET(8) SECRET(9) SECRET(10) SECRET(11) SECRET(12)
                SECRET(13) SECRET(14),
    };
    int status = 200;
    open_all(&status);
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        if (open_target(urls[i], &error) != SL_OK)
            fail_msg("%s is refused: %s", urls[i], error.text);
    }
    fault_close(&f);
}

/* Through a proxy the address cannot be checked, so the target has to say what is meant. */
static void a_proxy_is_used_only_where_it_is_written(void **state)
{
    (void)state;
    int status = 407;
    struct sl_error error = SL_NO_ERROR;
    struct sl_result result;
    open_all(&status);
    fault_set(&f, "HTTPS_PROXY", scripted_server_url(f.server));
    assert_int_equal(open_target("https://hooks.example.com/", &error), SL_FATAL);
    assert_non_null(strstr(error.text, "proxy=1"));
    assert_int_equal(open_target("https://localhost/", &error), SL_OK); /* never through one */
    result = post("https://hooks.example.com/#proxy=1&attempts=1", "{}");
    assert_true(result.status == SL_RETRY && scripted_server_requests(f.server) == 1);
    assert_string_equal(scripted_server_request(f.server, 0)->method, "CONNECT");
    /* Around it: then the address is checked here. This machine's own name leads to no public one. */
    char name[200], list[250], url[300];
    struct addrinfo *found = NULL;
    if (gethostname(name, sizeof(name)) == 0 && getaddrinfo(name, "443", NULL, &found) == 0 &&
        sl_address_kind(found->ai_addr, NULL) != SL_ADDRESS_PUBLIC) {
        snprintf(list, sizeof(list), "internal.example, .%s", name);
        fault_set(&f, "NO_PROXY", list);
        snprintf(url, sizeof(url), "https://%s/#proxy=1&attempts=1", name);
        result = post(url, "{}");
        assert_result(result, SL_FATAL, "ForbiddenAddress");
        assert_true(result.not_sent && scripted_server_requests(f.server) == 1);
        assert_int_equal(strstr(result.text, "#private=1") != NULL,
                         sl_address_kind(found->ai_addr, NULL) == SL_ADDRESS_PRIVATE);
    }
    if (found)
        freeaddrinfo(found);
    result = post("https://[::1]:1/#proxy=0&attempts=1", "{}"); /* nobody listens there */
    assert_true(result.status == SL_RETRY && result.not_sent && scripted_server_requests(f.server) == 1);
    fault_close(&f);
}

static void the_runtime_api_is_refused(void **state)
{
    (void)state;
    int status = 200;
    struct sl_result result;
    open_all(&status);
    fault_set(&f, "AWS_LAMBDA_RUNTIME_API", scripted_server_url(f.server) + strlen("http://"));
    result = post("http://server/2018-06-01/runtime/invocation/next", "{}");
    assert_result(result, SL_FATAL, "ForbiddenAddress");
    assert_non_null(strstr(result.text, "the Runtime API"));
    assert_true(result.not_sent && scripted_server_requests(f.server) == 0);
    fault_close(&f);
}

/* Bytes of a path, a query, a header and a key are in no error; fault_close looks at the log. */
static void nothing_secret_is_shown(void **state)
{
    (void)state;
    static const char *const urls[] = {"http://server/" FAULT_SECRET "?t=" FAULT_TOKEN "#header_env.A=AUTH",
                                       "http://127.0.0.1:1/" FAULT_SECRET "?t=" FAULT_TOKEN
                                       "#header_env.A=AUTH&secret=KEY_ONE"};
    static const int statuses[] = {200, 302, 400, 404, 429, 500};
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        int status = statuses[i];
        static const char body[] = "{\"v\":\"" FAULT_VALUE "\"}";
        open_all(&status);
        fault_set(&f, "AUTH", "Bearer " FAULT_TOKEN);
        for (size_t k = 0; k < 2; k++)
            (void)post(urls[k], body);
        fault_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_targets_are_refused),
        cmocka_unit_test(right_targets_are_opened),
        cmocka_unit_test(a_proxy_is_used_only_where_it_is_written),
        cmocka_unit_test(the_runtime_api_is_refused),
        cmocka_unit_test(nothing_secret_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
