/* Pages of a table through the AWS layer, from a local server in a process of its own: items a second on one
 * core of ours, and processor time a page. One JSON line a figure. */
#include "base/error.h"
#include "bench/support/events.h"
#include "bench/support/keeper.h"
#include "sinks/target.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define ITEMS  2000 /* of about 500 bytes: a page of 1 MB */
#define FLIGHT 16
#define ROUNDS ((int)bench_size(40, 2))

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

static void write_page(struct sl_buffer *out)
{
    sl_buffer_add_str(out, "{\"Items\":[");
    for (int i = 0; i < ITEMS; i++)
        sl_buffer_printf(
            out,
            "%s{\"PK\":{\"S\":\"customer#%08d\"},\"SK\":{\"S\":\"order#%d\"},\"total\":{\"N\":\"%d.50\"},"
            "\"status\":{\"S\":\"shipped\"},\"paid\":{\"BOOL\":true},\"address\":{\"M\":{\"street\":"
            "{\"S\":\"Long Street 17, second floor on the left\"},\"city\":{\"S\":\"Springfield\"}}},"
            "\"lines\":{\"L\":[{\"M\":{\"sku\":{\"S\":\"A-1000\"},\"n\":{\"N\":\"2\"}}},{\"M\":{\"sku\":"
            "{\"S\":\"B-2000\"},\"n\":{\"N\":\"1\"}}}]},\"note\":{\"S\":\"leave it with the neighbours\"}}",
            i ? "," : "", i, i, i);
    sl_buffer_printf(
        out,
        "],\"Count\":%d,\"ScannedCount\":%d,\"LastEvaluatedKey\":{\"PK\":{\"S\":\"x\"},\"SK\":{\"S\":"
        "\"y\"}},\"ConsumedCapacity\":{\"TableName\":\"tbl\",\"CapacityUnits\":128.5}}",
        ITEMS, ITEMS);
    sl_buffer_add_char(out, '\0');
}

static void scan_rounds(struct sl_table_port *table, struct sl_call *call)
{
    struct sl_table_scan scans[FLIGHT];
    struct sl_table_page pages[FLIGHT];
    for (uint32_t i = 0; i < FLIGHT; i++)
        scans[i] = (struct sl_table_scan){.segment = i, .of = FLIGHT, .is_consistent = true};
    for (int round = 0; round < ROUNDS; round++) {
        table->scan(table, scans, FLIGHT, pages, call);
        for (size_t i = 0; i < FLIGHT; i++)
            if (pages[i].result.status != SL_OK || pages[i].n != ITEMS)
                sl_die("bench_scan: %s", pages[i].result.text);
        sl_arena_reset(call->arena);
    }
}

int main(void)
{
    struct keeper keeper;
    struct sl_buffer page;
    struct sl_sinks sinks;
    struct sl_table_port *table;
    struct sl_error error = SL_NO_ERROR;
    struct sl_call call = {sl_arena_new(64 * 1024), INT64_MAX};
    char endpoint[100];
    const char *const list[] = {"AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=secret",
                                "AWS_REGION=us-east-1", endpoint, NULL};
    const struct sl_vars vars = {.list = list};
    sl_buffer_init(&page, 4 * 1024 * 1024);
    write_page(&page);
    keeper_start(&keeper, page.ptr, 0);
    snprintf(endpoint, sizeof(endpoint), "AWS_ENDPOINT_URL=%s", keeper.url);
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &vars);
    if (sl_target_table(&sinks, SL_LIT("dynamodb://tbl"), &table, &error) != SL_OK)
        sl_die("bench_scan: %s", error.text);
    double began = wall(), spent = cpu();
    scan_rounds(table, &call);
    double took = wall() - began, used = cpu() - spent, items = (double)ITEMS * FLIGHT * ROUNDS;
    printf("{\"figure\":\"scan, items\",\"value\":%.0f,\"unit\":\"items/s\"}\n", items / took);
    printf("{\"figure\":\"scan, items by our processor time\",\"value\":%.0f,\"unit\":\"items/s\"}\n",
           items / used);
    printf("{\"figure\":\"scan, processor time\",\"value\":%.3f,\"unit\":\"ms/page of %zu bytes\"}\n",
           used / FLIGHT / ROUNDS * 1e3, page.len);
    table->close(table);
    sl_sinks_clean_up(&sinks);
    keeper_stop(&keeper);
    sl_buffer_clean_up(&page);
    sl_arena_destroy(call.arena);
    return 0;
}
