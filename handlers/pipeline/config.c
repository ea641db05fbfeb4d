/* sluice.json: its own option rows, and its text made into routes by them. */
#include "handlers/pipeline/config.h"

#include "base/json.h"
#include "base/span.h"
#include "handlers/pipeline/config_private.h"
#include "streams/names.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#define READ_BYTES   ((size_t)64 * 1024)
#define INVALID      "InvalidConfiguration"
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
/* Names of routes and handlers become parts of object keys, metrics and file names. */
#define NAME_BYTES 64

const struct sl_option sl_config_rows[] = {
    {.name = "routes",
     .type = SL_OPTION_JSON,
     .flags = SL_OPTION_REQUIRED,
     .help = "the routes, in the order in which they get each record"},
    {.name = "on_failure",
     .type = SL_OPTION_JSON,
     .help = "where rejected records go, for routes without an on_failure of their own"},
    {.name = "variables",
     .type = SL_OPTION_JSON,
     .help = "texts by name, for ${NAME} and for options that name a variable, where the environment does "
             "not set "
             "it: a text, \"${secretsmanager:NAME}\", \"${secretsmanager:NAME:KEY}\" or \"${ssm:NAME}\""},
    {.name = "report_batch_item_failures",
     .type = SL_OPTION_BOOL,
     .fallback = "false",
     .help = "true if the event source mapping has ReportBatchItemFailures; the variable "
             "SLUICE_REPORT_BATCH_ITEM_FAILURES overrides it"},
    {.name = "ttl_attribute",
     .type = SL_OPTION_TEXT,
     .help = "the table's TTL attribute: tells whether a removal without userIdentity was made by TTL"},
    {.name = "trace",
     .type = SL_OPTION_TEXT,
     .help = "path of the attribute in which a writer leaves its trace's context, as W3C's traceparent: "
             "\"_otel.traceparent\". Messages carry it on"},
    {.name = "trace_to",
     .type = SL_OPTION_TEXT,
     .help = "where spans go, as OTLP: xray:, a collector's https://host/v1/traces (http: on this machine), "
             "jsonl:file or stdout:. Without it none are made"},
    {.name = "view_type",
     .type = SL_OPTION_ENUM,
     .values = "KEYS_ONLY|NEW_IMAGE|OLD_IMAGE|NEW_AND_OLD_IMAGES",
     .help = "the stream's view type: a route that cannot work with it is refused at start instead of at its "
             "first record"},
    {.name = "max_parked",
     .type = SL_OPTION_INTEGER,
     .flags = SL_OPTION_NULLABLE,
     .min = 1,
     .max = 1000000,
     .help =
         "how many records of a route may be parked with one code although no others vouch for the "
         "configuration: of the records of the same event that were applied lately, 4 vouch for one more. "
         "Beyond, the configuration or the environment is taken to be broken, and nothing is parked. If it "
         "is written, it is also the most of one batch. Default: 10; null: no limit"},
    {.name = "deadline_reserve_ms",
     .type = SL_OPTION_INTEGER,
     .min = 10,
     .max = 60000,
     .help = "time reserved for the answer. Default: a twentieth of the time left, from 100 to 2000"},
    {.name = "$schema", .type = SL_OPTION_TEXT, .help = "for editors"},
    {.type = SL_OPTION_END},
};

