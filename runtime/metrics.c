/* The documents of metrics: the function's, and the routes'. */
#include "runtime/metrics.h"

#include <stdlib.h>

/* Metrics of a document, and one fact. */
#define OF_FUNCTION 9
#define OF_ROUTE    7

void sl_metrics_init(struct sl_metrics *m, const char *function_name, size_t n_routes)
{
    *m = (struct sl_metrics){.function_name = function_name};
    m->documents = calloc(n_routes + 1, sizeof(*m->documents));
    m->metrics = calloc(OF_FUNCTION + 1 + n_routes * (OF_ROUTE + 1), sizeof(*m->metrics));
    if (!m->documents || !m->metrics)
        sl_die("out of memory: metrics of %zu routes", n_routes);
}

void sl_metrics_clean_up(struct sl_metrics *m)
{
    free(m->documents);
    free(m->metrics);
}

static void fill_function(struct sl_metrics *m, const struct sl_sums *sums, struct sl_emf *out)
{
    size_t n = 0;
    struct sl_emf_metric *list = m->metrics;
    list[n++] = (struct sl_emf_metric){"Records", "Count", (double)sums->records};
    list[n++] = (struct sl_emf_metric){"Parked", "Count", (double)sums->parked};
    list[n++] = (struct sl_emf_metric){"FailedBatches", "Count", (double)sums->failed};
    list[n++] = (struct sl_emf_metric){"ColdStart", "Count", (double)sums->cold};
    list[n++] = (struct sl_emf_metric){"DecodeMs", "Milliseconds", sl_sums_ms(sums->decode_ns)};
    list[n++] = (struct sl_emf_metric){"HandleMs", "Milliseconds", sl_sums_ms(sl_sums_handle_ns(sums))};
    list[n++] = (struct sl_emf_metric){"SinkMs", "Milliseconds", sl_sums_ms(sl_sums_sink_ns(sums))};
    list[n++] = (struct sl_emf_metric){"PeakMemoryMB", "Megabytes", sl_sums_mb(sums->peak_kb)};
    if (sums->age_ms >= 0)
        list[n++] = (struct sl_emf_metric){"IteratorAgeMs", "Milliseconds", (double)sums->age_ms};
    list[n] = (struct sl_emf_metric){"Invocations", "Count", (double)sums->invocations};
    *out = (struct sl_emf){
        .function = m->function_name, .metrics = list, .n = n, .facts = &list[n], .n_facts = 1};
}

static void fill_route(struct sl_metrics *m, const struct sl_route_stats *r, struct sl_emf_metric *list,
                       struct sl_emf *out)
{
    const struct sl_emf_metric metrics[OF_ROUTE + 1] = {
        {"Matched", "Count", (double)r->matched},
        {"Applied", "Count", (double)r->applied},
        {"Parked", "Count", (double)r->parked},
        {"Failed", "Count", (double)r->failed},
        {"Bytes", "Bytes", (double)r->bytes},
        {"HandleMs", "Milliseconds", sl_sums_ms(r->handle_ns)},
        {"SinkMs", "Milliseconds", sl_sums_ms(r->sink_ns)},
        {"Skipped", "Count", (double)r->skipped},
    };
    memcpy(list, metrics, sizeof(metrics));
    *out = (struct sl_emf){.function = m->function_name,
                           .route = r->name,
                           .metrics = list,
                           .n = OF_ROUTE,
                           .facts = &list[OF_ROUTE],
                           .n_facts = 1};
}

void sl_metrics_write(struct sl_metrics *m, struct sl_log *log, const struct sl_sums *sums)
{
    size_t n = 1;
    struct sl_emf_metric *list = m->metrics + OF_FUNCTION + 1;
    fill_function(m, sums, &m->documents[0]);
    for (size_t i = 0; i < sums->n_routes; i++) {
        if (!sums->routes[i].matched)
            continue;
        fill_route(m, &sums->routes[i], list, &m->documents[n++]);
        list += OF_ROUTE + 1;
    }
    sl_log_metrics(log, m->documents, n);
}
