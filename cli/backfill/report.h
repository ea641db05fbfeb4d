/* What `sluice backfill` prints: the plan, the progress, the end. */
#ifndef SL_CLI_BACKFILL_REPORT_H
#define SL_CLI_BACKFILL_REPORT_H

#include "base/clock.h"
#include "data/backfill/backfill.h"

#include <stdio.h>

/* Which routes take part, and why the others do not. */
void sl_backfill_print_routes(const struct sl_backfill *b, FILE *out);

/* Of a plan: what a piece of the source has shown. */
struct sl_backfill_sample {
    uint64_t records, item_bytes; /* of the piece; by DynamoDB's formula */
    double units;                 /* write units that its items will cost */
};

/* Items, bytes, units, money and time of the whole source. */
struct sl_backfill_plan {
    const struct sl_source_facts *facts;
    struct sl_backfill_sample sample;
    double read_units, write_units; /* the limits; 0: none */
    bool reads_table;
};
void sl_backfill_print_plan(const struct sl_backfill_plan *plan, FILE *out);

struct sl_backfill_progress {
    struct sl_clock *clock;
    const struct sl_source_facts *facts;
    int64_t began_ms, next_ms; /* `next_ms`: of the next line; 0 at the beginning */
    uint64_t began_records;
    bool is_quiet;
};

/* Prints a line: soon after the beginning, and then every ten seconds. */
void sl_backfill_say_progress(struct sl_backfill_progress *p, const struct sl_backfill *b, FILE *out);

/* The numbers of each route. Returns whether they are those of the source, as far as it says any. */
bool sl_backfill_print_end(const struct sl_backfill *b, const struct sl_source_facts *facts, bool is_done,
                           FILE *out);

#endif
