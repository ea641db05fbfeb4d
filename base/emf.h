/* Metrics as lines of the log: CloudWatch's embedded metric format (EMF). One document is one line, which
 * CloudWatch Logs reads when it arrives. The one place that writes it.
 *
 * Limits, from "Specification: Embedded metric format" and the API reference's Dimension and MetricDatum: 100
 * metrics a document; a name of 1 to 1024 bytes; a dimension's value of 1 to 1024 ASCII characters, none of
 * them a control character; values between 8.515920e-109 and 1.174271e+108, no NaN, no infinity; one of the
 * 27 units. What breaks one of them would be dropped with its document, so it is mended here. */
#ifndef SL_BASE_EMF_H
#define SL_BASE_EMF_H

#include "base/buffer.h"

#define SL_EMF_METRICS 100 /* of one document */

struct sl_emf_metric {
    const char *name;
    const char *unit; /* "Count", "Milliseconds", "Bytes"...; one that CloudWatch does not know: "None" */
    double value;
};

/* Namespace "Sluice"; the dimensions Function and, if there is one, Route. */
struct sl_emf {
    int64_t epoch_ms;
    const char *function, *route; /* any text; `route` NULL: none */
    const char *level; /* NULL: none. Lambda drops lines below the function's log level, and a JSON line
                          without a level counts as INFO */
    const struct sl_emf_metric *metrics;
    size_t n;
    const struct sl_emf_metric *facts; /* numbers to search for in the log: no metrics, so not charged */
    size_t n_facts;
};

/* Adds the document and its newline: several documents when there are more metrics than one may have. Adds
 * nothing when there is none. */
void sl_emf_add(struct sl_buffer *out, const struct sl_emf *emf);

/* A document whose numbers change and whose texts do not: written once, and then only filled in. */
#define SL_EMF_PLAN_NUMBERS 16 /* the time, metrics and facts together */

struct sl_emf_plan {
    struct sl_buffer text;
    size_t cuts[SL_EMF_PLAN_NUMBERS]; /* where the numbers go */
    size_t n;
};

/* Of `emf` only what is no number is taken. */
void sl_emf_plan_init(struct sl_emf_plan *plan, const struct sl_emf *emf);
void sl_emf_plan_clean_up(struct sl_emf_plan *plan);

/* `values`: those of the metrics, then those of the facts. */
void sl_emf_plan_add(const struct sl_emf_plan *plan, int64_t epoch_ms, const double *values,
                     struct sl_buffer *out);

#endif
