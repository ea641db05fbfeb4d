/* The workers' threads, and what passes between them and the engine. */
#include "replay/tail/crew.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum state { FREE, OPENING, BUSY, OVER, CLOSING, CLOSED };

/* A worker's place. `state` and `task` are under the crew's mutex. */
struct place {
    struct sl_crew *crew;
    struct sl_worker *worker;
    pthread_t thread;
    pthread_cond_t wake;
    enum state state;
    bool is_open;
    struct sl_crew_task *task;
    struct sl_error error;          /* of opening */
    struct sl_runner_route *routes; /* as of its last task: the engine's */
    size_t n_routes;
};

struct sl_crew {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a worker was opened or closed */
    struct place *places;
    size_t n, busy, over;
    int bell;
    struct sl_runner_route *sums;
    size_t n_sums;
};

static void ring(const struct sl_crew *crew)
{
    (void)!write(crew->bell, &(uint64_t){1}, sizeof(uint64_t));
}

/* ---- a worker's thread ---- */

static void fail(struct sl_crew_task *task, const struct sl_error *error)
{
    task->outcome = SL_ESM_FAILED;
    sl_buffer_reset(&task->body);
    sl_buffer_printf(&task->body, "{\"errorType\":\"Runtime.InvalidEntrypoint\",\"errorMessage\":\"%s\"}",
                     error->code);
}

static void work(struct place *p)
{
    struct sl_clock *clock = sl_clock_system();
    p->task->began_ms = clock->now_ms(clock);
    if (!p->is_open)
        p->is_open = p->worker->kind->open(p->worker, &p->error) == SL_OK;
    if (p->is_open)
        p->worker->kind->run(p->worker, p->task);
    else
        fail(p->task, &p->error);
    p->task->ended_ms = clock->now_ms(clock);
}

/* Does what was asked for, without the mutex. Returns the state that follows. */
static enum state act(struct place *p, enum state asked)
{
    if (asked == BUSY) {
        work(p);
        return OVER;
    }
    if (asked == OPENING) {
        p->is_open = p->worker->kind->open(p->worker, &p->error) == SL_OK;
        return FREE;
    }
    if (p->is_open)
        p->worker->kind->close(p->worker);
    return CLOSED;
}

