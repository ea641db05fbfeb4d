/* Requests to a service: signed, sent several at a time, tried again as the rules say, and judged.
 *
 * A job is one request with its retries. sl_job_run carries out many, with at most the client's `in_flight`
 * on the wire, and ends when each has its outcome or the deadline is there. The engine knows transport,
 * throttling, expired credentials, skew and checksums; what an answer means is asked of the job's kind. A job
 * that ends in a way that all others would end in too (no permission, no connection) keeps those not begun
 * from being sent. */
#ifndef SL_SINKS_AWS_JOB_H
#define SL_SINKS_AWS_JOB_H

#include "sinks/aws/answer.h"
#include "sinks/aws/client.h"

enum sl_job_next {
    SL_JOB_DONE,      /* the request did what it should; or its kind has seen to the results itself */
    SL_JOB_JUDGE,     /* not understood here: let the table of codes decide */
    SL_JOB_BROKEN,    /* the answer is no answer: again after a short wait */
    SL_JOB_AGAIN,     /* what is left failed for now, as the kind says in code and text: a short wait */
    SL_JOB_THROTTLED, /* likewise, a longer wait */
    SL_JOB_AT_ONCE,   /* again without a wait and without counting: something was learned */
};

struct sl_job;
struct sl_job_kind {
    /* A 2xx answer in job->answer. NULL: SL_JOB_DONE. */
    enum sl_job_next (*answered)(struct sl_job *job);
    /* Any other. NULL: SL_JOB_JUDGE. */
    enum sl_job_next (*refused)(struct sl_job *job, const struct sl_answer_error *error);
};

enum sl_job_state { SL_JOB_FRESH, SL_JOB_WAITING, SL_JOB_FLYING, SL_JOB_OVER };

/* Zeroed but for what is set here. */
struct sl_job {
    const struct sl_job_kind *kind;
    void *context;                       /* the kind's */
    const char *operation;               /* "PutItem": X-Amz-Target's second half, and for messages */
    const char *method;                  /* NULL: POST */
    const char *path;                    /* encoded, behind the endpoint's own; NULL: "/" */
    const struct sl_sigv4_field *fields; /* more header fields, names in lower case */
    size_t n_fields;
    const struct sl_span *parts; /* the body; a kind that says again may put another there */
    size_t n_parts;

    /* In a kind's calls. */
    const struct sl_http_exchange *answer;
    struct sl_client *client;
    const struct sl_call *call;
    bool
        progressed; /* set by a kind: part of it was taken, so that this round does not count as an attempt */

    /* The outcome. `code` and `text` are in the call's arena. */
    enum sl_status status;
    bool not_sent;
    const char *code, *text;

    /* The engine's own. */
    enum sl_job_state state;
    unsigned attempts; /* that were counted */
    unsigned sends;
    bool renewed, corrected; /* what happens once a job at most */
    unsigned hurried;
    int last_cost;
    int64_t due_ms;
    uint64_t serial; /* of the credentials that it was signed with */
    int64_t skew_s;  /* that it was dated with */
    char invocation[37];
};

void sl_job_run(struct sl_client *client, struct sl_job *jobs, size_t n, const struct sl_call *call);

/* Puts the job's outcome into a result. */
void sl_job_result(const struct sl_job *job, struct sl_result *result);

void sl_job_drop_slots(struct sl_aws *aws);

#endif
