/* `sluice check`, the part about totals. What it knows of a ledger's row is what docs/AGGREGATE.md promises:
 * its key "sluice:source:NAME", and the members of its attribute sluice_source. */
#include "cli/check/check_totals.h"

#include "base/error.h"
#include "streams/template/template.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_MS 10000

/* A route that makes totals, and mostly keeps a ledger. */
struct ledger {
    const struct sl_route *route;
    struct sl_span to;
    struct sl_totals_facts facts;
};

static struct sl_span text_option(const struct sl_route *route, const char *name)
{
    const struct sl_option_value *value = sl_options_get(&route->options, name);
    return value && value->is_set ? value->text : sl_span(NULL, 0);
}

static json_t *json_option(const struct sl_route *route, const char *name)
{
    struct sl_span text = text_option(route, name);
    return text.ptr ? json_loadb(text.ptr, text.len, 0, NULL) : NULL;
}

/* False: the route makes no totals. */
static bool totals_of(const struct sl_check_totals *c, const struct sl_route *route, struct ledger *out)
{
    if (sl_route_makes(route) != SL_MAKES_TOTALS)
        return false;
    *out = (struct ledger){.route = route, .to = text_option(route, "to")};
    sl_route_read_totals(route, c->arena, &out->facts);
    return true;
}

/* ---- what the configuration says ---- */

/* A name that goes on with ':' where the other one ends: "t:0" has rows that begin as those of "t" do. */
static bool is_below(struct sl_span name, struct sl_span other)
{
    return sl_span_starts(name, other) && name.len > other.len && name.ptr[other.len] == ':';
}

static void check_shared(const struct sl_check_totals *c, const struct ledger *l, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        struct ledger other;
        if (!totals_of(c, &c->pipeline->routes[k], &other) || !other.facts.has_ledger ||
            !sl_span_eq(other.to, l->to) || !sl_span_eq(other.facts.ledger_table, l->facts.ledger_table))
            continue;
        if (sl_span_eq(other.facts.ledger, l->facts.ledger))
            c->find(
                c->arg, SL_FINDING_LEDGER_SHARED,
                sl_arena_printf(c->arena,
                                "%s.ledger: the routes %s and %s share the ledger %.*s: what one of them has "
                                "counted, the other does not count; give each its own ledger name",
                                l->route->config->path, other.route->config->name, l->route->config->name,
                                SL_ARG(l->facts.ledger)));
        else if (is_below(l->facts.ledger, other.facts.ledger) ||
                 is_below(other.facts.ledger, l->facts.ledger))
            c->find(
                c->arg, SL_FINDING_LEDGER_SHARED,
                sl_arena_printf(c->arena,
                                "%s.ledger: the rows of the ledgers %.*s and %.*s may have the same keys, as "
                                "the names differ by what follows a ':'; choose another name",
                                l->route->config->path, SL_ARG(other.facts.ledger), SL_ARG(l->facts.ledger)));
    }
}

/* The rows of the ledger are beside the totals, and an item may say how a key begins. */
static void check_bare(const struct sl_check_totals *c, const struct ledger *l)
{
    json_t *counters = json_option(l->route, "counters"), *counter, *text;
    const char *name;
    size_t i;
    json_array_foreach(counters, i, counter)
    {
        bool is_bare = !l->facts.ledger_table.ptr;
        json_object_foreach(json_object_get(counter, "key"), name, text)
        {
            const char *key = json_string_value(text);
            is_bare = is_bare && key && key[0] == '{' && key[1] != '{';
        }
        if (is_bare)
            c->find(
                c->arg, SL_FINDING_KEY_BARE,
                sl_arena_printf(c->arena,
                                "%s.counters[%zu].key: begins with a place, and the ledger's rows are in "
                                "the same table: an item whose value begins with \"sluice:\" is rejected; "
                                "put a text before the place, as in \"CUSTOMER#{customer}\"",
                                l->route->config->path, i));
    }
    json_decref(counters);
}

#define READERS                                                                                              \
    "rows that were written with another number of shards still count: readers add up the row without a "    \
    "number and all rows with one"

static void check_shards(const struct sl_check_totals *c, const struct ledger *l)
{
    if (l->facts.shards > 0 && !c->reads_tables)
        c->find(c->arg, SL_FINDING_SHARDS_READ,
                sl_arena_printf(c->arena,
                                "%s.shards: " READERS " (--tables tells whether the number changes)",
                                l->route->config->path));
}

/* Does the template have a place of time? */
static bool names_time(const struct sl_check_totals *c, const json_t *text)
{
    struct sl_template *compiled;
    return sl_template_compile(sl_span_str(json_string_value(text)), c->pipeline->options.vars, c->arena,
                               &compiled, NULL) == SL_OK &&
           (sl_template_uses(compiled) & SL_USES_TIME);
}

/* A place of time is that of the change: a total over items then counts an item on the day of its last one.
 */
static void check_days(const struct sl_check_totals *c, const struct sl_route *route)
{
    json_t *counters = json_option(route, "counters"), *counter, *text;
    const char *name;
    size_t i;
    json_array_foreach(counters, i, counter)
    {
        json_object_foreach(json_object_get(counter, "key"), name, text)
        {
            if (names_time(c, text))
                c->find(c->arg, SL_FINDING_COUNTER_MOVES,
                        sl_arena_printf(
                            c->arena,
                            "%s.counters[%zu].key.%s: its places of time are those of the change: an item "
                            "counts where its last change puts it, and moves when it is touched; use an "
                            "attribute that stays, as in \"DAY#{created|date:yyyy-mm-dd}\", or \"per\": "
                            "\"event\" to count changes",
                            route->config->path, i, name));
        }
    }
    json_decref(counters);
}

