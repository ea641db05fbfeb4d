/* Runs jobs: begins what is due, waits for what is on the wire, and ends when every job has its outcome. */
#include "aws/job_private.h"

#include <assert.h>
#include <stdlib.h>

#define LINE_ARENA_BYTES (8 * 1024)

/* ---- slots ---- */

static void free_slot(void *arg)
{
    struct sl_job_slot *slot = arg;
    sl_http_exchange_clean_up(&slot->exchange);
    sl_arena_destroy(slot->arena);
    free(slot);
}

/* A slot lives as long as the process's `aws`: its buffers are used again. */
static struct sl_job_slot *take_slot(struct sl_aws *aws)
{
    struct sl_job_slot *slot = aws->spare_slots;
    if (slot) {
        aws->spare_slots = slot->next;
        return slot;
    }
    slot = calloc(1, sizeof(*slot));
    if (!slot)
        sl_die("out of memory: a request");
    slot->arena = sl_arena_new(LINE_ARENA_BYTES);
    sl_arena_keep_secret(slot->arena); /* header lines: the session token */
    sl_http_exchange_init(&slot->exchange);
    sl_arena_defer(aws->lasting, free_slot, slot);
    return slot;
}

static void give_slot(struct sl_aws *aws, struct sl_job_slot *slot)
{
    sl_arena_reset(slot->arena);
    sl_http_exchange_forget(&slot->exchange);
    slot->job = NULL;
    slot->next = aws->spare_slots;
    aws->spare_slots = slot;
}

/* ---- the run ---- */

static bool keys_are_ready(struct sl_job_run *run, struct sl_job *job)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_client *client = run->client;
    if (!client->credentials ||
        sl_credentials_get(client->aws, client->credentials, run->call->deadline_ms, &error) == SL_OK)
        return true;
    sl_job_fail(job, error.status, error.code, "%s", error.text);
    sl_job_end(run, job, true);
    return false;
}

static void launch(struct sl_job_run *run, struct sl_job *job)
{
    struct sl_aws *aws = run->client->aws;
    int64_t now = sl_aws_now_ms(aws);
    if (now >= run->call->deadline_ms) {
        if (!job->code)
            sl_job_fail(job, SL_RETRY, "DeadlineExceeded", "no time was left to begin it");
        sl_job_end(run, job, true);
        return;
    }
    if (!keys_are_ready(run, job))
        return;
    struct sl_job_slot *slot = take_slot(aws);
    size_t i = 0;
    while (run->slots[i])
        i++;
    run->slots[i] = slot;
    slot->job = job;
    sl_job_write(run->client, slot);
    slot->exchange.timeout_ms = run->call->deadline_ms - now;
    job->number = sl_pace_begin(&run->client->pace, now);
    job->state = SL_JOB_FLYING;
    run->flying++;
    run->flying_bytes += slot->exchange.body_bytes;
    sl_http_start(sl_aws_http(aws), &slot->exchange);
}

static bool has_room(const struct sl_job_run *run, const struct sl_job *job)
{
    size_t bytes = 0;
    for (size_t i = 0; i < job->n_parts; i++)
        bytes += job->parts[i].len;
    return sl_pace_has_room(&run->client->pace, run->flying, run->flying_bytes, bytes);
}

/* The ones that wait and are due go first, and among the fresh ones the first. */
static void launch_due(struct sl_job_run *run)
{
    int64_t now = sl_aws_now_ms(run->client->aws);
    sl_pace_look(&run->client->pace, run->flying, now);
    for (size_t i = 0; i < run->fresh && run->waiting; i++)
        if (run->jobs[i].state == SL_JOB_WAITING && run->jobs[i].due_ms <= now &&
            has_room(run, &run->jobs[i])) {
            run->waiting--;
            launch(run, &run->jobs[i]);
        }
    while (run->fresh < run->n && has_room(run, &run->jobs[run->fresh]) && !run->stop) {
        struct sl_job *job = &run->jobs[run->fresh++];
        launch(run, job);
    }
    run->is_full = run->fresh < run->n && run->flying >= run->client->pace.limit;
}

static int64_t next_due_ms(const struct sl_job_run *run)
{
    int64_t due = run->call->deadline_ms;
    for (size_t i = 0; i < run->fresh && run->waiting; i++)
        if (run->jobs[i].state == SL_JOB_WAITING && run->jobs[i].due_ms < due)
            due = run->jobs[i].due_ms;
    return due;
}

