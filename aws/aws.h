/* What all AWS clients of a process share: connections, hashing, profiles, credentials, hosts' clocks.
 *
 * The first AWS target creates it; each part is created when it is first used. */
#ifndef SL_AWS_AWS_H
#define SL_AWS_AWS_H

#include "aws/profile.h"
#include "base/sha256.h"
#include "base/log.h"
#include "net/http.h"

struct sl_aws;
struct sl_keys;
struct sl_credentials;
struct sl_job_slot;
struct sl_secret;

/* Finds the process's keys, or those of a role (an ARN, "" for none), and puts them into `out`. SL_FATAL when
 * there are none or a source refuses them for good, SL_RETRY when a source did not answer. */
typedef enum sl_status (*sl_aws_keys_fn)(struct sl_aws *aws, const char *role, int64_t deadline_ms,
                                         struct sl_keys *out, struct sl_error *error);

/* A host whose clock is known: one that is wrong says nothing of the others, nor of ours. */
struct sl_aws_host {
    struct sl_aws_host *next;
    const char *name;
    int64_t skew_s; /* its clock minus ours; added when a request to it is dated */
};

/* X-Ray's header as Lambda gives it has some 100 bytes, with "Lineage=" some 150. A longer one is not sent: a
 * part of it would name another trace. */
#define SL_AWS_TRACE_BYTES 1024

struct sl_aws {
    struct sl_clock *clock;
    struct sl_log *log; /* NULL: nothing is logged */
    const struct sl_vars *vars;
    struct sl_http *http;
    struct sl_sha256 sha;
    struct sl_profile profile;
    bool has_sha, has_profile;
    bool has_tls;    /* a target needs TLS, as far as can be said before anything is read */
    uint64_t serial; /* of the credentials obtained last */
    struct sl_aws_host *hosts;
    struct sl_credentials *credentials;
    struct sl_job_slot *spare_slots; /* see job.c */
    sl_aws_keys_fn find_keys;
    struct sl_secret *secrets;         /* those that were read: aws/secrets.h */
    int64_t secrets_ms;                /* when; on the clock's steady time */
    bool is_login_refused;             /* a target did not accept who we are, since they were read */
    char trace_id[SL_AWS_TRACE_BYTES]; /* as it is sent; "": none */
    struct sl_arena *lasting;          /* as long as the process */
    struct sl_arena *scratch;          /* of one apply, which resets it */
};

/* Borrows all that it is given. `log` may be NULL. `find_keys` is sl_sources_find. */
struct sl_aws *sl_aws_new(struct sl_clock *clock, struct sl_log *log, const struct sl_vars *vars,
                          sl_aws_keys_fn find_keys);
/* Close everything that uses it first. NULL is fine. */
void sl_aws_destroy(struct sl_aws *aws);

/* Signed requests carry it from now on, in the header X-Amzn-Trace-Id, as those of AWS's SDKs do: not signed,
 * and percent-encoded but for its own punctuation. NULL and "": none. */
void sl_aws_trace(struct sl_aws *aws, const char *trace_id);

/* A target with a login of its own answered so: 401 and 403 say that its secrets may have changed. */
static inline void sl_aws_saw_refusal(struct sl_aws *aws, int http_status)
{
    aws->is_login_refused = aws->is_login_refused || http_status == 401 || http_status == 403;
}

struct sl_http *sl_aws_http(struct sl_aws *aws);

/* Reads the TLS roots now if a target needs TLS. */
void sl_aws_prepare(struct sl_aws *aws);

struct sl_sha256 *sl_aws_sha(struct sl_aws *aws);
const struct sl_profile *sl_aws_profile(struct sl_aws *aws);

/* What is known of the host's clock: the same for each client of the host, and as long as the process. */
struct sl_aws_host *sl_aws_host(struct sl_aws *aws, struct sl_span name);

/* Seconds since 1970 by our clock. */
int64_t sl_aws_now_s(const struct sl_aws *aws);

int64_t sl_aws_now_ms(const struct sl_aws *aws);

#endif
