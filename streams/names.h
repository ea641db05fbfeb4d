/* The names that DynamoDB Streams has for the numbers of streams/types.h. Static text; never NULL. */
#ifndef SL_STREAMS_NAMES_H
#define SL_STREAMS_NAMES_H

#include "streams/types.h"

const char *sl_event_name(enum sl_event event); /* "INSERT", "MODIFY", "REMOVE"; "?" for any other */
const char *sl_view_name(enum sl_view view);    /* "KEYS_ONLY", ...; "" for SL_VIEW_UNKNOWN */
const char *sl_ttl_name(enum sl_ttl ttl);       /* "unknown", "user", "inferred", "expired" */

enum sl_view sl_view_named(struct sl_span name); /* SL_VIEW_UNKNOWN: no view type has this name */

#endif
