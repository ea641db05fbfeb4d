/* Requests through the pool and the AWS layer to a local keep-alive server in a process of its own: requests
 * a second on one core of ours, processor time, allocations and copies of a request, and how many of a slice
 * fly at once. One JSON line a figure. */
#include "aws/aws.h"
#include "base/error.h"
#include "bench/support/events.h"
#include "bench/support/keeper.h"
#include "sinks/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* ---- counting: every library of the process allocates and copies through these ---- */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
#define COUNTED __attribute__((visibility("default")))

static unsigned long allocations, copied;
static const char *watched, *watched_end; /* a body: bytes copied from it are counted */

COUNTED void *malloc(size_t n)
{
    allocations++;
    return __libc_malloc(n);
}

COUNTED void *calloc(size_t n, size_t size)
{
    allocations++;
    return __libc_calloc(n, size);
}

COUNTED void *realloc(void *p, size_t n)
{
    allocations++;
    return __libc_realloc(p, n);
}

/* Behind a pointer, or the compiler makes a memcpy of it again. */
static void *(*volatile move)(void *, const void *, size_t) = memmove;

COUNTED void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    if ((const char *)from >= watched && (const char *)from < watched_end)
        copied += n;
    return move(to, from, n);
}

/* ---- measuring ---- */

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static void figure(const char *name, double value, const char *unit)
{
    printf("{\"figure\":\"%s\",\"value\":%.2f,\"unit\":\"%s\"}\n", name, value, unit);
}

static struct sl_sinks sinks;
static struct sl_vars vars;
static const char *list[] = {"AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=secret",
                             "AWS_REGION=us-east-1", NULL, NULL};
static char endpoint[100];

static void open_sinks(const struct keeper *keeper)
{
    snprintf(endpoint, sizeof(endpoint), "AWS_ENDPOINT_URL=%s", keeper->url);
    list[3] = endpoint;
    vars.list = list;
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &vars);
}

/* ---- the pool alone ---- */

#define ROUNDS bench_size(20000, 1000)
#define FLIGHT 16

static void bench_pool(void)
{
    struct keeper keeper;
    struct sl_http_exchange exchanges[FLIGHT];
    const struct sl_span body = SL_LIT("{\"TableName\":\"tbl\",\"Key\":{\"PK\":{\"S\":\"customer#1\"}}}");
    keeper_start(&keeper, "{}", 0);
    open_sinks(&keeper);
    struct sl_http_options options = {.clock = sl_clock_system(), .vars = &vars};
    struct sl_http *http = sl_http_new(&options);
    for (size_t i = 0; i < FLIGHT; i++) {
        struct sl_http_exchange *e = &exchanges[i];
        sl_http_exchange_init(e);
        e->method = "POST";
        e->url = keeper.url;
        e->headers[e->n_headers++] = "content-type: application/x-amz-json-1.0";
        e->headers[e->n_headers++] = "x-amz-target: DynamoDB_20120810.GetItem";
        e->parts = &body;
        e->n_parts = 1;
        e->body_bytes = body.len;
        e->timeout_ms = 10000;
        sl_http_start(http, e);
    }
    size_t done = 0, started = FLIGHT;
    double began = 0, spent = 0;
    unsigned long allocated = 0;
    while (done < ROUNDS) {
        sl_http_wait(http, 10000);
        for (size_t i = 0; i < FLIGHT; i++) {
            if (exchanges[i].outcome == SL_HTTP_RUNNING || exchanges[i].outcome == SL_HTTP_IDLE)
                continue;
            if (exchanges[i].outcome != SL_HTTP_ANSWERED)
                sl_die("bench_http: %s", exchanges[i].problem);
            exchanges[i].outcome = SL_HTTP_IDLE;
            if (++done == ROUNDS / 10) { /* warm: every connection is there */
                began = wall();
                spent = cpu();
                allocated = allocations;
            }
            if (started < ROUNDS) {
                started++;
                sl_http_start(http, &exchanges[i]);
            }
        }
    }
    double n = ROUNDS - ROUNDS / 10;
    figure("http pool, 16 in flight", n / (wall() - began), "requests/s");
    figure("http pool, processor time", (cpu() - spent) / n * 1e6, "us/request");
    figure("http pool, allocations", (double)(allocations - allocated) / n, "per request");
    figure("http pool, connections", (double)sl_http_connections(http), "opened");
    for (size_t i = 0; i < FLIGHT; i++)
        sl_http_exchange_clean_up(&exchanges[i]);
    sl_http_destroy(http);
    sl_sinks_clean_up(&sinks);
    keeper_stop(&keeper);
}

/* ---- the table port ---- */

#define OPS 100

static struct sl_table_port *open_table(void)
{
    struct sl_table_port *table = NULL;
    struct sl_error error = {.status = SL_OK};
    if (sl_target_table(&sinks, SL_LIT("dynamodb://tbl"), &table, &error) != SL_OK)
        sl_die("bench_http: %s", error.text);
    return table;
}

