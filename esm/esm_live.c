/* The mapping in real time: pages come, invocations end when they end. */
#include "esm/esm_private.h"

#include <assert.h>
#include <stddef.h>

static void set_now(struct sl_esm *esm, int64_t now_ms)
{
    if (now_ms > esm->now_ms)
        esm->now_ms = now_ms;
}

void sl_esm_feed(struct sl_esm *esm, size_t shard, const struct sl_esm_record *records, size_t n,
                 int64_t now_ms)
{
    struct sl_esm_track *track = &esm->shards[shard];
    assert(track->n + n <= UINT32_MAX);
    set_now(esm, now_ms);
    sl_esm_add_page(track, records, n);
    for (unsigned k = 0; k < esm->settings.parallelization; k++) {
        struct sl_esm_lane *lane = &track->lanes[k];
        if (lane->state != SL_ESM_ENDED || lane->next == lane->n_mine)
            continue;
        lane->state = SL_ESM_READING;
        lane->when = lane->free_at = esm->now_ms;
        track->lanes_left++;
    }
}

int64_t sl_esm_wall_at(const struct sl_esm *esm, int64_t now_ms)
{
    return esm->wall_ms + now_ms;
}

static bool is_due(const struct sl_esm *esm, const struct sl_esm_lane *lane)
{
    if (lane->when > esm->now_ms)
        return false;
    return lane->state == SL_ESM_READING ||
           (lane->state == SL_ESM_READY &&
            esm->driver.may_begin(esm->driver.self, lane->shard->shard, lane->number, lane->was_sent));
}

void sl_esm_run(struct sl_esm *esm, int64_t now_ms)
{
    set_now(esm, now_ms);
    for (size_t i = 0; i < esm->n_lanes; i++)
        while (is_due(esm, &esm->lanes[i]))
            sl_esm_step_lane(&esm->lanes[i]);
}

int64_t sl_esm_due_ms(const struct sl_esm *esm, int64_t now_ms)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < esm->n_lanes; i++) {
        const struct sl_esm_lane *lane = &esm->lanes[i];
        bool waits = lane->state == SL_ESM_READING || (lane->state == SL_ESM_READY && lane->when > now_ms);
        if (waits && lane->when < due)
            due = lane->when;
    }
    return due;
}

void sl_esm_end(struct sl_esm_invocation *inv, int64_t now_ms)
{
    struct sl_esm_lane *lane =
        (struct sl_esm_lane *)(void *)((char *)inv - offsetof(struct sl_esm_lane, inv));
    assert(lane->state == SL_ESM_RUNNING);
    set_now(lane->shard->esm, now_ms);
    sl_esm_step_lane(lane);
}

size_t sl_esm_forget(struct sl_esm *esm, size_t shard)
{
    return sl_esm_drop_pages(&esm->shards[shard]);
}

struct sl_span sl_esm_checkpoint_id(const struct sl_esm *esm, size_t shard)
{
    return sl_esm_track_id(&esm->shards[shard]);
}

size_t sl_esm_left(const struct sl_esm *esm, size_t shard)
{
    return esm->shards[shard].n - esm->shards[shard].checkpoint;
}

const struct sl_esm_record *sl_esm_first_left(const struct sl_esm *esm, size_t shard)
{
    const struct sl_esm_track *track = &esm->shards[shard];
    return track->checkpoint < track->n ? sl_esm_record_at(track, track->checkpoint) : NULL;
}
