/* What AWS's error codes mean for the next attempt: one table, each group with its source. */
#ifndef SL_SINKS_AWS_CODES_H
#define SL_SINKS_AWS_CODES_H

#include "base/span.h"

enum sl_code_kind {
    SL_CODE_FINAL,     /* trying again changes nothing */
    SL_CODE_TRANSIENT, /* again, after a short while */
    SL_CODE_THROTTLE,  /* again, after a longer one */
    SL_CODE_EXPIRED,   /* again once with fresh credentials */
    SL_CODE_SKEW,      /* again once with the right time, when ours was wrong */
};

struct sl_code {
    const char *code;
    enum sl_code_kind kind;
    enum sl_status status; /* when it stays: after the last attempt */
    bool is_secret;        /* its message may quote what was signed: keys, tokens; it is never shown */
    const char *hint;      /* what to do; NULL: nothing to add to the message */
};

/* `service` is the service's id ("S3"). A code of no row is judged by the HTTP status: 5xx, 429 and 408 are
 * RETRY; 401, 403, 404, 405, 501, 505 and 3xx are FATAL; else REJECT. */
struct sl_code sl_codes_find(const char *service, struct sl_span code, struct sl_span message,
                             int http_status);

#endif
