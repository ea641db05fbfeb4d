/* The thread that drains queues of letters. */
#include "live/tail/drainer.h"

#include "base/clock.h"
#include "handlers/pipeline/config.h"
#include "live/source/letters.h"
#include "sinks/queues/inbox.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WAIT_S       1 /* of a receive: it is told to stop in between */
#define REQUEST_MS   15000
#define PAUSE_MS     200 /* a step of every wait */
#define IDLE_MS      2000
#define FAILED_MS    10000
#define HIDDEN_S     30 /* a letter that was not applied: as long as a target that is down is not asked again */
#define LEAST_S      30 /* of visibility while it is worked on */
#define MESSAGE_ROOM ((size_t)SL_INBOX_MESSAGES)

struct box {
    const char *url, *route;
    struct sl_inbox *inbox;
    bool has_complained;
};

struct sl_drainer {
    struct sl_drainer_options options;
    pthread_t thread;
    atomic_bool is_ending;
    atomic_uint_fast64_t letters, done;
    struct sl_log log;
    struct sl_sinks sinks;
    struct sl_arena *lasting, *arena; /* `arena`: of one round */
    struct box *boxes;
    size_t n;
    struct sl_pool_task task;
};

static enum sl_status read_queues(const struct sl_drainer_options *options, struct sl_arena *arena,
                                  struct box **out, size_t *n, struct sl_error *error)
{
    struct sl_config config;
    struct sl_sinks sinks;
    sl_sinks_init(&sinks, sl_clock_system(), NULL, options->vars);
    const struct sl_vars vars = sl_sinks_vars(&sinks, options->vars);
    enum sl_status status = sl_config_read(options->config, &vars, arena, &config, error);
    sl_sinks_clean_up(&sinks);
    *n = 0;
    if (status != SL_OK)
        return SL_REJECT;
    *out = sl_arena_zalloc(arena, (config.n_routes + 1) * sizeof(**out));
    for (size_t i = 0; i < config.n_routes; i++)
        if (sl_span_starts(config.routes[i].set_aside, SL_LIT("sqs:")) && !config.routes[i].is_paused)
            (*out)[(*n)++] = (struct box){.url = sl_arena_copy(arena, config.routes[i].set_aside),
                                          .route = config.routes[i].name};
    return SL_OK;
}

/* ---- one round ---- */

static void nap(struct sl_drainer *d, int64_t ms)
{
    struct sl_clock *clock = sl_clock_system();
    for (; ms > 0 && !d->is_ending; ms -= PAUSE_MS)
        clock->sleep_ms(clock, PAUSE_MS);
}

static struct sl_call call_of(struct sl_drainer *d)
{
    struct sl_clock *clock = sl_clock_system();
    return (struct sl_call){.arena = d->arena, .deadline_ms = clock->now_ms(clock) + REQUEST_MS};
}

/* Once, until it works again. */
static void complain(struct sl_drainer *d, struct box *box, const struct sl_error *why)
{
    if (!box->has_complained)
        fprintf(stderr, "sluice %s: route %s: its letters cannot be had: %s: %s\n", d->options.verb,
                box->route, why->code, why->text);
    box->has_complained = true;
}

static bool receive(struct sl_drainer *d, struct box *box, struct sl_inbox_message **list, size_t *n)
{
    int64_t hidden_s = 3 * d->options.timeout_s > LEAST_S ? 3 * d->options.timeout_s : LEAST_S;
    const struct sl_inbox_receive how = {.requests = 1, .wait_s = WAIT_S, .hidden_s = hidden_s};
    const struct sl_call call = call_of(d);
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = SL_OK;
    *n = 0;
    if (!box->inbox)
        status = sl_inbox_open(&d->sinks, sl_span_str(box->url), &box->inbox, &why);
    if (status == SL_OK)
        status = sl_inbox_receive(box->inbox, &how, &call, list, n, &why);
    if (status != SL_OK)
        complain(d, box, &why);
    else
        box->has_complained = false;
    return status == SL_OK;
}

static struct sl_span deliver(struct sl_drainer *d, const struct sl_letters_message *messages, size_t n)
{
    char id[48];
    struct sl_clock *clock = sl_clock_system();
    snprintf(id, sizeof(id), "00000000-0000-4000-8000-%012llx",
             (unsigned long long)(clock->random(clock) & 0xFFFFFFFFFFFF));
    struct sl_esm_invocation inv = {
        .request_id = id, .payload = sl_letters_event(messages, n, d->arena), .attempt = 1};
    d->task.inv = &inv;
    d->task.until_ms = INT64_MAX;
    d->options.worker->kind->run(d->options.worker, &d->task);
    d->task.inv = NULL;
    return d->task.outcome == SL_ESM_ANSWERED ? sl_buffer_span(&d->task.body) : sl_span(NULL, 0);
}

