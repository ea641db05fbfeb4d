/* Opens the source and the backfill of a work item. */
#include "runtime/work/job.h"

#include "handlers/pipeline/route.h"
#include "runtime/work/item.h"

static enum sl_status open_backfill(const struct sl_work_item *item, const struct sl_work_piece *piece,
                                    struct sl_work_job *job, struct sl_error *error)
{
    const struct sl_work *work = item->work;
    bool *chosen = NULL;
    enum sl_status status =
        sl_route_choose(work->options.pipeline, piece->routes, item->call.arena, &chosen, error);
    const struct sl_backfill_options options = {
        .is_chosen = chosen,
        .pipeline = work->options.pipeline,
        .source = job->source,
        .clock = work->options.clock,
        .as_of_ms = (int64_t)piece->time_ms,
        .consumer_since_ms = (int64_t)piece->since_ms,
        .any_order = piece->any_order,
        .write_units = piece->write_units,
        .request_id = item->invocation->request_id,
        .function_arn = item->invocation->function_arn,
    };
    return status == SL_OK ? sl_backfill_open(&options, &job->backfill, error) : status;
}

enum sl_status sl_work_job_open(const struct sl_work_item *item, const struct sl_work_piece *piece,
                                bool is_whole, struct sl_work_job *out, struct sl_error *error)
{
    *out = (struct sl_work_job){0};
    struct sl_source_options *options = sl_arena_zalloc(item->call.arena, sizeof(*options));
    options->sinks = item->work->options.sinks;
    enum sl_status status = sl_work_piece_open(&item->work->config, is_whole ? NULL : piece, options,
                                               &item->call, &out->source, error);
    if (status == SL_OK)
        status = open_backfill(item, piece, out, error);
    if (status != SL_OK)
        sl_work_job_close(out);
    return status;
}

void sl_work_job_close(struct sl_work_job *job)
{
    sl_backfill_close(job->backfill);
    sl_source_close(job->source);
    *job = (struct sl_work_job){0};
}
