/* `sluice tail`: runs the handlers on a live stream, with a place for each shard in a checkpoint file. */
#include "live/lease/leases.h"
#include "live/sandbox/paths.h"
#include "cli/command.h"
#include "cli/session.h"
#include "live/source/live.h"
#include "live/source/places.h"
#include "cli/watch/watch.h"
#include "live/tail/drainer.h"
#include "live/tail/engine.h"
#include "live/tail/keeper_file.h"
#include "live/tail/worker_pipeline.h"
#include "live/tail/worker_sandbox.h"
#include "cli/verbs.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SANDBOXES 16 /* --concurrency's default */
#define MEMORY_MB 64
#define CLOSE_MS  600 /* told to stop, it ends within two seconds: see engine.c for the others */
#define KEEP_MS   300
#define DISK_MS   10000 /* nobody told it to stop: a slow disk has time */
#define LEASES_MS 800   /* places are written and leases given back over a network */
#define MB        ((size_t)1024 * 1024)

struct tail {
    struct sl_command command;
    const char *stream, *checkpoint, *from, *leases, *worker_id;
    bool is_once, is_in_process, trusts_plugins, follows;
    int64_t concurrency, memory_mb, lease_seconds;
    struct sl_guard *guard; /* with leases: of the sandboxes; NULL */
    struct sl_session session;
    const char *stream_arn;
    struct sl_live *live;
    struct sl_keeper keeper;
    bool has_keeper;
    struct sl_runner_options sandboxes;
    struct sl_worker_pipeline_options pipelines;
    struct sl_vars vars; /* of pipelines in this process */
    struct sl_worker *workers[SL_POOL_MAX];
    size_t n_workers;
    struct sl_pool *pool;
    const char *drain; /* on, off */
    struct sl_drainer_options draining;
    struct sl_drainer *drainer; /* NULL: there is nothing to drain */
    struct sl_vitals_board *board;
    const char *listen;
    bool is_per_shard, is_quiet;
    struct sl_watch *watch;
    struct sl_engine_result result;
    int bell;
};

/* ---- the stream ---- */

static enum sl_status check_usage(const struct tail *t, struct sl_error *error)
{
    if (!t->command.table && !t->stream)
        return sl_fail(error, SL_REJECT, "Usage",
                       "--table NAME or --stream ARN is missing (see sluice tail --help)");
    if (t->leases && t->checkpoint)
        return sl_fail(error, SL_REJECT, "Usage",
                       "--leases and --checkpoint: the places are kept in one of them");
    if (t->leases && t->is_once)
        return sl_fail(error, SL_REJECT, "Usage",
                       "--leases and --once: no worker knows when the others have handled what is theirs");
    if (!t->leases && (t->lease_seconds || t->worker_id))
        return sl_fail(error, SL_REJECT, "Usage", "%s needs --leases",
                       t->worker_id ? "--worker-id" : "--lease-seconds");
    if (strcmp(t->drain, "on") != 0 && strcmp(t->drain, "off") != 0)
        return sl_fail(error, SL_REJECT, "Usage", "--drain must be on or off, not \"%s\"", t->drain);
    if (strcmp(t->from, "oldest") != 0 && strcmp(t->from, "latest") != 0)
        return sl_fail(error, SL_REJECT, "Usage", "--from must be oldest or latest, not \"%s\"", t->from);
    return SL_OK;
}

/* arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/LABEL */
static const char *table_of(struct tail *t, const char *arn)
{
    const char *name = strstr(arn, ":table/"), *end = name ? strstr(name, "/stream/") : NULL;
    if (!end)
        return NULL;
    name += strlen(":table/");
    return sl_arena_copy(t->session.arena, sl_span(name, (size_t)(end - name)));
}

/* With --follow-new-stream what is left of the checkpoint's stream comes first. */
static enum sl_status find_stream(struct tail *t, struct sl_error *error)
{
    struct sl_places kept = {0};
    enum sl_status status = SL_OK;
    t->stream_arn = t->stream;
    if (!t->stream_arn)
        status = sl_live_find_stream(t->live, t->command.table, t->session.arena, &t->stream_arn, error);
    if (t->follows && t->checkpoint) {
        enum sl_status reading = sl_places_read(&kept, t->checkpoint, NULL, error);
        if (reading == SL_OK && kept.stream_arn) {
            t->stream_arn = sl_arena_copy(t->session.arena, sl_span_str(kept.stream_arn));
            status = SL_OK;
        }
        status = reading != SL_OK ? reading : status;
        sl_places_clean_up(&kept);
    }
    if (t->follows && !t->command.table && t->stream_arn)
        t->command.table = table_of(t, t->stream_arn);
    t->session.settings.stream_arn = t->stream_arn;
    return status;
}

