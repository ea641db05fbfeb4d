/* Who signs: keys, where they come from, and when they are fetched anew.
 *
 * The SDKs' order: the environment; the profile's role, by another profile's keys or a source; web identity;
 * the profile's own keys; the container's endpoint; the instance's metadata (IMDSv2). A target's role is
 * assumed with what that gives. Keys that end are renewed 10 minutes before, tried from 15 minutes before on.
 * Nothing of them is ever part of a message. */
#ifndef SL_SINKS_AWS_CREDENTIALS_H
#define SL_SINKS_AWS_CREDENTIALS_H

#include "base/error.h"
#include "base/span.h"

struct sl_aws;

#define SL_ACCESS_KEY_BYTES 132 /* IAM's limit is 128 */
#define SL_SECRET_KEY_BYTES 132
#define SL_TOKEN_BYTES      8192 /* STS promises no limit; 2 to 4 KB are seen */

struct sl_keys {
    char access[SL_ACCESS_KEY_BYTES];
    char secret[SL_SECRET_KEY_BYTES];
    char token[SL_TOKEN_BYTES]; /* "" when there is none */
    int64_t expires_s;          /* 0: never */
    const char *origin;         /* "the environment", "the role of a profile": for messages; static */
};

struct sl_credentials {
    struct sl_credentials *next;
    char role[256]; /* to assume on top; "" for none */
    struct sl_keys keys;
    uint64_t serial; /* 0: no keys yet; another number whenever they change */
    bool is_spent;   /* the service said so */
    bool is_fixed;   /* never fetched */
    int64_t tried_s; /* when a renewal was last tried */
};

/* The process's credentials for this role ("" for none): one each, however many targets use it. */
struct sl_credentials *sl_credentials_for(struct sl_aws *aws, struct sl_span role);
void sl_credentials_destroy_all(struct sl_credentials *first);

/* Makes sure that `keys` can be used; fetches them when need be. SL_FATAL when there are none or a source
 * refuses them for good, SL_RETRY when a source did not answer. */
enum sl_status sl_credentials_get(struct sl_aws *aws, struct sl_credentials *credentials, int64_t deadline_ms,
                                  struct sl_error *error) SL_MUST_USE;

/* The service refused the keys of this serial as expired: the next get fetches. */
void sl_credentials_spent(struct sl_credentials *credentials, uint64_t serial);

/* Seconds since 1970 of "2026-11-20T21:04:00Z" (fractions and an offset of zero allowed); -1 when it is none.
 */
int64_t sl_credentials_time(struct sl_span text);

#endif
