/* Any text as what a drain gets: as an SQS event, and as the body of a letter. Whatever it is, each message
 * is either named in the answer or done, and a record is only counted when its message was sent. */
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "handlers/dispatch/drain.h"
#include "handlers/dispatch/letter.h"
#include "handlers/pipeline/pipeline.h"
#include "sinks/target.h"
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

static const char config[] = "{\"report_batch_item_failures\":true,\"routes\":[{\"name\":\"n\",\"handler\":"
                             "\"notify\",\"to\":\"mem:x\","
                             "\"message\":\"{PK}\",\"on_failure\":\"report\"}]}";

/* ---- a queue that takes everything ---- */

static size_t sent;
static bool has_failed; /* a letter, at some time */

static void take(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                 struct sl_result *results, const struct sl_call *call)
{
    (void)port, (void)messages, (void)call;
    for (size_t i = 0; i < n; i++)
        results[i] = (struct sl_result){.status = SL_OK};
    sent += n;
}

static void no_close(struct sl_queue_port *port)
{
    (void)port;
}

static enum sl_port_kind kind_of(struct sl_span url)
{
    (void)url;
    return SL_PORT_QUEUE;
}

static enum sl_status open_queue(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                 struct sl_error *error)
{
    static struct sl_queue_port port = {sizeof(port), 1 << 18, take, no_close};
    (void)sinks, (void)url, (void)error;
    *out = &port;
    return SL_OK;
}

/* ---- the drain ---- */

static struct sl_clock_virtual the_clock;
static struct sl_drain *drain;
static struct sl_answer answer;

static void start(void)
{
    static const struct sl_vars vars = {.list = NULL};
    static const char *const nowhere[] = {NULL};
    static const struct sl_openers openers = {.kind = kind_of, .queue = open_queue};
    static struct sl_log log;
    static struct sl_sinks sinks;
    char path[40];
    struct sl_error error = SL_NO_ERROR;
    struct sl_pipeline *p;
    int fd = memfd_create("sluice.json", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, config, sizeof(config) - 1) == sizeof(config) - 1);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    sl_clock_virtual_init(&the_clock, 1790000000000000000, 1);
    sl_log_init(&log, -1, SL_OFF, SL_LOG_TEXT, &the_clock.clock);
    const struct sl_pipeline_options options = {.config_path = path,
                                                .vars = &vars,
                                                .clock = &the_clock.clock,
                                                .log = &log,
                                                .sinks = &sinks,
                                                .handler_path = nowhere,
                                                .function_name = "f",
                                                .openers = &openers};
    if (sl_pipeline_open(&options, &p, &error) != SL_OK) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    close(fd);
    drain = sl_drain_new(&(struct sl_drain_options){.pipeline = p});
    sl_buffer_init(&answer.body, SL_ANSWER_BYTES);
}

static size_t named(struct sl_span body)
{
    struct sl_json_walk walk = sl_json_walk(sl_json_find(body, "batchItemFailures"));
    struct sl_span one;
    size_t n = 0;
    for (; sl_json_walk_next(&walk, NULL, &one); n++)
        FUZZ_CHECK(sl_json_find(one, "itemIdentifier").ptr);
    return n;
}

static void check_event(struct sl_span event)
{
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    const struct sl_invocation invocation = {
        .request_id = "r", .function_arn = "f", .deadline_ms = the_clock.ms + 60000, .arena = arena};
    struct sl_error error = SL_NO_ERROR;
    struct sl_drained out;
    if (sl_drain_is_event(event)) {
        sent = 0;
        enum sl_status status = sl_drain_event(drain, event, &invocation, &answer, &out, &error);
        struct sl_span body = sl_buffer_span(&answer.body);
        FUZZ_CHECK(status == SL_OK || (status == SL_REJECT && error.text[0]));
        FUZZ_CHECK(!answer.is_ruined && out.done <= out.letters && (out.done || !out.records));
        /* (One that was sent, in a letter whose rest failed, is remembered, and not sent again.) */
        FUZZ_CHECK(sent || !out.records || has_failed);
        has_failed = has_failed || out.done < out.letters;
        if (status == SL_OK)
            FUZZ_CHECK(sl_json_check(body, NULL) == SL_OK && out.done + named(body) == out.letters);
    }
    sl_arena_destroy(arena);
}

static void check_body(struct sl_span text)
{
    struct sl_buffer b;
    (void)sl_letter_is(text);
    sl_buffer_init(&b, SIZE_MAX / 2);
    sl_buffer_add_str(&b, "{\"Records\":[{\"messageId\":\"m\",\"receiptHandle\":\"r\"");
    sl_json_add_member(&b, "body", text);
    sl_buffer_add_str(&b, "}]}");
    if (sl_json_check(sl_buffer_span(&b), NULL) == SL_OK) /* what is no UTF-8 is no body */
        check_event(sl_buffer_span(&b));
    sl_buffer_clean_up(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sl_span text = sl_span((const char *)data, size);
    if (!drain)
        start();
    check_event(text);
    check_body(text);
    return 0;
}
