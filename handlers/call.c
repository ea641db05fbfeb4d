#include "handlers/call.h"

#include "base/span.h"
#include "handlers/watch.h"

enum sl_status sl_route_call(struct sl_route *route, struct sl_slice_call *call, struct sl_error *error)
{
    struct sl_watch *watch = route->pipeline->options.watch;
    struct sl_slice *slice = &call->slice;
    memset(call->marks, 0, slice->n * sizeof(*call->marks));
    sl_route_enter(route);
    if (watch)
        watch->enter(watch, route->config->name, slice->records, slice->n);
    enum sl_status status = route->loaded.handler.handle(route->self, slice, error);
    if (watch)
        watch->leave(watch);
    sl_route_leave(route);
    route->stats.calls++;
    sl_error_seal(error);
    if (!call->is_misused && (unsigned)status <= SL_FATAL)
        return status;
    memset(call->marks, 0, slice->n * sizeof(*call->marks));
    sl_error_clear(error);
    return call->is_misused && call->misused_at >= slice->n
               ? sl_fail(error, SL_FATAL, "HandlerMisuse",
                         "the handler marked record %zu of a slice of %zu: an index is below slice->n",
                         call->misused_at, slice->n)
               : sl_fail(
                     error, SL_FATAL, "HandlerMisuse",
                     "the handler gave the outcome %d, which is none: SL_OK, SL_RETRY, SL_REJECT or SL_FATAL",
                     (int)(call->is_misused ? call->misused_status : status));
}
