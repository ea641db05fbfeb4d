/* Dispatch: one batch through all routes, to one answer. The rules are in docs/contributing/DISPATCH.md: two
 * phases (repeatable routes in order with bisection and hold-back; then parking and once-only effects below
 * the checkpoint), then the answer by k. */
#ifndef SL_HANDLERS_DISPATCH_DISPATCH_H
#define SL_HANDLERS_DISPATCH_DISPATCH_H

#include "handlers/dispatch/dispatch_answer.h"
#include "handlers/dispatch/links.h"
#include "handlers/pipeline/pipeline.h"
#include "streams/decode/batch.h"

/* Records that come late, of a letter (handlers/dispatch/letter.h): they are one route's, which took them
 * when they came. */
struct sl_late {
    size_t route;
    int64_t epoch; /* of the route at that time */
};

struct sl_invocation {
    const char *request_id;     /* "" outside Lambda */
    const char *function_arn;   /* "" outside Lambda */
    const char *trace_id;       /* X-Ray's; NULL or "": none */
    int64_t deadline_ms;        /* on the clock's steady time: when the invocation is killed. Dispatch keeps a
                                   reserve before it */
    struct sl_arena *arena;     /* the invocation's; the batch's too */
    const struct sl_late *late; /* NULL: the batch is a stream's */
    struct sl_trace_links *links; /* of several batches added up; NULL: nobody asks */
};

/* Always makes an answer: what failed is in it. */
void sl_dispatch(struct sl_pipeline *p, const struct sl_batch *batch, const struct sl_invocation *invocation,
                 struct sl_answer *out);

#endif
