/* The loop of a Lambda function, for whoever links libsluice-runtime. */
#include "runtime/lambda/lambda.h"

#include "base/error.h"
#include "base/span.h"
#include "base/version.h"
#include "runtime/api/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FIRST_PAUSE_MS 50 /* doubled with each failure in a row */
#define MAX_FAILURES   8
#define TYPE_BYTES     256

#define EXPORT __attribute__((visibility("default")))

struct sl_lambda_answer {
    struct sl_buffer body; /* or the error's message */
    bool is_error;
    char kind[TYPE_BYTES]; /* content type, or the error's type */
};

/* ---- answers ---- */

static void set_answer(struct sl_lambda_answer *answer, bool is_error, const char *kind, struct sl_span body)
{
    sl_buffer_reset(&answer->body);
    sl_buffer_add_span(&answer->body, body);
    answer->is_error = is_error;
    snprintf(answer->kind, sizeof(answer->kind), "%s", kind);
    if (!answer->body.failed)
        return;
    /* The Runtime API client says the same of a body that is a little too long. */
    sl_buffer_reset(&answer->body);
    sl_buffer_printf(&answer->body, "the answer has %zu bytes, and Lambda takes %d", body.len,
                     SL_RUNTIME_PAYLOAD_BYTES);
    answer->is_error = true;
    snprintf(answer->kind, sizeof(answer->kind), "Function.ResponseSizeTooLarge");
}

EXPORT void sl_lambda_succeed(struct sl_lambda_answer *answer, const void *body, size_t bytes,
                              const char *content_type)
{
    set_answer(answer, false, content_type ? content_type : "application/json", sl_span(body, bytes));
}

EXPORT void sl_lambda_fail(struct sl_lambda_answer *answer, const char *type, const char *message)
{
    set_answer(answer, true, type ? type : "Function.Error", sl_span_str(message ? message : ""));
}

EXPORT int64_t sl_lambda_remaining_ms(const struct sl_lambda_event *event)
{
    struct timespec now;
    if (!event->deadline_epoch_ms)
        return INT64_MAX;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t left = event->deadline_epoch_ms - ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    return left > 0 ? left : 0;
}

/* ---- events ---- */

static struct sl_lambda_event event_of(const struct sl_runtime_event *from)
{
    return (struct sl_lambda_event){.payload = from->payload.ptr,
                                    .payload_bytes = from->payload.len,
                                    .request_id = from->request_id,
                                    .function_arn = from->function_arn,
                                    .trace_id = from->trace_id,
                                    .client_context = from->client_context,
                                    .cognito_identity = from->cognito_identity,
                                    .tenant_id = from->tenant_id,
                                    .content_type = from->content_type,
                                    .deadline_epoch_ms = from->deadline_epoch_ms};
}

static enum sl_status answer_with(struct sl_runtime *rt, const struct sl_runtime_event *event,
                                  const struct sl_lambda_answer *answer, struct sl_error *error)
{
    struct sl_span body = sl_buffer_span(&answer->body);
    return answer->is_error ? sl_runtime_fail(rt, event->request_id, answer->kind, body, error)
                            : sl_runtime_respond(rt, event->request_id, body, answer->kind, error);
}

static enum sl_status one_round(struct sl_runtime *rt, sl_lambda_fn handler, void *arg,
                                struct sl_lambda_answer *answer, struct sl_error *error)
{
    struct sl_runtime_event event;
    enum sl_status status = sl_runtime_next(rt, &event, error);
    if (status == SL_OK) {
        const struct sl_lambda_event shown = event_of(&event);
        sl_runtime_export_trace_id(event.trace_id);
        set_answer(answer, false, "application/json", SL_LIT("null"));
        handler(&shown, answer, arg);
        return answer_with(rt, &event, answer, error);
    }
    if (status == SL_REJECT) {
        struct sl_error why = *error;
        sl_error_clear(error);
        return sl_runtime_fail(rt, event.request_id, "Function.EventTooLarge", sl_span_str(why.text), error);
    }
    return status;
}

/* ---- the loop ---- */

static void pause_ms(int64_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

/* After a round with an error: says it, waits, and returns whether to go on. */
static bool recover(enum sl_status status, const struct sl_error *error, int *failures)
{
    bool is_idle = strcmp(error->code, "NoEvent") == 0;
    *failures = status == SL_RETRY && !is_idle ? *failures + 1 : 0;
    if (!is_idle)
        fprintf(stderr, "sluice-runtime: %s: %s\n", error->code, error->text);
    if (status == SL_FATAL || *failures >= MAX_FAILURES)
        return false;
    pause_ms((int64_t)FIRST_PAUSE_MS << (*failures ? *failures - 1 : 0));
    return true;
}

static enum sl_status open_runtime(struct sl_runtime **rt)
{
    struct sl_error error = SL_NO_ERROR;
    const char *endpoint = getenv("AWS_LAMBDA_RUNTIME_API");
    enum sl_status status = SL_FATAL;
    if (!endpoint)
        (void)sl_fail(&error, SL_FATAL, "NoRuntimeApi",
                      "AWS_LAMBDA_RUNTIME_API is not set: this program runs in Lambda, or under "
                      "`sluice replay --bootstrap`");
    else
        status = sl_runtime_open(endpoint, sl_user_agent, rt, &error);
    if (status != SL_OK)
        fprintf(stderr, "sluice-runtime: %s: %s\n", error.code, error.text);
    return status;
}

EXPORT int sl_lambda_run(sl_lambda_fn handler, void *arg)
{
    struct sl_runtime *rt;
    struct sl_lambda_answer answer = {.is_error = false};
    struct sl_error error;
    int failures = 0;
    if (open_runtime(&rt) != SL_OK)
        return 1;
    sl_buffer_init(&answer.body, SL_RUNTIME_PAYLOAD_BYTES + 1); /* the client refuses what is longer */
    for (bool goes_on = true; goes_on;) {
        error = (struct sl_error)SL_NO_ERROR;
        enum sl_status status = one_round(rt, handler, arg, &answer, &error);
        if (status == SL_OK && error.status == SL_OK)
            failures = 0;
        else
            goes_on = recover(status, &error, &failures);
    }
    sl_buffer_clean_up(&answer.body);
    sl_runtime_close(rt);
    return 1;
}

EXPORT int sl_lambda_init_failed(const char *type, const char *message)
{
    struct sl_runtime *rt;
    struct sl_error error = SL_NO_ERROR;
    fprintf(stderr, "sluice-runtime: %s: %s\n", type, message);
    if (open_runtime(&rt) != SL_OK)
        return 1;
    if (sl_runtime_init_error(rt, type, sl_span_str(message), &error) != SL_OK)
        fprintf(stderr, "sluice-runtime: %s: %s\n", error.code, error.text);
    sl_runtime_close(rt);
    return 1;
}
