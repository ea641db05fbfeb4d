/* What it costs to be a plugin: a call beside a built-in handler's, naming what a handler holds, and looking
 * into records through the host table. Run from the folder of the project, with build/bench/empty.so there.
 */
#include "bench/support/empty_handler.h"
#include "bench/support/events.h"
#include "handlers/dispatch/dispatch_call.h"
#include "handlers/dispatch/watch.h"
#include "runtime/contain/holds.h"
#include "streams/record.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDS 100
#define CALLS   100000
#define ROUNDS                                                                                               \
    ((int)bench_size(20, 1)) /* the best counts, so that whatever else the machine does is left out */
#define NAMES 12

/* ---- calls ---- */

struct bench {
    struct sl_log log;
    struct sl_sinks sinks;
    struct sl_pipeline *p;
    struct sl_arena *arena;
    struct sl_slice_call call;
};

static void bench_open(struct bench *b, const char *folder, const char *config)
{
    static const struct sl_vars vars = {.list = NULL};
    static const struct sl_handler *const builtins[] = {&bench_empty_handler, NULL};
    const char *const path[] = {folder, NULL};
    struct sl_clock *clock = sl_clock_system();
    struct sl_error error = {0};
    sl_log_init(&b->log, -1, SL_OFF, SL_LOG_TEXT, clock);
    sl_sinks_init(&b->sinks, clock, &b->log, &vars);
    const struct sl_pipeline_options options = {.config_path = config,
                                                .vars = &vars,
                                                .clock = clock,
                                                .log = &b->log,
                                                .sinks = &b->sinks,
                                                .handler_path = path,
                                                .function_name = "",
                                                .builtins = builtins};
    if (sl_pipeline_open(&options, &b->p, &error) != SL_OK)
        sl_die("bench_plugin: %s", error.text);
}

static void call_once(struct bench *b, size_t route)
{
    struct sl_error error = {0};
    if (sl_dispatch_call(&b->p->routes[route], &b->call, &error) != SL_OK)
        sl_die("bench_plugin: %s", error.text);
}

static double seconds_of(struct bench *b, size_t route)
{
    double began = bench_seconds();
    for (int i = 0; i < CALLS; i++)
        call_once(b, route);
    return bench_seconds() - began;
}

static void measure_calls(struct bench *b, size_t n)
{
    double built_in = 1e9, plugin = 1e9;
    char figure[64];
    b->call.slice.n = n;
    for (int i = 0; i < ROUNDS; i++) {
        double a = seconds_of(b, 0), c = seconds_of(b, 1);
        built_in = a < built_in ? a : built_in;
        plugin = c < plugin ? c : plugin;
    }
    snprintf(figure, sizeof(figure), "a call on %zu records, built in", n);
    bench_figure(figure, built_in / CALLS * 1e9, "ns");
    snprintf(figure, sizeof(figure), "a call on %zu records, plugin", n);
    bench_figure(figure, plugin / CALLS * 1e9, "ns");
}

/* ---- naming what is held ---- */

static struct sl_holds *holds;

static void enter(struct sl_call_watch *watch, const char *route, const struct sl_record *const *records,
                  size_t n)
{
    (void)watch;
    sl_holds_enter(holds, route, records, n);
}

static void leave(struct sl_call_watch *watch)
{
    (void)watch;
    sl_holds_leave(holds);
}

static bool is_whole(struct sl_call_watch *watch)
{
    (void)watch;
    return true;
}

static void measure_naming(struct bench *b)
{
    struct sl_call_watch watch = {.enter = enter, .leave = leave, .is_whole = is_whole};
    struct sl_error error = {0};
    if (sl_holds_open("/tmp", &holds, &error) != SL_OK)
        sl_die("bench_plugin: %s", error.text);
    b->p->options.watch = &watch;
    b->call.slice.n = RECORDS;
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double began = bench_seconds();
        for (int k = 0; k < CALLS / 10; k++)
            call_once(b, 1);
        double took = bench_seconds() - began;
        best = took < best ? took : best;
    }
    bench_figure("naming what a handler holds", best / (CALLS / 10.) / RECORDS * 1e9, "ns/record");
    b->p->options.watch = NULL;
    sl_holds_close(holds);
}

/* ---- looking into records ---- */

