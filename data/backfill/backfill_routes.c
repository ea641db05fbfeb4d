/* Which routes take part in a backfill, and the rules of order and time under which its end state is right.
 */
#include "data/backfill/backfill_private.h"

#include "base/error.h"
#include "base/span.h"

#include <inttypes.h>

#define DAY_MS (INT64_C(86400) * 1000)

/* ---- which routes ---- */

/* Why the route cannot take part, in the lasting arena; NULL: it can. */
static const char *why_not(struct sl_backfill *b, struct sl_route *route, struct sl_backfill_route *out)
{
    struct sl_error why = SL_NO_ERROR;
    bool is_per_item = sl_route_per_item(route, &out->facts, &why) == SL_OK;
    if (is_per_item && b->options.is_restore)
        return "it writes guards or a ledger, and what is restored has none: use replicate with \"guard\": "
               "\"none\"";
    if (!is_per_item && !(b->options.is_restore && strcmp(why.code, "NoGuard") == 0))
        return sl_arena_copy(b->lasting, sl_span_str(why.text));
    if (out->facts.needs_table && b->options.source && !sl_source_facts(b->options.source)->table_arn.ptr)
        return "what it makes names the table of its items, and the source does not say which one it is";
    return NULL;
}

/* The route's tables add what they consume to one place; NULL: to none. */
static void count_units(struct sl_route *route, struct sl_table_units *units)
{
    for (size_t i = 0; i < route->options.n; i++)
        if (route->options.values[i].table)
            route->options.values[i].table->units = units;
}

/* The pipeline outlives the backfill. */
void sl_backfill_forget_units(struct sl_backfill *b)
{
    for (size_t i = 0; i < b->options.pipeline->n; i++)
        count_units(&b->options.pipeline->routes[i], NULL);
}

enum sl_status sl_backfill_choose(struct sl_backfill *b, struct sl_error *error)
{
    struct sl_pipeline *p = b->options.pipeline;
    size_t n = 0;
    enum sl_status status = SL_OK;
    b->routes = sl_arena_zalloc(b->lasting, p->n * sizeof(*b->routes));
    for (size_t i = 0; i < p->n && status == SL_OK; i++) {
        struct sl_backfill_route *out = &b->routes[i];
        out->name = p->routes[i].config->name;
        out->left_out = why_not(b, &p->routes[i], out);
        if (b->options.is_chosen && !b->options.is_chosen[i])
            out->left_out = "it was not named";
        else if (b->options.is_chosen && out->left_out)
            status = sl_fail(error, SL_REJECT, "NotPerItem", "the route %s cannot be backfilled: %s",
                             out->name, out->left_out);
        p->routes[i].is_left_out = out->left_out != NULL;
        out->remembers_s = out->left_out ? 0 : out->facts.remembers_s;
        n += !out->left_out;
        if (!out->left_out)
            count_units(&p->routes[i], &b->units);
    }
    b->report.routes = b->routes;
    b->report.n_routes = p->n;
    if (status == SL_OK && n == 0)
        return sl_fail(error, SL_REJECT, "NoRoute", "no route can be backfilled: the first, %s: %s",
                       p->n ? b->routes[0].name : "-", p->n ? b->routes[0].left_out : "there is none");
    return status;
}

/* ---- order and time ---- */

static const char *time_text(int64_t ms, char out[SL_TIME_BYTES])
{
    sl_time_text(ms * 1000000, out);
    return out;
}

enum sl_status sl_backfill_check_order(const struct sl_backfill *b, struct sl_error *error)
{
    char as_of[SL_TIME_BYTES], since[SL_TIME_BYTES];
    if (b->options.any_order || b->options.is_restore)
        return SL_OK;
    if (!b->report.as_of_ms)
        return sl_fail(error, SL_REJECT, "NoTime",
                       "%s: does not say at which time it shows the table; give that time (--as-of)",
                       sl_source_facts(b->options.source)->name);
    time_text(b->report.as_of_ms, as_of);
    if (!b->options.consumer_since_ms)
        return sl_fail(
            error, SL_REJECT, "OrderUnknown",
            "it is not known that the stream's consumer has handled every change since %s, the time of the "
            "items: an item that was deleted in between would come back. Name the function whose mapping is "
            "to be read (--function), or the checkpoint file of the sluice tail (--consumer), or give the "
            "time since which nothing was missed (--consumer-since)",
            as_of);
    if (b->options.consumer_since_ms > b->report.as_of_ms)
        return sl_fail(
            error, SL_REJECT, "OrderWrong",
            "the consumer has handled every change since %s, and the items are of %s: an item that was "
            "deleted or changed in between would come back as it was. Take a newer export, or scan the table",
            time_text(b->options.consumer_since_ms, since), as_of);
    return SL_OK;
}

int64_t sl_backfill_due_ms(const struct sl_backfill *b)
{
    int64_t least = 0;
    for (size_t i = 0; i < b->report.n_routes; i++) {
        int64_t s = b->routes[i].remembers_s;
        least = s && (!least || s < least) ? s : least;
    }
    if (!least || b->options.any_order || b->options.is_restore)
        return INT64_MAX;
    int64_t day = least * 1000 > DAY_MS ? DAY_MS : least * 500;
    return b->report.as_of_ms + least * 1000 - day;
}

enum sl_status sl_backfill_check_due(const struct sl_backfill *b, struct sl_error *error)
{
    char as_of[SL_TIME_BYTES], due[SL_TIME_BYTES];
    int64_t now_ms = b->options.clock->wall_ns(b->options.clock) / 1000000, due_ms = sl_backfill_due_ms(b);
    if (now_ms <= due_ms)
        return SL_OK;
    return sl_fail(
        error, SL_REJECT, "TooLate",
        "the items are of %s, and since %s deletions of that time may be forgotten "
        "(tombstone_days, forget_after_days): deleted items would come back. Take a newer export, or "
        "scan the table",
        time_text(b->report.as_of_ms, as_of), time_text(due_ms, due));
}

/* ---- what it costs ---- */

#define UNIT_BYTES 1024
/* What an inline guard and its signature add to an item. */
#define GUARD_BYTES 150

double sl_backfill_item_units(const struct sl_backfill *b, uint64_t item_bytes)
{
    double units = 0;
    for (size_t i = 0; i < b->report.n_routes; i++) {
        const struct sl_backfill_route *route = &b->routes[i];
        if (!route->left_out)
            units += (double)route->facts.units_of_item *
                         (double)((item_bytes + GUARD_BYTES + UNIT_BYTES - 1) / UNIT_BYTES) +
                     (double)route->facts.units_more;
    }
    return units;
}
