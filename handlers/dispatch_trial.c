#include "base/span.h"
#include "handlers/call.h"
#include "handlers/dispatch_run.h"
#include "handlers/watch.h"
#include "streams/record.h"

#include <string.h>

/* ---- elsewhere ---- */

static void take_outcome(const struct sl_mark *mark, enum sl_status status, const struct sl_error *error,
                         struct sl_trial *out)
{
    bool is_marked = mark->is_set;
    out->end = SL_TRIAL_RETURNED;
    out->status = is_marked ? mark->status : status;
    if (is_marked && mark->why)
        out->error = *mark->why;
    else if (out->status == status)
        out->error = *error;
}

void sl_trial_run(struct sl_pipeline *p, const struct sl_batch *batch, const struct sl_trial_order *order,
                  const char *request_id, struct sl_arena *arena, struct sl_trial *out)
{
    struct sl_route *route = &p->routes[order->route];
    const struct sl_record *record = sl_batch_record(batch, order->index);
    struct sl_mark mark;
    struct sl_slice_call call = {
        .slice = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(struct sl_slice)},
                  .records = &record,
                  .n = 1,
                  .deadline_ms = order->deadline_ms,
                  .arena = arena,
                  .request_id = request_id,
                  .attempt = order->attempt},
        .marks = &mark,
    };
    struct sl_error error = {0};
    *out = (struct sl_trial){.end = SL_TRIAL_RETURNED};
    out->status = sl_route_accepts(route, sl_record_view(record), &out->error);
    if (out->status == SL_OK) {
        enum sl_status status = sl_route_call(route, &call, &error);
        take_outcome(&mark, status, &error, out);
    }
}

/* ---- here ---- */

bool sl_run_is_suspect(const struct sl_run *run, size_t i)
{
    struct sl_watch *watch = run->d->p->options.watch;
    if (!watch || !watch->has_suspects)
        return false;
    const struct sl_record *record = sl_batch_record(run->d->batch, run->entries[i].index);
    return watch->is_suspect(watch, run->route->config->name, record);
}

bool sl_run_alone(struct sl_run *run, size_t i, unsigned attempt, struct sl_trial *out)
{
    struct sl_dispatch *d = run->d;
    struct sl_watch *watch = d->p->options.watch;
    /* A quarter of what is kept for the answer goes to a handler that only just returns. */
    int64_t grace_ms = (d->invocation->deadline_ms - d->end_ms) / 4;
    const struct sl_trial_order order = {
        .route = (size_t)(run->route - d->p->routes),
        .index = run->entries[i].index,
        .attempt = attempt,
        .deadline_ms = run->deadline_ms,
        .kill_ms = run->deadline_ms + grace_ms,
    };
    *out = (struct sl_trial){.end = SL_TRIAL_UNABLE};
    watch->try_alone(watch, &order, out);
    run->route->stats.calls += out->end != SL_TRIAL_UNABLE;
    return out->end != SL_TRIAL_UNABLE;
}

const struct sl_why *sl_trial_why(struct sl_dispatch *d, const struct sl_trial *trial)
{
    switch (trial->end) {
    case SL_TRIAL_CRASHED:
        return sl_why_new(d, SL_REJECT, "HandlerCrashed",
                          sl_arena_printf(d->arena, "the handler died of SIG%s on this record alone, twice",
                                          sigabbrev_np(trial->number)));
    case SL_TRIAL_EXITED:
        return sl_why_new(d, SL_FATAL, "HandlerExited",
                          sl_arena_printf(d->arena,
                                          "the handler ended its process on this record (exit status %d); a "
                                          "handler reports by its outcome, and the process goes on",
                                          trial->number));
    case SL_TRIAL_KILLED:
        return sl_why_new(d, SL_RETRY, "HandlerKilled",
                          sl_arena_printf(d->arena,
                                          "the handler was killed on this record from outside (SIG%s)",
                                          sigabbrev_np(trial->number)));
    case SL_TRIAL_TIMED_OUT:
        return sl_why_new(d, SL_RETRY, "HandlerTimedOut",
                          "the handler did not come back from this record before the slice's deadline");
    default:
        return NULL;
    }
}
