/* `sluice replay`: recorded records through the real bootstrap, under the rules of an event source mapping.
 */
#include "handlers/config.h"
#include "replay/failures.h"
#include "replay/flags.h"
#include "replay/paths.h"
#include "replay/report.h"
#include "replay/runner.h"
#include "replay/stream.h"
#include "replay/summary.h"
#include "replay/trace.h"
#include "replay/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRACE_LINE_BYTES (64u * 1024 * 1024) /* an answer of 6 MB, escaped, and 10,000 ids */

struct replay {
    /* flags */
    const char *config, *trace, *on_failure, *command, *handler_path, *report;
    struct sl_span ttl_attribute; /* the configuration's */
    struct sl_flag_list filters, faults;
    bool with_ids, is_quiet;
    int64_t timeout_s, seed;
    struct sl_esm_settings settings;
    struct sl_stream_options stream_options;

    struct sl_arena *arena;
    struct sl_stream stream;
    struct sl_runner *runner;
    struct sl_clock_virtual clock;
    struct sl_esm *esm;
    FILE *trace_file;
    struct sl_buffer line;
    struct sl_failures failures;
    struct sl_report *picture; /* of `report` */
    int64_t progress_ms;       /* when the progress line was last drawn */
};

/* ---- while it runs ---- */

static void show_progress(struct replay *r, bool is_last)
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

static void on_decided(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                       const struct sl_esm_decision *decision)
{
    struct replay *r = self;
    if (r->trace_file) {
        sl_buffer_reset(&r->line);
        sl_trace_line(inv, result, decision, r->with_ids, &r->line);
        fwrite(r->line.ptr, 1, r->line.len, r->trace_file);
    }
    if (r->picture)
        sl_report_add(r->picture, inv, result, decision);
    show_progress(r, false);
}

static void on_discarded(void *self, const struct sl_esm_discard *discard)
{
    sl_failures_add(&((struct replay *)self)->failures, discard);
}

static void driver_begin(void *self, struct sl_esm_invocation *inv)
{
    sl_runner_begin(((struct replay *)self)->runner, inv);
}

static void driver_invoke(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    sl_runner_collect(((struct replay *)self)->runner, inv, out);
}

/* ---- before it runs ---- */

static int complain(const struct sl_error *error)
{
    fprintf(stderr, "sluice replay: %s\n", error->text);
    return SL_EXIT_BAD;
}

static enum sl_status compile_filters(struct replay *r, struct sl_error *error)
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

static enum sl_status read_inputs(struct replay *r, char **names, size_t n, struct sl_error *error)
{
    struct sl_input *inputs = sl_arena_alloc(r->arena, n * sizeof(*inputs));
    const struct sl_decode_options options = {.any_shape = true, .ttl_attribute = r->ttl_attribute};
    for (size_t i = 0; i < n; i++)
        if (sl_input_read(names[i], &options, r->arena, &inputs[i], error) != SL_OK)
            return SL_REJECT;
    r->stream_options.needs_item_keys = r->settings.parallelization > 1;
    enum sl_status status =
        sl_stream_build(inputs, n, &r->stream_options, r->settings.stream_arn, r->arena, &r->stream, error);
    if (status == SL_OK && r->stream.stream_arn)
        r->settings.stream_arn = r->stream.stream_arn;
    return status;
}

/* What bootstrap would refuse is refused here, before anything runs; and the mapping is as the configuration
 * says that it is. */
static enum sl_status read_config(struct replay *r, bool asked, struct sl_error *error)
{
    extern char **environ;
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
    if (!asked)
        r->settings.report_failures = config.reports_failures;
    return SL_OK;
}

static enum sl_status open_outputs(struct replay *r, struct sl_error *error)
{
    sl_buffer_init(&r->line, TRACE_LINE_BYTES);
    if (r->trace) {
        r->trace_file = fopen(r->trace, "we");
        if (!r->trace_file)
            return sl_fail(error, SL_REJECT, "CannotWrite", "--trace %s: %s", r->trace, strerror(errno));
    }
    if (r->report)
        r->picture = sl_report_new();
    return sl_failures_open(&r->failures, r->on_failure, &r->settings, error);
}

