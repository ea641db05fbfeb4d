/* What stands around the engine of tail in its tests (engine_world.h): what a test sets and sees, and
 * a keeper that does what it says. */
#ifndef SL_TESTS_LIVE_TAIL_ENGINE_PARTS_H
#define SL_TESTS_LIVE_TAIL_ENGINE_PARTS_H

#include "tests/live/tail/stream_world.h"

#include "live/tail/engine.h"

#include <pthread.h>
#include <unistd.h>

#define WORKERS    4
#define TEXT_BYTES 16384
#define STEPS_MOST 100000 /* then a run that has not ended is told to */

struct kept {
    char shard[32], after[48];
    int64_t since_ms;
    bool is_done, is_known;
};

static struct engine_world {
    struct scripted_server *server;
    struct sl_live *live;
    struct sl_worker_kind kind;
    struct own_worker {
        struct sl_worker base;
        bool is_cancelled;
    } workers[WORKERS];
    struct sl_keeper_ops ops;
    struct sl_vitals_board *board;
    struct sl_esm_settings settings;
    struct sl_engine_options options;
    struct sl_engine_result result;
    int bell;
    volatile sig_atomic_t stop;
    int64_t began_ms, took_ms;
    char *said; /* what it wrote to standard error */

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    size_t steps;
    bool is_stuck;
    void (*step)(const char *operation);

    /* The keeper. */
    struct kept places[SHARDS];
    size_t n_places;
    struct {
        enum sl_keeper_event_kind kind;
        size_t place;
    } events[4 * SHARDS];
    size_t n_events;
    const char *others; /* shards that are not given: " a b " */
    int64_t until_ms;
    char saved[TEXT_BYTES]; /* "a@3 a@3. ": with a dot it is done */
    size_t n_listings, n_listed, least_listed, n_found;
    int64_t through_ms;
    bool has_gone_back;   /* it, or a place */
    const char *followed; /* NULL: it cannot */

    /* The workers. */
    char handled[TEXT_BYTES]; /* " 1 2 3 " */
    char given[TEXT_BYTES];   /* "2:4 ": the worker, and the first record of its batch */
    int64_t task_until_ms;    /* of the last one */
    unsigned holds;           /* batches that begin below this number wait until they are broken off */
    bool is_deaf;             /* they are not */
    bool was_closed;          /* the pool, although one had not ended */
    size_t held, cancelled;
    int64_t takes_ms;           /* of each batch */
    unsigned fails, fail_times; /* the batch that begins with this one fails so often */
    size_t open_fails;          /* so many openings of workers but the first fail */
} e;

static inline bool has_word(const char *text, const char *word)
{
    char spaced[64];
    snprintf(spaced, sizeof(spaced), " %s ", word);
    return text && strstr(text, spaced);
}

/* ---- the keeper ---- */

static inline struct kept *place_of(const char *shard)
{
    for (size_t i = 0; i < e.n_places; i++)
        if (strcmp(e.places[i].shard, shard) == 0)
            return &e.places[i];
    struct kept *made = &e.places[e.n_places++];
    *made = (struct kept){.is_known = false};
    snprintf(made->shard, sizeof(made->shard), "%s", shard);
    return made;
}

static inline void ring(void)
{
    (void)!write(e.bell, &(uint64_t){1}, sizeof(uint64_t));
}

static inline void release(void)
{
    e.holds = 0;
    pthread_cond_broadcast(&e.changed);
}

static inline void stop(void)
{
    bool is_new = !e.stop;
    e.stop = 1;
    if (is_new)
        ring();
}

static inline void tell(enum sl_keeper_event_kind kind, const char *shard)
{
    e.events[e.n_events].kind = kind;
    e.events[e.n_events++].place = (size_t)(place_of(shard) - e.places);
    ring();
}

