/* The board between the engine and those who watch it. */
#include "live/tail/vitals.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>

#define ARENA_BYTES (16 * 1024)

/* Two arenas take turns: a snapshot is copied into the one that nobody sees. */
struct sl_vitals_board {
    pthread_mutex_t mutex;
    struct sl_arena *shown, *spare;
    struct sl_vitals now;
    bool has_one;
};

struct sl_vitals_board *sl_vitals_board_new(void)
{
    struct sl_vitals_board *board = calloc(1, sizeof(*board));
    if (!board)
        sl_die("out of memory: the numbers of tail");
    pthread_mutex_init(&board->mutex, NULL);
    board->shown = sl_arena_new(ARENA_BYTES);
    board->spare = sl_arena_new(ARENA_BYTES);
    return board;
}

void sl_vitals_board_destroy(struct sl_vitals_board *board)
{
    if (!board)
        return;
    pthread_mutex_destroy(&board->mutex);
    sl_arena_destroy(board->shown);
    sl_arena_destroy(board->spare);
    free(board);
}

static const char *copy_text(struct sl_arena *arena, const char *text)
{
    return text ? sl_arena_copy(arena, sl_span_str(text)) : NULL;
}

static void copy(const struct sl_vitals *from, struct sl_arena *arena, struct sl_vitals *to)
{
    *to = *from;
    to->stream_arn = copy_text(arena, from->stream_arn);
    to->trouble = copy_text(arena, from->trouble);
    to->shards = sl_arena_alloc(arena, (from->n_shards + 1) * sizeof(*to->shards));
    to->routes = sl_arena_alloc(arena, (from->n_routes + 1) * sizeof(*to->routes));
    for (size_t i = 0; i < from->n_shards; i++) {
        to->shards[i] = from->shards[i];
        to->shards[i].id = copy_text(arena, from->shards[i].id);
        to->shards[i].blocked_at = copy_text(arena, from->shards[i].blocked_at);
    }
    for (size_t i = 0; i < from->n_routes; i++) {
        to->routes[i] = from->routes[i];
        to->routes[i].name = copy_text(arena, from->routes[i].name);
        to->routes[i].handler = copy_text(arena, from->routes[i].handler);
        to->routes[i].target = copy_text(arena, from->routes[i].target);
    }
}

void sl_vitals_publish(struct sl_vitals_board *board, const struct sl_vitals *now)
{
    struct sl_vitals fresh;
    sl_arena_reset(board->spare);
    copy(now, board->spare, &fresh);
    pthread_mutex_lock(&board->mutex);
    struct sl_arena *old = board->shown;
    board->shown = board->spare;
    board->now = fresh;
    board->has_one = true;
    pthread_mutex_unlock(&board->mutex);
    board->spare = old;
}

bool sl_vitals_take(struct sl_vitals_board *board, struct sl_arena *arena, struct sl_vitals *out)
{
    pthread_mutex_lock(&board->mutex);
    bool has_one = board->has_one;
    if (has_one)
        copy(&board->now, arena, out);
    pthread_mutex_unlock(&board->mutex);
    return has_one;
}
