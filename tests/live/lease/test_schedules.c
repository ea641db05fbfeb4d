/* Leases under random schedules: workers that start, stop, die, freeze and thaw, a table that fails and loses
 * answers, clocks that differ, a stream that splits. After every step: a shard has at most one reader;
 * nothing is skipped; no checkpoint goes back; children begin after their parents. When the faults are over,
 * every shard has a reader within a bounded time, and the workers have equal shares. */
#include "tests/live/lease/lease_world.h"

#define SHARDS_MAX 40
#define ROOTS      7
#define RECORDS    30 /* of a shard */
#define CALM_MS    (20 * FAILOVER_MS)

struct shard {
    char id[16], parent[16];
    bool is_closed;
    int handled; /* records, by anybody */
    int table;   /* the greatest checkpoint that the table was seen with */
};

/* What a worker does with a shard that it was handed. */
struct reading {
    uint64_t hold;
    int at;
};

struct trial {
    struct world *w;
    struct shard shards[SHARDS_MAX];
    size_t n_shards, n_workers;
    struct reading readings[WORKERS_MAX][SHARDS_MAX];
    bool is_alive[WORKERS_MAX];
    int64_t frozen_until_ms[WORKERS_MAX], next_ms[WORKERS_MAX];
    bool has_listed[WORKERS_MAX];
    uint64_t seed;
};

/* ---- the stream ---- */

static void add_shard(struct trial *t, size_t parent)
{
    struct shard *s = &t->shards[t->n_shards];
    *s = (struct shard){.handled = 0};
    snprintf(s->id, sizeof(s->id), "shard%02zu", t->n_shards++);
    if (parent != SIZE_MAX) {
        memcpy(s->parent, t->shards[parent].id, sizeof(s->parent));
        t->shards[parent].is_closed = true;
    }
}

/* An open shard ends, and has one child or two. */
static void split(struct trial *t)
{
    size_t parent = (size_t)world_draw(t->w, t->n_shards);
    if (t->shards[parent].is_closed || t->n_shards + 2 > SHARDS_MAX)
        return;
    for (uint64_t children = 1 + world_draw(t->w, 2); children--;)
        add_shard(t, parent);
}

static size_t index_of(const struct trial *t, const char *id)
{
    for (size_t i = 0; i < t->n_shards; i++)
        if (strcmp(t->shards[i].id, id) == 0)
            return i;
    return SIZE_MAX;
}

static void list(struct trial *t, size_t worker)
{
    struct sl_book_shard shards[SHARDS_MAX];
    struct sl_error error = SL_NO_ERROR;
    for (size_t i = 0; i < t->n_shards; i++)
        shards[i] = (struct sl_book_shard){t->shards[i].id, t->shards[i].parent, t->shards[i].is_closed};
    const struct sl_book_listing listing = {.shards = shards, .n = t->n_shards, .now_ms = WALL_MS + t->w->ms};
    enum sl_status status = sl_book_list(t->w->workers[worker].book, &listing, &error);
    if (status > SL_RETRY)
        fail_msg("seed %llu: %s", (unsigned long long)t->seed, error.text);
    t->has_listed[worker] = status == SL_OK;
}

/* What a worker is told of one shard's children, between two listings. */
static void find_children(struct trial *t, size_t worker)
{
    struct sl_book_shard children[SHARDS_MAX];
    struct sl_error error = SL_NO_ERROR;
    size_t parent = (size_t)world_draw(t->w, t->n_shards), n = 0;
    for (size_t i = 0; i < t->n_shards; i++)
        if (strcmp(t->shards[i].parent, t->shards[parent].id) == 0)
            children[n++] =
                (struct sl_book_shard){t->shards[i].id, t->shards[i].parent, t->shards[i].is_closed};
    if (sl_book_found(t->w->workers[worker].book, children, n, &error) > SL_RETRY)
        fail_msg("seed %llu: %s", (unsigned long long)t->seed, error.text);
}

/* ---- workers ---- */

static void start(struct trial *t, size_t i)
{
    struct sl_error error = SL_NO_ERROR;
    sl_book_destroy(t->w->workers[i].book);
    struct world_worker *worker = world_worker(t->w, i);
    worker->clock.offset_ms = (int64_t)world_draw(t->w, 1000000);
    worker->clock.per_mille = 990 + (int)world_draw(t->w, 21);
    worker->port.slowest_ms = 200;
    worker->port.fail_percent = (int)world_draw(t->w, 8);
    worker->port.lose_percent = (int)world_draw(t->w, 8);
    memset(t->readings[i], 0, sizeof(t->readings[i]));
    t->is_alive[i] = sl_book_open(worker->book, &error) == SL_OK;
    t->frozen_until_ms[i] = t->next_ms[i] = 0;
    t->has_listed[i] = false;
    if (!t->is_alive[i] && error.status != SL_RETRY)
        fail_msg("seed %llu: %s", (unsigned long long)t->seed, error.text);
}

