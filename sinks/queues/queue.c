/* Batches, rounds and order: what the five queues of AWS have in common. */
#include "sinks/queues/queue.h"

#include "aws/answer.h"
#include "base/json.h"
#include "aws/shown.h"
#include "sinks/result.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

/* Base64 and JSON escapes make the body longer than what the service counts: 6 times at most. What stands
 * around a request, a message and an attribute (SNS writes three names of fields for each). */
#define SWELL           6
#define FRAME_BYTES     (64 * 1024)
#define MESSAGE_BYTES   2048
#define ATTRIBUTE_BYTES 512
#define ARENA_BYTES     1024

/* What an answer says of one entry. */
struct claim {
    unsigned times; /* how often it is named */
    bool is_refused;
    struct sl_queue_refusal refusal;
};

/* One request's messages: the first `n` of `entries` are not taken yet. */
struct sl_queue_batch {
    struct sl_queue *queue;
    const struct sl_message *messages;
    struct sl_result *results;
    const struct sl_call *call;
    size_t *entries; /* numbers of messages */
    size_t n;        /* in this request */
    struct claim *claims;
    bool is_doubted; /* refused as a whole, and contrast decided */
    bool throttled;
    struct sl_buffer body;
    struct sl_span part;
};

struct apply {
    struct sl_queue *queue;
    const struct sl_message *messages;
    size_t n;
    struct sl_result *results;
    const struct sl_call *call;
    struct sl_arena *scratch;
    bool *done;
    size_t *before; /* see find_orders */
    size_t *chosen; /* of this round */
    size_t n_chosen;
};

static enum sl_job_next read_batch(struct sl_job *job);
static enum sl_job_next refused(struct sl_job *job, const struct sl_refusal *refusal);
static const struct sl_job_kind batch_kind = {read_batch, refused};

/* ---- bodies and answers ---- */

static void write_body(struct sl_queue_batch *batch)
{
    const struct sl_queue *queue = batch->queue;
    const struct sl_message *list[512];
    sl_buffer_reset(&batch->body);
    batch->body.max = FRAME_BYTES;
    for (size_t i = 0; i < batch->n; i++) {
        list[i] = &batch->messages[batch->entries[i]];
        batch->body.max += queue->kind->bytes(queue, list[i]) * SWELL + MESSAGE_BYTES +
                           list[i]->n_attributes * ATTRIBUTE_BYTES;
    }
    queue->kind->write(queue, list, batch->n, &batch->body);
    batch->part = sl_buffer_span(&batch->body);
}

size_t sl_queue_entries(const struct sl_queue_batch *batch)
{
    return batch->n;
}

static struct claim *claim_of(struct sl_queue_batch *batch, size_t i)
{
    if (i >= batch->n)
        return NULL;
    batch->claims[i].times++;
    return &batch->claims[i];
}

void sl_queue_taken(struct sl_queue_batch *batch, size_t i)
{
    (void)claim_of(batch, i);
}

void sl_queue_refused(struct sl_queue_batch *batch, size_t i, const struct sl_queue_refusal *refusal)
{
    struct claim *claim = claim_of(batch, i);
    if (!claim)
        return;
    claim->is_refused = true;
    claim->refusal = *refusal;
}

const struct sl_message *sl_queue_message(const struct sl_queue_batch *batch, size_t i)
{
    return i < batch->n ? &batch->messages[batch->entries[i]] : NULL;
}

struct sl_arena *sl_queue_scratch(const struct sl_queue_batch *batch)
{
    return batch->queue->client.aws->scratch;
}

struct sl_span sl_queue_text(const struct sl_queue_batch *batch, struct sl_span object, const char *name)
{
    return sl_json_unescape(sl_answer_text(object, name), sl_queue_scratch(batch));
}

static bool is_meant(const struct sl_queue_code *row, struct sl_span code)
{
    return row->is_prefix ? sl_span_starts(code, sl_span_str(row->code)) : sl_span_is(code, row->code);
}

static struct sl_code judge_entry(const struct sl_queue *queue, const struct sl_queue_refusal *refusal)
{
    for (const struct sl_queue_code *row = queue->kind->codes; row && row->code; row++)
        if (is_meant(row, refusal->code))
            return (struct sl_code){row->code, row->kind, row->status, false, NULL};
    /* Where the service does not say whose fault it is, a code that nobody knows is not the message's. */
    int http_status = refusal->is_by_place ? 0 : refusal->is_senders_fault ? 400 : 500;
    struct sl_code is = sl_client_judge(&queue->client, refusal->code, refusal->message, http_status);
    if (is.kind == SL_CODE_UNKNOWN)
        is.status = SL_REJECT; /* the service says that it is the sender's */
    return is;
}

