/* Keys of tables that are there: see cli/check/check_keys.h. */
#include "cli/check/check_keys.h"

#include "aws/endpoint.h"
#include "base/array.h"
#include "base/error.h"
#include "base/span.h"
#include "handlers/pipeline/ports.h"
#include "sinks/postgres.h"
#include "cli/check/check_place.h"
#include "streams/template/template.h"

#include <jansson.h>

#define READ_MS 10000

/* A table that the configuration describes. */
struct wanted {
    const char *path;     /* of what names the key */
    bool is_source;       /* that is the source's own key */
    struct sl_span table; /* absent: the target's own */
    struct sl_span names[2];
    char types[2]; /* '\0': a text, as far as is known */
    size_t n;      /* 0: the configuration does not name the key */
    bool is_side;  /* its key is one text */
};

struct look {
    const struct sl_check_keys *c;
    const struct sl_route *route;
    struct sl_table_port *port;
    struct sl_call call;
};

static const struct sl_option_value *option(const struct look *l, const char *name)
{
    const struct sl_option_value *value = sl_options_get(&l->route->options, name);
    return value && value->is_set && value->path ? value : NULL;
}

static json_t *json_option(const struct look *l, const char *name)
{
    const struct sl_option_value *value = option(l, name);
    return value ? json_loadb(value->text.ptr, value->text.len, JSON_DECODE_ANY, NULL) : NULL;
}

static struct sl_span copy(const struct look *l, const char *text)
{
    return sl_span_str(sl_arena_copy(l->c->arena, sl_span_str(text)));
}

#define FIND(l, finding, ...) (l)->c->find((l)->c->arg, finding, sl_arena_printf((l)->c->arena, __VA_ARGS__))

/* ---- what the configuration says ---- */

/* The type that a template makes, when it is one place and that is known: of the source's key, or
 * {each_index}. */
static char type_of(const struct look *l, const char *template)
{
    const struct sl_source_keys *keys = &l->c->source_keys;
    size_t n = template ? strlen(template) : 0;
    if (n && strcmp(template, "{each_index}") == 0)
        return 'N';
    for (size_t i = 0; n > 2 && i < keys->n; i++)
        if (*template == '{' && template[n - 1] == '}' &&
            sl_span_eq(sl_span(template + 1, n - 2), keys->names[i]))
            return keys->types[i];
    return '\0';
}

static void take_names(const struct look *l, const json_t *key, struct wanted *out)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)key, name, value)
    {
        if (out->n < 2) {
            out->types[out->n] = type_of(l, json_string_value(value));
            out->names[out->n++] = copy(l, name);
        }
    }
}

static struct wanted of_target(const struct look *l)
{
    struct wanted w = {.path = option(l, "to")->path};
    bool is_totals = option(l, "counters") != NULL;
    json_t *root = json_option(l, is_totals ? "counters" : "key");
    take_names(l, is_totals ? json_object_get(json_array_get(root, 0), "key") : root, &w);
    if (w.n)
        w.path = is_totals ? sl_arena_printf(l->c->arena, "%s[0].key", option(l, "counters")->path)
                           : option(l, "key")->path;
    json_decref(root);
    return w;
}

/* False: the option names no table of its own. */
static bool of_side(const struct look *l, const char *name, struct wanted *out)
{
    json_t *root = json_option(l, name);
    const char *table = json_string_value(json_object_get(root, "table")),
               *key = json_string_value(json_object_get(root, "key"));
    *out = (struct wanted){.n = 1, .is_side = true};
    if (table) {
        out->path = sl_arena_printf(l->c->arena, "%s.%s", option(l, name)->path, key ? "key" : "table");
        out->table = copy(l, table);
        out->names[0] = copy(l, key ? key : "PK");
    }
    json_decref(root);
    return table;
}

/* ---- what the table says ---- */

static const char *key_text(const struct look *l, const struct sl_span *names, size_t n)
{
    return n == 2 ? sl_arena_printf(l->c->arena, "%.*s and %.*s", SL_ARG(names[0]), SL_ARG(names[1]))
                  : sl_arena_printf(l->c->arena, "%.*s", SL_ARG(names[0]));
}

