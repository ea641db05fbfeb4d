/* The jobs of an apply. */
#include "sinks/dynamodb/dynamodb_private.h"

#include "base/hash.h"
#include "sinks/result.h"

struct sl_job *sl_dynamodb_job(struct sl_dynamodb_apply *apply, struct sl_dynamodb_work *work,
                               const struct sl_job_kind *kind, const char *operation)
{
    struct sl_job *job = &apply->jobs[apply->n_jobs++];
    *job = (struct sl_job){.kind = kind, .context = work, .operation = operation};
    return job;
}

void sl_dynamodb_set_body(struct sl_job *job, struct sl_dynamodb_work *work)
{
    job->parts = work->body.parts;
    job->n_parts = work->body.n;
}

void sl_dynamodb_add_place(struct sl_job *job, const struct sl_dynamodb_op *op)
{
    uint64_t hash = sl_hash(op->table);
    job->place |= 1ull << (hash & 63) | 1ull << (hash >> 6 & 63) | 1ull << (hash >> 12 & 63);
}

void sl_dynamodb_finish_op(struct sl_dynamodb_op *op, const struct sl_job *job)
{
    sl_result_job(op->result, job);
    op->is_doubted = job->is_doubted && job->status == SL_FATAL;
    op->is_over = !op->is_doubted;
}