static void fail_entry(struct sl_queue_batch *batch, struct sl_job *job, size_t i, const struct sl_code *is)
{
    const struct sl_queue *queue = batch->queue;
    const struct sl_queue_refusal *refusal = &batch->claims[i].refusal;
    struct sl_arena *arena = batch->call->arena;
    struct sl_shown shown;
    sl_shown_part(job, refusal->code, is->is_secret ? sl_span(NULL, 0) : refusal->message, &shown);
    sl_result_fail(&batch->results[batch->entries[i]], arena, is->status,
                   sl_arena_copy(arena, sl_span_str(shown.code)), "%s: %s: the entry was refused: %s%s%s%s%s",
                   queue->client.name, queue->kind->operation, shown.code, shown.text[0] ? ": " : "",
                   shown.text, is->hint ? "; " : "", is->hint ? is->hint : "");
}

static void fail_unproven(struct sl_queue_batch *batch, size_t i)
{
    const struct sl_queue *queue = batch->queue;
    sl_result_fail(&batch->results[batch->entries[i]], batch->call->arena, SL_RETRY, "BrokenAnswer",
                   "%s: %s: the answer names the entry %u times instead of once; it may have been taken",
                   queue->client.name, queue->kind->operation, batch->claims[i].times);
}

/* Sets the entry's result. False: it was neither taken nor refused for good, and is sent again. */
static bool settle(struct sl_queue_batch *batch, struct sl_job *job, size_t i)
{
    const struct claim *claim = &batch->claims[i];
    if (claim->times != 1) {
        fail_unproven(batch, i);
        return false;
    }
    if (!claim->is_refused) {
        struct sl_client *client = &batch->queue->client;
        sl_contrast_succeeded(&client->contrast, batch->queue->kind->operation, 0,
                              sl_aws_now_ms(client->aws));
        batch->results[batch->entries[i]] = (struct sl_result){.status = SL_OK};
        return true;
    }
    struct sl_code is = judge_entry(batch->queue, &claim->refusal);
    fail_entry(batch, job, i, &is);
    batch->throttled = batch->throttled || is.kind == SL_CODE_THROTTLE;
    return is.kind != SL_CODE_THROTTLE && is.kind != SL_CODE_TRANSIENT;
}

/* Only what was neither taken nor refused for good is sent again. */
static enum sl_job_next read_batch(struct sl_job *job)
{
    struct sl_queue_batch *batch = job->context;
    size_t left = 0;
    batch->throttled = false;
    memset(batch->claims, 0, batch->n * sizeof(*batch->claims));
    if (!batch->queue->kind->read(batch, job))
        return SL_JOB_BROKEN;
    for (size_t i = 0; i < batch->n; i++)
        if (!settle(batch, job, i))
            batch->entries[left++] = batch->entries[i];
    job->progressed = left < batch->n;
    batch->n = left;
    if (left == 0)
        return SL_JOB_DONE;
    const struct sl_result *why = &batch->results[batch->entries[0]];
    job->code = why->code;
    job->text = why->text;
    job->is_many = left > 1;
    write_body(batch);
    return batch->throttled ? SL_JOB_THROTTLED : SL_JOB_AGAIN;
}

/* Too long together, by the service's own count: each message is sent alone then (see send_chosen). One that
 * is too long alone is refused itself. */
static enum sl_job_next refused(struct sl_job *job, const struct sl_refusal *refusal)
{
    static const char too_long[] = "BatchRequestTooLong";
    if (!sl_span_ends(sl_span_str(refusal->code), SL_LIT(too_long)))
        return SL_JOB_JUDGE;
    job->status = SL_REJECT;
    job->code = too_long;
    job->text = sl_arena_printf(job->call->arena, "%s: %s: the request is longer than the service takes",
                                job->client->name, job->operation);
    return SL_JOB_DONE;
}

/* ---- rounds ---- */

/* Orders indices by the messages' order, then by their place. */
static int compare_orders(const void *x, const void *y, void *arg)
{
    const struct apply *a = arg;
    size_t i = *(const size_t *)x, k = *(const size_t *)y;
    int order = sl_span_compare(a->messages[i].order, a->messages[k].order);
    return order ? order : (i > k) - (i < k);
}

