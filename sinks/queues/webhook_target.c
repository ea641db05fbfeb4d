/* Reads a webhook's target: the URL that is requested, and the options behind its '#'. */
#include "base/array.h"
#include "sinks/queues/content.h"
#include "sinks/queues/webhook_private.h"

#include "base/base64.h"
#include "base/url.h"
#include "net/uri.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#define OPTIONS                                                                                              \
    "secret, header.NAME, header_env.NAME, batch, max_bytes, in_flight, timeout_ms, attempts, private, "     \
    "proxy, id, reject"

/* Of a key, by Standard Webhooks 1.0: 24 to 64 bytes. */
#define KEY_MIN_BYTES 24
#define KEY_MAX_BYTES 64
#define ID_WORD_BYTES 64 /* of id= */

struct reading {
    struct sl_webhook *webhook;
    const struct sl_vars *vars, *named;
    bool is_dry;
    struct sl_url options;
    struct sl_error *error;
};

static enum sl_status bad(const struct reading *r, const char *format, ...) SL_PRINTF(2, 3);
static enum sl_status bad(const struct reading *r, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return sl_fail(r->error, SL_FATAL, "InvalidTarget", "target %s: %s", r->webhook->name, text);
}

static void keep_secret(struct sl_webhook *webhook, struct sl_span secret)
{
    assert(webhook->n_secrets < SL_COUNT(webhook->secrets));
    webhook->secrets[webhook->n_secrets++] = secret;
}

/* ---- the URL ---- */

static bool is_plain(char c)
{
    return c > ' ' && c < 0x7F && !strchr("\"<>\\^`{|}", c);
}

static enum sl_status check_text(const struct reading *r, struct sl_span url)
{
    for (size_t i = 0; i < url.len; i++) {
        if (url.ptr[i] == '{' || url.ptr[i] == '}')
            return bad(r,
                       "byte %zu is a brace; a target holds no template: what differs from record to record "
                       "goes into the message",
                       i);
        if (!is_plain(url.ptr[i]))
            return bad(r, "byte %zu is not a character of a URL; write it as %%%02X", i,
                       (unsigned)(unsigned char)url.ptr[i]);
    }
    return SL_OK;
}

static bool is_localhost(const char *host)
{
    static const char name[] = "localhost";
    size_t len = strlen(host), n = sizeof(name) - 1;
    if (len && host[len - 1] == '.')
        len--;
    return len >= n && strncasecmp(host + len - n, name, n) == 0 && (len == n || host[len - n - 1] == '.');
}

/* The address that the URL itself spells, in any form: libcurl's parser has made it the usual one. */
static bool read_address(const struct sl_uri *uri, struct sockaddr_storage *out)
{
    char host[SL_URI_HOST_BYTES];
    bool has_brackets = uri->host[0] == '[';
    snprintf(host, sizeof(host), "%s", uri->host + has_brackets);
    host[strcspn(host, has_brackets ? "%]" : "")] = '\0';
    return sl_address_parse(host, 0, out);
}

/* What AWS shows as the URL of a queue answers no POST of JSON: it is meant for sqs:. */
static bool is_queue_url(const char *host)
{
    return strncasecmp(host, "sqs.", 4) == 0 && strstr(host, ".amazonaws.com");
}

static enum sl_status check_host(const struct reading *r, const struct sl_uri *uri)
{
    struct sl_webhook *webhook = r->webhook;
    struct sockaddr_storage address;
    const char *what = "";
    bool is_address = read_address(uri, &address);
    webhook->rules.is_loopback =
        is_localhost(uri->host) ||
        (is_address && sl_address_kind((struct sockaddr *)&address, NULL) == SL_ADDRESS_LOOPBACK);
    if (is_address && !sl_address_is_allowed(&webhook->rules, (struct sockaddr *)&address, &what))
        return bad(r, "%s is %s; nothing is sent there%s", uri->host, what,
                   sl_address_kind((struct sockaddr *)&address, NULL) == SL_ADDRESS_PRIVATE
                       ? " unless the target ends in #private=1"
                       : "");
    if (is_queue_url(uri->host))
        return bad(r, "is the URL of an SQS queue; write sqs:// before it");
    if (!uri->is_https && !webhook->rules.is_loopback)
        return bad(r, "http: is for this machine alone (localhost, 127.0.0.1, [::1]); use https:");
    return SL_OK;
}