const struct sl_option sl_config_route_rows[] = {
    {.name = "name",
     .type = SL_OPTION_TEXT,
     .flags = SL_OPTION_REQUIRED,
     .help = "the route's own name, shown in logs, metrics and parked records"},
    {.name = "handler",
     .type = SL_OPTION_TEXT,
     .flags = SL_OPTION_REQUIRED,
     .help = "a built-in handler, or a plugin's file name without .so"},
    {.name = "when",
     .type = SL_OPTION_WHEN,
     .help = "which records the route takes; without it, all records"},
    {.name = "on_failure",
     .type = SL_OPTION_JSON,
     .help =
         "where rejected records are parked: a queue or object store target; a list of them, tried in that "
         "order; or \"report\", to report them to the event source mapping instead"},
    {.name = "max_records",
     .type = SL_OPTION_INTEGER,
     .min = 1,
     .max = 10000,
     .help = "most records in one call of the handler, if below its own limit"},
    {.name = "max_bytes",
     .type = SL_OPTION_INTEGER,
     .min = 1024,
     .max = 6291456,
     .help = "most bytes of records in one call, if below the handler's own limit"},
    {.name = "set_aside",
     .type = SL_OPTION_TEXT,
     .help = "an SQS queue of its own (sqs://name) in which the route's records wait while its target is "
             "down, so "
             "that the other routes go on; a second function of the package drains it"},
    {.name = "paused",
     .type = SL_OPTION_BOOL,
     .fallback = "false",
     .help = "true: all of the route's records are set aside, and none is drained"},
    {.name = "options",
     .type = SL_OPTION_JSON,
     .help = "the handler's options; they may also be in the route itself"},
    {.type = SL_OPTION_END},
};

/* ---- text to tree ---- */

static void release(void *arg)
{
    json_decref(arg);
}

/* What people write that is JavaScript, YAML or nothing at all. `at` is behind what was not understood. NULL:
 * none of these. */
static const char *usual_mistake(struct sl_span text, size_t at)
{
    struct sl_span before = sl_span(text.ptr, at < text.len ? at : text.len);
    const char *start = text.ptr, *end = sl_span_end(before);
    if (sl_json_space(start, sl_span_end(text)) == sl_span_end(text))
        return "it is empty; write {\"routes\": [...]}, or begin with an example of docs/COOKBOOK.md";
    char last = end > start ? end[-1] : '\0';
    if (last == '/' || last == '#')
        return "JSON has no comments";
    if (last == '\'')
        return "texts are in double quotes";
    if (last != ']' && last != '}')
        return NULL;
    for (end--; end > start && strchr(" \t\r\n", end[-1]); end--)
        ;
    return end > start && end[-1] == ',' ? "the comma before it is one too many" : NULL;
}

static enum sl_status refuse_text(struct sl_span text, const json_error_t *why, struct sl_error *error)
{
    size_t at = why->position > 0 ? (size_t)why->position : 0;
    const char *mistake =
        json_error_code(why) == json_error_numeric_overflow
            ? "write 12345678901234567890.0, with a point, in a condition, and a text for an amount"
            : usual_mistake(text, at);
    return sl_fail_at(error, SL_FATAL, "InvalidJson", at, "line %d, column %d (byte %d): %s%s%s", why->line,
                      why->column, why->position, why->text, mistake ? "; " : "", mistake ? mistake : "");
}

static enum sl_status load(struct sl_span text, struct sl_arena *arena, json_t **out, struct sl_error *error)
{
    json_error_t why;
    *out = json_loadb(text.ptr ? text.ptr : "", text.len, 0, &why);
    if (!*out)
        return refuse_text(text, &why, error);
    sl_arena_defer(arena, release, *out);
    if (!json_is_object(*out))
        return sl_fail(error, SL_FATAL, INVALID, "$: is not an object; write {\"routes\": [...]}");
    return SL_OK;
}

static enum sl_status load_expanded(struct sl_config *config, struct sl_span text, const struct sl_vars *vars,
                                    json_t **out, struct sl_error *error)
{
    enum sl_status status = load(text, config->arena, out, error);
    if (status == SL_OK)
        status = sl_config_read_variables(*out, vars, config->arena, &config->vars, error);
    if (status != SL_OK)
        return status;
    vars = &config->vars;
    json_object_del(*out, "variables"); /* they were checked; the tree is made anew below */
    status = sl_config_check_variables(*out, "$", vars, config->arena, error);
    if (status != SL_OK)
        return status;
    struct sl_buffer buffer;
    sl_buffer_init(&buffer, 4 * SL_CONFIG_BYTES);
    sl_config_expand(text, vars, true, &buffer);
    if (buffer.failed)
        status = sl_fail(error, SL_FATAL, INVALID,
                         "$: is larger than %d bytes once its variables are filled in", 4 * SL_CONFIG_BYTES);
    config->text = sl_span(sl_arena_copy(config->arena, sl_buffer_span(&buffer)), buffer.len);
    sl_buffer_clean_up(&buffer);
    return status == SL_OK ? load(config->text, config->arena, out, error) : status;
}

