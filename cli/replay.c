/* `sluice replay`: runs recorded records through the real bootstrap, under a simulated mapping. */
#include "cli/session.h"
#include "cli/verbs.h"

#include <string.h>

/* Whether the command line overrides the configuration's ReportBatchItemFailures. */
static bool has_report_flag(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--report-failures") == 0 || strcmp(argv[i], "--no-report-failures") == 0)
            return true;
    return false;
}

/* The one replay of this process: the rows of flags point into it. */
static struct sl_session the = {
    .verb = "replay", .config = "sluice.json", .timeout_s = 60, .collects_log = true};

static bool overwrite;

/* Two ways to make shards. */
static bool is_doubly_sharded(void)
{
    const struct sl_recording_options *o = &the.recording_options;
    if (!o->shards || !o->is_shard_per_file)
        return false;
    fputs("sluice replay: --shards and --shard-per-file exclude each other; keep one (see sluice replay "
          "--help)\n",
          stderr);
    return true;
}

static const struct sl_flag flags[] = {
    {"config", SL_FLAG_TEXT, &the.config, "FILE", "the configuration (./sluice.json)"},
    {"report", SL_FLAG_TEXT, &the.report, "FILE",
     "write an HTML page: what was given up or parked, and a picture of every invocation"},
    {"fail-on-parked", SL_FLAG_BOOL, &the.fails_on_parked, NULL,
     "exit status 1 also when a record was parked"},
    {"quiet", SL_FLAG_BOOL, &the.is_quiet, NULL, "print no progress line"},
    {"The mapping, by AWS's names", SL_FLAG_HEADING, NULL, NULL, NULL},
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
     "ReportBatchItemFailures, for mapping and function (as the configuration says)"},
    {"filter", SL_FLAG_LIST, &the.filters, "PATTERN",
     "FilterCriteria: one pattern, as JSON; may be repeated, as often as AWS allows"},
    {"tumbling", SL_FLAG_INTEGER, &the.settings.tumbling_s, "S",
     "TumblingWindowInSeconds, 0 to 900 (0: none)"},
    {"on-failure", SL_FLAG_TEXT, &the.on_failure, "FILE",
     "OnFailure destination: FILE gets SQS's records, FOLDER/ gets S3's objects"},
    {"overwrite", SL_FLAG_BOOL, &overwrite, NULL, "write over what --on-failure names, if it has records"},
    {"concurrency", SL_FLAG_INTEGER, &the.settings.concurrency, "N",
     "ReservedConcurrentExecutions, 0 to 1000: more invocations at a time are throttled (0: no limit)"},
    {"Records and time", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"keys", SL_FLAG_TEXT, &the.recording_options.keys, "PK,SK",
     "key attributes, for lines that hold only an item"},
    {"shards", SL_FLAG_INTEGER, &the.recording_options.shards, "N",
     "spread the items over N shards, 1 to 1000 (1)"},
    {"shard-per-file", SL_FLAG_BOOL, &the.recording_options.is_shard_per_file, NULL,
     "make each input a shard"},
    {"live", SL_FLAG_BOOL, &the.recording_options.is_live, NULL,
     "each record becomes available at its own time; else all at the beginning"},
    {"start", SL_FLAG_INTEGER, &the.recording_options.start_epoch_s, "EPOCH_S",
     "when the mapping begins (at the newest record)"},
    {"invocation-ms", SL_FLAG_INTEGER, &the.settings.invocation_ms, "MS",
     "how long each invocation takes in virtual time, 0 to 900000 (100)"},
    {"What goes wrong", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"fault", SL_FLAG_LIST, &the.faults, "SPEC",
     "KIND@WHEN,...: throttle, crash, die, lost or timeout @ an invocation (3), a range (3-5), a share (10%) "
     "or *; sink or connect @ such a call of the function; may be repeated"},
    {"outage", SL_FLAG_LIST, &the.outages, "ROUTE@A-B",
     "the target of ROUTE is down from second A to B of virtual time; what it sets aside is drained then; "
     "may "
     "be repeated"},
    {"seed", SL_FLAG_INTEGER, &the.seed, "N", "seed of request ids and of faults by share (0)"},
    {"The function", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"bootstrap", SL_FLAG_TEXT, &the.command, "COMMAND", "another Lambda runtime instead of ours"},
    {"function", SL_FLAG_TEXT, &the.function, "NAME",
     "the function's name or ARN (AWS_LAMBDA_FUNCTION_NAME, or sluice, where the stream is)"},
    {"handler-path", SL_FLAG_TEXT, &the.handler_path, "FOLDERS",
     "folders of plugins, separated by ':' (handlers/ beside the configuration)"},
    {"timeout", SL_FLAG_INTEGER, &the.timeout_s, "S",
     "timeout of an invocation, in real time, 1 to 900 (60)"},
    {"What is written", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"log", SL_FLAG_TEXT, &the.log, "FILE",
     "every line that the function writes (standard error, with repeated lines counted)"},
    {"trace", SL_FLAG_TEXT, &the.trace, "FILE", "write one JSON line per invocation"},
    {"trace-records", SL_FLAG_BOOL, &the.with_ids, NULL, "add the sequence numbers to the trace"},
    {0},
};

static const struct sl_flag_range ranges[] = {
    {"batch-size", 1, 10000},
    {"window", 0, 300},
    {"parallelization", 1, 10},
    {"max-retries", -1, 10000},
    {"max-age", -1, 604800},
    {"tumbling", 0, 900},
    {"concurrency", 0, 1000},
    {"timeout", 1, 900},
    {"invocation-ms", 0, 900000},
    {"start", 0, 253402300799}, /* the year 9999 */
    {"shards", 1, 1000},
    {"seed", INT64_MIN, INT64_MAX},
    {0},
};

static const struct sl_usage usage = {
    .line = "replay [flags] INPUT...",
    .summary = "Replays recorded stream records through the real bootstrap, under the rules of Lambda's "
               "event source mapping, on a virtual clock. INPUT is a file, plain or gzip, or - for standard "
               "input: an event, a GetRecords dump, one record a line, an archive, or an export. Exit "
               "status: 0 all handled, 1 something was discarded, 2 bad usage or input.",
    .example = "sluice replay --bisect --max-retries 3 --report report.html events.jsonl",
    .flags = flags,
    .ranges = ranges,
    .operand = "INPUT",
    .least = 1,
};

int sl_verb_replay(int argc, char **argv)
{
    int n, result;
    the.sets_report_failures = has_report_flag(argc, argv);
    sl_esm_settings_init(&the.settings);
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    if (is_doubly_sharded())
        return SL_EXIT_BAD;
    the.on_failure_mode = overwrite ? SL_FAILURES_OVERWRITE : SL_FAILURES_NEW;
    struct sl_inputs inputs = {.names = (const char *const *)argv + 1, .n = (size_t)n};
    the.arena = sl_arena_new(1024 * 1024);
    the.vars = sl_command_environment();
    result = sl_session_run(&the, &inputs);
    if (!sl_session_clean_up(&the) && result == SL_EXIT_OK)
        result = SL_EXIT_FAILED;
    return result;
}
