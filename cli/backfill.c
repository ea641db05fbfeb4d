/* `sluice backfill`: brings the items that exist through the routes of a configuration. */
#include "data/backfill/backfill.h"

#include "base/span.h"
#include "handlers/pipeline/route.h"
#include "cli/backfill/checkpoint.h"
#include "cli/backfill/report.h"
#include "cli/backfill/restore.h"
#include "cli/command.h"
#include "cli/dry.h"
#include "live/source/consumer.h"
#include "live/source/inputs.h"
#include "cli/verbs.h"
#include "streams/record.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* A piece is given so long; one that needs longer is tried again. */
#define STEP_MS 60000
/* Without a durable piece for so long, the run ends. Everything up to the last checkpoint is kept. */
#define STUCK_MS (15 * 60 * 1000)
/* The checkpoint is replaced at most so often: each time takes two syncs. */
#define SAVE_MS 1000

struct backfill {
    struct sl_command command;

    /* flags */
    const char *export, *archive, *keys;
    const char *consumer, *consumer_since, *as_of, *function, *mapping, *checkpoint_path, *until, *temp;
    struct sl_flag_list route_list;
    bool *is_chosen; /* by --routes; NULL: all that can */
    bool verify_first, is_plan, is_unsafe, is_quiet;
    int64_t segments, read_units, write_units;
    char **inputs;
    size_t n_inputs;

    struct sl_source_options source_options;
    struct sl_source *source;
    struct sl_backfill *engine;
    struct sl_checkpoint checkpoint;
    struct sl_restore_job restore; /* with --until */
    struct sl_backfill_progress progress;
    int64_t since_ms, as_of_ms;
    int64_t saved_ms, moved_ms;
    uint64_t read_bytes; /* of the source, so far */
};

/* ---- flags ---- */

static enum sl_status usage_error(struct sl_error *error, const char *text)
{
    return sl_fail(error, SL_REJECT, "Usage", "%s (see sluice backfill --help)", text);
}

static enum sl_status read_time(const char *flag, const char *text, int64_t *ms, struct sl_error *error)
{
    int64_t ns, step;
    if (!text)
        return SL_OK;
    if (!sl_time_parse(sl_span_str(text), &ns, &step))
        return sl_fail(error, SL_REJECT, "Usage",
                       "--%s: expected a time like 2026-11-20T10:00:00Z, not \"%s\"", flag, text);
    *ms = ns / 1000000;
    return SL_OK;
}

static enum sl_status check_flags(struct backfill *b, struct sl_error *error)
{
    int sources = (b->export != NULL) + (b->command.table != NULL) + (b->archive != NULL) + (b->n_inputs > 0);
    if (b->until && (!b->archive || b->command.table || b->n_inputs || b->function || b->mapping || b->as_of))
        return usage_error(error, "--until needs --archive, and beside it --export or nothing");
    if (!b->until && b->temp)
        return usage_error(error, "--temp needs --until");
    if (sources != 1 && !b->until)
        return usage_error(error, sources ? "name one source: --export, --table, --archive or INPUT"
                                          : "a source is missing: --export, --table, --archive or INPUT");
    if ((b->segments > 1 || b->read_units) && !b->command.table)
        return usage_error(error, "--segments and --read-units need --table");
    if (b->verify_first && !b->export)
        return usage_error(error, "--verify-first needs --export");
    if ((b->function || b->mapping) + (b->consumer != NULL) + (b->consumer_since != NULL) > 1)
        return usage_error(error, "give --function or --mapping, or --consumer, or --consumer-since");
    if (b->export && !b->keys)
        return usage_error(
            error, "--export needs --keys PK,SK: an export does not say which attributes are the key");
    enum sl_status status = read_time("consumer-since", b->consumer_since, &b->since_ms, error);
    if (status == SL_OK)
        status = read_time("as-of", b->as_of, &b->as_of_ms, error);
    if (status == SL_OK)
        status = read_time("until", b->until, &b->restore.until_ms, error);
    if (status == SL_OK && b->keys)
        status = sl_source_keys_read(b->keys, &b->source_options.keys, error);
    const struct sl_inputs inputs = {.names = (const char *const *)b->inputs, .n = b->n_inputs};
    return status == SL_OK ? sl_inputs_check(&inputs, error) : status;
}

