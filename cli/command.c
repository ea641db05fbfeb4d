/* The opening and the end of every verb, and its signals. */
#include "cli/command.h"

#include "aws/endpoint.h"
#include "live/sandbox/paths.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES (64 * 1024)

extern char **environ;

volatile sig_atomic_t sl_command_stop;
static volatile sig_atomic_t stop_bell = -1;

struct sl_vars sl_command_environment(void)
{
    return (struct sl_vars){.list = (const char *const *)environ};
}

void sl_command_begin(struct sl_command *c)
{
    c->arena = sl_arena_new(ARENA_BYTES);
    c->clock = sl_clock_system();
    c->vars = sl_command_environment();
    sl_log_init(&c->log, STDERR_FILENO, SL_WARN, SL_LOG_TEXT, c->clock);
    sl_sinks_init(&c->sinks, c->clock, &c->log, &c->vars);
}

void sl_command_end(struct sl_command *c)
{
    if (!c->clock)
        return;
    sl_pipeline_close(c->pipeline);
    sl_sinks_clean_up(&c->sinks);
    sl_log_clean_up(&c->log);
    sl_arena_destroy(c->arena);
    c->pipeline = NULL;
    c->arena = NULL;
    c->clock = NULL;
}

enum sl_status sl_command_open(struct sl_command *c, const char *function_name,
                               const struct sl_openers *openers, struct sl_error *error)
{
    const struct sl_pipeline_options options = {
        .config_path = c->config,
        .vars = &c->vars,
        .clock = c->clock,
        .log = &c->log,
        .sinks = &c->sinks,
        .handler_path = sl_paths_folders(c->arena, c->handler_path, c->config),
        .function_name = function_name,
        .openers = openers,
    };
    return sl_pipeline_open(&options, &c->pipeline, error);
}

const char *sl_command_table(const struct sl_command *c)
{
    if (strchr(c->table, ':') && strncmp(c->table, "arn:", 4) != 0)
        return c->table;
    return sl_endpoint_target(c->arena, "dynamodb://", c->table, c->region, c->endpoint);
}

/* ---- signals ---- */

static void on_stop(int number)
{
    (void)number;
    sl_command_stop = 1;
    if (stop_bell >= 0)
        (void)!write(stop_bell, &(uint64_t){1}, sizeof(uint64_t));
}

void sl_command_heed_signals(int bell, const int *more)
{
    static const int usual[] = {SIGINT, SIGTERM, 0};
    const struct sigaction action = {.sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND};
    stop_bell = bell;
    for (const int *number = usual; *number; number++)
        sigaction(*number, &action, NULL);
    for (const int *number = more; number && *number; number++)
        sigaction(*number, &action, NULL);
}

void sl_command_drop_bell(void)
{
    stop_bell = -1;
}

void sl_command_wait(int64_t ms)
{
    while (ms > 0 && !sl_command_stop) {
        int64_t part = ms < 500 ? ms : 500;
        poll(NULL, 0, (int)part);
        ms -= part;
    }
}
