/* What the three files of a job share: job.c runs jobs, job_request.c writes a request, job_outcome.c decides
 * what an answer means. */
#ifndef SL_AWS_JOB_PRIVATE_H
#define SL_AWS_JOB_PRIVATE_H

#include "aws/job.h"

/* One request on the wire: the exchange and the text of its headers. */
struct sl_job_slot {
    struct sl_job_slot *next; /* in the list of spare ones */
    struct sl_http_exchange exchange;
    struct sl_arena *arena; /* of one attempt */
    struct sl_job *job;
};

struct sl_job_run {
    struct sl_client *client;
    struct sl_job *jobs;
    size_t n;
    size_t fresh; /* the first job that was not begun */
    size_t waiting, flying;
    size_t flying_bytes; /* of the bodies on the wire */
    bool is_full;        /* more jobs wait than the pace lets through */
    const struct sl_call *call;
    struct sl_job_slot *slots[SL_PACE_MAX];
    size_t doubted;            /* jobs that wait for the end of the run to be judged */
    const struct sl_job *stop; /* failed in a way in which the jobs not begun would fail too */
};

/* ---- job_request.c ---- */

/* Fills in the slot's exchange, all but its timeout. The client is ready and its keys are valid. */
void sl_job_write(struct sl_client *client, struct sl_job_slot *slot);

/* ---- job_outcome.c ---- */

/* Reads the exchange, which is over. Afterwards the job is SL_JOB_OVER with its outcome, or SL_JOB_WAITING
 * with the time of its next attempt. */
void sl_job_settle(struct sl_job_run *run, struct sl_job_slot *slot);

/* Sets the job's status, code and text; the text gets the target and the operation in front. */
void sl_job_fail(struct sl_job *job, enum sl_status status, const char *code, const char *format, ...)
    SL_PRINTF(4, 5);

/* When all jobs are over: judges those that are doubted, by contrast. */
void sl_job_judge_doubted(struct sl_job_run *run);

/* Ends the job with the outcome that is set. `ends_all`: when it failed, no fresh job is begun any more. */
void sl_job_end(struct sl_job_run *run, struct sl_job *job, bool ends_all);

#endif
