/* The thread that looks at the engine every quarter of a second, and says what it sees. */
#include "cli/watch/watch_private.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS     250
#define LIVE_MS     1000
#define JSON_MS     60000
#define STATUS_MS   10000
#define COLUMNS     80
#define ARENA_BYTES (64 * 1024)

struct sl_watch {
    struct sl_watch_options options;
    struct sl_watch_server *server;
    struct sl_watch_notify notify;
    bool is_terminal;
    pthread_t thread;

    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t changed;
    bool stops;
    bool has_one;
    int64_t shown_ms, moved_ms; /* the newest snapshot's own time, and when it was seen first (steady) */
    uint64_t leases_lost;
    int64_t lost_ms; /* steady; 0: none was lost */

    /* The thread's own. */
    bool is_ready, is_stopping, has_line;
    struct sl_watch_rate rate;
    int64_t line_ms, status_ms, watchdog_ms;
};

static int64_t steady_ms(void)
{
    struct sl_clock *clock = sl_clock_system();
    return clock->now_ms(clock);
}

/* ---- snapshots ---- */

static void note(struct sl_watch *watch, const struct sl_vitals *v, int64_t now)
{
    if (!watch->has_one || v->now_ms != watch->shown_ms) {
        watch->shown_ms = v->now_ms;
        watch->moved_ms = now;
    }
    if (v->leases_lost > watch->leases_lost)
        watch->lost_ms = now;
    watch->leases_lost = v->leases_lost;
    watch->has_one = true;
}

void sl_watch_look(struct sl_watch *watch, struct sl_arena *arena, struct sl_vitals *out,
                   struct sl_watch_state *state)
{
    bool has = sl_vitals_take(watch->options.board, arena, out);
    int64_t now = steady_ms();
    pthread_mutex_lock(&watch->mutex);
    if (has)
        note(watch, out, now);
    *state = (struct sl_watch_state){
        .has_one = has,
        .is_fresh = has && now - watch->moved_ms < SL_WATCH_STALE_MS,
        .is_ending = has && out->is_ending,
        .has_lost_lease = watch->lost_ms && now - watch->lost_ms < SL_WATCH_LOST_MS,
    };
    pthread_mutex_unlock(&watch->mutex);
}

/* ---- lines ---- */

static size_t columns(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : COLUMNS - 1;
}

static void put(const struct sl_watch *watch, const struct sl_buffer *text)
{
    (void)!write(watch->options.fd, text->ptr, text->len);
}

/* The cursor stays at the line's beginning, so that a message of others is written over it. */
static void show_live(struct sl_watch *watch, const struct sl_vitals *v)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 8192);
    sl_buffer_add_str(&text, "\r\x1b[K");
    sl_watch_line(v, &watch->rate, columns(watch->options.fd), &text);
    sl_buffer_add_char(&text, '\r');
    put(watch, &text);
    watch->has_line = true;
    sl_buffer_clean_up(&text);
}

static void show_json(struct sl_watch *watch, const struct sl_vitals *v)
{
    struct sl_buffer text;
    sl_buffer_init(&text, SL_WATCH_TEXT_BYTES);
    sl_watch_json(v, &watch->rate, &text);
    put(watch, &text);
    sl_buffer_clean_up(&text);
}

static void show_line(struct sl_watch *watch, const struct sl_vitals *v, int64_t now)
{
    int64_t every = watch->is_terminal ? LIVE_MS : JSON_MS;
    if (watch->line_ms == 0 && !watch->is_terminal)
        watch->line_ms = now; /* the first one after a minute */
    if (watch->options.is_quiet || (watch->line_ms && now - watch->line_ms < every))
        return;
    watch->line_ms = now;
    sl_watch_rate_take(&watch->rate, v);
    if (watch->is_terminal)
        show_live(watch, v);
    else
        show_json(watch, v);
}

/* ---- systemd ---- */

