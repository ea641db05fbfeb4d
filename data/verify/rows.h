/* Where a route's rows are. */
#ifndef SL_DATA_VERIFY_ROWS_H
#define SL_DATA_VERIFY_ROWS_H

#include "handlers/pipeline/route.h"

/* The first table of a route that can be compared, as a row without a key, in `arena`. NULL: its handler does
 * not tell, or its port cannot list and describe. */
const struct sl_expected *sl_rows_table(struct sl_route *route, struct sl_arena *arena);

#endif
