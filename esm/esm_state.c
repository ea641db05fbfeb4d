/* What all parts of the simulator stand on: ids, and the checkpoint of a shard. */
#include "base/array.h"
#include "esm/esm_private.h"

#include "base/clock.h"
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>

void sl_esm_new_uuid(uint64_t *random, char out[37])
{
    uint64_t a = sl_random_step(random), b = sl_random_step(random);
    snprintf(out, 37, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32), (unsigned)(a >> 16) & 0xFFFF,
             (unsigned)a & 0xFFF, ((unsigned)(b >> 48) & 0x3FFF) | 0x8000,
             (unsigned long long)b & 0xFFFFFFFFFFFFu);
}

/* ---- records ---- */

/* The lane of an item's records. */
static unsigned lane_of(struct sl_span item_key, unsigned lanes)
{
    uint64_t hash = sl_hash(item_key);
    return (unsigned)((hash ^ (hash >> 32)) % lanes);
}

/* Room for `n` more; those that were taken are forgotten. */
static void make_room(struct sl_esm_lane *lane, size_t n)
{
    if (lane->next) {
        memmove(lane->mine, lane->mine + lane->next, (lane->n_mine - lane->next) * sizeof(*lane->mine));
        lane->n_mine -= lane->next;
        lane->next = 0;
    }
    lane->mine = sl_array_fit(lane->mine, lane->n_mine + n, &lane->mine_room, sizeof(*lane->mine),
                              "records of the simulation");
}

void sl_esm_add_page(struct sl_esm_track *shard, const struct sl_esm_record *records, size_t n)
{
    unsigned lanes = (unsigned)shard->esm->settings.parallelization;
    if (n == 0)
        return;
    shard->pages = realloc(shard->pages, (shard->n_pages + 1) * sizeof(*shard->pages));
    unsigned char *marks = calloc(n, 1);
    if (!shard->pages || !marks)
        sl_die("out of memory: a page of %zu records", n);
    shard->pages[shard->n_pages++] =
        (struct sl_esm_page){.records = records, .from = shard->n, .n = n, .marks = marks};
    for (unsigned k = 0; k < lanes; k++)
        make_room(&shard->lanes[k], n);
    for (size_t i = 0; i < n; i++) {
        struct sl_esm_lane *lane = &shard->lanes[lanes > 1 ? lane_of(records[i].item_key, lanes) : 0];
        lane->mine[lane->n_mine++] = (uint32_t)(shard->n + i);
    }
    shard->n += n;
}

static bool is_over(const struct sl_esm_track *track)
{
    return track->n_pages && track->checkpoint >= track->pages[0].from + track->pages[0].n;
}

static void keep_id(struct sl_esm_track *track)
{
    struct sl_span id = sl_esm_track_id(track);
    char *copy = id.ptr ? strndup(id.ptr, id.len) : NULL;
    if (id.ptr && !copy)
        sl_die("out of memory: a checkpoint");
    free(track->forgotten_id);
    track->forgotten_id = copy;
}

size_t sl_esm_drop_pages(struct sl_esm_track *shard)
{
    size_t n = 0;
    if (is_over(shard))
        keep_id(shard);
    while (is_over(shard)) {
        free(shard->pages[0].marks);
        memmove(shard->pages, shard->pages + 1, --shard->n_pages * sizeof(*shard->pages));
        n++;
    }
    return n;
}

bool sl_esm_has_next(struct sl_esm_lane *lane)
{
    return sl_esm_has_after(lane, 0);
}

bool sl_esm_has_after(struct sl_esm_lane *lane, size_t k)
{
    struct sl_esm_track *shard = lane->shard;
    const struct sl_esm_driver *driver = &shard->esm->driver;
    size_t number = (size_t)(shard - shard->esm->shards);
    while (lane->next + k >= lane->n_mine && driver->more && !shard->has_all) {
        const struct sl_esm_record *records;
        size_t n_dropped = sl_esm_drop_pages(shard);
        if (n_dropped)
            driver->forget(driver->self, number, n_dropped);
        size_t n = driver->more(driver->self, number, &records);
        shard->has_all = n == 0;
        sl_esm_add_page(shard, records, n);
    }
    return lane->next + k < lane->n_mine;
}

void sl_esm_mark_done(struct sl_esm_track *shard, uint32_t index)
{
    *sl_esm_mark_at(shard, index) |= SL_ESM_DONE;
    while (shard->checkpoint < shard->n && *sl_esm_mark_at(shard, shard->checkpoint) & SL_ESM_DONE)
        shard->checkpoint++;
}

void sl_esm_stats_add(struct sl_esm_stats *sum, const struct sl_esm_stats *more)
{
    sum->invocations += more->invocations;
    sum->function_errors += more->function_errors;
    sum->throttles += more->throttles;
    sum->partial_answers += more->partial_answers;
    sum->malformed_answers += more->malformed_answers;
    sum->retries += more->retries;
    sum->splits += more->splits;
    sum->failed_batches += more->failed_batches;
    sum->failed += more->failed;
    sum->filtered += more->filtered;
    sum->done += more->done;
    sum->discarded += more->discarded;
    sum->trimmed += more->trimmed;
    sum->beside += more->beside;
    sum->ignored_answers += more->ignored_answers;
    sum->elapsed_ms += more->elapsed_ms;
}

struct sl_span sl_esm_track_id(const struct sl_esm_track *shard)
{
    if (shard->n_pages && shard->checkpoint > shard->pages[0].from)
        return sl_esm_record_at(shard, shard->checkpoint - 1)->id;
    return shard->forgotten_id ? sl_span_str(shard->forgotten_id) : sl_span(NULL, 0);
}
