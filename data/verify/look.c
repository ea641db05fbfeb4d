/* The rule of suspects: pure, so that every schedule of changes can be tried. */
#include "data/verify/look.h"

static enum sl_looks_result begin_anew(struct sl_looks *looks, const struct sl_look *look)
{
    looks->has_first = look->is_still;
    looks->first_ms = look->ended_ms;
    memcpy(looks->seen, look->seen, sizeof(looks->seen));
    return looks->n < SL_LOOKS_MAX ? SL_LOOKS_AGAIN : SL_LOOKS_UNSETTLED;
}

enum sl_looks_result sl_looks_take(struct sl_looks *looks, const struct sl_look *look)
{
    if (look->is_right)
        return SL_LOOKS_RIGHT;
    if (looks->n++ == 0)
        looks->since_ms = look->ended_ms;
    looks->next_ms = look->ended_ms + ((int64_t)SL_LOOKS_WAIT_MS << (looks->n - 1));
    bool same = looks->has_first && look->is_still && memcmp(looks->seen, look->seen, 32) == 0;
    if (!same)
        return begin_anew(looks, look);
    /* Whole seconds and clocks: a change made at the very end of the first look counts as not handled. */
    if (look->through_ms > looks->first_ms)
        return SL_LOOKS_DIFFERENT;
    return looks->n < SL_LOOKS_MAX ? SL_LOOKS_AGAIN : SL_LOOKS_PENDING;
}

bool sl_looks_is_due(const struct sl_looks *looks, int64_t now_ms, int64_t through_ms)
{
    if (looks->has_first && through_ms > 0)
        return through_ms > looks->first_ms;
    return now_ms >= looks->next_ms;
}
