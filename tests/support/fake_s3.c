#include "tests/support/fake_s3.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/gzip.h"
#include "base/time.h"
#include "base/url.h"
#include "net/uri.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OBJECTS = 4000, KEY_BYTES = 1024, PAGE = 1000, SPARED = 12 };

struct object {
    struct sl_span key, body; /* the key with its bucket */
};

struct fake_s3 {
    struct object objects[OBJECTS]; /* in the order of their keys */
    size_t n;
    struct sl_arena *arena; /* of one request */
    struct sl_buffer out;
    char headers[500];
    const char *fault;
    uint64_t random;
    unsigned one_in;
    size_t since, troubled;
    const struct scripted_request *request;
    struct scripted_reply *reply;
};

struct fake_s3 *fake_s3_open(void)
{
    struct fake_s3 *f = calloc(1, sizeof(*f));
    f->arena = sl_arena_new(64 * 1024);
    f->random = 5;
    sl_buffer_init(&f->out, 1 << 28);
    return f;
}

static void forget(struct object *object)
{
    free((char *)(uintptr_t)object->key.ptr);
    free((char *)(uintptr_t)object->body.ptr);
}

void fake_s3_close(struct fake_s3 *f)
{
    for (size_t i = 0; i < f->n; i++)
        forget(&f->objects[i]);
    sl_arena_destroy(f->arena);
    sl_buffer_clean_up(&f->out);
    free(f);
}

void fake_s3_trouble(struct fake_s3 *f, unsigned one_in)
{
    f->one_in = one_in;
}

size_t fake_s3_troubled(const struct fake_s3 *f)
{
    return f->troubled;
}

const char *fake_s3_fault(const struct fake_s3 *f)
{
    return f->fault;
}

/* ---- objects ---- */

/* The place of the first object whose key is not less. */
static size_t place_of(const struct fake_s3 *f, struct sl_span key)
{
    size_t i = 0;
    while (i < f->n && sl_span_compare(f->objects[i].key, key) < 0)
        i++;
    return i;
}

static struct object *find(const struct fake_s3 *f, struct sl_span key)
{
    size_t i = place_of(f, key);
    bool is = i < f->n && sl_span_eq(f->objects[i].key, key);
    return is ? (struct object *)(uintptr_t)&f->objects[i] : NULL;
}

struct sl_span fake_s3_object(const struct fake_s3 *f, const char *key)
{
    const struct object *object = find(f, sl_span_str(key));
    return object ? object->body : sl_span(NULL, 0);
}

static struct sl_span kept(struct sl_span text)
{
    char *copy = malloc(text.len + 1);
    memcpy(copy, text.len ? text.ptr : "", text.len);
    copy[text.len] = '\0';
    return sl_span(copy, text.len);
}

static void store(struct fake_s3 *f, struct sl_span key, struct sl_span body)
{
    struct object *have = find(f, key);
    size_t at = place_of(f, key);
    if (have) {
        free((char *)(uintptr_t)have->body.ptr);
        have->body = kept(body);
        return;
    }
    if (f->n == OBJECTS) {
        f->fault = "the fake has no room for more objects";
        return;
    }
    memmove(&f->objects[at + 1], &f->objects[at], (f->n - at) * sizeof(f->objects[0]));
    f->objects[at] = (struct object){kept(key), kept(body)};
    f->n++;
}

static const char *etag_of(struct fake_s3 *f, const struct object *object)
{
    return sl_arena_printf(f->arena, "\"%08x-%zu\"", sl_crc32(0, object->body), object->body.len);
}

static const char *crc_of(struct fake_s3 *f, struct sl_span body)
{
    uint32_t crc = sl_crc32(0, body);
    const char bytes[] = {(char)(crc >> 24), (char)(crc >> 16), (char)(crc >> 8), (char)crc};
    return sl_arena_copy(f->arena, sl_base64_encode(sl_span(bytes, 4), f->arena));
}

/* ---- answers ---- */

static void refuse(struct fake_s3 *f, int status, const char *code)
{
    sl_buffer_reset(&f->out);
    sl_buffer_printf(&f->out, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>no</Message></Error>",
                     code);
    f->reply->status = status;
}

