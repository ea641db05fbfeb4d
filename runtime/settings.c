/* The environment, read once into settings. */
#include "runtime/settings.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#define MAX_SECONDS 86400
#define MAX_WORKERS 1024 /* processes and threads that Lambda allows in one sandbox */

static void copy_environment(struct sl_settings *s, char *const *environment)
{
    size_t n = 0;
    while (environment[n])
        n++;
    const char **list = sl_arena_alloc(s->arena, (n + 1) * sizeof(*list));
    for (size_t i = 0; i < n; i++)
        list[i] = sl_arena_copy(s->arena, sl_span_str(environment[i]));
    list[n] = NULL;
    s->vars.list = list;
}

static void find_config(struct sl_settings *s, const char *folder)
{
    const char *named = sl_vars_or(&s->vars, "SLUICE_CONFIG", NULL);
    const char *root = sl_vars_or(&s->vars, "LAMBDA_TASK_ROOT", NULL);
    if (named) {
        snprintf(s->config_path, sizeof(s->config_path), "%s", named);
        return;
    }
    snprintf(s->config_path, sizeof(s->config_path), "%s/sluice.json", root ? root : folder);
    if (root && access(s->config_path, R_OK) != 0)
        snprintf(s->config_path, sizeof(s->config_path), "%s/sluice.json", folder);
}

static void find_handlers(struct sl_settings *s, const char *folder)
{
    size_t n = 0;
    struct sl_span rest = sl_span_str(sl_vars_or(&s->vars, "SLUICE_HANDLER_PATH", ""));
    s->handler_path[n++] = sl_arena_printf(s->arena, "%s/handlers", folder);
    s->handler_path[n++] = "/opt/sluice/handlers";
    while (rest.len && n < SL_LOADER_FOLDERS) {
        const char *colon = memchr(rest.ptr, ':', rest.len);
        struct sl_span one = sl_span(rest.ptr, colon ? (size_t)(colon - rest.ptr) : rest.len);
        if (one.len)
            s->handler_path[n++] = sl_arena_copy(s->arena, one);
        rest = sl_span_from(rest, one.len + (colon ? 1 : 0));
    }
    s->handler_path[n] = NULL;
}

static long number(const struct sl_vars *vars, const char *name, long otherwise, long max)
{
    const char *text = sl_vars_or(vars, name, NULL);
    char *end;
    long value = text ? strtol(text, &end, 10) : otherwise;
    return text && (*end || value < 0 || value > max) ? otherwise : value;
}

static void complain(struct sl_settings *s, const char *name, const char *text, const char *choices)
{
    s->wrong[s->n_wrong++] =
        sl_arena_printf(s->arena, "the variable %s is \"%.100s\"; it must be %s", name, text, choices);
}

/* `otherwise` when it is absent, or neither of the two. */
static bool choice(struct sl_settings *s, const char *name, const char *const words[2], bool otherwise)
{
    const char *text = sl_vars_or(&s->vars, name, NULL);
    if (!text || strcasecmp(text, words[0]) == 0 || strcasecmp(text, words[1]) == 0)
        return text ? strcasecmp(text, words[1]) == 0 : otherwise;
    complain(s, name, text, sl_arena_printf(s->arena, "%s or %s", words[1], words[0]));
    return otherwise;
}

static int64_t metrics_ms(struct sl_settings *s, bool is_collected)
{
    const char *text = sl_vars_or(&s->vars, "SLUICE_METRICS", NULL);
    long seconds = number(&s->vars, "SLUICE_METRICS", 0, MAX_SECONDS);
    if (text && strcasecmp(text, "off") == 0)
        return SL_METRICS_OFF;
    if (text && (seconds > 0 || strcasecmp(text, "each") == 0))
        return seconds * 1000;
    if (text)
        complain(s, "SLUICE_METRICS", text, "each, off, or a number of seconds from 1 to 86400");
    return is_collected ? 0 : SL_METRICS_OFF;
}

/* Outside Lambda nobody collects lines of a log, so there they have to be asked for. Whoever reads the report
 * needs neither. */
static void read_observation(struct sl_settings *s)
{
    static const char *const off_on[2] = {"off", "on"}, *const no_yes[2] = {"0", "1"};
    bool is_collected = sl_vars_get(&s->vars, "AWS_LAMBDA_LOG_GROUP_NAME");
    s->has_summary = choice(s, "SLUICE_SUMMARY", off_on, is_collected) && s->report_fd < 0;
    s->metrics_ms = metrics_ms(s, is_collected);
    if (s->report_fd >= 0)
        s->metrics_ms = SL_METRICS_OFF;
    s->has_shutdown = choice(s, "SLUICE_SHUTDOWN", no_yes, false);
}

void sl_settings_init(struct sl_settings *s, char *const *environment, const char *program)
{
    *s = (struct sl_settings){.arena = sl_arena_new(16 * 1024)};
    copy_environment(s, environment);
    const char *slash = strrchr(program, '/');
    const char *folder =
        slash ? sl_arena_copy(s->arena, sl_span(program, slash == program ? 1 : (size_t)(slash - program)))
              : ".";
    find_config(s, folder);
    find_handlers(s, folder);
    s->endpoint = sl_vars_or(&s->vars, "AWS_LAMBDA_RUNTIME_API", NULL);
    s->function_name = sl_vars_or(&s->vars, "AWS_LAMBDA_FUNCTION_NAME", "");
    s->temp_folder = sl_vars_or(&s->vars, "TMPDIR", "/tmp");
    bool json = strcasecmp(sl_vars_or(&s->vars, "AWS_LAMBDA_LOG_FORMAT", "Text"), "JSON") == 0;
    s->log_format = json ? SL_LOG_JSON : SL_LOG_TEXT;
    s->log_level = sl_log_level(sl_vars_get(&s->vars, "AWS_LAMBDA_LOG_LEVEL"), SL_INFO);
    s->workers = (unsigned)number(&s->vars, "AWS_LAMBDA_MAX_CONCURRENCY", 1, MAX_WORKERS);
    s->workers = s->workers ? s->workers : 1;
    s->report_fd = (int)number(&s->vars, "SLUICE_REPORT_FD", -1, 1 << 20);
    read_observation(s);
}

void sl_settings_clean_up(struct sl_settings *s)
{
    if (s)
        sl_arena_destroy(s->arena);
}