/* ---- opening ---- */

static const char *source_name(struct backfill *b)
{
    if (b->until)
        return sl_arena_printf(b->command.arena, "archive %s until %s%s%s", b->archive, b->until,
                               b->export ? " from export " : "", b->export ? b->export : "");
    return b->export          ? sl_arena_printf(b->command.arena, "export %s", b->export)
           : b->command.table ? sl_arena_printf(b->command.arena, "table %s in %d segments", b->command.table,
                                                (int)b->segments)
           : b->archive       ? sl_arena_printf(b->command.arena, "archive %s", b->archive)
                        : sl_arena_printf(b->command.arena, "%zu files from %s", b->n_inputs, b->inputs[0]);
}

static enum sl_status open_source(struct backfill *b, struct sl_error *error)
{
    const struct sl_call call = {.arena = b->command.arena,
                                 .deadline_ms = b->command.clock->now_ms(b->command.clock) + 10 * STEP_MS};
    const struct sl_source_options *options = &b->source_options;
    if (b->until) {
        const struct sl_source_files what = {.names = &b->restore.result, .n = 1};
        return sl_source_open_files(options, &what, &call, &b->source, error);
    }
    if (b->export) {
        const struct sl_source_export what = {.place = b->export, .verify_first = b->verify_first};
        return sl_source_open_export(options, &what, &call, &b->source, error);
    }
    if (b->command.table) {
        const struct sl_source_scan what = {.target = sl_command_table(&b->command),
                                            .n = (uint32_t)b->segments,
                                            .of = (uint32_t)b->segments,
                                            .read_units = (double)b->read_units};
        return sl_source_open_scan(options, &what, &call, &b->source, error);
    }
    if (b->archive)
        return sl_source_open_archive(options, &(struct sl_source_archive){.place = b->archive}, &call,
                                      &b->source, error);
    const struct sl_source_files what = {.names = (const char *const *)b->inputs, .n = b->n_inputs};
    return sl_source_open_files(options, &what, &call, &b->source, error);
}

static enum sl_status find_consumer(struct backfill *b, struct sl_error *error)
{
    char text[SL_TIME_BYTES];
    struct sl_consumer consumer;
    const struct sl_consumer_options options = {.vars = &b->command.vars,
                                                .log = &b->command.log,
                                                .function = b->function,
                                                .mapping = b->mapping,
                                                .region = b->command.region,
                                                .endpoint = b->command.endpoint,
                                                .table_arn = sl_source_facts(b->source)->table_arn};
    if (!b->function && !b->mapping && !b->consumer)
        return SL_OK;
    enum sl_status status = b->consumer ? sl_consumer_read(b->consumer, options.table_arn, &consumer, error)
                                        : sl_consumer_find(&options, b->command.arena, &consumer, error);
    if (status != SL_OK)
        return status;
    b->since_ms = consumer.since_ms;
    sl_time_text(consumer.since_ms * 1000000, text);
    fprintf(stderr, "sluice backfill: %s %s has missed nothing since %s\n",
            b->consumer ? "the consumer of" : "the mapping", b->consumer ? b->consumer : consumer.mapping,
            text);
    return SL_OK;
}

static struct sl_backfill_options engine_options(struct backfill *b)
{
    return (struct sl_backfill_options){.pipeline = b->command.pipeline,
                                        .source = b->source,
                                        .clock = b->command.clock,
                                        .is_chosen = b->is_chosen,
                                        .as_of_ms = b->as_of_ms,
                                        .consumer_since_ms = b->since_ms,
                                        .any_order = b->is_unsafe,
                                        .is_restore = b->until != NULL,
                                        .is_plan = b->is_plan,
                                        .write_units = (double)b->write_units};
}

/* "a,b" and several flags are the same. */
static enum sl_status choose_routes(struct backfill *b, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < b->route_list.n && status == SL_OK; i++)
        status = sl_route_choose(b->command.pipeline, sl_span_str(b->route_list.values[i]), b->command.arena,
                                 &b->is_chosen, error);
    return status;
}

static enum sl_status open_engine(struct backfill *b, struct sl_error *error)
{
    const struct sl_backfill_options options = engine_options(b);
    enum sl_status status = sl_backfill_open(&options, &b->engine, error);
    if (status == SL_OK && b->checkpoint.state.ptr) {
        status = sl_backfill_read_state(b->engine, b->checkpoint.state, error);
        sl_error_context(error, "%s", b->checkpoint_path);
    }
    return status;
}

