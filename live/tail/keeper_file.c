/* Keeps places in a checkpoint file. */
#include "live/tail/keeper_file.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/disk.h"
#include "live/source/places.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define FILE_BYTES (64 * 1024 * 1024)

/* The kernel ends processes at once, also on a busy machine. */
#define LOCK_WAIT_MS 10000
#define LOCK_LOOK_MS 20

struct event {
    enum sl_keeper_event_kind kind;
    char *shard;
};

struct keeper {
    const char *path;
    int lock_fd, bell;
    bool is_open, has_begun; /* it was listed */

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t wake, changed;
    pthread_t thread;
    struct sl_places places;
    bool is_dirty, is_ending, has_ended;
    int err; /* of a write; nothing is written after it */
    bool has_told;
    struct event *events;
    size_t first_event, n_events, room; /* those before the first are told */
    struct sl_arena *told;              /* the event that was taken last */
};

/* ---- events ---- */

static void ring(const struct keeper *k)
{
    (void)!write(k->bell, &(uint64_t){1}, sizeof(uint64_t));
}

static void push(struct keeper *k, enum sl_keeper_event_kind kind, const char *shard)
{
    struct event *event = &SL_PUSH(k->events, k->n_events, k->room, "events of shards");
    *event = (struct event){.kind = kind};
    sl_places_set(&event->shard, shard);
    ring(k);
}

static struct sl_keeper_place tell(struct keeper *k, const char *shard)
{
    const struct sl_place *place = sl_places_find(&k->places, shard);
    struct sl_keeper_place out = {.shard = sl_arena_copy(k->told, sl_span_str(shard))};
    if (!place)
        return out;
    out.after = place->after ? sl_arena_copy(k->told, sl_span_str(place->after)) : NULL;
    out.since_ms = place->after ? 0 : place->since_ms;
    out.is_done = place->is_done;
    return out;
}

static bool take_failure(struct keeper *k, struct sl_keeper_event *out)
{
    if (!k->err || k->has_told)
        return false;
    k->has_told = true;
    *out = (struct sl_keeper_event){.kind = SL_KEEPER_FAILED,
                                    .text = sl_arena_printf(k->told, "--checkpoint %s: cannot be written: %s",
                                                            k->path, strerror(k->err))};
    return true;
}

static bool take(void *self, struct sl_keeper_event *out)
{
    struct keeper *k = self;
    pthread_mutex_lock(&k->mutex);
    sl_arena_reset(k->told);
    bool has_one = take_failure(k, out);
    if (!has_one && k->first_event < k->n_events) {
        struct event event = k->events[k->first_event++];
        if (k->first_event == k->n_events)
            k->first_event = k->n_events = 0;
        *out = (struct sl_keeper_event){.kind = event.kind, .place = tell(k, event.shard)};
        out->shard = out->place.shard;
        free(event.shard);
        has_one = true;
    }
    pthread_mutex_unlock(&k->mutex);
    return has_one;
}

/* ---- writing ---- */

static int write_text(const char *path, const struct sl_buffer *text)
{
    return text->failed ? EFBIG : sl_disk_replace_path(path, sl_buffer_span(text));
}

static void *write_what_changes(void *arg)
{
    struct keeper *k = arg;
    struct sl_buffer text;
    sl_buffer_init(&text, FILE_BYTES);
    pthread_mutex_lock(&k->mutex);
    for (;;) {
        while (!k->is_dirty && !k->is_ending)
            pthread_cond_wait(&k->wake, &k->mutex);
        if (!k->is_dirty || k->err)
            break;
        sl_buffer_reset(&text);
        sl_places_write(&k->places, &text);
        k->is_dirty = false;
        pthread_mutex_unlock(&k->mutex);
        int err = write_text(k->path, &text);
        pthread_mutex_lock(&k->mutex);
        k->err = err;
        if (err)
            ring(k);
    }
    k->has_ended = true;
    pthread_cond_signal(&k->changed);
    pthread_mutex_unlock(&k->mutex);
    sl_buffer_clean_up(&text);
    return NULL;
}

static void touch(struct keeper *k)
{
    k->is_dirty = true;
    pthread_cond_signal(&k->wake);
}

/* ---- opening ---- */

