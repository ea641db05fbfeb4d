/* Receives, hides and removes the messages of an SQS queue. */
#include "sinks/queues/inbox.h"

#include "aws/answer.h"
#include "aws/shown.h"
#include "base/json.h"
#include "base/json_write.h"
#include "sinks/queues/queue.h"
#include "sinks/result.h"
#include "sinks/services.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

/* Ten messages of 1 MiB, which escapes make up to six times as long, and what is around them. */
#define ANSWER_BYTES ((size_t)64 * 1024 * 1024)
/* A receipt has some 400 bytes; AWS names no limit. */
#define RECEIPT_BYTES 4096
#define BODY_BYTES    (SL_INBOX_MESSAGES * (RECEIPT_BYTES + 256) + 4096)

struct sl_inbox {
    struct sl_queue *queue; /* the target: its client, name and URL */
};

/* ---- opening ---- */

enum sl_status sl_inbox_open(struct sl_sinks *sinks, struct sl_span url, struct sl_inbox **out,
                             struct sl_error *error)
{
    struct sl_queue_port *port;
    if (sl_sqs_open(sinks, url, &port, error) != SL_OK)
        return SL_FATAL;
    struct sl_inbox *inbox = calloc(1, sizeof(*inbox));
    if (!inbox)
        sl_die("out of memory: the reader of a queue");
    inbox->queue = (struct sl_queue *)port;
    *out = inbox;
    return SL_OK;
}

void sl_inbox_close(struct sl_inbox *inbox)
{
    if (!inbox)
        return;
    inbox->queue->port.close(&inbox->queue->port);
    free(inbox);
}

bool sl_inbox_is_fifo(const struct sl_inbox *inbox)
{
    return inbox->queue->is_fifo;
}

/* ---- what answers are made of ---- */

/* A text of the answer, whole: not empty, and without a NUL. */
static const char *text_of(struct sl_span object, const char *name, struct sl_arena *arena)
{
    struct sl_span text = sl_json_unescape(sl_answer_text(object, name), arena);
    return text.len && !memchr(text.ptr, '\0', text.len) ? sl_arena_copy(arena, text) : NULL;
}

/* A number of at most 15 digits, which SQS writes as a text; -1 when it is anything else. */
static int64_t number_of(struct sl_span object, const char *name)
{
    struct sl_span value = sl_json_walk_member(object, sl_span_str(name)),
                   text = sl_answer_text(object, name);
    int64_t n = 0;
    text = text.ptr ? text : value;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return -1;
        n = n * 10 + (text.ptr[i] - '0');
    }
    return text.len && text.len <= 15 ? n : -1;
}

static struct sl_job job_of(const struct sl_job_kind *kind, void *context, const char *operation,
                            const struct sl_span *part)
{
    return (struct sl_job){.kind = kind,
                           .context = context,
                           .operation = operation,
                           .parts = part,
                           .n_parts = 1,
                           .of_no_record = true,
                           .is_no_proof = true};
}

/* ---- GetQueueAttributes ---- */

struct description {
    struct sl_inbox_facts *facts;
};

/* {"deadLetterTargetArn":"...","maxReceiveCount":5}; the number may be a text. */
static bool read_policy(struct sl_span attributes, struct sl_arena *arena, struct sl_inbox_facts *out)
{
    struct sl_span member = sl_json_walk_member(attributes, SL_LIT("RedrivePolicy"));
    struct sl_span policy = sl_json_unescape(sl_answer_text(attributes, "RedrivePolicy"), arena);
    if (!member.ptr)
        return true;
    if (sl_json_check(policy, NULL) != SL_OK)
        return false;
    out->moves_to = text_of(policy, "deadLetterTargetArn", arena);
    out->max_receives = number_of(policy, "maxReceiveCount");
    return out->moves_to && out->max_receives > 0;
}

