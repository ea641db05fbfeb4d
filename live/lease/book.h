/* What one worker knows of a lease table, and what it holds of it: KCL 1.x's protocol, on a clock and a table
 * port that are given. One thread uses a book.
 *
 * The rules, and why they are enough:
 * - Every write is an UpdateItem that is conditional on the counter that was last seen, and adds one to it.
 *   So of two writers one fails, a late repetition of a request changes nothing, and attributes of others
 *   survive. Checkpoint and renewal of a lease are one write: they cannot overtake each other.
 * - A holder counts a lease as its own until `failover_ms` after it *began* its last successful write, less a
 *   margin (a fifth), by its own steady clock. An observer takes a lease when the counter has not moved for
 *   `failover_ms` since the observer *saw* it, by the observer's clock. What was seen was written before, so
 *   the holder has stopped before the observer takes, if their clocks run equally fast within the margin.
 *   Nobody's time of day is compared.
 * - A lease that is stolen from a worker that renews is held at once, but is handed out `failover_ms` later:
 *   by then its former holder has stopped, whether it noticed or not. Until then it is not given back.
 * - An unowned lease was given back by a worker that had stopped before: it is handed out at once.
 * - A holder that has not written in time has lost the lease, and never renews it: it takes it again as
 *   anybody would.
 *
 * KCL steals without waiting. Beside workers of KCL, a shard that KCL steals may have two readers for a third
 * of the failover time. */
#ifndef SL_LIVE_LEASE_BOOK_H
#define SL_LIVE_LEASE_BOOK_H

#include "base/clock.h"
#include "live/lease/lease.h"
#include "sinks/port.h"

struct sl_book;

#define SL_BOOK_FAILOVER_LEAST_MS 1000
#define SL_BOOK_RENEW_PART        3    /* renewed every third of the failover time, as KCL does */
#define SL_BOOK_LOOK_PART         2    /* the table is read every half; KCL: every double one */
#define SL_BOOK_MARGIN_PART       5    /* what a holder takes off */
#define SL_BOOK_SAVE_MS           1000 /* a shard's checkpoint is written once a second at most */
#define SL_BOOK_KEEP_MS           ((int64_t)48 * 3600 * 1000) /* the age at which a finished lease may go */

struct sl_book_options {
    struct sl_table_port *port; /* borrowed */
    struct sl_clock *clock;     /* borrowed */
    const char *table;          /* for messages; borrowed */
    const char *worker;     /* unlike every other worker's name, also that of this one's last run; borrowed
                             */
    const char *stream_arn; /* borrowed */
    int64_t failover_ms;
};

struct sl_book *sl_book_new(const struct sl_book_options *options);
void sl_book_destroy(struct sl_book *book); /* writes nothing; NULL is fine */

/* Reads the table for the first time. SL_REJECT: it has a row that is not a lease of KCL 1.x, leases of
 * another table's stream, or unfinished leases of another stream of this table. */
enum sl_status sl_book_open(struct sl_book *book, struct sl_error *error) SL_MUST_USE;

struct sl_book_shard {
    const char *id, *parent; /* "" when it has none */
    bool is_closed;
};

struct sl_book_listing {
    const struct sl_book_shard *shards; /* parents before children */
    size_t n;
    int64_t now_ms;      /* wall time of the listing */
    bool is_from_latest; /* shards that follow no lease begin at now_ms; closed ones get none */
};

/* Creates the leases that the shards need, parents' first, and deletes finished ones of shards that are
 * listed no more and are old enough. SL_REJECT, "AnotherStream": the table has leases of young shards that
 * the stream does not list. */
enum sl_status sl_book_list(struct sl_book *book, const struct sl_book_listing *listing,
                            struct sl_error *error) SL_MUST_USE;

/* Creates leases of shards that were found before a listing has them: children of one that has ended. A shard
 * waits for the listing when its parent has no lease, or a child of it has one. */
enum sl_status sl_book_found(struct sl_book *book, const struct sl_book_shard *shards, size_t n,
                             struct sl_error *error) SL_MUST_USE;

/* Does what is due: gives up what was not renewed in time, writes renewals, checkpoints and drops, reads the
 * table, takes leases. `*next_ms`: when it wants to be called again (steady time); earlier calls do no harm.
 * SL_RETRY: the table could not be reached, and is asked again; SL_REJECT, SL_FATAL: it cannot go on. */
enum sl_status sl_book_turn(struct sl_book *book, int64_t *next_ms, struct sl_error *error) SL_MUST_USE;

/* The same, but what was saved is written now. True: nothing that was saved is left unwritten. */
bool sl_book_flush(struct sl_book *book, struct sl_error *error);

/* From now on the book is of this stream, the table's next one; `stream_arn` is borrowed. What is held is
 * given up without a write: every shard of the last stream is done. */
void sl_book_follow(struct sl_book *book, const char *stream_arn);

/* From now on no request reaches beyond this moment (steady time). */
void sl_book_hurry(struct sl_book *book, int64_t deadline_ms);

/* One lease as the book sees it. */
struct sl_book_lease {
    const struct sl_lease *lease;
    uint64_t hold;       /* 0: not ours; else a number that no other holding of this book has */
    int64_t until_ms;    /* ours until then, steady time */
    bool is_handed_out;  /* ours, nobody else's for certain, and its parents are done */
    int64_t handed_ms;   /* ours, but not before this moment */
    const char *pending; /* a checkpoint that is not written yet; NULL: none */
};

size_t sl_book_count(const struct sl_book *book);
/* Borrowed until the book is called again. */
struct sl_book_lease sl_book_at(const struct sl_book *book, size_t i);

/* Whether children of the shard may begin: its lease says SHARD_END, or it has none. */
bool sl_book_is_done(const struct sl_book *book, const char *shard);

/* Notes how far the shard is handled; `hold` from sl_book_at. A holding that is over is ignored. A place
 * before the last one too. */
void sl_book_save(struct sl_book *book, const char *shard, uint64_t hold, const char *checkpoint);

/* Gives the lease back with the next write; what was saved is written first. */
void sl_book_drop(struct sl_book *book, const char *shard, uint64_t hold);

/* A row that is not a lease, found after the book was opened; NULL: there is none. */
const char *sl_book_trouble(const struct sl_book *book);

/* How many leases were lost to others or to a table that could not be reached. */
uint64_t sl_book_lost(const struct sl_book *book);

#endif
