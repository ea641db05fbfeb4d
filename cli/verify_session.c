/* Opening, running and ending a verification. */
#include "base/array.h"
#include "base/disk.h"
#include "base/json_write.h"
#include "handlers/pipeline/route.h"
#include "live/source/input.h"
#include "cli/verify_session.h"
#include "cli/verify/archives.h"
#include "cli/verify/cost.h"
#include "cli/verify/openers.h"
#include "streams/when/when.h"
#include "data/verify/source.h"
#include "data/verify/totals.h"
#include "data/verify/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STOPPED_S        60    /* a consumer that runs is seconds behind */
#define STEP_MS          60000 /* for what one step reads */
#define SAVE_MS          5000
#define RETRIES          20 /* steps in a row that could not read */
#define RETRY_MS         3000
#define CHECKPOINT_BYTES ((size_t)256 * 1024 * 1024) /* 50,000 suspects with keys of 3 KB */

/* A table is verified in so many segments: one for so many bytes, within limits. */
#define SEGMENT_BYTES ((uint64_t)256 * 1024 * 1024)
#define SEGMENTS_MIN  4
#define SEGMENTS_MAX  4096

/* --max-lag is not given. */
#define NO_LAG INT64_MIN

static struct sl_call call_of(const struct sl_verify_session *v)
{
    struct sl_clock *clock = sl_clock_system();
    return (struct sl_call){.arena = v->command.arena, .deadline_ms = clock->now_ms(clock) + STEP_MS};
}

/* ---- what is given ---- */

#define USAGE(error, ...) sl_fail(error, SL_REJECT, "Usage", __VA_ARGS__)

static enum sl_status choose_routes(struct sl_verify_session *v, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    bool *chosen = NULL;
    if (sl_route_choose(v->command.pipeline, sl_span_str(v->routes), v->command.arena, &chosen, &why) !=
        SL_OK)
        return USAGE(error, "--routes: %s (%s)", why.text, v->command.config);
    v->options.is_chosen = chosen;
    return SL_OK;
}

/* N/M: N segments of M, which ones goes by the date: M/N days cover the table. */
static enum sl_status read_sample(struct sl_verify_session *v, struct sl_error *error)
{
    struct sl_clock *clock = sl_clock_system();
    char *end = NULL;
    int64_t n = strtoll(v->sample, &end, 10), of = *end == '/' ? strtoll(end + 1, &end, 10) : 0;
    if (n < 1 || of < n || of > SL_TABLE_SEGMENTS_MAX || *end)
        return USAGE(error, "--sample must be N/M, with 1 <= N <= M <= 1000000, not \"%s\"", v->sample);
    int64_t day = clock->wall_ns(clock) / 86400 / 1000000000;
    v->options.segments = (uint32_t)of;
    v->options.n = (uint32_t)n;
    v->options.first = (uint32_t)(day * n % of);
    return SL_OK;
}

static enum sl_status choose_segments(struct sl_verify_session *v, struct sl_error *error)
{
    uint64_t n = v->ground.facts.bytes / SEGMENT_BYTES;
    if (v->sample)
        return read_sample(v, error);
    n = n < SEGMENTS_MIN ? SEGMENTS_MIN : n > SEGMENTS_MAX ? SEGMENTS_MAX : n;
    if (v->segments)
        n = (uint64_t)v->segments;
    v->options.segments = v->options.n = (uint32_t)n;
    return SL_OK;
}

static const struct sl_span *spans_of(struct sl_verify_session *v, const struct sl_flag_list *list,
                                      struct sl_span more, size_t *n)
{
    struct sl_span *spans = sl_arena_alloc(v->command.arena, (list->n + 1) * sizeof(*spans));
    *n = 0;
    for (size_t i = 0; i < list->n; i++)
        spans[(*n)++] = sl_span_str(list->values[i]);
    if (more.ptr)
        spans[(*n)++] = more;
    return spans;
}

static enum sl_status read_match(struct sl_verify_session *v, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    struct sl_when *match = NULL;
    if (v->match && sl_pattern_compile(sl_span_str(v->match), v->command.arena, &match, &why) != SL_OK)
        return USAGE(error, "--match: %s", why.text);
    v->options.match = match;
    return SL_OK;
}

