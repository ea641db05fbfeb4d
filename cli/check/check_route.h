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

#endif
