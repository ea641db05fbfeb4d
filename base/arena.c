/* Memory from malloc in chunks; large allocations get a chunk each. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct chunk {
    struct chunk *next;
    size_t room;
    max_align_t data[];
};

struct defer {
    struct defer *next;
    sl_arena_clean_up_fn fn;
    void *arg;
};

struct sl_arena {
    struct chunk *chunks; /* the one in use first */
    size_t chunk_bytes;
    size_t left; /* bytes free at the end of the first chunk */
    size_t used;
    bool is_secret;
    struct defer *defers;
};

#ifdef SL_ARENA_DEBUG
#define ARENA_DEBUG 1
#else
#define ARENA_DEBUG 0
#endif

void sl_arena_keep_secret(struct sl_arena *arena)
{
    arena->is_secret = true;
}

static void *must(void *p, size_t n)
{
    if (!p)
        sl_die("out of memory: %zu bytes for an arena", n);
    return p;
}

struct sl_arena *sl_arena_new(size_t chunk)
{
    struct sl_arena *arena = must(calloc(1, sizeof(*arena)), sizeof(*arena));
    arena->chunk_bytes = chunk;
    return arena;
}

static struct chunk *chunk_add(struct sl_arena *arena, size_t room)
{
    struct chunk *chunk = must(malloc(sizeof(*chunk) + room), room);
    chunk->room = room;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

/* A large allocation goes after the chunk in use, so that the rest of that chunk stays usable. */
static void *alloc_alone(struct sl_arena *arena, size_t n)
{
    struct chunk *current = arena->chunks;
    struct chunk *chunk = chunk_add(arena, n);
    if (current) {
        chunk->next = current->next;
        current->next = chunk;
        arena->chunks = current;
    } else {
        arena->left = 0;
    }
    return chunk->data;
}

static char *next_of(const struct sl_arena *arena)
{
    return (char *)arena->chunks->data + arena->chunks->room - arena->left;
}

void *sl_arena_alloc(struct sl_arena *arena, size_t n)
{
    const size_t align = _Alignof(max_align_t);
    if (n > SIZE_MAX / 2)
        sl_die("out of memory: %zu bytes for an arena", n);
    n = n ? (n + align - 1) / align * align : align;
    arena->used += n;
    if (ARENA_DEBUG || n > arena->chunk_bytes / 2)
        return alloc_alone(arena, n);
    if (n > arena->left) {
        chunk_add(arena, arena->chunk_bytes / align * align);
        arena->left = arena->chunks->room;
    }
    void *p = next_of(arena);
    arena->left -= n;
    return p;
}

void *sl_arena_zalloc(struct sl_arena *arena, size_t n)
{
    return memset(sl_arena_alloc(arena, n), 0, n);
}

char *sl_arena_copy(struct sl_arena *arena, struct sl_span span)
{
    char *p = sl_arena_alloc(arena, span.len + 1);
    if (span.len)
        memcpy(p, span.ptr, span.len);
    p[span.len] = '\0';
    return p;
}

char *sl_arena_printf(struct sl_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    /* Into what is left of the chunk, where the text will mostly be. */
    size_t left = ARENA_DEBUG ? 0 : arena->left;
    char *next = left ? next_of(arena) : NULL;
    int n = vsnprintf(next, left, format, args);
    char *p = sl_arena_alloc(arena, n < 0 ? 1 : (size_t)n + 1);
    if (n < 0)
        p[0] = '\0';
    else if (p != next)
        vsnprintf(p, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return p;
}

void sl_arena_defer(struct sl_arena *arena, sl_arena_clean_up_fn fn, void *arg)
{
    struct defer *defer = sl_arena_alloc(arena, sizeof(*defer));
    *defer = (struct defer){arena->defers, fn, arg};
    arena->defers = defer;
}

static void run_defers(struct sl_arena *arena)
{
    for (struct defer *d = arena->defers; d; d = d->next)
        d->fn(d->arg);
    arena->defers = NULL;
}

/* `used`: the bytes of the chunk that were handed out. */
static void forget(const struct sl_arena *arena, struct chunk *chunk, size_t used)
{
    if (arena->is_secret)
        explicit_bzero(chunk->data, used);
}

static size_t used_of(const struct sl_arena *arena, const struct chunk *chunk)
{
    return chunk == arena->chunks ? chunk->room - arena->left : chunk->room;
}

static bool is_kept(const struct sl_arena *arena, const struct chunk *chunk)
{
    return !ARENA_DEBUG && chunk == arena->chunks && chunk->room >= arena->chunk_bytes / 2;
}

void sl_arena_reset(struct sl_arena *arena)
{
    run_defers(arena);
    struct chunk *kept = NULL;
    for (struct chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        forget(arena, c, used_of(arena, c));
        if (is_kept(arena, c))
            kept = c;
        else
            free(c);
    }
    arena->chunks = kept;
    arena->left = kept ? kept->room : 0;
    if (kept)
        kept->next = NULL;
    arena->used = 0;
}

void sl_arena_destroy(struct sl_arena *arena)
{
    if (!arena)
        return;
    run_defers(arena);
    for (struct chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        forget(arena, c, used_of(arena, c));
        free(c);
    }
    free(arena);
}

size_t sl_arena_used(const struct sl_arena *arena)
{
    return arena->used;
}
