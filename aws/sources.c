/* Where keys come from: one function for each place, and the order in which the places are searched. */
#include "aws/sources.h"

#include "aws/job.h"
#include "base/array.h"
#include "net/uri.h"
#include "aws/xml.h"
#include "aws/answer.h"
#include "base/json.h"
#include "base/json_walk.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define ROLE_DEPTH          8 /* profiles that refer to each other */
#define CONTAINER_MS        2000
#define CONTAINER_TRIES     3
#define METADATA_MS         1000
#define METADATA_TRIES      2
#define METADATA_TTL        "21600"
#define METADATA_WORD_BYTES 1024 /* a token, or a role's name */
#define TOKEN_FILE_BYTES    (64 * 1024)

/* One search. A place that has keys sets `found`; a place that has none leaves it false and returns SL_OK. */
struct search {
    struct sl_aws *aws;
    struct sl_arena *arena;
    struct sl_profile profile;
    int64_t deadline_ms;
    struct sl_keys *out;
    bool found;
    const char *region; /* where STS is asked when no region is configured; "": nowhere */
    struct sl_error *error;
};

static const char *var(const struct search *s, const char *name)
{
    return sl_vars_or(s->aws->vars, name, NULL);
}

/* Keys as a place has them. */
struct found {
    struct sl_span access, secret, token;
    int64_t expires_s;  /* 0 or less: never */
    const char *origin; /* static */
};

/* Keys go into headers: printable ASCII, and a blank only where one may be. */
static bool is_printable(struct sl_span text, bool has_blanks)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= (has_blanks ? '\x1F' : ' ') || text.ptr[i] >= '\x7F')
            return false;
    return true;
}

static const char *problem_of(const struct found *found)
{
    const struct sl_keys *keys = NULL;
    if (!found->access.len || !found->secret.len)
        return "lack the access key or the secret key";
    if (found->access.len >= sizeof(keys->access) || found->secret.len >= sizeof(keys->secret) ||
        found->token.len >= sizeof(keys->token))
        return "are too long to be keys";
    if (!is_printable(found->access, false) || !is_printable(found->secret, false) ||
        !is_printable(found->token, false))
        return "hold blanks, control characters or other bytes that no key has";
    return NULL;
}

static enum sl_status keep(struct search *s, const struct found *found)
{
    struct sl_keys *out = s->out;
    const char *problem = problem_of(found);
    if (problem)
        return sl_fail(s->error, SL_FATAL, "InvalidCredentials", "credentials from %s %s", found->origin,
                       problem);
    snprintf(out->access, sizeof(out->access), "%.*s", SL_ARG(found->access));
    snprintf(out->secret, sizeof(out->secret), "%.*s", SL_ARG(found->secret));
    snprintf(out->token, sizeof(out->token), "%.*s", SL_ARG(found->token));
    out->expires_s = found->expires_s > 0 ? found->expires_s : 0;
    out->origin = found->origin;
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
    return keep(s, &(struct found){sl_span_str(access), sl_span_str(secret), sl_span_str(token),
                                   sl_credentials_time(sl_span_str(ends)), "the environment"});
}

/* ---- plain requests to the places that have keys ---- */

struct asked {
    const char *method, *url, *header; /* "name: value" or NULL */
    int64_t timeout_ms;
    unsigned tries;
    bool is_probe; /* mostly nobody is there: only a server that answers is asked again */
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
        exchange->is_private = exchange->is_secret = true;
        sl_http_start(http, exchange);
        while (exchange->outcome == SL_HTTP_RUNNING)
            sl_http_wait(http, exchange->timeout_ms);
        if (exchange->outcome == SL_HTTP_ANSWERED ? exchange->status < 500 : what->is_probe)
            break;
    }
    return exchange->outcome == SL_HTTP_ANSWERED && exchange->status == 200;
}

/* Of text that was checked. */
static struct sl_span member(struct search *s, struct sl_span object, const char *name)
{
    struct sl_span value = sl_json_walk_member(object, sl_span_str(name));
    return value.len >= 2 && *value.ptr == '"'
               ? sl_json_unescape(sl_span(value.ptr + 1, value.len - 2), s->arena)
               : sl_span(NULL, 0);
}

