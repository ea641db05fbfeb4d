/* How far each shard of a live stream has been handled, and the checkpoint file that keeps it. */
#ifndef SL_REPLAY_SOURCE_PLACES_H
#define SL_REPLAY_SOURCE_PLACES_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/time.h"
#include "replay/source/live.h"

struct sl_place {
    char *id, *parent;
    char *after;               /* sequence number of the last handled record; NULL: none yet */
    char *iterator;            /* where the next read begins; NULL: not asked for yet */
    bool is_done;              /* read and handled to its end */
    bool is_closed;            /* no record will be added */
    bool is_listed;            /* the stream still lists it */
    bool is_skipped_to_latest; /* its older records are skipped */
    int64_t through_ms;        /* its changes before this wall time are handled; 0: not known */
    unsigned empty_reads;      /* in a row */
    int64_t empty_since_ms;    /* the first of them */
    int64_t ended_ms;          /* when this process learnt that it is done */
};

struct sl_places {
    struct sl_place *list; /* parents before children */
    size_t n;
    const char *path; /* of the checkpoint file; NULL: nothing is saved */
    char *stream_arn;
    int64_t through_ms; /* every change of the table before this wall time is handled; 0: not known */
};

/* Reads the file, if it exists. SL_REJECT: it is damaged, or belongs to another stream. */
enum sl_status sl_places_open(struct sl_places *places, const char *path, const char *stream_arn,
                              struct sl_error *error) SL_MUST_USE;
void sl_places_clean_up(struct sl_places *places);

/* Takes over the stream's list of shards. Returns the number of shards that the stream no longer lists
 * although they were not handled to their end. With `from_latest`, and when no shard is known yet, all begin
 * at their end. */
size_t sl_places_update(struct sl_places *places, const struct sl_live_shards *shards, bool from_latest);

/* Whether the shard may be read: it has more records, and its parent is done. */
bool sl_places_is_ready(const struct sl_places *places, const struct sl_place *place);

/* Replaces one of a place's texts. */
void sl_places_set(char **text, const char *value);

/* One page of the place was read at `read_ms` (wall time) and handled; `last_ms`: when the change of its last
 * record was made, 0: there was none. */
void sl_places_handled(struct sl_place *place, int64_t read_ms, int64_t last_ms);

/* Makes through_ms what all places allow. True: it has moved. */
bool sl_places_through(struct sl_places *places, int64_t now_ms);

/* Replaces the checkpoint file, whole or not at all (sl_disk_replace). */
enum sl_status sl_places_save(const struct sl_places *places, struct sl_error *error) SL_MUST_USE;

#endif