/* ---- routes ---- */

static enum sl_status check_name(const char *name, const char *path, struct sl_error *error)
{
    if (!name[0] || strlen(name) > NAME_BYTES || name[strspn(name, NAME_LETTERS)])
        return sl_fail(error, SL_FATAL, INVALID, "%s: \"%s\" is not a name; use 1 to %d of A-Z a-z 0-9 _ -",
                       path, name, NAME_BYTES);
    return SL_OK;
}

static enum sl_status read_targets(struct sl_config *config, const json_t *list,
                                   struct sl_config_failure *out, struct sl_error *error)
{
    struct sl_span *urls = sl_arena_alloc(config->arena, (json_array_size(list) + 1) * sizeof(*urls));
    size_t i;
    json_t *url;
    out->urls = urls;
    out->is_list = true;
    json_array_foreach((json_t *)list, i, url)
    {
        if (!json_is_string(url) || json_string_length(url) == 0 ||
            strcmp(json_string_value(url), "report") == 0)
            return sl_fail(error, SL_FATAL, INVALID,
                           "%s[%zu]: is not a target; write a URL such as \"sqs://queue\"", out->path, i);
        urls[out->n++] = sl_span(sl_arena_copy(config->arena, sl_span_str(json_string_value(url))),
                                 json_string_length(url));
    }
    if (out->n == 0)
        return sl_fail(error, SL_FATAL, INVALID, "%s: the list is empty; name a target, or write \"report\"",
                       out->path);
    return SL_OK;
}

static enum sl_status read_failure(struct sl_config *config, const char *path, const json_t *value,
                                   struct sl_config_failure *out, struct sl_error *error)
{
    *out = (struct sl_config_failure){.path = path};
    if (json_is_array(value))
        return read_targets(config, value, out, error);
    if (!json_is_string(value) || json_string_length(value) == 0)
        return sl_fail(error, SL_FATAL, INVALID, "%s: write a target, a list of targets, or \"report\"",
                       path);
    out->is_report = strcmp(json_string_value(value), "report") == 0;
    if (!out->is_report) {
        struct sl_span *url = sl_arena_alloc(config->arena, sizeof(*url));
        *url = sl_span(sl_arena_copy(config->arena, sl_span_str(json_string_value(value))),
                       json_string_length(value));
        out->urls = url;
        out->n = 1;
    }
    return SL_OK;
}

static struct sl_options_source source_of(struct sl_config *config, const json_t *object, const char *path,
                                          const struct sl_option *foreign)
{
    return (struct sl_options_source){
        .object = object, .path = path, .foreign = foreign, .text = config->text};
}

/* The members of a route that Sluice reads. The others are the handler's, whose rows are not known yet. */
static json_t *own_members(struct sl_config *config, const json_t *object)
{
    json_t *own = json_object();
    for (const struct sl_option *row = sl_config_route_rows; row->type != SL_OPTION_END; row++)
        if (json_object_get(object, row->name))
            json_object_set(own, row->name, json_object_get(object, row->name));
    sl_arena_defer(config->arena, release, own);
    return own;
}

/* A member that nothing knows, and that is nearly the name of one that is missing. (What else is not known is
 * the handler's, or it is refused with the handler's options.) */
