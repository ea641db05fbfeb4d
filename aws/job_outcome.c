/* What an exchange that is over means for its job: done, to be sent again, or failed. */
#include "aws/job_private.h"

#include "aws/shown.h"
#include "base/clean.h"
#include "base/gzip.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/* How often a kind may ask for an attempt that is not counted: it has learned all it can long before. */
#define HURRY_MAX 8
/* Of a message that is followed by what to do. */
#define SHORT_MESSAGE_BYTES 200
/* Services take a clock that is 5 minutes off, S3 15. Less than this is not why a signature was refused. */
#define SKEW_MIN_S 240

void sl_job_fail(struct sl_job *job, enum sl_status status, const char *code, const char *format, ...)
{
    char text[SL_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    sl_clean(sl_span_str(text), text, sizeof(text));
    job->status = status;
    job->code = sl_arena_copy(job->call->arena, sl_span_str(code));
    job->text = sl_arena_printf(job->call->arena, "%s: %s: %s", job->client->name, job->operation, text);
}

void sl_job_end(struct sl_job_run *run, struct sl_job *job, bool ends_all)
{
    job->state = SL_JOB_OVER;
    job->answer = NULL;
    if (job->status != SL_OK && ends_all && !run->stop)
        run->stop = job;
}

/* Finds the time of the next attempt. False when there is none: attempts, retry budget or time are used up.
 * The last two are the same for all jobs, and then `ends_all` becomes true. */
static bool find_due(const struct sl_job_run *run, struct sl_job *job, enum sl_retry_kind kind,
                     bool *ends_all)
{
    struct sl_client *client = run->client;
    struct sl_clock *clock = client->aws->clock;
    struct sl_span after = sl_http_header(job->answer, "x-amz-retry-after");
    if (job->progressed)
        job->attempts = 0;
    job->progressed = false;
    if (++job->attempts >= sl_client_attempts(client))
        return false;
    *ends_all = true;
    if (!sl_retry_take(&client->bucket, kind, &job->last_cost))
        return false;
    job->due_ms = clock->now_ms(clock) +
                  sl_retry_wait_ms(clock, kind, client->service->base_ms, job->attempts - 1, after);
    return job->due_ms < run->call->deadline_ms;
}

static void wait_until_due(struct sl_job_run *run, struct sl_job *job)
{
    job->state = SL_JOB_WAITING;
    run->waiting++;
}

/* A server that is too busy says so, refuses everything, or takes no connection. A transaction that meets
 * another is no such answer: fewer requests at a time would not help it. */
static bool is_too_much(const struct sl_job *job, enum sl_retry_kind kind)
{
    return kind == SL_RETRY_THROTTLE || job->answer->status == 503 ||
           job->answer->outcome == SL_HTTP_NOT_SENT;
}

/* A job that failed for now waits for its next attempt, or ends. The status that is set is the one after the
 * last attempt: when time or budget ends before, it is SL_RETRY. `ends_all`: the failure would meet the other
 * jobs too. */
static void retry_or_end(struct sl_job_run *run, struct sl_job *job, enum sl_retry_kind kind, bool ends_all)
{
    struct sl_aws *aws = run->client->aws;
    if (is_too_much(job, kind))
        sl_pace_throttled(&run->client->pace, job->number);
    bool is_due = find_due(run, job, kind, &ends_all);
    if (is_due || job->attempts < sl_client_attempts(run->client))
        job->status = SL_RETRY;
    if (!is_due) {
        sl_job_end(run, job, ends_all);
        return;
    }
    if (aws->log)
        sl_log(aws->log, SL_DEBUG, "%s; retrying in %lld ms", job->text,
               (long long)(job->due_ms - sl_aws_now_ms(aws)));
    wait_until_due(run, job);
}

/* Without a wait, and without counting as an attempt. */
static void at_once(struct sl_job_run *run, struct sl_job *job)
{
    job->due_ms = 0;
    wait_until_due(run, job);
}

/* ---- refusals ---- */

/* Whether our clock was the reason; then the next signature is dated by theirs. */
static bool learn_skew(struct sl_job *job)
{
    struct sl_log *log = job->client->aws->log;
    struct sl_aws_host *host = job->client->host;
    if (job->corrected)
        return false;
    job->corrected = true;
    if (job->skew_s != host->skew_s)
        return true; /* another job has learned it since */
    int64_t theirs = sl_http_date(sl_http_header(job->answer, "date"));
    int64_t off = theirs - sl_client_now_s(job->client);
    if (theirs < 0 || (off < SKEW_MIN_S && off > -SKEW_MIN_S))
        return false;
    host->skew_s += off;
    if (log)
        sl_log(log, SL_WARN,
               "%s: this machine's clock and %s's differ by %lld s; requests to it are signed by its clock",
               job->client->name, host->name, (long long)host->skew_s);
    return true;
}

static bool renew_keys(struct sl_job *job)
{
    struct sl_client *client = job->client;
    struct sl_error ignored = SL_NO_ERROR;
    if (job->renewed || !client->credentials)
        return false;
    job->renewed = true;
    sl_credentials_spent(client->credentials, job->serial);
    return sl_credentials_get(client->aws, client->credentials, job->call->deadline_ms, &ignored) == SL_OK &&
           client->credentials->serial != job->serial;
}

static void fail_as_refused(struct sl_job *job, const struct sl_code *code, const struct sl_refusal *refusal)
{
    struct sl_shown shown;
    sl_shown_refusal(job, refusal, &shown);
    bool says = !code->is_secret && shown.text[0];
    int room = code->kind == SL_CODE_UNKNOWN ? SHORT_MESSAGE_BYTES : SL_MASK_SHOWN_BYTES;
    sl_job_fail(job, code->status, shown.code, "%s (HTTP %d)%s%.*s%s%s", shown.code, job->answer->status,
                says ? ": " : "", room, says ? shown.text : "", code->hint ? "; " : "",
                code->hint ? code->hint : "");
}

/* Whose fault the refusal is will be known when all jobs are over. Of several operations, each is sent alone
 * first: the sink does that with SL_REJECT. */
static void doubt(struct sl_job_run *run, struct sl_job *job)
{
    job->status = job->is_many ? SL_REJECT : SL_RETRY;
    job->is_doubted = !job->is_many;
    run->doubted += job->is_doubted;
    sl_job_end(run, job, false);
}

/* What a job that no record asked for meets is the environment's. */
static struct sl_code find_code(const struct sl_job *job, const struct sl_refusal *refusal)
{
    struct sl_span name = sl_span_str(refusal->code), message = sl_span_str(refusal->message);
    if (!job->of_no_record)
        return sl_client_judge(job->client, name, message, job->answer->status);
    struct sl_code code = sl_codes_find(job->client->service->id, name, message, job->answer->status);
    if ((code.status == SL_REJECT || code.kind == SL_CODE_UNKNOWN)) {
        code.kind = SL_CODE_FINAL;
        code.status = SL_FATAL;
    }
    return code;
}

/* By the table of codes. */
static void judge(struct sl_job_run *run, struct sl_job *job, struct sl_refusal *refusal)
{
    int status = job->answer->status;
    struct sl_code code = find_code(job, refusal);
    if ((code.kind == SL_CODE_SKEW && learn_skew(job)) || (code.kind == SL_CODE_EXPIRED && renew_keys(job))) {
        at_once(run, job);
        return;
    }
    fail_as_refused(job, &code, refusal);
    if (code.kind == SL_CODE_THROTTLE)
        retry_or_end(run, job, SL_RETRY_THROTTLE, false);
    else if (code.kind == SL_CODE_TRANSIENT)
        retry_or_end(run, job, SL_RETRY_TRANSIENT, status >= 500 || code.status == SL_FATAL);
    else if (code.kind == SL_CODE_UNKNOWN)
        doubt(run, job);
    else
        sl_job_end(run, job, code.status == SL_FATAL);
}

/* ---- by contrast ---- */

static bool is_unjudged(const struct sl_job *job, const struct sl_job *like)
{
    return job->is_doubted && job->status == SL_RETRY && job->place == like->place &&
           strcmp(job->operation, like->operation) == 0;
}

/* All that ask for the same operation in the same place. */
static void judge_like(struct sl_job_run *run, const struct sl_job *like)
{
    struct sl_client *client = run->client;
    size_t n = 0;
    for (size_t i = 0; i < run->n; i++)
        n += is_unjudged(&run->jobs[i], like);
    bool vouched =
        sl_contrast_vouches(&client->contrast, like->operation, like->place, n, sl_aws_now_ms(client->aws));
    for (size_t i = 0; i < run->n; i++) {
        struct sl_job *job = &run->jobs[i];
        if (!is_unjudged(job, like))
            continue;
        job->status = vouched ? SL_REJECT : SL_FATAL;
        if (!vouched)
            job->text = sl_client_unknown_text(job->call->arena, job->text, job->code);
    }
}

void sl_job_judge_doubted(struct sl_job_run *run)
{
    for (size_t i = 0; i < run->n; i++)
        if (is_unjudged(&run->jobs[i], &run->jobs[i]))
            judge_like(run, &run->jobs[i]);
}

/* ---- what a kind said ---- */

static void fail_as_broken(struct sl_job *job)
{
    sl_job_fail(job, SL_RETRY, "BrokenAnswer",
                "the answer (HTTP %d, %zu bytes) was not understood; the request may have been carried out",
                job->answer->status, job->answer->body.len);
}

static void follow(struct sl_job_run *run, struct sl_job *job, enum sl_job_next next,
                   struct sl_refusal *refusal)
{
    if (next == SL_JOB_AT_ONCE && job->hurried++ >= HURRY_MAX)
        next = SL_JOB_JUDGE;
    switch (next) {
    case SL_JOB_DONE:
        sl_retry_success(&run->client->bucket, job->last_cost);
        sl_pace_took(&run->client->pace, job->answer->body.len, run->is_full);
        if (job->answer->status == 200 && !job->is_no_proof && !job->of_no_record)
            sl_contrast_succeeded(&run->client->contrast, job->operation, job->place,
                                  sl_aws_now_ms(run->client->aws));
        sl_job_end(run, job, false);
        return;
    case SL_JOB_AT_ONCE:
        at_once(run, job);
        return;
    case SL_JOB_JUDGE:
        judge(run, job, refusal);
        return;
    case SL_JOB_DOUBT:
        assert(job->code && job->text);
        doubt(run, job);
        return;
    case SL_JOB_FATAL:
        assert(job->code && job->text);
        job->status = SL_FATAL;
        sl_job_end(run, job, true);
        return;
    case SL_JOB_BROKEN:
        fail_as_broken(job);
        retry_or_end(run, job, SL_RETRY_TRANSIENT, false);
        return;
    case SL_JOB_AGAIN:
    case SL_JOB_THROTTLED:
        assert(job->code && job->text);
        job->status = SL_RETRY;
        retry_or_end(run, job, next == SL_JOB_AGAIN ? SL_RETRY_TRANSIENT : SL_RETRY_THROTTLE, false);
        return;
    }
}

/* ---- answers and failures ---- */

/* DynamoDB sends the CRC-32 of its answer. */
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

static enum sl_job_next ask_kind(struct sl_job *job, struct sl_refusal *refusal)
{
    const struct sl_job_kind *kind = job->kind;
    int status = job->answer->status;
    if (status == (job->success ? job->success : 200))
        return kind->answered(job);
    if (status >= 200 && status < 300)
        return SL_JOB_BROKEN;
    sl_refusal_read(job->answer, refusal);
    return kind->refused ? kind->refused(job, refusal) : SL_JOB_JUDGE;
}

static void read_answer(struct sl_job_run *run, struct sl_job *job)
{
    struct sl_refusal refusal = {.code = ""};
    job->code = job->text = NULL;
    job->status = SL_OK;
    if (is_crc_wrong(job->answer)) {
        sl_job_fail(job, SL_RETRY, "ChecksumMismatch",
                    "the answer does not match its CRC-32; the request may have been carried out");
        retry_or_end(run, job, SL_RETRY_TRANSIENT, false);
        return;
    }
    follow(run, job, ask_kind(job, &refusal), &refusal);
    explicit_bzero(refusal.message, strlen(refusal.message)); /* a server may have repeated a secret */
}

static void read_failure(struct sl_job_run *run, struct sl_job *job)
{
    const struct sl_http_exchange *answer = job->answer;
    struct sl_span host = sl_endpoint_host(&run->client->endpoint);
    char problem[SL_MASK_SHOWN_BYTES]; /* a certificate's names are the server's */
    sl_shown_text(job, sl_span_str(answer->problem), problem);
    if (answer->outcome == SL_HTTP_UNTRUSTED) {
        sl_job_fail(job, SL_FATAL, "UntrustedCertificate", "%.*s: %s; check AWS_CA_BUNDLE", SL_ARG(host),
                    problem);
        sl_job_end(run, job, true);
        return;
    }
    if (answer->outcome == SL_HTTP_UNSENDABLE) {
        sl_job_fail(job, SL_FATAL, "InvalidHeader", "%s; nothing was sent; check the target's options",
                    problem);
        sl_job_end(run, job, true);
        return;
    }
    sl_job_fail(job, SL_RETRY, answer->timed_out ? "RequestTimeout" : "ConnectionError", "%.*s: %s; %s",
                SL_ARG(host), problem,
                answer->outcome == SL_HTTP_BROKEN ? "the request may have been carried out"
                                                  : "nothing was sent");
    retry_or_end(run, job, SL_RETRY_TRANSIENT, true);
}

void sl_job_settle(struct sl_job_run *run, struct sl_job_slot *slot)
{
    struct sl_job *job = slot->job;
    job->answer = &slot->exchange;
    run->flying--;
    if (slot->exchange.outcome != SL_HTTP_NOT_SENT && slot->exchange.outcome != SL_HTTP_UNSENDABLE)
        job->not_sent = false;
    if (slot->exchange.outcome == SL_HTTP_ANSWERED)
        read_answer(run, job);
    else
        read_failure(run, job);
    job->answer = NULL;
}
