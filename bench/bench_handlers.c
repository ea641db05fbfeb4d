/* What a handler costs a record above decoding it: the whole of dispatch and handler, over ports in memory
 * that take everything, so that the handler's own work is left. The memory it allocates is counted in calls
 * of malloc, those of the decoder's left out. */
#include "bench/support/events.h"
#include "handlers/dispatch/dispatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RECORDS 5000
#define ROUNDS  ((int)bench_size(25, 1))

/* ---- counting ---- */

extern void *__libc_malloc(size_t n);
extern void *__libc_realloc(void *p, size_t n);
static size_t mallocs;

void *malloc(size_t n)
{
    mallocs++;
    return __libc_malloc(n);
}

void *realloc(void *p, size_t n)
{
    mallocs++;
    return __libc_realloc(p, n);
}

/* ---- ports ---- */

static void take_objects(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                         struct sl_result *results, const struct sl_call *call)
{
    (void)port;
    (void)objects;
    (void)call;
    memset(results, 0, n * sizeof(*results));
}

/* A round trip: the operations of a call are in flight together. */
static useconds_t round_trip_us;
static size_t round_trips;
/* Is there a row of the totals to which nothing can be folded? */
static bool is_odd;

static void take_rows(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                      struct sl_result *results, const struct sl_call *call)
{
    (void)port;
    (void)call;
    memset(results, 0, n * sizeof(*results));
    for (size_t i = 0; i < n && is_odd; i++)
        if (ops[i].verb == SL_TABLE_PEEK)
            results[i].item = SL_LIT("{\"PK\":{\"S\":\"ALL\"},\"orders\":{\"S\":\"no number\"}}");
    round_trips += n > 0;
    if (round_trip_us && n > 0)
        usleep(round_trip_us);
}

static void take_messages(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                          struct sl_result *results, const struct sl_call *call)
{
    (void)port;
    (void)messages;
    (void)call;
    memset(results, 0, n * sizeof(*results));
}

static void close_objects(struct sl_object_port *port)
{
    (void)port;
}

static void close_rows(struct sl_table_port *port)
{
    (void)port;
}

static void close_messages(struct sl_queue_port *port)
{
    (void)port;
}

static struct sl_object_port objects = {
    .size = sizeof(objects), .max_body_bytes = SIZE_MAX, .apply = take_objects, .close = close_objects};
static struct sl_table_port rows = {.size = sizeof(rows),
                                    .max_item_bytes = 400 * 1024,
                                    .apply = take_rows,
                                    .close = close_rows,
                                    .can = SL_TABLE_ALL};
static struct sl_queue_port messages = {sizeof(messages), 1 << 20, take_messages, close_messages};

static enum sl_status open_objects(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                                   struct sl_error *error)
{
    (void)sinks;
    (void)url;
    (void)error;
    *out = &objects;
    return SL_OK;
}

static enum sl_status open_rows(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                struct sl_error *error)
{
    (void)sinks;
    (void)url;
    (void)error;
    *out = &rows;
    return SL_OK;
}

static enum sl_status open_messages(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                    struct sl_error *error)
{
    (void)sinks;
    (void)url;
    (void)error;
    *out = &messages;
    return SL_OK;
}

/* ---- one route ---- */

struct bench {
    struct sl_log log;
    struct sl_sinks sinks;
    struct sl_pipeline *p;
    struct sl_arena *arena;
    struct sl_answer answer;
    struct sl_span event;
    bool notes_attributes; /* as the runtime does it: once an event was looked into */
};

static void open_pipeline(struct bench *b, const char *route)
{
    static const struct sl_openers openers = {
        .kind = sl_target_kind, .objects = open_objects, .table = open_rows, .queue = open_messages};
    static const char *const nowhere[] = {NULL};
    static const struct sl_vars vars = {.list = NULL};
    char path[] = "/tmp/sluice-bench-XXXXXX";
    struct sl_error error = {0};
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    fprintf(file, "{\"on_failure\":\"report\",\"routes\":[{\"name\":\"r\",%s}]}", route);
    fclose(file);
    struct sl_pipeline_options options = {.config_path = path,
                                          .vars = &vars,
                                          .clock = sl_clock_system(),
                                          .log = &b->log,
                                          .sinks = &b->sinks,
                                          .handler_path = nowhere,
                                          .function_name = "bench",
                                          .openers = &openers};
    enum sl_status status = sl_pipeline_open(&options, &b->p, &error);
    unlink(path);
    if (status != SL_OK)
        sl_die("bench_handlers: %s", error.text);
}

static void decode(struct bench *b, struct sl_batch *batch)
{
    struct sl_decode_options options = {.notes_attributes = b->notes_attributes};
    if (sl_batch_decode(b->event, b->arena, &options, batch, NULL) != SL_OK)
        sl_die("bench_handlers: the event is refused");
}

