/* `sluice check`: prints what each route of a configuration does, and what would lose data. */
#include "base/json.h"
#include "base/json_write.h"
#include "handlers/pipeline/route.h"
#include "cli/check/check_aside.h"
#include "cli/check/check_keys.h"
#include "cli/check/check_route.h"
#include "cli/check/check_sample.h"
#include "cli/check/check_secrets.h"
#include "cli/check/check_shared.h"
#include "cli/check/check_totals.h"
#include "cli/check/check_unused.h"
#include "cli/check/check_vars.h"
#include "cli/check/check_webhooks.h"
#include "cli/config/mapping.h"
#include "cli/command.h"
#include "cli/dry.h"
#include "live/source/input.h"
#include "cli/verbs.h"
#include "streams/names.h"
#include "streams/when/when.h"

#include <jansson.h>
#include <stdio.h>

#define ITEM_BYTES      500
#define ITEM_BYTES_MOST (400 * 1024) /* DynamoDB's */

struct check {
    struct sl_command command;
    const char *mapping_path, *sample_path;
    bool reads_tables, says_filters;
    int64_t item_bytes;
    struct sl_mapping mapping;
    struct sl_flag_list set;
    unsigned losses, notes;
};

/* ---- findings ---- */

static void find(void *arg, enum sl_lint_finding finding, const char *text)
{
    struct check *c = arg;
    const struct sl_lint_row *row = &sl_lint_rows[finding];
    if (c->says_filters)
        return;
    printf("%s: %s [%s]\n", row->loses ? "warning" : "note", text, row->code);
    c->losses += row->loses;
    c->notes += !row->loses;
}

/* ---- what would lose data ---- */

/* A view type that the handler and the rest of `when` can do with, and a pattern cannot. */
static void check_view(struct check *c, const struct sl_route *route)
{
    enum sl_view view = c->command.pipeline->config.view;
    unsigned images = sl_when_images(route->when);
    bool lacks_new = view == SL_VIEW_KEYS_ONLY || view == SL_VIEW_OLD_IMAGE;
    bool lacks_old = view == SL_VIEW_KEYS_ONLY || view == SL_VIEW_NEW_IMAGE;
    if ((lacks_new && images & 1u << SL_NEW_IMAGE) || (lacks_old && images & 1u << SL_OLD_IMAGE))
        find(c, SL_FINDING_VIEW_LACKS_IMAGE,
             sl_arena_printf(c->command.arena,
                             "%s.pattern: looks into an image that a stream of view type %s does not carry: "
                             "what it asks of it never matches",
                             route->config->when_path, sl_view_name(view)));
}

static void lint_when(struct check *c, const struct sl_route *route)
{
    if (!route->config->when.ptr)
        return;
    check_view(c, route);
    json_t *root = json_loadb(route->config->when.ptr, route->config->when.len, 0, NULL);
    size_t i;
    json_t *pattern;
    json_array_foreach(json_object_get(root, "pattern"), i, pattern)
    {
        char *text = json_dumps(pattern, JSON_COMPACT);
        sl_lint_pattern(sl_span_str(text),
                        sl_arena_printf(c->command.arena, "%s.pattern[%zu]", route->config->when_path, i),
                        find, c);
        free(text);
    }
    json_decref(root);
}

/* Routes without an on_failure of their own share one. */
static bool is_told(const struct check *c, const struct sl_route *route,
                    const struct sl_failure_target *target)
{
    for (const struct sl_route *other = c->command.pipeline->routes; other < route; other++)
        for (size_t i = 0; i < other->n_targets; i++)
            if (other->targets[i] == target)
                return true;
    return false;
}

static void check_local(struct check *c, const char *path, struct sl_span target)
{
    if (target.len && sl_target_is_local(target))
        find(c, SL_FINDING_TARGET_LOCAL,
             sl_arena_printf(c->command.arena,
                             "%s: %.*s is local: for a laptop; in Lambda it disappears with the sandbox",
                             path, SL_ARG(target)));
}

static void check_targets(struct check *c, const struct sl_route *route)
{
    const char *target = route->stats.target;
    check_local(c, sl_arena_printf(c->command.arena, "%s.to", route->config->path), sl_span_str(target));
    for (size_t i = 0; i < route->n_targets; i++)
        if (!is_told(c, route, route->targets[i]))
            check_local(c, route->config->on_failure.path, route->targets[i]->name);
}

