/* What the configuration says of totals: which routes share them, and where their ledgers are. */
#include "base/span.h"
#include "work/verify/totals_private.h"

#include <jansson.h>

static json_t *json_option(const struct sl_route *route, const char *name)
{
    struct sl_span text = sl_options_text(&route->options, name);
    return text.ptr ? json_loadb(text.ptr, text.len, 0, NULL) : NULL;
}

static bool is_option(const struct sl_route *route, const char *name, const char *text)
{
    return sl_span_is(sl_options_text(&route->options, name), text);
}

static struct sl_span keep(struct sl_arena *arena, const char *text)
{
    return sl_span_str(sl_arena_copy(arena, sl_span_str(text)));
}

static void add_name(struct totals_names *names, const char *name, struct sl_arena *arena)
{
    for (size_t i = 0; i < names->n; i++)
        if (sl_span_is(names->list[i], name))
            return;
    if (names->n == names->room) {
        struct sl_span *list = sl_arena_alloc(arena, (2 * names->room + 16) * sizeof(*list));
        for (size_t i = 0; i < names->n; i++)
            list[i] = names->list[i];
        names->list = list;
        names->room = 2 * names->room + 16;
    }
    names->list[names->n++] = keep(arena, name);
}

/* Can the sums be told from the ledger? */
static bool is_exact(const struct sl_route *route)
{
    return is_option(route, "expired", "subtract") && is_option(route, "per", "item") &&
           is_option(route, "mode", "exact");
}

/* The names of an object's members. */
static void add_names(struct totals_names *names, json_t *object, struct sl_arena *arena)
{
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at))
        add_name(names, json_object_iter_key(at), arena);
}

static void add_keys(struct totals *t, json_t *key, struct sl_arena *arena)
{
    for (void *at = json_object_iter(key); at && t->n_keys < 2; at = json_object_iter_next(key, at))
        if (t->n_keys == 0 || !sl_span_is(t->keys[0], json_object_iter_key(at)))
            t->keys[t->n_keys++] = keep(arena, json_object_iter_key(at));
}

static void add_attributes(struct totals *t, const struct sl_route *route, struct sl_arena *arena)
{
    json_t *counters = json_option(route, "counters");
    struct totals_names *names = is_exact(route) ? &t->counted : &t->spoiled;
    for (size_t i = 0; i < json_array_size(counters); i++) {
        json_t *counter = json_array_get(counters, i);
        add_names(names, json_object_get(counter, "add"), arena);
        add_names(names, json_object_get(counter, "distinct"), arena);
        add_names(&t->spoiled, json_object_get(counter, "running_max"), arena);
        add_names(&t->spoiled, json_object_get(counter, "running_min"), arena);
    }
    add_keys(t, json_object_get(json_array_get(counters, 0), "key"), arena);
    json_decref(counters);
}

static void add_ledger(struct totals *t, const struct sl_route *route, struct sl_arena *arena)
{
    json_t *ledger = json_option(route, "ledger");
    const char *name = json_string_value(json_object_get(ledger, "name"));
    const char *table = json_string_value(json_object_get(ledger, "table"));
    const char *key = json_string_value(json_object_get(ledger, "key"));
    struct totals_ledger *l = &t->ledgers[t->n_ledgers];
    *l = (struct totals_ledger){.route = route->config->name};
    name = name ? name : route->config->name;
    l->prefix = sl_span_str(sl_arena_printf(arena, "sluice:ledger:%s:", name));
    l->deltas = sl_span_str(sl_arena_printf(arena, "sluice:delta:%s:", name));
    l->values = sl_span_str(sl_arena_printf(arena, "sluice:distinct:%s:", name));
    l->table = table ? keep(arena, table) : sl_span(NULL, 0);
    l->key = !table ? t->keys[0] : key ? keep(arena, key) : SL_LIT("PK");
    t->n_ledgers += t->n_ledgers + 1 < TOTALS_LEDGERS;
    json_decref(ledger);
}

static struct totals *totals_of(struct totals *list, size_t *n, const struct sl_route *route)
{
    const struct sl_option_value *to = sl_options_get(&route->options, "to");
    for (size_t i = 0; i < *n; i++)
        if (sl_span_is(to->text, list[i].url))
            return &list[i];
    list[*n].url = to->text.ptr; /* followed by a NUL */
    list[*n].port = to->table;
    return &list[(*n)++];
}

size_t sl_totals_find(const struct sl_totals_options *o, struct sl_arena *arena, struct totals **out)
{
    const struct sl_pipeline *p = o->pipeline;
    size_t n = 0;
    *out = sl_arena_zalloc(arena, (p->n + 1) * sizeof(**out));
    for (size_t i = 0; i < p->n; i++) {
        const struct sl_route *route = &p->routes[i];
        if (strcmp(route->config->handler, "aggregate") != 0)
            continue;
        struct totals *t = totals_of(*out, &n, route);
        t->has_shards = t->has_shards || sl_options_get(&route->options, "shards")->integer > 0;
        t->is_chosen = t->is_chosen || ((!o->is_chosen || o->is_chosen[i]) && is_exact(route));
        add_attributes(t, route, arena);
        if (is_exact(route))
            add_ledger(t, route, arena);
    }
    return n;
}
