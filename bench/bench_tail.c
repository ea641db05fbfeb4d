/* `sluice tail`'s engine against a scripted server of Streams in another process of this machine, workers in
 * this process, sinks in memory: how many records a second, what idle shards cost, how long a record takes
 * from its availability to its effect, what many shards of full pages take in memory. */
#include "bench/support/events.h"
#include "bench/support/stream.h"
#include "live/tail/engine.h"
#include "live/tail/keeper_file.h"
#include "live/tail/worker_pipeline.h"

#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS  2
#define MAX_LATE (1 << 20)
#define MEMORY   ((size_t)64 * 1024 * 1024)
#define AGGREGATE                                                                                            \
    "{\"report_batch_item_failures\":true,\"on_failure\":\"report\",\"routes\":[{\"name\":\"totals\","       \
    "\"handler\":\"aggregate\",\"to\":\"sqlite:x?table=t\",\"mode\":\"at-least-once\",\"counters\":[{"       \
    "\"key\":{"                                                                                              \
    "\"PK\":\"{status}\"},\"add\":{\"orders\":1,\"revenue\":\"{amount}\"}}]}]}"
#define NOTIFY                                                                                               \
    "{\"report_batch_item_failures\":true,\"on_failure\":\"report\",\"routes\":[{\"name\":\"say\","          \
    "\"handler\":\"notify\",\"to\":\"jsonl:said.jsonl\",\"message\":\"{t}\"}]}"

/* ---- sinks in memory ---- */

static atomic_uint_fast64_t effects;
static atomic_bool is_slow;
static int32_t *late_us;
static atomic_size_t n_late;

static void take_rows(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                      struct sl_result *results, const struct sl_call *call)
{
    (void)port;
    (void)ops;
    (void)call;
    while (atomic_load(&is_slow))
        usleep(1000);
    memset(results, 0, n * sizeof(*results));
    atomic_fetch_add(&effects, n);
}

static void take_messages(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                          struct sl_result *results, const struct sl_call *call)
{
    (void)port;
    (void)call;
    int64_t now = bench_stream_now_us();
    for (size_t i = 0; i < n; i++) {
        size_t at = atomic_fetch_add(&n_late, 1);
        char text[32];
        snprintf(text, sizeof(text), "%.*s", SL_ARG(messages[i].body));
        if (at < MAX_LATE)
            late_us[at] = (int32_t)(now - strtoll(text, NULL, 10));
    }
    memset(results, 0, n * sizeof(*results));
}

static void close_rows(struct sl_table_port *port)
{
    free(port);
}

static void close_messages(struct sl_queue_port *port)
{
    free(port);
}

/* A port belongs to one pipeline, and so to one thread. */
static void *copy_port(const void *port, size_t n)
{
    void *copy = malloc(n);
    if (!copy)
        sl_die("out of memory: a port");
    return memcpy(copy, port, n);
}

static const struct sl_table_port rows = {.size = sizeof(rows),
                                          .max_item_bytes = 400 * 1024,
                                          .apply = take_rows,
                                          .close = close_rows,
                                          .can = SL_TABLE_ALL};
static const struct sl_queue_port messages = {
    .size = sizeof(messages), .max_message_bytes = 1 << 20, .apply = take_messages, .close = close_messages};

static enum sl_status open_table(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                 struct sl_error *error)
{
    (void)sinks;
    (void)url;
    (void)error;
    *out = copy_port(&rows, sizeof(rows));
    return SL_OK;
}

static enum sl_status open_queue(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                 struct sl_error *error)
{
    (void)sinks;
    (void)url;
    (void)error;
    *out = copy_port(&messages, sizeof(messages));
    return SL_OK;
}

static enum sl_status open_objects(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                                   struct sl_error *error)
{
    (void)sinks;
    (void)url;
    (void)out;
    return sl_fail(error, SL_FATAL, "NoObjects", "no objects here");
}

static const struct sl_openers openers = {
    .kind = sl_target_kind, .objects = open_objects, .table = open_table, .queue = open_queue};

/* ---- a run ---- */

