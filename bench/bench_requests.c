/* Requests to a table that is 0 or 5 ms away, as ratios in one run: what the pace of requests is worth
 * against a fixed number in flight, and what one costs. One JSON line a figure. */
#include "base/error.h"
#include "bench/support/events.h"
#include "bench/support/keeper.h"
#include "sinks/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define OPS 5000

static void figure(const char *name, double value, const char *unit)
{
    printf("{\"figure\":\"%s\",\"value\":%.3f,\"unit\":\"%s\"}\n", name, value, unit);
}

struct spent {
    double wall, cpu; /* seconds */
};

static struct spent now(void)
{
    struct timespec t;
    struct rusage use;
    clock_gettime(CLOCK_MONOTONIC, &t);
    getrusage(RUSAGE_SELF, &use);
    return (struct spent){(double)t.tv_sec + (double)t.tv_nsec * 1e-9,
                          (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                              (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6};
}

static void fill_ops(struct sl_table_op *ops, struct sl_arena *arena)
{
    static const struct sl_test absent = {SL_ABSENT, SL_LIT("PK"), {NULL, 0}};
    for (int i = 0; i < OPS; i++) {
        const char *key =
            sl_arena_printf(arena, "{\"PK\":{\"S\":\"customer#%06d\"},\"SK\":{\"S\":\"order#%d\"}}", i, i);
        const char *item = sl_arena_printf(
            arena, "%.*s,\"status\":{\"S\":\"SHIPPED\"},\"note\":{\"S\":\"as orders are: %0150d\"}}",
            (int)strlen(key) - 1, key, i);
        ops[i] = (struct sl_table_op){.verb = SL_TABLE_PUT,
                                      .key = sl_span_str(key),
                                      .item = sl_span_str(item),
                                      .tests = &absent,
                                      .n_tests = 1};
    }
}

/* One slice of OPS conditional writes on connections of its own, as the first of a process. */
static struct spent write_slice(const char *url, unsigned delay_us)
{
    struct keeper keeper;
    keeper_start(&keeper, "{}", delay_us);
    char endpoint[100];
    const char *list[] = {"AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=secret",
                          "AWS_REGION=us-east-1", endpoint, NULL};
    snprintf(endpoint, sizeof(endpoint), "AWS_ENDPOINT_URL=%s", keeper.url);
    struct sl_vars vars = {.list = list};
    struct sl_sinks sinks;
    struct sl_error error = {.status = SL_OK};
    struct sl_table_port *table = NULL;
    struct sl_call call = {sl_arena_new(64 * 1024), INT64_MAX};
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    struct sl_table_op *ops = sl_arena_alloc(arena, OPS * sizeof(*ops));
    struct sl_result *results = sl_arena_alloc(arena, OPS * sizeof(*results));
    fill_ops(ops, arena);
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &vars);
    if (sl_target_table(&sinks, sl_span_str(url), &table, &error) != SL_OK)
        sl_die("bench_requests: %s", error.text);
    struct spent began = now();
    table->apply(table, ops, OPS, results, &call);
    struct spent ended = now();
    for (int i = 0; i < OPS; i++)
        if (results[i].status != SL_OK)
            sl_die("bench_requests: %s", results[i].text);
    table->close(table);
    sl_sinks_clean_up(&sinks);
    keeper_stop(&keeper);
    sl_arena_destroy(arena);
    sl_arena_destroy(call.arena);
    return (struct spent){ended.wall - began.wall, ended.cpu - began.cpu};
}

#define PAIRS 5 /* at most */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *of, size_t n)
{
    qsort(of, n, sizeof(*of), compare);
    return of[n / 2];
}

/* In turn, so that both meet the same machine. */
static void bench_pace(unsigned delay_ms)
{
    double fixed[PAIRS], paced[PAIRS], faster[PAIRS], cpu[PAIRS];
    char text[128];
    size_t pairs = bench_size(PAIRS, 1);
    for (size_t i = 0; i < pairs; i++) {
        struct spent before = write_slice("dynamodb://tbl?in_flight=16", delay_ms * 1000);
        struct spent after = write_slice("dynamodb://tbl", delay_ms * 1000);
        fixed[i] = before.wall * 1e3;
        paced[i] = after.wall * 1e3;
        faster[i] = before.wall / after.wall;
        cpu[i] = after.cpu / before.cpu;
    }
    snprintf(text, sizeof(text), "5000 conditional writes, %u ms away, 16 in flight", delay_ms);
    figure(text, median(fixed, pairs), "ms");
    snprintf(text, sizeof(text), "5000 conditional writes, %u ms away, as many as the target takes",
             delay_ms);
    figure(text, median(paced, pairs), "ms");
    snprintf(text, sizeof(text), "5000 conditional writes, %u ms away, 16 to adapted", delay_ms);
    figure(text, median(faster, pairs), "x faster");
    snprintf(text, sizeof(text), "5000 conditional writes, %u ms away, processor time, adapted to 16",
             delay_ms);
    figure(text, median(cpu, pairs), "x");
}

int main(void)
{
    bench_pace(0);
    bench_pace(5);
    return 0;
}
