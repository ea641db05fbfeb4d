#include "tests/support/fake_inbox.h"

#include "tests/support/test.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN_MAX_MS ((int64_t)12 * 3600 * 1000)

void fake_inbox_init(struct fake_inbox *fake, struct sl_clock *clock)
{
    *fake = (struct fake_inbox){.clock = clock};
    sl_buffer_init(&fake->out, 1 << 26);
}

void fake_inbox_clean_up(struct fake_inbox *fake)
{
    for (size_t i = 0; i < fake->n; i++)
        free(fake->list[i].body);
    sl_buffer_clean_up(&fake->out);
}

struct fake_message *fake_inbox_add(struct fake_inbox *fake, const char *group, const char *body)
{
    assert_true(fake->n < FAKE_INBOX_MESSAGES);
    struct fake_message *m = &fake->list[fake->n++];
    *m = (struct fake_message){.body = strdup(body), .group = group};
    return m;
}

static int64_t now_ms(const struct fake_inbox *fake)
{
    return fake->clock->now_ms(fake->clock);
}

static bool is_there(const struct fake_message *m)
{
    return !m->is_removed && !m->is_moved;
}

static bool is_hidden(const struct fake_inbox *fake, const struct fake_message *m)
{
    return is_there(m) && m->until_ms > now_ms(fake);
}

size_t fake_inbox_count(const struct fake_inbox *fake)
{
    size_t n = 0;
    for (size_t i = 0; i < fake->n; i++)
        n += is_there(&fake->list[i]);
    return n;
}

size_t fake_inbox_in_flight(const struct fake_inbox *fake)
{
    size_t n = 0;
    for (size_t i = 0; i < fake->n; i++)
        n += is_hidden(fake, &fake->list[i]);
    return n;
}

static void refuse(struct fake_inbox *fake, struct scripted_reply *reply, const char *code)
{
    reply->status = 400;
    sl_buffer_printf(&fake->out, "{\"__type\":\"com.amazonaws.sqs#%s\",\"message\":\"by the rules\"}", code);
}

/* ---- receiving ---- */

/* A message of the group is out, so none behind it is given. */
static bool is_blocked(const struct fake_inbox *fake, const struct fake_message *m, size_t before)
{
    for (size_t i = 0; i < before && m->group; i++)
        if (fake->list[i].group && strcmp(fake->list[i].group, m->group) == 0 &&
            is_hidden(fake, &fake->list[i]))
            return true;
    return false;
}

static void add_message(struct fake_inbox *fake, const struct fake_message *m)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    json_t *body = json_string(m->body);
    char *text = json_dumps(body, JSON_ENCODE_ANY);
    unsigned i = (unsigned)(m - fake->list);
    assert_int_equal(EVP_Digest(m->body, strlen(m->body), digest, NULL, EVP_md5(), NULL), 1);
    sl_buffer_printf(&fake->out,
                     "{\"MessageId\":\"m-%u\",\"ReceiptHandle\":\"%u#%u\",\"Body\":%s,\"MD5OfBody\":\"", i, i,
                     m->receives, text);
    for (int k = 0; k < 16; k++)
        sl_buffer_printf(&fake->out, "%02x", digest[k]);
    sl_buffer_printf(
        &fake->out,
        "\",\"Attributes\":{\"ApproximateReceiveCount\":\"%u\",\"SentTimestamp\":\"1795208640123\"",
        m->receives);
    if (m->group)
        sl_buffer_printf(&fake->out, ",\"MessageGroupId\":\"%s\"", m->group);
    sl_buffer_add_str(&fake->out, "}}");
    free(text);
    json_decref(body);
}

static void receive(struct fake_inbox *fake, const json_t *ask, struct scripted_reply *reply)
{
    size_t most = (size_t)json_integer_value(json_object_get(ask, "MaxNumberOfMessages")), given = 0;
    int64_t hidden_ms = json_integer_value(json_object_get(ask, "VisibilityTimeout")) * 1000;
    bool out[FAKE_INBOX_MESSAGES] = {false};
    most = fake->each && fake->each < most ? fake->each : most;
    if (fake->most_in_flight && fake_inbox_in_flight(fake) >= fake->most_in_flight) {
        refuse(fake, reply, "OverLimit");
        return;
    }
    for (size_t i = 0; i < fake->n && given < most; i++) {
        struct fake_message *m = &fake->list[i];
        if (!is_there(m) || is_hidden(fake, m) || is_blocked(fake, m, i))
            continue;
        m->is_moved = fake->max_receives && m->receives >= fake->max_receives;
        out[i] = !m->is_moved;
        given += out[i];
    }
    sl_buffer_add_str(&fake->out, given ? "{\"Messages\":[" : "{");
    for (size_t i = 0, k = 0; i < fake->n; i++) {
        struct fake_message *m = &fake->list[i];
        if (!out[i])
            continue;
        m->first_ms = m->receives++ ? m->first_ms : now_ms(fake);
        m->until_ms = now_ms(fake) + hidden_ms;
        sl_buffer_add_str(&fake->out, k++ ? "," : "");
        add_message(fake, m);
    }
    sl_buffer_add_str(&fake->out, given ? "]}" : "}");
}

/* ---- batches ---- */

