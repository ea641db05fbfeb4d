/* Several workers on one lease table, each with a clock of its own, on a time that the test moves. The table
 * is one of SQLite; a port before it delays, fails, and loses answers. */
#ifndef SL_TESTS_LIVE_LEASE_LEASE_WORLD_H
#define SL_TESTS_LIVE_LEASE_LEASE_WORLD_H

#include "tests/support/test.h"

#include "live/lease/book.h"
#include "sinks/target.h"

#include <stdio.h>
#include <stdlib.h>

#define STREAM      "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"
#define FAILOVER_MS 10000
#define WALL_MS     ((int64_t)1790000000000)
#ifndef WORKERS_MAX
#define WORKERS_MAX 6
#endif

struct world;

/* A worker's clock runs from another beginning and a little faster or slower than the world's. */
struct world_clock {
    struct sl_clock clock;
    struct world *world;
    int64_t offset_ms;
    int per_mille; /* 1000: as fast as the world's */
};

struct world_port {
    struct sl_table_port port;
    struct world *world;
    int fail_percent;     /* of calls whose operations are not carried out */
    int lose_percent;     /* of operations that are carried out, but whose answer is lost */
    int64_t slowest_ms;   /* of a call, before and after it is carried out */
    unsigned is_down : 1; /* nothing is reached */
};

struct world_worker {
    struct world *world;
    struct world_clock clock;
    struct world_port port;
    struct sl_book *book;
    char name[32];
};

struct world {
    int64_t ms; /* true time */
    uint64_t random;
    char *folder;
    struct sl_clock_virtual still; /* for SQLite */
    struct sl_sinks sinks;
    struct sl_table_port *table;
    struct sl_arena *arena;
    struct world_worker workers[WORKERS_MAX];
};

static inline uint64_t world_draw(struct world *w, uint64_t below)
{
    return sl_random_step(&w->random) % below;
}

static inline int64_t world_clock_now(struct sl_clock *clock)
{
    struct world_clock *c = (struct world_clock *)clock;
    return c->offset_ms + c->world->ms * c->per_mille / 1000;
}

static inline int64_t world_clock_wall(struct sl_clock *clock)
{
    return (WALL_MS + ((struct world_clock *)clock)->world->ms) * 1000000;
}

static inline uint64_t world_clock_random(struct sl_clock *clock)
{
    return sl_random_step(&((struct world_clock *)clock)->world->random);
}

static inline void world_delay(struct world_port *p)
{
    if (p->slowest_ms)
        p->world->ms += (int64_t)world_draw(p->world, (uint64_t)p->slowest_ms);
}

static inline bool world_chance(struct world *w, int percent)
{
    return percent && world_draw(w, 100) < (uint64_t)percent;
}

static inline void world_lose(struct sl_result *result)
{
    *result = (struct sl_result){.status = SL_RETRY, .code = "Timeout", .text = "the answer did not come"};
}

static inline void world_apply(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                               struct sl_result *results, const struct sl_call *call)
{
    struct world_port *p = (struct world_port *)port;
    const struct sl_call own = {.arena = call->arena, .deadline_ms = INT64_MAX};
    world_delay(p);
    bool is_out = p->is_down || world_chance(p->world, p->fail_percent);
    if (!is_out)
        p->world->table->apply(p->world->table, ops, n, results, &own);
    world_delay(p);
    for (size_t i = 0; i < n; i++)
        if (is_out || world_chance(p->world, p->lose_percent))
            world_lose(&results[i]);
}

static inline void world_scan(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                              struct sl_table_page *pages, const struct sl_call *call)
{
    struct world_port *p = (struct world_port *)port;
    const struct sl_call own = {.arena = call->arena, .deadline_ms = INT64_MAX};
    world_delay(p);
    p->world->table->scan(p->world->table, scans, n, pages, &own);
    world_delay(p);
    if (p->is_down || world_chance(p->world, p->fail_percent))
        world_lose(&pages[0].result);
}

