/* An event source mapping of AWS Lambda, simulated: shards of records become batches, and batches become
 * invocations. Each result moves a checkpoint, retries the batch, splits it or gives it up.
 *
 * This is a state machine on a virtual clock. It does no I/O, starts no thread and draws nothing at random,
 * so the same records, settings and results lead to the same deliveries. Where AWS documents a rule, this is
 * that rule (docs/REPLAY.md names the source of each). Where AWS does not, esm_choices.h holds the choice and
 * its evidence; no other file does.
 *
 * An invocation begins at one moment of the virtual clock and ends at a later one. Batches of two shards, or
 * of two lanes of one shard, may be under way at once. The driver is called for one after the other, in the
 * order of their times. */
#ifndef SL_ESM_ESM_H
#define SL_ESM_ESM_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "streams/when/when.h"

/* ---- settings: the mapping's, with AWS's names in AWS's ranges ---- */

struct sl_esm_settings {
    int64_t batch_size;                   /* BatchSize: 1..10000 */
    int64_t window_s;                     /* MaximumBatchingWindowInSeconds: 0..300 */
    int64_t parallelization;              /* ParallelizationFactor: 1..10 */
    int64_t max_retries;                  /* MaximumRetryAttempts: -1..10000; -1: until the records expire */
    int64_t max_age_s;                    /* MaximumRecordAgeInSeconds: -1, or 60..604800 */
    int64_t tumbling_s;                   /* TumblingWindowInSeconds: 0..900 */
    bool bisect;                          /* BisectBatchOnFunctionError */
    bool report_failures;                 /* FunctionResponseTypes: ReportBatchItemFailures */
    const struct sl_when *const *filters; /* FilterCriteria: records that match one of them; borrowed */
    size_t n_filters;                     /* 0..10; 0: every record */

    /* Not settings of the mapping. */
    int64_t concurrency;   /* ReservedConcurrentExecutions: more are throttled; 0: no limit */
    int64_t payload_bytes; /* of an event: Lambda's 6 MB; tests set other limits */
    int64_t invocation_ms; /* how long each invocation takes on the virtual clock, see the driver */
    int64_t retention_s;   /* how long the stream keeps a record: 86400 */
    bool is_kinesis;       /* failure records of a Kinesis stream say KinesisBatchInfo */
    uint64_t seed;         /* of request ids, and of the ids in failure records */
    const char *stream_arn, *function_arn, *mapping_id; /* as in events and failure records */
};

/* AWS's defaults (batch size 100, retries and age -1, ...), and 100 ms for each invocation. */
void sl_esm_settings_init(struct sl_esm_settings *settings);

/* Refuses what AWS refuses when a mapping is created: SL_REJECT, with the code
 * "InvalidParameterValueException" or "ValidationException", and AWS's name of the setting in the text. */
enum sl_status sl_esm_settings_check(const struct sl_esm_settings *settings,
                                     struct sl_error *error) SL_MUST_USE;

/* ---- what goes in ---- */

struct sl_esm_record {
    struct sl_span text;     /* the record's JSON, as it goes into an event */
    struct sl_span id;       /* its sequence number: what an answer names */
    struct sl_span item_key; /* equal for records of one item; may be absent when parallelization is 1 */
    int64_t created_ms;      /* since 1970: record age and tumbling windows follow it */
    int64_t available_ms;    /* since 1970: when it can first be read; never falls within a shard */
    const struct sl_record *record; /* for filters; may be NULL without them */
    void *tag;                      /* the caller's */
};

struct sl_esm_shard {
    const char *id;
    int parent; /* index of the shard that must be done before this one begins; -1: none */
    const struct sl_esm_record *records; /* in stream order */
    size_t n;
};

/* ---- the driver: it runs the function ---- */

struct sl_esm_invocation {
    const char *request_id; /* a UUID drawn from the seed */
    const struct sl_esm_shard *shard;
    unsigned lane; /* 0..parallelization-1 */
    const struct sl_esm_record *const *records;
    size_t n;
    struct sl_span payload; /* the event; the same bytes at every attempt */
    int64_t time_ms;        /* when it begins, since the simulation began */
    int64_t attempt;        /* 1 at first; 1 again when a checkpoint or a split made a new batch */
    bool is_window, is_final;
    void *tag; /* the driver's, between begin and invoke */
};

