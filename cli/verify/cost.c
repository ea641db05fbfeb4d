/* The cost of a verification: items, read units, money, time. */
#include "cli/verify/cost.h"

#include "handlers/pipeline/route.h"
#include "data/verify/rows.h"

#include <stdio.h>

/* One eventually consistent read of 4 KB is half a unit. */
#define UNIT_BYTES  4096.0
#define DESCRIBE_MS 10000

/* A scan, and one read by key on the other side for each item. */
static double units_of(const struct sl_table_facts *facts)
{
    double items = (double)facts->items, bytes = (double)facts->bytes;
    double each = items > 0 ? bytes / items / UNIT_BYTES : 0;
    double whole = (double)(uint64_t)each;
    each = each > whole ? whole + 1 : whole;
    return (bytes / UNIT_BYTES + items * (each > 1 ? each : 1)) / 2;
}

static bool describe_target(const struct sl_cost_question *q, struct sl_route *route, struct sl_arena *arena,
                            struct sl_table_facts *facts)
{
    struct sl_clock *clock = q->options->sinks->clock;
    const struct sl_call call = {.arena = arena, .deadline_ms = clock->now_ms(clock) + DESCRIBE_MS};
    const struct sl_expected *rows = sl_rows_table(route, arena);
    *facts = (struct sl_table_facts){.n_keys = 0};
    if (rows)
        rows->port->describe(rows->port, rows->table, facts, &call);
    return rows && facts->result.status == SL_OK;
}

void sl_cost_print(const struct sl_cost_question *q, struct sl_arena *arena)
{
    double part = (double)q->options->n / (double)q->options->segments, units = 0;
    double bytes = (double)q->facts->bytes, items = (double)q->facts->items;
    size_t comparable = 0;
    for (size_t i = 0; i < sl_verify_routes(q->work); i++) {
        const struct sl_verify_route *r = sl_verify_route(q->work, i);
        struct sl_table_facts facts;
        if (r->reason)
            continue;
        comparable++;
        if (describe_target(q, sl_route_find(q->options->pipeline, sl_span_str(r->name)), arena, &facts))
            units += units_of(&facts);
        else
            fprintf(stderr, "sluice %s: the target of %s cannot be described, and is not in the figures\n",
                    q->verb, r->name);
    }
    if (comparable)
        units += bytes / UNIT_BYTES / 2;
    units *= part;
    fprintf(stderr,
            "sluice %s: about %.0f items in %u of %u segments; about %.0f read units ($%.2f on demand at "
            "$%.3f a million)",
            q->verb, items * part, q->options->n, q->options->segments, units,
            units * SL_COST_MILLION_READS / 1e6, SL_COST_MILLION_READS);
    if (q->read_units)
        fprintf(stderr, ", %.0f minutes at %lld units a second", units / (double)q->read_units / 60,
                (long long)q->read_units);
    fputs(". Mismatches are read twice\n", stderr);
}
