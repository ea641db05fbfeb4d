/* Chooses what is sent when: messages of one order one after the other, others side by side, each request
 * with its attempts, until every message has its result.
 *
 * Why not aws/job.h, which also sends many requests with their attempts: its jobs are there before the first
 * one is sent, and here a request is made of what is free to go while others fly. What an answer means, what
 * is signed, whose address is checked, and how long a receiver's Retry-After holds all others are the
 * webhook's own, too. Pace, retry budget and contrast are shared (net/pace.h, net/retry.h, aws/contrast.h).
 */
#include "sinks/queues/webhook_private.h"

#include "aws/mask.h"
#include "base/array.h"
#include "base/base64.h"
#include "base/clean.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/version.h"
#include "sinks/queues/content.h"
#include "sinks/result.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_ARENA_BYTES 2048
#define NONE             SIZE_MAX
#define OPERATION        "POST" /* for contrast: a webhook has one */

enum sl_webhook_next {
    SL_WEBHOOK_TAKEN,
    SL_WEBHOOK_REFUSED,   /* for good; SL_REJECT or SL_FATAL */
    SL_WEBHOOK_DOUBTED,   /* for good; whose fault it is, contrast says */
    SL_WEBHOOK_AGAIN,     /* for now */
    SL_WEBHOOK_THROTTLED, /* for now; a longer wait */
};

struct sl_webhook_verdict {
    enum sl_webhook_next next;
    enum sl_status status; /* after the last attempt */
    const char *code, *text;
    int64_t after_ms;   /* the receiver asks for so long a pause; 0: it does not */
    bool is_everybodys; /* other requests would meet the same: no connection */
};

/* What an answer of a receiver, or the lack of one, means for its messages. */

/* What a status means where its class does not say it. Source of 410 and 429: Standard Webhooks 1.0. */
static const struct meaning {
    int status;
    enum sl_webhook_next next;
    const char *hint;
} meanings[] = {
    {401, SL_WEBHOOK_REFUSED, "the receiver does not accept who we are; check secret and header_env"},
    {402, SL_WEBHOOK_REFUSED, "the receiver wants to be paid"},
    {403, SL_WEBHOOK_REFUSED, "the receiver does not accept who we are; check secret and header_env"},
    {404, SL_WEBHOOK_REFUSED, "the receiver has nothing at this path; check the target"},
    {405, SL_WEBHOOK_REFUSED, "the receiver takes no POST at this path; check the target"},
    {407, SL_WEBHOOK_REFUSED, "the proxy wants credentials; check HTTPS_PROXY"},
    {408, SL_WEBHOOK_AGAIN, NULL},
    {410, SL_WEBHOOK_REFUSED, "the receiver is gone for good; remove the route or change its target"},
    {425, SL_WEBHOOK_AGAIN, NULL},
    {429, SL_WEBHOOK_THROTTLED, NULL},
    {451, SL_WEBHOOK_REFUSED, "the receiver may not take it"},
    {503, SL_WEBHOOK_THROTTLED, NULL},
};

static struct meaning meaning_of(int status)
{
    for (size_t i = 0; i < SL_COUNT(meanings); i++)
        if (meanings[i].status == status)
            return meanings[i];
    if (status >= 200 && status < 300)
        return (struct meaning){status, SL_WEBHOOK_TAKEN, NULL};
    if (status >= 300 && status < 400)
        return (struct meaning){status, SL_WEBHOOK_REFUSED,
                                "redirects are not followed; write the new address into the target"};
    if (status >= 400 && status < 500)
        return (struct meaning){status, SL_WEBHOOK_DOUBTED, NULL};
    return (struct meaning){status, SL_WEBHOOK_AGAIN, NULL}; /* also what is no status of HTTP */
}

static const char *say(const struct sl_webhook *webhook, struct sl_arena *arena, const char *format, ...)
    SL_PRINTF(3, 4);
static const char *say(const struct sl_webhook *webhook, struct sl_arena *arena, const char *format, ...)
{
    char text[SL_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    sl_clean(sl_span_str(text), text, sizeof(text));
    return sl_arena_printf(arena, "%s: POST: %s", webhook->name, text);
}

/* ---- Retry-After ---- */

static int64_t seconds(struct sl_span text)
{
    int64_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return -1;
        n = n < SL_WEBHOOK_PAUSE_MS ? n * 10 + (text.ptr[i] - '0') : n;
    }
    return text.len ? n : -1;
}