enum sl_esm_outcome {
    SL_ESM_ANSWERED,  /* the function answered; `body` is its answer, valid or not */
    SL_ESM_FAILED,    /* a function error, a timeout, a process that died; `body` is the error's JSON */
    SL_ESM_THROTTLED, /* Lambda refused: the function never ran. Costs no attempt */
};

struct sl_esm_result {
    enum sl_esm_outcome outcome;
    struct sl_span body; /* copied */
    int64_t duration_ms; /* without `begin`: added to the time by which the clock moved; with it: unused */
};

enum sl_esm_verb {
    SL_ESM_ADVANCE,    /* the whole batch is done */
    SL_ESM_CHECKPOINT, /* done up to the failed record; the rest is a new batch */
    SL_ESM_RETRY,
    SL_ESM_BISECT,
    SL_ESM_DISCARD /* given up: out of attempts, or too old */
};

struct sl_esm_decision {
    enum sl_esm_verb verb;
    struct sl_span checkpoint; /* id of the record up to which the shard is done; absent: none yet */
    size_t failed;             /* CHECKPOINT: index in the batch of the lowest failed record */
    bool is_malformed; /* the answer is not a valid partial answer: the whole batch counts as failed */
};

enum sl_esm_condition {
    SL_ESM_RETRIES_EXHAUSTED, /* "RetryAttemptsExhausted" */
    SL_ESM_AGE_EXCEEDED,      /* "RecordAgeExceeded": older than max_age_s */
    SL_ESM_TRIMMED            /* gone from the stream: there is no failure record */
};

struct sl_esm_discard {
    enum sl_esm_condition condition;
    const struct sl_esm_shard *shard;
    const struct sl_esm_record *const *records;
    size_t n;
    const char *request_id;  /* of the last attempt; a new one when there was none */
    int64_t invoke_count;    /* attempts with this batch, at least 1 */
    bool was_function_error; /* of the last attempt: functionError is "Unhandled", else null */
    int64_t wall_ms;         /* when, since 1970 */
};

/* Without `begin`, `invoke` runs the function at once. The clock then stands at the beginning of the
 * invocation; the invocation takes as long as the clock moves during the call, plus `duration_ms`.
 * With `begin`, `begin` starts the function, and `invoke` collects the result settings.invocation_ms later;
 * several invocations may run meanwhile. `decided` and `discarded` may be NULL. Every argument is borrowed
 * for the call; an invocation lives from `begin` to `decided`. */
struct sl_esm_driver {
    void *self;
    /* NULL: a simulation. Else the mapping is live, see below. */
    bool (*may_begin)(void *self, const struct sl_esm_shard *shard, unsigned lane, bool was_sent);
    void (*begin)(void *self, struct sl_esm_invocation *inv);
    void (*invoke)(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out);
    void (*decided)(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                    const struct sl_esm_decision *decision);
    void (*discarded)(void *self, const struct sl_esm_discard *discard);
    /* NULL: the shards have all their records. Else `more` gives the records that come next in the shard,
     * borrowed until `forget`, and returns their number; 0: there are no more. It is called when the mapping
     * would read them. `forget`: the oldest `n` lots of the shard are no longer needed. With one lane for
     * each shard (parallelization 1) there are never more lots than two batches need, and one: the next event
     * is made while the function works. */
    size_t (*more)(void *self, size_t shard, const struct sl_esm_record **records);
    void (*forget)(void *self, size_t shard, size_t n);
};

/* ---- running ---- */

struct sl_esm;

/* Everything is borrowed until sl_esm_destroy. The settings have passed sl_esm_settings_check. The mapping
 * begins now, at the clock's wall time, from TRIM_HORIZON. Parents come before their children in `shards`. */
struct sl_esm *sl_esm_new(const struct sl_esm_settings *settings, const struct sl_esm_shard *shards, size_t n,
                          struct sl_clock_virtual *clock, const struct sl_esm_driver *driver);
void sl_esm_destroy(struct sl_esm *esm); /* NULL is fine */

/* Goes to the next moment at which something happens. False: every shard is done. Every run ends, because
 * records expire. */