/* What an answer lacks to be one with keys; NULL: nothing. Keys that are fetched have all four members. */
static const char *lack_of(const struct found *found)
{
    if (!found->token.len)
        return "lack the session token";
    if (found->expires_s <= 0)
        return "lack the time at which they expire";
    for (size_t i = 0; i < found->access.len; i++)
        if (!isalnum((unsigned char)found->access.ptr[i]) && found->access.ptr[i] != '_')
            return "hold an access key that is not one";
    return problem_of(found);
}

/* In the form in which containers and instances answer. */
static enum sl_status keep_json(struct search *s, const struct sl_http_exchange *exchange, const char *origin)
{
    struct sl_span body = sl_buffer_span(&exchange->body);
    bool is_json = body.len && sl_answer_is_json(body) && sl_json_walk(body).is_object;
    if (!is_json)
        body.len = 0;
    const struct found found = {member(s, body, "AccessKeyId"), member(s, body, "SecretAccessKey"),
                                member(s, body, "Token"), sl_credentials_time(member(s, body, "Expiration")),
                                origin};
    struct sl_span code = member(s, body, "Code");
    const char *lack = !is_json                                   ? "are not JSON"
                       : code.len && !sl_span_is(code, "Success") ? "are refused: its Code is not Success"
                                                                  : lack_of(&found);
    if (lack)
        return sl_fail(s->error, SL_RETRY, "InvalidCredentials", "credentials in the answer of %s %s", origin,
                       lack);
    return keep(s, &found);
}

static enum sl_status no_answer(struct search *s, const struct sl_http_exchange *exchange, const char *origin)
{
    return sl_fail(s->error, SL_RETRY, "NoCredentials", "%s returned no credentials: %s (HTTP %d)", origin,
                   exchange->problem[0] ? exchange->problem : "no keys in its answer", exchange->status);
}

/* ---- containers ---- */

/* Over plain HTTP, keys and a token go only to this machine and the link-local services. */
static bool is_trusted_url(const char *url)
{
    static const char *const hosts[] = {"localhost",     "127.0.0.1",      "[::1]",
                                        "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    struct sl_uri uri;
    if (!sl_uri_parse(url, &uri))
        return false;
    for (size_t i = 0; i < SL_COUNT(hosts); i++)
        if (strcmp(uri.host, hosts[i]) == 0)
            return true;
    return uri.is_https;
}

#define TOKEN_FILE_PROBLEM "%s %s cannot be read, or holds bytes that no token has"

/* The file's text without blanks at its end; NULL when it has none that can be a header's. */
static const char *read_token_file(struct search *s, const char *path)
{
    struct sl_span text = sl_profile_read(path, TOKEN_FILE_BYTES, s->arena);
    while (text.len && (unsigned char)text.ptr[text.len - 1] <= ' ')
        text.len--;
    return text.ptr && is_printable(text, true) ? sl_arena_copy(s->arena, text) : NULL;
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
                       "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither an https URL nor a local address");
    if (file && !(token = read_token_file(s, file)))
        return sl_fail(s->error, SL_FATAL, "InvalidCredentials", TOKEN_FILE_PROBLEM, "token file", file);
    if (token && !is_printable(sl_span_str(token), true))
        return sl_fail(s->error, SL_FATAL, "InvalidCredentials",
                       "AWS_CONTAINER_AUTHORIZATION_TOKEN holds control characters");
    struct sl_http_exchange exchange;
    sl_http_exchange_init(&exchange);
    struct asked what = {"GET", url, NULL, CONTAINER_MS, CONTAINER_TRIES, false};
    if (token)
        what.header = sl_arena_printf(s->arena, "Authorization: %s", token);
    enum sl_status status =
        ask(s, &what, &exchange) ? keep_json(s, &exchange, origin) : no_answer(s, &exchange, origin);
    sl_http_exchange_clean_up(&exchange);
    return status;
}

/* ---- instances ---- */

