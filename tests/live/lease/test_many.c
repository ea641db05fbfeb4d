/* Many workers on many leases, on the virtual clock: everybody has its share soon, no lease has two holders
 * for certain at any time, workers that die are replaced, and a turn costs what its table holds.
 *
 * usage: test_many [WORKERS LEASES] */
#define WORKERS_MAX 60
#include "tests/live/lease/lease_world.h"

#include <time.h>

static size_t n_workers = 20, n_leases = 400;

struct fleet {
    struct world *w;
    struct sl_book_shard *shards;
    char (*names)[32];
    unsigned *holders; /* of each lease, for certain, at this moment */
    int64_t next_ms[WORKERS_MAX];
    bool is_dead[WORKERS_MAX];
};

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void open_worker(struct fleet *f, size_t i)
{
    struct sl_error error = SL_NO_ERROR;
    struct world_worker *worker = world_worker(f->w, i);
    worker->clock.offset_ms = (int64_t)world_draw(f->w, 1000000);
    worker->clock.per_mille = 990 + (int)world_draw(f->w, 21);
    if (sl_book_open(worker->book, &error) != SL_OK)
        fail_msg("worker %zu: %s", i, error.text);
    f->next_ms[i] = 0;
}

static struct fleet *new_fleet(size_t workers, size_t leases)
{
    struct fleet *f = calloc(1, sizeof(*f));
    struct sl_error error = SL_NO_ERROR;
    f->w = world_new(workers * 1000003 + leases);
    f->shards = calloc(leases, sizeof(*f->shards));
    f->names = calloc(leases, sizeof(*f->names));
    f->holders = calloc(leases, sizeof(*f->holders));
    for (size_t i = 0; i < leases; i++) {
        snprintf(f->names[i], sizeof(f->names[i]), "shardId-%08zu", i);
        f->shards[i] = (struct sl_book_shard){f->names[i], "", false};
    }
    for (size_t i = 0; i < workers; i++)
        open_worker(f, i);
    const struct sl_book_listing listing = {.shards = f->shards, .n = leases, .now_ms = WALL_MS};
    if (sl_book_list(f->w->workers[0].book, &listing, &error) != SL_OK)
        fail_msg("%s", error.text);
    return f;
}

static void delete_fleet(struct fleet *f)
{
    world_destroy(f->w);
    free(f->shards);
    free(f->names);
    free(f->holders);
    free(f);
}

/* How many leases each worker holds for certain; nobody holds one that another holds. */
static void count(struct fleet *f, size_t workers, size_t leases, size_t *least, size_t *most)
{
    memset(f->holders, 0, leases * sizeof(*f->holders));
    *least = SIZE_MAX, *most = 0;
    for (size_t i = 0; i < workers; i++) {
        const struct world_worker *worker = &f->w->workers[i];
        size_t own = 0;
        for (size_t k = 0; !f->is_dead[i] && k < sl_book_count(worker->book); k++) {
            struct sl_book_lease lease = sl_book_at(worker->book, k);
            bool is_held =
                lease.hold && lease.is_handed_out &&
                f->w->ms * worker->clock.per_mille / 1000 + worker->clock.offset_ms < lease.until_ms;
            size_t at = strtoul(lease.lease->key + strlen("shardId-"), NULL, 10);
            own += is_held;
            if (is_held && f->holders[at]++)
                fail_msg("at %lld ms: %s has two holders", (long long)f->w->ms, lease.lease->key);
        }
        if (f->is_dead[i])
            continue;
        *least = own < *least ? own : *least;
        *most = own > *most ? own : *most;
    }
}

/* Turns as they become due, until everybody has its share; returns after how much time. */
static int64_t balance(struct fleet *f, size_t workers, size_t leases, size_t alive)
{
    size_t least = 0, most = 0, total = 0;
    const int64_t began_ms = f->w->ms, limit_ms = 60 * FAILOVER_MS;
    while (f->w->ms - began_ms < limit_ms) {
        f->w->ms += 250;
        for (size_t i = 0; i < workers; i++) {
            struct world_worker *worker = &f->w->workers[i];
            struct sl_error error = SL_NO_ERROR;
            if (f->is_dead[i] || world_clock_now(&worker->clock.clock) < f->next_ms[i])
                continue;
            if (sl_book_turn(worker->book, &f->next_ms[i], &error) != SL_OK)
                fail_msg("worker %zu: %s", i, error.text);
        }
        if (f->w->ms % 1000)
            continue;
        count(f, workers, leases, &least, &most);
        total = 0;
        for (size_t k = 0; k < leases; k++)
            total += f->holders[k];
        if (total == leases && least >= leases / alive && most <= (leases + alive - 1) / alive)
            return f->w->ms - began_ms;
    }
    fail_msg("after %lld s %zu of %zu leases are held, by each worker from %zu to %zu",
             (long long)limit_ms / 1000, total, leases, least, most);
    return 0;
}

static void everybody_has_its_share_soon(void **state)
{
    (void)state;
    struct fleet *f = new_fleet(n_workers, n_leases);
    int64_t first_ms = balance(f, n_workers, n_leases, n_workers), second_ms;
    /* A fifth of them dies. */
    size_t dead = n_workers / 5;
    for (size_t i = 0; i < dead; i++)
        f->is_dead[5 * i] = true;
    second_ms = balance(f, n_workers, n_leases, n_workers - dead);
    if (n_leases > 1000)
        printf("%zu workers, %zu leases: everybody has its share after %lld s, and after %zu have died, %lld "
               "s\n",
               n_workers, n_leases, (long long)first_ms / 1000, dead, (long long)second_ms / 1000);
    delete_fleet(f);
}

/* The processor time of one worker's minute, by lease. */
static double cost(size_t leases)
{
    struct fleet *f = new_fleet(3, leases);
    (void)balance(f, 3, leases, 3);
    double began = processor_s();
    for (int64_t end = f->w->ms + 60000; f->w->ms < end; f->w->ms += 250)
        for (size_t i = 0; i < 3; i++) {
            struct sl_error error = SL_NO_ERROR;
            if (world_clock_now(&f->w->workers[i].clock.clock) >= f->next_ms[i])
                assert_int_equal(sl_book_turn(f->w->workers[i].book, &f->next_ms[i], &error), SL_OK);
        }
    double spent = processor_s() - began;
    delete_fleet(f);
    return spent / (3 * (double)leases);
}

static void a_turn_costs_what_the_table_holds(void **state)
{
    (void)state;
    double few = cost(n_leases), many = cost(5 * n_leases);
    if (n_leases > 1000)
        printf("a minute of a lease: %.0f us with %zu leases, %.0f us with %zu\n", few * 1e6, n_leases,
               many * 1e6, 5 * n_leases);
    if (many > 3 * few)
        fail_msg("a minute of a lease: %.0f us with %zu leases, %.0f us with %zu", few * 1e6, n_leases,
                 many * 1e6, 5 * n_leases);
}

int main(int argc, char **argv)
{
    n_workers = argc > 2 ? strtoul(argv[1], NULL, 10) : n_workers;
    n_leases = argc > 2 ? strtoul(argv[2], NULL, 10) : n_leases;
    if (n_workers < 5 || n_workers > WORKERS_MAX)
        return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_has_its_share_soon),
        cmocka_unit_test(a_turn_costs_what_the_table_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