static const char *handler_path(struct replay *r)
{
    extern char **environ;
    struct sl_vars vars = {(const char *const *)environ};
    const char *outer = sl_vars_get(&vars, "SLUICE_HANDLER_PATH");
    return r->command ? r->handler_path : sl_handler_path(r->arena, r->handler_path, r->config, outer);
}

static enum sl_status start_runner(struct replay *r, struct sl_error *error)
{
    extern char **environ;
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
    r->runner = sl_runner_new(&options);
    return sl_runner_warm_up(r->runner, error);
}

/* ---- the verb ---- */

static int run(struct replay *r)
{
    const struct sl_esm_driver driver = {.self = r,
                                         .begin = driver_begin,
                                         .invoke = driver_invoke,
                                         .decided = on_decided,
                                         .discarded = on_discarded};
    sl_clock_virtual_init(&r->clock, r->stream.start_ms * 1000000, (uint64_t)r->seed);
    r->settings.seed = (uint64_t)r->seed;
    r->esm = sl_esm_new(&r->settings, r->stream.shards, r->stream.n_shards, &r->clock, &driver);
    while (sl_esm_step(r->esm)) {
    }
    show_progress(r, true);
    struct sl_summary summary = {.stream = &r->stream, .mapping = sl_esm_stats(r->esm), .runner = r->runner};
    summary.processes = sl_runner_stats(r->runner);
    sl_summary_print(&summary, stdout);
    struct sl_error error = {.offset = SL_NO_OFFSET};
    if (r->picture && sl_report_write(r->picture, r->report, &summary, &error) != SL_OK)
        return complain(&error);
    bool has_lost = summary.mapping.discarded || summary.mapping.trimmed;
    return has_lost ? SL_EXIT_FAILED : SL_EXIT_OK;
}

static int prepare_and_run(struct replay *r, bool asked, char **inputs, size_t n)
{
    struct sl_error error = {.offset = SL_NO_OFFSET}, config_error = error;
    if (r->timeout_s < 1 || r->timeout_s > 900) {
        sl_fail(&error, SL_REJECT, "ValidationException", "--timeout: Lambda takes 1 to 900 seconds");
        return complain(&error);
    }
    /* Read before the inputs, which it helps to understand; what is wrong with them is said first. */
    enum sl_status config_status = read_config(r, asked, &config_error);
    if (compile_filters(r, &error) != SL_OK || sl_esm_settings_check(&r->settings, &error) != SL_OK ||
        read_inputs(r, inputs, n, &error) != SL_OK)
        return complain(&error);
    if (config_status != SL_OK)
        return complain(&config_error);
    if (open_outputs(r, &error) != SL_OK || start_runner(r, &error) != SL_OK)
        return complain(&error);
    return run(r);
}

static void clean_up(struct replay *r)
{
    sl_esm_destroy(r->esm);
    sl_runner_destroy(r->runner);
    sl_failures_close(&r->failures);
    sl_report_destroy(r->picture);
    if (r->trace_file && fclose(r->trace_file) != 0)
        fprintf(stderr, "sluice replay: --trace %s: %s\n", r->trace, strerror(errno));
    sl_buffer_clean_up(&r->line);
    sl_arena_destroy(r->arena);
}

/* `--report-failures` and `--no-report-failures` override the configuration; none of them leaves it. */
static bool was_asked(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--report-failures") == 0 || strcmp(argv[i], "--no-report-failures") == 0)
            return true;
    return false;
}

/* The one replay of this process: the flags' rows point into it. */
static struct replay the = {.config = "sluice.json", .timeout_s = 60};

