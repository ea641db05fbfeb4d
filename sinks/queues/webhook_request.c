/* One request of a webhook: its body, its id, and for each attempt its date and signatures. */
#include "sinks/queues/webhook_private.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/version.h"
#include "base/version.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* Of "msg.1795208640.": the seconds have ten digits until the year 2286. */
#define STAMP_DIGITS 10
/* As it is in front of an id that is a digest; a plain id that begins so is digested too. */
#define DIGEST_MARK "sha256-"
/* A plain `dedupe` of at most so many bytes is an id itself. */
#define PLAIN_ID_BYTES 64

/* ---- bodies ---- */

/* By the rule of jsonl: objects and arrays are JSON, other bodies are text. */
static bool is_json(struct sl_span body)
{
    return body.len && (body.ptr[0] == '{' || body.ptr[0] == '[') && sl_json_check(body, NULL) == SL_OK;
}

struct sl_span sl_webhook_member(struct sl_webhook *webhook, const struct sl_message *message)
{
    struct sl_buffer text;
    if (webhook->batch == 1 || is_json(message->body))
        return message->body;
    sl_buffer_init_in(&text, webhook->aws->scratch, message->body.len * 6 + 2);
    sl_json_add_string(&text, message->body);
    return sl_buffer_span(&text);
}

static void write_array(struct sl_webhook_slot *slot, const struct sl_span *members)
{
    for (size_t i = 0; i < slot->n; i++) {
        sl_buffer_add_char(&slot->text, i ? ',' : '[');
        sl_buffer_add_span(&slot->text, members[slot->entries[i]]);
    }
    sl_buffer_add_char(&slot->text, ']');
}

/* ---- ids ---- */

static bool is_plain(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
              c == '_'))
            return false;
    }
    return text.len > 0 && text.len <= PLAIN_ID_BYTES && !sl_span_starts(text, SL_LIT(DIGEST_MARK));
}

static void add_digest(struct sl_webhook *webhook, struct sl_buffer *out, struct sl_span text)
{
    unsigned char digest[SL_SHA256_BYTES];
    char hex[SL_SHA256_HEX];
    sl_sha256_parts(sl_aws_sha(webhook->aws), &text, 1, digest);
    sl_sha256_hex(digest, hex);
    sl_buffer_add_str(out, DIGEST_MARK);
    sl_buffer_add_str(out, hex);
}

/* The same message has the same id, in this process and in the next. */
static void add_id(struct sl_webhook *webhook, struct sl_buffer *out, const struct sl_message *message)
{
    if (is_plain(message->dedupe))
        sl_buffer_add_span(out, message->dedupe);
    else
        add_digest(webhook, out, message->dedupe.len ? message->dedupe : message->body);
}

/* An array's id is that of its only message, or the digest of all ids. */
static void write_id(struct sl_webhook *webhook, struct sl_webhook_slot *slot,
                     const struct sl_message *messages)
{
    struct sl_buffer id;
    sl_buffer_init_in(&id, webhook->aws->scratch, slot->n * (SL_WEBHOOK_ID_BYTES + 1));
    for (size_t i = 0; i < slot->n; i++) {
        add_id(webhook, &id, &messages[slot->entries[i]]);
        if (slot->n > 1)
            sl_buffer_add_char(&id, '\n');
    }
    struct sl_span all = sl_buffer_span(&id);
    if (slot->n > 1) {
        struct sl_buffer digest;
        sl_buffer_init_in(&digest, webhook->aws->scratch, SL_WEBHOOK_ID_BYTES);
        add_digest(webhook, &digest, all);
        all = sl_buffer_span(&digest);
    }
    int n = snprintf(slot->id, sizeof(slot->id), "%s%.*s", webhook->id, SL_ARG(all));
    assert(n > 0 && (size_t)n < sizeof(slot->id));
    (void)n;
}

