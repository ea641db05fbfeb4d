#include "tests/support/fake_queue.h"

#include "base/base64.h"
#include "base/url.h"
#include "tests/support/honest.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Each service's quotas page: entries and bytes of a request, bytes of an entry. EventBridge takes less than
 * 256 KB. A partition key has 256 characters. */
static const struct service {
    const char *operation, *list, *id, *count; /* `id` of by-place answers; NULL: entries have ids */
    size_t entries, bytes, each;
} services[] = {
    {"SendMessageBatch", "Entries", NULL, NULL, 10, 1024 * 1024, 1024 * 1024},
    {"PublishBatch", NULL, NULL, NULL, 10, 256 * 1024, 256 * 1024},
    {"PutEvents", "Entries", "EventId", "FailedEntryCount", 10, 256 * 1024 - 1, 256 * 1024 - 1},
    {"PutRecords", "Records", "SequenceNumber", "FailedRecordCount", 500, 10 * 1024 * 1024, 10 * 1024 * 1024},
    {"PutRecordBatch", "Records", "RecordId", "FailedPutCount", 500, 4 * 1024 * 1024, 1000 * 1024},
};

struct request {
    struct fake_queue *fake;
    const struct service *is;
    struct fake_entry entries[FAKE_QUEUE_ENTRIES];
    char ids[FAKE_QUEUE_ENTRIES][90];
    size_t n;
};

void fake_queue_init(struct fake_queue *f)
{
    *f = (struct fake_queue){.arena = sl_arena_new(64 * 1024)};
    sl_buffer_init(&f->out, 1 << 26);
}

void fake_queue_clean_up(struct fake_queue *f)
{
    sl_buffer_clean_up(&f->out);
    sl_arena_destroy(f->arena);
}

static void fail(struct request *r, const char *why)
{
    if (!r->fake->fault)
        r->fake->fault = why;
}

/* ---- reading ---- */

static struct sl_span text(struct request *r, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value))
        return sl_span(NULL, 0);
    struct sl_span span = sl_span(json_string_value(value), json_string_length(value));
    return sl_span(sl_arena_copy(r->fake->arena, span), span.len);
}

static void read_attributes(struct request *r, struct fake_entry *entry, json_t *attributes)
{
    const char *name;
    json_t *value;
    json_object_foreach(attributes, name, value)
    {
        struct sl_span type = text(r, value, "DataType"), is = text(r, value, "StringValue");
        if (!is.len || !sl_span_is(type, "String"))
            fail(r, "an attribute has no value or no type");
        entry->bytes += strlen(name) + type.len + is.len;
        entry->n_attributes++;
    }
}

static struct sl_span decoded(struct request *r, const json_t *object)
{
    struct sl_span base64 = text(r, object, "Data");
    unsigned char *bytes = sl_arena_alloc(r->fake->arena, base64.len + 1);
    if (!base64.ptr || !sl_base64_decode(base64, bytes))
        fail(r, "a record's data is not base64");
    return sl_span((const char *)bytes, sl_base64_decoded_bytes(base64));
}

static void read_json_entry(struct request *r, const json_t *object, struct fake_entry *entry)
{
    const char *operation = r->is->operation;
    if (strcmp(operation, "SendMessageBatch") == 0) {
        entry->body = text(r, object, "MessageBody");
        entry->bytes = entry->body.len;
        entry->order = text(r, object, "MessageGroupId");
        entry->dedupe = text(r, object, "MessageDeduplicationId");
        read_attributes(r, entry, json_object_get(object, "MessageAttributes"));
        snprintf(r->ids[r->n], sizeof(r->ids[0]), "%s", text(r, object, "Id").ptr);
    } else if (strcmp(operation, "PutEvents") == 0) {
        entry->body = text(r, object, "Detail");
        entry->subject = text(r, object, "DetailType");
        entry->source = text(r, object, "Source");
        entry->bytes = entry->body.len + entry->subject.len + entry->source.len;
        if (!entry->subject.len || !entry->source.len || !text(r, object, "EventBusName").len)
            fail(r, "an event has no source, type or bus");
    } else {
        entry->body = decoded(r, object);
        entry->order = text(r, object, "PartitionKey");
        entry->bytes = entry->body.len + entry->order.len;
        if ((strcmp(operation, "PutRecords") == 0) != (entry->order.len >= 1 && entry->order.len <= 256))
            fail(r, "a record's partition key has none or too many characters");
        if (strcmp(operation, "PutRecordBatch") == 0 && entry->body.len &&
            entry->body.ptr[entry->body.len - 1] == '\n')
            entry->body.len--;
    }
}

static void read_json(struct request *r, struct sl_span body)
{
    json_t *root = json_loadb(body.ptr, body.len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL), *object;
    size_t i;
    if (!root)
        fail(r, "a request is not JSON");
    json_array_foreach(json_object_get(root, r->is->list), i, object) if (r->n < FAKE_QUEUE_ENTRIES)
    {
        r->entries[r->n] = (struct fake_entry){.bytes = 0};
        read_json_entry(r, object, &r->entries[r->n]);
        r->n++;
    }
    json_decref(root);
}

