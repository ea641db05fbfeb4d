/* Opens what a piece of a verification reads. */
#include "runtime/work/verify.h"

#include "data/verify/source.h"

static int64_t on_through(void *arg)
{
    const struct sl_work_verification *v = arg;
    return v->clock->wall_ns(v->clock) / 1000000 - (int64_t)v->piece.max_lag_s * 1000;
}

static int64_t on_settled(void *arg, const char *route)
{
    return sl_outstanding_settled_ms(((struct sl_work_verification *)arg)->outstanding, route);
}

static void set_options(struct sl_work_verification *v, const struct sl_work_item *item)
{
    struct sl_pipeline *pipeline = item->work->options.pipeline;
    struct sl_verify_options *o = &v->options;
    struct sl_span *ttl = sl_arena_alloc(item->call.arena, sizeof(*ttl));
    *ttl = sl_pipeline_ttl_attribute(pipeline);
    o->pipeline = pipeline;
    o->sinks = item->work->options.sinks;
    o->ttl_attributes = ttl;
    o->n_ttl_attributes = ttl->ptr != NULL;
    o->only_items = v->piece.is_repair;
    o->segments = v->piece.is_repair ? 1 : (uint32_t)v->piece.of;
    o->first = (uint32_t)v->piece.segment;
    o->n = 1;
    o->wait_ms = (int64_t)v->piece.wait_s * 1000;
    o->through_ms = on_through;
    o->settled_ms = on_settled;
    o->arg = v;
}

static enum sl_status check_source(struct sl_work_verification *v, const struct sl_work_item *item,
                                   const char *what, struct sl_error *error)
{
    const struct sl_verify_source source = {.what = what,
                                            .url = item->work->config.source,
                                            .facts = &v->ground.facts,
                                            .is_chosen = v->options.is_chosen};
    enum sl_status status = sl_verify_check_source(&source, item->work->options.pipeline, &item->call, error);
    return status == SL_OK && v->piece.is_repair
               ? sl_verify_check_ledgers(&source, item->work->options.pipeline, &item->call, error)
               : status;
}

enum sl_status sl_work_verification_open(struct sl_work_verification *v, const struct sl_work_item *item,
                                         struct sl_error *error)
{
    struct sl_pipeline *pipeline = item->work->options.pipeline;
    const struct sl_work_config *config = &item->work->config;
    const char *what = sl_arena_printf(item->call.arena, "SLUICE_WORK_SOURCE %.*s", SL_ARG(config->source));
    v->clock = item->work->options.clock;
    set_options(v, item);
    bool *chosen = NULL;
    enum sl_status status = sl_route_choose(pipeline, v->piece.routes, item->call.arena, &chosen, error);
    v->options.is_chosen = chosen;
    if (status == SL_OK)
        status = sl_verify_ground_open(&v->ground, item->work->options.sinks, config->source, what,
                                       &v->options, &item->call, error);
    if (status == SL_OK)
        status = sl_outstanding_open(pipeline, v->options.is_chosen, &v->outstanding, error);
    if (status == SL_OK)
        status = check_source(v, item, what, error);
    if (status == SL_OK)
        sl_verify_ground_count(&v->ground, pipeline);
    return status;
}

void sl_work_verification_close(struct sl_work_verification *v)
{
    sl_outstanding_close(v->outstanding);
    sl_verify_ground_close(&v->ground);
}
