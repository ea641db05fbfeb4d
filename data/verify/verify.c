/* The verification: opened, stepped, closed. */
#include "data/verify/verify.h"

#include "base/hash.h"
#include "base/span.h"
#include "streams/record.h"
#include "streams/when/when.h"
#include "data/verify/verify_private.h"

#include <stdlib.h>

#define ARENA_BYTES ((size_t)1024 * 1024)

/* A finding with its values: two items of 400 KB, their JSON with every byte escaped. */
#define LINE_BYTES ((size_t)16 * 1024 * 1024)

/* Between two looks at whether a suspect is due. */
#define IDLE_MS 200

/* ---- opening ---- */

static const char *target_of(const struct sl_route *route)
{
    return route->stats.target ? route->stats.target : "";
}

/* Why the route cannot be compared; NULL: it can. */
static const char *reason_of(struct sl_verify *v, struct verified *r, struct sl_expect *tables)
{
    struct sl_error why = SL_NO_ERROR;
    struct sl_per_item facts;
    const struct sl_handler *handler = &r->route->loaded.handler;
    if (!handler->expect)
        return sl_arena_printf(v->lasting, "the handler %s does not tell what should be there",
                               r->report.handler);
    bool may_be = handler->per_item || (r->route->when && !sl_when_is_of_keys(r->route->when));
    if (may_be && sl_route_per_item(r->route, &facts, &why) != SL_OK)
        return sl_arena_copy(v->lasting, sl_span_str(why.text));
    if (sl_verify_expect(v, r, NULL, 0, tables, &why) != SL_OK)
        return sl_arena_copy(v->lasting, sl_span_str(why.text));
    return NULL;
}

static void add_tables(struct sl_verify *v, size_t route, const struct sl_expect *tables)
{
    if (!v->routes[route].route->loaded.handler.trace)
        return;
    for (size_t i = 0; i < tables->n_rows; i++) {
        struct sl_span name = tables->rows[i].table;
        if (!tables->rows[i].port->scan)
            continue;
        if (name.ptr)
            name = sl_span(sl_arena_copy(v->lasting, name), name.len);
        v->tables[v->n_tables++] =
            (struct scanned){.port = tables->rows[i].port, .table = name, .route = (uint32_t)route};
    }
}

/* Tables that a route has at most; more are not scanned backward. */
#define ROUTE_TABLES 8

static void open_routes(struct sl_verify *v)
{
    struct sl_pipeline *p = v->o.pipeline;
    v->routes = sl_arena_zalloc(v->lasting, (p->n + 1) * sizeof(*v->routes));
    v->tables = sl_arena_zalloc(v->lasting, (p->n * ROUTE_TABLES + 1) * sizeof(*v->tables));
    v->tables[v->n_tables++] = (struct scanned){.port = v->o.source, .route = NO_ROUTE};
    for (size_t i = 0; i < p->n; i++) {
        struct verified *r = &v->routes[v->n_routes];
        struct sl_expect tables = {.n_rows = 0};
        if (v->o.is_chosen && !v->o.is_chosen[i])
            continue;
        v->n_routes++;
        r->route = &p->routes[i];
        r->lines_left = NOT_COMPARABLE_LINES;
        r->report.name = r->route->config->name;
        r->report.handler = r->route->config->handler;
        r->report.target = target_of(r->route);
        r->report.reason = reason_of(v, r, &tables);
        tables.n_rows = tables.n_rows < ROUTE_TABLES ? tables.n_rows : ROUTE_TABLES;
        if (!r->report.reason)
            add_tables(v, v->n_routes - 1, &tables);
    }
}

enum sl_status sl_verify_open(const struct sl_verify_options *options, struct sl_span place,
                              struct sl_verify **out, struct sl_error *error)
{
    struct sl_verify *v = calloc(1, sizeof(*v));
    if (!v)
        sl_die("out of memory: a verification");
    v->o = *options;
    v->clock = options->sinks->clock;
    v->lasting = sl_arena_new(ARENA_BYTES / 16);
    v->arena = sl_arena_new(ARENA_BYTES);
    sl_buffer_init(&v->line, LINE_BYTES);
    *out = v;
    open_routes(v);
    if (v->o.only_items)
        v->table = v->n_tables;
    enum sl_status status = place.ptr ? sl_verify_place_read(v, place, error) : SL_OK;
    if (status == SL_OK && !v->o.only_items && !v->o.source->scan)
        status = sl_fail(error, SL_FATAL, "NoScan", "the source table cannot be scanned");
    if (status == SL_OK)
        return SL_OK;
    sl_verify_close(v);
    *out = NULL;
    return status;
}

void sl_verify_close(struct sl_verify *v)
{
    if (!v)
        return;
    while (v->n_suspects)
        sl_verify_forget(v, v->n_suspects - 1);
    for (size_t i = 0; i < SL_VERIFY_PAGES; i++)
        sl_segment_clean_up(&v->active[i].at);
    free(v->suspects);
    sl_buffer_clean_up(&v->line);
    sl_arena_destroy(v->arena);
    sl_arena_destroy(v->lasting);
    free(v);
}