/* Removes what is done; hides the rest, so that others come first. */
static size_t settle(struct sl_drainer *d, struct box *box, const struct sl_inbox_message *list,
                     const bool *is_done, size_t n)
{
    const char *done[MESSAGE_ROOM], *left[MESSAGE_ROOM];
    int64_t seconds[MESSAGE_ROOM];
    struct sl_result results[MESSAGE_ROOM];
    size_t n_done = 0, n_left = 0;
    const struct sl_call call = call_of(d);
    for (size_t i = 0; i < n; i++)
        if (is_done[i]) {
            done[n_done++] = list[i].receipt;
        } else {
            seconds[n_left] = HIDDEN_S;
            left[n_left++] = list[i].receipt;
        }
    if (n_done)
        sl_inbox_remove(box->inbox, done, n_done, results, &call);
    if (n_left)
        sl_inbox_hide(box->inbox, left, seconds, n_left, results, &call);
    return n_done;
}

/* Returns how many letters there were, and of these in `done` how many are applied. */
static size_t drain(struct sl_drainer *d, struct box *box, size_t *done)
{
    struct sl_inbox_message *list;
    struct sl_letters_message messages[MESSAGE_ROOM];
    bool is_done[MESSAGE_ROOM];
    size_t n;
    *done = 0;
    if (!receive(d, box, &list, &n) || !n)
        return 0;
    for (size_t i = 0; i < n; i++)
        messages[i] = (struct sl_letters_message){.id = list[i].id, .body = list[i].body};
    struct sl_span answer = deliver(d, messages, n);
    for (size_t i = 0; i < n; i++)
        is_done[i] = sl_letters_is_done(answer, messages, n, i);
    *done = settle(d, box, list, is_done, n);
    d->letters += n;
    d->done += *done;
    return n;
}

static void *live(void *arg)
{
    struct sl_drainer *d = arg;
    struct sl_error error = SL_NO_ERROR;
    if (d->options.worker->kind->open(d->options.worker, &error) != SL_OK) {
        fprintf(stderr, "sluice %s: letters are not drained: %s\n", d->options.verb, error.text);
        return NULL;
    }
    while (!d->is_ending) {
        size_t all = 0, all_done = 0;
        for (size_t i = 0; i < d->n && !d->is_ending; i++) {
            size_t done;
            all += drain(d, &d->boxes[i], &done);
            all_done += done;
            sl_arena_reset(d->arena);
        }
        if (!all_done)
            nap(d, all ? FAILED_MS : IDLE_MS);
    }
    d->options.worker->kind->close(d->options.worker);
    return NULL;
}

/* ---- beginning and end ---- */

enum sl_status sl_drainer_start(const struct sl_drainer_options *options, struct sl_drainer **out,
                                struct sl_error *error)
{
    struct sl_arena *lasting = sl_arena_new(16 * 1024);
    struct box *boxes;
    size_t n;
    enum sl_status status = read_queues(options, lasting, &boxes, &n, error);
    *out = NULL;
    if (!n) {
        sl_arena_destroy(lasting);
        return status;
    }
    struct sl_drainer *d = calloc(1, sizeof(*d));
    if (!d)
        sl_die("out of memory: the drain");
    *d = (struct sl_drainer){.options = *options, .lasting = lasting, .boxes = boxes, .n = n};
    d->arena = sl_arena_new(256 * 1024);
    sl_log_init(&d->log, STDERR_FILENO, SL_WARN, SL_LOG_TEXT, sl_clock_system());
    d->log.no_metrics = true;
    sl_sinks_init(&d->sinks, sl_clock_system(), &d->log, options->vars);
    sl_buffer_init(&d->task.body, 64 * 1024 * 1024);
    sigset_t all, before; /* signals are the main thread's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&d->thread, NULL, live, d) != 0)
        sl_die("a thread for the drain cannot be started");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    *out = d;
    return SL_OK;
}

struct sl_drainer_facts sl_drainer_facts(struct sl_drainer *d)
{
    return (struct sl_drainer_facts){.letters = d->letters, .done = d->done};
}

bool sl_drainer_stop(struct sl_drainer *d, int64_t wait_ms)
{
    struct timespec until;
    if (!d)
        return true;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    d->is_ending = true;
    if (d->options.worker->kind->cancel)
        d->options.worker->kind->cancel(d->options.worker);
    if (pthread_timedjoin_np(d->thread, NULL, &until) != 0)
        return false;
    for (size_t i = 0; i < d->n; i++)
        sl_inbox_close(d->boxes[i].inbox);
    sl_sinks_clean_up(&d->sinks);
    sl_log_clean_up(&d->log);
    sl_buffer_clean_up(&d->task.body);
    sl_arena_destroy(d->arena);
    sl_arena_destroy(d->lasting);
    free(d);
    return true;
}