static enum sl_status read_url(const struct reading *r)
{
    struct sl_webhook *webhook = r->webhook;
    struct sl_uri uri;
    struct sl_span url = sl_span_str(webhook->url);
    if (check_text(r, url) != SL_OK)
        return SL_FATAL;
    if (!sl_uri_parse(webhook->url, &uri))
        return bad(r,
                   "is not a URL https://host/path; a user or a password has no place in it: put it into a "
                   "header with header_env.Authorization=VARIABLE after a '#'");
    keep_secret(webhook, sl_span_from(url, strlen(webhook->name) + 1));
    return check_host(r, &uri);
}

/* ---- options ---- */

struct number {
    const char *name;
    size_t otherwise, min, max;
    size_t *out;
};

static enum sl_status read_number(struct reading *r, const struct number *number)
{
    struct sl_span text = sl_url_param(&r->options, number->name);
    size_t n = text.len ? 0 : SIZE_MAX / 16;
    for (size_t i = 0; i < text.len && n <= number->max; i++)
        n = text.ptr[i] >= '0' && text.ptr[i] <= '9' ? n * 10 + (size_t)(text.ptr[i] - '0') : SIZE_MAX / 16;
    *number->out = text.ptr ? n : number->otherwise;
    if (*number->out < number->min || *number->out > number->max)
        return bad(r, "%s=%.*s is not a number from %zu to %zu", number->name, SL_ARG(text), number->min,
                   number->max);
    return SL_OK;
}

static enum sl_status read_numbers(struct reading *r)
{
    struct sl_webhook *webhook = r->webhook;
    size_t timeout, attempts, private;
    const struct number numbers[] = {
        {"batch", 1, 1, 10000, &webhook->batch},
        {"max_bytes", SL_WEBHOOK_BYTES, 1024, SL_WEBHOOK_MAX_BYTES, &webhook->max_bytes},
        {"in_flight", 16, 1, SL_WEBHOOK_IN_FLIGHT, &webhook->in_flight},
        {"timeout_ms", SL_WEBHOOK_TIMEOUT_MS, 100, 300000, &timeout},
        {"attempts", SL_WEBHOOK_ATTEMPTS, 1, 10, &attempts},
        {"private", 0, 0, 1, &private},
    };
    for (size_t i = 0; i < SL_COUNT(numbers); i++)
        if (read_number(r, &numbers[i]) != SL_OK)
            return SL_FATAL;
    sl_pace_init(&webhook->pace, webhook->in_flight);
    webhook->pace.is_alone = strncmp(webhook->url, "https:", 6) == 0;
    webhook->timeout_ms = (int64_t)timeout;
    webhook->attempts = (unsigned)attempts;
    webhook->rules.is_private_allowed = private;
    return SL_OK;
}

/* A secret in the place of its variable's name is not quoted. */
static bool is_name(struct sl_span variable)
{
    for (size_t i = 0; i < variable.len; i++)
        if (!isalnum((unsigned char)variable.ptr[i]) && variable.ptr[i] != '_')
            return false;
    return variable.len > 0 && !sl_span_starts(variable, SL_LIT("whsec_"));
}

/* The value of the variable that an option names. */
static enum sl_status read_variable(const struct reading *r, const char *option, struct sl_span variable,
                                    struct sl_span *out)
{
    char name[256];
    if (!is_name(variable))
        return bad(r, "%s: expected the name of an environment variable, and not its value", option);
    snprintf(name, sizeof(name), "%.*s", SL_ARG(variable));
    const char *value = variable.len < sizeof(name) ? sl_vars_or(r->named, name, NULL) : NULL;
    if (!value && r->is_dry && variable.len)
        value = SL_SECRET_STAND_IN;
    if (!value)
        return bad(r, "%s: the variable %.*s is not set in the environment", option, SL_ARG(variable));
    *out = sl_span(sl_arena_copy(r->webhook->arena, sl_span_str(value)), strlen(value));
    keep_secret(r->webhook, *out);
    return SL_OK;
}

static enum sl_status read_key(const struct reading *r, struct sl_span variable)
{
    struct sl_webhook *webhook = r->webhook;
    struct sl_span text;
    if (webhook->n_keys == SL_WEBHOOK_KEYS)
        return bad(r, "secret: more than %d variables", SL_WEBHOOK_KEYS);
    if (read_variable(r, "secret", variable, &text) != SL_OK)
        return SL_FATAL;
    struct sl_span base64 = sl_span_starts(text, SL_LIT("whsec_")) ? sl_span_from(text, 6) : sl_span("", 0);
    size_t n = base64.len && sl_base64_is_valid(base64) ? sl_base64_decoded_bytes(base64) : 0;
    if (n < KEY_MIN_BYTES || n > KEY_MAX_BYTES)
        return bad(r, "secret: the variable %.*s does not hold \"whsec_\" and %d to %d bytes in base64",
                   SL_ARG(variable), KEY_MIN_BYTES, KEY_MAX_BYTES);
    char *key = sl_arena_alloc(webhook->arena, n);
    sl_base64_decode_valid(base64, (unsigned char *)key);
    keep_secret(webhook, base64);
    webhook->keys[webhook->n_keys++] = sl_span(key, n);
    return SL_OK;
}