static void check_names(const struct look *l, const struct wanted *w, const struct sl_table_facts *facts)
{
    const struct sl_span is[2] = {facts->keys[0].name, facts->keys[1].name};
    bool is_same = w->n == facts->n_keys;
    for (size_t i = 0; i < w->n; i++)
        is_same = is_same && sl_ports_has_key(facts, w->names[i]);
    if (!is_same)
        FIND(l, SL_FINDING_KEY_DIFFERS,
             "%s: %s the key %s, and the table's key is %s: every write would be refused", w->path,
             w->is_source ? "the source has" : "names", key_text(l, w->names, w->n),
             key_text(l, is, facts->n_keys));
    else if (w->is_side && facts->keys[0].type != 'S')
        FIND(l, SL_FINDING_KEY_DIFFERS, "%s: %.*s is of type %c, and the rows' keys are texts (S)", w->path,
             SL_ARG(w->names[0]), facts->keys[0].type);
}

/* A replica without `key` has the source's. */
static void check_set(const struct look *l, const struct sl_table_facts *facts)
{
    json_t *set = json_option(l, "set"), *rename = json_option(l, "rename"), *value;
    const char *name;
    json_object_foreach(set, name, value)
    {
        if (sl_ports_has_key(facts, sl_span_str(name)) && !json_object_get(rename, name))
            FIND(l, SL_FINDING_SET_ON_KEY,
                 "%s.%s: is an attribute of the table's key, which \"set\" cannot make: the route would stop "
                 "at its "
                 "first record; use \"key\", or another name",
                 option(l, "set")->path, name);
    }
    json_decref(set);
    json_decref(rename);
}

static bool names_attribute(const struct look *l, const json_t *key, struct sl_span name)
{
    const char *attribute;
    json_t *value;
    json_object_foreach((json_t *)key, attribute, value)
    {
        struct sl_template *t;
        struct sl_template_place place;
        struct sl_error why = SL_NO_ERROR;
        if (sl_template_compile(sl_span_str(json_string_value(value)), l->c->pipeline->options.vars,
                                l->c->arena, &t, &why) != SL_OK)
            continue;
        for (size_t i = 0; sl_template_place(t, i, &place); i++)
            if (place.is_whole && !place.is_path && sl_span_eq(place.name, name))
                return true;
    }
    return false;
}

/* Rows of a view have the whole key of their item in their own. */
static void check_unique(const struct look *l)
{
    json_t *key = sl_route_makes(l->route) == SL_MAKES_VIEW ? json_option(l, "key") : NULL;
    for (size_t i = 0; key && i < l->c->source_keys.n; i++) {
        struct sl_span name = l->c->source_keys.names[i];
        if (!names_attribute(l, key, name))
            FIND(l, SL_FINDING_KEY_NOT_UNIQUE,
                 "%s: no template has a place {%.*s} or {%.*s|key}, an attribute of the source's key, so two "
                 "items could make one row: the route would stop at its first record",
                 option(l, "key")->path, SL_ARG(name), SL_ARG(name));
    }
    json_decref(key);
}

/* What makes the table in PostgreSQL. */
static void say_statements(const struct look *l, const struct wanted *w, const char *why)
{
    struct sl_table_key keys[2];
    for (size_t i = 0; i < w->n; i++)
        keys[i] = (struct sl_table_key){w->names[i], w->types[i] ? w->types[i] : 'S'};
    bool has_tombstones = sl_route_makes(l->route) == SL_MAKES_ROWS && !w->is_side;
    const char *statements = w->n ? sl_postgres_statements(l->c->sinks, option(l, "to")->text, w->table, keys,
                                                           w->n, has_tombstones, l->c->arena)
                                  : NULL;
    FIND(l, SL_FINDING_TABLE_MISSING, "%s: %s%s%s", w->path, why, statements ? "\n" : "",
         statements
             ? statements
             : "; with --sample or --mapping, which tell the source's key, the statements that make it "
               "are printed");
}