struct run {
    const char *config;
    struct bench_stream_script script;
    unsigned seconds;
    int64_t batch_size;
    bool is_slow;
    unsigned warm_seconds; /* before them */
};

static volatile sig_atomic_t stop;
static int bell;

static unsigned left_seconds; /* after the first alarm: until then, nothing is measured */
static double cpu_before;

static double cpu_seconds_of(int who)
{
    struct rusage use;
    getrusage(who, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static void on_alarm(int number)
{
    (void)number;
    if (left_seconds) {
        cpu_before = cpu_seconds_of(RUSAGE_SELF);
        alarm(left_seconds);
        left_seconds = 0;
        return;
    }
    stop = 1;
    atomic_store(&is_slow, false);
    (void)!write(bell, &(uint64_t){1}, sizeof(uint64_t));
}

static const char *write_config(const char *text)
{
    static char path[] = "/tmp/bench_tail.XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        sl_die("bench_tail: no configuration");
    close(fd);
    return path;
}

static char *const environment[] = {"AWS_ACCESS_KEY_ID=bench", "AWS_SECRET_ACCESS_KEY=bench",
                                    "AWS_REGION=us-east-1", NULL};

static void run_engine(const struct run *r, const char *url, const char *config,
                       struct sl_engine_result *result)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_esm_settings settings;
    struct sl_live *live;
    const struct sl_vars vars = {.list = (const char *const *)environment};
    const struct sl_live_options where = {&vars, "us-east-1", url};
    const struct sl_worker_pipeline_options pipelines = {.config_path = config,
                                                         .vars = &vars,
                                                         .handler_path = (const char *const[]){NULL},
                                                         .function_name = "bench",
                                                         .function_arn = "",
                                                         .timeout_ms = 60000,
                                                         .openers = &openers};
    struct sl_worker *workers[WORKERS];
    struct sl_keeper keeper = sl_keeper_file_new(NULL);
    bell = eventfd(0, EFD_NONBLOCK);
    for (size_t i = 0; i < WORKERS; i++)
        workers[i] = sl_worker_pipeline_new(i, &pipelines);
    struct sl_pool *pool = sl_pool_new(workers, WORKERS, bell);
    sl_esm_settings_init(&settings);
    settings.report_failures = true;
    settings.batch_size = r->batch_size;
    if (sl_live_open(&where, &live, &error) != SL_OK || sl_pool_warm_up(pool, &error) != SL_OK ||
        keeper.ops->open(keeper.self, BENCH_STREAM_ARN, bell, &error) != SL_OK)
        sl_die("bench_tail: %s", error.text);
    const struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    left_seconds = r->warm_seconds ? r->seconds : 0;
    alarm(r->warm_seconds ? r->warm_seconds : r->seconds);
    const struct sl_engine_options options = {.live = live,
                                              .stream_arn = BENCH_STREAM_ARN,
                                              .keeper = keeper,
                                              .pool = pool,
                                              .bell = bell,
                                              .stop = &stop,
                                              .settings = &settings,
                                              .memory_bytes = MEMORY};
    sl_engine_run(&options, result);
}

static double cpu_seconds(void)
{
    return cpu_seconds_of(RUSAGE_SELF) - cpu_before;
}

static double most_resident_mb(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)use.ru_maxrss / 1024;
}

