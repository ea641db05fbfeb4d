/* Decides which leases a worker takes: expired ones up to its share, then some of others' surplus. */
#include "live/lease/share.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

struct worker {
    const char *name;
    size_t unfinished;
};

/* ---- counting ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct worker *)a)->name, ((const struct worker *)b)->name);
}

/* Each worker that holds something, and this one, once. */
static size_t count_workers(const struct sl_share *s, struct worker *list)
{
    size_t n = 0, kept = 0;
    list[n++] = (struct worker){s->worker, 0};
    for (size_t i = 0; i < s->n; i++) {
        const struct sl_share_lease *lease = &s->leases[i];
        if (lease->is_mine || (lease->owner && !lease->is_expired))
            list[n++] = (struct worker){lease->is_mine ? s->worker : lease->owner, !lease->is_done};
    }
    qsort(list, n, sizeof(*list), by_name);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(list[i].name, list[kept].name) == 0)
            list[kept].unfinished += list[i].unfinished;
        else
            list[++kept] = list[i];
    }
    return kept + 1;
}

static struct worker *find(struct worker *list, size_t n, const char *name)
{
    const struct worker key = {.name = name};
    return bsearch(&key, list, n, sizeof(*list), by_name);
}

static void shuffle(struct sl_share *s, size_t *list, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(sl_random_step(&s->random) % i), kept = list[i - 1];
        list[i - 1] = list[j];
        list[j] = kept;
    }
}

/* ---- choosing ---- */

/* The unfinished leases that have expired, or those that others hold. */
static size_t gather(const struct sl_share *s, bool expired, size_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct sl_share_lease *lease = &s->leases[i];
        if (!lease->is_done && !lease->is_mine && lease->is_expired == expired)
            out[n++] = i;
    }
    return n;
}

/* One lease from a worker that has its share, when nobody has more and two or more are lacking. */
static size_t steal_one(struct sl_share *s, struct worker *workers, const size_t *candidates, size_t n,
                        size_t *out)
{
    for (size_t i = 0; i < n; i++) {
        struct worker *from = find(workers, s->workers, s->leases[candidates[i]].owner);
        if (from->unfinished == s->target) {
            *out = candidates[i];
            return 1;
        }
    }
    return 0;
}

static size_t steal(struct sl_share *s, struct worker *workers, size_t lacking, struct sl_arena *arena,
                    size_t *out)
{
    size_t *candidates = sl_arena_alloc(arena, (s->n + 1) * sizeof(*candidates));
    size_t n = gather(s, false, candidates), taken = 0, limit = (lacking + 1) / 2;
    shuffle(s, candidates, n);
    for (size_t i = 0; i < n && taken < limit; i++) {
        struct worker *from = find(workers, s->workers, s->leases[candidates[i]].owner);
        if (from->unfinished <= s->target)
            continue;
        from->unfinished--;
        out[taken++] = candidates[i];
    }
    return taken || lacking < 2 ? taken : steal_one(s, workers, candidates, n, out);
}

size_t sl_share_choose(struct sl_share *s, struct sl_arena *arena, size_t *out)
{
    struct worker *workers = sl_arena_alloc(arena, (s->n + 1) * sizeof(*workers));
    size_t unfinished = 0;
    s->workers = count_workers(s, workers);
    s->mine = find(workers, s->workers, s->worker)->unfinished;
    for (size_t i = 0; i < s->n; i++)
        unfinished += !s->leases[i].is_done;
    s->target = s->workers >= unfinished ? 1 : (unfinished + s->workers - 1) / s->workers;
    if (s->mine >= s->target)
        return 0;
    size_t lacking = s->target - s->mine, n = gather(s, true, out);
    shuffle(s, out, n);
    if (n >= lacking)
        return lacking;
    return n + steal(s, workers, lacking - n, arena, out + n);
}
