/* What is to be seen of a running tail: numbers of the whole, of each shard and of each route.
 *
 * The engine publishes a snapshot four times a second, and at once when a shard begins or ends to be blocked
 * or is lost. Any thread may take a copy; it waits for nobody longer than one copy takes. Everything but
 * `now_ms` and the states is monotonic: counters only rise, so a scraper may take differences. Names are the
 * service's and the configuration's; no item's key or value is in here. */
#ifndef SL_LIVE_TAIL_VITALS_H
#define SL_LIVE_TAIL_VITALS_H

#include "base/arena.h"

enum sl_vitals_shard_state {
    SL_VITALS_WAITING, /* for its parent's end, or for its lease */
    SL_VITALS_OPEN,    /* is read and handled */
    SL_VITALS_DONE     /* handled to its end */
};

struct sl_vitals_shard {
    const char *id;
    enum sl_vitals_shard_state state;
    bool is_ours;             /* false: another process has its lease */
    bool is_at_end;           /* the last read found nothing more */
    int64_t lag_ms;           /* age of the oldest record that is not handled; 0: none is known */
    uint64_t handled;         /* records below the checkpoint, since the process began */
    uint64_t retries;         /* invocations that were repeated */
    int64_t blocked_since_ms; /* wall time since which the same record has failed; 0: it is not blocked */
    const char *blocked_at;   /* sequence number of the first record of the batch that fails; NULL */
    size_t memory_bytes;      /* of pages */
};

struct sl_vitals_route {
    const char *name, *handler, *target;
    uint64_t matched, applied, parked, failed, set_aside, calls;
    uint64_t bytes; /* of the records that matched, as delivered */
};

struct sl_vitals {
    int64_t started_ms, now_ms; /* wall time */
    const char *stream_arn;
    bool is_ending; /* it was asked to stop, or it cannot go on */

    uint64_t read, handled, filtered, discarded, trimmed; /* records; `handled` includes `filtered` */
    uint64_t invocations, function_errors, retries, throttles;
    uint64_t reads, failed_reads;                    /* GetRecords: answers, and requests that failed */
    uint64_t process_starts, process_ends, timeouts; /* of sandboxes */
    uint64_t gaps; /* times that records were gone from the stream before they were read */
    uint64_t leases_lost;
    uint64_t saves;                          /* of places */
    int64_t lag_ms;                          /* the greatest of the shards' */
    int64_t through_ms;                      /* every change before this wall time is handled; 0: not known */
    size_t memory_bytes, memory_limit_bytes; /* of pages */
    size_t workers, busy_workers;
    size_t n_blocked;    /* shards */
    const char *trouble; /* why reads fail now, one line without values of items; NULL: they do not */

    struct sl_vitals_shard *shards; /* those that are listed: parents before children */
    size_t n_shards;
    struct sl_vitals_route *routes; /* those that our bootstrap or pipeline has reported */
    size_t n_routes;
};

/* Where snapshots are put. */
struct sl_vitals_board;

struct sl_vitals_board *sl_vitals_board_new(void);
void sl_vitals_board_destroy(struct sl_vitals_board *board); /* NULL is fine */

/* Copies the snapshot, with all that it points to. The engine's thread. */
void sl_vitals_publish(struct sl_vitals_board *board, const struct sl_vitals *now);

/* The newest snapshot, copied into `arena`; false: there is none yet. Any thread. */
bool sl_vitals_take(struct sl_vitals_board *board, struct sl_arena *arena, struct sl_vitals *out);

#endif
