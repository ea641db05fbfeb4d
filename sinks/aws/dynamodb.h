/* dynamodb://table: what its parts share. An apply sorts its operations into requests that fly together:
 * batches of unconditional writes and of reads, transactions, and the rest one by one. */
#ifndef SL_SINKS_AWS_DYNAMODB_H
#define SL_SINKS_AWS_DYNAMODB_H

#include "sinks/aws/job.h"
#include "sinks/item.h"

/* API reference: BatchWriteItem, BatchGetItem, TransactWriteItems. */
#define SL_DYNAMODB_WRITES      25
#define SL_DYNAMODB_WRITE_BYTES (16u * 1024 * 1024)
#define SL_DYNAMODB_READS       100
#define SL_DYNAMODB_ACTIONS     100

struct sl_dynamodb {
    struct sl_table_port port;
    struct sl_client client;
    struct sl_arena *arena; /* as long as the port */
    struct sl_span name;
};

/* One operation of an apply. */
struct sl_dynamodb_op {
    const struct sl_table_op *op;
    struct sl_result *result;
    struct sl_span table;    /* its own, or the target's */
    struct sl_span key_text; /* equal for equal keys; in scratch */
    bool is_over;            /* the result stands */
};

struct sl_dynamodb_apply {
    struct sl_dynamodb *table;
    const struct sl_call *call;
    struct sl_arena *scratch;
    struct sl_dynamodb_op *ops;
    size_t n;
    struct sl_job *jobs; /* of one pass: room for n */
    size_t n_jobs;
};

/* ---- bodies: pieces that are borrowed, not joined ---- */

struct sl_dynamodb_body {
    struct sl_arena *arena;
    struct sl_span *parts;
    size_t n, room;
};

void sl_dynamodb_add(struct sl_dynamodb_body *body, struct sl_span part);
/* A copy of the buffer's text. */
void sl_dynamodb_add_text(struct sl_dynamodb_body *body, const struct sl_buffer *text);

/* The members of a PutItem, DeleteItem, UpdateItem or ConditionCheck, without the braces. `dropped` (NULL:
 * none) tells the running values (SL_SET_MAX, SL_SET_MIN) that need not be written any more. */
void sl_dynamodb_add_op(struct sl_dynamodb_body *body, const struct sl_dynamodb_op *op, const bool *dropped,
                        bool want_old);

/* ---- requests: each adds jobs to the apply, and settles its operations after the run ---- */

/* A job's context begins with one. */
struct sl_dynamodb_work {
    struct sl_dynamodb_apply *apply;
    void (*finish)(struct sl_dynamodb_work *work, struct sl_job *job);
    struct sl_dynamodb_body body;
};

/* The job for `work`, which is to be filled in; the body's parts are taken when the body is whole. */
struct sl_job *sl_dynamodb_job(struct sl_dynamodb_apply *apply, struct sl_dynamodb_work *work,
                               const struct sl_job_kind *kind, const char *operation);
void sl_dynamodb_set_body(struct sl_job *job, struct sl_dynamodb_work *work);

void sl_dynamodb_single(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *op);
void sl_dynamodb_group(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *ops, size_t n);

/* Unconditional PUTs and DELETEs of distinct keys. A batch that is refused as a whole leaves its operations
 * unsettled with the refusal as their results: they are to be sent one by one. */
void sl_dynamodb_batch_writes(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op **ops, size_t n);

/* GETs of distinct keys, likewise. */
void sl_dynamodb_batch_reads(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op **ops, size_t n,
                             size_t per_request);

/* ---- answers ---- */

void sl_dynamodb_condition_failed(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *op,
                                  struct sl_span old);

/* The key's text of an item or key in DynamoDB's JSON, by the attributes that `like` (a key) has. */
struct sl_span sl_dynamodb_key_of(struct sl_dynamodb_apply *apply, struct sl_span table, struct sl_span item,
                                  struct sl_span like);

/* The text that equal keys of a table share. */
enum sl_status sl_dynamodb_key_text(struct sl_arena *arena, struct sl_span table, struct sl_span key,
                                    struct sl_span *out, struct sl_error *error) SL_MUST_USE;

#endif