static enum sl_status new_keeper(struct tail *t, struct sl_error *error)
{
    const struct sl_leases_options options = {.target = t->leases,
                                              .vars = &t->session.vars,
                                              .region = t->command.region,
                                              .endpoint = t->command.endpoint,
                                              .worker = t->worker_id,
                                              .seconds = t->lease_seconds};
    t->has_keeper = true;
    if (t->leases)
        return sl_leases_new(&options, &t->keeper, error);
    t->keeper = sl_keeper_file_new(t->checkpoint);
    return SL_OK;
}

static enum sl_status open_keeper(struct tail *t, struct sl_error *error)
{
    enum sl_status status = new_keeper(t, error);
    return status != SL_OK ? status : t->keeper.ops->open(t->keeper.self, t->stream_arn, t->bell, error);
}

/* ---- workers ---- */

/* The function is where its stream is, in this process as in a sandbox. */
static void make_vars(struct tail *t)
{
    struct sl_arena *arena = t->session.arena;
    const struct sl_function *identity = &t->session.identity;
    const struct sl_vars *outer = &t->session.vars;
    size_t n = 0;
    while (outer->list[n])
        n++;
    const char **list = sl_arena_zalloc(arena, (n + 3) * sizeof(*list));
    memcpy(list, outer->list, n * sizeof(*list));
    if (!sl_vars_get(outer, "AWS_REGION"))
        list[n++] = sl_arena_printf(arena, "AWS_REGION=%s", identity->region);
    if (!sl_vars_get(outer, "AWS_LAMBDA_FUNCTION_NAME"))
        list[n++] = sl_arena_printf(arena, "AWS_LAMBDA_FUNCTION_NAME=%s", identity->name);
    t->vars.list = list;
}

static enum sl_status make_pipelines(struct tail *t, struct sl_error *error)
{
    make_vars(t);
    t->pipelines = (struct sl_worker_pipeline_options){
        .config_path = t->session.config,
        .vars = &t->vars,
        .handler_path = sl_paths_folders(t->session.arena, t->session.handler_path, t->session.config),
        .function_name = t->session.identity.name,
        .function_arn = t->session.identity.arn,
        .timeout_ms = t->session.timeout_s * 1000,
    };
    t->n_workers = (size_t)(t->concurrency ? t->concurrency : sysconf(_SC_NPROCESSORS_ONLN));
    t->n_workers = t->n_workers < 1 ? 1 : t->n_workers > SL_POOL_MAX ? SL_POOL_MAX : t->n_workers;
    for (size_t i = 0; i < t->n_workers; i++)
        t->workers[i] = sl_worker_pipeline_new(i, &t->pipelines);
    return sl_worker_pipeline_check(t->session.config, &t->vars, t->trusts_plugins, t->leases != NULL, error);
}

static enum sl_status open_pool(struct tail *t, struct sl_error *error)
{
    enum sl_status status = sl_session_sandboxes(&t->session, &t->sandboxes, error);
    if (status != SL_OK)
        return status;
    t->sandboxes.sandbox.guard = t->guard;
    if (t->is_in_process) {
        status = make_pipelines(t, error);
    } else {
        t->n_workers = (size_t)(t->concurrency ? t->concurrency : SANDBOXES);
        for (size_t i = 0; i < t->n_workers; i++)
            t->workers[i] = sl_worker_sandbox_new(i, &t->sandboxes);
    }
    if (status != SL_OK)
        return status;
    t->pool = sl_pool_new(t->workers, t->n_workers, t->bell);
    return sl_pool_warm_up(t->pool, error);
}

/* ---- letters ---- */

/* Drains routes that are set aside, with a worker of its own. */
static enum sl_status open_drainer(struct tail *t, struct sl_error *error)
{
    if (strcmp(t->drain, "off") == 0)
        return SL_OK;
    t->draining = (struct sl_drainer_options){.config = t->session.config,
                                              .vars = t->is_in_process ? &t->vars : &t->session.vars,
                                              .timeout_s = t->session.timeout_s,
                                              .verb = "tail"};
    t->draining.worker = t->is_in_process ? sl_worker_pipeline_new(t->n_workers, &t->pipelines)
                                          : sl_worker_sandbox_new(t->n_workers, &t->sandboxes);
    return sl_drainer_start(&t->draining, &t->drainer, error);
}

/* ---- the run ---- */

