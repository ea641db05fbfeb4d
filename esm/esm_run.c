/* The simulated mapping: opens its shards, runs invocations, and goes from one moment to the next. */
#include "esm/esm.h"

#include "esm/esm_private.h"

#include <stdlib.h>

/* Events have at most Lambda's 6 MB, but a single record is sent whatever its size. */
#define EVENT_BYTES (64 * 1024 * 1024)

static void *zalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p)
        sl_die("out of memory: %zu bytes of the simulation", n * size);
    return p;
}

/* ---- opening ---- */

static void open_lanes(struct sl_esm_track *shard, unsigned lanes)
{
    for (unsigned k = 0; k < lanes; k++) {
        struct sl_esm_lane *lane = &shard->lanes[k];
        *lane = (struct sl_esm_lane){.shard = shard, .number = k, .state = SL_ESM_BLOCKED};
        lane->parts_room = 4;
        lane->parts = zalloc(lane->parts_room, sizeof(*lane->parts));
        lane->room = 16;
        lane->batch = zalloc(lane->room, sizeof(*lane->batch));
        lane->index = zalloc(lane->room, sizeof(*lane->index));
        sl_buffer_init(&lane->payload, EVENT_BYTES);
        sl_buffer_init(&lane->ahead, EVENT_BYTES);
        sl_buffer_init(&lane->body, EVENT_BYTES);
    }
}

static void begin_shard(struct sl_esm_track *shard, unsigned lanes)
{
    for (unsigned k = 0; k < lanes; k++) {
        shard->lanes[k].state = SL_ESM_READING;
        shard->lanes[k].when = shard->lanes[k].free_at = shard->esm->now_ms;
    }
}

struct sl_esm *sl_esm_new(const struct sl_esm_settings *settings, const struct sl_esm_shard *shards, size_t n,
                          struct sl_clock_virtual *clock, const struct sl_esm_driver *driver)
{
    struct sl_esm *esm = zalloc(1, sizeof(*esm));
    unsigned lanes = (unsigned)settings->parallelization;
    *esm = (struct sl_esm){.settings = *settings, .driver = *driver, .clock = clock, .n = n};
    esm->base_ms = clock->ms;
    esm->wall_ms = clock->clock.wall_ns(&clock->clock) / 1000000;
    esm->random = settings->seed;
    esm->scratch = sl_arena_new(16 * 1024);
    esm->n_lanes = n * lanes;
    esm->lanes = zalloc(esm->n_lanes, sizeof(*esm->lanes));
    esm->shards = zalloc(n, sizeof(*esm->shards));
    for (size_t i = 0; i < n; i++) {
        struct sl_esm_track *shard = &esm->shards[i];
        *shard = (struct sl_esm_track){
            .esm = esm, .shard = &shards[i], .lanes = esm->lanes + i * lanes, .lanes_left = lanes};
        sl_buffer_init(&shard->state, EVENT_BYTES);
        sl_buffer_init(&shard->new_state, EVENT_BYTES);
        open_lanes(shard, lanes);
        sl_esm_add_page(shard, shards[i].records, shards[i].n);
        if (shards[i].parent < 0)
            begin_shard(shard, lanes);
    }
    return esm;
}

void sl_esm_destroy(struct sl_esm *esm)
{
    if (!esm)
        return;
    for (size_t i = 0; i < esm->n_lanes; i++) {
        struct sl_esm_lane *lane = &esm->lanes[i];
        free(lane->mine);
        free(lane->batch);
        free(lane->index);
        free(lane->parts);
        sl_buffer_clean_up(&lane->payload);
        sl_buffer_clean_up(&lane->ahead);
        sl_buffer_clean_up(&lane->body);
    }
    for (size_t i = 0; i < esm->n; i++) {
        for (size_t k = 0; k < esm->shards[i].n_pages; k++)
            free(esm->shards[i].pages[k].marks);
        free(esm->shards[i].pages);
        free(esm->shards[i].forgotten_id);
        sl_buffer_clean_up(&esm->shards[i].state);
        sl_buffer_clean_up(&esm->shards[i].new_state);
    }
    sl_arena_destroy(esm->scratch);
    free(esm->lanes);
    free(esm->shards);
    free(esm);
}

/* ---- an invocation begins ---- */

static void take_result(struct sl_esm_lane *lane, const struct sl_esm_result *result)
{
    lane->outcome = result->outcome;
    sl_buffer_reset(&lane->body);
    sl_buffer_add_span(&lane->body, result->body);
}

static void fill_invocation(struct sl_esm_lane *lane)
{
    struct sl_esm *esm = lane->shard->esm;
    struct sl_esm_part *part = sl_esm_top(lane);
    if (!lane->has_payload && !sl_esm_take_prepared(lane, part))
        sl_esm_write_event(lane, part);
    sl_esm_new_uuid(&esm->random, lane->request_id);
    lane->inv = (struct sl_esm_invocation){
        .request_id = lane->request_id,
        .shard = lane->shard->shard,
        .lane = lane->number,
        .records = lane->batch + part->from,
        .n = part->to - part->from,
        .payload = sl_buffer_span(&lane->payload),
        .time_ms = esm->now_ms,
        .attempt = part->attempts + 1,
        .is_window = esm->settings.tumbling_s > 0,
        .is_final = lane->is_final,
    };
}

