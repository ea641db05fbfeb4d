/* Places that two writers share: see cli/check/check_shared.h. */
#include "cli/check/check_shared.h"

#include "base/arn.h"
#include "base/array.h"
#include "base/span.h"
#include "cli/check/check_place.h"

#include <jansson.h>

/* A table that a route writes. */
struct writer {
    const struct sl_route *route;
    const char *path;    /* of the option that names it */
    const char *side;    /* what it keeps there beside its target: "guards"; NULL: it is the target */
    struct sl_span key;  /* of a side table */
    struct sl_span name; /* of a view */
    struct sl_check_place place;
};

/* Of each route its target and two side tables at most. */
struct writers {
    const struct sl_check_shared *c;
    struct writer *list;
    size_t n;
};

static struct sl_span text_of(const struct sl_route *route, const char *option)
{
    const struct sl_option_value *value = sl_options_get(&route->options, option);
    return value && value->is_set ? value->text : sl_span(NULL, 0);
}

/* Of an option that is given. */
static const char *path_of(const struct sl_route *route, const char *option)
{
    return sl_options_get(&route->options, option)->path;
}

#define FIND(c, finding, ...) (c)->find((c)->arg, finding, sl_arena_printf((c)->arena, __VA_ARGS__))

/* ---- what is written ---- */

/* {"table": NAME, "key": NAME}: an option that names a table beside the target. */
static void add_side(struct writers *w, const struct writer *target, const char *option, const char *what)
{
    struct sl_arena *arena = w->c->arena;
    struct sl_span json = text_of(target->route, option);
    json_t *root = json.len ? json_loadb(json.ptr, json.len, JSON_DECODE_ANY, NULL) : NULL;
    const char *table = json_string_value(json_object_get(root, "table")),
               *key = json_string_value(json_object_get(root, "key"));
    if (table) {
        struct writer *side = &w->list[w->n++];
        *side = *target;
        side->path = sl_arena_printf(arena, "%s.table", path_of(target->route, option));
        side->side = what;
        side->key = sl_span_str(sl_arena_copy(arena, sl_span_str(key ? key : "PK")));
        side->place =
            sl_check_place_beside(target->place, sl_span_str(sl_arena_copy(arena, sl_span_str(table))));
    }
    json_decref(root);
}

/* "list": {"name": ...}, or the route's. */
static struct sl_span name_of(const struct writers *w, const struct sl_route *route)
{
    struct sl_span json = text_of(route, "list");
    json_t *root = json.len ? json_loadb(json.ptr, json.len, JSON_DECODE_ANY, NULL) : NULL;
    const char *name = json_string_value(json_object_get(root, "name"));
    struct sl_span out =
        sl_span_str(sl_arena_copy(w->c->arena, sl_span_str(name ? name : route->config->name)));
    json_decref(root);
    return out;
}

static void add_route(struct writers *w, const struct sl_route *route)
{
    bool is_replicate = sl_route_makes(route) == SL_MAKES_ROWS,
         is_aggregate = sl_route_makes(route) == SL_MAKES_TOTALS,
         is_view = sl_route_makes(route) == SL_MAKES_VIEW;
    if (!is_replicate && !is_aggregate && !is_view)
        return;
    struct writer target = {.route = route, .path = path_of(route, "to")};
    target.place = sl_check_place_of(text_of(route, "to"), w->c->pipeline->options.vars, w->c->arena);
    if (is_view)
        target.name = name_of(w, route);
    w->list[w->n++] = target;
    if (is_replicate) {
        add_side(w, &target, "guard", "guards");
        add_side(w, &target, "tombstones", "tombstones' marks");
    } else if (is_view) {
        add_side(w, &target, "list", "lists");
    } else if (!sl_span_is(text_of(route, "mode"), "at-least-once")) {
        add_side(w, &target, "ledger", "ledger");
    }
}

/* ---- tables ---- */

/* Two replicas in one table: their items are one another's, unless each has keys of its own. */
static const char *fault_of_replicas(const struct writer *a, const struct writer *b)
{
    static const char *const same[] = {"guard", "guard_attribute", "write_attribute", "deleted_attribute",
                                       "tombstones"};
    if (sl_span_eq(text_of(a->route, "key"), text_of(b->route, "key")))
        return "each writes the whole item of a key, so one undoes the other; give each a \"key\" or a table "
               "of its own";
    for (size_t i = 0; i < SL_COUNT(same); i++)
        if (!sl_span_eq(text_of(a->route, same[i]), text_of(b->route, same[i])))
            return "they keep their guards in different ways, so neither respects the other's; set guard, "
                   "tombstones "
                   "and their attributes alike";
    return NULL;
}

static const char *fault_of(const struct writer *a, const struct writer *b)
{
    enum sl_makes makes = sl_route_makes(a->route);
    bool is_same = makes == sl_route_makes(b->route);
    if (is_same && makes == SL_MAKES_VIEW && !a->side == !b->side && sl_span_eq(a->name, b->name))
        return "both views have one name, so each takes the other's rows for its own; give one of them "
               "another "
               "with \"list\": {\"name\": ...}";
    if (a->side && b->side)
        return sl_span_eq(a->key, b->key) ? NULL
                                          : "they name its partition key differently, and a table has one";
    if (!a->side && !b->side && !is_same)
        return "the rows of different handlers are not told apart: a verification takes the ones for the "
               "other's "
               "leftovers; use another table";
    if (!a->side && !b->side)
        return makes == SL_MAKES_ROWS ? fault_of_replicas(a, b) : NULL;
    return is_same && makes != SL_MAKES_ROWS
               ? NULL
               : "rows that a route keeps for itself get among another's items; use another "
                 "table for them";
}