static enum sl_status check_usage(const struct sl_verify_session *v, struct sl_error *error)
{
    if (!v->command.table)
        return USAGE(error, "--table NAME is missing: the table that the routes follow");
    if (v->sample && v->segments)
        return USAGE(error, "--sample says the number of segments, so --segments cannot");
    return SL_OK;
}

/* ---- opening ---- */

enum sl_status sl_verify_session_pipeline(struct sl_verify_session *v, struct sl_error *error)
{
    sl_command_begin(&v->command);
    return sl_command_open(&v->command, v->command.verb, v->end ? NULL : &sl_verify_openers, error);
}

static const char *table_flag(struct sl_verify_session *v)
{
    return sl_arena_printf(v->command.arena, "--table %s", v->command.table);
}

static enum sl_status open_source(struct sl_verify_session *v, struct sl_error *error)
{
    struct sl_call call = call_of(v);
    return sl_verify_ground_open(&v->ground, &v->command.sinks, sl_span_str(sl_command_table(&v->command)),
                                 table_flag(v), &v->options, &call, error);
}

static size_t place_of(const struct sl_verify_session *v, const char *route)
{
    size_t i = 0;
    while (strcmp(sl_verify_route(v->work, i)->name, route) != 0)
        i++;
    return i;
}

/* Items that were named are the user's word. */
static bool is_trusted(struct sl_verify_session *v, const char *route)
{
    size_t at = place_of(v, route);
    uint64_t items = sl_verify_progress(v->work).items;
    struct sl_call call = call_of(v);
    if (v->wrong_table.code[0] || v->options.only_items || v->is_trusted[at])
        return !v->wrong_table.code[0];
    v->is_trusted[at] = !sl_verify_is_doubtful(sl_route_find(v->command.pipeline, sl_span_str(route)), items,
                                               sl_verify_route(v->work, at)->equal, &call);
    if (!v->is_trusted[at])
        (void)sl_fail(
            &v->wrong_table, SL_REJECT, "NothingEqual",
            "%s: %llu items of --table %s were read, and not one has an equal row: give the table "
            "that the route follows; if it is the right one, run sluice backfill, or name the items "
            "(--item, or the findings of sluice verify --json)",
            route, (unsigned long long)items, v->command.table);
    return v->is_trusted[at];
}

static void warn_at_first(struct sl_verify_session *v)
{
    if (v->is_plan)
        return;
    if (v->max_lag_s == NO_LAG && v->consumers.n == 0)
        fprintf(stderr,
                "sluice %s: add --consumer FILE (the checkpoint of sluice tail) or --max-lag S; until then "
                "differences stay pending\n",
                v->command.verb);
    int64_t through_ms = sl_consumers_through(&v->progress);
    int64_t behind_s = (v->command.clock->wall_ns(v->command.clock) / 1000000 - through_ms) / 1000;
    char time[SL_TIME_BYTES];
    if (v->consumers.n == 0 || !through_ms || behind_s < STOPPED_S)
        return;
    sl_time_text(through_ms * 1000000, time);
    fprintf(stderr,
            "sluice %s: the consumer stands at %s, %lld s ago (--consumer %s). If it is stopped, start it: "
            "what differs waits for it, %lld s at most (--wait), and is then pending\n",
            v->command.verb, time, (long long)behind_s, v->consumers.values[0], (long long)v->wait_s);
}

/* The same, said at the end of a verification. */
static void warn_of_nothing_equal(const struct sl_verify_session *v)
{
    for (size_t i = 0; i < sl_verify_routes(v->work); i++) {
        const struct sl_verify_route *r = sl_verify_route(v->work, i);
        if (r->equal == 0 && r->different + r->pending > 1 && !v->options.only_items && !v->found)
            fprintf(stderr,
                    "sluice %s: %s: not one row is equal: is --table %s the table that the route follows?\n",
                    v->command.verb, r->name, v->command.table);
    }
}

static void on_found(void *arg, const struct sl_finding *finding, struct sl_span line)
{
    struct sl_verify_session *v = arg;
    if (v->found && finding->result == SL_FINDING_DIFFERENT && !is_trusted(v, finding->route))
        return;
    if (v->found)
        v->found(v, finding);
    else
        sl_report_found(&v->report, finding, line);
}