static enum sl_status fold_archive(struct backfill *b, struct sl_error *error)
{
    struct sl_source_options options = b->source_options;
    options.place = sl_span(NULL, 0);
    b->restore.archive = b->archive;
    b->restore.export = b->export;
    b->restore.config = b->command.config;
    b->restore.temp = b->temp ? b->temp : sl_vars_or(&b->command.vars, "TMPDIR", "/tmp");
    b->restore.since_ms = b->since_ms;
    b->restore.options = &options;
    const struct sl_backfill_options engine = engine_options(b);
    if (sl_backfill_check_routes(&engine, error) != SL_OK)
        return SL_REJECT;
    if (!b->is_plan && !b->checkpoint.state.ptr)
        b->restore.pipeline = b->command.pipeline;
    b->restore.clock = b->command.clock;
    b->restore.arena = b->command.arena;
    b->restore.any_gap = b->is_unsafe;
    b->restore.verify_first = b->verify_first;
    b->restore.is_quiet = b->is_quiet;
    b->restore.is_stopped = &sl_command_stop;
    enum sl_status status = sl_restore_job_fold(&b->restore, error);
    return status == SL_OK ? sl_checkpoint_bind(&b->checkpoint, b->restore.digest, error) : status;
}

static enum sl_status open_all(struct backfill *b, struct sl_error *error)
{
    b->checkpoint = (struct sl_checkpoint){.path = b->checkpoint_path, .source = source_name(b)};
    enum sl_status status = sl_checkpoint_open(&b->checkpoint, b->command.arena, error);
    if (status == SL_OK)
        status = sl_command_open(&b->command, "sluice-backfill", b->is_plan ? &sl_dry_openers : NULL, error);
    if (status == SL_OK)
        status = choose_routes(b, error);
    if (status != SL_OK)
        return status;
    b->source_options.sinks = &b->command.sinks;
    b->source_options.ttl_attribute = sl_pipeline_ttl_attribute(b->command.pipeline);
    b->source_options.place = b->checkpoint.place;
    status = b->until ? fold_archive(b, error) : SL_OK;
    if (status != SL_OK || b->restore.is_empty)
        return status;
    status = open_source(b, error);
    if (status == SL_OK)
        status = find_consumer(b, error);
    if (status == SL_OK)
        status = open_engine(b, error);
    if (status == SL_OK && b->until && !b->is_plan && !b->checkpoint.state.ptr)
        status = sl_restore_job_begin(&b->restore, b->command.pipeline, error);
    return status;
}

/* ---- the plan ---- */

/* A look at the first records: nothing of them is written. `*is_all`: there are no more. */
static enum sl_status look(struct backfill *b, struct sl_backfill_sample *out, bool *is_all,
                           struct sl_error *error)
{
    enum sl_status status = SL_OK;
    bool is_last = false;
    while (status == SL_OK && !is_last && !out->records) {
        struct sl_arena *arena = sl_arena_new(1024 * 1024);
        struct sl_source_piece piece;
        const struct sl_call call = {.arena = arena,
                                     .deadline_ms = b->command.clock->now_ms(b->command.clock) + STEP_MS};
        status = sl_source_pull(b->source, SL_BACKFILL_PIECE_BYTES, &call, &piece, error);
        is_last = status == SL_OK && piece.is_last;
        for (size_t i = 0; status == SL_OK && i < piece.batch.n; i++) {
            uint64_t bytes = sl_record_computed_bytes(sl_batch_record(&piece.batch, i));
            out->item_bytes += bytes;
            out->units += sl_backfill_item_units(b->engine, bytes);
            out->records++;
        }
        sl_arena_destroy(arena);
    }
    *is_all = is_last;
    return status;
}

/* Before the first write. */
static int refused(struct backfill *b, struct sl_error *error)
{
    if (b->until)
        sl_restore_job_refused(&b->restore);
    return sl_flags_complain("backfill", error);
}

/* What stays on the disk is data. */
static void say_kept(const struct backfill *b)
{
    if (sl_restore_job_is_kept(&b->restore))
        fprintf(stderr,
                "sluice backfill: restore: the items are kept for the run in %s (mode 0700); they hold the "
                "table's values: remove the folder if there will be no run\n",
                b->restore.folder);
}