/* The answer's first line; NULL when it is no word: a page, for example. */
static const char *body_word(struct search *s, const struct sl_http_exchange *exchange)
{
    const char *text = sl_arena_copy(s->arena, sl_buffer_span(&exchange->body));
    struct sl_span line = sl_span(text, strcspn(text, "\r\n"));
    bool is_word = line.len && line.len <= METADATA_WORD_BYTES && is_printable(line, false) &&
                   !memchr(line.ptr, '<', line.len);
    return is_word ? sl_arena_copy(s->arena, line) : NULL;
}

/* Whether the metadata's server is there, and failed for now: it said so, or took the request and was silent.
 * (Where nobody is there, no connection comes about.) */
static bool is_busy(const struct sl_http_exchange *exchange)
{
    return exchange->outcome == SL_HTTP_ANSWERED ? exchange->status >= 500 || exchange->status == 429
                                                 : exchange->outcome == SL_HTTP_BROKEN;
}

static enum sl_status ask_metadata(struct search *s, const char *base, struct sl_http_exchange *exchange)
{
    const char *origin = "the instance's metadata", *word;
    const char *roles = sl_arena_printf(s->arena, "%s/latest/meta-data/iam/security-credentials/", base);
    struct asked token = {"PUT",
                          sl_arena_printf(s->arena, "%s/latest/api/token", base),
                          "x-aws-ec2-metadata-token-ttl-seconds: " METADATA_TTL,
                          METADATA_MS,
                          METADATA_TRIES,
                          true};
    if (!ask(s, &token, exchange)) /* mostly: this is not an instance */
        return is_busy(exchange) ? no_answer(s, exchange, origin) : SL_OK;
    if (!(word = body_word(s, exchange)))
        return no_answer(s, exchange, origin);
    struct asked list = {"GET", roles, NULL, METADATA_MS, METADATA_TRIES, true};
    list.header = sl_arena_printf(s->arena, "x-aws-ec2-metadata-token: %s", word);
    if (!ask(s, &list, exchange) || exchange->body.len == 0) /* mostly: an instance without a role */
        return is_busy(exchange) ? no_answer(s, exchange, origin) : SL_OK;
    if (!(word = body_word(s, exchange)))
        return no_answer(s, exchange, origin);
    struct asked keys = list;
    keys.url = sl_arena_printf(s->arena, "%s%s", roles, word);
    return ask(s, &keys, exchange) ? keep_json(s, exchange, origin) : no_answer(s, exchange, origin);
}

