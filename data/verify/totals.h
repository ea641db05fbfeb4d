/* Totals: is a row of the totals the sum of its rows in the ledgers?
 *
 * For each row and attribute, D = total - sum of what the ledgers say was counted into it, over all routes
 * that share the totals, with all numbers of `shards`. No correct transaction changes D. It is 0.
 *
 * A scan is no snapshot. So the ledgers are scanned, then the totals, then the ledgers again. If a group's
 * ledger rows were the same in both scans (their orders only grow), they were so while its total was read,
 * and D is exact, but for an item that came and went between the scans: so a D that is not 0 is confirmed
 * only when no row of the ledgers changed at all, or when it was the same in SL_TOTALS_ROUNDS rounds. Groups
 * whose rows changed are tried again; what never stood still is unsettled, with the interval in which D was
 * seen. Nothing is written.
 *
 * What is read of the configuration and of the ledgers' rows is what docs/AGGREGATE.md promises. Memory: at
 * most SL_TOTALS_GROUPS groups at a time; more are verified in several passes, by their keys' hashes. */
#ifndef SL_DATA_VERIFY_TOTALS_H
#define SL_DATA_VERIFY_TOTALS_H

#include "handlers/pipeline/pipeline.h"
#include "data/verify/verify.h"

#define SL_TOTALS_GROUPS 200000 /* 100 MB */

/* `sluice repair` counts in the row, in an attribute of this name and the total's, how often it has added to
 * the total: so it sees whether another repair has done so since the row was scanned. */
#define SL_TOTALS_MARK   "sluice_added_"
#define SL_TOTALS_ROUNDS 5

/* In the place of a number that needs more digits than a number of DynamoDB has. */
#define SL_TOTALS_BEYOND "beyond 38 digits"

struct sl_totals_options {
    struct sl_pipeline *pipeline;
    struct sl_sinks *sinks;
    size_t groups;         /* at a time; 0: SL_TOTALS_GROUPS */
    const bool *is_chosen; /* by route; NULL: every route. Totals are verified when one of their routes is */

    /* A JSON line, with its newline; borrowed. */
    void (*found)(void *arg, struct sl_span line);
    /* Asked between two pages; true: the work ends. `units` may be waited for here. */
    bool (*is_stopped)(void *arg);
    void *arg;
};

/* Of all totals: rows and attributes. */
struct sl_totals_counts {
    uint64_t equal, different, unsettled;
    uint64_t not_judged; /* attributes that other routes add to, too */
    size_t targets;
};

/* SL_RETRY, SL_FATAL: something could not be read. */
enum sl_status sl_totals_verify(const struct sl_totals_options *options, struct sl_totals_counts *counts,
                                struct sl_error *error) SL_MUST_USE;

#endif
