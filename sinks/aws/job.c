#include "sinks/aws/job.h"

#include "base/gzip.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LINE_ARENA_BYTES (8 * 1024)
/* How often a kind may ask for an uncounted attempt: what is learned runs out long before. */
#define HURRY_MAX 8
/* A clock that is nearer than this to theirs is not why a signature was refused: services allow 5 minutes,
 * S3 15. */
#define SKEW_MIN_S 240

/* One request on the wire: the exchange and the text of its headers. */
struct sl_slot {
    struct sl_slot *next;
    struct sl_http_exchange exchange;
    struct sl_arena *arena; /* of one attempt */
    struct sl_job *job;
};

struct run {
    struct sl_client *client;
    struct sl_job *jobs;
    size_t n, fresh, waiting, flying;
    const struct sl_call *call;
    struct sl_slot *slots[SL_CLIENT_IN_FLIGHT_MAX];
    const struct sl_job *stop; /* ended in a way that the ones not begun would end in too */
};

/* ---- slots ---- */

static struct sl_slot *take_slot(struct sl_aws *aws)
{
    struct sl_slot *slot = aws->spare_slots;
    if (slot) {
        aws->spare_slots = slot->next;
        return slot;
    }
    slot = calloc(1, sizeof(*slot));
    if (!slot)
        sl_die("out of memory: a request");
    slot->arena = sl_arena_new(LINE_ARENA_BYTES);
    sl_http_exchange_init(&slot->exchange);
    return slot;
}

static void give_slot(struct sl_aws *aws, struct sl_slot *slot)
{
    sl_arena_reset(slot->arena);
    slot->job = NULL;
    slot->next = aws->spare_slots;
    aws->spare_slots = slot;
}

void sl_job_drop_slots(struct sl_aws *aws)
{
    for (struct sl_slot *slot = aws->spare_slots, *next; slot; slot = next) {
        next = slot->next;
        sl_http_exchange_clean_up(&slot->exchange);
        sl_arena_destroy(slot->arena);
        free(slot);
    }
    aws->spare_slots = NULL;
}

/* ---- one attempt ---- */

struct fields {
    struct sl_sigv4_field list[SL_SIGV4_FIELDS];
    size_t n;
};

static void add(struct fields *fields, const char *name, struct sl_span value)
{
    assert(fields->n < SL_SIGV4_FIELDS);
    fields->list[fields->n++] = (struct sl_sigv4_field){sl_span_str(name), value};
}

static void add_service_fields(struct fields *fields, const struct sl_client *client,
                               const struct sl_job *job, struct sl_arena *arena)
{
    if (client->service->media)
        add(fields, "content-type", sl_span_str(client->service->media));
    if (client->service->prefix)
        add(fields, "x-amz-target",
            sl_span_str(sl_arena_printf(arena, "%s%s", client->service->prefix, job->operation)));
    if (client->service->query_mode)
        add(fields, "x-amzn-query-mode", SL_LIT("true"));
    for (size_t i = 0; i < job->n_fields; i++)
        fields->list[fields->n++] = job->fields[i];
}

static void sign(struct sl_client *client, struct sl_job *job, struct fields *fields, const char *path,
                 struct sl_arena *arena)
{
    const struct sl_keys *keys = &client->credentials->keys;
    bool is_s3 = client->service == &sl_service_s3;
    char *date = sl_arena_alloc(arena, SL_SIGV4_DATE_BYTES), *hash = sl_arena_alloc(arena, SL_SHA256_HEX);
    unsigned char digest[SL_SHA256_BYTES];
    struct sl_buffer authorization;
    sl_sigv4_date(sl_aws_now_s(client->aws), date);
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
        .query = SL_LIT(""),
        .fields = fields->list,
        .n_fields = fields->n,
        .payload_hash = hash,
        .encode_path = !is_s3,
        .normalize_path = !is_s3,
    };
    sl_buffer_init(&authorization, 16 * 1024);
    sl_sigv4_authorize(&client->signer, &who, &request, date, &authorization);
    add(fields, "authorization",
        sl_span(sl_arena_copy(arena, sl_buffer_span(&authorization)), authorization.len));
    sl_buffer_clean_up(&authorization);
    job->serial = client->credentials->serial;
    job->skew_s = client->aws->skew_s;
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