static int64_t on_through(void *arg)
{
    return sl_consumers_through(&((struct sl_verify_session *)arg)->progress);
}

static int64_t on_settled(void *arg, const char *route)
{
    return sl_outstanding_settled_ms(((struct sl_verify_session *)arg)->outstanding, route);
}

static enum sl_status check_source(struct sl_verify_session *v, struct sl_error *error)
{
    const struct sl_verify_source source = {.what = table_flag(v),
                                            .url = sl_span_str(sl_command_table(&v->command)),
                                            .facts = &v->ground.facts,
                                            .is_chosen = v->options.is_chosen};
    struct sl_call call = call_of(v);
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = sl_verify_check_source(&source, v->command.pipeline, &call, error);
    if (status != SL_OK || sl_verify_check_ledgers(&source, v->command.pipeline, &call, &why) == SL_OK)
        return status;
    if (v->found)
        return sl_fail(error, SL_REJECT, why.code, "%s", why.text);
    fprintf(stderr, "sluice %s: %s\n", v->command.verb, why.text);
    return SL_OK;
}

static enum sl_status prepare(struct sl_verify_session *v, struct sl_error *error)
{
    struct sl_verify_options *o = &v->options;
    v->progress = (struct sl_consumers){.clock = sl_clock_system(),
                                        .files = v->consumers.values,
                                        .n_files = v->consumers.n,
                                        .max_lag_s = v->max_lag_s,
                                        .stream = v->ground.facts.stream_arn};
    o->pipeline = v->command.pipeline;
    o->sinks = &v->command.sinks;
    o->shows_values = v->shows_values;
    o->wait_ms = v->wait_s * 1000;
    o->only_items = v->only_items || v->items.n > 0;
    o->ttl_attributes =
        spans_of(v, &v->ttl, sl_pipeline_ttl_attribute(v->command.pipeline), &o->n_ttl_attributes);
    o->ignored = spans_of(v, &v->ignored, sl_span(NULL, 0), &o->n_ignored);
    o->through_ms = on_through;
    o->settled_ms = on_settled;
    o->found = on_found;
    o->arg = v;
    v->report.is_json = v->is_json;
    v->report.is_quiet = v->is_quiet;
    v->report.verb = v->command.verb;
    enum sl_status status = choose_routes(v, error);
    if (status == SL_OK)
        status = sl_outstanding_open(v->command.pipeline, o->is_chosen, &v->outstanding, error);
    status = status == SL_OK ? check_source(v, error) : status;
    status = status == SL_OK ? choose_segments(v, error) : status;
    status = status == SL_OK ? read_match(v, error) : status;
    return status == SL_OK ? sl_consumers_check(&v->progress, error) : status;
}

/* An item that is nowhere is equal everywhere: more often its key is mistyped. */
static void warn_of_no_item(struct sl_verify_session *v, const char *key)
{
    const struct sl_table_op op = {.verb = SL_TABLE_GET, .key = sl_span_str(key)};
    struct sl_result result = {.status = SL_OK};
    struct sl_call call = call_of(v);
    v->ground.source->apply(v->ground.source, &op, 1, &result, &call);
    if (result.status == SL_OK && !result.item.ptr)
        fprintf(
            stderr,
            "sluice %s: --item %s: %s has no such item; if that is not what you expect, look at the key's "
            "letters, and at its types (S or N)\n",
            v->command.verb, key, v->command.table);
}

static enum sl_status add_item(struct sl_verify_session *v, const char *key, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = sl_verify_item(v->work, NULL, sl_span_str(key), &why);
    if (status == SL_OK)
        warn_of_no_item(v, key);
    else
        (void)sl_fail(error, status, why.code,
                      "--item %s: %s; write the whole key as DynamoDB's JSON, as {\"PK\":{\"S\":\"a\"}}", key,
                      why.text);
    return status;
}

static enum sl_status begin(struct sl_verify_session *v, struct sl_error *error)
{
    struct sl_span place = {NULL, 0};
    enum sl_status status = SL_OK;
    if (v->checkpoint && access(v->checkpoint, F_OK) == 0)
        status = sl_input_load(v->checkpoint, v->command.arena, &place, error);
    if (status == SL_OK)
        status = sl_verify_open(&v->options, place, &v->work, error);
    if (place.ptr)
        sl_error_context(error, "--checkpoint %s", v->checkpoint);
    else
        sl_error_context(error, "%s", v->command.table);
    for (size_t i = 0; i < v->items.n && status == SL_OK; i++) {
        status = add_item(v, v->items.values[i], error);
    }
    return status == SL_OK && v->begun ? v->begun(v, error) : status;
}

