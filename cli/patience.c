/* A thread that looks at the clock: see cli/patience.h. */
#include "cli/patience.h"

#include "base/clock.h"
#include "base/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LOOK_MS  500
#define FIRST_MS 5000
#define AGAIN_MS 60000

struct sl_patience {
    const char *verb;
    int64_t timeout_s;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t over;
    bool is_over;
    int64_t since_ms, told_ms; /* 0: nothing is waited for; nothing was told */
};

static int64_t now_ms(void)
{
    struct sl_clock *clock = sl_clock_system();
    return clock->now_ms(clock);
}

static void tell(struct sl_patience *p)
{
    int64_t now = now_ms(), taken = now - p->since_ms;
    if (!p->since_ms || taken < FIRST_MS || (p->told_ms && now - p->told_ms < AGAIN_MS))
        return;
    p->told_ms = now;
    fprintf(stderr,
            "sluice %s: an invocation has taken %lld s of real time; its timeout is %lld s (--timeout). It "
            "may wait for a "
            "target that does not answer: the function's log says so when it gives up\n",
            p->verb, (long long)taken / 1000, (long long)p->timeout_s);
}

static void *watch(void *arg)
{
    struct sl_patience *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->is_over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&p->over, &p->lock, &until);
        tell(p);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct sl_patience *sl_patience_new(const char *verb, int64_t timeout_s)
{
    struct sl_patience *p = calloc(1, sizeof(*p));
    sigset_t all, before;
    if (!p)
        sl_die("out of memory: a thread's state");
    *p = (struct sl_patience){.verb = verb,
                              .timeout_s = timeout_s,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .over = PTHREAD_COND_INITIALIZER};
    sigfillset(&all); /* signals are for the thread that runs */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&p->thread, NULL, watch, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        return p;
    free(p);
    return NULL;
}

void sl_patience_destroy(struct sl_patience *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->is_over = true;
    pthread_cond_signal(&p->over);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    free(p);
}

static void set_since(struct sl_patience *p, int64_t since_ms)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->since_ms = since_ms;
    pthread_mutex_unlock(&p->lock);
}

void sl_patience_begin(struct sl_patience *p)
{
    set_since(p, now_ms());
}

void sl_patience_end(struct sl_patience *p)
{
    set_since(p, 0);
}