/* Its threads begin when all else stands: the first snapshot says that the stream is read. */
static enum sl_status open_watch(struct tail *t, struct sl_error *error)
{
    t->board = sl_vitals_board_new();
    const struct sl_watch_options options = {.board = t->board,
                                             .vars = &t->session.vars,
                                             .listen = t->listen,
                                             .is_per_shard = t->is_per_shard,
                                             .is_quiet = t->is_quiet,
                                             .fd = STDERR_FILENO};
    enum sl_status status = sl_watch_start(&options, &t->watch, error);
    if (status == SL_OK && t->listen)
        fprintf(stderr, "sluice tail: metrics are at port %u of %.*s\n", sl_watch_port(t->watch),
                (int)(strrchr(t->listen, ':') - t->listen), t->listen);
    return status;
}

/* A stream may be silent for hours: that it is read has to be seen at once. */
static void say_begun(const struct tail *t)
{
    if (t->is_quiet)
        return;
    fprintf(stderr, "sluice tail: reads %s, ", t->stream_arn);
    if (t->leases)
        fprintf(stderr, "shared by %s\n", t->leases);
    else if (t->checkpoint)
        fprintf(stderr, "from where %s says, else from the %s record on\n", t->checkpoint, t->from);
    else
        fprintf(stderr, "from the %s record on; the next run goes on from there only with --checkpoint\n",
                t->from);
}

/* Pages come and go: their memory is used again, not given back and taken anew for each, and what is kept is
 * shared by the threads. */
static void set_up_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 4 * 1024 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 16 * 1024 * 1024);
    (void)mallopt(M_ARENA_MAX, 2);
}

static enum sl_status start(struct tail *t, struct sl_error *error)
{
    set_up_memory();
    t->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sl_command_heed_signals(t->bell, NULL);
    /* Before threads, and files that must not live longer than this process. */
    if (t->leases && !t->is_in_process && sl_guard_start(&t->guard, error) != SL_OK)
        return SL_REJECT;
    const struct sl_live_options live = {&t->session.vars, t->command.region, t->command.endpoint};
    if (check_usage(t, error) != SL_OK || sl_session_read_config(&t->session, error) != SL_OK ||
        sl_session_prepare(&t->session, error) != SL_OK || sl_live_open(&live, &t->live, error) != SL_OK ||
        find_stream(t, error) != SL_OK || open_keeper(t, error) != SL_OK)
        return SL_REJECT;
    if (sl_session_open_outputs(&t->session, error) != SL_OK || open_pool(t, error) != SL_OK ||
        open_drainer(t, error) != SL_OK || open_watch(t, error) != SL_OK)
        return SL_REJECT;
    say_begun(t);
    return SL_OK;
}

static void on_followed(void *self, const char *stream_arn)
{
    struct tail *t = self;
    t->session.settings.stream_arn = sl_arena_copy(t->session.arena, sl_span_str(stream_arn));
}

static void on_decided(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                       const struct sl_esm_decision *decision)
{
    sl_session_decided(&((struct tail *)self)->session, inv, result, decision);
}

static void on_discarded(void *self, const struct sl_esm_discard *discard)
{
    sl_session_discarded(&((struct tail *)self)->session, discard);
}

static void run(struct tail *t)
{
    const struct sl_engine_options options = {.live = t->live,
                                              .stream_arn = t->stream_arn,
                                              .table = t->command.table,
                                              .keeper = t->keeper,
                                              .pool = t->pool,
                                              .bell = t->bell,
                                              .stop = &sl_command_stop,
                                              .settings = &t->session.settings,
                                              .ttl_attribute = t->session.ttl_attribute,
                                              .memory_bytes = (size_t)t->memory_mb * MB,
                                              .is_once = t->is_once,
                                              .is_from_latest = strcmp(t->from, "latest") == 0,
                                              .follows = t->follows,
                                              .board = t->board,
                                              .self = t,
                                              .decided = on_decided,
                                              .discarded = on_discarded,
                                              .followed = on_followed};
    sl_engine_run(&options, &t->result);
    sl_watch_stop(t->watch);
}

static void print_summary(struct tail *t)
{
    struct sl_recording read = {.n = t->result.records};
    memcpy(read.by_event, t->result.by_event, sizeof(read.by_event));
    memcpy(read.removed_by, t->result.removed_by, sizeof(read.removed_by));
    struct sl_run_summary summary = {.recording = &read, .mapping = t->result.mapping, .is_real_time = true};
    summary.processes = sl_pool_stats(t->pool);
    summary.routes = sl_pool_routes(t->pool, &summary.n_routes);
    sl_run_summary_print(&summary, stdout);
    if (t->drainer) {
        const struct sl_drainer_facts drained = sl_drainer_facts(t->drainer);
        printf("letters         %8llu   drained, of %llu that were received\n",
               (unsigned long long)drained.done, (unsigned long long)drained.letters);
    }
    if (t->result.gaps)
        printf("gaps            %8u   records were gone before they could be read\n", t->result.gaps);
    if (t->result.unhandled)
        printf("not handled     %8zu   they are read again at the next start\n", t->result.unhandled);
}

