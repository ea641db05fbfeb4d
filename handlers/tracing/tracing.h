/* Spans: one for each traced invocation and one for each of its routes, linked to the traces that the records
 * belong to. docs/METRICS.md has them for users.
 *
 * An invocation is traced when X-Ray's header says so, or when one of the records that a route took belongs
 * to a trace that records. Spans are collected and sent after an answer, never before it: when there are
 * many, when the first has waited for a while, and at the end. They are telemetry: what cannot be sent within
 * a second is tried once more later, then dropped, and a line in the log says so. */
#ifndef SL_HANDLERS_TRACING_TRACING_H
#define SL_HANDLERS_TRACING_TRACING_H

#include "handlers/dispatch/links.h"
#include "handlers/pipeline/pipeline.h"

struct sl_tracing;

/* One invocation, as far as its links and the pipeline do not say it. */
struct sl_traced {
    const char *request_id, *function_arn;
    struct sl_span table; /* of its records; absent: not known */
    size_t records;
    const char *error; /* a code; NULL: the whole batch is done */
};

/* NULL: the configuration has no "trace_to". Borrows both until it is closed; `vars` describe the function,
 * and are read now. */
struct sl_tracing *sl_tracing_open(const struct sl_vars *vars, struct sl_log *log, struct sl_pipeline *p);
/* Sends what waits, for a moment; without `sends` nothing, as where descriptors are not ours any more. NULL
 * is fine. */
void sl_tracing_close(struct sl_tracing *t, bool sends);

/* An invocation begins. `trace_id` is X-Ray's header, NULL or "": none. Returned is where its dispatch notes
 * links, or NULL when `t` is NULL. */
struct sl_trace_links *sl_tracing_begin(struct sl_tracing *t, const char *trace_id);

/* It has ended. NULL is fine. */
void sl_tracing_end(struct sl_tracing *t, const struct sl_traced *traced);

/* After the answer: sends what is due, until `deadline_ms` at the latest. NULL is fine. */
void sl_tracing_send(struct sl_tracing *t, int64_t deadline_ms, struct sl_arena *arena);

#endif
