/* One service as a target sees it: its parameters, region, endpoint, signer and judgement. */
#include "aws/client.h"

#include <stdio.h>

static enum sl_status bad_param(const struct sl_url *url, const char *name, struct sl_span value,
                                const char *wanted, struct sl_error *error)
{
    return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: %s=%.*s is not %s", SL_ARG(url->shown),
                   name, SL_ARG(value), wanted);
}

static enum sl_status read_in_flight(struct sl_client *client, struct sl_url *url, struct sl_error *error)
{
    struct sl_span text = sl_url_param(url, "in_flight");
    size_t n = 0;
    for (size_t i = 0; i < text.len && n <= SL_PACE_MAX; i++)
        n = text.ptr[i] >= '0' && text.ptr[i] <= '9' ? n * 10 + (size_t)(text.ptr[i] - '0') : SIZE_MAX / 2;
    if (!text.ptr)
        n = SL_PACE_MAX;
    if (n < 1 || n > SL_PACE_MAX)
        return bad_param(url, "in_flight", text, "a number from 1 to 64", error);
    sl_pace_init(&client->pace, n);
    return SL_OK;
}

static enum sl_status read_region(struct sl_client *client, struct sl_url *url, struct sl_span region,
                                  struct sl_error *error)
{
    struct sl_span param = sl_url_param(url, "region");
    if (region.len && param.len && !sl_span_eq(region, param))
        return bad_param(url, "region", param, "the region of its ARN or address", error);
    if (param.ptr)
        region = param;
    if (region.ptr && !sl_endpoint_is_region(region))
        return bad_param(url, "region", region, "an AWS region such as us-west-2", error);
    snprintf(client->region, sizeof(client->region), "%.*s", SL_ARG(region));
    return SL_OK;
}

/* As services write them: "ValidationException", "KMS.DisabledException". */
static bool is_code(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
              c == '_' || c == '-'))
            return false;
    }
    return text.len > 0 && text.len < SL_ERROR_CODE_BYTES;
}

/* reject=CODE,CODE */
static enum sl_status read_rejects(struct sl_client *client, struct sl_url *url, struct sl_error *error)
{
    struct sl_span text = sl_url_param(url, "reject"), rest = text;
    bool ends = !text.ptr;
    while (!ends) {
        const char *comma = rest.len ? memchr(rest.ptr, ',', rest.len) : NULL;
        struct sl_span code = sl_span(rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len);
        if (!is_code(code) || client->n_rejects == SL_CLIENT_REJECTS)
            return bad_param(url, "reject", text, "a list CODE,CODE of at most 8 error codes", error);
        if (sl_codes_passes(sl_codes_name(code)))
            return bad_param(url, "reject", code,
                             "a code that blocks: such a refusal is retried until it passes", error);
        code = sl_codes_name(code);
        client->rejects[client->n_rejects++] = sl_span(sl_arena_copy(client->aws->lasting, code), code.len);
        ends = !comma;
        rest = sl_span_from(rest, (size_t)(comma ? comma - rest.ptr + 1 : 0));
    }
    return SL_OK;
}

/* arn:aws:iam::123456789012:role/path/name */
static bool is_role(struct sl_span arn)
{
    return sl_span_starts(arn, SL_LIT("arn:")) && arn.len < 240 && memmem(arn.ptr, arn.len, ":role/", 6);
}

static enum sl_status read_endpoint(struct sl_client *client, const struct sl_client_options *options,
                                    struct sl_error *error)
{
    struct sl_url *url = options->url;
    struct sl_aws *aws = client->aws;
    struct sl_span endpoint = options->address.ptr ? options->address : sl_url_param(url, "endpoint");
    if (!endpoint.ptr)
        return SL_OK;
    client->endpoint_url = sl_span(sl_arena_copy(aws->lasting, endpoint), endpoint.len);
    const struct sl_endpoint_request request = {
        .service = client->service, .region = "", .configured = endpoint, .vars = aws->vars};
    return sl_endpoint_resolve(&request, &client->endpoint, error);
}

