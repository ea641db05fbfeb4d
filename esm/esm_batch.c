/* Reads a shard: gathers records into a batch, and decides when the batch goes. */
#include "base/array.h"
#include "esm/esm_private.h"

#include <stdlib.h>

static bool matches(struct sl_esm *esm, const struct sl_esm_record *r)
{
    const struct sl_esm_settings *s = &esm->settings;
    if (s->n_filters == 0 || !r->record)
        return true;
    bool found = false;
    for (size_t i = 0; i < s->n_filters && !found; i++)
        found = sl_when_match(s->filters[i], r->record, esm->scratch);
    sl_arena_reset(esm->scratch);
    return found;
}

static void push_record(struct sl_esm_lane *lane, uint32_t index)
{
    size_t room = lane->room;
    lane->index = sl_array_fit(lane->index, lane->n + 1, &room, sizeof(*lane->index), "records of a batch");
    lane->batch =
        sl_array_fit(lane->batch, lane->n + 1, &lane->room, sizeof(*lane->batch), "records of a batch");
    lane->batch[lane->n] = sl_esm_record_at(lane->shard, index);
    lane->index[lane->n++] = index;
}

/* Records that are too old when they are first read are given up together; the batch is filled with the
 * records after them. `lane->next` is the first of them, and afterwards the one after the last. */
static bool drop_unread(struct sl_esm_lane *lane)
{
    const struct sl_esm_track *shard = lane->shard;
    enum sl_esm_condition first = SL_ESM_TRIMMED, condition;
    struct sl_esm_part part = {.from = lane->n, .to = lane->n};
    while (sl_esm_has_next(lane) && (int64_t)(part.to - part.from) < shard->esm->settings.batch_size) {
        const struct sl_esm_record *r = sl_esm_record_at(shard, lane->mine[lane->next]);
        if (r->available_ms > sl_esm_wall_ms(shard->esm) || !sl_esm_is_expired(shard->esm, r, &condition) ||
            !matches(shard->esm, r) || (part.to > part.from && condition != first))
            break;
        first = condition;
        push_record(lane, lane->mine[lane->next++]);
        part.to++;
    }
    if (part.to == part.from)
        return false;
    lane->n = part.from;
    sl_esm_give_up(lane, &part, part.to - part.from, first, false);
    return true;
}

static int64_t window_of(const struct sl_esm *esm, const struct sl_esm_record *r)
{
    int64_t length_ms = esm->settings.tumbling_s * 1000;
    int64_t window = r->created_ms / length_ms;
    return r->created_ms % length_ms < 0 ? window - 1 : window;
}

/* Whether the record belongs to a later window than the open one. Opens a window when none is open. */
static bool is_beyond_window(struct sl_esm_track *shard, const struct sl_esm_record *r)
{
    if (shard->esm->settings.tumbling_s == 0)
        return false;
    int64_t window = window_of(shard->esm, r);
    if (!shard->has_window) {
        shard->has_window = true;
        shard->window = window;
        sl_buffer_reset(&shard->state);
    }
    return window > shard->window;
}

/* The bytes around the records: {"Records":[]} and a window's members. */
static size_t envelope_bytes(const struct sl_esm_track *shard)
{
    return 14 + (shard->esm->settings.tumbling_s ? 512 + shard->state.len : 0);
}

bool sl_esm_fits(const struct sl_esm_track *shard, size_t n, size_t bytes, size_t more)
{
    const struct sl_esm_settings *s = &shard->esm->settings;
    return (int64_t)n < s->batch_size &&
           (n == 0 || bytes + more + 1 + envelope_bytes(shard) <= (size_t)s->payload_bytes);
}

/* Takes the records that are available. True: the batch cannot become larger. */
static bool gather(struct sl_esm_lane *lane)
{
    struct sl_esm_track *shard = lane->shard;
    struct sl_esm *esm = shard->esm;
    const struct sl_esm_settings *s = &esm->settings;
    while (sl_esm_has_next(lane)) {
        uint32_t index = lane->mine[lane->next];
        const struct sl_esm_record *r = sl_esm_record_at(shard, index);
        if (r->available_ms > sl_esm_wall_ms(esm))
            return false;
        if (!matches(esm, r)) {
            esm->stats.filtered++;
            sl_esm_mark_done(shard, index);
            lane->next++;
            continue;
        }
        if (drop_unread(lane))
            continue;
        if ((int64_t)lane->n == s->batch_size || is_beyond_window(shard, r) ||
            !sl_esm_fits(shard, lane->n, lane->bytes, r->text.len))
            return true;
        push_record(lane, index);
        lane->bytes += r->text.len + 1;
        lane->next++;
    }
    return (int64_t)lane->n == s->batch_size;
}

static void set_ready(struct sl_esm_lane *lane)
{
    lane->parts[0] = (struct sl_esm_part){.to = lane->n};
    lane->n_parts = 1;
    lane->state = SL_ESM_READY;
    lane->when = lane->shard->esm->now_ms;
    lane->has_payload = false;
}

/* The window's last call: at the end of the window, or at once when the clock is past it. */
static void set_final(struct sl_esm_lane *lane)
{
    struct sl_esm *esm = lane->shard->esm;
    int64_t end_ms = sl_esm_window_end_ms(lane->shard) - esm->wall_ms;
    lane->is_final = true;
    set_ready(lane);
    if (end_ms > lane->when)
        lane->when = end_ms;
}

/* Batching windows follow each other, from the moment at which the lane was free. */
static int64_t batching_window_end(const struct sl_esm_lane *lane)
{
    const struct sl_esm *esm = lane->shard->esm;
    int64_t length = esm->settings.window_s * 1000;
    if (length == 0)
        return esm->now_ms;
    return lane->free_at + ((esm->now_ms - lane->free_at) / length + 1) * length;
}

static int64_t next_available(struct sl_esm_lane *lane)
{
    const struct sl_esm_track *shard = lane->shard;
    if (!sl_esm_has_next(lane))
        return INT64_MAX;
    int64_t at = sl_esm_record_at(shard, lane->mine[lane->next])->available_ms - shard->esm->wall_ms;
    return at > shard->esm->now_ms ? at : shard->esm->now_ms;
}

static void wait_for_more(struct sl_esm_lane *lane)
{
    struct sl_esm_track *shard = lane->shard;
    struct sl_esm *esm = shard->esm;
    int64_t next = next_available(lane);
    int64_t window_end = sl_esm_window_end_ms(shard) - esm->wall_ms;
    if (shard->has_window && next > window_end) {
        set_final(lane);
    } else if (next == INT64_MAX) {
        lane->state = SL_ESM_ENDED;
    } else {
        lane->when = next;
    }
}

/* When a tumbling window closes, a batch that waits in it waits no longer. */
void sl_esm_read(struct sl_esm_lane *lane)
{
    struct sl_esm *esm = lane->shard->esm;
    bool is_new = lane->n == 0;
    bool is_full = gather(lane);
    if (lane->n == 0) {
        lane->bytes = 0;
        if (is_full)
            set_final(lane);
        else
            wait_for_more(lane);
        return;
    }
    if (is_new)
        lane->send_at = batching_window_end(lane);
    int64_t next = next_available(lane);
    if (is_full || esm->now_ms >= lane->send_at)
        set_ready(lane);
    else
        lane->when = next < lane->send_at ? next : lane->send_at;
}
