/* One call of a handler on a slice. */
#ifndef SL_HANDLERS_DISPATCH_DISPATCH_CALL_H
#define SL_HANDLERS_DISPATCH_DISPATCH_CALL_H

#include "handlers/pipeline/host.h"
#include "handlers/pipeline/route.h"

/* Clears the marks, calls the handler, and reports both to the pipeline's watch. A handler that broke the
 * rules of marking (`is_misused`) gets SL_FATAL, "HandlerMisuse", and none of its marks remain; so does one
 * that closed descriptors of the process (`has_closed`), with "HandlerClosedDescriptors". A failed handler
 * may have left `error` empty. */
enum sl_status sl_dispatch_call(struct sl_route *route, struct sl_slice_call *call,
                                struct sl_error *error) SL_MUST_USE;

/* The time of a call of a handler, and of the ports that it called: taken before, and added to the route's
 * stats after. */
struct sl_call_time {
    int64_t began_ns;
    uint64_t sink_ns;
};
struct sl_call_time sl_call_time_begin(const struct sl_route *route);
void sl_call_time_add(struct sl_route *route, const struct sl_call_time *time);

#endif
