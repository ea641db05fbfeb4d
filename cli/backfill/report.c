/* What `sluice backfill` prints: the plan, the progress, the end. */
#include "cli/backfill/report.h"

#include "base/span.h"

#include <inttypes.h>

#define FIRST_MS    2000
#define PROGRESS_MS 10000

/* us-east-1, on demand, since November 2024: US dollars for a million request units. */
#define WRITE_DOLLARS 0.625
#define READ_DOLLARS  0.125

void sl_backfill_print_routes(const struct sl_backfill *b, FILE *out)
{
    const struct sl_backfill_report *r = sl_backfill_report(b);
    for (size_t i = 0; i < r->n_routes; i++)
        if (r->routes[i].left_out)
            fprintf(out, "route %s is left out: %s\n", r->routes[i].name, r->routes[i].left_out);
}

static void duration(double s, char out[32])
{
    if (s < 120)
        snprintf(out, 32, "%.0f s", s);
    else if (s < 7200)
        snprintf(out, 32, "%.0f min", s / 60);
    else if (s < 172800)
        snprintf(out, 32, "%.1f h", s / 3600);
    else
        snprintf(out, 32, "%.1f days", s / 86400);
}

/* ---- the plan ---- */

static double times(const struct sl_backfill_plan *plan)
{
    bool is_known = plan->facts->items && plan->sample.records;
    return is_known ? (double)plan->facts->items / (double)plan->sample.records : 1;
}

static void print_cost(const struct sl_backfill_plan *plan, FILE *out)
{
    char text[32];
    double writes = plan->sample.units * times(plan), seconds = 0;
    /* Consistent reads: a unit for each 4 KB. */
    double reads = plan->reads_table ? (double)plan->sample.item_bytes * times(plan) / 4096 + 1 : 0;
    fprintf(out,
            "write units      %.0f, about $%.2f (on demand, us-east-1: $%.3f a million; refused writes are "
            "billed too)\n",
            writes, writes / 1e6 * WRITE_DOLLARS, WRITE_DOLLARS);
    if (plan->reads_table)
        fprintf(out, "read units       %.0f, about $%.2f\n", reads, reads / 1e6 * READ_DOLLARS);
    if (plan->write_units > 0)
        seconds = writes / plan->write_units;
    if (plan->read_units > 0 && reads / plan->read_units > seconds)
        seconds = reads / plan->read_units;
    duration(seconds, text);
    if (seconds > 0)
        fprintf(out, "time             %s at least, at the limits given\n", text);
}

void sl_backfill_print_plan(const struct sl_backfill_plan *plan, FILE *out)
{
    char text[SL_TIME_BYTES];
    const struct sl_source_facts *facts = plan->facts;
    fprintf(out, "source           %s\n", facts->name);
    if (facts->table_arn.ptr)
        fprintf(out, "table            %.*s\n", SL_ARG(facts->table_arn));
    if (facts->time_ms) {
        sl_time_text(facts->time_ms * 1000000, text);
        fprintf(out, "as of            %s\n", text);
    }
    if (facts->n_files)
        fprintf(out, "files            %zu\n", facts->n_files);
    if (facts->items)
        fprintf(out, "items            %" PRIu64 "\n", facts->items);
    else
        fprintf(out, "items            not known: what follows is of the first %" PRIu64 " alone\n",
                plan->sample.records);
    fprintf(out, "bytes            %" PRIu64 " stored, about %.0f as items\n", facts->bytes,
            (double)plan->sample.item_bytes * times(plan));
    print_cost(plan, out);
}

/* ---- progress ---- */

static void say_left(const struct sl_backfill_progress *p, const struct sl_backfill_report *r, double seconds,
                     FILE *out)
{
    char text[32];
    double all = (double)p->facts->items;
    if (!p->facts->items || r->records <= p->began_records)
        return;
    double done = (double)r->records / all, before = (double)p->began_records / all;
    done = done > 1 ? 1 : done; /* a table's number is an estimate */
    duration(done > before ? seconds * (1 - done) / (done - before) : 0, text);
    fprintf(out, ", %.1f %%, about %s left", 100 * done, text);
}

void sl_backfill_say_progress(struct sl_backfill_progress *p, const struct sl_backfill *b, FILE *out)
{
    const struct sl_backfill_report *r = sl_backfill_report(b);
    int64_t now = p->clock->now_ms(p->clock);
    if (p->next_ms == 0)
        p->next_ms = p->began_ms + FIRST_MS;
    if (p->is_quiet || now < p->next_ms)
        return;
    p->next_ms = now + PROGRESS_MS;
    double seconds = (double)(now - p->began_ms) / 1000;
    fprintf(out, "sluice backfill: %" PRIu64 " items, %.0f a second", r->records,
            (double)(r->records - p->began_records) / seconds);
    if (r->write_units > 0)
        fprintf(out, ", %.0f write units a second", r->write_units / seconds);
    say_left(p, r, seconds, out);
    fputc('\n', out);
}

/* ---- the end ---- */

/* More refusals than a busy table makes while it is read. */
static bool is_much(const struct sl_backfill_route *route, uint64_t records)
{
    return route->overtaken > 10 && route->overtaken * 100 > records;
}

static void print_route(const struct sl_backfill_route *route, FILE *out)
{
    fprintf(out,
            "route %-12s %" PRIu64 " written, %" PRIu64 " there already, %" PRIu64 " overtaken, %" PRIu64
            " not its own, %" PRIu64 " parked\n",
            route->name, route->applied, route->repeated, route->overtaken, route->outside, route->parked);
}

bool sl_backfill_print_end(const struct sl_backfill *b, const struct sl_source_facts *facts, bool is_done,
                           FILE *out)
{
    const struct sl_backfill_report *r = sl_backfill_report(b);
    bool is_whole = true;
    fprintf(out, "%-18s %" PRIu64, facts->is_items ? "items" : "records", r->records);
    if (facts->n_files && is_done) { /* an export says how many there are; a table's number is an estimate */
        is_whole = r->records == facts->items;
        fprintf(out, is_whole ? ", as the manifest says" : ", but the manifest says %" PRIu64, facts->items);
    }
    fputc('\n', out);
    for (size_t i = 0; i < r->n_routes; i++)
        if (!r->routes[i].left_out)
            print_route(&r->routes[i], out);
    for (size_t i = 0; i < r->n_routes; i++)
        if (!r->routes[i].left_out && is_much(&r->routes[i], r->records))
            fprintf(out,
                    "route %s: %" PRIu64 " items (%.1f %%) already had newer changes. Normal after tail or a "
                    "function that runs. After a gap in the stream they may be wrong: `sluice verify` tells, "
                    "`sluice repair` or a new \"epoch\" heals it (docs/BACKFILL.md)\n",
                    r->routes[i].name, r->routes[i].overtaken,
                    100 * (double)r->routes[i].overtaken / (double)r->records);
    return is_whole;
}