static enum sl_status read_identity(struct sl_client *client, const struct sl_client_options *options,
                                    struct sl_error *error)
{
    struct sl_url *url = options->url;
    struct sl_span role = sl_url_param(url, "role");
    if (sl_span_starts(url->rest, SL_LIT("arn:"))) {
        struct sl_span home =
            sl_url_param(url, "region").ptr ? sl_span(NULL, 0) : sl_endpoint_region(client->aws->vars, NULL);
        const char *problem = sl_endpoint_arn_problem(url->rest, client->service->signing, home);
        if (problem)
            return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: %s", SL_ARG(url->shown), problem);
        if (!sl_url_param(url, "region").ptr)
            client->arn = sl_arena_copy(client->aws->lasting, url->rest);
    }
    if (read_region(client, url, options->region, error) != SL_OK)
        return SL_FATAL;
    if (role.ptr && !is_role(role))
        return bad_param(url, "role", role, "a role's ARN (arn:aws:iam::123456789012:role/name)", error);
    client->credentials = sl_credentials_for(client->aws, role);
    return SL_OK;
}

/* For sl_aws_prepare. Neither the region matters, nor the profile, which is not read yet. */
static bool is_tls(const struct sl_client *client)
{
    struct sl_endpoint endpoint;
    const struct sl_endpoint_request request = {.service = client->service,
                                                .region = "us-east-1",
                                                .configured = client->endpoint_url,
                                                .vars = client->aws->vars};
    return sl_endpoint_resolve(&request, &endpoint, NULL) == SL_OK && sl_endpoint_is_tls(&endpoint);
}

enum sl_status sl_client_init(struct sl_client *client, struct sl_aws *aws,
                              const struct sl_client_options *options, struct sl_error *error)
{
    struct sl_url *url = options->url;
    *client = (struct sl_client){.aws = aws, .service = options->service};
    sl_retry_bucket_init(&client->bucket);
    client->name = sl_arena_copy(aws->lasting, url->shown);
    client->is_plain = options->is_plain;
    client->login = options->login;
    client->password = options->password;
    if (read_in_flight(client, url, error) != SL_OK || read_endpoint(client, options, error) != SL_OK ||
        read_rejects(client, url, error) != SL_OK)
        return SL_FATAL;
    if (!client->is_plain && read_identity(client, options, error) != SL_OK)
        return SL_FATAL;
    aws->has_tls = aws->has_tls || is_tls(client);
    return SL_OK;
}

void sl_client_clean_up(struct sl_client *client)
{
    sl_sigv4_clean_up(&client->signer);
}

static enum sl_status find_region(struct sl_client *client, struct sl_error *error)
{
    const struct sl_vars *vars = client->aws->vars;
    struct sl_span region = sl_endpoint_region(vars, NULL);
    if (!region.len)
        region = sl_endpoint_region(vars, sl_aws_profile(client->aws));
    if (!region.len && client->region_hint)
        region = sl_span_str(client->region_hint);
    if (!region.len)
        return sl_fail(error, SL_FATAL, "NoRegion",
                       "no region is set; set AWS_REGION, the target's region=, or --region of the command");
    if (!sl_endpoint_is_region(region)) /* it may be a key, in the wrong place */
        return sl_fail(
            error, SL_FATAL, "NoRegion",
            "what is set as the region (%zu bytes) is not one, such as us-west-2; set AWS_REGION or "
            "the target's region=",
            region.len);
    snprintf(client->region, sizeof(client->region), "%.*s", SL_ARG(region));
    return SL_OK;
}