static void fill_exchange(struct run *run, struct sl_slot *slot, struct sl_job *job)
{
    struct sl_client *client = run->client;
    struct sl_http_exchange *exchange = &slot->exchange;
    struct fields fields = {.n = 0};
    const char *job_path = job->path ? job->path : "/";
    const char *path = sl_arena_printf(slot->arena, "%s%s", sl_endpoint_path(&client->endpoint), job_path);
    add(&fields, "host", sl_endpoint_host(&client->endpoint));
    add_service_fields(&fields, client, job, slot->arena);
    if (client->credentials)
        sign(client, job, &fields, path, slot->arena);
    add(&fields, "amz-sdk-invocation-id", sl_span_str(job->invocation));
    add(&fields, "amz-sdk-request",
        sl_span_str(sl_arena_printf(slot->arena, "attempt=%u; max=%u", job->attempts + 1,
                                    sl_client_attempts(client))));
    add(&fields, "user-agent", SL_LIT("sluice"));
    exchange->n_headers = 0;
    for (size_t i = 0; i < fields.n; i++)
        exchange->headers[exchange->n_headers++] = line_of(&fields.list[i], slot->arena);
    exchange->method = job->method ? job->method : "POST";
    exchange->url = sl_arena_printf(slot->arena, "%s%s", client->endpoint.base, job_path);
    exchange->parts = job->parts;
    exchange->n_parts = job->n_parts;
    exchange->body_bytes = 0;
    for (size_t i = 0; i < job->n_parts; i++)
        exchange->body_bytes += job->parts[i].len;
}

/* ---- outcomes ---- */

static void settle_at(struct sl_job *job, enum sl_status status, const char *code, const char *format, ...)
    SL_PRINTF(4, 5);

