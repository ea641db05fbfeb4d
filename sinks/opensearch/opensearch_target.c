/* The target's URL: which host and index, and how requests show who asks. */
#include "sinks/opensearch/opensearch_private.h"

#include "base/base64.h"
#include "base/url.h"
#include "net/uri.h"

#define PARAMS "auth, tls, numbers, order, region, role, in_flight, reject"

enum auth { AUTH_NONE, AUTH_BASIC, AUTH_AWS };

struct target {
    struct sl_opensearch *index;
    struct sl_sinks *sinks;
    struct sl_url url;
    struct sl_span host; /* with its port */
    struct sl_uri uri;
    const char *address;
    enum auth auth;
};

static enum sl_status bad(const struct target *t, const char *why, struct sl_error *error)
{
    return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: %s", SL_ARG(t->url.shown), why);
}

/* A parameter that is one of a few words. `n` becomes which one; the first when it is absent. */
static enum sl_status read_word(struct target *t, const char *name, const char *const words[], size_t *n,
                                struct sl_error *error)
{
    struct sl_span text = sl_url_param(&t->url, name);
    for (*n = 0; text.ptr && words[*n] && !sl_span_is(text, words[*n]);)
        ++*n;
    if (words[*n])
        return SL_OK;
    return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: %s=%.*s is neither %s nor %s%s%s",
                   SL_ARG(t->url.shown), name, SL_ARG(text), words[0], words[1], words[2] ? " nor " : "",
                   words[2] ? words[2] : "");
}

/* OpenSearch's rules for the names of indexes and aliases, less '+': no pattern and no list can be one. */
static bool is_index_name(struct sl_span name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.'))
            return false;
    }
    return name.len > 0 && name.len <= 255 && !strchr("_-.", *name.ptr);
}

static bool ends(struct sl_span text, const char *with)
{
    size_t n = strlen(with);
    return text.len >= n && memcmp(text.ptr + text.len - n, with, n) == 0;
}

static enum sl_status read_host(struct target *t, struct sl_error *error)
{
    const char *slash = t->url.rest.len ? memchr(t->url.rest.ptr, '/', t->url.rest.len) : NULL;
    static const char *const words[] = {"on", "off", NULL};
    size_t off = 0;
    if (!t->url.has_slashes || !slash)
        return bad(t, "write it as opensearch://HOST/INDEX, with a port after HOST if it is not 443", error);
    t->host = sl_span(t->url.rest.ptr, (size_t)(slash - t->url.rest.ptr));
    t->index->name = sl_span_from(t->url.rest, t->host.len + 1);
    if (!is_index_name(t->index->name))
        return bad(t, "INDEX is not the name of an index (a-z 0-9 _ - ., and a letter or digit first)",
                   error);
    if (read_word(t, "tls", words, &off, error) != SL_OK)
        return SL_FATAL;
    t->address = sl_arena_printf(t->index->arena, "%s://%.*s", off ? "http" : "https", SL_ARG(t->host));
    if (!sl_uri_parse(t->address, &t->uri) || memchr(t->host.ptr, '@', t->host.len))
        return bad(t, "HOST is not a host name or an address, with or without a port", error);
    if (ends(sl_span_str(t->uri.host), ".aoss.amazonaws.com"))
        return bad(
            t,
            "OpenSearch Serverless (aoss) cannot be a replica: it has no compare-and-set on documents; "
            "use a domain of the OpenSearch Service",
            error);
    return SL_OK;
}

