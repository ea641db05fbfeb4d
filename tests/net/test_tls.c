/* TLS as far as it can be tried without a TLS server; with the argument "write", the client that check_tls.py
 * and check_signatures.sh run against servers of theirs. */
#include "tests/support/fault.h"

#include "aws/aws.h"

#include <stdio.h>
#include <stdlib.h>

extern char **environ;

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)request;
    *reply = (struct scripted_reply){.status = 200, .body = SL_LIT("{}")};
}

static struct sl_result put_to(struct fault *f, const char *host)
{
    char url[128];
    snprintf(url, sizeof(url), "https://%s%s", host, strrchr(scripted_server_url(f->server), ':'));
    fault_set(f, "AWS_ENDPOINT_URL", url);
    struct sl_table_port *table = fault_table(f, "dynamodb://tbl");
    struct sl_result result = fault_put_item(f, table, "a");
    table->close(table);
    return result;
}

/* A server that speaks no TLS: nothing of the request reaches it. */
static void plain_text_is_not_taken_for_tls(void **state)
{
    (void)state;
    struct fault f;
    fault_open(&f, answer, NULL);
    f.call.deadline_ms = f.clock.ms + 200; /* it waits for the end of what it takes for a request */
    struct sl_result result = put_to(&f, "127.0.0.1");
    assert_result(result, SL_RETRY, NULL);
    assert_true(result.not_sent);
    assert_int_equal(scripted_server_requests(f.server), 0);
    fault_close(&f);
}

static void roots_that_cannot_be_read_are_fatal(void **state)
{
    (void)state;
    struct fault f;
    fault_open(&f, answer, NULL);
    fault_set(&f, "AWS_CA_BUNDLE", "/nowhere/roots.pem");
    struct sl_result result = put_to(&f, "127.0.0.1");
    assert_result(result, SL_FATAL, "UntrustedCertificate");
    assert_non_null(strstr(result.text, "AWS_CA_BUNDLE"));
    fault_close(&f);
}

/* One write to the target: a table's item, an object named after the target, or a message. */
static struct sl_result write_to(struct sl_sinks *sinks, const char *url, const char *name,
                                 const struct sl_call *call)
{
    struct sl_result result = {.status = SL_FATAL, .code = "NoPort"};
    struct sl_error error = SL_NO_ERROR;
    struct sl_span target = sl_span_str(url);
    const struct sl_table_op op = {.verb = SL_TABLE_PUT,
                                   .key = SL_LIT("{\"PK\":{\"S\":\"a\"}}"),
                                   .item = SL_LIT("{\"PK\":{\"S\":\"a\"}}")};
    const struct sl_object object = {.key = sl_span_str(name), .body = SL_LIT("body"), .content_named = true};
    const struct sl_message message = {
        .body = SL_LIT("{\"a\":1}"), .order = SL_LIT("o"), .dedupe = SL_LIT("d")};
    struct sl_table_port *table = NULL;
    struct sl_object_port *objects = NULL;
    struct sl_queue_port *queue = NULL;
    if (sl_target_kind(target) == SL_PORT_TABLE && sl_target_table(sinks, target, &table, &error) == SL_OK) {
        table->apply(table, &op, 1, &result, call);
        table->close(table);
    } else if (sl_target_kind(target) == SL_PORT_OBJECTS &&
               sl_target_objects(sinks, target, &objects, &error) == SL_OK) {
        objects->apply(objects, &object, 1, &result, call);
        objects->close(objects);
    } else if ((strncmp(url, "xray:", 5) == 0 ? sl_target_spans(sinks, target, &queue, &error)
                                              : sl_target_queue(sinks, target, &queue, &error)) == SL_OK) {
        queue->apply(queue, &message, 1, &result, call);
        queue->close(queue);
    }
    return result;
}

/* As a client for check_tls.py and check_signatures.sh: "write TARGET NAME TIMES" says how many writes
 * succeeded before one failed, and how that one did. */
static int write_many(char **argv)
{
    struct sl_vars vars = {.list = (const char *const *)environ};
    struct sl_sinks sinks;
    struct sl_call call = {sl_arena_new(4096), INT64_MAX};
    struct sl_result result = {.status = SL_OK};
    long good = 0, times = strtol(argv[2], NULL, 10);
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &vars);
    while (good < times && result.status == SL_OK) {
        result = write_to(&sinks, argv[0], argv[1], &call);
        good += result.status == SL_OK;
    }
    printf("%ld %s%s%s\n", good, sl_status_name(result.status), result.code ? " " : "",
           result.code ? result.code : "");
    sl_sinks_clean_up(&sinks);
    sl_arena_destroy(call.arena);
    return 0;
}

/* ---- many writes at once, for check_tls.py ---- */

/* The system's, and ahead of it: a sandbox that was frozen for a while. */
struct later {
    struct sl_clock clock;
    int64_t by_ms;
};

static int64_t later_now_ms(struct sl_clock *clock)
{
    struct sl_clock *real = sl_clock_system();
    return real->now_ms(real) + ((struct later *)clock)->by_ms;
}

#define WAVE 100

/* Conditional, so that each is a request of its own. */
static void write_wave(struct sl_sinks *sinks, const char *target, const struct sl_call *call)
{
    static const struct sl_test absent = {SL_ABSENT, SL_LIT("PK"), {NULL, 0}};
    struct sl_table_op ops[WAVE];
    struct sl_result results[WAVE];
    struct sl_table_port *table = NULL;
    struct sl_error error = SL_NO_ERROR;
    size_t good = 0;
    for (size_t i = 0; i < WAVE; i++) {
        const char *key = sl_arena_printf(call->arena, "{\"PK\":{\"S\":\"%zu\"}}", i);
        ops[i] = (struct sl_table_op){.verb = SL_TABLE_PUT,
                                      .key = sl_span_str(key),
                                      .item = sl_span_str(key),
                                      .tests = &absent,
                                      .n_tests = 1};
    }
    if (sl_target_table(sinks, sl_span_str(target), &table, &error) != SL_OK)
        sl_die("%s", error.text);
    table->apply(table, ops, WAVE, results, call);
    table->close(table);
    for (size_t i = 0; i < WAVE; i++)
        good += results[i].status == SL_OK;
    printf("%zu%s%s\n", good, good < WAVE ? " " : "", good < WAVE ? results[WAVE - 1].code : "");
    fflush(stdout);
}

/* "waves STEP…", in one process: a table's target is written to WAVE times at once, "idle" is a minute, and
 * with "wait" a line is read first. */
static int write_waves(char **steps)
{
    struct sl_vars vars = {.list = (const char *const *)environ};
    struct later later = {.clock = *sl_clock_system()};
    struct sl_sinks sinks;
    struct sl_call call = {sl_arena_new(4096), INT64_MAX};
    char line[8];
    later.clock.now_ms = later_now_ms;
    sl_sinks_init(&sinks, &later.clock, NULL, &vars);
    for (; *steps; steps++) {
        if (strcmp(*steps, "idle") == 0)
            later.by_ms += 60000;
        else if (strcmp(*steps, "wait") == 0)
            (void)!fgets(line, sizeof(line), stdin);
        else
            write_wave(&sinks, *steps, &call);
    }
    sl_sinks_clean_up(&sinks);
    sl_arena_destroy(call.arena);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_is_not_taken_for_tls),
        cmocka_unit_test(roots_that_cannot_be_read_are_fatal),
    };
    if (argc == 5 && strcmp(argv[1], "write") == 0)
        return write_many(argv + 2);
    if (argc > 2 && strcmp(argv[1], "waves") == 0)
        return write_waves(argv + 2);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
