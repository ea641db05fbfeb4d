/* A trial, as the process that may die of it runs it. */
#include "handlers/dispatch/trial.h"

#include "handlers/dispatch/dispatch_call.h"
#include "streams/record.h"

static struct sl_trial outcome(const struct sl_mark *mark, enum sl_status status,
                               const struct sl_error *error)
{
    struct sl_trial trial = {.end = SL_TRIAL_RETURNED, .status = mark->is_set ? mark->status : status};
    if (mark->is_set && mark->why)
        trial.error = *mark->why;
    else if (trial.status == status)
        trial.error = *error;
    return trial;
}

struct sl_trial sl_trial_run(struct sl_pipeline *p, const struct sl_batch *batch,
                             const struct sl_trial_order *order, const char *request_id,
                             struct sl_arena *arena)
{
    struct sl_route *route = &p->routes[order->route];
    const struct sl_record *record = sl_batch_record(batch, order->index);
    struct sl_mark mark = {0};
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
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = sl_route_accepts(route, sl_record_view(record), &error);
    if (status == SL_OK)
        status = sl_dispatch_call(route, &call, &error);
    struct sl_trial trial = outcome(&mark, status, &error);
    if (call.is_misused)
        trial.end = SL_TRIAL_MISUSED;
    if (call.has_closed)
        trial.end = SL_TRIAL_CLOSED;
    return trial;
}