/* search-name-id.us-east-1.es.amazonaws.com; with dual stack search-name-id.aos.us-east-1.on.aws */
static struct sl_span host_region(struct sl_span host)
{
    struct sl_span none = {NULL, 0};
    const char *tail = NULL;
    if (ends(host, ".es.amazonaws.com"))
        tail = host.ptr + host.len - strlen(".es.amazonaws.com");
    else if (ends(host, ".es.amazonaws.com.cn"))
        tail = host.ptr + host.len - strlen(".es.amazonaws.com.cn");
    else if (ends(host, ".on.aws")) {
        const char *aos = memmem(host.ptr, host.len, ".aos.", 5);
        struct sl_span region =
            aos ? sl_span(aos + 5, (size_t)(host.ptr + host.len - aos) - 5 - strlen(".on.aws")) : none;
        return sl_endpoint_is_region(region) ? region : none;
    }
    if (!tail)
        return none;
    const char *dot = memrchr(host.ptr, '.', (size_t)(tail - host.ptr));
    return dot ? sl_span(dot + 1, (size_t)(tail - dot - 1)) : none;
}

/* ---- who asks ---- */

/* "Basic " and the base64 of user:password, of the environment. */
static enum sl_status read_login(struct target *t, struct sl_client_options *options, struct sl_error *error)
{
    const struct sl_vars *vars = t->sinks->named;
    struct sl_arena *arena = sl_sinks_aws(t->sinks)->lasting;
    const char *user = sl_vars_or(vars, "OPENSEARCH_USERNAME", NULL),
               *password = sl_vars_or(vars, "OPENSEARCH_PASSWORD", NULL);
    if (!user || !password)
        return bad(t, "auth=basic: set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD", error);
    if (strchr(user, ':'))
        return bad(t, "auth=basic: OPENSEARCH_USERNAME holds a ':', which no user name can", error);
    if (!t->uri.is_https && !sl_uri_is_local(&t->uri))
        return bad(t,
                   "auth=basic with tls=off would send the password in the clear: only this machine may be "
                   "asked so",
                   error);
    struct sl_span pair = sl_span_str(sl_arena_printf(arena, "%s:%s", user, password));
    options->login = sl_arena_printf(arena, "Basic %.*s", SL_ARG(sl_base64_encode(pair, arena)));
    options->password = sl_arena_copy(arena, sl_span_str(password));
    return SL_OK;
}

static enum sl_status read_auth(struct target *t, struct sl_error *error)
{
    static const char *const words[] = {"none", "basic", "aws", NULL};
    size_t n = 0;
    if (!sl_url_param(&t->url, "auth").ptr) {
        t->auth = host_region(sl_span_str(t->uri.host)).ptr ? AUTH_AWS : AUTH_NONE;
        return SL_OK;
    }
    enum sl_status status = read_word(t, "auth", words, &n, error);
    t->auth = (enum auth)n;
    return status;
}

static enum sl_status read_forms(struct target *t, struct sl_error *error)
{
    static const char *const numbers[] = {"number", "text", NULL}, *const orders[] = {"read", "script", NULL};
    size_t text = 0, script = 0;
    if (read_word(t, "numbers", numbers, &text, error) != SL_OK ||
        read_word(t, "order", orders, &script, error) != SL_OK)
        return SL_FATAL;
    t->index->is_text = text;
    t->index->is_scripted = script;
    return SL_OK;
}

enum sl_status sl_opensearch_read_target(struct sl_opensearch *index, struct sl_sinks *sinks,
                                         struct sl_span url_text, struct sl_error *error)
{
    struct target t = {.index = index, .sinks = sinks};
    struct sl_span text = sl_span(sl_arena_copy(index->arena, url_text), url_text.len);
    if (sl_url_parse(text, index->arena, &t.url, error) != SL_OK || read_host(&t, error) != SL_OK ||
        read_auth(&t, error) != SL_OK || read_forms(&t, error) != SL_OK)
        return SL_FATAL;
    struct sl_client_options options = {.service = &sl_service_opensearch,
                                        .url = &t.url,
                                        .region = host_region(sl_span_str(t.uri.host)),
                                        .address = sl_span_str(t.address),
                                        .is_plain = t.auth != AUTH_AWS};
    if ((t.auth == AUTH_BASIC && read_login(&t, &options, error) != SL_OK) ||
        sl_client_init(&index->client, sl_sinks_aws(sinks), &options, error) != SL_OK)
        return SL_FATAL;
    return sl_url_done(&t.url, PARAMS, error);
}