/* `before[i]`: the message of the same order before message i; i itself when there is none. */
static void find_orders(struct apply *a)
{
    size_t *sorted = sl_arena_alloc(a->scratch, a->n * sizeof(size_t));
    a->before = sl_arena_alloc(a->scratch, a->n * sizeof(size_t));
    for (size_t i = 0; i < a->n; i++)
        sorted[i] = a->before[i] = i;
    if (!a->queue->keeps_order)
        return;
    qsort_r(sorted, a->n, sizeof(size_t), compare_orders, a);
    for (size_t i = 1; i < a->n; i++)
        if (a->messages[sorted[i]].order.ptr &&
            sl_span_eq(a->messages[sorted[i - 1]].order, a->messages[sorted[i]].order))
            a->before[sorted[i]] = sorted[i - 1];
}

static void choose(struct apply *a)
{
    a->n_chosen = 0;
    for (size_t i = 0; i < a->n; i++)
        if (!a->done[i] && (a->before[i] == i || a->done[a->before[i]]))
            a->chosen[a->n_chosen++] = i;
}

/* `room` is what it can get: an order that is long, or a batch sent again singly, makes thousands of them. */
static struct sl_queue_batch *open_batch(struct apply *a, struct sl_queue_batch *batch, size_t room)
{
    *batch = (struct sl_queue_batch){
        .queue = a->queue, .messages = a->messages, .results = a->results, .call = a->call};
    batch->entries = sl_arena_alloc(a->scratch, room * sizeof(size_t));
    batch->claims = sl_arena_alloc(a->scratch, room * sizeof(*batch->claims));
    sl_buffer_init(&batch->body, FRAME_BYTES); /* and what its messages need */
    return batch;
}

/* Fills batches in the messages' order. Returns how many. */
static size_t pack(struct apply *a, struct sl_queue_batch *batches, size_t max_entries)
{
    const struct sl_queue_kind *kind = a->queue->kind;
    size_t n = 0, bytes = 0;
    struct sl_queue_batch *batch = NULL;
    for (size_t i = 0; i < a->n_chosen; i++) {
        size_t more = kind->bytes(a->queue, &a->messages[a->chosen[i]]);
        if (!batch || batch->n == max_entries || bytes + more > kind->max_bytes) {
            size_t left = a->n_chosen - i;
            batch = open_batch(a, &batches[n++], left < max_entries ? left : max_entries);
            bytes = 0;
        }
        batch->entries[batch->n++] = a->chosen[i];
        bytes += more;
    }
    return n;
}

static void run_batches(struct apply *a, struct sl_queue_batch *batches, size_t n)
{
    struct sl_job *jobs = sl_arena_zalloc(a->scratch, n * sizeof(*jobs));
    for (size_t i = 0; i < n; i++) {
        write_body(&batches[i]);
        jobs[i] = (struct sl_job){.kind = &batch_kind,
                                  .context = &batches[i],
                                  .operation = a->queue->kind->operation,
                                  .parts = &batches[i].part,
                                  .n_parts = 1,
                                  .is_many = batches[i].n > 1,
                                  .is_no_proof = true};
    }
    sl_job_run(&a->queue->client, jobs, n, a->call);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; jobs[i].status != SL_OK && k < batches[i].n; k++)
            sl_result_job(&a->results[batches[i].entries[k]], &jobs[i]);
        batches[i].is_doubted = jobs[i].is_doubted;
        sl_buffer_clean_up(&batches[i].body);
    }
}

/* The chosen ones, `max_entries` to a request. */
static void send_chosen(struct apply *a, size_t max_entries)
{
    struct sl_queue_batch *batches = sl_arena_alloc(a->scratch, a->n_chosen * sizeof(*batches));
    size_t n = pack(a, batches, max_entries);
    size_t refused = 0;
    run_batches(a, batches, n);
    /* When a whole request is refused, which message was bad is unknown: each is sent alone then. */
    for (size_t i = 0; i < n && max_entries > 1; i++)
        for (size_t k = 0; batches[i].n > 1 && k < batches[i].n; k++)
            if (a->results[batches[i].entries[k]].status == SL_REJECT)
                a->chosen[refused++] = batches[i].entries[k];
    /* So is what was alone already and had no contrast: now there may be one. */
    for (size_t i = 0; i < n && refused; i++)
        if (batches[i].n == 1 && batches[i].is_doubted)
            a->chosen[refused++] = batches[i].entries[0];
    if (refused) {
        a->n_chosen = refused;
        send_chosen(a, 1);
    }
}