bool sl_esm_step(struct sl_esm *esm);

/* When the next step happens, in ms since the beginning; -1: there is none. For callers that wait in real
 * time. */
int64_t sl_esm_next_ms(const struct sl_esm *esm);

/* The number of the shard's records below its checkpoint. */
size_t sl_esm_checkpoint(const struct sl_esm *esm, size_t shard);

struct sl_esm_stats {
    uint64_t invocations, function_errors, throttles, partial_answers, malformed_answers;
    uint64_t retries, splits;
    uint64_t failed_batches,
        failed;                  /* deliveries of which no record was done; the distinct records in them */
    uint64_t filtered;           /* records that no filter matched */
    uint64_t done;               /* records below a checkpoint that an answer set */
    uint64_t discarded, trimmed; /* records */
    uint64_t beside;          /* of these: delivered, but never named by an answer and never failed alone */
    uint64_t ignored_answers; /* they named failures, and the settings have no report_failures */
    int64_t elapsed_ms;       /* virtual */
};
struct sl_esm_stats sl_esm_stats(const struct sl_esm *esm);
/* For a stream that is run page by page. */
void sl_esm_stats_add(struct sl_esm_stats *sum, const struct sl_esm_stats *more);

/* ---- live: in real time, page by page (esm_live.c) ----
 *
 * With `may_begin` the mapping follows real time. Its shards get their records page by page, an invocation
 * lasts until its caller says that it is over, and one begins only when `may_begin` says so (`was_sent`: a
 * part of its batch was in an invocation before). sl_esm_step is not used. Times are milliseconds since
 * sl_esm_new, and never go back. The driver has `begin` and `invoke`; `invoke` returns the result of an
 * invocation that is over. */

/* Adds records to the end of the shard, borrowed until sl_esm_forget has counted their page. They are
 * available at once: available_ms is at most sl_esm_wall_at(now_ms). */
void sl_esm_feed(struct sl_esm *esm, size_t shard, const struct sl_esm_record *records, size_t n,
                 int64_t now_ms);

/* The wall time that the mapping takes for this time. */
int64_t sl_esm_wall_at(const struct sl_esm *esm, int64_t now_ms);

/* Does everything that is due. */
void sl_esm_run(struct sl_esm *esm, int64_t now_ms);

/* When something is due after `now_ms`; INT64_MAX: nothing, before something is fed or over. What waits for
 * `may_begin` does not count. */
int64_t sl_esm_due_ms(const struct sl_esm *esm, int64_t now_ms);

/* The invocation that `begin` was called with is over: `invoke` and `decided` are called. Its batch then
 * waits, or is gone; sl_esm_run goes on. */
void sl_esm_end(struct sl_esm_invocation *inv, int64_t now_ms);

/* Lets go of pages whose records are all below the checkpoint, and returns their number, the oldest first.
 * The checkpoint's id stays. */
size_t sl_esm_forget(struct sl_esm *esm, size_t shard);

/* The id of the last record below the checkpoint; absent: there is none. Borrowed until the next call. */
struct sl_span sl_esm_checkpoint_id(const struct sl_esm *esm, size_t shard);

/* The number of the shard's records at and above its checkpoint; the first of them, NULL: there is none. */
size_t sl_esm_left(const struct sl_esm *esm, size_t shard);
const struct sl_esm_record *sl_esm_first_left(const struct sl_esm *esm, size_t shard);

/* ---- events and failure records (esm_event.c, esm_failure.c) ---- */

/* The failure record that AWS sends to an OnFailure destination: SQS and SNS. With `payload` (an event) it is
 * S3's: the same, with the event as a string. */
void sl_esm_failure_json(const struct sl_esm_settings *settings, const struct sl_esm_discard *discard,
                         struct sl_span payload, struct sl_buffer *out);

/* The key of that object in S3: aws/lambda/<mapping>/<shard>/YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<uuid>. */
void sl_esm_failure_key(const struct sl_esm_settings *settings, const struct sl_esm_discard *discard,
                        struct sl_buffer *out);

/* The event of `records`, without a window's members. */
void sl_esm_event_json(const struct sl_esm_record *const *records, size_t n, struct sl_buffer *out);

#endif