/* The message of a receipt; `*is_old`: it was received again since. */
static struct fake_message *of_receipt(struct fake_inbox *fake, const char *receipt, bool *is_old)
{
    unsigned i = 0, times = 0;
    if (!receipt || sscanf(receipt, "%u#%u", &i, &times) != 2 || i >= fake->n)
        return NULL;
    *is_old = fake->list[i].receives != times;
    return &fake->list[i];
}

static const char *remove_one(struct fake_message *m, bool is_old)
{
    if (is_old && !m->is_removed)
        return "ReceiptHandleIsInvalid";
    m->is_removed = true;
    return NULL;
}

static const char *hide_one(const struct fake_inbox *fake, struct fake_message *m, bool is_old, int64_t s)
{
    if (is_old || !is_hidden(fake, m))
        return "ReceiptHandleIsInvalid";
    if (s && now_ms(fake) + s * 1000 > m->first_ms + HIDDEN_MAX_MS)
        return "InvalidParameterValue";
    m->until_ms = s ? now_ms(fake) + s * 1000 : 0;
    m->hidden += s > 0;
    return NULL;
}

static void batch(struct fake_inbox *fake, struct sl_span operation, const json_t *ask)
{
    const json_t *entries = json_object_get(ask, "Entries"), *entry;
    bool removes = sl_span_is(operation, "DeleteMessageBatch");
    size_t i, n_done = 0, n_failed = 0;
    char failed[4096] = "";
    assert_in_range(json_array_size(entries), 1, 10);
    sl_buffer_add_str(&fake->out, "{\"Successful\":[");
    json_array_foreach(entries, i, entry)
    {
        bool is_old = false;
        const char *id = json_string_value(json_object_get(entry, "Id"));
        struct fake_message *m =
            of_receipt(fake, json_string_value(json_object_get(entry, "ReceiptHandle")), &is_old);
        const char *code =
            m ? fake->judge ? fake->judge(fake->arg, operation, m) : NULL : "ReceiptHandleIsInvalid";
        if (!code && removes)
            code = remove_one(m, is_old);
        else if (!code)
            code = hide_one(fake, m, is_old, json_integer_value(json_object_get(entry, "VisibilityTimeout")));
        if (!code)
            sl_buffer_printf(&fake->out, "%s{\"Id\":\"%s\"}", n_done++ ? "," : "", id);
        else
            snprintf(failed + strlen(failed), sizeof(failed) - strlen(failed),
                     "%s{\"Id\":\"%s\",\"Code\":\"%s\",\"SenderFault\":true,\"Message\":\"x\"}",
                     n_failed++ ? "," : "", id, code);
    }
    sl_buffer_printf(&fake->out, "],\"Failed\":[%s]}", failed);
}

/* ---- requests ---- */

static void describe(struct fake_inbox *fake)
{
    size_t flying = fake_inbox_in_flight(fake);
    sl_buffer_printf(
        &fake->out,
        "{\"Attributes\":{\"QueueArn\":\"arn:aws:sqs:us-east-1:123456789012:failed\","
        "\"ApproximateNumberOfMessages\":\"%zu\",\"ApproximateNumberOfMessagesNotVisible\":\"%zu\","
        "\"ApproximateNumberOfMessagesDelayed\":\"0\"",
        fake_inbox_count(fake) - flying, flying);
    if (fake->max_receives)
        sl_buffer_printf(&fake->out,
                         ",\"RedrivePolicy\":\"{\\\"deadLetterTargetArn\\\":\\\"" FAKE_INBOX_POLICY
                         "\\\",\\\"maxReceiveCount\\\":%u}\"",
                         fake->max_receives);
    sl_buffer_add_str(&fake->out, "}}");
}

void fake_inbox_answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct fake_inbox *fake = arg;
    struct sl_span target = scripted_header(request, "x-amz-target"), host = scripted_header(request, "host");
    const char *dot = target.ptr ? memchr(target.ptr, '.', target.len) : NULL;
    assert_non_null(dot);
    struct sl_span operation = sl_span_from(target, (size_t)(dot + 1 - target.ptr));
    json_t *ask = json_loadb(request->body.ptr, request->body.len, 0, NULL);
    snprintf(fake->url, sizeof(fake->url), "http://%.*s", SL_ARG(host));
    fake->out.len = 0;
    reply->status = 200;
    reply->headers = "content-type: application/x-amz-json-1.0\r\n";
    bool is_answered = fake->instead && fake->instead(fake->arg, operation, reply);
    if (is_answered)
        ;
    else if (sl_span_is(operation, "GetQueueUrl"))
        sl_buffer_printf(&fake->out, "{\"QueueUrl\":\"%s/123456789012/failed%s\"}", fake->url,
                         fake->is_fifo ? ".fifo" : "");
    else if (sl_span_is(operation, "GetQueueAttributes"))
        describe(fake);
    else if (sl_span_is(operation, "ReceiveMessage"))
        receive(fake, ask, reply);
    else
        batch(fake, operation, ask);
    json_decref(ask);
    if (!is_answered)
        reply->body = sl_buffer_span(&fake->out);
    if (!is_answered && fake->after)
        fake->after(fake->arg, operation);
}
