/* What AWS does not document about event source mappings, and what the simulator does instead, each with its
 * evidence. The one place of such choices: another answer is another line here. */
#ifndef SL_REPLAY_ESM_CHOICES_H
#define SL_REPLAY_ESM_CHOICES_H

#include <stddef.h>
#include <stdint.h>

/* The pause before attempt n+1 of a batch. Recorded on AWS: a function that fails at once, with a record age
 * of 60 s and no other limit, was called 8 times before the record was given up. Pauses of 0.5 s that double
 * (0.5 + 1 + ... + 32 = 63.5 s) give these 8 when the age is looked at after a failed attempt, not before the
 * next. No longer pause than a minute: LocalStack's cap. No jitter, so that runs can be compared. */
#define SL_ESM_FIRST_PAUSE_MS   500
#define SL_ESM_LONGEST_PAUSE_MS 60000

static inline int64_t sl_esm_pause_ms(int64_t failures)
{
    int64_t ms = SL_ESM_FIRST_PAUSE_MS;
    for (int64_t i = 1; i < failures && ms < SL_ESM_LONGEST_PAUSE_MS; i++)
        ms *= 2;
    return ms < SL_ESM_LONGEST_PAUSE_MS ? ms : SL_ESM_LONGEST_PAUSE_MS;
}

/* Where a batch of n is cut in two: the smaller half first when n is odd. Halves run in stream order, the
 * first one to its end (all its splits and retries) before the second begins: the order of the shard asks for
 * it. A half is a new batch, with all its attempts: splits do not cost retries (documented). Two independent
 * emulators do the same: 4 records, the second one poison, no retries give calls of 4, 2, 1, 1, 2. */
static inline size_t sl_esm_cut(size_t n)
{
    return n / 2;
}

/* What a failed batch waits for when it is cut, or when a checkpoint in it moved: the first pause. */
#define SL_ESM_NEW_BATCH_PAUSE_MS SL_ESM_FIRST_PAUSE_MS

/* Record age is looked at when a batch is first read (documented by a recording: an expired record is given
 * up alone, its batch's other records are delivered) and after each failed attempt (above). Records that are
 * too old then are taken off the batch's beginning; what is left keeps its count of attempts. */

/* The rest behind a checkpoint, and a half, are batches of their own: not filled up with later records. */

/* Records of a shard with ParallelizationFactor P are spread over P lanes by a hash of their item's key (that
 * one item's records keep their order is documented, how they are spread is not). A lane has one batch under
 * way at a time; the shard's checkpoint is the lowest of its lanes'. */

/* An answer counts as a partial answer's success when it is null, "", an empty list, or an object without (or
 * with an empty or null) batchItemFailures: all recorded on AWS but the object with other members only. Any
 * other answer that is not an object fails the whole batch, as a malformed list does (recorded for lists).
 * A whole batch that failed by a malformed list is no function error: it is not cut in two. */

/* A tumbling window's last call has no records, and comes when the clock has passed the window's end and no
 * record of it is left. It is repeated until it succeeds ("suspends the shard" is documented), but no longer
 * than the stream keeps records. A state of more than 1 MB ends the window early (documented): its last call
 * carries that state. */
#define SL_ESM_STATE_BYTES (1024 * 1024)

/* A batch that no limit gives up lives until the stream has dropped its records: nobody is told of those. A
 * record counts as old as it has been in the (simulated) stream for this, so that a fixture from last year
 * can be replayed. */

#endif