/* "PublishBatchRequestEntries.member.3.MessageAttributes.entry.1.Name": entry 3, the rest. */
static void read_field(struct request *r, struct sl_span name, struct sl_span value)
{
    static const char prefix[] = "PublishBatchRequestEntries.member.";
    size_t at = strlen(prefix), number = 0;
    if (!sl_span_starts(name, sl_span_str(prefix)))
        return;
    for (; at < name.len && name.ptr[at] != '.'; at++)
        number = number * 10 + (size_t)(name.ptr[at] - '0');
    if (number < 1 || number > FAKE_QUEUE_ENTRIES || number > r->n + 1) {
        fail(r, "the members of a form are not counted from one");
        return;
    }
    struct fake_entry *entry = &r->entries[number - 1];
    if (number > r->n) {
        r->n = number;
        *entry = (struct fake_entry){.bytes = 0};
    }
    struct sl_span rest = sl_span_from(name, at + 1);
    bool is_attribute = sl_span_starts(rest, SL_LIT("MessageAttributes.entry."));
    if (sl_span_is(rest, "Id"))
        snprintf(r->ids[number - 1], sizeof(r->ids[0]), "%.*s", SL_ARG(value));
    else if (sl_span_is(rest, "Message"))
        entry->body = value;
    else if (sl_span_is(rest, "Subject"))
        entry->subject = value;
    else if (sl_span_is(rest, "MessageGroupId"))
        entry->order = value;
    else if (sl_span_is(rest, "MessageDeduplicationId"))
        entry->dedupe = value;
    else if (!is_attribute || !value.len)
        fail(r, "a form has a field that is not known, or an attribute without a value");
    entry->n_attributes += is_attribute && sl_span_ends(rest, SL_LIT(".Name"));
    if (is_attribute || sl_span_is(rest, "Message") || sl_span_is(rest, "Subject"))
        entry->bytes += value.len;
}

static struct sl_span unescaped(struct request *r, struct sl_span from)
{
    struct sl_buffer out;
    sl_buffer_init_in(&out, r->fake->arena, from.len + 1);
    sl_url_decode(&out, from);
    return sl_span(out.ptr ? out.ptr : "", out.len);
}

static void read_form(struct request *r, struct sl_span body)
{
    while (body.len) {
        const char *end = memchr(body.ptr, '&', body.len);
        struct sl_span pair = sl_span(body.ptr, end ? (size_t)(end - body.ptr) : body.len);
        const char *equals = memchr(pair.ptr, '=', pair.len);
        if (!equals) {
            fail(r, "a field of a form has no value");
            return;
        }
        size_t name = (size_t)(equals - pair.ptr);
        read_field(r, sl_span(pair.ptr, name), unescaped(r, sl_span_from(pair, name + 1)));
        body = sl_span_from(body, pair.len + (end != NULL));
    }
}

static bool is_printable(struct sl_span span)
{
    for (size_t i = 0; i < span.len; i++)
        if (span.ptr[i] <= ' ' || span.ptr[i] >= 0x7F)
            return false;
    return span.len <= 128;
}

static void check(struct request *r)
{
    size_t bytes = 0;
    bool is_fifo = r->n && r->entries[0].dedupe.ptr, is_named = r->is->id == NULL;
    for (size_t i = 0; i < r->n; i++) {
        const struct fake_entry *e = &r->entries[i];
        bytes += e->bytes;
        if (e->bytes > r->is->each || !e->body.ptr)
            fail(r, "an entry has no body, or is too long");
        if ((e->dedupe.ptr != NULL) != is_fifo ||
            (is_fifo &&
             (!e->order.len || !e->dedupe.len || !is_printable(e->order) || !is_printable(e->dedupe))))
            fail(r, "an entry's group or deduplication id is not one");
        for (size_t k = 0; is_named && k < i; k++)
            if (strcmp(r->ids[k], r->ids[i]) == 0)
                fail(r, "two entries have one id");
    }
    if (!r->n || r->n > r->is->entries || bytes > r->is->bytes)
        fail(r, "a request has none or too many entries, or is too long");
    r->fake->requests++;
    r->fake->most_entries = r->n > r->fake->most_entries ? r->n : r->fake->most_entries;
    r->fake->most_bytes = bytes > r->fake->most_bytes ? bytes : r->fake->most_bytes;
}

/* ---- answering ---- */

