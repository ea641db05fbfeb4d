/* DeleteObject: an object is removed, if it still is the one that was read (If-Match). */
#include "sinks/result.h"
#include "sinks/s3/s3_private.h"

struct removal {
    const struct sl_object_removal *asked;
    struct sl_sigv4_field field;
    struct sl_result *result;
    bool moved; /* to the region that S3 named */
};

/* 204, without a body. A page of HTML with this status is not S3's. */
static enum sl_job_next answered(struct sl_job *job)
{
    return job->answer->body.len ? SL_JOB_BROKEN : SL_JOB_DONE;
}

/* What S3 itself says; a proxy's page with the same status says nothing. */
static enum sl_job_next refused(struct sl_job *job, const struct sl_refusal *refusal)
{
    struct removal *r = job->context;
    if (job->answer->status == 404 && strcmp(refusal->code, "NoSuchKey") == 0)
        return SL_JOB_DONE;
    if (job->answer->status != 412 || strcmp(refusal->code, "PreconditionFailed") != 0)
        return sl_s3_follow(job, refusal, &r->moved);
    if (!r->asked->etag.ptr)
        return SL_JOB_BROKEN;
    job->status = SL_REJECT;
    job->code = "PreconditionFailed";
    job->text = sl_arena_printf(job->call->arena, "%s: DeleteObject: the object was replaced meanwhile",
                                job->client->name);
    return SL_JOB_DONE;
}

static const struct sl_job_kind remove_kind = {answered, refused};

static bool check(const struct sl_s3 *s3, const struct sl_object_removal *asked, struct sl_result *result,
                  struct sl_arena *arena)
{
    *result = (struct sl_result){.status = SL_OK};
    if (!sl_s3_key_is_good(s3, asked->key, result, arena))
        return false;
    const char *etag = sl_arena_copy(arena, asked->etag);
    if (!asked->etag.ptr || (strlen(etag) == asked->etag.len && sl_s3_is_field(etag)))
        return true;
    sl_result_fail(result, arena, SL_REJECT, "InvalidArgument", "%s: DeleteObject: the entity tag is not one",
                   s3->client.name);
    result->not_sent = true;
    return false;
}

static struct sl_job job_of(const struct sl_s3 *s3, struct removal *r, struct sl_arena *scratch)
{
    bool has_etag = r->asked->etag.ptr;
    const char *etag = sl_arena_printf(scratch, "\"%.*s\"", SL_ARG(r->asked->etag));
    r->field = (struct sl_sigv4_field){SL_LIT("if-match"), sl_span_str(etag)};
    return (struct sl_job){.kind = &remove_kind,
                           .context = r,
                           .operation = "DeleteObject",
                           .method = "DELETE",
                           .success = 204,
                           .path = sl_s3_path(s3, r->asked->key, scratch),
                           .fields = &r->field,
                           .n_fields = has_etag,
                           .of_no_record = true};
}

/* `versions`: of each, which one; NULL: the object, whatever its version. */
static void remove_all(struct sl_object_port *port, const struct sl_object_removal *removals,
                       const struct sl_object_version *versions, size_t n, struct sl_result *results,
                       const struct sl_call *call)
{
    struct sl_s3 *s3 = (struct sl_s3 *)port;
    struct sl_arena *scratch = s3->client.aws->scratch;
    struct removal *list = sl_arena_zalloc(scratch, (n + 1) * sizeof(*list));
    struct sl_job *jobs = sl_arena_zalloc(scratch, (n + 1) * sizeof(*jobs));
    size_t n_jobs = 0;
    sl_s3_begin(s3);
    for (size_t i = 0; i < n; i++) {
        if (!check(s3, &removals[i], &results[i], call->arena))
            continue;
        list[n_jobs] = (struct removal){.asked = &removals[i], .result = &results[i]};
        jobs[n_jobs] = job_of(s3, &list[n_jobs], scratch);
        if (versions)
            jobs[n_jobs].query = sl_s3_version_query(versions[i].version, scratch);
        n_jobs++;
    }
    sl_job_run(&s3->client, jobs, n_jobs, call);
    for (size_t i = 0; i < n_jobs; i++)
        sl_result_job(list[i].result, &jobs[i]);
    sl_arena_reset(scratch);
}

void sl_s3_remove(struct sl_object_port *port, const struct sl_object_removal *removals, size_t n,
                  struct sl_result *results, const struct sl_call *call)
{
    remove_all(port, removals, NULL, n, results, call);
}

void sl_s3_remove_versions(struct sl_object_port *port, const struct sl_object_version *versions, size_t n,
                           struct sl_result *results, const struct sl_call *call)
{
    struct sl_object_removal *removals = sl_arena_zalloc(call->arena, (n + 1) * sizeof(*removals));
    for (size_t i = 0; i < n; i++)
        removals[i].key = versions[i].key;
    remove_all(port, removals, versions, n, results, call);
}