static enum sl_job_next read_attributes(struct sl_job *job)
{
    struct description *d = job->context;
    struct sl_arena *arena = job->call->arena;
    struct sl_span answer;
    *d->facts = (struct sl_inbox_facts){.waiting = -1};
    if (!sl_answer_object(job, &answer))
        return SL_JOB_BROKEN;
    /* Every queue has an ARN: an answer without it is not that of GetQueueAttributes. */
    struct sl_span attributes = sl_answer_container(answer, "Attributes", '{');
    const char *arn = text_of(attributes, "QueueArn", arena);
    if (!arn || strncmp(arn, "arn:", 4) != 0 || !read_policy(attributes, arena, d->facts))
        return SL_JOB_BROKEN;
    d->facts->waiting = number_of(attributes, "ApproximateNumberOfMessages");
    d->facts->in_flight = number_of(attributes, "ApproximateNumberOfMessagesNotVisible");
    d->facts->delayed = number_of(attributes, "ApproximateNumberOfMessagesDelayed");
    d->facts->hidden_s = number_of(attributes, "VisibilityTimeout");
    d->facts->kept_s = number_of(attributes, "MessageRetentionPeriod");
    return SL_JOB_DONE;
}

static enum sl_status failed(const struct sl_job *job, struct sl_error *error)
{
    return sl_fail(error, job->status, job->code ? job->code : "Failed", "%s",
                   job->text ? job->text : job->operation);
}

/* Once, before the first request. */
static enum sl_status find_url(struct sl_inbox *inbox, const struct sl_call *call, struct sl_error *error)
{
    sl_contrast_begin(&inbox->queue->client.contrast);
    return inbox->queue->kind->ready(inbox->queue, call, error);
}

enum sl_status sl_inbox_describe(struct sl_inbox *inbox, const struct sl_call *call,
                                 struct sl_inbox_facts *out, struct sl_error *error)
{
    static const struct sl_job_kind kind = {read_attributes, NULL};
    struct description d = {out};
    struct sl_buffer body;
    enum sl_status status = find_url(inbox, call, error);
    if (status != SL_OK)
        return status;
    sl_buffer_init_in(&body, call->arena, BODY_BYTES);
    sl_buffer_add_char(&body, '{');
    sl_json_add_member(&body, "QueueUrl", sl_span_str(inbox->queue->address));
    sl_buffer_add_str(&body, ",\"AttributeNames\":[\"All\"]}");
    struct sl_span part = sl_buffer_span(&body);
    struct sl_job job = job_of(&kind, &d, "GetQueueAttributes", &part);
    sl_job_run(&inbox->queue->client, &job, 1, call);
    sl_arena_reset(inbox->queue->client.aws->scratch);
    return job.status == SL_OK ? SL_OK : failed(&job, error);
}

/* ---- ReceiveMessage ---- */

struct delivery {
    bool is_fifo;
    struct sl_inbox_message messages[SL_INBOX_MESSAGES];
    size_t n;
    struct sl_span part;
};
static bool is_known(const struct delivery *d, const struct sl_inbox_message *message)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->messages[i].id, message->id) == 0 ||
            strcmp(d->messages[i].receipt, message->receipt) == 0)
            return true;
    return false;
}

/* False: it is not a message as SQS delivers one. */
static bool read_message(struct delivery *d, struct sl_span entry, struct sl_arena *arena)
{
    struct sl_inbox_message *m = &d->messages[d->n];
    struct sl_span attributes = sl_answer_container(entry, "Attributes", '{');
    struct sl_span body = sl_answer_text(entry, "Body");
    if (d->n == SL_INBOX_MESSAGES)
        return false;
    *m = (struct sl_inbox_message){.id = text_of(entry, "MessageId", arena),
                                   .receipt = text_of(entry, "ReceiptHandle", arena),
                                   .group = d->is_fifo ? text_of(attributes, "MessageGroupId", arena) : NULL,
                                   .receives = number_of(attributes, "ApproximateReceiveCount"),
                                   .sent_ms = number_of(attributes, "SentTimestamp")};
    if (!m->id || !m->receipt || strlen(m->receipt) > RECEIPT_BYTES || !body.ptr || m->receives < 1 ||
        m->sent_ms < 0 || (d->is_fifo && !m->group) || is_known(d, m))
        return false;
    body = sl_json_unescape(body, arena);
    m->body = sl_span(sl_arena_copy(arena, body), body.len);
    bool is_whole = sl_queue_is_md5(sl_answer_text(entry, "MD5OfBody"), m->body);
    d->n += is_whole;
    return is_whole;
}