static int exit_status(const struct tail *t, bool is_kept)
{
    const struct sl_engine_result *r = &t->result;
    if (r->has_failed && !r->has_begun)
        return SL_EXIT_BAD;
    bool has_lost = r->mapping.discarded || r->mapping.trimmed || r->gaps || r->unhandled;
    return r->has_failed || has_lost || !is_kept ? SL_EXIT_FAILED : SL_EXIT_OK;
}

static bool close_keeper(struct tail *t)
{
    struct sl_error error = SL_NO_ERROR;
    int64_t wait_ms = t->leases ? LEASES_MS : sl_command_stop ? KEEP_MS : DISK_MS;
    bool is_kept = !t->has_keeper || t->keeper.ops->close(t->keeper.self, wait_ms, &error) == SL_OK;
    t->has_keeper = false;
    if (!is_kept && error.text[0])
        fprintf(stderr, "sluice tail: %s\n", error.text);
    return is_kept;
}

static int finish(struct tail *t)
{
    bool is_kept = close_keeper(t);
    print_summary(t);
    is_kept = sl_session_close_trace(&t->session) && is_kept;
    return exit_status(t, is_kept);
}

/* What a thread still has cannot be freed: the process ends with it. */
static void clean_up(struct tail *t, int status)
{
    (void)close_keeper(t);
    bool is_drained = sl_drainer_stop(t->drainer, CLOSE_MS);
    if (!sl_pool_close(t->pool, CLOSE_MS) || !is_drained) {
        fflush(NULL);
        _exit(status);
    }
    if (t->is_in_process)
        sl_worker_pipeline_destroy(t->draining.worker);
    else
        sl_worker_sandbox_destroy(t->draining.worker);
    for (size_t i = 0; i < t->n_workers; i++) {
        if (t->is_in_process)
            sl_worker_pipeline_destroy(t->workers[i]);
        else
            sl_worker_sandbox_destroy(t->workers[i]);
    }
    sl_session_clean_up(&t->session);
    sl_live_close(t->live);
    sl_vitals_board_destroy(t->board);
    sl_guard_end(t->guard);
    sl_command_drop_bell();
    close(t->bell);
}

static struct tail the = {
    .from = "oldest",
    .drain = "on",
    .memory_mb = MEMORY_MB,
    .bell = -1,
    .session = {.verb = "tail", .config = "sluice.json", .timeout_s = 60, .is_quiet = true}};