static int print_plan(struct backfill *b, struct sl_error *error)
{
    bool is_all;
    struct sl_source_facts facts = *sl_source_facts(b->source);
    struct sl_backfill_plan plan = {.facts = &facts,
                                    .read_units = (double)b->read_units,
                                    .write_units = (double)b->write_units,
                                    .reads_table = b->command.table != NULL};
    if (look(b, &plan.sample, &is_all, error) != SL_OK)
        return refused(b, error);
    if (b->until)
        facts.items = b->restore.items;
    else if (is_all)
        facts.items = plan.sample.records;
    sl_backfill_print_plan(&plan, stdout);
    const struct sl_backfill_report *r = sl_backfill_report(b->engine);
    for (size_t i = 0; i < r->n_routes; i++)
        if (!r->routes[i].left_out)
            printf("route %s takes part\n", r->routes[i].name);
    sl_backfill_print_routes(b->engine, stdout);
    enum sl_status status = sl_backfill_check(b->engine, error);
    printf("preconditions    %s%s\n",
           status == SL_OK ? "hold" : "do not hold: ", status == SL_OK ? "" : error->text);
    printf("nothing was written\n");
    if (b->until && status == SL_OK)
        say_kept(b);
    else if (b->until)
        sl_restore_job_refused(&b->restore);
    return status == SL_OK ? SL_EXIT_OK : SL_EXIT_FAILED;
}

/* ---- the run ---- */

static enum sl_status save(struct backfill *b, bool at_once, struct sl_error *error)
{
    struct sl_buffer state;
    int64_t now = b->command.clock->now_ms(b->command.clock);
    if (!b->checkpoint_path || (!at_once && now - b->saved_ms < SAVE_MS) ||
        !sl_backfill_report(b->engine)->place.ptr)
        return SL_OK;
    b->saved_ms = now;
    sl_buffer_init(&state, SL_BACKFILL_STATE_BYTES);
    sl_backfill_write_state(b->engine, &state);
    enum sl_status status = state.failed ? sl_fail(error, SL_FATAL, "CheckpointNotSaved",
                                                   "%s: the progress has more than %zu bytes",
                                                   b->checkpoint_path, SL_BACKFILL_STATE_BYTES)
                                         : sl_checkpoint_save(&b->checkpoint, sl_buffer_span(&state), error);
    sl_buffer_clean_up(&state);
    return status;
}

/* The target or the source failed for now. Said once for each kind of trouble, and then every minute. */
static enum sl_status take_trouble(struct backfill *b, const struct sl_error *why, struct sl_error *error)
{
    static char last[SL_ERROR_CODE_BYTES];
    static int64_t said_ms;
    int64_t now = b->command.clock->now_ms(b->command.clock);
    if (now - b->moved_ms > STUCK_MS)
        return sl_fail(error, SL_FATAL, why->code, "nothing was done for %d minutes: %s", STUCK_MS / 60000,
                       why->text);
    if (strcmp(last, why->code) != 0 || now - said_ms > 60000) {
        snprintf(last, sizeof(last), "%s", why->code);
        said_ms = now;
        fprintf(stderr, "sluice backfill: slows down: %s: %s\n", why->code, why->text);
    }
    return SL_OK;
}

/* Something was written, or at least read. A wait is neither: while a target fails there are waits, too. A
 * source that gives nothing until the deadline is no failure of the step, but one of many steps. */
static enum sl_status note_progress(struct backfill *b, const struct sl_backfill_step *step,
                                    struct sl_error *error)
{
    uint64_t read_bytes = sl_backfill_report(b->engine)->stored_bytes;
    int64_t now = b->command.clock->now_ms(b->command.clock);
    if (step->has_moved || read_bytes != b->read_bytes)
        b->moved_ms = now;
    b->read_bytes = read_bytes;
    if (step->wait_ms || now - b->moved_ms <= STUCK_MS)
        return SL_OK;
    return sl_fail(error, SL_FATAL, "NothingDone", "%s: gave nothing for %d minutes",
                   sl_source_facts(b->source)->name, STUCK_MS / 60000);
}

