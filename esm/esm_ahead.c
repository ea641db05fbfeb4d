/* The event that comes next if the running invocation succeeds, made while the function works. Nothing
 * depends on the guess: it is a text, and taken only for the very records that it was made of. */
#include "esm/esm_private.h"

/* A stream that goes through one function: with more at a time, others use the processor while one waits.
 * What a filter will take, and what a window's state will be, is not known yet. */
static bool is_known(const struct sl_esm_lane *lane)
{
    const struct sl_esm *esm = lane->shard->esm;
    return !sl_esm_is_live(esm) && esm->n_lanes == 1 && esm->settings.n_filters == 0 &&
           esm->settings.tumbling_s == 0;
}

void sl_esm_prepare(struct sl_esm_lane *lane)
{
    const struct sl_esm_track *shard = lane->shard;
    size_t n = 0, bytes = 0;
    if (!is_known(lane) || !sl_esm_has_next(lane))
        return;
    size_t from = lane->mine[lane->next];
    if (lane->n_ahead && lane->ahead_from == from)
        return;
    sl_buffer_reset(&lane->ahead);
    sl_buffer_add_str(&lane->ahead, SL_ESM_EVENT_BEGIN);
    for (; sl_esm_has_after(lane, n); n++) {
        struct sl_span text = sl_esm_record_at(shard, from + n)->text;
        if (!sl_esm_fits(shard, n, bytes, text.len))
            break;
        if (n)
            sl_buffer_add_char(&lane->ahead, ',');
        sl_buffer_add_span(&lane->ahead, text);
        bytes += text.len + 1;
    }
    sl_buffer_add_str(&lane->ahead, SL_ESM_EVENT_END);
    lane->ahead_from = from;
    lane->n_ahead = n;
}

/* The records of a batch are in the stream's order and come after those of the batch before, so `n_ahead` of
 * them that end where the guess ends are those of the guess. */
bool sl_esm_take_prepared(struct sl_esm_lane *lane, const struct sl_esm_part *part)
{
    size_t n = part->to - part->from;
    if (n == 0 || n != lane->n_ahead || lane->index[part->to - 1] != lane->ahead_from + n - 1)
        return false;
    struct sl_buffer payload = lane->payload;
    lane->payload = lane->ahead;
    lane->ahead = payload;
    lane->n_ahead = 0;
    lane->has_payload = true;
    return true;
}
