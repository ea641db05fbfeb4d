/* The inside of the keeper of leases: what its two threads share. */
#ifndef SL_REPLAY_LEASE_LEASES_PRIVATE_H
#define SL_REPLAY_LEASE_LEASES_PRIVATE_H

#include "replay/lease/book.h"
#include "replay/lease/leases.h"
#include "sinks/target.h"

#include <pthread.h>

struct sl_leases_listing {
    struct sl_arena *arena; /* it is in it */
    struct sl_book_listing book;
};

struct sl_leases_event {
    struct sl_leases_event *next;
    struct sl_keeper_event event; /* its texts follow in the same memory */
};

/* What the engine knows of a shard. */
struct sl_leases_shard {
    char *id;
    uint64_t hold; /* handed out under this number; 0: it is not */
    int64_t until_ms;
    bool is_ended, is_dropped, is_listed;
    char *saved; /* not yet taken over by the book; NULL: nothing */
};

struct sl_leases {
    struct sl_leases_options options;
    char worker[SL_LEASE_OWNER_BYTES];
    char *target;     /* with region and endpoint */
    char *stream_arn; /* the thread's, once it runs */
    struct sl_arena *arena;
    struct sl_vars vars;
    struct sl_log log;

    /* The thread's, once it runs. */
    struct sl_sinks sinks;
    struct sl_table_port *port;
    struct sl_book *book;
    bool is_failed;
    char said[SL_ERROR_TEXT_BYTES]; /* the last trouble; "": there is none */

    pthread_t thread;
    bool is_running;
    int bell, poke;

    pthread_mutex_t mutex; /* for all that follows */
    char *next_stream;     /* to follow; NULL: none */
    struct sl_leases_listing *listing;
    struct sl_leases_shard *shards; /* sorted by id */
    size_t n_shards, room;
    struct sl_leases_event *first_event, *last_event;
    bool is_closing;
    int64_t close_by_ms;
    size_t n_unwritten; /* after the thread's end */

    struct sl_leases_event *taken; /* the engine's: the last one that it took */
};

struct sl_leases_shard *sl_leases_find(const struct sl_leases *l, const char *id);

/* The thread. */
void *sl_leases_run(void *leases);

#endif
