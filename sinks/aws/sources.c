#include "sinks/aws/sources.h"

#include "sinks/aws/job.h"
#include "sinks/aws/uri.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define ROLE_DEPTH       8 /* profiles that name each other */
#define CONTAINER_MS     2000
#define CONTAINER_TRIES  3
#define METADATA_MS      1000
#define METADATA_TTL     "21600"
#define TOKEN_FILE_BYTES (64 * 1024)

/* One search. `found` says that a place had something; a place that has nothing leaves it false and is OK. */
struct search {
    struct sl_aws *aws;
    struct sl_arena *arena;
    struct sl_profile profile;
    int64_t deadline_ms;
    struct sl_keys *out;
    bool found;
    struct sl_error *error;
};

static const char *var(const struct search *s, const char *name)
{
    return sl_vars_or(s->aws->sinks->vars, name, NULL);
}

static enum sl_status keep(struct search *s, struct sl_span access, struct sl_span secret,
                           struct sl_span token, int64_t expires_s, const char *origin)
{
    struct sl_keys *out = s->out;
    if (!access.len || !secret.len)
        return sl_fail(s->error, SL_FATAL, "InvalidCredentials",
                       "credentials from %s have an access key or a secret key, not both", origin);
    if (access.len >= sizeof(out->access) || secret.len >= sizeof(out->secret) ||
        token.len >= sizeof(out->token))
        return sl_fail(s->error, SL_FATAL, "InvalidCredentials",
                       "credentials from %s are too long to be keys", origin);
    snprintf(out->access, sizeof(out->access), "%.*s", SL_ARG(access));
    snprintf(out->secret, sizeof(out->secret), "%.*s", SL_ARG(secret));
    snprintf(out->token, sizeof(out->token), "%.*s", SL_ARG(token));
    out->expires_s = expires_s > 0 ? expires_s : 0;
    out->origin = origin;
    s->found = true;
    return SL_OK;
}

/* ---- the environment ---- */

static enum sl_status from_environment(struct search *s)
{
    const char *access = var(s, "AWS_ACCESS_KEY_ID"), *secret = var(s, "AWS_SECRET_ACCESS_KEY");
    const char *token = var(s, "AWS_SESSION_TOKEN"), *ends = var(s, "AWS_CREDENTIAL_EXPIRATION");
    if (!access && !secret)
        return SL_OK;
    if (!token)
        token = var(s, "AWS_SECURITY_TOKEN");
    return keep(s, sl_span_str(access), sl_span_str(secret), sl_span_str(token),
                sl_credentials_time(sl_span_str(ends)), "the environment");
}

/* ---- plain requests to the places that hand out keys ---- */

struct asked {
    const char *method, *url, *header; /* "name: value" or NULL */
    int64_t timeout_ms;
    unsigned tries;
};

/* True with a 200 in `exchange`. */
static bool ask(struct search *s, const struct asked *what, struct sl_http_exchange *exchange)
{
    struct sl_http *http = sl_aws_http(s->aws);
    for (unsigned i = 0; i < what->tries; i++) {
        int64_t left = s->deadline_ms - sl_aws_now_ms(s->aws);
        if (left <= 0)
            return false;
        exchange->method = what->method;
        exchange->url = what->url;
        exchange->n_headers = 0;
        if (what->header)
            exchange->headers[exchange->n_headers++] = what->header;
        exchange->timeout_ms = left < what->timeout_ms ? left : what->timeout_ms;
        exchange->connect_timeout_ms = exchange->timeout_ms;
        sl_http_start(http, exchange);
        while (exchange->outcome == SL_HTTP_RUNNING)
            sl_http_wait(http, exchange->timeout_ms);
        if (exchange->outcome == SL_HTTP_ANSWERED && exchange->status < 500)
            break;
    }
    return exchange->outcome == SL_HTTP_ANSWERED && exchange->status == 200;
}

static struct sl_span member(const json_t *root, const char *name)
{
    const json_t *value = json_object_get(root, name);
    return sl_span(json_string_value(value), json_string_length(value));
}