/* Seconds, or a date (RFC 9110, 10.2.3), which counts from the answer's own Date: the receiver's clock may be
 * wrong. */
static int64_t asked_ms(const struct sl_webhook *webhook, const struct sl_http_exchange *answer)
{
    struct sl_span text = sl_http_header(answer, "retry-after");
    int64_t s = seconds(text);
    if (s < 0 && text.len) {
        int64_t at = sl_http_date(text), now = sl_http_date(sl_http_header(answer, "date"));
        s = at < 0 ? 0 : at - (now < 0 ? sl_aws_now_s(webhook->aws) : now);
    }
    if (s <= 0)
        return 0;
    return s < SL_WEBHOOK_PAUSE_MS / 1000 ? s * 1000 : SL_WEBHOOK_PAUSE_MS;
}

/* ---- answers ---- */

static bool is_rejected(const struct sl_webhook *webhook, const char *code)
{
    for (size_t i = 0; i < webhook->n_rejects; i++)
        if (sl_span_is(webhook->rejects[i], code))
            return true;
    return false;
}

static struct sl_webhook_verdict judge_answer(struct sl_webhook *webhook, const struct sl_webhook_slot *slot,
                                              struct sl_arena *arena)
{
    const struct sl_http_exchange *answer = &slot->exchange;
    struct meaning meaning = meaning_of(answer->status);
    struct sl_webhook_verdict verdict = {.next = meaning.next};
    if (meaning.next == SL_WEBHOOK_TAKEN)
        return verdict;
    bool is_for_now = meaning.next == SL_WEBHOOK_AGAIN || meaning.next == SL_WEBHOOK_THROTTLED;
    verdict.code = sl_arena_printf(arena, "Http%d", answer->status);
    sl_aws_saw_refusal(webhook->aws, answer->status);
    verdict.status = is_for_now ? SL_RETRY : SL_FATAL;
    if (is_rejected(webhook, verdict.code)) {
        verdict.next = SL_WEBHOOK_REFUSED;
        verdict.status = SL_REJECT;
    }
    verdict.after_ms = is_for_now ? asked_ms(webhook, answer) : 0;
    verdict.text = say(webhook, arena, "HTTP %d (%zu bytes)%s%s", answer->status, answer->body.len,
                       meaning.hint ? "; " : "", meaning.hint ? meaning.hint : "");
    return verdict;
}

/* ---- no answer ---- */

/* libcurl's words may quote the peer: a certificate's names. */
static void show(const struct sl_webhook *webhook, const struct sl_webhook_slot *slot,
                 char out[SL_MASK_SHOWN_BYTES])
{
    struct sl_mask mask = {.carried = &slot->part, .n_carried = 1};
    for (size_t i = 0; i < webhook->n_secrets; i++)
        sl_mask_secret(&mask, webhook->secrets[i]);
    sl_mask_own(&mask, sl_span_str(webhook->name));
    sl_mask_show(&mask, sl_span_str(slot->exchange.problem), out, SL_MASK_SHOWN_BYTES);
}

static struct sl_webhook_verdict refusal(enum sl_status status, const char *code, const char *text)
{
    return (struct sl_webhook_verdict){
        .next = SL_WEBHOOK_REFUSED, .status = status, .code = code, .text = text};
}

