/* A service as one target sees it: region, endpoint, credentials, signer and the retry budget. */
#ifndef SL_SINKS_AWS_CLIENT_H
#define SL_SINKS_AWS_CLIENT_H

#include "sinks/aws/aws.h"
#include "sinks/aws/endpoint.h"
#include "sinks/aws/retry.h"
#include "sinks/aws/sigv4.h"
#include "sinks/url.h"

struct sl_client {
    struct sl_aws *aws;
    const struct sl_service *service;
    const char *name;                   /* of the target, for messages: "dynamodb://totals" */
    char region[SL_REGION_BYTES];       /* "" until it is found out */
    struct sl_span endpoint_url;        /* the target's own, absent mostly */
    struct sl_span label;               /* before the host name: S3's bucket */
    struct sl_credentials *credentials; /* NULL: requests go unsigned */
    size_t in_flight;
    struct sl_endpoint endpoint;
    bool is_ready; /* region, endpoint and signer are there */
    struct sl_sigv4 signer;
    struct sl_retry_bucket bucket;
};

#define SL_CLIENT_IN_FLIGHT     16
#define SL_CLIENT_IN_FLIGHT_MAX 64

/* The parameters that every AWS target takes, for sl_url_done's list. */
#define SL_CLIENT_PARAMS "region, endpoint, role, in_flight"

/* Reads those parameters. What it keeps lives in `aws->lasting`. `region`: of an ARN, absent otherwise. */
enum sl_status sl_client_init(struct sl_client *client, struct sl_sinks *sinks,
                              const struct sl_service *service, struct sl_url *url, struct sl_span region,
                              struct sl_error *error) SL_MUST_USE;
void sl_client_clean_up(struct sl_client *client);

/* Finds out region and endpoint; the run does it by itself. SL_FATAL when there are none. */
enum sl_status sl_client_ready(struct sl_client *client, struct sl_error *error) SL_MUST_USE;

/* Another region from now on (a bucket told where it lives). */
void sl_client_move(struct sl_client *client, struct sl_span region);

/* The most attempts that a request has: the service's, or AWS_MAX_ATTEMPTS. */
unsigned sl_client_attempts(const struct sl_client *client);

/* A random UUID, version 4: request tokens and ids. */
void sl_client_uuid(const struct sl_client *client, char out[37]);

#endif
