/* dynamodb://table: what its files share. An apply sorts its operations into requests that are in flight
 * together: batches of unconditional writes and of reads, transactions, and single operations. */
#ifndef SL_SINKS_DYNAMODB_DYNAMODB_PRIVATE_H
#define SL_SINKS_DYNAMODB_DYNAMODB_PRIVATE_H

#include "aws/job.h"
#include "sinks/table.h"

/* API reference: BatchWriteItem, BatchGetItem. */
#define SL_DYNAMODB_WRITES      25
#define SL_DYNAMODB_WRITE_BYTES (16u * 1024 * 1024)
#define SL_DYNAMODB_READS       100

/* An answer: what is not an item; and how many bytes of JSON one byte of an item may become: an empty string
 * in a list counts for one and is written {"S":""}, ; a control character is written \u0001. */
#define SL_DYNAMODB_ANSWER_BYTES ((size_t)1024 * 1024)
#define SL_DYNAMODB_ESCAPED      9
#define SL_DYNAMODB_ITEM_BYTES   ((size_t)SL_ITEM_BYTES * SL_DYNAMODB_ESCAPED + 64 * 1024)

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
    bool is_over;            /* the result is final */
    bool is_doubted;         /* refused, and contrast said SL_FATAL: sent again while the apply goes on */
    bool is_left;            /* of a read, while an answer is read: the service left it out */
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
 * none) marks the running values (SL_SET_MAX, SL_SET_MIN) that need not be written any more. */
void sl_dynamodb_add_op(struct sl_dynamodb_body *body, const struct sl_dynamodb_op *op, const bool *dropped,
                        bool want_old);

/* ---- requests: each adds jobs to the apply, and sets its operations' results after the run ---- */

/* A job's context begins with one. */
struct sl_dynamodb_work {
    struct sl_dynamodb_apply *apply;
    void (*finish)(struct sl_dynamodb_work *work, struct sl_job *job);
    struct sl_dynamodb_body body;
};

/* A new job for `work`. Set its body (sl_dynamodb_set_body) once the body is whole. */
struct sl_job *sl_dynamodb_job(struct sl_dynamodb_apply *apply, struct sl_dynamodb_work *work,
                               const struct sl_job_kind *kind, const char *operation);
void sl_dynamodb_set_body(struct sl_job *job, struct sl_dynamodb_work *work);

/* The job is about the operation's table too: three bits of the job's `place`, so that the same tables give
 * the same place, in any order and however often. */
void sl_dynamodb_add_place(struct sl_job *job, const struct sl_dynamodb_op *op);

/* What an answer's member ConsumedCapacity says goes to the port's `units`, if anybody asks. */
void sl_dynamodb_count(const struct sl_job *job, bool is_read);

/* A condition failed: the service bills the greater of the two items, and does not say so. */
void sl_dynamodb_count_refused(const struct sl_dynamodb_work *work, const struct sl_table_op *op,
                               struct sl_span old);

/* The member of a request that makes the service say what it consumed, with a comma before it; "" when nobody
 * asks. */
struct sl_span sl_dynamodb_asks_units(const struct sl_dynamodb_apply *apply);

/* The job was the operation's alone: sets its result. It is over, unless contrast may come yet. */
void sl_dynamodb_finish_op(struct sl_dynamodb_op *op, const struct sl_job *job);

/* Runs the jobs of the groups, then the operations without a group. All results are final afterwards. */
void sl_dynamodb_run(struct sl_dynamodb_apply *apply);

void sl_dynamodb_single(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *op);
void sl_dynamodb_group(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *ops, size_t n);

/* Unconditional PUTs and DELETEs of distinct keys, those of a table together: a request may name it once. A
 * batch that is refused as a whole leaves its operations
 * open (not is_over), with the refusal as their results: send each alone. */
void sl_dynamodb_batch_writes(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op **ops, size_t n);

/* GETs of distinct keys, likewise; or PEEKs, but not both. */
void sl_dynamodb_batch_reads(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op **ops, size_t n,
                             size_t per_request);

/* The units that an answer's member ConsumedCapacity names: an object, or a list of them. 0: none, or
 * something else. */
double sl_dynamodb_units(struct sl_span consumed);

/* ---- reading: see sinks/port.h ---- */

void sl_dynamodb_scan(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                      struct sl_table_page *pages, const struct sl_call *call);
void sl_dynamodb_describe(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                          const struct sl_call *call);

/* SL_FATAL when it is not the name of a table. */
enum sl_status sl_dynamodb_check_table(struct sl_span table, struct sl_error *error) SL_MUST_USE;

/* ---- keys ---- */

/* Whether the answer's name of a table means this one: by ARN, the answer may have its name alone. */
bool sl_dynamodb_is_table(struct sl_span said, struct sl_span table);

/* The key's text of an item or key in DynamoDB's JSON, by the attributes that `like` (a key) has. */
struct sl_span sl_dynamodb_key_of(struct sl_dynamodb_apply *apply, struct sl_span table, struct sl_span item,
                                  struct sl_span like);

/* Whether the member "Item" of a refusal, if it has one, is an item with the operation's key. */
bool sl_dynamodb_is_item_of(struct sl_dynamodb_apply *apply, const struct sl_dynamodb_op *op,
                            struct sl_span refusal);

/* The text that equal keys of a table share. */
enum sl_status sl_dynamodb_key_text(struct sl_arena *arena, struct sl_span table, struct sl_span key,
                                    struct sl_span *out, struct sl_error *error) SL_MUST_USE;

#endif