static enum sl_status from_instance(struct search *s)
{
    const char *off = var(s, "AWS_EC2_METADATA_DISABLED");
    struct sl_span named = sl_profile_setting(&s->profile, s->aws->vars, "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                              "ec2_metadata_service_endpoint");
    struct sl_span mode =
        sl_profile_setting(&s->profile, s->aws->vars, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
                           "ec2_metadata_service_endpoint_mode");
    bool is_6 = mode.len == 4 && strncasecmp(mode.ptr, "ipv6", 4) == 0;
    if (off && strcasecmp(off, "true") == 0)
        return SL_OK;
    if (mode.len && !is_6 && !(mode.len == 4 && strncasecmp(mode.ptr, "ipv4", 4) == 0))
        return sl_fail(s->error, SL_FATAL, "InvalidCredentials",
                       "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE (in a profile: "
                       "ec2_metadata_service_endpoint_mode) is neither IPv4 nor IPv6");
    const char *base = is_6 ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
    if (named.len) {
        while (named.len && named.ptr[named.len - 1] == '/')
            named.len--;
        base = sl_arena_copy(s->arena, named);
    }
    struct sl_http_exchange exchange;
    sl_http_exchange_init(&exchange);
    enum sl_status status = ask_metadata(s, base, &exchange);
    sl_http_exchange_clean_up(&exchange);
    return status;
}

/* ---- roles ---- */

/* <AssumeRoleResponse>, and whole. */
static bool is_answer_to(struct sl_span answer, const char *operation)
{
    char root[64];
    snprintf(root, sizeof(root), "%sResponse", operation);
    return sl_xml_is_document(answer, root);
}

static enum sl_job_next sts_answered(struct sl_job *job)
{
    struct search *s = job->context;
    struct sl_span answer = sl_buffer_span(&job->answer->body);
    struct sl_span xml = sl_xml_tag(answer, "Credentials");
    struct found found = {sl_xml_tag(xml, "AccessKeyId"), sl_xml_tag(xml, "SecretAccessKey"),
                          sl_xml_tag(xml, "SessionToken"), sl_credentials_time(sl_xml_tag(xml, "Expiration")),
                          "an assumed role"};
    static const char *const once[] = {"Credentials", "AccessKeyId", "SecretAccessKey", "SessionToken",
                                       "Expiration"};
    if (!is_answer_to(answer, job->operation) || lack_of(&found) ||
        !sl_xml_is_once(answer, once, SL_COUNT(once)))
        return SL_JOB_BROKEN;
    found.expires_s -= job->client->host->skew_s; /* it is by the service's clock */
    job->status = keep(s, &found);
    return SL_JOB_DONE;
}

static void add_form(struct sl_buffer *form, const char *name, struct sl_span value)
{
    if (!value.len)
        return;
    sl_buffer_printf(form, "&%s=", name);
    sl_uri_encode(form, value, '\0');
}

/* AWS_STS_REGIONAL_ENDPOINTS=legacy: in the oldest Regions STS is asked at its global host, as SDKs did. */
static enum sl_status sts_target(struct search *s, const char **out)
{
    static const char *const oldest[] = {"ap-northeast-1", "ap-south-1",   "ap-southeast-1", "ap-southeast-2",
                                         "aws-global",     "ca-central-1", "eu-central-1",   "eu-north-1",
                                         "eu-west-1",      "eu-west-2",    "eu-west-3",      "sa-east-1",
                                         "us-east-1",      "us-east-2",    "us-west-1",      "us-west-2"};
    const struct sl_vars *vars = s->aws->vars;
    const struct sl_profile *profile = sl_aws_profile(s->aws); /* as the client has it */
    struct sl_span mode =
        sl_profile_setting(profile, vars, "AWS_STS_REGIONAL_ENDPOINTS", "sts_regional_endpoints");
    struct sl_span region = sl_endpoint_region(vars, profile);
    struct sl_endpoint endpoint;
    size_t i = 0, n = SL_COUNT(oldest);
    *out = "sts:";
    if (!mode.len || sl_span_is(mode, "regional"))
        return SL_OK;
    if (!sl_span_is(mode, "legacy"))
        return sl_fail(s->error, SL_FATAL, "InvalidCredentials",
                       "AWS_STS_REGIONAL_ENDPOINTS (in a profile: sts_regional_endpoints) is neither "
                       "regional nor legacy");
    while (i < n && !sl_span_is(region, oldest[i]))
        i++;
    const struct sl_endpoint_request usual = {
        .service = &sl_service_sts, .region = i < n ? oldest[i] : "", .vars = vars, .profile = profile};
    const char *host = sl_arena_printf(s->arena, "sts.%s.amazonaws.com", usual.region);
    if (i < n && sl_endpoint_resolve(&usual, &endpoint, NULL) == SL_OK &&
        sl_span_is(sl_endpoint_host(&endpoint), host))
        *out = "sts:?region=us-east-1&endpoint=https://sts.amazonaws.com";
    return SL_OK;
}

/* `keys` NULL: the request is not signed, as web identity requires. */
static enum sl_status ask_sts(struct search *s, const char *operation, struct sl_keys *keys,
                              const struct sl_buffer *form)
{
    static const struct sl_job_kind kind = {sts_answered, NULL};
    struct sl_credentials fixed = {.serial = 1, .is_fixed = true};
    struct sl_client client;
    struct sl_url url;
    const char *target;
    enum sl_status status = sts_target(s, &target);
    if (status == SL_OK)
        status = sl_url_parse(sl_span_str(target), s->arena, &url, s->error);
    if (status == SL_OK)
        status = sl_client_init(
            &client, s->aws, &(struct sl_client_options){.service = &sl_service_sts, .url = &url}, s->error);
    if (status != SL_OK)
        return status;
    if (keys)
        fixed.keys = *keys;
    client.name = "STS";
    client.region_hint = s->region[0] ? s->region : NULL;
    client.credentials = keys ? &fixed : NULL;
    struct sl_span body = sl_buffer_span(form);
    struct sl_job job = {.kind = &kind,
                         .context = s,
                         .operation = operation,
                         .parts = &body,
                         .n_parts = 1,
                         .of_no_record = true};
    struct sl_call call = {s->arena, s->deadline_ms};
    sl_job_run(&client, &job, 1, &call);
    sl_client_clean_up(&client);
    OPENSSL_cleanse(&fixed, sizeof(fixed));
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
    form->is_secret = true;
    sl_buffer_printf(form, "Action=%s&Version=2011-06-15", operation);
    add_form(form, "RoleArn", role);
    add_form(form, "RoleSessionName", sl_span_str(session_name(s, session)));
}

/* With the keys that `s->out` holds. */
static enum sl_status assume_role(struct search *s, struct sl_span role, struct sl_span session,
                                  struct sl_span external_id)
{
    struct sl_buffer form;
    struct sl_keys keys = *s->out;
    begin_form(s, &form, "AssumeRole", role, session);
    add_form(&form, "ExternalId", external_id);
    enum sl_status status = ask_sts(s, "AssumeRole", &keys, &form);
    sl_buffer_clean_up(&form);
    OPENSSL_cleanse(&keys, sizeof(keys));
    return status;
}

static enum sl_status assume_by_web(struct search *s, struct sl_span role, const char *file,
                                    struct sl_span session)
{
    struct sl_buffer form;
    const char *token = read_token_file(s, file);
    if (!token)
        return sl_fail(s->error, SL_FATAL, "InvalidCredentials", TOKEN_FILE_PROBLEM,
                       "web identity token file", file);
    begin_form(s, &form, "AssumeRoleWithWebIdentity", role, session);
    add_form(&form, "WebIdentityToken", sl_span_str(token));
    enum sl_status status = ask_sts(s, "AssumeRoleWithWebIdentity", NULL, &form);
    sl_buffer_clean_up(&form);
    return status;
}

static enum sl_status from_web_identity(struct search *s)
{
    const char *file = var(s, "AWS_WEB_IDENTITY_TOKEN_FILE"), *role = var(s, "AWS_ROLE_ARN");
    if (file && !role)
        return sl_fail(s->error, SL_FATAL, "InvalidCredentials",
                       "AWS_WEB_IDENTITY_TOKEN_FILE is set, and AWS_ROLE_ARN is not: whose keys are meant is "
                       "not known");
    return file ? assume_by_web(s, sl_span_str(role), file, sl_span(NULL, 0)) : SL_OK;
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
    return keep(s, &(struct found){access, secret, sl_profile_get(&s->profile, name, "aws_session_token"), 0,
                                   "a profile's keys"});
}

static enum sl_status from_profile(struct search *s, const char *name, unsigned depth);

static enum sl_status role_source(struct search *s, const char *name, unsigned depth)
{
    struct sl_span source = sl_profile_get(&s->profile, name, "source_profile");
    struct sl_span named = sl_profile_get(&s->profile, name, "credential_source");
    if (named.len && source.len)
        return sl_fail(s->error, SL_FATAL, "InvalidProfile",
                       "profile %s has a source_profile and a credential_source; keep one", name);
    if (named.len)
        return from_named_source(s, named, name);
    if (!source.len)
        return sl_fail(s->error, SL_FATAL, "InvalidProfile",
                       "profile %s has a role_arn, but no source_profile or credential_source", name);
    const char *next = sl_arena_copy(s->arena, source);
    if (depth >= ROLE_DEPTH)
        return sl_fail(s->error, SL_FATAL, "InvalidProfile",
                       "profile %s: its source_profile refers back to itself through others", name);
    /* A profile may name itself, and means its own keys then. Of another one keys count before its role. */
    enum sl_status status = static_keys(s, next);
    if (status == SL_OK && !s->found && strcmp(next, name) != 0)
        status = from_profile(s, next, depth + 1);
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
                       "profile %s asks for an MFA code, which cannot be typed here", name);
    enum sl_status status = role_source(s, name, depth);
    if (status != SL_OK)
        return status;
    s->found = false;
    return assume_role(s, role, session, sl_profile_get(&s->profile, name, "external_id"));
}

