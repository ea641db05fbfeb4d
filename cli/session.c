/* Runs one replay: inputs, mapping, sandboxes, outputs. */
#include "cli/patience.h"
#include "cli/session.h"

#include "handlers/pipeline/config.h"
#include "cli/config/filters.h"
#include "cli/output/trace.h"
#include "live/sandbox/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Events, after which their records leave the memory. */
#define RELEASE_BYTES ((size_t)8 * 1024 * 1024)

/* When a run that goes on says so, and what counts as a target that is not there. */
#define HINT_MS      5000
#define HINT_RETRIES 20

/* ---- while it runs ---- */

/* Virtual hours of retries may take minutes: whoever waits is told once why, and what ends it. */
static void hint_at_retries(struct sl_session *r, int64_t now_ms)
{
    r->began_ms = r->began_ms ? r->began_ms : now_ms;
    if (r->has_hinted || now_ms - r->began_ms < HINT_MS || r->settings.max_retries >= 0)
        return;
    struct sl_esm_stats s = sl_esm_stats(r->esm);
    if (s.retries < HINT_RETRIES)
        return;
    r->has_hinted = true;
    fprintf(stderr,
            "%ssluice %s: %llu records wait for batches that fail again and again (%llu retries); they are "
            "retried "
            "until the stream drops them, after %lld hours of virtual time. --max-retries N gives them up "
            "after N\n",
            isatty(STDERR_FILENO) ? "\n" : "", r->verb,
            (unsigned long long)(r->recording.n - (s.done + s.filtered + s.discarded + s.trimmed)),
            (unsigned long long)s.retries, (long long)r->settings.retention_s / 3600);
}

/* A terminal sees the line move; a log gets one now and then. */
static void show_progress(struct sl_session *r, bool is_last)
{
    struct sl_clock *clock = sl_clock_system();
    bool is_tty = isatty(STDERR_FILENO);
    int64_t now_ms = clock->now_ms(clock);
    if (r->is_quiet)
        return;
    if (!is_last)
        hint_at_retries(r, now_ms);
    if (!is_last && now_ms - r->progress_ms < (is_tty ? 100 : HINT_MS))
        return;
    if (!is_last && !is_tty && !r->progress_ms) {
        r->progress_ms = now_ms;
        return;
    }
    r->progress_ms = now_ms;
    struct sl_esm_stats s = sl_esm_stats(r->esm);
    fprintf(stderr, "%s%llu of %zu records, %llu invocations, %lld s of virtual time%s",
            is_tty ? "\r\x1b[K" : "", (unsigned long long)(s.done + s.filtered + s.discarded + s.trimmed),
            r->recording.n, (unsigned long long)s.invocations, (long long)s.elapsed_ms / 1000,
            is_last || !is_tty ? "\n" : "");
}

void sl_session_decided(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                        const struct sl_esm_decision *decision)
{
    struct sl_session *r = self;
    if (r->trace_out)
        sl_trace_add(r->trace_out, inv, result, decision);
    if (r->picture)
        sl_picture_add(r->picture, inv, result, decision, sl_runner_notes(r->runner));
    if (r->outage)
        sl_outages_collect(r->outage, r->clock.ms);
    if (!r->runner)
        return; /* whoever runs the sandboxes knows how far they are */
    sl_parked_add(&r->parked, sl_runner_notes(r->runner), inv->request_id, r->arena);
    sl_notes_forget(sl_runner_notes(r->runner), inv->request_id);
    r->delivered_bytes += inv->payload.len;
    if (r->recording.index && r->delivered_bytes > RELEASE_BYTES) {
        sl_recording_release(&r->recording);
        r->delivered_bytes = 0;
    }
    show_progress(r, false);
}

void sl_session_discarded(void *self, const struct sl_esm_discard *discard)
{
    struct sl_session *r = self;
    sl_failures_add(&r->failures, discard);
    if (r->picture)
        sl_picture_add_discard(r->picture, discard);
}

void sl_session_begin(void *self, struct sl_esm_invocation *inv)
{
    struct sl_session *r = self;
    if (r->outage)
        sl_outages_begin(r->outage, inv->time_ms, r->runner);
    sl_runner_begin(r->runner, inv);
}

void sl_session_invoke(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    struct sl_session *r = self;
    sl_patience_begin(r->patience);
    sl_runner_collect(r->runner, inv, out);
    sl_patience_end(r->patience);
}

/* ---- before it runs ---- */

static void say(const struct sl_session *r, const char *text)
{
    if (text)
        fprintf(stderr, "sluice %s: note: %s\n", r->verb, text);
}

static void say_never(void *arg, const char *text)
{
    const struct sl_session *r = arg;
    say(r, sl_arena_printf(r->arena, "--filter: %s", text));
}

