#include "tests/support/test.h"

#include "tests/support/aws_call.h"

struct taken {
    struct sl_arena *arena;
    struct sl_span body;
    bool is_absent;
};

static enum sl_job_next take(struct sl_job *job)
{
    struct taken *taken = job->context;
    struct sl_span body = sl_buffer_span(&job->answer->body);
    taken->body = sl_span(sl_arena_copy(taken->arena, body), body.len);
    return SL_JOB_DONE;
}

static enum sl_job_next refuse(struct sl_job *job, const struct sl_refusal *error)
{
    struct taken *taken = job->context;
    (void)error;
    taken->is_absent = job->answer->status == 404;
    return taken->is_absent && job->client->service == &sl_service_s3 ? SL_JOB_DONE : SL_JOB_JUDGE;
}

static const struct sl_job_kind kind = {take, refuse};

static struct taken run(struct sl_sinks *sinks, struct sl_arena *arena, const struct sl_service *service,
                        struct sl_job *job)
{
    struct taken taken = {.arena = arena};
    struct sl_client client;
    struct sl_url url;
    struct sl_error error = {.status = SL_OK};
    struct sl_call call = {arena, INT64_MAX};
    job->answer_bytes = 64 * 1024 * 1024;
    job->kind = &kind;
    job->context = &taken;
    if (sl_url_parse(SL_LIT("test:"), arena, &url, &error) != SL_OK ||
        sl_client_init(&client, sl_sinks_aws(sinks),
                       &(struct sl_client_options){.service = service, .url = &url}, &error) != SL_OK)
        fail_msg("%s", error.text);
    sl_job_run(&client, job, 1, &call);
    sl_client_clean_up(&client);
    if (job->status != SL_OK)
        fail_msg("%s", job->text);
    return taken;
}

struct sl_span aws_call(struct sl_sinks *sinks, struct sl_arena *arena, const struct sl_service *service,
                        const char *operation, const char *body)
{
    struct sl_span part = json_span(body);
    struct sl_job job = {.operation = operation, .parts = &part, .n_parts = 1};
    return run(sinks, arena, service, &job).body;
}

const char *aws_s3(struct sl_sinks *sinks, struct sl_arena *arena, const char *method, const char *path,
                   size_t *len)
{
    struct sl_job job = {.operation = method,
                         .method = method,
                         .path = path,
                         .success = strcmp(method, "DELETE") == 0 ? 204 : 200};
    struct taken taken = run(sinks, arena, &sl_service_s3, &job);
    if (len)
        *len = taken.body.len;
    return taken.is_absent ? NULL : taken.body.ptr;
}
