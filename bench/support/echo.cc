// aws-lambda-cpp's own example of an echo: the yardstick of bench_invoke.
#include <aws/lambda-runtime/runtime.h>

int main()
{
    aws::lambda_runtime::run_handler([](const aws::lambda_runtime::invocation_request &request) {
        return aws::lambda_runtime::invocation_response::success(request.payload, "application/json");
    });
}