static struct sl_span header(const struct fake_s3 *f, const char *name)
{
    return scripted_header(f->request, name);
}

void fake_s3_put(struct fake_s3 *f, const char *key, struct sl_span body)
{
    store(f, sl_span_str(key), body);
}

static void put(struct fake_s3 *f, struct sl_span key)
{
    struct sl_span once = header(f, "if-none-match");
    if (!sl_span_is(header(f, "x-amz-checksum-crc32"), crc_of(f, f->request->body)) ||
        !header(f, "content-type").len || (once.len && !sl_span_is(once, "*")))
        f->fault = "a PutObject has a wrong header";
    if (once.len && find(f, key)) {
        refuse(f, 412, "PreconditionFailed");
        return;
    }
    store(f, key, f->request->body);
    snprintf(f->headers, sizeof(f->headers), "etag: \"put\"\r\nx-amz-checksum-crc32: %s\r\n",
             crc_of(f, f->request->body));
}

/* Whether it is the object that If-Match asks for. */
static bool is_meant(struct fake_s3 *f, const struct object *object)
{
    struct sl_span match = header(f, "if-match");
    return !match.len || sl_span_is(match, etag_of(f, object));
}

static void get(struct fake_s3 *f, struct sl_span key)
{
    const struct object *object = find(f, key);
    unsigned long long first = 0, last = 0;
    const char *range = sl_arena_copy(f->arena, header(f, "range"));
    if (sscanf(range, "bytes=%llu-%llu", &first, &last) != 2 || last < first)
        f->fault = "a GetObject asks for no range";
    if (!object) {
        refuse(f, 404, "NoSuchKey");
    } else if (!is_meant(f, object)) {
        refuse(f, 412, "PreconditionFailed");
    } else if (first >= object->body.len) {
        refuse(f, 416, "InvalidRange");
        snprintf(f->headers, sizeof(f->headers), "content-range: bytes */%zu\r\n", object->body.len);
    } else {
        last = last < object->body.len ? last : object->body.len - 1;
        sl_buffer_add(&f->out, object->body.ptr + first, (size_t)(last - first + 1));
        f->reply->status = 206;
        snprintf(f->headers, sizeof(f->headers), "etag: %s\r\ncontent-range: bytes %llu-%llu/%zu\r\n%s%s%s",
                 etag_of(f, object), first, last, object->body.len,
                 header(f, "x-amz-checksum-mode").len ? "x-amz-checksum-crc32: " : "",
                 header(f, "x-amz-checksum-mode").len ? crc_of(f, object->body) : "",
                 header(f, "x-amz-checksum-mode").len ? "\r\n" : "");
    }
}

static void delete (struct fake_s3 *f, struct sl_span key)
{
    struct object *object = find(f, key);
    f->reply->status = 204;
    if (!object && header(f, "if-match").len) {
        refuse(f, 404, "NoSuchKey");
    } else if (object && !is_meant(f, object)) {
        refuse(f, 412, "PreconditionFailed");
    } else if (object) {
        size_t at = (size_t)(object - f->objects);
        forget(object);
        memmove(object, object + 1, (--f->n - at) * sizeof(*object));
    }
}

/* ---- lists ---- */

static struct sl_span decoded(struct fake_s3 *f, struct sl_span text)
{
    struct sl_buffer out;
    sl_buffer_init_in(&out, f->arena, text.len + 1);
    sl_url_decode(&out, text);
    return sl_span(out.ptr ? out.ptr : "", out.len);
}

static struct sl_span param(struct fake_s3 *f, const char *query, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = query; p; p = strchr(p, '&') ? strchr(p, '&') + 1 : NULL)
        if (strncmp(p, name, n) == 0 && p[n] == '=')
            return decoded(f, sl_span(p + n + 1, strcspn(p + n + 1, "&")));
    return sl_span(NULL, 0);
}