/* secret=VARIABLE or secret=NEW,OLD */
static enum sl_status read_keys(struct reading *r)
{
    struct sl_span rest = sl_url_param(&r->options, "secret");
    enum sl_status status = SL_OK;
    while (rest.len && status == SL_OK) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        size_t n = comma ? (size_t)(comma - rest.ptr) : rest.len;
        status = read_key(r, sl_span(rest.ptr, n));
        rest = sl_span_from(rest, n + 1);
    }
    return status;
}

static bool is_field_name(struct sl_span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!(name.ptr[i] > ' ' && name.ptr[i] < 0x7F) || strchr("\"(),/:;<=>?@[\\]{}", name.ptr[i]))
            return false;
    return name.len > 0 && name.len < 128;
}

static bool is_field_value(struct sl_span value)
{
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] < ' ' || value.ptr[i] == 0x7F)
            return false;
    return value.len > 0;
}

static bool is_named(struct sl_span name, const char *text)
{
    return name.len == strlen(text) && strncasecmp(name.ptr, text, name.len) == 0;
}

/* What the request says by itself, or what would change how it is read. */
static bool is_ours(struct sl_span name)
{
    static const char *const names[] = {"host",
                                        "content-length",
                                        "transfer-encoding",
                                        "connection",
                                        "expect",
                                        "webhook-id",
                                        "webhook-timestamp",
                                        "upgrade",
                                        "trailer",
                                        "webhook-signature",
                                        "te",
                                        "keep-alive",
                                        "accept",
                                        "proxy-authorization",
                                        "content-encoding",
                                        "proxy-connection"};
    for (size_t i = 0; i < SL_COUNT(names); i++)
        if (is_named(name, names[i]))
            return true;
    return false;
}

static bool is_given(const struct sl_webhook *webhook, struct sl_span name)
{
    for (size_t i = 0; i < webhook->n_lines; i++)
        if (strcspn(webhook->lines[i], ":") == name.len &&
            strncasecmp(webhook->lines[i], name.ptr, name.len) == 0)
            return true;
    return false;
}

static enum sl_status add_line(const struct reading *r, struct sl_span name, struct sl_span value)
{
    struct sl_webhook *webhook = r->webhook;
    if (!is_field_name(name) || is_ours(name))
        return bad(r, "\"%.*s\" is not a header that a target may set", SL_ARG(name));
    if (!is_field_value(value))
        return bad(r, "the header %.*s is empty, or holds a control character", SL_ARG(name));
    if (is_given(webhook, name))
        return bad(r, "the header %.*s is there twice; keep one", SL_ARG(name));
    webhook->has_type = webhook->has_type || is_named(name, "content-type");
    webhook->has_trace =
        webhook->has_trace || is_named(name, SL_CONTENT_TRACEPARENT) || is_named(name, SL_CONTENT_TRACESTATE);
    webhook->lines[webhook->n_lines++] =
        sl_arena_printf(webhook->arena, "%.*s: %.*s", SL_ARG(name), SL_ARG(value));
    return SL_OK;
}

static enum sl_status read_headers(struct reading *r)
{
    static const char plain[] = "header.", secret[] = "header_env.";
    for (size_t i = 0; i < r->options.n_params; i++) {
        struct sl_span name = r->options.params[i].name, value = r->options.params[i].value;
        bool is_secret = sl_span_starts(name, SL_LIT(secret));
        if (!is_secret && !sl_span_starts(name, SL_LIT(plain)))
            continue;
        r->options.params[i].used = true;
        if (is_secret && read_variable(r, "header_env", value, &value) != SL_OK)
            return SL_FATAL;
        if (add_line(r, sl_span_from(name, is_secret ? sizeof(secret) - 1 : sizeof(plain) - 1), value) !=
            SL_OK)
            return SL_FATAL;
    }
    return SL_OK;
}

static bool is_word(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!memchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", text.ptr[i], 64))
            return false;
    return text.len > 0 && text.len <= ID_WORD_BYTES;
}

static enum sl_status read_id(struct reading *r)
{
    struct sl_span word = sl_url_param(&r->options, "id");
    if (word.ptr && !is_word(word))
        return bad(r, "id=%.*s is not a word of at most %d letters, digits, '-' and '_'", SL_ARG(word),
                   ID_WORD_BYTES);
    r->webhook->id = word.ptr ? sl_arena_printf(r->webhook->arena, "%.*s_", SL_ARG(word)) : "";
    return SL_OK;
}