static enum sl_status one_step(struct backfill *b, bool *is_done, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    struct sl_backfill_step step;
    enum sl_status status =
        sl_backfill_step(b->engine, b->command.clock->now_ms(b->command.clock) + STEP_MS, &step, &why);
    if (status == SL_OK)
        status = note_progress(b, &step, &why);
    if (status == SL_RETRY)
        status = take_trouble(b, &why, error);
    else if (status != SL_OK)
        return sl_fail(error, status, why.code, "%s", why.text);
    *is_done = b->checkpoint.is_done = step.is_done;
    if (status == SL_OK)
        status = save(b, *is_done, error);
    if (status == SL_OK && step.wait_ms)
        sl_command_wait(step.wait_ms);
    return status;
}

static void begin_progress(struct backfill *b)
{
    const struct sl_backfill_report *r = sl_backfill_report(b->engine);
    int64_t now = b->command.clock->now_ms(b->command.clock);
    b->progress = (struct sl_backfill_progress){.clock = b->command.clock,
                                                .facts = sl_source_facts(b->source),
                                                .began_ms = now,
                                                .began_records = r->records,
                                                .is_quiet = b->is_quiet};
    b->moved_ms = now;
    if (b->checkpoint.is_done)
        fprintf(stderr,
                "sluice backfill: %s is of a run that is done, and nothing is left of it; to run again, name "
                "another file\n",
                b->checkpoint_path);
    else if (r->records)
        fprintf(stderr, "sluice backfill: goes on after %llu records\n", (unsigned long long)r->records);
}

static const char *advice(const struct backfill *b)
{
    return b->checkpoint_path
               ? "the same command goes on from the checkpoint"
               : "without a --checkpoint it begins anew; what is there already is not written again";
}

static int run(struct backfill *b, struct sl_error *error)
{
    bool is_done = false;
    enum sl_status status = SL_OK;
    sl_backfill_print_routes(b->engine, stderr);
    if (b->is_unsafe)
        fprintf(stderr,
                "sluice backfill: --unsafe-order: deleted items may come back; run `sluice verify` after "
                "it\n");
    begin_progress(b);
    while (!is_done && !sl_command_stop && status == SL_OK) {
        status = one_step(b, &is_done, error);
        sl_backfill_say_progress(&b->progress, b->engine, stderr);
    }
    struct sl_error unsaved = SL_NO_ERROR;
    enum sl_status last = save(b, true, &unsaved);
    bool is_whole = sl_backfill_print_end(b->engine, b->progress.facts, is_done, stdout);
    if (status != SL_OK || last != SL_OK)
        (void)sl_flags_complain("backfill", status != SL_OK ? error : &unsaved);
    if (!is_done)
        fprintf(stderr, "sluice backfill: not done; %s\n", advice(b));
    if (!is_done && b->until)
        say_kept(b);
    if (is_done && b->until && status == SL_OK && last == SL_OK)
        sl_restore_job_done(&b->restore);
    return is_done && is_whole && status == SL_OK && last == SL_OK ? SL_EXIT_OK : SL_EXIT_FAILED;
}

/* The table had no item at the moment of a restore. */
static int end_empty(struct backfill *b)
{
    printf("items %-10d the table had none\n", 0);
    sl_restore_job_done(&b->restore);
    return SL_EXIT_OK;
}

/* ---- the verb ---- */

static void clean_up(struct backfill *b)
{
    sl_backfill_close(b->engine);
    sl_source_close(b->source);
    sl_command_end(&b->command);
}

static struct backfill the = {.command = {.verb = "backfill", .config = "sluice.json"}, .segments = 1};