static const struct sl_flag flags[] = {
    {"table", SL_FLAG_TEXT, &the.command.table, "NAME", "read the stream of this table"},
    {"stream", SL_FLAG_TEXT, &the.stream, "ARN", "read this stream"},
    {"config", SL_FLAG_TEXT, &the.session.config, "FILE", "the configuration (./sluice.json)"},
    {"region", SL_FLAG_REGION, &the.command.region, "REGION", "region of the table (AWS_REGION)"},
    {"endpoint-url", SL_FLAG_URL, &the.command.endpoint, "URL",
     "endpoint of DynamoDB Local, for example (AWS's)"},
    {"Where it begins and goes on", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"checkpoint", SL_FLAG_TEXT, &the.checkpoint, "FILE",
     "where to continue, and where the progress is saved"},
    {"from", SL_FLAG_TEXT, &the.from, "WHERE",
     "oldest or latest: where to begin without a checkpoint (oldest)"},
    {"once", SL_FLAG_BOOL, &the.is_once, NULL, "end when all records in the stream are handled"},
    {"follow-new-stream", SL_FLAG_BOOL, &the.follows, NULL,
     "when the table gets another stream: handle this one to its end, then that one"},
    {"leases", SL_FLAG_TEXT, &the.leases, "TARGET",
     "share the shards with other machines: places and owners are kept in this table, dynamodb://NAME"},
    {"lease-seconds", SL_FLAG_INTEGER, &the.lease_seconds, "S",
     "a worker that is silent for so long has lost its shards to others, 2 to 3600 (10)"},
    {"worker-id", SL_FLAG_TEXT, &the.worker_id, "NAME",
     "the beginning of this worker's name in the table (host name and pid)"},
    {"How it runs", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"concurrency", SL_FLAG_INTEGER, &the.concurrency, "N",
     "invocations at a time, 1 to 256 (16; with --in-process one a core)"},
    {"in-process", SL_FLAG_BOOL, &the.is_in_process, NULL,
     "run the built-in handlers in this process, without sandboxes: faster"},
    {"trust-plugins", SL_FLAG_BOOL, &the.trusts_plugins, NULL, "run plugins in this process, too"},
    {"handler-path", SL_FLAG_TEXT, &the.session.handler_path, "FOLDERS",
     "folders of plugins, separated by ':'"},
    {"timeout", SL_FLAG_INTEGER, &the.session.timeout_s, "S", "timeout of an invocation, 1 to 900 (60)"},
    {"memory", SL_FLAG_INTEGER, &the.memory_mb, "MB", "what is read and not handled yet may take (64)"},
    {"drain", SL_FLAG_TEXT, &the.drain, "ON|OFF", "apply what routes have set aside, beside the stream (on)"},
    {"The mapping, by AWS's names", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"batch-size", SL_FLAG_INTEGER, &the.session.settings.batch_size, "N", "BatchSize, 1 to 10000 (100)"},
    {"parallelization", SL_FLAG_INTEGER, &the.session.settings.parallelization, "N",
     "ParallelizationFactor, 1 to 10 (1)"},
    {"max-retries", SL_FLAG_INTEGER, &the.session.settings.max_retries, "N",
     "MaximumRetryAttempts, -1 to 10000 (-1: no limit)"},
    {"max-age", SL_FLAG_INTEGER, &the.session.settings.max_age_s, "S",
     "MaximumRecordAgeInSeconds, 60 to 604800 (-1: no limit)"},
    {"bisect", SL_FLAG_BOOL, &the.session.settings.bisect, NULL, "BisectBatchOnFunctionError"},
    {"report-failures", SL_FLAG_BOOL, &the.session.settings.report_failures, NULL,
     "ReportBatchItemFailures (on)"},
    {"filter", SL_FLAG_LIST, &the.session.filters, "PATTERN",
     "FilterCriteria: one pattern, as JSON; may be repeated"},
    {"on-failure", SL_FLAG_TEXT, &the.session.on_failure, "FILE",
     "OnFailure destination, as in sluice replay"},
    {"What is seen of it", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"listen", SL_FLAG_TEXT, &the.listen, "HOST:PORT", "serve /metrics, /health and /ready there"},
    {"per-shard", SL_FLAG_BOOL, &the.is_per_shard, NULL,
     "single shards in /metrics, also when more than 64 are open"},
    {"trace", SL_FLAG_TEXT, &the.session.trace, "FILE", "write one JSON line per invocation"},
    {"quiet", SL_FLAG_BOOL, &the.is_quiet, NULL, "print no lines about how far it is"},
    {0},
};

static const struct sl_flag_range ranges[] = {
    {"lease-seconds", 2, 3600}, {"concurrency", 1, SL_POOL_MAX}, {"batch-size", 1, 10000},
    {"parallelization", 1, 10}, {"max-retries", -1, 10000},      {"max-age", -1, 604800},
    {"timeout", 1, 900},        {"memory", 1, 1024 * 1024},      {0},
};

static const struct sl_usage usage = {
    .line = "tail [flags] --table NAME",
    .summary = "Reads a table's stream, in AWS or in DynamoDB Local, and runs the handlers on it as Lambda "
               "would: shard by shard, parents before children. Ctrl-C ends it within two seconds; it then "
               "prints a summary. Exit status: 0 all that was read is handled; 1 it is not, something was "
               "discarded or was gone before it could be read, or tail could not go on; 2 bad usage.",
    .example = "sluice tail --table orders --checkpoint place.json",
    .flags = flags,
    .ranges = ranges,
};

int sl_verb_tail(int argc, char **argv)
{
    int n, result;
    struct sl_error error = SL_NO_ERROR;
    sl_esm_settings_init(&the.session.settings);
    the.session.settings.invocation_ms = 0;
    the.session.on_failure_mode = SL_FAILURES_APPEND; /* of the runs before this one */
    the.session.settings.report_failures = the.session.sets_report_failures = true;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    the.session.arena = sl_arena_new(256 * 1024);
    the.session.vars = sl_command_environment();
    if (start(&the, &error) == SL_OK) {
        run(&the);
        result = finish(&the);
    } else {
        result = sl_flags_complain("tail", &error);
    }
    clean_up(&the, result);
    return result;
}
