/* Asks Lambda for event source mappings, page by page. */
#include "aws/mappings.h"

#include "aws/answer.h"
#include "base/span.h"
#include "base/url.h"
#include "net/uri.h"

#include <stdlib.h>

#define ANSWER_BYTES (8u * 1024 * 1024)
#define PATH         "/2015-03-31/event-source-mappings/"
#define PAGES        1000

struct sl_mappings {
    struct sl_client client;
    json_t *answer; /* of the last request */
};

const char *sl_mapping_text(const json_t *mapping, const char *name)
{
    const char *text = json_string_value(json_object_get(mapping, name));
    return text ? text : "";
}

enum sl_status sl_mappings_open(struct sl_aws *aws, const char *region, const char *endpoint,
                                struct sl_mappings **out, struct sl_error *error)
{
    struct sl_url url;
    const char *text = sl_endpoint_target(aws->lasting, "lambda:", "mappings", region, endpoint);
    struct sl_mappings *m = sl_arena_zalloc(aws->lasting, sizeof(*m));
    enum sl_status status = sl_url_parse(sl_span_str(text), aws->lasting, &url, error);
    if (status == SL_OK)
        status = sl_client_init(
            &m->client, aws, &(struct sl_client_options){.service = &sl_service_lambda, .url = &url}, error);
    *out = status == SL_OK ? m : NULL;
    return status;
}

void sl_mappings_close(struct sl_mappings *m)
{
    if (!m)
        return;
    json_decref(m->answer);
    m->answer = NULL;
    sl_client_clean_up(&m->client);
}

static enum sl_job_next keep_answer(struct sl_job *job)
{
    struct sl_mappings *m = job->context;
    struct sl_span text;
    if (!sl_answer_object(job, &text))
        return SL_JOB_BROKEN;
    json_decref(m->answer);
    m->answer = json_loadb(text.ptr, text.len, 0, NULL);
    return m->answer ? SL_JOB_DONE : SL_JOB_BROKEN;
}

static enum sl_status ask(struct sl_mappings *m, const char *operation, const char *path, const char *query,
                          const struct sl_call *call, struct sl_error *error)
{
    static const struct sl_job_kind kind = {.answered = keep_answer};
    struct sl_job job = {.kind = &kind,
                         .context = m,
                         .operation = operation,
                         .method = "GET",
                         .path = path,
                         .query = query,
                         .of_no_record = true,
                         .answer_bytes = ANSWER_BYTES};
    sl_job_run(&m->client, &job, 1, call);
    return job.status == SL_OK ? SL_OK : sl_fail(error, job.status, job.code, "%s", job.text);
}

/* A query's value: a function's name or ARN, a marker. */
static const char *encoded(struct sl_arena *arena, const char *text)
{
    struct sl_buffer b;
    sl_buffer_init_in(&b, arena, UINT32_MAX);
    sl_uri_encode(&b, sl_span_str(text), '\0');
    return sl_arena_copy(arena, sl_buffer_span(&b));
}

static enum sl_status take_page(struct sl_mappings *m, sl_mapping_fn take, void *arg, struct sl_error *error)
{
    json_t *list = json_object_get(m->answer, "EventSourceMappings"), *mapping;
    enum sl_status status = SL_OK;
    size_t i;
    if (!json_is_array(list))
        return sl_fail(error, SL_RETRY, "BrokenAnswer",
                       "ListEventSourceMappings: the answer was not understood: it has no list of mappings");
    json_array_foreach(list, i, mapping)
    {
        if (status == SL_OK)
            status = take(arg, mapping, error);
    }
    return status;
}

enum sl_status sl_mappings_list(struct sl_mappings *m, const char *function, const char *source,
                                const struct sl_call *call, sl_mapping_fn take, void *arg,
                                struct sl_error *error)
{
    const char *marker = "";
    for (size_t page = 0; page < PAGES; page++) {
        const char *query = sl_arena_printf(
            call->arena, "%s%sFunctionName=%s%s%s", source ? "EventSourceArn=" : "",
            source ? sl_arena_printf(call->arena, "%s&", encoded(call->arena, source)) : "",
            encoded(call->arena, function), marker[0] ? "&Marker=" : "", encoded(call->arena, marker));
        enum sl_status status = ask(m, "ListEventSourceMappings", PATH, query, call, error);
        if (status == SL_OK)
            status = take_page(m, take, arg, error);
        if (status != SL_OK)
            return status;
        marker = sl_arena_copy(call->arena, sl_span_str(sl_mapping_text(m->answer, "NextMarker")));
        if (!marker[0])
            return SL_OK;
    }
    return sl_fail(error, SL_RETRY, "BrokenAnswer", "ListEventSourceMappings: its pages do not end");
}

enum sl_status sl_mappings_get(struct sl_mappings *m, const char *uuid, const struct sl_call *call,
                               sl_mapping_fn take, void *arg, struct sl_error *error)
{
    const char *path = sl_arena_printf(call->arena, PATH "%s", encoded(call->arena, uuid));
    enum sl_status status = ask(m, "GetEventSourceMapping", path, NULL, call, error);
    return status == SL_OK ? take(arg, m->answer, error) : status;
}
