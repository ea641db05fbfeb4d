#include "sinks/aws/client.h"

#include <stdio.h>

static enum sl_status bad_param(const struct sl_url *url, const char *name, struct sl_span value,
                                const char *wanted, struct sl_error *error)
{
    return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: %s=%.*s is not %s", SL_ARG(url->whole),
                   name, SL_ARG(value), wanted);
}

static enum sl_status read_in_flight(struct sl_client *client, struct sl_url *url, struct sl_error *error)
{
    struct sl_span text = sl_url_param(url, "in_flight");
    size_t n = 0;
    for (size_t i = 0; i < text.len && n <= SL_CLIENT_IN_FLIGHT_MAX; i++)
        n = text.ptr[i] >= '0' && text.ptr[i] <= '9' ? n * 10 + (size_t)(text.ptr[i] - '0') : SIZE_MAX / 2;
    client->in_flight = text.ptr ? n : SL_CLIENT_IN_FLIGHT;
    if (client->in_flight < 1 || client->in_flight > SL_CLIENT_IN_FLIGHT_MAX)
        return bad_param(url, "in_flight", text, "a number from 1 to 64", error);
    return SL_OK;
}

static enum sl_status read_region(struct sl_client *client, struct sl_url *url, struct sl_span region,
                                  struct sl_error *error)
{
    struct sl_span param = sl_url_param(url, "region");
    if (region.len && param.len && !sl_span_eq(region, param))
        return bad_param(url, "region", param, "the region of its ARN", error);
    if (param.ptr)
        region = param;
    if (region.ptr && !sl_endpoint_is_region(region))
        return bad_param(url, "region", region, "an AWS region like us-west-2", error);
    snprintf(client->region, sizeof(client->region), "%.*s", SL_ARG(region));
    return SL_OK;
}

/* arn:aws:iam::123456789012:role/path/name */
static bool is_role(struct sl_span arn)
{
    return sl_span_starts(arn, SL_LIT("arn:")) && arn.len < 240 && memmem(arn.ptr, arn.len, ":role/", 6);
}

enum sl_status sl_client_init(struct sl_client *client, struct sl_sinks *sinks,
                              const struct sl_service *service, struct sl_url *url, struct sl_span region,
                              struct sl_error *error)
{
    struct sl_aws *aws = sl_aws_of(sinks);
    *client = (struct sl_client){.aws = aws, .service = service};
    sl_retry_bucket_init(&client->bucket);
    client->name = sl_arena_printf(aws->lasting, "%.*s:%s%.*s", SL_ARG(url->scheme),
                                   url->has_slashes ? "//" : "", SL_ARG(url->rest));
    if (read_in_flight(client, url, error) != SL_OK || read_region(client, url, region, error) != SL_OK)
        return SL_FATAL;
    struct sl_span endpoint = sl_url_param(url, "endpoint"), role = sl_url_param(url, "role");
    if (role.ptr && !is_role(role))
        return bad_param(url, "role", role, "a role's ARN (arn:aws:iam::123456789012:role/name)", error);
    if (endpoint.ptr) {
        client->endpoint_url = sl_span(sl_arena_copy(aws->lasting, endpoint), endpoint.len);
        if (sl_endpoint_resolve(service, "", endpoint, sl_span(NULL, 0), sinks->vars, NULL, &client->endpoint,
                                error) != SL_OK)
            return SL_FATAL;
    }
    client->credentials = sl_credentials_for(aws, role);
    return SL_OK;
}

void sl_client_clean_up(struct sl_client *client)
{
    sl_sigv4_clean_up(&client->signer);
}

static enum sl_status find_region(struct sl_client *client, struct sl_error *error)
{
    const struct sl_vars *vars = client->aws->sinks->vars;
    struct sl_span region = sl_endpoint_region(vars, NULL);
    if (!region.len)
        region = sl_endpoint_region(vars, sl_aws_profile(client->aws));
    if (!sl_endpoint_is_region(region))
        return sl_fail(error, SL_FATAL, "NoRegion",
                       "%s: no region%s%.*s; set AWS_REGION or the target's region=", client->name,
                       region.len ? ": this is none: " : "", SL_ARG(region));
    snprintf(client->region, sizeof(client->region), "%.*s", SL_ARG(region));
    return SL_OK;
}

enum sl_status sl_client_ready(struct sl_client *client, struct sl_error *error)
{
    if (client->is_ready)
        return SL_OK;
    struct sl_aws *aws = client->aws;
    if (!client->region[0] && find_region(client, error) != SL_OK)
        return SL_FATAL;
    if (sl_endpoint_resolve(client->service, client->region, client->endpoint_url, client->label,
                            aws->sinks->vars, sl_aws_profile(aws), &client->endpoint, error) != SL_OK) {
        sl_error_context(error, "%s", client->name);
        return SL_FATAL;
    }
    if (!client->signer.sha)
        sl_sigv4_init(&client->signer, sl_aws_sha(aws));
    client->is_ready = true;
    return SL_OK;
}

void sl_client_move(struct sl_client *client, struct sl_span region)
{
    snprintf(client->region, sizeof(client->region), "%.*s", SL_ARG(region));
    client->signer.day[0] = '\0'; /* the day's key is the region's */
    client->is_ready = false;
}

unsigned sl_client_attempts(const struct sl_client *client)
{
    const char *text = sl_vars_or(client->aws->sinks->vars, "AWS_MAX_ATTEMPTS", "");
    unsigned n = 0;
    for (; *text >= '0' && *text <= '9' && n < 100; text++)
        n = n * 10 + (unsigned)(*text - '0');
    return n && !*text ? n : client->service->attempts;
}

void sl_client_uuid(const struct sl_client *client, char out[37])
{
    struct sl_clock *clock = client->aws->sinks->clock;
    uint64_t a = clock->random(clock), b = clock->random(clock);
    snprintf(out, 37, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32), (unsigned)(a >> 16) & 0xFFFFu,
             (unsigned)a & 0xFFFu, 0x8000u | ((unsigned)(b >> 48) & 0x3FFFu),
             (unsigned long long)b & 0xFFFFFFFFFFFFull);
}