static enum sl_status compile_filters(struct sl_session *r, struct sl_error *error)
{
    r->settings.n_filters = r->filters.n;
    enum sl_status status = sl_filters_compile(r->filters.values, r->filters.n, r->settings.is_kinesis,
                                               r->arena, &r->settings.filters, error);
    if (status == SL_OK)
        sl_filters_judge(r->filters.values, r->filters.n, r->settings.is_kinesis, say_never, r);
    return status;
}

static enum sl_status read_inputs(struct sl_session *r, struct sl_inputs *inputs, struct sl_error *error)
{
    struct sl_recording_options *options = &r->recording_options;
    if (sl_inputs_keep(inputs, r->arena, error) != SL_OK)
        return SL_REJECT;
    options->inputs = inputs;
    options->ttl_attribute = r->ttl_attribute.ptr ? sl_arena_copy(r->arena, r->ttl_attribute) : NULL;
    options->default_arn = r->settings.stream_arn;
    options->needs_item_keys = r->settings.parallelization > 1;
    options->needs_records = r->filters.n || r->report;
    options->needs_all = r->report;
    enum sl_status status = sl_recording_build(options, r->arena, &r->recording, error);
    if (status == SL_REJECT && strstr(error->text, "it has no member \"dynamodb\"")) {
        const struct sl_error why = *error;
        *error = (struct sl_error)SL_NO_ERROR;
        return sl_fail(error, status, why.code,
                       "%s; an item is a line {\"Item\":{\"PK\":{\"S\":\"a\"}}}, with --keys PK", why.text);
    }
    if (status != SL_OK)
        return status;
    if (r->recording.stream_arn)
        r->settings.stream_arn = r->recording.stream_arn;
    r->settings.is_kinesis = r->recording.is_kinesis;
    return r->settings.is_kinesis ? compile_filters(r, error) : SL_OK;
}

/* Refuses what bootstrap would refuse, before anything runs. The mapping has ReportBatchItemFailures when the
 * configuration says that it has. */
enum sl_status sl_session_read_config(struct sl_session *r, struct sl_error *error)
{
    struct sl_config config;
    if (r->command)
        return SL_OK;
    enum sl_status status = sl_config_read(r->config, &r->vars, r->arena, &config, error);
    if (status != SL_OK)
        return status;
    r->ttl_attribute = config.ttl_attribute;
    if (!r->sets_report_failures)
        r->settings.report_failures = config.reports_failures;
    return SL_OK;
}

static enum sl_status open_outputs(struct sl_session *r, struct sl_error *error)
{
    /* First what may refuse to write over what is there. */
    const struct sl_failures_target target = {r->on_failure, r->on_failure_mode};
    if (sl_failures_open(&r->failures, &target, &r->settings, error) != SL_OK)
        return SL_REJECT;
    if (r->collects_log && sl_output_open(r->log, &r->output, error) != SL_OK)
        return SL_REJECT;
    if (r->trace) {
        r->trace_file = fopen(r->trace, "we");
        if (!r->trace_file)
            return sl_fail(error, SL_REJECT, "CannotWrite", "--trace %s: cannot be written: %s", r->trace,
                           strerror(errno));
        setvbuf(r->trace_file, NULL, _IOLBF, BUFSIZ); /* all but the last lines, whatever ends this process */
        const struct sl_trace_options options = {.with_ids = r->with_ids, .folds = r->collects_log};
        r->trace_out = sl_trace_new(r->trace_file, options);
    }
    if (r->report)
        r->picture = sl_picture_new(&r->settings);
    if (r->report && !sl_picture_can_write(r->report))
        return sl_fail(error, SL_REJECT, "CannotWrite", "--report %s: cannot be written: %s", r->report,
                       strerror(errno));
    return SL_OK;
}

static const char *handler_path(struct sl_session *r)
{
    const char *outer = sl_vars_get(&r->vars, "SLUICE_HANDLER_PATH");
    return r->command && !r->handler_path ? NULL
                                          : sl_paths_handlers(r->arena, r->handler_path, r->config, outer);
}

/* The function is where its stream is. The Region of the environment, if it names one, is where its AWS
 * clients go. */
static enum sl_status find_identity(struct sl_session *r, struct sl_error *error)
{
    const char *region = sl_vars_get(&r->vars, "AWS_REGION");
    const struct sl_function_told told = {
        .function = r->function ? r->function : sl_vars_get(&r->vars, "AWS_LAMBDA_FUNCTION_NAME"),
        .region = region ? region : sl_vars_get(&r->vars, "AWS_DEFAULT_REGION"),
    };
    enum sl_status status = sl_function_make(r->settings.stream_arn, &told, r->arena, &r->identity, error);
    if (status == SL_OK)
        r->settings.function_arn = r->identity.arn;
    return status;
}

