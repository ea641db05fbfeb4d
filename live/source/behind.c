/* A thread with room for one piece. */
#include "live/source/behind.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

/* From here on a piece is not worked on beside the next one. */
#define LARGE_BYTES (8 * SL_BEHIND_PIECE_BYTES)

struct sl_behind {
    sl_behind_fn work;
    void *self;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sl_source_piece piece;
    bool has_piece, is_closing, wants_more;
};

static void *run(void *arg)
{
    struct sl_behind *b = arg;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (!b->has_piece && !b->is_closing)
            pthread_cond_wait(&b->changed, &b->lock);
        if (!b->has_piece)
            break;
        pthread_mutex_unlock(&b->lock);
        bool wants_more = b->work(b->self, &b->piece);
        pthread_mutex_lock(&b->lock);
        b->wants_more = wants_more;
        b->has_piece = false;
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* Signals are for the first thread. */
struct sl_behind *sl_behind_new(sl_behind_fn work, void *self)
{
    struct sl_behind *b = calloc(1, sizeof(*b));
    sigset_t all, before;
    if (!b)
        sl_die("out of memory: a thread");
    *b = (struct sl_behind){.work = work, .self = self, .wants_more = true};
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (pthread_create(&b->thread, NULL, run, b) != 0)
        sl_die("no thread can be started: the limit of processes is reached");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return b;
}

static bool wait_idle(struct sl_behind *b)
{
    while (b->has_piece)
        pthread_cond_wait(&b->changed, &b->lock);
    return b->wants_more;
}

bool sl_behind_give(struct sl_behind *b, const struct sl_source_piece *piece)
{
    pthread_mutex_lock(&b->lock);
    bool is_wanted = wait_idle(b);
    if (is_wanted) {
        b->piece = *piece;
        b->has_piece = true;
        pthread_cond_broadcast(&b->changed);
        if (piece->batch.payload.len > LARGE_BYTES)
            (void)wait_idle(b);
    }
    pthread_mutex_unlock(&b->lock);
    return is_wanted;
}

bool sl_behind_wait(struct sl_behind *b)
{
    pthread_mutex_lock(&b->lock);
    bool wants_more = wait_idle(b);
    pthread_mutex_unlock(&b->lock);
    return wants_more;
}

void sl_behind_destroy(struct sl_behind *b)
{
    pthread_mutex_lock(&b->lock);
    b->is_closing = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
}
