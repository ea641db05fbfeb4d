/* An event source mapping of AWS Lambda, simulated: shards of records become batches, batches become
 * invocations, and what comes back moves checkpoints, retries, splits or discards.
 *
 * A state machine on a virtual clock: it does no I/O, starts no thread, and draws nothing by chance, so that
 * the same records, settings and results give the same deliveries. Where AWS documents a rule, it is that
 * rule (docs/REPLAY.md names the source of each); where it does not, the choice stands in
 * esm_choices.h, with its evidence, and nowhere else.
 *
 * In time: an invocation begins at one moment of the virtual clock and ends at a later one. Two batches may
 * be under way at once, of two shards or of two lanes of one shard; the driver is asked for them one after
 * another, in the order of their times. */
#ifndef SL_REPLAY_ESM_H
#define SL_REPLAY_ESM_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "streams/when.h"

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

    /* Not the mapping's own. */
    int64_t concurrency;   /* ReservedConcurrentExecutions: more at a time are throttled; 0: no limit */
    int64_t payload_bytes; /* of an event: Lambda's 6 MB; another for tests */
    int64_t invocation_ms; /* what each invocation is charged on the virtual clock, see the driver */
    int64_t retention_s;   /* how long the stream keeps a record after it was put there: 86400 */
    bool is_kinesis;       /* records of a Kinesis stream: failure records say KinesisBatchInfo */
    uint64_t seed;         /* of request ids, and the ids in failure records */
    const char *stream_arn, *function_arn, *mapping_id; /* as they stand in events and failure records */
};

/* AWS's defaults (batch 100, retries and age -1, ...), and 100 ms an invocation. */
void sl_esm_settings_init(struct sl_esm_settings *settings);

/* Refuses what AWS refuses when the mapping is created: SL_REJECT, code "InvalidParameterValueException" or
 * "ValidationException", and AWS's name of the setting in the text. */
enum sl_status sl_esm_settings_check(const struct sl_esm_settings *settings,
                                     struct sl_error *error) SL_MUST_USE;

/* ---- what goes in ---- */

struct sl_esm_record {
    struct sl_span text;     /* the record's JSON, as it goes into an event */
    struct sl_span id;       /* what an answer names: its sequence number */
    struct sl_span item_key; /* equal for records of one item; absent will do when parallelization is 1 */
    int64_t created_ms;      /* since 1970: what record age and tumbling windows go by */
    int64_t available_ms;    /* since 1970: when it can first be read; not falling within a shard */
    const struct sl_record *record; /* for filters; NULL will do without */
    void *tag;                      /* the caller's */
};

struct sl_esm_shard {
    const char *id;
    int parent; /* index of the shard that has to be done before this one begins; -1: none */
    const struct sl_esm_record *records; /* in stream order */
    size_t n;
};

/* ---- the driver: who runs the function ---- */

struct sl_esm_invocation {
    const char *request_id; /* a UUID made from the seed */
    const struct sl_esm_shard *shard;
    unsigned lane; /* 0..parallelization-1 */
    const struct sl_esm_record *const *records;
    size_t n;
    struct sl_span payload; /* the event; the same bytes at every attempt */
    int64_t time_ms;        /* of its beginning, since the simulation's */
    int64_t attempt;        /* 1 at first; again 1 when a checkpoint or a split made a new batch */
    bool is_window, is_final;
    void *tag; /* the driver's, between begin and invoke */
};

enum sl_esm_outcome {
    SL_ESM_ANSWERED,  /* the function answered; `body` is its answer, whatever that is */
    SL_ESM_FAILED,    /* a function error, a timeout, a process that died; `body` is the error's JSON */
    SL_ESM_THROTTLED, /* it never ran: Lambda refused. Costs no attempt */
};

struct sl_esm_result {
    enum sl_esm_outcome outcome;
    struct sl_span body; /* copied */
    int64_t duration_ms; /* without `begin`: added to what the clock was moved; with it: unused */
};

enum sl_esm_verb {
    SL_ESM_ADVANCE,    /* all of it is done */
    SL_ESM_CHECKPOINT, /* done up to the failed record; the rest is a new batch */
    SL_ESM_RETRY,
    SL_ESM_BISECT,
    SL_ESM_DISCARD /* out of attempts, or too old: given up */
};

