/* The keeper of leases: the engine's thread notes what it wants, a thread of its own keeps the book, and what
 * that changes becomes events. */
#include "live/lease/leases.h"

#include "base/array.h"
#include "base/clean.h"
#include "live/lease/book.h"
#include "live/lease/lease_table.h"
#include "sinks/target.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct sl_leases_listing {
    struct sl_leases_listing *next; /* of those that were found */
    struct sl_arena *arena;         /* it is in it */
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
    struct sl_leases_listing *found; /* the newest first */
    struct sl_leases_shard *shards;  /* sorted by id */
    size_t n_shards, room;
    struct sl_leases_event *first_event, *last_event;
    bool is_closing;
    int64_t close_by_ms;
    size_t n_unwritten; /* after the thread's end */

    struct sl_leases_event *taken; /* the engine's: the last one that it took */
};

/* The thread of the keeper of leases: takes over what the engine wants, lets the book do what is due, and
 * tells the engine what has changed. */

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

static struct sl_leases_shard *leases_find(const struct sl_leases *l, const char *id)
{
    size_t i = place_of(l, id);
    return i < l->n_shards && strcmp(l->shards[i].id, id) == 0 ? &l->shards[i] : NULL;
}

static struct sl_leases_shard *find_or_add(struct sl_leases *l, const char *id)
{
    size_t i = place_of(l, id);
    if (i < l->n_shards && strcmp(l->shards[i].id, id) == 0)
        return &l->shards[i];
    l->shards = sl_array_fit(l->shards, l->n_shards + 1, &l->room, sizeof(*l->shards), "shards");
    char *name = strdup(id);
    if (!name)
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
        struct sl_leases_shard *shard = leases_find(l, lease.lease->key);
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

/* This listing and those behind it; NULL is fine. */
static void forget(struct sl_leases_listing *listing)
{
    for (struct sl_leases_listing *next; listing; listing = next) {
        next = listing->next;
        sl_arena_destroy(listing->arena);
    }
}

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
    forget(*listing);
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
    forget(*listing);
    *listing = NULL;
}

/* What fails here waits for the listing. */
static void take_found(struct sl_leases *l, struct sl_leases_listing *found)
{
    for (struct sl_leases_listing *at = found; at && !l->is_failed; at = at->next) {
        struct sl_error error = SL_NO_ERROR;
        if (sl_book_found(l->book, at->book.shards, at->book.n, &error) != SL_OK)
            say(l, error.text);
    }
    forget(found);
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

/* The thread. */
static void *leases_run(void *leases)
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
            forget(listing);
            listing = l->listing;
            l->listing = NULL;
            note_listed(l, listing);
        }
        take_over(l);
        struct sl_leases_listing *found = l->found;
        l->found = NULL;
        bool is_closing = l->is_closing;
        pthread_mutex_unlock(&l->mutex);
        if (is_closing) {
            forget(found);
            break;
        }
        int64_t next_ms = clock->now_ms(clock) + IDLE_MS;
        enum sl_status status = l->is_failed ? SL_OK : turn(l, &listing, &next_ms);
        take_found(l, found);
        has_listed |= is_new && !listing;
        publish(l, has_listed && !listing);
        rest(l, status == SL_RETRY ? RETRY_MS : next_ms - clock->now_ms(clock));
    }
    end(l);
    forget(listing);
    return NULL;
}

/* ---- options ---- */

static void name_worker(struct sl_leases *l)
{
    struct sl_clock *clock = sl_clock_system();
    char host[128] = "worker", name[SL_LEASE_OWNER_BYTES - 16];
    uint64_t random = clock->random(clock) ^ ((uint64_t)getpid() << 32);
    gethostname(host, sizeof(host) - 1);
    if (l->options.worker)
        snprintf(name, sizeof(name), "%s", l->options.worker);
    else
        snprintf(name, sizeof(name), "%s:%d", host, (int)getpid());
    for (char *p = name; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p > '~')
            *p = '?';
    snprintf(l->worker, sizeof(l->worker), "%s:%08x", name, (unsigned)(sl_random_step(&random) >> 32));
}

/* The target with the region and the endpoint that tail was given, unless it has its own. */
static void complete_target(struct sl_leases *l)
{
    const char *own = l->options.target, *region = l->options.region, *endpoint = l->options.endpoint;
    bool is_dynamodb = strncmp(own, "dynamodb:", strlen("dynamodb:")) == 0;
    bool adds_region = is_dynamodb && region && !strstr(own, "region=");
    bool adds_endpoint = is_dynamodb && endpoint && !strstr(own, "endpoint=");
    l->target = sl_arena_printf(l->arena, "%s%s%s%s%s%s", own,
                                (adds_region || adds_endpoint) && !strchr(own, '?') ? "?" : "",
                                adds_region ? "&region=" : "", adds_region ? region : "",
                                adds_endpoint ? "&endpoint=" : "", adds_endpoint ? endpoint : "");
    char *first = strstr(l->target, "?&");
    if (first)
        memmove(first + 1, first + 2, strlen(first + 2) + 1);
}

