/* Opens the source and the backfill of a work item. */
#include "runtime/work/job.h"

#include "runtime/work/item.h"

/* More than any pipeline has. */
#define ROUTES_MAX 1000

/* "a,b" as a list; the names are in the arena. */
static enum sl_status split_routes(struct sl_span text, struct sl_arena *arena,
                                   struct sl_backfill_options *out, struct sl_error *error)
{
    if (!text.ptr)
        return SL_OK;
    const char **names = sl_arena_alloc(arena, ROUTES_MAX * sizeof(*names));
    size_t n = 0;
    while (text.len) {
        const char *comma = memchr(text.ptr, ',', text.len);
        size_t len = comma ? (size_t)(comma - text.ptr) : text.len;
        if (!len)
            return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM, "\"routes\" has an empty name: write \"a,b\"");
        if (n == ROUTES_MAX)
            return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM, "\"routes\" names more than %d routes",
                           ROUTES_MAX);
        names[n++] = sl_arena_copy(arena, sl_span(text.ptr, len));
        text = sl_span_from(text, len + (comma ? 1 : 0));
    }
    out->routes = names;
    out->n_routes = n;
    return SL_OK;
}

static enum sl_status open_backfill(const struct sl_work_item *item, const struct sl_work_piece *piece,
                                    struct sl_work_job *job, struct sl_error *error)
{
    const struct sl_work *work = item->work;
    struct sl_backfill_options options = {
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
    if (split_routes(piece->routes, item->call.arena, &options, error) != SL_OK)
        return error->status;
    return sl_backfill_open(&options, &job->backfill, error);
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
