/* The pipeline: opens every route of a configuration, all or nothing, and closes them. */
#include "handlers/pipeline/pipeline.h"

#include "base/span.h"
#include "handlers/pipeline/builtins.h"
#include "handlers/pipeline/host.h"
#include "handlers/pipeline/ports.h"
#include "handlers/pipeline/route.h"
#include "streams/names.h"
#include "streams/template/template.h"
#include "streams/when/when.h"

#define INVALID "InvalidConfiguration"

static const struct sl_openers real_openers = {sl_target_kind, sl_target_objects, sl_target_table,
                                               sl_target_queue, sl_target_spans};

/* ---- options: compiled and opened ---- */

/* The text of a condition's error begins with a path inside the condition, or is a sentence, which has a
 * blank before its first colon. */
static enum sl_status fail_inside(struct sl_error *error, const char *path, const struct sl_error *why)
{
    bool is_sentence = why->text[strcspn(why->text, ": ")] == ' ';
    return sl_fail(error, SL_FATAL, INVALID, "%s%s%s", path, is_sentence ? ": " : ".", why->text);
}

static enum sl_status compile_when(struct sl_pipeline *p, struct sl_span json, const char *path,
                                   struct sl_when **out, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    return sl_when_compile(json, p->arena, out, &why) == SL_OK ? SL_OK : fail_inside(error, path, &why);
}

static enum sl_status compile_template(struct sl_pipeline *p, struct sl_option_value *value,
                                       struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    if (sl_template_compile(value->text, p->options.vars, p->arena, &value->template, &why) == SL_OK)
        return SL_OK;
    return sl_fail(error, SL_FATAL, INVALID, "%s: %s (byte %zu)", value->path, why.text, why.offset);
}

static void mark_ports(struct sl_pipeline *p, struct sl_option_value *value)
{
    struct sl_port_meter *meter = &p->meter;
    if (value->objects)
        value->objects = sl_ports_mark_objects(value->objects, meter, p->arena);
    if (value->table)
        value->table = sl_ports_mark_table(value->table, meter, p->arena);
    if (value->queue)
        value->queue = sl_ports_mark_queue(value->queue, meter, p->arena);
}

static enum sl_status open_target(struct sl_pipeline *p, const struct sl_option *row,
                                  struct sl_option_value *value, struct sl_error *error)
{
    static const enum sl_port_kind kinds[] = {[SL_OPTION_OBJECTS] = SL_PORT_OBJECTS,
                                              [SL_OPTION_TABLE] = SL_PORT_TABLE,
                                              [SL_OPTION_QUEUE] = SL_PORT_QUEUE};
    enum sl_port_kind kind = p->openers.kind(value->text);
    enum sl_status status = SL_OK;
    if (kind != SL_PORT_NONE && kind != kinds[row->type])
        return sl_fail(error, SL_FATAL, INVALID, "%s: \"%.*s\" is not %s %s%s%s%s", value->path,
                       SL_ARG(sl_target_shown(value->text)), row->type == SL_OPTION_OBJECTS ? "an" : "a",
                       sl_options_type_name(row->type), row->help ? " (" : "", row->help ? row->help : "",
                       row->help ? ")" : "");
    if (row->type == SL_OPTION_OBJECTS)
        status = p->openers.objects(p->options.sinks, value->text, &value->objects, error);
    else if (row->type == SL_OPTION_TABLE)
        status = p->openers.table(p->options.sinks, value->text, &value->table, error);
    else
        status = p->openers.queue(p->options.sinks, value->text, &value->queue, error);
    sl_error_context(error, "%s", value->path);
    if (status == SL_OK)
        mark_ports(p, value);
    return status;
}

static enum sl_status compile_option(struct sl_pipeline *p, const struct sl_option *row,
                                     struct sl_option_value *value, struct sl_error *error)
{
    if (!value->path)
        value->path = row->name; /* a fallback, which has no path in the file */
    if (row->type == SL_OPTION_TEMPLATE)
        return compile_template(p, value, error);
    if (row->type == SL_OPTION_WHEN)
        return compile_when(p, value->text, value->path, &value->when, error);
    return SL_OK;
}

static bool is_target(const struct sl_option *row)
{
    return row->type == SL_OPTION_OBJECTS || row->type == SL_OPTION_TABLE || row->type == SL_OPTION_QUEUE;
}

static enum sl_status open_targets(struct sl_pipeline *p, struct sl_route *route, struct sl_error *error)
{
    struct sl_option_set *set = &route->options;
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < set->n && status == SL_OK; i++)
        if (set->values[i].is_set && is_target(&set->rows[i]))
            status = open_target(p, &set->rows[i], &set->values[i], error);
    return status;
}