/* Places of keys that are not read here. To pass over one that every SDK uses before the keys would mean
 * other keys than theirs. */
static enum sl_status refuse_other(struct search *s, const char *name, const char *setting)
{
    return sl_fail(
        s->error, SL_FATAL, "InvalidProfile",
        "profile %s uses %s, which is not supported; `aws configure export-credentials --format env` "
        "turns it into variables",
        name, setting);
}

static enum sl_status from_profile(struct search *s, const char *name, unsigned depth)
{
    static const char *const before[] = {"sso_session", "sso_start_url", "login_session"};
    const struct sl_profile *p = &s->profile;
    struct sl_span role = sl_profile_get(p, name, "role_arn");
    if (role.len)
        return from_profile_role(s, name, role, depth);
    if (sl_profile_get(p, name, "web_identity_token_file").len)
        return sl_fail(s->error, SL_FATAL, "InvalidProfile",
                       "profile %s has a web_identity_token_file, but no role_arn", name);
    for (size_t i = 0; i < SL_COUNT(before); i++)
        if (sl_profile_get(p, name, before[i]).len)
            return refuse_other(s, name, before[i]);
    if (sl_profile_get(p, name, "credential_process").len &&
        !sl_profile_is_in_credentials(p, name, "aws_access_key_id"))
        return refuse_other(s, name, "credential_process");
    return static_keys(s, name);
}

