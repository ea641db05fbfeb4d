/* What AWS's error codes mean for the next attempt, and whose fault they are: one table, each group with its
 * source.
 *
 * A code is known as the environment's (SL_FATAL), as a record's (SL_REJECT), as one that passes (SL_RETRY),
 * or not at all: then contrast decides (aws/contrast.h). */
#ifndef SL_AWS_CODES_H
#define SL_AWS_CODES_H

#include "base/span.h"

enum sl_code_kind {
    SL_CODE_FINAL,     /* a retry changes nothing */
    SL_CODE_TRANSIENT, /* retry after a short wait */
    SL_CODE_THROTTLE,  /* retry after a longer wait */
    SL_CODE_EXPIRED,   /* retry once with new credentials */
    SL_CODE_SKEW,      /* retry once with the right time, if our clock was wrong */
    SL_CODE_UNKNOWN,   /* the code does not say whose fault it is: contrast decides */
};

struct sl_code {
    const char *code;
    enum sl_code_kind kind;
    enum sl_status status; /* of the operation, after the last attempt; SL_CODE_UNKNOWN: without contrast */
    bool is_secret;        /* the message may quote keys or tokens and is never shown */
    const char *hint;      /* what to do; NULL: the message is enough */
};

/* What a refusal means. `service` is the service's id ("S3"). Always an answer: a code that is not in the
 * table is judged by the HTTP status. 429, 408 and 5xx are SL_RETRY, all below 400 are SL_FATAL, and another
 * 4xx is SL_CODE_UNKNOWN. A 4xx whose code is "Http" and its number is not in the shape of the service's
 * errors (a proxy's page): it is tried again, and SL_FATAL after the last attempt. */
struct sl_code sl_codes_find(const char *service, struct sl_span code, struct sl_span message,
                             int http_status);

/* The code without what old spellings put in front of it ("AWS.SimpleQueueService."): as the table and
 * reject= have it. */
struct sl_span sl_codes_name(struct sl_span code);

/* Whether the table knows the code as one that passes: throttling, expired credentials, a busy service. */
bool sl_codes_passes(struct sl_span code);

#endif