static enum sl_status read_options(struct sl_pipeline *p, struct sl_route *route, struct sl_error *error)
{
    const struct sl_config_route *config = route->config;
    struct sl_option_set *set = &route->options;
    sl_options_init(set, route->loaded.handler.options, p->arena);
    enum sl_status status = sl_options_take(set, &config->members, error);
    if (status == SL_OK && config->options.object)
        status = sl_options_take(set, &config->options, error);
    if (status == SL_OK)
        status = sl_options_end(set, config->path, error);
    for (size_t i = 0; i < set->n && status == SL_OK; i++)
        if (set->values[i].is_set)
            status = compile_option(p, &set->rows[i], &set->values[i], error);
    return status;
}

/* ---- where rejected records go ---- */

static enum sl_status failure_target(struct sl_pipeline *p, struct sl_span url,
                                     struct sl_failure_target **out, struct sl_error *error)
{
    for (size_t i = 0; i < p->n_targets; i++) {
        *out = &p->targets[i];
        if (sl_span_eq(p->targets[i].url, url))
            return SL_OK;
    }
    struct sl_failure_target *target = &p->targets[p->n_targets];
    *target =
        (struct sl_failure_target){.url = url, .name = sl_target_shown(url), .kind = p->openers.kind(url)};
    enum sl_status status;
    if (target->kind == SL_PORT_OBJECTS)
        status = p->openers.objects(p->options.sinks, url, &target->objects, error);
    else if (target->kind != SL_PORT_TABLE)
        status = p->openers.queue(p->options.sinks, url, &target->queue, error);
    else
        status =
            sl_fail(error, SL_FATAL, INVALID,
                    "\"%.*s\" is a table; records are parked in a queue or an object store", SL_ARG(url));
    p->n_targets += status == SL_OK;
    *out = target;
    return status;
}

static enum sl_status open_failure_targets(struct sl_pipeline *p, struct sl_route *route,
                                           struct sl_error *error)
{
    const struct sl_config_failure *failure = &route->config->on_failure;
    route->targets = sl_arena_zalloc(p->arena, (failure->n + 1) * sizeof(struct sl_failure_target *));
    for (size_t i = 0; i < failure->n; i++) {
        if (failure_target(p, failure->urls[i], &route->targets[i], error) != SL_OK) {
            if (failure->is_list)
                sl_error_context(error, "%s[%zu]", failure->path, i);
            else
                sl_error_context(error, "%s", failure->path);
            return SL_FATAL;
        }
        route->n_targets++;
    }
    return SL_OK;
}

/* ---- where records wait while a target is down ---- */

/* Order does not matter there, and FIFO queues let one message of a group hold up the others. */
static enum sl_status check_aside_target(const struct sl_route *route, struct sl_error *error)
{
    struct sl_span url = route->config->set_aside;
    const char *query = url.len ? memchr(url.ptr, '?', url.len) : NULL;
    struct sl_span name = sl_span(url.ptr, query ? (size_t)(query - url.ptr) : url.len);
    if (!sl_span_starts(url, SL_LIT("sqs:")) && !sl_span_starts(url, SL_LIT("jsonl:")))
        return sl_fail(error, SL_FATAL, INVALID,
                       "%s: \"%.*s\" is not a queue that can be drained; write sqs://name (or, on a laptop, "
                       "jsonl:file)",
                       route->config->set_aside_path, SL_ARG(sl_target_shown(url)));
    if (sl_span_ends(name, SL_LIT(".fifo")))
        return sl_fail(error, SL_FATAL, INVALID,
                       "%s: is a FIFO queue, in which one letter would hold up those behind it: make it a "
                       "standard queue",
                       route->config->set_aside_path);
    for (const struct sl_route *other = route->pipeline->routes; other < route; other++)
        if (sl_span_eq(other->config->set_aside, url))
            return sl_fail(
                error, SL_FATAL, INVALID,
                "%s: is the queue of the route %s too; each route needs its own, or the letters of one "
                "whose target is down would hold up the other's",
                route->config->set_aside_path, other->config->name);
    return SL_OK;
}

/* Asked once the handler is open, and of every route: letters may also come from a time when it was set
 * aside. */