static inline void keeper_listed(void *self, const struct sl_keeper_listing *listing)
{
    (void)self;
    pthread_mutex_lock(&e.mutex);
    e.n_listings++;
    e.n_listed = listing->n;
    e.least_listed = e.n_listings == 1 || listing->n < e.least_listed ? listing->n : e.least_listed;
    for (size_t i = 0; i < listing->n; i++) {
        struct kept *place = place_of(listing->shards[i].id);
        if (place->is_known)
            continue;
        place->is_known = true;
        if (!place->after[0] && listing->is_from_latest)
            place->since_ms = listing->now_ms;
        if (!has_word(e.others, place->shard))
            tell(SL_KEEPER_GAINED, place->shard);
        if (place->is_done)
            tell(SL_KEEPER_ENDED, place->shard);
    }
    pthread_mutex_unlock(&e.mutex);
}

static inline void keeper_found(void *self, const struct sl_keeper_shard *shards, size_t n)
{
    (void)self;
    pthread_mutex_lock(&e.mutex);
    for (size_t i = 0; i < n; i++) {
        struct kept *place = place_of(shards[i].id);
        e.n_found++;
        assert_false(place->is_known);
        place->is_known = true;
        tell(SL_KEEPER_GAINED, place->shard);
    }
    pthread_mutex_unlock(&e.mutex);
}

static inline void keeper_save(void *self, const struct sl_keeper_place *places, size_t n)
{
    (void)self;
    pthread_mutex_lock(&e.mutex);
    for (size_t i = 0; i < n; i++) {
        struct kept *place = place_of(places[i].shard);
        bool was_done = place->is_done;
        e.has_gone_back |=
            places[i].after && strtoul(places[i].after, NULL, 10) < strtoul(place->after, NULL, 10);
        snprintf(place->after, sizeof(place->after), "%s", places[i].after ? places[i].after : "");
        place->is_done = places[i].is_done;
        if (place->is_done && !was_done)
            tell(SL_KEEPER_ENDED, place->shard);
        snprintf(e.saved + strlen(e.saved), sizeof(e.saved) - strlen(e.saved), "%s@%s%s ", place->shard,
                 place->after, place->is_done ? "." : "");
    }
    pthread_mutex_unlock(&e.mutex);
}

static inline void keeper_save_through(void *self, int64_t through_ms)
{
    (void)self;
    pthread_mutex_lock(&e.mutex);
    e.has_gone_back |= through_ms < e.through_ms;
    e.through_ms = through_ms;
    pthread_mutex_unlock(&e.mutex);
}

/* Each turn of the engine, and each request. */
static inline void step(const char *operation)
{
    if (e.steps++ == STEPS_MOST) {
        e.is_stuck = true;
        release();
        stop();
    }
    if (e.step && !e.is_stuck)
        e.step(operation);
}

static inline bool keeper_take(void *self, struct sl_keeper_event *out)
{
    static struct kept told;
    (void)self;
    pthread_mutex_lock(&e.mutex);
    step("turn");
    bool has_one = e.n_events > 0;
    if (has_one) {
        told = e.places[e.events[0].place];
        *out = (struct sl_keeper_event){
            .kind = e.events[0].kind,
            .shard = told.shard,
            .place = {.shard = told.shard,
                      .after = told.after[0] ? told.after : NULL,
                      .since_ms = told.since_ms,
                      .is_done = told.is_done},
            .text = "the keeper's own text",
        };
        memmove(e.events, e.events + 1, --e.n_events * sizeof(e.events[0]));
    }
    pthread_mutex_unlock(&e.mutex);
    return has_one;
}

static inline int64_t keeper_until_ms(void *self, const char *shard)
{
    (void)self;
    (void)shard;
    pthread_mutex_lock(&e.mutex);
    int64_t until_ms = e.until_ms;
    pthread_mutex_unlock(&e.mutex);
    return until_ms;
}

static inline bool keeper_follow(void *self, const char *stream_arn, struct sl_error *error)
{
    (void)self;
    pthread_mutex_lock(&e.mutex);
    bool can = e.followed && strcmp(e.followed, stream_arn) == 0;
    e.n_places = e.n_events = 0;
    pthread_mutex_unlock(&e.mutex);
    if (!can)
        (void)sl_fail(error, SL_REJECT, "Other", "it is another's");
    return can;
}

#endif