static inline struct world *world_new(uint64_t seed)
{
    struct world *w = calloc(1, sizeof(*w));
    struct sl_error error = SL_NO_ERROR;
    w->random = seed;
    w->folder = test_folder_in_memory();
    w->arena = sl_arena_new(4096);
    sl_clock_virtual_init(&w->still, 0, seed);
    sl_sinks_init(&w->sinks, &w->still.clock, NULL, &(struct sl_vars){.list = NULL});
    const char *url = sl_arena_printf(w->arena, "sqlite:%s/leases.db?table=leases", w->folder);
    if (sl_target_table(&w->sinks, sl_span_str(url), &w->table, &error) != SL_OK)
        fail_msg("%s", error.text);
    return w;
}

/* The n-th worker begins; its book is not opened. */
static inline struct world_worker *world_worker(struct world *w, size_t n)
{
    struct world_worker *worker = &w->workers[n];
    static unsigned starts;
    *worker = (struct world_worker){.world = w};
    worker->clock =
        (struct world_clock){{world_clock_now, world_clock_wall, NULL, world_clock_random, NULL}, w, 0, 1000};
    worker->port = (struct world_port){.port = {.size = sizeof(struct sl_table_port)}, .world = w};
    worker->port.port.apply = world_apply;
    worker->port.port.scan = world_scan;
    snprintf(worker->name, sizeof(worker->name), "w%zu:%u", n, starts++);
    const struct sl_book_options options = {.port = &worker->port.port,
                                            .clock = &worker->clock.clock,
                                            .table = "the lease table",
                                            .worker = worker->name,
                                            .stream_arn = STREAM,
                                            .failover_ms = FAILOVER_MS};
    worker->book = sl_book_new(&options);
    return worker;
}

static inline void world_destroy(struct world *w)
{
    for (size_t i = 0; i < WORKERS_MAX; i++)
        sl_book_destroy(w->workers[i].book);
    w->table->close(w->table);
    sl_sinks_clean_up(&w->sinks);
    sl_arena_destroy(w->arena);
    test_folder_remove(w->folder);
    free(w);
}

/* ---- the table, as it is ---- */

/* Writes a row as it stands; ' for ". */
static inline void world_put(struct world *w, const char *item)
{
    struct sl_span text = json_span(item);
    struct sl_arena *arena = sl_arena_new(4096);
    const struct sl_call call = {.arena = arena, .deadline_ms = INT64_MAX};
    struct sl_lease lease;
    struct sl_result result;
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = sl_lease_read(text, arena, &lease, &error); /* a bad row has a key too */
    assert_true(status == SL_OK || lease.key);
    const char *key = sl_arena_printf(arena, "{\"leaseKey\":{\"S\":\"%s\"}}", lease.key);
    struct sl_table_op op = {.verb = SL_TABLE_PUT, .key = sl_span_str(key), .item = text};
    w->table->apply(w->table, &op, 1, &result, &call);
    assert_int_equal(result.status, SL_OK);
    sl_arena_destroy(arena);
}

/* The row's text in the world's arena; absent when there is none. */
static inline struct sl_span world_row(struct world *w, const char *key)
{
    const struct sl_call call = {.arena = w->arena, .deadline_ms = INT64_MAX};
    struct sl_result result;
    const char *json = sl_arena_printf(w->arena, "{\"leaseKey\":{\"S\":\"%s\"}}", key);
    struct sl_table_op op = {.verb = SL_TABLE_GET, .key = sl_span_str(json)};
    w->table->apply(w->table, &op, 1, &result, &call);
    assert_int_equal(result.status, SL_OK);
    return result.item;
}

static inline struct sl_lease world_lease(struct world *w, const char *key)
{
    struct sl_lease lease = {0};
    struct sl_error error = SL_NO_ERROR;
    struct sl_span row = world_row(w, key);
    if (!row.ptr || sl_lease_read(row, w->arena, &lease, &error) != SL_OK)
        fail_msg("%s: %s", key, row.ptr ? error.text : "no row");
    return lease;
}

#endif