static enum sl_status read_any_order(struct sl_route *route, struct sl_error *error)
{
    struct sl_any_order facts = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(facts)}};
    const struct sl_handler *handler = &route->loaded.handler;
    const struct sl_option_value *epoch = sl_options_get(&route->options, "epoch");
    route->aside.epoch = epoch ? epoch->integer : 0;
    route->aside.has_epoch = epoch != NULL;
    if (handler->window)
        return sl_fail(error, SL_REJECT, "NotAnyOrder",
                       "the route keeps a window's state, which late records cannot change");
    if (!handler->any_order)
        return sl_fail(error, SL_REJECT, "NotAnyOrder",
                       "the handler %s does not say that it takes records late and in any order",
                       route->config->handler);
    sl_route_enter(route);
    enum sl_status status = handler->any_order(route->self, &facts, error);
    sl_route_leave(route);
    route->aside.remembers_s = facts.remembers_s;
    return status;
}

static enum sl_status open_aside(struct sl_pipeline *p, struct sl_route *route, struct sl_error *error)
{
    struct sl_span url = route->config->set_aside;
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = read_any_order(route, &why);
    if (status != SL_OK)
        route->aside.why_not = sl_arena_copy(p->arena, sl_span_str(why.text));
    if (!url.ptr)
        return SL_OK;
    if (status != SL_OK)
        return sl_fail(error, SL_FATAL, "NotAnyOrder", "%s: the route cannot be set aside: %s",
                       route->config->set_aside_path, why.text);
    if (route->aside.remembers_s && route->aside.remembers_s < SL_ASIDE_LEAST_S)
        return sl_fail(
            error, SL_FATAL, "NotAnyOrder",
            "%s: letters may wait for 14 days, and the handler forgets after %lld: set tombstone_days or "
            "forget_after_days to %d at least",
            route->config->set_aside_path, (long long)(route->aside.remembers_s / 86400),
            SL_ASIDE_LEAST_S / 86400);
    if (status == SL_OK)
        status = p->openers.queue(p->options.sinks, url, &route->aside.queue, error);
    if (status == SL_OK) {
        route->aside.name = sl_target_shown(url);
        route->stats.waits_in = sl_arena_copy(p->arena, route->aside.name);
    }
    if (status != SL_OK && !strstr(error->text, route->config->set_aside_path))
        sl_error_context(error, "%s", route->config->set_aside_path);
    return status;
}

/* ---- routes ---- */

static size_t smaller_limit(size_t handler, int64_t configured)
{
    size_t limit = configured > 0 ? (size_t)configured : 0;
    return !handler || (limit && limit < handler) ? limit : handler;
}

static struct sl_route_stats no_stats(const struct sl_route *route)
{
    const char *target = "";
    for (size_t i = 0; i < route->options.n && !target[0]; i++) {
        if (is_target(&route->options.rows[i]) && route->options.values[i].text.ptr)
            target = sl_arena_copy(route->pipeline->arena, sl_target_shown(route->options.values[i].text));
    }
    return (struct sl_route_stats){
        .name = route->config->name, .handler = route->config->handler, .target = target};
}

/* The option whose name the text begins with, as a path does: "counters[0].add.n: ...". */
static const struct sl_option *named_option(const struct sl_option *rows, const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (!n || !strchr(".[:", text[n]) || !text[n])
        return NULL;
    for (; rows && rows->type != SL_OPTION_END; rows++)
        if (sl_span_is(sl_span(text, n), rows->name))
            return rows;
    return NULL;
}

/* A handler names its option; only the pipeline knows where in the file it is. */
static void place_error(const struct sl_route *route, struct sl_error *error)
{
    const struct sl_option *rows = route->loaded.handler.options;
    const struct sl_option *row = error ? named_option(rows, error->text) : NULL;
    if (!row) {
        sl_error_context(error, "%s", route->config->path);
        return;
    }
    struct sl_error placed = *error;
    const char *given = route->options.values[row - rows].path;
    const char *path = given && given[0] == '$' ? given : NULL;
    placed.status = SL_OK;
    if (path)
        sl_fail(&placed, error->status, error->code, "%s%s", path, error->text + strlen(row->name));
    else
        sl_fail(&placed, error->status, error->code, "%s.%s", route->config->path, error->text);
    placed.offset = error->offset;
    *error = placed;
}

static enum sl_status open_handler(struct sl_pipeline *p, struct sl_route *route, struct sl_error *error)
{
    const struct sl_handler *handler = &route->loaded.handler;
    enum sl_status status = SL_OK;
    sl_route_enter(route);
    if (handler->open)
        status = handler->open(&sl_host_table, route, &route->self, error);
    sl_error_seal(error);
    sl_route_leave(route);
    if (status != SL_OK)
        sl_fail(error, SL_FATAL, "HandlerNotOpened", "the handler %s could not be opened and gave no reason",
                route->config->handler);
    route->is_open = status == SL_OK;
    if (status == SL_OK && p->config.view != SL_VIEW_UNKNOWN)
        status = sl_route_accepts(route, p->config.view, error);
    place_error(route, error);
    return status == SL_OK ? SL_OK : SL_FATAL;
}

