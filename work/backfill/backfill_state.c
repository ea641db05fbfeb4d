/* The report of a backfill as JSON, written and read: what a checkpoint or an answer keeps of it. */
#include "work/backfill/backfill_private.h"

#include "base/error.h"
#include "base/json_write.h"
#include "base/span.h"

#include <inttypes.h>
#include <jansson.h>

/* The numbers of a route, by their names. */
static const struct {
    const char *name;
    size_t at;
} numbers[] = {{"applied", offsetof(struct sl_backfill_route, applied)},
               {"repeated", offsetof(struct sl_backfill_route, repeated)},
               {"overtaken", offsetof(struct sl_backfill_route, overtaken)},
               {"outside", offsetof(struct sl_backfill_route, outside)},
               {"parked", offsetof(struct sl_backfill_route, parked)}};

#define N_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static uint64_t *number_of(struct sl_backfill_route *route, size_t i)
{
    return (uint64_t *)(void *)((char *)route + numbers[i].at);
}

/* ---- writing ---- */

static void write_route(struct sl_backfill_route *route, struct sl_buffer *out)
{
    sl_json_add_raw(out, route->name, SL_LIT("{"));
    for (size_t i = 0; i < N_NUMBERS; i++)
        sl_json_add_integer(out, numbers[i].name, (int64_t)*number_of(route, i));
    sl_buffer_add_char(out, '}');
}

void sl_backfill_write_state(const struct sl_backfill *b, struct sl_buffer *out)
{
    const struct sl_backfill_report *r = &b->report;
    sl_buffer_add_char(out, '{');
    sl_json_add_integer(out, "asOf", r->as_of_ms);
    sl_json_add_integer(out, "records", (int64_t)r->records);
    sl_json_add_integer(out, "storedBytes", (int64_t)r->stored_bytes);
    if (r->place.ptr)
        sl_json_add_raw(out, "place", r->place);
    sl_json_add_raw(out, "routes", SL_LIT("{"));
    for (size_t i = 0; i < r->n_routes; i++)
        if (!r->routes[i].left_out)
            write_route(&b->routes[i], out);
    sl_buffer_add_str(out, "}}");
}

/* ---- reading ---- */

static enum sl_status bad(struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "BadState", "the state of the backfill is not one that it wrote");
}

static bool take_number(const json_t *object, const char *name, uint64_t *out)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static enum sl_status take_route(struct sl_backfill_route *route, const json_t *counts,
                                 struct sl_error *error)
{
    if (!counts != !!route->left_out)
        return sl_fail(error, SL_REJECT, "OtherRoutes",
                       "the route %s %s the run that is to go on: run it with the same routes, or begin anew",
                       route->name, counts ? "took part in" : "took no part in");
    for (size_t i = 0; i < N_NUMBERS && counts; i++)
        if (!take_number(counts, numbers[i].name, number_of(route, i)))
            return bad(error);
    return SL_OK;
}

static enum sl_status take_routes(struct sl_backfill *b, json_t *routes, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < b->report.n_routes && status == SL_OK; i++)
        status = take_route(&b->routes[i], json_object_get(routes, b->routes[i].name), error);
    const char *name;
    json_t *counts;
    json_object_foreach(routes, name, counts)
    {
        bool is_known = false;
        for (size_t i = 0; i < b->report.n_routes; i++)
            is_known = is_known || strcmp(b->routes[i].name, name) == 0;
        if (!is_known && status == SL_OK)
            status = sl_fail(error, SL_REJECT, "OtherRoutes",
                             "the route %s took part in the run that is to go on, and is not configured any "
                             "more: begin anew",
                             name);
    }
    return status;
}

enum sl_status sl_backfill_read_state(struct sl_backfill *b, struct sl_span state, struct sl_error *error)
{
    json_t *root = json_loadb(state.ptr ? state.ptr : "", state.len, JSON_REJECT_DUPLICATES, NULL);
    json_t *routes = json_object_get(root, "routes");
    uint64_t as_of = 0;
    enum sl_status status = SL_OK;
    if (!take_number(root, "asOf", &as_of) || !take_number(root, "records", &b->report.records) ||
        !take_number(root, "storedBytes", &b->report.stored_bytes) || !json_is_object(routes))
        status = bad(error);
    if (status == SL_OK)
        status = take_routes(b, routes, error);
    if (status == SL_OK && as_of)
        b->report.as_of_ms = (int64_t)as_of;
    json_decref(root);
    return status == SL_OK && !b->options.is_plan ? sl_backfill_check(b, error) : status;
}
