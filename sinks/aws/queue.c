#include "sinks/aws/queue.h"

#include "sinks/result.h"

#include <stdio.h>
#include <stdlib.h>

/* Base64 and JSON escapes swell what the service counts: at most 6 times, for control characters. */
#define SWELL       6
#define FRAME_BYTES (256 * 1024)
#define ARENA_BYTES 1024

/* One request's messages: those not yet taken, first `n` of `entries`. */
struct sl_queue_batch {
    struct sl_queue *queue;
    const struct sl_message *messages;
    struct sl_result *results;
    const struct sl_call *call;
    size_t *entries; /* indices of messages */
    size_t n, left;  /* in this request; of them those that stay */
    bool *stays;
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
static const struct sl_job_kind batch_kind = {read_batch, NULL};

/* ---- bodies and answers ---- */

static void write_body(struct sl_queue_batch *batch)
{
    const struct sl_queue *queue = batch->queue;
    const struct sl_message *list[512];
    for (size_t i = 0; i < batch->n; i++)
        list[i] = &batch->messages[batch->entries[i]];
    sl_buffer_reset(&batch->body);
    queue->kind->write(queue, list, batch->n, &batch->body);
    batch->part = sl_buffer_span(&batch->body);
}

size_t sl_queue_entries(const struct sl_queue_batch *batch)
{
    return batch->n;
}

void sl_queue_taken(struct sl_queue_batch *batch, size_t i)
{
    if (i >= batch->n || !batch->stays[i])
        return;
    batch->results[batch->entries[i]] = (struct sl_result){.status = SL_OK};
    batch->stays[i] = false;
    batch->left--;
}

void sl_queue_refused(struct sl_queue_batch *batch, size_t i, struct sl_span code, struct sl_span message,
                      bool senders_fault)
{
    if (i >= batch->n || !batch->stays[i])
        return;
    const struct sl_queue *queue = batch->queue;
    struct sl_result *result = &batch->results[batch->entries[i]];
    struct sl_code is = sl_codes_find(queue->kind->service->id, code, message, senders_fault ? 400 : 500);
    char text[SL_ANSWER_MESSAGE_BYTES];
    snprintf(text, sizeof(text), "%.*s", (int)(message.len < 300 ? message.len : 300),
             message.ptr && !is.is_secret ? message.ptr : "");
    sl_answer_mask(text, &batch->part, 1);
    sl_result_fail(result, batch->call->arena, is.status, sl_arena_copy(batch->call->arena, code),
                   "%s: %s: entry refused: %.*s%s%s%s%s", queue->client.name, queue->kind->operation,
                   SL_ARG(code), text[0] ? ": " : "", text, is.hint ? "; " : "", is.hint ? is.hint : "");
    if (is.kind == SL_CODE_THROTTLE)
        batch->throttled = true;
    if (is.kind != SL_CODE_THROTTLE && is.kind != SL_CODE_TRANSIENT) {
        batch->stays[i] = false;
        batch->left--;
    }
}

/* What was neither taken nor refused for good is sent again, alone. */
static enum sl_job_next read_batch(struct sl_job *job)
{
    struct sl_queue_batch *batch = job->context;
    batch->left = batch->n;
    batch->throttled = false;
    for (size_t i = 0; i < batch->n; i++)
        batch->stays[i] = true;
    if (!batch->queue->kind->read(batch, sl_buffer_span(&job->answer->body)))
        return SL_JOB_BROKEN;
    if (batch->left == 0) {
        batch->n = 0;
        return SL_JOB_DONE;
    }
    job->progressed = batch->left < batch->n;
    size_t n = 0;
    for (size_t i = 0; i < batch->n; i++)
        if (batch->stays[i])
            batch->entries[n++] = batch->entries[i];
    batch->n = n;
    const struct sl_result *why = &batch->results[batch->entries[0]];
    job->code = why->code;
    job->text = why->text;
    write_body(batch);
    return batch->throttled ? SL_JOB_THROTTLED : SL_JOB_AGAIN;
}

/* ---- rounds ---- */

/* Orders indices by the messages' order, then by their place. */
static int compare_orders(const void *x, const void *y, void *arg)
{
    const struct apply *a = arg;
    size_t i = *(const size_t *)x, k = *(const size_t *)y;
    struct sl_span s = a->messages[i].order, t = a->messages[k].order;
    int order = memcmp(s.ptr ? s.ptr : "", t.ptr ? t.ptr : "", s.len < t.len ? s.len : t.len);
    if (order == 0 && s.len != t.len)
        order = s.len < t.len ? -1 : 1;
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

static struct sl_queue_batch *open_batch(struct apply *a, struct sl_queue_batch *batch)
{
    size_t room = a->queue->kind->max_entries;
    *batch = (struct sl_queue_batch){
        .queue = a->queue, .messages = a->messages, .results = a->results, .call = a->call};
    batch->entries = sl_arena_alloc(a->scratch, room * sizeof(size_t));
    batch->stays = sl_arena_alloc(a->scratch, room * sizeof(bool));
    sl_buffer_init(&batch->body, a->queue->kind->max_bytes * SWELL + FRAME_BYTES);
    return batch;
}

/* Fills batches in order, so that what goes together stands together. Returns how many. */
static size_t pack(struct apply *a, struct sl_queue_batch *batches, size_t max_entries)
{
    const struct sl_queue_kind *kind = a->queue->kind;
    size_t n = 0, bytes = 0;
    struct sl_queue_batch *batch = NULL;
    for (size_t i = 0; i < a->n_chosen; i++) {
        size_t more = kind->bytes(a->queue, &a->messages[a->chosen[i]]);
        if (!batch || batch->n == max_entries || bytes + more > kind->max_bytes) {
            batch = open_batch(a, &batches[n++]);
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
                                  .n_parts = 1};
    }
    sl_job_run(&a->queue->client, jobs, n, a->call);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; jobs[i].status != SL_OK && k < batches[i].n; k++)
            sl_job_result(&jobs[i], &a->results[batches[i].entries[k]]);
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
    /* A request refused as a whole says nothing of its messages: each alone then. */
    for (size_t i = 0; i < n && max_entries > 1; i++)
        for (size_t k = 0; batches[i].n > 1 && k < batches[i].n; k++)
            if (a->results[batches[i].entries[k]].status == SL_REJECT)
                a->chosen[refused++] = batches[i].entries[k];
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

static void check_sizes(struct apply *a)
{
    const struct sl_queue *queue = a->queue;
    for (size_t i = 0; i < a->n; i++) {
        size_t bytes = queue->kind->bytes(queue, &a->messages[i]);
        if (bytes <= queue->kind->max_entry_bytes)
            continue;
        sl_result_fail(&a->results[i], a->call->arena, SL_REJECT, "MessageTooLong",
                       "%s: a message of %zu bytes; %s takes %zu at most", queue->client.name, bytes,
                       queue->kind->operation, queue->kind->max_entry_bytes);
        a->results[i].not_sent = true;
        a->done[i] = true;
    }
}

static bool is_ready(struct apply *a)
{
    struct sl_queue *queue = a->queue;
    struct sl_error error = {.status = SL_OK};
    if (!queue->kind->ready || queue->kind->ready(queue, a->call, &error) == SL_OK)
        return true;
    for (size_t i = 0; i < a->n; i++)
        if (!a->done[i]) {
            sl_result_fail(&a->results[i], a->call->arena, error.status,
                           sl_arena_copy(a->call->arena, sl_span_str(error.code)), "%s", error.text);
            a->results[i].not_sent = true;
        }
    return false;
}

static void run_rounds(struct apply *a)
{
    check_sizes(a);
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
    for (size_t i = 0; i < n; i++)
        results[i] = (struct sl_result){.status = SL_OK};
    run_rounds(&a);
    sl_arena_reset(a.scratch);
}

/* ---- the port ---- */

void sl_queue_destroy(struct sl_queue *queue)
{
    if (!queue)
        return;
    sl_client_clean_up(&queue->client);
    sl_arena_destroy(queue->arena);
    free(queue);
}

static void close_port(struct sl_queue_port *port)
{
    sl_queue_destroy((struct sl_queue *)port);
}

enum sl_status sl_queue_new(const struct sl_queue_kind *kind, struct sl_span url_text, struct sl_url *url,
                            struct sl_queue **out, struct sl_error *error)
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
    struct sl_span text = sl_span(sl_arena_copy(queue->arena, url_text), url_text.len);
    if (sl_url_parse(text, queue->arena, url, error) != SL_OK) {
        sl_queue_destroy(queue);
        return SL_FATAL;
    }
    *out = queue;
    return SL_OK;
}

enum sl_status sl_queue_connect(struct sl_queue *queue, struct sl_sinks *sinks, struct sl_url *url,
                                struct sl_span region, const char *known_params, struct sl_error *error)
{
    if (sl_client_init(&queue->client, sinks, queue->kind->service, url, region, error) != SL_OK)
        return SL_FATAL;
    return sl_url_done(url, known_params, error);
}

/* ---- what the kinds share ---- */

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

void sl_queue_add_id(const struct sl_queue *queue, struct sl_buffer *out, struct sl_span text, size_t max)
{
    bool is_plain = text.len >= 1 && text.len <= max;
    for (size_t i = 0; i < text.len && is_plain; i++)
        is_plain = text.ptr[i] > ' ' && text.ptr[i] < 0x7F;
    if (is_plain)
        sl_buffer_add_span(out, text);
    else
        add_digest(queue, out, text);
}

void sl_queue_add_dedupe(const struct sl_queue *queue, struct sl_buffer *out,
                         const struct sl_message *message)
{
    if (message->dedupe.len)
        sl_queue_add_id(queue, out, message->dedupe, 128);
    else
        add_digest(queue, out, message->body);
}

struct sl_span sl_queue_arn_part(struct sl_span arn, unsigned index)
{
    if (!sl_span_starts(arn, SL_LIT("arn:")))
        return sl_span(NULL, 0);
    for (; index; index--) {
        const char *colon = arn.len ? memchr(arn.ptr, ':', arn.len) : NULL;
        if (!colon)
            return sl_span(NULL, 0);
        arn = sl_span_from(arn, (size_t)(colon - arn.ptr) + 1);
    }
    const char *colon = arn.len ? memchr(arn.ptr, ':', arn.len) : NULL;
    return colon ? sl_span(arn.ptr, (size_t)(colon - arn.ptr)) : arn;
}

bool sl_queue_is_name(struct sl_span name, const char *more, size_t max)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_plain && (c == '\0' || !strchr(more, c)))
            return false;
    }
    return name.len >= 1 && name.len <= max;
}