static enum sl_status read_mapping(struct check *c, struct sl_error *error)
{
    struct sl_span text;
    c->mapping = (struct sl_mapping){.batch_size = SL_MAPPING_BATCH_SIZE};
    if (!c->mapping_path)
        return SL_OK;
    enum sl_status status = sl_input_load(c->mapping_path, c->command.arena, &text, error);
    if (status != SL_OK)
        return status;
    status = sl_mapping_read(text, c->command.arena, &c->mapping, error);
    sl_error_context(error, "%s", c->mapping_path);
    return status;
}

static void check_mapping(struct check *c)
{
    struct sl_mapping_facts facts = {.config_reports_failures =
                                         sl_pipeline_reports_failures(c->command.pipeline),
                                     .all_routes_park = true};
    for (size_t i = 0; i < c->command.pipeline->n; i++)
        facts.all_routes_park &= c->command.pipeline->routes[i].n_targets > 0;
    if (c->mapping_path)
        sl_mapping_check(&c->mapping, &facts, find, c);
    else if (!facts.config_reports_failures)
        find(c, SL_FINDING_BATCH_FAILS_WHOLE,
             "report_batch_item_failures is not true: any failure fails the whole batch; set it to true if "
             "the "
             "mapping has ReportBatchItemFailures (as in template.yaml)");
}

/* ---- the verb ---- */

static void say_traces(const struct sl_config *config)
{
    if (config->trace.parent.ptr)
        printf("  traces: a writer's context is in %.*s%s", SL_ARG(config->trace.parent),
               config->trace_to.ptr ? "; " : "\n");
    if (config->trace_to.ptr)
        printf("%sspans go to %.*s\n",
               config->trace.parent.ptr ? "" : "  traces: ", SL_ARG(sl_target_shown(config->trace_to)));
}

/* A message and a plugin may carry the context on. */
static void check_traces(struct check *c)
{
    const struct sl_config *config = &c->command.pipeline->config;
    check_local(c, "$.trace_to", config->trace_to);
    bool is_used = !config->trace.parent.ptr || config->trace_to.ptr;
    for (size_t i = 0; i < config->n_routes; i++) {
        const char *handler = config->routes[i].handler;
        is_used = is_used || !sl_builtin_named(handler)->handler || strcmp(handler, "notify") == 0;
    }
    if (!is_used)
        find(c, SL_FINDING_TRACE_UNUSED,
             "$.trace: no route sends messages, and without trace_to no spans are made: it has no effect");
}

/* All that the configuration alone says. */
static void lint(struct check *c)
{
    check_traces(c);
    for (size_t i = 0; i < c->command.pipeline->n; i++) {
        lint_when(c, &c->command.pipeline->routes[i]);
        check_targets(c, &c->command.pipeline->routes[i]);
        sl_check_unused(&c->command.pipeline->routes[i], c->command.arena, find, c);
    }
    sl_check_webhooks(c->command.pipeline, c->command.arena, find, c);
    sl_check_shared(&(struct sl_check_shared){.pipeline = c->command.pipeline,
                                              .stream_arn = c->mapping_path ? c->mapping.source_arn : "",
                                              .arena = c->command.arena,
                                              .find = find,
                                              .arg = c});
}

