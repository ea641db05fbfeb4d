/* Dispatch: one batch through all routes, to one answer. The rules are in docs/DISPATCH.md: two phases
 * (repeatable routes in order with bisection and hold-back; then parking and once-only effects below the
 * checkpoint), then the answer by k. */
#ifndef SL_HANDLERS_DISPATCH_H
#define SL_HANDLERS_DISPATCH_H

#include "base/buffer.h"
#include "handlers/pipeline.h"
#include "streams/batch.h"

struct sl_invocation {
    const char *request_id;   /* "" outside Lambda */
    const char *function_arn; /* "" outside Lambda */
    int64_t deadline_ms;      /* on the clock's steady time: when the invocation is killed. Dispatch keeps its
                                 reserve */
    struct sl_arena *arena;   /* the invocation's; the batch's too */
};

/* The answer allows 6 MB (Lambda's synchronous limit). */
#define SL_ANSWER_BYTES (6 * 1024 * 1024)

struct sl_answer {
    bool is_error;         /* a function error: `error` is the reason, `body` is unused */
    struct sl_error error; /* also set, for the log, when a partial answer names a failure */
    struct sl_buffer body; /* else the JSON to answer with; initialized by the caller with SL_ANSWER_BYTES */
    size_t checkpoint;     /* k: the lowest index neither applied nor parked; n when there is none */
    size_t parked;
};

/* Never fails as such: what failed is in the answer. */
void sl_dispatch(struct sl_pipeline *p, const struct sl_batch *batch, const struct sl_invocation *invocation,
                 struct sl_answer *out);

#endif
