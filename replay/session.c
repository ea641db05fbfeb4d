#include "replay/session.h"

#include "handlers/config.h"
#include "replay/paths.h"
#include "replay/trace.h"
#include "replay/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRACE_LINE_BYTES (64u * 1024 * 1024) /* an answer of 6 MB, escaped, and 10,000 ids */

extern char **environ;

/* ---- while it runs ---- */

static void show_progress(struct sl_session *r, bool is_last)
{
    struct sl_clock *clock = sl_clock_system();
    bool is_tty = isatty(STDERR_FILENO);
    int64_t now_ms = clock->now_ms(clock);
    if (r->is_quiet || (!is_last && (!is_tty || now_ms - r->progress_ms < 100)))
        return;
    r->progress_ms = now_ms;
    struct sl_esm_stats s = sl_esm_stats(r->esm);
    fprintf(stderr, "%s%llu of %zu records, %llu invocations, %lld s of virtual time%s",
            is_tty ? "\r\x1b[K" : "", (unsigned long long)(s.done + s.filtered + s.discarded + s.trimmed),
            r->stream.n, (unsigned long long)s.invocations, (long long)s.elapsed_ms / 1000,
            is_last ? "\n" : "");
}

void sl_session_decided(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                        const struct sl_esm_decision *decision)
{
    struct sl_session *r = self;
    if (r->trace_file) {
        sl_buffer_reset(&r->line);
        sl_trace_line(inv, result, decision, r->with_ids, &r->line);
        fwrite(r->line.ptr, 1, r->line.len, r->trace_file);
    }
    if (r->picture)
        sl_report_add(r->picture, inv, result, decision);
    show_progress(r, false);
}

void sl_session_discarded(void *self, const struct sl_esm_discard *discard)
{
    sl_failures_add(&((struct sl_session *)self)->failures, discard);
}

void sl_session_begin(void *self, struct sl_esm_invocation *inv)
{
    sl_runner_begin(((struct sl_session *)self)->runner, inv);
}

void sl_session_invoke(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    sl_runner_collect(((struct sl_session *)self)->runner, inv, out);
}

/* ---- before it runs ---- */

static int complain(const struct sl_session *r, const struct sl_error *error)
{
    fprintf(stderr, "sluice %s: %s\n", r->verb, error->text);
    return SL_EXIT_BAD;
}

static enum sl_status compile_filters(struct sl_session *r, struct sl_error *error)
{
    const struct sl_when **all = sl_arena_alloc(r->arena, sizeof(struct sl_when *) * (r->filters.n + 1));
    for (size_t i = 0; i < r->filters.n; i++) {
        struct sl_when *one;
        struct sl_error why = {.offset = SL_NO_OFFSET};
        if (sl_pattern_compile(sl_span_str(r->filters.values[i]), r->arena, &one, &why) != SL_OK)
            return sl_fail(error, SL_REJECT, "InvalidParameterValueException",
                           "--filter: Invalid filter pattern definition: %s", why.text);
        all[i] = one;
    }
    r->settings.filters = all;
    r->settings.n_filters = r->filters.n;
    return SL_OK;
}

static enum sl_status read_inputs(struct sl_session *r, const struct sl_text_input *texts, size_t n,
                                  struct sl_error *error)
{
    struct sl_input *inputs = sl_arena_alloc(r->arena, (n + 1) * sizeof(*inputs));
    const struct sl_decode_options options = {.any_shape = true, .ttl_attribute = r->ttl_attribute};
    for (size_t i = 0; i < n; i++)
        if (sl_input_decode(texts[i].name, texts[i].text, &options, r->arena, &inputs[i], error) != SL_OK)
            return SL_REJECT;
    r->stream_options.needs_item_keys = r->settings.parallelization > 1;
    enum sl_status status =
        sl_stream_build(inputs, n, &r->stream_options, r->settings.stream_arn, r->arena, &r->stream, error);
    r->settings.is_kinesis = r->stream.is_kinesis;
    if (status == SL_OK && r->stream.stream_arn)
        r->settings.stream_arn = r->stream.stream_arn;
    return status;
}

/* What bootstrap would refuse is refused here, before anything runs; and the mapping is as the configuration
 * says that it is. */
enum sl_status sl_session_read_config(struct sl_session *r, struct sl_error *error)
{
    struct sl_vars vars = {(const char *const *)environ};
    struct sl_config config;
    if (r->command)
        return SL_OK;
    if (access(r->config, R_OK) != 0)
        return sl_fail(error, SL_REJECT, "NoConfig", "%s: %s; name the configuration with --config FILE",
                       r->config, strerror(errno));
    enum sl_status status = sl_config_read(r->config, &vars, r->arena, &config, error);
    if (status != SL_OK)
        return status;
    r->ttl_attribute = config.ttl_attribute;
    if (!r->is_mapping_said)
        r->settings.report_failures = config.reports_failures;
    return SL_OK;
}

static enum sl_status open_outputs(struct sl_session *r, struct sl_error *error)
{
    sl_buffer_init(&r->line, TRACE_LINE_BYTES);
    if (r->trace) {
        r->trace_file = fopen(r->trace, "we");
        if (!r->trace_file)
            return sl_fail(error, SL_REJECT, "CannotWrite", "--trace %s: %s", r->trace, strerror(errno));
    }
    if (r->report)
        r->picture = sl_report_new();
    if (r->report && !sl_report_can_write(r->report))
        return sl_fail(error, SL_REJECT, "CannotWrite", "--report %s: %s", r->report, strerror(errno));
    return sl_failures_open(&r->failures, r->on_failure, &r->settings, error);
}