/* ---- running ---- */

static enum sl_status save(struct sl_verify_session *v, struct sl_error *error)
{
    struct sl_buffer text;
    if (!v->checkpoint)
        return SL_OK;
    sl_buffer_init(&text, CHECKPOINT_BYTES);
    sl_verify_place(v->work, &text);
    int err = text.failed ? EFBIG : sl_disk_replace_path(v->checkpoint, sl_buffer_span(&text));
    sl_buffer_clean_up(&text);
    return err ? sl_fail(error, SL_FATAL, "CannotWrite", "--checkpoint %s: cannot be written: %s",
                         v->checkpoint, strerror(err))
               : SL_OK;
}

/* Waits until what was consumed is within the budget. */
static void pace(struct sl_verify_session *v)
{
    struct sl_clock *clock = sl_clock_system();
    sl_budget_use(&v->budget, v->ground.units.read - v->paid_units);
    v->paid_units = v->ground.units.read;
    while (!sl_command_stop && sl_budget_wait_ms(&v->budget, clock->now_ms(clock)) > 0)
        clock->sleep_ms(clock, 100);
}

static enum sl_status step(struct sl_verify_session *v, unsigned *failures, struct sl_error *error)
{
    struct sl_clock *clock = sl_clock_system();
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = sl_verify_step(v->work, clock->now_ms(clock) + STEP_MS, &why);
    *failures = status == SL_RETRY ? *failures + 1 : 0;
    if (status != SL_RETRY || *failures == RETRIES)
        return status == SL_OK ? SL_OK : sl_fail(error, status, why.code, "%s", why.text);
    fprintf(stderr, "sluice %s: %s; trying again\n", v->command.verb, why.text);
    clock->sleep_ms(clock, RETRY_MS);
    return SL_OK;
}

static enum sl_status run(struct sl_verify_session *v, struct sl_error *error)
{
    struct sl_clock *clock = sl_clock_system();
    unsigned failures = 0;
    enum sl_status status = SL_OK;
    v->saved_ms = clock->now_ms(clock);
    sl_budget_init(&v->budget, (double)v->read_units, v->saved_ms);
    v->is_trusted = sl_arena_zalloc(v->command.arena, sl_verify_routes(v->work) + 1);
    while (status == SL_OK && !sl_command_stop && !sl_verify_progress(v->work).is_done) {
        status = step(v, &failures, error);
        if (v->wrong_table.code[0])
            return sl_fail(error, SL_REJECT, v->wrong_table.code, "%s", v->wrong_table.text);
        sl_report_progress(&v->report, v->work, clock->now_ms(clock));
        pace(v);
        if (status == SL_OK && clock->now_ms(clock) - v->saved_ms > SAVE_MS) {
            status = save(v, error);
            v->saved_ms = clock->now_ms(clock);
        }
    }
    if (status == SL_OK && sl_command_stop)
        status = save(v, error);
    return status;
}

/* ---- totals and archives ---- */

static void on_total(void *arg, struct sl_span line)
{
    struct sl_verify_session *v = arg;
    if (v->total)
        v->total(v, line);
    else
        sl_report_line(&v->report, line);
}

static bool on_page(void *arg)
{
    struct sl_verify_session *v = arg;
    pace(v);
    return sl_command_stop;
}

static enum sl_status run_totals(struct sl_verify_session *v, struct sl_error *error)
{
    bool is_part = v->sample || v->match || v->options.only_items;
    const struct sl_totals_options options = {.pipeline = v->command.pipeline,
                                              .sinks = &v->command.sinks,
                                              .is_chosen = v->options.is_chosen,
                                              .found = on_total,
                                              .is_stopped = on_page,
                                              .arg = v};
    if (!v->with_totals || is_part || sl_command_stop)
        return SL_OK;
    return sl_totals_verify(&options, &v->report.totals, error);
}