/* "Http400" and so on: a status of a refusal that blocks. */
static bool is_refusal(struct sl_span code)
{
    return code.len == 7 && sl_span_starts(code, SL_LIT("Http4")) && code.ptr[5] >= '0' &&
           code.ptr[5] <= '9' && code.ptr[6] >= '0' && code.ptr[6] <= '9' && !sl_span_is(code, "Http408") &&
           !sl_span_is(code, "Http425") && !sl_span_is(code, "Http429");
}

static enum sl_status read_rejects(struct reading *r)
{
    struct sl_webhook *webhook = r->webhook;
    struct sl_span rest = sl_url_param(&r->options, "reject");
    while (rest.len) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        struct sl_span code = sl_span(rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len);
        if (!is_refusal(code) || webhook->n_rejects == SL_WEBHOOK_REJECTS)
            return bad(r,
                       "reject: \"%.*s\" is not the code of a refusal that blocks; write Http409,Http422 "
                       "and at most %d of them",
                       SL_ARG(code), SL_WEBHOOK_REJECTS);
        webhook->rejects[webhook->n_rejects++] = sl_span(sl_arena_copy(webhook->arena, code), code.len);
        rest = sl_span_from(rest, code.len + 1);
    }
    return SL_OK;
}

/* A proxy resolves the name itself, so through one the address cannot be checked here: whoever runs it
 * decides, and says so. A loopback host is never reached through a proxy. */
static enum sl_status read_proxy(struct reading *r)
{
    struct sl_webhook *webhook = r->webhook;
    struct sl_span text = sl_url_param(&r->options, "proxy");
    const char *proxy = sl_vars_or(r->vars, "HTTPS_PROXY", sl_vars_or(r->vars, "https_proxy", NULL));
    if (text.ptr && !sl_span_is(text, "0") && !sl_span_is(text, "1"))
        return bad(r, "proxy=%.*s is neither 0 nor 1", SL_ARG(text));
    if (!text.ptr && proxy && !webhook->rules.is_loopback)
        return bad(r,
                   "HTTPS_PROXY is set, and where a proxy connects to cannot be checked; write #proxy=1 (the "
                   "proxy decides which addresses are reached) or #proxy=0 (go there directly)");
    webhook->through_proxy = sl_span_is(text, "1") && proxy && !webhook->rules.is_loopback;
    return SL_OK;
}

static enum sl_status check_names(const struct reading *r)
{
    for (size_t i = 0; i < r->options.n_params; i++)
        for (size_t k = 0; k < i; k++)
            if (sl_span_eq(r->options.params[i].name, r->options.params[k].name))
                return bad(r, "the option %.*s is there twice; keep one", SL_ARG(r->options.params[i].name));
    return SL_OK;
}

static enum sl_status parse_options(struct reading *r, struct sl_span text)
{
    struct sl_arena *arena = r->webhook->arena;
    const char *whole = sl_arena_printf(arena, "%s:?%.*s", r->webhook->name, SL_ARG(text));
    struct sl_span options = sl_span_str(whole);
    if (sl_url_parse(options, arena, &r->options, r->error) != SL_OK)
        return SL_FATAL;
    r->options.shown = sl_span_str(r->webhook->name);
    return check_names(r);
}

enum sl_status sl_webhook_read(struct sl_webhook *webhook, struct sl_span target,
                               const struct sl_sinks *sinks, struct sl_error *error)
{
    const struct sl_vars *vars = sinks->vars;
    struct reading r = {
        .webhook = webhook, .vars = vars, .named = sinks->named, .is_dry = sinks->is_dry, .error = error};
    const char *mark = memchr(target.ptr, '#', target.len);
    struct sl_span url = sl_span(target.ptr, mark ? (size_t)(mark - target.ptr) : target.len);
    struct sl_span options = mark ? sl_span_from(target, url.len + 1) : sl_span("", 0);
    webhook->name = sl_arena_copy(webhook->arena, sl_target_shown(url));
    webhook->url = sl_arena_copy(webhook->arena, url);
    webhook->rules.never = sl_vars_or(vars, "AWS_LAMBDA_RUNTIME_API", NULL);
    if (parse_options(&r, options) != SL_OK || read_numbers(&r) != SL_OK || read_url(&r) != SL_OK ||
        read_proxy(&r) != SL_OK || read_keys(&r) != SL_OK || read_headers(&r) != SL_OK ||
        read_id(&r) != SL_OK || read_rejects(&r) != SL_OK)
        return SL_FATAL;
    return sl_url_done(&r.options, OPTIONS, error);
}
