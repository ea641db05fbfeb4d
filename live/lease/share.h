/* Who takes which leases: KCL's balance, as the DynamoDB Streams adapter 1.6 has it (StreamsLeaseTaker), with
 * two differences that other workers do not notice.
 *
 * Every worker decides for itself, from what the table says. Leases of shards that are done count for nobody,
 * and are never taken. A worker's share is the unfinished leases divided by the workers, rounded up. It takes
 * expired leases up to its share; when too few have expired, it steals from workers that have more than
 * theirs (or one lease from a worker that has exactly its share, if it lacks two or more itself).
 * Differences: a worker steals half of what it lacks at a time, so that several new workers do not take too
 * much of one; and finished leases are not passed round. */
#ifndef SL_LIVE_LEASE_SHARE_H
#define SL_LIVE_LEASE_SHARE_H

#include "base/arena.h"

/* What the decision needs of one lease. */
struct sl_share_lease {
    const char *owner; /* NULL: nobody */
    bool is_mine;      /* this worker holds it now */
    bool is_expired;   /* it may be taken */
    bool is_done;
};

struct sl_share {
    const struct sl_share_lease *leases;
    size_t n;
    const char *worker; /* this one */
    uint64_t random;    /* state of the numbers that it draws: workers take different leases */

    /* What was found. */
    size_t workers, target, mine;
};

/* The leases to take now, as indices, in `out` (room for n). Returns how many. */
size_t sl_share_choose(struct sl_share *share, struct sl_arena *arena, size_t *out);

#endif