static void read_owner(const struct keeper *k, char pid[32])
{
    ssize_t n = pread(k->lock_fd, pid, 31, 0);
    pid[n > 0 ? n : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
}

static enum sl_status refuse_second(const struct keeper *k, struct sl_error *error)
{
    char pid[32];
    read_owner(k, pid);
    return sl_fail(error, SL_REJECT, "InUse",
                   "--checkpoint %s: another sluice tail uses it (process %s): end that one, or name another "
                   "file",
                   k->path, pid[0] ? pid : "unknown");
}

/* The processes of a tail that was killed have its lock until the last of them has ended, a moment later than
 * itself: who starts it again does not know of them. */
static bool is_owner_gone(const struct keeper *k)
{
    char pid[32];
    read_owner(k, pid);
    long number = strtol(pid, NULL, 10);
    return number > 0 && kill((pid_t)number, 0) != 0 && errno == ESRCH;
}

static int take_lock(struct keeper *k)
{
    struct sl_clock *clock = sl_clock_system();
    for (int waited_ms = 0;; waited_ms += LOCK_LOOK_MS) {
        if (flock(k->lock_fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        int err = errno;
        if (err != EWOULDBLOCK || waited_ms >= LOCK_WAIT_MS || !is_owner_gone(k))
            return err;
        clock->sleep_ms(clock, LOCK_LOOK_MS);
    }
}

static enum sl_status lock(struct keeper *k, struct sl_error *error)
{
    char path[4096], pid[32];
    snprintf(path, sizeof(path), "%s.lock", k->path);
    k->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (k->lock_fd < 0)
        return sl_fail(error, SL_REJECT, "CannotWrite", "--checkpoint %s: %s cannot be created: %s", k->path,
                       path, strerror(errno));
    int err = take_lock(k);
    if (err)
        return err == EWOULDBLOCK
                   ? refuse_second(k, error)
                   : sl_fail(error, SL_REJECT, "CannotLock", "--checkpoint %s: %s cannot be locked: %s",
                             k->path, path, strerror(err));
    int len = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    if (ftruncate(k->lock_fd, 0) != 0 || pwrite(k->lock_fd, pid, (size_t)len, 0) != len)
        return sl_fail(error, SL_REJECT, "CannotWrite", "--checkpoint %s: %s cannot be written: %s", k->path,
                       path, strerror(errno));
    return SL_OK;
}

/* Writes what was read, so that a path that cannot be written is known at the start. */
static enum sl_status prove(struct keeper *k, struct sl_error *error)
{
    struct sl_buffer text;
    sl_buffer_init(&text, FILE_BYTES);
    sl_disk_sweep_path(k->path);
    sl_places_write(&k->places, &text);
    int err = write_text(k->path, &text);
    sl_buffer_clean_up(&text);
    return err ? sl_fail(error, SL_REJECT, "CannotWrite", "--checkpoint %s: cannot be written: %s", k->path,
                         strerror(err))
               : SL_OK;
}

static void start_thread(struct keeper *k)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&k->thread, NULL, write_what_changes, k) != 0)
        sl_die("a thread for the checkpoint cannot be started");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static enum sl_status open_file(void *self, const char *stream_arn, int bell, struct sl_error *error)
{
    struct keeper *k = self;
    enum sl_status status = k->path ? lock(k, error) : SL_OK;
    k->bell = bell;
    if (status == SL_OK)
        status = sl_places_read(&k->places, k->path, stream_arn, error);
    if (status == SL_OK && k->path)
        status = prove(k, error);
    if (status != SL_OK)
        return status;
    k->is_open = true;
    if (k->path)
        start_thread(k);
    return SL_OK;
}

/* ---- shards ---- */

static void gain(struct keeper *k, struct sl_place *place)
{
    place->is_known = true;
    push(k, SL_KEEPER_GAINED, place->id);
    if (place->is_done)
        push(k, SL_KEEPER_ENDED, place->id);
}

static void add_listed(struct keeper *k, const struct sl_keeper_shard *shard, bool from_latest,
                       int64_t now_ms)
{
    struct sl_place *place = sl_places_find(&k->places, shard->id);
    if (!place) {
        place = sl_places_add(&k->places, shard->id);
        place->since_ms = from_latest && !shard->is_closed ? now_ms : 0;
        place->is_done = from_latest && shard->is_closed;
        k->is_dirty |= from_latest;
    }
    place->unlisted_ms = 0;
    place->misses = UINT32_MAX; /* until the list is through */
    if (!place->is_known)
        gain(k, place);
}

/* What the list lacks is read nevertheless: GetShardIterator says whether it is gone. */
static void note_missing(struct keeper *k, int64_t now_ms)
{
    for (size_t i = 0; i < k->places.n; i++) {
        struct sl_place *place = &k->places.list[i];
        if (place->misses == UINT32_MAX) {
            place->misses = 0;
            continue;
        }
        place->misses++;
        if (!place->unlisted_ms) {
            place->unlisted_ms = now_ms;
            k->is_dirty = true;
        }
        if (!place->is_known)
            gain(k, place);
    }
    size_t before = k->places.n;
    sl_places_drop_old(&k->places, now_ms);
    k->is_dirty |= k->places.n != before;
}

static void listed(void *self, const struct sl_keeper_listing *listing)
{
    struct keeper *k = self;
    pthread_mutex_lock(&k->mutex);
    bool from_latest = listing->is_from_latest && !k->has_begun && k->places.n == 0;
    for (size_t i = 0; i < listing->n; i++)
        add_listed(k, &listing->shards[i], from_latest, listing->now_ms);
    note_missing(k, listing->now_ms);
    k->has_begun = true;
    if (!k->places.complete_since_ms) {
        k->places.complete_since_ms = listing->now_ms;
        k->is_dirty = true;
    }
    if (k->is_dirty)
        touch(k);
    pthread_mutex_unlock(&k->mutex);
}

static void found(void *self, const struct sl_keeper_shard *shards, size_t n)
{
    struct keeper *k = self;
    pthread_mutex_lock(&k->mutex);
    for (size_t i = 0; i < n; i++) {
        add_listed(k, &shards[i], false, 0);
        sl_places_find(&k->places, shards[i].id)->misses = 0;
    }
    pthread_mutex_unlock(&k->mutex);
}

static void save(void *self, const struct sl_keeper_place *places, size_t n)
{
    struct keeper *k = self;
    pthread_mutex_lock(&k->mutex);
    for (size_t i = 0; i < n; i++) {
        struct sl_place *place = sl_places_find(&k->places, places[i].shard);
        if (!place)
            continue;
        bool was_done = place->is_done;
        sl_places_set(&place->after, places[i].after);
        place->since_ms = places[i].since_ms;
        place->is_done = places[i].is_done;
        if (place->is_done && !was_done)
            push(k, SL_KEEPER_ENDED, place->id);
    }
    touch(k);
    pthread_mutex_unlock(&k->mutex);
}

static void save_through(void *self, int64_t through_ms)
{
    struct keeper *k = self;
    pthread_mutex_lock(&k->mutex);
    k->places.through_ms = through_ms;
    touch(k);
    pthread_mutex_unlock(&k->mutex);
}

static int64_t through(void *self)
{
    struct keeper *k = self;
    return k->places.through_ms;
}

static int64_t until_ms(void *self, const char *shard)
{
    (void)self;
    (void)shard;
    return INT64_MAX;
}

static void missed(void *self, int64_t now_ms)
{
    struct keeper *k = self;
    pthread_mutex_lock(&k->mutex);
    k->places.complete_since_ms = now_ms;
    touch(k);
    pthread_mutex_unlock(&k->mutex);
}

static bool follow(void *self, const char *stream_arn, struct sl_error *error)
{
    struct keeper *k = self;
    (void)error;
    pthread_mutex_lock(&k->mutex);
    sl_places_clean_up(&k->places);
    sl_places_set(&k->places.stream_arn, stream_arn);
    k->has_begun = true; /* what the new stream has was made after the old one's end */
    for (size_t i = k->first_event; i < k->n_events; i++)
        free(k->events[i].shard);
    k->first_event = k->n_events = 0;
    touch(k);
    pthread_mutex_unlock(&k->mutex);
    return true;
}

/* ---- the end ---- */

/* False: the disk has not taken the last state in time. */
static bool end_thread(struct keeper *k, int64_t wait_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (wait_ms + until.tv_nsec / 1000000) / 1000;
    pthread_mutex_lock(&k->mutex);
    k->is_ending = true;
    pthread_cond_signal(&k->wake);
    int err = 0;
    until.tv_nsec = (wait_ms + until.tv_nsec / 1000000) % 1000 * 1000000;
    while (!k->has_ended && err == 0)
        err = pthread_cond_timedwait(&k->changed, &k->mutex, &until);
    bool has_ended = k->has_ended;
    pthread_mutex_unlock(&k->mutex);
    if (has_ended)
        pthread_join(k->thread, NULL);
    return has_ended;
}

static enum sl_status close_file(void *self, int64_t wait_ms, struct sl_error *error)
{
    struct keeper *k = self;
    if (k->is_open && k->path && !end_thread(k, wait_ms))
        return sl_fail(error, SL_FATAL, "CannotWrite", "--checkpoint %s: was not written in time", k->path);
    int err = k->err && !k->has_told ? k->err : 0;
    enum sl_status status = k->err ? SL_FATAL : SL_OK;
    if (err)
        sl_fail(error, SL_FATAL, "CannotWrite", "--checkpoint %s: cannot be written: %s", k->path,
                strerror(err));
    if (k->lock_fd >= 0)
        close(k->lock_fd);
    for (size_t i = k->first_event; i < k->n_events; i++)
        free(k->events[i].shard);
    free(k->events);
    sl_places_clean_up(&k->places);
    sl_arena_destroy(k->told);
    pthread_cond_destroy(&k->wake);
    pthread_cond_destroy(&k->changed);
    pthread_mutex_destroy(&k->mutex);
    free(k);
    return status;
}

struct sl_keeper sl_keeper_file_new(const char *path)
{
    static const struct sl_keeper_ops ops = {.name = "--checkpoint",
                                             .open = open_file,
                                             .listed = listed,
                                             .found = found,
                                             .save = save,
                                             .save_through = save_through,
                                             .through = through,
                                             .take = take,
                                             .until_ms = until_ms,
                                             .missed = missed,
                                             .follow = follow,
                                             .close = close_file};
    struct keeper *k = calloc(1, sizeof(*k));
    if (!k)
        sl_die("out of memory: the checkpoint");
    *k = (struct keeper){.path = path, .lock_fd = -1, .told = sl_arena_new(1024)};
    pthread_mutex_init(&k->mutex, NULL);
    pthread_cond_init(&k->wake, NULL);
    pthread_cond_init(&k->changed, NULL);
    return (struct sl_keeper){.ops = &ops, .self = k};
}
