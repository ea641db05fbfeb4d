/* What every room does with an open route. */
#include "handlers/pipeline/route.h"

#include "handlers/pipeline/host.h"
#include "streams/when/when.h"

#include <stdlib.h>
#include <unistd.h>

static _Thread_local struct {
    struct sl_log *log;
    pid_t pid; /* processes that a handler forked may exit */
    bool is_registered;
} watched;

static void at_exit(int status, void *unused)
{
    (void)unused;
    if (!watched.log || !watched.log->route || watched.pid != getpid())
        return;
    sl_log(watched.log, SL_ERROR,
           "the handler of route %s called exit(%d); it must return a status instead%s", watched.log->route,
           status, watched.log->request_id[0] ? "; the batch will be delivered again" : "");
    _exit(status ? status : 1);
}

void sl_route_watch_exit(struct sl_log *log)
{
    watched.log = log;
    watched.pid = getpid();
    watched.is_registered = watched.is_registered || on_exit(at_exit, NULL) == 0;
}

/* A handler is called on its pipeline's thread, and one at a time. */
static _Thread_local const struct sl_route *entered;

void sl_route_enter(struct sl_route *route)
{
    entered = route;
    route->pipeline->options.log->route = route->config->name;
}

void sl_route_leave(struct sl_route *route)
{
    entered = NULL;
    route->pipeline->options.log->route = NULL;
}

const struct sl_vars *sl_route_vars(void)
{
    return entered ? entered->pipeline->options.vars : NULL;
}

enum sl_status sl_route_per_item(struct sl_route *route, struct sl_per_item *out, struct sl_error *error)
{
    const struct sl_handler *handler = &route->loaded.handler;
    *out = (struct sl_per_item){.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(*out)}};
    if (route->when && !sl_when_is_of_keys(route->when))
        return sl_fail(
            error, SL_REJECT, "NotPerItem",
            "its \"when\" tests non-key attributes, so it may let through some changes of an item and "
            "not others");
    if (!handler->per_item)
        return sl_fail(error, SL_REJECT, "NotPerItem",
                       "the handler %s does not say that what it makes follows from the items alone",
                       route->config->handler);
    sl_route_enter(route);
    enum sl_status status = handler->per_item(route->self, out, error);
    sl_error_seal(error);
    sl_route_leave(route);
    if (status != SL_OK)
        sl_fail(error, SL_REJECT, "NotPerItem", "the handler %s cannot take items, and gave no reason",
                route->config->handler);
    return status == SL_OK ? SL_OK : SL_REJECT;
}

enum sl_status sl_route_accepts(struct sl_route *route, enum sl_view view, struct sl_error *error)
{
    unsigned bit = 1u << view;
    const struct sl_handler *handler = &route->loaded.handler;
    if (!handler->accepts || (route->views_accepted & bit))
        return SL_OK;
    sl_route_enter(route);
    enum sl_status status = handler->accepts(route->self, view, error);
    sl_error_seal(error);
    sl_route_leave(route);
    if (status == SL_OK)
        route->views_accepted |= bit;
    else
        sl_fail(error, SL_FATAL, "ViewTypeRefused", "the handler %s cannot work with the stream's view type",
                route->config->handler);
    return status == SL_OK ? SL_OK : SL_FATAL;
}
