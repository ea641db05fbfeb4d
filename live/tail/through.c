/* Up to when the changes of one shard are handled. */
#include "live/tail/through.h"

/* A read may be empty although more records follow: "it might take multiple calls to get to a portion of the
 * shard that contains stream records" (API reference of GetRecords). After so many in a row, for so long,
 * there are none. */
#define EMPTY_READS 4
#define EMPTY_MS    3000

/* A change is in its stream a moment after it was made, and most within a second. */
#define LATE_MS 2000

/* A record of the future was made by another clock than ours, and a record without a time says none. */
void sl_through_handled(struct sl_through *t, int64_t last_ms, int64_t now_ms)
{
    t->empty_reads = 0;
    if (last_ms > t->ms && last_ms <= now_ms)
        t->ms = last_ms;
}

/* A closed shard has no later changes, but those who wait for it may have: it is at its end when the service
 * says so, and not before. */
void sl_through_empty(struct sl_through *t, bool is_closed, int64_t read_ms)
{
    if (t->empty_reads++ == 0)
        t->empty_since_ms = read_ms;
    bool is_at_end = !is_closed && t->empty_reads >= EMPTY_READS && read_ms - t->empty_since_ms >= EMPTY_MS;
    if (is_at_end && read_ms - LATE_MS > t->ms)
        t->ms = read_ms - LATE_MS;
}
