/* GetObject with a range: a piece of an object, proven to be the piece that was asked for. */
#include "aws/xml.h"
#include "sinks/result.h"
#include "sinks/s3/s3_private.h"

/* Beside the piece: what an error's text may need. */
#define MORE_BYTES (64 * 1024)

struct piece {
    const struct sl_object_read *read;
    struct sl_object_piece *out;
    struct sl_sigv4_field fields[3];
    size_t n_fields;
    bool moved;   /* to the region that S3 named */
    bool is_over; /* the result is set */
};

/* ---- answers ---- */

/* A number and what follows it. */
static bool take_number(struct sl_span *text, uint64_t *out)
{
    size_t n = 0;
    *out = 0;
    for (; n < text->len && text->ptr[n] >= '0' && text->ptr[n] <= '9' && n < 19; n++)
        *out = *out * 10 + (uint64_t)(text->ptr[n] - '0');
    *text = sl_span_from(*text, n);
    return n > 0;
}

static bool take_text(struct sl_span *text, const char *what)
{
    struct sl_span prefix = sl_span_str(what);
    if (!sl_span_starts(*text, prefix))
        return false;
    *text = sl_span_from(*text, prefix.len);
    return true;
}

/* "bytes 0-9/100": whether it is the range that was asked for, as far as the object reaches. */
static bool is_range(const struct piece *p, struct sl_span said, size_t body_bytes, uint64_t *whole)
{
    uint64_t first, last;
    if (!take_text(&said, "bytes ") || !take_number(&said, &first) || !take_text(&said, "-") ||
        !take_number(&said, &last) || !take_text(&said, "/") || !take_number(&said, whole) || said.len)
        return false;
    return first == p->read->from && last >= first && last < *whole && last - first + 1 == body_bytes &&
           (body_bytes == p->read->max_bytes || (body_bytes < p->read->max_bytes && last + 1 == *whole));
}

/* A checksum is of the whole object; that of an object in parts ("...-3") is of something else. */
static bool is_crc_wrong(const struct sl_job *job, uint64_t whole)
{
    struct sl_span theirs = sl_http_header(job->answer, "x-amz-checksum-crc32");
    struct sl_span body = sl_buffer_span(&job->answer->body);
    char ours[SL_S3_CRC_BYTES];
    if (body.len != whole || theirs.len != SL_S3_CRC_BYTES - 1)
        return false;
    sl_s3_crc(body, ours);
    return !sl_span_is(theirs, ours);
}

static enum sl_job_next answered(struct sl_job *job)
{
    struct piece *p = job->context;
    struct sl_arena *arena = job->call->arena;
    struct sl_span body = sl_buffer_span(&job->answer->body);
    struct sl_span etag = sl_s3_etag(sl_http_header(job->answer, "etag"));
    uint64_t whole;
    if (!etag.len || (p->read->etag.ptr && !sl_span_eq(etag, p->read->etag)) ||
        !is_range(p, sl_http_header(job->answer, "content-range"), body.len, &whole) ||
        is_crc_wrong(job, whole))
        return SL_JOB_BROKEN;
    p->out->bytes = sl_span(sl_arena_copy(arena, body), body.len);
    p->out->etag = sl_span(sl_arena_copy(arena, etag), etag.len);
    p->out->object_bytes = whole;
    return SL_JOB_DONE;
}

/* The range begins at or past the object's end; an empty object has no range at all. */
static enum sl_job_next past_end(struct sl_job *job, struct piece *p)
{
    struct sl_span said = sl_http_header(job->answer, "content-range");
    if (!take_text(&said, "bytes */"))
        said = sl_xml_tag(sl_buffer_span(&job->answer->body), "ActualObjectSize");
    uint64_t whole;
    if (!take_number(&said, &whole) || said.len || whole > p->read->from)
        return SL_JOB_BROKEN;
    p->out->bytes = p->out->etag = SL_LIT("");
    p->out->object_bytes = whole;
    return SL_JOB_DONE;
}

static enum sl_job_next refuse(struct sl_job *job, struct piece *p, const char *code, const char *text)
{
    sl_result_fail(&p->out->result, job->call->arena, SL_REJECT, code, "%s: GetObject: %s", job->client->name,
                   text);
    p->is_over = true;
    return SL_JOB_DONE;
}

