/* Our CPU for each document: replicate to an OpenSearch index, in both ways of keeping the order, beside
 * replicate to a table of DynamoDB Local, in one run. bench/search.sh starts the services and runs this with
 * the targets as arguments, NAME=URL each; without arguments there is nothing to measure. */
#include "bench/support/events.h"
#include "handlers/dispatch/dispatch.h"
#include "streams/decode/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define RECORDS 2000
#define ROUNDS  6

extern char **environ;

struct bench {
    struct sl_log log;
    struct sl_sinks sinks;
    struct sl_pipeline *p;
    struct sl_arena *arena;
    struct sl_answer answer;
};

static double cpu(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static void open_pipeline(struct bench *b, const struct sl_vars *vars, const char *to)
{
    static const char *const nowhere[] = {NULL};
    char path[] = "/tmp/sluice-bench-XXXXXX";
    struct sl_error error = {0};
    FILE *file = fdopen(mkstemp(path), "w");
    fprintf(
        file,
        "{\"on_failure\":\"report\",\"routes\":[{\"name\":\"r\",\"handler\":\"replicate\",\"to\":\"%s\"}]}",
        to);
    fclose(file);
    struct sl_pipeline_options options = {.config_path = path,
                                          .vars = vars,
                                          .clock = sl_clock_system(),
                                          .log = &b->log,
                                          .sinks = &b->sinks,
                                          .handler_path = nowhere,
                                          .function_name = "bench"};
    enum sl_status status = sl_pipeline_open(&options, &b->p, &error);
    unlink(path);
    if (status != SL_OK)
        sl_die("bench_search: %s", error.text);
}

/* The items of one event, all of them new to the target; then the same event once more. */
static void run(struct bench *b, struct sl_span event)
{
    struct sl_clock *clock = sl_clock_system();
    struct sl_decode_options options = {.any_shape = false};
    struct sl_batch batch;
    if (sl_batch_decode(event, b->arena, &options, &batch, NULL) != SL_OK)
        sl_die("bench_search: the event is refused");
    struct sl_invocation invocation = {.request_id = "",
                                       .function_arn = "",
                                       .deadline_ms = clock->now_ms(clock) + 120000,
                                       .arena = b->arena};
    sl_buffer_reset(&b->answer.body);
    b->answer.is_error = false;
    sl_error_clear(&b->answer.error);
    sl_dispatch(b->p, &batch, &invocation, &b->answer);
    if (b->answer.is_error || b->answer.checkpoint != batch.n)
        sl_die("bench_search: %s", b->answer.error.text);
    sl_arena_reset(b->arena);
}

/* For others that are measured beside: EVENTS names a folder. */
static void keep_event(const struct sl_buffer *event, int i)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/event-%d.json", getenv("EVENTS"), i);
    FILE *file = fopen(path, "w");
    if (!file || fwrite(event->ptr, 1, event->len, file) != event->len || fclose(file) != 0)
        sl_die("bench_search: %s cannot be written", path);
}

static double measure(const struct sl_vars *vars, const char *name, const char *to)
{
    struct bench b = {.arena = sl_arena_new(1 << 20)};
    struct sl_buffer events[ROUNDS];
    char figure[128];
    sl_log_init(&b.log, -1, SL_OFF, SL_LOG_TEXT, sl_clock_system());
    sl_sinks_init(&b.sinks, sl_clock_system(), &b.log, vars);
    sl_buffer_init(&b.answer.body, SL_ANSWER_BYTES);
    open_pipeline(&b, vars, to);
    for (int i = 0; i < ROUNDS; i++) {
        sl_buffer_init(&events[i], SIZE_MAX / 2);
        bench_event(&events[i], RECORDS, (uint64_t)i + 1);
        if (getenv("EVENTS"))
            keep_event(&events[i], i);
    }
    run(&b, sl_buffer_span(&events[0])); /* connections, compilers, and the server's own warming */
    double began = bench_seconds(), used = cpu();
    for (int i = 1; i < ROUNDS; i++)
        run(&b, sl_buffer_span(&events[i]));
    double wall = (bench_seconds() - began) / (ROUNDS - 1) / RECORDS,
           each = (cpu() - used) / (ROUNDS - 1) / RECORDS;
    snprintf(figure, sizeof(figure), "replicate to %s, our CPU", name);
    bench_figure(figure, each * 1e6, "us/record");
    snprintf(figure, sizeof(figure), "replicate to %s, elapsed", name);
    bench_figure(figure, wall * 1e6, "us/record");
    for (int i = 0; i < ROUNDS; i++)
        sl_buffer_clean_up(&events[i]);
    sl_pipeline_close(b.p);
    sl_sinks_clean_up(&b.sinks);
    sl_buffer_clean_up(&b.answer.body);
    sl_log_clean_up(&b.log);
    sl_arena_destroy(b.arena);
    return each;
}

int main(int argc, char **argv)
{
    const struct sl_vars vars = {.list = (const char *const *)environ};
    double first = 0;
    for (int i = 1; i < argc; i++) {
        char *url = strchr(argv[i], '='), figure[128];
        if (!url)
            sl_die("bench_search: NAME=URL");
        *url++ = '\0';
        double each = measure(&vars, argv[i], url);
        first = i == 1 ? each : first;
        snprintf(figure, sizeof(figure), "our CPU to %s, of that to %s", argv[i], argv[1]);
        if (i > 1)
            bench_figure(figure, each / first, "times");
    }
    return 0;
}
