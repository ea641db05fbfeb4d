/* W3C Trace Context (www.w3.org/TR/trace-context, version 00): what the writer of a change left in its item,
 * so that the change belongs to the writer's trace. */
#ifndef SL_STREAMS_TRACE_CONTEXT_H
#define SL_STREAMS_TRACE_CONTEXT_H

#include "streams/record.h"

#define SL_TRACE_ID_HEX  32
#define SL_PARENT_ID_HEX 16

/* Where in an item it is. */
struct sl_trace_paths {
    struct sl_span parent; /* "_otel.traceparent"; absent: nowhere */
    struct sl_span state;  /* "_otel.tracestate"; absent: there is none */
};

/* The paths, in `arena`. A path that ends in the name "traceparent" has its "tracestate" beside it. False:
 * `path` is not a path. */
bool sl_trace_paths(struct sl_span path, struct sl_arena *arena, struct sl_trace_paths *out) SL_MUST_USE;

/* False: the text is no traceparent that can be gone on from. A later version's is read as far as this one
 * goes. */
bool sl_traceparent_is_valid(struct sl_span text);

/* What the change's own writer left: in the new image, where nobody else's can be. A removal has none. False:
 * there is none, or it is not valid. A tracestate that is not valid is left out. */
bool sl_record_trace(const struct sl_record *r, const struct sl_trace_paths *paths,
                     struct sl_trace_context *out);

/* Of a valid one. */
static inline struct sl_span sl_trace_id(struct sl_span traceparent)
{
    return sl_span(traceparent.ptr + 3, SL_TRACE_ID_HEX);
}

static inline struct sl_span sl_parent_id(struct sl_span traceparent)
{
    return sl_span(traceparent.ptr + 4 + SL_TRACE_ID_HEX, SL_PARENT_ID_HEX);
}

/* Does its trace record? */
bool sl_traceparent_is_sampled(struct sl_span traceparent);

#endif