static void tell_status(struct sl_watch *watch, const struct sl_vitals *v, int64_t now)
{
    struct sl_buffer text;
    struct sl_watch_rate whole = {.per_second = 0};
    int64_t ms = v->now_ms - v->started_ms;
    whole.per_second = ms > 0 ? (double)v->handled * 1000 / (double)ms : 0;
    sl_buffer_init(&text, 8192);
    sl_buffer_add_str(&text, watch->is_ready ? "STATUS=" : "READY=1\nSTATUS=");
    sl_watch_line(v, &whole, 400, &text);
    sl_buffer_add_char(&text, '\0');
    sl_watch_notify_say(&watch->notify, text.ptr);
    sl_buffer_clean_up(&text);
    watch->is_ready = true;
    watch->status_ms = now;
}

static void tell_systemd(struct sl_watch *watch, const struct sl_vitals *v,
                         const struct sl_watch_state *state, int64_t now)
{
    if (watch->notify.fd < 0)
        return;
    if (!watch->is_ready || now - watch->status_ms >= STATUS_MS)
        tell_status(watch, v, now);
    if (state->is_ending && !watch->is_stopping) {
        sl_watch_notify_say(&watch->notify, "STOPPING=1");
        watch->is_stopping = true;
    }
    if (state->is_fresh && watch->notify.watchdog_ms &&
        now - watch->watchdog_ms >= watch->notify.watchdog_ms) {
        sl_watch_notify_say(&watch->notify, "WATCHDOG=1");
        watch->watchdog_ms = now;
    }
}

/* ---- the thread ---- */

static bool wait_a_little(struct sl_watch *watch)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&watch->mutex);
    int err = 0;
    while (!watch->stops && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&watch->changed, &watch->mutex, &until);
    bool goes_on = !watch->stops;
    pthread_mutex_unlock(&watch->mutex);
    return goes_on;
}

static void *run(void *arg)
{
    struct sl_watch *watch = arg;
    struct sl_arena *arena = sl_arena_new(ARENA_BYTES);
    do {
        struct sl_vitals v;
        struct sl_watch_state state;
        sl_arena_reset(arena);
        sl_watch_look(watch, arena, &v, &state);
        int64_t now = steady_ms();
        if (state.has_one) {
            show_line(watch, &v, now);
            tell_systemd(watch, &v, &state, now);
        }
    } while (wait_a_little(watch));
    sl_arena_destroy(arena);
    return NULL;
}

static void open_mutex(struct sl_watch *watch)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void clean_up(struct sl_watch *watch)
{
    sl_watch_server_stop(watch->server);
    sl_watch_notify_close(&watch->notify);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->mutex);
    free(watch);
}

enum sl_status sl_watch_start(const struct sl_watch_options *options, struct sl_watch **out,
                              struct sl_error *error)
{
    struct sl_watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        sl_die("out of memory: the watch of tail");
    watch->options = *options;
    watch->is_terminal = isatty(options->fd);
    open_mutex(watch);
    sl_watch_notify_open(&watch->notify, options->vars);
    if (options->listen && sl_watch_server_start(watch, options, &watch->server, error) != SL_OK) {
        clean_up(watch);
        return SL_REJECT;
    }
    if (pthread_create(&watch->thread, NULL, run, watch) != 0)
        sl_die("the watch of tail gets no thread");
    *out = watch;
    return SL_OK;
}

void sl_watch_stop(struct sl_watch *watch)
{
    static const char wipe[] = "\r\x1b[K";
    if (!watch)
        return;
    pthread_mutex_lock(&watch->mutex);
    watch->stops = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->mutex);
    pthread_join(watch->thread, NULL);
    if (watch->has_line)
        (void)!write(watch->options.fd, wipe, sizeof(wipe) - 1);
    if (!watch->is_stopping)
        sl_watch_notify_say(&watch->notify, "STOPPING=1");
    clean_up(watch);
}

unsigned sl_watch_port(const struct sl_watch *watch)
{
    return watch->server ? sl_watch_server_port(watch->server) : 0;
}