/* "legacy" and "adaptive" are other ways to wait between attempts: this one waits as "standard" does. */
static enum sl_status read_attempts(struct sl_client *client, const struct sl_profile *profile,
                                    struct sl_error *error)
{
    struct sl_span text = sl_profile_setting(profile, client->aws->vars, "AWS_MAX_ATTEMPTS", "max_attempts");
    struct sl_span mode = sl_profile_setting(profile, client->aws->vars, "AWS_RETRY_MODE", "retry_mode");
    static const char *const modes[] = {"standard", "adaptive", "legacy"};
    size_t i = 0, n = 0;
    for (; i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9' && n < 1000; i++)
        n = n * 10 + (size_t)(text.ptr[i] - '0');
    if (text.len && (i < text.len || n < 1 || n > 1000))
        return sl_fail(
            error, SL_FATAL, "InvalidAttempts",
            "AWS_MAX_ATTEMPTS (in a profile: max_attempts) is \"%.*s\"; write a number from 1 to 1000",
            text.len > 16 ? 16 : (int)text.len, text.ptr);
    client->attempts = n ? (unsigned)n : client->service->attempts;
    for (i = 0; mode.len && i < 3 && !sl_span_is(mode, modes[i]);)
        i++;
    return i < 3 ? SL_OK
                 : sl_fail(error, SL_FATAL, "InvalidAttempts",
                           "AWS_RETRY_MODE (in a profile: retry_mode) is none of standard, adaptive, legacy");
}

enum sl_status sl_client_ready(struct sl_client *client, struct sl_error *error)
{
    if (client->is_ready)
        return SL_OK;
    struct sl_aws *aws = client->aws;
    const struct sl_profile *profile = client->is_plain ? NULL : sl_aws_profile(aws);
    if (profile && profile->problem)
        return sl_fail(error, SL_FATAL, "InvalidProfile", "%s", profile->problem);
    if (!client->is_plain && !client->region[0] && find_region(client, error) != SL_OK)
        return SL_FATAL;
    const char *problem = client->arn
                              ? sl_endpoint_arn_problem(sl_span_str(client->arn), client->service->signing,
                                                        sl_endpoint_region(aws->vars, profile))
                              : NULL;
    if (problem) /* the profile's Region is not known before */
        return sl_fail(error, SL_FATAL, "InvalidTarget", "%s", problem);
    const struct sl_endpoint_request request = {
        .service = client->service,
        .region = client->region,
        .configured = client->endpoint_url,
        .label = client->label,
        .account = client->account,
        .has_label_everywhere = client->has_label_everywhere,
        .vars = aws->vars,
        .profile = profile,
    };
    if (read_attempts(client, profile, error) != SL_OK ||
        sl_endpoint_resolve(&request, &client->endpoint, error) != SL_OK)
        return SL_FATAL;
    if (client->credentials && !client->credentials->region[0])
        snprintf(client->credentials->region, sizeof(client->credentials->region), "%s", client->region);
    if (!client->signer.sha)
        sl_sigv4_init(&client->signer, sl_aws_sha(aws));
    client->host = sl_aws_host(aws, sl_endpoint_host(&client->endpoint));
    client->pace.is_alone = !client->pace.begun && sl_endpoint_is_tls(&client->endpoint);
    client->is_ready = true;
    return SL_OK;
}

void sl_client_move(struct sl_client *client, struct sl_span region)
{
    snprintf(client->region, sizeof(client->region), "%.*s", SL_ARG(region));
    client->signer.day[0] = '\0'; /* the day's key is the region's */
    client->is_ready = false;
}

struct sl_code sl_client_judge(const struct sl_client *client, struct sl_span code, struct sl_span message,
                               int http_status)
{
    struct sl_code judged = sl_codes_find(client->service->id, code, message, http_status);
    char shown[16] =
        ""; /* an unknown code that may not be shown is logged as this, and named so by reject= */
    if (judged.kind == SL_CODE_UNKNOWN)
        snprintf(shown, sizeof(shown), "Http%d", http_status);
    for (size_t i = 0; i < client->n_rejects; i++)
        if (sl_span_eq(sl_codes_name(code), client->rejects[i]) || sl_span_is(client->rejects[i], shown))
            return (struct sl_code){"", SL_CODE_FINAL, SL_REJECT, judged.is_secret,
                                    "the target's reject= names this code"};
    return judged;
}

const char *sl_client_unknown_text(struct sl_arena *arena, const char *text, const char *code)
{
    return sl_arena_printf(
        arena,
        "%s; this code is unknown and nothing else succeeded here: repair the target, or if "
        "the record is to blame, add reject=%s to the target",
        text, code);
}

int64_t sl_client_now_s(const struct sl_client *client)
{
    return sl_aws_now_s(client->aws) + client->host->skew_s;
}

unsigned sl_client_attempts(const struct sl_client *client)
{
    return client->attempts ? client->attempts : client->service->attempts;
}

void sl_client_uuid(const struct sl_client *client, char out[37])
{
    struct sl_clock *clock = client->aws->clock;
    uint64_t a = clock->random(clock), b = clock->random(clock);
    a = (a & ~(uint64_t)0xF000) | 0x4000; /* version 4, and RFC 9562's variant */
    b = (b & ~((uint64_t)3 << 62)) | (uint64_t)2 << 62;
    for (size_t i = 0, n = 0; i < 36; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        uint64_t of = n < 16 ? a : b;
        out[i] = is_dash ? '-' : "0123456789abcdef"[of >> (60 - 4 * (n % 16)) & 15];
        n += !is_dash;
    }
    out[36] = '\0';
}
