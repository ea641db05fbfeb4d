/* What an answer of a receiver, or the lack of one, means for its messages. */
#include "sinks/queues/webhook_private.h"

#include "aws/mask.h"
#include "base/clean.h"

#include <stdarg.h>
#include <stdio.h>

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
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
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

static struct sl_webhook_verdict refuse(enum sl_status status, const char *code, const char *text)
{
    return (struct sl_webhook_verdict){
        .next = SL_WEBHOOK_REFUSED, .status = status, .code = code, .text = text};
}

struct sl_webhook_verdict sl_webhook_judge(struct sl_webhook *webhook, const struct sl_webhook_slot *slot,
                                           struct sl_arena *arena)
{
    const struct sl_http_exchange *exchange = &slot->exchange;
    char problem[SL_MASK_SHOWN_BYTES];
    if (exchange->outcome == SL_HTTP_ANSWERED)
        return judge_answer(webhook, slot, arena);
    show(webhook, slot, problem);
    switch (exchange->outcome) {
    case SL_HTTP_FORBIDDEN:
        return refuse(SL_FATAL, "ForbiddenAddress",
                      say(webhook, arena, "the host leads to %s; nothing was sent%s", exchange->problem,
                          exchange->is_private_place ? "; #private=1 allows private addresses" : ""));
    case SL_HTTP_UNTRUSTED:
        return refuse(
            SL_FATAL, "UntrustedCertificate",
            say(webhook, arena, "%s; check the receiver's certificate, and AWS_CA_BUNDLE", problem));
    case SL_HTTP_UNSENDABLE:
        return refuse(SL_FATAL, "InvalidHeader",
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
