/* How far each shard of a live stream has been read, and the file that remembers it. */
#ifndef SL_REPLAY_PLACES_H
#define SL_REPLAY_PLACES_H

#include "base/arena.h"
#include "base/buffer.h"
#include "replay/live.h"

struct sl_place {
    char *id, *parent;
    char *after;               /* sequence number of the last record that was handled; NULL: none yet */
    char *iterator;            /* where the next read begins; NULL: to be asked for */
    bool is_done;              /* read and handled to its end */
    bool is_closed;            /* nothing more will be written */
    bool is_told;              /* the stream still tells of it */
    bool is_skipped_to_latest; /* its older records are not wanted */
};

struct sl_places {
    struct sl_place *list; /* parents before children */
    size_t n;
    const char *path; /* of the file; NULL: nothing is remembered */
    char *stream_arn;
};

/* Reads the file, when there is one. SL_REJECT: it is damaged, or of another stream. */
enum sl_status sl_places_open(struct sl_places *places, const char *path, const char *stream_arn,
                              struct sl_error *error) SL_MUST_USE;
void sl_places_clean_up(struct sl_places *places);

/* Takes in what the stream tells of; the number of shards that it no longer tells of although they were not
 * read to their end. With `from_latest`, shards begin at their end when none is known yet. */
size_t sl_places_update(struct sl_places *places, const struct sl_live_shard *shards, size_t n,
                        bool from_latest);

/* Whether its parent is through, so that it may be read. */
bool sl_places_is_ready(const struct sl_places *places, const struct sl_place *place);

/* Replaces one of a place's texts. */
void sl_place_set(char **text, const char *value);

/* Writes the file aside, syncs and renames it. */
enum sl_status sl_places_save(const struct sl_places *places, struct sl_error *error) SL_MUST_USE;

#endif