static enum sl_job_next read_delivery(struct sl_job *job)
{
    struct delivery *d = job->context;
    struct sl_span answer, entry;
    d->n = 0;
    if (!sl_answer_object(job, &answer))
        return SL_JOB_BROKEN;
    struct sl_span list = sl_json_walk_member(answer, SL_LIT("Messages"));
    if (!list.ptr || sl_span_is(list, "null"))
        return SL_JOB_DONE; /* an empty receive has no list */
    struct sl_json_walk walk = sl_json_walk(list);
    bool is_good = *list.ptr == '[';
    while (is_good && sl_json_walk_next(&walk, NULL, &entry))
        is_good = read_message(d, entry, job->call->arena);
    if (!is_good)
        d->n = 0;
    return is_good ? SL_JOB_DONE : SL_JOB_BROKEN;
}

/* More messages are in flight than a queue may have (120,000): the caller has to stop, and nobody is at
 * fault.
 */
static enum sl_job_next receive_refused(struct sl_job *job, const struct sl_refusal *refusal)
{
    if (!sl_span_is(sl_codes_name(sl_span_str(refusal->code)), "OverLimit"))
        return SL_JOB_JUDGE;
    job->status = SL_REJECT;
    job->code = "OverLimit";
    job->text = sl_arena_printf(job->call->arena,
                                "%s: ReceiveMessage: so many messages are in flight that SQS gives no more",
                                job->client->name);
    return SL_JOB_DONE;
}

static const struct sl_job_kind receive_kind = {read_delivery, receive_refused};

static struct sl_span write_receive(const struct sl_inbox *inbox, const struct sl_inbox_receive *receive,
                                    struct sl_arena *arena)
{
    struct sl_buffer body;
    char attempt[37];
    sl_buffer_init_in(&body, arena, BODY_BYTES);
    sl_buffer_add_char(&body, '{');
    sl_json_add_member(&body, "QueueUrl", sl_span_str(inbox->queue->address));
    sl_json_add_integer(&body, "MaxNumberOfMessages", SL_INBOX_MESSAGES);
    sl_json_add_integer(&body, "WaitTimeSeconds", receive->wait_s);
    sl_json_add_integer(&body, "VisibilityTimeout", receive->hidden_s);
    sl_buffer_add_str(&body,
                      ",\"MessageSystemAttributeNames\":[\"ApproximateReceiveCount\",\"SentTimestamp\","
                      "\"MessageGroupId\"]");
    if (inbox->queue->is_fifo) {
        sl_client_uuid(&inbox->queue->client, attempt);
        sl_json_add_member(&body, "ReceiveRequestAttemptId", sl_span_str(attempt));
    }
    sl_buffer_add_char(&body, '}');
    return sl_buffer_span(&body);
}

/* The messages of all deliveries in one list; one that two of them have counts once, by its later receipt. */
static void join(const struct delivery *deliveries, size_t n_deliveries, struct sl_inbox_message *out,
                 size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < n_deliveries; i++)
        for (size_t k = 0; k < deliveries[i].n; k++) {
            size_t at = 0;
            while (at < *n && strcmp(out[at].id, deliveries[i].messages[k].id) != 0)
                at++;
            out[at] = deliveries[i].messages[k];
            *n += at == *n;
        }
}

