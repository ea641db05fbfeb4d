/* Which traces the records of an invocation belong to, as far as they record: what the spans of the
 * invocation and of its routes link to (handlers/tracing/tracing.h). */
#ifndef SL_HANDLERS_DISPATCH_LINKS_H
#define SL_HANDLERS_DISPATCH_LINKS_H

#include "streams/trace_context.h"

#define SL_LINKS_MAX                                                                                         \
    128 /* of one span: OpenTelemetry's limit unless another is set (SDK, "LinkCountLimit") */

/* The contexts are views of the records. */
struct sl_links {
    struct sl_trace_context
        *list; /* room for SL_LINKS_MAX in the invocation's arena; NULL before the first */
    size_t n;
    size_t dropped; /* beyond these */
};

struct sl_trace_links {
    struct sl_links all;     /* of each record once */
    struct sl_links *routes; /* one for each of the pipeline's: of the records that it took */
};

#endif
