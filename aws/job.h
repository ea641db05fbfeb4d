/* Requests to a service: signed, several at a time, sent again as the rules say, and judged.
 *
 * A job is one request with its retries. sl_job_run carries out many, with as many on the wire as the
 * client's pace lets through (net/pace.h), and returns when each job has its outcome.
 *
 * What it promises:
 * - A job is SL_OK only when a whole answer with the operation's status (200) came, its CRC-32 (if sent) is
 *   right, and the job's kind found in it what the operation answers; or when the kind said SL_JOB_DONE to a
 *   refusal. An answer with another 2xx is not understood.
 * - Every other job has a status, a code and a text. The text names target, operation and reason, and never
 *   holds keys, tokens or values of the request.
 * - `not_sent` is true only when no byte of any attempt left this process.
 * - Nothing is begun at or after the deadline, and no wait reaches beyond it.
 * - The engine knows transport, throttling, expired credentials, clock skew and checksums. What an answer
 * means is the kind's to say; a refusal that the kind does not know is judged by sl_client_judge.
 * - A refusal whose code nobody knows stops no other job, and is judged by contrast when all jobs are over:
 *   SL_REJECT beside a success of the same operation, else SL_FATAL. A job of several operations is never
 *   judged so: it is SL_REJECT, and its sink sends each operation in a job of its own.
 * - When a job fails in a way in which all others would fail too (no permission, no connection), jobs that
 *   were not begun are not sent and get the same outcome. */
#ifndef SL_AWS_JOB_H
#define SL_AWS_JOB_H

#include "aws/client.h"
#include "aws/codes.h"
#include "aws/refusal.h"

/* What a kind makes of an answer. */
enum sl_job_next {
    SL_JOB_DONE,      /* success; or the kind has filled in the results itself */
    SL_JOB_JUDGE,     /* unknown to the kind: the table of codes decides, or contrast */
    SL_JOB_DOUBT,     /* refused for good; the kind set code and text: contrast decides whose fault it is */
    SL_JOB_FATAL,     /* refused for good, the environment's fault; the kind set code and text */
    SL_JOB_BROKEN,    /* the answer is not understood: sent again after a short wait */
    SL_JOB_AGAIN,     /* what is left failed for now; the kind set code and text: again after a short wait */
    SL_JOB_THROTTLED, /* likewise, after a longer wait */
    SL_JOB_AT_ONCE,   /* something was learned: sent again without a wait, and not counted as an attempt */
};

struct sl_job;
struct sl_job_kind {
    /* An answer with the status of success is in job->answer: SL_JOB_DONE only when it is complete, well
     * formed and positive, with each proof that the operation gives (an id, an ETag, one entry for each that
     * was sent). SL_JOB_BROKEN for everything else. Never NULL: nothing is a success by default. */
    enum sl_job_next (*answered)(struct sl_job *job);
    /* Any other. NULL: SL_JOB_JUDGE. */
    enum sl_job_next (*refused)(struct sl_job *job, const struct sl_refusal *refusal);
};

enum sl_job_state { SL_JOB_FRESH, SL_JOB_WAITING, SL_JOB_FLYING, SL_JOB_OVER };

/* Zeroed but for what is set here. */
struct sl_job {
    const struct sl_job_kind *kind;
    void *context;                       /* the kind's */
    const char *operation;               /* "PutItem": X-Amz-Target's second half, and for messages */
    const char *method;                  /* NULL: POST */
    int success;                         /* the status of a success; 0: 200 */
    const char *path;                    /* encoded, after the endpoint's own; NULL: "/" */
    const char *query;                   /* encoded, without the '?'; NULL: none */
    const struct sl_sigv4_field *fields; /* more header fields, names in lower case */
    size_t n_fields;
    uint64_t place; /* what of the target it is about, for contrast (aws/contrast.h): a table; 0: all of it */
    size_t answer_bytes; /* a longer answer is broken off and not understood; 0: SL_HTTP_ANSWER_BYTES */
    const struct sl_span *parts; /* the body; a kind that asks for another attempt may change it */
    size_t n_parts;
    bool is_many;      /* several operations in one request; a kind may change it */
    bool of_no_record; /* it asks for something that all records need: nothing is ever a record's fault */
    bool is_no_proof;  /* its success says nothing of its operations: the kind reports them (contrast) */

    /* Set while a kind is called. */
    const struct sl_http_exchange *answer;
    struct sl_client *client;
    const struct sl_call *call;
    bool progressed; /* set by a kind: a part was taken, so this round does not count as an attempt */

    /* The outcome. `code` and `text` are in the call's arena, NULL when SL_OK. */
    enum sl_status status;
    bool not_sent;
    bool is_doubted; /* refused, and only contrast says whose fault it is: SL_REJECT beside a success */
    const char *code, *text;

    /* The engine's own. */
    enum sl_job_state state;
    unsigned attempts; /* that were counted */
    bool renewed, corrected; /* keys, clock: each at most once a job */
    unsigned hurried;
    int last_cost;
    int64_t due_ms;
    uint64_t number; /* of its last request, for net/pace.h */
    size_t searched; /* bytes that aws/shown.h has compared with the server's words */
    uint64_t serial; /* of the credentials that it was signed with */
    int64_t skew_s;  /* that it was dated with */
    char invocation[37];
};

/* Returns when each of the `n` jobs is SL_JOB_OVER. */
void sl_job_run(struct sl_client *client, struct sl_job *jobs, size_t n, const struct sl_call *call);

/* ---- one job among others that come and go ---- */

struct sl_job_flight;

/* Begins the job, and does not wait. Job and call are borrowed until it is over. Its owner drives it: with
 * sl_http_wait on the process's connections, and sl_job_turn after that. Credentials that are about to end
 * are fetched here and in sl_job_turn, which then wait for them. */
struct sl_job_flight *sl_job_begin(struct sl_client *client, struct sl_job *job,
                                   const struct sl_call *call) SL_MUST_USE;

/* Takes what has come, and sends the next attempt when it is due. True: the job is SL_JOB_OVER, and the
 * flight is freed. */
bool sl_job_turn(struct sl_job_flight *flight) SL_MUST_USE;

/* When to turn it although nothing has come, on the clock's steady time; INT64_MAX: it is on the wire. */
int64_t sl_job_due_ms(const struct sl_job_flight *flight);

/* Breaks it off: the job has no outcome, the flight is freed. */
void sl_job_abandon(struct sl_job_flight *flight);

#endif