/* ---- what the ledger says ---- */

/* {"PK":{"S":"sluice:source:NAME"}} */
static struct sl_span row_key(const struct sl_check_totals *c, const struct ledger *l)
{
    json_t *key = json_object();
    for (size_t i = 0; i < l->facts.n_ledger_keys; i++)
        json_object_set_new(
            key, sl_arena_copy(c->arena, l->facts.ledger_keys[i]),
            json_pack("{s:o}", "S", json_sprintf("sluice:source:%.*s", SL_ARG(l->facts.ledger))));
    char *text = json_dumps(key, JSON_COMPACT);
    const char *copy = sl_arena_copy(c->arena, sl_span_str(text));
    free(text);
    json_decref(key);
    return sl_span_str(copy);
}

static int64_t number_of(const json_t *map, const char *name)
{
    const char *text = json_string_value(json_object_get(json_object_get(map, name), "N"));
    return text ? strtoll(text, NULL, 10) : 0;
}

static void check_row(const struct sl_check_totals *c, const struct ledger *l, const json_t *map)
{
    int64_t shards = number_of(map, "shards"), epoch = number_of(map, "epoch");
    if (shards != l->facts.shards)
        c->find(c->arg, SL_FINDING_SHARDS_CHANGED,
                sl_arena_printf(c->arena, "%s.shards: changes from %lld to %lld: " READERS,
                                l->route->config->path, (long long)shards, (long long)l->facts.shards));
    if (epoch > l->facts.epoch)
        c->find(c->arg, SL_FINDING_EPOCH_BEHIND,
                sl_arena_printf(
                    c->arena,
                    "%s.epoch: the ledger %.*s is in epoch %lld, and a route with epoch %lld stops at "
                    "its first record: set it to %lld",
                    l->route->config->path, SL_ARG(l->facts.ledger), (long long)epoch,
                    (long long)l->facts.epoch, (long long)epoch));
    if (epoch < l->facts.epoch)
        c->find(c->arg, SL_FINDING_EPOCH_RAISED,
                sl_arena_printf(c->arena,
                                "%s.epoch: changes from %lld to %lld: backfill the table that takes over",
                                l->route->config->path, (long long)epoch, (long long)l->facts.epoch));
}

/* sqlite:FILE?table=NAME: opening a file that is not there would make it. */
static bool is_there(const struct sl_check_totals *c, struct sl_span url)
{
    const char *colon = memchr(url.ptr, ':', url.len), *end = memchr(url.ptr, '?', url.len);
    if (!sl_target_is_local(url))
        return true;
    return colon && end && colon < end &&
           access(sl_arena_copy(c->arena, sl_span(colon + 1, (size_t)(end - colon - 1))), F_OK) == 0;
}

/* That the table is not there, or has another key, is a finding of sl_check_keys. */
static bool is_said_of_the_table(const struct sl_result *result)
{
    return result->status != SL_OK && (strcmp(result->code, "ResourceNotFoundException") == 0 ||
                                       strcmp(result->code, "ValidationException") == 0);
}

static enum sl_status check_ledger(const struct sl_check_totals *c, const struct ledger *l,
                                   struct sl_error *error)
{
    struct sl_table_port *port = NULL;
    if (!is_there(c, l->to))
        return SL_OK;
    enum sl_status status = sl_target_table(c->sinks, l->to, &port, error);
    if (status != SL_OK)
        return status;
    struct sl_table_op op = {.verb = SL_TABLE_GET, .table = l->facts.ledger_table, .key = row_key(c, l)};
    struct sl_result result = {.status = SL_OK};
    const struct sl_call call = {.arena = c->arena,
                                 .deadline_ms = c->sinks->clock->now_ms(c->sinks->clock) + READ_MS};
    port->apply(port, &op, 1, &result, &call);
    port->close(port);
    if (is_said_of_the_table(&result))
        return SL_OK;
    if (result.status != SL_OK)
        return sl_fail(error, SL_FATAL, "Unreadable", "%s.to: the ledger %.*s cannot be read: %s",
                       l->route->config->path, SL_ARG(l->facts.ledger), result.text);
    json_t *row = result.item.ptr ? json_loadb(result.item.ptr, result.item.len, JSON_ALLOW_NUL, NULL) : NULL;
    if (row)
        check_row(c, l, json_object_get(json_object_get(row, "sluice_source"), "M"));
    json_decref(row);
    return SL_OK;
}

enum sl_status sl_check_totals(const struct sl_check_totals *c, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < c->pipeline->n && status == SL_OK; i++) {
        struct ledger l;
        if (!totals_of(c, &c->pipeline->routes[i], &l))
            continue;
        if (!l.facts.counts_events)
            check_days(c, l.route);
        if (!l.facts.has_ledger)
            continue;
        check_shared(c, &l, i);
        check_bare(c, &l);
        check_shards(c, &l);
        if (c->reads_tables)
            status = check_ledger(c, &l, error);
    }
    return status;
}
