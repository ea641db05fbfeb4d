/* The thread of the keeper of leases: takes over what the engine wants, lets the book do what is due, and
 * tells the engine what has changed. */
#include "replay/lease/leases_private.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IDLE_MS  500 /* how long a place may wait until the book hears of it */
#define RETRY_MS 300 /* after a failure */

/* ---- shards that the engine knows ---- */

static size_t place_of(const struct sl_leases *l, const char *id)
{
    size_t low = 0, high = l->n_shards;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(l->shards[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct sl_leases_shard *sl_leases_find(const struct sl_leases *l, const char *id)
{
    size_t i = place_of(l, id);
    return i < l->n_shards && strcmp(l->shards[i].id, id) == 0 ? &l->shards[i] : NULL;
}

static struct sl_leases_shard *find_or_add(struct sl_leases *l, const char *id)
{
    size_t i = place_of(l, id);
    if (i < l->n_shards && strcmp(l->shards[i].id, id) == 0)
        return &l->shards[i];
    if (l->n_shards == l->room) {
        l->room = l->room ? l->room * 2 : 64;
        l->shards = realloc(l->shards, l->room * sizeof(*l->shards));
    }
    char *name = strdup(id);
    if (!l->shards || !name)
        sl_die("out of memory: shards");
    memmove(&l->shards[i + 1], &l->shards[i], (l->n_shards - i) * sizeof(*l->shards));
    l->n_shards++;
    l->shards[i] = (struct sl_leases_shard){.id = name};
    return &l->shards[i];
}

/* ---- events; under the mutex ---- */

static char *put(char **at, const char *text)
{
    char *made = *at;
    if (!text)
        return NULL;
    memcpy(made, text, strlen(text) + 1);
    *at += strlen(text) + 1;
    return made;
}

static void add_event(struct sl_leases *l, const struct sl_keeper_event *from)
{
    size_t bytes = 3;
    bytes += from->shard ? strlen(from->shard) : 0;
    bytes += from->place.after ? strlen(from->place.after) : 0;
    bytes += from->text ? strlen(from->text) : 0;
    struct sl_leases_event *made = malloc(sizeof(*made) + bytes);
    if (!made)
        sl_die("out of memory: an event of leases");
    char *at = (char *)(made + 1);
    made->next = NULL;
    made->event = *from;
    made->event.shard = made->event.place.shard = put(&at, from->shard);
    made->event.place.after = put(&at, from->place.after);
    made->event.text = put(&at, from->text);
    if (l->last_event)
        l->last_event->next = made;
    else
        l->first_event = made;
    l->last_event = made;
}

static void lose(struct sl_leases *l, struct sl_leases_shard *shard)
{
    add_event(l, &(struct sl_keeper_event){.kind = SL_KEEPER_LOST, .shard = shard->id});
    shard->hold = 0;
    free(shard->saved);
    shard->saved = NULL;
}

static void finish(struct sl_leases *l, struct sl_leases_shard *shard)
{
    if (!shard->is_ended)
        add_event(l, &(struct sl_keeper_event){.kind = SL_KEEPER_ENDED, .shard = shard->id});
    shard->is_ended = true;
    shard->hold = 0;
    free(shard->saved);
    shard->saved = NULL;
}

/* Where reading begins. KCL alone knows the moment of its AT_TIMESTAMP: from the oldest, nothing is lost. */
static void hand_out(struct sl_leases *l, struct sl_leases_shard *shard, const struct sl_book_lease *lease)
{
    enum sl_lease_place place = sl_lease_place(lease->lease->checkpoint);
    struct sl_keeper_event event = {.kind = SL_KEEPER_GAINED, .shard = shard->id};
    if (place == SL_LEASE_AFTER)
        event.place.after = lease->lease->checkpoint;
    if (place == SL_LEASE_LATEST)
        event.place.since_ms = lease->lease->since_ms;
    if (place == SL_LEASE_AT_TIMESTAMP)
        fprintf(
            stderr,
            "sluice tail: %s: %s begins at a moment that only KCL's configuration knows (AT_TIMESTAMP); it "
            "is read from its oldest record\n",
            l->options.target, shard->id);
    add_event(l, &event);
    shard->hold = lease->hold;
    shard->is_ended = shard->is_dropped = false;
}

/* What is over, first: a child's beginning follows its parent's end. */
static void tell_ends(struct sl_leases *l)
{
    for (size_t i = 0; i < sl_book_count(l->book); i++) {
        struct sl_book_lease lease = sl_book_at(l->book, i);
        struct sl_leases_shard *shard = find_or_add(l, lease.lease->key);
        bool is_done = sl_book_is_done(l->book, shard->id);
        if (is_done && !lease.hold)
            finish(l, shard);
        else if (shard->hold && shard->hold != lease.hold)
            lose(l, shard);
        shard->until_ms = lease.hold ? lease.until_ms : 0;
    }
}

static void tell_beginnings(struct sl_leases *l)
{
    for (size_t i = 0; i < sl_book_count(l->book); i++) {
        struct sl_book_lease lease = sl_book_at(l->book, i);
        struct sl_leases_shard *shard = sl_leases_find(l, lease.lease->key);
        if (!shard->hold && lease.is_handed_out && !sl_lease_is_done(lease.lease))
            hand_out(l, shard, &lease);
    }
}

static bool is_in_book(const struct sl_leases *l, const char *id)
{
    for (size_t low = 0, high = sl_book_count(l->book); low < high;) {
        size_t middle = (low + high) / 2;
        int order = strcmp(sl_book_at(l->book, middle).lease->key, id);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* Shards without a lease: one that is listed needs none, because it is handled already, or is not wanted. One
 * that is listed no more is forgotten. */
static void tell_of_those_without(struct sl_leases *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->n_shards; i++) {
        struct sl_leases_shard *shard = &l->shards[i];
        if (!is_in_book(l, shard->id)) {
            if (shard->hold)
                lose(l, shard);
            if (shard->is_listed)
                finish(l, shard);
            if (!shard->is_listed) {
                free(shard->id);
                free(shard->saved);
                continue;
            }
        }
        l->shards[kept++] = *shard;
    }
    l->n_shards = kept;
}

/* ---- one round ---- */

static void note_listed(struct sl_leases *l, const struct sl_leases_listing *listing)
{
    for (size_t i = 0; i < l->n_shards; i++)
        l->shards[i].is_listed = false;
    for (size_t i = 0; i < listing->book.n; i++)
        find_or_add(l, listing->book.shards[i].id)->is_listed = true;
}

static void take_over(struct sl_leases *l)
{
    for (size_t i = 0; i < l->n_shards; i++) {
        struct sl_leases_shard *shard = &l->shards[i];
        if (shard->saved && shard->hold)
            sl_book_save(l->book, shard->id, shard->hold, shard->saved);
        free(shard->saved);
        shard->saved = NULL;
        if (shard->is_dropped)
            sl_book_drop(l->book, shard->id, shard->hold);
    }
}

/* Its shards come with the next listing. */
static void follow(struct sl_leases *l, struct sl_leases_listing **listing)
{
    if (!l->next_stream)
        return;
    if (*listing)
        sl_arena_destroy((*listing)->arena);
    *listing = NULL;
    sl_book_follow(l->book, l->next_stream);
    free(l->stream_arn);
    l->stream_arn = l->next_stream;
    l->next_stream = NULL;
    for (size_t i = 0; i < l->n_shards; i++) {
        free(l->shards[i].id);
        free(l->shards[i].saved);
    }
    l->n_shards = 0;
}

static void say(struct sl_leases *l, const char *text)
{
    if (strcmp(l->said, text) == 0)
        return;
    snprintf(l->said, sizeof(l->said), "%s", text);
    fprintf(stderr, "sluice tail: %s%s\n", *text ? text : l->options.target,
            *text ? "" : ": the table answers again");
}

static void fail(struct sl_leases *l, const char *text)
{
    l->is_failed = true;
    pthread_mutex_lock(&l->mutex);
    add_event(l, &(struct sl_keeper_event){.kind = SL_KEEPER_FAILED, .text = text});
    pthread_mutex_unlock(&l->mutex);
}

/* True: the listing was taken over, and need not be again. */
static void list(struct sl_leases *l, struct sl_leases_listing **listing, enum sl_status *status,
                 struct sl_error *error)
{
    if (!*listing)
        return;
    *status = sl_book_list(l->book, &(*listing)->book, error);
    if (*status == SL_RETRY)
        return;
    sl_arena_destroy((*listing)->arena);
    *listing = NULL;
}

static void publish(struct sl_leases *l, bool has_listed)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&l->mutex);
    tell_ends(l);
    if (has_listed)
        tell_of_those_without(l);
    tell_beginnings(l);
    bool has_events = l->first_event != NULL;
    pthread_mutex_unlock(&l->mutex);
    if (has_events && write(l->bell, &one, sizeof(one)) < 0)
        return; /* it is full: it rings already */
}

static void rest(const struct sl_leases *l, int64_t ms)
{
    struct pollfd poke = {.fd = l->poke, .events = POLLIN};
    uint64_t count;
    if (poll(&poke, 1,
             ms < 0         ? 0
             : ms > IDLE_MS ? IDLE_MS
                            : (int)ms) > 0 &&
        read(l->poke, &count, sizeof(count)) < 0)
        return; /* somebody else was faster: nobody is */
}

/* The last one: what was saved is written and every lease given back, while there is time. */
static void end(struct sl_leases *l)
{
    struct sl_clock *clock = sl_clock_system();
    struct sl_error error = SL_NO_ERROR;
    sl_book_hurry(l->book, l->close_by_ms);
    for (size_t i = 0; i < sl_book_count(l->book); i++) {
        struct sl_book_lease lease = sl_book_at(l->book, i);
        sl_book_drop(l->book, lease.lease->key, lease.hold);
    }
    while (!sl_book_flush(l->book, &error) && clock->now_ms(clock) < l->close_by_ms && !l->is_failed)
        rest(l, RETRY_MS);
    for (size_t i = 0; i < sl_book_count(l->book); i++)
        l->n_unwritten += sl_book_at(l->book, i).pending != NULL;
}

static enum sl_status turn(struct sl_leases *l, struct sl_leases_listing **listing, int64_t *next_ms)
{
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = SL_OK;
    list(l, listing, &status, &error);
    if (status <= SL_RETRY) {
        enum sl_status second = sl_book_turn(l->book, next_ms, &error);
        status = second > status ? second : status;
    }
    if (status > SL_RETRY)
        fail(l, error.text);
    else if (status == SL_RETRY)
        say(l, error.text);
    else
        say(l, sl_book_trouble(l->book) ? sl_book_trouble(l->book) : "");
    return status;
}

void *sl_leases_run(void *leases)
{
    struct sl_leases *l = leases;
    struct sl_clock *clock = sl_clock_system();
    struct sl_leases_listing *listing = NULL;
    bool has_listed = false;
    for (;;) {
        pthread_mutex_lock(&l->mutex);
        bool is_new = l->listing != NULL;
        follow(l, &listing);
        if (is_new) {
            if (listing)
                sl_arena_destroy(listing->arena);
            listing = l->listing;
            l->listing = NULL;
            note_listed(l, listing);
        }
        take_over(l);
        bool is_closing = l->is_closing;
        pthread_mutex_unlock(&l->mutex);
        if (is_closing)
            break;
        int64_t next_ms = clock->now_ms(clock) + IDLE_MS;
        enum sl_status status = l->is_failed ? SL_OK : turn(l, &listing, &next_ms);
        has_listed |= is_new && !listing;
        publish(l, has_listed && !listing);
        rest(l, status == SL_RETRY ? RETRY_MS : next_ms - clock->now_ms(clock));
    }
    end(l);
    if (listing)
        sl_arena_destroy(listing->arena);
    return NULL;
}