static enum sl_status from_chosen_profile(struct search *s)
{
    const char *name = s->profile.name;
    if (!sl_profile_has(&s->profile, name))
        return var(s, "AWS_PROFILE") ? sl_fail(s->error, SL_FATAL, "InvalidProfile",
                                               "AWS_PROFILE names profile %s, which is in neither file", name)
                                     : SL_OK;
    /* Web identity from the environment comes after the profile's role and before its own keys. */
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
    sl_profile_load(&s->profile, s->aws->vars, s->arena);
    if (s->profile.problem)
        return sl_fail(s->error, SL_FATAL, "InvalidProfile", "%s", s->profile.problem);
    for (size_t i = 0; i < SL_COUNT(places); i++) {
        enum sl_status status = places[i](s);
        if (status != SL_OK || s->found)
            return status;
    }
    return sl_fail(
        s->error, SL_FATAL, "NoCredentials",
        "no AWS credentials found: not in the environment (AWS_ACCESS_KEY_ID), not in profile %s, not "
        "from web identity, a container or an instance",
        s->profile.name);
}

/* The role's keys, asked for with the process's own. */
static enum sl_status search_role(struct search *s, const char *role)
{
    struct sl_credentials *base = sl_credentials_for(s->aws, SL_LIT(""));
    enum sl_status status = sl_credentials_get(s->aws, base, s->deadline_ms, s->error);
    if (status != SL_OK)
        return status;
    *s->out = base->keys;
    return assume_role(s, sl_span_str(role), sl_span(NULL, 0), sl_span(NULL, 0));
}

enum sl_status sl_sources_find(struct sl_aws *aws, const char *role, int64_t deadline_ms, struct sl_keys *out,
                               struct sl_error *error)
{
    struct search s = {.aws = aws, .deadline_ms = deadline_ms, .out = out, .error = error};
    s.region = sl_credentials_for(aws, sl_span_str(role))->region;
    s.arena = sl_arena_new(8 * 1024);
    sl_arena_keep_secret(s.arena);
    enum sl_status status = role[0] ? search_role(&s, role) : search_all(&s);
    sl_arena_destroy(s.arena);
    return status;
}