/* The slot's exchange is over. Texts are in `arena`. */
static struct sl_webhook_verdict webhook_judge(struct sl_webhook *webhook, const struct sl_webhook_slot *slot,
                                               struct sl_arena *arena)
{
    const struct sl_http_exchange *exchange = &slot->exchange;
    char problem[SL_MASK_SHOWN_BYTES];
    if (exchange->outcome == SL_HTTP_ANSWERED)
        return judge_answer(webhook, slot, arena);
    show(webhook, slot, problem);
    switch (exchange->outcome) {
    case SL_HTTP_FORBIDDEN:
        return refusal(SL_FATAL, "ForbiddenAddress",
                       say(webhook, arena, "the host leads to %s; nothing was sent%s", exchange->problem,
                           exchange->is_private_place ? "; #private=1 allows private addresses" : ""));
    case SL_HTTP_UNTRUSTED:
        return refusal(
            SL_FATAL, "UntrustedCertificate",
            say(webhook, arena, "%s; check the receiver's certificate, and AWS_CA_BUNDLE", problem));
    case SL_HTTP_UNSENDABLE:
        return refusal(SL_FATAL, "InvalidHeader",
                       say(webhook, arena, "%s; nothing was sent; check the target's options", problem));
    default:
        break;
    }
    return (struct sl_webhook_verdict){
        .next = SL_WEBHOOK_AGAIN,
        .status = SL_RETRY,
        .code = exchange->timed_out ? "RequestTimeout" : "ConnectionError",
        .text =
            say(webhook, arena, "%s; %s", problem,
                exchange->outcome == SL_HTTP_BROKEN ? "the message may have been taken" : "nothing was sent"),
        .is_everybodys = exchange->outcome == SL_HTTP_NOT_SENT,
    };
}

/* One request of a webhook: its body, its id, and for each attempt its date and signatures. */

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

/* A message as it is sent: alone, or as a member of an array (in scratch where it is no JSON object or
 * array). */
static struct sl_span webhook_member(struct sl_webhook *webhook, const struct sl_message *message)
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

/* What all the request's messages have in the attribute, if it can be a header's value. */
static struct sl_span shared_by_all(const struct sl_webhook_slot *slot, const struct sl_message *messages,
                                    const char *name)
{
    const struct sl_span absent = {NULL, 0}, value = sl_content_attribute(&messages[slot->entries[0]], name);
    for (size_t i = 1; i < slot->n; i++)
        if (!sl_span_eq(value, sl_content_attribute(&messages[slot->entries[i]], name)))
            return absent;
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] < ' ' || value.ptr[i] > '~')
            return absent;
    return value;
}

/* A request is a part of one trace at most. */
static void find_trace(struct sl_webhook_slot *slot, const struct sl_message *messages)
{
    slot->trace[0] = shared_by_all(slot, messages, SL_CONTENT_TRACEPARENT);
    slot->trace[1] = shared_by_all(slot, messages, SL_CONTENT_TRACESTATE);
}

