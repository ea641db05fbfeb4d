/* sqs://name, sqs://account/name, sqs://https://sqs.REGION.amazonaws.com/account/name, sqs:arn:aws:sqs:... */
#include "sinks/aws/queue.h"
#include "sinks/aws/sinks.h"

#include "base/json_write.h"

#include <jansson.h>
#include <stdio.h>

/* "Amazon SQS message quotas": 10 entries, 1 MiB of them together (256 KiB until August 2025). */
#define SQS_ENTRIES 10
#define SQS_BYTES   (1024 * 1024)

#define PARAMS SL_CLIENT_PARAMS ", account"

static size_t message_bytes(const struct sl_queue *queue, const struct sl_message *message)
{
    (void)queue;
    return message->body.len + sl_queue_attribute_bytes(message);
}

/* The service refuses an attribute without a value. */
static void write_attributes(struct sl_buffer *out, const struct sl_message *message)
{
    bool any = false;
    for (size_t i = 0; i < message->n_attributes; i++) {
        if (!message->attributes[i].value.len)
            continue;
        sl_buffer_add_str(out, any ? "," : ",\"MessageAttributes\":{");
        sl_json_add_string(out, message->attributes[i].name);
        sl_buffer_add_str(out, ":{\"DataType\":\"String\",\"StringValue\":");
        sl_json_add_string(out, message->attributes[i].value);
        sl_buffer_add_char(out, '}');
        any = true;
    }
    if (any)
        sl_buffer_add_char(out, '}');
}

/* A FIFO queue wants a group and an id for each; one without an order of its own shares the group "-". */
static void write_fifo(const struct sl_queue *queue, struct sl_buffer *out, const struct sl_message *message)
{
    sl_buffer_add_str(out, ",\"MessageGroupId\":\"");
    sl_queue_add_id(queue, out, message->order.len ? message->order : SL_LIT("-"), 128);
    sl_buffer_add_str(out, "\",\"MessageDeduplicationId\":\"");
    sl_queue_add_dedupe(queue, out, message);
    sl_buffer_add_char(out, '"');
}

static void write_entries(const struct sl_queue *queue, const struct sl_message *const *messages, size_t n,
                          struct sl_buffer *out)
{
    sl_buffer_add_char(out, '{');
    sl_json_add_member(out, "QueueUrl", sl_span_str(queue->address));
    sl_buffer_add_str(out, ",\"Entries\":[");
    for (size_t i = 0; i < n; i++) {
        sl_buffer_printf(out, "%s{\"Id\":\"%zu\"", i ? "," : "", i);
        sl_json_add_member(out, "MessageBody", messages[i]->body);
        write_attributes(out, messages[i]);
        if (queue->is_fifo)
            write_fifo(queue, out, messages[i]);
        sl_buffer_add_char(out, '}');
    }
    sl_buffer_add_str(out, "]}");
}

static struct sl_span member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return sl_span(json_string_value(value), json_string_length(value));
}

static size_t entry_number(const json_t *entry)
{
    struct sl_span id = member(entry, "Id");
    size_t n = 0;
    for (size_t i = 0; i < id.len; i++)
        n = id.ptr[i] >= '0' && id.ptr[i] <= '9' && i < 4 ? n * 10 + (size_t)(id.ptr[i] - '0')
                                                          : SIZE_MAX / 20;
    return id.len ? n : SIZE_MAX;
}

static bool read_entries(struct sl_queue_batch *batch, struct sl_span answer)
{
    json_t *root = json_loadb(answer.ptr ? answer.ptr : "", answer.len, 0, NULL);
    const json_t *taken = json_object_get(root, "Successful"), *failed = json_object_get(root, "Failed");
    bool understood = json_is_object(root) && (json_is_array(taken) || json_is_array(failed));
    size_t i;
    json_t *entry;
    json_array_foreach(taken, i, entry) sl_queue_taken(batch, entry_number(entry));
    json_array_foreach(failed, i, entry)
        sl_queue_refused(batch, entry_number(entry), member(entry, "Code"), member(entry, "Message"),
                         json_is_true(json_object_get(entry, "SenderFault")));
    json_decref(root);
    return understood;
}

/* ---- the queue's URL ---- */

static enum sl_job_next read_url(struct sl_job *job)
{
    struct sl_queue *queue = job->context;
    struct sl_span body = sl_buffer_span(&job->answer->body);
    json_t *root = json_loadb(body.ptr ? body.ptr : "", body.len, 0, NULL);
    struct sl_span url = member(root, "QueueUrl");
    if (url.len)
        queue->address = sl_arena_copy(queue->arena, url);
    json_decref(root);
    return url.len ? SL_JOB_DONE : SL_JOB_BROKEN;
}

static enum sl_status ask_url(struct sl_queue *queue, const struct sl_call *call, struct sl_error *error)
{
    static const struct sl_job_kind kind = {read_url, NULL};
    struct sl_buffer body;
    sl_buffer_init(&body, 1024);
    sl_buffer_add_char(&body, '{');
    sl_json_add_member(&body, "QueueName", sl_span_str(queue->name));
    if (queue->account)
        sl_json_add_member(&body, "QueueOwnerAWSAccountId", sl_span_str(queue->account));
    sl_buffer_add_char(&body, '}');
    struct sl_span part = sl_buffer_span(&body);
    struct sl_job job = {
        .kind = &kind, .context = queue, .operation = "GetQueueUrl", .parts = &part, .n_parts = 1};
    sl_job_run(&queue->client, &job, 1, call);
    sl_buffer_clean_up(&body);
    return job.status == SL_OK ? SL_OK : sl_fail(error, job.status, job.code, "%s", job.text);
}