static enum sl_status check_misspelled(const json_t *object, const char *path, struct sl_error *error)
{
    const char *name;
    json_t *value;
    if (json_object_get(object, "handler"))
        return SL_OK;
    json_object_foreach((json_t *)object, name, value)
    {
        const char *near = sl_options_closest_name(name, sl_config_route_rows, NULL);
        if (near && strcmp(near, "handler") == 0)
            return sl_fail(error, SL_FATAL, INVALID, "%s.%s: is not known here; did you mean \"%s\"?", path,
                           name, near);
    }
    return SL_OK;
}

static enum sl_status read_members(struct sl_config *config, const json_t *object, struct sl_option_set *set,
                                   struct sl_config_route *out, struct sl_error *error)
{
    struct sl_options_source own = source_of(config, own_members(config, object), out->path, NULL);
    sl_options_init(set, sl_config_route_rows, config->arena);
    enum sl_status status = sl_options_take(set, &own, error);
    if (status == SL_OK)
        status = check_misspelled(object, out->path, error);
    if (status == SL_OK)
        status = sl_options_end(set, out->path, error);
    if (status != SL_OK)
        return status;
    const struct sl_option_value *name = sl_options_get(set, "name"),
                                 *handler = sl_options_get(set, "handler"),
                                 *when = sl_options_get(set, "when");
    out->name = name->text.ptr;
    out->handler = handler->text.ptr;
    out->when = when->text;
    out->when_path = when->path;
    out->max_records = sl_options_get(set, "max_records")->integer;
    out->max_bytes = sl_options_get(set, "max_bytes")->integer;
    out->set_aside = sl_options_get(set, "set_aside")->text;
    out->set_aside_path = sl_options_get(set, "set_aside")->path;
    out->is_paused = sl_options_get(set, "paused")->boolean;
    if (out->is_paused && !out->set_aside.ptr)
        return sl_fail(
            error, SL_FATAL, INVALID,
            "%s: a route without \"set_aside\" cannot be paused: its records would have nowhere to wait",
            sl_options_get(set, "paused")->path);
    status = check_name(out->name, name->path, error);
    return status == SL_OK ? check_name(out->handler, handler->path, error) : status;
}

static enum sl_status read_route(struct sl_config *config, const json_t *object,
                                 const struct sl_config_failure *fallback, struct sl_config_route *out,
                                 struct sl_error *error)
{
    if (!json_is_object(object))
        return sl_fail(error, SL_FATAL, INVALID,
                       "%s: is not an object; write {\"name\": ..., \"handler\": ...}", out->path);
    struct sl_option_set set;
    enum sl_status status = read_members(config, object, &set, out, error);
    if (status != SL_OK)
        return status;
    const struct sl_option_value *failure = sl_options_get(&set, "on_failure"),
                                 *options = sl_options_get(&set, "options");
    out->members = source_of(config, object, out->path, sl_config_route_rows);
    out->on_failure = *fallback;
    if (failure->is_set)
        status = read_failure(config, failure->path, json_object_get(object, "on_failure"), &out->on_failure,
                              error);
    else if (!fallback->path)
        status = sl_fail(error, SL_FATAL, INVALID,
                         "%s.on_failure: is missing: write a target for rejected records, such as "
                         "\"sqs://queue\", or \"report\" if you want none",
                         out->path);
    if (status != SL_OK || !options->is_set)
        return status;
    out->options = source_of(config, json_object_get(object, "options"), options->path, NULL);
    if (!json_is_object(out->options.object))
        return sl_fail(error, SL_FATAL, INVALID, "%s: is not an object; write {\"name\": value, ...}",
                       options->path);
    return SL_OK;
}

