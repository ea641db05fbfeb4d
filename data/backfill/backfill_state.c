/* The report of a backfill as JSON, written and read: what a checkpoint or an answer keeps of it. */
#include "base/array.h"
#include "data/backfill/backfill_private.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json_write.h"
#include "base/span.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* The numbers of a route, by their names. */
static const struct {
    const char *name;
    size_t at;
} numbers[] = {{"applied", offsetof(struct sl_backfill_route, applied)},
               {"repeated", offsetof(struct sl_backfill_route, repeated)},
               {"overtaken", offsetof(struct sl_backfill_route, overtaken)},
               {"outside", offsetof(struct sl_backfill_route, outside)},
               {"parked", offsetof(struct sl_backfill_route, parked)}};

#define N_NUMBERS SL_COUNT(numbers)

static uint64_t *number_of(struct sl_backfill_route *route, size_t i)
{
    return (uint64_t *)(void *)((char *)route + numbers[i].at);
}

/* ---- what a route was configured as ---- */

/* Where a record is parked, and how many records come at once, change nothing of what is written. */
static const char *const indifferent[] = {"name", "on_failure", "max_records", "max_bytes"};

#define DIGEST_BYTES 17

static void digest_route(const struct sl_backfill *b, size_t i, char out[DIGEST_BYTES])
{
    const struct sl_config_route *config = b->options.pipeline->routes[i].config;
    json_t *members = json_copy((json_t *)(uintptr_t)config->members.object);
    for (size_t k = 0; k < SL_COUNT(indifferent); k++)
        json_object_del(members, indifferent[k]);
    char *text = json_dumps(members, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        sl_die("out of memory: a route's configuration");
    snprintf(out, DIGEST_BYTES, "%016" PRIx64, sl_hash(sl_span_str(text)));
    free(text);
    json_decref(members);
}

static void write_digests(const struct sl_backfill *b, struct sl_buffer *out)
{
    char digest[DIGEST_BYTES];
    sl_json_add_raw(out, "config", SL_LIT("{"));
    for (size_t i = 0; i < b->report.n_routes; i++) {
        if (b->routes[i].left_out)
            continue;
        digest_route(b, i, digest);
        sl_json_add_member(out, b->routes[i].name, sl_span_str(digest));
    }
    sl_buffer_add_char(out, '}');
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
    sl_buffer_add_char(out, '}');
    write_digests(b, out);
    sl_buffer_add_char(out, '}');
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

/* What was done with another target, condition or epoch is not done here. */
static enum sl_status check_digests(const struct sl_backfill *b, const json_t *digests,
                                    struct sl_error *error)
{
    char digest[DIGEST_BYTES];
    for (size_t i = 0; i < b->report.n_routes; i++) {
        const char *was = json_string_value(json_object_get(digests, b->routes[i].name));
        if (b->routes[i].left_out)
            continue;
        digest_route(b, i, digest);
        if (!was || strcmp(was, digest) != 0)
            return sl_fail(error, SL_REJECT, "OtherRoutes",
                           "the route %s is configured otherwise than in the run that is to go on, and what "
                           "that run wrote may be missing: begin anew, without the checkpoint",
                           b->routes[i].name);
    }
    return SL_OK;
}

enum sl_status sl_backfill_read_state(struct sl_backfill *b, struct sl_span state, struct sl_error *error)
{
    /* A key in the place may have a NUL in it. */
    json_t *root =
        json_loadb(state.ptr ? state.ptr : "", state.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    json_t *routes = json_object_get(root, "routes");
    uint64_t as_of = 0;
    enum sl_status status = SL_OK;
    if (!take_number(root, "asOf", &as_of) || !take_number(root, "records", &b->report.records) ||
        !take_number(root, "storedBytes", &b->report.stored_bytes) || !json_is_object(routes))
        status = bad(error);
    if (status == SL_OK)
        status = take_routes(b, routes, error);
    if (status == SL_OK)
        status = check_digests(b, json_object_get(root, "config"), error);
    if (status == SL_OK && as_of)
        b->report.as_of_ms = (int64_t)as_of;
    json_decref(root);
    return status == SL_OK && !b->options.is_plan ? sl_backfill_check(b, error) : status;
}