enum sl_status sl_inbox_receive(struct sl_inbox *inbox, const struct sl_inbox_receive *receive,
                                const struct sl_call *call, struct sl_inbox_message **out, size_t *n,
                                struct sl_error *error)
{
    struct sl_arena *arena = call->arena;
    enum sl_status status = find_url(inbox, call, error);
    *n = 0;
    if (status != SL_OK)
        return status;
    struct delivery *deliveries = sl_arena_zalloc(arena, receive->requests * sizeof(*deliveries));
    struct sl_job *jobs = sl_arena_zalloc(arena, receive->requests * sizeof(*jobs));
    for (size_t i = 0; i < receive->requests; i++) {
        deliveries[i].is_fifo = inbox->queue->is_fifo;
        deliveries[i].part = write_receive(inbox, receive, arena);
        jobs[i] = job_of(&receive_kind, &deliveries[i], "ReceiveMessage", &deliveries[i].part);
        jobs[i].answer_bytes = ANSWER_BYTES;
    }
    sl_job_run(&inbox->queue->client, jobs, receive->requests, call);
    sl_arena_reset(inbox->queue->client.aws->scratch);
    *out = sl_arena_alloc(arena, receive->requests * SL_INBOX_MESSAGES * sizeof(**out));
    join(deliveries, receive->requests, *out, n);
    for (size_t i = 0; i < receive->requests && status == SL_OK; i++)
        if (jobs[i].status != SL_OK)
            status = failed(&jobs[i], error);
    return status;
}

/* ---- batches of receipts ---- */

struct entry_claim {
    unsigned times;
    bool is_refused;
    struct sl_span code;
};

/* One request. The first `n` of `entries` are not settled yet. */
struct entries {
    struct sl_inbox *inbox;
    const char *operation;
    const char *const *receipts;
    const int64_t *seconds; /* NULL: they are removed */
    struct sl_result *results;
    size_t entries[SL_INBOX_MESSAGES], n;
    struct entry_claim claims[SL_INBOX_MESSAGES];
    struct sl_buffer body;
    struct sl_span part;
};

static void write_entries(struct entries *e)
{
    sl_buffer_reset(&e->body);
    sl_buffer_add_char(&e->body, '{');
    sl_json_add_member(&e->body, "QueueUrl", sl_span_str(e->inbox->queue->address));
    sl_buffer_add_str(&e->body, ",\"Entries\":[");
    for (size_t i = 0; i < e->n; i++) {
        sl_buffer_printf(&e->body, "%s{\"Id\":\"%zu\"", i ? "," : "", i);
        sl_json_add_member(&e->body, "ReceiptHandle", sl_span_str(e->receipts[e->entries[i]]));
        if (e->seconds)
            sl_json_add_integer(&e->body, "VisibilityTimeout", e->seconds[e->entries[i]]);
        sl_buffer_add_char(&e->body, '}');
    }
    sl_buffer_add_str(&e->body, "]}");
    e->part = sl_buffer_span(&e->body);
}

static bool read_list(struct entries *e, struct sl_span answer, const char *name, bool is_refused)
{
    struct sl_span list = sl_json_walk_member(answer, sl_span_str(name)), entry;
    struct sl_json_walk walk = sl_json_walk(list);
    if (list.ptr && *list.ptr != '[' && !sl_span_is(list, "null"))
        return false;
    while (sl_json_walk_next(&walk, NULL, &entry)) {
        size_t i = sl_queue_entry_of(sl_answer_text(entry, "Id"));
        if (i >= e->n)
            continue;
        e->claims[i].times++;
        e->claims[i].is_refused |= is_refused;
        e->claims[i].code = is_refused ? sl_answer_text(entry, "Code") : e->claims[i].code;
    }
    return true;
}

static void fail_entry(const struct entries *e, struct sl_job *job, size_t i, enum sl_status status)
{
    struct sl_result *result = &e->results[e->entries[i]];
    struct sl_shown shown;
    struct sl_arena *arena = job->call->arena;
    const char *target = e->inbox->queue->client.name;
    if (status == SL_RETRY && e->claims[i].times != 1) {
        sl_result_fail(result, arena, SL_RETRY, "BrokenAnswer",
                       "%s: %s: the answer names the entry %u times instead of once; it may have been done",
                       target, e->operation, e->claims[i].times);
        return;
    }
    sl_shown_part(job, e->claims[i].code, sl_span(NULL, 0), &shown);
    sl_result_fail(result, arena, status, sl_arena_copy(arena, sl_span_str(shown.code)),
                   "%s: %s: the entry was refused: %s", target, e->operation, shown.code);
}

