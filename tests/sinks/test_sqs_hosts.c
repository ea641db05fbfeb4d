/* Queue URLs and ARNs in every form that AWS issues, and others: where requests go, and for which Region they
 * are signed. */
#include "tests/support/test.h"

#include "aws/sources.h"
#include "sinks/queues/queue.h"
#include "sinks/services.h"
#include "sinks/target.h"

#include <stdio.h>

#define USUAL(region) "https://sqs." region ".amazonaws.com"

static const struct {
    const char *target, *host, *region; /* host NULL: refused */
    const char *variable;               /* set beside AWS_REGION=eu-west-3; NULL: none */
} cases[] = {
    {"sqs://queue", USUAL("eu-west-3"), "eu-west-3", NULL},
    {"sqs://https://sqs.us-west-2.amazonaws.com/123456789012/q", USUAL("us-west-2"), "us-west-2", NULL},
    {"sqs://https://us-west-2.queue.amazonaws.com/123456789012/q", USUAL("us-west-2"), "us-west-2", NULL},
    {"sqs://https://queue.amazonaws.com/123456789012/q", USUAL("us-east-1"), "us-east-1", NULL},
    {"sqs://https://sqs-fips.us-west-2.amazonaws.com/123456789012/q",
     "https://sqs-fips.us-west-2.amazonaws.com", "us-west-2", NULL},
    {"sqs://https://sqs.us-west-2.api.aws/123456789012/q", "https://sqs.us-west-2.api.aws", "us-west-2",
     NULL},
    {"sqs://https://sqs-fips.us-west-2.api.aws/123456789012/q", "https://sqs-fips.us-west-2.api.aws",
     "us-west-2", NULL},
    {"sqs://https://vpce-0ab12-cd34.sqs.us-west-2.vpce.amazonaws.com/123456789012/q",
     "https://vpce-0ab12-cd34.sqs.us-west-2.vpce.amazonaws.com", "us-west-2", NULL},
    {"sqs://https://vpce-0ab12-cd34-us-west-2a.sqs.us-west-2.vpce.amazonaws.com/123456789012/q",
     "https://vpce-0ab12-cd34-us-west-2a.sqs.us-west-2.vpce.amazonaws.com", "us-west-2", NULL},
    {"sqs://https://sqs.us-gov-west-1.amazonaws.com/123456789012/q", USUAL("us-gov-west-1"), "us-gov-west-1",
     NULL},
    {"sqs://https://sqs.us-iso-east-1.c2s.ic.gov/123456789012/q", "https://sqs.us-iso-east-1.c2s.ic.gov",
     "us-iso-east-1", NULL},
    {"sqs://https://sqs.us-isob-east-1.sc2s.sgov.gov/123456789012/q",
     "https://sqs.us-isob-east-1.sc2s.sgov.gov", "us-isob-east-1", NULL},
    {"sqs://https://sqs.cn-north-1.amazonaws.com.cn/123456789012/q",
     "https://sqs.cn-north-1.amazonaws.com.cn", "cn-north-1", NULL},
    {"sqs://https://cn-north-1.queue.amazonaws.com.cn/123456789012/q",
     "https://sqs.cn-north-1.amazonaws.com.cn", "cn-north-1", NULL},
    {"sqs://https://sqs.eusc-de-east-1.amazonaws.eu/123456789012/q",
     "https://sqs.eusc-de-east-1.amazonaws.eu", "eusc-de-east-1", NULL},
    {"sqs:arn:aws:sqs:us-west-2:123456789012:q", USUAL("us-west-2"), "us-west-2", NULL},
    {"sqs:arn:aws-cn:sqs:cn-north-1:123456789012:q", "https://sqs.cn-north-1.amazonaws.com.cn", "cn-north-1",
     "AWS_REGION=cn-northwest-1"},
    {"sqs:arn:aws-us-gov:sqs:us-gov-west-1:123456789012:q", NULL, NULL, NULL}, /* keys of another partition */
    {"sqs:arn:aws-us-gov:sqs:us-gov-west-1:123456789012:q?region=us-gov-west-1", USUAL("us-gov-west-1"),
     "us-gov-west-1", NULL},
    {"sqs:arn:aws:sqs:us-gov-west-1:123456789012:q", NULL, NULL, NULL},
    /* an emulator, or a host of one's own: as it stands */
    {"sqs://http://localhost:4566/000000000000/q?region=us-east-1", "http://localhost:4566", "us-east-1",
     NULL},
    {"sqs://http://localhost:4566/000000000000/q", "http://localhost:4566", "eu-west-3", NULL},
    {"sqs://https://queues.example.com/123456789012/q?region=us-west-2", "https://queues.example.com",
     "us-west-2", NULL},
    {"sqs://https://sqs.us-west-2.amazonaws.com.evil.example/123456789012/q?region=us-west-2",
     "https://sqs.us-west-2.amazonaws.com.evil.example", "us-west-2", NULL},
    {"sqs://https://sqs.us-west-2.amazonaws.com/123456789012/q?region=us-east-1", NULL, NULL, NULL},
    {"sqs://https://u:PW@queues.example.com/123456789012/q", NULL, NULL, NULL},
    /* what the SDKs are told counts for the usual hosts */
    {"sqs://https://sqs.us-west-2.amazonaws.com/123456789012/q", "http://127.0.0.1:4566", "us-west-2",
     "AWS_ENDPOINT_URL=http://127.0.0.1:4566"},
    {"sqs://https://sqs.us-west-2.amazonaws.com/123456789012/q", "https://sqs-fips.us-west-2.amazonaws.com",
     "us-west-2", "AWS_USE_FIPS_ENDPOINT=true"},
    {"sqs://http://localhost:4566/000000000000/q?endpoint=http://localhost:4567", "http://localhost:4567",
     "eu-west-3", NULL},
};

static void each_form_goes_where_it_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *list[] = {cases[i].variable && strncmp(cases[i].variable, "AWS_REGION", 10) == 0
                                  ? cases[i].variable
                                  : "AWS_REGION=eu-west-3",
                              "HOME=/nowhere", cases[i].variable, NULL};
        const struct sl_vars vars = {.list = list};
        struct sl_log log;
        struct sl_sinks sinks;
        struct sl_queue_port *port = NULL;
        struct sl_error error = SL_NO_ERROR;
        sl_log_init(&log, -1, SL_OFF, SL_LOG_TEXT, sl_clock_system());
        sl_sinks_init(&sinks, sl_clock_system(), &log, &vars);
        enum sl_status status = sl_sqs_open(&sinks, sl_span_str(cases[i].target), &port, &error);
        struct sl_queue *queue = (struct sl_queue *)port;
        if (status == SL_OK)
            status = sl_client_ready(&queue->client, &error);
        if ((status == SL_OK) != (cases[i].host != NULL))
            fail_msg("%s: %s", cases[i].target, status == SL_OK ? queue->client.endpoint.base : error.text);
        if (status == SL_OK) {
            assert_string_equal(queue->client.endpoint.base, cases[i].host);
            assert_string_equal(queue->client.region, cases[i].region);
        }
        assert_null(strstr(error.text, "PW"));
        if (port)
            port->close(port);
        sl_sinks_clean_up(&sinks);
        sl_log_clean_up(&log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_form_goes_where_it_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
