/* The inside of a book. */
#ifndef SL_LIVE_LEASE_BOOK_PRIVATE_H
#define SL_LIVE_LEASE_BOOK_PRIVATE_H

#include "live/lease/book.h"
#include "live/lease/share.h"

#define SL_BOOK_LEASES_MAX 100000 /* as many shards as a listing may have (live/source/live.c) */

struct sl_book_entry {
    struct sl_lease lease; /* as it was last seen or written; all that it points to is of malloc's */
    int64_t moved_ms;      /* when another's counter was first seen as it is */
    bool was_seen;         /* by the reading that is going on */
    bool is_bad;           /* the row is not a lease: nobody takes it, and its children wait */
    unsigned unlisted;     /* listings in a row that lacked the shard */

    /* While it is ours. */
    uint64_t hold; /* 0: it is not */
    int64_t until_ms, handed_ms, written_ms;
    char *pending;
    bool is_dropped; /* give it back */
};

struct sl_book {
    struct sl_book_options options;
    struct sl_book_entry *list; /* sorted by key */
    size_t n, room;
    uint64_t holds, lost;
    int64_t deadline_ms; /* of all requests */
    bool has_made;       /* leases, since it looked: it looks soon, and takes its share */
    int64_t looked_ms;   /* when the table was read, or could not be read, the last time */
    char *trouble;
};

struct sl_book_entry *sl_book_find(const struct sl_book *book, const char *key);
/* The entry is as the row says. Its strings are copied. */
void sl_book_take_over(struct sl_book_entry *entry, const struct sl_lease *lease);
struct sl_book_entry *sl_book_add(struct sl_book *book, const struct sl_lease *lease);
void sl_book_clean_up_entry(struct sl_book_entry *entry);
void sl_book_lose(struct sl_book *book, struct sl_book_entry *entry);
int64_t sl_book_now(const struct sl_book *book);

/* Whether a row belongs to this book: to its stream, or to nobody's. SL_REJECT: to another table's. */
enum sl_status sl_book_check_stream(const struct sl_book *book, const struct sl_lease *lease, bool *is_ours,
                                    struct sl_error *error) SL_MUST_USE;

/* book_look.c: reads the table. `is_first`: a row that is not a lease is refused; later it is noted. */
enum sl_status sl_book_look(struct sl_book *book, bool is_first, struct sl_error *error) SL_MUST_USE;

/* book_write.c. `is_all`: renewals and checkpoints that are not due yet too. */
enum sl_status sl_book_write(struct sl_book *book, bool is_all, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_book_take(struct sl_book *book, struct sl_error *error) SL_MUST_USE;
/* When the entry wants to be written. */
int64_t sl_book_due(const struct sl_book *book, const struct sl_book_entry *entry);

/* How long a request to the table may take: less than what is left after a renewal that failed. */
struct sl_call sl_book_call(const struct sl_book *book, struct sl_arena *arena);

#endif
