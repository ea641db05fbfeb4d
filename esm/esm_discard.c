/* Gives records up: those that are too old, and those that are out of attempts. */
#include "esm/esm_private.h"

static bool is_too_old(const struct sl_esm *esm, const struct sl_esm_record *r)
{
    int64_t age_s = esm->settings.max_age_s;
    return age_s >= 0 && sl_esm_wall_ms(esm) - r->created_ms > age_s * 1000;
}

static bool is_trimmed(const struct sl_esm *esm, const struct sl_esm_record *r)
{
    int64_t since = r->available_ms > esm->wall_ms ? r->available_ms : esm->wall_ms;
    return sl_esm_wall_ms(esm) - since > esm->settings.retention_s * 1000;
}

bool sl_esm_is_expired(const struct sl_esm *esm, const struct sl_esm_record *r,
                       enum sl_esm_condition *condition)
{
    *condition = is_trimmed(esm, r) ? SL_ESM_TRIMMED : SL_ESM_AGE_EXCEEDED;
    return *condition == SL_ESM_TRIMMED || is_too_old(esm, r);
}

void sl_esm_give_up(struct sl_esm_lane *lane, struct sl_esm_part *part, size_t n,
                    enum sl_esm_condition condition, bool was_function_error)
{
    struct sl_esm *esm = lane->shard->esm;
    char unused_id[37];
    if (part->attempts == 0)
        sl_esm_new_uuid(&esm->random, unused_id);
    const struct sl_esm_discard discard = {
        .condition = condition,
        .shard = lane->shard->shard,
        .records = lane->batch + part->from,
        .n = n,
        .request_id = part->attempts ? lane->request_id : unused_id,
        .invoke_count = part->attempts ? part->attempts : 1,
        .was_function_error = was_function_error,
        .wall_ms = sl_esm_wall_ms(esm),
    };
    if (esm->driver.discarded)
        esm->driver.discarded(esm->driver.self, &discard);
    if (condition == SL_ESM_TRIMMED)
        esm->stats.trimmed += n;
    else
        esm->stats.discarded += n;
    for (size_t i = 0; i < n; i++) {
        uint32_t index = lane->index[part->from + i];
        unsigned known = *sl_esm_mark_at(lane->shard, index);
        esm->stats.beside += (known & SL_ESM_DELIVERED) && !(known & SL_ESM_BLAMED);
        sl_esm_mark_done(lane->shard, index);
    }
    part->from += n;
    lane->has_payload = false;
}

bool sl_esm_drop_expired(struct sl_esm_lane *lane, struct sl_esm_part *part, bool was_function_error)
{
    struct sl_esm *esm = lane->shard->esm;
    enum sl_esm_condition first, condition;
    while (part->from < part->to && sl_esm_is_expired(esm, lane->batch[part->from], &first)) {
        size_t n = 1;
        while (part->from + n < part->to && sl_esm_is_expired(esm, lane->batch[part->from + n], &condition) &&
               condition == first)
            n++;
        sl_esm_give_up(lane, part, n, first, was_function_error);
    }
    return part->from == part->to;
}