static enum sl_status run(struct check *c, struct sl_error *error)
{
    struct sl_span text;
    enum sl_status status = sl_config_text(c->command.config, c->command.arena, &text, error);
    if (status != SL_OK)
        return status;
    const struct sl_vars outer = c->command.vars;
    const struct sl_check_vars vars = {
        .text = text, .set = &c->set, .arena = c->command.arena, .find = find, .arg = c};
    status = sl_check_vars(&vars, &c->command.vars, error);
    if (status != SL_OK)
        return status;
    status = sl_command_open(&c->command, "", &sl_dry_openers, error);
    if (status == SL_OK)
        status = read_mapping(c, error);
    if (status != SL_OK)
        return status;
    if (c->says_filters) {
        sl_check_filters(c->command.pipeline->routes, c->command.pipeline->n);
        return SL_OK;
    }
    const struct sl_check_batch batch = {.records = c->mapping.batch_size > 0 ? (size_t)c->mapping.batch_size
                                                                              : SL_MAPPING_BATCH_SIZE,
                                         .item_bytes = (uint32_t)c->item_bytes};
    printf("%s: %zu route%s\n", c->command.config, c->command.pipeline->n,
           c->command.pipeline->n == 1 ? "" : "s");
    say_traces(&c->command.pipeline->config);
    for (size_t i = 0; i < c->command.pipeline->n; i++)
        sl_check_route(&c->command.pipeline->routes[i], &batch, c->command.arena);
    status = sl_check_secrets(text, &outer, c->command.arena, error);
    if (status != SL_OK)
        return status;
    putchar('\n');
    lint(c);
    const struct sl_check_totals totals = {.pipeline = c->command.pipeline,
                                           .sinks = &c->command.sinks,
                                           .arena = c->command.arena,
                                           .reads_tables = c->reads_tables,
                                           .find = find,
                                           .arg = c};
    const struct sl_check_aside aside = {.pipeline = c->command.pipeline,
                                         .sinks = &c->command.sinks,
                                         .stream_arn = c->mapping_path ? c->mapping.source_arn : "",
                                         .arena = c->command.arena,
                                         .asks_queues = c->reads_tables,
                                         .find = find,
                                         .arg = c};
    struct sl_check_keys keys = {.pipeline = c->command.pipeline,
                                 .sinks = &c->command.sinks,
                                 .arena = c->command.arena,
                                 .find = find,
                                 .arg = c};
    const struct sl_check_sample sample = {.pipeline = c->command.pipeline,
                                           .path = c->sample_path,
                                           .vars = &c->command.vars,
                                           .arena = c->command.arena,
                                           .find = find,
                                           .arg = c};
    status = sl_check_sample(&sample, &keys.source_keys, error);
    if (status == SL_OK && c->reads_tables && c->mapping_path && !keys.source_keys.n)
        status = sl_check_source_keys(&keys, c->mapping.source_arn, error);
    if (status == SL_OK && c->reads_tables)
        status = sl_check_keys(&keys, error);
    if (status == SL_OK)
        status = sl_check_totals(&totals, error);
    if (status == SL_OK)
        status = sl_check_aside(&aside, error);
    if (status == SL_OK)
        check_mapping(c);
    return status;
}

int sl_verb_check(int argc, char **argv)
{
    struct check c = {.command = {.verb = "check", .config = "sluice.json"}, .item_bytes = ITEM_BYTES};
    const struct sl_flag flags[] = {
        {"mapping", SL_FLAG_TEXT, &c.mapping_path, "FILE",
         "check this mapping as well: what `aws lambda get-event-source-mapping` (or list-...) printed"},
        {"sample", SL_FLAG_TEXT, &c.sample_path, "FILE",
         "try the templates on these records, and name those that none of them fills"},
        {"tables", SL_FLAG_BOOL, &c.reads_tables, NULL,
         "ask each table for its key and each queue of letters for how long it keeps them, and read one row "
         "of "
         "each ledger of totals"},
        {"filters", SL_FLAG_BOOL, &c.says_filters, NULL,
         "print the mapping's FilterCriteria for these routes as JSON, and nothing else"},
        {"item-bytes", SL_FLAG_INTEGER, &c.item_bytes, "N",
         "what an item has, for what a change costs (500); the batch has the mapping's BatchSize (100)"},
        {"set", SL_FLAG_LIST, &c.set, "NAME=VALUE", "the value of ${NAME}; may be repeated"},
        {"handler-path", SL_FLAG_TEXT, &c.command.handler_path, "FOLDERS",
         "folders of plugins, separated by ':' (handlers/ beside the configuration)"},
        {0},
    };
    static const struct sl_flag_range ranges[] = {{"item-bytes", 1, ITEM_BYTES_MOST}, {0}};
    const struct sl_usage usage = {
        .line = "check [flags] [CONFIG]",
        .summary = "Reads CONFIG (./sluice.json) as bootstrap would, without touching any target. Prints "
                   "what each route does, and what would lose data. Exit status: 0 all right, 1 something "
                   "would lose data, 2 a mistake.",
        .example = "sluice check --sample events.jsonl",
        .flags = flags,
        .ranges = ranges,
        .operand = "CONFIG",
        .most = 1,
    };
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    struct sl_error error = SL_NO_ERROR;
    if (n)
        c.command.config = argv[1];
    sl_command_begin(&c.command);
    enum sl_status status = run(&c, &error);
    if (status == SL_OK && c.says_filters) {
        result = SL_EXIT_OK;
    } else if (status == SL_OK) {
        result = c.losses ? SL_EXIT_FAILED : SL_EXIT_OK;
        printf("%s: %u warning%s, %u note%s\n", c.command.config, c.losses, c.losses == 1 ? "" : "s", c.notes,
               c.notes == 1 ? "" : "s");
    } else {
        result = sl_flags_complain("check", &error);
    }
    sl_command_end(&c.command);
    return sl_flags_end("check", result);
}
