/* One call of a handler on a slice. */
#ifndef SL_HANDLERS_CALL_H
#define SL_HANDLERS_CALL_H

#include "handlers/host.h"
#include "handlers/route.h"

/* Clears the marks, calls, and tells the pipeline's watch. A handler that broke the rules of marking gets
 * SL_FATAL, "HandlerMisuse", and no mark of it is left. `error` may hold what a failed one said, or nothing.
 */
enum sl_status sl_route_call(struct sl_route *route, struct sl_slice_call *call,
                             struct sl_error *error) SL_MUST_USE;

#endif
