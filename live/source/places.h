/* How far each shard of a live stream has been handled, as the checkpoint file keeps it.
 *
 * {"stream":"arn:...","through":"2026-11-20T21:04:00.123Z","shards":{
 *   "shardId-...":{"after":"111..."},      its records up to this sequence number are handled
 *   "shardId-...":{"since":"2026-..."},    none is; it begins with the records of this moment (--from latest)
 *   "shardId-...":{"done":true},           it is handled to its end
 *   "shardId-...":{"after":"111...","unlisted":"2026-..."}}}   since when the stream does not list it
 *
 * A shard without an entry begins with its oldest record. "through": every change of the table before this
 * time is handled. "complete_since": every change after this time was handled or will be; a gap begins it
 * anew. */
#ifndef SL_LIVE_SOURCE_PLACES_H
#define SL_LIVE_SOURCE_PLACES_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/map.h"
#include "base/time.h"

struct sl_place {
    char *id;
    char *after;         /* sequence number of the last handled record; NULL: none yet */
    int64_t since_ms;    /* with `after` NULL: it begins there; 0: with its oldest record */
    bool is_done;        /* handled to its end */
    int64_t unlisted_ms; /* since when the stream does not list it; 0: it does */
    unsigned misses;     /* listings in a row that lacked it, of this process */
    bool is_known;       /* the caller's */
};

struct sl_places {
    struct sl_place *list;
    size_t n, room;
    struct sl_arena *arena; /* of `index` */
    struct sl_map index;    /* id -> its place in `list` */
    char *stream_arn;
    int64_t through_ms;        /* 0: not known */
    int64_t complete_since_ms; /* every change since this wall time was handled, or will be; 0: not known */
};

/* Reads the file, if it exists; without a `path` or a file there are none. SL_REJECT: it is damaged, or
 * belongs to another stream; with `stream_arn` NULL any stream will do. */
enum sl_status sl_places_read(struct sl_places *places, const char *path, const char *stream_arn,
                              struct sl_error *error) SL_MUST_USE;
void sl_places_clean_up(struct sl_places *places);

struct sl_place *sl_places_find(const struct sl_places *places, const char *id); /* NULL: it has none */
struct sl_place *sl_places_add(struct sl_places *places, const char *id);        /* moves the others */

/* A place that no listing had, twice in a row, and that is done, or has not been listed for 48 hours, is
 * dropped: a list may lack a shard for a while, and a stream keeps nothing for longer than 24 hours. */
void sl_places_drop_old(struct sl_places *places, int64_t now_ms);

/* Replaces one of a place's texts. */
void sl_places_set(char **text, const char *value);

/* The file's text. */
void sl_places_write(const struct sl_places *places, struct sl_buffer *out);

#endif
