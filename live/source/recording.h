/* A recording: inputs become the shards of a simulated stream. */
#ifndef SL_LIVE_SOURCE_RECORDING_H
#define SL_LIVE_SOURCE_RECORDING_H

#include "esm/esm.h"
#include "live/source/index.h"
#include "live/source/inputs.h"
#include "live/source/sequence.h"

struct sl_recording_options {
    const struct sl_inputs *inputs; /* they can be read again (sl_inputs_keep); borrowed */
    const char *ttl_attribute;      /* NULL: none */
    const char *default_arn;        /* eventSourceARN of records when none has one */
    bool is_live;           /* records become available at their own times; else all at the beginning */
    bool is_shard_per_file; /* else all inputs are one shard, or `shards` */
    int64_t shards;         /* items are spread over so many; 0 or 1: one */
    bool needs_item_keys;   /* for lanes */
    bool needs_records;     /* sl_esm_record.record is set: for filters, and to show a record's key */
    bool needs_all;         /* the shards have all their records as long as the recording */
    const char *keys;       /* names of the key attributes, "PK,SK", for lines that hold only an item */
    int64_t start_epoch_s;  /* when the mapping begins; 0: at the newest record (live: at the oldest) */
};

struct sl_recording {
    struct sl_esm_shard *shards;
    size_t n_shards;
    size_t n;             /* records */
    size_t by_event[4];   /* by enum sl_event */
    size_t removed_by[4]; /* REMOVEs by enum sl_ttl */
    int64_t start_ms;     /* since 1970 */
    bool is_kinesis;
    struct sl_sequence order; /* what in it no shard of a stream would hold */
    struct sl_index *index;   /* its own */
    struct sl_pages *pages;   /* NULL: `shards` have their records; else they come from sl_recording_more */
    const char *stream_arn;   /* of the first record that has one, else the one they got; NULL: no records */
};

/* More records are refused: the simulator numbers them with 32 bits, and holds some 100 bytes for each (150
 * for reports and filters) when they do not come page by page. They come so with one lane a shard, where a
 * shard's records are in a row, and without `is_live` and `needs_all`. Their texts are on disk. */
#define SL_RECORDING_RECORDS ((size_t)50 * 1000 * 1000)

/* Everything lives in `arena`. Every record is as Lambda would deliver it (see lambda_form.h). */
enum sl_status sl_recording_build(const struct sl_recording_options *options, struct sl_arena *arena,
                                  struct sl_recording *out, struct sl_error *error) SL_MUST_USE;

/* With `pages`: for the simulator's driver (esm.h, `more` and `forget`). */
size_t sl_recording_more(const struct sl_recording *recording, size_t shard,
                         const struct sl_esm_record **records);
void sl_recording_forget(const struct sl_recording *recording, size_t shard, size_t n);

/* To be called now and then while the records are delivered, so that those that were do not stay in memory.
 */
void sl_recording_release(const struct sl_recording *recording);

#endif
