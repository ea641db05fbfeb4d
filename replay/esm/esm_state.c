/* What all parts of the simulator stand on: ids, and the checkpoint of a shard. */
#include "replay/esm/esm_private.h"

#include "base/clock.h"

#include <stdio.h>

void sl_esm_new_uuid(uint64_t *random, char out[37])
{
    uint64_t a = sl_random_step(random), b = sl_random_step(random);
    snprintf(out, 37, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32), (unsigned)(a >> 16) & 0xFFFF,
             (unsigned)a & 0xFFF, ((unsigned)(b >> 48) & 0x3FFF) | 0x8000,
             (unsigned long long)b & 0xFFFFFFFFFFFFu);
}

void sl_esm_mark_done(struct sl_esm_track *shard, uint32_t index)
{
    shard->marks[index] |= SL_ESM_DONE;
    while (shard->checkpoint < shard->shard->n && shard->marks[shard->checkpoint] & SL_ESM_DONE)
        shard->checkpoint++;
}

void sl_esm_stats_add(struct sl_esm_stats *sum, const struct sl_esm_stats *more)
{
    sum->invocations += more->invocations;
    sum->function_errors += more->function_errors;
    sum->throttles += more->throttles;
    sum->partial_answers += more->partial_answers;
    sum->malformed_answers += more->malformed_answers;
    sum->retries += more->retries;
    sum->splits += more->splits;
    sum->failed_batches += more->failed_batches;
    sum->failed += more->failed;
    sum->filtered += more->filtered;
    sum->done += more->done;
    sum->discarded += more->discarded;
    sum->trimmed += more->trimmed;
    sum->beside += more->beside;
    sum->ignored_answers += more->ignored_answers;
    sum->elapsed_ms += more->elapsed_ms;
}

struct sl_span sl_esm_checkpoint_id(const struct sl_esm_track *shard)
{
    return shard->checkpoint ? shard->shard->records[shard->checkpoint - 1].id : sl_span(NULL, 0);
}