static enum sl_status read_routes(struct sl_config *config, const json_t *list,
                                  const struct sl_config_failure *fallback, struct sl_error *error)
{
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > SL_CONFIG_ROUTES_MAX)
        return sl_fail(error, SL_FATAL, INVALID, "$.routes: write an array of 1 to %d routes",
                       SL_CONFIG_ROUTES_MAX);
    size_t n = json_array_size(list);
    config->routes = sl_arena_zalloc(config->arena, n * sizeof(*config->routes));
    for (size_t i = 0; i < n; i++) {
        struct sl_config_route *route = &config->routes[i];
        route->path = sl_arena_printf(config->arena, "$.routes[%zu]", i);
        enum sl_status status = read_route(config, json_array_get(list, i), fallback, route, error);
        if (status != SL_OK)
            return status;
        for (size_t k = 0; k < i; k++)
            if (strcmp(config->routes[k].name, route->name) == 0)
                return sl_fail(error, SL_FATAL, INVALID,
                               "%s.name: \"%s\" is also the name of %s; each route needs its own",
                               route->path, route->name, config->routes[k].path);
        config->n_routes++;
    }
    return SL_OK;
}

/* ---- the top level ---- */

static enum sl_status read_reports(struct sl_config *config, const struct sl_vars *vars, bool configured,
                                   struct sl_error *error)
{
    static const char name[] = "SLUICE_REPORT_BATCH_ITEM_FAILURES";
    const char *value = sl_vars_or(vars, name, NULL);
    config->reports_failures = configured;
    if (!value)
        return SL_OK;
    config->reports_failures = strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
    if (!config->reports_failures && strcmp(value, "false") && strcmp(value, "0"))
        return sl_fail(error, SL_FATAL, INVALID, "the variable %s is \"%s\"; write true or false", name,
                       value);
    return SL_OK;
}

static enum sl_status read_trace(struct sl_config *config, const struct sl_option_set *set,
                                 struct sl_error *error)
{
    const struct sl_option_value *path = sl_options_get(set, "trace");
    config->trace_to = sl_options_get(set, "trace_to")->text;
    if (path->is_set && !sl_trace_paths(path->text, config->arena, &config->trace))
        return sl_fail(error, SL_FATAL, INVALID,
                       "%s: \"%.*s\" is not the path of an attribute; write it as \"_otel.traceparent\"",
                       path->path, SL_ARG(path->text));
    if (path->is_set && (config->view == SL_VIEW_KEYS_ONLY || config->view == SL_VIEW_OLD_IMAGE))
        return sl_fail(error, SL_FATAL, INVALID,
                       "%s: a stream of the view type %s has no new images, where a writer's context is",
                       path->path, sl_view_name(config->view));
    return SL_OK;
}

static enum sl_status read_top(struct sl_config *config, const json_t *root, const struct sl_vars *vars,
                               struct sl_option_set *set, struct sl_error *error)
{
    struct sl_options_source source = source_of(config, root, "$", NULL);
    sl_options_init(set, sl_config_rows, config->arena);
    enum sl_status status = sl_options_take(set, &source, error);
    if (status == SL_OK)
        status = sl_options_end(set, "$", error);
    if (status != SL_OK)
        return status;
    const struct sl_option_value *ttl = sl_options_get(set, "ttl_attribute"),
                                 *max = sl_options_get(set, "max_parked"),
                                 *reserve = sl_options_get(set, "deadline_reserve_ms");
    if (ttl->is_set && ttl->text.len == 0)
        return sl_fail(error, SL_FATAL, INVALID, "%s: is empty; write the attribute's name", ttl->path);
    config->ttl_attribute = ttl->text;
    config->view = sl_view_named(sl_options_get(set, "view_type")->text);
    status = read_trace(config, set, error);
    if (status != SL_OK)
        return status;
    config->max_parked_is_set = max->is_set;
    config->max_parked = max->is_null ? -1 : max->integer;
    config->reserve_ms = reserve->is_set ? reserve->integer : -1;
    return read_reports(config, vars, sl_options_get(set, "report_batch_item_failures")->boolean, error);
}