/* Reads what has come of the requests that are over. */
static void settle_over(struct sl_job_run *run)
{
    for (size_t i = 0; i < SL_PACE_MAX && run->flying; i++) {
        struct sl_job_slot *slot = run->slots[i];
        if (!slot || slot->exchange.outcome == SL_HTTP_RUNNING)
            continue;
        run->flying_bytes -= slot->exchange.body_bytes;
        sl_job_settle(run, slot);
        run->slots[i] = NULL;
        give_slot(run->client->aws, slot);
    }
}

static int64_t longest_wait_ms(const struct sl_job_run *run)
{
    return run->client->pace.is_alone ? SL_PACE_ALONE_MS : 1000;
}

static bool step(struct sl_job_run *run)
{
    struct sl_aws *aws = run->client->aws;
    launch_due(run);
    if (!run->flying && !run->waiting)
        return run->fresh < run->n && !run->stop;
    int64_t wait = next_due_ms(run) - sl_aws_now_ms(aws), most = longest_wait_ms(run);
    if (!run->flying) {
        aws->clock->sleep_ms(aws->clock, wait);
        return true;
    }
    sl_http_wait(sl_aws_http(aws), wait < most && wait >= 0 ? wait : most);
    settle_over(run);
    return true;
}

/* What was not begun would have ended as the one that stopped the run. */
static void end_fresh(struct sl_job_run *run)
{
    for (; run->fresh < run->n; run->fresh++) {
        struct sl_job *job = &run->jobs[run->fresh];
        job->state = SL_JOB_OVER;
        job->status = run->stop->status;
        job->code = run->stop->code;
        job->text = run->stop->text;
    }
}

static void begin(struct sl_job_run *run)
{
    struct sl_error error = SL_NO_ERROR;
    for (size_t i = 0; i < run->n; i++) {
        struct sl_job *job = &run->jobs[i];
        assert(job->kind->answered);
        job->client = run->client;
        job->call = run->call;
        job->not_sent = true;
        sl_client_uuid(run->client, job->invocation);
    }
    if (run->n && sl_client_ready(run->client, &error) != SL_OK) {
        sl_job_fail(&run->jobs[0], error.status, error.code, "%s", error.text);
        run->fresh = 1;
        sl_job_end(run, &run->jobs[0], true);
    }
}

static void finish(struct sl_job_run *run)
{
    if (run->stop)
        end_fresh(run);
    if (run->doubted)
        sl_job_judge_doubted(run);
}

void sl_job_run(struct sl_client *client, struct sl_job *jobs, size_t n, const struct sl_call *call)
{
    struct sl_job_run run = {.client = client, .jobs = jobs, .n = n, .call = call};
    begin(&run);
    while (step(&run)) {
    }
    finish(&run);
}

/* ---- one job among others that come and go ---- */

struct sl_job_flight {
    struct sl_job_run run;
};

struct sl_job_flight *sl_job_begin(struct sl_client *client, struct sl_job *job, const struct sl_call *call)
{
    struct sl_job_flight *flight = calloc(1, sizeof(*flight));
    if (!flight)
        sl_die("out of memory: a request");
    flight->run = (struct sl_job_run){.client = client, .jobs = job, .n = 1, .call = call};
    begin(&flight->run);
    launch_due(&flight->run);
    return flight;
}

bool sl_job_turn(struct sl_job_flight *flight)
{
    struct sl_job_run *run = &flight->run;
    settle_over(run);
    if (!run->flying)
        launch_due(run);
    if (run->jobs->state != SL_JOB_OVER)
        return false;
    finish(run);
    free(flight);
    return true;
}

int64_t sl_job_due_ms(const struct sl_job_flight *flight)
{
    return flight->run.flying ? INT64_MAX : next_due_ms(&flight->run);
}

void sl_job_abandon(struct sl_job_flight *flight)
{
    struct sl_aws *aws = flight->run.client->aws;
    for (size_t i = 0; i < SL_PACE_MAX; i++) {
        struct sl_job_slot *slot = flight->run.slots[i];
        if (!slot)
            continue;
        sl_http_abandon(sl_aws_http(aws), &slot->exchange);
        give_slot(aws, slot);
    }
    free(flight);
}
