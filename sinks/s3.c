/* s3://bucket/prefix: one PUT per object, with its SHA-256 signed and its CRC-32 checked on both sides. */
#include "aws/job.h"
#include "aws/xml.h"
#include "base/base64.h"
#include "base/gzip.h"
#include "base/utf8.h"
#include "net/uri.h"
#include "sinks/object.h"
#include "sinks/result.h"
#include "sinks/services.h"

#include <stdio.h>
#include <stdlib.h>

/* A single PUT takes 5 GiB. */
#define OBJECT_BYTES ((size_t)5 * 1024 * 1024 * 1024)
#define TAGS         10

#define PARAMS SL_CLIENT_PARAMS ", style, storage_class, sse, kms_key, tags, if_none_match"

struct s3 {
    struct sl_object_port port;
    struct sl_client client;
    struct sl_arena *arena; /* as long as the port */
    struct sl_span bucket, prefix;
    bool by_path;                                     /* the bucket is in the path, not in the host's name */
    bool never_replace;                               /* If-None-Match for every object */
    const char *storage_class, *sse, *kms_key, *tags; /* NULL: not sent */
};

#define OBJECT_FIELDS 10

struct put {
    struct s3 *s3;
    const struct sl_object *object;
    struct sl_sigv4_field fields[OBJECT_FIELDS];
    size_t n_fields;
    char crc[9]; /* base64 of its 4 bytes, big-endian */
    size_t index;
    bool moved; /* to the region that S3 named */
};

/* ---- answers ---- */

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

static enum sl_job_next refused(struct sl_job *job, const struct sl_refusal *refusal)
{
    struct put *put = job->context;
    /* Only S3 itself knows that the object is there: a proxy's page with the same status proves nothing. */
    if (job->answer->status == 412 && strcmp(refusal->code, "PreconditionFailed") == 0)
        return put->object->content_named ? SL_JOB_DONE : SL_JOB_JUDGE;
    struct sl_span region = other_region(job);
    if (!is_elsewhere(job, refusal) || !region.len || put->moved)
        return SL_JOB_JUDGE;
    put->moved = true;
    if (!sl_span_is(region, job->client->region))
        sl_client_move(job->client, region);
    struct sl_error ignored = SL_NO_ERROR;
    return sl_client_ready(job->client, &ignored) == SL_OK ? SL_JOB_AT_ONCE : SL_JOB_JUDGE;
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
    const struct s3 *s3 = put->s3;
    const struct sl_object *object = put->object;
    uint32_t crc = sl_crc32(0, object->body);
    const unsigned char bytes[4] = {(unsigned char)(crc >> 24), (unsigned char)(crc >> 16),
                                    (unsigned char)(crc >> 8), (unsigned char)crc};
    put->crc[sl_base64_encode_to(sl_span((const char *)bytes, 4), put->crc)] = '\0';
    add(put, "content-type", object->content_type ? object->content_type : "application/octet-stream");
    add(put, "content-encoding", object->content_encoding);
    add(put, "x-amz-checksum-crc32", put->crc);
    add(put, "if-none-match", object->content_named || s3->never_replace ? "*" : NULL);
    add(put, "x-amz-storage-class", s3->storage_class);
    add(put, "x-amz-server-side-encryption", s3->sse);
    add(put, "x-amz-server-side-encryption-aws-kms-key-id", s3->kms_key);
    add(put, "x-amz-tagging", s3->tags);
}

/* "/bucket/prefix/key", each byte encoded once. */
static const char *path_of(const struct s3 *s3, struct sl_span key, struct sl_arena *arena)
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

/* What a header field may hold: printable ASCII and blanks between. */
static bool is_field(const char *text)
{
    for (const char *p = text; p && *p; p++)
        if (*p < ' ' || *p > '~')
            return false;
    return !text || (*text && *text != ' ' && text[strlen(text) - 1] != ' ');
}

static bool check(const struct s3 *s3, const struct sl_object *object, struct sl_result *result,
                  struct sl_arena *arena)
{
    size_t bytes = s3->prefix.len + (s3->prefix.len ? 1 : 0) + object->key.len;
    const char *problem = sl_object_key_problem(object->key);
    if (bytes > SL_OBJECT_KEY_BYTES)
        sl_result_fail(result, arena, SL_REJECT, "KeyTooLong",
                       "%s: the object key has %zu bytes with its prefix; S3 takes %d", s3->client.name,
                       bytes, SL_OBJECT_KEY_BYTES);
    else if (problem)
        sl_result_fail(result, arena, SL_REJECT, "InvalidKey", "%s: the object key %s", s3->client.name,
                       problem);
    else if (!sl_utf8_is_valid(object->key))
        sl_result_fail(result, arena, SL_REJECT, "InvalidKey", "%s: the object key is not UTF-8",
                       s3->client.name);
    else if (!is_field(object->content_type) || !is_field(object->content_encoding))
        sl_result_fail(result, arena, SL_REJECT, "InvalidArgument",
                       "%s: the object's content type or encoding cannot be a header's value",
                       s3->client.name);
    else if (object->body.len > OBJECT_BYTES)
        sl_result_fail(result, arena, SL_REJECT, "EntityTooLarge",
                       "%s: the object has %zu bytes; one PUT takes 5 GiB", s3->client.name,
                       object->body.len);
    else
        return true;
    result->not_sent = true;
    return false;
}

