/* A ring of blocks between a thread that reads and unpacks, and the one that works on them. */
#include "data/source/ahead.h"

#include "base/gzip.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct ahead {
    struct sl_reader reader;
    struct sl_reader *inner;
    struct sl_inflater *inflater; /* NULL: plain */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sl_buffer blocks[SL_AHEAD_BLOCKS];
    uint64_t n_made, n_taken; /* blocks; the last one taken is still looked at */
    bool is_over, is_closing;
    struct sl_error error; /* why it is over; SL_OK: the text ended */
};

/* ---- the thread ---- */

/* The block to be written; NULL: nobody wants more. */
static struct sl_buffer *free_block(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->n_made - a->n_taken >= SL_AHEAD_BLOCKS - 1 && !a->is_closing)
        pthread_cond_wait(&a->changed, &a->lock);
    struct sl_buffer *block = a->is_closing ? NULL : &a->blocks[a->n_made % SL_AHEAD_BLOCKS];
    pthread_mutex_unlock(&a->lock);
    if (block)
        sl_buffer_reset(block);
    return block;
}

static void hand_over(struct ahead *a, bool is_over)
{
    pthread_mutex_lock(&a->lock);
    if (a->blocks[a->n_made % SL_AHEAD_BLOCKS].len)
        a->n_made++;
    a->is_over = is_over;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

static enum sl_status bad_gzip(const struct sl_error *why, struct sl_error *error)
{
    return sl_fail_at(error, SL_REJECT, why->code, why->offset, "bad gzip at byte %zu: %s", why->offset,
                      why->text);
}

/* The only place where closing ends the thread: a pipe in which nothing comes. */
static enum sl_status read_some(struct ahead *a, struct sl_span *out, struct sl_error *error)
{
    const struct sl_call call = {.deadline_ms = INT64_MAX};
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    enum sl_status status = a->inner->next(a->inner, &call, out, error);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return status;
}

/* Fills a block from `in` and what is read after it. False: the text is over. */
static bool fill_block(struct ahead *a, struct sl_span *in, bool *is_begun, struct sl_buffer *block)
{
    struct sl_error why = SL_NO_ERROR;
    while (block->len < SL_READER_BYTES) {
        size_t had = block->len, left = in->len;
        if (a->inflater && sl_inflater_add(a->inflater, in, SL_READER_BYTES - had, block, &why) != SL_OK)
            return bad_gzip(&why, &a->error) == SL_OK;
        if (!a->inflater && in->len) {
            size_t n = in->len < SL_READER_BYTES - had ? in->len : SL_READER_BYTES - had;
            sl_buffer_add(block, in->ptr, n);
            *in = sl_span_from(*in, n);
        }
        if (block->len > had || in->len < left)
            continue;
        if (read_some(a, in, &a->error) != SL_OK)
            return false;
        if (in->len == 0) {
            bool is_cut = a->inflater && sl_inflater_end(a->inflater, &why) != SL_OK;
            return is_cut && bad_gzip(&why, &a->error) == SL_OK;
        }
        if (!*is_begun && sl_gzip_is(*in))
            a->inflater = sl_inflater_new();
        *is_begun = true;
    }
    return true;
}

static void *work(void *arg)
{
    struct ahead *a = arg;
    struct sl_span in = {NULL, 0};
    struct sl_buffer *block;
    bool is_begun = false, goes_on = true;
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    while (goes_on && (block = free_block(a))) {
        goes_on = fill_block(a, &in, &is_begun, block);
        hand_over(a, !goes_on);
    }
    return NULL;
}

/* ---- the reader ---- */

static enum sl_status next(struct sl_reader *r, const struct sl_call *call, struct sl_span *out,
                           struct sl_error *error)
{
    struct ahead *a = (struct ahead *)r;
    (void)call;
    pthread_mutex_lock(&a->lock);
    while (a->n_taken == a->n_made && !a->is_over)
        pthread_cond_wait(&a->changed, &a->lock);
    bool is_there = a->n_taken < a->n_made;
    if (is_there)
        *out = sl_buffer_span(&a->blocks[a->n_taken++ % SL_AHEAD_BLOCKS]);
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    if (is_there)
        return SL_OK;
    *out = sl_span(NULL, 0);
    if (a->error.status == SL_OK)
        return SL_OK;
    return sl_fail_at(error, a->error.status, a->error.code, a->error.offset, "%s", a->error.text);
}

static void close_ahead(struct sl_reader *r)
{
    struct ahead *a = (struct ahead *)r;
    pthread_mutex_lock(&a->lock);
    a->is_closing = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    pthread_cancel(a->thread);
    pthread_join(a->thread, NULL);
    for (size_t i = 0; i < SL_AHEAD_BLOCKS; i++)
        sl_buffer_clean_up(&a->blocks[i]);
    sl_inflater_destroy(a->inflater);
    sl_reader_close(a->inner);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/* Signals are for the thread that works. */
static void start(struct ahead *a)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (pthread_create(&a->thread, NULL, work, a) != 0)
        sl_die("no thread can be started that reads ahead: the limit of processes is reached");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct sl_reader *sl_reader_ahead(struct sl_reader *reader)
{
    struct ahead *a = calloc(1, sizeof(*a));
    if (!a)
        sl_die("out of memory: a reader");
    a->reader =
        (struct sl_reader){.next = next, .close = close_ahead, .bytes = reader->bytes, .unpacks = true};
    a->inner = reader;
    for (size_t i = 0; i < SL_AHEAD_BLOCKS; i++)
        sl_buffer_init(&a->blocks[i], SL_READER_BYTES);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    start(a);
    return &a->reader;
}
