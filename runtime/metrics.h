/* The metrics of one invocation, or of several, as documents in CloudWatch's embedded metric format: one of
 * the function, and one of each route that took records. docs/METRICS.md has the names. */
#ifndef SL_RUNTIME_METRICS_H
#define SL_RUNTIME_METRICS_H

#include "base/log.h"
#include "runtime/sums.h"

struct sl_metrics {
    struct sl_log *log;
    struct sl_emf_plan function, ageless; /* with IteratorAgeMs, and without */
    struct sl_emf_plan drain;
    struct sl_emf_plan *routes;
    size_t n_routes;
};

/* Borrows `log`. */
void sl_metrics_init(struct sl_metrics *m, struct sl_log *log, const char *function_name,
                     const struct sl_pipeline *p);
void sl_metrics_clean_up(struct sl_metrics *m);

/* All in one write, if they fit into what a pipe takes at once. */
void sl_metrics_write(struct sl_metrics *m, const struct sl_sums *sums);

#endif
