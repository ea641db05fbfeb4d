/* Who keeps how far each shard has been handled, and who says which shards are this process's.
 *
 * There are two: a checkpoint file with a lock (keeper_file.h), where every shard is ours; and a table of
 * leases (live/lease/), where a process owns some of the shards, and gains and loses them at any time.
 *
 * What the engine promises to a keeper:
 * - It calls from one thread. `until_ms` alone is called from other threads too.
 * - It handles a shard only between SL_KEEPER_GAINED and SL_KEEPER_LOST, `drop` or `close`, and only after
 *   SL_KEEPER_ENDED of the shard's parent (a parent that the stream does not list, and that nobody has, is
 *   ended). It reads the shard from the place that came with SL_KEEPER_GAINED.
 * - No invocation with a shard's records begins unless `until_ms` of the shard is in the future. One that is
 *   under way is killed, with the process that it runs in, before that moment: also when SL_KEEPER_LOST comes
 *   first. Its deadline is never later than that moment, so that a process which was stopped together with
 *   this one begins no request after it went on.
 * - `save` is called after the effects of every record below the place are in their targets, or given up.
 *   The places of one shard never go back. A shard's last one has `is_done`.
 *
 * What a keeper promises:
 * - No function but `open` and `close` waits for a disk or a network. What they learn comes as events; the
 *   keeper writes to the descriptor given to `open` (an eventfd) whenever there is one.
 * - A saved place is durable some time later; places of one shard are written in their order, and may be
 *   merged into the newest. SL_KEEPER_ENDED comes only when the shard's end can no longer be lost while a
 *   place of one of its children is kept.
 * - After SL_KEEPER_LOST it drops what it has not yet written of that shard.
 * - What cannot be mended (the file's disk is full, the table is gone, no permission) is one
 *   SL_KEEPER_FAILED with a text for the user; the engine then ends with exit status 1. What can be is tried
 *   again by the keeper, and is said once. */
#ifndef SL_LIVE_TAIL_KEEPER_H
#define SL_LIVE_TAIL_KEEPER_H

#include "base/arena.h"
#include "base/error.h"

/* How far one shard has been handled. */
struct sl_keeper_place {
    const char *shard;
    const char *after; /* sequence number of the last record that was handled; NULL: none yet */
    int64_t since_ms; /* `after` is NULL: begin with the records made at this wall time; 0: with the oldest */
    bool is_done;     /* handled to its end */
    int64_t through_ms; /* its changes before this wall time are handled; 0: not known */
};

/* A shard of the stream, as DescribeStream lists it. */
struct sl_keeper_shard {
    const char *id, *parent; /* "" when it has none */
    bool is_parent_listed;
    bool is_closed; /* no record will be added */
};

enum sl_keeper_event_kind {
    SL_KEEPER_GAINED, /* `place` says where to begin; with is_done there is nothing to read */
    SL_KEEPER_LOST,   /* it must no longer be handled: kill what runs with its records, save nothing */
    SL_KEEPER_ENDED,  /* the shard is done, whoever has done it: its children may begin */
    SL_KEEPER_FAILED, /* `text`: the keeper cannot go on */
};

/* Everything is borrowed until the next call of `take`. */
struct sl_keeper_event {
    enum sl_keeper_event_kind kind;
    const char *shard; /* also in `place` */
    struct sl_keeper_place place;
    const char *text;
};

struct sl_keeper_listing {
    const struct sl_keeper_shard *shards; /* parents before children */
    size_t n;
    int64_t now_ms; /* wall time of the listing */
    /* Where a shard begins that has no place yet. Only the first listing of a process has it true, with
     * --from latest: shards that are open begin at now_ms, closed ones are done. Children that are listed
     * later begin with their oldest record. A keeper ignores it when it knows places of this stream. */
    bool is_from_latest;
};

struct sl_keeper_ops {
    const char *name; /* for messages: "--checkpoint orders.json", "--leases dynamodb://orders-leases" */

    /* Proves that places can be kept (the path can be written and is locked; the table is there, and is this
     * stream's), and reads what is kept. `bell` is borrowed until `close`. SL_REJECT: a text for the user
     * that names the holder where there is one, and says what to do. */
    enum sl_status (*open)(void *self, const char *stream_arn, int bell, struct sl_error *error) SL_MUST_USE;

    /* The stream's shards, whole, every time they were listed. GAINED events follow, now or at any time. A
     * shard that was kept and is listed no more stays kept as the keeper's rules say. */
    void (*listed)(void *self, const struct sl_keeper_listing *listing);

    /* Shards that were found before the next listing has them: children of one that has ended. NULL: they
     * wait for the listing. */
    void (*found)(void *self, const struct sl_keeper_shard *shards, size_t n);

    /* Notes places that have moved. Borrowed for the call. */
    void (*save)(void *self, const struct sl_keeper_place *places, size_t n);

    /* Every change of the table before this wall time is handled, by all shards that this process knows.
     * NULL: the keeper does not keep it. */
    void (*save_through)(void *self, int64_t through_ms);

    /* What was kept of it when it was opened; 0: nothing. NULL as well. */
    int64_t (*through)(void *self);

    /* Changes that were made before this wall time were not handled, and will not be: the stream has them no
     * more, or they were given up. NULL: the keeper does not keep since when none was missed. */
    void (*missed)(void *self, int64_t now_ms);

    /* The stream is at its end, every shard of it is done, and the table has another: from now on places are
     * of that one; a listing follows. False, with a text for the user: not with this keeper. NULL: never. */
    bool (*follow)(void *self, const char *stream_arn, struct sl_error *error);

    /* The next event. False: there is none. */
    bool (*take)(void *self, struct sl_keeper_event *out);

    /* Until when the shard is certainly ours, on the steady clock (sl_clock_system, CLOCK_BOOTTIME), the
     * margin already taken off; INT64_MAX: for good; 0: it is not ours. Moves on with each renewal. Called
     * from any thread; never waits for more than a short mutex. */
    int64_t (*until_ms)(void *self, const char *shard);

    /* The shard is handled no more, and its last place was saved: another may have it. NULL: nothing to do.
     * Only called while the process ends, or when the stream is replaced. */
    void (*drop)(void *self, const char *shard);

    /* Writes what was saved and drops what is held, for at most `wait_ms`; then frees itself. Without a
     * successful `open` before it: only frees. SL_FATAL: something that was saved is not durable. */
    enum sl_status (*close)(void *self, int64_t wait_ms, struct sl_error *error) SL_MUST_USE;
};

struct sl_keeper {
    const struct sl_keeper_ops *ops;
    void *self;
};

#endif