/* The form that containers and instances answer in. */
static enum sl_status keep_json(struct search *s, const struct sl_http_exchange *exchange, const char *origin)
{
    json_t *root = json_loadb(exchange->body.ptr ? exchange->body.ptr : "", exchange->body.len, 0, NULL);
    enum sl_status status;
    if (!root)
        status =
            sl_fail(s->error, SL_RETRY, "InvalidCredentials", "%s answered with what is no JSON", origin);
    else
        status = keep(s, member(root, "AccessKeyId"), member(root, "SecretAccessKey"), member(root, "Token"),
                      sl_credentials_time(member(root, "Expiration")), origin);
    json_decref(root);
    return status;
}

static enum sl_status no_answer(struct search *s, const struct sl_http_exchange *exchange, const char *origin)
{
    return sl_fail(s->error, SL_RETRY, "NoCredentials", "%s did not give credentials: %s (HTTP %d)", origin,
                   exchange->problem[0] ? exchange->problem : "no keys in its answer", exchange->status);
}

/* ---- containers ---- */

/* Keys and a token go over plain HTTP only to this machine and the two link-local services. */
static bool is_trusted_url(const char *url)
{
    static const char *const hosts[] = {"localhost",     "127.0.0.1",      "[::1]",
                                        "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    if (strncmp(url, "https://", 8) == 0)
        return true;
    if (strncmp(url, "http://", 7) != 0)
        return false;
    size_t n = strcspn(url + 7, "/?#");
    if (memchr(url + 7, '@', n))
        return false;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        size_t len = strlen(hosts[i]);
        if (n >= len && memcmp(url + 7, hosts[i], len) == 0 && (n == len || url[7 + len] == ':'))
            return true;
    }
    return false;
}

static const char *read_token_file(struct search *s, const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    char *text = sl_arena_alloc(s->arena, TOKEN_FILE_BYTES + 1);
    size_t n = fread(text, 1, TOKEN_FILE_BYTES, file);
    fclose(file);
    while (n && (unsigned char)text[n - 1] <= ' ')
        n--;
    text[n] = '\0';
    return strpbrk(text, "\r\n") ? NULL : text;
}