/* No member of the file, of a route or of its options is there twice. (In a pattern one may.) */
static enum sl_status check_at(const struct sl_config *config, const char *path, struct sl_error *error)
{
    return sl_config_check_object(sl_json_find(config->text, path[1] ? path + 2 : ""), path, error);
}

static enum sl_status check_names(const struct sl_config *config, struct sl_error *error)
{
    enum sl_status status = check_at(config, "$", error);
    if (status == SL_OK && sl_json_find(config->text, "variables").ptr)
        status = check_at(config, "$.variables", error);
    for (size_t i = 0; i < config->n_routes && status == SL_OK; i++) {
        const struct sl_config_route *route = &config->routes[i];
        status = check_at(config, route->path, error);
        if (status == SL_OK && route->options.object)
            status = check_at(config, route->options.path, error);
    }
    return status;
}

enum sl_status sl_config_parse(struct sl_span text, const struct sl_vars *vars, struct sl_arena *arena,
                               struct sl_config *out, struct sl_error *error)
{
    json_t *root;
    struct sl_option_set set;
    struct sl_config_failure fallback = {0};
    *out = (struct sl_config){.arena = arena};
    enum sl_status status = load_expanded(out, text, vars, &root, error);
    if (status == SL_OK)
        status = read_top(out, root, vars, &set, error);
    if (status == SL_OK && sl_options_get(&set, "on_failure")->is_set)
        status = read_failure(out, "$.on_failure", json_object_get(root, "on_failure"), &fallback, error);
    if (status == SL_OK)
        status = read_routes(out, json_object_get(root, "routes"), &fallback, error);
    return status == SL_OK ? check_names(out, error) : status;
}

static enum sl_status refuse_file(const char *path, int why, struct sl_error *error)
{
    return sl_fail(error, SL_FATAL, "ConfigurationNotFound",
                   "%s: cannot be read: %s; name the configuration: --config FILE, in a function "
                   "SLUICE_CONFIG",
                   path, strerror(why));
}

enum sl_status sl_config_file(const char *path, size_t most, struct sl_arena *arena, struct sl_span *out,
                              struct sl_error *error)
{
    FILE *file = fopen(path, "re");
    struct sl_buffer text;
    char *room;
    if (!file)
        return refuse_file(path, errno, error);
    sl_buffer_init(&text, most + READ_BYTES);
    while (text.len <= most && !feof(file) && !ferror(file) && (room = sl_buffer_reserve(&text, READ_BYTES)))
        text.len += fread(room, 1, READ_BYTES, file);
    int failed = ferror(file) ? errno : 0;
    size_t n = text.len;
    fclose(file);
    *out = sl_span(sl_arena_copy(arena, sl_buffer_span(&text)), n);
    sl_buffer_clean_up(&text);
    if (failed)
        return refuse_file(path, failed, error);
    if (n > most)
        return sl_fail(error, SL_FATAL, INVALID, "%s: is larger than %zu bytes", path, most);
    return SL_OK;
}

enum sl_status sl_config_text(const char *path, struct sl_arena *arena, struct sl_span *out,
                              struct sl_error *error)
{
    return sl_config_file(path, SL_CONFIG_BYTES, arena, out, error);
}

enum sl_status sl_config_read(const char *path, const struct sl_vars *vars, struct sl_arena *arena,
                              struct sl_config *out, struct sl_error *error)
{
    struct sl_span text;
    enum sl_status status = sl_config_text(path, arena, &text, error);
    if (status != SL_OK)
        return status;
    status = sl_config_parse(text, vars, arena, out, error);
    sl_error_context(error, "%s", path);
    return status;
}

json_t *sl_config_tree(const char *path, struct sl_arena *arena, struct sl_error *error)
{
    struct sl_span text;
    json_error_t why;
    if (sl_config_text(path, arena, &text, error) != SL_OK)
        return NULL;
    json_t *root = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &why);
    if (root)
        return root;
    (void)refuse_text(text, &why, error);
    sl_error_context(error, "%s", path);
    return NULL;
}
