/* What AWS does not document about event source mappings, and what the simulator does instead. Each choice
 * stands here with its evidence, and only here: to change one, change it in this file. */
#ifndef SL_ESM_ESM_CHOICES_H
#define SL_ESM_ESM_CHOICES_H

#include <stddef.h>
#include <stdint.h>

/* Pause before the next attempt: 0.5 s, doubled after each failed attempt, at most one minute, no jitter.
 * Evidence: on AWS, a function that fails at once, with a record age of 60 s and no other limit, was called 8
 * times before its record was given up. Pauses of 0.5 + 1 + ... + 32 = 63.5 s lead to exactly 8 calls, if the
 * age is checked after a failed attempt and not before the next one. The maximum is LocalStack's. Without
 * jitter, runs can be compared. */
#define SL_ESM_FIRST_PAUSE_MS   500
#define SL_ESM_LONGEST_PAUSE_MS 60000

static inline int64_t sl_esm_pause_ms(int64_t failures)
{
    int64_t ms = SL_ESM_FIRST_PAUSE_MS;
    for (int64_t i = 1; i < failures && ms < SL_ESM_LONGEST_PAUSE_MS; i++)
        ms *= 2;
    return ms < SL_ESM_LONGEST_PAUSE_MS ? ms : SL_ESM_LONGEST_PAUSE_MS;
}

/* Bisection: a batch of n records is cut at n / 2, so the first half is the smaller one when n is odd. The
 * first half runs to its end, with all its splits and retries, before the second half begins: the order of
 * the shard requires it. A half is a new batch with all its attempts, because splits do not cost retries
 * (documented). Evidence: two independent emulators make calls of 4, 2, 1, 1 and 2 records for 4 records of
 * which the second one always fails, without retries. */
static inline size_t sl_esm_cut(size_t n)
{
    return n / 2;
}

/* With BisectBatchOnFunctionError and ReportBatchItemFailures, AWS cuts a batch at the record that the answer
 * names (documented). When that is the batch's first record, such a cut makes no progress, and AWS does not
 * say what follows. Here the batch is cut in halves, as after a function error, and the cut costs no retry:
 * so one record that always fails is given up alone. Evidence: the published notes of a user who tried three
 * records of which the second was named each time. The remaining two were given up together
 * (batchSize 2) with ReportBatchItemFailures alone, and only the named one with both settings.
 * With two records, halves and "after the first record" are the same cut; halves are what the setting is
 * documented to make. A malformed answer is not cut, see below. */

/* Pause after a split, and after a checkpoint inside the batch: the first pause. */
#define SL_ESM_NEW_BATCH_PAUSE_MS SL_ESM_FIRST_PAUSE_MS

/* Record age is checked when a batch is first read (recorded on AWS: an expired record is given up alone, and
 * the other records of its batch are delivered), and after each failed attempt (see the pauses above).
 * Records that are too old after an attempt are removed from the beginning of the batch; the rest keeps its
 * count of attempts. */

/* The records after a checkpoint, and each half of a split, are a batch of their own: it is not filled up
 * with later records. */

/* With ParallelizationFactor P, the records of a shard are spread over P lanes by a hash of the item's key.
 * (AWS documents that the records of one item keep their order, but not how records are spread.) A lane has
 * one batch under way at a time. The shard's checkpoint is the lowest of its lanes'. */

/* A partial answer is a success if it is null, "", an empty list, or an object whose batchItemFailures is
 * missing, empty or null. All of these were recorded on AWS, except the object with other members only.
 * Any other answer that is not an object fails the whole batch, as a malformed list does (recorded for
 * lists). A batch that failed because of a malformed list is not a function error: it is not cut in two. */

/* The last call of a tumbling window has no records. It happens when the clock has passed the end of the
 * window and no record of the window is left. It is repeated until it succeeds (AWS documents that it
 * "suspends the shard"), but no longer than the stream keeps records. A state of more than 1 MB ends the
 * window early (documented); its last call carries that state. */
#define SL_ESM_STATE_BYTES (1024 * 1024)

/* A batch without limits lives until the stream has dropped its records; there is no failure record for
 * them. For this, the age of a record is the time since it became available in the (simulated) stream, so
 * that a fixture from last year can be replayed. */

#endif
