/* A recording: inputs become the shards of a simulated stream. */
#ifndef SL_REPLAY_SOURCE_RECORDING_H
#define SL_REPLAY_SOURCE_RECORDING_H

#include "replay/esm/esm.h"
#include "replay/source/input.h"
#include "replay/source/order.h"

struct sl_recording_options {
    const struct sl_input *inputs; /* decoded; borrowed by the recording */
    size_t n_inputs;
    const char *default_arn; /* eventSourceARN of records when none has one */
    bool is_live;            /* records become available at their own times; else all at the beginning */
    bool is_shard_per_file;  /* else all inputs are one shard, or `shards` */
    int64_t shards;          /* items are spread over so many; 0 or 1: one */
    bool needs_item_keys;    /* for lanes */
    const char *keys;        /* names of the key attributes, "PK,SK", for lines that hold only an item */
    int64_t start_epoch_s;   /* when the mapping begins; 0: at the newest record (live: at the oldest) */
};

struct sl_recording {
    struct sl_esm_shard *shards;
    size_t n_shards;
    size_t n;             /* records */
    size_t by_event[4];   /* by enum sl_event */
    size_t removed_by[4]; /* REMOVEs by enum sl_ttl */
    int64_t start_ms;     /* since 1970 */
    bool is_kinesis;
    struct sl_order order;  /* what in it no shard of a stream would hold */
    const char *stream_arn; /* of the first record that has one, else the one they got; NULL: no records */
};

/* Everything lives in `arena`. Every record is as Lambda would deliver it (see lambda_form.h). */
enum sl_status sl_recording_build(const struct sl_recording_options *options, struct sl_arena *arena,
                                  struct sl_recording *out, struct sl_error *error) SL_MUST_USE;

#endif