struct sl_esm_decision {
    enum sl_esm_verb verb;
    struct sl_span checkpoint; /* id of the record up to which the shard is done; absent: none yet */
    size_t failed;             /* CHECKPOINT: index in the batch of the lowest failed record */
    bool is_malformed;         /* the answer was no valid partial answer: the whole batch counts as failed */
};

enum sl_esm_condition {
    SL_ESM_RETRIES_EXHAUSTED, /* "RetryAttemptsExhausted" */
    SL_ESM_AGE_EXCEEDED,      /* "RecordAgeExceeded": older than max_age_s */
    SL_ESM_TRIMMED            /* gone from the stream: nobody is told, there is no failure record */
};

struct sl_esm_discard {
    enum sl_esm_condition condition;
    const struct sl_esm_shard *shard;
    const struct sl_esm_record *const *records;
    size_t n;
    const char *request_id;  /* of the last attempt; of none that was made: a new one */
    int64_t invoke_count;    /* attempts made with this batch, at least 1 */
    bool was_function_error; /* the last attempt's: functionError "Unhandled", else null */
    int64_t wall_ms;         /* when, since 1970 */
};

/* Without `begin`, `invoke` runs the function at once: the clock stands at the invocation's beginning, and
 * as far as it moves meanwhile (and `duration_ms`), so long the invocation took. With it, `begin` starts the
 * function, and `invoke` is called at the end, settings.invocation_ms later, to collect the result: several
 * may run meanwhile. `decided` and `discarded` may be NULL. All that is passed is borrowed for the call; an
 * invocation lives from `begin` to `decided`. */
struct sl_esm_driver {
    void *self;
    void (*begin)(void *self, struct sl_esm_invocation *inv);
    void (*invoke)(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out);
    void (*decided)(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                    const struct sl_esm_decision *decision);
    void (*discarded)(void *self, const struct sl_esm_discard *discard);
};

/* ---- running ---- */

struct sl_esm;

/* Everything is borrowed until sl_esm_destroy; the settings have passed sl_esm_settings_check. The clock's
 * wall time at this moment is the mapping's beginning, from TRIM_HORIZON. Shards stand behind their parents.
 */
struct sl_esm *sl_esm_new(const struct sl_esm_settings *settings, const struct sl_esm_shard *shards, size_t n,
                          struct sl_clock_virtual *clock, const struct sl_esm_driver *driver);
void sl_esm_destroy(struct sl_esm *esm); /* NULL is fine */

/* Goes to the next moment at which something happens. False: every shard is done. Each run comes to an end:
 * records expire. */
bool sl_esm_step(struct sl_esm *esm);

/* When, in ms since the beginning, the next step will be; -1: there is none. For who lets time really pass.
 */
int64_t sl_esm_next_ms(const struct sl_esm *esm);

/* What a shard is done up to: the number of its records below the checkpoint. */
size_t sl_esm_checkpoint(const struct sl_esm *esm, size_t shard);

struct sl_esm_stats {
    uint64_t invocations, function_errors, throttles, partial_answers, malformed_answers;
    uint64_t retries, splits;
    uint64_t filtered;           /* records that no filter matched */
    uint64_t done;               /* records below a checkpoint that an answer set */
    uint64_t discarded, trimmed; /* records */
    int64_t elapsed_ms;          /* virtual */
};
struct sl_esm_stats sl_esm_stats(const struct sl_esm *esm);

/* ---- failure records (esm_failure.c) ---- */

/* The OnFailure destination's record as AWS writes it for SQS and SNS. With `payload` (an event), as for S3:
 * the same with the event as a string. */
void sl_esm_failure_json(const struct sl_esm_settings *settings, const struct sl_esm_discard *discard,
                         struct sl_span payload, struct sl_buffer *out);

/* The key of that object in S3: aws/lambda/<mapping>/<shard>/YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<uuid>. */
void sl_esm_failure_key(const struct sl_esm_settings *settings, const struct sl_esm_discard *discard,
                        struct sl_buffer *out);

/* The event that `records` make, without a window's members. */
void sl_esm_event_json(const struct sl_esm_record *const *records, size_t n, struct sl_buffer *out);

#endif