/* Whether the worker may have effects on the shard now: as an engine decides it. */
static bool may_read(const struct trial *t, size_t worker, size_t lease, struct sl_book_lease *out)
{
    struct world_worker *w = &t->w->workers[worker];
    *out = sl_book_at(w->book, lease);
    return out->hold && out->is_handed_out && world_clock_now(&w->clock.clock) < out->until_ms;
}

static int place_of(const char *checkpoint)
{
    return strcmp(checkpoint, "SHARD_END") == 0      ? RECORDS + 1
           : strcmp(checkpoint, "TRIM_HORIZON") == 0 ? 0
                                                     : (int)strtol(checkpoint, NULL, 10);
}

/* Handles some records of the shard. */
static void read_shard(struct trial *t, size_t worker, const struct sl_book_lease *lease)
{
    size_t at = index_of(t, lease->lease->key);
    struct shard *s = &t->shards[at];
    struct reading *r = &t->readings[worker][at];
    size_t parent = index_of(t, s->parent);
    char number[16];
    if (r->hold != lease->hold)
        *r = (struct reading){lease->hold, place_of(lease->lease->checkpoint)};
    if (r->at > RECORDS)
        return;
    if (parent != SIZE_MAX && t->shards[parent].handled <= RECORDS)
        fail_msg("seed %llu: %s begins before its parent has ended", (unsigned long long)t->seed, s->id);
    if (r->at > s->handled)
        fail_msg("seed %llu: %s: %d is skipped", (unsigned long long)t->seed, s->id, s->handled + 1);
    int end = s->is_closed ? RECORDS + 1 : RECORDS;
    r->at += (int)world_draw(t->w, 4);
    r->at = r->at > end ? end : r->at;
    s->handled = r->at > s->handled ? r->at : s->handled;
    snprintf(number, sizeof(number), "%d", r->at);
    if (r->at > 0)
        sl_book_save(t->w->workers[worker].book, s->id, lease->hold, r->at > RECORDS ? "SHARD_END" : number);
}

static void read_all(struct trial *t, size_t worker)
{
    struct sl_book_lease lease;
    for (size_t i = 0; i < sl_book_count(t->w->workers[worker].book); i++)
        if (may_read(t, worker, i, &lease))
            read_shard(t, worker, &lease);
}

static void turn(struct trial *t, size_t worker)
{
    struct world_worker *w = &t->w->workers[worker];
    struct sl_error error = SL_NO_ERROR;
    if (!t->is_alive[worker] || t->w->ms < t->frozen_until_ms[worker])
        return;
    if (!t->has_listed[worker] || world_draw(t->w, 20) == 0)
        list(t, worker);
    if (world_draw(t->w, 4) == 0)
        find_children(t, worker);
    read_all(t, worker);
    if (world_clock_now(&w->clock.clock) < t->next_ms[worker])
        return;
    if (sl_book_turn(w->book, &t->next_ms[worker], &error) > SL_RETRY)
        fail_msg("seed %llu: %s", (unsigned long long)t->seed, error.text);
}

/* It stops in order: it writes what it has, and gives its leases back. */
static void stop(struct trial *t, size_t worker)
{
    struct world_worker *w = &t->w->workers[worker];
    struct sl_error error = SL_NO_ERROR;
    for (size_t i = 0; i < sl_book_count(w->book); i++) {
        struct sl_book_lease lease = sl_book_at(w->book, i);
        sl_book_drop(w->book, lease.lease->key, lease.hold);
    }
    (void)sl_book_flush(w->book, &error);
    t->is_alive[worker] = false;
    memset(t->readings[worker], 0, sizeof(t->readings[worker]));
}

/* ---- what must hold at any moment ---- */

static void check_readers(const struct trial *t)
{
    struct sl_book_lease lease;
    unsigned readers[SHARDS_MAX] = {0};
    for (size_t worker = 0; worker < t->n_workers; worker++)
        for (size_t i = 0; t->is_alive[worker] && i < sl_book_count(t->w->workers[worker].book); i++)
            if (may_read(t, worker, i, &lease) && ++readers[index_of(t, lease.lease->key)] > 1)
                fail_msg("seed %llu, %lld ms: %s has two readers", (unsigned long long)t->seed,
                         (long long)t->w->ms, lease.lease->key);
}

