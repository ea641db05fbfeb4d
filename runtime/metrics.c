/* The documents of metrics: the function's, and the routes'. */
#include "runtime/metrics.h"

#include "base/array.h"

#include <stdlib.h>

/* The last may be absent. */
static const struct sl_emf_metric of_function[] = {
    {.name = "Records", .unit = "Count"},
    {.name = "Parked", .unit = "Count"},
    {.name = "FailedBatches", .unit = "Count"},
    {.name = "ColdStart", .unit = "Count"},
    {.name = "DecodeMs", .unit = "Milliseconds"},
    {.name = "HandleMs", .unit = "Milliseconds"},
    {.name = "SinkMs", .unit = "Milliseconds"},
    {.name = "PeakMemoryMB", .unit = "Megabytes"},
    {.name = "IteratorAgeMs", .unit = "Milliseconds"},
};
static const struct sl_emf_metric function_facts[] = {{.name = "Invocations"}};

static const struct sl_emf_metric of_route[] = {
    {.name = "Matched", .unit = "Count"},       {.name = "Applied", .unit = "Count"},
    {.name = "Parked", .unit = "Count"},        {.name = "Failed", .unit = "Count"},
    {.name = "Bytes", .unit = "Bytes"},         {.name = "HandleMs", .unit = "Milliseconds"},
    {.name = "SinkMs", .unit = "Milliseconds"}, {.name = "SetAside", .unit = "Count"},
    {.name = "Probes", .unit = "Count"},
};
#define ASIDES 2 /* the last ones, of routes that may be set aside: each metric is paid for */
static const struct sl_emf_metric of_drain[] = {
    {.name = "Letters", .unit = "Count"},
    {.name = "LetterAgeMs", .unit = "Milliseconds"},
};
static const struct sl_emf_metric route_facts[] = {{.name = "Skipped"}};

void sl_metrics_init(struct sl_metrics *m, struct sl_log *log, const char *function_name,
                     const struct sl_pipeline *p)
{
    struct sl_emf emf = {
        .function = function_name,
        .level = sl_log_metrics_level(log),
        .metrics = of_function,
        .n = SL_COUNT(of_function),
        .facts = function_facts,
        .n_facts = SL_COUNT(function_facts),
    };
    *m = (struct sl_metrics){.log = log, .n_routes = sl_pipeline_routes(p)};
    sl_emf_plan_init(&m->function, &emf);
    emf.n--;
    sl_emf_plan_init(&m->ageless, &emf);
    m->routes = calloc(m->n_routes + 1, sizeof(*m->routes));
    if (!m->routes)
        sl_die("out of memory: metrics of %zu routes", m->n_routes);
    emf.metrics = of_drain;
    emf.n = SL_COUNT(of_drain);
    emf.n_facts = 0;
    sl_emf_plan_init(&m->drain, &emf);
    emf.metrics = of_route;
    emf.n = SL_COUNT(of_route);
    emf.facts = route_facts;
    emf.n_facts = SL_COUNT(route_facts);
    for (size_t i = 0; i < m->n_routes; i++) {
        emf.route = sl_pipeline_stats(p, i).name;
        emf.n = SL_COUNT(of_route) - (sl_pipeline_stats(p, i).waits_in ? 0 : ASIDES);
        sl_emf_plan_init(&m->routes[i], &emf);
    }
}

void sl_metrics_clean_up(struct sl_metrics *m)
{
    sl_emf_plan_clean_up(&m->function);
    sl_emf_plan_clean_up(&m->ageless);
    sl_emf_plan_clean_up(&m->drain);
    for (size_t i = 0; i < m->n_routes; i++)
        sl_emf_plan_clean_up(&m->routes[i]);
    free(m->routes);
}

static void add_function(const struct sl_metrics *m, const struct sl_sums *sums, int64_t epoch_ms,
                         struct sl_buffer *out)
{
    double values[SL_COUNT(of_function) + SL_COUNT(function_facts)] = {
        (double)sums->records,
        (double)sums->parked,
        (double)sums->failed,
        (double)sums->cold,
        sl_sums_ms(sums->decode_ns),
        sl_sums_ms(sl_sums_handle_ns(sums)),
        sl_sums_ms(sl_sums_sink_ns(sums)),
        sl_sums_mb(sums->peak_kb),
    };
    const bool has_age = sums->age_ms >= 0;
    size_t n = SL_COUNT(of_function) - 1;
    if (has_age)
        values[n++] = (double)sums->age_ms;
    values[n] = (double)sums->invocations;
    sl_emf_plan_add(has_age ? &m->function : &m->ageless, epoch_ms, values, out);
}

static void add_route(const struct sl_emf_plan *plan, const struct sl_route_stats *r, int64_t epoch_ms,
                      struct sl_buffer *out)
{
    double values[SL_COUNT(of_route) + SL_COUNT(route_facts)] = {
        (double)r->matched, (double)r->applied,       (double)r->parked,      (double)r->failed,
        (double)r->bytes,   sl_sums_ms(r->handle_ns), sl_sums_ms(r->sink_ns),
    };
    size_t n = SL_COUNT(of_route) - ASIDES;
    if (r->waits_in) {
        values[n++] = (double)r->set_aside;
        values[n++] = (double)r->probes;
    }
    values[n] = (double)r->skipped;
    sl_emf_plan_add(plan, epoch_ms, values, out);
}

void sl_metrics_write(struct sl_metrics *m, const struct sl_sums *sums)
{
    const int64_t epoch_ms = m->log->clock->wall_ns(m->log->clock) / 1000000;
    struct sl_buffer *out = sl_log_metrics_begin(m->log);
    if (!out)
        return;
    add_function(m, sums, epoch_ms, out);
    if (sums->letters)
        sl_emf_plan_add(&m->drain, epoch_ms,
                        (const double[]){(double)sums->letters, (double)sums->letter_age_ms}, out);
    for (size_t i = 0; i < m->n_routes; i++)
        if (sums->routes[i].matched)
            add_route(&m->routes[i], &sums->routes[i], epoch_ms, out);
    sl_log_metrics_end(m->log);
}