static void run_now(struct sl_esm_lane *lane)
{
    struct sl_esm *esm = lane->shard->esm;
    struct sl_esm_result result = {.outcome = SL_ESM_FAILED};
    int64_t began = esm->clock->ms;
    esm->driver.invoke(esm->driver.self, &lane->inv, &result);
    take_result(lane, &result);
    int64_t took = esm->clock->ms - began;
    lane->when = esm->now_ms + (took > 0 ? took : 0) + result.duration_ms + esm->settings.invocation_ms;
}

static void start(struct sl_esm_lane *lane)
{
    struct sl_esm *esm = lane->shard->esm;
    fill_invocation(lane);
    lane->state = SL_ESM_RUNNING;
    lane->was_sent = true;
    if (esm->settings.concurrency && esm->running >= esm->settings.concurrency) {
        take_result(lane, &(struct sl_esm_result){
                              .outcome = SL_ESM_THROTTLED,
                              .body = SL_LIT("{\"errorType\":\"TooManyRequestsException\",\"errorMessage\":"
                                             "\"Rate Exceeded.\"}")});
        lane->is_refused = true;
        return;
    }
    lane->is_refused = false;
    esm->running++;
    if (esm->driver.begin) {
        esm->driver.begin(esm->driver.self, &lane->inv);
        lane->when = sl_esm_is_live(esm) ? INT64_MAX : esm->now_ms + esm->settings.invocation_ms;
        sl_esm_prepare(lane);
    } else {
        run_now(lane);
    }
}

/* ---- an invocation ends ---- */

/* The lane goes on with its next part, or reads a new batch. */
static void go_on(struct sl_esm_lane *lane, int64_t pause_ms)
{
    struct sl_esm *esm = lane->shard->esm;
    while (lane->n_parts) {
        struct sl_esm_part *part = sl_esm_top(lane);
        /* A half may have grown too old while it waited for the other half. */
        if (lane->is_final ||
            (part->from < part->to && (part->attempts || !sl_esm_drop_expired(lane, part, false)))) {
            lane->state = SL_ESM_READY;
            lane->when = esm->now_ms + pause_ms;
            return;
        }
        lane->n_parts--;
        lane->has_payload = false;
    }
    if (sl_esm_is_live(esm)) /* hundreds of shards: an event is kept no longer than it is needed */
        sl_buffer_clean_up(&lane->payload);
    lane->n = lane->bytes = 0;
    lane->was_sent = false;
    lane->is_final = lane->is_terminated_early = false;
    lane->state = SL_ESM_READING;
    lane->when = lane->free_at = esm->now_ms;
}

/* `decided` sees the invocation's records as they were, although the part may have moved on. */
static void finish(struct sl_esm_lane *lane)
{
    struct sl_esm *esm = lane->shard->esm;
    if (!lane->is_refused) {
        esm->running--;
        if (esm->driver.begin) {
            struct sl_esm_result result = {.outcome = SL_ESM_FAILED};
            esm->driver.invoke(esm->driver.self, &lane->inv, &result);
            take_result(lane, &result);
        }
    }
    struct sl_esm_decision decision = {.verb = SL_ESM_ADVANCE};
    int64_t pause_ms = 0;
    sl_esm_judge(lane, &decision, &pause_ms);
    decision.checkpoint = sl_esm_track_id(lane->shard);
    const struct sl_esm_result result = {.outcome = lane->outcome, .body = sl_buffer_span(&lane->body)};
    if (esm->driver.decided)
        esm->driver.decided(esm->driver.self, &lane->inv, &result, &decision);
    go_on(lane, pause_ms);
}

/* ---- time ---- */

static bool is_earlier(const struct sl_esm_lane *a, const struct sl_esm_lane *b)
{
    return !b || a->when < b->when || (a->when == b->when && a->state < b->state);
}

static struct sl_esm_lane *next_lane(const struct sl_esm *esm)
{
    struct sl_esm_lane *best = NULL;
    for (size_t i = 0; i < esm->n_lanes; i++) {
        struct sl_esm_lane *lane = &esm->lanes[i];
        if (lane->state < SL_ESM_BLOCKED && is_earlier(lane, best))
            best = lane;
    }
    return best;
}

static void release_children(struct sl_esm *esm, const struct sl_esm_track *parent)
{
    for (size_t i = 0; i < esm->n; i++)
        if (esm->shards[i].shard->parent == (int)(parent - esm->shards))
            begin_shard(&esm->shards[i], (unsigned)esm->settings.parallelization);
}

bool sl_esm_step(struct sl_esm *esm)
{
    struct sl_esm_lane *lane = next_lane(esm);
    if (!lane)
        return false;
    esm->now_ms = lane->when;
    sl_esm_step_lane(lane);
    return true;
}

void sl_esm_step_lane(struct sl_esm_lane *lane)
{
    struct sl_esm *esm = lane->shard->esm;
    esm->stats.elapsed_ms = esm->now_ms;
    esm->clock->ms = esm->base_ms + esm->now_ms;
    if (lane->state == SL_ESM_RUNNING)
        finish(lane);
    else if (lane->state == SL_ESM_READY)
        start(lane);
    else
        sl_esm_read(lane);
    if (lane->state == SL_ESM_ENDED && --lane->shard->lanes_left == 0)
        release_children(esm, lane->shard);
}

int64_t sl_esm_next_ms(const struct sl_esm *esm)
{
    const struct sl_esm_lane *lane = next_lane(esm);
    return lane ? lane->when : -1;
}

size_t sl_esm_checkpoint(const struct sl_esm *esm, size_t shard)
{
    return esm->shards[shard].checkpoint;
}

struct sl_esm_stats sl_esm_stats(const struct sl_esm *esm)
{
    return esm->stats;
}
