/* xray:?region= : trace spans for CloudWatch, as OTLP over HTTP in JSON, signed (CloudWatch user guide, "OTLP
 * Endpoints"). A message is one request of an exporter; nothing keeps an order. */
#include "aws/answer.h"
#include "aws/job.h"
#include "base/span.h"
#include "sinks/result.h"
#include "sinks/services.h"

#include <stdlib.h>

#define PATH          "/v1/traces"
#define MESSAGE_BYTES ((size_t)1024 * 1024)

struct xray {
    struct sl_queue_port port;
    struct sl_client client;
};

static bool is_nothing(struct sl_span json)
{
    return !json.len || sl_span_is(json, "0") || sl_span_is(json, "\"0\"") || sl_span_is(json, "null");
}

/* A whole answer that refuses some spans is no success, and asking again would not help (OTLP, "Partial
 * Success"). An empty body is the empty message. */
static enum sl_job_next answered(struct sl_job *job)
{
    struct sl_span object;
    if (job->answer->body.len == 0)
        return SL_JOB_DONE;
    if (!sl_answer_object(job, &object))
        return SL_JOB_BROKEN;
    struct sl_span partial = sl_answer_container(object, "partialSuccess", '{');
    if (!partial.ptr || is_nothing(sl_json_walk_member(partial, SL_LIT("rejectedSpans"))))
        return SL_JOB_DONE;
    job->code = "PartialSuccess";
    job->text = sl_arena_printf(job->call->arena, "%s: %s: some of the spans were refused", job->client->name,
                                job->operation);
    return SL_JOB_FATAL;
}

static const struct sl_job_kind kind = {.answered = answered};

static void apply(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                  struct sl_result *results, const struct sl_call *call)
{
    struct xray *xray = (struct xray *)port;
    for (size_t i = 0; i < n; i++) {
        struct sl_job job = {.kind = &kind,
                             .operation = "ExportTraces",
                             .path = PATH,
                             .parts = &messages[i].body,
                             .n_parts = 1,
                             .of_no_record = true};
        sl_job_run(&xray->client, &job, 1, call);
        sl_result_job(&results[i], &job);
    }
    sl_arena_reset(xray->client.aws->scratch);
}

static void close_port(struct sl_queue_port *port)
{
    struct xray *xray = (struct xray *)port;
    sl_client_clean_up(&xray->client);
    free(xray);
}

enum sl_status sl_xray_open(struct sl_sinks *sinks, struct sl_span text, struct sl_queue_port **out,
                            struct sl_error *error)
{
    struct sl_aws *aws = sl_sinks_aws(sinks);
    struct sl_url url;
    struct xray *xray = calloc(1, sizeof(*xray));
    if (!xray)
        sl_die("out of memory: a target of spans");
    xray->port = (struct sl_queue_port){
        .size = sizeof(xray->port), .max_message_bytes = MESSAGE_BYTES, .apply = apply, .close = close_port};
    text = sl_span(sl_arena_copy(aws->lasting, text), text.len);
    enum sl_status status = sl_url_parse(text, aws->lasting, &url, error);
    if (status == SL_OK && url.rest.len)
        status = sl_fail(error, SL_FATAL, "InvalidTarget",
                         "target %.*s: write it as xray: or xray:?region=REGION", SL_ARG(url.shown));
    if (status == SL_OK)
        status = sl_client_init(&xray->client, aws,
                                &(struct sl_client_options){.service = &sl_service_xray, .url = &url}, error);
    if (status == SL_OK)
        status = sl_url_done(&url, SL_CLIENT_PARAMS, error);
    if (status == SL_OK)
        *out = &xray->port;
    else
        close_port(&xray->port);
    return status;
}
