/* What the requests to S3 have in common: paths, keys, regions, checksums. */
#include "aws/xml.h"
#include "base/base64.h"
#include "base/gzip.h"
#include "base/utf8.h"
#include "net/uri.h"
#include "sinks/object.h"
#include "sinks/result.h"
#include "sinks/s3/s3_private.h"

void sl_s3_begin(struct sl_s3 *s3)
{
    struct sl_error error = SL_NO_ERROR;
    sl_contrast_begin(&s3->client.contrast);
    /* If it fails, sl_job_run reports it. */
    if (sl_client_ready(&s3->client, &error) == SL_OK)
        s3->by_path = s3->by_path || (s3->client.endpoint.custom && !s3->client.has_label_everywhere);
}

/* ---- paths ---- */

const char *sl_s3_path(const struct sl_s3 *s3, struct sl_span key, struct sl_arena *arena)
{
    struct sl_buffer path;
    sl_buffer_init(&path, 4 * SL_OBJECT_KEY_BYTES + 256);
    if (s3->by_path) {
        sl_buffer_add_char(&path, '/');
        sl_buffer_add_span(&path, s3->bucket);
    }
    sl_buffer_add_char(&path, '/');
    sl_uri_encode(&path, s3->prefix, '/');
    if (s3->prefix.len)
        sl_buffer_add_char(&path, '/');
    sl_uri_encode(&path, key, '/');
    const char *text = sl_arena_copy(arena, sl_buffer_span(&path));
    sl_buffer_clean_up(&path);
    return text;
}

const char *sl_s3_bucket_path(const struct sl_s3 *s3, struct sl_arena *arena)
{
    return s3->by_path ? sl_arena_printf(arena, "/%.*s", SL_ARG(s3->bucket)) : "/";
}

bool sl_s3_key_is_good(const struct sl_s3 *s3, struct sl_span key, struct sl_result *result,
                       struct sl_arena *arena)
{
    size_t bytes = s3->prefix.len + (s3->prefix.len ? 1 : 0) + key.len;
    const char *problem = sl_object_key_problem(key);
    if (bytes > SL_OBJECT_KEY_BYTES)
        sl_result_fail(result, arena, SL_REJECT, "KeyTooLong",
                       "%s: the object key has %zu bytes with its prefix; S3 takes %d", s3->client.name,
                       bytes, SL_OBJECT_KEY_BYTES);
    else if (problem)
        sl_result_fail(result, arena, SL_REJECT, "InvalidKey", "%s: the object key %s", s3->client.name,
                       problem);
    else if (!sl_utf8_is_valid(key))
        sl_result_fail(result, arena, SL_REJECT, "InvalidKey", "%s: the object key is not UTF-8",
                       s3->client.name);
    else
        return true;
    result->not_sent = true;
    return false;
}

/* ---- header fields ---- */

bool sl_s3_is_field(const char *text)
{
    for (const char *p = text; p && *p; p++)
        if (*p < ' ' || *p > '~')
            return false;
    return !text || (*text && *text != ' ' && text[strlen(text) - 1] != ' ');
}

void sl_s3_crc(struct sl_span body, char out[SL_S3_CRC_BYTES])
{
    uint32_t crc = sl_crc32(0, body);
    const unsigned char bytes[4] = {(unsigned char)(crc >> 24), (unsigned char)(crc >> 16),
                                    (unsigned char)(crc >> 8), (unsigned char)crc};
    out[sl_base64_encode_to(sl_span((const char *)bytes, 4), out)] = '\0';
}

struct sl_span sl_s3_etag(struct sl_span quoted)
{
    if (quoted.len >= 2 && quoted.ptr[0] == '"' && quoted.ptr[quoted.len - 1] == '"')
        return sl_span(quoted.ptr + 1, quoted.len - 2);
    return quoted;
}

/* ---- regions ---- */

/* S3 names the region of a bucket that is elsewhere: in a header, or in a tag. */
static struct sl_span other_region(const struct sl_job *job)
{
    struct sl_span region = sl_http_header(job->answer, "x-amz-bucket-region");
    if (!region.len)
        region = sl_xml_tag(sl_buffer_span(&job->answer->body), "Region");
    return sl_endpoint_is_region(region) ? region : sl_span(NULL, 0);
}

static bool is_elsewhere(const struct sl_job *job, const struct sl_refusal *refusal)
{
    int status = job->answer->status;
    return status == 301 || status == 307 || strcmp(refusal->code, "PermanentRedirect") == 0 ||
           strcmp(refusal->code, "AuthorizationHeaderMalformed") == 0 ||
           strcmp(refusal->code, "IllegalLocationConstraintException") == 0;
}

enum sl_job_next sl_s3_follow(struct sl_job *job, const struct sl_refusal *refusal, bool *moved)
{
    struct sl_span region = other_region(job);
    if (!is_elsewhere(job, refusal) || !region.len || *moved)
        return SL_JOB_JUDGE;
    *moved = true;
    if (!sl_span_is(region, job->client->region))
        sl_client_move(job->client, region);
    struct sl_error ignored = SL_NO_ERROR;
    return sl_client_ready(job->client, &ignored) == SL_OK ? SL_JOB_AT_ONCE : SL_JOB_JUDGE;
}