static const struct sl_flag flags[] = {
    {"config", SL_FLAG_TEXT, &the.config, "FILE", "the configuration (./sluice.json)"},
    {"batch-size", SL_FLAG_INTEGER, &the.settings.batch_size, "N", "BatchSize, 1 to 10000 (100)"},
    {"window", SL_FLAG_INTEGER, &the.settings.window_s, "S", "MaximumBatchingWindowInSeconds, 0 to 300 (0)"},
    {"parallelization", SL_FLAG_INTEGER, &the.settings.parallelization, "N",
     "ParallelizationFactor, 1 to 10 (1)"},
    {"max-retries", SL_FLAG_INTEGER, &the.settings.max_retries, "N",
     "MaximumRetryAttempts, -1 to 10000 (-1: no limit)"},
    {"max-age", SL_FLAG_INTEGER, &the.settings.max_age_s, "S",
     "MaximumRecordAgeInSeconds, -1 or 60 to 604800 (-1: no limit)"},
    {"bisect", SL_FLAG_BOOL, &the.settings.bisect, NULL, "BisectBatchOnFunctionError"},
    {"report-failures", SL_FLAG_BOOL, &the.settings.report_failures, NULL,
     "ReportBatchItemFailures; the function is told so (as the configuration says)"},
    {"filter", SL_FLAG_LIST, &the.filters, "PATTERN",
     "FilterCriteria: one pattern, as JSON; may be given again"},
    {"tumbling", SL_FLAG_INTEGER, &the.settings.tumbling_s, "S",
     "TumblingWindowInSeconds, 0 to 900 (0: none)"},
    {"on-failure", SL_FLAG_TEXT, &the.on_failure, "FILE",
     "OnFailure destination: a file for SQS's records, FOLDER/ for S3's objects"},
    {"concurrency", SL_FLAG_INTEGER, &the.settings.concurrency, "N",
     "more invocations at a time are throttled (0: no limit)"},
    {"timeout", SL_FLAG_INTEGER, &the.timeout_s, "S", "of an invocation, in real time (60)"},
    {"invocation-ms", SL_FLAG_INTEGER, &the.settings.invocation_ms, "MS",
     "what each invocation costs of the virtual time (100)"},
    {"live", SL_FLAG_BOOL, &the.stream_options.is_live, NULL,
     "records come at the times they were made; else all are there at the beginning"},
    {"start", SL_FLAG_INTEGER, &the.stream_options.start_epoch_s, "EPOCH_S",
     "when the mapping begins (at the newest record)"},
    {"shards", SL_FLAG_INTEGER, &the.stream_options.shards, "N", "items are spread over N shards (1)"},
    {"shard-per-file", SL_FLAG_BOOL, &the.stream_options.is_shard_per_file, NULL, "each input is a shard"},
    {"keys", SL_FLAG_TEXT, &the.stream_options.keys, "PK,SK",
     "key attributes, for lines that hold an item alone"},
    {"trace", SL_FLAG_TEXT, &the.trace, "FILE", "one JSON line per invocation"},
    {"report", SL_FLAG_TEXT, &the.report, "FILE",
     "a picture of batches, splits, retries and discards, as HTML"},
    {"trace-records", SL_FLAG_BOOL, &the.with_ids, NULL, "with the sequence numbers"},
    {"fault", SL_FLAG_LIST, &the.faults, "SPEC",
     "throttle, crash, die, lost, timeout @ an invocation (3), a range (3-5), a share (10%) or *; sink, "
     "connect @ such a call of the function's"},
    {"seed", SL_FLAG_INTEGER, &the.seed, "N", "of request ids and of faults by share (0)"},
    {"bootstrap", SL_FLAG_TEXT, &the.command, "COMMAND", "another Lambda runtime in place of ours"},
    {"handler-path", SL_FLAG_TEXT, &the.handler_path, "FOLDERS",
     "where plugins are, separated by ':' (handlers/ beside the configuration)"},
    {"quiet", SL_FLAG_BOOL, &the.is_quiet, NULL, "no progress line"},
    {0},
};

static const struct sl_usage usage = {
    "replay [flags] INPUT...",
    "Replays recorded stream records through the real bootstrap, under the rules of Lambda's event "
    "source\n"
    "mapping, on a virtual clock. INPUT: an event, a GetRecords dump, records one a line, an archive, "
    "an\n"
    "export, plain or gzip; - is standard input. Exit status: 0 all handled, 1 something was discarded,\n"
    "2 bad usage or input.",
    flags};

int sl_verb_replay(int argc, char **argv)
{
    int n = 0, result = SL_EXIT_BAD;
    bool asked = was_asked(argc, argv);
    sl_esm_settings_init(&the.settings);
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    if (n == 0) {
        fprintf(stderr, "sluice replay: wants an INPUT (see sluice replay --help)\n");
        return SL_EXIT_BAD;
    }
    the.arena = sl_arena_new(1024 * 1024);
    result = prepare_and_run(&the, asked, argv + 1, (size_t)n);
    clean_up(&the);
    return result;
}
