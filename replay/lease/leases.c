/* The keeper of leases: the engine's thread notes what it wants, a thread of its own keeps the book, and what
 * that changes becomes events. */
#include "replay/lease/leases_private.h"

#include "base/clean.h"
#include "replay/lease/lease_table.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
    enum sl_status status = sl_lease_table_prepare(&l->sinks, target, &is_created, error);
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
    if (l->poke < 0 || pthread_create(&l->thread, NULL, sl_leases_run, l) != 0)
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
        sl_arena_destroy(l->listing->arena);
    }
    l->listing = made;
    pthread_mutex_unlock(&l->mutex);
    poke(l);
}

static void save(void *self, const struct sl_keeper_place *places, size_t n)
{
    struct sl_leases *l = self;
    bool is_urgent = false;
    pthread_mutex_lock(&l->mutex);
    for (size_t i = 0; i < n; i++) {
        struct sl_leases_shard *shard = sl_leases_find(l, places[i].shard);
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
    const struct sl_leases_shard *shard = sl_leases_find(l, id);
    int64_t until = shard && shard->hold ? shard->until_ms : 0;
    pthread_mutex_unlock(&l->mutex);
    return until;
}

static void drop(void *self, const char *id)
{
    struct sl_leases *l = self;
    pthread_mutex_lock(&l->mutex);
    struct sl_leases_shard *shard = sl_leases_find(l, id);
    if (shard)
        shard->is_dropped = true;
    pthread_mutex_unlock(&l->mutex);
    poke(l);
}

static bool follow(void *self, const char *stream_arn, struct sl_error *error)
{
    struct sl_leases *l = self;
    (void)error;
    pthread_mutex_lock(&l->mutex);
    free(l->next_stream);
    l->next_stream = copy(stream_arn);
    if (l->listing) /* of the old one */
        sl_arena_destroy(l->listing->arena);
    l->listing = NULL;
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
    if (l->listing)
        sl_arena_destroy(l->listing->arena);
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
    .save = save,
    .take = take,
    .until_ms = until_ms,
    .drop = drop,
    .follow = follow,
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
    l->vars.list = (const char *const *)options->environment;
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