static void fill_ops(struct sl_table_op *ops, struct sl_arena *arena, const struct sl_test *test)
{
    for (int i = 0; i < OPS; i++) {
        const char *key =
            sl_arena_printf(arena, "{\"PK\":{\"S\":\"customer#%06d\"},\"SK\":{\"S\":\"order#%d\"}}", i, i);
        const char *item = sl_arena_printf(
            arena,
            "%.*s,\"status\":{\"S\":\"SHIPPED\"},\"total\":{\"N\":\"123.45\"},\"note\":{\"S\":"
            "\"an item of about three hundred bytes, as orders are: %0150d\"}}",
            (int)strlen(key) - 1, key, i);
        ops[i] =
            (struct sl_table_op){.verb = SL_TABLE_PUT, .key = sl_span_str(key), .item = sl_span_str(item)};
        if (test) {
            ops[i].tests = test;
            ops[i].n_tests = 1;
        }
    }
}

static void apply_many(const char *name, const struct sl_test *test, int rounds, unsigned delay_us)
{
    struct keeper keeper;
    struct sl_table_op ops[OPS];
    struct sl_result results[OPS];
    struct sl_call call = {sl_arena_new(64 * 1024), INT64_MAX};
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    char text[128];
    keeper_start(&keeper, "{\"UnprocessedItems\":{}}", delay_us);
    open_sinks(&keeper);
    struct sl_table_port *table = open_table();
    fill_ops(ops, arena, test);
    table->apply(table, ops, OPS, results, &call);
    uint32_t before = keeper.shared->requests;
    unsigned long allocated = allocations;
    double began = wall(), spent = cpu();
    for (int i = 0; i < rounds; i++) {
        table->apply(table, ops, OPS, results, &call);
        sl_arena_reset(call.arena);
        for (int k = 0; k < OPS; k++)
            if (results[k].status != SL_OK)
                sl_die("bench_http: %s", results[k].text);
    }
    double took = wall() - began, requests = keeper.shared->requests - before;
    snprintf(text, sizeof(text), "%s, requests", name);
    figure(text, requests / rounds, "per slice");
    snprintf(text, sizeof(text), "%s, in flight at once", name);
    figure(text, keeper.shared->most_held, "requests");
    snprintf(text, sizeof(text), "%s, time", name);
    figure(text, took / rounds * 1e3, "ms/slice");
    snprintf(text, sizeof(text), "%s, processor time", name);
    figure(text, (cpu() - spent) / rounds * 1e3, "ms/slice");
    snprintf(text, sizeof(text), "%s, allocations", name);
    figure(text, (double)(allocations - allocated) / requests, "per request");
    table->close(table);
    sl_sinks_clean_up(&sinks);
    keeper_stop(&keeper);
    sl_arena_destroy(arena);
    sl_arena_destroy(call.arena);
}

/* ---- copies of a body ---- */

static void bench_copies(size_t bytes)
{
    struct keeper keeper;
    char text[128];
    struct sl_call call = {sl_arena_new(4096), INT64_MAX};
    struct sl_object_port *objects = NULL;
    struct sl_error error = {.status = SL_OK};
    struct sl_result result;
    char *body = malloc(bytes);
    memset(body, 'x', bytes);
    keeper_start(&keeper, "", 0);
    open_sinks(&keeper);
    if (sl_target_objects(&sinks, SL_LIT("s3://bucket"), &objects, &error) != SL_OK)
        sl_die("bench_http: %s", error.text);
    struct sl_object object = {.key = SL_LIT("k"), .body = sl_span(body, bytes)};
    objects->apply(objects, &object, 1, &result, &call);
    watched = body;
    watched_end = body + bytes;
    copied = 0;
    double began = wall();
    int rounds = 50;
    for (int i = 0; i < rounds; i++)
        objects->apply(objects, &object, 1, &result, &call);
    double took = wall() - began;
    watched = watched_end = NULL;
    if (result.status != SL_OK)
        sl_die("bench_http: %s", result.text);
    snprintf(text, sizeof(text), "S3 PUT of %zu KB, copies of the body (libcurl's send buffer)",
             bytes / 1024);
    figure(text, (double)copied / (double)rounds / (double)bytes, "per request");
    snprintf(text, sizeof(text), "S3 PUT of %zu KB, SHA-256 and CRC-32 included", bytes / 1024);
    figure(text, (double)bytes * rounds / took / 1e6, "MB/s");
    objects->close(objects);
    sl_sinks_clean_up(&sinks);
    keeper_stop(&keeper);
    sl_arena_destroy(call.arena);
    free(body);
}

int main(void)
{
    const struct sl_test absent = {SL_ABSENT, SL_LIT("PK"), {NULL, 0}};
    bench_pool();
    apply_many("100 plain writes", NULL, 200, 0);
    apply_many("100 plain writes, 5 ms away", NULL, 50, 5000);
    apply_many("100 conditional writes", &absent, 50, 0);
    apply_many("100 conditional writes, 5 ms away", &absent, 20, 5000);
    bench_copies(64 * 1024);
    bench_copies(4 * 1024 * 1024);
    return 0;
}