static void *live(void *arg)
{
    struct place *p = arg;
    struct sl_crew *crew = p->crew;
    pthread_mutex_lock(&crew->mutex);
    while (p->state != CLOSED) {
        while (p->state == FREE || p->state == OVER)
            pthread_cond_wait(&p->wake, &crew->mutex);
        enum state asked = p->state;
        pthread_mutex_unlock(&crew->mutex);
        enum state next = act(p, asked);
        pthread_mutex_lock(&crew->mutex);
        p->state = p->state == asked ? next : p->state; /* it may have been asked to close meanwhile */
        crew->over += next == OVER;
        if (next == OVER)
            ring(crew);
        else
            pthread_cond_broadcast(&crew->changed);
    }
    pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

/* ---- the engine's side ---- */

struct sl_crew *sl_crew_new(struct sl_worker *const *workers, size_t n, int bell)
{
    struct sl_crew *crew = calloc(1, sizeof(*crew));
    struct place *places = calloc(n, sizeof(*places));
    pthread_condattr_t attributes;
    if (!crew || !places)
        sl_die("out of memory: the workers");
    *crew = (struct sl_crew){.places = places, .n = n, .bell = bell};
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->changed, &attributes);
    sigset_t all, before; /* signals are the engine's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (size_t i = 0; i < n; i++) {
        places[i] = (struct place){.crew = crew, .worker = workers[i], .error = SL_NO_ERROR};
        pthread_cond_init(&places[i].wake, NULL);
        if (pthread_create(&places[i].thread, NULL, live, &places[i]) != 0)
            sl_die("a thread for worker %zu cannot be started: %s", i, strerror(errno));
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_condattr_destroy(&attributes);
    return crew;
}

static void ask(struct place *p, enum state what)
{
    p->state = what;
    pthread_cond_signal(&p->wake);
}

enum sl_status sl_crew_warm_up(struct sl_crew *crew, struct sl_error *error)
{
    struct place *first = &crew->places[0];
    pthread_mutex_lock(&crew->mutex);
    ask(first, OPENING);
    while (first->state == OPENING)
        pthread_cond_wait(&crew->changed, &crew->mutex);
    pthread_mutex_unlock(&crew->mutex);
    if (!first->is_open && error)
        *error = first->error;
    return first->is_open ? SL_OK : SL_REJECT;
}

/* The engine alone gives and takes: what it saw free stays so. */
static bool is_free(const struct place *p)
{
    return !p->task;
}

size_t sl_crew_pick(const struct sl_crew *crew, size_t preferred, bool must)
{
    if (preferred < crew->n && is_free(&crew->places[preferred]))
        return preferred;
    for (size_t i = 0; i < crew->n && !must && crew->busy < crew->n; i++)
        if (is_free(&crew->places[i]))
            return i;
    return SL_CREW_NONE;
}

size_t sl_crew_size(const struct sl_crew *crew)
{
    return crew->n;
}

size_t sl_crew_busy(const struct sl_crew *crew)
{
    return crew->busy;
}

void sl_crew_give(struct sl_crew *crew, size_t worker, struct sl_crew_task *task)
{
    struct place *p = &crew->places[worker];
    task->worker = worker;
    pthread_mutex_lock(&crew->mutex);
    p->task = task;
    ask(p, BUSY);
    pthread_mutex_unlock(&crew->mutex);
    crew->busy++;
}

static void take_routes(struct place *p)
{
    const struct sl_worker_kind *kind = p->worker->kind;
    size_t n = p->is_open ? kind->routes(p->worker) : 0;
    if (n != p->n_routes) {
        p->routes = realloc(p->routes, (n + 1) * sizeof(*p->routes));
        if (!p->routes)
            sl_die("out of memory: routes");
    }
    p->n_routes = n;
    for (size_t i = 0; i < n; i++)
        kind->route(p->worker, i, &p->routes[i]);
}

struct sl_crew_task *sl_crew_take(struct sl_crew *crew)
{
    struct place *found = NULL;
    pthread_mutex_lock(&crew->mutex);
    for (size_t i = 0; i < crew->n && crew->over && !found; i++)
        if (crew->places[i].state == OVER)
            found = &crew->places[i];
    if (found) {
        found->state = FREE;
        crew->over--;
    }
    pthread_mutex_unlock(&crew->mutex);
    if (!found)
        return NULL;
    struct sl_crew_task *task = found->task;
    found->task = NULL;
    crew->busy--;
    take_routes(found);
    return task;
}

bool sl_crew_cancel(struct sl_crew *crew, size_t worker)
{
    struct place *p = &crew->places[worker];
    bool can = p->worker->kind->cancel;
    if (can && p->task)
        p->worker->kind->cancel(p->worker);
    return can;
}

/* ---- sums ---- */

static struct sl_runner_route *sum_named(struct sl_crew *crew, const struct sl_runner_route *like)
{
    for (size_t i = 0; i < crew->n_sums; i++)
        if (strcmp(crew->sums[i].name, like->name) == 0)
            return &crew->sums[i];
    crew->sums = realloc(crew->sums, (crew->n_sums + 1) * sizeof(*crew->sums));
    if (!crew->sums)
        sl_die("out of memory: routes");
    struct sl_runner_route *sum = &crew->sums[crew->n_sums++];
    *sum = (struct sl_runner_route){.name = like->name, .handler = like->handler, .target = like->target};
    return sum;
}

const struct sl_runner_route *sl_crew_routes(struct sl_crew *crew, size_t *n)
{
    crew->n_sums = 0;
    for (size_t i = 0; i < crew->n; i++)
        for (size_t k = 0; k < crew->places[i].n_routes; k++) {
            const struct sl_runner_route *one = &crew->places[i].routes[k];
            struct sl_runner_route *sum = sum_named(crew, one);
            sum->matched += one->matched;
            sum->applied += one->applied;
            sum->parked += one->parked;
            sum->failed += one->failed;
            sum->calls += one->calls;
        }
    *n = crew->n_sums;
    return crew->sums;
}

struct sl_runner_stats sl_crew_stats(struct sl_crew *crew)
{
    struct sl_runner_stats sum = {0};
    for (size_t i = 0; i < crew->n; i++) {
        struct place *p = &crew->places[i];
        if (p->is_open && is_free(p) && p->worker->kind->stats)
            p->worker->kind->stats(p->worker, &sum);
    }
    return sum;
}

/* ---- the end ---- */

static bool are_closed(const struct sl_crew *crew)
{
    bool all = true;
    for (size_t i = 0; i < crew->n; i++)
        all &= crew->places[i].state == CLOSED;
    return all;
}

static void free_crew(struct sl_crew *crew)
{
    for (size_t i = 0; i < crew->n; i++) {
        pthread_join(crew->places[i].thread, NULL);
        pthread_cond_destroy(&crew->places[i].wake);
        free(crew->places[i].routes);
    }
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->mutex);
    free(crew->sums);
    free(crew->places);
    free(crew);
}

bool sl_crew_close(struct sl_crew *crew, int64_t wait_ms)
{
    struct timespec until;
    if (!crew)
        return true;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&crew->mutex);
    for (size_t i = 0; i < crew->n; i++)
        ask(&crew->places[i], CLOSING);
    int err = 0;
    while (!are_closed(crew) && err == 0)
        err = pthread_cond_timedwait(&crew->changed, &crew->mutex, &until);
    bool all = are_closed(crew);
    pthread_mutex_unlock(&crew->mutex);
    if (all)
        free_crew(crew);
    return all;
}
