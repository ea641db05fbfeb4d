/* Whether a recording can be what one shard of one stream held: sequence numbers rise within a shard, and all
 * records are of one stream. What cannot is replayed all the same, in the order given, and said. */
#ifndef SL_LIVE_SOURCE_SEQUENCE_H
#define SL_LIVE_SOURCE_SEQUENCE_H

#include "base/arena.h"
#include "base/span.h"

/* One record: where it stands, and what is looked at. The texts are borrowed until sl_sequence_keep, the
 * input's name as long as the order is used. */
struct sl_sequence_record {
    const char *input; /* its name */
    size_t index;      /* in the input, from 0 */
    struct sl_span id; /* sequence number, decimal digits; absent: an export's line, which has no order */
    struct sl_span stream_arn; /* absent: not looked at */
    bool is_kept;              /* its own */
};

struct sl_sequence {
    struct sl_arena *arena;
    size_t shards;
    struct sl_sequence_record *last,
        *first; /* by shard: the last with a sequence number, the first with an ARN */
    size_t n_late;
    const char *late;    /* says which was the first to be out of order */
    const char *streams; /* says which two streams one shard has; NULL: no shard has two */
};

/* Is the one sequence number above the other? Both are decimal digits, also with zeros before them. */
bool sl_sequence_is_after(struct sl_span id, struct sl_span other);

/* All in `arena`. */
void sl_sequence_init(struct sl_sequence *order, size_t shards, struct sl_arena *arena);
void sl_sequence_add(struct sl_sequence *order, size_t shard, const struct sl_sequence_record *record);

/* The texts of the records that were added are about to go: those still needed are copied. */
void sl_sequence_keep(struct sl_sequence *order);

/* The two lines for a person, NULL when there is nothing to say. */
const char *sl_sequence_late(const struct sl_sequence *order);
const char *sl_sequence_streams(const struct sl_sequence *order);

#endif