/* False: the entry is sent again. */
static bool settle(struct entries *e, struct sl_job *job, size_t i)
{
    const struct entry_claim *claim = &e->claims[i];
    struct sl_code is = {0};
    if (claim->times == 1 && !claim->is_refused) {
        e->results[e->entries[i]] = (struct sl_result){.status = SL_OK};
        return true;
    }
    if (claim->code.len)
        is = sl_client_judge(&e->inbox->queue->client, sl_codes_name(claim->code), sl_span(NULL, 0), 400);
    bool passes = claim->times != 1 || !claim->code.len || is.kind == SL_CODE_THROTTLE ||
                  is.kind == SL_CODE_TRANSIENT || sl_span_is(sl_codes_name(claim->code), "InternalError");
    fail_entry(e, job, i, passes ? SL_RETRY : SL_REJECT);
    return !passes;
}

static enum sl_job_next read_entries(struct sl_job *job)
{
    struct entries *e = job->context;
    struct sl_span answer;
    size_t left = 0;
    memset(e->claims, 0, sizeof(e->claims));
    if (!sl_answer_object(job, &answer) || !read_list(e, answer, "Successful", false) ||
        !read_list(e, answer, "Failed", true))
        return SL_JOB_BROKEN;
    for (size_t i = 0; i < e->n; i++)
        if (!settle(e, job, i))
            e->entries[left++] = e->entries[i];
    job->progressed = left < e->n;
    e->n = left;
    if (left == 0)
        return SL_JOB_DONE;
    job->code = e->results[e->entries[0]].code;
    job->text = e->results[e->entries[0]].text;
    write_entries(e);
    return SL_JOB_AGAIN;
}

/* `all` has the operation, the receipts and the results. */
static void run_entries(const struct entries *all, size_t n, const struct sl_call *call)
{
    static const struct sl_job_kind kind = {read_entries, NULL};
    size_t n_jobs = (n + SL_INBOX_MESSAGES - 1) / SL_INBOX_MESSAGES;
    struct sl_error error = SL_NO_ERROR;
    if (find_url(all->inbox, call, &error) != SL_OK) {
        for (size_t i = 0; i < n; i++)
            sl_result_refuse(&all->results[i], call->arena, &error);
        return;
    }
    struct entries *list = sl_arena_zalloc(call->arena, (n_jobs + 1) * sizeof(*list));
    struct sl_job *jobs = sl_arena_zalloc(call->arena, (n_jobs + 1) * sizeof(*jobs));
    for (size_t i = 0; i < n_jobs; i++) {
        list[i] = *all;
        for (size_t k = i * SL_INBOX_MESSAGES; k < n && list[i].n < SL_INBOX_MESSAGES; k++)
            list[i].entries[list[i].n++] = k;
        sl_buffer_init(&list[i].body, BODY_BYTES);
        write_entries(&list[i]);
        jobs[i] = job_of(&kind, &list[i], all->operation, &list[i].part);
    }
    sl_job_run(&all->inbox->queue->client, jobs, n_jobs, call);
    for (size_t i = 0; i < n_jobs; i++) {
        for (size_t k = 0; jobs[i].status != SL_OK && k < list[i].n; k++)
            sl_result_job(&all->results[list[i].entries[k]], &jobs[i]);
        sl_buffer_clean_up(&list[i].body);
    }
    sl_arena_reset(all->inbox->queue->client.aws->scratch);
}

void sl_inbox_remove(struct sl_inbox *inbox, const char *const *receipts, size_t n, struct sl_result *results,
                     const struct sl_call *call)
{
    const struct entries all = {
        .inbox = inbox, .operation = "DeleteMessageBatch", .receipts = receipts, .results = results};
    run_entries(&all, n, call);
}

void sl_inbox_hide(struct sl_inbox *inbox, const char *const *receipts, const int64_t *seconds, size_t n,
                   struct sl_result *results, const struct sl_call *call)
{
    const struct entries all = {.inbox = inbox,
                                .operation = "ChangeMessageVisibilityBatch",
                                .receipts = receipts,
                                .seconds = seconds,
                                .results = results};
    run_entries(&all, n, call);
}
