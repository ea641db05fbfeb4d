/* SPDX-FileCopyrightText: 2026 The Sluice authors
 * SPDX-License-Identifier: Apache-2.0 */

/* A Lambda function in C, on provided.al2 or provided.al2023:
 *
 *   #include <sluice/lambda.h>
 *   static void handler(const struct sl_lambda_event *event, struct sl_lambda_answer *answer, void *arg)
 *   {
 *       sl_lambda_succeed(answer, event->payload, event->payload_bytes, "application/json");
 *   }
 *   int main(void) { return sl_lambda_run(handler, NULL); }
 *
 *   cc -o bootstrap function.c $(pkg-config --cflags --libs sluice-runtime)
 *
 * Public: installed as sluice/lambda.h with libsluice-runtime.a, which needs libcurl and nothing else. C11
 * and C++11. It knows nothing of streams and records: that is what handlers are for (sluice/handler.h).
 *
 * One event at a time, as Lambda works; one thread. Out of memory ends the process with a message, and Lambda
 * starts another. */
#ifndef SLUICE_LAMBDA_H
#define SLUICE_LAMBDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One event, as `GET /runtime/invocation/next` brought it. Borrowed until the handler returns. A text that
 * the Runtime API did not send is "". */
struct sl_lambda_event {
    const char *payload;  /* a NUL stands behind it, and may be within it */
    size_t payload_bytes; /* 6 MB at most */
    const char *request_id, *function_arn;
    const char *trace_id;         /* X-Ray's; also in _X_AMZN_TRACE_ID while the handler runs */
    const char *client_context;   /* JSON, from the caller's SDK */
    const char *cognito_identity; /* JSON */
    const char *tenant_id;
    const char *content_type;
    int64_t deadline_epoch_ms; /* 0: not known */
};

/* How much time is left, by the wall clock; 0 when it is over, INT64_MAX when no deadline is known. */
int64_t sl_lambda_remaining_ms(const struct sl_lambda_event *event);

/* What the invocation ends with. The last call counts; without one, the answer is `null`. The bytes are
 * copied. More than 6 MB become the function error Function.ResponseSizeTooLarge. */
struct sl_lambda_answer;
void sl_lambda_succeed(struct sl_lambda_answer *answer, const void *body, size_t bytes,
                       const char *content_type); /* NULL: application/json */

/* A function error: Lambda retries, or tells the caller. `type` is "Category.Reason" ("Function.BadInput");
 * `message` is any text. */
void sl_lambda_fail(struct sl_lambda_answer *answer, const char *type, const char *message);

typedef void (*sl_lambda_fn)(const struct sl_lambda_event *event, struct sl_lambda_answer *answer, void *arg);

/* Serves events until the environment is shut down. Returns what main returns: 1, after a line on standard
 * error, when the Runtime API cannot be used. A lost connection is repaired; an answer that may not have
 * arrived is sent again. */
int sl_lambda_run(sl_lambda_fn handler, void *arg);

/* Instead of sl_lambda_run, when the function cannot start (a setting is wrong): tells Lambda, which shows it
 * to the caller. Returns 1, for main. */
int sl_lambda_init_failed(const char *type, const char *message);

#ifdef __cplusplus
}
#endif

#endif
