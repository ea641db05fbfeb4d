/* Trials: has a record tried alone, and says what its end means. */
#include "handlers/dispatch/dispatch_call.h"
#include "handlers/dispatch/dispatch_private.h"
#include "handlers/dispatch/watch.h"

#include <string.h>

bool sl_dispatch_is_suspect(const struct sl_dispatch *d, const struct sl_route *route, size_t index)
{
    struct sl_call_watch *watch = d->p->options.watch;
    return watch && watch->has_suspects &&
           watch->is_suspect(watch, route->config->name, sl_batch_record(d->batch, index));
}

bool sl_dispatch_try_alone(struct sl_dispatch *d, struct sl_route *route, struct sl_trial_order *order,
                           struct sl_trial *out)
{
    struct sl_call_watch *watch = d->p->options.watch;
    order->route = (size_t)(route - d->p->routes);
    order->route_name = route->config->name;
    /* A quarter of what is reserved for the answer is grace for a handler that returns just in time. */
    order->kill_ms = order->deadline_ms + (d->deadline_ms - d->end_ms) / 4;
    *out = (struct sl_trial){.end = SL_TRIAL_UNABLE};
    if (!watch->has_suspects) /* the last trial could not be made: there is nobody left to make one */
        return false;
    const struct sl_call_time time = sl_call_time_begin(route);
    watch->try_alone(watch, order, out); /* of its time nobody here knows how much its ports took */
    sl_call_time_add(route, &time);
    route->stats.calls += out->end != SL_TRIAL_UNABLE;
    return out->end != SL_TRIAL_UNABLE;
}

void sl_dispatch_try_here(struct sl_dispatch *d, struct sl_route *route, struct sl_trial_order *order,
                          struct sl_trial *out)
{
    order->route = (size_t)(route - d->p->routes);
    *out = sl_trial_run(d->p, d->batch, order, d->request_id, d->arena);
}

/* ---- what an end means ---- */

static const struct {
    const char *code;
    bool is_fleeting; /* an outage can look like that */
} ends[] = {
    [SL_TRIAL_CRASHED] = {"HandlerCrashed", false}, [SL_TRIAL_EXITED] = {"HandlerExited", false},
    [SL_TRIAL_KILLED] = {"HandlerKilled", true},    [SL_TRIAL_TIMED_OUT] = {"HandlerTimedOut", true},
    [SL_TRIAL_MISUSED] = {"HandlerMisuse", false},  [SL_TRIAL_CLOSED] = {"HandlerClosedDescriptors", false},
};

static const char *text_of(struct sl_dispatch *d, const struct sl_trial *trial)
{
    switch (trial->end) {
    case SL_TRIAL_CRASHED:
        return sl_arena_printf(d->arena, "the handler died of SIG%s on this record alone, twice",
                               sigabbrev_np(trial->number));
    case SL_TRIAL_EXITED:
        return sl_arena_printf(d->arena,
                               "the handler ended its process on this record alone (exit status %d); it must "
                               "return a status instead",
                               trial->number);
    case SL_TRIAL_KILLED:
        return sl_arena_printf(d->arena, "the handler was killed from outside (SIG%s) on this record",
                               sigabbrev_np(trial->number));
    case SL_TRIAL_TIMED_OUT:
        return "the handler did not return from this record before the slice's deadline";
    case SL_TRIAL_CLOSED:
        return "the handler closed descriptors that are not its own on this record alone";
    default:
        return trial->error.text;
    }
}

/* Neither the handler nor the record is to blame. */
static const struct sl_why *why_elsewhere(struct sl_dispatch *d, const struct sl_trial *trial)
{
    bool is_in_port = trial->place == SL_TRIAL_IN_PORT;
    const char *text = sl_arena_printf(d->arena,
                                       "the process of its own in which this record was tried ended %s "
                                       "(%s%s), so the record is not at fault",
                                       is_in_port ? "inside a port" : "while it opened the handlers",
                                       trial->end == SL_TRIAL_EXITED ? "exit" : "SIG",
                                       trial->end == SL_TRIAL_EXITED ? "" : sigabbrev_np(trial->number));
    struct sl_why *why = sl_dispatch_why(d, SL_FATAL, is_in_port ? "PortCrashed" : "HandlerNotOpened", text);
    why->is_unproven = true;
    return why;
}

const struct sl_why *sl_dispatch_trial_why(struct sl_dispatch *d, const struct sl_trial *trial,
                                           enum sl_control control)
{
    bool is_fleeting = ends[trial->end].is_fleeting;
    if (trial->place != SL_TRIAL_IN_HANDLER && !is_fleeting)
        return why_elsewhere(d, trial);
    const char *code = ends[trial->end].code, *text = text_of(d, trial);
    if (control == SL_CONTROL_PASSED && trial->place == SL_TRIAL_IN_HANDLER)
        return sl_dispatch_why(d, SL_REJECT, code, text);
    text = sl_arena_printf(d->arena,
                           "%s; no other record of the route has passed the same trial, so this one is not "
                           "taken to be at fault",
                           text);
    struct sl_why *why = sl_dispatch_why(d, is_fleeting ? SL_RETRY : SL_FATAL, code, text);
    why->is_unproven = !is_fleeting || (control == SL_CONTROL_NONE && trial->place == SL_TRIAL_IN_HANDLER);
    return why;
}
