/* Opens the table that is verified against, and has every table count. */
#include "data/verify/ground.h"

#include "base/array.h"
#include "handlers/pipeline/route.h"

/* The service was not asked: what was given does not say where it is. */
static bool is_usage(const char *code)
{
    static const char *const codes[] = {"NoRegion", "NoEndpoint", "InvalidEndpoint", "InvalidTarget"};
    for (size_t i = 0; i < SL_COUNT(codes); i++)
        if (strcmp(code, codes[i]) == 0)
            return true;
    return false;
}

static struct sl_span arn_of(const struct sl_table_facts *facts)
{
    if (facts->stream_arn.ptr)
        return facts->stream_arn;
    return facts->arn.ptr ? facts->arn : SL_LIT(SL_REPLAYED_ARN);
}

enum sl_status sl_verify_ground_open(struct sl_verify_ground *g, struct sl_sinks *sinks, struct sl_span url,
                                     const char *what, struct sl_verify_options *options,
                                     const struct sl_call *call, struct sl_error *error)
{
    if (sl_target_table_to_read(sinks, url, &g->source, error) != SL_OK) {
        sl_error_context(error, "%s", what);
        error->status = SL_REJECT; /* nothing was asked of it yet */
        return SL_REJECT;
    }
    g->source->describe(g->source, sl_span(NULL, 0), &g->facts, call);
    const struct sl_result *result = &g->facts.result;
    if (result->status != SL_OK)
        return sl_fail(error, is_usage(result->code) ? SL_REJECT : result->status, "Unreadable", "%s: %s",
                       what, result->text);
    if (g->facts.n_keys == 0)
        return sl_fail(error, SL_REJECT, "NoKeys", "%s: it has no items, and its key is not known", what);
    g->source->units = &g->units;
    options->source = g->source;
    options->arn = arn_of(&g->facts);
    for (size_t i = 0; i < g->facts.n_keys; i++)
        options->keys.names[options->keys.n++] = g->facts.keys[i].name;
    return SL_OK;
}

static void count(struct sl_pipeline *pipeline, struct sl_table_units *units)
{
    for (size_t i = 0; pipeline && i < pipeline->n; i++) {
        struct sl_option_set *set = &pipeline->routes[i].options;
        for (size_t k = 0; k < set->n; k++)
            if (set->values[k].is_set && set->values[k].table)
                set->values[k].table->units = units;
    }
}

void sl_verify_ground_count(struct sl_verify_ground *g, struct sl_pipeline *pipeline)
{
    g->pipeline = pipeline;
    count(pipeline, &g->units);
}

void sl_verify_ground_close(struct sl_verify_ground *g)
{
    count(g->pipeline, NULL);
    if (g->source)
        g->source->close(g->source);
    *g = (struct sl_verify_ground){.source = NULL};
}