/* Keys come URL-encoded, their blanks as '+'. */
static void add_entry(struct fake_s3 *f, const struct object *object, size_t skip)
{
    struct sl_buffer key;
    sl_buffer_init_in(&key, f->arena, 3 * KEY_BYTES + 300);
    sl_uri_encode(&key, sl_span_from(object->key, skip), '/');
    sl_buffer_add_str(&f->out, "<Contents><Key>");
    for (size_t i = 0; i < key.len; i++)
        if (i + 2 < key.len && memcmp(key.ptr + i, "%20", 3) == 0)
            sl_buffer_add_char(&f->out, '+'), i += 2;
        else
            sl_buffer_add_char(&f->out, key.ptr[i]);
    const char *etag = etag_of(f, object);
    char modified[SL_TIME_BYTES];
    sl_time_text((int64_t)time(NULL) * 1000000000, modified);
    sl_buffer_printf(
        &f->out,
        "</Key><LastModified>%s</LastModified><ETag>&quot;%.*s&quot;</ETag><Size>%zu</Size></Contents>",
        modified, (int)(strlen(etag) - 2), etag + 1, object->body.len);
}

static void list(struct fake_s3 *f, struct sl_span bucket, const char *query)
{
    struct sl_span prefix = param(f, query, "prefix"), after = param(f, query, "start-after");
    struct sl_span limit = param(f, query, "max-keys");
    size_t most = limit.len ? strtoul(sl_arena_copy(f->arena, limit), NULL, 10) : 0, n = 0,
           skip = bucket.len + 1;
    bool is_cut = false;
    if (!most || most > PAGE || !sl_span_is(param(f, query, "encoding-type"), "url"))
        f->fault = "a ListObjectsV2 asks for too much, or not for encoded keys";
    sl_buffer_add_str(&f->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult>"
                               "<EncodingType>url</EncodingType>");
    for (size_t i = 0; i < f->n && !is_cut; i++) {
        const struct object *object = &f->objects[i];
        struct sl_span key = sl_span_from(object->key, skip < object->key.len ? skip : object->key.len);
        if (!sl_span_starts(object->key, bucket) || !sl_span_starts(key, prefix) ||
            (after.ptr && sl_span_compare(key, after) <= 0))
            continue;
        is_cut = n == most;
        if (!is_cut)
            add_entry(f, object, skip), n++;
    }
    sl_buffer_printf(&f->out, "<KeyCount>%zu</KeyCount><IsTruncated>%s</IsTruncated></ListBucketResult>", n,
                     is_cut ? "true" : "false");
}

/* ---- any request ---- */

static bool is_refused_for_now(struct fake_s3 *f)
{
    static const struct {
        int status;
        const char *code;
    } refusals[] = {
        {503, "SlowDown"}, {500, "InternalError"}, {503, "ServiceUnavailable"}, {400, "RequestTimeout"}};
    if (f->since++ < SPARED || !f->one_in || sl_random_step(&f->random) % f->one_in != 0)
        return false;
    f->since = 0;
    f->troubled++;
    size_t which = (size_t)(sl_random_step(&f->random) % 4);
    refuse(f, refusals[which].status, refusals[which].code);
    return true;
}

void fake_s3_answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct fake_s3 *f = arg;
    const char *query = strchr(request->path, '?');
    sl_arena_reset(f->arena);
    sl_buffer_reset(&f->out);
    f->headers[0] = '\0';
    f->request = request;
    f->reply = reply;
    *reply = (struct scripted_reply){.status = 200, .headers = f->headers};
    struct sl_span path = sl_span(request->path + 1, strcspn(request->path, "?") - 1);
    struct sl_span key = decoded(f, path);
    const char *slash = memchr(key.ptr, '/', key.len);
    size_t key_bytes = slash ? key.len - (size_t)(slash + 1 - key.ptr) : 0;
    if (key_bytes > KEY_BYTES || (!query && !key_bytes))
        f->fault = "a key is empty or too long";
    if (is_refused_for_now(f))
        f->headers[0] = '\0';
    else if (query)
        list(f, key, query + 1);
    else if (strcmp(request->method, "PUT") == 0)
        put(f, key);
    else if (strcmp(request->method, "GET") == 0)
        get(f, key);
    else
        delete (f, key);
    reply->body = sl_buffer_span(&f->out);
}