static enum sl_status check_options(const struct sl_leases_options *options, struct sl_error *error)
{
    if (sl_target_kind(sl_span_str(options->target)) != SL_PORT_TABLE)
        return sl_fail(error, SL_REJECT, "Usage",
                       "--leases is the target of a table, dynamodb://NAME, not \"%s\"", options->target);
    if (options->seconds &&
        (options->seconds < SL_LEASES_SECONDS_LEAST || options->seconds > SL_LEASES_SECONDS_MOST))
        return sl_fail(error, SL_REJECT, "Usage", "--lease-seconds must be from %d to %d, not %lld",
                       SL_LEASES_SECONDS_LEAST, SL_LEASES_SECONDS_MOST, (long long)options->seconds);
    return SL_OK;
}

/* ---- opening ---- */

static enum sl_status open_table(struct sl_leases *l, struct sl_error *error)
{
    bool is_created = false;
    struct sl_span target = sl_span_str(l->target);
    enum sl_status status = sl_lease_table_prepare(&l->sinks, target, false, &is_created, error);
    if (status == SL_OK && is_created && !l->options.is_quiet)
        fprintf(stderr, "sluice tail: %s did not exist: it was created, paid by request\n",
                l->options.target);
    return status == SL_OK ? sl_target_table(&l->sinks, target, &l->port, error) : status;
}

static enum sl_status open_book(struct sl_leases *l, struct sl_error *error)
{
    const struct sl_book_options options = {
        .port = l->port,
        .clock = sl_clock_system(),
        .table = l->options.target,
        .worker = l->worker,
        .stream_arn = l->stream_arn,
        .failover_ms = (l->options.seconds ? l->options.seconds : SL_LEASES_SECONDS) * 1000,
    };
    l->book = sl_book_new(&options);
    return sl_book_open(l->book, error);
}

static char *copy(const char *text)
{
    char *made = strdup(text);
    if (!made)
        sl_die("out of memory: the keeper of leases");
    return made;
}

static enum sl_status open_keeper(void *self, const char *stream_arn, int bell, struct sl_error *error)
{
    struct sl_leases *l = self;
    l->stream_arn = copy(stream_arn);
    l->bell = bell;
    if (open_table(l, error) != SL_OK || open_book(l, error) != SL_OK)
        return SL_REJECT;
    l->poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->poke < 0 || pthread_create(&l->thread, NULL, leases_run, l) != 0)
        return sl_fail(error, SL_REJECT, "NoThread", "the thread for leases cannot be started");
    l->is_running = true;
    return SL_OK;
}

/* ---- what the engine asks ---- */

static void poke(struct sl_leases *l)
{
    const uint64_t one = 1;
    if (l->poke >= 0 && write(l->poke, &one, sizeof(one)) < 0)
        return; /* it is full: the thread wakes up anyway */
}

static struct sl_leases_listing *copy_listing(const struct sl_keeper_listing *listing)
{
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    struct sl_leases_listing *made = sl_arena_alloc(arena, sizeof(*made));
    struct sl_book_shard *shards = sl_arena_alloc(arena, (listing->n + 1) * sizeof(*shards));
    for (size_t i = 0; i < listing->n; i++) {
        const struct sl_keeper_shard *from = &listing->shards[i];
        shards[i] = (struct sl_book_shard){sl_arena_copy(arena, sl_span_str(from->id)),
                                           sl_arena_copy(arena, sl_span_str(from->parent)), from->is_closed};
    }
    *made = (struct sl_leases_listing){.arena = arena,
                                       .book = {.shards = shards,
                                                .n = listing->n,
                                                .now_ms = listing->now_ms,
                                                .is_from_latest = listing->is_from_latest}};
    return made;
}

static void listed(void *self, const struct sl_keeper_listing *listing)
{
    struct sl_leases *l = self;
    struct sl_leases_listing *made = copy_listing(listing);
    pthread_mutex_lock(&l->mutex);
    if (l->listing) {
        made->book.is_from_latest |= l->listing->book.is_from_latest;
        forget(l->listing);
    }
    l->listing = made;
    pthread_mutex_unlock(&l->mutex);
    poke(l);
}

static void found(void *self, const struct sl_keeper_shard *shards, size_t n)
{
    struct sl_leases *l = self;
    struct sl_leases_listing *made = copy_listing(&(struct sl_keeper_listing){.shards = shards, .n = n});
    pthread_mutex_lock(&l->mutex);
    made->next = l->found;
    l->found = made;
    pthread_mutex_unlock(&l->mutex);
    poke(l);
}

