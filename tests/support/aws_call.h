/* A plain request to a service: what tests need to set a table up, read a queue, look at an object. */
#ifndef SL_TESTS_SUPPORT_AWS_CALL_H
#define SL_TESTS_SUPPORT_AWS_CALL_H

#include "aws/job.h"
#include "sinks/target.h"

/* Returns the answer's body, followed by a NUL, in `arena`; the test fails if the service refuses. `body` is
 * JSON with ' for ", or a form for SNS. */
struct sl_span aws_call(struct sl_sinks *sinks, struct sl_arena *arena, const struct sl_service *service,
                        const char *operation, const char *body);

/* To S3, path style: the path as it is. NULL when the answer is 404. */
const char *aws_s3(struct sl_sinks *sinks, struct sl_arena *arena, const char *method, const char *path,
                   size_t *len);

#endif