static void check_pair(const struct sl_check_shared *c, const struct writer *a, const struct writer *b)
{
    const char *fault =
        a->route != b->route && sl_check_place_is(&a->place, &b->place) ? fault_of(a, b) : NULL;
    if (fault)
        FIND(c, SL_FINDING_TABLE_SHARED, "%s: %.*s is also the table of the %s of the route %s: %s", b->path,
             SL_ARG(b->place.table), a->side ? a->side : "target", a->route->config->name, fault);
}

static void check_source(const struct sl_check_shared *c, const struct writer *w)
{
    struct sl_span own = text_of(w->route, "source");
    struct sl_check_place stream = sl_check_place_of_stream(c->stream_arn),
                          source = sl_check_place_of(own, c->pipeline->options.vars, c->arena);
    bool is_marked = sl_span_is(text_of(w->route, "own_rows"), "mark");
    if (own.len && !w->side && sl_check_place_is(&source, &w->place))
        FIND(c, SL_FINDING_SOURCE_IS_TARGET,
             "%s: is the table of \"to\": items would be read back from the replica",
             path_of(w->route, "source"));
    if (!is_marked && sl_check_place_is(&stream, &w->place))
        FIND(c, SL_FINDING_SOURCE_IS_TARGET,
             "%s: %.*s is the table that the mapping's stream is of: what the route writes there would come "
             "back "
             "as a change",
             w->path, SL_ARG(w->place.table));
}

/* Through Kinesis a change has a time and no number. */
static void check_order(const struct sl_check_shared *c, const struct sl_route *route)
{
    bool is_kinesis = sl_span_is(sl_arn_part(sl_span_str(c->stream_arn), 2), "kinesis");
    bool is_replica =
        sl_route_makes(route) == SL_MAKES_ROWS && !sl_span_is(text_of(route, "guard"), "\"none\"");
    if (is_kinesis && is_replica && !text_of(route, "source").len)
        FIND(c, SL_FINDING_ORDER_TIED,
             "%s: a Kinesis stream orders changes by their time alone, and of two changes of an item in one "
             "unit of it the replica may keep the wrong one: name the table in \"source\", which is asked "
             "then, and set the table's Kinesis destination to MICROSECOND",
             route->config->path);
    else if (is_kinesis && is_replica && !sl_span_is(text_of(route, "expired"), "delete"))
        FIND(c, SL_FINDING_ORDER_TIED,
             "%s: two changes of an item in one unit of a Kinesis stream's time are settled by the source, "
             "and an item that is not there any more does not say whether it expired: such a removal may be "
             "missed. Set the table's Kinesis destination to MICROSECOND, so that this is rare",
             path_of(route, "expired"));
    if (is_kinesis && sl_route_makes(route) == SL_MAKES_VIEW)
        FIND(c, SL_FINDING_ORDER_NEEDED,
             "%s: a Kinesis stream orders changes by their time alone, and a view needs to know of two "
             "changes "
             "which is the last: the route would stop at its first record; follow the table's own stream",
             route->config->path);
    if (is_kinesis && sl_route_makes(route) == SL_MAKES_TOTALS && !sl_span_is(text_of(route, "per"), "event"))
        FIND(c, SL_FINDING_TOTALS_TIED,
             "%s: a Kinesis stream orders changes by their time alone, and of two changes of an item in one "
             "unit of it the totals may count the wrong one until the item changes again: set the table's "
             "Kinesis destination to MICROSECOND, and let `sluice verify` compare the totals",
             route->config->path);
}

/* ---- objects, and rejected records ---- */

static void check_archives(const struct sl_check_shared *c, const struct sl_route *a,
                           const struct sl_route *b)
{
    if (sl_route_makes(a) == SL_MAKES_OBJECTS && sl_route_makes(b) == SL_MAKES_OBJECTS &&
        sl_span_eq(text_of(a, "to"), text_of(b, "to")) && sl_span_eq(text_of(a, "key"), text_of(b, "key")))
        FIND(c, SL_FINDING_OBJECTS_SHARED,
             "%s: the route %s writes into the same folder, with the same \"key\": a reader finds records "
             "twice, "
             "and cannot tell which route they are of; give each its own folder",
             path_of(b, "to"), a->config->name);
}

static void check_failures(const struct sl_check_shared *c, const struct sl_route *parks,
                           const struct sl_route *writes)
{
    struct sl_span to = text_of(writes, "to");
    for (size_t i = 0; i < parks->n_targets; i++)
        if (to.len && sl_span_eq(parks->targets[i]->url, to))
            FIND(c, SL_FINDING_FAILURES_MIXED,
                 "%s: the rejected records of the route %s are parked there, too: its readers get them among "
                 "what "
                 "they wait for, and redrive reads both; use another target for one of them",
                 path_of(writes, "to"), parks->config->name);
}

void sl_check_shared(const struct sl_check_shared *c)
{
    const struct sl_pipeline *p = c->pipeline;
    struct writers w = {.c = c, .list = sl_arena_alloc(c->arena, 3 * p->n * sizeof(*w.list))};
    for (size_t i = 0; i < p->n; i++) {
        add_route(&w, &p->routes[i]);
        check_order(c, &p->routes[i]);
    }
    for (size_t i = 0; i < w.n; i++) {
        check_source(c, &w.list[i]);
        for (size_t k = 0; k < i; k++)
            check_pair(c, &w.list[k], &w.list[i]);
    }
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->n; k++) {
            if (k < i)
                check_archives(c, &p->routes[k], &p->routes[i]);
            check_failures(c, &p->routes[k], &p->routes[i]);
        }
}
