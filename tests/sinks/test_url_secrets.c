/* A password in a URL is in no error and in no log line: of every scheme, wherever a URL may hold one, and
 * whether the target opens, is refused, or cannot be reached. */
#include "tests/support/fault.h"

#include <stdio.h>
#include <string.h>

#define PW FAULT_PASSWORD

/* Nobody listens there. */
#define HOST "127.0.0.1:1"

static struct fault f;

static void receive(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)request;
    reply->status = 500;
}

static const char *const targets[] = {"s3://bucket/prefix",
                                      "dynamodb://table",
                                      "dynamodb://arn:aws:dynamodb:eu-west-1:123456789012:table/t",
                                      "sqs://queue",
                                      "sqs:arn:aws:sqs:eu-west-1:123456789012:queue",
                                      "sqs://https://sqs.eu-west-1.amazonaws.com/123456789012/queue",
                                      "sns:arn:aws:sns:eu-west-1:123456789012:topic",
                                      "events://bus",
                                      "kinesis://stream",
                                      "firehose://stream",
                                      "opensearch://" HOST "/index",
                                      "jsonl:/dev/null",
                                      "file:/dev/null/folder",
                                      "sqlite:/dev/null/db?table=t",
                                      "stdout:",
                                      "unknown://host/path"};

/* What is put behind a target. (The value of a parameter that is known is no secret.) */
static const char *const params[] = {"endpoint=http://user:" PW "@" HOST "/", "endpoint=http://" PW "@" HOST,
                                     "unknown=" PW, PW "=1", PW};

/* URLs that hold it themselves. */
static const char *const urls[] = {"opensearch://admin:" PW "@" HOST "/index",
                                   "opensearch://" PW "@" HOST "/index",
                                   "opensearch+http://admin:" PW "@" HOST "/index",
                                   "sqs://https://user:" PW "@sqs.eu-west-1.amazonaws.com/123456789012/queue",
                                   "sqs://http://user:" PW "@" HOST "/123456789012/queue",
                                   "https://user:" PW "@hooks.example.com/",
                                   "http://user:" PW "@" HOST "/",
                                   "http://" HOST "/?token=" PW,
                                   "https://hooks.example.com/?token=" PW "#unknown=1",
                                   "s3://user:" PW "@bucket/prefix",
                                   "dynamodb://user:" PW "@table",
                                   "unknown://user:" PW "@host"};

static void look(const char *url, enum sl_status status, const struct sl_error *error)
{
    if (status != SL_OK && !error->text[0])
        fail_msg("%s: nothing is said", url);
    if (strstr(error->text, PW))
        fail_msg("%s: %s", url, error->text);
}

static void look_at(const char *url, const struct sl_result *result)
{
    if ((result->text && strstr(result->text, PW)) || (result->code && strstr(result->code, PW)))
        fail_msg("%s: %s", url, result->text);
}

/* As each kind of target, also as a wrong one. */
static void try_url(const char *url)
{
    struct sl_queue_port *queue = NULL;
    struct sl_table_port *table = NULL;
    struct sl_object_port *objects = NULL;
    struct sl_result result = {0};
    struct sl_error errors[3] = {SL_NO_ERROR, SL_NO_ERROR, SL_NO_ERROR};
    look(url, sl_target_queue(&f.sinks, sl_span_str(url), &queue, &errors[0]), &errors[0]);
    look(url, sl_target_table(&f.sinks, sl_span_str(url), &table, &errors[1]), &errors[1]);
    look(url, sl_target_objects(&f.sinks, sl_span_str(url), &objects, &errors[2]), &errors[2]);
    if (queue && strncmp(url, "stdout", 6) != 0) {
        struct sl_message message = {.body = SL_LIT("{}")};
        fault_send(&f, queue, &message, 1, &result);
        look_at(url, &result);
    }
    if (table) {
        result = fault_put_item(&f, table, "a");
        look_at(url, &result);
    }
    if (objects) {
        result = fault_put_object(&f, objects, "a", "b", false);
        look_at(url, &result);
    }
    if (queue)
        queue->close(queue);
    if (table)
        table->close(table);
    if (objects)
        objects->close(objects);
}

static void no_password_of_a_url_is_said(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        fault_open(&f, receive, NULL);
        for (size_t k = 0; k < sizeof(params) / sizeof(params[0]); k++) {
            char url[300];
            snprintf(url, sizeof(url), "%s%c%s", targets[i], strchr(targets[i], '?') ? '&' : '?', params[k]);
            try_url(url);
        }
        fault_close(&f);
    }
    fault_open(&f, receive, NULL);
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
        try_url(urls[i]);
    fault_close(&f);
}

static void no_password_of_the_environment_is_said(void **state)
{
    (void)state;
    static const char *const names[] = {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_STS",
                                        "AWS_ENDPOINT_URL_DYNAMODB"};
    static const char *const values[] = {"http://user:" PW "@" HOST "/", "http://" HOST "/?" PW, PW,
                                         "ftp://user:" PW "@" HOST};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
            fault_open(&f, receive, NULL);
            fault_set(&f, names[i], values[k]);
            for (size_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++)
                try_url(targets[t]);
            fault_close(&f);
        }
    fault_open(&f, receive, NULL);
    fault_set(&f, "AWS_REGION", PW "!");
    for (size_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++)
        try_url(targets[t]);
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_password_of_a_url_is_said),
        cmocka_unit_test(no_password_of_the_environment_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
