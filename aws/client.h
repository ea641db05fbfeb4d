/* A service as one target sees it: region, endpoint, credentials, signer, the retry budget, and what it takes
 * for a record's fault. */
#ifndef SL_AWS_CLIENT_H
#define SL_AWS_CLIENT_H

#include "aws/codes.h"
#include "aws/contrast.h"
#include "aws/credentials.h"
#include "aws/endpoint.h"
#include "aws/sigv4.h"
#include "base/url.h"
#include "net/pace.h"
#include "net/retry.h"

/* Codes that reject= may name. */
#define SL_CLIENT_REJECTS 8

struct sl_client {
    struct sl_aws *aws;
    const struct sl_service *service;
    const char *name;             /* of the target, for messages: "dynamodb://totals" */
    char region[SL_REGION_BYTES]; /* "" until it is found */
    struct sl_span endpoint_url;  /* the target's own, mostly absent */
    bool is_plain;                /* no service of AWS's: it has no region */
    const char *login;            /* the value of the header Authorization; NULL: none, or signed */
    const char *password;         /* in `login`; NULL: none */
    struct sl_span label;         /* in front of the host name: S3's bucket */
    struct sl_span account;       /* of a stream's ARN; see struct sl_endpoint_request */
    bool has_label_everywhere;
    const char *arn;                    /* the target's, if it has no region= beside it; NULL: it has none */
    const char *region_hint;            /* where none is configured; NULL: there is none */
    unsigned attempts;                  /* of a request; 0: not known yet */
    struct sl_credentials *credentials; /* NULL: requests go unsigned */
    struct sl_pace pace;                /* its cap is in_flight= */
    struct sl_endpoint endpoint;
    struct sl_aws_host *host; /* of the endpoint: what is known of its clock */
    bool is_ready;            /* region, endpoint, host and signer are set */
    struct sl_sigv4 signer;
    struct sl_retry_bucket bucket;
    struct sl_contrast contrast;
    struct sl_span rejects[SL_CLIENT_REJECTS]; /* codes of reject= */
    size_t n_rejects;
};

/* The parameters that every AWS target takes, for sl_url_done's list. */
#define SL_CLIENT_PARAMS "region, endpoint, role, in_flight, reject"

struct sl_client_options {
    const struct sl_service *service;
    struct sl_url *url;    /* the target: the parameters above are read from it */
    struct sl_span region; /* the region in the target's ARN or host, absent when it has none */

    /* Of a target whose URL names its server. */
    struct sl_span address; /* "https://host:port"; absent: endpoint= and AWS's own are looked for */
    bool is_plain;          /* neither region nor credentials; the parameters are in_flight and reject */
    const char *login, *password; /* see struct sl_client; in memory that lives as long */
};

/* The parameters of a plain target. */
#define SL_CLIENT_PLAIN_PARAMS "in_flight, reject"

/* What the client keeps lives in `aws->lasting`. SL_FATAL when a parameter is wrong. */
enum sl_status sl_client_init(struct sl_client *client, struct sl_aws *aws,
                              const struct sl_client_options *options, struct sl_error *error) SL_MUST_USE;
void sl_client_clean_up(struct sl_client *client);

/* Finds region and endpoint. sl_job_run calls it. SL_FATAL when one cannot be found; the error does not name
 * the client. */
enum sl_status sl_client_ready(struct sl_client *client, struct sl_error *error) SL_MUST_USE;

/* Uses another region from now on (S3 answered where the bucket is). */
void sl_client_move(struct sl_client *client, struct sl_span region);

/* What a refusal of this target means: a record's fault when the target's reject= names the code, else what
 * the table says (aws/codes.h). */
struct sl_code sl_client_judge(const struct sl_client *client, struct sl_span code, struct sl_span message,
                               int http_status);

/* The text of a refusal that nothing vouches for (aws/contrast.h): `text`, and what an operator can do. */
const char *sl_client_unknown_text(struct sl_arena *arena, const char *text, const char *code);

/* Seconds since 1970 by the service's clock. */
int64_t sl_client_now_s(const struct sl_client *client);

/* How many attempts a request has: AWS_MAX_ATTEMPTS, the profile's max_attempts, or the service's number. */
unsigned sl_client_attempts(const struct sl_client *client);

/* A random UUID, version 4: request tokens and ids. */
void sl_client_uuid(const struct sl_client *client, char out[37]);

#endif