static void apply(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                  struct sl_result *results, const struct sl_call *call)
{
    struct s3 *s3 = (struct s3 *)port;
    struct sl_arena *scratch = s3->client.aws->scratch;
    struct put *puts = sl_arena_zalloc(scratch, n * sizeof(*puts));
    struct sl_job *jobs = sl_arena_zalloc(scratch, n * sizeof(*jobs));
    struct sl_error error = SL_NO_ERROR;
    size_t n_jobs = 0;
    sl_contrast_begin(&s3->client.contrast);
    /* The endpoint decides whether the bucket is in the path. If it fails, sl_job_run reports it. */
    if (sl_client_ready(&s3->client, &error) == SL_OK)
        s3->by_path = s3->by_path || s3->client.endpoint.custom;
    for (size_t i = 0; i < n; i++) {
        struct put *put = &puts[n_jobs];
        results[i] = (struct sl_result){.status = SL_OK};
        if (!check(s3, &objects[i], &results[i], call->arena))
            continue;
        *put = (struct put){.s3 = s3, .object = &objects[i], .index = i};
        fill_fields(put);
        jobs[n_jobs++] = (struct sl_job){.kind = &put_kind,
                                         .context = put,
                                         .operation = "PutObject",
                                         .method = "PUT",
                                         .path = path_of(s3, objects[i].key, scratch),
                                         .fields = put->fields,
                                         .n_fields = put->n_fields,
                                         .parts = &objects[i].body,
                                         .n_parts = 1};
    }
    sl_job_run(&s3->client, jobs, n_jobs, call);
    for (size_t i = 0; i < n_jobs; i++)
        sl_result_job(&results[puts[i].index], &jobs[i]);
    sl_arena_reset(scratch);
}

/* ---- opening ---- */

static void close_port(struct sl_object_port *port)
{
    struct s3 *s3 = (struct s3 *)port;
    sl_client_clean_up(&s3->client);
    sl_arena_destroy(s3->arena);
    free(s3);
}

/* "Bucket naming rules": 3 to 63 lower-case letters, digits, '.', '-', no two dots, no address. */
static bool is_bucket(struct sl_span name)
{
    bool has_letter = false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool at_end = i == 0 || i + 1 == name.len;
        if (!is_alnum && (at_end || (c != '.' && c != '-') || (c == '.' && name.ptr[i - 1] == '.')))
            return false;
        has_letter = has_letter || (c >= 'a' && c <= 'z') || c == '-';
    }
    return name.len >= 3 && name.len <= 63 && has_letter;
}

static const char *text_param(struct s3 *s3, struct sl_url *url, const char *name)
{
    struct sl_span value = sl_url_param(url, name);
    return value.len ? sl_arena_copy(s3->arena, value) : NULL;
}

/* "k=v,k2=v2" as S3 wants it: "k=v&k2=v2", encoded. A target's '&' separates its parameters. */
static enum sl_status read_tags(struct s3 *s3, struct sl_url *url, struct sl_error *error)
{
    struct sl_span text = sl_url_param(url, "tags"), rest = text;
    struct sl_buffer out;
    size_t n = 0;
    bool good = true;
    if (!text.len)
        return SL_OK;
    sl_buffer_init(&out, 8192);
    while (rest.len && good) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        struct sl_span pair = sl_span(rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len);
        const char *eq = memchr(pair.ptr, '=', pair.len);
        good = eq && eq > pair.ptr && n < TAGS;
        if (good) {
            sl_buffer_add_str(&out, n++ ? "&" : "");
            sl_uri_encode(&out, sl_span(pair.ptr, (size_t)(eq - pair.ptr)), '\0');
            sl_buffer_add_char(&out, '=');
            sl_uri_encode(&out, sl_span_from(pair, (size_t)(eq - pair.ptr) + 1), '\0');
        }
        rest = sl_span_from(rest, pair.len + 1);
    }
    s3->tags = sl_arena_copy(s3->arena, sl_buffer_span(&out));
    sl_buffer_clean_up(&out);
    return good ? SL_OK
                : sl_fail(error, SL_FATAL, "InvalidTarget",
                          "target %.*s: tags= is a list name=value,name=value of at most %d",
                          SL_ARG(url->whole), TAGS);
}

