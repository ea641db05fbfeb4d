/* A client for the Lambda Runtime API, on libcurl. Any C function can use it: it knows nothing of streams.
 *
 * One kept connection; no timeout on `next` (the sandbox may be frozen in between); the payload buffer is
 * sized from Content-Length and reused. Behaves as aws-lambda-cpp does, and repairs: init errors, trace
 * id, UTF-8, a lost answer. Source of routes, headers and codes: the Lambda Developer Guide, "Using the
 * Lambda runtime API". */
#ifndef SL_RUNTIME_API_CLIENT_H
#define SL_RUNTIME_API_CLIENT_H

#include "base/buffer.h"

struct sl_runtime;

struct sl_runtime_event {
    struct sl_span payload; /* all of these are borrowed until the next call of sl_runtime_next; a NUL stands
                               behind it */
    const char *request_id;
    const char *function_arn; /* "" when absent; the same holds for the texts below */
    const char *trace_id;
    const char *client_context;
    const char *cognito_identity;
    const char *tenant_id;
    const char *content_type;
    int64_t deadline_epoch_ms; /* 0 when absent */
};

/* Event and answer: 6 MiB and 100 bytes (Lambda's own MaxPayloadSize). */
#define SL_RUNTIME_PAYLOAD_BYTES (6 * 1024 * 1024 + 100)

/* `endpoint`: "host:port", or with a scheme and a path (as cargo-lambda sets it). */
enum sl_status sl_runtime_open(const char *endpoint, const char *user_agent, struct sl_runtime **out,
                               struct sl_error *error) SL_MUST_USE;
void sl_runtime_close(struct sl_runtime *rt);

/* From then on `next` also ends when this descriptor becomes readable: SL_FATAL, code "Stopped". */
void sl_runtime_stop_on(struct sl_runtime *rt, int fd);

/* The descriptor of the connection that the last event came on; -1: it is not known. */
int sl_runtime_connection(const struct sl_runtime *rt);

/* What has to be looked at while `next` waits. `turn` is called before each wait, and when `fd` (-1: none) is
 * readable or `wait_ms` is over. */
struct sl_runtime_beside {
    void *self;
    void (*turn)(void *self);
    int (*fd)(void *self);
    int (*wait_ms)(void *self);
};

/* Borrows it until the client is closed. */
void sl_runtime_beside(struct sl_runtime *rt, const struct sl_runtime_beside *beside);

/* The code of an error that is of this process and not of the Runtime API: it cannot open a connection,
 * because it has no descriptor left. */
#define SL_RUNTIME_NO_DESCRIPTORS "NoDescriptors"

/* Waits for the next event. SL_RETRY: call it again after a pause; code "NoEvent" says that nothing is
 * wrong. SL_REJECT: the event cannot be taken (too large); fail it with `out->request_id`. SL_FATAL: exit. */
enum sl_status sl_runtime_next(struct sl_runtime *rt, struct sl_runtime_event *out,
                               struct sl_error *error) SL_MUST_USE;

/* Sets _X_AMZN_TRACE_ID, where SDKs look for the event's trace id; "" removes it. */
void sl_runtime_export_trace_id(const char *trace_id);

/* Answers the event. SL_OK: go on with `next`. Also SL_OK when the platform refuses the answer because it has
 * moved on (400, 403, 410, 413); `error` then says so, with the status SL_REJECT. SL_RETRY: the answer may
 * not have arrived; go on with `next`, which serves the event again in that case. SL_FATAL: exit. After a
 * broken connection the answer is sent once more: the server accepts only one. A body beyond
 * SL_RUNTIME_PAYLOAD_BYTES is reported as a function error instead, `Function.ResponseSizeTooLarge`. */
enum sl_status sl_runtime_respond(struct sl_runtime *rt, const char *request_id, struct sl_span body,
                                  const char *content_type, struct sl_error *error) SL_MUST_USE;

/* Fails the event with a function error. `type` is "Category.Reason", such as "Function.NotAStreamEvent". */
enum sl_status sl_runtime_fail(struct sl_runtime *rt, const char *request_id, const char *type,
                               struct sl_span message, struct sl_error *error) SL_MUST_USE;

/* Only before the first `next`; then exit with a status other than 0. */
enum sl_status sl_runtime_init_error(struct sl_runtime *rt, const char *type, struct sl_span message,
                                     struct sl_error *error) SL_MUST_USE;

#endif
