/* sqs://name, sqs://account/name, sqs://https://sqs.REGION.amazonaws.com/account/name, sqs:arn:aws:sqs:... */
#include "aws/answer.h"
#include "base/array.h"
#include "base/json.h"
#include "base/json_write.h"
#include "net/uri.h"
#include "sinks/name.h"
#include "sinks/queues/queue.h"
#include "sinks/services.h"

#include <stdio.h>

/* "Amazon SQS message quotas": 10 entries, 1 MiB of them together (256 KiB until August 2025). */
#define SQS_ENTRIES 10
#define SQS_BYTES   (1024 * 1024)

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

/* A FIFO queue needs a group and an id for each message; messages without an order share the group "-". */
static void write_fifo(const struct sl_queue *queue, struct sl_buffer *out, const struct sl_message *message)
{
    char raw[SL_QUEUE_ID_BYTES];
    struct sl_buffer id = {.ptr = raw, .room = sizeof(raw), .max = sizeof(raw)};
    sl_queue_add_id(queue, &id, message->order.len ? message->order : SL_LIT("-"), SL_QUEUE_ID_BYTES);
    sl_json_add_member(out, "MessageGroupId", sl_buffer_span(&id));
    sl_buffer_reset(&id);
    sl_queue_add_dedupe(queue, &id, message);
    sl_json_add_member(out, "MessageDeduplicationId", sl_buffer_span(&id));
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

static size_t entry_of(const struct sl_queue_batch *batch, struct sl_span entry)
{
    return sl_queue_entry_of(sl_queue_text(batch, entry, "Id"));
}

static void read_taken(struct sl_queue_batch *batch, struct sl_span entry)
{
    size_t i = entry_of(batch, entry);
    const struct sl_message *message = sl_queue_message(batch, i);
    struct sl_span md5 = sl_answer_text(entry, "MD5OfMessageBody");
    bool is_other = message && md5.ptr && !sl_queue_is_md5(md5, message->body);
    if (sl_answer_text(entry, "MessageId").len && !is_other)
        sl_queue_taken(batch, i);
}

static void read_failed(struct sl_queue_batch *batch, struct sl_span entry)
{
    const struct sl_queue_refusal refusal = {
        .code = sl_queue_text(batch, entry, "Code"),
        .message = sl_queue_text(batch, entry, "Message"),
        .is_senders_fault = sl_span_is(sl_json_walk_member(entry, SL_LIT("SenderFault")), "true"),
    };
    if (refusal.code.len)
        sl_queue_refused(batch, entry_of(batch, entry), &refusal);
}

/* Either list may be left out when it is empty; anything but a list is another answer. */
static bool read_list(struct sl_queue_batch *batch, struct sl_span answer, const char *name,
                      void (*read)(struct sl_queue_batch *, struct sl_span))
{
    struct sl_span list = sl_json_walk_member(answer, sl_span_str(name)), entry;
    struct sl_json_walk walk = sl_json_walk(list);
    while (sl_json_walk_next(&walk, NULL, &entry))
        read(batch, entry);
    return !list.ptr || *list.ptr == '[' || sl_span_is(list, "null");
}

static bool read_entries(struct sl_queue_batch *batch, const struct sl_job *job)
{
    struct sl_span answer;
    return sl_answer_object(job, &answer) && read_list(batch, answer, "Successful", read_taken) &&
           read_list(batch, answer, "Failed", read_failed);
}

/* ---- the queue's URL ---- */

/* An absolute URL without a blank or a control character. */
static bool is_url(const char *text)
{
    struct sl_uri uri;
    for (const char *p = text; *p; p++)
        if (*p <= ' ' || *p >= 0x7F)
            return false;
    return sl_uri_parse(text, &uri);
}

static enum sl_job_next read_url(struct sl_job *job)
{
    struct sl_queue *queue = job->context;
    struct sl_span answer;
    if (!sl_answer_object(job, &answer))
        return SL_JOB_BROKEN;
    struct sl_span url = sl_json_unescape(sl_answer_text(answer, "QueueUrl"), job->call->arena);
    const char *text = sl_arena_copy(queue->arena, url);
    if (strlen(text) != url.len || !is_url(text))
        return SL_JOB_BROKEN;
    queue->address = text;
    return SL_JOB_DONE;
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
    struct sl_job job = {.kind = &kind,
                         .context = queue,
                         .operation = "GetQueueUrl",
                         .parts = &part,
                         .n_parts = 1,
                         .of_no_record = true};
    sl_job_run(&queue->client, &job, 1, call);
    sl_buffer_clean_up(&body);
    return job.status == SL_OK ? SL_OK : sl_fail(error, job.status, job.code, "%s", job.text);
}

/* With the account, the URL is built; without it, the service is asked once. */
static enum sl_status find_url(struct sl_queue *queue, const struct sl_call *call, struct sl_error *error)
{
    if (queue->address)
        return SL_OK;
    if (sl_client_ready(&queue->client, error) != SL_OK) {
        sl_error_context(error, "%s", queue->client.name);
        return SL_FATAL;
    }
    if (!queue->account)
        return ask_url(queue, call, error);
    queue->address =
        sl_arena_printf(queue->arena, "%s/%s/%s", queue->client.endpoint.base, queue->account, queue->name);
    return SL_OK;
}

/* ---- opening ---- */

static struct sl_span last_segment(struct sl_span *text)
{
    const char *slash = text->len ? memrchr(text->ptr, '/', text->len) : NULL;
    struct sl_span last = slash ? sl_span_from(*text, (size_t)(slash - text->ptr) + 1) : *text;
    text->len = slash ? (size_t)(slash - text->ptr) : 0;
    return last;
}

/* The forms of AWS's own hosts. In front of `ends` is the Region, behind `begins`. */
static const struct host_form {
    const char *begins, *ends;
    bool is_usual; /* the host of the Region: it is found anew, with the switches and endpoints of the SDKs */
} host_forms[] = {
    {"sqs.", ".amazonaws.com", true},
    {"sqs.", ".amazonaws.com.cn", true},
    {"sqs.", ".c2s.ic.gov", true},
    {"sqs.", ".sc2s.sgov.gov", true},
    {"sqs.", ".cloud.adc-e.uk", true},
    {"sqs.", ".csp.hci.ic.gov", true},
    {"sqs.", ".amazonaws.eu", true},
    {"sqs.", ".api.aws", false},
    {"sqs.", ".api.amazonwebservices.com.cn", false},
    {"sqs.", ".api.amazonwebservices.eu", false},
    {"sqs-fips.", ".amazonaws.com", false},
    {"sqs-fips.", ".api.aws", false},
    {"", ".queue.amazonaws.com", true}, /* of before 2011 */
    {"", ".queue.amazonaws.com.cn", true},
};

static bool is_form(struct sl_span host, const struct host_form *form, struct sl_span *region)
{
    struct sl_span begins = sl_span_str(form->begins), ends = sl_span_str(form->ends);
    if (host.len <= begins.len + ends.len || !sl_span_starts(host, begins) || !sl_span_ends(host, ends))
        return false;
    *region = sl_span(host.ptr + begins.len, host.len - begins.len - ends.len);
    return sl_endpoint_is_region(*region);
}

/* vpce-0ab12-cd34.sqs.us-west-2.vpce.amazonaws.com */
static bool is_of_network(struct sl_span host, struct sl_span *region)
{
    const char *sqs = sl_span_starts(host, SL_LIT("vpce-")) ? memmem(host.ptr, host.len, ".sqs.", 5) : NULL;
    const char *vpce = sqs ? memmem(sqs, (size_t)(host.ptr + host.len - sqs), ".vpce.amazonaws.", 16) : NULL;
    if (!vpce || vpce < sqs + 5)
        return false;
    *region = sl_span(sqs + 5, (size_t)(vpce - sqs) - 5);
    return sl_endpoint_is_region(*region);
}

/* Region and host of the queue's URL. A host that nobody knows is used as it stands: what is signed goes
 * where the target says. */
static void read_host(struct sl_queue *queue)
{
    struct sl_uri uri;
    struct sl_span region = {NULL, 0};
    bool is_usual = false;
    if (!is_url(queue->address) || !sl_uri_parse(queue->address, &uri))
        return;
    const struct sl_span host = sl_span_str(uri.host);
    if (sl_span_is(host, "queue.amazonaws.com")) {
        region = SL_LIT("us-east-1");
        is_usual = true;
    }
    for (size_t i = 0; i < SL_COUNT(host_forms) && !region.ptr; i++) {
        struct sl_span found;
        if (is_form(host, &host_forms[i], &found)) {
            region = found;
            is_usual = host_forms[i].is_usual;
        }
    }
    if (!region.ptr)
        (void)is_of_network(host, &region);
    if (region.ptr)
        queue->region = sl_span(sl_arena_copy(queue->arena, region), region.len);
    if (is_usual)
        return;
    size_t at = (size_t)(strstr(queue->address, "://") + 3 - queue->address);
    queue->host = sl_span(queue->address, at + strcspn(queue->address + at, "/"));
}

struct place {
    struct sl_span name, account; /* `account` absent when it is not known */
};

static struct place find_place(struct sl_queue *queue, struct sl_span rest)
{
    if (sl_span_starts(rest, SL_LIT("arn:")))
        return (struct place){.name = sl_arn_part(rest, 5), .account = sl_arn_part(rest, 4)};
    if (sl_span_starts(rest, SL_LIT("https://")) || sl_span_starts(rest, SL_LIT("http://"))) {
        queue->address = sl_arena_copy(queue->arena, rest);
        read_host(queue);
    }
    struct place place = {.name = last_segment(&rest)};
    if (rest.len)
        place.account = last_segment(&rest);
    return place;
}

static bool is_account(struct sl_span text)
{
    return text.len == 12 && strspn(text.ptr, "0123456789") >= 12;
}

static enum sl_status fill(struct sl_queue *queue, struct sl_url *url, struct sl_error *error)
{
    struct place place = find_place(queue, url->rest);
    struct sl_span account = sl_url_param(url, "account"), stem = place.name;
    if (account.ptr)
        place.account = account;
    queue->is_fifo = queue->keeps_order = sl_span_ends(stem, SL_LIT(".fifo"));
    if (queue->is_fifo)
        stem.len -= strlen(".fifo");
    if (!sl_name_is_valid(stem, "-_", 80))
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target %.*s: \"%.*s\" is not a queue name (1 to 80 letters, digits, '-', '_', and "
                       ".fifo)",
                       SL_ARG(url->shown), SL_ARG(place.name));
    if (queue->address && !queue->region.ptr && !queue->host.ptr)
        return sl_fail(
            error, SL_FATAL, "InvalidTarget",
            "target %.*s: a queue's URL is https://HOST/ACCOUNT/NAME, without a name and a password",
            SL_ARG(url->shown));
    if (place.account.ptr && !is_account(place.account))
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target %.*s: \"%.*s\" is not an account id (12 digits)", SL_ARG(url->shown),
                       SL_ARG(place.account));
    queue->name = sl_arena_copy(queue->arena, place.name);
    if (place.account.ptr)
        queue->account = sl_arena_copy(queue->arena, place.account);
    return SL_OK;
}

static const struct sl_queue_kind sqs = {
    .service = &sl_service_sqs,
    .operation = "SendMessageBatch",
    .params = SL_CLIENT_PARAMS ", account",
    .max_entries = SQS_ENTRIES,
    .max_bytes = SQS_BYTES,
    .max_entry_bytes = SQS_BYTES,
    .fill = fill,
    .bytes = message_bytes,
    .write = write_entries,
    .read = read_entries,
    .ready = find_url,
    .body = SL_CONTENT_XML,
    .has_attributes = true,
};

enum sl_status sl_sqs_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                           struct sl_error *error)
{
    return sl_queue_open(&sqs, sinks, url, out, error);
}
