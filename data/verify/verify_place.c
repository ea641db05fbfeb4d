/* Places: where a verification goes on, as JSON. A table that is read, the segments that are being read, what
 * was counted, and the suspects, which are looked at from the beginning again. */
#include "base/array.h"
#include "base/json_write.h"
#include "base/span.h"
#include "data/verify/verify_private.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

/* ---- writing ---- */

static const char *const counted[] = {"equal",     "different",      "pending",
                                      "unsettled", "not_comparable", "left_out"};
#define COUNTED SL_COUNT(counted)

static uint64_t *count_of(struct sl_verify_route *r, size_t i)
{
    uint64_t *const counts[COUNTED] = {&r->equal,     &r->different,      &r->pending,
                                       &r->unsettled, &r->not_comparable, &r->left_out};
    return counts[i];
}

static void add_counts(struct sl_buffer *b, const struct verified *v)
{
    struct sl_verify_route copy = v->report;
    sl_buffer_add_char(b, '{');
    sl_json_add_raw(b, "pair", v->is_pair ? SL_LIT("true") : SL_LIT("false"));
    for (size_t i = 0; i < COUNTED; i++)
        sl_json_add_integer(b, counted[i], (int64_t)*count_of(&copy, i));
    sl_json_add_raw(b, "kinds", SL_LIT("["));
    for (size_t i = 0; i <= SL_VERDICT_NOT_JUDGED; i++)
        sl_buffer_printf(b, "%s%" PRIu64, i ? "," : "", copy.kinds[i]);
    sl_buffer_add_str(b, "]}");
}

static void add_routes(const struct sl_verify *v, struct sl_buffer *b)
{
    sl_json_add_raw(b, "routes", SL_LIT("{"));
    for (size_t i = 0; i < v->n_routes; i++) {
        sl_buffer_add_str(b, i ? "," : "");
        sl_json_add_string(b, sl_span_str(v->routes[i].report.name));
        sl_buffer_add_char(b, ':');
        add_counts(b, &v->routes[i]);
    }
    sl_buffer_add_char(b, '}');
}

static void add_active(const struct sl_verify *v, struct sl_buffer *b)
{
    bool is_first = true;
    sl_json_add_raw(b, "active", SL_LIT("["));
    for (size_t i = 0; i < SL_VERIFY_PAGES; i++) {
        const struct segment *s = &v->active[i];
        if (!s->is_open)
            continue;
        sl_buffer_printf(b, "%s{\"segment\":%u", is_first ? "" : ",", s->at.number);
        if (s->at.after) {
            sl_buffer_add_str(b, ",\"after\":");
            sl_buffer_add_char(b, '"');
            sl_json_add_exact(b, sl_span_str(s->at.after));
            sl_buffer_add_char(b, '"');
        }
        sl_buffer_add_char(b, '}');
        is_first = false;
    }
    sl_buffer_add_char(b, ']');
}

static void add_suspects(const struct sl_verify *v, struct sl_buffer *b)
{
    sl_json_add_raw(b, "suspects", SL_LIT("["));
    for (size_t i = 0; i < v->n_suspects; i++) {
        const struct suspect *s = &v->suspects[i];
        sl_buffer_add_str(b, i ? ",{" : "{");
        sl_json_add_integer(b, "route", s->route);
        sl_json_add_raw(b, "forward", s->is_forward ? SL_LIT("true") : SL_LIT("false"));
        sl_buffer_add_str(b, ",\"key\":");
        sl_buffer_add_char(b, '"');
        sl_json_add_exact(b, sl_span_str(s->key));
        sl_buffer_add_char(b, '"');
        if (s->row) {
            sl_buffer_add_str(b, ",\"row\":\"");
            sl_json_add_exact(b, sl_span_str(s->row));
            sl_buffer_add_char(b, '"');
            sl_json_add_integer(b, "table", s->table);
        }
        sl_buffer_add_char(b, '}');
    }
    sl_buffer_add_char(b, ']');
}