/* Later messages of an order that stopped wait for the next call. */
static void close_round(struct apply *a, const size_t *round, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a->done[round[i]] = true;
    for (size_t i = 0; i < a->n; i++) {
        const struct sl_result *before = &a->results[a->before[i]];
        if (a->done[i] || a->before[i] == i || !a->done[a->before[i]])
            continue;
        if (before->status == SL_RETRY || before->status == SL_FATAL) {
            a->results[i] = *before;
            a->results[i].not_sent = true;
            a->done[i] = true;
        }
    }
}

static void refuse_message(struct apply *a, size_t i, const char *code, const char *why)
{
    sl_result_fail(&a->results[i], a->call->arena, SL_REJECT, code, "%s: %s", a->queue->client.name, why);
    a->results[i].not_sent = true;
    a->done[i] = true;
}

/* Which of the message's texts the service does not take, and why; NULL when it takes them all. */
static const char *content_problem(const struct sl_queue_kind *kind, const struct sl_message *message,
                                   struct sl_arena *arena)
{
    const char *problem = sl_content_problem(kind->body, message->body);
    if (problem)
        return sl_arena_printf(arena, "the message's body %s", problem);
    if ((problem = sl_content_problem(kind->subject, message->subject)) != NULL)
        return sl_arena_printf(arena, "the message's subject %s", problem);
    for (size_t i = 0; kind->has_attributes && i < message->n_attributes; i++) {
        const struct sl_message_attribute *attribute = &message->attributes[i];
        if ((problem = sl_content_name_problem(attribute->name)) != NULL)
            return sl_arena_printf(arena, "the name of the message's attribute %zu %s", i + 1, problem);
        if ((problem = sl_content_problem(kind->body, attribute->value)) != NULL)
            return sl_arena_printf(arena, "the message's attribute %.*s %s", SL_ARG(attribute->name),
                                   problem);
    }
    return NULL;
}

static void check_messages(struct apply *a)
{
    const struct sl_queue *queue = a->queue;
    for (size_t i = 0; i < a->n; i++) {
        const char *problem = content_problem(queue->kind, &a->messages[i], a->call->arena);
        size_t bytes = queue->kind->bytes(queue, &a->messages[i]);
        if (problem)
            refuse_message(a, i, "InvalidMessageContents", problem);
        else if (bytes > queue->kind->max_entry_bytes)
            refuse_message(a, i, "MessageTooLong",
                           sl_arena_printf(a->call->arena, "the message has %zu bytes; %s takes %zu", bytes,
                                           queue->kind->operation, queue->kind->max_entry_bytes));
    }
}

static bool is_ready(struct apply *a)
{
    struct sl_queue *queue = a->queue;
    struct sl_error error = SL_NO_ERROR;
    if (!queue->kind->ready || queue->kind->ready(queue, a->call, &error) == SL_OK)
        return true;
    for (size_t i = 0; i < a->n; i++)
        if (!a->done[i])
            sl_result_refuse(&a->results[i], a->call->arena, &error);
    return false;
}

static void run_rounds(struct apply *a)
{
    check_messages(a);
    bool any = false;
    for (size_t i = 0; i < a->n; i++)
        any = any || !a->done[i];
    if (!any || !is_ready(a))
        return;
    find_orders(a);
    size_t *round = sl_arena_alloc(a->scratch, a->n * sizeof(size_t));
    for (choose(a); a->n_chosen; choose(a)) {
        size_t n = a->n_chosen;
        memcpy(round, a->chosen, n * sizeof(size_t));
        send_chosen(a, a->queue->kind->max_entries);
        close_round(a, round, n);
    }
}

static void apply(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                  struct sl_result *results, const struct sl_call *call)
{
    struct sl_queue *queue = (struct sl_queue *)port;
    struct apply a = {queue, messages, n, results, call, queue->client.aws->scratch, NULL, NULL, NULL, 0};
    if (n == 0)
        return;
    a.done = sl_arena_zalloc(a.scratch, n * sizeof(bool));
    a.chosen = sl_arena_alloc(a.scratch, n * sizeof(size_t));
    sl_contrast_begin(&queue->client.contrast);
    for (size_t i = 0; i < n; i++)
        results[i] = (struct sl_result){.status = SL_OK};
    run_rounds(&a);
    sl_arena_reset(a.scratch);
}

/* ---- the port ---- */

static void close_port(struct sl_queue_port *port)
{
    struct sl_queue *queue = (struct sl_queue *)port;
    sl_client_clean_up(&queue->client);
    sl_arena_destroy(queue->arena);
    free(queue);
}

