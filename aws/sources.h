/* Where keys come from: the places in which the SDKs look, in their order. */
#ifndef SL_AWS_SOURCES_H
#define SL_AWS_SOURCES_H

#include "aws/credentials.h"

/* The keys of the default chain; with a role ("" for none), the role's keys, assumed with those. SL_FATAL
 * with the list of places when none has keys. Files are read each time. An sl_aws_keys_fn. */
enum sl_status sl_sources_find(struct sl_aws *aws, const char *role, int64_t deadline_ms, struct sl_keys *out,
                               struct sl_error *error) SL_MUST_USE;

#endif
