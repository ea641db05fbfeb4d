/* Who signs: keys, where they come from, and when they are renewed.
 *
 * The SDKs' order: the environment; the profile's role, by another profile's keys or a source; web identity;
 * the profile's own keys; the container's endpoint; the instance's metadata (IMDSv2). A target's role is
 * assumed with those keys. Keys that expire are renewed: from 15 minutes before their end it is tried, and
 * from 10 minutes before a failure is logged. Keys that a source returns already expired are used all the
 * same, as our clock may be the wrong one: it is logged once, and the source is asked again after a minute.
 *
 * Nothing that a source answers is a record's fault: a failure is SL_RETRY or SL_FATAL. No part of a key or
 * token is ever in a message. */
#ifndef SL_AWS_CREDENTIALS_H
#define SL_AWS_CREDENTIALS_H

#include "aws/aws.h"
#include "aws/endpoint.h"

#define SL_ACCESS_KEY_BYTES 132 /* IAM's limit is 128 */
#define SL_SECRET_KEY_BYTES 132
#define SL_TOKEN_BYTES      8192 /* STS documents no limit; 2 to 4 KB are usual */

struct sl_keys {
    char access[SL_ACCESS_KEY_BYTES];
    char secret[SL_SECRET_KEY_BYTES];
    char token[SL_TOKEN_BYTES]; /* "" when there is none */
    int64_t expires_s;          /* by our clock; 0: never */
    const char *origin;         /* "the environment", "the role of a profile": for messages; static */
};

struct sl_credentials {
    struct sl_credentials *next;
    char role[256];               /* to assume with the process's keys; "" for none */
    char region[SL_REGION_BYTES]; /* of the first target that uses them: where STS is asked when no region is
                                     configured; "" until one is ready */
    struct sl_keys keys;
    struct sl_keys before; /* the ones that `keys` replaced: requests signed with them may be under way */
    uint64_t serial;       /* 0: no keys yet; changes whenever they change */
    bool is_spent;         /* the service said that they have expired */
    bool is_fixed;         /* never fetched */
    int64_t tried_s;       /* when a renewal was last tried */
    int64_t idle_s; /* when the source last returned keys that were expired, or the spent ones; 0: never */
    bool is_said;   /* that they came expired */
};

/* The process's credentials for this role ("" for none): all targets with the role share them. */
struct sl_credentials *sl_credentials_for(struct sl_aws *aws, struct sl_span role);

/* Makes sure that `keys` can be used, and fetches them if needed. Fails as sl_aws_keys_fn does, but never as
 * SL_REJECT. */
enum sl_status sl_credentials_get(struct sl_aws *aws, struct sl_credentials *credentials, int64_t deadline_ms,
                                  struct sl_error *error) SL_MUST_USE;

/* The service refused the keys of this serial as expired: the next get fetches. */
void sl_credentials_spent(struct sl_credentials *credentials, uint64_t serial);

/* Seconds since 1970 of "2026-11-20T21:04:00Z" (fractions and an offset of zero allowed); -1 when it is
 * not such a time. */
int64_t sl_credentials_time(struct sl_span text);

#endif
