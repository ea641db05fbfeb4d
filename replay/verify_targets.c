/* Targets of a verification: opened for reading alone, and none of them the source itself. */
#include "replay/verify_targets.h"

#include "handlers/pipeline/route.h"
#include "replay/dry.h"
#include "sinks/file.h"

#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- opening ---- */

static enum sl_status read_objects(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                                   struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    struct sl_object_port *port = NULL;
    enum sl_status status = sl_dry_openers.objects(sinks, url, out, error);
    if (!sl_target_is_local(url))
        return sl_target_objects(sinks, url, out, error);
    if (status != SL_OK)
        return status;
    char *path = strndup(url.ptr + strlen("file:"), url.len - strlen("file:"));
    if (!path)
        sl_die("out of memory: a target's path");
    if (sl_file_open_to_read(path, &port, &why) == SL_OK)
        *out = port;
    free(path);
    return SL_OK;
}

static enum sl_status read_queue(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                 struct sl_error *error)
{
    return sl_dry_openers.queue(sinks, url, out, error);
}

const struct sl_openers sl_verify_openers = {
    .kind = sl_target_kind, .objects = read_objects, .table = sl_target_table_to_read, .queue = read_queue};

/* ---- which table is it? ---- */

/* sqlite:FILE?table=NAME */
static bool is_sqlite(struct sl_span url)
{
    return sl_span_starts(url, SL_LIT("sqlite:"));
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return strcmp(a, b) == 0 ||
           (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* Both are of SQLite; `name` absent: the target's own table. */
static bool is_same_sqlite(struct sl_span source, struct sl_span target, struct sl_span name,
                           struct sl_arena *arena)
{
    char *a = sl_arena_copy(arena, source), *b = sl_arena_copy(arena, target);
    char *a_name = strstr(a, "?table="), *b_name = strstr(b, "?table=");
    if (!a_name || !b_name)
        return false;
    *a_name = *b_name = '\0';
    const char *wanted = a_name + strlen("?table=");
    struct sl_span own = name.ptr ? name : sl_span_str(b_name + strlen("?table="));
    return sl_span_is(own, wanted) && same_file(a + strlen("sqlite:"), b + strlen("sqlite:"));
}

static bool is_source(const struct sl_verify_source *source, const struct sl_option_value *to,
                      struct sl_span name, const struct sl_call *call)
{
    struct sl_table_facts facts = {.n_keys = 0};
    if (is_sqlite(source->url) || is_sqlite(to->text))
        return is_sqlite(source->url) && is_sqlite(to->text) &&
               is_same_sqlite(source->url, to->text, name, call->arena);
    if (!to->table->describe || !source->facts->arn.ptr)
        return false;
    to->table->describe(to->table, name, &facts, call);
    return facts.result.status == SL_OK && sl_span_eq(facts.arn, source->facts->arn);
}

/* ---- the tables of a route ---- */

/* {"table":NAME} of an option; absent: it names none. */
static struct sl_span table_option(const struct sl_route *route, const char *option, struct sl_arena *arena)
{
    const struct sl_option_value *value = sl_options_get(&route->options, option);
    json_t *json = value && value->is_set && value->text.ptr
                       ? json_loadb(value->text.ptr, value->text.len, 0, NULL)
                       : NULL;
    const char *name = json_string_value(json_object_get(json, "table"));
    struct sl_span out = name ? sl_span_str(sl_arena_copy(arena, sl_span_str(name))) : sl_span(NULL, 0);
    json_decref(json);
    return out;
}

static bool marks_own(const struct sl_route *route)
{
    const struct sl_option_value *value = sl_options_get(&route->options, "own_rows");
    return value && value->is_set && sl_span_is(value->text, "mark");
}

static enum sl_status refuse(const struct sl_verify_source *source, const struct sl_route *route,
                             const char *what, struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "TargetIsSource",
                   "--table %s is the table that the route %s writes (its %s): give the table that it reads",
                   source->table, route->config->name, what);
}

static enum sl_status check_route(const struct sl_verify_source *source, const struct sl_route *route,
                                  const struct sl_call *call, struct sl_error *error)
{
    static const char *const further[] = {"ledger", "guard", "tombstones"};
    for (size_t i = 0; i < route->options.n; i++) {
        const struct sl_option_value *to = &route->options.values[i];
        if (!to->is_set || !to->table)
            continue;
        if (!marks_own(route) && is_source(source, to, sl_span(NULL, 0), call))
            return refuse(source, route, "target", error);
        for (size_t k = 0; k < sizeof(further) / sizeof(further[0]); k++) {
            struct sl_span name = table_option(route, further[k], call->arena);
            if (name.ptr && is_source(source, to, name, call))
                return refuse(source, route, further[k], error);
        }
    }
    return SL_OK;
}

enum sl_status sl_verify_check_source(const struct sl_verify_source *source, struct sl_pipeline *pipeline,
                                      const struct sl_call *call, struct sl_error *error)
{
    for (size_t i = 0; i < pipeline->n; i++) {
        if (source->is_chosen && !source->is_chosen[i])
            continue;
        enum sl_status status = check_route(source, &pipeline->routes[i], call, error);
        if (status != SL_OK)
            return status;
    }
    return SL_OK;
}