static void dispatch(struct bench *b, const struct sl_batch *batch)
{
    struct sl_clock *clock = sl_clock_system();
    struct sl_invocation invocation = {
        .request_id = "", .function_arn = "", .deadline_ms = clock->now_ms(clock) + 60000, .arena = b->arena};
    sl_buffer_reset(&b->answer.body);
    b->answer.is_error = false;
    sl_error_clear(&b->answer.error);
    sl_dispatch(b->p, batch, &invocation, &b->answer);
    if (b->answer.is_error || b->answer.checkpoint != batch->n)
        sl_die("bench_handlers: %s", b->answer.error.text);
}

static const char *only; /* the figures that begin so; NULL: all */

static void measure(struct sl_span event, const char *name, const char *route, bool shows_bytes)
{
    if (only && strncmp(name, only, strlen(only)) != 0)
        return;
    struct bench b = {.event = event, .arena = sl_arena_new(1 << 20)};
    struct sl_batch batch;
    double best = 1e9, best_decoding = 1e9;
    size_t calls = 0;
    char figure[128];
    sl_log_init(&b.log, -1, SL_OFF, SL_LOG_TEXT, sl_clock_system());
    sl_buffer_init(&b.answer.body, SL_ANSWER_BYTES);
    open_pipeline(&b, route);
    for (int i = 0; i <= ROUNDS; i++) {
        double began = bench_seconds();
        decode(&b, &batch);
        double decoded = bench_seconds();
        size_t before = mallocs;
        dispatch(&b, &batch);
        b.notes_attributes |= sl_batch_is_looked_into(&batch);
        double done = bench_seconds();
        calls = mallocs - before;
        sl_arena_reset(b.arena);
        if (i == 0) /* a cold start's event, before it is known what will be looked at */
            continue;
        best = done - decoded < best ? done - decoded : best;
        best_decoding = decoded - began < best_decoding ? decoded - began : best_decoding;
    }
    snprintf(figure, sizeof(figure), "%s, above decoding", name);
    bench_figure(figure, best / RECORDS * 1e6, "us/record");
    if (shows_bytes) {
        snprintf(figure, sizeof(figure), "%s, decoding included", name);
        bench_figure(figure, RECORDS / (best + best_decoding) / 1e6, "million records/s");
        bench_figure(figure, (double)event.len / (best + best_decoding) / 1e6, "MB/s");
        snprintf(figure, sizeof(figure), "%s, decoding of all", name);
        bench_figure(figure, best_decoding / (best + best_decoding) * 100, "%");
        snprintf(figure, sizeof(figure), "%s, a slice of %d records", name, RECORDS);
        bench_figure(figure, (double)calls, "mallocs");
    }
    sl_pipeline_close(b.p);
    sl_buffer_clean_up(&b.answer.body);
    sl_log_clean_up(&b.log);
    sl_arena_destroy(b.arena);
}

#define ONE_ROW                                                                                              \
    "\"handler\":\"aggregate\",\"to\":\"sqlite:x?table=t\",\"counters\":[{\"key\":{\"PK\":\"ALL\"},\"add\":" \
    "{\"orders\":1,\"revenue\":\"{total}\"}}]"

/* An INSERT of each of 5,000 items. */
static void insert_items(struct sl_buffer *out)
{
    sl_buffer_add_str(out, "{\"Records\":[");
    for (size_t i = 0; i < RECORDS; i++)
        sl_buffer_printf(
            out,
            "%s{\"eventID\":\"%zu\",\"eventName\":\"INSERT\",\"eventSource\":\"aws:dynamodb\","
            "\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"i%zu\"}},\"NewImage\":{\"PK\":{\"S\":\"i%zu\"},"
            "\"total\":{\"N\":\"12.50\"}},\"SequenceNumber\":\"%zu\",\"StreamViewType\":"
            "\"NEW_AND_OLD_IMAGES\"}}",
            i ? "," : "", i, i, i, 1000000 + i);
    sl_buffer_add_str(out, "]}");
}

/* Milliseconds of one slice whose transactions all add to one row. */
static double hot_slice_ms(struct sl_span event, bool directly, size_t *trips)
{
    struct bench b = {.event = event, .arena = sl_arena_new(1 << 20)};
    struct sl_batch batch;
    sl_log_init(&b.log, -1, SL_OFF, SL_LOG_TEXT, sl_clock_system());
    sl_buffer_init(&b.answer.body, SL_ANSWER_BYTES);
    open_pipeline(&b, ONE_ROW);
    decode(&b, &batch);
    is_odd = directly;
    round_trips = 0;
    double began = bench_seconds();
    dispatch(&b, &batch);
    double took = bench_seconds() - began;
    *trips = round_trips;
    is_odd = false;
    sl_pipeline_close(b.p);
    sl_buffer_clean_up(&b.answer.body);
    sl_log_clean_up(&b.log);
    sl_arena_destroy(b.arena);
    return took * 1e3;
}

/* One after the other, as below three transactions and where a row cannot be folded to; and through delta
 * rows. */
