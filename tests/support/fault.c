#include "tests/support/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void fault_set(struct fault *fault, const char *name, const char *value)
{
    size_t n = strlen(name), i = 0;
    while (i < fault->n_vars && !(strncmp(fault->list[i], name, n) == 0 && fault->list[i][n] == '='))
        i++;
    char *text = NULL;
    if (asprintf(&text, "%s=%s", name, value) < 0)
        sl_die("out of memory");
    if (i == fault->n_vars)
        fault->n_vars++;
    else
        free((char *)(uintptr_t)fault->list[i]);
    assert_true(fault->n_vars < sizeof(fault->list) / sizeof(fault->list[0]));
    fault->list[i] = text;
    fault->vars.list = fault->list;
}

void fault_open(struct fault *fault, scripted_fn answer, void *arg)
{
    char path[] = "/tmp/sluice-fault-XXXXXX";
    memset(fault, 0, sizeof(*fault));
    fault->server = scripted_server_start(answer, arg);
    sl_clock_virtual_init(&fault->clock, (int64_t)FAULT_EPOCH_S * 1000000000, 42);
    fault->clock.ms = 1000;
    fault->clock.epoch_ns -= 1000 * (int64_t)1000000;
    fault_set(fault, "AWS_ACCESS_KEY_ID", FAULT_KEY);
    fault_set(fault, "AWS_SECRET_ACCESS_KEY", FAULT_SECRET);
    fault_set(fault, "AWS_SESSION_TOKEN", FAULT_TOKEN);
    fault_set(fault, "AWS_REGION", "us-east-1");
    fault_set(fault, "AWS_ENDPOINT_URL", scripted_server_url(fault->server));
    fault_set(fault, "AWS_EC2_METADATA_DISABLED", "true");
    fault->fd = mkstemp(path);
    unlink(path);
    sl_log_init(&fault->log, fault->fd, SL_TRACE, SL_LOG_TEXT, &fault->clock.clock);
    sl_sinks_init(&fault->sinks, &fault->clock.clock, &fault->log, &fault->vars);
    fault->call = (struct sl_call){sl_arena_new(16 * 1024), fault->clock.ms + 3600 * 1000};
}

static void look_for_secrets(int fd)
{
    static const char *const canaries[] = {FAULT_KEY,   FAULT_SECRET,   FAULT_TOKEN,
                                           FAULT_VALUE, FAULT_PASSWORD, "AWS4-HMAC"};
    off_t len = lseek(fd, 0, SEEK_END);
    char *text = calloc(1, (size_t)len + 1);
    assert_int_equal(pread(fd, text, (size_t)len, 0), len);
    for (size_t i = 0; i < sizeof(canaries) / sizeof(canaries[0]); i++)
        if (strstr(text, canaries[i]))
            fail_msg("%s is in a log line or a result:\n%s", canaries[i], text);
    free(text);
}

void fault_close(struct fault *fault)
{
    sl_sinks_clean_up(&fault->sinks);
    sl_log_clean_up(&fault->log);
    scripted_server_stop(fault->server);
    look_for_secrets(fault->fd);
    close(fault->fd);
    sl_arena_destroy(fault->call.arena);
    for (size_t i = 0; i < fault->n_vars; i++)
        free((char *)(uintptr_t)fault->list[i]);
}

struct sl_span fault_target(struct fault *fault, const char *url)
{
    static const char server[] = "http://server/", search[] = "opensearch://server/";
    if (strncmp(url, search, sizeof(search) - 1) == 0)
        return sl_span_str(sl_arena_printf(fault->call.arena, "opensearch%s/%s",
                                           strchr(scripted_server_url(fault->server), ':'),
                                           url + sizeof(search) - 1));
    if (strncmp(url, server, sizeof(server) - 1) != 0)
        return sl_span_str(url);
    return sl_span_str(sl_arena_printf(fault->call.arena, "%s/%s", scripted_server_url(fault->server),
                                       url + sizeof(server) - 1));
}

struct sl_table_port *fault_table(struct fault *fault, const char *url)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_table_port *port = NULL;
    if (sl_target_table(&fault->sinks, fault_target(fault, url), &port, &error) != SL_OK)
        fail_msg("%s", error.text);
    return port;
}

struct sl_object_port *fault_objects(struct fault *fault, const char *url)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_object_port *port = NULL;
    if (sl_target_objects(&fault->sinks, fault_target(fault, url), &port, &error) != SL_OK)
        fail_msg("%s", error.text);
    return port;
}

struct sl_queue_port *fault_queue(struct fault *fault, const char *url)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_queue_port *port = NULL;
    if (sl_target_queue(&fault->sinks, fault_target(fault, url), &port, &error) != SL_OK)
        fail_msg("%s", error.text);
    return port;
}

struct sl_queue_port *fault_spans(struct fault *fault, const char *url)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_queue_port *port = NULL;
    if (sl_target_spans(&fault->sinks, fault_target(fault, url), &port, &error) != SL_OK)
        fail_msg("%s", error.text);
    return port;
}

void fault_note(struct fault *fault, const struct sl_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dprintf(fault->fd, "%d %s %s\n", (int)results[i].status, results[i].code ? results[i].code : "",
                results[i].text ? results[i].text : "");
}

struct sl_result fault_put_item(struct fault *fault, struct sl_table_port *table, const char *key)
{
    struct sl_arena *arena = fault->call.arena;
    struct sl_result result;
    struct sl_table_op op = {
        .verb = SL_TABLE_PUT,
        .key = sl_span_str(sl_arena_printf(arena, "{\"PK\":{\"S\":\"%s\"}}", key)),
        .item = sl_span_str(
            sl_arena_printf(arena, "{\"PK\":{\"S\":\"%s\"},\"v\":{\"S\":\"" FAULT_VALUE "\"}}", key)),
    };
    table->apply(table, &op, 1, &result, &fault->call);
    fault_note(fault, &result, 1);
    return result;
}

struct sl_result fault_put_object(struct fault *fault, struct sl_object_port *objects, const char *key,
                                  const char *body, bool named)
{
    struct sl_result result;
    struct sl_object object = {.key = sl_span_str(key), .body = sl_span_str(body), .content_named = named};
    objects->apply(objects, &object, 1, &result, &fault->call);
    fault_note(fault, &result, 1);
    return result;
}

void fault_send(struct fault *fault, struct sl_queue_port *queue, const struct sl_message *messages, size_t n,
                struct sl_result *results)
{
    queue->apply(queue, messages, n, results, &fault->call);
    fault_note(fault, results, n);
}

void assert_result(struct sl_result result, enum sl_status status, const char *code)
{
    if (result.status != status || (code && (!result.code || strcmp(result.code, code) != 0)))
        fail_msg("status %d, %s: %s\nand should be %d, %s", (int)result.status,
                 result.code ? result.code : "-", result.text ? result.text : "-", (int)status,
                 code ? code : "-");
}
