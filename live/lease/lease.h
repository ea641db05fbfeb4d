/* A lease: one row of a table of the Kinesis Client Library (KCL) 1.x. It says who reads a shard, and how far
 * the shard is handled.
 *
 * The attributes are those of KCL 1.15.3 (KinesisClientLeaseSerializer): leaseKey (S, the shard's id),
 * leaseOwner (S, absent: nobody), leaseCounter (N, one more with every write), checkpoint (S, a sequence
 * number or a sentinel), checkpointSubSequenceNumber (N, 0 for DynamoDB Streams),
 * ownerSwitchesSinceCheckpoint (N), parentShardId (SS). Ours are `sluiceStream` (S, the stream's ARN) and
 * `sluiceSince` (N, ms since 1970: where LATEST was); KCL leaves attributes alone that it does not know.
 *
 * A checkpoint is the last record that was handled: reading goes on after it. */
#ifndef SL_LIVE_LEASE_LEASE_H
#define SL_LIVE_LEASE_LEASE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"

#define SL_LEASE_KEY_BYTES        255 /* of a shard's id: DynamoDB Streams has 65 at most */
#define SL_LEASE_OWNER_BYTES      255
#define SL_LEASE_CHECKPOINT_BYTES 40 /* DynamoDB Streams API: SequenceNumber */

/* What a checkpoint says. */
enum sl_lease_place {
    SL_LEASE_TRIM_HORIZON, /* nothing is handled: from the oldest record */
    SL_LEASE_LATEST,       /* nothing is handled: from the next record on */
    SL_LEASE_AT_TIMESTAMP, /* nothing is handled: from a moment that only KCL's configuration knows */
    SL_LEASE_AFTER,        /* after this sequence number */
    SL_LEASE_SHARD_END     /* all of the shard is handled */
};

struct sl_lease {
    const char *key;
    const char *owner; /* NULL: nobody */
    int64_t counter;
    const char *checkpoint;
    const char *stream; /* NULL: KCL wrote the row */
    int64_t since_ms;   /* of LATEST; 0: not known */
    const char **parents;
    size_t n_parents;
};

/* Reads a row, an item's JSON. What it points to is in `arena`. SL_REJECT: it is not a lease of KCL 1.x for a
 * stream of DynamoDB; codes "NotALease", "NewerLeases" (KCL 2 or 3), "KinesisLeases". The text says what is
 * wrong with which row. */
enum sl_status sl_lease_read(struct sl_span item, struct sl_arena *arena, struct sl_lease *out,
                             struct sl_error *error) SL_MUST_USE;

/* The same of KCL 3's row for that stream (handover.h): `key` is the shard's id, and what KCL has prepared
 * but not checkpointed does not count. `*is_one` false: the row is no lease, or one of another stream. */
enum sl_status sl_lease_read_newer(struct sl_span item, const char *stream_arn, struct sl_arena *arena,
                                   struct sl_lease *out, bool *is_one, struct sl_error *error) SL_MUST_USE;

/* "ACCOUNT:REGION$ACCOUNT$TABLE$LABEL:1": what a scheduler of several streams calls the stream. */
const char *sl_lease_stream_name(const char *stream_arn, struct sl_arena *arena);

enum sl_lease_place sl_lease_place(const char *checkpoint);
/* The other way round; `sequence` for SL_LEASE_AFTER. */
const char *sl_lease_checkpoint(enum sl_lease_place place, const char *sequence);

/* Whether `a` is an earlier place than `b`. A sentinel that says "nothing is handled" is before every
 * sequence number, SHARD_END after all. */
bool sl_lease_is_before(const char *a, const char *b);

static inline bool sl_lease_is_done(const struct sl_lease *lease)
{
    return sl_lease_place(lease->checkpoint) == SL_LEASE_SHARD_END;
}

/* When the shard was made, from its id ("shardId-00000001414576573621-f55eea83"), in ms since 1970; 0: the id
 * does not say. */
int64_t sl_lease_born_ms(const char *key);

#endif