static enum sl_status run_archives(struct sl_verify_session *v, struct sl_error *error)
{
    const struct sl_archives_options options = {.pipeline = v->command.pipeline,
                                                .clock = sl_clock_system(),
                                                .is_chosen = v->options.is_chosen,
                                                .temp = v->temp,
                                                .is_stopped = on_page,
                                                .arg = v};
    return v->with_archives && !sl_command_stop ? sl_archives_verify(&options, &v->report, error) : SL_OK;
}

/* ---- letters ---- */

/* What is equal is proven only if nothing waits that may change it. */
static void settle_letters(struct sl_verify_session *v)
{
    if (sl_command_stop || sl_outstanding_settle(v->outstanding, &sl_command_stop, &v->letters))
        return;
    sl_report_letters(&v->report, v->letters.route, v->letters.letters, v->letters.why);
}

/* ---- the end ---- */

static int exit_status(const struct sl_verify_session *v, bool is_whole)
{
    const struct sl_chain_counts *archives = &v->report.archives;
    uint64_t different = v->report.totals.different + archives->gaps + archives->damaged;
    uint64_t unproven =
        !is_whole + v->report.totals.unsettled + archives->without_images + (v->letters.route != NULL);
    bool any = false;
    for (size_t i = 0; i < sl_verify_routes(v->work); i++) {
        const struct sl_verify_route *r = sl_verify_route(v->work, i);
        different += r->different;
        bool is_archive = v->with_archives && sl_builtin_named(r->handler)->makes == SL_MAKES_OBJECTS;
        unproven += r->pending + r->unsettled + r->not_comparable + (r->reason && v->routes && !is_archive);
        any = any || !r->reason || is_archive;
    }
    if (archives->unreadable && !different)
        return SL_EXIT_UNREADABLE;
    return different ? SL_EXIT_FAILED : unproven || !any ? SL_EXIT_UNPROVEN : SL_EXIT_OK;
}

static int finish(struct sl_verify_session *v)
{
    bool is_whole = !sl_command_stop;
    settle_letters(v);
    int result = exit_status(v, is_whole);
    sl_report_end(&v->report, v->work);
    warn_of_nothing_equal(v);
    if (v->end)
        result = v->end(v, is_whole);
    if (!is_whole)
        fprintf(stderr, "sluice %s: stopped%s\n", v->command.verb,
                v->checkpoint ? "; the same command goes on" : " before the end");
    else if (v->checkpoint)
        (void)unlink(v->checkpoint);
    if (is_whole && v->verified) {
        struct sl_error error = SL_NO_ERROR;
        bool covers = !v->sample && !v->match && v->items.n == 0 && v->ignored.n == 0 && v->with_totals &&
                      !v->letters.route && v->report.totals.different + v->report.totals.unsettled == 0;
        if (sl_report_verified(v->verified, v->work, covers, &v->command.log, &error) != SL_OK)
            return sl_flags_complain(v->command.verb, &error);
    }
    return result;
}

int sl_verify_session_run(struct sl_verify_session *v)
{
    struct sl_error error = SL_NO_ERROR;
    if (check_usage(v, &error) != SL_OK || sl_verify_session_pipeline(v, &error) != SL_OK)
        return sl_flags_complain(v->command.verb, &error);
    enum sl_status status = open_source(v, &error);
    if (status == SL_OK && prepare(v, &error) != SL_OK)
        return sl_flags_complain(v->command.verb, &error);
    if (status == SL_OK)
        status = begin(v, &error);
    if (status == SL_REJECT)
        return sl_flags_complain(v->command.verb, &error);
    if (status == SL_OK)
        warn_at_first(v);
    if (status == SL_OK && !v->options.only_items && (!v->is_quiet || v->is_plan)) {
        const struct sl_cost_question q = {.verb = v->command.verb,
                                           .facts = &v->ground.facts,
                                           .options = &v->options,
                                           .work = v->work,
                                           .read_units = v->read_units};
        sl_cost_print(&q, v->command.arena);
    }
    if (status == SL_OK && v->is_plan)
        return SL_EXIT_OK;
    sl_verify_ground_count(&v->ground, v->command.pipeline);
    sl_command_heed_signals(-1, NULL);
    if (status == SL_OK)
        status = run(v, &error);
    if (v->wrong_table.code[0])
        return sl_flags_complain(v->command.verb, &error);
    if (status == SL_OK)
        status = run_totals(v, &error);
    if (status == SL_OK)
        status = run_archives(v, &error);
    if (status == SL_OK)
        return finish(v);
    (void)sl_flags_complain(v->command.verb, &error);
    if (v->work)
        sl_report_end(&v->report, v->work);
    return SL_EXIT_UNREADABLE;
}

