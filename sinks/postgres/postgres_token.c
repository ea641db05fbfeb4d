/* Who asks, for RDS and Aurora with IAM: the password is the address of a GET that is signed and never sent
 * ("Connecting to your DB instance using IAM authentication"). It is good for 15 minutes; a connection that
 * was made with it lives on. */
#include "aws/credentials.h"
#include "aws/sigv4.h"
#include "net/uri.h"
#include "sinks/postgres/postgres_private.h"

#define EXPIRES "900"

static void add_param(struct sl_buffer *query, const char *name, const char *value)
{
    sl_buffer_printf(query, "%s%s=", query->len ? "&" : "", name);
    sl_uri_encode(query, sl_span_str(value), '\0');
}

/* SHA-256 of nothing: the GET has no body. */
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void sign(struct sl_postgres *p, const struct sl_keys *keys, struct sl_buffer *out)
{
    const struct sl_postgres_target *t = &p->target;
    struct sl_aws *aws = sl_sinks_aws(p->sinks);
    char date[SL_SIGV4_DATE_BYTES], signature[SL_SHA256_HEX];
    sl_sigv4_date(sl_aws_now_s(aws), date);
    struct sl_buffer query, scope;
    sl_buffer_init(&query, 64 * 1024);
    query.is_secret = true;
    sl_buffer_init(&scope, 1024);
    sl_buffer_printf(&scope, "%s/%.8s/%s/rds-db/aws4_request%c", keys->access, date, t->region, '\0');
    add_param(&query, "Action", "connect");
    add_param(&query, "DBUser", t->user);
    add_param(&query, "X-Amz-Algorithm", "AWS4-HMAC-SHA256");
    add_param(&query, "X-Amz-Credential", scope.ptr);
    add_param(&query, "X-Amz-Date", date);
    add_param(&query, "X-Amz-Expires", EXPIRES);
    if (*keys->token)
        add_param(&query, "X-Amz-Security-Token", keys->token);
    add_param(&query, "X-Amz-SignedHeaders", "host");

    const char *host = sl_arena_printf(p->scratch, "%s:%s", t->host, t->port);
    const struct sl_sigv4_field field = {SL_LIT("host"), sl_span_str(host)};
    const struct sl_sigv4_request request = {.method = SL_LIT("GET"),
                                             .path = SL_LIT("/"),
                                             .query = sl_buffer_span(&query),
                                             .fields = &field,
                                             .n_fields = 1,
                                             .payload_hash = EMPTY_SHA256};
    const struct sl_sigv4_identity who = {keys->access, keys->secret, t->region, "rds-db", 0};
    struct sl_sigv4 signer;
    sl_sigv4_init(&signer, sl_aws_sha(aws));
    sl_sigv4_canonical(&signer, &request);
    sl_sigv4_to_sign(&signer, &who, date);
    sl_sigv4_signature(&signer, &who, date, signature);
    sl_sigv4_clean_up(&signer);
    sl_buffer_printf(out, "%s/?%.*s&X-Amz-Signature=%s%c", host, SL_ARG(sl_buffer_span(&query)), signature,
                     '\0');
    sl_buffer_clean_up(&query);
    sl_buffer_clean_up(&scope);
}

enum sl_status sl_postgres_token(struct sl_postgres *p, struct sl_buffer *out, struct sl_error *error)
{
    struct sl_aws *aws = sl_sinks_aws(p->sinks);
    struct sl_credentials *credentials = sl_credentials_for(aws, sl_span_str(p->target.role));
    if (sl_credentials_get(aws, credentials, p->deadline_ms, error) != SL_OK) {
        sl_error_context(error, "%s", p->target.shown);
        return error->status;
    }
    sign(p, &credentials->keys, out);
    return SL_OK;
}
