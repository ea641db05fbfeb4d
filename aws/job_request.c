/* One attempt of a job as an HTTP exchange: URL, header fields, signature, body. */
#include "aws/job_private.h"
#include "base/version.h"

#include <assert.h>

struct fields {
    struct sl_sigv4_field list[SL_SIGV4_FIELDS];
    size_t n;
};

static void add(struct fields *fields, const char *name, struct sl_span value)
{
    assert(fields->n < SL_SIGV4_FIELDS);
    fields->list[fields->n++] = (struct sl_sigv4_field){sl_span_str(name), value};
}

static const char *join(struct sl_arena *arena, const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b) + 1;
    char *out = sl_arena_alloc(arena, n + m);
    memcpy(out, a, n);
    memcpy(out + n, b, m);
    return out;
}

static void add_service_fields(struct fields *fields, const struct sl_client *client,
                               const struct sl_job *job, struct sl_arena *arena)
{
    if (client->service->media)
        add(fields, "content-type", sl_span_str(client->service->media));
    if (client->service->prefix)
        add(fields, "x-amz-target", sl_span_str(join(arena, client->service->prefix, job->operation)));
    if (client->service->query_mode)
        add(fields, "x-amzn-query-mode", SL_LIT("true"));
    for (size_t i = 0; i < job->n_fields; i++)
        fields->list[fields->n++] = job->fields[i];
}

static void add_attempt(struct fields *fields, const struct sl_client *client, const struct sl_job *job,
                        struct sl_arena *arena)
{
    add(fields, "amz-sdk-invocation-id", sl_span_str(job->invocation));
    add(fields, "amz-sdk-request",
        sl_span_str(
            sl_arena_printf(arena, "attempt=%u; max=%u", job->attempts + 1, sl_client_attempts(client))));
}

static void sign(struct sl_client *client, struct sl_job *job, struct fields *fields, const char *path,
                 struct sl_arena *arena)
{
    const struct sl_keys *keys = &client->credentials->keys;
    bool is_s3 = client->service == &sl_service_s3;
    char *date = sl_arena_alloc(arena, SL_SIGV4_DATE_BYTES), *hash = sl_arena_alloc(arena, SL_SHA256_HEX);
    unsigned char digest[SL_SHA256_BYTES];
    struct sl_buffer authorization;
    sl_sigv4_date(sl_client_now_s(client), date);
    sl_sha256_parts(sl_aws_sha(client->aws), job->parts, job->n_parts, digest);
    sl_sha256_hex(digest, hash);
    add(fields, "x-amz-date", sl_span_str(date));
    if (keys->token[0])
        add(fields, "x-amz-security-token", sl_span_str(keys->token));
    if (is_s3)
        add(fields, "x-amz-content-sha256", sl_span_str(hash));
    struct sl_sigv4_identity who = {keys->access, keys->secret, client->region, client->service->signing,
                                    client->credentials->serial};
    struct sl_sigv4_request request = {
        .method = sl_span_str(job->method ? job->method : "POST"),
        .path = sl_span_str(path),
        .query = sl_span_str(job->query),
        .fields = fields->list,
        .n_fields = fields->n,
        .payload_hash = hash,
        .encode_path = !is_s3,
        .normalize_path = !is_s3,
    };
    sl_buffer_init(&authorization, 16 * 1024);
    authorization.is_secret = true;
    sl_sigv4_authorize(&client->signer, &who, &request, date, &authorization);
    add(fields, "authorization",
        sl_span(sl_arena_copy(arena, sl_buffer_span(&authorization)), authorization.len));
    sl_buffer_clean_up(&authorization);
    job->serial = client->credentials->serial;
    job->skew_s = client->host->skew_s;
}

static const char *line_of(const struct sl_sigv4_field *field, struct sl_arena *arena)
{
    char *line = sl_arena_alloc(arena, field->name.len + field->value.len + 3);
    memcpy(line, field->name.ptr, field->name.len);
    /* libcurl sends a header without a value only when it is written with a semicolon. */
    memcpy(line + field->name.len, field->value.len ? ": " : ";", field->value.len ? 3 : 2);
    if (field->value.len) {
        memcpy(line + field->name.len + 2, field->value.ptr, field->value.len);
        line[field->name.len + 2 + field->value.len] = '\0';
    }
    return line;
}

static void set_body(struct sl_http_exchange *exchange, const struct sl_job *job)
{
    exchange->parts = job->parts;
    exchange->n_parts = job->n_parts;
    exchange->body_bytes = 0;
    for (size_t i = 0; i < job->n_parts; i++)
        exchange->body_bytes += job->parts[i].len;
}

void sl_job_write(struct sl_client *client, struct sl_job_slot *slot)
{
    struct sl_job *job = slot->job;
    struct sl_http_exchange *exchange = &slot->exchange;
    struct fields fields = {.n = 0};
    const char *job_path = job->path ? job->path : "/";
    const char *path = join(slot->arena, sl_endpoint_path(&client->endpoint), job_path);
    add(&fields, "host", sl_endpoint_host(&client->endpoint));
    add_service_fields(&fields, client, job, slot->arena);
    if (client->credentials)
        sign(client, job, &fields, path, slot->arena);
    if (client->login)
        add(&fields, "authorization", sl_span_str(client->login));
    if (client->credentials && client->aws->trace_id[0])
        add(&fields, "x-amzn-trace-id", sl_span_str(client->aws->trace_id));
    if (!client->is_plain)
        add_attempt(&fields, client, job, slot->arena);
    add(&fields, "user-agent", sl_span_str(sl_user_agent));
    exchange->n_headers = 0;
    for (size_t i = 0; i < fields.n; i++)
        exchange->headers[exchange->n_headers++] = line_of(&fields.list[i], slot->arena);
    exchange->answer_bytes = job->answer_bytes;
    exchange->expected_bytes = client->pace.answer_bytes;
    exchange->is_secret = client->service == &sl_service_sts; /* its answers hold keys */
    exchange->method = job->method ? job->method : "POST";
    exchange->url = join(slot->arena, client->endpoint.base, job_path);
    if (job->query)
        exchange->url = sl_arena_printf(slot->arena, "%s?%s", exchange->url, job->query);
    set_body(exchange, job);
}
