/* A decoded batch as Lambda would deliver its records (see lambda_form.h). */
#ifndef SL_LIVE_SOURCE_LAMBDA_BATCH_H
#define SL_LIVE_SOURCE_LAMBDA_BATCH_H

#include "base/error.h"
#include "live/source/lambda_form.h"
#include "streams/decode/batch.h"

struct sl_lambda_batch {
    struct sl_batch batch; /* its records are what filters see */
    bool is_kinesis;
    struct sl_span *texts; /* Kinesis: the records around the changes, which are delivered; else NULL */
};

/* Makes `out` of a decoded batch whose first record is the stream's record `first`. When all records are in
 * Lambda's form already, `out` has the very same ones. All lives in `arena`; `in` has to live as long.
 * SL_REJECT: "NoKeys" (a line holds only an item, and `keys` does not name its keys), "TwoSources" (records
 * of Kinesis and of DynamoDB Streams), "TooLarge". */
enum sl_status sl_lambda_batch_make(const struct sl_batch *in, const struct sl_lambda_form *form,
                                    size_t first, struct sl_arena *arena, struct sl_lambda_batch *out,
                                    struct sl_error *error) SL_MUST_USE;

/* Whether all records are those of DynamoDB Streams in Lambda's form already: `out` has them then. */
bool sl_lambda_batch_take(const struct sl_batch *in, struct sl_lambda_batch *out);

/* What is delivered for record `i`. */
struct sl_span sl_lambda_batch_text(const struct sl_lambda_batch *batch, size_t i);

#endif
