/* The echo of aws-lambda-cpp's example (echo.cc), with our runtime library: bench_invoke runs both. */
#include "runtime/lambda/lambda.h"

static void echo(const struct sl_lambda_event *event, struct sl_lambda_answer *answer, void *arg)
{
    (void)arg;
    sl_lambda_succeed(answer, event->payload, event->payload_bytes, "application/json");
}

int main(void)
{
    return sl_lambda_run(echo, NULL);
}
