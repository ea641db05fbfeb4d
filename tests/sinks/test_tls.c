/* TLS as far as it can be tried without a TLS server; with the argument "request", the client that
 * check_tls.py runs against one. */
#include "tests/support/fault.h"

#include "sinks/aws/aws.h"

#include <stdio.h>
#include <stdlib.h>

extern char **environ;

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)request;
    *reply = (struct scripted_reply){.status = 200, .body = SL_LIT("{}")};
}

static struct sl_result put_to(struct fault *f, const char *host)
{
    char url[128];
    snprintf(url, sizeof(url), "https://%s%s", host, strrchr(scripted_server_url(f->server), ':'));
    fault_set(f, "AWS_ENDPOINT_URL", url);
    struct sl_table_port *table = fault_table(f, "dynamodb://tbl");
    struct sl_result result = fault_put_item(f, table, "a");
    table->close(table);
    return result;
}

/* A server that speaks no TLS: nothing of the request reaches it. */
static void plain_text_is_not_taken_for_tls(void **state)
{
    (void)state;
    struct fault f;
    fault_open(&f, answer, NULL);
    f.call.deadline_ms = f.clock.ms + 200; /* it waits for the end of what it takes for a request */
    struct sl_result result = put_to(&f, "127.0.0.1");
    assert_result(result, SL_RETRY, NULL);
    assert_true(result.not_sent);
    assert_int_equal(scripted_server_requests(f.server), 0);
    fault_close(&f);
}

static void roots_that_cannot_be_read_are_fatal(void **state)
{
    (void)state;
    struct fault f;
    fault_open(&f, answer, NULL);
    fault_set(&f, "AWS_CA_BUNDLE", "/nowhere/roots.pem");
    struct sl_result result = put_to(&f, "127.0.0.1");
    assert_result(result, SL_FATAL, "UntrustedCertificate");
    assert_non_null(strstr(result.text, "AWS_CA_BUNDLE"));
    fault_close(&f);
}

/* Twenty writes to TLS_ENDPOINT; says what became of the first that failed, or how many did not. */
static int request(void)
{
    struct sl_vars vars = {(const char *const *)environ};
    char url[300];
    struct sl_sinks sinks;
    struct sl_table_port *table = NULL;
    struct sl_error error = {.status = SL_OK};
    struct sl_call call = {sl_arena_new(4096), INT64_MAX};
    struct sl_table_op op = {.verb = SL_TABLE_PUT,
                             .key = SL_LIT("{\"PK\":{\"S\":\"a\"}}"),
                             .item = SL_LIT("{\"PK\":{\"S\":\"a\"}}")};
    struct sl_result result = {.status = SL_OK};
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &vars);
    snprintf(url, sizeof(url), "dynamodb://tbl?region=us-east-1&endpoint=%s",
             sl_vars_or(&vars, "TLS_ENDPOINT", ""));
    if (sl_target_table(&sinks, sl_span_str(url), &table, &error) != SL_OK)
        sl_die("%s", error.text);
    sl_credentials_for(sl_aws_of(&sinks), SL_LIT(""))->is_fixed = true;
    int good = 0;
    while (good < 20 && result.status == SL_OK) {
        table->apply(table, &op, 1, &result, &call);
        good += result.status == SL_OK;
    }
    if (good == 20)
        printf("20 OK\n");
    else
        printf("%s %s\n", sl_status_name(result.status), result.code);
    table->close(table);
    sl_sinks_clean_up(&sinks);
    sl_arena_destroy(call.arena);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_is_not_taken_for_tls),
        cmocka_unit_test(roots_that_cannot_be_read_are_fatal),
    };
    if (argc > 1 && strcmp(argv[1], "request") == 0)
        return request();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
