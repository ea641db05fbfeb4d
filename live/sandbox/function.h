/* Who the function is: its name, ARN and Region, and where its log and trace are, in agreement with each
 * other.
 *
 * A mapping's function is in the Region and account of the stream, so both come from the stream's ARN. */
#ifndef SL_LIVE_SANDBOX_FUNCTION_H
#define SL_LIVE_SANDBOX_FUNCTION_H

#include "base/arena.h"
#include "base/error.h"

struct sl_function {
    const char *name, *arn, *version; /* AWS_LAMBDA_FUNCTION_NAME, the invoked function's ARN, "$LATEST" */
    const char *region;
    const char *log_group; /* "/aws/lambda/" and the name */
};

/* What was told; NULL: nothing. */
struct sl_function_told {
    const char *function; /* a name, or an ARN */
    const char *region;   /* of the environment: it holds for the function's AWS clients, not for its ARN */
};

/* In `arena`. SL_REJECT "InvalidFunction": neither a name nor an ARN of a function. */
enum sl_status sl_function_make(const char *stream_arn, const struct sl_function_told *told,
                                struct sl_arena *arena, struct sl_function *out,
                                struct sl_error *error) SL_MUST_USE;

/* "2026/11/20/[$LATEST]" and 32 hexadecimal digits: the log stream of one execution environment, as Lambda
 * names it. */
const char *sl_function_log_stream(const struct sl_function *identity, int64_t now_ms, uint64_t number,
                                   struct sl_arena *arena);

/* "Root=1-<time>-<24 digits>;Parent=<16 digits>;Sampled=0": of the invocation with this request id, a UUID,
 * whose digits it takes. */
#define SL_FUNCTION_TRACE_BYTES 80
void sl_function_trace(const char *request_id, int64_t now_ms, char out[SL_FUNCTION_TRACE_BYTES]);

#endif
