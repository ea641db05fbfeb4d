/* One call of a handler on a slice. */
#include "handlers/dispatch/dispatch_call.h"

#include "base/span.h"
#include "handlers/dispatch/watch.h"
#include "streams/record.h"

#include <stdio.h>

#define STATUSES "which is not a status (use SL_OK, SL_RETRY, SL_REJECT or SL_FATAL)"

static struct sl_span number_of(const struct sl_slice *slice, size_t i)
{
    return sl_record_text(slice->records[i], SL_FIELD_IDENTIFIER);
}

/* Adds to the error which records the handler held. */
static void name_records(const struct sl_slice *slice, size_t first, size_t last, struct sl_error *error)
{
    size_t n = strlen(error->text);
    if (first == last)
        snprintf(error->text + n, sizeof(error->text) - n, "; the record has sequence number %.*s",
                 SL_ARG(number_of(slice, first)));
    else
        snprintf(error->text + n, sizeof(error->text) - n,
                 "; it held %zu records, sequence numbers %.*s to %.*s", last - first + 1,
                 SL_ARG(number_of(slice, first)), SL_ARG(number_of(slice, last)));
}

static enum sl_status misuse(const struct sl_slice_call *call, enum sl_status status, struct sl_error *error)
{
    static const char code[] = "HandlerMisuse";
    bool is_marked = call->is_misused && call->misused_at < call->slice.n;
    if ((unsigned)status > SL_FATAL)
        sl_fail(error, SL_FATAL, code, "the handler returned %d, " STATUSES, (int)status);
    else if (is_marked)
        sl_fail(error, SL_FATAL, code, "the handler marked record %zu with %d, " STATUSES, call->misused_at,
                (int)call->misused_status);
    else
        sl_fail(error, SL_FATAL, code,
                "the handler marked record %zu of a slice of %zu; an index must be below slice->n",
                call->misused_at, call->slice.n);
    if (is_marked)
        name_records(&call->slice, call->misused_at, call->misused_at, error);
    else
        name_records(&call->slice, 0, call->slice.n - 1, error);
    return SL_FATAL;
}

static enum sl_status closed(const struct sl_slice_call *call, struct sl_error *error)
{
    sl_fail(error, SL_FATAL, "HandlerClosedDescriptors",
            "the handler closed descriptors that are not its own, so this process ends");
    name_records(&call->slice, 0, call->slice.n - 1, error);
    return SL_FATAL;
}

struct sl_call_time sl_call_time_begin(const struct sl_route *route)
{
    const struct sl_port_meter *meter = &route->pipeline->meter;
    return (struct sl_call_time){meter->clock->now_ns(meter->clock), meter->ns};
}

void sl_call_time_add(struct sl_route *route, const struct sl_call_time *time)
{
    const struct sl_port_meter *meter = &route->pipeline->meter;
    const int64_t now_ns = meter->clock->now_ns(meter->clock);
    uint64_t all = (uint64_t)(now_ns - time->began_ns);
    uint64_t sinks = meter->ns - time->sink_ns;
    if (!route->ended_ns)
        route->began_ns = time->began_ns;
    route->ended_ns = now_ns;
    route->stats.sink_ns += sinks;
    route->stats.handle_ns += all > sinks ? all - sinks : 0;
}

enum sl_status sl_dispatch_call(struct sl_route *route, struct sl_slice_call *call, struct sl_error *error)
{
    struct sl_call_watch *watch = route->pipeline->options.watch;
    struct sl_slice *slice = &call->slice;
    memset(call->marks, 0, slice->n * sizeof(*call->marks));
    if (route->is_out)
        return sl_fail(error, SL_FATAL, SL_OUTAGE,
                       "SLUICE_OUTAGE names the route: its target is taken to be down");
    sl_route_enter(route);
    if (watch)
        watch->enter(watch, route->config->name, slice->records, slice->n);
    const struct sl_call_time time = sl_call_time_begin(route);
    enum sl_status status = route->loaded.handler.handle(route->self, slice, error);
    sl_call_time_add(route, &time);
    call->has_closed = watch && !watch->is_whole(watch);
    if (watch && !call->has_closed)
        watch->leave(watch);
    sl_route_leave(route);
    route->stats.calls++;
    sl_error_seal(error);
    call->is_misused = call->is_misused || (unsigned)status > SL_FATAL;
    if (!call->is_misused && !call->has_closed)
        return status;
    memset(call->marks, 0, slice->n * sizeof(*call->marks));
    sl_error_clear(error);
    return call->has_closed ? closed(call, error) : misuse(call, status, error);
}