void sl_verify_place(const struct sl_verify *v, struct sl_buffer *b)
{
    sl_buffer_add_char(b, '{');
    sl_json_add_integer(b, "segments", v->o.segments);
    sl_json_add_integer(b, "first", v->o.first);
    sl_json_add_integer(b, "n", v->o.n);
    sl_json_add_integer(b, "table", (int64_t)v->table);
    sl_json_add_integer(b, "begun", v->begun);
    sl_json_add_integer(b, "ended", v->ended);
    sl_json_add_integer(b, "items", (int64_t)v->items);
    sl_json_add_integer(b, "rows", (int64_t)v->rows);
    add_active(v, b);
    add_routes(v, b);
    add_suspects(v, b);
    sl_buffer_add_str(b, "}\n");
}

/* ---- reading ---- */

static int64_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static bool read_active(struct sl_verify *v, const json_t *list)
{
    size_t i;
    const json_t *entry;
    size_t n = json_array_size(list);
    if (n > SL_VERIFY_PAGES || n != v->begun - v->ended) /* one that is not there would never end */
        return false;
    json_array_foreach((json_t *)list, i, entry)
    {
        const json_t *after = json_object_get(entry, "after");
        int64_t segment = number(entry, "segment");
        if (segment < 0 || segment >= v->o.segments || (after && !json_is_string(after)))
            return false;
        v->active[i] = (struct segment){.is_open = true, .at.number = (uint32_t)segment};
        if (after)
            sl_segment_go_on(&v->active[i].at, sl_span(json_string_value(after), json_string_length(after)));
    }
    return true;
}

static bool read_counts(struct sl_verify *v, const json_t *routes)
{
    if (json_object_size(routes) != v->n_routes)
        return false;
    for (size_t i = 0; i < v->n_routes; i++) {
        struct sl_verify_route *r = &v->routes[i].report;
        const json_t *counts = json_object_get(routes, r->name), *kinds = json_object_get(counts, "kinds");
        if (!counts)
            return false;
        v->routes[i].is_pair = json_is_true(json_object_get(counts, "pair"));
        for (size_t k = 0; k < COUNTED; k++)
            *count_of(r, k) = (uint64_t)number(counts, counted[k]);
        for (size_t k = 0; k <= SL_VERDICT_NOT_JUDGED; k++)
            r->kinds[k] = (uint64_t)json_integer_value(json_array_get(kinds, k));
    }
    return true;
}

static bool read_suspects(struct sl_verify *v, const json_t *list)
{
    size_t i;
    const json_t *entry;
    json_array_foreach((json_t *)list, i, entry)
    {
        int64_t route = number(entry, "route");
        const json_t *key = json_object_get(entry, "key"), *row = json_object_get(entry, "row");
        struct sl_span of = sl_span(json_string_value(key), json_string_length(key));
        int64_t table = number(entry, "table");
        if (route < 0 || (size_t)route >= v->n_routes || !json_is_string(key) ||
            (row && !json_is_string(row)) || table < 0 || (size_t)table >= v->n_tables)
            return false;
        if (row)
            sl_verify_suspect_row(v, (size_t)route, of,
                                  sl_span(json_string_value(row), json_string_length(row)), (size_t)table);
        else
            sl_verify_suspect(v, (size_t)route, of, json_is_true(json_object_get(entry, "forward")));
    }
    return true;
}

static bool read_numbers(struct sl_verify *v, const json_t *place)
{
    int64_t table = number(place, "table"), begun = number(place, "begun"), ended = number(place, "ended");
    bool is_same = number(place, "segments") == v->o.segments && number(place, "first") == v->o.first &&
                   number(place, "n") == v->o.n;
    if (!is_same || table < 0 || (size_t)table > v->n_tables || begun < 0 || begun > v->o.n || ended < 0 ||
        ended > begun)
        return false;
    v->table = (size_t)table;
    v->begun = (uint32_t)begun;
    v->ended = (uint32_t)ended;
    v->items = (uint64_t)number(place, "items");
    v->rows = (uint64_t)number(place, "rows");
    return true;
}

enum sl_status sl_verify_place_read(struct sl_verify *v, struct sl_span text, struct sl_error *error)
{
    json_t *place = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, NULL);
    bool good = place && read_numbers(v, place) && read_active(v, json_object_get(place, "active")) &&
                read_counts(v, json_object_get(place, "routes")) &&
                read_suspects(v, json_object_get(place, "suspects"));
    json_decref(place);
    return good ? SL_OK
                : sl_fail(error, SL_REJECT, "BadCheckpoint",
                          "it is damaged, or of another verification (other segments, routes or sample): "
                          "give the flags of "
                          "that one, or remove the file to begin anew");
}
