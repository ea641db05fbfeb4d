/* The workers' threads, and what passes between them and the engine. */
#include "live/tail/pool.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/json_write.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum state { FREE, OPENING, BUSY, OVER, CLOSING, CLOSED };

/* A worker's place. `state` and `task` are under the pool's mutex. */
struct place {
    struct sl_pool *pool;
    struct sl_worker *worker;
    pthread_t thread;
    pthread_cond_t wake;
    enum state state;
    bool is_open;
    struct sl_pool_task *task;
    struct sl_error error;          /* of opening */
    struct sl_runner_route *routes; /* as of its last task: the engine's */
    size_t n_routes, room_routes;
};

struct sl_pool {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a worker was opened or closed */
    struct place *places;
    size_t n, busy, over;
    int bell;
    struct sl_runner_route *sums;
    size_t n_sums, room_sums;
};

static void ring(const struct sl_pool *pool)
{
    (void)!write(pool->bell, &(uint64_t){1}, sizeof(uint64_t));
}

/* ---- a worker's thread ---- */

static void fail(struct sl_pool_task *task, const struct sl_error *error)
{
    struct sl_buffer *b = &task->body;
    task->outcome = SL_ESM_FAILED;
    sl_buffer_reset(b);
    sl_buffer_add_char(b, '{');
    sl_json_add_member(b, "errorType", SL_LIT("Runtime.InvalidEntrypoint"));
    sl_json_add_member(b, "errorMessage", sl_span_str(error->text));
    sl_buffer_add_char(b, '}');
}

static void open_worker(struct place *p)
{
    sl_error_clear(&p->error);
    p->is_open = p->worker->kind->open(p->worker, &p->error) == SL_OK;
}

static void work(struct place *p)
{
    struct sl_clock *clock = sl_clock_system();
    p->task->began_ms = clock->now_ms(clock);
    if (!p->is_open)
        open_worker(p);
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
        open_worker(p);
        return FREE;
    }
    if (p->is_open)
        p->worker->kind->close(p->worker);
    return CLOSED;
}

