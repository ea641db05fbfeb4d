/* Inputs become the shards of a simulated stream. */
#ifndef SL_REPLAY_STREAM_H
#define SL_REPLAY_STREAM_H

#include "replay/esm.h"
#include "replay/input.h"

struct sl_stream_options {
    bool is_live;           /* records come at their own times; else all are there at the beginning */
    bool is_shard_per_file; /* else all inputs are one shard, or `shards` */
    int64_t shards;         /* items are spread over so many; 0 or 1: one */
    bool needs_item_keys;   /* for lanes */
    const char *keys;       /* names of the key attributes, "PK,SK", for lines that carry an item alone */
    int64_t start_epoch_s;  /* when the mapping begins; 0: at the newest record (live: the oldest) */
};

struct sl_stream {
    struct sl_esm_shard *shards;
    size_t n_shards;
    size_t n;             /* records */
    size_t by_event[4];   /* by enum sl_event */
    size_t removed_by[4]; /* REMOVEs by enum sl_ttl */
    int64_t start_ms;     /* since 1970 */
    bool is_kinesis;
    const char *stream_arn; /* of the first record that has one; NULL: none has */
};

/* Everything lives in `arena`, and borrows the inputs. Records without eventSourceARN get `default_arn`, as
 * Lambda would add it; lines of an export become the records that would have carried them. */
enum sl_status sl_stream_build(const struct sl_input *inputs, size_t n,
                               const struct sl_stream_options *options, const char *default_arn,
                               struct sl_arena *arena, struct sl_stream *out, struct sl_error *error)
    __attribute__((warn_unused_result));

#endif