enum sl_status sl_session_sandboxes(struct sl_session *r, struct sl_runner_options *out,
                                    struct sl_error *error)
{
    const char *folder = sl_paths_own_folder(r->arena);
    *out = (struct sl_runner_options){
        .sandbox = {.bootstrap = sl_arena_printf(r->arena, "%s/bootstrap", folder),
                    .command = r->command,
                    .task_root = r->command ? sl_paths_absolute(r->arena, ".") : folder,
                    .config_path = r->command ? NULL : sl_paths_absolute(r->arena, r->config),
                    .handler_path = handler_path(r),
                    .identity = &r->identity,
                    .output = r->output,
                    .report_failures = r->settings.report_failures,
                    .vars = &r->vars},
        .timeout_ms = r->timeout_s * 1000,
        .faults = {.random = (uint64_t)r->seed + 1},
    };
    for (size_t i = 0; i < r->faults.n; i++)
        if (sl_faults_add(&out->faults, r->faults.values[i], error) != SL_OK)
            return SL_REJECT;
    return SL_OK;
}

static enum sl_status plan_outages(struct sl_session *r, struct sl_runner_options *options,
                                   struct sl_error *error)
{
    if (!r->outages.n)
        return SL_OK;
    if (r->command)
        return sl_fail(error, SL_REJECT, "InvalidOutage",
                       "--outage: only with our own runtime, not with --bootstrap");
    const struct sl_outages_options plan = {.config = r->config,
                                            .specs = &r->outages,
                                            .runner = *options,
                                            .invocation_ms = r->settings.invocation_ms,
                                            .arena = r->arena};
    if (sl_outages_open(&plan, &r->outage, error) != SL_OK)
        return SL_REJECT;
    options->sandbox.config_path = sl_outages_config(r->outage);
    options->sandbox.outage = "";
    return SL_OK;
}

static enum sl_status start_runner(struct sl_session *r, struct sl_error *error)
{
    struct sl_runner_options options;
    if (sl_session_sandboxes(r, &options, error) != SL_OK || plan_outages(r, &options, error) != SL_OK)
        return SL_REJECT;
    if (!r->handles_signals)
        sl_sandbox_end_with_us();
    r->runner = sl_runner_new(&options);
    return sl_runner_warm_up(r->runner, error);
}

/* ---- the verb ---- */

bool sl_session_close_trace(struct sl_session *r)
{
    if (!r->trace_file)
        return true;
    int failure = sl_trace_close(r->trace_out);
    r->trace_out = NULL;
    if (fclose(r->trace_file) != 0 && !failure)
        failure = errno;
    r->trace_file = NULL;
    if (failure)
        fprintf(stderr, "sluice %s: --trace %s is incomplete: %s\n", r->verb, r->trace, strerror(failure));
    return !failure;
}

static bool print_summary(const struct sl_session *r, const struct sl_run_summary *summary)
{
    if (r->has_no_summary)
        return true;
    sl_run_summary_print(summary, stdout);
    return sl_flags_end(r->verb, SL_EXIT_OK) == SL_EXIT_OK;
}

static enum sl_status write_picture(struct sl_session *r, const struct sl_run_summary *summary,
                                    struct sl_error *error)
{
    const struct sl_recording_options *options = &r->recording_options;
    struct sl_clock *clock = sl_clock_system();
    const struct sl_picture_run run = {.verb = r->verb,
                                       .config = r->config,
                                       .command = r->command,
                                       .inputs = options->inputs->names,
                                       .n_inputs = options->inputs->n,
                                       .filters = r->filters.values,
                                       .n_filters = r->filters.n,
                                       .faults = r->faults.values,
                                       .n_faults = r->faults.n,
                                       .timeout_s = r->timeout_s,
                                       .seed = r->seed,
                                       .is_live = options->is_live,
                                       .wall_ms = clock->wall_ns(clock) / 1000000};
    return sl_picture_write(r->picture, r->report, &run, summary, error);
}

static size_t more(void *self, size_t shard, const struct sl_esm_record **records)
{
    return sl_recording_more(&((struct sl_session *)self)->recording, shard, records);
}

static void forget(void *self, size_t shard, size_t n)
{
    sl_recording_forget(&((struct sl_session *)self)->recording, shard, n);
}

/* True: the drain had something to do before the mapping has. */
static bool drain(struct sl_session *r)
{
    int64_t due_ms = r->outage ? sl_outages_due_ms(r->outage) : INT64_MAX, next_ms = sl_esm_next_ms(r->esm);
    if (due_ms == INT64_MAX || (next_ms >= 0 && next_ms < due_ms))
        return false;
    r->clock.ms = r->clock.ms > due_ms ? r->clock.ms : due_ms;
    sl_outages_drain(r->outage, r->clock.ms);
    return true;
}

