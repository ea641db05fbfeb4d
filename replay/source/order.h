/* Whether a recording can be what one shard of one stream held: sequence numbers rise within a shard, and all
 * records are of one stream. What cannot is replayed all the same, in the order given, and said. */
#ifndef SL_REPLAY_SOURCE_ORDER_H
#define SL_REPLAY_SOURCE_ORDER_H

#include "base/arena.h"
#include "base/span.h"

/* One record: where it stands, and what is looked at. The texts are borrowed until sl_order_keep, the input's
 * name as long as the order is used. */
struct sl_order_record {
    const char *input; /* its name */
    size_t index;      /* in the input, from 0 */
    struct sl_span id; /* sequence number, decimal digits; absent: an export's line, which has no order */
    struct sl_span stream_arn; /* absent: not looked at */
    bool is_kept;              /* its own */
};

struct sl_order {
    struct sl_arena *arena;
    size_t shards;
    struct sl_order_record *last,
        *first; /* by shard: the last with a sequence number, the first with an ARN */
    size_t n_late;
    const char *late;    /* says which was the first to be out of order */
    const char *streams; /* says which two streams one shard has; NULL: no shard has two */
};

/* All in `arena`. */
void sl_order_init(struct sl_order *order, size_t shards, struct sl_arena *arena);
void sl_order_add(struct sl_order *order, size_t shard, const struct sl_order_record *record);

/* The texts of the records that were added are about to go: those still needed are copied. */
void sl_order_keep(struct sl_order *order);

/* The two lines for a person, NULL when there is nothing to say. */
const char *sl_order_late(const struct sl_order *order);
const char *sl_order_streams(const struct sl_order *order);

#endif
