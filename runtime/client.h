/* A client for the Lambda Runtime API, on libcurl. Usable alone by any C function: it knows nothing of
 * streams.
 *
 * One kept connection; no timeout on `next` (the sandbox may be frozen in between); the payload buffer is
 * sized from Content-Length and reused. Behaves as aws-lambda-cpp does, and mends: init errors, trace id,
 * UTF-8, a lost answer. Source of routes, headers and codes: the Lambda Developer Guide, "Using the Lambda
 * runtime API". */
#ifndef SL_RUNTIME_CLIENT_H
#define SL_RUNTIME_CLIENT_H

#include "base/buffer.h"

struct sl_runtime;

struct sl_runtime_event {
    struct sl_span payload; /* all of these are borrowed until the next call of sl_runtime_next */
    const char *request_id;
    const char *function_arn; /* "" when absent, likewise the next ones */
    const char *trace_id;
    const char *client_context;
    const char *cognito_identity;
    const char *tenant_id;
    const char *content_type;
    int64_t deadline_epoch_ms; /* 0 when absent */
};

/* Event and answer: 6 MiB and 100 bytes (Lambda's own MaxPayloadSize). */
#define SL_RUNTIME_PAYLOAD_BYTES (6 * 1024 * 1024 + 100)

/* `endpoint`: "host:port", or with a scheme and a path (as cargo-lambda gives it). */
enum sl_status sl_runtime_open(const char *endpoint, const char *user_agent, struct sl_runtime **out,
                               struct sl_error *error) SL_MUST_USE;
void sl_runtime_close(struct sl_runtime *rt);

/* `next` then also ends when this descriptor gets readable: SL_FATAL, code "Stopped". */
void sl_runtime_stop_on(struct sl_runtime *rt, int fd);

/* Waits for the next event. SL_RETRY: it may be called again (after a pause of the caller's; code "NoEvent"
 * says that nothing is wrong). SL_REJECT: an event came that cannot be taken (too large): `out->request_id`
 * is there to fail it with. SL_FATAL: exit. */
enum sl_status sl_runtime_next(struct sl_runtime *rt, struct sl_runtime_event *out,
                               struct sl_error *error) SL_MUST_USE;

/* Answers the event. SL_OK also when the platform has gone on meanwhile (400, 403, 410, 413: said in `error`,
 * whose status is then SL_REJECT): go on with `next`. SL_RETRY: the answer may not have arrived; go on with
 * `next` too, which serves the event again if so. SL_FATAL: exit. A connection that broke is opened once
 * again: the server takes one answer only. A body beyond SL_RUNTIME_PAYLOAD_BYTES is reported as a function
 * error instead, `Function.ResponseSizeTooLarge`. */
enum sl_status sl_runtime_respond(struct sl_runtime *rt, const char *request_id, struct sl_span body,
                                  const char *content_type, struct sl_error *error) SL_MUST_USE;

/* A function error. `type` is "Category.Reason", e.g. "Function.NotAStreamEvent". */
enum sl_status sl_runtime_fail(struct sl_runtime *rt, const char *request_id, const char *type,
                               struct sl_span message, struct sl_error *error) SL_MUST_USE;

/* Before the first `next` only; then exit with a status other than 0. */
enum sl_status sl_runtime_init_error(struct sl_runtime *rt, const char *type, struct sl_span message,
                                     struct sl_error *error) SL_MUST_USE;

#endif
