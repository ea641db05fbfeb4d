/* The limit of requests on the wire: see net/pace.h. */
#include "net/pace.h"

#include <assert.h>

/* An answer that is smaller than the largest makes it smaller by this part of the difference. */
#define FADE 32
/* The share of refusals: all of it, its fading from answer to answer, and where it is too much. Three close
 * together are, and so is every tenth for long. One here and there says nothing about the limit: a hot key,
 * or a server that fails now and then, refuses as many at any limit. */
#define SHARE_ALL  4096
#define SHARE_FADE 32
#define SHARE_MOST (SHARE_ALL / 12)
/* Good rounds before the limit that was refused last is tried again. */
#define STAY 8

static void begin_anew(struct sl_pace *pace)
{
    pace->limit = pace->cap < SL_PACE_BEGIN ? pace->cap : SL_PACE_BEGIN;
    pace->half = pace->cap;
    pace->refused = pace->good = pace->refused_share = 0;
}

void sl_pace_init(struct sl_pace *pace, size_t cap)
{
    assert(cap >= 1 && cap <= SL_PACE_MAX);
    *pace = (struct sl_pace){.cap = cap};
    begin_anew(pace);
}

bool sl_pace_has_room(const struct sl_pace *pace, size_t flying, size_t flying_bytes, size_t bytes)
{
    if (flying == 0)
        return true;
    if (pace->is_alone)
        return false;
    return flying < pace->limit && flying_bytes + bytes <= SL_PACE_BYTES &&
           (flying + 1) * pace->answer_bytes <= SL_PACE_BYTES;
}

void sl_pace_look(struct sl_pace *pace, size_t flying, int64_t now_ms)
{
    if (pace->begun && (!flying || now_ms - pace->used_ms >= SL_PACE_ALONE_MS))
        pace->is_alone = false;
}

uint64_t sl_pace_begin(struct sl_pace *pace, int64_t now_ms)
{
    if (pace->begun && now_ms - pace->used_ms > SL_PACE_IDLE_MS)
        begin_anew(pace);
    pace->used_ms = now_ms;
    return ++pace->begun;
}

/* Answers that prove the limit. */
static size_t round_of(const struct sl_pace *pace)
{
    return pace->limit + 1 == pace->refused ? STAY * pace->limit : pace->limit;
}

static void grow(struct sl_pace *pace)
{
    size_t limit = pace->limit < pace->half ? 2 * pace->limit : pace->limit + 1;
    if (pace->limit < pace->half && limit > pace->half)
        limit = pace->half;
    pace->limit = limit < pace->cap ? limit : pace->cap;
    pace->good = 0;
}

void sl_pace_took(struct sl_pace *pace, size_t bytes, bool is_full)
{
    if (bytes > pace->answer_bytes)
        pace->answer_bytes = bytes;
    else
        pace->answer_bytes -= (pace->answer_bytes - bytes + FADE - 1) / FADE;
    pace->refused_share -= pace->refused_share / SHARE_FADE;
    if (is_full && ++pace->good >= round_of(pace))
        grow(pace);
}

static void halve(struct sl_pace *pace)
{
    pace->refused = pace->limit;
    pace->limit = pace->limit > 1 ? pace->limit / 2 : 1;
    pace->half = pace->limit;
    pace->cut_at = pace->begun;
    pace->good = pace->refused_share = 0;
}

void sl_pace_throttled(struct sl_pace *pace, uint64_t number)
{
    if (number <= pace->cut_at)
        return;
    pace->refused_share += (SHARE_ALL - pace->refused_share) / SHARE_FADE;
    if (pace->refused_share > SHARE_MOST)
        halve(pace);
}
