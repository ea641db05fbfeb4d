/* `sluice replay`: recorded records through the real bootstrap, under the rules of an event source mapping.
 */
#include "replay/flags.h"
#include "replay/session.h"
#include "replay/verbs.h"

#include <stdio.h>
#include <string.h>

/* `--report-failures` and `--no-report-failures` override the configuration; none of them leaves it. */
static bool was_asked(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--report-failures") == 0 || strcmp(argv[i], "--no-report-failures") == 0)
            return true;
    return false;
}

/* The one replay of this process: the flags' rows point into it. */
static struct sl_session the = {.verb = "replay", .config = "sluice.json", .timeout_s = 60};

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

static int load_and_run(char **names, size_t n)
{
    struct sl_error error = {.offset = SL_NO_OFFSET};
    struct sl_text_input *inputs = sl_arena_alloc(the.arena, n * sizeof(*inputs));
    for (size_t i = 0; i < n; i++) {
        inputs[i].name = names[i];
        if (sl_input_load(names[i], the.arena, &inputs[i].text, &error) != SL_OK) {
            fprintf(stderr, "sluice replay: %s\n", error.text);
            return SL_EXIT_BAD;
        }
    }
    return sl_session_run(&the, inputs, n);
}

int sl_verb_replay(int argc, char **argv)
{
    int n = 0, result = SL_EXIT_BAD;
    the.is_mapping_said = was_asked(argc, argv);
    sl_esm_settings_init(&the.settings);
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    if (n == 0) {
        fprintf(stderr, "sluice replay: wants an INPUT (see sluice replay --help)\n");
        return SL_EXIT_BAD;
    }
    the.arena = sl_arena_new(1024 * 1024);
    result = load_and_run(argv + 1, (size_t)n);
    sl_session_clean_up(&the);
    return result;
}