static enum sl_status look_at(const struct look *l, const struct wanted *w, struct sl_error *error)
{
    struct sl_table_facts facts;
    l->port->describe(l->port, w->table, &facts, &l->call);
    if (facts.result.status != SL_OK && strcmp(facts.result.code, "ResourceNotFoundException") == 0) {
        FIND(l, SL_FINDING_TABLE_MISSING, "%s: there is no such table: %s", w->path, facts.result.text);
        return SL_OK;
    }
    if (facts.result.status != SL_OK && strcmp(facts.result.code, "NoTable") == 0) {
        say_statements(l, w, "there is no such table; make it:");
        return SL_OK;
    }
    if (facts.result.status != SL_OK && strcmp(facts.result.code, "UnfitTable") == 0) {
        FIND(l, SL_FINDING_TABLE_MISSING, "%s: %s", w->path, facts.result.text);
        return SL_OK;
    }
    if (facts.result.status != SL_OK)
        return sl_fail(error, SL_FATAL, "Unreadable", "%s: the table cannot be described: %s", w->path,
                       facts.result.text);
    if (facts.n_keys && w->n)
        check_names(l, w, &facts);
    if (!w->table.ptr && (!w->n || w->is_source))
        check_set(l, &facts);
    return SL_OK;
}

static enum sl_status look_at_all(const struct look *l, struct sl_error *error)
{
    static const char *const sides[] = {"guard", "tombstones", "ledger", "list"};
    struct wanted w = of_target(l);
    check_unique(l);
    if (!w.n && l->c->source_keys.n) {
        w.is_source = true;
        w.n = l->c->source_keys.n;
        memcpy(w.names, l->c->source_keys.names, sizeof(w.names));
        memcpy(w.types, l->c->source_keys.types, sizeof(w.types));
    }
    enum sl_status status = look_at(l, &w, error);
    for (size_t i = 0; i < SL_COUNT(sides) && status == SL_OK; i++)
        if (of_side(l, sides[i], &w))
            status = look_at(l, &w, error);
    return status;
}

/* An index of OpenSearch has no key of its own. */
static bool has_key(struct sl_span url)
{
    return !sl_span_starts(url, SL_LIT("opensearch:"));
}

enum sl_status sl_check_keys(const struct sl_check_keys *c, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < c->pipeline->n && status == SL_OK; i++) {
        const struct sl_route *route = &c->pipeline->routes[i];
        const struct sl_option_value *to = sl_options_get(&route->options, "to");
        struct sl_error why = SL_NO_ERROR;
        struct look l = {
            .c = c,
            .route = route,
            .call = {.arena = c->arena, .deadline_ms = c->sinks->clock->now_ms(c->sinks->clock) + READ_MS}};
        bool is_ours = sl_route_makes(route) == SL_MAKES_ROWS || sl_route_makes(route) == SL_MAKES_TOTALS ||
                       sl_route_makes(route) == SL_MAKES_VIEW;
        if (!is_ours || !has_key(to->text))
            continue;
        if (sl_target_table_to_read(c->sinks, to->text, &l.port, &why) != SL_OK) {
            if (strcmp(why.code, "NoTable") != 0)
                return sl_fail(error, SL_FATAL, why.code, "%s: %s", to->path, why.text);
            continue;
        }
        status = look_at_all(&l, error);
        l.port->close(l.port);
    }
    return status;
}

enum sl_status sl_check_source_keys(struct sl_check_keys *c, const char *stream_arn, struct sl_error *error)
{
    const struct sl_check_place place = sl_check_place_of_stream(stream_arn);
    if (!place.table.len)
        return SL_OK;
    const char *url = sl_endpoint_target(c->arena, "dynamodb://", sl_arena_copy(c->arena, place.table),
                                         sl_arena_copy(c->arena, place.region), NULL);
    const struct sl_call call = {.arena = c->arena,
                                 .deadline_ms = c->sinks->clock->now_ms(c->sinks->clock) + READ_MS};
    struct sl_table_port *port;
    struct sl_table_facts facts;
    if (sl_target_table_to_read(c->sinks, sl_span_str(url), &port, error) != SL_OK)
        return SL_FATAL;
    port->describe(port, sl_span(NULL, 0), &facts, &call);
    for (size_t i = 0; facts.result.status == SL_OK && i < facts.n_keys; i++) {
        c->source_keys.types[c->source_keys.n] = facts.keys[i].type;
        c->source_keys.names[c->source_keys.n++] = facts.keys[i].name;
    }
    port->close(port);
    return facts.result.status == SL_OK
               ? SL_OK
               : sl_fail(error, SL_FATAL, "Unreadable", "the stream's table cannot be described: %s",
                         facts.result.text);
}