/* What S3 itself says of the object; a proxy's page with the same status says nothing. */
static enum sl_job_next refused(struct sl_job *job, const struct sl_refusal *refusal)
{
    struct piece *p = job->context;
    int status = job->answer->status;
    if (status == 404 && strcmp(refusal->code, "NoSuchKey") == 0)
        return refuse(job, p, "NoSuchKey", "the object does not exist");
    if (status == 412 && strcmp(refusal->code, "PreconditionFailed") == 0)
        return p->read->etag.ptr ? refuse(job, p, "PreconditionFailed", "the object was replaced meanwhile")
                                 : SL_JOB_BROKEN;
    if (status == 416 && strcmp(refusal->code, "InvalidRange") == 0)
        return past_end(job, p);
    return sl_s3_follow(job, refusal, &p->moved);
}

static const struct sl_job_kind read_kind = {answered, refused};

/* ---- requests ---- */

static bool check(const struct sl_s3 *s3, const struct sl_object_read *read, struct sl_result *result,
                  struct sl_arena *arena)
{
    const char *etag = sl_arena_copy(arena, read->etag);
    if (!sl_s3_key_is_good(s3, read->key, result, arena))
        return false;
    if (read->max_bytes > 0 && read->from + (read->max_bytes - 1) >= read->from &&
        (!read->etag.ptr || (strlen(etag) == read->etag.len && sl_s3_is_field(etag))))
        return true;
    sl_result_fail(result, arena, SL_REJECT, "InvalidArgument",
                   "%s: GetObject: the range or the entity tag that was asked for is not one",
                   s3->client.name);
    result->not_sent = true;
    return false;
}

static void add(struct piece *p, const char *name, const char *value)
{
    p->fields[p->n_fields++] = (struct sl_sigv4_field){sl_span_str(name), sl_span_str(value)};
}

static void fill_fields(struct piece *p, struct sl_arena *arena)
{
    const struct sl_object_read *read = p->read;
    add(p, "range",
        sl_arena_printf(arena, "bytes=%llu-%llu", (unsigned long long)read->from,
                        (unsigned long long)(read->from + read->max_bytes - 1)));
    if (read->etag.ptr)
        add(p, "if-match", sl_arena_printf(arena, "\"%.*s\"", SL_ARG(read->etag)));
    if (read->from == 0)
        add(p, "x-amz-checksum-mode", "ENABLED");
}

/* `query`: of one version of them; NULL: of what is there. */
static void read_all(struct sl_object_port *port, const struct sl_object_read *reads, size_t n,
                     const char *query, struct sl_object_piece *pieces, const struct sl_call *call)
{
    struct sl_s3 *s3 = (struct sl_s3 *)port;
    struct sl_arena *scratch = s3->client.aws->scratch;
    struct piece *list = sl_arena_zalloc(scratch, n * sizeof(*list));
    struct sl_job *jobs = sl_arena_zalloc(scratch, n * sizeof(*jobs));
    size_t n_jobs = 0;
    sl_s3_begin(s3);
    for (size_t i = 0; i < n; i++) {
        pieces[i] = (struct sl_object_piece){.result = {.status = SL_OK}};
        if (!check(s3, &reads[i], &pieces[i].result, call->arena))
            continue;
        struct piece *p = &list[n_jobs];
        *p = (struct piece){.read = &reads[i], .out = &pieces[i]};
        fill_fields(p, scratch);
        jobs[n_jobs++] = (struct sl_job){.kind = &read_kind,
                                         .context = p,
                                         .operation = "GetObject",
                                         .method = "GET",
                                         .success = 206,
                                         .path = sl_s3_path(s3, reads[i].key, scratch),
                                         .query = query,
                                         .fields = p->fields,
                                         .n_fields = p->n_fields,
                                         .answer_bytes = reads[i].max_bytes + MORE_BYTES,
                                         .of_no_record = true};
    }
    sl_job_run(&s3->client, jobs, n_jobs, call);
    for (size_t i = 0; i < n_jobs; i++)
        if (!list[i].is_over)
            sl_result_job(&list[i].out->result, &jobs[i]);
    sl_arena_reset(scratch);
}

void sl_s3_read(struct sl_object_port *port, const struct sl_object_read *reads, size_t n,
                struct sl_object_piece *pieces, const struct sl_call *call)
{
    read_all(port, reads, n, NULL, pieces, call);
}

void sl_s3_read_version(struct sl_object_port *port, const struct sl_object_version *version,
                        struct sl_object_piece *piece, const struct sl_call *call)
{
    const struct sl_object_read read = {.key = version->key, .max_bytes = (size_t)version->bytes + 1};
    read_all(port, &read, 1, sl_s3_version_query(version->version, call->arena), piece, call);
}
