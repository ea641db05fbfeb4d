/* Judges the result of an invocation: moves the checkpoint, retries, cuts the batch in two, or gives up. */
#include "base/array.h"
#include "esm/esm_choices.h"
#include "esm/esm_private.h"

#include <stdlib.h>

/* An answer says that the first `n` records of the part are done. */
static void finish_records(struct sl_esm_lane *lane, struct sl_esm_part *part, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sl_esm_mark_done(lane->shard, lane->index[part->from + i]);
    lane->shard->esm->stats.done += n;
    part->from += n;
    lane->has_payload = false;
}

static void push_part(struct sl_esm_lane *lane, struct sl_esm_part part)
{
    SL_PUSH(lane->parts, lane->n_parts, lane->parts_room, "halves of a batch") = part;
    lane->has_payload = false;
}

static void split(struct sl_esm_lane *lane)
{
    struct sl_esm_part *second = sl_esm_top(lane);
    struct sl_esm_part first = {.from = second->from};
    first.to = first.from + sl_esm_cut(second->to - second->from);
    second->from = first.to;
    second->attempts = 0;
    push_part(lane, first);
    lane->shard->esm->stats.splits++;
}

/* How all of a part failed. */
enum failure {
    FUNCTION_ERROR,
    MALFORMED_ANSWER,
    NO_PROGRESS /* the answer names the first record */
};

static void mark_failed(const struct sl_esm_lane *lane, const struct sl_esm_part *part)
{
    unsigned known = SL_ESM_DELIVERED | (part->to - part->from == 1 ? SL_ESM_BLAMED : 0u);
    struct sl_esm_stats *stats = &lane->shard->esm->stats;
    stats->failed_batches++;
    for (size_t i = part->from; i < part->to; i++) {
        unsigned char *marks = sl_esm_mark_at(lane->shard, lane->index[i]);
        stats->failed += !(*marks & SL_ESM_DELIVERED);
        *marks |= known;
    }
}

/* Decides what becomes of a part of which no record is done, and how long it waits. */
static enum sl_esm_verb judge_failure(struct sl_esm_lane *lane, enum failure how, int64_t *pause_ms)
{
    struct sl_esm *esm = lane->shard->esm;
    const struct sl_esm_settings *s = &esm->settings;
    struct sl_esm_part *part = sl_esm_top(lane);
    size_t n = part->to - part->from;
    bool is_function_error = how == FUNCTION_ERROR;
    part->attempts++;
    mark_failed(lane, part);
    if (sl_esm_drop_expired(lane, part, is_function_error))
        return SL_ESM_DISCARD;
    if (s->bisect && how != MALFORMED_ANSWER && part->to - part->from > 1) {
        split(lane);
        *pause_ms = SL_ESM_NEW_BATCH_PAUSE_MS;
        return SL_ESM_BISECT;
    }
    if (s->max_retries >= 0 && part->attempts > s->max_retries) {
        sl_esm_give_up(lane, part, part->to - part->from, SL_ESM_RETRIES_EXHAUSTED, is_function_error);
        return SL_ESM_DISCARD;
    }
    esm->stats.retries++;
    *pause_ms = sl_esm_pause_ms(part->attempts);
    return part->to - part->from < n ? SL_ESM_DISCARD : SL_ESM_RETRY;
}

/* The window's last call has no records that could expire. It is repeated as long as the stream would have
 * kept them. */
static bool is_final_over(const struct sl_esm_lane *lane)
{
    const struct sl_esm *esm = lane->shard->esm;
    return sl_esm_wall_ms(esm) - sl_esm_window_end_ms(lane->shard) > esm->settings.retention_s * 1000;
}

