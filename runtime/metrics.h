/* The metrics of one invocation, or of several, as documents in CloudWatch's embedded metric format: one of
 * the function, and one of each route that took records. docs/METRICS.md has the names. */
#ifndef SL_RUNTIME_METRICS_H
#define SL_RUNTIME_METRICS_H

#include "base/log.h"
#include "runtime/sums.h"

struct sl_metrics {
    const char *function_name;
    struct sl_emf *documents; /* room for all */
    struct sl_emf_metric *metrics;
};

void sl_metrics_init(struct sl_metrics *m, const char *function_name, size_t n_routes);
void sl_metrics_clean_up(struct sl_metrics *m);

/* All in one write, if they fit into what a pipe takes at once. */
void sl_metrics_write(struct sl_metrics *m, struct sl_log *log, const struct sl_sums *sums);

#endif
