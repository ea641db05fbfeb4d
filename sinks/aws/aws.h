/* What all AWS sinks of a process share: connections, hashing, profiles, credentials, the learned clock skew.
 *
 * Made empty with the first target; each part comes into being when it is first used. */
#ifndef SL_SINKS_AWS_AWS_H
#define SL_SINKS_AWS_AWS_H

#include "sinks/aws/credentials.h"
#include "sinks/aws/http.h"
#include "sinks/aws/profile.h"
#include "sinks/aws/sha256.h"
#include "sinks/target.h"

struct sl_aws {
    struct sl_sinks *sinks; /* clock, log (may be NULL), vars */
    struct sl_http *http;
    struct sl_sha256 sha;
    struct sl_profile profile;
    bool has_sha, has_profile;
    int64_t skew_s;  /* their time less ours: added when a request is dated */
    uint64_t serial; /* of the credentials obtained last */
    struct sl_credentials *credentials;
    struct sl_slot *spare_slots; /* see job.c */
    struct sl_arena *lasting;    /* as long as the process */
    struct sl_arena *scratch;    /* of one apply: sl_aws_begin, sl_aws_end */
};

/* sinks->aws, made when it is not there. */
struct sl_aws *sl_aws_of(struct sl_sinks *sinks);

struct sl_http *sl_aws_http(struct sl_aws *aws);
struct sl_sha256 *sl_aws_sha(struct sl_aws *aws);
const struct sl_profile *sl_aws_profile(struct sl_aws *aws);

/* Seconds since 1970 by their clock. */
int64_t sl_aws_now_s(const struct sl_aws *aws);

int64_t sl_aws_now_ms(const struct sl_aws *aws);

#endif
