/* DynamoDB Streams, read: the four requests that a reader of a live stream makes.
 *
 * Signed and repeated as all requests to AWS are (sinks/aws/). Failures have the service's code:
 * "TrimmedDataAccessException", "ExpiredIteratorException", "ResourceNotFoundException". */
#ifndef SL_REPLAY_LIVE_H
#define SL_REPLAY_LIVE_H

#include "base/arena.h"
#include "sinks/target.h"

struct sl_live;

/* `region` and `endpoint` may be NULL: as the environment has them. */
enum sl_status sl_live_open(struct sl_sinks *sinks, const char *region, const char *endpoint,
                            struct sl_live **out, struct sl_error *error) SL_MUST_USE;
void sl_live_close(struct sl_live *live); /* NULL is fine */

/* The table's stream. SL_REJECT, "NoStream", when it has none. */
enum sl_status sl_live_stream_of(struct sl_live *live, const char *table, struct sl_arena *arena,
                                 const char **arn, struct sl_error *error) SL_MUST_USE;

struct sl_live_shard {
    const char *id;
    const char *parent; /* "" when it has none */
    bool is_closed;     /* nothing more comes */
};

/* All that the stream still tells of, parents before children. */
enum sl_status sl_live_shards(struct sl_live *live, const char *arn, struct sl_arena *arena,
                              struct sl_live_shard **shards, size_t *n, struct sl_error *error) SL_MUST_USE;

/* `type`: "TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"; `sequence` for the last
 * two.
 */
enum sl_status sl_live_iterator(struct sl_live *live, const char *arn, const char *shard, const char *type,
                                const char *sequence, struct sl_arena *arena, const char **iterator,
                                struct sl_error *error) SL_MUST_USE;

/* The answer as it came, {"Records":[...]}; `next` NULL: the shard has come to its end. */
enum sl_status sl_live_records(struct sl_live *live, const char *iterator, struct sl_arena *arena,
                               struct sl_span *answer, const char **next, struct sl_error *error) SL_MUST_USE;

#endif