static void add_record(struct sl_buffer *out, size_t i)
{
    sl_buffer_printf(
        out,
        "%s{\"eventID\":\"%032zx\",\"eventName\":\"INSERT\",\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"a\"}},"
        "\"SequenceNumber\":\"%zu\",\"NewImage\":{\"PK\":{\"S\":\"a\"}",
        i ? "," : "{\"Records\":[", i, 1000 + i);
    for (int k = 1; k < NAMES; k++)
        sl_buffer_printf(out, ",\"attribute%d\":{\"%s\"}", k * 7,
                         k % 3 == 0   ? "N\":\"12.50"
                         : k % 3 == 1 ? "S\":\"some text, no more than that"
                                      : "S\":\"2026-11-20T21:04:00Z");
    sl_buffer_add_str(out, "}}}");
}

static double lookup_ns(const struct sl_host *host, const struct sl_batch *batch, const struct sl_span *names)
{
    size_t found = 0;
    double began = bench_seconds();
    for (size_t i = 0; i < batch->n; i++)
        for (int k = 0; k < NAMES; k++)
            found +=
                host->record_attribute(sl_batch_record(batch, i), SL_NEW_IMAGE, names[k]).type != SL_NONE;
    double took = bench_seconds() - began;
    if (found != NAMES * batch->n)
        sl_die("bench_plugin: attributes are missing");
    return took / (double)(NAMES * batch->n) * 1e9;
}

static void measure_lookups(void)
{
    struct sl_arena *arena = sl_arena_new(1 << 20);
    struct sl_buffer text;
    struct sl_span names[NAMES] = {{"PK", 2}};
    double first = 1e9, next = 1e9;
    sl_buffer_init(&text, 16 << 20);
    for (size_t i = 0; i < RECORDS; i++)
        add_record(&text, i);
    sl_buffer_add_str(&text, "]}");
    for (int k = 1; k < NAMES; k++)
        names[k] = sl_span_str(sl_arena_printf(arena, "attribute%d", k * 7));
    for (int i = 0; i < ROUNDS * 10; i++) {
        struct sl_arena *own = sl_arena_new(1 << 20);
        struct sl_batch batch;
        struct sl_error error = {0};
        if (sl_batch_decode(sl_buffer_span(&text), own, &(struct sl_decode_options){0}, &batch, &error) !=
            SL_OK)
            sl_die("bench_plugin: %s", error.text);
        double ns = lookup_ns(&sl_host_table, &batch, names);
        first = ns < first ? ns : first;
        ns = lookup_ns(&sl_host_table, &batch, names);
        next = ns < next ? ns : next;
        sl_arena_destroy(own);
    }
    bench_figure("attribute by name of 12, the look that makes the index shared among them", first, "ns");
    bench_figure("attribute by name of 12, index made", next, "ns");
    sl_buffer_clean_up(&text);
    sl_arena_destroy(arena);
}

int main(int argc, char **argv)
{
    struct bench b = {.arena = sl_arena_new(4096)};
    char folder[PATH_MAX], config[] = "/tmp/bench_plugin.XXXXXX";
    (void)argc;
    if (!realpath(argv[0], folder))
        sl_die("bench_plugin: where is it?");
    *strrchr(folder, '/') = '\0';
    int fd = mkstemp(config);
    static const char routes[] =
        "{\"on_failure\":\"report\",\"routes\":[{\"name\":\"a\",\"handler\":\"built_in\"},"
        "{\"name\":\"b\",\"handler\":\"empty\"}]}";
    if (fd < 0 || write(fd, routes, sizeof(routes) - 1) != sizeof(routes) - 1 || close(fd) != 0)
        sl_die("bench_plugin: %s cannot be written", config);
    bench_open(&b, folder, config);
    unlink(config);

    struct sl_buffer text;
    struct sl_batch batch;
    struct sl_error error = {0};
    sl_buffer_init(&text, 16 << 20);
    bench_event(&text, RECORDS, 7);
    if (sl_batch_decode(sl_buffer_span(&text), b.arena, &(struct sl_decode_options){0}, &batch, &error) !=
        SL_OK)
        sl_die("bench_plugin: %s", error.text);
    const struct sl_record *records[RECORDS];
    struct sl_mark marks[RECORDS];
    for (size_t i = 0; i < RECORDS; i++)
        records[i] = sl_batch_record(&batch, i);
    b.call = (struct sl_slice_call){.slice = {.records = records, .arena = b.arena, .request_id = ""},
                                    .marks = marks};
    measure_calls(&b, 1);
    measure_calls(&b, RECORDS);
    measure_naming(&b);
    measure_lookups();
    sl_pipeline_close(b.p);
    sl_sinks_clean_up(&b.sinks);
    sl_buffer_clean_up(&text);
    sl_arena_destroy(b.arena);
    return 0;
}
