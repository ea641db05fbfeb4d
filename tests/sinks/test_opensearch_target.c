/* opensearch:// targets: what their text may be, and what is refused before anything is sent. */
#include "tests/support/fault.h"

static struct fault f;

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)reply;
    fail_msg("%s is asked for: opening a target sends nothing", request->path);
}

static void targets_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *url, *says; /* NULL: it is fine */
    } cases[] = {
        {"opensearch://h/i", NULL},
        {"opensearch://h:9200/a.b-c_d?tls=off&auth=none&numbers=text&order=script&in_flight=4&reject=x",
         NULL},
        {"opensearch://search-x-abc.eu-west-1.es.amazonaws.com/i", NULL},
        {"opensearch://vpc-x.cn-north-1.es.amazonaws.com.cn/i?role=arn:aws-cn:iam::123456789012:role/r",
         NULL},
        {"opensearch://search-x-abc.eu-west-1.es.amazonaws.com/i?region=us-east-1", "region of its ARN"},
        {"opensearch://abc.eu-west-1.aoss.amazonaws.com/i", "Serverless"},
        {"opensearch:h/i", "opensearch://HOST/INDEX"},
        {"opensearch://h", "opensearch://HOST/INDEX"},
        {"opensearch://h/", "name of an index"},
        {"opensearch://h/a*", "name of an index"},
        {"opensearch://h/a,b", "name of an index"},
        {"opensearch://h/A", "name of an index"},
        {"opensearch://h/_all", "name of an index"},
        {"opensearch://h/a/b", "name of an index"},
        {"opensearch://u:p@h/i", "a user or a password"},
        {"opensearch://h h/i", "HOST"},
        {"opensearch:///i", "HOST"},
        {"opensearch://h/i?tls=no", "tls=no is neither on nor off"},
        {"opensearch://h/i?numbers=x", "numbers=x"},
        {"opensearch://h/i?order=x", "order=x"},
        {"opensearch://h/i?auth=x", "auth=x"},
        {"opensearch://h/i?auth=basic", "OPENSEARCH_USERNAME"},
        {"opensearch://h/i?region=us-east-1", "region"},
        {"opensearch://h/i?endpoint=http://x", "endpoint"},
        {"opensearch://h/i?nonsense=1", "nonsense"},
    };
    fault_open(&f, answer, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_table_port *port = NULL;
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = sl_target_table(&f.sinks, sl_span_str(cases[i].url), &port, &error);
        if ((status == SL_OK) != !cases[i].says || (cases[i].says && !strstr(error.text, cases[i].says)))
            fail_msg("%s: %s", cases[i].url, error.text);
        if (port)
            port->close(port);
    }
    fault_set(&f, "OPENSEARCH_USERNAME", "me");
    fault_set(&f, "OPENSEARCH_PASSWORD", "secret");
    struct sl_table_port *port = NULL;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_target_table(&f.sinks, SL_LIT("opensearch://h/i?auth=basic&tls=off"), &port, &error),
                     SL_FATAL);
    assert_non_null(strstr(error.text, "in the clear"));
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