static int run(struct sl_session *r)
{
    const struct sl_esm_driver driver = {.self = r,
                                         .begin = sl_session_begin,
                                         .invoke = sl_session_invoke,
                                         .decided = sl_session_decided,
                                         .discarded = sl_session_discarded,
                                         .more = r->recording.pages ? more : NULL,
                                         .forget = forget};
    sl_clock_virtual_init(&r->clock, r->recording.start_ms * 1000000, (uint64_t)r->seed);
    r->settings.seed = (uint64_t)r->seed;
    r->esm = sl_esm_new(&r->settings, r->recording.shards, r->recording.n_shards, &r->clock, &driver);
    r->patience = r->is_quiet ? NULL : sl_patience_new(r->verb, r->timeout_s);
    while (drain(r) || sl_esm_step(r->esm)) {
    }
    sl_patience_destroy(r->patience);
    r->patience = NULL;
    show_progress(r, true);
    bool is_written = sl_output_settle(r->output);
    struct sl_run_summary summary = {
        .recording = &r->recording, .mapping = sl_esm_stats(r->esm), .runner = r->runner};
    summary.processes = sl_runner_stats(r->runner);
    if (!r->command)
        summary.parked = sl_parked_text(r->config, &r->vars, r->runner, &r->parked, r->arena);
    if (r->outage)
        summary.letters = sl_outages_text(r->outage);
    is_written = print_summary(r, &summary) && is_written;
    is_written = sl_session_close_trace(r) && is_written;
    struct sl_error error = SL_NO_ERROR;
    if (r->picture && write_picture(r, &summary, &error) != SL_OK) {
        (void)sl_flags_complain(r->verb, &error);
        is_written = false;
    }
    bool has_lost =
        summary.mapping.discarded || summary.mapping.trimmed || (r->outage && sl_outages_left(r->outage));
    for (size_t i = 0; r->fails_on_parked && i < sl_runner_routes(r->runner); i++)
        has_lost = has_lost || sl_runner_route(r->runner, i)->parked;
    return has_lost || !is_written ? SL_EXIT_FAILED : SL_EXIT_OK;
}

enum sl_status sl_session_prepare(struct sl_session *r, struct sl_error *error)
{
    if (r->timeout_s < 1 || r->timeout_s > 900)
        return sl_fail(error, SL_REJECT, "ValidationException",
                       "--timeout: must be 1 to 900 seconds, as in Lambda");
    if (compile_filters(r, error) != SL_OK)
        return SL_REJECT;
    if (sl_esm_settings_check(&r->settings, error) != SL_OK) {
        if (r->settings.max_age_s >= 0 && r->settings.max_age_s < 60)
            sl_error_context(error, "--max-age");
        return SL_REJECT;
    }
    if (r->filters.n > SL_FILTERS_BY_DEFAULT)
        say(r,
            sl_arena_printf(r->arena,
                            "%zu filters: AWS takes %d for a mapping, and up to %d when the quota was raised",
                            r->filters.n, SL_FILTERS_BY_DEFAULT, SL_FILTERS_AT_MOST));
    return SL_OK;
}

enum sl_status sl_session_open_outputs(struct sl_session *r, struct sl_error *error)
{
    enum sl_status status = find_identity(r, error);
    return status == SL_OK ? open_outputs(r, error) : status;
}

enum sl_status sl_session_open(struct sl_session *r, struct sl_error *error)
{
    enum sl_status status = sl_session_open_outputs(r, error);
    return status == SL_OK ? start_runner(r, error) : status;
}

int sl_session_run(struct sl_session *r, struct sl_inputs *inputs)
{
    struct sl_error error = SL_NO_ERROR, config_error = SL_NO_ERROR;
    /* The configuration names the TTL attribute, which decoding needs. Errors in inputs are reported first.
     */
    enum sl_status config_status = sl_session_read_config(r, &config_error);
    if (sl_session_prepare(r, &error) != SL_OK || read_inputs(r, inputs, &error) != SL_OK)
        return sl_flags_complain(r->verb, &error);
    if (config_status != SL_OK)
        return sl_flags_complain(r->verb, &config_error);
    if (sl_session_open(r, &error) != SL_OK)
        return sl_flags_complain(r->verb, &error);
    say(r, sl_sequence_late(&r->recording.order));
    say(r, sl_sequence_streams(&r->recording.order));
    return run(r);
}

bool sl_session_clean_up(struct sl_session *r)
{
    sl_esm_destroy(r->esm);
    sl_runner_destroy(r->runner);
    sl_outages_close(r->outage);
    bool is_written = sl_output_close(r->output);
    is_written = sl_failures_close(&r->failures) && is_written;
    sl_picture_destroy(r->picture);
    is_written = sl_session_close_trace(r) && is_written;
    sl_arena_destroy(r->arena);
    return is_written;
}
