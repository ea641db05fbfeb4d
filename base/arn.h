/* ARNs ("arn:aws:sqs:us-east-1:123456789012:name") and their parts. */
#ifndef SL_BASE_ARN_H
#define SL_BASE_ARN_H

#include "base/span.h"

/* The part of this number, from 0 ("arn"), without its colons; absent when `arn` is not an ARN or has fewer.
 */
struct sl_span sl_arn_part(struct sl_span arn, unsigned number);

#endif
