/* Keeps keys and renews them in time; where they come from is aws->find_keys. */
#include "aws/credentials.h"

#include "base/time.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* botocore's margins: a renewal is tried from 15 minutes before the end on, and has to succeed from 10 on. */
#define TRY_BEFORE_S    (15 * 60)
#define INSIST_BEFORE_S (10 * 60)
#define TRY_AGAIN_S     60 /* also of a source whose keys are of no use */

static void forget(void *arg)
{
    struct sl_credentials *c = arg;
    OPENSSL_cleanse(&c->keys, sizeof(c->keys));
    OPENSSL_cleanse(&c->before, sizeof(c->before));
}

struct sl_credentials *sl_credentials_for(struct sl_aws *aws, struct sl_span role)
{
    struct sl_credentials *c = aws->credentials;
    while (c && !sl_span_is(role, c->role))
        c = c->next;
    if (c)
        return c;
    c = sl_arena_zalloc(aws->lasting, sizeof(*c));
    sl_arena_defer(aws->lasting, forget, c);
    snprintf(c->role, sizeof(c->role), "%.*s", SL_ARG(role));
    c->next = aws->credentials;
    aws->credentials = c;
    return c;
}

static bool is_same(const struct sl_keys *a, const struct sl_keys *b)
{
    return strcmp(a->access, b->access) == 0 && strcmp(a->secret, b->secret) == 0 &&
           strcmp(a->token, b->token) == 0;
}

static void say_expired(struct sl_aws *aws, struct sl_credentials *c, int64_t ago_s)
{
    if (!c->is_said && aws->log)
        sl_log(
            aws->log, SL_WARN,
            "the credentials from %s had expired %lld s before they came; they are used, and fetched again "
            "every %d s; check their source and this machine's clock",
            c->keys.origin, (long long)ago_s, TRY_AGAIN_S);
    c->is_said = true;
}

static void take(struct sl_aws *aws, struct sl_credentials *c, const struct sl_keys *keys)
{
    bool is_new = !c->serial || !is_same(keys, &c->keys);
    bool is_expired = keys->expires_s && keys->expires_s <= c->tried_s;
    c->idle_s = is_expired || (c->is_spent && !is_new) ? c->tried_s : 0;
    if (is_new) {
        c->serial = ++aws->serial;
        c->before = c->keys;
    }
    c->keys = *keys;
    c->is_spent = false;
    if (is_expired)
        say_expired(aws, c, c->tried_s - keys->expires_s);
    c->is_said = c->is_said && is_expired;
}

static enum sl_status fetch(struct sl_aws *aws, struct sl_credentials *c, int64_t deadline_ms,
                            struct sl_error *error)
{
    struct sl_keys *keys = calloc(1, sizeof(*keys));
    if (!keys)
        sl_die("out of memory: credentials");
    c->tried_s = sl_aws_now_s(aws);
    enum sl_status status = aws->find_keys(aws, c->role, deadline_ms, keys, error);
    if (status == SL_OK)
        take(aws, c, keys);
    else if (status == SL_REJECT)
        status = error->status = SL_FATAL;
    OPENSSL_cleanse(keys, sizeof(*keys));
    free(keys);
    return status;
}

enum sl_status sl_credentials_get(struct sl_aws *aws, struct sl_credentials *c, int64_t deadline_ms,
                                  struct sl_error *error)
{
    int64_t now = sl_aws_now_s(aws), left = c->keys.expires_s - now;
    if (c->is_fixed || (c->idle_s && now - c->idle_s < TRY_AGAIN_S))
        return SL_OK;
    if (!c->serial || c->is_spent)
        return fetch(aws, c, deadline_ms, error);
    if (!c->keys.expires_s || left > TRY_BEFORE_S)
        return SL_OK;
    if (left > 0 && now - c->tried_s < TRY_AGAIN_S)
        return SL_OK;
    struct sl_error why = SL_NO_ERROR;
    if (fetch(aws, c, deadline_ms, &why) == SL_OK)
        return SL_OK;
    if (left > 0) { /* they can still be used */
        if (left <= INSIST_BEFORE_S && aws->log)
            sl_log(aws->log, SL_WARN, "the credentials from %s expire in %lld s and could not be renewed: %s",
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
    int64_t ns, step_ns;
    bool has_zone = sl_span_ends(text, SL_LIT("Z")) || sl_span_ends(text, SL_LIT("+00:00"));
    if (sl_span_ends(text, SL_LIT("+0000"))) {
        text.len -= 5;
        has_zone = true;
    }
    return has_zone && sl_time_parse(text, &ns, &step_ns) ? ns / 1000000000 : -1;
}