static bool is_word(const char *text)
{
    for (const char *p = text; p && *p; p++)
        if (*p <= ' ' || *p > '~')
            return false;
    return true;
}

static bool is_one_of(const char *text, const char *const *list)
{
    for (; text && *list; list++)
        if (strcmp(text, *list) == 0)
            return true;
    return !text;
}

static enum sl_status read_options(struct s3 *s3, struct sl_url *url, struct sl_error *error)
{
    static const char *const styles[] = {"path", "virtual", NULL}, *const flags[] = {"0", "1", NULL};
    static const char *const sses[] = {"AES256", "aws:kms", "aws:kms:dsse", NULL};
    const char *style = text_param(s3, url, "style"), *once = text_param(s3, url, "if_none_match");
    s3->storage_class = text_param(s3, url, "storage_class");
    s3->sse = text_param(s3, url, "sse");
    s3->kms_key = text_param(s3, url, "kms_key");
    if (s3->kms_key && !s3->sse)
        s3->sse = "aws:kms";
    const char *wrong = !is_one_of(style, styles)   ? "style= is path or virtual"
                        : !is_one_of(once, flags)   ? "if_none_match= is 0 or 1"
                        : !is_one_of(s3->sse, sses) ? "sse= is AES256, aws:kms or aws:kms:dsse"
                        : s3->kms_key && strcmp(s3->sse, "AES256") == 0 ? "kms_key= goes with sse=aws:kms"
                        : !is_word(s3->storage_class) ? "storage_class= is one word of ASCII"
                        : !is_word(s3->kms_key)       ? "kms_key= is one word of ASCII"
                                                      : NULL;
    if (wrong)
        return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: %s", SL_ARG(url->whole), wrong);
    s3->never_replace = once && *once == '1';
    /* With a dot in the name, the certificate for *.s3.region.amazonaws.com does not match. */
    s3->by_path = (style && *style == 'p') || (!style && memchr(s3->bucket.ptr, '.', s3->bucket.len));
    return read_tags(s3, url, error);
}

static enum sl_status read_place(struct s3 *s3, struct sl_url *url, struct sl_error *error)
{
    struct sl_span rest = url->rest;
    const char *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    s3->bucket = sl_span(rest.ptr, slash ? (size_t)(slash - rest.ptr) : rest.len);
    s3->prefix = sl_span_from(rest, s3->bucket.len + 1);
    while (s3->prefix.len && s3->prefix.ptr[s3->prefix.len - 1] == '/')
        s3->prefix.len--;
    if (!url->has_slashes || !is_bucket(s3->bucket))
        return sl_fail(
            error, SL_FATAL, "InvalidTarget",
            "target %.*s: \"%.*s\" is not a bucket name (3 to 63 lower-case letters, digits, '-', '.'); "
            "write it as s3://BUCKET/PREFIX",
            SL_ARG(url->whole), SL_ARG(s3->bucket));
    if (s3->prefix.len && (s3->prefix.len >= SL_OBJECT_KEY_BYTES || sl_object_key_problem(s3->prefix)))
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target %.*s: a prefix has at most 1,023 bytes and no empty, \".\" or \"..\" segment",
                       SL_ARG(url->whole));
    return SL_OK;
}

static enum sl_status open_s3(struct s3 *s3, struct sl_sinks *sinks, struct sl_span url_text,
                              struct sl_error *error)
{
    struct sl_url url;
    struct sl_span text = sl_span(sl_arena_copy(s3->arena, url_text), url_text.len);
    if (sl_url_parse(text, s3->arena, &url, error) != SL_OK || read_place(s3, &url, error) != SL_OK ||
        sl_client_init(&s3->client, sl_sinks_aws(sinks),
                       &(struct sl_client_options){.service = &sl_service_s3, .url = &url}, error) != SL_OK ||
        read_options(s3, &url, error) != SL_OK)
        return SL_FATAL;
    if (!s3->by_path)
        s3->client.label = s3->bucket;
    return sl_url_done(&url, PARAMS, error);
}

enum sl_status sl_s3_open(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                          struct sl_error *error)
{
    struct s3 *s3 = calloc(1, sizeof(*s3));
    if (!s3)
        sl_die("out of memory: an object store");
    s3->arena = sl_arena_new(1024);
    s3->port = (struct sl_object_port){
        .size = sizeof(s3->port), .max_body_bytes = OBJECT_BYTES, .apply = apply, .close = close_port};
    if (open_s3(s3, sinks, url, error) != SL_OK) {
        close_port(&s3->port);
        return SL_FATAL;
    }
    *out = &s3->port;
    return SL_OK;
}