void sl_webhook_write(struct sl_webhook *webhook, struct sl_webhook_slot *slot,
                      const struct sl_message *messages, const struct sl_span *members)
{
    size_t bytes = SL_WEBHOOK_ID_BYTES + STAMP_DIGITS + 8;
    for (size_t i = 0; i < slot->n; i++)
        bytes += members[slot->entries[i]].len + 1;
    write_id(webhook, slot, messages);
    sl_buffer_reset(&slot->text);
    slot->text.max = bytes;
    sl_buffer_printf(&slot->text, "%s.%0*d.", slot->id, STAMP_DIGITS, 0);
    slot->body_at = slot->text.len;
    slot->is_json = webhook->batch > 1 || is_json(members[slot->entries[0]]);
    if (webhook->batch > 1)
        write_array(slot, members);
    else
        sl_buffer_add_span(&slot->text, members[slot->entries[0]]);
    assert(!slot->text.failed);
    slot->part = sl_span_from(sl_buffer_span(&slot->text), slot->body_at);
}

/* ---- attempts ---- */

static void make_hmacs(struct sl_webhook *webhook)
{
    for (size_t i = 0; i < webhook->n_keys && !webhook->has_hmacs; i++)
        sl_sha256_key_set(sl_aws_sha(webhook->aws), &webhook->hmacs[i], webhook->keys[i]);
    webhook->has_hmacs = true;
}

/* "v1,BASE64 v1,BASE64": the new secret's first. */
static const char *signatures(struct sl_webhook *webhook, struct sl_webhook_slot *slot)
{
    struct sl_buffer out;
    make_hmacs(webhook);
    sl_buffer_init_in(&out, slot->arena, 256);
    for (size_t i = 0; i < webhook->n_keys; i++) {
        unsigned char digest[SL_SHA256_BYTES];
        char text[SL_SHA256_BYTES / 3 * 4 + 8];
        sl_sha256_hmac(sl_aws_sha(webhook->aws), &webhook->hmacs[i], sl_buffer_span(&slot->text), digest);
        size_t n = sl_base64_encode_to(sl_span((const char *)digest, sizeof(digest)), text);
        sl_buffer_printf(&out, "%sv1,%.*s", i ? " " : "webhook-signature: ", (int)n, text);
    }
    sl_buffer_add_char(&out, '\0');
    return out.ptr;
}

static void add_line(struct sl_webhook_slot *slot, const char *line)
{
    slot->exchange.headers[slot->exchange.n_headers++] = line;
}

void sl_webhook_sign(struct sl_webhook *webhook, struct sl_webhook_slot *slot)
{
    struct sl_http_exchange *exchange = &slot->exchange;
    char stamp[STAMP_DIGITS + 12];
    sl_arena_reset(slot->arena);
    snprintf(stamp, sizeof(stamp), "%0*" PRId64, STAMP_DIGITS, sl_aws_now_s(webhook->aws));
    memcpy(slot->text.ptr + slot->body_at - 1 - STAMP_DIGITS, stamp, STAMP_DIGITS);
    exchange->n_headers = 0;
    add_line(slot, sl_user_agent_line);
    if (!webhook->has_type)
        add_line(slot, slot->is_json ? "content-type: application/json"
                                     : "content-type: text/plain; charset=utf-8");
    add_line(slot, sl_arena_printf(slot->arena, "webhook-id: %s", slot->id));
    add_line(slot, sl_arena_printf(slot->arena, "webhook-timestamp: %s", stamp));
    if (webhook->n_keys)
        add_line(slot, signatures(webhook, slot));
    for (size_t i = 0; i < webhook->n_lines; i++)
        add_line(slot, webhook->lines[i]);
    exchange->method = "POST";
    exchange->url = webhook->url;
    exchange->parts = &slot->part;
    exchange->n_parts = 1;
    exchange->body_bytes = slot->part.len;
    exchange->is_private = !webhook->through_proxy;
    exchange->rules = &webhook->rules; /* also where NO_PROXY takes it around the proxy */
}
