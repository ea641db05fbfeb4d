#include "sinks/aws/credentials.h"

#include "sinks/aws/aws.h"
#include "sinks/aws/sources.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* botocore's margins: tried from 15 minutes before the end, insisted on from 10. */
#define TRY_BEFORE_S    (15 * 60)
#define INSIST_BEFORE_S (10 * 60)
#define TRY_AGAIN_S     60

struct sl_credentials *sl_credentials_for(struct sl_aws *aws, struct sl_span role)
{
    struct sl_credentials *c = aws->credentials;
    while (c && !sl_span_is(role, c->role))
        c = c->next;
    if (c)
        return c;
    c = calloc(1, sizeof(*c));
    if (!c)
        sl_die("out of memory: credentials");
    snprintf(c->role, sizeof(c->role), "%.*s", SL_ARG(role));
    c->next = aws->credentials;
    aws->credentials = c;
    return c;
}

void sl_credentials_destroy_all(struct sl_credentials *first)
{
    for (struct sl_credentials *c = first, *next; c; c = next) {
        next = c->next;
        OPENSSL_cleanse(&c->keys, sizeof(c->keys));
        free(c);
    }
}

static bool is_same(const struct sl_keys *a, const struct sl_keys *b)
{
    return strcmp(a->access, b->access) == 0 && strcmp(a->secret, b->secret) == 0 &&
           strcmp(a->token, b->token) == 0;
}

static enum sl_status fetch(struct sl_aws *aws, struct sl_credentials *c, int64_t deadline_ms,
                            struct sl_error *error)
{
    struct sl_keys *keys = calloc(1, sizeof(*keys));
    if (!keys)
        sl_die("out of memory: credentials");
    c->tried_s = sl_aws_now_s(aws);
    enum sl_status status = c->role[0] ? sl_sources_role(aws, c->role, deadline_ms, keys, error)
                                       : sl_sources_chain(aws, deadline_ms, keys, error);
    if (status == SL_OK) {
        if (!c->serial || !is_same(keys, &c->keys))
            c->serial = ++aws->serial;
        c->keys = *keys;
        c->is_spent = false;
    }
    OPENSSL_cleanse(keys, sizeof(*keys));
    free(keys);
    return status;
}

enum sl_status sl_credentials_get(struct sl_aws *aws, struct sl_credentials *c, int64_t deadline_ms,
                                  struct sl_error *error)
{
    if (c->is_fixed)
        return SL_OK;
    if (!c->serial || c->is_spent)
        return fetch(aws, c, deadline_ms, error);
    int64_t now = sl_aws_now_s(aws), left = c->keys.expires_s - now;
    if (!c->keys.expires_s || left > TRY_BEFORE_S)
        return SL_OK;
    if (left > 0 && now - c->tried_s < TRY_AGAIN_S)
        return SL_OK;
    struct sl_error why = {.status = SL_OK};
    if (fetch(aws, c, deadline_ms, &why) == SL_OK)
        return SL_OK;
    if (left > 0) { /* they still do */
        if (left <= INSIST_BEFORE_S && aws->sinks->log)
            sl_log(aws->sinks->log, SL_WARN, "credentials from %s end in %lld s and could not be renewed: %s",
                   c->keys.origin, (long long)left, why.text);
        return SL_OK;
    }
    return sl_fail(error, why.status, why.code, "%s", why.text);
}

void sl_credentials_spent(struct sl_credentials *c, uint64_t serial)
{
    if (c->serial == serial)
        c->is_spent = true;
}

int64_t sl_credentials_time(struct sl_span text)
{
    char copy[40];
    struct tm tm = {.tm_year = 0};
    if (!text.len || text.len >= sizeof(copy))
        return -1;
    snprintf(copy, sizeof(copy), "%.*s", SL_ARG(text));
    const char *rest = strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!rest)
        return -1;
    if (*rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    if (strcmp(rest, "Z") != 0 && strcmp(rest, "+00:00") != 0 && strcmp(rest, "+0000") != 0)
        return -1;
    return (int64_t)timegm(&tm);
}