static enum sl_status from_container(struct search *s)
{
    const char *origin = "the container's endpoint";
    const char *relative = var(s, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *url = var(s, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *file = var(s, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *token = var(s, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (!relative && !url)
        return SL_OK;
    if (relative)
        url = sl_arena_printf(s->arena, "http://169.254.170.2%s", relative);
    if (!is_trusted_url(url))
        return sl_fail(s->error, SL_FATAL, "InvalidCredentials",
                       "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor a local address");
    if (file && !(token = read_token_file(s, file)))
        return sl_fail(s->error, SL_FATAL, "InvalidCredentials", "token file %s cannot be read", file);
    struct sl_http_exchange exchange;
    sl_http_exchange_init(&exchange);
    struct asked what = {"GET", url, NULL, CONTAINER_MS, CONTAINER_TRIES};
    if (token)
        what.header = sl_arena_printf(s->arena, "Authorization: %s", token);
    enum sl_status status =
        ask(s, &what, &exchange) ? keep_json(s, &exchange, origin) : no_answer(s, &exchange, origin);
    sl_http_exchange_clean_up(&exchange);
    return status;
}

/* ---- instances ---- */

static const char *body_text(struct search *s, const struct sl_http_exchange *exchange)
{
    const char *text = sl_arena_copy(s->arena, sl_buffer_span(&exchange->body));
    return sl_arena_copy(s->arena, sl_span(text, strcspn(text, "\r\n")));
}

static enum sl_status ask_metadata(struct search *s, const char *base, struct sl_http_exchange *exchange)
{
    const char *origin = "the instance's metadata";
    const char *roles = sl_arena_printf(s->arena, "%s/latest/meta-data/iam/security-credentials/", base);
    struct asked token = {"PUT", sl_arena_printf(s->arena, "%s/latest/api/token", base),
                          "x-aws-ec2-metadata-token-ttl-seconds: " METADATA_TTL, METADATA_MS, 1};
    if (!ask(s, &token, exchange))
        return SL_OK; /* not on an instance, as everywhere else */
    struct asked list = {"GET", roles, NULL, METADATA_MS, 1};
    list.header = sl_arena_printf(s->arena, "x-aws-ec2-metadata-token: %s", body_text(s, exchange));
    if (!ask(s, &list, exchange) || exchange->body.len == 0)
        return SL_OK; /* an instance without a role */
    struct asked keys = list;
    keys.url = sl_arena_printf(s->arena, "%s%s", roles, body_text(s, exchange));
    return ask(s, &keys, exchange) ? keep_json(s, exchange, origin) : no_answer(s, exchange, origin);
}

static enum sl_status from_instance(struct search *s)
{
    const char *off = var(s, "AWS_EC2_METADATA_DISABLED");
    const char *base = var(s, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
    if (off && strcasecmp(off, "true") == 0)
        return SL_OK;
    struct sl_http_exchange exchange;
    sl_http_exchange_init(&exchange);
    enum sl_status status = ask_metadata(s, base ? base : "http://169.254.169.254", &exchange);
    sl_http_exchange_clean_up(&exchange);
    return status;
}

/* ---- roles ---- */

static enum sl_job_next sts_answered(struct sl_job *job)
{
    struct search *s = job->context;
    struct sl_span xml = sl_answer_tag(sl_buffer_span(&job->answer->body), "Credentials");
    if (!xml.ptr)
        return SL_JOB_BROKEN;
    job->status = keep(s, sl_answer_tag(xml, "AccessKeyId"), sl_answer_tag(xml, "SecretAccessKey"),
                       sl_answer_tag(xml, "SessionToken"),
                       sl_credentials_time(sl_answer_tag(xml, "Expiration")), "an assumed role");
    return SL_JOB_DONE;
}

static void add_form(struct sl_buffer *form, const char *name, struct sl_span value)
{
    if (!value.len)
        return;
    sl_buffer_printf(form, "&%s=", name);
    sl_uri_encode(form, value, '\0');
}

/* `keys` NULL: the request goes unsigned, as web identity has it. */
static enum sl_status ask_sts(struct search *s, const char *operation, struct sl_keys *keys,
                              const struct sl_buffer *form)
{
    static const struct sl_job_kind kind = {sts_answered, NULL};
    struct sl_credentials fixed = {.serial = 1, .is_fixed = true};
    struct sl_client client;
    struct sl_url url;
    enum sl_status status = sl_url_parse(SL_LIT("sts:"), s->arena, &url, s->error);
    if (status == SL_OK)
        status = sl_client_init(&client, s->aws->sinks, &sl_service_sts, &url, sl_span(NULL, 0), s->error);
    if (status != SL_OK)
        return status;
    if (keys)
        fixed.keys = *keys;
    client.name = "STS";
    client.credentials = keys ? &fixed : NULL;
    struct sl_span body = sl_buffer_span(form);
    struct sl_job job = {.kind = &kind, .context = s, .operation = operation, .parts = &body, .n_parts = 1};
    struct sl_call call = {s->arena, s->deadline_ms};
    sl_job_run(&client, &job, 1, &call);
    sl_client_clean_up(&client);
    memset(&fixed, 0, sizeof(fixed));
    return job.status == SL_OK ? SL_OK
                               : sl_fail(s->error, job.status, job.code ? job.code : "NoCredentials", "%s",
                                         job.text ? job.text : "");
}

static const char *session_name(struct search *s, struct sl_span wanted)
{
    const char *named = var(s, "AWS_ROLE_SESSION_NAME");
    if (wanted.len)
        return sl_arena_copy(s->arena, wanted);
    return named ? named : sl_arena_printf(s->arena, "sluice-%lld", (long long)sl_aws_now_s(s->aws));
}

static void begin_form(struct search *s, struct sl_buffer *form, const char *operation, struct sl_span role,
                       struct sl_span session)
{
    sl_buffer_init(form, TOKEN_FILE_BYTES * 4);
    sl_buffer_printf(form, "Action=%s&Version=2011-06-15", operation);
    add_form(form, "RoleArn", role);
    add_form(form, "RoleSessionName", sl_span_str(session_name(s, session)));
}

/* With what `s->out` holds. */
static enum sl_status assume_role(struct search *s, struct sl_span role, struct sl_span session,
                                  struct sl_span external_id)
{
    struct sl_buffer form;
    struct sl_keys keys = *s->out;
    begin_form(s, &form, "AssumeRole", role, session);
    add_form(&form, "ExternalId", external_id);
    enum sl_status status = ask_sts(s, "AssumeRole", &keys, &form);
    sl_buffer_clean_up(&form);
    memset(&keys, 0, sizeof(keys));
    return status;
}

static enum sl_status assume_by_web(struct search *s, struct sl_span role, const char *file,
                                    struct sl_span session)
{
    struct sl_buffer form;
    const char *token = read_token_file(s, file);
    if (!token)
        return sl_fail(s->error, SL_FATAL, "InvalidCredentials", "web identity token file %s cannot be read",
                       file);
    begin_form(s, &form, "AssumeRoleWithWebIdentity", role, session);
    add_form(&form, "WebIdentityToken", sl_span_str(token));
    enum sl_status status = ask_sts(s, "AssumeRoleWithWebIdentity", NULL, &form);
    sl_buffer_clean_up(&form);
    return status;
}

static enum sl_status from_web_identity(struct search *s)
{
    const char *file = var(s, "AWS_WEB_IDENTITY_TOKEN_FILE"), *role = var(s, "AWS_ROLE_ARN");
    return file && role ? assume_by_web(s, sl_span_str(role), file, sl_span(NULL, 0)) : SL_OK;
}

/* ---- profiles ---- */

static enum sl_status from_named_source(struct search *s, struct sl_span source, const char *profile)
{
    enum sl_status status;
    if (sl_span_is(source, "Environment"))
        status = from_environment(s);
    else if (sl_span_is(source, "EcsContainer"))
        status = from_container(s);
    else if (sl_span_is(source, "Ec2InstanceMetadata"))
        status = from_instance(s);
    else
        return sl_fail(s->error, SL_FATAL, "InvalidProfile", "profile %s: unknown credential_source \"%.*s\"",
                       profile, SL_ARG(source));
    if (status == SL_OK && !s->found)
        return sl_fail(s->error, SL_FATAL, "NoCredentials",
                       "profile %s: credential_source %.*s has no credentials", profile, SL_ARG(source));
    return status;
}

static enum sl_status static_keys(struct search *s, const char *name)
{
    struct sl_span access = sl_profile_get(&s->profile, name, "aws_access_key_id");
    struct sl_span secret = sl_profile_get(&s->profile, name, "aws_secret_access_key");
    if (!access.len && !secret.len)
        return SL_OK;
    return keep(s, access, secret, sl_profile_get(&s->profile, name, "aws_session_token"), 0,
                "a profile's keys");
}

static enum sl_status from_profile(struct search *s, const char *name, unsigned depth);

static enum sl_status role_source(struct search *s, const char *name, unsigned depth)
{
    struct sl_span source = sl_profile_get(&s->profile, name, "source_profile");
    struct sl_span named = sl_profile_get(&s->profile, name, "credential_source");
    if (named.len)
        return from_named_source(s, named, name);
    if (!source.len)
        return sl_fail(s->error, SL_FATAL, "InvalidProfile",
                       "profile %s has a role_arn, but no source_profile or credential_source", name);
    const char *next = sl_arena_copy(s->arena, source);
    if (depth >= ROLE_DEPTH)
        return sl_fail(s->error, SL_FATAL, "InvalidProfile",
                       "profile %s: its source_profile leads in a circle", name);
    /* A profile may name itself: then its own keys are meant. */
    enum sl_status status = strcmp(next, name) == 0 ? static_keys(s, name) : from_profile(s, next, depth + 1);
    if (status == SL_OK && !s->found)
        return sl_fail(s->error, SL_FATAL, "NoCredentials",
                       "profile %s: source_profile %s has no credentials", name, next);
    return status;
}

static enum sl_status from_profile_role(struct search *s, const char *name, struct sl_span role,
                                        unsigned depth)
{
    struct sl_span session = sl_profile_get(&s->profile, name, "role_session_name");
    struct sl_span file = sl_profile_get(&s->profile, name, "web_identity_token_file");
    if (file.len)
        return assume_by_web(s, role, sl_arena_copy(s->arena, file), session);
    if (sl_profile_get(&s->profile, name, "mfa_serial").len)
        return sl_fail(s->error, SL_FATAL, "InvalidProfile",
                       "profile %s asks for an MFA code, which nobody can type here", name);
    enum sl_status status = role_source(s, name, depth);
    if (status != SL_OK)
        return status;
    s->found = false;
    return assume_role(s, role, session, sl_profile_get(&s->profile, name, "external_id"));
}

static enum sl_status from_profile(struct search *s, const char *name, unsigned depth)
{
    struct sl_span role = sl_profile_get(&s->profile, name, "role_arn");
    enum sl_status status = role.len ? from_profile_role(s, name, role, depth) : static_keys(s, name);
    if (status != SL_OK || s->found)
        return status;
    static const char *const others[] = {"credential_process", "sso_session", "sso_start_url",
                                         "login_session"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (sl_profile_get(&s->profile, name, others[i]).len)
            return sl_fail(s->error, SL_FATAL, "InvalidProfile",
                           "profile %s uses %s, which is not supported; `aws configure export-credentials "
                           "--format env` turns it into variables",
                           name, others[i]);
    return SL_OK;
}

static enum sl_status from_chosen_profile(struct search *s)
{
    const char *name = s->profile.name;
    if (!sl_profile_has(&s->profile, name))
        return var(s, "AWS_PROFILE") ? sl_fail(s->error, SL_FATAL, "InvalidProfile",
                                               "AWS_PROFILE names %s, which no file has", name)
                                     : SL_OK;
    /* Web identity from the environment stands before a profile's own keys, behind its role. */
    if (!sl_profile_get(&s->profile, name, "role_arn").len) {
        enum sl_status status = from_web_identity(s);
        if (status != SL_OK || s->found)
            return status;
    }
    return from_profile(s, name, 0);
}

static enum sl_status search_all(struct search *s)
{
    static enum sl_status (*const places[])(struct search *) = {
        from_environment, from_chosen_profile, from_web_identity, from_container, from_instance,
    };
    sl_profile_load(&s->profile, s->aws->sinks->vars, s->arena);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        enum sl_status status = places[i](s);
        if (status != SL_OK || s->found)
            return status;
    }
    return sl_fail(
        s->error, SL_FATAL, "NoCredentials",
        "no AWS credentials: neither in the environment (AWS_ACCESS_KEY_ID), nor in profile %s, nor "
        "from web identity, a container or an instance",
        s->profile.name);
}

enum sl_status sl_sources_chain(struct sl_aws *aws, int64_t deadline_ms, struct sl_keys *out,
                                struct sl_error *error)
{
    struct search s = {.aws = aws, .deadline_ms = deadline_ms, .out = out, .error = error};
    s.arena = sl_arena_new(8 * 1024);
    enum sl_status status = search_all(&s);
    sl_arena_destroy(s.arena);
    return status;
}

enum sl_status sl_sources_role(struct sl_aws *aws, const char *role, int64_t deadline_ms, struct sl_keys *out,
                               struct sl_error *error)
{
    struct sl_credentials *base = sl_credentials_for(aws, SL_LIT(""));
    enum sl_status status = sl_credentials_get(aws, base, deadline_ms, error);
    if (status != SL_OK)
        return status;
    struct search s = {.aws = aws, .deadline_ms = deadline_ms, .out = out, .error = error};
    s.arena = sl_arena_new(8 * 1024);
    *out = base->keys;
    status = assume_role(&s, sl_span_str(role), sl_span(NULL, 0), sl_span(NULL, 0));
    sl_arena_destroy(s.arena);
    return status;
}