static void *live(void *arg)
{
    struct place *p = arg;
    struct sl_pool *pool = p->pool;
    pthread_mutex_lock(&pool->mutex);
    while (p->state != CLOSED) {
        while (p->state == FREE || p->state == OVER)
            pthread_cond_wait(&p->wake, &pool->mutex);
        enum state asked = p->state;
        pthread_mutex_unlock(&pool->mutex);
        enum state next = act(p, asked);
        pthread_mutex_lock(&pool->mutex);
        p->state = p->state == asked ? next : p->state; /* it may have been asked to close meanwhile */
        pool->over += next == OVER;
        if (next == OVER)
            ring(pool);
        else
            pthread_cond_broadcast(&pool->changed);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

/* ---- the engine's side ---- */

struct sl_pool *sl_pool_new(struct sl_worker *const *workers, size_t n, int bell)
{
    struct sl_pool *pool = calloc(1, sizeof(*pool));
    struct place *places = calloc(n, sizeof(*places));
    pthread_condattr_t attributes;
    if (!pool || !places)
        sl_die("out of memory: the workers");
    *pool = (struct sl_pool){.places = places, .n = n, .bell = bell};
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->changed, &attributes);
    sigset_t all, before; /* signals are the engine's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (size_t i = 0; i < n; i++) {
        places[i] = (struct place){.pool = pool, .worker = workers[i], .error = SL_NO_ERROR};
        pthread_cond_init(&places[i].wake, NULL);
        if (pthread_create(&places[i].thread, NULL, live, &places[i]) != 0)
            sl_die("a thread for worker %zu cannot be started: %s", i, strerror(errno));
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_condattr_destroy(&attributes);
    return pool;
}

static void ask(struct place *p, enum state what)
{
    p->state = what;
    pthread_cond_signal(&p->wake);
}

enum sl_status sl_pool_warm_up(struct sl_pool *pool, struct sl_error *error)
{
    struct place *first = &pool->places[0];
    pthread_mutex_lock(&pool->mutex);
    ask(first, OPENING);
    while (first->state == OPENING)
        pthread_cond_wait(&pool->changed, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    if (!first->is_open && error)
        *error = first->error;
    return first->is_open ? SL_OK : SL_REJECT;
}

/* The engine alone gives and takes: what it saw free stays so. */
static bool is_free(const struct place *p)
{
    return !p->task;
}

size_t sl_pool_pick(const struct sl_pool *pool, size_t preferred, bool must)
{
    if (preferred < pool->n && is_free(&pool->places[preferred]))
        return preferred;
    for (size_t i = 0; i < pool->n && !must; i++)
        if (is_free(&pool->places[i]))
            return i;
    return SL_POOL_NONE;
}

size_t sl_pool_size(const struct sl_pool *pool)
{
    return pool->n;
}

size_t sl_pool_busy(const struct sl_pool *pool)
{
    return pool->busy;
}

void sl_pool_give(struct sl_pool *pool, size_t worker, struct sl_pool_task *task)
{
    struct place *p = &pool->places[worker];
    task->worker = worker;
    pthread_mutex_lock(&pool->mutex);
    p->task = task;
    ask(p, BUSY);
    pthread_mutex_unlock(&pool->mutex);
    pool->busy++;
}

static void take_routes(struct place *p)
{
    const struct sl_worker_kind *kind = p->worker->kind;
    size_t n = p->is_open ? kind->routes(p->worker) : 0;
    p->routes = sl_array_fit(p->routes, n, &p->room_routes, sizeof(*p->routes), "routes");
    p->n_routes = n;
    for (size_t i = 0; i < n; i++)
        kind->route(p->worker, i, &p->routes[i]);
}

struct sl_pool_task *sl_pool_take(struct sl_pool *pool)
{
    struct place *found = NULL;
    pthread_mutex_lock(&pool->mutex);
    for (size_t i = 0; i < pool->n && pool->over && !found; i++)
        if (pool->places[i].state == OVER)
            found = &pool->places[i];
    if (found) {
        found->state = FREE;
        pool->over--;
    }
    pthread_mutex_unlock(&pool->mutex);
    if (!found)
        return NULL;
    struct sl_pool_task *task = found->task;
    found->task = NULL;
    pool->busy--;
    take_routes(found);
    return task;
}

bool sl_pool_cancel(struct sl_pool *pool, size_t worker)
{
    struct place *p = &pool->places[worker];
    bool can = p->worker->kind->cancel;
    if (can)
        p->worker->kind->cancel(p->worker);
    return can;
}

/* ---- sums ---- */

static struct sl_runner_route *sum_named(struct sl_pool *pool, const struct sl_runner_route *like)
{
    for (size_t i = 0; i < pool->n_sums; i++)
        if (strcmp(pool->sums[i].name, like->name) == 0)
            return &pool->sums[i];
    struct sl_runner_route *sum = &SL_PUSH(pool->sums, pool->n_sums, pool->room_sums, "routes");
    *sum = (struct sl_runner_route){.name = like->name, .handler = like->handler, .target = like->target};
    return sum;
}

const struct sl_runner_route *sl_pool_routes(struct sl_pool *pool, size_t *n)
{
    pool->n_sums = 0;
    for (size_t i = 0; i < pool->n; i++)
        for (size_t k = 0; k < pool->places[i].n_routes; k++) {
            const struct sl_runner_route *one = &pool->places[i].routes[k];
            struct sl_runner_route *sum = sum_named(pool, one);
            sum->matched += one->matched;
            sum->applied += one->applied;
            sum->parked += one->parked;
            sum->set_aside += one->set_aside;
            sum->failed += one->failed;
            sum->calls += one->calls;
            sum->bytes += one->bytes;
        }
    *n = pool->n_sums;
    return pool->sums;
}

struct sl_runner_stats sl_pool_stats(struct sl_pool *pool)
{
    struct sl_runner_stats sum = {0};
    for (size_t i = 0; i < pool->n; i++) {
        struct place *p = &pool->places[i];
        if (is_free(p) && p->is_open && p->worker->kind->stats) /* a worker that is busy may be opening */
            p->worker->kind->stats(p->worker, &sum);
    }
    return sum;
}

/* ---- the end ---- */

static bool are_closed(const struct sl_pool *pool)
{
    bool all = true;
    for (size_t i = 0; i < pool->n; i++)
        all &= pool->places[i].state == CLOSED;
    return all;
}

static void free_pool(struct sl_pool *pool)
{
    for (size_t i = 0; i < pool->n; i++) {
        pthread_join(pool->places[i].thread, NULL);
        pthread_cond_destroy(&pool->places[i].wake);
        free(pool->places[i].routes);
    }
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->sums);
    free(pool->places);
    free(pool);
}

bool sl_pool_close(struct sl_pool *pool, int64_t wait_ms)
{
    struct timespec until;
    if (!pool)
        return true;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&pool->mutex);
    for (size_t i = 0; i < pool->n; i++)
        ask(&pool->places[i], CLOSING);
    int err = 0;
    while (!are_closed(pool) && err == 0)
        err = pthread_cond_timedwait(&pool->changed, &pool->mutex, &until);
    bool all = are_closed(pool);
    pthread_mutex_unlock(&pool->mutex);
    if (all)
        free_pool(pool);
    return all;
}