static const char *handler_path(struct sl_session *r)
{
    struct sl_vars vars = {(const char *const *)environ};
    const char *outer = sl_vars_get(&vars, "SLUICE_HANDLER_PATH");
    return r->command && !r->handler_path ? NULL
                                          : sl_handler_path(r->arena, r->handler_path, r->config, outer);
}

static enum sl_status start_runner(struct sl_session *r, struct sl_error *error)
{
    const char *folder = sl_own_folder(r->arena);
    struct sl_runner_options options = {
        .sandbox = {.bootstrap = sl_arena_printf(r->arena, "%s/bootstrap", folder),
                    .command = r->command,
                    .task_root = r->command ? sl_absolute_path(r->arena, ".") : folder,
                    .config_path = r->command ? NULL : sl_absolute_path(r->arena, r->config),
                    .handler_path = handler_path(r),
                    .region = "us-east-1",
                    .report_failures = r->settings.report_failures,
                    .environment = environ},
        .timeout_ms = r->timeout_s * 1000,
        .faults = {.random = (uint64_t)r->seed + 1},
        .function_arn = r->settings.function_arn,
    };
    for (size_t i = 0; i < r->faults.n; i++)
        if (sl_faults_add(&options.faults, r->faults.values[i], error) != SL_OK)
            return SL_REJECT;
    if (!r->handles_signals)
        sl_sandbox_end_with_us();
    r->runner = sl_runner_new(&options);
    return sl_runner_warm_up(r->runner, error);
}

/* ---- the verb ---- */

static bool close_trace(struct sl_session *r)
{
    if (!r->trace_file)
        return true;
    bool ok = !ferror(r->trace_file);
    ok = fclose(r->trace_file) == 0 && ok;
    r->trace_file = NULL;
    if (!ok)
        fprintf(stderr, "sluice %s: --trace %s: is incomplete: %s\n", r->verb, r->trace, strerror(errno));
    return ok;
}

static bool print_summary(const struct sl_session *r, const struct sl_summary *summary)
{
    if (r->has_no_summary)
        return true;
    sl_summary_print(summary, stdout);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    fprintf(stderr, "sluice %s: standard output cannot be written: %s\n", r->verb, strerror(errno));
    return false;
}

static int run(struct sl_session *r)
{
    const struct sl_esm_driver driver = {.self = r,
                                         .begin = sl_session_begin,
                                         .invoke = sl_session_invoke,
                                         .decided = sl_session_decided,
                                         .discarded = sl_session_discarded};
    sl_clock_virtual_init(&r->clock, r->stream.start_ms * 1000000, (uint64_t)r->seed);
    r->settings.seed = (uint64_t)r->seed;
    r->esm = sl_esm_new(&r->settings, r->stream.shards, r->stream.n_shards, &r->clock, &driver);
    while (sl_esm_step(r->esm)) {
    }
    show_progress(r, true);
    struct sl_summary summary = {.stream = &r->stream, .mapping = sl_esm_stats(r->esm), .runner = r->runner};
    summary.processes = sl_runner_stats(r->runner);
    bool is_written = print_summary(r, &summary);
    is_written = close_trace(r) && is_written;
    struct sl_error error = {.offset = SL_NO_OFFSET};
    if (r->picture && sl_report_write(r->picture, r->report, &summary, &error) != SL_OK) {
        (void)complain(r, &error);
        is_written = false;
    }
    bool has_lost = summary.mapping.discarded || summary.mapping.trimmed;
    return has_lost || !is_written ? SL_EXIT_FAILED : SL_EXIT_OK;
}

enum sl_status sl_session_prepare(struct sl_session *r, struct sl_error *error)
{
    if (r->timeout_s < 1 || r->timeout_s > 900)
        return sl_fail(error, SL_REJECT, "ValidationException", "--timeout: Lambda takes 1 to 900 seconds");
    if (compile_filters(r, error) != SL_OK || sl_esm_settings_check(&r->settings, error) != SL_OK)
        return SL_REJECT;
    return SL_OK;
}

enum sl_status sl_session_open(struct sl_session *r, struct sl_error *error)
{
    enum sl_status status = open_outputs(r, error);
    return status == SL_OK ? start_runner(r, error) : status;
}

int sl_session_run(struct sl_session *r, const struct sl_text_input *inputs, size_t n)
{
    struct sl_error error = {.offset = SL_NO_OFFSET}, config_error = error;
    /* Read before the inputs, which it helps to understand; what is wrong with them is said first. */
    enum sl_status config_status = sl_session_read_config(r, &config_error);
    if (sl_session_prepare(r, &error) != SL_OK || read_inputs(r, inputs, n, &error) != SL_OK)
        return complain(r, &error);
    if (config_status != SL_OK)
        return complain(r, &config_error);
    if (sl_session_open(r, &error) != SL_OK)
        return complain(r, &error);
    return run(r);
}

void sl_session_clean_up(struct sl_session *r)
{
    sl_esm_destroy(r->esm);
    sl_runner_destroy(r->runner);
    sl_failures_close(&r->failures);
    sl_report_destroy(r->picture);
    (void)close_trace(r);
    sl_buffer_clean_up(&r->line);
    sl_arena_destroy(r->arena);
}