static int by_value(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

static void print_late(const char *name)
{
    char figure[128];
    size_t n = atomic_load(&n_late) < MAX_LATE ? atomic_load(&n_late) : MAX_LATE;
    if (n == 0)
        sl_die("bench_tail: %s: no record had an effect", name);
    qsort(late_us, n, sizeof(*late_us), by_value);
    snprintf(figure, sizeof(figure), "%s: availability to effect, median", name);
    bench_figure(figure, late_us[n / 2] / 1000.0, "ms");
    snprintf(figure, sizeof(figure), "%s: availability to effect, 99 of 100", name);
    bench_figure(figure, late_us[n / 100 * 99] / 1000.0, "ms");
}

typedef void (*report_fn)(const char *name, const struct run *r, const struct sl_engine_result *result);

/* Each in a process of its own, so that memory and processor time are its own. */
static void measure(const char *name, const struct run *r, report_fn report)
{
    struct bench_stream stream;
    bench_stream_start(&stream, &r->script);
    pid_t pid = fork();
    if (pid == 0) {
        struct sl_engine_result result = {0};
        const char *config = write_config(r->config);
        (void)mallopt(M_MMAP_THRESHOLD, 4 * 1024 * 1024); /* as the verb does */
        (void)mallopt(M_TRIM_THRESHOLD, 16 * 1024 * 1024);
        (void)mallopt(M_ARENA_MAX, 2);
        late_us = calloc(MAX_LATE, sizeof(*late_us));
        atomic_store(&is_slow, r->is_slow);
        run_engine(r, stream.url, config, &result);
        unlink(config);
        report(name, r, &result);
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    bench_stream_stop(&stream);
    if (status != 0)
        sl_die("bench_tail: %s failed", name);
}

static void report_speed(const char *name, const struct run *r, const struct sl_engine_result *result)
{
    char figure[128];
    double handled = (double)result->mapping.done;
    snprintf(figure, sizeof(figure), "%s: handled", name);
    bench_figure(figure, handled / r->seconds, "records/s");
    snprintf(figure, sizeof(figure), "%s: processor time", name);
    bench_figure(figure, cpu_seconds() / handled * 1e6, "us/record");
    snprintf(figure, sizeof(figure), "%s: of it in the engine's thread", name);
    bench_figure(figure, cpu_seconds_of(RUSAGE_THREAD) / handled * 1e6, "us/record");
    snprintf(figure, sizeof(figure), "%s: most resident", name);
    bench_figure(figure, most_resident_mb(), "MB");
}

static void report_idle(const char *name, const struct run *r, const struct sl_engine_result *result)
{
    char figure[128];
    (void)result;
    snprintf(figure, sizeof(figure), "%s: of one core", name);
    bench_figure(figure, cpu_seconds() / r->seconds * 100, "%");
}

static void report_late(const char *name, const struct run *r, const struct sl_engine_result *result)
{
    (void)r;
    (void)result;
    print_late(name);
}

static void report_memory(const char *name, const struct run *r, const struct sl_engine_result *result)
{
    char figure[128];
    (void)r;
    (void)result;
    snprintf(figure, sizeof(figure), "%s: most resident", name);
    bench_figure(figure, most_resident_mb(), "MB");
}

int main(int argc, char **argv)
{
    unsigned s8 = (unsigned)bench_size(8, 1), s6 = (unsigned)bench_size(6, 1);
    unsigned s15 = (unsigned)bench_size(15, 1), s25 = (unsigned)bench_size(25, 1);
    const struct run speed = {
        AGGREGATE, {.shards = 16, .page_records = 1000, .record_bytes = 100}, s8, 1000, false, 0};
    const struct run idle = {AGGREGATE, {.shards = 256}, s15, 100, false, s25};
    const struct run few = {NOTIFY, {.shards = 16, .rate = 1000, .record_bytes = 100}, s8, 100, false, 0};
    const struct run many = {NOTIFY, {.shards = 256, .rate = 1000, .record_bytes = 100}, s8, 100, false, 0};
    const struct run full = {
        AGGREGATE, {.shards = 256, .page_records = 1000, .record_bytes = 600}, s6, 100, true, 0};
    const char *only = argc > 1 ? argv[1] : "";
    if (!only[0] || strcmp(only, "speed") == 0)
        measure("tail --in-process, aggregate in memory, 16 shards", &speed, report_speed);
    if (!only[0] || strcmp(only, "late") == 0) {
        measure("tail, 1,000 records/s on 16 shards", &few, report_late);
        measure("tail, 1,000 records/s on 256 shards", &many, report_late);
    }
    if (!only[0] || strcmp(only, "memory") == 0)
        measure("tail, 256 shards of full pages that wait", &full, report_memory);
    if (!only[0] || strcmp(only, "idle") == 0)
        measure("tail, 256 idle shards after 25 s", &idle, report_idle);
    return 0;
}
