/* What `sluice check` prints of a route: what it takes, the filter that the mapping could have, where it
 * writes, the view types that serve it, and where its rejected records go. */
#ifndef SL_REPLAY_CHECK_ROUTE_H
#define SL_REPLAY_CHECK_ROUTE_H

#include "handlers/pipeline/route.h"

/* To standard output. */
void sl_check_route(struct sl_route *route);

#endif