/* Checks all that can be checked without touching anything outside. */
static enum sl_status prepare_route(struct sl_pipeline *p, struct sl_route *route, struct sl_error *error)
{
    const struct sl_config_route *config = route->config;
    struct sl_loader loader = {p->options.builtins, p->options.handler_path};
    enum sl_status status = sl_loader_load(&loader, config->handler, p->arena, &route->loaded, error);
    if (status != SL_OK) {
        sl_error_context(error, "%s.handler", config->path);
        return status;
    }
    route->max_records = smaller_limit(route->loaded.handler.max_records, config->max_records);
    route->max_bytes = smaller_limit(route->loaded.handler.max_bytes, config->max_bytes);
    if (config->when.ptr)
        status = compile_when(p, config->when, config->when_path, &route->when, error);
    if (status == SL_OK && !sl_when_accepts(route->when, p->config.view))
        status = sl_fail(error, SL_FATAL, "ViewType",
                         "%s: a stream of view type %s does not carry the images that it needs: enable the "
                         "stream with NEW_AND_OLD_IMAGES",
                         config->when_path, sl_view_name(p->config.view));
    if (status == SL_OK)
        status = read_options(p, route, error);
    if (status == SL_OK && config->set_aside.ptr)
        status = check_aside_target(route, error);
    route->events = sl_when_events(route->when);
    route->stats = no_stats(route);
    return status;
}

static enum sl_status open_route(struct sl_pipeline *p, struct sl_route *route, struct sl_error *error)
{
    enum sl_status status = open_targets(p, route, error);
    if (status == SL_OK)
        status = open_failure_targets(p, route, error);
    if (status == SL_OK)
        status = open_handler(p, route, error);
    return status == SL_OK ? open_aside(p, route, error) : status;
}

/* A window's state is one object: two handlers would overwrite each other's. */
static enum sl_status check_windows(const struct sl_pipeline *p, struct sl_error *error)
{
    const struct sl_route *keeper = NULL;
    for (size_t i = 0; i < p->n; i++) {
        const struct sl_route *route = &p->routes[i];
        if (!route->loaded.handler.window)
            continue;
        if (keeper)
            return sl_fail(error, SL_FATAL, INVALID,
                           "%s: keeps a window's state, and so does %s; only one route can",
                           route->config->path, keeper->config->path);
        keeper = route;
    }
    return SL_OK;
}

static size_t count_failure_urls(const struct sl_config *config)
{
    size_t n = 0;
    for (size_t i = 0; i < config->n_routes; i++)
        n += config->routes[i].on_failure.n;
    return n;
}

static enum sl_status open_routes(struct sl_pipeline *p, struct sl_error *error)
{
    const struct sl_config *config = &p->config;
    p->routes = sl_arena_zalloc(p->arena, config->n_routes * sizeof(*p->routes));
    p->targets = sl_arena_zalloc(p->arena, (count_failure_urls(config) + 1) * sizeof(*p->targets));
    for (size_t i = 0; i < config->n_routes; i++) {
        p->routes[i] = (struct sl_route){.pipeline = p, .config = &config->routes[i]};
        p->n++;
        enum sl_status status = prepare_route(p, &p->routes[i], error);
        if (status != SL_OK)
            return status;
    }
    /* All checks come first: a mistake in the last route leaves no folder that the first one created. */
    enum sl_status status = check_windows(p, error);
    for (size_t i = 0; i < p->n && status == SL_OK; i++)
        status = open_route(p, &p->routes[i], error);
    return status;
}

static enum sl_status open_spans(struct sl_pipeline *p, struct sl_error *error)
{
    if (!p->config.trace_to.ptr || !p->openers.spans)
        return SL_OK;
    enum sl_status status = p->openers.spans(p->options.sinks, p->config.trace_to, &p->spans, error);
    sl_error_context(error, "$.trace_to");
    return status;
}

enum sl_status sl_route_choose(const struct sl_pipeline *p, struct sl_span names, struct sl_arena *arena,
                               bool **chosen, struct sl_error *error)
{
    if (names.ptr && !*chosen)
        *chosen = sl_arena_zalloc(arena, p->n + 1);
    while (names.len) {
        const struct sl_span name = sl_span_cut(&names, ',');
        size_t i = sl_route_named(p, name);
        if (i == p->n)
            return sl_fail(error, SL_REJECT, "NoRoute", "the configuration has no route \"%.*s\"",
                           SL_ARG(name));
        (*chosen)[i] = true;
    }
    return SL_OK;
}