static void add_entry(struct sl_buffer *out, const char *id, const struct fake_fate *fate, bool is_xml)
{
    const char *fault = fate->is_senders_fault ? "true" : "false";
    if (is_xml && fate->code)
        sl_buffer_printf(out,
                         "<member><Id>%s</Id><Code>%s</Code><Message>m</Message><SenderFault>%s</SenderFault>"
                         "</member>",
                         id, fate->code, fault);
    else if (is_xml)
        sl_buffer_printf(out, "<member><Id>%s</Id><MessageId>m</MessageId></member>", id);
    else if (fate->code)
        sl_buffer_printf(out, "%s{\"Id\":\"%s\",\"Code\":\"%s\",\"Message\":\"m\",\"SenderFault\":%s}",
                         out->len ? "," : "", id, fate->code, fault);
    else
        sl_buffer_printf(out, "%s{\"Id\":\"%s\",\"MessageId\":\"m\"}", out->len ? "," : "", id);
}

/* The last entry first: the lists have no order. */
static void answer_by_id(struct request *r, const struct fake_fate *fates)
{
    struct sl_buffer lists[2];
    bool is_xml = !r->is->list;
    for (int k = 0; k < 2; k++)
        sl_buffer_init_in(&lists[k], r->fake->arena, 1 << 20);
    for (size_t i = r->n; i > 0; i--) {
        const struct fake_fate *fate = &fates[i - 1];
        struct sl_buffer *list = &lists[fate->code != NULL];
        if (fate->named == FAKE_UNKNOWN_ID)
            add_entry(list, "99", fate, is_xml);
        for (int times = fate->named == FAKE_ONCE ? 1 : fate->named == FAKE_TWICE ? 2 : 0; times > 0; times--)
            add_entry(list, r->ids[i - 1], fate, is_xml);
    }
    struct sl_span taken = sl_buffer_span(&lists[0]), failed = sl_buffer_span(&lists[1]);
    sl_buffer_printf(
        &r->fake->out,
        is_xml ? "<PublishBatchResponse><PublishBatchResult><Failed>%.*s</Failed><Successful>%.*s"
                 "</Successful></PublishBatchResult></PublishBatchResponse>"
               : "{\"Failed\":[%.*s],\"Successful\":[%.*s]}",
        (int)failed.len, failed.len ? failed.ptr : "", (int)taken.len, taken.len ? taken.ptr : "");
}

static void answer_by_place(struct request *r, const struct fake_fate *fates)
{
    struct sl_buffer *out = &r->fake->out;
    size_t failed = 0;
    sl_buffer_printf(out, "{\"%s\":[",
                     strcmp(r->is->operation, "PutRecordBatch") == 0 ? "RequestResponses" : r->is->list);
    for (size_t i = 0; i < r->n; i++) {
        failed += fates[i].code != NULL;
        sl_buffer_add_str(out, out->ptr[out->len - 1] == '[' ? "" : ",");
        if (fates[i].code)
            sl_buffer_printf(out, "{\"ErrorCode\":\"%s\",\"ErrorMessage\":\"m\"}", fates[i].code);
        else
            sl_buffer_printf(out, "{\"%s\":\"x\"}", r->is->id);
    }
    sl_buffer_printf(out, "],\"%s\":%zu}", r->is->count, failed);
}

static void refuse(struct request *r, struct scripted_reply *reply, const char *code)
{
    reply->status = 400;
    sl_buffer_printf(&r->fake->out,
                     r->is->list ? "{\"__type\":\"com.amazonaws#%s\",\"message\":\"m\"}"
                                 : "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code></Error>"
                                   "</ErrorResponse>",
                     code);
}

static void judge_all(struct request *r, struct scripted_reply *reply)
{
    struct fake_queue *f = r->fake;
    struct fake_fate *fates = sl_arena_zalloc(f->arena, FAKE_QUEUE_ENTRIES * sizeof(*fates));
    const char *code = f->refuse ? f->refuse(f->arg, r->entries, r->n) : NULL;
    if (code) {
        refuse(r, reply, code);
        return;
    }
    for (size_t i = 0; i < r->n; i++) {
        fates[i] = f->judge(f->arg, &r->entries[i]);
        if (r->is->id && fates[i].named != FAKE_ONCE)
            fail(r, "an answer by place names each entry once");
    }
    if (r->is->id)
        answer_by_place(r, fates);
    else
        answer_by_id(r, fates);
}

void fake_queue_answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct fake_queue *f = arg;
    char operation[64];
    honest_operation(request, operation, sizeof(operation));
    sl_arena_reset(f->arena);
    sl_buffer_reset(&f->out);
    struct request *r = sl_arena_zalloc(f->arena, sizeof(*r));
    r->fake = f;
    r->is = services;
    while (r->is < services + 4 && strcmp(r->is->operation, operation) != 0)
        r->is++;
    *reply = (struct scripted_reply){.status = 200};
    if (r->is->list)
        read_json(r, request->body);
    else
        read_form(r, request->body);
    check(r);
    if (f->fault)
        refuse(r, reply, "FakeFault");
    else
        judge_all(r, reply);
    reply->body = sl_buffer_span(&f->out);
}
