/* What `sluice check` prints of a route: what it takes, the filter that the mapping could have, where it
 * writes, the view types that serve it, and where its rejected records go. */
#ifndef SL_CLI_CHECK_CHECK_ROUTE_H
#define SL_CLI_CHECK_CHECK_ROUTE_H

#include "handlers/pipeline/route.h"

/* For what is said of the price. */
struct sl_check_batch {
    size_t records;
    uint32_t item_bytes;
};

/* To standard output. */
void sl_check_route(struct sl_route *route, const struct sl_check_batch *batch, struct sl_arena *arena);

/* To standard output: the FilterCriteria of a mapping that lets through what any of the routes takes, as
 * AWS's API has it. Empty where one of them needs all, or where it would have more filters, or longer ones,
 * than every account may have. */
void sl_check_filters(const struct sl_route *routes, size_t n);

#endif