static void settle_at(struct sl_job *job, enum sl_status status, const char *code, const char *format, ...)
{
    char text[SL_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    job->status = status;
    job->code = sl_arena_copy(job->call->arena, sl_span_str(code));
    job->text = sl_arena_printf(job->call->arena, "%s: %s: %s", job->client->name, job->operation, text);
}

static void end(struct run *run, struct sl_job *job, bool ends_all)
{
    job->state = SL_JOB_OVER;
    job->answer = NULL;
    if (job->status != SL_OK && ends_all && !run->stop)
        run->stop = job;
}

/* What comes next for a job that failed for now: a wait, or its end with what is set already. What is
 * nobody's but this request's own bad luck (`ends_all` false) does not keep the others from being tried. */
static void again_or_end(struct run *run, struct sl_job *job, enum sl_code_kind kind, bool ends_all)
{
    struct sl_client *client = run->client;
    struct sl_clock *clock = client->aws->sinks->clock;
    struct sl_span after = {NULL, 0};
    if (job->answer)
        after = sl_http_header(job->answer, "x-amz-retry-after");
    if (job->progressed)
        job->attempts = 0;
    job->progressed = false;
    if (++job->attempts >= sl_client_attempts(client)) {
        end(run, job, ends_all);
        return;
    }
    if (!sl_retry_take(&client->bucket, kind, &job->last_cost)) {
        end(run, job, true);
        return;
    }
    job->due_ms = clock->now_ms(clock) +
                  sl_retry_wait_ms(clock, kind, client->service->base_ms, job->attempts - 1, after);
    if (job->due_ms >= run->call->deadline_ms) {
        end(run, job, true);
        return;
    }
    if (client->aws->sinks->log)
        sl_log(client->aws->sinks->log, SL_DEBUG, "%s; again in %lld ms", job->text,
               (long long)(job->due_ms - clock->now_ms(clock)));
    job->state = SL_JOB_WAITING;
    run->waiting++;
}

static void at_once(struct run *run, struct sl_job *job)
{
    job->due_ms = 0;
    job->state = SL_JOB_WAITING;
    run->waiting++;
}

/* "Fri, 20 Nov 2026 21:04:00 GMT"; -1 when it is none. */
static int64_t http_date(struct sl_span text)
{
    char copy[40];
    struct tm tm = {.tm_year = 0};
    if (text.len >= sizeof(copy))
        return -1;
    snprintf(copy, sizeof(copy), "%.*s", SL_ARG(text));
    const char *rest = strptime(copy, "%a, %d %b %Y %H:%M:%S", &tm);
    return rest ? (int64_t)timegm(&tm) : -1;
}

/* Whether our clock was the reason, and the request is to be signed anew. */
static bool learn_skew(struct sl_job *job)
{
    struct sl_aws *aws = job->client->aws;
    if (job->corrected)
        return false;
    job->corrected = true;
    if (job->skew_s != aws->skew_s)
        return true; /* another request has learned it since */
    int64_t theirs = http_date(sl_http_header(job->answer, "date"));
    int64_t off = theirs - sl_aws_now_s(aws);
    if (theirs < 0 || (off < SKEW_MIN_S && off > -SKEW_MIN_S))
        return false;
    aws->skew_s += off;
    if (aws->sinks->log)
        sl_log(aws->sinks->log, SL_WARN, "%s: this machine's clock is %lld s off theirs; signing by theirs",
               job->client->name, (long long)aws->skew_s);
    return true;
}

static bool renew_keys(struct sl_job *job)
{
    struct sl_client *client = job->client;
    struct sl_error ignored = {.status = SL_OK};
    if (job->renewed || !client->credentials)
        return false;
    job->renewed = true;
    sl_credentials_spent(client->credentials, job->serial);
    return sl_credentials_get(client->aws, client->credentials, job->call->deadline_ms, &ignored) == SL_OK &&
           client->credentials->serial != job->serial;
}

/* A service's message is shown unless it may hold what must not be shown. */
static void tell(struct sl_job *job, const struct sl_code *code, struct sl_answer_error *error)
{
    const struct sl_keys *keys = job->client->credentials ? &job->client->credentials->keys : NULL;
    bool leaks = code->is_secret || (keys && ((keys->access[0] && strstr(error->message, keys->access)) ||
                                              (keys->secret[0] && strstr(error->message, keys->secret)) ||
                                              (keys->token[0] && strstr(error->message, keys->token))));
    if (leaks)
        error->message[0] = '\0';
    else
        sl_answer_mask(error->message, job->parts, job->n_parts);
    settle_at(job, code->status, error->code, "%s (HTTP %d)%s%s%s%s", error->code, job->answer->status,
              error->message[0] ? ": " : "", error->message, code->hint ? "; " : "",
              code->hint ? code->hint : "");
}

static void judge(struct run *run, struct sl_job *job, struct sl_answer_error *error)
{
    struct sl_code code = sl_codes_find(job->client->service->id, sl_span_str(error->code),
                                        sl_span_str(error->message), job->answer->status);
    if ((code.kind == SL_CODE_SKEW && learn_skew(job)) || (code.kind == SL_CODE_EXPIRED && renew_keys(job))) {
        at_once(run, job);
        return;
    }
    tell(job, &code, error);
    if (code.kind == SL_CODE_TRANSIENT || code.kind == SL_CODE_THROTTLE)
        again_or_end(run, job, code.kind, code.kind == SL_CODE_TRANSIENT && job->answer->status >= 500);
    else
        end(run, job, code.status == SL_FATAL);
}

static void follow(struct run *run, struct sl_job *job, enum sl_job_next next, struct sl_answer_error *error)
{
    switch (next) {
    case SL_JOB_DONE:
        sl_retry_success(&run->client->bucket, job->last_cost);
        end(run, job, false);
        return;
    case SL_JOB_AT_ONCE:
        if (job->hurried++ < HURRY_MAX) {
            at_once(run, job);
            return;
        }
        judge(run, job, error);
        return;
    case SL_JOB_JUDGE:
        judge(run, job, error);
        return;
    case SL_JOB_BROKEN:
        settle_at(job, SL_RETRY, "BrokenAnswer",
                  "the answer (HTTP %d, %zu bytes) is not whole; it may have been carried out",
                  job->answer->status, job->answer->body.len);
        again_or_end(run, job, SL_CODE_TRANSIENT, false);
        return;
    case SL_JOB_AGAIN:
    case SL_JOB_THROTTLED:
        assert(job->code && job->text);
        job->status = SL_RETRY;
        again_or_end(run, job, next == SL_JOB_AGAIN ? SL_CODE_TRANSIENT : SL_CODE_THROTTLE, false);
        return;
    }
}

/* DynamoDB says the CRC-32 of what it sent. */
static bool is_crc_wrong(const struct sl_http_exchange *answer)
{
    struct sl_span text = sl_http_header(answer, "x-amz-crc32");
    uint64_t said = 0;
    for (size_t i = 0; i < text.len && i < 12; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return true;
        said = said * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    return text.len && said != sl_crc32(0, sl_buffer_span(&answer->body));
}

static void read_answer(struct run *run, struct sl_job *job)
{
    struct sl_answer_error error = {.code = ""};
    int status = job->answer->status;
    job->code = job->text = NULL;
    job->status = SL_OK;
    if (is_crc_wrong(job->answer)) {
        settle_at(job, SL_RETRY, "ChecksumMismatch",
                  "the answer's CRC-32 is not the one that came with it; it may have been carried out");
        again_or_end(run, job, SL_CODE_TRANSIENT, false);
        return;
    }
    if (status >= 200 && status < 300) {
        follow(run, job, job->kind->answered ? job->kind->answered(job) : SL_JOB_DONE, &error);
        return;
    }
    sl_answer_read_error(job->answer, &error);
    follow(run, job, job->kind->refused ? job->kind->refused(job, &error) : SL_JOB_JUDGE, &error);
}

static void read_failure(struct run *run, struct sl_job *job)
{
    const struct sl_http_exchange *answer = job->answer;
    struct sl_span host = sl_endpoint_host(&run->client->endpoint);
    if (answer->outcome == SL_HTTP_UNTRUSTED) {
        settle_at(job, SL_FATAL, "UntrustedCertificate", "%.*s: %s; look at AWS_CA_BUNDLE", SL_ARG(host),
                  answer->problem);
        end(run, job, true);
        return;
    }
    settle_at(job, SL_RETRY, answer->timed_out ? "RequestTimeout" : "ConnectionError", "%.*s: %s%s",
              SL_ARG(host), answer->problem,
              answer->outcome == SL_HTTP_BROKEN ? "; it may have been carried out" : "; nothing was sent");
    again_or_end(run, job, SL_CODE_TRANSIENT, true);
}

static void settle(struct run *run, struct sl_slot *slot)
{
    struct sl_job *job = slot->job;
    job->answer = &slot->exchange;
    run->flying--;
    if (slot->exchange.outcome != SL_HTTP_NOT_SENT)
        job->not_sent = false;
    if (slot->exchange.outcome == SL_HTTP_ANSWERED)
        read_answer(run, job);
    else
        read_failure(run, job);
    job->answer = NULL;
}

/* ---- the run ---- */

static bool keys_are_ready(struct run *run, struct sl_job *job)
{
    struct sl_error error = {.status = SL_OK};
    struct sl_client *client = run->client;
    if (!client->credentials ||
        sl_credentials_get(client->aws, client->credentials, run->call->deadline_ms, &error) == SL_OK)
        return true;
    settle_at(job, error.status, error.code, "%s", error.text);
    end(run, job, true);
    return false;
}

static void launch(struct run *run, struct sl_job *job)
{
    struct sl_aws *aws = run->client->aws;
    int64_t now = sl_aws_now_ms(aws);
    if (now >= run->call->deadline_ms) {
        if (!job->code)
            settle_at(job, SL_RETRY, "DeadlineExceeded", "no time was left to begin it");
        end(run, job, true);
        return;
    }
    if (!keys_are_ready(run, job))
        return;
    struct sl_slot *slot = take_slot(aws);
    size_t i = 0;
    while (run->slots[i])
        i++;
    run->slots[i] = slot;
    slot->job = job;
    fill_exchange(run, slot, job);
    slot->exchange.timeout_ms = run->call->deadline_ms - now;
    job->state = SL_JOB_FLYING;
    job->sends++;
    run->flying++;
    sl_http_start(sl_aws_http(aws), &slot->exchange);
}

/* The ones that wait and are due go first, and among the fresh ones the first. */
static void launch_due(struct run *run)
{
    size_t limit = run->client->in_flight;
    int64_t now = sl_aws_now_ms(run->client->aws);
    for (size_t i = 0; i < run->fresh && run->waiting && run->flying < limit; i++)
        if (run->jobs[i].state == SL_JOB_WAITING && run->jobs[i].due_ms <= now) {
            run->waiting--;
            launch(run, &run->jobs[i]);
        }
    while (run->fresh < run->n && run->flying < limit && !run->stop) {
        struct sl_job *job = &run->jobs[run->fresh++];
        launch(run, job);
    }
}

static int64_t next_due_ms(const struct run *run)
{
    int64_t due = run->call->deadline_ms;
    for (size_t i = 0; i < run->fresh && run->waiting; i++)
        if (run->jobs[i].state == SL_JOB_WAITING && run->jobs[i].due_ms < due)
            due = run->jobs[i].due_ms;
    return due;
}

static bool step(struct run *run)
{
    struct sl_aws *aws = run->client->aws;
    launch_due(run);
    if (!run->flying && !run->waiting)
        return run->fresh < run->n && !run->stop;
    int64_t wait = next_due_ms(run) - sl_aws_now_ms(aws);
    if (!run->flying) {
        aws->sinks->clock->sleep_ms(aws->sinks->clock, wait);
        return true;
    }
    sl_http_wait(sl_aws_http(aws), wait < 1000 && wait >= 0 ? wait : 1000);
    for (size_t i = 0; i < SL_CLIENT_IN_FLIGHT_MAX; i++) {
        struct sl_slot *slot = run->slots[i];
        if (!slot || slot->exchange.outcome == SL_HTTP_RUNNING)
            continue;
        settle(run, slot);
        run->slots[i] = NULL;
        give_slot(aws, slot);
    }
    return true;
}

/* What was not begun would have ended as the one that stopped the run. */
static void end_fresh(struct run *run)
{
    for (; run->fresh < run->n; run->fresh++) {
        struct sl_job *job = &run->jobs[run->fresh];
        job->state = SL_JOB_OVER;
        job->status = run->stop->status;
        job->code = run->stop->code;
        job->text = run->stop->text;
    }
}

void sl_job_run(struct sl_client *client, struct sl_job *jobs, size_t n, const struct sl_call *call)
{
    struct run run = {.client = client, .jobs = jobs, .n = n, .call = call};
    struct sl_error error = {.status = SL_OK};
    for (size_t i = 0; i < n; i++) {
        jobs[i].client = client;
        jobs[i].call = call;
        jobs[i].not_sent = true;
        sl_client_uuid(client, jobs[i].invocation);
    }
    if (n && sl_client_ready(client, &error) != SL_OK) {
        settle_at(&jobs[0], error.status, error.code, "%s", error.text);
        run.fresh = 1;
        end(&run, &jobs[0], true);
    }
    while (step(&run)) {
    }
    if (run.stop)
        end_fresh(&run);
}

void sl_job_result(const struct sl_job *job, struct sl_result *result)
{
    *result = (struct sl_result){
        .status = job->status,
        .not_sent = job->not_sent && job->status != SL_OK,
        .code = job->status == SL_OK ? NULL : job->code,
        .text = job->status == SL_OK ? NULL : job->text,
    };
}