static void save(void *self, const struct sl_keeper_place *places, size_t n)
{
    struct sl_leases *l = self;
    bool is_urgent = false;
    pthread_mutex_lock(&l->mutex);
    for (size_t i = 0; i < n; i++) {
        struct sl_leases_shard *shard = leases_find(l, places[i].shard);
        if (!shard || !shard->hold || (!places[i].after && !places[i].is_done))
            continue;
        const char *place = places[i].is_done ? "SHARD_END" : places[i].after;
        free(shard->saved);
        shard->saved = copy(place);
        is_urgent |= places[i].is_done;
    }
    pthread_mutex_unlock(&l->mutex);
    if (is_urgent)
        poke(l);
}

static bool take(void *self, struct sl_keeper_event *out)
{
    struct sl_leases *l = self;
    free(l->taken);
    pthread_mutex_lock(&l->mutex);
    struct sl_leases_event *event = l->taken = l->first_event;
    if (event)
        l->first_event = event->next;
    if (!l->first_event)
        l->last_event = NULL;
    pthread_mutex_unlock(&l->mutex);
    if (event)
        *out = event->event;
    return event != NULL;
}

static int64_t until_ms(void *self, const char *id)
{
    struct sl_leases *l = self;
    pthread_mutex_lock(&l->mutex);
    const struct sl_leases_shard *shard = leases_find(l, id);
    int64_t until = shard && shard->hold ? shard->until_ms : 0;
    pthread_mutex_unlock(&l->mutex);
    return until;
}

static void drop(void *self, const char *id)
{
    struct sl_leases *l = self;
    pthread_mutex_lock(&l->mutex);
    struct sl_leases_shard *shard = leases_find(l, id);
    if (shard)
        shard->is_dropped = true;
    pthread_mutex_unlock(&l->mutex);
    poke(l);
}

static bool follow_stream(void *self, const char *stream_arn, struct sl_error *error)
{
    struct sl_leases *l = self;
    (void)error;
    pthread_mutex_lock(&l->mutex);
    free(l->next_stream);
    l->next_stream = copy(stream_arn);
    forget(l->listing); /* of the old one */
    forget(l->found);
    l->listing = l->found = NULL;
    pthread_mutex_unlock(&l->mutex);
    poke(l);
    return true;
}

/* ---- the end ---- */

static void free_all(struct sl_leases *l)
{
    for (size_t i = 0; i < l->n_shards; i++) {
        free(l->shards[i].id);
        free(l->shards[i].saved);
    }
    free(l->shards);
    for (struct sl_leases_event *event = l->first_event, *next; event; event = next) {
        next = event->next;
        free(event);
    }
    free(l->taken);
    free(l->stream_arn);
    free(l->next_stream);
    forget(l->listing);
    forget(l->found);
    sl_book_destroy(l->book);
    if (l->port)
        l->port->close(l->port);
    sl_sinks_clean_up(&l->sinks);
    sl_log_clean_up(&l->log);
    if (l->poke >= 0)
        close(l->poke);
    pthread_mutex_destroy(&l->mutex);
    sl_arena_destroy(l->arena);
    free(l);
}

static enum sl_status close_keeper(void *self, int64_t wait_ms, struct sl_error *error)
{
    struct sl_leases *l = self;
    struct sl_clock *clock = sl_clock_system();
    enum sl_status status = SL_OK;
    if (l->is_running) {
        pthread_mutex_lock(&l->mutex);
        l->is_closing = true;
        l->close_by_ms = clock->now_ms(clock) + wait_ms;
        pthread_mutex_unlock(&l->mutex);
        poke(l);
        pthread_join(l->thread, NULL);
        if (l->n_unwritten)
            status = sl_fail(error, SL_FATAL, "NotSaved",
                             "%s: the last places of %zu shard(s) could not be written: what follows their "
                             "checkpoints is handled again",
                             l->options.target, l->n_unwritten);
    }
    free_all(l);
    return status;
}

static const struct sl_keeper_ops ops = {
    .name = "--leases",
    .open = open_keeper,
    .listed = listed,
    .found = found,
    .save = save,
    .take = take,
    .until_ms = until_ms,
    .drop = drop,
    .follow = follow_stream,
    .close = close_keeper,
};

enum sl_status sl_leases_new(const struct sl_leases_options *options, struct sl_keeper *out,
                             struct sl_error *error)
{
    struct sl_leases *l = calloc(1, sizeof(*l));
    if (!l)
        sl_die("out of memory: the keeper of leases");
    l->options = *options;
    l->arena = sl_arena_new(4096);
    l->poke = -1;
    l->vars = *options->vars;
    pthread_mutex_init(&l->mutex, NULL);
    sl_log_init(&l->log, STDERR_FILENO, SL_WARN, SL_LOG_TEXT, sl_clock_system());
    sl_sinks_init(&l->sinks, sl_clock_system(), &l->log, &l->vars);
    *out = (struct sl_keeper){&ops, l};
    if (check_options(options, error) != SL_OK)
        return SL_REJECT;
    name_worker(l);
    complete_target(l);
    return SL_OK;
}