/* With the account known, the URL is put together; else the service is asked, once. */
static enum sl_status find_url(struct sl_queue *queue, const struct sl_call *call, struct sl_error *error)
{
    if (queue->address)
        return SL_OK;
    if (sl_client_ready(&queue->client, error) != SL_OK)
        return SL_FATAL;
    if (!queue->account)
        return ask_url(queue, call, error);
    queue->address =
        sl_arena_printf(queue->arena, "%s/%s/%s", queue->client.endpoint.base, queue->account, queue->name);
    return SL_OK;
}

/* ---- opening ---- */

static const struct sl_queue_kind sqs = {
    .service = &sl_service_sqs,
    .operation = "SendMessageBatch",
    .max_entries = SQS_ENTRIES,
    .max_bytes = SQS_BYTES,
    .max_entry_bytes = SQS_BYTES,
    .bytes = message_bytes,
    .write = write_entries,
    .read = read_entries,
    .ready = find_url,
};

struct where {
    struct sl_span name, account, region, url;
};

static struct sl_span last_segment(struct sl_span *text)
{
    const char *slash = text->len ? memrchr(text->ptr, '/', text->len) : NULL;
    struct sl_span last = slash ? sl_span_from(*text, (size_t)(slash - text->ptr) + 1) : *text;
    text->len = slash ? (size_t)(slash - text->ptr) : 0;
    return last;
}

/* "https://sqs.us-west-2.amazonaws.com/...": the region in it, absent when the host is none of AWS's. */
static struct sl_span region_in_host(struct sl_span url)
{
    const char *host = memmem(url.ptr, url.len, "://sqs.", 7);
    if (!host)
        return sl_span(NULL, 0);
    struct sl_span rest = sl_span_from(url, (size_t)(host - url.ptr) + 7);
    const char *dot = rest.len ? memchr(rest.ptr, '.', rest.len) : NULL;
    struct sl_span region = sl_span(rest.ptr, dot ? (size_t)(dot - rest.ptr) : 0);
    return memmem(rest.ptr, rest.len, ".amazonaws.", 11) && sl_endpoint_is_region(region) ? region
                                                                                          : sl_span(NULL, 0);
}

static struct where find_parts(struct sl_span rest)
{
    struct where where = {.name = rest};
    if (sl_span_starts(rest, SL_LIT("arn:"))) {
        where.region = sl_queue_arn_part(rest, 3);
        where.account = sl_queue_arn_part(rest, 4);
        where.name = sl_queue_arn_part(rest, 5);
        return where;
    }
    if (sl_span_starts(rest, SL_LIT("https://")) || sl_span_starts(rest, SL_LIT("http://"))) {
        where.url = rest;
        where.region = region_in_host(rest);
    }
    where.name = last_segment(&rest);
    if (rest.len)
        where.account = last_segment(&rest);
    return where;
}

static bool is_account(struct sl_span text)
{
    return text.len == 12 && sl_queue_is_name(text, "", 12) && strspn(text.ptr, "0123456789") >= 12;
}

static enum sl_status fill(struct sl_queue *queue, struct sl_url *url, struct where *where,
                           struct sl_error *error)
{
    struct sl_span account = sl_url_param(url, "account");
    struct sl_span stem = where->name;
    if (account.ptr)
        where->account = account;
    queue->is_fifo = sl_span_ends(stem, SL_LIT(".fifo"));
    if (queue->is_fifo)
        stem.len -= strlen(".fifo");
    if (!sl_queue_is_name(stem, "-_", 80))
        return sl_fail(
            error, SL_FATAL, "InvalidTarget",
            "target %.*s: \"%.*s\" is no queue name (1 to 80 letters, digits, '-', '_', and .fifo)",
            SL_ARG(url->whole), SL_ARG(where->name));
    if (where->account.ptr && !is_account(where->account))
        return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: \"%.*s\" is no account id (12 digits)",
                       SL_ARG(url->whole), SL_ARG(where->account));
    queue->keeps_order = queue->is_fifo;
    queue->name = sl_arena_copy(queue->arena, where->name);
    if (where->account.ptr)
        queue->account = sl_arena_copy(queue->arena, where->account);
    if (where->url.ptr)
        queue->address = sl_arena_copy(queue->arena, where->url);
    return SL_OK;
}

enum sl_status sl_sqs_open(struct sl_sinks *sinks, struct sl_span url_text, struct sl_queue_port **out,
                           struct sl_error *error)
{
    struct sl_queue *queue = NULL;
    struct sl_url url;
    if (sl_queue_new(&sqs, url_text, &url, &queue, error) != SL_OK)
        return SL_FATAL;
    struct where where = find_parts(url.rest);
    if (fill(queue, &url, &where, error) != SL_OK ||
        sl_queue_connect(queue, sinks, &url, where.region, PARAMS, error) != SL_OK) {
        sl_queue_destroy(queue);
        return SL_FATAL;
    }
    *out = &queue->port;
    return SL_OK;
}