static enum sl_status read_target(struct sl_queue *queue, struct sl_sinks *sinks, struct sl_span url_text,
                                  struct sl_error *error)
{
    struct sl_url url;
    struct sl_span text = sl_span(sl_arena_copy(queue->arena, url_text), url_text.len);
    if (sl_url_parse(text, queue->arena, &url, error) != SL_OK ||
        queue->kind->fill(queue, &url, error) != SL_OK)
        return SL_FATAL;
    const struct sl_client_options options = {
        .service = queue->kind->service,
        .url = &url,
        .region = queue->region.ptr ? queue->region : sl_arn_part(url.rest, 3),
        .address = sl_url_param(&url, "endpoint").ptr ? sl_span(NULL, 0) : queue->host,
    };
    if (sl_client_init(&queue->client, sl_sinks_aws(sinks), &options, error) != SL_OK)
        return SL_FATAL;
    queue->client.account = queue->account_of_host;
    return sl_url_done(&url, queue->kind->params, error);
}

enum sl_status sl_queue_open(const struct sl_queue_kind *kind, struct sl_sinks *sinks, struct sl_span url,
                             struct sl_queue_port **out, struct sl_error *error)
{
    struct sl_queue *queue = calloc(1, sizeof(*queue));
    if (!queue)
        sl_die("out of memory: a queue");
    queue->arena = sl_arena_new(ARENA_BYTES);
    queue->kind = kind;
    queue->port = (struct sl_queue_port){
        .size = sizeof(queue->port),
        .max_message_bytes = kind->max_entry_bytes,
        .apply = apply,
        .close = close_port,
    };
    if (read_target(queue, sinks, url, error) != SL_OK) {
        close_port(&queue->port);
        return SL_FATAL;
    }
    *out = &queue->port;
    return SL_OK;
}

/* ---- what the kinds share ---- */

size_t sl_queue_entry_of(struct sl_span id)
{
    size_t n = 0;
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] < '0' || id.ptr[i] > '9' || i >= 4)
            return SIZE_MAX;
        n = n * 10 + (size_t)(id.ptr[i] - '0');
    }
    bool is_written = id.len && (*id.ptr != '0' || id.len == 1); /* by us: "7", not "07" */
    return is_written ? n : SIZE_MAX;
}

size_t sl_queue_attribute_bytes(const struct sl_message *message)
{
    size_t bytes = 0;
    for (size_t i = 0; i < message->n_attributes; i++)
        bytes += message->attributes[i].name.len + message->attributes[i].value.len + strlen("String");
    return bytes;
}

static void add_digest(const struct sl_queue *queue, struct sl_buffer *out, struct sl_span text)
{
    unsigned char digest[SL_SHA256_BYTES];
    char hex[SL_SHA256_HEX];
    sl_sha256_parts(sl_aws_sha(queue->client.aws), &text, 1, digest);
    sl_sha256_hex(digest, hex);
    sl_buffer_add(out, hex, SL_SHA256_HEX - 1);
}

static bool is_plain_id(struct sl_span text, size_t max)
{
    bool is_plain = text.len >= 1 && text.len <= max;
    for (size_t i = 0; i < text.len && is_plain; i++)
        is_plain = text.ptr[i] > ' ' && text.ptr[i] < 0x7F;
    return is_plain;
}

size_t sl_queue_id_bytes(struct sl_span text, size_t max)
{
    return is_plain_id(text, max) ? text.len : SL_SHA256_HEX - 1;
}

void sl_queue_add_id(const struct sl_queue *queue, struct sl_buffer *out, struct sl_span text, size_t max)
{
    if (is_plain_id(text, max))
        sl_buffer_add_span(out, text);
    else
        add_digest(queue, out, text);
}

bool sl_queue_is_md5(struct sl_span text, struct sl_span body)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    char hex[2 * EVP_MAX_MD_SIZE + 1];
    unsigned int n = 0;
    if (text.len != 32)
        return false;
    if (EVP_Digest(body.ptr ? body.ptr : "", body.len, digest, &n, EVP_md5(), NULL) != 1)
        return true;
    for (unsigned int i = 0; i < n; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return sl_span_is(text, hex);
}

void sl_queue_add_dedupe(const struct sl_queue *queue, struct sl_buffer *out,
                         const struct sl_message *message)
{
    if (message->dedupe.len)
        sl_queue_add_id(queue, out, message->dedupe, SL_QUEUE_ID_BYTES);
    else
        add_digest(queue, out, message->body);
}