static void check_checkpoints(struct trial *t)
{
    for (size_t i = 0; i < t->n_shards; i++) {
        if (!world_row(t->w, t->shards[i].id).ptr)
            continue;
        int at = place_of(world_lease(t->w, t->shards[i].id).checkpoint);
        if (at < t->shards[i].table || at > t->shards[i].handled)
            fail_msg("seed %llu: %s: the checkpoint went from %d to %d; %d are handled",
                     (unsigned long long)t->seed, t->shards[i].id, t->shards[i].table, at,
                     t->shards[i].handled);
        t->shards[i].table = at;
    }
    sl_arena_reset(t->w->arena);
}

/* ---- a trial ---- */

static void disturb(struct trial *t)
{
    size_t i = (size_t)world_draw(t->w, t->n_workers);
    switch (world_draw(t->w, 8)) {
    case 0:
        t->is_alive[i] = false; /* SIGKILL */
        memset(t->readings[i], 0, sizeof(t->readings[i]));
        break;
    case 1:
        if (t->is_alive[i] && t->w->ms >= t->frozen_until_ms[i])
            stop(t, i);
        break;
    case 2:
        t->frozen_until_ms[i] = t->w->ms + (int64_t)world_draw(t->w, 3 * FAILOVER_MS);
        break;
    case 3:
        t->w->workers[i].port.is_down ^= 1;
        break;
    case 4:
        split(t);
        break;
    default:
        if (!t->is_alive[i])
            start(t, i);
    }
}

static void run(struct trial *t, int64_t until_ms, bool is_disturbed)
{
    int64_t checked_ms = t->w->ms;
    while (t->w->ms < until_ms) {
        t->w->ms += 20 + (int64_t)world_draw(t->w, 400);
        if (is_disturbed && world_draw(t->w, 12) == 0)
            disturb(t);
        /* Under faults some come late. */
        for (size_t i = 0; i < t->n_workers; i++)
            if (!is_disturbed || world_draw(t->w, t->n_workers) == 0) {
                turn(t, i);
                check_readers(t);
            }
        if (t->w->ms - checked_ms > 2000) {
            check_checkpoints(t);
            checked_ms = t->w->ms;
        }
    }
}

/* Everybody lives, and the table is well. */
static void calm(struct trial *t)
{
    for (size_t i = 0; i < t->n_workers; i++) {
        if (!t->is_alive[i])
            start(t, i);
        while (!t->is_alive[i])
            start(t, i);
        t->frozen_until_ms[i] = 0;
        t->w->workers[i].port = (struct world_port){.port = t->w->workers[i].port.port, .world = t->w};
    }
}

/* Every unfinished shard has a reader, and nobody has two more than another. */
static bool are_shares_equal(const struct trial *t)
{
    size_t unfinished = 0, most = 0, least = SIZE_MAX;
    for (size_t i = 0; i < t->n_shards; i++)
        unfinished += t->shards[i].handled <= RECORDS;
    for (size_t worker = 0; worker < t->n_workers; worker++) {
        struct sl_book_lease lease;
        size_t held = 0;
        for (size_t i = 0; i < sl_book_count(t->w->workers[worker].book); i++)
            held += may_read(t, worker, i, &lease);
        most = held > most ? held : most;
        least = held < least ? held : least;
        unfinished -= held;
    }
    return unfinished == 0 && most - least <= 1;
}

static bool is_all_read(const struct trial *t)
{
    for (size_t i = 0; i < t->n_shards; i++)
        if (t->shards[i].handled < (t->shards[i].is_closed ? RECORDS + 1 : RECORDS))
            return false;
    return true;
}

static void try_one(uint64_t seed)
{
    struct trial t = {.w = world_new(seed), .seed = seed};
    t.n_workers = 2 + (size_t)world_draw(t.w, WORKERS_MAX - 2);
    for (size_t i = 0; i < ROOTS; i++)
        add_shard(&t, SIZE_MAX);
    start(&t, 0);
    run(&t, t.w->ms + 150000, true);
    calm(&t);
    int64_t calm_ms = t.w->ms;
    while (!are_shares_equal(&t) || !is_all_read(&t)) {
        run(&t, t.w->ms + 2000, false);
        if (t.w->ms - calm_ms > CALM_MS)
            fail_msg(
                "seed %llu: shards without a reader, unread, or unequal shares after %d s without a fault",
                (unsigned long long)seed, CALM_MS / 1000);
    }
    run(&t, t.w->ms + 60000, false);
    assert_true(are_shares_equal(&t)); /* nobody steals for nothing */
    world_destroy(t.w);
}

static void a_shard_has_one_reader_whatever_happens(void **state)
{
    (void)state;
    const char *seeds = getenv("SEEDS"), *first = getenv("FIRST");
    uint64_t from = first ? strtoull(first, NULL, 10) : 1, n = seeds ? strtoull(seeds, NULL, 10) : 60;
    for (uint64_t seed = from; seed < from + n; seed++)
        try_one(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_has_one_reader_whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
