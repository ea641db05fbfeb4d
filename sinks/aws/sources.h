/* Where keys come from: one function per place, and the order in which the SDKs look. */
#ifndef SL_SINKS_AWS_SOURCES_H
#define SL_SINKS_AWS_SOURCES_H

#include "sinks/aws/credentials.h"

/* The default chain. SL_FATAL with the list of places when none has keys. Files are read anew. */
enum sl_status sl_sources_chain(struct sl_aws *aws, int64_t deadline_ms, struct sl_keys *out,
                                struct sl_error *error) SL_MUST_USE;

/* A role, assumed with the default chain's keys. */
enum sl_status sl_sources_role(struct sl_aws *aws, const char *role, int64_t deadline_ms, struct sl_keys *out,
                               struct sl_error *error) SL_MUST_USE;

#endif