/* Writes the slot's id and body. `members[i]` is message i as an array's member. */
static void webhook_write(struct sl_webhook *webhook, struct sl_webhook_slot *slot,
                          const struct sl_message *messages, const struct sl_span *members)
{
    size_t bytes = SL_WEBHOOK_ID_BYTES + STAMP_DIGITS + 8;
    for (size_t i = 0; i < slot->n; i++)
        bytes += members[slot->entries[i]].len + 1;
    write_id(webhook, slot, messages);
    find_trace(slot, messages);
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

/* The target's own headers come first. */
static void add_trace(const struct sl_webhook *webhook, struct sl_webhook_slot *slot)
{
    if (webhook->has_trace || !slot->trace[0].len)
        return;
    add_line(slot, sl_arena_printf(slot->arena, SL_CONTENT_TRACEPARENT ": %.*s", SL_ARG(slot->trace[0])));
    if (slot->trace[1].len)
        add_line(slot, sl_arena_printf(slot->arena, SL_CONTENT_TRACESTATE ": %.*s", SL_ARG(slot->trace[1])));
}

/* Dates and signs the request, and fills in the exchange, all but its timeout. */
static void webhook_sign(struct sl_webhook *webhook, struct sl_webhook_slot *slot)
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
    add_trace(webhook, slot);
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

/* ---- the run ---- */

enum step { PENDING, TAKEN, DOUBTED, DONE };

struct run {
    struct sl_webhook *webhook;
    const struct sl_message *messages;
    size_t n;
    struct sl_result *results;
    const struct sl_call *call;
    struct sl_arena *scratch;
    struct sl_span *members;
    enum step *steps;
    const struct sl_webhook_slot **slots; /* of what is TAKEN */
    bool *alone;                          /* was part of an array that was refused */
    size_t *before, *after;               /* of the same order; NONE */
    size_t low;                           /* no message before it is PENDING */
    size_t doubted, active, flying, bytes;
    const struct sl_result *stop; /* what the messages not begun get too */
};

static int64_t now_ms(const struct run *run)
{
    return sl_aws_now_ms(run->webhook->aws);
}

/* ---- orders ---- */

/* Orders indices by the messages' order, then by their place. */
static int compare_orders(const void *x, const void *y, void *arg)
{
    const struct run *run = arg;
    size_t i = *(const size_t *)x, k = *(const size_t *)y;
    int order = sl_span_compare(run->messages[i].order, run->messages[k].order);
    return order ? order : (i > k) - (i < k);
}

static void find_orders(struct run *run)
{
    size_t *sorted = sl_arena_alloc(run->scratch, run->n * sizeof(size_t));
    run->before = sl_arena_alloc(run->scratch, run->n * sizeof(size_t));
    run->after = sl_arena_alloc(run->scratch, run->n * sizeof(size_t));
    for (size_t i = 0; i < run->n; i++) {
        sorted[i] = i;
        run->before[i] = run->after[i] = NONE;
    }
    qsort_r(sorted, run->n, sizeof(size_t), compare_orders, run);
    for (size_t i = 1; i < run->n; i++) {
        size_t first = sorted[i - 1], second = sorted[i];
        if (!run->messages[second].order.ptr ||
            !sl_span_eq(run->messages[first].order, run->messages[second].order))
            continue;
        run->before[second] = first;
        run->after[first] = second;
    }
}

/* ---- ends ---- */

/* When a message cannot go now, those of its order after it do not go either. */
static void finish(struct run *run, size_t i, struct sl_result result)
{
    for (; i != NONE; i = run->after[i]) {
        run->results[i] = result;
        run->steps[i] = DONE;
        if (result.status == SL_OK || result.status == SL_REJECT)
            return;
        result.not_sent = true;
    }
}

static struct sl_result result_of(const struct sl_webhook_verdict *verdict, bool was_sent)
{
    return (struct sl_result){
        .status = verdict->status, .not_sent = !was_sent, .code = verdict->code, .text = verdict->text};
}

static void finish_slot(struct run *run, struct sl_webhook_slot *slot, struct sl_result result)
{
    for (size_t i = 0; i < slot->n; i++)
        finish(run, slot->entries[i], result);
}

/* Nothing more is begun. */
static void stop_with(struct run *run, const struct sl_webhook_slot *slot)
{
    if (!run->stop)
        run->stop = &run->results[slot->entries[0]];
}

static void free_slot(struct run *run, struct sl_webhook_slot *slot)
{
    slot->state = SL_WEBHOOK_FREE;
    sl_http_exchange_forget(&slot->exchange);
    run->active--;
    run->bytes -= slot->part.len;
}

/* ---- choosing ---- */

static bool is_ready(const struct run *run, const struct sl_webhook_slot *slot, size_t i)
{
    size_t before = run->before[i];
    return run->steps[i] == PENDING && (before == NONE || run->steps[before] == DONE ||
                                        (run->steps[before] == TAKEN && run->slots[before] == slot));
}

/* Picks the next request's messages into the slot. False when none is ready. */
static bool choose(struct run *run, struct sl_webhook_slot *slot)
{
    const struct sl_webhook *webhook = run->webhook;
    size_t bytes = 1; /* of '[' */
    slot->n = 0;
    while (run->low < run->n && run->steps[run->low] != PENDING)
        run->low++;
    for (size_t i = run->low; i < run->n && slot->n < webhook->batch; i++) {
        if (!is_ready(run, slot, i) || (slot->n && run->alone[i]))
            continue;
        bytes += run->members[i].len + 1;
        if (slot->n && bytes > webhook->max_bytes)
            break;
        slot->entries[slot->n++] = i;
        run->steps[i] = TAKEN;
        run->slots[i] = slot;
        if (run->alone[i])
            break;
    }
    return slot->n > 0;
}

static void make_ready(struct run *run, struct sl_webhook_slot *slot)
{
    if (!slot->arena) {
        slot->arena = sl_arena_new(LINE_ARENA_BYTES);
        sl_http_exchange_init(&slot->exchange);
        sl_buffer_init(&slot->text, 1);
    }
    slot->entries = sl_arena_alloc(
        run->scratch, (run->n < run->webhook->batch ? run->n : run->webhook->batch) * sizeof(size_t));
}

static struct sl_webhook_slot *find_slot(struct run *run)
{
    for (size_t i = 0; i < run->webhook->in_flight; i++)
        if (run->webhook->slots[i].state == SL_WEBHOOK_FREE)
            return &run->webhook->slots[i];
    return NULL;
}

static void fill_slots(struct run *run)
{
    struct sl_webhook_slot *slot;
    sl_pace_look(&run->webhook->pace, run->active, now_ms(run));
    while (!run->stop && sl_pace_has_room(&run->webhook->pace, run->active, run->bytes, 0) &&
           (slot = find_slot(run))) {
        if (!slot->entries)
            make_ready(run, slot);
        if (!choose(run, slot))
            return;
        webhook_write(run->webhook, slot, run->messages, run->members);
        slot->state = SL_WEBHOOK_WAITING;
        slot->attempts = 0;
        slot->last_cost = 0;
        slot->was_sent = false;
        slot->due_ms = now_ms(run);
        run->active++;
        run->bytes += slot->part.len;
    }
}

/* ---- attempts ---- */

static int64_t due_of(const struct run *run, const struct sl_webhook_slot *slot)
{
    int64_t paused = run->webhook->paused_until_ms;
    return slot->due_ms > paused ? slot->due_ms : paused;
}

/* Nothing of it was begun in time. */
static void give_up(struct run *run, struct sl_webhook_slot *slot)
{
    struct sl_result result = {.status = SL_RETRY, .not_sent = !slot->was_sent};
    bool is_paused = run->webhook->paused_until_ms > slot->due_ms;
    result.code = is_paused ? "RetryAfter" : "DeadlineExceeded";
    result.text = sl_arena_printf(run->call->arena, "%s: POST: %s", run->webhook->name,
                                  is_paused ? "the receiver asked for a pause that goes beyond the deadline"
                                            : "no time was left to begin it");
    finish_slot(run, slot, result);
    stop_with(run, slot);
    free_slot(run, slot);
}

static void launch(struct run *run, struct sl_webhook_slot *slot)
{
    struct sl_webhook *webhook = run->webhook;
    int64_t left = run->call->deadline_ms - now_ms(run);
    webhook_sign(webhook, slot);
    slot->exchange.timeout_ms = left < webhook->timeout_ms ? left : webhook->timeout_ms;
    slot->state = SL_WEBHOOK_FLYING;
    slot->number = sl_pace_begin(&webhook->pace, now_ms(run));
    run->flying++;
    sl_http_start(sl_aws_http(webhook->aws), &slot->exchange);
}

/* Slots that were filled before the limit was halved wait their turn: those that were refused together come
 * back together. */
static bool may_fly(const struct run *run)
{
    return run->flying == 0 || run->flying < run->webhook->pace.limit;
}

static void launch_due(struct run *run)
{
    for (size_t i = 0; i < run->webhook->in_flight; i++) {
        struct sl_webhook_slot *slot = &run->webhook->slots[i];
        if (slot->state != SL_WEBHOOK_WAITING)
            continue;
        if (now_ms(run) >= run->call->deadline_ms || due_of(run, slot) >= run->call->deadline_ms)
            give_up(run, slot);
        else if (due_of(run, slot) <= now_ms(run) && may_fly(run))
            launch(run, slot);
    }
}

static bool plan_retry(struct run *run, struct sl_webhook_slot *slot, enum sl_webhook_next next)
{
    struct sl_webhook *webhook = run->webhook;
    struct sl_clock *clock = webhook->aws->clock;
    enum sl_retry_kind kind = next == SL_WEBHOOK_THROTTLED ? SL_RETRY_THROTTLE : SL_RETRY_TRANSIENT;
    if (++slot->attempts >= webhook->attempts || !sl_retry_take(&webhook->bucket, kind, &slot->last_cost))
        return false;
    slot->due_ms =
        now_ms(run) + sl_retry_wait_ms(clock, kind, SL_WEBHOOK_BASE_MS, slot->attempts - 1, sl_span(NULL, 0));
    return due_of(run, slot) < run->call->deadline_ms;
}

static void try_again(struct run *run, struct sl_webhook_slot *slot, const struct sl_webhook_verdict *verdict)
{
    int64_t until = now_ms(run) + verdict->after_ms;
    if (verdict->after_ms && until > run->webhook->paused_until_ms)
        run->webhook->paused_until_ms = until;
    if (verdict->next == SL_WEBHOOK_THROTTLED || slot->exchange.outcome == SL_HTTP_NOT_SENT)
        sl_pace_throttled(&run->webhook->pace, slot->number);
    if (plan_retry(run, slot, verdict->next)) {
        slot->state = SL_WEBHOOK_WAITING;
        sl_http_exchange_forget(&slot->exchange);
        return;
    }
    finish_slot(run, slot, result_of(verdict, slot->was_sent));
    if (verdict->is_everybodys)
        stop_with(run, slot);
    free_slot(run, slot);
}

/* ---- verdicts ---- */

static void take(struct run *run, struct sl_webhook_slot *slot)
{
    struct sl_webhook *webhook = run->webhook;
    sl_retry_success(&webhook->bucket, slot->last_cost);
    sl_pace_took(&webhook->pace, slot->exchange.body.len, run->active >= webhook->pace.limit);
    sl_contrast_succeeded(&webhook->contrast, OPERATION, 0, now_ms(run));
    finish_slot(run, slot, (struct sl_result){.status = SL_OK});
    free_slot(run, slot);
}

/* When an array is refused, which message was bad is unknown: each is sent alone then. */
static void take_apart(struct run *run, struct sl_webhook_slot *slot)
{
    for (size_t i = 0; i < slot->n; i++) {
        size_t entry = slot->entries[i];
        run->steps[entry] = PENDING;
        run->alone[entry] = true;
        run->low = entry < run->low ? entry : run->low;
    }
    free_slot(run, slot);
}

/* What contrast decides waits for the end; so do the messages of its order. */
static void doubt(struct run *run, struct sl_webhook_slot *slot, const struct sl_webhook_verdict *verdict)
{
    run->results[slot->entries[0]] = result_of(verdict, true);
    run->steps[slot->entries[0]] = DOUBTED;
    run->doubted++;
    free_slot(run, slot);
}

static void refuse(struct run *run, struct sl_webhook_slot *slot, const struct sl_webhook_verdict *verdict)
{
    finish_slot(run, slot, result_of(verdict, slot->was_sent));
    if (verdict->status == SL_FATAL)
        stop_with(run, slot);
    free_slot(run, slot);
}

static void settle(struct run *run, struct sl_webhook_slot *slot)
{
    enum sl_http_outcome outcome = slot->exchange.outcome;
    run->flying--;
    slot->was_sent = slot->was_sent || outcome == SL_HTTP_ANSWERED || outcome == SL_HTTP_BROKEN;
    struct sl_webhook_verdict verdict = webhook_judge(run->webhook, slot, run->call->arena);
    bool is_record = verdict.next == SL_WEBHOOK_DOUBTED || verdict.status == SL_REJECT;
    if (is_record && slot->n > 1)
        take_apart(run, slot);
    else if (verdict.next == SL_WEBHOOK_TAKEN)
        take(run, slot);
    else if (verdict.next == SL_WEBHOOK_DOUBTED)
        doubt(run, slot, &verdict);
    else if (verdict.next == SL_WEBHOOK_REFUSED)
        refuse(run, slot, &verdict);
    else
        try_again(run, slot, &verdict);
}

/* Nothing is under way any more: what is refused and in doubt is the messages' fault beside a success, else
 * the environment's. */
static void judge_doubted(struct run *run)
{
    struct sl_webhook *webhook = run->webhook;
    bool vouched = sl_contrast_vouches(&webhook->contrast, OPERATION, 0, run->doubted, now_ms(run));
    run->doubted = 0;
    for (size_t i = 0; i < run->n; i++) {
        struct sl_result result = run->results[i];
        if (run->steps[i] != DOUBTED)
            continue;
        result.status = vouched ? SL_REJECT : SL_FATAL;
        if (!vouched)
            result.text = sl_arena_printf(
                run->call->arena,
                "%s; nothing else was taken lately, so it is not counted as the record's fault; if it is, "
                "write #reject=%s into the target",
                result.text, result.code);
        finish(run, i, result);
        if (!vouched && !run->stop)
            run->stop = &run->results[i];
    }
}

/* ---- the loop ---- */

static int64_t next_due_ms(const struct run *run)
{
    int64_t due = run->call->deadline_ms;
    for (size_t i = 0; i < run->webhook->in_flight; i++) {
        const struct sl_webhook_slot *slot = &run->webhook->slots[i];
        if (slot->state == SL_WEBHOOK_WAITING && due_of(run, slot) < due)
            due = due_of(run, slot);
    }
    return due;
}

static void wait(struct run *run)
{
    struct sl_aws *aws = run->webhook->aws;
    int64_t left = next_due_ms(run) - now_ms(run);
    if (!run->flying) {
        aws->clock->sleep_ms(aws->clock, left > 0 ? left : 0);
        return;
    }
    int64_t most = run->webhook->pace.is_alone ? SL_PACE_ALONE_MS : 1000;
    sl_http_wait(sl_aws_http(aws), left < most && left >= 0 ? left : most);
    for (size_t i = 0; i < run->webhook->in_flight; i++) {
        struct sl_webhook_slot *slot = &run->webhook->slots[i];
        if (slot->state == SL_WEBHOOK_FLYING && slot->exchange.outcome != SL_HTTP_RUNNING)
            settle(run, slot);
    }
}

/* False when every message has its result. */
static bool step(struct run *run)
{
    fill_slots(run);
    launch_due(run);
    if (run->active)
        wait(run);
    else if (run->doubted)
        judge_doubted(run);
    else
        return !run->stop && run->low < run->n;
    return true;
}

static void end_pending(struct run *run)
{
    for (size_t i = 0; run->stop && i < run->n; i++)
        if (run->steps[i] == PENDING) {
            run->results[i] = *run->stop;
            run->results[i].not_sent = true;
            run->steps[i] = DONE;
        }
}

static void check_message(struct run *run, size_t i)
{
    const struct sl_webhook *webhook = run->webhook;
    const char *problem = sl_content_problem(SL_CONTENT_UTF8, run->messages[i].body);
    size_t bytes = run->members[i].len + (webhook->batch > 1 ? 2 : 0);
    struct sl_result *result = &run->results[i];
    if (problem)
        sl_result_fail(result, run->call->arena, SL_REJECT, "InvalidMessageContents",
                       "%s: the message's body %s", webhook->name, problem);
    else if (bytes > webhook->max_bytes)
        sl_result_fail(result, run->call->arena, SL_REJECT, "MessageTooLong",
                       "%s: the message has %zu bytes; max_bytes is %zu", webhook->name, bytes,
                       webhook->max_bytes);
    else
        return;
    result->not_sent = true;
    run->steps[i] = DONE;
}

void sl_webhook_run(struct sl_webhook *webhook, const struct sl_message *messages, size_t n,
                    struct sl_result *results, const struct sl_call *call)
{
    struct sl_arena *scratch = webhook->aws->scratch;
    struct run run = {.webhook = webhook,
                      .messages = messages,
                      .n = n,
                      .results = results,
                      .call = call,
                      .scratch = scratch};
    run.members = sl_arena_alloc(scratch, n * sizeof(*run.members));
    run.steps = sl_arena_zalloc(scratch, n * sizeof(*run.steps));
    run.slots = sl_arena_zalloc(scratch, n * sizeof(*run.slots));
    run.alone = sl_arena_zalloc(scratch, n * sizeof(*run.alone));
    find_orders(&run);
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        run.members[i] = webhook_member(webhook, &messages[i]);
        check_message(&run, i);
    }
    while (step(&run)) {
    }
    end_pending(&run);
    for (size_t i = 0; i < webhook->in_flight; i++)
        webhook->slots[i].entries = NULL; /* it was the scratch's */
}