/* When a window ended early, its remaining records follow its last call, with an empty state. */
static enum sl_esm_verb judge_final(struct sl_esm_lane *lane, bool is_success, int64_t *pause_ms)
{
    struct sl_esm_part *part = sl_esm_top(lane);
    if (!is_success && !is_final_over(lane)) {
        part->attempts++;
        lane->shard->esm->stats.retries++;
        *pause_ms = sl_esm_pause_ms(part->attempts);
        return SL_ESM_RETRY;
    }
    lane->shard->has_window = lane->is_terminated_early;
    sl_buffer_reset(&lane->shard->state);
    lane->n_parts--;
    lane->is_final = lane->is_terminated_early = lane->has_payload = false;
    return is_success ? SL_ESM_ADVANCE : SL_ESM_DISCARD;
}

/* Some records are done, so the state in the answer is kept. */
static void keep_state(struct sl_esm_lane *lane)
{
    struct sl_esm_track *shard = lane->shard;
    if (shard->esm->settings.tumbling_s == 0)
        return;
    struct sl_buffer old = shard->state;
    shard->state = shard->new_state;
    shard->new_state = old;
    if (shard->state.len > SL_ESM_STATE_BYTES) {
        lane->is_final = lane->is_terminated_early = true;
        push_part(lane, (struct sl_esm_part){0});
    }
}

static enum sl_esm_verb judge_answer(struct sl_esm_lane *lane, struct sl_esm_decision *d, int64_t *pause_ms)
{
    struct sl_esm *esm = lane->shard->esm;
    struct sl_esm_part *part = sl_esm_top(lane);
    struct sl_span answer = sl_buffer_span(&lane->body);
    size_t n = part->to - part->from, failed = n;
    if (esm->settings.tumbling_s && !sl_esm_read_state(answer, &lane->shard->new_state))
        d->is_malformed = true;
    else if (esm->settings.report_failures)
        d->is_malformed = !sl_esm_read_failures(lane, &failed);
    else
        esm->stats.ignored_answers += sl_esm_names_failures(answer);
    if (lane->is_final)
        return judge_final(lane, !d->is_malformed, pause_ms);
    if (d->is_malformed || failed == 0) {
        esm->stats.partial_answers += !d->is_malformed;
        esm->stats.malformed_answers += d->is_malformed;
        return judge_failure(lane, d->is_malformed ? MALFORMED_ANSWER : NO_PROGRESS, pause_ms);
    }
    d->failed = failed;
    finish_records(lane, part, failed);
    part->attempts = 0;
    keep_state(lane);
    if (failed == n)
        return SL_ESM_ADVANCE;
    esm->stats.partial_answers++;
    *pause_ms = SL_ESM_NEW_BATCH_PAUSE_MS;
    return SL_ESM_CHECKPOINT;
}

/* Lambda refused the call before the function ran. It costs no attempt; the records grow older. */
static enum sl_esm_verb judge_throttle(struct sl_esm_lane *lane, int64_t *pause_ms)
{
    lane->shard->esm->stats.throttles++;
    lane->throttles++;
    if (lane->is_final && is_final_over(lane))
        return judge_final(lane, false, pause_ms);
    if (!lane->is_final && sl_esm_drop_expired(lane, sl_esm_top(lane), false))
        return SL_ESM_DISCARD;
    *pause_ms = sl_esm_pause_ms(lane->throttles);
    return SL_ESM_RETRY;
}

void sl_esm_judge(struct sl_esm_lane *lane, struct sl_esm_decision *d, int64_t *pause_ms)
{
    struct sl_esm *esm = lane->shard->esm;
    if (lane->outcome == SL_ESM_THROTTLED) {
        d->verb = judge_throttle(lane, pause_ms);
        return;
    }
    esm->stats.invocations++;
    lane->throttles = 0;
    if (lane->outcome == SL_ESM_ANSWERED) {
        d->verb = judge_answer(lane, d, pause_ms);
    } else {
        esm->stats.function_errors++;
        d->verb = lane->is_final ? judge_final(lane, false, pause_ms)
                                 : judge_failure(lane, FUNCTION_ERROR, pause_ms);
    }
}