static void measure_hot_row(void)
{
    size_t direct_trips, folded_trips;
    struct sl_buffer items;
    if (only && strncmp("aggregate, one row", only, strlen(only)) != 0)
        return;
    sl_buffer_init(&items, SIZE_MAX / 2);
    insert_items(&items);
    round_trip_us = 5000;
    double direct = hot_slice_ms(sl_buffer_span(&items), true, &direct_trips);
    double folded = hot_slice_ms(sl_buffer_span(&items), false, &folded_trips);
    round_trip_us = 0;
    sl_buffer_clean_up(&items);
    bench_figure("aggregate, one row of 5000 records at 5 ms, one transaction after the other", direct, "ms");
    bench_figure("aggregate, one row of 5000 records at 5 ms, through delta rows", folded, "ms");
    bench_figure("aggregate, one row, round trips one after the other", (double)direct_trips, "calls");
    bench_figure("aggregate, one row, round trips through delta rows", (double)folded_trips, "calls");
    bench_figure("aggregate, one row, ratio", direct / folded, "times as fast");
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    struct sl_buffer event;
    sl_buffer_init(&event, SIZE_MAX / 2);
    bench_event(&event, RECORDS, 1);
    struct sl_span text = sl_buffer_span(&event);
    measure(text, "dispatch alone",
            "\"handler\":\"archive\",\"to\":\"file:x\",\"when\":{\"pattern\":[{\"eventID\":[\"NONE\"]}]}",
            false);
    measure(text, "archive, records, no compression",
            "\"handler\":\"archive\",\"to\":\"file:x\",\"compression\":\"none\"", true);
    measure(text, "archive, items, no compression",
            "\"handler\":\"archive\",\"to\":\"file:x\",\"compression\":\"none\",\"format\":\"item\"", false);
    measure(text, "archive, records, gzip level 6", "\"handler\":\"archive\",\"to\":\"file:x\"", true);
    measure(text, "archive, records, gzip level 1", "\"handler\":\"archive\",\"to\":\"file:x\",\"level\":1",
            true);
    measure(text, "replicate", "\"handler\":\"replicate\",\"to\":\"sqlite:x?table=t\"", true);
    measure(text, "replicate, side table",
            "\"handler\":\"replicate\",\"to\":\"sqlite:x?table=t\",\"guard\":{\"table\":\"guards\"}", false);
    measure(text, "replicate, no guard",
            "\"handler\":\"replicate\",\"to\":\"sqlite:x?table=t\",\"guard\":\"none\"", false);
    measure(text, "aggregate, two counters on 100 groups",
            "\"handler\":\"aggregate\",\"to\":\"sqlite:x?table=t\",\"counters\":[{\"key\":{\"PK\":\"{status}#"
            "{pieces}\"},"
            "\"add\":{\"orders\":1,\"revenue\":\"{total}\"}}]",
            true);
    measure(text, "aggregate, the same at least once",
            "\"handler\":\"aggregate\",\"to\":\"sqlite:x?table=t\",\"mode\":\"at-least-once\",\"counters\":[{"
            "\"key\":{\"PK\":"
            "\"{status}#{pieces}\"},\"add\":{\"orders\":1,\"revenue\":\"{total}\"}}]",
            false);
    measure_hot_row();
    measure(text, "notify, a message of three places",
            "\"handler\":\"notify\",\"to\":\"jsonl:x\",\"message\":\"order {SK} of {PK} is "
            "{status}\",\"max_records\":5000",
            false);
    measure(text, "notify, the same through functions",
            "\"handler\":\"notify\",\"to\":\"jsonl:x\",\"message\":\"order {SK|after:#} of {PK|split:#:1} is "
            "{status|lower}\",\"max_records\":5000",
            true);
    measure(text, "notify, a day and a number",
            "\"handler\":\"notify\",\"to\":\"jsonl:x\",\"message\":\""
            "{NewImage.ttl|default:0|date:yyyy-mm-dd} {total|number}\",\"max_records\":5000",
            false);
    measure(
        text, "notify, a SHA-256",
        "\"handler\":\"notify\",\"to\":\"jsonl:x\",\"message\":\"{customer|sha256}\",\"max_records\":5000",
        false);
    measure(text, "notify, a map as JSON",
            "\"handler\":\"notify\",\"to\":\"jsonl:x\",\"message\":\"{address|json}\",\"max_records\":5000",
            false);
    measure(
        text, "replicate, no guard, three attributes made and one dropped within a map",
        "\"handler\":\"replicate\",\"to\":\"sqlite:x?table=t\",\"guard\":\"none\",\"drop\":[\"address.zip\"],"
        "\"set\":{\"day\":\"{NewImage.ttl|date:yyyy-mm-dd}\",\"customer\":\"{customer|sha256}\",\"n\":\"{SK|"
        "after:#|"
        "number}\"}",
        false);
    sl_buffer_clean_up(&event);
    return 0;
}