/* The key's attributes, and no others. */
static bool is_key(const struct sl_verify *v, const struct sl_batch *batch)
{
    struct sl_value key = sl_record_image(sl_batch_record(batch, 0), SL_KEYS), value;
    size_t members = 0, found = 0;
    for (struct sl_iter iter = sl_value_iter(key); sl_value_next(&iter, NULL, &value);)
        members++;
    for (size_t i = 0; i < v->o.keys.n; i++)
        found += sl_value_member(key, v->o.keys.names[i]).type != SL_NONE;
    return members == v->o.keys.n && found == members;
}

static bool is_suspected(const struct sl_verify *v, size_t route, struct sl_span key)
{
    uint64_t hash = sl_hash(key);
    for (size_t i = 0; i < v->n_suspects; i++) {
        const struct suspect *s = &v->suspects[i];
        if (s->hash == hash && s->route == route && sl_span_is(key, s->key))
            return true;
    }
    return false;
}

/* An item that is named twice is looked at once: two repairs of one look would be in each other's way. */
static enum sl_status add_item(struct sl_verify *v, size_t route, const struct sl_record *record,
                               struct sl_span key, bool is_named, struct sl_error *error)
{
    struct verified *r = &v->routes[route];
    if (r->report.reason)
        return is_named ? sl_fail(error, SL_REJECT, "NotComparable", "the route %s cannot be compared: %s",
                                  r->report.name, r->report.reason)
                        : SL_OK;
    if (!sl_when_match(r->route->when, record, v->arena)) {
        r->report.left_out++;
        return SL_OK;
    }
    if (is_suspected(v, route, key))
        return SL_OK;
    if (v->n_suspects == SL_VERIFY_SUSPECTS)
        return sl_fail(
            error, SL_REJECT, "TooMany",
            "there are more than %d items: name fewer at a time, or none and verify the whole table",
            SL_VERIFY_SUSPECTS);
    sl_verify_suspect(v, route, key, true);
    return SL_OK;
}

enum sl_status sl_verify_item(struct sl_verify *v, const char *route, struct sl_span key,
                              struct sl_error *error)
{
    struct sl_items_entry entry = {.key = key, .item = key}; /* `when` looks at the key alone */
    struct sl_batch batch;
    sl_arena_reset(v->arena);
    enum sl_status status = sl_items_decode(&entry, 1, &v->o.keys, v->o.arn, v->arena, &batch, error);
    if (status == SL_OK && !is_key(v, &batch))
        status = sl_fail(error, SL_REJECT, "BadKey", "it is not a key of the table: %.*s%s%.*s",
                         SL_ARG(v->o.keys.names[0]), v->o.keys.n > 1 ? ", " : "", SL_ARG(v->o.keys.names[1]));
    for (size_t i = 0; i < v->n_routes && status == SL_OK; i++)
        if (!route || strcmp(route, v->routes[i].report.name) == 0)
            status = add_item(v, i, sl_batch_record(&batch, 0), key, route != NULL, error);
    return status;
}

/* ---- steps ---- */

static bool is_done(const struct sl_verify *v)
{
    return v->table == v->n_tables && v->n_suspects == 0;
}

static bool any_comparable(const struct sl_verify *v)
{
    for (size_t i = 0; i < v->n_routes; i++)
        if (!v->routes[i].report.reason)
            return true;
    return false;
}

enum sl_status sl_verify_step(struct sl_verify *v, int64_t deadline_ms, struct sl_error *error)
{
    size_t n = 0;
    sl_arena_reset(v->arena);
    if (!any_comparable(v))
        v->table = v->n_tables;
    enum sl_status status = v->n_suspects ? sl_verify_look(v, deadline_ms, &n, error) : SL_OK;
    if (status != SL_OK || n > 0 || is_done(v))
        return status;
    if (v->table < v->n_tables && sl_verify_room(v) > 0)
        return sl_verify_pages(v, deadline_ms, error);
    v->clock->sleep_ms(v->clock, IDLE_MS);
    return SL_OK;
}

/* ---- what is known of it ---- */

static const char *what_of(const struct sl_verify *v)
{
    if (v->table == v->n_tables)
        return "suspects";
    return v->table == 0 ? "the source" : v->routes[v->tables[v->table].route].report.name;
}

struct sl_verify_progress sl_verify_progress(const struct sl_verify *v)
{
    return (struct sl_verify_progress){.is_done = is_done(v),
                                       .what = what_of(v),
                                       .items = v->items,
                                       .rows = v->rows,
                                       .suspects = v->n_suspects,
                                       .is_scan = v->table < v->n_tables,
                                       .segments_done = v->ended,
                                       .segments = v->o.n};
}

size_t sl_verify_routes(const struct sl_verify *v)
{
    return v->n_routes;
}

const struct sl_verify_route *sl_verify_route(const struct sl_verify *v, size_t i)
{
    return &v->routes[i].report;
}
