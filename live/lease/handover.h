/* Leases of an application of KCL 3, carried over to a lease table of ours, or back, once and while neither
 * runs: their protocols differ, their places do not.
 *
 * KCL 3's rows are those of KCL 1.x (lease.h) with more attributes: startingHashKey and endingHashKey ("0"
 * and "1" by adapter 2), childShardIds, throughputKBps, checkpointOwner, pendingCheckpoint... A scheduler of
 * several streams has them in one table: leaseKey is STREAM:SHARD, and the row has streamName and shardId,
 * where STREAM is ACCOUNT:REGION$ACCOUNT$TABLE$LABEL:1 and the label's colons are '_' (adapter 2.0.1,
 * KinesisMapperUtil; seen in its rows). Its other tables, -WorkerMetricStats and -CoordinatorState, hold no
 * places. Rows of these that are in the table itself (with entityType) are left alone.
 *
 * - The rows of both tables are read twice, with a wait between. Where one has moved, somebody is at work,
 *   and nothing is done.
 * - A place never goes back: a target that is further than its source is refused. It would be the wrong
 *   direction.
 * - Each write is conditional on the row as it was read. What was broken off is done again from the
 *   beginning: the source stays as it is. */
#ifndef SL_LIVE_LEASE_HANDOVER_H
#define SL_LIVE_LEASE_HANDOVER_H

#include "base/clock.h"
#include "live/lease/lease.h"
#include "sinks/port.h"

enum sl_handover_act {
    SL_HANDOVER_SAME,    /* the target says so already */
    SL_HANDOVER_NEW,     /* it gets the lease */
    SL_HANDOVER_MOVED,   /* its lease moves on */
    SL_HANDOVER_REMOVED, /* its lease goes: the source has none of the shard */
};

struct sl_handover_step {
    enum sl_handover_act act;
    const char *shard;
    const char *before, *after; /* checkpoints; NULL: none */
};

struct sl_handover_counts {
    size_t leases;     /* of the source, of the stream */
    size_t acts[4];    /* by enum sl_handover_act */
    size_t others;     /* rows of the source that are of other streams, or no leases */
    size_t from_start; /* leases given that have handled nothing, and begin with the oldest record */
};

struct sl_handover_options {
    struct sl_table_port *from, *to; /* borrowed */
    const char *from_name, *to_name; /* for messages */
    struct sl_clock *clock;
    const char *stream_arn;
    bool is_given;   /* to KCL 3; else it is taken from there */
    bool is_many;    /* given: to a scheduler of several streams. A target that has rows says so itself */
    int64_t wait_ms; /* between the two readings: longer than the failover time of whoever may run */
    bool writes;     /* false: everything but the writing */
    /* Before the first write: the target's table may have to be made. NULL: it is there. */
    enum sl_status (*prepare)(void *arg, struct sl_error *error);
    void (*say)(void *arg, const struct sl_handover_step *step); /* in the shards' order; nothing is written
                                                                    before the last */
    void *arg;
};

/* SL_REJECT: it cannot be done so, and the text says why: "Running", "Backwards", "NoLeases", "NotALease" and
 * others. SL_RETRY, SL_FATAL: a table could not be read or written; what was written stays right. */
enum sl_status sl_handover_run(const struct sl_handover_options *options, struct sl_handover_counts *counts,
                               struct sl_error *error) SL_MUST_USE;

#endif