void sl_verify_session_clean_up(struct sl_verify_session *v)
{
    sl_verify_close(v->work);
    sl_outstanding_close(v->outstanding);
    sl_verify_ground_close(&v->ground);
    sl_command_end(&v->command);
}

/* ---- flags ---- */

const struct sl_flag_range sl_verify_session_ranges[] = {
    {"segments", 1, SL_TABLE_SEGMENTS_MAX},
    {"read-units", 1, 1000000000},
    {"max-lag", 0, 1000000000},
    {"wait", 0, 1000000000},
    {"max-deletes", 0, 1000000000},
    {0},
};

size_t sl_verify_session_flags(struct sl_verify_session *v, struct sl_flag *rows)
{
    v->command.config = "sluice.json";
    v->max_lag_s = NO_LAG;
    v->wait_s = SL_VERIFY_WAIT_S;
    const struct sl_flag flags[] = {
        {"config", SL_FLAG_TEXT, &v->command.config, "FILE", "the configuration (./sluice.json)"},
        {"table", SL_FLAG_TEXT, &v->command.table, "NAME",
         "the table that the routes follow: a name, or a target's URL"},
        {"routes", SL_FLAG_TEXT, &v->routes, "A,B", "verify these routes only (every route that can be)"},
        {"region", SL_FLAG_REGION, &v->command.region, "REGION", "region of the table (AWS_REGION)"},
        {"endpoint-url", SL_FLAG_URL, &v->command.endpoint, "URL",
         "endpoint of DynamoDB Local, for example (AWS's)"},
        {"handler-path", SL_FLAG_TEXT, &v->command.handler_path, "FOLDERS",
         "folders of plugins, separated by ':' (handlers/ beside the configuration)"},
        {"How far the consumer is", SL_FLAG_HEADING, NULL, NULL, NULL},
        {"consumer", SL_FLAG_LIST, &v->consumers, "FILE",
         "checkpoint file of the sluice tail that consumes the stream; may be repeated"},
        {"max-lag", SL_FLAG_INTEGER, &v->max_lag_s, "S",
         "you vouch that the consumer is never more than S seconds behind"},
        {"wait", SL_FLAG_INTEGER, &v->wait_s, "S",
         "how long a suspect waits for the consumer before it is pending (300)"},
        {"Which items", SL_FLAG_HEADING, NULL, NULL, NULL},
        {"item", SL_FLAG_LIST, &v->items, "KEY",
         "verify this item only: {\"PK\":{\"S\":\"a\"}}; may be repeated"},
        {"match", SL_FLAG_TEXT, &v->match, "PATTERN",
         "verify only items that match: {\"status\":{\"S\":[\"OPEN\"]}}"},
        {"sample", SL_FLAG_TEXT, &v->sample, "N/M", "verify N of M segments today, others tomorrow"},
        {"ignore", SL_FLAG_LIST, &v->ignored, "NAME", "an attribute that does not count; may be repeated"},
        {"ttl-attribute", SL_FLAG_LIST, &v->ttl, "NAME",
         "a TTL attribute of a target; the source's is in the configuration; may be repeated"},
        {"How it runs", SL_FLAG_HEADING, NULL, NULL, NULL},
        {"segments", SL_FLAG_INTEGER, &v->segments, "N", "scan in N segments (by the table's size)"},
        {"read-units", SL_FLAG_INTEGER, &v->read_units, "N", "read capacity units a second, at most"},
        {"checkpoint", SL_FLAG_TEXT, &v->checkpoint, "FILE",
         "save the progress there, and go on from it; removed at the end"},
        {"json", SL_FLAG_BOOL, &v->is_json, NULL,
         "print a JSON line for each finding, and one for the result"},
        {"quiet", SL_FLAG_BOOL, &v->is_quiet, NULL, "no progress, and no line of the cost"},
    };
    memcpy(rows, flags, sizeof(flags));
    return SL_COUNT(flags);
}