/* The names in SLUICE_OUTAGE. */
static enum sl_status mark_outages(struct sl_pipeline *p, struct sl_error *error)
{
    bool *is_out = NULL;
    struct sl_error why = SL_NO_ERROR;
    const struct sl_span names = sl_span_str(sl_vars_or(p->options.vars, "SLUICE_OUTAGE", ""));
    if (sl_route_choose(p, names, p->arena, &is_out, &why) != SL_OK)
        return sl_fail(error, SL_FATAL, INVALID, "the variable SLUICE_OUTAGE: %s", why.text);
    for (size_t i = 0; i < p->n; i++)
        if (is_out[i]) {
            p->routes[i].is_out = true;
            sl_log(p->options.log, SL_INFO, "SLUICE_OUTAGE: the target of %s is taken to be down",
                   p->routes[i].config->name);
        }
    return SL_OK;
}

enum sl_status sl_pipeline_open(const struct sl_pipeline_options *options, struct sl_pipeline **out,
                                struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    struct sl_pipeline *p = sl_arena_zalloc(arena, sizeof(*p));
    p->arena = arena;
    p->options = *options;
    p->meter = (struct sl_port_meter){.log = options->log, .clock = options->clock};
    p->openers = options->openers ? *options->openers : real_openers;
    p->is_replay = strcmp(sl_vars_or(options->vars, "SLUICE_REPLAY", ""), "1") == 0;
    if (!p->options.builtins)
        p->options.builtins = sl_builtins;
    *out = NULL;
    sl_route_watch_exit(p->options.log);
    const struct sl_vars vars = sl_sinks_vars(options->sinks, options->vars);
    enum sl_status status = sl_config_read(options->config_path, &vars, arena, &p->config, error);
    if (status == SL_OK) {
        p->options.vars = options->sinks->named = &p->config.vars;
        status = open_routes(p, error);
        if (status == SL_OK)
            status = open_spans(p, error);
        if (status == SL_OK)
            status = mark_outages(p, error);
        sl_error_context(error, "%s", options->config_path);
    }
    if (status == SL_OK) {
        *out = p;
        return SL_OK;
    }
    if (error)
        sl_sinks_hide_secrets(options->sinks, error->text);
    sl_pipeline_close(p);
    return status;
}

/* ---- closing ---- */

static void close_ports(struct sl_option_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        struct sl_option_value *value = &set->values[i];
        if (value->objects)
            value->objects->close(value->objects);
        if (value->table)
            value->table->close(value->table);
        if (value->queue)
            value->queue->close(value->queue);
    }
}

void sl_pipeline_close(struct sl_pipeline *p)
{
    if (!p)
        return;
    for (size_t i = p->n; i-- > 0;) {
        struct sl_route *route = &p->routes[i];
        sl_route_enter(route);
        if (route->is_open && route->loaded.handler.close)
            route->loaded.handler.close(route->self);
        sl_route_leave(route);
        close_ports(&route->options);
        if (route->aside.queue)
            route->aside.queue->close(route->aside.queue);
        sl_loader_unload(&route->loaded);
    }
    for (size_t i = 0; i < p->n_targets; i++) {
        struct sl_failure_target *target = &p->targets[i];
        if (target->objects)
            target->objects->close(target->objects);
        if (target->queue)
            target->queue->close(target->queue);
    }
    if (p->spans)
        p->spans->close(p->spans);
    if (p->options.sinks->named == &p->config.vars)
        p->options.sinks->named = p->options.sinks->vars;
    sl_route_watch_exit(NULL);
    sl_arena_destroy(p->arena);
}

/* ---- for reports ---- */

struct sl_span sl_pipeline_ttl_attribute(const struct sl_pipeline *p)
{
    return p->config.ttl_attribute;
}

bool sl_pipeline_reports_failures(const struct sl_pipeline *p)
{
    return p->config.reports_failures;
}

size_t sl_pipeline_routes(const struct sl_pipeline *p)
{
    return p->n;
}

struct sl_route_stats sl_pipeline_stats(const struct sl_pipeline *p, size_t route)
{
    return p->routes[route].stats;
}

void sl_pipeline_stats_reset(struct sl_pipeline *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct sl_route_stats *stats = &p->routes[i].stats;
        *stats = (struct sl_route_stats){.name = stats->name,
                                         .handler = stats->handler,
                                         .target = stats->target,
                                         .waits_in = stats->waits_in};
    }
}