static const struct sl_flag flags[] = {
    {"Where the items come from", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"export", SL_FLAG_TEXT, &the.export, "PLACE",
     "a full export of the table: its folder, or s3://bucket/.../AWSDynamoDB/ID/"},
    {"table", SL_FLAG_TEXT, &the.command.table, "NAME",
     "the table itself: a name, or a target like dynamodb://NAME"},
    {"archive", SL_FLAG_TEXT, &the.archive, "PLACE",
     "what the handler archive wrote in format record: a folder, or s3://bucket/prefix/"},
    {"keys", SL_FLAG_TEXT, &the.keys, "PK,SK",
     "the table's key attributes, where the source does not say them"},
    {"What is done with them", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"config", SL_FLAG_TEXT, &the.command.config, "FILE", "the configuration (./sluice.json)"},
    {"routes", SL_FLAG_LIST, &the.route_list, "A,B",
     "these routes alone (all that can be backfilled); may be repeated"},
    {"plan", SL_FLAG_BOOL, &the.is_plan, NULL,
     "print items, units, money, time and preconditions; write nothing"},
    {"checkpoint", SL_FLAG_TEXT, &the.checkpoint_path, "FILE",
     "where to go on, and where the progress is saved"},
    {"write-units", SL_FLAG_INTEGER, &the.write_units, "N", "at most so many write units a second"},
    {"read-units", SL_FLAG_INTEGER, &the.read_units, "N", "of --table: at most so many read units a second"},
    {"segments", SL_FLAG_INTEGER, &the.segments, "N",
     "of --table: segments that are read at the same time (1)"},
    {"verify-first", SL_FLAG_BOOL, &the.verify_first, NULL,
     "of --export: read and check all files before the first write"},
    {"quiet", SL_FLAG_BOOL, &the.is_quiet, NULL, "no lines of progress"},
    {"Whether it is safe", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"function", SL_FLAG_TEXT, &the.function, "NAME",
     "the consumer: its event source mapping says since when it has missed nothing"},
    {"mapping", SL_FLAG_TEXT, &the.mapping, "UUID", "the same, by the mapping itself"},
    {"consumer", SL_FLAG_TEXT, &the.consumer, "FILE", "the same of a sluice tail, by its checkpoint file"},
    {"consumer-since", SL_FLAG_TEXT, &the.consumer_since, "TIME",
     "since when the consumer has missed nothing, if you know"},
    {"as-of", SL_FLAG_TEXT, &the.as_of, "TIME", "the time of the items, where the source does not say it"},
    {"unsafe-order", SL_FLAG_BOOL, &the.is_unsafe, NULL,
     "run although deleted items may come back (verify afterwards)"},
    {"A table as it was", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"until", SL_FLAG_TEXT, &the.until, "TIME",
     "of --archive: restore the table as it was at that second, into an empty table; --export is what the "
     "archive continues"},
    {"temp", SL_FLAG_TEXT, &the.temp, "FOLDER",
     "of --until: for temporary files, twice the archive's size uncompressed (TMPDIR, or /tmp)"},
    {"Where", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"region", SL_FLAG_REGION, &the.command.region, "REGION",
     "Region of the table and of the function (AWS_REGION)"},
    {"endpoint-url", SL_FLAG_URL, &the.command.endpoint, "URL",
     "endpoint of the table and of Lambda (AWS's)"},
    {"handler-path", SL_FLAG_TEXT, &the.command.handler_path, "FOLDERS",
     "folders of plugins, separated by ':' (handlers/ beside the configuration)"},
    {.type = SL_FLAG_END},
};

static const struct sl_flag_range ranges[] = {
    {"segments", 1, 1024}, {"read-units", 1, 1000000000}, {"write-units", 1, 1000000000}, {0}};

static const struct sl_usage usage = {
    .line = "backfill [flags] [INPUT...]",
    .summary = "Brings the items that exist through the routes of a configuration that follow from the items "
               "alone, beside the running stream: from an export, from the table, from an archive, or from "
               "what `sluice replay` reads. It may be killed at any moment, and goes on from its checkpoint. "
               "Exit status: 0 all done, 1 not done, 2 bad usage or input; nothing was written.",
    .example = "sluice backfill --table orders --function consumer --plan",
    .flags = flags,
    .ranges = ranges,
    .operand = "INPUT",
};

int sl_verb_backfill(int argc, char **argv)
{
    int n, result;
    struct sl_error error = SL_NO_ERROR;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    the.inputs = argv + 1;
    the.n_inputs = (size_t)n;
    sl_command_begin(&the.command);
    the.command.log.no_metrics = true;
    sl_command_heed_signals(-1, NULL);
    if (check_flags(&the, &error) != SL_OK || open_all(&the, &error) != SL_OK)
        result = refused(&the, &error);
    else if (the.restore.is_empty)
        result = end_empty(&the);
    else
        result = the.is_plan ? print_plan(&the, &error) : run(&the, &error);
    clean_up(&the);
    return result;
}
