/* PutObject: one PUT per object, with its SHA-256 signed and its CRC-32 checked on both sides. */
#include "sinks/result.h"
#include "sinks/s3/s3_private.h"

#define OBJECT_FIELDS 12

struct put {
    struct sl_s3 *s3;
    const struct sl_object *object;
    const char *etag, *note; /* NULL: the object is not a rewritten one */
    struct sl_sigv4_field fields[OBJECT_FIELDS];
    size_t n_fields;
    char crc[SL_S3_CRC_BYTES];
    size_t index;
    bool moved; /* to the region that S3 named */
};

/* ---- answers ---- */

static enum sl_job_next refused(struct sl_job *job, const struct sl_refusal *refusal)
{
    struct put *put = job->context;
    /* Only S3 itself knows that the object is there: a proxy's page with the same status proves nothing. */
    bool is_other = (job->answer->status == 412 && strcmp(refusal->code, "PreconditionFailed") == 0) ||
                    (put->etag && job->answer->status == 404 && strcmp(refusal->code, "NoSuchKey") == 0);
    if (is_other && put->etag) {
        job->status = SL_REJECT;
        job->code = "PreconditionFailed";
        job->text = sl_arena_printf(job->call->arena, "%s: PutObject: the object was replaced meanwhile",
                                    job->client->name);
        return SL_JOB_DONE;
    }
    if (is_other)
        return put->object->content_named ? SL_JOB_DONE : SL_JOB_JUDGE;
    return sl_s3_follow(job, refusal, &put->moved);
}

static enum sl_job_next answered(struct sl_job *job)
{
    const struct put *put = job->context;
    struct sl_span theirs = sl_http_header(job->answer, "x-amz-checksum-crc32");
    /* PutObject answers with headers alone. */
    if (job->answer->body.len || !sl_http_header(job->answer, "etag").len)
        return SL_JOB_BROKEN;
    return theirs.len && !sl_span_is(theirs, put->crc) ? SL_JOB_BROKEN : SL_JOB_DONE;
}

static const struct sl_job_kind put_kind = {answered, refused};

/* ---- requests ---- */

static void add(struct put *put, const char *name, const char *value)
{
    if (value)
        put->fields[put->n_fields++] = (struct sl_sigv4_field){sl_span_str(name), sl_span_str(value)};
}

static void fill_fields(struct put *put)
{
    const struct sl_s3 *s3 = put->s3;
    const struct sl_object *object = put->object;
    sl_s3_crc(object->body, put->crc);
    add(put, "content-type", object->content_type ? object->content_type : "application/octet-stream");
    add(put, "content-encoding", object->content_encoding);
    add(put, "x-amz-checksum-crc32", put->crc);
    add(put, "if-none-match", !put->etag && (object->content_named || s3->never_replace) ? "*" : NULL);
    add(put, "if-match", put->etag);
    add(put, "x-amz-meta-sluice-erased", put->note);
    add(put, "x-amz-storage-class", s3->storage_class);
    add(put, "x-amz-server-side-encryption", s3->sse);
    add(put, "x-amz-server-side-encryption-aws-kms-key-id", s3->kms_key);
    add(put, "x-amz-tagging", s3->tags);
}

static bool check(const struct sl_s3 *s3, const struct sl_object *object, struct sl_result *result,
                  struct sl_arena *arena)
{
    if (!sl_s3_key_is_good(s3, object->key, result, arena))
        return false;
    if (!sl_s3_is_field(object->content_type) || !sl_s3_is_field(object->content_encoding))
        sl_result_fail(result, arena, SL_REJECT, "InvalidArgument",
                       "%s: the object's content type or encoding cannot be a header's value",
                       s3->client.name);
    else if (object->body.len > SL_S3_OBJECT_BYTES)
        sl_result_fail(result, arena, SL_REJECT, "EntityTooLarge",
                       "%s: the object has %zu bytes; one PUT takes 5 GiB", s3->client.name,
                       object->body.len);
    else
        return true;
    result->not_sent = true;
    return false;
}

static struct sl_job job_of(struct put *put, struct sl_arena *scratch)
{
    fill_fields(put);
    return (struct sl_job){.kind = &put_kind,
                           .context = put,
                           .operation = "PutObject",
                           .method = "PUT",
                           .path = sl_s3_path(put->s3, put->object->key, scratch),
                           .fields = put->fields,
                           .n_fields = put->n_fields,
                           .parts = &put->object->body,
                           .n_parts = 1};
}

void sl_s3_put(struct sl_object_port *port, const struct sl_object *objects, size_t n,
               struct sl_result *results, const struct sl_call *call)
{
    struct sl_s3 *s3 = (struct sl_s3 *)port;
    struct sl_arena *scratch = s3->client.aws->scratch;
    struct put *puts = sl_arena_zalloc(scratch, n * sizeof(*puts));
    struct sl_job *jobs = sl_arena_zalloc(scratch, n * sizeof(*jobs));
    size_t n_jobs = 0;
    sl_s3_begin(s3);
    for (size_t i = 0; i < n; i++) {
        struct put *put = &puts[n_jobs];
        results[i] = (struct sl_result){.status = SL_OK};
        if (!check(s3, &objects[i], &results[i], call->arena))
            continue;
        *put = (struct put){.s3 = s3, .object = &objects[i], .index = i};
        jobs[n_jobs++] = job_of(put, scratch);
    }
    sl_job_run(&s3->client, jobs, n_jobs, call);
    for (size_t i = 0; i < n_jobs; i++)
        sl_result_job(&results[puts[i].index], &jobs[i]);
    sl_arena_reset(scratch);
}

void sl_s3_replace(struct sl_object_port *port, const struct sl_object_rewrite *rewrite,
                   struct sl_result *result, const struct sl_call *call)
{
    struct sl_s3 *s3 = (struct sl_s3 *)port;
    struct sl_arena *scratch = s3->client.aws->scratch;
    const char *etag = sl_arena_printf(scratch, "\"%.*s\"", SL_ARG(rewrite->etag));
    struct put put = {.s3 = s3, .object = &rewrite->object, .etag = etag, .note = rewrite->note};
    *result = (struct sl_result){.status = SL_OK};
    sl_s3_begin(s3);
    if (check(s3, &rewrite->object, result, call->arena)) {
        struct sl_job job = job_of(&put, scratch);
        sl_job_run(&s3->client, &job, 1, call);
        sl_result_job(result, &job);
    }
    sl_arena_reset(scratch);
}
